//go:build unix

package serve

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/internal/pgtest"
	"github.com/sotto-dp/sotto/live/serve/store"
)

// Of two processes on a database, one that was superseded in the middle of a start has not started anything,
// and the other, which may have forgotten the flag, goes by the same cap and the same account.
func TestNodesHaveOneAccount(t *testing.T) {
	address := pgtest.Database(t)
	still := &atomic.Bool{}
	node := func(name string, cap *PersonCap, log *bytes.Buffer, stalls bool) *Engine {
		inner := postgresAt(t, address)
		return open(t, Config{Advertise: "http://" + name, Holder: name, PersonCap: cap,
			Log: slog.New(slog.NewTextHandler(log, nil)),
			Store: func(ctx context.Context) (store.Store, error) {
				s, err := inner(ctx)
				if err != nil || !stalls {
					return s, err
				}
				return stalled{s.(store.Shared), still}, nil
			}})
	}
	var logs [3]bytes.Buffer
	a := node("a", capped(t, "unit=person,epsilon=3/365d"), &logs[0], true)
	t.Cleanup(func() { still.Store(false) })
	b := node("b", nil, &logs[1], false)
	begin(t, a, named("first", "budget: {epsilon: 1}"))
	for _, name := range []string{"x", "y"} {
		if err := a.Create(t.Context(), parse(t, named(name, "budget: {epsilon: 2}"))); err != nil {
			t.Fatal(err)
		}
	}
	still.Store(true)
	late := make(chan error, 1)
	go func() { late <- a.Start(t.Context(), "x") }()
	within(t, 30*time.Second, "a takeover", func() bool { return leads(b) })
	if err := b.Start(t.Context(), "y"); err != nil {
		t.Fatal(err)
	}
	if err := b.Start(t.Context(), "x"); !errors.Is(err, ErrPersonCap) {
		t.Errorf("who has forgotten the flag starts a third: %v", err)
	}
	still.Store(false)
	if err := <-late; err == nil {
		t.Error("a process that was superseded has started one")
	}
	if got, err := b.Account(t.Context()); err != nil || got.Most != 3 || len(got.Entries) != 2 || len(got.Drafts) != 1 ||
		got.Cap.String() != "unit=person,epsilon=3/365d" {
		t.Errorf("%+v, %v", got, err)
	}
	for _, e := range []*Engine{a, b} {
		if err := e.Close(); err != nil {
			t.Log(err) // the first may be at its store
		}
	}
	c := node("c", capped(t, "unit=person,epsilon=9/365d"), &logs[2], false)
	within(t, 30*time.Second, "a third process writes", func() bool { return leads(c) })
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if log := logs[2].String(); !strings.Contains(log, "--person-cap is another one than") {
		t.Errorf("one with another cap logs %q", log)
	}
}
