package store

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

// Times of PostgreSQL: how long a connection may take, a transaction with all its waiting, and how
// long the server keeps one open whose client has stopped in its middle.
const (
	connectWithin = 2 * time.Second
	commitWithin  = 5 * time.Second
	idleWithin    = 2 * time.Second
)

// shared is what PostgreSQL has beside schema: the version, who writes, and from which history the
// tables are.
const shared = `
CREATE TABLE lease (
	only BIGINT PRIMARY KEY CHECK (only = 1), application BIGINT NOT NULL, version BIGINT NOT NULL,
	address TEXT NOT NULL, backend BIGINT NOT NULL, since TIMESTAMPTZ NOT NULL, origin TEXT NOT NULL,
	losses BIGINT NOT NULL);
`

// inPostgres is a schema in PostgreSQL's words.
func inPostgres(schema string) string {
	return strings.NewReplacer(
		", WITHOUT ROWID", "", " STRICT", "", "only INTEGER", `"only" BIGINT`, "gone INTEGER", "gone BOOLEAN",
		"block INTEGER", "block BIGINT GENERATED ALWAYS AS IDENTITY",
		"only BIGINT", `"only" BIGINT`, "(only =", `("only" =`, "INTEGER", "BIGINT", "BLOB", "BYTEA",
	).Replace(schema)
}

// Postgres opens the store in a PostgreSQL database, version 15 or later, and makes the tables where
// they are not there, in a schema named sotto. The URL is postgres://USER:PASSWORD@HOST:PORT/DATABASE
// with the parameters that PostgreSQL's own clients know; an error of it names no password.
//
// Commits are durable when they return: it is refused if the server's fsync is off, and
// synchronous_commit is on. Nothing is overwritten: deleted rows stay in the tables' files until
// they are vacuumed, and in the journal and its archives for ever.
//
// The stores that it opens are Shared. They tell that a database has gone back where they can: if
// it has fewer commits than a store of this process has seen, or is of another history (a restored
// dump, a server that was promoted) and this process was not the last to write.
func Postgres(address string) (func(context.Context) (Store, error), error) {
	cfg, err := postgresConfig(address)
	if err != nil {
		return nil, err
	}
	return opener(cfg, share{of: 1}), nil
}

// opener opens a share of a database.
func opener(cfg *pgx.ConnConfig, is share) func(context.Context) (Store, error) {
	cfg = cfg.Copy()
	cfg.RuntimeParams["search_path"] = is.schema()
	known := &known{}
	return func(ctx context.Context) (Store, error) { return openPostgres(ctx, cfg, known, is, false) }
}

func postgresConfig(address string) (*pgx.ConnConfig, error) {
	u, err := url.Parse(address) // whose errors have all of it
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return nil, errors.New("store: the database is not one of the form postgres://USER@HOST/DATABASE")
	}
	cfg, err := pgx.ParseConfig(address)
	if err != nil {
		var of *pgconn.ParseConfigError
		why := "it cannot be read"
		if errors.As(err, &of) && of.Unwrap() != nil { // without the URL
			why = hide(of.Unwrap().Error(), u)
		}
		return nil, fmt.Errorf("store: the database's URL: %s", why)
	}
	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = connectWithin
	}
	cfg.RuntimeParams["search_path"] = "sotto"
	cfg.RuntimeParams["jit"] = "off" // compiling takes a second, and rows are few
	if cfg.RuntimeParams["application_name"] == "" {
		cfg.RuntimeParams["application_name"] = "sotto"
	}
	return cfg, nil
}

// PostgresReader is Postgres to read the store as it is: Begin takes nothing over, who writes goes
// on, and Commit fails with ErrReadOnly. A database in shares is read as one store.
func PostgresReader(address string) (func(context.Context) (Store, error), error) {
	cfg, err := postgresConfig(address)
	if err != nil {
		return nil, err
	}
	cfg.RuntimeParams["default_transaction_read_only"] = "on"
	return func(ctx context.Context) (Store, error) { return openAll(ctx, cfg) }, nil
}

