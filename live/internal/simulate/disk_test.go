package simulate

import (
	"cmp"
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/live/serve/store"
)

// A process has an engine. One that is dead writes and reads nothing more, however long it lives on.
type process struct {
	e    *serve.Engine
	all  *serve.Shares // e is one of them; nil if it is alone
	dead atomic.Bool
	cut  atomic.Bool // it does not reach its disk
	// of a simulation
	name    string
	ahead   atomic.Int64 // of the others' clocks, in milliseconds
	answers http.Handler
	up      atomic.Pointer[serve.Engine] // e, for who commits; nil while it begins
}

// A disk is what all processes of a trace write to, in memory. It can fail, or take the process with it.
type disk struct {
	mem    *store.Memory
	shared bool // by processes that watch each other
	parted bool // and see when one has closed it
	begun  func()
	begins atomic.Int64

	mu      sync.Mutex // of what follows
	records map[int64]store.Record
	keys    map[int64]store.Record
	now     int64
	loose   map[int64]bool // whose units were written anew, in no order
	term    int64
	commits int64
	address string
	writer  *process
	met     map[*process]time.Time // of an office: when each was there
	left    int                    // commits until what follows happens, if it is not 0
	rows    bool                   // of those with releases
	how     string                 // lost or written: the process dies; refused or unsure: it lives
	fired   bool

	// of a simulation
	unread  atomic.Int64                     // the line that cannot be read, counted from now; 0: none
	slow    atomic.Int64                     // how long the next commit takes, in nanoseconds
	latest  atomic.Pointer[process]          // who has begun last
	started func(p *process, o store.Opened) // is told of who begins
	watch   func(p *process, c store.Commit) // is told of what is durable
	upset   time.Time                        // when it failed last
	older   bool                             // the disk has gone back, and nobody has begun since
	log     []store.Commit                   // all of them, where it may go back
	logs    bool
}

func newDisk() *disk {
	return &disk{mem: store.NewMemory(), begun: func() {}, records: map[int64]store.Record{},
		keys: map[int64]store.Record{}, loose: map[int64]bool{}, met: map[*process]time.Time{}}
}

// newMemory has the same secret each time, so that one can be made again from what was written to another.
func newMemory() *store.Memory {
	before := crand.Reader
	crand.Reader = rand.NewChaCha8([32]byte{3})
	defer func() { crand.Reader = before }()
	return store.NewMemory()
}

// goBack loses the last commits, which were acknowledged: the disk has lied, or a backup was put in its place.
// Whoever begins next is told so, as the stores tell it by what they keep beside.
func (d *disk) goBack(ctx context.Context, n int) error {
	d.log = d.log[:max(0, len(d.log)-n)]
	d.mem, d.older = newMemory(), true
	s, err := d.mem.Open(ctx)
	if err == nil {
		_, err = s.Begin(ctx, "a backup")
	}
	for _, c := range d.log {
		if err == nil {
			err = s.Commit(ctx, c)
		}
	}
	return err
}

// opener opens the disk for a process.
func (d *disk) opener(p *process) func(context.Context) (store.Store, error) {
	return func(ctx context.Context) (store.Store, error) {
		if p.dead.Load() || p.cut.Load() {
			return nil, errDisk
		}
		s, err := d.mem.Open(ctx)
		c := &connection{s, d, p}
		if d.shared {
			return &sharing{connection: c}, err
		}
		return c, err
	}
}

var errDisk = errors.New("the disk does not answer")

type connection struct {
	store.Store
	d *disk
	p *process
}

func (c *connection) gone() error {
	switch {
	case c.p.dead.Load():
		return fmt.Errorf("dead: %w", store.ErrFenced)
	case c.p.cut.Load():
		return errDisk
	}
	return nil
}

