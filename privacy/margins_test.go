package privacy

import (
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
)

// Calibrations are the best to within the last digits: a little less noise, or a little more loss,
// does not meet the budget. Small and large ε have small and large σ, μ and ρ.
func TestCalibrationsAreTight(t *testing.T) {
	for _, delta := range []float64{1e-300, 1e-12, 1e-6, 0.01, 0.5, 0.9, 0.999999} {
		for e := 1e-6; e < 1e7; e *= 2.3 {
			b := Approx{e, delta}
			sigma, err := AnalyticSigma(b)
			if err != nil {
				t.Fatal(b, err)
			}
			if GaussianDelta(e, 1/sigma) > delta || GaussianDelta(e, 1/(sigma*(1-1e-11))) <= delta {
				t.Errorf("%v: σ = %v has δ = %v; σ(1−1e-11) has %v", b, sigma,
					GaussianDelta(e, 1/sigma), GaussianDelta(e, 1/(sigma*(1-1e-11))))
			}
			mu, err := GDPWithin(b)
			if err != nil {
				t.Fatal(b, err)
			}
			if more := LossOf(GDP{mu.Mu * (1 + 1e-9)}).Approx(delta); more <= e ||
				LossOf(mu).Approx(delta) > e {
				t.Errorf("%v: μ = %v has ε = %v, and μ(1+1e-9) %v", b, mu.Mu,
					LossOf(mu).Approx(delta), more)
			}
			rho := approxToZCDP(b)
			if more := ZCDPToApproxTight(rho*(1+1e-11), delta); more <= e ||
				ZCDPToApproxTight(rho, delta) > e {
				t.Errorf("%v: ρ = %v, and ρ(1+1e-11) has ε = %v", b, rho, more)
			}
		}
	}
}

// What guards a conversion against rounding is as large as it is said to be, wherever the
// rounding that happened is smaller: a guard that is mistyped would be no bound elsewhere.
func TestGuardsAreOfTheSizeThatIsSaid(t *testing.T) {
	for _, c := range [][3]float64{ // ε, μ, δ, the last computed with 60 digits and more
		{0.0001, 0.0001, 8.33196363992520995e-6}, {0.01, 0.01, 0.000837324267477342345},
		{0.5, 0.1, 6.85658245583873714e-9}, {3, 0.999, 0.00151973361120722605},
		{3, 0.5, 3.40091173567352882e-10}, {10, 0.999, 8.8535924311823122e-23},
	} {
		e, mu, delta := c[0], c[1], c[2]
		// GaussianEpsilon lowers δ by ulps(5 + 2 log 1/δ) of it: how much ε that is, by ∂δ/∂ε =
		// −e^ε Φ(−ε/μ − μ/2).
		a, b := e/mu-mu/2, e/mu+mu/2
		slope := math.Exp(-a*a/2) / math.Sqrt(2*math.Pi) * mills(b)
		want := ulps*(5-2*math.Log(delta))*delta/slope + ulps*e
		if got := GaussianEpsilon(mu, delta) - e; got < 0.7*want || got > 1.3*want {
			t.Errorf("GaussianEpsilon(%v, %v) is %g above ε = %v, must be %g", mu, delta, got, e, want)
		}
	}
	more := func(got float64, exact *big.Float) float64 {
		x, _ := lessOf(digits(got), exact).Float64()
		return x
	}
	one := digits(1)
	for _, c := range [][3]float64{{2, 1.5, 0.9}, {1.5, 3, 0.5}, {3, 1, 0.1}, {10, 4, 1e-9}} {
		alpha, epsilon, delta := c[0], c[1], c[2]
		less := lessOf(digits(alpha), one)
		want := lessOf(digits(epsilon), overOf(sumOf(logOf(digits(alpha)), logOf(digits(delta))), less))
		want = sumOf(want, logOf(overOf(less, digits(alpha))))
		size := epsilon + (math.Log(alpha)-math.Log(delta))/(alpha-1) + math.Log(alpha/(alpha-1))
		if got := more(RenyiToApprox(alpha, epsilon, delta), want); got < 0.75*ulps*size ||
			got > 1.25*ulps*size {
			t.Errorf("RenyiToApprox%v is %g above, its terms are %g", c, got, size)
		}
	}
	for _, c := range [][2]float64{{3, 0.5}, {1.5, 2.1}, {2, 1}, {5, 0.25}, {1.01, 150}} {
		alpha, x := c[0], c[1]
		a, e := digits(alpha), digits(x)
		less := lessOf(a, one)
		two := sumOf(a, less)
		top := sumOf(overOf(timesOf(a, expOf(timesOf(less, e))), two),
			overOf(timesOf(less, expOf(digits(0).Neg(timesOf(a, e)))), two))
		exact := overOf(logOf(top), less)
		value, _ := exact.Float64()
		rest := math.Abs(value-x) * (alpha - 1)
		size := x + (1+rest)/(alpha-1)
		if got := more(laplaceShiftRenyi(x, alpha), exact); got < 0.75*ulps*size || got > 1.25*ulps*size {
			t.Errorf("LaplaceRenyi(%v, %v) is %g above, its terms are %g", x, alpha, got, size)
		}
	}
	// A tiny loss keeps its digits off the grid of orders: the chord of (α−1)D_α from 6 to 7.
	for _, epsilon := range []float64{1e-9, 1e-3, 10} {
		l := Loss{renyiless()}
		for i, a := range orders {
			l.t.rdp[i] = a * epsilon
		}
		below, above := 5*l.Renyi(6), 6*l.Renyi(7)
		chord := (below + above) / 2 / 5.5
		if got := l.Renyi(6.5); got < chord || got > chord*(1+1e-12) {
			t.Errorf("order 6.5 of %v: %v, the chord is %v", epsilon, got, chord)
		}
	}
}

