package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/live/serve/store"
)

// inMemory opens n shares on disks in memory.
func inMemory(t testing.TB, n int) *Shares {
	t.Helper()
	disks := make([]*store.Memory, n)
	for i := range disks {
		disks[i] = store.NewMemory()
	}
	s, err := OpenShares(t.Context(), Config{}, n, func(i int) func(context.Context) (store.Store, error) {
		return disks[i].Open
	})
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

// shopOf is the shop under another name.
func shopOf(t testing.TB, name, more string) Experiment {
	t.Helper()
	out := parse(t, strings.TrimRight(shop, "\n")+"\n"+more)
	out.Name = name
	return out
}

// An experiment is in the share that its declaration says, and found there; a name is taken in all of them.
func TestShares(t *testing.T) {
	s, ctx := inMemory(t, 4), t.Context()
	used := map[int]bool{}
	for i := range 12 {
		x := shopOf(t, fmt.Sprint("shop", i), "")
		in := s.New(x)
		if used[in] = true; in == 0 {
			t.Error("an experiment of its own is in the office")
		}
		if err := s.Engines()[in].Create(ctx, x); err != nil {
			t.Fatal(err)
		}
		if at, ok, err := s.Of(ctx, x.Name); at != in || !ok || err != nil {
			t.Errorf("%s is in share %d, %v, %v", x.Name, at, ok, err)
		}
		if err := s.Engines()[0].Create(ctx, x); !errors.Is(err, errPlace) {
			t.Errorf("it is created elsewhere: %v", err)
		}
		layered := x
		layered.Layer.Name, layered.Layer.To = "page", 1
		if err := s.Engines()[0].Create(ctx, layered); s.New(layered) != 0 || !errors.Is(err, ErrExists) {
			t.Errorf("its name is not taken: %v", err)
		}
	}
	if len(used) != 3 {
		t.Errorf("of 12 experiments some are in %v", used)
	}
	if _, ok, err := s.Of(ctx, "none"); ok || err != nil {
		t.Error("there is one that is not there")
	}
}

// The keys are the office's, and all engines go by them.
func TestKeysOfShares(t *testing.T) {
	s, ctx := inMemory(t, 3), t.Context()
	office := s.Engines()[0]
	x := shopOf(t, "shop1", "")
	if err := s.Engines()[s.New(x)].Create(ctx, x); err != nil {
		t.Fatal(err)
	}
	secret, k, err := office.NewKeyFor(ctx, "shop1", "a page", ScopeDecide)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := office.NewKeyFor(ctx, "none", "a page", ScopeDecide); !errors.Is(err, ErrNotFound) {
		t.Errorf("a key for no experiment: %v", err)
	}
	for i, e := range s.Engines() {
		if e.May(secret) != ScopeDecide {
			t.Errorf("share %d does not know the key", i)
		}
		if _, _, err := e.NewKey(ctx, "another", ScopeRead); (err == nil) != (i == 0) {
			t.Errorf("share %d makes keys: %v", i, err)
		}
	}
	if err := office.RevokeKey(ctx, k.ID); err != nil {
		t.Fatal(err)
	}
	for i, e := range s.Engines() {
		if e.May(secret) != 0 {
			t.Errorf("share %d goes by a key that was revoked", i)
		}
	}
}

// A slow office is one that is far away.
type slowOffice struct {
	store.Office // nil: the rest is not asked
	takes        time.Duration
	begun, noted []time.Time
}

func (o *slowOffice) Meet(_ context.Context, address string) (store.Met, error) {
	now := time.Now()
	if o.begun = append(o.begun, now); address != "" {
		o.noted = append(o.noted, now)
	}
	time.Sleep(o.takes)
	return store.Met{Shares: 2, Nodes: 1}, nil
}

func (o *slowOffice) Leave(context.Context, string) error { return nil }
func (o *slowOffice) Close() error                        { return nil }

// The office is read in time also where a reading takes long, and read again for whoever asks for a name that is not
// there, but nothing is written for it.
func TestReadingsOfOffice(t *testing.T) {
	for _, takes := range []time.Duration{meetEvery, time.Millisecond} {
		o := &slowOffice{takes: takes}
		s := &Shares{cfg: Config{Advertise: "http://a", Log: slog.New(slog.DiscardHandler)}, engines: make([]*Engine, 2),
			epoch: time.Now(), done: make(chan struct{}), asked: make(chan struct{}, 1), more: make(chan struct{}),
			places: map[string]int{}, next: newReading(), held: make([]bool, 2), given: -1, wait: giveEvery,
			office: func(context.Context) (store.Store, error) { return o, nil }}
		ctx, end := context.WithTimeout(t.Context(), 8*meetEvery)
		go s.run(ctx, o)
		if takes < meetEvery {
			for ctx.Err() == nil {
				_, _, _ = s.Of(ctx, "nobody's")
			}
		}
		<-s.done
		end()
		least := time.Hour // of the pauses: a machine that is busy makes some longer
		for i := range o.begun[1:] {
			least = min(least, o.begun[i+1].Sub(o.begun[i]))
		}
		if len(o.begun) < 3 || least < meetAgain || takes == meetEvery && least > takes+meetEvery/2 {
			t.Errorf("readings that take %v are %v apart at least, of %d", takes, least, len(o.begun))
		}
		for i := range o.noted[1:] {
			if gap := o.noted[i+1].Sub(o.noted[i]); gap < noteEvery-time.Millisecond {
				t.Errorf("it is written again after %v", gap)
			}
		}
		t.Logf("%d readings, %d of which write", len(o.begun), len(o.noted))
	}
}
