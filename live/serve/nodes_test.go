//go:build unix

package serve

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sotto-dp/sotto/internal/pgtest"
	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/live/serve/store"
)

// A stalled store is one whose writer is stopped: nothing of it comes through while it is, neither
// commits nor looks. It is the same for its process as SIGSTOP is, but that its clock is looked at.
type stalled struct {
	store.Shared
	still *atomic.Bool
}

func (s stalled) wait() {
	for s.still.Load() {
		time.Sleep(time.Millisecond)
	}
}

func (s stalled) Commit(ctx context.Context, c store.Commit) error {
	s.wait()
	return s.Shared.Commit(ctx, c)
}

func (s stalled) Look(ctx context.Context) (store.Writer, error) {
	s.wait()
	return s.Shared.Look(ctx)
}

// nodeAt opens a node whose store stalls while it is told to.
func nodeAt(t testing.TB, address, name string, logs ...io.Writer) (*Engine, *atomic.Bool) {
	t.Helper()
	to := io.MultiWriter(append(logs, t.Output())...)
	still, inner := &atomic.Bool{}, postgresAt(t, address)
	e := open(t, Config{Advertise: "http://" + name, Holder: name,
		Log: slog.New(slog.NewTextHandler(to, nil)).With("node", name),
		Store: func(ctx context.Context) (store.Store, error) {
			s, err := inner(ctx)
			if err != nil {
				return nil, err
			}
			return stalled{s.(store.Shared), still}, nil
		}})
	t.Cleanup(func() { still.Store(false) }) // before it is closed
	return e, still
}

// promised is how long a takeover takes at most, on a machine that does nothing else: that is where
// tests are at their full size.
const promised = 3 * time.Second

func leads(e *Engine) bool { return e.here() && e.Ready() == nil }

// One of two writes, the other one says where it is, and takes over when it ends or stands still;
// what the one who stood still then says is not said, and what it had decided since is void.
func TestTakeOverInTime(t *testing.T) {
	limit := testkit.Size(30*time.Second, promised)
	address := pgtest.Database(t)
	a, still := nodeAt(t, address, "a")
	b, _ := nodeAt(t, address, "b")
	if !leads(a) || leads(b) {
		t.Fatal("the first does not write, or both do")
	}
	if here, to, _ := b.Where(); here || to != "http://a" {
		t.Errorf("the second says %v, %q", here, to)
	}
	if _, err := b.Get(t.Context(), "shop"); !errors.Is(err, ErrUnavailable) {
		t.Errorf("the second answers for itself: %v", err)
	}
	begin(t, a, shop)
	first, err := a.Decide(t.Context(), "shop", "ann")
	if err != nil {
		t.Fatal(err)
	}
	if s, err := a.Reward(t.Context(), "shop", Report{first.Token, 1}); s != Accepted || err != nil {
		t.Fatal(s, err)
	}
	_, _, until := b.Where()

	still.Store(true)
	lost, err := a.Decide(t.Context(), "shop", "ben") // it does not know yet
	if err != nil {
		t.Fatal(err)
	}
	gone := within(t, limit, "the first doubts that it writes", func() bool {
		_, err := a.Decide(t.Context(), "shop", "cas")
		return err != nil
	})
	if leads(b) {
		t.Error("both decide")
	}
	took := gone + within(t, limit, "a takeover", func() bool { return leads(b) })
	if took > limit {
		t.Errorf("the takeover took %v, must be within %v", took, limit)
	}
	t.Logf("takeover from one who stands still: %v", took)
	if until.Err() == nil {
		t.Error("who passes requests on is not told that they go elsewhere")
	}
	if s, err := b.Reward(t.Context(), "shop", Report{lost.Token, 1}); s != Void || err != nil {
		t.Errorf("a decision that was never durable: %v, %v", s, err)
	}
	if s, err := b.Reward(t.Context(), "shop", Report{first.Token, 1}); s != Accepted || err != nil {
		t.Errorf("a durable decision: %v, %v", s, err)
	}
	if again, err := b.Decide(t.Context(), "shop", "ann"); err != nil || again.Token != first.Token {
		t.Errorf("the assignment was forgotten: %+v, %v", again, err)
	}

	still.Store(false) // it wakes, and must not take it back
	within(t, 30*time.Second, "the first follows", func() bool {
		here, to, _ := a.Where()
		return !here && to == "http://b"
	})
	if _, err := a.Reward(t.Context(), "shop", Report{first.Token, 1}); !errors.Is(err, ErrUnavailable) {
		t.Errorf("who was taken over takes rewards: %v", err)
	}
	if err := a.Create(t.Context(), parse(t, shop)); !errors.Is(err, ErrUnavailable) {
		t.Errorf("who was taken over creates: %v", err)
	}
	time.Sleep(2 * lookEvery)
	if !leads(b) {
		t.Error("it was taken back")
	}

	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	took = within(t, limit, "a takeover", func() bool { return leads(a) })
	if t.Logf("takeover from one who has ended: %v", took); took > limit {
		t.Errorf("the takeover took %v, must be within %v", took, limit)
	}
	if err := a.Lead(t.Context()); err != nil {
		t.Error(err)
	}
	if again, err := a.Decide(t.Context(), "shop", "ann"); err != nil || again.Token != first.Token {
		t.Errorf("the assignment was forgotten: %+v, %v", again, err)
	}
}

