package policy

import (
	"fmt"
	"math"

	"github.com/sotto-dp/sotto/privacy"
)

// Thompson is Thompson sampling: draw θ_a from each arm's posterior, after every reward, and play
// the arm with the largest. It is not private.
//
// NewThompson has a Beta(1,1) prior and rewards in [0,1], the sum S of n of them counted as S
// successes and n−S failures:
//
//	θ_a ~ Beta(1 + S_a, 1 + n_a − S_a).
//
// For Bernoulli rewards lim Reg_T / log T ≤ Σ Δ_a/kl(μ_a, μ*), the least there is (Kaufmann, Korda
// and Munos 2012; Agrawal and Goyal, AISTATS 2013). For other rewards the counts are pseudo-counts:
// Agrawal and Goyal instead toss a coin of the reward's mean, for which the bound is proved.
//
// NewThompsonGaussian has θ_a ~ N(S_a/(n_a+1), 1/(n_a+1)), with a regret of O(√(KT log K)) and O(Σ
// log T/Δ_a) for rewards in [0,1] (Agrawal and Goyal 2013).
//
// It asks for as many rounds of the arm that leads as it can decide without their rewards, so that
// a run of T rounds takes far fewer than T calls; the law of plays and rewards is that of a decision
// after every reward: see ahead.
type Thompson struct {
	// Unbounded says that rewards may leave [0,1] (a simulation without clipping): nothing is known
	// of a posterior before its rewards are, and batches are of one round.
	Unbounded bool

	coins Coins
	post  posterior
	tally
	ahead
}

// NewThompson returns Thompson sampling with Beta posteriors for at least two arms.
func NewThompson(arms int, coins Coins) (*Thompson, error) {
	return newThompson(arms, coins, &betaPosterior{coins, make([]betaShapes, max(arms, 0)+1)}, 35)
}

// NewThompsonGaussian returns Thompson sampling with Gaussian posteriors for at least two arms.
func NewThompsonGaussian(arms int, coins Coins) (*Thompson, error) {
	return newThompson(arms, coins, &normalPosterior{coins, make([]normalMoments, max(arms, 0)+1)}, 8)
}

// newThompson is given what a draw costs, in nanoseconds, about.
func newThompson(arms int, coins Coins, post posterior, cost float64) (*Thompson, error) {
	err := checkArms(arms)
	if err == nil {
		err = checkCoins(coins)
	}
	if err != nil {
		return nil, fmt.Errorf("thompson: %w", err)
	}
	for a := range arms {
		post.set(a, 0, 0)
	}
	return &Thompson{coins: coins, post: post, tally: newTally(arms), ahead: ahead{worst: arms,
		most: make([]float64, arms), must: make([]float64, arms), plain: cost*float64(arms) + 25, low: 0.125,
	}}, nil
}

// Mechanism implements Policy: Thompson sampling reads exact sums.
func (p *Thompson) Mechanism() privacy.Mechanism { return privacy.Exact{} }

// Next implements Policy: rounds of one arm, up to the first that may be another's or whose
// decision needs their rewards.
func (p *Thompson) Next(released privacy.Released) *Batch {
	last := -1
	if p.batch.Plays != nil {
		p.take(released)
		last = p.batch.Plays[0].Arm
		p.post.set(last, p.n[last], p.sum[last])
	}
	if p.Unbounded {
		return p.next(p.every(), 1)
	}
	rounds := 0.0
	switch {
	case p.stopped:
		p.stopped = false
		if a := p.settle(); a != p.leader {
			return p.next(a, 1)
		}
		rounds = 1
	case p.on && last != p.leader:
		p.rival(last)
	}
	if rounds == 0 && (!p.on || p.n[p.leader] >= p.renew) {
		if p.t >= p.retry {
			p.plan()
		}
		if !p.on {
			return p.next(p.every(), 1)
		}
	}
	return p.lead(rounds)
}

// every decides a round by drawing every θ.
func (p *Thompson) every() int {
	best, largest := 0, math.Inf(-1)
	for a := range p.n {
		if theta := p.post.draw(a); theta > largest {
			best, largest = a, theta
		}
	}
	return best
}

