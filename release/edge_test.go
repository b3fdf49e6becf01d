package release

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
)

// script is a source with the given words, and zeros after them.
type script []uint64

func (s *script) Uint64() uint64 {
	if len(*s) == 0 {
		return 0
	}
	x := (*s)[0]
	*s = (*s)[1:]
	return x
}

func fastStream(run int) *noise.Fast {
	return &noise.Key{Seed: 31, Run: run, Role: noise.RoleNoise}.Fast(1)[0]
}

// The tolerance of sums is 1e-9 a reward in units of the larger of the range's width and
// its ends: exactly at it a sum is let in, and counts as the end.
func TestSumsAreToleratedToTheirRounding(t *testing.T) {
	for _, c := range []struct{ lo, hi, units float64 }{
		{0, 1, 1}, {10, 12, 6}, {-12, -10, 6}, {0.25, 0.75, 1.5}, {-1, 3, 1}, {-8, 8, 1},
	} {
		cur, err := newSimulated(Config{Arms: 1, Lo: c.lo, Hi: c.hi, Mechanism: privacy.Exact{}},
			fastStream(0))
		must(t, err)
		if want := 1e-9 * c.units; math.Abs(cur.tolerance-want) > 1e-15*want {
			t.Errorf("[%v, %v]: tolerance %v, want %v", c.lo, c.hi, cur.tolerance, want)
		}
	}
	cur := simulated(t, Config{Arms: 1, Mechanism: privacy.Exact{}})
	const k = 2
	slack := float64(k * 1e-9)
	for _, c := range []struct {
		sum, counts float64
		ok          bool
	}{
		{0, 0, true}, {k, k, true}, {-slack, 0, true}, {-slack / 2, 0, true}, {k + slack, k, true},
		{math.Nextafter(-slack, -1), 0, false}, {math.Nextafter(k+slack, 3), 0, false},
	} {
		before := cur.(*curator[float64]).slots[0].sum
		err := cur.AddSum(0, k, c.sum)
		if got := cur.(*curator[float64]).slots[0].sum - before; (err == nil) != c.ok || got != c.counts {
			t.Errorf("sum %v: counts %v, error %v; want %v", c.sum, got, err, c.counts)
		}
	}
	// Of a range [−1, 3] two rewards have sums from −2 to 6, and 2 is the sum of two in its middle.
	cur = simulated(t, Config{Arms: 1, Lo: -1, Hi: 3, Mechanism: privacy.Exact{}})
	must(t, cur.AddSum(0, 2, 2))
	if got := release(t, cur, 0).Sum(0); got != 1 {
		t.Errorf("released %v, want 1", got)
	}
	if err := cur.AddSum(0, 2, 7); err == nil || !strings.Contains(err.Error(), "from -2 to 6") {
		t.Errorf("%v", err)
	}
}

