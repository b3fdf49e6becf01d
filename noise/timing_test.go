package noise_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/internal/stats"
	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/noise"
)

// The exact samplers reject and repeat, so that the time of a draw tells of the noise: they promise nothing else.
// This says how much (docs/timing.md), by hand: whether the noise was smaller or larger than its median. What is
// drawn before it is needed tells nothing (release.Real).
func TestTimingOfDraws(t *testing.T) {
	draws := 2 * testkit.Timing()
	grid := uint64(1 << 20)
	laplace := testkit.Must(noise.NewDiscreteLaplace(64*grid+1, 64))
	gaussian := testkit.Must(noise.NewDiscreteGaussian(64*grid+1, 64))
	variance := testkit.Must(noise.NewDiscreteGaussianVariance(grid*grid, 1))
	skellam := testkit.Must(noise.NewSkellam(grid, 1))
	polya := testkit.Must(noise.NewPolyaDifference(100, grid, 1))
	l2 := testkit.Must(noise.NewL2Laplace(8, grid, 1))
	var v [8]int64
	for name, draw := range map[string]func(rand.Source) (int64, error){
		"discrete Laplace":                laplace.Draw,
		"discrete Gaussian":               gaussian.Draw,
		"discrete Gaussian by variance":   variance.Draw,
		"Skellam":                         skellam.Draw,
		"Pólya difference, of 100 people": polya.Draw,
		"ℓ2-Laplace, 8 numbers": func(src rand.Source) (int64, error) {
			err := l2.Draw(src, v[:])
			n := 0.0
			for _, x := range v {
				n = math.Hypot(n, float64(x))
			}
			return int64(n), err
		},
	} {
		t.Run(name, func(t *testing.T) {
			src := rand.NewChaCha8([32]byte{7})
			size := func() int64 {
				x := testkit.Must(draw(src))
				return max(x, -x)
			}
			some := make([]int64, 1001)
			for i := range some {
				some[i] = size()
			}
			slices.Sort(some)
			var out stats.Timing
			for range draws {
				from := time.Now()
				x := size()
				took := time.Since(from)
				class := 0
				if x > some[500] {
					class = 1
				}
				out.Add(class, float64(took))
			}
			t.Log(out.Told())
		})
	}
}
