package cli

import (
	"fmt"

	limit "github.com/sotto-dp/sotto/bound"
	"github.com/sotto-dp/sotto/trial"
)

// confidence is that of all intervals of a table together, at all times.
const confidence = 0.95

const intervalNote = "95 % interval: those of all arms hold together, at all times, with " +
	"probability 95 %, whatever was played and whoever looked when."

// intervalOf is one of so many intervals of a table, in units of rewards; nil if there is none.
func intervalOf(s limit.Sums, of int, lo, hi float64) *[2]float64 {
	if s.N == 0 {
		return nil
	}
	a, b, err := s.Interval((1 - confidence) / float64(of))
	if err != nil {
		return nil // its noise is one of which no interval is known
	}
	return &[2]float64{lo + float64((hi-lo)*a), lo + float64((hi-lo)*b)}
}

const differenceNote = "95 % difference: of the arm's mean less that of the answer (without one, of the " +
	"largest mean); those of all pairs of arms hold together, likewise."

// differencesOf are the intervals of each arm's mean less that of an arm, in units of rewards, at a
// confidence that holds for all pairs together: so the arm may be chosen by what was released. It
// has nil for that arm, and where there is none.
func differencesOf(s []limit.Sums, from int, lo, hi float64) []*[2]float64 {
	out := make([]*[2]float64, len(s))
	k := float64(len(s))
	for a := range s {
		if a == from || from < 0 || s[a].N == 0 || s[from].N == 0 {
			continue
		}
		x, y, err := limit.Difference(s[a], s[from], (1-confidence)/(k*(k-1)/2))
		if err == nil { // else its noise is one of which no interval is known
			out[a] = &[2]float64{(hi - lo) * x, (hi - lo) * y}
		}
	}
	return out
}

// trialDifferences are the intervals of each arm's mean less that of the answer, or of the largest
// mean if there is none.
func trialDifferences(r trial.Result, lo, hi float64) []*[2]float64 {
	from := r.Answer
	sums := make([]limit.Sums, len(r.Means))
	for a, m := range r.Means {
		sums[a] = m.Released
		if r.Answer < 0 && m.N > 0 && (from < 0 || m.Value > r.Means[from].Value) {
			from = a
		}
	}
	return differencesOf(sums, from, lo, hi)
}

func intervalText(x *[2]float64) string {
	if x == nil {
		return "–"
	}
	return fmt.Sprintf("[%.4g, %.4g]", x[0], x[1])
}
