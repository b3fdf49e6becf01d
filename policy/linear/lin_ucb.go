package linear

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/sotto-dp/sotto/privacy"
)

// LinUCB is optimism on an ellipsoid under joint differential privacy: contexts and rewards are
// both private (Shariff and Sheffet 2018, Algorithms 1 and 2; [Azize and Basu 2024, Appendix B-D]
// has the definitions). After t rounds it knows the noisy Gram matrix of [a;r], whose blocks are
// G_t + N_t and u_t + h_t, with G_t = Σ aaᵀ and u_t = Σ a·r. In each round it plays
//
//	argmax_a ⟨θ̃_t, a⟩ + β_t‖a‖_{V_t⁻¹},   θ̃_t = V_t⁻¹(u_t + h_t),   V_t = G_t + N_t + c_t·I.
//
// Guarantee: the budget as joint DP. A record is the vector that was played and its reward; replace
// a round's context and reward by others, and what is played in all other rounds together is as
// good as unchanged. What is played in the round itself is not protected: Choose looks at the
// round's decision set as it is, so that its choice is no post-processing of releases. (A policy
// whose every choice hides its own context has linear regret: their Claim 13.) What a later choice
// knows of this round went through the curator.
//
// The shift c_t = ρ_min − Lo_t, where the eigenvalues of N_t are from Lo_t to Hi_t (privacy.Band),
// makes those of H_t = N_t + c_t·I lie from ρ_min to ρ_max = ρ_min + Hi_t − Lo_t: their changing
// regulariser. ρ_min is Υ, half the widest band, or λ where that is more; with Υ alone it is theirs
// for normal noise (ρ_min = Υ, ρ_max = 3Υ). If V_t is not positive definite all the same, its
// eigenvalues below ρ_min become ρ_min: post-processing.
//
// Confidence: if ‖θ*‖ ≤ 1 and rewards are 1-subgaussian given what was played, ‖θ* − θ̃_t‖_{V_t} ≤
// β_t in all rounds with probability at least 1−α, with (their Proposition 4)
//
//	β_t = √(2 log(2/α) + log(det V_t/ρ_min^d)) + √ρ_max + γ,   γ = Cross_t/√ρ_min ≥ ‖h_t‖_{H_t⁻¹},
//
// log(det V_t/ρ_min^d) or d log(1 + t/(dρ_min)), whichever is less: where H_t is within its band
// both are at least log det(I + G_t/ρ_min), which is all that the proof needs. Half of α is for the
// rewards, half for the bands of all T rounds, four events each. Regret: Õ(d√T + d^{3/4}√(T/ε)) for
// normal noise (their §4).
//
// At budget None there is no noise: LinUCB, or OFUL, with ridge λ.
//
// Batches. With Leaf m there is a release after every m rounds, of whole batches, through
// privacy.GramTree with leaves of m records: a record is in ⌊log₂(T/m)⌋+1 nodes, and noise is that
// of a horizon T/m. When there is a release is known from the number of rounds alone. Releases may
// also come late, as Play and Learn have it: a batch is released when the rewards of all its rounds
// have come or been given up, and batches are in order, so that what is released is always that of
// the first n rounds. Then t above is n, the rounds of the last release, and nothing of it changes:
// a_s is a function of what was known before r_s (contexts, and noisy matrices of rounds before s),
// so that Σ_{s≤n} a_s η_s, n = 1, 2, …, is one martingale, whenever it is looked at; Proposition 4
// holds for it at all n at once, with the ρ_min that is the same for all of them, and a choice uses
// V_n ⪰ G_n + ρ_min·I with the β_n of the same n.
//
// What waiting costs: let D be the largest number of rounds that a choice does not know yet, m − 1
// without delay. A round is slow if det(G_t + ρ_min·I) is more than twice det(G_n + ρ_min·I). In
// others ‖a‖ in V_n⁻¹ is at most √2 times that in (G_t + ρ_min·I)⁻¹. Of slow rounds there are at
// most D·d·log₂(1 + T/(dρ_min)): the first slow round begins D rounds, from the next slow one after
// them on there are D more, and so on; the determinant has more than doubled in the D rounds before
// each such beginning, which have no round in common. A slow round costs 2 at most.
type LinUCB struct {
	dim       int
	o         LinUCBOptions
	mechanism privacy.Mechanism
	bands     []privacy.Band // by number of nodes, or one for all; none without noise
	low       float64        // ρ_min
	from      begun

	now *factor
	u   []float64
	t   int // rounds played
	cut int // rounds of the batches that are full

	logDet float64 // of V_τ
	theta  []float64
	radius float64
	bias   float64   // √ρ_max, the part of the radius that is the norm's
	w      []float64 // ‖Wa‖₂ = ‖a‖_{V_τ⁻¹}
	v      []float64 // V_τ
	counts int       // updates
	clips  int
}

