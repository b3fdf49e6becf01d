package privacy

import (
	"errors"
	"fmt"
	"math"
)

// Gaussian releases a slot's sum plus N(0, Sigma²): 1/(2·Sigma²)-zCDP [Azize 2024, Theorem 2.14].
// Its Rényi curve α/(2·Sigma²) and its δ(ε), that of GaussianDelta, are exact.
type Gaussian struct{ Sigma float64 }

func (Gaussian) Kind() string    { return "gaussian" }
func (Gaussian) Continual() bool { return false }

// Validate accepts 0 ≤ Sigma < ∞.
func (m Gaussian) Validate() error { return scale("gaussian", "sigma", m.Sigma) }

// Loss is that of the Gaussian mechanism at sensitivity 1.
func (m Gaussian) Loss() Loss {
	if m.Validate() != nil {
		return InfiniteLoss()
	}
	return gaussianLoss(divUp(1, squareDown(m.Sigma)))
}

// Tail of N(0,σ²): P(noise > σ√(2x)) ≤ e^{−x}.
func (m Gaussian) Tail() Tail { return Tail{Sigma: m.Sigma} }

func (m Gaussian) withScale(x float64) Mechanism { m.Sigma = x; return m }

func (m Gaussian) draws() Draws   { return Draws{Once: true, Law: NoiseGaussian, Scale: m.Sigma} }
func (Gaussian) facts() facts     { return facts{sum: true, noises: laplaces{normal: true}} }
func (m Gaussian) entry() Entry   { return Entry{Sensitivity: 1, Scale: m.Sigma} }
func (m Gaussian) String() string { return "gaussian(sigma=" + number(m.Sigma) + ")" }

// GaussianSigma is the σ of N(0,σ²) noise that meets the budget on a statistic of sensitivity 1:
//
//	ρ-zCDP     1/√(2ρ)                [Azize 2024, Theorem 2.14]
//	(α,ε)-RDP  √(α/(2ε))              [Azize and Basu 2024, Theorem 18]
//	(ε,δ)-DP   √(2 log(1.25/δ))/ε     [Azize 2024, Theorem 2.14], for ε < 1; AnalyticSigma for ε ≥ 1, where the theorem does not hold
//	μ-GDP      1/μ                    by definition
//	none       0
//
// Gaussian noise is never ε-DP: a Pure budget is an error. AnalyticSigma is smaller than the
// classic value for ε < 1 too; the classic one is kept there because the sources' constants and
// figures rest on it.
func GaussianSigma(b Budget) (float64, error) {
	if b == nil {
		return 0, errors.New("Gaussian noise: there is no budget")
	}
	if err := b.Validate(); err != nil {
		return 0, fmt.Errorf("Gaussian noise: %w", err)
	}
	switch b := b.(type) {
	case None:
		return 0, nil
	case ZCDP:
		return 1 / math.Sqrt(2*b.Rho), nil
	case Renyi:
		return math.Sqrt(b.Alpha / b.Epsilon / 2), nil
	case GDP:
		return 1 / b.Mu, nil
	case Approx:
		if b.Epsilon < 1 {
			return classicSigma(b)
		}
		return AnalyticSigma(b)
	}
	return 0, fmt.Errorf("Gaussian noise: budget is %v: it is never pure; the budget must be "+
		"rho, or epsilon and delta, or alpha and epsilon, or mu", b)
}

// classicSigma is √(2 log(1.25/δ))/ε, the σ of the sources for (ε,δ)-DP at sensitivity 1 ([Azize
// 2024, Theorem 2.14]; Dwork and Roth 2014, Theorem A.1). The theorem holds for ε < 1 only, and
// fails for large ε: outside it is an error.
func classicSigma(b Approx) (float64, error) {
	if err := b.Validate(); err != nil {
		return 0, fmt.Errorf("classic Gaussian calibration: %w", err)
	}
	if b.Epsilon >= 1 {
		return 0, fmt.Errorf("classic Gaussian calibration: epsilon is %v: its proof needs "+
			"epsilon below 1 (use the analytic calibration)", b.Epsilon)
	}
	return math.Sqrt(2*math.Log(1.25/b.Delta)) / b.Epsilon, nil
}

