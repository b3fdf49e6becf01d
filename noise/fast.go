package noise

// Fast is a stream of fast floating-point randomness, for simulation only: a value, so that a run's
// streams live side by side without allocation. Its methods are exact in law up to the rounding of
// double arithmetic: uniform variates have 53 bits, and no sampler stands in for another law. A
// copy of a stream repeats the stream.
type Fast struct{ pcg pcg }

// NewFast returns the stream with this seed. Take seeds from a [Key]; nearby seeds are not meant to
// be used together.
func NewFast(hi, lo uint64) Fast { return Fast{pcg{hi, lo}} }

// Uint64 returns the next word. It makes *Fast a source of math/rand/v2.
func (f *Fast) Uint64() uint64 { return f.pcg.Uint64() }

// Float64 is uniform on the multiples of 2^-53 in [0,1).
func (f *Fast) Float64() float64 { return float64(int64(f.pcg.Uint64()>>11)) * 0x1p-53 }

// Bernoulli is true with probability p exactly, for any double p: at most 0 or NaN is never, at
// least 1 is always.
func (f *Fast) Bernoulli(p float64) bool {
	// The word is the first 53 binary digits of a uniform number, and d > 0 compares them with
	// those of p. Scaling by 2^53 is exact. For 0 < d < 1 the digits tie; then the subtraction is
	// exact too and d is what p's further digits amount to.
	f.pcg = f.pcg.step()
	d := float64(p*0x1p53) - float64(int64(f.pcg.word()>>11))
	if d > 0 && d < 1 {
		return f.Bernoulli(d)
	}
	return d > 0
}
