package linear

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/sotto-dp/sotto/privacy"
)

// JDPGreedy plays the best estimate from disjoint segments under joint differential privacy: contexts and
// rewards are both private, as LinUCB says. Each record is in one release, of its segment's Σ aaᵀ and Σ a·r
// (privacy.GramGaussian), where it is in some ten nodes of LinUCB's tree. What is played needs no bonus where
// contexts are diverse: whatever is greedy then explores. A public test of what was released says where they
// are not; from there on LinUCB's tree goes on, begun from the segments' releases.
//
// # Segments
//
// A segment ends by the number of decisions alone: after First of them, then whenever their number has grown
// by Growth, and at all multiples of Leaf (End). What a
// segment's release does with a record it does once. So all choices of others are post-processing of
// disjoint releases and of what is theirs: joint DP at the cost of one release (the billboard lemma; Hsu et
// al. 2014). Which mechanism has a segment's records follows from the releases before it; all records of a
// segment are in the same, and none is in both.
//
// # Estimate
//
// After s segments of n_j records, N in all, with weights 0 ≤ ω_j ≤ 1 that are public: G̃ = Σω_jG̃_j,
// b̃ = Σω_jb̃_j, Ω² = Σω_j², N_ω = Σω_jn_j. It plays argmax ⟨θ̂,a⟩ of θ̂ = (G̃₊ + λI)⁻¹b̃, G̃₊ without the
// eigenvalues below 0, λ = max(1, σΩ√d). ω_j = n_j/(n_j + 4dσ²): in no direction a release can have less
// noise for its signal than at n_j/d a direction, its noise e − Eθ there has a variance of at most 2σ², that of
// rewards is ½, and precisions add up.
//
// # Certificate
//
// Theorem. If E[r|a, past] = ⟨θ,a⟩, ‖θ‖ ≤ 1, with probability at least 1−α, for all s and in any contexts,
// ‖θ̂ − θ‖ ≤ e_s (Estimate), so that a round of segment s+1 loses 2e_s at most:
//
//	e_s = √(1 + (2B−λ)₊/h)·√((2ℓ + d log(1 + N/(dB)))/h) + (Y + B + B₋ + λ)/h,
//
// h the smallest eigenvalue of G̃₊ + λI, B₋ = (−λ_min(G̃))₊, ℓ = log(4s(s+1)/α), B = max(1, σΩ(√(2d) + √(2ℓ)))
// and Y = σΩ(√d + √(2ℓ)) for continuous noise (GramGaussian.Band).
//
// Proof. E = G̃ − G has |E| ≤ B and the noise e in b̃ has ‖e‖ ≤ Y, but with 3e^{−ℓ}. S = Σω_jηa: V = Σω_jaaᵀ + BI
// ⪰ Σω_j²aaᵀ + BI, so that ‖S‖ in V⁻¹ is at most √(2ℓ + d log(1 + N/(dB))), but with e^{−ℓ}
// (Abbasi-Yadkori, Pál and Szepesvári 2011, Theorem 1). Over all s these add up to α. H = G̃₊ + λI has
// V ⪯ G̃ + 2BI ⪯ H + (2B−λ)I ⪯ (1 + (2B−λ)₊/h)H, so ‖H⁻¹S‖ ≤ h^{−½}‖S‖_{H⁻¹} ≤ the first term. The rest of
// θ̂ − θ is H⁻¹(e − (G̃₊ − G)θ − λθ), with ‖G̃₊ − G̃‖ = B₋. ∎
// (With λ = 2B it is √(·/h) + (Y + 3B)/h; h is then never below B.)
//
// # Diversity
//
// If contexts are independent, of one law, and λ_min(E[a_ϑa_ϑᵀ]) ≥ κ for what is greedy for any ϑ, then
// λ_min(Σaaᵀ) ≥ κN/2 but with probability d·e^{−κN/8} (Tropp 2012, Theorem 1.1, for adapted sums as in
// Tropp 2011, Theorem 3.1), and the regret is
//
//	2N₀ + O(√(T(log(T/α) + d log T)/κ)) + O((σ/κ)·log T·√(L(d + log(T/α)))),
//
// L segments: the price of privacy is the last term, of √T/Leaf at most, and polylogarithmic where Leaf grows
// with T. (Fan Chen, Jiachun Li, Alexander Rakhlin and David Simchi-Levi, arXiv 2502.13115, have √T + 1/ε by
// information-weighted regression for contexts of any law. New here beyond it: the exact sensitivity of what
// is released, a certificate for any contexts that follows from releases alone, and a test with a fallback.)
//
// Test. Let κ₀ = Diversity/d. At the first N from which on all segments are of Leaf, and that is at least
// (8/κ₀)log(d·L/α), and at all later ones, it fails if λ_min(ΣG̃_j) + B < κ₀N/2, weights of 1. Under κ ≥ κ₀ it never fails but with
// probability 2α. Whatever the contexts are, where it has not failed λ_min(ΣG_j) ≥ κ₀N/2 − 2B with
// probability 1−α: from N ≥ 8B/κ₀ on that is κ₀N/4, and the certificate shrinks as fast as under diversity.
// A test that asks λ_min(ΣG̃_j) − B ≥ κ₀N/4 proves no more, and could not begin before 8B/κ₀: one that fails
// for want of records would give up greedy for nothing. Of a failure all regret before it is within 2N;
// from there on it is LinUCB's on later records, on V with the segments' releases in it.
type JDPGreedy struct {
	dim, horizon int
	o            JDPGreedyOptions
	budget       privacy.Budget
	m            privacy.GramGaussian
	first        int // from how many rounds on the test is made

	t, cut int // rounds played, and of the segments that are full
	rounds int // released
	count  int // segments released

	weighed, plain sums
	theta          []float64
	radius, bias   float64 // e_s, and what a norm of the model of 1 more adds to it
	tree           *LinUCB // the fallback, once the test has failed
}