// AnalyticSigma is the smallest σ for which N(0,σ²) is (ε,δ)-DP at sensitivity 1 (Balle and Wang
// 2018, Theorem 8 and Algorithm 1), for every ε: the root of GaussianDelta(ε, 1/σ) = δ, rounded
// to the safe side.
func AnalyticSigma(b Approx) (float64, error) {
	if err := b.Validate(); err != nil {
		return 0, fmt.Errorf("analytic Gaussian calibration: %w", err)
	}
	// As ρ-zCDP, μ²/2 + μ√(2 log(1/δ)) ≤ ε suffices: a σ that is valid, if too large.
	l := math.Sqrt(-2 * math.Log(b.Delta))
	large := (l + math.Sqrt(float64(l*l)+2*b.Epsilon)) / (2 * b.Epsilon)
	small := large
	for GaussianDelta(b.Epsilon, 1/small) <= b.Delta {
		small /= 2
	}
	sigma := math.Exp(solve(math.Log(large), math.Log(small), func(x float64) (float64, float64) {
		mu := math.Exp(-x)
		d, a := GaussianDelta(b.Epsilon, mu), b.Epsilon/mu-mu/2
		slope := -mu * math.Exp(-float64(a*a)/2) / math.Sqrt(2*math.Pi) // ∂δ/∂μ = φ(a)
		return math.Log(d / b.Delta), slope / d
	}))
	// the exponential and the reciprocal round
	for step := 0x1p-52; GaussianDelta(b.Epsilon, 1/sigma) > b.Delta; step *= 2 {
		sigma += float64(step * sigma)
	}
	if math.IsInf(sigma, 0) || math.IsNaN(sigma) || sigma == 0 {
		return 0, fmt.Errorf("analytic Gaussian calibration: %v needs a sigma of %v: not a "+
			"number to use", b, sigma)
	}
	return sigma, nil
}

// GaussianDelta is the smallest δ for which N(0,σ²) noise on a statistic of sensitivity Δ is
// (ε,δ)-DP, with μ = Δ/σ (Balle and Wang 2018, Theorem 8):
//
//	δ = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ).
//
// The two terms nearly cancel where μ is small. With a = ε/μ − μ/2 and b = ε/μ + μ/2 we have b² −
// a² = 2ε, so that e^ε φ(b) = φ(a), and the difference of Mills ratios has a positive integrand: δ
// = φ(a) ∫₀^∞ e^{−s²/2−as} (1 − e^{−μs}) ds. It is 0 for μ = 0 and 1 for μ = +Inf.
func GaussianDelta(epsilon, mu float64) float64 {
	switch {
	case math.IsNaN(epsilon) || math.IsNaN(mu) || epsilon < 0 || mu < 0:
		return math.NaN()
	case mu == 0 || math.IsInf(epsilon, 1):
		return 0
	case math.IsInf(mu, 1):
		return 1
	}
	a, b := epsilon/mu-mu/2, epsilon/mu+mu/2
	if a > 39 { // φ(a) has left the doubles
		return 0
	}
	density := math.Exp(-float64(a*a)/2) / math.Sqrt(2*math.Pi)
	if mu < 1 {
		return float64(density * millsDifference(a, mu))
	}
	if a < 0 {
		return math.Erfc(a/math.Sqrt2)/2 - float64(density*mills(b))
	}
	return float64(density * (mills(a) - mills(b)))
}

// mills is Mills' ratio (1−Φ(x))/φ(x) for x ≥ 0.
func mills(x float64) float64 {
	if x < 12 {
		return math.Sqrt(math.Pi/2) * math.Exp(float64(x*x)/2) * math.Erfc(x/math.Sqrt2)
	}
	// The asymptotic series 1/x − 1/x³ + 3/x⁵ − …: its terms fall below 1e-17 long before
	// they grow again.
	term, sum := 1/x, 0.0
	for k := 1.0; math.Abs(term) > 1e-18/x; k += 2 {
		sum += term
		term = -term * k / float64(x*x)
	}
	return sum
}

