package divergence

import (
	"math"
	"testing"
)

// The cumulants of tilt up to the fifth, where the plain formula still has twelve digits: the fifth
// is 10⁻¹⁰ of the sum there.
func TestTiltByCumulants(t *testing.T) {
	for _, y := range []float64{0.01, 0.03, 0.2, 0.5, 0.7, 0.9} {
		for _, lambda := range []float64{1e-3, 1.5e-3, 1.999e-3} {
			s := side{y: y, y1: 1 - y}
			want := math.Log1p(y*math.Expm1(-lambda)) + lambda*y
			if got := s.tilt(lambda); math.Abs(got/want-1) > 1e-11 {
				t.Errorf("y %v, λ %v: %v, must be %v (%.2g of it)", y, lambda, got, want, got/want-1)
			}
		}
	}
}

// 1−y far below the rounding of y: log(1 + u) − λ(1−y) for u = (1−y)(e^λ − 1), by its series.
func TestTiltNearOne(t *testing.T) {
	for _, lambda := range []float64{0.1, 1, 10, 29} {
		s := side{y: 1 - 1e-17, y1: 1e-17}
		u := s.y1 * math.Expm1(lambda)
		if want, got := u-u*u/2+u*u*u/3-lambda*s.y1, s.tilt(lambda); math.Abs(got/want-1) > 1e-8 {
			t.Errorf("λ %v: %v, must be %v", lambda, got, want)
		}
	}
}
