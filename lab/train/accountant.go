package train

import (
	"fmt"
	"math"
	"sync"

	"github.com/sotto-dp/sotto/privacy"
)

// A Neighbour says which data sets must look alike.
type Neighbour int

const (
	// one has an example more: the sum of clipped gradients moves by C at most
	AddRemove  Neighbour = iota
	ReplaceOne           // one example differs: the sum moves by 2C at most
)

// String implements fmt.Stringer.
func (n Neighbour) String() string {
	if n == ReplaceOne {
		return "replace one"
	}
	return "add or remove"
}

// SampledGaussian is the accountant of DP-SGD with Poisson sampling: each of Steps steps takes each
// example with probability Rate, independently, and adds N(0, Noise²C²) to the sum of gradients of
// norm at most C. What the sum is then divided by must not depend on the sample.
type SampledGaussian struct {
	Rate  float64 // q in (0, 1]
	Noise float64 // σ > 0, the noise multiplier
	Steps int     // T ≥ 1
}

// Validate reports the first parameter out of range.
func (s SampledGaussian) Validate() error {
	if !(s.Rate > 0 && s.Rate <= 1) {
		return fmt.Errorf("train: sampling rate is %v, must be in (0, 1]", s.Rate)
	}
	if !(s.Noise > 0) || math.IsInf(s.Noise, 0) {
		return fmt.Errorf("train: noise multiplier is %v, must be positive and finite", s.Noise)
	}
	if s.Steps < 1 {
		return fmt.Errorf("train: steps = %d: at least 1", s.Steps)
	}
	return nil
}

// Renyi is the Rényi divergence of order α > 1 of all steps under a neighbouring relation; NaN if α
// is not above 1. It is +Inf where a term overflows.
//
// Add or remove: T·log(A_α)/(α−1) with A_α = E_{x∼N(0,σ²)}[((1−q) + q·e^{(2x−1)/(2σ²)})^α], which
// is exact, and the worse of both directions (Mironov, Talwar and Zhang 2019, Theorems 4 and 5).
// For integers it is the sum Σ C(α,k)(1−q)^{α−k}q^k e^{k(k−1)/(2σ²)}; else it is integrated by the
// trapezoidal rule, whose error is below the doubles for this integrand.
//
// Replace one: an upper bound. Let A be the law of a step without the example, B and B′ with either
// one: by joint convexity the pair is (1−q)A + qB against Q = (1−q)A + qB′, all three Gaussian. The
// moment is 1 + Σ_{j≥2} C(α,j) q^j ∫((B−B′)/Q)^j Q, where the integral is at most
// (1−q)∫|B−B′|^j/A^{j−1} + q∫|B−B′|^j/B′^{j−1} by convexity. At j = 2 these are at most 2e^{1/σ²} −
// 2e^{−1/σ²} and e^{4/σ²} − 1; from j = 3 on, |x−y|^j ≤ x^j + y^j gives 2e^{j(j−1)/(2σ²)} and
// e^{2j(j−1)/σ²} + 1. It follows Wang, Balle and Kasiviswanathan 2019, Theorem 9, who sample
// without replacement. It is compared with (1−q) + q·e^{2α(α−1)/σ²}, joint convexity alone, and the
// smaller one taken. Orders between integers are interpolated in (α−1)D_α, which is convex in α.
func (s SampledGaussian) Renyi(alpha float64, n Neighbour) float64 {
	if !(alpha > 1) {
		return math.NaN()
	}
	if n == ReplaceOne {
		return float64(s.Steps) * s.replaced(alpha) / (alpha - 1)
	}
	if s.Rate == 1 {
		return float64(s.Steps) * alpha / (2 * s.Noise * s.Noise)
	}
	return float64(s.Steps) * max(0, s.added(alpha)) / (alpha - 1)
}

