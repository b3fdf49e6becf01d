package policy_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

// The best of five arms, or the worst, comes at half-time. What the second half loses is held against policies that began
// with all five, and against beginning anew at half-time, which forgets what was learnt of the four. Seeds are
// fixed. A policy that does not find the arm loses 750 in 25 000 rounds, and half of that fails. With
// SOTTO_FULL and -v it prints a table of 200 runs of 10⁵ rounds.
func TestArmAtHalfTime(t *testing.T) {
	type grower interface {
		policy.Policy
		AddArm() error
	}
	runs, horizon := testkit.Size(4, 200), testkit.Size(50_000, 100_000)
	for _, last := range []float64{0.08, 0.02} {
		means := []float64{0.05, 0.04, 0.03, 0.03, last}
		best := max(0.05, last)
		for _, v := range []struct {
			name  string
			build func(arms int) (grower, error)
		}{
			{"dp-klucb", func(k int) (grower, error) { return policy.NewDPKLUCB(k, 1, 2, 0) }},
			{"dp-klucb-j", func(k int) (grower, error) { return policy.NewDPKLUCBJ(k, 1, 2, 0) }},
			{"dp-imed", func(k int) (grower, error) { return policy.NewDPIMED(k, 1, 1.5, 24) }},
			{"dp-imed-j", func(k int) (grower, error) { return policy.NewDPIMEDJ(k, 1, 1.5, 24) }},
			{"zcdp-imed", func(k int) (grower, error) { return policy.NewZCDPIMED(k, privacy.ZCDP{Rho: 0.5}, 1.5, 0) }},
			{"dp-ts, ρ", func(k int) (grower, error) { return policy.NewDPTS(k, privacy.ZCDP{Rho: 0.5}, 0) }},
			{"dp-ts, ε", func(k int) (grower, error) { return policy.NewDPTS(k, privacy.Pure{Epsilon: 1}, 0) }},
			{"dp-ucb-anytime", func(k int) (grower, error) { return policy.NewDPUCBDoubling(k, 1, 2, 0) }},
			{"dp-window-klucb", func(k int) (grower, error) { return policy.NewDPWindowKLUCB(k, 1, horizon/4, 0) }},
		} {
			// plays rounds, and returns what those from the half on lose against the best arm
			play := func(arms, from, to, late int, seed uint64) float64 {
				p, err := v.build(arms)
				if err != nil {
					t.Fatal(err)
				}
				s := noise.NewFast(seed, 5)
				cur, err := release.Simulated(release.Config{Arms: len(means), Mechanism: p.Mechanism()}, &s)
				if err != nil {
					t.Fatal(err)
				}
				var laws []bandit.Law
				var rewards []noise.Fast
				for a, mean := range means {
					law, err := bandit.NewBernoulli(mean)
					if err != nil {
						t.Fatal(err)
					}
					laws, rewards = append(laws, law), append(rewards, noise.NewFast(seed, uint64(10+a)))
				}
				loss, round := 0.0, from
				kept := make([]int, len(means)) // plays of a batch that was withdrawn
				var released privacy.Released
				for round < to {
					b := p.Next(released)
					released = privacy.Released{}
					again := 0 // of the batch, what was played before
					for _, c := range b.Plays {
						again += kept[c.Arm]
					}
					n := min(b.Rounds(), to-round+again)
					if round < late && n >= late-round {
						n = late - round
					}
					counts := make([]int, len(b.Plays))
					b.Counts(n, counts)
					cut := n < b.Rounds() || round < late && n == late-round
					var out []int
					for i, c := range b.Plays {
						// what was played of a batch that was withdrawn waits, and is not played again
						old := min(kept[c.Arm], counts[i])
						made := min(counts[i]-old, to-round)
						if kept[c.Arm] -= old; cut {
							kept[c.Arm] += counts[i]
						} else if c.Release { // also what waits beyond it, see BearsMore
							out, kept[c.Arm] = append(out, c.Arm), 0
						}
						if err := cur.AddSum(c.Arm, made, laws[c.Arm].Sum(made, &rewards[c.Arm])); err != nil {
							t.Fatal(err)
						}
						if round += made; round > horizon/2 {
							loss += float64(made) * (best - means[c.Arm])
						}
					}
					if round == late {
						if err := p.AddArm(); err != nil {
							t.Fatal(err)
						}
						continue
					}
					if cut { // by the end
						break
					}
					if len(out) > 0 {
						if released, err = cur.Release(out); err != nil {
							t.Fatal(err)
						}
					}
				}
				return loss
			}
			var sum, squares [3]float64
			for seed := range uint64(runs) {
				for i, x := range []float64{play(4, 0, horizon, horizon/2, seed), play(5, 0, horizon, -1, seed),
					play(5, horizon/2, horizon, -1, seed)} {
					sum[i], squares[i] = sum[i]+x, squares[i]+x*x
				}
			}
			text := ""
			for i := range sum {
				mean := sum[i] / float64(runs)
				text += fmt.Sprintf(" %7.0f ± %-4.0f", mean, 1.96*math.Sqrt(max(0, squares[i]/float64(runs)-mean*mean)/float64(runs)))
			}
			t.Logf("%v %-10s added, from the start, begun anew: %s", last, v.name, text)
			if never := 0.03 * float64(horizon) / 2; last == best && sum[0]/float64(runs) > never/2 {
				t.Errorf("%s: an arm at half-time leaves %v of a loss of %v", v.name, sum[0]/float64(runs), never)
			}
		}
	}
}
