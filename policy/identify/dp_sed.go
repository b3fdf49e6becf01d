package identify

import (
	"fmt"
	"math"
	"slices"

	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
)

// DPSED is elimination on differences: successive elimination whose radius bounds, in one exponent,
// the rewards and the noise of the difference of two arms. It is ours.
//
// In batch m every active arm gets n_m plays, N_m of them so far, and one release S̃_{a,m} of their
// sum. With the weights ω_j = n_j/(n_j + 4 Var Z_j), Z_j the noise of a release of batch j, let
//
//	x_a = Σ_{j≤m} ω_j S̃_{a,j},   y_a = Σ_{j≤m} S̃_{a,j},
//
// and let u_m > 0 be public, Σu_m ≤ 1, δ₁ = 0.9δ and δ₂ = 0.1δ. Write φ_μ(λ) = log(1 + μ(e^λ − 1)),
// and ψ_j for a bound of the noise's cumulants, log E e^{λZ_j} ≤ ψ_j(λ) = ψ_j(−λ): −k log(1 − b²λ²),
// |λ| < 1/b, for k Laplace noises of scale b, continuous or discrete, and σ²λ²/2 for normal ones.
//
//  1. [L_a,U_a] are the μ with ±λy_a − N_m φ_μ(±λ) − Σψ_j(λ) < c₂ = log(2/(δ₂u_m)) for both signs
//     and every λ > 0, cut with the intervals of earlier batches; v_a is the most of μ(1−μ) there,
//     1/4 if nothing is left.
//  2. With A_v(λ) = Σ_j [n_j log(1 + 4v sinh²(λω_j/2)) + 2ψ_j(λω_j)], c₁ = log((K−1)/(δ₁u_m)) and
//     R(v) = min_{λ>0} (c₁ + A_v(λ))/λ, arm a is dropped if max_b x_b − x_a ≥ R(v_a), b active.
//
// The answer is the last arm.
//
// # Theorem
//
// For independent rewards in [0,1] the probability that a given best arm is ever dropped is at most
// δ. So a wrong answer has probability at most δ, also where several arms are best.
//
// Proof. Fix a table in advance: S̃_{a,m} for every arm and batch, whether or not it is played. The
// n_m, the noises' laws, and thus all that is called public, do not depend on it. Let a* be the best
// arm that is given, and u its mean. A reward X in [0,1] of mean μ has E e^{λX} ≤ e^{φ_μ(λ)} for every
// real λ, by convexity.
//
// (i) f(y) = sup_{λ>0} {λy − N φ_u(λ) − Σψ_j(λ)} does not decrease in y, so that f ≥ c is a half-line,
// which has probability at most e^{−c} by Markov's inequality for e^{λy}; likewise below. φ_μ(λ)
// rises in μ for λ > 0 and falls for λ < 0: one sign rejects the μ up to a point, the other those
// from a point on, and what is left is an interval. P(u ∉ [L_{a*},U_{a*}] for any m) ≤ Σ 2e^{−c₂} ≤
// δ₂. Only a*'s own interval counts, which is why there is no K in c₂.
//
// (ii) Fix b ≠ a* and m. A pair of rewards of the two, which are independent, has for λ > 0
//
//	E e^{λ(X_b − X_{a*})} ≤ (1 + μ_b(e^λ−1))(1 + u(e^{−λ}−1))
//	                      ≤ (1 + u(e^λ−1))(1 + u(e^{−λ}−1)) = 1 + 4u(1−u) sinh²(λ/2),
//
// as μ_b ≤ u, (e^λ−1) + (e^{−λ}−1) = 4 sinh²(λ/2) and (e^λ−1)(e^{−λ}−1) = −4 sinh²(λ/2). The noises
// of both sums add 2ψ_j. So with v = u(1−u), P(x_b − x_{a*} ≥ R(v)) ≤ e^{A_v(λ)−λR(v)} = e^{−c₁} at
// the λ of the minimum; over b and m that is at most δ₁.
//
// (iii) A_v, and so R(v), rises in v. Outside (i) v_{a*} ≥ u(1−u), so that a* is dropped only where
// (ii) happens. ∎
//
// Any λ gives a wider interval and a larger R than the best one, so a search that errs costs plays
// and no risk. R is computed for each v: interpolated it could be too small. The interval has no
// weights, which leaves its ends in closed form.
//
// # Plays
//
// Let one arm a* be best, Δ_a the gap of another, W = Σω_j n_j and ω̄ the largest ω_j of the batches until m, b the
// largest scale of a Laplace noise in them, and q = 4/3, or 1 and b = 0 for normal noise. Let
//
//	ρ_m(c) = max(√(qcW), 4bω̄c),
//
// where W ≥ c/100. With probability at least 1 − δ − δ', every arm a has been dropped by the first batch m with
//
//	WΔ_a ≥ ρ_m(c₁) + ρ_m(log((K−1)/δ')).
//
// As ω_j = n_j/(n_j + 4 Var Z_j) and a batch is a third of all plays so far or more, but for the first, that is after
// O(log(K/δ)/Δ_a² + (σ√log(K/δ) + b log(K/δ))/Δ_a) plays of the arm, up to log log, σ² the noise's variance. SEDPlays
// computes the bound.
//
// Proof. log cosh(x/2) ≤ x²/8, and −k log(1−x²) ≤ 4kx²/3 for |x| ≤ ½. So with v ≤ ¼, for λω̄b ≤ ½,
//
//	A_v(λ) ≤ Σ_j [n_j λ²ω_j²/4 + q Var Z_j λ²ω_j²] ≤ (qλ²/4) Σ_j ω_j²(n_j + 4 Var Z_j) = qλ²W/4.
//
// At λ = 2√(c/(qW)), which is at most 20, (c + A_v(λ))/λ ≤ √(qcW); where that λ is above 1/(2ω̄b), A_v < c at this
// one, and (c + A_v(λ))/λ ≤ 4bω̄c. So R(v) ≤ ρ_m(c₁). By Hoeffding's lemma for each reward, the exponent of
// WΔ_a − (x_{a*} − x_a) is at most qλ²W/4 too, so that it is ρ_m(c) or more with probability at most e^{−c}: at
// c = log((K−1)/δ') for no arm at its batch m, but with probability δ'. Then x_{a*} − x_a ≥ R(v_a), and a is dropped
// if a* has not been, which is so with probability 1 − δ. ∎
//
// # Privacy
//
// A reward is in one release, of sensitivity 1, and everything else is post-processing: ε-DP with
// Lap(1/ε), 1/(2σ²)-zCDP with N(0,σ²).
//
// # Plan
//
// Batches end at N_1 = n_1 and N_{m+1} = ⌈1.5 N_m⌉. Without a plan n_1 = ⌈24/ε⌉, at least 16, and u_m =
// 1/(m(m+1)); for another noise 1/ε is its standard deviation over √2. A trial that expects a gap Δ and
// a best mean p can say so before the first reward: a wrong plan costs plays, and no risk. With v =
// p(1−p) let N* be the fewest plays an arm in which a gap of Δ is likely to be found,
//
//	max_λ {λnΔ − n log(1 + 4v sinh²(λ/2)) − 2ψ(λ)} ≥ log((K−1)/δ₁) + 2.
//
// Then n_1 = max(8/ε, ¾N*). Centred, n_1 is ¾N*, but from 8/ε to 16/ε, and u_m ∝ 0.75^{|m−m*|}, m* the
// batch that ends nearest 1.2N*: more plays if the plan is right, and fewer if the gap is half or
// twice as large.
type DPSED struct {
	mech   privacy.Mechanism
	first  int
	c1, c2 float64 // log((K−1)/δ₁) and log(2/δ₂)
	centre int     // m*; 0: u_m = 1/(m(m+1))

	plays  int // of an active arm, asked for
	looks  []look
	arms   []compared
	alive  []int // increasing
	answer int
	other  bool // a release was not as the proof needs it
	batch  policy.Batch
}

