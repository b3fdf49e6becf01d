package bound

import "math"

// adacOFUL is AdaC-OFUL, or RS-OFUL without privacy, for actions, θ* and rewards of norm at most 1.
// Its risk δ (Risk, or 1/T) is shared by three events, a third each, or is that of each of them
// (Whole); δ below is that of one.
//
// [Azize and Basu 2024]'s explicit bound needs λ ≥ 1, ‖a‖ = 1, and its Assumption 2 with λ₀,
// which no law of contexts meets for d ≥ 2; so it is Unproved. Ours needs none: V_t ⪰ λI always,
// so the noise's norm in V⁻¹ is at most √(2ℓ(T)f₁/(ρλ)), and Σ min(1,‖a_t‖²_{V⁻¹}) ≤ 2d log(1 +
// T/(λd)) does the rest.
func (p *problem) adacOFUL() []Bound {
	if p.pure {
		return []Bound{{Name: "lin-priv", Where: "[Azize and Basu 2024, Appendix F-C], after " +
			"Neel and Roth 2018",
			Policy: "lin-priv", Form: "Õ(d√T) + Õ(√(KTd)/ε)", WorstCase: true, Kind: Implicit,
			Note: "what the corrected steps come to; the printed Õ(Kd√T/ε) is looser, and the " +
				"original's Õ(Kd log T/ε) wrong"}}
	}
	if math.IsNaN(p.b) {
		return nil
	}
	c := p.Context
	d, lambda := p.d, p.Lambda
	share := func(T float64) float64 { // of one event
		if p.Whole {
			return p.risk(T)
		}
		return p.risk(T) / 3
	}
	grows := func(T float64) float64 { return logDet(d, lambda, T) / d }
	ellipsoid := func(T, delta float64) float64 { return ellipsoidRadius(d, lambda, T, delta) }
	updates := func(T float64) float64 { return logDet(d, lambda, T) / math.Log1p(p.C) } // ℓ(T)
	noise := func(T, delta float64) float64 { return 4 * p.b * updates(T) * noiseNorm(d, delta/T) }
	name := "adac-oful"
	if p.b == 0 {
		name = "rs-oful"
	}
	out := []Bound{{
		Name: name, Where: "[Azize and Basu 2024, Theorems 5 and 14]", Policy: name,
		Form: "2√(1+C)·√(2dT log(1+T/(λd)))·(β_T + √(2ℓ(T)f₁/(ρλ))) + 6δT", WorstCase: true,
		Note: "norms at most 1; δ of each of three events, a third of the policy's unless split " +
			"is false; with V ⪰ λI alone, no assumption on contexts: ours",
		Value: func(T float64) float64 {
			delta := share(T)
			radius := max(1, ellipsoid(T, delta)+math.Sqrt(noise(T, delta)/lambda))
			return 2*math.Sqrt(1+p.C)*math.Sqrt(2*d*T*grows(T))*radius + min(1, 3*delta)*2*T
		},
	}}
	if p.Risk == 0 {
		out = append(out, Bound{
			Name: name + "-rate", Where: "[Azize 2024, Theorem 5.17]; [Azize and Basu 2024, " +
				"Theorem 5]", Policy: name,
			Form: "O(d log T √T) + O((d²/√ρ) log²T)", WorstCase: true, Kind: Implicit,
			Note: "δ = 1/T; under [Azize and Basu 2024]'s Assumption 2, which no law of contexts " +
				"meets for d ≥ 2",
		})
	}
	if c.Lambda0 > 0 && p.b > 0 {
		out = append(out, Bound{
			Name: name + "-printed", Where: "[Azize and Basu 2024, Theorem 5]",
			Policy: name + ":radius=printed",
			Form:   "2√(1+C)·√(2d log(1+T/(λd)))·(β_T√T + γ_T√((1+C)(1+λ)ℓ(T)))", WorstCase: true,
			Unproved: true,
			Note: "λ ≥ 1, ‖a‖ = 1 and Assumption 2 with λ₀, which no law of contexts meets for d " +
				"≥ 2; from the T on where its eigenvalue bound is positive",
			Value: func(T float64) float64 {
				delta := share(T)
				least := lambda + eigenvalueBound(d, c.Lambda0, T, delta)
				if !(least > 0) {
					return math.NaN()
				}
				gamma := math.Sqrt(T * noise(T, delta) / least)
				return 2 * math.Sqrt(1+p.C) * math.Sqrt(2*d*grows(T)) * (ellipsoid(T,
					delta)*math.Sqrt(T) + gamma*math.Sqrt((1+p.C)*(1+lambda)*updates(T)))
			},
		})
	}
	return out
}

// logDet is d log(1 + T/(λd)), which log(det V_T/λ^d) is at most for actions with ‖a‖ ≤ 1.
func logDet(d, lambda, T float64) float64 { return d * math.Log1p(T/(lambda*d)) }

// ellipsoidRadius is β_T with the trace bound on the determinant and ‖θ*‖ = 1.
func ellipsoidRadius(d, lambda, T, delta float64) float64 {
	return math.Sqrt(2*math.Log(1/delta)+logDet(d, lambda, T)) + math.Sqrt(lambda)
}

// noiseNorm is f₁(d,δ), which ‖N(0,I_d)‖² exceeds with probability δ at most [Azize and Basu
// 2024, Lemma 10].
func noiseNorm(d, delta float64) float64 {
	log := math.Log(1 / delta)
	return d + 2*math.Sqrt(d*log) + 2*log
}

// eigenvalueBound is below λ_min(Σ a aᵀ) of T actions with probability 1−δ, under [Azize and Basu
// 2024]'s Assumption 2 (Lemma 12).
func eigenvalueBound(d, lambda0, T, delta float64) float64 {
	l := math.Log((T + 3) * d / delta)
	return lambda0*T/4 - 8*l - 2*math.Sqrt(T*l)
}
