package catalog

import (
	"errors"
	"fmt"
	"math"

	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/policy/identify"
	"github.com/sotto-dp/sotto/privacy"
)

// BanditIdentify is the kind of bandit of policies that look for the best of K arms and stop: a value
// of Entry.Bandit. They have a table of their own (IdentifyPolicies), as one name, dp-se, is in both.
const BanditIdentify = "identify"

// An IdentifySetting is what everybody may know of a trial before the first round.
type IdentifySetting struct {
	Arms   int
	Risk   float64 // δ: the probability of a wrong answer that is allowed, above 0 and below 1
	Budget privacy.Budget
	// Coins are for the parameter coin alone.
	Coins policy.Coins
	// Vectors are those x of the arms, for entries that say what they make of them; nil is none, and then these
	// play arms as others do. The means are ⟨θ,x⟩ for one θ, or if Logistic 1/(1+e^{−⟨θ,x⟩}).
	Vectors  [][]float64
	Logistic bool
	// Contexts are as in Setting.
	Contexts int
}

const (
	transcriptGuarantee = "ε-DP of " + identify.Output + "; rewards in range"
	lemma518            = "[Azize 2024, Lemma 5.18]"
	lemma521            = "[Azize 2024, Lemma 5.21]"
)

// The choices of some parameters.
const (
	logLeader     = iota // AdaP-TT's leader: its bonus has log n
	printedLeader        // or k_a
)

const (
	provedThreshold    = iota // of AdaP-TT and TTUCB
	publishedThreshold        // the program of [Azize et al. 2023] itself
)

const (
	epochMeans     = iota // of DP-SE
	publishedMeans        // the program of [Azize et al. 2023] itself
)

const (
	jointThreshold = iota // of DP-TT
	perArmThreshold
)

const (
	raceBest = iota // what DP-Race looks for
	raceTop
	raceThreshold
)

