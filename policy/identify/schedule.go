package identify

import (
	"math"
	"sort"
)

// schedule is how a TopTwo gets from one end of a phase to the next, when all means stand still. A
// leader that leads for L rounds is played ⌊βL⌋+1 times (tracking), and a challenger in the others.
// The greedy, one challenger at a time, is what defines the counts; three things make it short.
//
//   - Where the cost is rate/(1/N_b + 1/N_a) the challenger is the argmax of (1 + N_b/N_a)/rate_a:
//     a multiplication and an addition an arm and round, a division a play, no logarithm.
//   - If some rate is 0 the lowest such arm challenges throughout: both counts have a closed form.
//   - A long batch jumps to a round shortly before its end in which the counts are known for sure,
//     and goes on by the greedy. The jump is exact, not an approximation:
//
// Write v_a(j;m) = r_a(1 + m/j), r = 1/rate, for the index of arm a at count j when the leader has
// m plays: the challenger is the argmax of v_a(n_a;m), v falls in j and grows in m. Fix ρ > 0, τ >
// 0 and let θ(m) = ρ + τm and
//
//	h_a(m) = max(N_a(0), the number of j ≥ 0 with v_a(j;m) > θ(m)).
//
// Lemma. Suppose that r_a ≤ ρ for all arms but some for which v_a(N_a(0);m) ≤ θ(m) at the first and
// the last m. If Σh_a(m) > ΣN_a before every play of a challenger up to some round, and Σh_a(m) =
// ΣN_a in that round, then N_a = h_a(m) there for every a.
//
// Proof. (1) No h_a falls. If r_a ≤ ρ, v_a(j;m) > θ(m) says (r_a/j − τ)m > ρ − r_a ≥ 0, and what is
// true of some m is true of all larger ones. For the others v_a(N_a(0);m) − θ(m) is linear in m, so
// that it is at most 0 throughout and h_a = N_a(0). (2) N ≤ h throughout. It is so at first. If it
// is so before a play and the sums differ, then some arm has N_a < h_a, and its index is above
// θ(m); then so is the largest index, whose arm c has N_c < h_c: N ≤ h after its play, and by (1)
// later. (3) N ≤ h and equal sums make them equal. ∎
//
// By how much Σh_a(m) is ahead of ΣN_a is at least g = Σ max(N_a(0), mr_a/(τm + ρ − r_a)) − ΣN_a.
// As a function of the round, with m replaced by the line below its stairs, g is concave between
// the rounds in which an arm's first term gives way to its second: for g ≥ 1 up to a round it is
// enough to look at those and at both ends. From there on rounds are counted one by one, without
// playing them, until the sums are equal: as Σh does not fall, ΣN cannot pass it unseen. Where the
// conditions fail the jump is shorter, or left to the greedy: for instance where a leader with few
// plays catches up, and the arm that it began with is played more than its share in the end, which
// is more than any level set says.
//
// All this is in real numbers. h is found by the greedy's own arithmetic, and is the same unless
// two indices differ by a rounding error.
//
// For other costs the argmin is lazy: costs only grow with counts, so the last value seen of a cost
// is a lower bound of it, and the least bound, once brought up to date, is the least cost. DP-TT's
// cost has a jump of its own (see leap.go).
type schedule struct {
	rivals []rival
	jumps  bool // off: tests

	// Of lazily.
	others []contender
	from   Sample // the leader's
	tilts  bool   // the cost is DEpsCost
}

// A rival is an arm that is not the leader.
type rival struct {
	r, q float64 // 1/rate, and that over n
	n    float64 // N_a
	// Of the jump.
	share float64 // r over the largest
	level float64 // the level set's count, then h_a

	arm int
	end float64
}

func newSchedule(arms int) schedule {
	return schedule{rivals: make([]rival, arms-1), others: make([]contender, 0, arms-1), jumps: true}
}

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
	if p.parts.Coin == nil && zero >= 0 {
		return p.alone(b, zero, limit)
	}
	for limit > 0 && !ended {
		rounds := limit
		if p.parts.Coin == nil && p.jumps {
			limit -= p.jump(lead, limit)
			rounds = min(limit, settle*len(p.arms))
		}
		ended = p.greedy(lead, rivals, zero, rounds)
		limit -= rounds
	}
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

