package release

import (
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
)

// fastPlan is a mechanism with floating-point noise from stream s: for simulations only.
func fastPlan(m privacy.Mechanism, s *noise.Fast) (recipe[float64], error) {
	d, f, most, err := read(m)
	if err != nil {
		return recipe[float64]{}, err
	}
	p := recipe[float64]{family: f, charge: m, tails: tailsOf(m), most: most, fresh: d.Float}
	switch d.Law {
	case privacy.NoiseLaplace:
		p.noise = fastLaplace{s, d.Scale}
	case privacy.NoiseGaussian:
		p.noise = fastGaussian{s, d.Scale}
	}
	if m, ok := m.(privacy.Sparse); ok {
		p.questions = &questions[float64]{threshold: fastLaplace{s, m.Threshold},
			query: fastLaplace{s, m.Query}, statistic: m.Statistic}
	}
	return p, nil
}

type fastLaplace struct {
	s     *noise.Fast
	scale float64
}

func (l fastLaplace) Draw(w int) (float64, error) {
	return l.s.Laplace(float64(l.scale * float64(w))), nil
}

type fastGaussian struct {
	s     *noise.Fast
	sigma float64
}

func (g fastGaussian) Draw(int) (float64, error) { return float64(g.sigma * g.s.Normal()), nil }
