package noise

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
)

// NegativeBinomial is one of n equal shares of a geometric law: P(x) = C(x+r−1, x)·(1−β)^r·β^x on
// x = 0, 1, 2, …, with r = 1/n, β = exp(−1/t) and scale t = num/den. It is also called Pólya(r,
// β). The sum of n independent draws is [Geometric] of the same scale: generating functions
// ((1−β)/(1−βz))^{1/n} multiply. Mean and variance are those of the geometric law over n:
// rβ/(1−β) and rβ/(1−β)².
//
// Why [NegativeBinomial.Draw] is exact. As a mixture the law is Poisson with a mean of Gamma(shape
// r, scale β/(1−β)); the scale's reciprocal, which is in print too, gives hardly any noise. Of n
// such means the sum is Gamma(1, β/(1−β)) and the proportions are Dirichlet(r,…,r) independently of
// it. So n independent shares, given their sum G, are the numbers of units that n users get of G
// units dealt by Pólya's urn: after c of the first k−1 units the user gets unit k with probability
// (r+c)/(nr+k−1) = (1+nc)/(nk). And G is geometric. So draw G and deal. Nobody else's share is
// needed, as the coin of unit k looks at the user's own c only.
//
// Dealing skips units that are not the user's (see deal), so a draw takes O(1 + (log t + t)/n)
// steps on average. If n is large, a share is mostly 0 and mostly needs one word of randomness. It
// takes the longer the larger it is.
type NegativeBinomial struct {
	whole     Geometric
	n, uneven uint64 // uneven is 2^64 mod n
}

// maxShareLog bounds n·scale of a share: the products of dealing then leave 63 bits with a
// probability of e^{-8192}.
const maxShareLog = 50

// maxShareScaleLog bounds scale/n of a share, n ≥ 2: the units a user gets, dealt one by one.
const maxShareScaleLog = 20

// NewNegativeBinomial returns the law of one of n shares of the geometric law of scale num/den:
// n, num and den at least 1, scale at most 2^50. If n is not 1, n·scale is at most 2^50 and
// scale/n at most 2^20.
func NewNegativeBinomial(n, num, den uint64) (NegativeBinomial, error) {
	const law = "negative binomial"
	if n == 0 {
		return NegativeBinomial{}, fmt.Errorf("noise: number of shares n of a %s law is 0, must "+
			"be at least 1", law)
	}
	if err := checkScale(law, num, den); err != nil {
		return NegativeBinomial{}, err
	}
	if n > 1 {
		allHi, all := bits.Mul64(n, num)
		if maxHi, most := bits.Mul64(den, 1<<maxShareLog); allHi > maxHi || allHi == maxHi && all > most {
			return NegativeBinomial{}, fmt.Errorf("noise: n = %d shares of scale num/den = %d/%d "+
				"of a %s law are too many, n·scale must be at most 2^%d",
				n, num, den, law, maxShareLog)
		}
		// num > n·den·2^20, in 128 bits.
		if hi, lo := bits.Mul64(n, den); hi == 0 && lo < 1<<(64-maxShareScaleLog) &&
			num > lo<<maxShareScaleLog {
			return NegativeBinomial{}, fmt.Errorf("noise: scale num/den = %d/%d of a %s law of n "+
				"= %d shares is too large, scale/n must be at most 2^%d",
				num, den, law, n, maxShareScaleLog)
		}
	}
	whole, err := NewGeometric(num, den)
	return NegativeBinomial{whole: whole, n: n, uneven: -n % n}, err
}

// Draw draws from the law. The error is [ErrOverflow], or that b did not come from
// [NewNegativeBinomial].
func (b NegativeBinomial) Draw(src rand.Source) (int64, error) { return b.draw(src) }

func (b *NegativeBinomial) draw(src rand.Source) (int64, error) {
	if b.n < 64 {
		g, _, err := b.whole.draw(src)
		if err != nil || g == 0 || b.n == 1 {
			return g, err
		}
		if b.overflows(uint64(g)) {
			return 0, ErrOverflow
		}
		return int64(b.deal(src, uint64(g))), nil
	}
	// The point of the first n blocks does not depend on G, and no G of 63 bits has more than 63
	// blocks. So it comes first: for large n it mostly picks nothing, and then G is not needed.
	j, i, ok := b.pick(src, 0, 62)
	if !ok {
		return 0, nil
	}
	g, _, err := b.whole.draw(src)
	if err != nil {
		return 0, err
	}
	if b.overflows(uint64(g)) {
		return 0, ErrOverflow
	}
	x, _ := b.dealPicked(src, 0, j, i, uint64(g))
	return int64(x), nil
}

// overflows says whether products of dealing g units may leave 63 bits.
func (b *NegativeBinomial) overflows(g uint64) bool {
	hi, lo := bits.Mul64(g, b.n)
	return hi != 0 || lo >= 1<<63
}