// hide takes the passwords of a URL out of a text.
func hide(text string, u *url.URL) string {
	secrets := []string{u.Query().Get("password"), u.Query().Get("sslpassword")}
	if p, ok := u.User.Password(); ok {
		secrets = append(secrets, p, u.User.String())
	}
	for _, s := range secrets {
		if s != "" {
			text = strings.ReplaceAll(text, s, "…")
		}
	}
	return text
}

// known is what the stores of one process know of the database together.
type known struct {
	sync.Mutex
	most     progress
	term     int64  // the last in which one of them wrote what it knew to be whole; 0: none
	identity string // of the tables; empty before they were seen
}

// identity tells the tables from those of every other database, also of one that was restored from
// their dump, and from what is restored in their place.
const identity = "(SELECT system_identifier FROM pg_control_system()) || '/' || " + here + " || '/' || w.tableoid"

// here is the database that is connected to; a server has many.
const here = "(SELECT oid FROM pg_database WHERE datname = current_database())"

// same notes which tables there are, or says that they are others.
func (k *known) same(identity string) error {
	k.Lock()
	defer k.Unlock()
	if k.identity != "" && k.identity != identity {
		return ErrReplaced
	}
	k.identity = identity
	return nil
}

// A progress is how far a database is: how often it was found to have lost commits, and how many it
// has. It grows, unless commits are lost and nobody has found that yet.
type progress struct{ losses, commits int64 }

func (p progress) before(q progress) bool {
	return p.losses < q.losses || p.losses == q.losses && p.commits < q.commits
}

func (k *known) saw(p progress) {
	k.Lock()
	defer k.Unlock()
	if k.most.before(p) {
		k.most = p
	}
}

func (k *known) wrote(term int64) {
	k.Lock()
	defer k.Unlock()
	k.term = term
}

// A postgres has one connection that writes, and others for readers.
type postgres struct {
	tables
	conn  *pgx.Conn
	known *known
	is    share
	reads bool // and writes nothing
	ends  bool // its process answers nothing more; of whoever closes it

	mu    sync.Mutex // of conn, and of what follows
	term  int64
	table uint32 // of the writer
	at    progress
	// that have to be written: the database is of another history than is written down
	origin string
	older  bool
	met    map[string]int // the places that Meet has read
}

func openPostgres(ctx context.Context, cfg *pgx.ConnConfig, known *known, is share, reads bool) (_ *postgres,
	err error) {
	s := &postgres{known: known, is: is, reads: reads}
	defer func() {
		if err != nil {
			_ = s.Close()
			err = fmt.Errorf("store: %w", err)
		}
	}()
	if s.conn, err = pgx.ConnectConfig(ctx, cfg); err != nil {
		return nil, oneLine{err}
	}
	var version int64
	var fsync, synchronous string
	if err := s.conn.QueryRow(ctx, "SELECT current_setting('server_version_num')::bigint, "+
		"current_setting('fsync'), current_setting('synchronous_commit')").Scan(&version, &fsync,
		&synchronous); err != nil {
		return nil, err
	}
	switch {
	case version < 150000:
		return nil, fmt.Errorf("the server has version %d, must have 15 or later", version/10000)
	case fsync != "on":
		return nil, errors.New("the server's fsync is off, must be on: what it says is durable is not")
	}
	set := fmt.Sprintf("SET idle_in_transaction_session_timeout = %d; SET lock_timeout = %[1]d;",
		idleWithin.Milliseconds())
	if synchronous == "off" {
		set += "SET synchronous_commit = on;"
	}
	if is.of > 1 {
		set += fmt.Sprintf("SET sotto.shares = %d;", is.of) // see fence
	}
	if _, err := s.conn.Exec(ctx, set); err != nil {
		return nil, err
	}
	if err := s.make(ctx); err != nil {
		return nil, err
	}
	s.reading = stdlib.OpenDB(*cfg)
	s.reading.SetMaxOpenConns(is.readers())
	return s, nil
}

// oneLine is an error of many attempts in one line.
type oneLine struct{ error }

func (e oneLine) Error() string {
	return strings.ReplaceAll(strings.ReplaceAll(e.error.Error(), ":\n\t", ": "), "\n\t", "; ")
}

func (e oneLine) Unwrap() error { return e.error }

