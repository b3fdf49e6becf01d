package interval

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/sotto-dp/sotto/internal/words"
)

// A Word is what a Verdict comes to.
type Word string

// The words of a verdict, the strongest first.
const (
	Conclusive   Word = "conclusive"    // the leader is better than each other arm
	NoDifference Word = "no_difference" // no arm differs from the leader by more than the planned effect
	Ahead        Word = "ahead"         // an arm leads, and that may be chance
	NotYet       Word = "not_yet"       // rewards of fewer than two arms were released
)

// A Joint says that the decisions of an experiment are tossed with fixed shares, and that its arms are
// released together: joint batches, which Effect wants.
type Joint struct {
	Shares []float64 // by arm
	Plan   Plan
}

// share is that of an arm, 0 if there is none, of which no interval is known.
func (j *Joint) share(arm int) float64 {
	if arm >= len(j.Shares) {
		return 0
	}
	return j.Shares[arm]
}

// A NamedArm is an arm of a verdict.
type NamedArm struct {
	Name string
	Off  bool // it was removed, and cannot lead
	Sums
	// Before is, of an arm that joined joint batches while they ran, what had been released of each arm before its
	// own first batch: no comparison with it has that in it. It is nil of the others.
	Before []Sums
}

// together are what two arms are compared by, the first arm's first: what was released of both since the later of
// them joined.
func together(arms []NamedArm, a, b int) (x, y Sums) {
	x, y = arms[a].Sums, arms[b].Sums
	if before := arms[max(a, b)].Before; before != nil {
		x, y = x.less(before[a]), y.less(before[b])
	}
	return x, y
}

// less is what was released after others, of the same noise.
func (s Sums) less(before Sums) Sums {
	s.N, s.Sum = s.N-before.N, s.Sum-before.Sum
	s.Releases, s.Noises = s.Releases-before.Releases, s.Noises-before.Noises
	return s
}

// A Verdict is the answer of an experiment, as its page, report and replay have it. It follows from
// what was released and from the declaration, so it costs nothing. All numbers are in the units of
// rewards.
type Verdict struct {
	Word   Word   `json:"word"`
	Text   string `json:"text"` // in a sentence without its full stop
	Leader string `json:"leader,omitempty"`
	// Over are the other arms of which something was released, the best first.
	Over []Lead `json:"over"`
	// Within is how far any of these may be from the leader; null: not known
	Within *float64 `json:"within"`
	// Earned is null while there is an arm of which nothing is known, and where one joined joint batches.
	Earned *Earned `json:"earned"`
	// ConstantRates says that it is right only where each arm's mean stays the same.
	ConstantRates bool `json:"constant_rates"`
}

// A Lead is the leader against another arm.
type Lead struct {
	Arm      string      `json:"arm"`
	Interval *[2]float64 `json:"interval"` // of the leader's mean less this arm's
	Better   bool        `json:"better"`   // the leader is, surely
}

// Earned is what all decisions that were released have earned, less what they would have earned if
// each arm had got the same number of them: by the private means, and an interval. In joint batches it
// is of what was to be expected of the tosses.
type Earned struct {
	Estimate float64     `json:"estimate"`
	Interval *[2]float64 `json:"interval"`
}

// Told says whether there is anything to tell: shares that are equal by design earn nothing.
func (e *Earned) Told() bool { return e != nil && e.Interval[0] < e.Interval[1] }

// Text is what was earned, in a half sentence.
func (e *Earned) Text() string {
	lo, hi := words.Outward(e.Interval[0], e.Interval[1])
	return lo + " to " + hi + " against an even split"
}

// Assumes is what a verdict with ConstantRates says beside itself, in sentences; else nothing.
func (v Verdict) Assumes() string {
	if !v.ConstantRates {
		return ""
	}
	return "The verdict and differences assume that each arm's mean stays the same: where means change " +
		"while shares do, an arm may look better because it was given more often at better times."
}

// mostCompared is with how many other arms the leader is compared.
const mostCompared = 30

