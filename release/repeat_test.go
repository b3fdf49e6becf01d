package release

import (
	"math"
	"testing"

	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
)

// listed is a law of given rewards, one after the other.
type listed []float64

func (l *listed) Sum(int, *noise.Fast) float64 {
	x := (*l)[0]
	*l = (*l)[1:]
	return x
}

// Repeat does what AddSum and Release do one after the other, to the last bit, for as long as the condition
// holds of what was released.
func TestRepeatIsAddSumAndRelease(t *testing.T) {
	rewards := []float64{3, -0.9, 0, 1.5, 3, 2, -1 - 1e-9, 3 + 1e-9, 0.25, 1, 1, 2, -1, -1, -1, 0}
	config := Config{Arms: 2, Lo: -1, Hi: 3, Mechanism: privacy.Tree{Scale: 0.5, Horizon: 12}}
	for _, c := range []struct {
		name   string
		rounds int
		while  privacy.Index
		done   int
	}{
		{"no rounds", 0, privacy.Index{Above: math.Inf(-1)}, 0},
		{"all rounds", 5, privacy.Index{Above: math.Inf(-1)}, 5},
		{"to the horizon", 11, privacy.Index{Above: math.Inf(-1)}, 11},
		{"never", 5, privacy.Index{Above: math.Inf(1)}, 0},
		{"while the mean is above", 11, privacy.Index{Root: 0.1, Above: 0.45}, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			one, err := newSimulated(config, fastStream(5))
			must(t, err)
			other, err := newSimulated(config, fastStream(5))
			must(t, err)
			for _, cur := range []*curator[float64]{one, other} {
				must(t, cur.Add(1, rewards[0]))
			}
			last := release(t, one, 1)
			want := release(t, other, 1)
			law := listed(rewards[1:])
			done, got, err := Repeat(one, 1, c.rounds, c.while, last, &law, nil)
			must(t, err)
			times := 0
			for times < c.rounds && c.while.Holds(want.N(0), want.Sum(0)) {
				must(t, other.AddSum(1, 1, rewards[1+times]))
				want = release(t, other, 1)
				times++
			}
			if done != times || c.done >= 0 && done != c.done || got.N(0) != want.N(0) ||
				got.Sum(0) != want.Sum(0) {
				t.Errorf("%d times, %v of %d; want %d times, %v of %d", done, got.Sum(0), got.N(0),
					times, want.Sum(0), want.N(0))
			}
			if c.done < 0 && (done == 0 || done == c.rounds) {
				t.Errorf("%d times: the condition decided nothing", done)
			}
			a, b := one.Ledger().Entries(), other.Ledger().Entries()
			if len(a) != len(b) || a[0].Releases != b[0].Releases {
				t.Errorf("charged %+v, want %+v", a, b)
			}
		})
	}
}

// What it refuses it leaves as it was, and at the end of the horizon it says so.
func TestRepeatRefuses(t *testing.T) {
	always := privacy.Index{Above: math.Inf(-1)}
	cur, err := newSimulated(Config{Arms: 2, Mechanism: privacy.Tree{Scale: 1, Horizon: 3}}, fastStream(6))
	must(t, err)
	must(t, cur.Add(0, 1))
	must(t, cur.Add(1, 1))
	two := release(t, cur, 0, 1)
	law := listed{1, 1, 1, 1}
	for _, arm := range []int{-1, 2} {
		if done, _, err := Repeat(cur, arm, 1, always, release(t, cur, 0), &law,
			nil); done != 0 || err != nil {
			t.Errorf("arm %d: %d times, %v", arm, done, err)
		}
	}
	if done, _, err := Repeat(cur, 0, 1, always, two, &law, nil); done != 0 || err != nil {
		t.Errorf("after a release of two arms: %d times, %v", done, err)
	}
	done, last, err := Repeat(cur, 0, 5, always, release(t, cur, 0), &law, nil)
	if done != 2 || err == nil || last.N(0) != 3 {
		t.Errorf("past the horizon: %d times, %d rewards, %v", done, last.N(0), err)
	}
	for _, m := range []privacy.Mechanism{privacy.Laplace{Scale: 1}, privacy.Hybrid{Scale: 1}} {
		cur, err := newSimulated(Config{Arms: 1, Mechanism: m}, fastStream(6))
		must(t, err)
		must(t, cur.Add(0, 1))
		if done, _, err := Repeat(cur, 0, 1, always, release(t, cur, 0), &law, nil); done != 0 ||
			err != nil {
			t.Errorf("%v: %d times, %v", m, done, err)
		}
	}
	// A reward that was added and not yet released has a node of its own to come.
	cur, err = newSimulated(Config{Arms: 1, Mechanism: privacy.Tree{Scale: 1, Horizon: 8}}, fastStream(7))
	must(t, err)
	same, err := newSimulated(Config{Arms: 1, Mechanism: privacy.Tree{Scale: 1, Horizon: 8}}, fastStream(7))
	must(t, err)
	for _, c := range []*curator[float64]{cur, same} {
		must(t, c.Add(0, 1))
	}
	last = release(t, cur, 0)
	release(t, same, 0)
	for _, c := range []*curator[float64]{cur, same} {
		must(t, c.Add(0, 0.5))
	}
	law = listed{0.25, 0.25}
	_, got, err := Repeat(cur, 0, 1, always, last, &law, nil)
	must(t, err)
	must(t, same.AddSum(0, 1, 0.25))
	if want := release(t, same, 0); got.N(0) != 3 || got.Sum(0) != want.Sum(0) {
		t.Errorf("%v of %d, want %v of 3", got.Sum(0), got.N(0), want.Sum(0))
	}
}
