package privacy

import (
	"fmt"
	"math"
)

// GramBLT is the running Gram matrix of at most Horizon records with the correlated noise of a
// buffered linear Toeplitz matrix, one stream for each entry: the noise AC⁻¹Z where Z are
// independent normal matrices of Counter.Sigma and Counter's C. It is AC⁻¹ of the Gaussian
// mechanism on Cx, in each entry, so that a record that moves by D costs μ = ‖Ce₁‖·‖D‖_F/(√2σ). At
// horizon 10⁶ its largest variance is a twelfth of the tree's at the same ρ.
type GramBLT struct{ Counter BLT }

func (GramBLT) Kind() string    { return "gram-blt" }
func (GramBLT) Continual() bool { return true }

// Validate accepts what BLT.Validate does.
func (m GramBLT) Validate() error {
	if err := m.Counter.Validate(); err != nil {
		return fmt.Errorf("mechanism %s: %w", m.Kind(), err)
	}
	return nil
}

// Loss is that of a Gaussian release of sensitivity 2√2·‖Ce₁‖ in the Frobenius norm.
func (m GramBLT) Loss() Loss {
	if m.Validate() != nil {
		return InfiniteLoss()
	}
	return gaussianLoss(divUp(raised(4*m.Counter.sensitivity2(), many), squareDown(m.Counter.Sigma)))
}

// variance is that of the noise in an entry off the diagonal after t records, half of that on it.
func (m GramBLT) variance(t int) float64 { return m.Counter.variance(t) }

// Band is by the largest variance, that of the last record: the noise in a running sum at any time
// is one normal matrix.
func (m GramBLT) Band(dim, _ int, x float64) Band {
	return normalBand(dim, math.Sqrt(m.Counter.MaxVariance()), x)
}

// NewGramBLT meets the budget: ρ, (ε,δ), (α,ε) or none, with the buffers of NewBLT.
func NewGramBLT(b Budget, horizon int) (GramBLT, error) {
	m, err := NewBLT(b, horizon)
	if err != nil {
		return GramBLT{}, err
	}
	m.Sigma *= 2 // 2√2 over √2, which σ is times along the diagonal
	return GramBLT{m}, nil
}

func (m GramBLT) draws() Draws { return m.Counter.draws() }

func (m GramBLT) facts() facts { return facts{vector: true, longest: m.Counter.Horizon} }
func (m GramBLT) entry() Entry {
	return Entry{Sensitivity: 2 * math.Sqrt2, Scale: m.Counter.Sigma, Norm: "Frobenius", Protects: jointly}
}

func (m GramBLT) String() string { return "gram-" + m.Counter.String() }

// MarshalJSON writes what BLT's does, {"mechanism":"gram-blt",…}.
func (m GramBLT) MarshalJSON() ([]byte, error) { return m.Counter.encode(m.Kind()) }

func (m GramBLT) read(data []byte) (Mechanism, error) {
	err := m.Counter.decode(m.Kind(), data)
	return m, err
}