// Two that both believe they write: the later one does, and nothing of the other's is there.
func TestTwoNodes(t *testing.T) {
	address, ctx := pgtest.Database(t), t.Context()
	var log logged
	a, _ := nodeAt(t, address, "a", &log)
	begin(t, a, shop)
	d, err := a.Decide(ctx, "shop", "ann")
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Sync(ctx); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(ctx, address+"&search_path=sotto")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	// b is not told of a's connection, and so does not end it
	if _, err := conn.Exec(ctx, "UPDATE lease SET backend = 0"); err != nil {
		t.Fatal(err)
	}
	b, _ := nodeAt(t, address, "b")
	if !leads(b) {
		t.Fatal("b does not write")
	}
	if a.here() { // for a moment both answer
		early, err := a.Decide(ctx, "shop", "ben")
		if err == nil {
			if s, err := b.Reward(ctx, "shop", Report{early.Token, 1}); s != Void || err != nil {
				t.Errorf("a decision of one who does not write any more: %v, %v", s, err)
			}
		}
		if s, err := a.Reward(ctx, "shop", Report{d.Token, 1}); err == nil {
			t.Errorf("a reward was answered %s by one who does not write any more", s)
		}
	}
	if s, err := b.Reward(ctx, "shop", Report{d.Token, 1}); s != Accepted || err != nil {
		t.Error(s, err)
	}
	within(t, 30*time.Second, "a follows", func() bool {
		here, to, _ := a.Where()
		return !here && to == "http://b"
	})
	within(t, 30*time.Second, "that a says so", func() bool {
		return strings.Count(log.String(), "another process writes now") == 1
	})
	if n := strings.Count(log.String(), "level=ERROR"); n != 1 {
		t.Errorf("a says: %s", &log)
	}
	// What failed has ended: later it takes over, and has nothing to say of it.
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	within(t, 30*time.Second, "that a writes", func() bool { return leads(a) })
	if err := a.Sync(ctx); err != nil || strings.Contains(log.String(), "written again") {
		t.Errorf("a says: %s, %v", &log, err)
	}
}

// A rash store takes a connection that has ended for a process that has.
type rash struct{ store.Shared }

func (s rash) Look(ctx context.Context) (store.Writer, error) {
	w, err := s.Shared.Look(ctx)
	w.Broken = false
	return w, err
}

// A writer whose connection is cut, and who does not know it, decides for a while: nobody else does before it has
// ended, but for one who is rash.
func TestCutWriter(t *testing.T) {
	both := func(is func(store.Shared) store.Shared) (both bool) {
		address := pgtest.Database(t)
		a, still := nodeAt(t, address, "a")
		inner := postgresAt(t, address)
		b := open(t, Config{Advertise: "http://b", Store: func(ctx context.Context) (store.Store, error) {
			s, err := inner(ctx)
			if err != nil {
				return nil, err
			}
			return is(s.(store.Shared)), nil
		}})
		still.Store(true)
		cut(address, "sotto")
		within(t, 30*time.Second, "a takeover", func() bool {
			if leads(b) {
				both = both || a.here()
				return true
			}
			return false
		})
		return both
	}
	if both(func(s store.Shared) store.Shared { return s }) {
		t.Error("both decide")
	}
	for range 5 { // a machine that is busy may be late
		if both(func(s store.Shared) store.Shared { return rash{s} }) {
			return
		}
	}
	t.Error("one who is rash is not found")
}

