package privacy_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/sotto-dp/sotto/privacy"
)

func ExampleSequential() {
	b, err := privacy.Sequential(privacy.ZCDP{Rho: 0.1}, privacy.ZCDP{Rho: 0.2})
	fmt.Printf("%.1f %v\n", b.(privacy.ZCDP).Rho, err)
	_, err = privacy.Sequential(privacy.ZCDP{Rho: 0.1}, privacy.Pure{Epsilon: 1})
	fmt.Println(err)
	// Output:
	// 0.3 <nil>
	// sequential composition: budgets are rho=0.1 and epsilon=1, all must be in one currency
}

func ExampleGroup() {
	for _, b := range []privacy.Budget{privacy.Pure{Epsilon: 1}, privacy.ZCDP{Rho: 0.1},
		privacy.Approx{Epsilon: 1, Delta: 1e-6}, privacy.Renyi{Alpha: 16, Epsilon: 0.25},
		privacy.GDP{Mu: 0.5}} {
		g, err := privacy.Group(b, 4)
		fmt.Println(g, err)
	}
	// Output:
	// epsilon=4 <nil>
	// rho=1.6 <nil>
	// epsilon=4,delta=8.034214769275147e-05 <nil>
	// alpha=4,epsilon=2.25 <nil>
	// mu=2 <nil>
}

func ExamplePerBatch() {
	a, err := privacy.PerBatch(privacy.Approx{Epsilon: 0.5, Delta: 1e-6}, 1000)
	fmt.Printf("epsilon=%.6f delta=%.0e %v\n", a.(privacy.Approx).Epsilon, a.(privacy.Approx).Delta, err)
	b, err := privacy.PerBatch(privacy.Pure{Epsilon: 0.5}, 1000)
	fmt.Println(b, err)
	// Output:
	// epsilon=0.001468 delta=5e-10 <nil>
	// epsilon=0.0005 <nil>
}

func TestAdvancedWorkedNumbers(t *testing.T) {
	a, err := privacy.Advanced(privacy.Approx{Epsilon: 0.1, Delta: 1e-8}, 100, 1e-6)
	if err != nil {
		t.Fatal(err)
	}
	// √(200 · 13.815510558) · 0.1 + 100 · 0.1 · 0.1051709181
	near(t, "epsilon", a.Epsilon, 5.256521769756932+1.0517091807564762, 1e-14)
	near(t, "delta", a.Delta, 2e-6, 1e-14)

	// Few or large events: the simple sum is smaller, and Repeated takes it.
	r, err := privacy.Repeated(privacy.Approx{Epsilon: 1}, 3, 1e-6)
	if err != nil || r.Epsilon != 3 {
		t.Errorf("Repeated = %v, %v", r, err)
	}
	r, err = privacy.Repeated(privacy.Approx{Epsilon: 0.1, Delta: 1e-8}, 100, 2e-6)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "Repeated", r.Epsilon, a.Epsilon, 1e-12)
}

