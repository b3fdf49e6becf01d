// Package trial runs trials: which of K arms is best, with a bound on the risk of a wrong answer,
// and how many participants does that take? Begin with NewRule and Run.
//
// A trial plays a rule of policy/identify until it stops by itself. What is private is the whole
// transcript: who got which arm, when the trial stopped, and the answer. Nothing here computes on
// rewards: Run, for real data, gives them to a curator with exact noise (release.Real), and
// everything else, the private means that are shown and the transcript that can be replayed, is
// computed from what the curator let out.
//
// Run is for logged data; Simulation is for laws, with fast noise; PlanConfig says how many
// participants a trial to come will need.
package trial

import (
	"fmt"
	"math"
	"strconv"

	"github.com/sotto-dp/sotto/bound"
	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/policy/identify"
	"github.com/sotto-dp/sotto/privacy"
)

// A Rule is an identification rule with all that it must know: made by NewRule.
type Rule struct {
	entry  catalog.Entry
	params catalog.Params
	arms   int
	risk   float64
	budget privacy.Budget
}

// NewRule returns the rule of this name (catalog.IdentifyPolicies) for a number of arms ≥ 2, a
// risk δ in (0,1), a budget, which is privacy.None for a rule without privacy, and parameters,
// nil for the defaults.
func NewRule(name string, arms int, risk float64, budget privacy.Budget, params catalog.Params) (Rule, error) {
	e, err := catalog.Find(catalog.BanditIdentify, name)
	if err != nil {
		return Rule{}, err
	}
	if budget == nil {
		return Rule{}, fmt.Errorf("policy %s: budget is missing, must be epsilon or none", name)
	}
	if err := e.Meets(budget); err != nil {
		if !e.Private {
			return Rule{}, fmt.Errorf("%w: policy %s is not private, and has no use for %v",
				catalog.ErrBudget, name, budget)
		}
		return Rule{}, err
	}
	complete, err := e.Complete(params)
	if err != nil {
		return Rule{}, err
	}
	r := Rule{entry: e.With(complete), params: complete, arms: arms, risk: risk, budget: budget}
	if goal := r.entry.Seeks(); goal != catalog.GoalConfidence {
		return Rule{}, fmt.Errorf("policy %s: its goal is %s, must be %s but in an experiment", name, goal,
			catalog.GoalConfidence)
	}
	p, err := r.policy(&noise.Fast{})
	if err != nil {
		return Rule{}, err
	}
	if _, ok := p.(identify.Reporter); ok { // a transcript says what was played
		return Rule{}, fmt.Errorf("policy %s: parameter reported is true, must be false but in "+
			"an experiment", name)
	}
	return r, nil
}

// policy builds the rule. Without coins a rule that tosses them is refused.
func (r Rule) policy(coins policy.Coins) (identify.Identifier, error) {
	return r.entry.NewIdentify(catalog.IdentifySetting{Arms: r.arms, Risk: r.risk, Budget: r.budget,
		Coins: coins}, r.params)
}

// Name is how files and the command line name the rule.
func (r Rule) Name() string { return r.entry.Name }

// Arms is the number of arms, K.
func (r Rule) Arms() int { return r.arms }

// Risk is δ, the probability of a wrong answer that is allowed.
func (r Rule) Risk() float64 { return r.risk }

// Private says whether the rule adds noise.
func (r Rule) Private() bool { return r.entry.Private && catalog.Kind(r.budget) != "none" }

// Budget is what the rule's releases cost at most.
func (r Rule) Budget() privacy.Budget { return r.budget }

// Epsilon is the budget's ε, +Inf without privacy and in other currencies.
func (r Rule) Epsilon() float64 {
	if b, ok := r.budget.(privacy.Pure); ok && r.entry.Private {
		return b.Epsilon
	}
	return math.Inf(1)
}

// Correct says who proves that a wrong answer has probability at most the risk, if one arm alone is
// best. It is empty if nobody does, for these parameters.
func (r Rule) Correct() string { return r.entry.Correct }

// Entry is the rule in the catalog, as it is with its parameters.
func (r Rule) Entry() catalog.Entry { return r.entry }

// ErrTie is matched by the error for means of which several are the largest.
var ErrTie = bound.ErrTie

// LowerBound is T*(ν;ε) kl(δ,1−δ) for two-point arms on {lo,hi} of these means: no rule that is
// ε-DP and δ-correct needs fewer plays in the mean [Azize 2024, Theorem 4.24]. Other laws of the same
// means may need fewer. Means outside the range are clipped to it. It is NaN where there is none.
func (r Rule) LowerBound(means []float64, lo, hi float64) (float64, error) {
	if err := checkRange(lo, hi); err != nil {
		return math.NaN(), fmt.Errorf("trial: %w", err)
	}
	unit := make([]float64, len(means))
	for i, m := range means {
		unit[i] = min(max((m-lo)/(hi-lo), 0), 1)
	}
	t, err := bound.BernoulliTime(unit, r.Epsilon())
	if err != nil {
		return math.NaN(), err
	}
	return t.Samples(r.risk), nil
}

// String is the rule with its parameters where they are not the defaults, its budget and its risk:
// what its noise is keyed by.
func (r Rule) String() string {
	return r.entry.Content(r.params) + " at " + fmt.Sprint(r.budget) + " risk=" +
		strconv.FormatFloat(r.risk, 'g', -1, 64)
}
