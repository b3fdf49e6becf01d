package sim_test

import (
	"context"
	"testing"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/feature"
	"github.com/sotto-dp/sotto/internal/clicks"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/sim"
)

// clicksD20 is world d20 of examples/worlds.yaml: three devices crossed with four topics, d = 20.
func clicksD20(t testing.TB, seed int) (w *sim.Visits, norm float64) {
	t.Helper()
	m := feature.Map{
		Context: []feature.Feature{{Name: "device", Values: []string{"a", "b", "c"}}},
		Action:  []feature.Feature{{Name: "topic", Values: []string{"p", "q", "r", "s"}}},
		Cross:   []feature.Cross{{Of: []string{"device", "topic"}}},
	}
	s := noise.Key{Seed: 9, Run: seed, Role: noise.RoleInstance}.Fast(1)
	w, err := clicks.World{Map: m, Actions: 4, Mean: 0.05, Gap: 0.03}.Generate(&s[0])
	if err != nil {
		t.Fatal(err)
	}
	return w, m.Norm()
}

// BenchmarkRunVisits is 10⁵ decisions in world d20 of examples/worlds.yaml.
func BenchmarkRunVisits(b *testing.B) {
	const horizon = 100_000
	world, norm := clicksD20(b, 0)
	for _, c := range []struct {
		name, policy string
		params       catalog.Params
		floor        float64
	}{
		{"dp-lin-ts", "dp-lin-ts", catalog.Params{"norm": norm, "intercept": 1, "centre": -1}, 0.02},
		{"adac-oful", "adac-oful", catalog.Params{"norm": norm}, 0},
		{"greedy", "adac-oful", catalog.Params{"norm": norm, "greed": 1, "lambda": 100}, 0.1},
	} {
		b.Run(c.name, func(b *testing.B) {
			e, err := catalog.Find(catalog.BanditContextual, c.policy)
			if err != nil {
				b.Fatal(err)
			}
			p, err := e.Complete(c.params)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			var out sim.Result
			for run := 0; b.Loop(); run++ {
				s := noise.Key{Seed: 10, Run: run, Role: noise.RoleReward}.Fast(5)
				pol, err := e.NewContextual(catalog.ContextualSetting{Dim: world.Dim, Horizon: horizon,
					Budget: privacy.ZCDP{Rho: 1}, Coins: &s[4]}, p)
				if err != nil {
					b.Fatal(err)
				}
				err = sim.RunVisits(context.Background(), sim.VisitsConfig{Policy: pol.(sim.LatePolicy), World: world,
					Horizon: horizon, Window: 694, Floor: c.floor, Checkpoints: sim.LogSpaced(41, horizon),
					Visitors: &s[0], Rewards: &s[1], Coins: &s[2], Noise: &s[3]}, &out)
				if err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(b.Elapsed().Seconds()*1e9/float64(b.N)/horizon, "ns/decision")
			b.ReportMetric(float64(out.Releases), "releases")
		})
	}
}
