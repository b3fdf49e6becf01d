package sim_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/policy/linear"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/sim"
)

// compass is four actions of the plane and θ* = (0.5, −0.25): means 0.5, −0.25, 0.2, 0.
func compass(t testing.TB, n bandit.RewardNoise) bandit.LinearInstance {
	t.Helper()
	in, err := bandit.NewLinearInstance([][]float64{{1, 0}, {0, 1}, {0.6, 0.4}, {0, 0}},
		[]float64{0.5, -0.25}, n)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func gaussian(t testing.TB, sd float64) bandit.RewardNoise {
	t.Helper()
	n, err := bandit.GaussianNoise(sd)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func linearConfig(p linear.Policy, in bandit.LinearInstance, horizon, run int) sim.LinearConfig {
	world := noise.Key{Seed: 1, Experiment: "compass", Run: run, Role: noise.RoleReward}
	own := noise.Key{Seed: 1, Experiment: "compass", Cell: "policy", Run: run, Role: noise.RoleNoise}
	return sim.LinearConfig{Policy: p, Instance: in, Horizon: horizon,
		Rewards: world.Fast(len(in.Actions)), Noise: &own.Fast(1)[0],
		Checkpoints: sim.LogSpaced(50, horizon)}
}

// linearScript plays fixed batches and keeps what they release.
type linearScript struct {
	mechanism privacy.Mechanism
	batches   []policy.Batch
	next      int
	seen      [][]float64
}

func (s *linearScript) Mechanism() privacy.Mechanism { return s.mechanism }

func (s *linearScript) Next(r privacy.ReleasedVector) *policy.Batch {
	if r.Len() > 0 {
		var v []float64
		for i := range r.Len() {
			v = append(v, r.At(i))
		}
		s.seen = append(s.seen, v)
	}
	if s.next == len(s.batches) {
		return nil
	}
	s.next++
	return &s.batches[s.next-1]
}

// greedy plays every action for longer and longer, in turns with what the last sums say is best.
type greedy struct {
	sigma  float64
	phase  int
	rounds []int
	batch  policy.Batch
}

func (g *greedy) Mechanism() privacy.Mechanism { return privacy.Sums{Sigma: g.sigma} }

func (g *greedy) Next(r privacy.ReleasedVector) *policy.Batch {
	g.batch.Plays = g.batch.Plays[:0]
	if g.phase++; g.phase%2 == 0 {
		best := 0
		for a := range g.rounds {
			if r.At(a)/float64(g.rounds[a]) > r.At(best)/float64(g.rounds[best]) {
				best = a
			}
		}
		g.batch.Plays = append(g.batch.Plays, policy.Play{Arm: best, Rounds: 40 << g.phase, Release: true})
		return &g.batch
	}
	for a := range g.rounds {
		g.rounds[a] = (10 + a) << g.phase
		g.batch.Plays = append(g.batch.Plays, policy.Play{Arm: a, Rounds: g.rounds[a], Release: true})
	}
	return &g.batch
}

func TestLinearCurveIsTheTraceEvaluated(t *testing.T) {
	const horizon = 20_000
	in := compass(t, bandit.SignNoise())
	cfg := linearConfig(&greedy{sigma: 2, rounds: make([]int, 4)}, in, horizon, 0)
	cfg.Trace = &sim.Trace{}
	var out sim.Result
	if err := sim.RunLinear(context.Background(), cfg, &out); err != nil {
		t.Fatal(err)
	}
	count := make([]int, 4)
	for i, at := range cfg.Checkpoints {
		cfg.Trace.Plays(at, count)
		regret := 0.75*float64(count[1]) + 0.3*float64(count[2]) + 0.5*float64(count[3])
		if math.Abs(out.Regret[i]-regret) > 1e-9*regret || out.PlaysBest[i] != float64(count[0]) {
			t.Fatalf("round %d: regret %v, plays of the best %v; the trace says %v, %v", at,
				out.Regret[i], out.PlaysBest[i], regret, count[0])
		}
	}
	if !slices.Equal(out.Plays, count) {
		t.Errorf("plays %v, the trace says %v", out.Plays, count)
	}
	// A reward is in one sum of one release: ρ = (2/σ)²/2 = ½.
	if out.Releases < 5 || math.Abs(out.Loss.ZCDP()-0.5) > 1e-12 {
		t.Errorf("%d releases cost %v", out.Releases, out.Loss.ZCDP())
	}
}

func play(arm, rounds int, release bool) policy.Play {
	return policy.Play{Arm: arm, Rounds: rounds, Release: release}
}

// What is released, without noise, is the sums of the laws' rewards from each action's own stream,
// whatever was played in between.
func TestLinearRewardsAreTheStreams(t *testing.T) {
	for _, n := range []bandit.RewardNoise{bandit.SignNoise(), gaussian(t, 1)} {
		in := compass(t, n)
		one := &linearScript{mechanism: privacy.Sums{}, batches: []policy.Batch{
			{Plays: []policy.Play{play(0, 500, true), play(2, 30, true)}},
			{Plays: []policy.Play{play(1, 100, false)}}, // waits
			{Plays: []policy.Play{play(0, 20, true), play(1, 5, true)}},
			{Plays: []policy.Play{play(3, 1, false)}},
		}}
		other := &linearScript{mechanism: privacy.Sums{}, batches: []policy.Batch{
			{Plays: []policy.Play{play(3, 9, true)}},
			{Plays: []policy.Play{play(1, 105, true)}},
			{Plays: []policy.Play{play(0, 500, true)}},
			{Plays: []policy.Play{play(0, 20, true)}},
			{Plays: []policy.Play{play(3, 1, false)}},
		}}
		for _, s := range []*linearScript{one, other} {
			cfg := linearConfig(s, in, 656, 0)
			if s == other {
				cfg.Horizon = 635
			}
			cfg.Checkpoints, cfg.Unclipped = nil, true
			var out sim.Result
			if err := sim.RunLinear(context.Background(), cfg, &out); err != nil {
				t.Fatal(err)
			}
			if !math.IsInf(out.Loss.ZCDP(), 1) {
				t.Errorf("unclipped, and without noise, costs ρ = %v", out.Loss.ZCDP())
			}
		}
		streams := linearConfig(nil, in, 1, 0).Rewards
		want := make([][]float64, 2)
		for i := range want {
			want[i] = make([]float64, 4)
		}
		want[0][0], want[0][2] = in.Arms[0].Sum(500, &streams[0]), in.Arms[2].Sum(30, &streams[2])
		want[1][0], want[1][1] = in.Arms[0].Sum(20, &streams[0]), in.Arms[1].Sum(105, &streams[1])
		if len(one.seen) != 2 || !near(one.seen[0], want[0]) || !near(one.seen[1], want[1]) {
			t.Errorf("%v: released %v, want %v", n, one.seen, want)
		}
		if len(other.seen) != 4 || math.Abs(other.seen[1][1]-want[1][1]) > 1e-9 ||
			math.Abs(other.seen[2][0]-want[0][0]) > 1e-9 ||
			math.Abs(other.seen[3][0]-want[1][0]) > 1e-9 {
			t.Errorf("%v: played in another order: released %v, want %v", n, other.seen, want)
		}
	}
}

func near(x, y []float64) bool {
	if len(x) != len(y) {
		return false
	}
	for i := range x {
		if !(math.Abs(x[i]-y[i]) <= 1e-9) {
			return false
		}
	}
	return true
}

// An elliptic release without noise is Σ a·r.
func TestLinearReleaseIsTheVector(t *testing.T) {
	in := compass(t, bandit.SignNoise())
	m, err := privacy.NewElliptic(0, in.Actions, []int{500, 0, 30, 0})
	if err != nil {
		t.Fatal(err)
	}
	s := &linearScript{mechanism: m, batches: []policy.Batch{{Plays: []policy.Play{play(0, 500,
		true), play(2, 30, true)}}, {Plays: []policy.Play{play(0, 1, true)}}}}
	cfg := linearConfig(s, in, 531, 0)
	streams := slices.Clone(cfg.Rewards)
	var out sim.Result
	if err := sim.RunLinear(context.Background(), cfg, &out); err != nil {
		t.Fatal(err)
	}
	x, y := in.Arms[0].Sum(500, &streams[0]), in.Arms[2].Sum(30, &streams[2])
	if len(s.seen) != 1 || !near(s.seen[0], []float64{x + 0.6*y, 0.4 * y}) || out.Releases != 1 {
		t.Errorf("released %v from sums %v and %v", s.seen, x, y)
	}
}

// Rewards that leave [−1,1] are clipped one by one.
func TestLinearRewardsAreClipped(t *testing.T) {
	in := compass(t, gaussian(t, 1))
	const n = 20_000
	s := &linearScript{mechanism: privacy.Sums{},
		batches: []policy.Batch{{Plays: []policy.Play{play(0, n, true)}},
			{Plays: []policy.Play{play(0, 1, true)}}}}
	var out sim.Result
	cfg := linearConfig(s, in, n+1, 0)
	stream := cfg.Rewards[0]
	if err := sim.RunLinear(context.Background(), cfg, &out); err != nil {
		t.Fatal(err)
	}
	want := 0.0
	for range n {
		want += min(max(in.Arms[0].Draw(&stream), -1), 1)
	}
	if math.Abs(s.seen[0][0]-want) > 1e-6 {
		t.Errorf("the sum is %v, want %v", s.seen[0][0], want)
	}
	mean, err := bandit.ClippedMean(in.Arms[0], -1, 1)
	if err != nil {
		t.Fatal(err)
	}
	// the standard deviation is below 1
	if z := (s.seen[0][0]/n - mean) * math.Sqrt(n); math.Abs(z) > 5.5 {
		t.Errorf("the mean is %v, want %v", s.seen[0][0]/n, mean)
	}
}

func TestLinearBatchesAreCutAtTheHorizon(t *testing.T) {
	s := &linearScript{mechanism: privacy.Sums{Sigma: 1}, batches: []policy.Batch{
		{Plays: []policy.Play{play(1, 3, true)}},
		{Plays: []policy.Play{play(0, policy.Forever/4, true), play(1, policy.Forever/4, true)}}}}
	cfg := linearConfig(s, compass(t, bandit.SignNoise()), 10, 0)
	cfg.Checkpoints = []int{1, 3, 4, 5, 10}
	var out sim.Result
	if err := sim.RunLinear(context.Background(), cfg, &out); err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{0.75, 2.25, 2.25, 3, 4.5} {
		if out.Regret[i] != want {
			t.Errorf("regret at %d is %v, want %v", cfg.Checkpoints[i], out.Regret[i], want)
		}
	}
	if out.Plays[0] != 4 || out.Plays[1] != 6 || out.Releases != 1 || len(s.seen) != 1 {
		t.Errorf("plays %v, releases %d", out.Plays, out.Releases)
	}
}

func TestLinearErrors(t *testing.T) {
	in := compass(t, bandit.SignNoise())
	var out sim.Result
	for name, batch := range map[string]*policy.Batch{
		"stops":  nil,
		"empty":  {},
		"asks":   {Plays: []policy.Play{play(0, 1, true)}, Ask: true},
		"afresh": {Plays: []policy.Play{play(0, 1, true)}, Fresh: true},
		"action": {Plays: []policy.Play{play(4, 1, true)}},
		"below":  {Plays: []policy.Play{play(-1, 1, true)}},
	} {
		s := &linearScript{mechanism: privacy.Sums{Sigma: 1}}
		if batch != nil {
			s.batches = []policy.Batch{*batch}
		}
		if err := sim.RunLinear(context.Background(), linearConfig(s, in, 10, 0),
			&out); !errors.Is(err, sim.ErrStopped) {
			t.Errorf("%s: %v", name, err)
		}
	}
	whole := &linearScript{mechanism: privacy.Sums{Sigma: 1},
		batches: []policy.Batch{{Plays: []policy.Play{play(0, 10, true)}}}}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := sim.RunLinear(ctx, linearConfig(whole, in, 10, 0), &out); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	for want, spoil := range map[string]func(*sim.LinearConfig){
		"horizon is 0": func(c *sim.LinearConfig) { c.Horizon = 0 },
		"the number of actions is 1": func(c *sim.LinearConfig) {
			c.Instance.Actions = c.Instance.Actions[:1]
		},
		"3 laws for 4 actions":           func(c *sim.LinearConfig) { c.Instance.Arms = c.Instance.Arms[:3] },
		"0 reward streams for 4 actions": func(c *sim.LinearConfig) { c.Rewards = nil },
		"noise stream is missing":        func(c *sim.LinearConfig) { c.Noise = nil },
		"policy is missing":              func(c *sim.LinearConfig) { c.Policy = nil },
		"checkpoint 3":                   func(c *sim.LinearConfig) { c.Checkpoints = []int{3, 3} },
	} {
		cfg := linearConfig(whole, in, 10, 0)
		spoil(&cfg)
		if err := sim.RunLinear(context.Background(), cfg, &out); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	capped := linearConfig(&greedy{sigma: 2, rounds: make([]int, 4)}, in, 1000, 0)
	capped.Ledger = privacy.NewLedger(privacy.WithCap(privacy.ZCDP{Rho: 0.25}))
	if err := sim.RunLinear(context.Background(), capped, &out); !errors.Is(err, privacy.ErrBudget) {
		t.Errorf("beyond the cap: %v", err)
	}
}
