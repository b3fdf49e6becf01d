package stopping

import (
	"fmt"
	"math"
)

// newDPExponentialNAS returns DP exponential NAS, [Sajed 2019, Algorithm 8]: DP-NAS that asks after
// t = 2, 4, 8, … samples only, so that question number k has h_t = R√((2/t)·log(16k²/β)) and
// log(8k²/β) in c_t. It is an ε-DP (α,β)-rule [Sajed 2019, Corollary 4.1.2], and with probability
// at least 1−β it stops within UpperBound samples [Sajed 2019, Theorem 4.1.3].
//
// alpha and beta are in (0,1); epsilon > 0, +Inf for none; r > 0 bounds the samples, in their unit.
func newDPExponentialNAS(alpha, beta, epsilon, r float64) (Rule, error) {
	return newRule(kind{name: "dp-exp-nas", doubles: true, hoeffding: 16, query: 8, private: true},
		alpha, beta, epsilon, r)
}

// UpperBound is t_U of [Sajed 2019, Theorem 4.1.3]: with probability at least 1−β, DP exponential
// NAS with the rule's parameters has stopped after
//
//	2000(t₀ + t₁ + t₂),   t₀ = R²ℓ/(αμ)²,   t₁ = Rℓ/(ε|μ|),   t₂ = R log(1/β)/(εα|μ|),   ℓ = log((1/β)·log(R/(α|μ|)))
//
// samples of mean mu, for β ≤ 0.08 and 0 < |μ| ≤ R. It is about laws: of real data, mu is
// what nobody may see.
//
// Where α|μ| is nearly R the printed bound is too small (α = 0.92, β = 0.08 and |μ| = R: 98
// samples, where the rule takes 128): ℓ is then next to 0, or below. So what the proof needs is
// checked, that under its event the rule must stop by a question after t_U/2 to t_U samples; if
// not, there is no bound.
func (r Rule) UpperBound(mu float64) (float64, error) {
	x := math.Abs(mu)
	l := math.Log(math.Log(r.r/(r.alpha*x)) / r.beta)
	switch {
	case !(x > 0 && x <= r.r):
		return 0, fmt.Errorf("the bound on samples: the mean is %v, must not be 0, and in [−%v, "+
			"%[2]v]", mu, r.r)
	case r.beta > 0.08:
		return 0, fmt.Errorf("the bound on samples: beta is %v, must be at most 0.08", r.beta)
	case !(l > 0):
		return 0, fmt.Errorf("the bound on samples: log(R/(α|μ|)) is %v, must be above beta",
			math.Log(r.r/(r.alpha*x)))
	}
	q := r.r / x
	t0, t1, t2 := float64(q*q)*l/(r.alpha*r.alpha), q*l/r.epsilon, q*math.Log(1/r.beta)/(r.epsilon*r.alpha)
	upper := 2000 * (t0 + t1 + t2)
	if !math.IsInf(upper, 1) && !r.stopsAfter(upper/2, x) {
		return 0, fmt.Errorf("the bound on samples: log(R/(α|μ|)) is %v, too near 0 for [Sajed 2019, "+
			"Theorem 4.1.3]", math.Log(r.r/(r.alpha*x)))
	}
	return upper, nil
}

// stopsAfter says that under the event of the proof of [Sajed 2019, Theorem 4.1.3] the rule stops
// at its question after t samples or after more: that
//
//	|μ| ≥ h_t(2 + 1/α) + (24R log(4/β) + 24R log(8k²/β) + 4R log(4/β)/α)/(εt),   k = log₂ t.
func (r Rule) stopsAfter(t, mu float64) bool {
	k, logs := math.Log2(t), math.Log(4/r.beta)
	h := math.Sqrt(2 / t * math.Log(16*k*k/r.beta))
	noise := (24*logs + 24*math.Log(8*k*k/r.beta) + 4*logs/r.alpha) / r.epsilon
	return t >= 2 && mu/r.r >= h*(2+1/r.alpha)+noise/t
}

// LowerBound is n of [Sajed 2019, Theorem 4.2.1], R log(1/β)/(12εα|μ|), for β < 1/4: on the law of
// mean mu on {−R, R}, every ε-DP (α,β)-rule takes more than n samples with probability above 1/4.
// Other laws of that mean may be easier. It is 0 without privacy.
func (r Rule) LowerBound(mu float64) (float64, error) {
	x := math.Abs(mu)
	switch {
	case !(x > 0 && x <= r.r):
		return 0, fmt.Errorf("the lower bound on samples: the mean is %v, must not be 0, and in "+
			"[−%v, %[2]v]", mu, r.r)
	case r.beta >= 0.25:
		return 0, fmt.Errorf("the lower bound on samples: beta is %v, must be below 0.25", r.beta)
	}
	return r.r / x * math.Log(1/r.beta) / (12 * r.epsilon * r.alpha), nil
}
