package privacy_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/sotto-dp/sotto/privacy"
)

func ExampleLedger() {
	l := privacy.NewLedger(privacy.WithCap(privacy.Pure{Epsilon: 1}))
	m := privacy.Laplace{Scale: 2} // ε = 0.5 a release
	for _, slot := range []int{0, 1, 2, 2} {
		if _, err := l.Release(slot, m, &privacy.Values{N: []int{100}, Sum: []float64{51.3}}); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println("each slot its own rewards, one slot released twice:", l.Total())

	_, err := l.Release(2, m, &privacy.Values{N: []int{100}, Sum: []float64{49.8}})
	fmt.Println(err)
	fmt.Println(errors.Is(err, privacy.ErrBudget), l.Total())
	// Output:
	// each slot its own rewards, one slot released twice: epsilon=1
	// ledger: release of slot 2 through laplace(scale=2): after a loss of epsilon=1 the cap is epsilon=1: privacy budget exceeded
	// true epsilon=1
}

func ExampleLedger_MarshalJSON() {
	l := privacy.NewLedger()
	for _, slot := range []int{0, 0, 1} {
		if err := l.Record(slot, privacy.Gaussian{Sigma: 2}); err != nil {
			fmt.Println(err)
		}
	}
	journal, err := json.Marshal(l)
	fmt.Println(string(journal), err)
	var back privacy.Ledger
	err = json.Unmarshal(journal, &back)
	fmt.Println(back.Total(), err)
	// Output:
	// {"cap":"none","entries":[{"slot":0,"mechanism":{"mechanism":"gaussian","sigma":2},"releases":2},{"slot":1,"mechanism":{"mechanism":"gaussian","sigma":2},"releases":1}]} <nil>
	// rho=0.25 <nil>
}

// one is a release of one sum.
func one() *privacy.Values { return &privacy.Values{N: []int{4}, Sum: []float64{2.5}} }

func release(t testing.TB, l *privacy.Ledger, slot int, m privacy.Mechanism) {
	t.Helper()
	r, err := l.Release(slot, m, one())
	if err != nil {
		t.Fatal(err)
	}
	if r.Len() != 1 || r.Sum(0) != 2.5 || r.N(0) != 4 {
		t.Fatalf("released %v", r)
	}
}

func TestBrokenTwins(t *testing.T) {
	m := privacy.Laplace{Scale: 4}
	total := func(f func(l *privacy.Ledger)) float64 {
		l := privacy.NewLedger()
		f(l)
		return l.Total().Pure()
	}
	honest := total(func(l *privacy.Ledger) {
		for slot := range 50 {
			release(t, l, slot, m)
		}
	})
	near(t, "disjoint slots do not add up", honest, 0.25, 0)
	twice := total(func(l *privacy.Ledger) {
		for slot := range 50 {
			release(t, l, slot, m)
		}
		release(t, l, 17, m)
	})
	near(t, "a slot released again, with noise drawn again", twice, 0.5, 0)
	counted := total(func(l *privacy.Ledger) { // a reward in two sums that come out together
		if _, err := l.ReleaseAll([]int{0, 1, 0}, m,
			&privacy.Values{N: make([]int, 3), Sum: make([]float64, 3)}); err != nil {
			t.Fatal(err)
		}
	})
	near(t, "a slot twice in one release", counted, 0.5, 0)
	several := total(func(l *privacy.Ledger) {
		if _, err := l.Release(0, m, &privacy.Values{N: make([]int, 3), Sum: make([]float64, 3)}); err != nil {
			t.Fatal(err)
		}
	})
	near(t, "three sums of one slot", several, 0.75, 0)
	half := total(func(l *privacy.Ledger) { release(t, l, 0, privacy.Laplace{Scale: 2}) })
	near(t, "half the noise", half, 0.5, 0)
	other := total(func(l *privacy.Ledger) { // the same rewards through two mechanisms
		release(t, l, 0, m)
		release(t, l, 0, privacy.Laplace{Scale: 8})
	})
	near(t, "a slot through two mechanisms", other, 0.375, 0)
	tree := privacy.Tree{Scale: 16, Horizon: 8}
	running := total(func(l *privacy.Ledger) {
		for range 8 {
			release(t, l, 0, tree)
		}
	})
	near(t, "a tree's running sums cost once", running, 0.25, 0)
	// nodes drawn again: another tree on the same rewards
	regrown := total(func(l *privacy.Ledger) {
		release(t, l, 0, tree)
		release(t, l, 0, privacy.Tree{Scale: 16, Horizon: 9})
	})
	near(t, "a second tree on the same rewards", regrown, 0.5, 0)
}

// A mechanism that is not one of this package may say what it likes.
type liar struct{ privacy.Laplace }

// slices cannot be compared: the ledger must not try.
type odd struct {
	privacy.Laplace
	_ []int
}

func TestWhatCannotBePricedCostsInfinity(t *testing.T) {
	for _, m := range []privacy.Mechanism{nil, liar{privacy.Laplace{Scale: 1e9}},
		odd{Laplace: privacy.Laplace{Scale: 1e9}}, &privacy.Laplace{Scale: 1e9},
		(*privacy.Laplace)(nil), privacy.Unknown{Name: "x"}, privacy.Laplace{Scale: math.NaN()},
		privacy.Tree{Scale: 1}, privacy.Gaussian{Sigma: math.Inf(1)},
		privacy.Exact{}, privacy.Laplace{}} {
		l := privacy.NewLedger()
		release(t, l, 0, privacy.Laplace{Scale: 1})
		release(t, l, 1, m)
		release(t, l, 1, m)
		if !l.Total().Infinite() {
			t.Errorf("%T costs %v", m, l.Total())
		}
		if l.Slot(0).Infinite() {
			t.Errorf("%T: slot 0 costs %v", m, l.Slot(0))
		}
		journal, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		var back privacy.Ledger
		if err := json.Unmarshal(journal, &back); err != nil || !back.Total().Infinite() {
			t.Errorf("%T: %s reads back as %v, %v", m, journal, back.Total(), err)
		}
		capped := privacy.NewLedger(privacy.WithCap(privacy.Approx{Epsilon: 1e6, Delta: 0.1}))
		if _, err := capped.Release(0, m, one()); !errors.Is(err, privacy.ErrBudget) {
			t.Errorf("%T under a cap: %v", m, err)
		}
		if len(capped.Entries()) != 0 || capped.Total().Infinite() {
			t.Errorf("%T: the refused release was recorded", m)
		}
	}
}

func TestBadReleases(t *testing.T) {
	l := privacy.NewLedger()
	m := privacy.Laplace{Scale: 1}
	for what, f := range map[string]func() (privacy.Released, error){
		"no values": func() (privacy.Released, error) { return l.Release(0, m, nil) },
		"no sums":   func() (privacy.Released, error) { return l.Release(0, m, &privacy.Values{}) },
		"a count too few": func() (privacy.Released, error) {
			return l.Release(0, m, &privacy.Values{Sum: []float64{1}})
		},
		"a negative slot":  func() (privacy.Released, error) { return l.Release(-1, m, one()) },
		"two slots":        func() (privacy.Released, error) { return l.ReleaseAll([]int{0, 1}, m, one()) },
		"no slots":         func() (privacy.Released, error) { return l.ReleaseAll(nil, m, one()) },
		"all: no values":   func() (privacy.Released, error) { return l.ReleaseAll(nil, m, nil) },
		"all: a bad slot":  func() (privacy.Released, error) { return l.ReleaseAll([]int{-7}, m, one()) },
		"record: bad slot": func() (privacy.Released, error) { return privacy.Released{}, l.Record(-1, m) },
	} {
		if r, err := f(); err == nil || r.Len() != 0 {
			t.Errorf("%s: %v, %v", what, r, err)
		}
	}
	if n := len(l.Entries()); n != 0 {
		t.Errorf("%d refused releases were recorded", n)
	}
	// What is not a number is kept from the policy, and paid for: the noise was drawn.
	for i, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		for _, m := range []privacy.Mechanism{m, privacy.Tree{Scale: 1, Horizon: 1}} {
			l := privacy.NewLedger()
			for range 2 {
				if r, err := l.Release(i, m, &privacy.Values{N: []int{1},
					Sum: []float64{x}}); !errors.Is(err, privacy.ErrValues) || r.Len() != 0 {
					t.Errorf("%v: %v, %v", x, r, err)
				}
			}
			if r, err := l.ReleaseAll([]int{9, 10}, m,
				&privacy.Values{N: []int{1, 1}, Sum: []float64{0, x}}); !errors.Is(err,
				privacy.ErrValues) || r.Len() != 0 {
				t.Errorf("%v: %v, %v", x, r, err)
			}
			if n := len(l.Entries()); n != 3 || l.Slot(i).Pure() < 1 {
				t.Errorf("%v: %d entries, slot at %v", x, n, l.Slot(i))
			}
		}
	}
}

