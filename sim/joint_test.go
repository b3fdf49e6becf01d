package sim_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/interval"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/sim"
)

// Joint batches by counts come at the rounds at which RunDelayed releases them, one by one; and arms,
// sums and noises have their laws: over 1000 runs the mean of each is within 5.3 standard errors, which a
// normal law exceeds with probability 1.2e-7, in 9 comparisons. A window that is one round longer is found
// out, and so would be a copy without noise.
func TestRunJoint(t *testing.T) {
	const horizon, window, runs, epsilon, noisy = 40_000, 700, 1000, 0.05, 800
	means := []float64{0.1, 0.5, 0.3}
	cfg := config(t, bernoulli(t, means...), "split", privacy.Pure{Epsilon: epsilon}, horizon, 0, nil)
	rows := func(window int) (at []int) {
		cfg := config(t, bernoulli(t, means...), "split", privacy.Pure{Epsilon: epsilon}, horizon, 0, nil)
		var out sim.Result
		d := sim.Delay{Window: window, Released: func(n int, _ []interval.Sums) { at = append(at, n) }}
		if err := sim.RunDelayed(context.Background(), cfg, d, &out); err != nil {
			t.Fatal(err)
		}
		return at
	}
	coins := noise.Key{Seed: 1, Role: noise.RoleFloor}.Fast(1)[0]
	var at []int
	var count, sum, noises [3]float64
	var total float64
	for range runs {
		at = at[:0]
		var last []interval.Sums
		err := sim.RunJoint(t.Context(), cfg, sim.Delay{Window: window, Coins: &coins},
			func(n int, sums []interval.Sums) bool {
				at, last = append(at, n), slices.Clone(sums)
				return true
			})
		if err != nil {
			t.Fatal(err)
		}
		total = 0
		for a, s := range last {
			total += float64(s.N)
			d := s.Sum - means[a]*float64(s.N)
			count[a], sum[a] = count[a]+float64(s.N)/runs, sum[a]+d/runs
			noises[a] += (d*d - float64(s.N)*means[a]*(1-means[a])) / float64(s.Releases) / runs
		}
	}
	if want := rows(window); !slices.Equal(at, want) || slices.Equal(at, rows(window+1)) || len(at) < 4 {
		t.Errorf("releases at %v, must be at %v", at, want)
	}
	for a, mean := range means {
		k := float64(len(at))
		per := total*mean*(1-mean)/3 + k*noisy         // variance of what was released of an arm in a run
		wide := 5.3 * 2.24 * per / k / math.Sqrt(runs) // the kurtosis is 6 at most, of Laplace noise
		for name, x := range map[string][3]float64{    // is, must be, within
			"count": {count[a], total / 3, 5.3 * math.Sqrt(total*2/9/runs)},
			"sum":   {sum[a], 0, 5.3 * math.Sqrt(per/runs)},
			"noise": {noises[a], noisy, wide},
		} {
			if math.Abs(x[0]-x[1]) > x[2] {
				t.Errorf("arm %d, %s: %v, must be %v ± %v", a, name, x[0], x[1], x[2])
			}
		}
		if wide > noisy { // or a twin without noise passes
			t.Errorf("arm %d: noise of variance %v is found to ± %v", a, noisy, wide)
		}
	}
	end := 0
	if err := sim.RunJoint(t.Context(), cfg, sim.Delay{Window: window, Coins: &coins},
		func(int, []interval.Sums) bool { end++; return end < 2 }); err != nil || end != 2 {
		t.Errorf("%d releases, must be 2, %v", end, err)
	}
}

func TestRunJointErrors(t *testing.T) {
	coins := noise.Key{Seed: 1, Role: noise.RoleFloor}.Fast(1)[0]
	good := sim.Delay{Window: 5, Coins: &coins}
	of := func(name string) sim.Config {
		return config(t, bernoulli(t, 0.2, 0.4), name, privacy.Pure{Epsilon: 1}, 5000, 0, nil)
	}
	for want, x := range map[string]struct {
		cfg    sim.Config
		change func(d *sim.Delay)
	}{
		"has no joint batches":   {of("dp-klucb"), func(*sim.Delay) {}},
		"are for coins":          {of("split"), func(d *sim.Delay) { d.Coins = nil }},
		"a window of 1 at least": {of("split"), func(d *sim.Delay) { d.Window = 0 }},
		"and no floor":           {of("split"), func(d *sim.Delay) { d.Floor = 0.1 }},
	} {
		d := good
		x.change(&d)
		if err := sim.RunJoint(t.Context(), x.cfg, d, func(int, []interval.Sums) bool { return true }); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := sim.RunJoint(ctx, of("split"), good,
		func(int, []interval.Sums) bool { return true }); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
