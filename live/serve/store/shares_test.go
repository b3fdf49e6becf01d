//go:build unix

package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sotto-dp/sotto/internal/pgtest"
)

// tablesOf are the tables of all schemas of Sotto's.
func tablesOf(t *testing.T, address string) string {
	return pgtest.Run(t, address, "SELECT n.nspname || '.' || c.relname FROM pg_class c JOIN pg_namespace n ON "+
		"n.oid = c.relnamespace WHERE n.nspname LIKE 'sotto%' AND c.relkind = 'r' ORDER BY 1")
}

// sharesAt opens shares of a database, each with a term of its own.
func sharesAt(t *testing.T, address string, n int) []Shared {
	t.Helper()
	stores, err := PostgresShares(address, n)
	if err != nil {
		t.Fatal(err)
	}
	out := make([]Shared, n)
	for i := range n {
		s, err := stores(i)(t.Context())
		if err != nil {
			t.Fatalf("share %d: %v", i, err)
		}
		t.Cleanup(func() { _ = s.Close() })
		out[i] = s.(Shared)
	}
	return out
}

func create(id int64, name string) Commit {
	return Commit{Now: 1, Writes: []Write{{ID: id, Record: &Record{ID: id, Name: name, Data: []byte("{}")}}}}
}

// A database of one share has what it had before there were shares, and is share 0 of more when they are made.
// Whoever writes it as one share is put out then, and no process opens it with less.
func TestOneShareBecomesMany(t *testing.T) {
	address, ctx := pgtest.Database(t), t.Context()
	one := sharesAt(t, address, 1)[0]
	if all := tablesOf(t, address); strings.Contains(all, "place") || strings.Contains(all, "sotto_") {
		t.Errorf("a database of one share has %s", all)
	}
	begun, err := one.Begin(ctx, "one")
	if err != nil {
		t.Fatal(err)
	}
	if err := one.Commit(ctx, create(1, "old")); err != nil {
		t.Fatal(err)
	}
	late := sharesAt(t, address, 1)[0]
	seen, err := late.Look(ctx)
	if err != nil {
		t.Fatal(err)
	}
	many := sharesAt(t, address, 4)
	if err := one.Commit(ctx, create(1, "old")); !errors.Is(err, ErrFenced) {
		t.Errorf("who knows of one share writes on: %v", err)
	}
	if _, err := late.Begin(ctx, "late"); !errors.Is(err, ErrSchema) {
		t.Errorf("who knows of one share takes it over: %v", err)
	}
	seen.Term++
	if _, err := late.Claim(ctx, seen, "late", ""); !errors.Is(err, ErrSchema) {
		t.Errorf("who knows of one share claims it: %v", err)
	}
	databases := map[string]bool{}
	for i, s := range many {
		o, err := s.Begin(ctx, "many")
		if err != nil {
			t.Fatal(err)
		}
		w, err := s.Look(ctx)
		if databases[w.Database] = true; err != nil || o.Secret != begun.Secret || o.Older {
			t.Errorf("share %d: %v, %v", i, o, err)
		}
		if (len(o.Experiments) == 1) != (i == 0) {
			t.Errorf("share %d has %v", i, o.Experiments)
		}
	}
	if len(databases) != 4 {
		t.Error("shares have one name for two databases")
	}
	met, err := many[0].(Office).Meet(ctx, "http://a")
	if err != nil || met.Shares != 4 || met.Nodes != 1 || fmt.Sprint(met.Places) != "map[old:0]" {
		t.Errorf("the office has %+v, %v", met, err)
	}
	for n, want := range map[int]string{1: "is in 4 shares", 3: "is in 4 shares"} {
		stores, err := PostgresShares(address, n)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stores(0)(ctx); !errors.Is(err, ErrSchema) || !strings.Contains(err.Error(), want) {
			t.Errorf("opened as %d shares: %v", n, err)
		}
	}
	more := sharesAt(t, address, 5)
	if met, err = many[0].(Office).Meet(ctx, ""); err != nil || met.Shares != 5 {
		t.Errorf("who knows of 4 shares is not told of 5: %+v, %v", met, err)
	}
	_ = more
}

// An older is a program of before there were shares, with connections that it had open: it looks at no version when
// it begins, and notes no place.
type older struct {
	conn *pgx.Conn
	term int64
}

func (o *older) inside(ctx context.Context, what func(pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, o.conn, what)
}

func (o *older) begin(ctx context.Context) error {
	return o.inside(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "UPDATE writer SET term = term + 1, holder = $1 WHERE $2 < 0 OR term = $2", "old",
			-1); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, "SELECT term FROM writer").Scan(&o.term); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "UPDATE lease SET address = $1, backend = pg_backend_pid()", "http://old")
		return err
	})
}

