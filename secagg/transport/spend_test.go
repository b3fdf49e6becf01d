package transport

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/sotto-dp/sotto/secagg"
)

// What fails after a client's masked message has left, or after the server has asked for the shares
// that open the sum, is possibly released; what fails before is not. What is to be written down is
// written down before anything leaves.
func TestPossiblyReleased(t *testing.T) {
	t.Parallel()
	errFull := errors.New("disk full")
	for _, mode := range []secagg.Mode{secagg.SemiHonest, secagg.Malicious} {
		for _, c := range []struct {
			name           string
			server, client func(cancel func()) func() error
			// What the server says, whether it is possibly released; and the same of clients.
			serverErr, clientErr error
			opened, left         bool
		}{
			{"no fault", nil, nil, nil, nil, true, true},
			{"the server cannot write it down", func(func()) func() error {
				return func() error { return errFull }
			}, nil, errFull, nil, false, true},
			{"the server stops when it opens", func(cancel func()) func() error {
				return func() error { cancel(); return nil }
			}, nil, context.Canceled, ErrStopped, true, true},
			{"clients cannot write it down", nil, func(func()) func() error {
				return func() error { return errFull }
			}, secagg.ErrTooFew, errFull, false, false},
		} {
			t.Run(mode.String()+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, 5, mode)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var sent atomic.Int32
				var early atomic.Bool
				address, out := w.serve(ctx, func(cfg *ServerConfig) {
					cfg.Spend = func() error {
						if sent.Load() != 5 {
							early.Store(true)
						}
						if c.server == nil {
							return nil
						}
						return c.server(cancel)()
					}
				})
				errs := w.joinAll(t.Context(), address, func(id uint32, cfg *ClientConfig) {
					cfg.Spend = func() error {
						if c.client != nil {
							return c.client(cancel)()
						}
						sent.Add(1)
						return nil
					}
				})
				r := <-out
				failed := c.serverErr != nil
				if !errors.Is(r.err, c.serverErr) || errors.Is(r.err,
					ErrPossiblyReleased) != (failed && c.opened) {
					t.Errorf("the server: %v, want %v, possibly released %v", r.err, c.serverErr,
						failed && c.opened)
				}
				for id, err := range errs {
					if !failed && err == nil {
						continue
					}
					if c.clientErr != nil && !errors.Is(err, c.clientErr) ||
						errors.Is(err, ErrPossiblyReleased) != c.left || c.left &&
						Name(err) != "possibly released" {
						t.Errorf("client %d: %v, want %v, possibly released %v", id, err, c.clientErr, c.left)
					}
				}
				if early.Load() {
					t.Error("the server opens before all have spent")
				}
			})
		}
	}
}
