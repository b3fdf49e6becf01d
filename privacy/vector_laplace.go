package privacy

import (
	"fmt"
	"math"
)

// VectorLaplace releases Σ a·r of one slot, over vectors a ∈ ℝ^d, ‖a‖₂ ≤ 1, and r ∈ [−1,1], with noise v of
// density ∝ exp(−‖v‖₂/Scale) in ℝ^d (of real records, on a lattice). It hides a and r both: a·r is in the unit
// ball, whose diameter is 2, so that a record that is replaced moves the sum by u, ‖u‖₂ ≤ 2. The density at any
// point changes by the factor exp((‖v−u‖₂ − ‖v‖₂)/Scale) ≤ exp(2/Scale): it is (2/Scale)-DP, with δ = 0. A shift
// of 2 along v meets it. A coordinate's noise has variance (d+1)·Scale², where independent Laplace noise for the
// ball, whose diameter in ℓ1 is 2√d, has 2d·Scale². Nothing but ε is kept.
type VectorLaplace struct{ Scale float64 }

// NewVectorLaplace meets the budget as LaplaceScale does: ε, (ε,δ), ρ, (α,ε), μ or none.
func NewVectorLaplace(b Budget) (VectorLaplace, error) {
	scale, err := LaplaceScale(b)
	if err != nil {
		return VectorLaplace{}, fmt.Errorf("vector-laplace: %w", err)
	}
	return VectorLaplace{Scale: 2 * scale}, nil
}

// Kind is vector-laplace.
func (VectorLaplace) Kind() string { return "vector-laplace" }

// Continual is false.
func (VectorLaplace) Continual() bool { return false }

// Validate accepts 0 ≤ Scale < ∞.
func (m VectorLaplace) Validate() error { return scale(m.Kind(), "scale", m.Scale) }

// Loss is pure.
func (m VectorLaplace) Loss() Loss {
	if m.Validate() != nil || m.Scale == 0 {
		return InfiniteLoss()
	}
	return LossOf(Pure{max(1e-150, divUp(2, m.Scale))}) // whose square is still a number
}

// GridSensitivity is by how much a record that is replaced moves Σ a·r in ℓ2 where each product is rounded to
// multiples of step, by half a step each time: √d·step beside 2, and norms may be 10⁻⁹ above 1.
func (VectorLaplace) GridSensitivity(dim int, step float64) float64 {
	return float64(2*(1+2*normSlack)) + float64(math.Sqrt(float64(dim))*step)
}

func (m VectorLaplace) withScale(x float64) Mechanism { m.Scale = x; return m }
func (m VectorLaplace) draws() Draws {
	return Draws{Once: true, Law: NoiseLaplace, Scale: m.Scale}
}
func (VectorLaplace) facts() facts { return facts{vector: true} }
func (m VectorLaplace) entry() Entry {
	return Entry{Sensitivity: 2, Scale: m.Scale, Norm: "ℓ2", Protects: jointly}
}

func (m VectorLaplace) String() string { return "vector-laplace(scale=" + number(m.Scale) + ")" }

func (m *VectorLaplace) fields() []field { return []field{{"scale", &m.Scale}} }

// MarshalJSON writes {"mechanism":"vector-laplace","scale":2}.
func (m VectorLaplace) MarshalJSON() ([]byte, error) { return encode(m.Kind(), m.fields()) }

func (m VectorLaplace) read(data []byte) (Mechanism, error) {
	err := decode(m.Kind(), data, m.fields())
	return m, err
}
