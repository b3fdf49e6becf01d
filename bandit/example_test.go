package bandit_test

import (
	"fmt"
	"strings"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/noise"
)

func ExampleParseLaw() {
	for _, text := range []string{"0.75", "gaussian(0.50, 0.1)", "table(1:0.5, 0:0.5)", "beta(2)"} {
		law, err := bandit.ParseLaw(text)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(law, law.Mean())
	}
	// Output:
	// bernoulli(0.75) 0.75
	// gaussian(0.5,0.1) 0.5
	// table(0:0.5,1:0.5) 0.5
	// law "beta(2)": the number of parameters is 1: it must be 2 (a,b)
}

// A slot of a million rewards costs one draw.
func ExampleBernoulli_Sum() {
	law, err := bandit.NewBernoulli(1)
	if err != nil {
		fmt.Println(err)
		return
	}
	s := noise.NewFast(1, 2)
	fmt.Println(law.Sum(1_000_000, &s))
	// Output: 1e+06
}

// Clipping at 0 raises the mean of this law.
func ExampleClippedGaussian_Mean() {
	law, err := bandit.NewClippedGaussian(0, 1, 0, 100)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%.4f\n", law.Mean()) // 1/√(2π)
	// Output: 0.3989
}

func ExampleStandard() {
	in, err := bandit.Standard(4, 5)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(in.Means(), "best:", in.Best())
	fmt.Println(in)
	// Output:
	// [0.75 0.71875 0.625 0.46875 0.25] best: 0
	// [bernoulli(0.75) bernoulli(0.71875) bernoulli(0.625) bernoulli(0.46875) bernoulli(0.25)]
}

func ExampleReadCSV() {
	log := "arm,reward\ncontrol,0\ntreated,1\ncontrol,1\ntreated,1\n"
	in, names, err := bandit.ReadCSV(strings.NewReader(log))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(names, in.Means())

	_, _, err = bandit.ReadCSV(strings.NewReader("arm,reward\ncontrol,0\ntreated,good\n"))
	fmt.Println(err)
	// Output:
	// [control treated] [0.5 1]
	// rewards: line 3, column reward: the value "good" must be a finite decimal number, at most 1e+100 in absolute value
}

func ExampleNewUniformMeans() {
	family, err := bandit.ClippedGaussianFamily(0.1, 0, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	easy, err := bandit.NewUniformMeans(10, 0.25, 0.75, family, true)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(easy)
	// Output: uniform-means(arms=10,lo=0.25,hi=0.75,law=clipped-gaussian(sd=0.1,lo=0,hi=1),redrawn=true)
}
