package paper

import (
	"fmt"
	"math"

	"github.com/sotto-dp/sotto/experiment"
)

// A pricing is a policy of ρ-zCDP that is played beside its own twin without privacy.
type pricing struct {
	name, instance, policy string
	rhos                   []float64 // of the right panels: price over time
	falling                []float64 // increasing budgets a decade apart over which the difference is asked to fall
	largest                float64   // budget at which it is asked to be zero
	decades                []int     // how many decades before the horizon the left panels' other curves end
}

func (p pricing) cell(e *Evidence, rho float64) (*experiment.CellResult, error) {
	return e.Cell(p.name, p.instance, p.policy, budget("rho", rho))
}

// price is the price of privacy some decades before the horizon.
func (p pricing) price(e *Evidence, rho float64, decades int) (estimate, int, error) {
	r, err := e.Results(p.name)
	if err != nil {
		return estimate{}, 0, err
	}
	c, err := p.cell(e, rho)
	if err != nil {
		return estimate{}, 0, err
	}
	t := r.Manifest.Horizon
	for range decades {
		t /= 10
	}
	x, err := at(r, c.Price, t)
	return x, t, err
}

// free is the first conclusion of 001 §VII-B: at the largest budget nothing is left of the difference.
func (p pricing) free(e *Evidence) (Finding, error) {
	var parts []Finding
	for _, d := range p.decades {
		x, t, err := p.price(e, p.largest, d)
		if err != nil {
			return Finding{}, err
		}
		h := x.half(len(p.decades))
		parts = append(parts, Between(x.mean, x.mean-h, x.mean+h, -0.01, 0.01, x.runs, fmt.Sprintf("price at ρ = %v, T = %.0e", p.largest, float64(t))))
	}
	return Every(parts), nil
}

// less is its other half: a larger budget, a smaller difference.
func (p pricing) less(e *Evidence) (Finding, error) {
	var parts []Finding
	for i := 1; i < len(p.falling); i++ {
		a, err := p.cell(e, p.falling[i-1])
		if err != nil {
			return Finding{}, err
		}
		b, err := p.cell(e, p.falling[i])
		if err != nil {
			return Finding{}, err
		}
		m, lo, hi := Difference(a.FinalRegret, b.FinalRegret, len(p.falling)-1)
		parts = append(parts, Above(m, lo, hi, 0, len(a.FinalRegret), fmt.Sprintf("regret at ρ = %v minus that at ρ = %v", p.falling[i-1], p.falling[i])))
	}
	return Every(parts), nil
}

// falls is the second conclusion: the price at the horizon is below factor times what it was some decades before.
func (p pricing) falls(decades int, factor float64) func(e *Evidence) (Finding, error) {
	return func(e *Evidence) (Finding, error) {
		var parts []Finding
		for _, rho := range p.rhos {
			x2, t2, err := p.price(e, rho, 0)
			if err != nil {
				return Finding{}, err
			}
			x1, t1, err := p.price(e, rho, decades)
			if err != nil {
				return Finding{}, err
			}
			v, lo, hi := x2.over(x1, len(p.rhos))
			parts = append(parts, Below(v, lo, hi, factor, x2.runs, fmt.Sprintf("ρ = %v: price %.3g at T = %.0e, %.3g at %.0e", rho, x1.mean, float64(t1), x2.mean, float64(t2))))
		}
		return Every(parts), nil
	}
}

// claims are the two conclusions of 001 §VII-B and 000 §5.5.2 in one setting.
func (p pricing) claims(prefix string, decades int, why string) []Claim {
	return []Claim{
		{
			ID: prefix + "free", Text: "At a fixed horizon, regret minus that without privacy converges to zero as ρ grows: privacy is free in the low-privacy regime.",
			Statistic: fmt.Sprintf("the price of privacy at ρ = %v, at the last horizons; holds if all are in 0 ± 1 %%", p.largest), Decide: p.free, Why: why,
		},
		{
			ID: prefix + "less", Text: "The difference falls as ρ grows.",
			Statistic: fmt.Sprintf("the difference of final regrets between successive ρ of %v, paired by run; holds if all are above zero", p.falling), Decide: p.less, Why: why,
		},
		{
			ID: prefix + "price", Text: "At a fixed ρ the price of privacy falls as the horizon grows.",
			Statistic: fmt.Sprintf("the price at the horizon over that %d decades before, for ρ in %v; holds if all are below 1", decades, p.rhos), Decide: p.falls(decades, 1), Why: why,
		},
	}
}

