package bandit

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/integrate/quad"
	"gonum.org/v1/gonum/stat/distuv"
	"pgregory.net/rapid"

	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/noise"
)

// integral is ∫f over [lo,hi] for an f that bends on the scale of sd around mean.
func integral(f func(float64) float64, mean, sd, lo, hi float64) float64 {
	var sum float64
	a := lo
	for k := -40; k <= 41; k++ {
		b := min(max(mean+float64(k)*sd/2, lo), hi)
		if k == 41 {
			b = hi
		}
		if b > a {
			sum += quad.Fixed(f, a, b, 24, quad.Legendre{}, 0)
			a = b
		}
	}
	return sum
}

// clippedReference has its moments from a numeric integral: E X = lo + ∫P(X>x)dx and E (X−lo)² =
// ∫2(x−lo)P(X>x)dx.
func clippedReference(mean, sd, lo, hi float64) reference {
	n := distuv.Normal{Mu: mean, Sigma: sd}
	first := integral(n.Survival, mean, sd, lo, hi)
	second := integral(func(x float64) float64 { return 2 * (x - lo) * n.Survival(x) }, mean, sd, lo, hi)
	return reference{testkit.Must(NewClippedGaussian(mean, sd, lo, hi)), lo + first, second - first*first,
		single(func(x float64) float64 {
			switch {
			case x < lo:
				return 0
			case x >= hi:
				return 1
			}
			return n.CDF(x)
		})}
}

// tableReference is on quarters, so that sums are exact.
func tableReference() reference {
	l := testkit.Must(NewTable([]float64{1, -0.25, 0.25, 0}, []float64{0.25, 0.5, 0.125, 0.125}))
	const mean = 0.25 - 0.125 + 0.03125
	return reference{l, mean, 0.25 + 0.5/16 + 0.125/16 - mean*mean,
		lattice(-1, 0.25, 0.5, 0.125, 0.125, 0, 0, 0.25)}
}

func irwinHall(lo, hi float64) func(n int) func(float64) float64 {
	return func(n int) func(float64) float64 {
		if n > 8 { // the alternating sum cancels
			return nil
		}
		return func(x float64) float64 {
			x = min(max((x-float64(n)*lo)/(hi-lo), 0), float64(n))
			sum, c := 0., 1.
			for k := 0; float64(k) <= x; k++ {
				sum += c * math.Pow(x-float64(k), float64(n))
				c *= -float64(n-k) / float64(k+1)
			}
			return min(max(sum/math.Gamma(float64(n)+1), 0), 1)
		}
	}
}

func references() []reference {
	var rs []reference
	for _, p := range []float64{0, 0.003, 0.3, 0.75, 1} {
		rs = append(rs, reference{testkit.Must(NewBernoulli(p)), p, p * (1 - p), lattice(0, 1, 1-p, p)})
	}
	rs = append(rs, reference{testkit.Must(NewGaussian(-0.5, 2)), -0.5, 4, func(n int) func(float64) float64 {
		return distuv.Normal{Mu: -0.5 * float64(n), Sigma: 2 * math.Sqrt(float64(n))}.CDF
	}})
	rs = append(rs,
		clippedReference(0.5, 0.1, 0, 1),
		clippedReference(0.25, 0.2, 0, 1),
		clippedReference(1.5, 1, -1, 1),
		clippedReference(-0.3, 0.2, 0, 2))
	rs = append(rs,
		reference{testkit.Must(NewUniform(-1, 2)), 0.5, 9. / 12, irwinHall(-1, 2)},
		reference{testkit.Must(NewUniform(0, 1)), 0.5, 1. / 12, irwinHall(0, 1)})
	for _, ab := range [][2]float64{{2, 3}, {0.5, 0.5}, {0.1, 4}, {30, 20}} {
		a, b := ab[0], ab[1]
		rs = append(rs, reference{testkit.Must(NewBeta(a, b)), a / (a + b), a * b / ((a + b) * (a + b) * (a + b + 1)),
			single(func(x float64) float64 {
				switch {
				case x <= 0:
					return 0
				case x >= 1:
					return 1
				}
				return distuv.Beta{Alpha: a, Beta: b}.CDF(x)
			})})
	}
	rs = append(rs, tableReference(),
		reference{testkit.Must(NewTable([]float64{0.1, 0.7, 0.2}, []float64{0.2, 0.3, 0.5})), 0.33,
			0.169 - 0.33*0.33, nil},
		reference{testkit.Must(NewTable([]float64{0.3}, []float64{1})), 0.3, 0, nil},
		reference{testkit.Must(NewEmpirical(map[float64]int{0: 3, 0.5: 1, 1: 8})), 8.5 / 12,
			8.25/12 - 8.5*8.5/144, lattice(0, 0.5, 3./12, 1./12, 8./12)})
	return rs
}

