package identify

import (
	"math"

	"github.com/sotto-dp/sotto/internal/divergence"
)

// A Sample is what a rule knows of an arm when it looks: its last private mean and where
// that comes from.
type Sample struct {
	Mean   float64 // private, clipped to [0,1] unless the rule says otherwise
	N      float64 // ω: rewards behind the mean; plays of the arm where a challenger is chosen
	Phase  int     // k(ω), which the union bound over phases is taken over: 1, 2, …
	Noises int     // Laplace noises in N·Mean
	Scale  float64 // of each of them, 1/ε; 0: none
	Log    float64 // what the noise's law adds to the logarithm of a Laplace width (privacy.Tail)
}

// epsilon is the ε of the sample's noise, +Inf without noise.
func (s Sample) epsilon() float64 { return 1 / s.Scale }

// A Cost is a transportation cost W_{a,b}(μ̃, ω): how much evidence there is against arm b being at
// least as good as arm a. It is at least 0, it is 0 if b's mean is not below a's, and it does not
// decrease in either N.
type Cost interface {
	Between(a, b Sample) float64
}

// GaussianCost is [Azize 2024, (5.9)], (μ̃_a − μ̃_b)₊²/(2σ²(1/ω_a + 1/ω_b)), for σ-sub-Gaussian
// rewards: Sigma is 1/2 for rewards in [0,1].
type GaussianCost struct{ Sigma float64 }

// PrivateGaussianCost is [Azize 2024, (5.12)], (μ̃_a − μ̃_b)₊ min{3ε, (μ̃_a − μ̃_b)₊}/(2σ²(1/ω_a +
// 1/ω_b)): the shape that ε-DP leaves, with total variation where the gap is large against ε.
type PrivateGaussianCost struct{ Sigma, Epsilon float64 }

// BernoulliCost is inf_u { ω_a kl(μ_a,u) + ω_b kl(μ_b,u) } if μ_a > μ_b, the generalised likelihood
// ratio of Bernoulli arms [Azize 2024, §2.2.9]. The infimum is at the mean of both samples
// together. Means are in [0,1].
type BernoulliCost struct{}

// DEpsCost is DP-TT's, inf_u { ω_a d_ε⁻(μ_a,u) + ω_b d_ε⁺(μ_b,u) }, where d_ε⁺(x,u) is
// divergence.DEps(x,u,ε) for u > x and 0 for u ≤ x, and d_ε⁻(x,u) = d_ε⁺(1−x,1−u). Its ε are those
// of the samples' noise; without noise it is BernoulliCost. Means are in [0,1].
type DEpsCost struct{}

// NoisyCost is DEpsCost with the noise-aware divergence J_{m/n} (divergence.DEpsNoisy)
// instead of d_ε, m the Noises of a sample and n its N: what remains a bound when a mean
// carries more than one noise.
type NoisyCost struct{}

// A harmonic cost is rate(gap)/(1/ω_a + 1/ω_b).
type harmonic interface {
	Cost
	rate(gap float64) float64
}

func (c GaussianCost) rate(gap float64) float64 {
	gap = max(gap, 0)
	return float64(gap*gap) / float64(2*float64(c.Sigma*c.Sigma))
}

func (c PrivateGaussianCost) rate(gap float64) float64 {
	gap = max(gap, 0)
	return float64(gap*min(3*c.Epsilon, gap)) / float64(2*float64(c.Sigma*c.Sigma))
}

// Between implements Cost.
func (c GaussianCost) Between(a, b Sample) float64 { return c.rate(a.Mean-b.Mean) / (1/a.N + 1/b.N) }

// Between implements Cost.
func (c PrivateGaussianCost) Between(a, b Sample) float64 {
	return c.rate(a.Mean-b.Mean) / (1/a.N + 1/b.N)
}

// Between implements Cost.
func (BernoulliCost) Between(a, b Sample) float64 {
	if !(a.Mean > b.Mean) {
		return 0
	}
	u := meet(a.Mean, b.Mean, a.N, b.N)
	return float64(a.N*divergence.KL(a.Mean, u)) + float64(b.N*divergence.KL(b.Mean, u))
}

// meet is the mean of both samples together, between the means also in floating point.
func meet(x, y, n, m float64) float64 {
	return min(x, max(y, (float64(n*x)+float64(m*y))/(n+m)))
}

// Between implements Cost.
func (DEpsCost) Between(a, b Sample) float64 {
	if !(a.Mean > b.Mean) {
		return 0
	}
	p := pairOf(a, b)
	x, y := p.at(a.N, b.N)
	return float64(a.N*x) + float64(b.N*y)
}

// A pair is what DEpsCost needs of two samples but their numbers: means x > y, or a cost of 0.
type pair struct {
	x, y      float64
	ex, ey    divergence.Eps
	low, high float64 // x's own term is kl(x,u) down to u = low, y's kl(y,u) up to u = high
}

