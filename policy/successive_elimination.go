package policy

import (
	"fmt"
	"math"

	"github.com/sotto-dp/sotto/privacy"
)

// SuccessiveElimination plays every surviving arm once a cycle and after each cycle n drops
// every arm i with
//
//	μ̂_j − μ̂_i > 2 r(n)   for some surviving j
//
// (Even-Dar, Mannor and Mansour 2002). It is not private.
//
// With r(n) = √(2 log T / n) it is [Sajed 2019, Algorithm 2], and for rewards in [0,1] E Reg_T =
// O(min(√(KT log T), Σ log T/Δ_a)) [Sajed 2019, Theorem 2.1.5]: an arm is played at most 32 log
// T/Δ_a² times [Sajed 2019, (2.32)]. The print counts cycles from 0 and would divide by 0 after the
// first: here n is the number of rewards in each mean, as in the proof.
//
// With r(n) = √(log(4Kn²/β) / 2n) it needs no horizon. By Hoeffding's inequality a mean ever
// leaves its interval with probability at most Σ_n K·β/(2Kn²) < β, and then only is the best
// arm ever dropped.
//
// It decides as if after every cycle, but asks for c cycles at once when none of the first c−1 can
// end with an arm dropped: sums in [0,1] a round part by at most one a cycle.
type SuccessiveElimination struct {
	// Unbounded says that rewards may leave [0,1] (a simulation without clipping): batches
	// are of one cycle.
	Unbounded bool

	arms int
	beta float64 // 0: the radius of [Sajed 2019, Algorithm 2]
	logT float64
	elimination
	mean []float64 // of the arms in alive
}

// NewSuccessiveElimination returns [Sajed 2019, Algorithm 2] for at least two arms and a horizon of
// at least one round for each.
func NewSuccessiveElimination(arms, horizon int) (*SuccessiveElimination, error) {
	if err := checkArms(arms); err != nil {
		return nil, fmt.Errorf("successive-elimination: %w", err)
	}
	if err := checkHorizon(horizon, arms); err != nil {
		return nil, fmt.Errorf("successive-elimination: %w", err)
	}
	return &SuccessiveElimination{
		arms: arms, logT: math.Log(float64(horizon)), elimination: newElimination(arms),
		mean: make([]float64, arms),
	}, nil
}

// NewSuccessiveEliminationAnytime returns the version without a horizon for at least two arms. beta
// in (0,1) is the probability that the best arm may be dropped.
func NewSuccessiveEliminationAnytime(arms int, beta float64) (*SuccessiveElimination, error) {
	if err := checkArms(arms); err != nil {
		return nil, fmt.Errorf("successive-elimination: %w", err)
	}
	if err := checkRisk("beta", beta); err != nil {
		return nil, fmt.Errorf("successive-elimination: %w", err)
	}
	return &SuccessiveElimination{arms: arms, beta: beta, elimination: newElimination(arms),
		mean: make([]float64, arms)}, nil
}

// Mechanism implements Policy: successive elimination reads exact sums.
func (p *SuccessiveElimination) Mechanism() privacy.Mechanism { return privacy.Exact{} }

// Next implements Policy: some cycles of the surviving arms, and at last the survivor for ever.
func (p *SuccessiveElimination) Next(released privacy.Released) *Batch {
	if released.Len() == 0 || released.Len() != len(p.alive) {
		return p.each(1)
	}
	least, most := released.N(0), released.N(0)
	for i := range p.alive {
		least, most = min(least, released.N(i)), max(most, released.N(i))
	}
	if least == 0 {
		return p.each(1)
	}
	n, top := float64(least), math.Inf(-1)
	for i := range p.alive {
		p.mean[i] = released.Mean(i)
		top = max(top, p.mean[i])
	}
	width := 2 * p.radius(n)
	bottom := top
	kept := 0
	for i, a := range p.alive {
		if !(top-p.mean[i] > width) {
			p.alive[kept] = a
			kept++
			bottom = min(bottom, p.mean[i])
		}
	}
	p.alive = p.alive[:kept]
	if p.Unbounded || least < most { // rewards got lost
		return p.each(1)
	}
	return p.each(p.cycles(n, top-bottom))
}

// radius is r(n).
func (p *SuccessiveElimination) radius(n float64) float64 { return math.Sqrt(p.square(n) / n) }

// square is n·r(n)², which does not fall with n.
func (p *SuccessiveElimination) square(n float64) float64 {
	if p.beta == 0 {
		return float64(2 * p.logT)
	}
	return float64(0.5 * math.Log(float64(4*float64(p.arms))*float64(n*n)/p.beta))
}

// cycles is how many cycles may pass before somebody can be dropped by a look before the last.
// After c more the sums of two arms whose means are spread apart differ by at most n·spread + c,
// and with m = n+c nothing happens as long as
//
//	m − n(1−spread) ≤ 2m·r(m),   where 2m·r(m) ≥ √(A·m),   A = 4n·r(n)².
//
// That is a quadratic in √m; both sides meet once beyond n, as the right one is concave and
// the larger at n.
func (p *SuccessiveElimination) cycles(n, spread float64) int {
	root := 2 * math.Sqrt(p.square(n))
	z := 0.5 * (root + math.Sqrt(float64(root*root)+float64(4*float64(n*(1-spread)))))
	m := float64(float64(z*z) * (1 - margin))
	// never more than a doubling, so that lost rewards cannot make it long
	return int(max(min(m-n, n), 0)) + 1
}
