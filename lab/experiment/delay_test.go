package experiment_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/lab/experiment"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/sim"
)

const late = `name: late
horizon: 4000
runs: 3
checkpoints: [1000, 4000]
DELAY
instances: [{name: two, bernoulli: [0.8, 0.3]}]
policies: [dp-klucb, adap-klucb]
budgets: [{epsilon: 1}]
`

func delayed(t *testing.T, delay string) *experiment.Resolved {
	t.Helper()
	text := strings.Replace(late, "DELAY", delay, 1)
	spec, err := experiment.Reader{}.Parse("late.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	p, err := spec.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	if s := schema(t); s.Validate(value(t, text)) != nil {
		t.Errorf("the schema refuses %s", delay)
	}
	return p
}

// Each form of a delay has a normal form, which reads back as the same experiment; delays that
// differ are different experiments with different cells, and none changes what the file without one
// is.
func TestDelayForms(t *testing.T) {
	hashes := map[string]string{}
	for delay, normal := range map[string]string{
		"":                                    "",
		"delay: 1_000":                        "delay: {window: 1000, default: 0}\n",
		"delay: {window: 1000, default: 0.5}": "delay: {window: 1000, default: 0.5}\n",
		"delay: {law: geometric, mean: 1000, window: 5e3, default: 0}": "delay: {window: 5000, default: 0, " +
			"law: geometric, mean: 1000}\n",
		"delay: {law: constant, mean: 4, window: 5, missing: 0.2}": "delay: {window: 5, default: 0, " +
			"law: constant, mean: 4, missing: 0.2}\n",
		"delay: {law: uniform, mean: 4.5, window: 9}": "delay: {window: 9, default: 0, law: " +
			"uniform, mean: 4.5}\n",
		"delay: {law: empirical, rounds: [0, 700], share: [0.75, 0.25], window: 500}": "delay: {window: 500, " +
			"default: 0, law: empirical, rounds: [0, 700], share: [0.75, 0.25]}\n",
	} {
		p := delayed(t, delay)
		y, err := p.Spec.YAML()
		if err != nil {
			t.Fatal(err)
		}
		if got := string(y); normal == "" && strings.Contains(got, "delay") || !strings.Contains(got, normal) {
			t.Errorf("%s has the normal form\n%s", delay, got)
		}
		again, err := experiment.Reader{}.Parse("again.yaml", y)
		if err != nil {
			t.Fatal(err)
		}
		if q, err := again.Resolve(); err != nil || q.Hash != p.Hash {
			t.Errorf("%s: its normal form is another experiment, %v", delay, err)
		}
		for _, h := range []string{p.Hash, p.Cells[0].Hash} {
			if other, twice := hashes[h]; twice {
				t.Errorf("%q and %q have one hash", delay, other)
			}
			hashes[h] = delay
		}
	}
}

// coarse is Bernoulli with sums that are drawn one by one.
type coarse struct{ bandit.Law }

func (l coarse) Sum(n int, s *noise.Fast) float64 {
	sum := 0.0
	for range n {
		sum += l.Draw(s)
	}
	return sum
}

// A window of one round, in which all rewards come, changes no run; a longer one costs regret, and
// outputs say so.
func TestDelayIsPlayed(t *testing.T) {
	arms := make([]bandit.Law, 2)
	for i, m := range []float64{0.8, 0.3} {
		law, err := bandit.NewBernoulli(m)
		if err != nil {
			t.Fatal(err)
		}
		arms[i] = coarse{law}
	}
	in, err := bandit.NewInstance(arms...)
	if err != nil {
		t.Fatal(err)
	}
	run := func(d sim.DelayLaw) (*experiment.Results, string) {
		t.Helper()
		spec := delayed(t, "").Spec
		spec.Instances = []experiment.Instance{{Name: "two", Source: bandit.Fixed(in)}}
		spec.Delay = d
		dir := t.TempDir()
		r, err := experiment.Run(context.Background(), &spec, experiment.Options{Out: dir})
		if err != nil {
			t.Fatal(err)
		}
		summary, err := os.ReadFile(filepath.Join(dir, "summary.csv"))
		if err != nil {
			t.Fatal(err)
		}
		return r, string(summary)
	}
	plain, without := run(sim.DelayLaw{})
	once, _ := run(sim.DelayLaw{Window: 1})
	long, with := run(sim.DelayLaw{Window: 1000, Law: sim.DelayGeometric, Mean: 200, Missing: 0.5})
	for i := range plain.Cells {
		if !slices.Equal(plain.Cells[i].FinalRegret, once.Cells[i].FinalRegret) {
			t.Errorf("a window of 1: regret %v, and without %v", once.Cells[i].FinalRegret,
				plain.Cells[i].FinalRegret)
		}
		if a, b := plain.Cells[i].Regret.Mean[1], long.Cells[i].Regret.Mean[1]; b < a+100 {
			t.Errorf("a window of 1000: mean regret %v, and without %v", b, a)
		}
	}
	const told = "geometric of mean 200, window 1000; 50.3 % do not come in it and count 0"
	if strings.Contains(without, "delay") || !strings.Contains(with, ",alpha,delay,metric,") ||
		!strings.Contains(with, told) {
		t.Errorf("summary.csv:\n%s", with)
	}
	page, err := long.Report()
	if err != nil || long.Manifest.Delay != told ||
		!strings.Contains(strings.Join(page.Tables[0].Notes, "\n"), told) {
		t.Errorf("%v: %+v", err, page)
	}
	for _, f := range page.Figures {
		if !strings.Contains(f.Note, told) {
			t.Errorf("figure %s does not say that rewards are late: %s", f.ID, f.Note)
		}
	}
}

