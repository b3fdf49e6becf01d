package release

import (
	"errors"
	"fmt"
	"math"
)

// A StepFeatureCurator takes sums of products that were made whole steps when each reward came, for
// rewards that wait, as integers, until they are released. RealFeatures returns one.
type StepFeatureCurator interface {
	FeatureCurator
	// Width is how many numbers a release has.
	Width() int
	// Products adds a record's products to dst, Width numbers: those that Add makes of the vector
	// that was played and its reward, in multiples of ExactStep. A vector outside the unit ball is
	// refused, and adds nothing.
	Products(dst []int64, a []float64, reward float64) error
	// AddSteps puts n records into the slot at once, whose products add up to these.
	AddSteps(slot, n int, sums []int64) error
}

// record refuses what is no record, and is the reward as it counts. private says that no error may
// have anything of the vector.
func record(dst []int64, width int, a []float64, dim int, reward float64, private bool) (float64, error) {
	if len(a) != dim || len(dst) != width {
		return 0, fmt.Errorf("curator: a vector has %d features and %d products, must have %d and %d", len(a),
			len(dst), dim, width)
	}
	q := 0.0
	for _, x := range a {
		q += float64(x * x)
	}
	switch {
	case q <= normLimit:
		return atDoor("slot", 0, reward, false, true)
	case private:
		return 0, errPrivateVector
	}
	return 0, checkNorm(a, q, false)
}

// addProducts adds x·v, in steps.
func addProducts(dst []int64, x float64, v []float64) {
	for j, y := range v {
		dst[j] += int64(math.Round(float64(x*y) * gridSteps))
	}
}

// Width implements StepFeatureCurator.
func (c *features[T]) Width() int { return c.dim }

// Products implements StepFeatureCurator.
func (c *features[T]) Products(dst []int64, a []float64, reward float64) error {
	reward, err := record(dst, c.dim, a, c.dim, reward, false)
	if err == nil {
		addProducts(dst, reward, a)
	}
	return err
}

// AddSteps implements StepFeatureCurator.
func (c *features[T]) AddSteps(slot, n int, sums []int64) error {
	if uint(slot) >= uint(len(c.n)) {
		return fmt.Errorf("curator: slot is %d, must be from 0 to %d", slot, len(c.n)-1)
	}
	err := checkSteps(n, c.plan.most-c.n[slot], sums, c.dim, c.unclipped, nil)
	if err != nil {
		return fmt.Errorf("curator: slot %d: %w", slot, err)
	}
	addSteps(c.sum[slot*c.dim:][:c.dim], sums, c.grid)
	c.n[slot] += n
	return nil
}

// Width implements StepFeatureCurator.
func (c *gramFeatures[T]) Width() int { return c.width }

// Products implements StepFeatureCurator.
func (c *gramFeatures[T]) Products(dst []int64, a []float64, reward float64) error {
	reward, err := record(dst, c.width, a, c.dim, reward, c.square)
	if err != nil {
		return err
	}
	if !c.square {
		addProducts(dst, reward, a)
		return nil
	}
	copy(c.z, a)
	c.z[c.dim] = reward
	for rest := c.z; len(rest) > 0; rest = rest[1:] {
		addProducts(dst, rest[0], rest)
		dst = dst[len(rest):]
	}
	return nil
}

// AddSteps implements StepFeatureCurator.
func (c *gramFeatures[T]) AddSteps(slot, n int, sums []int64) error {
	if uint(slot) >= uint(len(c.n)) {
		return fmt.Errorf("curator: slot is %d, must be from 0 to %d", slot, len(c.n)-1)
	}
	squares := func(yield func(int) bool) {
		for i, row := 0, c.dim+1; c.square && row > 0; i, row = i+row, row-1 {
			if !yield(i) {
				return
			}
		}
	}
	if err := checkSteps(n, c.most-c.n[slot], sums, c.width, c.unclipped, squares); err != nil {
		return fmt.Errorf("curator: slot %d: %w", slot, err)
	}
	addSteps(c.sum[slot*c.width:][:c.width], sums, c.grid)
	c.n[slot] += n
	return nil
}

// checkSteps refuses sums that no n records have: each product is from −2^20 to 2^20 steps, and a
// square is not below 0. room is how many records the slot has room for.
func checkSteps(n, room int, sums []int64, width int, unclipped bool, squares func(func(int) bool)) error {
	switch {
	case unclipped:
		return errors.New("steps are of clipped rewards, and the curator's are not")
	case n < 0 || n > room || n > maxRewards:
		return fmt.Errorf("n is %d, must be from 0 to %d", n, min(room, maxRewards))
	case len(sums) != width:
		return fmt.Errorf("there are %d sums, must be %d", len(sums), width)
	}
	most := int64(n) * gridSteps
	for _, x := range sums {
		if x < -most || x > most {
			return fmt.Errorf("a sum of %d records is out of range", n)
		}
	}
	if squares != nil {
		for i := range squares {
			if sums[i] < 0 {
				return fmt.Errorf("a sum of %d records is out of range", n)
			}
		}
	}
	return nil
}

// addSteps adds steps to sums: of integers, or of what they are a share of.
func addSteps[T number](to []T, steps []int64, grid float64) {
	for i, x := range steps {
		if grid != 0 {
			to[i] += T(x)
		} else {
			to[i] += T(float64(x) * ExactStep)
		}
	}
}

var (
	_ StepFeatureCurator = (*features[int64])(nil)
	_ StepFeatureCurator = (*gramFeatures[int64])(nil)
)
