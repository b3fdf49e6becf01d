package bound

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sotto-dp/sotto/privacy"
)

func bernoullis(means []float64) []Law {
	out := make([]Law, len(means))
	for i, m := range means {
		out[i] = Bernoulli(m)
	}
	return out
}

// named is the bound of that name.
func named(t testing.TB, p Problem, name string) Bound {
	t.Helper()
	all, err := Regret(p)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range all {
		if b.Name == name {
			return b
		}
	}
	t.Fatalf("no bound %s for %v", name, p)
	return Bound{}
}

// Worked values: those of other programs, and by hand with pencil and calculator.
func TestWorkedValues(t *testing.T) {
	five := bernoullis(spreadOut) // gaps 1/8, 1/4, 3/8, 1/2: Σ 1/Δ = 50/3, Σ Δ = 5/4
	two := bernoullis([]float64{0.7, 0.2})
	pure := func(e float64) privacy.Budget { return privacy.Pure{Epsilon: e} }
	zcdp := func(r float64) privacy.Budget { return privacy.ZCDP{Rho: r} }
	l := math.Log(1e7)
	basis := [][]float64{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}
	for _, c := range []struct {
		p          Problem
		name       string
		T, want    float64
		rel, slope float64 // slope: of an asymptotic bound
	}{
		{p: Problem{Laws: five, Budget: zcdp(0.1), Parameters: Parameters{Beta: 3.1}},
			name: "thesis-5.6", T: 1e7, want: 7625.45, rel: 1e-6},
		{p: Problem{Laws: five, Budget: zcdp(0.1), Parameters: Parameters{Beta: 4}},
			name: "thesis-5.6", T: 1e7, want: 9440.84, rel: 1e-6},
		{p: Problem{Laws: five, Budget: zcdp(1), Parameters: Parameters{Beta: 4}},
			name: "thesis-5.6", T: 1e7, want: 8885.26, rel: 1e-6},
		{p: Problem{Laws: five, Budget: zcdp(0.1), Parameters: Parameters{Beta: 4}},
			name: "zcdp-11", T: 1e7, want: 322209.4, rel: 1e-6},
		// Σ Δ_a/kl(μ_a, 3/4) = 7.1282780, times 3/2, and 2·1.25 with other parameters
		{p: Problem{Laws: five, Budget: zcdp(0.1)}, name: "zcdp-imed", T: 1e6, want: 147.7212,
			rel: 1e-6, slope: 1.5 * 7.1282780},
		{p: Problem{Laws: five, Budget: zcdp(1e-9), Parameters: Parameters{Alpha: 2, Caution: 1.25}},
			name: "zcdp-imed", T: 1e6, want: 246.2020, rel: 1e-6, slope: 2.5 * 7.1282780},
		{p: Problem{Laws: five, Budget: zcdp(0.1)}, name: "free-minimax", T: 1e7, want: 234.243, rel: 1e-5},
		{p: Problem{Laws: five, Budget: zcdp(0.1)}, name: "thesis-4.20", T: 1e7, want: 0.051004, rel: 1e-4},
		{p: Problem{Laws: five, Budget: zcdp(1e-9)}, name: "thesis-4.20", T: 1e7, want: 510.045, rel: 1e-5},
		// K = 2, ρ = 1: c = (3−1)/4 = ½, so e^{−3/4}/16. ρ → 0: c = 1/√2, so
		// e^{−1/2}/(8√2) √((K−1)/ρ).
		{p: Problem{Laws: two, Budget: zcdp(1)}, name: "zcdp-17-sharp", T: 1e7,
			want: math.Exp(-0.75) / 16, rel: 1e-12},
		{p: Problem{Laws: two, Budget: zcdp(1e-12)}, name: "zcdp-17-sharp", T: 1e7,
			want: 1e6 * math.Exp(-0.5) / (8 * math.Sqrt2), rel: 1e-5},
		// c is 1/s for a large s, and c² nothing.
		{p: Problem{Laws: two, Budget: zcdp(1e16)}, name: "zcdp-17-sharp", T: 1e7,
			want: 1e-16 * math.Exp(-1) / 8, rel: 1e-12},
		{p: Problem{Laws: five, Budget: pure(0.01)}, name: "thesis-4.15", T: 1e7, want: 4 / 0.22, rel: 1e-12},
		{p: Problem{Actions: basis, Theta: []float64{0.9, 0.5, 0.1}, Budget: zcdp(1e-3)},
			name: "linear-free-minimax", T: 1e6, want: 50.7507, rel: 1e-5},
		{p: Problem{Actions: basis, Theta: []float64{0.9, 0.5, 0.1}, Budget: zcdp(1e-3)},
			name: "thesis-4.21", T: 1e6, want: 2.49976, rel: 1e-5},
		{p: Problem{Actions: basis, Theta: []float64{0.9, 0.5, 0.1}, Budget: zcdp(1e-3)},
			name: "zcdp-9-corrected", T: 1e6, want: 1.24988, rel: 1e-5},
		{p: Problem{Context: &Context{Dim: 3}, Budget: zcdp(4)}, name: "zcdp-9-corrected", T: 1e6,
			want: math.Exp(-3.25) / 8 * 3 / 2, rel: 1e-12},
		{p: Problem{Actions: basis, Theta: []float64{0.9, 0.5, 0.1}, Budget: pure(0.1)},
			name: "thesis-4.17", T: 1e6, want: 30 / (4 * math.E), rel: 1e-12},
		{p: Problem{Actions: basis, Theta: []float64{0.9, 0.5, 0.1}, Budget: pure(0.1)},
			name: "thesis-4.17-corrected", T: 1e6, want: 30 / (8 * math.E), rel: 1e-12},
		// Problem-dependent: Σ Δ/min(kl, εΔ). At ε = 0.01 every arm has εΔ: 4/ε. Without privacy
		// two arms: ½/kl(0.2,0.7).
		{p: Problem{Laws: five, Budget: pure(0.01)}, name: "thesis-4.16", T: 1e7, slope: 400,
			want: 400 * l, rel: 1e-12},
		{p: Problem{Laws: two}, name: "free-problem", T: 1e7,
			slope: 0.5 / (0.2*math.Log(2./7) + 0.8*math.Log(8./3)),
			want:  0.5 / (0.2*math.Log(2./7) + 0.8*math.Log(8./3)) * l, rel: 1e-12},
		{p: Problem{Laws: five, Budget: pure(0.1)}, name: "d-epsilon", T: 1e7, slope: 41.68,
			want: 41.68 * l, rel: 2e-4},
		{p: Problem{Laws: []Law{Gaussian{1, 2}, Gaussian{0, 2}}}, name: "free-problem", T: 1e7,
			slope: 8, want: 8 * l, rel: 1e-12},
		// TV of N(0,1) and N(1,1) is 0.3829249225: at ε = 0.1 the arm costs 1/0.03829…
		{p: Problem{Laws: []Law{Gaussian{1, 1}, Gaussian{0, 1}}, Budget: pure(0.1)},
			name: "thesis-4.16", T: 1e7, slope: 1 / 0.03829249225480262,
			want: l / 0.03829249225480262, rel: 1e-8},
		// Orthogonal arms: ‖a‖² = 1/α(a), so α = 1/m and c = Σ Δ/m; ρ_a = 2, so m = min(Δ²/2, εΔ).
		{p: Problem{Actions: basis, Theta: []float64{0.9, 0.5, 0.1}}, name: "linear-free-problem",
			T: 1e7, slope: 2/0.4 + 2/0.8, want: 7.5 * l, rel: 2e-6},
		{p: Problem{Actions: basis, Theta: []float64{0.9, 0.5, 0.1}, Budget: pure(0.25)},
			name: "thesis-4.18", T: 1e7, slope: 2/0.4 + 4, want: 9 * l, rel: 2e-6},
		// Upper bounds.
		{p: Problem{Laws: five}, name: "thesis-2.23", T: 1e7, want: 3.75 + 16*50./3*l, rel: 1e-12},
		{p: Problem{Laws: five}, name: "thesis-2.23-gap-free", T: 1e7,
			want: 8*math.Sqrt(5e7*l) + 3.75, rel: 1e-12},
		{p: Problem{Laws: five}, name: "thesis-2.24", T: 1e7, slope: 100. / 3, want: 100. / 3 * l, rel: 1e-12},
		{p: Problem{Laws: five}, name: "sajed-2.22", T: 1e7, want: 8*50./3*l + 1.42*1.25, rel: 1e-12},
		{p: Problem{Laws: five}, name: "sajed-2.21-gap-free", T: 1e7,
			want: math.Sqrt(4e8*l + 7.1e7), rel: 1e-12},
		{p: Problem{Laws: five}, name: "sajed-2.28", T: 1e7, want: math.Sqrt(4e8*l) + 2, rel: 1e-12},
		{p: Problem{Laws: five}, name: "sajed-2.34", T: 1e7, want: 32*50./3*l + 1.25, rel: 1e-9},
		{p: Problem{Laws: two, Budget: pure(0.5)}, name: "dp-ucb-thesis", T: math.E * math.E,
			want: 32*math.Sqrt(8)*math.Pow(2, 2.5) + 2 + 16, rel: 1e-12},
		{p: Problem{Laws: two, Budget: pure(0.5), Parameters: Parameters{Beta: 4}},
			name: "thesis-5.3", T: 1e7, want: 128*l + 12, rel: 1e-12},
		// 4Δ/ε = 8: (1+3)² = 16, and 2β log T/Δ = 16 log T.
		{p: Problem{Laws: two, Budget: pure(0.25), Parameters: Parameters{Beta: 4}},
			name: "adap-ucb", T: 1e7, want: 256*l + 12, rel: 1e-12},
		{p: Problem{Laws: two, Budget: pure(0.25), Parameters: Parameters{Beta: 4}},
			name: "thesis-5.3", T: 1e7, want: 256*l + 12, rel: 1e-12},
		{p: Problem{Laws: two, Budget: pure(0.25), Parameters: Parameters{Beta: 4}},
			name: "thesis-C.7", T: 1e7, want: 8*math.Sqrt(8e7*l) + 512*l + 6, rel: 1e-12},
		// One epoch of 2: e = 1, Δ_e = ½, R = ⌈max(128 log(16/β), 16 log(8/β)/ε) + 1⌉ =
		// ⌈128·11.98293 + 1⌉ = 1535 at β = 1e-4.
		{p: Problem{Laws: two, Budget: pure(1), Parameters: Parameters{Risk: 1e-4}},
			name: "dp-se-epochs", T: 1e6, want: 1535*0.5 + 50, rel: 1e-12},
		{p: Problem{Laws: two, Budget: pure(1), Parameters: Parameters{Risk: 1e-4}},
			name: "sajed-5.1.2", T: 1e6, want: math.Log(4e4)*2144 + 50, rel: 1e-12},
	} {
		b := named(t, c.p, c.name)
		close(t, c.name, b.Value(c.T), c.want, c.rel)
		if (b.Kind == Asymptotic) != (c.slope > 0) {
			t.Errorf("%s is %v", c.name, b.Kind)
		}
		if c.slope > 0 {
			close(t, c.name+", slope", b.Constant, c.slope, c.rel)
		}
	}
}

