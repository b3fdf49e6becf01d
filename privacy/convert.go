package privacy

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// The conversions below take and give plain numbers. They hold for +Inf: an infinite budget
// converts to an infinite one. Each is non-decreasing in what is spent and, where there is a δ,
// non-increasing in δ. They are rounded up: see guard.

// pureToZCDP is a ρ such that every ε-DP mechanism is ρ-zCDP: min(ε²/2, ε). The first is [Azize
// 2024, Proposition 2.6] (Bun and Steinke 2016, Proposition 1.4); the second, smaller for ε > 2, is
// D_α ≤ D_∞ ≤ ε ≤ εα.
func pureToZCDP(epsilon float64) float64 { return min(mulUp(epsilon, epsilon)/2, epsilon) }

// pureToRenyi is the Rényi divergence of order α > 1 that no ε-DP mechanism exceeds. Randomised
// response attains it, and every ε-DP pair of laws is a post-processing of randomised response
// (Kairouz, Oh and Viswanath 2015), so it is the best possible: log[(e^{αε} + e^{(1−α)ε})/(1 +
// e^ε)]/(α−1). It is at most αε²/2 [Chowdhury and Zhou 2023, Lemma 10] and at most ε.
func pureToRenyi(epsilon, alpha float64) float64 {
	bound := min(mulUp(alpha, mulUp(epsilon, epsilon))/2, epsilon)
	// the difference of logarithms below would lose its digits, and the bound is right to ε²/4
	if epsilon < 0.01 {
		return bound
	}
	plus, minus := math.Log1p(math.Exp(-float64((2*alpha-1)*epsilon))), math.Log1p(math.Exp(-epsilon))
	exact := epsilon + (plus-minus)/(alpha-1)
	return min(bound, exact+float64(ulps*(epsilon+(plus+minus)/(alpha-1))))
}

// ulps bounds the relative rounding of a term that was computed by a few operations.
const ulps = 2e-15

// laplaceShiftRenyi is the Rényi divergence of order α > 1 between Lap(b) and Lap(b) shifted by 1, for x
// = 1/b (Mironov 2017, Proposition 6): log[α/(2α−1)·e^{(α−1)x} + (α−1)/(2α−1)·e^{−αx}]/(α−1).
func laplaceShiftRenyi(x, alpha float64) float64 {
	return laplaceRenyi(x, alpha/(2*alpha-1), (alpha-1)/(2*alpha-1), alpha)
}

// laplaceRenyi is log[w·e^{(α−1)x} + v·e^{−αx}]/(α−1), with v = 1−w to all its digits: it is small
// where α is near 1.
func laplaceRenyi(x, w, v, alpha float64) float64 {
	bound := min(mulUp(alpha, mulUp(x, x))/2, x)
	if math.IsInf(x, 1) {
		return x
	}
	y := float64((alpha - 1) * x)
	var exact float64
	switch {
	case y < 1e-4 && x < 1e-2: // first orders cancel below: use the bound, which is right to x/3
		return bound
	case y < 1:
		plus, minus := float64(w*math.Expm1(y)), float64(v*math.Expm1(-float64(alpha*x)))
		exact = (math.Log1p(plus+minus) + float64(ulps*(plus-minus))) / (alpha - 1)
	default:
		rest := math.Log(w + float64(v*math.Exp(-float64((2*alpha-1)*x))))
		exact = x + rest/(alpha-1) + float64(ulps*(x+(1+math.Abs(rest))/(alpha-1)))
	}
	return min(bound, exact)
}

// pureToApprox is the smallest ε' such that every ε-DP mechanism is (ε',δ)-DP: e^{ε'} = e^ε − δ(1
// + e^ε), again by randomised response (Kairouz, Oh and Viswanath 2015). It is 0 where δ alone
// covers the difference.
func pureToApprox(epsilon, delta float64) float64 {
	if math.IsInf(epsilon, 1) {
		return epsilon
	}
	lost := float64(delta * (1 + math.Exp(-epsilon)))
	if lost >= 1 {
		return 0
	}
	return max(0, epsilon+math.Log1p(-lost)+float64(3e-16*(epsilon+lost/(1-lost))))
}

