package serve

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/live/serve/store"
)

// A rule whose last release is durable, and which is killed before the public tick that shows it,
// has stopped when it comes back, with the answer of the transcript.
func TestStoppedByItsLastLine(t *testing.T) {
	c, mem := newClock(), store.NewMemory()
	cfg := Config{Store: mem.Open, Clock: c.Now}
	e := open(t, cfg)
	begin(t, e, strings.NewReplacer("{policy: dp-klucb, first: 20}", "dp-se", "floor: 0.1", "risk: 0.05",
		"unit: {of: person, assignments: 1}", "unit: {of: visit}\nsticky: false").Replace(shop))
	var info Info
	for range 4000 {
		var reports []Report
		for range 50 {
			d, err := e.Decide(t.Context(), "shop", "")
			if err != nil {
				t.Fatal(err)
			}
			if d.Arm == 1 && d.Token != "" {
				reports = append(reports, Report{d.Token, 1})
			}
		}
		if _, err := e.Rewards(t.Context(), "shop", reports); err != nil {
			t.Fatal(err)
		}
		settle(t, e, c, time.Minute, 1)
		if err := e.Close(); err != nil { // at every tick, so also after the last release
			t.Fatal(err)
		}
		e = open(t, cfg)
		settle(t, e, c, time.Second, 1)
		if info, _ = e.Get(t.Context(), "shop"); info.State == Stopped || info.State == Failed {
			break
		}
	}
	if info.State != Stopped || info.Keep != 1 || info.Reason != "" {
		t.Fatalf("it is %s, keeps %d: %s", info.State, info.Keep, info.Reason)
	}
}

// Two who create an experiment of one name in one transaction: one of them is told that it is
// there, and nothing else happens to anybody.
func TestCreateAtOnce(t *testing.T) {
	var opened, blocked atomic.Int32
	entered, free := make(chan struct{}), make(chan struct{})
	disk := store.SQLite(t.TempDir())
	e := open(t, Config{
		Store: func(ctx context.Context) (store.Store, error) {
			opened.Add(1)
			return disk(ctx)
		},
		hook: func(at string) {
			if at == "before a commit" && blocked.Add(1) == 1 {
				close(entered)
				<-free
			}
		},
	})
	errs := make(chan error, 3)
	create := func(name string) {
		x := parse(t, shop)
		x.Name = name
		go func() { errs <- e.Create(t.Context(), x) }()
	}
	create("first")
	<-entered
	create("shop")
	create("shop")
	for n := 0; n < 2; time.Sleep(time.Millisecond) {
		e.queue.Lock()
		n = len(e.queue.jobs)
		e.queue.Unlock()
	}
	close(free)
	made, there := 0, 0
	for range 3 {
		switch err := <-errs; {
		case err == nil:
			made++
		case errors.Is(err, ErrExists):
			there++
		default:
			t.Error(err)
		}
	}
	if made != 2 || there != 1 || opened.Load() != 1 {
		t.Errorf("%d were made, %d were there, the store was opened %d times", made, there, opened.Load())
	}
}