func (c *connection) Begin(ctx context.Context, holder string) (store.Opened, error) {
	if err := c.gone(); err != nil {
		return store.Opened{}, err
	}
	c.d.begun()
	c.d.begins.Add(1)
	o, err := c.Store.Begin(ctx, holder)
	if err == nil {
		o.Older, c.d.older = c.d.older, false
		c.d.latest.Store(c.p)
		if c.d.started != nil {
			c.d.started(c.p, o)
		}
	}
	return o, err
}

func (c *connection) Held(ctx context.Context) error {
	if err := c.gone(); err != nil {
		return err
	}
	return c.Store.Held(ctx)
}

func (c *connection) Commit(ctx context.Context, w store.Commit) error {
	d := c.d
	if slow := time.Duration(d.slow.Swap(0)); slow > 0 {
		time.Sleep(slow)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := c.gone(); err != nil {
		d.upset = time.Now()
		return err
	}
	how := ""
	if d.left > 0 && len(w.Writes) > 0 && (!d.rows || slices.ContainsFunc(w.Writes, taken)) {
		if d.left--; d.left == 0 {
			how, d.fired, d.upset = d.how, true, time.Now()
		}
	}
	switch how {
	case "lost":
		c.p.dead.Store(true)
		return c.gone()
	case "refused":
		return errDisk
	}
	if err := c.Store.Commit(ctx, w); err != nil {
		return err
	}
	d.note(w)
	if d.logs {
		d.log = append(d.log, w)
	}
	if d.watch != nil {
		d.watch(c.p, w)
	}
	switch how {
	case "written":
		c.p.dead.Store(true)
		return c.gone()
	case "unsure":
		return errDisk
	}
	return nil
}

func taken(w store.Write) bool { return len(w.Taken) > 0 }

// Reports come one arm after the other: sums of many arms are asked for at once.
func (c *connection) Reports(ctx context.Context, id int64, arm, start,
	end int) iter.Seq2[store.Hidden, error] {
	of := c.Store.Reports(ctx, id, arm, start, end)
	return func(yield func(store.Hidden, error) bool) {
		time.Sleep(time.Duration(1+arm) * 3 * time.Millisecond)
		of(yield)
	}
}

// Lines may have one that cannot be read.
func (c *connection) Lines(ctx context.Context, id int64, from int) iter.Seq2[[]byte, error] {
	of := c.Store.Lines(ctx, id, from)
	return func(yield func([]byte, error) bool) {
		for line, err := range of {
			if c.d.unread.Load() > 0 && c.d.unread.Add(-1) == 0 {
				line, err = nil, errDisk
			}
			if !yield(line, err) || err != nil {
				return
			}
		}
	}
}

// note keeps what cannot be read without taking the store over.
func (d *disk) note(c store.Commit) {
	d.now = c.Now
	d.commits++
	for _, w := range c.Writes {
		if w.Record != nil {
			d.records[w.ID] = store.Record{ID: w.ID, Name: w.Record.Name, Data: slices.Clone(w.Record.Data)}
		}
		if w.DropUnits {
			d.loose[w.ID] = len(w.Units) > 0
		}
	}
	for _, k := range c.Keys {
		d.keys[k.ID] = k
	}
}

// sharing is a connection of one who sees who writes.
type sharing struct {
	*connection
	claimed bool
}

func (s *sharing) Look(context.Context) (store.Writer, error) {
	if s.p.dead.Load() || s.p.cut.Load() {
		return store.Writer{}, errDisk
	}
	d := s.d
	d.mu.Lock()
	defer d.mu.Unlock()
	return store.Writer{Term: d.term, Commits: d.commits, Address: d.address, Database: "guard",
		Gone: d.writer == nil}, nil
}

func (s *sharing) Claim(ctx context.Context, after store.Writer, holder, address string) (store.Opened, error) {
	d := s.d
	d.mu.Lock()
	defer d.mu.Unlock()
	if s.p.cut.Load() {
		return store.Opened{}, errDisk
	}
	if s.p.dead.Load() || after.Term != d.term {
		return store.Opened{}, fmt.Errorf("another: %w", store.ErrFenced)
	}
	d.term++
	d.commits++
	d.address, d.writer, s.claimed = address, s.p, true
	return s.Begin(ctx, holder)
}

// Close ends what the others see of it.
func (s *sharing) Close() error {
	d := s.d
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.parted && s.claimed && d.writer == s.p {
		d.writer = nil
	}
	return s.connection.Close()
}

// An office is the disk of a share that has what is so for all.
type office struct {
	*sharing
	w *world
}

// Meet implements store.Office.
func (o *office) Meet(context.Context, string) (store.Met, error) {
	if err := o.gone(); err != nil {
		return store.Met{}, err
	}
	met := store.Met{Shares: 2, Places: map[string]int{}}
	o.d.mu.Lock()
	o.d.met[o.p] = time.Now()
	for _, at := range o.d.met {
		if time.Since(at) < store.NodeFor {
			met.Nodes++
		}
	}
	o.d.mu.Unlock()
	for i, d := range []*disk{o.w.office, o.w.disk} {
		d.mu.Lock()
		for _, r := range d.records {
			met.Places[r.Name] = i
		}
		d.mu.Unlock()
	}
	return met, nil
}

// Leave implements store.Office.
func (o *office) Leave(context.Context, string) error {
	o.d.mu.Lock()
	defer o.d.mu.Unlock()
	delete(o.d.met, o.p)
	return nil
}

// dump writes all rows.
func (d *disk) dump(ctx context.Context, w io.Writer) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	s, err := d.mem.Open(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "rows at %d\n", d.now)
	byID := func(a, b store.Record) int { return cmp.Compare(a.ID, b.ID) }
	for _, k := range slices.SortedFunc(maps.Values(d.keys), byID) {
		fmt.Fprintf(w, "key %d %s %x\n", k.ID, k.Name, k.Data)
	}
	for text, err := range s.Audit(ctx, 0) {
		fmt.Fprintf(w, "audit %s %v\n", text, err)
	}
	for _, r := range slices.SortedFunc(maps.Values(d.records), byID) {
		fmt.Fprintf(w, "record %d %s %s\n", r.ID, r.Name, r.Data)
		in, err := s.Load(ctx, r.ID)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "plan %s\n%d lines\n", in.Plan, in.Lines)
		for text, err := range s.Lines(ctx, r.ID, 0) {
			fmt.Fprintf(w, "stored %s %v\n", text, err)
		}
		for _, a := range in.Arms {
			fmt.Fprintf(w, "arm %d head %d issued %d asked %d off %v", a.Arm, a.Head, a.Issued, a.Asked, a.Off)
			for _, r := range a.Runs {
				fmt.Fprintf(w, " run %d %x", r.From, r.Epoch)
			}
			fmt.Fprintln(w)
			for r, err := range s.Reports(ctx, r.ID, a.Arm, 0, math.MaxInt) {
				fmt.Fprintf(w, "report %d %d %x %v\n", r.Arm, r.Number, r.Data, err)
			}
		}
		for _, g := range in.Segments {
			fmt.Fprintf(w, "segment %d %d %d cut %d settles %d sum %d more %x\n", g.Arm, g.Start, g.End, g.Cut,
				g.Settles, g.Sum, g.More)
		}
		for _, p := range in.Parts {
			fmt.Fprintf(w, "part %d %d %d %x\n", p.Arm, p.Start, p.Number, p.Redeemed)
		}
		for _, e := range in.Events {
			fmt.Fprintf(w, "events %d %x\n", e.Start, e.Data)
		}
		for i, u := range in.Units {
			if i == 0 && d.loose[r.ID] {
				u = slices.Sorted(slices.Values(u))
			}
			fmt.Fprintf(w, "units %x\n", u)
		}
		for _, h := range in.Hours {
			fmt.Fprintf(w, "hour %d %x\n", h.At, h.Decisions)
		}
	}
	return nil
}
