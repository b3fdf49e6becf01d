package noise

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestKeysDiffer(t *testing.T) {
	base := Key{Seed: 1, Experiment: "ab", Cell: "c", Run: 2, Role: RoleNoise}
	keys := []Key{base}
	change := func(f func(*Key)) {
		k := base
		f(&k)
		keys = append(keys, k)
	}
	change(func(k *Key) { k.Seed = 2 })
	change(func(k *Key) { k.Run = 1 })
	change(func(k *Key) { k.Run = -2 })
	change(func(k *Key) { k.Seed, k.Run = 2, 1 })
	change(func(k *Key) { k.Experiment = "abc" })
	change(func(k *Key) { k.Cell = "d" })
	change(func(k *Key) { k.Cell = "" })
	for _, r := range []Role{RoleInstance, RoleReward, RolePolicy, ""} {
		change(func(k *Key) { k.Role = r })
	}
	// Fields that read the same when they are joined.
	change(func(k *Key) { k.Experiment, k.Cell = "abc", "" })
	change(func(k *Key) { k.Experiment, k.Cell = "", "abc" })
	change(func(k *Key) { k.Experiment, k.Cell = "a", "bc" })
	change(func(k *Key) { k.Cell, k.Role = "cn", "oise" })
	change(func(k *Key) { k.Experiment, k.Cell = "ab\x01\x00\x00\x00\x00\x00\x00\x00c", "" })

	seen := map[uint64]Key{}
	for _, k := range keys {
		words := []uint64{k.ChaCha8().Uint64()}
		for _, f := range k.Fast(3) {
			words = append(words, f.Uint64())
		}
		for _, w := range words {
			if other, ok := seen[w]; ok {
				t.Errorf("%+v and %+v share a word", k, other)
			}
			seen[w] = k
		}
	}
}

func TestKeyStreamsDoNotDependOnHowManyAreMade(t *testing.T) {
	k := Key{Seed: 3, Experiment: "x", Role: RoleReward}
	many := k.Fast(100)
	var few [7]Fast
	k.FillFast(few[:])
	for i := range few {
		if few[i] != many[i] {
			t.Errorf("stream %d differs", i)
		}
	}
	if got := len(k.Fast(-1)); got != 0 {
		t.Errorf("Fast(-1) has %d streams", got)
	}
}

// The words of a key are part of what a seed promises: results of old experiments change with them.
func TestKeyGolden(t *testing.T) {
	k := Key{Seed: 1, Experiment: "world", Cell: "adap-ucb epsilon=1", Run: 5, Role: RoleReward}
	f := k.Fast(2)
	got := [...]uint64{f[0].Uint64(), f[0].Uint64(), f[1].Uint64(), k.ChaCha8().Uint64(),
		Key{}.ChaCha8().Uint64()}
	want := [...]uint64{0x8ad6788b507fc084, 0xa8761c5f6a60b0e5, 0x438b7b961f856ddc,
		0xbf53666d20f68f39, 0xfaace8685f8fc397}
	if got != want {
		t.Errorf("words are %#x, want %#x", got, want)
	}
}

func TestKeyInjective(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func() Key {
			s := rapid.StringOfN(rapid.RuneFrom([]rune("ab\x00\x01")), 0, 4, -1)
			return Key{rapid.Uint64Range(0, 2).Draw(t, "seed"), s.Draw(t, "experiment"), s.Draw(t, "cell"),
				rapid.IntRange(-1, 1).Draw(t, "run"), Role(s.Draw(t, "role"))}
		}
		a, b := draw(), draw()
		if (a == b) != (a.seed(useFast) == b.seed(useFast)) || a.seed(useFast) == a.seed(useChaCha8) {
			t.Fatalf("%+v and %+v", a, b)
		}
	})
}

// Streams of neighbouring runs, and of one key, must be uncorrelated: the mean product of two
// uniform numbers less a half has standard deviation 1/12/√n.
func TestStreamsAreUncorrelated(t *testing.T) {
	const n = 100_000
	k := Key{Seed: 1, Experiment: "x", Role: RoleReward}
	fs := k.Fast(2)
	k.Run = 1
	fs = append(fs, k.Fast(1)...)
	for i := range fs {
		for j := range i {
			a, b := fs[i], fs[j]
			checkMean(t, "product", n, func() float64 {
				return (a.Float64() - 0.5) * (b.Float64() - 0.5)
			}, 0, 1./12)
		}
	}
}

func TestSecure(t *testing.T) {
	a, err := Secure()
	if err != nil {
		t.Fatal(err)
	}
	b, err := Secure()
	if err != nil {
		t.Fatal(err)
	}
	if a.Uint64() == b.Uint64() { // by chance: 2^-64
		t.Error("two generators agree")
	}
}

func TestNoAllocations(t *testing.T) {
	f := testStream("allocations")
	src := Key{}.ChaCha8()
	names, samplers := exactSamplers(t)
	s := 0.0
	check := func(name string, draw func()) {
		if a := testing.AllocsPerRun(200, draw); a != 0 {
			t.Errorf("%s: %v allocations", name, a)
		}
	}
	check("exponential", func() { s += f.Exponential() })
	check("laplace", func() { s += f.Laplace(1) })
	check("normal", func() { s += f.Normal() })
	check("binomial", func() {
		s += float64(f.Binomial(50, 0.3) + f.Binomial(1000, 0.001) + f.Binomial(1e6, 0.3))
	})
	for i, d := range samplers {
		check(names[i], func() {
			if _, err := d.Draw(src); err != nil {
				t.Fatal(err)
			}
		})
	}
	if math.IsNaN(s) {
		t.Error("NaN")
	}
}
