package sim_test

import (
	"context"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/sotto-dp/sotto/internal/stats"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/sim"
)

// On random arms dp-ts has less regret than the better of zcdp-imed and dp-imed at the same ρ, from ten
// arms on by more than five standard errors of the difference; seeds are fixed. SOTTO_RUNS=24 prints the
// table, with so many worlds a row and what the worst 5 % of them lose.
func TestThompsonOnReleasesWins(t *testing.T) {
	type class struct {
		arms    int
		lo, hi  float64
		rho     float64
		horizon int
		less    bool // it must have less
	}
	classes, worlds := []class{{10, 0.01, 0.05, 0.5, 10_000, true}}, 128
	if n, err := strconv.Atoi(os.Getenv("SOTTO_RUNS")); err == nil {
		worlds, classes = n, nil
		for _, k := range []int{2, 5, 10, 20, 50} {
			classes = append(classes, class{k, 0.01, 0.05, 0.5, 100_000, k >= 10})
		}
		classes = append(classes, class{20, 0.01, 0.05, 0.005, 100_000, false}, class{20, 0.25, 0.75, 0.5, 100_000, false},
			class{20, 0.01, 0.05, 0.5, 10_000, false}, class{20, 0.01, 0.05, 0.5, 1_000_000, false})
	}
	names := []string{"zcdp-imed", "dp-imed", "dp-ts"}
	for _, c := range classes {
		lost := make([][]float64, len(names))
		var out sim.Result
		for world := range worlds {
			r := rand.New(rand.NewPCG(uint64(world), 33))
			means := make([]float64, c.arms)
			for a := range means {
				means[a] = c.lo + (c.hi-c.lo)*r.Float64()
			}
			for i, name := range names {
				cfg := config(t, bernoulli(t, means...), name, privacy.ZCDP{Rho: c.rho}, c.horizon, world, nil)
				cfg.Checkpoints = []int{c.horizon}
				if err := sim.Run(context.Background(), cfg, &out); err != nil {
					t.Fatal(err)
				}
				lost[i] = append(lost[i], out.Regret[0])
			}
		}
		mean := func(x []float64) float64 { m, _, _ := stats.Mean(x); return m }
		best := 0
		if mean(lost[1]) < mean(lost[0]) {
			best = 1
		}
		ratio := mean(lost[2]) / mean(lost[best])
		apart, lin := make([]float64, worlds), make([]float64, worlds)
		for w, x := range lost[2] {
			apart[w], lin[w] = lost[best][w]-x, x-ratio*lost[best][w]
		}
		m, _, se := stats.Mean(apart)
		_, _, half := stats.Mean(lin)
		half *= 1.96 / mean(lost[best])
		worst := func(x []float64) float64 { // of the worst 5 %
			return mean(slices.Sorted(slices.Values(x))[int(math.Floor(0.95*float64(worlds))):])
		}
		t.Logf("K = %d, means %v to %v, ρ = %v, T = %d: dp-ts %.4g, worst %.4g; %s %.4g, worst %.4g; ratio %.2f [%.2f, %.2f]",
			c.arms, c.lo, c.hi, c.rho, c.horizon, mean(lost[2]), worst(lost[2]), names[best], mean(lost[best]),
			worst(lost[best]), ratio, ratio-half, ratio+half)
		if c.less && !(m > 5*se) {
			t.Errorf("K = %d: %s has %.4g ± %.2g more than dp-ts", c.arms, names[best], m, se)
		}
	}
}