func (o *older) commit(ctx context.Context, name string) error {
	return o.inside(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, "UPDATE writer SET commits = commits + 1, now = $1 WHERE term = $2 AND tableoid = "+
			"'sotto.writer'::regclass", 1, o.term)
		if err == nil && tag.RowsAffected() != 1 {
			err = ErrFenced
		}
		if err == nil {
			_, err = tx.Exec(ctx, "INSERT INTO experiment (id, name, data) SELECT coalesce(max(id), 0) + 1, $1, '' "+
				"FROM experiment", name)
		}
		return err
	})
}

// Once a database is in shares no commit of an older program goes in, whatever it has open and does, and also not of
// one that writes while it is put there.
func TestOlderProgramIsOut(t *testing.T) {
	address, ctx := pgtest.Database(t), t.Context()
	_ = sharesAt(t, address, 1)
	var all [2]older
	for i := range all {
		conn, err := pgx.Connect(ctx, address+"&search_path=sotto")
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(ctx)
		if all[i].conn = conn; i == 0 {
			err = errors.Join(all[i].begin(ctx), all[i].commit(ctx, "before"))
		} else {
			_, err = conn.Exec(ctx, "SELECT term FROM writer")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	stop, stopped := make(chan struct{}), make(chan int)
	go func() { // it writes, and begins again and again
		for n := 0; ; n++ {
			select {
			case <-stop:
				stopped <- n
				return
			default:
			}
			if all[0].commit(ctx, fmt.Sprint("while", n)) != nil {
				_ = all[0].begin(ctx)
			}
		}
	}()
	many := sharesAt(t, address, 2)
	const state = "SELECT term, commits, (SELECT count(*) FROM sotto.experiment) FROM sotto.writer"
	marked := pgtest.Run(t, address, state)
	time.Sleep(20 * time.Millisecond)
	close(stop)
	t.Logf("it tried %d times: %s", <-stopped, marked)
	for i := range all {
		for _, err := range []error{all[i].commit(ctx, "fenced"), all[i].begin(ctx), all[i].commit(ctx, "after")} {
			if err == nil {
				t.Errorf("older program %d writes", i)
			}
		}
		all[i].term = 0
		_ = all[i].conn.QueryRow(ctx, "SELECT term FROM writer").Scan(&all[i].term) // as if it had begun
		if err := all[i].commit(ctx, "guessed"); err == nil {
			t.Errorf("older program %d writes in a term that is not its own", i)
		}
	}
	if now := pgtest.Run(t, address, state); now != marked {
		t.Errorf("there was %s, and is %s", marked, now)
	}
	if _, err := many[0].Begin(ctx, "new"); err != nil {
		t.Fatal(err)
	}
	if err := many[0].Commit(ctx, create(1000, "new")); err != nil {
		t.Fatal(err)
	}
	// A dump has the fence too.
	copied := pgtest.Start(t).Copy(t, address)
	first := sharesAt(t, copied, 2)[0]
	if _, err := first.Begin(ctx, "copy"); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(ctx, copied+"&search_path=sotto")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if err := (&older{conn: conn}).begin(ctx); err == nil {
		t.Error("an older program writes what was restored")
	}
}

// All shares are read as one store, in which nothing is written.
func TestReadAllShares(t *testing.T) {
	address, ctx := pgtest.Database(t), t.Context()
	for i, s := range sharesAt(t, address, 3) {
		if _, err := s.Begin(ctx, ""); err != nil {
			t.Fatal(err)
		}
		c := create(7, fmt.Sprint("shop", i))
		c.Writes[0].Lines, c.Writes[0].Units = [][]byte{fmt.Append(nil, "line of ", i)}, fmt.Append(nil, "units of ", i)
		c.Audit = [][]byte{fmt.Append(nil, "did ", i)}
		if err := s.Commit(ctx, c); err != nil {
			t.Fatal(err)
		}
	}
	open, err := PostgresReader(address)
	if err != nil {
		t.Fatal(err)
	}
	all, err := open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer all.Close()
	o, err := all.Begin(ctx, "")
	heads, err2 := all.Heads(ctx)
	if err != nil || err2 != nil || len(o.Experiments) != 3 || len(heads.Experiments) != 3 {
		t.Fatalf("%v, %v, %v, %v", o, heads, err, err2)
	}
	for i, r := range o.Experiments {
		of, err := all.Load(ctx, r.ID)
		if want := fmt.Sprint("units of ", i); heads.Experiments[i].ID != r.ID || r.Name != fmt.Sprint("shop", i) || err != nil ||
			fmt.Sprintf("%s", of.Units) != "["+want+"]" {
			t.Errorf("%v has %s, %v", r, of.Units, err)
		}
		for line, err := range all.Lines(ctx, r.ID, 0) {
			if err != nil || string(line) != fmt.Sprint("line of ", i) {
				t.Errorf("%s, %v", line, err)
			}
		}
	}
	var did []string
	for line, err := range all.Audit(ctx, 1) {
		did = append(did, fmt.Sprint(string(line), err))
	}
	if fmt.Sprint(did) != "[did 1<nil> did 2<nil>]" {
		t.Error(did)
	}
	if err := all.Commit(ctx, create(1, "none")); !errors.Is(err, ErrReadOnly) {
		t.Errorf("it is written: %v", err)
	}
}

// Of two shares that create one name at once one does, and the other has written nothing.
func TestNameOnceInAllShares(t *testing.T) {
	address, ctx := pgtest.Database(t), t.Context()
	all := sharesAt(t, address, 3)
	for _, s := range all {
		if _, err := s.Begin(ctx, ""); err != nil {
			t.Fatal(err)
		}
	}
	for round := range 6 {
		name, errs := fmt.Sprint("shop", round), make(chan error, 2)
		for _, s := range all[1:] {
			go func() { errs <- s.Commit(ctx, create(int64(round+1), name)) }()
		}
		if a, b := <-errs, <-errs; (a == nil) == (b == nil) {
			t.Fatalf("%v, %v", a, b)
		}
		n := 0
		for _, s := range all[1:] {
			heads, err := s.Heads(ctx)
			if err != nil {
				t.Fatal(err)
			}
			for _, h := range heads.Experiments {
				if h.Name == name {
					n++
				}
				if err := s.Commit(ctx, create(h.ID, h.Name)); err != nil { // once more, as with each release
					t.Error(err)
				}
			}
		}
		if n != 1 {
			t.Errorf("%s is there %d times", name, n)
		}
	}
	// Shares have fences of their own. The database does not know whose connection is to be ended.
	pgtest.Run(t, address, "UPDATE sotto_1.lease SET backend = 0")
	if _, err := sharesAt(t, address, 3)[1].Begin(ctx, "another"); err != nil {
		t.Fatal(err)
	}
	if err := all[1].Commit(ctx, Commit{Now: 2}); !errors.Is(err, ErrFenced) {
		t.Errorf("share 1 was taken over, and writes: %v", err)
	}
	if err := all[2].Commit(ctx, Commit{Now: 2}); err != nil {
		t.Errorf("share 2 was taken over with share 1: %v", err)
	}
}

// A schema beside one that it was not made with is refused; one that the office has forgotten is known again.
func TestSharesOfOneDatabase(t *testing.T) {
	address, ctx := pgtest.Database(t), t.Context()
	all := sharesAt(t, address, 2)
	if _, err := all[1].Begin(ctx, ""); err != nil {
		t.Fatal(err)
	}
	if err := all[1].Commit(ctx, create(1, "shop")); err != nil {
		t.Fatal(err)
	}
	pgtest.Run(t, address, "DELETE FROM sotto.place", "DELETE FROM sotto.share")
	met, err := sharesAt(t, address, 2)[0].(Office).Meet(ctx, "")
	if err != nil || met.Shares != 2 || met.Places["shop"] != 1 {
		t.Errorf("the office has %+v, %v", met, err)
	}
	// The office of before there were shares is not opened alone, and is known to be the office by all of them.
	pgtest.Run(t, address, "DROP TABLE sotto.place, sotto.share, sotto.node", "UPDATE sotto.lease SET version = version - 1000",
		"DROP FUNCTION sotto.of_shares CASCADE")
	if _, err := postgresAt(t, address)(ctx); !errors.Is(err, ErrShares) || !strings.Contains(err.Error(), "sotto_1") {
		t.Errorf("an office of before is opened without the other shares: %v", err)
	}
	met, err = sharesAt(t, address, 2)[0].(Office).Meet(ctx, "")
	if err != nil || met.Shares != 2 || met.Places["shop"] != 1 {
		t.Errorf("the office of before has %+v, %v", met, err)
	}
	pgtest.Run(t, address, "DROP SCHEMA sotto CASCADE")
	if _, err := postgresAt(t, address)(ctx); !errors.Is(err, ErrShares) {
		t.Errorf("a new office is made beside another share: %v", err)
	}
	stores, err := PostgresShares(address, 2)
	if err != nil {
		t.Fatal(err)
	}
	open := func(i int) error {
		s, err := stores(i)(ctx)
		if err == nil {
			err = s.Close()
		}
		return err
	}
	if err := errors.Join(open(0), open(1)); !errors.Is(err, ErrReplaced) {
		t.Errorf("two halves of two databases: %v", err)
	}
}
