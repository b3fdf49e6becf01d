package release

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
)

// The fixed-point grid of real rewards: the declared range is 2^20 steps.
const gridSteps = 1 << 20

// A slot of real rewards holds at most 2^42, so that its sum is at most 2^62 steps whatever the
// rewards are: the limit is on the count, which is public, and says nothing about them.
const maxRewards = min(1<<42, math.MaxInt/4)

// One draw is at most 2^55 steps and at most 127 are added up (a k-ary tree's; a hybrid's are 84),
// so that noise is below 2^62 and nothing overflows. A draw that is larger, with probability below
// e^{-500} at the largest scale, is an error.
const maxDraw = 1 << 55

const maxNodes = 127

// Scales of exact noise are multiples of a 64th of a step, from 16 steps to 2^40, which is
// 2^20 of the range.
const (
	stepParts = 64
	minScale  = 16
	maxScale  = 1 << 40
)

// Real returns a curator for real rewards: those that belong to people.
//
// A reward x is clipped to the declared range and becomes the integer round(2^20·(x−Lo)/(Hi−Lo)), so
// that replacing it changes its slot's sum by at most 2^20. Noise is an integer too: discrete Laplace
// or discrete Gaussian (Canonne, Kamath and Steinke 2020), drawn exactly, from a ChaCha8 generator
// keyed by the operating system. The released value is their sum divided by 2^20, as a double, after
// the noise. No floating-point number lies between a reward's integer and the noisy sum.
//
// The scale in steps is rounded up, by 1/64 to 1/32 of a step and to at least 16 steps; a release
// never costs more than its mechanism promised, and the ledger is charged for the scale that was
// used. Discrete laws do not cost quite the same as continuous ones, and the ledger knows the
// continuous ones. So it is charged for a continuous law whose scale is a 64th of a step smaller
// than the discrete one's:
//
//   - Lap_Z(t) and its shift by s steps are a post-processing of a continuous Laplace pair with ε'
//     = s/t + 2 log cosh(1/2t) ≤ s/t+1/(4t²): with β = e^{-1/t} the discrete trade-off curve has
//     its knots at (β^k/(1+β), β^{s−k+1}/(1+β)) for 1 ≤ k ≤ s, and they lie above the continuous
//     curve, where αα' = e^{-ε'}/4, if 4β/(1+β)² ≥ e^{s/t−ε'}. A 64th of a step more is s/(64t²) at
//     least, enough for s = 2^20 (for any s ≥ 16), and smaller shifts are harder to tell apart. So
//     the charge holds in every currency.
//   - N_Z(0,σ²) is s²/(2σ²)-zCDP exactly (CKS Theorem 4). Its trade-off curve is that of μ-GDP with
//     μ = (s/σ)(1 + 1/(12σ²)) at most, which is checked numerically and not proved; the ledger uses
//     it when asked for (ε,δ).
//
// A release's Tail is that of the discrete law: Log = log(2/(1+e^{-1/t})) for one Laplace draw
// (P(|X| ≥ y) = 2β^y/(1+β)). It is about noise only; rounding to the grid moves a sum of n rewards
// by at most n/2^21, and rewards that are multiples of 2^-20 of the range not at all.
//
// Correlated normal noise (sqrt, blt) is refused: rounding each release's noise to the grid would
// need a proof that the ledger does not have.
//
// AddSum takes one reward at most: sums cannot be clipped. Unclipped is an error. A slot holds 2^42
// rewards. The noise of Laplace and Gaussian is drawn ahead, beside whoever goes on, so that the time of
// a release does not tell of it (ahead.go). The time of other mechanisms' draws is not hidden: see
// package noise.
func Real(cfg Config) (Curator, error) {
	src, err := noise.Secure()
	if err != nil {
		return nil, fmt.Errorf("curator: %w", err)
	}
	c, err := exact(cfg, src)
	if one, ok := c.(*curator[int64]); ok {
		drawAhead(one)
	}
	return c, err
}

// exact is Real on given bits, drawn when they are needed. Whoever knows them knows the noise: it is for
// Real and for tests.
func exact(cfg Config, src rand.Source) (Curator, error) {
	if cfg.Trust != nil {
		return newDistributed(cfg, nil, src)
	}
	c, err := newExact(cfg, src)
	if err != nil {
		return nil, err // no typed nil
	}
	return c, nil
}

func newExact(cfg Config, src rand.Source) (*curator[int64], error) {
	if cfg.Unclipped {
		return nil, errors.New("curator: unclipped is true, must be false for real rewards: " +
			"their sensitivity would be unlimited")
	}
	c, err := newCurator(cfg, func(m privacy.Mechanism) (recipe[int64], error) { return exactPlan(m, src) })
	if err != nil {
		return nil, err
	}
	c.grid, c.half, c.step = gridSteps, 0.5, 1.0/gridSteps
	c.atOnce = 1
	return c, nil
}

