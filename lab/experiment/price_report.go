package experiment

import (
	"fmt"
	"math"
	"strings"

	"github.com/sotto-dp/sotto/internal/report"
	"github.com/sotto-dp/sotto/internal/stats"
	"github.com/sotto-dp/sotto/internal/words"
)

// priceTable is the price of privacy at the horizon of each cell that has a non-private twin; ok is
// false if none has.
func priceTable(r *Results) (g report.Table, ok bool) {
	m := r.Manifest
	g = report.Table{
		Title: "Price of privacy at T = " + words.Whole(m.Horizon), Text: 2,
		Head: []string{"policy", "budget", "difference", "price", "regret at none"},
	}
	half, voids := stats.T(m.Runs, Level), false
	// Rows of one instance follow each other, whatever order cells have.
	for _, instance := range distinct(r, func(c *CellResult) (string, bool) {
		return c.Instance, c.Twin >= 0
	}) {
		group := report.Group{Head: instance}
		for i := range r.Cells {
			c := &r.Cells[i]
			if c.Instance != instance || c.Twin < 0 {
				continue
			}
			last := len(c.Price.Mean) - 1
			difference, wide := words.Measured(c.Difference.Mean[last], width(half, c.Difference.SE[last]))
			price, off := "–", "–"
			if p := c.Price.Mean[last]; !math.IsNaN(p) {
				price, off = words.Measured(p, width(half, c.Price.SE[last]))
			}
			policy := playerText(c)
			if void(r, c) {
				policy, voids = policy+" †", true
			}
			twin := &r.Cells[c.Twin]
			group.Rows = append(group.Rows, []string{policy, symbols(c.Budget),
				difference + " ± " + wide, price + " ± " + off,
				shown(twin.Regret.Mean[last])})
		}
		g.Groups = append(g.Groups, group)
	}
	if len(g.Groups) == 0 {
		return report.Table{}, false
	}
	g.Notes = append(g.Notes,
		"difference: regret above that of the same policy without privacy, run by run in the "+
			"same worlds; price: the difference over that regret",
		"± half width of the 95 % interval, paired, that of the price by linearisation; "+rowNote(m.Runs))
	if voids {
		g.Notes = append(g.Notes, "† "+report.NoGuarantee)
	}
	return g, true
}

// width is the half width of an interval; a standard error of one run is not known.
func width(half, se float64) float64 {
	if math.IsNaN(se) {
		return math.Inf(1)
	}
	return half * se
}

// priceFigures are, for each policy with a twin on the instance, the difference against the budget at
// decades of rounds, where there are three budgets of a kind or more, and the price against rounds.
func priceFigures(r *Results, instance string) []report.Figure {
	var out []report.Figure
	policies := distinct(r, func(c *CellResult) (string, bool) {
		return c.Policy, c.Instance == instance && c.Twin >= 0
	})
	for _, policy := range policies {
		stem := instance
		if len(policies) > 1 {
			stem += "-" + policy
		}
		for _, kind := range budgetAxes() {
			if f, ok := differenceFigure(r, instance, policy, kind.key, kind.symbol); ok {
				f.ID = report.Stem("difference-" + stem + "-by-" + kind.key)
				out = append(out, f)
			}
		}
		f := priceFigure(r, instance, policy)
		f.ID = report.Stem("price-" + stem)
		out = append(out, f)
	}
	return out
}

// decades are the places of the checkpoints nearest to 10³, 10⁴, …, and of the horizon.
func decades(checkpoints []int) []int { return nearest(checkpoints, 1) }

// nearest are the places of the checkpoints nearest to these multiples, each below 10, of 10³, 10⁴, …,
// and of the horizon.
func nearest(checkpoints []int, of ...float64) []int {
	var out []int
	last := len(checkpoints) - 1
	for decade := 1000.0; decade < float64(checkpoints[last]); decade *= 10 {
		for _, m := range of {
			t := m * decade
			best, at := math.Log(1.25), -1
			for i, c := range checkpoints {
				if off := math.Abs(math.Log(float64(c) / t)); off < best {
					best, at = off, i
				}
			}
			if t < float64(checkpoints[last])*0.8 && at >= 0 && at != last {
				out = append(out, at)
			}
		}
	}
	return append(out, last)
}

// differenceFigure is the difference to the twin against ε or ρ: a line for each decade of rounds.
func differenceFigure(r *Results, instance, policy, key, symbol string) (report.Figure, bool) {
	m := r.Manifest
	f := report.Figure{
		Title:    fmt.Sprintf("What privacy costs %s on %s", policy, instance),
		Subtitle: "regret with privacy minus regret without, in the same worlds",
		XLabel:   "budget " + symbol, YLabel: "difference of regrets", LogX: true,
		Note: bandNote(m, "budget"),
	}
	half := stats.T(m.Runs, Level)
	var order []int // cells, by their budget
	for {
		next, at := math.Inf(1), -1
		for i := range r.Cells {
			c := &r.Cells[i]
			if c.Instance != instance || c.Policy != policy || c.Twin < 0 {
				continue
			}
			x, ok := budgetValue(c, key)
			if ok && x < next {
				if n := len(order); n > 0 {
					if before, _ := budgetValue(&r.Cells[order[n-1]], key); x <= before {
						continue
					}
				}
				next, at = x, i
			}
		}
		if at < 0 {
			break
		}
		order = append(order, at)
	}
	if len(order) < 3 {
		return report.Figure{}, false
	}
	for _, k := range decades(m.Checkpoints) {
		s := report.Series{Policy: policy, Label: "t = " + words.Whole(m.Checkpoints[k])}
		for _, i := range order {
			c := &r.Cells[i]
			x, _ := budgetValue(c, key)
			s.Void = s.Void || void(r, c)
			s.X = append(s.X, x)
			point(&s, &c.Difference, k, half, m.Runs)
		}
		f.Series = append(f.Series, s)
	}
	return f, true
}

// priceFigure is the price of privacy against rounds: a line for each budget.
func priceFigure(r *Results, instance, policy string) report.Figure {
	m := r.Manifest
	f := report.Figure{
		Title:    fmt.Sprintf("Price of privacy of %s on %s", policy, instance),
		Subtitle: "difference of regrets over the regret without privacy",
		XLabel:   "round t", YLabel: "price of privacy", LogX: true,
		Note: strings.Replace(bandNote(m, "checkpoint"), "means of", "ratios of means over", 1),
	}
	half := stats.T(m.Runs, Level)
	for i := range r.Cells {
		c := &r.Cells[i]
		if c.Instance != instance || c.Policy != policy || c.Twin < 0 {
			continue
		}
		s := report.Series{Policy: policy, Budget: symbols(c.Budget), Label: symbols(c.Budget),
			Void: void(r, c)}
		for k, t := range m.Checkpoints {
			s.X = append(s.X, float64(t))
			point(&s, &c.Price, k, half, m.Runs)
		}
		// A ratio of means has no quantiles over runs.
		s.Q05, s.Q50, s.Q95 = nil, nil, nil
		f.Series = append(f.Series, s)
	}
	return f
}
