package serve

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/live/serve/store"
)

// forgetfulShop forgets after two days. The clock of tests begins on the 9th of September 2001, so that decisions end on
// the 18th, three times three days later.
var forgetfulShop = strings.Replace(shop, "assignments: 1", "assignments: 3", 1) +
	"forget: 2d\nend: 2001-09-18T00:00:00Z\n"

// visits has ann come every six hours, and others once, and says what they were given, one line a visit. With rewards
// they report on all that they are given; a broken service forgets who has.
func visits(t *testing.T, rewards, twin bool, change func(e *Engine)) (told string, counted int) {
	t.Helper()
	dir := t.TempDir()
	c := newClock()
	cfg := Config{Store: store.SQLite(dir), Clock: c.Now, Outage: 20 * decl.Day}
	e := open(t, cfg)
	begin(t, e, forgetfulShop)
	change(e)
	var out strings.Builder
	tokens := map[string]bool{}
	for visit := range 48 {
		d, err := e.Decide(t.Context(), "shop", "ann")
		if err != nil {
			t.Fatal(err)
		}
		if tokens[d.Token] = true; rewards && d.Token != "" {
			if _, err := e.Reward(t.Context(), "shop", Report{d.Token, 1}); err != nil {
				t.Fatal(err)
			}
			if x := mustFind(t, e, "shop"); twin && x.play != nil {
				x.mu.Lock()
				delete(x.units, tagOf(x.tags, "ann"))
				x.mu.Unlock()
			}
		}
		fmt.Fprintln(&out, c.Now().UTC().Format("02 15h"), d.Reason, d.Expires.Unix())
		if _, err := e.Decide(t.Context(), "shop", fmt.Sprint(visit)); err != nil {
			t.Fatal(err)
		}
		settle(t, e, c, 6*time.Hour, 1)
		if visit%7 == 6 { // it knows after a restart what it knew before
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			e = open(t, cfg)
			change(e)
		}
	}
	if info, err := e.Get(t.Context(), "shop"); err != nil || info.State == Stopped &&
		len(holds(t, dir, e.tagIn(t, "shop", "ann"))) > 0 {
		t.Error("ann is in a file after the end", err)
	} else {
		fmt.Fprintln(&out, info.State)
	}
	delete(tokens, "")
	return out.String(), len(tokens)
}

// A unit is forgotten by the clock alone, whatever it reported; who comes back counts as new, and no more often than
// is paid for, also if the experiment does not end as the clock was set back.
func TestForget(t *testing.T) {
	told, n := visits(t, false, false, func(*Engine) {})
	if n != 3 {
		t.Errorf("ann was assigned %d times: %s", n, told)
	}
	if !strings.HasSuffix(told, "stopped\n") {
		t.Errorf("it has not stopped: %s", told)
	}
	again, _ := visits(t, true, false, func(*Engine) {})
	if again != told {
		t.Errorf("it goes by rewards: %s", differ(again, told))
	}
	if broken, _ := visits(t, true, true, func(*Engine) {}); broken == told {
		t.Error("a service that forgets who has reported is not caught")
	}
	if told, n := visits(t, false, false, func(e *Engine) {
		x := mustFind(t, e, "shop")
		x.mu.Lock()
		defer x.mu.Unlock()
		x.decl.End = time.Time{}
	}); n > 3 {
		t.Errorf("without its end ann was assigned %d times: %s", n, told)
	}
	c := newClock()
	e := open(t, Config{Store: store.NewMemory().Open, Clock: c.Now})
	begin(t, e, forgetfulShop)
	later := time.Date(2001, 9, 18, 0, 0, 1, 0, time.UTC)
	if err := e.Change(t.Context(), "shop", Change{End: &later}); !errors.Is(err, ErrState) ||
		!strings.Contains(err.Error(), "must be at most 2001-09-18T00:00:00Z") {
		t.Error(err)
	}
	if err := e.Change(t.Context(), "shop", Change{End: &time.Time{}}); err == nil {
		t.Error("the end is taken away")
	}
	if err := e.Create(t.Context(), parse(t, strings.NewReplacer("name: shop", "name: late", "-18T", "-20T").Replace(
		forgetfulShop))); err != nil {
		t.Fatal(err)
	}
	if err := e.Start(t.Context(), "late"); !errors.Is(err, ErrState) {
		t.Error(err)
	}
}

// The store has no unit whose time has come, and one that has no time yet is as it was.
func TestForgottenIsGone(t *testing.T) {
	dir, c := t.TempDir(), newClock()
	e := open(t, Config{Store: store.SQLite(dir), Clock: c.Now})
	begin(t, e, forgetfulShop)
	if _, err := e.Decide(t.Context(), "shop", "ann"); err != nil {
		t.Fatal(err)
	}
	settle(t, e, c, decl.Day, 1)
	bob, err := e.Decide(t.Context(), "shop", "bob")
	if err != nil {
		t.Fatal(err)
	}
	settle(t, e, c, time.Second, 1)
	ann, hers := e.tagIn(t, "shop", "bob"), e.tagIn(t, "shop", "ann")
	if len(holds(t, dir, hers)) == 0 || bytes.Equal(ann, hers) {
		t.Fatal("they are in no file before")
	}
	settle(t, e, c, 2*decl.Day, 1)
	if where := holds(t, dir, hers); len(where) > 0 {
		t.Errorf("they are in %v", where)
	}
	if again, err := e.Decide(t.Context(), "shop", "bob"); err != nil || again.Token != bob.Token {
		t.Errorf("%+v, %v", again, err)
	}
}
