//go:build unix

package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sotto-dp/sotto/internal/pgtest"
	"github.com/sotto-dp/sotto/live/serve/store"
)

// A process of many shares on a database, which others find at an address.
func sharesAt(t testing.TB, address, name string, n int, logs ...io.Writer) *Shares {
	t.Helper()
	stores, err := store.PostgresShares(address, n)
	if err != nil {
		t.Fatal(err)
	}
	s, err := OpenShares(context.Background(), Config{Advertise: "http://" + name, Holder: name,
		Log: slog.New(slog.NewTextHandler(io.MultiWriter(append(logs, t.Output())...), nil)).With("node", name)}, n, stores)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// writes are the shares that a process writes.
func writes(s *Shares) (out []int) {
	for i, e := range s.Engines() {
		if leads(e) {
			out = append(out, i)
		}
	}
	return out
}

// every says whether each share has one writer, and how many each process has.
func every(n int, all ...*Shares) (each []int, whole bool) {
	total := 0
	for _, s := range all {
		each = append(each, len(writes(s)))
		total += each[len(each)-1]
	}
	return each, total == n
}

// writerOf is the engine that writes an experiment, nil if none does.
func writerOf(t testing.TB, name string, all ...*Shares) *Engine {
	t.Helper()
	for _, s := range all {
		i, ok, err := s.Of(t.Context(), name)
		if err != nil || !ok {
			t.Fatalf("%s is in share %d, %v, %v", name, i, ok, err)
		}
		if e := s.Engines()[i]; leads(e) {
			return e
		}
	}
	return nil
}

// beginIn creates experiments and starts them, each in its share.
func beginIn(t testing.TB, n int, s *Shares) (names []string) {
	t.Helper()
	for i := range n {
		x := shopOf(t, fmt.Sprint("shop", i), "")
		e := s.Engines()[s.New(x)]
		if err := errors.Join(e.Create(t.Context(), x), e.Start(t.Context(), x.Name)); err != nil {
			t.Fatal(err)
		}
		names = append(names, x.Name)
	}
	return names
}

// One process writes all; a second gets half while both are asked, and nothing is lost; the first has all again
// when the second has ended.
func TestGiveBackUnderLoad(t *testing.T) {
	address, ctx := pgtest.Database(t), t.Context()
	var log logged
	a := sharesAt(t, address, "a", 4, &log)
	if got := writes(a); len(got) != 4 {
		t.Fatalf("alone it writes %v", got)
	}
	names := beginIn(t, 8, a)
	b := sharesAt(t, address, "b", 4, &log)
	var wrong, done, void atomic.Int64
	var load sync.WaitGroup
	ending := make(chan struct{})
	for i, name := range names {
		load.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-ending:
					return
				default:
				}
				e := writerOf(t, name, a, b)
				if e == nil {
					time.Sleep(5 * time.Millisecond)
					continue
				}
				d, err := e.Decide(ctx, name, fmt.Sprint("unit", i, "-", n))
				for err == nil { // until it is answered, by whoever writes
					if e = writerOf(t, name, a, b); e == nil {
						time.Sleep(5 * time.Millisecond)
						continue
					}
					s, err := e.Reward(ctx, name, Report{d.Token, 1})
					if err != nil && !errors.Is(err, ErrUnavailable) || err == nil && s != Accepted && s != Void {
						wrong.Add(1)
						t.Error(s, err)
					}
					time.Sleep(2 * time.Millisecond)
					if err == nil {
						if done.Add(1); s == Void {
							void.Add(1)
						}
						break
					}
				}
				time.Sleep(2 * time.Millisecond)
			}
		})
	}
	within(t, 30*time.Second, "that both write two shares", func() bool {
		each, whole := every(4, a, b)
		return whole && each[0] == 2
	})
	time.Sleep(300 * time.Millisecond)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	took := within(t, 30*time.Second, "that the first writes all again", func() bool { return len(writes(a)) == 4 })
	time.Sleep(300 * time.Millisecond)
	close(ending)
	load.Wait()
	t.Logf("%d rewards answered, %d of decisions that were void, all back in %v", done.Load(), void.Load(), took)
	if done.Load() < 100 {
		t.Errorf("%d answers", done.Load())
	}
	// a machine that stands still has takeovers too, and says so
	if n := void.Load(); n > 0 && !strings.Contains(log.String(), "level=ERROR") {
		t.Errorf("%d of %d answered decisions are void, though all shares were given back", n, done.Load())
	}
}

