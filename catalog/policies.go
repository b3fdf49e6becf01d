package catalog

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/policy/identify"
	"github.com/sotto-dp/sotto/privacy"
)

const (
	pureGuarantee = "ε-DP (Interactive, Table and View), rewards in range"
	noGuarantee   = "none"
)

// Policies returns every policy, private ones first. Those that need the horizon can do without it:
// parameter unknown_horizon. What entries point to is shared: it is for reading only.
func Policies() []Entry { return slices.Clone(ofArms()) }

// ofArms are built once: a file's policies are looked up one by one.
var ofArms = sync.OnceValue(func() []Entry {
	known := policies()
	end := slices.IndexFunc(known, func(e Entry) bool { return !e.Private })
	all := slices.Insert(slices.Clone(known), end, auto(known))
	for i := range all {
		all[i].Bandit = BanditArms
		if !all[i].Anytime && !all[i].Contexts { // whose people come as they do
			all[i] = horizonFree(all[i])
		}
		all[i].Params = slices.Clip(all[i].Params)
	}
	return all
})

// publicContexts is said of policies that play contexts and protect rewards alone.
const publicContexts = "; contexts are public and not protected"

// sumsGuarantee is that of a policy whose rewards are in one noisy sum each.
const sumsGuarantee = "ε-DP, ρ-zCDP, (ε,δ)-DP or (α,ε)-RDP (Interactive, Table and View), as the budget is, rewards in range"

// phased adds what phased elimination has with linear and logistic means.
func phased(e Entry) Entry {
	const proof = "proof: identify.Phased"
	e.Family, e.Private, e.Budgets, e.Guarantee = "successive-elimination", true, Currencies(), sumsGuarantee
	e.Finite, e.AnyTail = true, true
	e.Params = []Param{
		{Name: "p", Doc: "probability that any mean leaves its confidence interval",
			Default: math.NaN(), DefaultDoc: "1/T", Lo: 0, Hi: 1, Proof: always(proof)},
		{Name: "first", Proof: always(proof), Doc: "plays of the first batch, divided by the rank of the vectors", Integer: true,
			Default: math.NaN(), DefaultDoc: "⌈8/ε⌉, at least 16", Lo: 1, LoIn: true, Hi: min(1<<50, math.MaxInt/4)},
	}
	if e.Vectors == MeansLogistic {
		e.Params = append(e.Params, boundParam(proof))
	}
	name, vectors := e.Name, e.Vectors
	e.New = func(s Setting, p Params) (policy.Policy, error) {
		q, err := identify.NewPhased(s.Arms, s.Budget, p.or("p", 1/float64(max(2, s.Horizon))), int(p.or("first", 0)))
		if err == nil {
			err = tellVectors(q, name, vectors, s.Vectors, s.Logistic, p)
		}
		return built(q, err)
	}
	return e
}

// horizonFree adds the guess-and-double wrapper as a parameter.
func horizonFree(e Entry) Entry {
	known := e.New
	proof := Proof{Theorem: "the theorem, with T known,", Only: []float64{0},
		Beside: "it adds up over the guesses"}
	if strings.HasPrefix(e.Regret, "none") {
		proof = Proof{}
	}
	e.Params = append(e.Params, Param{Name: "unknown_horizon", Flag: true, Proof: proof,
		Doc: "do without T: guess it and double the guess at half of it, each guess afresh, on " +
			"rewards of its own [Sajed 2019, Theorem 5.1.3]"})
	e.New = func(s Setting, p Params) (policy.Policy, error) {
		if p["unknown_horizon"] == 0 {
			return known(s, p)
		}
		build := func(horizon int) (policy.Policy, error) {
			guess := s
			guess.Horizon = horizon
			return known(guess, p)
		}
		// Guesses go up to four times the rounds that are played: what cannot be built for so many
		// must not stop a run in its middle.
		if s.Horizon > 0 && s.Horizon <= policy.Forever/4 {
			if _, err := build(4 * s.Horizon); err != nil {
				return nil, fmt.Errorf("unknown_horizon guesses up to four times the horizon: %w", err)
			}
		}
		return built(policy.NewDoubling(s.Arms, build))
	}
	vary := e.vary
	e.vary = func(e *Entry, p Params) {
		if vary != nil {
			vary(e, p)
		}
		if p["unknown_horizon"] == 1 {
			e.Regret = "for each guess of T, and added up over the guesses: " + e.Regret
		}
	}
	return e
}

// What a proof needs of the noise, in verdicts.
const (
	ofTail    = "the tail of the noise, as the release says it"
	ofCounted = "Chernoff's bound for any number of Laplace noises, which the release counts " +
		"(divergence.DEpsNoisy)"
	ofOne = "its bound is for one Laplace noise a release, and the proof is not at hand: take "
)

