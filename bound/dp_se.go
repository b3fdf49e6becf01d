package bound

import "math"

// dpSE is [Sajed 2019, Algorithm 9] with failure probability β (Risk, or 1/T): with probability 1 −
// β each suboptimal arm is gone after the first epoch e(a) with 2^{−e} ≤ Δ_a, and then it was
// played Σ_{e≤e(a)} R_e times. Otherwise a round costs at most the largest gap.
func (p *problem) dpSE() []Bound {
	if math.IsNaN(p.epsilon) || math.IsInf(p.epsilon, 1) {
		return nil
	}
	failed := func(T float64) float64 { return p.risk(T) * T * p.most }
	out := []Bound{
		{
			Name: "dp-se-epochs", Where: "[Sajed 2019, Lemma 5.1.2]", Policy: "dp-se",
			Form: "Σ Δ_a Σ_{e≤e(a)} R_e + βTΔ_max",
			Note: "rewards in [0,1]; the lengths of Algorithm 9 for K survivors, summed, without " +
				"the proof's slack: ours",
			Value: func(T float64) float64 {
				return p.over(func(gap float64) float64 {
					return min(T*gap, gap*dpSEPlays(p.k, gap, p.epsilon, p.risk(T)))
				}) + failed(T)
			},
		}, {
			Name: "sajed-5.1.2", Where: "[Sajed 2019, Lemma 5.1.2]", Policy: "dp-se",
			Form: "Σ log(K log₂(2/Δ_a)/β)(1024/Δ_a + 96/ε) + βTΔ_max",
			Note: "rewards in [0,1]; the constants of its proof",
			Value: func(T float64) float64 {
				beta := p.risk(T)
				return p.over(func(gap float64) float64 {
					return math.Log(p.k*max(1, math.Log2(2/gap))/beta) * (1024/gap + 96/p.epsilon)
				}) + failed(T)
			},
		},
	}
	if p.Risk > 0 {
		return out
	}
	return append(out,
		Bound{Name: "sajed-5.1.3", Where: "[Sajed 2019, Theorem 5.1.3]", Policy: "dp-se",
			Form: "O(Σ log T/Δ_a + K log T/ε)", Kind: Implicit, Note: "β = 1/T, T large"},
		Bound{Name: "sajed-5.1.4", Where: "[Sajed 2019, Theorem 5.1.4]", Policy: "dp-se",
			Form: "O(√(TK log T) + K log T/ε)", Kind: Implicit, WorstCase: true, Note: "β = 1/T"})
}

// dpSEPlays is Σ_{e≤e(a)} R_e, R_e = ⌈max(32 log(8Ke²/β)/Δ_e², 8 log(4Ke²/β)/(εΔ_e)) + 1⌉, Δ_e =
// 2^{−e}. A gap of 0.7 − 0.2 is ½, whatever rounding says.
func dpSEPlays(k, gap, epsilon, beta float64) float64 {
	sum := 0.0
	for e := 1.0; ; e++ {
		width := math.Exp2(-e)
		sum += math.Ceil(max(32*math.Log(8*k*e*e/beta)/(width*width),
			8*math.Log(4*k*e*e/beta)/(epsilon*width)) + 1)
		if width <= gap*(1+1e-12) || math.IsInf(sum, 1) {
			return sum
		}
	}
}
