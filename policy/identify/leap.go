package identify

import "math"

// contender is an arm that is not the leader, where the cost is f(m,n) = C(m,n) + γ log n, m the
// leader's plays and n its own.
type contender struct {
	arm    int
	pair   pair
	n, end float64
	log    float64 // γ log n
	low    float64 // a lower bound of the cost
	fresh  int     // the round in which it was the cost

	// Of leaps.
	level  float64 // a bound of its count at the target, from below
	at     float64 // where the tangent of f is that bounds it
	f      float64 // the cost there, and its derivatives
	dm, dn float64
	most   float64 // a bound of its count from above
	still  bool    // it is not played
	count  float64 // h
}

// A leap is lazily's jump: to a round shortly before the next end of a phase in which the counts
// are known for sure. It is for DEpsCost with or without γ log N. Its costs grow in both counts and
// are concave: C is an infimum of what is linear in them, and so is the logarithm, of its tangents.
//
// Let m go from m₀ to m₁, choose a level θ₁ and a slope τ, and let θ(m) = θ₁ − τ(m₁−m) and
//
//	h_a(m) = max(N_a(0), the number of j ≥ 0 with f_a(m,j) < θ(m)).
//
// Lemma. Suppose that each arm a either has ∂f_a/∂m ≤ τ at (m₀, h_a(m₁)), or f_a(·,N_a(0)) ≥ θ at
// both m₀ and m₁. If Σh_a(m) > ΣN_a before every play of a challenger up to some round, and Σh_a(m)
// = ΣN_a in that round, then N_a = h_a(m) there for every a.
//
// Proof. By (2) and (3) of the lemma of schedule it is enough that no h_a falls. In the second case
// f_a(·,N_a(0)) − θ is concave and at least 0 at both ends, thus between: h_a = N_a(0). In the
// first, let f_a(m,j) < θ(m) for a j ≤ h_a(m₁). ∂f_a/∂m falls in m, as f is concave, and grows in
// j, as the infimum's u moves towards the arm's mean. So it is at most τ at j from m₀ on, f_a(·,j)
// − θ falls, and what was below stays below. If it were so for a j > h_a(m₁) it would be for
// h_a(m₁) too, as f grows in j, and thus at m₁, where it is not. ∎
//
// How far Σh is ahead is known from the target alone. Where f ≥ θ is a convex set of (m,x), as f −
// θ is concave, and it lies above x ≥ x_a(m), h_a(m) the next integer: thus x_a is convex and above
// its tangent. With a tangent plane of f at a point near (m₁, x_a(m₁)), whose level at m₁ is x,
//
//	x_a(m) ≥ x − (m₁−m)(τ − ∂f/∂m)/(∂f/∂n).
//
// Let ρ be the sum of these slopes. A round with D plays of challengers to go to the target, which
// has S of them, is at most D·β/(1−β) + 1/(1−β) plays of the leader before it. So Σh is ahead of
// S−D for every D > (S − Σx + ρ/(1−β))/(1 − ρβ/(1−β)). The last rounds are counted one by one.
//
// Floating point finds f up to a relative η. The argmin that it finds has f less than 2η above the
// least. If h for θ−2η is ahead, and equal in the end to h for θ+4η, then the proof is right for
// what is computed too: the argmin of a round in which some N_a is below the first is below the
// second. So the plays are those of the greedy, whatever the rounding of a cost, up to η.
//
// leap returns by how many rounds it went; 0 if it found none that is worth it.
func (p *TopTwo) leap(lead *topArm, limit int) int {
	beta := p.parts.Beta
	least := leapLeast * len(p.arms)
	// The leader's phase must not end: it is played ⌊βl⌋+1 times in l rounds.
	room := float64(lead.own+lead.end-lead.plays-1)/beta - float64(lead.led) - 1
	target := int(min(float64(limit), room))
	sum := 0.0
	for i := range p.others {
		sum += p.others[i].n
	}
	p.aim(lead, sum, target)
	for range leapTries {
		if target < least {
			return 0
		}
		_, m, s := p.after(lead, sum, target)
		theta, ok := p.levels(m, s-float64(len(p.others))-0.5)
		if !ok {
			return 0
		}
		part := 1.0 // of the way to the target, on which no phase ends
		for i := range p.others {
			if c := &p.others[i]; c.level > c.end-1.5 {
				part = min(part, (c.end-1.5-c.n)/(c.level-c.n))
			}
		}
		if part < 1 {
			target = int(part * float64(target))
			for i := range p.others {
				c := &p.others[i]
				c.level = c.n + float64(part*(c.level-c.n))
			}
			continue
		}
		if rounds := p.settleAt(lead, sum, theta, target); rounds > 0 {
			return rounds
		}
		target /= 2
		p.aim(lead, sum, target)
	}
	return 0
}

// aim is where levels begins: all arms grow by one factor.
func (p *TopTwo) aim(lead *topArm, sum float64, target int) {
	_, _, s := p.after(lead, sum, target)
	for i := range p.others {
		p.others[i].level = p.others[i].n * (s / sum)
	}
}

