package policy

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// draws plays Thompson's game, "draw θ from each arm's Beta law, the largest is played", many
// rounds at a time. The laws stay the same except for a slow growth with the round, and one arm wins
// nearly always; the rounds in which it may not are found without drawing the others.
//
// For any c, the leader wins a round in which its θ is above c and all others are below. So only
// rounds in which some θ is on its rare side of c need to be looked at: how many are skipped before
// the next is geometric, and there the rare ones are drawn from their laws beyond c. For rounds
// from one to another the probability of each rare side is bounded by that at one end, as laws only
// grow, and a rare side is kept with the ratio of its probability in its round to the bound. All of
// this is exact: the arms of the rounds have the joint law that drawing each θ in each round gives
// them, up to the rounding of distribution functions.
//
// Laws Beta(O+1, 1), of arms whose optimism is at its cap, are drawn as one: the largest θ of them
// is Beta(Σ(O+1), 1), and whose it is has probability proportional to O+1 and does not depend on
// its value (they are minima of exponential variables).
type draws struct {
	coins Coins
	// shapes ≥ 1; the law grows stochastically with t
	posterior func(arm int, logT float64) (alpha, beta float64)
	arms      int
	round     int // of the next decision

	until  int // what follows holds before this round
	units  []unit
	group  []int     // arms at their cap
	weight []float64 // Σ(O+1) over the group up to each
	leader int       // unit
	c      float64
	none   float64 // log of the probability that no θ is on its rare side, as bounded
	gap    int     // rounds until the next that must be looked at
	direct bool    // the leader is not clear: draw each θ in each round

	kept, more int // a decision that was handed back: arm and rounds; more = 0: none
	drawn      []float64
	rare       []bool
}

// A unit is an arm, or all arms at their cap.
type unit struct {
	arm  int     // −1: the group
	a, b float64 // shapes of the group
	// bounds on the probability of the rare side of c: below for the leader, above for the others
	most    float64
	least   float64
	rest    float64 // probability that a unit from this one on is rare, as bounded
	mean, s float64
}

const (
	longGap = min(1<<40, math.MaxInt/4)
	seldom  = 0.1
	often   = 0.7 // above this chance of a rare round, drawing is cheaper than looking
)

// changed says that a law has changed.
func (d *draws) changed() { d.until, d.more = 0, 0 }

// back takes a decision back, to be the next.
func (d *draws) back(arm, n int) {
	d.kept, d.more = arm, n
	d.round -= n
}

// next decides: these rounds are all of this arm.
func (d *draws) next() (arm, n int) {
	if d.more > 0 {
		arm, n = d.kept, d.more
		d.more = 0
		d.round += n
		return arm, n
	}
	if d.round >= d.until {
		d.prepare()
	}
	lead := &d.units[d.leader]
	switch {
	case d.direct:
		arm, n = d.all(), 1
	case d.gap == 0:
		arm, n = d.look(), 1
		d.gap = d.skip()
	case lead.arm < 0 && len(d.group) > 1:
		arm, n = d.member(), 1
		d.gap--
	default:
		arm, n = d.name(d.leader), min(d.gap, d.until-d.round)
		d.gap -= n
	}
	d.round += n
	return arm, n
}

// prepare fixes units, the leader, c and the bounds for a stretch of rounds.
func (d *draws) prepare() {
	d.until = d.round + 1 + d.round/16
	if d.until >= Forever/4 {
		d.until = Forever
	}
	now, then := math.Log(float64(d.round)), math.Log(float64(d.until-1))
	d.units, d.group, d.weight = d.units[:0], d.group[:0], d.weight[:0]
	total := 0.0
	for a := range d.arms {
		if alpha, beta := d.posterior(a, now); beta == 1 {
			total += alpha
			d.group, d.weight = append(d.group, a), append(d.weight, total)
		} else {
			d.units = append(d.units, unit{arm: a})
		}
	}
	if total > 0 {
		d.units = append(d.units, unit{arm: -1, a: total, b: 1})
	}
	if len(d.drawn) < len(d.units) {
		d.drawn, d.rare = make([]float64, d.arms), make([]bool, d.arms)
	}
	d.leader = 0
	for i := range d.units {
		u := &d.units[i]
		a, b := d.law(u, now)
		u.mean = a / (a + b)
		u.s = math.Sqrt(u.mean * (1 - u.mean) / (a + b + 1))
		if u.mean > d.units[d.leader].mean {
			d.leader = i
		}
	}
	lead := &d.units[d.leader]
	d.c = 0
	for i := range d.units {
		if u := &d.units[i]; i != d.leader {
			d.c = max(d.c, (lead.mean*u.s+u.mean*lead.s)/(lead.s+u.s))
		}
	}
	d.none = 0
	for i := len(d.units) - 1; i >= 0; i-- {
		u := &d.units[i]
		if i == d.leader {
			u.most, u.least = d.chance(i, now), d.chance(i, then)
		} else {
			u.least, u.most = d.chance(i, now), d.chance(i, then)
		}
		d.none += math.Log1p(-u.most)
		u.rest = -math.Expm1(d.none)
	}
	d.direct = !(-d.none < often)
	if !d.direct {
		d.gap = d.skip()
	}
}

// skip draws how many rounds pass before one that must be looked at.
func (d *draws) skip() int {
	u := d.coins.Float64()
	if !(d.none < 0) {
		return longGap
	}
	return int(min(math.Log1p(-u)/d.none, longGap))
}

// law are a unit's shapes.
func (d *draws) law(u *unit, logT float64) (a, b float64) {
	if u.arm < 0 {
		return u.a, u.b
	}
	return d.posterior(u.arm, logT)
}

