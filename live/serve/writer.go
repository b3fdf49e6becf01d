package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/sotto-dp/sotto/internal/chain"
	"github.com/sotto-dp/sotto/internal/pool"
	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/live/serve/store"
	"github.com/sotto-dp/sotto/privacy"
)

// markEvery bounds how long a decision is not durable.
const markEvery = 100 * time.Millisecond

// timeEvery bounds how old the time of the last commit is, though nobody asks anything. The next start
// measures the outage from there. An idle hour is no outage, and a time that goes on from there must not
// tell when somebody reported last. It is written by the clock alone, whatever else was written.
const timeEvery = time.Minute

// A writer is the one goroutine of an engine that writes: what has come is one transaction, and
// while that is on its way to the disk the next group gathers.
type writer struct {
	store   store.Store
	reading store.Store // the same, for readers
	secret  [32]byte
	ticks   []int64 // of all experiments, each once
	swept   time.Time
	at      int64 // when that was by the engine's clock
	debts   debts
	ailing  time.Time    // since when nothing can be written; zero while it can
	drifted bool         // which was logged
	tidying bool         // the store has more room to give back
	tidied  time.Time    // when it was last asked to
	beat    time.Time    // when this process was last seen to write
	timed   int64        // in which timeEvery, since 1970, the time was written last
	watched store.Shared // of a Shared store: what is open to see who writes
}

// run is the writer.
func (e *Engine) run(ctx context.Context) {
	defer close(e.done)
	for {
		if e.store == nil {
			err := e.follow(ctx)
			if errors.Is(err, store.ErrReplaced) || errors.Is(err, store.ErrShares) {
				e.quit(err) // what is there now is somebody's to look at
				return
			}
			if err != nil {
				e.refuse(fmt.Errorf("%w: the engine was closed", ErrUnavailable))
				return
			}
		}
		timer, what := time.NewTimer(e.rest()), asked
		select {
		case <-ctx.Done():
			timer.Stop()
			e.refuse(fmt.Errorf("%w: the engine was closed", ErrUnavailable))
			return
		case <-e.wake:
		case <-e.debts.due.C:
			what = owed
		case <-timer.C:
			if !e.tidying {
				what = everybody
			}
		}
		timer.Stop()
		if e.leaves.Swap(false) {
			e.handOver(ctx)
			continue
		}
		err := e.step(ctx, what)
		if err == nil {
			continue
		}
		if e.shared {
			e.ail(err)
			e.lost(err)
			continue
		}
		if !errors.Is(err, store.ErrFenced) {
			e.ail(err)
			if err = e.reopen(ctx); err == nil {
				continue
			}
		}
		if errors.Is(err, store.ErrFenced) {
			e.quit(err) // somebody else writes; do not take it back
		}
		return
	}
}

// ail notes that nothing can be written, and heal that it can. A failure lasts, and is tried again at
// short intervals: its beginning and its end are said, and nothing between them.
func (e *Engine) ail(why error) {
	if e.ailing.IsZero() {
		e.ailing = time.Now()
		e.cfg.Log.Error("serve: nothing can be written", "error", why)
	}
}

func (e *Engine) heal(how string) {
	if !e.ailing.IsZero() {
		e.cfg.Log.Info(how, "after", time.Since(e.ailing).Round(time.Millisecond))
		e.ailing = time.Time{}
	}
}

// hurry has a sweep at each tick of an experiment.
func (w *writer) hurry(x *served) {
	if !slices.Contains(w.ticks, x.tick) {
		w.ticks = append(w.ticks, x.tick)
	}
}

// next is when the next sweep is: after the first public tick since the last one. It is not at the tick,
// at which pages take what they show: which of the two came first would be chance, or load.
func (w *writer) next() int64 {
	at := int64(math.MaxInt64)
	for _, tick := range w.ticks {
		at = min(at, (w.at/tick+1)*tick+min(tick, markEvery.Milliseconds())/2)
	}
	return at
}

// rest is how long there is nothing to do, unless somebody asks. A writer whom others watch does not
// sleep so long, and one whose clock is set by hand cannot know when the next tick will be.
func (e *Engine) rest() time.Duration {
	wait := time.Duration(e.next()-e.now()) * time.Millisecond
	if e.shared || !e.clock.own {
		wait = min(wait, time.Until(e.swept.Add(markEvery)))
	}
	if e.tidying {
		wait = min(wait, time.Until(e.tidied.Add(markEvery)))
	}
	return wait
}