// sums are what was released, of weighted segments.
type sums struct {
	gram   *mat.SymDense
	b      []float64
	square float64 // Σω²
}

func (s *sums) add(released privacy.ReleasedVector, weight float64) {
	at, d := 0, len(s.b)
	for i := range d {
		for j := i; j < d; j++ {
			s.gram.SetSym(i, j, s.gram.At(i, j)+float64(weight*released.At(at+j-i)))
		}
		s.b[i] += float64(weight * released.At(at+d-i))
		at += d + 1 - i
	}
	s.square += float64(weight * weight)
}

// JDPGreedyOptions are the parameters of JDPGreedy.
type JDPGreedyOptions struct {
	Risk   float64 // α from 1e-300 to below 1, that the certificate, the test and LinUCB's sets fail
	First  int     // rounds of the first segment, at least 1, if Leaf is not below
	Growth float64 // of the rounds at a segment's end, from 1.01 to 100
	// Leaf is the most rounds of a segment, at least 1, and how many a leaf of LinUCB's tree has; the
	// horizon where that is less.
	Leaf int
	// Diversity, from 0 to 1, is d·κ₀: what is played is held to be diverse where each direction has
	// this share of an even one. 0 is no test and no fallback.
	Diversity float64
	Greed     float64 // of the fallback, as LinUCBOptions has it
	// Step is release.ExactStep on the curator of real records, 0 on one of simulated ones.
	Step float64
}

// NewJDPGreedy returns JDPGreedy for actions in ℝ^d, a horizon of at least one round, and a budget: ZCDP,
// Approx or Renyi, or None for greedy in batches.
func NewJDPGreedy(dim, horizon int, b privacy.Budget, o JDPGreedyOptions) (*JDPGreedy, error) {
	if err := o.check(dim, horizon); err != nil {
		return nil, fmt.Errorf("jdp-greedy: %w", err)
	}
	o.Leaf = min(o.Leaf, horizon)
	m, err := privacy.NewGramGaussian(b)
	if err != nil {
		return nil, fmt.Errorf("jdp-greedy: %w", err)
	}
	if !(m.Sigma <= 1e100) {
		return nil, fmt.Errorf("jdp-greedy: budget is %v: its noise has left the numbers", b)
	}
	p := &JDPGreedy{dim: dim, horizon: horizon, o: o, budget: b, m: m, first: math.MaxInt,
		weighed: newSums(dim), plain: newSums(dim), theta: make([]float64, dim), radius: 1, bias: 1}
	if o.Diversity > 0 {
		d := float64(dim)
		most := float64(horizon)/float64(o.Leaf) + math.Log(float64(horizon))/math.Log(o.Growth) + 2
		if n := float64(8*d/o.Diversity) * math.Log(float64(d*most)/o.Risk); n < float64(horizon) {
			p.first = int(n) + 1
		}
		if _, err := p.fallback(horizon); err != nil {
			return nil, fmt.Errorf("jdp-greedy: %w", err)
		}
	}
	return p, nil
}

func newSums(dim int) sums { return sums{gram: mat.NewSymDense(dim, nil), b: make([]float64, dim)} }