// A look is a batch as it was released.
type look struct {
	n, weight float64
	noise     cumulant
}

// A cumulant bounds the logarithm of a noise's moment generating function: that of k Laplace noises
// of scale b and a normal one of variance v.
type cumulant struct{ k, b, v float64 }

// compared is what the rule knows of an arm.
type compared struct {
	sum, weighted float64 // y_a and x_a
	lo, hi        float64 // L_a and U_a
}

const (
	growthSED  = 1.5
	shareSED   = 0.9  // of the risk for differences, the rest for variances
	aroundSED  = 0.75 // what u_m falls by beside the centre
	steepest   = 20   // λ of what has no noise
	leastFirst = 16   // plays of a first batch: less noise does not make shorter ones worth a look
)

// An SEDPlan is what a trial expects before its first reward. The zero value expects nothing.
type SEDPlan struct {
	Gap     float64 // Δ between the best arm and the next, above 0 and at most 1; 0: not known
	Best    float64 // the best arm's mean, at least the gap and at most 1; 0: ½ + Δ/2
	Centred bool    // guard against a gap that is half or twice as large
	First   int     // plays of each arm in the first batch; 0: as the plan says
}

// NewDPSED returns elimination on differences for a number of arms ≥ 2, a risk δ in (0,1) and a
// budget: Laplace noise for privacy.Pure, normal noise for ZCDP, Renyi and GDP, of the two the one of
// less variance for Approx, and for None the same rule without noise.
func NewDPSED(arms int, budget privacy.Budget, risk float64, plan SEDPlan) (*DPSED, error) {
	fail := func(err error) (*DPSED, error) { return nil, fmt.Errorf("dp-sed: %w", err) }
	if err := checkTask(arms, risk); err != nil {
		return fail(err)
	}
	mech, noise, err := quietest(budget)
	if err != nil {
		return fail(err)
	}
	if err := plan.check(); err != nil {
		return fail(err)
	}
	p := &DPSED{mech: mech, answer: -1,
		c1: math.Log(float64(arms-1) / float64(shareSED*risk)), c2: math.Log(2 / float64((1-shareSED)*risk)),
		looks: make([]look, 0, 96), arms: make([]compared, arms), alive: make([]int, arms)}
	for a := range p.arms {
		p.alive[a], p.arms[a].hi = a, 1
	}
	p.batch.Plays = make([]policy.Play, 0, arms)
	if err := p.prepare(plan, noise); err != nil {
		return fail(err)
	}
	return p, nil
}