// A decision that was waited for while its share was given back is not answered: it may be void.
func TestDecidedWhileGivenBack(t *testing.T) {
	ctx := t.Context()
	s := sharesAt(t, pgtest.Database(t), "a", 2)
	x := shopOf(t, "shop", "")
	e := s.Engines()[s.New(x)]
	if err := errors.Join(e.Create(ctx, x), e.Start(ctx, x.Name)); err != nil {
		t.Fatal(err)
	}
	of, err := e.lookup(x.Name)
	if err != nil {
		t.Fatal(err)
	}
	of.mu.Lock()
	decided := make(chan error)
	go func() {
		_, err := e.Decide(ctx, x.Name, "ann")
		decided <- err
	}()
	time.Sleep(50 * time.Millisecond) // until it waits
	e.leave()
	within(t, 30*time.Second, "that it gives the share back", func() bool { return !e.here() })
	of.mu.Unlock()
	if err := <-decided; !errors.Is(err, ErrUnavailable) {
		t.Errorf("it is answered: %v", err)
	}
}

// unclaimed is a store that nobody can claim.
type unclaimed struct {
	store.Shared
	claims func()
}

func (s unclaimed) Claim(context.Context, store.Writer, string, string) (store.Opened, error) {
	s.claims()
	return store.Opened{}, errors.New("not now")
}