func TestCap(t *testing.T) {
	l := privacy.NewLedger(privacy.WithCap(privacy.Pure{Epsilon: 1}))
	m, tree := privacy.Laplace{Scale: 2}, privacy.Hybrid{Scale: 4}
	refused := func(slots ...int) {
		t.Helper()
		n, before := len(slots), l.Entries()
		r, err := l.ReleaseAll(slots, m, &privacy.Values{N: make([]int, n), Sum: make([]float64, n)})
		if !errors.Is(err, privacy.ErrBudget) || r.Len() != 0 {
			t.Fatalf("slots %v: %v, %v", slots, r, err)
		}
		if !slices.EqualFunc(before, l.Entries(), func(a, b privacy.Entry) bool {
			return a.Slot == b.Slot && a.Releases == b.Releases
		}) {
			t.Fatalf("slots %v: the refused release was recorded", slots)
		}
	}
	refused(0, 1, 0, 0) // three of slot 0
	release(t, l, 0, m)
	refused(1, 2, 0, 0)
	if l.WouldExceed(0, m, privacy.Pure{Epsilon: 1}) ||
		!l.WouldExceed(0, m, privacy.Pure{Epsilon: 0.9}) || l.WouldExceed(0, privacy.Exact{}, privacy.None{}) {
		t.Error("WouldExceed is wrong")
	}
	if !l.WouldExceed(0, m, nil) || !l.WouldExceed(0, m, privacy.Pure{}) ||
		!l.WouldExceed(-1, m, privacy.Pure{Epsilon: 9}) {
		t.Error("WouldExceed accepts nonsense")
	}
	release(t, l, 0, tree)
	release(t, l, 0, tree) // free
	refused(0)
	if l.WouldExceed(0, tree, privacy.Pure{Epsilon: 1}) {
		t.Error("a running sum that has been paid for would exceed the cap")
	}
	release(t, l, 1, m)
	release(t, l, 1, m)
	refused(1)
	if got := l.Total().Pure(); got != 1 {
		t.Errorf("total is %v", got)
	}
	l.Reset()
	if got := l.Total().Pure(); got != 0 || len(l.Entries()) != 0 || l.Cap() != (privacy.Pure{Epsilon: 1}) {
		t.Errorf("after Reset: %v", got)
	}
	release(t, l, 0, m)

	// Calibrated noise meets its own cap, in any currency, in spite of rounding.
	rapid.Check(t, func(t *rapid.T) {
		b := anyBudget().Draw(t, "budget")
		sigma, err := privacy.GaussianSigma(b)
		if err != nil {
			return
		}
		if a, ok := b.(privacy.Approx); ok {
			if b, err = privacy.GDPWithin(a); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := privacy.NewLedger(privacy.WithCap(b)).Release(3,
			privacy.Gaussian{Sigma: sigma}, one()); err != nil {
			t.Fatal(err)
		}
	})
	for _, b := range []privacy.Budget{privacy.Pure{}, privacy.Approx{Epsilon: 1, Delta: 2}} {
		if _, err := privacy.NewLedger(privacy.WithCap(b)).Release(0, privacy.Laplace{Scale: 1e9},
			one()); !errors.Is(err, privacy.ErrBudget) {
			t.Errorf("cap %v: %v", b, err)
		}
	}
	if _, err := privacy.NewLedger(privacy.WithCap(privacy.None{})).Release(0, privacy.Exact{},
		one()); err != nil {
		t.Error(err)
	}
}

// model is a ledger that remembers everything.
type model struct {
	slots map[int][]privacy.Mechanism
}

func (m *model) total() (total, sum privacy.Loss, largest float64) {
	for _, ms := range m.slots {
		var slot privacy.Loss
		for i, x := range ms {
			if x.Continual() && slices.Contains(ms[:i], x) {
				continue
			}
			slot = slot.Add(x.Loss())
			largest = max(largest, x.Loss().Pure())
		}
		total, sum = total.Max(slot), sum.Add(slot)
	}
	return total, sum, largest
}

func TestLedgerAgainstModel(t *testing.T) {
	for _, limit := range []privacy.Budget{privacy.None{}, privacy.Pure{Epsilon: 3},
		privacy.Approx{Epsilon: 4, Delta: 1e-5},
		privacy.ZCDP{Rho: 1}, privacy.GDP{Mu: 2}, privacy.Renyi{Alpha: 6.5, Epsilon: 4}} {
		t.Run(limit.String(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				l, ref := privacy.NewLedger(privacy.WithCap(limit)), &model{map[int][]privacy.Mechanism{}}
				kinds := rapid.SliceOfN(anyMechanism(), 1, 3).Draw(t, "mechanisms")
				anySlot := rapid.OneOf(rapid.IntRange(0, 6),
					rapid.SampledFrom([]int{40, 70, 100, 3000, min(1<<40, math.MaxInt), math.MaxInt}))
				for range rapid.IntRange(0, 30).Draw(t, "steps") {
					m := rapid.SampledFrom(kinds).Draw(t, "mechanism")
					at := rapid.SliceOfN(anySlot, 1, 3).Draw(t, "slots")
					would := len(at) == 1 && l.WouldExceed(at[0], m, limit)
					var err error
					switch {
					case len(at) > 1:
						v := &privacy.Values{N: make([]int, len(at)), Sum: make([]float64, len(at))}
						for i := range at {
							v.N[i], v.Sum[i] = 4, 2.5
						}
						_, err = l.ReleaseAll(at, m, v)
					case rapid.Bool().Draw(t, "record"):
						err = l.Record(at[0], m)
					default:
						_, err = l.Release(at[0], m, one())
					}
					if len(at) == 1 && would != (err != nil) {
						t.Fatalf("WouldExceed is %v, then %v", would, err)
					}
					if err == nil {
						for _, s := range at {
							ref.slots[s] = append(ref.slots[s], m)
						}
					}
				}
				total, sum, largest := ref.total()
				same(t, "total", l.Total(), total)
				below(t, "total ≤ sum", l.Total(), sum)
				if l.Total().Pure() < largest {
					t.Fatalf("total %v is below the largest release %v", l.Total(), largest)
				}
				if !l.Total().Within(limit) {
					t.Fatalf("total %v is above the cap %v", l.Total(), limit)
				}
				releases, slot := 0, -1
				for _, e := range l.Entries() {
					releases += e.Releases
					if e.Slot < slot {
						t.Fatal("entries are not in order")
					}
					slot = e.Slot
				}
				want := 0
				for s, ms := range ref.slots {
					want += len(ms)
					var x privacy.Loss
					for _, e := range l.Entries() {
						if e.Slot == s {
							x = x.Add(e.Loss)
						}
					}
					same(t, "slot", l.Slot(s), x)
				}
				if releases != want {
					t.Fatalf("%d releases in the entries, want %d", releases, want)
				}
				journal, err := json.Marshal(l)
				if err != nil {
					t.Fatal(err)
				}
				var back privacy.Ledger
				if err := json.Unmarshal(journal, &back); err != nil {
					t.Fatalf("%s: %v", journal, err)
				}
				same(t, "journal", back.Total(), total)
				again, err := json.Marshal(&back)
				if err != nil || string(again) != string(journal) {
					t.Fatalf("journal %s became %s: %v", journal, again, err)
				}
				l.Reset()
				same(t, "reset", l.Total(), privacy.Loss{})
			})
		})
	}
}

