package decl

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/feature"
	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/play"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

// A Contextual says how decisions with contexts are made: each brings a context and the actions
// that it may give, with their features, which the map makes vectors of.
type Contextual struct {
	Features feature.Map
	// Mode is ModeLearn if it is empty.
	Mode string
	// Protect is ProtectReward if it is empty.
	Protect string
	Rules   []Rule
}

// What a decision gives: what the policy plays, or the first action, while what the policy would
// have played is learnt from, and measured by a rule. In both modes the floor's share is uniform.
const (
	ModeLearn      = "learn"
	ModeApprentice = "apprentice"
)

// A Rule is another way to choose, whose earnings are estimated from the same decisions: the
// mean of its probability of the action that was given, over the propensity of that, times the
// reward. They are released with the rewards, as a metric is.
type Rule struct {
	Name string
	// Play is PlayFirst, PlayUniform, PlayPolicy, or empty: then it plays ID, and the first action
	// where that is not among them. Actions that are excluded are not among them.
	Play, ID string
	Clip     float64 // the largest weight, at least 1: what is above counts so much
	// Budget is what one unit may lose by it, in ρ.
	Budget privacy.Budget
}

// What rules play.
const (
	PlayFirst   = "first"
	PlayUniform = "uniform"
	PlayPolicy  = "policy"
)

var plays = []string{PlayFirst, PlayUniform, PlayPolicy}

// Bounds of contextual experiments.
const (
	maxLiveDim   = 256 // a line of the transcript has d(d+1)/2 numbers
	maxLiveRules = 20
	maxRuleClip  = 1e6
)

// ContextualPolicy is who decides where contexts are public and no policy is named.
const ContextualPolicy = "dp-lin-ts"

// Parameters of policies that follow from a declaration: a bound on the norm of the model, or its size; that
// the first component of a vector is an intercept; and the mean reward beforehand.
const (
	normParam      = "norm"
	interceptParam = "intercept"
	centreParam    = "centre"
)

// contextualKey is the key of what a contextual experiment has instead of arms.
func contextualKey() keyed.Key[Experiment] {
	of := keyed.Mapped(contextualKeys)
	return keyed.Key[Experiment]{Name: "contextual", Required: true, Schema: of.Schema,
		Doc: "instead of arms: how features of contexts and actions become vectors",
		Read: func(d *keyed.Decoder, n ast.Node, at string, to *Experiment) error {
			to.Contextual = &Contextual{}
			return of.Read(d, n, at, to.Contextual)
		},
		Given: func(l *Experiment) bool { return l.Contextual != nil },
		Value: func(l *Experiment) (any, error) {
			if l.Contextual == nil {
				return nil, nil
			}
			return of.Write(*l.Contextual)
		}}
}

