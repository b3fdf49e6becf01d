package experiment

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/goccy/go-yaml/ast"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/internal/stats"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/sim"
)

// intervalsKey is the confidence of intervals.
func intervalsKey() keyed.Key[Spec] {
	f := keyed.Share()
	read := f.Read
	f.Read = func(d *keyed.Decoder, n ast.Node, at string, to *float64) error {
		if err := read(d, n, at, to); err != nil {
			return err
		}
		if !confident(*to) {
			return d.Fail(n, at, "is %v, %s", *to, wantConfidence(*to))
		}
		return nil
	}
	return keyed.Of("intervals", f, func(s *Spec) *float64 { return &s.Intervals },
		"confidence of intervals for the arms' means, from the releases of each run; none if it is "+
			"not given").
		Means("none; the confidence, such as `0.95`, of intervals for each arm's mean and its " +
			"difference to the best arm, made of each run's releases at its end; see intervals below")
}

// confident says whether there are intervals of confidence x: of one so small that 1 − x is 1 there
// are none, since their risk would be 1.
func confident(x float64) bool { return x > 0 && x < 1 && 1-x < 1 }

// wantConfidence says what instead of x.
func wantConfidence(x float64) string {
	if x > 0 && x < 1 {
		return "must be a confidence above 1e-15 and below 1, such as 0.95"
	}
	return "must be a confidence above 0 and below 1, such as 0.95"
}

// checkOnArms checks what experiments on arms have of their own.
func (s *Spec) checkOnArms() error {
	if err := s.checkDelay(); err != nil || s.Intervals == 0 {
		return err
	}
	switch {
	case !confident(s.Intervals):
		return s.fail("intervals", "is %v, %s", s.Intervals, wantConfidence(s.Intervals))
	case s.Unclipped:
		return s.fail("intervals", "is given, and so is unclipped: intervals are for rewards that are "+
			"clipped to the range")
	case s.Delay.On():
		return s.fail("intervals", "is given, and so is delay: intervals are for rewards that come at once")
	}
	return nil
}

// admitIntervals refuses a cell whose releases do not give the intervals that are asked for.
func (c *Cell) admitIntervals(s *Spec, p policy.Policy) error {
	if s.Intervals == 0 {
		return nil
	}
	name := c.choice.entry.Name
	if t := c.trust(0.5); t != nil {
		return fmt.Errorf("policy %s under trust %s, where intervals are asked for: they are for a server "+
			"that is believed, with continuous noise", name, t.Model)
	}
	if c.world.Fixed.Drifts() {
		return fmt.Errorf("policy %s, where intervals are asked for: instance %s changes, and its arms "+
			"have no one mean", name, c.Instance)
	}
	if err := sim.AdmitIntervals(p.Mechanism()); err != nil {
		return fmt.Errorf("policy %s, where intervals are asked for: %w", name, err)
	}
	return nil
}

func (s *Spec) writeIntervals(w io.Writer) {
	if s.Intervals != 0 {
		fmt.Fprintf(w, "intervals %s\n", keyed.Number(s.Intervals))
	}
}

// intervals are what a run is asked for, nil if that is nothing.
func (s *Spec) intervals(c *Cell, in bandit.Instance) (*sim.Intervals, error) {
	if s.Intervals == 0 {
		return nil, nil
	}
	if len(in.Arms) != c.world.arms {
		return nil, fmt.Errorf("the source has drawn %d arms, and %d before, must be as many in each run",
			len(in.Arms), c.world.arms)
	}
	lo, hi := s.span()
	means, err := armMeans(in, lo, hi)
	if err != nil {
		return nil, err
	}
	return &sim.Intervals{Risk: 1 - s.Intervals, Means: means}, nil
}

// The values of an arm at the end of a run, in a unit.
const (
	endMean = iota
	endPlays
	endReleased
	endLo
	endHi
	endHeld
	endPlain
	endGap // its mean less that of the best arm
	endGapLo
	endGapHi
	endGapPlain
	endValues

	maxEnds = endValues * bandit.MaxArms
)

