package experiment_test

import (
	"math"
	"testing"
)

// The lower bound of a cell: log T · Σ Δ_a/d_ε, with the constants of C2 at ε = 0.1 and 1, for
// Bernoulli arms that are the same in every run.
func TestLowerBound(t *testing.T) {
	plan, err := parse(t, `
name: bounds
horizon: 1e6
runs: 1
instances:
  - {name: mu2, bernoulli: [0.75, 0.625, 0.5, 0.375, 0.25]}
  - {name: drawn, means: {uniform: [0.2, 0.8]}, arms: 3, redraw: true}
  - {name: beta, laws: ["beta(1,2)", "beta(2,1)"]}
policies: [adap-ucb, ucb]
budgets: [{epsilon: 0.1}, {epsilon: 1}, {rho: 1}, none]
`).Resolve()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{ // Lai and Robbins' constant: Σ Δ_a/kl(μ_a, 0.75)
		"mu2 / adap-ucb / epsilon=0.1": 41.68, "mu2 / adap-ucb / epsilon=1": 7.708,
	}
	kl := func(p float64) float64 { return p*math.Log(p/0.75) + (1-p)*math.Log((1-p)/0.25) }
	lai := 0.125/kl(0.625) + 0.25/kl(0.5) + 0.375/kl(0.375) + 0.5/kl(0.25)
	want["mu2 / adap-ucb / none"], want["mu2 / ucb / none"] = lai, lai
	for _, c := range plan.Manifest().Cells {
		if got := c.LowerBound / math.Log(1e6); math.Abs(got-want[c.Label()]) > 6e-3 {
			t.Errorf("%s: %v log T, want %v", c.Label(), got, want[c.Label()])
		}
	}
}
