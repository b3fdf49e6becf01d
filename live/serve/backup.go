package serve

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/live/serve/store"
)

// A backup has declarations, transcripts, keys and assignments: what was released, and what follows from
// decisions and the clock. It has no sum that was not released, and says of no decision whether its reward
// came; neither do its size, its order or where it is cut. What could tell of a reward is left out or made anew:
//
//   - of the batch that is out, all but the hash of the last line: the rest has the noise of trees;
//   - counts of commits and the time of the last one, which may have been a reward's;
//   - how the store cuts assignments into blocks, which is by commits: here they are in the order of their tags;
//   - decisions of the last hour. Those of the last 100 ms by the service's time are durable only if somebody
//     reported since, and that time may be behind.
//
// So the backups of two services that differ in one person's reward are the same bytes until that is released.
// What is restored is read and stopped: rewards are not in it, and what was released since would be again.
//
// A backup is backupMagic and frames: what a frame is (a byte), its length (uvarint), its bytes. The last is
// the SHA-256 of all before it, and says that the backup is whole.

const backupMagic = "SOTTO BACKUP 1\n"

// What a frame is.
const (
	frameStart byte = 'S' // a backupStart
	frameKey   byte = 'K' // a backupKey
	frameOf    byte = 'X' // an experiment: a backupHead
	frameLine  byte = 'L' // the next line of its transcript
	frameUnits byte = 'U' // assignments of it
	frameEnd   byte = 'E' // the hash
)

// maxFrame is how long a frame may be: a line with the sums of vectors of 2000 dimensions is shorter.
const maxFrame = 1 << 28

// unitsOfFrame are how many assignments a frame has.
const unitsOfFrame = 1024

// settled is how old a decision is by the clock that a backup has. Decisions have the service's time, which can be
// behind the clock by as much as passes for agreement; by more, the log says so, and no backup should be made.
const settled = agree + time.Minute

// ErrBackup is matched by the error for what is no backup, or not a whole one.
var ErrBackup = errors.New("this is no backup of Sotto, or it is damaged")

// ErrHelperStore is matched where a store is a helper's, which must never be restored.
var ErrHelperStore = errors.New("this is the store of a helper: one that is restored would draw noise for a second time")

type backupStart struct {
	Made   time.Time `json:"made"`
	Secret string    `json:"secret"` // of the store, in hex
}

type backupKey struct {
	ID   int64  `json:"id"`
	Name string `json:"name"`
	Key  []byte `json:"key"` // its hash and scopes, as the service writes them
}

type backupHead struct {
	ID     int64           `json:"id"`
	Name   string          `json:"name"`
	Record json.RawMessage `json:"record"`
	Tip    string          `json:"tip,omitempty"` // the hash of its last line
}

// Backup writes what is in a store, which may be one that somebody writes to. The time is the clock's.
func Backup(ctx context.Context, st store.Store, known catalog.Catalog, now time.Time, to io.Writer) error {
	if err := backup(ctx, st, known, now, to, nil); err != nil {
		return fmt.Errorf("serve: backup: %w", err)
	}
	return nil
}

// backup is Backup; broken, of tests, adds what must not be there.
func backup(ctx context.Context, st store.Store, known catalog.Catalog, now time.Time, to io.Writer,
	broken func(id int64) []byte) error {
	heads, err := st.Heads(ctx)
	if err != nil {
		return err
	}
	out := frames{to: bufio.NewWriterSize(to, 1<<16), sum: sha256.New()}
	out.write([]byte(backupMagic))
	out.object(frameStart, backupStart{now.UTC(), hex.EncodeToString(heads.Secret[:])})
	for _, k := range heads.Keys {
		out.object(frameKey, backupKey{k.ID, k.Name, k.Data})
	}
	for _, h := range heads.Experiments {
		if err := out.experiment(ctx, st, known, h, now.Add(-settled).UnixMilli()); err != nil {
			return fmt.Errorf("experiment %q: %w", h.Name, err)
		}
		if broken != nil {
			out.frame(frameUnits, broken(h.ID))
		}
	}
	out.frame(frameEnd, out.sum.Sum(nil))
	return cmp.Or(out.err, out.to.Flush())
}

// frames are written until the first error.
type frames struct {
	to  *bufio.Writer
	sum hash.Hash
	err error
}

func (f *frames) write(b []byte) {
	f.sum.Write(b)
	if f.err == nil {
		_, f.err = f.to.Write(b)
	}
}

