// Package serve is the decision service without its front: private bandits on live people. An
// Engine holds experiments, each a play.Live with its policy and its curator, on a store; it hands
// out decisions as tokens, takes rewards, releases what is due, and is whole again after a crash.
// Begin with Open.
//
// # What is promised
//
// To a unit whose rewards these are: what everybody can see, decisions, answers, counts, released
// sums and when they appear, depends on them by the releases alone, at the price that the
// experiment's budget says. An answer to a report depends on its own decision's public clock and
// on nothing else: a reward that counts and one that came before have one answer, after one commit.
// Releases are closed and shown on public ticks, see Tick. Time between ticks, under load, is
// outside of the promise; so is whoever reads the store's files or the process's memory.
//
// Where an experiment's trust is not central, the service holds no reward: the same is promised to a
// unit against the service itself, as far as its trust model says (docs/two-servers.md).
//
// To the operator: an accepted reward is durable. A reward that was answered with ErrUnavailable
// may be sent again. A decision is told before it is durable, and one that is lost by a crash is
// void: its number is issued again in another epoch, so that counts stay exact.
package serve

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/live/serve/store"
	"github.com/sotto-dp/sotto/play"
	"github.com/sotto-dp/sotto/release"
)

// Experiment is the declaration of a live experiment.
type Experiment = decl.Experiment

var (
	// ErrNotFound: there is no experiment of this name.
	ErrNotFound = errors.New("there is no such experiment")
	// ErrExists: there is one already, or was.
	ErrExists = errors.New("the name is taken")
	// ErrState: the experiment is in a state that does not allow it.
	ErrState = errors.New("the experiment's state does not allow it")
	// ErrUnit: the decision must name a unit, or names one that is too long.
	ErrUnit = errors.New("unit")
	// ErrForce: the arm that is asked for is none of the experiment's.
	ErrForce = errors.New("force must be the name of one of the experiment's arms")
	// ErrContextual: the experiment has no arms; its decisions are asked for with Rank.
	ErrContextual = errors.New("the experiment is contextual: it has no arms to decide for, and ranks " +
		"the actions of each event")
	// ErrToken: the token is not one of this experiment, or was changed.
	ErrToken = errors.New("the decision is not one of this experiment")
	// ErrUnavailable: nothing can be written now, or nothing is any more. What was asked may or may
	// not have been done: it can be asked again.
	ErrUnavailable = errors.New("the service cannot write now")
	// ErrReadOnly: the engine only reads, see Config.
	ErrReadOnly = errors.New("this service only reads")
)

// A Config is what an Engine is made of.
type Config struct {
	// Store opens the store, also again after an error.
	Store func(context.Context) (store.Store, error)
	// Clock tells the time; nil is time.Now. What has a monotonic reading is believed to pass,
	// whatever the wall clock does; without, the time never goes back.
	Clock func() time.Time
	// Outage is how long nobody has written at most before a start, as far as one clock is believed: an
	// hour at least. If it says more, time goes on from the last commit, unless the store's own clock, which
	// is another machine's, says the same.
	Outage time.Duration
	// Curator builds the curators; nil is release.Real, or release.RealGathered where rewards are
	// gathered that the service does not see.
	Curator func(release.Config) (release.Curator, error)
	// VectorCurator builds those of experiments with contexts, whose rules' are Curator's; nil is
	// release.RealFeatures.
	VectorCurator func(release.FeatureConfig) (release.FeatureCurator, error)
	// HelperSecret is what the leader and the helper of an experiment with trust two-server share, by
	// the experiment's name: dap.SecretSize random bytes at least, nil if there is none. Without one
	// it cannot be started, and one that was waits.
	HelperSecret func(experiment string) []byte
	// Cohorts is where the sessions of experiments with trust secagg are held; nil is nowhere: then
	// none can be started, and one that was waits.
	Cohorts *Cohorts
	// PersonCap is what all experiments may cost one person; nil goes by what the last start was under.
	PersonCap *PersonCap
	// Catalog has the policies by name; the zero value those of Sotto.
	Catalog catalog.Catalog
	// Log gets what went wrong, never a reward; nil for none.
	Log *slog.Logger
	// Holder names the process in the store, for people to read.
	Holder string
	// Advertise is where other processes on a Shared store reach this one, such as
	// http://10.0.0.7:8080; without it they cannot.
	Advertise string
	// Meter, if set, is told what happens.
	Meter Meter
	// ReadOnly shows what is in the store when it is opened, and writes and decides
	// nothing. The store should be one that only reads too (store.SQLiteReader): any other
	// takes the database over.
	ReadOnly bool

	shares *Shares // nil: the store has all experiments
	share  int     // which of them it is

	hookPause   time.Duration // after a webhook's first failure; 0: a second
	gatherPause time.Duration // after the first time that a sum could not be gathered; 0: a second

	wall   func() time.Time                 // nil: Clock; of tests, where Clock is nil
	random io.Reader                        // nil: the operating system's
	hook   func(at string)                  // of tests: called at named points
	clocks func(share int) func() time.Time // of tests: Clock, of one of many shares
	// of tests: what the account goes by, changed
	account func([]standing) []standing
}

