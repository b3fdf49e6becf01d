package serve

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/sotto-dp/sotto/live/serve/store"
)

// A Scope is what the holder of a key, or a person who has logged in, may do.
type Scope uint16

// The scopes. Admin is all of them but browser, sign and test; who has it can force an arm too.
const (
	ScopeDecide Scope = 1 << iota // ask for decisions
	ScopeReward                   // report rewards
	ScopeRead                     // read experiments, transcripts and ledgers
	scopeManage
	// ScopeBrowser takes from decide and reward, beside which it stands: the key is in a page
	// that everybody can read. Units that it names must be signed, see Engine.SignedUnit, or
	// be its cookie's.
	ScopeBrowser
	ScopeSign    // sign the names of units
	ScopeTest    // force an arm, in decisions that do not count
	ScopeMetrics // read the private metrics, which tell who reported
	// ScopeOperate starts, pauses, resumes, stops and archives experiments, and takes arms off, at the pages. It
	// is a person's: a key has it with admin alone, beside which it is not stored.
	ScopeOperate
	ScopeAdmin = ScopeDecide | ScopeReward | ScopeRead | scopeManage | ScopeMetrics | ScopeOperate
)

// scopeNames are the scopes by name; those of admin are not said again beside it.
var scopeNames = []struct {
	scope Scope
	name  string
}{{ScopeDecide, "decide"}, {ScopeReward, "reward"}, {ScopeRead, "read"}, {ScopeAdmin, "admin"},
	{ScopeBrowser, "browser"}, {ScopeSign, "sign"}, {ScopeTest, "test"},
	{ScopeMetrics, "metrics"}}

// ScopeNames are those that ParseScope knows, as they are written in a sentence.
const ScopeNames = "decide, reward, read, admin, browser, sign, test and metrics"

// AllScopes are the names that ParseScope knows.
func AllScopes() (out []string) {
	for _, s := range scopeNames {
		out = append(out, s.name)
	}
	return out
}

// ParseScope reads the name of a scope.
func ParseScope(name string) (Scope, error) {
	for _, s := range scopeNames {
		if s.name == name {
			return s.scope, nil
		}
	}
	return 0, errors.New("scope must be one of " + ScopeNames)
}

// Names are those of the scopes in s.
func (s Scope) Names() []string {
	out := []string{}
	for _, n := range scopeNames {
		if part := n.scope != ScopeAdmin && n.scope&ScopeAdmin != 0 && s&ScopeAdmin == ScopeAdmin; s&n.scope ==
			n.scope && !part {
			out = append(out, n.name)
		}
	}
	return out
}

// MayForce says whether who has them can force an arm.
func (s Scope) MayForce() bool { return s&(ScopeTest|scopeManage) != 0 }

// check says which scopes do not go together, and which a key of one experiment cannot have.
func (s Scope) check(experiment string) error {
	switch {
	case s&(ScopeOperate|scopeManage) == ScopeOperate:
		return fieldError("scopes", "the %w has operate without admin, which a person alone can have", ErrKey)
	case s == 0 || s&^(ScopeAdmin|ScopeBrowser|ScopeSign|ScopeTest) != 0:
		return fieldError("scopes", "the %w has none that is known, must have at least one", ErrKey)
	case s&ScopeBrowser != 0 && (s&(ScopeDecide|ScopeReward) == 0 ||
		s&^(ScopeBrowser|ScopeDecide|ScopeReward) != 0):
		return fieldError("scopes", "the %w has browser, must have decide, reward or both beside it, "+
			"and nothing else: everybody sees it", ErrKey)
	case experiment != "" && s&^(ScopeDecide|ScopeReward|ScopeBrowser|ScopeTest) != 0:
		return fieldError("scopes", "the %w is of one experiment alone, may have decide, reward, browser and "+
			"test", ErrKey)
	}
	return nil
}

// ErrKey: a key is too short, or named badly.
var ErrKey = errors.New("key")

// ErrRevoked: a key that was revoked is added again. It matches ErrKey.
var ErrRevoked = fmt.Errorf("%w was revoked, and stays so", ErrKey)

// ErrLastKey: without the key that is to be revoked, no other has the scope admin.
var ErrLastKey = errors.New("the key is the last one of the scope admin")

// A Key is what is known of a key, which is not the key: the store has its hash.
type Key struct {
	ID      int64
	Name    string // for people to read
	Scopes  Scope  // 0: it was revoked
	Created time.Time
	// Experiment is the only one that it is good for; empty: it is for all.
	Experiment string
	// Issuer named who this is, a person (Engine.Person) and no key; empty: it is a key.
	Issuer string
}

