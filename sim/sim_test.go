package sim_test

import (
	"context"
	"errors"
	"maps"
	"math"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/sim"
)

func bernoulli(t testing.TB, means ...float64) bandit.Instance {
	t.Helper()
	var in bandit.Instance
	for _, m := range means {
		law, err := bandit.NewBernoulli(m)
		if err != nil {
			t.Fatal(err)
		}
		in.Arms = append(in.Arms, law)
	}
	return in
}

// mu2 is C2 of [Sajed 2019, chapter 6] for K = 5, the instance of [Azize 2024, §5.5.1].
func mu2(t testing.TB) bandit.Instance { return bernoulli(t, 0.75, 0.625, 0.5, 0.375, 0.25) }

func config(t testing.TB, in bandit.Instance, name string, budget privacy.Budget, horizon, run int,
	params catalog.Params) sim.Config {
	t.Helper()
	base, variant, varied := strings.Cut(name, " ") // as in "dp-ucb counter=blt"
	e, err := catalog.Find(catalog.BanditArms, base)
	if err != nil {
		t.Fatal(err)
	}
	if varied {
		key, word, _ := strings.Cut(variant, "=")
		p, _ := e.Param(key)
		x, err := p.Parse(word)
		if err != nil {
			t.Fatal(err)
		}
		params = maps.Clone(params)
		if params == nil {
			params = catalog.Params{}
		}
		params[key] = x
	}
	if params, err = e.Complete(params); err != nil {
		t.Fatal(err)
	}
	coins := noise.Key{Seed: 1, Experiment: "mu2", Cell: name + budget.String(), Run: run,
		Role: noise.RolePolicy}
	p, err := e.New(catalog.Setting{Arms: len(in.Arms), Horizon: horizon, Budget: budget,
		Coins: sim.NewCoins(&coins.Fast(1)[0])}, params)
	if err != nil {
		t.Fatal(err)
	}
	world := noise.Key{Seed: 1, Experiment: "mu2", Run: run, Role: noise.RoleReward}
	own := noise.Key{Seed: 1, Experiment: "mu2", Cell: name + budget.String(), Run: run, Role: noise.RoleNoise}
	return sim.Config{Policy: p, Instance: in, Horizon: horizon, Rewards: world.Fast(len(in.Arms)),
		Noise:       &own.Fast(1)[0],
		Checkpoints: sim.LogSpaced(200, horizon)}
}

// everyPolicy runs f for each policy, and each word of a parameter that has several, at a budget
// that it takes. config takes the entry's name.
func everyPolicy(t *testing.T, f func(t *testing.T, e catalog.Entry, b privacy.Budget)) {
	entries := catalog.Policies()
	for _, e := range entries {
		for _, p := range e.Params {
			for x, word := range p.Choices {
				if float64(x) == p.Default {
					continue
				}
				with := e.With(catalog.Params{p.Name: float64(x)})
				with.Name += " " + p.Name + "=" + word
				entries = append(entries, with)
			}
		}
	}
	for _, e := range entries {
		t.Run(e.Name, func(t *testing.T) {
			b := privacy.Budget(privacy.None{})
			switch {
			case e.Meets(privacy.Pure{Epsilon: 1}) == nil:
				b = privacy.Pure{Epsilon: 1}
			case e.Private:
				b = privacy.ZCDP{Rho: 1}
			}
			f(t, e, b)
		})
	}
}

func TestCurveIsTheTraceEvaluated(t *testing.T) {
	everyPolicy(t, func(t *testing.T, e catalog.Entry, b privacy.Budget) {
		const horizon = 5000
		in := mu2(t)
		cfg := config(t, in, e.Name, b, horizon, 3, nil)
		cfg.Trace = &sim.Trace{}
		var out sim.Result
		if err := sim.Run(context.Background(), cfg, &out); err != nil {
			t.Fatal(err)
		}
		count := make([]int, 5)
		for i, at := range cfg.Checkpoints {
			cfg.Trace.Plays(at, count)
			regret := 0.125*float64(count[1]) + 0.25*float64(count[2]) + 0.375*float64(count[3]) +
				0.5*float64(count[4])
			if total := count[0] + count[1] + count[2] + count[3] + count[4]; total != at {
				t.Fatalf("round %d: the trace has %d plays", at, total)
			}
			if out.Regret[i] != regret || out.PlaysBest[i] != float64(count[0]) {
				t.Fatalf("round %d: regret %v, plays of the best %v; the trace says %v, %v", at,
					out.Regret[i], out.PlaysBest[i], regret, count[0])
			}
		}
		// Round by round, the trace names the arms that it counts.
		clear(count)
		for round := 1; round <= 600; round++ {
			count[cfg.Trace.Arm(round)]++
		}
		want := make([]int, 5)
		cfg.Trace.Plays(600, want)
		for a := range want {
			if count[a] != want[a] {
				t.Errorf("arm %d: %d plays by name, %d by count", a, count[a], want[a])
			}
		}
		if cfg.Trace.Arm(0) != -1 || cfg.Trace.Arm(horizon+1) != -1 {
			t.Error("the trace names an arm outside its rounds")
		}
	})
}

