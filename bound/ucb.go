package bound

import (
	"math"
)

const subGaussian = "1-sub-Gaussian rewards"

// ucb has what is known of the policies without privacy that are built on confidence bounds. They
// meet no budget, so they are listed only where there is none.
func (p *problem) ucb() []Bound {
	if !math.IsInf(p.epsilon, 1) {
		return nil
	}
	out := []Bound{
		{
			// Index μ̂ + √(2 log(1/δ)/N), δ = 1/T².
			Name: "thesis-2.23", Where: "[Azize 2024, Theorem 2.23]", Policy: "UCB at δ = 1/T²",
			Form: "3ΣΔ_a + Σ 16 log T/Δ_a", Note: subGaussian,
			Value: func(T float64) float64 {
				return 3*p.sumGaps() + p.over(func(gap float64) float64 { return 16 * math.Log(T) / gap })
			},
		}, {
			Name: "thesis-2.23-gap-free", Where: "[Azize 2024, Theorem 2.23]", Policy: "UCB at δ = 1/T²",
			Form: "8√(TK log T) + 3ΣΔ_a", WorstCase: true, Note: subGaussian,
			Value: func(T float64) float64 { return 8*math.Sqrt(T*p.k*math.Log(T)) + 3*p.sumGaps() },
		}, {
			Name: "sajed-2.22", Where: "[Sajed 2019, (2.22)]", Policy: "ucb-2logt",
			Form: "Σ (8 log T/Δ_a + 1.42Δ_a)", Note: "rewards in [0,1]",
			Value: func(T float64) float64 {
				return p.over(func(gap float64) float64 { return 8*math.Log(T)/gap + 1.42*gap })
			},
		}, {
			// By (2.21) and Cauchy and Schwarz: Σ Δ E n = Σ √(E n)·√(Δ² E n) ≤ √(ΣE n)·√(Σ(8
			// log T + 1.42Δ²)).
			Name: "sajed-2.21-gap-free", Where: "[Sajed 2019, (2.21)]", Policy: "ucb-2logt",
			Form: "√(KT(8 log T + 1.42))", WorstCase: true, Note: "rewards in [0,1]; from (2.21): ours",
			Value: func(T float64) float64 { return math.Sqrt(p.k * T * (8*math.Log(T) + 1.42)) },
		}, {
			Name: "sajed-2.28", Where: "[Sajed 2019, (2.28)]", Policy: "ucb-2logt", Form: "√(8KT log T) + 2",
			WorstCase: true, Unproved: true,
			Note: "rewards in [0,1]; its proof asks for confidence in the last round only, and " +
				"an arm's last play may be in any",
			Value: func(T float64) float64 { return math.Sqrt(8*p.k*T*math.Log(T)) + 2 },
		},
		logarithmic(Bound{Name: "thesis-2.24", Where: "[Azize 2024, Theorem 2.24]", Policy: "ucb",
			Form: "Σ 2 log T/Δ_a", Note: subGaussian},
			p.over(func(gap float64) float64 { return 2 / gap })),
	}
	if means, ok := p.bernoulli(); ok {
		if c, err := BernoulliRegret(means, math.Inf(1)); err == nil {
			out = append(out, logarithmic(Bound{Name: "thesis-2.26", Where: "[Azize 2024, Theorem 2.26]",
				Policy: "kl-ucb", Form: "Σ Δ_a log T/kl(μ_a,μ*)", Note: "Bernoulli rewards"}, c))
		}
	}
	return out
}
