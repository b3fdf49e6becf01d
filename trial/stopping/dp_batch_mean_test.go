package stopping

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/privacy"
)

// What is proved: of 300 runs each fails, by an estimate that is off or by more samples than the bound, with probability
// at most 0.1: more than 80 do with below 1e-13. A broken copy that is told of no noise does.
func TestBatchMeanTheorem(t *testing.T) {
	const alpha, beta, r, b = 0.5, 0.1, 2.0, 40.0
	for _, p := range []float64{0.8, 0.3} { // samples are ±2
		mu := 2 * (2*p - 1)
		bound := BatchMeanSamples(alpha, beta, mu, r, func(int) privacy.Tail { return privacy.Tail{H: b} })
		failed := func(told float64) (n int) {
			for seed := range uint64(300) {
				s := rand.New(rand.NewPCG(seed, 50))
				rule := testkit.Must(NewBatchMean(alpha, beta, privacy.Pure{Epsilon: 1 / b}, r))
				taken := 0
				for batch := rule.Next(privacy.Released{}); batch != nil; {
					k := batch.Plays[0].Rounds
					taken += k
					sum := b * (s.ExpFloat64() - s.ExpFloat64())
					for range k {
						if s.Float64() < p {
							sum++
						}
					}
					v := &privacy.Values{N: []int{k}, Sum: []float64{sum}, Tail: privacy.Tail{H: told}}
					batch = rule.Next(testkit.Must(privacy.NewLedger().Release(0, rule.Mechanism(), v)))
				}
				if math.Abs(rule.Estimate()-mu) > alpha*math.Abs(mu) || taken > bound {
					n++
				}
			}
			return n
		}
		if right, broken := failed(b), failed(0); right > 80 || broken <= 80 {
			t.Errorf("mean %v: %d of 300 fail, and %d of the broken copy", mu, right, broken)
		}
	}
}

// By hand: 16 samples without noise, β = 0.1: h = 2√(log 50/32) = 0.69930 for R = 1, and with α = ½ it stops at a mean of
// 2.0979 of them, which there is none of. After 64 (m = 3) h = 2√(log 450/128) = 0.43693: it stops at 1.3108; at 256 (m = 5)
// h = 2√(log 1250/512) = 0.23602, and it stops at 0.70806.
func TestBatchMeanByHand(t *testing.T) {
	for mean, want := range map[float64]bool{0.7081: true, -0.7081: true, 0.7080: false} {
		rule := testkit.Must(NewBatchMean(0.5, 0.1, privacy.None{}, 1))
		batch := rule.Next(privacy.Released{})
		for range 5 {
			k := batch.Plays[0].Rounds
			v := &privacy.Values{N: []int{k}, Sum: []float64{float64(k) * (1 + mean) / 2}}
			if batch = rule.Next(testkit.Must(privacy.NewLedger().Release(0, rule.Mechanism(), v))); batch == nil {
				break
			}
		}
		if stopped := batch == nil; stopped != want || stopped && math.Abs(rule.Estimate()-mean) > 1e-12 {
			t.Errorf("mean %v: stopped %v after %d batches with %v", mean, stopped, rule.batches, rule.Estimate())
		}
	}
}