func (o JDPGreedyOptions) check(dim, horizon int) error {
	switch {
	case dim < 1 || dim > maxDim:
		return fmt.Errorf("dim is %d, must be between 1 and %d", dim, maxDim)
	case horizon < 1 || horizon > math.MaxInt/4:
		return fmt.Errorf("horizon is %d, must be from 1 to %d", horizon, math.MaxInt/4)
	case !(o.Risk >= minRisk && o.Risk < 1):
		return fmt.Errorf("risk is %v, must be at least %v and below 1", o.Risk, minRisk)
	case o.First < 1:
		return fmt.Errorf("first is %d, must be at least 1", o.First)
	case !(o.Growth >= 1.01 && o.Growth <= 100):
		return fmt.Errorf("growth is %v, must be from 1.01 to 100", o.Growth)
	case o.Leaf < 1:
		return fmt.Errorf("leaf is %d, must be at least 1", o.Leaf)
	case !(o.Diversity >= 0 && o.Diversity <= 1):
		return fmt.Errorf("diversity is %v, must be from 0 to 1", o.Diversity)
	case !(o.Greed >= 0 && o.Greed <= 1):
		return fmt.Errorf("greed is %v, must be between 0 and 1", o.Greed)
	case !(o.Step >= 0 && o.Step <= 1):
		return fmt.Errorf("step is %v, must be between 0 and 1", o.Step)
	}
	return nil
}

// fallback is LinUCB for so many rounds, begun from all that was released. When it begins follows from the noise that its
// bounds are about, so those of each segment s at which it might have their own risk, α/(s(s+1)): they add up to α.
func (p *JDPGreedy) fallback(rounds int) (*LinUCB, error) {
	s := float64(max(1, p.count))
	o := LinUCBOptions{Risk: max(minRisk, p.o.Risk/float64(s*(s+1))), Lambda: 1, Noise: GramTree, Step: p.o.Step, Leaf: p.o.Leaf,
		Greed: p.o.Greed}
	if p.o.Leaf == 1 {
		o.Leaf = 0
	}
	return newLinUCB(p.dim, rounds, p.budget, o, func(x float64) begun {
		return begun{p.plain, p.rounds, p.m.Band(p.dim, p.rounds, p.plain.square, x, p.o.Step)}
	})
}

// End is how many rounds there are when the segment ends that begins after n.
func (p *JDPGreedy) End(n int) int {
	if first := min(p.o.First, p.o.Leaf); n < first {
		return first
	}
	more := max(1, int(min(math.Ceil(float64(n)*(p.o.Growth-1)), float64(p.o.Leaf))))
	if next := (n/p.o.Leaf + 1) * p.o.Leaf; n+more+more/2 >= next {
		return next // what would be left is too short
	}
	return n + more
}

// Whole says why so many rounds cannot be all that are played live, where each is in a release.
func (p *JDPGreedy) Whole(rounds int) error {
	if rounds < 1 || rounds > p.horizon || rounds%p.o.Leaf != 0 {
		return fmt.Errorf("horizon is %d, must be a multiple of leaf, %d, up to %d", rounds, p.o.Leaf, p.horizon)
	}
	return nil
}

// Outweighs is after how many rounds, at the end of a segment, what was played is twice the estimate's λ where
// it is spread over all components: infinite if not in a million segments.
func (p *JDPGreedy) Outweighs() float64 {
	d := float64(p.dim)
	for n, s := p.End(0), 1.0; s <= 1e6 && n <= math.MaxInt/4; n, s = p.End(n), s+1 {
		if float64(n) >= 2*d*max(1, float64(p.m.Sigma*math.Sqrt(float64(d*s)))) {
			return float64(n)
		}
	}
	return math.Inf(1)
}

// Mechanism is that of the segment that is released next.
func (p *JDPGreedy) Mechanism() privacy.Mechanism {
	if p.tree != nil {
		return p.tree.Mechanism()
	}
	return p.m
}

// Slots is 1: a segment is released and emptied before the next, or all later ones are in one tree.
func (p *JDPGreedy) Slots() int { return 1 }

// Dim is d.
func (p *JDPGreedy) Dim() int { return p.dim }

// Due is 0 when a segment is full.
func (p *JDPGreedy) Due() int {
	if p.t >= p.End(p.cut) {
		return 0
	}
	return -1
}

// Learn takes a segment's release, or the tree's.
func (p *JDPGreedy) Learn(released privacy.ReleasedVector) {
	if p.Due() >= 0 {
		p.Cut()
	}
	if p.tree != nil {
		p.tree.Learn(released)
		return
	}
	if released.Len() != p.dim*(p.dim+3)/2 {
		return
	}
	n := float64(released.N())
	p.weighed.add(released, n/(n+float64(4*float64(p.dim)*float64(p.m.Sigma*p.m.Sigma))))
	p.plain.add(released, 1)
	p.rounds += released.N()
	p.count++
	p.estimate()
	leaves := p.rounds%p.o.Leaf == 0 && p.End(p.rounds) == p.rounds+p.o.Leaf // from here on
	if p.rounds < p.first || !leaves || p.horizon-p.rounds < p.o.Leaf || !p.narrow() {
		return
	}
	if tree, err := p.fallback(p.horizon - p.rounds); err == nil {
		p.tree = tree
	}
}

