// Package private reports on decisions of a live experiment whose rewards its service is not to see
// (trust two-server or local). A Reporter asks for decisions, keeps what comes of each, and sends
// one report on each at the time that was fixed when it was made, whatever has happened: the
// outcome if there is one, and else the declared default. So neither that a report came nor when
// tells anything of the reward. Begin with New.
//
// # Who is believed
//
// What protects a reward is taken from the declaration alone, which the program has from elsewhere
// than the service: the helper's key, the task, the grid, the noise, the range. A service that says
// otherwise is refused (ErrTerms), and one that asks for a reward in the open gets none. The
// service says the ticket, the time and its own key: with these it can lose a report, and not open
// one. docs/two-servers.md says what is promised, and who is left to believe: this program itself.
//
// # What is lost
//
// What waits is in memory alone. A process that ends without Close reports nothing of it, and the
// declared default counts: that shows in the number of reports, and tells which process ended and
// nothing of rewards.
//
// No reward is in an error or a log of this package.
package private

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/sotto-dp/sotto/client"
	"github.com/sotto-dp/sotto/live/decl"
)

var (
	// ErrTerms: the service says something else of the experiment than its declaration.
	ErrTerms = errors.New("the service does not say what was declared")
	// ErrReported: the time of the decision's report has come, and it was made of what was known.
	ErrReported = errors.New("the decision was reported on")
	// ErrFull: as many reports wait as may.
	ErrFull = errors.New("as many reports wait as may")
	// ErrClosed: the reporter was closed.
	ErrClosed = errors.New("the reporter was closed")
	// ErrUnsent: the reporter was closed before all reports were taken.
	ErrUnsent = errors.New("not all reports were sent")
)

// A Config says how a Reporter works. Its zero value is a good one.
type Config struct {
	// Size is how many decisions may wait for their reports; 0 is 100 000, of about 1 KB each.
	Size int
	// First is the pause after a failure, which doubles with each up to Most, and is shortened at
	// random by up to a half; 0 is 1 s and 1 min.
	First, Most time.Duration
	// Log gets how many reports were refused or lost; nil for none.
	Log *slog.Logger
}

// A sealed report is what is sent on a decision. It is made once, and sent again as it is: two of
// one reward would tell more than one.
type sealed struct {
	ticket []byte
	value  int64  // of trust local
	report []byte // of two servers
}

// A sender reports under one trust model.
type sender interface {
	// check says what is not as declared.
	check(t *client.ReportTask) error
	// seal makes the report of a reward. An error that matches client.ErrUnavailable passes.
	seal(ctx context.Context, t *client.ReportTask, reward float64) (sealed, error)
	// send sends some, at most most(), and says how many were not taken. An error is for all of them.
	send(ctx context.Context, some []sealed) (refused int, err error)
	most() int
}

func newSender(c *client.Client, declared *decl.Experiment) (sender, error) {
	switch t := declared.TrustModel(); t {
	case "local":
		return newLocal(c, declared)
	case "two-server":
		return newTwoServer(c, declared)
	default:
		return nil, fmt.Errorf("private: experiment %q: trust is %s, must be two-server or local",
			declared.Name, t)
	}
}

// A Reporter decides and reports for one experiment. Its methods may be called by many goroutines.
type Reporter struct {
	client   *client.Client
	declared *decl.Experiment
	sender   sender
	cfg      Config
	wake     chan struct{}
	done     chan struct{}
	cancel   context.CancelFunc

	mu       sync.Mutex
	all      map[string]*entry // by ticket
	queue    queue             // all of them, by what is to be done next
	held     int               // of these, those that are not answered
	asking   int               // decisions that are being asked for
	paused   time.Time         // nothing is sent before
	failures int
	closed   bool
}

// An entry is a decision. When its report is answered it is kept for a while, so that the same
// decision given again is not reported on again.
type entry struct {
	name   string // its ticket
	task   *client.ReportTask
	at     time.Time // when something is to be done
	end    time.Time // when its report is given up, and then it itself
	reward float64
	taken  bool // its report has been begun
	sealed *sealed
	sent   bool
}