// ahead is what a stretch of rounds knows in which one arm leads and the rivals have the posteriors
// that they had. A round is decided in this order:
//
//  1. Every rival's θ is above c or not. Rivals are not played, so the chance that any is above
//     stays the same, and how many rounds pass before the next in which one is, is geometric.
//  2. Rivals that are above c get their θ, given that. Let x be the largest. The leader gets its θ,
//     and loses if that is below x.
//  3. If none is above c, the leader can lose only if its own θ is at most c, with probability F(c),
//     F its distribution function. Then it and the others get theirs, given that.
//
// The leader's posterior depends on rewards that are not known yet. But they lie in [0,1], so that
// its posterior after m more that are all 0, the worst, is the smallest that it can have within m
// rounds. So F(c) is at most a bound q on what F(c) were there: a uniform number above q decides the
// third step whatever the rewards are. In the second, the leader gets a θ of its worst posterior,
// together with one of the posterior that it will have, whose marginal law is that posterior, and
// which is above x if the worst one is (raise). So the batch goes on past all rounds that are
// decided for the leader, and ends where a rival may win: then the rewards are known, and with them
// whether it does.
//
// What the past tells of these draws is only that they decided as they did, and each round has draws
// of its own. So by induction every decision has, given the past, the law that drawing every θ
// gives it, and the run has the same law, up to the rounding of samplers and of distribution
// functions. c, q and m depend on releases alone: they change the cost, not the law.
//
// Chances need not be computed: of a bound on a rival's chance to be above c the surplus is drawn
// too, and does nothing.
type ahead struct {
	on     bool
	leader int
	c      float64
	quiet  float64   // −log q
	q      float64   // bounds the chance that the leader's θ is at most c
	most   []float64 // a rival's chance to be above c, as bounded; the leader's own place has q
	must   []float64 // the same, given that no arm before is marked, and one must be
	none   float64   // log of the chance that no arm is marked
	rivals float64   // Σ most over the rivals, when c was chosen
	gap    float64   // rounds before the next mark

	worst   int     // place of the leader's worst posterior
	until   float64 // rewards of that
	longest float64 // m, at most, as share of the leader's rewards
	renew   float64 // the leader's rewards at which c is chosen anew
	retry   float64 // round before which no c is looked for

	// A decision that waits for the rewards before it: the largest rival's θ, whose it is (−1: all
	// are below c), and the leader's θ of its worst posterior.
	stopped  bool
	winner   int
	x, theta float64

	plain float64 // cost of drawing each θ once, in nanoseconds, about
	low   float64 // marks of the leader, about, for each round that a rival may win
}

// lead returns the rounds of the leader up to the next decision that needs rewards. The first so
// many of them have been decided.
func (p *Thompson) lead(rounds float64) *Batch {
	for {
		n := p.n[p.leader]
		if n+rounds > p.until {
			if rounds > 0 {
				return p.next(p.leader, rounds)
			}
			m := min(p.post.patience(p.leader, p.c, p.quiet), math.Floor(p.longest*n))
			if !(m >= 0) {
				if p.plan(); !p.on {
					return p.next(p.every(), 1)
				}
				continue
			}
			p.until = n + m
			p.post.set(p.worst, p.until, p.sum[p.leader])
		}
		left := p.until + 1 - n - rounds
		if p.gap >= left {
			p.gap -= left
			return p.next(p.leader, rounds+left)
		}
		rounds += p.gap
		p.gap = p.skip()
		if p.mark() {
			if rounds > 0 {
				p.stopped = true
				return p.next(p.leader, rounds)
			}
			if a := p.settle(); a != p.leader {
				return p.next(a, 1)
			}
		}
		rounds++
	}
}

// skip draws how many rounds pass before the next mark.
func (p *Thompson) skip() float64 {
	return math.Floor(min(math.Log(1-p.coins.Float64())/p.none, longGap))
}