// IdentifyPolicies returns the policies that look for the best arm, private ones first. Rewards are
// in [0,1]. Regret says how many samples a policy takes in the mean, Correct what is proved of its
// answer. Those that are not private run at budget none.
func IdentifyPolicies() []Entry {
	private := func(e Entry) Entry {
		e.Bandit, e.Private, e.Guarantee, e.Anytime = BanditIdentify, true, transcriptGuarantee, true
		if e.Budgets == nil {
			e.Budgets = []string{"epsilon"}
		} else {
			e.Guarantee = "ε-DP, ρ-zCDP, (ε,δ)-DP or (α,ε)-RDP, as the budget is, of " + identify.Output +
				"; rewards in range"
		}
		if e.PublicContexts {
			e.Guarantee += publicContexts
		}
		return e
	}
	open := func(e Entry) Entry {
		e.Bandit, e.Guarantee, e.Anytime = BanditIdentify, noGuarantee, true
		return e
	}
	all := []string{"epsilon", "rho", "epsilon,delta", "alpha,epsilon", "mu"}
	const plays = "proof: identify.DPSED"
	return []Entry{
		private(Entry{
			Name: "dp-sed", Title: "DP-SED", Family: "se", Continuous: true, Discrete: true,
			Budgets: all,
			Finite:  true,
			Regret: "O(log(K/δ)/Δ_a² + (σ√log(K/δ) + b log(K/δ))/Δ_a) of each arm with probability 1 − 2δ, up to log log, " +
				"σ the noise's deviation and b the scale of Laplace noises (proof: identify.DPSED)",
			Gathered: Verdict{Proved: "normal noise, or Laplace noises that the release counts (identify.DPSED)"},
			Correct:  "proof: identify.DPSED",
			Source:   "ours: elimination on differences, noise and rewards in one exponent",
			Params: []Param{
				{Name: "gap", Proof: onlyDerived(plays), Doc: "the gap Δ that is expected between the best arm and the next: fewer " +
					"plays if it is right, more if it is not, and the risk stays", Default: math.NaN(),
					DefaultDoc: "not known", Lo: 0, Hi: 1, HiIn: true},
				{Name: "best", Proof: onlyDerived(plays), Doc: "the best arm's mean that is expected, with gap", Default: math.NaN(),
					DefaultDoc: "½ + Δ/2", Lo: 0, Hi: 1, HiIn: true},
				{Name: "centred", Proof: only(plays, 0), Doc: "with gap: guard against a gap that is half or twice as large",
					Flag: true},
				{Name: "first", Proof: always(plays), Doc: "plays of each arm in the first batch", Integer: true,
					Default: math.NaN(), DefaultDoc: "⌈24/ε⌉, or as gap says", Lo: 1, LoIn: true,
					Hi: min(1<<50, math.MaxInt/4)},
			},
			NewIdentify: func(s IdentifySetting, p Params) (identify.Identifier, error) {
				return identifier(identify.NewDPSED(s.Arms, s.Budget, s.Risk, identify.SEDPlan{
					Gap: p.or("gap", 0), Best: p.or("best", 0), Centred: p["centred"] == 1,
					First: int(p.or("first", 0))}))
			},
		}),
		private(Entry{
			Name: "dp-tt", Title: "DP-TT", Family: "ttucb", Continuous: true, Discrete: true,
			Regret: "none proved with these thresholds; 2(1+η)T*_{ε,β} log(1/δ) as δ → 0, with " +
				"its authors' threshold, Bernoulli arms of distinct means (arXiv:2510.17348), " +
				"whose constants are not known",
			Gathered: Verdict{Proved: "Laplace noises that the release counts (identify.JointThreshold)"},
			Correct:  "proof: identify.JointThreshold",
			Source:   "Jourdan and Azize 2025 (arXiv:2510.17348), in the frame of [Azize 2024, Algorithm 10]",
			Params: []Param{betaParam(Proof{}), exponentParam(Proof{}),
				{Name: "eta", Doc: "growth 1+η of an arm's phases", Default: 1, Lo: 0, Hi: 1e6, HiIn: true},
				{Name: "first", Doc: "plays of an arm's first phase; 1 is the literal rule, " +
					"whose stopping times have heavy tails", Integer: true, Default: math.NaN(),
					DefaultDoc: "⌈24/ε⌉", Lo: 1, LoIn: true, Hi: min(1<<50, math.MaxInt/4)},
				{Name: "caution", Doc: "γ of the challenger's γ log N_a: from 2 on runs in which an " +
					"unlucky best arm is not looked at again are rare; 1 is arXiv:2510.17348's",
					Default: 3, Lo: 1, LoIn: true, Hi: 100, HiIn: true},
				{Name: "threshold", Doc: "joint: one for both arms, with the noise-aware " +
					"divergence J; per-arm: of the authors' shape, with d_ε",
					Choices: []string{"joint", "per-arm"}},
				{Name: "forget", Doc: "a mean rests on the last phase only, with d_ε", Flag: true},
				{Name: "phases", Doc: "most phases of an arm, known to the joint threshold; a " +
					"rule that has used them up never stops", Integer: true, Default: math.NaN(),
					DefaultDoc: "no limit", Lo: 1, LoIn: true, Hi: 1e6},
			},
			NewIdentify: newDPTT,
			vary: func(e *Entry, p Params) {
				if p["threshold"] == perArmThreshold {
					e.Correct = "proof: identify.PerArmThreshold"
				}
				if p["forget"] == 1 && p["threshold"] != perArmThreshold {
					e.Gathered = Verdict{Refused: "with forget its threshold is for one Laplace noise a " +
						"release: take forget: false"}
				}
			},
		}),
		private(Entry{
			Name: "adap-tt", Title: "AdaP-TT", Family: "ttucb",
			Regret: "4T*_{KL,β}(1 + √(1 + Δ_max²/(2σ⁴ε²))) log(1/δ) as δ → 0, distinct means " +
				"[Azize 2024, Theorem 5.20]",
			Gathered: Verdict{Proved: ofTail},
			Correct:  lemma518,
			Source:   "[Azize 2024, Algorithm 10, (5.9) and (5.11)]; [Azize et al. 2023, Algorithm 2]",
			Params: append(adaptiveParams("[Azize 2024, Theorem 5.20]"),
				Param{Name: "threshold", Choices: []string{"proved", "published"},
					Proof: only("[Azize 2024, Theorem 5.20]", provedThreshold),
					Doc: "published, with sigma: 1: the program published with [Azize et al. " +
						"2023], which has no " +
						"proof (identify.PublishedAdaPTT); it tosses a coin and clips no means"},
				Param{Name: "reported", Flag: true, Proof: only("[Azize 2024, Theorem 5.20]", 0),
					Doc: "the stopping time as that program reports it, without the plays of " +
						"open phases: to compare with figures only"}),
			NewIdentify: func(s IdentifySetting, p Params) (identify.Identifier, error) {
				if p["threshold"] == publishedThreshold {
					return newPublished(s, p, func() (identify.Identifier, error) {
						rule, err := identify.NewPublishedAdaPTT(s.Arms, s.Budget, s.Risk, s.Coins,
							identify.WithBeta(p["beta"]))
						if err == nil && p["reported"] == 1 {
							return identify.PublishedTime{PublishedAdaPTT: rule}, nil
						}
						return identifier(rule, err)
					})
				}
				if p["reported"] == 1 {
					return nil, errors.New("parameter reported is true, must be false without " +
						"threshold: published")
				}
				options, err := adaptiveOptions(s, p)
				if err != nil {
					return nil, err
				}
				return identifier(identify.NewAdaPTT(s.Arms, s.Budget, s.Risk, options...))
			},
			vary: varyAdaptive,
		}),
		private(Entry{
			Name: "adap-tt-star", Title: "AdaP-TT*", Family: "ttucb",
			Regret: "12T*_{ε,β}g₂/σ² or 4T*_{KL,β}g₁ log(1/δ) as δ → 0, distinct means [Azize " +
				"2024, Theorem 5.23]",
			Gathered: Verdict{Proved: ofTail},
			Correct:  lemma521,
			Source:   "[Azize 2024, Algorithm 10, (5.12) and (5.14)]",
			Params:   adaptiveParams("[Azize 2024, Theorem 5.23]"),
			NewIdentify: func(s IdentifySetting, p Params) (identify.Identifier, error) {
				options, err := adaptiveOptions(s, p)
				if err != nil {
					return nil, err
				}
				return identifier(identify.NewAdaPTTStar(s.Arms, s.Budget, s.Risk, options...))
			},
			vary: varyAdaptive,
		}),
		private(Entry{
			Name: "dp-se", Title: "DP-SE", Family: "se",
			Finite:   true,
			Regret:   "O(Σ Δ_a⁻² + Σ (εΔ_a)⁻¹), up to logarithms [Azize 2024, §5.4.3]",
			Gathered: Verdict{Proved: ofTail},
			Correct:  "proof: identify.NewDPSE",
			Source:   "[Sajed 2019, Algorithm 9], until one arm is left",
			Params: []Param{{Name: "means", Choices: []string{"epoch", "published"},
				Proof: only("[Azize 2024, §5.4.3]", epochMeans),
				Doc: "published: the program published with [Azize et al. 2023], which divides the sum of an " +
					"epoch by all plays so far (identify.PublishedDPSE)"}},
			NewIdentify: func(s IdentifySetting, p Params) (identify.Identifier, error) {
				if p["means"] == publishedMeans {
					if s.Coins == nil {
						return nil, fmt.Errorf("parameter means is published: %w", errCoins)
					}
					return identifier(identify.NewPublishedDPSE(s.Arms, s.Budget, s.Risk, s.Coins))
				}
				return identifier(identify.NewDPSE(s.Arms, s.Budget, s.Risk))
			},
			vary: func(e *Entry, p Params) {
				if p["means"] == publishedMeans {
					unproved(e)
				}
			},
		}),
		race(private(Entry{
			Name: "dp-race", Title: "DP-Race", Family: "se", Budgets: all,
			Finite: true,
			Regret: "O(log(K/δ)/Δ_a² + τ(log(K/δ))/Δ_a) of each arm with probability 1 − δ, up to log log, " +
				"τ the tail of a release's noise (proof: identify.DPRace)",
			AnyTail: true,
			Correct: "proof: identify.DPRace",
			Source: "ours: elimination on disjoint batches, with intervals from the tail of the noise; " +
				"Kalyanakrishnan and Stone 2010 of k arms, without privacy",
		})),
		race(private(Entry{
			Name: "dp-lin-race", Title: "DP-Race, linear means", Family: "se", Budgets: all, Vectors: MeansLinear,
			Finite: true,
			Regret: "O(G log(K/δ)/Δ_a² + Gsτ(log(K/δ))/Δ_a) of all arms until arm a is decided, with probability " +
				"1 − δ, up to log log, G ≥ r that of the designs, r the rank of the vectors and " +
				"s ≤ r(r+1)/2 (proof: identify.DPRace)",
			AnyTail: true,
			Correct: "proof: identify.DPRace",
			Source: "ours: DP-Race on designs; Soare, Lazaric and Munos 2014 and Fiez, Jain, Jamieson and Ratliff 2019, " +
				"without privacy",
		})),
		race(private(Entry{
			Name: "dp-glm-race", Title: "DP-Race, logistic means", Family: "se", Budgets: all, Vectors: MeansLogistic,
			Finite: true,
			Regret: "O(r³ log(K/δ)/(κΔ_a)² + r²τ(log(K/δ))/(κΔ_a)) of all arms until arm a is decided, with probability " +
				"1 − δ, up to log log, r the rank of the vectors and κ = σ'(B) (proof: identify.DPRace)",
			AnyTail: true,
			Correct: "proof: identify.DPRace",
			Source:  "ours: DP-Race on spanners (Awerbuch and Kleinberg 2004); Kazerouni and Wein 2021, without privacy",
		})),
		private(Entry{
			Name: "dp-halving", Title: "DP-Halving", Family: "se", Budgets: all, Goal: GoalBudget,
			Finite: true,
			Regret: "plays, whatever the risk; the answer is wrong with probability at most " +
				"Σ_r 3c_r exp(−x_r), √(t_r x_r) + 2τ(x_r) = t_r Δ_(j_r), " +
				"and P/6 where sums may be misread (proof: identify.DPHalving)",
			AnyTail: true,
			Source: "Karnin, Koren and Somekh 2013 on disjoint noisy batches, beside Chen, Karthik, Chee and Tan " +
				"(arXiv:2401.09073); the bound is ours",
			Params: halvingParams("proof: identify.DPHalving"), NewIdentify: newHalving("dp-halving", ""),
		}),
		private(Entry{
			Name: "dp-lin-halving", Title: "DP-Halving, linear means", Family: "se", Budgets: all, Goal: GoalBudget,
			Vectors: MeansLinear,
			Finite:  true,
			Regret: "plays, whatever the risk; the answer is wrong with probability at most " +
				"Σ_r (1+s)c_r exp(−x_r), √(x_r A/2) + Bτ(x_r) = Δ_(j_r), " +
				"and P/6 where sums may be misread (proof: identify.DPHalving)",
			AnyTail: true,
			Source: "ours: DP-Halving on designs; Yang and Tan 2022, without privacy, and Chen, Karthik, Chee and Tan " +
				"(arXiv:2401.09073) under ε-DP",
			Params: halvingParams("proof: identify.DPHalving"), NewIdentify: newHalving("dp-lin-halving", MeansLinear),
		}),
		private(Entry{
			Name: "dp-glm-halving", Title: "DP-Halving, logistic means", Family: "se", Budgets: all, Goal: GoalBudget,
			Vectors: MeansLogistic,
			Finite:  true,
			Regret: "plays, whatever the risk; the answer is wrong with probability at most " +
				"Σ_r 3q exp(−x_r), qρ(x_r) = κΔ_(h_r), " +
				"and P/6 where sums may be misread (proof: identify.DPHalving)",
			AnyTail: true,
			Source:  "ours: DP-Halving on spanners; Azizi, Kveton and Ghavamzadeh 2022, without privacy",
			Params:  append(halvingParams("proof: identify.DPHalving"), boundParam("proof: identify.DPHalving")), NewIdentify: newHalving("dp-glm-halving", MeansLogistic),
		}),
		race(private(Entry{
			Name: "dp-context-race", Title: "DP-Race in each context", Family: "se", Budgets: all, Contexts: true,
			PublicContexts: true,
			Regret: "O(log(CK/δ)/Δ_a² + τ(log(CK/δ))/Δ_a) plays of each of K arms of each of C contexts, with probability " +
				"1 − δ, up to log log, Δ_a within its context; the people who come until then are as many in a context as " +
				"its share has (proof: policy.PerContext)",
			Finite:  true,
			AnyTail: true,
			Correct: "proof: policy.PerContext",
			Source:  "ours: DP-Race on one bandit a context (Lattimore and Szepesvári 2020, §18.1)",
		})),
		private(Entry{
			Name: "dp-context-halving", Title: "DP-Halving in each context", Family: "se", Budgets: all, Goal: GoalBudget,
			Contexts: true, PublicContexts: true,
			Regret: "plays of each context, whatever the risk; some answer is wrong with probability at most the sum over " +
				"contexts of dp-halving's bound, and P/6 where sums may be misread; or missing after T people in all with at most " +
				"Σ_c e^{−q_c T/8} more, plays ≤ min_c q_c T/2, q_c the share of context c (proof: policy.PerContext)",
			Finite:  true,
			AnyTail: true,
			Source:  "ours: DP-Halving on one bandit a context (Lattimore and Szepesvári 2020, §18.1)",
			Params:  halvingParams("proof: policy.PerContext"), NewIdentify: newHalving("dp-context-halving", ""),
		}),
		open(Entry{
			Name: "ttucb", Title: "TTUCB",
			Regret:  "T*_{KL,β} log(1/δ) as δ → 0, distinct means [Azize 2024, §2.2.9]",
			Correct: "[Azize 2024, §2.2.9]",
			Source:  "Jourdan and Degenne 2023; [Azize 2024, Algorithm 3, (5.10)]",
			Params: []Param{betaParam(always("[Azize 2024, §2.2.9]")),
				sigmaParam(only("[Azize 2024, §2.2.9]", 0.5)),
				{Name: "threshold", Choices: []string{"proved", "published"},
					Proof: only("[Azize 2024, §2.2.9]", provedThreshold),
					Doc: "published, with sigma: 1: the program published with [Azize et al. " +
						"2023], which has no " +
						"proof (identify.PublishedTTUCB)"}},
			NewIdentify: func(s IdentifySetting, p Params) (identify.Identifier, error) {
				if p["threshold"] == publishedThreshold {
					return newPublished(s, p, func() (identify.Identifier, error) {
						return identifier(identify.NewPublishedTTUCB(s.Arms, s.Risk, s.Coins,
							identify.WithBeta(p["beta"])))
					})
				}
				return identifier(identify.NewTTUCB(s.Arms, s.Risk, identify.WithBeta(p["beta"]),
					identify.WithSigma(p["sigma"])))
			},
			vary: varyAdaptive,
		}),
		open(Entry{
			Name: "se", Title: "SE",
			Finite:  true,
			Regret:  "O(Σ Δ_a⁻² log(K/(δΔ_a)))",
			Correct: "Even-Dar, Mannor and Mansour 2002",
			Source:  "Even-Dar, Mannor and Mansour 2002",
			NewIdentify: func(s IdentifySetting, _ Params) (identify.Identifier, error) {
				return identifier(identify.NewSE(s.Arms, s.Risk))
			},
		}),
		open(Entry{
			Name: "lucb", Title: "LUCB",
			Finite:  true,
			Regret:  "O(Σ Δ_a⁻² log(1/δ)) in the mean (Kalyanakrishnan et al. 2012, Theorem 6)",
			Correct: "Kalyanakrishnan, Tewari, Auer and Stone 2012, Theorem 1",
			Source:  "Kalyanakrishnan, Tewari, Auer and Stone 2012",
			NewIdentify: func(s IdentifySetting, _ Params) (identify.Identifier, error) {
				return identifier(identify.NewLUCB(s.Arms, s.Risk))
			},
		}),
		open(Entry{
			Name: "track-and-stop", Title: "Track-and-Stop",
			Regret:  "T*_KL log(1/δ) as δ → 0 (Garivier and Kaufmann 2016)",
			Correct: "Kaufmann and Koolen 2021",
			Source:  "Garivier and Kaufmann 2016, D-tracking",
			Params: []Param{{Name: "family", Doc: "what rewards are taken for: bernoulli (right " +
				"for all in [0,1]) or gaussian, σ = 1/2",
				// T*_KL is that of Bernoulli laws
				Choices: []string{"bernoulli", "gaussian"}, Proof: only("Garivier and Kaufmann 2016", 0)}},
			NewIdentify: func(s IdentifySetting, p Params) (identify.Identifier, error) {
				return identifier(identify.NewTrackAndStop(s.Arms, s.Risk, identify.Family(p["family"])))
			},
		}),
	}
}

