package audit_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/sotto-dp/sotto/audit"
	"github.com/sotto-dp/sotto/internal/testkit"
)

var near = testkit.Near

// steinke is the p-value of Steinke, Nasr and Jagielski (2023, Theorem 5.2), as their program has it.
func steinke(o audit.OneRun, epsilon, delta float64) float64 {
	w := distuv.Binomial{N: float64(o.Guesses), P: 1 / (1 + math.Exp(-epsilon))}
	beta := w.Survival(float64(o.Correct) - 0.5)
	most, sum := 0.0, 0.0
	for i := 1; i <= o.Correct; i++ {
		sum += w.Prob(float64(o.Correct - i))
		most = max(most, sum/float64(i))
	}
	return min(1, beta+2*float64(o.Canaries)*delta*most)
}

// The worked values of both one-run estimators, to the digits of their source: at δ > 0 those of
// Steinke, Nasr and Jagielski's bound, and of the one that is sharp.
func TestOneRunWorkedValues(t *testing.T) {
	for _, c := range []struct {
		m, r, v           int
		delta, eps, sharp float64
	}{
		{1000, 100, 90, 0, 1.630823, 1.630823}, {1000, 100, 90, 1e-5, 1.626143, 1.630231},
		{1000, 100, 100, 0, 3.492965, 3.492965}, {1000, 100, 100, 1e-5, 3.465376, 3.492321},
		{1000, 100, 60, 0, 0.051915, 0.051915}, {1000, 100, 55, 0, 0, 0},
		{1000, 1000, 600, 0, 0.297468, 0.297468}, {1000, 1000, 600, 1e-5, 0.297227, 0.297390},
		{1000, 1000, 900, 1e-5, 2.020646, 2.021180}, {5000, 300, 290, 1e-5, 2.805762, 2.826060},
		{100, 10, 10, 0, 1.051873, 1.051873},
	} {
		o := audit.OneRun{Canaries: c.m, Guesses: c.r, Correct: c.v}
		if c.eps > 0 { // where the published bound is 5 %
			near(t, "published p", steinke(o, c.eps, c.delta), 0.05, 1e-6)
		}
		got, err := o.Epsilon(0.05, c.delta)
		if err != nil {
			t.Fatal(err)
		}
		near(t, "ε", got, c.sharp, 6e-7)
	}
	o := audit.OneRun{Canaries: 1000, Guesses: 100, Correct: 90}
	near(t, "published p", steinke(o, 1, 1e-5), 8.41289e-4, 5e-10)
	p, err := o.PValue(1, 1e-5)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "p", p, 1.83046e-4, 5e-10)
	for _, c := range []struct {
		m, r, v int
		mu, eps float64
	}{
		{1000, 100, 90, 0.602504, 2.456405}, {1000, 100, 100, 1.225533, 5.549028},
		{1000, 1000, 600, 0.163850, 0.583540},
		{1000, 1000, 900, 0.880396, 3.779338}, {100, 10, 10, 0.416410, 1.625892},
	} {
		o := audit.OneRun{Canaries: c.m, Guesses: c.r, Correct: c.v}
		mu, err := o.Mu(0.05)
		if err != nil {
			t.Fatal(err)
		}
		near(t, "μ", mu, c.mu, 6e-7)
		eps, err := o.GaussianEpsilon(0.05, 1e-5)
		if err != nil {
			t.Fatal(err)
		}
		near(t, "ε of μ", eps, c.eps, 6e-6)
	}
}

