package privacy

import (
	"errors"
	"fmt"
	"math"
	"math/bits"

	"gonum.org/v1/gonum/mathext"
)

// GramWishart is the running Gram matrix of at most Horizon records of vectors in ℝ^Dim through the
// binary tree, with a Wishart matrix Scale·W on each node, W = Σ gᵢgᵢᵀ of Degrees independent gᵢ ~
// N(0,I) (Shariff and Sheffet 2018, §4.2; Sheffet 2019). So noise is positive definite. It is
// priced as (ε,Delta)-DP only: with a small probability a record shows fully, which no Rényi
// divergence is finite with. The sources' theorem (Scale 2, and for each node Degrees ≥
// d+1+28·log(4/δ₀)/ε₀², composed after) asks for a thousand times the Degrees of the following.
//
// The price. Let p = d+1, k = Degrees, ν = k−p−1, b = 2/Scale, W a node's noise over Scale, and z,
// z' the record and its replacement over √Scale, ‖z‖², ‖z'‖² ≤ b. W has a density in proportion to
// det(W)^{ν/2}·e^{−tr W/2}. What a node shows is M + zzᵀ + W or M + z'z'ᵀ + W, and seen from the
// first the log of the ratio of densities is
//
//	L = ½‖z‖² − ½‖z'‖² − (ν/2)·log[ (1 + zᵀW⁻¹z)(1 − z'ᵀW⁻¹z') + (zᵀW⁻¹z')² ],
//
// by det(W + zzᵀ − z'z'ᵀ)/det W = (1 + zᵀW⁻¹z)(1 − z'ᵀ(W + zzᵀ)⁻¹z') and Sherman and Morrison,
// where z'ᵀW⁻¹z' < 1. So L ≤ A + B with
//
//	A = ½‖z‖² − (ν/2)·log(1 + ‖z‖²/χ),   B = −½‖z'‖² − (ν/2)·log(1 − ‖z'‖²/χ'),
//
// where χ = ‖z‖²/zᵀW⁻¹z and χ' likewise are χ² with ν+2 degrees of freedom (Muirhead 1982, Theorem
// 3.2.12), dependent on each other. A and B are convex in ‖z‖² and 0 at 0, so that E e^{λA} and E
// e^{λB} over any event of χ' are at most the larger of 1 and what they are at b. Let F be the
// event that χ' > x in each of the record's m nodes, x > b. By Cauchy and Schwarz
//
//	E[e^{λL}; χ' > x] ≤ √(E e^{2λA} · E[e^{2λB}; χ' > x]) = e^{K(λ)}
//
// in a node, whatever the nodes before have shown, so that P(ΣL > ε) ≤ m·P(χ' ≤ x) + e^{mK(λ)−λε}
// for every λ > 0. Where that is at most δ, the tree is (ε,δ)-DP. Loss takes the x at which the
// former is δ/10, and a λ near the best; the integrals are numerical.
type GramWishart struct {
	Scale        float64
	Degrees      int
	Dim, Horizon int
	Delta        float64
}

// Kind is gram-wishart.
func (GramWishart) Kind() string { return "gram-wishart" }

// Continual is true.
func (GramWishart) Continual() bool { return true }

// maxDegrees is above what any budget asks for that is worth having.
const maxDegrees = min(1<<32, math.MaxInt)

// Validate accepts 0 ≤ Scale < ∞, Dim ≥ 1, Degrees from Dim+3 to 2^32, Horizon ≥ 1 and 0 < Delta < 1.
func (m GramWishart) Validate() error {
	err := treeShape(m.Kind(), "scale", m.Scale, m.Horizon)
	if m.Dim < 1 || m.Dim > 1<<20 {
		return errors.Join(err, fmt.Errorf("mechanism %s: dim is %d, must be from 1 to 2^20",
			m.Kind(), m.Dim))
	}
	if m.Degrees < m.Dim+3 || m.Degrees > maxDegrees {
		err = errors.Join(err, fmt.Errorf("mechanism %s: degrees is %d, must be from %d, "+
			"dim+3, to 2^32", m.Kind(), m.Degrees, m.Dim+3))
	}
	if e := probability("delta", m.Delta); e != nil {
		err = errors.Join(err, fmt.Errorf("mechanism %s: %w", m.Kind(), e))
	}
	return err
}

// levels is the number of nodes that a record is in: ⌊log₂ Horizon⌋+1.
func (m GramWishart) levels() int { return bits.Len(uint(m.Horizon)) }

// Loss is (ε,Delta)-DP of all nodes that a record is in: see GramWishart.
func (m GramWishart) Loss() Loss {
	if m.Validate() != nil || m.Scale == 0 {
		return InfiniteLoss()
	}
	epsilon := m.epsilon()
	if !(epsilon <= math.MaxFloat64) {
		return InfiniteLoss()
	}
	return LossOf(Approx{epsilon, m.Delta})
}

