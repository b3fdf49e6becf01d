package stats_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
	"pgregory.net/rapid"

	"gonum.org/v1/gonum/mathext"

	"github.com/sotto-dp/sotto/internal/stats"
	"github.com/sotto-dp/sotto/internal/testkit"
)

var near = testkit.Close

func TestMean(t *testing.T) {
	mean, sd, se := stats.Mean([]float64{2, 4, 4, 4, 5, 5, 7, 9})
	near(t, "mean", mean, 5, 1e-15)
	near(t, "sd", sd, math.Sqrt(32.0/7), 1e-15)
	near(t, "se", se, math.Sqrt(32.0/56), 1e-15)

	// The textbook formula Σx² − nx̄² loses every digit here.
	mean, sd, _ = stats.Mean([]float64{1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16})
	near(t, "large mean", mean, 1e9+10, 1e-15)
	near(t, "sd beside a large mean", sd, math.Sqrt(30), 1e-12)

	if mean, sd, se = stats.Mean([]float64{0.1, 0.1, 0.1}); mean != 0.1 || sd != 0 || se != 0 {
		t.Errorf("constant sample: %v, %v, %v", mean, sd, se)
	}
	if mean, sd, _ = stats.Mean([]float64{3}); mean != 3 || !math.IsNaN(sd) {
		t.Errorf("single value: %v, %v", mean, sd)
	}
	if mean, _, _ = stats.Mean(nil); !math.IsNaN(mean) {
		t.Errorf("no values: %v", mean)
	}
}

func TestT(t *testing.T) {
	// R 4.2: qt((1+level)/2, n-1).
	for _, c := range []struct {
		n     int
		level float64
		want  float64
	}{
		{2, .95, 12.7062047361747}, {3, .95, 4.30265272974946}, {5, .95, 2.77644510519779},
		{20, .95, 2.09302405440831},
		{100, .95, 1.98421695158642}, {10000, .95, 1.96020126362136}, {20, .99, 2.86093460646498},
	} {
		near(t, fmt.Sprintf("T(%d, %v)", c.n, c.level), stats.T(c.n, c.level), c.want, 1e-12)
	}
	if !math.IsInf(stats.T(1, .95), 1) || !math.IsInf(stats.T(0, .95), 1) {
		t.Error("fewer than two values must bound nothing")
	}
	for _, level := range []float64{0, 1, -1, math.NaN()} {
		if !math.IsNaN(stats.T(10, level)) {
			t.Errorf("T at level %v is not NaN", level)
		}
	}
	mean, half := stats.Half([]float64{1, 2, 3}, .95)
	near(t, "mean", mean, 2, 0)
	near(t, "half", half, 4.30265272974946/math.Sqrt(3), 1e-12)
	if _, half = stats.Half([]float64{1}, .95); !math.IsInf(half, 1) {
		t.Errorf("half width of one value = %v", half)
	}
}

func TestQuantile(t *testing.T) {
	// R 4.2: quantile(c(3,1,4,1,5,9,2,6), …).
	x := []float64{3, 1, 4, 1, 5, 9, 2, 6}
	kept := slices.Clone(x)
	got := stats.Quantiles(x, 0, .05, .25, .5, .95, 1)
	for i, want := range []float64{1, 1, 1.75, 3.5, 7.95, 9} {
		near(t, "quantile", got[i], want, 1e-14)
	}
	if !slices.Equal(x, kept) {
		t.Error("the sample was changed")
	}
	for _, bad := range []float64{stats.Quantile(nil, .5), stats.Quantile(x, 1.1),
		stats.Quantile(x, math.NaN()),
		stats.Quantiles([]float64{1, math.NaN()}, 1)[0]} {
		if !math.IsNaN(bad) {
			t.Errorf("quantile = %v, want NaN", bad)
		}
	}
	if q := stats.Quantile([]float64{-math.MaxFloat64, math.MaxFloat64}, .5); q != 0 {
		t.Errorf("median of ±max = %v", q)
	}
}

func TestQuantileProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.SliceOfN(rapid.Float64Range(-1e300, 1e300), 1, 30).Draw(t, "x")
		p := rapid.Float64Range(0, 1).Draw(t, "p")
		r := rapid.Float64Range(0, 1).Draw(t, "r")
		q := stats.Quantiles(x, min(p, r), max(p, r))
		if !(slices.Min(x) <= q[0] && q[0] <= q[1] && q[1] <= slices.Max(x)) {
			t.Fatalf("quantiles %v of %v are not monotone inside the range", q, x)
		}
	})
}

