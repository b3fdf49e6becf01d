package page

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sotto-dp/sotto/internal/report"
	"github.com/sotto-dp/sotto/internal/words"
	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/live/serve"
)

// Of an experiment with contexts a page has nothing by action: which ones there are differs from
// decision to decision, and is the product's.

// Contexts is what an experiment has in the place of arms.
type Contexts struct {
	Apprentice bool    `json:"apprentice,omitempty"` // the first action is given, but for the floor
	Actions    int     `json:"actions"`              // of a decision at most
	Dim        int     `json:"dim"`                  // components of a vector
	Norm       float64 `json:"norm"`                 // what its blocks are divided by
	Releases   int     `json:"releases"`
	Rules      []Rule  `json:"rules"`
	// Gain is what the policy would have won over the first action, a decision; nil unless there
	// are rules for both.
	Gain *Gain `json:"gain,omitempty"`
	// Best is the same over the best of the rules that do not play as the policy; nil without such rules.
	Best *Gain `json:"best,omitempty"`
	// Effects is what matters, by what was learnt; nil while nobody knows.
	Effects *Effects `json:"effects,omitempty"`
	// Left says how much is to come.
	Left string `json:"-"`
	// Protects says first what is protected, and what is not.
	Protects string `json:"-"`
}

// learnt is kept in the place of an arm.
const learnt = decl.KeepPolicy

// What is protected, in the first sentence of a page.
const (
	rewardsAlone = "Rewards alone are protected: contexts, features, ids of actions and what was decided are " +
		"used as they come, and may be seen."
	contextsToo = "Contexts, features and rewards are protected, from all others: what they are given, and what " +
		"is shown here, depends on a decision's by released noisy %s alone. What is given is chosen by the " +
		"context of whoever is given it."
)

// A Rule is another way to choose, with what it would have earned a decision.
type Rule struct {
	Name     string      `json:"name"`
	Plays    string      `json:"plays"` // in words
	Clip     float64     `json:"clip"`
	Budget   string      `json:"budget"`
	Released int         `json:"released"` // decisions
	Estimate *float64    `json:"estimate"` // noisy; null before the first release
	Interval *[2]float64 `json:"interval"`
	// Low: weights are clipped, so that the estimate may be too low, and of the interval the lower
	// end alone holds.
	Low bool `json:"low,omitempty"`
}

// A Gain is a difference of two rules.
type Gain struct {
	Of       string      `json:"of"`   // the rule that plays as the policy
	Over     string      `json:"over"` // and that which plays the first action
	Estimate *float64    `json:"estimate"`
	Interval *[2]float64 `json:"interval"`
	// Low: the estimate may be too low, as that of the policy's rule may. The interval allows for it.
	Low bool `json:"low,omitempty"`
}

// Text is the estimate with its sign, in two digits of its interval's half width.
func (g *Gain) Text() string {
	if g.Estimate == nil {
		return "–"
	}
	text := words.Fixed(*g.Estimate, decimalsOf(g.Interval))
	if *g.Estimate > 0 {
		text = "+" + text
	}
	if g.Low {
		text += " or more"
	}
	return text
}

// Head says in a few words whether the policy has won.
func (g *Gain) Head() string {
	switch {
	case g.Interval == nil:
		return "No answer yet"
	case g.Interval[0] > 0:
		return "The policy wins"
	case g.Interval[1] < 0:
		return "The policy loses"
	case *g.Estimate > 0:
		return "The policy is ahead, not yet conclusive"
	}
	return "The policy is not ahead"
}

// Effects are of single features on the mean reward, the largest first.
type Effects struct {
	Each []Effect `json:"each"`
	Says string   `json:"says"` // what they are, and what their intervals suppose
}

// An Effect is of a value against another; Interval is null where nothing is proved of it.
type Effect struct {
	Name     string      `json:"name"`
	Against  string      `json:"against,omitempty"`
	Mean     float64     `json:"mean"`
	Interval *[2]float64 `json:"interval"`
	Sure     string      `json:"sure,omitempty"` // raises or lowers, if the interval says so
}