// GOPE's phases, d = 3, K = 10, δ = 0.001, and OFUL's radii: values of another program.
func TestPhaseLengthsAndRadii(t *testing.T) {
	for l, want := range [][]float64{{1083.8191, 1184.890, 1403.433, 2094.527, 4279.957},
		{4757.1434, 4967.022, 5420.839, 6855.933, 11394.099},
		{20093.2476, 20522.409, 21450.374, 24384.858, 33664.510}} {
		for i, b := range []float64{0, 0.5, 5, 50, 500} {
			close(t, "c_ℓ", PhaseLength(3, 10, 0.001, float64(l+1), b), want[i], 1e-6)
		}
	}
	close(t, "β at 1000", ellipsoidRadius(3, 0.1, 1000, 0.001), 6.492925, 1e-6)
	close(t, "β at 1e5", ellipsoidRadius(3, 0.1, 1e5, 0.001), 7.524987, 1e-6)
	close(t, "updates at 1000", logDet(3, 0.1, 1000)/math.Ln2, 35.11, 2e-4)
	close(t, "updates at 1e5", logDet(3, 0.1, 1e5)/math.Ln2, 55.04, 2e-4)
	close(t, "f₁", noiseNorm(3, 1e-8), 54.709050, 1e-7)
	// [Azize and Basu 2024, Lemma 12]'s bound is first positive at 139 469 for λ₀ = 0.1; λ
	// comes on top of it.
	if a, b := eigenvalueBound(3, 0.1, 139468, 0.001),
		eigenvalueBound(3, 0.1, 139469, 0.001); !(a <= 0 && b > 0) {
		t.Errorf("eigenvalue bound %v at 139468, %v at 139469", a, b)
	}
	b := named(t, Problem{Context: &Context{Dim: 3, Lambda0: 0.1},
		Parameters: Parameters{Lambda: 0.1, Risk: 0.001, Whole: true},
		Budget:     privacy.ZCDP{Rho: 1}}, "adac-oful-printed")
	if v := b.Value(1e5); !math.IsNaN(v) {
		t.Errorf("1e5: %v", v)
	}
	if v := b.Value(139469); !(v > 0) {
		t.Errorf("139469: %v", v)
	}
	// By hand at λ = 1, C = 1, d = 1, T = e − 1: log(1+T) = 1, so √(2T)·2√2·(√(2 log(1/δ)+1) + 1),
	// without privacy.
	free := named(t, Problem{Context: &Context{Dim: 1},
		Parameters: Parameters{Risk: math.Exp(-4), Whole: true}}, "rs-oful")
	T := math.E - 1
	close(t, "rs-oful", free.Value(T), 2*math.Sqrt2*math.Sqrt(2*T)*4+6*math.Exp(-4)*T, 1e-12)
	// With ρ: √(2ℓf₁/(ρλ)) more in the radius, ℓ = 1/log 2.
	private := named(t, Problem{Context: &Context{Dim: 1},
		Parameters: Parameters{Risk: math.Exp(-4), Whole: true}, Budget: privacy.ZCDP{Rho: 2}}, "adac-oful")
	more := math.Sqrt(1 / math.Ln2 * noiseNorm(1, math.Exp(-4)/T))
	close(t, "adac-oful", private.Value(T), 2*math.Sqrt2*math.Sqrt(2*T)*(4+more)+6*math.Exp(-4)*T, 1e-12)
	// GOPE in its first phase: 2 a round, and failures.
	gope := named(t, Problem{Actions: [][]float64{{1, 0}, {0, 1}}, Budget: privacy.ZCDP{Rho: 1},
		Parameters: Parameters{Risk: 0.01}}, "adac-gope-gap-free")
	close(t, "adac-gope", gope.Value(100), 200+2, 1e-12)
}

