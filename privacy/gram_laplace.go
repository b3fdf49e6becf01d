package privacy

import (
	"fmt"
	"math"
)

// GramLaplace releases what GramGaussian does, Σ aaᵀ and Σ a·r of one slot, with noise (E, e) of density
// ∝ exp(−√(‖E‖_F² + ‖e‖²)/Scale), E symmetric: a shift moves it in that norm by 3/√2 at most (GramGaussian has
// the proof), so that it is (3/√2/Scale)-DP, with δ = 0. It hides a and r both. A diagonal entry, and one of Σ a·r,
// has variance (D+1)·Scale², D = d(d+3)/2 numbers in all, one off the diagonal half of that. At (1, 10⁻⁶) and d = 5
// that is 94, where normal noise has 80. Nothing but ε is kept. It is for simulated records.
type GramLaplace struct{ Scale float64 }

// NewGramLaplace meets the budget as LaplaceScale does.
func NewGramLaplace(b Budget) (GramLaplace, error) {
	scale, err := LaplaceScale(b)
	if err != nil {
		return GramLaplace{}, fmt.Errorf("gram-laplace: %w", err)
	}
	return GramLaplace{Scale: float64(3 / math.Sqrt2 * scale)}, nil
}

// Variance is that of a number on the diagonal, and in Σ a·r, of vectors of ℝ^dim.
func (m GramLaplace) Variance(dim int) float64 {
	return float64(dim*(dim+3)/2+1) * float64(m.Scale*m.Scale)
}

// Kind is gram-laplace.
func (GramLaplace) Kind() string { return "gram-laplace" }

// Continual is false.
func (GramLaplace) Continual() bool { return false }

// Validate accepts 0 ≤ Scale < ∞.
func (m GramLaplace) Validate() error { return scale(m.Kind(), "scale", m.Scale) }

// Loss is pure.
func (m GramLaplace) Loss() Loss {
	if m.Validate() != nil || m.Scale == 0 {
		return InfiniteLoss()
	}
	const most = 2.1213203435596428 // above 3/√2
	return LossOf(Pure{max(1e-150, divUp(most, m.Scale))})
}

func (m GramLaplace) withScale(x float64) Mechanism { m.Scale = x; return m }
func (m GramLaplace) draws() Draws                  { return Draws{Once: true, Law: NoiseLaplace, Scale: m.Scale} }
func (GramLaplace) facts() facts                    { return facts{vector: true} }
func (m GramLaplace) entry() Entry {
	return Entry{Sensitivity: 3 / math.Sqrt2, Scale: m.Scale, Norm: "Frobenius", Protects: jointly}
}

func (m GramLaplace) String() string { return "gram-laplace(scale=" + number(m.Scale) + ")" }

func (m *GramLaplace) fields() []field { return []field{{"scale", &m.Scale}} }

// MarshalJSON writes {"mechanism":"gram-laplace","scale":2}.
func (m GramLaplace) MarshalJSON() ([]byte, error) { return encode(m.Kind(), m.fields()) }

func (m GramLaplace) read(data []byte) (Mechanism, error) {
	err := decode(m.Kind(), data, m.fields())
	return m, err
}