func contextualKeys() []keyed.Key[Contextual] {
	return []keyed.Key[Contextual]{
		keyed.Of("context", featureList(), func(c *Contextual) *[]feature.Feature { return &c.Features.Context },
			"features of contexts by name: the path in nested objects, with dots. A name is used once, here or for actions"),
		keyed.Of("action", featureList(), func(c *Contextual) *[]feature.Feature { return &c.Features.Action },
			"features of actions, by name"),
		keyed.Of("id", idFeature(), func(c *Contextual) *feature.Feature { return &c.Features.ID },
			"the action's id as a feature: a number of buckets, or its values, or {buckets: 8, seed: 3}"),
		keyed.Of("cross", keyed.Many(keyed.Mapped(crossKeys), keyed.Object{}),
			func(c *Contextual) *[]feature.Cross { return &c.Features.Cross },
			"products of features, such as {of: [device, topic]}; id is the action's. With buckets and seed, by a hash"),
		keyed.Always("actions", number32(keyed.Object{"minimum": 1, "maximum": feature.MaxActions,
			"default": feature.DefaultActions}), func(c *Contextual) *int { return &c.Features.Actions },
			"how many a decision may bring").Or(feature.DefaultActions),
		{Name: "unknown", Doc: "what happens to a feature or value that is not declared: it is an error, or it is left out",
			Schema: func() keyed.Object { return keyed.Object{"enum": []string{"refuse", "ignore"}, "default": "refuse"} },
			Given:  func(*Contextual) bool { return true },
			Read: func(d *keyed.Decoder, n ast.Node, at string, to *Contextual) error {
				var word string
				err := keyed.OneOf([]string{"refuse", "ignore"}).Read(d, n, at, &word)
				to.Features.Ignore = word == "ignore"
				return err
			},
			Value: func(c *Contextual) (any, error) {
				if c.Features.Ignore {
					return "ignore", nil
				}
				return "refuse", nil
			}},
		keyed.Always("mode", keyed.OneOf([]string{ModeLearn, ModeApprentice}), func(c *Contextual) *string {
			return &c.Mode
		},
			"apprentice: the first action is given, and what the policy would have played is measured").
			Or(ModeLearn),
		keyed.Of("protect", keyed.OneOf(protections), func(c *Contextual) *string { return &c.Protect },
			"what is protected. reward: the default; joint: contexts and features too, in what is decided for others"),
		keyed.Of("rules", keyed.Many(keyed.Mapped(liveRuleKeys), keyed.Object{"maxItems": maxLiveRules}),
			func(c *Contextual) *[]Rule { return &c.Rules },
			"other ways to choose, whose earnings are estimated at a price of their own"),
	}
}

func featureKeys() []keyed.Key[feature.Feature] {
	type F = feature.Feature
	word := keyed.Object{"type": []any{"string", "number", "boolean"}}
	return []keyed.Key[F]{
		keyed.Of("values", keyed.Form[[]string]{
			Schema: func() keyed.Object {
				return keyed.Object{"type": "array", "minItems": 1, "maxItems": feature.MaxDim, "items": word}
			},
			Read: func(d *keyed.Decoder, n ast.Node, at string, to *[]string) error {
				*to = []string{}
				return d.Items(n, at, func(_ int, at string, item ast.Node) error {
					text, err := readScalar(d, item, at)
					*to = append(*to, text)
					return err
				})
			},
			Write: func(v []string) (any, error) { return keyed.List(v), nil },
		}, func(f *F) *[]string { return &f.Values }, "a word among these, one-hot. Numbers and booleans are words by their text: 3 is \"3\""),
		{Name: "range", Doc: "a number from the first to the second, mapped to [0,1]; one outside is an error", Schema: keyed.SpanSchema,
			Given: func(f *F) bool { return f.Lo != 0 || f.Hi != 0 },
			Read: func(d *keyed.Decoder, n ast.Node, at string, to *F) error {
				return d.Pair(n, at, &to.Lo, &to.Hi)
			},
			Value: func(f *F) (any, error) {
				if f.Lo == 0 && f.Hi == 0 {
					return nil, nil
				}
				return keyed.List([]float64{f.Lo, f.Hi}), nil
			}},
		keyed.Of("clip", keyed.YesNo(), func(f *F) *bool { return &f.Clip },
			"brings a number outside the range into it, instead of refusing it"),
		keyed.Of("buckets", buckets(), func(f *F) *int { return &f.Buckets }, "any word, one-hot by its hash: words that share a bucket are the same to the model"),
		keyed.Of("seed", keyed.Seed(), func(f *F) *uint64 { return &f.Seed }, "the seed of the hash"),
		keyed.Of("cross_only", keyed.YesNo(), func(f *F) *bool { return &f.CrossOnly }, "no block of its own, in crosses alone; it may be all that is said of a word in crosses with buckets"),
	}
}

