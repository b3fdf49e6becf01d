package sim_test

import (
	"context"
	"errors"
	"io"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/sim"
)

// asked hides that a policy is a Stayer, so that it is asked in every round; told counts what it
// was spared, and late forgets to tell it of one of those rounds.
type asked struct{ policy.Policy }

type told struct {
	policy.Stayer
	spared *int
	late   int
}

func (p told) Stayed(rounds int) {
	*p.spared += rounds
	p.Stayer.Stayed(rounds - p.late)
}

// Staying with an arm is what asking in every round comes to, where a transcript has every release: plays, curves,
// traces, releases, the ledger and the streams afterwards are the same, bit by bit. A twin that loses count of its
// rounds is told apart.
func TestStayingIsAsking(t *testing.T) {
	testkit.OneGoroutine(t)
	horizon := testkit.Size(5000, 30_000)
	clipped, err := bandit.NewClippedGaussian(0.6, 0.2, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	gaussian, err := bandit.NewGaussian(0.5, 0.1) // the curator clips it, reward by reward
	if err != nil {
		t.Fatal(err)
	}
	beta, err := bandit.NewBeta(2, 3)
	if err != nil {
		t.Fatal(err)
	}
	mixed := bandit.Instance{Arms: []bandit.Law{clipped, gaussian, beta}}
	equal := cmp.Comparer(func(a, b privacy.Loss) bool { return a.String() == b.String() })
	differs := 0
	for _, name := range []string{"dp-ucb", "dp-ucb logs=base2", "dp-ucb-thesis",
		"dp-ucb-anytime counter=hybrid", "dp-ucb counter=blt"} {
		for i, in := range []bandit.Instance{mu2(t), bernoulli(t, 1, 0.999, 0), bernoulli(t, 0.5, 0.5), mixed} {
			for run, budget := range []privacy.Budget{privacy.Pure{Epsilon: 0.25}, privacy.Pure{Epsilon: 10}} {
				if name == "dp-ucb counter=blt" {
					budget = privacy.ZCDP{Rho: 0.5}
				}
				type left struct {
					Out   sim.Result
					Trace []sim.Segment
					Next  []uint64 // of each stream
				}
				play := func(wrap func(policy.Policy) policy.Policy, options ...privacy.Option) (l left) {
					cfg := config(t, in, name, budget, horizon, run, nil)
					cfg.Policy, cfg.Trace = wrap(cfg.Policy), &sim.Trace{}
					cfg.Ledger = privacy.NewLedger(options...)
					if err := sim.Run(context.Background(), cfg, &l.Out); err != nil {
						t.Fatal(err)
					}
					l.Trace = cfg.Trace.Segments
					for a := range cfg.Rewards {
						l.Next = append(l.Next, cfg.Rewards[a].Uint64())
					}
					l.Next = append(l.Next, cfg.Noise.Uint64())
					return l
				}
				spared, lost := 0, 0
				want := play(func(p policy.Policy) policy.Policy { return asked{p} })
				every := privacy.WithTranscript(io.Discard)
				got := play(func(p policy.Policy) policy.Policy {
					return told{p.(policy.Stayer), &spared, 0}
				}, every, privacy.WithCap(budget)) // with a cap the ledger is asked as well
				if d := cmp.Diff(want, got, equal); d != "" {
					t.Errorf("%s, instance %d, %v: -asked +stayed\n%s", name, i, budget, d)
				}
				if i == 0 {
					late := play(func(p policy.Policy) policy.Policy {
						return told{p.(policy.Stayer), &lost, 1}
					}, every)
					if !cmp.Equal(want, late, equal) {
						differs++
					}
				}
				plain := name != "dp-ucb-anytime counter=hybrid" && name != "dp-ucb counter=blt"
				if plain && i == 0 && 3*spared < horizon || !plain && spared > 0 {
					t.Errorf("%s, instance %d, %v: spared %d of %d questions", name, i, budget,
						spared, horizon)
				}
			}
		}
	}
	if differs == 0 {
		t.Error("a policy that is told a wrong number of rounds plays the same")
	}
}

// Where nothing has every release most are not drawn, and runs have the law of those in which the policy is asked in every
// round. Each distance of 400 runs to 400 others is above the limit with probability below 1e-7 (Smirnov).
func TestStayingHasTheLawOfAsking(t *testing.T) {
	testkit.OneGoroutine(t)
	const runs, horizon = 400, 10_000
	charged := 0 // releases on the ledger: whoever is asked, and whoever stays, has as many
	play := func(first int, wrap func(policy.Policy) policy.Policy) (plays, half []float64) {
		for run := range runs {
			cfg := config(t, bernoulli(t, 0.6, 0.4), "dp-ucb-thesis", privacy.Pure{Epsilon: 10}, horizon, first+run, nil)
			cfg.Policy, cfg.Checkpoints = wrap(cfg.Policy), []int{horizon / 2}
			cfg.Ledger = privacy.NewLedger()
			var out sim.Result
			if err := sim.Run(context.Background(), cfg, &out); err != nil {
				t.Fatal(err)
			}
			if want := horizon - 2; out.Releases != want {
				t.Fatalf("%d releases, want %d", out.Releases, want)
			}
			counted := 0
			for _, e := range cfg.Ledger.Entries() {
				counted += e.Releases
			}
			if charged == 0 {
				charged = counted
			}
			if counted != charged || counted < out.Releases {
				t.Fatalf("the ledger has %d releases of %d, and had %d", counted, out.Releases, charged)
			}
			plays, half = append(plays, float64(out.Plays[0])), append(half, out.Regret[0])
		}
		slices.Sort(plays)
		slices.Sort(half)
		return plays, half
	}
	plays, half := play(0, func(p policy.Policy) policy.Policy { return p })
	all, halfOf := play(runs, func(p policy.Policy) policy.Policy { return asked{p} })
	limit := math.Sqrt((1 + math.Log(1e7)) / runs)
	for name, two := range map[string][2][]float64{"plays": {plays, all}, "regret": {half, halfOf}} {
		d := apart(two[0], two[1])
		t.Logf("%s: distance %.3f, limit %.3f, medians %v and %v", name, d, limit, two[0][runs/2], two[1][runs/2])
		if d > limit {
			t.Errorf("%s: distance %.3f, above %.3f", name, d, limit)
		}
	}
}

// A run that stays with an arm can still be stopped.
func TestStayingIsStopped(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cfg := config(t, mu2(t), "dp-ucb-thesis", privacy.Pure{Epsilon: 10}, 1<<30, 0, nil)
	calls := 0
	cfg.Policy = stopper{cfg.Policy.(policy.Stayer), func() {
		if calls++; calls == 100 {
			cancel()
		}
	}}
	var out sim.Result
	if err := sim.Run(ctx, cfg, &out); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want %v", err, context.Canceled)
	}
}

type stopper struct {
	policy.Stayer
	call func()
}

func (p stopper) Stayed(rounds int) { p.call(); p.Stayer.Stayed(rounds) }
