package bound

import "math"

// batchSE is [Chowdhury and Zhou 2023, Algorithm 1] through Lemma 2 under central trust: while all
// means stay in their radii, an arm is dropped no later than in the first batch b in which four
// radii are below its gap, and by then it was played Σ_{i≤b} η^i times.
func (p *problem) batchSE() []Bound {
	if math.IsNaN(p.epsilon) && math.IsNaN(p.b) {
		return nil
	}
	// ν bounds the noise of a sum, on one side, with probability e^{−L}.
	nu := func(l float64) float64 { return math.Sqrt(2 * p.b * l) } // N(0,b)
	if math.IsNaN(p.b) {
		nu = func(l float64) float64 { return l / p.epsilon }
	}
	out := []Bound{
		{
			Name: "batch-se", Where: "[Chowdhury and Zhou 2023, Lemma 2]", Policy: "batch-se",
			Form: "Σ Δ_a Σ_{i≤b(a)} ⌈η^i⌉ + pTΔ_max",
			Note: "rewards in [0,1], central trust; batches until 4(√(L/(2n)) + ν/n) < Δ_a, L = " +
				"log(8Kb²/p), summed: ours",
			Value: func(T float64) float64 {
				risk := p.risk(T)
				return p.over(func(gap float64) float64 {
					return p.batches(T, gap, func(n, b float64) float64 {
						l := math.Log(8 * p.k * b * b / risk)
						return math.Sqrt(l/(2*n)) + nu(l)/n
					})
				}) + risk*T*p.most
			},
		},
	}
	if p.Risk == 0 {
		out = append(out, Bound{Name: "distributed-2", Where: "[Chowdhury and Zhou 2023, Lemma 2]",
			Policy: "batch-se",
			Form:   "O(Σ log T/Δ_a + Kσ√log T + Kh log T)", Kind: Implicit, Note: "p = 1/T ≤ 1/K"})
	}
	return out
}

// batches is the regret of an arm up to the end of the first batch with four radii below its
// gap, or all rounds.
func (p *problem) batches(T, gap float64, radius func(n, b float64) float64) float64 {
	plays := 0.0
	for b := 1.0; plays < T; b++ {
		if b > 1e6 { // a ratio so near 1 that batches hardly grow; all rounds is a bound too
			return gap * T
		}
		n := math.Ceil(math.Pow(p.Eta, b) - 1e-9)
		plays += n
		if 4*radius(n, b) < gap {
			break
		}
	}
	return gap * min(plays, T)
}
