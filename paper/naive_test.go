package paper

import (
	"testing"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/interval"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/sim"
)

// What speeds are compared on is the same policy: its regret has the law of the simulator's. False alarms: 1e-6.
func TestNaiveIsTheSamePolicy(t *testing.T) {
	const horizon, runs = 20_000, 100
	in, err := bandit.BernoulliInstance(baselineMeans[:]...)
	if err != nil {
		t.Fatal(err)
	}
	var slow, fast []float64
	var out sim.Result
	for run := range runs {
		world := noise.Key{Seed: uint64(run), Experiment: "naive", Role: noise.RoleReward}.Fast(len(baselineMeans))
		own := noise.Key{Seed: uint64(run), Experiment: "naive", Role: noise.RoleNoise}.Fast(2)
		slow = append(slow, playNaive(baselineMeans[:], 1, 3.1, horizon, &world[0], &own[0]))
		p, err := policy.NewAdaPUCB(len(baselineMeans), 1, 3.1)
		if err != nil {
			t.Fatal(err)
		}
		world = noise.Key{Seed: uint64(run), Experiment: "batched", Role: noise.RoleReward}.Fast(len(baselineMeans))
		if err := sim.Run(t.Context(), sim.Config{Policy: p, Instance: in, Horizon: horizon, Checkpoints: []int{horizon}, Rewards: world, Noise: &own[1]}, &out); err != nil {
			t.Fatal(err)
		}
		fast = append(fast, out.Regret[0])
	}
	test, err := interval.Welch(slow, fast)
	if err != nil {
		t.Fatal(err)
	}
	a, _, _ := interval.Mean(slow)
	b, _, _ := interval.Mean(fast)
	if test.P < 1e-6 {
		t.Errorf("regret %v of the loop, %v of the simulator, p = %v", a, b, test.P)
	}
	if test.P == 1 && a == b {
		t.Errorf("both are %v: they share their randomness", a)
	}
}

// BenchmarkNaive is the per-round loop, BenchmarkBatched the same policy in package sim; a million rounds an operation.
func BenchmarkNaive(b *testing.B) {
	b.ReportAllocs()
	world, own := noise.NewFast(1, 2), noise.NewFast(3, 4)
	for b.Loop() {
		playNaive(baselineMeans[:], 1, 3.1, baselineHorizon, &world, &own)
	}
	b.ReportMetric(baselineHorizon*float64(b.N)/b.Elapsed().Seconds(), "rounds/s")
}

func BenchmarkBatched(b *testing.B) {
	b.ReportAllocs()
	in, err := bandit.BernoulliInstance(baselineMeans[:]...)
	if err != nil {
		b.Fatal(err)
	}
	world, own := noise.Key{Seed: 1}.Fast(len(baselineMeans)), noise.NewFast(3, 4)
	var out sim.Result
	for b.Loop() {
		p, err := policy.NewAdaPUCB(len(baselineMeans), 1, 3.1)
		if err != nil {
			b.Fatal(err)
		}
		if err := sim.Run(b.Context(), sim.Config{Policy: p, Instance: in, Horizon: baselineHorizon, Checkpoints: []int{baselineHorizon}, Rewards: world, Noise: &own}, &out); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(baselineHorizon*float64(b.N)/b.Elapsed().Seconds(), "rounds/s")
}