// What a run costs is what its policy was given, whatever the rewards.
func TestLedgerTotalIsTheBudget(t *testing.T) {
	testkit.OneGoroutine(t)
	everyPolicy(t, func(t *testing.T, e catalog.Entry, b privacy.Budget) {
		for run := range testkit.Size(2, 5) {
			cfg := config(t, mu2(t), e.Name, b, 200_000, run, nil)
			var out sim.Result
			if err := sim.Run(context.Background(), cfg, &out); err != nil {
				t.Fatal(err)
			}
			got := out.Loss.Pure()
			if _, ok := b.(privacy.ZCDP); ok {
				got = out.Loss.ZCDP()
			}
			switch {
			case !e.Private && !math.IsInf(got, 1):
				t.Errorf("run %d: a policy without noise costs %v", run, got)
			case out.Releases == 0:
				t.Errorf("run %d: nothing was released", run)
			case e.Private && !(got <= 1+1e-12 && got > 0.9): // a tree of 200 000 rounds spends 18/19
				t.Errorf("run %d: costs %v, the budget is 1", run, got)
			}
		}
	})
}

// Independent simulations, one reward at a time, of 20 000 runs each (300 to 400 of DP-UCB's kind):
// means and their standard errors at T = 10⁷ on C2, ε = 1. A mean of n runs must be within 5
// standard errors of both: a false alarm has probability below 6·10⁻⁷ each.
func TestReproduceRegretAtTenMillion(t *testing.T) {
	testkit.OneGoroutine(t)
	for _, v := range []struct {
		policy       string
		budget       privacy.Budget
		params       catalog.Params
		runs         int
		want, wantSE float64
	}{
		{"adap-klucb", privacy.Pure{Epsilon: 1}, catalog.Params{"alpha": 3.1}, 1000, 1894.8, 1.9},
		{"adap-ucb", privacy.Pure{Epsilon: 1}, catalog.Params{"alpha": 3.1}, 2000, 2166.6, 1.9},
		{"dp-se", privacy.Pure{Epsilon: 1}, nil, 2000, 4311.5, 3.0},
		{"adac-ucb", privacy.ZCDP{Rho: 0.1}, catalog.Params{"beta": 1}, 4000, 440.0, 0.6},
		{"adac-ucb", privacy.None{}, catalog.Params{"beta": 1}, 4000, 379.4, 0.6},
	} {
		mean, se := regret(t, mu2(t), v.policy, v.budget, v.params, 10_000_000, v.runs)
		if z := (mean - v.want) / math.Hypot(se, v.wantSE); math.Abs(z) > 5 {
			t.Errorf("%s at %s: regret %.1f ± %.1f, the reference has %.1f ± %.1f", v.policy,
				v.budget, mean, se, v.want, v.wantSE)
		} else {
			t.Logf("%s at %s: regret %.1f ± %.1f, the reference has %.1f ± %.1f", v.policy,
				v.budget, mean, se, v.want, v.wantSE)
		}
	}
}

// regret is the mean at the horizon and its standard error.
func regret(t *testing.T, in bandit.Instance, name string, b privacy.Budget, params catalog.Params,
	horizon, runs int) (mean, se float64) {
	t.Helper()
	var out sim.Result
	var sum, squares float64
	for run := range runs {
		cfg := config(t, in, name, b, horizon, run, params)
		cfg.Checkpoints = []int{horizon}
		if err := sim.Run(context.Background(), cfg, &out); err != nil {
			t.Fatal(err)
		}
		sum += out.Regret[0]
		squares += out.Regret[0] * out.Regret[0]
	}
	n := float64(runs)
	mean = sum / n
	return mean, math.Sqrt((squares/n - mean*mean) / (n - 1))
}

// script plays fixed batches.
type script struct {
	batches []policy.Batch
	next    int
	seen    []float64
}

func (s *script) Mechanism() privacy.Mechanism { return privacy.Laplace{} }

func (s *script) Next(r privacy.Released) *policy.Batch {
	for i := range r.Len() {
		s.seen = append(s.seen, r.Sum(i))
	}
	if s.next == len(s.batches) {
		return nil
	}
	s.next++
	return &s.batches[s.next-1]
}

