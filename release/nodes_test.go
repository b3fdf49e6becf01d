package release

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/sotto-dp/sotto/privacy"
)

// numbered draws random integers and remembers them, with their weights.
type numbered struct {
	r       *rand.PCG
	draws   []int64
	weights []int
	failAt  int // draws that fail, counted down from here
}

var errDraw = errors.New("no draw")

func (s *numbered) Draw(w int) (int64, error) {
	if s.failAt > 0 {
		if s.failAt--; s.failAt == 0 {
			return 0, errDraw
		}
	}
	x := int64(s.r.Uint64() >> 8)
	s.draws = append(s.draws, x)
	s.weights = append(s.weights, w)
	return x, nil
}

// A node is the interval of rewards whose sum it holds.
type node struct{ from, to uint64 }

// treeNodes covers [from, from+t) with the longest aligned intervals, by going down a full tree of
// 2^levels leaves: independent of digits.
func treeNodes(from, t uint64, levels int) []node {
	var out []node
	var visit func(lo, size uint64)
	visit = func(lo, size uint64) {
		switch {
		case lo >= t:
		case lo+size <= t:
			out = append(out, node{from + lo, from + lo + size - 1})
		default:
			visit(lo, size/2)
			visit(lo+size/2, size/2)
		}
	}
	visit(0, 1<<levels)
	return out
}

// hybridNodes are finished segments and the nodes of the current segment's tree, with the
// weights of their noise.
func hybridNodes(n uint64) (nodes []node, weights []int) {
	start, k := uint64(1), 0
	for start*2-1 <= n { // segment k is [start, 2·start)
		nodes, weights = append(nodes, node{start, 2*start - 1}), append(weights, 1)
		start, k = start*2, k+1
	}
	for _, x := range treeNodes(start, n+1-start, k) {
		nodes, weights = append(nodes, x), append(weights, k+1)
	}
	return nodes, weights
}

// Against a store of all nodes of a full tree: each release is the sum of its nodes' noise, a node
// is drawn once, when it is first shown, and the same node has the same noise for ever.
func TestCountersMatchAStoreOfAllNodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		isTree := rapid.Bool().Draw(t, "tree")
		steps := rapid.SliceOfN(rapid.OneOf(rapid.Just(uint64(1)), rapid.Uint64Range(0, 3),
			rapid.Uint64Range(0, 1<<40)), 1, 60).Draw(t, "steps")
		src := &numbered{r: rand.NewPCG(1, rapid.Uint64().Draw(t, "seed"))}
		var c counter[int64]
		store := map[node]int64{}
		used := 0
		n := uint64(0)
		for _, step := range steps {
			n += step
			var got int64
			var err error
			failing := rapid.IntRange(0, 9).Draw(t, "fail") == 0
			for {
				if failing {
					src.failAt = rapid.IntRange(1, 3).Draw(t, "at")
				}
				if isTree {
					got, err = c.tree(n, src)
				} else {
					got, err = c.hybrid(n, src)
				}
				src.failAt, failing = 0, false
				if err == nil {
					break
				}
			}
			nodes, weights := treeNodes(1, n, 47), []int(nil)
			if !isTree {
				nodes, weights = hybridNodes(n)
			}
			want := int64(0)
			for i, x := range nodes {
				if _, ok := store[x]; !ok {
					if used == len(src.draws) {
						t.Fatalf("n = %d: node %v was not drawn", n, x)
					}
					w := 1
					if !isTree {
						w = weights[i]
					}
					if src.weights[used] != w {
						t.Fatalf("n = %d: node %v has %d times the scale, must have %d", n, x,
							src.weights[used], w)
					}
					store[x] = src.draws[used]
					used++
				}
				want += store[x]
			}
			if got != want {
				t.Fatalf("n = %d: noise %d, its nodes have %d", n, got, want)
			}
			// After a failed draw nothing drawn before is lost, so the counts agree even then.
			if used != len(src.draws) {
				t.Fatalf("n = %d: %d draws for %d nodes", n, len(src.draws), used)
			}
		}
	})
}

// Every reward is in at most as many nodes as its price says: those of the tree's levels; a segment
// and k weighted nodes.
func TestNodesOfARewardAreWhatItPays(t *testing.T) {
	for _, horizon := range []uint64{1, 2, 3, 7, 8, 9, 100, 128} {
		in := make([]map[node]bool, horizon+1)
		hybridCost := make([]map[node]float64, horizon+1)
		for i := range in {
			in[i], hybridCost[i] = map[node]bool{}, map[node]float64{}
		}
		for n := uint64(1); n <= horizon; n++ {
			for _, x := range treeNodes(1, n, 10) {
				for i := x.from; i <= x.to; i++ {
					in[i][x] = true
				}
			}
			nodes, weights := hybridNodes(n)
			for j, x := range nodes {
				for i := x.from; i <= x.to; i++ {
					// A segment is a node apart from its tree's root, which is never shown.
					hybridCost[i][x] = 1 / float64(weights[j])
				}
			}
		}
		levels := privacy.Tree{Scale: 1, Horizon: int(horizon)}.Levels()
		for i := uint64(1); i <= horizon; i++ {
			if len(in[i]) > levels {
				t.Errorf("horizon %d: reward %d is in %d nodes, the price is for %d", horizon, i,
					len(in[i]), levels)
			}
			cost := 0.0
			for _, x := range hybridCost[i] {
				cost += x
			}
			if cost > 2 {
				t.Errorf("hybrid: after %d rewards, reward %d has lost %v/scale, the price is "+
					"2/scale", horizon, i, cost)
			}
		}
		if len(in[1]) != levels {
			t.Errorf("horizon %d: the first reward is in %d nodes, the price is for %d", horizon,
				len(in[1]), levels)
		}
	}
}