// Who has claimed a new share not yet does not answer for it.
func TestNewShareIsNobodys(t *testing.T) {
	stores, err := store.PostgresShares(pgtest.Database(t), 2)
	if err != nil {
		t.Fatal(err)
	}
	var s atomic.Pointer[Shares]
	var tried, answers atomic.Int64
	claims := func() {
		if s := s.Load(); s != nil {
			tried.Add(1)
			if s.Engines()[1].here() {
				answers.Add(1)
			}
		}
	}
	opened, err := OpenShares(t.Context(), Config{Advertise: "http://a"}, 2, func(i int) func(context.Context) (store.Store, error) {
		if i == 0 {
			return stores(0)
		}
		return func(ctx context.Context) (store.Store, error) {
			st, err := stores(i)(ctx)
			if err != nil {
				return nil, err
			}
			return unclaimed{st.(store.Shared), claims}, nil
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	s.Store(opened)
	within(t, 30*time.Second, "that it tries twice", func() bool { return tried.Load() >= 2 })
	if answers.Load() > 0 {
		t.Error("it answers for a share that it has not claimed")
	}
}

// A share whose row of the writer is locked stands still, and the others answer as ever.
func TestStalledShare(t *testing.T) {
	address, ctx := pgtest.Database(t), t.Context()
	s := sharesAt(t, address, "a", 4)
	names := beginIn(t, 8, s)
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "BEGIN; SELECT FROM sotto_2.writer FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	within(t, 30*time.Second, "that share 2 does not answer", func() bool { return !leads(s.Engines()[2]) })
	worst, other := time.Duration(0), 0
	for range 20 {
		for _, name := range names {
			i, _, err := s.Of(ctx, name)
			if err != nil {
				t.Fatal(err)
			}
			if i == 2 {
				continue
			}
			from := time.Now()
			d, err := s.Engines()[i].Decide(ctx, name, fmt.Sprint("unit", other))
			if errors.Is(err, ErrUnavailable) { // of a machine that is busy
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			if got, err := s.Engines()[i].Reward(ctx, name, Report{d.Token, 1}); got != Accepted && !errors.Is(err, ErrUnavailable) {
				t.Fatal(got, err)
			}
			worst = max(worst, time.Since(from))
			other++
		}
	}
	t.Logf("%d rewards of the others, the slowest in %v", other, worst)
	if other == 0 {
		t.Fatal("all experiments are in one share")
	}
	// A new process is not held up by it, nor by its own claim of it.
	b := sharesAt(t, address, "b", 4)
	within(t, 30*time.Second, "that another process writes", func() bool { return len(writes(b)) > 0 })
	if _, err := conn.Exec(ctx, "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	within(t, 30*time.Second, "that all shares are written", func() bool {
		_, whole := every(4, s, b)
		return whole
	})
}

// When a key is revoked, or made, is answered when every process that answers goes by it. One that cannot
// read the office does not answer.
func TestKeysOfNodes(t *testing.T) {
	address, ctx := pgtest.Database(t), t.Context()
	a := sharesAt(t, address, "a", 2)
	b := sharesAt(t, address, "b", 2)
	within(t, 30*time.Second, "that both write", func() bool { return fmt.Sprint(writes(a), writes(b)) == "[0] [1]" })
	other := b.Engines()[1]
	name := "shop"
	// a machine that is busy has takeovers
	still := func(share int, what func(e *Engine) error) {
		t.Helper()
		var err error
		within(t, 30*time.Second, "an answer", func() bool {
			for _, s := range []*Shares{a, b} {
				if e := s.Engines()[share]; leads(e) {
					err = what(e)
					return !errors.Is(err, ErrUnavailable)
				}
			}
			return false
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	still(1, func(e *Engine) error {
		if err := e.Create(ctx, shopOf(t, name, "")); !errors.Is(err, ErrExists) && err != nil {
			return err
		}
		return e.Start(ctx, name)
	})
	if at, ok, err := a.Of(ctx, name); at != 1 || !ok || err != nil {
		t.Errorf("the other process does not know where %s is: %d, %v, %v", name, at, ok, err)
	}
	var secret string
	var k Key
	still(0, func(e *Engine) (err error) {
		secret, k, err = e.NewKey(ctx, "k", ScopeDecide)
		return err
	})
	if other.here() && other.May(secret) != ScopeDecide {
		t.Error("a key that was made is not known")
	}
	still(0, func(e *Engine) error { return e.RevokeKey(ctx, k.ID) })
	if other.May(secret) != 0 && other.here() {
		t.Error("a key that was revoked is good at another process")
	}
	// what it goes by is old now, though it writes
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "BEGIN; LOCK sotto.node IN ACCESS EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	within(t, 30*time.Second, "that nobody answers who cannot read the office", func() bool { return !other.here() })
	if _, err := other.Decide(ctx, name, ""); !errors.Is(err, ErrUnavailable) {
		t.Errorf("it decides: %v", err)
	}
	if _, err := conn.Exec(ctx, "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	within(t, 30*time.Second, "that all is answered again", func() bool {
		_, whole := every(2, a, b)
		return whole && (a.Engines()[1].here() || other.here())
	})
}

// A process that knows of fewer shares than there are ends, also one that knows of none and writes, or follows.
func TestMoreShares(t *testing.T) {
	address := pgtest.Database(t)
	alone := []*Shares{sharesAt(t, address, "writer", 1), sharesAt(t, address, "follower", 1)}
	a := sharesAt(t, address, "a", 2)
	for _, s := range alone {
		select {
		case <-s.Superseded():
		case <-time.After(30 * time.Second):
			t.Fatal("one of one share is not told")
		}
	}
	b := sharesAt(t, address, "b", 3)
	select {
	case <-a.Superseded():
	case <-time.After(30 * time.Second):
		t.Fatal("it is not told")
	}
	within(t, 30*time.Second, "that the other writes all", func() bool { return len(writes(b)) == 3 })
	if len(writes(a)) > 0 {
		t.Error("it answers")
	}
	stores, err := store.PostgresShares(address, 2)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenShares(t.Context(), Config{}, 2, stores); !errors.Is(err, store.ErrSchema) {
		t.Errorf("it is opened with less: %v", err)
	}
}

// A cap on what one person may lose is looked at with all experiments, so that they have one writer.
func TestSharesHaveNoPersonCap(t *testing.T) {
	personCap, err := ParsePersonCap("unit=person,epsilon=3/365d")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenShares(t.Context(), Config{PersonCap: &personCap}, 2, nil); !errors.Is(err, errCapped) {
		t.Errorf("it is opened: %v", err)
	}
}
