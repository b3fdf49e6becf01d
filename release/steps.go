package release

import (
	"errors"
	"fmt"
	"math"
)

// A Clip clips rewards to a declared range and makes them whole steps, as Real does with each reward:
// for rewards that are kept as integer sums until they are released. The zero value clips to nothing.
type Clip struct{ lo, perWidth float64 }

// NewClip clips to the declared range; both 0 means [0,1].
func NewClip(lo, hi float64) (Clip, error) {
	lo, hi = Range(lo, hi)
	switch width := hi - lo; {
	case !(lo < hi) || math.IsInf(lo, 0) || math.IsInf(hi, 0):
		return Clip{}, fmt.Errorf("range is [%v, %v], must be two finite numbers, the lower one first", lo, hi)
	case math.IsInf(width, 0) || math.IsInf(1/width, 0):
		return Clip{}, fmt.Errorf("range is [%v, %v], its width must be a normal number", lo, hi)
	default:
		return Clip{lo, 1 / width}, nil
	}
}

// Steps is the reward in multiples of ExactStep of the range, from 0 to 2^20. What is no number
// counts as the lowest reward, as in Curator.Add.
func (d Clip) Steps(reward float64) int64 {
	return int64(float64(d.share(reward)*gridSteps) + 0.5)
}

// share is where the reward lies in the range, clipped, from 0 to 1.
func (d Clip) share(reward float64) float64 {
	y := float64((reward - d.lo) * d.perWidth)
	if math.IsNaN(y) {
		y = 0
	}
	return min(max(y, 0), 1)
}

// A StepCurator takes sums of rewards that a Clip has made steps of. Real and Simulated return one if
// there is no Trust.
type StepCurator interface {
	Curator
	// AddSteps puts n rewards into the arm's slot at once, whose steps add up to this:
	// from 0 to n·2^20.
	AddSteps(arm, n int, steps int64) error
}

// AddSteps implements StepCurator.
func (c *curator[T]) AddSteps(arm, n int, steps int64) error {
	switch {
	case c.unclipped:
		return errors.New("curator: steps are of clipped rewards, and the curator's are not")
	case n < 0 || n > maxRewards:
		return fmt.Errorf("curator: n of arm %d is %d, must be from 0 to %d", arm, n, maxRewards)
	case steps < 0 || steps > int64(n)*gridSteps:
		return fmt.Errorf("curator: sum of %d rewards of arm %d is out of range", n, arm)
	case uint(arm) >= uint(len(c.slots)) || n > c.most-c.slots[arm].n:
		return c.noRoom(arm, n)
	}
	s := &c.slots[arm]
	s.n += n
	if c.half > 0 { // integers: a step is 1
		s.sum += T(steps)
	} else {
		s.sum += T(float64(steps) * ExactStep)
	}
	return nil
}
