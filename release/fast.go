package release

import (
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
)

// fastPlan is a mechanism with floating-point noise from stream s: for simulations only.
func fastPlan(m privacy.Mechanism, s *noise.Fast) (plan[float64], error) {
	f, scale, most, err := read(m)
	if err != nil {
		return plan[float64]{}, err
	}
	p := plan[float64]{family: f, charge: m, tails: tailsOf(m), most: most}
	switch m := m.(type) {
	case privacy.Exact:
	case privacy.Sparse:
		p.noise = fastLaplace{s, scale}
		p.questions = &questions[float64]{threshold: fastLaplace{s, m.Threshold},
			query: fastLaplace{s, m.Query}, statistic: m.Statistic}
	case privacy.Gaussian:
		p.noise = fastGaussian{s, scale}
	case privacy.SquareRoot:
		p.noise, p.fresh = fastGaussian{s, scale}, newSquareRoot
	case privacy.BLT:
		p.noise, p.fresh = fastGaussian{s, scale}, func() stream[float64] { return newBLT(m) }
	case privacy.KAry:
		p.noise, p.fresh = fastLaplace{s, scale}, func() stream[float64] { return newKAry[float64](m) }
	default:
		p.noise = fastLaplace{s, scale}
	}
	return p, nil
}

type fastLaplace struct {
	s     *noise.Fast
	scale float64
}

func (l fastLaplace) draw(w int) (float64, error) {
	return l.s.Laplace(float64(l.scale * float64(w))), nil
}

type fastGaussian struct {
	s     *noise.Fast
	sigma float64
}

func (g fastGaussian) draw(int) (float64, error) { return float64(g.sigma * g.s.Normal()), nil }
