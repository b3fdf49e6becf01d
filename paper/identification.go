package paper

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/sotto-dp/sotto/experiment"
)

// The names of rules in the settings of 004 and of 000 §5.5.3.
const (
	adaptt     = "AdaP-TT"
	adapttStar = "AdaP-TT*"
	adapttCode = "AdaP-TT heuristic"
	dpse       = "DP-SE"
	ttucb      = "TTUCB"
)

const (
	identifyWhy = "A threshold that is proved has to hold for all phases and for the noise in each. Beside it, the threshold of the authors' published code is many times smaller; with it AdaP-TT takes a fraction of the samples of DP-SE, as their " +
		"figures show. It has no proof, and it is not the threshold of the theorems."
	factorWhy = "The factor four is of phases that double and of forgetting, without noise and for δ → 0. With noise, Theorem 5.20 (004 Theorem 5) itself has 4(1 + √(1 + …)) times T*_{KL,β}, which is eight times as ε grows. At δ = 0.01 the union bound over phases comes on top."
	regimeWhy = "Phases double, so that stopping times come in steps; between the regimes they are spread over several of them, and the mean of a few heavy runs is far from the median."
	// RegimeBoundary of the two instances.
	boundaryWhy = " By the lower bounds the regimes meet at ε = 0.21 on the first instance and at 0.07 on the second, not at 0.1 and 0.4."
	starWhy     = "AdaP-TT* judges a pair of arms by one of two thresholds, by how its gap compares with 3ε. Where 3ε lies between the gaps of an instance, different arms are judged by different thresholds, and it stops late. The improvement that is proved is of a bound for δ → 0."
)

