package bound

import (
	"fmt"
	"math"

	"github.com/sotto-dp/sotto/internal/design"
	"github.com/sotto-dp/sotto/internal/unitball"
)

// adacGOPE is AdaC-GOPE, or GOPE without privacy, with failure probability δ (Risk, or 1/T). On the
// good event the survivors of phase ℓ have gaps of at most 4β_{ℓ−1}, β_ℓ = 2^{−ℓ}, and phase ℓ has
// at most d(d+1)/2 + c_ℓ rounds ([Azize and Basu 2024, Appendix E-B], with ours for the sum), or as
// many with 1.001 c_ℓ where designs are as near to optimal as the policy asks for by default:
//
//	c_ℓ = (8d/β_ℓ²) log(4/δ_ℓ) + (2d/β_ℓ)√((2/ρ) f(d,δ_ℓ)),   δ_ℓ = δ/(Kℓ(ℓ+1)),   f(d,δ) = d + 2√(d log(2/δ)) + 2 log(2/δ).
//
// Fewer rounds in early phases only move rounds to cheaper ones.
func (p *problem) adacGOPE() []Bound {
	// its widths are those of 1-sub-Gaussian rewards
	if math.IsNaN(p.b) || p.Sigma > 1 && !p.Signs {
		return nil
	}
	const where = "[Azize 2024, Theorem 5.12]; [Azize and Basu 2024, Theorem 4]"
	name := "adac-gope"
	if p.b == 0 {
		name = "gope"
	}
	if p.long > 1+unitball.Slack {
		return []Bound{{
			Name: name, Where: where, Policy: name,
			Form: "Σ_ℓ 4β_{ℓ−1}(d(d+1)/2 + c_ℓ) + 2δT", WorstCase: true, Kind: NotProved,
			Note: fmt.Sprintf("it needs ‖a‖ ≤ 1 and ‖θ*‖ ≤ 1, and the largest is %.6g", p.long),
		}}
	}
	phases := func(T, most float64, last func(phase float64) bool) float64 {
		delta, left, sum := p.risk(T), T, 0.0
		for l := 1.0; left > 0 && !last(l); l++ {
			rounds := min(left, p.d*(p.d+1)/2+(1+design.DefaultTolerance)*PhaseLength(p.d, p.k, delta, l, p.b))
			sum += rounds * min(most, 4*math.Exp2(1-l))
			left -= rounds
		}
		return sum
	}
	out := []Bound{{
		Name: name + "-gap-free", Where: where, Policy: name,
		Form: "Σ_ℓ 4β_{ℓ−1}(d(d+1)/2 + c_ℓ) + 2δT", WorstCase: true,
		Note: "‖a‖, ‖θ*‖, |r| ≤ 1; all T rounds in phases as long as they can be: ours",
		Value: func(T float64) float64 {
			return phases(T, 2, func(float64) bool { return false }) + 2*min(1, p.risk(T))*T
		},
	}}
	if p.Risk == 0 {
		out = append(out, Bound{
			Name: name + "-rate", Where: where, Policy: name,
			Form: "O(√(dT log(KT))) + O((d/√ρ) log^{3/2}(KT))", WorstCase: true, Kind: Implicit,
			Note: "δ = 1/T; the private term needs d = O(log(KT))",
		})
	}
	if p.Theta != nil {
		least := math.Inf(1)
		for _, gap := range p.gaps {
			if gap > 0 {
				least = min(least, gap)
			}
		}
		out = append(out, Bound{
			Name: name, Where: where, Policy: name,
			Form: "Σ_{ℓ≤ℓ(Δ_min)} min(Δ_max, 4β_{ℓ−1})(d(d+1)/2 + c_ℓ) + δTΔ_max",
			Note: "‖a‖, ‖θ*‖, |r| ≤ 1; phases until 4β_ℓ < Δ_min, summed: ours",
			Value: func(T float64) float64 {
				return phases(T, p.most, func(l float64) bool {
					return 4*math.Exp2(1-l) < least
				}) + min(1, p.risk(T))*T*p.most
			},
		})
	}
	return out
}

// PhaseLength is c_ℓ of AdaC-GOPE ([Azize 2024, Algorithm 8], [Azize and Basu 2024, (4)]) for
// dimension d, K actions, failure probability delta, phase l ≥ 1 and N(0,b) noise at sensitivity 1:
// b = 1/(2ρ) for ρ-zCDP, 0 without privacy.
func PhaseLength(d, k, delta, l, b float64) float64 {
	delta /= k * l * (l + 1)
	log := math.Log(2 / delta)
	f := d + 2*math.Sqrt(d*log) + 2*log
	beta := math.Exp2(-l)
	return 8*d/(beta*beta)*(log+math.Ln2) + 2*d/beta*math.Sqrt(4*b*f)
}
