package privacy

import (
	"errors"
	"math"
	"testing"
)

func times(t testing.TB, p PLD, n int) PLD {
	t.Helper()
	q, err := p.Times(n)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func pldOf(t testing.TB, m Mechanism, step float64) PLD {
	t.Helper()
	p, err := NewPLD(m, step)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// tight says that got is at least the truth, and at most so much above it.
func tight(t *testing.T, what string, got, truth, over float64) {
	t.Helper()
	t.Logf("%s: %.9g, truly %.9g", what, got, truth)
	if got < truth || got > truth+over {
		t.Errorf("%s = %v, must be from %v to %v", what, got, truth, truth+over)
	}
}

// Gaussian releases compose to a Gaussian one: √k·μ.
func TestPLDGaussian(t *testing.T) {
	for _, c := range []struct {
		mu   float64
		k    int
		step float64
	}{{1, 1, 1e-3}, {0.1, 100, 1e-3}, {0.05, 1000, 1e-3}, {2, 3, 1e-3}, {0.3, 7, 1e-4}} {
		p := times(t, pldOf(t, Gaussian{1 / c.mu}, c.step), c.k)
		for _, delta := range []float64{1e-2, 1e-5, 1e-7} {
			truth := GaussianEpsilon(c.mu*math.Sqrt(float64(c.k)), delta)
			tight(t, "Gaussian", p.Epsilon(delta), truth*(1-1e-12), 2e-3*max(1, truth))
		}
		for _, e := range []float64{0, 0.5, 2} {
			if d, truth := p.Delta(e), GaussianDelta(e, c.mu*math.Sqrt(float64(c.k))); d < truth {
				t.Errorf("δ(%v) = %v is below %v", e, d, truth)
			}
		}
	}
}

// Randomised response k times is a binomial: δ = Σ_j C(k,j) (p^j q^{k−j} − e^ε q^j p^{k−j})⁺.
func TestPLDRandomizedResponse(t *testing.T) {
	for _, c := range []struct {
		eps float64
		k   int
	}{{1, 1}, {0.1, 50}, {0.37, 11}, {0.01, 1000}} {
		p, err := approxPLD(c.eps, 0, 1e-3)
		if err != nil {
			t.Fatal(err)
		}
		p = times(t, p, c.k)
		for _, e := range []float64{0, 0.1, 0.5, 0.9} {
			truth := 0.0
			for j := range c.k + 1 {
				n, _ := math.Lgamma(float64(c.k + 1))
				a, _ := math.Lgamma(float64(j + 1))
				b, _ := math.Lgamma(float64(c.k - j + 1))
				x := float64(2*j-c.k) * c.eps
				if x > e {
					log := n - a - b + float64(j)*c.eps - float64(c.k)*math.Log1p(math.Exp(c.eps))
					truth += math.Exp(log) * -math.Expm1(e-x)
				}
			}
			tight(t, "randomised response", p.Delta(e), truth*(1-1e-9), 1e-4*truth+1e-9)
		}
	}
}

// laplaceDelta is δ(ε) of Lap(1/x), for negative ε too.
func laplaceDelta(x, e float64) float64 {
	switch {
	case e >= x:
		return 0
	case e <= -x:
		return -math.Expm1(e)
	}
	return -math.Expm1((e - x) / 2)
}

// Two Laplace releases of unlike scales: δ₂(ε) = E δ₁(ε − L) over the law of the other's loss,
// integrated by Simpson's rule between kinks; and one with a Gaussian.
func TestPLDUnlike(t *testing.T) {
	x, y := 1.0, 0.6
	over := func(e float64, delta func(float64) float64, kinks ...float64) float64 {
		sum := delta(e-x)/2 + math.Exp(-x)/2*delta(e+x)
		at := append([]float64{-x}, kinks...)
		at = append(at, x)
		for i := 1; i < len(at); i++ {
			lo, hi := max(-x, min(x, at[i-1])), max(-x, min(x, at[i]))
			const n = 4000
			h := (hi - lo) / n
			for j := range n + 1 {
				l := lo + float64(j)*h
				w := 2.0
				if j%2 == 1 {
					w = 4
				}
				if j == 0 || j == n {
					w = 1
				}
				sum += w * h / 3 * math.Exp(-(x-l)/2) / 4 * delta(e-l)
			}
		}
		return sum
	}
	a := pldOf(t, Laplace{1 / x}, 1e-4)
	two, err := a.Compose(pldOf(t, Laplace{1 / y}, 1e-4))
	if err != nil {
		t.Fatal(err)
	}
	mixed, err := a.Compose(pldOf(t, Gaussian{2}, 1e-4))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []float64{0, 0.3, 0.9, 1.5} {
		truth := over(e, func(z float64) float64 { return laplaceDelta(y, z) }, e-y, e+y)
		tight(t, "two Laplace", two.Delta(e), truth*(1-1e-9), 1e-5)
		truth = over(e, func(z float64) float64 {
			if z >= 0 {
				return GaussianDelta(z, 0.5)
			}
			return -math.Expm1(z) + math.Exp(z)*GaussianDelta(-z, 0.5)
		}, e)
		tight(t, "Laplace and Gaussian", mixed.Delta(e), truth*(1-1e-9), 1e-5)
	}
}

// Integer noise twice, against the sum over all pairs of values. The Skellam's law is summed from
// two Poisson laws, not from Bessel functions.
func TestPLDIntegers(t *testing.T) {
	const g = 3
	for _, c := range []struct {
		noise NoiseName
		num   uint64
		f     func(k int) float64 // up to a constant
	}{
		{NoiseLaplace, 4, func(k int) float64 { return math.Exp(-math.Abs(float64(k)) / 4) }},
		{NoiseGaussian, 25, func(k int) float64 { return math.Exp(-float64(k*k) / 50) }},
		{NoiseSkellam, 25, func(k int) float64 {
			sum := 0.0
			for i := range 200 {
				if i+k < 0 {
					continue
				}
				a, _ := math.Lgamma(float64(i + 1))
				b, _ := math.Lgamma(float64(i + k + 1))
				sum += math.Exp(float64(2*i+k)*math.Log(12.5) - 25 - a - b)
			}
			return sum
		}},
	} {
		const most = 130
		var f [2*most + 1]float64
		sum := 0.0
		for k := -most; k <= most; k++ {
			f[k+most] = c.f(k)
			sum += f[k+most]
		}
		m := Aggregated{Trust: TrustCentral, Noise: c.noise, G: g, Users: 10, Invited: 10,
			Modulus: 1 << 20, Tau: 1000, Num: c.num, Den: 1}
		p := times(t, pldOf(t, m, 1e-3), 2)
		for _, e := range []float64{0.2, 1, 2} {
			truth := 0.0
			for i := g; i <= 2*most; i++ {
				for j := g; j <= 2*most; j++ {
					pp, q := f[i-g]*f[j-g]/sum/sum, f[i]*f[j]/sum/sum
					truth += max(0, pp-math.Exp(e)*q)
				}
			}
			tight(t, string(c.noise), p.Delta(e), truth*(1-1e-7), 1e-4*truth+1e-9)
		}
	}
}

// The Skellam at a budget in ρ, whose Loss charges D_2 for a ρ: half of it is what the noise costs.
func TestPLDSkellamAtRho(t *testing.T) {
	m := Aggregated{Trust: TrustCentral, Noise: NoiseSkellam, G: 64, Users: 1000, Invited: 1000,
		Modulus: 1 << 40, Tau: 1 << 20, Num: 64 * 64 * 4, Den: 1} // σ = 2 rewards
	const delta = 1e-6
	p := times(t, pldOf(t, m, 1e-3), 10)
	got, renyi := p.Epsilon(delta), m.Loss().Times(10).Approx(delta)
	rho := ZCDPToApproxTight(m.Loss().Times(10).ZCDP(), delta)
	gauss := GaussianEpsilon(math.Sqrt(10)/2, delta)
	t.Logf("ε: PLD %.4f, Rényi %.4f, by its ρ %.4f; normal noise %.4f", got, renyi, rho, gauss)
	if !(got > gauss*0.999 && got < 1.002*gauss && got < 0.97*renyi && got < 0.7*rho) {
		t.Error("not as tight as it must be")
	}
}

// Sampled at random: one step's δ is q·δ(log(1 + (e^ε−1)/q)), and the other direction is below it.
func TestPLDSampled(t *testing.T) {
	const q = 0.1
	p, err := pldOf(t, Gaussian{1}, 1e-4).Sampled(q)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []float64{0.01, 0.1, 0.5, 1} {
		truth := q * GaussianDelta(math.Log1p(math.Expm1(e)/q), 1)
		tight(t, "sampled", p.Delta(e), truth*(1-1e-12), 2e-5)
	}
	// half of what was drawn with 0.2 was drawn with 0.1
	twice, err := pldOf(t, Gaussian{1}, 1e-4).Sampled(0.2)
	if err != nil {
		t.Fatal(err)
	}
	if twice, err = twice.Sampled(0.5); err != nil {
		t.Fatal(err)
	}
	for _, e := range []float64{0.01, 0.1, 0.5, 1} {
		tight(t, "sampled twice", twice.Delta(e), p.Delta(e)*(1-1e-6), 5e-5)
	}
}

// A record that takes part in all of a composition or in none: k Gaussian releases are one of μ =
// √k·μ, at each ε and in both directions. Of these the transforms' errors are by far larger than
// Q's law in its tail, and they may show nowhere.
func TestPLDSampledComposition(t *testing.T) {
	for _, c := range []struct {
		mu, rate float64
		k        int
	}{{0.25, 0.1, 16}, {0.5, 0.01, 36}, {1, 0.5, 64}, {0.1, 0.9, 400}} {
		p, err := times(t, pldOf(t, Gaussian{1 / c.mu}, 1e-3), c.k).Sampled(c.rate)
		if err != nil {
			t.Fatal(err)
		}
		mu := c.mu * math.Sqrt(float64(c.k))
		total := 0.0
		for _, v := range p.there.mass {
			total += v
		}
		if total += p.there.inf; !(total >= 1 && total < 1+1e-8) {
			t.Errorf("%+v: P has a mass of %v", c, total)
		}
		// h and g of the Gaussian pair, at every real ε
		gauss := func(e float64) float64 {
			if e >= 0 {
				return GaussianDelta(e, mu)
			}
			return -math.Expm1(e) + math.Exp(e)*GaussianDelta(-e, mu)
		}
		for _, e := range []float64{-0.6, -0.05, 0.01, 0.1, 0.5, 1, 3} {
			if e > math.Log1p(-c.rate) {
				truth := c.rate * gauss(math.Log1p(math.Expm1(e)/c.rate))
				tight(t, "there", p.there.delta(e, p.step), truth*(1-1e-11), 2e-3*truth+1e-8)
			}
			if e < -math.Log1p(-c.rate) {
				kept := 1 - math.Exp(e)*(1-c.rate)
				truth := kept * gauss(e+math.Log(c.rate/kept))
				tight(t, "back", p.back.delta(e, p.step), truth*(1-1e-11), 2e-3*truth+1e-8)
			}
		}
	}
}

// What Google's dp_accounting states in its tests, to the digits there: 20 discrete Laplace
// releases at ε = 1, δ = 10⁻⁴ may have a parameter of 0.073 ± 0.001; three Laplace releases of
// multiplier ½, sampled at 0.2, have ε = 2.46964 ± 0.001 at next to no δ; two (ε,δ) events of
// (1,0.1) and (2,0.2) have δ = 0.28 at ε = 3; Gaussian releases of multiplier √3, three times, δ =
// 0.126936 at ε = 1.
func TestPLDPublished(t *testing.T) {
	const step = 1e-4
	lap := func(parameter uint64) float64 {
		return times(t, pldOf(t, Aggregated{Trust: TrustCentral, Noise: NoiseLaplace, G: 1, Users: 1,
			Invited: 1, Modulus: 1 << 20, Tau: 1000, Num: 1000, Den: parameter}, step), 20).Epsilon(1e-4)
	}
	if !(lap(72) < 1 && lap(74) > 1) {
		t.Errorf("20 discrete Laplace: ε = %v for 0.072, %v for 0.074", lap(72), lap(74))
	}
	q, err := pldOf(t, Laplace{0.5}, step).Sampled(0.2)
	if err != nil {
		t.Fatal(err)
	}
	tight(t, "sampled Laplace", times(t, q, 3).Epsilon(1e-9), 2.46964-1e-3, 2e-3)
	a, err := approxPLD(1, 0.1, step)
	if err != nil {
		t.Fatal(err)
	}
	b, err := approxPLD(2, 0.2, step)
	if err != nil {
		t.Fatal(err)
	}
	if a, err = a.Compose(b); err != nil {
		t.Fatal(err)
	}
	tight(t, "(ε,δ) twice", a.Delta(3), 0.28, 1e-9)
	g := times(t, pldOf(t, Gaussian{math.Sqrt(3)}, step), 3)
	tight(t, "Gaussian", g.Delta(1), 0.126936-5e-7, 2e-6)
}

// A PLD is below the conversions of a Loss, and above its own kinks.
func TestPLDBetween(t *testing.T) {
	p := times(t, pldOf(t, Laplace{10}, 1e-4), 30)
	loss := Laplace{10}.Loss().Times(30)
	if e := p.Epsilon(1e-6); !(e < loss.Approx(1e-6) && e > 0.5) {
		t.Errorf("30 of Lap(10): %v; by the Loss %v", e, loss.Approx(1e-6))
	}
	if e := p.Epsilon(0); !math.IsInf(e, 1) && e < 3 {
		t.Errorf("ε(0) = %v", e)
	}
	for _, bad := range []float64{0, -1, math.NaN(), math.Inf(1), 2} {
		if _, err := NewPLD(Laplace{1}, bad); err == nil {
			t.Errorf("step %v was taken", bad)
		}
	}
	if _, err := NewPLD(Laplace{0}, 1e-3); err == nil {
		t.Error("no noise was taken")
	}
	if _, err := NewPLD(Exact{}, 1e-3); !errors.Is(err, ErrNoPLD) {
		t.Errorf("exact: %v", err)
	}
}

func BenchmarkPLD(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		p := pldOf(b, Gaussian{10}, 1e-3)
		q := pldOf(b, Laplace{10}, 1e-3)
		r, err := times(b, p, 100).Compose(times(b, q, 100))
		if err != nil {
			b.Fatal(err)
		}
		r.Epsilon(1e-6)
	}
}

// Ratios of Bessel functions lie between Amos's bounds (Mathematics of Computation 28, 1974),
//
//	v/(k+½+√((k+3/2)²+v²)) ≤ I_{k+1}(v)/I_k(v) ≤ v/(k+½+√((k+½)²+v²)),
//
// also where v is so large that the recurrence hardly shrinks an error. A ratio above 1 would leave a
// tail of less than no mass.
func TestBesselRatios(t *testing.T) {
	for _, v := range []float64{0.5, 10, 1e3, 1e6, 1e10} {
		n := int(10*math.Sqrt(v)) + 60 + 16
		for k, r := range besselRatios(n, v) {
			h := float64(k) + 0.5
			low, high := v/(h+math.Hypot(h+1, v)), -math.Asinh(h/v)
			// what is kept is up to about 1/√v where roundings add up, over as many as √v steps
			slack := 1e-13 / math.Sqrt(v)
			if math.Exp(r) < low*(1-4e-16)-slack || r > high+slack || r >= 0 {
				t.Fatalf("v = %v, k = %d: %v, must be from %v to %v", v, k, r, math.Log(low), high)
			}
		}
	}
}