// The same of the curator that encodes rewards: of more than one they are at the ends.
func TestDistributedSumsAreToleratedToTheirRounding(t *testing.T) {
	build := func(lo, hi float64) *distributed {
		cur, err := Simulated(Config{Arms: 2, Lo: lo, Hi: hi, Mechanism: privacy.Laplace{Scale: 1},
			Trust: &Trust{Model: privacy.TrustCentral, P: 0.01}}, fastStream(0))
		must(t, err)
		return cur.(*distributed)
	}
	const tolerance = 1e-9
	// A whole number whose slack is not rounded away upwards.
	k := 2
	for float64(k)+float64(k)*tolerance-float64(k) > float64(k)*tolerance {
		k++
	}
	slack := float64(k) * tolerance
	for _, c := range []struct {
		n    int
		sum  float64
		bits [2]int
		ok   bool
	}{
		{0, 0, [2]int{}, true},
		{1, 0, [2]int{1, 0}, true}, {1, 1, [2]int{0, 1}, true},
		{1, -tolerance, [2]int{1, 0}, true}, {1, 1 + tolerance, [2]int{0, 1}, true},
		{1, -2 * tolerance, [2]int{}, false}, {1, 1 + 2*tolerance, [2]int{}, false},
		{k, 0, [2]int{k, 0}, true}, {k, float64(k), [2]int{0, k}, true},
		{k, -slack, [2]int{k, 0}, true}, {k, float64(k) + slack, [2]int{0, k}, true},
		{k, -2 * slack, [2]int{}, false}, {k, float64(k) + 2*slack, [2]int{}, false},
		{k, 1 + 2*slack, [2]int{}, false}, {-1, 0, [2]int{}, false},
	} {
		cur := build(0, 1)
		err := cur.AddSum(0, c.n, c.sum)
		if got := cur.slots[0].bits; (err == nil) != c.ok || got != c.bits {
			t.Errorf("n = %d, sum %v: %v, error %v; want %v", c.n, c.sum, got, err, c.bits)
		}
	}
	// [−1, 3]: two at −1 and one at 3 have the sum 1; 1 alone is in the middle, and so is 1 of two.
	cur := build(-1, 3)
	must(t, cur.AddSum(0, 3, 1))
	must(t, cur.Add(0, 1))
	must(t, cur.AddSum(0, 1, 2))
	if w := cur.slots[0]; w.bits != [2]int{2, 1} || !slices.Equal(w.y, []float64{0.5, 0.75}) ||
		w.invited != 5 {
		t.Errorf("%+v", w)
	}
	if err := cur.AddSum(0, 2, 7); err == nil || !strings.Contains(err.Error(), "from -2 to 6") {
		t.Errorf("%v", err)
	}
	// [10, 12]: a sum of one reward is tolerated to 6e-9 of the width.
	cur = build(10, 12)
	must(t, cur.AddSum(0, 1, 10-1e-8))
	if err := cur.AddSum(0, 1, 10-2e-8); err == nil {
		t.Error("10 − 2e-8 is let in")
	}
	cur.slots[1].invited = maxRewards - 1
	if cur.AddSum(1, 2, 22) == nil {
		t.Error("one reward too many is let in")
	}
	must(t, cur.Add(1, 11))
	if cur.Add(1, 11) == nil {
		t.Error("one reward too many is let in")
	}
	if _, err := cur.Release([]int{2}); err == nil || !strings.Contains(err.Error(), "from 0 to 1") {
		t.Errorf("%v", err)
	}
}

// Rewards of actions are in [−1, 1].
func TestActionSumsAreToleratedToTheirRounding(t *testing.T) {
	cur, err := SimulatedActions([][]float64{{1, 0}, {0, 1}}, false, nil, fastStream(0))
	must(t, err)
	c := cur.(*actions[float64])
	const k = 2
	slack := float64(1e-9 * k)
	for _, x := range []struct {
		sum, counts float64
		ok          bool
	}{
		{-k, -k, true}, {k, k, true}, {-k - slack, -k, true}, {-k - slack/2, -k, true},
		{k + slack, k, true},
		{math.Nextafter(-k-slack, -3), 0, false}, {math.Nextafter(k+slack, 3), 0, false}, {-1.5,
			-1.5, true},
	} {
		before := c.sum[1]
		err := cur.AddSum(1, k, x.sum)
		if got := c.sum[1] - before; (err == nil) != x.ok || got != x.counts {
			t.Errorf("sum %v: counts %v, error %v; want %v", x.sum, got, err, x.counts)
		}
	}
	c.all = c.most - 3
	if cur.AddSum(0, 4, 0) == nil {
		t.Error("one reward too many is let in")
	}
	must(t, cur.AddSum(0, 3, 0))
}

