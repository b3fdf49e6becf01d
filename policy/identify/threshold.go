package identify

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// A Threshold says how high the cost of the answer a against arm b must be for the rule to stop.
// One is called δ-correct, for a cost, if with any sampling rule the probability of stopping with a
// wrong answer is at most δ.
type Threshold interface {
	At(a, b Sample) float64
}

// CG is the function 𝒞_G of [Azize 2024, (C.30)], the minimum over λ in (1/2, 1) of (g_G(λ) + x)/λ,
//
//	g_G(λ) = 2λ − 2λ log(4λ) + log ζ(2λ) − ½ log(1−λ),
//
// for x ≥ 0. At both ends the function is +∞. Its customary approximation x + log x is too small
// below x = 6.1 and too large above.
func CG(x float64) float64 {
	if !(x >= 0) {
		return math.NaN()
	}
	if math.IsInf(x, 1) {
		return x
	}
	// In κ = −log(2−2λ) the minimum lies between log(1+x) − 0.01 and log(1+x) + 1.72 for all x.
	at := func(kappa float64) float64 {
		rest := float64(0.5 * math.Exp(-max(kappa, 1e-3))) // 1−λ
		l := 1 - rest
		g := float64(2*l*(1-math.Log(4*l))) + math.Log(mathext.Zeta(2*l, 1)) - float64(0.5*math.Log(rest))
		return (g + x) / l
	}
	return minimum(at, math.Log1p(x)-0.1, math.Log1p(x)+2)
}

// WBar is W̄₋₁(x) = −W₋₁(−e^{−x}) for x ≥ 1, W₋₁ the negative branch of Lambert's W: the solution y
// ≥ 1 of y − log y = x. It is about x + log x.
func WBar(x float64) float64 {
	if !(x >= 1) {
		return math.NaN()
	}
	return 1 + excessInverse(x-1)
}

// excessInverse is h⁻¹(y) for y ≥ 0, where h(c) = c − log(1+c): WBar(1+y) − 1, by Newton's method.
// As h is convex and h⁻¹(y) ≤ y + √(2y), the steps go down from there.
func excessInverse(y float64) float64 {
	if y == 0 || math.IsInf(y, 1) {
		return y
	}
	c := y + math.Sqrt(2*y)
	for range 60 {
		step := (c - math.Log1p(c) - y) * (1 + c) / c
		c -= step
		if math.Abs(step) <= 1e-15*c {
			break
		}
	}
	return c
}

// excessLeast is below excessInverse, and is found without a search: c = y + log(1+c), and c ≥ y.
func excessLeast(y float64) float64 { return y + math.Log1p(y+math.Log1p(y)) }

// iterated is 4 + log ω inside its logarithm: what time-uniform concentration costs.
func iterated(n float64) float64 { return math.Log(4 + math.Log(n)) }

// union is the part of a threshold that stays the same: K, δ, s and ζ(s).
type union struct {
	arms       float64
	risk       float64
	s, logZeta float64
}

func newUnion(arms int, risk, s float64) union {
	return union{float64(arms), risk, s, math.Log(mathext.Zeta(s, 1))}
}

// pair is log(parts·(K−1)ζ(s)²k_a^s k_b^s/δ).
func (u *union) pair(parts float64, a, b Sample) float64 {
	return math.Log(parts*(u.arms-1)/u.risk) + 2*u.logZeta +
		u.s*(math.Log(float64(a.Phase))+math.Log(float64(b.Phase)))
}

// one is log(parts·Kζ(s)k_c^s/δ).
func (u *union) one(parts float64, c Sample) float64 {
	return math.Log(parts*u.arms/u.risk) + u.logZeta + u.s*math.Log(float64(c.Phase))
}

// GaussianThreshold is [Azize 2024, (5.10)], 2𝒞_G(½ log((K−1)/δ)) + 2 log(4 + log ω_a) + 2 log(4
// + log ω_b). It is δ-correct for GaussianCost with means that rest on all rewards of
// σ-sub-Gaussian arms and are looked at after every round ([Azize 2024, Lemma C.32]; Kaufmann and
// Koolen 2021, Theorem 9).
type GaussianThreshold struct{ constant float64 }

// NewGaussianThreshold returns it for a number of arms ≥ 2 and a risk in (0,1).
func NewGaussianThreshold(arms int, risk float64) (GaussianThreshold, error) {
	if err := checkTask(arms, risk); err != nil {
		return GaussianThreshold{}, err
	}
	return GaussianThreshold{2 * CG(math.Log(float64(arms-1)/risk)/2)}, nil
}

// At implements Threshold.
func (t GaussianThreshold) At(a, b Sample) float64 {
	return t.constant + 2*iterated(a.N) + 2*iterated(b.N)
}

