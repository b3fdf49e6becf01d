package sim_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/policy/linear"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/sim"
)

// A choice is a policy with its parameters.
type choice struct {
	catalog.Entry
	name   string
	params catalog.Params
}

// choices are policies with their defaults, and with each other value of a parameter that is
// a flag or a word.
func choices(t testing.TB, entries []catalog.Entry) []choice {
	t.Helper()
	var all []choice
	add := func(e catalog.Entry, name string, p catalog.Params) {
		p, err := e.Complete(p)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all = append(all, choice{e.With(p), name, p})
	}
	for _, e := range entries {
		add(e, e.Name, nil)
		for _, p := range e.Params {
			switch {
			case p.Flag:
				add(e, fmt.Sprintf("%s %s=%t", e.Name, p.Name, p.Default == 0),
					catalog.Params{p.Name: 1 - p.Default})
			case p.Choices != nil:
				for x, word := range p.Choices {
					if float64(x) != p.Default {
						add(e, e.Name+" "+p.Name+"="+word, catalog.Params{p.Name: float64(x)})
					}
				}
			}
		}
	}
	return all
}

func everyChoice(t *testing.T, entries []catalog.Entry, f func(t *testing.T, c choice, b privacy.Budget)) {
	for _, c := range choices(t, entries) {
		t.Run(c.name, func(t *testing.T) {
			b := privacy.Budget(privacy.None{})
			if c.Private {
				for _, b = range []privacy.Budget{privacy.ZCDP{Rho: 1},
					privacy.Approx{Epsilon: 1, Delta: 1e-6}, privacy.Pure{Epsilon: 1}} {
					if c.Meets(b) == nil {
						break
					}
				}
			}
			f(t, c, b)
		})
	}
}

