package serve

import (
	"bytes"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/sotto-dp/sotto/live/serve/store"
	"github.com/sotto-dp/sotto/play"
)

// Parts, and the whole set, say the numbers that they were made of.
func TestParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const n = 300
		numbers := rapid.SliceOfNDistinct(rapid.IntRange(0, n-1), 0, 60, rapid.ID).Draw(t, "numbers")
		cut := rapid.IntRange(0, len(numbers)).Draw(t, "cut")
		var s play.Set
		for i, part := range [][]int{numbers[:cut], numbers[cut:]} {
			slices.Sort(part)
			var err error
			if s, err = redeem(s, store.Part{Number: i + 1, Redeemed: gaps(part)}, n); err != nil {
				t.Fatal(err)
			}
		}
		whole, err := redeem(play.Set{1, 2, 3}, store.Part{Redeemed: words(s)}, n)
		if err != nil {
			t.Fatal(err)
		}
		for i := range n {
			if want := slices.Contains(numbers, i); s.Has(i) != want || whole.Has(i) != want {
				t.Fatalf("number %d: %v and %v, want %v", i, s.Has(i), whole.Has(i), want)
			}
		}
	})
}

// What was said of a segment's decisions is taken apart as it was put together.
func TestSaid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s play.Segment
		for _, set := range []*play.Set{&s.Came, &s.Gone} {
			for _, n := range rapid.SliceOf(rapid.IntRange(0, 200)).Draw(t, "numbers") {
				if need := n>>6 + 1 - len(*set); need > 0 {
					*set = append(*set, make(play.Set, need)...)
				}
				(*set)[n>>6] |= 1 << (n & 63)
			}
		}
		cells := rapid.IntRange(0, 5).Draw(t, "cells")
		for n := range 200 * min(cells, 1) {
			if s.Cells == nil {
				s.Cells = make([]play.Set, cells)
			}
			put1(&s.Cells[rapid.IntRange(0, cells-1).Draw(t, "cell")], n)
		}
		came, gone, of := unsaid(said(s), cells)
		if !slices.Equal(came, s.Came) || !slices.Equal(gone, s.Gone) || !slices.EqualFunc(of, s.Cells, slices.Equal) {
			t.Fatalf("%v, %v and %v, were %v, %v and %v", came, gone, of, s.Came, s.Gone, s.Cells)
		}
	})
}

// A part never says more numbers than its segment has, whatever is read.
func FuzzPart(f *testing.F) {
	f.Add(1, gaps([]int{0, 5, 299}))
	f.Add(1, []byte{255, 255, 255, 255, 255, 255, 255, 255, 255, 1})
	f.Fuzz(func(t *testing.T, number int, data []byte) {
		s, err := redeem(nil, store.Part{Number: max(number, 1), Redeemed: data}, 300)
		if err == nil && (len(s) > 5 || len(s) == 5 && s[4]>>44 != 0) {
			t.Errorf("%v", s)
		}
	})
}

// Assignments are read as they were written, and no text makes the reader fail otherwise than by
// an error.
func FuzzUnits(f *testing.F) {
	u := assignment{number: 1<<40 - 2, deadline: 1<<48 - 1, by: 1<<48 - 2, propensity: 0.25,
		used: 7, arm: 999}
	forms := []unitForm{{}, {timed: true}, {timed: true, events: true, dim: 3, rules: 1}}
	for _, form := range forms {
		f.Add(form.append(nil, tag{1, 15: 2}, u, epochTag{3, 7: 4}, event{action: 5}, true))
	}
	f.Add([]byte("short"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, form := range forms[:2] { // what is kept of an event has a form of its own, and a fuzzer
			var again []byte
			if err := form.read(data, func(k tag, u assignment, e epochTag, _ *event) {
				again = form.append(again, k, u, e, event{}, false)
			}); err == nil && string(again) != string(data) {
				t.Errorf("%x became %x", data, again)
			}
		}
		_ = forms[2].read(data, func(tag, assignment, epochTag, *event) {})
	})
}

// What was signed is read as it was; nothing else is.
func FuzzToken(f *testing.F) {
	s := newSigner([]byte("key"))
	k := ticket{arm: 999, number: 1<<40 - 2, deadline: 1<<48 - 1, epoch: epochTag{1, 7: 2}}
	token := s.sign(k, tag{5})
	if got, ok := s.read(token); !ok || got != k || len(token) != 58 {
		f.Fatalf("%+v, %v", got, ok)
	}
	k.by, k.propensity, k.unit = 1<<48-2, 0.95, tag{5, 15: 1}
	offer := s.sign(k, k.unit)
	if got, ok := s.read(offer); !ok || got != k || len(offer) != 90 {
		f.Fatalf("%+v, %v", got, ok)
	}
	for _, text := range []string{token, offer} {
		if _, ok := newSigner([]byte("another")).read(text); ok {
			f.Fatal("another key reads it")
		}
		f.Add(text)
	}
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		if got, ok := s.read(text); ok && text != token && text != offer {
			t.Errorf("%q is read as %+v", text, got)
		}
	})
}

// Blocks of events are read as they were written, or not at all.
func FuzzEvents(f *testing.F) {
	v := play.Event{Vector: []float64{0, 0.5, -1, 0, eventStep}, Weights: []float64{0, 1.5}}
	f.Add(appendVector(appendVector(nil, v.Vector, v.Weights), make([]float64, 5), v.Weights))
	f.Fuzz(func(t *testing.T, data []byte) {
		events, err := readEvents(data, 7, 5, 2)
		if err != nil {
			return
		}
		again, err := readEvents(eventsText(events), 7, 5, 2)
		if err != nil || len(again) != len(events) || !bytes.Equal(eventsText(again), eventsText(events)) {
			t.Errorf("%v, %v, was %v", again, err, events)
		}
		for i, v := range events {
			if v.Number != 7+i || len(v.Vector) != 5 || len(v.Weights) != 2 {
				t.Errorf("%+v", v)
			}
		}
	})
}

func FuzzEvent(f *testing.F) {
	f.Add(appendEvent(nil, event{}, false))
	f.Add(appendEvent(nil, event{action: 1, greedy: 2}, true))
	f.Add(appendEvent(nil, event{action: 1, greedy: 2,
		offer: &play.Decision{Vector: []float64{1, 0, 0}, Weights: []float64{3}}}, true))
	f.Fuzz(func(t *testing.T, data []byte) {
		v, ok, rest, err := readEvent(data, 3, 1)
		if err != nil {
			return
		}
		again, okAgain, left, err := readEvent(appendEvent(nil, v, ok), 3, 1)
		if err != nil || okAgain != ok || len(left) > 0 || len(rest) >= len(data) ||
			!bytes.Equal(appendEvent(nil, again, ok), appendEvent(nil, v, ok)) {
			t.Errorf("%+v, was %+v, %v", again, v, err)
		}
	})
}
