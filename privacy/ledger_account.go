package privacy

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
)

// found is the last mechanism of each kind, and its account if positive.
type found struct {
	laplace  Laplace
	gaussian Gaussian
	tree     Tree
	hybrid   Hybrid
	kary     KAry

	laplaceAt, gaussianAt, treeAt, hybridAt, exactAt, karyAt int32
}

// An account is one mechanism that was charged, and an Account what releases through it.
type account struct {
	mechanism Mechanism
	continual bool
	facts
	charges int    // the most charges of one slot
	loss    *Loss  // of one charge; nil: not yet computed
	price   *price // of one charge in the cap's currency; nil: not yet computed
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
			v.noises = laplaces{}
			return Released{v}, nil
		}
	}
	return a.release(slot, v)
}

// Unread counts n more releases of a slot's running sum that were not drawn, as their noise was paid for and nobody
// was to read them: of a simulation. It is false, and counts nothing, where a release needs a look or is written down.
func (a Account) Unread(slot, n int) bool {
	if uint(slot) >= uint(len(a.l.running)) || a.l.running[slot].account != a.at || a.l.running[slot].free == 0 {
		return false
	}
	a.l.running[slot].more += n
	return true
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
	v.noises = b.noises
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
	if x, ok := m.(KAry); ok {
		if x != l.kary || l.karyAt == 0 {
			l.kary, l.karyAt = x, l.account(m)
		}
		return l.karyAt
	}
	return l.sums(m)
}

// account finds or opens the account of m. What cannot be priced becomes Unknown: a mechanism of
// another package (its Loss would be a promise), a pointer (it may change later), nil, or
// parameters that are no noise.
func (l *Ledger) account(m Mechanism) int32 {
	if !mechanisms.byType[reflect.TypeOf(m)] {
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
