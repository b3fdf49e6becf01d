package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/jackc/pgx/v5"
)

// A database in shares has each in a schema: share 0 in sotto, as a database that has one, and share i in
// sotto_i. Each has all tables, so a term, a fence and a secret, which is the same in all of them.
// Share 0 has three more: which shares there are, which of them each experiment is in, and which
// processes are there.
const officeTables = `
CREATE TABLE share (number BIGINT PRIMARY KEY);
CREATE TABLE place (name TEXT PRIMARY KEY, share BIGINT NOT NULL REFERENCES share);
CREATE TABLE node (address TEXT PRIMARY KEY, at TIMESTAMPTZ NOT NULL);
`

// marked is added to the version of a database in shares, so that programs and processes that know of one
// share write none.
const marked = 1000

// fence keeps whoever does not say that it knows of shares from writing share 0, whatever was looked at when its
// connection was opened: a program of before there were shares looks at no version when it claims.
const fence = `
CREATE FUNCTION of_shares() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
	RAISE EXCEPTION 'the database is in shares, of which this program does not know';
END $$;
CREATE TRIGGER of_shares BEFORE UPDATE ON writer FOR EACH ROW
	WHEN (coalesce(current_setting('sotto.shares', true), '') = '') EXECUTE FUNCTION of_shares();
`

// NodeFor is how long a process counts after it was seen last.
const NodeFor = 3 * time.Second

// An Office is the store of share 0, as all processes on a database in shares see it.
type Office interface {
	Shared
	// Meet says what there is in a database for all of its shares, and notes that a process is there, which others
	// find at an address; none if that is empty. What was committed before Meet is in it.
	Meet(ctx context.Context, address string) (Met, error)
	// Leave has a process be there no more.
	Leave(ctx context.Context, address string) error
}

// A Giver is a store whose process lets another write.
type Giver interface {
	// End has the others told, when the store is closed, that its process answers nothing more.
	End()
	// Give has this process not be believed the last that wrote: that another one has may be lost with all that
	// it did.
	Give()
}

// Met is what all processes on a database in shares go by.
type Met struct {
	Shares int            // of the database
	Nodes  int            // processes with an address that were there within NodeFor
	Keys   []Record       // by ID
	Places map[string]int // the shares of experiments, by name; not to be changed
}

// A share is one of so many.
type share struct{ number, of int }

func (is share) schema() string {
	if is.number == 0 {
		return "sotto"
	}
	return fmt.Sprintf("sotto_%d", is.number)
}

func (is share) mark() int64 {
	if is.of > 1 {
		return marked
	}
	return 0
}

// readers is how many connections read. A process has them for each of its shares.
func (is share) readers() int {
	if is.of > 1 {
		return 2
	}
	return 4
}

// places are the statements that note where the experiments of a commit are. A name that is in another
// share fails them all.
func (is share) places(c Commit) (out []statement) {
	if is.of <= 1 {
		return nil
	}
	for _, w := range c.Writes {
		if w.Record != nil {
			out = append(out, statement{query: "INSERT INTO sotto.place SELECT $1, $2 WHERE NOT EXISTS " +
				"(SELECT FROM sotto.place WHERE name = $1 AND share = $2)", args: []any{w.Record.Name, is.number}})
		}
	}
	return out
}

// PostgresShares is Postgres of a database in n shares, and opens that of a number. What it has none of is made,
// and never less: of more shares than n it is an error. With one share it is Postgres.
func PostgresShares(address string, n int) (func(i int) func(context.Context) (Store, error), error) {
	cfg, err := postgresConfig(address)
	if err != nil {
		return nil, err
	}
	return func(i int) func(context.Context) (Store, error) { return opener(cfg, share{i, n}) }, nil
}

