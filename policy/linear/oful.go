package linear

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/sotto-dp/sotto/privacy"
)

// OFUL is optimism on an ellipsoid for decision sets that change in each round, with rarely
// switched estimates: AdaC-OFUL ([Azize 2024, Algorithm 9], [Azize and Basu 2024, Algorithm 3]).
// With V_t = λI + Σ_{s≤t} a_s a_sᵀ, in each round it plays
//
//	argmax_a ⟨θ̃_τ, a⟩ + β̃_τ‖a‖_{V_τ⁻¹},   θ̃_τ = V_τ⁻¹(Σ_{s≤τ} a_s r_s + Y_1 + … + Y_ℓ),
//
// where τ is the last update. There is one whenever det V has grown by more than 1+C. Then the Σ
// a·r of the rounds since the last one is released, once, with its own noise Y_ℓ ~ N(0, (2/ρ)I):
// one reward in [−1,1] of an action with ‖a‖ ≤ 1 moves it by at most 2. θ̃ rests on the sum of all
// releases, and so on the sum of all their noises: noise drawn anew for the running sum would be a
// new release of old rewards.
//
// Guarantee: ρ-zCDP of the rewards in the sense of Interactive DP ([Azize 2024, Theorem 5.14],
// [Azize and Basu 2024, Theorem 3]): each reward is in one release, and when releases happen
// depends on V alone. Contexts and actions are public and not protected. Other budgets: 4b for 2/ρ,
// b the variance that the budget asks for at sensitivity 1 [Azize and Basu 2024, Appendix C-E]. At
// budget None it is RS-OFUL (Abbasi-Yadkori, Pál and Szepesvári 2011, Figure 3) with no noise and
// no term for it, and with EveryRound it is their OFUL (Figure 1), which updates after every round.
//
// Confidence: with ‖θ*‖ ≤ 1 (see Norm) and 1-subgaussian rewards, θ* is in {θ : ‖θ − θ̃_τ‖_{V_τ} ≤
// β̃_τ} at every update with probability at least 1−δ [Azize and Basu 2024, Theorem 14]. β̃_τ is
// ellipsoidRadius, of log(det V_τ/λ^d), plus noiseRadius, of the ℓ noises and λ_min(V_τ). Regret:
// O(d log T √T) + O((d²/√ρ) log²T) ([Azize 2024, Theorem 5.17], [Azize and Basu 2024, Theorem 5]),
// for the printed radius, λ ≥ 1 and an assumption that no law of contexts meets for d ≥ 2.
//
// Without a horizon (0) the noise's share δ of the risk is not divided by T: that ‖Y‖ of the first ℓ noises is
// beyond its bound is given 6δ/(π²ℓ²), which adds up to δ over ℓ = 1, 2, …. So all sets of a run without an end
// hold together with probability 1−δ, and nothing is started afresh. Privacy has no horizon: each reward is in
// one release, of the same noise. On that event the proof's sum is a bound at every T at once, with
// ℓ(T) ≤ MaxUpdates: its f has log(π²ℓ(T)²/(6δ)), of order log log T, where that of a known T has log(T/δ).
// Where the sets fail the regret may be 2T, so that its mean has a term 2δT, as with a horizon.
//
// Before the first update θ̃ = 0, and what is played is the longest action. Of equal scores the
// first is played.
//
// Choose, and Learn whenever Due, are for rewards that come at once. Where they come late, Best
// chooses, Play counts what was played, Cut ends a segment whenever Due, and Learn is of the oldest
// segment that was cut; the confidence set, and its radius, are then those of the decisions that
// were released: delay.go has the proof, and what delay costs.
type OFUL struct {
	dim, horizon int
	o            OFULOptions
	risk         float64 // of each event
	sigma        float64 // of a release, each coordinate

	now *factor // V_t
	// det V_τ/det V_t; unlike a determinant it cannot overflow, for a ratio much below
	// 1/(1+C) is an update
	shrunk float64
	t      int       // rounds chosen
	tau    int       // rounds at the last update
	ell    int       // updates
	sum    []float64 // of the releases

	theta  []float64 // θ̃_τ
	growth float64   // log(det V_τ/λ^d)
	radius float64   // β̃_τ
	bonus  float64   // (1 − Greed)β̃_τ, of ‖a‖ in the index
	w      []float64 // ‖Wa‖₂ = ‖a‖_{V_τ⁻¹}
	v      []float64 // V_τ

	late *late // nil while nothing was played by Play
}

