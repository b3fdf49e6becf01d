package identify

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mathext"
	"pgregory.net/rapid"

	"github.com/sotto-dp/sotto/internal/testkit"
)

// near says whether two numbers agree to a relative tol.
func near(x, y, tol float64) bool {
	return x == y || math.Abs(x-y) <= tol*max(math.Abs(x), math.Abs(y))
}

// The values of this file were computed with 40 digits (mpmath), from the formulas as they are
// printed, corrected where the comments say so.
func TestCG(t *testing.T) {
	for _, c := range []struct{ x, want float64 }{
		{0, 1.416904025907382}, {0.5, 1.9641235889227737}, {1, 2.5070945465805812},
		{2, 3.5829302452930878}, {4.6051701859880914, 6.3428493511088801},
		{5, 6.7573200595379018}, {6.1, 7.9081596431053358}, {10, 11.954646257253876},
		{50, 52.588879590104413}, {500, 503.68653184359778},
	} {
		if got := CG(c.x); !near(got, c.want, 1e-14) {
			t.Errorf("CG(%v) = %.17g, want %.17g", c.x, got, c.want)
		}
	}
	if !math.IsNaN(CG(-1)) || !math.IsNaN(CG(math.NaN())) || !math.IsInf(CG(math.Inf(1)), 1) {
		t.Error("CG at the edges")
	}
	// The customary x + log x is too small below 6.1 and too large above.
	if CG(6.09) < 6.09+math.Log(6.09) || CG(6.11) > 6.11+math.Log(6.11) {
		t.Error("CG crosses x + log x elsewhere than at 6.1")
	}
}

func TestCGIsTheMinimumOnAGrid(t *testing.T) {
	for _, x := range []float64{0, 0.03, 0.7, 3, 8, 33, 1e3, 1e6} {
		least := math.Inf(1)
		for kappa := 1e-3; kappa < 20; kappa += 1e-3 {
			rest := 0.5 * math.Exp(-kappa)
			l := 1 - rest
			g := 2*l - 2*l*math.Log(4*l) + math.Log(mathext.Zeta(2*l, 1)) - 0.5*math.Log(rest)
			least = min(least, (g+x)/l)
		}
		if got := CG(x); got > least+1e-12*least || got < least-1e-6*least {
			t.Errorf("CG(%v) = %v, on a grid %v", x, got, least)
		}
		if CG(x) < x+leastCG {
			t.Errorf("CG(%v) = %v is below its bound", x, CG(x))
		}
	}
}

func TestWBar(t *testing.T) {
	for _, c := range []struct{ x, want float64 }{
		{1, 1}, {1.000001, 1.0014148803075924}, {1.5, 2.3576766739458991}, {2, 3.1461932206205826},
		{3, 4.5052414957928834}, {10, 12.527963201982174},
		{100, 104.65062744452164}, {1000, 1006.9146461285786},
	} {
		if got := WBar(c.x); !near(got, c.want, 2e-13) {
			t.Errorf("WBar(%v) = %.17g, want %.17g", c.x, got, c.want)
		}
	}
	if !math.IsNaN(WBar(0.5)) || !math.IsNaN(WBar(math.NaN())) {
		t.Error("WBar outside its domain")
	}
	rapid.Check(t, func(t *rapid.T) {
		x := 1 + math.Exp(rapid.Float64Range(-9, 12).Draw(t, "log(x-1)"))
		if y := WBar(x); !(y >= 1) || !near(y-math.Log(y), x, 1e-13) {
			t.Fatalf("WBar(%v) = %v, of which y − log y is %v", x, y, y-math.Log(y))
		}
	})
}

// doubled is a sample of a phase that forgets and doubles.
func doubled(mean, n, epsilon float64) Sample {
	return Sample{Mean: mean, N: n, Phase: int(math.Log2(n)) + 2, Noises: 1, Scale: 1 / epsilon}
}