// mostEffects is how many a page has.
const mostEffects = 16

// effectsOf are those of an experiment as of its last release; nil while there are none.
func effectsOf(ctx context.Context, e *serve.Engine, info serve.Info) (*Effects, error) {
	all, err := e.Effects(ctx, info.Experiment.Name)
	switch {
	case errors.Is(err, serve.ErrUnavailable) || ctx.Err() != nil:
		return nil, err
	case err != nil || all == nil || len(all.Each) == 0: // of a transcript that is damaged the page says so
		return nil, nil
	}
	out := &Effects{}
	for _, f := range all.Each {
		row := Effect{f.Name, f.Against, f.Mean, f.Interval, ""}
		if x := f.Interval; x != nil && x[0] > 0 {
			row.Sure = "raises it"
		} else if x != nil && x[1] < 0 {
			row.Sure = "lowers it"
		}
		out.Each = append(out.Each, row)
	}
	slices.SortStableFunc(out.Each, func(a, b Effect) int { return cmp.Compare(math.Abs(b.Mean), math.Abs(a.Mean)) })
	out.Each = out.Each[:min(len(out.Each), mostEffects)]
	out.Says = "By how much a value moves the mean reward of a decision, all else at its first value, by the model that was " +
		"learnt from releases. "
	if all.All > len(out.Each) {
		out.Says += fmt.Sprintf("Of %s effects these are the largest%s. ", words.Whole(all.All), func() string {
			if all.All > len(all.Each) {
				return fmt.Sprintf(" among the first %d", len(all.Each))
			}
			return ""
		}())
	}
	if !all.Intervals {
		out.Says += "They have no intervals: how far the estimates of " + info.Experiment.Policy.Policy + " may be off is not proved."
		return out, nil
	}
	out.Says += fmt.Sprintf("The intervals of effects include the noise, hold together (those of rules do so apart from these), and "+
		"stay valid however often you look, if mean rewards are linear in the features (in the model’s terms, with a norm of at most %s). They are those of the confidence set that "+
		"follows from what was released (Abbasi-Yadkori, Pál and Szepesvári 2011, Theorem 1, and the noise). An effect is the middle of "+
		"its interval; the estimate that the policy plays by may be another.",
		words.Number(all.Norm))
	return out, nil
}

// leftOf says how much is to come.
func leftOf(info serve.Info) string {
	x, c := info.Experiment, info.Contextual
	var out []string
	switch n := int(x.Horizon) - c.Decisions; {
	case info.State == serve.Stopped || info.State == serve.Archived:
		return "Nothing is left: decisions have ended."
	case x.Horizon > 0:
		out = append(out, fmt.Sprintf("%s of %s decisions are left", words.Whole(max(0, n)), words.Whole(int(x.Horizon))))
	default:
		out = append(out, "No number of decisions ends it")
	}
	if n := c.Decisions - c.Released; n > 0 {
		out = append(out, fmt.Sprintf("the rewards of %s that were made are still to be released", words.Whole(n)))
	}
	if !x.End.IsZero() {
		out = append(out, "the last decision comes before "+clockOf(x.End))
	}
	return strings.Join(out, "; ") + "."
}

