package privacy

import (
	"math"
)

// Hybrid releases every running sum of a slot of unknown length (Chan, Shi and Song 2010, §4): a
// Lap(Scale) for each finished segment [2^k, 2^(k+1)) and inside the current one a tree whose nodes
// have Lap(Scale·(k+1)). A reward is in one segment's sum, which is 1/Scale-DP, and in at most k+1
// nodes, which are together 1/Scale-DP: 2/Scale-DP.
type Hybrid struct{ Scale float64 }

func (Hybrid) Kind() string    { return "hybrid" }
func (Hybrid) Continual() bool { return true }

// Validate accepts 0 ≤ Scale < ∞.
func (m Hybrid) Validate() error { return scale("hybrid", "scale", m.Scale) }

// Loss is that of a Laplace release and of something 1/Scale-DP beside it.
func (m Hybrid) Loss() Loss {
	if m.Validate() != nil || m.Scale == 0 || math.IsInf(1/m.Scale, 1) {
		return InfiniteLoss()
	}
	l := laplaceLoss(divUp(1, m.Scale)).Add(LossOf(Pure{divUp(1, m.Scale)}))
	l.t.pure = divUp(2, m.Scale)
	return l
}

func (Hybrid) facts() facts     { return facts{sum: true, longest: math.MaxInt} }
func (m Hybrid) entry(e *Entry) { e.Sensitivity, e.Scale = 1, m.Scale }
func (m Hybrid) String() string { return "hybrid(scale=" + number(m.Scale) + ")" }

func (m *Hybrid) fields() []field {
	return []field{{"scale", &m.Scale}}
}

// MarshalJSON writes {"mechanism":"hybrid","scale":1}.
func (m Hybrid) MarshalJSON() ([]byte, error) { return encode(m.Kind(), m.fields()) }

func (m Hybrid) read(data []byte) (Mechanism, error) {
	err := decode(m.Kind(), data, m.fields())
	return m, err
}
