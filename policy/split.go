package policy

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/sotto-dp/sotto/privacy"
)

// Split is a private A/B test: each arm has a fixed share q_a of the rounds for ever, and all arms
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
type Split struct {
	mech   privacy.Mechanism
	shares []float64
	effect float64 // Δ, or 0

	s, v       float64
	batchOf, n float64 // c, and what N is of n rounds
	least      float64 // rounds of a batch

	round int
	batch Batch
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
	p := &Split{mech: mech, shares: slices.Clone(shares), effect: effect, v: 0.25}
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
	low := slices.Sorted(slices.Values(shares))
	x, y := 1/low[0], 1/low[1]
	p.batchOf = math.Sqrt((float64(x*x) + float64(y*y)) / 2)
	p.n, p.least = 2/(x+y), 8*x
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

// Shares are those of the arms: an arm is drawn with them, independently of everything
// (play.Joint).
func (p *Split) Shares() []float64 { return slices.Clone(p.shares) }

// JointEnd is after how many rounds of all arms the batch ends that begins after the first n, whatever
// was released.
func (p *Split) JointEnd(n int) int {
	size := math.Ceil(p.size(float64(n)) - 1e-9) // where the product is whole but for its rounding
	if !(size < Forever/4) || n >= Forever/4 {
		return Forever
	}
	return n + int(size)
}

// size is how many rounds a batch has after n.
func (p *Split) size(n float64) float64 {
	per := float64(p.n * n) // N
	var g float64
	switch {
	case p.effect > 0:
		g = 8 * p.s / p.effect
		if per >= 4*15.7*p.v/float64(p.effect*p.effect) {
			g = max(g, n/(10*p.batchOf))
		}
	case n == 0:
		g = p.s * max(8, p.s/p.v)
	default:
		g = min(per, p.s*max(8, 2*math.Sqrt(per/p.v)))
	}
	return max(p.batchOf*g, p.least, n/100)
}

// Next implements Policy: the next joint batch. It looks at no release.
func (p *Split) Next(privacy.Released) *Batch {
	from, to := p.round, p.JointEnd(p.round)
	p.round = to
	p.batch.Plays = p.batch.Plays[:0]
	var upTo float64 // the shares of the arms before
	for a, q := range p.shares {
		below := upTo
		if upTo += q; a == len(p.shares)-1 {
			upTo = 1
		}
		rounds := place(upTo, to) - place(upTo, from) - place(below, to) + place(below, from)
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
