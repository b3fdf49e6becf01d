package linear

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
)

// LinTS is Thompson sampling on regression that knows its noise, for decision sets that change in each
// round. It is our own. What it is made of: Thompson sampling for linear bandits (Agrawal and Goyal
// 2013), on released sums; Bayesian regression from noisy sums (Bernstein and Sheldon 2019), whose design
// is public here.
//
// Segments end by count alone: each has First decisions, or half as many as all before it, where that is
// more. Of a segment s with vectors a and rewards r in [−1,1] the sum b_s = Σ a·r is
// released, once, with noise N(0, σ²I); G_s = Σ aaᵀ is public. With the model r = ⟨θ, a⟩ + noise of
// variance v,
//
//	b_s ~ N(G_s θ, C_s),   C_s = v·G_s + σ²I,
//
// so a segment is worth the precision G_s C_s⁻¹ G_s: little in directions where privacy noise
// outweighs what was played. With the prior N(θ₀, D⁻¹) the posterior is N(μ, A⁻¹),
//
//	A = D + Σ G_s C_s⁻¹ G_s,   μ = θ₀ + A⁻¹ Σ G_s C_s⁻¹ (b_s − G_s θ₀).
//
// A round plays argmax_a ⟨θ̃, a⟩ with θ̃ = μ + α_n·L⁻ᵀz, A = LLᵀ and normal z. Of equal scores the first
// is played. With c = Cautious·d, and n the decisions that were released (with Memory, what is left of them, so that
// α_n stays below α),
//
//	α_n = α·(n + c/3)/(n + c),
//
// a third of α before anything is known, and two thirds at n = c: as long as all directions are unknown, wide draws play
// uniformly, and what that tells is lost in the noise; later they keep a choice from being wrong for good.
//
// With Intercept the first component of all vectors is one constant a₀ > 0. Then θ₀ says that all rewards
// have the mean Centre, and the prior is wide along the intercept (the mean reward has a standard
// deviation of 1). Elsewhere it is 2·Norm·q·τ, q the rate of the rarer end of the range by what was
// released; τ is unknown too, beforehand each of lintsPriors with the same probability, so that the posterior is
// a mixture, by how likely each makes what was released. v is 1 less the square of the mean reward that
// was released so far: of rewards at the ends of the range that is the variance, and more than that of
// others. Without an intercept θ₀ = 0, v = 1 and q = ½. All of that follows from releases and from what
// is declared.
//
// # Draws
//
// Draws vectors θ̃ are kept, and a round plays by one of them, chosen uniformly. One of them, in turn, is
// drawn anew every redrawEvery rounds, and all are when the posterior is another. Given the releases, the
// vector that a round plays by has the law that it would have if it were drawn for that round alone; given the
// vectors, an action is played with probability exactly count/Draws, count of how many vectors it is the
// best (Draw). A Monte Carlo estimate of Thompson's probability would not do: 1/p̂ is biased.
//
// # Privacy
//
// ρ-zCDP of the rewards (Interactive DP): a reward is in one release, which it moves by at most 2, and
// where segments end follows from counts. Contexts and actions are public and not protected. All else is
// post-processing of releases. Other budgets by calibration, as for OFUL; at budget None σ is 0, and it
// is the same code.
//
// # Regret
//
// Bayesian, and proved for α_n = 1 alone: α = 1 and Cautious 0. Assume that the model is true: θ has the prior that is used, v is
// right, and noise of rewards is N(0, v), independent of all else. (1) Given what was released the law of θ
// is the posterior above: within a segment actions follow from contexts, coins and earlier releases, so that
// G_s has nothing in it of the segment's rewards, and b_s given θ, G_s and all before has the law above. (2) Let
// m and Σ be the mean and the covariance of the posterior at a round, which is given in what follows, and so
// are the round's actions, which do not depend on what was played since the last release: the vectors that are kept
// show in that. θ̃ and θ are then independent of each other, with one law, so E max_a ⟨θ, a⟩ =
// E⟨θ̃, a_t⟩; and a_t follows from θ̃, so E⟨θ, a_t⟩ = E⟨m, a_t⟩. By Cauchy and Schwarz
//
//	E[max_a ⟨θ, a⟩ − ⟨θ, a_t⟩] = E⟨θ̃ − m, a_t⟩ ≤ √(d·E a_tᵀΣa_t).
//
// (3) Over all rounds: Bayes regret ≤ √(d·T·E Σ_t a_tᵀΣa_t), Σ of the last release before t. Every term is
// public: a run can add them up. (4) Where contexts are diverse, G_s ⪰ κ·n_s·I for each segment of n_s
// decisions, and rewards come at once,
//
//	Bayes regret ≤ d·√(2T·(v·S/κ + 5σ²/(κ²·First))) + that of the first segment,   S ≤ 4 + log(T/First)/log 1.5,
//
// for T up to 10⁷, from where on segments grow no more.
//
// For E a_tᵀΣa_t ≤ E tr Σ = E‖θ − m‖², and as m is the mean given what was released no estimate made of that is
// nearer to θ, such as G_s⁻¹b_s of the last segment alone: given θ, G_s and all before its error has the
// covariance G_s⁻¹C_sG_s⁻¹, of trace d·(v/(κn_s) + σ²/(κn_s)²) at most. The segment in which that is used has at most
// 2n_s decisions, there are S segments, and Σ 1/n_s ≤ 5/First. In contexts that an adversary chooses no schedule
// of O(log T) releases has √T regret (Han et al. 2020): (4) needs its condition.
//
// Nothing frequentist is proved, nor anything at α_n < 1, which plays better in our worlds (docs/contextual.md), and q
// and v by the released mean are not in the proof.
//
// # Worlds that move
//
// With Memory m no segment has more than m/2 decisions, or First, and with each release what was learnt before counts
// e^(−n/m) times as much, n the decisions of the segment: what is m decisions old weighs a third. Privacy is
// the same; there are more releases, each with its noise.
type LinTS struct {
	dim   int
	o     LinTSOptions
	sigma float64 // of a release, each coordinate
	coins policy.Coins

	gram    []int64 // Σ aaᵀ of the open segment, lower triangle, row by row, in steps of 2^-40
	trace   int64
	rounds  int // of the open segment
	before  int // decisions before it
	steps   []int64
	at      []int          // scratch
	waiting []lintsSegment // cut and not released, the oldest first

	p, h   []float64 // Σ G C⁻¹ G, lower triangle, and Σ G C⁻¹ (b − Gθ₀)
	sum, n float64   // of rewards, by the intercept, and how many were released
	// of all that was released Σ aaᵀ, lower triangle, and Σ a·r, and of how many decisions: for Within
	played, earned []float64
	decisions      int
	least          *ridge  // nil while it is not made of them
	constant       float64 // a₀, 0 while it is not known
	releases       int

	stale     bool        // the posterior is not that of p and h yet
	laws      [3]lintsLaw // of it
	mean      []float64   // of it
	c         *factor     // scratch: C, W, all of G, and two vectors
	w, g      []float64
	y, rest   []float64
	pool      []float64 // Draws vectors θ̃
	across    []float64 // the same, first component of all, second of all, …
	fresh     bool      // they are of the posterior
	turn, age int
	some      []component
	z         []float64                           // scratch
	normals   interface{ Normals(dst []float64) } // coins, where they fill a slice with what Normal returns
}

