package stats

import (
	"math"
	"slices"
)

// Quantile returns the quantile of order p of a sample that is already sorted in increasing order.
// It is type 7 of Hyndman and Fan (American Statistician 50, 1996), the default of R, NumPy and
// Excel: with h = (n−1)p, the linear interpolation between the order statistics ⌊h⌋ and ⌊h⌋+1
// (counted from 0). An empty sample or an order outside [0,1] gives NaN.
func Quantile(sorted []float64, p float64) float64 {
	n := len(sorted)
	if n == 0 || !(p >= 0 && p <= 1) {
		return math.NaN()
	}
	h := float64(n-1) * p
	i := int(h)
	if i >= n-1 {
		return sorted[n-1]
	}
	lo, hi, f := sorted[i], sorted[i+1], h-math.Floor(h)
	if f == 0 || lo == hi { // also keeps ∞ − ∞ out
		return lo
	}
	// Between opposite huge values hi−lo could overflow; this form does not.
	q := float64(lo*(1-f)) + float64(hi*f)
	return min(max(q, lo), hi) // rounding must not leave the bracket
}

// Beyond returns the mean of the largest 1 − p of a sample that is already sorted in increasing order,
// its conditional value at risk of order p in (0,1): v + mean of (x − v)₊/(1−p), v its p-quantile
// (Rockafellar and Uryasev, Journal of Risk 2, 2000).
func Beyond(sorted []float64, p float64) float64 {
	v, over := Quantile(sorted, p), 0.0
	for _, x := range sorted {
		if x > v { // and not for ∞ − ∞
			over += x - v
		}
	}
	return v + over/float64(len(sorted))/(1-p)
}

// Quantiles returns the quantiles of x, which need not be sorted, at each order of p; see Quantile.
// If x holds a NaN, all are NaN.
func Quantiles(x []float64, p ...float64) []float64 {
	sorted := slices.Clone(x)
	slices.Sort(sorted) // NaNs come first
	q := make([]float64, len(p))
	for i := range p {
		q[i] = Quantile(sorted, p[i])
		if len(sorted) > 0 && math.IsNaN(sorted[0]) {
			q[i] = math.NaN()
		}
	}
	return q
}
