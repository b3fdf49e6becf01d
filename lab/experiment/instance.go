package experiment

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/goccy/go-yaml/ast"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/logged"
	"github.com/sotto-dp/sotto/noise"
)

// An instanceForm says how the instances of a kind are written: each has a name, and is said in one
// of some ways.
type instanceForm struct {
	what    string // what an instance is made of: arms
	example string // of an instance
	ways    []way
}

// A way to say what an instance is. The first key says that it is this one.
type way struct {
	keys    []keyed.Key[Instance]
	example string // of the reference: what is written beside the name
	ref     string
	hidden  bool            // it can be read, and is not offered
	begin   func(*Instance) // makes room for what is read; nil: there is
}

func (w way) key() keyed.Key[Instance] { return w.keys[0] }

func instanceName() keyed.Key[Instance] {
	return keyed.Always("name", keyed.Label(), func(in *Instance) *string { return &in.Name }, "").Must()
}

// names are the ways that a file may use.
func (f instanceForm) names() []string {
	var out []string
	for _, w := range f.ways {
		if !w.hidden {
			out = append(out, w.key().Name)
		}
	}
	return out
}

func (f instanceForm) form() keyed.Form[Instance] {
	return keyed.Form[Instance]{
		Read: f.read,
		Write: func(in Instance) (any, error) {
			for _, w := range f.ways {
				if w.key().Given(&in) {
					return keyed.NormalOf(append([]keyed.Key[Instance]{instanceName()}, w.keys...), &in)
				}
			}
			return nil, f.nowhere()
		},
		Schema: func() keyed.Object {
			var of []any
			for _, w := range f.ways {
				if !w.hidden {
					of = append(of, keyed.SchemaOf(append([]keyed.Key[Instance]{instanceName()}, w.keys...)))
				}
			}
			return keyed.Object{"oneOf": of}
		},
	}
}

func (f instanceForm) nowhere() error {
	if len(f.ways) == 1 {
		return fmt.Errorf("says no %s, must say %s, such as %s", f.what, f.ways[0].key().Name,
			f.ways[0].example)
	}
	return fmt.Errorf("says nowhere what its %s are, must say one of %s", f.what, strings.Join(f.names(), ", "))
}

// read reads an instance. The ways that are given decide about the other keys.
func (f instanceForm) read(d *keyed.Decoder, n ast.Node, field string, to *Instance) error {
	values, err := d.Mapping(n, field)
	if err != nil {
		return err
	}
	keys, given := []keyed.Key[Instance]{instanceName()}, 0
	for _, w := range f.ways {
		if slices.ContainsFunc(values, func(kv *ast.MappingValueNode) bool {
			return kv.Key.GetToken().Value == w.key().Name
		}) {
			keys = append(keys, w.keys...)
			if given++; w.begin != nil {
				w.begin(to)
			}
		}
	}
	switch {
	case given > 1:
		return d.Fail(n, field, "says what its %s are in %d ways, must say one of %s", f.what, given,
			strings.Join(f.names(), ", "))
	case given == 0: // an unknown key is told with the ways, as one of them may be meant
		for _, w := range f.ways {
			if !w.hidden {
				keys = append(keys, w.key())
			}
		}
	}
	if err := keyed.ReadKeys(d, n, field, keys, to); err != nil {
		return err
	}
	if given == 0 {
		return d.Fail(n, field, "%w", f.nowhere())
	}
	return nil
}

// A foreignWay is a way of another kind.
type foreignWay struct {
	way
	kind string
}

func foreignWays(own kind) []foreignWay {
	var out []foreignWay
	for _, k := range kinds() {
		if k.name() == own.name() {
			continue
		}
		for _, w := range k.instances().ways {
			out = append(out, foreignWay{w, k.name()})
		}
	}
	return out
}

// check refuses an instance that a program has said in no way of its kind, or in several, or in one
// of others.
func (f instanceForm) check(in *Instance, kind string, others []foreignWay) error {
	ways := 0
	for _, w := range f.ways {
		if w.key().Given(in) {
			ways++
		}
	}
	for _, w := range others {
		if w.key().Given(in) && !slices.ContainsFunc(f.ways, func(own way) bool {
			return own.key().Name == w.key().Name && own.key().Given(in)
		}) {
			return fmt.Errorf("has %s, which is for experiments of kind %s: one of kind %s wants one of %s",
				w.key().Name, w.kind, kind, strings.Join(f.names(), ", "))
		}
	}
	if ways != 1 {
		return fmt.Errorf("says what its %s are in %d ways, must say exactly one of %s", f.what, ways,
			strings.Join(f.names(), ", "))
	}
	return nil
}