// chance is the probability of a unit's rare side of c.
func (d *draws) chance(i int, logT float64) float64 {
	a, b := d.law(&d.units[i], logT)
	if i == d.leader {
		return betaAbove(b, a, 1-d.c, d.c)
	}
	return betaAbove(a, b, d.c, 1-d.c)
}

// look decides a round in which, by the bounds, some unit is on its rare side.
func (d *draws) look() int {
	logT := math.Log(float64(d.round))
	any, kept := false, 0
	for i := range d.units {
		u := &d.units[i]
		p := u.most
		if !any { // one must be, if none was before
			p /= u.rest
		}
		d.rare[i] = d.coins.Float64() < p
		if !d.rare[i] {
			continue
		}
		any = true
		// By the bound it is; is it?
		if x := float64(d.coins.Float64() * u.most); x >= u.least && x >= d.chance(i, logT) {
			d.rare[i] = false
		} else {
			kept++
		}
	}
	if kept == 0 {
		return d.name(d.leader)
	}
	best, largest := d.leader, math.Inf(-1)
	for i := range d.units {
		var theta float64
		switch {
		case d.rare[d.leader] && kept > 1 && (i == d.leader || !d.rare[i]): // below c, and another is above
			continue
		case !d.rare[d.leader] && i != d.leader && !d.rare[i]: // below c, and the leader is above
			continue
		case i != d.leader && !d.rare[i] || i == d.leader && d.rare[i]:
			theta = d.below(i, logT)
		default:
			theta = d.above(i, logT)
		}
		if theta > largest {
			best, largest = i, theta
		}
	}
	return d.name(best)
}

// all decides a round by drawing every θ.
func (d *draws) all() int {
	logT := math.Log(float64(d.round))
	best, largest := 0, math.Inf(-1)
	for i := range d.units {
		a, b := d.law(&d.units[i], logT)
		if theta := d.theta(a, b); theta > largest {
			best, largest = i, theta
		}
	}
	return d.name(best)
}

func (d *draws) theta(a, b float64) float64 {
	if b == 1 {
		return math.Exp(math.Log1p(-d.coins.Float64()) / a)
	}
	return d.coins.Beta(a, b)
}

// name is the arm of a unit that has won.
func (d *draws) name(i int) int {
	if a := d.units[i].arm; a >= 0 {
		return a
	}
	return d.member()
}

// member draws which arm of the group has the largest θ.
func (d *draws) member() int {
	if len(d.group) == 1 {
		return d.group[0]
	}
	x := d.coins.Float64() * d.weight[len(d.weight)-1]
	i := 0
	for x >= d.weight[i] && i < len(d.group)-1 {
		i++
	}
	return d.group[i]
}

// above draws a unit's θ given that it is above c, its rare side unless it is the leader.
func (d *draws) above(i int, logT float64) float64 {
	a, b := d.law(&d.units[i], logT)
	x, _ := drawAbove(d.coins, a, b, d.c, 1-d.c, i == d.leader || d.units[i].most > seldom)
	return x
}

// below draws a unit's θ given that it is below c, its rare side if it is the leader.
func (d *draws) below(i int, logT float64) float64 {
	a, b := d.law(&d.units[i], logT)
	_, x := drawAbove(d.coins, b, a, 1-d.c, d.c, i != d.leader || d.units[i].most > seldom)
	return x
}

// betaAbove is P(θ > c) for θ ~ Beta(a,b), a, b ≥ 1; c1 is 1−c.
func betaAbove(a, b, c, c1 float64) float64 {
	switch {
	case b == 1:
		return -math.Expm1(a * math.Log1p(-c1))
	case a == 1:
		return math.Exp(b * math.Log(c1))
	}
	return mathext.RegIncBeta(b, a, c1)
}

// drawAbove draws θ ~ Beta(a,b), a, b ≥ 1, given θ > c; c1 is 1−c. It returns θ and 1−θ. frequent
// says that this is not a rare event, so that draws from the whole law will soon make it.
func drawAbove(coins Coins, a, b, c, c1 float64, frequent bool) (x, x1 float64) {
	switch {
	case b == 1: // θ = U^{1/a}
		x = math.Exp(math.Log1p(-coins.Float64()*betaAbove(a, b, c, c1)) / a)
		return x, 1 - x
	case frequent:
		for {
			if x = coins.Beta(a, b); x > c {
				return x, 1 - x
			}
		}
	}
	for {
		if x, x1, ok := tangentDraw(coins, a, b, c, c1); ok {
			return x, x1
		}
	}
}

// tangentDraw draws θ from the exponential law on [c,1] that touches the density of Beta(a,b), a, b
// ≥ 1, at c, and keeps it with the ratio of the two: the density is log-concave, so the tangent of
// its logarithm is above it. What is kept has the law of θ given θ > c. It returns θ and 1−θ.
func tangentDraw(coins Coins, a, b, c, c1 float64) (x, x1 float64, kept bool) {
	s := (a-1)/c - (b-1)/c1
	tail := -math.Expm1(s * c1) // of e^{s(x−c)}, if s < 0
	for {
		u := coins.Float64()
		var y float64 // x − c
		switch {
		case math.Abs(s*c1) < 1e-9:
			y = u * c1
		case s < 0:
			y = math.Log1p(-u*tail) / s
		default: // from the other end, so that nothing overflows
			y = c1 + math.Log1p(u*math.Expm1(-s*c1))/s
		}
		if y >= 0 && y < c1 {
			kept = math.Log1p(-coins.Float64()) <=
				float64((a-1)*math.Log1p(y/c))+float64((b-1)*math.Log1p(-y/c1))-float64(s*y)
			return c + y, c1 - y, kept
		}
	}
}
