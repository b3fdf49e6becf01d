package divergence

import "math"

// A side is a pair of means with their complements, mirrored so that x < y: x, y, 1−x and 1−y are
// all exact, which 1−(1−y) is not.
type side struct{ x, x1, y, y1, d float64 } // d = y − x > 0

func sideOf(x, y float64) side {
	if x < y {
		return side{x, 1 - x, y, 1 - y, y - x}
	}
	return side{1 - x, x, 1 - y, y, x - y}
}

// DEps is the divergence that ε-global differential privacy leaves between Bernoulli rewards,
//
//	d_ε(x,y) = inf{ ε|z−x| + kl(z,y) : z ∈ [0,1] } = sup{ λx − log E e^{λY} : |λ| ≤ ε },   Y of mean y,
//
// in nats, for x, y in [0,1] and ε in [0,+Inf]: no ε-DP policy that learns has less regret than Σ
// Δ_a log T/d_ε(μ_a, μ*) in the long run (Azize, Wu, Honda, Orabona, Ito and Basu 2025). It is at
// most ε|x−y| and at most kl(x,y), which it is for ε = +Inf.
//
// For x < y the infimum is at z = max(x, z*), z* = ye^{−ε}/D with D = 1 − y(1−e^{−ε}), so d_ε is
// kl(x,y) if z* ≤ x and −εx − log D otherwise; x > y is the mirror image.
func DEps(x, y, eps float64) float64 {
	switch {
	case !(0 <= x && x <= 1 && 0 <= y && y <= 1 && eps >= 0):
		return math.NaN()
	case x == y || eps == 0:
		return 0
	case math.IsInf(eps, 1):
		return KL(x, y)
	}
	s := sideOf(x, y)
	if s.y1 == 0 {
		return float64(eps * s.x1)
	}
	if float64(float64(s.y*s.x1)*math.Exp(-eps)) <= float64(s.x*s.y1) {
		return KL(x, y)
	}
	// −εx − log D = ε(y−x) − (log D + εy): near kl's reign the second term is half of the first, so
	// that little cancels.
	return max(0, float64(eps*s.d)-s.tilt(eps))
}

// An Eps is DEps at one ε, for those who need it often: what depends on ε alone is computed once.
type Eps struct{ eps, exp, down, up float64 } // ε, e^{−ε}, e^{−ε}−1, e^ε−1

// NewEps returns DEps at ε in [0,+Inf].
func NewEps(eps float64) Eps {
	return Eps{eps, math.Exp(-eps), math.Expm1(-eps), math.Expm1(eps)}
}

// Expm1 is e^{−ε}−1.
func (e *Eps) Expm1() float64 { return e.down }

// Exp is e^{−ε}.
func (e *Eps) Exp() float64 { return e.exp }

// DEps is DEps(x,y,ε), bit for bit.
func (e *Eps) DEps(x, y float64) float64 {
	if !(0 < x && x < 1 && 0 < y && y < 1 && x != y && e.eps >= 2e-3 && e.eps <= math.MaxFloat64) {
		return DEps(x, y, e.eps)
	}
	s := sideOf(x, y)
	if float64(float64(s.y*s.x1)*e.exp) <= float64(s.x*s.y1) {
		return kl(x, y)
	}
	var tilt float64
	switch {
	case s.y <= 0.5:
		tilt = math.Log1p(float64(s.y*e.down)) + float64(e.eps*s.y)
	case e.eps < 30:
		tilt = math.Log1p(float64(s.y1*e.up)) - float64(e.eps*s.y1)
	default:
		tilt = math.Log(s.y1+float64(s.y*e.exp)) + float64(e.eps*s.y)
	}
	return max(0, float64(e.eps*s.d)-tilt)
}

