package privacy

import (
	"math"
	"math/bits"
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

// variance is that of the noise in the sum of the first t rewards.
func (m Hybrid) variance(t int) float64 {
	u := uint(t) + 1
	k := bits.Len(u) - 1 // finished segments
	nodes := (k + 1) * (k + 1) * (bits.OnesCount(u) - 1)
	return 2 * float64(m.Scale*m.Scale) * float64(k+nodes)
}

// Tails bound the noise in a sum by number k of finished segments: k variates Lap(Scale) and at
// most k nodes Lap(Scale·(k+1)). A sum of Laplace variates of scales b_i has P(sum >
// √(2x)·√(2Σb_i²) + max b_i·x) ≤ e^{-x}: see Tree.Tail, whose scales are equal. Discrete Laplace
// variates have smaller moments, so it holds for them as it is.
func (m Hybrid) Tails() []Tail {
	tails := make([]Tail, 64)
	for k := range tails {
		w := float64(m.Scale * float64(k+1))
		squares := float64(float64(k)*float64(m.Scale*m.Scale)) + float64(float64(k)*float64(w*w))
		tails[k] = Tail{Sigma: math.Sqrt(2 * squares), H: w}
	}
	return tails
}

func (m Hybrid) withScale(x float64) Mechanism { m.Scale = x; return m }

func (m Hybrid) draws() Draws {
	return Draws{Law: NoiseLaplace, Scale: m.Scale, Segments: true,
		Heaviest: func(t int) int { return bits.Len(uint(t) + 1) },
		Weights: func(to []int, t int) []int {
			u := uint(t) + 1
			k := bits.Len(u) - 1
			to = ones(to, k)
			for range bits.OnesCount(u) - 1 {
				to = append(to, k+1)
			}
			return to
		},
		Shows: func(to []Shown, t int) []Shown {
			k := bits.Len(uint(t)+1) - 1
			if p := t + 1 - 1<<k; p > 0 {
				return append(to, Shown{t - p&-p, k + 1})
			}
			return append(to, Shown{(t - 1) / 2, 1})
		}}
}

func (Hybrid) facts() facts     { return facts{sum: true, longest: math.MaxInt} }
func (m Hybrid) entry() Entry   { return Entry{Sensitivity: 1, Scale: m.Scale} }
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
