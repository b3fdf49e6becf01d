package release

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sotto-dp/sotto/internal/unitball"
	"github.com/sotto-dp/sotto/privacy"
)

// Noise on the grid is drawn with a scale one 64th of a step, 2^-26, above what is charged: for a
// scale of s that is a whole number of 64ths the law has s + 2^-26 and the ledger gets s. A charge
// for more noise than is drawn would understate the loss.
func TestExactNoiseIsChargedByOnePartLess(t *testing.T) {
	src := rand.NewPCG(1, 2)
	const part = 0x1p-26
	for _, s := range []float64{1, 0.75, 3, 1000, 1 + part} {
		p, err := exactPlan(privacy.Sparse{Questions: privacy.Questions{Statistic: "range",
			Threshold: s, Query: 2 * s}, Scale: 4 * s}, src)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.charge.(privacy.Sparse); got.Threshold != s || got.Query != 2*s || got.Scale != 4*s {
			t.Errorf("sparse of %v: charged %+v", s, got)
		}
		for _, m := range []privacy.Mechanism{privacy.Laplace{Scale: s}, privacy.Gaussian{Sigma: s},
			privacy.Tree{Scale: s, Horizon: 8}, privacy.Hybrid{Scale: s}} {
			if p, err := exactPlan(m, src); err != nil || p.charge != m {
				t.Errorf("%v: charged %v, error %v", m, p.charge, err)
			}
		}
		if charged, _, err := exactSigma(privacy.VectorGaussian{Sigma: s}, s, src); err != nil || charged != s {
			t.Errorf("vectors, σ = %v: charged %v, error %v", s, charged, err)
		}
		if tail, err := ExactTail(s); err != nil || tail.H != s+part {
			t.Errorf("tail of %v: %v, error %v", s, tail.H, err)
		}
	}
	// A scale between two parts is rounded up to the next before one is added: charged
	// in (s, s + 2^-26].
	s := 1 + part/4
	p, err := exactPlan(privacy.Laplace{Scale: s}, src)
	if err != nil || p.charge != (privacy.Laplace{Scale: 1 + part}) {
		t.Errorf("charged %v, error %v", p.charge, err)
	}
}

// Features move the sum on the grid by a little more than 2: by 2(1 + 2·unitball.Slack) + √d·2^-20.
// The noise is made larger by half of that, and the charge is divided by it again, so that the
// ledger has the σ that was asked for, to one part of the grid.
func TestRealFeaturesChargeWhatWasAskedFor(t *testing.T) {
	for _, dim := range []int{1, 3, 100} {
		more := roundedSensitivity(dim) / 2
		if want := 1 + 2*unitball.Slack + math.Sqrt(float64(dim))*0x1p-21; math.Abs(more-want) > 1e-15 {
			t.Errorf("dim %d: sensitivity is %v of 2, want %v", dim, more, want)
		}
		for _, sigma := range []float64{0.5, 1, 20} {
			cur, err := RealFeatures(FeatureConfig{Dim: dim, Slots: 1,
				Mechanism: privacy.VectorGaussian{Sigma: sigma}})
			if err != nil {
				t.Fatal(err)
			}
			if err := cur.Add(0, make([]float64, dim), 1); err != nil {
				t.Fatal(err)
			}
			if _, err := cur.Release(0); err != nil {
				t.Fatal(err)
			}
			charged := cur.Ledger().Entries()[0].Mechanism.(privacy.VectorGaussian).Sigma
			if charged < sigma*(1-1e-15) || charged > sigma+0x1p-25 {
				t.Errorf("dim %d, σ = %v: charged for %v", dim, sigma, charged)
			}
		}
	}
}