func betaParam(p Proof) Param {
	return Param{Name: "beta", Doc: "share β of its rounds that a leader is played", Default: 0.5,
		Lo: 0, Hi: 1, Proof: p}
}

func sigmaParam(p Proof) Param {
	return Param{Name: "sigma", Doc: "σ of σ-sub-Gaussian rewards: 0.5 is right for rewards in " +
		"[0,1], 1 is what [Azize et al. 2023] prints", Default: 0.5, Lo: 0, Hi: 1e6, HiIn: true, Proof: p}
}

func exponentParam(p Proof) Param {
	return Param{Name: "s", Doc: "exponent of the union bound over phases, Σ k^{−s}", Default: 2,
		Lo: 1, Hi: 1e3, HiIn: true, Proof: p}
}

// adaptiveParams are those of AdaP-TT and AdaP-TT*. The leader of the theorems' proofs has a bonus
// that grows with n.
func adaptiveParams(theorem string) []Param {
	return []Param{betaParam(always(theorem)), sigmaParam(only(theorem, 0.5)), exponentParam(always(theorem)),
		{Name: "leader", Doc: "the bonus of the leader's index: log n, or k_a as [Azize 2024] prints it, " +
			"with which a run may never stop", Choices: []string{"log", "printed"},
			Proof: only(theorem, logLeader)},
		{Name: "unclipped", Doc: "leave private means outside [0,1] as they are, as the sources " +
			"do: a run may then take for ever", Flag: true, Proof: only(theorem, 0)},
		{Name: "coin", Doc: "toss a coin of probability β for the leader, as the program " +
			"published with [Azize et al. 2023] does, instead of tracking", Flag: true,
			Proof: only(theorem, 0)},
	}
}

