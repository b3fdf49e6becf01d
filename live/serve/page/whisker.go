package page

import (
	"math"
	"strconv"

	"github.com/sotto-dp/sotto/internal/words"
	"github.com/sotto-dp/sotto/live/serve"
)

// An axis is the line on which means and intervals of arms or rules are drawn: From and To are its ends.
type axis struct {
	lo, hi   float64
	decimals int // of all numbers, so that they stand below one another
	From, To string
}

// axisOf is that of the arms, or of the rules.
func axisOf(v *View) axis {
	var all []*[2]float64
	for _, a := range v.Arms {
		all = append(all, a.Interval)
	}
	if v.Contexts != nil {
		for _, r := range v.Contexts.Rules {
			all = append(all, r.Interval)
		}
	}
	return axisOver(v.Lo, v.Hi, all)
}

// axisOfMeasure is that of a metric.
func axisOfMeasure(m serve.Measure) axis {
	var all []*[2]float64
	for _, a := range m.Arms {
		all = append(all, a.Interval)
	}
	return axisOver(m.Range[0], m.Range[1], all)
}

// axisOfEffects is that of what matters, with 0 on it.
func axisOfEffects(e *Effects) axis {
	all, most := []*[2]float64{{0, 1e-9}}, 0.0
	for _, f := range e.Each {
		if all = append(all, &[2]float64{min(f.Mean, 0), max(f.Mean, 0)}); f.Interval != nil {
			all = append(all, f.Interval)
		}
		most = max(most, all[len(all)-1][1], -all[len(all)-1][0])
	}
	return axisOver(-most, most, all)
}

// axisOver is from the least to the largest of what is drawn within a range, rounded outward to tenths
// of its length.
func axisOver(least, most float64, all []*[2]float64) axis {
	lo, hi, decimals := math.Inf(1), math.Inf(-1), 0
	for _, x := range all {
		if x != nil {
			lo, hi = min(lo, x[0]), max(hi, x[1])
			decimals = max(decimals, decimalsOf(x))
		}
	}
	if !(lo < hi) {
		lo, hi = least, most
	}
	step := math.Pow(10, math.Floor(math.Log10(hi-lo)))
	lo, hi = max(least, math.Floor(lo/step)*step), min(most, math.Ceil(hi/step)*step)
	return axis{lo, hi, decimals, words.Number(lo), words.Number(hi)}
}

// At is where a value is on the line.
func (a axis) At(x float64) string {
	share := min(max((x-a.lo)/(a.hi-a.lo), 0), 1)
	return strconv.FormatFloat(100*share, 'f', 2, 64) + "%"
}

// Mean writes the mean of an arm or a rule.
func (a axis) Mean(x float64) string { return words.Fixed(x, a.decimals) }

// Between writes an interval, rounded outward.
func (a axis) Between(x *[2]float64) string { return within(x, a.decimals) }
