package noise

import (
	"errors"
	"fmt"
	"math/big"
	"math/bits"
	"math/rand/v2"
)

// ErrOverflow says that exact noise left the range of the sampler. It has a probability below
// e^{-7900}: whoever sees it has a broken source of randomness.
var ErrOverflow = errors.New("noise: exact noise overflows: the source of randomness is broken")

// BernoulliExp is true with probability exp(−num/den), exactly. den must be at least 1.
//
// Why it is exact. exp(−num/den) is a product of ⌊num/den⌋ factors e^{-1} and one exp(−γ), 0 ≤ γ <
// 1; independent coins multiply. A coin of e^{-1} compares a uniform number with the binary digits
// of e^{-1} (see standardGeometric). A coin of exp(−γ) is CKS Algorithm 1 (von Neumann 1951): toss
// coins of γ/1, γ/2, γ/3, … until one fails. The first K−1 succeed with probability γ^{K−1}/(K−1)!,
// so P(K odd) = Σ_j γ^{2j}/(2j)! − γ^{2j+1}/(2j+1)! = exp(−γ). A coin of a rational number compares
// it with a uniform number, digit by digit (see bernoulli). Coq checks it:
// proofs/Words.v#bernoulli_exp_64.
func BernoulliExp(src rand.Source, num, den uint64) (bool, error) {
	if den == 0 {
		return false, fmt.Errorf("noise: den of Bernoulli(exp(-num/den)) is 0, must be at least 1")
	}
	for ; num >= den; num -= den {
		if !bernoulliInvE(src) {
			return false, nil
		}
	}
	return bernoulliExpFraction(src, num, den), nil
}

// bernoulliExpFraction is true with probability exp(−n/d), for n ≤ d: proofs/BernoulliExp.v#fraction_law.
func bernoulliExpFraction(src rand.Source, n, d uint64) bool {
	if n == 0 {
		return true
	}
	for k := uint64(1); ; k++ {
		// The coin of n/(dk). Where dk leaves 64 bits it is two coins that must both
		// succeed, n/d and 1/k.
		var more bool
		if hi, dk := bits.Mul64(d, k); hi == 0 {
			more = bernoulli(src, n, dk)
		} else {
			more = bernoulli(src, n, d) && bernoulli(src, 1, k)
		}
		if !more {
			return k&1 == 1
		}
	}
}

// bernoulli is true with probability n/d, for n ≤ d, d ≥ 1.
//
// A uniform number is U = (w+θ)/2^64: w is the word drawn, θ in [0,1) the rest of its digits, not
// drawn yet. U < n/d means θ·d < n·2^64 − w·d. If the right side is at least d, that holds whatever
// θ is; if it is at most 0, it does not. Else the question is whether θ < diff/d: the same question
// again, with fresh digits. So it is exact, and needs no division: proofs/Bernoulli.v#bernoulli_law, and
// proofs/Bernoulli.v#bernoulli_go_is_bernoulli for the words hi and lo.
func bernoulli(src rand.Source, n, d uint64) bool {
	for {
		hi, lo := bits.Mul64(src.Uint64(), d)
		if hi >= n {
			return false
		}
		if hi < n-1 || lo == 0 || -lo >= d { // in the first two cases n·2^64 − w·d ≥ 2^64 > θ·d
			return true
		}
		n = -lo
	}
}

// bernoulliInvE is true with probability e^{-1}.
func bernoulliInvE(src rand.Source) bool {
	w := src.Uint64() >> 1
	return w < expPrefixes[0] || w == expPrefixes[0] && belowExp(src, 1)
}

// standardGeometric draws G with P(G ≥ k) = e^{-k}, and a fair coin (0 or 1) that is independent of
// it. ok is false if G would reach geometricEnd.
//
// G is the number of k ≥ 1 with U < e^{-k}, for one uniform number U. The word's first 63 bits are
// U's first 63 binary digits (the last bit is the coin). If they differ from the first 63 digits of
// e^{-k}, they decide U < e^{-k}; if not, further digits do (belowExp). Beyond k = 30 the prefixes
// would get short of digits, and G starts again from there, for the law has no memory: P(G ≥ 30+k |
// G ≥ 30) = e^{-k}. Coq checks the law of both: proofs/Quotient.v#standard_law.
func standardGeometric(src rand.Source) (g, coin uint64, ok bool) {
	word := src.Uint64()
	coin = word & 1
	for {
		w := word >> 1
		for k := range uint64(len(expPrefixes)) {
			if e := expPrefixes[k]; w > e || w == e && !belowExp(src, uint(k+1)) {
				return g + k, coin, true
			}
		}
		if g += uint64(len(expPrefixes)); g >= geometricEnd {
			return 0, 0, false
		}
		word = src.Uint64()
	}
}

