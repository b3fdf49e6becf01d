package audit

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"
)

// An Attack knows what the adversary knows before the game. Aim prepares it for one target. It is
// safe for use by several workers.
type Attack interface {
	Aim(target []float64) (Scorer, error)
}

// A Scorer scores an output: the higher, the more the target seems to be in. It changes nothing
// and keeps nothing.
type Scorer interface {
	Score(out []float64) float64
}

// linear scores Σ w_j·(out_j − origin_j) − offset.
type linear struct {
	w, origin []float64
	offset    float64
}

func (l linear) Score(out []float64) float64 {
	s := -l.offset
	for j, w := range l.w {
		s += float64(w * (out[j] - l.origin[j]))
	}
	return s
}

func sameDim(what string, got, want int) error {
	if got != want {
		return fmt.Errorf("audit: %w: %s has %d, not %d", ErrShape, what, got, want)
	}
	return nil
}

func checkRows(rows int) error {
	if rows < 2 {
		return fmt.Errorf("audit: Rows = %d points averaged, must be at least 2", rows)
	}
	return nil
}

// BernoulliLR is the exact likelihood ratio of the plain mean of Bernoulli data, (2.26): Σ z
// log(μ̂/μ) + (1−z) log((1−μ̂)/(1−μ)). It is −Inf where the mean shows that the target is not in.
// For the means of P estimated from reference points it is the attack of (2.27): see
// NewBernoulliReference.
type BernoulliLR struct{ P []float64 }

// NewBernoulliReference is the attack of (2.27), which estimates the means from reference
// points. A column of equal references would make the ratio infinite: estimates are kept in
// [1/(2n₀), 1 − 1/(2n₀)]. It needs (1+λ)/λ times as many samples for the power of BernoulliLR,
// where n₀ = λn [Azize 2024, §2.3.4].
func NewBernoulliReference(references [][]float64) (BernoulliLR, error) {
	d, err := checkReferences(references)
	if err != nil {
		return BernoulliLR{}, err
	}
	p := meanOf(references, d)
	edge := 0.5 / float64(len(references))
	for j := range p {
		p[j] = min(max(p[j], edge), 1-edge)
	}
	return BernoulliLR{p}, nil
}

// Aim implements Attack.
func (b BernoulliLR) Aim(target []float64) (Scorer, error) {
	if err := sameDim("the target", len(target), len(b.P)); err != nil {
		return nil, err
	}
	s := bernoulliScore{target: make([]bool, len(target))}
	for j, z := range target {
		if z != 0 && z != 1 {
			return nil, fmt.Errorf("audit: target[%d] is %v, must be 0 or 1 for the likelihood "+
				"ratio of Bernoulli data", j, z)
		}
		s.target[j] = z == 1
		if z == 1 {
			s.offset += math.Log(b.P[j])
		} else {
			s.offset += math.Log1p(-b.P[j])
		}
	}
	return s, nil
}

type bernoulliScore struct {
	target []bool
	offset float64
}

func (s bernoulliScore) Score(out []float64) float64 {
	// The logarithm of the product, in pieces that stay inside the doubles: a logarithm a column is
	// most of the cost.
	l, product := -s.offset, 1.0
	for j, m := range out {
		if !s.target[j] {
			m = 1 - m
		}
		if !(m > 0) {
			return math.Inf(-1)
		}
		if product *= m; product < 1e-200 {
			l += math.Log(product)
			product = 1
		}
	}
	return l + math.Log(product)
}

// NormalLR is the exact likelihood ratio of the mean of Rows points of Normal data, with or without
// Gaussian noise: N(μ, (σ²+γ²)/k) against N(((k−1)μ+z)/k, ((k−1)σ²/k + γ²)/k).
type NormalLR struct {
	Mu, Var, Noise []float64 // Noise may be nil
	Rows           int
}

// Aim implements Attack.
func (n NormalLR) Aim(target []float64) (Scorer, error) {
	if err := checkRows(n.Rows); err != nil {
		return nil, err
	}
	if err := sameDim("the target", len(target), len(n.Mu)); err != nil {
		return nil, err
	}
	if err := sameDim("Var", len(n.Var), len(n.Mu)); err != nil {
		return nil, err
	}
	k := float64(n.Rows)
	s := normalScore{make([]float64, len(target)), make([]float64, len(target)), n.Mu, 0}
	for j, z := range target {
		g2 := 0.0
		if n.Noise != nil {
			g2 = n.Noise[j] * n.Noise[j]
		}
		v0, v1 := (n.Var[j]+g2)/k, ((k-1)/k*n.Var[j]+g2)/k
		if !(v1 > 0) {
			return nil, fmt.Errorf("audit: %w: column %d has variance %v and noise %v", ErrSingular,
				j, n.Var[j], g2)
		}
		// With x = out − μ and δ = (z−μ)/k: x²/(2v₀) − (x−δ)²/(2v₁) + ½log(v₀/v₁).
		d := (z - n.Mu[j]) / k
		s.quadratic[j] = (1/v0 - 1/v1) / 2
		s.slope[j] = d / v1
		s.constant += math.Log(v0/v1)/2 - d*d/(2*v1)
	}
	return s, nil
}

