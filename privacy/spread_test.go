package privacy_test

import (
	"math/bits"
	"testing"

	"github.com/sotto-dp/sotto/privacy"
)

// The variance of a running sum is that of the nodes and segments that it is made of: counted one
// by one for the tree, by Chan, Shi and Song's rule for the hybrid.
func TestVariancesOfTrees(t *testing.T) {
	tree, hybrid := privacy.Tree{Scale: 3, Horizon: 100}, privacy.Hybrid{Scale: 3}
	const one = 2 * 3 * 3 // of Lap(3)
	for n := 1; n <= 100; n++ {
		nodes := 0
		for m := n; m > 0; m &= m - 1 {
			nodes++
		}
		if got := tree.Variance(n); tree.Nodes(n) != nodes || got != float64(one*nodes) {
			t.Errorf("tree of %d: %d nodes, variance %v", n, tree.Nodes(n), got)
		}
		segments, left := 0, n
		for 1<<segments <= left {
			left -= 1 << segments
			segments++
		}
		// left rewards are in the current segment's tree, whose nodes have Lap(3·(segments+1)).
		want := one * (segments + (segments+1)*(segments+1)*bits.OnesCount(uint(left)))
		if got := hybrid.Variance(n); got != float64(want) {
			t.Errorf("hybrid of %d: variance %v, want %d", n, got, want)
		}
	}
}

func TestWithScale(t *testing.T) {
	blt, err := privacy.NewBLT(privacy.ZCDP{Rho: 1}, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []privacy.Mechanism{privacy.Laplace{Scale: 2}, privacy.Gaussian{Sigma: 2},
		privacy.Tree{Scale: 2, Horizon: 9}, privacy.Hybrid{Scale: 2}, privacy.NewKAry(1, 3, 9),
		privacy.SquareRoot{Sigma: 2, Horizon: 9}, blt} {
		scale := privacy.ScaleOf(m)
		twice, ok := privacy.WithScale(m, 2*scale)
		if !ok || privacy.ScaleOf(twice) != 2*scale || privacy.Longest(twice) != privacy.Longest(m) {
			t.Errorf("%v with twice its scale is %v, %v", m, twice, ok)
		}
		if once, _ := privacy.WithScale(twice, scale); once != m {
			t.Errorf("%v and back is %v", m, once)
		}
	}
	for _, m := range []privacy.Mechanism{privacy.Exact{}, privacy.Sparse{}, privacy.Elliptic{},
		privacy.Aggregated{}} {
		if got, ok := privacy.WithScale(m, 1); ok {
			t.Errorf("%v has a scale in %v", m, got)
		}
	}
}