func identification() []Figure {
	claims004 := func(name string) []Claim {
		return []Claim{
			{ID: "fewer", Text: "AdaP-TT needs fewer samples than DP-SE for a δ-correct answer.", Where: "§5 and Appendix F",
				Statistic: "Mean stopping time of AdaP-TT over that of DP-SE, paired, in each cell: holds if below 1.", Decide: overRows(name, adaptt, dpse, below(1)), Why: identifyWhy},
			{ID: "fewer-code", Text: "The same of AdaP-TT with the threshold of the published code, by which the printed figures seem to have been made.", Where: "§5 and Appendix F",
				Statistic: "Mean stopping time of AdaP-TT with that threshold over that of DP-SE, paired, in each cell: holds if below 1.", Decide: overRows(name, adapttCode, dpse, below(1))},
			{ID: "high-fewer", Text: "In the high-privacy regime AdaP-TT is ahead of DP-SE on all instances.", Where: "§5",
				Statistic: "As fewer, at ε below 0.2.", Decide: overSome(name, adaptt, dpse, below(1), func(p place) bool { return epsilonOf(p) < 0.2 }), Why: identifyWhy},
			{ID: "low-similar", Text: "In the low-privacy regime AdaP-TT and DP-SE need about as many samples.", Where: "§5",
				Statistic: "Mean stopping time of AdaP-TT over that of DP-SE at ε = 10, paired: holds if between one half and 2.",
				Decide:    overSome(name, adaptt, dpse, between(0.5, 2), func(p place) bool { return epsilonOf(p) == 10 }), Why: identifyWhy},
			{ID: "four-times", Text: "There AdaP-TT needs at most four times the samples of TTUCB, which has no privacy.", Where: "§5",
				Statistic: "Mean stopping time of AdaP-TT over that of TTUCB at ε = 10, paired: holds if below 4.",
				Decide:    overSome(name, adaptt, ttucb, below(4), func(p place) bool { return epsilonOf(p) == 10 }), Why: factorWhy},
			{ID: "four-times-se", Text: "There DP-SE needs at most four times the samples of TTUCB.", Where: "§5",
				Statistic: "Mean stopping time of DP-SE over that of TTUCB at ε = 10, paired: holds if below 4.",
				Decide:    overSome(name, dpse, ttucb, below(4), func(p place) bool { return epsilonOf(p) == 10 }), Why: "DP-SE plays all arms that are left equally often, and looks at them after phases that double."},
			{ID: "regime-high", Text: "For ε below 0.2 the stopping time of AdaP-TT depends on the budget.", Where: "§5",
				Statistic: "Mean stopping time of AdaP-TT over that at ε = 10, paired, at each ε below 0.2: holds if above 1.",
				Decide:    overLargest(name, adaptt, above(1), func(p place) bool { return epsilonOf(p) < 0.2 }), Why: regimeWhy},
			{ID: "regime-low", Text: "For ε above 0.2 the stopping time of AdaP-TT does not depend on the budget.", Where: "§5 and Appendix F",
				Statistic: "Mean stopping time of AdaP-TT over that at ε = 10, paired, at each ε from 0.3 to 1: holds if between 0.8 and 1.25.",
				Decide:    overLargest(name, adaptt, between(0.8, 1.25), func(p place) bool { return epsilonOf(p) > 0.2 && epsilonOf(p) < 10 }), Why: regimeWhy},
			{ID: "correct", Text: "AdaP-TT, DP-SE and TTUCB name a wrong arm in at most a share δ of runs.", Where: "§4 and Appendix F",
				Statistic: "Wrong answers of each cell, their Clopper–Pearson interval: holds if at most δ = 0.01.", Decide: deltaCorrect(name, adaptt, dpse, ttucb), Why: theoremWhy},
			{ID: "lower-bound", Text: "No δ-correct private rule stops sooner, in the mean, than the lower bound.", Where: "Theorem 2 and Corollary 1; 000 Theorem 4.24",
				Statistic: "Mean stopping time over T*(ν; ε) log(1/3δ) of each cell that has the bound: holds if above 1.", Decide: overBound(name, adaptt, dpse, ttucb), Why: theoremWhy},
		}
	}
	const chosen004 = "The source has 100 runs, which cannot show that a rule errs in at most 1 % of them: there are 1100. Its Theorem 4 has σ = 1; rewards in [0, 1] have σ = ½, as in 000, which all rules here have. Private means are clipped to [0, 1] and the " +
		"leader's bonus has log n, since runs of the printed rule may never stop."
	first := func(p place) bool {
		return p.instance == "mu1" && epsilonOf(p) < 0.1 || p.instance == "mu2" && epsilonOf(p) < 0.4
	}
	second := func(p place) bool {
		return p.instance == "mu1" && epsilonOf(p) > 0.1 || p.instance == "mu2" && epsilonOf(p) > 0.4
	}
	low := func(p place) bool { return second(p) && epsilonOf(p) < 10 }
	return []Figure{
		{
			ID: "thesis-5.7", Source: "000", Where: "Figure 5.7, §5.5.3",
			Title:       "Plays until the best arm is named, under ε-DP",
			About:       "Stopping times of AdaP-TT, AdaP-TT*, DP-SE and TTUCB on two instances at δ = 0.01, with the thresholds that are proved; and of AdaP-TT with the threshold of its authors' published code.",
			Chosen:      "The source does not list its budgets: ours are ten from 0.01 to 10. Private means are clipped to [0, 1] and the leader's bonus has log n, since runs of the printed rule may never stop. A run ends after 5·10⁷ plays.",
			Experiments: []Experiment{{"stopping", "thesis-5.7.yaml", quickIdentify(60, "0.05", "0.1", "0.5", "10")}},
			Claims: []Claim{
				{ID: "fewer", Text: "AdaP-TT needs fewer samples than DP-SE for a δ-correct answer.", Statistic: "Mean stopping time of AdaP-TT over that of DP-SE, paired, in each cell: holds if below 1.",
					Decide: overRows("stopping", adaptt, dpse, below(1)), Why: identifyWhy},
				{ID: "fewer-star", Text: "AdaP-TT* needs fewer samples than DP-SE for a δ-correct answer.", Statistic: "Mean stopping time of AdaP-TT* over that of DP-SE, paired, in each cell: holds if below 1.",
					Decide: overRows("stopping", adapttStar, dpse, below(1)), Why: identifyWhy},
				{ID: "fewer-code", Text: "AdaP-TT with the threshold of the published code needs fewer samples than DP-SE.", Statistic: "Mean stopping time of AdaP-TT with that threshold over that of DP-SE, paired, in each cell: holds if below 1.",
					Decide: overRows("stopping", adapttCode, dpse, below(1))},
				{ID: "low-same", Text: "AdaP-TT and AdaP-TT* need as many samples as each other in the low-privacy regime.",
					Statistic: "Mean stopping time of AdaP-TT* over that of AdaP-TT, paired, at ε above 0.1 on the first instance and 0.4 on the second: holds if between 0.9 and 1.1.",
					Decide:    overSome("stopping", adapttStar, adaptt, between(0.9, 1.1), second), Why: "Where a gap is below 3ε, the threshold of AdaP-TT* has, by a sharper proof, half of the main term of that of AdaP-TT: it takes about half the samples at ε = 10."},
				{ID: "high-star", Text: "AdaP-TT* needs fewer samples than AdaP-TT in the high-privacy regime.",
					Statistic: "Mean stopping time of AdaP-TT* over that of AdaP-TT, paired, at ε below 0.1 on the first instance and 0.4 on the second: holds if below 1.",
					Decide:    overSome("stopping", adapttStar, adaptt, below(1), first), Why: starWhy},
				{ID: "regime-high", Text: "For ε below 0.1 on the first instance and 0.4 on the second, the stopping time of AdaP-TT depends on the budget.",
					Statistic: "Mean stopping time of AdaP-TT over that at ε = 10, paired, at each such ε: holds if above 1.", Decide: overLargest("stopping", adaptt, above(1), first), Why: regimeWhy},
				{ID: "regime-high-star", Text: "So does that of AdaP-TT*.",
					Statistic: "Mean stopping time of AdaP-TT* over that at ε = 10, paired, at each such ε: holds if above 1.", Decide: overLargest("stopping", adapttStar, above(1), first), Why: regimeWhy},
				{ID: "regime-low", Text: "For larger ε the stopping time of AdaP-TT does not depend on the budget.",
					Statistic: "Mean stopping time of AdaP-TT over that at ε = 10, paired, at each such ε: holds if between 0.8 and 1.25.", Decide: overLargest("stopping", adaptt, between(0.8, 1.25), low), Why: regimeWhy + boundaryWhy},
				{ID: "regime-low-star", Text: "Nor does that of AdaP-TT*.",
					Statistic: "Mean stopping time of AdaP-TT* over that at ε = 10, paired, at each such ε: holds if between 0.8 and 1.25.", Decide: overLargest("stopping", adapttStar, between(0.8, 1.25), low), Why: starWhy + boundaryWhy},
				{ID: "four-times", Text: "In the low-privacy regime AdaP-TT needs at most four times the samples of TTUCB.",
					Statistic: "Mean stopping time of AdaP-TT over that of TTUCB, paired, at each such ε: holds if below 4.", Decide: overSome("stopping", adaptt, ttucb, below(4), second), Why: factorWhy},
				{ID: "four-times-star", Text: "In the low-privacy regime AdaP-TT* needs at most four times the samples of TTUCB.",
					Statistic: "Mean stopping time of AdaP-TT* over that of TTUCB, paired, at each such ε: holds if below 4.", Decide: overSome("stopping", adapttStar, ttucb, below(4), second), Why: factorWhy},
				{ID: "correct", Text: "AdaP-TT, AdaP-TT*, DP-SE and TTUCB name a wrong arm in at most a share δ of runs.", Where: "Theorems 5.19 and 5.22",
					Statistic: "Wrong answers of each cell, their Clopper–Pearson interval: holds if at most δ = 0.01.", Decide: deltaCorrect("stopping", adaptt, adapttStar, dpse, ttucb), Why: theoremWhy},
				{ID: "lower-bound", Text: "No δ-correct private rule stops sooner, in the mean, than the lower bound.", Where: "Theorem 4.24",
					Statistic: "Mean stopping time over T*(ν; ε) log(1/3δ) of each cell that has the bound: holds if above 1.", Decide: overBound("stopping", adaptt, adapttStar, dpse, ttucb), Why: theoremWhy},
			},
		},
		{
			ID: "bai-1", Source: "004", Where: "Figure 1, §5",
			Title:       "Plays until the best arm is named: two instances",
			About:       "Stopping times of AdaP-TT, DP-SE and TTUCB at δ = 0.01, with the thresholds that are proved; and of AdaP-TT with the threshold of its authors' published code.",
			Chosen:      chosen004 + " The first instance has six arms here, as §5 prints it, and five in Figure 2.",
			Experiments: []Experiment{{"stopping", "bai-1.yaml", quickIdentify(60, "0.05", "0.1", "0.5", "10")}},
			Claims:      claims004("stopping"),
		},
		{
			ID: "bai-2", Source: "004", Where: "Figure 2, Appendix F",
			Title:       "Plays until the best arm is named: six instances",
			About:       "As Figure 1, on the six instances of the appendix at its 15 budgets.",
			Chosen:      chosen004,
			Experiments: []Experiment{{"stopping", "bai-2.yaml", quickIdentify(40, "0.05", "0.1", "0.5", "10")}},
			Claims:      claims004("stopping"),
		},
	}
}

