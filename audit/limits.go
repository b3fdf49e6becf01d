package audit

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

func checkDelta(delta float64) error {
	if !(delta >= 0 && delta < 1) {
		return fmt.Errorf("audit: %w: δ = %v", ErrDelta, delta)
	}
	return nil
}

func checkGamma(gamma float64) error {
	if !(gamma > 0 && gamma < 1) {
		return fmt.Errorf("audit: %w: γ = %v", ErrConfidence, gamma)
	}
	return nil
}

func checkLoss(epsilon, delta float64) error {
	if !(epsilon >= 0) {
		return fmt.Errorf("audit: ε is %v, must be at least 0", epsilon)
	}
	return checkDelta(delta)
}

// AdvantageLimit is the largest advantage of any adversary against an (ε,δ)-DP mechanism: (e^ε − 1
// + 2δ)/(e^ε + 1), of Humphries et al. [Azize 2024, §2.3.6]. Some mechanism attains it.
func AdvantageLimit(epsilon, delta float64) (float64, error) {
	if err := checkLoss(epsilon, delta); err != nil {
		return 0, err
	}
	return math.Tanh(epsilon/2) + 2*delta/(math.Exp(epsilon)+1), nil
}

// AdvantageLimitErlingsson is the looser 1 − e^{−ε}(1 − δ) [Azize 2024, §2.3.6].
func AdvantageLimitErlingsson(epsilon, delta float64) (float64, error) {
	if err := checkLoss(epsilon, delta); err != nil {
		return 0, err
	}
	return -math.Expm1(-epsilon) + delta*math.Exp(-epsilon), nil
}

// AdvantageLimitYeom is e^ε − 1, the first such limit, for pure DP [Azize 2024, §2.3.6]. It says
// nothing from ε = log 2 on.
func AdvantageLimitYeom(epsilon float64) (float64, error) {
	if err := checkLoss(epsilon, 0); err != nil {
		return 0, err
	}
	return math.Expm1(epsilon), nil
}

// TradeOff is f_{ε,δ}(α) of [Azize 2024, (2.30)]: the smallest Type II error that (ε,δ)-DP allows
// at a Type I error of at most α. It is where [Azize 2024, (2.28) and (2.29)] meet.
func TradeOff(epsilon, delta, alpha float64) (float64, error) {
	if err := checkLoss(epsilon, delta); err != nil {
		return 0, err
	}
	if !(alpha >= 0 && alpha <= 1) {
		return 0, fmt.Errorf("audit: α is %v, must be in [0, 1]", alpha)
	}
	steep := 1 - delta
	if alpha > 0 { // not ∞·0
		steep -= math.Exp(epsilon) * alpha
	}
	return max(0, steep, math.Exp(-epsilon)*(1-delta-alpha)), nil
}

// PowerLimit is 1 − f_{ε,δ}(α): the largest power at significance α that (ε,δ)-DP
// allows [Azize 2024, §2.3.6].
func PowerLimit(epsilon, delta, alpha float64) (float64, error) {
	f, err := TradeOff(epsilon, delta, alpha)
	return 1 - f, err
}

// GaussianTradeOff is G_μ(α) = Φ(Φ^{-1}(1−α) − μ), the trade-off function of μ-Gaussian DP (Dong,
// Roth and Su 2022; [Azize 2024, Remark 2.33]).
func GaussianTradeOff(mu, alpha float64) float64 {
	return 1 - powerOf(mu, alpha)
}

// ReconstructionLimit is the largest probability with which anyone guesses which of k equally likely
// values a record has, from the output of an (ε,δ)-DP mechanism: (e^ε + (k−1)δ)/(e^ε + k − 1).
//
// Proof: let P_v(v) be the probability of the guess v for the value v. P_v(v) ≤ e^ε P_u(v) + δ for
// the k−1 values u ≠ v, and Σ_v Σ_{u≠v} P_u(v) = Σ_u (1 − P_u(u)). Summing, (k−1)s ≤ e^ε(1−s) +
// (k−1)δ for the success s = Σ_v P_v(v)/k. For k = 2 it is AdvantageLimit, (1+advantage)/2.
func ReconstructionLimit(epsilon, delta float64, k int) (float64, error) {
	if err := checkLoss(epsilon, delta); err != nil {
		return 0, err
	}
	if k < 2 {
		return 0, fmt.Errorf("audit: %d values to guess among, must be at least 2", k)
	}
	others := float64(k - 1)
	e := math.Exp(-epsilon)
	return min(1, (1+others*delta*e)/(1+others*e)), nil
}

// EpsilonOf is the smallest ε for which a test with errors α and β does not contradict (ε,δ)-DP:
// max{0, log((1−δ−β)/α), log((1−δ−α)/β)}, from [Azize 2024, (2.28)
// and (2.29)].
func EpsilonOf(alpha, beta, delta float64) float64 {
	return max(0, logRatio(1-delta-beta, alpha), logRatio(1-delta-alpha, beta))
}

func logRatio(a, b float64) float64 {
	if !(a > 0) {
		return 0
	}
	return math.Log(a) - math.Log(b)
}

// powerOf is Φ(Φ^{-1}(α) + shift).
func powerOf(shift, alpha float64) float64 {
	switch {
	case alpha <= 0:
		return 0
	case alpha >= 1:
		return 1
	}
	return phi(quantile(alpha) + shift)
}

// phi is Φ, exact in the lower tail.
func phi(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }

// quantile is Φ^{-1}.
func quantile(p float64) float64 { return distuv.UnitNormal.Quantile(p) }
