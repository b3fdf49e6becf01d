package policy

import (
	"fmt"
	"math"

	"github.com/sotto-dp/sotto/internal/divergence"
	"github.com/sotto-dp/sotto/privacy"
)

// DPUCBDoubling is UCB that knows no horizon and releases an arm's rewards when their number has
// doubled. It plays the arm with the highest
//
//	μ̃_a + w(α log t; n_a, m_a),   w(x; n, m) = min_{0<λ<ε} (x + nλ²/8 − m log(1−λ²/ε²))/(λn),
//
// until that arm's plays n_a have doubled; t are all plays so far, and w is divergence.NoisyRadius.
// Ties go to the lowest arm.
//
// What is released when: an arm's batches end at n_1, 2n_1, 4n_1, … plays of it, all arms' first
// ones together. At the end of a batch the sum of that batch's rewards is released, once, with a
// fresh Lap(1/ε); nothing else ever is. μ̃_a is the sum of the m_a = 1 + log₂(n_a/n_1) noisy sums
// over n_a. Batches are disjoint, so that a reward costs ε, once, whatever the horizon is (parallel
// composition [Azize 2024, Lemma 2.10]): ε-DP for rewards in [0,1]. A counter that can be read after
// every reward (NewDPUCBAnytime) has half of ε for sums at 2^k and half for a tree between them.
//
// Tail: for x ≥ 0, P(μ̃_a ≤ μ_a − w(x;n,m)) ≤ e^{−x}, and the same above. Proof: E e^{λ(μ−X)} ≤
// e^{λ²/8} for X in [0,1] (Hoeffding), E e^{λL} = 1/(1−λ²/ε²) for Lap(1/ε), or less for discrete
// noise (see JointThreshold in package identify), so that by Chernoff P(Σ(μ−X) + ΣL ≥ nw) ≤
// exp(−λnw + nλ²/8 − m log(1−λ²/ε²)), which is e^{−x} at the λ of w. One λ serves rewards and
// noise: no probability is split between them. ∎
//
// Regret: let α > 1, K arms, any T ≥ Kn_1, rewards in [0,1], independent, of means μ_a in each play
// of arm a. Let n_a(T) be the first end n = n_1 2^{m−1} of a batch with 2w(α log T; n, m) ≤ Δ_a.
// Then
//
//	E Reg_T ≤ Σ_{Δ_a>0} Δ_a (min(n_a(T), T) + C_α n_1^{1−α}),
//	C_α = Σ_{i≥0} 2^{i(1−α)} + Σ_{i,j≥0} 2^i (2^i + 2^j)^{−α}.
//
// C_1.5 ≤ 12.14 and C_2 ≤ 4.03. As w ≤ √(x/(2n)) (1 + 5.6m/(nε²)) where x ≤ nε²/16 (λ = √(8x/n)), w
// ≤ √2(2x + m log 2)/(nε) elsewhere (λ = ε/√2), and m ≤ 1 + log₂T, for T ≥ 3 it follows that
//
//	n_a(T) ≤ max(n_1, 13.4 α log T/Δ_a², 5.7((2α+1) log T + log 2)/(εΔ_a)),
//
// so that the regret is O(Σ log T/Δ_a + K log T/ε), without a horizon.
//
// Proof. Fix a table in advance: entry j of arm a is the reward of its j-th play, and each of its
// batches has its noise. Let a be suboptimal, 1 a best arm. nw is (the minimum of) a function that
// grows slower than n along the batches: w falls from one to the next, as m/n does. So from n_a(T)
// on 2w ≤ Δ_a, and a batch of a that begins with n ≥ n_a(T) plays behind it, in round t+1 with t ≥ n
// + n', n' those behind arm 1's mean, needs that (i) μ̃_a ≥ μ_a + w(α log n; n, m), or (ii) μ̃_1 ≤
// μ_1 − w(α log(n + n'); n', m'): otherwise a's index is below μ_a + 2w(α log t; n, m) ≤ μ_a + Δ_a =
// μ_1, and that of arm 1 is above μ_1 (w grows in x). For fixed n and n' these have probability at
// most n^{−α} and (n+n')^{−α}. The batch has n plays. So E N_a(T) ≤ n_a(T) + Σ_n n n^{−α} +
// Σ_{n,n'} n(n+n')^{−α}, over n, n' = n_1 2^i. ∎
//
// How likely a run is bad: arm 1 loses to another for w ≥ 4n_a(T) plays only if (i) or (ii) comes true
// at an n ≥ w/4, of probability O(w^{−α} log w): α buys the tail of the regret, and costs in its mean.
//
// Where releases have several Laplace noises, m counts all. Noise of another law widens w: rewards and
// releases then share the probability, √(y/(2n)) + Σ_j(σ_j√(2y) + h_j(y+l_j))/n with y = x + log(m+1)
// and the tails of the m releases.
type DPUCBDoubling struct {
	accumulation
	alpha float64
	other []otherNoise // of each arm
}

