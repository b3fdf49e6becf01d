package bound

import (
	"math"

	"github.com/sotto-dp/sotto/internal/divergence"
)

// dpUCB is DP-UCB, UCB on the tree counter.
func (p *problem) dpUCB() []Bound {
	if math.IsNaN(p.epsilon) || math.IsInf(p.epsilon, 1) {
		return nil
	}
	return []Bound{
		{
			Name: "dp-ucb-thesis", Where: "[Azize 2024, §5.1]", Policy: "dp-ucb-thesis",
			Form: "8√8·K log^{2.5}T/ε + 4ΣΔ_a + Σ 4 log T/Δ_a", Unproved: true,
			Note: "rewards in [0,1]; stated without a proof",
			Value: func(T float64) float64 {
				l := math.Log(T)
				return 8*math.Sqrt(8)*p.k*math.Pow(l, 2.5)/p.epsilon + 4*p.sumGaps() +
					p.over(func(gap float64) float64 {
						return 4 * l / gap
					})
			},
		},
		{Name: "dp-ucb", Where: "[Sajed 2019, §3.4], after Mishra and Thakurta 2015", Policy: "dp-ucb",
			Form: "O(Σ log²T log(KT/β)/(εΔ_a))", Kind: Implicit,
			Note: "with probability 1 − β"},
		p.doublingUCB(),
	}
}

// doublingUCB is DP-UCB without a horizon: Confidence is its α and First its n_1.
func (p *problem) doublingUCB() Bound {
	alpha, first := p.Confidence, float64(p.First)
	if alpha == 0 {
		alpha = 1.5
	}
	if first == 0 {
		first = max(1, math.Ceil(16/p.epsilon))
	}
	rest := doublingConstant(alpha) * math.Pow(first, 1-alpha)
	return Bound{Name: "dp-ucb-doubling", Where: "proof: policy.DPUCBDoubling", Policy: "dp-ucb-anytime",
		Form: "Σ Δ_a (min(n_a(T), T) + C_α n_1^{1−α})",
		Note: "rewards in [0,1]; n_a(T): the first n = n_1·2^{m−1} with 2w(α log T; n, m) ≤ Δ_a; ours",
		Value: func(T float64) float64 {
			return p.over(func(gap float64) float64 {
				n, m := first, 1.0
				for n < T && 2*divergence.NoisyRadius(alpha*math.Log(T)/n, p.epsilon, m/n) > gap {
					n, m = 2*n, m+1
				}
				return gap * (min(n, T) + rest)
			})
		},
	}
}

// doublingConstant is C_α = Σ_{i≥0} 2^{i(1−α)} + Σ_{i,j≥0} 2^i (2^i + 2^j)^{−α}. By k = min(i,j) and d
// = |i−j| the second sum is Σ_k 2^{k(1−α)} (2^{−α} + Σ_{d≥1} (1 + 2^d)^{1−α}).
func doublingConstant(alpha float64) float64 {
	sum, term := 0.0, 0.0
	for d := 1.0; d <= 64; d++ {
		term = math.Pow(1+math.Exp2(d), 1-alpha)
		sum += term
	}
	sum += term / (math.Exp2(alpha-1) - 1) // from where 1 + 2^d is 2^d it is a geometric series
	return (1 + math.Exp2(-alpha) + sum) / (1 - math.Exp2(1-alpha))
}
