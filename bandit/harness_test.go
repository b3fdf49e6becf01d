package bandit

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/noise"
)

// A reference is what a test knows of a law from elsewhere.
type reference struct {
	law      Law
	mean     float64
	variance float64
	// cdf is the distribution function of the sum of n rewards, nil where it has no closed form.
	cdf func(n int) func(x float64) float64
}

// alarm is the false-alarm probability of one test. The seeds are fixed; over the about 200 tests
// of this package a right sampler would fail somewhere with probability below 1e-6.
const alarm = 2e-9

// check holds a law's Draw and Sum against its reference and against each other; it returns
// all that is wrong.
func check(r reference, draws int) error {
	var errs []error
	fail := func(what string, n int, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("%v: %s, n = %d: %w", r.law, what, n, err))
		}
	}
	if m := r.law.Mean(); math.Abs(m-r.mean) > 1e-12*max(1, math.Abs(r.mean)) {
		errs = append(errs, fmt.Errorf("%v: Mean is %v, want %v", r.law, m, r.mean))
	}
	lo, hi := r.law.Support()
	s := noise.NewFast(0x5077, 1)

	one := make([]float64, draws)
	for i := range one {
		one[i] = r.law.Draw(&s)
		if !(one[i] >= lo && one[i] <= hi) {
			fail("Draw", 1, fmt.Errorf("%v is outside [%v,%v]", one[i], lo, hi))
			break
		}
	}
	fail("moments of Draw", 1, moments(one, r.mean, r.variance))
	if r.cdf != nil {
		if f := r.cdf(1); f != nil {
			fail("Draw against its law", 1, goodness(one, f))
		}
	}
	for _, n := range []int{1, 2, 7, 100} {
		sums, added := make([]float64, draws), make([]float64, min(draws, loopDraws, 1_000_000/n))
		for i := range sums {
			sums[i] = r.law.Sum(n, &s)
		}
		for i := range added {
			for range n {
				added[i] += r.law.Draw(&s)
			}
		}
		fail("moments of Sum", n, moments(sums, float64(n)*r.mean, float64(n)*r.variance))
		fail("Sum against added Draws", n, homogeneity(sums[:len(added)], added))
		if r.cdf != nil {
			if f := r.cdf(n); f != nil {
				fail("Sum against its law", n, goodness(sums, f))
			}
		}
	}
	for _, n := range []int{0, -1} {
		if x := r.law.Sum(n, &s); x != 0 {
			fail("Sum", n, fmt.Errorf("%v, want 0", x))
		}
	}
	return errors.Join(errs...)
}

// sumDraws is how many sums are drawn of a law that has its own sampler for them: enough to see the
// skewness, 0.09, that a normal approximation of 100 Bernoullis of mean 0.3 loses. loopDraws is for
// those whose Sum is a loop over Draw.
var sumDraws = testkit.Size(200_000, 400_000)

const loopDraws = 30_000

// moments tests mean and variance.
func moments(x []float64, mean, variance float64) error {
	n := float64(len(x))
	var m, v, m4 float64
	for _, x := range x {
		m += (x - mean) / n
	}
	m += mean
	for _, x := range x {
		d := (x - m) * (x - m)
		v += d / n
		m4 += d * d / n
	}
	z := distuv.UnitNormal.Quantile(1 - alarm/2)
	tiny := 1e-12 * max(1, math.Abs(mean))
	if bound := z*math.Sqrt(variance/n) + tiny; !(math.Abs(m-mean) <= bound) {
		return fmt.Errorf("mean %v, want %v ± %v", m, mean, bound)
	}
	if bound := z*math.Sqrt(max(m4-v*v, 0)/n) + variance*5/n + tiny; !(math.Abs(v-variance) <= bound) {
		return fmt.Errorf("variance %v, want %v ± %v", v, variance, bound)
	}
	return nil
}

// edges cuts a sample into at most cells+1 cells (−∞,e₁], (e₁,e₂], …, (e_k,∞) of about equal size.
func edges(sorted []float64, cells int) []float64 {
	var e []float64
	for i := 1; i < cells; i++ {
		e = append(e, sorted[i*len(sorted)/cells])
	}
	return slices.Compact(e)
}

func histogram(x, edges []float64) []float64 {
	h := make([]float64, len(edges)+1)
	for _, x := range x {
		h[sort.SearchFloat64s(edges, x)]++
	}
	return h
}

// goodness is the χ² test of a sample against a distribution function. The cells come from another
// function than the sample: the levels of the distribution function itself, found by bisection, so
// that the statistic is a true χ².
func goodness(x []float64, cdf func(float64) float64) error {
	lo, hi := slices.Min(x), slices.Max(x)
	lo, hi = lo-(hi-lo)-1, hi+(hi-lo)+1
	const cells = 60
	var e []float64
	for i := range cells - 1 {
		level := float64(i+1) / cells
		a, b := lo, hi // cdf(a) < level ≤ cdf(b)
		for range 200 {
			mid := a + (b-a)/2
			if mid == a || mid == b {
				break
			}
			if cdf(mid) < level {
				a = mid
			} else {
				b = mid
			}
		}
		e = append(e, b)
	}
	e = slices.Compact(e)
	obs := histogram(x, e)
	// Atoms: what is left of a cell beside an atom may be small. Join cells until at least 20 draws
	// are expected in each.
	var stat, o, want, last float64
	df := -1
	for i := range obs {
		p := 1.
		if i < len(e) {
			p = cdf(e[i])
		}
		o += obs[i]
		want += (p - last) * float64(len(x))
		last = p
		if rest := (1 - p) * float64(len(x)); want >= 20 && rest >= 20 || i == len(obs)-1 {
			if want < 1e-6 {
				if o > 0 {
					return fmt.Errorf("%v draws where none can be", o)
				}
				continue
			}
			stat += (o - want) * (o - want) / want
			df++
			o, want = 0, 0
		}
	}
	return chi2(stat, df)
}

