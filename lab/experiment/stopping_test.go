package experiment_test

import (
	"context"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/lab/experiment"
	"github.com/sotto-dp/sotto/trial/stopping"
)

const goodStopping = `name: stop
kind: stopping
cap: 2000
runs: 40
seed: 3
instances:
  - {name: coin, law: bernoulli(0.6)}
  - {name: zero, law: "table(-1:0.5,1:0.5)"}
rules:
  - {rule: dp-exp-nas, alpha: 0.5, beta: 0.05}
  - {rule: nas, alpha: 0.5, beta: 0.05}
  - {rule: nas, alpha: 0.9, beta: 0.9}
budgets: [{epsilon: 1}, none]
`

// A cell's runs are those of a study of the same rule, law, seed and cap, one by one.
func TestStoppingIsTheStudy(t *testing.T) {
	spec, err := experiment.Reader{}.Parse("stop.yaml", []byte(goodStopping))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	r, err := experiment.Run(context.Background(), spec, experiment.Options{Out: dir})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"coin / dp-exp-nas / epsilon=1", "coin / dp-exp-nas / none",
		"coin / nas (alpha=0.5, beta=0.05) / none", "coin / nas (alpha=0.9, beta=0.9) / none"}
	finished, unfinished := 0, 0
	rows := 0
	for i := range r.Cells {
		c := &r.Cells[i]
		if i < len(want) && c.Label() != want[i] {
			t.Errorf("cell %d is %s, want %s", i, c.Label(), want[i])
		}
		text, mean, epsilon := "bernoulli(0.6)", 0.6, math.Inf(1)
		if c.Instance == "zero" {
			text, mean = "table(-1:0.5,1:0.5)", 0
		}
		if c.Budget == "epsilon=1" {
			epsilon = 1
		}
		law, err := bandit.ParseLaw(text)
		if err != nil {
			t.Fatal(err)
		}
		rule, err := stopping.New(c.Catalog, c.Stopping.Alpha, c.Stopping.Beta, epsilon, 1)
		if err != nil {
			t.Fatal(err)
		}
		study, err := stopping.StudyConfig{Rule: rule, Law: law, Runs: 40, Seed: 3,
			Cap: 2000}.Run(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if c.Stopping.Mean != mean || c.Failures != study.Failures || c.Unfinished != study.Unfinished {
			t.Errorf("%s: mean %v, %d failures, %d unfinished; want %v, %d, %d", c.Label(),
				c.Stopping.Mean, c.Failures, c.Unfinished, mean, study.Failures, study.Unfinished)
		}
		for k, o := range study.Outcomes {
			rows++
			if c.FinalSamples[k] != float64(o.Samples) || c.FinalError[k] != o.Error &&
				!(math.IsNaN(o.Error) && math.IsNaN(c.FinalError[k])) {
				t.Errorf("%s, run %d: %v samples, error %v; the study has %v, %v", c.Label(), k,
					c.FinalSamples[k], c.FinalError[k], o.Samples, o.Error)
			}
		}
		finished, unfinished = finished+40-c.Unfinished, unfinished+c.Unfinished
		if upper := c.Stopping.UpperBound > 0; upper != (c.Label() == want[0]) {
			t.Errorf("%s: t_U is %v", c.Label(), c.Stopping.UpperBound)
		}
		// The questions cost half of the budget, the estimate the other half.
		loss := "none"
		switch {
		case c.Budget == "epsilon=1" && c.Unfinished < 40:
			loss = "epsilon=1"
		case c.Budget == "epsilon=1":
			loss = "epsilon=0.5"
		}
		if c.Loss != loss {
			t.Errorf("%s: loss %s, want %s", c.Label(), c.Loss, loss)
		}
	}
	if finished == 0 || unfinished == 0 {
		t.Errorf("%d runs finished, %d did not: the test wants both", finished, unfinished)
	}
	got, err := parquet.ReadFile[experiment.StoppingRow](filepath.Join(dir, "results.parquet"))
	if err != nil || len(got) != rows {
		t.Fatalf("%d rows, %v; want %d", len(got), err, rows)
	}
	null := 0
	for _, row := range got {
		if row.Error == nil {
			null++
		}
	}
	if null != unfinished {
		t.Errorf("%d rows without an error, want %d", null, unfinished)
	}
	// The normal form reads back as the same experiment.
	back, err := experiment.Reader{}.Parse("manifest", r.Manifest.Spec)
	if err != nil {
		t.Fatal(err)
	}
	p, err := back.Resolve()
	if err != nil || p.Hash != r.Manifest.SpecHash {
		t.Errorf("the normal form is another experiment: %v", err)
	}
	if _, err := r.Compare(); err == nil {
		t.Error("samples were compared as regret")
	}
	loaded, err := experiment.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range loaded.Cells {
		if c.Failures != r.Cells[i].Failures || c.Unfinished != r.Cells[i].Unfinished ||
			c.Loss != r.Cells[i].Loss {
			t.Errorf("%s: read back as %+v", c.Label(), c)
		}
	}
}

