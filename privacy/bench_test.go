package privacy_test

import (
	"testing"

	"github.com/sotto-dp/sotto/privacy"
)

// BenchmarkRun is what the ledger costs a run of a batched policy: a hundred slots, one release
// each, a ledger reused. The unit is a run.
func BenchmarkRun(b *testing.B) {
	for _, c := range []struct {
		name    string
		options []privacy.Option
	}{{"uncapped", nil}, {"capped", []privacy.Option{privacy.WithCap(privacy.Pure{Epsilon: 1})}}} {
		b.Run(c.name, func(b *testing.B) {
			l := privacy.NewLedger(c.options...)
			v := &privacy.Values{N: []int{10}, Sum: []float64{3}}
			var m privacy.Mechanism = privacy.Laplace{Scale: 1}
			b.ReportAllocs()
			for b.Loop() {
				l.Reset()
				for slot := range 100 {
					if _, err := l.Release(slot, m, v); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100, "ns/release")
		})
	}
}

// BenchmarkReleaseAll is DP-SE's release: five slots at once.
func BenchmarkReleaseAll(b *testing.B) {
	l := privacy.NewLedger()
	v := &privacy.Values{N: make([]int, 5), Sum: make([]float64, 5)}
	var m privacy.Mechanism = privacy.Laplace{Scale: 1}
	slots := make([]int, 5)
	b.ReportAllocs()
	for b.Loop() {
		l.Reset()
		for batch := range 20 {
			for i := range slots {
				slots[i] = 5*batch + i
			}
			if _, err := l.ReleaseAll(slots, m, v); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100, "ns/slot")
}

// BenchmarkContinual is one round of a policy on trees: a running sum of a slot that
// has been charged.
func BenchmarkContinual(b *testing.B) {
	for _, m := range []privacy.Mechanism{privacy.Tree{Scale: 1, Horizon: 1 << 20},
		privacy.Hybrid{Scale: 1}, privacy.Exact{}} {
		b.Run(m.Kind(), func(b *testing.B) {
			l := privacy.NewLedger()
			v := &privacy.Values{N: []int{10}, Sum: []float64{3}}
			b.ReportAllocs()
			slot := 0
			for b.Loop() {
				if _, err := l.Release(slot, m, v); err != nil {
					b.Fatal(err)
				}
				if slot++; slot == 5 {
					slot = 0
				}
			}
		})
	}
}

// BenchmarkContinualAccount is the same through an account.
func BenchmarkContinualAccount(b *testing.B) {
	a := privacy.NewLedger().Account(privacy.Tree{Scale: 1, Horizon: 1 << 20})
	v := &privacy.Values{N: []int{10}, Sum: []float64{3}}
	b.ReportAllocs()
	slot := 0
	for b.Loop() {
		if _, err := a.Release(slot, v); err != nil {
			b.Fatal(err)
		}
		if slot++; slot == 5 {
			slot = 0
		}
	}
}

// BenchmarkNew is a run that does not reuse its ledger, and asks for the total.
func BenchmarkNew(b *testing.B) {
	v := &privacy.Values{N: []int{10}, Sum: []float64{3}}
	b.ReportAllocs()
	for b.Loop() {
		l := privacy.NewLedger()
		for slot := range 100 {
			if _, err := l.Release(slot, privacy.Laplace{Scale: 1}, v); err != nil {
				b.Fatal(err)
			}
		}
		l.Total()
	}
}

func BenchmarkAnalyticSigma(b *testing.B) {
	for b.Loop() {
		if _, err := privacy.AnalyticSigma(privacy.Approx{Epsilon: 1, Delta: 1e-6}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkApprox(b *testing.B) {
	l := privacy.Laplace{Scale: 1}.Loss().Times(20)
	for b.Loop() {
		l.Approx(1e-6)
	}
}

// BenchmarkNothing is the loop that the benchmarks above have in common.
func BenchmarkNothing(b *testing.B) {
	slot := 0
	for b.Loop() {
		if slot++; slot == 5 {
			slot = 0
		}
	}
}
