package store

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite" // the driver

	"github.com/sotto-dp/sotto/internal/atomicfile"
)

// applicationID says that a file is Sotto's.
const applicationID = 0x736f7474 // sott

// markSize is that of the mark beside the database, in less than a sector. It is written with each commit,
// and synced where the last time is syncMarkEvery ago: a sync with each commit would make it take twice
// as long.
const (
	markSize      = 64
	syncMarkEvery = time.Second
)

// SQLite opens the store in a directory, and makes both where they are not there. A file beside the
// database, mark, remembers how far it was: if the database alone is replaced by an older one, loses the
// end of its log, or is restored where there is no mark, Begin says so. If the whole directory goes back,
// or a loss of power takes commits that the disk had confirmed together with their marks, nothing here
// can know.
//
// Commits are durable when they return (a write-ahead log with synchronous = FULL). What is deleted
// is overwritten, and the log, which has every sum that ever was, is cut to nothing after each
// commit with a line.
func SQLite(dir string) func(context.Context) (Store, error) {
	return func(ctx context.Context) (Store, error) { return openSQLite(ctx, dir, false) }
}

// SQLiteReader opens the store in a directory to read it as it is. Begin takes nothing over, who
// writes goes on, and Commit fails with ErrReadOnly.
func SQLiteReader(dir string) func(context.Context) (Store, error) {
	return func(ctx context.Context) (Store, error) { return openSQLite(ctx, dir, true) }
}

// A sqlite has one connection that writes, and others for readers.
type sqlite struct {
	tables
	dir     string
	writing *sql.DB
	conn    *sql.Conn
	made    map[string]*sql.Stmt
	reads   bool // and writes nothing

	term     int64
	instance string
	commits  int64
	mark     *os.File
	synced   time.Time // the mark
	owed     bool      // the log has to be cut
	loose    bool      // there may be pages to give back
}

func openSQLite(ctx context.Context, dir string, reads bool) (_ *sqlite, err error) {
	path := filepath.Join(dir, "sotto.db")
	if !reads {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("store: %w", err)
		}
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) // SQLite would let others read
		if err != nil {
			return nil, fmt.Errorf("store: %w", err)
		}
		if err := f.Close(); err != nil {
			return nil, fmt.Errorf("store: %w", err)
		}
	} else if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	s := &sqlite{dir: dir, made: map[string]*sql.Stmt{}, reads: reads}
	defer func() {
		if err != nil {
			_ = s.Close()
		}
	}()
	name := func(more ...string) string {
		q := url.Values{"_pragma": append([]string{"busy_timeout(5000)"}, more...)}
		if reads {
			q.Set("mode", "ro")
		} else {
			q.Set("_txlock", "immediate")
			// which is for a new database, and comes before there is anything in it
			q["_pragma"] = append(q["_pragma"], "auto_vacuum(INCREMENTAL)", "journal_mode(WAL)", "synchronous(FULL)", "secure_delete(ON)")
		}
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

// setVersion says of a database what it is.
var setVersion = fmt.Sprintf("PRAGMA user_version = %d; PRAGMA application_id = %d;", schemaVersion,
	applicationID)

// make checks the version of the database, brings it to that of now, or makes the tables of a new one.
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
		case s.reads && id == applicationID && version >= readable && version < schemaVersion:
			s.bare = true
			return nil
		case since(version) != "" && id == applicationID && !s.reads:
			_, err := s.conn.ExecContext(ctx, since(version)+setVersion)
			return err
		case version != 0 || id != 0 || s.reads:
			return fmt.Errorf("it has version %d of application %#x, must have %d of %#x: %w", version, id,
				schemaVersion, applicationID, ErrSchema)
		}
		var secret [32]byte
		_, _ = rand.Read(secret[:]) // never fails
		if _, err := s.conn.ExecContext(ctx, schema+setVersion); err != nil {
			return err
		}
		_, err := s.conn.ExecContext(ctx, "INSERT INTO writer VALUES (1, 0, '', 0, 0, ?)", secret[:])
		return err
	})
}

