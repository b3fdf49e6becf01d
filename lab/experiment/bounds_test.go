package experiment_test

import (
	"context"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/bound"
	"github.com/sotto-dp/sotto/internal/stats"
	"github.com/sotto-dp/sotto/lab/experiment"
)

const boundedSpec = `name: bounded
horizon: 1e4
runs: 2
seed: 1
checkpoints: [100, 10000]
instances:
  - {name: five, bernoulli: [0.75, 0.625, 0.5, 0.375, 0.25]}
  - {name: laws, laws: ["uniform(0.5,1)", "table(0:0.75,1:0.25)"]}
  - {name: drawn, means: {uniform: [0.2, 0.8]}, arms: 3, redraw: true}
policies: [adap-ucb, adac-ucb, ucb]
budgets: [{epsilon: 0.1}, {rho: 1}]
`

func bounded(t *testing.T, spec string) *experiment.Resolved {
	t.Helper()
	s, err := experiment.Reader{}.Parse("bounded.yaml", []byte(spec))
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Bounds are drawn, not played: no hash changes, of a cell or of the experiment, and what was
// played stays where it is.
func TestBoundsChangeNoHash(t *testing.T) {
	plain, with := bounded(t, boundedSpec), bounded(t, boundedSpec+"bounds: true\n")
	if plain.Hash != with.Hash {
		t.Error("the experiment's hash changed")
	}
	for i := range plain.Cells {
		if plain.Cells[i].Hash != with.Cells[i].Hash {
			t.Errorf("the hash of %s changed", plain.Cells[i].Label())
		}
	}
	if m := plain.Manifest(); m.Bounds != nil {
		t.Error("bounds that nobody asked for")
	}
	m := with.Manifest()
	if !strings.Contains(string(m.Spec), `"bounds":true`) {
		t.Errorf("the normal form has no bounds: %s", m.Spec)
	}
	if again := bounded(t, string(m.Spec)); !again.Spec.Bounds {
		t.Error("the normal form is read back without bounds")
	}
	find := func(instance, budget string, worst bool) experiment.BoundLine {
		i := slices.IndexFunc(m.Bounds, func(b experiment.BoundLine) bool {
			return b.Instance == instance && b.Budget == budget && b.WorstCase == worst
		})
		if i < 0 {
			t.Fatalf("no bound for %s at %s", instance, budget)
		}
		return m.Bounds[i]
	}
	// Σ Δ/d_ε is 41.68 at ε = 0.1, and 7.128 without privacy, which is all there is for ρ-zCDP.
	if b := find("five", "epsilon=0.1", false); b.Name != "d-epsilon" ||
		math.Abs(b.Regret[1]/math.Log(1e4)-41.68) > 0.01 || b.Kind != "asymptotic" {
		t.Errorf("%+v", b)
	}
	if b := find("five", "rho=1", false); b.Name != "free-problem" ||
		math.Abs(b.Regret[0]/math.Log(100)-7.128) > 0.001 {
		t.Errorf("%+v", b)
	}
	if b := find("five", "none", true); b.Name != "free-minimax" || math.Abs(b.Regret[1]-200./27) > 1e-9 {
		t.Errorf("%+v", b)
	}
	// A table on {0,1} of mean ¼ against 0.75: as a coin, 0.5/min(kl, 0.05).
	if b := find("laws", "epsilon=0.1", false); b.Name != "thesis-4.16" ||
		math.Abs(b.Regret[1]/math.Log(1e4)-10) > 1e-9 {
		t.Errorf("%+v", b)
	}
	if i := slices.IndexFunc(m.Bounds, func(b experiment.BoundLine) bool {
		return b.Instance == "drawn"
	}); i >= 0 {
		t.Errorf("%+v", m.Bounds[i])
	}
	if !slices.ContainsFunc(m.Warnings, func(w string) bool {
		return strings.Contains(w, "drawn: means are redrawn")
	}) {
		t.Errorf("warnings %q", m.Warnings)
	}
	if len(m.Bounds) != 2*2*3 { // two instances, three budgets with none, two lines
		t.Errorf("%d lines", len(m.Bounds))
	}
	out := filepath.Join(t.TempDir(), "out")
	if _, err := plain.Run(context.Background(), experiment.Options{Out: out}); err != nil {
		t.Fatal(err)
	}
	if _, err := with.Run(context.Background(), experiment.Options{Out: out, Resume: true}); err != nil {
		t.Fatalf("asking for bounds later: %v", err)
	}
	r, err := experiment.Load(out)
	if err != nil || len(r.Manifest.Bounds) != 12 {
		t.Errorf("%v, %+v", err, r)
	}
}

func TestBoundsOfLinearWorlds(t *testing.T) {
	const spec = `name: bounded
kind: linear
horizon: 1e4
runs: 1
checkpoints: [10000]
bounds: true
instances:
  - {name: basis, actions: [[1, 0, 0], [0, 1, 0], [0, 0, 1]], theta: [0.9, 0.3, 0.1], noise: gaussian(1)}
policies: [gope, adac-gope]
budgets: [{rho: 1}]
`
	names := func(p *experiment.Resolved) (out []string) {
		for _, b := range p.Manifest().Bounds {
			out = append(out, b.Budget+" "+b.Name)
		}
		return out
	}
	// Clipped, the means are not linear; signs tell more than Gaussian noise does.
	minimax := []string{"none linear-free-minimax", "rho=1 linear-free-minimax"}
	if got := names(bounded(t, spec)); !slices.Equal(got, minimax) {
		t.Errorf("clipped: %q", got)
	}
	if got := names(bounded(t, strings.Replace(spec, "gaussian(1)", "sign", 1))); !slices.Equal(got, minimax) {
		t.Errorf("signs: %q", got)
	}
	want := []string{"none linear-free-problem", "none linear-free-minimax",
		"rho=1 linear-free-problem", "rho=1 linear-free-minimax"}
	if got := names(bounded(t, spec+"unclipped: true\n")); !slices.Equal(got, want) {
		t.Errorf("Gaussian: %q", got)
	}
}

// Explicit upper bounds hold: the mean regret of a few runs is below each of its policy's. All
// bounds have slack, by factors of two and more, so that chance is out of it.
func TestExplicitBoundsHold(t *testing.T) {
	for _, spec := range []string{`name: arms
horizon: 2e4
runs: 8
seed: 5
checkpoints: [20000]
instances:
  - {name: five, bernoulli: [0.75, 0.625, 0.5, 0.375, 0.25]}
  - {name: laws, laws: ["uniform(0.5,1)", "table(0:0.75,0.5:0.25)", "beta(1,3)"]}
policies: [ucb-2logt, successive-elimination, adap-ucb, {policy: adac-ucb, beta: 4}, dp-se, batch-se]
budgets: [{epsilon: 0.2}, {epsilon: 2}, {rho: 0.1}]
`, `name: actions
kind: linear
horizon: 2e4
runs: 4
seed: 5
checkpoints: [20000]
instances:
  - {name: plane, actions: [[1, 0], [0.8, 0.6], [0, 1], [-0.6, 0.8]], theta: [0.9, 0.2]}
policies: [gope, adac-gope]
budgets: [{rho: 1}]
`, `name: contexts
kind: contextual
horizon: 3000
runs: 4
seed: 5
checkpoints: [3000]
instances:
  - {name: drawn, contexts: sphere, arms: 5, dimension: 3}
policies: [rs-oful, adac-oful]
budgets: [{rho: 1}]
`} {
		plan := bounded(t, spec)
		r, err := plan.Run(context.Background(), experiment.Options{Out: filepath.Join(t.TempDir(), "out")})
		if err != nil {
			t.Fatal(err)
		}
		problems, left := plan.BoundProblems()
		if len(left) > 0 {
			t.Errorf("no bounds: %q", left)
		}
		checked := map[string]bool{}
		for _, p := range problems {
			all, err := bound.Regret(p.Problem)
			if err != nil {
				t.Fatal(err)
			}
			for i := range r.Cells {
				c := &r.Cells[i]
				if c.Instance != p.Instance || c.Budget != p.Budget {
					continue
				}
				mean, _, _ := stats.Mean(c.FinalRegret)
				for _, b := range all {
					if b.Lower || b.Kind != bound.Explicit || b.Unproved || b.Policy != c.Policy {
						continue
					}
					checked[c.Policy] = true
					if limit := b.Value(float64(r.Manifest.Horizon)); !(mean <= limit) {
						t.Errorf("%s: %v, above %v of %s", c.Label(), mean, limit, b.Name)
					}
				}
			}
		}
		if len(checked) < len(plan.Spec.Policies) {
			t.Errorf("%s: only %v were checked", plan.Spec.Name, checked)
		}
	}
}

// Each policy's bounds are those of its own parameters, and not of the last cell's.
func TestBoundsHaveThePoliciesParameters(t *testing.T) {
	plan := bounded(t, `
name: tuned
horizon: 100000
runs: 1
instances:
  - {name: two, bernoulli: [0.75, 0.5]}
policies:
  - {policy: adap-ucb, alpha: 4}
  - {policy: adac-ucb, beta: 8}
  - {policy: dp-se, beta: 0.1}
  - {policy: batch-se, p: 0.2, eta: 4}
budgets: [{rho: 0.5}]
`)
	problems, left := plan.BoundProblems()
	if len(problems) != 1 || len(left) > 0 {
		t.Fatalf("%d problems, %q", len(problems), left)
	}
	values := func(p bound.Problem) map[string]float64 {
		all, err := bound.Regret(p)
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]float64{}
		for _, b := range all {
			if b.Value != nil {
				out[b.Name] = b.Value(1e5)
			}
		}
		return out
	}
	got := values(problems[0].Problem)
	for name, of := range map[string]bound.Parameters{"adap-ucb": {Beta: 4},
		"thesis-5.6": {Beta: 8}, "dp-se-epochs": {Risk: 0.1}, "batch-se": {Risk: 0.2, Eta: 4}} {
		p := problems[0].Problem
		p.Variants, p.Parameters = nil, of
		if want := values(p)[name]; got[name] != want || !(want > 0) {
			t.Errorf("%s: %v, want %v", name, got[name], want)
		}
		p.Parameters = bound.Parameters{}
		if usual := values(p)[name]; got[name] == usual {
			t.Errorf("%s: %v, that of the default", name, usual)
		}
	}
	plain := values(bound.Problem{Laws: problems[0].Problem.Laws, Budget: problems[0].Problem.Budget})
	if got, usual := got["sajed-2.22"], plain["sajed-2.22"]; got != usual {
		t.Errorf("a bound that has no parameter changed: %v, %v", got, usual)
	}
}

