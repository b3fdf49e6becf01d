package store

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"net/url"
	"os"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite" // the driver

	"github.com/sotto-dp/sotto/play"
)

// schema is that of version schemaVersion. What grows without end has rows of blocks: a part has
// the decisions of one commit, a row of assignment the units of one.
const schema = `
CREATE TABLE writer (
	only INTEGER PRIMARY KEY CHECK (only = 1), term INTEGER NOT NULL, holder TEXT NOT NULL,
	commits INTEGER NOT NULL, now INTEGER NOT NULL, secret BLOB NOT NULL) STRICT;
CREATE TABLE experiment (
	id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, data BLOB NOT NULL, plan BLOB) STRICT;
CREATE TABLE arm (
	experiment INTEGER NOT NULL, arm INTEGER NOT NULL, head INTEGER NOT NULL, issued INTEGER NOT NULL,
	asked INTEGER NOT NULL, gone INTEGER NOT NULL, runs BLOB NOT NULL,
	PRIMARY KEY (experiment, arm)) STRICT, WITHOUT ROWID;
CREATE TABLE segment (
	experiment INTEGER NOT NULL, arm INTEGER NOT NULL, start INTEGER NOT NULL, stop INTEGER NOT NULL,
	cut INTEGER NOT NULL, settles INTEGER NOT NULL, sum INTEGER NOT NULL,
	PRIMARY KEY (experiment, arm, start)) STRICT, WITHOUT ROWID;
CREATE TABLE redeemed (
	experiment INTEGER NOT NULL, arm INTEGER NOT NULL, start INTEGER NOT NULL, part INTEGER NOT NULL,
	numbers BLOB NOT NULL,
	PRIMARY KEY (experiment, arm, start, part)) STRICT, WITHOUT ROWID;
CREATE TABLE assignment (
	block INTEGER PRIMARY KEY, experiment INTEGER NOT NULL, units BLOB NOT NULL) STRICT;
CREATE INDEX assigned ON assignment (experiment);
CREATE TABLE release (
	experiment INTEGER NOT NULL, batch INTEGER NOT NULL, line BLOB NOT NULL,
	PRIMARY KEY (experiment, batch)) STRICT, WITHOUT ROWID;
CREATE TABLE key (id INTEGER PRIMARY KEY, name TEXT NOT NULL, data BLOB NOT NULL) STRICT;
CREATE TABLE audit (line INTEGER PRIMARY KEY, text BLOB NOT NULL) STRICT;
`

// The version of the schema, and what says that a file is Sotto's.
const (
	schemaVersion = 1
	applicationID = 0x736f7474 // sott
)

// markEvery is how old the mark beside the database may be.
const markEvery = time.Second

// SQLite opens the store in a directory, and makes both where they are not there. A file beside the
// database, mark, remembers how far it was: if the database alone is replaced by an older one,
// Begin says so. If the whole directory goes back, nothing here can know.
//
// Commits are durable when they return (a write-ahead log with synchronous = FULL). What is deleted
// is overwritten, and the log, which has every sum that ever was, is cut to nothing after each
// commit with a line.
func SQLite(dir string) func(context.Context) (Store, error) {
	return func(ctx context.Context) (Store, error) { return openSQLite(ctx, dir) }
}

// A sqlite has one connection that writes, and others for readers.
type sqlite struct {
	dir     string
	reading *sql.DB
	writing *sql.DB
	conn    *sql.Conn
	made    map[string]*sql.Stmt

	term     int64
	instance string
	commits  int64
	marked   time.Time
	owed     bool // the log has to be cut
}

