package serve

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/live/serve/store"
)

var errDisk = errors.New("no space left on the device")

// A process whose store was taken over answers nothing more, also if it has nothing to write: neither
// decisions, which would be void, nor what it knows of transcripts, and says so.
func TestSuperseded(t *testing.T) {
	for name, st := range map[string]func(context.Context) (store.Store, error){
		"memory": store.NewMemory().Open, "sqlite": store.SQLite(t.TempDir()),
	} {
		c := newClock()
		first := open(t, Config{Store: st, Clock: c.Now})
		begin(t, first, shop)
		if err := first.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		second := open(t, Config{Store: st, Clock: c.Now})
		select {
		case <-first.Superseded():
		case <-time.After(30 * time.Second):
			t.Fatalf("%s: it does not see that it was taken over", name)
		}
		if err := first.Ready(); !errors.Is(err, ErrUnavailable) || !errors.Is(err, store.ErrFenced) {
			t.Errorf("%s: it is ready: %v", name, err)
		}
		if here, address, _ := first.Where(); here || address != "" {
			t.Errorf("%s: it says that %q answers, or it", name, address)
		}
		for what, do := range map[string]func() error{
			"decide":     func() error { _, err := first.Decide(t.Context(), "shop", "ann"); return err },
			"transcript": func() error { _, err := first.Transcript(t.Context(), "shop"); return err },
			"get":        func() error { _, err := first.Get(t.Context(), "shop"); return err },
			"stop":       func() error { return first.Stop(t.Context(), "shop", "") },
			"create":     func() error { return first.Create(t.Context(), parse(t, shop)) },
		} {
			if err := do(); !errors.Is(err, ErrUnavailable) {
				t.Errorf("%s: %s: %v", name, what, err)
			}
		}
		if err := first.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := second.Decide(t.Context(), "shop", "ann"); err != nil {
			t.Errorf("%s: who took over: %v", name, err)
		}
	}
}