// make checks the version of the tables, brings them to that of now, or makes new ones.
func (s *postgres) make(ctx context.Context) error {
	return s.inside(ctx, func(ctx context.Context) error {
		// of many who come at once one makes them
		whole, err := s.whole(ctx)
		if err != nil {
			return err
		}
		lock := "SELECT pg_advisory_xact_lock($1)"
		if whole { // and others need not wait
			lock = "SELECT pg_advisory_xact_lock_shared($1)"
		}
		if _, err := s.conn.Exec(ctx, lock, applicationID); err != nil {
			return err
		}
		if err := s.office(ctx); err != nil {
			return err
		}
		there, made, err := s.there(ctx)
		if err != nil {
			return err
		}
		if made {
			var version, id int64
			if err := s.conn.QueryRow(ctx, "SELECT version, application FROM lease").Scan(&version,
				&id); err != nil {
				return fmt.Errorf("%w: %w", ErrSchema, err)
			}
			if id == applicationID && (version >= marked || s.is.of <= 1) {
				if err := s.fits(ctx); err != nil {
					return err
				}
			}
			version -= s.is.mark()
			if since(version) != "" && id == applicationID && !s.reads {
				if _, err := s.conn.Exec(ctx, inPostgres(since(version))+
					fmt.Sprintf("UPDATE lease SET version = %d", schemaVersion+s.is.mark())); err != nil {
					return err
				}
				return s.enter(ctx)
			}
			if s.reads && id == applicationID && version >= readable && version < schemaVersion {
				s.bare = true
				return nil
			}
			if version != schemaVersion || id != applicationID {
				return fmt.Errorf("it has version %d of application %#x, must have %d of %#x: %w", version, id,
					schemaVersion, applicationID, ErrSchema)
			}
			return s.enter(ctx)
		}
		if s.reads {
			return fmt.Errorf("there are no tables: %w", ErrSchema)
		}
		if err := s.known.same(""); err != nil { // they were there
			return err
		}
		if s.is.of <= 1 {
			if err := s.alone(ctx); err != nil {
				return err
			}
		}
		if err := s.makeShare(ctx, there); err != nil {
			return err
		}
		return s.enter(ctx)
	})
}

// there says whether the schema of a store is there, and its tables.
func (s *postgres) there(ctx context.Context) (schema, tables bool, err error) {
	err = s.conn.QueryRow(ctx, "SELECT to_regnamespace($1) IS NOT NULL, to_regclass($1 || '.lease') IS NOT NULL",
		s.is.schema()).Scan(&schema, &tables)
	return schema, tables, err
}

// create makes the tables, and their schema if that is not there.
func (s *postgres) create(ctx context.Context, there bool, secret [32]byte) error {
	if !there {
		if _, err := s.conn.Exec(ctx, "CREATE SCHEMA "+s.is.schema()); err != nil {
			return err
		}
	}
	if _, err := s.conn.Exec(ctx, inPostgres(schema+shared)); err != nil {
		return err
	}
	if _, err := s.conn.Exec(ctx, "INSERT INTO writer VALUES (1, 0, '', 0, 0, $1)", secret[:]); err != nil {
		return err
	}
	_, err := s.conn.Exec(ctx, "INSERT INTO lease VALUES (1, $1, $2, '', 0, 'epoch', '', 0)", applicationID,
		schemaVersion+s.is.mark())
	return err
}

// inside runs a transaction, whose statements see what was committed before each of them. Nothing
// of it is there after an error, or nobody knows.
func (s *postgres) inside(ctx context.Context, what func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, commitWithin)
	defer cancel()
	if _, err := s.conn.Exec(ctx, "BEGIN ISOLATION LEVEL READ COMMITTED"); err != nil {
		return err
	}
	if err := what(ctx); err != nil {
		_, _ = s.conn.Exec(ctx, "ROLLBACK") // which the server does too
		return err
	}
	return s.commit(ctx)
}

// commit ends a transaction. One in which something has failed says that it was rolled back, and
// that is no error of the statement.
func (s *postgres) commit(ctx context.Context) error {
	tag, err := s.conn.Exec(ctx, "COMMIT")
	if err == nil && tag.String() != "COMMIT" {
		err = fmt.Errorf("the server answered %s to COMMIT", tag)
	}
	return err
}

