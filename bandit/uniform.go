package bandit

import "github.com/sotto-dp/sotto/noise"

// Uniform is the uniform law on an interval.
type Uniform struct{ lo, hi float64 }

// NewUniform returns the uniform law on [lo,hi], lo < hi.
func NewUniform(lo, hi float64) (Uniform, error) {
	if err := checkInterval("uniform", lo, hi); err != nil {
		return Uniform{}, err
	}
	return Uniform{unsigned(lo), unsigned(hi)}, nil
}

// Mean is the middle.
func (u Uniform) Mean() float64 { return u.lo + (u.hi-u.lo)/2 }

// Support is [lo,hi].
func (u Uniform) Support() (lo, hi float64) { return u.lo, u.hi }

// Draw is uniform, in steps of (hi−lo)·2⁻⁵³.
func (u Uniform) Draw(s *noise.Fast) float64 {
	return min(u.lo+float64((u.hi-u.lo)*s.Float64()), u.hi) // the last rounding may go past hi
}

// Sum adds n draws: the Irwin–Hall law has a closed density, but no O(1) sampler.
func (u Uniform) Sum(n int, s *noise.Fast) float64 {
	if n <= 0 {
		return 0
	}
	var x float64
	for range n {
		x += s.Float64()
	}
	m := float64(n)
	return min(float64(m*u.lo)+float64((u.hi-u.lo)*x), m*u.hi)
}

// String is uniform(lo,hi).
func (u Uniform) String() string { return format("uniform", u.lo, u.hi) }