// A lintsSegment is what is known of a segment's vectors.
type lintsSegment struct {
	n    int
	gram []int64
}

// A lintsLaw is the posterior if τ is one of those that it can be, and the share of that.
type lintsLaw struct {
	a     *factor   // A
	w     lanes     // D^{-1/2}L⁻¹ of it
	mean  []float64 // μ
	share float64
}

// LinTSOptions are the parameters of LinTS.
type LinTSOptions struct {
	Alpha float64 // α, the standard deviations of a draw, from 0 to 10
	// Cautious is how many decisions a component are released until draws have two thirds of α, and not the third that
	// they begin with, from 0 to 2^22; 0: all of α from the start.
	Cautious int
	First    int // decisions of the first segment, from 1 to 2^22
	// Norm is what a vector's components are divided by so that it is in the unit ball, from 1e-6 to 1e6, 0
	// for 1: a model is as much larger.
	Norm float64
	// Intercept says that the first component of every vector is the same and not 0.
	Intercept bool
	Centre    float64 // the mean reward beforehand, in [−1,1]; 0 without an intercept
	Memory    int     // decisions after which what was learnt counts a third, at least 2; 0: all count
}

const (
	// Draws is of how many vectors a LinTS plays by one.
	Draws = 16
	// redrawEvery has all vectors new after 64 rounds: to draw one costs as much as to score d/2 actions by it.
	redrawEvery = 4
	leastRate   = 0.005 // q is no less: a rate that was released may be 0 by its noise
)

// lintsPriors are what τ can be.
func lintsPriors() [3]float64 { return [...]float64{0.2, 0.4, 0.8} }

