// Package stats holds the confidence intervals and tests that results are reported with: Student
// intervals of a mean, sample quantiles, paired and Welch t tests, Holm's correction, and the exact
// interval of a proportion. Every function is deterministic, takes its data in the given order, and
// changes none of it.
package stats

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Mean returns the mean of x, its standard deviation (divisor n−1) and the standard error of
// the mean, sd/√n.
//
// It is Welford's recurrence (Technometrics 4, 1962) in the order of x: one pass, no cancellation
// when the mean is large against the spread, and a constant sample has exactly sd = 0. An empty x
// has no mean (NaN); a single value has a mean, but no sd (NaN). NaN and ±Inf in x propagate.
func Mean(x []float64) (mean, sd, se float64) {
	if len(x) == 0 {
		return math.NaN(), math.NaN(), math.NaN()
	}
	var m2 float64
	for i, v := range x {
		d := v - mean
		mean += d / float64(i+1)
		m2 += float64(d * (v - mean))
	}
	if len(x) == 1 {
		return mean, math.NaN(), math.NaN()
	}
	n := float64(len(x))
	sd = math.Sqrt(m2 / (n - 1))
	return mean, sd, sd / math.Sqrt(n)
}

// T returns the two-sided Student multiplier of a mean of n values: mean ± T(n, level)·se covers
// the true mean of Gaussian data with probability level. It is the quantile of order (1+level)/2 of
// Student's law with n−1 degrees of freedom. Fewer than two values bound nothing: the answer is
// +Inf. A level outside (0,1) gives NaN.
func T(n int, level float64) float64 {
	switch {
	case !(level > 0 && level < 1):
		return math.NaN()
	case n < 2:
		return math.Inf(1)
	}
	// The lower tail, because (1+level)/2 rounds to 1 for a level near 1.
	return -distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(n - 1)}.Quantile((1 - level) / 2)
}

// Half returns the mean of x and the half width of its Student interval, mean ± half. The half
// width is +Inf for a single value and NaN for none.
func Half(x []float64, level float64) (mean, half float64) {
	mean, _, se := Mean(x)
	if len(x) == 1 && level > 0 && level < 1 {
		return mean, math.Inf(1)
	}
	return mean, float64(T(len(x), level) * se)
}

// ClopperPearson returns the exact (conservative) interval of a proportion after successes in n
// trials: Clopper and Pearson, Biometrika 26 (1934). It covers the true proportion with probability
// at least level, whatever the proportion is.
func ClopperPearson(successes, n int, level float64) (lo, hi float64, err error) {
	switch {
	case n < 1:
		return 0, 0, fmt.Errorf("stats: n is %d, must be at least 1", n)
	case successes < 0 || successes > n:
		return 0, 0, fmt.Errorf("stats: successes is %d, must be in [0, n] = [0, %d]", successes, n)
	case !(level > 0 && level < 1):
		return 0, 0, fmt.Errorf("stats: level is %v, must be in (0, 1)", level)
	}
	tail := (1 - level) / 2
	s, f := float64(successes), float64(n-successes)
	lo, hi = 0, 1
	if successes > 0 {
		lo = betaQuantile(s, f+1, tail)
	}
	if successes < n {
		// By symmetry, 1 − the lower end of the failures: keeps the small tail exact.
		hi = 1 - betaQuantile(f, s+1, tail)
	}
	return lo, hi, nil
}

// betaQuantile is the p-quantile of Beta(a, b), rounded down a little where the library's own
// search ends early, as it does for p below 10^-8 or so and large a or b: then it bisects its
// distribution function.
func betaQuantile(a, b, p float64) float64 {
	law := distuv.Beta{Alpha: a, Beta: b}
	if b == 1 { // x^a
		return math.Pow(p, 1/a)
	}
	if a == 1 { // 1 − (1−x)^b
		return -math.Expm1(math.Log1p(-p) / b)
	}
	if x := law.Quantile(p); math.Abs(law.CDF(x)-p) <= 1e-9*p {
		return x
	}
	lo, hi := 0.0, 1.0
	for range 200 {
		mid := lo + (hi-lo)/2
		if mid <= lo || mid >= hi {
			break
		}
		if law.CDF(mid) <= p {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}