// whole says whether all tables of a share are there, so that none is made.
func (s *postgres) whole(ctx context.Context) (is bool, err error) {
	if s.is.of <= 1 {
		return false, nil
	}
	if err := s.conn.QueryRow(ctx, "SELECT to_regclass('sotto.share') IS NOT NULL AND to_regclass($1 || '.lease') IS NOT NULL",
		s.is.schema()).Scan(&is); err != nil || !is {
		return false, err
	}
	err = s.conn.QueryRow(ctx, "SELECT version = $1 FROM lease", schemaVersion+s.is.mark()).Scan(&is)
	return is, err
}

// office makes what share 0 has for all, and looks that there are no more shares than are known.
func (s *postgres) office(ctx context.Context) error {
	if s.is.of <= 1 || s.reads {
		return nil
	}
	if _, err := s.conn.Exec(ctx, "SET LOCAL search_path = sotto"); err != nil {
		return err
	}
	first := &postgres{conn: s.conn, is: share{0, s.is.of}}
	there, made, err := first.there(ctx)
	if err == nil && !made {
		if err = s.known.same(""); err == nil { // they were there
			err = first.create(ctx, there, newSecret())
		}
	}
	if err != nil {
		return err
	}
	var ready bool
	if err := s.conn.QueryRow(ctx, "SELECT to_regclass('sotto.share') IS NOT NULL").Scan(&ready); err != nil {
		return err
	}
	if !ready {
		// Who writes it as a database of one share is put out, and knows no way back in. The writer comes first, as
		// in a commit: one that is under way is waited for.
		if _, err := s.conn.Exec(ctx, fence+"UPDATE writer SET term = term + 1;"+officeTables+fmt.Sprintf(
			"UPDATE lease SET version = version + %[1]d WHERE version < %[1]d", marked)); err != nil {
			return err
		}
	}
	if err := s.fits(ctx); err != nil {
		return err
	}
	_, err = s.conn.Exec(ctx, "SET LOCAL search_path = "+s.is.schema())
	return err
}

// enter has the office know a share whose tables are there, and all that is in it: also of one that was
// restored without the office, or before it.
func (s *postgres) enter(ctx context.Context) error {
	if s.is.of <= 1 || s.reads {
		return nil
	}
	if _, err := s.conn.Exec(ctx, "INSERT INTO sotto.share VALUES ($1) ON CONFLICT DO NOTHING", s.is.number); err != nil {
		return err
	}
	if _, err := s.conn.Exec(ctx, "INSERT INTO sotto.place SELECT name, $1 FROM experiment ON CONFLICT DO NOTHING",
		s.is.number); err != nil {
		return err
	}
	var same, apart bool
	if err := s.conn.QueryRow(ctx, "SELECT o.secret = w.secret, NOT EXISTS (SELECT FROM experiment e JOIN "+
		"sotto.place p USING (name) WHERE p.share <> $1) FROM sotto.writer o, writer w", s.is.number).Scan(&same,
		&apart); err != nil {
		return err
	}
	if !same || !apart {
		return fmt.Errorf("its schema %s is of another database than its schema sotto: %w", s.is.schema(), ErrReplaced)
	}
	return nil
}

// fits is nil if a database has no more shares than this process knows of.
func (s *postgres) fits(ctx context.Context) error {
	n := 1
	var version int64
	err := s.conn.QueryRow(ctx, "SELECT version FROM sotto.lease").Scan(&version)
	switch {
	case err != nil:
	case version >= marked:
		err = s.conn.QueryRow(ctx, countShares).Scan(&n)
	case s.is.of <= 1:
		err = s.alone(ctx)
	}
	if err == nil && n > s.is.of {
		err = fmt.Errorf("it is in %d shares, must be opened as %[1]d or more, and is as %d: %w", n, s.is.of, ErrShares)
	}
	return err
}

// alone is nil if there is no share but the first, also where that knows of none: its schema was restored from
// before the others were made.
func (s *postgres) alone(ctx context.Context) error {
	var more bool
	err := s.conn.QueryRow(ctx, "SELECT to_regclass('sotto_1.lease') IS NOT NULL").Scan(&more)
	if err == nil && more {
		err = fmt.Errorf("shares is 1, must be all that there are, of which one has the schema sotto_1: %w", ErrShares)
	}
	return err
}

