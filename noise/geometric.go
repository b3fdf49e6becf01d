package noise

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
)

// maxScaleLog is log₂ of the largest scale of an exact sampler. Values then stay within int64 but
// for a probability of e^{-8192}.
const maxScaleLog = 50

// Geometric is the law P(x) = (1−β)·β^x on x = 0, 1, 2, …, with β = exp(−1/t) and scale t =
// num/den. It is the one-sided half of the discrete Laplace law.
//
// Why [Geometric.Draw] is exact (CKS Algorithm 2, lines 1–9, their t and s being num and den). U is
// uniform on {0,…,num−1} (Lemire 2019: the high half of word·num, with the few words that would
// make values uneven drawn again) and kept with probability exp(−U/num), so it has mass ∝
// e^{-U/num}. V has P(V ≥ k) = e^{-k}. So X = U + num·V, whose pair (U,V) is its remainder and
// quotient, has mass ∝ e^{-U/num}·e^{-V} = e^{-X/num}: geometric with scale num. Then P(⌊X/den⌋ ≥
// x) = P(X ≥ x·den) = e^{-x·den/num} = β^x. Coq checks the values that Lemire's method keeps, the law of U
// and that of the whole: proofs/Geometric.v#lemire, proofs/Geometric.v#remainder_law and
// proofs/Words.v#geometric_64. X has up to 128 bits and is divided in 128 bits.
type Geometric struct {
	num, den uint64
	uneven   uint64 // 2^64 mod num: how many words Lemire's method must not use
}

// NewGeometric returns the geometric law of scale num/den: num and den at least 1,
// scale at most 2^50.
func NewGeometric(num, den uint64) (Geometric, error) {
	if err := checkScale("geometric", num, den); err != nil {
		return Geometric{}, err
	}
	g := gcd(num, den)
	num, den = num/g, den/g
	return Geometric{num: num, den: den, uneven: -num % num}, nil
}

// Draw draws from the law. The error is [ErrOverflow], or that g did not come from [NewGeometric].
func (g Geometric) Draw(src rand.Source) (int64, error) {
	x, _, err := g.draw(src)
	return x, err
}

// draw also gives a fair coin (0 or 1) independent of the value.
func (g *Geometric) draw(src rand.Source) (x int64, coin uint64, err error) {
	if g.den == 0 {
		return 0, 0, fmt.Errorf("noise: a sampler of exact noise was not made by its constructor")
	}
	var u uint64
	if g.num > 1 {
		for {
			hi, lo := bits.Mul64(src.Uint64(), g.num)
			if lo >= g.uneven && bernoulliExpFraction(src, hi, g.num) {
				u = hi
				break
			}
		}
	}
	v, coin, ok := standardGeometric(src)
	if !ok {
		return 0, 0, ErrOverflow
	}
	hi, lo := bits.Mul64(g.num, v)
	lo, carry := bits.Add64(lo, u, 0)
	hi += carry
	switch {
	case hi >= g.den:
		return 0, 0, ErrOverflow
	case hi > 0:
		lo, _ = bits.Div64(hi, lo, g.den)
	case g.den > 1:
		lo /= g.den
	}
	if lo > math.MaxInt64 {
		return 0, 0, ErrOverflow
	}
	return int64(lo), coin, nil
}

func checkScale(law string, num, den uint64) error {
	switch {
	case num == 0:
		return fmt.Errorf("noise: num of the scale num/den of a %s law is 0, must be at least 1", law)
	case den == 0:
		return fmt.Errorf("noise: den of the scale num/den of a %s law is 0, must be at least 1", law)
	}
	if hi, lo := bits.Mul64(den, 1<<maxScaleLog); hi == 0 && num > lo {
		return fmt.Errorf("noise: scale num/den = %d/%d of a %s law is too large, must be at "+
			"most 2^%d", num, den, law, maxScaleLog)
	}
	return nil
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
