package experiment_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/bound"
	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/lab/experiment"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/sim"
)

// goodIdentify is a small experiment that every bad one below is a change of.
const goodIdentify = `name: small
kind: identify
risk: 0.1
cap: 20000
runs: 40
instances:
  - {name: two, bernoulli: [0.9, 0.1]}
policies:
  - {policy: adap-tt}
budgets: [{epsilon: 1}]
`

// badIdentify lists experiments with one mistake each; what is said about them is in
// testdata/errors-identify.txt. Those marked are seen by the schema too.
var badIdentify = []struct {
	name, from, to string
	schema         bool
}{
	{"another kind", "kind: identify", "kind: identity", true},
	{"no kind", "kind: identify\n", "", true},
	{"no risk", "risk: 0.1\n", "", true},
	{"vectors of other means", "bernoulli: [0.9, 0.1]", "bernoulli: [0.9, 0.1], vectors: [[1], [1]]", false},
	{"a vector too few", "bernoulli: [0.9, 0.1]", "bernoulli: [0.9, 0.1], vectors: [[1, 0], [0, 1], [1, 1]]", false},
	{"a vector of nothing", "bernoulli: [0.9, 0.1]", "bernoulli: [0.9, 0.1], vectors: [[1, 0], [0, 0]]", false},
	{"a link without vectors", "bernoulli: [0.9, 0.1]", "bernoulli: [0.9, 0.1], link: logistic", false},
	{"another link", "bernoulli: [0.9, 0.1]", "bernoulli: [0.9, 0.1], vectors: [[1], [0.5]], link: probit", true},
	{"a sure arm with a link", "bernoulli: [0.9, 0.1]", "bernoulli: [1, 0.5], vectors: [[1], [0.5]], link: logistic", false},
	{"a link beyond the bound", "bernoulli: [0.9, 0.1]}\npolicies:\n  - {policy: adap-tt}", "bernoulli: [0.9, 0.1], " +
		"vectors: [[1], [-1]], link: logistic}\npolicies:\n  - {policy: dp-glm-race, bound: 2}", false},
	{"a link for a linear policy", "bernoulli: [0.9, 0.1]}\npolicies:\n  - {policy: adap-tt}", "bernoulli: [0.9, 0.1], " +
		"vectors: [[1], [-1]], link: logistic}\npolicies:\n  - {policy: dp-lin-race}", false},
	{"contexts that are not all", "bernoulli: [0.9, 0.1]", "bernoulli: [0.9, 0.1, 0.2, 0.3], contexts: [0.5, 0.4]", false},
	{"a context that nobody has", "bernoulli: [0.9, 0.1]", "bernoulli: [0.9, 0.1, 0.2, 0.3], contexts: [1, 0]", true},
	{"contexts of other arms", "bernoulli: [0.9, 0.1]", "bernoulli: [0.9, 0.1, 0.2], contexts: [0.5, 0.5]", false},
	{"contexts with vectors", "bernoulli: [0.9, 0.1]", "bernoulli: [0.9, 0.1, 0.9, 0.1], contexts: [0.5, 0.5], " +
		"vectors: [[1, 0], [0, 1], [1, 0], [0, 1]]", false},
	{"contexts for a policy of arms", "bernoulli: [0.9, 0.1]", "bernoulli: [0.9, 0.1, 0.2, 0.3], contexts: [0.5, 0.5]", false},
	{"contexts and people who do not answer", "bernoulli: [0.9, 0.1]}\npolicies:\n  - {policy: adap-tt}", "bernoulli: [0.9, 0.1, " +
		"0.2, 0.3], contexts: [0.5, 0.5]}\npolicies:\n  - {policy: dp-context-race, trust: secagg, promised: 0.5, dropout: 0.1}", false},
	{"k of as many arms", "{policy: adap-tt}", "{policy: dp-race, goal: top, k: 2}", false},
	{"too few plays", "{policy: adap-tt}", "{policy: dp-halving, plays: 1}", true},
	{"risk is zero", "risk: 0.1", "risk: 0", true},
	{"risk is one", "risk: 0.1", "risk: 1", true},
	{"risk is negative", "risk: 0.1", "risk: -0.1", true},
	{"risk is nan", "risk: 0.1", "risk: .nan", false},
	{"risk is text", "risk: 0.1", "risk: small", true},
	{"no cap", "cap: 20000\n", "", true},
	{"cap is infinite", "cap: 20000", "cap: .inf", false},
	{"cap below arms", "cap: 20000", "cap: 1", false},
	{"a horizon", "cap: 20000", "horizon: 20000", true},
	{"checkpoints", "runs: 40", "runs: 40\ncheckpoints: 5", true},
	{"unclipped", "runs: 40", "runs: 40\nunclipped: true", true},
	{"no runs", "runs: 40\n", "", true},
	{"runs is another word", "runs: 40", "runs: resolved", true},
	{"a risk too small to resolve", "risk: 0.1\ncap: 20000\nruns: 40",
		"risk: 1e-9\ncap: 20000\nruns: resolve", false},
	{"a risk that is none, to resolve", "risk: 0.1\ncap: 20000\nruns: 40",
		"risk: 2\ncap: 20000\nruns: resolve", true},
	{"rules", "policies:\n  - {policy: adap-tt}", "rules:\n  - {rule: nas, alpha: 0.1, beta: 0.1}", true},
	{"one arm", "[0.9, 0.1]", "[0.9]", true},
	{"actions", "bernoulli: [0.9, 0.1]", "actions: [[1, 0], [0, 1]], theta: [0.5, 0]", true},
	{"a law", "bernoulli: [0.9, 0.1]", "law: bernoulli(0.5)", true},
	{"policy for regret", "{policy: adap-tt}", "{policy: adap-ucb}", true},
	{"unknown policy", "{policy: adap-tt}", "{policy: adap-ttt}", true},
	{"unknown parameter", "{policy: adap-tt}", "{policy: adap-tt, alpha: 3}", true},
	{"parameter out of range", "{policy: adap-tt}", "{policy: adap-tt, beta: 1}", true},
	{"unknown choice", "{policy: adap-tt}", "{policy: adap-tt, leader: prinetd}", true},
	{"budget that no policy meets", "{epsilon: 1}", "{rho: 1}", true},
	{"budgets missing", "budgets: [{epsilon: 1}]\n", "", false},
	{"same policy under another name", "  - {policy: adap-tt}", "  - {policy: adap-tt}\n  - " +
		"{policy: adap-tt, name: twin, beta: 0.5}", false},
	{"empty range", "runs: 40", "runs: 40\nrange: [1, 0]", false},
}

