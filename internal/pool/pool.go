// Package pool does numbered tasks side by side. Of errgroup, which does too, it would take the
// group alone: here a worker keeps scratch space over its tasks, tasks are begun in their order, and
// an error tells why the context ended.
package pool

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
)

// Run does the tasks 0, 1, …, n−1 on as many workers; 0 or less is one for each processor. worker is
// called once for each of them, on its own goroutine, and what it returns is called for one task
// after the other: scratch space of a worker is a variable of worker's. Tasks are begun in order. A
// task may write into its own element of a slice: all that they wrote is seen when Run returns.
//
// After the first error no task is begun, the context that tasks are given ends, and Run returns
// that error. It returns Stopped's if ctx has ended, and nil if all tasks are done.
func Run(ctx context.Context, workers, n int, worker func() func(ctx context.Context, i int) error) error {
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var group sync.WaitGroup
	var next, done atomic.Int64
	for range min(workers, n) {
		group.Go(func() {
			task := worker()
			for inner.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if err := task(inner, i); err != nil {
					cancel(err) // the first one counts
					return
				}
				done.Add(1)
			}
		})
	}
	group.Wait()
	switch {
	case int(done.Load()) == n:
		return nil
	case ctx.Err() != nil:
		return Stopped(ctx)
	}
	return context.Cause(inner)
}

// Stopped is the error of a context that has ended, which matches its cause too: who cancelled it
// may have said why.
func Stopped(ctx context.Context) error {
	if cause := context.Cause(ctx); !errors.Is(cause, ctx.Err()) {
		return fmt.Errorf("%w (%w)", ctx.Err(), cause)
	}
	return ctx.Err()
}