func (s SEDPlan) check() error {
	switch {
	case !(s.Gap >= 0 && s.Gap <= 1):
		return fmt.Errorf("gap is %v, must be above 0 and at most 1, or 0 if it is not known", s.Gap)
	case s.Best != 0 && !(s.Best >= s.Gap && s.Best <= 1 && s.Best > 0):
		return fmt.Errorf("best is %v, must be from the gap, %v, to 1", s.Best, s.Gap)
	case s.Gap == 0 && (s.Best != 0 || s.Centred):
		return fmt.Errorf("gap is missing, must be given with best or centred")
	case s.First < 0 || s.First >= longest:
		return fmt.Errorf("first is %d, must be at least 1 and below 2^50, or 0 for the default", s.First)
	}
	return nil
}

// quietest is the mechanism of the least variance that meets the budget.
func quietest(budget privacy.Budget) (privacy.Mechanism, cumulant, error) {
	var b, sigma float64
	var err error
	switch x := budget.(type) {
	case privacy.Pure, privacy.None, nil:
		var epsilon float64
		epsilon, err = epsilonOf(budget)
		b = 1 / epsilon
	case privacy.Approx: // ε-DP is more
		if b, err = privacy.LaplaceScale(x); err == nil {
			sigma, err = privacy.GaussianSigma(x)
		}
		if err == nil && float64(sigma*sigma) < 2*float64(b*b) {
			b = 0
		} else {
			sigma = 0
		}
	default:
		sigma, err = privacy.GaussianSigma(budget)
	}
	if err != nil {
		return nil, cumulant{}, err
	}
	if sigma > 0 {
		return privacy.Gaussian{Sigma: sigma}, cumulant{v: sigma * sigma}, nil
	}
	if b > 0 {
		return privacy.Laplace{Scale: b}, cumulant{k: 1, b: b}, nil
	}
	return privacy.Laplace{}, cumulant{}, nil
}

