package privacy

import (
	"errors"
	"fmt"
	"math"
)

// Laplace releases a slot's sum plus Lap(Scale): 1/Scale-DP [Azize 2024, Theorem 2.13]. Its Rényi
// curve is exact (Mironov 2017, Proposition 6).
type Laplace struct{ Scale float64 }

func (Laplace) Kind() string    { return "laplace" }
func (Laplace) Continual() bool { return false }

// Validate accepts 0 ≤ Scale < ∞.
func (m Laplace) Validate() error { return scale("laplace", "scale", m.Scale) }

// Loss is that of the Laplace mechanism at sensitivity 1.
func (m Laplace) Loss() Loss {
	if m.Validate() != nil {
		return InfiniteLoss()
	}
	return laplaceLoss(divUp(1, m.Scale))
}

// Tail of Lap(b): P(noise > bx) = e^{−x}/2.
func (m Laplace) Tail() Tail { return Tail{H: m.Scale} }

// LaplaceScale is the scale of Laplace noise that meets the budget on a statistic of sensitivity 1:
// 1/ε for ε-DP [Azize 2024, Theorem 2.13] and for (ε,δ)-DP, which it implies; 1/√(2ρ) for ρ-zCDP
// and √(α/(2ε)) for (α,ε)-RDP, since ε-DP implies ε²/2-zCDP [Azize 2024, Proposition 2.6]; 1/ε with
// the ε that implies μ-GDP (pureToGDP) for μ; 0 for none.
func LaplaceScale(b Budget) (float64, error) {
	if b == nil {
		return 0, errors.New("Laplace noise: there is no budget")
	}
	if err := b.Validate(); err != nil {
		return 0, fmt.Errorf("Laplace noise: %w", err)
	}
	switch b := b.(type) {
	case Pure:
		return 1 / b.Epsilon, nil
	case Approx:
		return 1 / b.Epsilon, nil
	case ZCDP:
		return 1 / math.Sqrt(2*b.Rho), nil
	case Renyi:
		return math.Sqrt(b.Alpha / b.Epsilon / 2), nil
	case GDP:
		return 1 / gdpToPure(b.Mu), nil
	}
	return 0, nil
}

// laplaceLevels is the loss of so many Laplace releases. Their ε is rounded once.
func laplaceLevels(scale float64, levels int) Loss {
	l := laplaceLoss(divUp(1, scale)).Times(levels)
	if l.t != nil && !l.Infinite() {
		t := *l.t
		t.pure = divUp(float64(levels), scale)
		l.t = &t
	}
	return l
}

func (m Laplace) withScale(x float64) Mechanism { m.Scale = x; return m }

func (m Laplace) draws() Draws { return Draws{Once: true, Law: NoiseLaplace, Scale: m.Scale} }
func (m Laplace) facts() facts {
	return facts{sum: true, noises: laplaces{fixed: 1, scale: m.Scale}}
}
func (m Laplace) entry() Entry   { return Entry{Sensitivity: 1, Scale: m.Scale} }
func (m Laplace) String() string { return "laplace(scale=" + number(m.Scale) + ")" }

func (m *Laplace) fields() []field {
	return []field{{"scale", &m.Scale}}
}

// MarshalJSON writes {"mechanism":"laplace","scale":1}.
func (m Laplace) MarshalJSON() ([]byte, error) { return encode(m.Kind(), m.fields()) }

func (m Laplace) read(data []byte) (Mechanism, error) {
	err := decode(m.Kind(), data, m.fields())
	return m, err
}