// featureList is the form of features by name.
func featureList() keyed.Form[[]feature.Feature] {
	one := keyed.Mapped(featureKeys)
	return keyed.Form[[]feature.Feature]{
		Schema: func() keyed.Object { return keyed.Object{"type": "object", "additionalProperties": one.Schema()} },
		Read: func(d *keyed.Decoder, n ast.Node, at string, to *[]feature.Feature) error {
			values, err := d.Mapping(n, at)
			if err != nil {
				return err
			}
			*to = []feature.Feature{}
			for _, kv := range values {
				// mapping takes no others
				f := feature.Feature{Name: kv.Key.(*ast.StringNode).Value}
				place := keyed.Join(at, f.Name)
				d.Src.At[place] = d.Pos(keyed.First(kv.Value))
				if err := one.Read(d, kv.Value, place, &f); err != nil {
					return err
				}
				*to = append(*to, f)
			}
			return nil
		},
		Write: func(of []feature.Feature) (any, error) {
			out := []keyed.Field{}
			for _, f := range slices.SortedFunc(slices.Values(of), func(a, b feature.Feature) int {
				return strings.Compare(a.Name, b.Name)
			}) {
				v, err := one.Write(f)
				if err != nil {
					return nil, err
				}
				out = append(out, keyed.FieldOf(f.Name, v))
			}
			return out, nil
		},
	}
}

// idFeature is the form of the action's id: a number of buckets, or a feature.
func idFeature() keyed.Form[feature.Feature] {
	f := keyed.Mapped(func() []keyed.Key[feature.Feature] {
		return slices.DeleteFunc(featureKeys(), func(k keyed.Key[feature.Feature]) bool {
			return !slices.Contains([]string{"values", "buckets", "seed"}, k.Name)
		})
	})
	mapping := f
	f.Schema = func() keyed.Object { return keyed.Object{"anyOf": []any{buckets().Schema(), mapping.Schema()}} }
	f.Read = func(d *keyed.Decoder, n ast.Node, at string, to *feature.Feature) error {
		if _, ok := n.(*ast.IntegerNode); ok {
			return buckets().Read(d, n, at, &to.Buckets)
		}
		return mapping.Read(d, n, at, to)
	}
	return f
}

func crossKeys() []keyed.Key[feature.Cross] {
	return []keyed.Key[feature.Cross]{
		keyed.Always("of", keyed.Many(keyed.Text(), keyed.Object{"minItems": 2}), func(c *feature.Cross) *[]string { return &c.Of },
			"names of features, or id").Must(),
		keyed.Of("buckets", buckets(), func(c *feature.Cross) *int { return &c.Buckets },
			"so many, by a hash of the words, instead of all combinations"),
		keyed.Of("seed", keyed.Seed(), func(c *feature.Cross) *uint64 { return &c.Seed }, "of the hash"),
	}
}

func liveRuleKeys() []keyed.Key[Rule] {
	return []keyed.Key[Rule]{
		keyed.Always("name", keyed.As(keyed.Object{"type": "string", "pattern": keyed.NameForm.String(), "maxLength": keyed.MaxLabel},
			(*keyed.Decoder).Text), func(r *Rule) *string { return &r.Name }, "a name for the page and the transcript").Must(),
		{Name: "play", Doc: "what it would give. first: the first action that is not excluded; uniform: each of those with " +
			"the same probability; policy: what the policy plays, without the floor; {id: a-17}: that action, " +
			"and the first where it is not there", Required: true,
			Schema: func() keyed.Object {
				return keyed.Object{"anyOf": []any{keyed.Object{"enum": plays}, keyed.Object{"type": "object",
					"properties": keyed.Object{"id": keyed.Object{"type": "string"}}, "required": []string{"id"},
					"additionalProperties": false}}}
			},
			Read: func(d *keyed.Decoder, n ast.Node, at string, to *Rule) error {
				switch n.(type) {
				case *ast.MappingNode, *ast.MappingValueNode:
					return d.Keys(n, at, []string{"id"}, func(_, at string, v ast.Node) error {
						return d.Text(v, at, &to.ID)
					})
				}
				return keyed.OneOf(plays).Read(d, n, at, &to.Play)
			},
			Given: func(*Rule) bool { return true },
			Value: func(r *Rule) (any, error) {
				if r.Play == "" {
					return []keyed.Field{keyed.FieldOf("id", r.ID)}, nil
				}
				return r.Play, nil
			}},
		keyed.Always("clip", keyed.Real(keyed.Object{"minimum": 1, "maximum": maxRuleClip}),
			func(r *Rule) *float64 { return &r.Clip },
			"the largest weight").Must(),
		keyed.Always("budget", keyed.Budget([]keyed.BudgetShape{keyed.BudgetShapes()[1]}),
			func(r *Rule) *privacy.Budget { return &r.Budget },
			"what one unit may lose by it, in addition, in ρ").Must(),
	}
}

