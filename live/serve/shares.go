package serve

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"sync"

	"github.com/sotto-dp/sotto/live/serve/store"
	"github.com/sotto-dp/sotto/privacy"
)

// MaxShares is how many shares a database has at most.
const MaxShares = 32

// errPlace: an experiment is created where it is not to be.
var errPlace = errors.New("serve: the experiment is another share's")

// Shares are the experiments of a process in parts, so that not one process of many writes all of them: a
// share is a store, with a term, a fence and a journal of its own, and one engine that writes it or
// follows who does. An experiment stays in its share for ever. Share 0 is the office: it has the keys, and
// which share each experiment is in. Begin with OpenShares.
type Shares struct {
	engines []*Engine

	mu     sync.Mutex // of what follows
	places map[string]int
}

// OpenShares opens n stores, and an engine on each; with one it is Open. The processes on a database have
// the same n, or its stores say so; none has Config.PersonCap where n is more than 1, since that is looked
// at with all experiments.
func OpenShares(ctx context.Context, cfg Config, n int,
	stores func(i int) func(context.Context) (store.Store, error)) (*Shares, error) {
	switch {
	case n < 1 || n > MaxShares:
		return nil, fmt.Errorf("serve: shares is %d, must be from 1 to %d", n, MaxShares)
	case n > 1 && cfg.PersonCap != nil && *cfg.PersonCap != (PersonCap{}):
		return nil, fmt.Errorf("serve: shares is %d, must be 1 with a cap on what one person may lose: it is "+
			"looked at with all experiments at once", n)
	}
	s := &Shares{engines: make([]*Engine, n), places: map[string]int{}}
	if n > 1 {
		cfg.shares = s
	}
	var err error
	for i := range s.engines {
		cfg.share, cfg.Store = i, stores(i)
		if s.engines[i], err = Open(ctx, cfg); err != nil {
			s.engines = s.engines[:i]
			return nil, errors.Join(fmt.Errorf("share %d: %w", i, err), s.Close())
		}
		for _, x := range s.engines[i].all() {
			s.places[x.decl.Name] = i
		}
	}
	s.rekey()
	return s, nil
}

// Engines are those of the shares, by number.
func (s *Shares) Engines() []*Engine { return slices.Clone(s.engines) }

// Of is the share that an experiment is in; it is not ok where there is no such experiment. With one share
// it is that, of every name. Asking for a name that is not there costs the database nothing.
func (s *Shares) Of(ctx context.Context, name string) (share int, ok bool, err error) {
	if len(s.engines) == 1 {
		return 0, true, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	share, ok = s.places[name]
	return share, ok, ctx.Err()
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

// Lead waits until this process writes share 0.
func (s *Shares) Lead(ctx context.Context) error { return s.engines[0].Lead(ctx) }

// Close writes what is to be written, and lets others have all shares.
func (s *Shares) Close() error {
	errs := make([]error, len(s.engines))
	var all sync.WaitGroup
	for i, e := range s.engines {
		all.Go(func() { errs[i] = e.Close() })
	}
	all.Wait()
	return errors.Join(errs...)
}

// rekey has all engines go by the keys of share 0.
func (s *Shares) rekey() {
	office := s.engines[0]
	office.mu.RLock()
	keys := slices.Clone(office.keys)
	office.mu.RUnlock()
	for _, e := range s.engines[1:] {
		e.mu.Lock()
		e.changeKeys(keys)
		e.mu.Unlock()
	}
}

// admit notes that an experiment is going to be in a share.
func (s *Shares) admit(decl *Experiment, share int) error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.New(*decl) != share {
		return errPlace
	}
	if at, ok := s.places[decl.Name]; ok && at != share {
		return fmt.Errorf("experiment %q: %w", decl.Name, ErrExists)
	}
	s.places[decl.Name] = share
	return nil
}

// office says whether an engine has the keys.
func (e *Engine) office() bool { return e.cfg.shares == nil || e.cfg.share == 0 }
