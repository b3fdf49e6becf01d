package sim_test

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
	"github.com/sotto-dp/sotto/sim"
)

// contextual is a run of batch SE in two contexts, of which the second has the opposite means.
func contextual(t *testing.T, run int, shares ...float64) sim.Config {
	t.Helper()
	e, err := catalog.Find(catalog.BanditArms, "dp-context-se")
	if err != nil {
		t.Fatal(err)
	}
	params, err := e.Complete(nil)
	if err != nil {
		t.Fatal(err)
	}
	const horizon = 20_000
	p, err := e.New(catalog.Setting{Arms: 4, Horizon: horizon, Budget: privacy.Pure{Epsilon: 1}, Contexts: 2}, params)
	if err != nil {
		t.Fatal(err)
	}
	key := noise.Key{Seed: 1, Experiment: "contexts", Run: run, Role: noise.RoleReward}
	streams := key.Fast(6)
	return sim.Config{Policy: p, Instance: bernoulli(t, 0.8, 0.2, 0.1, 0.9), Horizon: horizon,
		Checkpoints: []int{7, 100, horizon}, Rewards: streams[:4], Noise: &streams[4],
		Contexts: &sim.Contexts{Shares: shares, Stream: &streams[5]}}
}

// Regret is against the best arm of each context, at every checkpoint, and people come by their shares: 30 % of 20 000 is
// within 5.1 standard deviations of 6000 but for a probability below 1e-6.
func TestContexts(t *testing.T) {
	for run := range 3 {
		cfg := contextual(t, run, 0.7, 0.3)
		cfg.Trace = &sim.Trace{}
		var out sim.Result
		if err := sim.Run(context.Background(), cfg, &out); err != nil {
			t.Fatal(err)
		}
		for i, at := range cfg.Checkpoints {
			n := make([]int, 4)
			cfg.Trace.Plays(at, n)
			want := (0.8-0.2)*float64(n[1]) + (0.9-0.1)*float64(n[2])
			if math.Abs(out.Regret[i]-want) > 1e-9 || n[0]+n[1]+n[2]+n[3] != at || out.PlaysBest[i] != float64(n[0]+n[3]) {
				t.Errorf("run %d, round %d: regret %v of plays %v, want %v", run, at, out.Regret[i], n, want)
			}
		}
		if second := float64(out.Plays[2] + out.Plays[3]); math.Abs(second-6000) > 5.1*math.Sqrt(20_000*0.7*0.3) {
			t.Errorf("run %d: %v people of the second context", run, second)
		}
		// each context finds its own arm: who plays one arm for all loses 0.3·0.8·20 000 = 4800
		if out.Regret[2] > 2400 {
			t.Errorf("run %d: regret %v", run, out.Regret[2])
		}
		if got := out.Loss.Pure(); math.Abs(got-1) > 1e-12 {
			t.Errorf("run %d: it cost %v", run, got)
		}
	}
}

func TestContextsAreRefused(t *testing.T) {
	for want, change := range map[string]func(*sim.Config){
		"the shares of 2 contexts add up to 1.2": func(c *sim.Config) { c.Contexts.Shares = []float64{0.7, 0.5} },
		"the share of a context is 0":            func(c *sim.Config) { c.Contexts.Shares = []float64{1, 0} },
		"does not play 3 contexts": func(c *sim.Config) {
			c.Contexts.Shares, c.Instance = []float64{0.5, 0.25, 0.25}, bernoulli(t, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
			c.Rewards = noise.Key{Seed: 2}.Fast(6)
		},
		"has 4 arms for 4 contexts": func(c *sim.Config) { c.Contexts.Shares = []float64{0.25, 0.25, 0.25, 0.25} },
		"users who do not answer": func(c *sim.Config) {
			c.Trust = &release.Trust{Model: privacy.TrustSecAgg, Like: privacy.Pure{Epsilon: 1}, P: 0.1, Promised: 0.5, Dropout: 0.1}
		},
		"contexts and intervals": func(c *sim.Config) { c.Intervals = &sim.Intervals{Risk: 0.1, Means: make([]float64, 4)} },
	} {
		cfg := contextual(t, 0, 0.7, 0.3)
		change(&cfg)
		var out sim.Result
		if err := sim.Run(context.Background(), cfg, &out); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
