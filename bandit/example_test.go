package bandit_test

import (
	"fmt"
	"strings"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/logged"
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
	// law "beta(2)": the number of parameters is 1, must be 2 (a,b)
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
	in, summary, err := bandit.ReadCSV(strings.NewReader(log), logged.Format{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(summary.Names, in.Means())

	_, _, err = bandit.ReadCSV(strings.NewReader("arm,reward\ncontrol,0\ntreated,good\n"), logged.Format{})
	fmt.Println(err)
	// Output:
	// [control treated] [0.5 1]
	// rewards: line 3, column reward: must be a finite decimal number, at most 1e+100 in absolute value
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

// Ten actions on the sphere of ℝ³ with rewards of −1 and 1: a world in which all that the
// proofs suppose holds.
func ExampleNewSphereActions() {
	src, err := bandit.NewSphereActions(10, 3, nil, bandit.SignNoise(), true)
	if err != nil {
		fmt.Println(err)
		return
	}
	s := noise.NewFast(1, 2)
	in, err := src.Linear(&s)
	if err != nil {
		fmt.Println(err)
		return
	}
	lo, hi := in.Support()
	fmt.Println(len(in.Actions), "actions in dimension", in.Dim(), "with rewards from", lo, "to", hi)
	// Output: 10 actions in dimension 3 with rewards from -1 to 1
}

// Scaling actions and θ* jointly changes no mean.
func ExampleNormalise() {
	actions, theta, by, err := bandit.Normalise([][]float64{{3, 4}, {0, 1}}, []float64{0.1, 0.15})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(by, actions, theta)

	_, _, _, err = bandit.Normalise([][]float64{{3, 4}, {0, 1}}, []float64{1, 0})
	fmt.Println(err)
	// Output:
	// 5 [[0.6 0.8] [0 0.2]] [0.5 0.75]
	// normalise: the largest action has norm 5 and theta 1: their product is 5 and must be at most 1, or means leave [-1,1]
}

func ExampleReadContextualCSV() {
	log := "round,x1,x2,reward\n1,1,0,0.5\n1,0,1,-1\n2,0.6,0.8,0\n2,0,0.5,1\n2,0,0,0.25\n"
	rounds, err := bandit.ReadContextualCSV(strings.NewReader(log), false)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(rounds.Rounds(), "rounds of at most", rounds.MaxActions(), "actions in dimension", rounds.Dim())
	s := noise.NewFast(1, 2)
	actions, means := rounds.Round(nil, nil, &s)
	fmt.Println(actions, means)

	_, err = bandit.ReadContextualCSV(strings.NewReader("round,x1,reward\n1,1,1\n1,2,0\n"), false)
	fmt.Println(err)
	// Output:
	// 2 rounds of at most 3 actions in dimension 2
	// [0.6 0.8 0 0.5 0 0] [0 1 0.25]
	// logged rounds: line 3: the norm of the features must be at most 1 (or normalise: true)
}
