package page

import (
	"context"
	"errors"
	"fmt"

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
	return out, nil
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
			"Intervals hold together, at all times, with probability 95 %. They allow for the " +
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
