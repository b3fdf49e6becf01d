package experiment

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/internal/report"
	"github.com/sotto-dp/sotto/internal/stats"
	"github.com/sotto-dp/sotto/internal/words"
)

// adjacency says in what neighbouring worlds differ.
func (identifyKind) adjacency(*Results) string {
	return "one reward replaced; plays, stopping time and answer are private together"
}

// report is a grid of stopping times and errors, one of the arms' shares, and figures of stopping
// time against the budget for each instance with three budgets or more.
func (identifyKind) report(r *Results, to *report.Page) error {
	to.Facts = append([]report.Fact{{Name: "risk δ", Value: shown(r.Cells[0].Identify.Risk)}},
		to.Facts...)
	grid, err := identifyTable(r)
	if err != nil {
		return err
	}
	to.Tables = []report.Table{grid}
	if g, ok := sharesTable(r); ok {
		to.Tables = append(to.Tables, g)
	}
	for _, instance := range r.instances() {
		to.Figures = append(to.Figures, identifyFigures(r, instance)...)
	}
	return reportIntervals(r, to)
}

// identifyTable tells of each rule on each instance how long it took and how often it erred.
func identifyTable(r *Results) (report.Table, error) {
	m := r.Manifest
	has := func(f func(*IdentifyCell) float64) bool {
		return slices.ContainsFunc(r.Cells, func(c CellResult) bool { return f(c.Identify) > 0 })
	}
	lower := has(func(c *IdentifyCell) float64 { return c.LowerBound })
	upper := has(func(c *IdentifyCell) float64 { return c.AsymptoticUpper })
	g := report.Table{
		Title: "Plays until " + r.named(""), Text: 2,
		Head: []string{"rule", "budget", "stopping time", "median", "90 %", "95 %", "capped",
			"errors", "95 % interval", "error rate", "batches"},
	}
	if lower {
		g.Head = append(g.Head, "lower bound", "×LB")
	}
	if upper {
		g.Head = append(g.Head, "upper, δ→0")
	}
	capped := 0
	var claims, silent []string
	for i := range r.Cells {
		c := &r.Cells[i]
		if len(g.Groups) == 0 || r.Cells[i-1].Instance != c.Instance {
			g.Groups = append(g.Groups, report.Group{Head: identifyHead(c)})
		}
		verdict, lo, hi, err := c.Verdict()
		if err != nil {
			return report.Table{}, fmt.Errorf("report: %w", err)
		}
		mean, half := stats.Half(c.FinalStoppingTime, Level)
		average, width := words.Measured(mean, half)
		q := stats.Quantiles(c.FinalStoppingTime, 0.5, 0.9, 0.95)
		row := []string{
			playerText(c), symbols(c.Budget), average + " ± " + width, shown(q[0]),
			shown(q[1]), shown(q[2]),
			shown(float64(c.Unfinished) / float64(m.Runs)),
			words.Whole(c.Failures) + " of " + words.Whole(m.Runs),
			ends(lo, hi), string(verdict),
			shown(round(c.Batches.Mean[0])),
		}
		if lower {
			times := "–"
			if b := c.Identify.LowerBound; b > 0 {
				times = report.Ratio(mean / b)
			}
			row = append(row, optional(c.Identify.LowerBound), times)
		}
		if upper {
			row = append(row, optional(c.Identify.AsymptoticUpper))
		}
		group := &g.Groups[len(g.Groups)-1]
		group.Rows = append(group.Rows, row)
		capped += c.Unfinished
		if c.Identify.Correct == "" {
			if !slices.Contains(silent, c.Policy) {
				silent = append(silent, c.Policy)
			}
		} else if claim := c.Policy + " (" + c.Identify.Correct + ")"; !slices.Contains(claims, claim) {
			claims = append(claims, claim)
		}
	}
	risk := shown(r.Cells[0].Identify.Risk)
	g.Notes = append(g.Notes,
		"± half width of the 95 % interval of the mean; "+rowNote(m.Runs),
		"errors: wrong answers, the Clopper–Pearson interval of their rate, and what it says of "+
			"the risk δ = "+risk+"; undecided at this number of runs",
		"batches: rounds of adaptivity, how many times the rule was asked what to play [Azize "+
			"2024, Remark 5.24]",
	)
	if len(claims) > 0 {
		g.Notes = append(g.Notes, "δ-correct, as proved: "+strings.Join(claims, "; "))
	}
	if len(silent) > 0 {
		g.Notes = append(g.Notes, "no proof that it is δ-correct: "+strings.Join(silent, ", "))
	}
	g.Notes = append(g.Notes, protects(r)...)
	if lower {
		g.Notes = append(g.Notes, "lower bound: T*(ν;ε) kl(δ,1−δ) of [Azize 2024, Theorem 4.24], of the "+
			"mean plays of any δ-correct rule with this budget")
	}
	if upper {
		g.Notes = append(g.Notes, "upper, δ→0: of the mean, [Azize 2024, Theorems 5.20 and 5.23] times "+
			"log(1/δ): asymptotic, it bounds nothing at this δ")
	}
	if capped > 0 {
		g.Notes = append(g.Notes, fmt.Sprintf("capped: the share of runs that reached the cap of "+
			"%s plays: they have no answer, count as so many plays, and not as errors; the "+
			"interval says nothing of what they would have answered", words.Whole(m.Horizon)))
	}
	return g, nil
}