// deal is how many of units 1,…,g the user gets, unit k with probability (1+nc)/(nk) after c.
//
// The first unit. Unit k in block j, that is 2^j ≤ k < 2^{j+1}, is a candidate with probability
// 1/(n·2^j) and a candidate is the user's with probability 2^j/k: 1/(nk) in all. The probabilities of
// a block's candidates add up to 1/n, so those of n blocks to 1, and one uniform point picks at most
// one of them, x, with probability q_x. Let x be the first candidate if also none of the units before
// it in these blocks is one. Then x is first with probability q_x·∏_{y<x}(1−q_y), as it has to be.
// Whether there is one before x is the same question again: a second point picks y < x, and there is
// one with y the first, unless y has one before it, and so on (candidateBefore). If the point picks
// nothing (for large n all but log₂(g)/n of the time), there is no candidate in these n blocks.
//
// From then on candidates are taken from blocks that begin at the unit to deal; see dealOn.
func (b *NegativeBinomial) deal(src rand.Source, g uint64) uint64 {
	blocks := uint64(bits.Len64(g))
	for first := uint64(0); first < blocks; first += b.n {
		if j, i, ok := b.pick(src, first, blocks-1); ok {
			if x, ok := b.dealPicked(src, first, j, i, g); ok {
				return x
			}
		}
	}
	return 0
}

// dealPicked goes on from a point at place i of block j: how many units the user gets, or false if
// there is no candidate in these n blocks.
func (b *NegativeBinomial) dealPicked(src rand.Source, first, j, i, g uint64) (uint64, bool) {
	k := 1<<j + i
	if k > g || b.candidateBefore(src, first, j, i) { // if beyond g, so are all further blocks
		return 0, false
	}
	c := uint64(0)
	if bernoulli(src, 1<<j, k) {
		c = 1
	}
	return b.dealOn(src, k+1, c, g), true
}

// pick draws a point in blocks first,…,first+n−1 and gives its block j and place i in it, or
// false if j > last.
func (b *NegativeBinomial) pick(src rand.Source, first, last uint64) (j, i uint64, ok bool) {
	hi, lo := bits.Mul64(src.Uint64(), b.n)
	for lo < b.uneven {
		hi, lo = bits.Mul64(src.Uint64(), b.n)
	}
	if hi > last-first {
		return 0, 0, false
	}
	j = first + hi
	if j > 0 {
		i = src.Uint64() >> (64 - j)
	}
	return j, i, true
}

// candidateBefore says whether a unit before place i of block j is a candidate, in
// blocks from first on.
func (b *NegativeBinomial) candidateBefore(src rand.Source, first, j, i uint64) bool {
	for before := false; ; before = !before {
		y, at, ok := b.pick(src, first, j)
		if !ok || y == j && at >= i {
			return before
		}
		j, i = y, at
	}
}

// dealOn deals units k,…,g to a user who has c. The next m units are candidates with probability q
// = (1+nc)/(nk) each, where m ≤ k and mq ≤ 1. The first one is found as in deal, and candidate k+i
// is the user's with probability k/(k+i).
func (b *NegativeBinomial) dealOn(src rand.Source, k, c, g uint64) uint64 {
	for k <= g {
		a, d := 1+b.n*c, b.n*k // q = a/d; c < k, so a ≤ d
		m := min(k, d/a, g-k+1)
		u := uniform(src, d)
		if u >= m*a {
			k += m
			continue
		}
		i, before := u/a, false
		for j := i; j > 0; before = !before {
			if u = uniform(src, d); u >= j*a {
				break
			}
			j = u / a
		}
		if before {
			k += m
			continue
		}
		if bernoulli(src, k, k+i) {
			c++
		}
		k += i + 1
	}
	return c
}

// uniform is uniform on 0,…,n−1, n ≥ 1 (Lemire 2019).
func uniform(src rand.Source, n uint64) uint64 {
	hi, lo := bits.Mul64(src.Uint64(), n)
	if lo < n {
		for uneven := -n % n; lo < uneven; {
			hi, lo = bits.Mul64(src.Uint64(), n)
		}
	}
	return hi
}

// PolyaDifference is the law of X − Y for independent X and Y of one [NegativeBinomial] law: one
// user's noise, such that the sum over n users is exactly [DiscreteLaplace] of the same scale
// [Chowdhury and Zhou 2023, section 4.1 and Theorem 1]. Proof: the sums of the n X's and of the n Y's
// are geometric, and the difference of two geometric variates X', Y' has P(x) = Σ_y (1−β)²·β^{2y+|x|}
// = (1−β)/(1+β)·β^|x|. Its variance is 2β/(n(1−β)²). With fewer than n users in the sum there is less
// noise than promised: let n be the smallest number of honest users that will answer.
type PolyaDifference struct{ half NegativeBinomial }

// NewPolyaDifference returns one user's law of n whose noise adds up to the discrete Laplace law of
// scale num/den, with the ranges of [NewNegativeBinomial].
func NewPolyaDifference(n, num, den uint64) (PolyaDifference, error) {
	half, err := NewNegativeBinomial(n, num, den)
	return PolyaDifference{half: half}, err
}

// Draw draws from the law. The error is [ErrOverflow], or that d did not come from
// [NewPolyaDifference].
func (d PolyaDifference) Draw(src rand.Source) (int64, error) { return d.draw(src) }

func (d *PolyaDifference) draw(src rand.Source) (int64, error) {
	x, err := d.half.draw(src)
	if err != nil {
		return 0, err
	}
	y, err := d.half.draw(src)
	return x - y, err
}
