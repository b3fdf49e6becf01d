package privacy

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
)

// Tree releases every running sum of a slot of at most Horizon rewards through the binary tree
// mechanism [Sajed 2019, Algorithm 5], with Lap(Scale) on each node. A reward is in one node of
// each of the ⌊log₂ Horizon⌋+1 levels, so that its loss is that many Laplace releases: (⌊log₂
// Horizon⌋+1)/Scale-DP. Coq checks it for discrete noise: proofs/Tree.v#few_nodes_a_reward and
// proofs/Tree.v#tree_price.
type Tree struct {
	Scale   float64
	Horizon int
}

func (Tree) Kind() string    { return "tree" }
func (Tree) Continual() bool { return true }

// Validate accepts 0 ≤ Scale < ∞ and Horizon ≥ 1.
func (m Tree) Validate() error {
	if m.Horizon < 1 {
		return errors.Join(scale("tree", "scale", m.Scale),
			fmt.Errorf("mechanism tree: horizon is %d, must be at least 1", m.Horizon))
	}
	return scale("tree", "scale", m.Scale)
}

// Loss is that of one Laplace release a level.
func (m Tree) Loss() Loss {
	if m.Validate() != nil {
		return InfiniteLoss()
	}
	return laplaceLevels(m.Scale, m.Levels())
}

// Levels is the number of nodes that a reward is in: ⌊log₂ Horizon⌋+1.
func (m Tree) Levels() int { return bits.Len(uint(m.Horizon)) }

// Nodes is how many nodes the sum of the first t rewards is made of: proofs/Tree.v#prefix_rule has which,
// and proofs/Tree.v#few_nodes_a_sum that they are no more than there are levels.
func (m Tree) Nodes(t int) int { return bits.OnesCount(uint(t)) }

// variance is that of the noise in the sum of the first t rewards.
func (m Tree) variance(t int) float64 { return 2 * float64(m.Scale*m.Scale) * float64(m.Nodes(t)) }

// Tail of the noise in any running sum, which is at most Levels Laplaces. The logarithm of the
// moment generating function of Lap(b) at s is −log(1−b²s²) ≤ b²s²/(1−bs), so a sum of m of them
// has P(noise > 2b√(mx) + bx) ≤ e^{−x} (Boucheron, Lugosi and Massart 2013, §2.4).
func (m Tree) Tail() Tail {
	return Tail{Sigma: m.Scale * math.Sqrt(2*float64(m.Levels())), H: m.Scale}
}

func (m Tree) withScale(x float64) Mechanism { m.Scale = x; return m }

func (m Tree) draws() Draws {
	return Draws{Law: NoiseLaplace, Scale: m.Scale, Shows: lastNode,
		Weights: func(to []int, t int) []int { return ones(to, m.Nodes(t)) }}
}
func (m Tree) facts() facts { return facts{sum: true, longest: m.Horizon} }
func (m Tree) entry() Entry { return Entry{Sensitivity: 1, Scale: m.Scale} }
func (m Tree) String() string {
	return fmt.Sprintf("tree(scale=%s,horizon=%d)", number(m.Scale), m.Horizon)
}

func (m *Tree) fields() []field {
	return []field{{"scale", &m.Scale}, {"horizon", &m.Horizon}}
}

// MarshalJSON writes {"mechanism":"tree","scale":1,"horizon":8}.
func (m Tree) MarshalJSON() ([]byte, error) { return encode(m.Kind(), m.fields()) }

func (m Tree) read(data []byte) (Mechanism, error) {
	err := decode(m.Kind(), data, m.fields())
	return m, err
}
