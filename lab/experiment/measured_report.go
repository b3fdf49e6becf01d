package experiment

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/internal/report"
	"github.com/sotto-dp/sotto/internal/stats"
	"github.com/sotto-dp/sotto/internal/words"
	"github.com/sotto-dp/sotto/privacy"
)

// report is the table of regrets at the horizon, a figure of regret against rounds for each
// instance and budget, with the policies that have none beside it, and one of regret against the
// budget for each instance that has three budgets of a kind or more. Where private policies are
// played without privacy too, the price of privacy has a table and figures.
func (measured) report(r *Results, to *report.Page) error {
	table, err := regretTable(r)
	if err != nil {
		return err
	}
	to.Tables = []report.Table{table.Table()}
	if g, ok := priceTable(r); ok {
		to.Tables = append(to.Tables, g)
	}
	for _, instance := range r.instances() {
		budgets := distinct(r, func(c *CellResult) (string, bool) {
			return c.Row(), c.Instance == instance && c.Budget != keyed.None
		})
		if len(budgets) == 0 {
			budgets = []string{keyed.None}
		}
		for _, b := range budgets {
			to.Figures = append(to.Figures, roundsFigure(r, instance, b))
		}
		for _, kind := range budgetAxes() {
			if f, ok := budgetFigure(r, instance, kind.key, kind.symbol); ok {
				to.Figures = append(to.Figures, f)
			}
		}
		to.Figures = append(to.Figures, priceFigures(r, instance)...)
	}
	return reportIntervals(r, to)
}

func regretTable(r *Results) (report.Comparison, error) {
	rows, err := r.Compare()
	if err != nil {
		return report.Comparison{}, err
	}
	t := report.Comparison{
		Title: "Regret at T = " + words.Whole(r.Manifest.Horizon), Metric: "regret at T",
		Level: Level, Alpha: 1 - Level,
		Notes: append(protects(r), means(r)...), Test: "paired t test on runs that share their " +
			"world", Correction: "Holm",
	}
	if r.Manifest.Runs < 2 {
		t.Test, t.Correction = "", ""
	}
	// Rows of one group follow each other, whatever order cells have.
	var groups []string
	for i := range rows {
		if !slices.Contains(groups, rows[i].Group) {
			groups = append(groups, rows[i].Group)
		}
	}
	for _, group := range groups {
		for i := range rows {
			if rows[i].Group != group {
				continue
			}
			q := stats.Quantiles(r.Cells[i].FinalRegret, 0.05, 0.5, 0.95)
			t.Rows = append(t.Rows, report.Row{
				Instance: symbols(group), Policy: rows[i].Policy, Budget: symbols(rows[i].Budget),
				Void: void(r, &r.Cells[i]), Unranked: rows[i].Unranked != "", Runs: r.Manifest.Runs,
				Mean: rows[i].Mean, Half: rows[i].Half, Ratio: rows[i].Ratio, Best: rows[i].Best, P: rows[i].P,
				Q05: q[0], Median: q[1], Q95: q[2], Bound: over(rows[i].Mean, rows[i].LowerBound),
			})
		}
	}
	return t, nil
}

// adjacency says in what neighbouring worlds differ.
func (measured) adjacency(r *Results) string {
	const one = "one reward replaced"
	joint, others := false, false
	for i := range r.Cells {
		if c := &r.Cells[i]; c.Private {
			j := strings.Contains(c.Guarantee, "joint")
			joint, others = joint || j, others || !j
		}
	}
	switch {
	case joint && others:
		return one + "; of joint DP, one round's actions and reward"
	case joint:
		return "one round's actions and reward replaced"
	}
	return one
}

// means says of which means regret is where rewards are clipped, and where policies are
// not ranked by it.
func means(r *Results) []string {
	var out []string
	for i := range r.Cells {
		c := &r.Cells[i]
		var notes []string
		if c.Clipped {
			notes = append(notes, "regret on "+c.Instance+": of the means before rewards are clipped")
		}
		if c.Unranked != "" {
			notes = append(notes, "policies are not ranked on "+c.Instance+": "+c.Unranked)
		}
		for _, note := range notes {
			if !slices.Contains(out, note) {
				out = append(out, note)
			}
		}
	}
	return out
}

// over is a regret over its lower bound, 0 if there is none.
func over(mean, bound float64) float64 {
	if bound > 0 {
		return mean / bound
	}
	return 0
}

// roundsFigure is regret against rounds: the cells of an instance at one budget, and
// those without one.
func roundsFigure(r *Results, instance, budget string) report.Figure {
	m := r.Manifest
	f := report.Figure{
		ID: report.Stem("regret-" + instance), Title: "Regret on " + instance, Subtitle: symbols(budget),
		XLabel: "round t", YLabel: "pseudo-regret", LogX: true, LogY: true,
		Note: bandNote(m, "checkpoint"),
	}
	if budget == keyed.None {
		f.Subtitle = "no privacy"
	} else {
		f.ID = report.Stem("regret-" + instance + "-" +
			strings.ReplaceAll(strings.ReplaceAll(budget, "=", "-"), ",", "-"))
	}
	x := make([]float64, len(m.Checkpoints))
	for i, t := range m.Checkpoints {
		x[i] = float64(t)
	}
	half := stats.T(m.Runs, 0.95)
	for i := range r.Cells {
		c := &r.Cells[i]
		if c.Instance != instance || c.Row() != budget && c.Budget != keyed.None {
			continue
		}
		s := report.Series{Policy: c.Policy, Budget: symbols(c.Budget), Label: c.Policy, Void: void(r, c),
			Family: r.family(c), Plain: c.Budget == keyed.None,
			X: x, Mean: c.Regret.Mean, Q05: c.Regret.Q05, Q50: c.Regret.Q50, Q95: c.Regret.Q95}
		if c.Private && c.Budget == keyed.None && budget != keyed.None {
			s.Label = c.Policy + ", no privacy"
		}
		if c.Beside != "" {
			s.Label = c.Policy + ", " + s.Budget
		}
		if m.Runs > 1 {
			s.Lo, s.Hi = make([]float64, len(x)), make([]float64, len(x))
			for j, se := range c.Regret.SE {
				s.Lo[j], s.Hi[j] = c.Regret.Mean[j]-half*se, c.Regret.Mean[j]+half*se
			}
		}
		f.Series = append(f.Series, s)
	}
	for _, b := range m.Bounds {
		if b.Instance == instance && b.Budget == budget {
			f.Series = append(f.Series, report.Series{Label: boundLabel(b), X: x, Mean: b.Regret})
			f.Note += " " + boundNote(b)
		}
	}
	f.Note += plainNote(f)
	r.setAside(&f)
	return f
}

