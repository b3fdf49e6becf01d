package noise

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
)

// Poisson is the law P(x) = e^{-μ}·μ^x/x! on x = 0, 1, 2, …, of a rational mean μ = num/den.
//
// Why [Poisson.Draw] is exact. For μ < 1 the value is 0 with probability exp(−μ), tossed as in
// [BernoulliExp]. If not 0, it is x ≥ 1 with mass ∝ μ^{x−1}/x!: x is proposed with mass 2^{-x} and
// kept with probability (2μ)^{x−1}/x!, which is the coins μ·2/i for i = 2,…,x. For 1 ≤ μ < 2 the
// value is the sum of two draws of mean μ/2, as Poisson laws add up.
//
// For μ ≥ 2 no power of e is needed, since P(x)/P(m) is rational. Let m = ⌊μ⌋, a mode. P(m+d)/P(m) is
// the product of μ/(m+i) for i = 1,…,d, and P(m−d)/P(m) that of (m−i)/μ for i = 0,…,d−1. All these
// factors are at most 1: they are coins. If every d is proposed with equal mass and kept when its
// coins succeed, the law is right. But there are infinitely many. So the proposal is flat on the
// first w = ⌈√m⌉ places of either side only. From there on it falls by f, the factor of i = w, at
// every step: mass f^s at place w+s. As factors fall with i, each of the s further factors over f is
// a coin still: (m+w)/(m+i) right, (m−i)/(m−w) left. A tail has mass 1/(1−f) that way; it is proposed
// with mass A ≥ 1/(1−f), an integer, the same for both sides, and kept with the coin 1/(A(1−f)).
//
// About 3 in 5 proposals are kept, and a draw tosses O(√μ) coins: 0.4 µs at μ = 50, 25 µs at μ =
// 500 000, about a second at the largest μ.
type Poisson struct {
	num, den    uint64
	mode, flat  uint64 // m and w; mode 0 if μ < 1, 1 if μ < 2
	tail        uint64 // A
	right, left poissonTail
}

// A poissonTail has ratio f = n/d.
type poissonTail struct{ n, d uint64 }

// maxPoissonTerm bounds num and den of a Poisson law in lowest terms. All products then
// stay below 2^60.
const maxPoissonTerm = 1 << 56

// NewPoisson returns the Poisson law of mean num/den: at most 2^50, with num and den at most 2^56
// in lowest terms and den at least 1. Mean 0 is the constant 0.
func NewPoisson(num, den uint64) (Poisson, error) {
	num, den, err := checkRational("mean", "Poisson", num, den, maxPoissonTerm, maxScaleLog)
	if err != nil {
		return Poisson{}, err
	}
	return newPoisson(num, den), nil
}

func newPoisson(num, den uint64) Poisson {
	p := Poisson{num: num, den: den, mode: num / den}
	switch p.mode {
	case 0:
		return p
	case 1:
		if num&1 == 0 {
			p.num /= 2
		} else {
			p.den *= 2
		}
		return p
	}
	p.flat = isqrt(p.mode-1) + 1
	p.right = poissonTail{num, den * (p.mode + p.flat)}
	p.left = poissonTail{den * (p.mode - p.flat), num}
	p.tail = max(p.right.mass(), p.left.mass())
	return p
}

// mass is ⌈1/(1−f)⌉: at most 6 for small μ, about √μ for large.
func (t poissonTail) mass() uint64 { return (t.d-1)/(t.d-t.n) + 1 }

// Draw draws from the law. The error is that p did not come from [NewPoisson].
func (p Poisson) Draw(src rand.Source) (int64, error) { return p.draw(src) }

func (p *Poisson) draw(src rand.Source) (int64, error) {
	switch {
	case p.den == 0:
		return 0, fmt.Errorf("noise: a sampler of exact noise was not made by its constructor")
	case p.mode == 0:
		return poissonBelow1(src, p.num, p.den), nil
	case p.mode == 1:
		return poissonBelow1(src, p.num, p.den) + poissonBelow1(src, p.num, p.den), nil
	}
	for {
		u := uniform(src, 2*(p.flat+p.tail))
		var x uint64
		var ok bool
		if u&1 == 0 {
			x, ok = p.drawRight(src, u>>1)
		} else {
			x, ok = p.drawLeft(src, u>>1)
		}
		if ok {
			return int64(x), nil
		}
	}
}

// poissonBelow1 draws from the law of mean n/d < 1.
func poissonBelow1(src rand.Source, n, d uint64) int64 {
	if bernoulliExpFraction(src, n, d) {
		return 0
	}
proposal:
	for {
		// Zeros before the first one of a stream of bits, and 1.
		x := uint64(1)
		for w := src.Uint64(); ; w = src.Uint64() {
			x += uint64(bits.TrailingZeros64(w))
			if w != 0 {
				break
			}
		}
		for i := uint64(2); i <= x; i++ {
			if !bernoulli(src, n, d) || i > 2 && !bernoulli(src, 2, i) {
				continue proposal
			}
		}
		return int64(x)
	}
}

