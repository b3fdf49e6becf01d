package noise

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
)

// DiscreteGaussian is the law P(x) ∝ exp(−x²/(2σ²)) on the integers. Its variance is at most σ²,
// and little less unless σ < 1. Added to an integer sum of sensitivity s (in the sum's own units)
// it is s²/(2σ²)-zCDP (CKS Theorem 4).
//
// Why [DiscreteGaussian.Draw] is exact (CKS Algorithm 3). Y is discrete Laplace of scale t and is
// kept with probability exp(−γ), γ = (|Y| − σ²/t)²/(2σ²). As γ = Y²/(2σ²) − |Y|/t + σ²/(2t²), what
// is kept has mass ∝ e^{-|Y|/t}·e^{-γ} ∝ exp(−Y²/(2σ²)). That holds for every t > 0. CKS take t =
// ⌊σ⌋+1; for σ = num/den this file takes t = σ itself, which is allowed as the Laplace sampler's
// scale is rational, and γ = (|Y|·den − num)²/(2·num²). For σ² = num/den it takes t = ⌊σ⌋+1 and γ =
// (|Y|·t·den − num)²/(2·num·den·t²). Either way γ = A²/B with A below 2^64 and B below 2^116, and
// the coin exp(−γ) is tossed as in [BernoulliExp], in 128 bits.
type DiscreteGaussian struct {
	proposal DiscreteLaplace
	mul, sub uint64 // A = ||Y|·mul − sub|
	hi, lo   uint64 // B = hi·2^64 + lo
}

// maxGaussianTerm bounds num and den of a discrete Gaussian in lowest terms.
const maxGaussianTerm = 1 << 56

// NewDiscreteGaussian returns the discrete Gaussian law of σ = num/den: at most 2^50, with num and
// den from 1 to 2^56 in lowest terms.
func NewDiscreteGaussian(num, den uint64) (DiscreteGaussian, error) {
	num, den, err := checkGaussian("sigma", num, den)
	if err != nil {
		return DiscreteGaussian{}, err
	}
	proposal, err := NewDiscreteLaplace(num, den)
	if err != nil {
		return DiscreteGaussian{}, fmt.Errorf("noise: sigma of a discrete Gaussian law: %w", err)
	}
	hi, lo := bits.Mul64(num, 2*num)
	return DiscreteGaussian{proposal: proposal, mul: den, sub: num, hi: hi, lo: lo}, nil
}

// NewDiscreteGaussianVariance returns the discrete Gaussian law of σ² = num/den, with num and den
// from 1 to 2^56 in lowest terms (so σ is at most 2^28). A budget of ρ-zCDP asks for σ² = s²/(2ρ),
// whose root is seldom rational. For a larger σ round it up and use [NewDiscreteGaussian].
func NewDiscreteGaussianVariance(num, den uint64) (DiscreteGaussian, error) {
	num, den, err := checkGaussian("variance", num, den)
	if err != nil {
		return DiscreteGaussian{}, err
	}
	t := isqrt(num/den) + 1
	proposal, err := NewDiscreteLaplace(t, 1)
	if err != nil {
		return DiscreteGaussian{}, fmt.Errorf("noise: variance of a discrete Gaussian law: %w", err)
	}
	// t·den ≤ √(num·den) + den ≤ 2^57 and num·t ≤ 2^56·(2^28+1), so B ≤ 2·num·(√num+√den)² ≤ 2^115.
	hi, lo := bits.Mul64(num*2, t*den)
	carry, lo := bits.Mul64(lo, t)
	return DiscreteGaussian{proposal: proposal, mul: t * den, sub: num, hi: hi*t + carry, lo: lo}, nil
}