func pairOf(a, b Sample) pair {
	if !(a.Mean > b.Mean) {
		return pair{}
	}
	p := pair{x: a.Mean, y: b.Mean, ex: divergence.NewEps(a.epsilon())}
	if p.ey = p.ex; a.Scale != b.Scale {
		p.ey = divergence.NewEps(b.epsilon())
	}
	p.low, p.high = 1-tilted(1-p.x, p.x, p.ex.Exp()), tilted(p.y, 1-p.y, p.ey.Exp())
	return p
}

// at are d_ε⁻(x,u) and d_ε⁺(y,u) where n·d_ε⁻ + m·d_ε⁺ is least: the derivatives of the cost in n
// and in m. The sum is convex in u. Each of its terms is w·kl near the arm's own mean and, where
// the other side's likelihood ratio would exceed e^ε, has the derivative of a tilted law: so there
// are four cases, each with a stationary point in closed form.
func (p *pair) at(n, m float64) (x, y float64) {
	if !(p.x > p.y) {
		return 0, 0
	}
	u := meet(p.x, p.y, n, m)
	if p.low <= u && u <= p.high {
		return divergence.KL(p.x, u), divergence.KL(p.y, u)
	}
	u = p.stationary(n, m)
	return p.ex.DEps(p.x, u), p.ey.DEps(p.y, u)
}

// tilted is xe^ε/(x(e^ε−1)+1), up to which d_ε(x,·) is kl(x,·), with q = e^{−ε} and x1 = 1−x.
func tilted(x, x1, q float64) float64 {
	if x1 == 0 || q == 0 {
		return 1
	}
	return x / (x + float64(x1*q))
}

// stationary is where the sum of the two derivatives vanishes if it is not where both terms are kl.
// The derivatives are, with q = e^{−ε},
//
//	of n·d⁻: −n(x−u)/(u(1−u)) for u ≥ low,   −n(1−q)/(q+u(1−q)) for u < low,
//	of m·d⁺:  m(u−y)/(u(1−u)) for u ≤ high,   m(1−q)/(1−u(1−q)) for u > high.
func (p *pair) stationary(n, m float64) float64 {
	x, y, low, high := p.x, p.y, p.low, p.high
	da, db := -p.ex.Expm1(), -p.ey.Expm1() // 1−q
	slope := func(u float64) float64 {
		var s float64
		switch {
		case u >= x:
		case u < low:
			s -= float64(n*da) / (1 - da + float64(u*da))
		default:
			s -= float64(n*(x-u)) / float64(u*(1-u))
		}
		switch {
		case u <= y:
		case u > high:
			s += float64(m*db) / (1 - float64(u*db))
		default:
			s += float64(m*(u-y)) / float64(u*(1-u))
		}
		return s
	}
	// Where the minimum lies: below low or not, above high or not.
	belowLow := low > y && (low >= x || slope(low) > 0)
	aboveHigh := high < x && (high <= y || slope(high) < 0)
	var u float64
	switch {
	case belowLow && aboveHigh: // n·da(1−u·db) = m·db(1−da+u·da)
		u = (float64(n*da) - float64(m*float64(db*(1-da)))) / float64(float64(da*db)*(n+m))
	case belowLow: // m(u−y)(1−da+u·da) = n·da·u(1−u), in u
		u = root(float64(da*(n+m)), float64(m*(1-da-float64(y*da)))-float64(n*da), float64(float64(m*y)*(1-da)))
	case aboveHigh: // the mirror image, in 1−u
		u = 1 - root(float64(db*(n+m)), float64(n*(1-db-float64((1-x)*db)))-float64(m*db),
			float64(float64(n*(1-x))*(1-db)))
	default:
		u = meet(x, y, n, m)
	}
	return min(x, max(y, u))
}

// root is the root u ≥ 0 of a·u² + b·u − c for a > 0 and c ≥ 0, without cancellation.
func root(a, b, c float64) float64 {
	d := math.Sqrt(float64(b*b) + float64(4*float64(a*c)))
	if b > 0 {
		return 2 * c / (b + d)
	}
	return (d - b) / (2 * a)
}

// Between implements Cost, by two searches: one alone is wrong where n and the means differ by many
// orders of magnitude.
func (c NoisyCost) Between(a, b Sample) float64 {
	if !(a.Mean > b.Mean) {
		return 0
	}
	if a.Scale == 0 && b.Scale == 0 {
		return DEpsCost{}.Between(a, b) // J without noise is d_ε
	}
	at := func(u float64) float64 { return c.at(a, b, u) }
	_, least := c.search(a, b, math.NaN())
	return min(minimum(at, b.Mean, a.Mean), at(b.Mean), at(a.Mean), least)
}

