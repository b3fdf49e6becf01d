package experiment

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/goccy/go-yaml/ast"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/sim"
	"github.com/sotto-dp/sotto/trial/stopping"
)

// stoppingKind is KindStopping.
type stoppingKind struct{ capped }

func (stoppingKind) name() string { return KindStopping }

func (stoppingKind) players() string { return "rules" }

func (stoppingKind) span() (lo, hi float64) { return -1, 1 }

func (k stoppingKind) keys(catalog.Catalog) []keyed.Key[Spec] {
	keys := []keyed.Key[Spec]{nameKey(), descriptionKey(),
		kindKey(KindStopping, "stopping rules that sample a law"),
		capKey("samples after which a rule gives up", "required; samples after which a rule gives "+
			"up, without an estimate. Where the mean is 0 a rule may go on for ever"),
		runsKey(), seedKey(),
		rangeKey("[-R, R], the range of samples, [-1, 1] if not given; samples outside are clipped",
			"`[-1, 1]`; must be [−R, R]. Samples outside are clipped, and the mean is the clipped law's"),
		instancesKey(k.instances(), "the laws of the samples", "required; each is `{name: coin, law: "+
			"bernoulli(0.3)}`, with one law as in `laws` above"),
		k.rulesKey(),
		budgetsKey(specBudgets, keyed.BudgetShapes(), "each private rule runs at each "+
			"budget; nas runs once", "required if a rule is private: `{epsilon: 1}` or `none`, where "+
			"a private rule is its own non-private twin; of `dp-batch-mean` any. `nas` runs once"),
	}
	return append(keys, specTrust()...)
}

func (stoppingKind) instances() instanceForm { return lawInstances() }

var lawInstances = sync.OnceValue(newLawInstances)

func newLawInstances() instanceForm {
	law := keyed.Of("law", lawText(), func(in *Instance) *string { return &in.Law },
		"bernoulli(p), gaussian(mean,sd), clipped-gaussian(mean,sd,lo,hi), beta(a,b), uniform(lo,hi), "+
			"table(v1:p1,v2:p2,…)").Must()
	return instanceForm{what: "law", example: "{name: biased, law: bernoulli(0.3)}",
		ways: []way{{keys: []keyed.Key[Instance]{law}, example: "law: bernoulli(0.3)"}}}
}

func (stoppingKind) rulesKey() keyed.Key[Spec] {
	one := keyed.Mapped(ruleKeys)
	read := one.Read
	one.Read = func(d *keyed.Decoder, n ast.Node, at string, to *Rule) error {
		if err := read(d, n, at, to); err != nil {
			return err
		}
		if to.Rule == "" {
			return d.Fail(n, at, "names no rule, must say rule: NAME, one of %s",
				strings.Join(ruleNames(), ", "))
		}
		return nil
	}
	schema := one.Schema
	one.Schema = func() keyed.Object { return keyed.Object{"oneOf": []any{schema()}} }
	return keyed.Always("rules", keyed.Many(one, keyed.Object{"minItems": 1}), func(s *Spec) *[]Rule { return &s.Rules },
		"who samples").Must().Means("required; each is `{rule: NAME, alpha: 0.25, beta: 0.05}`, and " +
		"`name: LABEL` if need be; NAME is `nas`, `dp-nas`, `dp-exp-nas` or `dp-batch-mean`, α and β are above 0 and " +
		"below 1")
}

