package privacy

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/bits"
)

// What a slot of vectors with rewards can be released as, again and again while it grows: all of it
// at every time for one charge. Records are pairs of the vector a ∈ ℝ^d that was played, ‖a‖₂ ≤ 1,
// and its reward r ∈ [−1,1].
//
// Gram mechanisms release the running sum of zzᵀ, z = [a; r] (the upper triangle, row by row), and
// hide a and r both. ‖z‖² ≤ 2, and
//
//	‖zzᵀ − z'z'ᵀ‖_F² = ‖z‖⁴ + ‖z'‖⁴ − 2⟨z,z'⟩² ≤ 8,
//
// where a = a', ‖a‖ = 1, r = −r' = 1 meets it: sensitivity 2√2 in the Frobenius norm. The last
// entry, Σ r², costs nothing more: without it the worst pair is the same.
//
// Normal noise on a symmetric matrix is (σ/√2)(X + Xᵀ) with independent normal entries in X:
// variance 2σ² on the diagonal and σ² off it, all independent. Its density falls as
// exp(−‖N‖_F²/4σ²), the same in all directions of the Frobenius norm, so that a shift D is the
// Gaussian mechanism at μ = ‖D‖_F/(√2σ) and ρ = ‖D‖_F²/(4σ²).

// GramTree is the running Gram matrix of at most Horizon records through the binary tree, with normal
// noise of Sigma on each node (Shariff and Sheffet 2018, §4.1 and 4.2). A record is in Levels nodes,
// whose losses add up: μ² = Levels·8/(2·Sigma²), ρ = 2·Levels/Sigma². Their noise is drawn for (ε,δ)
// in each node, and composed after; composing ρ, or μ², and converting once needs less.
type GramTree struct {
	Sigma   float64
	Horizon int
}

// GramBLT is the running Gram matrix of at most Horizon records with the correlated noise of a
// buffered linear Toeplitz matrix, one stream for each entry: the noise AC⁻¹Z where Z are
// independent normal matrices of Counter.Sigma and Counter's C. It is AC⁻¹ of the Gaussian
// mechanism on Cx, in each entry, so that a record that moves by D costs μ = ‖Ce₁‖·‖D‖_F/(√2σ). At
// horizon 10⁶ its largest variance is a twelfth of the tree's at the same ρ.
type GramBLT struct{ Counter BLT }

// VectorTree is the running Σ a·r of at most Horizon rewards through the binary tree, with
// Lap(Scale) in each of Dim coordinates of each node: LinPriv's noise (Neel and Roth 2018). The
// vectors are public. A reward replaced moves a·r by 2‖a‖₁ ≤ 2√Dim in the norm ℓ1 and is in Levels
// nodes: (2√Dim·Levels/Scale)-DP. Nothing but ε is kept, at which the losses of all nodes together
// are bounded whatever the vectors are.
type VectorTree struct {
	Scale        float64
	Dim, Horizon int
}

// GaussianVectorTree is VectorTree with N(0,Sigma²) in each coordinate. A reward moves a·r by 2‖a‖₂
// ≤ 2: μ² = 4·Levels/Sigma², ρ = 2·Levels/Sigma².
type GaussianVectorTree struct {
	Sigma   float64
	Horizon int
}

// A Band bounds the noise in a running Gram matrix after some record. Its block for the vectors,
// d×d, has its eigenvalues from Lo to Hi, and its column for a·r is no longer than Cross.
type Band struct{ Lo, Hi, Cross float64 }

// A GramMechanism releases running Gram matrices.
type GramMechanism interface {
	Mechanism
	// Band bounds the noise after t records of vectors in ℝ^dim: each of at most four events, an
	// eigenvalue below or above, or a column that is too long, has a probability of at most e^{−x}.
	Band(dim, t int, x float64) Band
}

func (GramTree) Kind() string           { return "gram-tree" }
func (GramBLT) Kind() string            { return "gram-blt" }
func (VectorTree) Kind() string         { return "vector-tree" }
func (GaussianVectorTree) Kind() string { return "gaussian-vector-tree" }

func (GramTree) Continual() bool           { return true }
func (GramBLT) Continual() bool            { return true }
func (VectorTree) Continual() bool         { return true }
func (GaussianVectorTree) Continual() bool { return true }

// Validate accepts 0 ≤ Sigma < ∞ and Horizon ≥ 1.
func (m GramTree) Validate() error { return treeShape(m.Kind(), "sigma", m.Sigma, m.Horizon) }

// Validate accepts what BLT.Validate does.
func (m GramBLT) Validate() error {
	if err := m.Counter.Validate(); err != nil {
		return fmt.Errorf("mechanism %s: %w", m.Kind(), err)
	}
	return nil
}

