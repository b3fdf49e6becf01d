package audit_test

import (
	"context"
	"fmt"

	"github.com/sotto-dp/sotto/audit"
	"github.com/sotto-dp/sotto/noise"
)

// A count is released with Laplace noise and the claim ε = 1; one version uses half the noise that it
// should. A hundred thousand games of each: the right one stands, the wrong one is refuted at 95 %.
func Example() {
	for _, scale := range []float64{1, 0.5} {
		scores, err := audit.Play(context.Background(), 100_000, 1, 0, noise.Key{Seed: 1, Experiment: "count"},
			func() func(bool, *noise.Fast, []float64) error {
				return func(in bool, src *noise.Fast, score []float64) error {
					count := 41.0
					if in {
						count++
					}
					score[0] = count + src.Laplace(scale)
					return nil
				}
			})
		if err != nil {
			panic(err)
		}
		region, err := scores[0].RegionByRank(0.05)
		if err != nil {
			panic(err)
		}
		bound, err := region.Epsilon(0)
		if err != nil {
			panic(err)
		}
		fmt.Printf("scale %v: ε is at least %.2f; claim ε = 1 refuted: %v\n", scale, bound.Epsilon,
			bound.Epsilon > 1)
	}
	// Output:
	// scale 1: ε is at least 0.96; claim ε = 1 refuted: false
	// scale 0.5: ε is at least 1.94; claim ε = 1 refuted: true
}

// Sub-sampling half of the points, at significance 1 %: what Theorem 6.6 prints, what holds, and
// games. The score m* of the whole is 5.
func ExampleSubsampled() {
	const m, rho, alpha = 5, 0.5, 0.01
	fmt.Printf("printed %.3f, corrected %.3f\n", audit.SubsampledPrint(m, rho).Power(alpha),
		audit.Subsampled(m, rho).Power(alpha))

	// One column far from its mean: m* = (z−μ)²/(nσ²) = 5.
	data := audit.Normal{Mu: []float64{0}, Var: []float64{1}}
	attack := audit.Asymptotic{Mu: data.Mu, Var: data.Var, Rows: 500}
	scores, err := audit.Game{
		Data: data, Mean: audit.Mean{N: 1000, Sample: 500}, Target: []float64{70.710678},
		Attacks: []audit.Attack{attack},
		Games:   200_000, Key: noise.Key{Seed: 1, Experiment: "sub-sampling"},
	}.Play(context.Background())
	if err != nil {
		panic(err)
	}
	power, err := scores[0].PowerAt(alpha, 0.95)
	if err != nil {
		panic(err)
	}
	fmt.Printf("games %.3f\n", power.Power.Value)
	// Output:
	// printed 0.228, corrected 0.404
	// games 0.409
}

// One training run with a thousand canaries, and 90 of the hundred surest guesses right.
func ExampleOneRun() {
	run := audit.OneRun{Canaries: 1000, Guesses: 100, Correct: 90}
	eps, err := run.Epsilon(0.05, 1e-5)
	if err != nil {
		panic(err)
	}
	gaussian, err := run.GaussianEpsilon(0.05, 1e-5)
	if err != nil {
		panic(err)
	}
	fmt.Printf("ε is at least %.3f; if the run is Gaussian DP, %.3f\n", eps, gaussian)
	// Output: ε is at least 1.630; if the run is Gaussian DP, 2.456
}
