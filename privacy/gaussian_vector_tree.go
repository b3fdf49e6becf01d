package privacy

import (
	"fmt"
	"math"
	"math/bits"
)

// GaussianVectorTree is VectorTree with N(0,Sigma²) in each coordinate. A reward moves a·r by 2‖a‖₂
// ≤ 2: μ² = 4·Levels/Sigma², ρ = 2·Levels/Sigma².
type GaussianVectorTree struct {
	Sigma   float64
	Horizon int
}

func (GaussianVectorTree) Kind() string    { return "gaussian-vector-tree" }
func (GaussianVectorTree) Continual() bool { return true }

// Validate accepts 0 ≤ Sigma < ∞ and Horizon ≥ 1.
func (m GaussianVectorTree) Validate() error {
	return treeShape(m.Kind(), "sigma", m.Sigma, m.Horizon)
}

// levels is the number of nodes that a reward is in: ⌊log₂ Horizon⌋+1.
func (m GaussianVectorTree) levels() int { return bits.Len(uint(m.Horizon)) }

// Loss is that of Gaussian releases of all levels, each at sensitivity 2.
func (m GaussianVectorTree) Loss() Loss {
	if m.Validate() != nil {
		return InfiniteLoss()
	}
	return gaussianLoss(divUp(4*float64(m.levels()), squareDown(m.Sigma)))
}

// nodes is how many nodes the sum of the first t rewards is made of.
func (m GaussianVectorTree) nodes(t int) int { return bits.OnesCount(uint(t)) }

// NoiseNorm bounds the length of the noise in the sum of the first t vectors of dim coordinates: it
// is longer with probability at most e^{−x}.
func (m GaussianVectorTree) NoiseNorm(dim, t int, x float64) float64 {
	return m.Sigma * math.Sqrt(float64(m.nodes(t))) * (math.Sqrt(float64(dim)) + math.Sqrt(2*x))
}

// NewGaussianVectorTree meets the budget: ρ, (ε,δ), (α,ε) or none, as GaussianSigma does.
func NewGaussianVectorTree(b Budget, horizon int) (GaussianVectorTree, error) {
	m, err := newGramTree(b, horizon) // the same number: see Loss
	return GaussianVectorTree{Sigma: m.Sigma, Horizon: m.Horizon}, err
}

func (m GaussianVectorTree) draws() Draws {
	return Draws{Law: NoiseGaussian, Scale: m.Sigma, Shows: lastNode,
		Weights: func(to []int, t int) []int { return ones(to, m.nodes(t)) }}
}

func (m GaussianVectorTree) facts() facts { return facts{vector: true, longest: m.Horizon} }
func (m GaussianVectorTree) entry() Entry {
	return Entry{Sensitivity: 2, Scale: m.Sigma, Norm: "ℓ2", Protects: ofRewards}
}

func (m GaussianVectorTree) String() string {
	return fmt.Sprintf("gaussian-vector-tree(sigma=%s,horizon=%d)", number(m.Sigma), m.Horizon)
}

func (m *GaussianVectorTree) fields() []field {
	return []field{{"sigma", &m.Sigma}, {"horizon", &m.Horizon}}
}

// MarshalJSON writes {"mechanism":"gaussian-vector-tree","sigma":2,"horizon":1000}.
func (m GaussianVectorTree) MarshalJSON() ([]byte, error) { return encode(m.Kind(), m.fields()) }

func (m GaussianVectorTree) read(data []byte) (Mechanism, error) {
	err := decode(m.Kind(), data, m.fields())
	return m, err
}