// named says what is named of an instance, of all of them if it is empty, by the goal of its rules.
func (r *Results) named(instance string) string {
	of := ""
	if instance != "" {
		of = " of " + instance
	}
	goals := map[catalog.Goal]bool{}
	for i := range r.Cells {
		if c := &r.Cells[i]; instance == "" || c.Instance == instance {
			goals[c.Identify.Goal] = true
		}
	}
	switch {
	case len(goals) > 1:
		return "each rule has its answer" + of
	case goals[catalog.GoalTop]:
		return "the top k arms" + of + " are named"
	case goals[catalog.GoalThreshold]:
		return "the arms" + of + " above the threshold are named"
	}
	return "the best arm" + of + " is named"
}

// identifyHead names an instance and what is known of it.
func identifyHead(c *CellResult) string {
	head := c.Instance
	switch best := c.Identify.Best; {
	case c.Identify.Goal != "":
		head += fmt.Sprintf(", %d arms", c.Arms)
	case len(best) == 1:
		head += fmt.Sprintf(", best arm %d of %d", best[0], c.Arms)
	case len(best) > 1:
		head += fmt.Sprintf(", %d of %d arms tied for the best", len(best), c.Arms)
	}
	if b := c.Identify.Boundary; b > 0 {
		head += ", T*_KL " + shown(c.Identify.KLTime) + ", T*_TV " +
			shown(c.Identify.TVTime) + ", regimes meet at ε = " + shown(b)
	}
	return head
}

// mostShares is the largest number of arms that a line has room for.
const mostShares = 12

// sharesTable tells which share of its plays each rule gave to each arm.
func sharesTable(r *Results) (report.Table, bool) {
	g := report.Table{Title: "Share of the plays", Text: 2, Head: []string{"rule", "budget"},
		Notes: []string{"mean over runs of plays, over that of all plays"}}
	arms := 0
	for i := range r.Cells {
		arms = max(arms, r.Cells[i].Arms)
	}
	if arms > mostShares {
		return report.Table{}, false
	}
	for a := range arms {
		g.Head = append(g.Head, fmt.Sprintf("arm %d", a+1))
	}
	for i := range r.Cells {
		c := &r.Cells[i]
		if len(g.Groups) == 0 || r.Cells[i-1].Instance != c.Instance {
			g.Groups = append(g.Groups, report.Group{Head: c.Instance})
		}
		row := []string{playerText(c), symbols(c.Budget)}
		for a := range arms {
			share := ""
			if a < len(c.Plays) {
				share = words.Fixed(c.Plays[a].Mean[0]/c.StoppingTime.Mean[0], 3)
			}
			row = append(row, share)
		}
		group := &g.Groups[len(g.Groups)-1]
		group.Rows = append(group.Rows, row)
	}
	return g, true
}

