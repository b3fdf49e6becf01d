package privacy

import (
	"errors"
	"fmt"
	"math"
)

// Sequential is the guarantee of events that read the same records, each of which may be chosen
// after seeing the ones before: [Azize 2024, Proposition 2.9] for ε, ρ and (ε,δ), Mironov 2017
// Proposition 1 for Rényi at one order. All must be in one currency; to mix currencies add losses
// (LossOf). None absorbs the others. Coq checks it for ε and discrete mechanisms:
// proofs/Composition.v#adaptive_composition and proofs/Composition.v#repeated_readings.
func Sequential(budgets ...Budget) (Budget, error) {
	return fold("sequential composition", budgets, addUp)
}

// Parallel is the guarantee of events that read disjoint records, settled before they are read: the
// largest ([Azize 2024, Lemma 2.10], whose ρ is max ρ_i). All must be in one currency.
func Parallel(budgets ...Budget) (Budget, error) {
	return fold("parallel composition", budgets, func(a, b float64) float64 { return max(a, b) })
}

func fold(what string, budgets []Budget, f func(a, b float64) float64) (Budget, error) {
	var sum Budget
	none := false
	for i, b := range budgets {
		if b == nil {
			return nil, fmt.Errorf("%s: budget %d is missing", what, i)
		}
		if err := b.Validate(); err != nil {
			return nil, fmt.Errorf("%s: budget %d: %w", what, i, err)
		}
		if _, ok := b.(None); ok {
			none = true
			continue
		}
		if sum == nil {
			sum = b
			continue
		}
		mixed := true
		switch s := sum.(type) {
		case Pure:
			if b, ok := b.(Pure); ok {
				sum, mixed = Pure{f(s.Epsilon, b.Epsilon)}, false
			}
		case ZCDP:
			if b, ok := b.(ZCDP); ok {
				sum, mixed = ZCDP{f(s.Rho, b.Rho)}, false
			}
		case Approx:
			if b, ok := b.(Approx); ok {
				sum, mixed = Approx{f(s.Epsilon, b.Epsilon), f(s.Delta, b.Delta)}, false
			}
		case Renyi:
			if b, ok := b.(Renyi); ok && b.Alpha == s.Alpha {
				sum, mixed = Renyi{s.Alpha, f(s.Epsilon, b.Epsilon)}, false
			}
		case GDP: // Dong, Roth and Su 2022, Corollary 3.3
			if b, ok := b.(GDP); ok {
				sum, mixed = GDP{sqrtUp(f(mulUp(s.Mu, s.Mu), mulUp(b.Mu, b.Mu)))}, false
			}
		}
		if mixed {
			return nil, fmt.Errorf("%s: budgets are %v and %v, all must be in one currency", what, sum, b)
		}
	}
	if none {
		return None{}, nil
	}
	if sum == nil {
		return nil, fmt.Errorf("%s: there are no budgets", what)
	}
	return guarantee(what, sum)
}

// guarantee refuses what has composed to no guarantee: δ ≥ 1, or an overflow.
func guarantee(what string, b Budget) (Budget, error) {
	if err := b.Validate(); err != nil {
		return nil, fmt.Errorf("%s: the result is no guarantee: %w", what, err)
	}
	return b, nil
}

// Advanced is the guarantee of k adaptive events, each (ε,δ)-DP, at a price of slack more in δ
// ([Azize 2024] after Proposition 2.9; Dwork, Rothblum and Vadhan 2010):
//
//	(√(2k log(1/slack))·ε + kε(e^ε − 1), kδ + slack).
//
// For few events, or a large ε, the simple sum kε is smaller: see repeated.
func Advanced(each Approx, k int, slack float64) (Approx, error) {
	const what = "advanced composition"
	if k < 1 {
		return Approx{}, fmt.Errorf("%s: k is %d, must be at least 1", what, k)
	}
	// Pure events have δ = 0, which no Approx budget may have.
	err := errors.Join(positive("epsilon", each.Epsilon), probability("slack", slack))
	if each.Delta != 0 {
		err = errors.Join(err, probability("delta", each.Delta))
	}
	if err != nil {
		return Approx{}, fmt.Errorf("%s: %w", what, err)
	}
	n, e := float64(k), each.Epsilon
	out := Approx{
		Epsilon: raised(float64(math.Sqrt(-2*n*math.Log(slack))*e)+float64(n*float64(e*math.Expm1(e))), guard),
		Delta:   addUp(mulUp(n, each.Delta), slack),
	}
	if _, err := guarantee(what, out); err != nil {
		return Approx{}, err
	}
	return out, nil
}