func policies() []Entry {
	return []Entry{
		{
			Name: "adap-klucb", Title: "AdaP-KLUCB", Family: "kl-ucb", Newer: "dp-imed", Private: true,
			Budgets: []string{"epsilon", "rho"}, Anytime: true,
			Guarantee: pureGuarantee,
			Regret: "Σ C₁Δ_a log T / min(kl(μ_a, μ*), C₂εΔ_a), Bernoulli rewards, α > 3, " +
				"constants implicit [Azize 2024, Theorem 5.4]",
			Gathered: Verdict{Proved: ofTail},
			Source:   "[Azize 2024, §5.2, Algorithm 7 and (5.2)]",
			Params: []Param{alpha("[Azize 2024, Theorem 5.4]"), ratio("[Azize 2024, Theorem 5.4]"),
				printedHalf("[Azize 2024, Theorem 5.4]"),
				{Name: "ties_fewest", Flag: true, Proof: always("[Azize 2024, Theorem 5.4]"),
					Doc: "give ties to the arm with the fewest plays, not to the one listed " +
						"first as the source's argmax does"}},
			New: func(s Setting, p Params) (policy.Policy, error) {
				epsilon, err := pure(s.Budget)
				if err != nil {
					return nil, err
				}
				q, err := policy.NewAdaPKLUCB(s.Arms, epsilon, p["alpha"])
				if err == nil && p["ties_fewest"] == 1 {
					q.TiesToFewest()
				}
				return episodic(q, err, p)
			},
		},
		{
			Name: "adap-ucb", Title: "AdaP-UCB", Family: "ucb", Newer: "dp-imed", Private: true,
			Budgets:   []string{"epsilon", "rho"},
			Anytime:   true,
			Guarantee: pureGuarantee,
			Finite:    true,
			Regret: "Σ ((2α log T/Δ_a)(1 + √(1 + 4Δ_a/ε))² + 3α/(α−3)), α > 3 " +
				"[Azize 2024, Theorem 5.3, before (C.12)]",
			Gathered: Verdict{Proved: ofTail},
			Source:   "[Azize 2024, §5.2, Algorithm 7 and (5.1)]",
			Params: []Param{alpha("[Azize 2024, Theorem 5.3]"), ratio("[Azize 2024, Theorem 5.3]"),
				printedHalf("[Azize 2024, Theorem 5.3]")},
			New: func(s Setting, p Params) (policy.Policy, error) {
				epsilon, err := pure(s.Budget)
				if err != nil {
					return nil, err
				}
				q, err := policy.NewAdaPUCB(s.Arms, epsilon, p["alpha"])
				return episodic(q, err, p)
			},
		},
		{
			Name: "adac-ucb", Title: "AdaC-UCB", Family: "ucb", Newer: "zcdp-imed", Private: true,
			Budgets: []string{"rho", "epsilon,delta", "alpha,epsilon"}, Anytime: true,
			Guarantee: "ρ-zCDP (Interactive), rewards in range; (ε,δ)-DP or (α,ε)-RDP by calibration",
			Finite:    true,
			Regret:    "Σ (8β log T/Δ_a + 8√(β log T/ρ) + 2β/(β−3)), β > 3 [Azize 2024, Theorem 5.6]",
			Gathered: Verdict{Proved: "normal noise of any variance, as the release says it " +
				"[Azize 2024, Remark 5.7]"},
			Source: "[Azize and Basu 2024, Algorithm 4]; [Azize 2024, §5.3.1, (5.4) and Remark 5.7]",
			Params: []Param{
				{Name: "beta", Doc: "optimism exponent β", Default: 3.1, Lo: 0, Hi: math.Inf(1),
					Proof: Proof{Theorem: "[Azize 2024, Theorem 5.6]", Above: 3}},
				ratio("[Azize 2024, Theorem 5.6]"), printedHalf("[Azize 2024, Theorem 5.6]"),
			},
			New: func(s Setting, p Params) (policy.Policy, error) {
				q, err := policy.NewAdaCUCB(s.Arms, s.Budget, p["beta"])
				return episodic(q, err, p)
			},
		},
		{
			Name: "dp-se", Title: "DP-SE", Family: "successive-elimination", Newer: "dp-imed",
			Private: true, Budgets: []string{"epsilon", "rho"},
			Guarantee: pureGuarantee,
			Finite:    true,
			Regret:    "O(Σ log T/Δ_a + K log T/ε), β = 1/T [Sajed 2019, Theorem 5.1.3]",
			Gathered:  Verdict{Proved: ofTail},
			Source:    "[Sajed 2019, Algorithm 9]",
			Params:    []Param{failure("1/T", always("[Sajed 2019, Lemma 5.1.2]"))},
			New: func(s Setting, p Params) (policy.Policy, error) {
				epsilon, err := pure(s.Budget)
				if err != nil {
					return nil, err
				}
				return built(policy.NewDPSE(s.Arms, epsilon, p.or("beta", 1/float64(s.Horizon))))
			},
		},
		{
			Name: "dp-se-doubling", Title: "DP-SE, unknown T", Family: "successive-elimination", Newer: "dp-imed", Private: true,
			Budgets: []string{"epsilon", "rho"}, Anytime: true,
			Guarantee: pureGuarantee,
			Finite:    true,
			Regret:    "a factor O(log T) over DP-SE (each guess starts afresh)",
			Source:    "[Sajed 2019, Algorithm 9 and Theorem 5.1.3] (guess T, double it at T/2); β = 1/guess",
			New: func(s Setting, p Params) (policy.Policy, error) {
				epsilon, err := pure(s.Budget)
				if err != nil {
					return nil, err
				}
				return built(policy.NewDoubling(s.Arms, func(horizon int) (policy.Policy, error) {
					return built(policy.NewDPSE(s.Arms, epsilon, 1/float64(horizon)))
				}))
			},
		},
		{
			Name: "batch-se", Title: "batch SE", Family: "successive-elimination", Private: true,
			Budgets:   []string{"epsilon", "rho", "epsilon,delta", "alpha,epsilon"},
			Guarantee: sumsGuarantee,
			Finite:    true,
			Regret: "O(Σ (log(KT)/Δ_a + τ(log(KT)))), p = 1/T, τ the tail of a release's noise (proof: " +
				"policy.BatchSE), which is O(Σ log T/Δ_a + K log T/ε) by one Laplace noise and by its shares, and " +
				"O(Σ log T/(ε²Δ_a)) under local trust, as [Chowdhury and Zhou 2023, Theorems 1, 5 and 6]",
			Gathered: Verdict{Proved: ofTail},
			Source: "[Chowdhury and Zhou 2023, Algorithm 1]; the radius is ours where [Chowdhury " +
				"and Zhou 2023, Lemma 2] leaves τ out",
			Params: []Param{
				{Name: "p", Doc: "probability that any mean leaves its confidence interval",
					Default: math.NaN(), DefaultDoc: "1/T", Lo: 0, Hi: 1,
					Proof: always("[Chowdhury and Zhou 2023, Lemma 2]")},
				{Name: "eta", Doc: "ratio η of successive batches; 4 in [Chowdhury and Zhou " +
					"2023]'s figures", Default: 2,
					Lo: 1, Hi: 1e6, HiIn: true, Proof: always("[Chowdhury and Zhou 2023, Lemma 2]")},
				{Name: "radius", Proof: only("the bound by [Chowdhury and Zhou 2023, Lemma 2]", 0),
					Doc: "tail: from the tail of each release's noise, proved; printed-pure, " +
						"-rdp, -cdp, -local: as [Chowdhury and Zhou 2023] prints them, for its figures",
					Choices: []string{"tail", "printed-pure", "printed-rdp", "printed-cdp", "printed-local"}},
				{Name: "s", Doc: "the s in printed-rdp and printed-cdp; precision sets what is " +
					"played", Default: 1, Lo: 1, LoIn: true, Hi: math.Inf(1),
					Proof: always("[Chowdhury and Zhou 2023, Lemma 2]")}, // of printed radii alone
			},
			New: func(s Setting, p Params) (policy.Policy, error) {
				q, err := policy.NewBatchSE(s.Arms, s.Budget, p.or("p", 1/float64(max(2, s.Horizon))), p["eta"])
				if err != nil {
					return nil, err
				}
				switch e := q.Epsilon(); p["radius"] {
				case 1:
					err = q.SetPrinted(policy.PrintedPure(e))
				case 2:
					err = q.SetPrinted(policy.PrintedRDP(e, p["s"]))
				case 3:
					err = q.SetPrinted(policy.PrintedCDP(e, p["s"]))
				case 4:
					err = q.SetPrinted(policy.PrintedLocal(e))
				}
				return built(q, err)
			},
		},
		phased(Entry{
			Name: "dp-lin-se", Title: "DP phased elimination, linear means", Vectors: MeansLinear,
			Regret: "O(√(grT log(KT)) + (grsτ(log(KT)) + s) log T), p = 1/T, r the rank of the vectors, s ≤ r(r+1)/2, " +
				"gr ≥ r what designs come to and τ the largest tail of a release's noise (proof: identify.Phased)",
			Source: "Lattimore and Szepesvári 2020, §22, on noisy sums of arms; intervals and bound are ours",
		}),
		phased(Entry{
			Name: "dp-glm-se", Title: "DP phased elimination, logistic means", Vectors: MeansLogistic,
			Regret: "O((r/κ)√(rT log(KT)) + (r²/κ)τ(log(KT)) log T), p = 1/T, r the rank of the vectors, κ = σ'(B) and " +
				"τ the largest tail of a release's noise (proof: identify.Phased)",
			Source: "ours: phases on spanners (Awerbuch and Kleinberg 2004), beside Filippi, Cappé, Garivier and Szepesvári 2010, " +
				"without privacy",
		}),
		{
			Name: "dp-context-se", Title: "batch SE in each context", Family: "successive-elimination", Private: true,
			Budgets: Currencies(), Contexts: true, PublicContexts: true, AnyTail: true, Finite: true,
			Guarantee: sumsGuarantee + publicContexts,
			Regret: "O(Σ_c Σ_a (log(CKT)/Δ_a + τ(log(CKT)))), p = 1/T, over C contexts and the K arms of each, Δ_a within " +
				"its context, τ the tail of a release's noise (proof: policy.PerContext)",
			Source: "ours: batch SE on one bandit a context (Lattimore and Szepesvári 2020, §18.1)",
			Params: []Param{
				{Name: "p", Doc: "probability that any mean leaves its confidence interval",
					Default: math.NaN(), DefaultDoc: "1/T", Lo: 0, Hi: 1, Proof: always("proof: policy.PerContext")},
				{Name: "eta", Doc: "ratio η of successive batches", Default: 2,
					Lo: 1, Hi: 1e6, HiIn: true, Proof: always("proof: policy.PerContext")},
			},
			New: func(s Setting, p Params) (policy.Policy, error) {
				n := max(1, s.Contexts)
				if err := checkContexts(s.Arms, n); err != nil {
					return nil, err
				}
				risk := p.or("p", 1/float64(max(2, s.Horizon))) / float64(n)
				of := make([]policy.Policy, n)
				for c := range of {
					var err error
					if of[c], err = built(policy.NewBatchSE(s.Arms/n, s.Budget, risk, p["eta"])); err != nil {
						return nil, err
					}
				}
				return built(policy.NewPerContext(s.Arms/n, of))
			},
		},
		{
			Name: "dp-se-2", Title: "DP-SE 2", Family: "successive-elimination",
			Private: true, Budgets: []string{"epsilon", "rho"},
			Guarantee: pureGuarantee,
			Finite:    true,
			Regret:    "O(Σ log T/Δ_a + K log T/ε), β = 1/T [Sajed 2019, Corollary A.1.3]",
			Source:    "[Sajed 2019, Algorithm 10], on the sparse vector technique of Algorithm 4",
			Params:    []Param{failure("1/T", onlyDerived("[Sajed 2019, Corollary A.1.3]"))},
			New: func(s Setting, p Params) (policy.Policy, error) {
				epsilon, err := pure(s.Budget)
				if err != nil {
					return nil, err
				}
				return built(policy.NewDPSE2(s.Arms, epsilon, p.or("beta", 1/float64(s.Horizon))))
			},
		},
		{
			Name: "dp-se-2-modified", Title: "modified DP-SE 2", Family: "successive-elimination",
			Private:   true,
			Budgets:   []string{"epsilon", "rho"},
			Guarantee: pureGuarantee,
			Regret: "none proved: an epoch drops the worst arm, not surely all of its like " +
				"[Sajed 2019, §A.2]",
			Source: "[Sajed 2019, §A.2, Algorithm 10] with 2h_r for 10h_r",
			Params: []Param{failure("1/T", Proof{})},
			New: func(s Setting, p Params) (policy.Policy, error) {
				epsilon, err := pure(s.Budget)
				if err != nil {
					return nil, err
				}
				return built(policy.NewDPSE2Modified(s.Arms, epsilon, p.or("beta", 1/float64(s.Horizon))))
			},
		},
		{
			Name: "dp-ucb", Title: "DP-UCB", Family: "ucb", Newer: "dp-imed", Private: true, Budgets: []string{"epsilon", "rho"},
			Guarantee: pureGuarantee,
			Finite:    true,
			Regret: "O(Σ log²T log(KT/β)/(εΔ_a)) with probability 1−β (Mishra and Thakurta " +
				"2015, in [Sajed 2019, §3.4])",
			Source: "[Sajed 2019, Algorithm 6] on the binary tree of Algorithm 5",
			Params: []Param{failure("1/T", always("[Sajed 2019, §3.4]")), counterParam(), logsParam()},
			New:    newDPUCB,
			vary:   varyDPUCB,
		},
		{
			Name: "dp-ucb-thesis", Title: "DP-UCB, the thesis' index", Family: "ucb", Newer: "dp-imed", Private: true,
			Budgets:   []string{"epsilon", "rho"},
			Guarantee: pureGuarantee,
			Regret:    "8√8 K log^2.5 T/ε + 4ΣΔ_a + Σ 4 log T/Δ_a, stated without a proof [Azize 2024, §5.1]",
			Source:    "[Azize 2024, §5.1] on the binary tree of [Sajed 2019, Algorithm 5]",
			New: func(s Setting, p Params) (policy.Policy, error) {
				epsilon, err := pure(s.Budget)
				if err != nil {
					return nil, err
				}
				return built(policy.NewDPUCBThesis(s.Arms, s.Horizon, epsilon))
			},
		},
		{
			Name: "dp-ucb-anytime", Title: "DP-UCB, unknown T", Family: "ucb", Private: true,
			Budgets: []string{"epsilon", "rho"}, Anytime: true,
			Guarantee: pureGuarantee,
			Finite:    true,
			Regret: "Σ Δ_a (min(n_a(T), T) + C_α n_1^{1−α}), which is O(Σ log T/Δ_a + K log T/ε) " +
				"(proof: policy.DPUCBDoubling)",
			Source:   "ours: UCB on sums that are released when an arm's plays have doubled",
			Gathered: Verdict{Proved: ofTail},
			Params: []Param{
				{Name: "alpha", Doc: "exponent α of the confidence: for a fixed t and a fixed number " +
					"of the arm's samples, its index is below its mean with probability at most " +
					"t^−α", Default: 1.5, Lo: 1, Hi: 100, HiIn: true,
					Proof: always("proof: policy.DPUCBDoubling")},
				{Name: "first", Doc: "rounds of an arm's first batch", Integer: true,
					Default: math.NaN(), DefaultDoc: "⌈16/ε⌉, 1 without privacy", Lo: 1, LoIn: true,
					Hi: maxRounds, HiIn: true, Proof: always("proof: policy.DPUCBDoubling")},
				{Name: "counter", Doc: "doubling: each arm's rewards are released once, when their " +
					"number has doubled; hybrid: running sums after every reward, on the counter of " +
					"Chan, Shi and Song 2010, in [Sajed 2019, Algorithm 6] with t for T",
					Choices: []string{"doubling", "hybrid"},
					Proof:   only("proof: policy.DPUCBDoubling", doublingCounter)},
				{Name: "beta", Doc: "with counter: hybrid, probability of failure β of the " +
					"confidence bounds", Default: 0.1, Lo: 0, Hi: 1,
					Proof: always("proof: policy.DPUCBDoubling")}, // of the other counter alone
			},
			New:  newDPUCBAnytime,
			vary: varyDPUCBAnytime,
		},
		{
			Name: "dp-klucb", Title: "DP-KLUCB", Family: "kl-ucb", Private: true,
			Budgets:    []string{"epsilon", "rho"},
			Anytime:    true,
			Continuous: true,
			Guarantee:  pureGuarantee,
			Regret: "αγ Σ Δ_a log T/d_ε(μ_a, μ*) + o(log T), Bernoulli rewards " +
				"(arXiv:2505.05613, proof: policy.DPIMED); no consistent ε-DP policy is below the sum",
			Gathered: Verdict{Refused: ofOne + "dp-klucb-j"},
			Source:   "Azize et al. 2025, arXiv:2505.05613; the integers of its schedule are ours",
			Params:   geometric(1.5, "⌈16/ε⌉, 1 without privacy", always("proof: policy.DPIMED")),
			New:      accumulating(policy.NewDPKLUCB),
		},
		{
			Name: "dp-imed", Title: "DP-IMED", Family: "imed", Private: true,
			Budgets:    []string{"epsilon", "rho"},
			Anytime:    true,
			Continuous: true,
			Guarantee:  pureGuarantee,
			Regret: "αγ Σ Δ_a log T/d_ε(μ_a, μ*) + o(log T), Bernoulli rewards " +
				"(arXiv:2505.05613, proof: policy.DPIMED); no consistent ε-DP policy is below the sum",
			Gathered: Verdict{Refused: ofOne + "dp-imed-j"},
			Source:   "Azize et al. 2025, arXiv:2505.05613; the integers of its schedule are ours",
			Params:   imedParams(),
			New:      newDPIMED,
		},
		{
			Name: "dp-klucb-j", Title: "DP-KLUCB, noise-aware", Family: "kl-ucb", Private: true,
			Budgets: []string{"epsilon", "rho"}, Anytime: true,
			Continuous: true,
			Guarantee:  pureGuarantee,
			Regret:     "none printed; its index J tends to that of DP-KLUCB",
			Gathered:   Verdict{Proved: ofCounted},
			Source:     "ours: arXiv:2505.05613 with J_{m/n} (divergence.DEpsNoisy) for d_ε",
			Params:     geometric(1.5, "⌈8/ε⌉, 1 without privacy", Proof{}),
			New:        accumulating(policy.NewDPKLUCBJ),
		},
		{
			Name: "dp-imed-j", Title: "DP-IMED, noise-aware", Family: "imed", Private: true,
			Budgets: []string{"epsilon", "rho"}, Anytime: true,
			Continuous: true,
			Guarantee:  pureGuarantee,
			Regret:     "none printed; its divergence J tends to that of DP-IMED",
			Gathered:   Verdict{Proved: ofCounted},
			Source:     "ours: arXiv:2505.05613 with J_{m/n} (divergence.DEpsNoisy) for d_ε",
			Params:     geometric(1.5, "⌈8/ε⌉, 1 without privacy", Proof{}),
			New:        accumulating(policy.NewDPIMEDJ),
		},
		{
			Name: "zcdp-imed", Title: "zCDP-IMED", Family: "imed", Private: true,
			Budgets: []string{"rho", "epsilon,delta", "alpha,epsilon"}, Anytime: true,
			Guarantee: "ρ-zCDP (Interactive), rewards in range; (ε,δ)-DP or (α,ε)-RDP by calibration",
			Regret: "αγ Σ Δ_a log T/kl(μ_a, μ*) + o(log T), the noise in the second term alone " +
				"(proof: policy.ZCDPIMED)",
			Gathered: Verdict{Proved: "normal noise of any variance, as the release says it"},
			Source:   "ours: DP-IMED with normal noise and its divergence J (divergence.KLNoisy)",
			Params: geometric(1.5, "⌈14σ⌉, σ that of the noise, 1 without privacy",
				always("proof: policy.ZCDPIMED")),
			New: func(s Setting, p Params) (policy.Policy, error) {
				q, err := policy.NewZCDPIMED(s.Arms, s.Budget, p["alpha"], int(p.or("first", 0)))
				if err == nil {
					err = q.SetCaution(p["caution"])
				}
				return built(q, err)
			},
		},
		{
			Name: "dp-window-klucb", Title: "DP-KLUCB, sliding window", Family: "kl-ucb", Private: true,
			Budgets: []string{"epsilon", "rho"}, Anytime: true,
			Continuous: true,
			Guarantee:  pureGuarantee,
			Gathered:   Verdict{Proved: ofCounted},
			Regret:     "none printed; for arms whose means change",
			Source:     "ours: dp-klucb-j on what was released in the last rounds (Garivier and Moulines 2011)",
			Params: []Param{
				{Name: "window", Doc: "rounds after which a release is forgotten", Integer: true,
					Default: math.NaN(), DefaultDoc: "256 shortest batches of each arm, 20 000 at least",
					Lo: 2, LoIn: true, Hi: maxRounds, HiIn: true},
				{Name: "first", Doc: "rounds of an arm's shortest batch", Integer: true,
					Default: math.NaN(), DefaultDoc: "⌈8/ε⌉, 1 without privacy", Lo: 1, LoIn: true,
					Hi:   maxRounds,
					HiIn: true},
			},
			New: func(s Setting, p Params) (policy.Policy, error) {
				epsilon, err := pure(s.Budget)
				if err != nil {
					return nil, err
				}
				first := int(p.or("first", 0))
				window := int(p.or("window", 0))
				if window == 0 {
					shortest := float64(max(1, first))
					if first == 0 {
						shortest = max(1, math.Ceil(8/epsilon))
					}
					window = int(min(maxRounds, max(2e4, 256*shortest*float64(s.Arms))))
				}
				return built(policy.NewDPWindowKLUCB(s.Arms, epsilon, window, first))
			},
		},
		{
			Name: "lazy-dp-ts", Title: "Lazy-DP-TS", Family: "thompson", Newer: "dp-ts", Private: true,
			Budgets: []string{"epsilon", "rho"}, Anytime: true,
			Continuous: true,
			Guarantee:  pureGuarantee,
			Finite:     true,
			Regret:     "Σ O(log T/min(ε, Δ_a)) (Hu and Hegde 2022)",
			Gathered:   Verdict{Refused: ofOne + "adap-klucb or dp-klucb-j"},
			Source:     "Hu and Hegde 2022; constants second-hand",
			New: func(s Setting, _ Params) (policy.Policy, error) {
				epsilon, err := pure(s.Budget)
				if err != nil {
					return nil, err
				}
				return built(policy.NewLazyDPTS(s.Arms, epsilon, s.Coins))
			},
		},
		{
			Name: "dp-ts", Title: "DP-TS", Family: "thompson", Private: true,
			Budgets: []string{"epsilon", "rho", "epsilon,delta", "alpha,epsilon"}, Anytime: true,
			Continuous: true,
			Guarantee:  sumsGuarantee,
			Finite:     true,
			Regret: "O(√(KT log(KT)/f) + (K/f)σ log^1.5(KT) log T), f the floor, σ the noise's deviation, in " +
				"expectation (proof: policy.DPTS)",
			Gathered: Verdict{Proved: "Chernoff's bound for any number of Laplace noises, which the release " +
				"counts, and for normal noise of any variance"},
			Source: "ours: Thompson sampling on releases, inside of intervals that are proved (policy.DPTS)",
			Params: []Param{
				{Name: "spread", Doc: "α, what multiplies the deviation of draws: small ones explore less, and " +
					"their regret has heavier tails", Default: math.NaN(),
					DefaultDoc: "(2/K)^min(1/4, 20/log² t)", Lo: 0, Hi: 100, HiIn: true,
					Proof: always("proof: policy.DPTS")},
				{Name: "floor", Doc: "f: each arm that is not ruled out has this share of an even one at least",
					Default: 0.002, Lo: 0, LoIn: true, Hi: 0.05, HiIn: true,
					Proof: Proof{Theorem: "proof: policy.DPTS", Above: 0}},
				{Name: "first", Doc: "rounds of an arm's first batch", Integer: true, Default: math.NaN(),
					DefaultDoc: "40 standard deviations of the noise, at least 10", Lo: 1, LoIn: true,
					Hi: maxRounds, HiIn: true, Proof: Proof{Theorem: "proof: policy.DPTS", Above: 9}},
			},
			New: func(s Setting, p Params) (policy.Policy, error) {
				q, err := policy.NewDPTS(s.Arms, s.Budget, int(p.or("first", 0)))
				if err == nil {
					err = q.SetFloor(p["floor"])
				}
				if alpha, ok := p["spread"]; ok && err == nil {
					err = q.SetSpread(alpha)
				}
				return built(q, err)
			},
		},
		{
			Name: "split", Title: "A/B test in joint batches", Private: true,
			Budgets: []string{"epsilon", "rho", "epsilon,delta", "alpha,epsilon"}, Anytime: true,
			Guarantee: "ε-DP, ρ-zCDP, (ε,δ)-DP or (α,ε)-RDP (Interactive, Table and View), as " +
				"the budget is, rewards in range",
			Finite:   true,
			Regret:   "T Σ q_a Δ_a, where q_a are the shares: they stay what they are (policy.Split)",
			Gathered: Verdict{Proved: "it plays its shares whatever is released, so that any noise will do"},
			Source:   "ours: fixed shares, and batches for a verdict that may be looked at always (policy.Split)",
			Params: []Param{
				{Name: "effect", Doc: "difference of means that batches are planned for, of rewards mapped to " +
					"[0,1]; live it is a key of the experiment", Default: math.NaN(), DefaultDoc: "none",
					Lo: 0, Hi: 1, HiIn: true, Proof: always("policy.Split")},
				{Name: "rate", Doc: "guess of the mean of rewards that are 0 or 1, which batches are planned " +
					"from, mapped to [0,1]; live it is a key of the experiment", Default: math.NaN(),
					DefaultDoc: "none: the largest variance there is", Lo: 0, Hi: 1, Proof: always("policy.Split")},
			},
			New: func(s Setting, p Params) (policy.Policy, error) {
				shares := s.Shares
				if shares == nil {
					shares = slices.Repeat([]float64{1 / float64(max(1, s.Arms))}, s.Arms)
				}
				split, err := policy.NewSplit(shares, s.Budget, p.or("effect", 0), p.or("rate", 0))
				if err == nil && s.Cells > 1 {
					err = split.SetCells(s.Cells)
				}
				return built(split, err)
			},
		},
		{
			Name: "ucb", Title: "UCB", Anytime: true, Guarantee: noGuarantee,
			Regret: "lim Reg_T/log T ≤ Σ 2/Δ_a [Azize 2024, Theorem 2.24]",
			Source: "[Azize 2024, (2.12)], f(t) = 1 + t log²t",
			New:    unbounded(policy.NewUCB, func(p *policy.UCB) { p.Unbounded = true }),
		},
		{
			Name: "ucb-2logt", Title: "UCB, 2 log t", Family: "ucb", Anytime: true, Guarantee: noGuarantee,
			Finite: true,
			Regret: "Σ (8 log T/Δ_a + 1.42 Δ_a) [Sajed 2019, (2.22)]",
			Source: "[Sajed 2019, Algorithm 1]",
			New:    unbounded(policy.NewUCBLog, func(p *policy.UCB) { p.Unbounded = true }),
		},
		{
			Name: "kl-ucb", Title: "KL-UCB", Anytime: true, Guarantee: noGuarantee,
			Regret: "lim Reg_T/log T ≤ Σ Δ_a/kl(μ_a, μ*), Bernoulli rewards [Azize 2024, Theorem 2.26]",
			Source: "[Azize 2024, (2.14)]",
			New:    unbounded(policy.NewKLUCB, func(p *policy.KLUCB) { p.Unbounded = true }),
		},
		{
			Name: "imed", Title: "IMED", Anytime: true, Guarantee: noGuarantee,
			Regret: "lim Reg_T/log T ≤ Σ Δ_a/kl(μ_a, μ*), Bernoulli rewards (Honda and Takemura 2015)",
			Source: "Honda and Takemura 2015, with kl",
			New:    unbounded(policy.NewIMED, func(p *policy.IMED) { p.Unbounded = true }),
		},
		{
			Name: "thompson", Title: "Thompson sampling", Anytime: true, Guarantee: noGuarantee,
			Regret: "beta: lim Reg_T/log T ≤ Σ Δ_a/kl(μ_a, μ*), Bernoulli rewards; gaussian: " +
				"O(√(KT log K)) (Agrawal and Goyal 2013)",
			Source: "Agrawal and Goyal 2013; Kaufmann, Korda and Munos 2012",
			Params: []Param{{Name: "posterior", Doc: "family of the posteriors; beta counts " +
				"rewards other than 0 and 1 as fractions of successes",
				Choices: []string{"beta", "gaussian"}, Proof: always("Agrawal and Goyal 2013")}},
			New: func(s Setting, p Params) (policy.Policy, error) {
				build := policy.NewThompson
				if p["posterior"] == 1 {
					build = policy.NewThompsonGaussian
				}
				t, err := build(s.Arms, s.Coins)
				if err == nil {
					t.Unbounded = s.Unclipped
				}
				return built(t, err)
			},
		},
		{
			Name: "successive-elimination", Title: "Successive elimination", Guarantee: noGuarantee,
			Finite: true,
			Regret: "O(min(√(KT log T), Σ log T/Δ_a)) [Sajed 2019, Theorem 2.1.5]",
			Source: "[Sajed 2019, Algorithm 2] (Even-Dar, Mannor and Mansour 2002); with beta, the radius " +
				"√(log(4Kn²/β)/2n), which needs no T",
			Params: []Param{failure("none: the radius √(2 log T/n) of [Sajed 2019]",
				onlyDerived("[Sajed 2019, Theorem 2.1.5]"))},
			New: func(s Setting, params Params) (policy.Policy, error) {
				build := func() (*policy.SuccessiveElimination, error) {
					return policy.NewSuccessiveElimination(s.Arms, s.Horizon)
				}
				if beta, ok := params["beta"]; ok {
					build = func() (*policy.SuccessiveElimination, error) {
						return policy.NewSuccessiveEliminationAnytime(s.Arms, beta)
					}
				}
				p, err := build()
				if err == nil {
					p.Unbounded = s.Unclipped
				}
				return built(p, err)
			},
		},
		{
			Name: "explore-then-commit", Title: "Explore then commit", Guarantee: noGuarantee,
			Finite: true,
			Regret: "O(T^⅔ (K log T)^⅓) at the default (Slivkins 2019, Theorem 1.5)",
			Source: "Lattimore and Szepesvári 2020, Algorithm 1",
			Params: []Param{{Name: "rounds", Doc: "rounds of each arm before the commitment",
				Integer: true, Default: math.NaN(),
				Proof:      onlyDerived("Slivkins 2019, Theorem 1.5"),
				DefaultDoc: "⌈(T/K)^⅔ (log T)^⅓⌉, at most T/K", Lo: 1, LoIn: true, Hi: maxRounds, HiIn: true}},
			New: func(s Setting, params Params) (policy.Policy, error) {
				rounds, ok := params["rounds"]
				if !ok {
					m, err := policy.ExploreRounds(s.Arms, s.Horizon)
					if err != nil {
						return nil, err
					}
					rounds = float64(m)
				}
				return built(policy.NewExploreThenCommit(s.Arms, int(rounds)))
			},
		},
	}
}