// A theorem that is not for a policy's parameters, its trust model or its rewards gives no number,
// and the bound says why. The same policies with parameters that it is for have numbers beside them.
func TestNoNumberWhereNothingIsProved(t *testing.T) {
	for _, test := range []struct {
		spec string
		why  map[string]string // of a policy's label, part of the note; empty: it has a number
	}{
		{`name: arms
horizon: 1e5
runs: 1
instances: [{name: two, bernoulli: [0.75, 0.5]}]
policies:
  - {policy: adap-ucb}
  - {policy: adap-ucb, name: ratio, ratio: 200}
  - {policy: adap-ucb, name: half, printed_half: true}
  - {policy: adap-ucb, name: alpha, alpha: 2}
  - {policy: adap-ucb, name: secagg, trust: secagg}
  - {policy: adac-ucb}
  - {policy: adac-ucb, name: huge, beta: 1e300}
  - {policy: adac-ucb, name: both, ratio: 3, printed_half: true}
  - {policy: dp-se, name: guess, unknown_horizon: true}
  - {policy: batch-se}
  - {policy: batch-se, name: printed-pure, radius: printed-pure}
  - {policy: batch-se, name: printed-rdp, radius: printed-rdp}
  - {policy: batch-se, name: local, trust: local}
  - {policy: dp-klucb, alpha: 3}
budgets: [{rho: 0.125}]
`, map[string]string{"adap-ucb": "", "ratio": "ratio is 200; [Azize 2024, Theorem 5.3] is for ratio = 2",
			"half":   "printed_half is true",
			"alpha":  "alpha is 2; [Azize 2024, Theorem 5.3] needs alpha above 3",
			"secagg": "trust is secagg/", "adac-ucb": "", "huge": "beta is 1e+300",
			"both":  "ratio is 3; [Azize 2024, Theorem 5.6] is for ratio = 2; and printed_half is true",
			"guess": "unknown_horizon is true", "batch-se": "",
			"printed-pure": "radius is printed-pure", "printed-rdp": "radius is printed-rdp",
			"local": "trust is local/"}},
		{`name: free
horizon: 1e5
runs: 1
instances: [{name: two, bernoulli: [0.75, 0.5]}]
policies:
  - {policy: successive-elimination}
  - {policy: successive-elimination, name: anytime, beta: 0.1}
  - {policy: successive-elimination, name: guess, unknown_horizon: true}
`, map[string]string{"successive-elimination": "", "anytime": "beta is 0.1",
			"guess": "unknown_horizon is true"}},
		{`name: contexts
kind: contextual
horizon: 3000
runs: 1
instances: [{name: drawn, contexts: sphere, arms: 5, dimension: 3}]
policies: [{policy: adac-oful}, {policy: adac-oful, name: printed, radius: printed}]
budgets: [{rho: 1}]
`, map[string]string{"adac-oful": "", "printed": "radius is printed"}},
		{`name: noisy-contexts
kind: contextual
horizon: 3000
runs: 1
instances: [{name: drawn, contexts: sphere, arms: 5, dimension: 3, noise: gaussian(1)}]
policies: [adac-oful]
budgets: [{rho: 1}]
`, map[string]string{"adac-oful": "bends their means"}},
		{`name: clipped
kind: linear
horizon: 3000
runs: 1
instances: [{name: basis, actions: [[1, 0], [0, 1]], theta: [0.9, 0.3], noise: gaussian(1)}]
policies: [adac-gope]
budgets: [{rho: 1}]
`, map[string]string{"adac-gope": "clipping bends them"}},
	} {
		problems, left := bounded(t, test.spec).BoundProblems()
		if len(left) > 0 {
			t.Errorf("%q", left)
		}
		found := map[string]bool{}
		for _, p := range problems {
			all, err := bound.Regret(p.Problem)
			if err != nil {
				t.Fatal(err)
			}
			for _, b := range all {
				why, known := test.why[b.Policy]
				if !known || b.Kind == bound.Implicit || b.Kind == bound.Asymptotic {
					continue
				}
				found[b.Policy] = true
				if why == "" {
					if b.Kind != bound.Explicit || !(b.Value(1e5) > 0) {
						t.Errorf("%s: %+v", b.Policy, b)
					}
				} else if b.Kind != bound.NotProved || b.Value != nil || !strings.Contains(b.Note, why) {
					t.Errorf("%s: %+v, want %q", b.Policy, b, why)
				}
			}
		}
		for label := range test.why {
			if !found[label] {
				t.Errorf("no bound of %s", label)
			}
		}
	}
}