// programKey stands in the normal form of an instance that came from a program. It can be read, so
// that such results can be reported, but not played.
const programKey = "source"

// fromProgram is the way of an instance that is a source of some kind.
func fromProgram[S fmt.Stringer](at func(*Instance) *S, of func(described) S) way {
	f := keyed.Form[S]{Schema: func() keyed.Object { return keyed.Object{} },
		Read: func(d *keyed.Decoder, n ast.Node, place string, to *S) error {
			var text string
			err := d.Text(n, place, &text)
			*to = of(described(text))
			return err
		},
		Write: func(s S) (any, error) { return s.String(), nil },
	}
	return way{keys: []keyed.Key[Instance]{keyed.Of(programKey, f, at, "")}, hidden: true}
}

// A described source is known by its description only.
type described string

// Instance says so.
func (d described) Instance(*noise.Fast) (bandit.Instance, error) {
	return bandit.Instance{}, fmt.Errorf("comes from a program, %q: only that program can play it",
		keyed.Clip(string(d)))
}

// Linear says so.
func (d described) Linear(*noise.Fast) (bandit.LinearInstance, error) {
	_, err := d.Instance(nil)
	return bandit.LinearInstance{}, err
}

// Contextual says so.
func (d described) Contextual(*noise.Fast) (bandit.ContextualInstance, error) {
	_, err := d.Instance(nil)
	return nil, err
}

// Redrawn is unknown, and asked by nobody.
func (d described) Redrawn() bool { return false }

// String is the description.
func (d described) String() string { return string(d) }

// csvKey is a file of logged rewards.
func csvKey(doc string) keyed.Key[Instance] {
	return keyed.Of("csv", keyed.Filled(", must be the path of a file"), func(in *Instance) *string { return &in.CSV },
		doc).Must()
}

// sha256Key pins the file. The normal form does not tell it: who has a guess of the log could see
// that it is right.
func sha256Key() keyed.Key[Instance] {
	f := keyed.Text()
	f.Schema = func() keyed.Object { return keyed.Object{"type": "string", "pattern": "^[0-9a-fA-F]{64}$"} }
	return keyed.Of("sha256", f, func(in *Instance) *string { return &in.SHA256 },
		"hash of that file: another one is refused").When(func(*Instance) bool { return false })
}

// lawText is a law; a bare number is the mean of a Bernoulli.
func lawText() keyed.Form[string] {
	return keyed.As(keyed.Object{"type": []any{"string", "number"}},
		func(d *keyed.Decoder, n ast.Node, at string, to *string) error {
			if s, ok := keyed.Digits(n); ok {
				*to = s
				return nil
			}
			return d.Text(n, at, to)
		})
}

// separator reads what divides the cells of a CSV.
func separator(d *keyed.Decoder, n ast.Node, at string, to *string) error {
	if err := d.Text(n, at, to); err != nil {
		return err
	}
	if *to == "" || (logged.Dialect{Separator: *to}).Check() != nil {
		return d.Fail(n, at, "is %q, must be , or ; or | or tab", keyed.Clip(*to))
	}
	return nil
}

// armInstances are those of the kinds that play arms. A form does not change: it is made once.
var armInstances = sync.OnceValue(newArmInstances)

