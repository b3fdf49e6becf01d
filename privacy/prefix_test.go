package privacy_test

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"testing"

	"github.com/sotto-dp/sotto/privacy"
)

// A tree is paid for once, for one sum of each prefix of at most Horizon rewards: no lie about N
// gets more sums sealed.
func TestAContinualMechanismSealsEachPrefixOnce(t *testing.T) {
	blt, err := privacy.NewBLT(privacy.ZCDP{Rho: 1}, 8)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []privacy.Mechanism{privacy.Tree{Scale: 1, Horizon: 8},
		privacy.NewKAry(1, 3, 8), privacy.SquareRoot{Sigma: 1, Horizon: 8}, blt,
		privacy.Hybrid{Scale: 1}} {
		for what, l := range map[string]*privacy.Ledger{"plain": privacy.NewLedger(),
			"with a transcript": privacy.NewLedger(privacy.WithTranscript(io.Discard)),
			"mixed":             privacy.NewLedger()} {
			if what == "mixed" {
				release(t, l, 0, privacy.Laplace{Scale: 1})
			}
			account, all := l.Account(m), 0
			seal := func(n int, sum float64) error {
				v := &privacy.Values{N: []int{n}, Sum: []float64{sum}}
				var r privacy.Released
				var err error
				switch all++; all % 3 {
				case 0:
					r, err = l.ReleaseAll([]int{0}, m, v)
				case 1:
					r, err = account.Release(0, v)
				default:
					r, err = l.Release(0, m, v)
				}
				if (err == nil) != (r.Len() == 1) {
					t.Errorf("%s, %s: %v, %v", m.Kind(), what, r, err)
				}
				return err
			}
			sealed := 0
			for n := 1; n <= 8; n++ {
				for try := range 100 { // noise drawn again
					if err := seal(n, float64(try)); err == nil {
						sealed++
					} else if !errors.Is(err, privacy.ErrPrefix) {
						t.Fatal(err)
					}
				}
				if err := seal(n, 0); err != nil {
					t.Errorf("%s, %s: the same sum again: %v", m.Kind(), what, err)
				}
			}
			if sealed != 8 {
				t.Errorf("%s, %s: %d sums of 8 prefixes", m.Kind(), what, sealed)
			}
			for _, n := range []int{7, 1, 0, -1, math.MinInt} {
				if err := seal(n, 0); !errors.Is(err, privacy.ErrPrefix) {
					t.Errorf("%s, %s: a sum of %d after one of 8: %v", m.Kind(), what, n, err)
				}
			}
			if err := seal(9, 0); (err == nil) != (m == privacy.Mechanism(privacy.Hybrid{Scale: 1})) {
				t.Errorf("%s, %s: a sum of 9 rewards: %v", m.Kind(), what, err)
			}
			before := l.Total()
			if _, err := l.Release(3, m, &privacy.Values{N: []int{1, 1},
				Sum: []float64{0, 1}}); !errors.Is(err, privacy.ErrPrefix) ||
				len(l.Slot(3).String()) == 0 || l.Slot(3) != (privacy.Loss{}) {
				t.Errorf("%s, %s: two sums of one prefix at once: %v", m.Kind(), what, err)
			}
			if _, err := l.ReleaseAll([]int{3, 4, 3}, m,
				&privacy.Values{N: []int{2, 1, 1}, Sum: []float64{0, 0, 0}}); !errors.Is(err,
				privacy.ErrPrefix) {
				t.Errorf("%s, %s: a prefix that shrinks: %v", m.Kind(), what, err)
			}
			if l.Total().String() != before.String() {
				t.Errorf("%s, %s: a refused sum was charged", m.Kind(), what)
			}
		}
	}
	l, tree := privacy.NewLedger(), privacy.GramTree{Sigma: 1, Horizon: 2}
	for i, n := range []int{1, 1, 2, 1, 2, 3, 0} { // each another vector
		if _, err := l.ReleaseVector(0, tree, &privacy.Vector{N: n,
			Value: []float64{float64(i)}}); (err == nil) != (i == 0 || i == 2) {
			t.Errorf("vector %d, of %d rewards: %v", i, n, err)
		}
	}
	l.Reset()
	for n := 1; n <= 2; n++ {
		if _, err := l.ReleaseVector(0, tree, &privacy.Vector{N: n, Value: []float64{0}}); err != nil {
			t.Errorf("after Reset: %v", err)
		}
	}
}

