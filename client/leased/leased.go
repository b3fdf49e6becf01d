// Package leased decides without a request: it follows the public plan of an experiment that declares leases, gives
// units their arms by it, and reports their exposures in the background. Begin with Follow.
//
// An exposure is handed over before Decide returns, and what is handed over is sent when the clock says so, and
// by nothing else. The guarantee rests on that: whether and when an exposure comes must not depend on what comes of
// it. So decide when a unit meets its arm, not when its reward is there.
//
// No unit and no key is in an error or a log of this package.
package leased

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sotto-dp/sotto/client"
	"github.com/sotto-dp/sotto/live/lease"
)

var (
	// ErrNoPlan: the plan has ended, and no other could be had. It matches client.ErrUnavailable. Show the usual arm.
	ErrNoPlan = fmt.Errorf("there is no plan that may be used: %w", client.ErrUnavailable)
	// ErrFull: as many exposures wait as may, since they could not be sent. Show the usual arm.
	ErrFull = errors.New("the queue of exposures is full")
	// ErrClosed: the plan is followed no more.
	ErrClosed = errors.New("the plan is followed no more")
	// ErrUnsent: it was closed before all exposures were taken.
	ErrUnsent = errors.New("not all exposures were sent")
)

// A Store keeps the arms of units that come back, so that a unit has the same under later plans. Its methods may be
// called by many goroutines, and should not wait for long: Decide waits for them.
type Store interface {
	Get(experiment, unit string) (arm string, ok bool)
	Put(experiment, unit, arm string)
}

// A Config says how a plan is followed. All but the Experiment may be left out.
type Config struct {
	Experiment string
	// Store keeps arms. Without, this process remembers the last 200 000 units or so: for units that come back after
	// that, or to another process, give one that lasts.
	Store Store
	// Every is how often exposures are sent, a second if it is 0. Size is how many may wait, 100 000 if it is 0.
	Every time.Duration
	Size  int
	// Log gets what was refused for good, by counts; nil for none.
	Log *slog.Logger
}

// A Decision is an arm for a unit.
type Decision struct {
	Arm        string
	Value      json.RawMessage // of the arm, as it was declared; its name if it has none
	Propensity float64         // the probability of the arm under the plan; 0 of a unit that comes back
	// Reason is split where the unit was decided now, sticky where it was before, static or disabled where nobody is
	// assigned, and default where the unit has not agreed to take part.
	Reason string
}

// The reasons of decisions.
const (
	Split   = "split"
	Sticky  = "sticky"
	Default = "default"
)

// A Follower follows the plan of one experiment. Its methods may be called by many goroutines.
type Follower struct {
	client *client.Client
	cfg    Config
	cancel context.CancelFunc
	done   sync.WaitGroup
	now    atomic.Pointer[current]

	mu     sync.Mutex
	wait   []client.Exposure
	closed bool
}

// A current plan is good until an instant of this machine's monotonic clock.
type current struct {
	lease.Plan
	tag   string
	until time.Time
}

// planWait is how long a request waits for another plan: below the timeout of the client's requests.
const planWait = 10 * time.Second

// Follow asks for the plan, and follows it until Close. It returns when the first one is there, or with an
// error; ctx ends nothing after that.
func Follow(ctx context.Context, c *client.Client, cfg Config) (*Follower, error) {
	if cfg.Every < 0 || cfg.Size < 0 {
		return nil, fmt.Errorf("%w: every is %v and size %d, must be at least 0", client.ErrRequest, cfg.Every, cfg.Size)
	}
	if cfg.Every == 0 {
		cfg.Every = time.Second
	}
	if cfg.Size == 0 {
		cfg.Size = 100_000
	}
	if cfg.Store == nil {
		cfg.Store = &memory{}
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	f := &Follower{client: c, cfg: cfg}
	if err := f.refresh(ctx, 0); err != nil {
		return nil, err
	}
	var running context.Context
	running, f.cancel = context.WithCancel(context.WithoutCancel(ctx))
	f.done.Go(func() { f.follow(running) })
	f.done.Go(func() { f.tell(running) })
	return f, nil
}

// Decide gives a unit its arm. The exposure of a unit that has none yet is on its way when it returns. An error
// says that nothing was decided: the caller shows its usual arm, and reports nothing.
func (f *Follower) Decide(unit string) (Decision, error) {
	p := f.now.Load()
	if !time.Now().Before(p.until) {
		return Decision{}, ErrNoPlan
	}
	if p.Reason != "" {
		return given(p.Arms[0], p.Reason), nil
	}
	if arm, was := f.cfg.Store.Get(f.cfg.Experiment, unit); was {
		for _, s := range p.Arms { // one that was removed is given no more
			if s.Arm == arm {
				d := given(s, Sticky)
				d.Propensity = 0
				return d, nil
			}
		}
	}
	s := p.Arms[p.Plan.Decide(unit)]
	if err := f.expose(client.Exposure{Experiment: f.cfg.Experiment, Unit: unit, Epoch: p.Epoch, Arm: s.Arm}); err != nil {
		return Decision{}, err
	}
	f.cfg.Store.Put(f.cfg.Experiment, unit, s.Arm)
	return given(s, Split), nil
}

// Without gives the arm of a unit that has not agreed to take part: the fallback. Nothing is kept of it, and nothing is
// reported.
func (f *Follower) Without() (Decision, error) {
	p := f.now.Load()
	if !time.Now().Before(p.until) {
		return Decision{}, ErrNoPlan
	}
	d := given(p.Without(), Default)
	d.Propensity = 1
	return d, nil
}

func given(s lease.Share, why string) Decision {
	return Decision{Arm: s.Arm, Value: s.Value, Propensity: s.Propensity(), Reason: why}
}

// expose hands an exposure over, if its form is right.
func (f *Follower) expose(v client.Exposure) error {
	if err := v.Check(); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.closed:
		return ErrClosed
	case len(f.wait) >= f.cfg.Size:
		return ErrFull
	}
	f.wait = append(f.wait, v)
	return nil
}

