package experiment_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/lab/experiment"
)

// cubeBudgets are budgets as files have them.
var cubeBudgets = map[string]string{"epsilon": "{epsilon: 1}", "rho": "{rho: 0.5}",
	"epsilon,delta": "{epsilon: 1, delta: 1e-6}", "alpha,epsilon": "{alpha: 8, epsilon: 1}"}

// cubeFile is a cell of the cube as a small file that plays it with this policy.
func cubeFile(c catalog.Cell, policy string) string {
	var b strings.Builder
	head := func(lines ...string) { fmt.Fprintln(&b, strings.Join(lines, "\n")) }
	head("name: cell", "runs: 1", "seed: 37", "budgets: ["+cubeBudgets[c.Currency]+"]")
	var own []string
	for name, value := range c.Params {
		own = append(own, ", "+name+": "+value)
	}
	slices.Sort(own)
	policies := "policies: [{policy: " + policy + strings.Join(own, "") + "}]"
	switch {
	case c.Goal == catalog.GoalStopping:
		head("kind: stopping", "cap: 1e7", "instances: [{name: a, law: bernoulli(0.9)}]",
			"rules: [{rule: "+policy+", alpha: 0.5, beta: 0.1}]")
	case c.Actions == catalog.BanditLinear && c.Goal != catalog.GoalRegret:
		head("kind: identify", "risk: 0.25", "cap: 1e8", "instances: [{name: a, bernoulli: [0.95, 0.85, 0.1, 0.05], "+
			"vectors: [[0.95, 0], [0.85, 0], [0, 0.1], [0, 0.05]]}]", policies)
	case strings.HasPrefix(policy, "dp-context-") && c.Goal != catalog.GoalRegret:
		head("kind: identify", "risk: 0.25", "cap: 1e8", "instances: [{name: a, contexts: [0.6, 0.4], "+
			"bernoulli: [0.95, 0.85, 0.1, 0.05, 0.05, 0.1, 0.9, 0.8]}]", policies)
	case strings.HasPrefix(policy, "dp-context-"):
		head("horizon: 3000", "instances: [{name: a, contexts: [0.6, 0.4], bernoulli: [0.9, 0.2, 0.1, 0.8]}]", policies)
	case c.Actions == "generalised linear" && c.Goal == catalog.GoalRegret:
		head("horizon: 3000", "instances: [{name: a, bernoulli: [0.8807970779778823, "+
			"0.7310585786300049, 0.2689414213699951, 0.1192029220221177], link: logistic, "+
			"vectors: [[1, 0], [0.5, 0], [0, 0.5], [0, 1]]}]", strings.Replace(policies, "}]", ", bound: 2.5}]", 1))
	case c.Actions == catalog.BanditLinear && policy == "dp-lin-se":
		head("horizon: 3000", "instances: [{name: a, bernoulli: [0.95, 0.85, 0.1, 0.05], "+
			"vectors: [[0.95, 0], [0.85, 0], [0, 0.1], [0, 0.05]]}]", policies)
	case c.Actions == "generalised linear": // θ = (2, −2)
		head("kind: identify", "risk: 0.25", "cap: 1e9", "instances: [{name: a, bernoulli: [0.8807970779778823, "+
			"0.7310585786300049, 0.2689414213699951, 0.1192029220221177], link: logistic, "+
			"vectors: [[1, 0], [0.5, 0], [0, 0.5], [0, 1]]}]", strings.Replace(policies, "}]", ", bound: 2.5}]", 1))
	case c.Actions == catalog.BanditLinear:
		head("kind: linear", "horizon: 20000", "instances: [{name: a, actions: [[1, 0], [0, 1], [0.6, 0.8]], "+
			"theta: [0.3, 0.4], noise: sign}]", policies)
	case c.Actions == catalog.BanditContextual:
		head("kind: contextual", "horizon: 500", "instances: [{name: a, contexts: gaussian, arms: 4, dimension: 2, "+
			"normalise: true, redraw: true}]", policies)
	case c.Goal == catalog.GoalRegret:
		head("horizon: 3000", "instances: [{name: a, bernoulli: [0.9, 0.6, 0.4, 0.1]}]", policies)
	default:
		head("kind: identify", "risk: 0.25", "cap: 1e7", "instances: [{name: a, bernoulli: [0.95, 0.85, 0.1, 0.05]}]",
			policies)
	}
	if c.Trust != "central" || c.Noise != "" {
		head("trust: " + c.Trust)
	}
	if c.Noise != "" {
		head("noise: " + c.Noise)
	}
	return b.String()
}

func playCube(t *testing.T, file string) (*experiment.Results, error) {
	spec, err := experiment.Reader{}.Parse("cell.yaml", []byte(file))
	if err != nil {
		return nil, err
	}
	return experiment.Run(context.Background(), spec, experiment.Options{Out: t.TempDir()})
}

// Every cell of the cube that is proved is played, from a file, in its currency and under its trust: its ledger
// has charged for it, it comes to an answer, and nothing warns that its bound is not proved. SOTTO_FULL plays all;
// without it, a third of them, in which each policy, currency and trust model is.
func TestCubePlays(t *testing.T) {
	for i, c := range catalog.Cube() {
		if c.Verdict != catalog.CubeProved || i%3 > 0 && os.Getenv("SOTTO_FULL") == "" {
			continue
		}
		r, err := playCube(t, cubeFile(c, c.Policy))
		if err != nil {
			t.Errorf("%s: %v\n%s", c.Name(), err, cubeFile(c, c.Policy))
			continue
		}
		cell := r.Cells[0]
		want := ""
		if c.Noise != "" {
			want = c.Trust + "/" + c.Noise
		}
		if cell.Catalog != c.Policy || cell.Trust != want || !cell.Private || cell.Loss == "" || cell.Loss == "none" {
			t.Errorf("%s: it was %s under %q for %q", c.Name(), cell.Catalog, cell.Trust, cell.Loss)
		}
		if cell.Unfinished > 0 {
			t.Errorf("%s: no answer", c.Name())
		}
		for _, w := range r.Manifest.Warnings {
			if strings.Contains(w, "proved") {
				t.Errorf("%s: %s", c.Name(), w)
			}
		}
		if testing.Verbose() {
			t.Logf("%s: %s, %s, %s", c.Name(), c.Policy, cell.Trust, cell.Loss)
		}
	}
}

// Where a cell is open no policy plays it: of those with its goal, or with any if there is none, each is
// refused.
func TestCubeRefusesWhatIsOpen(t *testing.T) {
	tried, open := 0, 0
	for _, c := range catalog.Cube() {
		if c.Verdict != catalog.CubeOpen {
			continue
		}
		open++
		for _, e := range append(catalog.All(), catalog.StoppingRules()...) {
			if !e.Private || (e.Goal == catalog.GoalStopping) != (c.Goal == catalog.GoalStopping) ||
				e.Seeks() != c.Goal && !slices.ContainsFunc(e.Params, func(p catalog.Param) bool { return p.Name == "goal" }) {
				continue
			}
			if at, err := e.Complete(nil); err == nil && strings.HasPrefix(e.With(at).Regret, "none") {
				continue // it may be played, and claims nothing
			}
			tried++
			spec, err := experiment.Reader{}.Parse("cell.yaml", []byte(cubeFile(c, e.Name)))
			if err == nil {
				_, err = spec.Resolve()
			}
			if err == nil {
				t.Errorf("%s is open, and %s plays it", c.Name(), e.Name)
			}
		}
	}
	if tried < open {
		t.Errorf("only %d files were tried, of %d cells", tried, open)
	}
}
