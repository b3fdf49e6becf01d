package privacy

import (
	"errors"
	"fmt"
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

// Questions is the half of the sparse vector technique [Sajed 2019, Algorithm 4] that answers: is
// the slots' statistic above this? There is one threshold noise, Lap(Threshold), for all questions
// about a group of slots while they grow, and fresh noise, Lap(Query), on the statistic at each.
// The first yes ends it. Whatever the number of questions, all answers together are
//
//	1/Threshold + 2/Query
//
// DP: the proof of [Sajed 2019, Theorem 3.2.1], where both scales are 3Δ/ε, moves the threshold by
// Δ = 1 and the last query's noise by 2Δ.
type Questions struct {
	Threshold, Query float64
	Statistic        Statistic
}

// Kind implements Mechanism.
func (Questions) Kind() string { return "questions" }

// Continual is true: one charge is for all questions about a slot.
func (Questions) Continual() bool { return true }

// Validate accepts 0 ≤ Threshold, Query < ∞ and the statistics of this package.
func (m Questions) Validate() error { return m.validate(m.Kind()) }

// Loss is that of all answers about one group of slots.
func (m Questions) Loss() Loss {
	if m.Validate() != nil {
		return InfiniteLoss()
	}
	return LossOf(Pure{inverses([]float64{1, 2}, []float64{m.Threshold, m.Query})})
}

func (m Questions) validate(kind string) error {
	var statistic error
	if m.Statistic != Range && m.Statistic != Centre {
		statistic = fmt.Errorf("mechanism %s: statistic is %q, must be %q or %q", kind,
			m.Statistic, Range, Centre)
	}
	return errors.Join(scale(kind, "threshold", m.Threshold), scale(kind, "query", m.Query), statistic)
}

func (Questions) facts() facts   { return facts{} }
func (m Questions) entry() Entry { return Entry{Sensitivity: 1, Scale: m.Query} }
func (m Questions) String() string {
	return "questions(threshold=" + number(m.Threshold) + ",query=" + number(m.Query) +
		",statistic=" + string(m.Statistic) + ")"
}

func (m *Questions) fields() []field {
	return []field{{"threshold", &m.Threshold}, {"query", &m.Query}, {"statistic", &m.Statistic}}
}

// MarshalJSON writes {"mechanism":"questions","threshold":6,"query":6,"statistic":"range"}.
func (m Questions) MarshalJSON() ([]byte, error) { return encode(m.Kind(), m.fields()) }

func (m Questions) read(data []byte) (Mechanism, error) {
	err := decode(m.Kind(), data, m.fields())
	return m, err
}
