package paper

import "math"

// thesisTheorems are what 000 states beside its figures: propositions and theorems of chapters 2,
// 4, 5 and 6 that are checked by computation, by games or over a sweep.
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
