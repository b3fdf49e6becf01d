package sim_test

import (
	"context"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/sim"
)

// leader plays the arm with the largest released mean, four rounds a release. To whoever makes
// intervals it tells another noise than it has, if it is to.
type leader struct {
	noise, told privacy.Mechanism
	asked       int // for its mechanism
	sum, n      []float64
	batch       policy.Batch
}

func newLeader(arms int, noise, told privacy.Mechanism) *leader {
	return &leader{noise: noise, told: told, sum: make([]float64, arms), n: make([]float64, arms)}
}

func (l *leader) Mechanism() privacy.Mechanism {
	if l.asked++; l.asked > 2 { // the curator, and who admits it, are told the truth
		return l.told
	}
	return l.noise
}

func (l *leader) Next(released privacy.Released) *policy.Batch {
	if released.Len() > 0 {
		arm := l.batch.Plays[0].Arm
		l.sum[arm] += released.Sum(0)
		l.n[arm] += float64(released.N(0))
	}
	best := 0
	for a := range l.sum {
		if l.n[a] == 0 {
			best = a
			break
		}
		if l.sum[a]/l.n[a] > l.sum[best]/l.n[best] {
			best = a
		}
	}
	l.batch.Plays = []policy.Play{{Arm: best, Rounds: 4, Release: true}}
	return &l.batch
}

// outside counts the runs in which the mean of one of the arms left its interval at some time, one
// of the means was outside at the end, and the difference was.
func outside(t *testing.T, runs int, of, told privacy.Mechanism) (ever, last, difference [2]int) {
	t.Helper()
	means := []float64{0.5, 0.3}
	in, err := bandit.BernoulliInstance(means...)
	if err != nil {
		t.Fatal(err)
	}
	for run := range runs {
		world := noise.Key{Experiment: "intervals", Run: run}
		streams := world.Fast(3)
		asks := sim.Intervals{Risk: 0.05, Means: means}
		var out sim.Result
		if err := sim.Run(context.Background(), sim.Config{Policy: newLeader(2, of, told), Instance: in,
			Horizon: 600, Checkpoints: []int{600}, Rewards: streams[:2], Noise: &streams[2],
			Intervals: &asks}, &out); err != nil {
			t.Fatal(err)
		}
		for a, e := range asks.Arms {
			if !e.Held {
				ever[a]++
			}
			if !(e.Interval[0] <= means[a] && means[a] <= e.Interval[1]) {
				last[a]++
				if e.Held && e.Released > 300 {
					t.Fatalf("run %d, arm %d: %+v", run, a, e)
				}
			}
		}
		if d := asks.Arms[1].Difference; !(d[0] <= -0.2 && -0.2 <= d[1]) {
			difference[1]++
		}
		if asks.Arms[0].Difference != [2]float64{} {
			t.Fatalf("the best arm differs from itself by %v", asks.Arms[0].Difference)
		}
	}
	return ever, last, difference
}

// Of a run that goes where its noisy releases send it, each mean leaves its interval at some time
// in 5 % of all runs at most, and so is it with the difference at the end. Who is told half of the
// noise, or none of it, is found out: that is what the twins are.
//
// Runs: 200 of each noise, or 4000. At a probability of 0.05 more than 30 and 277 of them have
// probability below 5e-8 (binomial), and there are twelve counts.
func TestIntervalsOfRunsCover(t *testing.T) {
	runs, most := testkit.Size(200, 4000), testkit.Size(30, 277)
	for _, c := range []struct {
		name             string
		noise, half, far privacy.Mechanism
	}{
		{"laplace", privacy.Laplace{Scale: 5}, privacy.Laplace{Scale: 2.5}, privacy.Laplace{}},
		{"gaussian", privacy.Gaussian{Sigma: 7}, privacy.Gaussian{Sigma: 3.5}, privacy.Gaussian{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ever, last, difference := outside(t, runs, c.noise, c.noise)
			t.Logf("ever %v, at the end %v, difference %v of %d", ever, last, difference, runs)
			for _, n := range []int{ever[0], ever[1], last[0], last[1], difference[1]} {
				if n > most {
					t.Errorf("outside in %d of %d runs, must be at most %d", n, runs, most)
				}
			}
			const few = 200
			for name, told := range map[string]privacy.Mechanism{"half": c.half, "none": c.far} {
				ever, last, difference := outside(t, few, c.noise, told)
				t.Logf("%s: ever %v, at the end %v, difference %v of %d", name, ever, last, difference, few)
				if max(ever[0], ever[1]) <= 30 {
					t.Errorf("a twin that is told %s of the noise is outside in %v of %d runs", name, ever, few)
				}
				if name == "none" && max(last[0], last[1], difference[1]) <= 30 {
					t.Errorf("a twin that is told none of it is outside at the end in %v, %v", last, difference)
				}
			}
		})
	}
}

