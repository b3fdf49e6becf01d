package experiment_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/lab/experiment"
	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "write golden files anew")

// good is a small experiment that every bad one below is a change of.
const good = `name: small
horizon: 1000
runs: 4
instances:
  - {name: two, bernoulli: [0.9, 0.1]}
policies:
  - {policy: adap-ucb}
budgets: [{epsilon: 1}]
`

// bad lists experiments with one mistake each; what is said about them is in testdata/errors.txt.
var bad = []struct{ name, from, to string }{
	{"empty file", good, ""},
	{"comments only", good, "# nothing\n"},
	{"no yaml", good, "horizon: [\n"},
	{"a list", good, "- 1\n"},
	{"a word", good, "quickstart\n"},
	{"second document", "budgets: [{epsilon: 1}]\n", "budgets: [{epsilon: 1}]\n---\nname: other\n"},
	{"duplicate key", "runs: 4\n", "runs: 4\nruns: 5\n"},
	{"unknown key", "horizon: 1000", "horizn: 1000"},
	{"unknown key, nothing near", "horizon: 1000", "zzzzzzzzzzz: 1000"},
	{"unknown instance key", "bernoulli: [0.9", "bernouli: [0.9"},
	{"key of another kind of instance", "bernoulli: [0.9, 0.1]", "bernoulli: [0.9, 0.1], arms: 2"},
	{"two kinds of instance", "bernoulli: [0.9, 0.1]", "bernoulli: [0.9, 0.1], standard: C1"},
	{"no kind of instance", ", bernoulli: [0.9, 0.1]", ""},
	{"change too early", "[0.9, 0.1]}", "[0.9, 0.1], changes: [{from: 1, laws: [0.1, 0.9]}]}"},
	{"changes out of order", "[0.9, 0.1]}",
		"[0.9, 0.1], changes: [{from: 9, laws: [0.1, 0.9]}, {from: 9, laws: [0.1, 0.9]}]}"},
	{"change of other arms", "[0.9, 0.1]}", "[0.9, 0.1], changes: [{from: 9, laws: [0.1]}]}"},
	{"change to no law", "[0.9, 0.1]}", "[0.9, 0.1], changes: [{from: 9, laws: [0.1, normal(1)]}]}"},
	{"change without a round", "[0.9, 0.1]}", "[0.9, 0.1], changes: [{laws: [0.1, 0.9]}]}"},
	{"changes of drawn means", "bernoulli: [0.9, 0.1]",
		"means: {uniform: [0.1, 0.9]}, arms: 2, changes: [{from: 9, laws: [0.1, 0.9]}]"},
	{"unknown policy", "adap-ucb", "adap-kluc"},
	{"unknown policy, bare", "{policy: adap-ucb}", "dpse"},
	{"no policy in a policy", "{policy: adap-ucb}", "{alpha: 3.1}"},
	{"unknown parameter", "{policy: adap-ucb}", "{policy: adap-ucb, alhpa: 3.1}"},
	{"parameter is text", "{policy: adap-ucb}", "{policy: adap-ucb, alpha: \"3.1\"}"},
	{"parameter is nan", "{policy: adap-ucb}", "{policy: adap-ucb, alpha: .nan}"},
	{"parameter is infinite", "{policy: adap-ucb}", "{policy: adap-ucb, alpha: .inf}"},
	{"parameter is zero", "{policy: adap-ucb}", "{policy: adap-ucb, alpha: 0}"},
	{"flag is a number", "{policy: adap-ucb}", "{policy: adap-ucb, printed_half: 1}"},
	{"horizon is broken", "horizon: 1000", "horizon: 2.5"},
	{"horizon is zero", "horizon: 1000", "horizon: 0"},
	{"horizon is negative", "horizon: 1000", "horizon: -5"},
	{"horizon is nan", "horizon: 1000", "horizon: .nan"},
	{"horizon is infinite", "horizon: 1000", "horizon: .inf"},
	{"horizon is too large", "horizon: 1000", "horizon: 1e300"},
	{"horizon is hexadecimal", "horizon: 1000", "horizon: 0x10"},
	{"horizon is missing", "horizon: 1000\n", ""},
	{"horizon below arms", "horizon: 1000", "horizon: 1"},
	{"runs is zero", "runs: 4", "runs: 0"},
	{"runs is too large", "runs: 4", "runs: 1e9"},
	{"runs is a list", "runs: 4", "runs: [4]"},
	{"seed is negative", "runs: 4", "runs: 4\nseed: -1"},
	{"seed is broken", "runs: 4", "runs: 4\nseed: 1.5"},
	{"name is missing", "name: small\n", ""},
	{"name has a space", "name: small", "name: very small"},
	{"name is a number", "name: small", "name: 3"},
	{"arm above one", "0.9", "1.9"},
	{"arm below zero", "0.9", "-0.9"},
	{"arm is nan", "0.9", ".nan"},
	{"arm is text", "0.9", "high"},
	{"one arm", "[0.9, 0.1]", "[0.9]"},
	{"no arms", "[0.9, 0.1]", "[]"},
	{"instance without a name", "name: two, ", ""},
	{"two instances of one name", "policies:", "  - {name: two, bernoulli: [0.9, 0.2]}\npolicies:"},
	{"same instance twice", "policies:", "  - {name: too, bernoulli: [0.9, 0.1]}\npolicies:"},
	{"unknown law", "bernoulli: [0.9, 0.1]", "laws: [\"gauss(0,1)\", 0.5]"},
	{"standard C9", "bernoulli: [0.9, 0.1]", "standard: C9, arms: 5"},
	{"standard without arms", "bernoulli: [0.9, 0.1]", "standard: C1"},
	{"standard with one arm", "bernoulli: [0.9, 0.1]", "standard: C1, arms: 1"},
	{"means reversed", "bernoulli: [0.9, 0.1]", "means: {uniform: [0.75, 0.25]}, arms: 3"},
	{"means without a law", "bernoulli: [0.9, 0.1]", "means: {}, arms: 3"},
	{"means beyond one", "bernoulli: [0.9, 0.1]", "means: {uniform: [0.5, 1.5]}, arms: 3"},
	{"unknown family", "bernoulli: [0.9, 0.1]", "means: {uniform: [0.25, 0.75]}, arms: 3, law: " +
		"gausian, sd: 0.1"},
	{"gaussian without sd", "bernoulli: [0.9, 0.1]", "means: {uniform: [0.25, 0.75]}, arms: 3, law: gaussian"},
	{"no such csv", "bernoulli: [0.9, 0.1]", "csv: nowhere.csv"},
	{"empty csv", "bernoulli: [0.9, 0.1]", "csv: empty.csv"},
	{"csv of one arm", "bernoulli: [0.9, 0.1]", "csv: one-arm.csv"},
	{"another csv", "bernoulli: [0.9, 0.1]", "csv: two-arms.csv, sha256: abc"},
	{"csv without the column", "bernoulli: [0.9, 0.1]", "csv: two-arms.csv, arm_column: group"},
	{"csv with a missing reward", "bernoulli: [0.9, 0.1]", "csv: visits.csv, arm_column: " +
		"version, reward_column: sent"},
	{"csv column is empty", "bernoulli: [0.9, 0.1]", "csv: two-arms.csv, user_column: ''"},
	{"csv skip_missing is text", "bernoulli: [0.9, 0.1]", "csv: two-arms.csv, skip_missing: often"},
	{"csv separator is none", "bernoulli: [0.9, 0.1]", "csv: two-arms.csv, separator: ' '"},
	{"csv has commas", "bernoulli: [0.9, 0.1]", "csv: two-arms.csv, separator: tab"},
	{"columns without a csv", "bernoulli: [0.9, 0.1]", "bernoulli: [0.9, 0.1], user_column: who"},
	{"no instances", "  - {name: two, bernoulli: [0.9, 0.1]}\n", ""},
	{"empty instances", "instances:\n  - {name: two, bernoulli: [0.9, 0.1]}\n", "instances: []\n"},
	{"no policies", "policies:\n  - {policy: adap-ucb}\n", ""},
	{"budget is zero", "epsilon: 1", "epsilon: 0"},
	{"budget is negative", "epsilon: 1", "epsilon: -1"},
	{"budget is nan", "epsilon: 1", "epsilon: .nan"},
	{"budget is infinite", "epsilon: 1", "epsilon: .inf"},
	{"rho is zero", "epsilon: 1", "rho: 0"},
	{"delta alone", "epsilon: 1", "delta: 0.1"},
	{"delta is one", "epsilon: 1", "epsilon: 1, delta: 1"},
	{"order is one", "epsilon: 1", "alpha: 1, epsilon: 1"},
	{"unknown budget", "epsilon: 1", "epsilom: 1"},
	{"budget is a number", "{epsilon: 1}", "1"},
	{"budget twice", "{epsilon: 1}", "{epsilon: 1}, {epsilon: 1.0}"},
	{"budgets missing", "budgets: [{epsilon: 1}]\n", ""},
	{"budget that no policy meets", "epsilon: 1", "epsilon: 1, delta: 1e-6"},
	{"same policy twice", "{policy: adap-ucb}", "{policy: adap-ucb}\n  - {policy: adap-ucb}"},
	{"same policy under another name", "{policy: adap-ucb}", "{policy: adap-ucb}\n  - {policy: " +
		"adap-ucb, name: mine, alpha: 3.1}"},
	{"two labels alike", "{policy: adap-ucb}", "{policy: adap-ucb, name: mine}\n  - {policy: " +
		"dp-se, name: mine}"},
	{"checkpoint beyond the horizon", "runs: 4", "runs: 4\ncheckpoints: [10, 2000]"},
	{"checkpoints not increasing", "runs: 4", "runs: 4\ncheckpoints: [10, 10, 1000]"},
	{"checkpoints end early", "runs: 4", "runs: 4\ncheckpoints: [10, 100]"},
	{"no checkpoints", "runs: 4", "runs: 4\ncheckpoints: []"},
	{"too many checkpoints", "runs: 4", "runs: 4\ncheckpoints: 1e6"},
	{"range reversed", "runs: 4", "runs: 4\nrange: [1, 0]"},
	{"range of three", "runs: 4", "runs: 4\nrange: [0, 1, 2]"},
	{"trust misspelt", "runs: 4", "runs: 4\ntrust: shuffel"},
	{"noise of another trust", "runs: 4", "runs: 4\ntrust: local\nnoise: polya"},
	{"noise misspelt", "{policy: adap-ucb}", "{policy: adap-ucb, trust: secagg, noise: poly}"},
	{"noise without trust", "runs: 4", "runs: 4\nnoise: polya"},
	{"precision below one", "runs: 4", "runs: 4\ntrust: secagg\nprecision: 0.5"},
	{"precision is zero", "runs: 4", "runs: 4\ntrust: secagg\nprecision: 0"},
	{"precision is nan", "{policy: adap-ucb}", "{policy: adap-ucb, trust: secagg, precision: .nan}"},
	{"promised above one", "runs: 4", "runs: 4\ntrust: secagg\npromised: 1.5"},
	{"dropout is one", "runs: 4", "runs: 4\ntrust: secagg\ndropout: 1"},
	{"trust of a policy without noise", "{policy: adap-ucb}", "{policy: adap-ucb}\n  - {policy: " +
		"ucb, trust: secagg}"},
	{"trust of a tree", "{policy: adap-ucb}", "{policy: dp-ucb, trust: secagg}"},
	{"trust without clipping", "runs: 4", "runs: 4\nunclipped: true\ntrust: secagg"},
	{"noise that is never pure", "{policy: adap-ucb}", "{policy: adap-ucb, trust: secagg, noise: skellam}"},
	{"budgets of a policy without noise", "{policy: adap-ucb}", "{policy: ucb, budgets: [{epsilon: 1}]}"},
	{"own budget twice", "{policy: adap-ucb}", "{policy: adap-ucb, budgets: [{epsilon: 1}, {epsilon: 1}]}"},
	{"protocol misspelt", "runs: 4", "runs: 4\ntrust: secagg\nprotocol: bell"},
	{"protocol without secagg", "runs: 4", "runs: 4\ntrust: central\nprotocol: bell2020"},
	{"corrupt without bell2020", "runs: 4", "runs: 4\ntrust: secagg\nprotocol: plain\ncorrupt: 0.1"},
	{"corrupt beyond the promise", "runs: 4", "runs: 4\ntrust: secagg\nprotocol: " +
		"bell2020\npromised: 0.95\ncorrupt: 0.1"},
	{"corrupt is negative", "runs: 4", "runs: 4\ntrust: secagg\nprotocol: bell2020\ncorrupt: -0.1"},
	{"intervals of confidence zero", "runs: 4", "runs: 4\nintervals: 0"},
	{"intervals of confidence one", "runs: 4", "runs: 4\nintervals: 1"},
	{"intervals in per cent", "runs: 4", "runs: 4\nintervals: 95"},
	{"intervals of negative confidence", "runs: 4", "runs: 4\nintervals: -0.95"},
	{"intervals of confidence nan", "runs: 4", "runs: 4\nintervals: .nan"},
	{"intervals of infinite confidence", "runs: 4", "runs: 4\nintervals: .inf"},
	{"intervals of hardly any confidence", "runs: 4", "runs: 4\nintervals: 1e-300"},
	{"intervals are text", "runs: 4", "runs: 4\nintervals: yes"},
	{"intervals of a tree", "{policy: adap-ucb}\n", "{policy: dp-ucb}\nintervals: 0.95\n"},
	{"intervals of a question", "{policy: adap-ucb}\n", "{policy: dp-se-2}\nintervals: 0.95\n"},
	{"intervals under trust", "runs: 4", "runs: 4\nintervals: 0.95\ntrust: secagg"},
	{"intervals of late rewards", "runs: 4", "runs: 4\nintervals: 0.95\ndelay: 10"},
	{"intervals without clipping", "runs: 4", "runs: 4\nintervals: 0.95\nunclipped: true"},
	{"intervals of arms that change", "[0.9, 0.1]}\n",
		"[0.9, 0.1], changes: [{from: 9, laws: [0.1, 0.9]}]}\nintervals: 0.95\n"},
	{"unclipped is text", "runs: 4", "runs: 4\nunclipped: maybe"},
	{"anchor", "runs: 4", "runs: &r 4"},
	{"alias", "runs: 4", "runs: *r"},
	{"tag", "runs: 4", "runs: !!int 4"},
	{"merge key", "runs: 4", "runs: 4\n<<: {seed: 1}"},
	{"tab", "runs: 4", "\truns: 4"},
	{"deep", "0.9", strings.Repeat("[", 100)},
}