// prepare fixes the first batch and the u_m.
func (p *DPSED) prepare(plan SEDPlan, noise cumulant) error {
	unit := math.Sqrt(noise.variance() / 2) // 1/ε of Laplace noise
	first := max(leastFirst, 24*unit)
	if plan.Gap > 0 {
		n, err := plan.enough(p.c1+2, noise)
		if err != nil {
			return err
		}
		first = max(8*unit, 0.75*n)
		if plan.Centred {
			first = max(8*unit, min(max(leastFirst, 16*unit), 0.75*n))
		}
		p.first = start(plan.First, first)
		if plan.Centred {
			p.centre = nearest(p.first, 1.2*n)
		}
		return p.startable(first)
	}
	p.first = start(plan.First, first)
	return p.startable(first)
}

// start is the first batch as given, or as planned.
func start(given int, first float64) int {
	if given > 0 {
		return given
	}
	return int(min(max(1, math.Ceil(first)), longest))
}

func (p *DPSED) startable(first float64) error {
	if p.first >= longest {
		return fmt.Errorf("a first batch of %.3g plays of each arm, must be below 2^50: the budget or the gap "+
			"is too small", first)
	}
	return nil
}

// enough is N*.
func (s SEDPlan) enough(level float64, noise cumulant) (float64, error) {
	best := s.Best
	if best == 0 {
		best = 0.5 + s.Gap/2
	}
	v := best * (1 - best)
	found := func(n float64) bool {
		one := look{n: n, weight: 1, noise: noise}
		lo, hi := around(level, one.curvature(v), noise.top())
		return -minimum(func(t float64) float64 {
			lambda := math.Exp(t)
			return one.exponent(v, lambda) - float64(lambda*float64(n*s.Gap))
		}, lo, hi) >= level
	}
	lo, hi := 0.0, 1.0
	for ; !found(hi); lo, hi = hi, 2*hi {
		if hi >= longest {
			return 0, fmt.Errorf("gap is %v, must be so large that fewer than 2^50 plays of an arm show it", s.Gap)
		}
	}
	for hi-lo > 1 {
		if mid := math.Floor(lo + (hi-lo)/2); found(mid) {
			hi = mid
		} else {
			lo = mid
		}
	}
	return hi, nil
}

// nearest is the batch that ends nearest n, 1 the first.
func nearest(first int, n float64) int {
	m, end := 1, first
	for {
		next := grown(end, growthSED)
		if next >= longest || math.Abs(float64(next)-n) >= math.Abs(float64(end)-n) {
			return m
		}
		m, end = m+1, next
	}
}

// Mechanism implements policy.Policy.
func (p *DPSED) Mechanism() privacy.Mechanism { return p.mech }

// Answer implements Identifier.
func (p *DPSED) Answer() int { return p.answer }

// Claim is nil as long as each release had all the rewards that were asked for, clipped, and noise of
// which the cumulants are known: Laplace noises that are counted, or normal ones.
func (p *DPSED) Claim() error {
	if p.other {
		return fmt.Errorf("dp-sed: a release had noise that is neither normal nor Laplace noises that are "+
			"counted, or not all rewards, or some that were not clipped: %w", ErrUnproved)
	}
	return nil
}

// Next implements policy.Policy.
func (p *DPSED) Next(released privacy.Released) *policy.Batch {
	if p.answer >= 0 {
		return nil
	}
	if p.plays > 0 && released.Len() > 0 {
		p.learn(released)
		p.eliminate()
	}
	if len(p.alive) == 1 {
		p.answer = p.alive[0]
		return nil
	}
	return p.each()
}

// each is the next batch of every arm that is active.
func (p *DPSED) each() *policy.Batch {
	end := p.End(0, p.plays)
	p.batch.Plays = p.batch.Plays[:0]
	if end >= longest { // no horizon reaches the end of this
		p.batch.Plays = append(p.batch.Plays, policy.Play{Arm: p.alive[0], Rounds: policy.Forever})
		return &p.batch
	}
	for _, a := range p.alive {
		p.batch.Plays = append(p.batch.Plays, policy.Play{Arm: a, Rounds: end - p.plays, Release: true})
	}
	p.plays = end
	return &p.batch
}

// End is how many plays of the arm have been released when the release after the first n is
// (play.Exact).
func (p *DPSED) End(_, n int) int {
	if n == 0 {
		return p.first
	}
	return grown(n, growthSED)
}

