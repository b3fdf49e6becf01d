package identify

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sotto-dp/sotto/privacy"
)

// whole plays runs to their end against Gaussian sums of Bernoulli variance, which is what a curator
// would release up to the law of the sums, and reports plays a second of policy and draws together.
func whole(b *testing.B, means []float64, epsilon float64, build func() (Identifier, error)) {
	r := rand.New(rand.NewPCG(1, 2))
	b.ReportAllocs()
	plays, runs, batches := 0, 0, 0
	ledger := privacy.NewLedger()
	v := privacy.Values{Tail: privacy.Tail{H: 1 / epsilon}}
	count := make([]int, len(means))
	sums := make([]float64, len(means))
	for b.Loop() {
		p, err := build()
		if err != nil {
			b.Fatal(err)
		}
		clear(count)
		clear(sums)
		total := make([]int, len(means))
		account, continual := ledger.Account(p.Mechanism()), p.Mechanism().Continual()
		var released privacy.Released
		for at := 0; ; {
			batch := p.Next(released)
			if batch == nil || at > 50_000_000 {
				break
			}
			batches++
			v.N, v.Sum = v.N[:0], v.Sum[:0]
			for _, play := range batch.Plays {
				at += play.Rounds
				count[play.Arm] += play.Rounds
				if play.Release {
					n := float64(count[play.Arm])
					m := means[play.Arm]
					if continual {
						x := 0.0
						if r.Float64() < m {
							x = 1
						}
						sums[play.Arm] += x
						total[play.Arm]++
						v.N, v.Sum = append(v.N, total[play.Arm]), append(v.Sum, sums[play.Arm])
					} else {
						sum := n*m + math.Sqrt(n*m*(1-m))*r.NormFloat64()
						noise := r.ExpFloat64() / epsilon
						if r.Uint64()&1 == 0 {
							noise = -noise
						}
						v.N, v.Sum = append(v.N, count[play.Arm]), append(v.Sum, sum+noise)
					}
					count[play.Arm] = 0
				}
			}
			plays += batch.Rounds()
			if released, err = account.Release(0, &v); err != nil {
				b.Fatal(err)
			}
		}
		runs++
	}
	b.ReportMetric(float64(plays)/b.Elapsed().Seconds()/1e6, "Mplays/s")
	b.ReportMetric(float64(plays)/float64(runs), "plays/run")
	b.ReportMetric(float64(batches)/float64(runs), "batches/run")
}

var (
	figureFirst  = []float64{0.95, 0.9, 0.9, 0.9, 0.5}
	figureSecond = []float64{0.75, 0.7, 0.7, 0.7, 0.7}
	spread       = []float64{0.75, 0.625, 0.5, 0.375, 0.25}
)

func BenchmarkAdaPTT(b *testing.B) {
	for _, c := range []struct {
		name    string
		means   []float64
		epsilon float64
	}{{"first/0.01", figureFirst, 0.01}, {"first/0.1", figureFirst, 0.1},
		{"first/1", figureFirst, 1}, {"second/1", figureSecond, 1}, {"spread/1", spread, 1}} {
		b.Run(c.name, func(b *testing.B) {
			whole(b, c.means, c.epsilon, func() (Identifier, error) {
				return NewAdaPTT(5, privacy.Pure{Epsilon: c.epsilon}, 0.01)
			})
		})
	}
	b.Run("greedy", func(b *testing.B) { // the reference: play by play
		whole(b, figureFirst, 1, func() (Identifier, error) {
			p, err := NewAdaPTT(5, privacy.Pure{Epsilon: 1}, 0.01)
			p.jumps = false
			return p, err
		})
	})
}

func BenchmarkAdaPTTStar(b *testing.B) {
	for _, c := range []struct {
		name    string
		means   []float64
		epsilon float64
	}{{"first/0.01", figureFirst, 0.01}, {"first/1", figureFirst, 1}, {"spread/1", spread, 1}} {
		b.Run(c.name, func(b *testing.B) {
			whole(b, c.means, c.epsilon, func() (Identifier, error) {
				return NewAdaPTTStar(5, privacy.Pure{Epsilon: c.epsilon}, 0.01)
			})
		})
	}
}

func BenchmarkDPTT(b *testing.B) {
	for _, c := range []struct {
		name    string
		means   []float64
		epsilon float64
	}{{"first/0.1", figureFirst, 0.1}, {"first/1", figureFirst, 1}, {"spread/1", spread, 1},
		{"spread/10", spread, 10}} {
		b.Run(c.name, func(b *testing.B) {
			whole(b, c.means, c.epsilon, func() (Identifier, error) {
				return NewDPTT(5, privacy.Pure{Epsilon: c.epsilon}, 0.01)
			})
		})
	}
}

func BenchmarkTTUCB(b *testing.B) {
	whole(b, spread, 1, func() (Identifier, error) { return NewTTUCB(5, 0.01) })
}

func BenchmarkCG(b *testing.B) {
	for b.Loop() {
		CG(5)
	}
}
