package privacy

import "math"

// GramGaussian releases one slot of records once: Σ aaᵀ, and Σ a·r beside it, over the vectors a ∈ ℝ^d
// that were played, ‖a‖₂ ≤ 1, and their rewards r ∈ [−1,1]. It hides a and r both. The order is that of
// the Gram counters without Σ r²: row by row of the upper triangle, each row with its a·r at its end.
//
// Noise is independent and normal: variance Sigma² on the diagonal and in Σ a·r, half of that off the
// diagonal. As an entry off the diagonal is in the matrix twice, a shift (D, v) is the Gaussian mechanism
// at μ² = (‖D‖_F² + ‖v‖²)/Sigma². Replace a record (a,r) by (a',r'), and with p = ⟨a,a'⟩
//
//	‖aaᵀ − a'a'ᵀ‖_F² + ‖ra − r'a'‖² = ‖a‖⁴ + ‖a'‖⁴ − 2p² + r²‖a‖² + r'²‖a'‖² − 2rr'p
//	                                ≤ 2 − 2p² + 2 + 2|p| ≤ 9/2,
//
// where |p| = 1/2, ‖a‖ = ‖a'‖ = 1 and r = −r'·sign p, |r| = 1, meet it: sensitivity 3/√2. With w·Σ a·r in
// the place of Σ a·r it is (w²+2)/√2 for 0 < w ≤ √2; the Gram counters, whose w is √2, have 2√2.
type GramGaussian struct{ Sigma float64 }

// Kind is gram-gaussian.
func (GramGaussian) Kind() string { return "gram-gaussian" }

// Continual is false.
func (GramGaussian) Continual() bool { return false }

// Validate accepts 0 ≤ Sigma < ∞.
func (m GramGaussian) Validate() error { return scale(m.Kind(), "sigma", m.Sigma) }

// Loss is that of the Gaussian mechanism at sensitivity 3/√2.
func (m GramGaussian) Loss() Loss {
	if m.Validate() != nil {
		return InfiniteLoss()
	}
	return gaussianLoss(divUp(4.5, squareDown(m.Sigma)))
}

// Band bounds the noise in Σ ω_s·release_s, of weights whose squares add up to square and of t records in all:
// GramTree's, whose off-diagonal entries have a deviation of σ where these have Sigma/√2, and a column of
// √2 its length. With a step it bounds what a curator of real records releases on that grid, as
// GramTree.GridBand does, for weights of at most 1.
func (m GramGaussian) Band(dim, t int, square, x, step float64) Band {
	var b Band
	off := m.Sigma / math.Sqrt2
	if step > 0 && m.Sigma > 0 {
		s := max(float64(off*m.more(dim, step)), leastOnGrid*step) + float64(moreOnGrid*step)
		off = math.Hypot(s, 4*step)
	}
	if m.Sigma > 0 {
		b = normalBand(dim, off*math.Sqrt(square), x)
		b.Cross *= math.Sqrt2
	}
	return b.rounded(dim, t, step)
}

// GridSensitivity is by how much a record that is replaced moves what is released where all products are
// rounded to multiples of step: each by a step more, beside 3/√2·(1+10⁻⁹)², for norms may be 10⁻⁹
// above 1.
func (GramGaussian) GridSensitivity(dim int, step float64) float64 {
	return float64(3/math.Sqrt2*(1+3*normSlack)) + float64(float64(dim+1)*step)
}

// more is what sigma is multiplied by on a grid.
func (m GramGaussian) more(dim int, step float64) float64 {
	return m.GridSensitivity(dim, step) / (3 / math.Sqrt2)
}

// NewGramGaussian meets the budget: ρ, (ε,δ), (α,ε) or none, as GaussianSigma does.
func NewGramGaussian(b Budget) (GramGaussian, error) {
	sigma, err := GaussianSigma(b)
	return GramGaussian{Sigma: float64(3 / math.Sqrt2 * sigma)}, err
}

func (m GramGaussian) draws() Draws { return Draws{Once: true, Law: NoiseGaussian, Scale: m.Sigma} }
func (GramGaussian) facts() facts   { return facts{vector: true} }
func (m GramGaussian) entry() Entry {
	return Entry{Sensitivity: 3 / math.Sqrt2, Scale: m.Sigma, Norm: "Frobenius", Protects: jointly}
}

func (m GramGaussian) String() string { return "gram-gaussian(sigma=" + number(m.Sigma) + ")" }

func (m *GramGaussian) fields() []field { return []field{{"sigma", &m.Sigma}} }

// MarshalJSON writes {"mechanism":"gram-gaussian","sigma":1}.
func (m GramGaussian) MarshalJSON() ([]byte, error) { return encode(m.Kind(), m.fields()) }

func (m GramGaussian) read(data []byte) (Mechanism, error) {
	err := decode(m.Kind(), data, m.fields())
	return m, err
}