// A dump that is restored beneath running processes, or tables that are dropped, end their answers:
// they say so, make no tables of their own, and take nothing over. Once they are started again, what
// ran has failed.
func TestRestoredBeneath(t *testing.T) {
	for what, replace := range map[string]func(c *pgtest.Cluster, address, name string, dump []byte){
		"restored": func(c *pgtest.Cluster, address, _ string, dump []byte) {
			c.Restore(t, address, dump, "--clean")
		},
		"restored in one transaction": func(c *pgtest.Cluster, address, _ string, dump []byte) {
			c.Restore(t, address, dump, "--clean", "--single-transaction")
		},
		"dropped first": func(c *pgtest.Cluster, address, name string, dump []byte) {
			c.SQL(t, name, "DROP SCHEMA sotto CASCADE")
			time.Sleep(2 * beatEvery)
			c.Restore(t, address, dump)
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			address, c := pgtest.Database(t), pgtest.Start(t)
			name, _, _ := strings.Cut(strings.TrimPrefix(address, "postgres:///"), "?")
			var log logged
			nodes := make([]*Engine, 2)
			for i := range nodes {
				nodes[i] = open(t, Config{Store: postgresAt(t, address), Log: slog.New(slog.NewTextHandler(&log, nil))})
			}
			a := nodes[0]
			begin(t, a, shop)
			secret, _, err := a.NewKey(t.Context(), "reader", ScopeRead)
			if err != nil {
				t.Fatal(err)
			}
			d, err := a.Decide(t.Context(), "shop", "ann")
			if err != nil {
				t.Fatal(err)
			}
			if err := a.Sync(t.Context()); err != nil {
				t.Fatal(err)
			}
			dump := c.Dump(t, address)
			replace(c, address, name, dump)
			for i, e := range nodes {
				within(t, 30*time.Second, "that it is not ready for good", func() bool {
					return errors.Is(e.Ready(), store.ErrReplaced)
				})
				if here, to, _ := e.Where(); here || to != "" {
					t.Errorf("node %d says that %q answers, or it", i, to)
				}
				if _, err := e.Decide(t.Context(), "shop", "ben"); !errors.Is(err, ErrUnavailable) {
					t.Errorf("node %d decides: %v", i, err)
				}
				if _, err := e.Reward(t.Context(), "shop", Report{d.Token, 1}); !errors.Is(err, ErrUnavailable) {
					t.Errorf("node %d takes a reward: %v", i, err)
				}
			}
			if n := strings.Count(log.String(), "level=ERROR msg=\"serve: this process answers nothing more\""); n != 2 ||
				strings.Count(log.String(), "this process writes") != 1 {
				t.Errorf("two processes say: %s", &log)
			}
			for _, e := range nodes {
				if err := e.Close(); err != nil {
					t.Error(err)
				}
			}
			again := open(t, Config{Store: postgresAt(t, address)})
			within(t, 30*time.Second, "that it writes", func() bool { return leads(again) })
			if info, err := again.Get(t.Context(), "shop"); err != nil || info.State != Failed {
				t.Errorf("then it is %+v, %v", info, err)
			}
			if again.May(secret) != ScopeRead {
				t.Error("a key of the dump is refused")
			}
		})
	}
}

// A clocked store has a clock of its own.
type clocked struct {
	store.Store
	at int64
}

func (c clocked) Begin(ctx context.Context, holder string) (store.Opened, error) {
	o, err := c.Store.Begin(ctx, holder)
	o.Clock, o.Elsewhere = c.at, true
	return o, err
}

