package play

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/sotto-dp/sotto/release"
)

// An Aggregate says what the reports of a decision make of one number: the first that has it counts, or
// all of them do. Whatever they make is clipped to the declared range, once, so that a decision is worth
// at most one range to a sum.
type Aggregate string

// The aggregates.
const (
	First    Aggregate = "" // the first report that has it
	AddUp    Aggregate = "sum"
	CountUp  Aggregate = "count" // how many reports have it, whatever they say
	TakeMost Aggregate = "max"
)

// MaxReports is how many reports of a decision count that name themselves. What comes later counts nowhere,
// and is answered the same.
const MaxReports = 1000

// A Total is what has come of one decision, where several reports of it can count. It is one person's, as
// clear as it was reported, and is kept until the decision is released and no longer.
//
// The order of reports changes nothing, up to MaxReports, of what adds up. A sum is kept as two: of what adds and of what takes away, in
// whole steps, each of which stops at a bound. min(bound, Σ) of what is not negative does not depend on the
// order, nor does a count or a maximum; and the range clips their difference, never a step on the way.
//
// The segment's sum always has what its totals are worth now: a report adds the difference that it makes.
// So a release finds the sum of values in the range, one for each decision, and has the sensitivity of
// rewards that come once.
type Total struct {
	// Sums are of the reward and of each metric. Of one that is sealed there are none: what was
	// worth stays in the segment, and what comes later counts nowhere.
	Sums []Running `json:",omitempty"`
	// Names are those that reports have given themselves, in their order, so that one which is sent
	// again counts once.
	Names []uint64 `json:",omitempty"`
}

// A Running is what has come of one number. Of a sum Up and Down are in totalSteps of the range; of a count Up
// is it; else Up is what counts, in steps of release.ExactStep.
type Running struct {
	Has      bool  `json:",omitempty"`
	Up, Down int64 `json:",omitempty"`
}

// totalSteps is how many steps of a sum are the width of the range, and mostSteps where it stops: at 2^32
// widths.
const (
	totalSteps = 1 << 30
	mostSteps  = 1 << 62
)

// add takes a number in, mapped by clip from a range of this width.
func (r *Running) add(how Aggregate, clip release.Clip, width, x float64) {
	switch {
	case how == CountUp:
		r.Up = min(r.Up+1, mostSteps)
	case how == AddUp:
		steps := math.Round(float64(x/width) * totalSteps)
		part := &r.Up
		if steps < 0 {
			steps, part = -steps, &r.Down
		}
		*part = min(*part, mostSteps-int64(min(steps, mostSteps))) + int64(min(steps, mostSteps))
	case how == TakeMost && r.Has:
		r.Up = max(r.Up, clip.Steps(x))
	case !r.Has:
		r.Up = clip.Steps(x)
	}
	r.Has = true
}

// worth is what has come in steps of release.ExactStep, or what counts where nothing has.
func (r *Running) worth(how Aggregate, clip release.Clip, width float64, missing int64) int64 {
	switch {
	case !r.Has:
		return missing
	case how == CountUp:
		return clip.Steps(float64(r.Up))
	case how == AddUp:
		return clip.Steps(float64(float64(r.Up-r.Down)/totalSteps) * width)
	}
	return r.Up
}

// checkAggregate says whether there is one of this name.
func checkAggregate(how Aggregate) error {
	if !slices.Contains([]Aggregate{First, AddUp, CountUp, TakeMost}, how) {
		return fmt.Errorf("aggregate is %q, must be %s, %s or %s, or nothing", string(how), AddUp, CountUp, TakeMost)
	}
	return nil
}

// Add is SettleAll for one of several reports, where a number has an Aggregate. Its name, if it is not 0, must
// be nobody else's of this decision: a second report of the same name has the same answer and changes
// nothing, so that one can be sent again. Here a reward that is NaN is not in the report, as a metric is not.
func (l *Live) Add(t Ticket, name uint64, reward float64, metrics []float64, now int64) (Status, error) {
	s, status, err := l.held(t, now)
	if s == nil {
		return status, err
	}
	if l.vectors != nil {
		l.vectors.settle(s, t.Number, l.clip.Steps(reward))
	} else if i := t.Number - s.Start; l.adds {
		l.addReport(s, i, name, reward, metrics)
	} else if !s.Came.Has(i) && !s.Gone.Has(i) {
		s.Came.add(i)
		l.add(s, i, l.first(reward, metrics))
	}
	return Accepted, nil
}

