package privacy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/bits"
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

// Exact releases running sums without noise. It costs ∞.
type Exact struct{}

// Laplace releases a slot's sum plus Lap(Scale): 1/Scale-DP (000 Theorem 2.13). Its Rényi curve is
// exact (Mironov 2017, Proposition 6).
type Laplace struct{ Scale float64 }

// Gaussian releases a slot's sum plus N(0, Sigma²): 1/(2·Sigma²)-zCDP (000 Theorem 2.14). Its Rényi
// curve α/(2·Sigma²) and its δ(ε), that of GaussianDelta, are exact.
type Gaussian struct{ Sigma float64 }

// Tree releases every running sum of a slot of at most Horizon rewards through the binary tree
// mechanism (002 Algorithm 5), with Lap(Scale) on each node. A reward is in one node of each of the
// ⌊log₂ Horizon⌋+1 levels, so that its loss is that many Laplace releases: (⌊log₂
// Horizon⌋+1)/Scale-DP.
type Tree struct {
	Scale   float64
	Horizon int
}

// Hybrid releases every running sum of a slot of unknown length (Chan, Shi and Song 2010, §4): a
// Lap(Scale) for each finished segment [2^k, 2^(k+1)) and inside the current one a tree whose nodes
// have Lap(Scale·(k+1)). A reward is in one segment's sum, which is 1/Scale-DP, and in at most k+1
// nodes, which are together 1/Scale-DP: 2/Scale-DP.
type Hybrid struct{ Scale float64 }

// Unknown is a mechanism that was read from a file, or given to a ledger, and that this package
// cannot price. It costs ∞, and is written as it was read.
type Unknown struct {
	Name string // its kind
	raw  string // the JSON it was read from, if any; a string, so that mechanisms can be compared
}

func (Exact) Kind() string     { return "exact" }
func (Laplace) Kind() string   { return "laplace" }
func (Gaussian) Kind() string  { return "gaussian" }
func (Tree) Kind() string      { return "tree" }
func (Hybrid) Kind() string    { return "hybrid" }
func (m Unknown) Kind() string { return m.Name }

func (Exact) Continual() bool    { return true }
func (Laplace) Continual() bool  { return false }
func (Gaussian) Continual() bool { return false }
func (Tree) Continual() bool     { return true }
func (Hybrid) Continual() bool   { return true }
func (Unknown) Continual() bool  { return false }

// Loss is infinite.
func (Exact) Loss() Loss { return InfiniteLoss() }

// Loss is infinite.
func (Unknown) Loss() Loss { return InfiniteLoss() }

// Loss is that of the Laplace mechanism at sensitivity 1.
func (m Laplace) Loss() Loss {
	if m.Validate() != nil {
		return InfiniteLoss()
	}
	return laplaceLoss(divUp(1, m.Scale))
}

// Loss is that of the Gaussian mechanism at sensitivity 1.
func (m Gaussian) Loss() Loss {
	if m.Validate() != nil {
		return InfiniteLoss()
	}
	return gaussianLoss(divUp(1, squareDown(m.Sigma)))
}

// Loss is that of one Laplace release a level.
func (m Tree) Loss() Loss {
	if m.Validate() != nil {
		return InfiniteLoss()
	}
	return laplaceLevels(m.Scale, m.Levels())
}

// laplaceLevels is the loss of so many Laplace releases. Their ε is rounded once.
func laplaceLevels(scale float64, levels int) Loss {
	l := laplaceLoss(divUp(1, scale)).Times(levels)
	if l.t != nil && !l.Infinite() {
		t := *l.t
		t.pure = divUp(float64(levels), scale)
		l.t = &t
	}
	return l
}

// Levels is the number of nodes that a reward is in: ⌊log₂ Horizon⌋+1.
func (m Tree) Levels() int { return bits.Len(uint(m.Horizon)) }

// Loss is that of a Laplace release and of something 1/Scale-DP beside it.
func (m Hybrid) Loss() Loss {
	if m.Validate() != nil || m.Scale == 0 || math.IsInf(1/m.Scale, 1) {
		return InfiniteLoss()
	}
	l := laplaceLoss(divUp(1, m.Scale)).Add(LossOf(Pure{divUp(1, m.Scale)}))
	l.t.pure = divUp(2, m.Scale)
	return l
}

