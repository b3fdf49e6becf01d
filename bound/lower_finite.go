package bound

import (
	"math"
)

const gaussianArms = "some Gaussian arms of unit variance with any means cost so much"

// Constants of the minimax lower bounds for K arms. The proofs give a little more than what is
// printed: e⁻¹/8 for 1/22.
const (
	freeMinimax = 1.0 / 27  // [Azize 2024, Theorem 2.28]
	pureMinimax = 1.0 / 22  // [Azize 2024, Theorem 4.15]
	zcdpMinimax = 1.0 / 124 // [Azize 2024, Theorem 4.20], [Azize and Basu 2024, Theorem 17]
)

// FreeMinimax is √(T(K−1))/27, which every policy loses on some K Gaussian arms of unit variance
// [Azize 2024, Theorem 2.28], for T ≥ K−1; otherwise NaN.
func FreeMinimax(arms int, T float64) float64 {
	k := float64(arms - 1)
	if !(k >= 1 && T >= k) {
		return math.NaN()
	}
	return float64(freeMinimax * math.Sqrt(float64(T*k)))
}

// PureMinimax is (K−1)/(22ε), which every policy with ε-View DP loses on some K Gaussian arms of
// unit variance [Azize 2024, Theorem 4.15].
func PureMinimax(arms int, epsilon float64) float64 {
	return float64(pureMinimax*float64(arms-1)) / epsilon
}

// ZCDPMinimax is √((K−1)/ρ)/124, the same for ρ-Interactive zCDP ([Azize 2024, Theorem 4.20],
// [Azize and Basu 2024, Theorem 17]) and 0 < ρ ≤ 1; otherwise NaN.
func ZCDPMinimax(arms int, rho float64) float64 {
	if !(rho > 0 && rho <= 1) {
		return math.NaN()
	}
	return float64(zcdpMinimax * math.Sqrt(float64(arms-1)/rho))
}

// ZCDPMinimaxSharp is what the proof of [Azize and Basu 2024, Theorem 17] has to give, at every ρ >
// 0. Two instances differ in an arm that is played N times, E N ≤ T/(K−1), by 2Δ, a total variation
// of at most Δ. Then E N² ≤ T·E N, so [Azize and Basu 2024, Theorem 8] has KL ≤ ρ(T²Δ² + TΔ)/(K−1),
// and one of the two regrets is at least (TΔ/8)e^{−KL}. With s = √(ρ/(K−1)) and TΔ = c/s that is
// (c/8s)·exp(−c² − cs), largest at c = (√(s²+8) − s)/4. At ρ = 1 and K = 2 it is 0.0295 for the
// printed 1/124 = 0.0081, and 0.0536 at small ρ.
func ZCDPMinimaxSharp(arms int, rho float64) float64 {
	s := math.Sqrt(rho / float64(arms-1))
	// (√(s²+8) − s)/4, of which nothing is left in floating point for a large s
	c := 2 / (math.Sqrt(float64(s*s)+8) + s)
	return c / (8 * s) * math.Exp(-float64(c*c)-float64(c*s))
}

// finiteLower has the first row of [Azize 2024, Tables 4.1 and 4.2].
func (p *problem) finiteLower() []Bound {
	k := len(p.Laws)
	out := []Bound{{
		Name: "free-minimax", Where: "[Azize 2024, Theorem 2.28]", Form: "√(T(K−1))/27", Lower: true,
		WorstCase: true, Note: gaussianArms,
		Value: func(T float64) float64 { return FreeMinimax(k, T) },
	}}
	rho := 1 / (2 * p.b)
	switch {
	case p.pure:
		out = append(out, Bound{
			Name: "thesis-4.15", Where: "[Azize 2024, Theorem 4.15]", Form: "(K−1)/(22ε)", Lower: true,
			WorstCase: true, Note: gaussianArms,
			Value: func(float64) float64 { return PureMinimax(k, p.epsilon) },
		})
	case p.zcdp():
		if rho <= 1 {
			out = append(out, Bound{
				Name: "thesis-4.20", Where: "[Azize 2024, Theorem 4.20]; [Azize and Basu 2024, Theorem 17]",
				Form: "√((K−1)/ρ)/124", Lower: true, WorstCase: true, Note: gaussianArms + ", 0 < ρ ≤ 1",
				Value: func(float64) float64 { return ZCDPMinimax(k, rho) },
			})
		}
		out = append(out, Bound{
			Name: "zcdp-17-sharp", Where: "[Azize and Basu 2024, Theorem 17]", Form: "(c/8s)exp(−c²−cs), s = " +
				"√(ρ/(K−1))", Lower: true, WorstCase: true,
			Note:  gaussianArms + "; its proof with E N² ≤ T·E N and the best Δ, at every ρ: ours",
			Value: func(float64) float64 { return ZCDPMinimaxSharp(k, rho) },
		})
	}
	if c, ok := p.lawConstant(math.Inf(1)); ok {
		out = append(out, logarithmic(Bound{
			Name: "free-problem", Where: "[Azize 2024, Theorem 2.31]", Form: "Σ Δ_a log T/KL_inf(P_a,μ*)",
			Lower: true, Note: "consistent policies",
		}, c))
	}
	if !p.pure {
		return out
	}
	if c, ok := p.lawConstant(p.epsilon); ok {
		out = append(out, logarithmic(Bound{
			Name: "thesis-4.16", Where: "[Azize 2024, Theorem 4.16]",
			Form: "Σ Δ_a log T/min(KL_inf(P_a,μ*), ε TV_inf(P_a,μ*))", Lower: true, Note: "consistent policies",
		}, c))
	}
	if means, ok := p.bernoulli(); ok && p.best < 1 {
		if c, err := BernoulliRegret(means, p.epsilon); err == nil {
			out = append(out, logarithmic(Bound{
				Name: "d-epsilon", Where: "arXiv:2505.05613", Form: "Σ Δ_a log T/d_ε(μ_a,μ*)", Lower: true,
				Note: "consistent policies; never below that of [Azize 2024, Theorem 4.16]",
			}, c))
		}
	}
	return out
}

// lawConstant is Σ Δ_a/min(KL_inf, ε TV_inf), if the laws have them.
func (p *problem) lawConstant(epsilon float64) (float64, bool) {
	sum := 0.0
	for a, l := range p.Laws {
		if p.gaps[a] > 0 {
			d := l.KLInf(p.best)
			if !math.IsInf(epsilon, 1) {
				d = min(d, float64(epsilon*l.TVInf(p.best)))
			}
			if math.IsNaN(d) {
				return 0, false
			}
			sum += p.gaps[a] / d
		}
	}
	return sum, true
}

func (p *problem) bernoulli() ([]float64, bool) {
	for _, l := range p.Laws {
		if _, ok := l.(Bernoulli); !ok {
			return nil, false
		}
	}
	return p.means, true
}