// maxRounds is the largest number of rounds that is a parameter: exact as a double, and in
// an int of 32 bits.
const maxRounds = min(1<<53, math.MaxInt/4)

// or is a parameter whose default is derived.
func (p Params) or(name string, derived float64) float64 {
	if x, ok := p[name]; ok {
		return x
	}
	return derived
}

func alpha(theorem string) Param {
	return Param{Name: "alpha", Doc: "exploration parameter α (β in the print of the index)",
		Default: 3.1, Lo: 0, Hi: math.Inf(1),
		Proof: Proof{Theorem: theorem, Above: 3}}
}

func failure(byDefault string, p Proof) Param {
	return Param{Name: "beta", Doc: "probability of failure β of the confidence bounds",
		Default: math.NaN(), DefaultDoc: byDefault, Lo: 0, Hi: 1, Proof: p}
}

// ratio is the growth of episodes, where the source doubles.
func ratio(theorem string) Param {
	return Param{Name: "ratio", Doc: "ratio by which an arm's plays grow in each of its episodes",
		Default: math.NaN(), DefaultDoc: "2",
		Lo: 1, Hi: 1e6, HiIn: true, Proof: onlyDerived(theorem, 2)}
}

// geometric are the parameters of DP-KLUCB and its like.
func geometric(alpha float64, first string, p Proof) []Param {
	return []Param{
		{Name: "alpha", Doc: "ratio α by which an arm's plays grow in each of its batches",
			Default: alpha, Lo: 1, Hi: 1e6, HiIn: true, Proof: p},
		{Name: "first", Doc: "rounds of an arm's first batch; 1 is the literal schedule, whose " +
			"regret has heavy tails", Integer: true,
			Default: math.NaN(), DefaultDoc: first, Lo: 1, LoIn: true, Hi: maxRounds, HiIn: true, Proof: p},
		{Name: "caution", Doc: "γ, a factor of the index's logarithm: above 1 bad runs are rarer (their " +
			"probability falls with the power γ of what they lose), and the regret is γ times as " +
			"large in the long run; 1 is that of arXiv:2505.05613", Default: 1, Lo: 1, LoIn: true,
			Hi: 100, HiIn: true, Proof: p},
	}
}

