package store

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
)

// A Memory is a disk that forgets when the process ends: for tests and for demonstrations, and what
// every other store is tested against. Its zero value is not one: use NewMemory.
type Memory struct {
	mu      sync.Mutex
	term    int64
	secret  [32]byte
	now     int64
	records map[int64]Record
	keys    map[int64]Record
	audit   [][]byte
	stored  map[int64]*kept
}

// kept is one experiment.
type kept struct {
	plan     []byte
	arms     map[int]Arm
	segments map[[2]int]Segment
	parts    map[[3]int]Part
	events   map[int]Events
	reports  map[[2]int]Hidden
	totals   map[[2]int]Total
	units    [][]byte
	lines    [][]byte
	hours    map[int64]Hour
}

// NewMemory returns an empty one.
func NewMemory() *Memory {
	m := &Memory{records: map[int64]Record{}, keys: map[int64]Record{}, stored: map[int64]*kept{}}
	_, _ = rand.Read(m.secret[:]) // never fails
	return m
}

// Open returns a store on the disk: several may be open, and the one that began last can write.
func (m *Memory) Open(context.Context) (Store, error) { return &memory{Memory: m}, nil }

type memory struct {
	*Memory
	mine int64
}

// Begin implements Store.
func (m *memory) Begin(_ context.Context, _ string) (Opened, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.term++
	m.mine = m.term
	out := Opened{Secret: m.secret, Now: m.now, Experiments: records(m.records), Keys: records(m.keys)}
	return out, nil
}

// Held implements Store.
func (m *memory) Held(context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mine != m.term {
		return fmt.Errorf("store: %w", ErrFenced)
	}
	return nil
}

func records(in map[int64]Record) []Record {
	return slices.SortedFunc(maps.Values(in), func(a, b Record) int { return cmp.Compare(a.ID, b.ID) })
}

// Load implements Store.
func (m *memory) Load(_ context.Context, id int64) (Stored, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.stored[id]
	if k == nil {
		return Stored{}, fmt.Errorf("store: experiment %d is not there", id)
	}
	out := Stored{Plan: k.plan, Lines: len(k.lines), Units: slices.Clone(k.units)}
	out.Arms = slices.SortedFunc(maps.Values(k.arms), func(a, b Arm) int { return cmp.Compare(a.Arm, b.Arm) })
	out.Segments = slices.SortedFunc(maps.Values(k.segments), func(a, b Segment) int {
		return cmp.Or(cmp.Compare(a.Arm, b.Arm), cmp.Compare(a.Start, b.Start))
	})
	out.Parts = slices.SortedFunc(maps.Values(k.parts), func(a, b Part) int {
		return cmp.Or(cmp.Compare(a.Arm, b.Arm), cmp.Compare(a.Start, b.Start), cmp.Compare(a.Number, b.Number))
	})
	out.Totals = slices.SortedFunc(maps.Values(k.totals), func(a, b Total) int {
		return cmp.Or(cmp.Compare(a.Arm, b.Arm), cmp.Compare(a.Number, b.Number))
	})
	out.Events = slices.SortedFunc(maps.Values(k.events), func(a, b Events) int {
		return cmp.Compare(a.Start, b.Start)
	})
	out.Hours = slices.SortedFunc(maps.Values(k.hours), func(a, b Hour) int { return cmp.Compare(a.At, b.At) })
	return out, nil
}

// Lines implements Store.
func (m *memory) Lines(_ context.Context, id int64, from int) iter.Seq2[[]byte, error] {
	m.mu.Lock()
	defer m.mu.Unlock()
	if k := m.stored[id]; k != nil {
		return each(k.lines, from)
	}
	return each(nil, 0)
}

// Units implements Store.
func (m *memory) Units(_ context.Context, id int64) iter.Seq2[[]byte, error] {
	m.mu.Lock()
	defer m.mu.Unlock()
	if k := m.stored[id]; k != nil {
		return each(slices.Clone(k.units), 0)
	}
	return each(nil, 0)
}

// Heads implements Store.
func (m *memory) Heads(context.Context) (Heads, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := Heads{Secret: m.secret, Keys: records(m.keys)}
	for _, r := range records(m.records) {
		h := Head{Record: r}
		if k := m.stored[r.ID]; k != nil {
			h.Plan, h.Lines = bytes.Clone(k.plan), len(k.lines)
		}
		out.Experiments = append(out.Experiments, h)
	}
	return out, nil
}

// Reports implements Store.
func (m *memory) Reports(_ context.Context, id int64, arm, start, end int) iter.Seq2[Hidden, error] {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []Hidden
	if k := m.stored[id]; k != nil {
		for at, r := range k.reports {
			if at[0] == arm && at[1] >= start && at[1] < end {
				out = append(out, r)
			}
		}
	}
	slices.SortFunc(out, func(a, b Hidden) int { return cmp.Compare(a.Number, b.Number) })
	return func(yield func(Hidden, error) bool) {
		for _, r := range out {
			r.Data = bytes.Clone(r.Data)
			if !yield(r, nil) {
				return
			}
		}
	}
}