func newArmInstances() instanceForm {
	arms := func() keyed.Key[Instance] {
		return keyed.Always("arms", keyed.Whole(), func(in *Instance) *keyed.Count { return &in.Arms },
			"number of arms, at least 2").Must()
	}
	column := func(name string, at func(*Columns) *string, doc, ref string) keyed.Key[Instance] {
		return keyed.Of(name, keyed.Filled(", must be the name of a column"),
			func(in *Instance) *string { return at(&in.Columns) }, doc).Means(ref)
	}
	const named = "`arm`, `reward`; the columns that name the arms and have the rewards. Further " +
		"columns are ignored"
	return instanceForm{what: "arms", example: "{name: easy, bernoulli: [0.75, 0.25]}", ways: []way{
		{example: "bernoulli: [0.75, 0.6]", ref: "means of Bernoulli arms. With " +
			"`vectors: [[1, 0], [0, 1]]`, one x each, they must be ⟨θ,x⟩ for one θ, or with `link: logistic` " +
			"1/(1+e^(−⟨θ,x⟩)), for policies that know it. With `contexts: [0.7, 0.3]`, the shares of people with each " +
			"context, they are those of the arms in the first context, then in the second, as many in each, and the best " +
			"arm is that of a context, for policies that play contexts", keys: []keyed.Key[Instance]{
			keyed.Of("bernoulli", keyed.Many(keyed.Real(keyed.Object{"minimum": 0, "maximum": 1}), keyed.Object{"minItems": 2}),
				func(in *Instance) *[]float64 { return &in.Bernoulli }, "means of Bernoulli arms").Must(),
			keyed.Of("vectors", keyed.Many(vector(), keyed.Object{"minItems": 2}),
				func(in *Instance) *[][]float64 { return &in.Vectors },
				"vectors of the arms, from which their means follow"),
			keyed.Of("link", keyed.As(keyed.Object{"enum": []any{catalog.MeansLinear, catalog.MeansLogistic},
				"default": catalog.MeansLinear}, readLink),
				func(in *Instance) *string { return &in.Link },
				"how means follow from vectors x: linear, as <theta,x>, or logistic, as 1/(1+exp(-<theta,x>))"),
			keyed.Of("contexts", keyed.Many(keyed.Share(), keyed.Object{"minItems": 2}),
				func(in *Instance) *[]float64 { return &in.Contexts },
				"shares of contexts that people come with; bernoulli has the arms of one context after the other"),
			changesKey(),
		}},
		{example: `laws: ["gaussian(0.5,0.1)", "beta(2,3)"]`, ref: "a law an arm: `bernoulli(p)` or " +
			"a bare number, `gaussian(mean,sd)`, `clipped-gaussian(mean,sd,lo,hi)`, `beta(a,b)`, " +
			"`uniform(lo,hi)`, `table(value:probability,…)`", keys: []keyed.Key[Instance]{
			keyed.Of("laws", keyed.Many(lawText(), keyed.Object{"minItems": 2}),
				func(in *Instance) *[]string { return &in.Laws }, "one law an arm: bernoulli(p), "+
					"gaussian(mean,sd), clipped-gaussian(mean,sd,lo,hi), beta(a,b), uniform(lo,hi), "+
					"table(v1:p1,v2:p2,…)").Must(),
			changesKey(),
		}},
		{example: "standard: C2, arms: 5", ref: "C1–C4 of [Sajed 2019, chapter 6], from their formulas, for " +
			"any number of arms", keys: []keyed.Key[Instance]{
			keyed.Of("standard", keyed.As(keyed.Object{"enum": []any{"C1", "C2", "C3", "C4"}}, (*keyed.Decoder).Text),
				func(in *Instance) *string { return &in.Standard },
				"a standard instance of Bernoulli arms").Must(),
			arms(),
		}},
		{example: "means: {uniform: [0.25, 0.75]}, arms: 10", ref: "means drawn uniformly; with " +
			"`law: bernoulli` (default), `gaussian` or `clipped-gaussian`, the latter two with " +
			"`sd`; `redraw: true` draws them anew for each run", begin: func(in *Instance) {
			in.Means = &Means{}
		}, keys: []keyed.Key[Instance]{
			meansKey(),
			arms(),
			keyed.Always("law", keyed.As(keyed.Object{"enum": []any{"bernoulli", "gaussian", "clipped-gaussian"},
				"default": "bernoulli"}, (*keyed.Decoder).Text),
				func(in *Instance) *string { return &in.Means.Law }, "law of the rewards").
				Or("bernoulli"),
			keyed.Of("sd", keyed.Real(keyed.Object{"exclusiveMinimum": 0}),
				func(in *Instance) *float64 { return &in.Means.SD },
				"standard deviation of the Gaussian laws"),
			keyed.Always("redraw", keyed.YesNo(), func(in *Instance) *bool { return &in.Means.Redraw },
				"draw the means anew for each run"),
		}},
		{example: "csv: rewards.csv", ref: "the empirical law of logged rewards: a CSV with a " +
			"header, relative to the experiment's file. Rows are drawn with replacement, so that " +
			"their order does not matter. `sha256: …` pins the file. Results are as private as " +
			"the log: see below", keys: []keyed.Key[Instance]{
			csvKey("logged rewards, with a header; relative to this file"),
			column("arm_column", func(c *Columns) *string { return &c.Arm },
				"column that names the arms", named).Like(keyed.Object{"default": "arm"}),
			column("reward_column", func(c *Columns) *string { return &c.Reward },
				"column with the rewards", named).Like(keyed.Object{"default": "reward"}),
			column("user_column", func(c *Columns) *string { return &c.User },
				"column of persons: the rows of one count once", "none: every row counts. Else the "+
					"column that says whose a row is, and each person counts once: with the mean of "+
					"the rows, clipped to `range` (not if `unclipped`), of one of the person's arms, "+
					"which a fixed hash of both names draws"),
			keyed.Of("skip_missing", keyed.YesNo(), func(in *Instance) *bool { return &in.Columns.SkipMissing },
				"leave out rows without a reward").
				Means("`false`; leave out rows whose reward is blank, `NA`, `N/A`, `NaN`, `null` or " +
					"`None`. How many is a warning, and not private"),
			keyed.Of("separator", keyed.As(keyed.Object{"enum": []any{",", ";", "|", "tab"}, "default": ","}, separator),
				func(in *Instance) *string { return &in.Columns.Separator },
				"what divides cells: , or ; or | or tab").Means("`,`; what divides cells: `,`, `;`, `\\|` or `tab`"),
			keyed.Of("decimal_comma", keyed.YesNo(), func(in *Instance) *bool { return &in.Columns.DecimalComma },
				"numbers have a decimal comma").Means("`false`; numbers have a decimal comma: `0,5` is a half"),
			sha256Key(),
		}},
		{example: "exec: [python3, arms.py]", ref: "a program of your own, [in Python](../contrib/python/README.md) or another " +
			"language, pays 10 000 rewards of each arm before anything is played, and their empirical law is played", keys: []keyed.Key[Instance]{
			keyed.Of("exec", keyed.Many(keyed.Filled(", must be a command or an argument of it"), keyed.Object{"minItems": 1}),
				func(in *Instance) *[]string { return &in.Exec },
				"the command that pays rewards, and its arguments; paths begin where the file is").Must(),
		}},
		fromProgram(func(in *Instance) *bandit.Source { return &in.Source },
			func(d described) bandit.Source { return d }),
	}}
}

