package serve

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/sotto-dp/sotto/interval"
	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/play"
)

// Whether decisions are split as they should be. Where a policy has shares (play.Joint) each arm is drawn,
// and counts by arm are held against them. Else the floor's coin is all that is drawn: what the policy plays
// follows from releases and from the order of decisions. So there is one law to hold counts against: of the
// decisions that have another arm from the policy, or this one from the coin, the coin's are a known
// share, whatever the policy plays and whoever comes. Who counts less often in one arm than in another,
// since its page breaks before it is activated, say, shows in that.
//
// All of it is public: who asks is told a decision's propensity, which says whether the coin chose. It depends
// on coins, on who came and on the plan, and so on rewards by releases alone.

// tosses are decisions that count and were made at one floor with the same arms on, by arm: those that the
// coin gave, and not the policy, and those that have what the policy plays.
type tosses struct {
	floor         float64
	off           []int // arms, in their order
	drawn, played []int
}

// coins are all tosses, by their terms.
type coins []tosses

// on are those on some terms.
func (c *coins) on(floor float64, off []int, arms int) *tosses {
	i := slices.IndexFunc(*c, func(t tosses) bool { return t.floor == floor && slices.Equal(t.off, off) })
	if i < 0 {
		i = len(*c)
		*c = append(*c, tosses{floor, off, make([]int, arms), make([]int, arms)})
	}
	return &(*c)[i]
}

// plus adds others, and changes none of those that there were.
func (c coins) plus(more coins) (out coins) {
	for _, all := range []coins{c, more} {
		for _, t := range all {
			to := out.on(t.floor, t.off, len(t.drawn))
			for a := range t.drawn {
				to.drawn[a] += t.drawn[a]
				to.played[a] += t.played[a]
			}
		}
	}
	return out
}

// append writes them behind the decisions of an hour: nothing where there is no floor.
func (c coins) append(to []byte) []byte {
	for _, t := range c {
		to = binary.BigEndian.AppendUint64(to, math.Float64bits(t.floor))
		to = binary.AppendUvarint(to, uint64(len(t.off)))
		for _, n := range slices.Concat(t.off, t.drawn, t.played) {
			to = binary.AppendUvarint(to, uint64(n))
		}
	}
	return to
}

func readCoins(b []byte, arms int) (out coins, err error) {
	for len(b) > 0 {
		var off [1]int
		if len(b) < 8 {
			return nil, errHours
		}
		floor := math.Float64frombits(binary.BigEndian.Uint64(b))
		if b, err = readDecisions(b[8:], off[:]); err != nil || off[0] >= arms || !(floor > 0 && floor < 1) {
			return nil, errHours
		}
		all := make([]int, off[0]+2*arms)
		if b, err = readDecisions(b, all); err != nil {
			return nil, err
		}
		n := off[0]
		out = append(out, tosses{floor, all[:n:n], all[n : n+arms : n+arms], all[n+arms:]})
	}
	return out, nil
}

// terms are those of now, from when they were seen first.
type terms struct {
	floor float64
	off   []int
	since int64
}

// coinOfNow has the coin's terms as they are now.
func (x *served) coinOfNow(now int64) *terms {
	var off []int
	for a, q := range x.board.queues {
		if q.Off {
			off = append(off, a)
		}
	}
	t := &x.hours.terms
	if t.floor != x.decl.Floor || !slices.Equal(t.off, off) {
		*t = terms{x.decl.Floor, off, now}
	}
	return t
}

// tossed counts a decision of an arm by the propensity that it was made with.
func (x *served) tossed(arm int, propensity float64, now int64) {
	t, n := x.coinOfNow(now), len(x.board.queues)
	if t.floor == 0 || x.decl.Contextual != nil {
		return
	}
	to := x.hours.coins.on(t.floor, t.off, n)
	if _, share := propensities(t.floor, n-len(t.off)); propensity == share {
		to.drawn[arm]++
	} else {
		to.played[arm]++
	}
}

// tossedOffer counts an offer that is activated, if it was made since the terms of now were seen first. Others are
// not looked at, whatever they are: which they are follows from the clock.
func (x *served) tossedOffer(r reported, now int64) {
	within := x.decl.ActivateWithin
	if within == 0 { // the window that it was made with, an hour at most
		within = min(time.Duration(r.deadline-r.by)*time.Millisecond, time.Hour)
	}
	if r.by-within.Milliseconds() > x.coinOfNow(now).since {
		x.tossed(r.arm, r.propensity, now)
	}
}

// A SampleRatio says whether decisions are split as they should be.
type SampleRatio struct {
	// Alarm: they are not. Where they are it is ever raised, whoever looks when, with probability
	// RatioRisk at most.
	Alarm bool `json:"alarm"`
	// Evidence is how many times as likely the counts are where decisions are split otherwise, 1 where
	// nothing speaks for either: above 1/RatioRisk it is an alarm.
	Evidence float64    `json:"evidence"`
	Says     string     `json:"says"`
	Arms     []RatioArm `json:"arms"` // none where nothing is drawn
}