// A GramNoise is the mechanism that hides LinUCB's running Gram matrix.
type GramNoise int

const (
	// privacy.GramBLT, normal noise correlated over rounds: the least of it
	GramBLT  GramNoise = iota
	GramTree           // privacy.GramTree, normal noise on the nodes of a binary tree
	// privacy.GramWishart, Wishart noise on the nodes of a binary tree: for (ε,δ) only
	GramWishart
)

// LinUCBOptions are the parameters of LinUCB.
type LinUCBOptions struct {
	Risk float64 // α from 1e-300 to below 1, the probability that a confidence set fails
	// Lambda is λ, the least regulariser, from 1e-12 to 1e12: ρ_min is λ, or the bound Υ on the
	// noise where that is more. At budget None it is the ridge parameter.
	Lambda float64
	Noise  GramNoise // not used at budget None
	// C is from 0 to 1e6: a new estimate when the noisy det V has grown by more than 1+C. 0 is
	// one every round, as in the source. What V is made of is released in every round anyway; it
	// costs nothing more.
	C float64
	// Step is release.ExactStep on the curator of real records, release.RealFeatures, which rounds
	// to multiples of it and takes Noise GramTree only: the bands allow for both. 0 on a curator of
	// simulated ones.
	Step float64
	// Leaf is m, how many rounds there are between two releases: 0 is 1, above it needs noise
	// GramTree, and is at most the horizon.
	Leaf int
	// Greed, from 0 to 1, is the share of β_t that choices leave out, as OFULOptions has it.
	Greed float64
}

// A begun is what is known of n rounds before the first, from releases of their own: their Gram matrix and
// Σ a·r, and what bounds the noise in them. Then V_t = G_t + N_t + c_t·I above is of all rounds, N_t of both
// noises, and bands add up. All that the proof asks of N_t is its band.
type begun struct {
	sums
	n    int
	band privacy.Band
}

// NewLinUCB returns LinUCB for actions in ℝ^d, a horizon of at least one round, and a budget: ZCDP,
// Approx or Renyi (Approx alone with GramWishart), or None for LinUCB without privacy.
func NewLinUCB(dim, horizon int, b privacy.Budget, o LinUCBOptions) (*LinUCB, error) {
	return newLinUCB(dim, horizon, b, o, nil)
}