func adaptiveOptions(s IdentifySetting, p Params) ([]identify.TopTwoOption, error) {
	options := []identify.TopTwoOption{identify.WithBeta(p["beta"]), identify.WithSigma(p["sigma"]),
		identify.WithExponent(p["s"])}
	if p["leader"] == printedLeader {
		options = append(options, identify.WithPrintedBonus())
	}
	if p["unclipped"] == 1 {
		options = append(options, identify.WithUnclippedMeans())
	}
	if p["coin"] == 1 {
		if s.Coins == nil {
			return nil, fmt.Errorf("parameter coin is true: %w", errCoins)
		}
		options = append(options, identify.WithCoin(s.Coins))
	}
	return options, nil
}

var errCoins = errors.New("it is for simulations, which have coins to toss")

// newPublished checks what a program cannot have.
func newPublished(s IdentifySetting, p Params,
	build func() (identify.Identifier, error)) (identify.Identifier, error) {
	fail := func(name, is, want string) (identify.Identifier, error) {
		return nil, fmt.Errorf("parameter %s is %s, must be %s with threshold: published, as in "+
			"that program", name, is, want)
	}
	exponent, given := p["s"]
	switch {
	case p["sigma"] != 1:
		return fail("sigma", fmt.Sprint(p["sigma"]), "1")
	case given && exponent != 2:
		return fail("s", fmt.Sprint(exponent), "absent")
	case p["leader"] == printedLeader:
		return fail("leader", "printed", "log")
	case s.Coins == nil:
		return nil, fmt.Errorf("parameter threshold is published: %w", errCoins)
	}
	return build()
}

