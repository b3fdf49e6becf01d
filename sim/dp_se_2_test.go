package sim_test

import (
	"context"
	"testing"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/sim"
)

// BenchmarkDPSE2 is a run of [Sajed 2019, §A.2] at its largest: K = 20, T = 5·10⁷, ε = 0.25.
func BenchmarkDPSE2(b *testing.B) {
	means := make([]float64, 20)
	for a := range means {
		means[a] = 0.75 - 0.5*float64(a)/19
	}
	in := bernoulli(b, means...)
	for _, name := range []string{"dp-se-2", "dp-se-2-modified"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			run := 0
			for b.Loop() {
				cfg := config(b, in, name, privacy.Pure{Epsilon: 0.25}, 50_000_000, run, nil)
				var out sim.Result
				if err := sim.Run(context.Background(), cfg, &out); err != nil {
					b.Fatal(err)
				}
				run++
			}
		})
	}
}

// What [Sajed 2019, §A.2] finds on C2 (K = 5): DP-SE beats DP-SE 2, and the modified DP-SE 2 beats
// the printed one.
func TestDPSE2AmongItsKin(t *testing.T) {
	mean := map[string]float64{}
	for _, name := range []string{"dp-se", "dp-se-2", "dp-se-2-modified"} {
		var se float64
		mean[name], se = regret(t, mu2(t), name, privacy.Pure{Epsilon: 0.25}, nil, 50_000_000, 30)
		t.Logf("%s: regret %.0f ± %.0f", name, mean[name], se)
	}
	if !(mean["dp-se"] < mean["dp-se-2"] && mean["dp-se-2-modified"] < mean["dp-se-2"]) {
		t.Errorf("regret %v", mean)
	}
}

// Without a horizon each guess asks anew, on rewards of its own: the budget is that of one guess,
// and arms are dropped all the same.
func TestDPSE2WithoutHorizon(t *testing.T) {
	const horizon = 4_000_000
	for run := range 5 {
		cfg := config(t, mu2(t), "dp-se-2", privacy.Pure{Epsilon: 1}, horizon, run,
			catalog.Params{"unknown_horizon": 1})
		var out sim.Result
		if err := sim.Run(context.Background(), cfg, &out); err != nil {
			t.Fatal(err)
		}
		if got := out.Loss.Pure(); !(got <= 1+1e-12 && got > 0.99) {
			t.Errorf("run %d costs %v", run, got)
		}
		if out.Plays[0] < horizon/2 {
			t.Errorf("run %d: plays %v", run, out.Plays)
		}
	}
}
