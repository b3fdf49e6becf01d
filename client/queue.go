package client

import (
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

var (
	// ErrFull: the queue has as many rewards as it may hold, and took none more.
	ErrFull = errors.New("the queue of rewards is full")
	// ErrClosed: the queue was closed.
	ErrClosed = errors.New("the queue of rewards is closed")
	// ErrUnsent: the queue was closed before all of its rewards were taken.
	ErrUnsent = errors.New("not all rewards were sent")
)

// A QueueConfig says how a Queue works. Its zero value is a good one.
type QueueConfig struct {
	// Size is how many rewards may wait, those that are being sent included; 0 is 100 000, of
	// about 150 bytes each.
	Size int
	// Batch is how many are sent at once, at most MaxBatch; 0 is 500.
	Batch int
	// First is the pause after a failure, which doubles with each up to Most, and is shortened at
	// random by up to a half; 0 is 100 ms and 30 s.
	First, Most time.Duration
	// Log gets what was refused for good, by counts, without rewards and units; nil for none.
	Log *slog.Logger
}

// A Queue sends rewards and events in the background. It sends what waits as soon as the last batch was
// answered, so that batches grow with the traffic. What the service cannot take now is sent again,
// and nothing else is: what was refused is counted in the log. Of events that are refused together, for the
// form of one or as too many, each half is sent by itself. What waits is in memory alone, and lost if the
// process ends without Close: the service counts the default for it.
type Queue struct {
	client *Client
	cfg    QueueConfig
	wake   chan struct{}
	done   chan struct{}
	cancel context.CancelFunc

	mu     sync.Mutex
	order  []string            // experiments with rewards that wait, the next one first; empty for events
	wait   map[string][]Report // of each
	held   int                 // of all
	closed bool
}

// Queue starts a queue. Close ends it.
func (c *Client) Queue(cfg QueueConfig) (*Queue, error) {
	for _, x := range []struct {
		name       string
		value, max int
	}{{"size", cfg.Size, 1 << 30}, {"batch", cfg.Batch, MaxBatch}} {
		if x.value < 0 || x.value > x.max {
			return nil, fmt.Errorf("%w: %s is %d, must be from 1 to %d, or 0", ErrRequest, x.name, x.value,
				x.max)
		}
	}
	if cfg.Size == 0 {
		cfg.Size = 100_000
	}
	if cfg.Batch == 0 {
		cfg.Batch = 500
	}
	if cfg.First == 0 {
		cfg.First = 100 * time.Millisecond
	}
	if cfg.Most == 0 {
		cfg.Most = max(cfg.First, 30*time.Second)
	}
	if cfg.First < 0 || cfg.Most < cfg.First {
		return nil, fmt.Errorf("%w: first is %v and most %v, must be positive, and most the larger one",
			ErrRequest, cfg.First, cfg.Most)
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithCancel(context.Background())
	q := &Queue{client: c, cfg: cfg, wake: make(chan struct{}, 1), done: make(chan struct{}),
		cancel: cancel, wait: map[string][]Report{}}
	go q.run(ctx)
	return q, nil
}

// Add has a reward sent, and does not wait. Errors match ErrFull, ErrClosed or ErrRequest.
func (q *Queue) Add(experiment, decision string, reward float64) error {
	return q.AddReport(experiment, Report{Decision: decision, Reward: reward})
}

// AddReport is Add for all that a report can have. One that is sent again has the same ID.
func (q *Queue) AddReport(experiment string, r Report) error {
	if experiment == "" {
		return fmt.Errorf("%w: experiment must be a name", ErrRequest)
	}
	if _, err := r.json(); err != nil {
		return fmt.Errorf("experiment %q: %w", experiment, err)
	}
	return q.add(experiment, r)
}

// add has a report wait, or an event, of no experiment.
func (q *Queue) add(experiment string, r Report) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return ErrClosed
	case q.held >= q.cfg.Size:
		return ErrFull
	}
	q.put(experiment, []Report{r})
	q.held++
	q.kick()
	return nil
}

// Track has an event sent, and does not wait. It is sent with an ID, since it may be sent again: one of its own
// if it has none. Errors match ErrFull, ErrClosed or ErrRequest.
func (q *Queue) Track(v Event) error {
	if v.ID == "" {
		v.ID = crand.Text()
	}
	if err := v.Check(); err != nil {
		return err
	}
	return q.add("", Report{event: &v})
}

// put has reports wait; the caller holds the lock.
func (q *Queue) put(experiment string, reports []Report) {
	if len(q.wait[experiment]) == 0 {
		q.order = append(q.order, experiment)
	}
	q.wait[experiment] = append(q.wait[experiment], reports...)
}