func ruleKeys() []keyed.Key[Rule] {
	known := keyed.As(keyed.Object{"enum": ruleNames()},
		func(d *keyed.Decoder, n ast.Node, at string, to *string) error {
			if err := d.Text(n, at, to); err != nil {
				return err
			}
			if _, err := ruleEntry(*to); err != nil {
				return d.Fail(n, at, "%w", err)
			}
			return nil
		})
	return []keyed.Key[Rule]{
		keyed.Always("rule", known, func(q *Rule) *string { return &q.Rule }, "").Must(),
		keyed.Of("name", keyed.Called(), func(q *Rule) *string { return &q.Name }, ""),
		keyed.Always("alpha", keyed.Share(), func(q *Rule) *float64 { return &q.Alpha },
			"relative error that is allowed").Must(),
		keyed.Always("beta", keyed.Share(), func(q *Rule) *float64 { return &q.Beta },
			"probability of a larger error").Must(),
	}
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

// ruleNames are those that ask questions, and the one that releases batches.
func ruleNames() []string { return append(stopping.Names(), stopping.BatchMeanName) }

// A trial is a rule at a budget on a law: what a cell of this kind plays.
type trial struct {
	rule stopping.Rule
	// instead of rule, one that releases batches: built anew for each run
	batches func(beta float64) (*stopping.BatchMean, error)
	own     Rule
	r       float64 // of own
	law     bandit.Law
	mean    float64
}

// ruleEntry describes a stopping rule as the catalog describes policies, for labels and manifests.
// The error names the nearest known one.
func ruleEntry(name string) (catalog.Entry, error) {
	if known := ruleNames(); !slices.Contains(known, name) {
		return catalog.Entry{}, fmt.Errorf("rule %q is unknown%s; known are %s", keyed.Clip(name),
			catalog.Hint(keyed.Clip(name), known), strings.Join(known, ", "))
	}
	e := catalog.Entry{Name: "nas", Title: "NAS", Source: "[Sajed 2019, Algorithm 3]", Goal: catalog.GoalStopping}
	for _, private := range catalog.StoppingRules() {
		if private.Name == name {
			e = private
		}
	}
	e.Params = []catalog.Param{
		{Name: "alpha", Doc: "relative error that is allowed", Default: math.NaN(), Hi: 1},
		{Name: "beta", Doc: "probability of a larger error", Default: math.NaN(), Hi: 1},
	}
	return e, nil
}

func (stoppingKind) choices(p *Resolved) ([]choice, error) {
	s := &p.Spec
	if len(s.Rules) == 0 {
		return nil, s.fail("rules", "is missing, must be at least one, such as {rule: dp-exp-nas, "+
			"alpha: 0.1, beta: 0.05}")
	}
	_, r := s.span()
	var out []choice
	for i, q := range s.Rules {
		at := fmt.Sprintf("rules[%d]", i)
		entry, err := ruleEntry(q.Rule)
		if err != nil {
			return nil, s.src.Wrap(at+".rule", err)
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
		if s.Trust.on() && entry.Private && !entry.AnyTail {
			return nil, s.fail("trust", "is %s, must be %s for rule %s: its threshold's noise outlives a release",
				s.Trust.Model, Continuous, entry.Name)
		} else if entry.Private {
			if key, err := s.Trust.check(); err != nil {
				return nil, s.src.Wrap(key, err)
			}
			c.trust = s.Trust
		}
		switch {
		case !entry.Private:
			c.budgets = []privacy.Budget{privacy.None{}}
		case len(s.Budgets) == 0:
			return nil, s.fail("budgets", "is missing: rule %s is private and takes epsilon", entry.Name)
		default:
			c.budgets = s.Budgets
		}
		for j, b := range s.Budgets {
			if kind := catalog.Kind(b); entry.Meets(b) != nil && entry.Private || !entry.Private && kind != "epsilon" &&
				kind != "none" && len(s.Rules) == 1 {
				return nil, s.fail(fmt.Sprintf("budgets[%d]", j), "is %s: stopping rules take "+
					"epsilon | none, and %s any", b, stopping.BatchMeanName)
			}
		}
		for _, b := range c.budgets {
			if q.Rule == stopping.BatchMeanName {
				if _, err := stopping.NewBatchMean(q.Alpha, q.Beta, b, r); err != nil {
					return nil, s.src.Wrap(at, err)
				}
				if err := c.trust.meets(b); err != nil {
					return nil, s.src.Wrap("trust", err)
				}
			} else if _, err := q.at(b, r); err != nil {
				return nil, s.src.Wrap(at, err)
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

// info is what the manifest has of the trial.
func (t trial) info() *StoppingCell {
	if t.batches != nil {
		return &StoppingCell{Alpha: t.own.Alpha, Beta: t.own.Beta, Range: t.r, Mean: t.mean}
	}
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

func (stoppingKind) check(s *Spec) error {
	lo, hi := s.span()
	switch {
	case lo != -hi:
		return s.fail("range", "is [%v, %v], must be [-R, R] in an experiment of kind %s", lo, hi, s.Kind)
	case !(hi >= minRange && hi <= maxRange):
		return s.fail("range", "is [%v, %v], must be [-R, R] with R from %v to %v", lo, hi,
			float64(minRange), float64(maxRange))
	}
	return nil
}

func (stoppingKind) text(s *Spec) string { return fmt.Sprintf("at most %d samples each", s.Cap) }

func (stoppingKind) columns(*Resolved, []environment) (int, error) { return 1, nil }

func (stoppingKind) worlds(p *Resolved) ([]environment, error) {
	_, r := p.Spec.span()
	return p.eachInstance(func(in *Instance) (environment, string, error) {
		law, err := bandit.ParseLaw(in.Law)
		if err != nil {
			return environment{}, "law", err
		}
		mean, err := bandit.ClippedMean(law, -r, r)
		if err != nil {
			return environment{}, "law", err
		}
		if a, b := law.Support(); a < -r || b > r {
			p.warn("instance %s: samples leave [%v, %v] and are clipped to it; the mean is the "+
				"clipped law's, %.6g", in.Name, -r, r, mean)
		}
		if mean == 0 {
			p.warn("instance %s: the mean is 0: a rule may go on for ever, and runs end at the "+
				"cap, %d", in.Name, p.Spec.Cap)
		}
		return environment{arms: 1, content: stopping.World(law), trial: trial{law: law, mean: mean}}, "", nil
	})
}

// begin gives a cell its trial. On error it is a defect: choices has tried all of them.
func (stoppingKind) begin(p *Resolved, c *Cell, i int) error {
	s := &p.Spec
	_, r := s.span()
	c.trial = c.world.trial
	var content any
	if q := s.Rules[i]; q.Rule == stopping.BatchMeanName {
		c.trial.own, c.trial.r = q, r
		c.trial.batches = func(beta float64) (*stopping.BatchMean, error) {
			return stopping.NewBatchMean(q.Alpha, beta, c.budget, r)
		}
		rule, err := c.trial.batches(q.Beta)
		if err != nil {
			return err
		}
		if err := c.tryTrust(rule.Mechanism()); err != nil {
			return err
		}
		content = c.batchContent()
	} else {
		var err error
		if c.trial.rule, err = q.at(c.budget, r); err != nil {
			return err
		}
		content = c.trial.rule
	}
	h := sha256.New()
	fmt.Fprintf(h, "sotto stopping cell %d\nworld %q\nrule %q\nbudget %q\ncap %d\nseed %d\n",
		FormatVersion, c.world.public, content, c.Budget, s.Cap, s.Seed)
	c.choice.trust.writeProtocol(h)
	c.Hash = hex.EncodeToString(h.Sum(nil))
	return nil
}

// batchContent is what the noise of a rule that releases batches is keyed by.
func (c *Cell) batchContent() string {
	q := c.trial.own
	return fmt.Sprintf("%s alpha=%v beta=%v range=%v at %v%s", q.Rule, q.Alpha, q.Beta, c.trial.r, c.budget,
		c.choice.trust.content())
}

// playBatches plays a rule that releases batches. It is the first of two arms of one law, and plays no other.
func (c *Cell) playBatches(ctx context.Context, s *Spec, run int, to []float64) ([]float64, privacy.Loss, error) {
	fail := func(err error) ([]float64, privacy.Loss, error) { return nil, privacy.Loss{}, err }
	beta, misread := c.trial.own.Beta, 0.0
	if c.trust(0.5) != nil {
		beta, misread = beta*(1-spareRisk), beta*spareRisk
	}
	rule, err := c.trial.batches(beta)
	if err != nil {
		return fail(err)
	}
	in, err := bandit.NewInstance(c.trial.law, c.trial.law)
	if err != nil {
		return fail(err)
	}
	key := noise.Key{Seed: s.Seed, Experiment: c.world.content, Run: run, Role: noise.RoleReward}
	rewards := key.Fast(2)
	key.Role, key.Cell = noise.RoleNoise, c.batchContent()
	own := key.Fast(1)
	var out sim.IdentifyResult
	if err := sim.Identify(ctx, sim.IdentifyConfig{Policy: rule, Instance: in, Cap: max(2, int(s.Cap)), Lo: -c.trial.r,
		Hi: c.trial.r, Rewards: rewards, Noise: &own[0], Trust: c.trustIn(ctx, s, misread)}, &out); err != nil {
		return fail(err)
	}
	off := math.NaN() // where there is no estimate
	if out.Answer >= 0 {
		off = math.Abs(rule.Estimate()-c.trial.mean) / math.Abs(c.trial.mean)
	}
	return append(to, float64(out.Tau), toUnit(off)), out.Loss, nil
}

func (stoppingKind) play(ctx context.Context, p *Resolved, c *Cell, run int, _ *sim.Result,
	to []float64) ([]float64, privacy.Loss, error) {
	if c.trial.batches != nil {
		return c.playBatches(ctx, &p.Spec, run, to)
	}
	study := stopping.StudyConfig{Rule: c.trial.rule, Law: c.trial.law, Seed: p.Spec.Seed, Cap: int(p.Spec.Cap)}
	o, _, err := study.Play(ctx, run, c.trial.mean)
	if err != nil {
		return nil, privacy.Loss{}, err
	}
	return append(to, float64(o.Samples), toUnit(o.Error)), o.Loss, nil
}

func (stoppingKind) metrics(*CellInfo) []string { return []string{MetricSamples, MetricError} }

func (stoppingKind) judge(c *CellResult) { c.judge(c.Stopping.Alpha) }

func (stoppingKind) tell(_ *Spec, c *Cell, to *CellInfo) { to.Stopping = c.trial.info() }

func (stoppingKind) checkTold(c *CellInfo) error {
	if c.Stopping == nil {
		return fmt.Errorf("cell %s says nothing of its stopping rule", c.Label())
	}
	return nil
}

func (stoppingKind) writeRows(ctx context.Context, w io.Writer, dir string, m *Manifest) error {
	return writeRows(ctx, w, dir, m, func(_ *CellInfo, at RunRow, v func(int) float64) StoppingRow {
		row := StoppingRow{RunRow: at, Samples: v(0)}
		if x := fromUnit(v(1)); !math.IsNaN(x) {
			row.Error = &x
		}
		return row
	})
}
