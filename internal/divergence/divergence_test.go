package divergence_test

import (
	"fmt"
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/sotto-dp/sotto/internal/divergence"
)

const prec = 400

func bf(x float64) *big.Float { return new(big.Float).SetPrec(prec).SetFloat64(x) }

func zero() *big.Float { return new(big.Float).SetPrec(prec) }

// bigLog is log x to about 300 bits for 0 < x: x = m·2^e with m in [½,1), and log m = 2
// artanh((m−1)/(m+1)).
func bigLog(x *big.Float) *big.Float {
	artanh2 := func(r *big.Float) *big.Float {
		s := zero().Mul(r, r)
		sum, pow := zero(), zero().Set(r)
		for k := 1; k < 250; k += 2 {
			sum.Add(sum, zero().Quo(pow, bf(float64(k))))
			pow.Mul(pow, s)
		}
		return sum.Mul(sum, bf(2))
	}
	m := zero()
	e := x.MantExp(m)
	l := artanh2(zero().Quo(zero().Sub(m, bf(1)), zero().Add(m, bf(1))))
	ln2 := artanh2(zero().Quo(bf(1), bf(3)))
	return l.Add(l, ln2.Mul(ln2, bf(float64(e))))
}

// bigKL is the printed formula for 0 < p,q < 1.
func bigKL(p, q float64) *big.Float {
	P, Q := bf(p), bf(q)
	P1, Q1 := zero().Sub(bf(1), P), zero().Sub(bf(1), Q)
	a := zero().Mul(P, bigLog(zero().Quo(P, Q)))
	b := zero().Mul(P1, bigLog(zero().Quo(P1, Q1)))
	return a.Add(a, b)
}

// solves says whether q is within tol of the q in [p,1] with kl(p,q) = c, by the sign of kl −
// c on either side.
func solves(p, c, q, tol float64) bool {
	below, above := q-tol, q+tol
	return (below <= p || bigKL(p, below).Cmp(bf(c)) <= 0) && (above >= 1 || bigKL(p, above).Cmp(bf(c)) >= 0)
}

func TestKLAgainstBigFloats(t *testing.T) {
	means := []float64{1e-40, 1e-12, 1e-3, 0.1, 0.25, 0.3, 0.5, 0.75, 0.9, 0.999, 1 - 1e-12}
	var pairs [][2]float64
	for _, p := range means {
		for _, q := range means {
			pairs = append(pairs, [2]float64{p, q})
		}
		for _, d := range []float64{1e-15, 1e-12, 1e-9, 1e-6, 1e-4, 1e-3, 0.01, 0.05, 0.2, 0.3} {
			pairs = append(pairs, [2]float64{p, p + d}, [2]float64{p, p - d},
				[2]float64{p, p * (1 + d)}, [2]float64{p, p * (1 - d)})
		}
	}
	for _, c := range pairs {
		p, q := c[0], c[1]
		if p == q || q <= 0 || q >= 1 {
			continue
		}
		want, _ := bigKL(p, q).Float64()
		got := divergence.KL(p, q)
		if math.Abs(got-want) > 1e-14*want {
			t.Errorf("KL(%g, %g) = %.17g, want %.17g: relative error %.2g", p, q, got, want,
				math.Abs(got-want)/want)
		}
	}
}

func TestKLEdges(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	tiny := math.SmallestNonzeroFloat64
	for _, c := range []struct{ p, q, want float64 }{
		{0, 0, 0}, {1, 1, 0}, {0.3, 0.3, 0},
		{0, 1, inf}, {1, 0, inf}, {0.5, 0, inf}, {0.5, 1, inf}, {tiny, 0, inf},
		{0, 0.5, math.Ln2}, {1, 0.5, math.Ln2}, {tiny, 0.5, math.Ln2},
		{0.5, 0.25, 0.5*math.Log(2) + 0.5*math.Log(2.0/3)},
		{nan, 0.5, nan}, {0.5, nan, nan}, {-0.1, 0.5, nan}, {0.5, 1.1, nan}, {inf, 0.5, nan},
	} {
		got := divergence.KL(c.p, c.q)
		if got != c.want && !(math.Abs(got-c.want) <= 1e-15) && !(math.IsNaN(got) && math.IsNaN(c.want)) {
			t.Errorf("KL(%g, %g) = %g, want %g", c.p, c.q, got, c.want)
		}
	}
}

