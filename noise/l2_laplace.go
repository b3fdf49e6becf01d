package noise

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
)

// maxL2Dim keeps rejection short: at 16 dimensions some 60 proposals are made for a draw, at 32 some 5000.
const maxL2Dim = 32

// L2Laplace is the law P(v) ∝ exp(−‖v‖₂/t) on ℤ^d, with scale t = num/den. Added to a vector of integer sums
// whose sensitivity in ℓ2 is s (in the sums' own units) it is s/t-differentially private: shifts of the
// lattice have one normaliser, and | ‖v‖₂ − ‖v−u‖₂ | ≤ ‖u‖₂. Far from 0 a coordinate's variance is (d+1)t².
//
// Why [L2Laplace.Draw] is exact. Each coordinate of v is proposed from the discrete Laplace law of a rational
// scale s ≥ t√d, so that v has mass ∝ e^{−‖v‖₁/s}, and v is kept with probability e^{−x}, x = ‖v‖₂/t − ‖v‖₁/s:
// what is kept has mass ∝ e^{−‖v‖₂/t}. x is not negative, for ‖v‖₁ ≤ √d‖v‖₂. It is irrational where ‖v‖₂ is,
// but its binary digits are known: with q = ‖v‖₂², a = ‖v‖₁ and s = m/den
//
//	x = (√(m²q) − num·a)·den/(num·m),   ⌊2^k·x⌋ = ⌊(⌊√(4^k·den²·m²·q)⌋ − 2^k·den·num·a)/(num·m)⌋,
//
// as a floor inside of a floor changes nothing where what is taken off, and the divisor, are whole. The coin of
// e^{−x} is that of e^{−n/2^32}, n = ⌊2^32·x⌋ ([BernoulliExp]), and of e^{−f}, f = x − n/2^32; the latter is CKS
// Algorithm 1, whose coin of f compares a uniform number with f, digit by digit.
type L2Laplace struct {
	dim         int
	num, den, m uint64
	proposal    DiscreteLaplace
}

// NewL2Laplace returns the law in dim dimensions, from 1 to 32, of scale num/den: at most 2^44, num and den
// at least 1, below 2^56 in lowest terms.
func NewL2Laplace(dim int, num, den uint64) (L2Laplace, error) {
	if dim < 1 || dim > maxL2Dim {
		return L2Laplace{}, fmt.Errorf("noise: dim of an l2-Laplace law is %d, must be from 1 to %d", dim, maxL2Dim)
	}
	if err := checkScale("l2-Laplace", num, den); err != nil {
		return L2Laplace{}, err
	}
	g := gcd(num, den)
	num, den = num/g, den/g
	if num > maxGaussianTerm || den > maxGaussianTerm || num/den >= 1<<44 {
		return L2Laplace{}, fmt.Errorf("noise: scale %d/%d of an l2-Laplace law is out of range: at most 2^44, num "+
			"and den below 2^56 in lowest terms", num, den)
	}
	m := new(big.Int).SetUint64(num)
	m.Mul(m, m).Mul(m, big.NewInt(int64(dim))).Sqrt(m) // ⌊num√d⌋, and one more is not below num√d
	law := L2Laplace{dim: dim, num: num, den: den, m: m.Uint64() + 1}
	var err error
	law.proposal, err = NewDiscreteLaplace(law.m, den)
	return law, err
}

// Draw draws v into dst, which has as many numbers as the law has dimensions. The error is [ErrOverflow], or that l
// did not come from [NewL2Laplace] or has another dimension.
func (l L2Laplace) Draw(src rand.Source, dst []int64) error {
	if l.den == 0 {
		return fmt.Errorf("noise: a sampler of exact noise was not made by its constructor")
	}
	if len(dst) != l.dim {
		return fmt.Errorf("noise: dst has %d numbers, must have %d", len(dst), l.dim)
	}
	for {
		for i := range dst {
			x, err := l.proposal.draw(src)
			if err != nil {
				return err
			}
			dst[i] = x
		}
		keep, err := l.keep(src, dst)
		if keep || err != nil {
			return err
		}
	}
}

// keep is true with probability e^{−x}.
func (l *L2Laplace) keep(src rand.Source, v []int64) (bool, error) {
	digits := l.exponent(v, 64)
	n := new(big.Int).Rsh(digits, 32)
	if !n.IsUint64() { // x ≥ 2^32
		if certainlyHuge(src) {
			return false, ErrOverflow
		}
		return false, nil
	}
	whole := n.Uint64()
	if keep, err := BernoulliExp(src, whole, 1<<32); !keep || err != nil {
		return false, err
	}
	f := func() bool { return l.belowRest(src, v, whole, digits) }
	for k := uint64(1); ; k++ { // e^{−f}
		if !f() || k > 1 && !bernoulli(src, 1, k) {
			return k&1 == 1, nil
		}
	}
}

// belowRest is true with probability f = x − n/2^32, below 2^-32. digits are ⌊2^64·x⌋.
func (l *L2Laplace) belowRest(src rand.Source, v []int64, n uint64, digits *big.Int) bool {
	want := new(big.Int).SetUint64(n)
	want.Sub(digits, want.Lsh(want, 32))
	for k := uint(64); ; {
		if w, next := src.Uint64(), want.Uint64(); w != next {
			return w < next
		}
		k += 64
		want = l.exponent(v, k)
		want.And(want, new(big.Int).SetUint64(math.MaxUint64))
	}
}

// exponent is ⌊2^k·x⌋.
func (l *L2Laplace) exponent(v []int64, k uint) *big.Int {
	square, sum, x := new(big.Int), new(big.Int), new(big.Int)
	for _, y := range v {
		x.SetInt64(y)
		sum.Add(sum, x.Abs(x))
		square.Add(square, x.Mul(x, x))
	}
	m, num, den := x.SetUint64(l.m), new(big.Int).SetUint64(l.num), new(big.Int).SetUint64(l.den)
	root := new(big.Int).Mul(m, den)
	square.Mul(square, root.Mul(root, root))
	square.Lsh(square, 2*k).Sqrt(square)
	sum.Mul(sum, num).Mul(sum, den).Lsh(sum, k)
	return square.Sub(square, sum).Div(square, m.Mul(m, num))
}
