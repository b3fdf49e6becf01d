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
	"github.com/sotto-dp/sotto/policy/linear"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/sim"
)

// gaussianContexts are those of [Azize and Basu 2024, §VIII].
func gaussianContexts(t testing.TB, n bandit.RewardNoise, normalise bool) bandit.ContextualInstance {
	t.Helper()
	src, err := bandit.NewGaussianContexts(bandit.ContextConfig{Arms: 10, Dim: 3,
		Theta: []float64{0.6, 0, 0.8}, Noise: n, Normalise: normalise}, nil, 0.1)
	if err != nil {
		t.Fatal(err)
	}
	in, err := src.Contextual(nil)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func contextualConfig(p linear.Contextual, in bandit.ContextualInstance, horizon,
	run int) sim.ContextualConfig {
	stream := func(role noise.Role, cell string) *noise.Fast {
		return &noise.Key{Seed: 1, Experiment: "contexts", Cell: cell, Run: run, Role: role}.Fast(1)[0]
	}
	return sim.ContextualConfig{Policy: p, Instance: in, Horizon: horizon,
		Contexts: stream("contexts", ""), Rewards: stream(noise.RoleReward, ""),
		Noise: stream(noise.RoleNoise, "policy"), Checkpoints: sim.LogSpaced(50, horizon)}
}

// picker chooses by a rule and releases every so many rounds.
type picker struct {
	sigma  float64
	every  int
	rule   func(round int, actions []float64) int
	rounds int
	due    bool
	seen   [][]float64
	sets   [][]float64 // the decision sets, if kept
	keep   bool
}

func (p *picker) Mechanism() privacy.Mechanism { return privacy.VectorGaussian{Sigma: p.sigma} }
func (p *picker) Slots() int                   { return 1 }

func (p *picker) Due() int {
	if p.due {
		return 0
	}
	return -1
}

func (p *picker) Learn(r privacy.ReleasedVector) {
	p.due = false
	if p.keep {
		v := make([]float64, r.Len())
		for i := range v {
			v[i] = r.At(i)
		}
		p.seen = append(p.seen, v)
	}
}

func (p *picker) Choose(actions []float64) linear.Choice {
	if p.keep {
		p.sets = append(p.sets, slices.Clone(actions))
	}
	a := p.rule(p.rounds, actions)
	p.rounds++
	p.due = p.every > 0 && p.rounds%p.every == 0
	return linear.Choice{Action: a}
}

func always(a int) func(int, []float64) int { return func(int, []float64) int { return a } }

func turns(round int, actions []float64) int { return round % (len(actions) / 3) }

// A run without noise, recomputed: contexts, means, regret, and Σ a·r of each release. Two policies
// see the same contexts and the same reward noise.
func TestContextualRunRecomputed(t *testing.T) {
	for _, v := range []struct {
		noise     bandit.RewardNoise
		normalise bool
		unclipped bool
	}{{bandit.SignNoise(), true, false}, {gaussian(t, 1), true, false}, {gaussian(t, 1), false, true}} {
		const horizon, every = 2000, 300
		in := gaussianContexts(t, v.noise, v.normalise)
		var first *picker
		for i, rule := range []func(int, []float64) int{turns, always(7)} {
			p := &picker{every: every, rule: rule, keep: true}
			cfg := contextualConfig(p, in, horizon, 0)
			cfg.Unclipped = v.unclipped
			contexts, rewards := *cfg.Contexts, *cfg.Rewards
			var out sim.Result
			if err := sim.RunContextual(context.Background(), cfg, &out); err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				first = p
			} else if !slices.EqualFunc(p.sets, first.sets, slices.Equal) {
				t.Fatal("another policy sees other contexts")
			}
			var regret, hits float64
			plays := make([]int, 10)
			sum, next := make([]float64, 3), 0
			for round := range horizon {
				if round > 0 && round%every == 0 {
					if k := round/every - 1; !near(p.seen[k], sum) {
						t.Fatalf("round %d: released %v, want %v", round, p.seen[k], sum)
					}
					clear(sum)
				}
				a, m := in.Round(nil, nil, &contexts)
				if !slices.Equal(a, p.sets[round]) {
					t.Fatalf("round %d: the policy saw %v, want %v", round, p.sets[round], a)
				}
				c := rule(round, a)
				r := in.Reward(m[c], &rewards)
				if !v.unclipped {
					r = min(max(r, -1), 1)
				}
				for j := range sum {
					sum[j] += a[3*c+j] * r
				}
				regret += slices.Max(m) - m[c]
				if slices.Max(m) == m[c] {
					hits++
				}
				plays[c]++
				if cfg.Checkpoints[next] == round+1 {
					if math.Abs(out.Regret[next]-regret) > 1e-9 || out.PlaysBest[next] != hits {
						t.Fatalf("round %d: regret %v, best %v; want %v, %v", round+1,
							out.Regret[next], out.PlaysBest[next], regret, hits)
					}
					next++
				}
			}
			if !slices.Equal(out.Plays, plays) || out.Releases != 6 || len(p.seen) != 6 ||
				!math.IsInf(out.Loss.ZCDP(), 1) {
				t.Errorf("plays %v, %d releases, ρ = %v", out.Plays, out.Releases, out.Loss.ZCDP())
			}
		}
	}
}