// identifyFigures are the stopping time against ε, if there are at least three: means, and medians
// where there are runs enough to have one, as stopping times have heavy tails and a few runs can be
// all of a mean. Rules without privacy are level lines. The lower bound, of the mean, is another
// line, and where its regimes meet a vertical one.
func identifyFigures(r *Results, instance string) []report.Figure {
	m := r.Manifest
	f := report.Figure{
		ID:       report.Stem("stopping-time-" + instance),
		Title:    "Plays until " + r.named(instance),
		Subtitle: "at risk δ = " + shown(r.Cells[0].Identify.Risk), XLabel: "budget ε",
		YLabel: "stopping time τ", LogX: true, LogY: true,
		Note: bandNote(m, "budget"),
	}
	half := stats.T(m.Runs, Level)
	bound := report.Series{Policy: "lower bound", Label: "lower bound"}
	lo, hi, most, capped := math.Inf(1), math.Inf(-1), 0, false
	for _, policy := range distinct(r, func(c *CellResult) (string, bool) {
		return c.Policy, c.Instance == instance && c.Budget != keyed.None
	}) {
		s := report.Series{Policy: policy, Label: policy, Family: r.familyOf(policy)}
		if at := byEpsilon(r, instance, policy); len(at) > 0 && r.Cells[at[0]].Identify.Correct == "" {
			s.Label += ", no proof"
		}
		for _, i := range byEpsilon(r, instance, policy) {
			c := &r.Cells[i]
			x, _ := budgetValue(c, "epsilon")
			s.X = append(s.X, x)
			point(&s, &c.StoppingTime, 0, half, m.Runs)
			capped = capped || c.Unfinished > 0
			if at, has := slices.BinarySearch(bound.X, x); !has && c.Identify.LowerBound > 0 {
				bound.X, bound.Mean = slices.Insert(bound.X, at, x),
					slices.Insert(bound.Mean, at, c.Identify.LowerBound)
			}
		}
		if len(s.X) > 0 {
			lo, hi, most = min(lo, s.X[0]), max(hi, s.X[len(s.X)-1]), max(most, len(s.X))
			f.Series = append(f.Series, s)
		}
	}
	if most < 3 {
		return nil
	}
	for i := range r.Cells {
		if c := &r.Cells[i]; c.Instance == instance && c.Budget == keyed.None {
			s := report.Series{Policy: c.Policy, Label: c.Policy + ", no privacy", Budget: keyed.None,
				Family: r.family(c), Plain: true, X: []float64{lo, hi}}
			point(&s, &c.StoppingTime, 0, half, m.Runs)
			point(&s, &c.StoppingTime, 0, half, m.Runs)
			f.Series = append(f.Series, s)
			capped = capped || c.Unfinished > 0
		}
	}
	f.Note += plainNote(f)
	medians := f
	medians.ID, medians.Title = report.Stem("median-stopping-time-"+instance),
		"Plays until "+r.named(instance)+": median"
	medians.Note = "Lines are medians of " + words.Whole(m.Runs) + " runs, bands from their 5 % to their 95 " +
		"% quantile." + plainNote(f)
	medians.Series = nil
	for _, s := range f.Series {
		medians.Series = append(medians.Series, report.Series{Policy: s.Policy, Label: s.Label,
			Budget: s.Budget, Family: s.Family, Plain: s.Plain, X: s.X, Mean: s.Q50, Lo: s.Q05, Hi: s.Q95})
	}
	if len(bound.X) > 0 {
		f.Series = append(f.Series, bound)
		f.Note += " The lower bound is T*(ν;ε) kl(δ,1−δ), of the mean of any δ-correct rule."
	}
	for i := range r.Cells {
		if c := &r.Cells[i]; c.Instance == instance && c.Identify.Boundary > 0 {
			b := shown(c.Identify.Boundary)
			f.Marks = append(f.Marks, report.Mark{X: c.Identify.Boundary, Label: "ε = T*_TV/T*_KL = " + b})
			medians.Marks = slices.Clone(f.Marks)
			note := " Below ε = T*_TV/T*_KL = " + b + " the lower bound is more than without " +
				"privacy, above it about the same; what privacy costs a rule its own line says."
			f.Note, medians.Note = f.Note+note, medians.Note+note
			break
		}
	}
	if capped {
		f.Note += " Some runs ended at the cap and count as so many plays: means are of min(τ, cap)."
		medians.Note += " Some runs ended at the cap and count as so many plays."
	}
	if m.Runs == 1 {
		return []report.Figure{f}
	}
	return []report.Figure{f, medians}
}

// byEpsilon are the cells of a policy on an instance by their ε.
func byEpsilon(r *Results, instance, policy string) []int {
	var out []int
	for i := range r.Cells {
		if c := &r.Cells[i]; c.Instance == instance && c.Policy == policy {
			if _, ok := budgetValue(c, "epsilon"); ok {
				out = append(out, i)
			}
		}
	}
	value := func(i int) float64 {
		x, _ := budgetValue(&r.Cells[i], "epsilon")
		return x
	}
	slices.SortStableFunc(out, func(i, j int) int { return cmp.Compare(value(i), value(j)) })
	return out
}
