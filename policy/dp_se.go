package policy

import (
	"fmt"
	"math"

	"github.com/sotto-dp/sotto/privacy"
)

// DPSE is differentially private successive elimination, [Sajed 2019, Algorithm 9]. Epoch e plays
// each of the |S| surviving arms R_e times, afresh,
//
//	R_e = ⌈max(32 log(8|S|e²/β)/Δ_e², 8 log(4|S|e²/β)/(εΔ_e)) + 1⌉,   Δ_e = 2^{−e},
//
// releases their sums with Lap(1/ε) on each, and drops every arm whose noisy mean is more than 2h_e
// + 2c_e below the highest,
//
//	h_e = √(log(8|S|e²/β)/(2R_e)),   c_e = log(4|S|e²/β)/(εR_e).
//
// For rewards in [0,1] it is ε-DP [Sajed 2019, Theorem 5.1.1], and with β = 1/T its regret is O(Σ_a
// log T/Δ_a + K log T/ε) [Sajed 2019, Theorem 5.1.3]. The last survivor cannot be dropped: the
// highest mean is that of a survivor. NewDoubling makes it horizon-free.
//
// c_e is really the width of the release's own noise on both sides, by its tail, and R_e the fewest
// rewards that any of the arms has. So the proof that the best arm survives [Sajed 2019, Lemma 5.1.2]
// holds for any noise with a tail. An arm of gap above 4h_e + 4c_e is dropped, which is at most Δ_e
// with one noise, and at most 1.41Δ_e with two servers' (release.Gathered: c_e is at most 1.05(x +
// 1.5)/x times as large, x = log(4|S|e²/β) ≥ log 8): one epoch more, and the regret is the same but
// for its constant. Of R users' noises c_e is O(√(x/R)/ε), and the regret O(Σ log T/(ε²Δ_a)).
type DPSE struct {
	epsilon, beta float64

	elimination
	epoch int
}

// NewDPSE returns DP-SE for a number of arms ≥ 2, a budget epsilon > 0 (+Inf: no privacy) and the
// failure probability beta in (0,1), 1/T in the source.
func NewDPSE(arms int, epsilon, beta float64) (*DPSE, error) {
	if err := checkArms(arms); err != nil {
		return nil, fmt.Errorf("dp-se: %w", err)
	}
	if err := checkPositive("epsilon", epsilon, true); err != nil {
		return nil, fmt.Errorf("dp-se: %w", err)
	}
	if err := checkRisk("beta", beta); err != nil {
		return nil, fmt.Errorf("dp-se: %w", err)
	}
	return &DPSE{epsilon: epsilon, beta: beta, elimination: newElimination(arms)}, nil
}

// Mechanism implements Policy.
func (p *DPSE) Mechanism() privacy.Mechanism { return privacy.Laplace{Scale: 1 / p.epsilon} }

// Next implements Policy.
func (p *DPSE) Next(released privacy.Released) *Batch {
	if n := released.Len(); n > 0 {
		top, r := math.Inf(-1), math.Inf(1) // R_e, or fewer if not everybody answered
		for i := range n {
			top, r = max(top, released.Mean(i)), min(r, float64(released.N(i)))
		}
		h := math.Sqrt(p.logs(8) / (2 * r))
		c := released.Tail().Both(p.logs(4)) / r
		kept := p.alive[:0]
		for i := range n {
			if top-released.Mean(i) <= 2*h+2*c {
				kept = append(kept, p.alive[i])
			}
		}
		p.alive = kept
	}
	p.epoch++
	gap := math.Ldexp(1, -p.epoch)
	return p.each(roundsOf(max(32*p.logs(8)/(gap*gap), 8*p.logs(4)/(p.epsilon*gap)) + 1))
}

// logs is log(c|S|e²/β).
func (p *DPSE) logs(c float64) float64 {
	e := float64(p.epoch)
	return math.Log(c * float64(len(p.alive)) * e * e / p.beta)
}

// roundsOf rounds a number of rounds up, and to Forever where no horizon reaches.
func roundsOf(x float64) int {
	if x >= Forever/2 {
		return Forever
	}
	return int(math.Ceil(x))
}