// The widths of GOPE are those of 1-sub-Gaussian rewards: with more noise its bounds are not listed.
func TestNoBoundWithTooMuchNoise(t *testing.T) {
	for sigma, want := range map[float64]bool{0: true, 0.5: true, 1: true, 1.5: false} {
		all, err := Regret(Problem{Actions: [][]float64{{1, 0}, {0, 1}}, Theta: []float64{0.9, 0.2},
			Sigma: sigma, Budget: privacy.ZCDP{Rho: 1}})
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.ContainsFunc(all, func(b Bound) bool { return b.Policy == "adac-gope" }); got != want {
			t.Errorf("σ = %v: listed %v", sigma, got)
		}
	}
}

// Batches that hardly grow are not gone through one by one.
func TestBatchesThatHardlyGrow(t *testing.T) {
	b := named(t, Problem{Laws: bernoullis([]float64{0.75, 0.25}),
		Budget: privacy.Pure{Epsilon: 1e-9}, Parameters: Parameters{Eta: 1 + 1e-12}}, "batch-se")
	close(t, "batch-se", b.Value(1e15), 0.5e15+0.5, 1e-12)
}

// The numbers behind batch elimination: gap ½, K = 2, p = 1e-4, ε = 1, η = 2. L = log(16b²·1e4): at
// b = 10, n = 1024, L = 16.588 and 4 radii are 0.425; at b = 9, n = 512, L = 16.377 and they are
// 0.634. So Σ_{i≤10} 2^i = 2046 plays.
func TestBatchElimination(t *testing.T) {
	p := Problem{Laws: bernoullis([]float64{0.7, 0.2}), Budget: privacy.Pure{Epsilon: 1},
		Parameters: Parameters{Risk: 1e-4}}
	close(t, "batch-se", named(t, p, "batch-se").Value(1e6), 1023+50, 1e-12)
	// N(0,½) noise, ν = √L: at b = 9 4(√(16.377/1024) + √16.377/512) = 0.537, at b = 10 0.376.
	p.Budget = privacy.ZCDP{Rho: 1}
	close(t, "batch-se, zcdp", named(t, p, "batch-se").Value(1e6), 1023+50, 1e-12)
	// Printed, b = 10: l = log(4·100·1e4) = 15.202, 4(√(15.895/2048) + √2·√15.202/1024 +
	// 15.202/1024) = 0.433 < ½; b = 9: 0.646.
	p.Budget = privacy.Pure{Epsilon: 1}
}

