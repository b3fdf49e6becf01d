package release_test

import (
	"fmt"

	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

// Ratings from 1 to 5 stars; an episode's sum is released with Laplace noise.
func Example() {
	stream := noise.Key{Seed: 1, Role: noise.RoleNoise}.Fast(1)
	c, err := release.Simulated(release.Config{Arms: 2, Lo: 1, Hi: 5,
		Mechanism: privacy.Laplace{Scale: 2}}, &stream[0])
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, stars := range []float64{4, 5, 3, 11} { // 11 is clipped to 5
		if err := c.Add(0, stars); err != nil {
			fmt.Println(err)
			return
		}
	}
	r, err := c.Release([]int{0})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("rewards:", r.N(0), "tail:", r.Tail().H)

	_, err = c.Release([]int{0})
	fmt.Println(err)
	fmt.Println("epsilon:", c.Ledger().Total().Pure())
	// Output:
	// rewards: 4 tail: 2
	// curator: release of arm 0, whose slot is empty
	// epsilon: 0.5
}

// Real rewards: exact integer noise, and every running sum of an arm for one charge.
func ExampleReal() {
	c, err := release.Real(release.Config{Arms: 2, Mechanism: privacy.Hybrid{Scale: 2}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 3 {
		for arm := range 2 {
			if err := c.Add(arm, 1); err != nil {
				fmt.Println(err)
				return
			}
		}
		if _, err := c.Release([]int{0, 1}); err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Printf("6 releases, epsilon %.3f\n", c.Ledger().Total().Pure())
	// Output: 6 releases, epsilon 1.000
}

// Nobody has to be believed with a reward: every user adds a share of the noise, and a server
// learns the noisy sum only. Here the users are in this process; a Summer of package aggregate sums
// over the network.
func ExampleTrust() {
	stream := noise.Key{Seed: 1, Role: noise.RoleNoise}.Fast(1)
	c, err := release.Simulated(release.Config{
		Arms:      1,
		Mechanism: privacy.Laplace{Scale: 10},
		Trust:     &release.Trust{Model: privacy.TrustSecAgg, P: 0.01, Promised: 0.9, PerUser: true},
	}, &stream[0])
	if err != nil {
		fmt.Println(err)
		return
	}
	for user := range 1000 {
		if err := c.Add(0, float64(user%2)); err != nil {
			fmt.Println(err)
			return
		}
	}
	r, err := c.Release([]int{0})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%d users, mean %.2f, epsilon %.1f\n", r.N(0), r.Mean(0), c.Ledger().Total().Pure())
	// Output: 1000 users, mean 0.51, epsilon 0.1
}
