package sim

import (
	"errors"
	"math"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/policy"
)

// errDrift is about an instance whose laws change.
var errDrift = errors.New("sim: the instance's laws change: that is for Run and RunDelayed, without users " +
	"who do not answer")

// until is the last round that has the laws of now.
func (r *run) until() int {
	if len(r.changes) == 0 {
		return math.MaxInt
	}
	return r.changes[0].From - 1
}

// turn gives the arms the laws that change within a batch that is about to be played. What has been
// played before that is drawn by the laws before, and what is left of the batch is all that then
// counts of it.
func (r *run) turn(b *policy.Batch) error {
	end := min(b.Rounds(), r.curve.horizon-r.curve.t)
	for k := r.until() - r.curve.t; k < end; k = r.until() - r.curve.t {
		count := r.curve.turn(b, k, r.changes[0].Arms)
		for i, p := range b.Plays {
			r.feed.waiting[p.Arm] += count[i]
		}
		for a, n := range r.feed.waiting {
			if n > 0 {
				if err := r.feed.fill(a); err != nil {
					return err
				}
			}
		}
		for i, p := range b.Plays {
			r.feed.waiting[p.Arm] -= count[i]
		}
		r.feed.laws, r.changes = r.changes[0].Arms, r.changes[1:]
	}
	return nil
}

// turn gives the arms other laws after k rounds of a batch, which is still to be recorded as a
// whole. It returns how often each of its plays has been made by then.
func (c *curve) turn(b *policy.Batch, k int, laws []bandit.Law) []int {
	trace := c.trace
	c.trace = nil
	c.batch(b, k)
	c.trace, c.t = trace, c.t-k
	count := make([]int, len(b.Plays))
	b.Counts(k, count)
	if c.earlier == nil {
		c.earlier = make([]int, len(c.plays))
	}
	for a, n := range c.plays {
		c.lost += float64(c.gaps[a] * float64(n))
		if c.best[a] {
			c.hit += float64(n)
		}
		c.earlier[a] += n
	}
	clear(c.plays)
	for i, p := range b.Plays {
		c.plays[p.Arm] -= count[i]
	}
	c.gap(laws)
	return count
}

// all are the plays of each arm, under whatever laws.
func (c *curve) all(to []int) []int {
	to = append(to[:0], c.plays...)
	for a, n := range c.earlier {
		to[a] += n
	}
	return to
}