// The regression vectors of the reference implementation: 10 000 scores a side at the
// mid-quantiles of N(shift,1) and N(0,1), δ = 1e-6, 5 %, split over all thresholds on the convex
// hull of the ROC curve. The same guesses show more by the sharp bound.
func TestOneRunRegression(t *testing.T) {
	const n = 10_000
	for _, c := range []struct{ shift, published, sharp float64 }{{1, 1.13346, 1.91594},
		{2, 2.311945, 3.96371}, {4, 4.395568, 6.52718}, {0, 0, 0}} {
		var all []struct {
			v  float64
			in int
		}
		for i := range n {
			q := distuv.UnitNormal.Quantile((float64(i) + 0.5) / n)
			all = append(all, struct {
				v  float64
				in int
			}{q, 0}, struct {
				v  float64
				in int
			}{q + c.shift, 1})
		}
		slices.SortFunc(all, func(a, b struct {
			v  float64
			in int
		}) int {
			switch {
			case a.v < b.v:
				return -1
			case a.v > b.v:
				return 1
			}
			return 0
		})
		// Points (false negatives, true negatives) below each distinct score, and above all;
		// their upper hull.
		type point struct{ fn, tn int }
		var hull []point
		add := func(p point) {
			for len(hull) >= 2 {
				a, b := hull[len(hull)-2], hull[len(hull)-1]
				if (b.tn-a.tn)*(p.fn-b.fn)-(p.tn-b.tn)*(b.fn-a.fn) > 0 {
					break
				}
				hull = hull[:len(hull)-1]
			}
			hull = append(hull, p)
		}
		p := point{}
		for i, s := range all {
			if i == 0 || s.v != all[i-1].v {
				add(p)
			}
			p.fn += s.in
			p.tn += 1 - s.in
		}
		add(p)
		best := 0.0
		// In no order, so that few of them improve on those before.
		for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(len(hull)) {
			h := hull[i]
			o := audit.OneRun{Canaries: 2 * n, Guesses: 2*n - h.fn - h.tn, Correct: n - h.fn}
			if o.Guesses == 0 || 2*o.Correct <= o.Guesses {
				continue
			}
			if p, _ := o.PValue(best, 0); p > 0.05/float64(len(hull)) {
				continue // can do no better
			}
			e, err := o.Epsilon(0.05/float64(len(hull)), 1e-6)
			if err != nil {
				t.Fatal(err)
			}
			best = max(best, e)
		}
		near(t, "ε", best, c.sharp, 5e-5)
		t.Logf("published %v", c.published)
	}
}

func TestBadInput(t *testing.T) {
	good := audit.Scores{In: []float64{1, 2}, Out: []float64{0, 1}}
	nan := math.NaN()
	for _, c := range []struct {
		name string
		err  error
		do   func() error
	}{
		{"no games in", audit.ErrNoGames, func() error { return audit.Scores{Out: []float64{1}}.Validate() }},
		{"no games out", audit.ErrNoGames, func() error { return audit.Scores{In: []float64{1}}.Validate() }},
		{"NaN", audit.ErrNaNScore, func() error {
			return audit.Scores{In: []float64{1}, Out: []float64{nan}}.Validate()
		}},
		{"constant", audit.ErrConstantScore, func() error {
			return audit.Scores{In: []float64{1}, Out: []float64{1, 1}}.Validate()
		}},
		{"δ = 1", audit.ErrDelta, func() error { _, err := audit.AdvantageLimit(1, 1); return err }},
		{"δ < 0", audit.ErrDelta, func() error {
			_, err := audit.OneRun{Canaries: 2, Guesses: 2, Correct: 1}.Epsilon(0.05, -0.1)
			return err
		}},
		{"δ NaN", audit.ErrDelta, func() error { _, err := audit.TradeOff(1, nan, 0.5); return err }},
		{"δ of a region", audit.ErrDelta, func() error {
			r, err := good.Region(0.05, 0.5)
			if err != nil {
				return err
			}
			_, err = r.Epsilon(1.5)
			return err
		}},
		{"γ = 0", audit.ErrConfidence, func() error { _, err := good.RegionByRank(0); return err }},
		{"γ NaN", audit.ErrConfidence, func() error { _, err := good.Split(nan, 0); return err }},
		{"no guesses", audit.ErrNoGames, func() error {
			_, err := audit.OneRun{Canaries: 3}.Mu(0.05)
			return err
		}},
		{"split of one", audit.ErrNoGames, func() error {
			_, err := audit.Scores{In: []float64{1}, Out: []float64{0, 2}}.Split(0.05, 0)
			return err
		}},
	} {
		if err := c.do(); !errors.Is(err, c.err) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.err)
		}
	}
}