func TestKLUpperAgainstBigFloats(t *testing.T) {
	for _, p := range []float64{1e-300, 1e-17, 1e-9, 1e-4, 0.01, 0.1, 0.3, 0.5, 0.75, 0.9, 0.99,
		1 - 1e-6, 1 - 1e-12} {
		for _, c := range []float64{1e-300, 1e-20, 1e-14, 1e-9, 1e-6, 1e-4, 1e-3, 0.01, 0.1, 0.5, 1,
			2, 5, 10, 20, 35} {
			want := divergence.KLUpper(p, c)
			if !solves(p, c, want, 1e-12) {
				t.Errorf("KLUpper(%g, %g) = %.17g is off by more than 1e-12", p, c, want)
			}
			for _, start := range []float64{p, 0, 1, math.NaN(), math.Inf(1), (p + 1) / 2, want,
				want + 1e-3*(1-want), want - 1e-3*(want-p), p + 1e-9, 1 - 1e-16} {
				if got := divergence.KLUpperFrom(p, c, start); math.Abs(got-want) > 1e-12 &&
					!solves(p, c, got, 1e-12) {
					t.Errorf("KLUpperFrom(%g, %g, %g) = %.17g, want %.17g: error %.2g", p, c, start,
						got, want, got-want)
				}
			}
			if low := divergence.KLLower(p, c); !solves(1-p, c, 1-low, 1.001e-12) {
				t.Errorf("KLLower(%g, %g) = %.17g is off by more than 1e-12", p, c, low)
			}
		}
	}
}

func TestKLUpperEdges(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct{ p, c, up, low float64 }{
		{0, 0, 0, 0}, {1, 0, 1, 1}, {0.4, 0, 0.4, 0.4},
		{0, 2, 1 - math.Exp(-2), 0}, {1, 2, 1, math.Exp(-2)},
		{0, inf, 1, 0}, {0.4, inf, 1, 0}, {1, inf, 1, 0}, {0.4, 1e6, 1, 0},
		{nan, 1, nan, nan}, {0.5, nan, nan, nan}, {0.5, -1, nan, nan}, {-0.1, 1, nan, nan}, {1.1, 1, nan, nan},
	} {
		same := func(a, b float64) bool { return math.Abs(a-b) <= 1e-15 || math.IsNaN(a) && math.IsNaN(b) }
		if got := divergence.KLUpper(c.p, c.c); !same(got, c.up) {
			t.Errorf("KLUpper(%g, %g) = %g, want %g", c.p, c.c, got, c.up)
		}
		if got := divergence.KLUpperFrom(c.p, c.c, 0.7); !same(got, c.up) {
			t.Errorf("KLUpperFrom(%g, %g, 0.7) = %g, want %g", c.p, c.c, got, c.up)
		}
		if got := divergence.KLLower(c.p, c.c); !same(got, c.low) {
			t.Errorf("KLLower(%g, %g) = %g, want %g", c.p, c.c, got, c.low)
		}
	}
}

// level draws c on a logarithmic scale.
func level(t *rapid.T) float64 { return math.Exp(rapid.Float64Range(-40, 4).Draw(t, "log c")) }

func TestKLUpperProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.Float64Range(0, 1).Draw(t, "p")
		c := level(t)
		q := divergence.KLUpper(p, c)
		if !(p <= q && q <= 1) {
			t.Fatalf("KLUpper(%g, %g) = %g is outside [p, 1]", p, c, q)
		}
		if low := divergence.KLLower(p, c); !(0 <= low && low <= p) {
			t.Fatalf("KLLower(%g, %g) = %g is outside [0, p]", p, c, low)
		}
		if divergence.TV(p, q) > math.Sqrt(c/2)+1e-12 {
			t.Fatalf("KLUpper(%g, %g) = %g is above Pinsker's bound", p, c, q)
		}
		// kl(p,q) = c, up to what half an ulp of q and the promised error make of it.
		if d := q - p; d > 1e-6 && 1-q > 1e-6 {
			slope := d / (q * (1 - q))
			if got := divergence.KL(p, q); math.Abs(got-c) > 1e-12*slope+1e-14*c {
				t.Fatalf("kl(%g, KLUpper(p, %g)) = %g", p, c, got)
			}
		}
		more := c * (1 + rapid.Float64Range(0, 1).Draw(t, "more"))
		if up := divergence.KLUpper(p, more); up < q-1e-12 {
			t.Fatalf("KLUpper(%g, ·) falls from %g to %g between %g and %g", p, q, up, c, more)
		}
		p2 := p + (1-p)*rapid.Float64Range(0, 1).Draw(t, "p2")
		if up := divergence.KLUpper(p2, c); up < q-1e-12 {
			t.Fatalf("KLUpper(·, %g) falls from %g to %g between %g and %g", c, q, up, p, p2)
		}
		starts := rapid.SliceOfN(rapid.Float64Range(0, 1), 20, 20).Draw(t, "starts")
		for i, start := range starts {
			if start = p + (1-p)*start; i%2 == 0 {
				start = 1 - (1-p)*math.Exp(-30*starts[i])
			}
			if from := divergence.KLUpperFrom(p, c, start); math.Abs(from-q) > 1e-12 {
				t.Fatalf("KLUpperFrom(%g, %g, %g) = %g, KLUpper = %g", p, c, start, from, q)
			}
		}
	})
}

// What KLUpperSide is sure of must be so of the numbers that KLUpper returns, also where q
// is next to them.
func TestKLUpperSide(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, c := rapid.Float64Range(0, 1).Draw(t, "p"), level(t)
		index := divergence.KLUpper(p, c)
		q := rapid.OneOf(rapid.Float64Range(0, 1), rapid.Just(1.0),
			rapid.Map(rapid.Float64Range(-34, -1), func(e float64) float64 {
				return index + math.Exp(e)
			}),
			rapid.Map(rapid.Float64Range(-34, -1), func(e float64) float64 {
				return index - math.Exp(e)
			})).Draw(t, "q")
		q = min(max(q, 0), 1)
		switch side := divergence.KLUpperSide(p, c, q); {
		case side > 0 && !(index > q), side < 0 && !(index < q):
			t.Errorf("KLUpperSide(%v, %v, %v) = %d, and KLUpper = %v", p, c, q, side, index)
		case side == 0 && math.Abs(index-q) > 1e-9 && math.Abs(p-q) > 1e-9 && q < 1-1e-9:
			t.Errorf("KLUpperSide(%v, %v, %v) does not know, and KLUpper = %v", p, c, q, index)
		}
	})
	for _, x := range []struct {
		p, c, q float64
		want    int
	}{
		// KLUpper(½, 0.1) = 0.7128786
		{0.5, 0.1, 0.6, 1}, {0.5, 0.1, 0.71287, 1}, {0.5, 0.1, 0.71288, -1}, {0.5, 0.1, 0.72, -1},
		{0.5, 0.1, 0.9, -1},
		{0.5, math.Inf(1), 0.9, 1}, {0.5, math.Inf(1), 1, 0}, {1, 1, 0.5, 1}, {1, 1, 1, 0},
		{0, 0.1, 0.5, -1}, {0, 1, 0.5, 1}, {0.5, 0.1, 1, -1}, {0, 0, 0, 0},
		{math.NaN(), 1, 1, 0}, {1, math.NaN(), 1, 0}, {1, 1, math.NaN(), 0}, {2, 1, 0, 0}, {0, -1, 0, 0},
	} {
		if got := divergence.KLUpperSide(x.p, x.c, x.q); got != x.want {
			t.Errorf("KLUpperSide(%v, %v, %v) = %d, want %d", x.p, x.c, x.q, got, x.want)
		}
	}
}

func TestKLProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.Float64Range(0, 1).Draw(t, "p")
		q := rapid.Float64Range(0, 1).Draw(t, "q")
		d := divergence.KL(p, q)
		if tv := divergence.TV(p, q); !(d >= 2*tv*tv*(1-1e-14)) {
			t.Fatalf("KL(%g, %g) = %g is below Pinsker's 2·%g²", p, q, d, tv)
		}
		if mirror := divergence.KL(1-p, 1-q); p > 1e-3 && q > 1e-3 && p < 0.999 && q < 0.999 &&
			math.Abs(mirror-d) > 1e-12*(d+1e-3) {
			t.Fatalf("KL(%g, %g) = %g, mirrored %g", p, q, d, mirror)
		}
	})
}

func TestAllocs(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() {
		sink = divergence.KLUpper(0.3, 0.01) + divergence.KL(0.3, 0.4)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func ExampleKL() {
	fmt.Printf("%.6f\n", divergence.KL(0.5, 0.75))
	// Output: 0.143841
}

func ExampleKLUpper() {
	// The index of KL-UCB for an arm with mean 0.4 over 100 rewards, at the level log f(t) = 10.
	q := divergence.KLUpper(0.4, 10.0/100)
	fmt.Printf("%.4f %.4f\n", q, divergence.KL(0.4, q))
	// Output: 0.6213 0.1000
}

func ExampleTV() {
	fmt.Printf("%.2f\n", divergence.TV(0.25, 0.75))
	// Output: 0.50
}

var sink float64

func BenchmarkKL(b *testing.B) {
	b.ReportAllocs()
	for i := range b.N {
		sink += divergence.KL(0.3, 0.35+float64(i&255)/1000)
	}
}

func BenchmarkKLUpper(b *testing.B) {
	for _, c := range []float64{1e-6, 1e-4, 1e-2, 0.1, 1, 10} {
		b.Run(fmt.Sprint(c), func(b *testing.B) {
			b.ReportAllocs()
			for i := range b.N {
				sink += divergence.KLUpper(0.05+float64(i&255)/300, c)
			}
		})
	}
}

func BenchmarkKLUpperFrom(b *testing.B) {
	b.ReportAllocs()
	q := 0.5
	for i := range b.N {
		q = divergence.KLUpperFrom(0.45, 0.01*(1+float64(i&255)*1e-5), q)
	}
	sink = q
}

// The series is longest where it takes over from the logarithm, at q/p or (1−q)/(1−p) of 3/4 and
// 5/4. From 40 digits elsewhere.
func TestKLWhereTheSeriesIsLongest(t *testing.T) {
	for _, c := range [][3]float64{
		{0.5, 0.5625, 0.0078741784840695843}, {0.5, 0.59375, 0.0178945539257926396},
		{0.25, 0.3125, 0.00947264491366988568},
		{0.5, 0.625, 0.0322692605687855858}, {0.5, 0.375, 0.0322692605687855858},
		{0.125, 0.15625, 0.00392874473523927406},
		{0.875, 0.84375, 0.00392874473523927406}, {0.75, 0.625, 0.0353748905684248742},
	} {
		if got := divergence.KL(c[0], c[1]); math.Abs(got-c[2]) > 4e-15*c[2] {
			t.Errorf("kl(%v, %v) = %.17g, want %.17g", c[0], c[1], got, c[2])
		}
	}
}
