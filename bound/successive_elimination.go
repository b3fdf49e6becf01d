package bound

import "math"

// successiveElimination is [Sajed 2019, (2.34)]: on an event of probability 1 − 2/T², for T ≥ K, no
// arm survives more than 32 log T/Δ² cycles, and the one in which it is dropped is played too,
// which the print leaves out. A regret is at most T besides.
func (p *problem) successiveElimination() []Bound {
	if !math.IsInf(p.epsilon, 1) {
		return nil
	}
	return []Bound{{
		Name: "sajed-2.34", Where: "[Sajed 2019, (2.34)]", Policy: "successive-elimination",
		Form: "Σ (32 log T/Δ_a + Δ_a) + 2/T", Note: "rewards in [0,1], T ≥ K; with the cycle " +
			"that drops an arm: ours",
		Value: func(T float64) float64 {
			if T < p.k {
				return math.NaN()
			}
			return p.over(func(gap float64) float64 { return 32*math.Log(T)/gap + gap }) + 2/T
		},
	}}
}
