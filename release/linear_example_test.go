package release_test

import (
	"fmt"
	"math"

	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

// A phase of AdaC-GOPE: what was played shapes the noise, which is calibrated to the g
// that was achieved.
func ExampleSimulatedActions() {
	actions := [][]float64{{1, 0}, {0, 1}, {0.6, 0.8}}
	stream := noise.Key{Seed: 1, Role: noise.RoleNoise}.Fast(1)
	c, err := release.SimulatedActions(actions, false, nil, &stream[0])
	if err != nil {
		fmt.Println(err)
		return
	}
	for action, sum := range []float64{30, -12} {
		if err := c.AddSum(action, 50, sum); err != nil {
			fmt.Println(err)
			return
		}
	}
	const rho = 0.5
	m, err := privacy.NewElliptic(1, actions, []int{50, 50, 0})
	if err == nil {
		m, err = m.WithSigma(math.Sqrt(2 / rho * m.G2()))
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := c.Release(m)
	if err != nil {
		fmt.Println(err)
		return
	}
	e := c.Ledger().Entries()[0]
	fmt.Printf("%d numbers from %d rewards, sensitivity %.4f in %s, rho %.3f\n", r.Len(), r.N(),
		e.Sensitivity, e.Norm, e.Loss.ZCDP())
	// Output: 2 numbers from 100 rewards, sensitivity 0.2828 in V⁺, rho 0.500
}

// Real rewards: the sums of AdaC-GOPE-Var with exact integer noise. What was not played is public.
func ExampleRealActions() {
	c, err := release.RealActions([][]float64{{1, 0}, {0, 1}, {0.6, 0.8}}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 100 {
		for _, action := range []int{0, 2} {
			if err := c.Add(action, 0.5); err != nil {
				fmt.Println(err)
				return
			}
		}
	}
	const rho = 0.5
	r, err := c.Release(privacy.Sums{Sigma: math.Sqrt(2 / rho)})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%d sums from %d rewards, action 1 has %v, rho %.3f\n", r.Len(), r.N(), r.At(1),
		c.Ledger().Total().ZCDP())
	// Output: 3 sums from 200 rewards, action 1 has 0, rho 0.500
}

// Whatever is played: vectors of norm at most 1, and one normal vector a release.
func ExampleSimulatedFeatures() {
	stream := noise.Key{Seed: 1, Role: noise.RoleNoise}.Fast(1)
	c, err := release.SimulatedFeatures(release.FeatureConfig{Dim: 2, Slots: 1,
		Mechanism: privacy.VectorGaussian{Sigma: 2}}, &stream[0])
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(c.Add(0, []float64{0.6, 0.8}, 1))
	fmt.Println(c.Add(0, []float64{3, 4}, 1))
	r, err := c.Release(0)
	fmt.Println(r.N(), c.Ledger().Total(), err)
	// Output:
	// <nil>
	// curator: a vector has norm 5, must be at most 1: the sensitivity rests on it
	// 1 rho=0.5 <nil>
}
