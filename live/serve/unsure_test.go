package serve

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/live/serve/store"
)

// An unsure store fails some commits, of which it has made some.
type unsure struct {
	store.Store
	mu  *sync.Mutex
	src *rand.Rand
}

func (s unsure) Commit(ctx context.Context, c store.Commit) error {
	s.mu.Lock()
	x := s.src.IntN(12)
	s.mu.Unlock()
	if x == 0 {
		return errDisk
	}
	if err := s.Store.Commit(ctx, c); err != nil || x > 1 {
		return err
	}
	return errDisk
}

// A commit that fails may have been made. What is sent again then counts once, and what was
// released then is not released again: the releases are the accepted rewards, each once.
func TestUnsureCommits(t *testing.T) {
	type drawn struct {
		n     int
		steps int64
	}
	var got [2][]drawn
	c, mem := newClock(), store.NewMemory()
	var mu sync.Mutex
	src := rand.New(rand.NewPCG(1, 2))
	e := open(t, Config{Clock: c.Now,
		Store: func(ctx context.Context) (store.Store, error) {
			s, err := mem.Open(ctx)
			return unsure{s, &mu, src}, err
		},
		Curator: silent(func(arm, n int, steps int64) {
			d := drawn{n, steps}
			// a draw that was lost is drawn anew
			if k := len(got[arm]); k == 0 || got[arm][k-1] != d {
				got[arm] = append(got[arm], d)
			}
		})})
	again := func(what func() error) {
		t.Helper()
		for range 100000 {
			err := what()
			if err == nil || errors.Is(err, ErrExists) || errors.Is(err, ErrState) {
				return
			}
			if !errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrNotFound) {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Microsecond)
		}
		t.Fatal("it does not come back")
	}
	x := parse(t, strings.Replace(shop, "floor: 0.1", "sticky: false", 1))
	again(func() error { return e.Create(t.Context(), x) })
	again(func() error { return e.Start(t.Context(), "shop") })
	traffic := rand.New(rand.NewPCG(3, 4))
	var accepted [2]int64
	refused := 0
	for range 400 {
		for range traffic.IntN(4) {
			d, err := e.Decide(t.Context(), "shop", "")
			if err != nil || d.Token == "" {
				t.Fatal(d, err)
			}
			steps := traffic.Int64N(1 << 20)
			var s Status
			again(func() (err error) {
				s, err = e.Reward(t.Context(), "shop", Report{d.Token, float64(steps) / (1 << 20)})
				if err != nil {
					refused++
				}
				return err
			})
			switch s {
			case Accepted:
				accepted[d.Arm] += steps
			case Void:
			default:
				t.Fatal(s)
			}
		}
		c.Add(500 * time.Millisecond)
		again(func() error { return e.Sync(t.Context()) })
	}
	for range 300 { // what is left is released, as far as it is asked for
		c.Add(time.Second)
		again(func() error { return e.Sync(t.Context()) })
	}
	var info Info
	again(func() (err error) { info, err = e.Get(t.Context(), "shop"); return err })
	lines, err := e.Transcript(t.Context(), "shop")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for range lines {
		n++
	}
	if refused < 20 || info.Batches < 5 || n != info.Batches+1 || info.Reason != "" {
		t.Fatalf("%d refused, %d lines, %+v", refused, n, info)
	}
	now, err := e.find("shop")
	if err != nil {
		t.Fatal(err)
	}
	now.mu.Lock()
	defer now.mu.Unlock()
	for a := range got {
		var sum int64
		rounds := 0
		for _, d := range got[a] {
			sum, rounds = sum+d.steps, rounds+d.n
		}
		for _, s := range now.play.Queue(a, 0).Segments { // that nobody has asked for
			sum += s.Sum
		}
		if rounds != info.Arms[a].Released || sum != accepted[a] {
			t.Errorf("arm %d: %d decisions of %d steps were released or wait, must be %d of %d", a, rounds,
				sum, info.Arms[a].Released, accepted[a])
		}
	}
}
