package privacy

import (
	"errors"
	"fmt"
	"slices"
)

// Question charges for a question about the slots, asked through m, before it is answered. If m is
// a Sparse, all questions about a slot are one charge, that of its Questions; anything else is
// charged for as a release. A question that would exceed the cap is refused with ErrBudget and must
// not be answered.
//
// A group of slots that has had its yes must not be asked about again: see Sparse. That is
// refused with ErrPrefix.
func (l *Ledger) Question(slots []int, m Mechanism) error {
	if len(slots) == 0 {
		return errors.New("ledger: a question about no slots, must have at least one")
	}
	for _, s := range slots {
		if s < 0 {
			return negative(s)
		}
	}
	q := m
	if s, ok := m.(Sparse); ok && s.Validate() == nil {
		q = s.Questions
	}
	at := l.account(q)
	if s, ok := m.(Sparse); ok && s.Validate() == nil {
		sums, both := l.account(s.sums()), l.account(s)
		for _, slot := range slots {
			if l.went(slot, sums) || l.went(slot, both) {
				return fmt.Errorf("ledger: a question about slot %d through %v: it has had its "+
					"yes, and its threshold must not serve again: %w", slot, m, ErrPrefix)
			}
		}
	}
	if err := l.threshold(slots, at); err != nil {
		return err
	}
	if l.cap != nil {
		if err := l.allowAll(slots, at); err != nil {
			return err
		}
	}
	for _, s := range slots {
		l.book(s, at, 1)
	}
	return nil
}

// threshold refuses a question about slots whose threshold was drawn before a journal was read.
func (l *Ledger) threshold(slots []int, at int32) error {
	for _, s := range slots {
		if err := l.lost(s, at); err != nil {
			return err
		}
	}
	return nil
}

// went says that the slot went through the mechanism of this account.
func (l *Ledger) went(slot int, at int32) bool {
	return slices.ContainsFunc(l.slot(slot), func(c cell) bool { return c.account == at })
}

// No writes the answer no to the transcript, if there is one: n are the numbers of rewards in the
// slots. Question has charged for it: an answer about slots about which nothing was asked is
// refused with ErrPrefix.
func (l *Ledger) No(slots []int, m Mechanism, n []int, tail Tail) error {
	q := m
	if s, ok := m.(Sparse); ok && s.Validate() == nil {
		q = s.Questions
	}
	at := l.account(q)
	for _, s := range slots {
		if s < 0 || !l.went(s, at) {
			return fmt.Errorf("ledger: an answer about slot %d through %v: nothing was asked "+
				"about it: %w", s, m, ErrPrefix)
		}
	}
	if err := l.threshold(slots, at); err != nil || l.transcript == nil {
		return err
	}
	_, err := l.write(slots, l.find(m), &Values{N: n, Sum: []float64{}, Tail: tail})
	return err
}

// restoreNo charges for a question that was answered no.
func (l *Ledger) restoreNo(slots []int, m Mechanism, n []int) error {
	switch m.(type) {
	case Sparse, Unknown:
	default:
		return fmt.Errorf("ledger: transcript: no sums were released through %v: only a sparse "+
			"mechanism can answer no", m)
	}
	if len(n) != len(slots) {
		return fmt.Errorf("ledger: transcript: %d slots for %d counts, must have one slot "+
			"for each count", len(slots), len(n))
	}
	return l.Question(slots, m)
}

// releaseSparse is ReleaseAll after a yes: the slots are charged for their sums, and for the
// questions unless they have been.
func (l *Ledger) releaseSparse(slots []int, m Sparse, v *Values, write bool) (Released, error) {
	questions, sums := l.account(m.Questions), l.account(m.sums())
	asked := func(slot int) bool { return l.went(slot, questions) }
	if err := l.threshold(slots, questions); err != nil {
		return Released{}, err
	}
	if l.cap != nil {
		for i, s := range slots {
			n := 0
			for _, r := range slots[:i+1] {
				if r == s {
					n++
				}
			}
			spent := l.after(s, sums, n)
			if !asked(s) {
				spent = spent.plus(l.in(questions))
			}
			if l.over || !spent.within(l.limit) {
				return Released{}, l.refuse(s, sums)
			}
		}
	}
	v.noises = m.facts().noises
	for _, s := range slots {
		if !asked(s) {
			l.book(s, questions, 1)
		}
		l.book(s, sums, 1)
	}
	for _, x := range v.Sum {
		if x-x != 0 {
			return Released{}, notFinite(v)
		}
	}
	if write && l.transcript != nil {
		return l.write(slots, l.find(m), v)
	}
	return Released{v}, nil
}
