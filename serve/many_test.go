package serve

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/internal/base/testneeds"
	"github.com/sotto-dp/sotto/serve/store"
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
	n := testneeds.Size(300, 10_000)
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
	if testing.Short() || testneeds.Race {
		t.Skip("it is many units, which the race detector makes larger")
	}
	c, cfg := newClock(), Config{Store: store.SQLite(t.TempDir())}
	cfg.Clock = c.Now
	before := heap()
	e, err := Open(t.Context(), cfg) // which nothing else remembers
	if err != nil {
		t.Fatal(err)
	}
	n := testneeds.Size(100, 1000)
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
	if testneeds.Race {
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