// millsDifference is mills(a) − mills(a+mu) = ∫₀^∞ e^{−s²/2−as} (1−e^{−mu·s}) ds for −½ ≤ a, without
// cancellation: Gauss and Legendre, seven points a panel. The integrand lives on a length of 1/(1+a).
func millsDifference(a, mu float64) float64 {
	x := [4]float64{0, 0.4058451513773971669066064, 0.7415311855993944398638648, 0.9491079123427585245261897}
	w := [4]float64{0.4179591836734693877551020, 0.3818300505051189449503698,
		0.2797053914892766679014678, 0.1294849661688696932706114}
	f := func(s float64) float64 {
		return float64(math.Exp(-float64(s*s)/2-float64(a*s)) * -math.Expm1(-float64(mu*s)))
	}
	h := 0.375 / (1 + max(a, 0)) // half a panel
	sum := 0.0
	for c := h; ; c += 2 * h {
		panel := float64(w[0] * f(c))
		for i := 1; i < len(x); i++ {
			d := float64(x[i] * h)
			panel += float64(w[i] * (f(c-d) + f(c+d)))
		}
		sum += panel
		// far past the peak, where each panel is a fraction of the one before
		if panel <= 1e-18*sum {
			return float64(sum * h)
		}
	}
}

// GaussianEpsilon is the smallest ε ≥ 0 for which GaussianDelta(ε, mu) ≤ delta, rounded up: delta
// is lowered by more than GaussianDelta is off, by some 10⁻¹³ of it where it is 10⁻⁶, and ε raised
// by what ε/μ rounds.
func GaussianEpsilon(mu, delta float64) float64 {
	switch {
	case math.IsNaN(mu) || math.IsNaN(delta) || mu < 0:
		return math.NaN()
	case delta >= 1 || mu == 0:
		return 0
	case delta <= 0 || math.IsInf(mu, 1):
		return math.Inf(1)
	}
	delta -= float64(delta * float64(ulps*(5-2*math.Log(delta))))
	if GaussianDelta(0, mu) <= delta {
		return 0
	}
	hi := zcdpToApprox(float64(mu*mu)/2, delta)
	if math.IsInf(hi, 1) {
		return hi
	}
	e := solve(hi, 0, func(e float64) (float64, float64) {
		d := GaussianDelta(e, mu)
		a, b := e/mu-mu/2, e/mu+mu/2
		slope := -math.Exp(-float64(a*a)/2) / math.Sqrt(2*math.Pi) * mills(b) // −e^ε Φ(−b)
		return math.Log(d / delta), slope / d
	})
	return raised(e, ulps) // GaussianDelta rounds ε/μ
}

// solve is the root of a monotone function g, or the number next to it where g ≤ 0; g(valid) ≤ 0
// and g(invalid) > 0. The function returns its slope too: Newton's method, kept between the two.
func solve(valid, invalid float64, g func(x float64) (value, slope float64)) float64 {
	x := valid
	for range 200 {
		v, slope := g(x)
		if v <= 0 {
			valid = x
		} else {
			invalid = x
		}
		next := x - v/slope
		if !(min(valid, invalid) < next && next < max(valid, invalid)) {
			next = (valid + invalid) / 2
		}
		if math.Abs(next-x) <= 1e-15*math.Abs(x) || next == valid || next == invalid {
			break
		}
		x = next
	}
	// The root is next to x. Step to the valid side.
	for step := 0x1p-52; ; step *= 2 {
		if v, _ := g(x); v <= 0 {
			return x
		}
		next := x + math.Copysign(float64(step*math.Abs(x)), valid-x)
		if !(min(valid, x) < next && next < max(valid, x)) {
			return valid
		}
		x = next
	}
}

func (m *Gaussian) fields() []field {
	return []field{{"sigma", &m.Sigma}}
}

// MarshalJSON writes {"mechanism":"gaussian","sigma":1}.
func (m Gaussian) MarshalJSON() ([]byte, error) { return encode(m.Kind(), m.fields()) }

func (m Gaussian) read(data []byte) (Mechanism, error) {
	err := decode(m.Kind(), data, m.fields())
	return m, err
}