func (f *frames) frame(kind byte, b []byte) {
	f.write(binary.AppendUvarint([]byte{kind}, uint64(len(b))))
	f.write(b)
}

func (f *frames) object(kind byte, v any) {
	b, err := json.Marshal(v)
	if f.frame(kind, b); f.err == nil {
		f.err = err
	}
}

// experiment writes one, with its decisions until a time.
func (f *frames) experiment(ctx context.Context, st store.Store, known catalog.Catalog, h store.Head, until int64) error {
	r, form, err := formOf(known, h.Name, h.Data)
	if err != nil {
		return err
	}
	// A session's sum may not be released, and what was to come, or was about to be told, does not.
	r.Cohorts, r.Off, r.Changes, r.Harms, r.Told = nil, nil, nil, nil, false
	plan, err := readPlan(h.Plan)
	if err != nil {
		return err
	}
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	f.object(frameOf, backupHead{h.ID, h.Name, data, plan.Tip})
	n := 0
	for line, err := range st.Lines(ctx, h.ID, 0) {
		if n++; n > h.Lines { // which was said since
			break
		}
		if err != nil {
			return err
		}
		f.frame(frameLine, line)
	}
	type kept struct {
		assignment
		of epochTag
	}
	units := map[tag]kept{}
	for block, err := range st.Units(ctx, h.ID) {
		if err == nil {
			err = form.read(block, func(t tag, u assignment, e epochTag, _ *event) {
				// a unit that was erased, a count of a person and what came of an offer are no assignments
				if u.propensity > 0 && u.arm < personArm && u.decided() <= until {
					units[t] = kept{u, e}
				}
			})
		}
		if err != nil {
			return err
		}
	}
	tags := slices.SortedFunc(maps.Keys(units), func(a, b tag) int { return bytes.Compare(a[:], b[:]) })
	for some := range slices.Chunk(tags, unitsOfFrame) {
		var block []byte
		for _, t := range some {
			block = form.append(block, t, units[t].assignment, units[t].of, event{}, false)
		}
		f.frame(frameUnits, block)
	}
	return f.err
}

// decided is when an assignment was made, or a little later: a second where that is known, else the end of its window,
// or of the time in which it may be activated.
func (u assignment) decided() int64 {
	switch {
	case u.open > 0:
		return u.deadline - 1000*int64(u.open-1)
	case u.by != 0:
		return u.by
	}
	return u.deadline
}

// formOf is the record of an experiment and how its units are stored.
func formOf(known catalog.Catalog, name string, data []byte) (r record, f unitForm, err error) {
	if err := json.Unmarshal(data, &r); err != nil {
		return r, f, err
	}
	if len(r.Declaration) == 0 {
		return r, f, ErrHelperStore
	}
	x, err := decl.Reader{Catalog: known}.Parse(name, r.Declaration)
	if err != nil {
		return r, f, err
	}
	if x.Name != name {
		return r, f, fmt.Errorf("it is the declaration of %q", x.Name)
	}
	f = unitForm{timed: r.Timed || len(x.Events()) > 0, events: x.Contextual != nil}
	if f.events {
		m, err := x.Mapper()
		if err != nil {
			return r, f, err
		}
		f.dim, f.rules = m.Dim(), len(x.Contextual.Rules)
	}
	return r, f, nil
}

// Restore fills a store with what a backup has. Each experiment that ran, or was a draft, has failed there. Known are the
// policies that declarations may name.
func Restore(ctx context.Context, from io.Reader, known catalog.Catalog, into store.Fill) error {
	in := &unframed{from: bufio.NewReaderSize(from, 1<<16), sum: sha256.New(), known: known}
	start, err := in.start()
	if err != nil {
		return err
	}
	secret, err := hex.DecodeString(start.Secret)
	if err != nil || len(secret) != 32 {
		return fmt.Errorf("%w: its secret is not one of 32 bytes", ErrBackup)
	}
	return into(ctx, [32]byte(secret), in.commits(start.Made.UnixMilli()))
}

// An unframed is a backup that is read.
type unframed struct {
	from  *bufio.Reader
	sum   hash.Hash
	known catalog.Catalog
}

func (f *unframed) ReadByte() (byte, error) {
	b, err := f.from.ReadByte()
	if err == nil {
		f.sum.Write([]byte{b})
	}
	return b, err
}

