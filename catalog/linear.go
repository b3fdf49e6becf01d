package catalog

import (
	"slices"

	"github.com/sotto-dp/sotto/policy/linear"
)

const (
	linearGuarantee = "ρ-zCDP (Interactive), rewards in [−1,1]; (ε,δ)-DP or (α,ε)-RDP by calibration"
)

// All returns every policy of every kind of bandit: those of arms first, then linear, then
// contextual ones, then those that look for the best arm.
func All() []Entry {
	return slices.Concat(Policies(), LinearPolicies(), ContextualPolicies(), IdentifyPolicies())
}

// For returns the policies for one kind of bandit.
func For(bandit string) []Entry {
	switch bandit {
	case BanditLinear:
		return LinearPolicies()
	case BanditContextual:
		return ContextualPolicies()
	case BanditIdentify:
		return IdentifyPolicies()
	}
	return Policies()
}

// gaussianBudgets are those that Gaussian noise is calibrated to.
func gaussianBudgets() []string { return []string{"rho", "epsilon,delta", "alpha,epsilon"} }

// LinearPolicies returns the policies for a fixed set of actions in ℝ^d, private ones first.
func LinearPolicies() []Entry {
	return []Entry{
		{
			Name: "adac-gope", Title: "AdaC-GOPE", Family: "gope", Bandit: BanditLinear, Twin: "gope",
			Private: true, Budgets: gaussianBudgets(), Anytime: true,
			Guarantee: linearGuarantee,
			Finite:    true,
			Regret: "O(√(dT log(KT))) + O((d/√ρ) log^1.5(KT)), δ = 1/T [Azize 2024, Theorem 5.12]; " +
				"its second term needs d = O(log(KT)), or corrected",
			Source: "[Azize 2024, §5.3.2, Algorithm 8]; [Azize and Basu 2024, Algorithm 2]; " +
				"privacy by [Azize 2024, Theorem 5.11], " +
				"noise calibrated to the design that was found",
			Params: []Param{risk("the confidence bounds", "[Azize 2024, Theorem 5.12]"),
				corrected(always("[Azize 2024, Theorem 5.12]")), literal()},
			NewLinear: newGOPE(func(p Params) linear.GOPEOptions {
				return linear.GOPEOptions{Risk: p["risk"], Corrected: p["corrected"] == 1,
					Literal: p["literal"] == 1}
			}),
		},
		{
			Name: "adac-gope-var", Title: "AdaC-GOPE-Var", Family: "gope", Bandit: BanditLinear, Twin: "gope",
			Private: true, Budgets: gaussianBudgets(), Anytime: true,
			Guarantee: linearGuarantee,
			Regret: "none printed; the noise of each action's sum adds a factor up to √d " +
				"[Azize and Basu 2024, Appendix E-C]",
			Source: "[Azize 2024, Appendix C.3.3, Figure C.1]; [Azize and Basu 2024, Appendix " +
				"E-C]; phases: own is our derivation",
			Params: []Param{risk("the confidence bounds", ""), corrected(Proof{}),
				{Name: "phases", Choices: []string{"same", "own"}, Doc: "length of its phases: " +
					"that of AdaC-GOPE, or its own, with the size of the support in the private term"}},
			NewLinear: newGOPE(func(p Params) linear.GOPEOptions {
				return linear.GOPEOptions{Risk: p["risk"], Corrected: p["corrected"] == 1,
					Var: true, VarPhases: int(p["phases"])}
			}),
		},
		{
			Name: "gope", Title: "GOPE", Bandit: BanditLinear, Anytime: true, Guarantee: noGuarantee,
			Finite: true,
			Regret: "O(√(dT log(K log T/δ))) with probability 1−δ (Lattimore and Szepesvári " +
				"2020, Theorem 22.1)",
			Source: "Lattimore and Szepesvári 2020, §22; the constants of [Azize 2024, Algorithm 8] at ρ = ∞",
			Params: []Param{risk("the confidence bounds", "Lattimore and Szepesvári 2020, Theorem 22.1")},
			NewLinear: newGOPE(func(p Params) linear.GOPEOptions {
				return linear.GOPEOptions{Risk: p["risk"]}
			}),
		},
	}
}

func newGOPE(options func(Params) linear.GOPEOptions) func(LinearSetting, Params) (linear.Policy, error) {
	return func(s LinearSetting, p Params) (linear.Policy, error) {
		q, err := linear.NewGOPE(s.Actions, s.Horizon, s.Budget, options(p))
		if err != nil {
			return nil, err // no typed nil
		}
		return q, nil
	}
}

