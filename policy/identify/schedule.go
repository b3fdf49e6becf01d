package identify

import (
	"math"
	"sort"
)

// schedule is how a TopTwo gets from one end of a phase to the next, when all means stand still. A leader that leads for L rounds
// is played ⌊βL⌋+1 times (tracking), and a challenger in the others. The greedy, one challenger at a time, is what defines the
// counts; three things make it short.
//
//   - Where the cost is rate/(1/N_b + 1/N_a) the challenger is the argmax of (1 + N_b/N_a)/rate_a: a multiplication and an
//     addition an arm and round, a division a play, no logarithm.
//   - If some rate is 0 the lowest such arm challenges throughout: both counts have a closed form.
//   - The greedy forgets where it started. Of two states with equal sums, run side by side, the distance Σ|N_a − N'_a| never
//     grows, and it shrinks whenever a play goes to an arm that is behind the other state; so far from where they started the
//     counts are those of the level sets, N_a = max(N_a(0), N_b r_a/(v − r_a)) with r = 1/rate and v such that the counts add up.
//     A long batch jumps to the level set shortly before its end, and goes on from there by the greedy for long enough that each
//     arm is played many times again. Tests hold this against the greedy.
//
// For other costs the argmin is lazy: costs only grow with counts, so the last value seen of a cost is a lower bound of it, and
// the least bound, once brought up to date, is the least cost.
type schedule struct {
	rivals []rival
	jumps  bool // off: tests
}

// A rival is an arm that is not the leader.
type rival struct {
	r, q float64 // 1/rate, and that over n
	n    float64 // N_a
	// Of the jump.
	share float64 // r over the largest
	level float64

	arm int
	end float64

	low   float64 // of lazy: a lower bound of the cost
	fresh int     // the round in which it was the cost
}

func newSchedule(arms int) schedule { return schedule{rivals: make([]rival, arms-1), jumps: true} }

// advance plays at most limit rounds, led by arm b, and says whether a phase has ended with the last.
func (p *TopTwo) advance(b, limit int) (ended bool) {
	cost, ok := p.parts.Challenger.(harmonic)
	if !ok || p.parts.LogCount {
		return p.lazily(b, limit)
	}
	lead := &p.arms[b]
	rivals, zero := p.rivals[:0], -1
	for a := range p.arms {
		arm := &p.arms[a]
		if a == b {
			continue
		}
		rate := cost.rate(lead.Mean - arm.Mean)
		if !(rate > 1e-280) && zero < 0 { // nor does less than that count
			zero = a
		}
		n := float64(arm.plays)
		rivals = append(rivals, rival{arm: a, r: 1 / rate, q: 1 / rate / n, n: n, end: float64(arm.end)})
	}
	led := lead.led
	if p.parts.Coin == nil {
		switch {
		case zero >= 0:
			return p.alone(b, zero, limit)
		case p.jumps:
			limit -= p.jump(lead, limit)
		}
	}
	ended = p.greedy(lead, rivals, zero, limit)
	for i := range rivals {
		p.arms[rivals[i].arm].plays = int(rivals[i].n)
	}
	p.rounds += lead.led - led
	return ended
}

// greedy plays one round after the other.
func (p *TopTwo) greedy(lead *topArm, rivals []rival, zero, limit int) (ended bool) {
	beta, coin := p.parts.Beta, p.parts.Coin
	led, own, m, end := float64(lead.led), float64(lead.own), float64(lead.plays), float64(lead.end)
	for range limit {
		led++
		play := own <= float64(beta*led)
		if coin != nil {
			play = coin.Float64() < beta
		}
		if play {
			own++
			m++
			if m >= end {
				ended = true
				break
			}
			continue
		}
		best := 0
		if zero >= 0 {
			for rivals[best].arm != zero {
				best++
			}
		} else {
			top := rivals[0].r + float64(m*rivals[0].q)
			for i := 1; i < len(rivals); i++ {
				if v := rivals[i].r + float64(m*rivals[i].q); v > top {
					best, top = i, v
				}
			}
		}
		c := &rivals[best]
		c.n++
		c.q = c.r / c.n
		if c.n >= c.end {
			ended = true
			break
		}
	}
	lead.led, lead.own, lead.plays = int(led), int(own), int(m)
	return ended
}

// played is how often a leader has been played as such after l rounds as leader: it is played when N ≤ βl, so that N = ⌊βl⌋+1.
func (p *TopTwo) played(l int) int {
	if l == 0 {
		return 0
	}
	return int(math.Floor(float64(p.parts.Beta*float64(l)))) + 1
}

// alone is the greedy when arm c is the only challenger.
func (p *TopTwo) alone(b, c, limit int) (ended bool) {
	lead, other := &p.arms[b], &p.arms[c]
	needLead, needOther := lead.end-lead.plays, other.end-other.plays
	rounds := 1 + sort.Search(limit, func(i int) bool {
		x := p.played(lead.led+i+1) - lead.own
		return x >= needLead || i+1-x >= needOther
	})
	ended = rounds <= limit
	rounds = min(rounds, limit)
	x := p.played(lead.led+rounds) - lead.own
	lead.led += rounds
	lead.own += x
	lead.plays += x
	other.plays += rounds - x
	p.rounds += rounds
	return ended
}