func readLink(d *keyed.Decoder, n ast.Node, at string, to *string) error {
	if err := d.Text(n, at, to); err != nil {
		return err
	}
	if *to != catalog.MeansLinear && *to != catalog.MeansLogistic {
		return d.Fail(n, at, "is %q, must be %s or %s", keyed.Clip(*to), catalog.MeansLinear, catalog.MeansLogistic)
	}
	return nil
}

// changesKey is the worlds that an instance turns into.
func changesKey() keyed.Key[Instance] {
	return keyed.Of("changes", keyed.Many(keyed.Mapped(func() []keyed.Key[Change] {
		return []keyed.Key[Change]{
			keyed.Always("from", keyed.Whole(), func(c *Change) *keyed.Count { return &c.From },
				"the first round of these laws, the run's first being 1").Must(),
			keyed.Always("laws", keyed.Many(lawText(), keyed.Object{"minItems": 2}), func(c *Change) *[]string { return &c.Laws },
				"one law an arm, as in laws; a number is the mean of a Bernoulli").Must(),
		}
	}), keyed.Object{}), func(in *Instance) *[]Change { return &in.Changes },
		"laws that the arms have from later rounds on: regret is then against the best arm of each round").
		Means("none; `changes: [{from: 50001, laws: [0.6, 0.75]}]` gives the arms other laws from a round " +
			"on, as often as wanted. Regret is then against the best arm of each round. For `kind: regret`, " +
			"without bounds")
}

// meansKey says that means are drawn, and from which law.
func meansKey() keyed.Key[Instance] {
	return keyed.Key[Instance]{Name: "means", Required: true,
		Schema: func() keyed.Object {
			span := keyed.SpanSchema()
			span["description"] = "means are uniform in [low, high]"
			return keyed.Object{"type": "object", "properties": keyed.Object{"uniform": span},
				"required": []string{"uniform"}, "additionalProperties": false}
		},
		Read: func(d *keyed.Decoder, n ast.Node, field string, to *Instance) error {
			given := false
			err := d.Keys(n, field, []string{"uniform"}, func(_, at string, v ast.Node) error {
				given = true
				return d.Pair(v, at, &to.Means.Lo, &to.Means.Hi)
			})
			if err == nil && !given {
				return d.Fail(n, field, "says no law, must say {uniform: [low, high]}")
			}
			return err
		},
		Given: func(in *Instance) bool { return in.Means != nil },
		Value: func(in *Instance) (any, error) {
			return []keyed.Field{keyed.FieldOf("uniform", keyed.List([]float64{in.Means.Lo, in.Means.Hi}))}, nil
		},
	}
}
