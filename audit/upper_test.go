package audit

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mathext"
)

// The Clopper–Pearson bound solves P(Binomial(n, p) ≤ k) = tail: every audit's validity rests on
// it, also for many games and small tails.
func TestUpper(t *testing.T) {
	for _, n := range []int{1, 2, 10, 250, 5000, 500_000, 50_000_000} {
		for _, k := range []int{0, 1, 3, n / 1000, n / 20, n / 3, n / 2, n - n/20, n - 2, n - 1} {
			if k < 0 || k >= n {
				continue
			}
			for _, tail := range []float64{0.45, 0.1, 0.025, 1e-3, 1e-5, 1e-9, 1e-12} {
				p := upper(k, n, tail)
				if k == 0 || k == n-1 {
					continue // closed forms, and 1−p has too few digits to check one
				}
				got := mathext.RegIncBeta(float64(n-k), float64(k+1), 1-p)
				// Where p is near 1, the next double is further away than the tolerance.
				next := mathext.RegIncBeta(float64(n-k), float64(k+1), 1-math.Nextafter(p, 0))
				if !(math.Abs(got/tail-1) < 1e-6) && !(got <= tail && tail <= next) {
					t.Errorf("n=%d k=%d tail=%v: bound %v has tail %v", n, k, tail, p, got)
				}
			}
		}
	}
}
