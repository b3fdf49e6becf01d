package privacy

import (
	"fmt"
	"math"
	"math/bits"
)

// VectorTree is the running Σ a·r of at most Horizon rewards through the binary tree, with
// Lap(Scale) in each of Dim coordinates of each node: LinPriv's noise (Neel and Roth 2018). The
// vectors are public. A reward replaced moves a·r by 2‖a‖₁ ≤ 2√Dim in the norm ℓ1 and is in Levels
// nodes: (2√Dim·Levels/Scale)-DP. Nothing but ε is kept, at which the losses of all nodes together
// are bounded whatever the vectors are.
type VectorTree struct {
	Scale        float64
	Dim, Horizon int
}

func (VectorTree) Kind() string    { return "vector-tree" }
func (VectorTree) Continual() bool { return true }

// Validate accepts 0 ≤ Scale < ∞, Dim ≥ 1 and Horizon ≥ 1.
func (m VectorTree) Validate() error {
	if m.Dim < 1 {
		return fmt.Errorf("mechanism %s: dim is %d, must be at least 1", m.Kind(), m.Dim)
	}
	return treeShape(m.Kind(), "scale", m.Scale, m.Horizon)
}

// levels is the number of nodes that a reward is in: ⌊log₂ Horizon⌋+1.
func (m VectorTree) levels() int { return bits.Len(uint(m.Horizon)) }

// Loss is pure.
func (m VectorTree) Loss() Loss {
	if m.Validate() != nil {
		return InfiniteLoss()
	}
	// No less than 1e-150, whose square is still a number.
	return LossOf(Pure{max(1e-150, divUp(mulUp(2*sqrtUp(float64(m.Dim)), float64(m.levels())), m.Scale))})
}

// nodes is how many nodes the sum of the first t rewards is made of.
func (m VectorTree) nodes(t int) int { return bits.OnesCount(uint(t)) }

// NoiseNorm bounds the length of the noise in the sum of the first t vectors: it is longer with
// probability at most e^{−x}. Each coordinate is a sum of as many Laplaces as t has binary digits
// that are 1, on both sides, of which Tree.Tail bounds one: log(2·Dim) is added to x for all.
func (m VectorTree) NoiseNorm(t int, x float64) float64 {
	d := float64(m.Dim)
	x += math.Log(2 * d)
	nodes := float64(m.nodes(t))
	return float64(m.Scale*math.Sqrt(d)) * (2*math.Sqrt(float64(nodes*x)) + x)
}

// NewVectorTree meets the budget ε, or none.
func NewVectorTree(b Budget, dim, horizon int) (VectorTree, error) {
	m := VectorTree{Dim: dim, Horizon: horizon}
	if err := m.Validate(); err != nil {
		return VectorTree{}, err
	}
	switch b := b.(type) {
	case None:
		return m, nil
	case Pure:
		if err := b.Validate(); err != nil {
			return VectorTree{}, fmt.Errorf("vector tree: %w", err)
		}
		m.Scale = 2 * math.Sqrt(float64(dim)) * float64(m.levels()) / b.Epsilon
		return m, m.Validate()
	}
	return VectorTree{}, fmt.Errorf("vector tree: budget is %v, must be epsilon", b)
}

func (m VectorTree) draws() Draws {
	return Draws{Law: NoiseLaplace, Scale: m.Scale, Shows: lastNode,
		Weights: func(to []int, t int) []int { return ones(to, m.nodes(t)) }}
}

func (m VectorTree) facts() facts { return facts{vector: true, longest: m.Horizon} }
func (m VectorTree) entry() Entry {
	return Entry{Sensitivity: 2 * math.Sqrt(float64(m.Dim)), Scale: m.Scale, Norm: "ℓ1", Protects: ofRewards}
}

func (m VectorTree) String() string {
	return fmt.Sprintf("vector-tree(scale=%s,horizon=%d,dim=%d)", number(m.Scale), m.Horizon, m.Dim)
}

func (m *VectorTree) fields() []field {
	return []field{{"scale", &m.Scale}, {"horizon", &m.Horizon}, {"dim", &m.Dim}}
}

// MarshalJSON writes {"mechanism":"vector-tree","scale":2,"horizon":1000,"dim":3}.
func (m VectorTree) MarshalJSON() ([]byte, error) { return encode(m.Kind(), m.fields()) }

func (m VectorTree) read(data []byte) (Mechanism, error) {
	err := decode(m.Kind(), data, m.fields())
	return m, err
}
