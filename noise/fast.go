package noise

import (
	"math"
	"math/rand/v2"
)

// Fast is a stream of fast floating-point randomness, for simulation only: a value, so that a run's streams live side by side
// without allocation.
type Fast struct{ pcg rand.PCG }

// NewFast returns the stream with this seed.
func NewFast(hi, lo uint64) Fast { return Fast{pcg: *rand.NewPCG(hi, lo)} }

// Uint64 returns the next word.
func (f *Fast) Uint64() uint64 { return f.pcg.Uint64() }

// Float64 is uniform on [0,1) with 53 bits.
func (f *Fast) Float64() float64 { return float64(f.pcg.Uint64()>>11) * 0x1p-53 }

// Exponential has density e^{-x}.
func (f *Fast) Exponential() float64 { return -math.Log1p(-f.Float64()) }

// Laplace has density e^{-|x|/b}/(2b).
func (f *Fast) Laplace(b float64) float64 {
	x := f.Exponential() * b
	if f.Uint64()&1 == 0 {
		return -x
	}
	return x
}

// Normal is standard.
func (f *Fast) Normal() float64 { return rand.New(f).NormFloat64() }

// Binomial is the number of successes in n trials of probability p.
func (f *Fast) Binomial(n int, p float64) int {
	k := 0
	for range n {
		if f.Float64() < p {
			k++
		}
	}
	return k
}