// A Meter counts what happens inside of an engine, for whoever runs it: all of it tells who
// reported, and when. Its methods are called by many goroutines.
type Meter interface {
	// Rewarded: so many rewards of an experiment were answered with a status.
	Rewarded(experiment string, s Status, n int)
	// Committed: a commit took so long, and failed if there is an error.
	Committed(took time.Duration, err error)
}

// A Status answers a reward. All of them are answers, none is an error.
type Status string

// The statuses of a reward.
const (
	Accepted Status = "accepted" // it counts, or one for this decision did before
	Late     Status = "late"     // the window has passed
	// the decision was lost before it was durable, or the experiment has stopped
	Void      Status = "void"
	OverLimit Status = "over_limit" // the unit had all its assignments before the decision
	// of a forced decision, which does not count: whether all that was reported is in its declared range
	InRange Status = "in_range"
	Clipped Status = "clipped"
)

// A Reason says why a decision gives its arm.
type Reason string

// The reasons of a decision.
const (
	Split Reason = "split" // the policy's choice, or the floor's: it counts
	// the unit's last arm, or the fallback if that was taken off: it has all its assignments, and
	// this does not count; or the fallback, since its person has all decisions
	Limit Reason = "over_limit"
	// the experiment has stopped, and this arm was kept; or its decisions have ended, and this is given meanwhile
	Static   Reason = "static"
	Disabled Reason = "disabled" // the experiment does not run, and this is the fallback
	// the experiment is not for this unit or this context, and this is the fallback
	Default Reason = "default"
	// the experiment's holdout holds the unit, in every state, and this is the fallback
	Holdout Reason = "holdout"
	Forced  Reason = "forced" // the arm that was asked for, to look at it; who reports on it is told of clipping
)

// A Decision is an arm for a unit.
type Decision struct {
	Token string // to report with; empty if it does not count and was not forced
	// Report is how to report where nobody is to see the reward; nil where it comes in the open.
	Report     *ReportTask
	Arm        int
	Name       string          // of the arm
	Value      json.RawMessage // of the arm: its name, if it was declared without one
	Propensity float64         // the probability that it had when it was made
	Expires    time.Time       // when the window of its reward has passed; zero without a token
	// ActivateBy is when it can be activated no more; zero where it counts at once.
	ActivateBy time.Time
	Reason     Reason
}

// An Ask is what a decision is asked for with.
type Ask struct {
	Unit string // may be empty if the experiment is not sticky
	// Person is whose decision it is, where the experiment counts them by person; others do not look at it.
	Person string
	// Context is public, and used to see whether the experiment is for the unit. It is not kept.
	Context map[string]any
	// NoConsent: the unit has not agreed to take part. It is given the fallback, in every state; it is
	// not looked up, and nothing is kept.
	NoConsent bool
	// Force is the name of the arm that is wanted, to look at it: such a decision counts nothing,
	// says nothing of the unit, and is given in every state. Empty for a decision that counts.
	Force string
	hold  hold // what the experiment's holdout says of the unit
}

