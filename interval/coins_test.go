package interval

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Evidence is a martingale from toss to toss, exactly; it is above log(1/risk) as rarely as it says, looked at
// always, and coins that are not as they say are found.
func TestEvidence(t *testing.T) {
	for _, p := range []float64{0.5, 0.025, 0.9} {
		for _, n := range [][2]int{{0, 0}, {3, 5}, {0, 40}, {200, 10}} {
			at := func(heads, tails int) float64 {
				return math.Exp(Evidence([]Tosses{{n[0] + heads, n[1] + tails, p}, {7, 2, 0.6}}))
			}
			if mean, now := p*at(1, 0)+(1-p)*at(0, 1), at(0, 0); math.Abs(mean/now-1) > 1e-9 {
				t.Errorf("after %v tosses of %v it goes on from %v with the mean %v", n, p, now, mean)
			}
		}
	}
	src := rand.New(rand.NewPCG(1, 2))
	const runs, tosses, risk = 1000, 5000, 0.05
	ever := func(p, q float64) (found int) {
		for range runs {
			n := Tosses{P: p}
			for i := range tosses {
				if src.Float64() < q {
					n.Heads++
				} else {
					n.Tails++
				}
				if i%10 == 0 && Evidence([]Tosses{n}) > -math.Log(risk) {
					found++
					break
				}
			}
		}
		return found
	}
	// By Chernoff's bound a binomial of 1000 at 0.05 is above 90 with probability 6e-7 at most, and at a
	// power of 0.99 below 950 with less.
	if n := ever(0.05, 0.05); n > 90 {
		t.Errorf("%d of %d runs are found wrong, at a risk of %v", n, runs, risk)
	}
	for _, q := range []float64{0.03, 0.07} {
		if n := ever(0.05, q); n < 950 {
			t.Errorf("heads with %v instead of 0.05 are found in %d of %d runs", q, n, runs)
		}
	}
	if got := Any([]float64{math.Log(2), math.Log(4)}); math.Abs(got-math.Log(3)) > 1e-12 || Any(nil) != 0 {
		t.Errorf("any of 2 and 4 is %v", math.Exp(got))
	}
}
