package linear_test

import (
	"math"
	"math/rand/v2"

	"github.com/sotto-dp/sotto/internal/testkit"
)

var near = testkit.Near

// sphere fills a with vectors of ℝ^d, uniform on the sphere of this radius.
func sphere(a []float64, d int, radius float64, rng *rand.Rand) {
	for ; len(a) >= d; a = a[d:] {
		var q float64
		for i := range a[:d] {
			a[i] = rng.NormFloat64()
			q += a[i] * a[i]
		}
		for i := range a[:d] {
			a[i] *= radius / math.Sqrt(q)
		}
	}
}

// dot is ⟨a,b⟩.
func dot(a, b []float64) float64 {
	var x float64
	for i := range a {
		x += a[i] * b[i]
	}
	return x
}

// sign is a reward in {−1,1} with this mean.
func sign(rng *rand.Rand, mean float64) float64 {
	if rng.Float64() < (1+mean)/2 {
		return 1
	}
	return -1
}
