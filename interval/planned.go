package interval

import "math"

// Mean is Sums.Interval by a mixture that is tuned to the plan: about as many rewards as it takes to find the
// planned effect, it is an eighth narrower. It holds at all times likewise, whatever the plan; without an
// effect it is Sums.Interval.
//
// Proof. The supermartingale is that of Interval's proof, and its mixture one, as plan, risk and noise fix
// the λ and their weights beforehand. These are ±λ 2^{j/2} for |j| ≤ 16, of weights that go with e^{−|j|/2},
// as far as noise allows. With v the variance at the base, or ¼, an arm of an even split needs n = 15.7v/Δ²
// rewards to find Δ (policy.Split); there λ = √(2 log(2/risk)/(vn)) gives the narrowest interval. ∎
func (p Plan) Mean(s Sums, risk float64) (lo, hi float64, err error) {
	if p.Effect == 0 {
		return s.Interval(risk)
	}
	m, level, err := p.mixture(s, risk)
	if err != nil {
		return 0, 1, err
	}
	return max(0, m.edge(0, level)-rounding), min(1, m.edge(1, level)+rounding), nil
}

// plannedTerms are the λ on either side of the planned one.
const plannedTerms = 16

// mixture is Mean's, and the level that it is below.
func (p Plan) mixture(s Sums, risk float64) (*mixture, float64, error) {
	level, err := levelOf(risk)
	if err == nil {
		err = p.check()
	}
	if err == nil {
		err = s.check()
	}
	if err != nil {
		return nil, 0, err
	}
	top, cost, err := noiseCost(s.Noise)
	if err != nil {
		return nil, 0, err
	}
	v := 0.25
	if p.Base > 0 {
		v = p.Base * (1 - p.Base)
	}
	middle := min(top, p.Effect/v*math.Sqrt(2*(level+math.Ln2)/15.7))
	m, total := &mixture{n: float64(s.N)}, 0.0
	for j := -plannedTerms; j <= plannedTerms; j++ {
		lambda := middle * math.Pow(2, float64(j)/2)
		if lambda > top {
			break
		}
		weight := math.Exp(-math.Abs(float64(j)) / 2)
		total += 2 * weight
		at := math.Log(weight) - float64(float64(s.noises())*cost(lambda))
		for _, l := range []float64{lambda, -lambda} {
			m.terms = append(m.terms, mixed{at + float64(l*s.Sum), math.Expm1(l)})
		}
	}
	for i := range m.terms {
		m.terms[i].at -= math.Log(total)
	}
	return m, level, nil
}
