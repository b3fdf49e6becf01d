package experiment

import (
	"fmt"
	"math"

	"github.com/sotto-dp/sotto/bound"
	"github.com/sotto-dp/sotto/internal/keyed"
)

// capped is what the kinds have in common whose runs end by themselves, or else at a cap:
// KindStopping and KindIdentify.
type capped struct{}

func (capped) length(s *Spec) (string, keyed.Count) { return "cap", s.Cap }

func (capped) checkpoints(p *Resolved) error {
	p.Checkpoints = []int{int(p.Spec.Cap)}
	return nil
}

func (capped) problem(s *Spec, _ *Cell) (bound.Problem, error) {
	return bound.Problem{}, fmt.Errorf("an experiment of kind %s has no regret", s.Kind)
}

// A unit's values are finite. A run without an estimate has the error noEstimate, and a wrong
// estimate of a mean of 0, whose relative error is infinite, has farOff.
const (
	noEstimate = -1
	farOff     = math.MaxFloat64
)

// toUnit and fromUnit turn the error of an estimate into what a unit holds of it, and back. It is
// NaN where there is no estimate.
func toUnit(x float64) float64 {
	if math.IsNaN(x) {
		return noEstimate
	}
	return min(x, farOff)
}

func fromUnit(x float64) float64 {
	switch {
	case x < 0:
		return math.NaN()
	case x == farOff:
		return math.Inf(1)
	}
	return x
}

// judge counts the failures, errors above most, and the runs without an estimate or an answer.
func (c *CellResult) judge(most float64) {
	for _, x := range c.FinalError {
		switch {
		case math.IsNaN(x):
			c.Unfinished++
		case x > most:
			c.Failures++
		}
	}
}

func (capped) protects() bool { return false }
