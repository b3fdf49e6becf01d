package bound

import "math"

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
	}
}
