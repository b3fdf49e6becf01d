package policy

import (
	"fmt"
	"math"

	"github.com/sotto-dp/sotto/privacy"
)

// ExploreThenCommit plays every arm m times, round robin, and then the arm with the largest mean for
// ever; ties go to the lowest arm (Lattimore and Szepesvári 2020, Algorithm 1). It is not private.
//
// For 1-sub-Gaussian rewards and T ≥ Km, Reg_T ≤ m ΣΔ_a + (T − mK) Σ Δ_a exp(−mΔ_a²/4) (there,
// Theorem 6.1). The best m depends on the gaps and on T. ExploreRounds is a choice for gaps unknown.
type ExploreThenCommit struct {
	arms   int
	rounds int
	batch  Batch
}

// NewExploreThenCommit returns explore-then-commit for at least two arms and at least
// one round of each.
func NewExploreThenCommit(arms, rounds int) (*ExploreThenCommit, error) {
	if err := checkArms(arms); err != nil {
		return nil, fmt.Errorf("explore-then-commit: %w", err)
	}
	if rounds < 1 || rounds > Forever/arms {
		return nil, fmt.Errorf("explore-then-commit: rounds is %d, must be at least 1 and at "+
			"most %d for each of %d arms", rounds, Forever/arms, arms)
	}
	return &ExploreThenCommit{arms: arms, rounds: rounds}, nil
}

// ExploreRounds is m = ⌈(T/K)^{2/3} (log T)^{1/3}⌉ and at most T/K, for gaps unknown: for rewards
// in [0,1] E Reg_T = O(T^{2/3} (K log T)^{1/3}) (Slivkins 2019, Theorem 1.5). It wants at least two
// arms and a horizon of at least one round for each.
func ExploreRounds(arms, horizon int) (int, error) {
	if err := checkArms(arms); err != nil {
		return 0, fmt.Errorf("explore-then-commit: %w", err)
	}
	if err := checkHorizon(horizon, arms); err != nil {
		return 0, fmt.Errorf("explore-then-commit: %w", err)
	}
	t := float64(horizon)
	share := math.Cbrt(t / float64(arms))
	m := math.Ceil(float64(float64(share*share) * math.Cbrt(math.Log(t))))
	return min(int(m), horizon/arms), nil
}

// Mechanism implements Policy: explore-then-commit reads exact sums.
func (p *ExploreThenCommit) Mechanism() privacy.Mechanism { return privacy.Exact{} }

// Next implements Policy: the exploration, then the commitment.
func (p *ExploreThenCommit) Next(released privacy.Released) *Batch {
	if released.Len() == 0 {
		p.batch.Plays = make([]Play, p.arms)
		for a := range p.batch.Plays {
			p.batch.Plays[a] = Play{Arm: a, Rounds: p.rounds, Release: true}
		}
		return &p.batch
	}
	best, largest := 0, math.Inf(-1)
	for a := range p.arms {
		if mean := released.Mean(a); mean > largest {
			best, largest = a, mean
		}
	}
	p.batch.Plays = append(p.batch.Plays[:0], Play{Arm: best, Rounds: Forever})
	return &p.batch
}