func TestLaws(t *testing.T) {
	for _, r := range references() {
		t.Run(r.law.String(), func(t *testing.T) {
			t.Parallel()
			draws := sumDraws
			switch r.law.(type) {
			case ClippedGaussian, Uniform, Beta:
				draws = loopDraws
			}
			if err := check(r, draws); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestLargeSums holds sums of very many rewards to their moments.
func TestLargeSums(t *testing.T) {
	const n = 100_000_000
	s := noise.NewFast(3, 4)
	for _, r := range []reference{
		{testkit.Must(NewBernoulli(0.3)), 0.3, 0.21, nil},
		{testkit.Must(NewGaussian(1, 2)), 1, 4, nil},
		tableReference(),
	} {
		x := make([]float64, 20_000)
		for i := range x {
			x[i] = r.law.Sum(n, &s)
		}
		if err := moments(x, n*r.mean, n*r.variance); err != nil {
			t.Errorf("%v: %v", r.law, err)
		}
	}
}

func TestClippedGaussianMean(t *testing.T) {
	for _, mean := range []float64{-1e6, -30, -1, -0.1, 0, 0.3, 0.5, 0.999, 1, 1.2, 7, 50, 1e6} {
		for _, sd := range []float64{1e-9, 0.01, 0.1, 0.5, 1, 3, 99, 900, 999, 1000, 1001, 1e4, 1e9, 1e30} {
			for _, iv := range [][2]float64{{0, 1}, {-1, 1}, {0.25, 0.5}} {
				r := clippedReference(mean, sd, iv[0], iv[1])
				if got := r.law.Mean(); !(math.Abs(got-r.mean) <= 1e-12) {
					t.Errorf("%v: Mean is %v, the integral %v", r.law, got, r.mean)
				}
			}
		}
	}
	// The largest and smallest parameters leave the doubles on the way, not at the end.
	for _, l := range []ClippedGaussian{
		testkit.Must(NewClippedGaussian(0, 5e-324, 0, 1)), testkit.Must(NewClippedGaussian(MaxAbs, 5e-324, -MaxAbs, MaxAbs)),
		testkit.Must(NewClippedGaussian(-MaxAbs, MaxAbs, 0, 5e-324)),
		testkit.Must(NewClippedGaussian(MaxAbs, MaxAbs, -MaxAbs, MaxAbs)),
	} {
		if m := l.Mean(); !(m >= l.lo && m <= l.hi) {
			t.Errorf("%v: Mean is %v", l, m)
		}
	}
}

// TestBetaExtremes holds the smallest and largest shapes to their support and mean: a ratio of
// Gamma draws would be 0/0.
func TestBetaExtremes(t *testing.T) {
	s := noise.NewFast(1, 1)
	for _, ab := range [][2]float64{{minShape, minShape}, {maxShape, maxShape},
		{minShape, maxShape}, {maxShape, minShape}, {1e-3, 1e-3}} {
		l := testkit.Must(NewBeta(ab[0], ab[1]))
		x := make([]float64, 20_000)
		for i := range x {
			x[i] = l.Draw(&s)
		}
		a, b := ab[0], ab[1]
		if err := moments(x, l.Mean(), a*b/((a+b)*(a+b)*(a+b+1))); err != nil {
			t.Errorf("%v: %v", l, err)
		}
	}
}

// TestFinite rebuilds the probabilities from the alias table and from the chain of binomials: both
// are exact up to rounding.
func TestFinite(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weight := rapid.SliceOfN(rapid.Float64Range(1e-6, 1), 1, 60).Draw(t, "weight")
		values := make([]float64, len(weight))
		var total float64
		for i, w := range weight {
			values[i] = float64(i)
			total += w
		}
		f := newFinite(values, weight)
		alias, chain := make([]float64, len(weight)), make([]float64, len(weight))
		for _, c := range f.cells {
			if c.cut < 0 || c.cut > 1 {
				t.Fatalf("cut %v", c.cut)
			}
			alias[int(c.low)] += c.cut / float64(len(weight))
			alias[int(c.high)] += (1 - c.cut) / float64(len(weight))
		}
		rest := 1.
		for i, st := range f.steps {
			if i == len(f.steps)-1 && st.p != 1 {
				t.Fatalf("the last step takes %v of what is left", st.p)
			}
			chain[int(st.value)] = rest * st.p
			rest *= 1 - st.p
		}
		for i, w := range weight {
			if math.Abs(alias[i]-w/total) > 1e-13 || math.Abs(chain[i]-w/total) > 1e-13 {
				t.Fatalf("value %d: alias %v, chain %v, want %v", i, alias[i], chain[i], w/total)
			}
		}
	})
}

func TestConstructorsRefuse(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		call string
		err  error
		want string
	}{
		{"p NaN", second(NewBernoulli(nan)), "p is NaN, must be between 0 and 1"},
		{"p 1.5", second(NewBernoulli(1.5)), "p is 1.5"},
		{"p -0.1", second(NewBernoulli(-0.1)), "p is -0.1"},
		{"p Inf", second(NewBernoulli(inf)), "p is +Inf"},
		{"mean NaN", second(NewGaussian(nan, 1)), "mean is NaN, must be a finite number"},
		{"mean Inf", second(NewGaussian(-inf, 1)), "mean is -Inf"},
		{"mean large", second(NewGaussian(1e101, 1)), "at most 1e+100"},
		{"sd 0", second(NewGaussian(0, 0)), "sd is 0, must be positive"},
		{"sd -1", second(NewGaussian(0, -1)), "sd is -1"},
		{"sd NaN", second(NewGaussian(0, nan)), "sd is NaN"},
		{"sd Inf", second(NewGaussian(0, inf)), "sd is +Inf"},
		{"clipped sd", second(NewClippedGaussian(0, 0, 0, 1)), "clipped-gaussian: sd is 0"},
		{"clipped mean", second(NewClippedGaussian(inf, 1, 0, 1)), "mean is +Inf"},
		{"clipped order", second(NewClippedGaussian(0, 1, 1, 1)), "lo is 1 and hi is 1: lo must be below hi"},
		{"clipped hi", second(NewClippedGaussian(0, 1, 0, inf)), "hi is +Inf"},
		{"clipped lo", second(NewClippedGaussian(0, 1, nan, 1)), "lo is NaN"},
		{"beta a", second(NewBeta(0, 1)), "a is 0, must be between 1e-06 and 1e+12"},
		{"beta b", second(NewBeta(1, inf)), "b is +Inf"},
		{"beta NaN", second(NewBeta(nan, 1)), "a is NaN"},
		{"uniform order", second(NewUniform(1, 0)), "lo must be below hi"},
		{"uniform NaN", second(NewUniform(0, nan)), "hi is NaN"},
		{"table empty", second(NewTable(nil, nil)), "no values"},
		{"table lengths", second(NewTable([]float64{1}, nil)), "1 values and 0 probabilities"},
		{"table value", second(NewTable([]float64{inf}, []float64{1})), "value is +Inf"},
		{"table p 0", second(NewTable([]float64{0, 1}, []float64{0, 1})), "the probability of 0 is 0"},
		{"table p NaN", second(NewTable([]float64{0, 1}, []float64{nan, 1})), "the probability of 0 is NaN"},
		{"table sum", second(NewTable([]float64{0, 1}, []float64{0.5, 0.4})), "sum to 0.9"},
		{"table close", second(NewTable([]float64{0, 1}, []float64{0.5, 0.500000002})), "within 1e-9"},
		{"table twice", second(NewTable([]float64{0, 1, 0}, []float64{0.5, 0.25, 0.25})),
			"the value 0 comes twice"},
		{"table zeros", second(NewTable([]float64{0, math.Copysign(0, -1)}, []float64{0.5, 0.5})),
			"comes twice"},
		{"empirical none", second(NewEmpirical(nil)), "no rewards"},
		{"empirical count", second(NewEmpirical(map[float64]int{1: 0})), "0 times"},
		{"empirical NaN", second(NewEmpirical(map[float64]int{nan: 1})), "a reward is no finite number"},
		{"empirical overflow", second(NewEmpirical(map[float64]int{1: math.MaxInt, 2: 1})), "overflow"},
		{"one arm", second(BernoulliInstance(0.5)), "number of arms is 1, must be at least 2"},
		{"no arm", second(NewInstance()), "number of arms is 0"},
		{"nil arm", second(NewInstance(Bernoulli{}, nil)), "arm 2 has no law"},
		{"zero law", second(NewInstance(Bernoulli{}, Beta{})), "arm 2, beta(0,0), has mean NaN"},
		{"bad arm", second(BernoulliInstance(0.5, 2)), "arm 2: bernoulli: p is 2"},
		{"C0", second(Standard(0, 5)), "C0: c must be 1, 2, 3 or 4"},
		{"C5", second(Standard(5, 5)), "C5"},
		{"K 1", second(Standard(1, 1)), "the number of arms is 1, must be between 2 and 1048576"},
		{"K large", second(Standard(1, 1<<30)), "the number of arms is 1073741824"},
		{"family sd", second(GaussianFamily(0)), "sd is 0"},
		{"family clip", second(ClippedGaussianFamily(1, 1, 0)), "lo must be below hi"},
		{"means arms", second(NewUniformMeans(1, 0, 1, Family{}, true)), "number of arms is 1"},
		{"means order", second(NewUniformMeans(2, 1, 1, Family{}, true)), "lo must be below hi"},
		{"means NaN", second(NewUniformMeans(2, nan, 1, Family{}, true)), "lo is NaN"},
		{"means range", second(NewUniformMeans(2, 0, 1.5, Family{}, true)), "p is 1.5"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) || strings.Contains(c.err.Error(), "\n") {
			t.Errorf("%s: error %q, want %q", c.call, fmt.Sprint(c.err), c.want)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// TestTablesDoNotDependOnOrder: equal laws have equal strings.
func TestTablesDoNotDependOnOrder(t *testing.T) {
	a := testkit.Must(NewTable([]float64{1, math.Copysign(0, -1)}, []float64{0.25, 0.75}))
	b := testkit.Must(NewTable([]float64{0, 1}, []float64{0.75, 0.25}))
	if a.String() != b.String() || a.String() != "table(0:0.75,1:0.25)" {
		t.Errorf("%v and %v", a, b)
	}
}

func TestNoAllocations(t *testing.T) {
	s := noise.NewFast(1, 2)
	for _, r := range references() {
		l := r.law
		if n := testing.AllocsPerRun(100, func() { l.Draw(&s); l.Sum(20, &s) }); n != 0 {
			t.Errorf("%v: %v allocations", l, n)
		}
	}
}

func BenchmarkBernoulliDraw(b *testing.B) { benchDraw(b, testkit.Must(NewBernoulli(0.3))) }
func BenchmarkGaussianDraw(b *testing.B)  { benchDraw(b, testkit.Must(NewGaussian(0.3, 1))) }
func BenchmarkBetaDraw(b *testing.B)      { benchDraw(b, testkit.Must(NewBeta(2, 3))) }
func BenchmarkUniformDraw(b *testing.B)   { benchDraw(b, testkit.Must(NewUniform(0, 1))) }
func BenchmarkTableDraw(b *testing.B)     { benchDraw(b, tableReference().law) }

func BenchmarkClippedDraw(b *testing.B) {
	benchDraw(b, testkit.Must(NewClippedGaussian(0.5, 0.1, 0, 1)))
}

func benchDraw(b *testing.B, l Law) {
	s := noise.NewFast(1, 2)
	b.ReportAllocs()
	var x float64
	for b.Loop() {
		x += l.Draw(&s)
	}
	_ = x
}

func BenchmarkBernoulliSum(b *testing.B) { benchSum(b, testkit.Must(NewBernoulli(0.3))) }
func BenchmarkTableSum(b *testing.B)     { benchSum(b, tableReference().law) }

func benchSum(b *testing.B, l Law) {
	for _, n := range []int{1, 10, 15, 16, 100, 10_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := noise.NewFast(1, 2)
			b.ReportAllocs()
			var x float64
			for b.Loop() {
				x += l.Sum(n, &s)
			}
			_ = x
		})
	}
}
