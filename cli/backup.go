package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/live/serve/store"
)

// storeFlags say which store it is.
type storeFlags struct {
	Data     string `env:"SOTTO_DATA" help:"${backupData}" placeholder:"DIR" type:"path" xor:"store"`
	Database string `env:"SOTTO_DATABASE" help:"${backupDatabase}" placeholder:"URL" xor:"store"`
}

// directory is the one that is meant where there is no database.
func (c storeFlags) directory() (string, error) { return filepath.Abs(cmp.Or(c.Data, "sotto-data")) }

type backupCommand struct {
	File string `arg:"" help:"${backupFile}" type:"path"`
	storeFlags
}

type restoreCommand struct {
	File string `arg:"" help:"${restoreFile}" type:"path"`
	storeFlags
}

// backupTexts are help texts that are too long for their flags.
var backupTexts = kong.Vars{
	"backupData":     "Directory of the database; ./sotto-data if not given.",
	"backupDatabase": "PostgreSQL database instead of a directory, as postgres://USER@HOST/DATABASE.",
	"backupFile":     "The file to write; it must not be there.",
	"restoreFile":    "The backup.",
	"backup": `The service goes on meanwhile. A backup has declarations, transcripts, keys and assignments. It has no
reward: no sum that was not released, and nothing that tells whether somebody reported. So it is for reading and
for ending, never for going on. Of two services that differ in one person's reward, the backups are equal
byte by byte until that is released. So decisions of the last hour, by the clock of the machine where you
run this, are left out; and so are counts of decisions that no release has, the times of commits, and the
journal of operators, which GET /v1/audit exports.
Whoever has the file can make tokens and use the service's signatures: keep it as you keep the database.

Examples:
  sotto backup /backup/shop-2026-11-27
  sotto backup --data /var/lib/sotto /backup/shop-2026-11-27
  sotto backup --database postgres://sotto@db.example/sotto /backup/shop-2026-11-27`,
	"restore": `The directory must be empty or not be there, and the database must have no schema sotto. Experiments that ran,
and drafts, have failed there: look at them with sotto serve --read-only, and stop each. Of a file that is torn,
changed or no backup nothing is written.

Examples:
  sotto restore --data restored /backup/shop-2026-11-27
  sotto restore --database postgres://sotto@db.example/drill /backup/shop-2026-11-27`,
}

func (c *backupCommand) Run(ctx context.Context, s streams) (err error) {
	if _, err := os.Lstat(c.File); err == nil {
		return usagef("file: %s is there already, must be a new one", c.File)
	}
	var open func(context.Context) (store.Store, error)
	if c.Database != "" {
		if open, err = store.PostgresReader(c.Database); err != nil {
			return usagef("--database: %w", err)
		}
	} else {
		dir, err := c.directory()
		if err != nil {
			return err
		}
		if inside(dir, c.File) {
			return usagef("file: %s is in the store's own directory %s, must be elsewhere: who loses one loses both",
				c.File, dir)
		}
		open = store.SQLiteReader(dir)
	}
	st, err := open(ctx)
	switch {
	case err != nil && c.Database != "":
		return usagef("--database: %w", err)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, store.ErrSchema):
		return usagef("--data: %w", err)
	case err != nil:
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	f, err := pending("file", c.File, privateFile)
	if err != nil {
		return err
	}
	defer func() { _ = f.Discard() }() // nothing, once it is there
	switch err := serve.Backup(ctx, st, s.known, time.Now(), f); {
	case errors.Is(err, serve.ErrHelperStore):
		return usage(err)
	case err != nil:
		return err
	}
	if err := f.Place(); errors.Is(err, fs.ErrExist) {
		return usagef("file: %s is there already, must be a new one", c.File)
	} else if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "%s is whole: keep it as you keep the database\n", c.File)
	return nil
}

// inside says whether a file would be in a directory, whatever links lead there.
func inside(dir, file string) bool {
	real := func(path string) string {
		if at, err := filepath.EvalSymlinks(path); err == nil {
			return at
		}
		return filepath.Clean(path)
	}
	to, err := filepath.Rel(real(dir), real(filepath.Dir(file)))
	return err == nil && to != ".." && !strings.HasPrefix(to, ".."+string(filepath.Separator))
}

func (c *restoreCommand) Run(ctx context.Context, s streams) error {
	in, err := os.Open(c.File)
	if err != nil {
		return usagef("file: %w", err)
	}
	defer in.Close()
	var into store.Fill
	where, flag := "PostgreSQL", "--database"
	if c.Database != "" {
		if into, err = store.FillPostgres(c.Database); err != nil {
			return usagef("--database: %w", err)
		}
	} else {
		flag = "--data"
		if where, err = c.directory(); err != nil {
			return err
		}
		if err := canHold("--data", where); err != nil {
			return err
		}
		into = store.FillSQLite(where)
	}
	switch err := serve.Restore(ctx, in, s.known, into); {
	case errors.Is(err, serve.ErrBackup):
		return usagef("file: %s: %w; nothing was written", c.File, err)
	case errors.Is(err, store.ErrNotEmpty):
		return usagef("%s: %w, must be: nothing was written", flag, err)
	case err != nil && c.Database != "":
		return usagef("--database: %w", err)
	case err != nil:
		return err
	}
	fmt.Fprintf(s.out, "restored into %s: look with sotto serve --read-only, then start it and stop what has failed\n", where)
	return nil
}
