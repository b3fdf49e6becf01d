package serve

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/live/serve/store"
)

// An engine that nobody asks anything wakes up for public ticks alone, and a decision with its reward is
// one commit, in which no row is twice: what a process pays at low rates is its waking up.
func TestIdle(t *testing.T) {
	t.Parallel()
	var sweeps atomic.Int64
	seen := &commits{}
	mem := store.NewMemory()
	e := open(t, Config{hook: func(at string) {
		if at == "a sweep" {
			sweeps.Add(1)
		}
	}, Store: func(ctx context.Context) (store.Store, error) {
		s, err := mem.Open(ctx)
		return counted{s, seen}, err
	}})
	begin(t, e, shop) // whose tick is a second
	if err := e.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	before, from := sweeps.Load(), time.Now()
	time.Sleep(2500 * time.Millisecond)
	if n, most := sweeps.Load()-before, int64(time.Since(from)/time.Second)+2; n > most {
		t.Errorf("it looked %d times in %v, must be at most %d", n, time.Since(from), most)
	}
	before, from = sweeps.Load(), time.Now()
	made := seen.count()
	const pairs = 20
	for i := range pairs {
		d, err := e.Decide(t.Context(), "shop", string(rune('a'+i)))
		if err != nil {
			t.Fatal(err)
		}
		if s, err := e.Reward(t.Context(), "shop", Report{d.Token, 1}); s != Accepted || err != nil {
			t.Fatal(s, err)
		}
		time.Sleep(5 * time.Millisecond)
	}
	time.Sleep(2 * markEvery) // nothing is owed
	ticks := int(time.Since(from)/time.Second) + 2
	if n := int(sweeps.Load() - before); n > ticks {
		t.Errorf("it looked %d times in %v, must be at most %d", n, time.Since(from), ticks)
	}
	if n := seen.count() - made; n > pairs+ticks {
		t.Errorf("%d decisions with their rewards were %d commits", pairs, n)
	}
	if rows := seen.rows(); rows != 5 { // of the arm, its segment, what came, the hour and the unit
		t.Errorf("a decision with its reward was %d rows, must be 5: each is a statement", rows)
	}
	if twice := seen.doubled(); twice > 0 {
		t.Errorf("%d rows were written twice in a commit", twice)
	}
	// A decision alone is written too.
	made = seen.count()
	if _, err := e.Decide(t.Context(), "shop", "alone"); err != nil {
		t.Fatal(err)
	}
	within(t, 20*time.Second, "the mark", func() bool { return seen.count() > made })
}

// A decision is written in time, though no tick is near.
func TestMarkInTime(t *testing.T) {
	seen := &commits{}
	mem := store.NewMemory()
	swept := make(chan struct{}, 1)
	e := open(t, Config{hook: func(at string) {
		if at == "a sweep" {
			select {
			case swept <- struct{}{}:
			default:
			}
		}
	}, Store: func(ctx context.Context) (store.Store, error) {
		s, err := mem.Open(ctx)
		return counted{s, seen}, err
	}})
	begin(t, e, shop)
	if err := e.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	for len(swept) > 0 {
		<-swept
	}
	<-swept // the next is a tick away
	made, from := seen.count(), time.Now()
	if _, err := e.Decide(t.Context(), "shop", "ann"); err != nil {
		t.Fatal(err)
	}
	within(t, 5*time.Second, "the mark", func() bool { return seen.count() > made })
	if took := time.Since(from); took > 6*markEvery {
		t.Errorf("it took %v, must be about %v", took, markEvery)
	}
}

// commits is what was seen of them.
type commits struct {
	sync.Mutex
	n, twice int
	most     int // rows of a commit that has no record and no line
}

func (c *commits) count() int {
	c.Lock()
	defer c.Unlock()
	return c.n
}

func (c *commits) rows() int {
	c.Lock()
	defer c.Unlock()
	return c.most
}

func (c *commits) doubled() int {
	c.Lock()
	defer c.Unlock()
	return c.twice
}

// A counted store counts its commits, their rows, and segments that are twice in one.
type counted struct {
	store.Store
	seen *commits
}

func (s counted) Commit(ctx context.Context, c store.Commit) error {
	s.seen.Lock()
	s.seen.n++
	for _, w := range c.Writes {
		if w.Record == nil && len(w.Lines) == 0 {
			n := len(w.Arms) + len(w.Segments) + len(w.Parts) + len(w.Events) + len(w.Reports) + len(w.Hours)
			if len(w.Units) > 0 {
				n++
			}
			s.seen.most = max(s.seen.most, n)
		}
		rows := map[[2]int]bool{}
		for _, g := range w.Segments {
			at := [2]int{g.Arm, g.Start}
			if rows[at] {
				s.seen.twice++
			}
			rows[at] = true
		}
	}
	s.seen.Unlock()
	return s.Store.Commit(ctx, c)
}