// take reads so many bytes. What says that it is long and is not takes no memory.
func (f *unframed) take(n int64) ([]byte, error) {
	var b bytes.Buffer
	if _, err := io.CopyN(io.MultiWriter(&b, f.sum), f.from, n); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// next reads a frame. Before is the hash of all before it.
func (f *unframed) next() (kind byte, b, before []byte, err error) {
	before = f.sum.Sum(nil)
	if kind, err = f.ReadByte(); err != nil {
		return 0, nil, nil, torn(err)
	}
	n, err := binary.ReadUvarint(f)
	if err == nil && n > maxFrame {
		return 0, nil, nil, fmt.Errorf("%w: a frame has %d bytes, must have at most %d", ErrBackup, n, maxFrame)
	}
	if err == nil {
		b, err = f.take(int64(n))
	}
	return kind, b, before, torn(err)
}

// torn is the error of a backup that ends too early, or cannot be read.
func torn(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w: it ends before its end", ErrBackup)
	}
	return fmt.Errorf("%w: %w", ErrBackup, err)
}

func (f *unframed) start() (out backupStart, err error) {
	magic, err := f.take(int64(len(backupMagic)))
	if err != nil || string(magic) != backupMagic {
		return out, fmt.Errorf("%w: it does not begin with %q", ErrBackup, backupMagic)
	}
	kind, b, _, err := f.next()
	if err == nil && kind != frameStart {
		err = fmt.Errorf("%w: its first frame is %q", ErrBackup, kind)
	}
	if err == nil {
		err = asObject(b, &out)
	}
	return out, err
}

// asObject reads a frame that is an object of JSON.
func asObject(b []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		return fmt.Errorf("%w: a frame is not what it says: %w", ErrBackup, err)
	}
	if _, err := d.Token(); err != io.EOF {
		return fmt.Errorf("%w: a frame has more than an object", ErrBackup)
	}
	return nil
}

// commits are what writes all that follows the start. The hash comes last: who fills a store with them
// must not have it before.
func (f *unframed) commits(now int64) iter.Seq2[store.Commit, error] {
	return func(yield func(store.Commit, error) bool) {
		of, lines, form := backupHead{ID: -1}, 0, unitForm{}
		for {
			kind, b, before, err := f.next()
			c := store.Commit{Now: now}
			switch {
			case err != nil:
			case kind == frameEnd:
				if _, more := f.from.ReadByte(); !bytes.Equal(b, before) || more != io.EOF {
					yield(c, fmt.Errorf("%w: its hash is another", ErrBackup))
				}
				return
			case kind == frameKey:
				var k backupKey
				err = asObject(b, &k)
				c.Keys = []store.Record{{ID: k.ID, Name: k.Name, Data: k.Key}}
			case kind == frameOf:
				of, lines = backupHead{}, 0
				var w store.Write
				if err = asObject(b, &of); err == nil {
					w, form, err = of.write(f.known)
				}
				c.Writes = []store.Write{w}
			case of.ID < 0:
				err = fmt.Errorf("%w: a frame %q is of no experiment", ErrBackup, kind)
			case kind == frameLine:
				c.Writes = []store.Write{{ID: of.ID, Lines: [][]byte{b}, Number: lines}}
				lines++
			case kind == frameUnits:
				if form.read(b, func(tag, assignment, epochTag, *event) {}) != nil {
					err = fmt.Errorf("%w: experiment %q: %w", ErrBackup, of.Name, errUnits)
				}
				c.Writes = []store.Write{{ID: of.ID, Units: b}}
			default:
				err = fmt.Errorf("%w: a frame is %q", ErrBackup, kind)
			}
			if !yield(c, err) || err != nil {
				return
			}
		}
	}
}

// write is what brings the experiment back, with nothing that goes on.
func (h backupHead) write(known catalog.Catalog) (w store.Write, form unitForm, err error) {
	if h.ID < 0 || h.Name == "" {
		return w, form, fmt.Errorf("%w: an experiment has no name or no number", ErrBackup)
	}
	r, form, err := formOf(known, h.Name, h.Record)
	if err != nil {
		return w, form, fmt.Errorf("%w: experiment %q: %w", ErrBackup, h.Name, err)
	}
	if r.Told = r.Ended > 0; r.State.plays() || r.State == Draft {
		r.State, r.Reason = Failed, errOlder.Error()
	}
	data, err := json.Marshal(r)
	if err != nil {
		return w, form, err
	}
	plan, err := json.Marshal(batchOut{Tip: h.Tip})
	return store.Write{ID: h.ID, Record: &store.Record{ID: h.ID, Name: h.Name, Data: data}, Plan: plan}, form, err
}
