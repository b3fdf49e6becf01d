package sim_test

import (
	"context"
	"fmt"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/policy/linear"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/sim"
)

// A million rounds of AdaP-UCB at ε = 1, and what the ledger proves about them.
func Example() {
	in, err := bandit.BernoulliInstance(0.75, 0.625, 0.5, 0.375, 0.25)
	if err != nil {
		panic(err)
	}
	p, err := policy.NewAdaPUCB(len(in.Arms), 1, 3.1) // ε = 1, α = 3.1
	if err != nil {
		panic(err)
	}
	world := noise.Key{Seed: 1, Experiment: in.String(), Role: noise.RoleReward}
	own := noise.Key{Seed: 1, Experiment: in.String(), Cell: "adap-ucb", Role: noise.RoleNoise}
	var out sim.Result
	err = sim.Run(context.Background(), sim.Config{
		Policy: p, Instance: in, Horizon: 1_000_000, Checkpoints: []int{1_000_000},
		Rewards: world.Fast(len(in.Arms)), Noise: &own.Fast(1)[0],
	}, &out)
	if err != nil {
		panic(err)
	}
	fmt.Printf("releases: %d, ε: %v, regret within [1000, 3000]: %v\n", out.Releases,
		out.Loss.Pure(), out.Regret[0] > 1000 && out.Regret[0] < 3000)
	// Output: releases: 63, ε: 1, regret within [1000, 3000]: true
}

// Twenty thousand rounds of AdaC-OFUL at ρ = 1, with ten new actions in each: contexts in the unit
// ball and rewards of −1 and 1, so that the guarantee holds.
func ExampleRunContextual() {
	src, err := bandit.NewGaussianContexts(bandit.ContextConfig{Arms: 10, Dim: 3,
		Theta: []float64{0.6, 0, 0.8}, Noise: bandit.SignNoise(), Normalise: true}, nil, 0.1)
	if err != nil {
		panic(err)
	}
	in, err := src.Contextual(nil)
	if err != nil {
		panic(err)
	}
	const horizon = 20_000
	p, err := linear.NewOFUL(in.Dim(), horizon, privacy.ZCDP{Rho: 1},
		linear.OFULOptions{Lambda: 0.1, C: 1, Risk: 0.001, Split: true})
	if err != nil {
		panic(err)
	}
	// of contexts, and of rewards
	world := noise.Key{Seed: 1, Experiment: src.String(), Role: noise.RoleReward}.Fast(2)
	own := noise.Key{Seed: 1, Experiment: src.String(), Cell: "adac-oful", Role: noise.RoleNoise}
	var out sim.Result
	err = sim.RunContextual(context.Background(), sim.ContextualConfig{
		Policy: p, Instance: in, Horizon: horizon, Checkpoints: []int{horizon}, Contexts: &world[0],
		Rewards: &world[1], Noise: &own.Fast(1)[0],
	}, &out)
	if err != nil {
		panic(err)
	}
	fmt.Printf("ρ: %.4g, fewer than 60 releases: %v, regret within [50, 600]: %v\n",
		out.Loss.ZCDP(), out.Releases < 60, out.Regret[0] > 50 && out.Regret[0] < 600)
	// Output: ρ: 1, fewer than 60 releases: true, regret within [50, 600]: true
}