// homogeneity is the χ² test that two samples of one size are of one law.
func homogeneity(x, y []float64) error {
	round := func(x []float64) []float64 { // a sum of products and a sum of sums round differently
		r := make([]float64, len(x))
		for i := range x {
			r[i] = math.Round(x[i]*1e9) / 1e9
		}
		return r
	}
	x, y = round(x), round(y)
	e := edges(slices.Sorted(slices.Values(slices.Concat(x, y))), 30)
	a, b := histogram(x, e), histogram(y, e)
	var stat, u, v float64
	df := -1
	rest := float64(len(x) + len(y))
	for i := range a {
		u, v = u+a[i], v+b[i]
		rest -= a[i] + b[i]
		if u+v >= 40 && rest >= 40 || i == len(a)-1 {
			if u+v == 0 {
				continue
			}
			stat += (u - v) * (u - v) / (u + v)
			df++
			u, v = 0, 0
		}
	}
	return chi2(stat, df)
}

func chi2(stat float64, df int) error {
	if df <= 0 {
		if stat > 1e-6 {
			return fmt.Errorf("χ² = %v on no degree of freedom", stat)
		}
		return nil
	}
	if p := (distuv.ChiSquared{K: float64(df)}).Survival(stat); !(p >= alarm) {
		return fmt.Errorf("χ² = %.1f on %d degrees of freedom: p = %.2g", stat, df, p)
	}
	return nil
}

// lattice is the distribution function of the sum of n draws from {(first+i)·step : weight
// p[i]}, by convolution.
func lattice(first int, step float64, p ...float64) func(n int) func(float64) float64 {
	return func(n int) func(float64) float64 {
		sum := []float64{1}
		for range n {
			next := make([]float64, len(sum)+len(p)-1)
			for i, a := range sum {
				for j, b := range p {
					next[i+j] += a * b
				}
			}
			sum = next
		}
		for i := 1; i < len(sum); i++ {
			sum[i] += sum[i-1]
		}
		return func(x float64) float64 {
			i := int(math.Floor(x/step)) - n*first
			switch {
			case i < 0:
				return 0
			case i >= len(sum):
				return 1
			}
			return sum[i]
		}
	}
}

// single is the distribution function of one draw.
func single(f func(float64) float64) func(int) func(float64) float64 {
	return func(n int) func(float64) float64 {
		if n == 1 {
			return f
		}
		return nil
	}
}

// A twin is a law with another Sum.
type twin struct {
	Law
	sum func(n int, s *noise.Fast) float64
}

func (t twin) Sum(n int, s *noise.Fast) float64 {
	if n <= 0 {
		return 0
	}
	return t.sum(n, s)
}

// TestBrokenTwins shows that the harness sees what it is there to see; TestLaws passes the right
// laws.
func TestBrokenTwins(t *testing.T) {
	p := 0.3
	bern := reference{testkit.Must(NewBernoulli(p)), p, p * (1 - p), lattice(0, 1, 1-p, p)}
	clip := clippedReference(0.1, 0.1, 0, 1)
	table := tableReference()
	for _, c := range []struct {
		name string
		r    reference
		sum  func(n int, s *noise.Fast) float64
	}{
		{"normal approximation of a binomial, rounded", bern, func(n int, s *noise.Fast) float64 {
			m := float64(n)
			return min(max(math.Round(m*p+math.Sqrt(m*p*(1-p))*s.Normal()), 0), m)
		}},
		{"the same for n ≥ 50 only", bern, func(n int, s *noise.Fast) float64 {
			if n < 50 {
				return bern.law.Sum(n, s)
			}
			m := float64(n)
			return min(max(math.Round(m*p+math.Sqrt(m*p*(1-p))*s.Normal()), 0), m)
		}},
		{"one reward n times", bern, func(n int, s *noise.Fast) float64 {
			return float64(n) * bern.law.Draw(s)
		}},
		{"one reward too many", bern, func(n int, s *noise.Fast) float64 { return bern.law.Sum(n+1, s) }},
		{"normal approximation of a table", table, func(n int, s *noise.Fast) float64 {
			m := float64(n)
			return math.Round(4*(m*table.mean+math.Sqrt(m*table.variance)*s.Normal())) / 4
		}},
		{"binomials with unconditional shares", table, func(n int, s *noise.Fast) float64 {
			left, x := n, 0.
			for i, st := range table.law.(*Table).steps {
				k := left
				if i < len(table.law.(*Table).steps)-1 {
					k = s.Binomial(left, []float64{0.5, 0.25, 0.125, 0.125}[i])
				}
				x += float64(k) * st.value
				left -= k
			}
			return x
		}},
		{"clipping the sum, not the rewards", clip, func(n int, s *noise.Fast) float64 {
			m := float64(n)
			return min(max(m*0.1+math.Sqrt(m)*0.1*s.Normal(), 0), m)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := c.r
			r.law = twin{c.r.law, c.sum}
			err := check(r, sumDraws)
			if err == nil {
				t.Fatal("not caught")
			}
			t.Log(err)
		})
	}
}
