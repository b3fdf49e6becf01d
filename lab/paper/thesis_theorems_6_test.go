package paper

import (
	"math"
	"testing"

	"github.com/sotto-dp/sotto/noise"
)

func TestChapter6ComesOutEachWay(t *testing.T) {
	scores := func(d float64) numbersOf {
		n := numbersOf{}
		for _, name := range []string{"easy", "medium", "hard", "medium, noise 1"} {
			n["scores "+name] = []float64{d, d, 5, 1e5, 1e5}
		}
		return n
	}
	figure := theoremsOfChapter6()
	eachWay(t, figure, map[string][2]numbersOf{
		"most-power": {one("plain", 0), one("plain", 0.4)},
		"bayes":      {one("bayes", 0), one("bayes", 0.1)},
		"variation":  {one("variation", 0), one("variation", 0.1)},
		"histograms": {scores(0.01), scores(0.1)},
	})
	// With a coin it is true: overstated. If that failed too, it would not be.
	claim := claimOf(t, figure, "most-power")
	for tossed, want := range map[float64]Verdict{0: Overstated, 0.1: NotReproduced} {
		v := numbersOf{"plain": {0.4, 0.42, 2, 0.3}, "tossed": {tossed}}
		if _, got := decide(&claim, &Evidence{Numbers: &Numbers{Values: v}}); got != want {
			t.Errorf("tossed %v: %s, want %s", tossed, got, want)
		}
	}
}

func TestChapter6Plays(t *testing.T) { playsTheorems(t, theoremsOfChapter6(), "most-power") }

// The counter-example of the page, by hand.
func TestTwoPointsByHand(t *testing.T) {
	r := meanOfBits(2, []float64{0.3}, []int{1})
	for i, want := range []release{{[]float64{0.49, 0.42, 0.09}, []float64{0, 0.7, 0.3}}} {
		for s := range want.out {
			if math.Abs(r.out[s]-want.out[s])+math.Abs(r.in[s]-want.in[s]) > 1e-15 {
				t.Errorf("%d: %+v", i, r)
			}
		}
	}
	variation, bayes := r.variation()
	for name, x := range map[string][2]float64{
		"plain at 0.42":  {r.power(0.42, false), 0.3},
		"tossed at 0.42": {r.power(0.42, true), 0.3 + 0.7*0.33/0.42},
		"at 0.51":        {r.power(0.51, false), 1}, "at 0": {r.power(0, true), 0},
		"variation": {variation, 0.49}, "bayes": {bayes, 0.49},
	} {
		if math.Abs(x[0]-x[1]) > 1e-12 {
			t.Errorf("%s: %v, want %v", name, x[0], x[1])
		}
	}
	ahead := 0.0
	r.tests(func(alpha, power float64) { ahead = max(ahead, power-r.power(alpha, false)) })
	if math.Abs(ahead-0.4) > 1e-12 {
		t.Errorf("another test is ahead by %v, want 0.4", ahead)
	}
}

// The distance tells a law with another variance from the right one, which it is near to: above
// its band of 99.99 % with probability 10⁻⁴ for a seed that was fixed.
func TestDistanceFromNormal(t *testing.T) {
	src := noise.NewFast(6, 3)
	x := make([]float64, 20_000)
	for i := range x {
		x[i] = 1 + 2*src.Normal()
	}
	band := math.Sqrt(math.Log(2/1e-4) / (2 * 20_000))
	if d := farFrom(x, 1, 4); d > band {
		t.Errorf("%v from its own law", d)
	}
	for _, other := range [][2]float64{{1, 2}, {1, 8}, {-1, 4}} {
		if d := farFrom(x, other[0], other[1]); d < nearNormal+band {
			t.Errorf("%v from N(%v, %v)", d, other[0], other[1])
		}
	}
}
