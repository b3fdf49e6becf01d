package page

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/sotto-dp/sotto/internal/words"
	"github.com/sotto-dp/sotto/interval"
	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/privacy"
)

// An Answer is what the head of a page says: which arm, how sure that is, and what it is worth. It follows
// from what was released alone.
type Answer struct {
	Head    string // in a few words
	Why     string // in a sentence
	Tone    string // good, wait or none, of its mark
	Control string // the declared fallback, or the first arm
	// Arm is compared with the control: the leader, or if that is the control the best other one. It is
	// empty before both were released.
	Arm      string
	Estimate *float64    // of the arm's mean less the control's; nil where they are compared since one joined
	Interval *[2]float64 // for it
	Rows     []Scored    // the goal, metrics and guards of the two
	Cells    []Scored    // the goal in each cell
}

// A Scored is a row of what an arm does to the goal, a metric or a guard.
type Scored struct {
	Name, Kind    string
	Control, Arm  *float64 // means
	Difference    *[2]float64
	Axis          axis   // of the difference, with 0 on it
	Says, Verdict string // of a guard, and whether a difference is sure: up, down or empty
}

// answerOf is the answer of an experiment with arms; nil of others.
func answerOf(info serve.Info, r *Summary) *Answer {
	if r.Verdict == nil {
		return nil
	}
	out := &Answer{Head: "No answer yet", Control: r.control}
	switch r.Verdict.Word {
	case interval.Conclusive:
		out.Head, out.Tone = r.Leader+" wins", "good"
	case interval.NoDifference:
		out.Head, out.Tone = "No difference that matters", "good"
	case interval.Ahead:
		out.Head, out.Tone = r.Leader+" is ahead, not yet conclusive", "wait"
	default:
		if r.Leader != "" {
			out.Head = "No answer yet: of " + r.Leader + " alone something was released"
		}
	}
	out.Why = r.Verdict.Text + "."
	if rest, more := strings.CutPrefix(r.Verdict.Text, out.Head); rest == "" {
		out.Why = "Its lead may still be chance."
	} else if more { // the head is not said twice
		rest = strings.TrimPrefix(rest, ": ")
		out.Why = strings.ToUpper(rest[:1]) + rest[1:] + "."
	}
	if out.Arm = r.Leader; r.Leader == r.control {
		out.Arm = ""
		if len(r.Verdict.Over) > 0 {
			out.Arm = r.Verdict.Over[0].Arm
		}
	}
	find := func(name string) int {
		return slices.IndexFunc(r.Arms, func(a ReportedArm) bool { return a.Name == name })
	}
	arm, control := find(out.Arm), find(r.control)
	if arm < 0 || control < 0 || r.Arms[control].Mean == nil || arm >= len(r.against) {
		out.Arm = ""
		return out
	}
	out.Interval = r.against[arm]
	if info.Arms[arm].Joined == nil && info.Arms[control].Joined == nil {
		x := *r.Arms[arm].Mean - *r.Arms[control].Mean
		out.Estimate = &x
	}
	out.score(r, arm, control)
	return out
}

// score has a row for the goal, each metric and each guard, if there are any of these.
func (a *Answer) score(r *Summary, arm, control int) {
	if r.Cells != nil {
		for _, m := range r.Cells.Each {
			if m.Verdict != nil {
				a.Cells = append(a.Cells, scored(m.Title(), "cell", m.Arms[control].Mean, m.Arms[arm].Mean,
					m.Arms[arm].DifferenceInterval, m.Range[1]-m.Range[0]))
			}
		}
		sameAxis(a.Cells)
	}
	if r.Metrics == nil && r.Guards == nil {
		return
	}
	a.Rows = append(a.Rows, scored(goalOf(r.decl), "goal", r.Arms[control].Mean, r.Arms[arm].Mean, a.Interval, r.hi-r.lo))
	if r.Metrics != nil {
		for _, m := range r.Metrics.Each {
			a.Rows = append(a.Rows, scored(m.Title(), "metric", m.Arms[control].Mean, m.Arms[arm].Mean,
				m.Arms[arm].DifferenceInterval, m.Range[1]-m.Range[0]))
		}
	}
	if r.Guards != nil {
		for _, g := range r.Guards.Each {
			for _, of := range g.Arms {
				if of.Arm == a.Arm {
					a.Rows = append(a.Rows, Scored{Name: g.Metric + " " + g.Bound, Kind: "guardrail",
						Says: of.State})
				}
			}
		}
	}
}

// sameAxis has all rows, which are of one unit, on the widest axis.
func sameAxis(rows []Scored) {
	for i := range rows {
		for _, other := range rows {
			if other.Difference != nil {
				rows[i].Axis.lo = min(rows[i].Axis.lo, other.Axis.lo)
				rows[i].Axis.hi = max(rows[i].Axis.hi, other.Axis.hi)
			}
		}
	}
}

func scored(name, kind string, control, arm *float64, d *[2]float64, width float64) Scored {
	out := Scored{Name: name, Kind: kind, Control: control, Arm: arm, Difference: d,
		Axis: axisOver(-width, width, []*[2]float64{d, {-width / 1e3, width / 1e3}})}
	switch {
	case d == nil:
	case d[0] > 0:
		out.Verdict = "higher"
	case d[1] < 0:
		out.Verdict = "lower"
	default:
		out.Verdict = "no sure difference"
	}
	return out
}

// Signed is a difference for reading, with its sign.
func signed(x float64, of *[2]float64) string {
	text := words.Fixed(x, decimalsOf(of))
	if of == nil {
		text = words.Number(x)
	}
	if x > 0 {
		text = "+" + text
	}
	return text
}

// spread is an interval of differences for reading, with its signs.
func spread(x *[2]float64) string {
	if x == nil {
		return "–"
	}
	lo, hi := words.Outward(x[0], x[1])
	for i, text := range []*string{&lo, &hi} {
		if x[i] > 0 {
			*text = "+" + *text
		}
	}
	return lo + " to " + hi
}

// weakest is the ε from which on a promise allows nearly all.
const weakest = 8

// allows says for people what a budget of a unit allows; empty where it is no ε.
func allows(b privacy.Budget, unit string) string {
	pure, ok := b.(privacy.Pure)
	if !ok {
		return ""
	}
	return oddsOf(pure.Epsilon, unit)
}

// oddsOf says what a finite ε above 0 allows.
func oddsOf(epsilon float64, unit string) string {
	if epsilon > weakest {
		return "This protects next to nothing: seeing everything that is published may turn a guess of 50 % about one " +
			unit + "’s outcome into more than 99.9 %."
	}
	factor, guess := words.Odds(epsilon)
	return "Seeing everything that is published changes the odds about one " + unit + "’s outcome by at most a factor of " +
		factor + ": a guess of 50 % becomes at most " + guess + " %."
}

// ranked has the arms by their means, the best first, those without one and those that were removed
// last: of many arms nobody looks for the leader. Of few they stay as they were declared.
func ranked(arms []Arm) []Arm {
	if len(arms) < many {
		return arms
	}
	out := slices.Clone(arms)
	slices.SortStableFunc(out, func(a, b Arm) int {
		rank := func(x Arm) float64 {
			if x.Mean == nil || x.Off {
				return math.Inf(-1)
			}
			return *x.Mean
		}
		return cmp.Compare(rank(b), rank(a))
	})
	return out
}

// many is from how many arms on charts show a leader among others, and not each by its colour.
const many = 5