// number32 is a whole number of a field that is an int.
func number32(schema keyed.Object) keyed.Form[int] {
	schema["type"] = "integer"
	return keyed.As(schema, func(d *keyed.Decoder, n ast.Node, at string, to *int) error {
		var c keyed.Count
		err := d.Count(n, at, &c)
		*to = int(c)
		return err
	})
}

func buckets() keyed.Form[int] {
	return number32(keyed.Object{"minimum": 2, "maximum": feature.MaxDim})
}

// Mapper is the map from features to vectors.
func (l *Experiment) Mapper() (*feature.Mapper, error) {
	p, err := feature.New(l.Contextual.Features)
	var wrong *feature.Error
	if errors.As(err, &wrong) {
		return nil, l.fail("contextual."+wrong.Field, "%s", wrong.Reason)
	}
	return p, err
}

// checkContextual says what is wrong with a contextual experiment, and with what it has that is
// for arms alone.
func (l *Experiment) checkContextual() error {
	c := l.Contextual
	for _, key := range []struct {
		name  string
		given bool
		why   string
	}{
		{"arms", l.Arms != nil, "each decision brings its actions"},
		{"risk", l.Risk != 0, "there is no best action to look for"},
		{"sticky", l.Free, "an event is a unit, and asks once"},
		{"unit.assignments", l.Unit.Assignments > 1, "an event is a unit, and is assigned once"},
		{"metrics", l.Metrics != nil, "rules are what is released beside rewards"},
		{"ratios", l.Ratios != nil, "there are no metrics"},
		{"missing", l.Missing == MissingDrop, "the vector of a decision counts in any case"},
		{"exposure", l.Exposure == ExposeRetract, "the vector of a decision counts from then on"},
		{"shares", l.Shares != nil, "the policy chooses among the actions"},
		{"effect", l.Effect != 0, "there are no arms to compare"},
		{"rate", l.Rate != 0, "there are no arms to compare"},
		{"fallback", l.Fallback != "", "it is the first action that is not excluded"},
		{"stop", l.Stop.Keep != "" && l.Stop.Keep != KeepPolicy, "it has no arm to be kept, keep is policy or is left out"},
		{"share", l.Share != 0, "all events are in it"},
		{"only", l.Only != nil || l.Where != nil, "all events are in it"},
		{"by", l.By.Key != "", "a release is of vectors, and has no cells"},
		{"cell_minimum", l.CellMinimum != 0, "a release is of vectors, and has no cells"},
		{"layer", l.Layer != Layer{}, "all events are in it"},
		{"webhook", l.Webhook != "", "it stops without an arm that is kept"},
		{"webhook_form", l.WebhookForm != "", "it stops without an arm that is kept"},
		{"forget", l.Forget != 0, "an event is a decision of its own, and one that came back would be another"},
		{"trust", l.TrustModel() != privacy.TrustCentral, "sums of vectors are not gathered"},
		{"report_after", l.ReportAfter != 0, "their rewards come when they are there"},
		{"grid", l.Grid != 0, "their rewards are not split"},
		{"helper", l.Helper != Helper{}, "their rewards are not split"},
		{"cohort", l.Cohort != Cohort{}, "an event is alone"},
		{"ramp", l.Ramp != nil, "all events are in it"},
		{"leases", l.Leases.On(), "a plan has shares of arms, and knows no contexts"},
		{"guard", l.Guard != nil, "there are no arms to pause"},
		{"holds", l.Holds != "", "there are no arms to compare"},
		{"holdout", l.Holdout != "", "an event is a unit, and asks once"},
	} {
		if key.given {
			return l.fail(key.name, "is not for contextual experiments: %s", key.why)
		}
	}
	f := c.Features
	if len(f.Action) == 0 && f.ID.Values == nil && f.ID.Buckets == 0 &&
		!slices.ContainsFunc(f.Cross, func(x feature.Cross) bool { return slices.Contains(x.Of, "id") }) {
		return l.fail("contextual.action", "is missing, and so are id and crosses with it: all actions would "+
			"be the same")
	}
	p, err := l.Mapper()
	if err != nil {
		return err
	}
	if d := p.Dim(); d > maxLiveDim {
		return l.fail("contextual", "makes vectors of %d components, must make at most %d", d, maxLiveDim)
	}
	if c.Mode != "" && c.Mode != ModeLearn && c.Mode != ModeApprentice {
		return l.fail("contextual.mode", "is %q, must be %s or %s", keyed.Clip(c.Mode), ModeLearn, ModeApprentice)
	}
	if err := l.checkProtect(); err != nil {
		return err
	}
	played, err := l.NewContextual(ZeroCoins{})
	if err != nil {
		return err
	}
	if _, ok := played.(play.Modelled); !ok && l.Stop.Keep == KeepPolicy {
		return l.fail("stop.keep", "is %s, and %s has no model that can be kept: leave it out", KeepPolicy,
			l.Policy.Policy)
	}
	return l.checkRules()
}

