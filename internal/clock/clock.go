// Package clock has a clock that is set by hand, for tests and simulations of what asks the time.
package clock

import (
	"sync"
	"time"
)

// A Manual clock stands still until it is told. It is safe for use by several goroutines.
type Manual struct {
	mu  sync.Mutex
	now time.Time
}

// At is a clock that stands at a time. A time without a monotonic reading gives times without one.
func At(t time.Time) *Manual { return &Manual{now: t} }

// Now is the time it stands at.
func (c *Manual) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Add brings time forward, or back where d is negative.
func (c *Manual) Add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}
