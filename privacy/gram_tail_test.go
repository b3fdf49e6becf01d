package privacy

import (
	"math"
	"testing"
)

// What is set aside for a χ² that is too small against its law, integrated: never less,
// and not much more.
func TestChiSquareBelow(t *testing.T) {
	for _, n := range []float64{50, 300, 2e4, 99_999, 1e5, 2e6, 2e7, 2e8, 1 << 32} {
		a := n / 2
		law := func(from, to float64) (sum float64) {
			const panels = 20000
			h := (to - from) / panels
			for i := range panels { // Simpson's rule
				for j, w := range []float64{1, 4, 1} {
					u := (from + h*(float64(i)+float64(j)/2) - (a - 1)) / (a - 1)
					if u > -1 {
						sum += w * h / 6 * math.Exp((a-1)*(math.Log1p(u)-u))
					}
				}
			}
			return sum
		}
		s := math.Sqrt(a)
		from, all := max(0, a-30*s), 0.
		all = law(from, a+30*s)
		for _, z := range []float64{4, 5, 6, 7} {
			if a-z*s <= 0 {
				continue
			}
			want := law(from, a-z*s) / all
			if got := chiSquareBelow(n, 2*(a-z*s)); !(got >= want*(1-1e-6) && got <= want*1.07) {
				t.Errorf("n = %v, %v standard deviations below: %v, is %v", n, z, got, want)
			}
		}
	}
	if got := chiSquareBelow(1e6, 1e6); got != 1 {
		t.Errorf("%v in the middle", got)
	}
}
