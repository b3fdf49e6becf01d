package identify

import (
	"fmt"
	"math"

	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
)

// LUCB is LUCB1 (Kalyanakrishnan, Tewari, Auer and Stone 2012) for one arm and without a
// tolerance. In each step t it plays the empirical best arm and, of the others, the one with the
// highest upper confidence bound μ̂_a + w(N_a,t), and it stops when that bound is not above the
// best arm's lower one, with
//
//	w(n,t) = √(log((5/4)·K·t⁴/δ)/(2n)),   t the number of plays so far.
//
// It is not private. For rewards in [0,1] it is δ-correct (their Theorem 1): the reference among
// rules that go by confidence bounds. Lowest arms first.
type LUCB struct {
	risk   float64
	mean   []float64
	n      []float64
	rounds int
	answer int
	batch  policy.Batch
}

// NewLUCB returns LUCB for a number of arms ≥ 2 and a risk δ in (0,1).
func NewLUCB(arms int, risk float64) (*LUCB, error) {
	if err := checkTask(arms, risk); err != nil {
		return nil, fmt.Errorf("lucb: %w", err)
	}
	return &LUCB{risk: risk, mean: make([]float64, arms), n: make([]float64, arms), answer: -1}, nil
}

// Mechanism implements policy.Policy: LUCB reads exact sums.
func (p *LUCB) Mechanism() privacy.Mechanism { return privacy.Exact{} }

// Answer implements Identifier.
func (p *LUCB) Answer() int { return p.answer }

// Next implements policy.Policy: every arm once, then two arms at a time.
func (p *LUCB) Next(released privacy.Released) *policy.Batch {
	if p.answer >= 0 {
		return nil
	}
	if p.rounds == 0 {
		p.batch.Plays = once(p.batch.Plays, len(p.mean))
		p.rounds = len(p.mean)
		return &p.batch
	}
	for i := range min(released.Len(), len(p.batch.Plays)) {
		a := p.batch.Plays[i].Arm
		p.mean[a], p.n[a] = released.Mean(i), float64(released.N(i))
	}
	best, rival := 0, -1
	for a, m := range p.mean {
		if m > p.mean[best] {
			best = a
		}
	}
	t := float64(p.rounds)
	half := math.Log(1.25*float64(len(p.mean))*t*t*t*t/p.risk) / 2
	highest := math.Inf(-1)
	for a, m := range p.mean {
		if upper := m + math.Sqrt(half/p.n[a]); a != best && upper > highest {
			rival, highest = a, upper
		}
	}
	if p.mean[best]-math.Sqrt(half/p.n[best]) >= highest {
		p.answer = best
		return nil
	}
	p.rounds += 2
	p.batch.Plays = append(p.batch.Plays[:0], policy.Play{Arm: best, Rounds: 1, Release: true},
		policy.Play{Arm: rival, Rounds: 1, Release: true})
	return &p.batch
}

// once is every arm once.
func once(plays []policy.Play, arms int) []policy.Play {
	plays = plays[:0]
	for a := range arms {
		plays = append(plays, policy.Play{Arm: a, Rounds: 1, Release: true})
	}
	return plays
}
