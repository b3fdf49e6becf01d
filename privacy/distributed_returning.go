package privacy

import (
	"errors"
	"fmt"
	"math"
)

// Returning is what users lose who take part in up to Batches batches, once in each, also over
// several runs [Chowdhury and Zhou 2023, Appendix I], as the ε of (ε,Delta)-DP.
type Returning struct {
	Batches int
	Delta   float64
	// each batch's Rényi curve times Batches, then converted [Chowdhury and Zhou 2023, Lemma 10];
	// if that is smaller, in another currency that adds up
	Renyi float64
	// Each batch converted at Delta/(2·Batches), then advanced composition with Delta/2 ([Azize
	// 2024] after Proposition 2.9).
	Advanced float64
	Simple   float64 // each batch converted at Delta/Batches, and added
}

// ReturningUsers composes a batch's loss by the three routes. Renyi is what a Ledger does that has
// the batches in one slot.
//
// The skellam mechanism at ε = 0.1 and s = 10 for 1000 users, 100 times at δ = 10^-6, costs 5.22 by
// Rényi curves, 52.4 added up and 67.0 by advanced composition, which is for small ε a batch: from
// ε = 0.01 it is 0.431, 4.75 and 2.88.
func ReturningUsers(each Loss, batches int, delta float64) (Returning, error) {
	if err := errors.Join(returns(batches), probability("delta", delta)); err != nil {
		return Returning{}, fmt.Errorf("returning users: %w", err)
	}
	n := float64(batches)
	r := Returning{Batches: batches, Delta: delta, Renyi: each.Times(batches).Approx(delta),
		Advanced: math.Inf(1), Simple: n * each.Approx(delta/n)}
	d := delta / (2 * n)
	e := each.Approx(d)
	if e == 0 {
		r.Advanced = 0
	} else if a, err := Advanced(Approx{e, d}, batches, delta/2); err == nil {
		r.Advanced = a.Epsilon
	}
	return r, nil
}

func returns(batches int) error {
	if batches < 1 {
		return fmt.Errorf("batches is %d, must be at least 1", batches)
	}
	return nil
}

// returningSigma is the standard deviation, in rewards, of normal noise in each batch, such that
// users who take part in so many lose (ε,δ) in all: by concentrated losses, ρ/Batches a batch with
// ρ from [Chowdhury and Zhou 2023, Lemma 10], and by advanced composition, PerBatch's share a
// batch. [Chowdhury and Zhou 2023]'s (14) and (15) compare their squares, O(B·log(1/δ)·log(B/δ)/ε²)
// against O(B·log(1/δ)/ε²). For (1, 10^-6) and 1000 batches they are 143 and 1527.
func returningSigma(total Approx, batches int) (concentrated, advanced float64, err error) {
	if err := errors.Join(returns(batches), total.Validate()); err != nil {
		return 0, 0, fmt.Errorf("returning users: %w", err)
	}
	share, err := PerBatch(total, batches)
	if err != nil {
		return 0, 0, err
	}
	a, ok := share.(Approx)
	if !ok {
		return 0, 0, fmt.Errorf("returning users: the share of a batch is %v, must be "+
			"(epsilon, delta)", share)
	}
	if advanced, err = AnalyticSigma(a); err != nil {
		return 0, 0, err
	}
	rho := approxToZCDP(total)
	return math.Sqrt(float64(batches) / (2 * rho)), advanced, nil
}

// approxToZCDP is the largest ρ, from below, for which [Chowdhury and Zhou 2023, Lemma 10] gives
// every ρ-zCDP mechanism (ε,δ)-DP: ZCDPToApproxTight's inverse.
func approxToZCDP(b Approx) float64 {
	lo, hi := 0.0, b.Epsilon
	for ZCDPToApproxTight(hi, b.Delta) <= b.Epsilon && hi <= math.MaxFloat64/4 {
		lo, hi = hi, 2*hi
	}
	for range 200 {
		mid := lo + (hi-lo)/2
		if mid <= lo || mid >= hi {
			break
		}
		if ZCDPToApproxTight(mid, b.Delta) <= b.Epsilon {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}
