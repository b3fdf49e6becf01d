package policy

import (
	"fmt"
	"math"

	"github.com/sotto-dp/sotto/internal/base/divergence"
	"github.com/sotto-dp/sotto/privacy"
)

// DPIMED is DP-IMED of Azize, Wu, Honda, Orabona, Ito and Basu (arXiv:2505.05613, 2025): the
// indexed minimum empirical divergence of IMED, for the divergence d_ε that privacy leaves. It
// plays the arm with the lowest
//
//	N_a d_ε(μ̃_a, μ̃*) + log N_a,   μ̃* the highest mean,
//
// in the batches, with the means and with the guarantees of DPKLUCB: ε-DP for rewards in [0,1], and
// for Bernoulli rewards a regret of at most α Σ_a Δ_a log T/d_ε(μ_a, μ*) + o(log T). It is anytime.
// At equal indices the arm with fewer samples goes first, then the lower.
//
// With a first batch of 1 the means of its regret have heavier tails than those of DP-KLUCB
// (see accumulation).
type DPIMED struct{ accumulation }

// NewDPIMED returns DP-IMED; its parameters are those of NewDPKLUCB.
func NewDPIMED(arms int, epsilon, alpha float64, first int) (*DPIMED, error) {
	p, err := newAccumulation(arms, epsilon, alpha, first, false)
	if err != nil {
		return nil, fmt.Errorf("dp-imed: %w", err)
	}
	return &DPIMED{p}, nil
}

// NewDPIMEDJ returns DP-IMED with the noise-aware divergence, for any number of noises in a release;
// its parameters are those of NewDPKLUCBJ.
func NewDPIMEDJ(arms int, epsilon, alpha float64, first int) (*DPIMED, error) {
	p, err := newAccumulation(arms, epsilon, alpha, first, true)
	if err != nil {
		return nil, fmt.Errorf("dp-imed-j: %w", err)
	}
	return &DPIMED{p}, nil
}

// Next implements Policy.
func (p *DPIMED) Next(released privacy.Released) *Batch {
	if !p.learn(released) {
		return p.every()
	}
	top := 0.0
	for a := range p.arms {
		if !p.arms[a].off {
			top = max(top, p.arms[a].mean)
		}
	}
	best, least := 0, math.Inf(1)
	for a := range p.arms {
		arm := &p.arms[a]
		index := math.Inf(-1) // of an arm whose rewards have not come
		switch {
		case arm.off:
			index = math.Inf(1)
		case arm.n == 0:
		case p.noisy:
			index = float64(arm.n*divergence.DEpsNoisy(arm.mean, top, p.least, arm.m/arm.n)) + math.Log(arm.n)
		default:
			index = float64(arm.n*divergence.DEps(arm.mean, top, p.epsilon)) + math.Log(arm.n)
		}
		if index < least || index == least && p.fewer(a, best) {
			best, least = a, index
		}
	}
	return p.grow(best)
}