// Intervals change nothing that is played, released or charged. They are of what was
// released, which is not all that was played, and without noise and with all of it in
// releases they are the plain ones.
func TestIntervalsChangeNothing(t *testing.T) {
	means := []float64{0.6, 0.5, 0.3}
	in, err := bandit.BernoulliInstance(means...)
	if err != nil {
		t.Fatal(err)
	}
	const horizon = 20_000
	for name, of := range map[string]func() (policy.Policy, error){
		"dp-klucb":   func() (policy.Policy, error) { return policy.NewDPKLUCB(3, 1, 1.5, 0) },
		"adap-klucb": func() (policy.Policy, error) { return policy.NewAdaPKLUCB(3, 1, 3.1) },
		"adac-ucb": func() (policy.Policy, error) {
			return policy.NewAdaCUCB(3, privacy.ZCDP{Rho: 0.5}, 3.1)
		},
		"dp-se": func() (policy.Policy, error) { return policy.NewDPSE(3, 1, 0.001) },
		"ucb":   func() (policy.Policy, error) { return policy.NewUCB(3) },
	} {
		t.Run(name, func(t *testing.T) {
			played := func(asks *sim.Intervals) (out sim.Result) {
				p, err := of()
				if err != nil {
					t.Fatal(err)
				}
				streams := noise.Key{Experiment: name}.Fast(4)
				if err := sim.Run(context.Background(), sim.Config{Policy: p, Instance: in, Horizon: horizon,
					Checkpoints: []int{10, horizon}, Rewards: streams[:3], Noise: &streams[3],
					Intervals: asks}, &out); err != nil {
					t.Fatal(err)
				}
				return out
			}
			asks := sim.Intervals{Risk: 0.05, Means: means}
			without, with := played(nil), played(&asks)
			if !reflect.DeepEqual(without, with) {
				t.Fatalf("%+v, with intervals %+v", without, with)
			}
			total := 0
			for a, e := range asks.Arms {
				total += e.Plays
				width := e.Interval[1] - e.Interval[0]
				if e.Plays != with.Plays[a] || e.Released > e.Plays || e.Released == 0 ||
					width < e.Plain*(1-1e-3) || width > 6*e.Plain || !e.Held {
					t.Errorf("arm %d: %+v, plays %d", a, e, with.Plays[a])
				}
				if name == "ucb" && e.Released == e.Plays && math.Abs(width-e.Plain) > 1e-9 {
					t.Errorf("arm %d: width %v without privacy, plain %v", a, width, e.Plain)
				}
				if a > 0 && !(e.Difference[0] < means[a]-0.6 && means[a]-0.6 < e.Difference[1] &&
					e.Difference[1]-e.Difference[0] > width && e.PlainDifference > e.Plain) {
					t.Errorf("arm %d: difference %v, plain %v", a, e.Difference, e.PlainDifference)
				}
			}
			if total != horizon {
				t.Errorf("%d plays", total)
			}
		})
	}
}

// What gives no interval is refused by its name, before anything is played.
func TestNoIntervals(t *testing.T) {
	in, err := bandit.BernoulliInstance(0.6, 0.5)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := policy.NewDPUCB(2, 100, 1, 0.1)
	if err != nil {
		t.Fatal(err)
	}
	exact, err := policy.NewUCB(2)
	if err != nil {
		t.Fatal(err)
	}
	changing := in
	changing.Changes = []bandit.Change{{From: 50, Arms: in.Arms}}
	for _, c := range []struct {
		want string
		cfg  sim.Config
		asks sim.Intervals
	}{
		{"no interval is known for its releases: its mechanism is tree", sim.Config{Policy: tree, Instance: in},
			sim.Intervals{Risk: 0.05, Means: []float64{0.6, 0.5}}},
		{"risk of intervals is NaN", sim.Config{Policy: exact, Instance: in},
			sim.Intervals{Risk: math.NaN(), Means: []float64{0.6, 0.5}}},
		{"risk of intervals is 0,", sim.Config{Policy: exact, Instance: in},
			sim.Intervals{Means: []float64{0.6, 0.5}}},
		{"risk of intervals is 1,", sim.Config{Policy: exact, Instance: in},
			sim.Intervals{Risk: 1, Means: []float64{0.6, 0.5}}},
		{"1 means for 2 arms", sim.Config{Policy: exact, Instance: in},
			sim.Intervals{Risk: 0.05, Means: []float64{0.6}}},
		{"the mean 1.5", sim.Config{Policy: exact, Instance: in},
			sim.Intervals{Risk: 0.05, Means: []float64{0.6, 1.5}}},
		{"clipped rewards", sim.Config{Policy: exact, Instance: in, Unclipped: true},
			sim.Intervals{Risk: 0.05, Means: []float64{0.6, 0.5}}},
		{"laws that do not change", sim.Config{Policy: exact, Instance: changing},
			sim.Intervals{Risk: 0.05, Means: []float64{0.6, 0.5}}},
	} {
		streams := noise.Key{}.Fast(3)
		c.cfg.Horizon, c.cfg.Checkpoints, c.cfg.Intervals = 100, []int{100}, &c.asks
		c.cfg.Rewards, c.cfg.Noise = streams[:2], &streams[2]
		err := sim.Run(context.Background(), c.cfg, &sim.Result{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, must say %q", err, c.want)
		}
		if tree := c.cfg.Policy == policy.Policy(tree); tree != errors.Is(err, sim.ErrNoInterval) {
			t.Errorf("%v: ErrNoInterval is %v", err, !tree)
		}
		if c.asks.Arms != nil {
			t.Errorf("%v, and there are intervals", err)
		}
	}
}