// Validate accepts 0 ≤ Scale < ∞, Dim ≥ 1 and Horizon ≥ 1.
func (m VectorTree) Validate() error {
	if m.Dim < 1 {
		return fmt.Errorf("mechanism %s: dim is %d: it must be at least 1", m.Kind(), m.Dim)
	}
	return treeShape(m.Kind(), "scale", m.Scale, m.Horizon)
}

// Validate accepts 0 ≤ Sigma < ∞ and Horizon ≥ 1.
func (m GaussianVectorTree) Validate() error {
	return treeShape(m.Kind(), "sigma", m.Sigma, m.Horizon)
}

func treeShape(kind, field string, x float64, horizon int) error {
	return errors.Join(scale(kind, field, x), checkHorizon(kind, horizon, math.MaxInt))
}

// Levels is the number of nodes that a record is in: ⌊log₂ Horizon⌋+1.
func (m GramTree) Levels() int { return bits.Len(uint(m.Horizon)) }

// Levels is the number of nodes that a reward is in: ⌊log₂ Horizon⌋+1.
func (m VectorTree) Levels() int { return bits.Len(uint(m.Horizon)) }

// Levels is the number of nodes that a reward is in: ⌊log₂ Horizon⌋+1.
func (m GaussianVectorTree) Levels() int { return bits.Len(uint(m.Horizon)) }

// Loss is that of Gaussian releases of all levels, each at sensitivity 2√2 in the Frobenius norm.
func (m GramTree) Loss() Loss {
	if m.Validate() != nil {
		return InfiniteLoss()
	}
	return gaussianLoss(divUp(4*float64(m.Levels()), squareDown(m.Sigma)))
}

// Loss is that of a Gaussian release of sensitivity 2√2·‖Ce₁‖ in the Frobenius norm.
func (m GramBLT) Loss() Loss {
	if m.Validate() != nil {
		return InfiniteLoss()
	}
	return gaussianLoss(divUp(raised(4*m.Counter.sensitivity2(), many), squareDown(m.Counter.Sigma)))
}

// Loss is pure.
func (m VectorTree) Loss() Loss {
	if m.Validate() != nil {
		return InfiniteLoss()
	}
	// No less than 1e-150, whose square is still a number.
	return LossOf(Pure{max(1e-150, divUp(mulUp(2*sqrtUp(float64(m.Dim)), float64(m.Levels())), m.Scale))})
}

// Loss is that of Gaussian releases of all levels, each at sensitivity 2.
func (m GaussianVectorTree) Loss() Loss {
	if m.Validate() != nil {
		return InfiniteLoss()
	}
	return gaussianLoss(divUp(4*float64(m.Levels()), squareDown(m.Sigma)))
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

// NewGramBLT meets the budget: ρ, (ε,δ), (α,ε) or none, with the buffers of NewBLT.
func NewGramBLT(b Budget, horizon int) (GramBLT, error) {
	m, err := NewBLT(b, horizon)
	if err != nil {
		return GramBLT{}, err
	}
	m.Sigma *= 2 // 2√2 over √2, which σ is times along the diagonal
	return GramBLT{m}, nil
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
		m.Scale = 2 * math.Sqrt(float64(dim)) * float64(m.Levels()) / b.Epsilon
		return m, m.Validate()
	}
	return VectorTree{}, fmt.Errorf("vector tree: budget is %v: it must be epsilon", b)
}

// NewGaussianVectorTree meets the budget: ρ, (ε,δ), (α,ε) or none, as GaussianSigma does.
func NewGaussianVectorTree(b Budget, horizon int) (GaussianVectorTree, error) {
	m, err := NewGramTree(b, horizon) // the same number: see Loss
	return GaussianVectorTree(m), err
}

// Nodes is how many nodes the sum of the first t records is made of.
func (m GramTree) Nodes(t int) int { return bits.OnesCount(uint(t)) }

// Band is that of one normal matrix whose σ² is that of all nodes together: see normalBand.
func (m GramTree) Band(dim, t int, x float64) Band {
	return normalBand(dim, m.Sigma*math.Sqrt(float64(m.Nodes(t))), x)
}

// Band is by the largest variance, that of the last record: the noise in a running sum at any time
// is one normal matrix.
func (m GramBLT) Band(dim, _ int, x float64) Band {
	return normalBand(dim, math.Sqrt(m.Counter.MaxVariance()), x)
}

// normalBand is that of σ/√2·(X+Xᵀ). For unit vectors u, v, uᵀNu − vᵀNv has variance 4σ²(1−⟨u,v⟩²)
// ≤ 4σ²‖u−v‖², which is that of 2σ⟨g,u−v⟩, g ~ N(0,I_d): by the inequality of Sudakov and Fernique
// the expectation of the largest eigenvalue is at most 2σE‖g‖ ≤ 2σ√d. uᵀNu has variance 2σ² for
// every u, so that the largest is above 2σ√d + 2σ√x with probability at most e^{−x} (Boucheron,
// Lugosi and Massart 2013, Theorem 5.8). The smallest mirrors it. The column is N(0,σ²I_d), and its
// length above σ√d + σ√(2x) with probability at most e^{−x}. Shariff and Sheffet have σ√2(4√d + 2
// log(2T/α)) for the former.
func normalBand(dim int, sigma, x float64) Band {
	d := math.Sqrt(float64(dim))
	hi := 2 * sigma * (d + math.Sqrt(x))
	return Band{Lo: -hi, Hi: hi, Cross: sigma * (d + math.Sqrt(2*x))}
}