// newLinUCB is NewLinUCB after rounds that were released, whose band is what fails with e^{−x} at most.
func newLinUCB(dim, horizon int, b privacy.Budget, o LinUCBOptions, from func(x float64) begun) (*LinUCB,
	error) {
	if err := o.check(dim, horizon); err != nil {
		return nil, fmt.Errorf("lin-ucb: %w", err)
	}
	m, err := o.mechanism(dim, horizon, b)
	if err != nil {
		return nil, fmt.Errorf("lin-ucb: %w", err)
	}
	p := &LinUCB{dim: dim, o: o, mechanism: m, low: o.Lambda}
	if from != nil { // one more band, of a risk as that of each other
		p.from = from(math.Log(float64(horizon/max(1, o.Leaf)+1)) - math.Log(o.Risk) + math.Log(8))
		p.low = max(p.low, (p.from.band.Hi-p.from.band.Lo)/2)
	}
	if _, none := b.(privacy.None); !none || o.Step > 0 {
		leaf := max(1, o.Leaf)
		leaves := horizon / leaf // as many releases
		bands := leaves
		if from != nil {
			bands++
		}
		x := math.Log(float64(bands)) - math.Log(o.Risk) + math.Log(8)
		last := bits.Len(uint(leaves))
		band := func(k int) privacy.Band { return m.Band(dim, (1<<(k+1)-1)*leaf, x) }
		if tree, ok := m.(privacy.GramTree); ok && o.Step > 0 {
			// of k+1 nodes, and of as many records as such a number of leaves can have
			band = func(k int) privacy.Band {
				return tree.GridBand(dim, (1<<(k+1)-1)<<(last-1-k)*leaf, x, o.Step)
			}
		} else if o.Noise == GramBLT {
			last = 1 // the same for all
		}
		for k := range last {
			band := band(k)
			band.Lo += p.from.band.Lo
			band.Hi += p.from.band.Hi
			band.Cross += p.from.band.Cross
			p.bands = append(p.bands, band)
			p.low = max(p.low, (band.Hi-band.Lo)/2)
		}
		if !(p.low <= math.MaxFloat64/8) {
			return nil, fmt.Errorf("lin-ucb: budget is %v: its noise has left the numbers", b)
		}
	}
	p.now = newFactor(dim, p.low)
	p.u, p.theta = make([]float64, dim), make([]float64, dim)
	p.w, p.v = make([]float64, len(p.now.v)), make([]float64, len(p.now.v))
	p.logDet = p.now.logDet()
	if from != nil {
		p.logDet, _ = p.take(0, func(int) float64 { return 0 })
	}
	p.estimate(0)
	p.counts = 0
	return p, nil
}

func (o LinUCBOptions) check(dim, horizon int) error {
	switch {
	case dim < 1 || dim > maxDim:
		return fmt.Errorf("dim is %d, must be between 1 and %d", dim, maxDim)
	case horizon < 1:
		return fmt.Errorf("horizon is %d, must be at least 1", horizon)
	case !(o.Lambda >= minLambda && o.Lambda <= maxLambda):
		return fmt.Errorf("lambda is %v, must be between %v and %v", o.Lambda, minLambda, maxLambda)
	case !(o.Risk >= minRisk && o.Risk < 1):
		return fmt.Errorf("risk is %v, must be at least %v and below 1", o.Risk, minRisk)
	case !(o.C >= 0 && o.C <= 1e6):
		return fmt.Errorf("c is %v, must be between 0 and 1e6", o.C)
	case o.Noise < GramBLT || o.Noise > GramWishart:
		return fmt.Errorf("noise is %d, must be GramBLT, GramTree or GramWishart", o.Noise)
	case !(o.Step >= 0 && o.Step <= 1):
		return fmt.Errorf("step is %v, must be between 0 and 1", o.Step)
	case o.Step > 0 && o.Noise != GramTree:
		return errors.New("noise is not GramTree, must be for real records: " +
			"that of the others cannot be made exact")
	case !(o.Greed >= 0 && o.Greed <= 1):
		return fmt.Errorf("greed is %v, must be between 0 and 1", o.Greed)
	case o.Leaf < 0 || o.Leaf > horizon:
		return fmt.Errorf("leaf is %d, must be between 0 and the horizon, %d", o.Leaf, horizon)
	case o.Leaf > 1 && o.Noise != GramTree:
		return errors.New("noise is not GramTree, must be for leaves of more than one round")
	case o.Leaf > 1 && horizon > math.MaxInt/4:
		return fmt.Errorf("horizon is %d, must be at most %d with leaves", horizon, math.MaxInt/4)
	}
	return nil
}