// Where both hold, a lower bound is no higher than an upper one: with explicit ones at any T, with
// slopes in the long run.
func TestLowerBelowUpper(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		means := drawMeans(t)
		x := math.Exp(rapid.Float64Range(-6, 2).Draw(t, "log budget"))
		budgets := []privacy.Budget{privacy.None{}, privacy.Pure{Epsilon: x}, privacy.ZCDP{Rho: x},
			privacy.Approx{Epsilon: x, Delta: 1e-6}}
		p := Problem{Laws: bernoullis(means), Budget: rapid.SampledFrom(budgets).Draw(t, "budget"),
			Parameters: Parameters{Beta: rapid.Float64Range(3.01, 6).Draw(t, "beta")}}
		all, err := Regret(p)
		if err != nil {
			t.Fatal(err)
		}
		T := math.Exp(rapid.Float64Range(0, 18).Draw(t, "log T"))
		far := 1e300
		names := map[string]bool{}
		for _, b := range all {
			if names[b.Name] || b.Where == "" || b.Form == "" || (b.Value == nil) != (b.Kind == Implicit) {
				t.Fatalf("%+v", b)
			}
			names[b.Name] = true
			for _, u := range all {
				if !b.Lower || u.Lower || b.Unproved || u.Unproved || u.Kind == Implicit ||
					b.WorstCase && !u.WorstCase {
					continue
				}
				switch {
				case b.Kind == Explicit && u.Kind == Explicit:
					if lo, hi := b.Value(max(T, float64(len(means)))),
						u.Value(max(T, float64(len(means)))); lo > hi {
						t.Fatalf("T = %v: %s has %v, above %v of %s", T, b.Name, lo, hi, u.Name)
					}
				case b.Kind == Asymptotic:
					if lo, hi := b.Value(far), u.Value(far); lo > hi*(1+1e-9) {
						t.Fatalf("in the long run: %s has %v, above %v of %s", b.Name, lo, hi, u.Name)
					}
				}
			}
		}
	})
}