// OFULOptions are the parameters of OFUL.
type OFULOptions struct {
	Lambda float64 // λ, the ridge parameter, from 1e-12 to 1e12
	// an update when det V is more than 1+C times what it was, C > 0 and finite; 0 with EveryRound
	C    float64
	Risk float64 // δ from 1e-300 to below 1, the probability that a confidence set fails
	// Printed bounds the smallest eigenvalue of V_τ by the printed λ + eigenvalueBound, and by λ
	// where that is less, and does not look at it.
	Printed bool
	// λ₀ > 0 of the printed bound, the smallest eigenvalue of E[aaᵀ]; not used without it
	Lambda0 float64
	// Split gives a third of the risk to each of the three events of the proof (rewards,
	// eigenvalues, noise), so that all hold with probability 1−δ. Without it each gets all of δ, as
	// printed, and the probability is 1−3δ. Fewer events (no noise, an eigenvalue that was looked
	// at) change nothing here: the twin at budget None is the same code, and differences between
	// the two are the noise's alone.
	Split bool
	// EveryRound updates after every round, as if C were 0. Only for budget None: it would
	// add T noises up.
	EveryRound bool
	// Greed, from 0 to 1, is the share of β̃_τ that choices leave out: at 0 they are the
	// algorithm's, at 1 they play the best estimate, ⟨θ̃_τ, a⟩. Privacy, confidence sets and
	// releases do not change; a bound on regret there is at 0 alone. Who is greedy needs others to
	// look around: a floor of uniform choices, or contexts that vary.
	Greed float64
	// Norm is S, a bound on ‖θ*‖ above 0 and at most 1e6, 0 for 1, the sources' own: √λ·S is a part
	// of β̃_τ. With it confidence sets hold for ‖θ*‖ ≤ S; means are from −1 to 1 all the same.
	Norm float64
}

const (
	// maxDim is the largest dimension: V has d² numbers.
	maxDim               = 1 << 10
	minLambda, maxLambda = 1e-12, 1e12
	maxNorm              = 1e6
	minRisk              = 1e-300 // shared out over events and rounds it is still a number
	// detMargin is by how much, relative to it, det V must exceed (1+C)det V_τ: where they are
	// equal, as with unit vectors they can be, rounding must not decide.
	detMargin = 1e-9
)

// NewOFUL returns OFUL for actions in ℝ^d, d from 1 to 1024, a horizon, 0 for none (only the bound on
// the noise depends on it) and a budget: ZCDP, Approx or Renyi for AdaC-OFUL, None for
// RS-OFUL and OFUL.
func NewOFUL(dim, horizon int, b privacy.Budget, o OFULOptions) (*OFUL, error) {
	if err := o.check(dim, horizon, b); err != nil {
		return nil, fmt.Errorf("oful: %w", err)
	}
	sigma, err := privacy.GaussianSigma(b)
	if err != nil {
		return nil, fmt.Errorf("oful: %w", err)
	}
	p := &OFUL{dim: dim, horizon: horizon, o: o, risk: o.Risk, sigma: 2 * sigma,
		now: newFactor(dim, o.Lambda), shrunk: 1}
	if o.Split {
		p.risk = o.Risk / 3
	}
	if o.Norm == 0 {
		p.o.Norm = 1
	}
	p.sum, p.theta = make([]float64, dim), make([]float64, dim)
	p.w, p.v = make([]float64, len(p.now.v)), make([]float64, len(p.now.v))
	p.estimate(p.now, 0)
	return p, nil
}

