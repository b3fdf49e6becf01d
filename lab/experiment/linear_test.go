package experiment_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/lab/experiment"
	"github.com/sotto-dp/sotto/noise"
)

// goodLinear and goodContextual are small experiments that every bad one below is a change of.
const goodLinear = `name: lin
kind: linear
horizon: 5000
runs: 4
instances:
  - {name: three, actions: [[1, 0], [0, 1], [0.6, 0.8]], theta: [0.5, 0.1]}
policies:
  - {policy: adac-gope}
budgets: [{rho: 1}]
`

const goodContextual = `name: con
kind: contextual
horizon: 500
runs: 4
instances:
  - {name: ball, contexts: gaussian, arms: 4, dimension: 3, normalise: true}
policies:
  - {policy: adac-oful}
budgets: [{rho: 1}]
`

// badLinear and badContextual list experiments with one mistake each; what is said about them is in
// testdata/errors-linear.txt. Those marked are seen by the schema too.
var badLinear = []struct {
	name, from, to string
	schema         bool
}{
	{"another range", "runs: 4", "runs: 4\nrange: [0, 1]", true},
	{"a cap", "horizon: 5000", "cap: 5000", true},
	{"policy for arms", "adac-gope", "adap-ucb", true},
	{"policy for contexts", "adac-gope", "adac-oful", true},
	{"unknown policy", "adac-gope", "adac-gopee", true},
	{"unknown parameter", "{policy: adac-gope}", "{policy: adac-gope, rsk: 0.1}", true},
	{"risk is zero", "{policy: adac-gope}", "{policy: adac-gope, risk: 0}", true},
	{"phases is unknown", "{policy: adac-gope}", "{policy: adac-gope-var, phases: mine}", true},
	{"pure budget", "rho: 1", "epsilon: 1", false},
	{"budgets missing", "budgets: [{rho: 1}]\n", "", false},
	{"arms", "actions: [[1, 0], [0, 1], [0.6, 0.8]], theta: [0.5, 0.1]", "bernoulli: [0.5, 0.1]", true},
	{"contexts", "actions: [[1, 0], [0, 1], [0.6, 0.8]], theta: [0.5, 0.1]",
		"contexts: sphere, arms: 3, dimension: 2", true},
	{"two ways", "theta: [0.5, 0.1]", "theta: [0.5, 0.1], csv: linear.csv", true},
	{"no way", "actions: [[1, 0], [0, 1], [0.6, 0.8]], theta: [0.5, 0.1]", "noise: sign", true},
	{"no actions", "[[1, 0], [0, 1], [0.6, 0.8]]", "[]", true},
	{"one action", "[[1, 0], [0, 1], [0.6, 0.8]]", "[[1, 0]]", true},
	{"action without numbers", "[0, 1]", "[]", true},
	{"action of another dimension", "[0, 1]", "[0, 1, 0]", false},
	{"action is a number", "[[1, 0], [0, 1], [0.6, 0.8]]", "[1, 0, 0.6]", true},
	{"feature is nan", "[0, 1]", "[0, .nan]", false},
	{"feature is infinite", "[0, 1]", "[.inf, 1]", false},
	{"action too long", "[0.6, 0.8]", "[0.8, 0.8]", false},
	{"same action twice", "[0.6, 0.8]", "[0, 1.0]", false},
	{"all zero", "actions: [[1, 0], [0, 1], [0.6, 0.8]]", "normalise: true, actions: [[0, 0], [0, -0]]", false},
	{"theta missing", ", theta: [0.5, 0.1]", "", true},
	{"theta is drawn", "theta: [0.5, 0.1]", "theta: sphere", true},
	{"theta of another dimension", "theta: [0.5, 0.1]", "theta: [0.5]", false},
	{"theta is nan", "theta: [0.5, 0.1]", "theta: [0.5, .nan]", false},
	{"theta too long", "theta: [0.5, 0.1]", "theta: [0.9, 0.9]", false},
	{"theta too long after scaling", "actions: [[1, 0], [0, 1], [0.6, 0.8]], theta: [0.5, 0.1]",
		"normalise: true, actions: [[4, 0], [0, 1]], theta: [0.5, 0.1]", false},
	{"unknown noise", "theta: [0.5, 0.1]", "theta: [0.5, 0.1], noise: sgn", true},
	{"noise without spread", "theta: [0.5, 0.1]", "theta: [0.5, 0.1], noise: gaussian(0)", false},
	{"redraw of a list", "theta: [0.5, 0.1]", "theta: [0.5, 0.1], redraw: true", true},
	{"sphere of one action", "actions: [[1, 0], [0, 1], [0.6, 0.8]], theta: [0.5, 0.1]",
		"sphere: {arms: 1, dimension: 3}", false},
	{"sphere of one dimension", "actions: [[1, 0], [0, 1], [0.6, 0.8]], theta: [0.5, 0.1]",
		"sphere: {arms: 4, dimension: 1}", false},
	{"sphere without dimension", "actions: [[1, 0], [0, 1], [0.6, 0.8]], theta: [0.5, 0.1]",
		"sphere: {arms: 4}", true},
	{"no such csv", "actions: [[1, 0], [0, 1], [0.6, 0.8]], theta: [0.5, 0.1]", "csv: nowhere.csv", false},
	{"csv with nan", "actions: [[1, 0], [0, 1], [0.6, 0.8]], theta: [0.5, 0.1]", "csv: linear-nan.csv", false},
	{"csv with a long action", "actions: [[1, 0], [0, 1], [0.6, 0.8]], theta: [0.5, 0.1]",
		"csv: linear-norm.csv", false},
	{"csv of arms", "actions: [[1, 0], [0, 1], [0.6, 0.8]], theta: [0.5, 0.1]", "csv: two-arms.csv", false},
	{"another csv", "actions: [[1, 0], [0, 1], [0.6, 0.8]], theta: [0.5, 0.1]",
		"csv: linear.csv, sha256: abc", true},
}

