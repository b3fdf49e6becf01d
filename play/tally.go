package play

import (
	"github.com/sotto-dp/sotto/interval"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
)

// A Tally adds up all that was released of each arm: what intervals for their means are made of
// (interval.Sums.Interval). It sees batches and releases, and so is as private as the transcript.
// Rewards of different phases are of different people: a policy may forget what it was told of
// them, a Tally does not.
type Tally struct {
	Sums []interval.Sums // by arm
	// of what the curator has let out and forgotten since, where it lets out running sums
	before []interval.Sums
}

// NewTally returns an empty one.
func NewTally(arms int) *Tally {
	return &Tally{Sums: make([]interval.Sums, arms), before: make([]interval.Sums, arms)}
}

// Learn adds what a batch has released, by the mechanism of its policy.
func (t *Tally) Learn(b *policy.Batch, released privacy.Released, m privacy.Mechanism) {
	if b.Fresh {
		copy(t.before, t.Sums)
	}
	i := 0
	for _, p := range b.Plays {
		if !p.Release || i >= released.Len() {
			continue
		}
		s := &t.Sums[p.Arm]
		if m.Continual() {
			*s = t.before[p.Arm]
		}
		s.Sum += released.Sum(i)
		s.N += released.N(i)
		s.Releases++
		s.Noise = wider(s.Noise, m)
		i++
	}
}

// wider is the noise of which the other is no more than: mechanisms of one kind differ in scale.
func wider(a, b privacy.Mechanism) privacy.Mechanism {
	switch was := a.(type) {
	case privacy.Laplace:
		if is, ok := b.(privacy.Laplace); ok && is.Scale < was.Scale {
			return a
		}
	case privacy.Gaussian:
		if is, ok := b.(privacy.Gaussian); ok && is.Sigma < was.Sigma {
			return a
		}
	}
	return b
}
