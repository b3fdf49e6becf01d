package interval

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
)

// mixedRatio is M of the proof at a ratio, as the formula stands there.
func mixedRatio(x, y Sums, ratio float64) (v float64) {
	top := 1.0
	for _, s := range []Sums{x, y} {
		if n, ok := s.Noise.(privacy.Laplace); ok {
			top = min(top, 0.9/(n.Scale+0x1p-25))
		}
	}
	cost := func(n privacy.Mechanism, l float64) float64 {
		if n, ok := n.(privacy.Laplace); ok {
			b := n.Scale + 0x1p-25
			return math.Log(1 / (1 - l*l*b*b))
		}
		return 0
	}
	for j := range 36 {
		for _, sign := range []float64{1, -1} {
			l := sign * top / math.Sqrt(math.Pow(2, float64(j)))
			h := math.Log(1 + ratio*(math.Exp(l)-1))
			v += math.Exp(l*x.Sum-h*y.Sum-float64(x.Releases)*(cost(x.Noise, l)+cost(y.Noise, h))) / 72
		}
	}
	return v
}

// No ratio at which the formula of the proof is below 1/risk is outside of the interval, also where noise has
// made a sum negative, and the interval is no wider than what it leaves by a hundredth, where the sums say something.
func TestRatioIsItsFormula(t *testing.T) {
	lap := func(b float64) privacy.Mechanism { return privacy.Laplace{Scale: b} }
	for _, c := range []struct {
		x, y float64
		k    int
		a, b privacy.Mechanism
	}{{400, 1000, 10, lap(1), lap(1)}, {30, 100, 3, lap(4), lap(1)}, {30, 100, 3, lap(1), lap(8)}, {900, 1000, 1, nil, nil},
		{5, 12, 6, lap(2), lap(2)}, {-8, 3, 2, lap(4), lap(4)}, {4, -9, 2, lap(4), lap(4)}, {0, 0, 0, nil, nil},
		{50, 20, 2, lap(4), lap(4)}} {
		x := Sums{N: 5000, Sum: c.x, Releases: c.k, Noise: c.a}
		y := Sums{N: 5000, Sum: c.y, Releases: c.k, Noise: c.b}
		lo, hi, err := Ratio(x, y, 0.05)
		if err != nil || !(lo <= hi) && c.x <= c.y {
			t.Fatalf("%+v: [%v, %v], %v", c, lo, hi, err)
		}
		from, to := 1.0, 0.0
		for r := 0.0; r <= 1; r += 1. / 256 {
			if mixedRatio(x, y, r) < 20 {
				from, to = min(from, r), max(to, r)
				if r < lo || r > hi {
					t.Errorf("%+v: %v is in the set, and not in [%v, %v]", c, r, lo, hi)
				}
			}
		}
		if c.y > 50 && c.x < c.y && (from-lo > 0.01 || hi-to > 0.01) {
			t.Errorf("%+v: [%v, %v], and the set is from %v to %v", c, lo, hi, from, to)
		}
	}
}

// The factor of a decision is 1 in the mean at most, for any law of (X, Y) with X ≤ Y whose means have the ratio;
// for one with X > Y it is not.
func TestOneDecisionOfARatio(t *testing.T) {
	src := rand.New(rand.NewPCG(1, 2))
	worst, broken := 0.0, 0.0
	for range 4000 {
		var xs, ys, ps [4]float64
		total, ex, ey := 0.0, 0.0, 0.0
		for i := range xs {
			ys[i] = math.Round(src.Float64()*2*float64(src.IntN(2))) / 2 // often 0, ½ or 1
			if src.IntN(3) == 0 {
				ys[i] = src.Float64()
			}
			xs[i], ps[i] = ys[i]*src.Float64(), src.Float64()
			total += ps[i]
		}
		for i := range xs {
			ps[i] /= total
			ex, ey = ex+ps[i]*xs[i], ey+ps[i]*ys[i]
		}
		if ey == 0 {
			continue
		}
		lambda := src.NormFloat64()
		h := math.Log1p(ex / ey * math.Expm1(lambda))
		mean, apart := 0.0, 0.0
		for i := range xs {
			mean += ps[i] * math.Exp(lambda*xs[i]-h*ys[i])
			for j := range ys { // the same numbers, of different decisions
				apart += ps[i] * ps[j] * math.Exp(lambda*xs[i]-h*ys[j])
			}
		}
		worst, broken = max(worst, mean-1), max(broken, apart-1)
	}
	if worst > 1e-12 || broken < 0.01 {
		t.Errorf("the factor is 1 + %v, and 1 + %v where X may be above Y", worst, broken)
	}
}