var badContextual = []struct {
	name, from, to string
	schema         bool
}{
	{"contexts leave the ball", ", normalise: true", "", false},
	{"unknown contexts", "contexts: gaussian", "contexts: gausian", true},
	{"one action", "arms: 4", "arms: 1", false},
	{"no actions", "arms: 4", "arms: 0", true},
	{"arms missing", "arms: 4, ", "", true},
	{"dimension missing", "dimension: 3, ", "", true},
	{"mean of two numbers", "normalise: true", "normalise: true, mean: [0.1, 0.2]", false},
	{"mean is nan", "normalise: true", "normalise: true, mean: .nan", false},
	{"variance is zero", "normalise: true", "normalise: true, variance: 0", true},
	{"variance is negative", "normalise: true", "normalise: true, variance: -1", true},
	{"theta too long", "normalise: true", "normalise: true, theta: [1, 1, 0]", false},
	{"theta is text", "normalise: true", "normalise: true, theta: ball", true},
	{"mean on the sphere", "contexts: gaussian, arms: 4, dimension: 3, normalise: true",
		"contexts: sphere, arms: 4, dimension: 3, mean: 0.1", false},
	{"sphere", "contexts: gaussian, arms: 4, dimension: 3, normalise: true",
		"sphere: {arms: 4, dimension: 3}", true},
	{"policy of fixed actions", "adac-oful", "adac-gope", true},
	{"lambda is zero", "{policy: adac-oful}", "{policy: adac-oful, lambda: 0}", true},
	{"lambda is negative", "{policy: adac-oful}", "{policy: adac-oful, lambda: -1}", true},
	{"c is zero", "{policy: adac-oful}", "{policy: adac-oful, c: 0}", true},
	{"radius is unknown", "{policy: adac-oful}", "{policy: adac-oful, radius: print}", true},
	{"empty log", "contexts: gaussian, arms: 4, dimension: 3, normalise: true", "csv: no-rounds.csv", false},
	{"topics of one", "contexts: gaussian, arms: 4, dimension: 3, normalise: true", "topics: 1", false},
	{"topics of too many components", "contexts: gaussian, arms: 4, dimension: 3, normalise: true",
		"topics: 40, devices: 40", false},
	{"best below uniform", "contexts: gaussian, arms: 4, dimension: 3, normalise: true",
		"topics: 4, devices: 3, best: 0.04", false},
	{"best out of reach", "contexts: gaussian, arms: 4, dimension: 3, normalise: true",
		"topics: 4, devices: 3, best: 0.9", false},
	{"uniform is one", "contexts: gaussian, arms: 4, dimension: 3, normalise: true",
		"topics: 4, devices: 3, uniform: 1", true},
	{"turn too fast", "contexts: gaussian, arms: 4, dimension: 3, normalise: true",
		"topics: 4, devices: 3, turn: 49", false},
	{"floor without topics", "{policy: adac-oful}", "{policy: adac-oful, floor: 0.1}", false},
	{"floor is one", "{policy: adac-oful}", "{policy: adac-oful, floor: 1}", true},
	{"delay without topics", "kind: contextual", "kind: contextual\ndelay: 10", false},
	{"delay with a law", "kind: contextual", "kind: contextual\ndelay: {window: 10, law: constant, mean: 3}", true},
	{"log without rounds", "contexts: gaussian, arms: 4, dimension: 3, normalise: true",
		"csv: linear.csv", false},
}

