package bound

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/sotto-dp/sotto/internal/divergence"
)

// A Law is the reward law P of an arm within a class M of laws that it could have been: what a
// problem-dependent lower bound needs to know.
type Law interface {
	Mean() float64
	// KLInf is inf{KL(P‖P′) : P′ ∈ M, mean(P′) > x} [Azize 2024, Definition 2.30]: 0 for x below
	// the mean, +Inf where no law of the class has a mean above x, and NaN where it is not known.
	KLInf(x float64) float64
	// TVInf is inf{TV(P‖P′) : P′ ∈ M, mean(P′) > x} [Azize 2024, §4.3.1], likewise.
	TVInf(x float64) float64
}

// Bernoulli is the law of mean p in [0,1] in the class of all Bernoulli laws: KL_inf is kl(p,x) and
// TV_inf is x − p.
type Bernoulli float64

// Mean implements Law.
func (p Bernoulli) Mean() float64 { return float64(p) }

// KLInf implements Law.
func (p Bernoulli) KLInf(x float64) float64 {
	switch {
	case !(p >= 0 && p <= 1):
		return math.NaN()
	case x >= 1:
		return math.Inf(1)
	case x <= float64(p):
		return 0
	}
	return divergence.KL(float64(p), x)
}

// TVInf implements Law.
func (p Bernoulli) TVInf(x float64) float64 {
	switch {
	case !(p >= 0 && p <= 1):
		return math.NaN()
	case x >= 1:
		return math.Inf(1)
	}
	return max(0, x-float64(p))
}

// Gaussian is a normal law in the class of all those of its standard deviation: for a gap Δ = x −
// Mu, KL_inf is Δ²/(2σ²) and TV_inf is 2Φ(Δ/(2σ)) − 1.
type Gaussian struct{ Mu, Sigma float64 }

// Mean implements Law.
func (g Gaussian) Mean() float64 { return g.Mu }

// KLInf implements Law.
func (g Gaussian) KLInf(x float64) float64 {
	if !(g.Sigma > 0) {
		return math.NaN()
	}
	z := max(0, x-g.Mu) / g.Sigma
	return float64(z*z) / 2
}

// TVInf implements Law.
func (g Gaussian) TVInf(x float64) float64 {
	if !(g.Sigma > 0) {
		return math.NaN()
	}
	return math.Erf(max(0, x-g.Mu) / g.Sigma / (2 * math.Sqrt2))
}

// Finite is a law of finitely many values in the class of all laws on [Lo,Hi].
type Finite struct {
	values, p []float64 // increasing
	lo, hi    float64
	mean      float64
}

// NewFinite returns the law of the values with their probabilities (weights, which need not sum to
// 1) in the class of all laws on [lo,hi].
func NewFinite(values, p []float64, lo, hi float64) (*Finite, error) {
	if len(values) != len(p) || len(p) == 0 {
		return nil, fmt.Errorf("bound: %d values and %d probabilities, must be as many and at "+
			"least one", len(values), len(p))
	}
	if !(lo < hi) || math.IsInf(lo, 0) || math.IsInf(hi, 0) {
		return nil, fmt.Errorf("bound: the range is [%v, %v], must be finite with its ends in order", lo, hi)
	}
	type atom struct{ v, p float64 }
	atoms, total := make([]atom, len(p)), 0.0
	for i, v := range values {
		if !(v >= lo && v <= hi) {
			return nil, fmt.Errorf("bound: value %v is outside [%v, %v]", v, lo, hi)
		}
		if !(p[i] > 0) || math.IsInf(p[i], 1) {
			return nil, fmt.Errorf("bound: the probability of %v is %v, must be above 0 and finite", v, p[i])
		}
		atoms[i] = atom{v, p[i]}
		total += p[i]
	}
	slices.SortFunc(atoms, func(a, b atom) int { return cmp.Compare(a.v, b.v) })
	f := &Finite{lo: lo, hi: hi}
	for _, a := range atoms {
		f.values, f.p = append(f.values, a.v), append(f.p, a.p/total)
		f.mean += float64(a.v * (a.p / total))
	}
	return f, nil
}

// Mean implements Law.
func (f *Finite) Mean() float64 { return f.mean }

