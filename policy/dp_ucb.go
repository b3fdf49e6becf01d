package policy

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/sotto-dp/sotto/privacy"
)

// DPUCB is UCB on the binary tree counter, [Sajed 2019, Algorithm 6] (after Mishra and Thakurta
// 2015): play the arm with the highest
//
//	r̃_i/n_i + √(2 log t/n_i) + Γ/n_i,   Γ = log²T · log(KT log T/β)/ε,
//
// where r̃_i is the arm's running sum from a tree with Lap((⌈log₂T⌉+1)/ε) on each node (the print
// of Γ has lost its ε). For rewards in [0,1] it is ε-DP [Sajed 2019, Theorem 3.3.1], and with
// probability 1−β its regret is O(Σ_i log²T log(KT/β)/(εΔ_i)) (Mishra and Thakurta 2015, quoted in
// [Sajed 2019, §3.4]).
//
// The source does not say to which base its logarithms are. That of the tree's depth is 2, and Γ
// bounds the noise of a tree: NewDPUCBBase2 has all three logarithms of Γ to base 2, which makes it
// about three times as wide.
//
// The thesis' DP-UCB [Azize 2024, §5.1] has another index on the same tree, NewDPUCBThesis:
//
//	r̃_i/n_i + √(2 log(2/δ)/n_i) + √8 log^{3/2}T log(2/δ)/(εn_i),   δ = 1/T².
//
// Without a horizon (NewDPUCBAnytime) the counter is the hybrid one, with half the budget for the
// segments and half for the trees inside, and Γ has the round for T; no regret bound is printed for
// that. Other counters have widths of their own: NewDPUCBCounter.
type DPUCB struct {
	mech    privacy.Mechanism
	arms    int
	epsilon float64
	beta    float64

	gamma   float64 // Γ, unless anytime
	fixed   bool    // the level is the same in every round: lo
	lo, hi  float64 // the level √(2 log t) is between these …
	until   int     // … before this round
	rival   float64 // the highest index at hi of the arms that were not played last
	anytime bool

	counter bool // another counter: gamma is 0, and the means have its width at x added
	x       float64
	tail    privacy.Tail
	w       float64 // width of tail

	round int
	last  int
	m     []treeArm
	batch Batch
}

type treeArm struct{ mean, inv, root float64 } // r̃/n, 1/n, 1/√n

// NewDPUCB returns [Sajed 2019]'s DP-UCB for a number of arms ≥ 2, a horizon ≥ arms, a budget
// epsilon > 0 (+Inf: no privacy) and the failure probability beta in (0,1).
func NewDPUCB(arms, horizon int, epsilon, beta float64) (*DPUCB, error) {
	p, err := newDPUCB(arms, horizon, epsilon)
	if err == nil {
		err = checkRisk("beta", beta)
	}
	if err != nil {
		return nil, fmt.Errorf("dp-ucb: %w", err)
	}
	p.beta = beta
	p.gamma = p.width(float64(horizon))
	return p, nil
}

// NewDPUCBBase2 returns [Sajed 2019]'s DP-UCB with the logarithms of Γ to base 2; its parameters
// are those of NewDPUCB.
func NewDPUCBBase2(arms, horizon int, epsilon, beta float64) (*DPUCB, error) {
	p, err := NewDPUCB(arms, horizon, epsilon, beta)
	if err != nil {
		return nil, err
	}
	l := math.Log2(float64(horizon))
	p.gamma = l * l * math.Log2(float64(arms)*float64(horizon)*l/beta) / epsilon
	return p, nil
}

// NewDPUCBThesis returns the thesis' DP-UCB; its parameters are those of NewDPUCB.
func NewDPUCBThesis(arms, horizon int, epsilon float64) (*DPUCB, error) {
	p, err := newDPUCB(arms, horizon, epsilon)
	if err != nil {
		return nil, fmt.Errorf("dp-ucb-thesis: %w", err)
	}
	logT := math.Log(float64(horizon))
	l := math.Log(2) + 2*logT // log(2/δ)
	p.gamma = math.Sqrt(8) * math.Pow(logT, 1.5) * l / epsilon
	p.fixed, p.lo, p.hi = true, math.Sqrt(2*l), math.Sqrt(2*l)
	return p, nil
}

