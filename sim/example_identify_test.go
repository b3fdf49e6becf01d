package sim_test

import (
	"context"
	"fmt"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/policy/identify"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/sim"
)

// One trial of three doses by DP-TT at ε = 1 and δ = 0.05: the answer, who got what, and what the
// ledger proves of the whole.
func ExampleIdentify() {
	in, err := bandit.BernoulliInstance(0.3, 0.5, 0.7)
	if err != nil {
		panic(err)
	}
	rule, err := identify.NewDPTT(len(in.Arms), privacy.Pure{Epsilon: 1}, 0.05)
	if err != nil {
		panic(err)
	}
	world := noise.Key{Seed: 1, Experiment: in.String(), Role: noise.RoleReward}
	own := noise.Key{Seed: 1, Experiment: in.String(), Cell: "dp-tt", Role: noise.RoleNoise}
	var out sim.IdentifyResult
	err = sim.Identify(context.Background(), sim.IdentifyConfig{
		Policy: rule, Instance: in, Cap: 1_000_000, // where two doses are best no rule stops
		Rewards: world.Fast(len(in.Arms)), Noise: &own.Fast(1)[0],
	}, &out)
	if err != nil {
		panic(err)
	}
	fmt.Printf("answer: dose %d, ε: %v\n", out.Answer+1, out.Loss.Pure())
	fmt.Printf("the worst dose got fewest plays: %v, rounds of adaptivity within [5, 50]: %v\n",
		out.Plays[0] < out.Plays[1] && out.Plays[0] < out.Plays[2], out.Batches >= 5 && out.Batches <= 50)
	// Output:
	// answer: dose 3, ε: 1
	// the worst dose got fewest plays: true, rounds of adaptivity within [5, 50]: true
}
