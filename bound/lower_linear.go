package bound

import (
	"errors"
	"math"

	"github.com/sotto-dp/sotto/privacy"
)

const cube = "some θ on the actions [−1,1]^d with N(0,1) noise costs so much"

// LinearFreeMinimax is e⁻²d√T/8, which every policy loses for some θ on the actions [−1,1]^d with
// N(0,1) noise [Azize 2024, Theorem 4.17].
func LinearFreeMinimax(dim int, T float64) float64 {
	return math.Exp(-2) / 8 * float64(float64(dim)*math.Sqrt(T))
}

// LinearPureMinimax is e⁻¹d/(8ε), the same for ε-View DP: half of what [Azize 2024, Theorem 4.17]
// prints, whose proof loses Markov's ½ on the way [Azize 2024, B.2].
func LinearPureMinimax(dim int, epsilon float64) float64 {
	return math.Exp(-1) / 8 * float64(dim) / epsilon
}

// LinearZCDPMinimax is e^{−2.25}d/(8√ρ) for ρ-Interactive zCDP: half of what [Azize 2024, Theorem
// 4.21] and [Azize and Basu 2024, Theorem 9] print, for the same reason. The proof has KL ≤ 1 + √ρ
// + ¼, at most 2.25 for ρ ≤ 1, which the theorems do not say; above it is e^{−1.25−√ρ}.
func LinearZCDPMinimax(dim int, rho float64) float64 {
	return math.Exp(-1.25-math.Sqrt(max(1, rho))) / 8 * float64(dim) / math.Sqrt(rho)
}

func (p *problem) zcdp() bool { _, ok := p.Budget.(privacy.ZCDP); return ok }

// cubeLower has the minimax column of the second row of [Azize 2024, Tables 4.1 and 4.2].
func (p *problem) cubeLower(dim int) []Bound {
	d := float64(dim)
	out := []Bound{{
		Name: "linear-free-minimax", Where: "[Azize 2024, Theorem 4.17]", Form: "e⁻²d√T/8", Lower: true,
		WorstCase: true, Note: cube,
		Value: func(T float64) float64 { return LinearFreeMinimax(dim, T) },
	}}
	const lost = "; Markov's ½ is lost in its proof"
	switch {
	case p.pure:
		out = append(out,
			Bound{Name: "thesis-4.17-corrected", Where: "[Azize 2024, Theorem 4.17]", Form: "e⁻¹d/(8ε)",
				Lower: true, WorstCase: true, Note: cube + "; what the proof gives",
				Value: func(float64) float64 { return LinearPureMinimax(dim, p.epsilon) }},
			Bound{Name: "thesis-4.17", Where: "[Azize 2024, Theorem 4.17]", Form: "e⁻¹d/(4ε)", Lower: true,
				WorstCase: true, Unproved: true, Note: cube + lost,
				Value: func(float64) float64 { return math.Exp(-1) / 4 * d / p.epsilon }})
	case p.zcdp():
		rho := 1 / (2 * p.b)
		out = append(out, Bound{Name: "zcdp-9-corrected", Where: "[Azize and Basu 2024, Theorem 9]",
			Form: "e^{−2.25}d/(8√ρ)", Lower: true, WorstCase: true,
			Note: cube + "; what the proof gives, above ρ = 1 with e^{−1.25−√ρ}", Value: func(float64) float64 {
				return LinearZCDPMinimax(dim, rho)
			}})
		if rho <= 1 {
			out = append(out, Bound{Name: "thesis-4.21", Where: "[Azize 2024, Theorem 4.21]; " +
				"[Azize and Basu 2024, Theorem 9]",
				Form: "e^{−2.25}d/(4√ρ)", Lower: true, WorstCase: true, Unproved: true,
				Note: cube + ", ρ ≤ 1" + lost, Value: func(float64) float64 {
					return math.Exp(-2.25) / 4 * d / math.Sqrt(rho)
				}})
		}
	}
	return out
}

// linearLower adds the problem-dependent column, [Azize 2024, Theorem 4.18].
func (p *problem) linearLower() ([]Bound, error) {
	out := p.cubeLower(len(p.Actions[0]))
	if p.Theta == nil || p.Signs {
		return out, nil
	}
	add := func(name, where, form, note string, epsilon float64) error {
		c, err := LinearProblem(p.Actions, p.Theta, p.Sigma, epsilon)
		switch {
		case errors.Is(err, ErrTie) || errors.Is(err, ErrSpan) || errors.Is(err, ErrLarge):
			return nil // the theorem says nothing, or we cannot
		case err != nil:
			return err
		}
		out = append(out, logarithmic(Bound{Name: name, Where: where, Form: form, Lower: true,
			Note: note}, c.Low))
		return nil
	}
	err := add("linear-free-problem", "Lattimore and Szepesvári 2020, Theorem 25.1",
		"c(A,θ) log T, ‖a‖²_{H⁻¹} ≤ Δ_a²/2", "consistent policies, Gaussian noise", math.Inf(1))
	if err == nil && p.pure {
		err = add("thesis-4.18", "[Azize 2024, Theorem 4.18]", "c(A,θ) log T, ‖a‖²_{H⁻¹} ≤ ½Δ_a "+
			"min(Δ_a, ε ρ_a(A))",
			"consistent policies, Gaussian noise; ρ_a(A) is a maximum over bases: ours, for the "+
				"printed one rests on a false lemma (B.1)", p.epsilon)
	}
	return out, err
}

// contextualLower: no source has a lower bound for contexts that are private or adversarial, but
// fixed decision sets are a case of theirs.
func (p *problem) contextualLower() []Bound {
	out := p.cubeLower(p.Context.Dim)
	for i := range out {
		out[i].Note += "; a fixed decision set is one of the contextual problems, and no source " +
			"has more for them"
	}
	return out
}
