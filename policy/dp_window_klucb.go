package policy

import (
	"fmt"
	"math"

	"github.com/sotto-dp/sotto/internal/divergence"
	"github.com/sotto-dp/sotto/privacy"
)

// DPWindowKLUCB is DP-KLUCB for rewards whose means change: it forgets all that was released more
// than a window of W rounds ago. It is ours; without privacy it is the sliding-window idea of
// Garivier and Moulines, "On upper-confidence bound policies for switching bandit problems" (ALT
// 2011). It plays the arm with the highest
//
//	max{ q ∈ [0,1] : J_{m_a/N_a}(μ̃_a, q) ≤ log min(t, W) / N_a },
//
// where N_a are the arm's rewards in batches that ended in the last W rounds, m_a the noises in
// their sum, one of Lap(1/ε) a batch or as many as the releases say, and μ̃_a that noisy sum over
// N_a, clipped to [0,1] (divergence.DEpsNoisy). An arm that the window has forgotten has the
// index 1. A batch of an arm is of first rounds, or of a sixteenth of N_a if that is more: so a
// window of one arm has no more than about 16·log(W/first) noises, and none of them stands for
// more than a sixteenth of a window, or first rounds. At equal indices the arm with fewer samples
// goes first, then the lower.
//
// A window is a sum of batches that it has seen whole, so that nothing is released for it: for
// rewards in [0,1] it is ε-DP, each reward being in one release, whatever the window. (Running sums
// from a tree, whose differences would be windows too, cost each reward log₂T noises.) Nothing is
// proved here of its regret. For fixed t, N_a and m_a, and an arm that has not changed for W rounds,
// the chance that its index is below its mean is at most 1/min(t, W), as for NewDPKLUCBJ. How many
// samples a window has depends on rewards, and of that nothing is proved. After a change up to W
// rounds and a batch are lost. Played live it is given an arm's oldest decisions first: of an arm that it asks
// for seldom, and that a floor plays meanwhile, these may be from several windows before.
type DPWindowKLUCB struct {
	epsilon       float64
	least         float64 // 1/scale of the widest noise that was met
	window, first int

	clock int // rounds that have been released
	arms  []windowed
	batch Batch
}

// windowed is an arm, and the batches that its window has, oldest first.
type windowed struct {
	blocks    []block
	n, sum, m float64 // of all of them
	off       bool    // never played again
}

type block struct {
	end       int // the policy's clock when it was released
	n, sum, m float64
}

// slicesOfWindow is how many batches make a window, if they are all of one arm.
const slicesOfWindow = 16

// NewDPWindowKLUCB returns the policy for a number of arms ≥ 2, a budget epsilon > 0 (+Inf: no
// privacy), a window in rounds and an arm's shortest batch ≥ 1 in rounds; 0 means ⌈8/ε⌉. The window
// must hold at least two such batches of each arm.
func NewDPWindowKLUCB(arms int, epsilon float64, window, first int) (*DPWindowKLUCB, error) {
	fail := func(err error) (*DPWindowKLUCB, error) { return nil, fmt.Errorf("dp-window-klucb: %w", err) }
	if err := checkEpisodic(arms, epsilon, "window", float64(window)); err != nil {
		return fail(err)
	}
	if first == 0 {
		first = max(1, roundsOf(warm/2/epsilon))
	}
	if err := checkFirst(first); err != nil {
		return fail(err)
	}
	if least := 2 * float64(arms) * float64(first); float64(window) < least {
		return fail(fmt.Errorf("window is %d, must be at least %.0f: two batches of %d rounds of "+
			"each of %d arms",
			window, least, first, arms))
	}
	return &DPWindowKLUCB{epsilon: epsilon, least: epsilon, window: window, first: first,
		arms:  make([]windowed, arms),
		batch: Batch{Plays: make([]Play, 0, arms)}}, nil
}

// Mechanism implements Policy.
func (p *DPWindowKLUCB) Mechanism() privacy.Mechanism { return privacy.Laplace{Scale: 1 / p.epsilon} }

// Next implements Policy.
func (p *DPWindowKLUCB) Next(released privacy.Released) *Batch {
	for i := range min(released.Len(), len(p.batch.Plays)) {
		p.clock += released.N(i)
	}
	for i := range min(released.Len(), len(p.batch.Plays)) {
		a := &p.arms[p.batch.Plays[i].Arm]
		a.blocks = append(a.blocks, block{p.clock, float64(released.N(i)), released.Sum(i),
			noises(released, i, &p.least)})
	}
	if p.batch.Plays = p.batch.Plays[:0]; p.clock == 0 {
		for a := range p.arms {
			if !p.arms[a].off {
				p.batch.Plays = append(p.batch.Plays, Play{Arm: a, Rounds: p.first, Release: true})
			}
		}
		return &p.batch
	}
	best, top := 0, math.Inf(-1)
	for a := range p.arms {
		arm := &p.arms[a]
		arm.forget(p.clock - p.window)
		index := p.index(arm)
		if index > top || index == top && arm.n < p.arms[best].n {
			best, top = a, index
		}
	}
	n := max(p.first, int(p.arms[best].n/slicesOfWindow))
	p.batch.Plays = append(p.batch.Plays, Play{Arm: best, Rounds: n, Release: true})
	return &p.batch
}

func (p *DPWindowKLUCB) index(a *windowed) float64 {
	switch {
	case a.off:
		return math.Inf(-1)
	case a.n == 0:
		return 1
	}
	level := math.Log(float64(min(p.clock, p.window)))
	return divergence.DEpsNoisyUpper(min(1, max(0, a.sum/a.n)), level/a.n, p.least, a.m/a.n)
}

// forget drops what ended at this time or before, and adds up what is left: from scratch, so that
// nothing of what is forgotten stays in the last digits.
func (a *windowed) forget(before int) {
	i := 0
	for i < len(a.blocks) && a.blocks[i].end <= before {
		i++
	}
	a.blocks = append(a.blocks[:0], a.blocks[i:]...)
	a.n, a.sum, a.m = 0, 0, 0
	for _, b := range a.blocks {
		a.n += b.n
		a.sum += b.sum
		a.m += b.m
	}
}

// BearsMore says that a batch may bring more rewards than it asked for.
func (p *DPWindowKLUCB) BearsMore() bool { return true }

// AddArm adds an arm, the one after the last, and withdraws the batch that is out (play.Grower). The
// window must have room for two batches of it, too. What is said of an index is said of its own too.
func (p *DPWindowKLUCB) AddArm() error {
	if least := 2 * float64(len(p.arms)+1) * float64(p.first); float64(p.window) < least {
		return fmt.Errorf("window is %d, must be at least %.0f for one arm more: two batches of %d rounds of each",
			p.window, least, p.first)
	}
	p.arms, p.batch.Plays = append(p.arms, windowed{}), p.batch.Plays[:0]
	return nil
}

// Drop takes an arm off for good, and withdraws the batch that is out.
func (p *DPWindowKLUCB) Drop(arm int) { p.arms[arm].off, p.batch.Plays = true, p.batch.Plays[:0] }
