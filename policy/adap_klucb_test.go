package policy

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sotto-dp/sotto/internal/divergence"
)

// AdaP-KLUCB leaves out what it need not solve for. The arm must be that of solving for all, also
// where indices are equal or next to each other.
func TestAdaPKLUCBComparesAsIfItSolvedForAll(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 9))
	for n := range 200_000 {
		arms := 2 + r.IntN(6)
		p, err := NewAdaPKLUCB(arms, 1, 3.1)
		if err != nil {
			t.Fatal(err)
		}
		p.fewest = r.IntN(2) == 0
		x := 3.1 * math.Log(float64(2+r.IntN(1e6)))
		for a := range p.arms {
			h := math.Floor(math.Exp(11 * r.Float64()))
			p.plays[a] = int(h) + r.IntN(2)
			p.arms[a] = episode{mean: r.Float64() + r.NormFloat64()/h, h: h,
				width: math.Exp(2*r.NormFloat64()-2) / h}
			if a > 0 && r.IntN(4) == 0 { // the same, or nearly
				p.arms[a] = p.arms[a-1]
				p.arms[a].mean += []float64{0, 1e-15, 1e-12, -1e-12, 1e-11, -1e-11, 1e-9}[r.IntN(7)]
			}
		}
		best, top := 0, math.Inf(-1)
		for a, e := range p.arms {
			index := divergence.KLUpper(min(1, max(0, e.mean+e.noise(x))), x/e.h)
			if index > top || p.fewest && index == top && p.plays[a] < p.plays[best] {
				best, top = a, index
			}
		}
		if got := p.first(x); got != best {
			t.Fatalf("game %d: arm %d, want %d", n, got, best)
		}
	}
}
