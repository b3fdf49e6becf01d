package choose

import (
	"math"
	"slices"

	"github.com/sotto-dp/sotto/internal/divergence"
	"github.com/sotto-dp/sotto/internal/stats"
)

// worstMean describes the conditional value at risk of n values at level p in (0,1), the mean of the
// worst 1 − p of what there is, as the sample mean of v + (x − v)₊/(1−p), v the p-quantile
// (Rockafellar and Uryasev, Journal of Risk 2, 2000): its error is of the same order as that of a mean
// of these, as v makes the expectation least, and an error in v counts squared.
func worstMean(x []float64, p float64) sample {
	v := stats.Quantile(slices.Sorted(slices.Values(x)), p)
	return sampled(len(x), func(i int) float64 { return v + max(0, x[i]-v)/(1-p) })
}

// tail is an interval of an entrant's conditional value at risk: Student's, where it may be believed,
// and an upper end that holds whatever the tails are.
func (c *contest) tail(i int) (s sample, b span) {
	e := &c.entrant[i]
	s = worstMean(e.x, c.risk)
	lo, hi := c.ends(s, e.size)
	return s, span{max(0, lo), min(c.surely(e), hi)}
}

// surely is an upper bound of an entrant's conditional value at risk. That is at most v + E(x −
// v)₊/(1−p) for every v, and for those of a grid, fixed in advance, the mean is bounded by Hoeffding's
// inequality.
func (c *contest) surely(e *played) float64 {
	const grid = 64
	hi := c.top
	cost := math.Log(2*grid/c.alpha(e.size)) / float64(len(e.x))
	for k := range grid {
		v := c.top * math.Exp2(-float64(k)/2)
		rest := c.top - v
		if !(rest > 0) || math.IsInf(rest, 1) {
			continue
		}
		sum := 0.0
		for _, x := range e.x {
			sum += max(0, x-v)
		}
		mean := min(1, sum/float64(len(e.x))/rest)
		hi = min(hi, v+rest*divergence.KLUpper(mean, cost)/(1-c.risk))
	}
	return hi
}

// judgeRisk compares i and j by what they lose in bad runs.
func (c *contest) judgeRisk(i, j int, bi, bj span) (judgement, func(judgement) bool) {
	now := judgement{verdict: Unsettled, size: min(c.entrant[i].size, c.entrant[j].size)}
	if r := 1 + c.resolution; c.entrant[i].size >= c.entrant[i].floor && c.entrant[j].size >= c.entrant[j].floor {
		switch {
		case bi.hi <= r*bj.lo && bj.hi <= r*bi.lo:
			now.verdict = Tie
		case bi.hi < bj.lo:
			now.verdict, now.first = Better, true
		case bj.hi < bi.lo:
			now.verdict = Better
		}
	}
	return now, func(judgement) bool { return true }
}

// describeRisk fills in a row's reading of bad runs.
func (c *contest) describeRisk(i int, r *Row) {
	if c.risk == 0 {
		return
	}
	s, _ := c.tail(i)
	r.Worst, r.WorstHalf = s.mean, s.half(c.student(c.entrant[i].size))
	r.WorstHeavy = !s.upperHolds() || !s.lowerHolds()
}

// rankedBy is what the ranking is by: the mean, or what bad runs lose.
func (c *contest) rankedBy(i int) float64 {
	if c.byRisk {
		return worstMean(c.entrant[i].x, c.risk).mean
	}
	mean, _, _ := stats.Mean(c.entrant[i].x)
	return mean
}

// tailStatements are the statements about bad runs, of each entrant one for either end.
func (c *contest) tailStatements() float64 {
	if c.risk == 0 {
		return 0
	}
	return float64(2 * c.all)
}

func riskIn(x float64) bool { return x == 0 || x >= 0.5 && x < 1 && !math.IsNaN(x) }