func TestPairedAndWelch(t *testing.T) {
	// R 4.2: t.test(a, b, paired = TRUE), t.test(a, b); the sleep data are R's (Student,
	// Biometrika 6, 1908).
	a := []float64{1909.2, 1875.1, 1990.4, 1850.0, 1932.7, 1888.8}
	b := []float64{2175.3, 2100.9, 2210.0, 2166.6, 2190.1, 2099.5}
	sleep1 := []float64{0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0}
	sleep2 := []float64{1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4}
	for _, c := range []struct {
		name string
		test func(a, b []float64) (stats.Test, error)
		a, b []float64
		want stats.Test
	}{
		{"paired", stats.Paired, a, b, stats.Test{Statistic: -15.4636632396994, DF: 5,
			P: 2.05341702669045e-05}},
		{"welch", stats.Welch, a, b, stats.Test{Statistic: -9.00589077403539,
			DF: 9.96145795978174, P: 4.22670197061451e-06}},
		{"unequal n", stats.Welch, []float64{5.1, 4.9, 6.2, 5.7, 6.0, 5.2, 4.4},
			[]float64{5.0, 5.3, 6.1, 5.5},
			stats.Test{Statistic: -0.351441884861267, DF: 8.20773431598427, P: 0.734108604923958}},
		{"sleep paired", stats.Paired, sleep1, sleep2,
			stats.Test{Statistic: -4.06212768338204, DF: 9, P: 0.00283289019738427}},
		{"sleep welch", stats.Welch, sleep1, sleep2,
			stats.Test{Statistic: -1.86081346748685, DF: 17.7764735161785, P: 0.0793941401873582}},
	} {
		got, err := c.test(c.a, c.b)
		if err != nil {
			t.Fatal(err)
		}
		near(t, c.name+" statistic", got.Statistic, c.want.Statistic, 1e-12)
		near(t, c.name+" df", got.DF, c.want.DF, 1e-12)
		near(t, c.name+" p", got.P, c.want.P, 1e-11)
	}
}

// Tiny p-values keep their digits: R 4.2's 2*pt(-30, 5), here from a sample built to
// have that statistic.
func TestSmallP(t *testing.T) {
	// Differences 30·s/√n + z with mean(z) = 0 and se(z) = s/√n.
	z := []float64{-5, -3, -1, 1, 3, 5}
	_, _, se := stats.Mean(z)
	d := make([]float64, len(z))
	for i := range z {
		d[i] = z[i] + 30*se
	}
	got, err := stats.Paired(d, make([]float64, len(d)))
	if err != nil {
		t.Fatal(err)
	}
	near(t, "p", got.P, 7.71864862049605e-07, 1e-11)
}

func TestZeroVariance(t *testing.T) {
	x := []float64{1, 2, 4}
	shifted := []float64{2, 3, 5}
	for _, c := range []struct {
		name string
		test func(a, b []float64) (stats.Test, error)
		a, b []float64
		p    float64
	}{
		{"paired, same", stats.Paired, x, x, 1},
		{"paired, shifted", stats.Paired, x, shifted, 0.25},
		{"paired, two shifted", stats.Paired, x[:2], shifted[:2], 0.5},
		{"paired, shifted but for rounding", stats.Paired, []float64{0.1 + 0.2, 0.3, 0.3},
			[]float64{0.2, 0.2, 0.3 - 0.1}, 0.25},
		{"paired, same but for rounding", stats.Paired, []float64{0.1 + 0.2, 0.3}, []float64{0.3, 0.3}, 1},
		{"welch, same constants", stats.Welch, []float64{3, 3}, []float64{3, 3, 3}, 1},
		{"welch, other constants", stats.Welch, []float64{3, 3}, []float64{4, 4, 4}, 0},
	} {
		got, err := c.test(c.a, c.b)
		if err != nil || got.P != c.p || math.IsNaN(got.Statistic) || math.IsNaN(got.DF) {
			t.Errorf("%s: %+v, %v; want p = %v", c.name, got, err, c.p)
		}
	}
	// One sample without spread leaves the other's degrees of freedom.
	got, err := stats.Welch([]float64{3, 3, 3}, x)
	if err != nil || got.DF != 2 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestBadSamples(t *testing.T) {
	good := []float64{1, 2, 3}
	for _, c := range []struct {
		a, b []float64
		want string
	}{
		{good, []float64{1}, "stats: sample b has 1 values, must be at least 2"},
		{[]float64{1, math.NaN(), 2}, good, "stats: sample a[1] is NaN, must be finite and at " +
			"most 1e150 in size"},
		{good, []float64{1, 2, math.Inf(-1)}, "stats: sample b[2] is -Inf, must be finite and " +
			"at most 1e150 in size"},
	} {
		if _, err := stats.Welch(c.a, c.b); err == nil || err.Error() != c.want {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
	if _, err := stats.Paired(good, good[:2]); err == nil {
		t.Error("paired samples of different lengths passed")
	}
}

// A p-value is a probability, and swapping the samples changes only the sign of the statistic.
func TestTTestProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.Float64Range(-100, 100)
		a := rapid.SliceOfN(values, 2, 12).Draw(t, "a")
		b := rapid.SliceOfN(values, len(a), len(a)).Draw(t, "b")
		for _, f := range []func(a, b []float64) (stats.Test, error){stats.Paired, stats.Welch} {
			ab, err := f(a, b)
			if err != nil {
				t.Fatal(err)
			}
			ba, _ := f(b, a)
			if !(ab.P >= 0 && ab.P <= 1) || ab.P != ba.P || ab.Statistic != -ba.Statistic {
				t.Fatalf("%+v against %+v", ab, ba)
			}
		}
	})
}