func (l *Experiment) checkRules() error {
	rules := l.Contextual.Rules
	if len(rules) > maxLiveRules {
		return l.fail("contextual.rules", "has %d, must have at most %d", len(rules), maxLiveRules)
	}
	for i, r := range rules {
		at := fmt.Sprintf("contextual.rules[%d]", i)
		switch {
		case !keyed.NameForm.MatchString(r.Name) || len(r.Name) > keyed.MaxLabel:
			return l.fail(at+".name", "is %q, must be at most %d characters of a-z, 0-9, dot, dash and "+
				"underscore, the first a letter or digit", keyed.Clip(r.Name), keyed.MaxLabel)
		case slices.ContainsFunc(rules[:i], func(b Rule) bool { return b.Name == r.Name }):
			return l.fail(at+".name", "%q is the name of a rule before: names must differ", r.Name)
		case r.Play == "" && r.ID == "":
			return l.fail(at+".play", "is missing, must be %s or {id: ID}", strings.Join(plays, ", "))
		case r.Play != "" && !slices.Contains(plays, r.Play):
			return l.fail(at+".play", "is %q, must be %s or {id: ID}", keyed.Clip(r.Play), strings.Join(plays, ", "))
		case r.Play != "" && r.ID != "":
			return l.fail(at+".play", "is %s and an id, must be one of them", r.Play)
		case !(r.Clip >= 1 && r.Clip <= maxRuleClip):
			return l.fail(at+".clip", "is %v, must be from 1 to %v: weights are one over a propensity",
				r.Clip, float64(maxRuleClip))
		case l.Floor == 0 && r.Play != l.Contextual.follows():
			return l.fail(at+".play", "would be given actions that are never given with floor: 0: declare a "+
				"floor such as 0.1")
		}
		if err := keyed.CheckLabel(r.ID); r.ID != "" && err != nil {
			return l.src.Wrap(at+".play", err)
		}
		if _, err := r.mechanism(l.Budget); err != nil {
			return l.fail(at+".budget", "%w", err)
		}
	}
	return nil
}

