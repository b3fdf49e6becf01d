package noise_test

import (
	"fmt"

	"github.com/sotto-dp/sotto/noise"
)

// One stream an arm: the same key gives the same streams, whoever asks and how often.
func ExampleKey_Fast() {
	key := noise.Key{Seed: 1, Experiment: "two arms", Run: 3, Role: noise.RoleReward}
	arms := key.Fast(2)
	again := key.Fast(2)
	fmt.Println(arms[0].Binomial(1000, 0.75), arms[1].Binomial(1000, 0.25))
	fmt.Println(again[0].Binomial(1000, 0.75), again[1].Binomial(1000, 0.25))
	// Output:
	// 772 244
	// 772 244
}

// Noise for a sum of rewards, each an integer from 0 to 2^20 that stands for a reward in [0,1], at
// ε = 1/2: the scale is the sensitivity over ε. A key repeats its noise: where rewards are real,
// take the generator from Secure.
func ExampleDiscreteLaplace() {
	laplace, err := noise.NewDiscreteLaplace(1<<20, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = noise.NewDiscreteLaplace(2<<20, 0)
	fmt.Println(err)

	src := noise.Key{Seed: 1, Role: noise.RoleNoise}.ChaCha8()
	for range 3 {
		x, err := laplace.Draw(src)
		fmt.Println(x, err)
	}
	// Output:
	// noise: den of the scale num/den of a discrete Laplace law is 0, must be at least 1
	// 161934 <nil>
	// 501267 <nil>
	// -10070 <nil>
}

// The discrete Gaussian law of σ² = 5, which protects an integer of sensitivity 1 with ρ = 1/10 zCDP.
func ExampleNewDiscreteGaussianVariance() {
	gaussian, err := noise.NewDiscreteGaussianVariance(5, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	src := noise.Key{Seed: 1, Role: noise.RoleNoise}.ChaCha8()
	count := map[int64]int{}
	for range 10_000 {
		x, err := gaussian.Draw(src)
		if err != nil {
			fmt.Println(err)
			return
		}
		count[x]++
	}
	for x := int64(-3); x <= 3; x++ {
		fmt.Print(count[x], " ")
	}
	fmt.Println()
	// Output:
	// 714 1227 1579 1789 1609 1168 732
}

func ExampleDiscreteLaplaceTail() {
	fmt.Printf("%.4f\n", noise.DiscreteLaplaceTail(10, 30))
	// Output:
	// 0.0523
}

func ExampleSecure() {
	src, err := noise.Secure()
	if err != nil {
		fmt.Println(err)
		return
	}
	laplace, err := noise.NewDiscreteLaplace(1, 1000)
	if err != nil {
		fmt.Println(err)
		return
	}
	x, err := laplace.Draw(src) // e^-1000 from being anything but 0
	fmt.Println(x, err)
	// Output: 0 <nil>
}

// One user's noise of four at ε = 1/2 for rewards from 0 to 10: the scale of the sum is 10/ε = 20.
// No user's noise hides anything alone; the sum of all four is discrete Laplace noise, although
// nobody draws or knows it.
func ExamplePolyaDifference() {
	share, err := noise.NewPolyaDifference(4, 20, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	// real users have a source each, from Secure
	src := noise.Key{Seed: 3, Role: noise.RoleNoise}.ChaCha8()
	sum := int64(0)
	for range 4 {
		x, err := share.Draw(src)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Print(x, " ")
		sum += x
	}
	fmt.Println("make", sum)
	// Output:
	// 10 -3 5 0 make 12
}

// Skellam noise of variance 9/2 in all, drawn by three users.
func ExampleSkellam() {
	share, err := noise.NewSkellam(9, 2*3)
	if err != nil {
		fmt.Println(err)
		return
	}
	src := noise.Key{Seed: 1, Role: noise.RoleNoise}.ChaCha8()
	for range 3 {
		x, err := share.Draw(src)
		fmt.Println(x, err)
	}
	// Output:
	// -2 <nil>
	// 1 <nil>
	// -1 <nil>
}

// A simulation may draw what 4096 users add up to at once, since that is one discrete Laplace
// variate; or each user's noise.
func ExampleFast_PolyaDifference() {
	f := noise.Key{Seed: 2, Role: noise.RoleNoise}.Fast(1)[0]
	sum := int64(0)
	for range 4096 {
		sum += f.PolyaDifference(1./4096, 70)
	}
	fmt.Println(sum, f.DiscreteLaplace(70))
	// Output: -78 76
}
