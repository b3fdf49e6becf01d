package sim_test

import (
	"context"
	"fmt"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/policy"
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
	fmt.Printf("releases: %d, ε: %v, regret within [1000, 3000]: %v\n", out.Releases, out.Loss.Pure(), out.Regret[0] > 1000 && out.Regret[0] < 3000)
	// Output: releases: 63, ε: 1, regret within [1000, 3000]: true
}
