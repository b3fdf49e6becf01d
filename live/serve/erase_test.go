package serve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/live/serve/store"
)

// holds says which files of a directory have a text.
func holds(t *testing.T, dir string, text []byte) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(b, text) {
			names = append(names, filepath.Base(f))
		}
	}
	return names
}

// A hoarder destroys no assignments: the broken twin.
type hoarder struct{ store.Store }

func (h hoarder) Commit(ctx context.Context, c store.Commit) error {
	for i := range c.Writes {
		c.Writes[i].DropUnits = false
	}
	return h.Store.Commit(ctx, c)
}

func (e *Engine) tagIn(t *testing.T, name, unit string) []byte {
	t.Helper()
	x, err := e.find(name)
	if err != nil {
		t.Fatal(err)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	of := tagOf(x.tags, unit)
	return of[:]
}

// erasing erases ann, among others, and says in which files something of them is left.
func erasing(t *testing.T, wrap func(store.Store) store.Store) []string {
	t.Helper()
	dir, c := t.TempDir(), newClock()
	open1 := store.SQLite(dir)
	cfg := Config{Clock: c.Now, Store: func(ctx context.Context) (store.Store, error) {
		s, err := open1(ctx)
		if err != nil {
			return nil, err
		}
		return wrap(s), nil
	}}
	e := open(t, cfg)
	begin(t, e, shop)
	tokens := map[string]Decision{}
	for i := range 300 {
		unit := fmt.Sprint(i)
		if i == 150 {
			unit = "ann"
		}
		d, err := e.Decide(t.Context(), "shop", unit)
		if err != nil {
			t.Fatal(err)
		}
		tokens[unit] = d
		if i%50 == 0 {
			settle(t, e, c, time.Second, 1)
		}
	}
	settle(t, e, c, time.Second, 1)
	if s, err := e.Reward(t.Context(), "shop", Report{tokens["ann"].Token, 1}); s != Accepted || err != nil {
		t.Fatal(s, err)
	}
	hers := e.tagIn(t, "shop", "ann")
	if len(holds(t, dir, hers)) == 0 {
		t.Fatal("they are in no file before")
	}
	before, _ := e.Get(t.Context(), "shop")
	for _, unit := range []string{"ann", "nobody", "ann"} { // one answer
		if err := e.Erase(t.Context(), "shop", unit); err != nil {
			t.Fatal(err)
		}
	}
	left := holds(t, dir, hers)
	for restart := range 2 {
		if after, _ := e.Get(t.Context(), "shop"); fmt.Sprint(after.Arms) != fmt.Sprint(before.Arms) {
			t.Errorf("counts are %v, were %v", after.Arms, before.Arms)
		}
		for _, unit := range []string{"ann", "nobody"} {
			if d, err := e.Decide(t.Context(), "shop", unit); err != nil || d.Token != "" ||
				d.Reason != Default {
				t.Errorf("restart %d: %s is assigned: %+v, %v", restart, unit, d, err)
			}
		}
		for _, unit := range []string{"0", "149", "299"} {
			if d, err := e.Decide(t.Context(), "shop", unit); err != nil || d.Token != tokens[unit].Token {
				t.Errorf("restart %d: %s has %+v, had %+v: %v", restart, unit, d, tokens[unit], err)
			}
		}
		// what they have in their hands is theirs
		if s, err := e.Reward(t.Context(), "shop", Report{tokens["ann"].Token, 0}); s != Accepted ||
			err != nil {
			t.Errorf("%v, %v", s, err)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		left = append(left, holds(t, dir, hers)...)
		e = open(t, cfg)
	}
	return left
}

// A unit that was erased is in no byte of the store, is not assigned again, also after a restart,
// and nobody else has lost anything.
func TestErase(t *testing.T) {
	if left := erasing(t, func(s store.Store) store.Store { return s }); len(left) > 0 {
		t.Errorf("their tag is in %v", left)
	}
	if left := erasing(t, func(s store.Store) store.Store { return hoarder{s} }); len(left) == 0 {
		t.Error("a store that keeps their tag is not found out")
	}
}

// An offer that an erased unit still has cannot be activated.
func TestEraseOffer(t *testing.T) {
	e := open(t, Config{Store: store.NewMemory().Open, Clock: newClock().Now})
	begin(t, e, shop+"exposure: activate\n")
	var offers []Decision
	for _, unit := range []string{"ann", "bob"} {
		d, err := e.Decide(t.Context(), "shop", unit)
		if err != nil {
			t.Fatal(err)
		}
		offers = append(offers, d)
	}
	if err := e.Erase(t.Context(), "shop", "ann"); err != nil {
		t.Fatal(err)
	}
	for i, want := range []Status{OverLimit, Accepted} {
		if s, err := e.Activate(t.Context(), "shop", offers[i].Token, true); s != want || err != nil {
			t.Errorf("%s, %v, want %s", s, err, want)
		}
	}
	x, _ := e.find("shop")
	if info, _ := e.Get(t.Context(), "shop"); info.Arms[0].Decisions+info.Arms[1].Decisions != 1 ||
		x.units[tag(e.tagIn(t, "shop", "ann"))] != (assignment{}) {
		t.Errorf("%+v", info.Arms)
	}
}

// What cannot be erased is said, and what has stopped keeps nobody.
func TestEraseStates(t *testing.T) {
	dir, c := t.TempDir(), newClock()
	cfg := Config{Store: store.SQLite(dir), Clock: c.Now}
	e := open(t, cfg)
	if err := e.Create(t.Context(), parse(t, shop)); err != nil {
		t.Fatal(err)
	}
	if err := e.Erase(t.Context(), "shop", "ann"); !errors.Is(err, ErrState) {
		t.Error(err)
	}
	if err := e.Erase(t.Context(), "none", "ann"); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	for _, unit := range []string{"", strings.Repeat("u", maxUnit+1)} {
		if err := e.Erase(t.Context(), "shop", unit); !errors.Is(err, ErrUnit) {
			t.Error(err)
		}
	}
	if err := e.Start(t.Context(), "shop"); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Decide(t.Context(), "shop", "ann"); err != nil {
		t.Fatal(err)
	}
	settle(t, e, c, time.Second, 1)
	hers := e.tagIn(t, "shop", "ann")
	for _, do := range []func() error{func() error { return e.StopNow(t.Context(), "shop", "", "shop") }, e.Close} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
	if len(holds(t, dir, hers)) == 0 {
		t.Fatal("they are in no file before")
	}
	e = open(t, cfg)
	if err := e.Erase(t.Context(), "shop", "bob"); err != nil {
		t.Fatal(err)
	}
	if left := holds(t, dir, hers); len(left) > 0 {
		t.Errorf("their tag is in %v", left)
	}
	if err := e.Archive(t.Context(), "shop"); err != nil {
		t.Fatal(err)
	}
	if err := e.Erase(t.Context(), "shop", "ann"); err != nil {
		t.Error(err)
	}
}

// When its retention has passed since it stopped, also over a restart, an experiment is archived,
// once, and the journal says so.
func TestRetention(t *testing.T) {
	dir, c := t.TempDir(), newClock()
	cfg := Config{Store: store.SQLite(dir), Clock: c.Now}
	e := open(t, cfg)
	begin(t, e, shop+"retention: 720h\n")
	if _, err := e.Decide(t.Context(), "shop", "ann"); err != nil {
		t.Fatal(err)
	}
	settle(t, e, c, 800*time.Hour, 1)
	hers := e.tagIn(t, "shop", "ann")
	if err := e.StopNow(t.Context(), "shop", "", "shop"); err != nil {
		t.Fatal(err)
	}
	settle(t, e, c, 720*time.Hour-time.Millisecond, 1)
	if info, _ := e.Get(t.Context(), "shop"); info.State != Stopped || len(holds(t, dir, hers)) == 0 {
		t.Errorf("%s before its time", info.State)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e = open(t, cfg)
	settle(t, e, c, time.Millisecond, 3)
	if info, _ := e.Get(t.Context(), "shop"); info.State != Archived {
		t.Errorf("it is %s", info.State)
	}
	if left := holds(t, dir, hers); len(left) > 0 {
		t.Errorf("their tag is in %v", left)
	}
	lines, err := e.Audit(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range lines {
		n += strings.Count(string(line),
			`"by":"the program","did":"archive","experiment":"shop","with":"its retention has passed"`)
	}
	if n != 1 {
		t.Errorf("the journal has it %d times", n)
	}
}

// Of an archived experiment nothing of its units is left in memory, and the file gives their room back without
// anybody writing, while another experiment goes on.
func TestArchiveGivesBack(t *testing.T) {
	dir := t.TempDir()
	e := open(t, Config{Store: store.SQLite(dir)})
	begin(t, e, shop)
	begin(t, e, strings.Replace(shop, "name: shop", "name: other", 1))
	for i := range 60_000 {
		if _, err := e.Decide(t.Context(), "shop", fmt.Sprint("unit ", i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(e.StopNow(t.Context(), "shop", "red", "shop"), e.Archive(t.Context(), "shop")); err != nil {
		t.Fatal(err)
	}
	size := func() int64 {
		info, err := os.Stat(filepath.Join(dir, "sotto.db"))
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	for end := time.Now().Add(time.Minute); size() > 2<<20; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the file has %d bytes", size())
		}
	}
	d, err := e.Decide(t.Context(), "other", "ann")
	if err != nil {
		t.Fatal(err)
	}
	if s, err := e.Reward(t.Context(), "other", Report{d.Token, 1}); s != Accepted || err != nil {
		t.Error(s, err)
	}
	x := mustFind(t, e, "shop")
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.units != nil || x.epochs != nil || x.parts != nil || x.known != nil {
		t.Error("something of the units is kept")
	}
}

// Marks of who was erased have one epoch, the experiment's first, however often it was restored.
func TestMarksHaveTheFirstEpoch(t *testing.T) {
	c, disk := newClock(), store.NewMemory()
	e := open(t, Config{Store: disk.Open, Clock: c.Now})
	begin(t, e, shop)
	first := mustFind(t, e, "shop").epochs[0]
	for i := range 12 {
		for _, unit := range []string{"ann", "bob", "eve"} {
			if _, err := e.Decide(t.Context(), "shop", fmt.Sprint(unit, i)); err != nil {
				t.Fatal(err)
			}
		}
		unit := fmt.Sprint("ann", i)
		if err := e.Erase(t.Context(), "shop", unit); err != nil {
			t.Fatal(err)
		}
		x := mustFind(t, e, "shop")
		if at := x.epochs[x.units[x.stone(tagOf(x.tags, unit))].epoch]; at != first {
			t.Fatalf("%s has the epoch %x, must be the first, %x", unit, at, first)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		e = open(t, Config{Store: disk.Open, Clock: c.Now})
	}
}