func openSQLite(ctx context.Context, dir string) (_ *sqlite, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	path := filepath.Join(dir, "sotto.db")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) // SQLite would let others read
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	if err := f.Close(); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	s := &sqlite{dir: dir, made: map[string]*sql.Stmt{}}
	defer func() {
		if err != nil {
			_ = s.Close()
		}
	}()
	name := func(more ...string) string {
		q := url.Values{"_pragma": append([]string{"busy_timeout(5000)", "journal_mode(WAL)",
			"synchronous(FULL)", "secure_delete(ON)"}, more...), "_txlock": {"immediate"}}
		return (&url.URL{Scheme: "file", OmitHost: true, Path: filepath.ToSlash(path),
			RawQuery: q.Encode()}).String()
	}
	if s.writing, err = sql.Open("sqlite", name()); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	s.writing.SetMaxOpenConns(1)
	if s.conn, err = s.writing.Conn(ctx); err != nil {
		return nil, fmt.Errorf("store: %s: %w", path, err)
	}
	if err := s.make(ctx); err != nil {
		return nil, fmt.Errorf("store: %s: %w", path, err)
	}
	if s.reading, err = sql.Open("sqlite", name("query_only(ON)")); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	s.reading.SetMaxOpenConns(4)
	return s, nil
}

// make checks the version of the database, or makes the tables of a new one.
func (s *sqlite) make(ctx context.Context) error {
	return s.inside(ctx, func() error {
		var version, id int64
		if err := s.row(ctx, "PRAGMA user_version", &version); err != nil {
			return err
		}
		if err := s.row(ctx, "PRAGMA application_id", &id); err != nil {
			return err
		}
		switch {
		case version == schemaVersion && id == applicationID:
			return nil
		case version != 0 || id != 0:
			return fmt.Errorf("it has version %d of application %#x, must have %d of %#x: %w", version, id,
				schemaVersion, applicationID, ErrSchema)
		}
		var secret [32]byte
		_, _ = rand.Read(secret[:]) // never fails
		if _, err := s.conn.ExecContext(ctx, schema+fmt.Sprintf(
			"PRAGMA user_version = %d; PRAGMA application_id = %d;", schemaVersion,
			applicationID)); err != nil {
			return err
		}
		_, err := s.conn.ExecContext(ctx, "INSERT INTO writer VALUES (1, 0, '', 0, 0, ?)", secret[:])
		return err
	})
}

