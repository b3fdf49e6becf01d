package bound

import "math"

// others lists private policies of which only a rate is known, or what happens in the long run.
func (p *problem) others() []Bound {
	if math.IsNaN(p.epsilon) || math.IsInf(p.epsilon, 1) {
		return nil
	}
	out := []Bound{
		{Name: "dp-se-2", Where: "[Sajed 2019, Corollary A.1.3]", Policy: "dp-se-2",
			Form: "O(Σ log T/Δ_a + K log T/ε)", Kind: Implicit, Note: "β = 1/T, T large"},
		{Name: "lazy-dp-ts", Where: "Hu and Hegde 2022", Policy: "lazy-dp-ts",
			Form: "O(Σ log T/min{Δ_a,ε})", Kind: Implicit},
	}
	means, ok := p.bernoulli()
	if !ok || !p.pure {
		return out
	}
	c, err := BernoulliRegret(means, p.epsilon)
	if err != nil {
		return out
	}
	for _, q := range []struct {
		name           string
		alpha, caution float64
	}{{"dp-klucb", 1.5, 1}, {"dp-imed", 1.5, 1.25}} {
		if p.Caution > 0 {
			q.caution = p.Caution
			if q.name == "dp-imed" && q.caution == 1 {
				q.alpha = 2
			}
		}
		if p.Alpha > 0 {
			q.alpha = p.Alpha
		}
		out = append(out, logarithmic(Bound{Name: q.name, Where: "proof: policy.DPIMED; arXiv:2505.05613",
			Policy: q.name, Form: "αγ Σ Δ_a log T/d_ε(μ_a,μ*) + o(log T)",
			Note: "Bernoulli rewards; batches of ratio α > 1, caution γ ≥ 1; means of runs are far " +
				"above it at a finite T where tails are heavy"}, q.alpha*q.caution*c))
	}
	return out
}

// normal lists what happens in the long run with normal noise of any variance.
func (p *problem) normal() []Bound {
	means, ok := p.bernoulli()
	if !ok || math.IsNaN(p.b) {
		return nil
	}
	c, err := BernoulliRegret(means, math.Inf(1))
	if err != nil {
		return nil
	}
	alpha, caution := 1.5, 1.0
	if p.Alpha > 0 {
		alpha = p.Alpha
	}
	if p.Caution > 0 {
		caution = p.Caution
	}
	return []Bound{logarithmic(Bound{Name: "zcdp-imed", Where: "proof: policy.ZCDPIMED", Policy: "zcdp-imed",
		Form: "αγ Σ Δ_a log T/kl(μ_a,μ*) + o(log T)", Note: "independent rewards in [0,1]; batches of " +
			"ratio α > 1, caution γ ≥ 1; noise is in the second term alone"}, alpha*caution*c)}
}
