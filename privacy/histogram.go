package privacy

import (
	"fmt"
	"math"
)

// A histogram has two bins for each of C cells, for records (cell, y), y in [0,1]: 1 − y goes into the
// first bin of the record's cell, and y into the second. With clicks, y in {0,1}, these are counts of
// (cell, click); otherwise their sum is the count and the second is Σ y, with no coin to round y.
//
// Replace a record. It takes (1−y, y) from two bins, and puts (1−y′, y′) into two. Each of these has ℓ1
// norm 1, so that the histogram moves by at most 2 in ℓ1. No component is negative, so that their inner
// product is not, and ‖u−u′‖₂² ≤ ‖u‖₂² + ‖u′‖₂² ≤ 2: it moves by at most √2 in ℓ2. Two clicks in two cells
// meet both, and C is in neither: more cells cost no noise.

// LaplaceHistogram releases a histogram of one slot with independent Lap(Scale) in each bin: it moves by 2
// in ℓ1, which is (2/Scale)-DP. Nothing but ε is kept.
type LaplaceHistogram struct{ Scale float64 }

// GaussianHistogram releases a histogram of one slot with independent N(0, Sigma²) in each bin: it moves by
// √2 in ℓ2, which is the Gaussian mechanism at μ = √2/Sigma and 1/Sigma²-zCDP.
type GaussianHistogram struct{ Sigma float64 }

// A Histogram is LaplaceHistogram or GaussianHistogram.
type Histogram interface {
	Mechanism
	// BinVariance is that of the noise in a bin.
	BinVariance() float64
}

// NewHistogram meets the budget: Laplace noise for ε, Gaussian noise for ρ, (α,ε) and μ, none for none, and for (ε,δ)
// what varies less of the Gaussian and the Laplace noise of ε alone: at δ = 1e-6 that is Laplace's, by four times.
func NewHistogram(b Budget) (Histogram, error) {
	var l LaplaceHistogram
	switch b.(type) {
	case Pure, Approx:
		scale, err := LaplaceScale(b)
		if err != nil {
			return nil, fmt.Errorf("histogram: %w", err)
		}
		l = LaplaceHistogram{2 * scale}
	}
	if _, pure := b.(Pure); pure {
		return l, nil
	}
	sigma, err := GaussianSigma(b)
	if err != nil {
		return nil, fmt.Errorf("histogram: %w", err)
	}
	g := GaussianHistogram{math.Sqrt2 * sigma}
	if l.Scale > 0 && l.BinVariance() <= g.BinVariance() {
		return l, nil
	}
	return g, nil
}

func (LaplaceHistogram) Kind() string  { return "laplace-histogram" }
func (GaussianHistogram) Kind() string { return "gaussian-histogram" }

func (LaplaceHistogram) Continual() bool  { return false }
func (GaussianHistogram) Continual() bool { return false }

// Validate accepts 0 ≤ Scale < ∞.
func (m LaplaceHistogram) Validate() error { return scale(m.Kind(), "scale", m.Scale) }

// Validate accepts 0 ≤ Sigma < ∞.
func (m GaussianHistogram) Validate() error { return scale(m.Kind(), "sigma", m.Sigma) }

// Loss is pure.
func (m LaplaceHistogram) Loss() Loss {
	if m.Validate() != nil || m.Scale == 0 {
		return InfiniteLoss()
	}
	return LossOf(Pure{max(1e-150, divUp(2, m.Scale))}) // whose square is still a number
}

// Loss is that of the Gaussian mechanism at sensitivity √2.
func (m GaussianHistogram) Loss() Loss {
	if m.Validate() != nil {
		return InfiniteLoss()
	}
	return gaussianLoss(divUp(2, squareDown(m.Sigma)))
}

func (m LaplaceHistogram) BinVariance() float64  { return float64(2 * m.Scale * m.Scale) }
func (m GaussianHistogram) BinVariance() float64 { return float64(m.Sigma * m.Sigma) }

func (m LaplaceHistogram) withScale(x float64) Mechanism  { m.Scale = x; return m }
func (m GaussianHistogram) withScale(x float64) Mechanism { m.Sigma = x; return m }

func (m LaplaceHistogram) draws() Draws {
	return Draws{Once: true, Law: NoiseLaplace, Scale: m.Scale}
}

func (m GaussianHistogram) draws() Draws {
	return Draws{Once: true, Law: NoiseGaussian, Scale: m.Sigma}
}

func (LaplaceHistogram) facts() facts  { return facts{vector: true} }
func (GaussianHistogram) facts() facts { return facts{vector: true} }

func (m LaplaceHistogram) entry() Entry {
	return Entry{Sensitivity: 2, Scale: m.Scale, Norm: "ℓ1", Protects: jointly}
}

func (m GaussianHistogram) entry() Entry {
	return Entry{Sensitivity: math.Sqrt2, Scale: m.Sigma, Norm: "ℓ2", Protects: jointly}
}

func (m LaplaceHistogram) String() string { return "laplace-histogram(scale=" + number(m.Scale) + ")" }

func (m GaussianHistogram) String() string {
	return "gaussian-histogram(sigma=" + number(m.Sigma) + ")"
}

func (m *LaplaceHistogram) fields() []field  { return []field{{"scale", &m.Scale}} }
func (m *GaussianHistogram) fields() []field { return []field{{"sigma", &m.Sigma}} }

// MarshalJSON writes {"mechanism":"laplace-histogram","scale":2}.
func (m LaplaceHistogram) MarshalJSON() ([]byte, error) { return encode(m.Kind(), m.fields()) }

// MarshalJSON writes {"mechanism":"gaussian-histogram","sigma":1}.
func (m GaussianHistogram) MarshalJSON() ([]byte, error) { return encode(m.Kind(), m.fields()) }

func (m LaplaceHistogram) read(data []byte) (Mechanism, error) {
	err := decode(m.Kind(), data, m.fields())
	return m, err
}

func (m GaussianHistogram) read(data []byte) (Mechanism, error) {
	err := decode(m.Kind(), data, m.fields())
	return m, err
}