// inside runs a transaction. Nothing of it is there after an error, or nobody knows.
func (s *sqlite) inside(ctx context.Context, what func() error) error {
	if err := s.exec(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err := what()
	if err == nil {
		err = s.exec(ctx, "COMMIT")
	}
	if err != nil {
		_ = s.exec(context.WithoutCancel(ctx), "ROLLBACK") // which may have happened already
	}
	return err
}

func (s *sqlite) row(ctx context.Context, query string, to ...any) error {
	return s.conn.QueryRowContext(ctx, query).Scan(to...)
}

// exec runs a statement, which is prepared once.
func (s *sqlite) exec(ctx context.Context, query string, args ...any) error {
	_, err := s.affect(ctx, query, args...)
	return err
}

func (s *sqlite) affect(ctx context.Context, query string, args ...any) (int64, error) {
	stmt := s.made[query]
	if stmt == nil {
		var err error
		if stmt, err = s.conn.PrepareContext(ctx, query); err != nil {
			return 0, err
		}
		s.made[query] = stmt
	}
	r, err := stmt.ExecContext(ctx, args...)
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// Begin implements Store.
func (s *sqlite) Begin(ctx context.Context, holder string) (out Opened, err error) {
	err = s.inside(ctx, func() error {
		if err := s.exec(ctx, "UPDATE writer SET term = term + 1, holder = ?", holder); err != nil {
			return err
		}
		var secret []byte
		if err := s.row(ctx, "SELECT term, commits, now, secret FROM writer", &s.term, &s.commits, &out.Now,
			&secret); err != nil {
			return err
		}
		if len(secret) != len(out.Secret) {
			return errors.New("its secret is damaged")
		}
		out.Secret = [32]byte(secret)
		if out.Experiments, err = s.records(ctx,
			"SELECT id, name, data FROM experiment ORDER BY id"); err != nil {
			return err
		}
		out.Keys, err = s.records(ctx, "SELECT id, name, data FROM key ORDER BY id")
		return err
	})
	if err != nil {
		return Opened{}, fmt.Errorf("store: %w", err)
	}
	hash := sha256.Sum256(out.Secret[:])
	s.instance = hex.EncodeToString(hash[:8])
	out.Older, err = s.wentBack()
	if err != nil {
		return Opened{}, fmt.Errorf("store: %w", err)
	}
	return out, nil
}

func (s *sqlite) records(ctx context.Context, query string) (out []Record, err error) {
	rows, err := s.conn.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var r Record
		if err := rows.Scan(&r.ID, &r.Name, &r.Data); err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, rows.Err()
}

// mark is what the file beside the database says.
type mark struct {
	Store   string `json:"store"`
	Commits int64  `json:"commits"`
}

// wentBack says whether the database has fewer commits than the mark has seen. A mark that is not
// there, or of another store, says nothing; nor does one that a loss of power has cut.
func (s *sqlite) wentBack() (bool, error) {
	data, err := os.ReadFile(filepath.Join(s.dir, "mark"))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	var m mark
	if err != nil || json.Unmarshal(data, &m) != nil {
		return false, err
	}
	return m.Store == s.instance && m.Commits > s.commits, nil
}

// remember writes the mark, if it is old. It is a help: no commit fails with it.
func (s *sqlite) remember(now time.Time) {
	if now.Sub(s.marked) < markEvery {
		return
	}
	s.marked = now
	data, _ := json.Marshal(mark{s.instance, s.commits})
	path := filepath.Join(s.dir, "mark")
	if os.WriteFile(path+".new", append(data, '\n'), 0o600) == nil {
		_ = os.Rename(path+".new", path)
	}
}

// Commit implements Store.
func (s *sqlite) Commit(ctx context.Context, c Commit) error {
	ctx = context.WithoutCancel(ctx) // a transaction is not given up in the middle
	cut := s.owed
	err := s.inside(ctx, func() error {
		n, err := s.affect(ctx, "UPDATE writer SET commits = commits + 1, now = ? WHERE term = ?",
			c.Now, s.term)
		if err != nil {
			return err
		}
		if n != 1 {
			return ErrFenced
		}
		for _, w := range c.Writes {
			if err := s.write(ctx, w); err != nil {
				return fmt.Errorf("experiment %d: %w", w.ID, err)
			}
			cut = cut || w.Line != nil || w.DropSums || w.DropUnits
		}
		for _, k := range c.Keys {
			if err := s.exec(ctx, "INSERT INTO key VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET name = "+
				"excluded.name, data = excluded.data", k.ID, k.Name, bytesOf(k.Data)); err != nil {
				return err
			}
		}
		for _, line := range c.Audit {
			if err := s.exec(ctx, "INSERT INTO audit (text) VALUES (?)", bytesOf(line)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	s.commits++
	s.remember(time.Now())
	if cut {
		s.owed = s.cutLog(ctx) != nil
	}
	return nil
}

// cutLog moves the log into the database and cuts it. A reader may be in the way: then it is done
// after the next commit.
func (s *sqlite) cutLog(ctx context.Context) error {
	var busy, frames, moved int64
	err := s.row(ctx, "PRAGMA wal_checkpoint(TRUNCATE)", &busy, &frames, &moved)
	if err == nil && busy != 0 {
		err = errors.New("a reader is in the way")
	}
	return err
}

func (s *sqlite) write(ctx context.Context, w Write) error {
	if r := w.Record; r != nil {
		if err := s.exec(ctx, "INSERT INTO experiment (id, name, data) VALUES (?, ?, ?) ON CONFLICT (id) DO "+
			"UPDATE SET name = excluded.name, data = excluded.data", w.ID, r.Name,
			bytesOf(r.Data)); err != nil {
			return err
		}
	}
	if w.Plan != nil {
		if err := s.exec(ctx, "UPDATE experiment SET plan = ? WHERE id = ?", w.Plan, w.ID); err != nil {
			return err
		}
	}
	for _, t := range w.Taken {
		for _, table := range []string{"segment", "redeemed"} {
			if err := s.exec(ctx, "DELETE FROM "+table+" WHERE experiment = ? AND arm = ? AND "+
				"start >= ? AND start < ?",
				w.ID, t.Arm, t.Start, t.End); err != nil {
				return err
			}
		}
	}
	for _, drop := range []struct {
		yes   bool
		table string
	}{{w.DropSums, "segment"}, {w.DropSums, "redeemed"}, {w.DropUnits, "assignment"}} {
		if drop.yes {
			if err := s.exec(ctx, "DELETE FROM "+drop.table+" WHERE experiment = ?", w.ID); err != nil {
				return err
			}
		}
	}
	for _, a := range w.Arms {
		if err := s.exec(ctx, "INSERT OR REPLACE INTO arm VALUES (?, ?, ?, ?, ?, ?, ?)", w.ID, a.Arm, a.Head,
			a.Issued, a.Asked, a.Off, runsText(a.Runs)); err != nil {
			return err
		}
	}
	for _, g := range w.Segments {
		if err := s.exec(ctx, "INSERT OR REPLACE INTO segment VALUES (?, ?, ?, ?, ?, ?, ?)", w.ID, g.Arm,
			g.Start, g.End, g.Cut, g.Settles, g.Sum); err != nil {
			return err
		}
	}
	for _, p := range w.Parts {
		if p.Number == 0 {
			if err := s.exec(ctx, "DELETE FROM redeemed WHERE experiment = ? AND arm = ? AND start = ?", w.ID,
				p.Arm, p.Start); err != nil {
				return err
			}
		}
		if err := s.exec(ctx, "INSERT INTO redeemed VALUES (?, ?, ?, ?, ?)", w.ID, p.Arm, p.Start, p.Number,
			bytesOf(p.Redeemed)); err != nil {
			return err
		}
	}
	if len(w.Units) > 0 {
		if err := s.exec(ctx, "INSERT INTO assignment (experiment, units) VALUES (?, ?)", w.ID,
			w.Units); err != nil {
			return err
		}
	}
	if w.Line == nil {
		return nil
	}
	n, err := s.affect(ctx, "INSERT INTO release SELECT ?1, ?2, ?3 WHERE ?2 = (SELECT count(*) FROM release "+
		"WHERE experiment = ?1)", w.ID, w.Number, w.Line)
	if err == nil && n != 1 {
		err = fmt.Errorf("line %d does not follow the last", w.Number)
	}
	return err
}

// Load implements Store.
func (s *sqlite) Load(ctx context.Context, id int64) (Stored, error) {
	out, err := s.load(ctx, id)
	if err != nil {
		return Stored{}, fmt.Errorf("store: experiment %d: %w", id, err)
	}
	return out, nil
}

func (s *sqlite) load(ctx context.Context, id int64) (out Stored, err error) {
	// so that all is of one moment
	tx, err := s.reading.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return out, err
	}
	defer func() { _ = tx.Rollback() }()
	if err := tx.QueryRowContext(ctx, "SELECT plan, (SELECT count(*) FROM release WHERE experiment = ?1) FROM "+
		"experiment WHERE id = ?1", id).Scan(&out.Plan, &out.Lines); err != nil {
		return out, err
	}
	each := func(query string, row func(rows *sql.Rows) error) {
		if err != nil {
			return
		}
		var rows *sql.Rows
		if rows, err = tx.QueryContext(ctx, query, id); err != nil {
			return
		}
		defer rows.Close()
		for rows.Next() {
			if err = row(rows); err != nil {
				return
			}
		}
		err = rows.Err()
	}
	each("SELECT arm, head, issued, asked, gone, runs FROM arm WHERE experiment = ? ORDER BY arm",
		func(rows *sql.Rows) error {
			var a Arm
			var runs []byte
			err := rows.Scan(&a.Arm, &a.Head, &a.Issued, &a.Asked, &a.Off, &runs)
			if err == nil {
				a.Runs, err = readRuns(runs)
			}
			out.Arms = append(out.Arms, a)
			return err
		})
	each("SELECT arm, start, stop, cut, settles, sum FROM segment WHERE experiment = ? ORDER BY arm, start",
		func(rows *sql.Rows) error {
			var g Segment
			err := rows.Scan(&g.Arm, &g.Start, &g.End, &g.Cut, &g.Settles, &g.Sum)
			out.Segments = append(out.Segments, g)
			return err
		})
	each("SELECT arm, start, part, numbers FROM redeemed WHERE experiment = ? ORDER BY arm, start, part",
		func(rows *sql.Rows) error {
			var p Part
			err := rows.Scan(&p.Arm, &p.Start, &p.Number, &p.Redeemed)
			out.Parts = append(out.Parts, p)
			return err
		})
	each("SELECT units FROM assignment WHERE experiment = ? ORDER BY block", func(rows *sql.Rows) error {
		var units []byte
		err := rows.Scan(&units)
		out.Units = append(out.Units, units)
		return err
	})
	return out, err
}

// linesAtOnce is how many lines are read at once.
const linesAtOnce = 256

// Lines implements Store. No transaction is open while whoever reads has a line: a slow one, whom
// anybody may be where an experiment is public, would keep the log from being cut, and the writer
// waiting for it.
func (s *sqlite) Lines(ctx context.Context, id int64, from int) iter.Seq2[[]byte, error] {
	return inParts(from, func(from int) ([][]byte, error) {
		return s.lines(ctx, "SELECT line FROM release WHERE experiment = ? AND batch >= ? ORDER BY batch "+
			"LIMIT ?", id, from, linesAtOnce)
	})
}

// Audit implements Store. Lines are never taken out, so that their numbers have no gaps.
func (s *sqlite) Audit(ctx context.Context, from int) iter.Seq2[[]byte, error] {
	return inParts(from, func(from int) ([][]byte, error) {
		return s.lines(ctx, "SELECT text FROM audit WHERE line > ? ORDER BY line LIMIT ?", from, linesAtOnce)
	})
}

// inParts reads lines by linesAtOnce.
func inParts(from int, read func(from int) ([][]byte, error)) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for {
			lines, err := read(from)
			for _, line := range lines {
				if !yield(line, nil) {
					return
				}
			}
			if err != nil {
				yield(nil, fmt.Errorf("store: %w", err))
				return
			}
			if from += len(lines); len(lines) < linesAtOnce {
				return
			}
		}
	}
}

// lines are those that a query finds.
func (s *sqlite) lines(ctx context.Context, query string, args ...any) (out [][]byte, err error) {
	rows, err := s.reading.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var line []byte
		if err := rows.Scan(&line); err != nil {
			return out, err
		}
		out = append(out, line)
	}
	return out, rows.Err()
}

// Close implements Store.
func (s *sqlite) Close() error {
	var errs []error
	for _, stmt := range s.made {
		errs = append(errs, stmt.Close())
	}
	s.made = nil
	if s.reading != nil {
		errs = append(errs, s.reading.Close())
	}
	if s.conn != nil {
		errs = append(errs, s.conn.Close())
	}
	if s.writing != nil {
		errs = append(errs, s.writing.Close())
	}
	return errors.Join(errs...)
}

// bytesOf is b, also where there is nothing in it: nil would be NULL.
func bytesOf(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// runsText writes runs, 24 bytes each.
func runsText(runs []play.Run) []byte {
	b := []byte{}
	for _, r := range runs {
		b = append(binary.BigEndian.AppendUint64(b, uint64(r.From)), r.Epoch[:]...)
	}
	return b
}

func readRuns(b []byte) (out []play.Run, err error) {
	if len(b)%24 != 0 {
		return nil, errors.New("the epochs of an arm are damaged")
	}
	for ; len(b) > 0; b = b[24:] {
		out = append(out, play.Run{From: int(binary.BigEndian.Uint64(b)), Epoch: play.Epoch(b[8:24])})
	}
	return out, nil
}
