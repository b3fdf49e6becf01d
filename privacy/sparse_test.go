package privacy_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sotto-dp/sotto/privacy"
)

// sparse is the mechanism of [Sajed 2019, Algorithm 10] at this ε.
func sparse(epsilon float64) privacy.Sparse {
	return privacy.Sparse{Questions: privacy.Questions{Threshold: 6 / epsilon, Query: 6 / epsilon,
		Statistic: privacy.Range}, Scale: 2 / epsilon}
}

func TestSparseCosts(t *testing.T) {
	for _, c := range []struct {
		m    privacy.Mechanism
		pure float64
	}{
		{sparse(1), 1}, {sparse(0.25), 0.25}, {sparse(1).Questions, 0.5},
		{privacy.Questions{Threshold: 2, Query: 8, Statistic: privacy.Centre}, 0.75},
		{privacy.Sparse{Questions: privacy.Questions{Threshold: 4, Query: 4,
			Statistic: privacy.Centre}, Scale: 1}, 1.75},
	} {
		if got := c.m.Loss().Pure(); math.Abs(got-c.pure) > 1e-15 {
			t.Errorf("%v costs %v, want %v", c.m, got, c.pure)
		}
	}
	q := privacy.Questions{Threshold: 1, Query: 1, Statistic: privacy.Range}
	for _, m := range []privacy.Mechanism{
		privacy.Questions{Query: 1, Statistic: privacy.Range},
		privacy.Questions{Threshold: 1, Statistic: privacy.Range}, privacy.Sparse{Questions: q},
		privacy.Sparse{Questions: privacy.Questions{Statistic: privacy.Centre}},
	} {
		if m.Validate() != nil || !m.Loss().Infinite() {
			t.Errorf("%v: %v, costs %v", m, m.Validate(), m.Loss())
		}
	}
	for _, c := range []struct {
		m       privacy.Mechanism
		mention string
	}{
		{privacy.Questions{Threshold: math.NaN(), Query: 1, Statistic: privacy.Range}, "threshold is NaN"},
		{privacy.Questions{Threshold: 1, Query: -1, Statistic: privacy.Range}, "query is -1"},
		{privacy.Questions{Threshold: 1, Query: 1}, `statistic is ""`},
		{privacy.Sparse{Questions: q, Scale: math.Inf(1)}, "scale is +Inf"},
		{privacy.Sparse{Questions: privacy.Questions{Threshold: 1, Query: 1, Statistic: "sum"},
			Scale: 1}, `statistic is "sum"`},
	} {
		if err := c.m.Validate(); err == nil || !strings.Contains(err.Error(), c.mention) ||
			!c.m.Loss().Infinite() {
			t.Errorf("%v: %v, costs %v", c.m, err, c.m.Loss())
		}
		l := privacy.NewLedger()
		if err := l.Question([]int{0}, c.m); err != nil || !l.Total().Infinite() {
			t.Errorf("%v: %v, a question costs %v", c.m, err, l.Total())
		}
	}
}

func TestSparseReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.Float64Range(0, 1e9)
		q := privacy.Questions{Threshold: f.Draw(t, "threshold"), Query: f.Draw(t, "query"),
			Statistic: rapid.SampledFrom([]privacy.Statistic{privacy.Range, privacy.Centre}).Draw(t,
				"statistic")}
		for _, m := range []privacy.Mechanism{q, privacy.Sparse{Questions: q, Scale: f.Draw(t, "scale")}} {
			data, err := json.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := privacy.UnmarshalMechanism(data); got != m || err != nil {
				t.Fatalf("%s reads back as %v, %v", data, got, err)
			}
		}
	})
	const good = `{"mechanism":"sparse","threshold":6,"query":6,"statistic":"range","scale":2}`
	if m, err := privacy.UnmarshalMechanism([]byte(good)); err != nil || m != sparse(1) {
		t.Errorf("%v, %v", m, err)
	}
	for _, change := range [][2]string{
		{`"threshold":6,`, ``}, {`"query":6,`, ``}, {`,"scale":2`, ``},
		{`"statistic":"range",`, ``}, {`"range"`, `"sum"`}, {`"threshold":6`, `"threshold":-6`},
		{`"sparse"`, `"questions"`}, {`"scale":2`, `"scale":2,"horizon":4`}, {`"query":6`, `"query":null`},
	} {
		if m, err := privacy.UnmarshalMechanism([]byte(strings.Replace(good, change[0], change[1],
			1))); err == nil {
			t.Errorf("%v: read as %v", change, m)
		}
	}
}