// Second moments of the noise after t rewards, and between t's: sums of Laplace variates of the
// nodes' scales b have variance V = 2Σb², and their square has variance 12Σb⁴ + 2V². For noise X+Y
// and X+Z with X shared, the product has mean V(X) and at most the variance √(E(X+Y)⁴ E(X+Z)⁴). 5.2
// standard errors: a false alarm has probability 2e-7 a check.
func TestMomentsOfContinualNoise(t *testing.T) {
	const runs = 4000
	times := []uint64{1, 2, 3, 7, 8, 11, 15, 16}
	for _, m := range []privacy.Mechanism{privacy.Tree{Scale: 3, Horizon: 16}, privacy.Hybrid{Scale: 2}} {
		for name, build := range map[string]maker{"simulated": simulatedMaker, "real": exactMaker} {
			t.Run(m.Kind()+"/"+name, func(t *testing.T) {
				sums := map[[2]int]float64{}
				for run := range runs {
					c, err := build(m, run)
					if err != nil {
						t.Fatal(err)
					}
					var x []float64
					for n, i := uint64(1), 0; n <= 16; n++ {
						if err := c.Add(2, 0); err != nil {
							t.Fatal(err)
						}
						if n == times[i] {
							r, err := c.Release([]int{2})
							if err != nil {
								t.Fatal(err)
							}
							x = append(x, r.Sum(0))
							i++
						}
					}
					for i := range x {
						for j := range x[:i+1] {
							sums[[2]int{j, i}] += x[i] * x[j]
						}
					}
				}
				scales := func(n uint64) map[node]float64 {
					out := map[node]float64{}
					if tree, ok := m.(privacy.Tree); ok {
						for _, x := range treeNodes(1, n, 5) {
							out[x] = tree.Scale
						}
						if len(out) != bits.OnesCount64(n) {
							t.Fatalf("%d nodes at t = %d", len(out), n)
						}
						return out
					}
					nodes, weights := hybridNodes(n)
					for i, x := range nodes {
						out[x] = m.(privacy.Hybrid).Scale * float64(weights[i])
					}
					return out
				}
				fourth := func(b map[node]float64) float64 {
					v, k := 0.0, 0.0
					for _, x := range b {
						v += 2 * x * x
						k += 12 * x * x * x * x
					}
					return 3*v*v + k
				}
				for i := range times {
					for j := range times[:i+1] {
						bi, bj := scales(times[i]), scales(times[j])
						want := 0.0
						for x, b := range bi {
							if _, ok := bj[x]; ok {
								want += 2 * b * b
							}
						}
						se := math.Sqrt((math.Sqrt(fourth(bi)*fourth(bj)) - want*want) / runs)
						if got := sums[[2]int{j, i}] / runs; math.Abs(got-want) > z*se {
							t.Errorf("covariance of the noise at %d and %d is %.2f, must be %.2f "+
								"± %.2f", times[j], times[i], got, want, se)
						}
					}
				}
			})
		}
	}
}

// A release's tail bounds its noise: P(noise > Σ√(2x) + H(x+Log)) ≤ e^{-x}. Binomial counts, 5.2
// standard errors above.
func TestTailsHold(t *testing.T) {
	const runs = 4000
	for _, m := range append(private, privacy.Laplace{Scale: 2e-5}, privacy.Gaussian{Sigma: 2e-5}) {
		for name, build := range map[string]maker{"simulated": simulatedMaker, "real": exactMaker} {
			t.Run(fmt.Sprint(m, "/", name), func(t *testing.T) {
				for _, n := range []int{1, 7} {
					levels := []float64{0.01, 0.5, 1, 2, 4}
					over := [5]int{}
					for run := range runs {
						c, err := build(m, run)
						if err != nil {
							t.Fatal(err)
						}
						for range n {
							if err := c.Add(0, 1); err != nil {
								t.Fatal(err)
							}
						}
						r, err := c.Release([]int{0})
						if err != nil {
							t.Fatal(err)
						}
						tail := r.Tail()
						for i, x := range levels {
							if r.Sum(0)-float64(n) > tail.Sigma*math.Sqrt(2*x)+tail.H*(x+tail.Log) {
								over[i]++
							}
						}
					}
					for i, x := range levels {
						p := math.Exp(-x)
						if got := float64(over[i]) / runs; got > p+z*math.Sqrt(p*(1-p)/runs) {
							t.Errorf("n = %d: %.4f of releases are beyond the tail at x = %v, at "+
								"most %.4f may be", n, got, x, p)
						}
					}
				}
			})
		}
	}
}

