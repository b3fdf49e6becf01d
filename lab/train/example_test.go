package train_test

import (
	"context"
	"fmt"

	"github.com/sotto-dp/sotto/lab/train"
	"github.com/sotto-dp/sotto/noise"
)

// DP-SGD with half the noise that it claims, audited by a canary that the Mahalanobis score
// chose among three.
func Example() {
	src := noise.NewFast(1, 1)
	data := train.Images(8, 3, 3, 1, 2, &src)
	model := train.Logistic{Features: 9, Labels: 2}
	start := make([]float64, model.Params())
	a := train.Audit{
		Training: train.Training{Model: model, Method: train.DPSGD, Steps: 4, Rate: 0.5,
			Sampling: 1, Clip: 0.2, Noise: 2, Flaw: train.HalfNoise},
		Data: data, Start: start, Canary: train.Blank(data, 0),
		Attacks: []train.Attack{{References: data, Informed: true, Refresh: true},
			{Score: train.ScalarProduct}},
		Games: 10000, Key: noise.Key{Seed: 1},
	}
	mislabelled, err := train.Mislabelled(model, start, data, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	dirac, err := train.Dirac(model, 3, 0.1)
	if err != nil {
		fmt.Println(err)
		return
	}
	plans, err := a.Plans()
	if err != nil {
		fmt.Println(err)
		return
	}
	candidates := []train.Canary{dirac, mislabelled, train.Blank(data, 0)}
	best, _, err := train.Select(plans[0], candidates)
	if err != nil {
		fmt.Println(err)
		return
	}
	a.Canary = candidates[best]
	scores, err := a.Play(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	v, err := a.Judge(scores, 0.01, 0.01)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s: claimed ε = %.2f, audited %.2f at least; refuted: %v\n", a.Canary.Name,
		v.Claim.Epsilon, v.Audited[v.Best].Epsilon, v.Refuted)
	// Output:
	// mislabelled 0: claimed ε = 2.32, audited 3.81 at least; refuted: true
}

// What 1000 steps of batches of one in a hundred cost at σ = 1.
func ExampleSampledGaussian() {
	s := train.SampledGaussian{Rate: 0.01, Noise: 1, Steps: 1000}
	for _, n := range []train.Neighbour{train.AddRemove, train.ReplaceOne} {
		g, err := s.Epsilon(1e-5, n)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%v: ε = %.2f, by %s\n", n, g.Epsilon, g.Route)
	}
	// Output:
	// add or remove: ε = 1.83, by law of the privacy loss
	// replace one: ε = 4.24, by removing and then adding
}
