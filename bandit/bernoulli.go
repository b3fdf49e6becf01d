package bandit

import (
	"fmt"

	"github.com/sotto-dp/sotto/noise"
)

// Bernoulli is 1 with probability p, else 0.
type Bernoulli struct{ p float64 }

// NewBernoulli returns the Bernoulli law of mean p in [0,1].
func NewBernoulli(p float64) (Bernoulli, error) {
	if !(p >= 0 && p <= 1) {
		return Bernoulli{}, fmt.Errorf("bernoulli: p is %v, must be between 0 and 1", p)
	}
	return Bernoulli{unsigned(p)}, nil
}

// Mean is p.
func (b Bernoulli) Mean() float64 { return b.p }

// Support is [0,1], or one point if p is 0 or 1.
func (b Bernoulli) Support() (lo, hi float64) {
	switch b.p {
	case 0:
		return 0, 0
	case 1:
		return 1, 1
	}
	return 0, 1
}

// Draw is 0 or 1.
func (b Bernoulli) Draw(s *noise.Fast) float64 {
	x := 0 // an integer first: no branch that every other reward would mispredict
	if s.Bernoulli(b.p) {
		x = 1
	}
	return float64(x)
}

// Sum is binomial, in O(1).
func (b Bernoulli) Sum(n int, s *noise.Fast) float64 {
	switch {
	case n <= 0:
		return 0
	case n == 1: // policies that decide each round ask for nothing else
		return b.Draw(s)
	}
	return float64(s.Binomial(n, b.p))
}

// String is bernoulli(p).
func (b Bernoulli) String() string { return format("bernoulli", b.p) }
