package privacy

import "slices"

// A cell is what a slot went through: n releases with the mechanism of this account.
type cell struct {
	account int32 // number of the account; 0: untouched; inMixed
	n       int
}

// inMixed is the account of a cell whose slot went through several mechanisms: see Ledger.mixed.
const inMixed = -1

// book records n releases of the slot.
func (l *Ledger) book(slot int, at int32, n int) {
	if slot == len(l.cells) && len(l.mixed) == 0 { // nearly always
		l.cells = append(l.cells, cell{})
	} else if slot >= len(l.cells) && !l.grow(slot) {
		l.bookMixed(slot, at, n)
		return
	}
	c := &l.cells[slot]
	if c.account != 0 && c.account != at {
		l.bookMixed(slot, at, n)
		return
	}
	a := l.get(at)
	c.account = at
	c.n += n
	if k := a.charged(c.n); k > a.charges {
		a.charges = k
		l.total = nil
	}
}

func (l *Ledger) bookMixed(slot int, at int32, n int) {
	l.total = nil
	if l.mixed == nil {
		l.mixed = map[int][]cell{}
	}
	if slot < len(l.cells) && l.cells[slot].account > 0 {
		if slot < len(l.running) && l.running[slot].account > 0 {
			r := l.running[slot]
			l.cells[slot].n += r.more
			l.other(slot, r)
			l.running[slot] = running{}
		}
		l.mixed[slot] = append(l.mixed[slot], l.cells[slot])
		l.cells[slot] = cell{account: inMixed}
	}
	cells := l.mixed[slot]
	i := slices.IndexFunc(cells, func(c cell) bool { return c.account == at })
	if i < 0 {
		i = len(cells)
		cells = append(cells, cell{account: at})
	}
	cells[i].n += n
	l.mixed[slot] = cells
}

// grow makes room for the slot among the cells, unless it is far beyond those there are.
func (l *Ledger) grow(slot int) bool {
	if slot-len(l.cells) > 64 {
		return false
	}
	if _, elsewhere := l.mixed[slot]; elsewhere {
		return false
	}
	for len(l.cells) <= slot {
		c := cell{}
		if _, elsewhere := l.mixed[len(l.cells)]; elsewhere {
			c.account = inMixed
		}
		l.cells = append(l.cells, c)
	}
	return true
}

// slot is what a slot went through.
func (l *Ledger) slot(slot int) []cell {
	if slot >= 0 && slot < len(l.cells) && l.cells[slot].account > 0 {
		return l.cells[slot : slot+1 : slot+1]
	}
	return l.mixed[slot]
}

// sum is the loss of a record of a slot that went through all this.
func (l *Ledger) sum(cells []cell) Loss {
	var t Loss
	for _, c := range cells {
		a := l.get(c.account)
		t = t.Add(a.cost().Times(a.charged(c.n)))
	}
	return t
}

// An Entry is what the ledger knows of one slot and mechanism.
type Entry struct {
	Slot        int
	Mechanism   Mechanism
	Sensitivity float64 // of what is released to one record, in the Norm; +Inf if unknown
	// of the noise: b of Lap(b), σ of N(0,σ²), on each node of a tree, of the query of questions; 0
	// if exact or unknown
	Scale float64
	// Norm is what a vector's Sensitivity is measured in: "ℓ1", "ℓ2", "Frobenius", or "V⁺", which
	// is √(xᵀV⁺x) with V in Matrix. It is empty for a single sum.
	Norm   string
	Matrix [][]float64 // nil where the norm has no matrix
	// Protects says what a record is and what is kept from whom, where that is not the usual: one
	// reward, replaced by another, from everybody.
	Protects string
	Releases int
	Loss     Loss // of all of them
}

// Entries lists what was recorded by slot, and within a slot in the order of the
// mechanisms' first use.
func (l *Ledger) Entries() []Entry {
	var out []Entry
	add := func(slot int, c cell) {
		a := l.get(c.account)
		e := a.mechanism.entry()
		e.Slot, e.Mechanism, e.Releases = slot, a.mechanism, c.n
		e.Loss = a.cost().Times(a.charged(c.n))
		out = append(out, e)
	}
	for s, c := range l.cells {
		if s < len(l.running) {
			c.n += l.running[s].more
		}
		if c.account > 0 {
			add(s, c)
		}
	}
	for s, cells := range l.mixed {
		for _, c := range cells {
			add(s, c)
		}
	}
	slices.SortStableFunc(out, func(a, b Entry) int { return a.Slot - b.Slot })
	return out
}
