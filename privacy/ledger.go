package privacy

import (
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
)

// ErrBudget is what a release that would exceed the ledger's cap is refused with.
var ErrBudget = errors.New("privacy budget exceeded")

// ErrValues is what values that are not finite numbers are refused with. They have been charged:
// see Ledger.Release.
var ErrValues = errors.New("released value is not a finite number")

// ErrPrefix is what a running sum is refused with that cannot be the next one of its slot: its
// number of rewards is beyond the horizon that was paid for, or falls, or stays while the sum
// changes. Nothing is charged.
var ErrPrefix = errors.New("no running sum that was paid for")

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

// found is the last mechanism of each kind, and its account if positive.
type found struct {
	laplace                                          Laplace
	gaussian                                         Gaussian
	tree                                             Tree
	hybrid                                           Hybrid
	laplaceAt, gaussianAt, treeAt, hybridAt, exactAt int32
}

// A cell is what a slot went through: n releases with the mechanism of this account.
type cell struct {
	account int32 // number of the account; 0: untouched; inMixed
	n       int
}

// inMixed is the account of a cell whose slot went through several mechanisms: see Ledger.mixed.
const inMixed = -1

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

// An account is one mechanism that was charged, and an Account what releases through it.
type account struct {
	mechanism Mechanism
	continual bool
	facts
	charges int    // the most charges of one slot
	loss    *Loss  // of one charge; nil: not yet computed
	price   *price // of one charge in the cap's currency; nil: not yet computed
}

// An Option sets up a ledger.
type Option func(*Ledger)

// WithCap makes the ledger refuse every release after which a record would have lost more than b,
// by a share of 1e-9 at most. What is counted is the currency of b, and nothing else: ε, ρ, the
// Rényi divergence of b's order, μ², or ε and δ. In each the cap holds however releases and
// mechanisms are chosen in the light of earlier releases (filter.go has the theorem). What has no
// price in that currency is refused, by name: so is Gaussian noise under a cap in (ε,δ), which
// GDPWithin and ZCDPWithin translate. With an invalid b everything is refused, and so it is with
// nil, a pointer to a budget, or a type that embeds one.
func WithCap(b Budget) Option {
	b = plain(b)
	return func(l *Ledger) {
		l.cap, l.limit = b, limitOf(b)
		if _, none := b.(None); none {
			l.cap = nil
		}
	}
}

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

// Cap is the budget beyond which releases are refused, None if there is none.
func (l *Ledger) Cap() Budget {
	if l.cap == nil {
		return None{}
	}
	return l.cap
}

