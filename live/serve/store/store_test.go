package store

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/play"
)

// A line is written, and an experiment loaded, without a look at the lines before: they were all read again
// for each that came. It runs alone, as it looks at what the process reads.
func TestLinesAreNotReadToBeCounted(t *testing.T) {
	testkit.OneGoroutine(t)
	if _, err := bytesRead(); err != nil {
		t.Skip(err)
	}
	s, _ := begin(t, SQLite(t.TempDir()))
	const line = 1 << 18
	add := func(n int) {
		t.Helper()
		w := Write{ID: 1, Record: &Record{ID: 1, Name: "one"}, Number: n, Lines: [][]byte{make([]byte, line)}}
		if err := s.Commit(t.Context(), Commit{Writes: []Write{w}}); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 64 {
		add(n)
	}
	before, _ := bytesRead()
	add(64)
	if got, err := s.Load(t.Context(), 1); err != nil || got.Lines != 65 {
		t.Errorf("%d lines, %v", got.Lines, err)
	}
	if after, _ := bytesRead(); after-before > 32*line { // the log's pages, as they go into the file, are less
		t.Errorf("%d bytes were read where 64 lines have %d", after-before, 64*line)
	}
}

// bytesRead is how much this process has read so far.
func bytesRead() (n int, err error) {
	text, err := os.ReadFile("/proc/self/io")
	if err == nil {
		_, err = fmt.Sscanf(string(text), "rchar: %d", &n)
	}
	return n, err
}

// all is everything that a store says.
type all struct {
	Opened Opened
	Stored map[int64]Stored
	Lines  map[int64][]string
	// by experiment and arm
	Reports map[int64][2][]Hidden
	Audit   []string
}

func begin(t testing.TB, open func(context.Context) (Store, error)) (Store, Opened) {
	t.Helper()
	s, err := open(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	o, err := s.Begin(context.Background(), "test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s, o
}

func everything(t rapid.TB, open func(context.Context) (Store, error)) all {
	ctx := context.Background()
	s, err := open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	out := all{Stored: map[int64]Stored{}, Lines: map[int64][]string{}, Reports: map[int64][2][]Hidden{}}
	if out.Opened, err = s.Begin(ctx, "reader"); err != nil {
		t.Fatal(err)
	}
	out.Opened.Secret, out.Opened.Clock = [32]byte{}, 0
	for line, err := range s.Audit(ctx, 1) {
		if err != nil {
			t.Fatal(err)
		}
		out.Audit = append(out.Audit, string(line))
	}
	for _, r := range out.Opened.Experiments {
		if out.Stored[r.ID], err = s.Load(ctx, r.ID); err != nil {
			t.Fatal(err)
		}
		for line, err := range s.Lines(ctx, r.ID, 1) {
			if err != nil {
				t.Fatal(err)
			}
			out.Lines[r.ID] = append(out.Lines[r.ID], string(line))
		}
		var reports [2][]Hidden
		for arm := range reports {
			for r, err := range s.Reports(ctx, r.ID, arm, 1, 4) {
				if err != nil {
					t.Fatal(err)
				}
				reports[arm] = append(reports[arm], r)
			}
		}
		out.Reports[r.ID] = reports
	}
	return out
}

func TestSQLiteIsTheModel(t *testing.T) {
	testkit.OneGoroutine(t)
	t.Parallel()
	testModel(t, func(t *rapid.T) (func(context.Context) (Store, error), func()) {
		dir, err := os.MkdirTemp("", "sotto")
		if err != nil {
			t.Fatal(err)
		}
		return SQLite(dir), func() { os.RemoveAll(dir) }
	})
}

// A store says what the disk in memory says, whatever was written, also after errors in the middle
// of a commit.
func testModel(t *testing.T, empty func(*rapid.T) (func(context.Context) (Store, error), func())) {
	rapid.Check(t, func(t *rapid.T) {
		open, end := empty(t)
		defer end()
		ctx := context.Background()
		model := NewMemory()
		a, _ := model.Open(ctx)
		b, err := open(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []Store{a, b} {
			if _, err := s.Begin(ctx, "writer"); err != nil {
				t.Fatal(err)
			}
		}
		small := rapid.IntRange(0, 3)
		blob := rapid.SliceOfN(rapid.Byte(), 1, 8)
		lines, next := map[int64]int{}, map[int64]int{}
		made := map[int64]bool{}
		for range rapid.IntRange(1, 6).Draw(t, "commits") {
			c := Commit{Now: rapid.Int64Range(0, 1<<60).Draw(t, "now")}
			wrong, after := false, map[int64]int{}
			for _, id := range rapid.SliceOfNDistinct(rapid.Int64Range(1, 3), 0, 3, rapid.ID).Draw(t, "ids") {
				w := Write{ID: id}
				if !made[id] || rapid.Bool().Draw(t, "record") {
					w.Record = &Record{id, fmt.Sprint("name ", id), blob.Draw(t, "data")}
				}
				if rapid.Bool().Draw(t, "plan") {
					w.Plan = blob.Draw(t, "plan")
				}
				for range small.Draw(t, "arms") {
					n := small.Draw(t, "arm")
					if slices.ContainsFunc(w.Arms, func(a Arm) bool { return a.Arm == n }) {
						continue
					}
					w.Arms = append(w.Arms, Arm{n, n, n + 1, n + 2, n == 2,
						[]play.Run{{From: n, Epoch: play.Epoch{1, byte(n)}}}})
				}
				for range small.Draw(t, "segments") {
					n, start := small.Draw(t, "arm"), small.Draw(t, "start")
					w.Segments = append(w.Segments, Segment{n, start, start + 1, -5, 1 << 60, int64(n),
						[]string{"", "\x00\xff"}[n%2]})
					w.Parts = append(w.Parts, Part{n, start, 0, blob.Draw(t, "part")})
				}
				if n := next[id]; rapid.Bool().Draw(t, "events") {
					next[id] += 2
					w.Events = []Events{{n, blob.Draw(t, "events")}, {n + 1, blob.Draw(t, "events")}}
				}
				for n := range rapid.SampledFrom([]int{0, 2, 5}).Draw(t, "reports") {
					w.Reports = append(w.Reports, Hidden{n % 2, n, blob.Draw(t, "report")})
				}
				for range small.Draw(t, "totals") {
					w.Totals = append(w.Totals, Total{small.Draw(t, "arm"), small.Draw(t, "number"), blob.Draw(t, "total")})
				}
				if rapid.Bool().Draw(t, "units") {
					w.Units = blob.Draw(t, "units")
				}
				for range small.Draw(t, "hours") {
					w.Hours = append(w.Hours, Hour{int64(small.Draw(t, "hour")), blob.Draw(t, "decisions")})
				}
				if rapid.Bool().Draw(t, "line") {
					for range rapid.IntRange(1, 2).Draw(t, "lines") {
						w.Lines = append(w.Lines, append(blob.Draw(t, "line"), '\n'))
					}
					w.Number = lines[id]
					if rapid.IntRange(0, 9).Draw(t, "wrong") == 0 {
						w.Number++
						wrong = true
					}
					after[id] = lines[id] + len(w.Lines)
					w.Taken = []play.Taken{{Arm: small.Draw(t, "arm"),
						Start: small.Draw(t, "start"), End: small.Draw(t, "end")}}
				}
				w.DropSums, w.DropUnits = rapid.IntRange(0, 9).Draw(t, "sums") == 0,
					rapid.IntRange(0, 9).Draw(t, "units") == 0
				c.Writes = append(c.Writes, w)
			}
			if rapid.Bool().Draw(t, "key") {
				c.Keys = []Record{{int64(small.Draw(t, "key")), "key", blob.Draw(t, "key")}}
				c.Audit = [][]byte{blob.Draw(t, "audit")}
			}
			errA, errB := a.Commit(ctx, c), b.Commit(ctx, c)
			if (errA != nil) != wrong || (errB != nil) != wrong {
				t.Fatalf("wrong is %v: %v, %v", wrong, errA, errB)
			}
			if !wrong {
				for _, w := range c.Writes {
					made[w.ID] = true
					lines[w.ID] = max(lines[w.ID], after[w.ID])
				}
			}
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(everything(t, model.Open), everything(t, open),
			cmpopts.EquateEmpty()); d != "" {
			t.Fatal(d)
		}
	})
}

func TestFence(t *testing.T) {
	testFence(t, NewMemory().Open, func() {})
	testFence(t, SQLite(t.TempDir()), func() {})
}

// Of two writers the one that began last can write.
func testFence(t *testing.T, open func(context.Context) (Store, error), before func()) {
	t.Helper()
	first, o := begin(t, open)
	c := Commit{Writes: []Write{{ID: 1, Record: &Record{ID: 1, Name: "a"}}}}
	if err := first.Commit(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	before()
	second, again := begin(t, open)
	if again.Secret != o.Secret || len(again.Experiments) != 1 {
		t.Errorf("%+v", again)
	}
	c.Writes[0].Record.Data = []byte("late")
	if err := first.Commit(t.Context(), c); !errors.Is(err, ErrFenced) {
		t.Errorf("who was taken over writes: %v", err)
	}
	if err := second.Commit(t.Context(), Commit{}); err != nil {
		t.Error(err)
	}
	if _, o := begin(t, open); len(o.Experiments[0].Data) != 0 {
		t.Error("a refused commit is there")
	}
}

// What a release has taken is in no file any more.
func TestFilesForget(t *testing.T) {
	dir := t.TempDir()
	s, _ := begin(t, SQLite(dir))
	const secret = "one single reward"
	found := func() (out []string) {
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil || len(files) < 2 {
			t.Fatal(files, err)
		}
		for _, f := range files {
			if data, err := os.ReadFile(f); err == nil && bytes.Contains(data, []byte(secret)) {
				out = append(out, filepath.Base(f))
			}
			if info, err := os.Stat(f); err != nil || info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s has mode %v, %v", f, info.Mode(), err)
			}
		}
		return out
	}
	commit := func(w Write) {
		t.Helper()
		w.ID = 1
		if err := s.Commit(t.Context(), Commit{Writes: []Write{w}}); err != nil {
			t.Fatal(err)
		}
	}
	must := func(there bool, after string) {
		t.Helper()
		if f := found(); (len(f) > 0) != there {
			t.Fatalf("after %s the secret is in %v", after, f)
		}
	}
	line := func(n int, w Write) {
		w.Lines, w.Number = [][]byte{[]byte("{}\n")}, n
		commit(w)
	}
	commit(Write{Record: &Record{Name: "a"}, Parts: []Part{{0, 0, 1, []byte(secret)}}})
	must(true, "its part")
	commit(Write{Parts: []Part{{0, 0, 0, []byte("all")}}})
	must(true, "one that takes its place, when the log has it")
	line(0, Write{Taken: []play.Taken{{Arm: 0, Start: 0, End: 10}}})
	must(false, "the release")
	commit(Write{Events: []Events{{10, []byte(secret)}, {20, []byte("of another segment")}}})
	must(true, "its event")
	line(1, Write{Taken: []play.Taken{{Arm: 1, Start: 10, End: 20}}})
	must(true, "the release of another arm")
	line(2, Write{Taken: []play.Taken{{Arm: 0, Start: 10, End: 20}}})
	must(false, "the release of its event")
	if got, err := s.Load(t.Context(), 1); err != nil || len(got.Events) != 1 || got.Events[0].Start != 20 {
		t.Errorf("%v, %v: what was not released must be there", got.Events, err)
	}
	commit(Write{Events: []Events{{30, []byte(secret)}}})
	commit(Write{DropSums: true})
	must(false, "the sums were dropped")
}

// A reader who takes its time over the lines does not keep the log from being cut.
func TestSlowReader(t *testing.T) {
	dir := t.TempDir()
	s, _ := begin(t, SQLite(dir))
	line := func(n int) {
		t.Helper()
		w := Write{ID: 1, Record: &Record{Name: "a"}, Lines: [][]byte{[]byte("{}\n")}, Number: n}
		if err := s.Commit(t.Context(), Commit{Writes: []Write{w}}); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 3 {
		line(n)
	}
	seen := 0
	for _, err := range s.Lines(t.Context(), 1, 1) {
		if err != nil {
			t.Fatal(err)
		}
		if seen++; seen > 1 {
			continue
		}
		begun := time.Now()
		line(3)
		if s.(*sqlite).owed || time.Since(begun) > 4*time.Second {
			t.Errorf("the writer waited %v for a reader, and the log is there: %v", time.Since(begun),
				s.(*sqlite).owed)
		}
	}
	if seen < 2 || seen > 3 {
		t.Errorf("%d lines, must be 2, or 3 with the new one", seen)
	}
	for n := 4; n < 2*linesAtOnce+5; n++ {
		line(n)
	}
	seen = 0
	for range s.Lines(t.Context(), 1, 2) {
		seen++
	}
	if want := 2*linesAtOnce + 3; seen != want {
		t.Errorf("%d lines, must be %d", seen, want)
	}
}

// A log of writes whose end is lost, wherever it is cut, is told from the store: the mark has seen what was
// answered. So it is where the process was killed, which leaves the log as it is.
func TestLostTail(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	s, _ := begin(t, SQLite(dir))
	size := func() int64 {
		t.Helper()
		f, err := os.Stat(filepath.Join(dir, "sotto.db-wal"))
		if err != nil {
			t.Fatal(err)
		}
		return f.Size()
	}
	cuts := []int64{size()}
	for i := range int64(13) {
		if err := s.Commit(ctx, Commit{Now: i, Audit: [][]byte{[]byte("line")}}); err != nil {
			t.Fatal(err)
		}
		cuts = append(cuts, size()-1, size())
	}
	for i, cut := range cuts {
		left := t.TempDir()
		for _, name := range []string{"sotto.db", "sotto.db-wal", "mark"} {
			b, err := os.ReadFile(filepath.Join(dir, name))
			if err == nil && name == "sotto.db-wal" {
				b = b[:cut]
			}
			if err = errors.Join(err, os.WriteFile(filepath.Join(left, name), b, 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		if _, o := begin(t, SQLite(left)); o.Older != (i < len(cuts)-1) {
			t.Errorf("cut %d of %d: that it is older is %v", i, len(cuts), o.Older)
		}
	}
}

// A database that was replaced by an older one is told from one that was not.
func TestOlder(t *testing.T) {
	dir := t.TempDir()
	s, o := begin(t, SQLite(dir))
	if o.Older {
		t.Error("a new store is older")
	}
	path := filepath.Join(dir, "sotto.db")
	commit := func(s Store) {
		t.Helper()
		if err := s.Commit(t.Context(), Commit{}); err != nil {
			t.Fatal(err)
		}
	}
	commit(s)
	if err := s.Close(); err != nil { // which moves the log into the database
		t.Fatal(err)
	}
	backup, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if s, o = begin(t, SQLite(dir)); o.Older {
		t.Error("a store that was closed is older")
	}
	commit(s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, backup, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, o = begin(t, SQLite(dir)); !o.Older {
		t.Error("a restored backup is not told from the store")
	}
	// One that is restored where nothing is known of it has gone back too.
	for name, text := range map[string]string{"none": "", "damaged": "{", "of another": `{"store":"x","commits":9}`} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "sotto.db"), backup, 0o600); err != nil {
			t.Fatal(err)
		}
		if name != "none" {
			if err := os.WriteFile(filepath.Join(dir, "mark"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s, o := begin(t, SQLite(dir))
		if !o.Older {
			t.Errorf("mark %s: a restored backup is not told from the store", name)
		}
		commit(s) // in which its user writes what that means
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if _, o = begin(t, SQLite(dir)); o.Older {
			t.Errorf("mark %s: it is told again", name)
		}
	}
}

// A file that is not of this version, or nobody's, is refused by name.
func TestSchema(t *testing.T) {
	dir := t.TempDir()
	s, _ := begin(t, SQLite(dir))
	if _, err := s.(*sqlite).conn.ExecContext(t.Context(), "PRAGMA user_version = 99"); err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
	if _, err := SQLite(dir)(t.Context()); !errors.Is(err, ErrSchema) {
		t.Error(err)
	}
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "sotto.db"),
		bytes.Repeat([]byte("no database "), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := SQLite(dir)(t.Context()); err == nil {
		t.Error("a file that is no database is opened")
	}
}

// A store of an older version is made one of now by who writes, with all that is in it, and is not
// read before. What that version has not is taken away here.
func TestOlderSchema(t *testing.T) {
	for version, without := range olderSchemas {
		dir := t.TempDir()
		testOlderSchema(t, version, SQLite(dir), SQLiteReader(dir), func(s Store) error {
			_, err := s.(*sqlite).conn.ExecContext(t.Context(), fmt.Sprintf("%sPRAGMA user_version = %d", without,
				version))
			return err
		})
	}
}

var olderSchemas = map[int]string{3: "DROP TABLE event; DROP TABLE report; DROP TABLE total; ",
	4: "DROP TABLE report; DROP TABLE total; ", 5: "DROP TABLE total; "}

func testOlderSchema(t *testing.T, version int, open, read func(context.Context) (Store, error), older func(Store) error) {
	t.Helper()
	s, was := begin(t, open)
	w := Write{ID: 1, Record: &Record{Name: "a"}, Units: []byte("u"), Segments: []Segment{{End: 1, Sum: 2}}}
	err := s.Commit(t.Context(), Commit{Now: 5, Writes: []Write{w}})
	if err = errors.Join(err, older(s), s.Close()); err != nil {
		t.Fatal(err)
	}
	if s, err := read(t.Context()); version < readable && !errors.Is(err, ErrSchema) {
		t.Errorf("who only reads opens version %d: %v", version, err)
	} else if version >= readable {
		if err != nil {
			t.Fatalf("version %d cannot be read: %v", version, err)
		}
		_, err = s.Begin(t.Context(), "reader")
		got, errLoad := s.Load(t.Context(), 1)
		if err = errors.Join(err, errLoad, s.Close()); err != nil || len(got.Segments) != 1 {
			t.Errorf("version %d is read as %+v, %v", version, got, err)
		}
	}
	s, now := begin(t, open)
	w = Write{ID: 1, Events: []Events{{0, []byte("e")}}, Reports: []Hidden{{1, 2, []byte("r")}}}
	if err := s.Commit(t.Context(), Commit{Writes: []Write{w}}); err != nil {
		t.Fatal(err)
	}
	got, err := s.Load(t.Context(), 1)
	if now.Secret != was.Secret || now.Now != 5 || err != nil || len(got.Units) != 1 ||
		len(got.Segments) != 1 || got.Segments[0].Sum != 2 || len(got.Events) != 1 {
		t.Errorf("%+v, %+v, %v", now, got, err)
	}
	_ = s.Close()
	if _, err := open(t.Context()); err != nil {
		t.Error(err)
	}
}

// A disk that is full refuses a commit whole, and what was committed is there.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	s, _ := begin(t, SQLite(dir))
	record := Write{ID: 1, Record: &Record{Name: "a"}}
	if err := s.Commit(t.Context(), Commit{Writes: []Write{record}}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.(*sqlite).conn.ExecContext(t.Context(), "PRAGMA max_page_count = 40"); err != nil {
		t.Fatal(err)
	}
	n := 0
	for ; n < 1000; n++ {
		w := Write{ID: 1, Units: bytes.Repeat([]byte{1}, 1000), Plan: []byte(fmt.Sprint(n))}
		if err := s.Commit(t.Context(), Commit{Writes: []Write{w}}); err != nil {
			break
		}
	}
	if n == 0 || n == 1000 {
		t.Fatalf("%d commits went in", n)
	}
	_ = s.Close()
	s, _ = begin(t, SQLite(dir))
	if got, err := s.Load(t.Context(), 1); err != nil || len(got.Units) != n ||
		string(got.Plan) != fmt.Sprint(n-1) {
		t.Errorf("%d blocks and plan %s of %d, %v", len(got.Units), got.Plan, n, err)
	}
}

// Reports are read by number, however many there are.
func TestManyReports(t *testing.T) {
	s, _ := begin(t, SQLite(t.TempDir()))
	const n = 3*reportsAtOnce + 1
	w := Write{ID: 1, Record: &Record{Name: "a"}}
	for i := range n {
		w.Reports = append(w.Reports, Hidden{1, i * 7 % n, []byte{byte(i)}})
	}
	if err := s.Commit(t.Context(), Commit{Writes: []Write{w}}); err != nil {
		t.Fatal(err)
	}
	next := 2
	for r, err := range s.Reports(t.Context(), 1, 1, 2, 2+2*reportsAtOnce) {
		if err != nil || r.Number != next || r.Arm != 1 {
			t.Fatalf("%+v, %v: the number must be %d", r, err, next)
		}
		next++
	}
	if next != 2+2*reportsAtOnce {
		t.Errorf("they end at %d", next)
	}
}

// Room of what was dropped goes back to the file system, also in a file that an earlier program has made, and
// all else is as it was.
func TestSQLiteGivesBack(t *testing.T) {
	testkit.OneGoroutine(t)
	for _, earlier := range []bool{false, true} {
		dir := t.TempDir()
		file := filepath.Join(dir, "sotto.db")
		begin := func() Store {
			s, err := SQLite(dir)(t.Context())
			if err == nil {
				_, err = s.Begin(t.Context(), "test")
			}
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		end := func(s Store) {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
		s := begin()
		if earlier {
			end(s)
			db, err := sql.Open("sqlite", file)
			if err == nil {
				_, err = db.ExecContext(t.Context(), "PRAGMA auto_vacuum = NONE; VACUUM")
				err = errors.Join(err, db.Close())
			}
			if err != nil {
				t.Fatal(err)
			}
			s = begin()
		}
		commit := func(w Write) {
			if err := s.Commit(t.Context(), Commit{Now: 1, Writes: []Write{w}}); err != nil {
				t.Fatal(err)
			}
		}
		for id := range int64(2) {
			commit(Write{ID: id + 1, Record: &Record{ID: id + 1, Name: fmt.Sprint(id)}})
		}
		kept := bytes.Repeat([]byte("kept"), 1<<10)
		for range 20 {
			commit(Write{ID: 1, Units: bytes.Repeat([]byte("gone"), 1<<18)})
			commit(Write{ID: 2, Units: kept})
		}
		size := func() int64 {
			info, err := os.Stat(file)
			if err != nil {
				t.Fatal(err)
			}
			return info.Size()
		}
		before := size()
		commit(Write{ID: 1, DropUnits: true})
		if earlier {
			end(s)
			s = begin()
		}
		steps, longest := 0, time.Duration(0)
		for s.(*sqlite).loose {
			from := time.Now()
			if _, err := s.(Tidier).Tidy(t.Context()); err != nil {
				t.Fatal(err)
			}
			steps, longest = steps+1, max(longest, time.Since(from))
		}
		t.Logf("%d bytes became %d in %d steps, the longest %v", before, size(), steps, longest)
		if before < 20<<20 || size() > 2<<20 || !earlier && steps < 5 {
			t.Errorf("%d bytes became %d in %d steps", before, size(), steps)
		}
		out, err := s.Load(t.Context(), 2)
		if err != nil || len(out.Units) != 20 || !bytes.Equal(out.Units[19], kept) {
			t.Errorf("%d units, %v", len(out.Units), err)
		}
		var sound string
		if err := s.(*sqlite).row(t.Context(), "PRAGMA integrity_check", &sound); err != nil || sound != "ok" {
			t.Error(sound, err)
		}
		end(s)
	}
}
