package noise

import (
	"fmt"
	"math"
	"math/big"
	"testing"

	"github.com/sotto-dp/sotto/internal/testkit"
)

// most is the largest number of coins.
const most = min(1<<53, math.MaxInt)

// lgammaPMF is good to 1e-9 up to n = 1e6.
func lgammaPMF(n, p, k float64) float64 {
	lg := func(x float64) float64 { v, _ := math.Lgamma(x); return v }
	return math.Exp(lg(n+1) - lg(k+1) - lg(n-k+1) + k*math.Log(p) + (n-k)*math.Log1p(-p))
}

// binomialCells returns cuts and the distribution function at them: all integers with the summed
// probability mass up to n = 1e6, and above that the Edgeworth series with its first three terms,
// whose error is of order (npq)^{-3/2}.
func binomialCells(n int, p float64) ([]float64, func(float64) float64) {
	N, q := float64(n), 1-p
	mean, sd := N*p, math.Sqrt(N*p*q)
	if n <= 1e6 {
		lo, hi := int(math.Max(0, mean-8*sd-20)), int(math.Min(N, mean+8*sd+40))
		cum := map[float64]float64{}
		s := 0.0
		for k := lo; k <= hi; k++ {
			s += lgammaPMF(N, p, float64(k))
			cum[float64(k)] = s
		}
		cuts := integers(lo, hi)
		if sd > 50 {
			cuts = floors(grid(mean-4.5*sd, mean+4.5*sd, 300))
		}
		return cuts, func(x float64) float64 { return cum[x] }
	}
	skew, kurt := (q-p)/sd, (1-6*p*q)/(sd*sd)
	return floors(grid(mean-4.5*sd, mean+4.5*sd, 300)), func(x float64) float64 {
		z := ((x - mean) + 0.5) / sd
		h2, h3, h5 := z*z-1, z*z*z-3*z, math.Pow(z, 5)-10*z*z*z+15*z
		phi := math.Exp(-z*z/2) / math.Sqrt(2*math.Pi)
		// The last summand turns the sum over integers into the integral (Euler–Maclaurin).
		return normalCDF(z) - phi*(skew*h2/6+kurt*h3/24+skew*skew*h5/72-z/(24*sd*sd))
	}
}

func TestBinomialLaw(t *testing.T) {
	testkit.OneGoroutine(t)
	for _, c := range []struct {
		n int
		p float64
	}{
		// in the lanes of a word or two
		{1, 0.3}, {2, 0.5}, {7, 0.9}, {50, 0.5}, {50, 0.75}, {50, 0.3}, {50, 0.01}, {63, 0.99},
		{64, 0.6}, {65, 0.1}, {100, 0.3}, {128, 0.9},
		// both sides of np = 10
		{129, 0.0774}, {129, 0.0776}, {129, 0.5}, {200, 0.0499}, {200, 0.0501}, {200, 0.9501}, {200, 0.9499},
		{1000, 0.00999}, {1000, 0.01001}, {1000, 0.3}, {1000, 0.001}, {1000, 0.9999},
		{1e6, 1e-6}, {1e6, 5e-6}, {1e6, 1.1e-5}, {1e6, 0.3}, {1e6, 0.5}, {1e6, 0.9},
		{1e9, 0.3}, {1e9, 0.999}, {min(1e12, math.MaxInt), 0.3}, {min(1e12, math.MaxInt), 0.75},
		{most, 0.3}, {most, 1e-9},
	} {
		name := fmt.Sprintf("n=%g/p=%g", float64(c.n), c.p)
		cuts, cdf := binomialCells(c.n, c.p)
		f := testStream("binomial " + name)
		checkP(t, name, chiSquareP(200_000, func() float64 { return float64(f.Binomial(c.n, c.p)) }, cuts, cdf))
		mean, v := float64(c.n)*c.p, float64(c.n)*c.p*(1-c.p)
		checkMean(t, name, 50_000, func() float64 {
			return float64(f.Binomial(c.n, c.p)) - mean
		}, 0, math.Sqrt(v))
		fourth := v * (1 + 3*v - 6*v/float64(c.n)) // central
		checkMean(t, name+" variance", 50_000, func() float64 {
			d := float64(f.Binomial(c.n, c.p)) - mean
			return d * d
		}, v, math.Sqrt(fourth-v*v))
	}
}