// The proof of DP-TT's stopping rule is for discrete Laplace noise too, of a believed server, and
// where means are of all phases of two servers or of each user: there it is claimed, and a warning
// elsewhere says where.
func TestDPTTIsProvedForLaplaceNoisesThatAreCounted(t *testing.T) {
	for trust, proved := range map[string]bool{"continuous": true, "central": true,
		"central, precision: 4": true, "local": true, "two-server": true,
		"central, forget: true": true, "local, forget: true": false, "two-server, forget: true": false,
		"secagg": false, "shuffle": false} {
		plan := bounded(t, `name: trusted
kind: identify
cap: 1e5
runs: 1
risk: 0.1
instances: [{name: two, bernoulli: [0.75, 0.5]}]
policies: [{policy: dp-tt, trust: `+trust+`}]
budgets: [{epsilon: 1}]
`)
		m := plan.Manifest()
		if got := m.Cells[0].Identify.Correct == "proof: identify.JointThreshold"; got != proved ||
			!proved && m.Cells[0].Identify.Correct != "" {
			t.Errorf("trust %s: %q", trust, m.Cells[0].Identify.Correct)
		}
		warned := slices.ContainsFunc(m.Warnings, func(w string) bool {
			return strings.Contains(w, "its bound is proved for")
		})
		if warned == proved {
			t.Errorf("trust %s: warnings %q", trust, m.Warnings)
		}
		if i := slices.IndexFunc(m.Warnings, func(w string) bool {
			return strings.HasSuffix(w, "proved for continuous noise")
		}); i >= 0 {
			t.Errorf("trust %s: it is proved for discrete noise too: %q", trust, m.Warnings[i])
		}
	}
}

