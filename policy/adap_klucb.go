package policy

import (
	"fmt"
	"math"

	"github.com/sotto-dp/sotto/divergence"
	"github.com/sotto-dp/sotto/privacy"
)

// AdaPKLUCB is the adaptively episodic, private KL-UCB of 000 §5.2: Algorithm 7 with index (5.2),
//
//	max{ q ∈ [0,1] : kl(μ̌_a, q) ≤ α log t_ℓ / h },   μ̌_a = min(1, max(0, μ̃_a + α log t_ℓ / (εh))),
//
// where μ̃_a is the mean of the arm's last episode, of size h, plus Lap(1/(εh)); what is added to it is the release's own tail at α log t_ℓ. It is ε-DP as AdaPUCB is. For Bernoulli rewards and α > 3
// its regret is at most Σ_a (C₁(α) Δ_a log T / min(kl(μ_a, μ*), C₂εΔ_a) + 3α/(α−3)), with constants that are not explicit (000 Theorem
// 5.4). It is anytime.
//
// While log t_ℓ is large beside h, noise lifts several indices to their cap, 1, and the source's argmax then takes the arm listed first again
// and again. TiesToFewest gives ties to the arm with the fewest plays.
type AdaPKLUCB struct {
	episodes
	alpha  float64
	fewest bool
}

// NewAdaPKLUCB returns AdaP-KLUCB; its parameters are those of NewAdaPUCB.
func NewAdaPKLUCB(arms int, epsilon, alpha float64) (*AdaPKLUCB, error) {
	if err := checkEpisodic(arms, epsilon, "alpha", alpha); err != nil {
		return nil, fmt.Errorf("adap-klucb: %w", err)
	}
	return &AdaPKLUCB{episodes: newEpisodes(arms, privacy.Laplace{Scale: 1 / epsilon}), alpha: alpha}, nil
}

// TiesToFewest gives ties to the arm with the fewest plays, instead of the one listed first. Plays are public: privacy is as before.
func (p *AdaPKLUCB) TiesToFewest() { p.fewest = true }

// Next implements Policy.
func (p *AdaPKLUCB) Next(released privacy.Released) *Batch {
	if !p.learn(released) {
		return p.every()
	}
	x := float64(p.alpha * p.logRound())
	best, top := 0, math.Inf(-1)
	for a := range p.arms {
		e := &p.arms[a]
		mean := min(1, max(0, e.mean+e.noise(x)))
		index := divergence.KLUpper(mean, x/e.h)
		if index > top || p.fewest && index == top && p.plays[a] < p.plays[best] {
			best, top = a, index
		}
	}
	return p.double(best)
}