// inside runs a transaction. Nothing of it is there after an error, or nobody knows.
func (s *sqlite) inside(ctx context.Context, what func() error) error {
	begin := "BEGIN IMMEDIATE"
	if s.reads {
		begin = "BEGIN"
	}
	if err := s.exec(ctx, begin); err != nil {
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

// roomSize is what must be free to go on after the disk was full: more than the log of writes has
// before it is used again, which is given back when the store is closed.
const roomSize = 8 << 20

// Room implements Roomy: it takes the room, and gives it back.
func (s *sqlite) Room() error {
	f, err := os.OpenFile(filepath.Join(s.dir, "room"), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	block := make([]byte, 1<<16)
	for n := 0; n < roomSize && err == nil; n += len(block) {
		_, err = f.Write(block)
	}
	if err = errors.Join(err, f.Close(), os.Remove(f.Name())); err != nil {
		return fmt.Errorf("store: %d MiB must be free to go on: %w", roomSize>>20, err)
	}
	return nil
}

// Begin implements Store.
func (s *sqlite) Begin(ctx context.Context, holder string) (out Opened, err error) {
	err = s.inside(ctx, func() error {
		if !s.reads {
			if err := s.exec(ctx, "UPDATE writer SET term = term + 1, holder = ?", holder); err != nil {
				return err
			}
		}
		var secret []byte
		if err := s.row(ctx, "SELECT term, commits, now, secret FROM writer", &s.term, &s.commits, &out.Now,
			&secret); err != nil {
			return err
		}
		if len(secret) != len(out.Secret) {
			return errSecret
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
	if s.loose = !s.reads; s.loose {
		s.renew(ctx)
	}
	hash := sha256.Sum256(out.Secret[:])
	s.instance = hex.EncodeToString(hash[:8])
	if out.Older, err = s.wentBack(); err == nil && !out.Older && !s.reads {
		err = s.remember()
	}
	if err != nil {
		return Opened{}, fmt.Errorf("store: %w", err)
	}
	return out, nil
}

// Held implements Store.
func (s *sqlite) Held(ctx context.Context) error { return s.held(ctx, s.term) }

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

// wentBack says whether the database may have fewer commits than there were: the mark has seen more,
// or it is damaged, of another store or not there, though it is written before the first commit.
func (s *sqlite) wentBack() (bool, error) {
	data, err := os.ReadFile(filepath.Join(s.dir, "mark"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	var m mark
	if json.Unmarshal(data, &m) != nil || m.Store != s.instance {
		return s.commits > 0, nil
	}
	return m.Commits > s.commits, nil
}

// remember writes the mark. It comes after its commit, so that it is never ahead of the database. It
// is written in its place, and so that a loss of power leaves the old one or the new one: in one sector.
func (s *sqlite) remember() error {
	data, err := json.Marshal(mark{s.instance, s.commits})
	if err != nil {
		return err
	}
	data = fmt.Appendf(nil, "%-*s\n", markSize-1, data)
	if s.mark == nil {
		path := filepath.Join(s.dir, "mark")
		if is, err := os.Stat(path); err != nil || is.Size() != markSize {
			if err := atomicfile.WriteFile(path, data, 0o600); err != nil {
				return err
			}
		}
		if s.mark, err = os.OpenFile(path, os.O_WRONLY, 0); err != nil {
			return err
		}
	}
	if _, err := s.mark.WriteAt(data, 0); err != nil || time.Since(s.synced) < syncMarkEvery {
		return err
	}
	s.synced = time.Now()
	return s.mark.Sync()
}

// Commit implements Store.
func (s *sqlite) Commit(ctx context.Context, c Commit) error {
	if s.reads {
		return fmt.Errorf("store: %w", ErrReadOnly)
	}
	ctx = context.WithoutCancel(ctx) // a transaction is not given up in the middle
	err := s.inside(ctx, func() error {
		for _, do := range c.statements(s.term) {
			n, err := s.affect(ctx, do.query, do.args...)
			if err == nil && n != 1 {
				err = do.one
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	s.commits++
	_ = s.remember() // there is one, and it helps enough
	s.loose = s.loose || c.drops()
	if s.owed || c.forgets() {
		s.owed = s.cutLog(ctx) != nil
	}
	return nil
}

// Pages that hold nothing are given back when they are more than half of the file, and more than these:
// each release leaves some, which the next batch takes, and to give one back may move another, whose old
// place nobody overwrites.
const keptFree = 256

// freed is how many pages are given back at a time: a few milliseconds, in which others wait.
const freed = 128

// free is how many pages are to be given back.
func (s *sqlite) free(ctx context.Context) (n int64, err error) {
	var all int64
	err = errors.Join(s.row(ctx, "PRAGMA freelist_count", &n), s.row(ctx, "PRAGMA page_count", &all))
	if err != nil || n <= keptFree || 2*n <= all {
		return 0, err
	}
	return n, nil
}

// renew makes a database that cannot give pages back, since an earlier program has made it, one that can,
// and has given them. That copies what is in it, in memory, so as to leave no file behind. It may fail, for a
// reader or for want of room, and is tried again at the next start.
func (s *sqlite) renew(ctx context.Context) {
	var can int64
	if n, err := s.free(ctx); err != nil || n == 0 || s.row(ctx, "PRAGMA auto_vacuum", &can) != nil || can != 0 {
		return
	}
	if _, err := s.conn.ExecContext(ctx, "PRAGMA temp_store = MEMORY; PRAGMA auto_vacuum = INCREMENTAL; VACUUM"); err == nil {
		s.owed = s.cutLog(ctx) != nil
	}
}

// Tidy implements Tidier.
func (s *sqlite) Tidy(ctx context.Context) (more bool, err error) {
	if !s.loose {
		return false, nil
	}
	n, err := s.free(ctx)
	if err == nil && n > 0 {
		var rows *sql.Rows
		if rows, err = s.conn.QueryContext(ctx, fmt.Sprintf("PRAGMA incremental_vacuum(%d)", freed)); err == nil {
			for rows.Next() { // a page each
			}
			err = errors.Join(rows.Err(), rows.Close())
		}
		s.owed = true
	}
	s.loose = false
	if err != nil {
		return false, fmt.Errorf("store: %w", err)
	}
	after, err := s.free(ctx)
	s.loose = after > 0 && after < n // one that cannot keeps them until the next start
	if s.owed {
		s.owed = s.cutLog(ctx) != nil
	}
	return s.loose, err
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

// Close implements Store.
func (s *sqlite) Close() error {
	var errs []error
	for _, stmt := range s.made {
		errs = append(errs, stmt.Close())
	}
	s.made = nil
	if s.mark != nil {
		errs = append(errs, s.mark.Close())
	}
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
