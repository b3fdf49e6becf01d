package privacy

import (
	"errors"
	"fmt"
	"math"
)

const (
	// cutClones is how much mass may be outside of a range of clones, and of their bits.
	cutClones = 1e-24
	// cloneBlocks is how many numbers of clones are told apart, at most, and mostClones the largest.
	cloneBlocks = 256
	mostClones  = 1 << 24
	// binomialRounding bounds how far a binomial mass is off, followed over up to fresh others.
	binomialRounding = 4e-12
	fresh            = 1 << 10
)

// shuffledPLD is that of n shuffled reports, each through the same ε0-DP randomiser, under
// replace-one: of the pair of ClonesDelta, which dominates them all. Composed, it is what those
// reports lose that a user makes in several batches, each shuffled by itself among n.
//
// Given C clones there are m = C+1 bits, of which x are 1 with the probabilities 2B(x)(ax +
// (1−a)(m−x))/m and 2B(x)((1−a)x + a(m−x))/m, B that of a fair Bin(m,½). Fewer clones hide worse: who
// sees m bits can add one of a fair coin, and sees m+1. So numbers of clones are rounded down, to one
// of 256, and to 2^24.
func shuffledPLD(n int, epsilon0, step float64) (PLD, error) {
	if err := checkStep(step); err != nil {
		return PLD{}, err
	}
	if n < 1 || !(epsilon0 >= 0 && epsilon0 <= math.MaxFloat64) {
		return PLD{}, fmt.Errorf("privacy loss: n is %d and ε0 is %v: n must be at least 1, and ε0 "+
			"finite and at least 0", n, epsilon0)
	}
	const alone = 700 // there are no clones, and e^{−ε0} leaves the doubles
	if n == 1 || epsilon0 > alone {
		return approxPLD(epsilon0, 0, step)
	}
	return symmetric(step, "shuffled reports", func() (losses, error) {
		return clonesPLD(float64(min(n, maxClones)-1), epsilon0, step)
	})
}

// A cloned is a range of how many bits are 1 of m = C+1, for C of a probability.
type cloned struct{ m, share, lo, hi float64 }

func clonesPLD(others, epsilon0, step float64) (losses, error) {
	all, inf := clonesRanges(others, cloneShare(epsilon0))
	s, a := math.Exp(-epsilon0), 1/(1+math.Exp(-epsilon0))
	loss := func(m, x float64) float64 {
		l := math.Log((x+float64(s*(m-x)))/(float64(s*x)+(m-x))) + 4e-15
		return min(l, epsilon0)
	}
	lo, hi := 0.0, 0.0
	for _, c := range all {
		lo, hi = min(lo, loss(c.m, c.lo)), max(hi, loss(c.m, c.hi))
	}
	g, err := newGrid(lo, hi, step)
	if err != nil {
		return losses{}, err
	}
	g.inf = inf
	for _, c := range all {
		b := 0.0
		for i, x := 0, c.lo; x <= c.hi; i, x = i+1, x+1 {
			if i%fresh == 0 {
				b = binomial(x, c.m, 0.5)
			} else {
				b *= (c.m - x + 1) / x
			}
			p := 2 * b * (float64(a*x) + float64((1-a)*(c.m-x))) / c.m
			g.split(loss(c.m, x), raised(c.share*p, 2*binomialRounding))
		}
	}
	return g.losses, nil
}

// clonesRanges are those of all numbers of clones, and the mass that is in none.
func clonesRanges(others, share float64) (all []cloned, outside float64) {
	lo, hi, cut := binomialRange(others, share, cutClones)
	width := max(1, math.Ceil((hi-lo+1)/cloneBlocks))
	outside = cut
	for from := lo; from <= hi; from += width {
		w, sum := binomial(from, others, share), 0.0
		for c := from; c < from+width && c <= hi; c++ {
			sum += w
			w *= (others - c) * share / ((c + 1) * (1 - share))
		}
		if m := min(from, mostClones) + 1; len(all) > 0 && all[len(all)-1].m == m {
			all[len(all)-1].share += sum
		} else {
			all = append(all, cloned{m: m, share: sum})
		}
	}
	for i, c := range all {
		c.share = raised(c.share, binomialRounding)
		c.lo, c.hi, cut = binomialRange(c.m, 0.5, cutClones)
		outside += 2 * c.share * cut // of either world, at most twice that of fair bits
		all[i] = c
	}
	return all, outside
}

// shuffledCountPLD is that of the counts of messages, where a bit is replaced. Given how the theorem
// of ShuffledCount reads, with U for what a blank user sends and q = e^{−ε1}:
//
//   - where k = M < P, of U's mass (1−q)q^{2k+1}, bit 1 has e^{ε1}(1−γ)S(k) + γ of it, and bit 0
//     (1−γ)S(k) + γ;
//   - where k = P ≤ M, of (1−q)q^{2k}, they have e^{ε1}(1−γ)S(k−1) + γ and (1−γ)S(k) + γ.
//
// From the last k of the cover on the ratios stay, and masses fall by q². A bit that was rounded at
// random is a mixture of both, which loses less at every ε.
func shuffledCountPLD(m ShuffledCount, step float64) (PLD, error) {
	cover, err := m.Cover()
	if err != nil {
		return PLD{}, err
	}
	e1, gamma := m.Epsilon1(), float64(cover.Blank)/coverUnit
	q, fall, left := math.Exp(-e1), math.Exp(-2*e1), -math.Expm1(-e1)
	type atom struct{ one, zero float64 }
	var atoms []atom
	s, blank := 0.0, gamma // S(k)·q^{2k}, γ·q^{2k}
	n := len(cover.Pairs)
	for k := 0; k <= n; k++ {
		before, d, scale := s, 0.0, left
		if k < n {
			d = float64(cover.Pairs[k]) / coverUnit
		} else {
			scale = 1 / (1 + q) // of this one and all further ones
		}
		s = float64(s*fall) + d
		zero := float64((1-gamma)*s) + blank
		atoms = append(atoms,
			atom{scale * (float64((1-gamma)*s) + float64(q*blank)), scale * float64(q*zero)},
			atom{scale * (float64((1-gamma)*float64(q*before)) + blank), scale * zero})
		blank *= fall
	}
	off := 1e-15 * float64(n+4) // each S has rounded a few times more than the one before
	law := func(p, q func(atom) float64) (losses, error) {
		lo, hi := 0.0, 0.0
		for _, a := range atoms {
			l := math.Log(p(a) / q(a))
			lo, hi = min(lo, l), max(hi, l)
		}
		g, err := newGrid(lo, hi+2*off, step)
		if err != nil {
			return losses{}, err
		}
		for _, a := range atoms {
			g.split(math.Log(p(a)/q(a))+2*off, raised(p(a), 2*off))
		}
		return g.losses, nil
	}
	one, zero := func(a atom) float64 { return a.one }, func(a atom) float64 { return a.zero }
	there, err1 := law(one, zero)
	back, err2 := law(zero, one)
	if err := errors.Join(err1, err2); err != nil {
		return PLD{}, fmt.Errorf("privacy loss of %s: %w", m.Kind(), err)
	}
	return PLD{step, there, back}, nil
}