// NewLinTS returns LinTS for actions in ℝ^d, d from 1 to 1024, and a budget: ZCDP, Approx or Renyi, or None
// for the same without privacy.
func NewLinTS(dim int, b privacy.Budget, o LinTSOptions, coins policy.Coins) (*LinTS, error) {
	o.Norm = cmp.Or(o.Norm, 1)
	if err := o.check(dim); err != nil {
		return nil, fmt.Errorf("dp-lin-ts: %w", err)
	}
	if coins == nil {
		return nil, errors.New("dp-lin-ts: coins are missing: it randomises its choices")
	}
	sigma, err := privacy.GaussianSigma(b)
	if err != nil {
		return nil, fmt.Errorf("dp-lin-ts: %w", err)
	}
	size := dim * (dim + 1) / 2
	p := &LinTS{dim: dim, o: o, sigma: 2 * sigma, coins: coins, gram: make([]int64, size),
		steps: make([]int64, dim), at: make([]int, 0, dim), p: make([]float64, size), h: make([]float64, dim), stale: true,
		played: make([]float64, size), earned: make([]float64, dim),
		mean: make([]float64, dim), c: newFactor(dim, 1), w: make([]float64, size), g: make([]float64, dim*dim),
		y: make([]float64, dim), rest: make([]float64, dim), pool: make([]float64, Draws*dim), across: make([]float64, Draws*dim),
		some: make([]component, dim), z: make([]float64, dim)}
	p.normals, _ = coins.(interface{ Normals(dst []float64) })
	for i := range p.laws {
		p.laws[i] = lintsLaw{a: newFactor(dim, 1), w: newLanes(dim), mean: make([]float64, dim)}
	}
	return p, nil
}

func (o LinTSOptions) check(dim int) error {
	switch {
	case dim < 1 || dim > maxDim:
		return fmt.Errorf("dim is %d, must be between 1 and %d", dim, maxDim)
	case !(o.Alpha >= 0 && o.Alpha <= 10):
		return fmt.Errorf("alpha is %v, must be from 0 to 10", o.Alpha)
	case o.Cautious < 0 || o.Cautious > maxSegment:
		return fmt.Errorf("cautious is %d, must be from 0 to %d", o.Cautious, maxSegment)
	case o.First < 1 || o.First > maxSegment:
		return fmt.Errorf("first is %d, must be from 1 to %d", o.First, maxSegment)
	case !(o.Norm >= 1/maxNorm && o.Norm <= maxNorm):
		return fmt.Errorf("norm is %v, must be from %v to %v, or 0 for 1", o.Norm, 1/maxNorm, maxNorm)
	case !(math.Abs(o.Centre) <= 1) || o.Centre != 0 && !o.Intercept:
		return fmt.Errorf("centre is %v, must be from -1 to 1, and 0 without an intercept", o.Centre)
	case o.Memory < 0 || o.Memory == 1:
		return fmt.Errorf("memory is %d, must be at least 2, or 0 for no end", o.Memory)
	}
	return nil
}

// Mechanism is N(0, σ²I) on Σ a·r, σ twice what the budget asks for at sensitivity 1; no noise for budget None.
func (p *LinTS) Mechanism() privacy.Mechanism { return privacy.VectorGaussian{Sigma: p.sigma} }

// Slots is 1.
func (p *LinTS) Slots() int { return 1 }

// Dim is d.
func (p *LinTS) Dim() int { return p.dim }

// Due is 0 where the open segment has as many decisions as it is to have: a function of counts (and where vectors
// are so many that integers have no room for their sums).
func (p *LinTS) Due() int {
	if p.rounds >= p.length() || p.trace >= maxSegment*gramSteps {
		return 0
	}
	return -1
}

// length is how many decisions the open segment is to have.
func (p *LinTS) length() int {
	length := (p.before + 1) / 2
	if p.o.Memory > 0 {
		length = min(length, p.o.Memory/2)
	}
	return min(max(p.o.First, length), maxSegment)
}

// Play counts the vector of a decision, to a multiple of 2^-20.
func (p *LinTS) Play(a []float64) {
	at := p.at[:0] // what is not 0
	for i, x := range a {
		if p.steps[i] = 0; x != 0 {
			p.steps[i] = int64(math.RoundToEven(x * vectorSteps))
			at = append(at, i)
		}
	}
	for k, i := range at {
		x, row := p.steps[i], p.gram[i*(i+1)/2:][:i+1]
		p.trace += x * x
		if 2*len(at) < p.dim {
			for _, j := range at[:k+1] {
				row[j] += x * p.steps[j]
			}
			continue
		}
		for j, y := range p.steps[:i+1] {
			row[j] += x * y
		}
	}
	p.rounds++
}