// follows is the rule that is played but for the floor.
func (c *Contextual) follows() string {
	if c.Mode == ModeApprentice {
		return PlayFirst
	}
	return PlayPolicy
}

// mechanism is what releases a rule's sums, mapped to [0,1] a decision, beside rewards with this
// budget.
func (r Rule) mechanism(rewards privacy.Budget) (privacy.Mechanism, error) {
	own, rho := r.Budget.(privacy.ZCDP)
	_, same := rewards.(privacy.ZCDP)
	switch {
	case r.Budget == nil:
		return nil, errors.New("is missing, must be a budget such as {rho: 0.05}")
	case !rho || !(own.Rho > 0 && own.Rho <= maxMetricBudget):
		return nil, fmt.Errorf("is %v, must be above 0 and at most %v, in rho", r.Budget,
			float64(maxMetricBudget))
	case !same:
		return nil, fmt.Errorf("is in rho, and the experiment's is %v, must be in rho too", rewards)
	}
	return privacy.Gaussian{Sigma: 1 / math.Sqrt(2*own.Rho)}, nil
}

// PlayRules are the rules as they are played, of an experiment that Check lets pass.
func (l *Experiment) PlayRules() (out []play.Rule, err error) {
	for i, r := range l.Contextual.Rules {
		p := play.Rule{Name: r.Name, Clip: r.Clip}
		if p.Mechanism, err = r.mechanism(l.Budget); err != nil {
			return nil, l.fail(fmt.Sprintf("contextual.rules[%d].budget", i), "%w", err)
		}
		out = append(out, p)
	}
	return out, nil
}

// NewContextual builds the policy of a contextual experiment, with its coins at their start.
func (l *Experiment) NewContextual(coins policy.Coins) (play.ContextualPolicy, error) {
	each, err := l.EachAssignment()
	if err != nil {
		return nil, err
	}
	if l.Policy.Policy == "" { // which is joint, see Reader.Parse
		return nil, l.fail("policy", "is missing, must be jdp-greedy or lin-ucb: vectors are not few, as %s needs them",
			HistogramPolicy)
	}
	entry, err := l.Catalog.Find(catalog.BanditContextual, l.Policy.Policy)
	if err != nil {
		return nil, l.src.Wrap("policy", err)
	}
	switch {
	case !entry.Private:
		return nil, l.fail("policy", "%s is not private: live rewards are people's", entry.Name)
	case entry.Simulated != "":
		return nil, l.fail("policy", "%s is for simulations, must be one that can be played live: %s", entry.Name,
			entry.Simulated)
	case !entry.PublicContexts && !l.Contextual.Joint():
		return nil, l.fail("policy", "%s protects contexts as well, so that nobody may see what others are "+
			"given, must come with contextual.protect: joint", entry.Name)
	case !entry.Anytime && l.Horizon == 0:
		return nil, l.fail("horizon", "is missing: %s must know how many decisions there will be", entry.Name)
	}
	if err := entry.Meets(each); err != nil {
		return nil, l.src.Wrap("budget", err)
	}
	mapper, err := l.Mapper()
	if err != nil {
		return nil, err
	}
	params, err := l.ContextualParams(entry, mapper.Norm())
	if err != nil {
		return nil, l.src.Wrap("policy", err)
	}
	if l.Contextual.Joint() {
		if err := l.jointParams(entry, params); err != nil {
			return nil, err
		}
	}
	setting := catalog.ContextualSetting{Dim: mapper.Dim(), Arms: l.Contextual.MaxActions(),
		Horizon: int(l.Horizon), Budget: each, Coins: coins, Step: release.ExactStep}
	if l.Counted() {
		if setting.Rows, err = l.rows(); err != nil {
			return nil, err
		}
	}
	p, err := entry.NewContextual(setting, params)
	if err != nil {
		return nil, l.src.Wrap("policy", err)
	}
	late, ok := p.(play.ContextualPolicy)
	if !ok {
		return nil, l.fail("policy", "%s cannot be played live: it has no form for rewards that "+
			"come late", entry.Name)
	}
	return late, nil
}