// Tail of no noise.
func (Exact) Tail() Tail { return Tail{} }

// Tail of Lap(b): P(noise > bx) = e^{−x}/2.
func (m Laplace) Tail() Tail { return Tail{H: m.Scale} }

// Tail of N(0,σ²): P(noise > σ√(2x)) ≤ e^{−x}.
func (m Gaussian) Tail() Tail { return Tail{Sigma: m.Sigma} }

// Tail of the noise in any running sum, which is at most Levels Laplaces. The logarithm of the
// moment generating function of Lap(b) at s is −log(1−b²s²) ≤ b²s²/(1−bs), so a sum of m of them
// has P(noise > 2b√(mx) + bx) ≤ e^{−x} (Boucheron, Lugosi and Massart 2013, §2.4).
func (m Tree) Tail() Tail {
	return Tail{Sigma: m.Scale * math.Sqrt(2*float64(m.Levels())), H: m.Scale}
}

// scale checks a scale of noise; 0 is no noise.
func scale(kind, field string, x float64) error {
	if !(x >= 0 && x <= math.MaxFloat64) {
		return fmt.Errorf("mechanism %s: %s is %v: it must be finite and at least 0", kind, field, x)
	}
	return nil
}

// Validate accepts Exact always.
func (Exact) Validate() error { return nil }

// Validate accepts 0 ≤ Scale < ∞.
func (m Laplace) Validate() error { return scale("laplace", "scale", m.Scale) }

// Validate accepts 0 ≤ Sigma < ∞.
func (m Gaussian) Validate() error { return scale("gaussian", "sigma", m.Sigma) }

// Validate accepts 0 ≤ Scale < ∞ and Horizon ≥ 1.
func (m Tree) Validate() error {
	if m.Horizon < 1 {
		return errors.Join(scale("tree", "scale", m.Scale),
			fmt.Errorf("mechanism tree: horizon is %d: it must be at least 1", m.Horizon))
	}
	return scale("tree", "scale", m.Scale)
}

// Validate accepts 0 ≤ Scale < ∞.
func (m Hybrid) Validate() error { return scale("hybrid", "scale", m.Scale) }

// Validate accepts Unknown always: it may be recorded, at a cost of ∞.
func (Unknown) Validate() error { return nil }

func (m Exact) String() string    { return "exact" }
func (m Laplace) String() string  { return "laplace(scale=" + number(m.Scale) + ")" }
func (m Gaussian) String() string { return "gaussian(sigma=" + number(m.Sigma) + ")" }
func (m Tree) String() string {
	return fmt.Sprintf("tree(scale=%s,horizon=%d)", number(m.Scale), m.Horizon)
}
func (m Hybrid) String() string  { return "hybrid(scale=" + number(m.Scale) + ")" }
func (m Unknown) String() string { return fmt.Sprintf("unknown(%q)", m.Name) }

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

// MarshalJSON writes {"mechanism":"exact"}.
func (m Exact) MarshalJSON() ([]byte, error) { return json.Marshal(mechanismJSON{Mechanism: m.Kind()}) }

// MarshalJSON writes {"mechanism":"laplace","scale":1}.
func (m Laplace) MarshalJSON() ([]byte, error) {
	return json.Marshal(mechanismJSON{Mechanism: m.Kind(), Scale: &m.Scale})
}

// MarshalJSON writes {"mechanism":"gaussian","sigma":1}.
func (m Gaussian) MarshalJSON() ([]byte, error) {
	return json.Marshal(mechanismJSON{Mechanism: m.Kind(), Sigma: &m.Sigma})
}

// MarshalJSON writes {"mechanism":"tree","scale":1,"horizon":8}.
func (m Tree) MarshalJSON() ([]byte, error) {
	return json.Marshal(mechanismJSON{Mechanism: m.Kind(), Scale: &m.Scale, Horizon: &m.Horizon})
}

// MarshalJSON writes {"mechanism":"hybrid","scale":1}.
func (m Hybrid) MarshalJSON() ([]byte, error) {
	return json.Marshal(mechanismJSON{Mechanism: m.Kind(), Scale: &m.Scale})
}

// MarshalJSON writes what was read.
func (m Unknown) MarshalJSON() ([]byte, error) {
	if m.raw != "" {
		return []byte(m.raw), nil
	}
	return json.Marshal(mechanismJSON{Mechanism: m.Name})
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