// contextsOf is nil where there are arms.
func contextsOf(info serve.Info) *Contexts {
	x, of := info.Experiment, info.Contextual
	if x.Contextual == nil || of == nil {
		return nil
	}
	out := &Contexts{Apprentice: x.Contextual.Mode == decl.ModeApprentice,
		Actions: x.Contextual.MaxActions(), Dim: of.Dim, Norm: of.Norm, Releases: of.Releases,
		Rules: []Rule{}}
	if out.Protects = rewardsAlone; x.Contextual.Joint() {
		out.Protects = fmt.Sprintf(contextsToo, x.Contexts())
	}
	for i, r := range x.Contextual.Rules {
		rule := Rule{Name: r.Name, Plays: playsOf(r), Clip: r.Clip, Budget: fmt.Sprint(r.Budget),
			Low: x.MostWeight(r) > r.Clip}
		if i < len(of.Rules) {
			rule.Released = of.Rules[i].N
			if mean, interval, ok := of.Earned(i); ok {
				rule.Estimate, rule.Interval = &mean, &interval
			}
		}
		out.Rules = append(out.Rules, rule)
	}
	_, most := x.Range()
	out.Gain = gainOf(out.Rules, x.Contextual.Rules, most)
	out.Best = bestOf(out.Rules, x.Contextual.Rules, most)
	out.Left = leftOf(info)
	return out
}

// playsOf says in words what a rule plays.
func playsOf(r decl.Rule) string {
	switch r.Play {
	case decl.PlayFirst:
		return "the first action"
	case decl.PlayUniform:
		return "each action as often"
	case decl.PlayPolicy:
		return "what the policy plays"
	}
	return "the action " + r.ID
}

// gainOf compares the first rule that plays as the policy with the first that plays the first
// action. The intervals of both hold together, and so does that of the difference; one whose upper
// end does not hold may earn the most that there is.
func gainOf(rules []Rule, declared []decl.Rule, most float64) *Gain {
	find := func(play string) *Rule {
		for i, r := range declared {
			if r.Play == play {
				return &rules[i]
			}
		}
		return nil
	}
	of, over := find(decl.PlayPolicy), find(decl.PlayFirst)
	if of == nil || over == nil {
		return nil
	}
	out := &Gain{Of: of.Name, Over: over.Name, Low: of.Low && !over.Low}
	if of.Interval != nil && over.Interval != nil {
		gain := *of.Estimate - *over.Estimate
		out.Estimate = &gain
		out.Interval = &[2]float64{of.Interval[0] - over.upper(most), of.upper(most) - over.Interval[0]}
	}
	return out
}

// bestOf compares the first rule that plays as the policy with the best of those that do not, by
// their estimates. The interval is of the difference to the best of them, whichever that is: it is over all of
// them, whose intervals hold together.
func bestOf(rules []Rule, declared []decl.Rule, most float64) *Gain {
	of := slices.IndexFunc(declared, func(r decl.Rule) bool { return r.Play == decl.PlayPolicy })
	var others []*Rule
	for i, r := range declared {
		if r.Play != decl.PlayPolicy {
			others = append(others, &rules[i])
		}
	}
	if of < 0 || len(others) == 0 {
		return nil
	}
	policy := &rules[of]
	out := &Gain{Of: policy.Name, Over: others[0].Name, Low: policy.Low}
	lo, hi, top := math.Inf(-1), math.Inf(-1), math.Inf(-1)
	for _, r := range others {
		if r.Interval == nil || policy.Interval == nil {
			return out
		}
		lo, hi = max(lo, r.Interval[0]), max(hi, r.upper(most))
		if out.Low = out.Low && !r.Low; *r.Estimate > top {
			top, out.Over = *r.Estimate, r.Name
		}
	}
	gain := *policy.Estimate - top
	out.Estimate, out.Interval = &gain, &[2]float64{policy.Interval[0] - hi, policy.upper(most) - lo}
	return out
}

// upper is the upper end of the interval as far as it holds.
func (r *Rule) upper(most float64) float64 {
	if r.Low {
		return most
	}
	return r.Interval[1]
}

// A queue is what is public of a queue of decisions: of an arm, or of all where there are contexts.
type queue struct {
	name              string
	issued, published int
}

func queuesOf(info serve.Info) (out []queue) {
	if c := info.Contextual; c != nil {
		return []queue{{"decisions", c.Decisions, c.Released}}
	}
	for i, a := range info.Arms {
		out = append(out, queue{info.Experiment.Arms[i].Name, a.Decisions, a.Released})
	}
	return out
}