// Plan is the plan by which units are decided now.
func (f *Follower) Plan() lease.Plan { return f.now.Load().Plan }

// refresh asks for the plan, and waits so long for another than this one.
func (f *Follower) refresh(ctx context.Context, wait time.Duration) error {
	tag := ""
	if p := f.now.Load(); p != nil {
		tag = p.tag
	}
	got, err := f.client.Plan(ctx, f.cfg.Experiment, tag, wait)
	if err != nil || got.Text == nil {
		return err
	}
	now := time.Now()
	p, err := lease.Parse(got.Text)
	if err != nil {
		return fmt.Errorf("%w: %w", client.ErrAnswer, err)
	}
	if got.Sent.IsZero() {
		got.Sent = now
	}
	// what is left of it by the service's clock is left by ours, which need not agree
	f.now.Store(&current{p, got.Tag, now.Add(p.Until.Sub(got.Sent))})
	return nil
}

// follow has the plan of now, as long as it can be had.
func (f *Follower) follow(ctx context.Context) {
	const first, most = time.Second, 30 * time.Second
	pause := first
	for ctx.Err() == nil {
		from, before := time.Now(), f.now.Load()
		if err := f.refresh(ctx, planWait); err == nil {
			if pause = first; time.Since(from) >= first || f.now.Load() != before {
				continue
			}
		}
		sleep(ctx, pause)
		pause = min(2*pause, most)
	}
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// tell sends what waits, whenever the clock says so.
func (f *Follower) tell(ctx context.Context) {
	tick := time.NewTicker(f.cfg.Every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			_ = f.flush(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// flush sends what waits. What could not be taken waits on; what is refused is lost.
func (f *Follower) flush(ctx context.Context) error {
	f.mu.Lock()
	all := f.wait
	f.wait = nil
	f.mu.Unlock()
	for len(all) > 0 {
		n := min(len(all), client.MaxBatch)
		err := f.client.Expose(ctx, all[:n]...)
		if errors.Is(err, client.ErrUnavailable) || ctx.Err() != nil && err != nil {
			f.mu.Lock()
			f.wait = append(all, f.wait...)
			f.mu.Unlock()
			return err
		}
		if err != nil {
			f.cfg.Log.Error("exposures were refused, and are lost", "experiment", f.cfg.Experiment, "exposures", n, "error", err)
		}
		all = all[n:]
	}
	return nil
}

// Close decides no more, sends what waits, again if need be, and returns when all was taken. When ctx ends it gives
// up: the error matches ErrUnsent then, and says how many are lost.
func (f *Follower) Close(ctx context.Context) error {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.cancel()
	f.done.Wait()
	for {
		err := f.flush(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			f.mu.Lock()
			defer f.mu.Unlock()
			return fmt.Errorf("%w: %d are lost: %w", ErrUnsent, len(f.wait), context.Cause(ctx))
		}
		sleep(ctx, min(f.cfg.Every, time.Second))
	}
}

// A memory is a Store of the last units: two generations, the older of which is forgotten when the newer is full.
type memory struct {
	mu         sync.Mutex
	young, old map[string]string
}

// generation is how many units one has.
const generation = 100_000

// Get implements Store.
func (m *memory) Get(_, unit string) (string, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	arm, ok := m.young[unit]
	if !ok {
		if arm, ok = m.old[unit]; ok { // and stays as long as it comes
			m.put(unit, arm)
		}
	}
	return arm, ok
}

// Put implements Store.
func (m *memory) Put(_, unit, arm string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.put(unit, arm)
}

func (m *memory) put(unit, arm string) {
	if len(m.young) >= generation || m.young == nil {
		m.young, m.old = map[string]string{}, m.young
	}
	m.young[unit] = arm
}
