package policy

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/sotto-dp/sotto/privacy"
)

// Split is a private A/B test: each arm has a fixed share q_a of the rounds, and all arms
// are released together, in joint batches of consecutive rounds. It learns nothing: what it is
// released for is a verdict on the arms.
//
// It states Laplace noise of scale 1/ε for a pure budget, and Gaussian noise for the others. For
// rewards in [0,1] it is ε-DP, or meets the other budget: a reward is in one release, and where
// batches end follows from their number alone. Its regret is T Σ q_a Δ_a.
//
// The schedule. Let a reward have variance v and the noise of a sum variance σ² = 2s². The
// difference of the means of the two arms with the least shares p and q, after n rounds in batches
// of m, has variance (v(1/p + 1/q) + σ²(1/p² + 1/q²)/m)/n, and n waits for half a batch more. So
//
//	m = cg,  g = 2s√(N/v),  c = √((1/p² + 1/q²)/2)
//
// is best, where N = 2n/(1/p + 1/q) is the number of rewards an arm that an even split would need:
// c is K, and g a batch's rewards of each arm, if shares are even. N is public:
//
//   - An effect Δ, a difference of means, is found with N₀ = 15.7v/Δ² rewards an arm (two-sided risk
//     .05, power .8), so that g = 8s/Δ. After 4N₀ the effect is smaller than was planned, and
//     batches are a tenth of all that came before.
//   - Without one, N is what came before: g = min(N, max(8s, 2s√(N/v))), and max(8s, s²/v) at first,
//     as noise is twice the sampling variance then.
//
// v is r(1 − r) for a declared rate r of rewards that are 0 or 1, else ¼, the most there is. Both are
// guesses that privacy and a verdict do without. A batch has 8 rewards of each arm in expectation at
// least, so that few have none of an arm; and a hundredth of all that came before, which costs a
// two-hundredth of the rounds and keeps the number of batches O(log T).
//
// An arm that joins later (JoinAt) does so where a joint batch begins. From there on the schedule is that of
// an experiment that begins with all arms: the new comparisons have nothing yet.
type Split struct {
	mech   privacy.Mechanism
	effect float64 // Δ, or 0
	s, v   float64
	terms  []splitTerms // by when they begin

	round int
	batch Batch
}

// splitTerms are those of the rounds from one on: shares, and what batches are planned from.
type splitTerms struct {
	from       int
	shares     []float64
	batchOf, n float64 // c, and what N is of n rounds
	least      float64 // rounds of a batch
}

func newSplitTerms(from int, shares []float64) splitTerms {
	low := slices.Sorted(slices.Values(shares))
	x, y := 1/low[0], 1/low[1]
	return splitTerms{from: from, shares: slices.Clone(shares),
		batchOf: math.Sqrt((float64(x*x) + float64(y*y)) / 2), n: 2 / (x + y), least: 8 * x}
}

// MinShare is the least share of an arm that Split takes.
const MinShare = 0.001

// NewSplit returns the split for the shares of at least two arms, which add to 1, a budget (none: no
// privacy), an effect in (0,1], and a rate in (0,1). Effect and rate are 0 if nothing is known.
func NewSplit(shares []float64, budget privacy.Budget, effect, rate float64) (*Split, error) {
	fail := func(err error) (*Split, error) { return nil, fmt.Errorf("split: %w", err) }
	if err := checkArms(len(shares)); err != nil {
		return fail(err)
	}
	var sum float64
	for a, q := range shares {
		if !(q >= MinShare && q < 1) {
			return fail(fmt.Errorf("share %d is %v, must be from %v to below 1", a+1, q, MinShare))
		}
		sum += q
	}
	switch {
	case math.Abs(sum-1) > 1e-9:
		return fail(fmt.Errorf("shares add to %v, must add to 1", sum))
	case !(effect >= 0 && effect <= 1):
		return fail(fmt.Errorf("effect is %v, must be above 0 and at most 1, or 0 for none", effect))
	case !(rate >= 0 && rate < 1):
		return fail(fmt.Errorf("rate is %v, must be above 0 and below 1, or 0 for none", rate))
	}
	mech, err := oneShot(budget)
	if err != nil {
		return fail(err)
	}
	p := &Split{mech: mech, effect: effect, v: 0.25, terms: []splitTerms{newSplitTerms(0, shares)}}
	if rate > 0 {
		p.v = rate * (1 - rate)
	}
	switch m := mech.(type) {
	case privacy.Laplace:
		p.s = m.Scale
	case privacy.Gaussian:
		p.s = m.Sigma / math.Sqrt2
	}
	if !(p.s*p.s/p.v <= math.MaxFloat64) {
		return fail(errors.New("the noise is too large for any number of rounds"))
	}
	return p, nil
}

// oneShot is the noise of a sum that is released once: Laplace for a pure budget, none of no width
// for no privacy, and Gaussian for the others.
func oneShot(budget privacy.Budget) (privacy.Mechanism, error) {
	switch b := budget.(type) {
	case nil, privacy.None:
		return privacy.Laplace{}, nil
	case privacy.Pure:
		if err := b.Validate(); err != nil {
			return nil, err
		}
		return privacy.Laplace{Scale: 1 / b.Epsilon}, nil
	}
	sigma, err := privacy.GaussianSigma(budget)
	if err != nil {
		return nil, err
	}
	return privacy.Gaussian{Sigma: sigma}, nil
}

