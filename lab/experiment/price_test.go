package experiment_test

import (
	"fmt"
	"github.com/sotto-dp/sotto/lab/experiment"
	"math"
	"slices"
	"strconv"
	"testing"
)

// The difference and the price in summary.csv are those of the runs in results.parquet, paired by
// hand; the error of the price is that of the ratio of the means by the delta method, from
// variances and the covariance.
func TestPrice(t *testing.T) {
	const text = `name: priced
horizon: 2000
runs: 70
seed: 3
checkpoints: [1, 10, 2000]
instances:
  - {name: a, bernoulli: [0.9, 0.6, 0.3]}
  - {name: flat, bernoulli: [0.5, 0.5]}
policies:
  - {policy: adac-ucb, beta: 1}
  - {policy: adac-ucb, beta: 2, name: two}
  - adap-ucb
  - ucb
budgets: [{rho: 0.01}, {rho: 1}, none]
`
	dir := t.TempDir()
	res := play(t, text, experiment.Options{Out: dir})
	regret := map[string][]float64{}
	key := func(instance, policy, budget string, t int64) string {
		return fmt.Sprintf("%s|%s|%s|%d", instance, policy, budget, t)
	}
	for _, r := range rows(t, dir) {
		k := key(r.Instance, r.Policy, r.Budget, r.T)
		regret[k] = append(regret[k], r.Regret) // runs are in order
	}
	lines := summary(t, dir)
	moments := func(x, y []float64) (mx, my, cov float64) {
		n := float64(len(x))
		for i := range x {
			mx, my = mx+x[i]/n, my+y[i]/n
		}
		for i := range x {
			cov += (x[i] - mx) * (y[i] - my) / (n - 1)
		}
		return mx, my, cov
	}
	checked := 0
	for _, line := range lines {
		if line[4] != "difference" && line[4] != "price" {
			continue
		}
		checked++
		at, err := strconv.ParseInt(line[5], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if line[3] == "none" || line[2] == "ucb" || line[6] != "70" {
			t.Errorf("%v", line)
		}
		x, base := regret[key(line[1], line[2], line[3], at)], regret[key(line[1], line[2], "none", at)]
		d := make([]float64, len(x))
		for i := range x {
			d[i] = x[i] - base[i]
		}
		number := func(i int) float64 {
			v, err := strconv.ParseFloat(line[i], 64)
			if err != nil {
				t.Fatalf("%v: column %d: %v", line, i, err)
			}
			return v
		}
		near := func(what string, got, want float64) {
			if math.Abs(got-want) > 1e-9*(1+math.Abs(want)) {
				t.Errorf("%v: %s is %v, want %v", line[:6], what, got, want)
			}
		}
		md, mb, cov := moments(d, base)
		_, _, vd := moments(d, d)
		_, _, vb := moments(base, base)
		if line[4] == "difference" {
			near("mean", number(7), md)
			near("se", number(8), math.Sqrt(vd/70))
			near("sd", number(9), math.Sqrt(vd))
			slices.Sort(d)
			near("median", number(11), (d[34]+d[35])/2)
			continue
		}
		if mb == 0 {
			if line[7]+line[8]+line[9] != "" {
				t.Errorf("a price without a twin's regret: %v", line)
			}
			continue
		}
		near("price", number(7), md/mb)
		near("se", number(8), math.Sqrt(vd-2*md/mb*cov+md*md/(mb*mb)*vb)/mb/math.Sqrt(70))
		if line[9]+line[10]+line[11]+line[12] != "" {
			t.Errorf("a ratio of means has no quantiles: %v", line)
		}
	}
	// instances, policies, budgets, metrics, checkpoints
	if want := 2 * 3 * 2 * 2 * 3; checked != want {
		t.Errorf("%d rows of differences and prices, want %d", checked, want)
	}

	back, err := experiment.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range res.Cells {
		b := back.Cells[i]
		if c.Twin != b.Twin || !slices.Equal(c.Difference.Mean, b.Difference.Mean) ||
			!slices.Equal(c.FinalDifference, b.FinalDifference) {
			t.Errorf("%s was loaded differently", c.Label())
		}
		if c.Twin < 0 {
			if c.Price.Mean != nil || c.Private && c.Budget != "none" {
				t.Errorf("%s: twin %d", c.Label(), c.Twin)
			}
			continue
		}
		twin := res.Cells[c.Twin]
		if twin.Instance != c.Instance || twin.Policy != c.Policy || twin.Budget != "none" ||
			len(c.FinalDifference) != 70 ||
			c.FinalDifference[5] != c.FinalRegret[5]-twin.FinalRegret[5] {
			t.Errorf("%s has the twin %s", c.Label(), twin.Label())
		}
	}
}