func (o OFULOptions) check(dim, horizon int, b privacy.Budget) error {
	switch {
	case dim < 1 || dim > maxDim:
		return fmt.Errorf("dim is %d, must be between 1 and %d", dim, maxDim)
	case horizon < 0:
		return fmt.Errorf("horizon is %d, must be at least 1, or 0 for none", horizon)
	case !(o.Lambda >= minLambda && o.Lambda <= maxLambda):
		return fmt.Errorf("lambda is %v, must be between %v and %v", o.Lambda, minLambda, maxLambda)
	case o.EveryRound && o.C != 0:
		return fmt.Errorf("c is %v, must be 0 with an update every round", o.C)
	case !o.EveryRound && !(o.C > 0 && o.C <= math.MaxFloat64):
		return fmt.Errorf("c is %v, must be above 0 and finite", o.C)
	case !(o.Risk >= minRisk && o.Risk < 1):
		return fmt.Errorf("risk is %v, must be at least %v and below 1", o.Risk, minRisk)
	case !(o.Norm >= 0 && o.Norm <= maxNorm):
		return fmt.Errorf("norm is %v, must be above 0 and at most %v, or 0 for 1", o.Norm, maxNorm)
	case !(o.Greed >= 0 && o.Greed <= 1):
		return fmt.Errorf("greed is %v, must be between 0 and 1", o.Greed)
	case !(o.Lambda0 >= 0 && o.Lambda0 <= math.MaxFloat64) || o.Printed && o.Lambda0 == 0:
		return fmt.Errorf("lambda0 is %v, must be above 0 and finite (0 only without the printed "+
			"radius)", o.Lambda0)
	}
	if _, none := b.(privacy.None); o.EveryRound && !none {
		return errors.New("an update every round must have no budget: it would add up the noise of every round")
	}
	return nil
}

// Mechanism is N(0, σ²I) with σ² = 2/ρ on Σ a·r, no noise for budget None.
func (p *OFUL) Mechanism() privacy.Mechanism { return privacy.VectorGaussian{Sigma: p.sigma} }

// Slots is 1: there are no releases but of all rewards since the last.
func (p *OFUL) Slots() int { return 1 }

// Dim is d.
func (p *OFUL) Dim() int { return p.dim }

// Due is 0 if det V_t > (1+C)·det V_τ, or with Play that of the last cut. What was played is
// public, and nothing else goes into it.
func (p *OFUL) Due() int {
	if float64((1+p.o.C)*p.shrunk) < 1-detMargin ||
		p.o.EveryRound && p.t > p.tau && (p.late == nil || p.late.rounds > 0) ||
		p.late != nil && p.late.rounds >= maxSegment {
		return 0
	}
	return -1
}

// Learn adds a release to those before and updates the estimate. A release that does not have d
// coordinates changes nothing, nor does, after Play, one of a segment that was not cut.
func (p *OFUL) Learn(released privacy.ReleasedVector) {
	if released.Len() != p.dim {
		return
	}
	if p.late != nil {
		p.late.learn(p, released)
		return
	}
	p.add(released)
	p.shrunk = 1
	p.estimate(p.now, p.t)
}

func (p *OFUL) add(released privacy.ReleasedVector) {
	for i := range p.sum {
		p.sum[i] += released.At(i)
	}
	p.ell++
}

// estimate makes what holds until the next update from the releases and V_τ, of τ rounds.
func (p *OFUL) estimate(v *factor, tau int) {
	p.tau = tau
	v.solve(p.theta, p.sum)
	v.root(p.w)
	copy(p.v, v.v)
	p.growth = max(0, v.logDet()-float64(float64(p.dim)*math.Log(p.o.Lambda)))
	p.radius = ellipsoidRadius(p.growth, p.o.Lambda, p.risk) +
		float64((p.o.Norm-1)*math.Sqrt(p.o.Lambda))
	if p.ell > 0 && p.sigma > 0 {
		p.radius += noiseRadius(p.dim, p.ell, p.sigma, p.noiseRisk(), p.eigenvalue(v))
	}
	p.bonus = float64((1 - p.o.Greed) * p.radius)
}