// For says whether a key is good for an experiment.
func (k Key) For(experiment string) bool { return k.Experiment == "" || k.Experiment == experiment }

// A stored key is its SHA-256, its scopes, none if it was revoked, when it was made, and the experiment
// that it is for, if it is for one. It needs no slow hash: a key that NewKey makes has 192 random bits, and AddKey's
// are the operator's to choose well.
const keyBytes = sha256.Size + 1 + 8

// minKey and maxKey bound the length of a key that was not made here.
const (
	minKey     = 32
	maxKey     = 256
	maxKeyName = 100
)

// NewKey makes a key, and returns it when its hash is durable: nobody can ask for it again.
func (e *Engine) NewKey(ctx context.Context, name string, scopes Scope) (secret string, _ Key, err error) {
	return e.NewKeyFor(ctx, "", name, scopes)
}

// NewKeyFor is NewKey of a key that is good for one experiment, which is there, and may decide,
// reward and test alone. An empty experiment is all of them.
func (e *Engine) NewKeyFor(ctx context.Context, experiment, name string, scopes Scope) (secret string,
	_ Key, err error) {
	var b [24]byte
	if _, err := io.ReadFull(e.cfg.random, b[:]); err != nil {
		return "", Key{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	secret = "sotto_" + base64.RawURLEncoding.EncodeToString(b[:])
	k, err := e.addKey(ctx, experiment, name, scopes, secret)
	return secret, k, err
}

// AddKey adds a key that was made elsewhere, of 32 to 256 characters. One that is there already
// with these scopes stays as it is, and one that was revoked stays revoked: ErrRevoked.
func (e *Engine) AddKey(ctx context.Context, name string, scopes Scope, secret string) (Key, error) {
	return e.addKey(ctx, "", name, scopes, secret)
}

func (e *Engine) addKey(ctx context.Context, experiment, name string, scopes Scope, secret string) (Key,
	error) {
	switch {
	case len(secret) < minKey || len(secret) > maxKey:
		return Key{}, fmt.Errorf("%w has %d characters, must have from %d to %d", ErrKey, len(secret),
			minKey, maxKey)
	case name == "" || len(name) > maxKeyName || strings.ContainsFunc(name, func(r rune) bool {
		return r < ' '
	}):
		return Key{}, fmt.Errorf("%w must have a name of at most %d characters", ErrKey, maxKeyName)
	}
	if err := scopes.check(experiment); err != nil {
		return Key{}, err
	}
	if !e.office() {
		return Key{}, errElsewhere
	}
	if err := e.known(ctx, experiment); err != nil {
		return Key{}, err
	}
	hash := sha256.Sum256([]byte(secret))
	var k Key
	var row store.Record
	err := e.do(ctx, &job{
		act: func(_ *served, c *store.Commit, now int64) error {
			id := int64(1)
			for _, r := range e.keysWith(c) {
				id = max(id, r.ID+1)
				switch is := keyOf(r); {
				case !isKey(r, hash):
				case is.Scopes == 0:
					return ErrRevoked
				case is.Scopes == scopes && is.Experiment == experiment:
					k = is
				}
			}
			if k.ID != 0 {
				return nil
			}
			data := append(slices.Clone(hash[:]), byte(scopes))
			data = append(binary.BigEndian.AppendUint64(data, uint64(now)), experiment...)
			row = store.Record{ID: id, Name: name, Data: data}
			k = keyOf(row)
			c.Keys = append(c.Keys, row)
			note(ctx, c, Entry{Did: "make key", Experiment: experiment, With: name})
			return nil
		},
		after: func() {
			if row.ID != 0 {
				e.setKeys(row)
			}
		},
	})
	if err == nil && row.ID != 0 {
		err = e.cfg.shares.told(ctx)
	}
	if err != nil {
		return Key{}, err
	}
	return k, nil
}

// RevokeKey takes all its scopes from a key, at once and for good: its hash stays, so that it is known
// when it is added again. What was added twice goes together. The last key with ScopeAdmin is left,
// ErrLastKey: RevokeLastKey takes that too.
func (e *Engine) RevokeKey(ctx context.Context, id int64) error { return e.revokeKey(ctx, id, false) }

// RevokeLastKey is RevokeKey of a key that may be the last one with ScopeAdmin.
func (e *Engine) RevokeLastKey(ctx context.Context, id int64) error {
	return e.revokeKey(ctx, id, true)
}

func (e *Engine) revokeKey(ctx context.Context, id int64, last bool) error {
	if !e.office() {
		return errElsewhere
	}
	var gone []store.Record
	err := e.do(ctx, &job{
		act: func(_ *served, c *store.Commit, _ int64) error {
			all := e.keysWith(c)
			at := slices.IndexFunc(all, func(r store.Record) bool { return r.ID == id && len(r.Data) >= keyBytes })
			if at < 0 {
				return fmt.Errorf("key %d: %w", id, errNoKey)
			}
			hash := [sha256.Size]byte(all[at].Data)
			takes, leaves := false, false // the scope admin
			for _, r := range all {
				admin := keyOf(r).Scopes&ScopeAdmin == ScopeAdmin
				if !isKey(r, hash) {
					leaves = leaves || admin
					continue
				}
				takes = takes || admin
				r.Data = slices.Clone(r.Data)
				r.Data[sha256.Size] = 0
				gone = append(gone, r)
			}
			if takes && !leaves && !last {
				return ErrLastKey
			}
			c.Keys = append(c.Keys, gone...)
			note(ctx, c, Entry{Did: "revoke key", With: all[at].Name})
			return nil
		},
		after: func() { e.setKeys(gone...) },
	})
	if err != nil {
		return err
	}
	return e.cfg.shares.told(ctx)
}

// known is nil if there is an experiment, in any share, for a key to be good for; an empty name is all.
func (e *Engine) known(ctx context.Context, experiment string) error {
	if experiment == "" {
		return nil
	}
	if s := e.cfg.shares; s != nil {
		if share, ok, err := s.Of(ctx, experiment); err != nil || ok && share != e.cfg.share {
			return err
		}
	}
	_, err := e.find(experiment)
	return err
}

// errNoKey matches ErrNotFound, and reads better.
var errNoKey = notFound("there is no such key")

type notFound string

func (n notFound) Error() string      { return string(n) }
func (notFound) Is(target error) bool { return target == ErrNotFound }

// keysWith are the keys as they are when a commit is durable.
func (e *Engine) keysWith(c *store.Commit) []store.Record {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return withKeys(e.keys, c.Keys)
}

// withKeys are keys with some that are new, or others by their ID now.
func withKeys(keys, rows []store.Record) []store.Record {
	out := slices.Clone(keys)
	for _, row := range rows {
		out = append(slices.DeleteFunc(out, func(r store.Record) bool { return r.ID == row.ID }), row)
	}
	return out
}

// setKeys makes keys known that are durable.
func (e *Engine) setKeys(rows ...store.Record) {
	e.mu.Lock()
	e.changeKeys(withKeys(e.keys, rows))
	e.mu.Unlock()
	e.cfg.shares.rekey()
}

// changeKeys puts keys in the place of those that were; e.mu is locked.
func (e *Engine) changeKeys(keys []store.Record) {
	e.keys = keys
	close(e.rekeyed)
	e.rekeyed = make(chan struct{})
}

// KeysChanged is closed when a key is made or revoked next: for answers that last, whose reader must
// not outlast the key.
func (e *Engine) KeysChanged() <-chan struct{} {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.rekeyed
}

// Keys are all keys that there are and were.
func (e *Engine) Keys() []Key {
	e.mu.RLock()
	defer e.mu.RUnlock()
	out := make([]Key, len(e.keys))
	for i, r := range e.keys {
		out[i] = keyOf(r)
	}
	slices.SortFunc(out, func(a, b Key) int { return int(a.ID - b.ID) })
	return out
}

// May says what the holder of a key may do: nothing, if it is not one.
func (e *Engine) May(secret string) Scope { return e.Who(secret).Scopes }

// Who is the key that this is, with no scopes if it is none. What was added twice, with different
// scopes, has all of them. What it may do, it may for its Experiment alone, if it has one.
func (e *Engine) Who(secret string) Key { return e.who(sha256.Sum256([]byte(secret))) }

func (e *Engine) who(hash [sha256.Size]byte) (k Key) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	for _, r := range e.keys {
		if isKey(r, hash) && keyOf(r).Scopes != 0 {
			scopes := k.Scopes
			k = keyOf(r)
			k.Scopes |= scopes
		}
	}
	return k
}

func isKey(r store.Record, hash [sha256.Size]byte) bool {
	return len(r.Data) >= keyBytes && subtle.ConstantTimeCompare(r.Data[:sha256.Size], hash[:]) == 1
}

func keyOf(r store.Record) Key {
	k := Key{ID: r.ID, Name: r.Name}
	if len(r.Data) >= keyBytes {
		if k.Scopes = Scope(r.Data[sha256.Size]); k.Scopes&scopeManage != 0 {
			k.Scopes |= ScopeOperate
		}
		k.Created = time.UnixMilli(int64(binary.BigEndian.Uint64(r.Data[sha256.Size+1:])))
		k.Experiment = string(r.Data[keyBytes:])
	}
	return k
}
