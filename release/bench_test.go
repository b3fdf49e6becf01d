package release

import (
	"math"
	"testing"

	"github.com/sotto-dp/sotto/privacy"
)

// longest is more rounds than a benchmark plays.
const longest = min(1<<40, math.MaxInt/4)

var benched = []privacy.Mechanism{
	privacy.Exact{}, privacy.Laplace{Scale: 1}, privacy.Gaussian{Sigma: 1},
	privacy.Tree{Scale: 25, Horizon: longest}, privacy.Hybrid{Scale: 2},
	privacy.KAry{Scale: 10, Base: 19, Horizon: longest},
}

// One reward and its release: what a policy that decides each round costs.
func BenchmarkRound(b *testing.B) {
	each(b, func(b *testing.B, c Curator) {
		arms := []int{0}
		for i := 0; b.Loop(); {
			if i++; i >= 5 {
				i = 0
			}
			arms[0] = i
			if c.AddSum(i, 1, 1) != nil {
				b.Fatal("add")
			}
			if _, err := c.Release(arms); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// A thousand rewards as one sum, and its release: an episode in a simulation, of 256 a run.
func BenchmarkEpisode(b *testing.B) {
	each(b, func(b *testing.B, c Curator) {
		arms := []int{2}
		n, restart := 1, func() {
			r := c.(*curator[int64])
			r.next = 0
			_ = r.Forget(r.charge)
		}
		if s, simulated := c.(*curator[float64]); simulated {
			n, restart = 1000, func() {
				s.next = 0
				_ = s.Forget(s.charge)
			}
		}
		for i := 0; b.Loop(); i++ {
			if i&255 == 0 {
				c.Ledger().Reset()
				restart()
			}
			if c.AddSum(2, n, 1) != nil {
				b.Fatal("add")
			}
			if _, err := c.Release(arms); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// Five arms released together.
func BenchmarkReleaseOfFive(b *testing.B) {
	each(b, func(b *testing.B, c Curator) {
		arms := []int{0, 1, 2, 3, 4}
		for b.Loop() {
			for _, a := range arms {
				if c.AddSum(a, 1, 1) != nil {
					b.Fatal("add")
				}
			}
			if _, err := c.Release(arms); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func each(b *testing.B, f func(b *testing.B, c Curator)) {
	for _, m := range benched {
		b.Run("simulated/"+m.Kind(), func(b *testing.B) {
			c := simulated(b, Config{Arms: 5, Mechanism: m})
			b.ReportAllocs()
			f(b, c)
		})
		b.Run("real/"+m.Kind(), func(b *testing.B) {
			c := realCurator(b, Config{Arms: 5, Mechanism: m})
			b.ReportAllocs()
			f(b, c)
		})
	}
}
