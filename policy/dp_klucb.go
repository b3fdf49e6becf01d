package policy

import (
	"fmt"
	"math"

	"github.com/sotto-dp/sotto/internal/divergence"
	"github.com/sotto-dp/sotto/privacy"
)

// DPKLUCB is DP-KLUCB of Azize, Wu, Honda, Orabona, Ito and Basu, "Optimal regret of Bernoulli
// bandits under global differential privacy" (arXiv:2505.05613, 2025): KL-UCB for the divergence
// d_ε that privacy leaves. In batches that grow by a ratio α > 1 and forget nothing, it plays the
// arm with the highest
//
//	max{ q ∈ [0,1] : d_ε(μ̃_a, q) ≤ γ log t / N_a },
//
// where μ̃_a is the mean of all the arm's N_a rewards, with a Lap(1/ε) from each of its batches,
// clipped to [0,1] (divergence.DEps); the paper has γ = 1 (SetCaution). For rewards in [0,1] it is ε-DP, each reward being in one
// release. For Bernoulli rewards its regret is at most αγ Σ_a Δ_a log T/d_ε(μ_a, μ*) + o(log T)
// (the paper's upper bound, as its authors' slides state it; DPIMED's proof is one for γ ≥ 1 and any
// rewards in [0,1], where in (iii) arm 1's index is below μ_1 − δ, so that n ≤ t < e^{c_m/γ}), and no
// consistent ε-DP policy has less than the sum without α. It is anytime. At equal indices the arm with fewer samples goes
// first, then the lower.
//
// The paper's integers are not known to us; those of accumulation are ours. NewDPKLUCBJ replaces
// d_ε by the noise-aware J_{m/N} (divergence.DEpsNoisy), with which exp(−log t) bounds the chance
// that an arm's index is below its mean for any fixed t, number N of samples and m of noises, not only
// in the long run; that is ours too. m counts what the releases say (privacy.Released.Noises): one from a server that
// is believed, two from two servers, one for each user who adds their own. So the bound holds for these,
// too, with the ε of the noise that was really added. Of d_ε it is not known: the paper's proof is
// not at hand, and is for one noise a release.
type DPKLUCB struct{ accumulation }

// NewDPKLUCB returns DP-KLUCB for a number of arms ≥ 2, a budget epsilon > 0 (+Inf: no privacy), a
// batch ratio alpha > 1 and an arm's first batch ≥ 1 in rounds; 0 means ⌈16/ε⌉.
func NewDPKLUCB(arms int, epsilon, alpha float64, first int) (*DPKLUCB, error) {
	p, err := newAccumulation(arms, epsilon, alpha, first, warm)
	if err != nil {
		return nil, fmt.Errorf("dp-klucb: %w", err)
	}
	return &DPKLUCB{p}, nil
}

// NewDPKLUCBJ returns DP-KLUCB with the noise-aware index. Its parameters are those of NewDPKLUCB,
// but that a first batch of 0 means ⌈8/ε⌉.
func NewDPKLUCBJ(arms int, epsilon, alpha float64, first int) (*DPKLUCB, error) {
	p, err := newAccumulation(arms, epsilon, alpha, first, warmNoisy)
	if err != nil {
		return nil, fmt.Errorf("dp-klucb-j: %w", err)
	}
	return &DPKLUCB{p}, nil
}

// Next implements Policy.
func (p *DPKLUCB) Next(released privacy.Released) *Batch {
	if !p.learn(released) {
		return p.every()
	}
	level := float64(p.caution * p.logRound())
	best, top := 0, math.Inf(-1)
	for a := range p.arms {
		arm := &p.arms[a]
		index := 1.0 // of an arm whose rewards have not come
		switch {
		case arm.off:
			index = math.Inf(-1)
		case arm.n == 0:
		case p.noisy:
			index = divergence.DEpsNoisyUpper(arm.mean, level/arm.n, p.least, arm.m/arm.n)
		default:
			index = divergence.DEpsUpper(arm.mean, level/arm.n, p.epsilon)
		}
		if index > top || index == top && p.fewer(a, best) {
			best, top = a, index
		}
	}
	return p.grow(best)
}
