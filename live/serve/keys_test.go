package serve

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sotto-dp/sotto/live/serve/store"
)

// A key opens what its scopes say, also after a restart, and nothing once it was revoked; the
// store's files do not have it.
func TestKeys(t *testing.T) {
	dir, c := t.TempDir(), newClock()
	cfg := Config{Store: store.SQLite(dir), Clock: c.Now}
	e := open(t, cfg)
	admin, _, err := e.NewKey(t.Context(), "admin", ScopeAdmin)
	if err != nil || len(admin) != 38 {
		t.Fatal(admin, err)
	}
	shop, k, err := e.NewKey(t.Context(), "the shop's server", ScopeDecide|ScopeReward)
	if err != nil || k.ID != 2 || !slices.Equal(k.Scopes.Names(), []string{"decide", "reward"}) {
		t.Fatalf("%+v, %v", k, err)
	}
	for range 2 { // the same again changes nothing
		if k, err := e.AddKey(t.Context(), "file", ScopeAdmin,
			strings.Repeat("k", 32)); err != nil || k.ID != 3 {
			t.Fatalf("%+v, %v", k, err)
		}
	}
	for _, x := range []struct {
		name, secret string
		scopes       Scope
	}{{"x", "short", ScopeRead}, {"", strings.Repeat("x", 40), ScopeRead}, {"x", strings.Repeat("x", 40), 0},
		{"x", strings.Repeat("x", 257), ScopeRead}} {
		if _, err := e.AddKey(t.Context(), x.name, x.scopes, x.secret); !errors.Is(err, ErrKey) ||
			strings.Contains(err.Error(), x.secret+" ") {
			t.Errorf("%+v: %v", x, err)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e = open(t, cfg)
	if e.May(admin) != ScopeAdmin || e.May(shop) != ScopeDecide|ScopeReward || e.May(shop+"x") != 0 ||
		e.May("") != 0 || len(e.Keys()) != 3 {
		t.Errorf("%b %b %+v", e.May(admin), e.May(shop), e.Keys())
	}
	if err := e.RevokeKey(t.Context(), 9); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	if err := e.RevokeKey(t.Context(), k.ID); err != nil || e.May(shop) != 0 || e.Keys()[1].Scopes != 0 ||
		!e.Keys()[1].Created.Equal(c.Now()) {
		t.Errorf("%v: %+v", err, e.Keys())
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e = open(t, cfg)
	if e.May(shop) != 0 || e.May(admin) != ScopeAdmin {
		t.Error("a revoked key opens after a restart, or a good one does not")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil || bytes.Contains(b, []byte(admin)) || bytes.Contains(b, []byte(shop)) {
			t.Errorf("%s has a key, or %v", f, err)
		}
	}
}

// A key that was revoked stays so by its hash: added again it is refused, also after a restart and
// with other scopes, and what was added twice is revoked as one.
func TestRevokedKeyStaysRevoked(t *testing.T) {
	cfg := Config{Store: store.SQLite(t.TempDir()), Clock: newClock().Now}
	e := open(t, cfg)
	file := strings.Repeat("k", 32)
	if _, _, err := e.NewKey(t.Context(), "another", ScopeAdmin); err != nil {
		t.Fatal(err)
	}
	reads, err := e.AddKey(t.Context(), "file", ScopeRead, file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.AddKey(t.Context(), "file", ScopeAdmin, file); err != nil || e.May(file) != ScopeAdmin {
		t.Fatal(err)
	}
	session, _ := e.Session(file)
	if err := e.RevokeKey(t.Context(), reads.ID); err != nil {
		t.Fatal(err)
	}
	for _, when := range []string{"now", "after a restart"} {
		for _, scopes := range []Scope{ScopeAdmin, ScopeRead, ScopeDecide} {
			if _, err := e.AddKey(t.Context(), "file", scopes, file); !errors.Is(err, ErrRevoked) ||
				!errors.Is(err, ErrKey) || strings.Contains(err.Error(), file) {
				t.Errorf("%s, with %v: %v", when, scopes.Names(), err)
			}
		}
		if k := e.Who(file); k != (Key{}) || e.Visitor(session) != (Key{}) {
			t.Errorf("%s: %+v, %+v", when, k, e.Visitor(session))
		}
		for _, k := range e.Keys() {
			if (k.Scopes == 0) != (k.Name == "file") {
				t.Errorf("%s: %+v", when, k)
			}
		}
		if err := e.RevokeKey(t.Context(), reads.ID); err != nil { // again, which changes nothing
			t.Error(err)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		e = open(t, cfg)
	}
}

// The last key that administers is revoked by who says so explicitly, also where two are
// revoked at once.
func TestLastAdminKey(t *testing.T) {
	e := open(t, Config{Store: store.NewMemory().Open, Clock: newClock().Now})
	var ids [2]int64
	for i := range ids {
		secret, k, err := e.NewKey(t.Context(), "admin", ScopeAdmin)
		if err != nil {
			t.Fatal(err)
		}
		// the same key with fewer scopes is no other one
		if _, err := e.AddKey(t.Context(), "admin, to read", ScopeRead, secret); err != nil {
			t.Fatal(err)
		}
		ids[i] = k.ID
	}
	if _, _, err := e.NewKey(t.Context(), "all but manage", ScopeDecide|ScopeReward|ScopeRead|ScopeMetrics); err != nil {
		t.Fatal(err)
	}
	var errs [2]error
	var both sync.WaitGroup
	for i, id := range ids {
		both.Go(func() { errs[i] = e.RevokeKey(t.Context(), id) })
	}
	both.Wait()
	left := 0
	if errs[0] == nil {
		left = 1
	}
	if errs[1-left] != nil || !errors.Is(errs[left], ErrLastKey) {
		t.Fatalf("%v", errs)
	}
	if err := e.RevokeKey(t.Context(), ids[1-left]); err != nil { // which was revoked before
		t.Error(err)
	}
	if err := e.RevokeLastKey(t.Context(), ids[left]); err != nil {
		t.Error(err)
	}
	for _, k := range e.Keys() {
		if k.Scopes&ScopeAdmin == ScopeAdmin {
			t.Errorf("%+v", k)
		}
	}
}

// A key of one experiment is good for that one alone, also after a restart; it has no scopes that
// are of all experiments, and an experiment that is not there has none.
func TestKeyOfOneExperiment(t *testing.T) {
	cfg := Config{Store: store.SQLite(t.TempDir()), Clock: newClock().Now}
	e := open(t, cfg)
	begin(t, e, shop)
	secret, k, err := e.NewKeyFor(t.Context(), "shop", "the app", ScopeDecide|ScopeReward)
	if err != nil || k.Experiment != "shop" {
		t.Fatalf("%+v, %v", k, err)
	}
	for _, s := range []Scope{ScopeRead, ScopeAdmin, ScopeSign | ScopeDecide, ScopeMetrics, 0} {
		if _, _, err := e.NewKeyFor(t.Context(), "shop", "x", s); !errors.Is(err, ErrKey) {
			t.Errorf("%v: %v", s.Names(), err)
		}
	}
	if _, _, err := e.NewKeyFor(t.Context(), "none", "x", ScopeDecide); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	for _, revoked := range []bool{false, true} {
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		e = open(t, cfg)
		if got := e.Who(secret); revoked && got.Scopes != 0 || !revoked && (got != k || !got.For("shop") ||
			got.For("other")) {
			t.Errorf("%+v, was %+v", got, k)
		}
		if err := e.RevokeKey(t.Context(), k.ID); err != nil {
			t.Error(err)
		}
	}
	if got := e.Keys(); got[0].Experiment != "shop" || got[0].Scopes != 0 {
		t.Errorf("%+v", got)
	}
}