func TestThresholdsAgainstValues(t *testing.T) {
	at := func(th Threshold, gap, epsilon, wa, wb float64) float64 {
		return th.At(doubled(0.5+gap, wa, epsilon), doubled(0.5, wb, epsilon))
	}
	phase := func(k int) Sample { return Sample{Phase: k, Noises: k, N: 1, Scale: 2} }
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"(5.10)", testkit.Must(NewGaussianThreshold(5, 0.01)).At(Sample{N: 100}, Sample{N: 37}), 17.65156660298476},
		{"(5.11)", at(testkit.Must(NewAdaPTTThreshold(5, 0.01, 2, 0.5)), 0, 1, 1024, 256), 63.58485302718549},
		{"(5.11), small ε", at(testkit.Must(NewAdaPTTThreshold(5, 0.01, 2, 0.5)), 0, 0.1, 4096, 4096),
			95.682044820830609},
		{"(5.11), two arms", at(testkit.Must(NewAdaPTTThreshold(2, 0.1, 2, 0.5)), 0, 10, 1, 2), 35.713227799410476},
		{"(5.11), σ = 1", at(testkit.Must(NewAdaPTTThreshold(5, 0.01, 2, 1)), 0, 1, 1024, 256), 61.445689535447707},
		{"(5.11), s = 1.5", at(testkit.Must(NewAdaPTTThreshold(5, 0.01, 1.5, 0.5)), 0, 1, 1024, 256),
			60.215714194542081},
		{"(5.14), gap < 3ε", at(testkit.Must(NewAdaPTTStarThreshold(5, 0.01, 2, 0.5, 1)), 0.2, 1, 1024,
			256), 46.883588145432551},
		{"(5.14), gap just < 3ε", at(testkit.Must(NewAdaPTTStarThreshold(5, 0.01, 2, 0.5, 0.1)), 0.29, 0.1,
			4096, 4096), 101.29176058132},
		{"(5.14), gap > 3ε", at(testkit.Must(NewAdaPTTStarThreshold(5, 0.01, 2, 0.5, 0.1)), 0.31, 0.1, 4096,
			1024), 339.31971621757687},
		{"(5.14), gap ≫ 3ε", at(testkit.Must(NewAdaPTTStarThreshold(5, 0.01, 2, 0.5, 0.01)), 0.31, 0.01,
			65536, 1024), 219.05818408932903},
		{"joint", testkit.Must(NewJointThreshold(5, 0.01, 2)).At(phase(3), phase(7)), 15.903426372830007},
		{"joint, two arms", testkit.Must(NewJointThreshold(2, 0.2, 2)).At(phase(1), phase(1)), 4.2661352645051495},
		{"joint, 40 phases", testkit.Must(NewCappedJointThreshold(5, 0.01, 40)).At(phase(3), phase(40)),
			16.215004832861813},
		{"joint, a phase too many", testkit.Must(NewCappedJointThreshold(5, 0.01, 40)).At(phase(3),
			phase(41)), math.Inf(1)},
		{"per arm", testkit.Must(NewPerArmThreshold(5, 0.01, 2)).At(phase(3), phase(7)), 44.209851290209408},
		{"published", testkit.Must(NewPublishedThreshold(0.01)).At(Sample{N: 1000, Scale: 2},
			Sample{N: 50, Scale: 2}), 10.046137784281436},
	} {
		if !near(c.got, c.want, 1e-13) {
			t.Errorf("%s: %.17g, want %.17g", c.name, c.got, c.want)
		}
	}
}

// What ends most looks early must be on the right side.
func TestBoundsOfThresholdsAndCosts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		epsilon := math.Exp(rapid.Float64Range(-5, 3).Draw(t, "log ε"))
		risk := rapid.Float64Range(1e-9, 0.9).Draw(t, "risk")
		arms := rapid.IntRange(2, 50).Draw(t, "arms")
		a := doubled(rapid.Float64Range(0, 1).Draw(t, "a"),
			float64(int(1)<<rapid.IntRange(0, 30).Draw(t, "n")), epsilon)
		b := doubled(rapid.Float64Range(0, 1).Draw(t, "b"),
			float64(int(1)<<rapid.IntRange(0, 30).Draw(t, "m")), epsilon)
		one, star := testkit.Must(NewAdaPTTThreshold(arms, risk, 2, 0.5)),
			testkit.Must(NewAdaPTTStarThreshold(arms, risk, 2, 0.5, epsilon))
		if one.AtLeast(a, b) > one.At(a, b) || star.AtLeast(a, b) > star.At(a, b) {
			t.Fatalf("AtLeast %v, %v above At %v, %v", one.AtLeast(a, b), star.AtLeast(a, b),
				one.At(a, b), star.At(a, b))
		}
		if w, most := (NoisyCost{}).Between(a, b), (NoisyCost{}).AtMost(a, b); w > most*(1+1e-12)+1e-12 {
			t.Fatalf("NoisyCost %v above AtMost %v", w, most)
		}
		sides(t, a, b)
		joint := testkit.Must(NewJointThreshold(arms, risk, 2))
		if least, at := joint.AtLeast(a, b), joint.At(a, b); least > at || least < 0.9*at {
			t.Fatalf("AtLeast %v, At %v", least, at)
		}
		// Privacy never lowers a threshold, and less risk raises it.
		free := a
		free.Scale = 0
		if freeB := func() Sample { b := b; b.Scale = 0; return b }(); one.At(free, freeB) > one.At(a, b) {
			t.Fatal("noise lowers (5.11)")
		}
		if testkit.Must(NewAdaPTTThreshold(arms, risk/2, 2, 0.5)).At(a, b) <= one.At(a, b) {
			t.Fatal("less risk does not raise (5.11)")
		}
	})
}

// sides holds what is said of the noisy cost against the cost, near and far from it.
func sides(t *rapid.T, a, b Sample) {
	w := NoisyCost{}.Between(a, b)
	for _, factor := range []float64{0.5, 0.99, 1 - 1e-6, 1 + 1e-6, 1.01, 2} {
		side := NoisyCost{}.side(a, b, float64(w*factor))
		if side != 0 && (side < 0) != (factor > 1) {
			t.Fatalf("NoisyCost(%+v, %+v) = %v, and on side %d of %v times that", a, b, w, side, factor)
		}
	}
}

// A discrete law's wider tail raises thresholds that are proved for the continuous one.
func TestThresholdsTakeTheTailOfTheNoise(t *testing.T) {
	a, b := doubled(0.7, 1024, 1), doubled(0.6, 512, 1)
	wide := a
	wide.Log = math.Log(2 / (1 + math.Exp(-1)))
	for _, th := range []Threshold{testkit.Must(NewAdaPTTThreshold(5, 0.01, 2, 0.5)),
		testkit.Must(NewAdaPTTStarThreshold(5, 0.01, 2, 0.5, 1)), testkit.Must(NewAdaPTTStarThreshold(5, 0.01, 2, 0.5, 0.01))} {
		if th.At(wide, b) <= th.At(a, b) {
			t.Errorf("%T: %v with a wider tail, %v without", th, th.At(wide, b), th.At(a, b))
		}
	}
}