// By hand: after 10 rewards 3 segments are finished, Lap(b) each, and there are at most 3 nodes
// Lap(4b); after one, a segment, and Lap(2b) at most.
func TestHybridTailsByHand(t *testing.T) {
	both(t, func(t *testing.T, build func(testing.TB, Config) Curator) {
		const b = 1 - 1.0/stepParts/gridSteps // so that real noise has scale 1 or the same
		c := build(t, Config{Arms: 2, Mechanism: privacy.Hybrid{Scale: b}})
		must(t, c.Add(0, 1))
		for range 10 {
			must(t, c.Add(1, 1))
		}
		for _, x := range []struct {
			arms []int
			want privacy.Tail
		}{
			{[]int{0}, privacy.Tail{Sigma: math.Sqrt(2 * (1 + 4)), H: 2}},
			{[]int{1}, privacy.Tail{Sigma: math.Sqrt(2 * (3 + 3*16)), H: 4}},
			// holds for the longest
			{[]int{0, 1}, privacy.Tail{Sigma: math.Sqrt(2 * (3 + 3*16)), H: 4}},
			{[]int{1, 0}, privacy.Tail{Sigma: math.Sqrt(2 * (3 + 3*16)), H: 4}},
		} {
			got := release(t, c, x.arms...).Tail()
			if math.Abs(got.Sigma-x.want.Sigma) > 1e-6 || math.Abs(got.H-x.want.H) > 1e-6 || got.Log != 0 {
				t.Errorf("arms %v: tail %+v, must be %+v", x.arms, got, x.want)
			}
		}
	})
}

// The charge of discrete noise is that of a continuous law a 64th of a step narrower. Here is what
// that rests on: the trade-off curve of the discrete pair lies above the continuous one at every
// knot, also in the smallest scales allowed.
func TestDiscreteNoiseIsWorthItsCharge(t *testing.T) {
	for _, steps := range []float64{minScale, 20, 100, 1000} {
		num, err := parts("test", steps/gridSteps)
		if err != nil {
			t.Fatal(err)
		}
		scale, charged := float64(num)/stepParts, float64(num-1)/stepParts
		for _, shift := range []int{1, 2, 15, 16, 40, 100, 3000} {
			s := float64(shift)
			// Laplace. log of f(α) for the charged ε, and of the discrete pair's (α, α') at its
			// knots. Shifts below 16 steps, which a replaced reward need not exceed, are covered by
			// the charge for 16.
			beta, e := -1/scale, max(s, 16)/charged
			norm := math.Log1p(math.Exp(beta))
			for k := 1; k <= shift; k++ {
				alpha, miss := float64(k)*beta-norm, float64(shift-k+1)*beta-norm
				curve := -e - math.Log(4) - alpha // e^{-ε}/(4α) on [e^{-ε}/2, 1/2]
				if alpha > -math.Log(2) {
					curve = -e + math.Log1p(-math.Exp(alpha)) // e^{-ε}(1−α)
				} else if alpha < -e-math.Log(2) {
					curve = math.Log1p(-math.Exp(e + alpha)) // 1 − e^ε α
				}
				if miss < curve-1e-13*math.Abs(curve) {
					t.Fatalf("Laplace, scale %v, shift %d: at knot %d the discrete pair misses "+
						"with e^%v, the charge promises e^%v", scale, shift, k, miss, curve)
				}
			}
		}
		// Gaussian. One step's shift is μ-GDP for the largest distance of neighbouring quantiles; s
		// steps are sμ-GDP.
		worst := 0.0
		reach := int(8 * scale)
		tail := make([]float64, 2*reach+2) // P(X ≥ k − reach), unnormalised
		sum := 0.0
		for k := 2*reach + 1 + reach; k >= 0; k-- {
			x := float64(k-reach) / scale
			sum += math.Exp(-x * x / 2)
			if k < len(tail) {
				tail[k] = sum
			}
		}
		quantile := func(k int) float64 {
			p := tail[k] / sum
			x := math.Sqrt2 * math.Erfcinv(2*p)
			for range 2 { // Erfcinv works on 1−p
				x += (math.Erfc(x/math.Sqrt2)/2/p - 1) * p / (math.Exp(-x*x/2) / math.Sqrt(2*math.Pi))
			}
			return x
		}
		for k := reach; k < 2*reach-int(2*scale); k++ { // up to 6σ; the law is symmetric
			worst = max(worst, quantile(k+1)-quantile(k))
		}
		if limit := 1 / charged; worst > limit {
			t.Errorf("Gaussian, σ %v: one step is %v-GDP, the charge is for %v", scale, worst, limit)
		}
		if limit := (1 + 1/(12*scale*scale)) / scale; worst > limit*(1+1e-9) {
			t.Errorf("Gaussian, σ %v: one step is %v-GDP, the comment says at most %v", scale, worst, limit)
		}
	}
}
