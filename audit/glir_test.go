package audit

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

// The saddlepoint of the non-central χ² law against its Poisson mixture.
func TestNoncentralCDF(t *testing.T) {
	worst := 0.0
	for _, d := range []float64{1, 2, 5, 20, 100} {
		for _, c := range []float64{0.5, 3, 20, 150} {
			for _, z := range []float64{-4, -2, -1, -1e-7, 0, 0.5, 1, 3} {
				x := d + c + z*math.Sqrt(2*d+4*c)
				if x <= 0 {
					continue
				}
				exact := 0.0
				for j := 0.0; j < 500; j++ {
					exact += distuv.Poisson{Lambda: c / 2}.Prob(j) * distuv.ChiSquared{K: d + 2*j}.CDF(x)
				}
				got := math.Exp(logNoncentralCDF(x, d, c))
				worst = max(worst, math.Abs(got/exact-1))
				if math.Abs(got/exact-1) > 0.06 || d >= 5 && math.Abs(got/exact-1) > 0.015 {
					t.Errorf("d=%v c=%v z=%v: %v, exactly %v", d, c, z, got, exact)
				}
			}
		}
	}
	t.Logf("largest relative error %.4f", worst)
	// Far out it keeps falling, past the smallest double.
	last := 0.0
	for _, x := range []float64{4e4, 2e4, 1e4, 5e3, 1e3, 1} {
		f := logNoncentralCDF(x, 100, 5e4)
		if !(f < last) || math.IsInf(f, 0) {
			t.Errorf("log F(%v) = %v after %v", x, f, last)
		}
		last = f
	}
}