// AdaPTTThreshold is that of AdaP-TT, [Azize 2024, (5.11)], for phases that forget and double. With
// ζ = ζ(s) and k the phase,
//
//	4𝒞_G(½ log(2(K−1)ζ²k_a^s k_b^s/δ)) + 4 Σ log(4 + log ω_c) + Σ log²(2Kζk_c^s/δ)/(ε²σ²ω_c),   sums over c ∈ {a,b}.
//
// It is δ-correct for GaussianCost with the same σ [Azize 2024, Lemma 5.18]: δ/2 for the rewards,
// δ/2 for the noise. ([Azize et al. 2023, Theorem 4] prints one ζ(s) for the two arms; the sum over
// both phases needs ζ(s)².)
type AdaPTTThreshold struct {
	union
	sigma float64
}

// NewAdaPTTThreshold returns it for a number of arms ≥ 2, a risk in (0,1), an exponent s > 1 and a
// sigma > 0, 1/2 for rewards in [0,1].
func NewAdaPTTThreshold(arms int, risk, s, sigma float64) (AdaPTTThreshold, error) {
	if err := checkThreshold(arms, risk, s, sigma); err != nil {
		return AdaPTTThreshold{}, err
	}
	return AdaPTTThreshold{newUnion(arms, risk, s), sigma}, nil
}

// At implements Threshold.
func (t AdaPTTThreshold) At(a, b Sample) float64 {
	return 4*CG(t.pair(2, a, b)/2) + t.rest(a, b)
}

// rest is all but the term in 𝒞_G.
func (t *AdaPTTThreshold) rest(a, b Sample) float64 {
	return 4*(iterated(a.N)+iterated(b.N)) + t.noise(a) + t.noise(b)
}

func (t *AdaPTTThreshold) noise(c Sample) float64 {
	x := (t.one(2, c) + c.Log) * c.Scale / t.sigma
	return x * x / c.N
}

// leastCG is below 𝒞_G(0) = 1.41690…; as the slope of 𝒞_G is 1/λ > 1, 𝒞_G(x) ≥ x + leastCG.
const leastCG = 1.416

// AtLeast is below At, and is found without a minimisation.
func (t AdaPTTThreshold) AtLeast(a, b Sample) float64 {
	return 4*(t.pair(2, a, b)/2+leastCG) + t.rest(a, b)
}

// AdaPTTStarThreshold is that of AdaP-TT*, [Azize 2024, (5.14)], for phases that forget and double.
// With ζ = ζ(s), k the phase, ℓ_c = log(3Kζk_c^s/δ) and h_c = ½W̄₋₁(2ℓ_c + 4 log(4 + log ω_c) + ½),
// it is, where the gap of the private means is below 3ε,
//
//	2𝒞_G(½ log(3(K−1)ζ²k_a^s k_b^s/δ)) + 2 Σ log(4 + log ω_c) + Σ ℓ_c²/(2ε²σ²ω_c) + (√2/(εσ)) Σ √(h_c/ω_c) ℓ_c,
//
// and otherwise (3/σ²) max ℓ_c + (3ε/(√2σ)) Σ √(ω_c h_c). It is δ-correct for PrivateGaussianCost
// with the same σ and ε [Azize 2024, Lemma 5.21]: the risk is split in three, shared by both cases.
// (The print of the second case drops the power s of k, which the union bound needs.)
type AdaPTTStarThreshold struct {
	union
	sigma, epsilon float64
}

// NewAdaPTTStarThreshold returns it for a number of arms ≥ 2, a risk in (0,1), an exponent s > 1, a
// sigma > 0, 1/2 for rewards in [0,1], and the cost's epsilon > 0.
func NewAdaPTTStarThreshold(arms int, risk, s, sigma, epsilon float64) (AdaPTTStarThreshold, error) {
	if err := checkThreshold(arms, risk, s, sigma); err != nil {
		return AdaPTTStarThreshold{}, err
	}
	if err := checkEpsilon(epsilon); err != nil {
		return AdaPTTStarThreshold{}, err
	}
	return AdaPTTStarThreshold{newUnion(arms, risk, s), sigma, epsilon}, nil
}

// At implements Threshold.
func (t AdaPTTStarThreshold) At(a, b Sample) float64 {
	if !(max(a.Mean-b.Mean, 0) < 3*t.epsilon) {
		return t.AtLeast(a, b)
	}
	return 2*CG(t.pair(3, a, b)/2) + t.near(a, b)
}

