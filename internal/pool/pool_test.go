package pool_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sotto-dp/sotto/internal/pool"
)

// Every task is done once, by no more workers than there are, each with scratch space of its own.
func TestEveryTaskOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		workers, n := rapid.IntRange(-1, 9).Draw(t, "workers"), rapid.IntRange(0, 40).Draw(t, "n")
		done := make([]int, n)
		var made atomic.Int64
		err := pool.Run(t.Context(), workers, n, func() func(context.Context, int) error {
			made.Add(1)
			var busy sync.Mutex // of one worker: never taken twice
			return func(_ context.Context, i int) error {
				if !busy.TryLock() {
					return errors.New("a worker does two tasks at once")
				}
				defer busy.Unlock()
				done[i]++
				return nil
			}
		})
		if err != nil || slices.ContainsFunc(done, func(k int) bool { return k != 1 }) {
			t.Errorf("%v, %v", done, err)
		}
		if k := int(made.Load()); k > n || workers > 0 && k != min(workers, n) {
			t.Errorf("%d workers for %d tasks, want %d", k, n, workers)
		}
	})
}

// The first error ends the tasks beside it and is returned, not what their end looks like.
func TestFirstErrorCounts(t *testing.T) {
	failure := errors.New("a failure")
	var begun atomic.Int64
	err := pool.Run(t.Context(), 3, 1000, func() func(context.Context, int) error {
		return func(ctx context.Context, i int) error {
			begun.Add(1)
			if i == 2 {
				return fmt.Errorf("task 2: %w", failure)
			}
			<-ctx.Done()
			return ctx.Err()
		}
	})
	if !errors.Is(err, failure) || errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if k := begun.Load(); k != 3 {
		t.Errorf("%d tasks were begun by three workers", k)
	}
}

func TestStoppedSaysWhy(t *testing.T) {
	wait := func() func(context.Context, int) error {
		return func(ctx context.Context, _ int) error { <-ctx.Done(); return ctx.Err() }
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := pool.Run(ctx, 2, 5, wait); err != context.DeadlineExceeded {
		t.Errorf("%v at a deadline", err)
	}
	signal := errors.New("interrupt")
	why, end := context.WithCancelCause(t.Context())
	end(signal)
	err := pool.Run(why, 2, 5, wait)
	if !errors.Is(err, context.Canceled) || !errors.Is(err, signal) {
		t.Errorf("%v", err)
	}
	if err := pool.Run(why, 2, 0, wait); err != nil {
		t.Errorf("no tasks: %v", err)
	}
}

// A context that ends with the last task stops nothing.
func TestDoneIsDone(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	if err := pool.Run(ctx, 1, 3, func() func(context.Context, int) error {
		return func(_ context.Context, i int) error {
			if i == 2 {
				cancel()
			}
			return nil
		}
	}); err != nil {
		t.Error(err)
	}
}
