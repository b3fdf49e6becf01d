package privacy_test

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/sotto-dp/sotto/privacy"
)

func ExampleZCDPToApprox() {
	fmt.Printf("%.6f\n", privacy.ZCDPToApprox(0.5, 1e-6))
	fmt.Printf("%.6f\n", privacy.ZCDPToApproxTight(0.5, 1e-6))
	// that noise has ρ = 0.5, and its δ(ε) is known exactly
	fmt.Printf("%.6f\n", privacy.Gaussian{Sigma: 1}.Loss().Approx(1e-6))
	// Output:
	// 5.756522
	// 5.221534
	// 4.886554
}

func TestTightConversionAgainstManyDigits(t *testing.T) {
	for _, c := range tightConversions {
		got, want := privacy.ZCDPToApproxTight(c[0], c[1]), c[2]
		if math.Abs(got-want) > 1e-12+1e-12*want {
			t.Errorf("ZCDPToApproxTight(%g, %g) = %.16g, want %.16g", c[0], c[1], got, want)
		}
		if closed := privacy.ZCDPToApprox(c[0], c[1]); got > closed {
			t.Errorf("rho = %g, delta = %g: tight %g is above closed %g", c[0], c[1], got, closed)
		}
	}
}

// renyi integrates log ∫ p^α q^{1−α} /(α−1) of Lap(b) against Lap(b) shifted by 1, by Simpson's
// rule on each of the three smooth pieces.
func renyi(b, alpha float64) float64 {
	f := func(x float64) float64 { return math.Exp((-alpha*math.Abs(x)-(1-alpha)*math.Abs(x-1))/b) / (2 * b) }
	piece := func(lo, hi float64) float64 {
		const n = 20_000
		h, sum := (hi-lo)/n, f(lo)+f(hi)
		for i := 1; i < n; i++ {
			sum += float64(2+2*(i%2)) * f(lo+float64(i)*h)
		}
		return sum * h / 3
	}
	return math.Log(piece(-60*b, 0)+piece(0, 1)+piece(1, 1+60*b)) / (alpha - 1)
}

func TestLaplaceRenyiAgainstIntegral(t *testing.T) {
	for _, b := range []float64{0.3, 1, 2, 10} {
		for _, alpha := range []float64{1.1, 2, 5, 30} {
			near(t, fmt.Sprintf("LaplaceRenyi(1/%g, %g)", b, alpha),
				privacy.LaplaceRenyi(1/b, alpha), renyi(b, alpha), 1e-8)
		}
	}
}

// Randomised response is ε-DP, so its divergence and its δ are what the conversions of pure DP must
// reach, and no more.
func TestPureConversionsAreThoseOfRandomisedResponse(t *testing.T) {
	for _, e := range []float64{0.02, 0.5, 1, 3, 10} {
		p := 1 / (1 + math.Exp(-e)) // of telling the truth
		q := 1 / (1 + math.Exp(e))
		for _, a := range []float64{1.5, 2, 4, 16} {
			want := math.Log(p*math.Pow(p/q, a-1)+q*math.Pow(q/p, a-1)) / (a - 1)
			near(t, fmt.Sprintf("PureToRenyi(%g, %g)", e, a), privacy.PureToRenyi(e, a), want, 1e-9)
			if l := privacy.LaplaceRenyi(e, a); l > want*(1+1e-12) {
				t.Errorf("epsilon %g, alpha %g: Laplace %g is above randomised response %g", e, a, l, want)
			}
		}
		for _, delta := range []float64{1e-9, 1e-3, 0.01, 0.1} {
			small := privacy.PureToApprox(e, delta)
			if got := p - math.Exp(small)*q; small > 0 && math.Abs(got-delta) > 1e-14 {
				t.Errorf("epsilon %g: at %g randomised response has delta %g, want %g", e, small, got, delta)
			}
		}
	}
	if got := privacy.PureToApprox(0.1, 0.5); got != 0 {
		t.Errorf("PureToApprox(0.1, 0.5) = %g, want 0: total variation is below 0.05", got)
	}
	near(t, "PureToZCDP(1)", privacy.PureToZCDP(1), 0.5, 0)
	near(t, "PureToZCDP(10)", privacy.PureToZCDP(10), 10, 0)
}

func TestConversionsAreMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := math.Exp(rapid.Float64Range(-20, 5).Draw(t, "log x"))
		y := x * (1 + math.Exp(rapid.Float64Range(-5, 3).Draw(t, "log growth")))
		d := math.Exp(rapid.Float64Range(-60, -0.1).Draw(t, "log delta"))
		e := d * rapid.Float64Range(0.001, 0.9).Draw(t, "shrink")
		a := 1 + math.Exp(rapid.Float64Range(-4, 8).Draw(t, "log alpha"))
		up := func(what string, small, large float64) {
			if !(small >= 0 && small <= large*(1+1e-9)+1e-15) {
				t.Fatalf("%s: %v, then %v", what, small, large)
			}
		}
		up("pure to zCDP", privacy.PureToZCDP(x), privacy.PureToZCDP(y))
		up("pure to Rényi", privacy.PureToRenyi(x, a), privacy.PureToRenyi(y, a))
		up("pure to Rényi in alpha", privacy.PureToRenyi(x, a), privacy.PureToRenyi(x, 2*a))
		up("Laplace", privacy.LaplaceRenyi(x, a), privacy.LaplaceRenyi(y, a))
		up("Laplace in alpha", privacy.LaplaceRenyi(x, a), privacy.LaplaceRenyi(x, 2*a))
		up("pure to approximate", privacy.PureToApprox(x, d), privacy.PureToApprox(y, d))
		up("pure to approximate in delta", privacy.PureToApprox(x, d), privacy.PureToApprox(x, e))
		up("zCDP", privacy.ZCDPToApprox(x, d), privacy.ZCDPToApprox(y, d))
		up("zCDP tight", privacy.ZCDPToApproxTight(x, d), privacy.ZCDPToApproxTight(y, d))
		up("zCDP tight in delta", privacy.ZCDPToApproxTight(x, d), privacy.ZCDPToApproxTight(x, e))
		up("tight below closed", privacy.ZCDPToApproxTight(x, d), privacy.ZCDPToApprox(x, d))
		up("Rényi", privacy.RenyiToApprox(a, x, d), privacy.RenyiToApprox(a, y, d))
		up("Gaussian below zCDP", privacy.GaussianEpsilon(x, d), privacy.ZCDPToApproxTight(x*x/2, d))
		// No conversion of a pure loss may beat the best there is, nor a Laplace release
		// its own pure loss.
		up("best of pure", privacy.LossOf(privacy.Pure{Epsilon: x}).Approx(d), privacy.PureToApprox(x, d))
		if got := privacy.LossOf(privacy.Pure{Epsilon: x}).Approx(d); got < privacy.PureToApprox(x,
			d)*(1-1e-9)-1e-15 {
			t.Fatalf("a conversion by way of another currency gives %v, below what randomised "+
				"response has", got)
		}
	})
}
