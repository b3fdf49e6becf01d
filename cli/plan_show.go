package cli

import (
	"fmt"
	"io"
	"math"

	"github.com/sotto-dp/sotto/internal/report"
	"github.com/sotto-dp/sotto/internal/words"
	"github.com/sotto-dp/sotto/trial"
)

// writePlan writes a plan as a table, and what it means.
func writePlan(out io.Writer, p *trial.Plan) error {
	w := report.NewColumns(out)
	fmt.Fprintf(out, "%s\n%s, risk %v, %s at each ε\n\n", p.Arms, p.Rule.Entry().Title,
		p.Rule.Risk(), words.Several(p.Runs, "run"))
	fmt.Fprintln(w, "budget\tlower bound\tparticipants\tmedian\t90 %\tmax\twrong\tbatches\t× none")
	// A mean stands if every run ended, a median if most did.
	stands := func(r trial.PlanRow) bool { return r.Capped == 0 || p.Prior && 2*r.Capped < p.Runs }
	capped, compared := 0, true
	for _, r := range append(append([]trial.PlanRow{}, p.Rows...), p.Plain) {
		mark := ""
		if r.Capped > 0 {
			mark = fmt.Sprintf(" (%d at the cap)", r.Capped)
			capped += r.Capped
		}
		times := "–"
		if stands(r) && stands(p.Plain) {
			times = fmt.Sprintf("%.2f", r.OverNonPrivate)
		} else {
			compared = false
		}
		lower := "–"
		if !math.IsNaN(r.Lower) {
			lower = words.Short(math.Ceil(r.Lower))
			if r.Lower >= 1e15 {
				lower = fmt.Sprintf("%.3g", r.Lower)
			}
		}
		fmt.Fprintf(w, "%s\t%s\t%s ± %s%s\t%s\t%s\t%s\t%d\t%.1f\t%s\n", r.Budget(),
			lower, words.Short(math.Round(r.Mean)), words.Short(math.Ceil(r.SE)), mark,
			words.Short(math.Round(r.Median)), words.Short(math.Round(r.Q90)),
			words.Short(r.Max), r.Wrong, r.Batches, times)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	size := "in the mean"
	if p.Prior {
		size = "in the median"
	}
	switch {
	case p.Free > 0:
		fmt.Fprintf(out, "Privacy is free from ε = %v on: at most %.0f %% more participants %s "+
			"than without privacy.\n", p.Free, 100*trial.Slack, size)
	case !compared:
		fmt.Fprintln(out, "Whether privacy is free at any of these ε is not known: runs ended at the cap.")
	default:
		fmt.Fprintf(out, "Privacy is not free at any of these ε: that would be at most %.0f %% "+
			"more participants %s than without privacy.\n", 100*trial.Slack, size)
	}
	if !math.IsNaN(p.Boundary) {
		fmt.Fprintf(out, "For the best rule there can be, privacy begins to cost below about ε "+
			"= %.3g, where T*_TV/ε = T*_KL.\n", p.Boundary)
	}
	fmt.Fprintln(out, "participants: mean ± standard error; lower bound: no rule that is ε-DP "+
		"and as often right needs fewer in the mean [Azize 2024, Theorem 4.24]; batches: mean rounds of "+
		"adaptivity; none: "+p.PlainRule.Entry().Title+" without noise, the best rule without privacy here.")
	if p.Prior {
		fmt.Fprintln(out, "Of means drawn at random some are nearly equal, and such trials are "+
			"most of the mean: the lower bound, × none and that ε are medians over the runs' arms.")
	}
	if p.Rule.Correct() == "" {
		fmt.Fprintln(out, "No bound on the error of this rule is proved for these parameters.")
	}
	if capped > 0 {
		fmt.Fprintf(out, "Runs at the cap of %d participants have no answer and count with the "+
			"cap: means and quantiles are then too small.\n", p.Cap)
	}
	return nil
}

// planFigure is participants against ε.
func planFigure(p *trial.Plan) report.Figure {
	f := report.Figure{
		ID: "plan", Title: "Participants of a trial",
		Subtitle: fmt.Sprintf("%s; %s, risk %v", p.Arms, p.Rule.Entry().Title, p.Rule.Risk()),
		XLabel:   "budget ε", YLabel: "participants", LogX: true, LogY: true,
	}
	what, band := "mean", "; band: mean ± two standard errors"
	if p.Prior {
		what, band = "median", ""
	}
	f.Note = fmt.Sprintf("%s at each ε%s. The lower bound is that of every rule with this "+
		"guarantee. For the best rule privacy begins to cost below ε = %.3g.",
		words.Several(p.Runs, "run"), band, p.Boundary)
	mean, high := report.Series{Label: what}, report.Series{Label: "90 % quantile"}
	plain, lower := report.Series{Label: what + " without noise"}, report.Series{Label: "lower bound"}
	for _, r := range p.Rows {
		for _, x := range []*report.Series{&mean, &high, &plain, &lower} {
			x.X = append(x.X, r.Epsilon)
		}
		high.Mean = append(high.Mean, r.Q90)
		if p.Prior { // a mean is that of the longest few
			mean.Mean = append(mean.Mean, r.Median)
			plain.Mean = append(plain.Mean, p.Plain.Median)
		} else {
			mean.Mean = append(mean.Mean, r.Mean)
			mean.Lo, mean.Hi = append(mean.Lo, r.Mean-2*r.SE), append(mean.Hi, r.Mean+2*r.SE)
			plain.Mean = append(plain.Mean, p.Plain.Mean)
		}
		lower.Mean = append(lower.Mean, r.Lower)
	}
	f.Series = []report.Series{mean, high, plain, lower}
	return f
}