// Every mistake is one clear error, placed and explained: testdata/errors-linear.txt is to be read.
func TestLinearErrors(t *testing.T) {
	s := schema(t)
	var out strings.Builder
	try := func(good, name, from, to string, seen bool) {
		if strings.Count(good, from) != 1 {
			t.Fatalf("%s: %q is not in the experiment once", name, from)
		}
		text := strings.Replace(good, from, to, 1)
		spec, err := experiment.Reader{}.Parse("testdata/bad.yaml", []byte(text))
		if err == nil {
			_, err = spec.Resolve()
		}
		var e *keyed.Error
		switch {
		case err == nil:
			t.Errorf("%s: accepted", name)
			return
		case !errors.Is(err, keyed.ErrSpec) || !errors.As(err, &e):
			t.Errorf("%s: %T does not match ErrSpec: %v", name, err, err)
		}
		out.WriteString("# " + name + "\n" + err.Error() + "\n\n")
		if seen && s.Validate(value(t, text)) == nil {
			t.Errorf("%s: passed the schema", name)
		}
	}
	for _, good := range []string{goodLinear, goodContextual} {
		if err := s.Validate(value(t, good)); err != nil {
			t.Error(err)
		}
	}
	for _, c := range badLinear {
		try(goodLinear, c.name, c.from, c.to, c.schema)
	}
	for _, c := range badContextual {
		try(goodContextual, c.name, c.from, c.to, c.schema)
	}
	try(good, "policy of linear bandits", "adap-ucb", "adac-gope", true)
	golden(t, "errors-linear.txt", out.String())
}

// fullLinear and fullContextual use every part of the syntax.
const fullLinear = `name: full.linear
kind: linear
horizon: 5e3
runs: 2
checkpoints: [10, 5000]
range: [-1, 1]
instances:
  - {name: list, actions: [[1, 0, 0], [0, 1, 0], [0.6, 0.8, 0]], theta: [0.5, 0.1, 0]}
  - {name: scaled, actions: [[2, 0], [0, 1], [1, 1]], theta: [0.25, 0.25], noise: "gaussian(0.5)", normalise: true}
  - {name: drawn, sphere: {arms: 10, dimension: 3}}
  - {name: redrawn, sphere: {arms: 5, dimension: 2}, theta: [1, 0], noise: sign, redraw: true}
  - {name: one dimension, actions: [[1], [-0.5]], theta: [0.5]}
  - {name: logged, csv: linear.csv}
policies:
  - gope
  - {policy: adac-gope, risk: 0.01}
  - {policy: adac-gope, corrected: true, literal: true}
  - {policy: adac-gope-var, phases: own}
budgets: [{rho: 0.1}, {rho: 1e-12}, {epsilon: 1, delta: 1e-6}, {alpha: 8, epsilon: 0.5}, none]
`

