package noise

import (
	"math"
	"math/bits"
)

// Binomial is the number of successes in n independent trials of probability p: P(k) =
// C(n,k)·p^k·(1−p)^{n−k}, exact in law up to double arithmetic, with no normal approximation
// anywhere. Range: n ≤ 2^53; n ≤ 0 and p ≤ 0 (or NaN) give 0, p ≥ 1 gives n.
//
// Three methods, each the fastest where it is used: n ≤ 128 tosses all coins at once in the bits of
// a word or two; n·min(p,1−p) < 10 inverts the distribution function; the rest is Hörmann's
// transformed rejection.
func (f *Fast) Binomial(n int, p float64) int {
	switch {
	case n <= 0 || !(p > 0):
		return 0
	case p >= 1:
		return n
	case n == 1:
		if f.Bernoulli(p) {
			return 1
		}
		return 0
	case n <= 64:
		return f.binomialLanes(n, p)
	case n <= 128:
		return f.binomialLanes(64, p) + f.binomialLanes(n-64, p)
	case p > 0.5:
		return n - f.binomialHalf(n, 1-p) // 1−p is exact here
	}
	return f.binomialHalf(n, p)
}

func (f *Fast) binomialHalf(n int, p float64) int {
	if float64(n)*p < 10 {
		return f.binomialInversion(n, p)
	}
	return f.binomialBTRS(n, p)
}

// binomialLanes tosses n ≤ 64 coins side by side. Lane i holds a uniform number U_i whose binary
// digits come one a word, and is a success if U_i < p. A lane is decided by its first digit that
// differs from p's, so about log₂n + 4/3 words decide all, and fewer if p has few digits: one for
// 1/2, two for 3/4. The law is exact without rounding.
func (f *Fast) binomialLanes(n int, p float64) int {
	open := ^uint64(0) >> (64 - n)
	success := uint64(0)
	for {
		// The first 64 digits of p, and what follows them: something only if p < 2^-11.
		scaled := p * 0x1p64
		digits := uint64(scaled)
		p = scaled - float64(digits)
		if p == 0 {
			for digits != 0 && open != 0 { // once p's digits end no open lane can fall below it
				w := f.pcg.Uint64()
				digit := -(digits >> 63) // in every lane
				success |= open & digit &^ w
				open &^= w ^ digit
				digits <<= 1
			}
			return bits.OnesCount64(success)
		}
		for range 64 {
			w := f.pcg.Uint64()
			digit := -(digits >> 63)
			success |= open & digit &^ w
			open &^= w ^ digit
			digits <<= 1
			if open == 0 {
				return bits.OnesCount64(success)
			}
		}
	}
}

// binomialInversion goes up the distribution function from 0, term by term: P(k) =
// P(k−1)·(n+1−k)/k·p/q. It takes np + 1 terms on average.
func (f *Fast) binomialInversion(n int, p float64) int {
	const end = 128 // P(X > 128) < 1e-80 for np < 10; a uniform left over by rounding starts again
	s := p / (1 - p)
	a := float64(n+1) * s
	first := math.Exp(float64(n) * math.Log1p(-p))
	for {
		u, r := f.Float64(), first
		for k := 0; k < end; {
			if u < r {
				return k
			}
			u -= r
			k++
			r *= a/float64(k) - s
		}
	}
}

// binomialBTRS is algorithm BTRS of Hörmann (1993), "The generation of binomial random variates",
// for p ≤ 1/2 and np ≥ 10: rejection from the hat of the transformation G(u) = (2a/(1/2−|u|) + b)·u
// + c, with a squeeze that spares most draws the density. Only the density differs from the paper:
// there the logarithms cancel badly for large n, here it is a sum of small terms (see
// binomialLogRatio), so that the law stays exact up to n = 2^53.
func (f *Fast) binomialBTRS(n int, p float64) int {
	h := newBinomialHat(float64(n), p)
	for {
		u := f.Float64() - 0.5
		v := f.Float64()
		us := 0.5 - math.Abs(u)
		// k is counted from the centre ⌊np⌋, so that no digit of the uniform is lost for large n.
		d := math.Floor(float64((2*h.a/us+h.b)*u) + h.c)
		if us >= 0.07 && float64((0.92-v)*h.b) >= 4.2 {
			return int(h.centre) + int(d)
		}
		if d < -h.centre || d > h.n-h.centre {
			continue
		}
		if math.Log(v*h.top(us)) <= binomialLogRatio(h.n, p, h.centre, d) {
			return int(h.centre) + int(d)
		}
	}
}