func TestFeaturesTakeWhatTheyPromise(t *testing.T) {
	cur, err := SimulatedFeatures(FeatureConfig{Dim: 1, Slots: 2,
		Mechanism: privacy.VectorGaussian{Sigma: 1}}, fastStream(0))
	must(t, err)
	c := cur.(*features[float64])
	c.plan.most = 2
	for i, want := range []bool{true, true, false} {
		if err := cur.Add(1, []float64{1}, 1); (err == nil) != want {
			t.Errorf("reward %d: %v", i, err)
		}
	}
	for _, mechanism := range []privacy.Mechanism{privacy.VectorGaussian{Sigma: 1},
		privacy.GaussianVectorTree{Sigma: 1, Horizon: 8}} {
		cur, err := SimulatedFeatures(FeatureConfig{Dim: 2, Slots: 2, Mechanism: mechanism}, fastStream(0))
		must(t, err)
		// The second squared norm is the limit, to the last bit.
		y := math.Sqrt(normLimit - 1)
		if limit := 1 + float64(y*y); limit != normLimit {
			t.Fatalf("1 + y² is %v", limit)
		}
		for _, a := range []struct {
			x, y float64
			ok   bool
		}{{1, 0, true}, {1, y, true}, {1, 1.0001 * y, false}} {
			if err := cur.Add(0, []float64{a.x, a.y}, 1); (err == nil) != a.ok {
				t.Errorf("%v: [%v %v]: %v", mechanism, a.x, a.y, err)
			}
		}
		for _, slot := range []int{-1, 2} {
			if err := cur.Add(slot, []float64{1, 0}, 1); err == nil ||
				!strings.Contains(err.Error(), "from 0 to 1") {
				t.Errorf("%v: %v", mechanism, err)
			}
			if _, err := cur.Release(slot); err == nil || !strings.Contains(err.Error(), "from 0 to 1") {
				t.Errorf("%v: %v", mechanism, err)
			}
		}
	}
}

// Slots of running sums are apart: what is in one is not in another's release.
func TestRunningSlotsAreApart(t *testing.T) {
	cur, err := SimulatedFeatures(FeatureConfig{Dim: 2, Slots: 3,
		Mechanism: privacy.GaussianVectorTree{Horizon: 8}}, fastStream(0))
	must(t, err)
	for slot, a := range [][]float64{{1, 0}, {0, 1}, {0.5, 0.5}} {
		must(t, cur.Add(slot, a, 1))
	}
	for slot, want := range [][]float64{{1, 0}, {0, 1}, {0.5, 0.5}} {
		r, err := cur.Release(slot)
		must(t, err)
		if r.At(0) != want[0] || r.At(1) != want[1] {
			t.Errorf("slot %d: %v %v, want %v", slot, r.At(0), r.At(1), want)
		}
	}
}

func TestSlotsAreNumberedFromZero(t *testing.T) {
	both(t, func(t *testing.T, build func(testing.TB, Config) Curator) {
		cur := build(t, Config{Arms: 2, Mechanism: privacy.Laplace{Scale: 1}})
		for range 2 {
			for a := range 2 {
				must(t, cur.Add(a, 1))
			}
			release(t, cur, 0, 1)
		}
		var slots []int
		for _, e := range cur.Ledger().Entries() {
			slots = append(slots, e.Slot)
		}
		if !slices.Equal(slots, []int{0, 1, 2, 3}) {
			t.Errorf("slots %v", slots)
		}
		if _, err := cur.Release([]int{2}); err == nil {
			t.Error("arm 2 of two is released")
		}
	})
}

// A draw of 2^55 steps is the largest that a sum has room for.
func TestLargestDraw(t *testing.T) {
	for x, want := range map[int64]error{maxDraw: nil, -maxDraw: nil, 0: nil,
		maxDraw + 1: noise.ErrOverflow, -maxDraw - 1: noise.ErrOverflow} {
		if got, err := inRange(x, nil); got != x || !errors.Is(err, want) {
			t.Errorf("%d: %d, %v", x, got, err)
		}
	}
	if _, err := inRange(0, errDraw); !errors.Is(err, errDraw) {
		t.Errorf("%v", err)
	}
}