// More privacy never lowers a bound.
func TestMonotoneInTheBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		means := drawMeans(t)
		x := math.Exp(rapid.Float64Range(-6, 2).Draw(t, "log budget"))
		y := x * math.Exp(rapid.Float64Range(0, 3).Draw(t, "log ratio"))
		T := math.Exp(rapid.Float64Range(3, 18).Draw(t, "log T"))
		problems := func(b privacy.Budget) []Problem {
			// The default n_1 of dp-ucb-anytime depends on ε, and its batches double from there.
			return []Problem{{Laws: bernoullis(means), Budget: b, Parameters: Parameters{First: 16}},
				{Context: &Context{Dim: 4}, Budget: b, Parameters: Parameters{Risk: 0.01}},
				{Actions: [][]float64{{1, 0}, {0.8, 0.6}, {0, 1}, {-0.6, 0.8}},
					Theta: []float64{0.9, 0.2}, Budget: b, Parameters: Parameters{Risk: 0.01}}}
		}
		pairs := [][2]privacy.Budget{{privacy.Pure{Epsilon: x}, privacy.Pure{Epsilon: y}},
			{privacy.ZCDP{Rho: x}, privacy.ZCDP{Rho: y}}}
		for _, pair := range pairs {
			strong, weak := problems(pair[0]), problems(pair[1])
			for i := range strong {
				a, err := Regret(strong[i])
				if err != nil {
					t.Fatal(err)
				}
				b, err := Regret(weak[i])
				if err != nil {
					t.Fatal(err)
				}
				loose := map[string]Bound{}
				for _, x := range b {
					loose[x.Name] = x
				}
				for _, s := range a {
					w, ok := loose[s.Name]
					if !ok || s.Value == nil {
						continue
					}
					if s.Value(T) < w.Value(T)*(1-1e-5) {
						t.Fatalf("%s: %v at %v, %v at %v", s.Name, s.Value(T), pair[0], w.Value(T), pair[1])
					}
				}
			}
		}
	})
}

