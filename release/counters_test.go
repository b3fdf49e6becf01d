package release

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
)

// A knot is a node of a k-ary tree: rewards (m·k^j, (m+1)·k^j] for level j.
type knot struct {
	level int
	m     int64
}

// knots are the nodes of the first t rewards and their signs: on each level, from the top, as many
// nodes as bring the sum nearest to t.
func knots(t int64, base, levels int) (nodes []knot, signs []int) {
	width := int64(1)
	for range levels - 1 {
		width *= int64(base)
	}
	at := int64(0)
	for j := levels - 1; j >= 0; j-- {
		for ; 2*(t-at) > width; at += width {
			nodes, signs = append(nodes, knot{j, at / width}), append(signs, 1)
		}
		for ; 2*(at-t) > width; at -= width {
			nodes, signs = append(nodes, knot{j, at/width - 1}), append(signs, -1)
		}
		width /= int64(base)
	}
	return nodes, signs
}

// Against a store of all nodes, as for the binary tree: a node is drawn once, when it is first
// shown, and kept; a node before the sum's end is added, one after it taken away.
func TestKAryMatchesAStoreOfAllNodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := privacy.KAry{Scale: 1, Base: 3 + 2*rapid.IntRange(0, 10).Draw(t, "base"),
			Horizon: rapid.SampledFrom([]int{1, 13, 1000, longest}).Draw(t, "horizon")}
		steps := rapid.SliceOfN(rapid.OneOf(rapid.Just(uint64(1)), rapid.Uint64Range(0, 30),
			rapid.Uint64Range(0, 1<<37)), 1, 200).Draw(t, "steps")
		src := &numbered{r: rand.NewPCG(1, rapid.Uint64().Draw(t, "seed"))}
		c := whole(m)
		store, used, n := map[knot]int64{}, 0, uint64(0)
		for _, step := range steps {
			if n += step; n > uint64(m.Horizon) {
				break
			}
			failing := rapid.IntRange(0, 9).Draw(t, "fail") == 0
			var got int64
			var err error
			for {
				if failing {
					src.failAt = rapid.IntRange(1, 3).Draw(t, "at")
				}
				got, err = c.At(n, src)
				src.failAt, failing = 0, false
				if err == nil {
					break
				}
			}
			nodes, signs := knots(int64(n), m.Base, m.Levels())
			if len(nodes) != m.Nodes(int(n)) {
				t.Fatalf("%v: %d nodes at %d, want %d", m, m.Nodes(int(n)), n, len(nodes))
			}
			want := int64(0)
			for i, x := range nodes {
				if _, ok := store[x]; !ok {
					if used == len(src.draws) {
						t.Fatalf("%v, n = %d: node %v was not drawn", m, n, x)
					}
					store[x] = src.draws[used]
					used++
				}
				want += int64(signs[i]) * store[x]
			}
			if got != want || used != len(src.draws) {
				t.Fatalf("%v, n = %d: noise %d in %d draws, its nodes have %d in %d", m, n, got,
					len(src.draws), want, used)
			}
		}
	})
}

// Neighbouring inputs: replace a reward, and the sums of nodes that are ever shown move by at
// most 1 each, in one node of a level: h in all, the price. The twin whose nodes overlap by a
// reward has two in a level.
func TestARewardIsInOneNodeOfEachLevel(t *testing.T) {
	for _, m := range []privacy.KAry{{Scale: 1, Base: 3, Horizon: 121},
		{Scale: 1, Base: 3, Horizon: 122}, {Scale: 1, Base: 5, Horizon: 200},
		{Scale: 1, Base: 19, Horizon: 300}} {
		for _, overlap := range []int64{0, 1} {
			shown := map[knot]bool{}
			for n := 1; n <= m.Horizon; n++ {
				nodes, _ := knots(int64(n), m.Base, m.Levels())
				for _, x := range nodes {
					shown[x] = true
				}
			}
			most := 0
			for reward := int64(1); reward <= int64(m.Horizon); reward++ {
				moved := 0
				for x := range shown {
					width := int64(math.Pow(float64(m.Base), float64(x.level)))
					if x.m*width < reward && reward <= (x.m+1)*width+overlap {
						moved++
					}
				}
				most = max(most, moved)
			}
			if paid := int(m.Loss().Pure() + 0.5); (most <= paid) != (overlap == 0) {
				t.Errorf("%v: a reward is in %d nodes (overlap %d), the price is for %d", m, most,
					overlap, paid)
			}
		}
	}
}

// given draws a fixed list.
type given struct{ z []float64 }