// Verdict is the answer for all arms of the table, in their order. Intervals hold at all times
// together with all others of the table, whichever arm leads. It is ever conclusive of an arm that some
// other arm equals or beats with probability 5 % at most: of constant means, or in joint batches, where
// means may change, one that the other equals or beats at every decision.
//
// Where arms joined joint batches while they ran, two arms are compared by what was released of both since the later of
// them joined, and all this holds from one that joins to the next; policy.Split.JoinAt has the proof, and what holds
// over the whole experiment. What was earned is not told then.
//
// Proof of the second, in joint batches. For each such arm b fix the other, a(b). Then b is conclusive only
// if it beats a(b), by Effect's test of one side at risk/K. Sum over b. Of two arms that is the interval
// itself.
//
// Proof of Earned. It is Σ_a (N_a − N/K)μ_a, the same for all μ_a less one number, here the leader's
// mean: so Σ_a (N/K − N_a)(μ_leader − μ_a), of which each term has its interval. In joint batches with
// shares q_a it is Σ_a (1/K − q_a) Σ_i (u_i(leader) − u_i(a)), over all N decisions i. Let a decision of an
// arm that is neither count 1 in the proof of Effect. Then one decision's mean is at most 1 + Qcδ_i ≤
// e^{Qcδ_i}, where Q = q_leader + q_a, so that all is proved with QΣδ_i over all N in the place of Σδ_i over
// the n that either arm was given: the ends of an interval for Σ_i δ_i are Effect's times n/Q. Of two arms
// Q = 1, and it is the same interval. Of more it is another, and what was earned may be missed with the
// risk of the differences once more. ∎
func (t Table) Verdict(arms []NamedArm) Verdict {
	out := Verdict{Word: NotYet, Over: []Lead{}, ConstantRates: t.Joint == nil}
	var ranked []int // the arms that something is known of, the best first
	for i, a := range arms {
		if a.N > 0 {
			ranked = append(ranked, i)
		}
	}
	mean := func(i int) float64 { return arms[i].Sum / float64(arms[i].N) }
	slices.SortStableFunc(ranked, func(i, j int) int { return cmp.Compare(mean(j), mean(i)) })
	at := slices.IndexFunc(ranked, func(i int) bool { return !arms[i].Off })
	if at < 0 {
		out.Text = "Not yet: nothing was released"
		return out
	}
	best, better, known, within := ranked[at], 0, 0, 0.0
	out.Leader = arms[best].Name
	others := slices.Delete(ranked, at, at+1)
	others = others[:min(len(others), mostCompared)]
	for _, i := range others {
		lead := Lead{Arm: arms[i].Name}
		if lead.Interval, lead.Better = t.lead(arms, best, i); lead.Interval != nil {
			known++
			within = max(within, -lead.Interval[0], lead.Interval[1])
		}
		if lead.Better {
			better++
		}
		out.Over = append(out.Over, lead)
	}
	all := len(arms) - 1
	if known > 0 && known == len(out.Over) {
		out.Within = &within
	}
	if known == all && !slices.ContainsFunc(arms, func(a NamedArm) bool { return a.Before != nil }) {
		out.Earned = t.earned(arms, best, others, out.Over)
	}
	switch {
	case len(out.Over) == 0:
	case better == all:
		out.Word = Conclusive
	case t.Joint != nil && known == all && t.Joint.Plan.Effect > 0 && within <= t.Joint.Plan.Effect*(t.Hi-t.Lo):
		out.Word = NoDifference
	default:
		out.Word = Ahead
	}
	out.Text = out.text(better, all)
	return out
}

// Conclusive is the place of the arm that the verdict is conclusive of, −1 if it is not: Verdict's word,
// and as a rule much sooner said where it is not.
func (t Table) Conclusive(arms []NamedArm) int {
	leader := -1
	for i, a := range arms {
		switch {
		case a.N == 0:
			return -1
		case !a.Off && (leader < 0 || a.Sum/float64(a.N) > arms[leader].Sum/float64(arms[leader].N)):
			leader = i
		}
	}
	for i := range arms {
		if leader < 0 || i != leader && !t.mayBeat(arms, leader, i) {
			return -1
		}
	}
	if t.Verdict(arms).Word != Conclusive {
		return -1
	}
	return leader
}

