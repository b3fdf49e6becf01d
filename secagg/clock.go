package secagg

import (
	"fmt"
	"time"
)

// DefaultTimeout is how long the server's rounds last at most if a configuration does not say it. A
// client waits three times as long for the server's next message: a round's length for the others,
// and slack on either side.
const DefaultTimeout = 30 * time.Second

// watch holds the injected clock to its word: time does not go back, and does not leap over a whole
// round after a deadline.
type watch struct {
	now      func() time.Time
	timeout  time.Duration
	last     time.Time
	deadline time.Time
}

func newWatch(now func() time.Time, timeout time.Duration) (watch, error) {
	if now == nil {
		now = time.Now
	}
	if timeout < 0 {
		return watch{}, fmt.Errorf("%w: timeout = %v, must be positive (0 stands for the default)",
			ErrSession, timeout)
	}
	return watch{now: now, timeout: timeout}, nil
}

// start begins a round.
func (w *watch) start() {
	w.last = w.now()
	w.deadline = w.last.Add(w.timeout)
}

// look reads the clock. Passed says that the deadline is over.
func (w *watch) look() (passed bool, err error) {
	now := w.now()
	if now.Before(w.last) {
		return false, fmt.Errorf("%w: back by %v", ErrClock, w.last.Sub(now))
	}
	if late := now.Sub(w.deadline); late > w.timeout {
		return true, fmt.Errorf("%w: %v beyond the deadline of a round of %v", ErrClock, late, w.timeout)
	}
	w.last = now
	return now.After(w.deadline), nil
}