func (g *given) Draw(int) (float64, error) {
	x := g.z[0]
	g.z = g.z[1:]
	return x, nil
}

// column is C's first column.
func column(m privacy.Mechanism, n int) []float64 {
	c := make([]float64, n)
	for k := range c {
		switch m := m.(type) {
		case privacy.SquareRoot:
			c[k] = 1
			if k > 0 {
				c[k] = c[k-1] * float64(2*k-1) / float64(2*k)
			}
		case privacy.BLT:
			for j, w := range m.Weight {
				c[k] += w * math.Pow(m.Decay[j], float64(k-1))
			}
			if k == 0 {
				c[k] = 1
			}
		}
	}
	return c
}

func whole(m privacy.Mechanism) stream[int64] {
	d, _ := privacy.DrawsOf(m)
	return d.Whole()
}

func newStream(m privacy.Mechanism) stream[float64] {
	d, _ := privacy.DrawsOf(m)
	return d.Float()
}

// The price rests on this: releases x_1+…+x_t + noise_t are a function of Cx + z. So with z − Ce_i
// for z, a reward more in place i shows nowhere. Noise that is drawn in another way, such as with a
// buffer left out, fails. Jumps and blocks give the same as one reward at a time.
func TestCorrelatedNoiseHidesAReward(t *testing.T) {
	const n = 700
	list, err := privacy.NewBLT(privacy.ZCDP{Rho: 1}, n)
	if err != nil {
		t.Fatal(err)
	}
	wrong := list
	wrong.Weight[1] = 0
	wrong.Decay[1] = 0
	for _, v := range []struct {
		m, is privacy.Mechanism
		good  bool
	}{
		{privacy.SquareRoot{Sigma: 1, Horizon: n}, privacy.SquareRoot{Sigma: 1, Horizon: n}, true},
		{privacy.SquareRoot{Sigma: 1, Horizon: 1000}, privacy.SquareRoot{Sigma: 1, Horizon: 1000}, true},
		{list, list, true}, {correlated[1], correlated[1], true}, {list, correlated[1], false},
	} {
		r := rand.New(rand.NewPCG(1, 2))
		z := make([]float64, 2048)
		for i := range z {
			z[i] = 100 * r.NormFloat64()
		}
		c := column(v.m, n)
		for _, i := range []int{0, 1, 63, 64, 65, 300, n - 50} {
			shifted := append([]float64(nil), z...)
			for k := i; k < n; k++ {
				shifted[k] -= c[k-i]
			}
			a, b := newStream(v.is), newStream(v.is)
			za, zb := &given{z}, &given{shifted}
			worst := 0.0
			for at := 1; at <= n; at += 1 + at%3*(at%7) {
				x, _ := a.At(uint64(at), za)
				y, _ := b.At(uint64(at), zb)
				if at > i {
					y++
				}
				worst = max(worst, math.Abs(x-y))
			}
			if (worst < 1e-10) != v.good {
				t.Errorf("%v as %v: a reward in place %d moves releases by %v", v.is, v.m, i+1, worst)
			}
		}
	}
}

// variances has the mean of the squared noise at some times, over runs with noise of their own.
func variances(t *testing.T, build maker, m privacy.Mechanism, times []int, runs int) []float64 {
	out := make([]float64, len(times))
	for run := range runs {
		c, err := build(m, run)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for i, at := range times {
			for ; n < at; n++ {
				if err := c.Add(1, 0); err != nil {
					t.Fatal(err)
				}
				if n%2 == 0 {
					if _, err := c.Release([]int{1}); err != nil {
						t.Fatal(err)
					}
				}
			}
			r, err := c.Release([]int{1})
			if err != nil {
				t.Fatal(err)
			}
			out[i] += r.Sum(0) * r.Sum(0) / float64(runs)
		}
	}
	return out
}

