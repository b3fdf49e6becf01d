package serve

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/live/serve/store"
)

// heap is what is in use, in MB.
func heap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / 1e6
}

// createMany creates and starts experiments.
func createMany(t *testing.T, e *Engine, n int) {
	t.Helper()
	const clients = 32 // whose commits are made together
	var group sync.WaitGroup
	for k := range clients {
		group.Go(func() {
			for i := k; i < n; i += clients {
				x := parse(t, shop)
				x.Name = fmt.Sprint("shop-", i)
				err := e.Create(t.Context(), x)
				if err == nil {
					err = e.Start(t.Context(), x.Name)
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
}

// Experiments, ten thousand at the full size, are created, started, decide, and are there again after
// a restart.
func TestManyExperiments(t *testing.T) {
	n := testkit.Size(300, 10_000)
	c, cfg := newClock(), Config{Store: store.SQLite(t.TempDir())}
	cfg.Clock = c.Now
	before := heap()
	e := open(t, cfg)
	from := time.Now()
	createMany(t, e, n)
	t.Logf("%d are created in %v", n, time.Since(from))
	ask := func() {
		t.Helper()
		for i := range n {
			d, err := e.Decide(t.Context(), fmt.Sprint("shop-", i), "ann")
			if err != nil || d.Token == "" {
				t.Fatal(i, d, err)
			}
		}
	}
	from = time.Now()
	ask()
	if err := e.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Logf("each has decided after %v", time.Since(from))
	from = time.Now()
	settle(t, e, c, time.Second, 3)
	t.Logf("a tick takes %v, %.0f MB", time.Since(from)/3, heap()-before)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	from = time.Now()
	e = open(t, cfg)
	t.Logf("opened after %v", time.Since(from))
	if got := len(e.List(t.Context())); got != n {
		t.Errorf("%d are there, must be %d", got, n)
	}
	ask()
}

// A thousand experiments with a thousand units each are in less than 200 MB, also after a restart, and
// are opened in seconds. A tenth of the experiments is in less than a tenth of that.
func TestMemory(t *testing.T) {
	if testing.Short() || testkit.Race {
		t.Skip("it is many units, which the race detector makes larger")
	}
	c, cfg := newClock(), Config{Store: store.SQLite(t.TempDir())}
	cfg.Clock = c.Now
	before := heap()
	e, err := Open(t.Context(), cfg) // which nothing else remembers
	if err != nil {
		t.Fatal(err)
	}
	n := testkit.Size(100, 1000)
	most := float64(n) / 5
	createMany(t, e, n)
	for i := range n {
		name := fmt.Sprint("shop-", i)
		for j := range 1000 {
			if _, err := e.Decide(t.Context(), name, strconv.Itoa(j)); err != nil {
				t.Fatal(err)
			}
		}
	}
	settle(t, e, c, time.Second, 3)
	if mb := heap() - before; mb > most {
		t.Errorf("%.0f MB are in use, must be at most %.0f", mb, most)
	} else {
		t.Logf("%.0f MB are in use", mb)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	from := time.Now()
	if e, err = Open(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = e.Close() }()
	took := time.Since(from)
	if mb := heap() - before; mb > most {
		t.Errorf("%.0f MB are in use after a restart, must be at most %.0f", mb, most)
	} else {
		t.Logf("%.0f MB are in use after a restart, which took %v", mb, took)
	}
	if d, err := e.Decide(t.Context(), "shop-7", "7"); err != nil || d.Token == "" {
		t.Error(d, err)
	}
}

// A unit takes as much memory as operations.md says, before the experiment's table of units has grown
// and after.
func TestMemoryOfAUnit(t *testing.T) {
	if testkit.Race {
		t.Skip("the race detector makes it larger")
	}
	before := heap()
	e := open(t, Config{Store: store.SQLite(t.TempDir())})
	begin(t, e, strings.Replace(benchShop, "sticky: false", "", 1))
	unit := 0
	for _, n := range []int{100_000, 130_000} {
		for ; unit < n; unit++ {
			if _, err := e.Decide(t.Context(), "shop", strconv.Itoa(unit)); err != nil {
				t.Fatal(err)
			}
		}
		if each := (heap() - before) * 1e6 / float64(n); each < 85 || each > 170 {
			t.Errorf("%d units take %.0f bytes each, must be from 85 to 170", n, each)
		} else {
			t.Logf("%d units take %.0f bytes each", n, each)
		}
	}
}

// Experiments are restored beside one another: one that takes long holds no other one up.
func TestRestoredBesideOneAnother(t *testing.T) {
	mem := store.NewMemory()
	e := open(t, Config{Store: mem.Open, Clock: newClock().Now})
	for _, name := range []string{"one", "two"} {
		begin(t, e, strings.Replace(shop, "name: shop", "name: "+name, 1))
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	both := make(chan struct{})
	var came atomic.Int32
	slow := func(ctx context.Context) (store.Store, error) {
		s, err := mem.Open(ctx)
		return meeter{s, func() error {
			if came.Add(1) == 2 {
				close(both)
			}
			select {
			case <-both:
				return nil
			case <-time.After(10 * time.Second):
				return errors.New("the other one is not read meanwhile")
			}
		}}, err
	}
	e = open(t, Config{Store: slow, Clock: newClock().Now})
	if all := e.List(t.Context()); len(all) != 2 || all[0].State != Running && all[0].State != Waiting {
		t.Errorf("%+v", all)
	}
}

// A meeter is a store that reads an experiment after something else.
type meeter struct {
	store.Store
	before func() error
}

func (s meeter) Load(ctx context.Context, id int64) (store.Stored, error) {
	if err := s.before(); err != nil {
		return store.Stored{}, err
	}
	return s.Store.Load(ctx, id)
}
