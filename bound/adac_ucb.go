package bound

import "math"

// adacUCB is AdaC-UCB, β > 3. With N(0,b) noise at sensitivity 1, b = 1/(2ρ) for ρ-zCDP, 1/ρ is 2b
// [Azize 2024, Remark 5.7].
func (p *problem) adacUCB() []Bound {
	if math.IsNaN(p.b) {
		return nil
	}
	beta := p.Beta
	valid := func(f func(T float64) float64) func(T float64) float64 {
		return func(T float64) float64 {
			if !(beta > 3) {
				return math.NaN()
			}
			return f(T)
		}
	}
	return []Bound{
		{
			Name: "thesis-5.6", Where: "[Azize 2024, Theorem 5.6]; [Azize and Basu 2024, Theorem " +
				"10]", Policy: "adac-ucb",
			Form: "Σ (8β log T/Δ_a + 8√(β log T/ρ) + 2β/(β−3))", Note: "rewards in [0,1], β > 3",
			Value: valid(func(T float64) float64 {
				l := math.Log(T)
				return p.over(func(gap float64) float64 {
					return 8*beta*l/gap + 8*math.Sqrt(beta*l*2*p.b) + 2*beta/(beta-3)
				})
			}),
		}, {
			Name: "zcdp-11", Where: "[Azize and Basu 2024, Theorem 11]", Policy: "adac-ucb",
			Form: "4√(2βKT log T) + 8K√(β log T/ρ) + (3β/(β−3))ΣΔ_a", WorstCase: true,
			Note: "rewards in [0,1], β > 3",
			Value: valid(func(T float64) float64 {
				l := math.Log(T)
				return 4*math.Sqrt(2*beta*p.k*T*l) + 8*p.k*math.Sqrt(beta*l*2*p.b) + 3*beta/(beta-3)*p.sumGaps()
			}),
		},
	}
}