// Each reward is in one release: ρ = (2/σ)²/2. Unclipped, the same run costs ∞. The release that
// would be due at the end is not made.
func TestContextualLoss(t *testing.T) {
	in := gaussianContexts(t, bandit.SignNoise(), true)
	for _, unclipped := range []bool{false, true} {
		cfg := contextualConfig(&picker{sigma: 4, every: 50, rule: turns}, in, 1000, 0)
		cfg.Unclipped = unclipped
		var out sim.Result
		if err := sim.RunContextual(context.Background(), cfg, &out); err != nil {
			t.Fatal(err)
		}
		want := 0.125
		if unclipped {
			want = math.Inf(1)
		}
		if got := out.Loss.ZCDP(); got != want && math.Abs(got-want) > 1e-12 || out.Releases != 19 {
			t.Errorf("unclipped %v: %d releases cost %v, want %v", unclipped, out.Releases, got, want)
		}
	}
}

// A world that a test makes up.
type madeUp struct {
	bandit.ContextualInstance
	actions, means []float64
}

func (m madeUp) Round(a, b []float64, _ *noise.Fast) ([]float64, []float64) {
	return append(a[:0], m.actions...), append(b[:0], m.means...)
}
func (madeUp) Bounded() bool { return false }

func TestContextualErrors(t *testing.T) {
	in := gaussianContexts(t, bandit.SignNoise(), true)
	var out sim.Result
	ok := func() *picker { return &picker{sigma: 1, every: 2, rule: always(0)} }
	for _, v := range []struct {
		want  string
		spoil func(*sim.ContextualConfig)
	}{
		{"horizon is 0", func(c *sim.ContextualConfig) { c.Horizon = 0 }},
		{"policy is missing", func(c *sim.ContextualConfig) { c.Policy = nil }},
		{"instance is missing", func(c *sim.ContextualConfig) { c.Instance = nil }},
		{"contexts stream is missing", func(c *sim.ContextualConfig) { c.Contexts = nil }},
		{"rewards stream is missing", func(c *sim.ContextualConfig) { c.Rewards = nil }},
		{"noise stream is missing", func(c *sim.ContextualConfig) { c.Noise = nil }},
		{"checkpoint 11", func(c *sim.ContextualConfig) { c.Checkpoints = []int{11} }},
		{"round 1 of 10: a decision set of 0 actions", func(c *sim.ContextualConfig) {
			c.Instance = madeUp{in, nil, nil}
		}},
		{"round 1 of 10: a decision set of 1 actions with 2 features in all", func(c *sim.ContextualConfig) {
			c.Instance = madeUp{in, []float64{1, 0}, []float64{1}}
		}},
		{"round 1 of 10: action 2 has norm 5, must be at most 1", func(c *sim.ContextualConfig) {
			c.Instance = madeUp{in, []float64{1, 0, 0, 0, 3, 4}, []float64{0.5, 0.25}}
		}},
		{"round 1 of 10: action 1 has norm NaN", func(c *sim.ContextualConfig) {
			c.Instance = madeUp{in, []float64{math.NaN(), 0, 0}, []float64{0}}
		}},
		{"action 10 of 10 was chosen: " + sim.ErrStopped.Error(), func(c *sim.ContextualConfig) {
			c.Policy = &picker{sigma: 1, rule: always(10)}
		}},
		{"round 1 of 10: action -1 of 10", func(c *sim.ContextualConfig) {
			c.Policy = &picker{sigma: 1, rule: always(-1)}
		}},
		{"round 2 of 10: more than 1 releases are due", func(c *sim.ContextualConfig) {
			c.Policy = &oneRoundThenStuck{picker: *ok()}
		}},
	} {
		cfg := contextualConfig(ok(), in, 10, 0)
		v.spoil(&cfg)
		if err := sim.RunContextual(context.Background(), cfg, &out); err == nil ||
			!strings.Contains(err.Error(), v.want) {
			t.Errorf("%s: %v", v.want, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := sim.RunContextual(ctx, contextualConfig(ok(), in, 10, 0), &out); !errors.Is(err,
		context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	// Cancelled on the way.
	ctx, cancel = context.WithCancel(context.Background())
	rounds := 0
	cfg := contextualConfig(&picker{sigma: 1, rule: func(int, []float64) int {
		if rounds++; rounds == 10_000 {
			cancel()
		}
		return 0
	}}, in, 1<<30, 0)
	cfg.Checkpoints = nil
	if err := sim.RunContextual(ctx, cfg, &out); !errors.Is(err, context.Canceled) || rounds > 20_000 {
		t.Errorf("cancelled after round 10 000: %v after %d", err, rounds)
	}
	// The open contexts of the sources are longer than 1: an error, or a run without a guarantee.
	open := gaussianContexts(t, bandit.SignNoise(), false)
	if err := sim.RunContextual(context.Background(), contextualConfig(ok(), open, 10, 0),
		&out); err == nil || !strings.Contains(err.Error(), "normalise the contexts, or run unclipped") {
		t.Errorf("norms above 1: %v", err)
	}
}

// oneRoundThenStuck is due for ever after its first round.
type oneRoundThenStuck struct{ picker }

func (p *oneRoundThenStuck) Due() int {
	if p.rounds > 0 {
		return 0
	}
	return -1
}

// Logged rounds are played as they are: the reward is what was logged, and the decision
// sets differ in size.
func TestContextualLog(t *testing.T) {
	log, err := bandit.ReadContextualCSV(strings.NewReader("round,x1,reward\n1,0.5,0.25\n1,-0.5,0.75\n2,1,-1\n2,0.25,0\n2,0,1\n"), false)
	if err != nil {
		t.Fatal(err)
	}
	p := &picker{every: 1, rule: always(1), keep: true}
	cfg := contextualConfig(p, log, 400, 0)
	var out sim.Result
	if err := sim.RunContextual(context.Background(), cfg, &out); err != nil {
		t.Fatal(err)
	}
	small := 0
	for i, set := range p.sets[:399] {
		want := 0.0
		if len(set) == 2 {
			small++
			want = -0.375
		}
		if p.seen[i][0] != want {
			t.Fatalf("round %d of %v: released %v, want %v", i+1, set, p.seen[i], want)
		}
	}
	if len(p.sets[399]) == 2 {
		small++
	}
	last := len(out.Regret) - 1
	if out.Regret[last] != float64(400-small) || out.PlaysBest[last] != float64(small) ||
		small < 100 || small > 300 {
		t.Errorf("regret %v with %d small rounds", out.Regret[last], small)
	}
}

// Rounds do not allocate: a run of twenty thousand allocates as often as one of ten thousand.
func TestContextualRoundsDoNotAllocate(t *testing.T) {
	in := gaussianContexts(t, gaussian(t, 1), true)
	runs := func(horizon int) float64 {
		var out sim.Result
		return testing.AllocsPerRun(3, func() {
			cfg := contextualConfig(&picker{sigma: 1, rule: turns}, in, horizon, 0)
			cfg.Checkpoints = []int{horizon}
			if err := sim.RunContextual(context.Background(), cfg, &out); err != nil {
				t.Fatal(err)
			}
		})
	}
	if short, long := runs(10_000), runs(20_000); short != long {
		t.Errorf("%v allocations in 10 000 rounds, %v in 20 000", short, long)
	}
}

// Where a policy's mechanism changes, later rounds go to a curator of the new one, on the same ledger: greedy on
// segments in a world of two fixed actions, which the test proves not to be diverse. It costs one budget, and
// learns from the tree: the world without a fallback has other plays.
func TestRunContextualChangesItsMechanism(t *testing.T) {
	source, err := bandit.NewFixedContexts([][]float64{{1, 0, 0}, {0, 0.9, 0}}, bandit.ContextConfig{Dim: 3, Arms: 2,
		Theta: []float64{0.1, 0.2, 0}})
	if err != nil {
		t.Fatal(err)
	}
	in, err := source.Contextual(nil)
	if err != nil {
		t.Fatal(err)
	}
	run := func(diversity float64) (sim.Result, *linear.JDPGreedy) {
		p, err := linear.NewJDPGreedy(3, 20_000, privacy.ZCDP{Rho: 50}, linear.JDPGreedyOptions{Risk: 0.1, First: 50,
			Growth: 1.5, Leaf: 1000, Diversity: diversity})
		if err != nil {
			t.Fatal(err)
		}
		streams := noise.Key{Seed: 3}.Fast(3)
		var out sim.Result
		if err := sim.RunContextual(t.Context(), sim.ContextualConfig{Policy: p, Instance: in, Horizon: 20_000,
			Checkpoints: []int{20_000}, Contexts: &streams[0], Rewards: &streams[1], Noise: &streams[2]},
			&out); err != nil {
			t.Fatal(err)
		}
		return out, p
	}
	out, p := run(0.9)
	if _, ok := p.Mechanism().(privacy.GramTree); !ok || !p.Fallback() {
		t.Errorf("the mechanism is %v, must be a tree", p.Mechanism())
	}
	if got := out.Loss.ZCDP(); math.Abs(got-50) > 1e-6 {
		t.Errorf("it has cost ρ = %v, must be 50", got)
	}
	plain, q := run(0)
	if q.Fallback() || plain.Releases < 20 || out.Releases != plain.Releases || plain.Plays[0] == out.Plays[0] {
		t.Errorf("without a test %+v, with it %+v", plain, out)
	}
}