// appendIntervals appends what a run says of its arms.
func appendIntervals(to []float64, in *sim.Intervals) []float64 {
	if in == nil {
		return to
	}
	best := math.Inf(-1)
	for _, m := range in.Means {
		best = max(best, m)
	}
	for a, e := range in.Arms {
		held := 0.0
		if e.Held {
			held = 1
		}
		to = append(to, in.Means[a], float64(e.Plays), float64(e.Released), e.Interval[0], e.Interval[1], held,
			e.Plain, in.Means[a]-best, e.Difference[0], e.Difference[1], e.PlainDifference)
	}
	return to
}

// ends is how many values a unit has of each run's end.
func (m *Manifest) ends(c *CellInfo) int {
	if m.Intervals == 0 {
		return 0
	}
	return c.Arms * endValues
}

// checkIntervals refuses a manifest that was edited.
func (m *Manifest) checkIntervals() error {
	if m.Intervals == 0 {
		return nil
	}
	if !confident(m.Intervals) || !keyed.Has(keysOf(m.kind()), "intervals") {
		return fmt.Errorf("it says intervals of confidence %v", m.Intervals)
	}
	for i := range m.Cells {
		c := &m.Cells[i]
		if c.Arms < 2 || c.Arms > bandit.MaxArms {
			return fmt.Errorf("cell %s has %d arms, and intervals", c.Label(), c.Arms)
		}
	}
	return nil
}

// ArmIntervals are what the intervals of an arm were over the runs of a cell: each by itself has
// the confidence that the experiment asks for, at all times together.
type ArmIntervals struct {
	Arm int `json:"arm"` // from 1
	// that intervals are for, in units of rewards; its mean if redrawn
	Mean     float64 `json:"mean"`
	Plays    float64 `json:"plays"`    // mean over runs
	Released float64 `json:"released"` // rewards that are in a release, mean over runs
	// Held counts the runs in which the mean was in its interval whenever it was looked at.
	Held int `json:"held"`
	Spread
	// Difference is of the arm's mean less that of the best arm; nil if that is itself.
	Difference *Gap `json:"difference,omitempty"`
}

// A Gap is the difference of two means.
type Gap struct {
	Mean float64 `json:"mean"`
	Spread
}

// A Spread is what intervals for one number were over runs.
type Spread struct {
	Runs    int     `json:"runs"`
	Covered int     `json:"covered"` // intervals that have the number in them
	Lo      float64 `json:"lo"`      // medians of the ends
	Hi      float64 `json:"hi"`
	Width   float64 `json:"width"` // mean
	Median  float64 `json:"median_width"`
	// Ratio is the mean width over that of intervals of the same family made of all rewards that
	// were played, released or not, without noise.
	Ratio float64 `json:"ratio"`
}

// Coverage is the share of the intervals that have the number in them, and the Clopper–Pearson
// interval of its probability at Level.
func (s Spread) Coverage() (share, lo, hi float64, err error) {
	lo, hi, err = stats.ClopperPearson(s.Covered, s.Runs, Level)
	return float64(s.Covered) / float64(s.Runs), lo, hi, err
}

