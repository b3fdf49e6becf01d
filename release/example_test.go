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
	c, err := release.Simulated(release.Config{Arms: 2, Lo: 1, Hi: 5, Mechanism: privacy.Laplace{Scale: 2}}, &stream[0])
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