// KLInf is max{E log(1 − λ(X−x)) : 0 ≤ λ ≤ 1/(Hi−x)}, the dual of the infimum over laws on [Lo,Hi]
// (Honda and Takemura 2010, Theorem 8; 2015). It is concave in λ: bisection on the derivative.
func (f *Finite) KLInf(x float64) float64 {
	switch {
	case x >= f.hi:
		return math.Inf(1)
	case x <= f.mean:
		return 0
	}
	slope := func(lambda float64) (s float64) {
		for i, v := range f.values {
			s -= f.p[i] * (v - x) / (1 - float64(lambda*(v-x)))
		}
		return s
	}
	lo, hi := 0.0, 1/(f.hi-x)
	for range 200 {
		mid := lo + (hi-lo)/2
		if mid == lo || mid == hi {
			break
		}
		if slope(mid) > 0 {
			lo = mid
		} else {
			hi = mid
		}
	}
	value := func(lambda float64) (s float64) {
		for i, v := range f.values {
			s += f.p[i] * math.Log1p(-float64(lambda*(v-x)))
		}
		return s
	}
	best := value(lo)
	if end := value(1 / (f.hi - x)); end > best { // no mass at Hi, and the maximum is at the edge
		best = end
	}
	return max(0, best)
}

// TVInf is the least probability that, moved from the lowest values to Hi, lifts the mean to x.
func (f *Finite) TVInf(x float64) float64 {
	if x >= f.hi {
		return math.Inf(1)
	}
	need, moved := x-f.mean, 0.0
	for i, v := range f.values {
		if !(need > 0) {
			break
		}
		if gain := float64(f.p[i] * (f.hi - v)); gain < need {
			need, moved = need-gain, moved+f.p[i]
		} else {
			return moved + need/(f.hi-v)
		}
	}
	return moved
}

// Uniform is the uniform law on [A,B] in the class of all laws on [Lo,Hi], which contains it.
type Uniform struct{ A, B, Lo, Hi float64 }

// Mean implements Law.
func (u Uniform) Mean() float64 { return u.A + (u.B-u.A)/2 }

// KLInf is Finite's dual, with E log(1 − λ(X−x)) in closed form; the maximum of a concave function,
// by golden section.
func (u Uniform) KLInf(x float64) float64 {
	switch {
	case x >= u.Hi:
		return math.Inf(1)
	case x <= u.Mean():
		return 0
	}
	less := func(lambda float64) float64 {
		// (1/(B−A)) ∫ log(1 − λ(t−x)) dt = (G(p) − G(q))/(p − q), G(z) = z log z − z, between p
		// at A and q at B.
		p, q := 1+float64(lambda*(x-u.A)), 1-float64(lambda*(u.B-x))
		g := func(z float64) float64 {
			if z <= 0 {
				return 0
			}
			return float64(z*math.Log(z)) - z
		}
		if p-q < 1e-6 { // a narrow law is a point, up to its variance
			m := (p + q) / 2
			return (p-q)*(p-q)/(24*m*m) - math.Log(m)
		}
		return (g(q) - g(p)) / (p - q)
	}
	return max(0, -divergence.Golden(less, 0, 1/(u.Hi-x), 1e-12/(u.Hi-x)))
}

// TVInf moves the lowest share m to Hi: the mean gains m(Hi − A − m(B−A)/2).
func (u Uniform) TVInf(x float64) float64 {
	if x >= u.Hi {
		return math.Inf(1)
	}
	need := x - u.Mean()
	if need <= 0 {
		return 0
	}
	h, w := u.Hi-u.A, u.B-u.A
	return min(1, 2*need/(h+math.Sqrt(max(0, float64(h*h)-2*float64(w*need)))))
}

// MeanOnly is a law of which nothing but its mean is used: the problem-dependent lower
// bounds are left out.
type MeanOnly float64

// Mean implements Law.
func (m MeanOnly) Mean() float64 { return float64(m) }

// KLInf implements Law.
func (m MeanOnly) KLInf(float64) float64 { return math.NaN() }

// TVInf implements Law.
func (m MeanOnly) TVInf(float64) float64 { return math.NaN() }
