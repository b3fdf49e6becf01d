package privacy

import (
	"math"
	"math/big"
	"testing"
)

// binomialMasses are the masses of Bin(n, p) as fractions, p a multiple of 2^-20: nothing is rounded.
func binomialMasses(n int, p float64) []*big.Rat {
	s := new(big.Rat).SetFloat64(p)
	f := new(big.Rat).Sub(big.NewRat(1, 1), s)
	power := func(x *big.Rat, k int) *big.Rat {
		y := big.NewRat(1, 1)
		for range k {
			y.Mul(y, x)
		}
		return y
	}
	out := make([]*big.Rat, n+1)
	for k := range out {
		m := new(big.Rat).SetInt(new(big.Int).Binomial(int64(n), int64(k)))
		out[k] = m.Mul(m.Mul(m, power(s, k)), power(f, n-k))
	}
	return out
}

// What the clones' range leaves out is added to δ. A bound that is too small would make δ a lie
// that no worked number shows, since the masses are below 10^-26 there; so the range is cut where
// they are large, and compared with exact sums.
func TestBinomialRangeBoundsWhatItCuts(t *testing.T) {
	cuts, ends := 0, 0
	for _, n := range []int{1, 2, 5, 30, 120} {
		for _, p := range []float64{1.0 / 1024, 0.125, 0.375, 0.5, 0.8125, 1 - 1.0/1024} {
			mass := binomialMasses(n, p)
			at := func(k int) float64 { x, _ := mass[k].Float64(); return x }
			for _, small := range []float64{0.05, 1e-3, 1e-6, 1e-12, 1e-26} {
				lo, hi, cut := binomialRange(float64(n), p, small)
				l, h := int(lo), int(hi)
				if float64(l) != lo || float64(h) != hi || l < 0 || h > n || l > h {
					t.Fatalf("Bin(%d, %v) to %v: from %v to %v", n, p, small, lo, hi)
				}
				// No further than needed: one step inside, the mass is above small, unless the
				// mode itself is not.
				mode := min(int(float64(n+1)*p), n)
				if l < mode && !(at(l+1) > small*(1-1e-9)) || h > mode && !(at(h-1) > small*(1-1e-9)) {
					t.Errorf("Bin(%d, %v) to %v: from %d to %d is too far", n, p, small, l, h)
				}
				outside, series := new(big.Rat), 0.0
				if l > 0 {
					if at(l) > small*(1+1e-9) {
						t.Errorf("Bin(%d, %v) to %v ends at %d, of mass %v", n, p, small, l, at(l))
					}
					for k := 0; k <= l; k++ {
						outside.Add(outside, mass[k])
					}
					step, _ := new(big.Rat).Quo(mass[l-1], mass[l]).Float64()
					series += at(l) / (1 - step)
				}
				if h < n {
					if at(h) > small*(1+1e-9) {
						t.Errorf("Bin(%d, %v) to %v ends at %d, of mass %v", n, p, small, h, at(h))
					}
					for k := h; k <= n; k++ {
						outside.Add(outside, mass[k])
					}
					step, _ := new(big.Rat).Quo(mass[h+1], mass[h]).Float64()
					series += at(h) / (1 - step)
				}
				if l > 0 || h < n {
					cuts++
				} else {
					ends++
				}
				if x, _ := outside.Float64(); !(cut >= x*(1-1e-12)) {
					t.Errorf("Bin(%d, %v) to %v: from %d to %d cuts %v, said to be at most %v", n,
						p, small, l, h, x, cut)
				}
				if math.Abs(cut-series) > 1e-12*series {
					t.Errorf("Bin(%d, %v) to %v: from %d to %d cuts at most %v, a geometric "+
						"series has %v", n, p, small, l, h, cut, series)
				}
			}
		}
	}
	if cuts < 60 || ends < 20 {
		t.Errorf("%d ranges were cut and %d were whole: the cases show too little", cuts, ends)
	}
}