// geometricEnd bounds standardGeometric, so that a source of zeros ends with an error and not
// never: P(G ≥ 16384) = e^{-16384}. At the largest scale the noise leaves int64 at G ≥ 8192.
const geometricEnd = 1 << 14

// belowExp says whether U < e^{-k} for a uniform U whose first 63 binary digits are those of
// e^{-k}; it draws further digits of U and compares them with as many of e^{-k}. These are worked
// out here and not kept in a table, for no table is long enough to be exact, and none is needed: a
// draw gets here with probability at most 30·2^{-63}.
func belowExp(src rand.Source, k uint) bool {
	for digits := uint(63 + 64); ; digits += 64 {
		e := expDigits(k, digits)
		want := e.And(e, new(big.Int).SetUint64(^uint64(0))).Uint64()
		if w := src.Uint64(); w != want {
			return w < want
		}
	}
}

// expDigits is ⌊e^{-k}·2^n⌋ for k ≤ 30: the first n binary digits of e^{-k}.
//
// It sums the series Σ (−k)^i/i! in integers of n+guard bits, each term rounded down. A rounding of
// 1 in term m moves the sum by Σ_j (−k)^j·m!/(m+j)! = m∫₀¹ (1−t)^{m−1} e^{−kt} dt, at most 1, what
// is left out after the last term included, which was rounded down to 0. So the sum is off by less
// than the number of terms. If the sum less that and the sum plus that have the same first n
// digits, these are the digits; if not, more guard bits decide, as e^{-k} is irrational. A test holds them
// against those that Coq checks another way: proofs/Words.v#found_is_floor.
func expDigits(k, n uint) *big.Int {
	for guard := uint(1); ; guard *= 2 { // some 10 bits decide
		term := new(big.Int).Lsh(big.NewInt(1), n+guard)
		sum := new(big.Int)
		terms := int64(0)
		for ; term.Sign() > 0 || terms <= int64(k); terms++ {
			if terms&1 == 0 {
				sum.Add(sum, term)
			} else {
				sum.Sub(sum, term)
			}
			term.Mul(term, big.NewInt(int64(k)))
			term.Quo(term, big.NewInt(terms+1))
		}
		off := big.NewInt(terms + 1)
		lo := new(big.Int).Sub(sum, off)
		hi := sum.Add(sum, off)
		lo.Rsh(lo, guard)
		hi.Rsh(hi, guard)
		if lo.Cmp(hi) == 0 {
			return lo
		}
	}
}

// expPrefixes[k-1] is ⌊e^{-k}·2^63⌋: proofs/Words.v#prefixes_right.
var expPrefixes = [30]uint64{
	0x2f16ac6c59de6f8d,
	0x1152aaa3bf81cb9f,
	0x65f6c3333ac2bb2,
	0x2582ab704279e8e,
	0xdcc9ff006a9bb0,
	0x513947c44f5357,
	0x1de16b9c24a98e,
	0x0afe10820813d6,
	0x040b3c89499516,
	0x017cd79b5647c9,
	0x008c1aa11c7b3b,
	0x00338a98768779,
	0x0012f6053b981d,
	0x0006f9b1bf6c05,
	0x000290eb9444fd,
	0x0000f1aaddd774,
	0x000058e78c5d69,
	0x000020b4c518d3,
	0x00000c082b7f96,
	0x0000046d21957c,
	0x000001a0db0d0d,
	0x000000995a45f8,
	0x000000386a4fc8,
	0x00000014c1078f,
	0x00000007a28de9,
	0x00000002cf0a54,
	0x00000001088529,
	0x00000000614fc0,
	0x0000000023cc85,
	0x000000000d2b70,
}