// Guarantee is what a record loses at most, whatever is released and however it is chosen: that of
// the cap in its currency, and converted from it in the others. Without a cap it is infinite: Total
// is what was spent, and its conversion to (ε,δ) is proved for mechanisms that were fixed in advance.
func (l *Ledger) Guarantee() Loss {
	if l.cap == nil || l.over {
		return InfiniteLoss()
	}
	return LossOf(l.cap)
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

var errStale = errors.New("ledger: the account was opened before a Reset: open it again")

// An Account releases through one mechanism: Ledger.Release for loops that run millions of times.
// It stays good after a Reset, unless the ledger had so many mechanisms that Reset let them go:
// then Release is an error.
type Account struct {
	l  *Ledger
	at int32
}

// Account opens the account of a mechanism.
func (l *Ledger) Account(m Mechanism) Account { return Account{l, l.account(m)} }

// Release is Ledger.Release through the account's mechanism.
func (a Account) Release(slot int, v *Values) (Released, error) {
	// The usual case of a continual mechanism: noise that is there already, so nothing is charged.
	if uint(slot) < uint(len(a.l.running)) && v != nil && len(v.Sum) == 1 && len(v.N) == 1 {
		r, n, sum := &a.l.running[slot], v.N[0], v.Sum[0]
		if r.account == a.at && n <= r.free && sum-sum == 0 && (n > r.n || n == r.n && sum == r.sum) {
			r.more++
			r.n, r.sum = n, sum
			v.laplace = false
			return Released{v}, nil
		}
	}
	return a.release(slot, v)
}

func (a Account) release(slot int, v *Values) (Released, error) {
	if v == nil || len(v.N) != len(v.Sum) || len(v.Sum) == 0 {
		return Released{}, malformed(v)
	}
	if a.at <= a.l.base {
		return Released{}, errStale
	}
	b := a.l.get(a.at)
	if !b.sum {
		return Account{a.l, a.l.sums(b.mechanism)}.release(slot, v)
	}
	if slot < 0 || a.l.cap != nil {
		if err := a.l.allow(slot, a.at, len(v.Sum)); err != nil {
			return Released{}, err
		}
	}
	v.laplace = b.laplace
	if !b.continual {
		a.l.book(slot, a.at, len(v.Sum))
	} else if err := a.l.run(slot, a.at, v); err != nil {
		return Released{}, err
	}
	for _, x := range v.Sum {
		if x-x != 0 { // NaN or ±Inf
			return Released{}, notFinite(v)
		}
	}
	if a.l.transcript != nil {
		return a.l.write(slices.Repeat([]int{slot}, len(v.Sum)), a.at, v)
	}
	return Released{v}, nil
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
	v.laplace = b.laplace
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
	v.laplace = false
	return true
}

// remember keeps r as the slot's last running sum.
func (l *Ledger) remember(slot int, at int32, r running) {
	a := l.get(at)
	r.account = at
	switch {
	case l.transcript != nil || r.sum-r.sum != 0:
	case r.vector != nil:
		r.room = a.longest
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

// Allow is nil if ReleaseAll of one release of each of the slots through m would stay within the
// cap, and otherwise the error, matching ErrBudget, that it would be refused with. It charges
// nothing. It is for those who have to know before others see what they send.
func (l *Ledger) Allow(slots []int, m Mechanism) error {
	for _, s := range slots {
		if s < 0 {
			return negative(s)
		}
	}
	if l.cap == nil || len(slots) == 0 {
		return nil
	}
	return l.allowAll(slots, l.find(m))
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

// WouldExceed says whether a ledger with the cap limit and these entries would refuse one more
// release of the slot through m. An invalid limit, or nil, is always exceeded; None never.
func (l *Ledger) WouldExceed(slot int, m Mechanism, limit Budget) bool {
	if limit = plain(limit); slot < 0 {
		return true
	}
	if _, none := limit.(None); none {
		return false
	}
	at := l.account(m)
	other := Ledger{cap: limit, limit: limitOf(limit), base: l.base,
		accounts: slices.Clone(l.accounts), cells: l.cells, mixed: l.mixed}
	for i := range other.accounts {
		other.accounts[i].price = nil // is in l's currency
	}
	return !other.inside() || other.allow(slot, at, 1) != nil
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

// find is account, faster for what was found last of each kind.
func (l *Ledger) find(m Mechanism) int32 {
	// A chain, since a switch over types is compiled into a jump table, which is slower.
	if x, ok := m.(Laplace); ok {
		if x == l.laplace && l.laplaceAt > 0 {
			return l.laplaceAt
		}
		l.laplace, l.laplaceAt = x, l.account(m)
		return l.laplaceAt
	}
	if x, ok := m.(Gaussian); ok {
		if x == l.gaussian && l.gaussianAt > 0 {
			return l.gaussianAt
		}
		l.gaussian, l.gaussianAt = x, l.account(m)
		return l.gaussianAt
	}
	if x, ok := m.(Tree); ok {
		if x == l.tree && l.treeAt > 0 {
			return l.treeAt
		}
		l.tree, l.treeAt = x, l.account(m)
		return l.treeAt
	}
	if x, ok := m.(Hybrid); ok {
		if x == l.hybrid && l.hybridAt > 0 {
			return l.hybridAt
		}
		l.hybrid, l.hybridAt = x, l.account(m)
		return l.hybridAt
	}
	if _, ok := m.(Exact); ok {
		if l.exactAt == 0 {
			l.exactAt = l.account(m)
		}
		return l.exactAt
	}
	return l.sums(m)
}

// account finds or opens the account of m. What cannot be priced becomes Unknown: a mechanism of
// another package (its Loss would be a promise), a pointer (it may change later), nil, or
// parameters that are no noise.
func (l *Ledger) account(m Mechanism) int32 {
	if !byType[reflect.TypeOf(m)] {
		m = Unknown{Name: fmt.Sprintf("%T", m)}
	} else if m.Validate() != nil {
		m = Unknown{Name: "invalid " + m.Kind()}
	}
	if at, ok := l.byMechanism[m]; ok {
		return at
	}
	if l.byMechanism == nil {
		l.byMechanism = map[Mechanism]int32{}
	}
	l.accounts = append(l.accounts, account{mechanism: m, continual: m.Continual(), facts: m.facts()})
	at := l.base + int32(len(l.accounts))
	l.byMechanism[m] = at
	return at
}

// sums is the account of m's single sums, which cost ∞ where its price is not for them.
func (l *Ledger) sums(m Mechanism) int32 {
	at := l.account(m)
	if a := l.get(at); !a.sum {
		at = l.account(Unknown{Name: a.mechanism.Kind() + " of a sum"})
	}
	return at
}

// get is the account of this number.
func (l *Ledger) get(at int32) *account { return &l.accounts[at-l.base-1] }

// cost is the loss of one charge.
func (a *account) cost() Loss {
	if a.loss == nil {
		p := a.mechanism.Loss()
		a.loss = &p
	}
	return *a.loss
}

// charged is how many charges n releases of one slot are.
func (a *account) charged(n int) int {
	if a.continual {
		return min(n, 1)
	}
	return n
}

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

// allow is nil if there is such a slot and n more releases of it leave the slot within the cap.
// Other slots are within it already.
func (l *Ledger) allow(slot int, at int32, n int) error {
	if slot < 0 {
		return negative(slot)
	}
	if l.cap == nil {
		return nil
	}
	if a := l.get(at); slot >= len(l.cells) && len(l.mixed) == 0 && a.charged(n) <= a.charges && !l.over {
		return nil // nearly always: another slot has gone through as much
	}
	if l.over || !l.after(slot, at, n).within(l.limit) {
		return l.refuse(slot, at)
	}
	return nil
}

// allowAll is allow for one release of each of the slots, together.
func (l *Ledger) allowAll(slots []int, at int32) error {
	for i, s := range slots {
		n := 1
		for _, r := range slots[:i] {
			if r == s {
				n++
			}
		}
		if err := l.allow(s, at, n); err != nil {
			return err
		}
	}
	return nil
}

func (l *Ledger) refuse(slot int, at int32) error {
	m := l.get(at).mechanism
	if err := l.cap.Validate(); err != nil {
		return fmt.Errorf("ledger: release of slot %d through %v: the cap is no budget: %w: %w",
			slot, m, err, ErrBudget)
	}
	if p := l.in(at); !(p.x <= math.MaxFloat64) || p.delta >= 1 {
		return fmt.Errorf("ledger: release of slot %d through %v: the cap is %v: %s: %w", slot, m,
			l.cap, unpriced(m, l.cap), ErrBudget)
	}
	return fmt.Errorf("ledger: release of slot %d through %v: after a loss of %v the cap is %v: %w",
		slot, m, l.Total(), l.cap, ErrBudget)
}

// in is the price of one charge of the account in the cap's currency.
func (l *Ledger) in(at int32) price {
	a := l.get(at)
	if a.price == nil {
		p := a.cost().priceIn(l.cap)
		a.price = &p
	}
	return *a.price
}

// after is what a record of the slot will have spent after n more releases, in the cap's currency.
func (l *Ledger) after(slot int, at int32, n int) price {
	var sum price
	for _, c := range l.slot(slot) {
		if c.account == at {
			n += c.n
			continue
		}
		sum = sum.plus(l.in(c.account).times(l.get(c.account).charged(c.n)))
	}
	return sum.plus(l.in(at).times(l.get(at).charged(n)))
}

// inside says that no slot is beyond the cap.
func (l *Ledger) inside() bool {
	for i := range l.accounts {
		if a := &l.accounts[i]; a.charges > 0 && !l.in(l.base+int32(i)+1).times(a.charges).within(l.limit) {
			return false
		}
	}
	for _, cells := range l.mixed {
		var sum price
		for _, c := range cells {
			sum = sum.plus(l.in(c.account).times(l.get(c.account).charged(c.n)))
		}
		if !sum.within(l.limit) {
			return false
		}
	}
	return true
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