func TestEntries(t *testing.T) {
	l := privacy.NewLedger()
	release(t, l, 1, privacy.Tree{Scale: 4, Horizon: 100})
	release(t, l, 1, privacy.Tree{Scale: 4, Horizon: 100})
	release(t, l, 0, privacy.Gaussian{Sigma: 3})
	release(t, l, 0, privacy.Laplace{Scale: 5})
	release(t, l, 2, privacy.Unknown{Name: "x"})
	var got []string
	for _, e := range l.Entries() {
		got = append(got, fmt.Sprint(e.Slot, e.Mechanism, e.Sensitivity, e.Scale, e.Releases, e.Loss))
	}
	want := []string{"0 gaussian(sigma=3) 1 3 1 rho=0.05555555555555556",
		"0 laplace(scale=5) 1 5 1 epsilon=0.2",
		"1 tree(scale=4,horizon=100) 1 4 2 epsilon=1.75", `2 unknown("x") +Inf 0 1 none`}
	if !slices.Equal(got, want) {
		t.Errorf("entries are\n%q\nwant\n%q", got, want)
	}
}

func TestAJournalOverItsCapStaysAsItIs(t *testing.T) {
	const journal = `{"cap":{"epsilon":1},"entries":[{"slot":0,"mechanism":{"mechanism":"laplace","scale":1},"releases":2}]}`
	var l privacy.Ledger
	if err := json.Unmarshal([]byte(journal), &l); err != nil {
		t.Fatal(err)
	}
	if got := l.Total().Pure(); got != 2 {
		t.Errorf("total is %v", got)
	}
	if _, err := l.Release(1, privacy.Laplace{Scale: 1}, one()); !errors.Is(err, privacy.ErrBudget) {
		t.Errorf("over the cap already: %v", err)
	}
}