// noiseRisk is the share of the risk that the sum of ℓ noises is beyond its bound. Those of all ℓ add up to no
// more than the risk.
func (p *OFUL) noiseRisk() float64 {
	if p.horizon > 0 {
		return p.risk / float64(p.horizon)
	}
	return p.risk * 6 / (math.Pi * math.Pi * float64(p.ell) * float64(p.ell))
}

// eigenvalue is a lower bound on λ_min(V_τ). V is λI and what was added, so λ is one too,
// whatever the others say.
func (p *OFUL) eigenvalue(v *factor) float64 {
	x := p.o.Lambda
	if p.o.Printed {
		return max(x, x+eigenvalueBound(p.dim, p.tau, p.o.Lambda0, p.risk))
	}
	if v.bottom(x) {
		return x
	}
	if y := v.smallest(); y > x {
		return y
	}
	return x
}

// Choose plays the action of the highest index, and counts it into V. The caller sees to it that
// there are len(actions) = K·d finite numbers, K ≥ 1, of vectors with ‖a‖ ≤ 1 (the curator refuses
// others): there is no error to return. What is left over of a multiple of d is not looked at. With
// less than one action, or where the highest index is no finite number, nothing is counted into V.
func (p *OFUL) Choose(actions []float64) Choice {
	best, top := p.best(actions)
	p.t++
	// also not −∞: there was no action, or none of finite norm
	if math.Abs(top) <= math.MaxFloat64 {
		p.shrunk *= p.now.add(actions[best*p.dim:][:p.dim])
	}
	return Choice{Action: best}
}

// best is the action of the highest index, and the index.
func (p *OFUL) best(actions []float64) (best int, top float64) {
	p.settle()
	d := p.dim
	if d == 3 {
		return p.best3(actions)
	}
	top = math.Inf(-1)
	for i, rest := 0, actions; len(rest) >= d; i, rest = i+1, rest[d:] {
		if score := p.score(rest[:d]); score > top {
			best, top = i, score
		}
	}
	return best, top
}

// score is the index of an action.
func (p *OFUL) score(a []float64) float64 {
	var mean float64
	theta := p.theta[:len(a)]
	for j, x := range a {
		mean += float64(theta[j] * x)
	}
	if p.bonus == 0 {
		return mean
	}
	return mean + float64(p.bonus*math.Sqrt(squaredRoot(p.w, a)))
}

// best3 is the same for d = 3, the sources' dimension, bit for bit: the loops over so few
// coordinates cost three times as much as what they do.
func (p *OFUL) best3(actions []float64) (best int, top float64) {
	theta, w, bonus := [3]float64(p.theta), [6]float64(p.w), p.bonus
	top = math.Inf(-1)
	for i := 0; len(actions) >= 3; i++ {
		x, y, z := actions[0], actions[1], actions[2]
		actions = actions[3:]
		a := float64(w[0] * x)
		b := float64(w[1]*x) + float64(w[2]*y)
		c := float64(w[3]*x) + float64(w[4]*y) + float64(w[5]*z)
		q := float64(a*a) + float64(b*b) + float64(c*c)
		mean := float64(theta[0]*x) + float64(theta[1]*y) + float64(theta[2]*z)
		if score := mean + float64(bonus*math.Sqrt(q)); score > top {
			best, top = i, score
		}
	}
	return best, top
}

// Estimate is the confidence set of θ* at the last update: the centre θ̃_τ, the caller's to keep,
// and the radius β̃_τ in the norm of V_τ.
func (p *OFUL) Estimate() (theta []float64, radius float64) {
	p.settle()
	return slices.Clone(p.theta), p.radius
}

// Updates is ℓ, how many releases the estimate rests on: so many noises are in it.
func (p *OFUL) Updates() int { return p.ell }

// Covers says whether θ is in the confidence set, ‖θ − θ̃_τ‖_{V_τ} ≤ β̃_τ. It is false for vectors
// that do not have d coordinates.
func (p *OFUL) Covers(theta []float64) bool {
	p.settle()
	return within(theta, p.theta, p.v, p.radius)
}

