package privacy_test

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/sotto-dp/sotto/privacy"
)

// Twelve experiments of a month each, one after the other at ε = 1, under a cap of 3 within 365 days:
// the fourth waits until the first has not released anything for 365 days.
func ExampleWindows() {
	year, err := privacy.NewWindows(privacy.Pure{Epsilon: 3}, 365)
	if err != nil {
		fmt.Println(err)
		return
	}
	var charges []privacy.Charge
	for day := int64(0); len(charges) < 12; {
		next := privacy.Charge{Loss: privacy.LossOf(privacy.Pure{Epsilon: 1}), From: day, Last: privacy.Never}
		if begin, ok := year.Begin(charges, next); begin != day {
			fmt.Printf("number %d on day %d, not %d (%v)\n", len(charges)+1, begin, day, ok)
			day, next.From = begin, begin
		}
		if err := year.Allow(charges, next); err != nil {
			fmt.Println(err)
			return
		}
		next.Last = day + 29 // it has ended
		charges = append(charges, next)
		day = next.Last + 1
	}
	fmt.Println(year.Most(charges, 0, privacy.Never))
	// Output:
	// number 4 on day 395, not 90 (true)
	// number 7 on day 790, not 485 (true)
	// number 10 on day 1185, not 880 (true)
	// 3
}

// A brute is what a record at p in each layer is charged within a window, by its definition: the sum of
// all that can release something of it there.
func brute(charges []privacy.Charge, from, to int64, p map[string]float64) (sum float64) {
	for _, c := range charges {
		at, in := p[c.Layer]
		if c.Last >= from && c.From <= to && (!in || c.Layer == "" || c.Lo <= at && at < c.Hi) {
			sum += c.Loss.Pure()
		}
	}
	return sum
}

// worstWindow is the most within a window of a length that meets [from, to], over all windows and all
// positions on a grid that has every end of a range.
func worstWindow(charges []privacy.Charge, length, from, to int64) (most float64) {
	for end := from; end <= to; end++ {
		for a := range 4 {
			for b := range 4 {
				p := map[string]float64{"a": float64(a) / 4, "b": float64(b) / 4}
				most = max(most, brute(charges, end-length, end, p))
			}
		}
	}
	return most
}

const lastBegin = 40 // of a charge in histories

func someCharge(t *rapid.T, i int) privacy.Charge {
	label := func(what string) string { return fmt.Sprint(what, i) }
	c := privacy.Charge{From: rapid.Int64Range(0, lastBegin).Draw(t, label("from"))}
	c.Last = c.From + rapid.Int64Range(0, 15).Draw(t, label("lasts"))
	if rapid.IntRange(0, 5).Draw(t, label("open")) == 0 {
		c.Last = privacy.Never
	}
	c.Loss = privacy.LossOf(privacy.Pure{Epsilon: float64(rapid.IntRange(1, 8).Draw(t, label("ε"))) / 4})
	if c.Layer = rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, label("layer")); c.Layer != "" {
		lo := rapid.IntRange(0, 3).Draw(t, label("lo"))
		c.Lo, c.Hi = float64(lo)/4, float64(rapid.IntRange(lo+1, 4).Draw(t, label("hi")))/4
	}
	return c
}

// admit is a filter that says whether next may come after the charges.
type admit func(w privacy.Windows, charges []privacy.Charge, next privacy.Charge) bool

func sound(w privacy.Windows, charges []privacy.Charge, next privacy.Charge) bool {
	return w.Allow(charges, next) == nil
}

// history has a filter admit what comes, in order, some ends becoming known later, and is the most that
// any window has, by brute force, and whether anything was refused that all windows had room for.
func history(t *rapid.T, length int64, cap float64, filter admit) (most float64, needless bool) {
	w, err := privacy.NewWindows(privacy.Pure{Epsilon: cap}, length)
	if err != nil {
		t.Fatal(err)
	}
	var truth, known []privacy.Charge
	for i := range rapid.IntRange(1, 12).Draw(t, "n") {
		next := someCharge(t, i)
		asked := next
		asked.Last = privacy.Never
		for j := range known { // what has ended by then is known
			if known[j].Last == privacy.Never && truth[j].Last < next.From {
				known[j].Last = truth[j].Last
			}
		}
		room := worstWindow(append(append([]privacy.Charge{}, known...), asked), length, next.From, lastBegin+20+length) <= cap
		switch admitted := filter(w, known, asked); {
		case admitted:
			truth, known = append(truth, next), append(known, asked)
		case room:
			needless = true
		}
	}
	return worstWindow(truth, length, 0, lastBegin+20+length), needless
}

// No window has more than the cap, and nothing is refused that it has room for, whatever is asked for and
// whenever the ends become known.
func TestNoWindowIsBeyondItsCap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		length := rapid.Int64Range(1, 20).Draw(t, "length")
		cap := float64(rapid.IntRange(1, 12).Draw(t, "cap")) / 4
		if most, needless := history(t, length, cap, sound); most > cap || needless {
			t.Fatalf("a window has %v, of %v; refused without need: %v", most, cap, needless)
		}
	})
}

