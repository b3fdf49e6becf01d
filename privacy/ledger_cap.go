package privacy

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// ErrBudget is what a release that would exceed the ledger's cap is refused with.
var ErrBudget = errors.New("privacy budget exceeded")

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