// tilt is log E e^{−λ(Y−y)} = log(1−y+ye^{−λ}) + λy ≥ 0, for 0 < y < 1.
func (s *side) tilt(lambda float64) float64 {
	if lambda < 2e-3 { // by cumulants: the two terms would cancel
		v, w := float64(s.y*s.y1), s.y1-s.y
		c := 1 - float64(w*lambda)*(1.0/3) + float64((1-float64(6*v))*float64(lambda*lambda))*(1.0/12) -
			float64(float64(w*(1-float64(12*v)))*float64(lambda*float64(lambda*lambda)))*(1.0/60)
		return float64(float64(0.5*v) * float64(float64(lambda*lambda)*c))
	}
	switch { // small numbers first: 1−y may be below the rounding of y
	case s.y <= 0.5:
		return math.Log1p(float64(s.y*math.Expm1(-lambda))) + float64(lambda*s.y)
	case lambda < 30:
		return math.Log1p(float64(s.y1*math.Expm1(lambda))) - float64(lambda*s.y1)
	}
	return math.Log(s.y1+float64(s.y*math.Exp(-lambda))) + float64(lambda*s.y)
}

// DEpsUpper is the largest y in [x,1] with d_ε(x,y) ≤ c, for x in [0,1] and c, ε in [0,+Inf]: the
// index of DP-KLUCB. With y_c = x/(x+(1−x)e^{−ε}), up to which d_ε(x,·) is kl(x,·), it is
//
//	min(1, (1−e^{−(c+εx)})/(1−e^{−ε}))   if that is above y_c, and KLUpper(x,c) otherwise.
func DEpsUpper(x, c, eps float64) float64 {
	switch {
	case !(0 <= x && x <= 1 && c >= 0 && eps >= 0):
		return math.NaN()
	case x == 1 || c == 0 && eps > 0:
		return x
	case math.IsInf(eps, 1):
		return KLUpper(x, c)
	case c >= float64(eps*(1-x)): // d_ε(x,1)
		return 1
	}
	e := math.Expm1(-eps)
	reign := x / (x + float64((1-x)*(1+e))) // y_c
	if d := reign - x; c < float64(2*float64(d*d)) {
		return KLUpper(x, c) // by Pinsker's inequality kl(x, y_c) is above c
	}
	if y := math.Expm1(-c-float64(eps*x)) / e; y > reign {
		return min(1, max(x, y))
	}
	return KLUpper(x, c)
}

// DEpsNoisy is the divergence for a mean that carries r Laplace noises a sample,
//
//	J_r(x,y) = sup{ λx − log E e^{λY} + r log(1−λ²/ε²) : |λ| < ε }_+,   Y of mean y,
//
// for x, y in [0,1], ε in (0,+Inf] and r in [0,+Inf). A mean x of n rewards in [0,1] of mean μ
// whose sum carries m independent Lap(1/ε) is above x with probability at most exp(−nJ_r(x,μ)), r =
// m/n, x > μ; below alike. For discrete Laplace noise of the same ε it holds as well.
//
// Proof: Chernoff's bound, with E e^{λX} ≤ E e^{λY} by convexity and E e^{λL} = 1/(1−λ²/ε²), which
// is no smaller than the discrete law's (cosh ε − 1)/(cosh ε − cosh λ). J_0 = d_ε, and for one
// noise d_ε itself is a bound: P(L ≥ v) ≤ e^{−λv} for every λ ≤ ε.
func DEpsNoisy(x, y, eps, r float64) float64 {
	switch {
	case !(0 <= x && x <= 1 && 0 <= y && y <= 1 && eps > 0 && r >= 0 && r <= math.MaxFloat64):
		return math.NaN()
	case x == y:
		return 0
	case r == 0 || math.IsInf(eps, 1):
		return DEps(x, y, eps)
	}
	s := sideOf(x, y)
	return s.at(eps, r, s.best(eps, r))
}

// DEpsNoisyTangent is DEpsNoisy, for 0 < ε < +Inf, and a slope: J_r(x,z) ≥ value + slope·(z − y) for
// all z on y's side of x. J is a supremum of convex functions of y, and this is the tangent of one.
func DEpsNoisyTangent(x, y, eps, r float64) (value, slope float64) {
	if !(0 <= x && x <= 1 && 0 <= y && y <= 1 && eps > 0 && eps <= math.MaxFloat64 && r > 0 &&
		r <= math.MaxFloat64) {
		return math.NaN(), math.NaN()
	}
	if x == y {
		return 0, 0
	}
	s := sideOf(x, y)
	t := s.best(eps, r)
	if value = s.at(eps, r, t); value == 0 {
		return 0, 0
	}
	e := math.Expm1(-float64(eps * t))
	if slope = -e / (s.y1 + float64(s.y*(1+e))); x > y {
		slope = -slope
	}
	return value, slope
}

