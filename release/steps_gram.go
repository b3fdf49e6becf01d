package release

import (
	"errors"
	"fmt"
	"math"
)

// Width implements StepFeatureCurator.
func (c *gramFeatures[T]) Width() int { return c.width }

// Products implements StepFeatureCurator.
func (c *gramFeatures[T]) Products(dst []int64, a []float64, reward float64) {
	if math.IsNaN(reward) {
		reward = -1
	}
	reward = min(max(reward, -1), 1)
	times := func(x float64, v []float64) {
		for j, y := range v {
			dst[j] += int64(math.Round(float64(x*y) * gridSteps))
		}
	}
	if !c.square {
		times(reward, a)
		return
	}
	copy(c.z, a)
	c.z[c.dim] = reward
	for rest := c.z; len(rest) > 0; rest = rest[1:] {
		times(rest[0], rest)
		dst = dst[len(rest):]
	}
}

// AddSteps implements StepFeatureCurator.
func (c *gramFeatures[T]) AddSteps(slot, n int, sums []int64) error {
	switch {
	case c.unclipped:
		return errors.New("curator: steps are of clipped rewards, and the curator's are not")
	case uint(slot) >= uint(len(c.n)):
		return fmt.Errorf("curator: slot is %d, must be from 0 to %d", slot, len(c.n)-1)
	case len(sums) != c.width:
		return fmt.Errorf("curator: there are %d sums, must be %d", len(sums), c.width)
	case n < 0 || n > min(maxRewards, c.most-c.n[slot]):
		return fmt.Errorf("curator: n of slot %d is %d, must be from 0 to %d", slot, n,
			min(maxRewards, c.most-c.n[slot]))
	}
	diagonal, row := 0, c.dim+1 // of a matrix
	for i, x := range sums {
		least, most := -int64(n)*gridSteps, int64(n)*gridSteps
		if c.square && i == diagonal { // a sum of squares
			least, diagonal, row = 0, diagonal+row, row-1
		}
		if x < least || x > most {
			return fmt.Errorf("curator: sum %d of %d records is out of range", i, n)
		}
	}
	s := c.sum[slot*c.width:][:c.width]
	for i, x := range sums {
		if c.grid == 0 {
			s[i] += T(float64(x) * ExactStep)
		} else {
			s[i] += T(x)
		}
	}
	c.n[slot] += n
	return nil
}

var (
	_ StepFeatureCurator = (*gramFeatures[int64])(nil)
	_ StepFeatureCurator = (*gramFeatures[float64])(nil)
)
