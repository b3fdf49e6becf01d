package paper

import (
	"fmt"
	"math"

	"github.com/sotto-dp/sotto/internal/stats"
)

// Level is the confidence of every finding, over all cells that a claim speaks of.
const Level = 0.99

// Ratio is the ratio of the means of a and b over the same runs with its interval, by
// linearisation: the variance of a − r·b over the mean of b. cells is how many such ratios a claim
// looks at: the level is split among them.
func Ratio(a, b []float64, cells int) (r, lo, hi float64) {
	ma, _, _ := stats.Mean(a)
	mb, _, _ := stats.Mean(b)
	r = ma / mb
	d := make([]float64, len(a))
	for i := range a {
		d[i] = a[i] - r*b[i]
	}
	_, _, se := stats.Mean(d)
	half := stats.T(len(a), level(cells)) * se / math.Abs(mb)
	return r, r - half, r + half
}

// Difference is the mean of a − b over the same runs with its interval.
func Difference(a, b []float64, cells int) (m, lo, hi float64) {
	d := make([]float64, len(a))
	for i := range a {
		d[i] = a[i] - b[i]
	}
	m, half := stats.Half(d, level(cells))
	return m, m - half, m + half
}

func level(cells int) float64 { return 1 - (1-Level)/float64(max(1, cells)) }

// Above holds if the interval lies above the threshold, and fails if it lies below.
func Above(value, lo, hi, threshold float64, runs int, detail string) Finding {
	f := Finding{Answer: Undecided, Value: value, Low: lo, High: hi, Runs: runs, Detail: detail}
	switch {
	case lo > threshold:
		f.Answer = Holds
	case hi < threshold:
		f.Answer = Fails
	}
	return f
}

// Below holds if the interval lies below the threshold, and fails if it lies above.
func Below(value, lo, hi, threshold float64, runs int, detail string) Finding {
	f := Above(value, lo, hi, threshold, runs, detail)
	switch f.Answer {
	case Holds:
		f.Answer = Fails
	case Fails:
		f.Answer = Holds
	}
	return f
}

// Between holds if the interval lies in [from, to], and fails if it lies outside.
func Between(value, lo, hi, from, to float64, runs int, detail string) Finding {
	f := Finding{Answer: Undecided, Value: value, Low: lo, High: hi, Runs: runs, Detail: detail}
	switch {
	case lo >= from && hi <= to:
		f.Answer = Holds
	case hi < from || lo > to:
		f.Answer = Fails
	}
	return f
}

// Some is the finding of a claim that something can be: it holds if one cell does (the first that
// does is shown), fails if all fail, and is undecided otherwise.
func Some(parts []Finding) Finding { return foremost(parts, Holds, Undecided, Fails) }

// Every is the finding of a claim about several cells: it fails if one fails (the first that does
// is shown), is undecided if one is, and holds if all hold. Cells that the preset leaves out are
// not in parts; none at all is undecided.
func Every(parts []Finding) Finding { return foremost(parts, Fails, Undecided, Holds) }

// each judges each of some things, and then all of them.
func each[T any](of []T, judge func(x T) Finding) Finding {
	var parts []Finding
	for _, x := range of {
		parts = append(parts, judge(x))
	}
	return Every(parts)
}

// allOf is the check of a claim that says several things of a kind.
func allOf(checks ...Check) Check {
	return func(e *Evidence) Finding { return each(checks, func(c Check) Finding { return c(e) }) }
}

// foremost is the first part with the foremost answer that any has, and how many have which.
func foremost(parts []Finding, order ...Answer) Finding {
	count := map[Answer]int{}
	for _, f := range parts {
		count[f.Answer]++
	}
	for _, a := range order {
		for _, f := range parts {
			if f.Answer == a {
				f.Detail = fmt.Sprintf("%s; of %d cells %d hold, %d fail, %d undecided", f.Detail,
					len(parts), count[Holds], count[Fails], count[Undecided])
				return f
			}
		}
	}
	return nothing(Undecided, "nothing was played that decides")
}
