package cli

import (
	"fmt"

	"github.com/sotto-dp/sotto/interval"
	"github.com/sotto-dp/sotto/trial"
)

const intervalNote = "95 % interval: those of all arms, and those of all differences, hold together, at all " +
	"times, with probability 95 %,\nwhatever was played and whoever looked when."

const differenceNote = "95 % difference: of the arm's mean less that of the answer (without one, of the " +
	"largest mean)."

// trialDifferences are the intervals of each arm's mean less that of the answer, or of the largest
// mean if there is none.
func trialDifferences(r trial.Result, lo, hi float64) []*[2]float64 {
	from := r.Answer
	sums := make([]interval.Sums, len(r.Means))
	for a, m := range r.Means {
		sums[a] = m.Released
		if r.Answer < 0 && m.N > 0 && (from < 0 || m.Value > r.Means[from].Value) {
			from = a
		}
	}
	out := make([]*[2]float64, len(sums))
	table := interval.Table{Arms: len(sums), Lo: lo, Hi: hi}
	for a := range sums {
		if a != from && from >= 0 {
			out[a] = table.Difference(sums[a], sums[from])
		}
	}
	return out
}

func intervalText(x *[2]float64) string {
	if x == nil {
		return "–"
	}
	return fmt.Sprintf("[%.4g, %.4g]", x[0], x[1])
}
