package linear

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/sotto-dp/sotto/privacy"
)

// LinPriv is optimism with a regression for each arm, private rewards and public contexts (Neel and
// Roth 2018, "LinPriv: Reward-Private Linear UCB"; [Azize and Basu 2024, Appendix F-C]). The i-th
// vector of each decision set is arm i's context, and its mean reward is ⟨θ_i, x⟩. With V_i = λI +
// Σ xxᵀ over the rounds in which arm i was played, it plays
//
//	argmax_i ⟨θ̃_i, x_i⟩ + β_i‖x_i‖_{V_i⁻¹} + B_i‖V_i⁻¹x_i‖₂,   θ̃_i = V_i⁻¹(Σ x·r + η_i),
//
// where Σ x·r + η_i is released by a binary tree after each of the arm's rounds. The middle term is
// for the rewards and the last for the tree's noise, ‖η_i‖ ≤ B_i. Both are for the actual V_i;
// their constants are ours.
//
// Guarantee: ε-DP of the rewards (for Pure; Laplace noise as in the source), ρ-zCDP, (ε,δ)-DP or
// (α,ε)-RDP (normal noise). A reward is in one arm's tree. The vectors and what is played are public.
//
// Confidence: if every ‖θ_i‖ ≤ 1 and rewards are 1-subgaussian, all arms' means are within the two
// terms of their estimates in all rounds with probability at least 1−δ. Half of δ is shared out
// over the arms' ellipsoids (Abbasi-Yadkori, Pál and Szepesvári 2011, Theorem 2), half over the
// noises of all arms and counts.
//
// Regret: the source's Theorem 5, Õ(d√T + Kd log T/ε), is wrong. It rests on Σ_t ‖x_t‖_{V_t⁻¹} ≤ 2d
// log(1 + n/(λd)), which is true of the squares only; by Cauchy and Schwarz Σ_t ‖x_t‖_{V_t⁻¹} ≤
// √(2nd log(1 + n/(λd))), and with n = T/K for each of K arms the noise's part grows as √T: Õ(d√T +
// Kd√T/ε) [Azize and Basu 2024, Appendix F-C]. The displayed steps give K·√(2(T/K)d log(1+T/(Kλd)))
// = √(2KTd log(1+T/(Kλd))) times B/√λ, which is less by √(Kd).
//
// Until an arm has been played about B_i/β_i times, the noise in what was released of it makes it
// less certain than an arm that was never played, and optimism prefers it: at small budgets some
// arms wait long for their first round.
//
// At budget None there is no noise: LinUCB with disjoint arms.
type LinPriv struct {
	dim       int
	o         LinPrivOptions
	mechanism privacy.Mechanism
	bound     func(n int) float64 // of the noise after n rewards of an arm
	arms      []linPrivArm
	due       int // arm whose reward is not yet released, −1 if none
	y         []float64
}

type linPrivArm struct {
	now    *factor // V_i, of all that was played
	n      int     // rewards in the last release
	theta  []float64
	w      []float64 // ‖Wx‖₂ = ‖x‖_{V_i⁻¹}, at the last release
	radius float64   // β_i
	noise  float64   // B_i
}

// LinPrivOptions are the parameters of LinPriv.
type LinPrivOptions struct {
	Lambda float64 // λ, the ridge parameter of each arm, from 1e-12 to 1e12
	Risk   float64 // δ from 1e-300 to below 1, the probability that a confidence interval fails
}

// maxArms is the largest number of arms that have a regression each.
const maxArms = 1 << 16

// NewLinPriv returns LinPriv for decision sets of at most this many arms, at most 2^16, arm i being
// the i-th vector of each set, and a budget: Pure, as in the source, ZCDP, Approx or Renyi, or
// None. The horizon is at least one round.
func NewLinPriv(dim, arms, horizon int, b privacy.Budget, o LinPrivOptions) (*LinPriv, error) {
	switch {
	case dim < 1 || dim > maxDim:
		return nil, fmt.Errorf("lin-priv: dim is %d, must be between 1 and %d", dim, maxDim)
	case arms < 1 || arms > maxArms:
		return nil, fmt.Errorf("lin-priv: arms is %d, must be between 1 and %d", arms, maxArms)
	case horizon < 1:
		return nil, fmt.Errorf("lin-priv: horizon is %d, must be at least 1", horizon)
	case !(o.Lambda >= minLambda && o.Lambda <= maxLambda):
		return nil, fmt.Errorf("lin-priv: lambda is %v, must be between %v and %v", o.Lambda,
			minLambda, maxLambda)
	case !(o.Risk >= minRisk && o.Risk < 1):
		return nil, fmt.Errorf("lin-priv: risk is %v, must be at least %v and below 1", o.Risk, minRisk)
	case b == nil:
		return nil, errors.New("lin-priv: there is no budget")
	}
	p := &LinPriv{dim: dim, o: o, due: -1, y: make([]float64, dim), arms: make([]linPrivArm, arms)}
	x := math.Log(2) + math.Log(float64(arms)) + math.Log(float64(horizon)) - math.Log(o.Risk)
	switch b.(type) {
	case privacy.Pure, privacy.None:
		m, err := privacy.NewVectorTree(b, dim, horizon)
		if err != nil {
			return nil, fmt.Errorf("lin-priv: %w", err)
		}
		p.mechanism, p.bound = m, func(n int) float64 { return m.NoiseNorm(n, x) }
	default:
		m, err := privacy.NewGaussianVectorTree(b, horizon)
		if err != nil {
			return nil, fmt.Errorf("lin-priv: %w", err)
		}
		p.mechanism, p.bound = m, func(n int) float64 { return m.NoiseNorm(dim, n, x) }
	}
	for i := range p.arms {
		a := &p.arms[i]
		a.now = newFactor(dim, o.Lambda)
		a.theta, a.w = make([]float64, dim), make([]float64, len(a.now.v))
		p.estimate(a, 0)
	}
	return p, nil
}