// exactPlan is a mechanism with discrete noise on the grid.
func exactPlan(m privacy.Mechanism, src rand.Source) (recipe[int64], error) {
	d, f, most, err := read(m)
	switch {
	case err != nil:
		return recipe[int64]{}, err
	case d.Most > maxNodes:
		return recipe[int64]{}, fmt.Errorf("mechanism %v: a sum has up to %d nodes, must be at "+
			"most %d for exact noise: take a smaller base", m, d.Most, maxNodes)
	case d.Float != nil && d.Whole == nil:
		return recipe[int64]{}, fmt.Errorf("mechanism %s is for simulated rewards only: its noise "+
			"has real coefficients, which integers cannot have; "+
			"take tree, hybrid or kary for real rewards", m.Kind())
	}
	p := recipe[int64]{family: f, charge: m, tails: []privacy.Tail{{}}, most: min(most, maxRewards),
		fresh: d.Whole}
	if m, ok := m.(privacy.Sparse); ok {
		return exactSparse(m, p, src)
	}
	if d.Scale == 0 { // costs ∞
		p.noise, p.tails = silent{}, tailsOf(m)
		return p, nil
	}
	num, err := parts(m.Kind(), d.Scale)
	if err != nil {
		return recipe[int64]{}, err
	}
	// Powers of two: these divisions are exact.
	t := float64(num) / stepParts
	used, charged := t/gridSteps, float64(num-1)/stepParts/gridSteps
	var ok bool
	if p.charge, ok = privacy.WithScale(m, charged); !ok {
		return recipe[int64]{}, fmt.Errorf("mechanism %v has no scale to change", m)
	}
	drawn, _ := privacy.WithScale(m, used)
	p.tails = tailsOf(drawn)
	if d.Law == privacy.NoiseGaussian {
		// E e^{λX} = e^{λ²σ²/2}·Σ e^{-(x−λσ²)²/2σ²}/Σ e^{-x²/2σ²}, and such a sum over all integers
		// x is largest when it is centred on one: the tail is that of N(0,σ²).
		law, err := noise.NewDiscreteGaussian(num, stepParts)
		p.noise = exactGaussian{src, law}
		return p, err
	}
	heaviest := 1
	if d.Heaviest != nil {
		heaviest = d.Heaviest(p.most)
	}
	if f == once {
		p.tails[0].Log = math.Log(2 / (1 + math.Exp(-1/t)))
	}
	laws := make([]noise.DiscreteLaplace, heaviest)
	for i := range laws {
		if laws[i], err = noise.NewDiscreteLaplace(num*uint64(i+1), stepParts); err != nil {
			return recipe[int64]{}, err
		}
	}
	p.noise = exactLaplace{src, laws}
	return p, nil
}

// parts is the scale of a mechanism on the grid, in 64ths of a step: at least one more than
// what was promised.
func parts(kind string, scale float64) (uint64, error) {
	// exact, except for scales that are rounded up to 16 steps anyway
	steps := float64(scale * gridSteps)
	if steps > maxScale {
		return 0, fmt.Errorf("scale of the %s mechanism is %v, must be at most %d for exact noise",
			kind, scale, maxScale/gridSteps)
	}
	return uint64(math.Ceil(max(steps, minScale)*stepParts)) + 1, nil
}

// exactSparse is the sparse vector technique with discrete noise on the grid. The statistics are
// whole steps and move by at most 2^20, so that the proof of [Sajed 2019, Theorem 3.2.1] holds with
// sums for integrals, and each noise loses 2^20 over its scale in steps.
func exactSparse(m privacy.Sparse, p recipe[int64], src rand.Source) (recipe[int64], error) {
	q := &questions[int64]{statistic: m.Statistic}
	charge := privacy.Sparse{Questions: privacy.Questions{Statistic: m.Statistic}}
	for _, part := range []struct {
		scale  float64
		noise  *sampler[int64]
		charge *float64
	}{{m.Threshold, &q.threshold, &charge.Threshold}, {m.Query, &q.query, &charge.Query},
		{m.Scale, &p.noise, &charge.Scale}} {
		if part.scale == 0 { // costs ∞
			*part.noise = silent{}
			continue
		}
		num, err := parts(m.Kind(), part.scale)
		if err != nil {
			return recipe[int64]{}, err
		}
		law, err := noise.NewDiscreteLaplace(num, stepParts)
		if err != nil {
			return recipe[int64]{}, err
		}
		*part.noise = exactLaplace{src, []noise.DiscreteLaplace{law}}
		*part.charge = float64(num-1) / stepParts / gridSteps
	}
	if m.Scale > 0 {
		p.tails[0] = discreteTail(charge.Scale)
	}
	p.charge, p.questions = charge, q
	return p, nil
}

// discreteTail is the tail of discrete Laplace noise that is charged for as Lap(charged).
func discreteTail(charged float64) privacy.Tail {
	t := charged*gridSteps + 1.0/stepParts
	return privacy.Tail{H: t / gridSteps, Log: math.Log(2 / (1 + math.Exp(-1/t)))}
}

// ExactTail is the tail of the noise that Real adds for a Lap(scale): what a width proved for
// continuous noise has to allow for. It is that of no noise for scale 0.
func ExactTail(scale float64) (privacy.Tail, error) {
	m := privacy.Laplace{Scale: scale}
	if err := m.Validate(); err != nil || scale == 0 {
		return privacy.Tail{}, err
	}
	num, err := parts(m.Kind(), scale)
	if err != nil {
		return privacy.Tail{}, err
	}
	return discreteTail(float64(num-1) / stepParts / gridSteps), nil
}

// ExactStep is the step of Real's fixed-point rewards, as a share of the declared range: rounding
// moves a reward by at most half of it.
const ExactStep = 1.0 / gridSteps

type exactLaplace struct {
	src  rand.Source
	laws []noise.DiscreteLaplace // with 1, 2, … times the scale
}

func (l exactLaplace) Draw(w int) (int64, error) { return inRange(l.laws[w-1].Draw(l.src)) }

type exactGaussian struct {
	src rand.Source
	law noise.DiscreteGaussian
}

func (g exactGaussian) Draw(int) (int64, error) { return inRange(g.law.Draw(g.src)) }

func inRange(x int64, err error) (int64, error) {
	if err == nil && (x > maxDraw || x < -maxDraw) {
		err = noise.ErrOverflow
	}
	return x, err
}

// silent is scale 0.
type silent struct{}

func (silent) Draw(int) (int64, error) { return 0, nil }
