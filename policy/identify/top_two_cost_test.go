package identify

import (
	"math"
	"testing"

	"github.com/sotto-dp/sotto/internal/divergence"
	"pgregory.net/rapid"
)

// brute is the infimum of the sum of two divergences on [b.Mean, a.Mean], by a grid that closes in
// on its least point.
func brute(a, b Sample, d func(s Sample, u float64) float64) float64 {
	if a.Mean <= b.Mean {
		return 0
	}
	lo, hi := b.Mean, a.Mean
	least := math.Inf(1)
	for range 10 {
		at, value := lo, math.Inf(1)
		const steps = 16
		for i := range steps + 1 {
			u := lo + (hi-lo)*float64(i)/steps
			if v := a.N*d(a, u) + b.N*d(b, u); v < value {
				at, value = u, v
			}
		}
		width := (hi - lo) / steps
		lo, hi, least = max(lo, at-width), min(hi, at+width), min(least, value)
	}
	return least
}

func sampleOf(t *rapid.T, name string, scale float64) Sample {
	mean := rapid.OneOf(rapid.Float64Range(0, 1),
		rapid.SampledFrom([]float64{0, 1, 0.5, 1e-9, 1 - 1e-9})).Draw(t, name)
	return Sample{Mean: mean, N: math.Exp(rapid.Float64Range(0, 10).Draw(t, name+" log n")),
		Noises: rapid.IntRange(1, 20).Draw(t, name+" noises"), Scale: scale}
}

func TestCostsByBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		scale := rapid.SampledFrom([]float64{0, 0.1, 0.5, 1, 2, 10, 100}).Draw(t, "scale")
		a, b := sampleOf(t, "a", scale), sampleOf(t, "b", scale)
		for _, c := range []struct {
			cost Cost
			d    func(s Sample, u float64) float64
			tol  float64
		}{
			{DEpsCost{}, func(s Sample, u float64) float64 {
				return divergence.DEps(s.Mean, u, s.epsilon())
			}, 1e-9},
			{NoisyCost{}, func(s Sample, u float64) float64 {
				return divergence.DEpsNoisy(s.Mean, u, s.epsilon(), float64(s.Noises)/s.N)
			}, 1e-9},
			{BernoulliCost{}, func(s Sample, u float64) float64 { return divergence.KL(s.Mean, u) }, 1e-9},
			{GaussianCost{0.5}, func(s Sample, u float64) float64 {
				return 2 * (s.Mean - u) * (s.Mean - u)
			}, 1e-9},
		} {
			got, want := c.cost.Between(a, b), brute(a, b, c.d)
			if !(math.Abs(got-want) <= c.tol*max(got, want)+1e-10) {
				t.Fatalf("%T(%+v, %+v) = %v, by brute force %v", c.cost, a, b, got, want)
			}
		}
	})
}

func TestCostsAgainstValues(t *testing.T) {
	// d_ε with all the weight on one side: the other mean is then the infimum's u.
	for _, c := range []struct{ x, u, epsilon, want float64 }{
		{0.75, 0.25, 0.1, 0.0490469825}, {0.75, 0.25, 1, 0.3926259805},
		{0.75, 0.25, 10, 0.5493061443}, {0.75, 0.625, 0.5, 0.0346418987}, {1, 0.5, 1, 0.379885493},
	} {
		a, b := Sample{Mean: c.x, N: 1, Scale: 1 / c.epsilon}, Sample{Mean: c.u, N: 1e15, Scale: 1 / c.epsilon}
		if got := (DEpsCost{}).Between(a, b); math.Abs(got-c.want) > 1e-8 {
			t.Errorf("d_ε(%v, %v) at ε = %v: %v, want %v", c.x, c.u, c.epsilon, got, c.want)
		}
	}
	a, b := Sample{Mean: 0.8, N: 30}, Sample{Mean: 0.5, N: 60}
	// 0.09·2/(1/30+1/60) = 0.18·20
	if got := (GaussianCost{0.5}).Between(a, b); !near(got, 3.6, 1e-14) {
		t.Errorf("(5.9): %v, want 3.6", got)
	}
	// 0.3·0.15·2·20
	if got := (PrivateGaussianCost{0.5, 0.05}).Between(a, b); !near(got, 1.8, 1e-14) {
		t.Errorf("(5.12): %v, want 1.8", got)
	}
	if got := (PrivateGaussianCost{0.5, 0.2}).Between(a, b); !near(got, 3.6, 1e-14) {
		t.Errorf("(5.12) with a gap below 3ε: %v, want that of (5.9)", got)
	}
	// Without noise DP-TT's costs are the likelihood ratio's; 30 kl(.8,.6) + 60 kl(.5,.6).
	want := 30*divergence.KL(0.8, 0.6) + 60*divergence.KL(0.5, 0.6)
	for _, c := range []Cost{BernoulliCost{}, DEpsCost{}, NoisyCost{}} {
		if got := c.Between(a, b); !near(got, want, 1e-13) {
			t.Errorf("%T without noise: %v, want %v", c, got, want)
		}
	}
}