func (o LinUCBOptions) mechanism(dim, horizon int, b privacy.Budget) (privacy.GramMechanism, error) {
	if b == nil {
		return nil, errors.New("there is no budget")
	}
	if _, none := b.(privacy.None); none {
		return privacy.GramTree{Horizon: horizon, Leaf: o.Leaf}, nil
	}
	switch o.Noise {
	case GramTree:
		return privacy.NewGramLeaves(b, horizon, o.Leaf)
	case GramWishart:
		return privacy.NewGramWishart(b, dim, horizon)
	}
	return privacy.NewGramBLT(b, horizon)
}

// Mechanism is the counter of noisy Gram matrices, without noise for budget None.
func (p *LinUCB) Mechanism() privacy.Mechanism { return p.mechanism }

// Slots is 1: all records are in one running matrix.
func (p *LinUCB) Slots() int { return 1 }

// Dim is d.
func (p *LinUCB) Dim() int { return p.dim }

// Due is 0 when a batch is full, after every round without Leaf. When there are releases must not
// depend on what was played: that is private here.
func (p *LinUCB) Due() int {
	if p.t-p.cut >= max(1, p.o.Leaf) {
		return 0
	}
	return -1
}

// Learn takes the running Gram matrix. A release of another size changes nothing.
func (p *LinUCB) Learn(released privacy.ReleasedVector) {
	if p.Due() >= 0 {
		p.Cut()
	}
	d := p.dim
	if released.Len() != (d+1)*(d+2)/2 {
		return
	}
	if logDet, ok := p.take(released.N(), released.At); ok {
		if p.o.C > 0 && !(logDet-p.logDet > math.Log1p(p.o.C)+detMargin) {
			return
		}
		p.logDet = logDet
		p.estimate(released.N())
	}
}

// take makes V and u of what was released of n rounds, row by row of the upper triangle. It returns log det V,
// and false if V is left to the next release.
func (p *LinUCB) take(n int, released func(int) float64) (logDet float64, ok bool) {
	d := p.dim
	shift := p.low - p.band(n).Lo
	before := func(i, j int) float64 {
		if p.from.n == 0 {
			return 0
		}
		return p.from.gram.At(i, j)
	}
	at := 0
	for j := range d { // row j of the upper triangle is column j of the lower
		p.now.v[j*(j+1)/2+j] = released(at) + shift + before(j, j)
		for i := j + 1; i < d; i++ {
			p.now.v[i*(i+1)/2+j] = released(at+i-j) + before(i, j)
		}
		p.u[j] = released(at + d - j)
		if p.from.n > 0 {
			p.u[j] += p.from.b[j]
		}
		at += d + 1 - j
	}
	if !p.now.refactor() && !p.clip() {
		return p.logDet, false
	}
	return p.now.logDet(), true
}

// band bounds the noise after n records.
func (p *LinUCB) band(n int) privacy.Band {
	nodes := bits.OnesCount(uint(n / max(1, p.o.Leaf)))
	if nodes < 1 || len(p.bands) == 0 {
		return p.from.band
	}
	return p.bands[min(nodes, len(p.bands))-1]
}

// clip raises V's eigenvalues to ρ_min. It returns false, and leaves V to the next release, if
// they are not found.
func (p *LinUCB) clip() bool {
	p.clips++
	d := p.dim
	s := mat.NewSymDense(d, nil)
	for i, at := 0, 0; i < d; i++ {
		for j := range i + 1 {
			s.SetSym(i, j, p.now.v[at])
			at++
		}
	}
	var e mat.EigenSym
	if !e.Factorize(s, true) {
		return false
	}
	var q mat.Dense
	e.VectorsTo(&q)
	values := e.Values(nil)
	for i, at := 0, 0; i < d; i++ {
		for j := range i + 1 {
			x := 0.0
			for k, y := range values {
				x += float64(max(y, p.low) * float64(q.At(i, k)*q.At(j, k)))
			}
			p.now.v[at] = x
			at++
		}
	}
	return p.now.refactor()
}

