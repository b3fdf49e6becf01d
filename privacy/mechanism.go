package privacy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
)

// A Mechanism says how a slot of rewards in [0,1], or of vectors with rewards in [−1,1], is
// released: the noise itself, not a promise about it. It is data: a policy states it, a file shows
// it, package release builds it and the ledger prices it. Scale 0 is no noise and costs ∞, so that
// "no privacy" needs no branch.
//
// The mechanisms of this package are all there are for the ledger: any other type costs ∞,
// whatever its Loss says.
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
}

// scale checks a scale of noise; 0 is no noise.
func scale(kind, field string, x float64) error {
	if !(x >= 0 && x <= math.MaxFloat64) {
		return fmt.Errorf("mechanism %s: %s is %v: it must be finite and at least 0", kind, field, x)
	}
	return nil
}

// mechanismJSON has the fields of every mechanism.
type mechanismJSON struct {
	Mechanism string   `json:"mechanism"`
	Scale     *float64 `json:"scale,omitempty"`
	Sigma     *float64 `json:"sigma,omitempty"`
	Base      *int     `json:"base,omitempty"`
	Horizon   *int     `json:"horizon,omitempty"`
	// Of a BLT's buffers.
	Decay  []float64 `json:"decay,omitempty"`
	Weight []float64 `json:"weight,omitempty"`
	// Of running matrices and vectors.
	Dim     *int     `json:"dim,omitempty"`
	Degrees *int     `json:"degrees,omitempty"`
	Delta   *float64 `json:"delta,omitempty"`
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
		return nil, errors.New(`mechanism: the field "mechanism" is missing: it must name the kind, such as "laplace"`)
	}
	name := *kind.Mechanism
	if name == "sparse" || name == "questions" {
		return unmarshalSparse(name, data)
	}
	if name == "elliptic" {
		return unmarshalElliptic(data)
	}
	if name == "aggregated" || name == "shuffled-count" || name == "split-mix" || name == "clones" {
		return unmarshalDistributed(name, data)
	}
	// Which of scale, sigma, horizon, base, buffers, dim, degrees and delta the kind has.
	want, known := map[string][8]bool{"exact": {}, "laplace": {true}, "gaussian": {1: true},
		"tree": {true, false, true}, "hybrid": {true},
		"kary": {0: true, 2: true, 3: true}, "sqrt": {1: true, 2: true}, "blt": {1: true, 2: true, 4: true},
		"vector-gaussian": {1: true}, "sums": {1: true}, "gram-tree": {1: true, 2: true},
		"gram-blt":             {1: true, 2: true, 4: true},
		"gram-wishart":         {0: true, 2: true, 5: true, 6: true, 7: true},
		"vector-tree":          {0: true, 2: true, 5: true},
		"gaussian-vector-tree": {1: true, 2: true}}[name]
	if !known {
		var raw bytes.Buffer
		if err := json.Compact(&raw, data); err != nil {
			return nil, fmt.Errorf("mechanism: %w", err)
		}
		return Unknown{Name: name, raw: raw.String()}, nil
	}
	var f mechanismJSON
	if err := strict(data, &f); err != nil {
		return nil, fmt.Errorf("mechanism %s: %w", name, err)
	}
	for i, c := range []struct {
		name string
		has  bool
	}{{"scale", f.Scale != nil}, {"sigma", f.Sigma != nil}, {"horizon", f.Horizon != nil},
		{"base", f.Base != nil},
		{"decay", f.Decay != nil || f.Weight != nil}, {"dim", f.Dim != nil},
		{"degrees", f.Degrees != nil}, {"delta", f.Delta != nil}} {
		if c.has && !want[i] {
			return nil, fmt.Errorf("mechanism %s: it has no field %q", name, c.name)
		}
		if !c.has && want[i] {
			return nil, fmt.Errorf("mechanism %s: the field %q is missing", name, c.name)
		}
	}
	var m Mechanism
	switch name {
	case "exact":
		m = Exact{}
	case "laplace":
		m = Laplace{*f.Scale}
	case "gaussian":
		m = Gaussian{*f.Sigma}
	case "tree":
		m = Tree{*f.Scale, *f.Horizon}
	case "kary":
		m = KAry{*f.Scale, *f.Base, *f.Horizon}
	case "sqrt":
		m = SquareRoot{*f.Sigma, *f.Horizon}
	case "blt", "gram-blt":
		blt, err := newBLT(*f.Sigma, *f.Horizon, f.Decay, f.Weight)
		if err != nil {
			return nil, err
		}
		m = blt
		if name == "gram-blt" {
			m = GramBLT{blt}
		}
	case "gram-tree":
		m = GramTree{*f.Sigma, *f.Horizon}
	case "gram-wishart":
		m = GramWishart{*f.Scale, *f.Degrees, *f.Dim, *f.Horizon, *f.Delta}
	case "vector-tree":
		m = VectorTree{*f.Scale, *f.Dim, *f.Horizon}
	case "gaussian-vector-tree":
		m = GaussianVectorTree{*f.Sigma, *f.Horizon}
	case "vector-gaussian":
		m = VectorGaussian{*f.Sigma}
	case "sums":
		m = Sums{*f.Sigma}
	default:
		m = Hybrid{*f.Scale}
	}
	if err := m.Validate(); err != nil {
		return nil, err
	}
	return m, nil
}

func checkHorizon(kind string, horizon, most int) error {
	switch {
	case horizon < 1:
		return fmt.Errorf("mechanism %s: horizon is %d: it must be at least 1", kind, horizon)
	case horizon > most:
		return fmt.Errorf("mechanism %s: horizon is %d: it must be at most %d, since all its "+
			"noise is kept (use blt)", kind, horizon, most)
	}
	return nil
}

func treeShape(kind, field string, x float64, horizon int) error {
	return errors.Join(scale(kind, field, x), checkHorizon(kind, horizon, math.MaxInt))
}