// kind: regret is what an experiment is if it does not say, to the hash; arms is an old spelling.
func TestKindRegretIsTheDefault(t *testing.T) {
	var hashes []string
	for _, text := range []string{good, "kind: regret\n" + good, "kind: arms\n" + good} {
		spec, err := experiment.Reader{}.Parse("good.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		p, err := spec.Resolve()
		if err != nil {
			t.Fatal(err)
		}
		if p.Spec.Kind != experiment.KindRegret || strings.Contains(string(p.Manifest().Spec), "kind") {
			t.Errorf("%s", p.Manifest().Spec)
		}
		hashes = append(hashes, p.Hash)
	}
	if hashes[0] != hashes[1] || hashes[0] != hashes[2] {
		t.Errorf("hashes %v", hashes)
	}
}

func TestBadStopping(t *testing.T) {
	s := schema(t)
	if err := s.Validate(value(t, goodStopping)); err != nil {
		t.Error(err)
	}
	if err := s.Validate(value(t, "kind: regret\n"+good)); err != nil {
		t.Error(err)
	}
	for _, c := range []struct {
		from, to, want string
		schema         bool // sees it too
	}{
		{"kind: stopping", "kind: stop", "stop.yaml:2:7: kind: is \"stop\": known are regret, stopping", true},
		{"kind: stopping", "kind: Stopping", "did you mean \"stopping\"?", true},
		{"kind: stopping", "kind: 3", "kind: is the number 3, must be text", true},
		{"kind: stopping\n", "", "unknown key \"cap\"", true},
		{"cap: 2000", "horizon: 2000", "unknown key \"horizon\"", true},
		{"cap: 2000\n", "", "cap: is missing or 0", true},
		{"cap: 2000", "cap: -1", "cap: \"-1\" is too small", true},
		{"seed: 3", "range: [0, 1]", "range: is [0, 1], must be [-R, R]", false},
		{"seed: 3", "range: [-1e301, 1e301]", "range: is [-1e+301, 1e+301], must be [-R, R] with R " +
			"from 1e-100 to 1e+100", false},
		{"seed: 3", "checkpoints: 3", "unknown key \"checkpoints\"", true},
		{"law: bernoulli(0.6)", "bernoulli: [0.5, 0.6]", "unknown key \"bernoulli\"", true},
		{"law: bernoulli(0.6)", "law: bernuolli(0.6)", "instances[0].law", false},
		{", law: bernoulli(0.6)", "", "says no law", true},
		{"name: zero", "name: coin", "is also the name of instances[0]", false},
		{"rule: dp-exp-nas", "rule: dp-exp-nsa", "did you mean \"dp-exp-nas\"?", true},
		{"{rule: dp-exp-nas, ", "{", "names no rule", true},
		{"alpha: 0.9, ", "", "rules[2].alpha: is 0, must be given, above 0 and below 1", true},
		{"alpha: 0.9", "alpha: .nan", "rules[2].alpha: is NaN", false},
		{"beta: 0.9", "beta: 1", "rules[2].beta: is 1", true},
		{"beta: 0.9", "beta: 0.9, epsilon: 1", "unknown key \"epsilon\"", true},
		{"alpha: 0.9, beta: 0.9", "alpha: 0.5, beta: 0.05", "is also the label of rules[1]", false},
		{"alpha: 0.9, beta: 0.9", "name: twin, alpha: 0.5, beta: 0.05", "is the same as", false},
		{"{epsilon: 1}", "{rho: 1}", "budgets[0]: is rho=1: stopping rules take epsilon | none", false},
		{"{epsilon: 1}", "{epsilon: -1}", "budgets[0]", true},
		{"budgets: [{epsilon: 1}, none]\n", "", "budgets: is missing: rule dp-exp-nas is private", false},
	} {
		if strings.Count(goodStopping, c.from) != 1 {
			t.Fatalf("%q is not in the experiment once", c.from)
		}
		text := strings.Replace(goodStopping, c.from, c.to, 1)
		spec, err := experiment.Reader{}.Parse("stop.yaml", []byte(text))
		if err == nil {
			_, err = spec.Resolve()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %s", c.to, err, c.want)
		}
		if c.schema && s.Validate(value(t, text)) == nil {
			t.Errorf("%q passed the schema", c.to)
		}
	}
	// From a program the kinds do not mix either.
	mixed := &experiment.Spec{Name: "x", Kind: experiment.KindStopping, Cap: 10, Runs: 1, Horizon: 10}
	if _, err := mixed.Resolve(); err == nil ||
		!strings.Contains(err.Error(), "is for experiments of kind regret, linear, contextual") {
		t.Error(err)
	}
	mixed = &experiment.Spec{Name: "x", Cap: 10, Runs: 1, Horizon: 10}
	if _, err := mixed.Resolve(); err == nil ||
		!strings.Contains(err.Error(), "is for experiments of kind stopping, identify") {
		t.Error(err)
	}
	for want, in := range map[string]experiment.Instance{
		"has law, which is for experiments of kind stopping": {Law: "bernoulli(0.3)"},
		"has actions, which is for experiments of kind linear": {Bernoulli: []float64{0.9, 0.1},
			Linear: &experiment.Linear{Actions: [][]float64{{1}, {0.5}}}},
		"says what its arms are in 2 ways": {Bernoulli: []float64{0.9, 0.1}, CSV: "x.csv"},
		"says what its arms are in 0 ways": {},
	} {
		in.Name = "x"
		mixed = &experiment.Spec{Name: "x", Horizon: 10, Runs: 1, Instances: []experiment.Instance{in}}
		if _, err := mixed.Resolve(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