// unproved is of the programs of [Azize et al. 2023].
func unproved(e *Entry) {
	e.Regret, e.Finite, e.Correct = "none proved", false, ""
	e.Source += "; as in the program published with [Azize et al. 2023]"
}

func varyAdaptive(e *Entry, p Params) {
	if p["leader"] == printedLeader {
		e.Regret = "none proved: a run may never stop with the printed leader"
	}
	varySigma(e, p)
	if p["threshold"] == publishedThreshold {
		unproved(e)
	}
}

// varySigma drops the theorem where rewards in [0,1] are not σ-sub-Gaussian.
func varySigma(e *Entry, p Params) {
	if p["sigma"] < 0.5 {
		e.Correct = ""
	}
}

func newDPTT(s IdentifySetting, p Params) (identify.Identifier, error) {
	options := []identify.TopTwoOption{identify.WithBeta(p["beta"]), identify.WithExponent(p["s"]),
		identify.WithEta(p["eta"]), identify.WithCaution(p["caution"])}
	if first, ok := p["first"]; ok {
		options = append(options, identify.WithFirst(int(first)))
	}
	if p["forget"] == 1 {
		options = append(options, identify.WithForgetting())
	}
	if phases, ok := p["phases"]; ok {
		options = append(options, identify.WithPhaseCap(int(phases)))
	}
	if p["threshold"] == perArmThreshold {
		options = append(options, identify.WithPerArmThreshold())
	}
	return identifier(identify.NewDPTT(s.Arms, s.Budget, s.Risk, options...))
}