// What cannot be played live is refused by name, with the reason; and so is what makes no sense.
func TestDelayRefused(t *testing.T) {
	for text, want := range map[string]string{
		"delay: 0":                        `delay: "0" is too small`,
		"delay: soon":                     `delay: "soon" is no number`,
		"delay: {default: 1}":             "delay.window: is 0, must be",
		"delay: {window: 9, law: normal}": `delay.law: is "normal"`,
		"delay: {window: 9, law: constant, mean: 9}": "delay.window: is 9, must be longer: no reward",
		"delay: {window: 9, mean: 9}":                "delay.mean: is 9, and law is",
		"delay: {window: 9, default: 1.5}":           "delay.default: is 1.5, must be in the range",
		"delay: {window: 9, late: 1}":                "late",
		"delay: 9\nunclipped: true":                  "unclipped: is true, and rewards that come late",
		"delay: 9\ntrust: central":                   "trust: is central, must be continuous",
		"delay: 9\npolicies: [ucb]":                  "policies[0]: policy ucb where rewards come late: play: ",
		"delay: 9\npolicies: [dp-ucb]":               "outlives a release",
		"delay: 9\npolicies: [dp-se-2]":              "sparse vector",
		"delay: 9\npolicies: [dp-se-doubling]":       "starts afresh",
		"delay: 9\nkind: linear":                     "delay",
	} {
		file := strings.Replace(late, "DELAY", text, 1)
		if strings.Contains(text, "policies") {
			file = strings.Replace(file, "policies: [dp-klucb, adap-klucb]\n", "", 1)
		}
		spec, err := experiment.Reader{}.Parse("late.yaml", []byte(file))
		if err == nil {
			_, err = spec.Resolve()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: want %q, got %v", text, want, err)
		}
	}
}

// Rules that look for the best arm take longer where rewards are late, and say no asymptotic upper
// bound, which is for rewards that come at once.
func TestDelayIdentifies(t *testing.T) {
	run := func(delay string) experiment.CellResult {
		t.Helper()
		spec, err := experiment.Reader{}.Parse("late.yaml", []byte("name: late\nkind: identify\nrisk: 0.1\ncap: 1e6\n"+
			"runs: 5\n"+delay+"\ninstances: [{name: two, bernoulli: [0.8, 0.3]}]\npolicies: [adap-tt]\n"+
			"budgets: [{epsilon: 1}]\n"))
		if err != nil {
			t.Fatal(err)
		}
		r, err := experiment.Run(context.Background(), spec, experiment.Options{Out: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		return r.Cells[0]
	}
	at, after := run(""), run("delay: 5000")
	if a, b := at.StoppingTime.Mean[0], after.StoppingTime.Mean[0]; !(b >= a+5000) || after.Failures > 1 {
		t.Errorf("stopping times %v at once and %v late", a, b)
	}
	if at.Identify.AsymptoticUpper == 0 || after.Identify.AsymptoticUpper != 0 {
		t.Errorf("upper bounds %v at once and %v late", at.Identify.AsymptoticUpper,
			after.Identify.AsymptoticUpper)
	}
}

// Upper bounds on the regret are of theorems for rewards that come at once.
func TestDelayBounds(t *testing.T) {
	for delay, want := range map[string]string{"": "",
		"delay: 100": "rewards come late; the theorem is for rewards that come at once"} {
		problems, left := delayed(t, delay).BoundProblems()
		if len(problems) != 1 || len(left) != 0 {
			t.Fatalf("%d problems, %q", len(problems), left)
		}
		for _, v := range problems[0].Problem.Variants {
			if v.Unproved != want {
				t.Errorf("%q: %s is not proved as %q", delay, v.Policy, v.Unproved)
			}
		}
	}
}
