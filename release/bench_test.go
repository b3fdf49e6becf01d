package release

import (
	"testing"

	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
)

func BenchmarkSimulated(b *testing.B) {
	for _, m := range []privacy.Mechanism{privacy.Exact{}, privacy.Laplace{Scale: 1}, privacy.Gaussian{Sigma: 1}, privacy.Tree{Scale: 25, Horizon: 1 << 40}, privacy.Hybrid{Scale: 2}} {
		b.Run("one/"+m.Kind(), func(b *testing.B) {
			s := noise.NewFast(1, 2)
			c, err := Simulated(Config{Arms: 5, Mechanism: m}, &s)
			if err != nil {
				b.Fatal(err)
			}
			arms := []int{0}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				arms[0] = i % 5
				if c.AddSum(arms[0], 1, 1) != nil {
					b.Fatal("add")
				}
				if _, err := c.Release(arms); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkFastLaplace(b *testing.B) {
	s := noise.NewFast(1, 2)
	for b.Loop() {
		s.Laplace(1)
	}
}