// An arm that is taken off is given to nobody: not to its units, nor as the fallback, while the
// experiment runs, is paused, or has stopped. A unit with assignments left has another arm.
func TestOffIsGivenToNobody(t *testing.T) {
	for assignments, reason := range map[string]Reason{"assignments: 1": Limit, "assignments: 2": Split} {
		c := newClock()
		e := open(t, Config{Store: store.NewMemory().Open, Clock: c.Now})
		begin(t, e, strings.Replace(shop, "assignments: 1", assignments, 1))
		was := map[string]string{}
		ask := func(want Reason) {
			t.Helper()
			for i := range 20 {
				unit := fmt.Sprint(i)
				d, err := e.Decide(t.Context(), "shop", unit)
				if was[unit] == "" {
					was[unit] = d.Name
				} else if err != nil || d.Name == "red" || was[unit] == "red" && d.Reason != want {
					t.Fatalf("%s: %s was %s, and is %+v, %v", assignments, unit, was[unit], d, err)
				}
			}
		}
		ask(Split)
		if err := e.TakeOff(t.Context(), "shop", "red"); err != nil {
			t.Fatal(err)
		}
		settle(t, e, c, time.Second, 3)
		ask(reason)
		if err := e.Pause(t.Context(), "shop"); err != nil {
			t.Fatal(err)
		}
		if d, err := e.Decide(t.Context(), "shop", "new"); err != nil || d.Name != "blue" {
			t.Errorf("%+v, %v", d, err)
		}
		if err := e.Stop(t.Context(), "shop", ""); err != nil {
			t.Fatal(err)
		}
		if d, err := e.Decide(t.Context(), "shop", "newer"); err != nil || d.Name != "blue" || d.Reason != Static {
			t.Errorf("stopping: %+v, %v", d, err)
		}
		ask(map[Reason]Reason{Limit: Static, Split: Split}[reason])
		if err := e.StopNow(t.Context(), "shop", "", "shop"); err != nil {
			t.Fatal(err)
		}
		ask(Static)
	}
}

// What is asked of an experiment is done to the one that is there, also if the store was taken over
// between the asking and the doing.
func TestActOnTheCurrent(t *testing.T) {
	var full atomic.Bool
	mem := store.NewMemory()
	e := open(t, Config{Store: func(ctx context.Context) (store.Store, error) {
		s, err := mem.Open(ctx)
		return sick{s, &full}, err
	}})
	begin(t, e, shop)
	stale, err := e.find("shop")
	if err != nil {
		t.Fatal(err)
	}
	full.Store(true)
	if err := e.Pause(t.Context(), "shop"); !errors.Is(err, ErrUnavailable) {
		t.Fatal(err)
	}
	full.Store(false)
	for deadline := time.Now().Add(10 * time.Second); e.Ready() != nil; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not come back")
		}
	}
	if err := e.actOn(t.Context(), stale, Entry{}, func(x *served, _ int64) error {
		return x.move(Paused, Running)
	}); err != nil {
		t.Fatal(err)
	}
	if info, err := e.Get(t.Context(), "shop"); err != nil || info.State != Paused {
		t.Errorf("who asked was told that it is done, and it is %s, %v", info.State, err)
	}
}

// A sick store fails its commits while it is told to.
type sick struct {
	store.Store
	full *atomic.Bool
}

func (s sick) Commit(ctx context.Context, c store.Commit) error {
	if s.full.Load() {
		return errDisk
	}
	return s.Store.Commit(ctx, c)
}

// A draft that comes back from an older database may have run since, with the same people: it does
// not start.
func TestOlderDraft(t *testing.T) {
	dir, c := t.TempDir(), newClock()
	var older atomic.Bool
	disk := store.SQLite(dir)
	cfg := Config{Clock: c.Now, Store: func(ctx context.Context) (store.Store, error) {
		s, err := disk(ctx)
		return aged{s, &older}, err
	}}
	e := open(t, cfg)
	if err := e.Create(t.Context(), parse(t, shop)); err != nil {
		t.Fatal(err)
	}
	for _, back := range []bool{true, false} { // and it stays so
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		older.Store(back)
		e = open(t, cfg)
		if info, err := e.Get(t.Context(), "shop"); err != nil || info.State != Failed {
			t.Errorf("it is %s, %v", info.State, err)
		}
		if err := e.Start(t.Context(), "shop"); !errors.Is(err, ErrState) {
			t.Errorf("it starts: %v", err)
		}
	}
	if err := e.Stop(t.Context(), "shop", ""); err != nil {
		t.Error(err)
	}
	if err := e.Archive(t.Context(), "shop"); err != nil {
		t.Error(err)
	}
}

// An aged store says that it has gone back, when it is told to.
type aged struct {
	store.Store
	older *atomic.Bool
}

func (s aged) Begin(ctx context.Context, holder string) (store.Opened, error) {
	o, err := s.Store.Begin(ctx, holder)
	o.Older = s.older.Load()
	return o, err
}