// ContextualPolicies returns the policies for sets of actions in ℝ^d that change in each round,
// private ones first.
func ContextualPolicies() []Entry {
	entries := []Entry{
		{
			Name: "dp-lin-ts", Title: "Thompson sampling on noise-aware regression", Bandit: BanditContextual,
			Private: true, Budgets: gaussianBudgets(), PublicContexts: true, Anytime: true,
			Guarantee: "ρ-zCDP (Interactive) of rewards in [−1,1], ‖a‖ ≤ 1; contexts are public " +
				"and not protected; (ε,δ)-DP or (α,ε)-RDP by calibration",
			Regret: "none frequentist, and none at alpha below 1; at alpha: 1, cautious: 0, Bayesian, if the model is true: " +
				"√(dT·Σ_t a_tᵀΣa_t), Σ the posterior's covariance, and where contexts are diverse " +
				"d·√(2T(vS/κ + 5σ²/(κ²·first))) after the first release, S ≤ 4 + log(T/first)/log 1.5 until T = 10⁷ (ours, policy/linear)",
			Source: "ours; Thompson draws of Agrawal and Goyal (2013) on Bayesian regression from noisy sums " +
				"(Bernstein and Sheldon 2019)",
			Params: []Param{
				{Name: "alpha", Doc: "standard deviations of the posterior in a draw", Default: 0.6, Lo: 0, LoIn: true,
					Hi: 10, HiIn: true},
				{Name: "cautious", Doc: "released decisions a component at which a draw has two thirds of alpha; it begins " +
					"with a third; 0: alpha from the start", Default: 200, Integer: true, Lo: 0, LoIn: true, Hi: 1 << 22, HiIn: true},
				{Name: "first", Doc: "decisions of the first release; a later one has half as many as all before it, " +
					"and no fewer", Default: 200, Integer: true, Lo: 1, LoIn: true, Hi: 1 << 22, HiIn: true},
				{Name: "norm", Doc: "what vectors are divided by to be in the unit ball: a model is as much larger",
					Default: 1, Lo: 1e-6, LoIn: true, Hi: 1e6, HiIn: true},
				{Name: "intercept", Flag: true, Doc: "the first component of all vectors is one constant"},
				{Name: "centre", Doc: "mean reward beforehand, with an intercept", Lo: -1, LoIn: true, Hi: 1, HiIn: true},
				{Name: "memory", Doc: "decisions after which what was learnt counts a third, for worlds that move; 0: all count",
					Integer: true, Lo: 0, LoIn: true, Hi: 1e9, HiIn: true},
			},
			NewContextual: func(s ContextualSetting, p Params) (linear.Contextual, error) {
				q, err := linear.NewLinTS(s.Dim, s.Budget, linear.LinTSOptions{Alpha: p["alpha"],
					Cautious: int(p["cautious"]), First: int(p["first"]), Norm: p["norm"],
					Intercept: p["intercept"] == 1, Centre: p["centre"], Memory: int(p["memory"])}, s.Coins)
				if err != nil {
					return nil, err // no typed nil
				}
				return q, nil
			},
		},
		{
			Name: "adac-oful", Title: "AdaC-OFUL", Family: "oful", Bandit: BanditContextual, Twin: "rs-oful",
			Private: true, Budgets: gaussianBudgets(), PublicContexts: true, Anytime: true,
			Guarantee: "ρ-zCDP (Interactive) of rewards in [−1,1], ‖a‖ ≤ 1; contexts are public " +
				"and not protected; (ε,δ)-DP or (α,ε)-RDP by calibration",
			Finite: true,
			Regret: "2√(1+C)·√(2dT log(1+T/(λd)))·(β_T + √(2ℓ(T)f₁/(ρλ))) + 2δT, from V ⪰ λI " +
				"(ours, by [Azize and Basu 2024, Theorem 14]; sotto bounds); " +
				"O(d log T √T) + O((d²/√ρ) log²T) [Azize 2024, Theorem 5.17] for the printed radius and " +
				"λ ≥ 1 rests on an assumption on contexts that cannot hold for d ≥ 2",
			Source: "[Azize 2024, §5.3.3, Algorithm 9]; [Azize and Basu 2024, Algorithm 3]; " +
				"privacy by [Azize 2024, Theorem 5.14]; by " +
				"default λ_min(V) in the radius",
			Params: append(ofulParams("[Azize and Basu 2024, Theorem 14]"),
				Param{Name: "radius", Proof: only("[Azize and Basu 2024, Theorem 14] with V ⪰ λI", 0),
					Choices: []string{"eigenvalue", "printed"}, Doc: "what bounds the noise in " +
						"V: its smallest eigenvalue, or the printed λ + λ₀t/4 − …, λ where that is less"},
				Param{Name: "lambda0", Doc: "λ₀ of the printed radius, the smallest eigenvalue " +
					"of E[aaᵀ]", Default: 0.1, Lo: 0, Hi: 1, HiIn: true,
					// of the printed radius alone
					Proof: always("[Azize and Basu 2024, Theorem 14]")}),
			NewContextual: newOFUL(func(p Params) linear.OFULOptions {
				o := oful(p)
				o.Printed, o.Lambda0 = p["radius"] == 1, p["lambda0"]
				return o
			}),
		},
		{
			Name: "rs-oful", Title: "RS-OFUL", Family: "oful", Bandit: BanditContextual,
			Anytime: true, Guarantee: noGuarantee,
			Finite: true,
			Regret: "O(d√T log T) with probability 1−δ (Abbasi-Yadkori, Pál and " +
				"Szepesvári 2011, Theorem 4)",
			Source: "Abbasi-Yadkori, Pál and Szepesvári 2011, Figure 3: rare switching; " +
				"AdaC-OFUL at ρ = ∞",
			Params:        ofulParams("Abbasi-Yadkori, Pál and Szepesvári 2011, Theorem 4"),
			NewContextual: newOFUL(oful),
		},
		{
			Name: "oful", Title: "OFUL", Bandit: BanditContextual, Anytime: true, Guarantee: noGuarantee,
			Finite: true,
			Regret: "O(d√T log T) with probability 1−δ (Abbasi-Yadkori, Pál and Szepesvári 2011, Theorem 3)",
			Source: "Abbasi-Yadkori, Pál and Szepesvári 2011, Figure 1",
			Params: []Param{lambda("Abbasi-Yadkori, Pál and Szepesvári 2011, Theorem 3"),
				risk("the confidence ellipsoids", "Abbasi-Yadkori, Pál and Szepesvári 2011, Theorem 3")},
			NewContextual: newOFUL(func(p Params) linear.OFULOptions {
				return linear.OFULOptions{Lambda: p["lambda"], Risk: p["risk"], EveryRound: true}
			}),
		},
	}
	return slices.Insert(entries, 2, privateContexts()...) // private ones first
}

