package catalog

import "github.com/sotto-dp/sotto/policy/linear"

// HistogramTS is who decides where contexts are protected, vectors are few, and no policy is named.
const HistogramTS = "histogram-ts"

// histogramTS is the policy for contexts and actions of few words, under joint DP.
func histogramTS() Entry {
	return Entry{
		Name: HistogramTS, Title: "Thompson sampling on histograms, joint DP", Bandit: BanditContextual,
		Private: true, Budgets: []string{"epsilon", "rho", "epsilon,delta", "alpha,epsilon"}, Anytime: true,
		Guarantee: "joint ε-DP or ρ-zCDP: a round's actions and reward are protected in what is played in all " +
			"other rounds, not in its own; rewards in [−1,1]; vectors are rows of a finite set that is " +
			"known; joint (ε,δ)-DP or (α,ε)-RDP by calibration",
		Regret: "none proved",
		Source: "ours: counts of (row, reward) by segment, regression by their noise; the billboard lemma " +
			"of Hsu, Huang, Roth, Roughgarden and Wu 2014",
		Params: []Param{
			{Name: "first", Integer: true, Doc: "rounds of the first segment", Default: 400, Lo: 1, LoIn: true,
				Hi: 1 << 30, HiIn: true},
			{Name: "ratio", Doc: "of all rounds at the end of a segment to those at its start", Default: 1.5,
				Lo: 1.01, LoIn: true, Hi: 10, HiIn: true},
			{Name: "alpha", Doc: "of a draw's deviation from the mean: 1 is the posterior's, 0 plays the " +
				"mean", Default: 0.5, Lo: 0, LoIn: true, Hi: 10, HiIn: true},
			{Name: "draws", Integer: true, Doc: "draws of the model after each release, one of which is " +
				"played, chosen uniformly", Default: 64, Lo: 1, LoIn: true, Hi: 4096, HiIn: true},
		},
		NewContextual: func(s ContextualSetting, p Params) (linear.Contextual, error) {
			q, err := linear.NewHistogramTS(s.Dim, s.Rows, s.Budget, s.Coins, linear.HistogramOptions{
				First: int(p["first"]), Ratio: p["ratio"], Alpha: p["alpha"], Draws: int(p["draws"])})
			if err != nil {
				return nil, err // no typed nil
			}
			return q, nil
		},
	}
}
