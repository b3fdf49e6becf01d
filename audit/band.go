package audit

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// A Band is what games show of a whole curve of ε over δ: all of it together, with Mu, except with
// probability Gamma. See Scores.Band.
type Band struct {
	Gamma float64
	lower Region
	cells []Corner // lower bounds of both errors of any test between two thresholds
	mu    float64  // the upper end
}

// Band bounds both errors from both sides, with γ/2 for each side: from above at the thresholds of
// RegionByRank, from below at ranks that are nearer to one another.
//
// From above they refute as a Region does, at all δ together. From below they bound what this score
// can show: a test "above t" with t between two neighbouring thresholds a > t ≥ b says "in"
// wherever the score is at least a, and "out" wherever it is at most b, so that its errors are no
// less than P(score ≥ a | out) and P(score ≤ b | in); ranks bound these from below, also where
// scores tie, as they bound those of RegionByRank from above. Beyond the last threshold one error
// may be 0. Tests that toss coins are mixtures, and show no more.
func (s Scores) Band(gamma float64) (Band, error) {
	if err := checkGamma(gamma); err != nil {
		return Band{}, err
	}
	if err := s.Validate(); err != nil {
		return Band{}, err
	}
	const near = 1.1 // the ratio of ranks
	n, m := len(s.Out), len(s.In)
	tail := gamma / float64(4*(len(ranks(n, near))+len(ranks(m, near))))
	least := func(k, n int) float64 { return 1 - upper(n-k, n, tail) }
	b := Band{gamma, s.byRank(gamma/2, 2), nil, math.Inf(1)}
	var at []Corner
	s.candidates(near, func(t float64, k, fp, fn int, ofOut bool) {
		var c Corner // a rank is one of its own side: the other may be shorter
		if ofOut {
			c = Corner{t, least(k+1, n), least(fn, m)}
		} else {
			c = Corner{t, least(fp, n), least(k+1, m)}
			if !math.IsInf(t, -1) {
				c.Threshold = math.Nextafter(t, math.Inf(1)) // the score that has the rank
			}
		}
		at = append(at, c)
		if c.TypeI > 0 && c.TypeII > 0 {
			b.mu = min(b.mu, max(0, -distuv.UnitNormal.Quantile(c.TypeI)-
				distuv.UnitNormal.Quantile(c.TypeII)))
		}
	})
	slices.SortFunc(at, func(x, y Corner) int { return cmp.Compare(y.Threshold, x.Threshold) })
	for i := range at {
		if i > 0 {
			at[i].TypeI = max(at[i].TypeI, at[i-1].TypeI) // of a larger set
		}
	}
	for i := len(at) - 2; i >= 0; i-- {
		at[i].TypeII = max(at[i].TypeII, at[i+1].TypeII)
	}
	alpha := 0.0
	for _, c := range at {
		b.cells = append(b.cells, Corner{c.Threshold, alpha, c.TypeII})
		alpha = c.TypeI
	}
	b.cells = append(b.cells, Corner{math.Inf(-1), alpha, 0})
	return b, nil
}

// Epsilon is what is known at δ in [0, 1). The mechanism is not (ε′,δ)-DP for any ε′ below low. No
// threshold of this score shows more than high at δ, however many games are played: it is +Inf
// where δ is below a few games' share, and at δ = 0. It is no upper bound on the ε of the
// mechanism, unless the score is its likelihood ratio.
func (b Band) Epsilon(delta float64) (low, high float64, err error) {
	bound, err := b.lower.Epsilon(delta)
	if err != nil {
		return 0, 0, err
	}
	for _, c := range b.cells {
		high = max(high, rawEpsilon(c.TypeI, c.TypeII, delta))
	}
	return bound.Epsilon, high, nil
}

// Mu bounds μ of Gaussian DP: the mechanism is not μ′-Gaussian DP for any μ′ below low. If the
// tests of this score have the errors of a Gaussian pair, μ is at most high; where low is above
// high, no Gaussian pair has them.
func (b Band) Mu() (low, high float64) { return b.lower.Mu(), b.mu }