func TestBinomialBrokenTwins(t *testing.T) {
	const n, p, draws = 150, 0.3, 200_000
	cuts, cdf := binomialCells(n, p)
	f := testStream("twins")
	for name, draw := range map[string]func() float64{
		"normal":      func() float64 { return math.Round(n*p + math.Sqrt(n*p*(1-p))*f.Normal()) },
		"off by one":  func() float64 { return float64(f.Binomial(n, p) + 1) },
		"one too few": func() float64 { return float64(f.Binomial(n-1, p)) },
		"p of 1 %":    func() float64 { return float64(f.Binomial(n, p*1.01)) },
		"no density": func() float64 { // the hat without the rejection
			h := newBinomialHat(n, p)
			u := f.Float64() - 0.5
			return h.centre + math.Floor((2*h.a/(0.5-math.Abs(u))+h.b)*u+h.c)
		},
		"Poisson": func() float64 { return float64(f.Binomial(1e6, n*p/1e6)) },
	} {
		checkCaught(t, name, chiSquareP(draws, draw, cuts, cdf))
	}
}

func TestBinomialEnds(t *testing.T) {
	f := testStream("ends")
	for _, c := range []struct {
		n    int
		p    float64
		want int
	}{
		{0, 0.5, 0}, {-3, 0.5, 0}, {10, 0, 0}, {10, -1, 0}, {10, math.NaN(), 0}, {10, 1, 10},
		{10, 2, 10}, {10, math.Inf(1), 10},
		{most, 0, 0}, {most, 1, most}, {most, 5e-324, 0}, {64, 5e-324, 0}, {64, 1e-30, 0},
	} {
		if got := f.Binomial(c.n, c.p); got != c.want {
			t.Errorf("Binomial(%d, %v) = %d, want %d", c.n, c.p, got, c.want)
		}
	}
	// 2^53·2^-53 failures: the law of n−k is Poisson(1) to 1e-16.
	poisson := func(x float64) float64 {
		s, term := 0.0, math.Exp(-1)
		for i := 0.0; i <= x; i++ {
			s += term
			term /= i + 1
		}
		return s
	}
	checkP(t, "1−p = 2^-53", chiSquareP(200_000, func() float64 {
		return float64(most - f.Binomial(most, 1-0x1p-53))
	}, integers(0, 20), poisson))
	checkP(t, "p = 2^-53", chiSquareP(200_000, func() float64 {
		return float64(f.Binomial(most, 0x1p-53))
	}, integers(0, 20), poisson))
}

// The hat is above the density and the squeeze below it, everywhere: this is what makes
// rejection exact.
func TestBinomialHat(t *testing.T) {
	for _, c := range []struct{ n, p float64 }{
		{129, 0.078}, {129, 0.5}, {200, 0.05}, {200, 0.3}, {1000, 0.01}, {1000, 0.5}, {1e6, 1e-5},
		{1e6, 0.3}, {1e9, 1e-8}, {1e12, 0.5}, {1 << 53, 0.3}, {1 << 53, 0x1p-49},
	} {
		h := newBinomialHat(c.n, c.p)
		const steps = 20_000
		for i := 1; i < steps; i++ {
			u := float64(i)/steps - 0.5
			us := 0.5 - math.Abs(u)
			d := math.Floor((2*h.a/us+h.b)*u + h.c)
			if d < -h.centre || d > c.n-h.centre {
				if us >= 0.07 {
					t.Errorf("n=%g p=%g: the squeeze takes u=%v out of range", c.n, c.p, u)
				}
				continue
			}
			r := math.Exp(binomialLogRatio(c.n, c.p, h.centre, d)) / h.top(us)
			if r > 1 {
				t.Errorf("n=%g p=%g u=%v: density over hat is %v", c.n, c.p, u, r)
			}
			if us >= 0.07 && (0.92-r)*h.b > 4.2 {
				t.Errorf("n=%g p=%g u=%v: squeeze above the density %v", c.n, c.p, u, r)
			}
		}
	}
}