// Rounds that are left to the greedy: at least settle for each arm, and enough for each arm that is played at all to be played
// slowest times.
const (
	settle  = 150
	slowest = 16
)

// jump goes from the rivals' counts to those of a level set some rounds before the next end of a phase, or limit, and returns by
// how many rounds; 0 if it is not far.
func (p *TopTwo) jump(lead *topArm, limit int) int {
	rivals := p.rivals
	least := settle * len(p.arms)
	if limit < 2*least {
		return 0
	}
	largest, sum := 0.0, 0.0
	for i := range rivals {
		largest = max(largest, rivals[i].r)
		sum += rivals[i].n
	}
	for i := range rivals {
		rivals[i].share = rivals[i].r / largest
	}
	own, m0 := lead.own, float64(lead.plays)
	after := func(rounds int) (x int, m, s float64) {
		x = p.played(lead.led+rounds) - own
		return x, m0 + float64(x), sum + float64(rounds-x)
	}
	// With v = largest·(1+t) a level is m·share/(1 − share + t).
	end := 1 + sort.Search(limit, func(i int) bool {
		_, m, s := after(i + 1)
		if m >= float64(lead.end) {
			return true
		}
		t := 0.0 // the largest at which some level is at its arm's end
		for i := range rivals {
			c := &rivals[i]
			t = max(t, float64(c.share*(1+m/c.end))-1)
		}
		return fill(rivals, m, t) <= s
	})
	end = min(end, limit)
	// How slowly an arm is played at the end.
	_, m, s := after(end)
	solve(rivals, m, s)
	slack := least
	for i := range rivals {
		if c := &rivals[i]; c.level > c.n {
			if c.level-c.n < 2*slowest {
				return 0
			}
			slack = max(slack, int(slowest*float64(end)/(c.level-c.n)))
		}
	}
	rounds := end - slack
	if rounds < least {
		return 0
	}
	x, m, s := after(rounds)
	solve(rivals, m, s)
	for i := range rivals {
		rivals[i].level = max(rivals[i].n, math.Floor(rivals[i].level))
		s -= rivals[i].level
	}
	if s < 0 || s > float64(2*len(rivals)) {
		return 0
	}
	for ; s > 0; s-- { // what rounding down has left
		best, top := 0, math.Inf(-1)
		for i := range rivals {
			c := &rivals[i]
			if v := float64(c.share * (1 + m/c.level)); v > top {
				best, top = i, v
			}
		}
		rivals[best].level++
	}
	for i := range rivals {
		if rivals[i].level >= rivals[i].end {
			return 0
		}
	}
	for i := range rivals {
		c := &rivals[i]
		c.n, c.q = c.level, c.r/c.level
	}
	lead.led += rounds
	lead.own += x
	lead.plays += x
	return rounds
}

// fill is the sum of the rivals' counts at level t.
func fill(rivals []rival, m, t float64) float64 {
	sum := 0.0
	for i := range rivals {
		c := &rivals[i]
		if d := 1 - c.share + t; float64(m*c.share) > float64(c.n*d) {
			sum += float64(m*c.share) / d
		} else {
			sum += c.n
		}
	}
	return sum
}

// solve finds the level set whose counts add up to s.
func solve(rivals []rival, m, s float64) {
	lo, hi := 0.0, 0.0
	for i := range rivals {
		hi = max(hi, float64(rivals[i].share*(1+m/rivals[i].n))-1)
	}
	for range 80 {
		t := lo + float64(0.5*(hi-lo))
		if t <= lo || t >= hi {
			break
		}
		if fill(rivals, m, t) > s {
			lo = t
		} else {
			hi = t
		}
	}
	for i := range rivals {
		c := &rivals[i]
		c.level = max(c.n, float64(m*c.share)/(1-c.share+hi))
	}
}

// lazily is advance for any cost.
func (p *TopTwo) lazily(b, limit int) (ended bool) {
	lead := &p.arms[b]
	beta, coin := p.parts.Beta, p.parts.Coin
	rivals := p.rivals[:0]
	for a := range p.arms {
		if a != b {
			rivals = append(rivals, rival{arm: a, low: math.Inf(-1)})
		}
	}
	from := lead.Sample
	for round := 1; round <= limit; round++ {
		p.rounds++
		lead.led++
		play := float64(lead.own) <= float64(beta*float64(lead.led))
		if coin != nil {
			play = coin.Float64() < beta
		}
		if play {
			lead.own++
			lead.plays++
			if lead.plays >= lead.end {
				return true
			}
			continue
		}
		from.N = float64(lead.plays)
		var c *rival
		for {
			best := 0
			for i := 1; i < len(rivals); i++ {
				if rivals[i].low < rivals[best].low {
					best = i
				}
			}
			if c = &rivals[best]; c.fresh == round {
				break
			}
			to := p.arms[c.arm].Sample
			to.N = float64(p.arms[c.arm].plays)
			c.low, c.fresh = p.parts.Challenger.Between(from, to), round
			if p.parts.LogCount {
				c.low += math.Log(to.N)
			}
		}
		arm := &p.arms[c.arm]
		arm.plays++
		if arm.plays >= arm.end {
			return true
		}
	}
	return false
}