const fullContextual = `name: full.contextual
kind: contextual
horizon: 300
runs: 2
checkpoints: 5
unclipped: true
instances:
  - {name: plain, contexts: gaussian, arms: 10, dimension: 3}
  - {name: moved, contexts: gaussian, arms: 3, dimension: 2, mean: 0.25, variance: 0.01, theta: [0, 1], noise: gaussian, normalise: true, redraw: false}
  - {name: skew, contexts: gaussian, arms: 3, dimension: 2, mean: [0.25, -0.25], redraw: true}
  - {name: round, contexts: sphere, arms: 3, dimension: 4, theta: sphere, noise: sign}
  - {name: same, actions: [[1, 0], [0, 1]], theta: [0.5, 0.1]}
  - {name: logged, csv: rounds.csv, normalise: true}
policies:
  - oful
  - rs-oful
  - {policy: adac-oful, lambda: 0.1, c: 2, risk: 0.01, radius: printed, lambda0: 0.2, split: false}
  - {policy: lin-ucb, lambda: 2, risk: 0.1, c: 0.5}
  - {policy: lin-ucb, noise: wishart}
  - lin-priv
budgets: [{rho: 0.1}, {epsilon: 1}, {epsilon: 1, delta: 1e-6}, none]
`

const fullClicks = `name: full.clicks
kind: contextual
horizon: 300
runs: 2
checkpoints: 5
delay: 20
instances:
  - {name: words, topics: 4, devices: 3}
  - {name: numbers, topics: 3, numbers: 2, logistic: true, uniform: 0.1, best: 0.2}
  - {name: moves, topics: 3, devices: 2, turn: 500}
policies:
  - rs-oful
  - {policy: adac-oful, floor: 0.1}
  - {policy: adac-oful, floor: 0.2}
budgets: [{rho: 0.1}, none]
`

