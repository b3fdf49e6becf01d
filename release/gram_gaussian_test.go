package release

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
)

// inspectSegment says whether the numbers of a segment's noise have the mass of their law: in ℝ², the
// diagonal and a·r at least √2 times the least noise, the entry off the diagonal it. Pearson's χ² over 82
// cells is above its limit with probability 1e-7 for each of five numbers; and two releases in a row are
// uncorrelated, by a sum of products of unit variance that is beyond 5.3 of its deviations with as much.
func inspectSegment(t *testing.T, draws int, twin func(g *gramFeatures[int64])) (bad bool) {
	const cells = 40
	counts := [5][2*cells + 2]int{}
	again := 0.0
	law := [5]float64{1451.0 / 64, 1025.0 / 64, 1451.0 / 64, 1451.0 / 64, 1451.0 / 64}
	g := realGram(t, 2, privacy.GramGaussian{Sigma: 1e-9}, 1)
	if twin != nil {
		twin(g)
	}
	var last []int64
	for range draws {
		must(t, g.Add(0, []float64{0, 0}, 0))
		r, err := g.Release(0)
		must(t, err)
		now := inSteps(t, r)
		for e, x := range now {
			if x < -cells || x > cells {
				counts[e][2*cells+1]++
			} else {
				counts[e][x+cells]++
			}
		}
		if last != nil {
			again += float64(now[2]) * float64(last[2]) / law[2] / law[2]
		}
		last = now
	}
	limit := distuv.ChiSquared{K: 2*cells + 1}.Quantile(1 - 1e-7)
	for e, tau := range law {
		chi2 := 0.0
		for i, p := range normalMass(tau, cells) {
			want := p * float64(draws)
			chi2 += (float64(counts[e][i]) - want) * (float64(counts[e][i]) - want) / want
		}
		if chi2 > limit {
			t.Logf("number %d: χ² is %.1f, above %.1f", e, chi2, limit)
			bad = true
		}
	}
	return bad || math.Abs(again) > 5.3*math.Sqrt(float64(draws))
}

func TestSegmentNoiseHasItsMass(t *testing.T) {
	testkit.OneGoroutine(t)
	if inspectSegment(t, 60_000, nil) {
		t.Error("not the law")
	}
	thin, err := noise.NewDiscreteGaussian(1025, 64)
	must(t, err)
	off := exactGaussian{rand.NewPCG(1, 2), thin}
	for name, node := range map[string]vectorSampler[int64]{
		"the noise off the diagonal everywhere": exactNode(off, off, 3, true, true),
		"a tree's, thin in a·r": exactNode(exactGaussian{rand.NewPCG(3, 4), wideNoise(t)}, off, 3, true,
			false),
		"drawn once": func() vectorSampler[int64] {
			kept := make([]int64, 6)
			must(t, exactNode(exactGaussian{rand.NewPCG(5, 6), wideNoise(t)}, off, 3, true, true)(kept))
			return func(dst []int64) error { copy(dst, kept); return nil }
		}(),
	} {
		if !inspectSegment(t, 8000, func(g *gramFeatures[int64]) { g.noise[0] = anew(6, node) }) {
			t.Errorf("%s: not found out", name)
		}
	}
}

func wideNoise(t *testing.T) noise.DiscreteGaussian {
	t.Helper()
	wide, err := noise.NewDiscreteGaussian(1451, 64)
	must(t, err)
	return wide
}

// A segment is released once, without Σ r²: by hand. Slots are new ones, so that the ledger has the price
// of one; sums of steps are those of records; the simulated curator does the same.
func TestSegmentsByHand(t *testing.T) {
	build := map[string]func(FeatureConfig) (FeatureCurator, error){
		"real": func(c FeatureConfig) (FeatureCurator, error) { return exactFeatures(c, rand.NewPCG(1, 2)) },
		"simulated": func(c FeatureConfig) (FeatureCurator, error) {
			s := noise.NewFast(1, 2)
			return SimulatedFeatures(c, &s)
		},
	}
	for name, build := range build {
		for _, sigma := range []float64{0, 5} {
			c, err := build(FeatureConfig{Dim: 2, Slots: 1, Mechanism: privacy.GramGaussian{Sigma: sigma}})
			must(t, err)
			for slot := range 3 {
				must(t, c.Add(0, []float64{0.5, -0.25}, -1))
				must(t, c.Add(0, []float64{0, 0.5}, 0.5))
				if slot == 2 {
					steps := c.(StepFeatureCurator)
					sums := make([]int64, steps.Width())
					steps.Products(sums, []float64{1, 0}, 1)
					must(t, steps.AddSteps(0, 1, sums))
				}
				r, err := c.Release(0)
				must(t, err)
				want := []float64{0.25, -0.125, -0.5, 0.3125, 0.5}
				if slot == 2 {
					want[0], want[2] = want[0]+1, want[2]+1
				}
				if r.Len() != len(want) || r.N() != 2+slot/2 {
					t.Fatalf("%s: %d numbers of %d records", name, r.Len(), r.N())
				}
				for i, x := range want {
					if sigma == 0 && r.At(i) != x || sigma > 0 && (r.At(i) == x || math.Abs(r.At(i)-x) > 60) {
						t.Errorf("%s: number %d is %v, must be near %v", name, i, r.At(i), x)
					}
				}
			}
			entries := c.Ledger().Entries()
			if len(entries) != 3 || entries[0].Slot == entries[1].Slot || entries[1].Slot == entries[2].Slot {
				t.Errorf("%s: entries %v", name, entries)
			}
			if rho := c.Ledger().Total().ZCDP(); sigma > 0 && math.Abs(rho/(4.5/50)-1) > 1e-6 {
				t.Errorf("%s: ρ is %v, must be %v", name, rho, 4.5/50)
			}
			if _, err := c.Release(0); err == nil {
				t.Errorf("%s: an empty segment is released", name)
			}
		}
	}
}