// imedCaution is DP-IMED's γ. With caution 1 the other defaults are those that are best with it.
const imedCaution = 1.25

func imedParams() []Param {
	all := geometric(math.NaN(), "⌈24/ε⌉, ⌈16/ε⌉ with caution: 1, 1 without privacy",
		always("proof: policy.DPIMED"))
	all[0].DefaultDoc = "1.5, 2 with caution: 1"
	all[2].Default = imedCaution
	return all
}

func newDPIMED(s Setting, p Params) (policy.Policy, error) {
	epsilon, err := pure(s.Budget)
	if err != nil {
		return nil, err
	}
	alpha, warm := 1.5, 24.0
	if p["caution"] == 1 {
		alpha, warm = 2, 16
	}
	first := math.Min(max(1, math.Ceil(warm/epsilon)), maxRounds)
	q, err := policy.NewDPIMED(s.Arms, epsilon, p.or("alpha", alpha), int(p.or("first", first)))
	if err == nil {
		err = q.SetCaution(p["caution"])
	}
	return built(q, err)
}

func printedHalf(theorem string) Param {
	return Param{Name: "printed_half", Flag: true, Proof: only(theorem, 0),
		Doc: "count an arm's first episode as ½ sample, as the printed ½N does: twice the noise, a wider bonus"}
}