func TestHolm(t *testing.T) {
	// R 4.2: p.adjust(p, "holm").
	for _, c := range []struct{ p, want []float64 }{
		{[]float64{.01, .04, .03, .005}, []float64{.03, .06, .06, .02}},
		{[]float64{.01, .02, .022, .09, .6, .01}, []float64{.06, .08, .08, .18, .60, .06}},
		{[]float64{.5}, []float64{.5}},
		{nil, nil},
	} {
		got, err := stats.Holm(c.p)
		if err != nil {
			t.Fatal(err)
		}
		for i := range c.want {
			near(t, "adjusted p", got[i], c.want[i], 1e-14)
		}
	}
	for _, bad := range []float64{-.1, 1.1, math.NaN()} {
		if _, err := stats.Holm([]float64{.5, bad}); err == nil {
			t.Errorf("p = %v passed", bad)
		}
	}
}

func TestHolmProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SliceOf(rapid.Float64Range(0, 1)).Draw(t, "p")
		adjusted, err := stats.Holm(p)
		if err != nil {
			t.Fatal(err)
		}
		for i := range p {
			if adjusted[i] < p[i] || adjusted[i] > min(1, float64(len(p))*p[i]) {
				t.Fatalf("adjusted[%d] = %v is not between raw %v and Bonferroni", i, adjusted[i], p[i])
			}
			for j := range p {
				if p[i] < p[j] && adjusted[i] > adjusted[j] || p[i] == p[j] && adjusted[i] != adjusted[j] {
					t.Fatalf("adjustment of %v changed the order: %v", p, adjusted)
				}
			}
		}
	})
}

func TestClopperPearson(t *testing.T) {
	// R 4.2: binom.test(s, n)$conf.int.
	for _, c := range []struct {
		s, n          int
		level, lo, hi float64
	}{
		{0, 10, .95, 0, 0.308497107818761}, {10, 10, .95, 0.691502892181239, 1},
		{3, 10, .95, 0.0667395111777345, 0.6524528500599973},
		{3, 10, .99, 0.0370072210962321, 0.7351139852871308},
		{1, 1000000, .95, 2.53178076637942e-08, 5.57163065517224e-06},
		{500, 1000, .95, 0.468549172971792, 0.531450827028208},
		{81, 263, .95, 0.252736745585271, 0.367621922601351},
	} {
		lo, hi, err := stats.ClopperPearson(c.s, c.n, c.level)
		if err != nil {
			t.Fatal(err)
		}
		near(t, "lo", lo, c.lo, 1e-9)
		near(t, "hi", hi, c.hi, 1e-9)
	}
	for _, c := range []struct {
		s, n  int
		level float64
	}{{0, 0, .95}, {-1, 5, .95}, {6, 5, .95}, {1, 5, 0}, {1, 5, 1}, {1, 5, math.NaN()}} {
		if _, _, err := stats.ClopperPearson(c.s, c.n, c.level); err == nil {
			t.Errorf("ClopperPearson(%d, %d, %v) passed", c.s, c.n, c.level)
		}
	}
}