// New starts a reporter for an experiment, as it was declared. Close ends it.
func New(c *client.Client, declared *decl.Experiment, cfg Config) (*Reporter, error) {
	if err := declared.Check(); err != nil {
		return nil, fmt.Errorf("private: %w", err)
	}
	if cfg.Size < 0 {
		return nil, fmt.Errorf("private: size is %d, must be at least 1, or 0", cfg.Size)
	}
	if cfg.Size == 0 {
		cfg.Size = 100_000
	}
	if cfg.First == 0 {
		cfg.First = time.Second
	}
	if cfg.Most == 0 {
		cfg.Most = max(cfg.First, time.Minute)
	}
	if cfg.First < 0 || cfg.Most < cfg.First {
		return nil, fmt.Errorf("private: first is %v and most %v, must be positive, and most the larger one",
			cfg.First, cfg.Most)
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	s, err := newSender(c, declared)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &Reporter{client: c, declared: declared, sender: s, cfg: cfg, wake: make(chan struct{}, 1),
		done: make(chan struct{}), cancel: cancel, all: map[string]*entry{}}
	go r.run(ctx)
	return r, nil
}

// A Decision is an arm for a unit, and is reported on by its Reporter.
type Decision struct {
	client.Decision
	of *Reporter
	on *entry // nil if the decision does not count
}

// Decide asks for an arm, once, and has it reported on. Errors are those of client.Client.Decide,
// or match ErrTerms, ErrFull or ErrClosed: the usual arm is shown then, and nothing is reported.
func (r *Reporter) Decide(ctx context.Context, unit client.Unit) (Decision, error) {
	d, err := r.decide(ctx, unit)
	if err != nil {
		return Decision{}, fmt.Errorf("private: experiment %q: %w", r.declared.Name, err)
	}
	return d, nil
}

func (r *Reporter) decide(ctx context.Context, unit client.Unit) (Decision, error) {
	r.mu.Lock()
	switch {
	case r.closed:
		r.mu.Unlock()
		return Decision{}, ErrClosed
	case r.held+r.asking >= r.cfg.Size:
		r.mu.Unlock()
		return Decision{}, ErrFull
	}
	r.asking++
	r.mu.Unlock()
	before := time.Now()
	got, err := r.client.Decide(ctx, r.declared.Name, unit)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asking--
	if err != nil {
		return Decision{}, err
	}
	if got.Token == "" && got.Report == nil { // it does not count
		return Decision{Decision: got}, nil
	}
	if err := r.check(got.Report); err != nil {
		return Decision{}, fmt.Errorf("%w: %w", ErrTerms, err)
	}
	if r.closed {
		return Decision{}, ErrClosed
	}
	name := string(got.Report.Ticket)
	e := r.all[name]
	if e == nil {
		due := before.Add(got.Report.After)
		e = &entry{name: name, task: got.Report, at: due, end: due.Add(r.declared.Window),
			reward: r.declared.Default}
		r.all[name] = e
		r.held++
		heap.Push(&r.queue, e)
		r.kick()
	}
	return Decision{got, r, e}, nil
}

func (r *Reporter) check(t *client.ReportTask) error {
	lo, hi := r.declared.Range()
	switch trust := string(r.declared.TrustModel()); {
	case t == nil:
		return fmt.Errorf("it wants rewards in the open, and trust is declared as %s", trust)
	case t.Trust != trust:
		return fmt.Errorf("trust is declared as %s, and is another one", trust)
	case t.Lo != lo || t.Hi != hi || t.Default != r.declared.Default:
		return fmt.Errorf("range is declared as [%v, %v] and default as %v, and they are others", lo, hi,
			r.declared.Default)
	case t.After > r.declared.Window:
		return fmt.Errorf("window is declared as %v, and reports are due later", r.declared.Window)
	}
	return r.sender.check(t)
}

// Outcome says what came of the decision, a finite number; the last word before the report's time
// counts. It sends nothing. ErrReported says that it comes too late. Of a decision that does not
// count nothing is kept.
func (d Decision) Outcome(reward float64) error {
	if math.IsNaN(reward) || math.IsInf(reward, 0) {
		return fmt.Errorf("private: %w: reward must be a finite number", client.ErrRequest)
	}
	if d.on == nil {
		return nil
	}
	d.of.mu.Lock()
	defer d.of.mu.Unlock()
	if d.on.taken || !time.Now().Before(d.on.at) {
		return fmt.Errorf("private: experiment %q: %w", d.of.declared.Name, ErrReported)
	}
	d.on.reward = reward
	return nil
}

// Close takes no more decisions, and reports at once on all that wait, with what is known of them:
// call it when the program ends, and not because of what came of a decision. It returns when all
// was answered. When ctx ends it gives up: the error matches ErrUnsent, and says how many are lost.
func (r *Reporter) Close(ctx context.Context) error {
	r.mu.Lock()
	r.closed, r.paused = true, time.Time{}
	r.mu.Unlock()
	r.kick()
	select {
	case <-r.done:
	case <-ctx.Done():
	}
	r.cancel()
	<-r.done
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held > 0 {
		return fmt.Errorf("private: experiment %q: %w: %d are lost: %w", r.declared.Name, ErrUnsent, r.held,
			context.Cause(ctx))
	}
	return nil
}

func (r *Reporter) kick() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// run sends what is due, until the reporter is closed and all was answered, or ctx ends.
func (r *Reporter) run(ctx context.Context) {
	defer close(r.done)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		some, next, ended := r.next(time.Now())
		switch {
		case ended:
			return
		case len(some) > 0:
			r.report(ctx, some)
			continue
		}
		timer.Reset(next)
		select {
		case <-timer.C:
		case <-r.wake:
		case <-ctx.Done():
		}
	}
}