// ContextualParams are the policy's, all of them, for vectors whose blocks are divided by norm.
func (l *Experiment) ContextualParams(entry catalog.Entry, norm float64) (catalog.Params, error) {
	params, err := entry.Complete(l.Policy.Params)
	lo, hi := l.Range()
	follows := catalog.Params{
		normParam:      norm, // a model of norm 1 over blocks has that over vectors
		interceptParam: 1,
		centreParam:    2*(l.Default-lo)/(hi-lo) - 1,
	}
	if x, said := l.Policy.Params[interceptParam]; said && x == 0 {
		delete(follows, centreParam)
	}
	for name, x := range follows {
		_, said := l.Policy.Params[name]
		if _, has := params[name]; has && !said {
			params[name] = x
		}
	}
	return params, err
}

// MaxActions is how many a decision may bring.
func (c *Contextual) MaxActions() int {
	if c.Features.Actions == 0 {
		return feature.DefaultActions
	}
	return c.Features.Actions
}

// A learning is what warnings about a contextual experiment go by.
type learning struct {
	dim       float64
	norm      float64 // what blocks are divided by
	sigma     float64 // of a release, each coordinate
	lambda, c float64 // of the policy
	first     float64 // decisions of the first release, where later ones have half as many as all before; else 0
	memory    float64 // twice the decisions that a later one has at most; 0: no limit
}

// releases bounds how many there are of so many decisions: d log(1+T/(λd))/log(1+C), or by a clock.
func (p learning) releases(decisions, lambda float64) float64 {
	if p.first > 0 {
		n := 4 + max(0, math.Log(decisions/p.first)/math.Log(1.5))
		if p.memory > 0 {
			n = max(n, decisions/max(p.first, p.memory/2))
		}
		return n
	}
	return p.dim * math.Log1p(decisions/(lambda*p.dim)) / math.Log1p(p.c)
}

// enough is from how many decisions on the noise in an estimate is no more than twice what chance
// does to it: the sums of products of ℓ releases have noise of σ√ℓ a coordinate, and T/d rewards in
// [−1,1] at a component of 1/√B have a standard deviation of √(T/(dB)) at most. That is T ≥ ℓσ²dB/4,
// which is iterated, since the bound on ℓ grows with log T. A λ above 1 counts as 1: it has fewer
// releases, and shrinks the estimates instead. By order of magnitude it is from when on simulations
// lose a tenth to privacy (docs/contextual.md); what an experiment loses, its plan says.
func (p learning) enough() float64 {
	t := p.dim
	for range 50 {
		noises := p.releases(t, min(1, p.lambda))
		if p.first > 0 {
			noises = 5 // by weights that follow noise: Σ(n_s/n)² of segments that grow by half is a fifth
		}
		t = max(p.dim, noises*p.sigma*p.sigma*p.dim*p.norm*p.norm/4)
	}
	return t
}

// mostNoise is the standard deviation of the noise in a rule's estimate from which on there is a
// warning, as a share of the range of rewards.
const mostNoise = 0.02