// identifier turns a constructor's result into an interface without a typed nil.
func identifier[P identify.Identifier](p P, err error) (identify.Identifier, error) {
	if err != nil {
		return nil, fmt.Errorf("policy %w", err)
	}
	return p, nil
}

// race adds what DP-Race has with and without vectors.
func race(e Entry) Entry {
	proof := always(e.Correct)
	e.Params = []Param{
		{Name: "goal", Proof: proof, Choices: []string{"best", "top", "threshold"}, Doc: "what is looked for: the best " +
			"arm, the k best arms, or all arms whose mean is above level. Trials look for the best"},
		{Name: "k", Proof: proof, Integer: true, Default: 1, Lo: 1, LoIn: true, Hi: 1 << 30, HiIn: true,
			Doc: "with goal: top, how many arms; fewer than there are"},
		{Name: "level", Proof: proof, Default: 0.5, Lo: 0, Hi: 1,
			Doc: "with goal: threshold, the level, of rewards mapped to [0,1]"},
		{Name: "first", Proof: proof, Doc: "plays of each arm in the first batch", Integer: true, Default: math.NaN(),
			DefaultDoc: "⌈8/ε⌉, at least 16", Lo: 1, LoIn: true, Hi: min(1<<50, math.MaxInt/4)},
	}
	if e.Vectors == MeansLogistic {
		e.Params = append(e.Params, boundParam("proof: identify.DPRace"))
	}
	name, vectors := e.Name, e.Vectors
	e.NewIdentify = func(s IdentifySetting, p Params) (identify.Identifier, error) {
		switch {
		case p["k"] != 1 && p["goal"] != raceTop:
			return nil, fmt.Errorf("parameter k is %v, must be left out except with goal: top", p["k"])
		case p["level"] != 0.5 && p["goal"] != raceThreshold:
			return nil, fmt.Errorf("parameter level is %v, must be left out except with goal: threshold", p["level"])
		}
		goal := identify.RaceGoal{Top: 1}
		switch p["goal"] {
		case raceTop:
			goal.Top = int(p["k"])
		case raceThreshold:
			goal = identify.RaceGoal{Level: p["level"]}
		}
		return inContexts(s, func(arms int, risk float64) (identify.Identifier, error) {
			q, err := identify.NewDPRace(arms, s.Budget, risk, goal, int(p.or("first", 0)))
			if err == nil {
				err = tellVectors(q, name, vectors, s.Vectors, s.Logistic, p)
			}
			return identifier(q, err)
		})
	}
	e.vary = func(e *Entry, p Params) {
		switch p["goal"] {
		case raceTop:
			e.Goal = GoalTop
		case raceThreshold:
			e.Goal = GoalThreshold
		}
	}
	return e
}