// repeated is the guarantee of k adaptive events at a total δ of delta: the better of simple and
// advanced composition. Each may have δ = 0.
func repeated(each Approx, k int, delta float64) (Approx, error) {
	const what = "composition"
	if k < 1 {
		return Approx{}, fmt.Errorf("%s: k is %d, must be at least 1", what, k)
	}
	left := delta - float64(float64(k)*each.Delta)
	if err := errors.Join(positive("epsilon", each.Epsilon), probability("delta", delta)); err != nil {
		return Approx{}, fmt.Errorf("%s: %w", what, err)
	}
	if !(each.Delta >= 0 && left >= 0) {
		return Approx{}, fmt.Errorf("%s: delta is %v, must be at least k·delta of the events, %v",
			what, delta, float64(k)*each.Delta)
	}
	best := Approx{mulUp(float64(k), each.Epsilon), delta}
	if left > 0 {
		if a, err := Advanced(each, k, left); err == nil && a.Epsilon < best.Epsilon {
			best.Epsilon = a.Epsilon
		}
	}
	if _, err := guarantee(what, best); err != nil {
		return Approx{}, err
	}
	return best, nil
}

// Group is the guarantee for k records together, if b is that for one: two data sets that differ in
// up to k rewards [Azize 2024, Proposition 2.8].
//
//	ε-DP       kε
//	ρ-zCDP     k²ρ
//	(ε,δ)-DP   (kε, k·e^{(k−1)ε}·δ): the exponent is (k−1)ε, as the induction over one record at a time gives; [Azize 2024, (2.5)] prints k−1
//	μ-GDP      kμ (Dong, Roth and Su 2022, Theorem 2.14)
//	(α,ε)-RDP  (α/2^c, 3^c ε) with 2^c ≥ k, for α ≥ 2^{c+1} (Mironov 2017, Proposition 2)
//
// It is an error if nothing is left: δ ≥ 1, or an α that is too small.
func Group(b Budget, k int) (Budget, error) {
	const what = "group privacy"
	if b == nil {
		return nil, errors.New(what + ": there is no budget")
	}
	if err := b.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	if k < 1 {
		return nil, fmt.Errorf("%s: k is %d records, must be at least 1", what, k)
	}
	n := float64(k)
	switch v := b.(type) {
	case Pure:
		b = Pure{mulUp(n, v.Epsilon)}
	case ZCDP:
		b = ZCDP{mulUp(mulUp(n, n), v.Rho)}
	case GDP:
		b = GDP{mulUp(n, v.Mu)}
	case Approx:
		b = Approx{mulUp(n, v.Epsilon), raised(n*math.Exp(float64((n-1)*v.Epsilon))*v.Delta,
			ulps*(1+float64(n*v.Epsilon)))}
	case Renyi:
		two, three := 1.0, 1.0
		for two < n {
			two, three = 2*two, 3*three
		}
		if k > 1 && v.Alpha < 2*two {
			return nil, fmt.Errorf("%s: alpha is %v: for %d records it must be at least %v", what,
				v.Alpha, k, 2*two)
		}
		b = Renyi{v.Alpha / two, mulUp(three, v.Epsilon)}
	}
	return guarantee(what, b)
}

// PerBatch is what each batch may spend if a user comes back in up to batches of them, once in
// each, and may lose total altogether [Chowdhury and Zhou 2023, Appendix I]: total shared evenly
// for ε, ρ, μ² and Rényi. For (ε,δ) it is the larger of that and [Chowdhury and Zhou 2023]'s share
// of advanced composition,
//
//	ε/(2√(2B log(1/δ'))) with δ/(2B) each and δ' = δ/2,
//
// where that is checked to compose to no more than (ε,δ): the text asks for ε < 1.
func PerBatch(total Budget, batches int) (Budget, error) {
	const what = "budget per batch"
	if total == nil {
		return nil, errors.New(what + ": there is no budget")
	}
	if err := total.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	if batches < 1 {
		return nil, fmt.Errorf("%s: batches is %d, must be at least 1", what, batches)
	}
	n := float64(batches)
	switch v := total.(type) {
	case Pure:
		total = Pure{v.Epsilon / n}
	case ZCDP:
		total = ZCDP{v.Rho / n}
	case Renyi:
		total = Renyi{v.Alpha, v.Epsilon / n}
	case GDP:
		total = GDP{v.Mu / math.Sqrt(n)}
	case Approx:
		even := Approx{v.Epsilon / n, v.Delta / n}
		total = even
		share := Approx{v.Epsilon / (2 * math.Sqrt(-2*n*math.Log(v.Delta/2))), v.Delta / (2 * n)}
		if all, err := Advanced(share, batches, v.Delta/2); err == nil &&
			share.Epsilon > even.Epsilon && all.Epsilon <= v.Epsilon {
			total = share
		}
	}
	return guarantee(what, total)
}