// A Report is the reward of a decision.
type Report struct {
	Token  string
	Reward float64 // clipped to the declared range; what is no number counts as the lowest
}

// An Outcome is a report with the metrics of its decision.
type Outcome struct {
	Report
	// Metrics are by name; those that are not in it, and what is no number, count as their defaults.
	Metrics map[string]float64
	// ID tells the reports of one decision apart, where all of them count (decl.Experiment.AddsUp): one of
	// the same id counts once. A reward that is NaN then is not in the report.
	ID string
}

// A Result answers a report: a status, or ErrToken.
type Result struct {
	Status Status
	Err    error
}

// An Engine serves experiments. Its methods may be called by many goroutines.
type Engine struct {
	cfg Config

	clock struct {
		own  bool         // nobody has given another
		base atomic.Int64 // milliseconds
		from time.Time    // which was this reading
		last atomic.Int64
		// there was a store's time: what was said of the time before is no time that goes on
		caught atomic.Bool
	}

	mu     sync.RWMutex // of what follows
	byName map[string]*served
	nextID int64
	keys   []store.Record
	// closed, and another put in its place, when keys become others
	rekeyed chan struct{}
	// signs the names of browsers' units
	cookies []byte

	queue struct {
		sync.Mutex
		jobs   []*job
		closed error // why nothing can be written
	}
	wake chan struct{}
	stop context.CancelFunc
	// who tells webhooks, and who gathers sums
	hooks, gatherings sync.WaitGroup
	done              chan struct{}

	writer
	node
}

// A job is what the writer does for somebody who waits.
type job struct {
	on      *served
	at      int64 // when it came
	reports []reported
	results []Result
	// instead of reports; jobs are taken in the order in which they came
	exposures []Exposure
	// instead of reports; what it writes is in the commit. x is on as it is now, nil if on is.
	act   func(x *served, c *store.Commit, now int64) error
	after func() // once that is durable
	all   bool   // everybody is looked at
	// there is a commit, whatever there is to write
	durable bool
	err     error
	done    chan struct{}
}

type reported struct {
	ticket           // of an event it is found when it is taken
	event  *happened // nil of what has a token
	what   reporting
	id     string
	reward float64
	// by metric, NaN where there is none
	metrics []float64
	row     []byte // to be kept, of what is hidden
	result  int    // its place in results
}

