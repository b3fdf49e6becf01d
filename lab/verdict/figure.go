package verdict

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/sotto-dp/sotto/audit"
	"github.com/sotto-dp/sotto/internal/report"
	"github.com/sotto-dp/sotto/internal/words"
)

// A named law of scores is a line of a figure.
type namedScores struct {
	name   string
	scores audit.Scores
}

// A rocPlot is what the figure of ROC curves is drawn of.
type rocPlot struct {
	id, title    string
	all          []namedScores
	best         int     // of all: the attack that the audited ε is from
	claim, delta float64 // a claim of +Inf is none
	low          float64 // the audited ε at delta
	gamma        float64
	curve        func(delta float64) (float64, error) // what is claimed at every δ; may be nil
	theory       func(alpha float64) float64          // may be nil
	theoryName   string
}

// rocCells are the pieces of the axis of significances that have a band of their own, and rocSteps
// the steps along an axis that a drawing can tell apart.
const (
	rocCells = 50
	rocSteps = 400
)

// figure is the power of attacks against the significance, beside what the claim and the audited
// bound allow.
func (r rocPlot) figure() (report.Figure, error) {
	f := report.Figure{ID: r.id, Title: r.title, Subtitle: "Power against significance, and the " +
		"largest that the claim allows", XLabel: "significance (false positive rate)",
		YLabel: "power (true positive rate)",
		Note: fmt.Sprintf("Steps: the threshold tests of the games. Bands: where the true curve of "+
			"an attack is at all significances together, at level %.10g for each attack. A band "+
			"above the limit of the claim is what a refutation looks like.", 1-r.gamma)}
	grid, err := r.axes(&f)
	if err != nil {
		return f, err
	}
	for _, n := range r.all {
		if n.scores.Validate() != nil {
			continue
		}
		s, err := rocLine(n, grid, 1-r.gamma)
		if err != nil {
			return f, err
		}
		f.Series = append(f.Series, s)
	}
	if len(f.Series) == 0 {
		return f, audit.ErrConstantScore
	}
	line := func(label string, power func(alpha float64) (float64, error)) error {
		s := report.Series{Label: label, X: grid}
		for _, a := range grid {
			p, err := power(a)
			if err != nil {
				return err
			}
			s.Mean = append(s.Mean, p)
		}
		f.Series = append(f.Series, s)
		return nil
	}
	if r.theory != nil {
		err = line(r.theoryName, func(a float64) (float64, error) { return r.theory(a), nil })
	}
	limit := func(a float64) (float64, error) { return audit.PowerLimit(r.claim, r.delta, a) }
	if err == nil && !math.IsInf(r.claim, 1) {
		err = line("limit of the claim", limit)
	}
	if err == nil && r.curve != nil {
		err = r.everyDelta(grid, limit, line)
	}
	if err == nil && r.low > 0 {
		err = line(fmt.Sprintf("limit of ε = %s, audited", words.Short(r.low)),
			func(a float64) (float64, error) { return audit.PowerLimit(r.low, r.delta, a) })
	}
	if err == nil {
		err = line("chance", func(a float64) (float64, error) { return a, nil })
	}
	return f, err
}

// everyDelta adds the limit of what is claimed at every δ, the trade-off curve of the mechanism, if
// that says more than the limit at one.
func (r rocPlot) everyDelta(grid []float64, one func(float64) (float64, error),
	line func(string, func(float64) (float64, error)) error) error {
	deltas := audit.LogGrid(1e-9, 100)
	deltas = deltas[:len(deltas)-1] // δ = 1 is no claim
	epsilons := make([]float64, len(deltas))
	for i, d := range deltas {
		var err error
		if epsilons[i], err = r.curve(d); err != nil {
			return err
		}
	}
	limit := func(a float64) (float64, error) {
		least := 1.0
		for i, d := range deltas {
			if !math.IsInf(epsilons[i], 1) {
				p, err := audit.PowerLimit(epsilons[i], d, a)
				if err != nil {
					return 0, err
				}
				least = min(least, p)
			}
		}
		return least, nil
	}
	for _, a := range grid {
		all, err := limit(a)
		if err != nil {
			return err
		}
		if single, err := one(a); err != nil || all < single-0.05 {
			return errors.Join(err, line("limit of the claim at all δ", limit))
		}
	}
	return nil
}