// zcdpToApprox is the closed form ρ + 2√(ρ log(1/δ)): a ρ-zCDP mechanism is (ε,δ)-DP for this
// ε ([Azize 2024, Proposition 2.6]; Bun and Steinke 2016, Proposition 1.3). ZCDPToApproxTight
// is never larger.
func zcdpToApprox(rho, delta float64) float64 {
	return raised(rho+2*math.Sqrt(float64(rho*-math.Log(delta))), guard)
}

// ZCDPToApproxTight is the ε at δ that [Chowdhury and Zhou 2023, Lemma 10] gives a ρ-zCDP mechanism
// (Canonne, Kamath and Steinke 2020, Corollary 13):
//
//	inf over α > 1 of ρα + log(1/(αδ))/(α−1) + log(1−1/α).
//
// The derivative in α is ρ − log(1/(αδ))/(α−1)²: negative, then positive, so the infimum is where
// ρ(α−1)² = log(1/(αδ)). Every α gives a valid ε, so a rounded root is no risk.
func ZCDPToApproxTight(rho, delta float64) float64 {
	if math.IsInf(rho, 1) {
		return rho
	}
	if rho <= 0 {
		return 0
	}
	l := -math.Log(delta)
	// With x = log(α−1): below the root ρ(α−1)² < l − log α. α−1 is between a value that is too
	// small and √(l/ρ), which is too large.
	hi := (math.Log(l) - math.Log(rho)) / 2 // l/rho may be beyond the doubles
	lo := hi
	above := func(x float64) bool { e := math.Exp(x); return float64(rho*float64(e*e)) > l-math.Log1p(e) }
	for lo > -700 && above(lo) {
		lo -= 4
	}
	for range 100 {
		mid := (lo + hi) / 2
		if mid <= lo || mid >= hi {
			break
		}
		if above(mid) {
			hi = mid
		} else {
			lo = mid
		}
	}
	alpha := 1 + math.Exp(lo)
	if !(alpha > 1) || math.IsInf(alpha, 1) {
		return zcdpToApprox(rho, delta)
	}
	return min(RenyiToApprox(alpha, float64(rho*alpha), delta), zcdpToApprox(rho, delta))
}

// RenyiToApprox is the ε' at δ of an (α,ε)-RDP mechanism: ε + log(1/(αδ))/(α−1) + log(1−1/α), or 0
// where that is negative ([Chowdhury and Zhou 2023, Lemma 10]; Canonne, Kamath and Steinke 2020,
// Proposition 12).
func RenyiToApprox(alpha, epsilon, delta float64) float64 {
	// α−1 has all its digits where α is near 1
	a, d, rest := math.Log(alpha), math.Log(delta), -math.Log1p(1/(alpha-1))
	return max(0, epsilon-(a+d)/(alpha-1)+rest+float64(ulps*(epsilon+(a-d)/(alpha-1)-rest)))
}

// pureToGDP is a μ such that every ε-DP mechanism is μ-Gaussian-DP (Dong, Roth and Su 2022):
// telling its outputs apart is at least as hard as telling N(0,1) from N(μ,1). The errors of ε-DP
// lie above the broken line through (0,1), (p,p), (1,0) with p = 1/(1+e^ε) [Azize 2024, Theorem
// 2.4]. The errors of the Gaussian pair are a convex curve through (0,1), (1,0) and, for Φ(−μ/2) =
// p, through (p,p), hence below it.
func pureToGDP(epsilon float64) float64 {
	switch {
	case epsilon > 20: // of no use there
		return math.Inf(1)
	case epsilon > 1: // tanh would have few digits left
		return raised(-2*mathext.NormalQuantile(1/(1+math.Exp(epsilon))), guard)
	}
	return raised(2*math.Sqrt2*math.Erfinv(math.Tanh(epsilon/2)), guard)
}

// gdpToPure is the ε whose pureToGDP is mu: log of the odds Φ(μ/2)/Φ(−μ/2).
func gdpToPure(mu float64) float64 {
	x := mu / 2 / math.Sqrt2
	if x > 0.5 { // pureToGDP has no larger ones
		return min(20, math.Log(math.Erfc(-x)/math.Erfc(x)))
	}
	return 2 * math.Atanh(math.Erf(x))
}
