package privacy

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// A Statistic is what a question of the sparse vector technique asks about the sums of the slots
// that it reads. One reward, replaced, moves either by at most 1.
type Statistic string

const (
	// Range is the largest sum minus the smallest, over at least one slot.
	Range Statistic = "range"
	// Centre is |sum − n/2|, of one slot of n rewards.
	Centre Statistic = "centre"
)

// Questions is the half of the sparse vector technique (002 Algorithm 4) that answers: is the
// slots' statistic above this? There is one threshold noise, Lap(Threshold), for all questions
// about a group of slots while they grow, and fresh noise, Lap(Query), on the statistic at each.
// The first yes ends it. Whatever the number of questions, all answers together are
//
//	1/Threshold + 2/Query
//
// DP: the proof of 002 Theorem 3.2.1, where both scales are 3Δ/ε, moves the threshold by Δ = 1 and
// the last query's noise by 2Δ.
type Questions struct {
	Threshold, Query float64
	Statistic        Statistic
}

// Sparse releases a group of slots once their statistic is above a threshold, and until then tells
// only that it is not: Questions, and after the yes every slot's sum plus Lap(Scale). The sums are
// those that the questions were about, so that its loss is the sum of the two: 1/Threshold +
// 2/Query + 1/Scale (002 Theorem A.1.1 with 6/ε, 6/ε and 2/ε).
type Sparse struct {
	Questions
	Scale float64
}

// Kind implements Mechanism.
func (Questions) Kind() string { return "questions" }

// Kind implements Mechanism.
func (Sparse) Kind() string { return "sparse" }

// Continual is true: one charge is for all questions about a slot.
func (Questions) Continual() bool { return true }

// Continual is false: after the yes the slots are emptied.
func (Sparse) Continual() bool { return false }

// Loss is that of all answers about one group of slots.
func (m Questions) Loss() Loss {
	if m.Validate() != nil {
		return InfiniteLoss()
	}
	return LossOf(Pure{inverses([]float64{1, 2}, []float64{m.Threshold, m.Query})})
}

// Loss is that of the answers and of the sums after the yes.
func (m Sparse) Loss() Loss {
	if m.Validate() != nil {
		return InfiniteLoss()
	}
	l := m.Questions.Loss().Add(m.sums().Loss())
	if l.Infinite() {
		return l
	}
	t := *l.t
	t.pure = inverses([]float64{1, 2, 1}, []float64{m.Threshold, m.Query, m.Scale})
	return Loss{&t}
}

// sums is what the sums after the yes are released through.
func (m Sparse) sums() Laplace { return Laplace{m.Scale} }

// Tail of the noise in each released sum.
func (m Sparse) Tail() Tail { return m.sums().Tail() }

// Validate accepts 0 ≤ Threshold, Query < ∞ and the statistics of this package.
func (m Questions) Validate() error { return m.validate(m.Kind()) }

// Validate accepts 0 ≤ Threshold, Query, Scale < ∞ and the statistics of this package.
func (m Sparse) Validate() error {
	return errors.Join(m.Questions.validate(m.Kind()), scale(m.Kind(), "scale", m.Scale))
}

func (m Questions) validate(kind string) error {
	var statistic error
	if m.Statistic != Range && m.Statistic != Centre {
		statistic = fmt.Errorf("mechanism %s: statistic is %q: it must be %q or %q", kind,
			m.Statistic, Range, Centre)
	}
	return errors.Join(scale(kind, "threshold", m.Threshold), scale(kind, "query", m.Query), statistic)
}

func (m Questions) String() string {
	return "questions(threshold=" + number(m.Threshold) + ",query=" + number(m.Query) +
		",statistic=" + string(m.Statistic) + ")"
}

func (m Sparse) String() string {
	return "sparse(threshold=" + number(m.Threshold) + ",query=" + number(m.Query) + ",statistic=" +
		string(m.Statistic) + ",scale=" + number(m.Scale) + ")"
}

// sparseJSON has the fields of both.
type sparseJSON struct {
	Mechanism string     `json:"mechanism"`
	Threshold *float64   `json:"threshold"`
	Query     *float64   `json:"query"`
	Statistic *Statistic `json:"statistic"`
	Scale     *float64   `json:"scale,omitempty"`
}

// MarshalJSON writes {"mechanism":"questions","threshold":6,"query":6,"statistic":"range"}.
func (m Questions) MarshalJSON() ([]byte, error) {
	return json.Marshal(sparseJSON{m.Kind(), &m.Threshold, &m.Query, &m.Statistic, nil})
}

// MarshalJSON writes {"mechanism":"sparse","threshold":6,"query":6,"statistic":"range","scale":2}.
func (m Sparse) MarshalJSON() ([]byte, error) {
	return json.Marshal(sparseJSON{m.Kind(), &m.Threshold, &m.Query, &m.Statistic, &m.Scale})
}

// unmarshalSparse reads a mechanism of kind questions or sparse.
func unmarshalSparse(name string, data []byte) (Mechanism, error) {
	var f sparseJSON
	if err := strict(data, &f); err != nil {
		return nil, fmt.Errorf("mechanism %s: %w", name, err)
	}
	for _, c := range []struct {
		name      string
		has, want bool
	}{{"threshold", f.Threshold != nil, true}, {"query", f.Query != nil, true},
		{"statistic", f.Statistic != nil, true},
		{"scale", f.Scale != nil, name == "sparse"}} {
		if c.has && !c.want {
			return nil, fmt.Errorf("mechanism %s: it has no field %q", name, c.name)
		}
		if !c.has && c.want {
			return nil, fmt.Errorf("mechanism %s: the field %q is missing", name, c.name)
		}
	}
	var m Mechanism
	q := Questions{*f.Threshold, *f.Query, *f.Statistic}
	if m = q; name == "sparse" {
		m = Sparse{q, *f.Scale}
	}
	if err := m.Validate(); err != nil {
		return nil, err
	}
	return m, nil
}

// Question charges for a question about the slots, asked through m, before it is answered. If m is
// a Sparse, all questions about a slot are one charge, that of its Questions; anything else is
// charged for as a release. A question that would exceed the cap is refused with ErrBudget and must
// not be answered.
//
// A group of slots that has had its yes must not be asked about again: see Sparse. That is
// refused with ErrPrefix.
func (l *Ledger) Question(slots []int, m Mechanism) error {
	if len(slots) == 0 {
		return errors.New("ledger: a question about no slots: there must be at least one")
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
		return fmt.Errorf("ledger: transcript: %d slots for %d counts: there must be one slot "+
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
	v.laplace = true
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
