package choose

import (
	"math"
	"slices"

	"github.com/sotto-dp/sotto/internal/divergence"
	"github.com/sotto-dp/sotto/internal/stats"
)

// alpha is the error probability of one statement about samples of the k-th size: two-sided,
// half on each side.
func (c *contest) alpha(k int) float64 {
	i := math.Abs(float64(k - c.base))
	return c.level / ((math.Pi*math.Pi/3 - 1) * (1 + i) * (1 + i) * c.statements())
}

// statements are those that share the level: two kinds for each pair, two for each mean, and two for
// each mean of bad runs.
func (c *contest) statements() float64 {
	return float64(c.ranked*(c.ranked-1)+2*c.all) + c.tailStatements()
}

// A sample is what a statement is made of.
type sample struct {
	n              int
	mean, sd, skew float64
}

// sampled describes the n values f(0), f(1), ….
func sampled(n int, f func(int) float64) sample {
	s := sample{n: n}
	var sum float64
	first := f(0) // shifts, so that equal values have deviation 0
	for i := range n {
		sum += f(i) - first
	}
	s.mean = first + sum/float64(n)
	var m2, m3 float64
	for i := range n {
		d := f(i) - s.mean
		m2 += float64(d * d)
		m3 += float64(d * d * d)
	}
	if m2 > 0 {
		s.sd = math.Sqrt(m2 / float64(n-1))
		s.skew = m3 / float64(n) / math.Pow(m2/float64(n), 1.5)
	}
	return s
}

// student is the multiplier of Student's two-sided interval for samples of the k-th size.
func (c *contest) student(k int) float64 {
	if c.multiplier[k] == 0 {
		c.multiplier[k] = stats.T(c.sizes[k], 1-c.alpha(k))
	}
	return c.multiplier[k]
}

// half is the half width of an interval with this multiplier.
func (s sample) half(t float64) float64 {
	if s.sd == 0 {
		return 0
	}
	return t * s.sd / math.Sqrt(float64(s.n))
}

// Student's upper end is too low where the right tail is the long one, the lower end
// where the left is.
func (s sample) upperHolds() bool { return s.skew <= math.Sqrt(float64(s.n)/25) }
func (s sample) lowerHolds() bool { return s.skew >= -math.Sqrt(float64(s.n)/25) }

// negative says whether the mean of f is proved to be below 0, for values of at most top. If it is
// not, then each Π(1 − λ f(i)) with λ ≤ 1/top is a supermartingale that is never negative, and so
// is the mixture over λ: it ever reaches 1/p with probability at most p (Ville), at whichever sizes
// one looks. p is half of a statement's error.
func (c *contest) negative(n int, f func(int) float64) bool {
	if !(c.top > 0) || math.IsInf(c.top, 1) {
		return false
	}
	const bets = 10
	need := math.Log(bets * 2 * c.statements() / c.level) // of the sum of the wealths
	for b := range bets {
		lambda, wealth := 0.9*math.Exp2(-float64(b))/c.top, 0.0
		for i := range n {
			wealth += math.Log1p(-lambda * f(i))
		}
		if wealth >= need { // one of them is enough for the sum
			return true
		}
	}
	return false
}

// ends are the ends of an interval that may be believed, ∓∞ where not, for a sample of the k-th size.
func (c *contest) ends(s sample, k int) (lo, hi float64) {
	lo, hi = math.Inf(-1), math.Inf(1)
	if c.strict {
		return lo, hi
	}
	h := s.half(c.student(k))
	if s.lowerHolds() {
		lo = s.mean - h
	}
	if s.upperHolds() {
		hi = s.mean + h
	}
	return lo, hi
}

// A span holds the mean of one entrant.
type span struct{ lo, hi float64 }

