package linear_test

import (
	"fmt"

	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/policy/linear"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

// A private contextual bandit: the curator holds the rewards, and the policy chooses from
// what it releases.
func ExampleOFUL() {
	const dim, horizon = 2, 2000
	p, err := linear.NewOFUL(dim, horizon, privacy.ZCDP{Rho: 1},
		linear.OFULOptions{Lambda: 0.1, C: 1, Risk: 0.001, Split: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	s, world := noise.NewFast(1, 2), noise.NewFast(3, 4)
	curator, err := release.SimulatedFeatures(release.FeatureConfig{Dim: dim, Slots: p.Slots(),
		Mechanism: p.Mechanism()}, &s)
	if err != nil {
		fmt.Println(err)
		return
	}
	theta := []float64{0.8, -0.4}
	for range horizon {
		for slot := p.Due(); slot >= 0; slot = p.Due() {
			released, err := curator.Release(slot)
			if err != nil {
				fmt.Println(err)
				return
			}
			p.Learn(released)
		}
		actions := make([]float64, 4*dim) // the round's decision set
		for i := range actions {
			actions[i] = 1.4*world.Float64() - 0.7
		}
		c := p.Choose(actions)
		a := actions[c.Action*dim:][:dim]
		reward := -1.0
		if world.Float64() < (1+theta[0]*a[0]+theta[1]*a[1])/2 {
			reward = 1
		}
		if err := curator.Add(c.Slot, a, reward); err != nil {
			fmt.Println(err)
			return
		}
	}
	estimate, _ := p.Estimate()
	fmt.Printf("after %d updates %.1f, in the confidence set: %t\n", p.Updates(), estimate, p.Covers(theta))
	fmt.Printf("ρ = %.3g\n", curator.Ledger().Total().ZCDP())
	// Output:
	// after 19 updates [0.8 -0.4], in the confidence set: true
	// ρ = 1
}
