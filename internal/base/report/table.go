package report

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// WriteText writes the table for a terminal: plain text, columns aligned, grouped by instance, with
// footnotes that say which test, which correction and how many runs.
func (t Table) WriteText(w io.Writer) error {
	out := bufio.NewWriter(w)
	v := t.view(true)
	if v.Title != "" {
		fmt.Fprintln(out, v.Title)
	}
	cells := [][]string{{"policy", "budget", v.Metric, "", "median", "q95", "×LB", "ratio", "vs best", "runs"}}
	for _, g := range v.Groups {
		for _, r := range g.Rows {
			policy := r.Policy
			if r.Void {
				policy += " †"
			}
			cells = append(cells, []string{policy, r.Budget, r.Mean, "± " + r.Half, r.Median, r.Q95,
				r.Bound, r.Ratio, r.Verdict, r.Runs})
		}
	}
	if v.SameRuns {
		for i := range cells {
			cells[i] = cells[i][:9]
		}
	}
	widths := make([]int, len(cells[0]))
	for i, row := range cells {
		for c, s := range row {
			if i == 0 && c == 2 {
				continue // the metric's head spans mean and half width
			}
			widths[c] = max(widths[c], columns(s))
		}
	}
	widths[2] = max(widths[2], columns(v.Metric)-widths[3]-1)

	line := func(row []string, head bool) {
		var b strings.Builder
		for c, s := range row {
			gap := strings.Repeat(" ", max(0, widths[c]-columns(s)))
			switch {
			case head && c == 2:
				b.WriteString("  " + strings.Repeat(" ", max(0, widths[2]+1+widths[3]-columns(s))) + s)
			case head && c == 3:
			case (c == 4 || c == 5) && !v.Quantiles, c == 6 && !v.Bounds:
			case c == 2 || c >= 4 && c != 8:
				b.WriteString("  " + gap + s)
			case c == 3:
				// The sign stands in one column, the digits end in one.
				b.WriteString(" ±" + gap + strings.TrimPrefix(s, "±"))
			default:
				b.WriteString("  " + s + gap)
			}
		}
		fmt.Fprintln(out, strings.TrimRight(b.String(), " "))
	}
	next := 1
	for _, g := range v.Groups {
		fmt.Fprintf(out, "\n%s\n", g.Instance)
		line(cells[0], true)
		for range g.Rows {
			line(cells[next], false)
			next++
		}
	}
	if len(v.Notes) > 0 {
		fmt.Fprintln(out)
	}
	for _, n := range v.Notes {
		fmt.Fprintln(out, n)
	}
	return out.Flush()
}

// tableView is a table whose every cell is text; terminal and page differ in the layout alone.
type tableView struct {
	Title, Metric string
	Groups        []groupView
	SameRuns      bool // the runs are told in a note, not in a column
	Quantiles     bool // some row has quantiles
	Bounds        bool // some row has a lower bound
	Notes         []string
}

type groupView struct {
	Instance string
	Rows     []rowView
}

type rowView struct {
	Policy, Budget, Mean, Half, Bound, Ratio, Verdict, Runs, Median, Q05, Q95 string
	Best, Void                                                                bool
}

// view turns the numbers into text, for a terminal or for a page. The page has thousands set apart,
// and words where the terminal has a sign and a footnote.
func (t Table) view(terminal bool) tableView {
	sep := string(thin)
	if terminal {
		sep = ""
	}
	v := tableView{Title: Clean(t.Title), Metric: Clean(t.Metric), SameRuns: true}
	if v.Metric == "" {
		v.Metric = "mean"
	}
	level, alpha := t.Level, t.Alpha
	if level == 0 {
		level = 0.95
	}
	if alpha == 0 {
		alpha = 0.05
	}
	anyVoid, anyAlike, anyTested := false, false, false
	for i, r := range t.Rows {
		if i == 0 || r.Instance != t.Rows[i-1].Instance {
			v.Groups = append(v.Groups, groupView{Instance: Clean(r.Instance)})
		}
		row := rowView{
			Policy: Cut(Clean(r.Policy), 48), Budget: Cut(Clean(r.Budget), 32), Bound: "–",
			Ratio: "–", Verdict: "not tested", Runs: strconv.Itoa(r.Runs),
			Best: r.Best, Void: r.Void,
		}
		row.Mean, row.Half = Measured(r.Mean, r.Half, sep)
		row.Q05, row.Median, row.Q95 = Number(r.Q05, sep), Number(r.Median, sep), Number(r.Q95, sep)
		if !math.IsNaN(r.Q05) || !math.IsNaN(r.Median) || !math.IsNaN(r.Q95) {
			v.Quantiles = true
		}
		if r.Bound > 0 && !math.IsInf(r.Bound, 0) {
			row.Bound, v.Bounds = Ratio(r.Bound, sep), true
		}
		if r.Ratio > 0 && !math.IsInf(r.Ratio, 0) {
			row.Ratio = Ratio(r.Ratio, sep) + "×"
		}
		switch {
		case r.Best:
			row.Verdict = "best"
		case r.Unranked:
			row.Verdict = "not ranked"
		case math.IsNaN(r.P):
		case r.P <= alpha:
			row.Verdict = "worse, " + pValue(r.P)
			anyTested = true
		default:
			row.Verdict = "not significant (" + pValue(r.P) + ")"
			if terminal {
				row.Verdict = "~ (" + pValue(r.P) + ")"
			}
			anyTested, anyAlike = true, true
		}
		anyVoid = anyVoid || r.Void
		v.SameRuns = v.SameRuns && r.Runs == t.Rows[0].Runs
		g := &v.Groups[len(v.Groups)-1]
		g.Rows = append(g.Rows, row)
	}
	if len(t.Rows) == 0 {
		v.Notes = append(v.Notes, "no results")
		return v
	}

	runs := ""
	if v.SameRuns {
		runs = fmt.Sprintf("; n = %d runs a row", t.Rows[0].Runs)
		if t.Rows[0].Runs == 1 {
			runs = "; n = 1 run a row, which bounds nothing and tests nothing"
		}
	}
	over := ""
	if v.Quantiles && terminal {
		over = "; median and q95, the 95 % quantile, over runs"
	}
	v.Notes = append(v.Notes, "± half width of the "+percent(level)+" interval of the mean"+over+runs)
	if anyTested {
		note := "vs best: p-values"
		if t.Test != "" {
			note = "vs best: " + Clean(t.Test)
		}
		if t.Correction != "" {
			note += ", p-values corrected by " + Clean(t.Correction)
		} else {
			note += ", p-values not corrected for their number"
		}
		switch {
		case anyAlike && terminal:
			note += "; ~ not significant at " + percent(alpha)
		default:
			note += "; tested at " + percent(alpha)
		}
		v.Notes = append(v.Notes, note)
	}
	if v.Bounds {
		v.Notes = append(v.Notes, "×LB: over log T · Σ Δ_a/d_ε(μ_a, μ*), below which no "+
			"consistent ε-DP policy stays as T grows; at this T it can")
	}
	if anyVoid && terminal {
		v.Notes = append(v.Notes, "† "+NoGuarantee)
	}
	for _, n := range t.Notes {
		v.Notes = append(v.Notes, Clean(n))
	}
	return v
}

// Ratio writes a mean over the best one: 1 to 9.99 with two decimals, then fewer.
func Ratio(r float64, sep string) string {
	switch {
	case r < 9.995:
		return Fixed(r, 2, sep)
	case r < 99.95:
		return Fixed(r, 1, sep)
	case r < 1e9:
		return Fixed(r, 0, sep)
	}
	return Number(r, sep)
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
