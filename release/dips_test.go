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

// A block has an event as often as one whose nodes are all drawn, and as many events then: of the paths that are
// drawn since one of their events was chosen, those with C events are kept once in C. Each of the two is beyond 5.3
// standard errors with probability below 1.2e-7.
func TestDipsKeepPathsByTheirEvents(t *testing.T) {
	const j, blocks = 4, 200_000
	d, s := newDips(), noise.NewFast(3, 4)
	y := d.least[j]
	var some, all [2]float64 // blocks with an event, events: of dips, and of trees
	for range blocks {
		if s.Float64() < d.chance(j, y) && d.draw(j, y, &s) {
			some[0]++
			for _, x := range d.path[1:d.size] {
				if x < -y {
					all[0]++
				}
			}
		}
		d.size = 0
		var path [1 << j]float64
		events := 0.0
		for i := 1; i < len(path); i++ {
			if path[i] = path[i&(i-1)] + s.Laplace(1); path[i] < -y {
				events++
			}
		}
		all[1] += events
		some[1] += min(1, events)
	}
	if z := (some[0] - some[1]) / math.Sqrt(some[0]+some[1]); math.Abs(z) > 5.3 {
		t.Errorf("%v blocks of %d have an event, of trees %v: z = %.1f", some[0], blocks, some[1], z)
	}
	// A block has at most 15 events: a sum of their squares is at most 15 of them.
	if z := (all[0] - all[1]) / math.Sqrt(15*(all[0]+all[1])); math.Abs(z) > 5.3 {
		t.Errorf("%v events, of trees %v: z = %.1f", all[0], all[1], z)
	}
}

// Rewards may all be 0: what they take off an index in a block is left for them before it is begun.
func TestSkippingLeavesRoomForRewardsOfZero(t *testing.T) {
	streams := noise.Key{Seed: 8, Role: noise.RoleNoise}.Fast(2)
	for range 200 {
		c, err := newSimulated(Config{Arms: 1, Mechanism: privacy.Tree{Scale: 0.1, Horizon: 4000}}, &streams[0])
		must(t, err)
		must(t, c.AddSum(0, 1024, 512))
		// (512 + 92 − n·0.55 …) is below 0 after 74 rounds or so: noise of scale 0.1 moves that by a few.
		done, _, err := Repeat(c, 0, 900, privacy.Index{Inv: 92, Above: 0.55}, release(t, c, 0), coin(0), &streams[1])
		must(t, err)
		if done < 60 || done > 90 {
			t.Fatalf("it stops after %d rounds without a reward, must from 60 to 90", done)
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
