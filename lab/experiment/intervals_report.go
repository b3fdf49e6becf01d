package experiment

import (
	"fmt"
	"math"
	"slices"

	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/internal/report"
	"github.com/sotto-dp/sotto/internal/words"
)

// reportIntervals adds what the intervals of the runs were, if there are any: two tables, of means
// and of differences, and a figure for each instance and budget.
func reportIntervals(r *Results, to *report.Page) error {
	m := r.Manifest
	if m.Intervals == 0 {
		return nil
	}
	each := confidenceText(m.Intervals)
	means := report.Table{Title: each + " intervals for the arms' means", Text: 2,
		Head: []string{"policy", "budget", "arm", "mean", "plays", "released", "coverage", "its interval",
			"at all times", "width", "median", "× plain"},
		Notes: []string{
			"made of the releases of each run at its end; each interval by itself has its confidence, at " +
				"all times together; " + rowNote(m.Runs),
			"coverage: runs whose interval has the mean in it, with the Clopper–Pearson interval; at all " +
				"times: those in which it always had, looked at whenever releases held 1/64 more rewards",
			"× plain: mean width over that of the interval without privacy from all rewards of the run, " +
				"those included that were in no release yet"}}
	gaps := report.Table{Title: each + " intervals for differences to the best arm", Text: 2,
		Head: []string{"policy", "budget", "arm", "difference", "coverage", "its interval", "width",
			"median", "× plain"}}
	for _, instance := range r.instances() {
		a, b := report.Group{Head: instance}, report.Group{Head: instance}
		for i := range r.Cells {
			c := &r.Cells[i]
			if c.Instance != instance {
				continue
			}
			for _, arm := range c.Intervals {
				head := []string{playerText(c), symbols(c.Budget), fmt.Sprint(arm.Arm)}
				row, err := spreadRow(arm.Spread)
				if err != nil {
					return err
				}
				line := append(slices.Clone(head), shown(arm.Mean), shown(math.Round(arm.Plays)),
					shown(math.Round(arm.Released)), row[0], row[1],
					shown(round(float64(arm.Held)/float64(arm.Runs))))
				a.Rows = append(a.Rows, append(line, row[2:]...))
				if d := arm.Difference; d != nil {
					if row, err = spreadRow(d.Spread); err != nil {
						return err
					}
					b.Rows = append(b.Rows, slices.Concat(head, []string{shown(d.Mean)}, row))
				}
			}
		}
		means.Groups, gaps.Groups = append(means.Groups, a), append(gaps.Groups, b)
		budgets := distinct(r, func(c *CellResult) (string, bool) {
			return c.Row(), c.Instance == instance && c.Budget != keyed.None
		})
		if len(budgets) == 0 {
			budgets = []string{keyed.None}
		}
		for _, budget := range budgets {
			if f, ok := intervalsFigure(r, instance, budget); ok {
				to.Figures = append(to.Figures, f)
			}
		}
	}
	to.Tables = append(to.Tables, means, gaps)
	return nil
}

func confidenceText(x float64) string {
	return fmt.Sprintf("%v %%", math.Round(x*1e10)/1e8) // 0.95 is 95, and 0.999 is 99.9
}

// spreadRow is coverage, its interval, widths, and their ratio.
func spreadRow(s Spread) ([]string, error) {
	share, lo, hi, err := s.Coverage()
	if err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	return []string{shown(round(share)), ends(lo, hi), shown(s.Width), shown(s.Median),
		report.Ratio(s.Ratio)}, nil
}

// mostBars is the largest number of arms that a figure of intervals has room for.
const mostBars = 12

// intervalsFigure has a bar an arm and policy, of those with the budget and those that have none,
// with the arms' means.
func intervalsFigure(r *Results, instance, budget string) (report.Figure, bool) {
	m := r.Manifest
	f := report.Figure{
		ID:       report.Stem("intervals-" + instance + "-" + budget),
		Title:    confidenceText(m.Intervals) + " intervals for the arms of " + instance,
		Subtitle: symbols(budget) + ", " + words.Whole(m.Runs) + " runs", XLabel: "arm", YLabel: "mean",
		Whole: true,
		Note: "Bars are the medians of the ends of the runs' intervals, from their releases alone; short " +
			"lines are the arms' means.",
	}
	var cells []*CellResult
	for i := range r.Cells {
		if c := &r.Cells[i]; c.Instance == instance && (c.Row() == budget || c.Budget == keyed.None) {
			cells = append(cells, c)
		}
	}
	if len(cells) == 0 || len(cells[0].Intervals) > mostBars {
		return f, false
	}
	const wide = 0.7 // of the room of an arm
	step := wide / float64(len(cells))
	truth := report.Series{Policy: "mean", Label: "mean", Step: true}
	add := func(s *report.Series, x, mean, lo, hi float64) {
		s.X, s.Mean = append(s.X, x), append(s.Mean, mean)
		s.Lo, s.Hi = append(s.Lo, lo), append(s.Hi, hi)
	}
	for _, a := range cells[0].Intervals {
		x := float64(a.Arm)
		truth.X = append(truth.X, x-wide/2, x+wide/2, x+0.5)
		truth.Mean = append(truth.Mean, a.Mean, a.Mean, math.NaN()) // and a gap
	}
	for k, c := range cells {
		s := report.Series{Policy: c.Policy, Budget: symbols(c.Budget), Family: r.family(c),
			Void: void(r, c)}
		if c.Budget == keyed.None {
			s.Plain, s.Label = true, c.Policy+", no privacy"
		}
		for _, a := range c.Intervals {
			x := float64(a.Arm) + (float64(k)-float64(len(cells)-1)/2)*step
			add(&s, x, (a.Lo+a.Hi)/2, a.Lo, a.Hi)
			add(&s, x+step/2, math.NaN(), math.NaN(), math.NaN())
		}
		f.Series = append(f.Series, s)
	}
	f.Series = append(f.Series, truth)
	return f, true
}
