package privacy

import "reflect"

// Draws say how the noise in what a mechanism releases is made of independent draws. A mechanism's
// own file says it, beside its price: curators and auditors ask, and know no mechanism by name.
type Draws struct {
	Sum   bool      // of single sums, else of vectors
	Once  bool      // a slot is released once, with a draw for each number, and is emptied then
	Law   NoiseName // of each draw, NoiseLaplace or NoiseGaussian; empty where there is no noise
	Scale float64   // b of Lap(b), σ of N(0,σ²)

	// Of running sums alone. The noise of nodes of a binary tree over the slot, or over each of
	// segments that double in length, is package release's to keep. That of others is a Stream,
	// Whole where its coefficients are integers, so that real rewards can have it.
	Segments bool
	Float    func() Stream[float64]
	Whole    func() Stream[int64]
	Most     int             // draws in a sum of a Stream, 0 where their number does not matter
	Heaviest func(t int) int // the largest weight of a draw in sums of up to t rewards; nil for 1
	// Variance is that of the noise in the sum of the first t rewards, nil where each has one draw.
	Variance func(t int) float64
	Weights  func(to []int, t int) []int // those of the draws that it is a sum of

	// What an auditor who knows all releases up to the sum of the first t sees for the first time:
	// either sums of the rewards after some, each with one draw, or Cx + z for a matrix C with the
	// same numbers c_0 = 1, c_1, … in each column: the next one, after those before.
	Shows  func(to []Shown, t int) []Shown
	Column func(before []float64) float64
}

// Shown is the sum of the rewards after the first From, with a draw of this weight.
type Shown struct{ From, Weight int }

// A Sampler draws noise independent of all before: a mechanism's law with its scale times weight.
type Sampler[T int64 | float64] interface {
	Draw(weight int) (T, error)
}

// A Stream is the noise of one slot's running sums.
type Stream[T int64 | float64] interface {
	// At is the noise in the sum of the first t rewards. t never decreases; if a draw fails, what
	// was drawn is kept.
	At(t uint64, noise Sampler[T]) (T, error)
}

// DrawsOf are those of a mechanism; false if its noise is not so simple, or not of this package.
func DrawsOf(m Mechanism) (Draws, bool) {
	of, ok := m.(interface{ draws() Draws })
	if !ok || !mechanisms.byType[reflect.TypeOf(m)] {
		return Draws{}, false
	}
	d := of.draws()
	// The price of noise for vectors holds for a sum alone, of which it knows no tail.
	f := m.facts()
	d.Sum = f.sum && (!f.vector || d.Law == "")
	if v, ok := m.(interface{ variance(t int) float64 }); ok {
		d.Variance = v.variance
	}
	return d, true
}

// lastNode is what a tree's sum of the first t shows for the first time: its shortest node.
func lastNode(to []Shown, t int) []Shown { return append(to, Shown{t - t&-t, 1}) }

// ones adds n weights of 1.
func ones(to []int, n int) []int {
	for range n {
		to = append(to, 1)
	}
	return to
}