var costs = []Cost{GaussianCost{0.5}, PrivateGaussianCost{0.5, 0.1}, BernoulliCost{}, DEpsCost{}, NoisyCost{}}

// The positive part, and what the lazy challenger and the proofs rest on: a cost does not fall when
// an arm has more rewards or a clearer mean.
func TestCostsAreMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		scale := rapid.SampledFrom([]float64{0, 0.1, 1, 10}).Draw(t, "scale")
		a, b := sampleOf(t, "a", scale), sampleOf(t, "b", scale)
		more := math.Exp(rapid.Float64Range(0, 2).Draw(t, "more"))
		up := rapid.Float64Range(0, 1).Draw(t, "up")
		for _, c := range costs {
			w := c.Between(a, b)
			if a.Mean <= b.Mean && w != 0 || !(w >= 0) {
				t.Fatalf("%T(%+v, %+v) = %v", c, a, b, w)
			}
			for _, change := range []func(a, b *Sample){
				func(a, b *Sample) { a.N *= more },
				func(a, b *Sample) { b.N *= more },
				func(a, b *Sample) { a.Mean += up * (1 - a.Mean) },
				func(a, b *Sample) { b.Mean -= up * b.Mean },
			} {
				x, y := a, b
				change(&x, &y)
				if v := c.Between(x, y); !(v >= w*(1-1e-9)-1e-9) {
					t.Fatalf("%T(%+v, %+v) = %v, but %v for (%+v, %+v)", c, a, b, w, v, x, y)
				}
			}
		}
	})
}

// Step 3 of JointThreshold's proof: if the answer a is wrong, W(a, best) is at most what says that
// a looks too good and what says that the best looks too bad.
func TestCostIsAtMostItsTwoFaults(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		scale := rapid.SampledFrom([]float64{0, 0.1, 1, 10}).Draw(t, "scale")
		a, best := sampleOf(t, "a", scale), sampleOf(t, "best", scale)
		low := rapid.Float64Range(0, 1).Draw(t, "μ_a")
		high := low + rapid.Float64Range(0, 1).Draw(t, "gap")*(1-low)
		fault := func(d func(x, u float64) float64) float64 {
			x, y := 0.0, 0.0
			if best.Mean < high {
				x = best.N * d(best.Mean, high)
			}
			if a.Mean > low {
				y = a.N * d(a.Mean, low)
			}
			return x + y
		}
		if w, f := (DEpsCost{}).Between(a, best), fault(func(x, u float64) float64 {
			return divergence.DEps(x, u, a.epsilon())
		}); w > f*(1+1e-12)+1e-12 {
			t.Fatalf("W = %v, X+Y = %v", w, f)
		}
		noisy := func(s Sample, u float64) float64 {
			return s.N * divergence.DEpsNoisy(s.Mean, u, s.epsilon(), float64(s.Noises)/s.N)
		}
		f := 0.0
		if best.Mean < high {
			f += noisy(best, high)
		}
		if a.Mean > low {
			f += noisy(a, low)
		}
		if w := (NoisyCost{}).Between(a, best); w > f*(1+1e-9)+1e-9 {
			t.Fatalf("noisy W = %v, X+Y = %v", w, f)
		}
	})
}
