package privacy

import (
	"encoding/json"
	"fmt"
	"math"
	"math/bits"
)

// GramTree is the running Gram matrix of at most Horizon records through the binary tree, with normal
// noise of Sigma on each node (Shariff and Sheffet 2018, §4.1 and 4.2). A record is in Levels nodes,
// whose losses add up: μ² = Levels·8/(2·Sigma²), ρ = 2·Levels/Sigma². Their noise is drawn for (ε,δ)
// in each node, and composed after; composing ρ, or μ², and converting once needs less.
//
// With Leaf the tree's leaves are batches of so many records, and what is released are the sums of
// whole batches. A batch is of records that follow each other, and ends by their count alone, which
// is public. Replace a record: its batch's sum moves by what the record's own matrix does, 2√2 at
// most, and no other batch's does. So each node that holds the batch moves by that much, no other
// moves at all, and there is one on each level that ⌊Horizon/Leaf⌋ leaves have. The price is that
// of a tree of so many records, and what a record can do to a node is as before.
type GramTree struct {
	Sigma   float64
	Horizon int // records
	Leaf    int // records of a leaf, from 0, which is 1, to Horizon
}

func (GramTree) Kind() string    { return "gram-tree" }
func (GramTree) Continual() bool { return true }

// Validate accepts 0 ≤ Sigma < ∞, Horizon ≥ 1 and 0 ≤ Leaf ≤ Horizon.
func (m GramTree) Validate() error {
	if err := treeShape(m.Kind(), "sigma", m.Sigma, m.Horizon); err != nil {
		return err
	}
	if m.Leaf < 0 || m.Leaf > m.Horizon {
		return fmt.Errorf("mechanism %s: leaf is %d, must be from 0 to the horizon, %d", m.Kind(), m.Leaf,
			m.Horizon)
	}
	return nil
}

// Leaves is how many whole leaves t records are.
func (m GramTree) Leaves(t int) int { return t / max(1, m.Leaf) }

// Levels is the number of nodes that a record is in: ⌊log₂ of the horizon's leaves⌋+1.
func (m GramTree) Levels() int { return bits.Len(uint(m.Leaves(m.Horizon))) }

// Loss is that of Gaussian releases of all levels, each at sensitivity 2√2 in the Frobenius norm.
func (m GramTree) Loss() Loss {
	if m.Validate() != nil {
		return InfiniteLoss()
	}
	return gaussianLoss(divUp(4*float64(m.Levels()), squareDown(m.Sigma)))
}

// nodes is how many nodes the sum of the first t records is made of, whole leaves.
func (m GramTree) nodes(t int) int { return bits.OnesCount(uint(m.Leaves(t))) }

// Band is that of one normal matrix whose σ² is that of all nodes together: see normalBand.
func (m GramTree) Band(dim, t int, x float64) Band {
	return normalBand(dim, m.Sigma*math.Sqrt(float64(m.nodes(t))), x)
}

// GridSensitivity is by how much the Gram matrix of vectors in ℝ^dim moves in the Frobenius norm
// when a record is replaced and all (dim+1)² products are rounded to multiples of step: each by a
// step more, half of it at either end, beside √2·(1+‖a‖²) ≤ 2√2·(1+2·10⁻⁹), for norms may be
// 10⁻⁹ above 1, and products round.
func (GramTree) GridSensitivity(dim int, step float64) float64 {
	return float64(2*math.Sqrt2*(1+2*normSlack)) + float64(float64(dim+1)*step)
}

// normSlack is by how much the curators' doors let a norm exceed 1: unitball.Slack.
const normSlack = 1e-9

// The noise of a curator on a grid, in steps: at least so much, and at most by so much more than
// what the mechanism and its sensitivity ask for. A 32nd is for off the diagonal and as much again
// for on it, where it is √2 larger and rounded up once more.
const (
	leastOnGrid = 16
	moreOnGrid  = 1.0 / 16
)

