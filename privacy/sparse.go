package privacy

import "errors"

// Sparse releases a group of slots once their statistic is above a threshold, and until then tells
// only that it is not: Questions, and after the yes every slot's sum plus Lap(Scale). The sums are
// those that the questions were about, so that its loss is the sum of the two: 1/Threshold +
// 2/Query + 1/Scale ([Sajed 2019, Theorem A.1.1] with 6/ε, 6/ε and 2/ε).
type Sparse struct {
	Questions
	Scale float64
}

// Kind implements Mechanism.
func (Sparse) Kind() string { return "sparse" }

// Continual is false: after the yes the slots are emptied.
func (Sparse) Continual() bool { return false }

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

// Validate accepts 0 ≤ Threshold, Query, Scale < ∞ and the statistics of this package.
func (m Sparse) Validate() error {
	return errors.Join(m.Questions.validate(m.Kind()), scale(m.Kind(), "scale", m.Scale))
}

func (m Sparse) draws() Draws { return Draws{Law: NoiseLaplace, Scale: m.Scale} }
func (m Sparse) facts() facts {
	return facts{sum: true, noises: laplaces{fixed: 1, scale: m.Scale}}
}
func (m Sparse) entry() Entry { return Entry{Sensitivity: 1, Scale: m.Scale} }
func (m Sparse) String() string {
	return "sparse(threshold=" + number(m.Threshold) + ",query=" + number(m.Query) + ",statistic=" +
		string(m.Statistic) + ",scale=" + number(m.Scale) + ")"
}

func (m *Sparse) fields() []field {
	return append(m.Questions.fields(), field{"scale", &m.Scale})
}

// MarshalJSON writes {"mechanism":"sparse","threshold":6,"query":6,"statistic":"range","scale":2}.
func (m Sparse) MarshalJSON() ([]byte, error) { return encode(m.Kind(), m.fields()) }

func (m Sparse) read(data []byte) (Mechanism, error) {
	err := decode(m.Kind(), data, m.fields())
	return m, err
}
