package policy

import (
	"fmt"
	"math"

	"github.com/sotto-dp/sotto/internal/divergence"
	"github.com/sotto-dp/sotto/privacy"
)

// AdaPKLUCB is the adaptively episodic, private KL-UCB of [Azize 2024, §5.2]: Algorithm 7
// with index (5.2),
//
//	max{ q ∈ [0,1] : kl(μ̌_a, q) ≤ α log t_ℓ / h },   μ̌_a = min(1, max(0, μ̃_a + α log t_ℓ / (εh))),
//
// where μ̃_a is the mean of the arm's last episode, of size h, plus Lap(1/(εh)); what is added to
// it is the release's own tail at α log t_ℓ. It is ε-DP as AdaPUCB is. For Bernoulli rewards and α
// > 3 its regret is at most Σ_a (C₁(α) Δ_a log T / min(kl(μ_a, μ*), C₂εΔ_a) + 3α/(α−3)), with
// constants that are not explicit [Azize 2024, Theorem 5.4]. It is anytime. With other noise than
// one Laplace the index is as optimistic, except for (C.9)'s 3/2, which is 2, and the bound has the
// width of that noise for that of Laplace noise: see AdaPUCB.
//
// While log t_ℓ is large beside h, noise lifts several indices to their cap, 1, and the source's
// argmax then takes the arm listed first again and again. TiesToFewest gives ties to the arm with
// the fewest plays.
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

// TiesToFewest gives ties to the arm with the fewest plays, instead of the one listed first. Plays
// are public: privacy is as before.
func (p *AdaPKLUCB) TiesToFewest() { p.fewest = true }

// Next implements Policy.
func (p *AdaPKLUCB) Next(released privacy.Released) *Batch {
	if !p.learn(released) {
		return p.every()
	}
	return p.double(p.first(float64(p.alpha * p.logRound())))
}

// first is the arm of the highest index at α log t_ℓ = x.
func (p *AdaPKLUCB) first(x float64) int {
	// Indices take time to solve for, and only their order counts: that of the best arm so far is
	// solved for when another arm is near it.
	best, mean, c := 0, p.optimistic(0, x), x/p.arms[0].h
	top := math.NaN() // index of best, if it was solved for
	for a := 1; a < len(p.arms); a++ {
		m, ca := p.optimistic(a, x), x/p.arms[a].h
		side := 1
		if top != top && (m < 1 || divergence.KLUpperSide(mean, c, 1) >= 0) {
			top = divergence.KLUpper(mean, c)
		}
		if top == top {
			if top == 1 && !p.fewest {
				break // no index is above 1
			}
			side = divergence.KLUpperSide(m, ca, top)
		}
		if side < 0 {
			continue
		}
		index := math.NaN()
		if side == 0 {
			index = divergence.KLUpper(m, ca)
			if !(index > top || p.fewest && index == top && p.plays[a] < p.plays[best]) {
				continue
			}
		}
		best, mean, c, top = a, m, ca, index
	}
	return best
}

// optimistic is μ̌_a at α log t_ℓ = x.
func (p *AdaPKLUCB) optimistic(a int, x float64) float64 {
	e := &p.arms[a]
	return min(1, max(0, e.mean+e.noise(x)))
}