// SetCells has batches planned for arms whose sums are added up of so many cells, each with noise of its
// own: s is that of the sum, √C times that of one. So a batch has √C times as many rewards. Call it
// before the first Next.
func (p *Split) SetCells(cells int) error {
	s := p.s * math.Sqrt(float64(cells))
	if cells < 1 || !(s*s/p.v <= math.MaxFloat64) {
		return fmt.Errorf("split: cells is %d, must be at least 1, with noise that is not too large", cells)
	}
	p.s = s
	return nil
}

// Mechanism implements Policy.
func (p *Split) Mechanism() privacy.Mechanism { return p.mech }

// Shares are those of the arms that there are after n rounds: the next one is drawn with them, independently
// of everything (play.Joint).
func (p *Split) Shares(n int) []float64 { return slices.Clone(p.at(n).shares) }

// at are the terms of the round after n.
func (p *Split) at(n int) *splitTerms {
	i := len(p.terms) - 1
	for p.terms[i].from > n {
		i--
	}
	return &p.terms[i]
}

// JoinShares are the shares with an arm that joins: it has this share, and the others keep theirs of the rest, so
// that any two of them keep theirs of what either has.
func JoinShares(shares []float64, share float64) []float64 {
	out := make([]float64, 0, len(shares)+1)
	for _, q := range shares {
		out = append(out, float64(q*(1-share)))
	}
	return append(out, share)
}

// JoinAt has an arm more from round n on, where a batch begins that was not asked for yet (play.JointGrower).
//
// # What is kept
//
// Let a verdict compare two arms by what both were given since the later of them joined, at round n. From n on
// a round that either of them has is the one's with the share q_a/(q_a + q_b), which JoinShares never changes,
// whoever joins after them. n was chosen by counts and releases, before the tosses from n on. So given all
// that came before n, the factors of interval.Effect's proof are those of an experiment that begins at n, and
// their product is a supermartingale that begins at 1: its interval is valid at all times from n on, under
// drift too. Two arms that were there before keep the one that they have, with every round of both. What the
// old arm had before n is in no comparison with the new one, since it met other times.
//
// With K arms each of the verdict's tests has its risk over K, as if all had been there, so from one arm that joins
// to the next the verdict is ever wrong with probability risk at most. A test of two old arms had a larger risk
// before: whenever it fails from now on, it has failed by that. So of constant means two tests alone can fail newly,
// those of the new arm, and of one old arm that is better than all other old ones and no better than the new one:
// over the whole experiment the verdict is ever wrong with probability risk(1 + Σ 2/K) at most, summed over the
// arms that joined, K arms being there with each. Privacy is as before: a reward is in one release, and which
// follows from the number of rounds.
func (p *Split) JoinAt(n int, share float64) error {
	last := p.terms[len(p.terms)-1]
	if n < max(last.from, p.round) {
		return fmt.Errorf("split: round is %d, must be %d at least, where the batch that is out ends", n, max(last.from, p.round))
	}
	shares := JoinShares(last.shares, share)
	if least := slices.Min(shares); !(share >= MinShare && share < 1 && least >= MinShare) {
		return fmt.Errorf("split: share is %v, must be from %v to below 1, and leave each other arm %[2]v of all", share, MinShare)
	}
	p.terms = append(p.terms, newSplitTerms(n, shares))
	return nil
}

// JointEnd is after how many rounds of all arms the batch ends that begins after the first n, whatever
// was released.
func (p *Split) JointEnd(n int) int {
	t := p.at(n)
	size := math.Ceil(p.size(t, float64(n-t.from)) - 1e-9) // where the product is whole except for its rounding
	if !(size < Forever/4) || n >= Forever/4 {
		return Forever
	}
	return n + int(size)
}

// size is how many rounds a batch has after n on these terms.
func (p *Split) size(t *splitTerms, n float64) float64 {
	per := float64(t.n * n) // N
	var g float64
	switch {
	case p.effect > 0:
		g = 8 * p.s / p.effect
		if per >= 4*15.7*p.v/float64(p.effect*p.effect) {
			g = max(g, n/(10*t.batchOf))
		}
	case n == 0:
		g = p.s * max(8, p.s/p.v)
	default:
		g = min(per, p.s*max(8, 2*math.Sqrt(per/p.v)))
	}
	return max(t.batchOf*g, t.least, n/100)
}

// Next implements Policy: the next joint batch. It looks at no release.
func (p *Split) Next(privacy.Released) *Batch {
	from, to, t := p.round, p.JointEnd(p.round), p.at(p.round)
	p.round = to
	p.batch.Plays = p.batch.Plays[:0]
	var upTo float64 // the shares of the arms before
	for a, q := range t.shares {
		below := upTo
		if upTo += q; a == len(t.shares)-1 {
			upTo = 1
		}
		rounds := place(upTo, to-t.from) - place(upTo, from-t.from) - place(below, to-t.from) + place(below, from-t.from)
		if to == Forever {
			rounds = int(float64(q * (Forever / 2)))
		}
		p.batch.Plays = append(p.batch.Plays, Play{Arm: a, Rounds: rounds, Release: true})
	}
	return &p.batch
}

// place is how many of the first n rounds are of arms that have a share together: the nearest
// number, so that arms share every n out, each within 1.
func place(share float64, n int) int {
	if share == 1 {
		return n
	}
	return int(math.Round(float64(share * float64(n))))
}