// epsilon is the ε at Delta, +Inf if there is none.
func (m GramWishart) epsilon() float64 {
	levels, b := float64(m.levels()), 2/m.Scale
	n := float64(m.Degrees - m.Dim) // of χ: ν+2
	below := func(x float64) float64 { return levels * chiSquareBelow(n, x) }
	lo, hi := 0.0, n
	for range 200 { // below is continuous and increases; below(lo) ≤ δ/10 always
		if mid := lo + (hi-lo)/2; below(mid) <= m.Delta/10 {
			lo = mid
		} else {
			hi = mid
		}
	}
	spent := below(lo)
	if !(n >= minFreedom && lo > b) {
		return math.Inf(1)
	}
	w := wishartLoss{n: n, b: b, from: lo}
	w.logNorm = w.integral(0, func(float64) float64 { return 0 })
	c := -math.Log(m.Delta - spent)
	// (mK(λ) + c)/λ falls and then rises, since K is convex.
	bound := func(logLambda float64) float64 {
		lambda := math.Exp(logLambda)
		e := (float64(levels*w.cumulant(lambda)) + c) / lambda
		if !(e <= math.MaxFloat64) {
			return math.MaxFloat64
		}
		return e
	}
	// Normal noise would have K = λ²μ²/2, μ² = 2b²/n, and its best λ is √(2c/(mμ²)).
	start := math.Log(math.Sqrt(float64(c*n)/levels) / b)
	x, y := start-3, start+2
	const golden = 0.6180339887498949
	p, q := y-float64(golden*(y-x)), x+float64(golden*(y-x))
	fp, fq := bound(p), bound(q)
	for range 16 {
		if fp <= fq {
			y, q, fq = q, p, fp
			p = y - float64(golden*(y-x))
			fp = bound(p)
		} else {
			x, p, fp = p, q, fq
			q = x + float64(golden*(y-x))
			fq = bound(q)
		}
	}
	best := min(fp, fq)
	if best == math.MaxFloat64 {
		return math.Inf(1)
	}
	return best * (1 + 1e-6) // for the integrals
}

// manyFreedom is from where on mathext.GammaIncReg is not asked: its series ends after 2000 terms,
// and for 2^31 degrees of freedom that is a third of the sum.
const manyFreedom = 1e5

// chiSquareBelow is P(χ² ≤ x) of n degrees of freedom or, for many, an upper bound on it that is a
// few percent too large 5 standard deviations below n. With a = n/2 and y = x/2 < a−1 the density f
// of Gamma(a) satisfies (log f)' ≥ (a−1)/y − 1 up to y, so that the probability is at most
// f(y)·y/(a−1−y); and Γ(a) ≥ √(2π/a)·(a/e)^a.
func chiSquareBelow(n, x float64) float64 {
	if n < manyFreedom {
		return mathext.GammaIncReg(n/2, x/2)
	}
	a, y := n/2, x/2
	if !(y < a-1) {
		return 1
	}
	u := (y - a) / a
	return min(1, math.Sqrt(a/(2*math.Pi))/(a-1-y)*math.Exp(a*(math.Log1p(u)-u)))
}

// minFreedom is the least ν+2 that there is a price for: below, the χ² law has an edge at 0 that
// the integrals do not see well.
const minFreedom = 10

// wishartLoss is what the price of one node is made of.
type wishartLoss struct {
	n, b, from float64 // degrees of freedom of χ; the largest ‖z‖²; the least χ' allowed
	logNorm    float64 // of the law, to be taken off its integrals
}

// cumulant is K(λ).
func (w wishartLoss) cumulant(lambda float64) float64 {
	nu := w.n - 2
	power := float64(lambda * nu)
	a := w.integral(0, func(x float64) float64 {
		return float64(lambda*w.b) - float64(power*math.Log1p(w.b/x))
	})
	b := w.integral(w.from, func(x float64) float64 {
		return -float64(lambda*w.b) - float64(power*math.Log1p(-w.b/x))
	})
	return (max(a, 0) + max(b, 0)) / 2
}

// integral is the logarithm of ∫ e^{g(x)} over the χ² law from this on, by Simpson's rule around
// where the integrand is large. g is monotone.
func (w wishartLoss) integral(from float64, g func(float64) float64) float64 {
	// its density over that at its mode n−2, since they are numbers beyond all digits
	// where n is large
	f := func(x float64) float64 {
		u := (x - (w.n - 2)) / (w.n - 2)
		return float64((w.n/2-1)*(math.Log1p(u)-u)) - w.logNorm + g(x)
	}
	// A grid finds where the integrand is more than e^{−45} of its top: all but a share of 1e-15
	// of the integral.
	// standard deviations; χ is below by as much with probability e^{−1800}
	far := 60 * math.Sqrt(2*w.n)
	lo, hi := max(from, 1e-9*w.n, w.n-far), w.n+far+250
	const grid = 200
	step := (hi - lo) / grid
	var y [grid + 1]float64
	top := math.Inf(-1)
	for i := range y {
		y[i] = f(lo + float64(step*float64(i)))
		top = max(top, y[i])
	}
	first, last := 0, grid
	for y[first] < top-45 {
		first++
	}
	for y[last] < top-45 {
		last--
	}
	if last == grid {
		return math.Inf(1) // it reaches beyond the grid, for a λ that is much too large
	}
	lo, hi = max(lo, lo+float64(step*float64(first-1))), lo+float64(step*float64(last+1))
	const panels = 150
	h, sum := (hi-lo)/(2*panels), 0.0
	for i := range 2*panels + 1 {
		z := math.Exp(f(lo+float64(h*float64(i))) - top)
		switch {
		case i == 0 || i == 2*panels:
			sum += z
		case i%2 == 1:
			sum += 4 * z
		default:
			sum += 2 * z
		}
	}
	return top + math.Log(float64(sum*h)/3)
}