func newOFUL(options func(Params) linear.OFULOptions) func(ContextualSetting,
	Params) (linear.Contextual, error) {
	return func(s ContextualSetting, p Params) (linear.Contextual, error) {
		q, err := linear.NewOFUL(s.Dim, s.Horizon, s.Budget, options(p))
		if err != nil {
			return nil, err // no typed nil
		}
		return q, nil
	}
}

func oful(p Params) linear.OFULOptions {
	return linear.OFULOptions{Lambda: p["lambda"], C: p["c"], Risk: p["risk"], Split: p["split"] == 1,
		Greed: p["greed"], Norm: p["norm"]}
}

func ofulParams(theorem string) []Param {
	return []Param{lambda(theorem),
		{Name: "c", Doc: "C: a new estimate when det V has grown by the factor 1 + C", Default: 1,
			Lo: 0, Hi: 1e6, HiIn: true, Proof: always(theorem)},
		risk("the confidence ellipsoids", theorem),
		{Name: "split", Flag: true, Default: 1, Doc: "give a third of the risk to each of the " +
			"three events of the proof, not all of it", Proof: always(theorem)},
		{Name: "norm", Default: 1, Lo: 0, Hi: 1e6, HiIn: true, Proof: only(theorem, 1),
			Doc: "S: the model's norm is at most that, and the confidence sets are for it"},
		greed(theorem)}
}

func greed(theorem string) Param {
	return Param{Name: "greed", Lo: 0, LoIn: true, Hi: 1, HiIn: true, Proof: only(theorem, 0),
		Doc: "share of the confidence radius that choices leave out: 1 plays the best estimate, and a " +
			"floor or the contexts must see to exploration"}
}

func lambda(theorem string) Param {
	return Param{Name: "lambda", Doc: "ridge parameter λ", Default: 1, Lo: 1e-12, LoIn: true,
		Hi: 1e12, HiIn: true, Proof: always(theorem)}
}

// risk has a theorem for every δ; none if that is empty.
func risk(of, theorem string) Param {
	return Param{Name: "risk", Doc: "probability δ that " + of + " fail", Default: 0.001, Lo: 0,
		Hi: 1, Proof: always(theorem)}
}

func corrected(p Proof) Param {
	return Param{Name: "corrected", Flag: true, Proof: p,
		Doc: "phases with 2 log(4/δ) for f(d,δ) = d + 2√(d log(2/δ)) + 2 log(2/δ): shorter, and enough"}
}

func literal() Param {
	return Param{Name: "literal", Flag: true, Proof: always("[Azize 2024, Theorem 5.12]"),
		Doc: "noise of the printed variance 2d/(ρc_ℓ), where that is more than the achieved design needs"}
}