// AtLeast is below At, and is found without a minimisation.
func (t AdaPTTStarThreshold) AtLeast(a, b Sample) float64 {
	if max(a.Mean-b.Mean, 0) < 3*t.epsilon {
		return 2*(t.pair(3, a, b)/2+leastCG) + t.near(a, b)
	}
	la, ha := t.logs(a)
	lb, hb := t.logs(b)
	// The noise of a sum is at most Scale·(ℓ + Log), Scale = 1/ε but for rounding.
	noise := 3 * t.epsilon * max(a.Scale*(la+a.Log), b.Scale*(lb+b.Log)) / (t.sigma * t.sigma)
	return noise + 3*t.epsilon/(math.Sqrt2*t.sigma)*(math.Sqrt(a.N*ha)+math.Sqrt(b.N*hb))
}

// near is all but the term in 𝒞_G of the first case.
func (t *AdaPTTStarThreshold) near(a, b Sample) float64 {
	v := 2 * (iterated(a.N) + iterated(b.N))
	for _, c := range [2]Sample{a, b} {
		l, h := t.logs(c)
		x := (l + c.Log) * c.Scale / t.sigma
		v += x*x/(2*c.N) + math.Sqrt2*math.Sqrt(h/c.N)*x
	}
	return v
}

// logs are ℓ_c and h_c.
func (t *AdaPTTStarThreshold) logs(c Sample) (l, h float64) {
	l = t.one(3, c)
	return l, WBar(2*l+4*iterated(c.N)+0.5) / 2
}

// PublishedThreshold is what the program published with [Azize et al. 2023] compares
// its statistic with,
//
//	log(1/δ) + log(1 + log ω_a) + log(1 + log ω_b) + (1/ω_a + 1/ω_b)(log(1/δ)/ε)².
//
// No δ-correctness is proved for it. The program's statistic has σ = 1 (see PublishedAdaPTT): one
// with σ = 1/2 is four times as large, and stops far too soon.
type PublishedThreshold struct{ log float64 }

// NewPublishedThreshold returns it for a risk in (0,1).
func NewPublishedThreshold(risk float64) (PublishedThreshold, error) {
	if err := checkRiskIn(risk); err != nil {
		return PublishedThreshold{}, err
	}
	return PublishedThreshold{-math.Log(risk)}, nil
}

// At implements Threshold.
func (t PublishedThreshold) At(a, b Sample) float64 {
	x := t.log * max(a.Scale, b.Scale)
	return t.log + math.Log1p(math.Log(a.N)) + math.Log1p(math.Log(b.N)) + (1/a.N+1/b.N)*x*x
}

// JointThreshold is h⁻¹(log((K−1)ζ(s)²/δ) + s log(k_a k_b)), with h(c) = c − log(1+c), so that
// h⁻¹(y) = W̄₋₁(1+y) − 1, and k the phase. It is for DEpsCost where means carry one noise each
// (phases that forget), and for NoisyCost where they carry one a phase. With a cap of M phases an
// arm it is h⁻¹(log((K−1)M²/δ)), and +Inf beyond.
//
// Theorem. For independent rewards in [0,1], one best arm, deterministic ends of the phases and any
// sampling rule that is a function of releases, the rule that answers â = argmax μ̃, when W(â,b) >
// JointThreshold for all b ≠ â, is wrong with probability at most δ.
//
// A release may have several Laplace noises of the same scale, as between two servers: then n and
// the ends of phases are as before, and m counts all noises in a mean.
//
// Proof. Fix a table in advance: entry j of arm a is the reward of its j-th play, and each (arm,
// phase) has its noises, all independent. Write D for the cost's divergence, d_ε or J_{m/n},
// D⁺(x,u) for D(x,u) if u > x and 0 otherwise, D⁻ for its mirror image, and n for the rewards
// behind a mean μ̃. For a phase k let
//
//	X_k     = n D⁺(μ̃_{a*,k}, μ_{a*})         how much the best arm looks too bad,
//	Y_{a,k} = n D⁻(μ̃_{a,k}, μ_a), a ≠ a*,    how much arm a looks too good.
//
// (1) Each is stochastically at most Exp(1). For nμ̃ = S + L_1 + … + L_m, 0 ≤ λ < ε and x ≥ μ, P(S
// + ΣL ≥ nx) ≤ E e^{λ(S−nx)} E e^{λΣL}, where E e^{λS} ≤ (1−μ+μe^λ)^n by convexity and E e^{λL} =
// 1/(1−λ²/ε²), or less for discrete noise: (cosh ε−1)/(cosh ε−cosh λ), as (cosh λ−1)/λ² grows in λ.
// The best λ gives exp(−n J_{m/n}(x,μ)). For m = 1 that factor is not needed: P(L ≥ v) ≤ e^{−λv}
// for every λ in [0,ε], so that conditioning on S gives exp(−n d_ε(x,μ)). Below μ it is the mirror
// image. As D(·,μ) is monotone on either side of μ, P(nD ≥ c) ≤ e^{−c} for c > 0. Clipping μ̃ to
// [0,1] only lowers nD.
//
// (2) For fixed phases X_k and Y_{a,k'} are independent, as the arms differ; so
// P(X_k + Y_{a,k'} ≥ c) ≤ P(Gamma(2,1) ≥ c) = (1+c)e^{−c} = e^{−h(c)}.
//
// (3) If the answer is a ≠ a*, then taking u = μ_a in the infimum, W(a,a*) ≤ Y_{a,k'} + n
// D⁺(μ̃_{a*,k}, μ_a) ≤ Y_{a,k'} + X_k, as μ_a < μ_{a*} and D⁺ does not decrease in u.
//
// (4) So for some a and phases k of a*, k' of a, X_k + Y_{a,k'} is above h⁻¹(y), which has
// probability at most e^{−y} = δ/((K−1)ζ(s)²k^s k'^s), or δ/((K−1)M²) for k, k' ≤ M. The sum over
// phases and over K−1 arms is at most δ. ∎
type JointThreshold struct {
	union
	phases int // M; 0: none
}

