package serve

import (
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/internal/clock"
	"github.com/sotto-dp/sotto/live/serve/store"
)

// A logged text is what many write.
type logged struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

const (
	day  = 24 * time.Hour
	year = 365 * day
)

// dated is an experiment with an end a month after from, and one that has stopped and is archived after
// a day, on a store that is closed again.
func dated(t *testing.T, from time.Time) (*store.Memory, Decision) {
	t.Helper()
	mem, c := store.NewMemory(), clock.At(from)
	e := open(t, Config{Store: mem.Open, wall: c.Now})
	begin(t, e, shop+"end: "+from.Add(30*day).Format(time.RFC3339)+"\n")
	begin(t, e, strings.Replace(shop, "name: shop", "name: old\nretention: 24h", 1))
	d, err := e.Decide(t.Context(), "shop", "ann")
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Stop(t.Context(), "old", ""); err != nil {
		t.Fatal(err)
	}
	if e.Drifted() {
		t.Errorf("a new store's time is off by %v", e.Drift())
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	return mem, d
}

// A process that has only followed, and was asked, believes its own clock no more than one that was not.
func TestClockOfFollower(t *testing.T) {
	from := time.Now()
	c := clock.At(from.Add(year))
	e := &Engine{cfg: Config{Clock: time.Now, wall: c.Now, Outage: agree}}
	e.clock.own, e.clock.from = true, from
	e.clock.base.Store(c.Now().UnixMilli())
	_ = e.latest()
	e.catchUp(store.Opened{Now: from.UnixMilli(), Clock: from.UnixMilli()})
	if ahead := time.UnixMilli(e.now()).Sub(from); ahead > day {
		t.Errorf("it is %v ahead of the store and of its server", ahead)
	}
}

// lives fails unless nothing that cannot be taken back was done to what dated made.
func lives(t *testing.T, e *Engine) {
	t.Helper()
	if err := e.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]State{"shop": Running, "old": Stopped} {
		if info, err := e.Get(t.Context(), name); err != nil || info.State != want {
			t.Errorf("%s is %s, must be %s: %v", name, info.State, want, err)
		}
	}
}

// A clock that is a year ahead at a start is not believed: time goes on from the last commit, so that
// nothing ends or is destroyed, no window closes, and none is given that closes in a year. It is said
// once; when the clock is mended, or an operator confirms it, all goes on.
func TestClockAhead(t *testing.T) {
	from := time.UnixMilli(1_600_000_000_000).UTC()
	mem, d := dated(t, from)
	c := clock.At(from)
	before := open(t, Config{Store: mem.Open, wall: c.Now})
	secret, _, err := before.NewKey(t.Context(), "reader", ScopeRead)
	if err != nil {
		t.Fatal(err)
	}
	session, _ := before.Session(secret)
	if err := before.Close(); err != nil {
		t.Fatal(err)
	}
	c.Add(year)
	var log logged
	cfg := Config{Store: mem.Open, wall: c.Now, Log: slog.New(slog.NewTextHandler(&log, nil))}
	e := open(t, cfg)
	lives(t, e)
	if late, err := e.Decide(t.Context(), "shop", "ben"); err != nil || late.Expires.After(from.Add(time.Hour)) {
		t.Errorf("a decision expires %v, a year ahead: %v", late.Expires, err)
	}
	if s, err := e.Reward(t.Context(), "shop", Report{d.Token, 1}); s != Accepted || err != nil {
		t.Errorf("a reward within its window: %s, %v", s, err)
	}
	if anew, _ := e.Session(secret); e.Visitor(session).Scopes != 0 || e.Visitor(anew).Scopes != ScopeRead {
		t.Error("a session of a year ago is good, or a new one is not")
	}
	if n := strings.Count(log.String(), "level=ERROR"); !e.Drifted() || e.Drift() > -364*day || n != 1 ||
		!strings.Contains(log.String(), "--longest-outage") {
		t.Errorf("off by %v, it says %s", e.Drift(), &log)
	}
	c.Add(time.Minute - year) // NTP has come
	lives(t, e)
	if e.Drifted() || !strings.Contains(log.String(), "agree again") {
		t.Errorf("off by %v, it says %s", e.Drift(), &log)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}

	c.Add(20 * day) // of a true outage, which is said
	cfg.Outage = 21 * day
	e = open(t, cfg)
	if e.Drifted() {
		t.Errorf("an outage that was confirmed is not believed: off by %v", e.Drift())
	}
	if s, err := e.Reward(t.Context(), "shop", Report{d.Token, 1}); s != Late || err != nil {
		t.Errorf("a reward after its window: %s, %v", s, err)
	}
	if err := e.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if info, err := e.Get(t.Context(), "old"); err != nil || info.State != Archived {
		t.Errorf("what was to be archived is %s: %v", info.State, err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}

	c.Add(20 * day)
	e = open(t, cfg)
	var info Info
	within(t, 10*time.Second, "its end", func() bool { // its windows have passed, and what is left comes with ticks
		if err := e.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		info, err = e.Get(t.Context(), "shop")
		return err != nil || info.State != Stopping
	})
	if err != nil || info.State != Stopped || info.Why != "date" {
		t.Errorf("after its end it is %s: %v", info.State, err)
	}
}

// A store that has seen a clock a year ahead stays there, since a time that goes back would give windows
// of a year. It is said, and nothing ends or is destroyed before the clock has come to it as well.
func TestStoreAhead(t *testing.T) {
	from := time.UnixMilli(1_600_000_000_000).UTC()
	mem, _ := dated(t, from)
	st, err := mem.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.Begin(t.Context(), "the clock of before"); err != nil {
		t.Fatal(err)
	}
	if err := st.Commit(t.Context(), store.Commit{Now: from.Add(year).UnixMilli()}); err != nil {
		t.Fatal(err)
	}
	c := clock.At(from.Add(time.Minute))
	var log logged
	e := open(t, Config{Store: mem.Open, wall: c.Now, Log: slog.New(slog.NewTextHandler(&log, nil))})
	lives(t, e)
	if n := strings.Count(log.String(), "level=ERROR"); e.Drift() < 364*day || n != 1 {
		t.Errorf("off by %v, it says %s", e.Drift(), &log)
	}
	c.Add(31 * day)
	if err := e.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	within(t, 10*time.Second, "its end", func() bool { // which comes with public ticks
		if err := e.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		info, err := e.Get(t.Context(), "shop")
		return err != nil || info.State == Stopped
	})
	for name, want := range map[string]State{"shop": Stopped, "old": Archived} {
		if info, err := e.Get(t.Context(), name); err != nil || info.State != want {
			t.Errorf("%s is %s, must be %s: %v", name, info.State, want, err)
		}
	}
}
