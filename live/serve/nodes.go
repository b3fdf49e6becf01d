package serve

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sotto-dp/sotto/live/serve/store"
)

// On a Shared store many processes have one writer, for all experiments. That it writes is seen
// from its commits, which are begun at least every beatEvery, and from the database being at work on
// one that takes its time; whoever has seen none for lapse,
// by its own monotonic clock, claims the store, or at once where the writer has said that it ends. That its connection
// has ended says less: it may live, and decide until it finds that out, so that it is claimed after leadFor.
// The writer itself counts from before a commit was sent, and does not decide for longer than
// leadFor, which is less: one who was stopped and goes on knows by itself that it may have been
// taken over. None of this is what keeps two from writing: the store's fence is.
const (
	beatEvery = 300 * time.Millisecond
	leadFor   = 1000 * time.Millisecond
	lapse     = 1250 * time.Millisecond
	lookEvery = 150 * time.Millisecond

	openWithin = 5 * time.Second

	// heldEvery is how often a process that writes nothing looks whether its store, which is not
	// Shared, was taken over.
	heldEvery = time.Second
)

// A node is what an engine on a Shared store knows of who writes.
type node struct {
	shared bool
	// term is the last in which this process wrote, 0 before.
	term int64
	// sure is when it was last known that this process writes, after epoch; negative if it does not.
	sure  atomic.Int64
	epoch time.Time
	// out: this process answers nothing more, for good.
	out        atomic.Bool
	superseded chan struct{}
	database   string       // see Database
	seen       store.Writer // as it was looked at last
	leaves     atomic.Bool  // it is to give its share back
	ending     bool         // and does

	elsewhere sync.Mutex // of what follows
	address   string
	until     context.Context // ends when the address is another
	changed   context.CancelFunc
	leads     chan struct{} // closed while this process writes
}

// errElsewhere is why one that does not write does not answer.
var errElsewhere = fmt.Errorf("%w: another process does", ErrUnavailable)

// Where says who answers: this engine, or the one at an address, until that context has ended.
// Without either nobody is known to.
func (e *Engine) Where() (here bool, address string, until context.Context) {
	if e.here() {
		return true, "", nil
	}
	e.elsewhere.Lock()
	defer e.elsewhere.Unlock()
	return false, e.address, e.until
}

