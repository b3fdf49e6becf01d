package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sotto-dp/sotto/live/serve/store"
	"github.com/sotto-dp/sotto/privacy"
)

// MaxShares is how many shares a database has at most.
const MaxShares = 32

// Times of processes that share a database: how often each reads the office, from beginning to beginning, and how
// long it rests at least, also where somebody waits; how often a reading notes that it is there; how
// long one that has its quota leaves a share to who has not; and how long, at first and at most, one that
// has more waits until it gives the next one back.
const (
	meetEvery = beatEvery
	meetAgain = 20 * time.Millisecond
	noteEvery = store.NodeFor / 3
	grace     = 500 * time.Millisecond
	giveEvery = time.Second
	giveAgain = 10 * time.Minute
)

// errPlace: an experiment is created where it is not to be.
var errPlace = errors.New("serve: the experiment is another share's")

// Shares are the experiments of a process in parts, so that not one process of many writes all of them: a
// share is a store, with a term, a fence and a journal of its own, and one engine that writes it or
// follows who does. An experiment stays in its share for ever. Share 0 is the office: it has the keys, and
// which share each experiment is in. Begin with OpenShares.
//
// That nobody else writes a share is kept by its fence. That each process writes as many as every other is by
// agreement alone: by what all read in the office, which may be old for a moment.
type Shares struct {
	cfg     Config
	engines []*Engine
	office  func(context.Context) (store.Store, error) // nil: the stores are this process's alone
	epoch   time.Time
	read    atomic.Int64 // when the last reading of the office was begun, after epoch
	end     context.CancelFunc
	done    chan struct{}
	asked   chan struct{} // somebody waits for a reading
	more    chan struct{} // closed when there are more shares than these
	noted   time.Time     // when a reading noted last that this process is there; of whoever reads

	mu      sync.Mutex // of what follows
	keys    []store.Record
	places  map[string]int
	next    *reading // that has not begun
	nodes   int
	closing bool
	held    []bool // those that this process writes, or is about to
	given   int    // which was given back last; -1: none, or it has come back
	gave    time.Time
	wait    time.Duration // from then until the next
}

// A reading of the office. Its error is there once it is done.
type reading struct {
	done chan struct{}
	err  error
}

// OpenShares opens n stores, and an engine on each; with one it is Open. The processes on a database have
// the same n, or its stores say so; none has Config.PersonCap where n is more than 1, since that is looked
// at with all experiments.
func OpenShares(ctx context.Context, cfg Config, n int,
	stores func(i int) func(context.Context) (store.Store, error)) (*Shares, error) {
	if n < 1 || n > MaxShares {
		return nil, fmt.Errorf("serve: shares is %d, must be from 1 to %d", n, MaxShares)
	}
	s := &Shares{cfg: cfg, engines: make([]*Engine, n), epoch: time.Now(), end: func() {}, done: make(chan struct{}),
		asked: make(chan struct{}, 1), more: make(chan struct{}), places: map[string]int{}, next: newReading(),
		held: make([]bool, n), given: -1, wait: giveEvery}
	if n == 1 {
		cfg.Store = stores(0)
		close(s.done)
		var err error
		if s.engines[0], err = Open(ctx, cfg); err != nil {
			return nil, err
		}
		return s, nil
	}
	if cfg.PersonCap != nil && *cfg.PersonCap != (PersonCap{}) {
		return nil, fmt.Errorf("serve: shares is %d, %w", n, errCapped)
	}
	if s.cfg.Log == nil {
		s.cfg.Log = slog.New(slog.DiscardHandler)
	}
	if err := s.prepare(ctx, stores); err != nil {
		return nil, err
	}
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			cfg := cfg
			cfg.shares, cfg.share, cfg.Store = s, i, stores(i)
			if cfg.clocks != nil {
				cfg.Clock = cfg.clocks(i)
			}
			if _, err := Open(ctx, cfg); err != nil {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.engines[i], errs[i] = nil, fmt.Errorf("share %d: %w", i, err)
			}
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if s.office == nil {
		s.rekey()
		for i, e := range s.engines {
			for _, x := range e.all() {
				s.places[x.decl.Name] = i
			}
		}
	}
	return s, nil
}

