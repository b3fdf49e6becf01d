package privacy

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mathext"
)

// wishartBound is the ε of GramWishart's comment by other means: Simpson's rule with 6000 panels
// over 60 standard deviations about the mode, and the least of (mK(λ) + c)/λ over all λ.
func wishartBound(m GramWishart) float64 {
	levels, b, n := float64(m.levels()), 2/m.Scale, float64(m.Degrees-m.Dim)
	// The x at which m·P(χ ≤ x) = δ/10, in logarithms.
	lo, hi := math.Log(n)-60, math.Log(n)
	for range 200 {
		mid := (lo + hi) / 2
		p := 0.0
		if n < manyFreedom {
			p = mathext.GammaIncReg(n/2, math.Exp(mid)/2)
		} else {
			p = chiSquareBelow(n, math.Exp(mid))
		}
		if levels*p <= m.Delta/10 {
			lo = mid
		} else {
			hi = mid
		}
	}
	from := math.Exp(lo)
	sd := math.Sqrt(2 * n)
	left, right := max(0, n-60*sd), n+60*sd+300
	integral := func(from float64, g func(x float64) float64) float64 {
		const panels = 6000
		h := (right - from) / (2 * panels)
		var y [2*panels + 1]float64
		top := math.Inf(-1)
		for i := range y {
			x := from + h*float64(i)
			u := (x - (n - 2)) / (n - 2)
			y[i] = (n/2-1)*(math.Log1p(u)-u) + g(x)
			top = max(top, y[i])
		}
		sum := 0.0
		for k := range panels {
			sum += math.Exp(y[2*k]-top) + 4*math.Exp(y[2*k+1]-top) + math.Exp(y[2*k+2]-top)
		}
		return top + math.Log(sum*h/3)
	}
	norm := integral(left+1e-12*n, func(float64) float64 { return 0 })
	c := -math.Log(0.9 * m.Delta)
	bound := func(lambda float64) float64 {
		power := lambda * (n - 2)
		a := integral(left+1e-12*n, func(x float64) float64 { return lambda*b - power*math.Log1p(b/x) })
		b := integral(max(left, from), func(x float64) float64 { return -lambda*b - power*math.Log1p(-b/x) })
		return (levels*(max(a-norm, 0)+max(b-norm, 0))/2 + c) / lambda
	}
	best, at := math.Inf(1), 0.0
	for l := -12.0; l < 25; l += 0.25 {
		if e := bound(math.Exp(l)); e < best {
			best, at = e, l
		}
	}
	x, y := at-0.25, at+0.25
	for range 50 {
		p, q := x+(y-x)/3, y-(y-x)/3
		if bound(math.Exp(p)) <= bound(math.Exp(q)) {
			y = q
		} else {
			x = p
		}
	}
	return min(best, bound(math.Exp((x+y)/2)))
}

// The ε of Wishart noise is the least that its theorem gives, raised by 10⁻⁶ for the integrals. Its
// search for λ ends within 0.0023 of the best log λ, which costs 2.6e-6 at most, but for a δ so large
// that normal noise is a poor guide: up to 2e-4 there. The cases have few degrees of freedom, many,
// and such δ, where the χ² law is cut in its middle, so that each step of the integrals is seen.
func TestWishartBound(t *testing.T) {
	for _, m := range []GramWishart{
		{Scale: 20, Degrees: 11, Dim: 1, Horizon: 1, Delta: 0.5},
		{Scale: 2, Degrees: 43, Dim: 3, Horizon: 1, Delta: 0.9},
		{Scale: 0.1, Degrees: 400, Dim: 2, Horizon: 1, Delta: 0.3},
		{Scale: 200, Degrees: 300, Dim: 3, Horizon: 1 << 30, Delta: 1e-6},
		{Scale: 0.01, Degrees: 3000, Dim: 3, Horizon: 1 << 30, Delta: 1e-3},
		{Scale: 2, Degrees: 99_000, Dim: 7, Horizon: 1000, Delta: 1e-9},
		{Scale: 2, Degrees: min(1<<32, math.MaxInt) - 1, Dim: 7, Horizon: 1000, Delta: 1e-9},
	} {
		got, want := m.epsilon(), wishartBound(m)
		most := 4e-6
		if m.Delta > 0.4 {
			most = 2e-4
		}
		if !(got >= want*(1+7e-7) && got <= want*(1+most)) {
			t.Errorf("%v has ε = %v, the theorem's %v (%.3g of it more)", m, got, want, got/want-1)
		}
	}
	// The law with an edge at 0, and a record that is as large as the noise, have no price.
	edge := GramWishart{Scale: 20, Degrees: minFreedom + 1, Dim: 1, Horizon: 1, Delta: 0.5}
	if e := edge.epsilon(); math.IsInf(e, 1) {
		t.Errorf("%v has no price", edge)
	}
	edge.Degrees--
	if e := edge.epsilon(); !math.IsInf(e, 1) {
		t.Errorf("%v has ε = %v", edge, e)
	}
	edge = GramWishart{Scale: 0.2, Degrees: 17, Dim: 1, Horizon: 1, Delta: 0.5}
	if e := edge.epsilon(); !math.IsInf(e, 1) {
		t.Errorf("%v has ε = %v", edge, e)
	}
}

// For many degrees of freedom the bound on P(χ² ≤ x) is 1 from two below the mean on.
func TestChiSquareBelowTheMean(t *testing.T) {
	for _, n := range []float64{manyFreedom, 1e7} {
		for _, x := range []float64{n - 2, n - 1.5, n - 1, n, n + 1, 2 * n} {
			if p := chiSquareBelow(n, x); p != 1 {
				t.Errorf("P(χ² ≤ %v) for %v degrees of freedom is %v", x, n, p)
			}
		}
	}
	x := manyFreedom - 5*math.Sqrt(2*manyFreedom)
	if p, want := chiSquareBelow(manyFreedom, x), mathext.GammaIncReg(manyFreedom/2, x/2); !(p > want &&
		p < 1.06*want) {
		t.Errorf("5 standard deviations below: %v, exactly %v", p, want)
	}
	// f(y)·y/(a−1−y) for the density f of Gamma(a), but for Stirling's 1/(12a)
	a, y := manyFreedom/2, x/2
	g, _ := math.Lgamma(a)
	bound := math.Exp((a-1)*math.Log(y)-y-g) * y / (a - 1 - y)
	if p := chiSquareBelow(manyFreedom, x); p < bound*(1-1e-9) || p > bound*(1+3e-6) {
		t.Errorf("the bound is %v, must be %v", p, bound)
	}
}

// The fewest degrees within a thousandth: no fewer meet the budget, or their ε is just below it.
// The numbers are kept, since runs that were published used them.
func TestWishartSearch(t *testing.T) {
	for _, c := range []struct {
		epsilon float64
		dim     int
		horizon int
		degrees int
	}{{0.1, 3, 1000, 55831}, {1, 3, 1000, 588}, {1, 20, 1 << 20, 1222}, {5, 1, 7, 33}, {40, 2, 1, 18}} {
		m, err := NewGramWishart(Approx{c.epsilon, 1e-6}, c.dim, c.horizon)
		if err != nil || m.Degrees != c.degrees {
			t.Errorf("%v: %d degrees, must be %d; %v", c, m.Degrees, c.degrees, err)
			continue
		}
		e := m.epsilon()
		fewer := m
		fewer.Degrees--
		if e > c.epsilon || e < 0.999*c.epsilon && fewer.epsilon() <= c.epsilon {
			t.Errorf("%v has ε = %v, with one degree less %v", m, e, fewer.epsilon())
		}
	}
}
