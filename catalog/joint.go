package catalog

import (
	"math"

	"github.com/sotto-dp/sotto/policy/linear"
)

// privateContexts are the policies for contextual bandits that do not rest on AdaC-OFUL.
func privateContexts() []Entry {
	// for any noise on the Gram matrix whose eigenvalues are bounded
	const shariff = "Shariff and Sheffet 2018, Theorem 5"
	// for any noise and schedule
	const segments = "linear.JDPGreedy, Diversity"
	return []Entry{
		{
			Name: "lin-ucb", Title: "LinUCB under joint DP", Family: "oful", Bandit: BanditContextual,
			Private: true, Budgets: gaussianBudgets(),
			Guarantee: "joint ρ-zCDP: a round's actions and reward are protected in what is " +
				"played in all other rounds, not in its own; rewards in [−1,1], ‖a‖ ≤ 1; " +
				"joint (ε,δ)-DP or (α,ε)-RDP by calibration",
			Finite: true,
			Regret: "Õ(√T (d + d^¾/√ε)) at joint (ε,δ)-DP (Shariff and Sheffet 2018, Theorem 5 " +
				"and Corollary 15)",
			Source: "Shariff and Sheffet 2018, Algorithms 1 and 2: noisy Gram matrices of " +
				"[action, reward], with their shifted regulariser; blt as in Dvijotham et al. 2024",
			Params: []Param{
				{Name: "noise", Choices: []string{"blt", "tree", "wishart"}, Proof: always(shariff),
					Doc: "how the running Gram matrix is kept: buffered Toeplitz noise or normal " +
						"noise on a binary tree, " +
						"for ρ, (ε,δ) and (α,ε); Wishart noise on the tree, for (ε,δ) only. " +
						"Real records need tree"},
				{Name: "lambda", Doc: "least regulariser λ", Default: 1, Lo: 1e-12, LoIn: true,
					Hi: 1e12, HiIn: true, Proof: always(shariff)},
				{Name: "c", Proof: only(shariff, 0), Doc: "C: a new estimate when det V has " +
					"grown by the factor 1 + C; 0 for one in every round, as in the source", Lo: 0,
					LoIn: true, Hi: 1e6, HiIn: true},
				risk("the confidence ellipsoids", shariff),
				{Name: "leaf", Integer: true, Proof: only(shariff, 1), Doc: "rounds between two " +
					"releases, which are a leaf of the tree: the price is of horizon/leaf releases. " +
					"Above 1 needs noise tree", Default: 1, Lo: 1, LoIn: true, Hi: 1 << 30, HiIn: true},
				greed(shariff),
			},
			NewContextual: func(s ContextualSetting, p Params) (linear.Contextual, error) {
				leaf := int(p["leaf"])
				if leaf == 1 {
					leaf = 0 // as it is written where there are none
				}
				q, err := linear.NewLinUCB(s.Dim, s.Horizon, s.Budget,
					linear.LinUCBOptions{Risk: p["risk"], Lambda: p["lambda"],
						Noise: linear.GramNoise(p["noise"]), C: p["c"], Leaf: leaf, Step: s.Step,
						Greed: p["greed"]})
				if err != nil {
					return nil, err // no typed nil
				}
				return q, nil
			},
			vary: func(e *Entry, p Params) {
				if linear.GramNoise(p["noise"]) == linear.GramWishart {
					e.Budgets = []string{"epsilon,delta"}
					e.Guarantee = "joint (ε,δ)-DP: a round's actions and reward are protected in " +
						"what is played in all other rounds, not in its own; rewards in [−1,1], ‖a‖ ≤ 1"
				}
			},
		},
		{
			Name: "jdp-greedy", Title: "Greedy on disjoint segments under joint DP", Bandit: BanditContextual,
			Private: true, Budgets: gaussianBudgets(),
			Guarantee: "joint ρ-zCDP: a round's actions and reward are protected in what is " +
				"played in all other rounds, not in its own; rewards in [−1,1], ‖a‖ ≤ 1; " +
				"joint (ε,δ)-DP or (α,ε)-RDP by calibration",
			Finite: true,
			Regret: "O(√(dT log T/κ)) and a price of privacy of O((σ/κ) log T √(L(d + log T))), L segments, " +
				"where what is greedy has λ_min(E[aaᵀ]) ≥ κ (ours); where the test fails, that of lin-ucb after it",
			Source: "ours (linear.JDPGreedy has the proof), beside Chen, Li, Rakhlin and Simchi-Levi, arXiv " +
				"2502.13115",
			Params: []Param{
				{Name: "first", Integer: true, Proof: always(segments), Default: 200, Lo: 1, LoIn: true, Hi: 1 << 30, HiIn: true,
					Doc: "rounds of the first segment, leaf if that is less"},
				{Name: "growth", Proof: always(segments), Default: 1.5, Lo: 1.01, LoIn: true, Hi: 100, HiIn: true,
					Doc: "by how much the rounds grow from one segment's end to the next, until segments are leaves"},
				{Name: "leaf", Integer: true, Proof: always(segments), Default: 1000, Lo: 1, LoIn: true, Hi: 1 << 30, HiIn: true,
					Doc: "the most rounds of a segment, and those of a leaf of the fallback's tree"},
				{Name: "diversity", Proof: always(segments), Lo: 0, LoIn: true, Hi: 1, HiIn: true, Doc: "lin-ucb takes over " +
					"where it is proved that a direction has less than half this share of an even one; 0 for never"},
				{Name: "greed", Lo: 0, LoIn: true, Hi: 1, HiIn: true, Proof: only(segments, 0),
					Doc: "share of the confidence radius that the fallback leaves out"},
				risk("the certificate, the test and the fallback", segments),
			},
			NewContextual: func(s ContextualSetting, p Params) (linear.Contextual, error) {
				q, err := linear.NewJDPGreedy(s.Dim, s.Horizon, s.Budget, linear.JDPGreedyOptions{Risk: p["risk"],
					First: int(p["first"]), Growth: p["growth"], Leaf: int(p["leaf"]), Diversity: p["diversity"],
					Greed: p["greed"], Step: s.Step})
				if err != nil {
					return nil, err // no typed nil
				}
				return q, nil
			},
		},
		{
			Name: "jdp-instruments", Title: "Greedy by instruments under joint DP", Bandit: BanditContextual,
			Private: true, Budgets: []string{"epsilon", "rho", "epsilon,delta", "alpha,epsilon"}, Anytime: true,
			Guarantee: "joint ε-DP, with δ = 0: a round's actions and reward are protected in what is played in all other " +
				"rounds, not in its own; rewards in [−1,1], ‖a‖ ≤ 1; joint ρ-zCDP, (ε,δ)-DP or (α,ε)-RDP by an ε that implies it",
			Simulated: "the noise of its Gram matrices has no exact law yet",
			Regret:    "none proved",
			Source:    "ours (linear.JDPInstruments)",
			Params: []Param{
				{Name: "first", Integer: true, Default: math.NaN(), DefaultDoc: "⌈8d(1 + 1/ε)⌉", Lo: 1, LoIn: true,
					Hi: 1 << 30, HiIn: true, Doc: "rounds of the first segment"},
				{Name: "growth", Default: 1.6, Lo: 1.01, LoIn: true, Hi: 100, HiIn: true,
					Doc: "by how much the rounds grow from one segment's end to the next"},
				{Name: "bonus", Default: 0.5, Lo: 0, LoIn: true, Hi: 10, HiIn: true,
					Doc: "deviations beside an action's estimate"},
			},
			NewContextual: func(s ContextualSetting, p Params) (linear.Contextual, error) {
				q, err := linear.NewJDPInstruments(s.Dim, s.Arms, s.Budget,
					linear.InstrumentOptions{First: int(p["first"]), Growth: p["growth"], Bonus: p["bonus"]})
				if err != nil {
					return nil, err // no typed nil
				}
				return q, nil
			},
		},
		histogramTS(),
		{
			Name: "lin-priv", Title: "LinPriv, a regression an arm", Bandit: BanditContextual,
			Private: true, PublicContexts: true,
			Budgets: []string{"epsilon", "rho", "epsilon,delta", "alpha,epsilon"},
			Guarantee: "ε-DP of rewards in [−1,1], ‖a‖ ≤ 1; contexts are public and not " +
				"protected; ρ-zCDP, (ε,δ)-DP or (α,ε)-RDP by calibration",
			Finite: true,
			Regret: "Õ(d√T + Kd√T/ε) [Azize and Basu 2024, Appendix F-C]: the printed Kd log T/ε rests on a " +
				"sum that is wrong",
			Source: "Neel and Roth 2018; its bound as corrected in [Azize and Basu 2024, Appendix F-C]",
			Params: []Param{
				{Name: "lambda", Doc: "ridge parameter λ of each arm", Default: 1, Lo: 1e-12,
					LoIn: true, Hi: 1e12, HiIn: true, Proof: always("[Azize and Basu 2024, Appendix F-C]")},
				risk("the confidence intervals", "[Azize and Basu 2024, Appendix F-C]"),
			},
			NewContextual: func(s ContextualSetting, p Params) (linear.Contextual, error) {
				q, err := linear.NewLinPriv(s.Dim, s.Arms, s.Horizon, s.Budget,
					linear.LinPrivOptions{Lambda: p["lambda"], Risk: p["risk"]})
				if err != nil {
					return nil, err // no typed nil
				}
				return q, nil
			},
		},
	}
}