// earnings are the courses of an experiment's rules, thinned as those of arms.
func earnings(ctx context.Context, e *serve.Engine, info serve.Info) ([]Course, error) {
	out := []Course{}
	for i := range info.Experiment.Contextual.Rules {
		out = append(out, Course{Arm: i, Points: [][6]float64{}})
	}
	if len(out) == 0 {
		return out, nil
	}
	all, err := e.Earnings(ctx, info)
	if err != nil {
		return nil, err
	}
	for p, err := range all {
		if errors.Is(err, serve.ErrTranscript) { // the page says so
			break
		} else if err != nil {
			return nil, err
		}
		of := out[p.Rule].Points
		if n := len(of); n > 1 && float64(p.N) < 1.1*of[n-2][2] {
			of = of[:n-1]
		}
		out[p.Rule].Points = append(of, [6]float64{float64(p.At.UnixMilli()) / 1000, float64(p.N), float64(p.N),
			p.Mean, p.Interval[0], p.Interval[1]})
	}
	if over := overBest(contextsOf(info), info, out); len(over.Points) > 0 {
		out = append(out, over)
	}
	return out, nil
}

// overBest is how much the policy has won over the best of the other rules, release by release, from the courses of the rules.
func overBest(c *Contexts, info serve.Info, courses []Course) Course {
	out := Course{Arm: len(courses), Points: [][6]float64{}}
	_, most := info.Experiment.Range()
	rules := slices.Clone(c.Rules)
	for k := range courses[0].Points {
		for i, of := range courses {
			if k >= len(of.Points) || of.Points[k][0] != courses[0].Points[k][0] { // of other releases
				return Course{}
			}
			p := of.Points[k]
			rules[i].Estimate, rules[i].Interval = &p[3], &[2]float64{p[4], p[5]}
		}
		g := bestOf(rules, info.Experiment.Contextual.Rules, most)
		if g == nil || g.Interval == nil {
			return Course{}
		}
		p := courses[0].Points[k]
		out.Points = append(out.Points, [6]float64{p[0], p[1], p[2], *g.Estimate, g.Interval[0], g.Interval[1]})
	}
	return out
}

// effects is what matters, as a report has it.
func (c *Contexts) effects() report.Table {
	out := report.Table{Title: "What matters", Head: []string{"what", "against", "effect", "95 % interval", "the mean reward"},
		Text: 2, Groups: []report.Group{{}}, Notes: []string{c.Effects.Says}}
	for _, f := range c.Effects.Each {
		out.Groups[0].Rows = append(out.Groups[0].Rows, []string{f.Name, cmp.Or(f.Against, "each alone"),
			signed(f.Mean, f.Interval), spread(f.Interval), f.Sure})
	}
	return out
}

// table is the rules as a report has them.
func (c *Contexts) table(lo, hi float64) report.Table {
	out := report.Table{Title: "Rules", Head: []string{"rule", "plays", "earns a decision",
		"95 % interval", "decisions"},
		Text: 2, Groups: []report.Group{{Head: "Rewards from " + words.Number(lo) + " to " +
			words.Number(hi)}},
		Notes: []string{"What each would have earned, by the decisions that were released: their " +
			"rewards, weighted by " +
			"its probability of what was given over the propensity of that.",
			"Intervals of rules hold together, at all times, with probability 95 %. They allow for the " +
				"noise, and are from " +
				"releases alone."}}
	for _, r := range c.Rules {
		mean := "–"
		if r.Estimate != nil {
			mean = words.Number(*r.Estimate)
		}
		if r.Low {
			mean += " or more"
		}
		out.Groups[0].Rows = append(out.Groups[0].Rows, []string{r.Name, r.Plays, mean,
			within(r.Interval, decimalsOf(r.Interval)), words.Whole(r.Released)})
	}
	return out
}
