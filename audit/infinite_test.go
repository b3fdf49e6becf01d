package audit

import (
	"math"
	"testing"

	"github.com/sotto-dp/sotto/noise"
)

// half of the scores are −Inf, with the target and without it alike, as a likelihood ratio has them
// that finds the output impossible.
func impossible(games int, src *noise.Fast) Scores {
	var s Scores
	for range games {
		v := math.Inf(-1)
		if src.Bernoulli(0.5) {
			v = src.Normal()
		}
		if src.Bernoulli(0.5) {
			s.In = append(s.In, v)
		} else {
			s.Out = append(s.Out, v)
		}
	}
	return s
}

// Both worlds have one law, so any ε above 0 is a false alarm. A test that claims of "above −Inf"
// what a rank says of "at least −Inf" has one in every run. Each of 400 runs has one with
// probability at most γ = 0.01: more than 18 in all have probability below 1e-6.
func TestImpossibleScoresRefuteNothing(t *testing.T) {
	src := noise.NewFast(31, 7)
	ranks, split := 0, 0
	for range 400 {
		s := impossible(300, &src)
		for _, how := range []struct {
			region func() (Region, error)
			count  *int
		}{
			{func() (Region, error) { return s.RegionByRank(0.01) }, &ranks},
			{func() (Region, error) { return s.Split(0.01, 0) }, &split},
		} {
			r, err := how.region()
			if err != nil {
				t.Fatal(err)
			}
			b, err := r.Epsilon(0)
			if err != nil {
				t.Fatal(err)
			}
			if b.Epsilon > 0 {
				*how.count++
			}
		}
	}
	if ranks > 18 || split > 18 {
		t.Errorf("ε > 0 in %d runs by rank and %d by split, of 400: at most 18 expected at γ = 0.01",
			ranks, split)
	}
}

// Of the scores 1, 0, −Inf, −Inf the smallest threshold of empirical significance 3/4 is −Inf,
// above which one in three is.
func TestPowerAboveMinusInfinity(t *testing.T) {
	low := math.Inf(-1)
	s := Scores{In: []float64{1, low, low}, Out: []float64{1, 0, low, low}}
	p, err := s.PowerAt(0.75, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	if p.Threshold != low || p.Power.Value != 1./3 {
		t.Errorf("threshold %v and power %v, want −Inf and 1/3", p.Threshold, p.Power.Value)
	}
	if p, err = s.PowerAt(1, 0.95); err != nil || p.Power.Value != 1 {
		t.Errorf("power %v at significance 1, want 1: %v", p.Power.Value, err)
	}
}

// Scores tie: 5 of 10 canaries are asked for, but 3 have the highest score and all others the next
// one. At δ = 0 the 3 are judged alone, and at δ > 0 as 3 of the 5 that were fixed before the run.
func TestOneRunCountsTies(t *testing.T) {
	s := Scores{In: []float64{2, 2, 2, 1, 1}, Out: []float64{1, 1, 1, 1, 1}}
	for _, c := range []struct {
		delta   float64
		guesses int
	}{{0, 3}, {1e-9, 5}} {
		e, o, err := s.OneRunEpsilon(0.4, c.delta, 5)
		if err != nil {
			t.Fatal(err)
		}
		if want := (OneRun{Canaries: 10, Guesses: c.guesses, Correct: 3}); o != want {
			t.Errorf("δ = %v: %+v, want %+v", c.delta, o, want)
		}
		if want, err := o.Epsilon(0.4, c.delta); err != nil || e != want {
			t.Errorf("δ = %v: ε = %v, want %v: %v", c.delta, e, want, err)
		}
	}
}

// A mean of n ones is 1, so that a target of 0 is certainly not in it.
func TestMeanOfOnesIsOne(t *testing.T) {
	src := noise.NewFast(1, 2)
	for n := 2; n < 200; n++ {
		w := Mean{N: n}.worker(Bernoulli{[]float64{1}})
		w.release([]float64{1}, false, &src)
		if w.out[0] != 1 {
			t.Fatalf("the mean of %d ones is %v", n, w.out[0])
		}
	}
}
