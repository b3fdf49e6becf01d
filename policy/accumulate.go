package policy

import (
	"fmt"
	"math"

	"github.com/sotto-dp/sotto/privacy"
)

// accumulation plays arms in batches that grow geometrically, and forgets nothing. Each finished
// batch of an arm releases the sum of its own rewards with a fresh Lap(1/ε), or the noise of
// another mechanism, and the noisy sums are added up: after m batches an arm's mean rests on all
// its n rewards and carries m noises.
// Every reward is in one release, so that privacy is that of the releases, by parallel
// composition [Azize 2024, Lemma 2.10].
//
// An arm's batches end at n_1 = first and n_{m+1} = max(n_m + 1, ⌈αn_m⌉) plays, the first ones of
// all arms together. A batch that the horizon cuts is not released.
//
// With first = 1 (the literal schedule) the early batches are of one reward and one noise each. One
// of them in a run of some hundred is bad enough to keep the best arm away for nearly all rounds:
// means over runs then have heavy tails. The cures, which cost no privacy, are a warm first batch,
// c/ε rewards in one release (a suboptimal arm needs log T/(εΔ) plays anyway), an index that
// knows of the noise, and caution: a factor of the index's logarithm (see DPIMED).
type accumulation struct {
	epsilon, alpha float64
	mech           privacy.Mechanism
	first          int
	noisy          bool    // the index knows of the noise: J instead of d_ε
	least          float64 // 1/scale of the widest noise that was met, epsilon or a little less
	caution        float64

	round int // rounds asked for so far
	arms  []accumulated
	batch Batch
}

type accumulated struct {
	plays int     // asked for so far
	n     float64 // rewards behind sum
	sum   float64 // noisy
	m     float64 // Laplace noises in it, of scale 1/epsilon at most
	v     float64 // variance of the normal noise in it
	mean  float64 // clipped to [0,1]
	off   bool    // never played again
}

// Warm first batches are of ⌈c/ε⌉ rewards, with these c.
const (
	warm      = 16
	warmNoisy = 8 // for the noise-aware index
)

// newAccumulation has first batches of ⌈c/ε⌉ if first is 0.
func newAccumulation(arms int, epsilon, alpha float64, first int, c float64) (accumulation, error) {
	if err := checkEpisodic(arms, epsilon, "alpha", alpha); err != nil {
		return accumulation{}, err
	}
	if err := checkRatio("alpha", alpha); err != nil {
		return accumulation{}, err
	}
	if first == 0 {
		first = max(1, roundsOf(c/epsilon))
	}
	if err := checkFirst(first); err != nil {
		return accumulation{}, err
	}
	p := accumulation{epsilon: epsilon, mech: privacy.Laplace{Scale: 1 / epsilon}, least: epsilon,
		alpha: alpha, first: first, noisy: c == warmNoisy, caution: 1, arms: make([]accumulated, arms)}
	p.batch.Plays = make([]Play, arms)
	return p, nil
}

// SetCaution sets what multiplies the logarithm in the index, at least 1: above 1 the regret has
// lighter tails (see DPIMED). Call it before the first Next.
func (p *accumulation) SetCaution(caution float64) error {
	if !(caution >= 1 && caution <= math.MaxFloat64) {
		return fmt.Errorf("caution is %v, must be finite and at least 1", caution)
	}
	p.caution = caution
	return nil
}

// Mechanism implements Policy.
func (p *accumulation) Mechanism() privacy.Mechanism { return p.mech }

// learn adds what the last batch released. It returns false before the first batch.
func (p *accumulation) learn(released privacy.Released) bool {
	if p.round == 0 {
		return false
	}
	for i := range min(released.Len(), len(p.batch.Plays)) {
		a, tail := &p.arms[p.batch.Plays[i].Arm], released.Tail()
		a.n += float64(released.N(i))
		a.sum += released.Sum(i)
		a.m += noises(released, i, &p.least)
		a.v += float64(tail.Sigma*tail.Sigma) + 2*float64(tail.H*tail.H) // H is 0 of normal noise
		if a.n > 0 {
			a.mean = min(1, max(0, a.sum/a.n))
		}
	}
	return true
}

// noises is how many Laplace noises sum i has, of a scale of 1/least at most. A server that is
// believed adds one, of the scale that the policy stated; that of others is as they say.
func noises(released privacy.Released, i int, least *float64) float64 {
	m, scale := released.Noises(i)
	if m == 0 || released.Laplace() {
		return 1
	}
	*least = min(*least, 1/scale)
	return m
}

// every asks for the first batch of each arm.
func (p *accumulation) every() *Batch {
	p.batch.Plays = p.batch.Plays[:0]
	for a := range p.arms {
		if p.arms[a].off {
			continue
		}
		p.arms[a].plays = p.first
		p.batch.Plays = append(p.batch.Plays, Play{Arm: a, Rounds: p.first, Release: true})
	}
	p.round = p.batch.Rounds()
	return &p.batch
}

// grow asks for arm a's next batch.
func (p *accumulation) grow(a int) *Batch {
	arm := &p.arms[a]
	n := Forever
	if next := p.End(a, arm.plays); next < Forever {
		n = next - arm.plays
		arm.plays = next
		p.round += n
	}
	p.batch.Plays = p.batch.Plays[:1]
	p.batch.Plays[0] = Play{Arm: a, Rounds: n, Release: true}
	return &p.batch
}

// logRound is log t, where t is the round about to be played.
func (p *accumulation) logRound() float64 { return math.Log(float64(p.round) + 1) }

// fewer says whether arm a goes before arm b where their indices are equal: fewer samples first.
func (p *accumulation) fewer(a, b int) bool { return p.arms[a].n < p.arms[b].n }

// grown is the next end of a batch after n plays, by ratio: max(n+1, ⌈ratio·n⌉), the product's
// rounding aside; Forever beyond all horizons.
func grown(n int, ratio float64) int {
	x := math.Ceil(float64(ratio*float64(n)) - 1e-9)
	if !(x < Forever/4) || n >= Forever/4 {
		return Forever
	}
	return max(n+1, int(x))
}
