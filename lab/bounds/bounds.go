// Package bounds shows bounds on the regret: as a table, and drawn against the budget or the horizon.
package bounds

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/sotto-dp/sotto/bound"
	"github.com/sotto-dp/sotto/internal/report"
	"github.com/sotto-dp/sotto/lab/experiment"
	"github.com/sotto-dp/sotto/privacy"
)

// Table is what bounds a problem, at each horizon: lower bounds, upper ones, and where privacy begins
// to cost.
func Table(p experiment.BoundProblem, horizons []float64) (report.Table, error) {
	all, err := bound.Regret(p.Problem)
	if err != nil {
		return report.Table{}, err
	}
	g := report.Table{Title: p.Instance + ", " + Budget(p.Budget),
		Head: []string{"of", "kind", "bound", "formula", "where"}, Text: 5}
	for _, T := range horizons {
		g.Head = append(g.Head, "T = "+strconv.FormatFloat(T, 'g', -1, 64))
	}
	groups := []report.Group{{Head: "Lower bounds on this instance"},
		{Head: "Lower bounds on some instance: what the worst case costs"}, {Head: "Upper bounds"}}
	var notes []string
	note := func(text string) string {
		if text == "" {
			return ""
		}
		i := slices.Index(notes, text)
		if i < 0 {
			notes = append(notes, text)
			i = len(notes) - 1
		}
		return " [" + strconv.Itoa(i+1) + "]"
	}
	place := func(b bound.Bound) int {
		switch {
		case !b.Lower:
			return 2
		case b.WorstCase:
			return 1
		}
		return 0
	}
	slices.SortStableFunc(all, func(a, b bound.Bound) int { return place(a) - place(b) })
	for _, b := range all {
		of, at := b.Policy, place(b)
		if b.Lower {
			of = "every policy"
		}
		kind := b.Kind.String()
		if b.Unproved && b.Kind != bound.NotProved {
			kind += ", as printed"
		}
		row := []string{of, kind, b.Name, b.Form, b.Where + note(b.Note)}
		for _, T := range horizons {
			row = append(row, boundText(b, T))
		}
		groups[at].Rows = append(groups[at].Rows, row)
	}
	groups = slices.DeleteFunc(groups, func(g report.Group) bool { return len(g.Rows) == 0 })
	edges, err := bound.Boundaries(p.Problem)
	if err != nil {
		return report.Table{}, err
	}
	regimes := report.Group{Head: "Privacy begins to cost below"}
	for _, e := range edges {
		row := []string{"budget " + e.Symbol, "", e.Name, "", e.Where + note(e.Note)}
		for _, T := range horizons {
			row = append(row, strconv.FormatFloat(e.Value(T), 'g', 4, 64))
		}
		regimes.Rows = append(regimes.Rows, row)
	}
	g.Groups = append(groups, regimes)
	for i, n := range notes {
		g.Notes = append(g.Notes, fmt.Sprintf("[%d] %s.", i+1, n))
	}
	g.Notes = append(g.Notes, "Asymptotic: what the bound comes to in the long run, its slope "+
		"times log T; regrets at T can be on its other side. Implicit: constants are not known. "+
		"Not proved: the theorem is not for these parameters or rewards, so that there is no number.")
	g.Notes = append(g.Notes, "Upper bounds are for noise that a server adds who is believed.")
	if slices.ContainsFunc(all, func(b bound.Bound) bool { return b.Unproved && b.Kind != bound.NotProved }) {
		g.Notes = append(g.Notes, "As printed: the number is the source's, while its proof gives "+
			"another or there is none. Do not rely on it.")
	}
	return g, nil
}

// boundText is a bound's value as tables have it.
func boundText(b bound.Bound, T float64) string {
	if b.Value == nil {
		return "-"
	}
	v := b.Value(T)
	switch {
	case math.IsNaN(v):
		return "-"
	case v == 0:
		return "0"
	case math.Abs(v) < 1000 || math.Abs(v) >= 1e9:
		return strconv.FormatFloat(v, 'g', 4, 64)
	}
	return strconv.FormatFloat(v, 'f', 0, 64)
}

// Budget is a budget as people write it.
func Budget(b string) string {
	return strings.NewReplacer("epsilon=", "ε=", "rho=", "ρ=", "delta=", "δ=", "alpha=", "α=",
		"none", "no privacy").Replace(b)
}

const figurePoints = 81

// Figure draws the proved bounds with a number: of the first instance, against its budgets if
// there are at least two of one kind, otherwise against T.
func Figure(problems []experiment.BoundProblem, horizons []float64) (report.Figure, error) {
	first := problems[0]
	T := slices.Max(horizons)
	f := report.Figure{ID: "bounds", Title: "Bounds on the regret", LogX: true, LogY: true, YLabel: "regret",
		Note: "Bounds that are implicit, or printed without a proof, are left out. Where T → ∞ " +
			"it is a slope times log T. Worst: some instance costs so much, not this one."}
	lo, hi, kind := math.Inf(1), 0.0, ""
	for _, p := range problems {
		key, x, ok := budgetNumber(p.Problem.Budget)
		if p.Instance == first.Instance && ok && (kind == "" || key == kind) {
			kind, lo, hi = key, min(lo, x), max(hi, x)
		}
	}
	var xs []float64
	at := func(x float64) (bound.Problem, float64) { // problem and horizon at x
		return first.Problem, x
	}
	if lo < hi {
		f.Title, f.Subtitle, f.XLabel = "Bounds on the regret against the budget",
			fmt.Sprintf("%s, T = %s", first.Instance, strconv.FormatFloat(T, 'g', -1, 64)), "budget "+kind
		at = func(x float64) (bound.Problem, float64) {
			p := first.Problem
			if p.Budget = privacy.Budget(privacy.Pure{Epsilon: x}); kind == "ρ" {
				p.Budget = privacy.ZCDP{Rho: x}
			}
			return p, T
		}
	} else {
		lo, hi = 10, max(T, 100)
		f.Subtitle, f.XLabel = first.Instance+", "+Budget(first.Budget), "horizon T"
	}
	for i := range figurePoints {
		xs = append(xs, lo*math.Pow(hi/lo, float64(i)/(figurePoints-1)))
	}
	xs[figurePoints-1] = hi
	series := map[string]int{}
	for i, x := range xs {
		p, T := at(x)
		all, err := bound.Regret(p)
		if err != nil {
			return f, err
		}
		for _, b := range all {
			if b.Unproved || b.Value == nil {
				continue
			}
			key := b.Policy + " " + b.Name
			j, ok := series[key]
			if !ok {
				label := b.Name
				switch {
				case b.Lower:
					label = "lower: " + b.Name
				case b.Name != b.Policy:
					label = b.Policy + ", " + b.Name
				}
				if b.Kind == bound.Asymptotic {
					label += ", T → ∞"
				}
				if b.Lower && b.WorstCase {
					label += ", worst"
				}
				j = len(f.Series)
				series[key] = j
				f.Series = append(f.Series, report.Series{Label: label, X: xs,
					Mean: slices.Repeat([]float64{math.NaN()}, figurePoints)})
			}
			f.Series[j].Mean[i] = b.Value(T)
		}
	}
	return f, nil
}

func budgetNumber(b privacy.Budget) (symbol string, x float64, ok bool) {
	switch b := b.(type) {
	case privacy.Pure:
		return "ε", b.Epsilon, true
	case privacy.ZCDP:
		return "ρ", b.Rho, true
	}
	return "", 0, false
}
