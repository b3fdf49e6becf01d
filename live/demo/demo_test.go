package demo

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/live/serve/store"
)

// Within ten seconds, on a machine that does nothing else, there are decisions, releases, and a price.
func TestVisitInTime(t *testing.T) {
	e, err := serve.Open(t.Context(), serve.Config{Store: store.NewMemory().Open})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := Start(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(),
		testkit.Size(time.Minute, 10*time.Second))
	defer cancel()
	var last string
	err = Visit(ctx, e, func(line string) {
		last = line
		x, err := e.Get(t.Context(), Name)
		if err != nil {
			t.Error(err)
		}
		if x.Batches >= 2 && x.Spent.Pure() > 0.9 && x.Spent.Pure() <= 1 {
			cancel()
		}
	})
	if err != nil || context.Cause(ctx) != context.Canceled {
		t.Errorf("%v in the end: %s", err, last)
	}
	if !strings.Contains(last, "clicked") || !strings.Contains(last, "ε = 1;") {
		t.Error(last)
	}
	if err := e.Stop(t.Context(), Name, "number"); err != nil {
		t.Fatal(err)
	}
	if err := Visit(t.Context(), e, func(string) {}); err != nil { // it ends by itself
		t.Error(err)
	}
}