func TestFullLinear(t *testing.T) {
	for name, text := range map[string]string{"full-linear.txt": fullLinear,
		"full-contextual.txt": fullContextual, "full-clicks.txt": fullClicks} {
		spec, err := experiment.Reader{}.Parse("testdata/full.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		plan, err := spec.Resolve()
		if err != nil {
			t.Fatal(err)
		}
		y, err := plan.Spec.YAML()
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		out.Write(y)
		out.WriteString("\n# warnings\n" + strings.Join(plan.Warnings, "\n") + "\n\n# cells\n")
		for _, c := range plan.Cells {
			out.WriteString(c.Hash[:16] + "  " + c.Label() + "\n")
		}
		golden(t, name, out.String())

		j, err := plan.Spec.JSON()
		if err != nil {
			t.Fatal(err)
		}
		s := schema(t)
		for _, text := range [][]byte{y, j} {
			if err := s.Validate(value(t, strings.NewReplacer("1e-06", "0.000001", "1e-12",
				"0.000000000001").Replace(string(text)))); err != nil {
				t.Errorf("%s: the schema refuses the normal form: %v", name, err)
			}
			again, err := experiment.Reader{}.Parse("testdata/again.yaml", text)
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			p, err := again.Resolve()
			if err != nil {
				t.Fatal(err)
			}
			if p.Hash != plan.Hash {
				t.Errorf("hash %s became %s", plan.Hash, p.Hash)
			}
			if y2, err := again.YAML(); err != nil || string(y2) != string(y) {
				t.Errorf("normal form changed: %v\n%s", err, cmp.Diff(string(y), string(y2)))
			}
		}
	}
}

// Shards and workers leave the same bytes; policies share their worlds; a policy's twin at budget
// none is the baseline of its own name.
func TestLinearRuns(t *testing.T) {
	for name, text := range map[string]string{"linear": strings.Replace(goodLinear, "runs: 4",
		"runs: 70", 1), "contextual": strings.Replace(goodContextual, "runs: 4", "runs: 70", 1),
		"clicks": strings.NewReplacer("runs: 4", "runs: 10\ndelay: 30", "contexts: gaussian, arms: 4, dimension: 3, "+
			"normalise: true", "topics: 2, devices: 2, turn: 400").Replace(goodContextual)} {
		base, pair := "gope", "{policy: adac-gope}"
		if name != "linear" {
			base, pair = "rs-oful", "{policy: adac-oful}"
		}
		text = strings.NewReplacer(pair, pair+"\n  - "+base, "[{rho: 1}]",
			"[{rho: 1}, {rho: 100}, none]").Replace(text)
		whole := t.TempDir()
		r := play(t, text, experiment.Options{Out: whole, Workers: 1})
		two := t.TempDir()
		play(t, text, experiment.Options{Out: two, Workers: 2})
		same(t, name+": two workers", files(t, whole), files(t, two))
		var dirs []string
		for i := range 3 {
			dirs = append(dirs, t.TempDir())
			play(t, text, experiment.Options{Out: dirs[i], ShardI: i, ShardN: 3})
		}
		merged := t.TempDir()
		if _, err := experiment.Merge(context.Background(), dirs, merged, false); err != nil {
			t.Fatal(err)
		}
		same(t, name+": merged", files(t, whole), files(t, merged))
		none, twin := r.Cells[2], r.Cells[3]
		if none.Budget != "none" || twin.Policy != base || !slices.Equal(none.FinalRegret, twin.FinalRegret) {
			t.Errorf("%s: %s and %s differ: %v, %v", name, none.Label(), twin.Label(),
				none.FinalRegret[:3], twin.FinalRegret[:3])
		}
		for i, c := range r.Cells[:2] {
			if c.Twin != 2 {
				t.Errorf("%s: twin %d", c.Label(), c.Twin)
			}
			if !strings.HasPrefix(c.Loss, []string{"rho=0.99", "rho=99"}[i]) &&
				!strings.HasPrefix(c.Loss, []string{"rho=1", "rho=100"}[i]) {
				t.Errorf("%s: loss %s", c.Label(), c.Loss)
			}
		}
		// Without the budget none the twin is the policy of its own name.
		r = play(t, strings.Replace(text, ", none]", "]", 1), experiment.Options{Out: t.TempDir()})
		for _, c := range r.Cells[:2] {
			if c.Twin != 2 || c.FinalDifference[7] != c.FinalRegret[7]-twin.FinalRegret[7] {
				t.Errorf("%s: twin %d", c.Label(), c.Twin)
			}
		}
	}
}

// Every policy for linear and contextual bandits runs at every kind of budget it can meet, on every
// kind of instance that has a guarantee, and no ledger charges more than the budget: Run checks
// that. In runs without clipping the guarantee is gone.
func TestEveryLinearPolicy(t *testing.T) {
	for _, c := range []struct {
		kind, instances string
		entries         []catalog.Entry
	}{
		{experiment.KindLinear, `[{name: drawn, sphere: {arms: 6, dimension: 3}, redraw: true}, {name: logged, csv: testdata/linear.csv},
  {name: flat, actions: [[1, 0, 0], [0, 1, 0], [0.6, 0.8, 0]], theta: [0.5, 0.1, 0], noise: gaussian(1)}]`,
			catalog.LinearPolicies()},
		{experiment.KindContextual, `[{name: round, contexts: sphere, arms: 4, dimension: 3, redraw: true}, {name: logged, csv: testdata/rounds.csv},
  {name: same, actions: [[1, 0], [0, 1]], theta: [0.5, 0.1], noise: gaussian(1)}]`,
			catalog.ContextualPolicies()},
	} {
		var text strings.Builder
		fmt.Fprintf(&text, "name: all\nkind: %s\nhorizon: 1000\nruns: 2\ncheckpoints: "+
			"5\ninstances: %s\n", c.kind, c.instances)
		text.WriteString("budgets: [{epsilon: 2}, {rho: 0.5}, {epsilon: 1, delta: 0.00001}, " +
			"{alpha: 8, epsilon: 0.5}, none]\npolicies:\n")
		n := 0
		for _, e := range c.entries {
			if e.Name == "histogram-ts" { // of few vectors alone: examples/joint-clicks.yaml plays it
				continue
			}
			text.WriteString("  - " + e.Name + "\n")
			n++
			if e.Private {
				n += len(e.Budgets) // and none
			}
		}
		for _, unclipped := range []string{"", "unclipped: true\n"} {
			r := play(t, unclipped+text.String(), experiment.Options{Out: t.TempDir()})
			if len(r.Cells) != 3*n {
				t.Errorf("%d cells, want %d", len(r.Cells), 3*n)
			}
			for _, c := range r.Cells {
				// who is greedy among the same two actions may have begun with the better one
				lucky := strings.Contains(c.Label(), "same / jdp-")
				if last := c.FinalRegret[0]; !((last > 0 || lucky && last == 0) && last < 2000) {
					t.Errorf("%s: regret %v", c.Label(), last)
				}
				void := c.Guarantee == "none: rewards are not clipped"
				if c.Private && void != (unclipped != "") || !c.Private && c.Guarantee != "" {
					t.Errorf("%s: private %t, guarantee %q", c.Label(), c.Private, c.Guarantee)
				}
				if unclipped != "" && c.Loss != "none" && c.Loss != "nothing" {
					t.Errorf("%s: loss %s", c.Label(), c.Loss)
				}
			}
		}
	}
}

// tilted and wheel are sources that no file knows.
type tilted struct{}

func (tilted) Linear(s *noise.Fast) (bandit.LinearInstance, error) {
	x := s.Float64()
	return bandit.NewLinearInstance([][]float64{{1, 0}, {0, 1}}, []float64{x / 2, 0.5 - x/2},
		bandit.SignNoise())
}
func (tilted) Redrawn() bool  { return true }
func (tilted) String() string { return "tilted" }

type wheel struct{ bandit.SphereContexts }

func (wheel) String() string { return "wheel" }

// Instances from a program play; their file form can be read, and says why it cannot be played.
func TestLinearSourceFromAProgram(t *testing.T) {
	w, err := bandit.NewSphereContexts(bandit.ContextConfig{Arms: 3, Dim: 2})
	if err != nil {
		t.Fatal(err)
	}
	for want, spec := range map[string]*experiment.Spec{
		`"tilted"`: {Kind: experiment.KindLinear,
			Instances: []experiment.Instance{{Name: "own", LinearSource: tilted{}}},
			Policies:  []experiment.Policy{{Policy: "gope"}}},
		`"wheel"`: {Kind: experiment.KindContextual,
			Instances: []experiment.Instance{{Name: "own", ContextualSource: wheel{w}}},
			Policies:  []experiment.Policy{{Policy: "oful"}}},
	} {
		spec.Name, spec.Horizon, spec.Runs = "own", 100, 3
		dir := t.TempDir()
		if _, err := experiment.Run(context.Background(), spec, experiment.Options{Out: dir}); err != nil {
			t.Fatal(err)
		}
		r, err := experiment.Load(dir)
		if err != nil {
			t.Fatal(err)
		}
		again, err := experiment.Reader{}.Parse("manifest.json", r.Manifest.Spec)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := again.Resolve(); !errors.Is(err, keyed.ErrSpec) ||
			!strings.Contains(err.Error(), "comes from a program, "+want) {
			t.Errorf("%v", err)
		}
	}
	// The kinds do not mix.
	for _, in := range []experiment.Instance{{Name: "x", Bernoulli: []float64{0.5, 0.1}},
		{Name: "x"}, {Name: "x", Linear: &experiment.Linear{}},
		{Name: "x", ContextualSource: wheel{w}},
		{Name: "x", Linear: &experiment.Linear{Contexts: "sphere", Arms: 3, Dimension: 2}}} {
		spec := &experiment.Spec{Name: "x", Kind: experiment.KindLinear, Horizon: 10, Runs: 1,
			Instances: []experiment.Instance{in}, Policies: []experiment.Policy{{Policy: "gope"}}}
		if _, err := spec.Resolve(); !errors.Is(err, keyed.ErrSpec) {
			t.Errorf("%+v: %v", in, err)
		}
	}
	spec := &experiment.Spec{Name: "x", Horizon: 10, Runs: 1,
		Instances: []experiment.Instance{{Name: "x", LinearSource: tilted{}}},
		Policies:  []experiment.Policy{{Policy: "ucb"}}}
	if _, err := spec.Resolve(); err == nil || !strings.Contains(err.Error(), "kind linear") {
		t.Error(err)
	}
}
