package policy

import (
	"fmt"
	"math"

	"github.com/sotto-dp/sotto/privacy"
)

// AdaCUCB is the adaptively episodic UCB under zero-concentrated DP of [Azize and Basu 2024,
// Algorithm 4] ([Azize 2024, §5.3.1]): Algorithm 7 of [Azize 2024] with index (5.4),
//
//	μ̃_a + √((1/(2h) + 1/(ρh²)) β log t_ℓ),   h the size of the arm's last episode,
//
// where μ̃_a is the mean of the last episode plus N(0, 1/(2ρh²)). For rewards in [0,1] it is ρ-zCDP
// in the sense of Interactive DP ([Azize 2024, Theorem 5.5], [Azize and Basu 2024, Theorem 12]),
// and for β > 3 its regret is at most Σ_a (8β log T/Δ_a + 8√(β log T/ρ) + 2β/(β−3)) [Azize 2024,
// Theorem 5.6]. Any other calibration of the Gaussian mechanism serves as well [Azize 2024, Remark
// 5.7]: the index uses the noise's own σ, 1/ρ being 2σ². So of two servers' noises it is the policy
// at ρ/2, and of those of h users √(1/(2h) + 2σ²/h) is what is under the root. It is anytime.
type AdaCUCB struct {
	episodes
	beta float64
}

// NewAdaCUCB returns AdaC-UCB for a number of arms ≥ 2, a budget (zCDP; (ε,δ)-DP or (α,ε)-RDP
// through their calibrations, privacy.GaussianSigma; privacy.None for the same algorithm without
// noise) and the optimism exponent beta > 0.
func NewAdaCUCB(arms int, budget privacy.Budget, beta float64) (*AdaCUCB, error) {
	if err := checkEpisodic(arms, 1, "beta", beta); err != nil {
		return nil, fmt.Errorf("adac-ucb: %w", err)
	}
	sigma, err := privacy.GaussianSigma(budget)
	if err != nil {
		return nil, fmt.Errorf("adac-ucb: %w", err)
	}
	return &AdaCUCB{episodes: newEpisodes(arms, privacy.Gaussian{Sigma: sigma}), beta: beta}, nil
}

// Next implements Policy.
func (p *AdaCUCB) Next(released privacy.Released) *Batch {
	if !p.learn(released) {
		return p.every()
	}
	x := float64(p.beta * p.logRound())
	best, top := 0, math.Inf(-1)
	for a := range p.arms {
		e := &p.arms[a]
		if index := e.mean + p.bonus(e, x); index > top {
			best, top = a, index
		}
	}
	return p.double(best)
}

// bonus is B_a of (5.4) at x = β log t_ℓ, and what a tail has beyond a normal one: variances of
// rewards and noise add up under the root.
func (p *AdaCUCB) bonus(e *episode, x float64) float64 {
	return math.Sqrt((1/(2*e.h)+2*float64(e.sigma*e.sigma))*x) + float64(e.width*(x+e.extra))
}