func TestSparseTailsAreOfTheSums(t *testing.T) {
	for _, scale := range []float64{0, 1, 40} {
		p, err := exactPlan(privacy.Sparse{Questions: privacy.Questions{Statistic: privacy.Range,
			Threshold: 2, Query: 2}, Scale: scale}, rand.NewPCG(1, 2))
		must(t, err)
		want, err := ExactTail(scale)
		must(t, err)
		if p.tails[0] != want || (scale == 0) != (want == privacy.Tail{}) {
			t.Errorf("scale %v: %+v, want %+v", scale, p.tails[0], want)
		}
	}
}

// Three finished segments of Lap(2) and three nodes of Lap(8): squares 3·4 + 3·64 = 204.
func TestHybridTailsAtAnotherScale(t *testing.T) {
	if got := tailsOf(privacy.Hybrid{Scale: 2})[3]; got.H != 8 || math.Abs(got.Sigma-math.Sqrt(408)) > 1e-13 {
		t.Errorf("%+v", got)
	}
}

// A base of 255 has sums of 127 nodes, the most that leave room; 257 has 128.
func TestLargestBase(t *testing.T) {
	for horizon, ok := range map[int]bool{127: true, 128: false} {
		_, err := exactPlan(privacy.KAry{Scale: 1, Base: 2*horizon + 1, Horizon: horizon},
			rand.NewPCG(1, 2))
		if (err == nil) != ok {
			t.Errorf("%d nodes: %v", horizon, err)
		}
	}
}

// Levels keep their noise apart: base 5, one reward at a time and by threes, each sum with the noise
// of its nodes, by the tree's own definition.
func TestKAryLevelsAreApart(t *testing.T) {
	m := privacy.KAry{Scale: 1, Base: 5, Horizon: 300}
	for _, step := range []uint64{1, 3} {
		src := &numbered{r: rand.NewPCG(1, step)}
		c, store, used := whole(m), map[knot]int64{}, 0
		for n := step; n <= 300; n += step {
			got, err := c.At(n, src)
			must(t, err)
			want := int64(0)
			nodes, signs := knots(int64(n), m.Base, m.Levels())
			for i, x := range nodes {
				if _, ok := store[x]; !ok {
					store[x] = src.draws[used]
					used++
				}
				want += int64(signs[i]) * store[x]
			}
			if got != want {
				t.Fatalf("n = %d by %d: noise %d, want %d", n, step, got, want)
			}
		}
	}
}

// Without noise a hybrid has a tail for each number of segments, all others have one.
func TestTailsWithoutNoise(t *testing.T) {
	for _, c := range []struct {
		m    privacy.Mechanism
		want int
	}{{privacy.Hybrid{}, 64}, {privacy.Laplace{}, 1}, {privacy.Tree{Horizon: 8}, 1}} {
		p, err := exactPlan(c.m, rand.NewPCG(1, 2))
		if err != nil || len(p.tails) != c.want || p.tails[0] != (privacy.Tail{}) {
			t.Errorf("%v: %d tails, %+v first, %v", c.m, len(p.tails), p.tails[0], err)
		}
	}
}

// A batch of too few is charged as what has no bound, and where a cap does not allow that both are told.
func TestTroubleOfTheLedgerIsTold(t *testing.T) {
	m, err := (Trust{Model: privacy.TrustSecAgg, P: 0.01}).Mechanism(privacy.Laplace{Scale: 1}, 10)
	must(t, err)
	a, err := NewAnalyser(m, privacy.NewLedger(privacy.WithCap(privacy.Pure{Epsilon: 100})))
	must(t, err)
	if _, err := a.Read(0, 0, 9); !errors.Is(err, ErrAnswers) || !errors.Is(err, privacy.ErrBudget) {
		t.Errorf("%v", err)
	}
}
