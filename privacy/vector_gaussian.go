package privacy

// VectorGaussian releases Σ a·r of one slot, over the vectors a ∈ ℝ^d that were played, ‖a‖₂ ≤ 1,
// and their rewards r ∈ [−1,1], with independent N(0, Sigma²) in each coordinate. Replacing one
// reward moves the sum by 2‖a‖₂ ≤ 2 at most, so that it is the Gaussian mechanism at μ = 2/Sigma:
// 2/Sigma²-zCDP. It is AdaC-OFUL's noise ([Azize and Basu 2024, Algorithm 3 and App. E-C]; [Azize
// 2024, §5.3.3]), with Sigma² = 2/ρ. The vectors are public.
type VectorGaussian struct{ Sigma float64 }

// Kind is vector-gaussian.
func (VectorGaussian) Kind() string { return "vector-gaussian" }

// Continual is false.
func (VectorGaussian) Continual() bool { return false }

// Validate accepts 0 ≤ Sigma < ∞.
func (m VectorGaussian) Validate() error { return scale(m.Kind(), "sigma", m.Sigma) }

// Loss is that of the Gaussian mechanism at sensitivity 2.
func (m VectorGaussian) Loss() Loss {
	if m.Validate() != nil {
		return InfiniteLoss()
	}
	return gaussianLoss(divUp(4, squareDown(m.Sigma)))
}

func (m VectorGaussian) draws() Draws { return Draws{Once: true, Law: NoiseGaussian, Scale: m.Sigma} }
func (VectorGaussian) facts() facts   { return facts{sum: true, vector: true} }
func (m VectorGaussian) entry() Entry { return Entry{Sensitivity: 2, Scale: m.Sigma, Norm: "ℓ2"} }

func (m VectorGaussian) String() string { return "vector-gaussian(sigma=" + number(m.Sigma) + ")" }

func (m *VectorGaussian) fields() []field {
	return []field{{"sigma", &m.Sigma}}
}

// MarshalJSON writes {"mechanism":"vector-gaussian","sigma":1}.
func (m VectorGaussian) MarshalJSON() ([]byte, error) { return encode(m.Kind(), m.fields()) }

func (m VectorGaussian) read(data []byte) (Mechanism, error) {
	err := decode(m.Kind(), data, m.fields())
	return m, err
}