// The density against exact integer arithmetic, and for large n against high-precision sums of
// logarithms' series.
func TestBinomialLogRatio(t *testing.T) {
	exact := func(n, k, mode int64, p float64) float64 {
		// P(k)/P(mode) = C(n,k)/C(n,mode)·(p/q)^{k−mode}, in rationals
		r := new(big.Rat).SetFrac(new(big.Int).Binomial(n, k), new(big.Int).Binomial(n, mode))
		P := new(big.Rat).SetFloat64(p)
		odds := P.Quo(P, new(big.Rat).Sub(big.NewRat(1, 1), P))
		if k < mode {
			odds.Inv(odds)
		}
		for range max(k-mode, mode-k) {
			r.Mul(r, odds)
		}
		f, _ := new(big.Float).SetRat(r).Float64()
		return math.Log(f)
	}
	for _, c := range []struct {
		n, k int64
		p    float64
	}{{100, 30, 0.3}, {100, 0, 0.3}, {100, 1, 0.3}, {100, 17, 0.3}, {100, 60, 0.3}, {65, 65, 0.5},
		{65, 64, 0.5}, {300, 10, 0.1}, {1000, 480, 0.5}, {2000, 22, 0.01}} {
		centre := math.Floor(float64(c.n) * c.p)
		mode := int64(math.Floor(float64(c.n+1) * c.p))
		got, want := binomialLogRatio(float64(c.n), c.p, centre, float64(c.k)-centre),
			exact(c.n, c.k, mode, c.p)
		if math.Abs(got-want) > 2e-14*max(1, math.Abs(want)) {
			t.Errorf("n=%d p=%v k=%d: log ratio %v, want %v", c.n, c.p, c.k, got, want)
		}
	}
	// One standard deviation from the mode of 1e9 coins, where n·p is no double: half of its last
	// place would be 1e-12 here.
	const n, p, mode, k = 1e9, 0.3, 3e8, 3e8 + 14_491
	big100 := func(x float64) *big.Float { return new(big.Float).SetPrec(100).SetFloat64(x) }
	ratio, odds := big100(1), big100(p)
	odds.Quo(odds, new(big.Float).Sub(big100(1), big100(p)))
	for j := float64(mode); j < k; j++ {
		ratio.Mul(ratio, odds).Mul(ratio, big100(n-j)).Quo(ratio, big100(j+1))
	}
	r, _ := ratio.Float64()
	if got, want := binomialLogRatio(n, p, mode, k-mode), math.Log(r); math.Abs(got-want) > 2e-14 {
		t.Errorf("n=%g p=%v: log ratio %v, want %v", n, p, got, want)
	}
	// Neighbours: P(k+1)/P(k) = (n−k)/(k+1)·p/q. For n = 2^53 the ratio is 1 + O(1e-8), and the sum
	// must keep it to a few 1e-15.
	for _, n := range []float64{1e6, 1e9, 1e12, 1 << 53} {
		for _, p := range []float64{0.5, 0.3, 1e-5, 0x1p-49 * 1.5} {
			if n*p < 10 {
				continue
			}
			centre, sd := math.Floor(n*p), math.Sqrt(n*p*(1-p))
			for _, z := range []float64{-2.5, -1, 0, 1, 3} {
				d := math.Floor(z * sd)
				k := new(big.Float).SetPrec(300).SetFloat64(centre + d)
				ratio := new(big.Float).SetPrec(300).SetFloat64(n)
				ratio.Sub(ratio, k)
				ratio.Quo(ratio, new(big.Float).SetPrec(300).Add(k, big.NewFloat(1)))
				ratio.Mul(ratio, big.NewFloat(p))
				ratio.Quo(ratio, new(big.Float).SetPrec(300).Sub(big.NewFloat(1), big.NewFloat(p)))
				minus1, _ := ratio.Sub(ratio, big.NewFloat(1)).Float64()
				got := binomialLogRatio(n, p, centre, d+1) - binomialLogRatio(n, p, centre, d)
				if want := math.Log1p(minus1); math.Abs(got-want) > 2e-14 {
					t.Errorf("n=%g p=%g z=%v: log P(k+1)/P(k) = %v, want %v", n, p, z, got, want)
				}
			}
		}
	}
}
