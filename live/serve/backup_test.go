package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/pgtest"
	"github.com/sotto-dp/sotto/live/serve/store"
)

// backsUp backs an engine's store up, while it runs. A broken one has more than it may.
func backsUp(t *testing.T, e *Engine, twin string, now time.Time, to io.Writer) {
	t.Helper()
	var broken func(id int64) []byte
	if what, ok := strings.CutPrefix(twin, "backs up "); ok {
		broken = func(id int64) []byte {
			stored, err := e.reading.Load(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			if what == "totals" {
				return must(json.Marshal(stored.Totals))
			}
			return must(json.Marshal(stored.Segments))
		}
	}
	if err := backup(t.Context(), e.reading, catalog.Catalog{}, now, to, broken); err != nil {
		t.Fatal(err)
	}
}

// A machine that slept leaves the service's time behind the clock, by up to an hour without a word. A decision
// of the last moment is on disk if its reward came, and in no backup.
func TestBackupAfterASleep(t *testing.T) {
	for behind, same := range map[time.Duration]bool{0: true, 2 * time.Minute: true, agree: true,
		agree + 2*time.Minute: false} { // which the log says
		var units [2]int // bytes of them that are in the backups
		for i := range units {
			c := newClock()
			e := open(t, Config{Store: store.NewMemory().Open, Clock: c.Now})
			begin(t, e, shop)
			settle(t, e, c, time.Second, 1)
			d, err := e.Decide(t.Context(), "shop", "ann")
			if err != nil {
				t.Fatal(err)
			}
			if i == 1 {
				if _, err := e.Reward(t.Context(), "shop", Report{d.Token, 1}); err != nil {
					t.Fatal(err)
				}
			}
			var out bytes.Buffer
			backsUp(t, e, "", c.Now().Add(behind), &out)
			if err := Restore(t.Context(), &out, catalog.Catalog{}, func(_ context.Context, _ [32]byte,
				commits iter.Seq2[store.Commit, error]) error {
				for c, err := range commits {
					if err != nil {
						return err
					}
					for _, w := range c.Writes {
						units[i] += len(w.Units)
					}
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		}
		if got := units[0] == units[1]; got != same {
			t.Errorf("%v behind: %d", behind, units)
		}
	}
}

// A backup that is made while the service runs is restored, on either store: what is in it can be read as it
// was, and stopped. What ran has failed, and no file of either has a sum that was not released.
func TestBackupAndRestore(t *testing.T) {
	restored := filepath.Join(t.TempDir(), "restored")
	backsUpAndRestores(t, store.SQLite(t.TempDir()), store.FillSQLite(restored), store.SQLite(restored),
		store.SQLiteReader(restored))
}

func TestBackupAndRestorePostgres(t *testing.T) {
	from, to := pgtest.Database(t), pgtest.Database(t)
	fill, err := store.FillPostgres(to)
	if err != nil {
		t.Fatal(err)
	}
	reader, err := store.PostgresReader(to)
	if err != nil {
		t.Fatal(err)
	}
	backsUpAndRestores(t, postgresAt(t, from), fill, postgresAt(t, to), reader)
}

func backsUpAndRestores(t *testing.T, from opener, fill store.Fill, to, reader opener) {
	c := newClock()
	e := open(t, Config{Store: from, Clock: c.Now})
	begin(t, e, shop)
	begin(t, e, strings.Replace(shop, "name: shop", "name: ended", 1))
	if err := e.Create(t.Context(), parse(t, strings.Replace(shop, "name: shop", "name: draft", 1))); err != nil {
		t.Fatal(err)
	}
	secret, _, err := e.NewKey(t.Context(), "reader", ScopeRead)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 300 {
		for _, name := range []string{"shop", "ended"} {
			d, err := e.Decide(t.Context(), name, fmt.Sprint(i))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := e.Reward(t.Context(), name, Report{d.Token, float64(i % 2)}); err != nil {
				t.Fatal(err)
			}
		}
		settle(t, e, c, time.Second, 1)
	}
	stopped(t, e, c, "ended", "blue")
	settle(t, e, c, 2*time.Minute, 2)
	if _, err := e.Decide(t.Context(), "shop", "young"); err != nil {
		t.Fatal(err)
	}
	settle(t, e, c, time.Second, 1)
	var archive bytes.Buffer
	if err := Backup(t.Context(), e.reading, catalog.Catalog{}, c.Now().Add(agree), &archive); err != nil {
		t.Fatal(err)
	}
	for what, damaged := range map[string][]byte{"empty": nil, "foreign": []byte("SQLite format 3\x00 and more of it"),
		"torn": archive.Bytes()[:archive.Len()-1], "half": archive.Bytes()[:archive.Len()/2],
		"longer":  append(bytes.Clone(archive.Bytes()), 0),
		"changed": bytes.Replace(archive.Bytes(), []byte("draft"), []byte("graft"), 1)} {
		if err := Restore(t.Context(), bytes.NewReader(damaged), catalog.Catalog{}, fill); !errors.Is(err, ErrBackup) {
			t.Errorf("%s: %v", what, err)
		}
		if st, err := reader(t.Context()); err == nil {
			t.Errorf("%s: there is a store after it", what)
			_ = st.Close()
		}
	}
	if err := Restore(t.Context(), bytes.NewReader(archive.Bytes()), catalog.Catalog{}, fill); err != nil {
		t.Fatal(err)
	}
	if err := Restore(t.Context(), bytes.NewReader(archive.Bytes()), catalog.Catalog{}, fill); !errors.Is(err,
		store.ErrNotEmpty) {
		t.Errorf("where there is a store: %v", err)
	}
	want, _ := e.Get(t.Context(), "shop")
	r := open(t, Config{Store: reader, Clock: c.Now, ReadOnly: true})
	if r.May(secret) != ScopeRead {
		t.Error("a key is not there")
	}
	for _, name := range []string{"shop", "ended"} {
		if got, was := transcriptOf(t, r, name), transcriptOf(t, e, name); !strings.HasPrefix(got, was) || was == "" {
			t.Errorf("%s: %d bytes of transcript, were %d", name, len(got), len(was))
		}
		for _, unit := range []string{"7", "young", "nobody"} {
			was, err := e.Kept(t.Context(), name, unit)
			if err != nil {
				t.Fatal(err)
			}
			got, err := r.Kept(t.Context(), name, unit)
			if err != nil {
				t.Fatal(err)
			}
			if was.State = got.State; unit == "young" { // too young for a backup
				was = Kept{Experiment: name, State: got.State, Rewards: sumsAlone}
			}
			if string(must(json.Marshal(got))) != string(must(json.Marshal(was))) {
				t.Errorf("%s of %s is %s, was %s", unit, name, must(json.Marshal(got)), must(json.Marshal(was)))
			}
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	on := open(t, Config{Store: to, Clock: c.Now})
	if err := on.Lead(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"shop", "draft"} {
		if got, _ := on.Get(t.Context(), name); got.State != Failed || got.Left != 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
	got, _ := on.Get(t.Context(), "shop")
	for a := range got.Arms {
		if got.Arms[a].Released < want.Arms[a].Released || got.Arms[a].Released == 0 {
			t.Errorf("of arm %d %d are released, were %d", a, got.Arms[a].Released, want.Arms[a].Released)
		}
	}
	if d, err := on.Decide(t.Context(), "shop", "7"); err != nil || d.Token != "" || d.Reason != Disabled {
		t.Errorf("it decides: %+v, %v", d, err)
	}
	if err := on.Stop(t.Context(), "shop", "leader"); err != nil {
		t.Error(err)
	}
	if d, err := on.Decide(t.Context(), "shop", "8"); err != nil || d.Reason != Static {
		t.Errorf("it is not stopped: %+v, %v", d, err)
	}
	if d, err := on.Decide(t.Context(), "ended", "8"); err != nil || d.Name != "blue" || d.Reason != Static {
		t.Errorf("what had stopped is not as it was: %+v, %v", d, err)
	}
	if _, err := Replay(strings.NewReader(transcriptOf(t, on, "shop")), catalog.Catalog{}); err != nil {
		t.Error(err)
	}
}

// transcriptOf is all that everybody may see of one.
func transcriptOf(t *testing.T, e *Engine, name string) string {
	t.Helper()
	lines, err := e.Transcript(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for line, err := range lines {
		if err != nil {
			t.Fatal(err)
		}
		out.Write(line)
	}
	return out.String()
}

// Nothing that is read as a backup panics, takes memory that it has no bytes for, or fills a store with what
// cannot be read again.
func FuzzBackup(f *testing.F) {
	c, mem := newClock(), store.NewMemory()
	e, err := Open(f.Context(), Config{Store: mem.Open, Clock: c.Now})
	if err != nil {
		f.Fatal(err)
	}
	defer e.Close()
	begin(f, e, shop)
	begin(f, e, news)
	if _, err := e.Decide(f.Context(), "shop", "ann"); err != nil {
		f.Fatal(err)
	}
	settle(f, e, c, time.Minute, 3)
	var archive bytes.Buffer
	if err := Backup(f.Context(), e.reading, catalog.Catalog{}, c.Now().Add(agree), &archive); err != nil {
		f.Fatal(err)
	}
	f.Add(archive.Bytes())
	f.Add(archive.Bytes()[:archive.Len()/2])
	f.Add([]byte(backupMagic + "S\xff\xff\xff\x7f"))
	f.Fuzz(func(t *testing.T, data []byte) {
		took := false
		err := Restore(t.Context(), bytes.NewReader(data), catalog.Catalog{}, func(_ context.Context, _ [32]byte,
			commits iter.Seq2[store.Commit, error]) error {
			for _, err := range commits {
				if err != nil {
					return err
				}
			}
			took = true
			return nil
		})
		if took != (err == nil) || err != nil && !errors.Is(err, ErrBackup) {
			t.Errorf("%v: %v", took, err)
		}
	})
}

// A helper's store, whose tasks have no declaration, is not backed up.
func TestBackupOfAHelper(t *testing.T) {
	st, err := store.NewMemory().Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.Begin(t.Context(), "helper"); err != nil {
		t.Fatal(err)
	}
	if err := st.Commit(t.Context(), store.Commit{Writes: []store.Write{{ID: 1, Record: &store.Record{ID: 1,
		Name: "task", Data: []byte(`{"state":"open"}`)}}}}); err != nil {
		t.Fatal(err)
	}
	if err := Backup(t.Context(), st, catalog.Catalog{}, time.Now(), io.Discard); !errors.Is(err, ErrHelperStore) {
		t.Error(err)
	}
}

// A fill that ends in an error leaves nothing, whatever was written before.
func TestFillLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	gone := errors.New("gone")
	err := store.FillSQLite(filepath.Join(dir, "to"))(t.Context(), [32]byte{}, func(yield func(store.Commit, error) bool) {
		_ = yield(store.Commit{Keys: []store.Record{{ID: 1, Name: "a"}}}, nil) && yield(store.Commit{}, gone)
	})
	if left, _ := os.ReadDir(dir); !errors.Is(err, gone) || len(left) > 0 {
		t.Errorf("%v, %v", err, left)
	}
}
