package serve

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/serve/store"
)

// heap is what is in use, in MB.
func heap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / 1e6
}

// Ten thousand experiments are created, started, decide, and are there again after a restart.
func TestManyExperiments(t *testing.T) {
	n := 10_000
	if testing.Short() || underRace {
		n = 300
	}
	c, cfg := newClock(), Config{Store: store.SQLite(t.TempDir())}
	cfg.Clock = c.Now
	before := heap()
	e := open(t, cfg)
	text := strings.Replace(shop, "name: shop", "name: NAME", 1)
	from := time.Now()
	const clients = 32 // whose commits are made together
	var group sync.WaitGroup
	for k := range clients {
		group.Go(func() {
			for i := k; i < n; i += clients {
				x := parse(t, strings.Replace(text, "NAME", fmt.Sprint("shop-", i), 1))
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
