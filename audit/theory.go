package audit

import (
	"fmt"
	"math"
)

// Leakage is the leakage score m* = Σ (z_j−μ_j)²/(k(σ_j²+γ_j²)) of a target in the mean of k points
// [Azize 2024, Theorems 6.3 and 6.5]. noise holds γ and may be nil. The mean is about √m*-Gaussian
// DP against this game.
func Leakage(k int, target, mu, variance, noise []float64) (float64, error) {
	return LeakageBetween(k, target, target, mu, variance, noise)
}

// LeakageBetween is the scalar product m_scal = Σ (a_j−μ_j)(b_j−μ_j)/(k(σ_j²+γ_j²)) of Theorem 6.7.
func LeakageBetween(k int, a, b, mu, variance, noise []float64) (float64, error) {
	if err := checkRows(k); err != nil {
		return 0, err
	}
	for _, x := range []struct {
		name string
		n    int
	}{{"the target", len(a)}, {"the other target", len(b)}, {"the variance", len(variance)}} {
		if err := sameDim(x.name, x.n, len(mu)); err != nil {
			return 0, err
		}
	}
	if noise != nil {
		if err := sameDim("the noise", len(noise), len(mu)); err != nil {
			return 0, err
		}
	}
	var m float64
	for j := range mu {
		v := variance[j]
		if noise != nil {
			v += noise[j] * noise[j]
		}
		if !(v > 0) {
			return 0, fmt.Errorf("audit: %w: column %d has variance %v", ErrSingular, j, v)
		}
		m += (a[j] - mu[j]) * (b[j] - mu[j]) / v
	}
	return m / float64(k), nil
}

// A Limit is what theory expects of an attack as n and d grow: two normal laws of one variance,
// Shift standard deviations apart, in a share Rate of the games with the target, and no difference
// in the rest. Rate is 1 except under sub-sampling.
type Limit struct {
	Shift, Rate float64
}

// Optimal is the limit of the likelihood ratio at leakage score m: Corollary 6.4 and, with the
// noisy score, Theorem 6.5.
func Optimal(m float64) Limit { return Limit{math.Sqrt(m), 1} }

// Subsampled is the limit for a mean of ρn of n points, where m* is the score of the whole: the
// target is drawn with probability ρ, the same draw in all columns, and then its score is m*/ρ.
//
// Theorem 6.6 has another limit, SubsampledPrint: it treats columns as if each drew the target by
// itself, and is false.
func Subsampled(m, rho float64) Limit { return Limit{math.Sqrt(m / rho), rho} }

// SubsampledPrint is the limit that Theorem 6.6 prints, of score ρm*. It is shown beside
// Subsampled, to compare; games follow that one.
func SubsampledPrint(m, rho float64) Limit { return Limit{math.Sqrt(rho * m), 1} }

// Missing is the limit of the likelihood ratio for another target than the true one (Theorem 6.7),
// with m_scal from LeakageBetween and m_targ the score of the target it aims at. Shift is negative
// where the two lie on opposite sides of the mean; the best use is then to turn the score around.
func Missing(scal, targ float64) Limit { return Limit{scal / math.Sqrt(targ), 1} }

// WithReferences is the limit of the likelihood ratio whose mean is estimated from λn reference
// points: the samples needed grow by (1+λ)/λ, so the score falls by it [Azize 2024, §2.3.4]. It is
// for targets drawn from the data.
func WithReferences(m, lambda float64) Limit { return Optimal(m * lambda / (1 + lambda)) }

// Power is the power at significance α: (1−ρ)α + ρΦ(Φ⁻¹(α) + shift), which is (6.3) for ρ = 1.
func (l Limit) Power(alpha float64) float64 {
	return (1-l.Rate)*alpha + l.Rate*powerOf(l.Shift, alpha)
}

// Advantage is the leakage, the advantage at the best threshold: ρ(2Φ(|shift|/2) − 1), which is
// (6.2) for ρ = 1.
func (l Limit) Advantage() float64 {
	return l.Rate * math.Erf(math.Abs(l.Shift)/(2*math.Sqrt2))
}

// Threshold is the threshold of significance α on the likelihood ratio at leakage score m: −m/2 +
// √m·Φ⁻¹(1−α) (Corollary 6.4).
func Threshold(m, alpha float64) float64 {
	return -m/2 - math.Sqrt(m)*quantile(alpha)
}

// BestMissing is the threshold of the largest advantage for a misspecified target, (m_scal −
// m_targ)/2; where m_scal < 0 the answer is "in" below it.
func BestMissing(scal, targ float64) float64 { return (scal - targ) / 2 }