// countShares says how many shares a database has: all below the highest, since they are made by whoever opens
// them all. One that is marked has two at least, though the second is not made yet.
const countShares = "SELECT greatest(coalesce(max(number), 0) + 1, 2) FROM sotto.share"

// makeShare makes the tables of a store.
func (s *postgres) makeShare(ctx context.Context, there bool) error {
	if s.is.number == 0 {
		return s.create(ctx, there, newSecret())
	}
	var secret []byte
	if err := s.conn.QueryRow(ctx, "SELECT secret FROM sotto.writer").Scan(&secret); err != nil {
		return err
	}
	if len(secret) != 32 {
		return errSecret
	}
	return s.create(ctx, there, [32]byte(secret))
}

// Meet implements Office.
func (s *postgres) Meet(ctx context.Context, address string) (Met, error) {
	out, err := s.meet(ctx, address)
	if err != nil {
		return Met{}, fmt.Errorf("store: %w", err)
	}
	return out, nil
}

func (s *postgres) meet(ctx context.Context, address string) (out Met, err error) {
	if address != "" {
		if err := s.seen(ctx, address); err != nil {
			return out, err
		}
	}
	var now string
	var places int
	if err := s.reading.QueryRowContext(ctx, "SELECT "+identity+", ("+countShares+"), (SELECT count(*) FROM sotto.node "+
		"WHERE abs(extract(epoch FROM clock_timestamp() - at)) < $1), (SELECT count(*) FROM sotto.place) FROM writer w",
		NodeFor.Seconds()).Scan(&now, &out.Shares, &out.Nodes, &places); err != nil {
		return out, err
	}
	if err := s.known.same(now); err != nil {
		return out, err
	}
	if err := s.each(ctx, func(rows *sql.Rows) error {
		var r Record
		err := rows.Scan(&r.ID, &r.Name, &r.Data)
		out.Keys = append(out.Keys, r)
		return err
	}, "SELECT id, name, data FROM key ORDER BY id"); err != nil {
		return out, err
	}
	s.mu.Lock()
	out.Places = s.met
	s.mu.Unlock()
	if len(out.Places) == places { // none is ever taken out, or goes elsewhere
		return out, nil
	}
	out.Places = map[string]int{}
	err = s.each(ctx, func(rows *sql.Rows) error {
		var name string
		var in int
		err := rows.Scan(&name, &in)
		out.Places[name] = in
		return err
	}, "SELECT name, share FROM sotto.place")
	s.mu.Lock()
	s.met = out.Places
	s.mu.Unlock()
	return out, err
}

// seen notes that a process is there, and forgets who has not been for long. A crash may forget all of it. It is one
// statement, since servers are far away.
func (s *postgres) seen(ctx context.Context, address string) error {
	_, err := s.reading.ExecContext(ctx, "WITH off AS (SELECT set_config('synchronous_commit', 'off', true)), "+
		"gone AS (DELETE FROM sotto.node WHERE address IN (SELECT address FROM sotto.node WHERE address <> $1::text AND "+
		"at < clock_timestamp() - interval '1 minute' FOR UPDATE SKIP LOCKED)) "+
		"INSERT INTO sotto.node SELECT $1::text, clock_timestamp() FROM off ON CONFLICT (address) DO UPDATE SET "+
		"at = excluded.at", address)
	return err
}

// End implements Giver.
func (s *postgres) End() { s.ends = true }

// Give implements Giver.
func (s *postgres) Give() { s.known.wrote(0) }

