package privacy_test

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/sotto-dp/sotto/privacy"
)

func ExampleLoss() {
	l := privacy.Laplace{Scale: 10}.Loss().Times(100) // a hundred releases of one slot at ε = 0.1
	fmt.Printf("%.1f\n", l.Pure())
	fmt.Printf("%.2f\n", l.ZCDP())
	fmt.Printf("%.2f\n", l.Approx(1e-6))
	fmt.Println(l.Within(privacy.Approx{Epsilon: 5.01, Delta: 1e-6}), l.Within(privacy.Pure{Epsilon: 5}))
	// Output:
	// 10.0
	// 0.50
	// 5.00
	// true false
}

func anyLoss() *rapid.Generator[privacy.Loss] {
	return rapid.Custom(func(t *rapid.T) privacy.Loss {
		if rapid.Bool().Draw(t, "of a mechanism") {
			return anyMechanism().Draw(t, "mechanism").Loss()
		}
		return privacy.LossOf(anyBudget().Draw(t, "budget"))
	})
}

// same compares two losses in every currency, up to rounding.
func same(t *rapid.T, what string, a, b privacy.Loss) {
	t.Helper()
	near := func(currency string, x, y float64) {
		if x != y && !(math.Abs(x-y) <= 1e-12*(x+y)) {
			t.Fatalf("%s: %s %v, %v", what, currency, x, y)
		}
	}
	near("pure", a.Pure(), b.Pure())
	near("zCDP", a.ZCDP(), b.ZCDP())
	for _, o := range []float64{1.005, 2, 3.3, 64, 1e7} {
		near("Rényi", a.Renyi(o), b.Renyi(o))
	}
}

// below says that a is at most b in every currency.
func below(t *rapid.T, what string, a, b privacy.Loss) {
	t.Helper()
	le := func(currency string, x, y float64) {
		if !(x <= y*(1+1e-9)+1e-300) {
			t.Fatalf("%s: %s %v is above %v", what, currency, x, y)
		}
	}
	le("pure", a.Pure(), b.Pure())
	le("zCDP", a.ZCDP(), b.ZCDP())
	for _, o := range []float64{1.005, 2, 3.3, 64, 1e7} {
		le("Rényi", a.Renyi(o), b.Renyi(o))
	}
	for _, d := range []float64{1e-9, 1e-3} {
		le("approximate", a.Approx(d), b.Approx(d)+1e-13)
	}
}

func TestLossAlgebra(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := anyLoss().Draw(t, "a"), anyLoss().Draw(t, "b"), anyLoss().Draw(t, "c")
		zero := privacy.Loss{}
		same(t, "a+b = b+a", a.Add(b), b.Add(a))
		same(t, "(a+b)+c = a+(b+c)", a.Add(b).Add(c), a.Add(b.Add(c)))
		same(t, "a+0 = a", a.Add(zero), a)
		same(t, "0+a = a", zero.Add(a), a)
		same(t, "max(a,b) = max(b,a)", a.Max(b), b.Max(a))
		same(t, "max(a,max(b,c))", a.Max(b).Max(c), a.Max(b.Max(c)))
		same(t, "max(a,a) = a", a.Max(a), a)
		same(t, "max(a,0) = a", a.Max(zero), a)
		same(t, "3a = a+a+a", a.Times(3), a.Add(a).Add(a))
		same(t, "0a = 0", a.Times(0), zero)
		below(t, "a ≤ max(a,b)", a, a.Max(b))
		below(t, "max(a,b) ≤ a+b", a.Max(b), a.Add(b))
		if i := privacy.InfiniteLoss(); !a.Add(i).Infinite() || !i.Max(a).Infinite() {
			t.Fatal("∞ got lost")
		}
	})
}

func TestALossIsWithinItself(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := anyBudget().Draw(t, "budget")
		if r, ok := b.(privacy.Renyi); ok {
			r.Alpha = rapid.SampledFrom(privacy.Orders()).Draw(t, "order")
			b = r
		}
		l := privacy.LossOf(b)
		if !l.Within(b) {
			t.Fatalf("%v is not within itself", b)
		}
		if b == (privacy.None{}) {
			return
		}
		if got := l.In(b); !within(got, b) {
			t.Fatalf("In(%v) = %v", b, got)
		}
		if !privacy.InfiniteLoss().Within(privacy.None{}) || privacy.InfiniteLoss().Within(b) {
			t.Fatal("∞ is within None and nothing else")
		}
		if !(privacy.Loss{}).Within(b) {
			t.Fatal("nothing is not within a budget")
		}
	})
}

func within(a, b privacy.Budget) bool {
	switch b := b.(type) {
	case privacy.Pure:
		return a.(privacy.Pure).Epsilon <= b.Epsilon
	case privacy.ZCDP:
		return a.(privacy.ZCDP).Rho <= b.Rho
	case privacy.GDP:
		return a.(privacy.GDP).Mu <= b.Mu*(1+1e-15)
	case privacy.Approx:
		return a.(privacy.Approx).Epsilon <= b.Epsilon && a.(privacy.Approx).Delta == b.Delta
	case privacy.Renyi:
		return a.(privacy.Renyi).Epsilon <= b.Epsilon && a.(privacy.Renyi).Alpha == b.Alpha
	}
	return false
}