// added is log A_α.
func (s SampledGaussian) added(alpha float64) float64 {
	v := s.Noise * s.Noise
	if alpha == math.Trunc(alpha) && alpha <= 1024 {
		// The sum less 1: by the binomial theorem, that of the same terms with expm1, so that a
		// small divergence keeps its digits.
		l := math.Inf(-1)
		for k := 2.0; k <= alpha; k++ {
			l = logAdd(l, logChoose(alpha, k)+(alpha-k)*math.Log1p(-s.Rate)+k*math.Log(s.Rate)+
				logExpm1(k*(k-1)/(2*v)))
		}
		return log1pExp(l)
	}
	// With h = σ/32 and poles no nearer than πσ² to the axis, the rule errs by e^{−2π·32·πσ}, and
	// the Gaussian by less.
	h := s.Noise / 32
	lo, hi := -12*s.Noise, alpha+12*s.Noise
	l := math.Inf(-1)
	lq, lp := math.Log(s.Rate), math.Log1p(-s.Rate)
	for i := 0; lo+float64(i)*h <= hi; i++ {
		x := lo + float64(i)*h
		l = logAdd(l, -x*x/(2*v)+alpha*logAdd(lp, lq+(2*x-1)/(2*v)))
	}
	return l + math.Log(h/(s.Noise*math.Sqrt(2*math.Pi)))
}

// replaced is the bound on (α−1)D_α of one step.
func (s SampledGaussian) replaced(alpha float64) float64 {
	v := s.Noise * s.Noise
	if s.Rate == 1 {
		return alpha * (alpha - 1) * 2 / v
	}
	lo := math.Floor(alpha)
	convex := log1pExp(math.Log(s.Rate) + logExpm1(2*alpha*(alpha-1)/v))
	between := s.replacedInteger(lo)
	if lo < alpha {
		w := alpha - lo
		between = (1-w)*between + w*s.replacedInteger(lo+1)
	}
	return min(convex, between)
}

func (s SampledGaussian) replacedInteger(alpha float64) float64 {
	if alpha < 2 {
		return 0 // (α−1)D_α at α = 1
	}
	v := s.Noise * s.Noise
	lq, lp := math.Log(s.Rate), math.Log1p(-s.Rate)
	sum := math.Inf(-1)
	for j := 2.0; j <= alpha; j++ {
		var a, b float64
		if j == 2 {
			a = math.Ln2 - 1/v + logExpm1(2/v)
			b = logExpm1(4 / v)
		} else {
			a = math.Ln2 + j*(j-1)/(2*v)
			b = log1pExp(2 * j * (j - 1) / v)
		}
		sum = logAdd(sum, logChoose(alpha, j)+j*lq+logAdd(lp+a, lq+b))
	}
	return log1pExp(sum)
}

// orders are those that Epsilon tries: fine near 1, where little noise has its best, and far up,
// where much noise has.
func orders() []float64 {
	var o []float64
	for a := 1.05; a < 11; a += 0.05 {
		o = append(o, math.Round(a*100)/100)
	}
	for a := 11.0; a < 64; a++ {
		o = append(o, a)
	}
	for a := 64.0; a <= 1024; a *= 1.1 {
		o = append(o, math.Round(a))
	}
	return o
}

// A Guarantee is an (ε,δ) and where it comes from.
type Guarantee struct {
	Epsilon, Delta float64
	Neighbour      Neighbour
	// the Rényi order of the best conversion; 0 where another route is better
	Order float64
	Route string
}

// Epsilon is the smallest ε at δ in (0,1) that this accountant can prove: by the law of the privacy
// loss (privacy.PLD), or where that has too little room, by the best conversion [Chowdhury and Zhou
// 2023, Lemma 10] over many Rényi orders. At q = 1 it is the exact ε of the
// Gaussian mechanism, μ = √T/σ for add or remove and twice that for replace one. Under replace
// one there are two more routes, of which the smallest is taken: the Gaussian mechanism of
// sensitivity 2C without any amplification, and removing and then adding, which is (2ε,
// (1+e^ε)δ)-DP where each is (ε,δ)-DP.
func (s SampledGaussian) Epsilon(delta float64, n Neighbour) (Guarantee, error) {
	return s.Guarantees(n)(delta)
}

