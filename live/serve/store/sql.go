package store

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/sotto-dp/sotto/play"
)

// schema is that of version schemaVersion. What grows without end has rows of blocks: a part has
// the decisions of one commit, a row of assignment the units of one, a row of event its events.
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
	more BLOB NOT NULL,
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
CREATE TABLE traffic (
	experiment INTEGER NOT NULL, hour INTEGER NOT NULL, decisions BLOB NOT NULL,
	PRIMARY KEY (experiment, hour)) STRICT, WITHOUT ROWID;
CREATE TABLE key (id INTEGER PRIMARY KEY, name TEXT NOT NULL, data BLOB NOT NULL) STRICT;
CREATE TABLE audit (line INTEGER PRIMARY KEY, text BLOB NOT NULL) STRICT;
` + since3

// since3 is what version 4 has and version 3 has not.
const since3 = `
CREATE TABLE event (
	experiment INTEGER NOT NULL, start INTEGER NOT NULL, data BLOB NOT NULL,
	PRIMARY KEY (experiment, start)) STRICT;
` + since4

// since4 is what version 5 has and version 4 has not. A report is a row: a slot's are read by number.
const since4 = `
CREATE TABLE report (
	experiment INTEGER NOT NULL, arm INTEGER NOT NULL, number INTEGER NOT NULL, data BLOB NOT NULL,
	PRIMARY KEY (experiment, arm, number)) STRICT;
` + since5

// since5 is what version 6 has and version 5 has not. A total is a row, so that it can be destroyed alone.
const since5 = `
CREATE TABLE total (
	experiment INTEGER NOT NULL, arm INTEGER NOT NULL, number INTEGER NOT NULL, data BLOB NOT NULL,
	PRIMARY KEY (experiment, arm, number)) STRICT;
