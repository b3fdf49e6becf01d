package privacy_test

import (
	"math"
	"testing"

	"github.com/sotto-dp/sotto/privacy"
)

// The records of three cells whose rewards are of a grid move a histogram by 2 in ℓ1 and √2 in ℓ2, and two of
// them do: what both mechanisms are priced for.
func TestHistogramSensitivity(t *testing.T) {
	bins := func(cell int, y float64) (to [6]float64) {
		to[2*cell], to[2*cell+1] = 1-y, y
		return to
	}
	var l1, l2 float64
	const grid = 8
	for i := range 3 * (grid + 1) {
		for j := range 3 * (grid + 1) {
			u, v := bins(i/(grid+1), float64(i%(grid+1))/grid), bins(j/(grid+1), float64(j%(grid+1))/grid)
			var one, two float64
			for k := range u {
				one, two = one+math.Abs(u[k]-v[k]), two+(u[k]-v[k])*(u[k]-v[k])
			}
			l1, l2 = max(l1, one), max(l2, math.Sqrt(two))
		}
	}
	if l1 != 2 || l2 != math.Sqrt2 {
		t.Errorf("the histogram moves by %v in ℓ1 and %v in ℓ2", l1, l2)
	}
}

// Worked: ε = 1 is Lap(2), whose variance is 8; ρ = 1 is a σ of 1. At (1, 1e-6) a Gaussian σ would be 4.2247·√2,
// and its variance 35.7.
func TestNewHistogram(t *testing.T) {
	for _, c := range []struct {
		b        privacy.Budget
		kind     string
		variance float64
	}{
		{privacy.Pure{Epsilon: 1}, "laplace-histogram", 8},
		{privacy.ZCDP{Rho: 1}, "gaussian-histogram", 1},
		{privacy.ZCDP{Rho: 0.05}, "gaussian-histogram", 20},
		{privacy.Renyi{Alpha: 2, Epsilon: 0.5}, "gaussian-histogram", 4},
		{privacy.GDP{Mu: 2}, "gaussian-histogram", 0.5},
		{privacy.Approx{Epsilon: 1, Delta: 1e-6}, "laplace-histogram", 8},
		{privacy.None{}, "gaussian-histogram", 0},
	} {
		m, err := privacy.NewHistogram(c.b)
		if err != nil {
			t.Fatal(err)
		}
		if x := m.BinVariance(); m.Kind() != c.kind || math.Abs(x-c.variance) > 1e-12*c.variance {
			t.Errorf("%v: %v, variance %v, want %s and %v", c.b, m, x, c.kind, c.variance)
		}
		l := privacy.NewLedger(privacy.WithCap(c.b))
		for slot := range 2 { // a record is in one of them
			if _, err := l.ReleaseVector(slot, m, &privacy.Vector{N: 1, Value: []float64{0, 1}}); err != nil {
				t.Errorf("%v: %v", c.b, err)
			}
		}
		if _, none := c.b.(privacy.None); !none && l.Allow([]int{0}, m) == nil {
			t.Errorf("%v: a slot may be released twice", c.b)
		}
		if got := m.Loss(); m.BinVariance() > 0 && got.Infinite() || m.BinVariance() == 0 && !got.Infinite() {
			t.Errorf("%v loses %v", m, got)
		}
	}
	if got := (privacy.GaussianHistogram{Sigma: 2}).Loss().ZCDP(); got != 0.25 {
		t.Errorf("σ = 2 loses ρ = %v, want 1/4", got)
	}
	if got := (privacy.LaplaceHistogram{Scale: 4}).Loss().Pure(); got != 0.5 {
		t.Errorf("b = 4 loses ε = %v, want 1/2", got)
	}
	for _, b := range []privacy.Budget{nil, privacy.Pure{}, privacy.ZCDP{Rho: math.NaN()}} {
		if m, err := privacy.NewHistogram(b); err == nil {
			t.Errorf("%v makes %v", b, m)
		}
	}
}