func newReading() *reading { return &reading{done: make(chan struct{})} }

// prepare has all stores made, one after the other, and reads the office if they have one.
func (s *Shares) prepare(ctx context.Context, stores func(int) func(context.Context) (store.Store, error)) error {
	var has, shared bool
	for i := range s.engines {
		st, err := stores(i)(ctx)
		if err == nil {
			if i == 0 {
				_, has = st.(store.Office)
				_, shared = st.(store.Shared)
				err = s.uncapped(ctx, st)
			}
			err = errors.Join(err, st.Close())
		}
		if err != nil {
			return fmt.Errorf("serve: share %d: %w", i, err)
		}
	}
	switch {
	case shared && !has:
		return errors.New("serve: the store is shared by processes, and cannot be one of many")
	case !has || s.cfg.ReadOnly:
		close(s.done)
		return nil
	}
	s.office = stores(0)
	var st store.Office
	if err := s.meet(ctx, &st, openWithin); err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	running, end := context.WithCancel(context.WithoutCancel(ctx))
	s.end = end
	go s.run(running, st)
	return nil
}

// errCapped is matched where experiments in shares are to have a cap on what one person may lose.
var errCapped = errors.New("must be 1 with a cap on what one person may lose (--person-cap): it is looked at " +
	"with all experiments at once")

// uncapped is nil if no start of before has its cap go on, or the program says that there is none.
func (s *Shares) uncapped(ctx context.Context, st store.Store) error {
	heads, err := st.Heads(ctx)
	for _, h := range heads.Experiments {
		var r record
		if err := json.Unmarshal(h.Data, &r); err != nil {
			return err
		}
		if s.cfg.PersonCap == nil && r.Cap != "" && r.Cap != (PersonCap{}).String() {
			return fmt.Errorf("shares is %d, %w; experiment %q was started under %s", len(s.engines), errCapped, h.Name,
				r.Cap)
		}
	}
	return err
}

// enter is the beginning of an engine's opening.
func (s *Shares) enter(e *Engine) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.engines[e.cfg.share], e.keys = e, s.keys
}

// Engines are those of the shares, by number.
func (s *Shares) Engines() []*Engine { return slices.Clone(s.engines) }

// Of is the share that an experiment is in; it is not ok where there is no such experiment. With one share
// it is that, of every name. A name that is not known is looked for in the database, by one question for all who
// wait, and so is one that was made by another process just now.
func (s *Shares) Of(ctx context.Context, name string) (share int, ok bool, err error) {
	if len(s.engines) == 1 {
		return 0, true, nil
	}
	s.mu.Lock()
	share, ok = s.places[name]
	next := s.next
	s.mu.Unlock()
	if ok || s.office == nil {
		return share, ok, nil
	}
	select {
	case s.asked <- struct{}{}:
	default:
	}
	select {
	case <-next.done:
	case <-s.done:
		return 0, false, fmt.Errorf("%w: the engine was closed", ErrUnavailable)
	case <-ctx.Done():
		return 0, false, ctx.Err()
	}
	if next.err != nil {
		return 0, false, fmt.Errorf("%w: %w", ErrUnavailable, next.err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	share, ok = s.places[name]
	return share, ok, nil
}

// Names are those of all experiments of all shares, as they were read last.
func (s *Shares) Names(context.Context) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.places)), nil
}

// New is the share in which an experiment is created.
func (s *Shares) New(decl Experiment) int { return ShareOf(decl, len(s.engines)) }

// ShareOf is the share of n in which an experiment is created: the first, where it must be looked at
// together with others, or reports name it by a task; otherwise one that follows from its name.
func ShareOf(decl Experiment, n int) int {
	if n <= 1 || decl.Layer.Name != "" || decl.Holds != "" || decl.Holdout != "" ||
		decl.TrustModel() != privacy.TrustCentral {
		return 0
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(decl.Name)) // never fails
	return 1 + int(h.Sum64()%uint64(n-1))
}