// pure is the ε of a pure policy that meets the budget: ρ-zCDP is met by ε = √(2ρ) [Azize 2024,
// Proposition 2.6] and by ε = ρ (D_α ≤ D_∞ ≤ ε), which is larger from ρ = 2; none by ε = ∞.
func pure(b privacy.Budget) (float64, error) {
	switch b := b.(type) {
	case nil, privacy.None:
		return math.Inf(1), nil
	case privacy.Pure:
		return b.Epsilon, nil
	case privacy.ZCDP:
		return max(math.Sqrt(2*b.Rho), b.Rho), nil
	default:
		return 0, fmt.Errorf("%w: %s for a policy of pure differential privacy", ErrBudget, b)
	}
}

// built turns a constructor's result into an interface without a typed nil.
func built[P policy.Policy](p P, err error) (policy.Policy, error) {
	if err != nil {
		return nil, err
	}
	return p, nil
}

// unbounded builds a policy without privacy, which is told where rewards are not clipped.
func unbounded[P policy.Policy](build func(arms int) (P, error), tell func(P)) func(Setting,
	Params) (policy.Policy, error) {
	return func(s Setting, _ Params) (policy.Policy, error) {
		p, err := build(s.Arms)
		if err == nil && s.Unclipped {
			tell(p)
		}
		return built(p, err)
	}
}

func episodic[P interface {
	policy.Policy
	PrintedHalf()
	SetRatio(float64) error
}](p P, err error, params Params) (policy.Policy, error) {
	if err != nil {
		return nil, err
	}
	if params["printed_half"] == 1 {
		p.PrintedHalf()
	}
	if x, ok := params["ratio"]; ok {
		if err := p.SetRatio(x); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// accumulating builds DP-KLUCB and its like.
func accumulating[P interface {
	policy.Policy
	SetCaution(float64) error
}](build func(arms int, epsilon, alpha float64, first int) (P, error)) func(Setting,
	Params) (policy.Policy, error) {
	return func(s Setting, p Params) (policy.Policy, error) {
		epsilon, err := pure(s.Budget)
		if err != nil {
			return nil, err
		}
		q, err := build(s.Arms, epsilon, p["alpha"], int(p.or("first", 0)))
		if err == nil {
			err = q.SetCaution(p["caution"])
		}
		return built(q, err)
	}
}