// PlayOf is Play of as many decisions of each of the sets' vectors as counts has.
func (p *LinTS) PlayOf(s *Sets, counts []int) {
	for v, n := range counts {
		if n == 0 {
			continue
		}
		some := s.some[s.from[v]:s.from[v+1]]
		for _, c := range some {
			p.steps[c.at] = int64(math.RoundToEven(c.x * vectorSteps))
		}
		for k, c := range some {
			x, row := p.steps[c.at]*int64(n), p.gram[c.at*(c.at+1)/2:][:c.at+1]
			p.trace += x * p.steps[c.at]
			for _, c := range some[:k+1] {
				row[c.at] += x * p.steps[c.at]
			}
		}
		p.rounds += n
	}
}

// Free is after how many decisions more Due is to be asked: until then it is −1.
func (p *LinTS) Free() int {
	left := (maxSegment*gramSteps - p.trace) / (2 * gramSteps) // no vector adds as much as 2
	return max(1, min(p.length()-p.rounds, int(left)))
}

// Cut ends the segment of the decisions since the last cut. The result is their Σ aaᵀ, as OFUL's.
func (p *LinTS) Cut() (gram []int64) {
	gram = slices.Clone(p.gram)
	p.waiting = append(p.waiting, lintsSegment{p.rounds, gram})
	p.before += p.rounds
	p.rounds, p.trace = 0, 0
	clear(p.gram)
	return gram
}

// Skip is Play of all decisions of a segment, from what Cut has returned for it, at the beginning of one. The error
// says why no n decisions can have these sums.
func (p *LinTS) Skip(n int, gram []int64) error {
	if p.rounds > 0 {
		return fmt.Errorf("dp-lin-ts: the segment has %d decisions, must have none", p.rounds)
	}
	if err := checkGram(p.dim, n, gram); err != nil {
		return fmt.Errorf("dp-lin-ts: %w", err)
	}
	copy(p.gram, gram)
	for i, at := 0, 0; i < p.dim; i++ {
		p.trace += gram[at+i]
		at += i + 1
	}
	p.rounds = n
	return nil
}

// Learn takes the release of the oldest segment that was cut, or if there is none of the open one.
func (p *LinTS) Learn(released privacy.ReleasedVector) {
	if len(p.waiting) == 0 && p.rounds > 0 {
		p.Cut()
	}
	if released.Len() != p.dim || len(p.waiting) == 0 {
		return
	}
	s := p.waiting[0]
	p.waiting = slices.Delete(p.waiting, 0, 1)
	if p.o.Memory > 0 {
		p.forget(math.Exp(-float64(s.n) / float64(p.o.Memory)))
	}
	if p.o.Intercept {
		p.constant = math.Sqrt(float64(s.gram[0]) / gramSteps / float64(s.n))
		p.sum += released.At(0) / p.constant
	}
	p.n += float64(s.n)
	for i, x := range s.gram {
		p.played[i] += float64(x) / gramSteps
	}
	for i := range p.earned {
		p.earned[i] += released.At(i)
	}
	p.decisions, p.least = p.decisions+s.n, nil
	p.add(s, released)
	p.releases++
	p.stale = true
}

// forget has what was learnt count less.
func (p *LinTS) forget(keep float64) {
	for i := range p.p {
		p.p[i] *= keep
	}
	for i := range p.h {
		p.h[i] *= keep
	}
	p.sum, p.n = float64(p.sum*keep), float64(p.n*keep)
}

// rate is the mean reward by what was released, or beforehand, no closer to an end of the range than leastRate of it.
func (p *LinTS) rate() float64 {
	mean := p.o.Centre
	if p.constant > 0 {
		mean = p.sum / p.n
	}
	const most = 1 - 2*leastRate
	return min(most, max(-most, mean))
}