// admit is nil if an experiment may be created in a share. Of two processes that are both told so of one
// name, the store refuses one.
func (s *Shares) admit(ctx context.Context, decl *Experiment, share int) error {
	if s == nil {
		return nil
	}
	if s.New(*decl) != share {
		return errPlace
	}
	at, ok, err := s.Of(ctx, decl.Name)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.office == nil {
		if at, ok = s.places[decl.Name]; !ok {
			s.places[decl.Name] = share
		}
	}
	if ok && at != share { // of its own, the engine knows
		return fmt.Errorf("experiment %q: %w", decl.Name, ErrExists)
	}
	return nil
}

// Lead waits until this process writes share 0.
func (s *Shares) Lead(ctx context.Context) error { return s.engines[0].Lead(ctx) }

// Superseded is closed when this process is to end: the store of one share was taken over, see
// Engine.Superseded, or another process has made more shares than this one knows of.
func (s *Shares) Superseded() <-chan struct{} {
	if len(s.engines) == 1 {
		return s.engines[0].Superseded()
	}
	return s.more
}

// Close writes what is to be written, and lets others have all shares.
func (s *Shares) Close() error {
	s.mu.Lock()
	s.closing = true
	s.mu.Unlock()
	s.end()
	<-s.done
	errs := make([]error, len(s.engines))
	var all sync.WaitGroup
	for i, e := range s.engines {
		if e != nil {
			all.Go(func() { errs[i] = e.Close() })
		}
	}
	all.Wait()
	return errors.Join(errs...)
}

// run reads the office until the end.
func (s *Shares) run(ctx context.Context, st store.Office) {
	defer close(s.done)
	failed, begun := false, time.Now()
	rest := func(until time.Time, asked <-chan struct{}) {
		timer := time.NewTimer(time.Until(until))
		defer timer.Stop()
		select {
		case <-ctx.Done():
		case <-asked:
		case <-timer.C:
		}
	}
	for {
		rest(time.Now().Add(meetAgain), nil)
		rest(begun.Add(meetEvery), s.asked)
		if ctx.Err() != nil {
			break
		}
		begun = time.Now()
		err := s.meet(ctx, &st, leadFor)
		if err != nil && !failed {
			s.cfg.Log.Error("serve: the office cannot be read", "error", err)
		}
		failed = err != nil
	}
	if st != nil {
		within, cancel := context.WithTimeout(context.WithoutCancel(ctx), leadFor)
		defer cancel()
		if s.cfg.Advertise != "" {
			_ = st.Leave(within, s.cfg.Advertise) // the others see it anyway, later
		}
		_ = st.Close()
	}
}

// meet reads the office once, within a time, of a store that is opened where it is not, and does what follows.
func (s *Shares) meet(ctx context.Context, st *store.Office, limit time.Duration) (err error) {
	s.mu.Lock()
	mine := s.next
	s.next = newReading()
	s.mu.Unlock()
	defer func() {
		if mine.err = err; err != nil && *st != nil {
			_ = (*st).Close()
			*st = nil
		}
		close(mine.done)
	}()
	if *st == nil {
		within, cancel := context.WithTimeout(ctx, openWithin)
		defer cancel()
		opened, err := s.office(within)
		if err != nil {
			return err
		}
		var ok bool
		if *st, ok = opened.(store.Office); !ok {
			return errors.Join(errors.New("the store is not of many shares any more"), opened.Close())
		}
	}
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	from, address := time.Now(), s.cfg.Advertise
	if from.Sub(s.noted) < noteEvery { // whoever asks has no more written by it
		address = ""
	}
	met, err := (*st).Meet(within, address)
	if err != nil {
		return err
	}
	if address != "" {
		s.noted = from
	}
	if met.Shares > len(s.engines) {
		s.quit(met.Shares)
		return fmt.Errorf("there are %d shares", met.Shares)
	}
	s.goBy(met, from)
	return nil
}

// goBy has all engines know what is in the office, and gives a share back where this process has too many.
func (s *Shares) goBy(met store.Met, from time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if met.Nodes != s.nodes {
		s.wait = giveEvery
	}
	s.places, s.nodes = met.Places, met.Nodes
	s.changeKeys(met.Keys)
	s.read.Store(int64(from.Sub(s.epoch)))
	if s.count() <= s.quota() || time.Since(s.gave) < s.wait {
		return
	}
	for i, e := range slices.Backward(s.engines) {
		if e != nil && s.held[i] && e.Ready() == nil {
			s.given, s.gave = i, time.Now()
			e.leave()
			return
		}
	}
}