// The variance of the noise at several t is what the mechanism says. m Laplaces of scale b have
// fourth moment 12mb⁴·2 + 3V² − … = 12mb⁴ + 3V², V = 2mb²; a normal variate has 3V². 5.2 standard
// errors: a false alarm has probability 2e-7 a check. Half the noise after the second draw is caught.
func TestVariancesAreTheMechanisms(t *testing.T) {
	const runs = 3000
	times := []int{1, 2, 5, 9, 13, 38}
	variance := func(m privacy.Mechanism, at int) (v, fourth float64) {
		d, _ := privacy.DrawsOf(m)
		v = d.Variance(at)
		fourth = 3 * v * v
		if m, ok := m.(privacy.KAry); ok {
			fourth += 12 * float64(m.Nodes(at)) * math.Pow(m.Scale, 4)
		}
		return v, fourth
	}
	far := func(t *testing.T, build maker, m privacy.Mechanism) float64 {
		worst := 0.0
		for i, got := range variances(t, build, m, times, runs) {
			v, fourth := variance(m, times[i])
			worst = max(worst, math.Abs(got-v)/math.Sqrt((fourth-v*v)/runs))
		}
		return worst
	}
	late := broken(func(c *curator[float64]) Curator {
		c.noise = &lateHalved{sampler: c.noise}
		return c
	})
	for _, m := range []privacy.Mechanism{privacy.KAry{Scale: 3, Base: 5, Horizon: 40},
		privacy.KAry{Scale: 2, Base: 9, Horizon: 40}, correlated[0], correlated[1]} {
		if x := far(t, simulatedMaker, m); x > z {
			t.Errorf("simulated %v: a variance is off by %.1f standard errors", m, x)
		}
		if x := far(t, late, m); x < z {
			t.Errorf("half the noise of %v: off by %.1f standard errors only", m, x)
		}
		if _, ok := m.(privacy.KAry); ok {
			if x := far(t, exactMaker, m); x > z {
				t.Errorf("real %v: a variance is off by %.1f standard errors", m, x)
			}
		}
	}
}

// Over all t up to a horizon, one long path for each run: the mean squared noise of 19 digits at T
// = 10⁴ against MeanVariance, 472 at ε = 1.
func TestMeanVarianceOverAPath(t *testing.T) {
	m := privacy.NewKAry(1, 19, 10_000)
	const runs = 300
	var means []float64
	for run := range runs {
		s := &noise.Key{Seed: 9, Run: run, Role: noise.RoleNoise}.Fast(1)[0]
		c, src, sum := newStream(m), fastLaplace{s, m.Scale}, 0.0
		for n := 1; n <= m.Horizon; n++ {
			x, _ := c.At(uint64(n), src)
			sum += x * x
		}
		means = append(means, sum/float64(m.Horizon))
	}
	mean, square := 0.0, 0.0
	for _, x := range means {
		mean += x / runs
		square += x * x / runs
	}
	if se := math.Sqrt((square - mean*mean) / runs); math.Abs(mean-m.MeanVariance()) > z*se {
		t.Errorf("mean variance %.1f ± %.1f, must be %.1f", mean, se, m.MeanVariance())
	}
}

func TestRealCountersRefuse(t *testing.T) {
	for _, v := range []struct {
		m       privacy.Mechanism
		mention string
	}{
		{privacy.SquareRoot{Sigma: 1, Horizon: 10}, "sqrt is for simulated rewards only"},
		{correlated[1], "blt is for simulated rewards only"},
		{privacy.KAry{Scale: 1, Base: 255, Horizon: 1 << 30}, "take a smaller base"},
		{privacy.KAry{Scale: 1, Base: 4, Horizon: 10}, "base is 4"},
	} {
		if _, err := exactMaker(v.m, 0); err == nil || !strings.Contains(err.Error(), v.mention) {
			t.Errorf("%v: %v", v.m, err)
		}
	}
	c, err := simulatedMaker(privacy.KAry{Scale: 1, Base: 3, Horizon: 4}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.AddSum(0, 5, 1); err == nil || !strings.Contains(err.Error(), "must have at most 4") {
		t.Errorf("five rewards at horizon 4: %v", err)
	}
}

// A long run of each counter: one reward and its release.
func BenchmarkCounter(b *testing.B) {
	const horizon = 1 << 20
	list, err := privacy.NewBLT(privacy.ZCDP{Rho: 0.5}, horizon)
	if err != nil {
		b.Fatal(err)
	}
	root, err := privacy.NewSquareRoot(privacy.ZCDP{Rho: 0.5}, horizon)
	if err != nil {
		b.Fatal(err)
	}
	for _, m := range []privacy.Mechanism{privacy.Tree{Scale: 21, Horizon: horizon},
		privacy.NewKAry(1, 19, horizon), root, list} {
		b.Run(fmt.Sprint(m.Kind()), func(b *testing.B) {
			b.ReportAllocs()
			c := simulated(b, Config{Arms: 1, Mechanism: m})
			arms, n := []int{0}, 0
			for b.Loop() {
				if n++; n > horizon {
					n = 1
					if err := c.Forget(m); err != nil {
						b.Fatal(err)
					}
				}
				if c.AddSum(0, 1, 1) != nil {
					b.Fatal("add")
				}
				if _, err := c.Release(arms); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
