package noise

import (
	"math"
	"testing"

	"github.com/sotto-dp/sotto/internal/testkit"
)

// draws is how often most laws are drawn from, and allDraws how often rare values and twins that are
// only a little off need it.
const allDraws = 1_000_000

var draws = testkit.Size(300_000, allDraws)

// drawsAt is how many it takes to see other values than 0 at a scale.
func drawsAt(scale float64) int {
	if scale < 0.2 {
		return allDraws
	}
	return draws
}

func laplaceCDF(x float64) float64 {
	if x < 0 {
		return math.Exp(x) / 2
	}
	return 1 - math.Exp(-x)/2
}

func normalCDF(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }

func exponentialCDF(x float64) float64 { return -math.Expm1(-max(x, 0)) }

// Each law in 400 cells, fine enough to see a layer of the ziggurat, and again beyond the
// start of the tail.
func TestContinuousLaws(t *testing.T) {
	f := testStream("continuous")
	checkP(t, "exponential", chiSquareP(draws, f.Exponential, grid(0, 10, 400), exponentialCDF))
	checkP(t, "laplace", chiSquareP(draws, func() float64 {
		return f.Laplace(3)
	}, grid(-30, 30, 400), func(x float64) float64 { return laplaceCDF(x / 3) }))
	checkP(t, "normal", chiSquareP(draws, f.Normal, grid(-4.5, 4.5, 400), normalCDF))
	checkP(t, "float64", chiSquareP(draws, f.Float64, grid(0, 1, 400), func(x float64) float64 {
		return min(max(x, 0), 1)
	}))

	// The same test must see a Laplace variate 1 % too narrow, one whose sign is not fair, a normal
	// variate for a Laplace one.
	checkCaught(t, "narrow", chiSquareP(allDraws, func() float64 {
		return f.Laplace(0.98)
	}, grid(-10, 10, 400), laplaceCDF))
	checkCaught(t, "one-sided", chiSquareP(draws, f.Exponential, grid(-10, 10, 400), laplaceCDF))
	checkCaught(t, "normal", chiSquareP(draws, func() float64 {
		return math.Sqrt2 * f.Normal()
	}, grid(-10, 10, 400), laplaceCDF))
	checkCaught(t, "rounded", chiSquareP(draws, func() float64 {
		return math.Round(256*f.Laplace(1)) / 256
	}, grid(-10, 10, 4000), laplaceCDF))
}

// The tails are rare, so draw them alone: the edge functions go on from a word in the base layer
// beyond its certain part.
func TestTails(t *testing.T) {
	f := testStream("tails")
	const tail = ^uint64(0) &^ layerBits
	exp := func() float64 { return f.exponentialEdge(tail) }
	checkP(t, "exponential tail", chiSquareP(draws, exp, grid(expTail, expTail+12, 400),
		func(x float64) float64 {
			return exponentialCDF(x - expTail)
		}))
	top := math.Erfc(normalTailStart / math.Sqrt2)
	checkP(t, "normal tail", chiSquareP(draws, f.normalTail, grid(normalTailStart, 6, 400),
		func(x float64) float64 {
			return 1 - math.Erfc(max(x, normalTailStart)/math.Sqrt2)/top
		}))
	checkP(t, "normal edge", chiSquareP(draws, func() float64 {
		return f.normalEdge(tail)
	}, grid(normalTailStart, 6, 400), func(x float64) float64 {
		return 1 - math.Erfc(max(x, normalTailStart)/math.Sqrt2)/top
	}))
}

func TestContinuousMoments(t *testing.T) {
	f := testStream("moments")
	// The variance of x² is E x⁴ − (E x²)²: 20 for the exponential and the Laplace law, 2
	// for the normal law.
	checkMean(t, "exponential", draws, f.Exponential, 1, 1)
	checkMean(t, "exponential²", draws, func() float64 { x := f.Exponential(); return x * x }, 2, math.Sqrt(20))
	checkMean(t, "laplace", draws, func() float64 { return f.Laplace(1) }, 0, math.Sqrt2)
	checkMean(t, "laplace²", draws, func() float64 { x := f.Laplace(1); return x * x }, 2, math.Sqrt(20))
	checkMean(t, "normal", draws, f.Normal, 0, 1)
	checkMean(t, "normal²", draws, func() float64 { x := f.Normal(); return x * x }, 1, math.Sqrt2)
	if x := f.Laplace(0); x != 0 {
		t.Errorf("Laplace(0) is %v", x)
	}
}

