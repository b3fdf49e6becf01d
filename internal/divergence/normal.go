package divergence

import "math"

// KLNoisy is the divergence for a mean that carries normal noise of variance v a sample,
//
//	J_v(x,y) = sup{ λx − log E e^{λY} − vλ²/2 : λ real },   Y Bernoulli of mean y,
//
// for x, y in [0,1] and v in [0,+Inf). A mean of n independent rewards in [0,1] of mean μ whose sum
// has N(0, vn) added is above x > μ with probability at most exp(−nJ_v(x,μ)); below alike. So it is
// with any noise N of E e^{λN} ≤ e^{λ²vn/2}, such as a discrete Gaussian or several.
//
// Proof: Chernoff's bound, with E e^{λX} ≤ E e^{λY} by convexity. ∎
//
// J_0 = kl, and J_v ≥ (x−y)²/(2(1/4 + v)), as log E e^{λ(Y−y)} ≤ λ²/8.
func KLNoisy(x, y, v float64) float64 {
	switch {
	case !(0 <= x && x <= 1 && 0 <= y && y <= 1 && v >= 0 && v <= math.MaxFloat64):
		return math.NaN()
	case x == y:
		return 0
	case v == 0:
		return KL(x, y)
	}
	s := sideOf(x, y)
	if s.y1 == 0 { // Y is no variable: the supremum of λ(1−x) − vλ²/2
		return float64(s.x1*s.x1) / (2 * v)
	}
	// The derivative in λ, what pull gives less vλ, decreases from d = |x−y| and is below 0 at d/v.
	lo, hi := 0.0, s.d/v
	lambda := s.d / (v + float64(s.y*s.y1))
	last := hi
	for range 200 {
		a, slope := s.pull(lambda)
		f := a - float64(v*lambda)
		if f > 0 {
			lo = lambda
		} else {
			hi = lambda
		}
		next := lambda - f/(slope-v)
		step := math.Abs(next - lambda)
		// Newton's steps may go to and fro between two ends of the bracket: each must
		// be half the last.
		if !(next > lo && next < hi && step <= 0.5*last) {
			next = lo + float64(0.5*(hi-lo))
			step = math.Abs(next - lambda)
		}
		lambda, last = next, step
		if step <= float64(1e-8*lambda) { // the supremum is off by the square of it
			break
		}
	}
	return max(0, float64(lambda*s.d)-s.tilt(lambda)-float64(0.5*float64(v*float64(lambda*lambda))))
}

// KLNoisyUpper is the largest y in [x,1] with J_v(x,y) ≤ c, for x in [0,1], c in [0,+Inf) and v in
// [0,+Inf):
//
//	min{ (1 − exp(−(c + λx + vλ²/2)))/(1 − e^{−λ}) : λ > 0 }, capped at 1.
//
// Every λ gives a y that is no smaller, so an error of the search only widens.
func KLNoisyUpper(x, c, v float64) float64 {
	switch {
	case !(0 <= x && x <= 1 && c >= 0 && c <= math.MaxFloat64 && v >= 0 && v <= math.MaxFloat64):
		return math.NaN()
	case v == 0:
		return KLUpper(x, c)
	case x == 1:
		return 1
	case c == 0:
		return x
	}
	// −log(1 − y), which tells more near 1. It is quasi-convex for y < 1 alone: else what is wanting is.
	at := func(log float64) float64 {
		lambda := math.Exp(log)
		level := c + float64(lambda*x) + float64(0.5*float64(v*float64(lambda*lambda)))
		if level >= lambda {
			return 1e12 * (1 + level - lambda)
		}
		return level - math.Log(-math.Expm1(level-lambda)) + math.Log(-math.Expm1(-lambda))
	}
	// For variance w of Y the best λ is √(2c/(w+v)), w in [0, 1/4] where λ is small; above that, y
	// near 0, it is larger by a logarithm.
	mid := 0.5 * math.Log(2*c/(0.25+v))
	lo, hi := mid-1, 0.5*math.Log(2*c/v)+1
	return max(x, -math.Expm1(-Golden(at, lo, hi, 1e-3)))
}