// A RatioArm is how many decisions that count have an arm by the coin, and how many would.
type RatioArm struct {
	Arm      string  `json:"arm"`
	Drawn    int     `json:"drawn"`
	Expected float64 `json:"expected"`
}

// RatioRisk is the probability that SampleRatio ever raises an alarm though all is well.
const RatioRisk = 0.001

// SampleRatio says whether decisions are split as they should be; nil where there are contexts, since
// actions differ from decision to decision.
func (i *Info) SampleRatio() *SampleRatio {
	decl, c := &i.Experiment, i.coins
	if decl.Contextual != nil {
		return nil
	}
	out := &SampleRatio{Evidence: 1, Arms: []RatioArm{}}
	if tosses := i.drawn(); tosses != nil {
		if out.Says = "No decision was drawn yet."; slices.ContainsFunc(tosses[0], func(t interval.Tosses) bool {
			return t.Heads+t.Tails > 0
		}) {
			out.judge(decl, tosses, "the coin")
		}
		return out
	}
	if len(c) == 0 {
		if out.Says = "No decision was drawn by the floor's coin yet."; decl.Floor == 0 {
			out.Says = "The split of decisions cannot be checked: without a floor no arm is drawn by a coin."
		}
		return out
	}
	var tosses [][]interval.Tosses
	for a := range decl.Arms {
		var of []interval.Tosses
		for _, t := range c {
			if slices.Contains(t.off, a) {
				continue
			}
			most, share := propensities(t.floor, len(decl.Arms)-len(t.off))
			toss := interval.Tosses{Heads: t.drawn[a], P: share / (share + most)}
			for b, n := range t.played {
				if b != a {
					toss.Tails += n
				}
			}
			of = append(of, toss)
		}
		tosses = append(tosses, of)
	}
	out.judge(decl, tosses, "the floor's coin")
	return out
}

// drawn are by arm the decisions whose arm is drawn with shares, where a policy has them, under each set of shares
// that there was: those of a row that an arm joined after count when it was released. It is nil where the policy says
// what is played. A policy with shares has no floor.
func (i *Info) drawn() (out [][]interval.Tosses) {
	x := &i.Experiment
	if len(i.coins) > 0 || x.Floor > 0 {
		return nil
	}
	p, err := x.NewPolicy(decl.ZeroCoins{}) // as it was checked
	if _, joint := p.(play.Joint); err != nil || !joint {
		return nil
	}
	out = make([][]interval.Tosses, len(i.Arms))
	before := make([]ArmInfo, len(i.Arms))
	for arms := x.FirstArms(); arms <= len(i.Arms); arms++ {
		until, shares := i.Arms, x.SharesAfter(arms-x.FirstArms())
		if arms < len(i.Arms) {
			j := i.Arms[arms].Joined
			if j == nil {
				break
			}
			until = append(slices.Clone(j.Arms), make([]ArmInfo, len(i.Arms)-len(j.Arms))...)
		}
		all := 0
		for a := range arms {
			all += until[a].Decisions - before[a].Decisions
		}
		for a := range arms {
			heads := until[a].Decisions - before[a].Decisions
			out[a] = append(out[a], interval.Tosses{P: shares[a], Heads: heads, Tails: all - heads})
		}
		before = until
	}
	return out
}

// judge looks at what a coin gave of each arm.
func (r *SampleRatio) judge(decl *Experiment, tosses [][]interval.Tosses, coin string) {
	var all []float64
	worst := 0
	for a, of := range tosses {
		one := RatioArm{Arm: decl.Arms[a].Name}
		for _, t := range of {
			one.Drawn += t.Heads
			one.Expected += float64(float64(t.Heads+t.Tails) * t.P)
		}
		all = append(all, interval.Evidence(of))
		if r.Arms = append(r.Arms, one); all[a] > all[worst] {
			worst = a
		}
	}
	evidence := interval.Any(all)
	r.Evidence, r.Alarm = math.Exp(min(evidence, 700)), evidence >= -math.Log(RatioRisk)
	r.Says = r.says(r.Arms[worst], coin)
}

// countText is an expected count, whole where it is large.
func countText(x float64) string {
	if x >= 1000 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.4g", x)
}

func (r *SampleRatio) says(worst RatioArm, coin string) string {
	if r.Alarm {
		return fmt.Sprintf("Decisions are not split as they should be: %s gave %s to %d that count, "+
			"where %s are expected. By chance that ever happens with probability %v\u202f%% at most, however often you "+
			"look. Do not believe the means before you know why: look for visitors who do not count, such as "+
			"activations that are lost with one arm.", coin, worst.Arm, worst.Drawn, countText(worst.Expected), 100*RatioRisk)
	}
	var each []string
	for _, a := range r.Arms {
		each = append(each, fmt.Sprintf("%s %d times, %s expected", a.Arm, a.Drawn, countText(a.Expected)))
	}
	const most = 8
	if n := len(each); n > most {
		each = append(each[:most], fmt.Sprintf("and %d more arms", n-most))
	}
	return "Decisions are split as they should be, as far as their counts tell: " + coin + " gave " +
		strings.Join(each, "; ") + ". This check stays valid however often you look."
}