// best is the supremum's t = λ/ε.
func (s *side) best(eps, r float64) float64 {
	rho := r / eps
	// The derivative in λ = εt is a − 2ρt/(1−t²), decreasing; times 1−t² it is smooth up to t = 1.
	t := s.start(eps, rho)
	lo, hi := 0.0, 1.0
	for i := range 100 {
		a, slope := s.pull(float64(eps * t))
		room := float64((1 - t) * (1 + t))
		f := float64(a*room) - float64(2*float64(rho*t))
		if f > 0 {
			lo = t
		} else {
			hi = t
		}
		next := t - f/(float64(float64(eps*slope)*room)-float64(2*float64(t*a))-float64(2*rho))
		// Newton's method may go to and fro for ever: if it has not ended soon, halves take turns.
		if !(next > lo && next < hi) || i >= 12 && i&1 == 0 {
			next = lo + float64(0.5*(hi-lo))
		}
		step := math.Abs(next - t)
		t = next
		if step <= float64(1e-8*min(t, 1-t)) || hi-lo <= 1e-16 {
			break
		}
	}
	return t
}

// start is where the search for t begins: the root if a were what it is at λ = 0.
func (s *side) start(eps, rho float64) float64 {
	b := rho / s.d
	t := 1 / (b + math.Sqrt(float64(b*b)+1)) // of d(1−t²) = 2ρt
	if t > 0.98 {                            // kl's λ may be far below ε
		if y1 := float64(s.x * s.y1); y1 > 0 {
			return min(t, max(0.5*math.Log(float64(s.y*s.x1)/y1)/eps, 1e-9))
		}
	}
	return t
}

// pull is ye^{−λ}/(1−y+ye^{−λ}) − x, the derivative of the part without noise, and its own
// derivative. As y(1−x) − x(1−y) = y − x nothing cancels near y = x.
func (s *side) pull(lambda float64) (a, slope float64) {
	if lambda < 0.5 {
		e := math.Expm1(-lambda)
		d := 1 + float64(s.y*e)
		return (s.d + float64(float64(s.y*s.x1)*e)) / d, -float64(float64(s.y1*s.y)*(1+e)) / float64(d*d)
	}
	e := math.Exp(-lambda)
	d := s.y1 + float64(s.y*e)
	if d == 0 {
		return s.x1, 0 // y = 1, λ beyond all numbers
	}
	return (float64(float64(s.y*s.x1)*e) - float64(s.x*s.y1)) / d, -float64(s.y1*(float64(s.y*e)/d)) / d
}

// at is the function under the supremum at λ = εt.
func (s *side) at(eps, r, t float64) float64 {
	lambda := float64(eps * t)
	plain := float64(lambda * s.x1)
	if s.y1 > 0 {
		plain = float64(lambda*s.d) - s.tilt(lambda)
	}
	return max(0, plain+float64(r*logRoom(t)))
}

// logRoom is log(1−t²), 0 ≤ t < 1.
func logRoom(t float64) float64 {
	if t < 0.5 {
		return math.Log1p(-float64(t * t))
	}
	return math.Log(float64((1 - t) * (1 + t)))
}

