package release

import (
	"errors"
	"fmt"
	"math"

	"github.com/sotto-dp/sotto/privacy"
)

// A StepFeatureCurator takes sums of whole steps of 2^-20, for rewards that are kept as integer
// sums until they are released: as a StepCurator does for arms. Real and simulated curators of
// vectors are.
type StepFeatureCurator interface {
	FeatureCurator
	// Width is how many numbers a slot's sums have.
	Width() int
	// Products adds to the Width numbers of dst what a vector of Dim finite numbers and its reward
	// are in steps: the integers that the curator of real rewards makes of them, the reward clipped
	// to [−1,1], and −1 for what is no number. Whoever keeps them has to see to ‖a‖ ≤ 1.
	Products(dst []int64, a []float64, reward float64)
	// AddSteps puts n records into a slot at once, of which Products are these. An error has
	// nothing of a sum.
	AddSteps(slot, n int, sums []int64) error
}

// Width implements StepFeatureCurator.
func (c *features[T]) Width() int { return c.width }

// Products implements StepFeatureCurator.
func (c *features[T]) Products(dst []int64, a []float64, reward float64) {
	if math.IsNaN(reward) {
		reward = -1
	}
	reward = min(max(reward, -1), 1)
	if c.cells.Len() > 0 {
		if at := c.cells.Find(a); at >= 0 {
			y := int64(math.Round(float64((reward+1)/2) * gridSteps))
			dst[2*at] += gridSteps - y
			dst[2*at+1] += y
		}
		return
	}
	for i, x := range a {
		dst[i] += int64(math.Round(float64(x*reward) * gridSteps))
	}
}

// AddSteps implements StepFeatureCurator.
func (c *features[T]) AddSteps(slot, n int, sums []int64) error {
	switch {
	case c.unclipped:
		return errors.New("curator: steps are of clipped rewards, and the curator's are not")
	case uint(slot) >= uint(len(c.n)):
		return fmt.Errorf("curator: slot is %d, must be from 0 to %d", slot, len(c.n)-1)
	case len(sums) != c.width:
		return fmt.Errorf("curator: there are %d sums, must be %d", len(sums), c.width)
	case n < 0 || n > min(maxRewards, c.plan.most-c.n[slot]):
		return fmt.Errorf("curator: n of slot %d is %d, must be from 0 to %d", slot, n,
			min(maxRewards, c.plan.most-c.n[slot]))
	}
	least, most, left := -int64(n)*gridSteps, int64(n)*gridSteps, int64(n)*gridSteps
	if c.cells.Len() > 0 {
		least = 0
	}
	for i, x := range sums {
		if x > most || x < least {
			return fmt.Errorf("curator: sum %d of %d rewards is out of range", i, n)
		}
		left -= x
	}
	if least == 0 && left != 0 {
		return fmt.Errorf("curator: the bins are not of %d records", n)
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

// FeatureCharge is the mechanism that the ledger is charged for by the curator that RealFeatures
// returns for cfg, with the noise really used: what a journal of releases is held against.
func FeatureCharge(cfg FeatureConfig) (privacy.Mechanism, error) {
	cfg.Ledger = nil
	c, err := exactFeatures(cfg, nil) // nothing is drawn
	if err != nil {
		return nil, err
	}
	switch c := c.(type) {
	case *features[int64]:
		return c.plan.charge, nil
	case *gramFeatures[int64]:
		return c.charge, nil
	}
	return nil, fmt.Errorf("curator: a %T has no mechanism of its own", c)
}

var (
	_ StepFeatureCurator = (*features[int64])(nil)
	_ StepFeatureCurator = (*features[float64])(nil)
)