const (
	voidLinear     = "Noise N(0,1) leaves [−1,1], and rewards are not clipped: no guarantee holds for these runs, as for the source's."
	voidContextual = "Noise and actions leave [−1,1] and the unit ball, and are not clipped: no guarantee holds for these runs, as for the source's."
	chosenDesign   = "The source does not say whether actions and θ* were drawn once or anew for each run; here anew, since regret varies much between instances. "
	chosenOFUL     = "The source's figure ends at T = 10⁵, though its text has 10⁷. The radius has the smallest eigenvalue of V where the print has a bound that is below zero for the first 10⁵ rounds; the printed radius is played too. "
)

func thesis54() Figure {
	p := pricing{"price", "mu2", "adac-ucb", []float64{0.1, 0.5, 1}, []float64{0.01, 0.1, 1, 10}, 1000, []int{0, 1, 2}}
	long := p
	long.name = "long"
	f := Figure{
		ID: "thesis-5.4", Source: "000", Where: "Figure 5.4, §5.5.2", Title: "The price of ρ-zCDP: finite arms",
		About:  "AdaC-UCB at β = 1, and the same without noise, in the same worlds: five Bernoulli arms with means 0.75 to 0.25, T = 10⁷.",
		Chosen: "The source has 100 runs; we have 2000. The values of ρ on the left are ours. A second experiment goes on to T = 10¹².",
		Voids:  "β = 1 is outside of Theorem 5.6, which needs β > 3: no bound on regret is proved. Privacy holds.",
		Experiments: []Experiment{
			{Name: "price", File: "thesis-5.4.yaml", Quick: runs(400)},
			{Name: "long", File: "thesis-5.4-long.yaml", Quick: runs(1000)},
		},
		Claims: p.claims("", 3, ""),
	}
	f.Claims = append(f.Claims, Claim{
		ID: "price-to-zero", Text: "At a fixed ρ the price of privacy converges to zero: what privacy costs is of lower order.", Where: "§5.5.2, second conclusion",
		Statistic: "the exponent of log T in the price from T = 10⁷ to 10¹², for ρ = 0.1, 0.5 and 1; holds if all are below −0.1. Theorem 5.6 has √log T over log T: −½",
		Decide: func(e *Evidence) (Finding, error) {
			var parts []Finding
			for _, rho := range long.rhos {
				x2, t2, err := long.price(e, rho, 0)
				if err != nil {
					return Finding{}, err
				}
				x1, t1, err := long.price(e, rho, 5)
				if err != nil {
					return Finding{}, err
				}
				v, lo, hi := exponent(x2, x1, float64(t2), float64(t1), len(long.rhos))
				parts = append(parts, Below(v, lo, hi, -0.1, x2.runs, fmt.Sprintf("ρ = %v: price %.4f at T = %.0e, %.4f at %.0e", rho, x1.mean, float64(t1), x2.mean, float64(t2))))
			}
			return Every(parts), nil
		},
		Why: "Regret moves in steps, since plays double, so that a price of a few hundredths need not fall in every decade.",
	})
	return f
}

