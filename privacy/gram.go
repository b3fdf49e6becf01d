package privacy

import "math"

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

// A Band bounds the noise in a running Gram matrix after some record. Its block for the vectors,
// d×d, has its eigenvalues from Lo to Hi, and its column for a·r is no longer than Cross.
type Band struct{ Lo, Hi, Cross float64 }

// rounded allows for the products of t records, each rounded to a multiple of step.
func (b Band) rounded(dim, t int, step float64) Band {
	off := float64(float64(t)*step) * (0.5 + 1e-9)
	b.Lo -= float64(float64(dim) * off)
	b.Hi += float64(float64(dim) * off)
	b.Cross += float64(math.Sqrt(float64(dim)) * off)
	return b
}

// A GramMechanism releases running Gram matrices.
type GramMechanism interface {
	Mechanism
	// Band bounds the noise after t records of vectors in ℝ^dim: each of at most four events, an
	// eigenvalue below or above, or a column that is too long, has a probability of at most e^{−x}.
	Band(dim, t int, x float64) Band
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

// jointly is what joint differential privacy is, of Gram matrices and of histograms.
const jointly = "joint DP: a record is the vector that was played and its reward, replaced by " +
	"another. The actions of other rounds reveal neither; " +
	"the round's own action does"

// ofRewards is what is kept where vectors are public.
const ofRewards = "a record is one reward, replaced by another; the vectors are public"

var (
	_ GramMechanism = GramTree{}
	_ GramMechanism = GramBLT{}
	_ GramMechanism = GramWishart{}
)