// drawRight keeps or rejects the proposal of m+place, of the tail if place ≥ w.
func (p *Poisson) drawRight(src rand.Source, place uint64) (uint64, bool) {
	s := uint64(0)
	if place >= p.flat {
		if !p.right.keep(src, p.tail) {
			return 0, false
		}
		place, s = p.flat, p.right.steps(src)
	}
	for i := uint64(1); i <= place; i++ {
		if !bernoulli(src, p.num, p.den*(p.mode+i)) {
			return 0, false
		}
	}
	x, top := p.mode+place, p.mode+p.flat
	for ; s > 0; s-- {
		if x++; !bernoulli(src, top, x) {
			return 0, false
		}
	}
	return x, true
}

// drawLeft keeps or rejects the proposal of m−1−place, of the tail if place ≥ w.
func (p *Poisson) drawLeft(src rand.Source, place uint64) (uint64, bool) {
	s := uint64(0)
	if place >= p.flat {
		if !p.left.keep(src, p.tail) {
			return 0, false
		}
		place, s = p.flat, p.left.steps(src)
	}
	for i := range place + 1 {
		// a coin of 0 at i = m, so no value is below 0
		if !bernoulli(src, p.den*(p.mode-i), p.num) {
			return 0, false
		}
	}
	x, top := p.mode-1-place, p.mode-p.flat
	for ; s > 0; s-- {
		if x == 0 || !bernoulli(src, x, top) {
			return 0, false
		}
		x--
	}
	return x, true
}

// keep tosses 1/(a(1−f)).
func (t poissonTail) keep(src rand.Source, a uint64) bool {
	return bernoulli(src, t.d, (t.d-t.n)*a)
}

// steps draws s with mass ∝ f^s.
func (t poissonTail) steps(src rand.Source) uint64 {
	for s := uint64(0); ; s++ {
		if !bernoulli(src, t.n, t.d) {
			return s
		}
	}
}

// Skellam is the law of X − Y for independent X and Y of one [Poisson] law of mean σ²/2, where σ² =
// num/den is the variance. Skellam laws add up exactly, as Poisson laws do: the sum of n draws of
// variance σ²/n is Skellam of variance σ² [Chowdhury and Zhou 2023, section 4.2]. So a release's
// noise may be drawn by every user or at once. Added to an integer sum of sensitivity Δ it has the
// Rényi loss of [Chowdhury and Zhou 2023, Lemma 3].
type Skellam struct{ half Poisson }

// NewSkellam returns the Skellam law of variance num/den: at most 2^50, with num and den at most
// 2^55 in lowest terms and den at least 1. Variance 0 is the constant 0.
func NewSkellam(num, den uint64) (Skellam, error) {
	num, den, err := checkRational("variance", "Skellam", num, den, maxPoissonTerm/2, maxScaleLog)
	switch {
	case err != nil:
		return Skellam{}, err
	case num&1 == 0:
		num /= 2
	default:
		den *= 2
	}
	return Skellam{half: newPoisson(num, den)}, nil // still in lowest terms
}

// Draw draws from the law. The error is that s did not come from [NewSkellam].
func (s Skellam) Draw(src rand.Source) (int64, error) { return s.draw(src) }

func (s *Skellam) draw(src rand.Source) (int64, error) {
	x, err := s.half.draw(src)
	if err != nil {
		return 0, err
	}
	y, err := s.half.draw(src)
	return x - y, err
}

// checkRational returns num/den in lowest terms.
func checkRational(field, law string, num, den, maxTerm uint64, maxLog int) (uint64, uint64, error) {
	if den == 0 {
		return 0, 0, fmt.Errorf("noise: den of the %s num/den of a %s law is 0, must be at least 1", field, law)
	}
	g := gcd(num, den)
	n, d := num/g, den/g
	switch {
	case n > maxTerm || d > maxTerm:
		return 0, 0, fmt.Errorf("noise: %s num/den = %d/%d of a %s law is out of range: num and "+
			"den must be at most 2^%d in lowest terms",
			field, num, den, law, bits.Len64(maxTerm)-1)
	case n/d > 1<<maxLog || n/d == 1<<maxLog && n%d != 0:
		return 0, 0, fmt.Errorf("noise: %s num/den = %d/%d of a %s law is too large, must be at "+
			"most 2^%d", field, num, den, law, maxLog)
	}
	return n, d, nil
}
