package identify

import (
	"fmt"

	"github.com/sotto-dp/sotto/privacy"
)

// AdaPTTStar is AdaP-TT*, [Azize 2024, §5.4.3]: AdaP-TT with the cost (5.12), whose shape is that
// of the private lower bound, and the threshold (5.14).
//
// It is ε-DP for rewards in [0,1], δ-correct if one arm alone is best [Azize 2024, Lemma 5.21], and
// for distinct means limsup E τ/log(1/δ) is at most
//
//	4T*_{KL,β} g₁(Δ_max/(σ²ε)) if Δ_max < 3ε,   and otherwise   12T*_{ε,β} g₂(3ε²T*_{ε,β} max{β, 1−β}/2)/σ²,   σ = 1/2 [Azize 2024, Theorem 5.23].
//
// As for AdaP-TT, the leader's bonus has log n by default, and private means are clipped.
type AdaPTTStar struct{ TopTwo }

// NewAdaPTTStar returns AdaP-TT* for a number of arms ≥ 2, a budget (privacy.Pure, or privacy.None
// for no noise) and a risk δ in (0,1). Its options are those of NewAdaPTT.
func NewAdaPTTStar(arms int, budget privacy.Budget, risk float64,
	options ...TopTwoOption) (*AdaPTTStar, error) {
	fail := func(err error) (*AdaPTTStar, error) { return nil, fmt.Errorf("adap-tt-star: %w", err) }
	o, err := applyTopTwo(options, adaptive()...)
	if err != nil {
		return fail(err)
	}
	epsilon, err := epsilonOf(budget)
	if err != nil {
		return fail(err)
	}
	threshold, err := NewAdaPTTStarThreshold(arms, risk, o.s, o.sigma, epsilon)
	if err != nil {
		return fail(err)
	}
	p, err := newTopTwo(arms, budget, o.adaptiveParts(PrivateGaussianCost{o.sigma, epsilon}, threshold))
	if err != nil {
		return fail(err)
	}
	return &AdaPTTStar{p}, nil
}
