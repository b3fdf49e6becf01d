package aggregate_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/sotto-dp/sotto/live/aggregate"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/secagg"
)

func charge(batch uint64, id byte, m privacy.Mechanism) aggregate.Charge {
	return aggregate.ChargeOf(secagg.Session{ID: [32]byte{id}, Experiment: "doses", Arm: 1, Batch: batch}, m)
}

// A reward leaves once, whatever the session and however often the process starts.
func TestJournal(t *testing.T) {
	m := mechanism(t, 5, 4)
	dir := filepath.Join(t.TempDir(), "used")
	open := func() aggregate.Journal { return aggregate.Journal{Dir: dir, Together: true} }
	if err := open().Allow(charge(1, 1, m)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("Allow has written: %v", err)
	}
	if err := open().Spend(charge(1, 1, m)); err != nil {
		t.Fatal(err)
	}
	for id := range byte(20) {
		for _, err := range []error{open().Allow(charge(1, id, m)), open().Spend(charge(1, id, m))} {
			if !errors.Is(err, aggregate.ErrSpent) || !errors.Is(err, secagg.ErrReplay) {
				t.Errorf("session %d: %v, want %v", id, err, aggregate.ErrSpent)
			}
		}
	}
	if err := open().Spend(charge(2, 1, m)); err != nil {
		t.Error(err)
	}
	s, err := open().Spent()
	if e := m.Loss().Pure(); err != nil || s.Charges != 2 || s.Reward.Pure() != e ||
		math.Abs(s.Together.Pure()-2*e) > 1e-12 {
		t.Errorf("%+v, %v", s, err)
	}
	// Noise that is not known has no bound.
	if err := open().Spend(charge(3, 1, nil)); err != nil {
		t.Error(err)
	}
	if s, err = open().Spent(); err != nil || !math.IsInf(s.Reward.Pure(), 1) {
		t.Errorf("%+v, %v", s, err)
	}
}

// The cap holds for all together, or for each batch; and for many who charge at once.
func TestJournalCap(t *testing.T) {
	m := mechanism(t, 5, 4)
	e := m.Loss().Pure()
	for _, c := range []struct {
		together bool
		cap      float64
		want     int
	}{{true, 3.5 * e, 3}, {true, 0.5 * e, 0}, {false, e, 16}, {false, 0.5 * e, 0}} {
		j := aggregate.Journal{Dir: t.TempDir(), Together: c.together, Cap: privacy.Pure{Epsilon: c.cap}}
		var group sync.WaitGroup
		var mu sync.Mutex
		got := 0
		for i := range uint64(16) {
			group.Go(func() {
				switch err := j.Spend(charge(i, 1, m)); {
				case err == nil:
					mu.Lock()
					got++
					mu.Unlock()
				case !errors.Is(err, privacy.ErrBudget):
					t.Error(err)
				}
			})
		}
		group.Wait()
		if s, err := j.Spent(); got != c.want || err != nil || s.Charges != got {
			t.Errorf("%+v: %d charges, %+v, %v", c, got, s, err)
		}
	}
	// Of one batch, one.
	j := aggregate.Journal{Dir: t.TempDir()}
	var group sync.WaitGroup
	errs := make([]error, 16)
	for i := range errs {
		group.Go(func() { errs[i] = j.Spend(charge(7, byte(i), m)) })
	}
	group.Wait()
	if n := strings.Count(fmt.Sprint(errs), "spent before"); n != 15 {
		t.Errorf("%d of 16 refused: %v", n, errs)
	}
}

// What is missing or garbled is no reason to send again.
func TestJournalBroken(t *testing.T) {
	m := mechanism(t, 5, 4)
	for name, spoil := range map[string]func(dir string) error{
		"missing": func(dir string) error { return os.Remove(filepath.Join(dir, "00000001.json")) },
		"empty": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "00000001.json"), nil, 0o600)
		},
		"garbage": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "00000001.json"), []byte("{}"), 0o600)
		},
		"unknown": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "00000001.json"), []byte(`{"x":1}`), 0o600)
		},
		"no place": func(dir string) error {
			return errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o600))
		},
	} {
		j := aggregate.Journal{Dir: filepath.Join(t.TempDir(), "used")}
		for batch := range uint64(2) {
			if err := j.Spend(charge(batch, 1, m)); err != nil {
				t.Fatal(err)
			}
		}
		if err := spoil(j.Dir); err != nil {
			t.Fatal(err)
		}
		if err := j.Spend(charge(9, 1, m)); err == nil || errors.Is(err, aggregate.ErrSpent) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := j.Spent(); err == nil {
			t.Errorf("%s: what was spent is known", name)
		}
	}
}

// What would be read back as another charge is not written down: it could be made again and again,
// or nothing after it.
func TestJournalRefusesWhatItCannotKeep(t *testing.T) {
	j := aggregate.Journal{Dir: filepath.Join(t.TempDir(), "a", "used")}
	bad := charge(1, 1, nil)
	bad.Experiment = "doses\xff"
	for what, c := range map[string]aggregate.Charge{"no UTF-8": bad,
		"no noise": charge(1, 1, privacy.Laplace{Scale: -1})} {
		for range 2 {
			if err := j.Spend(c); err == nil || errors.Is(err, aggregate.ErrSpent) {
				t.Errorf("%s: %v", what, err)
			}
			if err := j.Allow(c); err == nil {
				t.Errorf("%s is allowed", what)
			}
		}
	}
	if _, err := os.Stat(j.Dir); !os.IsNotExist(err) {
		t.Errorf("something was written: %v", err)
	}
	odd := charge(1, 1, nil)
	odd.Experiment = "<doses>&\u2028\x00é"
	if err := j.Spend(odd); err != nil {
		t.Fatal(err)
	}
	if err := j.Spend(odd); !errors.Is(err, aggregate.ErrSpent) {
		t.Error(err)
	}
	for dir := j.Dir; dir != filepath.Dir(filepath.Dir(j.Dir)); dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: mode %v, %v", dir, info.Mode(), err)
		}
	}
}

// A cap that is a pointer is none of the ledger's budgets, and allows nothing.
func TestJournalWithAPointerForACap(t *testing.T) {
	j := aggregate.Journal{Dir: t.TempDir(), Together: true, Cap: &privacy.Pure{Epsilon: 1}}
	if err := j.Spend(charge(1, 1, mechanism(t, 5, 4))); !errors.Is(err, privacy.ErrBudget) {
		t.Error(err)
	}
}

func FuzzJournal(f *testing.F) {
	j := aggregate.Journal{Dir: f.TempDir()}
	if err := j.Spend(charge(1, 1, mechanism(f, 5, 4))); err != nil {
		f.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(j.Dir, "00000001.json"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{"experiment":"","session":"","mechanism":null}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		j := aggregate.Journal{Dir: t.TempDir()}
		if err := os.WriteFile(filepath.Join(j.Dir, "00000001.json"), b, 0o600); err != nil {
			t.Fatal(err)
		}
		if s, err := j.Spent(); err == nil && s.Charges != 1 {
			t.Errorf("%+v", s)
		}
	})
}
