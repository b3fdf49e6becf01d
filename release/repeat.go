package release

import (
	"fmt"
	"math"

	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
)

// skipFrom is how many rewards a slot has when its releases begin to be skipped: before that there is little to win.
const skipFrom = 1024

// sums is a law of rewards, by the sum of n.
type sums interface {
	Sum(n int, s *noise.Fast) float64
}

// Repeat adds one reward at a time to the arm's slot and releases it, at most rounds times and only
// as long as what was released last meets the condition. It does what as many calls of AddSum and
// Release would do, for simulated rewards in binary trees; any other curator repeats nothing. It
// returns how often it did, and the last release: the one it was given if that is 0. The law's
// rewards must lie in the declared range.
//
// All that is the law of as many calls. Where the slot has skipFrom rewards, and no transcript has to have each release,
// those that end nothing are counted and mostly not drawn (skip); until then, or with a transcript, the same streams
// give the same releases.
func Repeat(c Curator, arm, rounds int, while privacy.Index, last privacy.Released, law sums,
	s *noise.Fast) (done int, _ privacy.Released, err error) {
	t, ok := c.(*curator[float64])
	if !ok || t.family != tree || last.Len() != 1 {
		return 0, last, nil
	}
	laplace, ok := t.noise.(fastLaplace)
	if !ok || uint(arm) >= uint(len(t.slots)) {
		return 0, last, nil
	}
	slot, nodes := &t.slots[arm], &t.counters[arm]
	quiet := !t.unclipped && while.Root >= 0 && t.account.Unread(slot.id, 0)
	for n, sum := last.N(0), last.Sum(0); done < rounds && while.Holds(n, sum); done++ {
		if quiet && n >= skipFrom && n == slot.n && n < t.most && nodes.t == uint64(n) {
			more, last, err := skip(t, arm, min(rounds-done, t.most-n), while, sum, law, laplace, s)
			return done + more, last, err
		}
		x := law.Sum(1, s)
		if y := float64((x - t.lo) * t.perWidth); y >= 0 && y <= 1 && slot.n < t.most &&
			nodes.t == uint64(slot.n) {
			slot.n++
			slot.sum += float64(float64(y*t.grid) + t.half)
			t.n[0], t.sum[0] = slot.n, float64((slot.sum+nodes.next(laplace.s.Laplace(laplace.scale)))*t.step)
			if last, err = t.account.Release(slot.id, &t.one); err != nil {
				last, err = t.refuse(fmt.Errorf("curator: %w", err))
			}
		} else if err = t.AddSum(arm, 1, x); err == nil {
			last, err = t.Release([]int{arm})
		}
		if err != nil {
			return done, last, err
		}
		n, sum = t.n[0], t.sum[0]
	}
	return done, last, nil
}

// skip is Repeat from a release that meets the condition on, whose slot and tree have the same rewards. Of rounds that
// dips says that they end nothing it draws the sum of the rewards, and the noise of the last.
func skip(c *curator[float64], arm, rounds int, while privacy.Index, sum float64, law sums, laplace fastLaplace,
	s *noise.Fast) (done int, last privacy.Released, err error) {
	slot, nodes := &c.slots[arm], &c.counters[arm]
	if c.dips == nil {
		c.dips = newDips()
	}
	d, each := c.dips, max(while.Above, 0)
	d.size = 0
	for done < rounds {
		left := slack(while, slot.n, sum)
		if !(left > 0) && !while.Holds(slot.n, sum) {
			break
		}
		m := d.next(nodes.t, rounds-done, left, each, laplace.scale, laplace.s)
		k := float64(m)
		y := float64((law.Sum(m, s) - float64(k*c.lo)) * c.perWidth)
		slot.n += m
		slot.sum += float64(float64(min(max(y, 0), k)*c.grid) + c.half)
		sum = float64((slot.sum + d.noise(nodes, m, laplace)) * c.step)
		done += m
	}
	c.account.Unread(slot.id, done-1)
	c.n[0], c.sum[0] = slot.n, sum
	if last, err = c.account.Release(slot.id, &c.one); err != nil {
		last, err = c.refuse(fmt.Errorf("curator: %w", err))
	}
	return done, last, err
}

// slack is by how much the noise may fall until the condition does not hold, less than rounding makes of that.
func slack(while privacy.Index, n int, sum float64) float64 {
	line := float64(while.Above * float64(n))
	top := sum + float64(while.Root*math.Sqrt(float64(n))) + while.Inv
	return top - line - 1e-12*(math.Abs(sum)+math.Abs(top)+math.Abs(line))
}