// learn adds what the last batch released.
func (p *DPSED) learn(released privacy.Released) {
	l := look{n: float64(p.batch.Plays[0].Rounds)}
	some := min(released.Len(), len(p.alive))
	p.other = p.other || released.Len() != len(p.alive)
	for i := range some {
		c, known := cumulantOf(released, i)
		p.other = p.other || !known || released.N(i) != p.batch.Plays[i].Rounds
		l.noise = cumulant{max(l.noise.k, c.k), max(l.noise.b, c.b), max(l.noise.v, c.v)}
	}
	l.weight = l.n / (l.n + 4*l.noise.variance())
	p.looks = append(p.looks, l)
	for i := range some {
		a := &p.arms[p.alive[i]]
		a.sum += released.Sum(i)
		a.weighted += float64(l.weight * released.Sum(i))
	}
}

// cumulantOf is that of sum i's noise, and whether it is a bound.
func cumulantOf(released privacy.Released, i int) (cumulant, bool) {
	tail := released.Tail()
	switch k, b := released.Noises(i); {
	case released.Laplace(): // integers round the scale up, and the tail says to what
		return cumulant{k: 1, b: max(b, tail.H)}, true
	case k > 0:
		return cumulant{k: k, b: b}, true
	case released.Normal():
		return cumulant{v: tail.Sigma * tail.Sigma}, true
	default: // of a like variance, for which nothing is proved
		return cumulant{k: 1, b: tail.H, v: tail.Sigma * tail.Sigma}, false
	}
}

// eliminate drops the arms that are told from the one that is ahead.
func (p *DPSED) eliminate() {
	top := math.Inf(-1)
	for _, a := range p.alive {
		top = max(top, p.arms[a].weighted)
	}
	union := p.union()
	kept := p.alive[:0]
	for _, a := range p.alive {
		arm := &p.arms[a]
		p.narrow(arm, p.c2+union)
		if gap := top - arm.weighted; !(gap > 0 && gap >= p.radius(arm.variance(), p.c1+union)) {
			kept = append(kept, a)
		}
	}
	p.alive = kept
}

// union is −log u_m after batch m. Σ_m 0.75^{|m−m*|} = 7 − 4·0.75^{m*}.
func (p *DPSED) union() float64 {
	m := float64(len(p.looks))
	if p.centre == 0 {
		return math.Log(m * (m + 1))
	}
	centre := float64(p.centre)
	return math.Log(7-4*math.Pow(aroundSED, centre)) - float64(math.Abs(m-centre)*math.Log(aroundSED))
}

// radius is R(v) at c₁ = c.
func (p *DPSED) radius(v, c float64) float64 {
	curvature, top := 0.0, float64(steepest)
	for i := range p.looks {
		l := &p.looks[i]
		curvature += l.curvature(v)
		top = min(top, l.noise.top()/l.weight)
	}
	lo, hi := around(c, curvature, top)
	return minimum(func(t float64) float64 {
		lambda, sum := math.Exp(t), c
		for i := range p.looks {
			sum += p.looks[i].exponent(v, lambda)
		}
		return sum / lambda
	}, lo, hi)
}

// narrow cuts the arm's interval with that of its sum. At λ the ends of [L,U] are, with N the rewards
// and Ψ = Σψ_j(λ),
//
//	(e^{(λy−c₂−Ψ)/N} − 1)/(e^λ − 1)   and   (1 − e^{−(c₂+λy+Ψ)/N})/(1 − e^{−λ}).
func (p *DPSED) narrow(arm *compared, c float64) {
	n, curvature, top := 0.0, 0.0, float64(steepest)
	for i := range p.looks {
		l := &p.looks[i]
		n += l.n
		curvature += l.n/4 + l.noise.variance()
		top = min(top, l.noise.top())
	}
	lo, hi := around(c, curvature, top)
	cost := func(lambda float64) float64 {
		sum := c
		for i := range p.looks {
			sum += p.looks[i].noise.at(lambda)
		}
		return sum
	}
	below := -minimum(func(t float64) float64 {
		lambda := math.Exp(t)
		return -math.Expm1((float64(lambda*arm.sum)-cost(lambda))/n) / math.Expm1(lambda)
	}, lo, hi)
	above := minimum(func(t float64) float64 {
		lambda := math.Exp(t)
		return math.Expm1(-(float64(lambda*arm.sum)+cost(lambda))/n) / math.Expm1(-lambda)
	}, lo, hi)
	arm.lo, arm.hi = max(arm.lo, below), min(arm.hi, above)
}

