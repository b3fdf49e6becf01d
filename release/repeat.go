package release

import (
	"fmt"

	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
)

// Repeat adds one reward at a time to the arm's slot and releases it, at most rounds times and only
// as long as what was released last meets the condition. It does what as many calls of AddSum and
// Release would do, for simulated rewards in binary trees; any other curator repeats nothing. It
// returns how often it did, and the last release: the one it was given if that is 0. The law's
// rewards must lie in the declared range.
func Repeat(c Curator, arm, rounds int, while privacy.Index, last privacy.Released, law interface {
	Sum(n int, s *noise.Fast) float64
}, s *noise.Fast) (done int, _ privacy.Released, err error) {
	t, ok := c.(*curator[float64])
	if !ok || t.family != tree || last.Len() != 1 {
		return 0, last, nil
	}
	laplace, ok := t.noise.(fastLaplace)
	if !ok || uint(arm) >= uint(len(t.slots)) {
		return 0, last, nil
	}
	slot, nodes := &t.slots[arm], &t.counters[arm]
	for n, sum := last.N(0), last.Sum(0); done < rounds && while.Holds(n, sum); done++ {
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
