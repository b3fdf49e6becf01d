package release

import (
	"math"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
)

// A release is Σ a·r and noise of the length that ε asks for: its mean length is d·Scale, over 2000 releases to
// 6·√(d/2000)·Scale (probability of a false alarm below 1e-6). A twin of half the noise is caught by it. The charge
// is no more than promised, and an error has nothing of the vector.
func TestVectorLaplaceReleases(t *testing.T) {
	const d, n = 2, 2000
	m, err := privacy.NewVectorLaplace(privacy.Pure{Epsilon: 1})
	if err != nil || m.Scale != 2 {
		t.Fatal(m, err)
	}
	src := noise.Key{Seed: 7}.Fast(1)
	for name, make := range map[string]func(m privacy.Mechanism) (FeatureCurator, error){
		"exact": func(m privacy.Mechanism) (FeatureCurator, error) {
			return exactFeatures(FeatureConfig{Dim: d, Slots: 1, Mechanism: m}, noise.Key{Seed: 7}.ChaCha8())
		},
		"fast": func(m privacy.Mechanism) (FeatureCurator, error) {
			return SimulatedFeatures(FeatureConfig{Dim: d, Slots: 1, Mechanism: m}, &src[0])
		},
	} {
		for _, twin := range []bool{false, true} {
			used := m
			if twin {
				used.Scale /= 2
			}
			c, err := make(used)
			if err != nil {
				t.Fatal(err)
			}
			var mean float64
			for range n {
				if err := c.Add(0, []float64{0.6, -0.8}, 0.5); err != nil {
					t.Fatal(err)
				}
				r, err := c.Release(0)
				if err != nil {
					t.Fatal(err)
				}
				mean += math.Hypot(r.At(0)-0.3, r.At(1)+0.4) / n
			}
			if far := math.Abs(mean-d*m.Scale) > 6*m.Scale*math.Sqrt(d/float64(n)); far != twin {
				t.Errorf("%s, twin %v: mean length %v", name, twin, mean)
			}
			if got := c.Ledger().Total().Pure(); !twin && !(got <= 1+1e-12 && got > 0.999) {
				t.Errorf("%s: ε is %v", name, got)
			}
		}
	}
	c, err := exactFeatures(FeatureConfig{Dim: d, Slots: 1, Mechanism: m}, noise.Key{}.ChaCha8())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Add(0, []float64{0.75, 0.8125}, 1); err == nil || strings.Contains(err.Error(), "1.1") {
		t.Errorf("a vector outside the ball: %v", err)
	}
}
