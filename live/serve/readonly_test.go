package serve

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/live/serve/store"
)

// fileSums are the hashes of a directory's files. A reader makes and takes away the index of the log.
func fileSums(t *testing.T, dir string) string {
	t.Helper()
	out := ""
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) == ".db-shm" {
			return err
		}
		b, err := os.ReadFile(path)
		if len(b) > 0 {
			out += fmt.Sprintf("%s %x\n", d.Name(), sha256.Sum256(b))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Who only reads shows what there is, changes no byte, decides and takes nothing, and leaves the
// writer to its work.
func TestReadOnly(t *testing.T) {
	dir, c := t.TempDir(), newClock()
	e := open(t, Config{Store: store.SQLite(dir), Clock: c.Now})
	begin(t, e, shop)
	secret, _, err := e.NewKey(t.Context(), "reader", ScopeRead)
	if err != nil {
		t.Fatal(err)
	}
	var last Decision
	for i := range 60 {
		if last, err = e.Decide(t.Context(), "shop", fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	settle(t, e, c, time.Minute, 3)
	want, err := e.Get(t.Context(), "shop")
	for want.Wait == "release" { // which is durable, and not shown yet
		settle(t, e, c, time.Second, 1)
		want, err = e.Get(t.Context(), "shop")
	}
	if err != nil || want.Batches == 0 {
		t.Fatalf("%+v, %v", want, err)
	}
	before := fileSums(t, dir)
	r := open(t, Config{Store: store.SQLiteReader(dir), Clock: c.Now, ReadOnly: true})
	got, err := r.Get(t.Context(), "shop")
	if err != nil || got.State != Running || fmt.Sprint(got.Arms, got.Batches, got.Spent) !=
		fmt.Sprint(want.Arms, want.Batches, want.Spent) || r.May(secret) != ScopeRead {
		t.Errorf("%+v, %v; was %+v", got, err, want)
	}
	lines, err := r.Transcript(t.Context(), "shop")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, err := range lines {
		if n++; err != nil {
			t.Error(err)
		}
	}
	if n != want.Lines {
		t.Errorf("%d lines of %d", n, want.Lines)
	}
	for name, do := range map[string]func() error{
		"decide": func() error { _, err := r.Decide(t.Context(), "shop", "0"); return err },
		"reward": func() error { _, err := r.Reward(t.Context(), "shop", Report{last.Token, 1}); return err },
		"forged": func() error { _, err := r.Reward(t.Context(), "shop", Report{"x", 1}); return err },
		"stop":   func() error { return r.Stop(t.Context(), "shop", "") },
		"create": func() error { return r.Create(t.Context(), decl.Experiment(parse(t, shop))) },
		"key":    func() error { _, _, err := r.NewKey(t.Context(), "x", ScopeRead); return err },
		"sync":   func() error { return r.Sync(t.Context()) },
		"ready":  func() error { return r.Ready() },
	} {
		if err := do(); !errors.Is(err, ErrReadOnly) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := r.store.Commit(t.Context(), store.Commit{}); !errors.Is(err, store.ErrReadOnly) {
		t.Error(err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if after := fileSums(t, dir); after != before {
		t.Errorf("it changed files:\n%s\nwere\n%s", after, before)
	}
	if err := e.Pause(t.Context(), "shop"); err != nil {
		t.Errorf("the writer was put out: %v", err)
	}
	if _, err := Open(t.Context(), Config{Store: store.SQLiteReader(t.TempDir()),
		ReadOnly: true}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("where nothing is: %v", err)
	}
}
