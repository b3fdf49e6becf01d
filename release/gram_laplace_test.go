package release

import (
	"math"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
)

// A segment's release is Σ aaᵀ and Σ a·r with noise by length: with D = 5 numbers at d = 2 the norm, in which the
// entry off the diagonal is twice, is Gamma(D) on average D·Scale, and variances are (D+1)·Scale², of that entry
// half of it. Over 4000 releases the length is within 6·√(D/n)·Scale, and variances are within 6 deviations of
// x², whose fourth moment is that of r⁴·3/(D(D+2)) = 3(D+1)(D+3)·Scale⁴ (a false alarm has probability below 1e-6).
// Half the noise is caught, and so is an entry off the diagonal that has as much noise as others.
func TestGramLaplaceReleases(t *testing.T) {
	const numbers, n = 5.0, 4000
	m, err := privacy.NewGramLaplace(privacy.Pure{Epsilon: 1})
	must(t, err)
	if want := 3 / math.Sqrt2; math.Abs(m.Scale-want) > 1e-12 || math.Abs(m.Variance(2)-6*4.5) > 1e-9 {
		t.Fatalf("scale %v, variance %v", m.Scale, m.Variance(2))
	}
	src := noise.Key{Seed: 8}.Fast(1)
	// inspect says how far off the law the noise is at most, in what it may be.
	inspect := func(m privacy.GramLaplace, scale float64, off float64) (far float64) {
		c, err := SimulatedFeatures(FeatureConfig{Dim: 2, Slots: 1, Mechanism: m}, &src[0])
		must(t, err)
		var length float64
		var square [5]float64
		for range n {
			must(t, c.Add(0, []float64{0.6, -0.8}, 0.5))
			r, err := c.Release(0)
			must(t, err)
			if r.Len() != numbers {
				t.Fatalf("%d numbers", r.Len())
			}
			q := 0.0
			for i, x := range []float64{0.36, -0.48, 0.3, 0.64, -0.4} {
				x = r.At(i) - x
				if i == 1 {
					x *= off
				}
				q += x * x
				square[i] += x * x / n
			}
			length += math.Sqrt(q) / n
		}
		if got := c.Ledger().Total().Pure(); m.Scale == scale && !(got <= 1+1e-12 && got > 1-1e-9) {
			t.Errorf("ε is %v", got)
		}
		far = math.Abs(length-numbers*scale) / (6 * scale * math.Sqrt(numbers/n))
		for _, x := range square {
			of := (numbers + 1) * scale * scale
			deviation := scale * scale * math.Sqrt(3*(numbers+1)*(numbers+3)-(numbers+1)*(numbers+1))
			far = max(far, math.Abs(x-of)/(6*deviation/math.Sqrt(n)))
		}
		return far
	}
	if far := inspect(m, m.Scale, math.Sqrt2); far > 1 {
		t.Errorf("not the law, by %v", far)
	}
	if far := inspect(privacy.GramLaplace{Scale: m.Scale / 2}, m.Scale, math.Sqrt2); far < 1 {
		t.Errorf("half the noise is not found out: %v", far)
	}
	if far := inspect(m, m.Scale, 1); far < 1 {
		t.Errorf("an entry off the diagonal like others is not found out: %v", far)
	}
	c, err := SimulatedFeatures(FeatureConfig{Dim: 2, Slots: 1, Mechanism: privacy.GramLaplace{}}, &src[0])
	must(t, err)
	must(t, c.Add(0, []float64{0.5, -0.25}, -1))
	r, err := c.Release(0)
	must(t, err)
	for i, want := range []float64{0.25, -0.125, -0.5, 0.0625, 0.25} {
		if r.At(i) != want {
			t.Errorf("without noise number %d is %v, must be %v", i, r.At(i), want)
		}
	}
	if _, err := RealFeatures(FeatureConfig{Dim: 2, Slots: 1, Mechanism: m}); err == nil ||
		!strings.Contains(err.Error(), "simulated rewards only") {
		t.Errorf("real records: %v", err)
	}
}