// NewDPUCBAnytime returns DP-UCB on the hybrid counter; its parameters are those of NewDPUCB.
func NewDPUCBAnytime(arms int, epsilon, beta float64) (*DPUCB, error) {
	p, err := newDPUCB(arms, arms, epsilon)
	if err == nil {
		err = checkRisk("beta", beta)
	}
	if err != nil {
		return nil, fmt.Errorf("dp-ucb-anytime: %w", err)
	}
	p.mech, p.beta, p.anytime = privacy.Hybrid{Scale: 2 / epsilon}, beta, true
	return p, nil
}

func newDPUCB(arms, horizon int, epsilon float64) (*DPUCB, error) {
	if err := checkArms(arms); err != nil {
		return nil, err
	}
	if err := checkHorizon(horizon, arms); err != nil {
		return nil, err
	}
	if err := checkPositive("epsilon", epsilon, true); err != nil {
		return nil, err
	}
	levels := bits.Len(uint(horizon-1)) + 1 // ⌈log₂T⌉ + 1
	p := &DPUCB{
		mech: privacy.Tree{Scale: float64(levels) / epsilon, Horizon: horizon},
		arms: arms, epsilon: epsilon, last: -1, m: make([]treeArm, arms),
	}
	p.batch.Plays = make([]Play, arms)
	return p, nil
}

// width is Γ for horizon t.
func (p *DPUCB) width(t float64) float64 {
	l := math.Log(t)
	return l * l * math.Log(float64(p.arms)*t*l/p.beta) / p.epsilon
}

// Mechanism implements Policy.
func (p *DPUCB) Mechanism() privacy.Mechanism { return p.mech }

// Next implements Policy.
func (p *DPUCB) Next(released privacy.Released) *Batch {
	if released.Len() == 0 {
		for a := range p.m {
			p.batch.Plays[a] = Play{Arm: a, Rounds: 1, Release: true}
		}
		p.round = p.arms
		return &p.batch
	}
	if p.last >= 0 {
		p.set(p.last, released, 0)
	} else {
		for a := range p.m {
			p.set(a, released, a)
		}
		p.batch.Plays = p.batch.Plays[:1]
	}
	p.round++
	p.last = p.choose()
	p.batch.Plays[0] = Play{Arm: p.last, Rounds: 1, Release: true}
	return &p.batch
}

// choose is the arm with the highest index in this round. All indices are linear in the level √(2
// log t), which grows slowly: in a window of rounds it stays between lo and hi. The arm played last
// stays as long as its index at lo is above every rival's at hi; an arm that leads at both ends
// leads in between; and only where the leaders differ is the logarithm worth its time.
func (p *DPUCB) choose() int {
	if p.anytime {
		t := float64(p.round)
		return p.leader(level(t), p.width(t))
	}
	switch {
	case p.round < p.until:
		if m := &p.m[p.last]; m.mean+float64(p.lo*m.root)+float64(p.gamma*m.inv) > p.rival {
			return p.last
		}
	case p.fixed:
		p.until = math.MaxInt
	default:
		p.until = p.round + p.round/64 + 1
		p.lo, p.hi = level(float64(p.round)), level(float64(p.until))
	}
	a := p.leader(p.lo, p.gamma)
	if !p.fixed && a != p.leader(p.hi, p.gamma) {
		a = p.leader(level(float64(p.round)), p.gamma)
	}
	p.rival = math.Inf(-1)
	for r := range p.m {
		if m := &p.m[r]; r != a {
			p.rival = max(p.rival, m.mean+float64(p.hi*m.root)+float64(p.gamma*m.inv))
		}
	}
	return a
}

func level(t float64) float64 { return math.Sqrt(2 * math.Log(t)) }

func (p *DPUCB) leader(level, gamma float64) int {
	best, top := 0, math.Inf(-1)
	for a := range p.m {
		m := &p.m[a]
		if index := m.mean + float64(level*m.root) + float64(gamma*m.inv); index > top {
			best, top = a, index
		}
	}
	return best
}

func (p *DPUCB) set(a int, released privacy.Released, i int) {
	inv := 1 / float64(released.N(i))
	sum := released.Sum(i)
	if p.counter {
		if t := released.Tail(); t != p.tail {
			p.tail, p.w = t, tailWidth(t, p.x)
		}
		sum += p.w
	}
	p.m[a] = treeArm{mean: sum * inv, inv: inv, root: math.Sqrt(inv)}
}
