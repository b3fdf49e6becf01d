package privacy

// Sums releases of one slot, for each action of a finite set, the sum of its rewards in [−1,1] with
// an independent N(0, Sigma²). What was played is public, and the sum of an action that was not
// played is 0, without noise. A reward is in one sum, so that replacing it moves one coordinate by
// 2 at most: the Gaussian mechanism at μ = 2/Sigma, 2/Sigma²-zCDP. It is AdaC-GOPE-Var's noise
// ([Azize and Basu 2024, Appendix E-C2]; [Azize 2024, Appendix C.3.3]), with Sigma² = 2/ρ.
type Sums struct{ Sigma float64 }

// Kind is sums.
func (Sums) Kind() string { return "sums" }

// Continual is false.
func (Sums) Continual() bool { return false }

// Validate accepts 0 ≤ Sigma < ∞.
func (m Sums) Validate() error { return scale(m.Kind(), "sigma", m.Sigma) }

// Loss is that of the Gaussian mechanism at sensitivity 2.
func (m Sums) Loss() Loss {
	if m.Validate() != nil {
		return InfiniteLoss()
	}
	return gaussianLoss(divUp(4, squareDown(m.Sigma)))
}

func (m Sums) draws() Draws   { return Draws{Once: true, Law: NoiseGaussian, Scale: m.Sigma} }
func (Sums) facts() facts     { return facts{sum: true, vector: true} }
func (m Sums) entry() Entry   { return Entry{Sensitivity: 2, Scale: m.Sigma, Norm: "ℓ2"} }
func (m Sums) String() string { return "sums(sigma=" + number(m.Sigma) + ")" }

func (m *Sums) fields() []field {
	return []field{{"sigma", &m.Sigma}}
}

// MarshalJSON writes {"mechanism":"sums","sigma":1}.
func (m Sums) MarshalJSON() ([]byte, error) { return encode(m.Kind(), m.fields()) }

func (m Sums) read(data []byte) (Mechanism, error) {
	err := decode(m.Kind(), data, m.fields())
	return m, err
}
