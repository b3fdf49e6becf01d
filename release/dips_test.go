package release

import (
	"math"
	"math/bits"
	"slices"
	"testing"

	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
)

// coin is a law of rewards.
type coin float64

func (p coin) Sum(n int, s *noise.Fast) float64 { return float64(s.Binomial(n, float64(p))) }

// What is written out by hand of sums of k Laplace variates: P(sum < −y)·e^y.
func TestDipsChances(t *testing.T) {
	d := newDips()
	for _, c := range []struct {
		k    int
		want func(y float64) float64
	}{
		{1, func(float64) float64 { return 0.5 }},
		{2, func(y float64) float64 { return 0.5 + y/4 }},
		{3, func(y float64) float64 { return 0.5 + 5*y/16 + y*y/16 }},
	} {
		for _, y := range []float64{0, 0.5, 3, 20} {
			got, power := 0.0, 1.0
			for _, w := range d.weight[c.k] {
				got += w * power
				power *= y
			}
			if want := c.want(y); math.Abs(got-want) > 1e-14*want {
				t.Errorf("%d nodes, y = %v: %v, want %v", c.k, y, got, want)
			}
		}
	}
	// At 0 each of the 2^j − 1 releases has fallen with probability ½.
	for j := 1; j <= dipLevels; j++ {
		if got, want := d.chance(j, 0), float64(int(1)<<j-1)/2; math.Abs(got-want) > 1e-9 {
			t.Errorf("level %d: %v events at 0, want %v", j, got, want)
		}
		if p := d.chance(j, d.least[j]); p > dipMost || p < 0.999*dipMost {
			t.Errorf("level %d: p is %v from %v on, want %v", j, p, d.least[j], dipMost)
		}
	}
}

// outcome is what a player sees who stays with an arm until its index falls, or 400 rounds: how often it was played, by
// how much the index is too low then, and what the sum has gained one round and 70 rounds later.
type outcome [4]float64

// Skipping has the law of a tree that is written out here, reward by reward and node by node: stopping times, the
// release at which it stops, and what later ones share with it. Twins that know of no dip, or expect too many, are
// found.
func TestSkippingHasTheLawOfAllReleases(t *testing.T) {
	const (
		games = 10_000
		start = 1030
		scale = 3.0
		p     = coin(0.5)
	)
	while := privacy.Index{Root: 0.01, Inv: 62, Above: 0.55}
	skipped := func(spoil func(*dips)) []outcome {
		all, d := make([]outcome, games), newDips()
		spoil(d)
		streams := noise.Key{Seed: 7, Role: noise.RoleNoise}.Fast(2)
		for g := range all {
			c, err := newSimulated(Config{Arms: 1, Mechanism: privacy.Tree{Scale: scale, Horizon: 4000}}, &streams[0])
			must(t, err)
			c.dips = d
			must(t, c.AddSum(0, start, start/2))
			done, last, err := Repeat(c, 0, 400, while, release(t, c, 0), p, &streams[1])
			must(t, err)
			n, sum := last.N(0), last.Sum(0)
			all[g] = outcome{float64(done), float64(n)*0.55 - sum}
			for i, more := range []int{1, 69} {
				must(t, c.AddSum(0, more, p.Sum(more, &streams[1])))
				all[g][2+i] = release(t, c, 0).Sum(0) - sum
			}
			if n != start+done {
				t.Fatalf("%d rewards after %d rounds", n, done)
			}
		}
		return all
	}
	want := make([]outcome, games)
	s := noise.NewFast(1, 2)
	for g := range want {
		n, rewards := 0, 0.0
		var node [64]float64 // of each digit of n
		sum := func() float64 {
			x := rewards
			for digit := range node {
				if n>>digit&1 == 1 {
					x += node[digit]
				}
			}
			return x
		}
		round := func(reward float64) {
			n++
			rewards += reward
			node[bits.TrailingZeros(uint(n))] = s.Laplace(scale)
		}
		n, rewards = start, start/2
		for digit := range node {
			if n>>digit&1 == 1 {
				node[digit] = s.Laplace(scale)
			}
		}
		done := 0
		for ; done < 400 && while.Holds(n, sum()); done++ {
			round(p.Sum(1, &s))
		}
		stop := sum()
		want[g] = outcome{float64(done), float64(n)*0.55 - stop}
		for i, more := range []int{1, 69} {
			for range more {
				round(p.Sum(1, &s))
			}
			want[g][2+i] = sum() - stop
		}
	}
	// Each of four distances is above the limit with probability below 1e-7 (Smirnov), and so is χ² of the joint law in
	// 4⁴ cells, of the quarters of each (Wilson and Hilferty's root, 5.2 deviations).
	limit := math.Sqrt((1 + math.Log(1e7)) / games)
	distance := func(got []outcome) (far bool) {
		var quarters [4][]float64
		for i := range quarters {
			a, b := sorted(got, i), sorted(want, i)
			d := smirnov(a, b)
			t.Logf("%d: distance %.4f, limit %.4f", i, d, limit)
			far = far || d > limit
			quarters[i] = []float64{b[games/4], b[games/2], b[3*games/4]}
		}
		count := func(all []outcome) map[int]float64 {
			n := map[int]float64{}
			for _, o := range all {
				at := 0
				for i, x := range o {
					q, _ := slices.BinarySearch(quarters[i], x)
					at = 4*at + q
				}
				n[at]++
			}
			return n
		}
		x, cells, a, b := 0.0, -1.0, count(got), count(want)
		for at := range 256 {
			if n := a[at] + b[at]; n > 0 {
				x += (a[at] - b[at]) * (a[at] - b[at]) / n
				cells++
			}
		}
		most := cells * math.Pow(1-2/(9*cells)+5.2*math.Sqrt(2/(9*cells)), 3)
		t.Logf("χ² %.0f of %v, limit %.0f", x, cells, most)
		return far || x > most
	}
	if distance(skipped(func(*dips) {})) {
		t.Error("skipping has another law")
	}
	for name, times := range map[string]float64{"no dips": 0, "twice as many": 2} {
		if !distance(skipped(func(d *dips) {
			for j := range d.sum {
				for a := range d.sum[j] {
					d.sum[j][a] *= times
				}
			}
		})) {
			t.Errorf("%s: it is not told apart", name)
		}
	}
}

func sorted(all []outcome, i int) []float64 {
	x := make([]float64, len(all))
	for g := range all {
		x[g] = all[g][i]
	}
	slices.Sort(x)
	return x
}

// smirnov is the distance of two sorted samples of one size.
func smirnov(a, b []float64) (far float64) {
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		x := min(a[i], b[j])
		for i < len(a) && a[i] == x {
			i++
		}
		for j < len(b) && b[j] == x {
			j++
		}
		far = max(far, math.Abs(float64(i-j))/float64(len(a)))
	}
	return far
}
