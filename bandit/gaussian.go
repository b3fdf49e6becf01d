package bandit

import (
	"math"

	"github.com/sotto-dp/sotto/noise"
)

// Gaussian is the normal law. Its rewards are unbounded: a curator clips them to the declared range.
type Gaussian struct{ mean, sd float64 }

// NewGaussian returns the normal law of this mean and standard deviation, sd > 0.
func NewGaussian(mean, sd float64) (Gaussian, error) {
	if err := checkNumber("gaussian", "mean", mean); err != nil {
		return Gaussian{}, err
	}
	if err := checkSD("gaussian", sd); err != nil {
		return Gaussian{}, err
	}
	return Gaussian{unsigned(mean), sd}, nil
}

// Mean is the mean.
func (g Gaussian) Mean() float64 { return g.mean }

// Support is the line.
func (g Gaussian) Support() (lo, hi float64) { return math.Inf(-1), math.Inf(1) }

// Draw is one normal draw.
func (g Gaussian) Draw(s *noise.Fast) float64 { return g.mean + float64(g.sd*s.Normal()) }

// Sum is normal with mean n·mean and standard deviation √n·sd, in O(1).
func (g Gaussian) Sum(n int, s *noise.Fast) float64 {
	if n <= 0 {
		return 0
	}
	m := float64(n)
	return float64(m*g.mean) + float64(float64(math.Sqrt(m)*g.sd)*s.Normal())
}

// String is gaussian(mean,sd).
func (g Gaussian) String() string { return format("gaussian", g.mean, g.sd) }