// Warnings are what an experiment that Check lets pass had better not have, in words.
func (l *Experiment) Warnings() []string {
	var out []string
	if odds := l.odds(); odds != "" {
		out = append(out, "budget: "+odds+", which protects little: take at most "+fmt.Sprint(mostEpsilon))
	}
	if l.Contextual == nil {
		return out
	}
	warn := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	f := l.Contextual.Features
	if len(f.Context) > 0 && !f.Steers() {
		warn("contextual.cross: none joins a feature of the context with the action's: the context cannot " +
			"matter to which action is best")
	}
	decisions, of := float64(l.Horizon), "the horizon"
	if l.Horizon == 0 {
		if decisions, of = math.Inf(1), ""; l.Traffic > 0 {
			decisions, of = 365*l.Traffic, "a year's traffic"
		}
	}
	if l.Traffic > 0 && !l.Start.IsZero() && !l.End.IsZero() {
		if n := l.Traffic * l.End.Sub(l.Start).Hours() / 24; n < decisions {
			decisions, of = n, "what comes from start to end"
		}
	}
	if n := l.Traffic * l.Window.Hours() / 24; n > decisions/5 {
		warn("window: in %v there are %.2g decisions, of %.2g in all: so many are made before anything is "+
			"learnt of the first ones", l.Window, n, decisions)
	}
	if l.Contextual.Joint() {
		if dim, n := l.jointEnough(); decisions < n {
			warn("contextual: vectors have %d components, and at %v under joint privacy the noise outweighs what "+
				"was played until %.2g decisions; %s is %.2g: take fewer features, larger leaves or a larger budget",
				dim, l.Budget, n, of, decisions)
		}
		return out
	}
	p, err := l.learning()
	if err != nil {
		return out
	}
	if n := p.enough(); decisions < n {
		warn("contextual: vectors have %v components, and at %v the noise in an estimate is more than twice "+
			"what chance does to it until about %.2g decisions; %s is %.2g: take fewer features or a larger "+
			"budget (sotto plan live says what it costs)",
			p.dim, l.Budget, n, of, decisions)
	}
	for i, r := range l.Contextual.Rules {
		at := fmt.Sprintf("contextual.rules[%d].clip: is %v", i, r.Clip)
		if most := l.MostWeight(r); r.Clip < most {
			warn("%s, and weights go up to %.4g with %d actions: what is above counts %v, and the estimate "+
				"comes out too low", at, most, l.Contextual.MaxActions(), r.Clip)
		}
		m, err := r.mechanism(l.Budget)
		if err != nil {
			continue
		}
		sd := r.Clip * m.(privacy.Gaussian).Sigma * math.Sqrt(p.releases(decisions, p.lambda)) / decisions
		if lo, hi := l.Range(); sd > mostNoise {
			warn("%s, and the noise in the estimate has a standard deviation of up to %.2g after "+
				"%.2g decisions, "+
				"of rewards from %v to %v: take a smaller clip, fewer actions, a larger floor or "+
				"a larger budget",
				at, sd*(hi-lo), decisions, lo, hi)
		}
	}
	return out
}

func (l *Experiment) learning() (p learning, err error) {
	mapper, err := l.Mapper()
	if err != nil {
		return p, err
	}
	played, err := l.NewContextual(ZeroCoins{})
	if err != nil {
		return p, err
	}
	entry, err := l.Catalog.Find(catalog.BanditContextual, l.Policy.Policy)
	if err != nil {
		return p, err
	}
	params, err := entry.Complete(l.Policy.Params)
	if err != nil {
		return p, err
	}
	m, ok := played.Mechanism().(privacy.VectorGaussian)
	if !ok {
		return p, errors.New("its releases are no sums of vectors")
	}
	return learning{dim: float64(mapper.Dim()), norm: mapper.Norm(), sigma: m.Sigma, lambda: params["lambda"],
		c: params["c"], first: params["first"], memory: params["memory"]}, nil
}

// MostWeight is the largest weight that a rule can have: its probability of an action over the
// propensity of that, with as many actions as there may be.
func (l *Experiment) MostWeight(r Rule) float64 {
	n := float64(l.Contextual.MaxActions())
	switch {
	case r.Play == l.Contextual.follows():
		return 1 / (1 - l.Floor + l.Floor/n)
	case r.Play == PlayUniform:
		return 1 / l.Floor
	}
	return n / l.Floor
}