// The cut is in δ: with what it leaves out the sum is never below the exact hockey stick, and ε0 =
// 0 costs nothing.
func TestClonesAtTheirEdges(t *testing.T) {
	if d := ClonesDelta(10, 0, 0); d != 0 {
		t.Errorf("0-DP reports: δ(0) = %v", d)
	}
	// One report of ε0 in the whole: δ(ε) of randomised response is (e^ε0 − e^ε)/(1 + e^ε0), exactly.
	for _, e0 := range []float64{1e-3, 0.5, 1, 4} {
		for _, e := range []float64{0, e0 / 3, e0 * 0.999} {
			want := -math.Expm1(e-e0) / (1 + math.Exp(-e0))
			if d := ClonesDelta(1, e0, e); math.Abs(d-want) > 1e-14*want {
				t.Errorf("ε0 = %v alone: δ(%v) = %v, want %v", e0, e, d, want)
			}
		}
	}
}

// Masses are right to 13 digits, near the mean and far from it, on both sides of where Stirling's
// series takes over.
func TestBinomialAgainstExactMasses(t *testing.T) {
	for _, n := range []int{1, 3, 15, 16, 17, 18, 40, 150} {
		for _, p := range []float64{1.0 / 1024, 0.125, 0.375, 0.5, 0.8125, 1 - 1.0/1024} {
			for k, m := range binomialMasses(n, p) {
				want, _ := m.Float64()
				// Far away the exponent is a difference of terms of its own size; and of Stirling's
				// series the term −1/(1188·n⁹) is left out, for n and for the two others.
				tolerance := 2e-15*(8-math.Log(want)) + 3/(1188*math.Pow(16, 9))
				if got := binomial(float64(k), float64(n), p); math.Abs(got-want) > tolerance*want {
					t.Errorf("Bin(%d, %v) at %d: %v, want %v", n, p, k, got, want)
				}
			}
		}
	}
	if binomial(-1, 5, 0.5) != 0 || binomial(6, 5, 0.5) != 0 {
		t.Error("there is mass outside")
	}
}

// The searches end where they say: at the price δ is kept, a billionth below it is not, and a
// billionth above the local ε0 it is not.
func TestClonesSearchesAreTight(t *testing.T) {
	const step = 1e-9
	for _, c := range []struct {
		n               int
		epsilon0, delta float64
	}{{1, 1, 1e-6}, {1, 0.5, 0.1}, {10, 0.001, 1e-9}, {1000, 0.01, 1e-4}, {1000, 3, 1e-6},
		{20_000, 0.1, 1e-12}} {
		e := clonesEpsilon(c.n, c.epsilon0, c.delta)
		if d := ClonesDelta(c.n, c.epsilon0, e); !(d <= c.delta) {
			t.Errorf("%+v: δ(%v) = %v", c, e, d)
		}
		if d := ClonesDelta(c.n, c.epsilon0, e*(1-step)); e > 0 && !(d > c.delta) {
			t.Errorf("%+v: ε = %v is no least one: a billionth less has δ = %v", c, e, d)
		}
	}
	for _, c := range []struct {
		n int
		b Approx
	}{{1, Approx{1, 1e-6}}, {1, Approx{1e-3, 0.1}}, {1000, Approx{0.01, 1e-6}},
		{1000, Approx{2, 1e-9}}, {20_000, Approx{0.1, 1e-12}}} {
		e0, err := ClonesLocal(c.n, c.b)
		if err != nil || !(e0 >= c.b.Epsilon) {
			t.Fatalf("%d users, %v: %v, %v", c.n, c.b, e0, err)
		}
		if d := ClonesDelta(c.n, e0, c.b.Epsilon); !(d <= c.b.Delta) {
			t.Errorf("%d users, %v: ε0 = %v has δ = %v", c.n, c.b, e0, d)
		}
		if d := ClonesDelta(c.n, e0*(1+step), c.b.Epsilon); !(d > c.b.Delta) {
			t.Errorf("%d users, %v: ε0 = %v is no largest one: a billionth more has δ = %v", c.n, c.b, e0, d)
		}
	}
	// One user's ε0 has a closed form: δ = (e^ε0 − e^ε)/(1 + e^ε0), so e^ε0 = (e^ε + δ)/(1 − δ).
	e0, err := ClonesLocal(1, Approx{1, 0.01})
	if want := math.Log((math.E + 0.01) / 0.99); err != nil || math.Abs(e0-want) > 1e-9 {
		t.Errorf("alone: %v, %v, want %v", e0, err, want)
	}
	if e := clonesEpsilon(10, 0, 0.1); e != 0 {
		t.Errorf("0-DP reports cost %v", e)
	}
}
