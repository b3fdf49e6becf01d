package play

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/policy/linear"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

// BenchmarkContextual is what a decision costs beside HTTP, storage and the mapping of
// features: the choice among the vectors, and the decision with one rule's weight, its reward
// and its share of releases.
func BenchmarkContextual(b *testing.B) {
	for _, size := range []struct{ d, k int }{{5, 50}, {20, 50}, {50, 50}} {
		b.Run(fmt.Sprintf("d=%d,k=%d", size.d, size.k), func(b *testing.B) {
			p, err := linear.NewOFUL(size.d, 1e7, privacy.ZCDP{Rho: 1},
				linear.OFULOptions{Lambda: 1, C: 1, Risk: 0.001, Split: true})
			if err != nil {
				b.Fatal(err)
			}
			s := noise.NewFast(1, 2)
			c, err := New(Config{Contexts: p, Window: 1000, Epoch: Epoch{1},
				Rules: []Rule{{Name: "first", Clip: 20, Mechanism: privacy.Gaussian{Sigma: 1}}},
				Vectors: func(f release.FeatureConfig) (release.FeatureCurator, error) {
					return release.SimulatedFeatures(f, &s)
				},
				Curator: func(f release.Config) (release.Curator, error) { return release.Simulated(f, &s) }})
			if err != nil {
				b.Fatal(err)
			}
			rng := rand.New(rand.NewPCG(1, 2))
			sets := make([][]float64, 64)
			for i := range sets {
				sets[i] = make([]float64, size.k*size.d)
				for j := range sets[i] {
					x := (2*rng.Float64() - 1) / math.Sqrt(float64(size.d))
					sets[i][j] = math.Trunc(x*vectorSteps) / vectorSteps
				}
			}
			weights := []float64{1}
			b.ReportAllocs()
			now := int64(0)
			for b.Loop() {
				actions := sets[now&63]
				best := c.Best(actions)
				k, err := c.Decide(Decision{Vector: actions[best*size.d:][:size.d], Weights: weights}, now)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := c.Settle(k, float64(now&1), now); err != nil {
					b.Fatal(err)
				}
				out, err := c.Close(now)
				if err == nil && out != nil {
					err = c.Commit(out)
				}
				if err != nil {
					b.Fatal(err)
				}
				now++
			}
		})
	}
}