// NewJointThreshold returns it for a number of arms ≥ 2, a risk in (0,1) and an exponent s > 1.
func NewJointThreshold(arms int, risk, s float64) (JointThreshold, error) {
	if err := checkThreshold(arms, risk, s, 1); err != nil {
		return JointThreshold{}, err
	}
	return JointThreshold{newUnion(arms, risk, s), 0}, nil
}

// NewCappedJointThreshold returns it with weights that are uniform over a known number of phases ≥
// 1. The rule never stops on an arm beyond them.
func NewCappedJointThreshold(arms int, risk float64, phases int) (JointThreshold, error) {
	if err := checkTask(arms, risk); err != nil {
		return JointThreshold{}, err
	}
	if err := checkPhases(phases); err != nil {
		return JointThreshold{}, err
	}
	return JointThreshold{union{arms: float64(arms), risk: risk}, phases}, nil
}

// At implements Threshold.
func (t JointThreshold) At(a, b Sample) float64 { return excessInverse(t.excess(a, b)) }

// AtLeast is below At, and is found without a search.
func (t JointThreshold) AtLeast(a, b Sample) float64 {
	return float64((1 - 1e-12) * excessLeast(t.excess(a, b)))
}

// excess is c − log(1+c) of the threshold c.
func (t JointThreshold) excess(a, b Sample) float64 {
	switch m := float64(t.phases); {
	case t.phases == 0:
		return t.pair(1, a, b)
	case max(a.Phase, b.Phase) > t.phases:
		return math.Inf(1)
	default:
		return math.Log((t.arms-1)/t.risk) + 2*math.Log(m)
	}
}

// PerArmThreshold is Σ_{c∈{a,b}} m_c W̄₋₁(1 + log(Kζ(s)k_c^s/δ)/m_c), m the noises and k the phase,
// for DEpsCost whatever the number of noises. It has the shape of the threshold that DP-TT's
// authors state, log(1/δ) + log n·log(1 + εn/log n) for each arm, and pays log(1/δ) twice where
// JointThreshold pays it once.
//
// Theorem. Under the conditions of JointThreshold's theorem this one is δ-correct too.
//
// Proof. With λ = (1−θ)λ° in J's supremum, λ° ≤ ε that of d_ε and θ = m/(n d_ε) ≤ 1, and
// log(1−(λ/ε)²) ≥ log(1−(1−θ)²) ≥ log θ, the concavity of λx − log(1−u+ue^λ) gives n J_{m/n} ≥ n
// d_ε − m − m log(n d_ε/m). So n d_ε ≥ m W̄₋₁(1 + x/m) makes n J ≥ x, which has probability at most
// e^{−x} by step 1 of that proof; x = log(Kζ(s)k^s/δ), summed over phases and over the one side of
// each of the K arms that matters, gives δ. Outside all these events X and Y, with d_ε, are below
// their terms, and step 3 ends the proof. ∎
type PerArmThreshold struct{ union }

// NewPerArmThreshold returns it for a number of arms ≥ 2, a risk in (0,1) and an exponent s > 1.
func NewPerArmThreshold(arms int, risk, s float64) (PerArmThreshold, error) {
	if err := checkThreshold(arms, risk, s, 1); err != nil {
		return PerArmThreshold{}, err
	}
	return PerArmThreshold{newUnion(arms, risk, s)}, nil
}

// At implements Threshold.
func (t PerArmThreshold) At(a, b Sample) float64 { return t.arm(a) + t.arm(b) }

func (t *PerArmThreshold) arm(c Sample) float64 {
	x := t.one(1, c)
	if c.Noises == 0 || c.Scale == 0 {
		return x // no noise: Chernoff's bound itself
	}
	m := float64(c.Noises)
	return m * (1 + excessInverse(x/m))
}
