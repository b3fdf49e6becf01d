package sim_test

import (
	"context"
	"math"
	"testing"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/sim"
)

// fiveArms are C1 to C4 of [Sajed 2019, chapter 6] for K = 5.
func fiveArms(t testing.TB) map[string]bandit.Instance {
	return map[string]bandit.Instance{
		"mu1": bernoulli(t, 0.75, 0.7, 0.7, 0.7, 0.7),
		"mu2": mu2(t),
		"mu3": bernoulli(t, 0.75, 0.53125, 0.375, 0.28125, 0.25),
		"mu4": bernoulli(t, 0.75, 0.71875, 0.625, 0.46875, 0.25),
	}
}

// Independent simulations of the optimal policies at T = 10⁶, another program of other exact
// samplers: means and their standard errors, 10 000 runs each (2000 of dp-imed-j, 200 of
// lazy-dp-ts). A mean here must be within 5 standard errors of both: a false alarm has probability
// below 6·10⁻⁷ each. Only cells whose laws have light tails are compared by means.
func TestReproduceOptimalPolicies(t *testing.T) {
	testkit.OneGoroutine(t)
	instances := fiveArms(t)
	literal := func(alpha float64) catalog.Params { return catalog.Params{"alpha": alpha, "first": 1} }
	paper := catalog.Params{"caution": 1} // the reference is of the paper's index
	for _, v := range []struct {
		instance, policy string
		epsilon          float64
		params           catalog.Params
		runs             int
		want, wantSE     float64
	}{
		{"mu1", "dp-klucb", 0.01, nil, 500, 6584, 10}, {"mu1", "dp-klucb", 0.1, nil, 500, 806, 2},
		{"mu1", "dp-klucb", 1, nil, 500, 494, 1},
		{"mu2", "dp-klucb", 0.01, nil, 500, 6734, 8}, {"mu2", "dp-klucb", 0.1, nil, 500, 706, 1},
		{"mu2", "dp-klucb", 0.5, nil, 500, 178, 0.3},
		{"mu2", "dp-klucb", 1, nil, 500, 132, 0.5}, {"mu3", "dp-klucb", 0.5, nil, 500, 160, 0.3},
		{"mu3", "dp-klucb", 1, nil, 500, 103, 0.3},
		{"mu4", "dp-klucb", 0.01, nil, 500, 6665, 9}, {"mu4", "dp-klucb", 0.5, nil, 500, 320, 1},
		{"mu4", "dp-klucb", 1, nil, 500, 289, 0.8},
		{"mu2", "dp-imed", 0.5, paper, 1000, 139, 0.6}, {"mu3", "dp-imed", 0.5, paper, 1000, 128, 0.5},
		{"mu3", "dp-imed", 1, paper, 1000, 86, 0.5},
		{"mu3", "dp-imed", 0.01, paper, 500, 3598, 24},
		{"mu2", "dp-imed-j", 0.1, nil, 300, 826, 2}, {"mu2", "dp-imed-j", 0.5, nil, 300, 218, 0.7},
		{"mu3", "dp-imed-j", 0.01, nil, 300, 6088, 20}, {"mu3", "dp-imed-j", 1, nil, 300, 122, 0.5},
		{"mu4", "dp-imed-j", 0.5, nil, 300, 278, 1.4},
		{"mu2", "dp-klucb", 1, literal(2), 1000, 151, 0.6},
		{"mu2", "lazy-dp-ts", 1, nil, 16, 761, 6}, {"mu3", "lazy-dp-ts", 1, nil, 16, 710, 5},
		{"mu1", "lazy-dp-ts", 0.5, nil, 10, 1675, 12},
		{"mu4", "lazy-dp-ts", 0.1, nil, 6, 4717, 34}, {"mu1", "lazy-dp-ts", 0.01, nil, 4, 26214, 24},
	} {
		mean, se := regret(t, instances[v.instance], v.policy, privacy.Pure{Epsilon: v.epsilon},
			v.params, 1_000_000, v.runs)
		// a few runs: their own spread is poorly known, that of the reference's 200 is not
		if v.policy == "lazy-dp-ts" {
			se = max(se, v.wantSE*math.Sqrt(200/float64(v.runs)))
		}
		if z := (mean - v.want) / math.Hypot(se, v.wantSE); !(math.Abs(z) < 5) {
			t.Errorf("%s on %s, ε = %v: regret %.1f ± %.1f, the reference has %.1f ± %.1f (z = "+
				"%.1f)", v.policy, v.instance, v.epsilon, mean, se, v.want, v.wantSE, z)
		} else {
			t.Logf("%s on %s, ε = %v: regret %.1f ± %.1f, the reference has %.1f ± %.1f (z = %.1f)",
				v.policy, v.instance, v.epsilon, mean, se, v.want, v.wantSE, z)
		}
	}
}

// With a first batch of one reward the means are a lottery; medians are not. The reference's
// medians are rounded to 1, so that the shares of runs more than 1 below and at most 1 above it may
// not both be on one side of a half, by more than 5 standard deviations of a fair coin's.
func TestLiteralScheduleByMedians(t *testing.T) {
	instances := fiveArms(t)
	const runs = 400
	var out sim.Result
	for _, v := range []struct {
		instance, policy string
		epsilon, want    float64
	}{
		{"mu1", "dp-imed", 0.1, 512}, {"mu1", "dp-imed", 1, 307}, {"mu2", "dp-imed", 0.01, 3968},
		{"mu2", "dp-imed", 0.5, 140}, {"mu2", "dp-imed", 1, 104},
		{"mu3", "dp-imed", 0.1, 504}, {"mu3", "dp-imed", 1, 85}, {"mu4", "dp-imed", 0.5, 210},
		{"mu2", "dp-klucb", 1, 140},
	} {
		below, upTo := 0.0, 0.0
		for run := range runs {
			cfg := config(t, instances[v.instance], v.policy, privacy.Pure{Epsilon: v.epsilon},
				1_000_000, run, catalog.Params{"alpha": 2, "first": 1, "caution": 1})
			cfg.Checkpoints = []int{1_000_000}
			if err := sim.Run(context.Background(), cfg, &out); err != nil {
				t.Fatal(err)
			}
			if out.Regret[0] < v.want-1 {
				below++
			}
			if out.Regret[0] <= v.want+1 {
				upTo++
			}
		}
		if slack := 2.5 * math.Sqrt(runs); below > runs/2+slack || upTo < runs/2-slack {
			t.Errorf("%s on %s, ε = %v: %v of %d runs below and %v up to the reference's median %v",
				v.policy, v.instance, v.epsilon, below, runs, upTo, v.want)
		}
	}
}