// NewGramWishart meets the budget (ε,δ), or none, at the sources' Scale 2 with the fewest Degrees.
func NewGramWishart(b Budget, dim, horizon int) (GramWishart, error) {
	m := GramWishart{Scale: 2, Degrees: dim + 3, Dim: dim, Horizon: horizon, Delta: 0.5}
	if err := m.Validate(); err != nil {
		return GramWishart{}, err
	}
	approx, ok := b.(Approx)
	if _, none := b.(None); none {
		m.Scale = 0
		return m, nil
	}
	if !ok {
		return GramWishart{}, fmt.Errorf("noise of Wishart: budget is %v, must be epsilon and delta", b)
	}
	if err := approx.Validate(); err != nil {
		return GramWishart{}, fmt.Errorf("noise of Wishart: %w", err)
	}
	m.Delta = approx.Delta
	// ε falls about as 1/√Degrees, from what normal noise suggests. A thousandth more noise than
	// needed saves time.
	sigma, err := GaussianSigma(approx)
	if err != nil {
		return GramWishart{}, err
	}
	lo, hi := dim+2, maxDegrees
	for next := float64(dim) + 4*float64(m.levels())*float64(sigma*sigma); hi-lo > 1; {
		m.Degrees = int(min(max(next, float64(lo+1)), float64(hi-1)))
		e := m.epsilon()
		if e <= approx.Epsilon {
			hi = m.Degrees
			if e >= approx.Epsilon*0.999 {
				break
			}
		} else {
			lo = m.Degrees
		}
		ratio := min(e/approx.Epsilon, 4)
		next = float64(m.Degrees) * float64(ratio*ratio) * 1.0005
	}
	if hi == maxDegrees {
		return GramWishart{}, fmt.Errorf("noise of Wishart: budget is %v: it asks for 2^32 "+
			"degrees of freedom", b)
	}
	m.Degrees = hi
	return m, nil
}

// nodes is how many nodes the sum of the first t records is made of.
func (m GramWishart) nodes(t int) int { return bits.OnesCount(uint(t)) }

// Band is that of Scale·XᵀX, where X has n = Nodes·Degrees rows of independent normals: the
// singular values of its d columns are between √n ± (√d + √(2x)), each bound failing with
// probability at most e^{−x} (Davidson and Szarek 2001, Theorem II.13). The column is Scale·Xᵀy,
// with y ~ N(0,I_n) independent of X: given y it is N(0,‖y‖²I_d).
func (m GramWishart) Band(dim, t int, x float64) Band {
	nodes := m.nodes(t)
	if nodes == 0 {
		return Band{}
	}
	n, d, u := math.Sqrt(float64(nodes)*float64(m.Degrees)), math.Sqrt(float64(dim)), math.Sqrt(2*x)
	lo, hi := max(0, n-d-u), n+d+u
	return Band{Lo: m.Scale * float64(lo*lo), Hi: m.Scale * float64(hi*hi),
		Cross: m.Scale * float64((n+u)*(d+u))}
}

// Nodes are nearly normal: their order is what an auditor can tell.
func (m GramWishart) draws() Draws {
	return Draws{Law: NoiseGaussian, Scale: math.Sqrt(float64(m.Degrees)) * m.Scale, Shows: lastNode,
		Weights: func(to []int, t int) []int { return ones(to, m.nodes(t)) }}
}

func (m GramWishart) facts() facts { return facts{vector: true, longest: m.Horizon} }
func (m GramWishart) entry() Entry {
	return Entry{Sensitivity: 2 * math.Sqrt2, Scale: m.Scale, Norm: "Frobenius", Protects: jointly}
}

func (m GramWishart) String() string {
	return fmt.Sprintf("gram-wishart(scale=%s,degrees=%d,dim=%d,horizon=%d,delta=%s)",
		number(m.Scale), m.Degrees, m.Dim, m.Horizon, number(m.Delta))
}

func (m *GramWishart) fields() []field {
	return []field{{"scale", &m.Scale}, {"horizon", &m.Horizon}, {"dim", &m.Dim},
		{"degrees", &m.Degrees}, {"delta", &m.Delta}}
}

// MarshalJSON writes
// {"mechanism":"gram-wishart","scale":2,"horizon":1000,"dim":3,"degrees":500,"delta":1e-6}.
func (m GramWishart) MarshalJSON() ([]byte, error) { return encode(m.Kind(), m.fields()) }

func (m GramWishart) read(data []byte) (Mechanism, error) {
	err := decode(m.Kind(), data, m.fields())
	return m, err
}