// epsilonOf is the ε of a place's row; below every other where there is none.
func epsilonOf(p place) float64 {
	x, err := strconv.ParseFloat(strings.TrimPrefix(p.row, "epsilon="), 64)
	if err != nil {
		return -1
	}
	return x
}

// some are the places of a policy that a claim speaks of.
func some(e *Evidence, name, policy string, of func(place) bool) ([]place, error) {
	all, err := placesOf(e, name, policy)
	if err != nil {
		return nil, err
	}
	var out []place
	for _, p := range all {
		if of(p) {
			out = append(out, p)
		}
	}
	return out, nil
}

// overSome judges the ratio of two policies at the places that a claim speaks of.
func overSome(name, a, b string, judge func(r, lo, hi float64, runs int, detail string) Finding, of func(place) bool) func(e *Evidence) (Finding, error) {
	return func(e *Evidence) (Finding, error) {
		places, err := some(e, name, a, of)
		if err != nil {
			return Finding{}, err
		}
		return everywhere(places, paired(e, name, a, b, judge))
	}
}

// overLargest judges the ratio of a policy to itself at ε = 10.
func overLargest(name, policy string, judge func(r, lo, hi float64, runs int, detail string) Finding, of func(place) bool) func(e *Evidence) (Finding, error) {
	return func(e *Evidence) (Finding, error) {
		places, err := some(e, name, policy, of)
		if err != nil {
			return Finding{}, err
		}
		return everywhere(places, func(p place, cells int) (Finding, error) {
			c, err := cellAt(e, name, policy, p)
			if err != nil {
				return Finding{}, err
			}
			base, err := cellAt(e, name, policy, place{p.instance, "epsilon=10"})
			if err != nil {
				return Finding{}, err
			}
			x := finalOf(c)
			r, lo, hi := Ratio(x, finalOf(base), cells)
			return judge(r, lo, hi, len(x), fmt.Sprintf("%s at %s over ε = 10", policy, p)), nil
		})
	}
}

