package privacy

import (
	"encoding/json"
	"errors"
	"fmt"
)

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