// Processes on one database go by its clock, whatever theirs say, and never back.
func TestClockOfTheStore(t *testing.T) {
	mem := store.NewMemory()
	at := time.Now().Add(-5 * time.Hour)
	for _, x := range []struct{ clock, want time.Duration }{{0, 0}, {time.Hour, time.Hour}, {0, time.Hour},
		{2 * time.Hour, 2 * time.Hour},   // within an hour of the last commit
		{9 * time.Hour, 2 * time.Hour},   // the clocks differ, and neither is
		{5 * time.Hour, 5 * time.Hour},   // both say it
		{7 * time.Hour, 5 * time.Hour}} { // this process's is within an hour of the last commit

		e := open(t, Config{Store: func(ctx context.Context) (store.Store, error) {
			s, err := mem.Open(ctx)
			return clocked{s, at.Add(x.clock).UnixMilli()}, err
		}})
		want := at.Add(x.want).UnixMilli()
		if got := e.now(); got < want || got > want+time.Minute.Milliseconds() {
			t.Errorf("the time is %v, must be %v", time.UnixMilli(got), time.UnixMilli(want))
		}
		if _, _, err := e.NewKey(t.Context(), "a key", ScopeRead); err != nil { // which makes a commit
			t.Fatal(err)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A full store can be read, and refuses what is written; one that is gone refuses all.
type full struct {
	store.Shared
	full, gone *atomic.Bool
}

func (s full) Commit(ctx context.Context, c store.Commit) error {
	if s.full.Load() {
		return errDisk
	}
	return s.Shared.Commit(ctx, c)
}

func (s full) Claim(ctx context.Context, w store.Writer, holder, address string) (store.Opened, error) {
	if s.full.Load() {
		return store.Opened{}, errDisk
	}
	return s.Shared.Claim(ctx, w, holder, address)
}

func (s full) Look(ctx context.Context) (store.Writer, error) {
	if s.gone.Load() {
		return store.Writer{}, errDisk
	}
	return s.Shared.Look(ctx)
}

// While the database is full the writer decides by its last plan, as it sees that nobody else writes.
// While it cannot be asked it does not know that, and says nothing. What was accepted is there.
func TestFullDatabase(t *testing.T) {
	t.Parallel()
	var isFull, isGone atomic.Bool
	inner, ctx := postgresAt(t, pgtest.Database(t)), t.Context()
	e := open(t, Config{Store: func(ctx context.Context) (store.Store, error) {
		s, err := inner(ctx)
		if err != nil {
			return nil, err
		}
		return full{s.(store.Shared), &isFull, &isGone}, nil
	}})
	begin(t, e, shop)
	first, err := e.Decide(ctx, "shop", "ann")
	if err != nil {
		t.Fatal(err)
	}
	if s, err := e.Reward(ctx, "shop", Report{first.Token, 1}); s != Accepted || err != nil {
		t.Fatal(s, err)
	}
	isFull.Store(true)
	lost, err := e.Decide(ctx, "shop", "ben")
	if err != nil {
		t.Fatal(err)
	}
	within(t, 30*time.Second, "the error of a commit", func() bool { return e.Ready() != nil })
	time.Sleep(leadFor + 500*time.Millisecond)
	within(t, 30*time.Second, "a decision", func() bool {
		_, err := e.Decide(ctx, "shop", "cas")
		return err == nil
	})
	if _, err := e.Reward(ctx, "shop", Report{first.Token, 1}); !errors.Is(err, ErrUnavailable) {
		t.Errorf("a reward is taken by a full database: %v", err)
	}
	isGone.Store(true)
	within(t, 30*time.Second, "that nothing is decided", func() bool {
		_, err := e.Decide(ctx, "shop", "dan")
		return errors.Is(err, ErrUnavailable)
	})
	isGone.Store(false)
	isFull.Store(false)
	within(t, 30*time.Second, "that it writes again", func() bool { return leads(e) })
	if s, err := e.Reward(ctx, "shop", Report{first.Token, 1}); s != Accepted || err != nil {
		t.Errorf("a reward that was accepted: %v, %v", s, err)
	}
	if s, err := e.Reward(ctx, "shop", Report{lost.Token, 1}); s != Void || err != nil {
		t.Errorf("a decision that was not durable: %v, %v", s, err)
	}
}
