package sim_test

import (
	"context"
	"errors"
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

// Staying with an arm is what asking in every round comes to: plays, curves, traces, releases,
// the ledger and the streams afterwards are the same, bit by bit. A twin that loses count of its
// rounds is told apart.
func TestStayingIsAsking(t *testing.T) {
	testkit.OneGoroutine(t)
	horizon := testkit.Size(10_000, 30_000)
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
				play := func(cap bool, wrap func(policy.Policy) policy.Policy) (l left) {
					cfg := config(t, in, name, budget, horizon, run, nil)
					cfg.Policy, cfg.Trace = wrap(cfg.Policy), &sim.Trace{}
					if cap { // with a cap the ledger is asked as well
						cfg.Ledger = privacy.NewLedger(privacy.WithCap(budget))
					}
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
				want := play(false, func(p policy.Policy) policy.Policy { return asked{p} })
				for _, cap := range []bool{false, true} {
					got := play(cap, func(p policy.Policy) policy.Policy {
						return told{p.(policy.Stayer), &spared, 0}
					})
					if d := cmp.Diff(want, got, equal); d != "" {
						t.Errorf("%s, instance %d, %v: -asked +stayed\n%s", name, i, budget, d)
					}
				}
				late := play(false, func(p policy.Policy) policy.Policy {
					return told{p.(policy.Stayer), &lost, 1}
				})
				if !cmp.Equal(want, late, equal) {
					differs++
				}
				plain := name != "dp-ucb-anytime counter=hybrid" && name != "dp-ucb counter=blt"
				if plain && i == 0 && spared < horizon || !plain && spared > 0 {
					t.Errorf("%s, instance %d, %v: spared %d of %d questions", name, i, budget,
						spared, 2*horizon)
				}
			}
		}
	}
	if differs == 0 {
		t.Error("a policy that is told a wrong number of rounds plays the same")
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