// axes chooses those on which the test that bounds ε best is seen, and returns the significances of
// the cells: a logarithmic axis if it has few false alarms, two if it has little power as well.
func (r rocPlot) axes(f *report.Figure) ([]float64, error) {
	linear := make([]float64, rocCells+1)
	for i := range linear {
		linear[i] = float64(i) / rocCells
	}
	s := r.all[r.best].scores
	region, err := s.RegionByRank(r.gamma / float64(len(r.all)))
	if err != nil {
		return nil, err
	}
	b, err := region.Epsilon(r.delta)
	if err != nil {
		return nil, err
	}
	least := 10 / float64(len(s.Out))
	if b.Epsilon == 0 || b.Test.TypeI > 0.02 || least >= 0.02 {
		return linear, nil
	}
	f.LogX, f.LogY = true, 1-b.Test.TypeII < 0.1
	return audit.LogGrid(max(least, 1e-6), rocCells+1), nil
}

// rocLine is an attack's empirical ROC curve, a step function, with a band that has all of the true
// curve in it at the level. The true curve rises, so its intervals at the ends of a cell bound it
// in between; they are split over all ends. Of steps that a drawing cannot tell apart one is kept.
func rocLine(n namedScores, grid []float64, level float64) (report.Series, error) {
	line := report.Series{Label: n.name, Step: true}
	points, err := n.scores.ROC()
	if err != nil {
		return line, err
	}
	ends, err := n.scores.Curve(grid, 1-(1-level)/float64(len(grid)))
	if err != nil {
		return line, err
	}
	place := func(a float64) float64 { return a }
	if grid[0] > 0 {
		place = func(a float64) float64 { return 1 - math.Log(a)/math.Log(grid[0]) }
	}
	add := func(a, power float64, cell int) {
		lo, hi := ends[cell].Power.Lo, ends[min(cell+1, len(ends)-1)].Power.Hi
		if last := len(line.X) - 1; last >= 0 && line.X[last] == a {
			line.Mean[last], line.Lo[last], line.Hi[last] = power, lo, hi
			return
		}
		line.X, line.Mean = append(line.X, a), append(line.Mean, power)
		line.Lo, line.Hi = append(line.Lo, lo), append(line.Hi, hi)
	}
	next, power := 0, 0.0
	for cell, from := range grid {
		for ; next < len(points) && points[next].TypeI <= from; next++ {
			power = points[next].Power
		}
		add(from, power, cell)
		if cell == len(grid)-1 {
			break
		}
		for ; next < len(points) && points[next].TypeI < grid[cell+1]; next++ {
			p, last := points[next], len(line.X)-1
			if power = p.Power; p.TypeI == line.X[last] || place(p.TypeI)-place(line.X[last]) > 1./rocSteps ||
				power-line.Mean[last] > 1./rocSteps {
				add(p.TypeI, power, cell)
			}
		}
	}
	return line, nil
}

// A Curve is what games of an audit's figures show of ε over δ, all of it together.
type Curve struct {
	Gamma float64    // 1 − the confidence of all of it
	Mu    [2]float64 // of Gaussian DP: see audit.Band
	Rows  []CurveRow
}

// A CurveRow is a Curve at one δ: see audit.Band.
type CurveRow struct{ Delta, Low, High, Claimed float64 }

// newCurve is of the scores of the attack that did best of so many on these very games: the
// confidence is split over all of them.
func newCurve(s audit.Scores, attacks int, gamma float64,
	claim func(delta float64) (float64, error)) (*Curve, error) {
	band, err := s.Band(gamma / float64(attacks))
	if err != nil {
		return nil, err
	}
	c := &Curve{Gamma: gamma}
	c.Mu[0], c.Mu[1] = band.Mu()
	grid := audit.LogGrid(1e-6, 25)
	for _, delta := range grid[:len(grid)-1] { // δ = 1 is no claim
		row := CurveRow{Delta: delta}
		if row.Low, row.High, err = band.Epsilon(delta); err != nil {
			return nil, err
		}
		if row.Claimed, err = claim(delta); err != nil {
			return nil, err
		}
		c.Rows = append(c.Rows, row)
	}
	return c, nil
}

// draw adds both figures of an audit, and the curve of one of them: see newCurve.
func (p *Page) draw(roc report.Figure, s audit.Scores, attacks int, gamma float64,
	claim func(delta float64) (float64, error)) error {
	var err error
	if p.Curve, err = newCurve(s, attacks, gamma, claim); err != nil {
		return err
	}
	p.Figures = append(p.Figures, roc, p.Curve.figure())
	return nil
}

