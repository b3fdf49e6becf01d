package policy

import (
	"fmt"
	"math"

	"github.com/sotto-dp/sotto/internal/divergence"
	"github.com/sotto-dp/sotto/privacy"
)

// IMED is the indexed minimum empirical divergence of Honda and Takemura ("Non-asymptotic analysis
// of a new bandit algorithm for semi-bounded rewards", JMLR 2015) for Bernoulli rewards: play the
// arm with the lowest
//
//	N_a kl(μ̂_a, μ̂*) + log N_a,   μ̂* the highest mean,
//
// every arm once first. At equal indices the arm with fewer rewards goes first, then the lower.
// It is not private.
//
// For Bernoulli rewards lim Reg_T / log T ≤ Σ Δ_a/kl(μ_a, μ*) over the suboptimal arms, the least
// there is. It needs no round number, and no horizon.
//
// It decides as if after every reward, but asks for certified batches (see window.go): while the
// leader plays, its own index is log N, and what its rewards can do to the rivals' is to lower μ̂*.
// So a window in which all its rewards were 0 speaks for every outcome.
type IMED struct {
	// Unbounded says that rewards may leave [0,1] (a simulation without clipping): no certificate
	// holds and batches are of one round. Means are clipped to [0,1], where kl lives.
	Unbounded bool

	tally
	index []float64
}

// NewIMED returns IMED for at least two arms.
func NewIMED(arms int) (*IMED, error) {
	if err := checkArms(arms); err != nil {
		return nil, fmt.Errorf("imed: %w", err)
	}
	return &IMED{tally: newTally(arms), index: make([]float64, arms)}, nil
}

// Mechanism implements Policy: IMED reads exact sums.
func (p *IMED) Mechanism() privacy.Mechanism { return privacy.Exact{} }

// Next implements Policy: every arm once, then certified batches of one arm.
func (p *IMED) Next(released privacy.Released) *Batch {
	if p.batch.Plays == nil {
		return p.first()
	}
	p.take(released)
	top := 0.0
	for a := range p.mean {
		p.mean[a] = min(max(p.mean[a], 0), 1)
		top = max(top, p.mean[a])
	}
	best := 0
	for a, n := range p.n {
		p.index[a] = math.Inf(-1)
		if n > 0 {
			p.index[a] = float64(n*divergence.KL(p.mean[a], top)) + math.Log(n)
		}
		if x := p.index[a]; x < p.index[best] || x == p.index[best] && n < p.n[best] {
			best = a
		}
	}
	if p.mean[best] < top || p.n[best] == 0 || p.Unbounded {
		return p.next(best, 1)
	}
	return p.next(best, p.window(best))
}

// window is a number of rounds for which arm b, whose mean is highest, leads whatever its rewards.
func (p *IMED) window(b int) float64 {
	// kl is convex, so a rival's index at the mean x−δ is at least what its tangent at x says.
	n, x := p.n[b], p.mean[b]
	guess := n
	for a := range p.n {
		if a == b {
			continue
		}
		// what the rival's index loses against log N, in a round, times n
		slope := 1 + p.n[a]*(x-p.mean[a])/(1-x)
		if k := (p.index[a] - p.index[b]) * n / slope; k < guess {
			guess = k
		}
	}
	for k := math.Floor(min(guess, p.t)); k >= 1; k = math.Floor(k / 4) {
		if p.leads(b, n+k) {
			return k + 1
		}
	}
	return 1
}

// leads says that arm b, at m rewards of which the new ones are 0, is still played next, by more
// than rounding can blur.
func (p *IMED) leads(b int, m float64) bool {
	x, own := p.sum[b]/m, math.Log(m)
	for a, n := range p.n {
		if a != b && !(p.mean[a] < x-margin &&
			float64(n*divergence.KL(p.mean[a], x))+math.Log(n) > own+float64(margin*(1+own+n))) {
			return false
		}
	}
	return true
}