// What local users may spend keeps its δ below the promised one by what ClonesDelta rounds, in 2000
// batches; near the root the last digits of δ tell a guard that is not there.
func TestClonesLocalIsGuarded(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		n, b := 2+r.IntN(20), Approx{math.Exp(-6 * r.Float64()), math.Exp(-14 * r.Float64())}
		local, err := ClonesLocal(n, b)
		if err != nil {
			t.Fatal(err)
		}
		most := digits(b.Delta)
		most = lessOf(most, timesOf(most, digits(1e-11)))
		if delta := ClonesDelta(n, local, b.Epsilon); digits(delta*(1-1e-15)).Cmp(most) > 0 {
			t.Errorf("%d users at %v: %v each has δ = %v", n, b, local, delta)
		}
	}
}

// Quotients that are added up are rounded up, also where they are tiny.
func TestInversesOfTinyQuotients(t *testing.T) {
	raisedOnce := false
	for i := 1; i < 200; i++ {
		scale := 1e20 * (1 + float64(i)/37)
		num, den := []float64{1, 2}, []float64{scale, 3 * scale}
		want := new(big.Rat).SetFrac64(0, 1)
		for k := range num {
			x, y := new(big.Rat).SetFloat64(num[k]), new(big.Rat).SetFloat64(den[k])
			want.Add(want, x.Quo(x, y))
		}
		got := new(big.Rat).SetFloat64(inverses(num, den))
		share, _ := new(big.Rat).SetString("1e-30")
		least := new(big.Rat).Sub(want, share.Mul(share, want))
		if got.Cmp(least) < 0 {
			t.Errorf("1/%v + 2/%v is below its value", scale, 3*scale)
		}
		nearest, _ := want.Float64()
		raisedOnce = raisedOnce || new(big.Rat).SetFloat64(nearest).Cmp(want) < 0
	}
	if !raisedOnce {
		t.Error("no sum had to be rounded up")
	}
}

// log f(0)/f(g) of Pólya noise in 400 bits, raised by what its sums are said to round, 2⁻⁵³(20k +
// 3g) for k terms. Beyond 10^8 it is not computed.
func TestPolyaRounding(t *testing.T) {
	for _, c := range []struct {
		g    int64
		b, r float64
	}{{2000, 10, 0.5}, {1, 50, 0.25}, {30, 1000, 0.75}, {100_000, 700, 0.5}} {
		above, r := digits(1), digits(c.r)
		for k := range c.g {
			above = overOf(timesOf(above, sumOf(digits(float64(k)), r)), digits(float64(k+1)))
		}
		beta2 := expOf(overOf(digits(-2), digits(c.b)))
		ck, power, near, far := digits(1), digits(1), digits(0), digits(0)
		k := 0.0
		terms := math.Ceil(-math.Log(1e-17) * c.b / 2)
		for ; k < 1.2*terms; k++ {
			near = sumOf(near, timesOf(timesOf(ck, ck), power))
			far = sumOf(far, timesOf(timesOf(ck, above), power))
			ck = overOf(timesOf(ck, sumOf(digits(k), r)), digits(k+1))
			above = overOf(timesOf(above, sumOf(digits(k+float64(c.g)), r)), digits(k+float64(c.g)+1))
			power = timesOf(power, beta2)
		}
		exact := sumOf(overOf(digits(float64(c.g)), digits(c.b)), logOf(overOf(near, far)))
		got := polyaEpsilon(c.g, c.b, c.r)
		value, _ := exact.Float64()
		diff, _ := lessOf(digits(got), exact).Float64()
		want := 0x1p-53*(20*terms+3*float64(c.g)) + many*value
		if diff < 0.9*want || diff > 1.1*want {
			t.Errorf("g %d, b %v, r %v: %v is %g above %v, must be %g", c.g, c.b, c.r, got, diff, value, want)
		}
	}
	if e := polyaEpsilon(1, 1e7, 0.5); !math.IsInf(e, 1) {
		t.Errorf("b = 10^7 has ε = %v", e)
	}
	if e := polyaEpsilon(1e8-20, 1, 0.5); math.IsInf(e, 1) {
		t.Error("g + 20b = 10^8 is not computed")
	}
}

