package simulate

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/sotto-dp/sotto/interval"
	"github.com/sotto-dp/sotto/live/decl"
)

// A safety is what was released for the guards of an experiment, added up apart from the service.
type safety struct {
	sums  [][]interval.Sums // by guard and arm
	past  [][]due
	in    [][]bool // it surely keeps the bound
	step  int      // of the ramp, which began at since
	since time.Time
}

// A due says whether an arm was past a guard, and whether something was done about that.
type due int

const (
	noHarm due = iota
	isPast
	isDone
)

// add adds a line's releases up, and finds the arms that are past a guard.
func (s *safety) add(b *book, line *shown, rows []shownRow) error {
	if len(b.x.Guard) == 0 || line.Release == nil {
		return nil
	}
	var ns, arms []int // of each sum
	for _, r := range rows {
		arms = append(arms, slices.Repeat([]int{r.Arm}, r.slots())...)
	}
	p, err := b.x.NewPolicy(decl.ZeroCoins{})
	if err == nil {
		err = json.Unmarshal(line.Release.N, &ns)
	}
	metrics, failed := b.x.PlayMetrics()
	if err != nil || failed != nil || len(ns) != len(arms) {
		return broken(guarded, "%s: %v, %v", b.x.Name, err, failed)
	}
	for i, g := range b.x.Guard {
		if len(s.sums) <= i {
			s.sums, s.past = append(s.sums, make([]interval.Sums, len(b.x.Arms))), append(s.past, make([]due, len(b.x.Arms)))
			s.in = append(s.in, make([]bool, len(b.x.Arms)))
		}
		m, lo, hi := b.x.Of(g)
		for j, arm := range arms {
			sum, noise := line.Release.Sum[j], p.Mechanism()
			if m >= 0 {
				sum, noise = line.Metrics[m].Sum[j], metrics[m].Mechanism
			}
			to := &s.sums[i][arm]
			to.N, to.Sum, to.Releases, to.Noise = to.N+ns[j], to.Sum+sum, to.Releases+1, noise
			if j+1 < len(arms) && arms[j+1] == arm { // a cell, and there are more
				continue
			}
			from, end, err := to.Interval(g.Risk / float64(len(b.x.Guard)*len(b.x.Arms)))
			if err != nil {
				return broken(guarded, "%s: %v", b.x.Name, err)
			}
			at := (g.Bound - lo) / (hi - lo)
			past, keeps := from > at, end < at
			if g.Side == decl.Above {
				past, keeps = keeps, past
			}
			s.in[i][arm] = keeps
			if past && s.past[i][arm] == noHarm && !b.off[arm] {
				s.past[i][arm] = isPast
			}
		}
	}
	return nil
}

// follows holds a line against what is to be done. A pair of guard and arm is done with once.
func (s *safety) follows(b *book, line *shown) error {
	if at, err := time.Parse(time.RFC3339, line.At); len(b.lines) == 1 || line.Change != nil && line.Change.Share != nil {
		if err == nil && len(b.lines) > 1 {
			err = s.stepsUp(b, *line.Change.Share, at)
		}
		if s.since = at; err != nil {
			return err
		}
	}
	if len(b.x.Guard) == 0 || line.Rest != nil || line.End != nil {
		return nil
	}
	first := -1
	for arm := len(b.x.Arms) - 1; arm >= 0; arm-- {
		if slices.ContainsFunc(s.past, func(of []due) bool { return of[arm] == isPast }) {
			first = arm
		}
	}
	done := -1
	switch g := line.Change; {
	case line.Off != nil:
		if done = *line.Off; done != first && !b.leaves[done] {
			return broken(guarded, "%s: arm %d is taken off, and nobody would have it so", b.x.Name, done)
		}
	case g != nil && g.Guard != nil:
		done = slices.IndexFunc(b.x.Arms, func(a decl.Arm) bool { return a.Name == g.Guard.Arm })
		if done < 0 || done != first {
			return broken(guarded, "%s is paused for %s, and arm %d is past a guard", b.x.Name, g.Guard.Arm, first)
		}
	}
	if first >= 0 && done != first {
		return broken(guarded, "%s: arm %d is past a guard, and goes on", b.x.Name, first)
	}
	for i := range s.past {
		if done >= 0 && s.past[i][done] == isPast {
			s.past[i][done] = isDone
		}
	}
	return nil
}

// stepsUp holds a step of a ramp against its time and against the guards.
func (s *safety) stepsUp(b *book, to float64, at time.Time) error {
	was := b.x.Ramp[s.step]
	if s.since.Before(b.x.Start) {
		s.since = b.x.Start
	}
	if s.step++; s.step == len(b.x.Ramp) || b.x.Ramp[s.step].Share != to || at.Sub(s.since) < was.For {
		return broken(guarded, "%s steps up to %v after %v at %v", b.x.Name, to, at.Sub(s.since), was.Share)
	}
	for arm := range b.x.Arms {
		for i := range b.x.Guard {
			if !b.off[arm] && (s.in == nil || !s.in[i][arm]) {
				return broken(guarded, "%s steps up to %v, and arm %d may be past guard %d", b.x.Name, to, arm, i)
			}
		}
	}
	return nil
}