// Coverage of Clopper–Pearson, exactly: the probability that the interval misses, summed over all
// outcomes, is at most 1 − level.
func TestClopperPearsonCoverage(t *testing.T) {
	const n, level = 40, .95
	for _, p := range []float64{.001, .01, .1, .3, .5, .77, .999} {
		covered := 0.0
		for s := range n + 1 {
			lo, hi, err := stats.ClopperPearson(s, n, level)
			if err != nil {
				t.Fatal(err)
			}
			if lo <= p && p <= hi {
				covered += distuv.Binomial{N: n, P: p}.Prob(float64(s))
			}
		}
		if covered < level {
			t.Errorf("p = %v is covered with probability %v", p, covered)
		}
	}
}

// Coverage of the Student interval on Gaussian data is exactly its level. 40 000 samples of five:
// the count that cover is Binomial(40 000, .95), whose standard deviation is 43.6; a deviation
// beyond 5 of them (218) is a false alarm of 5.8e-7. A Gaussian multiplier (1.96) would cover 87.8
// % and is caught.
func TestStudentCoverage(t *testing.T) {
	const samples, n, level = 40000, 5, .95
	r := rand.New(rand.NewPCG(1, 2))
	covered := 0
	x := make([]float64, n)
	for range samples {
		for i := range x {
			x[i] = 7 + 3*r.NormFloat64()
		}
		if mean, half := stats.Half(x, level); math.Abs(mean-7) <= half {
			covered++
		}
	}
	if math.Abs(float64(covered)-samples*level) > 218 {
		t.Errorf("covered %d of %d", covered, samples)
	}
}

// The rate of false rejections of three true nulls after Holm, tested together by Welch at unequal
// variances, is at most 5 %. 10 000 families: standard deviation 21.8, so 500 + 5·21.8 = 609 is
// passed with probability below 1e-6.
func TestFamilywiseError(t *testing.T) {
	const families, limit = 10000, 609
	r := rand.New(rand.NewPCG(3, 4))
	draw := func(n int, sd float64) []float64 {
		x := make([]float64, n)
		for i := range x {
			x[i] = sd * r.NormFloat64()
		}
		return x
	}
	wrong := 0
	for range families {
		best := draw(20, 1)
		p := make([]float64, 3)
		for i := range p {
			test, err := stats.Welch(draw(20, float64(1+i)), best)
			if err != nil {
				t.Fatal(err)
			}
			p[i] = test.P
		}
		adjusted, err := stats.Holm(p)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Min(adjusted) <= .05 {
			wrong++
		}
	}
	if wrong > limit {
		t.Errorf("%d of %d families rejected a true null", wrong, families)
	}
	t.Logf("%d of %d families", wrong, families)
}

func ExampleHolm() {
	adjusted, err := stats.Holm([]float64{.01, .04, .03, .005})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%.2f\n", adjusted)
	// Output: [0.03 0.06 0.06 0.02]
}

func ExamplePaired() {
	// The same four worlds, played by two policies.
	test, err := stats.Paired([]float64{10, 12, 9, 11}, []float64{13, 14, 13, 14})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("t = %.2f, df = %.0f, p = %.4f\n", test.Statistic, test.DF, test.P)
	// Output: t = -7.35, df = 3, p = 0.0052
}

func ExampleHalf() {
	mean, half := stats.Half([]float64{1909, 1875, 1990, 1850}, .95)
	fmt.Printf("%.0f ± %.0f\n", mean, half)
	// Output: 1906 ± 97
}

// At extreme levels and large n the ends are where the binomial tails are what they should be.
func TestClopperPearsonAtExtremeLevels(t *testing.T) {
	for _, n := range []int{1, 7, 300, 1_000_000} {
		for _, k := range []int{0, 1, n / 3, n / 2, n - 1, n} {
			for _, tail := range []float64{0.025, 1e-6, 1e-9, 1e-12} {
				lo, hi, err := stats.ClopperPearson(k, n, 1-2*tail)
				if err != nil {
					t.Fatal(err)
				}
				tail := (1 - (1 - 2*tail)) / 2 // as the level is rounded
				if k > 0 {
					if got := mathext.RegIncBeta(float64(k), float64(n-k+1), lo); math.Abs(got/tail-1) > 1e-4 {
						t.Errorf("%d of %d at tail %g: the lower end %v has tail %g", k, n, tail, lo, got)
					}
				}
				if k < n && 1-hi > 1e-10 { // nearer to 1 doubles are too far apart
					if got := mathext.RegIncBeta(float64(n-k), float64(k+1),
						1-hi); math.Abs(got/tail-1) > 1e-4 {
						t.Errorf("%d of %d at tail %g: the upper end %v has tail %g", k, n, tail, hi, got)
					}
				}
				if k == 0 && lo != 0 || k == n && hi != 1 || k > 0 && lo == 0 {
					t.Errorf("%d of %d: [%v, %v]", k, n, lo, hi)
				}
			}
		}
	}
}

