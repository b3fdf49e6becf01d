package paper

import (
	"fmt"
	"math"
	"strings"
)

// thesisTheorems are what [Azize 2024] states beside its figures: propositions and theorems of
// chapters 2, 4, 5 and 6 that are checked by computation, by games or over a sweep.
func thesisTheorems() []Figure {
	return []Figure{
		theoremsOfChapter2(), theoremsOfChapter4(), privacyOfChapter5(), regretOfChapter5(),
		samplesOfChapter5(), theoremsOfChapter6(),
	}
}

// A sharpest is the largest of several numbers, and where it came out. NaN is larger than any.
type sharpest struct {
	value float64
	where []float64
	any   bool
}

func (s *sharpest) take(value float64, where ...float64) {
	if !s.any || value > s.value || math.IsNaN(value) {
		s.value, s.where, s.any = value, where, true
	}
}

func (s *sharpest) numbers() []float64 { return append([]float64{s.value}, s.where...) }

// sharpest are the numbers of a sharpest that is kept, with n of where it came out.
func (e *Evidence) sharpest(name string, n int) (value float64, where []any) {
	for _, x := range rows[float64](e, name) {
		where = append(where, x)
	}
	if len(where) <= n {
		need(where, fmt.Errorf("paper: %d numbers of %s, must be %d", len(where), name, n+1))
	}
	return where[0].(float64), where[1 : n+1]
}

// largest decides from a sharpest: it holds if that is at most limit. The format has a verb for
// each number of where it came out that it shows, from the first on.
func largest(name string, limit float64, format string) Check {
	return func(e *Evidence) Finding {
		value, where := e.sharpest(name, strings.Count(format, "%"))
		return exact(value, value <= limit, fmt.Sprintf(format, where...))
	}
}

// smallest decides from the sharpest of numbers with the other sign: it holds if the smallest of
// them is at least limit. The format is as in largest.
func smallest(name string, limit float64, format string) Check {
	return func(e *Evidence) Finding {
		value, where := e.sharpest(name, strings.Count(format, "%"))
		return exact(-value, -value >= limit, fmt.Sprintf(format, where...))
	}
}