func TestBadJournals(t *testing.T) {
	for _, s := range []string{``, `[]`, `{"x":1}`, `{"cap":{"epsilon":-1}}`, `{"cap":3}`,
		`{"entries":[{"slot":-1,"mechanism":{"mechanism":"exact"},"releases":1}]}`,
		`{"entries":[{"slot":0,"mechanism":{"mechanism":"exact"},"releases":0}]}`,
		`{"entries":[{"slot":0,"releases":1}]}`,
		`{"entries":[{"slot":0,"mechanism":{"mechanism":"laplace"},"releases":1}]}`,
		`{"entries":[{"slot":0,"mechanism":null,"releases":1}]}`,
		`{"entries":[{"slot":1.5,"mechanism":{"mechanism":"exact"},"releases":1}]}`} {
		l := privacy.NewLedger()
		if err := json.Unmarshal([]byte(s), l); err == nil {
			t.Errorf("%s is accepted", s)
		}
	}
}

func FuzzUnmarshalLedger(f *testing.F) {
	f.Add([]byte(`{"cap":"none","entries":[]}`))
	f.Add([]byte(`{"cap":{"rho":1},"entries":[{"slot":3,"mechanism":{"mechanism":"laplace","scale":1},"releases":2},{"slot":3,"mechanism":{"mechanism":"x"},"releases":1}]}`))
	f.Add([]byte(`{"entries":[{"slot":9000000000000000000,"mechanism":{"mechanism":"tree","scale":1,"horizon":7},"releases":2}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var l, back privacy.Ledger
		if json.Unmarshal(data, &l) != nil {
			return
		}
		journal, err := json.Marshal(&l)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(journal, &back); err != nil {
			t.Fatalf("%s became %s: %v", data, journal, err)
		}
		if a, b := l.Total(), back.Total(); a.Pure() != b.Pure() || a.ZCDP() != b.ZCDP() ||
			a.Infinite() != b.Infinite() {
			t.Fatalf("%s became %s: %v, %v", data, journal, a, b)
		}
	})
}

func TestAccounts(t *testing.T) {
	l := privacy.NewLedger(privacy.WithCap(privacy.Pure{Epsilon: 1}))
	a, tree := l.Account(privacy.Laplace{Scale: 2}), l.Account(privacy.Tree{Scale: 3, Horizon: 4})
	for range 2 {
		if _, err := a.Release(0, one()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := a.Release(0, one()); !errors.Is(err, privacy.ErrBudget) {
		t.Errorf("over the cap: %v", err)
	}
	for range 3 {
		if r, err := tree.Release(1, one()); err != nil || r.Len() != 1 {
			t.Fatal(err)
		}
	}
	if _, err := tree.Release(0, one()); !errors.Is(err, privacy.ErrBudget) {
		t.Errorf("over the cap: %v", err)
	}
	if got := l.Total().Pure(); got != 1 {
		t.Errorf("total is %v", got)
	}
	// A number of an account never comes to mean another mechanism.
	for i := range 1000 {
		l.Account(privacy.Laplace{Scale: float64(i)})
	}
	l.Reset()
	l.Account(privacy.Exact{})
	l.Account(privacy.Exact{})
	if _, err := tree.Release(1, one()); err == nil {
		t.Error("an account outlived the mechanisms that Reset let go")
	}
	if err := json.Unmarshal([]byte(`{"cap":{"epsilon":1},"entries":[{"slot":1,"mechanism":{"mechanism":"exact"},"releases":1}]}`), l); err != nil {
		t.Fatal(err)
	}
	if _, err := tree.Release(1, one()); err == nil {
		t.Error("an account outlived its ledger")
	}
}

func TestReleasesDoNotAllocate(t *testing.T) {
	v := one()
	slots, all := []int{0, 1, 2}, &privacy.Values{N: make([]int, 3), Sum: make([]float64, 3)}
	m, tree := privacy.Mechanism(privacy.Laplace{Scale: 1}),
		privacy.Mechanism(privacy.Tree{Scale: 1, Horizon: 9})
	uncapped := privacy.NewLedger()
	if n := testing.AllocsPerRun(20, func() {
		uncapped.Reset()
		for slot := range 100 {
			if _, err := uncapped.Release(slot, m, v); err != nil {
				t.Fatal(err)
			}
		}
		for range 3 {
			if _, err := uncapped.Release(100, tree, v); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := uncapped.ReleaseAll(slots, m, all); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations a run", n)
	}
}

// Allow says what ReleaseAll would, and charges nothing.
func TestAllow(t *testing.T) {
	m := privacy.Laplace{Scale: 1}
	l := privacy.NewLedger(privacy.WithCap(privacy.Pure{Epsilon: 1.5}))
	one := &privacy.Values{N: []int{1}, Sum: []float64{0}}
	if err := l.Allow([]int{0, 1, 2}, m); err != nil {
		t.Error(err)
	}
	if err := l.Allow([]int{0, 0}, m); !errors.Is(err, privacy.ErrBudget) {
		t.Errorf("twice the same slot: %v", err)
	}
	if _, err := l.Release(0, m, one); err != nil {
		t.Fatal(err)
	}
	if err := l.Allow([]int{1, 0}, m); !errors.Is(err, privacy.ErrBudget) {
		t.Errorf("a slot that has spent: %v", err)
	}
	if err := l.Allow([]int{1}, m); err != nil {
		t.Error(err)
	}
	if err := l.Allow([]int{-1}, m); err == nil {
		t.Error("a negative slot is allowed")
	}
	if err := privacy.NewLedger().Allow([]int{0, 0}, m); err != nil {
		t.Error(err)
	}
	if n := len(l.Entries()); n != 1 {
		t.Errorf("%d charges, want 1", n)
	}
}

// Releases that were not drawn are counted as if they had been, for the same price; where a transcript has every one, or
// the slot has had none, there are none of these.
func TestUnreadReleases(t *testing.T) {
	tree := privacy.Tree{Scale: 2, Horizon: 100}
	for name, l := range map[string]*privacy.Ledger{"plain": privacy.NewLedger(), "transcript": privacy.NewLedger(privacy.WithTranscript(io.Discard))} {
		a := l.Account(tree)
		if a.Unread(0, 5) {
			t.Errorf("%s: a slot without a release has unread ones", name)
		}
		if _, err := a.Release(0, &privacy.Values{N: []int{1}, Sum: []float64{0.5}}); err != nil {
			t.Fatal(err)
		}
		want := 1
		if name == "plain" {
			want = 6
		}
		if counted := a.Unread(0, 5); counted != (want == 6) {
			t.Errorf("%s: counted is %v", name, counted)
		}
		if e := l.Entries(); len(e) != 1 || e[0].Releases != want || l.Total().String() != tree.Loss().String() {
			t.Errorf("%s: %+v, %v; want %d releases for %v", name, e, l.Total(), want, tree.Loss())
		}
	}
}
