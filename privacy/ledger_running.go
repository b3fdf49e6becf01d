package privacy

import (
	"errors"
	"fmt"
	"math"
)

// ErrPrefix is what a running sum is refused with that cannot be the next one of its slot: its
// number of rewards is beyond the horizon that was paid for, or falls, or stays while the sum
// changes. Nothing is charged.
var ErrPrefix = errors.New("no running sum that was paid for")

// A running is the last running sum that a continual mechanism released of a slot. Further ones of
// at most free rewards need no look, nor do vectors of at most room: nobody keeps a transcript.
// What pays for the one does not pay for the other.
type running struct {
	account int32
	n, free int
	sum     float64
	more    int // releases that the slot's cell does not count yet
	room    int
	vector  []float64 // where it is one
}

// closed is the n of a slot whose last running sum, and noise, were another process's: a journal
// does not have them.
const closed = math.MaxInt

// grows says whether sum i of v can be the slot's next running sum: one more reward at least than
// the last one, which may be the one before it in v, and no more than the horizon that was paid
// for; or the last one again. A continual mechanism is charged once for every prefix of the slot:
// each prefix has one sum, whose noise is drawn once.
func (l *Ledger) grows(slot int, at int32, v *Values, i int, same func(j int) bool) error {
	m := l.get(at)
	if m.longest == 0 {
		return nil
	}
	if err := l.lost(slot, at); err != nil {
		return err
	}
	before := l.last(slot, at)
	last, sum := before.n, before.sum
	for j := range i {
		if same(j) {
			last, sum = v.N[j], v.Sum[j]
		}
	}
	switch n := v.N[i]; {
	case n < 1 || n > m.longest:
		return fmt.Errorf("ledger: release of slot %d through %v: sum %d is of %d rewards, "+
			"must be of 1 to %d: %w", slot, m.mechanism, i, n, m.longest, ErrPrefix)
	case n < last:
		return fmt.Errorf("ledger: release of slot %d through %v: sum %d is of %d rewards, "+
			"must be of %d at least, those of the sum before: %w",
			slot, m.mechanism, i, n, last, ErrPrefix)
	case n == last && v.Sum[i] != sum && (v.Sum[i] == v.Sum[i] || sum == sum):
		return fmt.Errorf("ledger: release of slot %d through %v: sum %d is another one of the "+
			"same %d rewards: its noise is drawn once: %w",
			slot, m.mechanism, i, n, ErrPrefix)
	}
	return nil
}

// last is the slot's last running sum.
func (l *Ledger) last(slot int, at int32) running {
	if slot < len(l.running) && l.running[slot].account == at {
		return l.running[slot]
	}
	return l.others[[2]int64{int64(slot), int64(at)}]
}

// lost refuses what goes on with such a slot: with other noise it would be another release.
func (l *Ledger) lost(slot int, at int32) error {
	if l.last(slot, at).n != closed {
		return nil
	}
	return fmt.Errorf("ledger: release of slot %d through %v: its noise was drawn before the "+
		"journal was read, and is gone: open a new slot: %w",
		slot, l.get(at).mechanism, ErrPrefix)
}

// run books running sums, all of one slot.
func (l *Ledger) run(slot int, at int32, v *Values) error {
	last := len(v.Sum) - 1
	for i := range v.Sum {
		if err := l.grows(slot, at, v, i, func(int) bool { return true }); err != nil {
			return err
		}
	}
	l.book(slot, at, len(v.Sum))
	l.remember(slot, at, running{n: v.N[last], sum: v.Sum[last]})
	return nil
}

// follow is the usual case of a continual mechanism: running sums of more rewards than those
// before, which are paid for. It is false, and takes none, if any of them needs a look.
func (l *Ledger) follow(slots []int, at int32, v *Values) bool {
	before := -1
	for i, s := range slots {
		if s <= before || s >= len(l.running) {
			return false
		}
		if r := &l.running[s]; r.account != at || v.N[i] <= r.n || v.N[i] > r.free || v.Sum[i]-v.Sum[i] != 0 {
			return false
		}
		before = s
	}
	for i, s := range slots {
		r := &l.running[s]
		r.n, r.sum = v.N[i], v.Sum[i]
		r.more++
	}
	v.noises = laplaces{}
	return true
}

// remember keeps r as the slot's last running sum.
func (l *Ledger) remember(slot int, at int32, r running) {
	a := l.get(at)
	r.account = at
	switch {
	case l.transcript != nil || r.sum-r.sum != 0:
	case r.vector != nil:
		if a.leaf <= 1 {
			r.room = a.longest
		}
	case a.longest == 0: // exact sums, which cost ∞: any may come
		r.free = math.MaxInt
	default:
		r.free = a.longest
	}
	if slot >= len(l.cells) || l.cells[slot].account != at {
		l.other(slot, r)
		return
	}
	for slot >= len(l.running) {
		l.running = append(l.running, running{})
	}
	r.more = l.running[slot].more
	l.running[slot] = r
}

// other keeps r as the last running sum of one account of a slot that has several.
func (l *Ledger) other(slot int, r running) {
	if l.others == nil {
		l.others = map[[2]int64]running{}
	}
	r.free, r.room, r.more = 0, 0, 0
	l.others[[2]int64{int64(slot), int64(r.account)}] = r
}