// Mechanism is the counter of noisy Σ x·r, without noise for budget None.
func (p *LinPriv) Mechanism() privacy.Mechanism { return p.mechanism }

// Slots is one an arm.
func (p *LinPriv) Slots() int { return len(p.arms) }

// Due is the arm of the last round: its running sum is released before the next.
func (p *LinPriv) Due() int { return p.due }

// Learn takes the running sum of the arm that was due. A release that does not have d coordinates
// changes nothing.
func (p *LinPriv) Learn(released privacy.ReleasedVector) {
	if p.due < 0 {
		return
	}
	a := &p.arms[p.due]
	p.due = -1
	if released.Len() != p.dim {
		return
	}
	for i := range a.theta {
		a.theta[i] = released.At(i)
	}
	p.estimate(a, released.N())
}

// estimate makes what holds until the arm's next release, of n rewards, from their sum in theta.
func (p *LinPriv) estimate(a *linPrivArm, n int) {
	a.n = n
	a.now.solve(a.theta, a.theta)
	a.now.root(a.w)
	growth := max(0, a.now.logDet()-float64(float64(p.dim)*math.Log(p.o.Lambda)))
	a.radius = ellipsoidRadius(growth, p.o.Lambda, p.o.Risk/2/float64(len(p.arms)))
	a.noise = 0
	if n > 0 {
		a.noise = p.bound(n)
	}
}

// Choose plays the arm of the highest index, the first of equals, and counts its context into V. Of
// a set with more vectors than there are arms the rest is not looked at. The caller sees to it that
// there are len(actions) = K·d finite numbers, K ≥ 1, of vectors with ‖x‖ ≤ 1.
func (p *LinPriv) Choose(actions []float64) Choice {
	d := p.dim
	best, top := 0, math.Inf(-1)
	for i := range p.arms {
		if len(actions) < (i+1)*d {
			break
		}
		if score := p.score(&p.arms[i], actions[i*d:][:d]); score > top {
			best, top = i, score
		}
	}
	// also not −∞: there was no vector, or none of finite norm
	if math.Abs(top) <= math.MaxFloat64 {
		p.arms[best].now.add(actions[best*d:][:d])
	}
	p.due = best
	return Choice{Action: best, Slot: best}
}

// score is ⟨θ̃,x⟩ + β‖x‖_{V⁻¹} + B‖V⁻¹x‖₂, with V⁻¹x = Wᵀ(Wx).
func (p *LinPriv) score(a *linPrivArm, x []float64) float64 {
	mean, width := p.parts(a, x)
	return mean + width
}

func (p *LinPriv) parts(a *linPrivArm, x []float64) (mean, width float64) {
	for i, y := range x {
		mean += float64(a.theta[i] * y)
	}
	if a.noise == 0 {
		return mean, float64(a.radius * math.Sqrt(squaredRoot(a.w, x)))
	}
	y := p.y[:len(x)]
	clear(y)
	var q float64
	w := a.w
	for i := range x {
		row := w[:i+1]
		w = w[i+1:]
		var z float64
		for j, r := range row {
			z += float64(r * x[j])
		}
		q += float64(z * z)
		for j, r := range row {
			y[j] += float64(r * z)
		}
	}
	var r float64
	for _, z := range y {
		r += float64(z * z)
	}
	return mean, float64(a.radius*math.Sqrt(q)) + float64(a.noise*math.Sqrt(r))
}

// Interval is the estimate of ⟨θ_i, x⟩ and how far it may be off; both are 0 for an arm or a vector
// that there is not.
func (p *LinPriv) Interval(arm int, x []float64) (mean, width float64) {
	if uint(arm) >= uint(len(p.arms)) || len(x) != p.dim {
		return 0, 0
	}
	return p.parts(&p.arms[arm], x)
}

// Estimate is θ̃ of an arm, the caller's to keep; nil if there is no such arm.
func (p *LinPriv) Estimate(arm int) []float64 {
	if uint(arm) >= uint(len(p.arms)) {
		return nil
	}
	return slices.Clone(p.arms[arm].theta)
}

var _ Contextual = (*LinPriv)(nil)
