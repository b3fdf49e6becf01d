package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"

	"github.com/jackc/pgx/v5"

	"github.com/sotto-dp/sotto/internal/atomicfile"
)

// ErrNotEmpty is matched when a store is to be filled where there is something already.
var ErrNotEmpty = errors.New("it is not empty")

// A Fill makes a store with this secret, and of these commits, where there is none. It is there whole when Fill
// returns nil, or not at all: also after an error of commits, or if the process is killed.
type Fill func(ctx context.Context, secret [32]byte, commits iter.Seq2[Commit, error]) error

// FillSQLite fills a directory, which must be empty if it is there. It is made beside it, under another name.
func FillSQLite(dir string) Fill {
	return func(ctx context.Context, secret [32]byte, commits iter.Seq2[Commit, error]) (err error) {
		defer func() {
			if err != nil {
				err = fmt.Errorf("store: %w", err)
			}
		}()
		in, err := os.ReadDir(dir)
		switch {
		case err == nil && len(in) > 0:
			return fmt.Errorf("%s: %w", dir, ErrNotEmpty)
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return err
		}
		above := filepath.Dir(dir)
		if err := atomicfile.MakeDir(above); err != nil {
			return err
		}
		made, err := os.MkdirTemp(above, "."+filepath.Base(dir)+".")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(made) }() // it has its name by then
		s, err := openSQLite(ctx, made, false)
		if err != nil {
			return err
		}
		err = s.inside(ctx, func() error {
			return fill(secret, commits, func(do statement) (int64, error) { return s.affect(ctx, do.query, do.args...) })
		})
		if err = errors.Join(err, s.Close(), atomicfile.SyncDir(made)); err != nil {
			return err
		}
		if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) { // it is empty
			return err
		}
		if err := os.Rename(made, dir); err != nil {
			return err
		}
		return atomicfile.SyncDir(above)
	}
}

// FillPostgres fills a database that has no tables of Sotto's, in one transaction.
func FillPostgres(address string) (Fill, error) {
	cfg, err := postgresConfig(address)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, secret [32]byte, commits iter.Seq2[Commit, error]) (err error) {
		s := &postgres{}
		defer func() {
			if err = errors.Join(err, s.Close()); err != nil {
				err = fmt.Errorf("store: %w", err)
			}
		}()
		if s.conn, err = pgx.ConnectConfig(ctx, cfg); err != nil {
			s.conn = nil
			return oneLine{err}
		}
		if _, err := s.conn.Exec(ctx, "BEGIN ISOLATION LEVEL READ COMMITTED"); err != nil {
			return err
		}
		if _, err := s.conn.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", applicationID); err != nil {
			return err
		}
		var there, made bool
		if err := s.conn.QueryRow(ctx, "SELECT to_regnamespace('sotto') IS NOT NULL, EXISTS (SELECT FROM pg_class "+
			"WHERE relnamespace = to_regnamespace('sotto'))").Scan(&there, &made); err != nil {
			return err
		}
		if made {
			return fmt.Errorf("the database's schema sotto: %w", ErrNotEmpty)
		}
		if err := s.create(ctx, there, secret); err != nil {
			return err
		}
		if err := fill(secret, commits, func(do statement) (int64, error) {
			tag, err := s.conn.Exec(ctx, do.query, do.args...)
			return tag.RowsAffected(), err
		}); err != nil {
			return err // and the connection ends, with its transaction
		}
		return s.commit(ctx)
	}, nil
}

// fill does what commits and the secret write, of a store that nobody has begun to write to.
func fill(secret [32]byte, commits iter.Seq2[Commit, error], do func(statement) (int64, error)) error {
	all := func(of []statement) error {
		for _, one := range of {
			n, err := do(one)
			if err == nil && n != 1 {
				err = one.one
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	if err := all([]statement{{query: "UPDATE writer SET secret = $1", args: []any{secret[:]}, one: ErrReplaced}}); err != nil {
		return err
	}
	for c, err := range commits {
		if err == nil {
			err = all(c.statements(0))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
