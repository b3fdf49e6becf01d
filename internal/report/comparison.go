package report

import (
	"math"
	"slices"
	"strings"

	"github.com/sotto-dp/sotto/internal/words"
)

// Table is the comparison as a table, for a terminal, a page, or another's page: plain text,
// grouped by instance, with footnotes that say which test, which correction and how many runs.
func (c Comparison) Table() Table {
	t := c.table(false)
	for _, g := range t.Groups {
		for i, row := range g.Rows {
			if g.Void(i) {
				row[0] += " (" + NoGuarantee + ")"
			}
		}
	}
	t.of = &c
	return t
}

// versus heads the column that says how a policy compares with the best one.
const versus = "vs best"

// A column of a comparison, if it is shown.
type column struct {
	shown bool
	head  string
	cell  func(rowText) string
}

// rowText is a row whose every cell is text.
type rowText struct {
	policy, budget, mean, half, bound, ratio, verdict, runs, median, q05, q95 string
}

// table turns the numbers into text, for a terminal or for a page. The page has words where the
// terminal has a sign and a footnote.
func (c Comparison) table(terminal bool) Table {
	metric := Clean(c.Metric)
	if metric == "" {
		metric = "mean"
	}
	level, alpha := c.Level, c.Alpha
	if level == 0 {
		level = 0.95
	}
	if alpha == 0 {
		alpha = 0.05
	}
	var anyVoid, anyAlike, anyTested, quantiles, bounds bool
	sameRuns := true
	rows := make([]rowText, len(c.Rows))
	for i, r := range c.Rows {
		row := rowText{policy: Cut(Clean(r.Policy), 48), budget: Cut(Clean(r.Budget), 32), bound: "–",
			ratio: "–", verdict: "not tested", runs: words.Whole(r.Runs), q05: words.Number(r.Q05),
			median: words.Number(r.Median), q95: words.Number(r.Q95)}
		row.mean, row.half = words.Measured(r.Mean, r.Half)
		if !math.IsNaN(r.Q05) || !math.IsNaN(r.Median) || !math.IsNaN(r.Q95) {
			quantiles = true
		}
		if r.Bound > 0 && !math.IsInf(r.Bound, 0) {
			row.bound, bounds = Ratio(r.Bound), true
		}
		if r.Ratio > 0 && !math.IsInf(r.Ratio, 0) {
			row.ratio = Ratio(r.Ratio) + "×"
		}
		switch {
		case r.Best:
			row.verdict = "best"
		case r.Unranked:
			row.verdict = "not ranked"
		case math.IsNaN(r.P):
		case r.P <= alpha:
			row.verdict = "worse, " + pValue(r.P)
			anyTested = true
		default:
			row.verdict = "not significant (" + pValue(r.P) + ")"
			if terminal {
				row.verdict = "~ (" + pValue(r.P) + ")"
			}
			anyTested, anyAlike = true, true
		}
		if anyVoid = anyVoid || r.Void; r.Void && terminal {
			row.policy += " †"
		}
		sameRuns = sameRuns && r.Runs == c.Rows[0].Runs
		rows[i] = row
	}
	if terminal { // the signs stand in one column, the digits end in one
		var mean, half int
		for _, r := range rows {
			mean, half = max(mean, columns(r.mean)), max(half, columns(r.half))
		}
		for i, r := range rows {
			rows[i].mean = strings.Repeat(" ", mean-columns(r.mean)) + r.mean
			rows[i].half = strings.Repeat(" ", half-columns(r.half)) + r.half
		}
	}

	t := Table{Title: Clean(c.Title), Text: 2}
	all := []column{
		{true, "policy", func(r rowText) string { return r.policy }},
		{true, "budget", func(r rowText) string { return r.budget }},
		{true, metric, func(r rowText) string { return r.mean + " ± " + r.half }},
		{quantiles && terminal, "median", func(r rowText) string { return r.median }},
		{quantiles && terminal, "q95", func(r rowText) string { return r.q95 }},
		{bounds, "×LB", func(r rowText) string { return r.bound }},
		{true, "ratio", func(r rowText) string { return r.ratio }},
		{true, versus, func(r rowText) string { return r.verdict }},
		{quantiles && !terminal, "median", func(r rowText) string { return r.median }},
		{quantiles && !terminal, "5 %", func(r rowText) string { return r.q05 }},
		{quantiles && !terminal, "95 %", func(r rowText) string { return r.q95 }},
		{!sameRuns, "runs", func(r rowText) string { return r.runs }},
	}
	shown := slices.DeleteFunc(all, func(c column) bool { return !c.shown })
	for i, x := range shown {
		t.Head = append(t.Head, x.head)
		if x.head == versus {
			t.verdict = i
		}
	}
	for i, r := range c.Rows {
		if i == 0 || r.Instance != c.Rows[i-1].Instance {
			t.Groups = append(t.Groups, Group{Head: Clean(r.Instance)})
		}
		g := &t.Groups[len(t.Groups)-1]
		var cells []string
		for _, x := range shown {
			cells = append(cells, x.cell(rows[i]))
		}
		g.Rows, g.of = append(g.Rows, cells), append(g.of, r)
	}
	if len(c.Rows) == 0 {
		t.Notes = append(t.Notes, "no results")
		return t
	}

	runs := ""
	if sameRuns {
		runs = "; n = " + words.Whole(c.Rows[0].Runs) + " runs a row"
		if c.Rows[0].Runs == 1 {
			runs = "; n = 1 run a row, which bounds nothing and tests nothing"
		}
	}
	over := ""
	if quantiles && terminal {
		over = "; median and q95, the 95 % quantile, over runs"
	}
	t.Notes = append(t.Notes, "± half width of the "+percent(level)+" interval of the mean"+over+runs)
	if anyTested {
		note := "vs best: p-values"
		if c.Test != "" {
			note = "vs best: " + Clean(c.Test)
		}
		if c.Correction != "" {
			note += ", p-values corrected by " + Clean(c.Correction)
		} else {
			note += ", p-values not corrected for their number"
		}
		switch {
		case anyAlike && terminal:
			note += "; ~ not significant at " + percent(alpha)
		default:
			note += "; tested at " + percent(alpha)
		}
		t.Notes = append(t.Notes, note)
	}
	if bounds {
		t.Notes = append(t.Notes, "×LB: over log T · Σ Δ_a/d_ε(μ_a, μ*), below which no "+
			"consistent ε-DP policy stays as T grows; at this T it can")
	}
	if anyVoid && terminal {
		t.Notes = append(t.Notes, "† "+NoGuarantee)
	}
	for _, n := range c.Notes {
		t.Notes = append(t.Notes, Clean(n))
	}
	return t
}

// Ratio writes a mean over the best one: 1 to 9.99 with two decimals, then fewer.
func Ratio(r float64) string {
	switch {
	case r < 9.995:
		return words.Fixed(r, 2)
	case r < 99.95:
		return words.Fixed(r, 1)
	case r < 1e9:
		return words.Fixed(r, 0)
	}
	return words.Number(r)
}

// Cut shortens s to a number of terminal columns.
func Cut(s string, width int) string {
	if columns(s) <= width {
		return s
	}
	w := 1
	for i, r := range s {
		if w += runeColumns(r); w > width {
			return s[:i] + "…"
		}
	}
	return s
}