// Leave implements Office.
func (s *postgres) Leave(ctx context.Context, address string) error {
	if _, err := s.reading.ExecContext(ctx, "DELETE FROM sotto.node WHERE address = $1", address); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

// newSecret draws the secret of a database.
func newSecret() (secret [32]byte) {
	_, _ = rand.Read(secret[:]) // never fails
	return secret
}

var (
	_ Office = (*postgres)(nil)
	_ Giver  = (*postgres)(nil)
	_ Store  = joined(nil)
)

// openAll opens all shares of a database to be read as one store.
func openAll(ctx context.Context, cfg *pgx.ConnConfig) (Store, error) {
	n, err := sharesIn(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	var out joined
	for i := range n {
		of := cfg.Copy()
		of.RuntimeParams["search_path"] = share{i, n}.schema()
		s, err := openPostgres(ctx, of, &known{}, share{i, n}, true)
		if err != nil {
			return nil, errors.Join(err, out.Close())
		}
		out = append(out, s)
	}
	if n == 1 {
		return out[0], nil
	}
	return out, nil
}

// sharesIn is how many shares a database has, 1 also of one that has no tables.
func sharesIn(ctx context.Context, cfg *pgx.ConnConfig) (n int, err error) {
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return 0, oneLine{err}
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var many bool
	err = conn.QueryRow(ctx, "SELECT to_regclass('sotto.share') IS NOT NULL").Scan(&many)
	if err != nil || !many {
		return 1, err
	}
	err = conn.QueryRow(ctx, countShares).Scan(&n)
	return n, err
}

// joined are the shares of a database, which are only read. The ID of an experiment says which it is in, and
// each is as of one moment by itself.
type joined []*postgres

// of is the share of an experiment, and its ID there.
func (j joined) of(id int64) (Store, int64) { return j[id%int64(len(j))], id / int64(len(j)) }

// id is that of an experiment of share i.
func (j joined) id(i int, id int64) int64 { return id*int64(len(j)) + int64(i) }

// Begin implements Store.
func (j joined) Begin(ctx context.Context, holder string) (out Opened, err error) {
	for i, s := range j {
		in, err := s.Begin(ctx, holder)
		if err != nil {
			return Opened{}, err
		}
		for k := range in.Experiments {
			in.Experiments[k].ID = j.id(i, in.Experiments[k].ID)
		}
		if i == 0 {
			out = in
			continue
		}
		out.Now, out.Older = max(out.Now, in.Now), out.Older || in.Older
		out.Experiments = append(out.Experiments, in.Experiments...)
	}
	return out, nil
}

// Held implements Store.
func (j joined) Held(ctx context.Context) error { return j[0].Held(ctx) }

// Load implements Store.
func (j joined) Load(ctx context.Context, id int64) (Stored, error) {
	s, id := j.of(id)
	return s.Load(ctx, id)
}

// Lines implements Store.
func (j joined) Lines(ctx context.Context, id int64, from int) iter.Seq2[[]byte, error] {
	s, id := j.of(id)
	return s.Lines(ctx, id, from)
}

// Reports implements Store.
func (j joined) Reports(ctx context.Context, id int64, arm, start, end int) iter.Seq2[Hidden, error] {
	s, id := j.of(id)
	return s.Reports(ctx, id, arm, start, end)
}

// Units implements Store.
func (j joined) Units(ctx context.Context, id int64) iter.Seq2[[]byte, error] {
	s, id := j.of(id)
	return s.Units(ctx, id)
}

// Heads implements Store.
func (j joined) Heads(ctx context.Context) (out Heads, err error) {
	for i, s := range j {
		in, err := s.Heads(ctx)
		if err != nil {
			return Heads{}, err
		}
		for k := range in.Experiments {
			in.Experiments[k].ID = j.id(i, in.Experiments[k].ID)
		}
		if i == 0 {
			out = in
			continue
		}
		out.Experiments = append(out.Experiments, in.Experiments...)
	}
	return out, nil
}

// Audit implements Store: one share after the other.
func (j joined) Audit(ctx context.Context, from int) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		n := 0
		for _, s := range j {
			for line, err := range s.Audit(ctx, 0) {
				if n++; n > from && !yield(line, err) || err != nil {
					return
				}
			}
		}
	}
}

// Commit implements Store.
func (j joined) Commit(context.Context, Commit) error { return fmt.Errorf("store: %w", ErrReadOnly) }

// Close implements Store.
func (j joined) Close() error {
	errs := make([]error, len(j))
	for i, s := range j {
		errs[i] = s.Close()
	}
	return errors.Join(errs...)
}