// DEpsNoisyUpper is the largest y in [x,1] with J_r(x,y) ≤ c, for x in [0,1], c in [0,+Inf], ε in
// (0,+Inf] and r in [0,+Inf): the index of the noise-aware DP-KLUCB,
//
//	min{ (1 − exp(−(c + λx − r log(1−λ²/ε²))))/(1 − e^{−λ}) : 0 < λ < ε }, capped at 1.
func DEpsNoisyUpper(x, c, eps, r float64) float64 {
	switch {
	case !(0 <= x && x <= 1 && c >= 0 && eps > 0 && r >= 0 && r <= math.MaxFloat64):
		return math.NaN()
	case x == 1:
		return 1
	case r == 0 || math.IsInf(eps, 1):
		return DEpsUpper(x, c, eps)
	case c >= float64(eps*(1-x)): // J ≤ d_ε
		return 1
	case c == 0:
		return x
	}
	// At the minimum y is what J's own supremum, at that λ, makes it. So: a step of the supremum's
	// search at the y of this λ, and y anew; as y is stationary there, the step is Newton's.
	rho := r / eps
	y := DEpsUpper(x, c, eps) // the index without noise
	s := side{x, 1 - x, y, 1 - y, y - x}
	t := s.start(eps, rho)
	lo, hi, best, width := 0.0, 1.0, 1.0, 1.0
	for i := range 200 {
		lambda := float64(eps * t)
		room := float64((1 - t) * (1 + t))
		noise := float64(r * logRoom(t))
		level := c + float64(lambda*x) - noise
		e := math.Expm1(-lambda)
		y := math.Expm1(-level) / e
		best = min(best, y)
		// As in pull, where 1−y+ye^{−λ} is e^{−level}, and 1−y is e^{−λ}w.
		w := -math.Expm1(float64(lambda*(1-x))-c+noise) / e
		d := math.Exp(level - lambda)
		a, slope := float64(d*(float64(y*(1-x))-float64(x*w))), -float64(float64(y*w)*float64(d*d))
		if y > 1 { // only below 1 is this quasi-convex: go to where y = 1 has its supremum
			a, slope = 1-x, 0
		}
		f := float64(a*room) - float64(2*float64(rho*t))
		if f > 0 {
			lo = t
		} else {
			hi = t
		}
		next := t - f/(float64(float64(eps*slope)*room)-float64(2*float64(t*a))-float64(2*rho))
		slow := false // far away the steps may be short: every fourth must see the bracket shrink
		if i&3 == 3 {
			slow, width = hi-lo > float64(0.25*width), hi-lo
		}
		if slow || !(next > lo && next < hi) {
			next = min(lo+float64(0.5*(hi-lo)), max(float64(8*lo), float64(0.125*hi)))
		}
		step := math.Abs(next - t)
		t = next
		if step <= float64(1e-6*min(t, 1-t)) || hi-lo <= 1e-16 { // y is off by the square of it
			break
		}
	}
	return max(x, best)
}

// NoisyRadius is min{ (c + λ²/8 − r log(1−λ²/ε²))/λ : 0 < λ < ε }, for c in [0,+Inf), ε in (0,+Inf]
// and r in [0,+Inf): what a mean of n numbers in [0,1] with m = rn noises Lap(1/ε) in their sum is
// wrong by, one side, with probability at most e^{−nc}. It is the radius that J_r has where kl is
// bounded by Pinsker's inequality; without noise it is Hoeffding's, √(c/2).
func NoisyRadius(c, eps, r float64) float64 {
	switch {
	case !(c >= 0 && c <= math.MaxFloat64 && eps > 0 && r >= 0 && r <= math.MaxFloat64):
		return math.NaN()
	case c == 0:
		return 0
	case r == 0 && eps >= math.Sqrt(8*c) || math.IsInf(eps, 1):
		return math.Sqrt(c / 2)
	case r == 0: // the tail of one noise without its moments: λ up to ε
		return c/eps + eps/8
	}
	// In y = λ²/ε² the minimum is where F(y) = ε²y/8 + r(2y/(1−y) + log(1−y)) − c vanishes. F is
	// convex and grows, and at the start it is at least 0: Newton's method goes down to its zero.
	// Any y would give a radius that holds.
	a := float64(float64(eps*eps) / 8)
	y := min(c/a, c/(c+r))
	for range 60 {
		f := float64(a*y) + float64(r*(2*y/(1-y)+math.Log1p(-y))) - c
		step := f / (a + float64(r*float64((1+y)/float64((1-y)*(1-y)))))
		y -= step
		if step <= 1e-14*y {
			break
		}
	}
	return (c + float64(a*y) - float64(r*math.Log1p(-y))) / float64(eps*math.Sqrt(y))
}
