package release

import (
	"math"
	"testing"

	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
)

// Two actions whose directions differ by a few roundings: what a release shows across their common
// direction must not tell the single reward of one of them apart better than the price allows,
// although the noise there is that of this one reward alone.
func TestThinDirections(t *testing.T) {
	const many = 1 << 20
	far := 0.6 + 1<<12*0x1p-53
	actions := [][]float64{{0.6, 0.8}, {far, 0.8}}
	counts := []int{many, 1}
	m, err := privacy.NewElliptic(0, actions, counts)
	if err != nil {
		t.Fatal(err)
	}
	if m.Rank() != 1 {
		t.Fatalf("rank %d: this needs a direction that is taken for rounding", m.Rank())
	}
	const sigma = 0.125
	if m, err = m.WithSigma(sigma); err != nil {
		t.Fatal(err)
	}
	// P(guess) ≤ ½ + ½·TV, TV ≤ Φ(μ/2) − Φ(−μ/2) ≤ μ/√(2π).
	allowed := 0.5 + m.Sensitivity()/sigma/math.Sqrt(8*math.Pi)
	s := noise.NewFast(7, 1)
	const runs = 4000
	right := 0
	for i := range runs {
		c, err := SimulatedActions(actions, false, nil, &s)
		if err != nil {
			t.Fatal(err)
		}
		r := float64(1 - 2*(i&1))
		if err := c.AddSum(0, many, 0); err != nil {
			t.Fatal(err)
		}
		if err := c.Add(1, r); err != nil {
			t.Fatal(err)
		}
		v, err := c.Release(m)
		if err != nil {
			t.Fatal(err)
		}
		// What is across action 0, with a product more exact than its terms.
		p, q := 0.8*v.At(0), 0.6*v.At(1)
		across := (p - q) + (math.FMA(0.8, v.At(0), -p) - math.FMA(0.6, v.At(1), -q))
		if (across > 0) == (r > 0) {
			right++
		}
	}
	if got := float64(right) / runs; math.Abs(got-0.5) > allowed-0.5+4*0.5/math.Sqrt(runs) {
		t.Errorf("the reward is guessed %v of the time, at most %v is paid for", got, allowed)
	}
}