// Audit implements Store.
func (m *memory) Audit(_ context.Context, from int) iter.Seq2[[]byte, error] {
	m.mu.Lock()
	defer m.mu.Unlock()
	return each(m.audit, from)
}

// each is the lines of now from one on.
func each(lines [][]byte, from int) iter.Seq2[[]byte, error] {
	lines = lines[min(from, len(lines)):]
	return func(yield func([]byte, error) bool) {
		for _, line := range lines {
			if !yield(bytes.Clone(line), nil) {
				return
			}
		}
	}
}

// Commit implements Store.
func (m *memory) Commit(_ context.Context, c Commit) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mine != m.term {
		return fmt.Errorf("store: %w", ErrFenced)
	}
	for _, w := range c.Writes { // first what can fail, as all of it is written or nothing
		if err := m.check(w); err != nil {
			return err
		}
	}
	m.now = c.Now
	for _, w := range c.Writes {
		m.write(w)
	}
	for _, k := range c.Keys {
		m.keys[k.ID] = k
	}
	m.audit = append(m.audit, c.Audit...)
	return nil
}

func (m *memory) check(w Write) error {
	if w.Record != nil {
		for _, r := range m.records {
			if r.Name == w.Record.Name && r.ID != w.ID {
				return fmt.Errorf("store: the name of experiment %d is that of %d", w.ID, r.ID)
			}
		}
	}
	lines := 0
	if k := m.stored[w.ID]; k != nil {
		lines = len(k.lines)
	}
	if len(w.Lines) > 0 && lines != w.Number {
		return fmt.Errorf("store: line %d of experiment %d does not follow line %d", w.Number, w.ID,
			lines-1)
	}
	return nil
}

func (m *memory) write(w Write) {
	k := m.stored[w.ID]
	if k == nil {
		k = &kept{arms: map[int]Arm{}, segments: map[[2]int]Segment{}, parts: map[[3]int]Part{},
			events: map[int]Events{}, reports: map[[2]int]Hidden{}, totals: map[[2]int]Total{},
			hours: map[int64]Hour{}}
		m.stored[w.ID] = k
	}
	if w.Record != nil {
		m.records[w.ID] = Record{w.ID, w.Record.Name, bytes.Clone(w.Record.Data)}
	}
	if w.Plan != nil {
		k.plan = bytes.Clone(w.Plan)
	}
	for _, t := range w.Taken {
		k.drop(func(arm, start int) bool { return arm == t.Arm && start >= t.Start && start < t.End })
	}
	if w.DropSums {
		k.drop(func(int, int) bool { return true })
	}
	if w.DropUnits {
		k.units = nil
	}
	for _, a := range w.Arms {
		a.Runs = slices.Clone(a.Runs)
		k.arms[a.Arm] = a
	}
	for _, s := range w.Segments {
		k.segments[[2]int{s.Arm, s.Start}] = s
	}
	for _, p := range w.Parts {
		if p.Number == 0 {
			maps.DeleteFunc(k.parts, func(at [3]int, _ Part) bool { return at[0] == p.Arm && at[1] == p.Start })
		}
		p.Redeemed = bytes.Clone(p.Redeemed)
		k.parts[[3]int{p.Arm, p.Start, p.Number}] = p
	}
	for _, v := range w.Events {
		k.events[v.Start] = Events{v.Start, bytes.Clone(v.Data)}
	}
	for _, r := range w.Reports {
		at := [2]int{r.Arm, r.Number}
		if _, there := k.reports[at]; !there {
			k.reports[at] = Hidden{r.Arm, r.Number, bytes.Clone(r.Data)}
		}
	}
	for _, t := range w.Totals {
		k.totals[[2]int{t.Arm, t.Number}] = Total{t.Arm, t.Number, bytes.Clone(t.Data)}
	}
	if len(w.Units) > 0 {
		k.units = append(k.units, bytes.Clone(w.Units))
	}
	for _, h := range w.Hours {
		h.Decisions = bytes.Clone(h.Decisions)
		k.hours[h.At] = h
	}
	for _, line := range w.Lines {
		k.lines = append(k.lines, bytes.Clone(line))
	}
}

// drop destroys segments with their parts, events, reports and totals.
func (k *kept) drop(gone func(arm, start int) bool) {
	maps.DeleteFunc(k.segments, func(at [2]int, _ Segment) bool { return gone(at[0], at[1]) })
	maps.DeleteFunc(k.parts, func(at [3]int, _ Part) bool { return gone(at[0], at[1]) })
	maps.DeleteFunc(k.reports, func(at [2]int, _ Hidden) bool { return gone(at[0], at[1]) })
	maps.DeleteFunc(k.totals, func(at [2]int, _ Total) bool { return gone(at[0], at[1]) })
	maps.DeleteFunc(k.events, func(start int, _ Events) bool { return gone(0, start) })
}

// Close implements Store.
func (m *memory) Close() error { return nil }