// mayBeat is false only if lead says that the first arm is not better: where there is no difference,
// the mixture of Effect, or the product of Difference at the mean of both, is not above its level.
func (t Table) mayBeat(arms []NamedArm, of, than int) bool {
	_, risk := t.risks()
	a, b := together(arms, of, than)
	k := float64(t.Arms)
	if t.Joint != nil {
		c, err := t.Joint.Plan.contest(a, b, t.Joint.share(of)/(t.Joint.share(of)+t.Joint.share(than)))
		if err != nil {
			return false
		}
		value, _ := c.value(a, b, 0)
		return value > -math.Log(risk/k)
	}
	mean := min(1, max(0, (a.Sum+b.Sum)/float64(a.N+b.N)))
	x, err := a.Against(mean)
	y, err2 := b.Against(mean)
	return err == nil && err2 == nil && x+y > -math.Log(risk/(k*(k-1)/2))
}

// Lead is an interval for the mean of one arm less that of another, one of those that Verdict tells of, nil as
// Mean is.
func (t Table) Lead(arms []NamedArm, of, than int) *[2]float64 {
	if arms[of].N == 0 || arms[than].N == 0 {
		return nil
	}
	d, _ := t.lead(arms, of, than)
	return d
}

// lead is an interval for the mean of one arm less that of another, and whether the one is better.
func (t Table) lead(arms []NamedArm, of, than int) (*[2]float64, bool) {
	a, b := together(arms, of, than)
	switch {
	case t.Joint == nil:
		d := t.Difference(a, b)
		return d, d != nil && d[0] > 0
	case a.N == 0 || b.N == 0:
		return nil, false
	}
	_, risk := t.risks()
	k, share := float64(t.Arms), t.Joint.share(of)/(t.Joint.share(of)+t.Joint.share(than))
	lo, hi, err := Effect(a, b, share, t.Joint.Plan, risk/(k*(k-1)/2))
	if err != nil {
		return nil, false
	}
	least, _, _ := Effect(a, b, share, t.Joint.Plan, 2*risk/k)
	width := t.Hi - t.Lo
	return &[2]float64{width * lo, width * hi}, least > 0
}

// earned is what the shares that were given have earned against equal ones, by the leads over the others.
func (t Table) earned(arms []NamedArm, best int, others []int, over []Lead) *Earned {
	n, k := 0.0, float64(len(arms))
	for _, a := range arms {
		n += float64(a.N)
	}
	out := &Earned{Interval: &[2]float64{}}
	for at, i := range others {
		less, scale := n/k-float64(arms[i].N), 1.0 // than an equal share
		width := t.Hi - t.Lo
		if t.Joint != nil {
			less = n * (1/k - t.Joint.share(i))
			scale = float64(arms[best].N+arms[i].N) / (t.Joint.share(best) + t.Joint.share(i)) / n
		}
		lead := arms[best].Sum/float64(arms[best].N) - arms[i].Sum/float64(arms[i].N)
		out.Estimate += float64(less * lead * width)
		lo, hi := over[at].Interval[0]*scale, over[at].Interval[1]*scale
		if over[at].Interval[0] <= -width { // which says nothing
			lo = -width
		}
		if over[at].Interval[1] >= width {
			hi = width
		}
		x, y := less*lo, less*hi
		out.Interval[0] += min(x, y)
		out.Interval[1] += max(x, y)
	}
	return out
}

// text is the verdict in a sentence.
func (v Verdict) text(better, all int) string {
	level := words.Number(100*Confidence) + " %"
	by := "" // of two arms
	if all == 1 && len(v.Over) == 1 && v.Over[0].Interval != nil {
		lo, hi := words.Outward(v.Over[0].Interval[0], v.Over[0].Interval[1])
		by = lo + " to " + hi
	}
	switch {
	case v.Word == NotYet:
		return "Not yet: nothing was released of a second arm"
	case v.Word == Conclusive && by != "":
		return fmt.Sprintf("%s is better than %s, by %s, at %s confidence", v.Leader, v.Over[0].Arm, by, level)
	case v.Word == Conclusive:
		return fmt.Sprintf("%s is better than each other arm, at %s confidence", v.Leader, level)
	case v.Word == NoDifference:
		_, most := words.Outward(0, *v.Within)
		return fmt.Sprintf("No arm differs from %s by more than %s, at %s confidence", v.Leader, most, level)
	case by != "":
		return fmt.Sprintf("%s is ahead, not yet conclusive: better than %s by %s, at %s confidence", v.Leader,
			v.Over[0].Arm, by, level)
	case better == 0:
		return v.Leader + " is ahead, not yet conclusive"
	}
	return fmt.Sprintf("%s is ahead, not yet conclusive: better than %d of %d others, at %s confidence",
		v.Leader, better, all, level)
}