func halvingParams(proof string) []Param {
	return []Param{{Name: "plays", Proof: always(proof), Integer: true, Default: 10_000, Lo: 2, LoIn: true,
		Hi:  min(1<<50, math.MaxInt/4),
		Doc: "plays after which an arm is named, of all arms together, or of those of a context; at least K⌈log₂K⌉"}}
}

func boundParam(proof string) Param {
	return Param{Name: "bound", Proof: always(proof), Default: 4, Lo: 0, Hi: 20, HiIn: true, Doc: "B, what |⟨θ,x⟩| is at most for every arm: means " +
		"are from 1/(1+e^B) to 1/(1+e^−B)"}
}

// newHalving builds DP-Halving.
func newHalving(name, vectors string) func(IdentifySetting, Params) (identify.Identifier, error) {
	return func(s IdentifySetting, p Params) (identify.Identifier, error) {
		return inContexts(s, func(arms int, _ float64) (identify.Identifier, error) {
			q, err := identify.NewDPHalving(arms, s.Budget, int(p["plays"]))
			if err == nil {
				err = tellVectors(q, name, vectors, s.Vectors, s.Logistic, p)
			}
			return identifier(q, err)
		})
	}
}

// inContexts builds a rule for each context, with its share of the risk; or one, where there are no contexts.
func inContexts(s IdentifySetting, build func(arms int, risk float64) (identify.Identifier, error)) (identify.Identifier,
	error) {
	n := max(1, s.Contexts)
	if err := checkContexts(s.Arms, n); err != nil {
		return nil, err
	}
	if n == 1 {
		return build(s.Arms, s.Risk)
	}
	of := make([]identify.Identifier, n)
	for c := range of {
		var err error
		if of[c], err = build(s.Arms/n, s.Risk/float64(n)); err != nil {
			return nil, err
		}
	}
	return identifier(identify.NewPerContext(s.Arms/n, of))
}

// checkContexts says what is wrong with so many arms of all contexts.
func checkContexts(arms, contexts int) error {
	if arms%contexts != 0 || arms/contexts < 2 {
		return fmt.Errorf("arms are %d for %d contexts, must be as many for each, at least 2", arms, contexts)
	}
	return nil
}

// tellVectors tells a rule the vectors of its arms, if it makes use of them.
func tellVectors(q interface {
	SetVectors([][]float64, identify.Link) error
}, name, vectors string, x [][]float64, logistic bool, p Params) error {
	if vectors == "" || x == nil {
		return nil
	}
	if logistic != (vectors == MeansLogistic) {
		return fmt.Errorf("%s: link is %s, must be %s: it is for such means", name, linkOf(logistic), vectors)
	}
	return q.SetVectors(x, identify.Link{Bound: p["bound"]})
}

func linkOf(logistic bool) string {
	if logistic {
		return MeansLogistic
	}
	return MeansLinear
}