// tidy has the store give room back: at sweeps, and at short intervals while there is more.
func (e *Engine) tidy(ctx context.Context, sweep bool) {
	t, ok := e.store.(store.Tidier)
	if !ok || !sweep && (!e.tidying || time.Since(e.tidied) < markEvery) {
		return
	}
	var err error
	e.tidied = time.Now()
	if e.tidying, err = t.Tidy(ctx); err != nil { // nothing is lost by it
		e.cfg.Log.Error("serve: no room was given back", "error", err)
	}
}

// debts are the experiments that have decided since they were last written. That is due within
// markEvery, and mostly done before, with a reward: a process that nobody asks anything is not woken.
type debts struct {
	sync.Mutex
	of  map[*served]struct{}
	due *time.Timer
}

// owe notes that there is something to be written of an experiment, whose lock is held.
func (d *debts) owe(x *served) {
	if x.owes || !x.todo.has(theQueues) && len(x.fresh) == 0 {
		return
	}
	x.owes = true
	d.Lock()
	defer d.Unlock()
	if d.of[x] = struct{}{}; len(d.of) == 1 {
		d.due.Reset(markEvery)
	}
}

// paid notes that all of an experiment is in the next commit. Its lock is held.
func (d *debts) paid(x *served) {
	if !x.owes {
		return
	}
	x.owes = false
	d.Lock()
	defer d.Unlock()
	if delete(d.of, x); len(d.of) == 0 {
		d.due.Stop()
	}
}

// take gives all of them, which are looked at next.
func (d *debts) take() map[*served]struct{} {
	d.Lock()
	defer d.Unlock()
	all := d.of
	d.of = map[*served]struct{}{}
	d.due.Stop()
	return all
}

// refuse answers all who wait, and who will ask, with an error.
func (e *Engine) refuse(err error) {
	e.queue.Lock()
	jobs := e.queue.jobs
	e.queue.jobs, e.queue.closed = nil, err
	e.queue.Unlock()
	for _, j := range jobs {
		j.err = err
		close(j.done)
	}
}

// What a step looks at beside those for whom there are jobs.
const (
	asked     = iota // nobody
	owed             // who has decided
	everybody        // and does what is done at ticks: a sweep
)

// step is one transaction.
func (e *Engine) step(ctx context.Context, of int) error {
	e.queue.Lock()
	jobs := e.queue.jobs
	e.queue.jobs = nil
	e.queue.Unlock()
	c := store.Commit{Now: e.now()}
	// Who is looked at: whoever has something to do, and at a sweep everybody.
	visit := map[*served][]*job{}
	sweep := of == everybody || c.Now >= e.next()
	for _, j := range jobs {
		x := e.current(j)
		switch {
		case j.on != nil && x == nil:
			j.err = ErrNotFound
		case j.act == nil:
			visit[x] = append(visit[x], j)
		default:
			j.err = j.run(x, &c)
			if sweep = sweep || j.all; x != nil {
				visit[x] = slices.Clip(visit[x])
			}
		}
	}
	if sweep {
		e.cfg.hook("a sweep")
		e.swept, e.at = time.Now(), c.Now
		e.debts.take()
		e.watchClock()
		e.mu.RLock()
		for _, x := range e.byName {
			visit[x] = slices.Clip(visit[x])
		}
		e.mu.RUnlock()
	} else if of == owed {
		for x := range e.debts.take() {
			if e.current(&job{on: x}) == x {
				visit[x] = slices.Clip(visit[x])
			}
		}
	}
	for x, rewards := range visit {
		x.expire(&c)
		if w, ok := x.turn(e, rewards, c.Now, sweep); ok {
			c.Writes = append(c.Writes, w)
			for _, did := range x.did {
				note(ctx, &c, did)
			}
		}
		x.did = nil
	}
	var err error
	from, timed := time.Now(), c.Now/timeEvery.Milliseconds()
	held := slices.ContainsFunc(jobs, func(j *job) bool { return j.durable })
	if held || len(c.Writes)+len(c.Keys)+len(c.Audit) > 0 || !e.ailing.IsZero() ||
		sweep && timed > e.timed || e.shared && from.Sub(e.beat) >= beatEvery {
		what := "commit"
		if slices.ContainsFunc(c.Writes, func(w store.Write) bool { return len(w.Taken) > 0 }) {
			what = "release"
		}
		e.cfg.hook("before a " + what)
		from := time.Now()
		err = e.store.Commit(ctx, c)
		if e.cfg.Meter != nil {
			e.cfg.Meter.Committed(time.Since(from), err)
		}
		e.cfg.hook("after a " + what)
		if err == nil {
			e.heal("serve: it is written again")
			e.beat = from
			if sweep {
				e.timed = timed
			}
			if !e.ending {
				e.confirm(from)
			}
		}
	} else if !e.shared && from.Sub(e.beat) >= heldEvery {
		e.beat = from
		if err = e.store.Held(ctx); !errors.Is(err, store.ErrFenced) {
			err = nil // what cannot be read now says nothing
		}
	}
	if err != nil {
		failed := fmt.Errorf("%w: %w", ErrUnavailable, err)
		e.refuse(failed)
		for _, j := range jobs {
			j.err = failed
			close(j.done)
		}
		return err
	}
	for x := range visit {
		x.mu.Lock()
		x.confirmed()
		x.mu.Unlock()
	}
	for _, j := range jobs {
		if j.after != nil && j.err == nil {
			j.after()
		}
		close(j.done)
	}
	for x := range visit {
		e.announce(ctx, x)
		e.gather(ctx, x)
	}
	e.tidy(ctx, sweep)
	return nil
}

