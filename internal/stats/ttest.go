package stats

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"
)

// A Test is the outcome of a t test: the statistic, its degrees of freedom and the two-sided p-value.
type Test struct {
	Statistic, DF, P float64
}

// Paired tests whether the means of two samples are equal when a[i] and b[i] belong together (the
// same run, the same world): a one-sample t test of the differences a[i]−b[i], with n−1 degrees of
// freedom, two-sided. It assumes roughly Gaussian differences.
//
// Differences without any spread, beyond the rounding of a and b, have no t statistic. They are
// answered by the sign test, which is exact whatever their law: all zero gives p = 1, all equal to
// another value p = 2^(1−n). Regret comes in steps, so that two runs often agree by chance, and an
// infinite statistic would call that certain.
func Paired(a, b []float64) (Test, error) {
	if len(a) != len(b) {
		return Test{}, fmt.Errorf("stats: paired samples of %d and %d values: lengths must be "+
			"equal", len(a), len(b))
	}
	if err := check("a", a); err != nil {
		return Test{}, err
	}
	if err := check("b", b); err != nil {
		return Test{}, err
	}
	d := make([]float64, len(a))
	largest := 0.0
	for i := range a {
		d[i] = a[i] - b[i]
		largest = max(largest, math.Abs(a[i]), math.Abs(b[i]))
	}
	mean, _, se := Mean(d)
	if rounding := float64(1e-12 * largest); se <= rounding {
		if math.Abs(mean) <= rounding {
			return Test{Statistic: 0, DF: float64(len(d) - 1), P: 1}, nil
		}
		return Test{Statistic: math.Copysign(math.Inf(1), mean), DF: float64(len(d) - 1),
			P: math.Ldexp(1, 1-len(d))}, nil
	}
	return student(mean, se, float64(len(d)-1)), nil
}

// Welch tests whether the means of two independent samples are equal without assuming equal
// variances (Welch, Biometrika 34, 1947), two-sided, with the Welch–Satterthwaite degrees of
// freedom. Two samples without any spread are answered exactly: equal means give p = 1, others p =
// 0 (and DF is the pooled n+m−2).
func Welch(a, b []float64) (Test, error) {
	if err := check("a", a); err != nil {
		return Test{}, err
	}
	if err := check("b", b); err != nil {
		return Test{}, err
	}
	ma, _, sa := Mean(a)
	mb, _, sb := Mean(b)
	da, db := float64(len(a)-1), float64(len(b)-1)
	se := math.Hypot(sa, sb)
	df := da + db
	if se > 0 {
		// Shares of the variance, so that neither tiny nor huge variances under- or overflow
		// when squared twice.
		ra, rb := sa/se, sb/se
		df = 1 / (float64(ra*ra*ra*ra)/da + float64(rb*rb*rb*rb)/db)
	}
	return student(ma-mb, se, df), nil
}

// student is the two-sided t test of an estimate against 0.
func student(estimate, se, df float64) Test {
	if se == 0 {
		if estimate == 0 {
			return Test{Statistic: 0, DF: df, P: 1}
		}
		return Test{Statistic: math.Copysign(math.Inf(1), estimate), DF: df, P: 0}
	}
	t := estimate / se
	// P(|T| ≥ |t|) = I_{df/(df+t²)}(df/2, 1/2): no 1 − CDF, so small p-values keep their digits.
	x := 1 / (1 + float64(t*t)/df)
	return Test{Statistic: t, DF: df, P: mathext.RegIncBeta(df/2, 0.5, x)}
}

// check refuses samples that no t test can use.
func check(name string, x []float64) error {
	if len(x) < 2 {
		return fmt.Errorf("stats: sample %s has %d values, must be at least 2", name, len(x))
	}
	for i, v := range x {
		if !(math.Abs(v) <= 1e150) { // its square must stay finite
			return fmt.Errorf("stats: sample %s[%d] is %v, must be finite and at most 1e150 in "+
				"size", name, i, v)
		}
	}
	return nil
}

// Holm returns the p-values adjusted for their number by Holm's step-down procedure (Scandinavian
// Journal of Statistics 6, 1979), in the order given: rejecting where the adjusted value is at most
// α keeps the probability of any false rejection at most α, however the tests depend on each other.
// The i-th smallest of m becomes the running maximum of min(1, (m−i+1)·p).
func Holm(p []float64) ([]float64, error) {
	order := make([]int, len(p))
	for i, v := range p {
		if !(v >= 0 && v <= 1) {
			return nil, fmt.Errorf("stats: p[%d] is %v, must be in [0, 1]", i, v)
		}
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(p[i], p[j]) })
	adjusted := make([]float64, len(p))
	running := 0.0
	for rank, i := range order {
		running = max(running, min(1, float64(len(p)-rank)*p[i]))
		adjusted[i] = running
	}
	return adjusted, nil
}
