package experiment

import (
	"fmt"

	"github.com/sotto-dp/sotto/internal/report"
	"github.com/sotto-dp/sotto/internal/stats"
	"github.com/sotto-dp/sotto/internal/words"
)

// adjacency says in what neighbouring worlds differ.
func (stoppingKind) adjacency(*Results) string { return "one sample replaced" }

// report is a grid: samples, failures, and the bounds beside them.
func (stoppingKind) report(r *Results, to *report.Page) error {
	grid, err := stoppingTable(r)
	to.Tables = []report.Table{grid}
	return err
}

// stoppingTable tells of each rule on each law how many samples it took and how often it failed.
func stoppingTable(r *Results) (report.Table, error) {
	m := r.Manifest
	g := report.Table{
		Title: "Samples until the rule stops", Text: 2,
		Head: []string{"rule", "budget", "samples", "median", "95 %", "failures", "95 % interval",
			"β", "unfinished", "t_U", "lower bound"},
	}
	unfinished := 0
	for i := range r.Cells {
		c := &r.Cells[i]
		if len(g.Groups) == 0 || r.Cells[i-1].Instance != c.Instance {
			g.Groups = append(g.Groups, report.Group{Head: fmt.Sprintf("%s, mean %s", c.Instance,
				shown(c.Stopping.Mean))})
		}
		lo, hi, err := stats.ClopperPearson(c.Failures, m.Runs, Level)
		if err != nil {
			return report.Table{}, fmt.Errorf("report: %s: %w", c.Label(), err)
		}
		mean, half := stats.Half(c.FinalSamples, Level)
		average, width := words.Measured(mean, half)
		group := &g.Groups[len(g.Groups)-1]
		group.Rows = append(group.Rows, []string{
			playerText(c), symbols(c.Budget), average + " ± " + width,
			shown(c.Samples.Q50[0]), shown(c.Samples.Q95[0]),
			shown(float64(c.Failures) / float64(m.Runs)),
			ends(lo, hi), shown(c.Stopping.Beta),
			shown(float64(c.Unfinished)), optional(c.Stopping.UpperBound), optional(c.Stopping.LowerBound),
		})
		unfinished += c.Unfinished
	}
	g.Notes = append(g.Notes,
		"± half width of the 95 % interval of the mean; "+rowNote(m.Runs),
		"failures: the share of runs whose estimate is off by more than α|μ|, its "+
			"Clopper–Pearson interval, and β, the share that is allowed",
		"t_U: dp-exp-nas stops within so many samples with probability 1 − β [Sajed 2019, Theorem "+
			"4.1.3]; lower bound: of any private rule, "+
			"on the two-point law of this mean [Sajed 2019, Theorem 4.2.1]",
	)
	if unfinished > 0 {
		g.Notes = append(g.Notes, fmt.Sprintf("unfinished: runs that reached the cap of %s "+
			"samples without an estimate; they count as so many samples, and not as failures",
			words.Whole(m.Horizon)))
	}
	return g, nil
}