func TestEventsWithoutARenyiBoundAddUpApart(t *testing.T) {
	l := privacy.LossOf(privacy.Approx{Epsilon: 0.5,
		Delta: 1e-7}).Times(2).Add(privacy.Gaussian{Sigma: 1}.Loss())
	if !math.IsInf(l.Pure(), 1) || !math.IsInf(l.ZCDP(), 1) || !math.IsInf(l.Renyi(2), 1) {
		t.Errorf("an (ε,δ) event has %v, %v, %v", l.Pure(), l.ZCDP(), l.Renyi(2))
	}
	near(t, "Approx", l.Approx(1e-6), 1+privacy.GaussianEpsilon(1, 8e-7), 1e-12)
	if got := l.Approx(1e-7); !math.IsInf(got, 1) {
		t.Errorf("Approx below the δ that was spent is %v", got)
	}
	if l.Infinite() {
		t.Error("it is not infinite")
	}
	for _, d := range []float64{0, -1, math.NaN()} {
		if got := l.Approx(d); !math.IsInf(got, 1) {
			t.Errorf("Approx(%v) = %v", d, got)
		}
	}
	if got := (privacy.Laplace{Scale: 1}).Loss().Approx(0); got != 1 {
		t.Errorf("Approx(0) of a pure loss is %v", got)
	}
}

// (α,ε)-RDP bounds the orders up to α, and says nothing above.
func TestRenyiBudgetBoundsLowerOrders(t *testing.T) {
	l := privacy.LossOf(privacy.Renyi{Alpha: 8, Epsilon: 0.5})
	for _, a := range []float64{1.5, 4, 6.3, 8} {
		if got := l.Renyi(a); !(got > 0 && got <= 0.5) {
			t.Errorf("Renyi(%v) = %v", a, got)
		}
	}
	for _, a := range []float64{8.1, 9, 64, 1e9} {
		if got := l.Renyi(a); !math.IsInf(got, 1) {
			t.Errorf("Renyi(%v) = %v", a, got)
		}
	}
	near(t, "Approx", l.Approx(1e-6), privacy.RenyiToApprox(8, 0.5, 1e-6), 1e-14)
}

// Off the grid the chord is above the true curve, and not far above.
func TestRenyiBetweenOrders(t *testing.T) {
	l := privacy.Laplace{Scale: 1}.Loss()
	for a := 1.003; a < 1e5; a *= 1.07 {
		exact := privacy.LaplaceRenyi(1, a)
		if got := l.Renyi(a); got < exact*(1-1e-12) || got > exact*1.02 {
			t.Errorf("Renyi(%g) = %g, exact %g", a, got, exact)
		}
	}
	if got := l.Renyi(1); !math.IsInf(got, 1) {
		t.Errorf("Renyi(1) = %v: the order must be above 1", got)
	}
}

func TestLossesReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := anyLoss().Draw(t, "a").Add(anyLoss().Draw(t, "b"))
		data, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		var back privacy.Loss
		if err := json.Unmarshal(data, &back); err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		same(t, "JSON", l, back)
		for _, d := range []float64{1e-9, 1e-3} {
			if x, y := l.Approx(d), back.Approx(d); x != y {
				t.Fatalf("JSON: approximate %v, %v", x, y)
			}
		}
	})
	data, err := json.Marshal(privacy.InfiniteLoss())
	if want := `{"epsilon":"none","rho":"none","mu2":"none","approx":["none",1]}`; string(data) != want ||
		err != nil {
		t.Errorf("∞ is written %s (%v), want %s", data, err, want)
	}
	var l privacy.Loss
	for _, s := range []string{`{"epsilon":-1}`, `{"epsilon":null,"rho":"inf"}`, `{"approx":[1,2]}`,
		`{"x":1}`, `[]`, `{"renyi":[[2,-1]]}`} {
		if err := json.Unmarshal([]byte(s), &l); err == nil {
			t.Errorf("%s is accepted", s)
		}
	}
	if err := json.Unmarshal([]byte(`{}`), &l); err != nil || !math.IsInf(l.Approx(1e-3), 1) {
		t.Errorf("a loss of which nothing is known: %v, %v", l, err)
	}
}

func FuzzUnmarshalLoss(f *testing.F) {
	f.Add([]byte(`{"epsilon":1,"rho":0.5,"mu2":"none","renyi":[[2,0.3]],"approx":[1,1e-6]}`))
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var l, back privacy.Loss
		if json.Unmarshal(data, &l) != nil {
			return
		}
		out, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(out, &back); err != nil {
			t.Fatalf("%s became %s: %v", data, out, err)
		}
		if l.Pure() != back.Pure() || l.ZCDP() != back.ZCDP() || l.Renyi(2) != back.Renyi(2) {
			t.Fatalf("%s became %s", data, out)
		}
	})
}