// log is ℓ.
func (p *JDPGreedy) log() float64 {
	s := float64(p.count)
	return math.Log(4) + math.Log(s) + math.Log1p(s) - math.Log(p.o.Risk)
}

// narrow says that what was played is proved not to have been diverse.
func (p *JDPGreedy) narrow() bool {
	var e mat.EigenSym
	if !e.Factorize(p.plain.gram, false) {
		return false
	}
	b := p.m.Band(p.dim, p.rounds, p.plain.square, p.log(), p.o.Step).Hi
	least := e.Values(nil)[0]
	return least+b < p.o.Diversity/float64(p.dim)*float64(p.rounds)/2
}

// estimate makes θ̂ and its certificate.
func (p *JDPGreedy) estimate() {
	var e mat.EigenSym
	if !e.Factorize(p.weighed.gram, true) {
		return
	}
	var q mat.Dense
	e.VectorsTo(&q)
	values, d := e.Values(nil), float64(p.dim)
	lambda := max(1, float64(p.m.Sigma*math.Sqrt(float64(d*p.weighed.square))))
	clear(p.theta)
	for k, y := range values {
		var c float64
		for i, x := range p.weighed.b {
			c += float64(q.At(i, k) * x)
		}
		c /= max(0, y) + lambda
		for i := range p.theta {
			p.theta[i] += float64(c * q.At(i, k))
		}
	}
	l := p.log()
	band := p.m.Band(p.dim, p.rounds, p.weighed.square, l, p.o.Step)
	b, n := max(1, band.Hi), float64(p.rounds)
	h := max(0, values[0]) + lambda
	more := math.Sqrt(1 + max(0, 2*b-lambda)/h)
	p.bias = (b + max(0, -values[0]) + lambda) / h
	p.radius = float64(more*math.Sqrt((2*l+float64(d*math.Log1p(n/float64(d*b))))/h)) +
		(band.Cross+b+max(0, -values[0])+lambda)/h
}

// Choose plays the action of the best estimate, or LinUCB's.
func (p *JDPGreedy) Choose(actions []float64) Choice {
	best := p.Best(actions)
	p.t++
	return Choice{Action: best}
}

// Best is the action that Choose plays. It changes nothing.
func (p *JDPGreedy) Best(actions []float64) int {
	if p.tree != nil {
		return p.tree.Best(actions)
	}
	best, top := 0, math.Inf(-1)
	for i := 0; len(actions) >= p.dim; i++ {
		var score float64
		for j, x := range actions[:p.dim] {
			score += float64(p.theta[j] * x)
		}
		if score > top {
			best, top = i, score
		}
		actions = actions[p.dim:]
	}
	return best
}

// Play counts a round in which this vector was played, whoever chose it. Nothing of the vector is kept.
func (p *JDPGreedy) Play([]float64) { p.t++ }

// Cut ends the segment that is full. Nothing of it is known but its length: the result is nil.
func (p *JDPGreedy) Cut() []int64 {
	p.cut = p.t
	return nil
}

// Skip is Play of all the rounds of a segment, for one that is brought back to where it was. gram is what Cut
// has returned, nil.
func (p *JDPGreedy) Skip(n int, gram []int64) error {
	want := p.End(p.cut) - p.cut
	switch {
	case p.t > p.cut:
		return fmt.Errorf("jdp-greedy: the segment has %d rounds, must have none", p.t-p.cut)
	case n != want || len(gram) > 0:
		return fmt.Errorf("jdp-greedy: a segment has %d rounds and %d sums, must have %d and none", n, len(gram),
			want)
	}
	p.t += n
	return nil
}

// Estimate is the estimate of θ at the last release, the caller's to keep, and how far it may be off in ℓ2,
// with probability 1−α at all releases; of the fallback as LinUCB has it.
func (p *JDPGreedy) Estimate() (theta []float64, radius float64) {
	if p.tree != nil {
		return p.tree.Estimate()
	}
	return slices.Clone(p.theta), p.radius
}

// Fallback says that the test has failed: LinUCB plays, and its tree has all records from the first of the
// segments on that are not released.
func (p *JDPGreedy) Fallback() bool { return p.tree != nil }

var _ Contextual = (*JDPGreedy)(nil)