// mark looks at a round with a mark, and says whether its decision needs the leader's rewards.
func (p *Thompson) mark() bool {
	p.winner, p.x = -1, math.Inf(-1)
	low := false
	marked := false
	for a, chance := range p.most {
		if !marked {
			chance = p.must[a]
		}
		if !(p.coins.Float64() < chance) {
			continue
		}
		marked = true
		if a == p.leader {
			low = true
		} else if x, ok := p.post.above(a, p.c); ok && x > p.x {
			p.winner, p.x = a, x
		}
	}
	if p.winner < 0 {
		return low
	}
	p.theta = p.post.draw(p.worst)
	return p.theta < p.x
}

// settle decides a round that a rival may win, now that the rewards before it are known.
func (p *Thompson) settle() int {
	if p.winner >= 0 {
		if p.post.raise(p.leader, p.worst, p.theta) < p.x {
			return p.winner
		}
		return p.leader
	}
	if !(p.coins.Float64()*p.q < p.post.under(p.leader, p.c)) {
		return p.leader
	}
	best, largest := p.leader, p.post.below(p.leader, p.c)
	for a := range p.n {
		if a == p.leader {
			continue
		}
		theta := p.post.draw(a)
		for theta > p.c {
			theta = p.post.draw(a)
		}
		if theta > largest {
			best, largest = a, theta
		}
	}
	return best
}

// rival takes a rival's new posterior in.
func (p *Thompson) rival(a int) {
	p.most[a] = p.post.over(a, p.c)
	if p.on = p.marks(); p.on {
		p.gap = p.skip() // what has no mark so far says nothing of the rounds to come
	}
}

// marks adds the chances of a mark up. It is false if one of them is not below 1, or all of them
// have grown too much.
func (p *Thompson) marks() bool {
	sum, rest := -p.q, 0.0
	for a := len(p.most) - 1; a >= 0; a-- {
		chance := p.most[a]
		if !(chance < 1) {
			return false
		}
		sum += chance
		rest = chance + float64((1-chance)*rest)
		p.must[a] = chance / rest
	}
	p.none = math.Log1p(-rest)
	return p.none < 0 && sum <= 2*p.rivals+p.q
}

// plan looks for a leader and a c with which few rounds are marked and batches are long, and for
// none for a while if drawing each θ is cheaper.
func (p *Thompson) plan() {
	p.on = false
	lead, top := 0, math.Inf(-1)
	for a := range p.n {
		if mean, _ := p.post.spread(a); mean > top {
			lead, top = a, mean
		}
	}
	n := p.n[lead]
	const (
		atMark  = 60 // cost in nanoseconds, about
		atBatch = 150
		tries   = 7
	)
	cheapest := p.plain
	longest := n / 8
	for range tries {
		// what it costs if the leader may have this many zeros in a batch
		p.post.set(p.worst, n+longest, p.sum[lead])
		mean, sd := p.post.spread(p.worst)
		stops, blocks := p.chance(lead, mean), 1/(1+longest)
		c := mean - float64(math.Sqrt(-2*math.Log(min((stops+blocks)*p.low, 0.5)))*sd)
		cost := float64(2*atBatch*stops) + float64(atBatch*blocks) + float64(atMark*p.chance(lead, c))
		if cost < cheapest && c > 0 {
			cheapest, p.on = cost, true
			p.c, p.quiet, p.longest = c, p.post.quiet(p.worst, c), 2*longest/max(n, 1)
		}
		longest = math.Floor(longest / 3)
	}
	p.retry = p.t + max(16, math.Floor(p.t/32))
	if !p.on {
		return
	}
	p.leader, p.renew, p.until = lead, n+max(16, math.Floor(n/8)), -1
	p.q = math.Exp(-p.quiet)
	p.rivals = 0
	for a := range p.most {
		p.most[a] = p.q
		if a != lead {
			p.most[a] = p.post.over(a, p.c)
			p.rivals += p.most[a]
		}
	}
	if p.on = p.marks() && p.post.patience(lead, p.c, p.quiet) >= 0; p.on {
		p.gap = p.skip()
		p.retry = 0
	}
}

// chance is the chance that a rival is above c, about.
func (p *Thompson) chance(leader int, c float64) float64 {
	sum := 0.0
	for a := range p.n {
		if a != leader {
			mean, sd := p.post.spread(a)
			sum += math.Erfc((c-mean)/sd/math.Sqrt2) / 2
		}
	}
	return sum
}