// add adds what a segment is worth: with C = LDLᵀ, W = D^{-1/2}L⁻¹ and Y = WG it is YᵀY, and YᵀW(b − Gθ₀) to h.
// No rounding makes that less than nothing.
func (p *LinTS) add(s lintsSegment, released privacy.ReleasedVector) {
	d, m := p.dim, p.rate()
	v := 1 - float64(m*m)
	c, w, g, y := p.c, p.w, p.g, p.y
	// without privacy noise C may be singular: what this adds is nothing beside the v·n of a direction that was played
	ridge := float64(p.sigma*p.sigma) + 1e-9*v*float64(s.n)
	for i, at := 0, 0; i < d; i++ {
		for j := range i + 1 {
			x := float64(s.gram[at+j]) / gramSteps
			g[i*d+j], g[j*d+i] = x, x
			c.v[at+j] = float64(v * x)
		}
		c.v[at+i] += ridge
		at += i + 1
	}
	c.least = ridge
	c.refactor()
	c.root(w)
	rest := p.rest
	for i := range rest {
		rest[i] = released.At(i)
		if p.o.Intercept {
			rest[i] -= float64(g[i*d] * p.o.Centre / p.constant)
		}
	}
	for i, at := 0, 0; i < d; i++ { // row i of Y, and of W(b − Gθ₀)
		clear(y)
		var z float64
		for k, x := range w[at : at+i+1] {
			z += float64(x * rest[k])
			for j, q := range g[k*d:][:d] {
				y[j] += float64(x * q)
			}
		}
		at += i + 1
		row := p.p
		for j, x := range y {
			for k, q := range y[:j+1] {
				row[k] += float64(x * q)
			}
			row = row[j+1:]
			p.h[j] += float64(x * z)
		}
	}
}

// settle makes the posterior of what was released: of many releases in a row, as at a start, the last alone is asked.
func (p *LinTS) settle() {
	if !p.stale {
		return
	}
	p.stale = false
	q := (1 - math.Abs(p.rate())) / 2
	most, sum := math.Inf(-1), 0.0
	for i, tau := range lintsPriors() {
		l := &p.laws[i]
		p.posterior(l, 1/square(2*p.o.Norm*tau*q))
		most = max(most, l.share)
	}
	for i := range p.laws {
		p.laws[i].share = math.Exp(p.laws[i].share - most)
		sum += p.laws[i].share
	}
	clear(p.mean)
	for i := range p.laws {
		l := &p.laws[i]
		l.share /= sum
		if p.constant > 0 {
			l.mean[0] += float64(p.o.Centre / p.constant)
		}
		for j, x := range l.mean {
			p.mean[j] += float64(l.share * x)
		}
	}
	p.fresh = false
}

// alpha is α_n.
func (p *LinTS) alpha() float64 {
	if p.o.Cautious == 0 {
		return p.o.Alpha
	}
	c := float64(p.o.Cautious) * float64(p.dim)
	return p.o.Alpha * (p.n + c/3) / (p.n + c)
}

func square(x float64) float64 { return float64(x * x) }

// posterior makes a law that of a prior of this precision, its mean less θ₀, and its share the logarithm of how likely
// that makes what was released, up to a constant.
func (p *LinTS) posterior(to *lintsLaw, precision float64) {
	f := to.a
	copy(f.v, p.p)
	f.least = precision
	to.share = 0
	for i, at := 0, 0; i < p.dim; i++ {
		x := precision
		if i == 0 && p.o.Intercept {
			x = 1 / square(p.o.Norm)
			f.least = min(f.least, x)
		}
		f.v[at+i] += x
		to.share += math.Log(x) / 2
		at += i + 1
	}
	f.refactor()
	f.root(p.w)
	to.w.set(p.w, p.dim)
	f.solve(to.mean, p.h)
	to.share -= f.logDet() / 2
	for i, x := range p.h {
		to.share += float64(to.mean[i]*x) / 2
	}
}

// draw draws a vector θ̃ anew: of a law that is drawn by its share, with A = LDLᵀ, μ + α_n·L⁻ᵀD^{-1/2}z. It
// is a product, not a substitution, whose every step would wait for the one before.
func (p *LinTS) draw(which int) {
	law, at := 0, p.coins.Float64()
	for ; law < len(p.laws)-1 && at >= p.laws[law].share; law++ {
		at -= p.laws[law].share
	}
	d, z := p.dim, p.z // the last component's comes first
	if p.normals != nil {
		p.normals.Normals(z)
	} else {
		for i := range z {
			z[i] = p.coins.Normal()
		}
	}
	slices.Reverse(z)
	x := p.pool[which*d:][:d]
	p.laws[law].w.product(x, z)
	alpha := p.alpha()
	for j, m := range p.laws[law].mean {
		x[j] = m + float64(alpha*x[j])
		p.across[j*Draws+which] = x[j]
	}
}

