package identify

import (
	"fmt"

	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
)

// Phased is elimination in phases for regret, where means follow from known vectors (Lattimore and Szepesvári 2020,
// §22: phases by a G-optimal design of the arms that are left). It plays DPRace for the best arm, whose batches are
// these phases with a noisy sum of each arm that is played, and then for ever the arm that is left.
//
// # Theorem
//
// Let rewards in [0,1] be independent, everybody answer, 5p/6 be the risk of the race, p/6 that of sums that are misread,
// and R_m the rank of the arms that are left in batch m: at most r, that of all. Let n_m = 2^{m−1}n_1 R_m, the plays of the batch before they are rounded up for s
// arms at most, and L_m = log(6Km²/p). Let r_m be the largest radius of batch m, as there. With linear means
//
//	r_m ≤ √(gR_m L_m/(2n_m)) + gR_m sτ(L_m)/n_m,
//
// where gR_m bounds the G of the batch's design, mostly with g = 1.001, s ≤ r(r+1)/2, and τ is the tail of the noise in a
// sum of the batch on both sides. With logistic means, and a spanner of R_m arms of t_m = 2^{m−1}n_1 plays each,
//
//	r_m ≤ R_m(√(L_m/(2t_m)) + τ(L_m)/t_m)/(2κ).
//
// With M the last batch that begins before the horizon, the regret is at most
//
//	n_1 r + s + Σ_{m=2}^{M} (n_m + s) min(1, 4r_{m−1}) + pT.
//
// With p = 1/T and a fixed n_1 that is
//
//	O(√(grT log(KT)) + (grsτ(log(KT)) + s) log T)       for linear means, and
//	O((r/κ)√(rT log(KT)) + (r²/κ)τ(log(KT)) log T)      for logistic ones,
//
// τ the largest tail in a batch that the horizon does not cut: for any noise whose tail is known, in every currency and
// under every trust model. Where each of n users adds noise τ grows as √n, and the second term as √T. Where users add
// shares of a noise, its shares are for the smallest sum of the batch, so that τ is some √(n_max/n_min) times that of equal
// sums; with a sum of fewer than three it is that of local trust.
//
// Proof. With probability at least 1 − p no sum is misread and all intervals of the race hold. Then (DPRace) the best arm is never out,
// and an arm a that is worse by Δ_a > 0 is out after the first batch m with 4r_m < Δ_a. So an arm that is left in batch m ≥ 2
// has Δ_a ≤ 4r_{m−1}, and so has one that is played, as designs and spanners are of arms that are left: a batch of at
// most n_m + s plays loses at most (n_m + s) min(1, 4r_{m−1}). Once the race is decided the best arm is played. A
// horizon that cuts the last batch loses less. Where an interval fails the regret is T at most. That is the first part.
//
// For the second, R_m ≤ R_{m−1}, so that n_m ≤ 2n_{m−1}. Of linear means n_m r_{m−1} is then at most
// R_{m−1}√(2^{m−1}n_1 gL) + 2gR_{m−1}sτ(L). As R_m ≤ min(r, T/(2^{m−1}n_1)) for a batch that is over, Σ_m R_m √(2^{m−1}n_1) is at
// most the sum of min(r√x, T/√x) over x = n_1, 2n_1, 4n_1, …, which is O(√(rT)). The other terms, and s·1, are one for each
// of at most log₂T + 1 batches, and τ(cx) ≤ cτ(x) for c ≥ 1, as in policy.BatchSE. Of logistic means s = 0, and the sum is of
// min(r²√x, T²/x^{3/2})/κ, which is O(r√(rT)/κ). ∎
//
// # Privacy
//
// A reward is in one release, of sensitivity 1, and everything else is post-processing: it costs what one
// release costs, in every currency and under every trust model.
type Phased struct {
	race  *DPRace
	batch policy.Batch
}

// NewPhased returns the policy for a number of arms ≥ 2, a budget, a probability p in (0,1) that any mean leaves its
// interval or a sum is misread, and the plays of the first batch divided by the rank, 0 for ⌈8/ε⌉, at least 16, as
// NewDPRace has it.
func NewPhased(arms int, budget privacy.Budget, p float64, first int) (*Phased, error) {
	race, err := NewDPRace(arms, budget, 5*p/6, RaceGoal{Top: 1}, first)
	if err != nil {
		return nil, fmt.Errorf("phased: %w", err)
	}
	return &Phased{race: race, batch: policy.Batch{Plays: make([]policy.Play, 1)}}, nil
}

// SetVectors tells it the vectors of all arms, and how means follow from them. Call it before the first Next.
func (p *Phased) SetVectors(x [][]float64, link Link) error { return p.race.SetVectors(x, link) }

// Mechanism implements policy.Policy.
func (p *Phased) Mechanism() privacy.Mechanism { return p.race.Mechanism() }

// Next implements policy.Policy.
func (p *Phased) Next(released privacy.Released) *policy.Batch {
	if b := p.race.Next(released); b != nil {
		return b
	}
	p.batch.Plays[0] = policy.Play{Arm: p.race.Answer(), Rounds: policy.Forever}
	return &p.batch
}
