package identify

import (
	"fmt"

	"github.com/sotto-dp/sotto/privacy"
)

// AdaPTT is AdaP-TT, [Azize 2024, §5.4.2]: Algorithm 10 (see TopTwo) with the Gaussian cost (5.9)
// for challenger and stopping, the threshold (5.11), and phases of an arm that end at 1, 2, 4, 8, …
// of its plays and whose means forget what was before.
//
// It is ε-DP for rewards in [0,1], δ-correct if one arm alone is best [Azize 2024, Lemma 5.18], and
// for distinct means
//
//	limsup E τ/log(1/δ) ≤ 4T*_{KL,β}(1 + √(1 + Δ_max²/(2σ⁴ε²))),   σ = 1/2 [Azize 2024, Theorem 5.20].
//
// By default the leader's bonus has log n where [Azize 2024] prints k_a, and private means are
// clipped: as printed a run may never stop.
type AdaPTT struct{ TopTwo }

// NewAdaPTT returns AdaP-TT for a number of arms ≥ 2, a budget (privacy.Pure, or privacy.None for
// no noise) and a risk δ in (0,1). Options: WithBeta, WithSigma, WithExponent, WithPrintedBonus,
// WithUnclippedMeans, WithThreshold and WithCoin.
func NewAdaPTT(arms int, budget privacy.Budget, risk float64, options ...TopTwoOption) (*AdaPTT, error) {
	fail := func(err error) (*AdaPTT, error) { return nil, fmt.Errorf("adap-tt: %w", err) }
	o, err := applyTopTwo(options, adaptive()...)
	if err != nil {
		return fail(err)
	}
	threshold, err := NewAdaPTTThreshold(arms, risk, o.s, o.sigma)
	if err != nil {
		return fail(err)
	}
	p, err := newTopTwo(arms, budget, o.adaptiveParts(GaussianCost{o.sigma}, threshold))
	if err != nil {
		return fail(err)
	}
	return &AdaPTT{p}, nil
}

// adaptive are the options of AdaP-TT and AdaP-TT*.
func adaptive() []string {
	return []string{"beta", "sigma", "s", "printed bonus", "unclipped means", "threshold", "coin"}
}

// adaptiveParts are those that AdaP-TT and AdaP-TT* share.
func (o *topTwoOptions) adaptiveParts(cost Cost, threshold Threshold) Parts {
	parts := Parts{
		Challenger: cost, Beta: o.beta, Coin: o.coin,
		Cost: cost, Threshold: threshold,
		First: 1, Growth: 2, Forget: true, LeastPhase: 2,
		Unclipped: o.literal,
	}
	if o.printed {
		parts.Leader = PrintedUCBLeader
	}
	if o.threshold != nil {
		parts.Threshold = o.threshold
	}
	return parts
}