func thesis55() Figure {
	p := pricing{"price", "sphere", "adac-gope", []float64{0.01, 0.1, 1}, []float64{0.001, 0.01, 0.1, 1, 10, 100, 1000}, 1e5, []int{1, 2, 3}}
	fixed := p
	fixed.name = "fixed"
	f := Figure{
		ID: "thesis-5.5", Source: "000", Where: "Figure 5.5, §5.5.2", Title: "The price of ρ-zCDP: linear bandits",
		About:  "AdaC-GOPE and GOPE at δ = 0.001 with 10 actions on the unit sphere of ℝ³, θ* on it too, and N(0,1) noise.",
		Chosen: chosenDesign + "1000 runs where the source has 100. A second experiment has one instance, drawn once, to T = 10¹².",
		Voids:  voidLinear,
		Experiments: []Experiment{
			{Name: "price", File: "thesis-5.5.yaml", Quick: runs(300)},
			{Name: "fixed", File: "thesis-5.5-fixed.yaml", Quick: runs(100)},
		},
		Claims: p.claims("", 3, ""),
	}
	f.Claims = append(f.Claims, Claim{
		ID: "price-to-zero", Text: "At a fixed ρ the price of privacy converges to zero as the horizon grows, on one instance too.", Where: "§5.5.2, second conclusion",
		Statistic: "the price at T = 10¹² over that at 10⁸ on an instance drawn once, for ρ = 0.01, 0.1 and 1; holds if all are below one half, fails if one is above",
		Decide:    fixed.falls(4, 0.5),
		Why: "δ is fixed, so that AdaC-GOPE and GOPE both know the best action after some time and have no regret from then on: both regrets are constants, and so is the price. Means over instances drawn anew hide it, since at any T " +
			"they are ruled by the few instances in which two actions are nearly equal. The theorem's rates are minimax, and there δ = 1/T.",
	})
	return f
}

func thesis56() Figure {
	p := pricing{"price", "gaussian", "adac-oful", []float64{0.1, 0.5, 1}, []float64{0.1, 1, 10, 100, 1000}, 1e5, []int{0, 1}}
	long, printed := p, p
	long.name, printed.name = "long", "printed"
	f := Figure{
		ID: "thesis-5.6", Source: "000", Where: "Figure 5.6, §5.5.2", Title: "The price of ρ-zCDP: linear contextual bandits",
		About:  "AdaC-OFUL and RS-OFUL with C = 1, λ = 0.1, δ = 0.001 and N(0,1) noise; in each round 10 new actions from N((1/√3, 1/√3, 1/√3), I/10), θ* on the sphere.",
		Chosen: chosenOFUL + "θ* is drawn anew for each run. A third experiment goes on to T = 10⁶.",
		Voids:  voidContextual,
		Experiments: []Experiment{
			{Name: "price", File: "thesis-5.6.yaml", Quick: func(s *experiment.Spec) {
				s.Runs = 10
			}},
			{Name: "long", File: "thesis-5.6-long.yaml"},
			{Name: "printed", File: "thesis-5.6-printed.yaml", Quick: runs(4)},
		},
		Claims: p.claims("", 1, ""),
	}
	f.Claims = append(f.Claims,
		Claim{
			ID: "price-to-zero", Text: "At a fixed ρ the price of privacy converges to zero as the horizon grows.", Where: "§5.5.2, second conclusion",
			Statistic: "the price at T = 10⁶ over that at 10⁵, for ρ = 0.1, 0.5 and 1; holds if all are below 0.9",
			Decide:    long.falls(1, 0.9),
		},
		Claim{
			ID: "printed", Text: "With the radius as printed, the price of privacy stays on the figure's axis, below 2 at T = 10⁵.",
			Where:     "Algorithm 9, Appendix C.4.1, and the axis of Figure 5.6",
			Statistic: "the price at T = 10⁵ of AdaC-OFUL with the printed radius at ρ = 0.5 and 1; holds if both are below 2",
			Decide: func(e *Evidence) (Finding, error) {
				var parts []Finding
				for _, rho := range []float64{0.5, 1} {
					x, _, err := printed.price(e, rho, 0)
					if err != nil {
						return Finding{}, err
					}
					h := x.half(2)
					parts = append(parts, Below(x.mean, x.mean-h, x.mean+h, 2, x.runs, fmt.Sprintf("ρ = %v", rho)))
				}
				return Every(parts), nil
			},
			Why: "The printed radius divides by λ + λ₀t/4 − 8L − 2√(tL), which is below zero for the first 10⁵ rounds (we have λ there), so that it stays a hundred times too wide. The figure cannot come from it.",
		})
	return f
}

func zcdp() []Figure { return nil }

var _ = math.Inf
