//go:build unix

package store

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/sotto-dp/sotto/internal/pgtest"
	"github.com/sotto-dp/sotto/internal/testkit"
)

func postgresAt(t testing.TB, address string) func(context.Context) (Store, error) {
	t.Helper()
	open, err := Postgres(address)
	if err != nil {
		t.Fatal(err)
	}
	return open
}

func TestPostgresIsTheModel(t *testing.T) {
	testkit.OneGoroutine(t)
	t.Parallel()
	address, ctx := pgtest.Database(t), t.Context()
	open := postgresAt(t, address)
	conn, err := pgx.Connect(ctx, address+"&search_path=sotto&synchronous_commit=off")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	testModel(t, func(t *rapid.T) (func(context.Context) (Store, error), func()) {
		return open, func() {
			if _, err := conn.Exec(ctx, "UPDATE writer SET term = 0, now = 0; DELETE FROM experiment; "+
				"DELETE FROM arm; DELETE FROM segment; DELETE FROM redeemed; DELETE FROM assignment; "+
				"DELETE FROM event; DELETE FROM report; DELETE FROM total; "+
				"DELETE FROM release; DELETE FROM traffic; DELETE FROM key; DELETE FROM audit"); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// The fence holds by itself, also where whoever is taken over keeps its connection.
func TestPostgresFence(t *testing.T) {
	address := pgtest.Database(t)
	testFence(t, postgresAt(t, address), func() {
		conn, err := pgx.Connect(t.Context(), address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(t.Context())
		if _, err := conn.Exec(t.Context(), "UPDATE sotto.lease SET backend = 0"); err != nil {
			t.Fatal(err)
		}
	})
}

// Who is wrong about the database is told so in one line, without a password.
func TestPostgresURL(t *testing.T) {
	c, ctx := pgtest.Start(t), t.Context()
	const secret = "open sesame"
	at := func(change func(u *url.URL, q url.Values)) string {
		u := &url.URL{Scheme: "postgres", Host: fmt.Sprintf("127.0.0.1:%d", c.Port), Path: "/postgres",
			User: url.UserPassword(pgtest.User, secret)}
		q := url.Values{}
		change(u, q)
		u.RawQuery = q.Encode()
		return u.String()
	}
	for name, address := range map[string]string{
		"password": at(func(*url.URL, url.Values) {}),
		"query": at(func(u *url.URL, q url.Values) {
			u.User = url.User(pgtest.User)
			q.Set("password", secret)
		}),
		"mode":     at(func(_ *url.URL, q url.Values) { q.Set("sslmode", "open sesame") }),
		"port":     at(func(u *url.URL, _ url.Values) { u.Host = "127.0.0.1:1" }),
		"scheme":   at(func(u *url.URL, _ url.Values) { u.Scheme = "mysql" }),
		"database": strings.Replace(at(func(*url.URL, url.Values) {}), "/postgres?", "/%zz", 1),
		"form":     "host=127.0.0.1 password=" + secret,
		"broken":   "postgres://sotto:" + secret + "@127.0.0.1:x/postgres",
		"user": at(func(u *url.URL, _ url.Values) {
			u.User = url.UserPassword("nobody", secret)
		}),
	} {
		open, err := Postgres(address)
		if err == nil {
			_, err = open(ctx)
		}
		if err == nil {
			t.Errorf("%s: it is opened", name)
			continue
		}
		for _, part := range []string{secret, url.QueryEscape(secret), url.PathEscape(secret), "sesame"} {
			if strings.Contains(err.Error(), part) {
				t.Errorf("%s: the error has the password: %v", name, err)
			}
		}
		if strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
	// and with the right one it is opened
	s, err := postgresAt(t, at(func(u *url.URL, _ url.Values) {
		u.User = url.UserPassword(pgtest.User, pgtest.Password)
	}))(ctx)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = s.(*postgres).conn.Exec(ctx, "DROP SCHEMA sotto CASCADE")
	_ = s.Close()
}

func TestPostgresOlderSchema(t *testing.T) {
	for version, without := range olderSchemas {
		address := pgtest.Database(t)
		read, err := PostgresReader(address)
		if err != nil {
			t.Fatal(err)
		}
		testOlderSchema(t, version, postgresAt(t, address), read, func(s Store) error {
			_, err := s.(*postgres).conn.Exec(t.Context(), fmt.Sprintf("%sUPDATE lease SET version = %d", without,
				version))
			return err
		})
	}
}

// Tables of another version are refused, and a server that loses what it has committed.
func TestPostgresSchema(t *testing.T) {
	open := postgresAt(t, pgtest.Database(t))
	s, _ := begin(t, open)
	conn, ctx := s.(*postgres).conn, t.Context()
	if _, err := conn.Exec(ctx, "UPDATE lease SET version = 99"); err != nil {
		t.Fatal(err)
	}
	if _, err := open(ctx); !errors.Is(err, ErrSchema) {
		t.Error(err)
	}
	var mode string
	if err := conn.QueryRow(ctx, "SHOW synchronous_commit").Scan(&mode); err != nil || mode != "on" {
		t.Error(mode, err)
	}
	address := pgtest.Database(t)
	if conn, err := pgx.Connect(ctx, address); err != nil {
		t.Fatal(err)
	} else if _, err = conn.Exec(ctx, "CREATE SCHEMA sotto; CREATE TABLE sotto.writer (a int)"); err != nil {
		t.Fatal(err)
	}
	if _, err := postgresAt(t, address)(ctx); err == nil {
		t.Error("tables of somebody else are taken")
	}
	if s, err := postgresAt(t, pgtest.Database(t)+"&synchronous_commit=off")(ctx); err != nil {
		t.Error(err)
	} else {
		if err := s.(*postgres).conn.QueryRow(ctx, "SHOW synchronous_commit").Scan(&mode); mode != "on" {
			t.Error("commits are not durable", mode, err)
		}
		_ = s.Close()
	}
}

// Who is stopped in the middle of a transaction does not keep another one from taking over, and what
// it had begun is not there.
func TestPostgresStoppedWriterInTime(t *testing.T) {
	open, ctx := postgresAt(t, pgtest.Database(t)), t.Context()
	s, _ := begin(t, open)
	record := Write{ID: 1, Record: &Record{Name: "a"}}
	if err := s.Commit(ctx, Commit{Writes: []Write{record}}); err != nil {
		t.Fatal(err)
	}
	stopped := s.(*postgres)
	record.Record.Data = []byte("late")
	if _, err := stopped.conn.Exec(ctx, "BEGIN"); err != nil {
		t.Fatal(err)
	}
	for _, do := range (Commit{Writes: []Write{record}}).statements(stopped.term) {
		if _, err := stopped.conn.Exec(ctx, do.query, do.args...); err != nil {
			t.Fatal(err)
		}
	}
	from := time.Now()
	other, o := begin(t, open)
	if took := time.Since(from); took > testkit.Size(idleWithin, time.Second) {
		t.Errorf("the take-over took %v", took)
	}
	if len(o.Experiments) != 1 || len(o.Experiments[0].Data) != 0 || o.Older {
		t.Errorf("%+v", o)
	}
	if err := stopped.commit(ctx); err == nil {
		t.Error("the stopped writer commits")
	}
	if err := stopped.Commit(ctx, Commit{}); err == nil {
		t.Error("the stopped writer goes on")
	}
	if err := other.Commit(ctx, Commit{}); err != nil {
		t.Error(err)
	}
}

// Of several who claim the store after one writer, one has it; and they see whether it is there.
func TestPostgresClaim(t *testing.T) {
	open, ctx := postgresAt(t, pgtest.Database(t)), t.Context()
	look := func(s Store) Writer {
		t.Helper()
		w, err := s.(Shared).Look(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	var all [3]Store
	for i := range all {
		s, err := open(ctx)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		all[i] = s
	}
	w := look(all[0])
	if w.Term != 0 || !w.Gone || w.Broken {
		t.Errorf("a new store has a writer: %+v", w)
	}
	won := -1
	for i, s := range all {
		switch _, err := s.(Shared).Claim(ctx, w, "test", fmt.Sprint("http://node", i)); {
		case err == nil && won < 0:
			won = i
		case !errors.Is(err, ErrFenced):
			t.Errorf("claim %d: %v", i, err)
		}
	}
	if won < 0 {
		t.Fatal("nobody has it")
	}
	next := look(all[(won+1)%3])
	if next.Term != 1 || next.Gone || next.Address != fmt.Sprint("http://node", won) {
		t.Errorf("%+v", next)
	}
	if err := all[won].Commit(ctx, Commit{}); err != nil {
		t.Fatal(err)
	}
	if again := look(all[(won+1)%3]); again.Commits != next.Commits+1 || again.Term != 1 {
		t.Errorf("a commit is not seen: %+v", again)
	}
	gone := func(s, watch Store) Writer {
		t.Helper()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(5 * time.Second); !look(watch).Gone; {
			if time.Now().After(deadline) {
				t.Fatal("a writer that has gone is still there")
			}
			time.Sleep(10 * time.Millisecond)
		}
		return look(watch)
	}
	last, watch := all[(won+1)%3], all[(won+2)%3]
	w = gone(all[won], watch)
	if !w.Broken {
		t.Errorf("whose connection has ended may live: %+v", w)
	}
	if _, err := last.(Shared).Claim(ctx, w, "test", ""); err != nil {
		t.Fatal(err)
	}
	last.(Giver).End()
	if w = gone(last, watch); w.Broken {
		t.Errorf("one has said that it ends: %+v", w)
	}
}

// A database that has lost commits, or is of another history, is told from one that is whole.
func TestPostgresOlder(t *testing.T) {
	t.Parallel()
	address, ctx := pgtest.Database(t), t.Context()
	open := postgresAt(t, address)
	record := Commit{Writes: []Write{{ID: 1, Record: &Record{Name: "a"}}}}
	s, o := begin(t, open)
	for range 3 {
		if err := s.Commit(ctx, record); err != nil {
			t.Fatal(err)
		}
	}
	restored := func(statement string, want bool, by func(context.Context) (Store, error)) Store {
		t.Helper()
		if _, err := s.(*postgres).conn.Exec(ctx, statement); err != nil {
			t.Fatal(err)
		}
		if s, o = begin(t, by); o.Older != want {
			t.Errorf("%s: older is %v", statement, o.Older)
		}
		return s
	}
	restored("SELECT 1", false, open)
	restored("SELECT 1", false, postgresAt(t, address)) // another process
	// the last commit is lost, with a server that was promoted
	s, _ = begin(t, open)
	if err := s.Commit(ctx, record); err != nil {
		t.Fatal(err)
	}
	restored("UPDATE writer SET commits = commits - 1", true, open)
	restored("UPDATE writer SET commits = commits + 1", false, open)
	// another history: this process knows that all its commits are there, another one does not
	restored("UPDATE lease SET origin = 'another'", false, open)
	other := postgresAt(t, address)
	restored("SELECT 1", true, other)
	s = restored("SELECT 1", true, other) // having begun, it knows no more than before
	// it stays so until something is written down
	if err := s.Commit(ctx, Commit{}); err != nil {
		t.Fatal(err)
	}
	s = restored("SELECT 1", true, postgresAt(t, address))
	if err := s.Commit(ctx, record); err != nil {
		t.Fatal(err)
	}
	restored("SELECT 1", false, postgresAt(t, address))
	// one lets another write, all of whose commits are lost before it looks
	s = restored("SELECT 1", false, open)
	if err := s.Commit(ctx, record); err != nil {
		t.Fatal(err)
	}
	s.(Giver).Give()
	lost := pgtest.Run(t, address, "SELECT 'UPDATE writer SET term = ' || term || ', commits = ' || commits || "+
		"'; UPDATE lease SET origin = ' || quote_literal('lost') FROM sotto.writer, sotto.lease")
	s = restored("SELECT 1", false, postgresAt(t, address))
	if err := s.Commit(ctx, record); err != nil {
		t.Fatal(err)
	}
	s = restored(lost, true, open)
	if err := s.Commit(ctx, record); err != nil {
		t.Fatal(err)
	}
	// commits are lost, and two have seen more of them: one finds that, the other is told so
	watch := postgresAt(t, address)
	restored("SELECT 1", false, watch)
	s = restored("SELECT 1", false, open)
	if err := s.Commit(ctx, record); err != nil {
		t.Fatal(err)
	}
	if _, err := s.(Shared).Look(ctx); err != nil {
		t.Fatal(err)
	}
	restored("UPDATE writer SET commits = commits - 5", true, watch)
	s = restored("SELECT 1", true, open)
	if err := s.Commit(ctx, record); err != nil {
		t.Fatal(err)
	}
	restored("SELECT 1", false, open)
	restored("SELECT 1", false, watch)
}

// A writer on whose long transaction the database is at work is not taken for one who stands still,
// and one who stands still in the middle of a transaction is.
func TestPostgresBusy(t *testing.T) {
	open, ctx := postgresAt(t, pgtest.Database(t)), t.Context()
	s, _ := begin(t, open)
	conn := s.(*postgres).conn
	watch, err := open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Close()
	busy := func(want bool) {
		t.Helper()
		if w, err := watch.(Shared).Look(ctx); err != nil || w.Busy != want || w.Gone {
			t.Errorf("%+v, %v; busy must be %v", w, err, want)
		}
	}
	busy(false)
	if _, err := conn.Exec(ctx, "BEGIN; UPDATE writer SET term = term"); err != nil {
		t.Fatal(err)
	}
	busy(false)
	done := make(chan error)
	go func() {
		_, err := conn.Exec(ctx, "SELECT pg_sleep(2); COMMIT")
		done <- err
	}()
	for deadline := time.Now().Add(1900 * time.Millisecond); ; time.Sleep(10 * time.Millisecond) {
		if w, err := watch.(Shared).Look(ctx); err != nil || w.Busy || time.Now().After(deadline) {
			break
		}
	}
	busy(true)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	busy(false)
}

// A server that was promoted is another one at once, and not after its next checkpoint.
func TestPostgresPromoted(t *testing.T) {
	t.Parallel()
	address := pgtest.Database(t)
	s, _ := begin(t, postgresAt(t, address))
	if err := s.Commit(t.Context(), Commit{Writes: []Write{{ID: 1, Record: &Record{Name: "a"}}}}); err != nil {
		t.Fatal(err)
	}
	c := pgtest.Start(t)
	// what is dirty is written slowly by the checkpoint after the promotion
	c.SQL(t, "postgres", "CREATE TABLE filled AS SELECT generate_series(1, 100000) AS x")
	p := c.Promoted(t)
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("host", p.Dir)
	q.Set("port", fmt.Sprint(p.Port))
	u.RawQuery = q.Encode()
	_, o := begin(t, postgresAt(t, u.String()))
	if !o.Older {
		t.Error("it is taken for the server before")
	}
}