// changeKeys has all engines but the office's go by keys; s.mu is locked.
func (s *Shares) changeKeys(keys []store.Record) {
	if slices.EqualFunc(s.keys, keys, func(a, b store.Record) bool {
		return a.ID == b.ID && a.Name == b.Name && bytes.Equal(a.Data, b.Data)
	}) {
		return
	}
	s.keys = keys
	for _, e := range s.engines[1:] {
		if e != nil {
			e.mu.Lock()
			e.changeKeys(keys)
			e.mu.Unlock()
		}
	}
}

// rekey has all engines of this process go by the keys of its office.
func (s *Shares) rekey() {
	if s == nil {
		return
	}
	office := s.engines[0]
	office.mu.RLock()
	keys := slices.Clone(office.keys)
	office.mu.RUnlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changeKeys(keys)
}

// told waits until whoever answers goes by keys that are durable now. An engine answers by what was read in the
// office within leadFor, counted from before it was asked for; so after lapse, which is more, none is left that
// answers by what was before.
func (s *Shares) told(ctx context.Context) error {
	if s == nil || s.office == nil {
		return nil
	}
	select {
	case <-time.After(lapse):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// sees says whether what this process knows of the office is new enough to answer by it.
func (s *Shares) sees() bool {
	return s == nil || s.office == nil || time.Since(s.epoch)-time.Duration(s.read.Load()) < leadFor
}

// quota is how many shares this process may have while others have less. Those that nobody can reach have what
// nobody else takes. s.mu is locked.
func (s *Shares) quota() int {
	if s.cfg.Advertise == "" && s.nodes > 0 {
		return 0
	}
	nodes := max(s.nodes, 1)
	return (len(s.held) + nodes - 1) / nodes
}

func (s *Shares) count() (n int) {
	for _, h := range s.held {
		if h {
			n++
		}
	}
	return n
}

// take says whether this process is to claim a share that nobody writes, late if all had time to. If so, it has it.
func (s *Shares) take(share int, late bool) bool {
	if s == nil {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing || !s.held[share] && !late && s.count() >= s.quota() {
		return false
	}
	if s.held[share] = true; s.given == share { // nobody wanted it
		s.given, s.wait = -1, min(2*s.wait, giveAgain)
	}
	return true
}

// has notes that this process writes a share, or does not.
func (s *Shares) has(share int, yes bool) {
	if s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.held[share] = yes
	}
}

// quit ends all answers of this process, and has others write.
func (s *Shares) quit(shares int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return
	}
	s.closing = true
	s.cfg.Log.Error("serve: this process answers nothing more: the database has more shares than it knows of",
		"shares", shares, "known", len(s.engines))
	for _, e := range s.engines {
		if e != nil {
			e.out.Store(true)
			e.leave()
		}
	}
	close(s.more)
}

// office says whether an engine has the keys.
func (e *Engine) office() bool { return e.cfg.shares == nil || e.cfg.share == 0 }

// leave asks the writer of an engine to give its share back.
func (e *Engine) leave() {
	e.leaves.Store(true)
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// handOver ends the writing of this process: what it has answered is durable, and the others see at once that its
// connection has ended. A decision that was on its way is not answered (see still).
func (e *Engine) handOver(ctx context.Context) {
	e.confirm(time.Time{}) // nobody is decided for from here on
	e.queue.Lock()
	e.queue.closed = errElsewhere // and what has come is the last
	e.queue.Unlock()
	e.ending = true
	err := e.step(ctx, everybody)
	e.ending = false
	if err != nil {
		e.ail(err)
	}
	e.term = 0 // so that it is not believed to be the last that wrote, nor by the store
	if s, ok := e.store.(store.Giver); ok {
		s.Give()
	}
	e.lost(store.ErrFenced)
	e.cfg.shares.has(e.cfg.share, false)
	e.cfg.Log.Info("serve: this process gives a share back", "share", e.cfg.share)
}