`

// schemaVersion is the version of schema. A store of an older one that since knows is made one of it
// by whoever opens it to write.
const schemaVersion = 6

// readable is the oldest version that is read as it is: it has all but totals, of which it can have none.
const readable = 5

// since is what a store of an older version has not, empty of one that cannot be made one of now.
func since(version int64) string {
	switch version {
	case 3:
		return since3
	case 4:
		return since4
	case 5:
		return since5
	}
	return ""
}

// A statement is one of a transaction. Its SQL is what SQLite and PostgreSQL both know.
type statement struct {
	query string
	args  []any
	one   error // it is this error unless one row is changed
}

// statements are what writes a commit in a term, in their order. The first is the fence.
func (c Commit) statements(term int64) []statement {
	var out []statement
	add := func(query string, args ...any) { out = append(out, statement{query: query, args: args}) }
	add("UPDATE writer SET commits = commits + 1, now = $1 WHERE term = $2", c.Now, term)
	out[0].one = ErrFenced
	for _, w := range c.Writes {
		w.statements(add)
		for i := range w.Lines {
			out[len(out)-len(w.Lines)+i].one = fmt.Errorf("experiment %d: line %d does not follow the last",
				w.ID, w.Number+i)
		}
	}
	for _, k := range c.Keys {
		add("INSERT INTO key VALUES ($1, $2, $3) ON CONFLICT (id) DO UPDATE SET name = excluded.name, "+
			"data = excluded.data", k.ID, k.Name, bytesOf(k.Data))
	}
	for _, line := range c.Audit {
		add("INSERT INTO audit SELECT coalesce(max(line), 0) + 1, $1 FROM audit", bytesOf(line))
	}
	return out
}

// forgets says whether something is deleted that nobody shall find again.
func (c Commit) forgets() bool {
	return slices.ContainsFunc(c.Writes, func(w Write) bool {
		return len(w.Lines)+len(w.Taken) > 0 || w.DropSums || w.DropUnits
	})
}

// drops says whether so much is deleted that the file may be smaller.
func (c Commit) drops() bool {
	return slices.ContainsFunc(c.Writes, func(w Write) bool { return w.DropSums || w.DropUnits })
}

// byNumber are the tables of what goes with a release, and where their rows have a decision's number.
var byNumber = []struct{ table, number string }{{"segment", "start"}, {"redeemed", "start"},
	{"report", "number"}, {"total", "number"}}

// linesOf is how many lines experiment $1 has, by the number of the last one. To count them SQLite would
// read all that is in them.
const linesOf = "(SELECT coalesce(max(batch), -1) + 1 FROM release WHERE experiment = $1)"

// statements adds what writes w; its lines come last.
func (w Write) statements(add func(query string, args ...any)) {
	if r := w.Record; r != nil {
		add("INSERT INTO experiment (id, name, data) VALUES ($1, $2, $3) ON CONFLICT (id) DO UPDATE SET "+
			"name = excluded.name, data = excluded.data", w.ID, r.Name, bytesOf(r.Data))
	}
	if w.Plan != nil {
		add("UPDATE experiment SET plan = $1 WHERE id = $2", w.Plan, w.ID)
	}
	for _, t := range w.Taken {
		for _, of := range byNumber {
			add("DELETE FROM "+of.table+" WHERE experiment = $1 AND arm = $2 AND "+of.number+" >= $3 AND "+of.number+
				" < $4", w.ID, t.Arm, t.Start, t.End)
		}
		if t.Arm == 0 {
			add("DELETE FROM event WHERE experiment = $1 AND start >= $2 AND start < $3", w.ID, t.Start, t.End)
		}
	}
	for _, drop := range []struct {
		yes   bool
		table string
	}{{w.DropSums, "segment"}, {w.DropSums, "redeemed"}, {w.DropSums, "event"}, {w.DropSums, "report"},
		{w.DropSums, "total"},
		{w.DropUnits, "assignment"}} {
		if drop.yes {
			add("DELETE FROM "+drop.table+" WHERE experiment = $1", w.ID)
		}
	}
	for _, a := range w.Arms {
		add("INSERT INTO arm VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (experiment, arm) DO UPDATE SET "+
			"head = excluded.head, issued = excluded.issued, asked = excluded.asked, gone = excluded.gone, "+
			"runs = excluded.runs", w.ID, a.Arm, a.Head, a.Issued, a.Asked, a.Off, runsText(a.Runs))
	}
	for _, g := range w.Segments {
		add("INSERT INTO segment VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (experiment, arm, start) "+
			"DO UPDATE SET stop = excluded.stop, cut = excluded.cut, settles = excluded.settles, "+
			"sum = excluded.sum, more = excluded.more", w.ID, g.Arm, g.Start, g.End, g.Cut, g.Settles, g.Sum,
			[]byte(g.More))
	}
	for _, p := range w.Parts {
		if p.Number == 0 {
			add("DELETE FROM redeemed WHERE experiment = $1 AND arm = $2 AND start = $3", w.ID, p.Arm, p.Start)
		}
		add("INSERT INTO redeemed VALUES ($1, $2, $3, $4, $5)", w.ID, p.Arm, p.Start, p.Number,
			bytesOf(p.Redeemed))
	}
	for _, v := range w.Events {
		add("INSERT INTO event VALUES ($1, $2, $3)", w.ID, v.Start, bytesOf(v.Data))
	}
	for _, r := range w.Reports {
		add("INSERT INTO report VALUES ($1, $2, $3, $4) ON CONFLICT (experiment, arm, number) DO NOTHING",
			w.ID, r.Arm, r.Number, bytesOf(r.Data))
	}
	for _, t := range w.Totals {
		add("INSERT INTO total VALUES ($1, $2, $3, $4) ON CONFLICT (experiment, arm, number) DO UPDATE SET "+
			"data = excluded.data", w.ID, t.Arm, t.Number, bytesOf(t.Data))
	}
	if len(w.Units) > 0 {
		add("INSERT INTO assignment (experiment, units) VALUES ($1, $2)", w.ID, w.Units)
	}
	for _, h := range w.Hours {
		add("INSERT INTO traffic VALUES ($1, $2, $3) ON CONFLICT (experiment, hour) DO UPDATE SET "+
			"decisions = excluded.decisions", w.ID, h.At, bytesOf(h.Decisions))
	}
	for i, line := range w.Lines {
		add("INSERT INTO release SELECT $1, $2, $3 WHERE $2 = "+linesOf, w.ID, w.Number+i, line)
	}
}

// tables read what is stored.
type tables struct {
	reading *sql.DB
	bare    bool // it is read as it is, and has no table of totals
}

// held says whether term is still the last.
func (s tables) held(ctx context.Context, term int64) error {
	var last int64
	err := s.reading.QueryRowContext(ctx, "SELECT term FROM writer").Scan(&last)
	if err == nil && last != term {
		err = ErrFenced
	}
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

// Load implements Store.
func (s tables) Load(ctx context.Context, id int64) (Stored, error) {
	out, err := s.load(ctx, id)
	if err != nil {
		return Stored{}, fmt.Errorf("store: experiment %d: %w", id, err)
	}
	return out, nil
}

func (s tables) load(ctx context.Context, id int64) (out Stored, err error) {
	// so that all is of one moment
	tx, err := s.reading.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		return out, err
	}
	defer func() { _ = tx.Rollback() }()
	if err := tx.QueryRowContext(ctx, "SELECT plan, "+linesOf+" FROM experiment WHERE id = $1", id).Scan(&out.Plan, &out.Lines); err != nil {
		return out, err
	}
	each := func(query string, row func(rows *sql.Rows) error) {
		if err == nil {
			err = eachOf(ctx, tx, row, query, id)
		}
	}
	each("SELECT arm, head, issued, asked, gone, runs FROM arm WHERE experiment = $1 ORDER BY arm",
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
	each("SELECT arm, start, stop, cut, settles, sum, more FROM segment WHERE experiment = $1 ORDER BY arm, start",
		func(rows *sql.Rows) error {
			var g Segment
			var more []byte
			err := rows.Scan(&g.Arm, &g.Start, &g.End, &g.Cut, &g.Settles, &g.Sum, &more)
			g.More = string(more)
			out.Segments = append(out.Segments, g)
			return err
		})
	each("SELECT arm, start, part, numbers FROM redeemed WHERE experiment = $1 ORDER BY arm, start, part",
		func(rows *sql.Rows) error {
			var p Part
			err := rows.Scan(&p.Arm, &p.Start, &p.Number, &p.Redeemed)
			out.Parts = append(out.Parts, p)
			return err
		})
	if !s.bare {
		each("SELECT arm, number, data FROM total WHERE experiment = $1 ORDER BY arm, number", func(rows *sql.Rows) error {
			var t Total
			err := rows.Scan(&t.Arm, &t.Number, &t.Data)
			out.Totals = append(out.Totals, t)
			return err
		})
	}
	each("SELECT start, data FROM event WHERE experiment = $1 ORDER BY start", func(rows *sql.Rows) error {
		var v Events
		err := rows.Scan(&v.Start, &v.Data)
		out.Events = append(out.Events, v)
		return err
	})
	each("SELECT units FROM assignment WHERE experiment = $1 ORDER BY block", func(rows *sql.Rows) error {
		var units []byte
		err := rows.Scan(&units)
		out.Units = append(out.Units, units)
		return err
	})
	each("SELECT hour, decisions FROM traffic WHERE experiment = $1 ORDER BY hour", func(rows *sql.Rows) error {
		var h Hour
		err := rows.Scan(&h.At, &h.Decisions)
		out.Hours = append(out.Hours, h)
		return err
	})
	return out, err
}

// linesAtOnce is how many lines are read at once.
const linesAtOnce = 256

// Lines implements Store. No transaction is open while whoever reads has a line: a slow one, whom
// anybody may be where an experiment is public, would keep the log from being cut, and the writer
// waiting for it.
func (s tables) Lines(ctx context.Context, id int64, from int) iter.Seq2[[]byte, error] {
	return inParts(from, func(from int) ([][]byte, error) {
		return s.lines(ctx, "SELECT line FROM release WHERE experiment = $1 AND batch >= $2 ORDER BY batch "+
			"LIMIT $3", id, from, linesAtOnce)
	})
}

// unitsAtOnce is how many blocks of assignments are read at once.
const unitsAtOnce = 64

// Units implements Store. As with Lines, no transaction is open while whoever reads has one.
func (s tables) Units(ctx context.Context, id int64) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for after, more := int64(-1), true; more; {
			var blocks [][]byte
			err := s.each(ctx, func(rows *sql.Rows) error {
				var units []byte
				err := rows.Scan(&after, &units)
				blocks = append(blocks, units)
				return err
			}, "SELECT block, units FROM assignment WHERE experiment = $1 AND block > $2 ORDER BY block LIMIT $3",
				id, after, unitsAtOnce)
			if err != nil {
				yield(nil, fmt.Errorf("store: %w", err))
				return
			}
			for _, units := range blocks {
				if !yield(units, nil) {
					return
				}
			}
			more = len(blocks) == unitsAtOnce
		}
	}
}

// Heads implements Store.
func (s tables) Heads(ctx context.Context) (Heads, error) {
	out, err := s.heads(ctx)
	if err != nil {
		return Heads{}, fmt.Errorf("store: %w", err)
	}
	return out, nil
}

func (s tables) heads(ctx context.Context) (out Heads, err error) {
	tx, err := s.reading.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		return out, err
	}
	defer func() { _ = tx.Rollback() }()
	var secret []byte
	if err := tx.QueryRowContext(ctx, "SELECT secret FROM writer").Scan(&secret); err != nil {
		return out, err
	}
	if len(secret) != len(out.Secret) {
		return out, errSecret
	}
	out.Secret = [32]byte(secret)
	if err := eachOf(ctx, tx, func(rows *sql.Rows) error {
		var r Record
		err := rows.Scan(&r.ID, &r.Name, &r.Data)
		out.Keys = append(out.Keys, r)
		return err
	}, "SELECT id, name, data FROM key ORDER BY id"); err != nil {
		return out, err
	}
	return out, eachOf(ctx, tx, func(rows *sql.Rows) error {
		var h Head
		err := rows.Scan(&h.ID, &h.Name, &h.Data, &h.Plan, &h.Lines)
		out.Experiments = append(out.Experiments, h)
		return err
	}, "SELECT e.id, e.name, e.data, e.plan, (SELECT coalesce(max(batch), -1) + 1 FROM release WHERE experiment = e.id) "+
		"FROM experiment e ORDER BY e.id")
}

var errSecret = errors.New("its secret is damaged")

// A querier is a database or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// each calls row for each row of a query.
func (s tables) each(ctx context.Context, row func(*sql.Rows) error, query string, args ...any) error {
	return eachOf(ctx, s.reading, row, query, args...)
}

func eachOf(ctx context.Context, q querier, row func(*sql.Rows) error, query string, args ...any) error {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// reportsAtOnce is how many reports are read at once.
const reportsAtOnce = 256

// Reports implements Store. As with Lines, no transaction is open while whoever reads has one.
func (s tables) Reports(ctx context.Context, id int64, arm, start, end int) iter.Seq2[Hidden, error] {
	return func(yield func(Hidden, error) bool) {
		for from := start; ; {
			some, err := s.reports(ctx, id, arm, from, end)
			for _, r := range some {
				if from = r.Number + 1; !yield(r, nil) {
					return
				}
			}
			if err != nil {
				yield(Hidden{}, fmt.Errorf("store: %w", err))
				return
			}
			if len(some) < reportsAtOnce {
				return
			}
		}
	}
}

func (s tables) reports(ctx context.Context, id int64, arm, from, end int) (out []Hidden, err error) {
	err = s.each(ctx, func(rows *sql.Rows) error {
		r := Hidden{Arm: arm}
		err := rows.Scan(&r.Number, &r.Data)
		out = append(out, r)
		return err
	}, "SELECT number, data FROM report WHERE experiment = $1 AND arm = $2 AND number >= $3 AND number < $4 "+
		"ORDER BY number LIMIT $5", id, arm, from, end, reportsAtOnce)
	return out, err
}

// Audit implements Store. Lines are never taken out, so that their numbers have no gaps.
func (s tables) Audit(ctx context.Context, from int) iter.Seq2[[]byte, error] {
	return inParts(from, func(from int) ([][]byte, error) {
		return s.lines(ctx, "SELECT text FROM audit WHERE line > $1 ORDER BY line LIMIT $2", from, linesAtOnce)
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
func (s tables) lines(ctx context.Context, query string, args ...any) (out [][]byte, err error) {
	err = s.each(ctx, func(rows *sql.Rows) error {
		var line []byte
		err := rows.Scan(&line)
		out = append(out, line)
		return err
	}, query, args...)
	return out, err
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
