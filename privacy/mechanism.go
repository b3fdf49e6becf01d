package privacy

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
)

// A Mechanism says how a slot of rewards in [0,1], or of vectors with rewards in [−1,1], is
// released: the noise itself, not a promise about it. It is data: a policy states it, a file shows
// it, package release builds it and the ledger prices it. Scale 0 is no noise and costs ∞, so that
// "no privacy" needs no branch.
//
// The mechanisms of this package are all there are, one file each: any other type, made by
// embedding one, costs ∞, whatever its Loss says.
type Mechanism interface {
	// Kind is the mechanism's name in JSON.
	Kind() string
	// Loss is what one reward loses, under replace-one, when its slot goes through the mechanism
	// once.
	Loss() Loss
	// Continual mechanisms release a growing slot again and again for one charge: their noise
	// belongs to the slot.
	Continual() bool
	// Validate says what is wrong with the parameters, if anything. An invalid mechanism costs ∞.
	Validate() error

	// facts are what the ledger must know of it, beside its price.
	facts() facts
	// entry says what the noise is, in an entry of the ledger.
	entry() Entry
	// read is a mechanism of this kind from JSON, before Validate.
	read(data []byte) (Mechanism, error)
}

// mechanisms are all there are but Unknown, by their zero values: the table that a new one is in.
var mechanisms = tableOf(Exact{}, Laplace{}, Gaussian{}, Tree{}, Hybrid{}, Sparse{}, KAry{},
	SquareRoot{}, BLT{}, Questions{}, Sums{}, Elliptic{}, VectorGaussian{}, VectorLaplace{}, GramGaussian{},
	GramLaplace{}, VectorTree{}, GaussianVectorTree{}, GramTree{}, GramBLT{}, GramWishart{}, LaplaceHistogram{}, GaussianHistogram{},
	Aggregated{}, ShuffledCount{}, SplitMix{}, Clones{})

// A table has mechanisms in order, by their names in JSON, and their types.
type table struct {
	all    []Mechanism
	byName map[string]Mechanism
	byType map[reflect.Type]bool
}

func tableOf(all ...Mechanism) table {
	t := table{all, map[string]Mechanism{}, map[reflect.Type]bool{reflect.TypeFor[Unknown](): true}}
	for _, m := range all {
		t.byName[m.Kind()], t.byType[reflect.TypeOf(m)] = m, true
	}
	return t
}

// KindsOfSums are the names of those that release sums by simple draws: see Draws.
func KindsOfSums() []string {
	var names []string
	for _, m := range mechanisms.all {
		if d, ok := DrawsOf(m); ok && d.Sum {
			names = append(names, m.Kind())
		}
	}
	return names
}

// facts are what the ledger must know of a mechanism beside its price.
type facts struct {
	// sum and vector say what the price is for: a sum alone, all coordinates of a vector together.
	// Of anything else it says nothing, and that costs ∞.
	sum, vector bool
	// noises are the Laplace noises in a sum, the zero value where it has another law's.
	noises laplaces
	// longest is how many rewards a running sum may have, 0 where there is none to count, or where
	// it does not matter, as it costs ∞.
	longest int
	// leaf is what the number of rewards of a running vector is a multiple of, 0 for 1.
	leaf int
}

// scale checks a scale of noise; 0 is no noise.
func scale(kind, field string, x float64) error {
	if !(x >= 0 && x <= math.MaxFloat64) {
		return fmt.Errorf("mechanism %s: %s is %v, must be finite and at least 0", kind, field, x)
	}
	return nil
}

// A field is one of a mechanism's, as JSON has it: its name, and where its value is.
type field struct {
	name string
	at   any
}

// encode writes {"mechanism":kind, …} with these fields, in their order.
func encode(kind string, fields []field) ([]byte, error) {
	out := []byte("{")
	for i, f := range append([]field{{"mechanism", kind}}, fields...) {
		value, err := json.Marshal(f.at)
		if err != nil {
			return nil, fmt.Errorf("mechanism %s: %s: %w", kind, f.name, err)
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(strconv.AppendQuote(out, f.name), ':'), value...)
	}
	return append(out, '}'), nil
}

// decode reads what encode writes: all these fields, in any order, and no others.
func decode(kind string, data []byte, fields []field) error {
	var values map[string]json.RawMessage
	if err := json.Unmarshal(data, &values); err != nil {
		return fmt.Errorf("mechanism %s: %w", kind, err)
	}
	for _, f := range fields {
		value := values[f.name]
		if value == nil || string(value) == "null" {
			return fmt.Errorf("mechanism %s: the field %q is missing", kind, f.name)
		}
		if err := json.Unmarshal(value, f.at); err != nil {
			return fmt.Errorf("mechanism %s: %s: %w", kind, f.name, err)
		}
		delete(values, f.name)
	}
	delete(values, "mechanism")
	if len(values) > 0 {
		return fmt.Errorf("mechanism %s: it has no field %q", kind,
			slices.Min(slices.Collect(maps.Keys(values))))
	}
	return nil
}

// UnmarshalMechanism reads a mechanism from JSON. A kind that this package does not know gives
// Unknown; a known kind with a field missing, unknown or out of range is an error.
func UnmarshalMechanism(data []byte) (Mechanism, error) {
	var kind struct {
		Mechanism *string `json:"mechanism"`
	}
	if err := json.Unmarshal(data, &kind); err != nil {
		return nil, fmt.Errorf("mechanism: %w", err)
	}
	if kind.Mechanism == nil {
		return nil, errors.New(`mechanism: the field "mechanism" is missing, must name the kind, such as "laplace"`)
	}
	m, known := mechanisms.byName[*kind.Mechanism]
	if !known {
		m = Unknown{Name: *kind.Mechanism}
	}
	m, err := m.read(data)
	if err == nil {
		err = m.Validate()
	}
	if err != nil {
		return nil, err
	}
	return m, nil
}

// ScaleOf is the scale of the mechanism's noise, as an Entry of it has it.
func ScaleOf(m Mechanism) float64 { return m.entry().Scale }

// WithScale is the mechanism with another scale of its noise and all else as it is. It is false for
// those whose noise is made for something, or has not one scale.
func WithScale(m Mechanism, scale float64) (Mechanism, bool) {
	s, ok := m.(interface{ withScale(float64) Mechanism })
	if !ok {
		return nil, false
	}
	return s.withScale(scale), true
}

// Longest is how many rewards a running sum of a slot may have, 0 where the mechanism sets no bound.
func Longest(m Mechanism) int { return m.facts().longest }

func checkHorizon(kind string, horizon, most int) error {
	switch {
	case horizon < 1:
		return fmt.Errorf("mechanism %s: horizon is %d, must be at least 1", kind, horizon)
	case horizon > most:
		return fmt.Errorf("mechanism %s: horizon is %d, must be at most %d, since all its "+
			"noise is kept (use blt)", kind, horizon, most)
	}
	return nil
}

func treeShape(kind, field string, x float64, horizon int) error {
	return errors.Join(scale(kind, field, x), checkHorizon(kind, horizon, math.MaxInt))
}
