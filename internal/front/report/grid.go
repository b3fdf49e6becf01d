package report

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/sotto-dp/sotto/experiment"
	"github.com/sotto-dp/sotto/internal/base/interval"
)

// WriteText writes the tables and grids for a terminal.
func (r Report) WriteText(w io.Writer) error {
	for i, t := range r.Tables {
		if err := apart(w, i > 0); err != nil {
			return err
		}
		if err := t.WriteText(w); err != nil {
			return err
		}
	}
	for i, g := range r.Grids {
		if err := apart(w, i > 0 || len(r.Tables) > 0); err != nil {
			return err
		}
		if err := g.WriteText(w); err != nil {
			return err
		}
	}
	return nil
}

// apart is an empty line, if there is something to keep apart.
func apart(w io.Writer, yes bool) error {
	if !yes {
		return nil
	}
	_, err := fmt.Fprintln(w)
	return err
}

// clean is the grid with text that is safe to show. Rows must be as long as the head.
func (g Grid) clean() (Grid, error) {
	all := func(in []string) []string {
		out := make([]string, len(in))
		for i, s := range in {
			out[i] = clean(s)
		}
		return out
	}
	out := Grid{Title: clean(g.Title), Head: all(g.Head), Text: g.Text, Notes: all(g.Notes)}
	for _, group := range g.Groups {
		c := GridGroup{Head: clean(group.Head)}
		for i, row := range group.Rows {
			if len(row) != len(g.Head) {
				return Grid{}, fmt.Errorf("report: grid %q: row %d of %s has %d cells, the head %d",
					g.Title, i, group.Head, len(row), len(g.Head))
			}
			c.Rows = append(c.Rows, all(row))
		}
		out.Groups = append(out.Groups, c)
	}
	return out, nil
}

// WriteText writes the grid for a terminal: plain text, columns aligned.
func (g Grid) WriteText(w io.Writer) error {
	g, err := g.clean()
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	if g.Title != "" {
		fmt.Fprintln(out, g.Title)
	}
	widths := make([]int, len(g.Head))
	measure := func(row []string) {
		for i, s := range row {
			widths[i] = max(widths[i], columns(s))
		}
	}
	measure(g.Head)
	for _, group := range g.Groups {
		for _, row := range group.Rows {
			measure(row)
		}
	}
	line := func(row []string) {
		var b strings.Builder
		for i, s := range row {
			gap := strings.Repeat(" ", widths[i]-columns(s))
			if i < g.Text {
				b.WriteString("  " + s + gap)
			} else {
				b.WriteString("  " + gap + s)
			}
		}
		fmt.Fprintln(out, strings.TrimRight(b.String(), " "))
	}
	for _, group := range g.Groups {
		fmt.Fprintf(out, "\n%s\n", group.Head)
		line(g.Head)
		for _, row := range group.Rows {
			line(row)
		}
	}
	if len(g.Notes) > 0 {
		fmt.Fprintln(out)
	}
	for _, n := range g.Notes {
		fmt.Fprintln(out, n)
	}
	return out.Flush()
}

// stoppingGrid tells of each rule on each law how many samples it took and how often it failed.
func stoppingGrid(r *experiment.Results) (Grid, error) {
	m := r.Manifest
	g := Grid{
		Title: "Samples until the rule stops", Text: 2,
		Head: []string{"rule", "budget", "samples", "median", "95 %", "failures", "95 % interval",
			"β", "unfinished", "t_U", "lower bound"},
	}
	runs, unfinished := fmt.Sprintf("n = %d runs a row", m.Runs), 0
	if m.Runs == 1 {
		runs = "n = 1 run a row, which bounds nothing"
	}
	for i := range r.Cells {
		c := &r.Cells[i]
		if len(g.Groups) == 0 || r.Cells[i-1].Instance != c.Instance {
			g.Groups = append(g.Groups, GridGroup{Head: fmt.Sprintf("%s, mean %s", c.Instance,
				number(c.Stopping.Mean, ""))})
		}
		lo, hi, err := interval.ClopperPearson(c.Failures, m.Runs, experiment.Level)
		if err != nil {
			return Grid{}, fmt.Errorf("report: %s: %w", c.Label(), err)
		}
		mean, half := interval.Half(c.FinalSamples, experiment.Level)
		average, width := measured(mean, half, "")
		bound := func(x float64) string {
			if x == 0 {
				return "–"
			}
			return number(x, "")
		}
		group := &g.Groups[len(g.Groups)-1]
		group.Rows = append(group.Rows, []string{
			cut(clean(c.Policy), 48), symbols(c.Budget), average + " ± " + width,
			number(c.Samples.Q50[0], ""), number(c.Samples.Q95[0], ""),
			number(float64(c.Failures)/float64(m.Runs), ""),
			"[" + number(round(lo), "") + ", " + number(round(hi), "") + "]", number(c.Stopping.Beta, ""),
			number(float64(c.Unfinished), ""), bound(c.Stopping.UpperBound), bound(c.Stopping.LowerBound),
		})
		unfinished += c.Unfinished
	}
	g.Notes = append(g.Notes,
		"± half width of the 95 % interval of the mean; "+runs,
		"failures: the share of runs whose estimate is off by more than α|μ|, its "+
			"Clopper–Pearson interval, and β, the share that is allowed",
		"t_U: dp-exp-nas stops within so many samples with probability 1 − β (002 Theorem "+
			"4.1.3); lower bound: of any private rule, "+
			"on the two-point law of this mean (002 Theorem 4.2.1)",
	)
	if unfinished > 0 {
		g.Notes = append(g.Notes, fmt.Sprintf("unfinished: runs that reached the cap of %s "+
			"samples without an estimate; they count as so many samples, and not as failures",
			whole(m.Horizon)))
	}
	return g, nil
}

// round leaves four decimals of a proportion.
func round(p float64) float64 { return math.Round(p*1e4) / 1e4 }
