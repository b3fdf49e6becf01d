package policy

import (
	"fmt"

	"github.com/sotto-dp/sotto/privacy"
)

// LazyDPTS is Lazy-DP-TS of Hu and Hegde, "Near-optimal Thompson sampling-based algorithms for
// differentially private stochastic bandits" (UAI 2022): Thompson sampling on means that are
// released rarely. An arm's rewards wait in a buffer; when it holds 2^{r+1} of them their sum is
// released with Lap(1/ε), r grows by one, and the arm's mean μ̃ is that of the last release alone,
// of O = 2^r rewards (the first release is of one reward). Every round t draws for each arm
//
//	θ ~ Beta(μO + 1, (1−μ)O + 1),   μ = min(1, max(0, μ̃ + 3 log t/(εO))),
//
// and plays the arm with the largest. For rewards in [0,1] it is ε-DP, each reward being in one
// release; its regret is Σ O(log T/min(ε, Δ_a)). It is anytime. The paper was not at hand: the
// constant 3 and the integers are second-hand.
//
// Draws are not made round by round, and yet have the law of draws that are: see draws.
type LazyDPTS struct {
	epsilon float64
	arms    []lazyArm
	started bool
	draws   draws
	batch   Batch
}

type lazyArm struct {
	o      float64 // O, rewards in the last release
	sum    float64 // μ̃O
	buffer int     // rewards waiting, when the batch that is out has been played
	size   int     // rewards that the next release takes
}

// NewLazyDPTS returns Lazy-DP-TS for a number of arms ≥ 2, a budget epsilon > 0 (+Inf: no privacy)
// and the policy's coins.
func NewLazyDPTS(arms int, epsilon float64, coins Coins) (*LazyDPTS, error) {
	err := checkArms(arms)
	if err == nil {
		err = checkPositive("epsilon", epsilon, true)
	}
	if err == nil {
		err = checkCoins(coins)
	}
	if err != nil {
		return nil, fmt.Errorf("lazy-dp-ts: %w", err)
	}
	p := &LazyDPTS{epsilon: epsilon, arms: make([]lazyArm, arms)}
	p.draws = draws{coins: coins, posterior: p.posterior, arms: arms, round: arms + 1}
	p.batch.Plays = make([]Play, arms)
	return p, nil
}

// Mechanism implements Policy.
func (p *LazyDPTS) Mechanism() privacy.Mechanism { return privacy.Laplace{Scale: 1 / p.epsilon} }

// posterior is an arm's Beta law in round t, whose logarithm is given. Its shapes are at least 1,
// and it grows with t.
func (p *LazyDPTS) posterior(a int, logT float64) (alpha, beta float64) {
	arm := &p.arms[a]
	x := min(arm.o, max(0, arm.sum+float64(3*logT)/p.epsilon))
	return x + 1, arm.o - x + 1
}

// Next implements Policy: rounds of one arm, up to where another is drawn or its buffer is full.
func (p *LazyDPTS) Next(released privacy.Released) *Batch {
	if !p.started {
		p.started = true
		for a := range p.arms {
			p.arms[a] = lazyArm{size: 1}
			p.batch.Plays[a] = Play{Arm: a, Rounds: 1, Release: true}
		}
		return &p.batch
	}
	for i := range min(released.Len(), len(p.batch.Plays)) {
		arm := &p.arms[p.batch.Plays[i].Arm]
		if released.N(i) > 0 {
			arm.o = float64(arm.size)
			arm.sum = float64(released.Mean(i) * arm.o)
		}
		arm.buffer, arm.size = 0, 2*arm.size
		p.draws.changed()
	}
	a, n := p.draws.next()
	arm := &p.arms[a]
	const patience = 1 << 12 // draws before a batch, at most
	for i := 0; arm.buffer+n < arm.size && i < patience; i++ {
		b, more := p.draws.next()
		if b != a {
			p.draws.back(b, more)
			break
		}
		n += more
	}
	// decided too early: the release will tell more
	if over := arm.buffer + n - arm.size; over > 0 {
		p.draws.round -= over
		n -= over
	}
	arm.buffer += n
	p.batch.Plays = p.batch.Plays[:1]
	p.batch.Plays[0] = Play{Arm: a, Rounds: n, Release: arm.buffer == arm.size}
	return &p.batch
}