// otherNoise adds up the tails of an arm's releases.
type otherNoise struct {
	sigma, h, l float64 // Σσ, Σh and Σhl
	scale       float64 // of Laplace noises the widest
	mixed       bool    // the law of one of them is not known
}

// NewDPUCBDoubling returns the policy for a number of arms ≥ 2, a budget epsilon > 0 (+Inf: no
// privacy, the same algorithm without noise), the exponent alpha > 1 of its confidence, and an arm's
// first batch n_1 ≥ 1 in rounds; 0 means ⌈16/ε⌉.
func NewDPUCBDoubling(arms int, epsilon, alpha float64, first int) (*DPUCBDoubling, error) {
	fail := func(err error) (*DPUCBDoubling, error) { return nil, fmt.Errorf("dp-ucb-anytime: %w", err) }
	if !(alpha > 1 && alpha <= math.MaxFloat64) {
		return fail(fmt.Errorf("alpha is %v, must be finite and above 1", alpha))
	}
	p, err := newAccumulation(arms, epsilon, 2, first, warm)
	if err != nil {
		return fail(err)
	}
	return &DPUCBDoubling{accumulation: p, alpha: alpha, other: make([]otherNoise, arms)}, nil
}

// Next implements Policy.
func (p *DPUCBDoubling) Next(released privacy.Released) *Batch {
	for i := range min(released.Len(), len(p.batch.Plays)) {
		o, t := &p.other[p.batch.Plays[i].Arm], released.Tail()
		o.sigma += t.Sigma
		o.h += t.H
		o.l += float64(t.H * t.Log)
		switch m, scale := released.Noises(i); {
		case released.Laplace(): // integers round its scale up
			o.scale = max(o.scale, t.H)
		case m > 0:
			o.scale = max(o.scale, scale)
		default:
			o.mixed = o.mixed || t != privacy.Tail{}
		}
	}
	if !p.learn(released) {
		return p.every()
	}
	x := float64(p.alpha * math.Log(float64(p.round)))
	best, top := -1, math.Inf(-1)
	for a := range p.arms {
		arm := &p.arms[a]
		if arm.off {
			continue
		}
		index := math.Inf(1) // of an arm whose rewards have not come
		if arm.n > 0 {
			index = arm.sum/arm.n + p.other[a].width(x, arm.n, arm.m)
		}
		if best < 0 || index > top {
			best, top = a, index
		}
	}
	return p.grow(best)
}

// AddArm is as for DPKLUCB (play.Grower). The regret's proof reads plays and releases of two arms and says
// nothing of when they came, so that its bound holds from one arm that comes to the next, against the best
// that is there, with T the end of that time: an arm without a release goes first, so (ii) is of releases.
func (p *DPUCBDoubling) AddArm() error {
	p.other = append(p.other, otherNoise{})
	return p.accumulation.AddArm()
}

// width is what a mean of n rewards with m noises is wrong by, one side, with probability at most
// e^{−x}.
func (o *otherNoise) width(x, n, m float64) float64 {
	if o.mixed {
		y := x + math.Log1p(m)
		return math.Sqrt(y/(2*n)) + (float64(o.sigma*math.Sqrt(2*y))+float64(o.h*y)+o.l)/n
	}
	return divergence.NoisyRadius(x/n, 1/o.scale, m/n)
}
