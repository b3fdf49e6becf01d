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

	arms    []ttArm
	round   int // of the next decision
	best    int // the arm of the highest mean
	against int // the arm that the rule did not stop for when it last looked
	leader  int // of the last round

	from, to  int     // rounds,
	low, high float64 // and √log of them

	answer int
	batch  policy.Batch
}

// ttArm is an arm of TTUCB.
type ttArm struct {
	mean, n  float64
	inv      float64 // 1/N
	width    float64 // σ√(2/N)
	iterated float64 // 2 log(4 + log N), of an N that may be from before
	at       float64 // that N
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
	p := &TTUCB{beta: o.beta, sigma: o.sigma, cost: GaussianCost{o.sigma}, threshold: threshold,
		arms: make([]ttArm, arms), answer: -1}
	for a := range p.arms {
		p.arms[a].inv, p.arms[a].width = math.Inf(1), math.Inf(1)
	}
	return p, nil
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
		p.learn(p.batch.Plays[i].Arm, float64(released.N(i)), released.Mean(i))
	}
	if p.stop() {
		return nil
	}
	p.batch.Plays = p.batch.Plays[:1]
	p.batch.Plays[0] = policy.Play{Arm: p.choose(), Rounds: 1, Release: true}
	p.round++
	return &p.batch
}

// learn takes an arm's new mean of n rewards.
func (p *TTUCB) learn(arm int, n, mean float64) {
	if n < 1 {
		return // nobody's reward came
	}
	a := &p.arms[arm]
	fell := mean < a.mean
	a.n, a.mean, a.inv = n, mean, 1/n
	a.width = p.sigma * math.Sqrt(2/n)
	switch top := p.arms[p.best].mean; {
	case arm == p.best && fell:
		p.best = 0
		for b := range p.arms {
			if p.arms[b].mean > p.arms[p.best].mean {
				p.best = b
			}
		}
	case mean > top || mean == top && arm < p.best:
		p.best = arm
	}
}

// stop looks first at the arm that was in the way before: mostly it still is.
func (p *TTUCB) stop() bool {
	if p.against != p.best && !p.passes(p.against) {
		return false
	}
	for b := range p.arms {
		if b != p.best && !p.passes(b) {
			p.against = b
			return false
		}
	}
	p.answer = p.best
	return true
}

// passes says whether the cost of the best arm against b is at least the threshold. The threshold
// of fewer plays is a lower bound, which mostly does.
func (p *TTUCB) passes(b int) bool {
	top, arm := &p.arms[p.best], &p.arms[b]
	rate := p.cost.rate(top.mean - arm.mean)
	if rate < p.needed(top, arm) {
		return false
	}
	for _, a := range [...]*ttArm{top, arm} {
		if a.at != a.n {
			a.iterated, a.at = 2*iterated(a.n), a.n
		}
	}
	return !(rate < p.needed(top, arm))
}

// needed is the rate from which on the cost of a against b is at least the threshold.
func (p *TTUCB) needed(a, b *ttArm) float64 {
	return float64((p.threshold.constant + a.iterated + b.iterated) * (a.inv + b.inv))
}

// leads is the leader of this round, the lowest arm of the highest index. It is still the last one
// if its index with the logarithm of an earlier round is above all others with that of a later one.
func (p *TTUCB) leads() int {
	if p.round >= p.to {
		p.from, p.to = p.round, p.round+1+p.round/16
		p.low, p.high = math.Sqrt(math.Log(float64(p.from))), math.Sqrt(math.Log(float64(p.to)))
	}
	least := p.arms[p.leader].mean + float64(p.low*p.arms[p.leader].width)
	still := true
	for a := range p.arms {
		if arm := &p.arms[a]; a != p.leader && !(arm.mean+float64(p.high*arm.width) < least) {
			still = false
			break
		}
	}
	if still {
		return p.leader
	}
	log := math.Sqrt(math.Log(float64(p.round)))
	b, top := 0, math.Inf(-1)
	for a := range p.arms {
		if index := p.arms[a].mean + float64(log*p.arms[a].width); index > top {
			b, top = a, index
		}
	}
	p.leader = b
	return b
}

// choose is the arm of this round.
func (p *TTUCB) choose() int {
	b := p.leads()
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
