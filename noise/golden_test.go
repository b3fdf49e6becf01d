package noise

import (
	"encoding/binary"
	"fmt"
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
		f := testStream("golden " + c.name)
		checkDraws(t, c.name, c.draws, func() int64 { return c.draw(f) }, c.want)
	}
}

// checkDraws compares the hash of n draws.
func checkDraws(t *testing.T, name string, n int, draw func() int64, want uint64) {
	t.Helper()
	h := fnv.New64a()
	var b [8]byte
	for range n {
		binary.LittleEndian.PutUint64(b[:], uint64(draw()))
		h.Write(b[:])
	}
	if got := h.Sum64(); got != want {
		t.Errorf("%s: other draws, hash %#x, want %#x", name, got, want)
	}
}

// The same of the exact samplers, whose draws from a key's ChaCha8 stream repeat.
func TestExactGolden(t *testing.T) {
	names, samplers := exactSamplers(t)
	add := func(name string, d drawer, err error) {
		if err != nil {
			t.Fatal(err)
		}
		names, samplers = append(names, name), append(samplers, d)
	}
	for _, c := range []struct{ num, den uint64 }{
		{2, 5}, {1, 1}, {6, 5}, {7, 4}, {2, 1}, {14, 5}, {5, 1}, {50, 3}, {1000, 1},
	} {
		p, err := NewPoisson(c.num, c.den)
		add(fmt.Sprintf("Poisson(%d/%d)", c.num, c.den), p, err)
		s, err := NewSkellam(c.num, c.den)
		add(fmt.Sprintf("Skellam(%d/%d)", c.num, c.den), s, err)
	}
	for _, c := range []struct{ n, num, den uint64 }{
		{1, 37, 10}, {2, 10, 1}, {3, 100, 1}, {10, 1000, 1}, {63, 50, 1}, {64, 50, 1}, {1000, 70, 3},
	} {
		b, err := NewNegativeBinomial(c.n, c.num, c.den)
		add(fmt.Sprintf("negative binomial(1/%d, %d/%d)", c.n, c.num, c.den), b, err)
		d, err := NewPolyaDifference(c.n, c.num, c.den)
		add(fmt.Sprintf("difference(1/%d, %d/%d)", c.n, c.num, c.den), d, err)
	}
	want := []uint64{
		0xca662abe6cef6725, 0xca662abe6cef6725, 0xca662abe6cef6725, 0xf758d3452acca74e,
		0xeec516c64350ed07, 0xaf33e3b5525bb097, 0x91c34cfd332bec76, 0xbb64a9b1959de5a5,
		0xb8af87a2bc64e404, 0xe123760b9f4aa3b0, 0x6cb6dca458726bcf, 0xdbdf636df1fa7289,
		0xac28d6ad63615af9, 0xa2ba6d85cf2b4485, 0x4b392594756bf23e, 0x279311f5be88dd51,
		0x795a54829d3a405c, 0x8640e3a9bcde6316, 0x68994243a94b928f, 0xc1793b1b819d0e1d,
		0x1aaa98cd39d46d52, 0xde8164a6da4c4f04, 0xb67fc8345480b55e, 0x733faa60392c91c5,
		0x92b95b8cd0be0dae, 0xbeeaf565fbd1a521, 0x98c63ff000fe426, 0x47552cb5c522c5c0,
		0xf527ba20c3713b38, 0xe5312ea9372b72d, 0x268b69fde8e28e39, 0x846ef430765045c2,
		0x5a5ece38d7d83e3b, 0x1a43b605ccdb7326, 0x89d74d46873c0142, 0x17985febcf3046f1,
		0x5cebdbceb298511b, 0x7df63810a0d52f24, 0xfbca4f43d1e05887, 0x8b77e3e1e484f3ca,
		0x6b6d9f2a6b204a30, 0x5e8ff6d6faff5f1d, 0x8b7bdd5d103bd294, 0x819b7ce1b1d2cff9,
		0x6e1d990fec0d802c, 0x26510d6d4c61d725, 0xeada9085a5468f34, 0x90528e82d21399d9,
		0xc058d63e24c820c2, 0x51c53094436ca4a2, 0xc3ceb8f5543170c4, 0x772949d346d85120,
		0x85141db189249e62, 0x6640513a619af603, 0x6b055a32164e407,
	}
	if len(want) != len(samplers) {
		t.Fatalf("%d hashes for %d samplers", len(want), len(samplers))
	}
	for i, d := range samplers {
		src := Key{Seed: 7, Experiment: "golden " + names[i]}.ChaCha8()
		checkDraws(t, names[i], 4000, func() int64 {
			x, err := d.Draw(src)
			if err != nil {
				return math.MinInt64
			}
			return x
		}, want[i])
	}
}

// A law that is the constant 0 costs no word: what a stream draws next does not depend on it.
func TestFastConstants(t *testing.T) {
	f := testStream("constants")
	before := *f
	for _, zero := range []float64{0, math.Copysign(0, -1)} {
		for i, x := range []int64{f.Geometric(zero), f.DiscreteLaplace(zero),
			f.DiscreteGaussian(zero), f.Poisson(zero), f.Skellam(zero), f.NegativeBinomial(zero, 3),
			f.NegativeBinomial(0.5, zero), f.PolyaDifference(zero, 3), f.PolyaDifference(0.5, zero),
			int64(f.Binomial(1, zero)), int64(f.Binomial(0, 1e-5))} {
			if x != 0 || *f != before {
				t.Errorf("sampler %d of %v is %d, or not without a word", i, zero, x)
				*f = before
			}
		}
	}
}
