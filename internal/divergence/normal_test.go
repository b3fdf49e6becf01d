package divergence_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/sotto-dp/sotto/internal/divergence"
)

// J_v(0,1) = sup λ − vλ²/2 = 1/(2v) and J_v(½,1) = 1/(8v); J_0 = kl.
func TestKLNoisyVectors(t *testing.T) {
	for _, v := range []struct{ x, y, v, want, within float64 }{
		{0, 1, 2, 0.25, 0}, {0.5, 1, 1, 0.125, 0}, {0.5, 0.5, 1, 0, 0}, {0.25, 0.75, 0, 0.5493061443, 1e-10},
		{0, 0.5, 0, math.Ln2, 1e-15},
	} {
		for _, mirrored := range []bool{false, true} {
			if mirrored {
				v.x, v.y = 1-v.x, 1-v.y
			}
			if got := divergence.KLNoisy(v.x, v.y, v.v); !(math.Abs(got-v.want) <= v.within) {
				t.Errorf("KLNoisy(%v, %v, %v) = %v, want %v", v.x, v.y, v.v, got, v.want)
			}
		}
	}
	for _, v := range [][3]float64{{-1, 0, 1}, {0, 2, 1}, {0, 1, -1}, {0, 1, math.NaN()},
		{0, 1, math.Inf(1)}, {math.NaN(), 0, 1}} {
		if got := divergence.KLNoisy(v[0], v[1], v[2]); !math.IsNaN(got) {
			t.Errorf("KLNoisy(%v) = %v", v, got)
		}
	}
}

// The definition, its bounds, and how it moves with each of its arguments.
func TestKLNoisyIsTheSupremum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, y := rapid.SampledFrom(gridMeans).Draw(t, "x"), rapid.SampledFrom(gridMeans).Draw(t, "y")
		v := math.Exp(rapid.Float64Range(-12, 8).Draw(t, "log v"))
		got := divergence.KLNoisy(x, y, v)
		a, b, b1 := x, y, 1-y
		if a > b {
			a, b, b1 = 1-x, 1-y, y
		}
		want := 0.0
		if d := math.Abs(x - y); d > 0 {
			want = -golden(0, d/v, func(l float64) float64 { // −(λx − …), in e^{−λ}
				if b1 == 0 {
					return v*l*l/2 - l*d
				}
				if l > 1 { // 1 + b(e^{−l} − 1) would cancel
					return l*a + math.Log(b1+b*math.Exp(-l)) + v*l*l/2
				}
				return l*a + math.Log1p(b*math.Expm1(-l)) + v*l*l/2
			})
		}
		if math.Abs(got-want) > 1e-9*want+1e-15 {
			t.Fatalf("KLNoisy(%v, %v, %v) = %v, want %v", x, y, v, got, want)
		}
		if d := x - y; got < d*d/(2*(0.25+v))*(1-1e-9) || got > divergence.KL(x, y)*(1+1e-9) {
			t.Fatalf("KLNoisy(%v, %v, %v) = %v: out of its bounds", x, y, v, got)
		}
		if more := divergence.KLNoisy(x, y, 1.5*v); more > got*(1+1e-9) {
			t.Fatalf("KLNoisy(%v, %v, %v) = %v, with more noise %v", x, y, v, got, more)
		}
	})
}

// The bound on the tail holds, to the mass of the binomial law and the normal tail; with half of
// the variance it does not, so that noise is not counted twice.
func TestKLNoisyBoundsTheTail(t *testing.T) {
	broken := 0
	for _, n := range []int{1, 5, 20, 100, 400} {
		for _, mu := range []float64{0.1, 0.5, 0.75, 0.98} {
			for _, sigma := range []float64{0.3, 1, 10, 40} {
				for _, x := range []float64{0, 0.05, 0.2, 0.4, 0.45, 0.6, 0.7, 0.9} {
					if x >= mu {
						continue
					}
					p, mass := 0.0, math.Pow(1-mu, float64(n)) // of Binomial(n, μ) at k
					for k := range n + 1 {
						p += mass * math.Erfc((float64(k)-float64(n)*x)/(sigma*math.Sqrt2)) / 2
						mass *= float64(n-k) / float64(k+1) * mu / (1 - mu)
					}
					v := sigma * sigma / float64(n)
					if bound := math.Exp(-float64(n) * divergence.KLNoisy(x, mu, v)); p > bound*(1+1e-9) {
						t.Errorf("n = %d, μ = %v, σ = %v: P(mean ≤ %v) = %v, bounded by %v", n, mu, sigma, x,
							p, bound)
					}
					if p > math.Exp(-float64(n)*divergence.KLNoisy(x, mu, v/2)) {
						broken++
					}
				}
			}
		}
	}
	if broken == 0 {
		t.Error("the bound with half the noise's variance holds everywhere")
	}
}

// The upper end is where J_v is c, a little above it and never below; J_v(0,1) = 1/(2v) makes 1 of it.
func TestKLNoisyUpper(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.SampledFrom(gridMeans).Draw(t, "x")
		v := math.Exp(rapid.Float64Range(-12, 8).Draw(t, "log v"))
		c := math.Exp(rapid.Float64Range(-12, 4).Draw(t, "log c"))
		y := divergence.KLNoisyUpper(x, c, v)
		if !(y >= x && y <= 1) {
			t.Fatalf("KLNoisyUpper(%v, %v, %v) = %v", x, c, v, y)
		}
		got := divergence.KLNoisy(x, min(y, max(x, 1-1e-9)), v) // nearer to 1 rounding decides
		if y < 1-1e-9 && got < float64(c*(1-1e-7)) || got > float64(c*1.0001) {
			t.Fatalf("KLNoisyUpper(%v, %v, %v) = %v, where the divergence is %v", x, c, v, y, got)
		}
	})
	for _, v := range []struct{ x, c, v, want float64 }{
		{0, 0.25, 2, 1}, {1, 0.1, 1, 1}, {0.3, 0, 1, 0.3}, {0, math.Ln2, 0, 0.5},
	} {
		if got := divergence.KLNoisyUpper(v.x, v.c, v.v); math.Abs(got-v.want) > 1e-6 {
			t.Errorf("KLNoisyUpper(%v, %v, %v) = %v, want %v", v.x, v.c, v.v, got, v.want)
		}
	}
	for _, v := range [][3]float64{{-1, 1, 1}, {0, -1, 1}, {0, 1, -1}, {0, math.Inf(1), 1}, {math.NaN(), 1, 1}} {
		if got := divergence.KLNoisyUpper(v[0], v[1], v[2]); !math.IsNaN(got) {
			t.Errorf("KLNoisyUpper(%v) = %v", v, got)
		}
	}
}