// Questions answer, and release no sum: what is released through them is exact, for all that is
// known.
func TestQuestionsSealNothing(t *testing.T) {
	q := privacy.Questions{Threshold: 6, Query: 6, Statistic: privacy.Centre}
	m := privacy.Sparse{Questions: q, Scale: 2}
	for what, seal := range map[string]func(l *privacy.Ledger) error{
		"release": func(l *privacy.Ledger) error { _, err := l.Release(0, q, one()); return err },
		"account": func(l *privacy.Ledger) error { _, err := l.Account(q).Release(0, one()); return err },
		"all":     func(l *privacy.Ledger) error { _, err := l.ReleaseAll([]int{0}, q, one()); return err },
	} {
		l := privacy.NewLedger()
		if err := seal(l); err != nil || !l.Total().Infinite() {
			t.Errorf("%s: a sum through questions costs %v, %v", what, l.Total(), err)
		}
		if err := seal(privacy.NewLedger(privacy.WithCap(privacy.Pure{Epsilon: 9}))); !errors.Is(err,
			privacy.ErrBudget) {
			t.Errorf("%s under a cap: %v", what, err)
		}
	}
	l := privacy.NewLedger(privacy.WithTranscript(io.Discard))
	if err := l.No([]int{0}, m, []int{3}, m.Tail()); !errors.Is(err, privacy.ErrPrefix) {
		t.Errorf("an answer to no question: %v", err)
	}
	if err := l.Question([]int{0}, m); err != nil {
		t.Fatal(err)
	}
	if err := l.No([]int{0}, m, []int{3}, m.Tail()); err != nil {
		t.Error(err)
	}
	if err := l.No([]int{0, 1}, m, []int{3, 3}, m.Tail()); !errors.Is(err, privacy.ErrPrefix) {
		t.Errorf("an answer about a slot more: %v", err)
	}
	if _, err := l.ReleaseAll([]int{0}, m, one()); err != nil {
		t.Fatal(err)
	}
	if err := l.Question([]int{0}, m); !errors.Is(err, privacy.ErrPrefix) {
		t.Errorf("a question after the yes: %v", err)
	}
	if got := l.Slot(0).Pure(); math.Abs(got-1) > 1e-12 {
		t.Errorf("the slot has lost %v", got)
	}
}

