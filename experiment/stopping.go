package experiment

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/stopping"
)

// The kinds of experiment.
const (
	// policies play instances of several arms; metrics are regret and plays of the best arms
	KindRegret = "regret"
	// stopping rules sample one law; metrics are samples and the relative error of the estimate
	KindStopping = "stopping"
	// policies play a fixed set of actions in ℝ^d; metrics are those of KindRegret
	KindLinear = "linear"
	// policies play a set of actions in ℝ^d that changes in each round; metrics are
	// those of KindRegret
	KindContextual = "contextual"
	// policies look for the best arm and stop; metrics are stopping time, error, batches and
	// plays of each arm
	KindIdentify = "identify"
)

// Kinds are the names of the kinds.
func Kinds() []string {
	return []string{KindRegret, KindStopping, KindLinear, KindContextual, KindIdentify}
}

// metrics are the numbers that a unit holds of each run and checkpoint of a cell.
func (m *Manifest) metrics(c *CellInfo) []string {
	switch m.Kind {
	case KindStopping:
		return []string{MetricSamples, MetricError}
	case KindIdentify:
		return identifyMetrics(c.Arms)
	}
	return []string{MetricRegret, MetricPlaysBest}
}

// A StoppingCell is what is known of a stopping rule on a law before it runs.
type StoppingCell struct {
	Alpha float64 `json:"alpha"`
	Beta  float64 `json:"beta"`
	Range float64 `json:"range"`
	Mean  float64 `json:"mean"` // of the law, clipped to [−range, range]
	// UpperBound is t_U of [Sajed 2019, Theorem 4.1.3], of dp-exp-nas; LowerBound is n of [Sajed
	// 2019, Theorem 4.2.1]. Each is 0 where it is not defined.
	UpperBound float64 `json:"upper_bound,omitempty"`
	LowerBound float64 `json:"lower_bound,omitempty"`
}

// Where R may be: means are integrated and squared, and must stay doubles.
const (
	minRange = 1e-100
	maxRange = 1e100
)

// A trial is a rule at a budget on a law: what a cell of this kind plays.
type trial struct {
	rule stopping.Rule
	law  bandit.Law
	mean float64
}

// ruleEntry describes a stopping rule as the catalog describes policies, for labels and manifests.
// The error names the nearest known one.
func ruleEntry(name string) (catalog.Entry, error) {
	if !slices.Contains(stopping.Names(), name) {
		return catalog.Entry{}, fmt.Errorf("rule %q is unknown%s; known are %s", clip(name),
			catalog.Hint(clip(name), stopping.Names()), strings.Join(stopping.Names(), ", "))
	}
	e := catalog.Entry{Name: name, Params: []catalog.Param{
		{Name: "alpha", Doc: "relative error that is allowed", Default: math.NaN(), Hi: 1},
		{Name: "beta", Doc: "probability of a larger error", Default: math.NaN(), Hi: 1},
	}}
	switch name {
	case "nas":
		e.Title, e.Source = "NAS", "002 Algorithm 3"
	case "dp-nas":
		e.Title, e.Source = "DP-NAS", "002 Algorithm 7"
	default:
		e.Title, e.Source = "DP exponential NAS", "002 Algorithm 8"
	}
	if name != "nas" {
		e.Private, e.Budgets, e.Guarantee = true, []string{"epsilon"}, "ε-DP"
	}
	return e, nil
}

// laws are the instances of this kind: one law each.
func (p *Plan) laws() ([]world, error) {
	s := &p.Spec
	if len(s.Instances) == 0 {
		return nil, s.fail("instances", "is missing: want at least one, such as {name: biased, "+
			"law: bernoulli(0.3)}")
	}
	_, r := s.span()
	var out []world
	seen := map[string]int{}
	for i := range s.Instances {
		in := &s.Instances[i]
		at := fmt.Sprintf("instances[%d]", i)
		if err := in.named(s, i, seen); err != nil {
			return nil, err
		}
		if in.Law == "" || in.Bernoulli != nil || in.Laws != nil || in.Standard != "" ||
			in.Means != nil || in.CSV != "" || in.Columns != (Columns{}) || in.Source != nil ||
			in.Linear != nil || in.LinearSource != nil || in.ContextualSource != nil {
			return nil, s.fail(at, "is no law: want law, such as law: bernoulli(0.3), and "+
				"nothing else, in an experiment of kind %s", KindStopping)
		}
		law, err := bandit.ParseLaw(in.Law)
		if err != nil {
			return nil, s.src.wrap(at+".law", err)
		}
		mean, err := bandit.ClippedMean(law, -r, r)
		if err != nil {
			return nil, s.src.wrap(at+".law", err)
		}
		if a, b := law.Support(); a < -r || b > r {
			p.warn("instance %s: samples leave [%v, %v] and are clipped to it; the mean is the "+
				"clipped law's, %.6g", in.Name, -r, r, mean)
		}
		if mean == 0 {
			p.warn("instance %s: the mean is 0: a rule may go on for ever, and runs end at the "+
				"cap, %d", in.Name, s.Cap)
		}
		out = append(out, world{label: in.Name, arms: 1, content: stopping.World(law),
			trial: trial{law: law, mean: mean}})
	}
	return out, nil
}