// Draw draws from the law. The error is [ErrOverflow], or that g did not come from its constructor.
func (g DiscreteGaussian) Draw(src rand.Source) (int64, error) {
	for {
		y, err := g.proposal.draw(src)
		if err != nil {
			return 0, err
		}
		hi, a := bits.Mul64(uint64(max(y, -y)), g.mul)
		if hi != 0 {
			if certainlyHuge(src) {
				return 0, ErrOverflow
			}
			continue
		}
		if a >= g.sub {
			a -= g.sub
		} else {
			a = g.sub - a
		}
		if hi, lo := bits.Mul64(a, a); bernoulliExp128(src, hi, lo, g.hi, g.lo) {
			return y, nil
		}
	}
}

// certainlyHuge tosses the coin exp(−7900). A proposal with |Y|·mul ≥ 2^64 has A ≥ 2^64 − 2^56 and
// so γ > 2^127.98/2^115 > 7900: where that coin fails, so does exp(−γ).
func certainlyHuge(src rand.Source) bool {
	for range 7900 {
		if !bernoulliInvE(src) {
			return false
		}
	}
	return true
}

// bernoulliExp128 is true with probability exp(−c/b), for 128-bit numbers c and b ≥ 1 given as
// high and low words.
func bernoulliExp128(src rand.Source, c1, c0, b1, b0 uint64) bool {
	for c1 > b1 || c1 == b1 && c0 >= b0 {
		if !bernoulliInvE(src) {
			return false
		}
		var borrow uint64
		c0, borrow = bits.Sub64(c0, b0, 0)
		c1, _ = bits.Sub64(c1, b1, borrow)
	}
	if c1|c0 == 0 {
		return true
	}
	for k := uint64(1); ; k++ {
		// The coin of c/(bk) is the coins of 1/k and c/b.
		if k > 1 && !bernoulli(src, 1, k) || !bernoulli128(src, c1, c0, b1, b0) {
			return k&1 == 1
		}
	}
}

// bernoulli128 is true with probability c/b, for c < b; see bernoulli, of which it is
// the 128-bit twin.
func bernoulli128(src rand.Source, c1, c0, b1, b0 uint64) bool {
	for {
		// d = c·2^64 − w·b
		w := src.Uint64()
		h0, p0 := bits.Mul64(w, b0)
		p2, p1 := bits.Mul64(w, b1)
		p1, carry := bits.Add64(p1, h0, 0)
		p2 += carry
		d0, borrow := bits.Sub64(0, p0, 0)
		d1, borrow := bits.Sub64(c0, p1, borrow)
		d2, borrow := bits.Sub64(c1, p2, borrow)
		switch {
		case borrow != 0 || d2|d1|d0 == 0:
			return false
		case d2 != 0 || d1 > b1 || d1 == b1 && d0 >= b0:
			return true
		}
		c1, c0 = d1, d0
	}
}

// checkGaussian returns num/den in lowest terms.
func checkGaussian(field string, num, den uint64) (uint64, uint64, error) {
	switch {
	case num == 0:
		return 0, 0, fmt.Errorf("noise: num of the %s num/den of a discrete Gaussian law is 0, "+
			"must be from 1 to 2^56", field)
	case den == 0:
		return 0, 0, fmt.Errorf("noise: den of the %s num/den of a discrete Gaussian law is 0, "+
			"must be from 1 to 2^56", field)
	}
	g := gcd(num, den)
	n, d := num/g, den/g
	if n > maxGaussianTerm || d > maxGaussianTerm {
		return 0, 0, fmt.Errorf("noise: %s num/den = %d/%d of a discrete Gaussian law is out of "+
			"range: num and den must be from 1 to 2^56 in lowest terms",
			field, num, den)
	}
	return n, d, nil
}

// isqrt is ⌊√n⌋ by Newton's iteration from above, n < 2^63.
func isqrt(n uint64) uint64 {
	if n == 0 {
		return 0
	}
	x := uint64(1) << ((bits.Len64(n) + 1) / 2)
	for {
		y := (x + n/x) / 2
		if y >= x {
			return x
		}
		x = y
	}
}
