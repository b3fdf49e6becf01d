package linear_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sotto-dp/sotto/policy/linear"
	"github.com/sotto-dp/sotto/privacy"
)

// BenchmarkOFUL/choose is a round of the contextual experiment of [Azize 2024, §5.4] (d = 3, K =
// 10, contexts N(1/√d, 1/10)) without the world's part of it: the choice and what it does to V. The
// others say what grows with d, and what an update costs.
func BenchmarkOFUL(b *testing.B) {
	sets := func(d, k, n int) [][]float64 {
		rng := rand.New(rand.NewPCG(1, 2))
		s := make([][]float64, n)
		for i := range s {
			s[i] = make([]float64, k*d)
			for j := range s[i] {
				s[i][j] = 1/math.Sqrt(float64(d)) + math.Sqrt(0.1)*rng.NormFloat64()
			}
		}
		return s
	}
	run := func(name string, d, k int, budget privacy.Budget, o linear.OFULOptions) {
		b.Run(name, func(b *testing.B) {
			p, err := linear.NewOFUL(d, 1e7, budget, o)
			if err != nil {
				b.Fatal(err)
			}
			s := sets(d, k, 256)
			var ledger *privacy.Ledger
			v := privacy.Vector{N: 1, Value: make([]float64, d)}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				for slot := p.Due(); slot >= 0; slot = p.Due() {
					if i&0xfff == 0 || ledger == nil {
						ledger = privacy.NewLedger()
					}
					r, err := ledger.ReleaseVector(p.Updates(), p.Mechanism(), &v)
					if err != nil {
						b.Fatal(err)
					}
					p.Learn(r)
				}
				p.Choose(s[i&255])
			}
		})
	}
	rare := linear.OFULOptions{Lambda: 0.1, C: 1, Risk: 0.001, Split: true}
	run("choose", 3, 10, privacy.ZCDP{Rho: 1}, rare)
	for _, d := range []int{1, 10, 50} {
		run(fmt.Sprintf("choose/d=%d", d), d, 10, privacy.ZCDP{Rho: 1}, rare)
	}
	run("choose/d=20/k=50", 20, 50, privacy.ZCDP{Rho: 1}, rare)
	run("every-round", 3, 10, privacy.None{},
		linear.OFULOptions{Lambda: 0.1, Risk: 0.001, Split: true, EveryRound: true})
}