func TestBadComposition(t *testing.T) {
	p := privacy.Pure{Epsilon: 1}
	bad := func(what string, _ any, err error) {
		t.Helper()
		if err == nil {
			t.Errorf("%s is accepted", what)
		}
	}
	check := func(what string) func(any, error) {
		return func(x any, err error) { t.Helper(); bad(what, x, err) }
	}
	seq := func(b ...privacy.Budget) (any, error) { return privacy.Sequential(b...) }
	check("nothing")(seq())
	check("nil")(seq(nil))
	check("an invalid budget")(seq(p, privacy.Pure{}))
	check("delta of 1 altogether")(seq(privacy.Approx{Epsilon: 1, Delta: 0.5},
		privacy.Approx{Epsilon: 1, Delta: 0.5}))
	check("two orders")(seq(privacy.Renyi{Alpha: 2, Epsilon: 1}, privacy.Renyi{Alpha: 3, Epsilon: 1}))
	check("overflow")(seq(privacy.Pure{Epsilon: 1e308}, privacy.Pure{Epsilon: 1e308}))
	group := func(b privacy.Budget, k int) (any, error) { return privacy.Group(b, k) }
	check("no records")(group(p, 0))
	check("a nil budget")(group(nil, 1))
	check("a group delta above 1")(group(privacy.Approx{Epsilon: 1, Delta: 1e-3}, 10))
	check("an order too small")(group(privacy.Renyi{Alpha: 3, Epsilon: 1}, 2))
	adv := func(b privacy.Approx, k int, s float64) (any, error) { return privacy.Advanced(b, k, s) }
	check("k = 0")(adv(privacy.Approx{Epsilon: 1}, 0, 0.1))
	check("slack 0")(adv(privacy.Approx{Epsilon: 1}, 2, 0))
	check("slack NaN")(adv(privacy.Approx{Epsilon: 1}, 2, math.NaN()))
	check("delta NaN")(adv(privacy.Approx{Epsilon: 1, Delta: math.NaN()}, 2, 0.1))
	rep := func(b privacy.Approx, k int, d float64) (any, error) { return privacy.Repeated(b, k, d) }
	check("delta overspent")(rep(privacy.Approx{Epsilon: 1, Delta: 0.1}, 3, 0.2))
	per := func(b privacy.Budget, k int) (any, error) { return privacy.PerBatch(b, k) }
	check("no batches")(per(p, 0))
	check("nil budget")(per(nil, 1))

	if b, err := privacy.Sequential(p, privacy.None{}); b != (privacy.None{}) || err != nil {
		t.Errorf("with none: %v, %v", b, err)
	}
	if b, err := privacy.Parallel(privacy.ZCDP{Rho: 1}, privacy.ZCDP{Rho: 3},
		privacy.ZCDP{Rho: 2}); b != (privacy.ZCDP{Rho: 3}) || err != nil {
		t.Errorf("parallel: %v, %v", b, err)
	}
}

// What every batch may spend adds up to no more than the total.
func TestPerBatchComposesToTheTotal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total := anyBudget().Draw(t, "total")
		n := rapid.IntRange(1, 5000).Draw(t, "batches")
		each, err := privacy.PerBatch(total, n)
		if err != nil {
			return // too small for a number
		}
		switch b := each.(type) {
		case privacy.Approx:
			all, err := privacy.Repeated(b, n, total.(privacy.Approx).Delta)
			if err != nil {
				if all, err = privacy.Repeated(b, n, total.(privacy.Approx).Delta*(1+1e-12)); err != nil {
					t.Fatal(err)
				}
			}
			if all.Epsilon > total.(privacy.Approx).Epsilon*(1+1e-9) {
				t.Fatalf("%d times %v is %v, above %v", n, b, all, total)
			}
		default:
			if r, ok := each.(privacy.Renyi); ok && !slices.Contains(privacy.Orders(), r.Alpha) {
				return // the ledger rounds the order down to its grid
			}
			if !privacy.LossOf(each).Times(n).Within(total) {
				t.Fatalf("%d times %v is above %v", n, each, total)
			}
		}
	})
}

// Group privacy of (ε,δ) by induction, one record at a time: δ_k = δ + e^ε·δ_{k−1} never
// exceeds the closed form, and the exponent the thesis prints, k−1 in place of (k−1)ε, would be
// below it for ε > 1.
func TestGroupDeltaByInduction(t *testing.T) {
	const epsilon, delta, k = 2.0, 1e-9, 5
	exact := 0.0
	for range k {
		exact = delta + math.Exp(epsilon)*exact
	}
	g, err := privacy.Group(privacy.Approx{Epsilon: epsilon, Delta: delta}, k)
	if err != nil {
		t.Fatal(err)
	}
	if got := g.(privacy.Approx).Delta; got < exact {
		t.Errorf("delta %v is below %v", got, exact)
	}
	if printed := delta * k * math.Exp(k-1); printed > exact {
		t.Errorf("the printed exponent gives %v, which would do: choose another example", printed)
	}
}
