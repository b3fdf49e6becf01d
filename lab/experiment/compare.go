package experiment

import (
	"fmt"
	"math"
	"slices"

	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/internal/stats"
)

// A Comparison is one row of the table: regret at the horizon of a cell, beside the best
// cell of its group.
type Comparison struct {
	CellInfo
	// Group is the instance; where several policies play an instance at several budgets (none
	// apart), instance and budget: then the question is which policy is best at each.
	Group string
	Mean  float64 // of the regret at the last checkpoint
	Half  float64 // mean ± Half is the Student interval of level Level; +Inf for one run
	// Ratio is Mean over the best's. It is NaN if the best's is not positive.
	Ratio float64
	Best  bool // the lowest mean of the group; of none that is not ranked
	// Difference is the mean over runs of this cell's regret minus the best's, on the same rewards;
	// Difference ± DifferenceHalf is its Student interval.
	Difference, DifferenceHalf float64
	// of the paired t test of that difference, corrected; NaN if untested
	P           float64
	Significant bool // P ≤ 1 − Level
}

// Level is the level of the intervals and tests of Compare.
const Level = 0.95

// Compare compares all cells of a group by their regret at the last checkpoint.
//
// Runs of one instance share their worlds whatever the policy, so differences are tested run by
// run: a paired t test, two-sided. The best cell is chosen by the same data, so any pair could have
// been tested: the correction (Holm) is for all pairs within each group, over all groups of the
// experiment. The probability that any of the printed differences is called significant without
// being one is at most 1 − Level, for roughly Gaussian differences. Cells that are Unranked have no
// best, no ratio and no test.
func (r *Results) Compare() ([]Comparison, error) {
	if m := r.Manifest; !m.regret() {
		return nil, fmt.Errorf("experiment %q is of kind %s: there is no regret to compare",
			m.Name, m.Kind)
	}
	out := make([]Comparison, len(r.Cells))
	group := r.groups()
	best := map[string]int{}
	for i := range r.Cells {
		c := &r.Cells[i]
		mean, half := stats.Half(c.FinalRegret, Level)
		out[i] = Comparison{CellInfo: c.CellInfo, Group: group[i], Mean: mean, Half: half, P: math.NaN()}
		if b, ok := best[group[i]]; !ok || mean < out[b].Mean {
			best[group[i]] = i
		}
	}
	type pair struct{ a, b int }
	var pairs []pair
	var p []float64
	for a := range r.Cells {
		for b := range a {
			if group[a] != group[b] || r.Manifest.Runs < 2 {
				continue
			}
			test, err := stats.Paired(r.Cells[a].FinalRegret, r.Cells[b].FinalRegret)
			if err != nil {
				return nil, fmt.Errorf("%s against %s: %w", r.Cells[a].Label(), r.Cells[b].Label(), err)
			}
			pairs, p = append(pairs, pair{a, b}), append(p, test.P)
		}
	}
	adjusted, err := stats.Holm(p)
	if err != nil {
		return nil, err
	}
	for i, q := range pairs {
		b := best[group[q.a]]
		switch b {
		case q.a:
			out[q.b].P = adjusted[i]
		case q.b:
			out[q.a].P = adjusted[i]
		}
	}
	difference := make([]float64, r.Manifest.Runs)
	for i := range out {
		b := best[group[i]]
		out[i].Ratio = math.NaN()
		if out[i].Unranked != "" {
			out[i].P = math.NaN()
			continue
		}
		out[i].Best = i == b
		if out[b].Mean > 0 {
			out[i].Ratio = out[i].Mean / out[b].Mean
		}
		for k := range difference {
			difference[k] = r.Cells[i].FinalRegret[k] - r.Cells[b].FinalRegret[k]
		}
		out[i].Difference, out[i].DifferenceHalf = stats.Half(difference, Level)
		out[i].Significant = out[i].P <= 1-Level
	}
	return out, nil
}

// groups says with which other cells each is compared.
func (r *Results) groups() []string {
	budgets, policies := map[string][]string{}, map[string][]string{}
	for i := range r.Cells {
		c := &r.Cells[i]
		if !slices.Contains(policies[c.Instance], c.Policy) {
			policies[c.Instance] = append(policies[c.Instance], c.Policy)
		}
		if c.Budget != keyed.None && !slices.Contains(budgets[c.Instance], c.Row()) {
			budgets[c.Instance] = append(budgets[c.Instance], c.Row())
		}
	}
	out := make([]string, len(r.Cells))
	for i := range r.Cells {
		c := &r.Cells[i]
		out[i] = c.Instance
		if len(budgets[c.Instance]) > 1 && len(policies[c.Instance]) > 1 {
			out[i] += ", " + c.Row()
		}
	}
	return out
}