func scripted(t *testing.T, in bandit.Instance, horizon int, batches ...policy.Batch) sim.Config {
	t.Helper()
	cfg := config(t, in, "adap-ucb", privacy.Pure{Epsilon: 1}, horizon, 0, nil)
	cfg.Policy = &script{batches: batches}
	return cfg
}

// A reward outside the declared range is clipped before it is summed, one by one.
func TestRewardsAreClippedAtTheDoor(t *testing.T) {
	in := bandit.Instance{}
	for _, s := range []string{"table(-3:0.5,0.5:0.5)", "table(0.25:0.5,9:0.5)"} {
		law, err := bandit.ParseLaw(s)
		if err != nil {
			t.Fatal(err)
		}
		in.Arms = append(in.Arms, law)
	}
	batch := func(a int) policy.Batch {
		return policy.Batch{Plays: []policy.Play{{Arm: a, Rounds: 1000, Release: true}}}
	}
	cfg := scripted(t, in, 3000, batch(0), batch(1), batch(0))
	var out sim.Result
	if err := sim.Run(context.Background(), cfg, &out); err != nil {
		t.Fatal(err)
	}
	seen := cfg.Policy.(*script).seen
	// Arm 0 becomes 0 or ½, arm 1 ¼ or 1: sums of 1000 within 8 standard deviations of 250 and 625.
	if len(seen) != 2 || math.Abs(seen[0]-250) > 64 || math.Abs(seen[1]-625) > 96 {
		t.Errorf("released sums %v, want about 250 and 625", seen)
	}
	if m := math.Mod(seen[0], 0.5); m != 0 {
		t.Errorf("sum %v is none of rewards 0 and ½", seen[0])
	}
	if !math.IsInf(out.Loss.Pure(), 1) {
		t.Errorf("no noise costs ε = %v", out.Loss.Pure())
	}
}

func TestBatchesAreCutAtTheHorizon(t *testing.T) {
	in := bernoulli(t, 1, 0)
	cfg := scripted(t, in, 10,
		policy.Batch{Plays: []policy.Play{{Arm: 1, Rounds: 3, Release: true}}},
		policy.Batch{Plays: []policy.Play{{Arm: 0, Rounds: policy.Forever / 4, Release: true},
			{Arm: 1, Rounds: policy.Forever / 4, Release: true}}})
	cfg.Checkpoints = []int{1, 3, 4, 5, 10}
	var out sim.Result
	if err := sim.Run(context.Background(), cfg, &out); err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{1, 3, 3, 4, 6} {
		if out.Regret[i] != want {
			t.Errorf("regret at %d is %v, want %v", cfg.Checkpoints[i], out.Regret[i], want)
		}
	}
	if out.Plays[0] != 4 || out.Plays[1] != 6 || out.Releases != 1 {
		t.Errorf("plays %v, releases %d", out.Plays, out.Releases)
	}
}