// Begin implements Store.
func (s *postgres) Begin(ctx context.Context, holder string) (Opened, error) {
	return s.begin(ctx, -1, holder, "")
}

// Claim implements Shared.
func (s *postgres) Claim(ctx context.Context, after Writer, holder, address string) (Opened, error) {
	return s.begin(ctx, after.Term, holder, address)
}

// begin raises the term if it is after, or if that is negative.
func (s *postgres) begin(ctx context.Context, after int64, holder, address string) (out Opened, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var was, origin string
	var before int64
	err = s.inside(ctx, func(ctx context.Context) error {
		if s.reads {
			return s.state(ctx, &out, &was, &origin)
		}
		// Whoever wrote may have been stopped inside of a transaction, and holds the row of the writer.
		if _, err := s.conn.Exec(ctx, "SELECT pg_terminate_backend(a.pid, 1000) FROM pg_stat_activity a, "+
			"lease l, writer w WHERE a.pid = l.backend AND a.backend_start = l.since AND "+
			"a.datid = "+here+" AND a.pid <> pg_backend_pid() AND ($1 < 0 OR w.term = $1)", after); err != nil {
			return err
		}
		if err := s.fits(ctx); err != nil {
			return err
		}
		tag, err := s.conn.Exec(ctx, "UPDATE writer SET term = term + 1, holder = $1 WHERE $2 < 0 OR term = $2",
			holder, after)
		if err != nil {
			return err
		}
		if tag.RowsAffected() != 1 {
			return ErrFenced
		}
		if err := s.state(ctx, &out, &was, &origin); err != nil {
			return err
		}
		before = s.term - 1
		_, err = s.conn.Exec(ctx, "UPDATE lease SET address = $1, backend = pg_backend_pid(), since = "+
			"(SELECT backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid())", address)
		return err
	})
	if err != nil {
		return Opened{}, fmt.Errorf("store: %w", err)
	}
	s.known.Lock()
	defer s.known.Unlock()
	if s.reads {
		out.Older = was != "" && was != origin
		return out, nil
	}
	mine := s.known.term == before // nobody else has written since this process has
	out.Older = s.at.before(s.known.most) || was != "" && was != origin && !mine
	s.origin, s.older = "", out.Older
	if was != origin || out.Older {
		s.origin = origin
	}
	if s.known.term = s.term; out.Older {
		s.known.term = 0
	} else if s.known.most.before(s.at) {
		s.known.most = s.at
	}
	return out, nil
}

// Held implements Store.
func (s *postgres) Held(ctx context.Context) error {
	s.mu.Lock()
	term := s.term
	s.mu.Unlock()
	return s.held(ctx, term)
}

// timeline is the one that is written to. The server's last checkpoint has that too, but after a
// promotion that of the server before, until the next checkpoint: for minutes.
const timeline = "CASE WHEN pg_is_in_recovery() THEN (SELECT timeline_id FROM pg_control_checkpoint()) " +
	"ELSE ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int END"

// state is what there is, and from which history: what was written down and what is so.
func (s *postgres) state(ctx context.Context, out *Opened, was, origin *string) error {
	var secret []byte
	var now string
	if err := s.conn.QueryRow(ctx, "SELECT w.term, w.tableoid, "+identity+", l.losses, w.commits, w.now, w.secret, l.origin, "+
		"(SELECT system_identifier FROM pg_control_system()) || '/' || "+timeline+" || '/' || "+
		"'writer'::regclass::oid, "+
		"(extract(epoch FROM clock_timestamp()) * 1000)::bigint, "+
		"coalesce(inet_client_addr() <> inet_server_addr(), false) FROM writer w, lease l").Scan(&s.term,
		&s.table, &now, &s.at.losses, &s.at.commits, &out.Now, &secret, was, origin, &out.Clock, &out.Elsewhere); err != nil {
		return err
	}
	if len(secret) != len(out.Secret) {
		return errSecret
	}
	out.Secret = [32]byte(secret)
	err := s.known.same(now)
	if err != nil {
		return err
	}
	if out.Experiments, err = s.records(ctx, "experiment"); err != nil {
		return err
	}
	out.Keys, err = s.records(ctx, "key")
	return err
}