// Lead waits until this engine writes: at once, unless the store is Shared and another one does.
func (e *Engine) Lead(ctx context.Context) error {
	if !e.shared {
		return nil
	}
	e.elsewhere.Lock()
	leads := e.leads
	e.elsewhere.Unlock()
	select {
	case <-leads:
		return nil
	case <-e.done:
		return fmt.Errorf("%w: the engine was closed", ErrUnavailable)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Database names the database of a Shared store, and none that was copied or restored from it; else it
// is empty. Whoever writes in the same one has the same name for it.
func (e *Engine) Database() string { return e.database }

// Superseded is closed when another process has taken over a store that is not Shared, or put a Shared one in more
// shares than this one knows of: this engine then answers nothing more, and is to be closed.
func (e *Engine) Superseded() <-chan struct{} { return e.superseded }

// quit ends all answers of this process, for good.
func (e *Engine) quit(why error) {
	e.cfg.Log.Error("serve: this process answers nothing more", "error", why)
	e.giveUp()
	e.out.Store(true)
	e.refuse(fmt.Errorf("%w: %w", ErrUnavailable, why))
	if !e.shared || errors.Is(why, store.ErrShares) {
		close(e.superseded)
	}
	if !e.shared {
		return
	}
	e.confirm(time.Time{})
	e.heard("", false)
}

// here says whether this engine may answer.
func (e *Engine) here() bool {
	if !e.shared || e.out.Load() {
		return !e.out.Load()
	}
	sure := e.sure.Load()
	return sure >= 0 && time.Since(e.epoch)-time.Duration(sure) < leadFor && e.cfg.shares.sees()
}

// confirm notes that this process wrote, or was the last to, at a time; the zero time that it is not.
func (e *Engine) confirm(at time.Time) {
	if at.IsZero() {
		e.sure.Store(-1)
		return
	}
	e.sure.Store(int64(at.Sub(e.epoch)))
}

// heard notes who writes: nobody knows, another process, or this one.
func (e *Engine) heard(address string, here bool) {
	e.elsewhere.Lock()
	defer e.elsewhere.Unlock()
	if address != e.address || e.until == nil {
		if e.changed != nil {
			e.changed()
		}
		e.address = address
		e.until, e.changed = context.WithCancel(context.Background())
	}
	select {
	case <-e.leads:
		if !here {
			e.leads = make(chan struct{})
		}
	default:
		if here {
			close(e.leads)
		}
	}
}

// join opens a Shared store, and takes it over if nobody writes.
func (e *Engine) join(ctx context.Context, st store.Shared) error {
	e.shared, e.epoch, e.leads = true, time.Now(), make(chan struct{})
	e.confirm(time.Time{})
	e.heard("", false)
	e.refuse(errElsewhere)
	silent, err := e.listen(ctx, st)
	if err == nil && silent && e.cfg.shares.take(e.cfg.share, false) {
		if err = e.claim(ctx, st, e.seen); err != nil && !e.office() && !errors.Is(err, store.ErrReplaced) {
			e.ail(err) // one share holds up no other
			_ = st.Close()
			return nil
		}
	}
	if err != nil && !errors.Is(err, store.ErrFenced) {
		_ = st.Close()
		return fmt.Errorf("serve: %w", err)
	}
	if e.store == nil {
		e.watched = st
	}
	return nil
}

// listen looks until the writer is seen to write, or for lapse; silent if nobody does. An address
// alone says nothing: a restored dump has that of who wrote when it was made.
func (e *Engine) listen(ctx context.Context, st store.Shared) (silent bool, err error) {
	silent = true
	var from time.Time // when the first look was answered: what it has seen was sent before
	for {
		w, err := st.Look(ctx)
		if err != nil {
			return false, err
		}
		if from.IsZero() {
			from = time.Now()
		}
		beats := w.After(e.seen)
		e.seen, e.database = w, w.Database
		if beats {
			e.heard(w.Address, false)
			return false, nil
		}
		ended := ended(w, time.Since(from))
		if silent = silent && !w.Busy; ended || time.Since(from) > lapse {
			return silent || ended, nil
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(lookEvery):
		}
	}
}

// ended says that a writer whose last commit was seen so long ago answers nothing more: it has said so, or its connection
// has ended and it is not sure any more that it writes.
func ended(w store.Writer, silent time.Duration) bool {
	return w.Gone && (!w.Broken || silent > leadFor)
}

// follow watches the writer until it is this process.
func (e *Engine) follow(ctx context.Context) error {
	st := e.watched
	e.watched = nil
	since, wait := time.Now(), lookEvery
	for failed := false; ; {
		from := time.Now()
		w, err := e.look(ctx, &st)
		switch {
		case err != nil:
			if !failed && !errors.Is(err, store.ErrReplaced) {
				e.cfg.Log.Error("serve: the store cannot be read", "error", err)
			}
			if time.Since(since) > lapse {
				e.heard("", false) // nobody knows
			}
		default:
			beats, other := w.After(e.seen), w.Term != e.seen.Term
			if beats || other || w.Commits != e.seen.Commits || w.Busy {
				e.seen, since = w, time.Now() // a commit that this look has seen was sent before
			}
			mine := e.term > 0 && w.Term == e.term
			if mine { // nobody has begun since, so that the last plan is still the last
				if e.cfg.shares == nil || !w.Gone { // else somebody may begin at any moment
					e.confirm(from)
				}
			} else {
				e.confirm(time.Time{})
				e.cfg.shares.has(e.cfg.share, false)
				if beats {
					e.heard(w.Address, false)
					e.heal("serve: another process writes now")
				} else if other {
					e.heard("", false) // until it is seen to write here
				}
			}
			silent := time.Since(since)
			if !mine && !ended(w, silent) && silent <= lapse {
				break
			}
			if late := w.Gone && silent > grace || silent > lapse+grace; !mine && !e.cfg.shares.take(e.cfg.share, late) {
				break
			}
			if err = e.claim(ctx, st, w); err == nil {
				return nil
			}
			if !errors.Is(err, store.ErrFenced) && !failed {
				e.cfg.Log.Error("serve: the store cannot be taken over", "error", err)
			}
			_ = st.Close() // it may be in the middle of something
			st = nil
		}
		if errors.Is(err, store.ErrReplaced) || errors.Is(err, store.ErrShares) {
			return err
		}
		if failed = err != nil; !failed {
			wait = lookEvery
		}
		select {
		case <-ctx.Done():
			if st != nil {
				_ = st.Close()
			}
			return ctx.Err()
		case <-time.After(wait):
		}
		wait = min(2*wait, leadFor/2) // where nothing goes; to be sure takes looks
	}
}

// look asks who writes, of a store that is opened where it is not.
func (e *Engine) look(ctx context.Context, st *store.Shared) (store.Writer, error) {
	if *st == nil {
		within, cancel := context.WithTimeout(ctx, openWithin)
		opened, err := e.cfg.Store(within)
		cancel()
		if err != nil {
			return store.Writer{}, err
		}
		shared, ok := opened.(store.Shared)
		if !ok {
			return store.Writer{}, errors.Join(errors.New("the store is not shared any more"), opened.Close())
		}
		*st = shared
	}
	ctx, cancel := context.WithTimeout(ctx, leadFor)
	defer cancel()
	w, err := (*st).Look(ctx)
	if err != nil {
		_ = (*st).Close()
		*st = nil
	}
	return w, err
}

// claim takes the store over after w, and restores all that is in it.
func (e *Engine) claim(ctx context.Context, st store.Shared, w store.Writer) error {
	from := time.Now()
	opened, err := st.Claim(ctx, w, e.cfg.Holder, e.cfg.Advertise)
	e.cfg.shares.has(e.cfg.share, err == nil)
	if errors.Is(err, store.ErrFenced) { // whoever came first may answer already
		e.confirm(time.Time{})
	}
	if err != nil {
		return err
	}
	e.confirm(time.Time{}) // what it decided before is void
	// Restoring may take its time, and the others must not take that for an end.
	beating, stop := context.WithCancel(ctx)
	beaten := make(chan error, 1)
	go func() {
		for {
			select {
			case <-beating.Done():
				beaten <- nil
				return
			case <-time.After(beatEvery):
			}
			at := time.Now()
			if err := st.Commit(beating, store.Commit{Now: opened.Now}); err != nil {
				beaten <- err
				return
			}
			from = at
		}
	}()
	err = e.restoreAll(ctx, st, opened)
	stop()
	if err := errors.Join(err, <-beaten); err != nil {
		return err
	}
	e.term, e.seen = w.Term+1, store.Writer{}
	e.leaves.Store(e.out.Load())
	e.confirm(from)
	e.queue.Lock()
	e.queue.closed = nil
	e.queue.Unlock()
	e.heard("", true)
	e.cfg.Log.Info("serve: this process writes", "term", e.term)
	return nil
}

// lost ends the writing of this process, after an error.
func (e *Engine) lost(why error) {
	if e.cfg.shares != nil || errors.Is(why, store.ErrFenced) {
		e.confirm(time.Time{})
		e.end()
	}
	e.giveUp()
	_ = e.store.Close() // it has failed already
	e.store = nil
	e.heard("", false)
}

// end has the others told that this process answers nothing more by its store, which is closed next.
func (e *Engine) end() {
	if s, ok := e.store.(store.Giver); ok {
		s.End()
	}
}