type normalScore struct {
	quadratic, slope, mu []float64
	constant             float64
}

func (s normalScore) Score(out []float64) float64 {
	l := s.constant
	for j, o := range out {
		x := o - s.mu[j]
		l += float64(x * (float64(s.quadratic[j]*x) + s.slope[j]))
	}
	return l
}

// Sampled turns the likelihood ratio of a mean of k points into that of a mean of k of N points,
// drawn at random: log((1−ρ) + ρe^ℓ), ρ = k/N. It is increasing in ℓ, so the ROC curve is that of
// ℓ; the value is what the Bayes adversary compares with 0.
type Sampled struct {
	Attack Attack  // for the mean of k points
	Rate   float64 // ρ in (0, 1]
}

// Aim implements Attack.
func (s Sampled) Aim(target []float64) (Scorer, error) {
	if !(s.Rate > 0 && s.Rate <= 1) {
		return nil, fmt.Errorf("audit: Rate is %v, must be in (0, 1]", s.Rate)
	}
	inner, err := s.Attack.Aim(target)
	if err != nil {
		return nil, err
	}
	return sampledScore{inner, s.Rate}, nil
}

type sampledScore struct {
	inner Scorer
	rate  float64
}

func (s sampledScore) Score(out []float64) float64 {
	l := s.inner.Score(out)
	if l > 700 {
		return math.Log(s.rate) + l
	}
	return math.Log1p(s.rate * math.Expm1(l))
}

// Asymptotic is the likelihood ratio as n and d grow, (6.4), for independent columns:
// (z−μ)ᵀC⁻¹(μ̂−μ) − ‖z−μ‖²/(2k) in the norm of C⁻¹. With noise, C is the sum of both variances
// [Azize 2024, §6.5.1].
type Asymptotic struct {
	Mu, Var, Noise []float64 // Noise may be nil
	Rows           int       // k, the points averaged
}

// Aim implements Attack.
func (a Asymptotic) Aim(target []float64) (Scorer, error) {
	if err := checkRows(a.Rows); err != nil {
		return nil, err
	}
	if err := sameDim("the target", len(target), len(a.Mu)); err != nil {
		return nil, err
	}
	m, err := Leakage(a.Rows, target, a.Mu, a.Var, a.Noise)
	if err != nil {
		return nil, err
	}
	l := linear{make([]float64, len(target)), a.Mu, m / 2}
	for j, z := range target {
		v := a.Var[j]
		if a.Noise != nil {
			v += a.Noise[j] * a.Noise[j]
		}
		l.w[j] = (z - a.Mu[j]) / v
	}
	return l, nil
}

// ScalarProduct is the attack of Dwork et al.: (z − z_ref)ᵀμ̂ with a single reference point [Azize
// 2024, §2.3.5]. As it stands its mean depends on the target, so that one threshold for many
// targets is not its best use: it is meant for a fixed target.
type ScalarProduct struct{ Reference []float64 }

// Aim implements Attack.
func (s ScalarProduct) Aim(target []float64) (Scorer, error) {
	if err := sameDim("the target", len(target), len(s.Reference)); err != nil {
		return nil, err
	}
	l := linear{w: make([]float64, len(target)), origin: make([]float64, len(target))}
	for j, z := range target {
		l.w[j] = z - s.Reference[j]
	}
	return l, nil
}

// Misspecified aims at Target whatever the true target is [Azize 2024, §6.5.3].
type Misspecified struct {
	Attack Attack
	Target []float64
}

// Aim implements Attack.
func (m Misspecified) Aim(target []float64) (Scorer, error) {
	if err := sameDim("the true target", len(target), len(m.Target)); err != nil {
		return nil, err
	}
	return m.Attack.Aim(m.Target)
}

// Covariance is the empirical likelihood ratio with reference points, (6.5), which [Azize 2024,
// Chapter 7] uses on gradients (7.2): (z−μ̂₀)ᵀĈ₀⁻¹(μ̂−μ̂₀) − ‖z−μ̂₀‖²/(2k). The print has the
// uncentred second moment for Ĉ₀; this is the centred covariance.
type Covariance struct {
	mean      []float64
	chol      *mat.Cholesky
	lower     blas64.Triangular // its factor L, Ĉ₀ = LLᵀ
	rows      int
	shrinkage float64
}

