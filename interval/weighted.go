package interval

import (
	"fmt"
	"math"
)

// Weighted is all that was released of the earnings of a rule that was not played: sums of X = w·r,
// the reward r in [0,1] of what was played times the weight w in [0,1] that it has by the rule.
type Weighted struct {
	Sums
	Squares float64 // Σ w², which is public
}

// Interval is a confidence interval for the mean of E[X_s | all before decision s is played], over
// the decisions s that were released, that holds at all times together, as Sums.Interval does: of
// what differs from decision to decision, the mean so far. It is assumed that a decision's weight and
// reward are drawn given all before it (of decisions that wait for rewards, less), that noise is
// independent of all else, and that where releases end depends on no reward that was not released.
//
// Proof. For ξ ≥ −1 and 0 ≤ λ < 1, e^{λξ − ψ(λ)ξ²} ≤ 1 + λξ with ψ(λ) = −log(1−λ) − λ (Fan, Grama
// and Liu 2015). With ξ = X, E e^{λX − ψX²} ≤ 1 + λμ ≤ e^{λμ}, and with ξ = −X, E e^{−λX − ψX²} ≤
// e^{−λμ}. So with noise Z_k of release k, E e^{±λZ} ≤ e^{c(λ)},
//
//	Π_s e^{±λ(X_s−μ_s) − ψ(λ)X_s²} · Π_k e^{±λZ_k − c(λ)}
//
// is a supermartingale that begins at 1. As X ≤ w, it is at least e^{±λ(S−Σμ) − ψ(λ)Σw² − ℓc(λ)}
// with what was released, S of ℓ releases; by Ville's inequality that is ever at least m/risk with
// probability risk/m at most, and there are m = 72 of it: both signs, and λ_0 2^{−j/2}, j < 36. The
// interval is what none of them excludes, |S − Σμ| ≤ min_λ (log(m/risk) + ψ(λ)Σw² + ℓc(λ))/λ. It
// adapts to how often weights are large, not to the variance of rewards, which nobody has seen.
// Σw² is of the weights that were counted. That reward, weight and product are each rounded to 2^-20
// moves a mean by half of that three times at most, which the interval has beside it.
func (s Weighted) Interval(risk float64) (lo, hi float64, err error) {
	level, err := levelOf(risk)
	if err != nil {
		return 0, 1, err
	}
	if _, err := s.mixture(); err != nil { // the other fields
		return 0, 1, err
	}
	if !(s.Squares >= 0 && s.Squares <= float64(s.N)*(1+1e-9)) {
		return 0, 1, fmt.Errorf("interval: the sum of squared weights is %v, must be from 0 to %d",
			s.Squares, s.N)
	}
	if s.N == 0 {
		return 0, 1, nil
	}
	top, cost, err := noiseCost(s.Noise)
	if err != nil {
		return 0, 1, err
	}
	width := math.Inf(1)
	for j := range mixedTerms {
		lambda := min(top, mixedNoise) * math.Pow(2, -float64(j)/2)
		psi := -math.Log1p(-lambda) - lambda
		width = min(width, (level+math.Log(2*mixedTerms)+float64(psi*s.Squares)+
			float64(float64(s.noises())*cost(lambda)))/lambda)
	}
	n := float64(s.N)
	lo, hi = (s.Sum-width)/n-3*rounding, (s.Sum+width)/n+3*rounding
	return min(1, max(0, lo)), max(0, min(1, hi)), nil
}
