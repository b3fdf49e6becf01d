package sim_test

import (
	"math"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/sim"
)

// laws are one of each kind, with the exact probability of each number of rounds.
func laws() map[string]struct {
	law  sim.DelayLaw
	mass func(d int) float64
} {
	type one = struct {
		law  sim.DelayLaw
		mass func(d int) float64
	}
	return map[string]one{
		"constant": {sim.DelayLaw{Law: "constant", Mean: 3, Missing: 0.2}, func(d int) float64 {
			if d == 3 {
				return 1
			}
			return 0
		}},
		"geometric": {sim.DelayLaw{Law: "geometric", Mean: 4}, func(d int) float64 {
			return math.Pow(0.8, float64(d)) / 5
		}},
		"uniform": {sim.DelayLaw{Law: "uniform", Mean: 4.5, Missing: 0.1}, func(d int) float64 {
			if d < 10 {
				return 0.1
			}
			return 0
		}},
		"empirical": {sim.DelayLaw{Law: "empirical", Rounds: []float64{7, 0, 2, 4},
			Share: []float64{0.25, 0.5, 0, 0.25}, Missing: 0.1}, func(d int) float64 {
			return map[int]float64{7: 0.25, 0: 0.5, 4: 0.25}[d]
		}},
		"none": {sim.DelayLaw{Missing: 0.25}, func(d int) float64 {
			if d == 0 {
				return 1
			}
			return 0
		}},
	}
}

// What is drawn has the law's mass, at every number of rounds up to a dozen and beyond, and Late is
// what the mass adds up to. Each of 14 counts in 5 laws is within 7 standard deviations, of which
// each is at least 50: false alarms, by Bernstein's bound, with probability below
// 70·2·exp(−24.5/(1+7/150)) < 1e-7, of a fixed seed.
func TestDelayLaw(t *testing.T) {
	const n, window = 200_000, 13
	for name, c := range laws() {
		c.law.Window = window
		s := noise.Key{Seed: 1, Role: noise.RoleDelay}.Fast(1)[0]
		counts := [window + 1]int{}
		after := c.law.Delay(&s).After
		if after == nil {
			t.Fatalf("%s: every reward comes", name)
		}
		for range n {
			counts[min(after(), window)]++
		}
		late := 1.0
		for d, k := range counts {
			p := (1 - c.law.Missing) * c.mass(d)
			if d == window {
				if p = late; math.Abs(p-c.law.Late()) > 1e-12 {
					t.Errorf("%s: Late is %v, must be %v", name, c.law.Late(), p)
				}
			} else if late -= p; p == 0 && k > 0 {
				t.Errorf("%s: %d rounds have come, and have no mass", name, d)
			}
			if sd := math.Sqrt(n * p * (1 - p)); math.Abs(float64(k)-n*p) > 7*sd+1e-6 {
				t.Errorf("%s: %d rounds came %d times, want %.0f ± %.0f", name, d, k, n*p, sd)
			}
		}
		if text := c.law.String(); !strings.Contains(text, "window 13; ") ||
			!strings.Contains(text, "% do not come in it and count 0") {
			t.Errorf("%s is told as %q", name, text)
		}
	}
	all := sim.DelayLaw{Window: 5, Law: "constant", Mean: 4}
	if d := all.Delay(nil); d.After != nil || all.Late() != 0 {
		t.Error("rewards that all come in time are drawn")
	}
}

func TestDelayLawErrors(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for want, law := range map[string]sim.DelayLaw{
		"window is 0":                 {},
		"window is -1":                {Window: -1},
		"default is NaN":              {Window: 1, Default: nan},
		"default is 2, must be in":    {Window: 1, Default: 2},
		"missing is 1":                {Window: 1, Missing: 1},
		"missing is NaN":              {Window: 1, Missing: nan},
		`law is "normal"`:             {Window: 1, Law: "normal"},
		"mean is 3, and law is \"\"":  {Window: 1, Mean: 3},
		"mean is 1.5":                 {Window: 3, Law: "constant", Mean: 1.5},
		"mean is 0,":                  {Window: 3, Law: "geometric"},
		"mean is +Inf":                {Window: 3, Law: "geometric", Mean: inf},
		"mean is 1.25":                {Window: 3, Law: "uniform", Mean: 1.25},
		"rounds is for law empirical": {Window: 3, Law: "uniform", Mean: 1, Rounds: []float64{1}},
		"share is for law empirical":  {Window: 3, Share: []float64{1}},
		"rounds has 0 numbers":        {Window: 3, Law: "empirical"},
		"share has 1 numbers": {Window: 3, Law: "empirical", Rounds: []float64{1, 2},
			Share: []float64{1}},
		"rounds[1] is 1.5": {Window: 3, Law: "empirical", Rounds: []float64{1, 1.5},
			Share: []float64{.5, .5}},
		"share[0] is NaN": {Window: 3, Law: "empirical", Rounds: []float64{1},
			Share: []float64{nan}},
		"share adds up to 0.9": {Window: 3, Law: "empirical", Rounds: []float64{1, 2},
			Share: []float64{.5, .4}},
		"window is 3, must be longer": {Window: 3, Law: "constant", Mean: 3},
		"window is 4, must be longer": {Window: 4, Law: "empirical", Rounds: []float64{4},
			Share: []float64{1}},
		"mean is 1, and law is \"empi": {Window: 4, Law: "empirical", Mean: 1},
	} {
		if at, err := law.Check(0, 1); err == nil || !strings.HasPrefix(at+" "+err.Error(), want) {
			t.Errorf("want %q, got %s %v", want, at, err)
		}
	}
}
