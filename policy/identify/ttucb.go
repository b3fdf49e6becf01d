package identify

import (
	"fmt"
	"math"

	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
)

// TTUCB is Jourdan and Degenne's Top Two rule without privacy [Azize 2024, §2.2.9, Algorithm 3],
// round by round on exact means. With N_a the plays of arm a and n the round,
//
//	leader      argmax μ̂_a + √(2σ² log n/N_a),
//	challenger  argmin over a ≠ b of the Gaussian cost W_{b,a}(μ̂, N) of (5.9),
//	played      the leader b if N_b^b ≤ βL_b, its plays as leader and the rounds it led, this one included; otherwise the challenger,
//	stops       when the cost of the empirical best against every other arm is at least the threshold (5.10).
//
// Lowest arms first. It is δ-correct if one arm alone is best, for σ-sub-Gaussian rewards, and for
// distinct means limsup E τ/log(1/δ) ≤ T*_{KL,β} of Gaussian arms [Azize 2024, §2.2.9]. It is the
// reference of AdaP-TT, which has up to four times this for phases that double and forget.
type TTUCB struct {
	beta, sigma float64
	cost        GaussianCost
	threshold   GaussianThreshold

	arms   []ttArm
	round  int // of the next decision
	answer int
	batch  policy.Batch
}

// ttArm is an arm of TTUCB.
type ttArm struct {
	mean, n  float64
	inv      float64 // 1/N
	width    float64 // σ√(2/N)
	iterated float64 // 2 log(4 + log N)
	led, own float64
}

// NewTTUCB returns TTUCB for a number of arms ≥ 2 and a risk δ in (0,1). Options:
// WithBeta and WithSigma.
func NewTTUCB(arms int, risk float64, options ...TopTwoOption) (*TTUCB, error) {
	o, err := applyTopTwo(options, "beta", "sigma")
	if err != nil {
		return nil, fmt.Errorf("ttucb: %w", err)
	}
	threshold, err := NewGaussianThreshold(arms, risk)
	if err != nil {
		return nil, fmt.Errorf("ttucb: %w", err)
	}
	return &TTUCB{beta: o.beta, sigma: o.sigma, cost: GaussianCost{o.sigma}, threshold: threshold,
		arms: make([]ttArm, arms), answer: -1}, nil
}

// Mechanism implements policy.Policy: TTUCB reads exact sums.
func (p *TTUCB) Mechanism() privacy.Mechanism { return privacy.Exact{} }

// Answer implements Identifier.
func (p *TTUCB) Answer() int { return p.answer }

// Next implements policy.Policy: every arm once, then batches of one round.
func (p *TTUCB) Next(released privacy.Released) *policy.Batch {
	if p.answer >= 0 {
		return nil
	}
	if p.round == 0 {
		p.batch.Plays = make([]policy.Play, len(p.arms))
		for a := range p.arms {
			p.batch.Plays[a] = policy.Play{Arm: a, Rounds: 1, Release: true}
		}
		p.round = len(p.arms) + 1
		return &p.batch
	}
	for i := range min(released.Len(), len(p.batch.Plays)) {
		a := &p.arms[p.batch.Plays[i].Arm]
		a.n, a.mean = float64(released.N(i)), released.Mean(i)
		a.inv = 1 / a.n
		a.width = p.sigma * math.Sqrt(2/a.n)
		a.iterated = 2 * iterated(a.n)
	}
	if p.stop() {
		return nil
	}
	p.batch.Plays = p.batch.Plays[:1]
	p.batch.Plays[0] = policy.Play{Arm: p.choose(), Rounds: 1, Release: true}
	p.round++
	return &p.batch
}

func (p *TTUCB) stop() bool {
	best := 0
	for a := range p.arms {
		if p.arms[a].mean > p.arms[best].mean {
			best = a
		}
	}
	top := &p.arms[best]
	for b := range p.arms {
		if arm := &p.arms[b]; b != best &&
			p.cost.rate(top.mean-arm.mean) < float64((p.threshold.constant+top.iterated+
				arm.iterated)*(top.inv+arm.inv)) {
			return false
		}
	}
	p.answer = best
	return true
}

// choose is the arm of this round.
func (p *TTUCB) choose() int {
	log := math.Sqrt(math.Log(float64(p.round)))
	b, top := 0, math.Inf(-1)
	for a := range p.arms {
		if index := p.arms[a].mean + float64(log*p.arms[a].width); index > top {
			b, top = a, index
		}
	}
	lead := &p.arms[b]
	lead.led++
	if lead.own <= float64(p.beta*lead.led) {
		lead.own++
		return b
	}
	c, least := -1, 0.0
	for a := range p.arms {
		if a == b {
			continue
		}
		arm := &p.arms[a]
		if w := p.cost.rate(lead.mean-arm.mean) / (lead.inv + arm.inv); c < 0 || w < least {
			c, least = a, w
		}
	}
	return c
}