// variance is v_a.
func (a *compared) variance() float64 {
	if a.lo > a.hi || a.lo <= 0.5 && a.hi >= 0.5 {
		return 0.25
	}
	return max(float64(a.lo*(1-a.lo)), float64(a.hi*(1-a.hi)))
}

// around is where a λ is looked for at which an exponent of this curvature at 0 is about c, as
// logarithms.
func around(c, curvature, top float64) (lo, hi float64) {
	normal := math.Sqrt(2 * c / curvature) // the best λ of normal rewards and noise
	hi = min(top, 32*normal)
	return math.Log(min(hi, normal) / 1024), math.Log(hi)
}

// exponent is the batch's part of A_v(λ).
func (l *look) exponent(v, lambda float64) float64 {
	x := float64(l.weight * lambda)
	e := math.Expm1(x)
	return float64(l.n*math.Log1p(float64(v*e)*(e/(1+e)))) + 2*l.noise.at(x) // e²/(1+e) = 4 sinh²(x/2)
}

// curvature is its second derivative at 0.
func (l *look) curvature(v float64) float64 {
	return 2 * float64(float64(l.weight*l.weight)*(float64(l.n*v)+l.noise.variance()))
}

// at is ψ(λ) for 0 ≤ λ ≤ top.
func (c cumulant) at(lambda float64) float64 {
	x := float64(c.b * lambda)
	return float64(c.v*float64(lambda*lambda))/2 - float64(c.k*math.Log1p(-float64(x*x)))
}

// variance is that of the noise, or more.
func (c cumulant) variance() float64 { return c.v + 2*float64(c.k*float64(c.b*c.b)) }

// top is the largest λ to look at.
func (c cumulant) top() float64 { return min(steepest, (1-1e-9)/c.b) }

// SEDPlays is the bound of DPSED's theorem: the plays of each arm, all at once with probability at least 1 − risk −
// slip, where the first batch has first plays, no plan was given, everybody answers, and the noise in a release of n
// rewards is that of k Laplace noises of scale b, or normal of variance v. The best arm's are the most of all. Where
// several arms are best, which it never tells apart, theirs are policy.Forever.
func SEDPlays(means []float64, risk, slip float64, first int, noise func(n int) (k, b, v float64)) ([]int, error) {
	if err := checkTask(len(means), risk); err != nil {
		return nil, err
	}
	if !(slip > 0 && slip < 1) || first < 1 || noise == nil {
		return nil, fmt.Errorf("slip is %v and first %d, must be above 0 and below 1, and at least 1, with a noise", slip, first)
	}
	best := slices.Max(means)
	others := float64(len(means) - 1)
	out := make([]int, len(means))
	most, tied := 0, -1
	for a, mean := range means {
		out[a] = policy.Forever
		if mean == best {
			tied++
			continue
		}
		total, steepest, scale, q := 0.0, 0.0, 0.0, 1.0
		for m, end, before := 1, first, 0; end < longest; m, before, end = m+1, end, grown(end, growthSED) {
			n := float64(end - before)
			k, b, v := noise(end - before)
			weight := n / (n + 4*cumulant{k, b, v}.variance())
			total, steepest, scale = total+float64(weight*n), max(steepest, weight), max(scale, b)
			if k > 0 {
				q = 4.0 / 3
			}
			rho := func(c float64) float64 { return max(math.Sqrt(q*c*total), 4*scale*steepest*c) }
			c1 := math.Log(others/float64(shareSED*risk)) + math.Log(float64(m)*float64(m+1))
			c2 := math.Log(others / slip)
			if total >= max(c1, c2)/100 && float64(total*(best-mean)) >= rho(c1)+rho(c2) {
				out[a] = end
				break
			}
		}
		most = max(most, out[a])
	}
	for a, mean := range means {
		if mean == best && tied == 0 {
			out[a] = most
		}
	}
	return out, nil
}
