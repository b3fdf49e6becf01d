package bandit

import (
	"math"

	"github.com/sotto-dp/sotto/noise"
)

// ClippedGaussian is a normal reward clipped to [lo,hi]: what falls outside becomes the
// nearer end ([Chowdhury and Zhou 2023, §5] uses sd 0.1 on [0,1]). An arm's true mean is that
// of the clipped law.
type ClippedGaussian struct{ mean, sd, lo, hi float64 }

// NewClippedGaussian returns the law of a normal of this mean and standard deviation, sd > 0,
// clipped to [lo,hi], lo < hi. The mean may lie outside the interval.
func NewClippedGaussian(mean, sd, lo, hi float64) (ClippedGaussian, error) {
	const law = "clipped-gaussian"
	if err := checkNumber(law, "mean", mean); err != nil {
		return ClippedGaussian{}, err
	}
	if err := checkSD(law, sd); err != nil {
		return ClippedGaussian{}, err
	}
	if err := checkInterval(law, lo, hi); err != nil {
		return ClippedGaussian{}, err
	}
	return ClippedGaussian{unsigned(mean), sd, unsigned(lo), unsigned(hi)}, nil
}

// Mean is the mean of the clipped law.
//
// With α = (lo−mean)/sd, β = (hi−mean)/sd, Q the normal tail and G(z) = E(Z−z)⁺ = φ(z) − zQ(z),
// clipping at lo adds sd·G(−α) to the mean and clipping at hi takes sd·G(β) away. The three forms
// below are that formula measured from the mean, from lo and from hi, so that G is only needed for
// z ≥ 0, where it is small and nothing large cancels.
func (c ClippedGaussian) Mean() float64 {
	α, β := (c.lo-c.mean)/c.sd, (c.hi-c.mean)/c.sd
	width := c.hi - c.lo
	var m float64
	switch {
	case β-α < 1e-3:
		// The interval is so narrow beside sd that the differences of G cancel. The mean is lo + ∫Q
		// over the interval; about the middle z, Q is Q(z) plus an odd part plus Q″(z)x²/2 with Q″
		// = zφ, which is zφ(z)w²/24 on average. The next term is below 1e-15.
		w, z := width/c.sd, α+(β-α)/2
		m = c.lo + float64(width*(tail(z)+float64(density(z)*z*w*w/24)))
	case α > 0:
		m = c.lo + float64(c.sd*(excess(α)-excess(β)))
	case β < 0:
		m = c.hi - float64(c.sd*(excess(-β)-excess(-α)))
	default:
		m = c.mean + float64(c.sd*(excess(-α)-excess(β)))
	}
	return min(max(m, c.lo), c.hi)
}

// density is the standard normal density φ, and 0 where it leaves the doubles.
func density(z float64) float64 {
	if math.Abs(z) > 40 {
		return 0 // also keeps 0·∞ out of the formulas
	}
	return math.Exp(-z*z/2) / math.Sqrt(2*math.Pi)
}

// tail is Q(z) = P(Z > z).
func tail(z float64) float64 { return math.Erfc(z/math.Sqrt2) / 2 }

// excess is G(z) = E(Z−z)⁺ for z ≥ 0.
func excess(z float64) float64 {
	if z > 40 {
		return 0
	}
	return density(z) - float64(z*tail(z))
}

// Support is [lo,hi].
func (c ClippedGaussian) Support() (lo, hi float64) { return c.lo, c.hi }

// Draw is one normal draw, clipped.
func (c ClippedGaussian) Draw(s *noise.Fast) float64 {
	return min(max(c.mean+float64(c.sd*s.Normal()), c.lo), c.hi)
}

// Sum adds n draws. The sum has no closed law. Drawing the numbers of clipped rewards first would
// leave a sum of truncated normals, which has none either, and in the cases of interest most
// rewards are not clipped.
func (c ClippedGaussian) Sum(n int, s *noise.Fast) float64 {
	var x float64
	for range n {
		x += c.Draw(s)
	}
	return x
}

// String is clipped-gaussian(mean,sd,lo,hi).
func (c ClippedGaussian) String() string {
	return format("clipped-gaussian", c.mean, c.sd, c.lo, c.hi)
}
