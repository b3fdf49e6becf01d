package privacy

import (
	"fmt"
	"math"
	"math/bits"
)

// GramTree is the running Gram matrix of at most Horizon records through the binary tree, with normal
// noise of Sigma on each node (Shariff and Sheffet 2018, §4.1 and 4.2). A record is in Levels nodes,
// whose losses add up: μ² = Levels·8/(2·Sigma²), ρ = 2·Levels/Sigma². Their noise is drawn for (ε,δ)
// in each node, and composed after; composing ρ, or μ², and converting once needs less.
type GramTree struct {
	Sigma   float64
	Horizon int
}

func (GramTree) Kind() string    { return "gram-tree" }
func (GramTree) Continual() bool { return true }

// Validate accepts 0 ≤ Sigma < ∞ and Horizon ≥ 1.
func (m GramTree) Validate() error { return treeShape(m.Kind(), "sigma", m.Sigma, m.Horizon) }

// Levels is the number of nodes that a record is in: ⌊log₂ Horizon⌋+1.
func (m GramTree) Levels() int { return bits.Len(uint(m.Horizon)) }

// Loss is that of Gaussian releases of all levels, each at sensitivity 2√2 in the Frobenius norm.
func (m GramTree) Loss() Loss {
	if m.Validate() != nil {
		return InfiniteLoss()
	}
	return gaussianLoss(divUp(4*float64(m.Levels()), squareDown(m.Sigma)))
}

// Nodes is how many nodes the sum of the first t records is made of.
func (m GramTree) Nodes(t int) int { return bits.OnesCount(uint(t)) }

// Band is that of one normal matrix whose σ² is that of all nodes together: see normalBand.
func (m GramTree) Band(dim, t int, x float64) Band {
	return normalBand(dim, m.Sigma*math.Sqrt(float64(m.Nodes(t))), x)
}

// NewGramTree meets the budget: ρ, (ε,δ), (α,ε) or none, as GaussianSigma does.
func NewGramTree(b Budget, horizon int) (GramTree, error) {
	m := GramTree{Horizon: horizon}
	if err := m.Validate(); err != nil {
		return GramTree{}, err
	}
	sigma, err := GaussianSigma(b)
	if err != nil {
		return GramTree{}, err
	}
	m.Sigma = 2 * math.Sqrt(float64(m.Levels())) * sigma
	return m, nil
}

func (m GramTree) facts() facts { return facts{vector: true, longest: m.Horizon} }
func (m GramTree) entry() Entry {
	return Entry{Sensitivity: 2 * math.Sqrt2, Scale: m.Sigma, Norm: "Frobenius", Protects: jointly}
}

func (m GramTree) String() string {
	return fmt.Sprintf("gram-tree(sigma=%s,horizon=%d)", number(m.Sigma), m.Horizon)
}

func (m *GramTree) fields() []field {
	return []field{{"sigma", &m.Sigma}, {"horizon", &m.Horizon}}
}

// MarshalJSON writes {"mechanism":"gram-tree","sigma":2,"horizon":1000}.
func (m GramTree) MarshalJSON() ([]byte, error) { return encode(m.Kind(), m.fields()) }

func (m GramTree) read(data []byte) (Mechanism, error) {
	err := decode(m.Kind(), data, m.fields())
	return m, err
}