// figure draws it.
func (c *Curve) figure() report.Figure {
	f := report.Figure{ID: "epsilon-delta", Title: "Audited ε against δ", Subtitle: "Both bounds hold at " +
		"all δ together", XLabel: "δ", YLabel: "ε", LogX: true,
		Note: "Bounds at confidence " + Level(c.Gamma) + " for these curves alone, over all attacks " +
			"and thresholds; the table's, which the verdict rests on, has a confidence of its " +
			"own and is of one rule, chosen on other games. The upper one is of what this " +
			"attack can show with more games: no audit bounds the mechanism from above. μ of Gaussian " +
			"DP is at least " + number(c.Mu[0]) + "; " + c.gaussian() + "."}
	low, high := report.Series{Label: "audited, at least"}, report.Series{Label: "this attack, at most"}
	says := report.Series{Label: "claimed"}
	add := func(s *report.Series, delta, epsilon float64) {
		if !math.IsInf(epsilon, 1) {
			s.X, s.Mean = append(s.X, delta), append(s.Mean, epsilon)
		}
	}
	for _, r := range c.Rows {
		add(&low, r.Delta, r.Low)
		add(&high, r.Delta, r.High)
		add(&says, r.Delta, r.Claimed)
	}
	for _, s := range []report.Series{low, high, says} {
		if len(s.X) > 1 {
			f.Series = append(f.Series, s)
		}
	}
	return f
}

// gaussian says what the upper end of μ is.
func (c *Curve) gaussian() string {
	switch {
	case c.Mu[0] > c.Mu[1]:
		return "no Gaussian pair has errors as this attack has them"
	case math.IsInf(c.Mu[1], 1):
		return "there are too few games for an upper end"
	}
	return "if the errors of this attack are those of a Gaussian pair, at most " + number(c.Mu[1])
}

// csv is the curve as a table, +Inf for no bound and no claim.
func (c *Curve) csv() []byte {
	var b bytes.Buffer
	fmt.Fprintln(&b, "delta,epsilon_low,epsilon_high,epsilon_claimed")
	for _, r := range c.Rows {
		fmt.Fprintf(&b, "%v,%v,%v,%v\n", r.Delta, r.Low, r.High, r.Claimed)
	}
	return b.Bytes()
}

// most rows of one figure: as many as a page of paper holds.
const mostRows = 40

// forests are the findings as rows, each interval over its claim, in figures of at most mostRows. What
// claims nothing has no row.
func forests(all []Row) []report.Figure {
	var out []report.Figure
	for _, kind := range []struct {
		twin                      bool
		id, title, subtitle, note string
	}{
		{false, "claims", "Claims: none may be refuted", "Audited ε over claimed ε, and its lower " +
			"end in numbers", "A claim is refuted if its lower end, the bar, is right of the line. The further left the bar, the less was shown. An upper end bounds nothing: no " +
			"audit shows that ε is smaller."},
		{true, "broken-copies", "Broken on purpose: each must be refuted", "Audited ε over claimed ε",
			"A broken copy is played until its lower end, the bar, passes the claim of what it is a copy " +
				"of: most bars are at the line."},
	} {
		var rows []report.Interval
		for _, r := range all {
			if r.Twin == kind.twin && !math.IsNaN(r.Tightness()) {
				row := report.Interval{Name: r.Name, Lo: r.Low / r.Claimed,
					Mid: r.Estimate / r.Claimed, Hi: r.High / r.Claimed, Verdict: r.Verdict(), Above: r.Refuted,
					Wrong: r.Wrong()}
				if !r.Twin { // whose lower ends are just above their claims
					row.Text = number(r.Low) + " of " + number(r.Claimed)
				}
				rows = append(rows, row)
			}
		}
		parts := (len(rows) + mostRows - 1) / mostRows
		for part := range parts {
			f := report.Figure{ID: kind.id, Title: kind.title, Subtitle: kind.subtitle, XLabel: "audited/claimed", LogX: true, Note: kind.note,
				Forest: &report.Forest{Reference: 1, Says: "claimed", Least: 0.1, Most: 10,
					Rows: rows[part*mostRows : min((part+1)*mostRows, len(rows))]}}
			if parts > 1 {
				f.Title += fmt.Sprintf(" (%d of %d)", part+1, parts)
			}
			if part > 0 {
				f.ID += "-" + strconv.Itoa(part+1)
			}
			out = append(out, f)
		}
	}
	return out
}