// NewCovariance estimates mean and covariance from reference points, for an attack on the mean
// of this many rows.
//
// With shrink, the covariance is moved towards a multiple of the identity by Ledoit and Wolf's
// intensity (Journal of Multivariate Analysis 88, 2004), which is near 0 where there are many more
// references than dimensions. Shrinkage tells how far. If the estimate is singular even so (columns
// that are constant, or fewer references than dimensions whose intensity is 0), the intensity is
// raised until it is not. Without shrink, at least d+1 references are needed (ErrFewReferences), and
// a singular covariance is ErrSingular. References that are all equal are ErrSingular in both cases.
func NewCovariance(references [][]float64, rows int, shrink bool) (Covariance, error) {
	if err := checkRows(rows); err != nil {
		return Covariance{}, err
	}
	d, err := checkReferences(references)
	if err != nil {
		return Covariance{}, err
	}
	n := len(references)
	if !shrink && n <= d {
		return Covariance{}, fmt.Errorf("audit: %w: %d references in %d dimensions, at least %d "+
			"without shrinkage", ErrFewReferences, n, d, d+1)
	}
	c := Covariance{mean: meanOf(references, d), rows: rows}
	x := mat.NewDense(n, d, nil)
	for i, r := range references {
		for j, v := range r {
			x.Set(i, j, v-c.mean[j])
		}
	}
	var s mat.SymDense
	s.SymOuterK(1/float64(n), x.T())
	trace := mat.Trace(&s)
	scale := trace / float64(d)
	if !(scale > 0) {
		return Covariance{}, fmt.Errorf("audit: %w: all %d references are equal", ErrSingular, n)
	}
	if shrink {
		c.shrinkage = ledoitWolf(x, &s, scale)
	}
	for {
		t := mat.NewSymDense(d, nil)
		for i := range d {
			for j := i; j < d; j++ {
				v := s.At(i, j) * (1 - c.shrinkage)
				if i == j {
					v += scale * c.shrinkage
				}
				t.SetSym(i, j, v)
			}
		}
		c.chol = new(mat.Cholesky)
		// A condition number near 1/ε means that the last digits decide.
		if c.chol.Factorize(t) && c.chol.Cond() < 1e12 {
			var l mat.TriDense
			c.chol.LTo(&l)
			c.lower = l.RawTriangular()
			return c, nil
		}
		if !shrink {
			return Covariance{}, fmt.Errorf("audit: %w, of %d references in %d dimensions: "+
				"shrink it, or leave out columns that the others determine", ErrSingular, n, d)
		}
		c.shrinkage = min(1, max(1e-8, 4*c.shrinkage))
	}
}

// ledoitWolf is the intensity b²/d² of Ledoit and Wolf (2004), section 3.2, for centred rows x with
// covariance s and mean variance m.
func ledoitWolf(x *mat.Dense, s *mat.SymDense, m float64) float64 {
	n, d := x.Dims()
	var s2 float64 // ‖S‖²
	for i := range d {
		for j := range d {
			s2 += s.At(i, j) * s.At(i, j)
		}
	}
	distance := s2 - float64(d)*m*m // ‖S − mI‖²
	var b float64                   // Σ ‖x xᵀ − S‖² = Σ ‖x‖⁴ − n‖S‖²
	for i := range n {
		norm := mat.Dot(x.RowView(i), x.RowView(i))
		b += norm * norm
	}
	b = (b - float64(n)*s2) / float64(n*n)
	if !(distance > 0) {
		return 1
	}
	return min(1, max(0, b)/distance)
}

// Shrinkage is the weight of the identity in the covariance in use: 0 is none, 1 all.
func (c Covariance) Shrinkage() float64 { return c.shrinkage }

// Note says in a sentence that the covariance was shrunk, for a report. It is empty if it was not.
func (c Covariance) Note() string {
	if c.shrinkage == 0 {
		return ""
	}
	return fmt.Sprintf("The covariance of the references was shrunk: weight %.3g on a multiple "+
		"of the identity.", c.shrinkage)
}

// Aim implements Attack.
func (c Covariance) Aim(target []float64) (Scorer, error) {
	if err := sameDim("the target", len(target), len(c.mean)); err != nil {
		return nil, err
	}
	diff := mat.NewVecDense(len(target), nil)
	for j, z := range target {
		diff.SetVec(j, z-c.mean[j])
	}
	w := mat.NewVecDense(len(target), nil)
	if err := c.chol.SolveVecTo(w, diff); err != nil {
		return nil, fmt.Errorf("audit: %w: %w", ErrSingular, err)
	}
	return linear{w.RawVector().Data, c.mean, mat.Dot(w, diff) / (2 * float64(c.rows))}, nil
}