// bound is the best of Hoeffding's two-sided bound and, unless strict, Student's interval.
func (c *contest) bound(i int) span {
	e := &c.entrant[i]
	s := sampled(len(e.x), func(r int) float64 { return e.x[r] })
	alpha := c.alpha(e.size)
	b := span{0, c.top}
	if c.top > 0 {
		x, cost := min(max(s.mean/c.top, 0), 1), math.Log(2/alpha)/float64(s.n)
		b = span{c.top * divergence.KLLower(x, cost), c.top * divergence.KLUpper(x, cost)}
	}
	if !c.strict {
		lo, hi := c.ends(s, e.size)
		b.lo, b.hi = max(b.lo, lo), min(b.hi, hi)
	}
	return b
}

// judge compares i < j on the runs that both have played. Means within the resolution of each other
// are a tie, even where one can be told to be lower. doubt says whether these runs speak against an
// earlier judgement that they do not confirm: they are skewed the way that misleads, or their means
// are in another order.
func (c *contest) judge(i, j int, bi, bj span) (_ judgement, doubt func(judgement) bool) {
	a, b := &c.entrant[i], &c.entrant[j]
	size := min(a.size, b.size)
	if a.size < a.floor || b.size < b.floor {
		return judgement{verdict: Unsettled, size: size}, func(judgement) bool { return false }
	}
	n, r := c.sizes[size], 1+c.resolution
	x, y := a.x[:n], b.x[:n]
	// Each end that is looked at has half of the statement's error, and at most two of the
	// statements can be wrong: E x > r·E y excludes E y > r·E x, and of two equal means both orders
	// are wrong and the tie is right.
	more := func(k int) float64 { return x[k] - float64(r*y[k]) }
	less := func(k int) float64 { return y[k] - float64(r*x[k]) }
	minus := func(k int) float64 { return x[k] - y[k] }
	above, below, difference := sampled(n, more), sampled(n, less), sampled(n, minus)
	_, over := c.ends(above, size)
	_, under := c.ends(below, size)
	lo, hi := c.ends(difference, size)
	now := judgement{verdict: Better, size: size}
	switch {
	case over <= 0 && under <= 0 || bi.hi <= r*bj.lo && bj.hi <= r*bi.lo:
		now.verdict = Tie
	case hi < 0 || bi.hi < bj.lo:
		now.first = true
	case lo > 0 || bj.hi < bi.lo:
	// Proofs cost time and runs: they are tried where the above is silent.
	case above.mean < 0 && below.mean < 0 && c.negative(n, more) && c.negative(n, less):
		now.verdict, now.proved = Tie, true
	case difference.mean < 0 && c.negative(n, minus):
		now.first, now.proved = true, true
	case difference.mean > 0 && c.negative(n, func(k int) float64 { return -minus(k) }):
		now.proved = true
	default:
		now.verdict = Unsettled
	}
	return now, func(old judgement) bool {
		switch {
		case old.proved:
			return false
		case old.verdict == Tie:
			return above.mean > 0 || below.mean > 0 || !above.upperHolds() || !below.upperHolds()
		case old.first:
			return difference.mean >= 0 || !difference.upperHolds()
		}
		return difference.mean <= 0 || !difference.lowerHolds()
	}
}

// describe fills in the numbers of a row.
func (c *contest) describe(i int, r *Row) {
	e := &c.entrant[i]
	s := sampled(len(e.x), func(k int) float64 { return e.x[k] })
	sorted := slices.Sorted(slices.Values(e.x))
	r.Runs, r.Mean, r.SD, r.Half = s.n, s.mean, s.sd, s.half(c.student(e.size))
	r.Median, r.Q95, r.Q99 = stats.Quantile(sorted, 0.5), stats.Quantile(sorted, 0.95),
		stats.Quantile(sorted, 0.99)
	r.Max = sorted[s.n-1]
	var worst float64
	for _, x := range sorted[s.n-(s.n+99)/100:] {
		worst += x
	}
	if s.mean > 0 {
		r.Top = worst / float64(s.mean*float64(s.n))
	}
	c.describeRisk(i, r)
	r.Heavy = s.n >= 100 && r.Top > 0.5 || !s.upperHolds() || !s.lowerHolds()
}