// A journal has the charge of a slot and not its noise: whoever reads it cannot draw that again for
// nothing, of sums, vectors or thresholds.
func TestAJournalBringsNoNoiseBack(t *testing.T) {
	blt, err := privacy.NewBLT(privacy.ZCDP{Rho: 1}, 8)
	if err != nil {
		t.Fatal(err)
	}
	reread := func(l *privacy.Ledger) *privacy.Ledger {
		t.Helper()
		b, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		back := privacy.NewLedger()
		if err := json.Unmarshal(b, back); err != nil {
			t.Fatal(err)
		}
		return back
	}
	for _, m := range []privacy.Mechanism{privacy.Tree{Scale: 1, Horizon: 8},
		privacy.NewKAry(1, 3, 8), privacy.SquareRoot{Sigma: 1, Horizon: 8}, blt,
		privacy.Hybrid{Scale: 1}} {
		for _, mixed := range []bool{false, true} {
			l := privacy.NewLedger()
			release(t, l, 0, m)
			if mixed {
				release(t, l, 0, privacy.Laplace{Scale: 1})
			}
			back := reread(l)
			for n := range 9 {
				v := &privacy.Values{N: []int{n}, Sum: []float64{float64(n)}}
				_, err1 := back.Account(m).Release(0, v)
				_, err2 := back.ReleaseAll([]int{0}, m, v)
				if !errors.Is(err1, privacy.ErrPrefix) || !errors.Is(err2, privacy.ErrPrefix) {
					t.Errorf("%s, mixed %v: a sum of %d rewards, sealed again: %v, %v", m.Kind(),
						mixed, n, err1, err2)
				}
			}
			if back.Total().Pure() != l.Total().Pure() {
				t.Errorf("%s: total %v, was %v", m.Kind(), back.Total(), l.Total())
			}
			release(t, back, 1, m) // a slot of its own
		}
	}

	tree := privacy.VectorTree{Scale: 1, Horizon: 8, Dim: 2}
	l := privacy.NewLedger()
	if _, err := l.ReleaseVector(0, tree, &privacy.Vector{N: 1, Value: []float64{1, 2}}); err != nil {
		t.Fatal(err)
	}
	if _, err := reread(l).ReleaseVector(0, tree,
		&privacy.Vector{N: 2, Value: []float64{1, 3}}); !errors.Is(err, privacy.ErrPrefix) {
		t.Errorf("vector: %v", err)
	}

	sparse := privacy.Sparse{Questions: privacy.Questions{Threshold: 4, Query: 8,
		Statistic: privacy.Range}, Scale: 2}
	l = privacy.NewLedger()
	if err := l.Question([]int{0, 1}, sparse); err != nil {
		t.Fatal(err)
	}
	back := reread(l)
	_, yes := back.ReleaseAll([]int{0, 1}, sparse, &privacy.Values{N: []int{1, 1}, Sum: []float64{0, 1}})
	for what, err := range map[string]error{"asked": back.Question([]int{0, 1}, sparse),
		"no": back.No([]int{0, 1}, sparse, []int{1, 1}, privacy.Tail{}), "yes": yes} {
		if !errors.Is(err, privacy.ErrPrefix) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// The price of a vector's mechanism is not that of single sums: after a vector of a slot its
// account releases none for free, and the account of a tree of sums no vectors.
func TestVectorsPayForNoSums(t *testing.T) {
	l := privacy.NewLedger()
	a := l.Account(privacy.GramTree{Sigma: 1, Horizon: 8})
	for n := 1; n <= 2; n++ {
		if _, err := a.ReleaseVector(0, &privacy.Vector{N: n, Value: []float64{1, 2}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := a.Release(0, &privacy.Values{N: []int{3}, Sum: []float64{1}}); err != nil {
		t.Fatal(err)
	}
	if !l.Total().Infinite() {
		t.Errorf("a single sum through the tree of vectors costs %v", l.Total())
	}
	l = privacy.NewLedger()
	a = l.Account(privacy.Tree{Scale: 1, Horizon: 8})
	if _, err := a.Release(0, &privacy.Values{N: []int{1}, Sum: []float64{1}}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.ReleaseVector(0, &privacy.Vector{N: 2, Value: []float64{1, 2}}); err != nil {
		t.Fatal(err)
	}
	if !l.Total().Infinite() {
		t.Errorf("a vector through the tree of sums costs %v", l.Total())
	}
}

// A sum that is no number is refused, and charged: the next one of the same rewards would
// have other noise.
func TestNoOtherSumAfterNone(t *testing.T) {
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		l := privacy.NewLedger()
		m := privacy.Tree{Scale: 1, Horizon: 8}
		if _, err := l.Release(0, m, &privacy.Values{N: []int{1},
			Sum: []float64{bad}}); !errors.Is(err, privacy.ErrValues) {
			t.Errorf("%v: %v", bad, err)
		}
		if _, err := l.Release(0, m, &privacy.Values{N: []int{1},
			Sum: []float64{1}}); !errors.Is(err, privacy.ErrPrefix) {
			t.Errorf("another sum after %v: %v", bad, err)
		}
		if _, err := l.Release(0, m, &privacy.Values{N: []int{1},
			Sum: []float64{bad}}); !errors.Is(err, privacy.ErrValues) {
			t.Errorf("%v again: %v", bad, err)
		}
	}
}

// Beyond the cap nothing more is admitted, the next running sum of a slot that was paid for neither.
func TestNothingRunsOnBeyondTheCap(t *testing.T) {
	l := privacy.NewLedger(privacy.WithCap(privacy.ZCDP{Rho: 100}))
	sums, vectors := l.Account(privacy.Tree{Scale: 1, Horizon: 4}),
		l.Account(privacy.GramTree{Sigma: 1, Horizon: 4})
	next := func(n int) (err1, err2 error) {
		_, err1 = sums.Release(0, &privacy.Values{N: []int{n}, Sum: []float64{1}})
		_, err2 = vectors.ReleaseVector(1, &privacy.Vector{N: n, Value: []float64{1}})
		return err1, err2
	}
	for n := 1; n <= 2; n++ {
		if err1, err2 := next(n); err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
	}
	if err := l.Note(2, privacy.Gaussian{Sigma: 0.01}); !errors.Is(err, privacy.ErrBudget) {
		t.Fatal(err)
	}
	if err1, err2 := next(3); !errors.Is(err1, privacy.ErrBudget) || !errors.Is(err2, privacy.ErrBudget) {
		t.Errorf("beyond the cap: %v, %v", err1, err2)
	}
}