// Guarantees is Epsilon for many δ: the divergences, which are most of the work, are computed once.
func (s SampledGaussian) Guarantees(n Neighbour) func(delta float64) (Guarantee, error) {
	type order struct{ alpha, added, own float64 }
	divergences := sync.OnceValue(func() (all []order) {
		for _, a := range orders() {
			o := order{alpha: a, added: s.Renyi(a, AddRemove)}
			if o.own = o.added; n == ReplaceOne {
				o.own = s.Renyi(a, ReplaceOne)
			}
			all = append(all, o)
		}
		return all
	})
	law := sync.OnceValues(s.law)
	return func(delta float64) (Guarantee, error) {
		if err := s.Validate(); err != nil {
			return Guarantee{}, err
		}
		if !(delta > 0 && delta < 1) {
			return Guarantee{}, fmt.Errorf("train: δ is %v, must be in (0, 1)", delta)
		}
		mu := math.Sqrt(float64(s.Steps)) / s.Noise
		if n == ReplaceOne {
			mu *= 2
		}
		// Without amplification this holds at any q: a step's law is a mixture of Gaussians at most so
		// far apart, over coins that both worlds share.
		best := Guarantee{privacy.GaussianEpsilon(mu, delta), delta, n, 0,
			"Gaussian mechanism, no amplification"}
		if s.Rate == 1 {
			return best, nil
		}
		for _, o := range divergences() {
			if e := privacy.RenyiToApprox(o.alpha, o.own, delta); e < best.Epsilon {
				best = Guarantee{e, delta, n, o.alpha, "Rényi divergence of the sampled Gaussian"}
			}
		}
		loss, known := law()
		if n == AddRemove {
			if known {
				if e := loss.Epsilon(delta); e < best.Epsilon {
					best = Guarantee{e, delta, n, 0, "law of the privacy loss"}
				}
			}
			return best, nil
		}
		// ε ↦ (1+e^ε)·δ(ε) falls: the half ε at which it is δ is a fixed point, found by bisection.
		twice := func(alpha float64, half func(e float64) bool) {
			lo, hi := 0.0, best.Epsilon/2
			if !half(hi) {
				return
			}
			for range 60 {
				if m := (lo + hi) / 2; half(m) {
					hi = m
				} else {
					lo = m
				}
			}
			if 2*hi < best.Epsilon {
				best = Guarantee{2 * hi, delta, n, alpha, "removing and then adding"}
			}
		}
		for _, o := range divergences() {
			twice(o.alpha, func(e float64) bool {
				return privacy.RenyiToApprox(o.alpha, o.added, delta/(1+math.Exp(e))) <= e
			})
		}
		if known {
			twice(0, func(e float64) bool { return loss.Delta(e)*(1+math.Exp(e)) <= delta })
		}
		return best, nil
	}
}

// law is that of the privacy loss of all steps for an example more or less: a step's, sampled, and
// composed. A grid adds at most its step squared over 4 to the variance of each step's loss.
func (s SampledGaussian) law() (p privacy.PLD, known bool) {
	for step := min(1e-3, 0.05/math.Sqrt(float64(s.Steps))); step < 0.1; step *= 4 {
		p, err := privacy.NewPLD(privacy.Gaussian{Sigma: s.Noise}, step)
		if err == nil {
			p, err = p.Sampled(s.Rate)
		}
		if err == nil {
			p, err = p.Times(s.Steps)
		}
		if err == nil {
			return p, true
		}
	}
	return privacy.PLD{}, false
}

func logChoose(n, k float64) float64 {
	a, _ := math.Lgamma(n + 1)
	b, _ := math.Lgamma(k + 1)
	c, _ := math.Lgamma(n - k + 1)
	return a - b - c
}

func logAdd(a, b float64) float64 {
	if a < b {
		a, b = b, a
	}
	if math.IsInf(b, -1) {
		return a
	}
	return a + math.Log1p(math.Exp(b-a))
}

// logExpm1 is log(e^x − 1) for x ≥ 0.
func logExpm1(x float64) float64 {
	if x > 40 {
		return x
	}
	return math.Log(math.Expm1(x))
}

// log1pExp is log(1 + e^x).
func log1pExp(x float64) float64 {
	if x > 40 {
		return x
	}
	return math.Log1p(math.Exp(x))
}