// τ and g are not one more for a product that rounds to just above a whole number, and the ends
// of what is allowed are allowed.
func TestAggregatedEdges(t *testing.T) {
	c := Calibration{Trust: TrustCentral, Noise: NoiseLaplace, Epsilon: 1, S: 1, Users: 1, Invited: 1}
	whole := 0
	for k := 2.0; k < 30; k++ {
		c.P = 2 * math.Exp(-k)
		m, err := NewAggregated(c)
		if err != nil || m.Tau != int64(k) {
			t.Errorf("p = 2e^-%v: τ is %d, must be %v; %v", k, m.Tau, k, err)
		}
		whole++
	}
	c.P = 0.5
	c.Epsilon = 0x1p-50 // b is 2^50, the most
	if _, err := NewAggregated(c); err != nil && strings.Contains(err.Error(), "2^50") {
		t.Error(err)
	}
	c.Epsilon, c.S = 1, 0x1p63
	for math.Ceil(c.S*(1-1e-14)) < 0x1p63 {
		c.S = math.Nextafter(c.S, math.Inf(1))
	}
	if _, err := NewAggregated(c); err == nil || !strings.Contains(err.Error(), "precision g") {
		t.Errorf("g = 2^63: %v", err)
	}
}

// What an action's leverage is rounded up by is 2⁻⁴⁹ for singular values that are equal.
func TestLeveragesAreRoundedUp(t *testing.T) {
	actions, counts := make([][]float64, 100), make([]int, 100)
	for i := range actions {
		actions[i], counts[i] = []float64{0.75}, 1
	}
	m, err := NewElliptic(1, actions, counts)
	if err != nil {
		t.Fatal(err)
	}
	if more := m.G2() - 0.01; more < 0.8*0x1p-49 || more > 1.2*0x1p-49 {
		t.Errorf("g² is 1/100 and %g, must be 2^-49 = %g more", more, 0x1p-49)
	}
}

// Where no direction is thin, actions are written as they are; where one is, each is the
// combination of the basis that its coordinates say.
func TestReduced(t *testing.T) {
	m, err := NewElliptic(1, [][]float64{{1, 0}, {1, 3}}, []int{4, 9})
	if err != nil {
		t.Fatal(err)
	}
	if c, b := m.Reduced(); c != nil || b != nil {
		t.Errorf("two directions of two: %v, %v", c, b)
	}
	actions := [][]float64{{1, 2, 8}, {3, 6 + 0x1p-50, 24}, {0, 5, 0}, {-1, 3, -8}}
	m, err = NewElliptic(1, actions, []int{4, 9, 25, 1})
	if err != nil {
		t.Fatal(err)
	}
	coordinates, basis := m.Reduced()
	if len(coordinates) != len(actions) || len(basis) != 2 {
		t.Fatalf("%d actions by a basis of %d, must be %d and 2", len(coordinates), len(basis), len(actions))
	}
	for i, a := range actions {
		for j, want := range a {
			got := 0.0
			for k, x := range coordinates[i] {
				got += x * basis[k][j]
			}
			if math.Abs(got-want) > 1e-13 {
				t.Errorf("action %d, coordinate %d: %v, must be %v", i, j, got, want)
			}
		}
	}
}

// A hybrid's tail for k finished segments, by hand: k variates of scale 2 and k nodes of scale
// 2(k+1).
func TestHybridTails(t *testing.T) {
	tails := Hybrid{Scale: 2}.Tails()
	for k, want := range map[int]Tail{
		0: {Sigma: 0, H: 2},
		1: {Sigma: math.Sqrt(2 * (4 + 16)), H: 4},
		3: {Sigma: math.Sqrt(2 * (3*4 + 3*64)), H: 8},
	} {
		if tails[k] != want {
			t.Errorf("after %d segments: %+v, must be %+v", k, tails[k], want)
		}
	}
}

// A mechanism that was never filled in has no noise: what is released through it costs ∞, also
// as the first release of a ledger.
func TestZeroMechanismsHaveNoPrice(t *testing.T) {
	for _, m := range []Mechanism{Laplace{}, Gaussian{}, Tree{}, Hybrid{}, Sums{}} {
		l := NewLedger()
		if _, err := l.Release(0, m, &Values{Sum: []float64{1}, N: []int{1}}); err != nil {
			continue
		}
		if !l.Total().Infinite() {
			t.Errorf("a first release through %#v costs %v", m, l.Total())
		}
	}
}
