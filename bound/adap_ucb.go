package bound

import "math"

// adapUCB is [Azize 2024]'s AdaP-UCB and AdaP-KLUCB, β > 3.
//
// The proof of [Azize 2024, Theorem 5.3] asks for an episode of h plays with 2√(β log T/(2h)) + 2β
// log T/(εh) ≤ Δ, that is, h ≥ (β log T/(2Δ²))(1 + √(1 + 4Δ/ε))², and an arm is played at most four
// times that. (C.12) then simplifies by a factor of up to two too little: for ε between Δ/2 and
// 1.69Δ the printed 16β/min{Δ,ε} is below what was shown, by 31 % at ε = Δ.
func (p *problem) adapUCB() []Bound {
	if math.IsNaN(p.epsilon) {
		return nil
	}
	beta, where := p.Beta, "[Azize 2024, Theorem 5.3]"
	rest := 3 * beta / (beta - 3)
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
			Name: "adap-ucb", Where: where, Policy: "adap-ucb", Form: "Σ ((2β log T/Δ_a)(1 + √(1 " +
				"+ 4Δ_a/ε))² + 3β/(β−3))",
			Note: "rewards in [0,1], β > 3; what its proof gives before (C.12) simplifies it",
			Value: valid(func(T float64) float64 {
				return p.over(func(gap float64) float64 {
					r := 1 + math.Sqrt(1+4*gap/p.epsilon)
					return 2*beta*math.Log(T)/gap*r*r + rest
				})
			}),
		}, {
			Name: "thesis-5.3", Where: where, Policy: "adap-ucb", Form: "Σ (16β log T/min{Δ_a,ε} " +
				"+ 3β/(β−3))", Unproved: true,
			Note: "rewards in [0,1], β > 3; for Δ_a/2 < ε < 1.69Δ_a below what the proof gives",
			Value: valid(func(T float64) float64 {
				return p.over(func(gap float64) float64 {
					return 16*beta/min(gap, p.epsilon)*math.Log(T) + rest
				})
			}),
		}, {
			Name: "thesis-C.7", Where: "[Azize 2024, Theorem C.7]", Policy: "adap-ucb",
			Form: "8√(βKT log T) + 16βK log T/ε + (3β/(β−3))ΣΔ_a", WorstCase: true,
			Note: "rewards in [0,1], β > 3",
			Value: valid(func(T float64) float64 {
				l := math.Log(T)
				return 8*math.Sqrt(beta*p.k*T*l) + 16*beta*p.k*l/p.epsilon + rest*p.sumGaps()
			}),
		},
		{Name: "thesis-5.4", Where: "[Azize 2024, Theorem 5.4]", Policy: "adap-klucb",
			Form: "Σ (C₁(β)Δ_a log T/min{kl(μ_a,μ*), C₂εΔ_a} + 3β/(β−3))", Kind: Implicit,
			Note: "Bernoulli rewards, β > 3; C₁ and C₂ are not given"},
	}
}