// GridBand is Band of what a curator of real records releases, which works on a grid of this step
// (release.RealFeatures, whose step is release.ExactStep). It bounds by how much a release is off,
// by discrete normal noise of the scale that is drawn there and by the rounding of t records'
// products, half a step each, and a little for the product itself.
//
// Why normalBand holds for discrete normal noise. In steps, let X be a node's noise, of scale τ ≥ 16
// off the diagonal and τ' ≥ 16 on it, and s a number with τ² and τ'²/2 at most s². Let G be
// independent and normal, with the variances s²+16−τ² off the diagonal and 2(s²+16)−τ'² on it, 16 at
// least. By Poisson's summation formula an entry of X+G has a density of at most 1 + 3e^{−2π²w} times
// that of a normal one whose variance is s²+16, or 2(s²+16) on the diagonal, where w ≥ 256·16/272 >
// 15 is the harmonic sum of both variances, and so have all of them together, for fewer than 10¹²
// draws, of at most 1 + 10^{−110} times. The largest eigenvalue of the sum of nodes, and the length
// of its column, are convex functions F of it, so that by Jensen's inequality over G
//
//	E e^{θF(X)} ≤ E e^{θF(X+G)} ≤ (1 + 10^{−110})·E e^{θF(N)},   θ > 0,
//
// with N as normalBand has it at σ² = s²+16. Its inequalities come from bounds on the right hand
// side (Boucheron, Lugosi and Massart 2013, Theorem 5.5), with E‖g‖ ≤ √d, which gives away more
// than the factor.
func (m GramTree) GridBand(dim, t int, x, step float64) Band {
	var b Band
	if m.Sigma > 0 {
		more := m.GridSensitivity(dim, step) / (2 * math.Sqrt2)
		s := max(float64(m.Sigma*more), leastOnGrid*step) + float64(moreOnGrid*step)
		b = normalBand(dim, math.Hypot(s, 4*step)*math.Sqrt(float64(m.nodes(t))), x)
	}
	return b.rounded(dim, t, step)
}

// newGramTree meets the budget: ρ, (ε,δ), (α,ε) or none, as GaussianSigma does.
func newGramTree(b Budget, horizon int) (GramTree, error) { return NewGramLeaves(b, horizon, 0) }

// NewGramLeaves is newGramTree with leaves of so many records each.
func NewGramLeaves(b Budget, horizon, leaf int) (GramTree, error) {
	m := GramTree{Horizon: horizon, Leaf: leaf}
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

func (m GramTree) draws() Draws {
	return Draws{Law: NoiseGaussian, Scale: m.Sigma,
		Weights: func(to []int, t int) []int { return ones(to, m.nodes(t)) },
		Shows: func(to []Shown, t int) []Shown {
			leaves := m.Leaves(t)
			return append(to, Shown{(leaves - leaves&-leaves) * max(1, m.Leaf), 1})
		}}
}

func (m GramTree) facts() facts { return facts{vector: true, longest: m.Horizon, leaf: m.Leaf} }
func (m GramTree) entry() Entry {
	return Entry{Sensitivity: 2 * math.Sqrt2, Scale: m.Sigma, Norm: "Frobenius", Protects: jointly}
}

func (m GramTree) String() string {
	leaf := ""
	if m.Leaf > 0 {
		leaf = fmt.Sprintf(",leaf=%d", m.Leaf)
	}
	return fmt.Sprintf("gram-tree(sigma=%s,horizon=%d%s)", number(m.Sigma), m.Horizon, leaf)
}

func (m *GramTree) fields(leaf bool) []field {
	all := []field{{"sigma", &m.Sigma}, {"horizon", &m.Horizon}}
	if leaf {
		all = append(all, field{"leaf", &m.Leaf})
	}
	return all
}

// MarshalJSON writes {"mechanism":"gram-tree","sigma":2,"horizon":1000}, and a leaf that is not 0.
func (m GramTree) MarshalJSON() ([]byte, error) { return encode(m.Kind(), m.fields(m.Leaf != 0)) }

func (m GramTree) read(data []byte) (Mechanism, error) {
	var has struct {
		Leaf json.RawMessage `json:"leaf"`
	}
	if err := json.Unmarshal(data, &has); err != nil {
		return m, fmt.Errorf("mechanism %s: %w", m.Kind(), err)
	}
	err := decode(m.Kind(), data, m.fields(has.Leaf != nil))
	return m, err
}