func (q *Queue) kick() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// Close takes no more, sends what waits, again if need be, and returns when all was answered. When
// ctx ends it gives up: the error matches ErrUnsent then, and says how many are lost.
func (q *Queue) Close(ctx context.Context) error {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.kick()
	select {
	case <-q.done:
	case <-ctx.Done():
	}
	q.cancel()
	<-q.done
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.held > 0 {
		return fmt.Errorf("%w: %d are lost: %w", ErrUnsent, q.held, context.Cause(ctx))
	}
	return nil
}

// next takes a batch of the experiment that has waited longest.
func (q *Queue) next() (experiment string, batch []Report, ended bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.order) == 0 {
		return "", nil, q.closed
	}
	experiment = q.order[0]
	q.order = q.order[1:]
	all := q.wait[experiment]
	n := min(len(all), q.cfg.Batch)
	batch = all[:n:n]
	delete(q.wait, experiment)
	if n < len(all) {
		q.put(experiment, all[n:])
	}
	return experiment, batch, false
}

// run sends until the queue is closed and empty, or ctx ends.
func (q *Queue) run(ctx context.Context) {
	defer close(q.done)
	failures := 0
	for ctx.Err() == nil {
		experiment, batch, ended := q.next()
		if ended {
			return
		}
		if len(batch) == 0 {
			select {
			case <-q.wake:
			case <-ctx.Done():
			}
			continue
		}
		done, again := q.send(ctx, experiment, batch)
		q.mu.Lock()
		if again != nil {
			q.put(experiment, batch[done:]) // behind the others, whose experiments may be better off
		}
		q.held -= done
		closed := q.closed
		q.mu.Unlock()
		if again == nil {
			failures = 0
			continue
		}
		q.pause(ctx, q.backOff(failures, again), closed)
		failures++
	}
}

// send sends a batch, and says how many of it, from the first on, were answered; an error says that the others
// are to be sent again.
func (q *Queue) send(ctx context.Context, experiment string, batch []Report) (done int, again error) {
	var results []Result
	var err error
	if experiment == "" {
		events := make([]Event, len(batch))
		for i, r := range batch {
			events[i] = *r.event
		}
		err = q.client.Track(ctx, events...)
	} else {
		results, err = q.client.Rewards(ctx, experiment, batch)
	}
	if errors.Is(err, ErrUnavailable) || ctx.Err() != nil && err != nil {
		return 0, err
	}
	if half := len(batch) / 2; half > 0 && experiment == "" && isForAll(err) {
		if done, again = q.send(ctx, experiment, batch[:half]); again != nil {
			return done, again
		}
		done, again = q.send(ctx, experiment, batch[half:])
		return half + done, again
	}
	if err != nil {
		q.lost(experiment, len(batch), err)
		return len(batch), nil
	}
	var first error
	bad := 0
	for _, r := range results {
		if r.Err != nil {
			bad++
			first = r.Err
		}
	}
	if bad > 0 {
		q.lost(experiment, bad, first)
	}
	return len(batch), nil
}

// isForAll says that a request was refused for what one of its events may be, or for how many they are.
func isForAll(err error) bool {
	var refused *Error
	return errors.As(err, &refused) &&
		(refused.Status == http.StatusBadRequest || refused.Status == http.StatusRequestEntityTooLarge)
}

// lost logs how many were refused.
func (q *Queue) lost(experiment string, n int, err error) {
	if experiment == "" {
		q.cfg.Log.Error("events were refused, and are lost", "events", n, "error", err)
		return
	}
	q.cfg.Log.Error("rewards were refused, and are lost", "experiment", experiment, "rewards", n, "error", err)
}

// backOff is the pause after so many failures before this one.
func (q *Queue) backOff(failures int, err error) time.Duration {
	d := q.cfg.Most
	if failures < 30 && q.cfg.First<<failures>>failures == q.cfg.First {
		d = min(d, q.cfg.First<<failures)
	}
	var refused *Error
	if errors.As(err, &refused) {
		d = min(max(d, refused.RetryAfter), q.cfg.Most)
	}
	return d/2 + rand.N(d/2+1)
}

// pause waits. Who is closing does not wait for the rest of a pause that began before.
func (q *Queue) pause(ctx context.Context, d time.Duration, closed bool) {
	t := time.NewTimer(d)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			return
		case <-ctx.Done():
			return
		case <-q.wake:
			q.mu.Lock()
			now := q.closed
			q.mu.Unlock()
			if now && !closed {
				return
			}
		}
	}
}
