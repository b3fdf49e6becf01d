package bandit

import (
	"fmt"
	"math"
	"slices"
)

// ClippedMean is the mean of a law whose rewards are clipped to [lo,hi]: what a curator with this
// declared range can learn. It is the law's own mean if the range holds its support. An error says
// that it is not known in closed form.
func ClippedMean(l Law, lo, hi float64) (float64, error) {
	if err := checkInterval("clipped mean", lo, hi); err != nil {
		return 0, err
	}
	clip := func(x float64) float64 { return min(max(x, lo), hi) }
	a, b := l.Support()
	switch {
	case a >= lo && b <= hi:
		return l.Mean(), nil
	case a >= hi:
		return hi, nil
	case b <= lo:
		return lo, nil
	}
	finiteMean := func(f *finite) float64 {
		sum := 0.0
		for _, c := range f.cells {
			sum += float64(c.cut*clip(c.low)) + float64((1-c.cut)*clip(c.high))
		}
		return sum / float64(len(f.cells))
	}
	switch l := l.(type) {
	case Bernoulli:
		return float64(l.Mean()*clip(1)) + float64((1-l.Mean())*clip(0)), nil
	case Gaussian:
		c, err := NewClippedGaussian(l.mean, l.sd, lo, hi)
		if err != nil {
			return 0, err
		}
		return c.Mean(), nil
	case ClippedGaussian:
		c, err := NewClippedGaussian(l.mean, l.sd, max(lo, l.lo), min(hi, l.hi))
		if err != nil {
			return 0, err
		}
		return c.Mean(), nil
	case Uniform:
		below, above := max(lo-a, 0), max(b-hi, 0)
		inside := b - a - below - above
		middle := (max(a, lo) + min(b, hi)) / 2
		return float64(below/(b-a)*lo) + float64(above/(b-a)*hi) + float64(inside/(b-a)*middle), nil
	case *Table:
		return finiteMean(&l.finite), nil
	case *Empirical:
		return finiteMean(&l.finite), nil
	}
	return 0, fmt.Errorf("the mean of %s clipped to [%v, %v] is not known: take a range that "+
		"holds [%v, %v]", l, lo, hi, a, b)
}

// ClippingTurns says whether clipping rewards to [lo,hi] changes which arm is best at some time: an
// arm with the largest clipped mean does not have the largest mean. It is true, too, where a clipped
// mean is not known in closed form.
func (in Instance) ClippingTurns(lo, hi float64) bool {
	phases, _ := in.Phases()
	return slices.ContainsFunc(phases, func(p Instance) bool { return p.clippingTurns(lo, hi) })
}

func (in Instance) clippingTurns(lo, hi float64) bool {
	gaps := in.Gaps()
	top, turned := math.Inf(-1), false
	for a, law := range in.Arms {
		m, err := ClippedMean(law, lo, hi)
		switch {
		case err != nil:
			return true
		case m > top:
			top, turned = m, gaps[a] > 0
		case m == top:
			turned = turned || gaps[a] > 0
		}
	}
	return turned
}
