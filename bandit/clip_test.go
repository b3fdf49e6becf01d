package bandit

import (
	"math"
	"testing"

	"github.com/sotto-dp/sotto/noise"
)

// Clipping turns the arms if one that is best afterwards was not before, alone or among others.
func TestClippingTurns(t *testing.T) {
	for _, c := range []struct {
		laws   []string
		lo, hi float64
		want   bool
	}{
		// 0.375 and 0.5, clipped 0.25
		{[]string{"table(0:0.5,0.75:0.5)", "table(0:0.75,2:0.25)"}, 0, 1, true},
		{[]string{"table(0:0.5,0.75:0.5)", "table(0:0.75,2:0.25)"}, 0, 2, false},
		// 7 is always above 1, 9 ± 1 nearly always
		{[]string{"gaussian(9,1)", "table(7:1)"}, 0, 1, true},
		{[]string{"table(5:1)", "table(7:1)"}, 0, 1, true}, // a tie
		{[]string{"table(5:1)", "table(4:0.5,6:0.5)"}, 0, 1, false},
		{[]string{"gaussian(0.9,0.1)", "bernoulli(0.5)"}, 0, 1, false},
		{[]string{"beta(2,2)", "bernoulli(0.9)"}, 0.25, 0.75, true}, // not known
		{[]string{"bernoulli(0.2)", "bernoulli(0.4)", "bernoulli(0.4)"}, 0.25, 0.75, false},
	} {
		var laws []Law
		for _, text := range c.laws {
			l, err := ParseLaw(text)
			if err != nil {
				t.Fatal(err)
			}
			laws = append(laws, l)
		}
		in, err := NewInstance(laws...)
		if err != nil {
			t.Fatal(err)
		}
		if got := in.ClippingTurns(c.lo, c.hi); got != c.want {
			t.Errorf("%v to [%v, %v]: %v", c.laws, c.lo, c.hi, got)
		}
	}
}

func TestClippedMean(t *testing.T) {
	for _, c := range []struct {
		law    string
		lo, hi float64
		want   float64
	}{
		{"bernoulli(0.25)", -1, 1, 0.25}, {"bernoulli(0.25)", 0, 0.5, 0.125},
		{"bernoulli(0.25)", 0.5, 3, 0.625}, {"bernoulli(0.25)", 2, 3, 2},
		{"uniform(0,4)", 0, 4, 2}, {"uniform(0,4)", 1, 2, 0.25 + 0.375 + 1},
		{"uniform(0,4)", -9, 2, 0.5 + 1}, {"uniform(0,4)", 5, 6, 5}, {"uniform(0,4)", -2, -1, -1},
		{"table(-2:0.5,0.5:0.25,8:0.25)", -1, 1, -0.125}, {"gaussian(0.5,0.1)", 0.5, 1, 0.5 + 0.1*0.3989422804},
		{"clipped-gaussian(0.5,0.1,0,9)", 0.5, 1, 0.5 + 0.1*0.3989422804}, {"beta(2,3)", 0, 1, 0.4},
	} {
		law, err := ParseLaw(c.law)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ClippedMean(law, c.lo, c.hi)
		if err != nil || math.Abs(got-c.want) > 1e-6 {
			t.Errorf("%s in [%v, %v]: %v, %v, want %v", c.law, c.lo, c.hi, got, err, c.want)
		}
		// And by 10⁵ draws, within 6 standard deviations of what has at most this range.
		s, sum := noise.NewFast(3, 4), 0.0
		for range 100_000 {
			sum += min(max(law.Draw(&s), c.lo), c.hi)
		}
		if d := math.Abs(sum/1e5 - got); d > 6*(c.hi-c.lo)/2/math.Sqrt(1e5) {
			t.Errorf("%s in [%v, %v]: %v, drawn %v", c.law, c.lo, c.hi, got, sum/1e5)
		}
	}
	law, err := ParseLaw("beta(2,3)")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range [][2]float64{{0, 0.5}, {1, 1}, {math.NaN(), 1}} {
		if m, err := ClippedMean(law, r[0], r[1]); err == nil {
			t.Errorf("beta(2,3) in %v: %v", r, m)
		}
	}
}