func (s *postgres) records(ctx context.Context, table string) ([]Record, error) {
	rows, err := s.conn.Query(ctx, "SELECT id, name, data FROM "+table+" ORDER BY id")
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Record])
}

// Commit implements Store. Its statements go to the server together.
func (s *postgres) Commit(ctx context.Context, c Commit) error {
	if s.reads {
		return fmt.Errorf("store: %w", ErrReadOnly)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// a transaction is not given up in the middle
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitWithin)
	defer cancel()
	all := c.statements(s.term)
	all[0].query += " AND tableoid = $3" // a dump of this term may have been restored
	all[0].args = append(all[0].args, s.table)
	all = append(all, s.is.places(c)...)
	// Who finds that the store has gone back writes that down with its first writes.
	told := s.origin != "" && len(c.Writes)+len(c.Keys) > 0
	at := progress{s.at.losses, s.at.commits + 1}
	if told && s.older {
		at.losses++
	}
	if told {
		all = append(all, statement{query: "UPDATE lease SET origin = $1, losses = $2",
			args: []any{s.origin, at.losses}})
	}
	if err := s.send(ctx, all); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	s.at = at
	s.known.saw(s.at)
	if told {
		s.origin, s.older = "", false
		s.known.wrote(s.term)
	}
	return nil
}

func (s *postgres) send(ctx context.Context, all []statement) error {
	var b pgx.Batch
	b.Queue("BEGIN ISOLATION LEVEL READ COMMITTED")
	for _, do := range all {
		b.Queue(do.query, do.args...)
	}
	sent := s.conn.SendBatch(ctx, &b)
	_, err := sent.Exec()
	for _, do := range all {
		if err != nil {
			break
		}
		var tag pgconn.CommandTag
		if tag, err = sent.Exec(); err == nil && tag.RowsAffected() != 1 {
			err = do.one
		}
	}
	if closed := sent.Close(); err == nil {
		err = closed
	}
	if err != nil {
		_, _ = s.conn.Exec(ctx, "ROLLBACK") // which the server does too
		return err
	}
	return s.commit(ctx)
}

// Look implements Shared.
func (s *postgres) Look(ctx context.Context) (w Writer, err error) {
	var losses int64
	var secret []byte
	var now string
	var version int64
	// One who has begun to send and stands still is not busy: the server waits for it.
	err = s.reading.QueryRowContext(ctx, "SELECT w.term, l.losses, w.commits, l.address, a.pid IS NULL, "+
		"a.pid IS NULL AND l.backend <> 0, "+
		"coalesce(a.state = 'active' AND a.wait_event IS DISTINCT FROM 'ClientRead', false), "+
		identity+", w.secret, l.version FROM writer w CROSS JOIN lease l LEFT JOIN pg_stat_activity a ON "+
		"a.pid = l.backend AND a.datid = "+here+" AND coalesce(a.backend_start = l.since, true)").Scan(&w.Term,
		&losses, &w.Commits, &w.Address, &w.Gone, &w.Broken, &w.Busy, &now, &secret, &version)
	if err == nil {
		err = s.known.same(now)
	}
	if err == nil && version >= marked && s.is.of <= 1 {
		err = fmt.Errorf("it was put in shares, and is open as 1: %w", ErrShares)
	}
	if err != nil {
		return Writer{}, fmt.Errorf("store: %w", err)
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte("database " + now))
	w.Database = hex.EncodeToString(mac.Sum(nil)[:16])
	s.known.saw(progress{losses, w.Commits})
	return w, nil
}

// Close implements Store. The server sees that the connection has ended, and so does Look.
func (s *postgres) Close() error {
	var errs []error
	if s.reading != nil {
		errs = append(errs, s.reading.Close())
	}
	if s.conn != nil {
		ctx, cancel := context.WithTimeout(context.Background(), connectWithin)
		defer cancel()
		if s.ends { // who is not told waits for a second
			_, _ = s.conn.Exec(ctx, "UPDATE lease SET backend = 0 WHERE backend = pg_backend_pid()")
		}
		errs = append(errs, s.conn.Close(ctx))
	}
	return errors.Join(errs...)
}

var _ Shared = (*postgres)(nil)