// estimate makes what holds until the next update, from V and u of n records.
func (p *LinUCB) estimate(n int) {
	p.counts++
	p.now.solve(p.theta, p.u)
	p.now.root(p.w)
	copy(p.v, p.now.v)
	growth := max(0, p.logDet-float64(float64(p.dim)*math.Log(p.low)))
	growth = min(growth, ellipsoidGrowth(p.dim, n+p.from.n, p.low))
	band := p.band(n)
	high := p.low + band.Hi - band.Lo
	p.radius = ellipsoidRadius(growth, high, p.o.Risk/2) + band.Cross/math.Sqrt(p.low)
	p.bias = math.Sqrt(high)
}

// Choose plays the action of the highest index. It looks at the actions of this round, which are
// private, and keeps nothing of them: there is only what the curator releases. The caller sees to
// it that there are len(actions) = K·d finite numbers, K ≥ 1.
func (p *LinUCB) Choose(actions []float64) Choice {
	best := p.Best(actions)
	p.t++
	return Choice{Action: best}
}

// Best is the action that Choose plays. It changes nothing.
func (p *LinUCB) Best(actions []float64) int {
	d := p.dim
	best, top := 0, math.Inf(-1)
	bonus := float64((1 - p.o.Greed) * p.radius)
	for i := 0; len(actions) >= d; i++ {
		a := actions[:d]
		actions = actions[d:]
		var mean float64
		for j, x := range a {
			mean += float64(p.theta[j] * x)
		}
		if score := mean + float64(bonus*math.Sqrt(squaredRoot(p.w, a))); score > top {
			best, top = i, score
		}
	}
	return best
}

// Play counts a round in which this vector was played, whoever chose it. Nothing of the vector is
// kept.
func (p *LinUCB) Play([]float64) { p.t++ }

// Cut ends the batch that is full. Learn does so itself: it is for releases that come late, when
// further rounds have been played. Nothing of a batch is known but its length, so that the result,
// which OFUL has here, is nil.
func (p *LinUCB) Cut() []int64 {
	p.cut = p.t
	return nil
}

// Skip is Play of all the rounds of a batch, for one that is brought back to where it was. gram is
// what Cut has returned, nil.
func (p *LinUCB) Skip(n int, gram []int64) error {
	switch {
	case p.t > p.cut:
		return fmt.Errorf("lin-ucb: the batch has %d rounds, must have none", p.t-p.cut)
	case n != max(1, p.o.Leaf) || len(gram) > 0:
		return fmt.Errorf("lin-ucb: a batch has %d rounds and %d sums, must have %d and none", n, len(gram),
			max(1, p.o.Leaf))
	}
	p.t += n
	return nil
}

// Estimate is the confidence set of θ* at the last update: the centre θ̃, the caller's to keep, and
// the radius β in the norm of V.
func (p *LinUCB) Estimate() (theta []float64, radius float64) { return slices.Clone(p.theta), p.radius }

// Regulariser is ρ_min, which V's eigenvalues are at least, and at most three times that before any
// round: what less has been played in than this is not known from noise.
func (p *LinUCB) Regulariser() float64 { return p.low }

// Updates is how many estimates there have been.
func (p *LinUCB) Updates() int { return p.counts }

// Clips is how often V was not positive definite: with probability 1−α/2 never.
func (p *LinUCB) Clips() int { return p.clips }

// Covers says whether θ is in the confidence set. It is false for vectors that do not
// have d coordinates.
func (p *LinUCB) Covers(theta []float64) bool {
	return within(theta, p.theta, p.v, p.radius)
}

var _ Contextual = (*LinUCB)(nil)
