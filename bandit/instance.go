package bandit

import (
	"fmt"
	"math"
	"strings"
)

// An Instance is the arms' laws. If they change, Arms are those of the first rounds, and so are
// Means, Best and Gaps.
type Instance struct {
	Arms    []Law
	Changes []Change // none: nothing changes
}

// A Change gives the arms other laws from a round on.
type Change struct {
	From int // the first round of these laws, the run's first being 1: from 2 on, increasing
	Arms []Law
}

// Drifts says that the laws change.
func (in Instance) Drifts() bool { return len(in.Changes) > 0 }

// Phases are the instance's stretches without a change, each an instance of its own, and the rounds
// at which they begin.
func (in Instance) Phases() (phases []Instance, from []int) {
	phases, from = []Instance{{Arms: in.Arms}}, []int{1}
	for _, c := range in.Changes {
		phases, from = append(phases, Instance{Arms: c.Arms}), append(from, c.From)
	}
	return phases, from
}

// NewInstance returns the instance of these arms, at least two.
func NewInstance(arms ...Law) (Instance, error) {
	in := Instance{Arms: append([]Law(nil), arms...)}
	if err := in.Validate(); err != nil {
		return Instance{}, err
	}
	return in, nil
}

// BernoulliInstance returns the instance of Bernoulli arms of these means, at least
// two, each in [0,1].
func BernoulliInstance(means ...float64) (Instance, error) {
	arms := make([]Law, len(means))
	for i, p := range means {
		b, err := NewBernoulli(p)
		if err != nil {
			return Instance{}, fmt.Errorf("arm %d: %w", i+1, err)
		}
		arms[i] = b
	}
	return NewInstance(arms...)
}

// Validate says what is wrong with an instance that was put together by hand: fewer than two arms,
// an arm without a law, or changes out of order or of another number of arms.
func (in Instance) Validate() error {
	if n := len(in.Arms); n < 2 {
		return fmt.Errorf("instance: the number of arms is %d, must be at least 2", n)
	}
	if err := checkLaws(in.Arms); err != nil {
		return fmt.Errorf("instance: %w", err)
	}
	last := 1
	for i, c := range in.Changes {
		if c.From <= last {
			return fmt.Errorf("instance: change %d is from round %d on, must be after round %d", i+1, c.From, last)
		}
		last = c.From
		if len(c.Arms) != len(in.Arms) {
			return fmt.Errorf("instance: change %d has %d arms, must have %d as before", i+1, len(c.Arms),
				len(in.Arms))
		}
		if err := checkLaws(c.Arms); err != nil {
			return fmt.Errorf("instance: change %d: %w", i+1, err)
		}
	}
	return nil
}

func checkLaws(arms []Law) error {
	for i, l := range arms {
		if l == nil {
			return fmt.Errorf("arm %d has no law", i+1)
		}
		if m := l.Mean(); math.IsNaN(m) || math.IsInf(m, 0) {
			return fmt.Errorf("arm %d, %v, has mean %v, must be finite", i+1, l, m)
		}
	}
	return nil
}

// Means are the arms' means.
func (in Instance) Means() []float64 {
	m := make([]float64, len(in.Arms))
	for i, l := range in.Arms {
		m[i] = l.Mean()
	}
	return m
}

// Best is the index of the arm with the largest mean; the lowest such index if several share it. It
// is −1 if there are no arms.
func (in Instance) Best() int {
	best, most := -1, math.Inf(-1)
	for i, l := range in.Arms {
		if m := l.Mean(); m > most {
			best, most = i, m
		}
	}
	return best
}

// Gaps are by how much each arm's mean is below the best: what a play of it adds to the
// pseudo-regret.
func (in Instance) Gaps() []float64 {
	gaps := in.Means()
	if len(gaps) == 0 {
		return gaps
	}
	top := gaps[in.Best()]
	for i := range gaps {
		gaps[i] = top - gaps[i]
	}
	return gaps
}

// Support is the smallest interval that holds every reward of every arm at all times; ±Inf if
// unbounded. It is empty, lo > hi, if there are no arms.
func (in Instance) Support() (lo, hi float64) {
	lo, hi = math.Inf(1), math.Inf(-1)
	phases, _ := in.Phases()
	for _, p := range phases {
		for _, l := range p.Arms {
			a, b := l.Support()
			lo, hi = min(lo, a), max(hi, b)
		}
	}
	return lo, hi
}

// String is the arms' laws in their canonical form and order, with those that they change to: a key
// to the instance's content. Equal strings are equal instances.
func (in Instance) String() string {
	var b strings.Builder
	writeLaws(&b, in.Arms)
	for _, c := range in.Changes {
		fmt.Fprintf(&b, " from %d ", c.From)
		writeLaws(&b, c.Arms)
	}
	return b.String()
}

func writeLaws(b *strings.Builder, arms []Law) {
	b.WriteByte('[')
	for i, l := range arms {
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprint(b, l)
	}
	b.WriteByte(']')
}
