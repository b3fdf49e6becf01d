package sim

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/policy"
)

// Contexts are those that people come with, where an instance has as many arms for each: arm a of context c is its arm
// cK + a, and what a play loses is lost against the best arm of its context.
type Contexts struct {
	Shares []float64   // probability of each context; they add up to 1
	Stream *noise.Fast // which they are drawn from
}

// begin has the policy play people of these contexts, in a run that is looked at after rounds of at and ends with the last.
func (c *Contexts) begin(p policy.Policy, arms int, at []int, cfg *Config) error {
	if c == nil {
		return nil
	}
	sum := 0.0
	for _, q := range c.Shares {
		if !(q > 0 && q <= 1) {
			return fmt.Errorf("sim: the share of a context is %v, must be above 0 and at most 1", q)
		}
		sum += q
	}
	n := len(c.Shares)
	own, ok := p.(interface {
		Contexts() int
		SetArrivals(policy.Arrivals, []int)
	})
	switch {
	case n == 0 || math.Abs(sum-1) > 1e-9 || c.Stream == nil:
		return fmt.Errorf("sim: the shares of %d contexts add up to %v, must be at least one, add up to 1 and have a stream", n, sum)
	case arms%n != 0 || arms/n < 2:
		return fmt.Errorf("sim: the instance has %d arms for %d contexts, must have as many for each, at least 2", arms, n)
	case !ok || own.Contexts() != n:
		return fmt.Errorf("sim: the policy does not play %d contexts", n)
	case cfg.Instance.Drifts():
		return errDrift
	case cfg.Trust != nil && cfg.Trust.Dropout > 0:
		return errors.New("sim: there are contexts and users who do not answer, must be one or the other")
	case cfg.Intervals != nil:
		return errors.New("sim: there are contexts and intervals, must be one or the other")
	}
	own.SetArrivals(c.come, slices.Clone(at))
	return nil
}

// come implements policy.Arrivals.
func (c *Contexts) come(n int, to []int) {
	rest := 1.0
	for i, q := range c.Shares[:len(c.Shares)-1] {
		to[i] = c.Stream.Binomial(n, min(1, q/rest))
		n, rest = n-to[i], rest-q
	}
	to[len(to)-1] = n
}

// of is how many contexts there are.
func (c *Contexts) of() int {
	if c == nil {
		return 1
	}
	return len(c.Shares)
}
