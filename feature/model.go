package feature

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
)

// ModelFormat is the format of a Model as JSON. A reader refuses any other.
const ModelFormat = "sotto-model/1"

// ErrModel is matched by every error in a model's JSON.
var ErrModel = errors.New("no such model")

// A Model is what an experiment with contexts has learnt: a map, and a number for each component of its
// vectors. The action whose vector has the highest product with these is the best one, the first of
// several. It is made of noisy releases alone, and what is decided by it is post-processing: it costs nobody
// any more, however often and wherever it is used. ReadModel reads one.
type Model struct {
	Format     string `json:"format"`
	Experiment string `json:"experiment"`
	Guarantee  string `json:"guarantee"` // what is protected, in words
	// Release is the number of the last release that it rests on, from 1 on, and Decisions are how many
	// rewards all of them have. Noise is that of each.
	Release   int             `json:"release"`
	Decisions int             `json:"decisions"`
	Noise     json.RawMessage `json:"noise"`
	// Range is that of rewards: a product of p predicts lo + (hi−lo)·(p+1)/2.
	Range [2]float64 `json:"range"`
	Map   Map        `json:"map"`
	// Unit is what a component of 1 is, in steps of 2⁻²⁰, and Components say what each is 1 of. They
	// follow from the map.
	Unit       int       `json:"unit"`
	Components []string  `json:"components"`
	Theta      []float64 `json:"theta"` // by component

	mapper *Mapper
}

// NewModel completes a model by its map, or says what is wrong with it.
func NewModel(m Model) (*Model, error) {
	var err error
	if m.mapper, err = New(m.Map); err != nil {
		return nil, err
	}
	m.Format, m.Map = ModelFormat, m.mapper.ordered(m.Map)
	m.Unit, m.Components = int(m.mapper.unit), m.mapper.Names()
	return &m, m.check()
}

func (m *Model) check() error {
	if n := m.mapper.Dim(); len(m.Theta) != n {
		return fmt.Errorf("%w: theta has %d numbers, must have %d", ErrModel, len(m.Theta), n)
	}
	for i, x := range m.Theta {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Errorf("%w: theta[%d] is %v, must be a finite number", ErrModel, i, x)
		}
	}
	return nil
}

// ReadModel reads a model's JSON. An error matches ErrModel.
func ReadModel(text []byte) (*Model, error) {
	var in Model
	if err := json.Unmarshal(text, &in); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrModel, err)
	}
	if in.Format != ModelFormat {
		return nil, fmt.Errorf("%w: format is %s, must be %q", ErrModel, quoted(in.Format), ModelFormat)
	}
	out, err := NewModel(in)
	switch {
	case errors.Is(err, ErrModel):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w: map.%w", ErrModel, err)
	case in.Unit != out.Unit:
		return nil, fmt.Errorf("%w: unit is %d, must be %d by the map", ErrModel, in.Unit, out.Unit)
	}
	return out, nil
}

// Best is which of the actions the model gives in a context, none that has an excluded ID: without a
// request, and the same that the service gives. An error is an Error that matches ErrFeatures.
func (m *Model) Best(context map[string]any, actions []Action, excluded ...string) (int, error) {
	vectors, err := m.mapper.Vectors(nil, context, actions)
	if err != nil {
		return 0, err
	}
	on, d := []int{}, m.mapper.dim
	for i, a := range actions {
		if !slices.Contains(excluded, a.ID) {
			copy(vectors[len(on)*d:][:d], vectors[i*d:])
			on = append(on, i)
		}
	}
	if len(on) == 0 {
		return 0, &Error{Field: "excluded", of: ErrFeatures,
			Reason: fmt.Sprintf("has all %d actions, must leave one", len(actions))}
	}
	return on[Best(m.Theta, vectors[:len(on)*d])], nil
}

// Best is which of some vectors, one after the other, has the highest product with theta, the first of
// several. Products are rounded term by term, so that it is the same everywhere.
func Best(theta, vectors []float64) (best int) {
	top := math.Inf(-1)
	for i, d := 0, len(theta); d > 0 && len(vectors) >= d; i, vectors = i+1, vectors[d:] {
		sum := 0.0
		for j, x := range theta {
			sum += float64(x * vectors[j])
		}
		if sum > top {
			best, top = i, sum
		}
	}
	return best
}

// ordered is a map with its features in the order of their blocks.
func (p *Mapper) ordered(m Map) Map {
	all := make([]Feature, len(p.features))
	for i, f := range p.features {
		all[i] = f.Feature
	}
	last := len(all) - 1
	m.Context, m.Action, m.ID, m.Actions = all[:p.context], all[p.context:last], all[last], p.actions
	return m
}