// intervalsOf reads what the runs of a cell say of its arms, for as many at a time as there is room
// for, in numbers.
func intervalsOf(ctx context.Context, dir string, m *Manifest, c *CellInfo, room int) ([]ArmIntervals, error) {
	group := max(1, min(c.Arms, room/m.Runs/endValues))
	column := make([][]float64, group*endValues)
	for i := range column {
		column[i] = make([]float64, m.Runs)
	}
	var out []ArmIntervals
	for from := 0; from < c.Arms; from += group {
		to := min(from+group, c.Arms)
		err := eachUnit(ctx, dir, m, c, func(u *unit) error {
			for r := range u.runs {
				of := u.run(r)
				of = of[len(of)-u.ends:]
				for i, x := range of[from*endValues : to*endValues] {
					column[i][u.first+r] = x
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		for a := from; a < to; a++ {
			out = append(out, armIntervals(a+1, column[(a-from)*endValues:][:endValues]))
		}
	}
	return out, nil
}

func armIntervals(arm int, x [][]float64) ArmIntervals {
	average := func(k int) float64 {
		mean, _, _ := stats.Mean(x[k])
		return mean
	}
	out := ArmIntervals{Arm: arm, Mean: average(endMean), Plays: average(endPlays),
		Released: average(endReleased), Spread: spreadOf(x[endMean], x[endLo], x[endHi], x[endPlain])}
	for _, held := range x[endHeld] {
		if held == 1 {
			out.Held++
		}
	}
	var gap [4][]float64 // of the runs in which it is not the arm that others are compared with
	for r, plain := range x[endGapPlain] {
		if plain > 0 {
			for i, k := range []int{endGap, endGapLo, endGapHi, endGapPlain} {
				gap[i] = append(gap[i], x[k][r])
			}
		}
	}
	if len(gap[0]) > 0 {
		mean, _, _ := stats.Mean(gap[0])
		out.Difference = &Gap{mean, spreadOf(gap[0], gap[1], gap[2], gap[3])}
	}
	return out
}

// spreadOf is of intervals [lo, hi] for these numbers, and the widths of those without privacy.
func spreadOf(truth, lo, hi, plain []float64) Spread {
	out := Spread{Runs: len(truth), Lo: stats.Quantiles(lo, 0.5)[0], Hi: stats.Quantiles(hi, 0.5)[0]}
	width := make([]float64, len(truth))
	for r, x := range truth {
		if width[r] = hi[r] - lo[r]; lo[r] <= x && x <= hi[r] {
			out.Covered++
		}
	}
	out.Width, _, _ = stats.Mean(width)
	out.Median = stats.Quantiles(width, 0.5)[0]
	without, _, _ := stats.Mean(plain)
	out.Ratio = out.Width / without
	return out
}

const intervalsFile = "intervals.csv"

// writeIntervals writes intervals.csv: a line a cell, arm and what is estimated.
func (r *Results) writeIntervals(w io.Writer) error {
	out := csv.NewWriter(w)
	head := append([]string{"experiment", "instance", "policy", "budget"}, numberColumns()...)
	if err := out.Write(append(head, "of", "arm", "confidence", "truth", "plays", "released", "runs",
		"covered", "coverage", "coverage_lo", "coverage_hi", "held", "width", "median_width", "lo", "hi",
		"ratio")); err != nil {
		return err
	}
	m := r.Manifest
	for i := range r.Cells {
		c := &r.Cells[i]
		cell := c.columns(m.Name)
		for _, a := range c.Intervals {
			line := func(of string, truth float64, s Spread, held string) error {
				share, lo, hi, err := s.Coverage()
				if err != nil {
					return err
				}
				return out.Write(append(cell[:len(cell):len(cell)], of, strconv.Itoa(a.Arm),
					keyed.Number(m.Intervals),
					keyed.Number(truth), keyed.Number(a.Plays), keyed.Number(a.Released), strconv.Itoa(s.Runs),
					strconv.Itoa(s.Covered), keyed.Number(share), keyed.Number(lo), keyed.Number(hi), held, keyed.Number(s.Width),
					keyed.Number(s.Median), keyed.Number(s.Lo), keyed.Number(s.Hi), keyed.Number(s.Ratio)))
			}
			if err := line("mean", a.Mean, a.Spread, strconv.Itoa(a.Held)); err != nil {
				return err
			}
			if d := a.Difference; d != nil {
				if err := line("difference", d.Mean, d.Spread, ""); err != nil {
					return err
				}
			}
		}
	}
	out.Flush()
	return out.Error()
}
