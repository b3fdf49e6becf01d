package bandit

import (
	"fmt"

	"github.com/sotto-dp/sotto/noise"
)

// A Source is where the instances of an experiment come from.
type Source interface {
	// Instance is an instance, drawn from the stream if the source is random.
	Instance(s *noise.Fast) (Instance, error)
	// Redrawn says whether every run has its own instance. If not, the caller draws one
	// instance, from the stream of role noise.RoleInstance of the experiment (not of a run),
	// and all runs share it.
	Redrawn() bool
	// String is the source's content; equal strings are equal sources.
	String() string
}

// Fixed is the source that always gives this instance.
type Fixed Instance

// Instance is the instance itself, if it is valid; it reads nothing from the stream,
// which may be nil.
func (f Fixed) Instance(*noise.Fast) (Instance, error) {
	in := Instance(f)
	if err := in.Validate(); err != nil {
		return Instance{}, err
	}
	return in, nil
}

// Redrawn is false.
func (f Fixed) Redrawn() bool { return false }

// String is the instance's.
func (f Fixed) String() string { return Instance(f).String() }

// MaxArms is the largest number of arms that a generator makes.
const MaxArms = 1 << 20

func checkArms(k int) error {
	if k < 2 || k > MaxArms {
		return fmt.Errorf("the number of arms is %d, must be between 2 and %d", k, MaxArms)
	}
	return nil
}

// Standard is the instance C_c, c from 1 to 4, of [Sajed 2019, chapter 6], for any number of arms K
// ≥ 2: Bernoulli arms, the first the best, of means
//
//	C₁  0.75, then 0.7 for all others
//	C₂  linear from 0.75 down to 0.25
//	C₃  a(i−K)²+c, convex, a > 0:   many arms with a large gap
//	C₄  a(i−1)²+c, concave, a < 0:  many arms with a small gap
//
// where C₃ and C₄ also go from 0.75 at i = 1 to 0.25 at i = K. The lists printed there for K = 5
// hold a misprint each (0.525): C₂ is 0.75, 0.625, 0.5, 0.375, 0.25 and C₄'s third mean is 0.625.
func Standard(c, k int) (Instance, error) {
	if c < 1 || c > 4 {
		return Instance{}, fmt.Errorf("standard instance C%d: c must be 1, 2, 3 or 4", c)
	}
	if err := checkArms(k); err != nil {
		return Instance{}, fmt.Errorf("standard instance C%d: %w", c, err)
	}
	const top, bottom, second = 0.75, 0.25, 0.7
	means := make([]float64, k)
	for j := range means {
		x := float64(j) / float64(k-1) // (i−1)/(K−1)
		y := float64(k-1-j) / float64(k-1)
		switch c {
		case 1:
			means[j] = second
			if j == 0 {
				means[j] = top
			}
		case 2:
			means[j] = top - float64((top-bottom)*x)
		case 3:
			means[j] = bottom + float64((top-bottom)*y*y)
		case 4:
			means[j] = top - float64((top-bottom)*x*x)
		}
	}
	return BernoulliInstance(means...)
}

// A Family is a law up to its location, for sources that draw the means.
type Family struct {
	kind       kind
	sd, lo, hi float64
}

type kind uint8

const (
	bernoulli kind = iota
	gaussian
	clippedGaussian
)

// BernoulliFamily is the Bernoulli laws; the zero Family.
func BernoulliFamily() Family { return Family{} }

// GaussianFamily is the normal laws of this standard deviation, sd > 0.
func GaussianFamily(sd float64) (Family, error) {
	if err := checkSD("gaussian", sd); err != nil {
		return Family{}, err
	}
	return Family{kind: gaussian, sd: sd}, nil
}

// ClippedGaussianFamily is the normal laws of this standard deviation, sd > 0, clipped to [lo,hi].
func ClippedGaussianFamily(sd, lo, hi float64) (Family, error) {
	if _, err := NewClippedGaussian(0, sd, lo, hi); err != nil {
		return Family{}, err
	}
	return Family{kind: clippedGaussian, sd: sd, lo: unsigned(lo), hi: unsigned(hi)}, nil
}

// Law is the family's law of this mean. For clipped Gaussians it is the mean before clipping, as in
// [Chowdhury and Zhou 2023, §5]; the law's own Mean is that after clipping.
func (f Family) Law(mean float64) (Law, error) {
	switch f.kind {
	case gaussian:
		return familyLaw(NewGaussian(mean, f.sd))
	case clippedGaussian:
		return familyLaw(NewClippedGaussian(mean, f.sd, f.lo, f.hi))
	default:
		return familyLaw(NewBernoulli(mean))
	}
}

func familyLaw[L Law](l L, err error) (Law, error) {
	if err != nil {
		return nil, err
	}
	return l, nil
}

// String is the law's name with the parameters that the family fixes.
func (f Family) String() string {
	switch f.kind {
	case gaussian:
		return "gaussian(sd=" + number(f.sd) + ")"
	case clippedGaussian:
		return "clipped-gaussian(sd=" + number(f.sd) + ",lo=" + number(f.lo) + ",hi=" + number(f.hi) + ")"
	default:
		return "bernoulli"
	}
}

// UniformMeans is a source of instances whose means are independent and uniform in [lo,hi].
// [Chowdhury and Zhou 2023, §5] calls [0.25,0.75] easy and [0.45,0.55] hard.
type UniformMeans struct {
	arms    int
	lo, hi  float64
	family  Family
	redrawn bool
}

// NewUniformMeans returns the source of instances of this many arms, from 2 to MaxArms, with means
// uniform in [lo,hi], lo < hi, which the family must allow. If redrawn, every run has its own
// means; else all runs share one instance, which the caller draws once.
func NewUniformMeans(arms int, lo, hi float64, family Family, redrawn bool) (UniformMeans, error) {
	const name = "uniform means"
	if err := checkArms(arms); err != nil {
		return UniformMeans{}, fmt.Errorf("%s: %w", name, err)
	}
	if err := checkInterval(name, lo, hi); err != nil {
		return UniformMeans{}, err
	}
	for _, m := range []float64{lo, hi} { // what is allowed at both ends is allowed between
		if _, err := family.Law(m); err != nil {
			return UniformMeans{}, fmt.Errorf("%s in [%v,%v]: %w", name, lo, hi, err)
		}
	}
	return UniformMeans{arms, unsigned(lo), unsigned(hi), family, redrawn}, nil
}

// Instance draws the means, one uniform each in the order of the arms.
func (u UniformMeans) Instance(s *noise.Fast) (Instance, error) {
	arms := make([]Law, u.arms)
	mean := Uniform{u.lo, u.hi}
	for i := range arms {
		l, err := u.family.Law(mean.Draw(s))
		if err != nil {
			return Instance{}, fmt.Errorf("arm %d: %w", i+1, err)
		}
		arms[i] = l
	}
	return NewInstance(arms...)
}

// Redrawn says whether every run has its own means.
func (u UniformMeans) Redrawn() bool { return u.redrawn }

// String is uniform-means(arms=…,lo=…,hi=…,law=…,redrawn=…).
func (u UniformMeans) String() string {
	return fmt.Sprintf("uniform-means(arms=%d,lo=%s,hi=%s,law=%v,redrawn=%t)", u.arms, number(u.lo),
		number(u.hi), u.family, u.redrawn)
}

var (
	_ Source = Fixed{}
	_ Source = UniformMeans{}
)