// Broken filters are caught by the same history.
func TestBrokenWindowsAreCaught(t *testing.T) {
	for name, broken := range map[string]admit{
		"it forgets what has ended": func(w privacy.Windows, charges []privacy.Charge, next privacy.Charge) bool {
			var open []privacy.Charge
			for _, c := range charges {
				if c.Last == privacy.Never {
					open = append(open, c)
				}
			}
			return sound(w, open, next)
		},
		"layers are as their largest charge": func(w privacy.Windows, charges []privacy.Charge, next privacy.Charge) bool {
			most := map[string]privacy.Charge{}
			var out []privacy.Charge
			for _, c := range append(append([]privacy.Charge{}, charges...), next) {
				if c.Layer == "" {
					out = append(out, c)
				} else if c.Loss.Pure() > most[c.Layer].Loss.Pure() {
					most[c.Layer] = c
				}
			}
			for _, c := range most {
				out = append(out, c)
			}
			free := next
			free.Loss = privacy.Loss{}
			return sound(w, out, free)
		},
		"it counts from a begin, not from a last release": func(w privacy.Windows, charges []privacy.Charge, next privacy.Charge) bool {
			var short []privacy.Charge
			for _, c := range charges {
				c.Last = min(c.Last, c.From)
				short = append(short, c)
			}
			return sound(w, short, next)
		},
	} {
		t.Run(name, func(t *testing.T) {
			caught := 0
			for seed := range 200 { // each is a history of its own
				got := rapid.Custom(func(t *rapid.T) [2]float64 {
					length := rapid.Int64Range(1, 20).Draw(t, "length")
					cap := float64(rapid.IntRange(1, 12).Draw(t, "cap")) / 4
					most, _ := history(t, length, cap, broken)
					return [2]float64{most, cap}
				}).Example(seed)
				if got[0] > got[1] {
					caught++
				}
			}
			if caught == 0 {
				t.Error("it was not caught in 200 histories")
			}
			t.Logf("caught in %d of 200", caught)
		})
	}
}

// What is charged by the cent meets a cap that it adds up to, and an ulp more than the slack does not.
func TestWindowsCompareInASafeDirection(t *testing.T) {
	w, err := privacy.NewWindows(privacy.Pure{Epsilon: 1}, 10)
	if err != nil {
		t.Fatal(err)
	}
	cent := privacy.Charge{Loss: privacy.LossOf(privacy.Pure{Epsilon: 0.1}), Last: privacy.Never}
	var nine []privacy.Charge
	for range 9 {
		nine = append(nine, cent)
	}
	if err := w.Allow(nine, cent); err != nil {
		t.Error(err)
	}
	more := cent
	more.Loss = privacy.LossOf(privacy.Pure{Epsilon: 0.1 + 2e-9})
	if err := w.Allow(nine, more); !errors.Is(err, privacy.ErrBudget) {
		t.Errorf("more than the slack beyond the cap: %v", err)
	}
	if most := w.Most(append(nine, cent), 0, 100); most < 1 {
		t.Errorf("ten times 0.1 is %v, below what it is", most)
	}
	for _, c := range []privacy.Charge{
		{Loss: privacy.LossOf(privacy.ZCDP{Rho: 0.1}), Last: privacy.Never}, // has no ε
		{Loss: privacy.InfiniteLoss(), Last: privacy.Never},
		{Loss: privacy.LossOf(privacy.Pure{Epsilon: 0.2}), Last: privacy.Never, Layer: "a", Lo: math.NaN(), Hi: 1},
	} {
		if err := w.Allow(nine, c); !errors.Is(err, privacy.ErrBudget) {
			t.Errorf("%+v is allowed: %v", c, err)
		}
		if from, ok := w.Begin(nine, c); ok {
			t.Errorf("%+v may begin at %d", c, from)
		}
	}
	rho, err := privacy.NewWindows(privacy.ZCDP{Rho: 1}, 10)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := rho.Price(privacy.LossOf(privacy.Pure{Epsilon: 1})), privacy.LossOf(privacy.Pure{Epsilon: 1}).ZCDP(); got != want {
		t.Errorf("ε = 1 costs %v in ρ, not %v as a ledger says", got, want)
	}
}

// The window is closed: a release that is as old as its length is in it.
func TestAWindowHasBothItsEnds(t *testing.T) {
	w, err := privacy.NewWindows(privacy.Pure{Epsilon: 1}, 365)
	if err != nil {
		t.Fatal(err)
	}
	one := privacy.Charge{Loss: privacy.LossOf(privacy.Pure{Epsilon: 1}), From: 0, Last: 30}
	next := privacy.Charge{Loss: one.Loss, From: 31, Last: privacy.Never}
	if from, ok := w.Begin([]privacy.Charge{one}, next); from != 396 || !ok {
		t.Errorf("it may begin at %d, %v", from, ok)
	}
	next.From = 395
	if err := w.Allow([]privacy.Charge{one}, next); !errors.Is(err, privacy.ErrBudget) {
		t.Errorf("a release of day 30 and one of day 395 are within 365 days: %v", err)
	}
	open := one
	open.Last = privacy.Never
	if from, ok := w.Begin([]privacy.Charge{open}, next); ok {
		t.Errorf("it may begin at %d, and the other has not ended", from)
	}
}

func TestBadWindows(t *testing.T) {
	for _, b := range []privacy.Budget{nil, privacy.Pure{}, privacy.Pure{Epsilon: math.NaN()}, privacy.Pure{Epsilon: math.Inf(1)},
		privacy.Pure{Epsilon: -1}, privacy.None{}, privacy.GDP{Mu: 1}, privacy.Approx{Epsilon: 1, Delta: 1e-6},
		&privacy.Pure{Epsilon: 1}} {
		if _, err := privacy.NewWindows(b, 1); err == nil {
			t.Errorf("%v is a cap", b)
		}
	}
	for _, length := range []int64{0, -1, math.MinInt64} {
		if _, err := privacy.NewWindows(privacy.Pure{Epsilon: 1}, length); err == nil {
			t.Errorf("%d is a length", length)
		}
	}
	w, err := privacy.NewWindows(privacy.Pure{Epsilon: 1}, math.MaxInt64)
	if err != nil || w.End(privacy.Charge{Last: 5}) != privacy.Never {
		t.Errorf("a window without end: %v", err)
	}
}