// within says that θ has the centre's coordinates and ‖θ − centre‖_V ≤ radius.
func within(theta, centre, v []float64, radius float64) bool {
	if len(theta) != len(centre) {
		return false
	}
	x := slices.Clone(theta)
	for i := range x {
		x[i] -= centre[i]
	}
	return math.Sqrt(quadratic(v, x)) <= radius
}

// ellipsoidRadius is β_t of [Azize and Basu 2024, Theorem 14] (Abbasi-Yadkori, Pál and Szepesvári
// 2011, Theorem 2) for ‖θ*‖ ≤ 1:
//
//	√(2 log(1/δ) + log(det V_t/λ^d)) + √λ,
//
// the radius of an ellipsoid that least squares without privacy noise needs. growth is log(det
// V_t/λ^d), or ellipsoidGrowth, which is no smaller.
func ellipsoidRadius(growth, lambda, risk float64) float64 {
	return math.Sqrt(growth-2*math.Log(risk)) + math.Sqrt(lambda)
}

// ellipsoidGrowth is d log(1 + t/(λd)), which log(det V_t/λ^d) does not exceed if ‖a‖ ≤ 1 ([Azize
// and Basu 2024, Theorem 14], step 5).
func ellipsoidGrowth(dim, t int, lambda float64) float64 {
	d := float64(dim)
	return float64(d * math.Log1p(float64(t)/float64(lambda*d)))
}

// MaxUpdates is ellipsoidGrowth/log(1+C): OFUL has had at most so many updates after t rounds if
// ‖a‖ ≤ 1 ([Azize and Basu 2024, Theorem 14], step 5).
func MaxUpdates(dim, t int, lambda, c float64) float64 {
	return ellipsoidGrowth(dim, t, lambda) / math.Log1p(c)
}

// normalNorm is f(d,δ) = d + 2√(d log(1/δ)) + 2 log(1/δ), which ‖X‖² of X ~ N(0,I_d) exceeds
// with probability at most δ [Azize and Basu 2024, Lemma 10]. The f of GOPE is another: it
// has 2/δ for 1/δ.
func normalNorm(dim int, risk float64) float64 {
	d, l := float64(dim), -math.Log(risk)
	return d + 2*math.Sqrt(float64(d*l)) + 2*l
}

// noiseRadius is the radius's term for privacy: √(ℓσ²·f(d,δ)/e), which the norm of V⁻¹ of ℓ noises
// N(0,σ²I) together exceeds with probability at most δ, where e is a lower bound on V's smallest
// eigenvalue. OFUL's δ is the noise's share of the risk over T, in both logarithms; the printed γ_t
// has δ in one and δ/T in the other, which its proof does not support ([Azize and Basu 2024,
// Theorem 14], step 4). A sharper bound for a fixed V would be of no use: V depends on the noise
// through what was played.
func noiseRadius(dim, updates int, sigma, risk, eigenvalue float64) float64 {
	return float64(sigma * math.Sqrt(float64(float64(updates)*normalNorm(dim, risk))/eigenvalue))
}

// eigenvalueBound is λ₀t/4 − 8L − 2√(tL) with L = log((t+3)d/δ), a lower bound on the smallest
// eigenvalue of Σ a aᵀ after t rounds, for all t with probability 1−δ ([Azize and Basu 2024, Lemma
// 12], Gentile et al.). It is negative for very long, and what it assumes of the contexts holds for
// no law of them if d ≥ 2: averaged over directions z the variance of ⟨z,a⟩² is at least
// 2(d−1)λ₀/(d(d+2)), above the λ₀²/(8 log 4k) allowed. So OFUL's default is to look at the smallest
// eigenvalue of V_τ, which is as public; and where the printed bound is negative, λ is what it has.
func eigenvalueBound(dim, t int, lambda0, risk float64) float64 {
	n := float64(t)
	l := math.Log(float64((n+3)*float64(dim)) / risk)
	return float64(lambda0*n)/4 - 8*l - 2*math.Sqrt(float64(n*l))
}

var _ Contextual = (*OFUL)(nil)
