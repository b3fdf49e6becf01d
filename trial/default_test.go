package trial

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/stats"
	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/privacy"
)

// On random arms the default rule takes at most 1.05 times the participants of DP-TT, which comes second wherever
// all rules were played, in the median: a class of arms refutes that by chance with probability at most 1e-7, by
// the sign test. The figures of docs/trial.md are
//
//	SOTTO_FULL=1 go test ./trial -run DefaultRuleOnRandomArms -v
func TestDefaultRuleOnRandomArms(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	classes := []struct{ lo, hi float64 }{{0.01, 0.05}, {0.25, 0.75}}
	const runs = 6
	worse, all := 0, 0
	for _, c := range classes {
		for _, arms := range []int{2, 5, 10, 20} {
			if testkit.Full() { // each class by itself
				worse, all = 0, 0
			}
			var ratios []float64
			for i := range testkit.Size(1, 25) {
				means := make([]float64, arms)
				for gap := 0.0; gap < (c.hi-c.lo)/100; {
					for a := range means {
						means[a] = c.lo + (c.hi-c.lo)*r.Float64()
					}
					sorted := slices.Sorted(slices.Values(means))
					gap = sorted[arms-1] - sorted[arms-2]
				}
				in := testkit.Must(bandit.BernoulliInstance(means...))
				epsilon := []float64{0.1, 1, 4}[i%3]
				var plays [2][]float64
				for j, name := range []string{catalog.DefaultRule, "dp-tt"} {
					study, err := Simulation{Rule: rule(t, name, arms, privacy.Pure{Epsilon: epsilon}, nil),
						Source: bandit.Fixed(in), Runs: runs, Seed: uint64(i), Workers: 1}.Run(context.Background())
					if err != nil {
						t.Fatal(err)
					}
					for _, o := range study.Outcomes {
						plays[j] = append(plays[j], float64(o.Tau))
					}
				}
				for k := range runs {
					all++
					if plays[0][k] > 1.05*plays[1][k] {
						worse++
					}
				}
				ratios = append(ratios, total64(plays[0])/total64(plays[1]))
			}
			if low, _, err := stats.ClopperPearson(worse, all, 1-2e-7); err != nil || low > 0.5 {
				t.Errorf("%d arms of %v to %v: more than 1.05 of dp-tt's participants in %d of %d runs, %v", arms, c.lo,
					c.hi, worse, all, err)
			}
			slices.Sort(ratios)
			t.Logf("%2d arms of %v to %v: median %.2f of dp-tt's participants, from %.2f to %.2f", arms, c.lo,
				c.hi, ratios[len(ratios)/2], ratios[0], ratios[len(ratios)-1])
		}
	}
}

func total64(x []float64) (sum float64) {
	for _, v := range x {
		sum += v
	}
	return sum
}
