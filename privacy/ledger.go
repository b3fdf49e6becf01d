package privacy

import (
	"errors"
	"fmt"
	"io"
)

// ErrValues is what values that are not finite numbers are refused with. They have been charged:
// see Ledger.Release.
var ErrValues = errors.New("released value is not a finite number")

// A Ledger prices and records releases, and is the only maker of Released values. The package
// comment says what its total proves and what it rests on. A Ledger is not safe for concurrent use.
type Ledger struct {
	cap      Budget // nil: none
	limit    price  // the cap, in its currency
	over     bool   // what was recorded is over the cap: read from a journal, or noted
	accounts []account
	// accounts have the numbers base+1, base+2, …: a number never means another mechanism
	base        int32
	byMechanism map[Mechanism]int32
	// cells are the slots 0, 1, 2, … that went through one mechanism only: nearly all. The
	// rest is in mixed.
	cells      []cell
	mixed      map[int][]cell
	running    []running            // of the slots that went through one continual mechanism
	others     map[[2]int64]running // of those in mixed, by slot and account
	total      *Loss                // nil: not known
	transcript io.Writer            // nil: none
	covers     string
	found
}

// An Option sets up a ledger.
type Option func(*Ledger)

// Covering says what is made of the releases and published, where that is more than the next
// action: see Ledger.Covers.
func Covering(what string) Option { return func(l *Ledger) { l.covers = what } }

// Covers is what the total protects a reward in: the releases and, since it is computed from them
// alone, all of this. Post-processing costs nothing.
func (l *Ledger) Covers() string {
	if l.covers == "" {
		return "the releases and all that is computed from them"
	}
	return l.covers
}

// NewLedger returns an empty ledger, without a cap unless there is an option that says so.
func NewLedger(options ...Option) *Ledger {
	l := &Ledger{}
	for _, o := range options {
		o(l)
	}
	return l
}

// Release charges m to the slot and seals the values that were released from it. Every sum of v
// counts as a release of this slot, and a one-shot mechanism is charged for each; a continual one
// is charged once a slot, and whatever it releases of the slot later is free, because its noise
// belongs to the slot. A mechanism that is nil, invalid or not of this package costs ∞.
//
// A release that would exceed the cap is refused with ErrBudget, and one with nothing in it or of a
// negative slot with another error; neither is recorded. Values that are not finite are refused
// with ErrValues and stay charged: the curator has drawn the noise, the refusal tells something
// about the draw, and drawing again would be another release.
func (l *Ledger) Release(slot int, m Mechanism, v *Values) (Released, error) {
	a := Account{l, l.find(m)}
	if slot >= len(l.running) { // nothing continual has been released of it
		return a.release(slot, v)
	}
	return a.Release(slot, v)
}

// ReleaseAll charges m to each of the slots and seals the values: sum i was released from slots[i].
// If the cap refuses one, none is recorded. Of a Sparse only what is new is charged: the sums, and
// the questions of a slot about which none was asked.
func (l *Ledger) ReleaseAll(slots []int, m Mechanism, v *Values) (Released, error) {
	return l.releaseAll(slots, m, v, l.transcript != nil)
}

func (l *Ledger) releaseAll(slots []int, m Mechanism, v *Values, write bool) (Released, error) {
	if v == nil || len(v.N) != len(v.Sum) || len(v.Sum) == 0 {
		return Released{}, malformed(v)
	}
	if len(slots) != len(v.Sum) {
		return Released{}, fmt.Errorf("ledger: %d slots for %d sums, must have one slot for "+
			"each sum", len(slots), len(v.Sum))
	}
	at := l.find(m)
	if l.follow(slots, at, v) {
		return Released{v}, nil
	}
	for _, s := range slots {
		if s < 0 {
			return Released{}, negative(s)
		}
	}
	if s, ok := m.(Sparse); ok && s.Validate() == nil {
		return l.releaseSparse(slots, s, v, write)
	}
	if l.cap != nil {
		if err := l.allowAll(slots, at); err != nil {
			return Released{}, err
		}
	}
	b := l.get(at)
	for i, s := range slots {
		if !b.continual {
			break
		}
		if err := l.grows(s, at, v, i, func(j int) bool { return slots[j] == s }); err != nil {
			return Released{}, err
		}
	}
	v.noises = b.noises
	for i, s := range slots {
		l.book(s, at, 1)
		if b.continual {
			l.remember(s, at, running{n: v.N[i], sum: v.Sum[i]})
		}
	}
	for _, x := range v.Sum {
		if x-x != 0 {
			return Released{}, notFinite(v)
		}
	}
	if write {
		return l.write(slots, at, v)
	}
	return Released{v}, nil
}

// Record charges m to the slot for an event that is to come and releases no values here: something
// to be published elsewhere. One that would exceed the cap is refused with ErrBudget, is not
// recorded, and must not happen; for what has happened there is Note.
func (l *Ledger) Record(slot int, m Mechanism) error {
	at := l.account(m)
	if err := l.allow(slot, at, 1); err != nil {
		return err
	}
	l.book(slot, at, 1)
	return nil
}

// Note is Record of what has happened already, by somebody else's doing or before there was a
// ledger: it is recorded whatever the cap. Beyond the cap the error matches ErrBudget, and nothing
// more is admitted.
func (l *Ledger) Note(slot int, m Mechanism) error {
	err := l.Record(slot, m)
	if errors.Is(err, ErrBudget) {
		l.book(slot, l.account(m), 1)
		l.over = true
		for i := range l.running { // what is paid for is looked at as well
			l.running[i].free, l.running[i].room = 0, 0
		}
	}
	return err
}

// Total is what any one record has lost: the maximum over slots of the sum within, in every currency.
func (l *Ledger) Total() Loss {
	if l.total == nil {
		var t Loss
		for i := range l.accounts {
			if a := &l.accounts[i]; a.charges > 0 {
				t = t.Max(a.cost().Times(a.charges))
			}
		}
		for _, cells := range l.mixed {
			t = t.Max(l.sum(cells))
		}
		l.total = &t
	}
	return *l.total
}

// Slot is what a record of this slot has lost.
func (l *Ledger) Slot(slot int) Loss { return l.sum(l.slot(slot)) }

// Reset forgets everything but the cap, for the next run of a simulation. The rewards of the next
// run must be new ones.
func (l *Ledger) Reset() {
	l.cells = l.cells[:0]
	clear(l.mixed)
	l.running = l.running[:0]
	clear(l.others)
	l.total, l.over = nil, false
	if len(l.accounts) > 256 { // keep prices of the usual few mechanisms, not of thousands
		l.base += int32(len(l.accounts))
		l.accounts, l.found = nil, found{}
		clear(l.byMechanism)
	}
	for i := range l.accounts {
		l.accounts[i].charges = 0
	}
}

func negative(slot int) error { return fmt.Errorf("ledger: slot is %d, must be at least 0", slot) }

func malformed(v *Values) error {
	if v == nil || len(v.Sum) == 0 {
		return errors.New("ledger: nothing is released, must have at least one sum")
	}
	return fmt.Errorf("ledger: %d counts for %d sums, must be as many", len(v.N), len(v.Sum))
}

func notFinite(v *Values) error {
	for i, x := range v.Sum {
		if x-x != 0 {
			return fmt.Errorf("ledger: sum %d: %w", i, ErrValues)
		}
	}
	return ErrValues
}