func TestKLInfAndTVInf(t *testing.T) {
	coin, err := NewFinite([]float64{1, 0}, []float64{0.3, 0.7}, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []float64{0.31, 0.5, 0.9, 0.999} {
		close(t, "a coin's KL", coin.KLInf(x), Bernoulli(0.3).KLInf(x), 1e-9)
		close(t, "a coin's TV", coin.TVInf(x), x-0.3, 1e-12)
	}
	// A sure 0.4 to a mean of 0.7 within [0,1]: the nearest law moves mass q ↦ 1 with (1−q)0.4 + q
	// = 0.7, q = ½: KL = log 2, TV = ½.
	sure, err := NewFinite([]float64{0.4}, []float64{1}, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	close(t, "a sure thing's KL", sure.KLInf(0.7), math.Ln2, 1e-9)
	close(t, "a sure thing's TV", sure.TVInf(0.7), 0.5, 1e-12)
	// Three values: the primal by brute force over laws on {0, ½, 1}.
	three, err := NewFinite([]float64{0, 0.5, 1}, []float64{0.5, 0.3, 0.2}, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	primal, tv := math.Inf(1), math.Inf(1)
	for q := 0.0005; q < 1; q += 0.0005 { // q at ½, the rest split so that the mean is 0.6
		top := 0.6 - q/2
		zero := 1 - q - top
		if zero > 0 && top > 0 {
			primal = min(primal, 0.5*math.Log(0.5/zero)+0.3*math.Log(0.3/q)+0.2*math.Log(0.2/top))
			tv = min(tv, (math.Abs(zero-0.5)+math.Abs(q-0.3)+math.Abs(top-0.2))/2)
		}
	}
	close(t, "three values' KL", three.KLInf(0.6), primal, 1e-5)
	close(t, "three values' TV", three.TVInf(0.6), tv, 2e-3)
	// Uniform on [0.1,0.5] against many values.
	u := Uniform{0.1, 0.5, 0, 1}
	values, p := make([]float64, 4000), make([]float64, 4000)
	for i := range values {
		values[i], p[i] = 0.1+0.4*(float64(i)+0.5)/4000, 1
	}
	fine, err := NewFinite(values, p, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []float64{0.35, 0.6, 0.95} {
		close(t, "uniform KL", u.KLInf(x), fine.KLInf(x), 1e-4)
		close(t, "uniform TV", u.TVInf(x), fine.TVInf(x), 1e-3)
	}
	// TV of a uniform law on [0,1]: the share m with m(1 − m/2) = Δ.
	close(t, "uniform TV", Uniform{0, 1, 0, 1}.TVInf(0.75), 1-math.Sqrt(0.5), 1e-12)
	g := Gaussian{0, 2}
	close(t, "Gaussian KL", g.KLInf(3), 9./8, 1e-12)
	close(t, "Gaussian TV", g.TVInf(2), 0.3829249225480262, 1e-12)
	for _, l := range []Law{coin, u, Bernoulli(0.3)} {
		if !math.IsInf(l.KLInf(1), 1) || !math.IsInf(l.TVInf(1), 1) || l.KLInf(0.1) != 0 || l.TVInf(0.1) != 0 {
			t.Errorf("%v at the edges", l)
		}
	}
	for _, err := range []error{second(NewFinite(nil, nil, 0, 1)),
		second(NewFinite([]float64{2}, []float64{1}, 0, 1)),
		second(NewFinite([]float64{0}, []float64{-1}, 0, 1)),
		second(NewFinite([]float64{0}, []float64{1}, 1, 1))} {
		if err == nil {
			t.Error("a bad law is taken")
		}
	}
}

func second(_ *Finite, err error) error { return err }

// Pinsker: TV² ≤ KL/2, in each class.
func TestPinskerInEachClass(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfNDistinct(rapid.Float64Range(0, 1), 1, 6, rapid.ID[float64]).Draw(t, "values")
		p := rapid.SliceOfN(rapid.Float64Range(0.01, 1), len(values), len(values)).Draw(t, "p")
		f, err := NewFinite(values, p, 0, 1)
		if err != nil {
			t.Fatal(err)
		}
		if f.Mean() > 1-1e-6 {
			t.Skip("no room above the mean")
		}
		x := f.Mean() + (1-f.Mean())*rapid.Float64Range(0.01, 0.99).Draw(t, "x")
		if kl, tv := f.KLInf(x), f.TVInf(x); !(2*tv*tv <= kl*(1+1e-9)) ||
			!(kl <= Bernoulli(f.Mean()).KLInf(x)*1e9) || kl < Bernoulli(f.Mean()).KLInf(x)*(1-1e-9) {
			t.Fatalf("KL %v, TV %v, coin's KL %v", kl, tv, Bernoulli(f.Mean()).KLInf(x))
		}
	})
}

func TestBoundaries(t *testing.T) {
	get := func(p Problem) map[string]Boundary {
		all, err := Boundaries(p)
		if err != nil {
			t.Fatal(err)
		}
		m := map[string]Boundary{}
		for _, b := range all {
			m[b.Name] = b
		}
		return m
	}
	p := Problem{Laws: bernoullis([]float64{0.7, 0.2})}
	m := get(p)
	e := m["minimax"].Value(1e6)
	close(t, "minimax", PureMinimax(2, e), FreeMinimax(2, 1e6), 1e-12)
	rho := m["minimax-zcdp"].Value(1e6)
	close(t, "minimax, ρ", ZCDPMinimax(2, rho), FreeMinimax(2, 1e6), 1e-12)
	close(t, "problem", m["problem"].Value(1), Bernoulli(0.2).KLInf(0.7)/0.5, 1e-12)
	close(t, "d_ε", m["d-epsilon"].Value(1), math.Log(0.7/0.2*0.8/0.3), 1e-12)
	l := get(Problem{Context: &Context{Dim: 7}})
	close(t, "linear", LinearPureMinimax(7, l["linear-minimax"].Value(1e6)), LinearFreeMinimax(7, 1e6), 1e-12)
	// The linear private bound at ρ ≤ 1 has e^{−2.25} for the whole exponent.
	close(t, "linear, ρ", LinearZCDPMinimax(7, l["linear-minimax-zcdp"].Value(1e6)),
		LinearFreeMinimax(7, 1e6), 1e-12)
}

func TestProblemErrors(t *testing.T) {
	two := bernoullis([]float64{0.7, 0.2})
	for _, c := range []struct {
		p    Problem
		want string
	}{
		{Problem{}, "must have one"},
		{Problem{Laws: two[:1]}, "at least 2"},
		{Problem{Laws: []Law{MeanOnly(math.NaN()), two[0]}}, "arm 1"},
		{Problem{Laws: two, Parameters: Parameters{Beta: -1}}, "beta is -1"},
		{Problem{Laws: two, Parameters: Parameters{Beta: math.NaN()}}, "beta is NaN"},
		{Problem{Laws: two, Parameters: Parameters{Eta: 1}}, "eta is 1"},
		{Problem{Laws: two, Parameters: Parameters{Risk: 1}}, "risk is 1"},
		{Problem{Laws: two, Budget: privacy.Pure{Epsilon: -1}}, "-1"},
		{Problem{Laws: two, Context: &Context{Dim: 1}}, "must have one"},
		{Problem{Context: &Context{}}, "dimension is 0"},
		{Problem{Context: &Context{Dim: 1}, Parameters: Parameters{Lambda: -1}}, "lambda is -1"},
		{Problem{Actions: [][]float64{{1}}}, "at least 2"},
		{Problem{Actions: [][]float64{{1}, {1, 2}}}, "action 2 has 2"},
		{Problem{Actions: [][]float64{{1}, {math.NaN()}}}, "action 2 is NaN"},
		{Problem{Actions: [][]float64{{1}, {2}}, Theta: []float64{1, 2}}, "theta has 2"},
	} {
		if err := c.p.Check(); !errors.Is(err, ErrProblem) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.p, err, c.want)
		}
		if _, err := Regret(c.p); err == nil {
			t.Errorf("%v: bounds", c.p)
		}
		if _, err := Boundaries(c.p); err == nil {
			t.Errorf("%v: boundaries", c.p)
		}
	}
}