// Every layer has the area of the base layer, and its certain part is under the curve.
func TestZigguratTables(t *testing.T) {
	check := func(name string, layers *[256]layer, heights *[257]float64, start float64,
		f func(float64) float64, tail float64) {
		area := start*f(start) + tail
		x := func(i int) float64 {
			if i == 256 {
				return 0
			}
			return layers[i].w * 0x1p53
		}
		if math.Abs(x(0)*f(start)/area-1) > 1e-13 || math.Abs(x(1)/start-1) > 1e-13 {
			t.Errorf("%s: base layer", name)
		}
		for i := range layers {
			if i > 0 && math.Abs(x(i)*(heights[i+1]-heights[i])/area-1) > 1e-11 {
				t.Errorf("%s: area of layer %d is %v, want %v", name, i, x(i)*(heights[i+1]-heights[i]), area)
			}
			if math.Abs(heights[i+1]-f(x(i+1))) > 1e-15 {
				t.Errorf("%s: height %d is %v, want %v", name, i+1, heights[i+1], f(x(i+1)))
			}
			if math.Abs(float64(layers[i].k)*layers[i].w-x(i+1)) > 2e-15 {
				t.Errorf("%s: certain part of layer %d ends at %v, want %v", name, i,
					float64(layers[i].k)*layers[i].w, x(i+1))
			}
		}
	}
	check("exponential", &expLayers, &expHeights, expTail, func(x float64) float64 {
		return math.Exp(-x)
	}, math.Exp(-expTail))
	check("normal", &normalLayers, &normalHeights, normalTailStart, func(x float64) float64 {
		return math.Exp(-x * x / 2)
	},
		math.Sqrt(math.Pi/2)*math.Erfc(normalTailStart/math.Sqrt2))
}

func TestBernoulli(t *testing.T) {
	f := testStream("bernoulli")
	for _, p := range []float64{0.5, 0.3, 0.001, 1 - 1e-3} {
		checkMean(t, "bernoulli", draws, func() float64 {
			if f.Bernoulli(p) {
				return 1
			}
			return 0
		}, p, math.Sqrt(p*(1-p)))
	}
	for _, p := range []float64{0, -1, math.NaN(), math.Inf(-1)} {
		if f.Bernoulli(p) {
			t.Errorf("Bernoulli(%v)", p)
		}
	}
	for _, p := range []float64{1, 2, math.Inf(1)} {
		for range 100 {
			if !f.Bernoulli(p) {
				t.Errorf("not Bernoulli(%v)", p)
			}
		}
	}
	// Where the first 53 digits tie the rest decides: p = (j + 1/4)·2^-53 comes true one time in
	// four when the word's digits are j.
	hits, n := 0.0, 0.0
	for _, g := range (Key{Seed: 1}).Fast(200_000) {
		peek := g
		j := float64(peek.Uint64() >> 11)
		if j >= 1<<51 {
			continue // j + 1/4 is no double
		}
		n++
		if g.Bernoulli((j + 0.25) * 0x1p-53) {
			hits++
		}
	}
	if sd := math.Sqrt(n * 3 / 16); math.Abs(hits-n/4) > 4.9*sd { // 4.9 sd: 1e-6
		t.Errorf("%v of %v ties come true, want a quarter", hits, n)
	}
}

// FuzzBinomial: any n and p give a count from 0 to n.
func FuzzBinomial(f *testing.F) {
	f.Add(uint64(1), int64(100), 0.3)
	f.Add(uint64(2), int64(1)<<53, 1e-300)
	f.Add(uint64(3), int64(1)<<53, 1-0x1p-53)
	f.Add(uint64(4), int64(-5), math.NaN())
	f.Add(uint64(5), int64(64), 5e-324)
	f.Fuzz(func(t *testing.T, seed uint64, n int64, p float64) {
		for n > most {
			n >>= 10
		}
		s := NewFast(seed, 0)
		if k := s.Binomial(int(n), p); k < 0 || k > max(0, int(n)) {
			t.Errorf("Binomial(%d, %v) = %d", n, p, k)
		}
	})
}