// Every mistake is one clear error, placed and explained: testdata/errors-identify.txt is to be read.
func TestIdentifyErrors(t *testing.T) {
	s := schema(t)
	var out strings.Builder
	if err := s.Validate(value(t, goodIdentify)); err != nil {
		t.Error(err)
	}
	for _, c := range badIdentify {
		if strings.Count(goodIdentify, c.from) != 1 {
			t.Fatalf("%s: %q is not in the experiment once", c.name, c.from)
		}
		text := strings.Replace(goodIdentify, c.from, c.to, 1)
		spec, err := experiment.Reader{}.Parse("testdata/bad.yaml", []byte(text))
		if err == nil {
			_, err = spec.Resolve()
		}
		var e *keyed.Error
		if !errors.Is(err, keyed.ErrSpec) || !errors.As(err, &e) {
			t.Errorf("%s: %T does not match ErrSpec: %v", c.name, err, err)
			continue
		}
		if c.schema && s.Validate(value(t, text)) == nil {
			t.Errorf("%s: passed the schema", c.name)
		}
		out.WriteString("# " + c.name + "\n" + err.Error() + "\n\n")
	}
	golden(t, "errors-identify.txt", out.String())

	// From a program the kinds do not mix either.
	for want, spec := range map[string]*experiment.Spec{
		"for experiments of kind regret, linear, contextual": {Kind: experiment.KindIdentify,
			Cap: 10, Risk: 0.1, Horizon: 10},
		"for experiments of kind identify": {Horizon: 10, Risk: 0.1},
		"resolve: that is for":             {Horizon: 10, Resolving: true},
		"must be one": {Kind: experiment.KindIdentify,
			Cap: 10, Risk: 0.1, Resolving: true},
	} {
		spec.Name, spec.Runs = "x", 1
		if strings.HasPrefix(want, "resolve") {
			spec.Runs = 0
		}
		if _, err := spec.Resolve(); !errors.Is(err, keyed.ErrSpec) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// fullIdentify uses every part of the syntax, and gives all warnings.
const fullIdentify = `name: full.identify
description: all of it
kind: identify
risk: 0.25
cap: 1e4
runs: 1_2
seed: 9
range: [0, 2]
instances:
  - {name: plain, bernoulli: [0.75, 0.25]}
  - {name: laws, laws: ["gaussian(0.5,0.1)", "beta(2,3)", 0.25, "table(0:0.5,2.5:0.5)"]}
  - {name: standard five, standard: C2, arms: 5}
  - {name: redrawn, means: {uniform: [0.25, 0.75]}, arms: 4, redraw: true}
  - {name: tied, bernoulli: [0.5, 0.25, 0.5]}
  - {name: logged, csv: two-arms.csv}
policies:
  - adap-tt
  - {policy: adap-tt, name: printed, beta: 0.4, sigma: 1, s: 1.5, leader: printed, unclipped: true, coin: true}
  - {policy: adap-tt, name: authors, sigma: 1, threshold: published}
  - adap-tt-star
  - {policy: dp-tt, eta: 0.5, first: 10, threshold: per-arm, forget: true}
  - dp-se
  - {policy: ttucb, sigma: 0.25}
  - se
  - {policy: lucb, name: "bounds"}
  - {policy: track-and-stop, family: gaussian}
budgets: [{epsilon: 1}, {epsilon: 0.1}, none]
`

func TestFullIdentify(t *testing.T) {
	spec, err := experiment.Reader{}.Parse("testdata/full.yaml", []byte(fullIdentify))
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
	golden(t, "full-identify.txt", out.String())
	j, err := plan.Spec.JSON()
	if err != nil {
		t.Fatal(err)
	}
	s := schema(t)
	for _, text := range [][]byte{y, j} {
		if err := s.Validate(value(t, string(text))); err != nil {
			t.Errorf("the schema refuses the normal form: %v", err)
		}
		again, err := experiment.Reader{}.Parse("testdata/again.yaml", text)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		p, err := again.Resolve()
		if err != nil || p.Hash != plan.Hash {
			t.Fatalf("the normal form is another experiment: %v", err)
		}
		if y2, err := again.YAML(); err != nil || string(y2) != string(y) {
			t.Errorf("normal form changed: %v\n%s", err, cmp.Diff(string(y), string(y2)))
		}
	}
}

// resolve is the least number of runs that can show the risk, in the plan and in its normal form.
func TestResolve(t *testing.T) {
	for risk, want := range map[float64]int{0.01: 368, 0.05: 72, 0.1: 36, 0.5: 6, 0.999: 1, 1e-5: 368_887} {
		n, err := experiment.ResolvingRuns(risk)
		if err != nil || n != want {
			t.Errorf("risk %v: %d runs, %v; want %d", risk, n, err, want)
		}
		// (1−x)^n = 0.025 at the upper limit x.
		limit := func(n int) float64 { return -math.Expm1(math.Log(0.025) / float64(n)) }
		if !(limit(n) <= risk) || n > 1 && limit(n-1) <= risk {
			t.Errorf("risk %v: %d runs leave %v, one less %v", risk, n, limit(n), limit(n-1))
		}
	}
	for _, risk := range []float64{0, 1, -1, math.NaN(), 1e-8} {
		if n, err := experiment.ResolvingRuns(risk); err == nil {
			t.Errorf("risk %v: %d runs", risk, n)
		}
	}
	spec := parse(t, strings.Replace(goodIdentify, "runs: 40", "runs: resolve", 1))
	if y, err := spec.YAML(); err != nil || !strings.Contains(string(y), "runs: resolve\n") {
		t.Errorf("%s, %v", y, err)
	}
	p, err := spec.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	if m := p.Manifest(); m.Runs != 36 || !strings.Contains(string(m.Spec), `"runs":36`) ||
		len(p.Warnings) != 0 {
		t.Errorf("%d runs, %s, %q", m.Runs, m.Spec, p.Warnings)
	}
	few := parse(t, strings.Replace(goodIdentify, "runs: 40", "runs: 35", 1))
	if p, err = few.Resolve(); err != nil || len(p.Warnings) != 1 ||
		p.Warnings[0] != "with 35 runs even no error leaves the upper limit at 0.1, above the "+
			"risk, 0.1: it takes 36 (runs: resolve)" {
		t.Errorf("%q, %v", p.Warnings, err)
	}
	// A flag has the last word.
	for _, o := range []string{"resolve", "7"} {
		if err := few.Override("runs", "--runs", o); err != nil {
			t.Fatal(err)
		}
		want := map[string]int{"resolve": 36, "7": 7}[o]
		if p, err := few.Resolve(); err != nil || p.Manifest().Runs != want {
			t.Errorf("--runs %s: %v", o, err)
		}
	}
	if err := parse(t, good).Override("runs", "--runs", "resolve"); err == nil {
		t.Error("regret has been resolved")
	}
}

// A cell's runs are those of sim.Identify with the run's streams, one by one; what is kept of them
// is what it gave.
func TestIdentifyIsTheSimulation(t *testing.T) {
	const text = `name: ident
kind: identify
risk: 0.1
cap: 6000
runs: 36
seed: 5
instances:
  - {name: three, bernoulli: [0.3, 0.5, 0.9]}
  - {name: tied, bernoulli: [0.5, 0.25, 0.5]}
  - {name: redrawn, means: {uniform: [0.25, 0.75]}, arms: 4, redraw: true}
policies: [{policy: adap-tt-star, coin: true}, dp-se, ttucb, {policy: dp-tt, first: 1}]
budgets: [{epsilon: 0.5}, none]
`
	dir := t.TempDir()
	spec := parse(t, text)
	plan, err := spec.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	if len(plan.Warnings) != 1 || !strings.Contains(plan.Warnings[0],
		"instance tied: arms 1 and 3 have the same largest mean") {
		t.Errorf("%q", plan.Warnings)
	}
	r, err := plan.Run(context.Background(), experiment.Options{Out: dir})
	if err != nil {
		t.Fatal(err)
	}
	capped, wrong := 0, 0
	rows, err := parquet.ReadFile[experiment.IdentifyRow](filepath.Join(dir, "results.parquet"))
	if err != nil || len(rows) != 36*len(r.Cells) {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	for i := range r.Cells {
		c := &r.Cells[i]
		entry, err := catalog.Find(catalog.BanditIdentify, c.Catalog)
		if err != nil {
			t.Fatal(err)
		}
		budget, err := privacy.ParseBudget(c.Budget)
		if err != nil {
			t.Fatal(err)
		}
		content := entry.Content(c.Params) + " at " + c.Budget
		failures, unfinished := 0, 0
		for run := range 36 {
			key := noise.Key{Seed: 5, Experiment: c.World, Run: run}
			var in bandit.Instance
			best := []int{2}
			switch c.Instance {
			case "three":
				in, err = bandit.BernoulliInstance(0.3, 0.5, 0.9)
			case "tied":
				in, err = bandit.BernoulliInstance(0.5, 0.25, 0.5)
				best = []int{0, 2}
			default:
				var src bandit.Source
				if src, err = bandit.NewUniformMeans(4, 0.25, 0.75, bandit.BernoulliFamily(),
					true); err != nil {
					t.Fatal(err)
				}
				key.Role = noise.RoleInstance
				s := key.Fast(1)
				in, err = src.Instance(&s[0])
				best = []int{0}
				for a, law := range in.Arms {
					if law.Mean() > in.Arms[best[0]].Mean() {
						best[0] = a
					}
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			key.Role = noise.RoleReward
			rewards := key.Fast(len(in.Arms))
			key.Role, key.Cell = noise.RoleNoise, content
			streams := key.Fast(1)
			key.Role = noise.RolePolicy
			coins := key.Fast(1)
			p, err := entry.NewIdentify(catalog.IdentifySetting{Arms: len(in.Arms), Risk: 0.1,
				Budget: budget, Coins: sim.NewCoins(&coins[0])}, c.Params)
			if err != nil {
				t.Fatal(err)
			}
			var out sim.IdentifyResult
			if err := sim.Identify(context.Background(),
				sim.IdentifyConfig{Policy: p, Instance: in, Cap: 6000, Rewards: rewards,
					Noise: &streams[0]}, &out); err != nil {
				t.Fatal(err)
			}
			row := rows[36*i+run]
			off := math.NaN()
			switch {
			case out.Answer < 0:
				unfinished++
			case slices.Contains(best, out.Answer):
				off = 0
			default:
				off = 1
				failures++
			}
			if got := c.FinalError[run]; got != off && !(math.IsNaN(got) && math.IsNaN(off)) ||
				(row.Error == nil) != math.IsNaN(off) || row.Error != nil && *row.Error != off {
				t.Errorf("%s, run %d: error %v, row %+v; want %v", c.Label(), run, got, row, off)
			}
			if c.FinalStoppingTime[run] != float64(out.Tau) ||
				c.FinalBatches[run] != float64(out.Batches) || row.StoppingTime != float64(out.Tau) ||
				row.Batches != float64(out.Batches) || row.Run != int64(run) || row.T != 6000 ||
				row.Policy != c.Policy || len(row.Plays) != len(in.Arms) {
				t.Errorf("%s, run %d: τ %v, %v batches, row %+v; want %+v", c.Label(), run,
					c.FinalStoppingTime[run], c.FinalBatches[run], row, out)
			}
			for a, n := range out.Plays {
				if c.FinalPlays[a][run] != float64(n) || row.Plays[a] != float64(n) {
					t.Errorf("%s, run %d: %v plays of arm %d, want %d", c.Label(), run,
						c.FinalPlays[a][run], a, n)
				}
			}
		}
		if c.Failures != failures || c.Unfinished != unfinished {
			t.Errorf("%s: %d failures, %d unfinished; want %d, %d", c.Label(), c.Failures,
				c.Unfinished, failures, unfinished)
		}
		capped, wrong = capped+unfinished, wrong+failures
		plays := 0.0
		for _, curve := range c.Plays {
			plays += curve.Mean[0]
		}
		if math.Abs(plays-c.StoppingTime.Mean[0]) > 1e-6 {
			t.Errorf("%s: %v plays in the mean, stopping time %v", c.Label(), plays, c.StoppingTime.Mean[0])
		}
		if c.Instance == "tied" && (len(c.Identify.Best) != 2 || c.Identify.LowerBound != 0) ||
			c.Instance == "redrawn" && (c.Identify.Best != nil || c.Identify.Time != 0) {
			t.Errorf("%s: %+v", c.Label(), c.Identify)
		}
	}
	if capped == 0 || capped == 36*len(r.Cells) {
		t.Errorf("%d runs are capped and %d wrong: the test wants some", capped, wrong)
	}
	// Summaries have a row for each metric, and the error's runs are those with an answer.
	var lines strings.Builder
	for _, line := range summary(t, dir) {
		lines.WriteString(strings.Join(line, ",") + "\n")
	}
	for _, c := range r.Cells {
		for _, metric := range []string{"stopping_time", "error", "batches", "plays_1",
			fmt.Sprintf("plays_%d", c.Arms)} {
			n := 36
			if metric == "error" {
				n -= c.Unfinished
			}
			if want := fmt.Sprintf("\nident,%s,%s,%s,%s,6000,%d,", c.Instance, c.Policy, c.Budget,
				metric, n); strings.Count(lines.String(), want) != 1 {
				t.Errorf("%q is not in summary.csv once", want)
			}
		}
	}
	if _, err := r.Compare(); err == nil {
		t.Error("stopping times were compared as regret")
	}
	loaded, err := experiment.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range loaded.Cells {
		if d := cmp.Diff(r.Cells[i].FinalPlays, c.FinalPlays); d != "" ||
			c.Failures != r.Cells[i].Failures || c.Unfinished != r.Cells[i].Unfinished ||
			c.Loss != r.Cells[i].Loss {
			t.Errorf("%s: read back differently: %s", c.Label(), d)
		}
	}
}

// Outputs are the same bytes however the work is cut up, and whether it was stopped in between; a
// damaged unit is played again.
func TestIdentifySameBytes(t *testing.T) {
	ctx := context.Background()
	text := strings.NewReplacer("runs: 40", "runs: 150", "policies:",
		"  - {name: redrawn, means: {uniform: [0.1, 0.9]}, arms: 3, redraw: true}\npolicies:",
		"[{epsilon: 1}]", "[{epsilon: 1}, {epsilon: 0.3}, none]", "{policy: adap-tt}",
		"{policy: adap-tt}\n  - dp-se\n  - lucb").Replace(goodIdentify)
	one := t.TempDir()
	play(t, text, experiment.Options{Out: one, Workers: 1})
	want := files(t, one)
	two := t.TempDir()
	play(t, text, experiment.Options{Out: two, Workers: 3})
	same(t, "three workers", want, files(t, two))
	var dirs []string
	for i := range 3 {
		dirs = append([]string{t.TempDir()}, dirs...)
		play(t, text, experiment.Options{Out: dirs[0], ShardI: i, ShardN: 3})
	}
	merged := t.TempDir()
	if _, err := experiment.Merge(ctx, dirs, merged, false); err != nil {
		t.Fatal(err)
	}
	same(t, "merged", want, files(t, merged))

	dir := t.TempDir()
	stopping, cancel := context.WithCancel(ctx)
	n := 0
	if _, err := experiment.Run(stopping, parse(t, text),
		experiment.Options{Out: dir, Workers: 2, Progress: func(experiment.Step) {
			if n++; n == 10 {
				cancel()
			}
		}}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "units", "*.unit"))
	if err != nil || len(left) < 10 {
		t.Fatalf("%d units, %v", len(left), err)
	}
	b, err := os.ReadFile(left[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(left[0], append(b[:len(b)-1], b[len(b)-1]^1), 0o644); err != nil {
		t.Fatal(err)
	}
	play(t, text, experiment.Options{Out: dir, Resume: true})
	same(t, "resumed", want, files(t, dir))
}

// What the manifest says of an instance is what package bound says, and nothing where
// no theorem holds.
func TestIdentifyBounds(t *testing.T) {
	const text = `name: bounds
kind: identify
risk: 0.01
cap: 10
runs: 1
instances:
  - {name: distinct, bernoulli: [0.75, 0.625, 0.5, 0.375, 0.25]}
  - {name: equal, bernoulli: [0.75, 0.7, 0.7]}
  - {name: edges, bernoulli: [0, 0.25, 0.5, 0.75, 1]}
  - {name: laws, laws: ["beta(2,3)", "beta(3,2)"]}
  - {name: logged, csv: testdata/two-arms.csv}
policies: [adap-tt, {policy: adap-tt, name: other, sigma: 1}, {policy: adap-tt, name: hint, threshold: published, sigma: 1}, adap-tt-star, dp-se, ttucb]
budgets: [{epsilon: 0.05}, none]
`
	spec := parse(t, text)
	p, err := spec.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	near := func(got, want float64) bool { return math.Abs(got-want) <= 1e-6*want }
	for _, c := range p.Manifest().Cells {
		id := c.Identify
		if id.Risk != 0.01 || id.Correct == "" != (c.Policy == "hint") || len(id.Best) != 1 {
			t.Errorf("%s: %+v", c.Label(), id)
		}
		switch c.Instance {
		case "laws", "logged":
			if id.Time != 0 || id.LowerBound != 0 || id.Boundary != 0 || id.AsymptoticUpper != 0 {
				t.Errorf("%s: %+v", c.Label(), id)
			}
			continue
		case "distinct":
			want := 122.8427
			if c.Budget == "epsilon=0.05" {
				want = 493.3333
			}
			if math.Abs(id.Time-want) > 1e-3 || !near(id.LowerBound, id.Time*0.98*math.Log(99)) ||
				!near(id.Boundary, id.TVTime/id.KLTime) {
				t.Errorf("%s: %+v, want T* = %v", c.Label(), id, want)
			}
		}
		if !(id.Time > 0 && id.Time >= id.KLTime*(1-1e-9) && id.Boundary > 0) {
			t.Errorf("%s: %+v", c.Label(), id)
		}
		means := map[string][]float64{"distinct": {0.75, 0.625, 0.5, 0.375, 0.25},
			"edges": {0, 0.25, 0.5, 0.75, 1}}[c.Instance]
		upper := 0.0
		if c.Budget != "none" && means != nil {
			switch c.Policy {
			case "adap-tt":
				upper, err = bound.AdaPTTUpper(means, 0.05, 0.5)
			case "adap-tt-star":
				upper, err = bound.AdaPTTStarUpper(means, 0.05, 0.5)
			}
		} else if means != nil {
			upper = id.AsymptoticUpper / math.Log(100) // without noise
		}
		if err != nil || !near(id.AsymptoticUpper, upper*math.Log(100)) {
			t.Errorf("%s: upper bound %v, want %v, %v", c.Label(), id.AsymptoticUpper, upper*math.Log(100), err)
		}
	}
}

func TestVerdict(t *testing.T) {
	for _, c := range []struct {
		wrong, capped, runs int
		risk                float64
		want                experiment.Verdict
	}{
		{0, 0, 368, 0.01, experiment.AtMostRisk},
		{0, 0, 367, 0.01, experiment.Undecided},
		{0, 100, 368, 0.01, experiment.AtMostRisk}, // no answer is no error
		{0, 368, 368, 0.01, experiment.NoAnswer},
		{3, 0, 1000, 0.01, experiment.AtMostRisk}, // upper end 0.0087
		{4, 0, 1000, 0.01, experiment.Undecided},  // 0.0102
		{18, 0, 1000, 0.01, experiment.AboveRisk}, // lower end 0.0107
		{17, 0, 1000, 0.01, experiment.Undecided}, // 0.0099
		{10, 0, 10, 0.9, experiment.Undecided},
		{10, 0, 10, 0.5, experiment.AboveRisk},
	} {
		r := experiment.CellResult{CellInfo: experiment.CellInfo{Identify: &experiment.IdentifyCell{Risk: c.risk}},
			Failures: c.wrong, Unfinished: c.capped,
			FinalError: make([]float64, c.runs)}
		v, lo, hi, err := r.Verdict()
		if err != nil || v != c.want || !(lo <= float64(c.wrong)/float64(c.runs) &&
			float64(c.wrong)/float64(c.runs) <= hi) {
			t.Errorf("%+v: %s, [%v, %v], %v", c, v, lo, hi, err)
		}
	}
	r := experiment.CellResult{FinalError: []float64{0}}
	if _, _, _, err := r.Verdict(); err == nil {
		t.Error("a verdict on what looks for no best arm")
	}
}
