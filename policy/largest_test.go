package policy

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

// The chances are what a plain rule with very many points makes of them, of normal variables and of
// those whose variance grows with x, near and far, narrow beside wide.
func TestLargest(t *testing.T) {
	type variable struct{ mean, v, noise float64 }
	for _, c := range [][]variable{
		{{0.03, 0, 1e-4}, {0.03, 0, 1e-4}},
		{{0.03, 0, 1e-4}, {0.02, 0, 1e-8}, {0.05, 0, 1e-6}},
		{{0.02, 0.025, 6e-4}, {0.03, 1e-4, 1e-6}, {-0.01, 0.025, 6e-4}, {0.031, 1e-5, 1e-9}},
		{{0.5, 0.1, 0}, {0.6, 0.01, 0}, {0.3, 0.1, 1e-3}, {0.59, 0.001, 0}, {0.2, 1e-6, 0}},
		{{0, 0.02, 0}, {0.01, 1e-3, 0}},
	} {
		l := newLargest(len(c))
		l.reset(0.003)
		for a, x := range c {
			l.add(a, x.mean, x.v, x.noise)
		}
		l.solve()
		score := func(x float64, of variable) float64 {
			y := min(max(x, 0.003), 0.997)
			return (x - of.mean) / math.Sqrt(of.v*y*(1-y)+of.noise)
		}
		// sums of Φ_a against the product of the others'
		want, before := make([]float64, len(c)), make([]float64, len(c))
		const from, to, points = -1.5, 2.5, 200_000
		for i := range points + 1 {
			x := from + (to-from)*float64(i)/points
			now := make([]float64, len(c))
			for a, of := range c {
				now[a] = distuv.UnitNormal.CDF(score(x, of))
			}
			for a := range c {
				others := 1.0
				for b := range c {
					if b != a {
						others *= (before[b] + now[b]) / 2
					}
				}
				want[a] += (now[a] - before[a]) * others
			}
			before = now
		}
		for a := range c {
			if got := l.of[a].chance; math.Abs(got-want[a]) > 2e-4 {
				t.Errorf("%v: chance of %d is %v, want %v", c, a, got, want[a])
			}
		}
	}
}
