package privacy_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sotto-dp/sotto/privacy"
)

func ExampleClonesEpsilon() {
	// 100 000 shuffled reports, each 4-DP.
	fmt.Printf("%.6f\n", privacy.ClonesEpsilon(100_000, 4, 1e-6))
	// Output:
	// 0.118153
}

func TestClonesWorkedNumbers(t *testing.T) {
	for _, c := range []struct {
		n               int
		epsilon0, delta float64
		want            string
	}{
		{100_000, 4, 1e-6, "0.118153"},
		{10_000, 1, 1e-6, "0.043206"},
		{1000, 1, 1e-5, "0.125040"},
		{1_000_000, 4, 1e-8, "0.045073"},
		{10_000, 4, 1e-6, "0.410812"},
		{1000, 0.5, 1e-6, "0.062687"},
		{1000, 2, 1e-6, "0.397087"},
	} {
		if got := fmt.Sprintf("%.6f", privacy.ClonesEpsilon(c.n, c.epsilon0, c.delta)); got != c.want {
			t.Errorf("n = %d, ε0 = %v, δ = %v: %s, want %s", c.n, c.epsilon0, c.delta, got, c.want)
		}
	}
}

// hockeyStick is the δ of the clones' pair by adding up every outcome, in the order of its
// definition.
func hockeyStick(n int, epsilon0, epsilon float64) float64 {
	p, a := 2/(1+math.Exp(epsilon0)), 1/(1+math.Exp(-epsilon0))
	delta := 0.0
	choose := func(n, k int) float64 {
		x, _ := math.Lgamma(float64(n + 1))
		y, _ := math.Lgamma(float64(k + 1))
		z, _ := math.Lgamma(float64(n - k + 1))
		return x - y - z
	}
	for c := range n {
		w := math.Exp(choose(n-1, c) + float64(c)*math.Log(p) + float64(n-1-c)*math.Log1p(-p))
		f := func(x int) float64 {
			if x < 0 || x > c {
				return 0
			}
			return math.Exp(choose(c, x) - float64(c)*math.Ln2)
		}
		for x := range c + 2 {
			P := a*f(x-1) + (1-a)*f(x)
			Q := (1-a)*f(x-1) + a*f(x)
			delta += w * max(0, P-math.Exp(epsilon)*Q)
		}
	}
	return delta
}

func TestClonesDeltaAgainstItsDefinition(t *testing.T) {
	for _, n := range []int{1, 2, 3, 10, 150} {
		for _, e0 := range []float64{0.01, 0.5, 1, 3, 8} {
			for _, share := range []float64{0, 0.01, 0.1, 0.3, 0.7, 0.99, 1, 2} {
				want := hockeyStick(n, e0, share*e0)
				got := privacy.ClonesDelta(n, e0, share*e0)
				// The definition's sum subtracts masses of up to e^ε.
				if math.Abs(got-want) > 1e-9*want+4e-16*(1+math.Exp(share*e0)) {
					t.Errorf("n = %d, ε0 = %v, ε = %v·ε0: δ = %v, want %v", n, e0, share, got, want)
				}
			}
		}
	}
	// nobody to hide among: randomised response
	if d := privacy.ClonesDelta(1, 1, 0); math.Abs(d-math.Tanh(0.5)) > 1e-15 {
		t.Errorf("alone: δ(0) = %v", d)
	}
}

func TestClonesOfExtremes(t *testing.T) {
	for _, e0 := range []float64{1e-300, 1e-12, 50, 700, 1000, 1e300} {
		for _, n := range []int{1, 2, 1000, math.MaxInt} {
			e := privacy.ClonesEpsilon(n, e0, 1e-9)
			if d := privacy.ClonesDelta(n, e0, e0/2); !(d >= 0 && d <= 1) || !(e >= 0 && e <= e0) {
				t.Errorf("n = %d, ε0 = %v: δ(ε0/2) = %v, ε = %v", n, e0, d, e)
			}
		}
	}
	for _, x := range [][3]float64{{10, math.NaN(), 1}, {10, 1, math.NaN()}, {0, 1, 0.1},
		{10, -1, 0.1}, {10, 1, -1}} {
		if d, e := privacy.ClonesDelta(int(x[0]), x[1], x[2]),
			privacy.ClonesEpsilon(int(x[0]), x[1], x[2]); d != 1 || x[2] != 0.1 &&
			!math.IsInf(e, 1) && x[2] != 1 {
			t.Errorf("%v: δ = %v, ε = %v", x, d, e)
		}
	}
}

func TestClonesAreMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := int(math.Exp(rapid.Float64Range(0, 8.5).Draw(t, "log n")))
		e0 := math.Exp(rapid.Float64Range(-3, 2.2).Draw(t, "log epsilon0"))
		delta := math.Exp(rapid.Float64Range(-30, -1).Draw(t, "log delta"))
		e := privacy.ClonesEpsilon(n, e0, delta)
		if !(e >= 0 && e <= e0) {
			t.Fatalf("ε = %v for ε0 = %v", e, e0)
		}
		if d := privacy.ClonesDelta(n, e0, e); d > delta {
			t.Fatalf("δ(%v) = %v, above %v", e, d, delta)
		}
		if more := privacy.ClonesEpsilon(2*n, e0, delta); more > e*(1+1e-9) {
			t.Fatalf("ε grows from %v to %v with twice the users", e, more)
		}
		if less := privacy.ClonesEpsilon(n, 0.9*e0, delta); less > e*(1+1e-9) {
			t.Fatalf("ε grows from %v to %v with a smaller ε0", e, less)
		}
	})
}

func TestClonesLocalIsTheInverse(t *testing.T) {
	for _, c := range []struct {
		n int
		b privacy.Approx
	}{{1000, privacy.Approx{Epsilon: 0.1, Delta: 1e-6}},
		{100_000, privacy.Approx{Epsilon: 0.118153, Delta: 1e-6}},
		{10, privacy.Approx{Epsilon: 1, Delta: 1e-9}}} {
		e0, err := privacy.ClonesLocal(c.n, c.b)
		if err != nil || !(e0 >= c.b.Epsilon) {
			t.Fatalf("%v: %v, %v", c, e0, err)
		}
		if e := privacy.ClonesEpsilon(c.n, e0, c.b.Delta); e > c.b.Epsilon*(1+1e-9) {
			t.Errorf("%v: ε0 = %v gives %v", c, e0, e)
		}
		if e := privacy.ClonesEpsilon(c.n, e0*1.0001, c.b.Delta); e <= c.b.Epsilon {
			t.Errorf("%v: ε0 = %v could be larger", c, e0)
		}
	}
	for _, c := range []struct {
		n int
		b privacy.Approx
	}{{0, privacy.Approx{Epsilon: 1, Delta: 0.1}}, {5, privacy.Approx{Epsilon: -1, Delta: 0.1}},
		{5, privacy.Approx{Epsilon: 1, Delta: 2}}} {
		if e, err := privacy.ClonesLocal(c.n, c.b); err == nil {
			t.Errorf("%v: %v", c, e)
		}
	}
}

func local(t testing.TB, epsilon float64, users int) privacy.Aggregated {
	t.Helper()
	return aggregated(t, privacy.Calibration{Trust: privacy.TrustLocal, Noise: privacy.NoiseLaplace,
		Epsilon: epsilon, S: 1, Users: users, Invited: users, P: 0.01})
}

func TestClonesCostsApprox(t *testing.T) {
	m := privacy.Clones{Inner: local(t, 4, 100_000), Delta: 1e-6}
	l := m.Loss()
	near(t, "epsilon", l.Approx(1e-6), 0.118153, 3e-6)
	if !math.IsInf(l.Pure(), 1) || !math.IsInf(l.ZCDP(), 1) || !math.IsInf(l.Approx(0.9e-6), 1) {
		t.Errorf("%v costs %v", m, l)
	}
	near(t, "ten batches", l.Times(10).Approx(1e-5), 1.18153, 3e-6)
	if m.Tail() != m.Inner.Tail() || m.TailOf(50_000) != m.Inner.TailOf(50_000) {
		t.Errorf("tail %v", m.Tail())
	}
	// Fewer users hide worse.
	if fewer := (privacy.Clones{Inner: local(t, 4, 1000), Delta: 1e-6}).Loss().Approx(1e-6); !(fewer > 1) {
		t.Errorf("1000 users: %v", fewer)
	}
	bad := m
	bad.Inner = aggregated(t, privacy.Calibration{Trust: privacy.TrustLocal,
		Noise: privacy.NoiseGaussian, Epsilon: 1, S: 1, Users: 10, Invited: 10, P: 0.1})
	for _, c := range []struct {
		m       privacy.Clones
		mention string
	}{{bad, `noise "gaussian", must have "local" and "laplace"`},
		{privacy.Clones{Inner: m.Inner}, "delta is 0"},
		{privacy.Clones{Inner: m.Inner, Delta: 1}, "delta is 1"},
		{privacy.Clones{Delta: 0.1}, "inner: mechanism aggregated: trust"}} {
		if err := c.m.Validate(); err == nil || !strings.Contains(err.Error(), c.mention) ||
			!c.m.Loss().Infinite() {
			t.Errorf("%v: %v", c.m, err)
		}
	}
	silent := m
	silent.Inner.Num = 0
	if err := silent.Validate(); err != nil || !silent.Loss().Infinite() {
		t.Errorf("without noise: %v, %v", err, silent.Loss())
	}
	data, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := privacy.UnmarshalMechanism(data); got != m || err != nil {
		t.Errorf("%s reads back as %v, %v", data, got, err)
	}
}
