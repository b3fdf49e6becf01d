package noise

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// Sinks, so that no draw is optimised away.
var (
	sinkFloat float64
	sinkInt   int64
	sinkWord  uint64
)

func benchStream() Fast { return Key{Seed: 1, Role: RoleNoise}.Fast(1)[0] }

func BenchmarkKeyFillFast(b *testing.B) {
	b.ReportAllocs()
	k := Key{Seed: 1, Experiment: "0123456789abcdef0123456789abcdef", Cell: "adap-klucb epsilon=1",
		Role: RoleNoise}
	var dst [5]Fast
	for b.Loop() {
		k.Run++
		k.FillFast(dst[:])
	}
	sinkWord = dst[0].Uint64()
}

func BenchmarkFast(b *testing.B) {
	for _, c := range []struct {
		name string
		draw func(*Fast) float64
	}{
		{"float64", (*Fast).Float64},
		{"exponential", (*Fast).Exponential},
		{"laplace", func(f *Fast) float64 { return f.Laplace(3) }},
		{"normal", (*Fast).Normal},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			f := benchStream()
			s := 0.0
			for b.Loop() {
				s += c.draw(&f)
			}
			sinkFloat = s
		})
	}
}

func BenchmarkFastLaplaceDirect(b *testing.B) {
	b.ReportAllocs()
	f := benchStream()
	s := 0.0
	for b.Loop() {
		s += f.Laplace(3)
	}
	sinkFloat = s
}

func BenchmarkBinomial(b *testing.B) {
	for _, c := range []struct {
		n int
		p float64
	}{
		{1, 0.3}, {50, 0.75}, {50, 0.3}, {50, 0.01}, {64, 0.9}, {100, 0.3}, {100, 0.05},
		{200, 0.04}, {200, 0.3}, {1000, 0.001}, {1000, 0.009}, {1000, 0.3}, {1e6, 1e-6}, {1e6, 0.3},
		{1e6, 0.75}, {min(1e12, math.MaxInt), 0.3},
	} {
		b.Run(fmt.Sprintf("n=%g/p=%g", float64(c.n), c.p), func(b *testing.B) {
			b.ReportAllocs()
			f := benchStream()
			s := 0
			for b.Loop() {
				s += f.Binomial(c.n, c.p)
			}
			sinkInt = int64(s)
		})
	}
}

type drawer interface {
	Draw(rand.Source) (int64, error)
}

func exactSamplers(tb testing.TB) (names []string, samplers []drawer) {
	add := func(name string, d drawer, err error) {
		if err != nil {
			tb.Fatal(err)
		}
		names, samplers = append(names, name), append(samplers, d)
	}
	for _, c := range []struct {
		name     string
		num, den uint64
	}{{"1/10", 1, 10}, {"1", 1, 1}, {"3.7", 37, 10}, {"100", 100, 1}, {"2^20", 1 << 20, 1},
		{"2^50", 1 << 50, 1}, {"pi", 1068966896, 340262731}} {
		g, err := NewGeometric(c.num, c.den)
		add("geometric/scale="+c.name, g, err)
		l, err := NewDiscreteLaplace(c.num, c.den)
		add("laplace/scale="+c.name, l, err)
		n, err := NewDiscreteGaussian(c.num, c.den)
		add("gaussian/sigma="+c.name, n, err)
	}
	v, err := NewDiscreteGaussianVariance(5<<40, 1)
	add("gaussian/variance=5*2^40", v, err)
	v, err = NewDiscreteGaussianVariance(5, 1)
	add("gaussian/variance=5", v, err)
	return names, samplers
}

func BenchmarkExact(b *testing.B) {
	names, samplers := exactSamplers(b)
	for i, d := range samplers {
		b.Run(names[i], func(b *testing.B) {
			b.ReportAllocs()
			src := Key{Seed: 1}.ChaCha8()
			var s int64
			for b.Loop() {
				x, err := d.Draw(src)
				if err != nil {
					b.Fatal(err)
				}
				s += x
			}
			sinkInt = s
		})
	}
}

func BenchmarkExactParallel(b *testing.B) {
	names, samplers := exactSamplers(b)
	for i, d := range samplers {
		b.Run(names[i], func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				src, err := Secure()
				if err != nil {
					b.Error(err)
					return
				}
				for pb.Next() {
					if _, err := d.Draw(src); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}

func BenchmarkBernoulliExp(b *testing.B) {
	b.ReportAllocs()
	src := Key{Seed: 1}.ChaCha8()
	for b.Loop() {
		if ok, _ := BernoulliExp(src, 3, 7); ok {
			sinkInt++
		}
	}
}
