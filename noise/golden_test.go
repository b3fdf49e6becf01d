package noise

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"testing"
)

// What a seed draws is promised, as the words of a key are (TestKeyGolden): results of old
// experiments change with it. That the draws have the right laws is for the tests of the laws to
// say; this one sees whether they are still the same draws, the ways between which a sampler
// chooses included. Numbers are compared to six places, integers exactly.
func TestFastGolden(t *testing.T) {
	real := func(draw func(*Fast) float64) func(*Fast) int64 {
		return func(f *Fast) int64 { return int64(math.Round(1e6 * draw(f))) }
	}
	beta := func(a, b float64) func(*Fast) int64 {
		return real(func(f *Fast) float64 { return f.Beta(a, b) })
	}
	gamma := func(a float64) func(*Fast) int64 {
		return real(func(f *Fast) float64 { return f.LogGamma(a) })
	}
	binomial := func(n int, p float64) func(*Fast) int64 {
		return func(f *Fast) int64 { return int64(f.Binomial(n, p)) }
	}
	// law is a sampler with one parameter, law2 with two.
	law := func(draw func(*Fast, float64) int64, p float64) func(*Fast) int64 {
		return func(f *Fast) int64 { return draw(f, p) }
	}
	law2 := func(draw func(*Fast, float64, float64) int64, p, q float64) func(*Fast) int64 {
		return func(f *Fast) int64 { return draw(f, p, q) }
	}
	for _, c := range []struct {
		name  string
		draws int
		draw  func(*Fast) int64
		want  uint64
	}{
		{"uniform", 1000, real((*Fast).Float64), 0xc9a50feb9da3f17d},
		{"exponential", 100_000, real((*Fast).Exponential), 0x5f1817f105e10a8},
		{"Laplace", 100_000, real(func(f *Fast) float64 { return f.Laplace(3) }), 0xc5b23f988c0a08c1},
		{"normal", 100_000, real((*Fast).Normal), 0x6d477626ca765a28},
		{"gamma(0.2)", 10_000, gamma(0.2), 0x5096eee2951082d6},
		{"gamma(1)", 100_000, gamma(1), 0x4cc050d9f7082f26},
		{"gamma(40)", 10_000, gamma(40), 0xcf087509730dad5a},
		{"beta(0.3, 0.5)", 10_000, beta(0.3, 0.5), 0xae80114e8968aed6},
		{"beta(1, 0.5)", 10_000, beta(1, 0.5), 0xa9f6c501ebd4831c},
		{"beta(0.5, 1)", 10_000, beta(0.5, 1), 0x7c9dfb7ed710a29f},
		{"beta(1, 2)", 10_000, beta(1, 2), 0xfb134f23eb555e2d},
		{"beta(2, 1)", 10_000, beta(2, 1), 0x529263dda02d1115},
		{"geometric(3.7)", 10_000, law((*Fast).Geometric, 3.7), 0x8a5ed17a07e56055},
		{"discrete Laplace(1)", 10_000, law((*Fast).DiscreteLaplace, 1), 0xaee19f804cac524b},
		{"discrete Laplace(70)", 10_000, law((*Fast).DiscreteLaplace, 70), 0x76cbeb81bfc1ac72},
		{"discrete Gaussian(0.5)", 10_000, law((*Fast).DiscreteGaussian, 0.5), 0x57a871a1e5d8232c},
		{"discrete Gaussian(100)", 10_000, law((*Fast).DiscreteGaussian, 100), 0x465590fb1a491cf7},
		{"Poisson(1)", 10_000, law((*Fast).Poisson, 1), 0xf04fe96c14760167},
		{"Poisson(10)", 300_000, law((*Fast).Poisson, 10), 0xb260f938dc03408b},
		{"Poisson(33.4)", 100_000, law((*Fast).Poisson, 33.4), 0x8101f6c23dcee435},
		{"Poisson(1e6)", 10_000, law((*Fast).Poisson, 1e6), 0xd41846acb1c686b4},
		{"Skellam(5)", 10_000, law((*Fast).Skellam, 5), 0x6c060f9e588d9388},
		{"negative binomial(0.5, 5)", 10_000, law2((*Fast).NegativeBinomial, 0.5, 5), 0xe1eae5b74414249e},
		{"negative binomial(2.5, 30)", 10_000, law2((*Fast).NegativeBinomial, 2.5, 30),
			0xd083ecfe56b049cb},
		{"difference(0.5, 5)", 10_000, law2((*Fast).PolyaDifference, 0.5, 5), 0xc2d16d5a26140d7},
		{"difference(2.5, 30)", 10_000, law2((*Fast).PolyaDifference, 2.5, 30), 0x278e3bcf395af3bf},
		{"binomial(50, 0.3)", 10_000, binomial(50, 0.3), 0xd16ffe83c6000b3c},
		{"binomial(64, 0.3)", 10_000, binomial(64, 0.3), 0xa5932ecd3e666c30},
		{"binomial(64, 1e-4)", 10_000, binomial(64, 1e-4), 0xa40f66991c016725},
		{"binomial(128, 0.3)", 10_000, binomial(128, 0.3), 0xb447c106ccd3fffe},
		{"binomial(1000, 0.001)", 10_000, binomial(1000, 0.001), 0x7397c352a9ea0381},
		{"binomial(160, 1/16)", 100_000, binomial(160, 1./16), 0xdfa1d77066c36fd2},
		{"binomial(200, 0.05)", 100_000, binomial(200, 0.05), 0xf96e9d3766befc52},
		{"binomial(200, 0.5)", 10_000, binomial(200, 0.5), 0xd10f8ec33bed94c5},
		{"binomial(200, 0.95)", 10_000, binomial(200, 0.95), 0xe194b4600e2feee5},
		{"binomial(1e9, 0.3)", 10_000, binomial(1e9, 0.3), 0x9b31139df624610e},
	} {
		f, h := testStream("golden "+c.name), fnv.New64a()
		var b [8]byte
		for range c.draws {
			binary.LittleEndian.PutUint64(b[:], uint64(c.draw(f)))
			h.Write(b[:])
		}
		if got := h.Sum64(); got != c.want {
			t.Errorf("%s: other draws, hash %#x, want %#x", c.name, got, c.want)
		}
	}
}

// A law that is the constant 0 costs no word: what a stream draws next does not depend on it.
func TestFastConstants(t *testing.T) {
	f := testStream("constants")
	before := *f
	for _, zero := range []float64{0, math.Copysign(0, -1)} {
		for i, x := range []int64{f.Geometric(zero), f.DiscreteLaplace(zero), f.Poisson(zero),
			f.Skellam(zero), f.NegativeBinomial(zero, 3), f.NegativeBinomial(0.5, zero),
			f.PolyaDifference(zero, 3), f.PolyaDifference(0.5, zero),
			int64(f.Binomial(1, zero)), int64(f.Binomial(0, 1e-5))} {
			if x != 0 || *f != before {
				t.Errorf("sampler %d of %v is %d, or not without a word", i, zero, x)
				*f = before
			}
		}
	}
}
