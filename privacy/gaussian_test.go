package privacy_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/privacy"
)

var near = testkit.Close

func ExampleGaussianSigma() {
	for _, b := range []privacy.Budget{privacy.ZCDP{Rho: 0.5}, privacy.Renyi{Alpha: 8, Epsilon: 4},
		privacy.Approx{Epsilon: 0.5, Delta: 1e-6},
		privacy.Approx{Epsilon: 1, Delta: 1e-6}, privacy.None{}} {
		sigma, err := privacy.GaussianSigma(b)
		fmt.Printf("%v: %.5f %v\n", b, sigma, err)
	}
	_, err := privacy.GaussianSigma(privacy.Pure{Epsilon: 1})
	fmt.Println(err)
	// Output:
	// rho=0.5: 1.00000 <nil>
	// alpha=8,epsilon=4: 1.00000 <nil>
	// epsilon=0.5,delta=1e-06: 10.59761 <nil>
	// epsilon=1,delta=1e-06: 4.22468 <nil>
	// none: 0.00000 <nil>
	// Gaussian noise: budget is epsilon=1: it is never pure; the budget must be rho, or epsilon and delta, or alpha and epsilon, or mu
}

// The tolerance is what double precision of the argument allows: a relative error u of μ changes δ
// by about a²·u, a = ε/μ − μ/2 ≤ 36.
func TestGaussianDeltaAgainstManyDigits(t *testing.T) {
	for _, c := range gaussianDeltas {
		near(t, fmt.Sprintf("GaussianDelta(%g, %g)", c[0], c[1]), privacy.GaussianDelta(c[0], c[1]),
			c[2], 2e-12)
	}
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range [][3]float64{{1, 0, 0}, {1, inf, 1}, {inf, 1, 0}, {0, 1e-300, 0},
		{0, 1e300, 1}, {1e300, 1, 0}} {
		if got := privacy.GaussianDelta(c[0], c[1]); math.Abs(got-c[2]) > 1e-299 {
			t.Errorf("GaussianDelta(%g, %g) = %g, want %g", c[0], c[1], got, c[2])
		}
	}
	for _, c := range [][2]float64{{nan, 1}, {1, nan}, {-1, 1}, {1, -1}} {
		if got := privacy.GaussianDelta(c[0], c[1]); !math.IsNaN(got) {
			t.Errorf("GaussianDelta(%g, %g) = %g, want NaN", c[0], c[1], got)
		}
	}
}

func TestAnalyticSigmaAgainstManyDigits(t *testing.T) {
	for _, c := range analyticSigmas {
		got, err := privacy.AnalyticSigma(privacy.Approx{Epsilon: c[0], Delta: c[1]})
		if err != nil {
			t.Fatal(err)
		}
		near(t, fmt.Sprintf("AnalyticSigma(%g, %g)", c[0], c[1]), got, c[2], 1e-12)
	}
}

func TestAnalyticSigmaIsValidAndTight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := privacy.Approx{Epsilon: math.Exp(rapid.Float64Range(-12, 6).Draw(t, "log epsilon")),
			Delta: math.Exp(rapid.Float64Range(-200, -0.1).Draw(t, "log delta"))}
		sigma, err := privacy.AnalyticSigma(b)
		if err != nil {
			t.Fatal(err)
		}
		delta := privacy.GaussianDelta(b.Epsilon, 1/sigma)
		if !(delta <= b.Delta && delta >= b.Delta*(1-1e-9)) {
			t.Fatalf("%v: sigma %v has delta %v", b, sigma, delta)
		}
		if b.Epsilon < 1 {
			classic, err := privacy.ClassicSigma(b)
			if err != nil {
				t.Fatal(err)
			}
			// The classic theorem also asks for δ small enough that its proof's bounds hold; 1.25/δ
			// is generous below 0.5.
			if b.Delta < 0.5 && sigma > classic {
				t.Fatalf("%v: analytic %v is above classic %v", b, sigma, classic)
			}
		}
		if e := privacy.GaussianEpsilon(1/sigma, b.Delta); math.Abs(e-b.Epsilon) > 1e-7*b.Epsilon+1e-13 {
			t.Fatalf("%v: GaussianEpsilon(1/%v) = %v", b, sigma, e)
		}
	})
}

// Outside its range the formula of the sources is not private enough: for δ = 10⁻⁶ its δ is really
// 1.9·10⁻⁶ at ε = 10, and 0.25 at ε = 50.
func TestClassicFormulaIsInvalidForLargeEpsilon(t *testing.T) {
	const delta = 1e-6
	for _, c := range [][2]float64{{10, 1.9e-6}, {50, 0.24}} {
		sigma := math.Sqrt(2*math.Log(1.25/delta)) / c[0]
		if got := privacy.GaussianDelta(c[0], 1/sigma); !(got > c[1]) {
			t.Errorf("the classic formula at epsilon = %v has delta = %v: expected above %v", c[0], got, c[1])
		}
		if (privacy.Gaussian{Sigma: sigma}).Loss().Within(privacy.Approx{Epsilon: c[0], Delta: delta}) {
			t.Errorf("the ledger takes the invalid sigma at epsilon = %v for valid", c[0])
		}
	}
	if _, err := privacy.ClassicSigma(privacy.Approx{Epsilon: 1, Delta: delta}); err == nil ||
		!strings.Contains(err.Error(), "epsilon is 1") {
		t.Errorf("ClassicSigma at epsilon 1: %v", err)
	}
}

// Whatever noise is calibrated for a budget is priced within it, and at half the noise no longer is.
func TestCalibrationMeetsItsPrice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := anyBudget().Draw(t, "budget")
		if sigma, err := privacy.GaussianSigma(b); err == nil && b != (privacy.None{}) {
			if !(privacy.Gaussian{Sigma: sigma}).Loss().Within(b) {
				t.Fatalf("sigma %v for %v is priced %v", sigma, b, privacy.Gaussian{Sigma: sigma}.Loss().In(b))
			}
			if _, approx := b.(privacy.Approx); !approx &&
				(privacy.Gaussian{Sigma: sigma / 2}).Loss().Within(b) {
				t.Fatalf("half of sigma %v for %v is within it", sigma, b)
			}
		}
		if scale, err := privacy.LaplaceScale(b); err == nil && b != (privacy.None{}) {
			if !(privacy.Laplace{Scale: scale}).Loss().Within(b) {
				t.Fatalf("scale %v for %v is priced %v", scale, b, privacy.Laplace{Scale: scale}.Loss().In(b))
			}
		}
	})
	for _, f := range []func(privacy.Budget) (float64, error){privacy.GaussianSigma, privacy.LaplaceScale} {
		if _, err := f(nil); err == nil {
			t.Error("a nil budget is accepted")
		}
		if _, err := f(privacy.ZCDP{}); err == nil {
			t.Error("rho = 0 is accepted")
		}
		if x, err := f(privacy.None{}); x != 0 || err != nil {
			t.Errorf("none: %v, %v", x, err)
		}
	}
}
