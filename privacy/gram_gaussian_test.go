package privacy_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sotto-dp/sotto/privacy"
)

// segmentMoves is μ² of a record that is replaced, by the law of each number: variance σ² on the
// diagonal and in w·Σ a·r, half of it off the diagonal.
func segmentMoves(a, b []float64, x, y, w float64) (mu2 float64) {
	for i := range a {
		for j := range i + 1 {
			d := a[i]*a[j] - b[i]*b[j]
			if i != j {
				d *= math.Sqrt2
			}
			mu2 += d * d
		}
		d := w * (x*a[i] - y*b[i])
		mu2 += d * d
	}
	return mu2
}

// The worst pair of records by a search that climbs: (w²+2)/√2 is met and never passed, from two
// dimensions on, and what the Gram counters pay is not needed. A price at a sensitivity of 2 is found out.
func TestGramGaussianSensitivity(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	ball := func(x []float64) {
		q := 0.0
		for _, y := range x {
			q += y * y
		}
		for i := range x {
			x[i] /= max(1, math.Sqrt(q))
		}
	}
	for _, d := range []int{2, 5} {
		for _, w := range []float64{0.5, 1, math.Sqrt2} {
			limit := (w*w + 2) / math.Sqrt2
			worst := 0.0
			for range 12 {
				at := make([]float64, 2*d+2)
				for i := range at {
					at[i] = rng.NormFloat64()
				}
				best := 0.0
				for k := range 6000 {
					try := make([]float64, len(at))
					for i, x := range at {
						try[i] = x + rng.NormFloat64()*math.Exp2(-float64(k)/300)
					}
					ball(try[:d])
					ball(try[d : 2*d])
					ball(try[2*d : 2*d+1])
					ball(try[2*d+1:])
					if got := segmentMoves(try[:d], try[d:2*d], try[2*d], try[2*d+1], w); got > best {
						best, at = got, try
					}
				}
				worst = max(worst, math.Sqrt(best))
			}
			if worst > limit*(1+1e-12) || worst < limit*(1-1e-4) {
				t.Errorf("d = %d, w = %v: the furthest found is %v, must be %v", d, w, worst, limit)
			}
			if w == 1 && worst <= 2 {
				t.Error("a sensitivity of 2 was not found out")
			}
		}
	}
	// a and a' at 60°, rewards 1 and −1: by hand 4.5
	near(t, "the worst pair", segmentMoves([]float64{1, 0}, []float64{0.5, math.Sqrt(0.75)}, 1, -1, 1), 4.5, 1e-12)
}

func TestGramGaussianPrice(t *testing.T) {
	near(t, "ρ", privacy.GramGaussian{Sigma: 3}.Loss().ZCDP(), 4.5/18, 1e-12)
	for _, b := range []privacy.Budget{privacy.ZCDP{Rho: 0.3}, privacy.Approx{Epsilon: 1, Delta: 1e-6}} {
		m, err := privacy.NewGramGaussian(b)
		if err != nil {
			t.Fatal(err)
		}
		sigma, err := privacy.GaussianSigma(b)
		if err != nil {
			t.Fatal(err)
		}
		near(t, "σ", m.Sigma, 3/math.Sqrt2*sigma, 1e-12)
	}
	m, err := privacy.NewGramGaussian(privacy.Approx{Epsilon: 1, Delta: 1e-6})
	if err != nil {
		t.Fatal(err)
	}
	near(t, "σ at (1, 1e-6)", m.Sigma, 8.9619, 1e-4) // 2.1213·4.2247
	if _, err := privacy.NewGramGaussian(privacy.Pure{Epsilon: 1}); err == nil {
		t.Error("normal noise is ε-DP")
	}
	// The band is that of a node of a Gram tree but for the column, and of weights by their squares.
	tree := privacy.GramTree{Sigma: 3 / math.Sqrt2, Horizon: 1}.Band(4, 1, 2)
	band := privacy.GramGaussian{Sigma: 3}.Band(4, 100, 4, 2, 0)
	near(t, "the band", band.Hi, 2*tree.Hi, 1e-12)
	near(t, "the band's column", band.Cross, 2*math.Sqrt2*tree.Cross, 1e-12)
}