// next takes some that are due, and else says when it is worth to look again.
func (r *Reporter) next(now time.Time) (some []*entry, wait time.Duration, ended bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed && r.held == 0 {
		return nil, 0, true
	}
	if d := r.paused.Sub(now); d > 0 {
		return nil, d, false
	}
	wait = time.Hour
	for len(r.queue) > 0 && len(some) < r.sender.most() {
		e := r.queue[0]
		if d := e.at.Sub(now); d > 0 && !r.closed {
			wait = d
			break
		}
		heap.Pop(&r.queue)
		if e.sent {
			delete(r.all, e.name)
			continue
		}
		e.taken = true
		some = append(some, e)
	}
	return some, wait, false
}

// report reports on some, and has them come again if they cannot be taken now.
func (r *Reporter) report(ctx context.Context, some []*entry) {
	refused, err := r.try(ctx, some)
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	lost := refused
	if again := ctx.Err() != nil || errors.Is(err, client.ErrUnavailable); again {
		r.paused = now.Add(r.backOff(err))
		r.failures++
		kept := some[:0:0]
		for _, e := range some {
			if ctx.Err() == nil && now.After(e.end) {
				lost++
				delete(r.all, e.name)
				continue
			}
			heap.Push(&r.queue, e)
			kept = append(kept, e)
		}
		r.held -= len(some) - len(kept)
	} else {
		r.failures = 0
		if err != nil {
			lost = len(some)
		}
		r.held -= len(some)
		for _, e := range some {
			e.sent, e.sealed, e.task, e.at = true, nil, nil, e.end
			heap.Push(&r.queue, e)
		}
	}
	if lost > 0 {
		r.cfg.Log.Error("reports were refused, and are lost", "experiment", r.declared.Name, "reports",
			lost, "error", err)
	}
}

func (r *Reporter) try(ctx context.Context, some []*entry) (refused int, err error) {
	out := make([]sealed, len(some))
	for i, e := range some {
		if e.sealed == nil { // nobody else has an entry that was taken
			s, err := r.sender.seal(ctx, e.task, e.reward)
			if err != nil {
				return 0, err
			}
			e.sealed, e.reward = &s, 0
		}
		out[i] = *e.sealed
	}
	return r.sender.send(ctx, out)
}

// backOff is the pause after so many failures before this one.
func (r *Reporter) backOff(err error) time.Duration {
	d := r.cfg.Most
	if r.failures < 30 && r.cfg.First<<r.failures>>r.failures == r.cfg.First {
		d = min(d, r.cfg.First<<r.failures)
	}
	var refused *client.Error
	if errors.As(err, &refused) {
		d = min(max(d, refused.RetryAfter), r.cfg.Most)
	}
	return d/2 + rand.N(d/2+1)
}

// A queue is entries by their time.
type queue []*entry

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].at.Before(q[j].at) }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)        { *q = append(*q, x.(*entry)) }
func (q *queue) Pop() any {
	last := len(*q) - 1
	e := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	return e
}