// Where a sample has no spread the answer is by rule, not by a t statistic: worked by hand, with
// the degrees of freedom that are promised.
func TestTestsWithoutSpread(t *testing.T) {
	zero := []float64{0, 0, 0}
	for _, c := range []struct {
		name string
		test func(a, b []float64) (stats.Test, error)
		a, b []float64
		want stats.Test
	}{
		{"paired, all zero", stats.Paired, zero, zero, stats.Test{Statistic: 0, DF: 2, P: 1}},
		{"paired, same", stats.Paired, []float64{1, 2, 4, 5}, []float64{1, 2, 4, 5},
			stats.Test{Statistic: 0, DF: 3, P: 1}},
		{"paired, one more", stats.Paired, []float64{2, 3, 5, 6}, []float64{1, 2, 4, 5},
			stats.Test{Statistic: math.Inf(1), DF: 3, P: 0.125}},
		// The spread, some 10^-8, is below what sums of numbers of 10^6 round away (10^-6), and
		// the mean is not.
		{"paired, spread of rounding", stats.Paired, []float64{1e6 + 1, 1e6 + 1, 1e6 + 1 + 1e-8},
			[]float64{1e6, 1e6, 1e6},
			stats.Test{Statistic: math.Inf(1), DF: 2, P: 0.25}},
		{"welch, both constant", stats.Welch, []float64{3, 3}, []float64{4, 4, 4, 4},
			stats.Test{Statistic: math.Inf(-1), DF: 4, P: 0}},
	} {
		if got, err := c.test(c.a, c.b); err != nil || got != c.want {
			t.Errorf("%s: %+v, %v; want %+v", c.name, got, err, c.want)
		}
	}
	// Small numbers may have a small spread: differences of 1, 2 and 3·10^-15 have mean 2 and
	// standard error 1/√3, t = 2√3.
	got, err := stats.Paired([]float64{1e-15, 2e-15, 3e-15}, zero)
	if err != nil || math.Abs(got.Statistic-2*math.Sqrt(3)) > 1e-12 || got.DF != 2 {
		t.Errorf("%+v, %v", got, err)
	}
	// The largest values that are allowed.
	if _, err := stats.Welch([]float64{1e150, -1e150}, []float64{0, 1}); err != nil {
		t.Error(err)
	}
}

func TestEdgesOfLevelsAndSamples(t *testing.T) {
	for _, level := range []float64{0, 1, -1, 2, math.NaN()} {
		if _, half := stats.Half([]float64{1}, level); !math.IsNaN(half) {
			t.Errorf("one value at level %v: ±%v", level, half)
		}
	}
	if q := stats.Quantiles(nil, 0.5); len(q) != 1 || !math.IsNaN(q[0]) {
		t.Errorf("quantile of nothing: %v", q)
	}
}

// By hand: of 0 to 19 the 0.9-quantile is 17.1, and beyond it are 0.9 and 1.9: 17.1 + 2.8/20/0.1 = 18.5.
func TestBeyond(t *testing.T) {
	x := make([]float64, 20)
	for i := range x {
		x[i] = float64(i)
	}
	if got := stats.Beyond(x, 0.9); math.Abs(got-18.5) > 1e-12 {
		t.Errorf("got %v, want 18.5", got)
	}
	for _, v := range []struct {
		x    []float64
		want float64
	}{{[]float64{3}, 3}, {[]float64{1, math.Inf(1)}, math.Inf(1)}, {[]float64{math.Inf(1), math.Inf(1)}, math.Inf(1)}} {
		if got := stats.Beyond(v.x, 0.95); got != v.want {
			t.Errorf("beyond %v is %v, want %v", v.x, got, v.want)
		}
	}
}
