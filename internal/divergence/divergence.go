// Package divergence holds the distances between Bernoulli laws that indices, stopping rules and
// lower bounds are made of: relative entropy [Azize 2024, Definition 2.25], its inverses in the
// second argument, and total variation. Logarithms are natural.
//
// A Bernoulli law is written as its mean, a number in [0,1]. Where an argument is NaN or out of
// range the result is NaN.
package divergence

import "math"

// KL is the relative entropy of Bernoulli(p) from Bernoulli(q), p log(p/q) + (1−p) log((1−p)/(1−q))
// [Azize 2024, (2.13)], in nats; 0 log 0 = 0, and +Inf where q excludes an outcome that p allows.
//
// It is accurate to a few ulp also where p and q nearly agree. Written with the differences
// log(1+x) − x the linear parts of the two terms cancel on paper instead of in floating point, and
// both terms that remain are positive.
func KL(p, q float64) float64 {
	switch {
	case !(0 <= p && p <= 1 && 0 <= q && q <= 1):
		return math.NaN()
	case p == q:
		return 0
	case q == 0 || q == 1:
		return math.Inf(1)
	case p == 0:
		return -math.Log1p(-q)
	case p == 1:
		return -math.Log(q)
	}
	return kl(p, q)
}

// kl is KL for p and q strictly between 0 and 1.
func kl(p, q float64) float64 {
	d := q - p
	return excess(p, q, d) + excess(1-p, 1-q, -d)
}

// excess is d − a·log(b/a) ≥ 0, where b = a + d: what a log(a/b) is above its tangent at b = a.
func excess(a, b, d float64) float64 {
	x := d / a
	if x > 0.25 || x < -0.25 {
		r := b / a
		if r > math.MaxFloat64 { // a is close to the smallest number there is
			return d - float64(a*(math.Log(b)-math.Log(a)))
		}
		return d - float64(a*math.Log(r))
	}
	// log(1+x) = 2 artanh(r) and x − 2r = x·r with r = x/(2+x), |r| ≤ 1/7.
	r := x / (2 + x)
	s := float64(r * r)
	h := 1.0 / 19
	h = float64(h*s) + 1.0/17
	h = float64(h*s) + 1.0/15
	h = float64(h*s) + 1.0/13
	h = float64(h*s) + 1.0/11
	h = float64(h*s) + 1.0/9
	h = float64(h*s) + 1.0/7
	h = float64(h*s) + 1.0/5
	h = float64(h*s) + 1.0/3
	return float64(float64(d*r) - float64(2*float64(a*float64(float64(r*s)*h))))
}

// KLUpper is the largest q in [p,1] with kl(p,q) ≤ c, for p in [0,1] and c in [0,+Inf]: the index
// of KL-UCB [Azize 2024, (2.14)]. Its error is below 1e-12. KLUpper(0,c) = 1−e^{−c}, KLUpper(1,c) =
// 1, KLUpper(p,0) = p and KLUpper(p,+Inf) = 1.
func KLUpper(p, c float64) float64 {
	if q, ok := klUpperEdge(p, c); ok {
		return q
	}
	// Two ways to start: kl(p,p+d) = d²/2v − (1−2p)d³/3v² + … turned around where the answer is near
	// p, and otherwise the last term of kl solved, with the other one as it is at a lower bound.
	v := float64(p * (1 - p))
	s := math.Sqrt(float64(2 * float64(v*c)))
	if t := s / v; t < 1 {
		return klUpper(p, c, p+float64(s*(1+float64(float64((1-2*p)*t)*(1.0/3))+
			float64(float64((1-float64(13*v))*float64(t*t))*(1.0/36)))))
	}
	low := 1 - float64((1-p)*math.Exp(-c/(1-p))) // as p log(p/q) ≤ 0
	if low > 1-1e-13 {
		return low
	}
	q := 1 - float64((1-p)*math.Exp(-(c+float64(p*math.Log(low/p)))/(1-p)))
	return klUpper(p, c, q)
}

// KLUpperFrom is KLUpper for a caller that knows a number near the answer, as an index between two
// rounds does. Any start gives the same answer up to KLUpper's error; a close one makes it faster.
func KLUpperFrom(p, c, start float64) float64 {
	if !(start > p && start < 1) {
		return KLUpper(p, c)
	}
	if q, ok := klUpperEdge(p, c); ok {
		return q
	}
	return klUpper(p, c, start)
}