func ExampleRegret() {
	bounds, err := Regret(Problem{
		Laws:   []Law{Bernoulli(0.75), Bernoulli(0.625), Bernoulli(0.5), Bernoulli(0.375), Bernoulli(0.25)},
		Budget: privacy.Pure{Epsilon: 0.1},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, b := range bounds {
		if b.Lower {
			fmt.Printf("%-13s %-10s %7.1f  %s\n", b.Name, b.Kind, b.Value(1e6), b.Form)
		}
	}
	// Output:
	// free-minimax  explicit      74.1  √(T(K−1))/27
	// thesis-4.15   explicit       1.8  (K−1)/(22ε)
	// free-problem  asymptotic    98.5  Σ Δ_a log T/KL_inf(P_a,μ*)
	// thesis-4.16   asymptotic   552.6  Σ Δ_a log T/min(KL_inf(P_a,μ*), ε TV_inf(P_a,μ*))
	// d-epsilon     asymptotic   575.8  Σ Δ_a log T/d_ε(μ_a,μ*)
}

// Two arms with a gap of 0.3, ε = 1, T = 10^5, α = 2, n_1 = 8, x = 2 log T = 23.03. At n = 512, m = 7
// the best λ is 0.551, and w = 0.1595 is above Δ/2. At n = 1024, m = 8 it is 0.408, and w = (23.03 +
// 21.29 + 1.455)/417.6 = 0.1096 is not. So n_a(T) = 1024, and the bound 0.3·(1024 + 4.029/8). The
// series of C_α were added up in double precision, 400 terms each way.
func TestDoublingUCBWorked(t *testing.T) {
	for _, v := range []struct{ alpha, want float64 }{{1.5, 12.131874057176944}, {2, 4.028999560696869},
		{3, 1.7242030131582975}, {1.1, 228.84063363270485}} {
		if got := doublingConstant(v.alpha); math.Abs(got-v.want) > 1e-9*v.want {
			t.Errorf("C_%v = %v, want %v", v.alpha, got, v.want)
		}
	}
	all, err := Regret(Problem{Laws: bernoullis([]float64{0.9, 0.6}), Budget: privacy.Pure{Epsilon: 1},
		Parameters: Parameters{Confidence: 2, First: 8}})
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range all {
		if b.Name == "dp-ucb-doubling" {
			if got, want := b.Value(1e5), 0.3*(1024+4.028999560696869/8); math.Abs(got-want) > 1e-9*want {
				t.Errorf("%v, want %v", got, want)
			}
			return
		}
	}
	t.Error("there is no bound for dp-ucb-anytime")
}
