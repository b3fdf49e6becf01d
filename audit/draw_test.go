package audit

import (
	"math"
	"testing"

	"github.com/sotto-dp/sotto/noise"
)

// A pilot of a tenth, taken with the same draw whatever the scores, left 0.6 standard deviations too
// many games of one side where there were 50. Here it has a mean of 0, of 4000 sets of games: that
// they are 5 standard errors off has a probability below 10⁻⁶.
func TestBitsOfWhatAPilotLeavesAreFairCoins(t *testing.T) {
	const sets, games = 4000, 50
	src := noise.NewFast(41, 1)
	sum, squares := 0.0, 0.0
	for range sets {
		var s Scores
		for range games {
			if x := src.Float64(); src.Uint64()>>63 == 1 {
				s.In = append(s.In, x)
			} else {
				s.Out = append(s.Out, x)
			}
		}
		_, left := s.part(pilotShare, draw(s))
		in, n := float64(len(left.In)), float64(len(left.In)+len(left.Out))
		z := (2*in - n) / math.Sqrt(n)
		sum += z
		squares += z * z
	}
	if z := sum / math.Sqrt(sets); math.Abs(z) > 5 {
		t.Errorf("sides are %.1f standard errors off", z)
	}
	// The variance of z² is below 2.
	if z := (squares - sets) / math.Sqrt(2*sets); math.Abs(z) > 5 {
		t.Errorf("variances are %.1f standard errors off", z)
	}
}

// Attacks that are compared have pilots of the same games, else one would be chosen by bits of games
// that it is tested on.
func TestAttacksThatAreJudgedHaveOnePilot(t *testing.T) {
	s := Scores{In: []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, Out: []float64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}}
	for i := range 100 {
		s.In[0] = float64(i)
		other := Scores{In: s.Out, Out: s.In}
		src := *draw(s, other)
		same := src
		one, _ := s.part(0.5, &src)
		two, _ := other.part(0.5, &same)
		if len(one.In) != len(two.In) || len(one.Out) != len(two.Out) {
			t.Fatalf("pilots of %d and %d, and of %d and %d games", len(one.In), len(one.Out), len(two.In),
				len(two.Out))
		}
	}
}