// addReport takes a report of the decision at i of its segment.
func (l *Live) addReport(s *Segment, i int, name uint64, reward float64, metrics []float64) {
	total, there := s.Totals[i]
	at, again := slices.BinarySearch(total.Names, name)
	switch {
	case s.Gone.Has(i), there && total.Sums == nil, again:
		return
	case name != 0 && len(total.Names) >= MaxReports:
		return
	case name != 0:
		total.Names = slices.Insert(total.Names, at, name)
	}
	before := make([]int64, len(l.missing))
	if there {
		before = l.worth(total)
	} else {
		total.Sums = make([]Running, len(l.missing))
		s.Came.add(i)
	}
	for j := range total.Sums {
		x, how, clip, lo, hi := reward, l.cfg.Aggregate, l.clip, l.cfg.Lo, l.cfg.Hi
		if j > 0 {
			f := &l.further[j-1]
			if x, how, clip, lo, hi = math.NaN(), f.Aggregate, f.clip, f.Lo, f.Hi; j-1 < len(metrics) {
				x = metrics[j-1]
			}
		}
		if !math.IsNaN(x) {
			total.Sums[j].add(how, clip, hi-lo, x)
		}
	}
	more := l.worth(total)
	for j := range more {
		more[j] -= before[j]
	}
	l.add(s, i, more)
	if s.Totals == nil {
		s.Totals = map[int]Total{}
	}
	s.Totals[i] = total
}

// worth is what each sum counts of a decision.
func (l *Live) worth(total Total) []int64 {
	out := make([]int64, len(total.Sums))
	out[0] = total.Sums[0].worth(l.cfg.Aggregate, l.clip, l.cfg.Hi-l.cfg.Lo, l.missing[0])
	for j, f := range l.further {
		out[1+j] = total.Sums[1+j].worth(f.Aggregate, f.clip, f.Hi-f.Lo, l.missing[1+j])
	}
	return l.within(out)
}

// add adds to the segment's sums what the decision at i is worth more: the reward's in Sum and
// each metric's in More, or with cells all of them in the cell's part of More.
func (l *Live) add(s *Segment, i int, more []int64) {
	if s.More == nil && l.more() > 0 {
		s.More = make([]int64, l.more())
	}
	of := s.More
	if l.cfg.Cells.Count > 0 {
		of = of[len(more)*s.cellOf(i):]
	} else {
		s.Sum += more[0]
		more = more[1:]
	}
	for j, x := range more {
		of[j] += x
	}
}

// more is how many further sums a segment has.
func (l *Live) more() int {
	if l.cfg.Cells.Count > 0 {
		return len(l.missing) * l.cfg.Cells.Count
	}
	return len(l.missing) - 1
}

// A Ratio has a decision count of one number at most what it counts of another, as shares of their ranges: then the
// ratio of their sums has an interval (interval.Ratio). A number is 0, the reward, or 1 and more, the metrics
// in their order. What is held to another holds no third.
//
// That is done to what a decision is worth in the end, so that the order of reports changes nothing.
type Ratio struct{ Of, Per int }

// within holds what sums count of one decision to the ratios.
func (l *Live) within(worth []int64) []int64 {
	for _, r := range l.cfg.Ratios {
		worth[r.Of] = min(worth[r.Of], worth[r.Per])
	}
	return worth
}

// ratiosText is what must not change of ratios while decisions are out.
func ratiosText(ratios []Ratio) string {
	if len(ratios) == 0 {
		return ""
	}
	return fmt.Sprintln("ratios", ratios)
}

// checkRatios says what is wrong with ratios of so many sums.
func checkRatios(ratios []Ratio, sums int) error {
	for i, r := range ratios {
		if r.Of < 0 || r.Per < 0 || r.Of >= sums || r.Per >= sums || r.Of == r.Per ||
			slices.ContainsFunc(ratios, func(o Ratio) bool { return o.Of == r.Per }) {
			return fmt.Errorf("play: ratios[%d] is of %d per %d, must be two of %d sums, the second of them held to none", i,
				r.Of, r.Per, sums)
		}
	}
	return nil
}

// Seal destroys what is kept of one decision of which several reports can count, if it is in a queue. What it
// was worth stays in the sum of its segment, where it cannot be told from others; what comes later counts
// nowhere, and is answered the same. It is sealed and not removed: if a new total could begin, the unit would
// count twice.
func (l *Live) Seal(arm, number int) {
	if arm < 0 || arm >= len(l.s.Arms) || !l.adds {
		return
	}
	if s := l.s.Arms[arm].find(number); s != nil {
		if s.Totals == nil {
			s.Totals = map[int]Total{}
		}
		s.Totals[number-s.Start] = Total{}
	}
}

// checkTotals says what no segment with so many decisions has, of which this many sums are kept, 0 where one
// report of a decision counts. It tells no total.
func (s *Segment) checkTotals(decisions, sums int) error {
	known := 0
	for i, t := range s.Totals {
		ok := i >= 0 && i < decisions && sums > 0 && len(t.Names) <= MaxReports
		if t.Sums != nil {
			ok = ok && len(t.Sums) == sums && s.Came.Has(i)
		} else {
			ok = ok && len(t.Names) == 0
		}
		for _, r := range t.Sums {
			ok = ok && r.Up >= 0 && r.Down >= 0 && r.Up <= mostSteps && r.Down <= mostSteps
		}
		for j, n := range t.Names {
			ok = ok && (j == 0 || t.Names[j-1] < n)
		}
		if !ok {
			return errors.New("a total is none of its decisions")
		}
		if s.Came.Has(i) {
			known++
		}
	}
	if sums > 0 && known != s.Came.Len() {
		return errors.New("the totals of some of its decisions are missing")
	}
	return nil
}