// Every mistake is one clear error, placed and explained: testdata/errors.txt is to be read.
func TestErrors(t *testing.T) {
	var out strings.Builder
	for _, c := range bad {
		text := strings.Replace(good, c.from, c.to, 1)
		if text == good {
			t.Fatalf("%s: nothing was changed", c.name)
		}
		spec, err := experiment.Reader{}.Parse("testdata/bad.yaml", []byte(text))
		if err == nil {
			_, err = spec.Resolve()
		}
		if err == nil {
			t.Errorf("%s: accepted", c.name)
			continue
		}
		var e *keyed.Error
		if !errors.Is(err, keyed.ErrSpec) || !errors.As(err, &e) {
			t.Errorf("%s: %T does not match ErrSpec: %v", c.name, err, err)
		}
		out.WriteString("# " + c.name + "\n" + err.Error() + "\n\n")
	}
	golden(t, "errors.txt", out.String())
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s differs (-want +got); -update writes it anew:\n%s", name, d)
	}
}

func TestParseCount(t *testing.T) {
	for text, want := range map[string]keyed.Count{
		"1": 1, "10_000_000": 10_000_000, "1e6": 1_000_000, "1E6": 1_000_000, "2.5e3": 2500,
		"1.0": 1, "12e-1": 0, "120e-1": 12, "+5": 5,
		strconv.Itoa(keyed.MaxCount):     keyed.MaxCount,
		strconv.Itoa(keyed.MaxCount + 1): 0, "1_0.5e1": 105, "1000.000": 1000,
		"": 0, "0": 0, "-1": 0, "2.5": 0, "nan": 0, "NaN": 0, "inf": 0, "Infinity": 0, "1e400": 0,
		"1e-400": 0, "9007199254740993": 0,
		"9007199254740993.0": 0, "1e16": 0, "0x10": 0, "0b1": 0, "1__0": 0, "_1": 0, "1_": 0,
		"1e": 0, "1.00000000000000000001": 0, " 1": 0, "1 ": 0, "ten": 0,
		"99999999999999999999999": 0, "0.5": 0, "5e-1": 0, "0x1p4": 0, "١": 0,
	} {
		got, err := keyed.ParseCount(text)
		if (err == nil) != (want != 0) || got != want {
			t.Errorf("ParseCount(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
}

// A Count in anybody's struct does not become silently whole, as an int does.
func TestCountInYAML(t *testing.T) {
	for text, want := range map[string]keyed.Count{"n: 10_000": 10_000, "n: 1e6": 1_000_000,
		`n: "1e6"`: 1_000_000, "n: 2.5": 0, "n: -1": 0, "n: .nan": 0,
		"n: .inf": 0, "n: [1]": 0, "n: 0": 0, "n: ''": 0} {
		var v struct{ N keyed.Count }
		if err := yaml.Unmarshal([]byte(text), &v); (err == nil) != (want != 0) || v.N != want {
			t.Errorf("%s: %d, %v", text, v.N, err)
		}
	}
}

func TestCountRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := keyed.Count(rapid.IntRange(1, keyed.MaxCount).Draw(t, "n"))
		text, _ := n.MarshalText()
		var back keyed.Count
		if err := back.UnmarshalText(text); err != nil || back != n {
			t.Fatalf("%d came back as %d, %v", n, back, err)
		}
		j, _ := n.MarshalJSON()
		if err := back.UnmarshalJSON(j); err != nil || back != n {
			t.Fatalf("%d came back from JSON as %d, %v", n, back, err)
		}
	})
}