// binomialHat has the constants of BTRS.
type binomialHat struct{ n, sd, a, b, c, centre float64 }

func newBinomialHat(n, p float64) binomialHat {
	np := n * p
	sd := math.Sqrt(np * (1 - p))
	b := 1.15 + float64(2.53*sd)
	centre := math.Floor(np)
	return binomialHat{n: n, sd: sd, b: b, a: -0.0873 + float64(0.0248*b) + float64(0.01*p),
		c: np - centre + 0.5, centre: centre}
}

// top is the hat over the density's greatest value: accept if v·top ≤ P(k)/P(mode).
func (h *binomialHat) top(us float64) float64 {
	return (2.83 + 5.1/h.b) * h.sd / (h.a/float64(us*us) + h.b)
}

// binomialLogRatio is log P(centre+d)/P(mode), after Loader (2000), "Fast and accurate computation
// of binomial probabilities":
//
//	log P(k) = δ(n) − δ(k) − δ(n−k) − D(k, np) − D(n−k, nq) + ½·log(n/(2πk(n−k))),
//
// δ the error of Stirling's formula and D(x,m) = x·log(x/m) + m − x. Every term is small
// near the mode, so errors are a few 1e-15 for any n. k−np goes in exactly: np is kept as
// the sum of two doubles.
func binomialLogRatio(n, p, centre, d float64) float64 {
	k := centre + d
	q := 1 - p
	np, nq := n*p, n*q
	shift := (centre - np) - math.FMA(n, p, -np)
	mode := math.Floor(np + p)
	e := shift + (mode - centre)
	top := -stirlingError(mode) - stirlingError(n-mode) - deviance(mode, np, e) - deviance(n-mode, nq, -e)
	e = shift + d
	switch k {
	case 0, n: // P(k) is q^n or p^n; Stirling's formula has no value here
		log := n * math.Log1p(-p)
		if k == n {
			log = n * math.Log(p)
		}
		return log - (stirlingError(n) + top + 0.5*math.Log(n/(2*math.Pi*mode*(n-mode))))
	}
	at := -stirlingError(k) - stirlingError(n-k) - deviance(k, np, e) - deviance(n-k, nq, -e)
	return at - top + 0.5*math.Log(mode/k*((n-mode)/(n-k)))
}

// deviance is x·log(x/m) + m − x, given also e = x − m, which the caller knows better than a
// subtraction would.
func deviance(x, m, e float64) float64 {
	if math.Abs(e) >= 0.1*(x+m) {
		return float64(x*math.Log(x/m)) - e
	}
	// x·log(x/m) = 2x·artanh(v) for v = e/(x+m); its series after the terms that cancel.
	v := e / (x + m)
	s := e * v
	term := 2 * x * v
	for i := 3.0; ; i += 2 {
		term *= v * v
		next := s + term/i
		if next == s {
			return s
		}
		s = next
	}
}

// stirlingError is log k! − log(√(2πk)·(k/e)^k) for k ≥ 1.
func stirlingError(k float64) float64 {
	if k < 16 {
		return stirlingErrors[int(k)]
	}
	i := 1 / k
	i2 := i * i
	return i * (1./12 - float64(i2*(1./360-float64(i2*(1./1260-float64(i2*(1./1680-float64(i2*(1./1188)))))))))
}

// stirlingErrors has them where the series is not exact to the last bit.
var stirlingErrors = [16]float64{
	0, // no value at 0
	0.08106146679532725822,
	0.04134069595540929409,
	0.02767792568499833915,
	0.02079067210376509311,
	0.01664469118982119216,
	0.01387612882307074800,
	0.01189670994589177010,
	0.01041126526197209650,
	0.00925546218271273292,
	0.00833056343336287126,
	0.00757367548795184079,
	0.00694284010720952987,
	0.00640899418800420707,
	0.00595137011275884774,
	0.00555473355196280137,
}
