package bound_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/sotto-dp/sotto/bound"
)

// The constants of the four standard instances, computed independently to the printed digits.
func TestBernoulliRegretVectors(t *testing.T) {
	for _, v := range []struct {
		means []float64
		want  [4]float64 // ε = 0.01, 0.1, 0.5, 1
	}{
		{[]float64{.75, .7, .7, .7, .7}, [4]float64{407.66, 49.42, 31.24, 31.24}},
		{[]float64{.75, .625, .5, .375, .25}, [4]float64{401.57, 41.68, 10.405, 7.708}},
		{[]float64{.75, .53125, .375, .28125, .25}, [4]float64{401.07, 41.12, 9.381, 5.934}},
		{[]float64{.75, .71875, .625, .46875, .25}, [4]float64{404.38, 45.76, 20.34, 18.49}},
	} {
		for i, epsilon := range []float64{.01, .1, .5, 1} {
			got, err := bound.BernoulliRegret(v.means, epsilon)
			if err != nil || math.Abs(got-v.want[i]) > 6e-3 {
				t.Errorf("%v at ε = %v: %v, %v, want %v", v.means, epsilon, got, err, v.want[i])
			}
		}
	}
}

// Without privacy it is the bound of Lai and Robbins: two arms ½ and ¼ have Δ/kl = 0.25/(¼
// log ½ + ¾ log 3/2).
func TestBernoulliRegretWithoutPrivacy(t *testing.T) {
	want := 0.25 / (0.25*math.Log(0.5) + 0.75*math.Log(1.5))
	if got, err := bound.BernoulliRegret([]float64{0.25, 0.5}, math.Inf(1)); err != nil ||
		math.Abs(got-want) > 1e-12*want {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	if got, err := bound.BernoulliRegret([]float64{0.5, 0.5}, 1); err != nil || got != 0 {
		t.Errorf("equal arms: %v, %v", got, err)
	}
	if got, err := bound.BernoulliRegret([]float64{1, 0.5}, 0.5); err != nil || math.Abs(got-2) > 1e-12 {
		t.Errorf("a best arm of 1 costs 1/ε an arm: %v, %v", got, err)
	}
}

func TestBernoulliRegretErrors(t *testing.T) {
	for _, v := range []struct {
		means   []float64
		epsilon float64
	}{{nil, 1}, {[]float64{.5}, 1}, {[]float64{.5, 1.5}, 1}, {[]float64{.5, math.NaN()}, 1},
		{[]float64{.5, .4}, 0}, {[]float64{.5, .4}, math.NaN()}} {
		if got, err := bound.BernoulliRegret(v.means, v.epsilon); err == nil {
			t.Errorf("%v: %v", v, got)
		}
	}
}

func ExampleBernoulliRegret() {
	c, err := bound.BernoulliRegret([]float64{0.75, 0.625, 0.5, 0.375, 0.25}, 0.1)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%.2f log T\n", c)
	// Output: 41.68 log T
}