// boundLabel is beside the line of a lower bound.
func boundLabel(b BoundLine) string {
	switch {
	case b.WorstCase:
		return "lower bound, worst case"
	case b.Kind == asymptotic:
		return "lower bound, T → ∞"
	}
	return "lower bound"
}

const asymptotic = "asymptotic" // bound.Asymptotic, as manifests have it

// boundNote says what a lower bound is one of.
func boundNote(b BoundLine) string {
	name, what := "Lower bound", "no policy is below it"
	switch {
	case b.WorstCase:
		name, what = "Worst case", "every policy loses so much on some instance of its class, not on this one"
	case b.Kind == asymptotic:
		name, what = "T → ∞", "in the long run no policy that learns is below this slope; at a "+
			"finite T it can be"
	}
	return fmt.Sprintf("%s is %s (%s): %s.", name, b.Form, b.Where, what)
}

// budgetFigure is regret at the horizon against ε or ρ, if there are at least three; policies
// without a budget are level lines.
func budgetFigure(r *Results, instance, key, symbol string) (report.Figure, bool) {
	m := r.Manifest
	f := report.Figure{
		ID:       report.Stem("regret-" + instance + "-by-" + key),
		Title:    "Regret on " + instance + " against the budget",
		Subtitle: "at T = " + words.Whole(m.Horizon), XLabel: "budget " + symbol,
		YLabel: "pseudo-regret at T", LogX: true, LogY: true, Note: bandNote(m, "budget"),
	}
	half := stats.T(m.Runs, 0.95)
	lo, hi, most := math.Inf(1), math.Inf(-1), 0
	for _, policy := range distinct(r, func(c *CellResult) (string, bool) {
		return c.Policy, c.Instance == instance && c.Budget != keyed.None
	}) {
		s := report.Series{Policy: policy, Label: policy, Family: r.familyOf(policy)}
		for { // the smallest budget not yet taken
			next, at := math.Inf(1), -1
			for i := range r.Cells {
				c := &r.Cells[i]
				x, ok := budgetValue(c, key)
				if ok && c.Instance == instance && c.Policy == policy && x < next &&
					(len(s.X) == 0 || x > s.X[len(s.X)-1]) {
					next, at = x, i
				}
			}
			if at < 0 {
				break
			}
			addPoint(&s, r, at, next, half)
		}
		if len(s.X) > 0 {
			lo, hi, most = min(lo, s.X[0]), max(hi, s.X[len(s.X)-1]), max(most, len(s.X))
			f.Series = append(f.Series, s)
		}
	}
	if most < 3 {
		return report.Figure{}, false
	}
	for i := range r.Cells {
		if c := &r.Cells[i]; c.Instance == instance && c.Budget == keyed.None {
			s := report.Series{Policy: c.Policy, Label: c.Policy + ", no privacy", Budget: keyed.None,
				Family: r.family(c), Plain: true}
			addPoint(&s, r, i, lo, half)
			addPoint(&s, r, i, hi, half)
			f.Series = append(f.Series, s)
		}
	}
	boundsAgainst(&f, m, instance, key)
	f.Note += plainNote(f)
	return f, true
}

// boundsAgainst adds the lower bounds at the horizon, a point for each budget. Which theorem is the
// strongest can change along the way.
func boundsAgainst(f *report.Figure, m *Manifest, instance, key string) {
	type point struct{ x, y float64 }
	points := map[string][]point{}
	value := map[string]privacy.Budget{}
	for i := range m.Cells {
		value[m.Cells[i].Budget] = m.Cells[i].PrivacyBudget()
	}
	for _, b := range m.Bounds {
		if x, ok := budgetNumber(value[b.Budget], key); ok && b.Instance == instance {
			points[boundLabel(b)] = append(points[boundLabel(b)], point{x, b.Regret[len(b.Regret)-1]})
		}
	}
	for _, label := range slices.Sorted(maps.Keys(points)) {
		slices.SortFunc(points[label], func(a, b point) int { return cmp.Compare(a.x, b.x) })
		s := report.Series{Label: label}
		for _, p := range points[label] {
			s.X, s.Mean = append(s.X, p.x), append(s.Mean, p.y)
		}
		f.Series = append(f.Series, s)
	}
}

// addPoint is one more point: regret at the horizon of cell i.
func addPoint(s *report.Series, r *Results, i int, x, half float64) {
	c := &r.Cells[i]
	s.Void = s.Void || void(r, c)
	s.X = append(s.X, x)
	point(s, &c.Regret, len(c.Regret.Mean)-1, half, r.Manifest.Runs)
}