// AdaC-OFUL plays by default with a third of its risk for each event, and without split with all of
// it: the bound is of what is played.
func TestTheBoundOfOFULHasItsSplit(t *testing.T) {
	value := func(params string) float64 {
		plan := bounded(t, `name: contexts
kind: contextual
horizon: 3000
runs: 1
instances: [{name: drawn, contexts: sphere, arms: 5, dimension: 3}]
policies: [{policy: adac-oful`+params+`}]
budgets: [{rho: 1}]
`)
		problems, _ := plan.BoundProblems()
		for _, p := range problems {
			all, err := bound.Regret(p.Problem)
			if err != nil {
				t.Fatal(err)
			}
			for _, b := range all {
				if b.Policy == "adac-oful" && b.Kind == bound.Explicit {
					return b.Value(3000)
				}
			}
		}
		t.Fatal("no bound")
		return 0
	}
	// By hand, with δ for one event: d = 3, λ = C = ρ = 1, ℓ = 3 log(1+T/3)/log 2.
	hand := func(delta float64) float64 {
		const d, T = 3.0, 3000.0
		det := d * math.Log1p(T/d)
		l := math.Log(T / delta)
		noise := 2 * det / math.Ln2 * (d + 2*math.Sqrt(d*l) + 2*l)
		radius := math.Sqrt(2*math.Log(1/delta)+det) + 1 + math.Sqrt(noise)
		return 2*math.Sqrt2*math.Sqrt(2*T*det)*radius + 3*delta*2*T
	}
	for params, delta := range map[string]float64{"": 0.001 / 3, ", split: false": 0.001, ", risk: 0.3": 0.1} {
		if got, want := value(params), hand(delta); math.Abs(got-want) > 1e-9*want {
			t.Errorf("%q: %v, want %v", params, got, want)
		}
	}
}