// Intervals of ratios cover at all times together, while how likely Y is changes and which arm is played, and how
// often, follows from what was released. At a risk of 5 % more than 27 of 200 runs have probability below
// 1e-6 (binomial), and so does a failure of this test where it is right. Copies that do not price a noise, and one of numbers
// that are not of the same decisions, are caught.
func TestRatiosCoverAtAllTimes(t *testing.T) {
	const runs, most, truth = 200, 27, 0.8
	missed := func(seed uint64, a, b float64, copied string) (n int) {
		src := noise.NewFast(seed, 7)
		for range runs {
			x, y := Sums{Noise: privacy.Laplace{Scale: a}}, Sums{Noise: privacy.Laplace{Scale: b}}
			if copied == "no noise of X" {
				x.Noise = nil
			}
			if copied == "no noise of Y" {
				y.Noise = nil
			}
			rate, size := 0.1, 20
			for range 40 {
				buys := int(src.Binomial(size, rate))
				worth := float64(src.Binomial(buys, truth))
				if copied == "of other decisions" { // the same means, of different people
					worth = float64(src.Binomial(size, rate*truth))
				}
				x.N, y.N, x.Releases, y.Releases = x.N+size, y.N+size, x.Releases+1, y.Releases+1
				x.Sum += worth + src.Laplace(a)
				y.Sum += float64(buys) + src.Laplace(b)
				q, err := quotientOf(x, y)
				if err != nil {
					t.Fatal(err)
				}
				if q.against(truth, 1) >= math.Log(20) || q.against(truth, -1) >= math.Log(20) {
					n++
					break
				}
				if rate, size = 0.3, 20; x.Sum < truth*y.Sum { // who looks goes on where it seems wrong
					rate, size = 0.5, 60
				}
			}
		}
		return n
	}
	if n := missed(3, 4, 4, ""); n > most {
		t.Errorf("the ratio is outside in %d of %d runs", n, runs)
	}
	for copied, scale := range map[string][2]float64{"no noise of X": {8, 0.5}, "no noise of Y": {0.5, 8},
		"of other decisions": {0.25, 0.25}} {
		if n := missed(4, scale[0], scale[1], copied); n <= 2*most {
			t.Errorf("%s: the ratio is outside in %d of %d runs, which is not caught", copied, n, runs)
		}
	}
}

func TestRatioErrors(t *testing.T) {
	good := Sums{10, 5, 1, privacy.Laplace{Scale: 1}, 0}
	for _, c := range []struct {
		x, y Sums
		risk float64
	}{{good, good, 0}, {good, good, 1}, {good, Sums{9, 5, 1, nil, 0}, 0.05}, {good, Sums{10, 5, 2, nil, 0}, 0.05},
		{Sums{10, math.NaN(), 1, nil, 0}, good, 0.05}, {good, Sums{10, 5, 1, privacy.Tree{Horizon: 4, Scale: 1}, 0}, 0.05}} {
		if lo, hi, err := Ratio(c.x, c.y, c.risk); err == nil || lo != 0 || hi != 1 {
			t.Errorf("%+v: [%v, %v], %v", c, lo, hi, err)
		}
	}
}
