package identify_test

import (
	"context"
	"fmt"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/policy/identify"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/sim"
)

// trial plays one run on five doses of which the third is best by far, and returns what it leaves.
func trial(p identify.Identifier, err error) sim.IdentifyResult {
	if err != nil {
		panic(err)
	}
	in, err := bandit.BernoulliInstance(0.2, 0.4, 0.9, 0.5, 0.3)
	if err != nil {
		panic(err)
	}
	world := noise.Key{Seed: 1, Experiment: in.String(), Role: noise.RoleReward}
	own := noise.Key{Seed: 1, Experiment: in.String(), Cell: "trial", Role: noise.RoleNoise}
	var out sim.IdentifyResult
	err = sim.Identify(context.Background(), sim.IdentifyConfig{
		Policy: p, Instance: in, Cap: 1_000_000, Rewards: world.Fast(len(in.Arms)), Noise: &own.Fast(1)[0],
	}, &out)
	if err != nil {
		panic(err)
	}
	return out
}

func ExampleNewAdaPTT() {
	out := trial(identify.NewAdaPTT(5, privacy.Pure{Epsilon: 1}, 0.01))
	fmt.Printf("answer: %d, ε: %v, fewer than 20000 plays: %v\n", out.Answer, out.Loss.Pure(), out.Tau < 20_000)
	// Output: answer: 2, ε: 1, fewer than 20000 plays: true
}

func ExampleNewAdaPTTStar() {
	out := trial(identify.NewAdaPTTStar(5, privacy.Pure{Epsilon: 1}, 0.01, identify.WithBeta(0.4)))
	fmt.Printf("answer: %d, ε: %v\n", out.Answer, out.Loss.Pure())
	// Output: answer: 2, ε: 1
}

func ExampleNewDPTT() {
	out := trial(identify.NewDPTT(5, privacy.Pure{Epsilon: 1}, 0.01))
	fmt.Printf("answer: %d, ε: %v, fewer than 2000 plays: %v\n", out.Answer, out.Loss.Pure(), out.Tau < 2000)
	// Output: answer: 2, ε: 1, fewer than 2000 plays: true
}

func ExampleNewTTUCB() {
	out := trial(identify.NewTTUCB(5, 0.01))
	fmt.Printf("answer: %d, private: %v, fewer than 2000 plays: %v\n", out.Answer,
		!out.Loss.Infinite(), out.Tau < 2000)
	// Output: answer: 2, private: false, fewer than 2000 plays: true
}

// A rule of one's own: AdaP-TT's phases and threshold, led by the empirical best arm, for the same ε.
func ExampleNewTopTwo() {
	threshold, err := identify.NewAdaPTTThreshold(5, 0.01, 2, 0.5)
	if err != nil {
		panic(err)
	}
	cost := identify.GaussianCost{Sigma: 0.5}
	out := trial(identify.NewTopTwo(5, privacy.Pure{Epsilon: 1}, identify.Parts{
		Leader: identify.BestLeader, Challenger: cost, Beta: 0.5,
		Cost: cost, Threshold: threshold,
		First: 8, Growth: 2, Forget: true, LeastPhase: 2,
	}))
	fmt.Printf("answer: %d, ε: %v\n", out.Answer, out.Loss.Pure())
	// Output: answer: 2, ε: 1
}

// The functions that the thresholds are made of, and their customary approximation x + log x.
func Example_functions() {
	fmt.Printf("%.4f %.4f\n", identify.CG(6.1), identify.WBar(10))
	// Output: 7.9082 12.5280
}

func ExampleDEpsCost() {
	// Thirty rewards of mean 0.8 against sixty of mean 0.5, with noise at ε = 0.2 and without.
	a, b := identify.Sample{Mean: 0.8, N: 30}, identify.Sample{Mean: 0.5, N: 60}
	free := identify.DEpsCost{}.Between(a, b)
	a.Scale, b.Scale = 1/0.2, 1/0.2
	fmt.Printf("%.3f %.3f\n", identify.DEpsCost{}.Between(a, b), free)
	// Output: 1.576 3.970
}