// sphere10 is ten actions on the sphere of ℝ³ and a θ* on it, with rewards of −1 and 1.
func sphere10(t testing.TB, run int) bandit.LinearInstance {
	t.Helper()
	src, err := bandit.NewSphereActions(10, 3, nil, bandit.SignNoise(), true)
	if err != nil {
		t.Fatal(err)
	}
	in, err := src.Linear(&noise.Key{Seed: 1, Experiment: "sphere10", Run: run,
		Role: noise.RoleInstance}.Fast(1)[0])
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func linearChoice(t testing.TB, c choice, b privacy.Budget, in bandit.LinearInstance, horizon,
	run int) sim.LinearConfig {
	t.Helper()
	p, err := c.NewLinear(catalog.LinearSetting{Actions: in.Actions, Horizon: horizon, Budget: b}, c.params)
	if err != nil {
		t.Fatal(err)
	}
	return linearConfig(p, in, horizon, run)
}

func contextualChoice(t testing.TB, c choice, b privacy.Budget, in bandit.ContextualInstance,
	horizon, run int) sim.ContextualConfig {
	t.Helper()
	coins := noise.Key{Seed: 1, Experiment: "contexts", Cell: c.name, Run: run, Role: noise.RolePolicy}
	if c.Name == "histogram-ts" { // which plays no others than rows
		in = fewRows(t, run)
	}
	p, err := c.NewContextual(catalog.ContextualSetting{Dim: in.Dim(), Arms: in.MaxActions(),
		Horizon: horizon, Budget: b, Rows: linear.RowsOf(in),
		Coins: sim.NewCoins(&coins.Fast(1)[0])}, c.params)
	if err != nil {
		t.Fatal(err)
	}
	return contextualConfig(p, in, horizon, run)
}

// fewRows is sphere10 as a world of contexts.
func fewRows(t testing.TB, run int) bandit.ContextualInstance {
	t.Helper()
	world := sphere10(t, run)
	src, err := bandit.NewFixedContexts(world.Actions, bandit.ContextConfig{Theta: world.Theta,
		Noise: bandit.SignNoise()})
	if err != nil {
		t.Fatal(err)
	}
	in, err := src.Contextual(nil)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// spent is the part of a budget that a run cost.
func spent(l privacy.Loss, b privacy.Budget) float64 {
	switch b := b.(type) {
	case privacy.ZCDP:
		return l.ZCDP() / b.Rho
	case privacy.Approx:
		return l.Approx(b.Delta) / b.Epsilon
	}
	return l.Pure()
}

// What a run costs is what its policy was given, whatever the rewards, and a ledger with that cap
// lets it all pass.
func TestLinearLedgerTotalIsTheBudget(t *testing.T) {
	check := func(t *testing.T, c choice, b privacy.Budget, out *sim.Result) {
		t.Helper()
		got := spent(out.Loss, b)
		switch {
		case !c.Private && !math.IsInf(got, 1):
			t.Errorf("a policy without noise costs %v", got)
		case out.Releases == 0:
			t.Error("nothing was released")
		case c.Private && !(got <= 1+1e-9 && got > least(c)):
			t.Errorf("costs %v of its budget, %v", got, b)
		}
	}
	everyChoice(t, catalog.LinearPolicies(), func(t *testing.T, c choice, b privacy.Budget) {
		for run := range 3 {
			var out sim.Result
			cfg := linearChoice(t, c, b, sphere10(t, run), 200_000, run)
			cfg.Ledger = privacy.NewLedger(privacy.WithCap(b))
			if err := sim.RunLinear(context.Background(), cfg, &out); err != nil {
				t.Fatal(err)
			}
			check(t, c, b, &out)
		}
	})
	everyChoice(t, catalog.ContextualPolicies(), func(t *testing.T, c choice, b privacy.Budget) {
		var out sim.Result
		cfg := contextualChoice(t, c, b, gaussianContexts(t, bandit.SignNoise(), true), 3000, 0)
		cfg.Ledger = privacy.NewLedger(privacy.WithCap(b))
		if err := sim.RunContextual(context.Background(), cfg, &out); err != nil {
			t.Fatal(err)
		}
		check(t, c, b, &out)
	})
}

// least is the least part of its budget that a policy may leave unspent and still be calibrated.
func least(c choice) float64 {
	if c.params["literal"] == 1 { // the printed noise may be more than the budget needs
		return 0.99
	}
	if c.Bandit == catalog.BanditContextual && !c.PublicContexts {
		return 0.5 // a tree may have a level more than it needs
	}
	return 1 - 1e-9
}

// A policy at budget none is the same code with no noise: its ledger says ∞ and nothing is drawn
// from the stream of privacy noise.
func TestLinearTwinsDrawNoNoise(t *testing.T) {
	everyChoice(t, catalog.LinearPolicies(), func(t *testing.T, c choice, _ privacy.Budget) {
		var out sim.Result
		cfg := linearChoice(t, c, privacy.None{}, sphere10(t, 0), 50_000, 0)
		at := *cfg.Noise
		if err := sim.RunLinear(context.Background(), cfg, &out); err != nil {
			t.Fatal(err)
		}
		if *cfg.Noise != at || !math.IsInf(out.Loss.Pure(), 1) {
			t.Errorf("draws noise, or costs %v", out.Loss.Pure())
		}
	})
	everyChoice(t, catalog.ContextualPolicies(), func(t *testing.T, c choice, _ privacy.Budget) {
		var out sim.Result
		cfg := contextualChoice(t, c, privacy.None{}, gaussianContexts(t, bandit.SignNoise(), true), 2000, 0)
		at := *cfg.Noise
		if err := sim.RunContextual(context.Background(), cfg, &out); err != nil {
			t.Fatal(err)
		}
		if *cfg.Noise != at || !math.IsInf(out.Loss.Pure(), 1) {
			t.Errorf("draws noise, or costs %v", out.Loss.Pure())
		}
	})
}

// Unclipped there is no guarantee, whatever the policy was given.
func TestLinearUnclippedCostsInfinity(t *testing.T) {
	everyChoice(t, catalog.LinearPolicies(), func(t *testing.T, c choice, b privacy.Budget) {
		var out sim.Result
		cfg := linearChoice(t, c, b, sphere10(t, 0), 50_000, 0)
		cfg.Unclipped = true
		if err := sim.RunLinear(context.Background(), cfg, &out); err != nil ||
			!math.IsInf(spent(out.Loss, b), 1) {
			t.Errorf("costs %v, %v", spent(out.Loss, b), err)
		}
	})
	everyChoice(t, catalog.ContextualPolicies(), func(t *testing.T, c choice, b privacy.Budget) {
		var out sim.Result
		cfg := contextualChoice(t, c, b, gaussianContexts(t, gaussian(t, 1), false), 1000, 0)
		cfg.Unclipped = true
		if err := sim.RunContextual(context.Background(), cfg, &out); err != nil ||
			!math.IsInf(spent(out.Loss, b), 1) {
			t.Errorf("costs %v, %v", spent(out.Loss, b), err)
		}
	})
}

// Two private policies, and their twins, meet the same contexts and the same reward noise.
func TestContextualPoliciesArePaired(t *testing.T) {
	in := gaussianContexts(t, bandit.SignNoise(), true)
	var contexts, rewards *noise.Fast
	everyChoice(t, catalog.ContextualPolicies(), func(t *testing.T, c choice, b privacy.Budget) {
		if c.Name == "histogram-ts" { // whose world has other contexts
			contexts = nil
			defer func() { contexts = nil }()
		}
		for _, b := range []privacy.Budget{b, privacy.None{}} {
			cfg := contextualChoice(t, c, b, in, 500, 0)
			var out sim.Result
			if err := sim.RunContextual(context.Background(), cfg, &out); err != nil {
				t.Fatal(err)
			}
			if contexts != nil && (*cfg.Contexts != *contexts || *cfg.Rewards != *rewards) {
				t.Error("the streams are elsewhere than after another policy")
			}
			contexts, rewards = cfg.Contexts, cfg.Rewards
		}
	})
}

// Independent simulations of 100 runs each have these mean regrets (printed as whole numbers) on
// the contexts of [Azize and Basu 2024, §VIII] with N(0,1) noise, θ* drawn for each run. Both means
// have the standard deviation of a run, over √100 and √runs; 5.2 standard errors are left to chance
// with probability 2·10⁻⁷ each.
func TestReproduceContextualRegret(t *testing.T) {
	testkit.OneGoroutine(t)
	src, err := bandit.NewGaussianContexts(bandit.ContextConfig{Arms: 10, Dim: 3,
		Noise: gaussian(t, 1), Redrawn: true}, nil, 0.1)
	if err != nil {
		t.Fatal(err)
	}
	const runs = 50
	for _, v := range []struct {
		budget privacy.Budget
		want   [2]float64 // at T = 10³ and T = 10⁴, of one policy for T = 10⁵
	}{
		{privacy.None{}, [2]float64{60, 121}},
		{privacy.ZCDP{Rho: 1}, [2]float64{129, 240}},
		{privacy.ZCDP{Rho: 0.1}, [2]float64{224, 457}},
	} {
		var sum, squares [2]float64
		for run := range runs {
			in, err := src.Contextual(&noise.Key{Seed: 3, Run: run, Role: noise.RoleInstance}.Fast(1)[0])
			if err != nil {
				t.Fatal(err)
			}
			p, err := linear.NewOFUL(3, 100_000, v.budget, linear.OFULOptions{Lambda: 0.1, C: 1, Risk: 0.001})
			if err != nil {
				t.Fatal(err)
			}
			cfg := contextualConfig(p, in, 10_000, run)
			cfg.Unclipped, cfg.Checkpoints = true, []int{1000, 10_000}
			var out sim.Result
			if err := sim.RunContextual(context.Background(), cfg, &out); err != nil {
				t.Fatal(err)
			}
			for i, r := range out.Regret {
				sum[i] += r / runs
				squares[i] += r * r / runs
			}
		}
		for i, mean := range sum {
			se := math.Sqrt((squares[i] - mean*mean) * (1./runs + 1./100))
			if z := (mean - v.want[i]) / (se + 0.5); math.Abs(z) > 5.2 {
				t.Errorf("%v: regret %.1f ± %.1f, the reference has %v", v.budget, mean, se, v.want[i])
			} else {
				t.Logf("%v: regret %.1f ± %.1f, the reference has %v", v.budget, mean, se, v.want[i])
			}
		}
	}
}

// The same for GOPE on ten actions and θ* uniform on the sphere of ℝ³, drawn for each run,
// with N(0,1) noise.
func TestReproduceLinearRegret(t *testing.T) {
	testkit.OneGoroutine(t)
	src, err := bandit.NewSphereActions(10, 3, nil, gaussian(t, 1), true)
	if err != nil {
		t.Fatal(err)
	}
	const runs = 1000
	for _, v := range []struct {
		horizon int
		want    float64
	}{{1e4, 3435}, {1e5, 10207}, {1e6, 19373}, {1e7, 30156}} {
		var sum, squares float64
		for run := range runs {
			in, err := src.Linear(&noise.Key{Seed: 4, Run: run, Role: noise.RoleInstance}.Fast(1)[0])
			if err != nil {
				t.Fatal(err)
			}
			p, err := linear.NewGOPE(in.Actions, v.horizon, privacy.None{}, linear.GOPEOptions{Risk: 0.001})
			if err != nil {
				t.Fatal(err)
			}
			cfg := linearConfig(p, in, v.horizon, run)
			cfg.Unclipped, cfg.Checkpoints = true, []int{v.horizon}
			var out sim.Result
			if err := sim.RunLinear(context.Background(), cfg, &out); err != nil {
				t.Fatal(err)
			}
			sum += out.Regret[0] / runs
			squares += out.Regret[0] * out.Regret[0] / runs
		}
		se := math.Sqrt((squares - sum*sum) * (1./runs + 1./100))
		if z := (sum - v.want) / (se + 0.5); math.Abs(z) > 5.2 {
			t.Errorf("T = %d: regret %.0f ± %.0f, the reference has %v", v.horizon, sum, se, v.want)
		} else {
			t.Logf("T = %d: regret %.0f ± %.0f, the reference has %v", v.horizon, sum, se, v.want)
		}
	}
}

func TestLinearPoliciesCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	everyChoice(t, catalog.LinearPolicies(), func(t *testing.T, c choice, b privacy.Budget) {
		var out sim.Result
		if err := sim.RunLinear(ctx, linearChoice(t, c, b, sphere10(t, 0), 1000, 0),
			&out); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

func BenchmarkRunLinear(b *testing.B) {
	const horizon = 10_000_000
	in := sphere10(b, 0)
	bench := func(name string, config func(run int) sim.LinearConfig) {
		b.Run(strings.ReplaceAll(name, " ", ",")+"/T=1e7", func(b *testing.B) {
			b.ReportAllocs()
			at := sim.LogSpaced(200, horizon)
			var out sim.Result
			for run := 0; b.Loop(); run++ {
				cfg := config(run)
				cfg.Checkpoints = at
				if err := sim.RunLinear(context.Background(), cfg, &out); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(horizon)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrounds/s")
		})
	}
	// Hardly a policy: rewards and the curator, with which the rest is to be compared.
	bench("greedy", func(run int) sim.LinearConfig {
		return linearConfig(&greedy{sigma: 2, rounds: make([]int, 10)}, in, horizon, run)
	})
	for _, c := range choices(b, catalog.LinearPolicies()) {
		budget := privacy.Budget(privacy.None{})
		if c.Private {
			budget = privacy.ZCDP{Rho: 1}
		}
		bench(c.name, func(run int) sim.LinearConfig { return linearChoice(b, c, budget, in, horizon, run) })
	}
}

func BenchmarkRunContextual(b *testing.B) {
	in := gaussianContexts(b, gaussian(b, 1), false)
	const horizon = 100_000
	bench := func(name string, config func(run int) sim.ContextualConfig) {
		b.Run(strings.ReplaceAll(name, " ", ",")+"/T=1e5", func(b *testing.B) {
			b.ReportAllocs()
			var out sim.Result
			for run := 0; b.Loop(); run++ {
				cfg := config(run)
				cfg.Unclipped = true
				if err := sim.RunContextual(context.Background(), cfg, &out); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(horizon)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrounds/s")
		})
	}
	// No policy: contexts, rewards and the curator, with which the rest is to be compared.
	bench("none", func(run int) sim.ContextualConfig {
		return contextualConfig(&picker{sigma: 1, rule: turns}, in, horizon, run)
	})
	for _, c := range choices(b, catalog.ContextualPolicies()) {
		budget := privacy.Budget(privacy.None{})
		if c.Private {
			budget = privacy.ZCDP{Rho: 1}
		}
		if c.Meets(budget) != nil {
			continue
		}
		bench(c.name, func(run int) sim.ContextualConfig {
			return contextualChoice(b, c, budget, in, horizon, run)
		})
	}
}