const (
	leapLeast = 12 // rounds for each arm that are worth a leap
	leapTries = 8
	rounding  = 1e-12 // η, much more than what the costs are wrong by
)

// levels finds the level θ whose counts, for m plays of the leader, add up to s, and leaves them in
// the arms, as tangents have them. It is Newton's method, from the levels that are there.
func (p *TopTwo) levels(m, s float64) (theta float64, ok bool) {
	caution := p.caution()
	for range 12 {
		for i := range p.others {
			c := &p.others[i]
			c.at, c.still = c.level, false
			x, y := c.pair.at(m, c.at)
			c.f, c.dm, c.dn = float64(m*x)+float64(c.at*y), x, y
			if caution > 0 {
				c.f += float64(caution * math.Log(c.at))
				c.dn += caution / c.at
			}
			if !(c.dn > 0) {
				return 0, false
			}
		}
		// The lines' level; who would have to give plays back keeps them.
		for again := true; again; {
			again = false
			have, slope := s, 0.0
			for i := range p.others {
				if c := &p.others[i]; c.still {
					have -= c.n
				} else {
					have -= c.at - c.f/c.dn
					slope += 1 / c.dn
				}
			}
			theta = have / slope
			for i := range p.others {
				if c := &p.others[i]; !c.still && c.at+(theta-c.f)/c.dn <= c.n {
					c.still, again = true, true
				}
			}
		}
		near := true // what Newton's next step would change is below 1/8
		for i := range p.others {
			c := &p.others[i]
			if c.level = c.n; !c.still {
				c.level = c.at + (theta-c.f)/c.dn
			}
			near = near && float64((c.level-c.at)*(c.level-c.at)) < c.level/4
		}
		if !(theta < math.MaxFloat64) {
			return 0, false
		}
		if near {
			break
		}
	}
	return theta, true
}

// caution is γ, or 0 for no logarithm.
func (p *TopTwo) caution() float64 {
	if p.parts.LogCount {
		return p.parts.Caution
	}
	return 0
}

// settleAt goes to a round up to the target in which the lemma holds, and returns how many rounds
// that is; 0 if it finds none. The arms have the target's levels.
func (p *TopTwo) settleAt(lead *topArm, sum, theta float64, target int) int {
	beta := p.parts.Beta
	_, m1, s1 := p.after(lead, sum, target)
	m0 := float64(lead.plays)
	eta := float64(rounding * (1 + theta))
	tau := 0.0
	for i := range p.others {
		c := &p.others[i]
		if c.still = c.still && c.at == c.n && c.f > theta+8*eta; !c.still {
			c.most = math.Ceil(c.level) + 1
			x, _ := c.pair.at(m0, c.most)
			tau = max(tau, x)
		}
	}
	tau *= 1 + 1e-9
	start := theta - float64(tau*(m1-m0))
	ahead, rho, lost := 0.0, 0.0, 0.0
	for i := range p.others {
		c := &p.others[i]
		if ahead += c.level; !c.still {
			rho += max(0, (tau-c.dm)/c.dn)
			lost += 8 * eta / c.dn
		} else if !(p.cost(c, m0, c.n, c.log) > start+8*eta) {
			return 0
		}
	}
	slack := 1 - float64(rho*beta)/(1-beta)
	if !(slack > 0.1 && lost < 0.5) {
		return 0
	}
	behind := (s1 - ahead + 0.5 + rho/(1-beta)) / slack // D
	from := target - int((behind+1)/(1-beta)) - 2
	if from < target/2 {
		return 0
	}
	total := 0.0
	for i := range p.others {
		c := &p.others[i]
		c.count, c.low = c.n, math.Inf(-1)
		if !c.still {
			_, m, _ := p.after(lead, sum, from)
			c.count = max(c.n, math.Ceil(c.level-float64((m1-m)*((tau-c.dm)/c.dn)))-1)
		}
		total += c.count
	}
	for rounds := from; rounds <= target; rounds++ {
		x, m, s := p.after(lead, sum, rounds)
		level := theta - float64(tau*(m1-m))
		for i := range p.others {
			c := &p.others[i]
			for !c.still && c.low < level-2*eta && c.count <= c.most {
				if c.low = p.cost(c, m, c.count, p.logOf(c.count)); c.low < level-2*eta {
					c.count++
					total++
				}
			}
			if c.count >= c.end || !c.still && c.count > c.most {
				return 0
			}
		}
		switch {
		case total < s:
			return 0
		case total > s:
			continue
		}
		for i := range p.others {
			if c := &p.others[i]; !(p.cost(c, m, c.count, p.logOf(c.count)) > level+4*eta) {
				return 0
			}
		}
		for i := range p.others {
			c := &p.others[i]
			c.n, c.log, c.fresh = c.count, p.logOf(c.count), 0
		}
		lead.led += rounds
		lead.own += x
		lead.plays += x
		return rounds
	}
	return 0
}
