package design_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/sotto-dp/sotto/internal/design"
)

// sphere is k actions uniform on the unit sphere of ℝ^d.
func sphere(seed uint64, k, d int) [][]float64 {
	rng := rand.New(rand.NewPCG(seed, 0))
	a := gaussian(rng, k, d)
	for _, row := range a {
		normalise(row)
	}
	return a
}

func BenchmarkOptimal(b *testing.B) {
	for _, size := range []struct{ k, d int }{{10, 3}, {100, 5}, {1000, 20}} {
		b.Run(fmt.Sprintf("K=%d/d=%d", size.k, size.d), func(b *testing.B) {
			actions := sphere(1, size.k, size.d)
			b.ReportAllocs()
			steps := 0
			for b.Loop() {
				d, err := design.Optimal(actions, design.Options{})
				if err != nil {
					b.Fatal(err)
				}
				steps = d.Steps
			}
			b.ReportMetric(float64(steps), "steps/op")
		})
	}
}

func BenchmarkNorms(b *testing.B) {
	actions := sphere(1, 1000, 20)
	counts := make([]int, len(actions))
	for i := range counts {
		counts[i] = i % 7
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := design.Norms(actions, counts); err != nil {
			b.Fatal(err)
		}
	}
}
