package privacy_test

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/privacy"
)

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space") }

func TestTranscriptRestoresReleasesAndTotal(t *testing.T) {
	var b bytes.Buffer
	l := privacy.NewLedger(privacy.WithTranscript(&b))
	tail := privacy.Tail{H: 0.1 + 0.2}
	tree := privacy.Tree{Scale: 3, Horizon: 8}
	give := func(r privacy.Released, err error) {
		t.Helper()
		if err != nil || r.Len() == 0 {
			t.Fatal(r, err)
		}
	}
	give(l.ReleaseAll([]int{0, 1}, privacy.Laplace{Scale: 2},
		&privacy.Values{N: []int{3, 4}, Sum: []float64{1.25, -1e-300}, Tail: tail}))
	for i := range 3 { // a continual mechanism is written each time, though it is charged once
		give(l.Account(tree).Release(2, &privacy.Values{N: []int{i + 1}, Sum: []float64{float64(i) / 3}}))
	}
	give(l.Release(0, privacy.Laplace{Scale: 2}, &privacy.Values{N: []int{3}, Sum: []float64{2}}))

	lines := strings.SplitAfter(strings.TrimSuffix(b.String(), "\n"), "\n")
	if len(lines) != 5 {
		t.Fatalf("%d lines: %s", len(lines), b.String())
	}
	back := privacy.NewLedger()
	for i, text := range lines {
		r, err := back.Restore([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 && (r.Len() != 2 || r.N(1) != 4 || r.Sum(0) != 1.25 || r.Sum(1) != -1e-300 ||
			r.Tail() != tail) {
			t.Errorf("restored %v", r)
		}
	}
	if got, want := back.Total().Pure(), l.Total().Pure(); got != want || want != math.Nextafter(4.0/3, 2) {
		t.Errorf("restored total %v, was %v, want 4/3, rounded up", got, want)
	}

	// A cap holds for what is restored as well.
	capped := privacy.NewLedger(privacy.WithCap(privacy.Pure{Epsilon: 0.4}))
	if _, err := capped.Restore([]byte(lines[0])); !errors.Is(err, privacy.ErrBudget) {
		t.Errorf("over the cap: %v", err)
	}
}

func TestTranscriptErrors(t *testing.T) {
	l := privacy.NewLedger(privacy.WithTranscript(full{}))
	if r, err := l.Release(0, privacy.Laplace{Scale: 2},
		&privacy.Values{N: []int{1}, Sum: []float64{1}}); err == nil || r.Len() != 0 {
		t.Errorf("a transcript that cannot be written: %v, %v", r, err)
	}
	if got := l.Total().Pure(); got != 0.5 {
		t.Errorf("it is charged %v, want 0.5", got)
	}
	good := `{"slots":[0],"mechanism":{"mechanism":"laplace","scale":1},"n":[1],"sum":[1],"tail":{"sigma":0,"h":1,"log":0}}`
	if _, err := privacy.NewLedger().Restore([]byte(good)); err != nil {
		t.Fatal(err)
	}
	for _, change := range [][2]string{
		{`"slots":[0]`, `"slots":[]`}, {`"slots":[0]`, `"slots":[-1]`}, {`"n":[1]`, `"n":[0]`},
		{`"n":[1]`, `"n":[1,1]`}, {`"scale":1`, `"scale":-1`},
		{`,"tail":{"sigma":0,"h":1,"log":0}`, ``}, {`"h":1`, `"h":-1`},
		{`"sum":[1]`, `"sum":[1],"extra":1`}, {`"sum":[1]`, `"sum":[1e999]`}, {`}}`, `}} x`},
	} {
		bad := strings.Replace(good, change[0], change[1], 1)
		if r, err := privacy.NewLedger().Restore([]byte(bad)); err == nil || r.Len() != 0 {
			t.Errorf("%s: restored %v", bad, r)
		}
	}
	// A mechanism of another version is restored at its price, ∞.
	l = privacy.NewLedger()
	if _, err := l.Restore([]byte(strings.Replace(good, `"laplace","scale":1`, `"cubic","power":3`,
		1))); err != nil || !l.Total().Infinite() {
		t.Errorf("unknown mechanism: %v, total %v", err, l.Total())
	}
}

// What a ledger releases of a slot that it has read back is written as any other release, also
// where it is free.
func TestTranscriptGoesOnAfterRestore(t *testing.T) {
	var b, again bytes.Buffer
	tree := privacy.Tree{Scale: 3, Horizon: 8}
	v := &privacy.Values{N: []int{1}, Sum: []float64{0.5}}
	if _, err := privacy.NewLedger(privacy.WithTranscript(&b)).Release(0, tree, v); err != nil {
		t.Fatal(err)
	}
	l := privacy.NewLedger(privacy.WithTranscript(&again))
	if _, err := l.Restore(b.Bytes()); err != nil || again.Len() != 0 {
		t.Fatal(err, again.String())
	}
	if _, err := l.Release(0, tree, v); err != nil || again.String() != b.String() {
		t.Errorf("after Restore the transcript has %q, want %q; %v", again.String(), b.String(), err)
	}
}

func FuzzRestore(f *testing.F) {
	f.Add([]byte(`{"slots":[0],"mechanism":{"mechanism":"laplace","scale":1},"n":[1],"sum":[1],"tail":{"sigma":0,"h":1,"log":0}}`))
	f.Add([]byte(`{"slots":[0,7],"mechanism":{"mechanism":"tree","scale":2,"horizon":9},"n":[1,2],"sum":[1,-3e5],"tail":{"sigma":1,"h":1,"log":0.5}}`))
	f.Add([]byte(`{"slots":[3],"mechanism":{"mechanism":"sparse","threshold":6,"query":6,"statistic":"range","scale":2},"n":[1],"sum":[],"tail":{"sigma":0,"h":2,"log":0}}`))
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		l := privacy.NewLedger()
		r, err := l.Restore(text)
		if err != nil {
			return
		}
		if no := strings.Contains(string(text), "sparse") || l.Total().Infinite(); r.Len() == 0 &&
			!no || l.Total().Pure() == 0 {
			t.Errorf("%s: restored %d sums for nothing", text, r.Len())
		}
		for i := range r.Len() {
			if r.N(i) < 1 || r.Sum(i)-r.Sum(i) != 0 {
				t.Errorf("%s: restored %d rewards, sum %v", text, r.N(i), r.Sum(i))
			}
		}
	})
}