// Mahalanobis is the leakage score ‖z−μ̂₀‖²/k in the norm of Ĉ₀⁻¹ as the references see it: the
// higher, the easier the target ([Azize 2024, Theorem 6.3]; a canary is chosen by it).
func (c Covariance) Mahalanobis(target []float64) (float64, error) {
	s, err := c.Aim(target)
	if err != nil {
		return 0, err
	}
	return 2 * s.(linear).offset, nil
}

// GLiR is the gradient likelihood ratio attack of Leemann, Pawelczyk and Kasneci (2023) [Azize
// 2024, §7.1.2]: the probability that a mean without the target lies as near to the target as this
// one does, S = (k−1)·‖μ̂−z‖² against a non-central χ²_d, in the norm of Ĉ₀⁻¹.
//
// [Azize 2024] prints F⁻¹(S), which has no meaning for a distance, and K without its square. If the
// points are Gaussian, k‖μ̂−z‖² is χ²_d(k‖μ−z‖²) without the target: this is the logarithm of that
// law's F, with the print's factor k−1 in S, and its sign is turned so that a high score says "in".
type GLiR struct{ Covariance }

// Aim implements Attack.
func (g GLiR) Aim(target []float64) (Scorer, error) {
	k, err := g.Mahalanobis(target)
	if err != nil {
		return nil, err
	}
	rows := float64(g.rows)
	// Mahalanobis divides by the rows; the law's non-centrality multiplies by them.
	return glirScore{g.Covariance, target, k * rows * rows}, nil
}

type glirScore struct {
	c             Covariance
	target        []float64
	noncentrality float64
}

func (s glirScore) Score(out []float64) float64 {
	// ‖μ̂−z‖² is the squared length of L⁻¹(μ̂−z), by forward substitution.
	l, d := s.c.lower, len(s.target)
	y := make([]float64, d)
	var norm float64
	for i := range d {
		row := l.Data[i*l.Stride : i*l.Stride+i+1]
		v := out[i] - s.target[i]
		for j, r := range row[:i] {
			v -= float64(r * y[j])
		}
		y[i] = v / row[i]
		norm += float64(y[i] * y[i])
	}
	return -logNoncentralCDF(float64(s.c.rows-1)*norm, float64(d), s.noncentrality)
}

// logNoncentralCDF is log F(x) of the non-central χ² law with d degrees of freedom and non-centrality
// c, by Lugannani and Rice's saddlepoint formula: its relative error is below 5 %, and below 1.5 %
// for d ≥ 5, and it goes on far out in the lower tail, where F is below the doubles.
func logNoncentralCDF(x, d, c float64) float64 {
	if x <= 0 {
		return math.Inf(-1)
	}
	// K(s) = −(d/2)log(1−2s) + cs/(1−2s). K′(s) = x is quadratic in u = 1/(1−2s): cu² + du − x = 0.
	u := 2 * x / (d + math.Sqrt(d*d+4*c*x))
	s := (1 - 1/u) / 2
	k := d/2*math.Log(u) + c*s*u
	k2 := 2*d*u*u + 4*c*u*u*u
	w := math.Copysign(math.Sqrt(max(0, 2*(s*x-k))), s)
	v := s * math.Sqrt(k2)
	if math.Abs(w) < 1e-4 {
		// F(mean) = ½ + K‴(0)/(6√(2π) K″(0)^{3/2}), and the slope of Φ around it.
		k3 := 8*d + 24*c
		return math.Log(0.5 + k3/(6*math.Sqrt(2*math.Pi)*math.Pow(2*d+4*c, 1.5)) + w/math.Sqrt(2*math.Pi))
	}
	if w > -30 {
		f := phi(w) + math.Exp(-w*w/2)/math.Sqrt(2*math.Pi)*(1/w-1/v)
		return math.Log(min(1, max(f, 5e-324)))
	}
	// Φ(w) = φ(w)(−1/w + 1/w³ − …): the first term cancels 1/w.
	return -w*w/2 - math.Log(2*math.Pi)/2 + math.Log(-1/v+1/(w*w*w))
}

func checkReferences(references [][]float64) (int, error) {
	if len(references) < 2 {
		return 0, fmt.Errorf("audit: %w: %d references, must be at least 2", ErrFewReferences,
			len(references))
	}
	d := len(references[0])
	if d == 0 {
		return 0, fmt.Errorf("audit: references of no dimensions, must be at least 1")
	}
	for i, r := range references {
		if err := sameDim(fmt.Sprintf("reference %d", i), len(r), d); err != nil {
			return 0, err
		}
		for j, v := range r {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return 0, fmt.Errorf("audit: reference %d, column %d is %v, must be finite", i, j, v)
			}
		}
	}
	return d, nil
}

func meanOf(points [][]float64, d int) []float64 {
	m := make([]float64, d)
	for _, p := range points {
		for j, v := range p {
			m[j] += v
		}
	}
	for j := range m {
		m[j] /= float64(len(points))
	}
	return m
}