// NoiseNorm bounds the length of the noise in the sum of the first t vectors: it is longer with
// probability at most e^{−x}. Each coordinate is a sum of as many Laplaces as t has binary digits
// that are 1, on both sides, of which Tree.Tail bounds one: log(2·Dim) is added to x for all.
func (m VectorTree) NoiseNorm(t int, x float64) float64 {
	d := float64(m.Dim)
	x += math.Log(2 * d)
	nodes := float64(bits.OnesCount(uint(t)))
	return float64(m.Scale*math.Sqrt(d)) * (2*math.Sqrt(float64(nodes*x)) + x)
}

// NoiseNorm bounds the length of the noise in the sum of the first t vectors of dim coordinates: it
// is longer with probability at most e^{−x}.
func (m GaussianVectorTree) NoiseNorm(dim, t int, x float64) float64 {
	return m.Sigma * math.Sqrt(float64(bits.OnesCount(uint(t)))) * (math.Sqrt(float64(dim)) + math.Sqrt(2*x))
}

// jointly is what joint differential privacy is, of Gram matrices.
const jointly = "joint DP: a record is the vector that was played and its reward, replaced by " +
	"another. The actions of other rounds reveal neither; " +
	"the round's own action does"

// ofRewards is what is kept where vectors are public.
const ofRewards = "a record is one reward, replaced by another; the vectors are public"

func (m GramTree) entry(e *Entry) {
	e.Sensitivity, e.Scale, e.Norm, e.Protects = 2*math.Sqrt2, m.Sigma, "Frobenius", jointly
}
func (m GramBLT) entry(e *Entry) {
	e.Sensitivity, e.Scale, e.Norm, e.Protects = 2*math.Sqrt2, m.Counter.Sigma, "Frobenius", jointly
}
func (m VectorTree) entry(e *Entry) {
	e.Sensitivity, e.Scale, e.Norm, e.Protects = 2*math.Sqrt(float64(m.Dim)), m.Scale, "ℓ1", ofRewards
}
func (m GaussianVectorTree) entry(e *Entry) {
	e.Sensitivity, e.Scale, e.Norm, e.Protects = 2, m.Sigma, "ℓ2", ofRewards
}

func (m GramTree) String() string {
	return fmt.Sprintf("gram-tree(sigma=%s,horizon=%d)", number(m.Sigma), m.Horizon)
}
func (m GramBLT) String() string { return "gram-" + m.Counter.String() }
func (m VectorTree) String() string {
	return fmt.Sprintf("vector-tree(scale=%s,horizon=%d,dim=%d)", number(m.Scale), m.Horizon, m.Dim)
}
func (m GaussianVectorTree) String() string {
	return fmt.Sprintf("gaussian-vector-tree(sigma=%s,horizon=%d)", number(m.Sigma), m.Horizon)
}

// MarshalJSON writes {"mechanism":"gram-tree","sigma":2,"horizon":1000}.
func (m GramTree) MarshalJSON() ([]byte, error) {
	return json.Marshal(mechanismJSON{Mechanism: m.Kind(), Sigma: &m.Sigma, Horizon: &m.Horizon})
}

// MarshalJSON writes what BLT's does, {"mechanism":"gram-blt",…}.
func (m GramBLT) MarshalJSON() ([]byte, error) {
	b := m.Counter.buffers()
	return json.Marshal(mechanismJSON{Mechanism: m.Kind(), Sigma: &m.Counter.Sigma, Horizon: &m.Counter.Horizon,
		Decay: m.Counter.Decay[:b], Weight: m.Counter.Weight[:b]})
}

// MarshalJSON writes {"mechanism":"vector-tree","scale":2,"horizon":1000,"dim":3}.
func (m VectorTree) MarshalJSON() ([]byte, error) {
	return json.Marshal(mechanismJSON{Mechanism: m.Kind(), Scale: &m.Scale, Horizon: &m.Horizon, Dim: &m.Dim})
}

// MarshalJSON writes {"mechanism":"gaussian-vector-tree","sigma":2,"horizon":1000}.
func (m GaussianVectorTree) MarshalJSON() ([]byte, error) {
	return json.Marshal(mechanismJSON{Mechanism: m.Kind(), Sigma: &m.Sigma, Horizon: &m.Horizon})
}

var (
	_ GramMechanism = GramTree{}
	_ GramMechanism = GramBLT{}
	_ GramMechanism = GramWishart{}
)
