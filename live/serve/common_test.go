package serve

import (
	"context"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/live/serve/store"
)

func postgresAt(t testing.TB, address string) func(context.Context) (store.Store, error) {
	t.Helper()
	open, err := store.Postgres(address)
	if err != nil {
		t.Fatal(err)
	}
	return open
}

// within fails unless it happens in time, and says how long it took.
func within(t testing.TB, limit time.Duration, what string, done func() bool) time.Duration {
	t.Helper()
	from := time.Now()
	for !done() {
		if time.Since(from) > limit {
			t.Fatalf("%s did not happen within %v", what, limit)
		}
		time.Sleep(time.Millisecond)
	}
	return time.Since(from)
}