// Open opens the store, takes it over, and goes on with all that is in it. If the store is Shared and
// somebody else writes, the engine watches it, and takes over when it does no more.
func Open(ctx context.Context, cfg Config) (*Engine, error) {
	if cfg.Store == nil {
		return nil, errors.New("serve: store is missing")
	}
	own := cfg.Clock == nil
	if own {
		cfg.Clock = time.Now
	}
	if cfg.wall == nil {
		cfg.wall = cfg.Clock
	}
	cfg.Outage = max(cfg.Outage, agree)
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.random == nil {
		cfg.random = rand.Reader
	}
	cfg.random = &oneByOne{from: cfg.random}
	if cfg.hookPause == 0 {
		cfg.hookPause = time.Second
	}
	if cfg.gatherPause == 0 {
		cfg.gatherPause = time.Second
	}
	if cfg.hook == nil {
		cfg.hook = func(string) {}
	}
	e := &Engine{cfg: cfg, wake: make(chan struct{}, 1), done: make(chan struct{}), rekeyed: make(chan struct{})}
	e.superseded = make(chan struct{})
	e.debts.of, e.debts.due = map[*served]struct{}{}, time.NewTimer(markEvery)
	e.clock.own, e.clock.from = own, cfg.Clock()
	e.clock.base.Store(e.clock.from.UnixMilli())
	cfg.shares.enter(e)
	st, err := cfg.Store(ctx)
	if err != nil {
		return nil, fmt.Errorf("serve: %w", err)
	}
	if shared, ok := st.(store.Shared); ok && !cfg.ReadOnly {
		err = e.join(ctx, shared)
	} else {
		err = e.takeOver(ctx, st)
	}
	if err != nil {
		return nil, err
	}
	if cfg.ReadOnly {
		e.queue.closed, e.stop = ErrReadOnly, func() {}
		close(e.done)
		return e, nil
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	e.stop = stop
	go e.run(running)
	return e, nil
}

// oneByOne is a reader for many goroutines.
type oneByOne struct {
	mu   sync.Mutex
	from io.Reader
}

func (r *oneByOne) Read(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.from.Read(b)
}

// Close writes what is to be written, stops the engine and closes the store.
func (e *Engine) Close() error {
	var err error
	if out := e.out.Load(); !e.cfg.ReadOnly && !out && (!e.shared || e.Ready() == nil) {
		e.out.Store(e.cfg.shares != nil) // others go on, so that what is answered is in what is written
		err = e.Sync(context.Background())
	}
	e.stop()
	<-e.done
	e.hooks.Wait()
	e.gatherings.Wait()
	if e.store != nil {
		if e.shared {
			e.confirm(time.Time{})
			e.end()
		}
		err = errors.Join(err, e.store.Close())
		e.store = nil
	}
	return err
}

// now is the time in milliseconds. It never goes back, and not either over a restart.
func (e *Engine) now() int64 {
	caught := e.clock.caught.Load()
	t := e.clock.base.Load() + e.cfg.Clock().Sub(e.clock.from).Milliseconds()
	if !caught {
		return t
	}
	for {
		last := e.clock.last.Load()
		if t <= last {
			return last
		}
		if e.clock.last.CompareAndSwap(last, t) {
			return t
		}
	}
}

// Ready says whether rewards can be taken: nil, or an error that matches ErrUnavailable or
// ErrReadOnly.
func (e *Engine) Ready() error {
	e.queue.Lock()
	defer e.queue.Unlock()
	return e.queue.closed
}

// catchUp brings the time to that of a store: to what is believed, if nothing was done yet by a time that this
// engine had from there, and to the last commit's at least.
func (e *Engine) catchUp(opened store.Opened) {
	t := e.clock.base.Load() + e.cfg.Clock().Sub(e.clock.from).Milliseconds()
	to := t
	if e.clock.own && e.clock.last.Load() == 0 {
		to = e.believed(opened)
	}
	e.clock.base.Add(max(to, opened.Now) - t)
	e.clock.caught.Store(true)
}

// find is an experiment, where this engine may answer for it.
func (e *Engine) find(name string) (*served, error) {
	if !e.here() {
		return nil, errElsewhere
	}
	return e.lookup(name)
}

func (e *Engine) lookup(name string) (*served, error) {
	e.mu.RLock()
	x := e.byName[name]
	e.mu.RUnlock()
	if x == nil {
		return nil, fmt.Errorf("experiment %q: %w", name, ErrNotFound)
	}
	return x, nil
}

// Decide gives a unit an arm: DecideFor, without a context.
func (e *Engine) Decide(ctx context.Context, name, unit string) (Decision, error) {
	return e.DecideFor(ctx, name, Ask{Unit: unit})
}

// DecideFor gives who asks an arm. It waits for nothing but the experiment's other decisions.
func (e *Engine) DecideFor(ctx context.Context, name string, ask Ask) (Decision, error) {
	x, err := e.writable(ctx, name)
	if err != nil {
		return Decision{}, err
	}
	ask.hold = e.hold(x, ask.Unit)
	d, err := x.decide(ask, e.now())
	if err != nil {
		return d, fmt.Errorf("experiment %q: %w", name, err)
	}
	if err := e.still(x); err != nil {
		return Decision{}, err
	}
	return d, nil
}

// still is nil if what was decided for an experiment, of before this call, is of the one that there is: it
// may have been given away, or read again, while it was waited for. Who hands over first ends all answers and then
// writes what was decided, so that what is answered is in that.
func (e *Engine) still(x *served) error {
	now, err := e.find(x.decl.Name)
	if err == nil && now != x {
		err = errElsewhere
	}
	return err
}

// Reward takes the reward of a decision, and returns when it is durable.
func (e *Engine) Reward(ctx context.Context, name string, r Report) (Status, error) {
	out, err := e.Rewards(ctx, name, []Report{r})
	if err != nil {
		return "", err
	}
	return out[0].Status, out[0].Err
}

// Rewards takes rewards, and returns when they are durable: a result for each, in their order. An
// error is for all of them, which can then be sent again.
func (e *Engine) Rewards(ctx context.Context, name string, reports []Report) ([]Result, error) {
	outcomes := make([]Outcome, len(reports))
	for i, r := range reports {
		outcomes[i].Report = r
	}
	return e.Outcomes(ctx, name, outcomes)
}

// Outcomes is Rewards with metrics: the first report of a decision counts, with all that is in it, or
// all of them do, where the experiment says so (decl.Experiment.Aggregates).
func (e *Engine) Outcomes(ctx context.Context, name string, reports []Outcome) ([]Result, error) {
	x, err := e.find(name)
	if err != nil {
		return nil, err
	}
	if e.cfg.ReadOnly {
		return nil, ErrReadOnly
	}
	if err := x.inTheOpen(); err != nil {
		return nil, fmt.Errorf("experiment %q: %w", name, err)
	}
	j := &job{on: x, at: e.now(), results: make([]Result, len(reports)),
		reports: make([]reported, 0, len(reports))}
	sign := x.reader()
	defer x.readers.Put(sign.mac)
	for i, r := range reports {
		switch t, ok := sign.read(r.Token); {
		case !ok:
			j.results[i].Err = ErrToken
		case t.number == beyond:
			j.results[i].Status = OverLimit
		default:
			metrics, err := x.metricsOf(r.Metrics)
			if err == nil {
				err = x.checkID(r)
			}
			if err != nil {
				j.results[i].Err = err
				continue
			}
			if t.number == tested {
				j.results[i].Status = x.inRange(r)
				continue
			}
			j.reports = append(j.reports, reported{ticket: t, id: r.ID, reward: r.Reward, metrics: metrics, result: i})
		}
	}
	if len(j.reports) > 0 {
		if err := e.do(ctx, j); err != nil {
			return nil, fmt.Errorf("experiment %q: %w", name, err)
		}
	}
	e.count(name, j.results)
	return j.results, nil
}

// inRange says whether what is reported of a forced decision would be clipped. Of one that counts nobody is
// told: an answer must not depend on a person's reward. This one is nobody's, and is not kept: where all reports of
// a decision count, it is looked at as if it were alone.
func (x *served) inRange(r Outcome) Status {
	in := func(how string, v, lo, hi float64) bool {
		if how == string(play.CountUp) {
			v = 1
		}
		return v >= lo && v <= hi
	}
	lo, hi := x.decl.Range()
	all := math.IsNaN(r.Reward) && x.aggregates || in(x.decl.Aggregate, r.Reward, lo, hi)
	for _, m := range x.decl.Metrics {
		if v, ok := r.Metrics[m.Name]; ok {
			lo, hi := m.Range()
			all = all && in(m.Aggregate, v, lo, hi)
		}
	}
	if all {
		return InRange
	}
	return Clipped
}

// count tells the meter of answers.
func (e *Engine) count(name string, results []Result) {
	if e.cfg.Meter == nil {
		return
	}
	n := map[Status]int{}
	for _, r := range results {
		n[r.Status]++
	}
	delete(n, "") // of errors
	for s, n := range n {
		e.cfg.Meter.Rewarded(name, s, n)
	}
}

// Queued is how many requests wait for a commit: it tells that rewards come.
func (e *Engine) Queued() int {
	e.queue.Lock()
	defer e.queue.Unlock()
	return len(e.queue.jobs)
}

// metricsOf are a report's metrics in their order, nil if there are none.
func (x *served) metricsOf(in map[string]float64) ([]float64, error) {
	if len(in) == 0 {
		return nil, nil
	}
	out, known := make([]float64, len(x.decl.Metrics)), 0
	for i, m := range x.decl.Metrics {
		v, ok := in[m.Name]
		if out[i] = v; !ok {
			out[i] = math.NaN()
		} else {
			known++
		}
	}
	if known < len(in) {
		return nil, fieldError("metrics", "has a name that is none of the experiment's metrics")
	}
	return out, nil
}

// do has the writer do jobs in one commit, and waits until that is durable. Its error is the first of theirs.
func (e *Engine) do(ctx context.Context, jobs ...*job) (err error) {
	for _, j := range jobs {
		j.done = make(chan struct{})
	}
	e.queue.Lock()
	if err := e.queue.closed; err != nil {
		e.queue.Unlock()
		return err
	}
	e.queue.jobs = append(e.queue.jobs, jobs...)
	e.queue.Unlock()
	select {
	case e.wake <- struct{}{}:
	default:
	}
	for _, j := range jobs {
		select {
		case <-j.done:
			err = cmp.Or(err, j.err)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return err
}

// act has the writer do something to an experiment, and write in the journal that it was done.
func (e *Engine) act(ctx context.Context, name string, did Entry,
	what func(x *served, now int64) error) error {
	x, err := e.find(name)
	if err != nil {
		return err
	}
	did.Experiment = name
	if err := e.actOn(ctx, x, did, what); err != nil {
		return fmt.Errorf("experiment %q: %w", name, err)
	}
	return nil
}

// actOn is act where the experiment was found; it may have been read again from the store since.
func (e *Engine) actOn(ctx context.Context, x *served, did Entry,
	what func(x *served, now int64) error) error {
	done := x
	return e.do(ctx, &job{on: x, act: func(x *served, c *store.Commit, now int64) error {
		err := what(x, now)
		if err == nil {
			note(ctx, c, did)
			done = x
		}
		return err
	}, after: func() { // it is durable, and can be read
		if !did.told() {
			return // when a unit is erased or looked up is nobody's to see
		}
		done.mu.Lock()
		defer done.mu.Unlock()
		done.acts++
	}})
}

// Sync returns when all decisions and releases of now are durable, and what is due is closed.
func (e *Engine) Sync(ctx context.Context) error {
	return e.do(ctx, &job{all: true, act: func(*served, *store.Commit, int64) error { return nil }})
}

// Create adds an experiment, as a draft. An error in its declaration is a decl.Error.
func (e *Engine) Create(ctx context.Context, decl Experiment) error {
	decl.Catalog = e.cfg.Catalog
	if err := cmp.Or(decl.Pick(), decl.Check()); err != nil {
		return err
	}
	if err := e.cfg.shares.admit(ctx, &decl, e.cfg.share); err != nil {
		return err
	}
	decl.ReportAfter = decl.ReportDelay() // no change of the window changes it
	var x *served
	return e.do(ctx, &job{
		act: func(_ *served, c *store.Commit, now int64) (err error) {
			if _, err := e.lookup(decl.Name); err == nil || slices.ContainsFunc(c.Writes,
				func(w store.Write) bool { return w.Record != nil && w.Record.Name == decl.Name }) {
				return fmt.Errorf("experiment %q: %w", decl.Name, ErrExists)
			}
			r := record{State: Draft, Created: now, Keep: -1, Timed: true}
			if _, err := io.ReadFull(e.cfg.random, r.random()); err != nil {
				return fmt.Errorf("%w: %w", ErrUnavailable, err)
			}
			if x, err = e.newLive(e.nextID, decl, r); err != nil {
				return err
			}
			data, err := x.data()
			if err != nil {
				return err
			}
			e.nextID++
			c.Writes = append(c.Writes, store.Write{ID: x.id,
				Record: &store.Record{ID: x.id, Name: decl.Name, Data: data}})
			note(ctx, c, Entry{Did: "create", Experiment: decl.Name})
			return nil
		},
		after: func() {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.byName[decl.Name] = x
			e.hurry(x)
		},
	})
}

// Start runs a draft, at once or from its declared start on. If it is in a layer, its range must be
// apart from those of the others that run; if it has a holdout, that must not have stopped; and what all experiments can cost one person must stay within
// Config.PersonCap, or the error matches ErrPersonCap.
func (e *Engine) Start(ctx context.Context, name string) error {
	return e.act(ctx, name, Entry{Did: "start"}, func(x *served, now int64) error { return x.start(e, now) })
}

// Pause stops the issuing of decisions, not the windows of those that were issued. Who has a sticky
// one is still answered the same.
func (e *Engine) Pause(ctx context.Context, name string) error {
	return e.act(ctx, name, Entry{Did: "pause"}, func(x *served, _ int64) error {
		return x.move(Paused, Running)
	})
}

// Resume goes on after a Pause. Where a guard has paused it, it goes on with the next public ticks, and a
// line of the transcript says so; that guard does not pause it for that arm again.
func (e *Engine) Resume(ctx context.Context, name string) error {
	return e.act(ctx, name, Entry{Did: "resume"}, func(x *served, _ int64) error { return x.goOn() })
}

// Archive destroys what is left of the units of an experiment that does not run: who was assigned
// what. Its transcript and ledger stay.
func (e *Engine) Archive(ctx context.Context, name string) error {
	return e.act(ctx, name, Entry{Did: "archive"}, func(x *served, _ int64) error { return x.archive() })
}

// Get says how an experiment is.
func (e *Engine) Get(_ context.Context, name string) (Info, error) {
	x, err := e.find(name)
	if err != nil {
		return Info{}, err
	}
	return x.info(e.now()), nil
}

// List says how all experiments are, in the order in which they were created.
func (e *Engine) List(context.Context) []Info {
	all := e.all()
	out := make([]Info, len(all))
	for i, x := range all {
		out[i] = x.info(e.now())
	}
	return out
}

// all are the experiments in the order in which they were created.
func (e *Engine) all() []*served {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return slices.SortedFunc(maps.Values(e.byName), func(a, b *served) int { return cmp.Compare(a.id, b.id) })
}

// Transcript is what everybody may see so far, lines of JSON that are chained: what was declared,
// all batches with what they released, and the end. Replay checks it.
func (e *Engine) Transcript(ctx context.Context, name string) (iter.Seq2[[]byte, error], error) {
	x, err := e.find(name)
	if err != nil {
		return nil, err
	}
	return e.lines(ctx, x, 0), nil
}

// lines are those of the transcript that everybody may see, from the line from on.
func (e *Engine) lines(ctx context.Context, x *served, from int) iter.Seq2[[]byte, error] {
	x.mu.Lock()
	shown, _ := x.visible()
	x.mu.Unlock()
	e.mu.RLock()
	st := e.reading
	e.mu.RUnlock()
	return func(yield func([]byte, error) bool) {
		n := from
		for line, err := range e.read(st, st.Lines(ctx, x.id, from)) {
			if n >= shown || !yield(line, err) || err != nil {
				return
			}
			n++
		}
	}
}

// read are lines of a store. Their error matches ErrUnavailable if the store was closed because nothing
// could be written to it: they can be read once it is opened again.
func (e *Engine) read(st store.Store, lines iter.Seq2[[]byte, error]) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		if err := e.Ready(); errors.Is(err, ErrUnavailable) { // it is being closed, and may be at any line
			yield(nil, err)
			return
		}
		for line, err := range lines {
			if err != nil {
				e.mu.RLock()
				closed := st != e.reading
				e.mu.RUnlock()
				if closed || e.Ready() != nil {
					err = fmt.Errorf("%w: %w", ErrUnavailable, err)
				}
			}
			if !yield(line, err) {
				return
			}
		}
	}
}

// Ledger is what the releases have cost, as privacy.Ledger writes it.
func (e *Engine) Ledger(_ context.Context, name string) (json.RawMessage, error) {
	x, err := e.find(name)
	if err != nil {
		return nil, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ledger == nil {
		return json.RawMessage("null"), nil
	}
	return x.ledger.MarshalJSON()
}

// status is that of a play.
func status(s play.Status) Status {
	switch s {
	case play.Accepted:
		return Accepted
	case play.Late:
		return Late
	}
	return Void
}
