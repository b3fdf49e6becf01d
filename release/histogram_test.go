package release

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
)

func histogramConfig(m privacy.Mechanism) FeatureConfig {
	return FeatureConfig{Dim: 2, Slots: 1, Mechanism: m, Rows: []float64{1, 0, 0, 1, 0.5, 0.5}}
}

// A record adds 1 to its cell, in two bins: one by one, as integer sums, real and simulated alike.
func TestHistogramCounts(t *testing.T) {
	type record struct {
		a      []float64
		reward float64
	}
	records := []record{{[]float64{1, 0}, 1}, {[]float64{1, 0}, -1}, {[]float64{0.5, 0.5}, 1}, {[]float64{1, 0}, 1},
		{[]float64{0.5, 0.5}, 0.5}, {[]float64{0.5, 0.5}, 7}}
	want := []float64{1, 2, 0, 0, 0.25, 2.75}
	for _, m := range []privacy.Mechanism{privacy.LaplaceHistogram{Scale: 1e-5}, privacy.GaussianHistogram{Sigma: 1e-5}} {
		src := noise.Key{}.Fast(1)
		fast, err := SimulatedFeatures(histogramConfig(m), &src[0])
		if err != nil {
			t.Fatal(err)
		}
		exact, err := exactFeatures(histogramConfig(m), noise.Key{}.ChaCha8())
		if err != nil {
			t.Fatal(err)
		}
		sums, err := exactFeatures(histogramConfig(m), noise.Key{}.ChaCha8())
		if err != nil {
			t.Fatal(err)
		}
		steps := sums.(StepFeatureCurator)
		all := make([]int64, steps.Width())
		for _, r := range records {
			for _, c := range []FeatureCurator{fast, exact} {
				if err := c.Add(0, r.a, r.reward); err != nil {
					t.Fatal(err)
				}
			}
			steps.Products(all, r.a, r.reward)
		}
		steps.Products(all, []float64{0, 0}, 1) // of no cell: of nothing
		if err := steps.AddSteps(0, len(records), all); err != nil {
			t.Fatal(err)
		}
		var again []float64
		for i, c := range []FeatureCurator{fast, exact, sums} {
			r, err := c.Release(0)
			if err != nil || r.N() != len(records) || r.Len() != len(want) {
				t.Fatal(r.N(), r.Len(), err)
			}
			var got []float64
			for j := range want {
				got = append(got, r.At(j))
				if math.Abs(r.At(j)-want[j]) > 3e-3 { // 16 steps at least, times 20
					t.Errorf("%v: curator %d, bin %d is %v, want %v", m, i, j, r.At(j), want[j])
				}
			}
			if i > 1 && !slices.Equal(got, again) {
				t.Errorf("%v: sums of steps release %v, and records %v", m, got, again)
			}
			again = got
			if _, err := c.Release(0); err == nil {
				t.Error("a slot is released twice")
			}
		}
	}
}

// The noise of real records has the law and the scale that is charged for, in each bin by itself: of 20 000
// releases of nothing but one record Kolmogorov's distance is below 0.0225 but with probability 2e^{−2·20000·0.0225²} =
// 3e-9, and two bins' correlation below 0.04, at 5.6 standard deviations.
func TestHistogramNoise(t *testing.T) {
	for _, m := range []privacy.Histogram{privacy.LaplaceHistogram{Scale: 2}, privacy.GaussianHistogram{Sigma: 1}} {
		c, err := exactFeatures(histogramConfig(m), noise.Key{Seed: 5}.ChaCha8())
		if err != nil {
			t.Fatal(err)
		}
		charged, err := FeatureCharge(histogramConfig(m))
		if err != nil {
			t.Fatal(err)
		}
		if used, promised := privacy.ScaleOf(charged), privacy.ScaleOf(m); !(used >= promised && used < promised*(1+1e-6)) {
			t.Errorf("%v is charged as %v", m, charged)
		}
		const n = 20_000
		var bins [2][]float64
		var product float64
		for range n {
			if err := c.Add(0, []float64{0, 1}, 1); err != nil {
				t.Fatal(err)
			}
			r, err := c.Release(0)
			if err != nil {
				t.Fatal(err)
			}
			x, y := r.At(0), r.At(3)-1
			bins[0], bins[1], product = append(bins[0], x), append(bins[1], y), product+x*y
		}
		cdf := func(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }
		if l, ok := m.(privacy.LaplaceHistogram); ok {
			cdf = func(x float64) float64 {
				if x < 0 {
					return math.Exp(x/l.Scale) / 2
				}
				return 1 - math.Exp(-x/l.Scale)/2
			}
		}
		for i, sample := range bins {
			if d := kolmogorov(sample, cdf); d > 0.0225 {
				t.Errorf("%v: bin %d is %v from its law", m, i, d)
			}
		}
		if r := product / n / m.BinVariance(); math.Abs(r) > 0.04 {
			t.Errorf("%v: bins have the correlation %v", m, r)
		}
	}
}

func TestHistogramErrors(t *testing.T) {
	good := histogramConfig(privacy.LaplaceHistogram{Scale: 1})
	for mention, change := range map[string]func(*FeatureConfig){
		"rows is of 0 numbers":                 func(c *FeatureConfig) { c.Rows = nil },
		"rows has vector 0 again as 1":         func(c *FeatureConfig) { c.Rows = []float64{1, 0, 1, 0} },
		"rows has 6 numbers, must have none":   func(c *FeatureConfig) { c.Mechanism = privacy.VectorGaussian{Sigma: 1} },
		"laplace-histogram: scale is -1, must": func(c *FeatureConfig) { c.Mechanism = privacy.LaplaceHistogram{Scale: -1} },
	} {
		cfg := good
		change(&cfg)
		src := noise.Key{}.Fast(1)
		for _, build := range []func() (FeatureCurator, error){
			func() (FeatureCurator, error) { return SimulatedFeatures(cfg, &src[0]) },
			func() (FeatureCurator, error) { return exactFeatures(cfg, noise.Key{}.ChaCha8()) },
		} {
			if _, err := build(); err == nil || !strings.Contains(err.Error(), mention) {
				t.Errorf("%s: %v", mention, err)
			}
		}
	}
	c := stepFeatures(t, good)
	if err := c.Add(0, []float64{0.25, 0.75}, 1); !errors.Is(err, errNoCell) || strings.ContainsAny(err.Error(), "0.275") {
		t.Errorf("a vector of no cell: %v", err)
	}
	for mention, sums := range map[string][]int64{
		"there are 2 sums, must be 6":    {0, gridSteps},
		"sum 1 of 1 rewards is out":      {gridSteps, -1, 1, 0, 0, 0},
		"sum 2 of 1 rewards is out":      {0, 0, gridSteps + 1, 0, 0, 0},
		"the bins are not of 1 records":  {gridSteps, 1, 0, 0, 0, 0},
		"the bins are not of 1 records.": {gridSteps - 1, 0, 0, 0, 0, 0},
	} {
		if err := c.AddSteps(0, 1, sums); err == nil || !strings.Contains(err.Error(), strings.TrimSuffix(mention, ".")) {
			t.Errorf("%v: %v", sums, err)
		}
	}
}
