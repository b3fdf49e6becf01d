package bandit

import (
	"fmt"
	"math"

	"github.com/sotto-dp/sotto/noise"
)

// Beta is the law on [0,1] with density proportional to x^{a−1}(1−x)^{b−1}.
type Beta struct{ a, b float64 }

// Shapes outside these bounds are one point, or two, in double arithmetic.
const minShape, maxShape = 1e-6, 1e12

// NewBeta returns the Beta law with shapes a and b, each from 1e-6 to 1e12.
func NewBeta(a, b float64) (Beta, error) {
	for _, f := range []struct {
		name string
		x    float64
	}{{"a", a}, {"b", b}} {
		if !(f.x >= minShape && f.x <= maxShape) {
			return Beta{}, fmt.Errorf("beta: %s is %v, must be between %v and %v", f.name, f.x,
				minShape, maxShape)
		}
	}
	return Beta{a, b}, nil
}

// Mean is a/(a+b).
func (b Beta) Mean() float64 { return b.a / (b.a + b.b) }

// Support is [0,1].
func (b Beta) Support() (lo, hi float64) { return 0, 1 }

// Draw is X/(X+Y) of two independent Gamma draws X and Y of shapes a and b. The ratio is taken of
// logarithms: for small shapes both underflow.
func (b Beta) Draw(s *noise.Fast) float64 {
	x := s.LogGamma(b.a)
	y := s.LogGamma(b.b)
	return 1 / (1 + math.Exp(y-x))
}

// Sum adds n draws.
func (b Beta) Sum(n int, s *noise.Fast) float64 {
	var x float64
	for range n {
		x += b.Draw(s)
	}
	return x
}

// String is beta(a,b).
func (b Beta) String() string { return format("beta", b.a, b.b) }
