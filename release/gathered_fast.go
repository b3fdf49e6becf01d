package release

import (
	"errors"
	"fmt"
	"math"

	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
)

// SimulatedGathered returns a curator for simulated rewards, which it sees, whose releases are like
// those of RealGathered if every decision is answered: the same law of the noise except for the grid,
// the same tails, the same charges. The noise is from the run's stream s, and protects nobody.
func SimulatedGathered(cfg Config, g Gathering, s *noise.Fast) (Curator, error) {
	switch {
	case s == nil:
		return nil, errors.New("curator: noise stream is missing, must be a run's stream")
	case cfg.Trust != nil || cfg.Unclipped:
		return nil, errors.New("curator: trust and unclipped are given, must be missing where " +
			"sums are gathered")
	}
	c := &simulatedGathered{own: gatheredNoise{s: s}}
	base, err := newCurator(cfg, func(stated privacy.Mechanism) (recipe[float64], error) {
		p, err := newGatheredPlan(stated, g)
		if err != nil {
			return recipe[float64]{}, err
		}
		charge, tail, err := p.form(1)
		c.own.plan = p
		return recipe[float64]{family: once, noise: &c.own, charge: charge, tails: []privacy.Tail{tail},
			most: p.most}, err
	})
	if err != nil {
		return nil, err
	}
	base.grid, base.step = 1, 1
	c.curator = base
	return c, nil
}

type simulatedGathered struct {
	*curator[float64]
	own gatheredNoise
}

// Release implements Curator.
func (c *simulatedGathered) Release(arms []int) (privacy.Released, error) {
	if err := c.check(arms); err != nil {
		return privacy.Released{}, err
	}
	n := 0
	c.own.answers = c.own.answers[:0]
	for _, a := range arms {
		n = max(n, c.slots[a].n)
		c.own.answers = append(c.own.answers, c.slots[a].n)
	}
	var err error
	if c.charge, c.tails[0], err = c.own.plan.form(n); err != nil {
		return privacy.Released{}, err
	}
	return c.releaseMany(arms)
}

// gatheredNoise draws the noises of sums of so many answers each, one after the other.
type gatheredNoise struct {
	plan    gatheredPlan
	s       *noise.Fast
	answers []int
}

func (g *gatheredNoise) Draw(int) (float64, error) {
	if len(g.answers) == 0 {
		return 0, fmt.Errorf("curator: noise of no sum")
	}
	n := float64(g.answers[0])
	g.answers = g.answers[1:]
	noises := 2.0
	switch g.plan.Trust {
	case privacy.TrustLocal:
		noises = n
	case privacy.TrustSecAgg:
		noises = n / float64(g.plan.Users)
	}
	x := float64(g.plan.whole.Num) / float64(g.plan.whole.Den)
	if g.plan.whole.Name == privacy.NoiseGaussian {
		return math.Sqrt(noises*x) * ExactStep * g.s.Normal(), nil
	}
	z := g.s.NegativeBinomial(noises, x)
	return float64(z-g.s.NegativeBinomial(noises, x)) * ExactStep, nil
}