// cellsOf are the cells of some policies.
func cellsOf(e *Evidence, name string, policies []string) ([]*experiment.CellResult, error) {
	r, err := e.Results(name)
	if err != nil {
		return nil, err
	}
	var out []*experiment.CellResult
	for _, policy := range policies {
		for i := range r.Cells {
			if r.Cells[i].Policy == policy {
				out = append(out, &r.Cells[i])
			}
		}
	}
	return out, nil
}

// deltaCorrect judges the share of wrong answers in every cell of some rules. A run that reached the cap has none.
func deltaCorrect(name string, policies ...string) func(e *Evidence) (Finding, error) {
	return func(e *Evidence) (Finding, error) {
		cells, err := cellsOf(e, name, policies)
		if err != nil {
			return Finding{}, err
		}
		var parts []Finding
		for _, c := range cells {
			f, err := atMost(c.Failures, len(c.FinalStoppingTime), c.Identify.Risk, len(cells), fmt.Sprintf("%s: %d wrong", c.Label(), c.Failures))
			if err != nil {
				return Finding{}, err
			}
			parts = append(parts, f)
		}
		return Every(parts), nil
	}
}

// overBound judges the mean of every cell of some rules that has a lower bound.
func overBound(name string, policies ...string) func(e *Evidence) (Finding, error) {
	return func(e *Evidence) (Finding, error) {
		cells, err := cellsOf(e, name, policies)
		if err != nil {
			return Finding{}, err
		}
		bounded := cells[:0]
		for _, c := range cells {
			if c.Identify.LowerBound > 0 {
				bounded = append(bounded, c)
			}
		}
		var parts []Finding
		for _, c := range bounded {
			m, lo, hi := Difference(c.FinalStoppingTime, make([]float64, len(c.FinalStoppingTime)), len(bounded))
			b := c.Identify.LowerBound
			parts = append(parts, Above(m/b, lo/b, hi/b, 1, len(c.FinalStoppingTime), c.Label()))
		}
		return Every(parts), nil
	}
}

// quickIdentify plays fewer runs at some of the budgets.
func quickIdentify(runs experiment.Count, epsilons ...string) func(s *experiment.Spec) {
	return func(s *experiment.Spec) {
		s.Runs = min(s.Runs, runs)
		keepBudgets(s, epsilons...)
	}
}

// keepBudgets leaves out all budgets but those of these ε.
func keepBudgets(s *experiment.Spec, epsilons ...string) {
	kept := s.Budgets[:0]
	for _, b := range s.Budgets {
		for _, x := range epsilons {
			if b.String() == "epsilon="+x {
				kept = append(kept, b)
			}
		}
	}
	s.Budgets = kept
}