// AtMost is above Between, and is found without a search: J is at most d_ε.
func (NoisyCost) AtMost(a, b Sample) float64 { return DEpsCost{}.Between(a, b) }

// side says of Between whether it is above a level (1) or below (−1), or nothing (0) where it does
// not see it soon.
func (c NoisyCost) side(a, b Sample, level float64) int {
	if !(a.Mean > b.Mean) {
		return 0
	}
	side, _ := c.search(a, b, level)
	return side
}

// search is side, and the least sum that it has seen. The sum is convex in u: it is above each
// tangent, and its least value is between the bounds that the slopes' signs leave. Steps are of the
// secant of the slopes, from the u of d_ε. Margins of 1e-9 are more than what rounding may take.
func (NoisyCost) search(a, b Sample, level float64) (side int, least float64) {
	least = math.Inf(1)
	if !(a.Scale > 0 && b.Scale > 0 && a.Noises > 0 && b.Noises > 0) {
		return 0, least
	}
	p := pairOf(a, b)
	u := meet(p.x, p.y, a.N, b.N)
	if !(p.low <= u && u <= p.high) {
		u = p.stationary(a.N, b.N)
	}
	lo, hi := b.Mean, a.Mean
	last, before := math.NaN(), math.NaN() // u and the slope of the step before
	for range 10 {
		x, dx := divergence.DEpsNoisyTangent(a.Mean, u, a.epsilon(), float64(a.Noises)/a.N)
		y, dy := divergence.DEpsNoisyTangent(b.Mean, u, b.epsilon(), float64(b.Noises)/b.N)
		sum, slope := float64(a.N*x)+float64(b.N*y), float64(a.N*dx)+float64(b.N*dy)
		least = min(least, sum)
		if float64(sum*(1+1e-9))+1e-12 < level {
			return -1, least
		}
		if slope > 0 {
			hi = u
		} else {
			lo = u
		}
		if sum-float64(math.Abs(slope)*(hi-lo)) > float64(level*(1+1e-9))+1e-12 {
			return 1, least
		}
		next := u - slope*(u-last)/(slope-before)
		if math.IsNaN(last) {
			next = u - float64(slope*float64(u*(1-u)))/(a.N+b.N)
		}
		if !(next > lo && next < hi) {
			next = lo + float64(0.5*(hi-lo))
		}
		last, before, u = u, slope, next
	}
	return 0, least
}

// at is the sum under the infimum.
func (NoisyCost) at(a, b Sample, u float64) float64 {
	return float64(a.N*divergence.DEpsNoisy(a.Mean, u, a.epsilon(), float64(a.Noises)/a.N)) +
		float64(b.N*divergence.DEpsNoisy(b.Mean, u, b.epsilon(), float64(b.Noises)/b.N))
}

// minimum minimises a quasi-convex function on [lo, hi] by Brent's method: steps to the vertex of a
// parabola where they behave, golden sections where not. It finds half the digits of the argument,
// which is all those of the value.
func minimum(f func(float64) float64, lo, hi float64) (value float64) {
	const section = 0.3819660112501051
	tol := float64(1e-9 * (hi - lo))
	x := lo + float64(section*(hi-lo)) // the best so far, the second and the one before
	w, v := x, x
	fx := f(x)
	fw, fv := fx, fx
	var step, before float64
	for range 100 {
		mid := lo + float64(0.5*(hi-lo))
		if math.Abs(x-mid) <= 2*tol-float64(0.5*(hi-lo)) {
			break
		}
		r, q := float64((x-w)*(fx-fv)), float64((x-v)*(fx-fw))
		p := float64((x-v)*q) - float64((x-w)*r)
		if q = 2 * (q - r); q > 0 {
			p = -p
		}
		q = math.Abs(q)
		if math.Abs(before) > tol && math.Abs(p) < math.Abs(float64(0.5*float64(q*before))) &&
			p > float64(q*(lo-x)) && p < float64(q*(hi-x)) {
			before, step = step, p/q
			if u := x + step; u-lo < 2*tol || hi-u < 2*tol {
				step = math.Copysign(tol, mid-x)
			}
		} else {
			before = hi - x
			if x >= mid {
				before = lo - x
			}
			step = float64(section * before)
		}
		if math.Abs(step) < tol {
			step = math.Copysign(tol, step)
		}
		u := x + step
		fu := f(u)
		if fu <= fx {
			if u < x {
				hi = x
			} else {
				lo = x
			}
			v, fv, w, fw, x, fx = w, fw, x, fx, u, fu
			continue
		}
		if u < x {
			lo = u
		} else {
			hi = u
		}
		if fu <= fw || w == x {
			v, fv, w, fw = w, fw, u, fu
		} else if fu <= fv || v == x || v == w {
			v, fv = u, fu
		}
	}
	return fx
}