// full uses every part of the syntax.
const full = `name: full.test-1
description: "one of everything: x"
horizon: 2e4
runs: 1_0
seed: 18446744073709551615
checkpoints: [10, 1e3, 20000]
range: [-1, 2]
instances:
  - {name: plain, bernoulli: [0.75, 0.25]}
  - {name: laws, laws: ["gaussian(0.5,0.1)", "beta(2,3)", 0.25, "table(0:0.5,1:0.5)"]}
  - {name: standard five, standard: c2, arms: 5}
  - {name: redrawn, means: {uniform: [0.25, 0.75]}, arms: 10, law: clipped-gaussian, sd: 0.1, redraw: true}
  - {name: drawn, means: {uniform: [0.25, 0.75]}, arms: 10}
  - name: logged
    csv: two-arms.csv
policies:
  - adap-klucb
  - {policy: adap-ucb, alpha: 2, printed_half: true}
  - {policy: adap-ucb}
  - {policy: dp-se, name: "elimination, β = 1/T"}
  - {policy: adac-ucb, beta: 4}
budgets:
  - {epsilon: 1}
  - rho: 0.1
  - {epsilon: 1, delta: 1e-6}
  - {alpha: 8, epsilon: 0.5}
  - none
`

func TestFull(t *testing.T) {
	spec, err := experiment.Reader{}.Parse("testdata/full.yaml", []byte(full))
	if err != nil {
		t.Fatal(err)
	}
	plan, err := spec.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	y, err := plan.Spec.YAML()
	if err != nil {
		t.Fatal(err)
	}
	out.Write(y)
	out.WriteString("\n# warnings\n" + strings.Join(plan.Warnings, "\n") + "\n\n# cells\n")
	for _, c := range plan.Cells {
		out.WriteString(c.Hash[:16] + "  " + c.Label() + "\n")
	}
	golden(t, "full.txt", out.String())

	// The normal form is the same experiment, in both spellings, and its own normal form.
	j, err := plan.Spec.JSON()
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range [][]byte{y, j} {
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

func TestOverride(t *testing.T) {
	spec, err := experiment.Reader{}.Parse("x.yaml", []byte(good))
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range [][2]string{{"horizon", "1e5"}, {"runs", "7"}, {"seed", "3"}} {
		if err := spec.Override(o[0], "--"+o[0], o[1]); err != nil {
			t.Fatal(err)
		}
	}
	p, err := spec.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	if m := p.Manifest(); m.Horizon != 100_000 || m.Runs != 7 || m.Seed != 3 ||
		!strings.Contains(string(m.Spec), `"horizon":100000,"runs":7,"seed":3`) {
		t.Errorf("overrides are lost: %s", m.Spec)
	}
	if err := spec.Override("horizon", "--horizon", "2.5"); !errors.Is(err, keyed.ErrSpec) ||
		!strings.HasPrefix(err.Error(), "--horizon: ") {
		t.Errorf("%v", err)
	}
	if err := spec.Override("horizon", "--horizon", "1"); err != nil {
		t.Fatal(err)
	}
	// The flag is to blame now, not the file.
	if _, err := spec.Resolve(); err == nil || !strings.HasPrefix(err.Error(), "--horizon: horizon: is 1") {
		t.Errorf("%v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(good)
	f.Add(full)
	for _, c := range bad {
		f.Add(strings.Replace(good, c.from, c.to, 1))
	}
	f.Add(fullLinear)
	f.Add(fullContextual)
	for _, c := range badLinear {
		f.Add(strings.Replace(goodLinear, c.from, c.to, 1))
	}
	for _, c := range badContextual {
		f.Add(strings.Replace(goodContextual, c.from, c.to, 1))
	}
	f.Add(fullIdentify)
	for _, c := range badIdentify {
		f.Add(strings.Replace(goodIdentify, c.from, c.to, 1))
	}
	f.Fuzz(func(t *testing.T, text string) {
		spec, err := experiment.Reader{}.Parse("testdata/x.yaml", []byte(text))
		if err != nil {
			if !errors.Is(err, keyed.ErrSpec) {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		if len(spec.Instances) > 8 || spec.Points > 1000 {
			return // valid, and slow
		}
		for _, in := range spec.Instances {
			if in.Arms > 1000 || in.CSV != "" {
				return
			}
			if l := in.Linear; l != nil && (l.Arms > 50 || l.Dimension > 10 || len(l.Actions) > 50) {
				return
			}
		}
		plan, err := spec.Resolve()
		if err != nil {
			if !errors.Is(err, keyed.ErrSpec) {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		y, err := plan.Spec.YAML()
		if err != nil {
			t.Fatal(err)
		}
		again, err := experiment.Reader{}.Parse("testdata/x.yaml", y)
		if err != nil {
			t.Fatalf("normal form: %v\n%s", err, y)
		}
		p, err := again.Resolve()
		if err != nil || p.Hash != plan.Hash {
			t.Fatalf("normal form is another experiment: %v\n%s", err, y)
		}
	})
}

func FuzzParseCount(f *testing.F) {
	for _, s := range []string{"1", "1e6", "1_000", "2.5", "NaN", "1e-400", "0x1p-2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, err := keyed.ParseCount(text)
		if err != nil {
			return
		}
		if n < 1 || n > keyed.MaxCount {
			t.Fatalf("%q became %d", text, n)
		}
		if back, err := keyed.ParseCount(n.String()); err != nil || back != n {
			t.Fatalf("%q became %d, then %d, %v", text, n, back, err)
		}
	})
}