// current is the experiment of a job, which may have been read again from the store since.
func (e *Engine) current(j *job) *served {
	if j.on == nil {
		return nil
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.byName[j.on.decl.Name]
}

func (j *job) run(x *served, c *store.Commit) error {
	if x != nil {
		x.mu.Lock()
		defer x.mu.Unlock()
	}
	return j.act(x, c, c.Now)
}

// turn is collect, and what comes of its errors: the experiment has failed, what is durable stays
// as it is, and nobody's reward was taken.
func (x *served) turn(e *Engine, jobs []*job, now int64, sweep bool) (store.Write, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	w, ok, err := x.collect(jobs, now, sweep)
	e.debts.paid(x)
	if err == nil {
		e.hurry(x) // its window may have changed
		return w, ok
	}
	e.cfg.Log.Error("serve: an experiment has failed", "experiment", x.decl.Name, "error", err)
	for _, j := range jobs {
		j.err = fmt.Errorf("%w: the experiment has failed", ErrUnavailable)
	}
	x.fail(err)
	data, err := x.data()
	if err != nil {
		return store.Write{}, false
	}
	return store.Write{ID: x.id, Record: &store.Record{ID: x.id, Name: x.decl.Name, Data: data}}, true
}

// fail gives an experiment up: it can be read and stopped.
func (x *served) fail(why error) {
	x.rec.State, x.rec.Reason = Failed, why.Error()
	x.forgetPlay()
	x.out, x.came = nil, nil
	x.todo &^= theRecord | thePlan | theQueues
}

// reopen reads everything again from what is durable, when that can be done and a commit went in
// after it. Until then decisions go on by the last plan, and what is not durable of them will be void.
func (e *Engine) reopen(ctx context.Context) error {
	e.giveUp()
	_ = e.store.Close() // it has failed already
	e.store = nil
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		err := e.again(ctx)
		if err == nil {
			e.queue.Lock()
			e.queue.closed = nil
			e.queue.Unlock()
			return nil
		}
		if errors.Is(err, store.ErrFenced) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}

// again opens the store where there is room, takes it over, and commits.
func (e *Engine) again(ctx context.Context) error {
	st, err := e.cfg.Store(ctx)
	if err != nil {
		return err
	}
	if roomy, ok := st.(store.Roomy); ok {
		if err := roomy.Room(); err != nil {
			return errors.Join(err, st.Close())
		}
	}
	if err := e.takeOver(ctx, st); err != nil {
		return err
	}
	if err = e.step(ctx, everybody); err != nil {
		_ = e.store.Close()
		e.store = nil
	}
	return err
}

// takeOver begins, and restores all that is in the store.
func (e *Engine) takeOver(ctx context.Context, st store.Store) error {
	opened, err := st.Begin(ctx, e.cfg.Holder)
	if err == nil {
		err = e.restoreAll(ctx, st, opened)
	}
	if err != nil {
		_ = st.Close()
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

// restoring is how many experiments are restored beside one another: as many as a store has readers.
const restoring = 4

// restoreAll brings all that is in the store back, for a new epoch.
func (e *Engine) restoreAll(ctx context.Context, st store.Store, opened store.Opened) error {
	e.secret = opened.Secret
	e.catchUp(opened)
	e.ticks = []int64{maxTick}
	restored := make([]*served, len(opened.Experiments))
	if err := pool.Run(ctx, restoring, len(restored), func() func(context.Context, int) error {
		return func(ctx context.Context, i int) (err error) {
			r := opened.Experiments[i]
			x, err := e.restore(ctx, st, r, opened.Older)
			if err != nil {
				return fmt.Errorf("experiment %q: %w", r.Name, err)
			}
			x.confirmed()
			at := x.shownAt(opened.Now, e.now())
			if at > opened.Now && (x.gatherer == nil || x.rec.State.plays()) { // late, which is to be remembered
				x.rec.Last = max(x.rec.Last, at)
				x.todo |= theRecord
			}
			x.seen, restored[i] = max(at, x.rec.Last), x
			return nil
		}
	}); err != nil {
		return err
	}
	all, next := map[string]*served{}, int64(1)
	for i, x := range restored {
		r := opened.Experiments[i]
		all[r.Name], next = x, max(next, r.ID+1)
		e.hurry(x)
	}
	e.mu.Lock()
	e.byName, e.nextID, e.reading = all, next, st
	if e.office() {
		e.changeKeys(opened.Keys)
	}
	e.cookies = keyFor(opened.Secret[:], nil, "cookies")
	e.mu.Unlock()
	e.warnOfCap()
	e.store = st
	// Who has failed here is written with the first commit, which may be the one that makes the
	// store forget that it has gone back.
	e.swept, e.at, e.timed = time.Time{}, 0, opened.Now/timeEvery.Milliseconds()
	return nil
}

// ErrOlder is the reason of experiments that ran when a backup was restored.
var errOlder = errors.New("the store has gone back to an older state: what was assigned and " +
	"released since is not known, so that going on would release rewards twice")

// restore reads an experiment. One that does not fit what is stored of it has failed; an error is
// the store's.
func (e *Engine) restore(ctx context.Context, st store.Store, in store.Record, older bool) (*served, error) {
	var r record
	if err := json.Unmarshal(in.Data, &r); err != nil {
		return nil, err
	}
	decl, err := decl.Reader{Catalog: e.cfg.Catalog}.Parse(in.Name, r.Declaration)
	if err != nil {
		return nil, err
	}
	x, err := e.newLive(in.ID, *decl, r)
	if err != nil {
		return nil, err
	}
	if r.State == Draft {
		if older { // it may have run since
			x.fail(errOlder)
			x.todo |= theRecord
		}
		return x, nil
	}
	stored, err := st.Load(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	counted := x.hours.restore(stored.Hours)
	x.ledger = privacy.NewLedger()
	broken := x.reread(st.Lines(ctx, in.ID, 0), stored.Plan)
	if broken != nil && !errors.Is(broken, ErrTranscript) {
		return nil, broken
	}
	for a := range x.board.queues { // a backup has no other count
		x.board.queues[a].Decisions = x.board.queues[a].Released
	}
	for _, a := range stored.Arms {
		if a.Arm < len(x.board.queues) {
			q := &x.board.queues[a.Arm]
			q.Decisions, q.Off = max(a.Issued, q.Decisions), a.Off
		}
	}
	if broken != nil { // nothing can be added to it
		x.tip = ""
		e.cfg.Log.Error("serve: a transcript is damaged", "experiment", in.Name, "error", broken)
	}
	switch x.rec.State {
	case Running, Paused, Stopping:
		switch {
		case older:
			err = errOlder
		case broken != nil:
			err = broken
		case counted != nil:
			err = counted
		case !e.cfg.ReadOnly:
			err = x.resume(ctx, e, st, stored)
			if of := (unread{}); errors.As(err, &of) { // which says nothing of the experiment
				return nil, of.error
			}
		}
		if err != nil {
			x.fail(err)
			x.todo |= theRecord
		}
	default:
		if broken != nil {
			x.rec.Reason = broken.Error()
		} else if s := x.rec.Stop; s != nil && s.Policy { // which is given for ever
			var lost error
			x.events.estimate, x.events.within, err = learnt(&x.decl, x.rec.Coins, lossOf(st.Lines(ctx, in.ID, 0), &lost))
			switch {
			case lost != nil:
				return nil, lost
			case err != nil:
				x.rec.Reason = err.Error()
			}
		}
	}
	return x, nil
}

// reread verifies the transcript, shows it, and books its releases again. An error matches
// ErrTranscript, or is the store's.
func (x *served) reread(lines iter.Seq2[[]byte, error], written []byte) error {
	wrong := func(err error) error {
		return fmt.Errorf("%w: line %d: %w", ErrTranscript, x.lines, err)
	}
	var last []byte
	linked := func(yield func([]byte, error) bool) {
		for line, err := range lines {
			x.lines++
			if last = line; !yield(line, err) {
				return
			}
		}
	}
	var declared *Experiment
	for e, err := range entries(linked) {
		switch {
		case err != nil:
			return err
		case e.header != nil:
			x.began = e.at.UnixMilli()
			declared, err = x.declared(*e.header)
		case e.ending != nil:
		case e.cohort != nil:
			err = x.charge(*e.cohort)
		default:
			if x.shown++; e.change != nil {
				e.change.done(declared)
			}
			if len(e.Release) > 0 {
				x.seen = e.at.UnixMilli()
			}
			if err = e.book(x.ledger); err == nil {
				err = x.board.show(&e.line, e.at)
			}
		}
		if err != nil {
			return wrong(err)
		}
	}
	if x.lines > 0 {
		_, x.tip, _ = chain.Unlink("", last)
	}
	same, err := declared == nil, error(nil)
	if declared != nil {
		if x.decl.ReportAfter == x.decl.Window/2 { // it may have followed, and counts as the lines have it
			x.decl.ReportAfter = declared.ReportAfter
		}
		same, err = equal(declared, &x.decl)
	}
	switch out, wrongPlan := readPlan(written); {
	case err != nil:
		return wrong(err)
	case !same:
		return wrong(errors.New("what was declared, and changed, is not the experiment's"))
	case wrongPlan != nil:
		return wrong(wrongPlan)
	case out.Tip != x.tip:
		return wrong(errors.New("it is not the last that was written: one was changed, added, or cut off"))
	}
	return nil
}

// lossOf are lines, and notes the store's own error.
func lossOf(lines iter.Seq2[[]byte, error], lost *error) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for line, err := range lines {
			if *lost = err; !yield(line, err) {
				return
			}
		}
	}
}

// unread is an error of the store, where one of what is stored would end the experiment.
type unread struct{ error }

// resume brings a play back.
func (x *served) resume(ctx context.Context, e *Engine, st store.Store, stored store.Stored) error {
	epoch, err := e.newEpoch()
	if err != nil {
		return err
	}
	stored.Lines = x.shown // that are play's
	var lost error
	m, err := x.restored(e, epoch, stored, played(entries(lossOf(st.Lines(ctx, x.id, 0), &lost))))
	if lost != nil {
		return unread{lost}
	}
	if err != nil {
		return err
	}
	size := 0
	for _, block := range stored.Units {
		size += len(block) / unitBytes
	}
	x.units = make(map[tag]assignment, size)
	places, now := map[epochTag]int32{}, e.now()
	for _, block := range stored.Units {
		if err := x.form().read(block, func(t tag, u assignment, epoch epochTag, v *event) {
			at, ok := places[epoch]
			if !ok {
				at = int32(len(x.epochs))
				x.epochs, places[epoch] = append(x.epochs, epoch), at
			}
			if u.epoch = at; u.propensity > 0 || now < u.deadline { // what came of an offer is forgotten
				x.units[t] = u
				x.stoned = x.stoned || u.arm == erasedArm
			}
			if v != nil {
				x.events.put(t, *v)
			}
		}); err != nil {
			return err
		}
	}
	if x.run(m, epoch); x.rec.State == Stopping {
		m.Finish()
	}
	if err := chargeCohorts(x.ledger, &x.decl, x.asked, 0); err != nil { // it is another ledger
		return err
	}
	x.unsure = true
	for _, p := range stored.Parts {
		at := [2]int{p.Arm, p.Start}
		x.parts[at] = max(x.parts[at], p.Number)
	}
	return nil
}