// All questions about a group of slots are one charge, and the sums after the yes another, on the
// same rewards: a sum. A second group is of other rewards: a maximum.
func TestLedgerPricesQuestions(t *testing.T) {
	m := sparse(1)
	l := privacy.NewLedger()
	ask := func(slots ...int) {
		t.Helper()
		if err := l.Question(slots, m); err != nil {
			t.Fatal(err)
		}
	}
	total := func(want float64) {
		t.Helper()
		if got := l.Total().Pure(); math.Abs(got-want) > 1e-15 {
			t.Fatalf("total is %v, want %v", got, want)
		}
	}
	for range 100 {
		ask(0, 1, 2)
		total(0.5)
	}
	two := &privacy.Values{N: []int{5, 5}, Sum: []float64{1, 2}}
	three := &privacy.Values{N: []int{5, 5, 5}, Sum: []float64{1, 2, 3}}
	if _, err := l.ReleaseAll([]int{0, 1, 2}, m, three); err != nil {
		t.Fatal(err)
	}
	total(1)
	ask(3, 4)
	if got := l.Slot(3).Pure(); got != 0.5 {
		t.Errorf("a slot that has had a no has lost %v", got)
	}
	if _, err := l.ReleaseAll([]int{3, 4}, m, two); err != nil {
		t.Fatal(err)
	}
	total(1)
	// Sums without a question pay for one all the same, and a second release of a slot pays
	// for its sums again.
	if _, err := l.ReleaseAll([]int{5, 6}, m, two); err != nil {
		t.Fatal(err)
	}
	total(1)
	if _, err := l.ReleaseAll([]int{5, 6}, m, two); err != nil {
		t.Fatal(err)
	}
	total(1.5)
	entries := l.Entries()
	if len(entries) != 14 || entries[0].Mechanism != m.Questions || entries[0].Releases != 100 ||
		entries[1].Mechanism != (privacy.Laplace{Scale: 2}) {
		t.Errorf("entries %v", entries)
	}
	// The journal restores it.
	data, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	var back privacy.Ledger
	if err := json.Unmarshal(data, &back); err != nil || back.Total().Pure() != l.Total().Pure() {
		t.Errorf("restored %v, %v", back.Total(), err)
	}

	for _, bad := range [][]int{nil, {-1}} {
		if err := l.Question(bad, m); err == nil {
			t.Errorf("a question about slots %v", bad)
		}
	}
}

func TestQuestionsUnderACap(t *testing.T) {
	m := sparse(1)
	two := &privacy.Values{N: []int{5, 5}, Sum: []float64{1, 2}}
	l := privacy.NewLedger(privacy.WithCap(privacy.Pure{Epsilon: 0.4}))
	if err := l.Question([]int{0, 1}, m); !errors.Is(err, privacy.ErrBudget) || len(l.Entries()) != 0 {
		t.Errorf("%v, entries %v", err, l.Entries())
	}
	l = privacy.NewLedger(privacy.WithCap(privacy.Pure{Epsilon: 0.9}))
	for range 10 {
		if err := l.Question([]int{0, 1}, m); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.ReleaseAll([]int{0, 1}, m, two); !errors.Is(err, privacy.ErrBudget) ||
		l.Total().Pure() != 0.5 {
		t.Errorf("%v, total %v", err, l.Total())
	}
	l = privacy.NewLedger(privacy.WithCap(privacy.Pure{Epsilon: 1}))
	if err := l.Question([]int{0, 1}, m); err != nil {
		t.Fatal(err)
	}
	if _, err := l.ReleaseAll([]int{0, 1}, m, two); err != nil {
		t.Errorf("the whole budget is refused: %v", err)
	}
	if _, err := l.ReleaseAll([]int{0, 1}, m, two); !errors.Is(err, privacy.ErrBudget) {
		t.Errorf("twice: %v", err)
	}
}

func TestTranscriptOfQuestions(t *testing.T) {
	m := sparse(1)
	var b bytes.Buffer
	l := privacy.NewLedger(privacy.WithTranscript(&b))
	for i := range 3 {
		if err := l.Question([]int{0, 1}, m); err != nil {
			t.Fatal(err)
		}
		if i < 2 {
			if err := l.No([]int{0, 1}, m, []int{3 + i, 3 + i}, m.Tail()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := l.ReleaseAll([]int{0, 1}, m,
		&privacy.Values{N: []int{5, 5}, Sum: []float64{1, 2}, Tail: m.Tail()}); err != nil {
		t.Fatal(err)
	}
	back := privacy.NewLedger()
	for i, text := range strings.Split(strings.TrimSpace(b.String()), "\n") {
		r, err := back.Restore([]byte(text))
		if want := []int{0, 0, 2}[i]; err != nil || r.Len() != want {
			t.Fatalf("line %d: %d sums, %v", i, r.Len(), err)
		}
		if want := []float64{0.5, 0.5, 1}[i]; back.Total().Pure() != want {
			t.Errorf("line %d: total %v, want %v", i, back.Total(), want)
		}
	}
	got, err := json.Marshal(back)
	if err != nil {
		t.Fatal(err)
	}
	if want, err := json.Marshal(l); err != nil || string(got) != string(want) {
		t.Errorf("restored %s, was %s", got, want)
	}
	no := strings.SplitAfter(b.String(), "\n")[0]
	for _, change := range [][2]string{{`"slots":[0,1]`, `"slots":[0]`}, {`"n":[3,3]`, `"n":[]`},
		{`"slots":[0,1]`, `"slots":[0,-1]`}} {
		if _, err := privacy.NewLedger().Restore([]byte(strings.Replace(no, change[0], change[1],
			1))); err == nil {
			t.Errorf("%v: restored", change)
		}
	}
	if _, err := privacy.NewLedger().Restore([]byte(`{"slots":[0],"mechanism":{"mechanism":"laplace","scale":1},"n":[1],"sum":[],"tail":{"sigma":0,"h":1,"log":0}}`)); err == nil {
		t.Error("a Laplace mechanism has answered no")
	}
	if err := privacy.NewLedger(privacy.WithTranscript(full{})).No([]int{0}, m, []int{1},
		m.Tail()); err == nil {
		t.Error("a transcript that cannot be written")
	}
}
