package sim_test

import (
	"context"
	"math"
	"testing"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/sim"
)

// After one play of each of two arms with rewards 1 and 0, at ρ = 1, AdaC-UCB plays the first with
// probability Φ(1) = 0.841345, and Φ(½) = 0.691462 with the printed half of a play in its noise.
// Two-sided, each with a false alarm of 10⁻⁶.
func TestAdaCUCBThirdPlay(t *testing.T) {
	in, err := bandit.BernoulliInstance(1, 0)
	if err != nil {
		t.Fatal(err)
	}
	entry, err := catalog.Find(catalog.BanditArms, "adac-ucb")
	if err != nil {
		t.Fatal(err)
	}
	for half, want := range map[float64]float64{0: 0.841345, 1: 0.691462} {
		params, err := entry.Complete(catalog.Params{"printed_half": half})
		if err != nil {
			t.Fatal(err)
		}
		const runs = 20_000
		first := 0.0
		var out sim.Result
		for run := range runs {
			p, err := entry.New(catalog.Setting{Arms: 2, Horizon: 3, Budget: privacy.ZCDP{Rho: 1}}, params)
			if err != nil {
				t.Fatal(err)
			}
			key := noise.Key{Seed: 5, Experiment: "third play", Run: run, Role: noise.RoleNoise}
			streams := key.Fast(3)
			if err := sim.Run(context.Background(), sim.Config{Policy: p, Instance: in, Horizon: 3,
				Checkpoints: []int{3}, Rewards: streams[:2], Noise: &streams[2]}, &out); err != nil {
				t.Fatal(err)
			}
			first += out.PlaysBest[0] - 1
		}
		if z := (first - want*runs) / math.Sqrt(runs*want*(1-want)); math.Abs(z) > 4.9 {
			t.Errorf("printed half %v: the first arm in %v of %d runs, want %v (z = %.1f)", half,
				first, runs, want, z)
		} else {
			t.Logf("printed half %v: %.6f, want %v", half, first/runs, want)
		}
	}
}