// A clock that goes back shortens no window, also over a restart; one that jumps ahead closes
// nothing twice.
func TestClockJumps(t *testing.T) {
	c, mem := newClock(), store.NewMemory()
	cfg := Config{Store: mem.Open, Clock: c.Now}
	e := open(t, cfg)
	begin(t, e, strings.Replace(shop, "floor: 0.1", "sticky: false", 1))
	decide := func() Decision {
		t.Helper()
		d, err := e.Decide(t.Context(), "shop", "")
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	say := func(d Decision) Status {
		t.Helper()
		s, err := e.Reward(t.Context(), "shop", Report{d.Token, 1})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	d := decide()
	c.Add(-time.Hour)
	again := decide()
	if again.Expires.Before(d.Expires) {
		t.Errorf("expires %v, before %v", again.Expires, d.Expires)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e = open(t, cfg) // the wall clock is an hour behind what is stored
	if now := time.UnixMilli(e.now()); now.Before(d.Expires.Add(-time.Minute)) {
		t.Errorf("after a restart it is %v", now)
	}
	c.Add(59 * time.Second)
	if s := say(again); s != Accepted {
		t.Errorf("within its window: %v", s)
	}
	c.Add(2 * time.Second)
	if s := say(again); s != Late {
		t.Errorf("after its window: %v", s)
	}
	for range 60 {
		decide()
	}
	settle(t, e, c, 24*time.Hour, 3)
	info, _ := e.Get(t.Context(), "shop")
	if n := info.Arms[0].Released + info.Arms[1].Released; info.Batches == 0 || n > 62 {
		t.Errorf("%d batches of %d decisions", info.Batches, n)
	}
	c.Add(-25 * time.Hour)
	settle(t, e, c, time.Second, 3)
	if after, _ := e.Get(t.Context(), "shop"); after.Batches != info.Batches {
		t.Errorf("%d batches, then %d", info.Batches, after.Batches)
	}
}

// An experiment whose database was replaced by an older one can be read and stopped, and no more,
// also after another restart.
func TestOlderDatabase(t *testing.T) {
	t.Parallel()
	dir, c := t.TempDir(), newClock()
	cfg := Config{Store: store.SQLite(dir), Clock: c.Now}
	e := open(t, cfg)
	begin(t, e, shop)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "sotto.db")
	backup, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	e = open(t, cfg)
	d, err := e.Decide(t.Context(), "shop", "ann")
	if err != nil {
		t.Fatal(err)
	}
	if s, err := e.Reward(t.Context(), "shop", Report{d.Token, 1}); err != nil || s != Accepted {
		t.Fatal(s, err)
	}
	if _, err := e.Reward(t.Context(), "shop", Report{d.Token, 1}); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, backup, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		e = open(t, cfg)
		info, err := e.Get(t.Context(), "shop")
		if err != nil || info.State != Failed || !strings.Contains(info.Reason, "gone back") {
			t.Fatalf("%+v, %v", info, err)
		}
		if d, err := e.Decide(t.Context(), "shop", "ann"); err != nil || d.Reason != Disabled || d.Token != "" {
			t.Errorf("it decides %+v, %v", d, err)
		}
		if err := e.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	e = open(t, cfg)
	if err := e.Stop(t.Context(), "shop", "blue"); err != nil {
		t.Error(err)
	}
}

// A unit is assigned as often as it may be, and no more.
func TestAssignments(t *testing.T) {
	c := newClock()
	e := open(t, Config{Store: store.NewMemory().Open, Clock: c.Now})
	begin(t, e, strings.NewReplacer("assignments: 1", "assignments: 2", "floor: 0.1",
		"sticky: false").Replace(shop))
	begin(t, e, strings.NewReplacer("assignments: 1", "assignments: 2", "name: shop",
		"name: sticky").Replace(shop))
	tokens := map[string]bool{}
	for i := range 4 {
		d, err := e.Decide(t.Context(), "shop", "ann")
		if err != nil || tokens[d.Token] && i < 3 || (d.Reason == Limit) != (i > 1) {
			t.Errorf("assignment %d: %+v, %v", i, d, err)
		}
		tokens[d.Token] = true
		want := Accepted
		if i > 1 {
			want = OverLimit
		}
		if s, err := e.Reward(t.Context(), "shop", Report{d.Token, 1}); s != want || err != nil {
			t.Errorf("assignment %d: %v, %v", i, s, err)
		}
	}
	clear(tokens)
	for range 5 {
		for range 2 {
			d, err := e.Decide(t.Context(), "sticky", "ann")
			if err != nil || d.Reason != Split {
				t.Errorf("%+v, %v", d, err)
			}
			tokens[d.Token] = true
		}
		c.Add(time.Minute)
	}
	if len(tokens) != 2 {
		t.Errorf("a sticky unit had %d assignments", len(tokens))
	}
}

// Tokens that are not this experiment's are errors, whatever is wrong with them.
func TestTokens(t *testing.T) {
	c := newClock()
	e := open(t, Config{Store: store.NewMemory().Open, Clock: c.Now})
	begin(t, e, shop)
	begin(t, e, strings.Replace(shop, "name: shop", "name: other", 1))
	d, err := e.Decide(t.Context(), "shop", "ann")
	if err != nil {
		t.Fatal(err)
	}
	bad := []string{"", "x", strings.Repeat("A", 58), strings.Repeat("A", 1<<20), d.Token + "A",
		d.Token[:57] + "\n"}
	for i := range d.Token {
		b := []byte(d.Token)
		b[i] ^= 1
		bad = append(bad, string(b))
	}
	for _, token := range bad {
		if s, err := e.Reward(t.Context(), "shop", Report{token, 1}); !errors.Is(err, ErrToken) {
			t.Errorf("%.80q: %v, %v", token, s, err)
		}
	}
	if s, err := e.Reward(t.Context(), "other", Report{d.Token, 1}); !errors.Is(err, ErrToken) {
		t.Errorf("of another experiment: %v, %v", s, err)
	}
	if _, err := e.Reward(t.Context(), "none", Report{d.Token, 1}); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	out, err := e.Rewards(t.Context(), "shop", []Report{{"x", 1}, {d.Token, 1}, {d.Token, 0}})
	if err != nil || !errors.Is(out[0].Err, ErrToken) || out[1].Status != Accepted ||
		out[2].Status != Accepted {
		t.Errorf("%+v, %v", out, err)
	}
	for _, unit := range []string{"", strings.Repeat("u", 1<<20)} {
		if d, err := e.Decide(t.Context(), "shop", unit); !errors.Is(err, ErrUnit) || len(err.Error()) > 200 {
			t.Errorf("%+v, %v", d, err)
		}
	}
	c.Add(time.Minute)
	if s, err := e.Reward(t.Context(), "shop", Report{d.Token, 1}); s != Late || err != nil {
		t.Errorf("%v, %v", s, err)
	}
}

// An arm that is taken off is given to nobody, by the policy or the floor, also after a restart;
// the other arms go on, and its rewards are taken, and wait for the end.
func TestTakeOff(t *testing.T) {
	c, cfg := newClock(), Config{Store: store.NewMemory().Open}
	cfg.Clock = c.Now
	e := open(t, cfg)
	begin(t, e, strings.NewReplacer("arms: [", "arms: [green, ", "floor: 0.1",
		"floor: 0.5\nsticky: false").Replace(shop))
	var last Decision
	for range 30 {
		d, err := e.Decide(t.Context(), "shop", "")
		if err != nil {
			t.Fatal(err)
		}
		if d.Name == "red" {
			last = d
		}
	}
	if err := e.TakeOff(t.Context(), "shop", "pink"); !errors.Is(err, ErrState) {
		t.Error(err)
	}
	if err := e.TakeOff(t.Context(), "shop", "red"); err != nil {
		t.Fatal(err)
	}
	if err := e.TakeOff(t.Context(), "shop", "red"); !errors.Is(err, ErrState) {
		t.Error(err)
	}
	if err := e.Close(); err != nil { // it was promised, and is done after a restart
		t.Fatal(err)
	}
	e = open(t, cfg)
	settle(t, e, c, time.Second, 3)
	for restart := range 2 {
		for range 100 {
			d, err := e.Decide(t.Context(), "shop", "")
			if err != nil || d.Name == "red" || d.Propensity != 0.25 && d.Propensity != 0.75 {
				t.Fatalf("restart %d: %+v, %v", restart, d, err)
			}
		}
		want := []Status{Accepted, Late}[restart] // its window is as it was
		if s, err := e.Reward(t.Context(), "shop", Report{last.Token, 1}); s != want || err != nil {
			t.Errorf("a decision of the arm: %v, %v", s, err)
		}
		settle(t, e, c, 10*time.Second, 10)
		info, err := e.Get(t.Context(), "shop")
		if err != nil || info.Arms[1].Released != 0 || !info.Arms[1].Off || info.Arms[0].Released == 0 {
			t.Errorf("%+v, %v", info.Arms, err)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		e = open(t, cfg)
	}
	if err := e.TakeOff(t.Context(), "shop", "blue"); err != nil {
		t.Error(err)
	}
	if err := e.TakeOff(t.Context(), "shop", "green"); !errors.Is(err, ErrState) {
		t.Errorf("the last arm is taken off: %v", err)
	}
	for _, gone := range []string{"red", "blue"} { // blue will be, at the next tick
		if err := e.Stop(t.Context(), "shop", gone); err == nil || !strings.Contains(err.Error(), "off for good") {
			t.Errorf("%s is kept: %v", gone, err)
		}
	}
	info := stopped(t, e, c, "shop", "leader")
	if arm := info.Arms[1]; arm.Released != arm.Decisions || arm.Released == 0 || info.Keep != 0 {
		t.Errorf("when it has stopped: %+v, %+v", info.Keep, info.Arms)
	}
}