// look makes the vectors what they are in a round.
func (p *LinTS) look() {
	p.settle()
	switch {
	case !p.fresh:
		for i := range Draws {
			p.draw(i)
		}
		p.fresh, p.turn, p.age = true, 0, 0
	case p.age == redrawEvery:
		p.draw(p.turn)
		p.turn, p.age = (p.turn+1)%Draws, 0
	}
	p.age++
}

// Sample is the best action by one of the vectors, chosen uniformly: what Draw has the probabilities of.
func (p *LinTS) Sample(actions []float64) int {
	best, _ := p.sample(actions)
	return best
}

func (p *LinTS) sample(actions []float64) (best int, top float64) {
	return highest(p.vector(), actions)
}

// SampleOf is Sample of the actions of a set, listed from one of them on.
func (p *LinTS) SampleOf(s *Sets, set, from int) int { return s.highest(p.vector(), set, from) }

// vector is what a round plays by.
func (p *LinTS) vector() []float64 {
	p.look()
	at := min(int(p.coins.Float64()*Draws), Draws-1) * p.dim
	return p.pool[at:][:p.dim]
}

// Choose plays what Sample says, and counts it. The caller sees to that there are finite numbers, K·d of them; of
// less than one action, and where no score is finite, nothing is counted.
func (p *LinTS) Choose(actions []float64) Choice {
	best, top := p.sample(actions)
	if math.Abs(top) <= math.MaxFloat64 {
		p.Play(actions[best*p.dim:][:p.dim])
	}
	return Choice{Action: best}
}

// Best is the action that is best by μ, and changes nothing.
func (p *LinTS) Best(actions []float64) int {
	p.settle()
	best, _ := highest(p.mean, actions)
	return best
}

// highest is the action with the highest product with theta, and the product.
func highest(theta, actions []float64) (best int, top float64) {
	d := len(theta)
	top = math.Inf(-1)
	for i, rest := 0, actions; len(rest) >= d; i, rest = i+1, rest[d:] {
		var score float64
		for j, x := range rest[:d] {
			score += float64(theta[j] * x)
		}
		if score > top {
			best, top = i, score
		}
	}
	return best, top
}

// Draw makes counts, one for each action, of how many of Draws vectors it is the best by: whoever plays by one of them,
// chosen uniformly, plays an action with probability exactly count/Draws. It changes the vectors for the next round, and
// nothing that a release or a choice of Best follows from.
func (p *LinTS) Draw(actions []float64, counts []int) (draws int) {
	p.look()
	d := p.dim
	var top [Draws]float64
	var best [Draws]int
	for i := range top {
		top[i] = math.Inf(-1)
	}
	for a, rest := 0, actions; len(rest) >= d; a, rest = a+1, rest[d:] {
		some, n := p.some, 0
		for j, x := range rest[:len(some)] {
			some[n] = component{j, x}
			if math.Float64bits(x)<<1 != 0 { // x is not 0: without a branch, which nothing would foresee
				n++
			}
		}
		some = some[:n]
		for i := 0; i < Draws; i += 8 { // eight sums do not wait for each other, and each is in the order of components
			var y0, y1, y2, y3, y4, y5, y6, y7 float64
			for _, c := range some {
				t := (*[8]float64)(p.across[c.at*Draws+i:])
				y0 += float64(c.x * t[0])
				y1 += float64(c.x * t[1])
				y2 += float64(c.x * t[2])
				y3 += float64(c.x * t[3])
				y4 += float64(c.x * t[4])
				y5 += float64(c.x * t[5])
				y6 += float64(c.x * t[6])
				y7 += float64(c.x * t[7])
			}
			for k, score := range [8]float64{y0, y1, y2, y3, y4, y5, y6, y7} {
				if score > top[i+k] {
					best[i+k], top[i+k] = a, score
				}
			}
		}
	}
	clear(counts)
	for _, a := range best {
		counts[a]++
	}
	return Draws
}

// Drawn is the action of the draw with this number, of all that counts are of.
func Drawn(counts []int, draw int) (action int) {
	for action < len(counts)-1 && draw >= counts[action] {
		draw -= counts[action]
		action++
	}
	return action
}

// Estimate is μ, the caller's to keep, and √d, the root mean square of ‖θ − μ‖_A in the posterior.
func (p *LinTS) Estimate() (theta []float64, radius float64) {
	p.settle()
	return slices.Clone(p.mean), math.Sqrt(float64(p.dim))
}

// Updates is how many releases the estimate rests on.
func (p *LinTS) Updates() int { return p.releases }

var _ Contextual = (*LinTS)(nil)
