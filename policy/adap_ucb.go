package policy

import (
	"fmt"
	"math"

	"github.com/sotto-dp/sotto/privacy"
)

// AdaPUCB is the adaptively episodic, private UCB of [Azize 2024, §5.2]: Algorithm 7
// with index (5.1),
//
//	μ̃_a + √(α log t_ℓ / (2h)) + α log t_ℓ / (εh),   h the size of the arm's last episode,
//
// where μ̃_a is the mean of the last episode plus Lap(1/(εh)). The last term is the release's own
// tail at α log t_ℓ, whatever the noise. For rewards in [0,1] it is ε-DP in the sense of View,
// Table and Interactive DP [Azize 2024, Theorems 5.2, 5.3 and Appendix C.1.2], and for α > 3 its
// regret is at most Σ_a ((2α log T/Δ_a)(1 + √(1 + 4Δ_a/ε))² + 3α/(α−3)) [Azize 2024, Theorem
// 5.3]. It is anytime.
//
// With other noise, which exceeds ν(x) on a side of a sum with probability e^{−x} at most, the same
// proof has ν(x) for x/ε. An index is then below its mean with probability 2t^{−α}, for (C.9)'s
// 3/2, and as 4/(α−3) + 1 + 2T^{1−α} is at most 3α/(α−3), so is the last term. An arm leads by its
// index, if all bounds hold, only while Δ ≤ 2√(x/2h) + 2ν(x)/h, x = α log T, which is h ≤ (x/2Δ²)(1
// + √(1 + 4Δν(x)/x))²: the first term is at most (2x/Δ_a)(1 + √(1 + 4Δ_aν(x)/x))². Two servers'
// Laplace noises have ν(x) ≤ 1.05(x + 1.5)/ε (release.Gathered). The noises of h users have ν(x) =
// (2√(hx) + x)/ε: then h ≤ (x/2Δ²)(1 + 2√2/ε)²(1 + √(1 + Δε/2))², and the regret is O(Σ log
// T/(ε²Δ_a)) for ε ≤ 1.
type AdaPUCB struct {
	episodes
	alpha float64
}

// NewAdaPUCB returns AdaP-UCB for a number of arms ≥ 2, a budget epsilon > 0 (+Inf: no privacy, the
// same algorithm without noise) and the exploration parameter alpha > 0 (the printed β of (5.1)).
func NewAdaPUCB(arms int, epsilon, alpha float64) (*AdaPUCB, error) {
	if err := checkEpisodic(arms, epsilon, "alpha", alpha); err != nil {
		return nil, fmt.Errorf("adap-ucb: %w", err)
	}
	return &AdaPUCB{episodes: newEpisodes(arms, privacy.Laplace{Scale: 1 / epsilon}), alpha: alpha}, nil
}

// Next implements Policy.
func (p *AdaPUCB) Next(released privacy.Released) *Batch {
	if !p.learn(released) {
		return p.every()
	}
	x := float64(p.alpha * p.logRound())
	best, top := 0, math.Inf(-1)
	for a := range p.arms {
		e := &p.arms[a]
		index := e.mean + math.Sqrt(x/(2*e.h)) + e.noise(x)
		if index > top {
			best, top = a, index
		}
	}
	return p.double(best)
}