// rules are the choices of this kind.
func (p *Plan) rules() ([]choice, error) {
	s := &p.Spec
	if len(s.Rules) == 0 {
		return nil, s.fail("rules", "is missing: want at least one, such as {rule: dp-exp-nas, "+
			"alpha: 0.1, beta: 0.05}")
	}
	_, r := s.span()
	var out []choice
	for i, q := range s.Rules {
		at := fmt.Sprintf("rules[%d]", i)
		entry, err := ruleEntry(q.Rule)
		if err != nil {
			return nil, s.src.wrap(at+".rule", err)
		}
		for _, x := range []struct {
			name  string
			value float64
		}{{"alpha", q.Alpha}, {"beta", q.Beta}} {
			if !(x.value > 0 && x.value < 1) {
				return nil, s.fail(at+"."+x.name, "is %v, must be given, above 0 and below 1", x.value)
			}
		}
		c := choice{label: q.Name, entry: entry, params: catalog.Params{"alpha": q.Alpha, "beta": q.Beta}}
		switch {
		case !entry.Private:
			c.budgets = []privacy.Budget{privacy.None{}}
		case len(s.Budgets) == 0:
			return nil, s.fail("budgets", "is missing: rule %s is private and takes epsilon", entry.Name)
		default:
			c.budgets = s.Budgets
		}
		for j, b := range s.Budgets {
			if kind := catalog.Kind(b); kind != "epsilon" && kind != "none" {
				return nil, s.fail(fmt.Sprintf("budgets[%d]", j), "is %s: stopping rules take "+
					"epsilon | none", b)
			}
		}
		for _, b := range c.budgets {
			if _, err := q.at(b, r); err != nil {
				return nil, s.src.wrap(at, err)
			}
		}
		out = append(out, c)
	}
	return out, p.label(out)
}

// at is the rule at a budget.
func (q Rule) at(b privacy.Budget, r float64) (stopping.Rule, error) {
	epsilon := math.Inf(1)
	if b, ok := b.(privacy.Pure); ok {
		epsilon = b.Epsilon
	}
	return stopping.New(q.Rule, q.Alpha, q.Beta, epsilon, r)
}

// begin gives a cell its trial and its hash. On error it is a defect: rules has tried all of them.
func (p *Plan) begin(cell *Cell, q Rule) error {
	s := &p.Spec
	_, r := s.span()
	cell.trial = cell.world.trial
	var err error
	if cell.trial.rule, err = q.at(cell.budget, r); err != nil {
		return err
	}
	h := sha256.New()
	fmt.Fprintf(h, "sotto stopping cell %d\nworld %q\nrule %q\nbudget %q\ncap %d\nseed %d\n",
		FormatVersion, cell.world.public, cell.trial.rule, cell.Budget, s.Cap, s.Seed)
	cell.Hash = hex.EncodeToString(h.Sum(nil))
	return nil
}

// info is what the manifest has of the trial.
func (t trial) info() *StoppingCell {
	out := &StoppingCell{Alpha: t.rule.Alpha(), Beta: t.rule.Beta(), Range: t.rule.Range(), Mean: t.mean}
	if math.IsInf(t.rule.Epsilon(), 1) {
		return out
	}
	if x, err := t.rule.UpperBound(t.mean); err == nil && t.rule.Name() == "dp-exp-nas" && !math.IsInf(x, 0) {
		out.UpperBound = x
	}
	if x, err := t.rule.LowerBound(t.mean); err == nil && !math.IsInf(x, 0) {
		out.LowerBound = x
	}
	return out
}

// A unit's values are finite. A run without an estimate has the error noEstimate, and a wrong
// estimate of a mean of 0, whose relative error is infinite, has farOff.
const (
	noEstimate = -1
	farOff     = math.MaxFloat64
)

// toUnit and fromUnit turn the error of an estimate into what a unit holds of it, and back. It is
// NaN where there is no estimate.
func toUnit(x float64) float64 {
	if math.IsNaN(x) {
		return noEstimate
	}
	return min(x, farOff)
}

func fromUnit(x float64) float64 {
	switch {
	case x < 0:
		return math.NaN()
	case x == farOff:
		return math.Inf(1)
	}
	return x
}

// stop plays one run of a stopping rule.
func (p *Plan) stop(ctx context.Context, c *Cell, run int) (samples, err float64, loss privacy.Loss,
	failed error) {
	study := stopping.StudyConfig{Rule: c.trial.rule, Law: c.trial.law, Seed: p.Spec.Seed, Cap: int(p.Spec.Cap)}
	o, _, failed := study.Play(ctx, run, c.trial.mean)
	if failed != nil {
		return 0, 0, privacy.Loss{}, fmt.Errorf("%s, run %d: %w", c.Label(), run, failed)
	}
	return float64(o.Samples), toUnit(o.Error), o.Loss, nil
}

// judge counts the failures, errors above most, and the runs without an estimate or an answer.
func (c *CellResult) judge(most float64) {
	for _, x := range c.FinalError {
		switch {
		case math.IsNaN(x):
			c.Unfinished++
		case x > most:
			c.Failures++
		}
	}
}
