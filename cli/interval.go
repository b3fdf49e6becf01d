package cli

import (
	"fmt"

	limit "github.com/sotto-dp/sotto/bound"
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

func intervalText(x *[2]float64) string {
	if x == nil {
		return "–"
	}
	return fmt.Sprintf("[%.4g, %.4g]", x[0], x[1])
}
