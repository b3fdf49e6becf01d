package noise

import (
	"math/rand/v2"
	"testing"
)

// The generator is that of the standard library, word for word.
func TestPCGIsTheStandardOne(t *testing.T) {
	for _, seed := range [][2]uint64{{0, 0}, {1, 2}, {^uint64(0), 1 << 63}} {
		f, want := NewFast(seed[0], seed[1]), rand.NewPCG(seed[0], seed[1])
		for i := range 10_000 {
			if got, want := f.Uint64(), want.Uint64(); got != want {
				t.Fatalf("seed %v, word %d: %x, want %x", seed, i, got, want)
			}
		}
	}
}

// Normals is Normal, again and again, edges and tails included, and leaves the stream
// where that leaves it.
func TestNormalsAreNormal(t *testing.T) {
	f, one := NewFast(1, 2), NewFast(1, 2)
	for n := range 2000 {
		x := make([]float64, n)
		f.Normals(x)
		for i := range x {
			if want := one.Normal(); x[i] != want {
				t.Fatalf("draw %d of %d: %v, want %v", i, n, x[i], want)
			}
		}
	}
	if f.Uint64() != one.Uint64() {
		t.Error("the stream is elsewhere")
	}
}

func BenchmarkNormals(b *testing.B) {
	f := benchStream()
	var x [30]float64
	b.ReportAllocs()
	for b.Loop() {
		f.Normals(x[:])
	}
	sinkFloat = x[0]
}