func TestErrors(t *testing.T) {
	in := bernoulli(t, 1, 0)
	var out sim.Result
	if err := sim.Run(context.Background(), scripted(t, in, 10), &out); !errors.Is(err, sim.ErrStopped) {
		t.Errorf("a policy that stops: %v", err)
	}
	if err := sim.Run(context.Background(), scripted(t, in, 10, policy.Batch{}),
		&out); !errors.Is(err, sim.ErrStopped) {
		t.Errorf("an empty batch: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := sim.Run(ctx, config(t, in, "adap-ucb", privacy.Pure{Epsilon: 1}, 10, 0, nil),
		&out); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	for name, spoil := range map[string]func(*sim.Config){
		"horizon":     func(c *sim.Config) { c.Horizon = 0 },
		"arms":        func(c *sim.Config) { c.Instance.Arms = c.Instance.Arms[:1] },
		"streams":     func(c *sim.Config) { c.Rewards = nil },
		"noise":       func(c *sim.Config) { c.Noise = nil },
		"policy":      func(c *sim.Config) { c.Policy = nil },
		"checkpoints": func(c *sim.Config) { c.Checkpoints = []int{3, 3} },
		"late":        func(c *sim.Config) { c.Checkpoints = []int{11} },
	} {
		cfg := config(t, in, "adap-ucb", privacy.Pure{Epsilon: 1}, 10, 0, nil)
		spoil(&cfg)
		if err := sim.Run(context.Background(), cfg, &out); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestLogSpaced(t *testing.T) {
	for _, v := range []struct {
		n, horizon int
	}{{1, 1}, {1, 7}, {5, 3}, {200, 10}, {200, 10_000_000}, {3, min(1<<53, math.MaxInt/4)}} {
		at := sim.LogSpaced(v.n, v.horizon)
		if len(at) == 0 || len(at) > v.n || at[len(at)-1] != v.horizon || v.n > 1 && at[0] != 1 {
			t.Errorf("LogSpaced(%d, %d) = %v", v.n, v.horizon, at)
		}
		for i := 1; i < len(at); i++ {
			if at[i] <= at[i-1] {
				t.Errorf("LogSpaced(%d, %d) does not increase: %v", v.n, v.horizon, at)
			}
		}
	}
}

func BenchmarkRun(b *testing.B) {
	for _, v := range []struct {
		policy  string
		budget  privacy.Budget
		horizon int
		params  catalog.Params
	}{
		{"adap-ucb", privacy.Pure{Epsilon: 1}, 1e7, nil},
		{"adap-klucb", privacy.Pure{Epsilon: 1}, 1e7, nil},
		{"adac-ucb", privacy.ZCDP{Rho: 0.1}, 1e7, catalog.Params{"beta": 1}},
		{"dp-se", privacy.Pure{Epsilon: 1}, 1e7, nil},
		{"dp-ucb", privacy.Pure{Epsilon: 1}, 1e6, catalog.Params{"beta": 0.1}},
		{"dp-ucb counter=kary", privacy.Pure{Epsilon: 1}, 1e6, catalog.Params{"beta": 0.1, "counter": 1}},
		{"dp-ucb counter=hybrid", privacy.Pure{Epsilon: 1}, 1e6, catalog.Params{"beta": 0.1, "counter": 2}},
		{"dp-ucb counter=sqrt", privacy.ZCDP{Rho: 0.5}, 1e6, catalog.Params{"beta": 0.1, "counter": 3}},
		{"dp-ucb counter=blt", privacy.ZCDP{Rho: 0.5}, 1e6, catalog.Params{"beta": 0.1, "counter": 4}},
		{"dp-klucb", privacy.Pure{Epsilon: 1}, 1e7, nil},
		{"dp-imed", privacy.Pure{Epsilon: 1}, 1e7, nil},
		{"dp-klucb-j", privacy.Pure{Epsilon: 1}, 1e7, nil},
		{"dp-imed-j", privacy.Pure{Epsilon: 1}, 1e7, nil},
		{"lazy-dp-ts", privacy.Pure{Epsilon: 1}, 1e6, nil},
		{"imed", privacy.None{}, 1e6, nil},
		{"thompson", privacy.None{}, 1e6, nil},
		{"thompson posterior=gaussian", privacy.None{}, 1e6, catalog.Params{"posterior": 1}},
		{"ucb", privacy.None{}, 1e6, nil},
		{"ucb", privacy.None{}, 1e7, nil},
		{"kl-ucb", privacy.None{}, 1e6, nil},
		{"kl-ucb", privacy.None{}, 1e7, nil},
		{"successive-elimination", privacy.None{}, 1e7, nil},
	} {
		b.Run(v.policy+"/T="+map[int]string{1e6: "1e6", 1e7: "1e7"}[v.horizon], func(b *testing.B) {
			b.ReportAllocs()
			in := mu2(b)
			name, _, _ := strings.Cut(v.policy, " ")
			e, err := catalog.Find(catalog.BanditArms, name)
			if err != nil {
				b.Fatal(err)
			}
			params, err := e.Complete(v.params)
			if err != nil {
				b.Fatal(err)
			}
			at := sim.LogSpaced(200, v.horizon)
			var out sim.Result
			// all that a run needs of its own: policy, streams, curator
			for run := 0; b.Loop(); run++ {
				coins := noise.Key{Seed: 1, Experiment: "mu2", Cell: v.policy, Run: run, Role: noise.RolePolicy}
				p, err := e.New(catalog.Setting{Arms: 5, Horizon: v.horizon, Budget: v.budget,
					Coins: sim.NewCoins(&coins.Fast(1)[0])}, params)
				if err != nil {
					b.Fatal(err)
				}
				world := noise.Key{Seed: 1, Experiment: "mu2", Run: run, Role: noise.RoleReward}
				own := noise.Key{Seed: 1, Experiment: "mu2", Cell: v.policy, Run: run, Role: noise.RoleNoise}
				cfg := sim.Config{Policy: p, Instance: in, Horizon: v.horizon,
					Rewards: world.Fast(5), Noise: &own.Fast(1)[0], Checkpoints: at}
				if err := sim.Run(context.Background(), cfg, &out); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(v.horizon)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrounds/s")
		})
	}
}