// klUpperEdge answers where there is nothing to solve.
func klUpperEdge(p, c float64) (q float64, ok bool) {
	switch {
	case !(0 <= p && p <= 1 && c >= 0):
		return math.NaN(), true
	case p == 1 || c == 0:
		return p, true
	case math.IsInf(c, 1):
		return 1, true
	case p == 0:
		return -math.Expm1(-c), true
	}
	return 0, false
}

// klUpper solves kl(p,q) = c for q by Householder's steps of the fourth order inside a bracket that
// every evaluation narrows.
func klUpper(p, c, q float64) float64 {
	lo, hi := p, 1.0
	for range 200 {
		if !(q > lo && q < hi) {
			q = lo + float64(0.5*(hi-lo))
			if q == lo || q == hi { // neighbours: lo still satisfies kl ≤ c
				return lo
			}
		}
		f := kl(p, q) - c
		if f > 0 {
			hi = q
		} else {
			lo = q
		}
		// With d = q−p, w = q(1−q) and e = 1−2q the derivatives are f' = d/w, f"/f' = 1/d − e/w and
		// f"'/f' = 2(d−e)/dw + 2e²/w².
		d, e, w := q-p, 1-2*q, float64(q*(1-q))
		id, iw := 1/d, 1/w
		u, ew := float64(float64(f*w)*id), float64(e*iw)
		second := float64(u * (id - ew))
		third := float64(2 * float64(float64(u*u)*(float64(float64(id*iw)*(d-e))+float64(ew*ew))))
		if !(math.Abs(second) < 0.5 && math.Abs(third) < 1) {
			q -= u / (1 - float64(0.5*second)) // far away Halley's step is the safer one
			continue
		}
		step := float64(u*(6-float64(3*second))) / (6 - float64(6*second) + third)
		q -= step
		// What is left is of the order of the step's fourth power, on the scale of the
		// distances to p and 1.
		if math.Abs(step) <= float64(8e-4*min(d, 1-q)) {
			break
		}
	}
	return min(max(q, p), 1)
}

// KLUpperSide says on which side of q KLUpper(p,c) lies, without solving for it: −1 if it is below
// q for sure, 1 if it is above for sure, and 0 if the two, or q and p, or q and 1, are within about
// 1e-11, where only KLUpper can tell. It costs one KL at most, and is for comparing indices. It is
// 0 where KLUpper is NaN.
func KLUpperSide(p, c, q float64) int {
	const margin = 1e-11 // ten times KLUpper's error
	switch {
	case !(0 <= p && p <= 1 && c >= 0 && 0 <= q && q <= 1):
		return 0
	case q >= 1-4*margin:
		// kl(p, 1−y) ≥ (1−p)log(1/y) − log 2, here at y = e^{−23.5} = 6.2e-11.
		if c < float64(23.5*(1-p))-math.Ln2 {
			return -1
		}
		return 0
	case p >= q+margin:
		return 1
	case p > q-margin:
		return 0
	}
	d := q - p
	// Pinsker: kl(p,q) ≥ 2(q−p)²
	if x := d - margin; float64(2*float64(x*x)) > float64(c*(1+1e-9)) {
		return -1
	}
	// The slope of kl in q is d/q(1−q) at q, and at most 8/3 of it within the margin.
	k := KL(p, q)
	slack := float64(4*margin*d)/float64(q*(1-q)) + float64(1e-14*k)
	switch {
	case k > c+slack:
		return -1
	case k < c-slack:
		return 1
	}
	return 0
}

// KLLower is the smallest q in [0,p] with kl(p,q) ≤ c, for p in [0,1] and c in [0,+Inf]. Its
// error is below 1e-12.
func KLLower(p, c float64) float64 {
	if !(0 <= p && p <= 1 && c >= 0) {
		return math.NaN()
	}
	if c == 0 || p == 0 {
		return p
	}
	if p == 1 {
		return math.Exp(-c)
	}
	return min(1-KLUpper(1-p, c), p)
}

// TV is the total variation distance |p−q| between Bernoulli(p) and Bernoulli(q).
func TV(p, q float64) float64 {
	if !(0 <= p && p <= 1 && 0 <= q && q <= 1) {
		return math.NaN()
	}
	return math.Abs(p - q)
}