// played is how often a leader has been played as such after l rounds as leader: it is played when
// N ≤ βl, so that N = ⌊βl⌋+1.
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

// settle is the least number of rounds, for each arm, that is worth a jump, and how many the greedy
// plays before the next one.
const settle = 50

// jump goes to a round before the next end of a phase, or limit, in which the lemma says what the
// counts are, and returns by how many rounds; 0 if there is none that is worth it.
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
	// The end, if counts are those of level sets: which need not be true, but says where to look.
	// With v = largest·(1+t) a level is m·share/(1 − share + t).
	end := 1 + sort.Search(limit, func(i int) bool {
		_, m, s := p.after(lead, sum, i+1)
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
	// An arm whose phase is about to end is in h before it is played: if it is in the way,
	// look further back.
	for back := len(p.arms); end-back >= least; back *= 2 {
		if rounds := p.land(lead, sum, largest, end-back); rounds > 0 {
			return rounds
		}
	}
	return 0
}

// after is the state after some rounds: the leader's plays as such since, all its plays, and
// the rivals' plays.
func (p *TopTwo) after(lead *topArm, sum float64, rounds int) (x int, m, s float64) {
	x = p.played(lead.led+rounds) - lead.own
	return x, float64(lead.plays + x), sum + float64(rounds-x)
}

// land jumps to a round before target in which the lemma holds, and returns how many rounds that
// is; 0 if it finds none. As counts only grow, no phase has ended before if none has by then.
func (p *TopTwo) land(lead *topArm, sum, largest float64, target int) int {
	rivals, beta := p.rivals, p.parts.Beta
	// The level set somewhat behind the target's plays gives ρ, the largest r of its arms, and τ:
	// there h, at most one an arm above the level set, has surely been caught up with.
	_, m, s := p.after(lead, sum, target)
	v := largest * (1 + solve(rivals, m, s-float64(len(p.arms))))
	rho := 0.0
	for i := range rivals {
		if c := &rivals[i]; c.level > c.n {
			rho = max(rho, c.r)
		}
	}
	if !(v > rho && rho > 0) {
		return 0
	}
	// The arms with r = ρ have h = ⌈ρ/τ⌉ all the time: ρ/τ halfway between integers keeps
	// rounding away from it.
	tau := rho / (math.Ceil(m*rho/(v-rho)) + 0.5)
	// By this g falls in a round near the target, so that it is above 0 some rounds before.
	fall := 1 - beta
	for i := range rivals {
		if c := &rivals[i]; c.level > c.n {
			d := float64(tau*m) + (rho - c.r)
			fall -= float64(beta * (c.r / d) * ((rho - c.r) / d))
		}
	}
	if !(fall > 0.01*(1-beta)) {
		return 0
	}
	from := target - int(float64(2*len(p.arms)+4)/fall)
	if from < settle*len(p.arms)/2 || !p.ahead(lead, sum, rho, tau, from) {
		return 0
	}
	// From here on count h, and see whether the plays catch up.
	for i := range rivals {
		rivals[i].level = rivals[i].n
	}
	total := sum
	for rounds := from; rounds <= target; rounds++ {
		x, m, s := p.after(lead, sum, rounds)
		theta := rho + float64(tau*m)
		for i := range rivals {
			c := &rivals[i]
			if rounds == from && c.r <= rho {
				if h := math.Floor(m*c.r/(float64(tau*m)+(rho-c.r))) - 1; h > c.level {
					total += h - c.level
					c.level = h
				}
			}
			for c.r+float64(m*(c.r/c.level)) > theta { // the index, in the greedy's arithmetic
				c.level++
				total++
			}
			if c.level >= c.end || c.r > rho && c.level > c.n {
				return 0
			}
		}
		switch {
		case m >= float64(lead.end) || total < s:
			return 0
		case total > s:
			continue
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
	return 0
}

// ahead says whether Σh_a is above the rivals' plays in all of the first rounds, and whether the
// arms with r above ρ are not in h at first. The leader has at least m(i) = plays + β(led+i) − own
// plays after i rounds, since it has ⌊β(led+i)⌋+1 of them as leader.
func (p *TopTwo) ahead(lead *topArm, sum, rho, tau float64, rounds int) bool {
	rivals, beta := p.rivals, p.parts.Beta
	base := float64(lead.plays) + float64(beta*float64(lead.led)) - float64(lead.own)
	enough := func(i float64) bool {
		m := base + float64(beta*i)
		g := m - float64(lead.plays) - i - sum
		for k := range rivals {
			c := &rivals[k]
			if h := m * c.r / (float64(tau*m) + (rho - c.r)); c.r <= rho && h > c.n {
				g += h
			} else {
				g += c.n
			}
		}
		return g >= 1
	}
	if !enough(0) || !enough(float64(rounds)) {
		return false
	}
	for k := range rivals {
		c := &rivals[k]
		if c.r > rho {
			if m := float64(lead.plays); c.r+float64(m*c.q) > rho+float64(tau*m) {
				return false
			}
			continue
		}
		// The round in which mr/(τm + ρ − r) = N(0).
		i := (float64(c.n*(rho-c.r))/(c.r-float64(tau*c.n)) - base) / beta
		if i > 0 && i < float64(rounds) && !enough(i) {
			return false
		}
	}
	return true
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

// solve finds the level set whose counts add up to s, and its t.
func solve(rivals []rival, m, s float64) float64 {
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
	return hi
}

// lazily is advance for any cost.
func (p *TopTwo) lazily(b, limit int) (ended bool) {
	p.gather(b)
	lead := &p.arms[b]
	led := lead.led
	for limit > 0 && !ended {
		rounds := limit
		if p.tilts && p.parts.Coin == nil && p.jumps {
			limit -= p.leap(lead, limit)
			rounds = min(limit, settle*len(p.arms))
		}
		ended = p.lazy(lead, rounds)
		limit -= rounds
	}
	for i := range p.others {
		p.arms[p.others[i].arm].plays = int(p.others[i].n)
	}
	p.rounds += lead.led - led
	return ended
}

// gather makes contenders of all arms but b, which leads.
func (p *TopTwo) gather(b int) {
	_, p.tilts = p.parts.Challenger.(DEpsCost)
	p.from, p.others = p.arms[b].Sample, p.others[:0]
	for a := range p.arms {
		if a == b {
			continue
		}
		arm := &p.arms[a]
		c := contender{arm: a, n: float64(arm.plays), end: float64(arm.end)}
		if p.tilts {
			c.pair = pairOf(p.from, arm.Sample)
		}
		c.log = p.logOf(c.n)
		p.others = append(p.others, c)
	}
}

// lazy plays one round after the other, by the lazy argmin.
func (p *TopTwo) lazy(lead *topArm, limit int) (ended bool) {
	beta, coin, others := p.parts.Beta, p.parts.Coin, p.others
	for i := range others {
		others[i].low, others[i].fresh = math.Inf(-1), 0
	}
	for round := 1; round <= limit; round++ {
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
		m := float64(lead.plays)
		var c *contender
		for {
			best := 0
			for i := 1; i < len(others); i++ {
				if others[i].low < others[best].low {
					best = i
				}
			}
			if c = &others[best]; c.fresh == round {
				break
			}
			c.low, c.fresh = p.cost(c, m, c.n, c.log), round
		}
		c.n++
		c.log = p.logOf(c.n)
		if c.n >= c.end {
			return true
		}
	}
	return false
}

// cost is what a challenger minimises, of counts m of the leader and n of the arm; log is of n.
func (p *TopTwo) cost(c *contender, m, n, log float64) float64 {
	if p.tilts {
		x, y := c.pair.at(m, n)
		return float64(m*x) + float64(n*y) + log
	}
	to := p.arms[c.arm].Sample
	p.from.N, to.N = m, n
	return p.parts.Challenger.Between(p.from, to) + log
}

// logOf is γ log n, or 0 for no logarithm.
func (p *TopTwo) logOf(n float64) float64 {
	if !p.parts.LogCount {
		return 0
	}
	return float64(p.parts.Caution * math.Log(n))
}
