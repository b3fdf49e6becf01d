package privacy_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/audit"
	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
	curator "github.com/sotto-dp/sotto/release"
	"github.com/sotto-dp/sotto/sim"
)

// A counter that there was not, in one file and a line of the table, is read from JSON, priced and
// capped; it is drawn by both curators, has its variance, tail and bounds; a policy plays on it; an
// auditor finds no more than its price, and finds its broken copies.
func TestACounterIsOneFileAndALine(t *testing.T) {
	const text = `{"mechanism":"blocks","scale":4,"width":4,"horizon":64}`
	if _, err := curator.Real(curator.Config{Arms: 1, Mechanism: unknown(t, text)}); err == nil {
		t.Error("there is such a counter already")
	}
	m := privacy.Blocks(t, 4, 4, 64)
	read, err := privacy.UnmarshalMechanism([]byte(text))
	if err != nil || read != m {
		t.Fatalf("%s is read as %v, %v", text, read, err)
	}
	if got, err := json.Marshal(m); string(got) != text || err != nil {
		t.Errorf("it is written as %s, %v", got, err)
	}
	if kinds := privacy.KindsOfSums(); !slices.Contains(kinds, "blocks") {
		t.Errorf("mechanisms of sums are %v", kinds)
	}

	key := noise.Key{Seed: 9, Experiment: "a made-up counter", Role: noise.RoleNoise}
	curators := map[string]func(l *privacy.Ledger, run int) (curator.Curator, error){
		"simulated": func(l *privacy.Ledger, run int) (curator.Curator, error) {
			key := key
			key.Run = run
			return curator.Simulated(curator.Config{Arms: 1, Mechanism: m, Ledger: l}, &key.Fast(1)[0])
		},
		"real": func(l *privacy.Ledger, _ int) (curator.Curator, error) {
			return curator.Real(curator.Config{Arms: 1, Mechanism: m, Ledger: l})
		},
	}
	for name, build := range curators {
		ledger := privacy.NewLedger(privacy.WithCap(privacy.Pure{Epsilon: 0.5}))
		c, err := build(ledger, 0)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for n := 1; n <= 64; n++ {
			if err := c.Add(0, 1); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			r, err := c.Release([]int{0})
			if err != nil {
				t.Fatalf("%s, %d rewards: %v", name, n, err)
			}
			// All 64 sums of two curators together: a false alarm has a probability of at most 2·64·e^{−30}.
			if x := math.Abs(r.Sum(0) - float64(n)); r.N(0) != n || x > r.Tail().Both(30) || x == 0 {
				t.Errorf("%s: %d rewards of 1 are released as %v of %d", name, n, r.Sum(0), r.N(0))
			}
		}
		if c.Add(0, 1) == nil {
			t.Errorf("%s: a reward beyond the horizon", name)
		}
		if got := ledger.Total().Pure(); math.Abs(got-0.5) > 1e-6 {
			t.Errorf("%s: 64 releases cost %v, must be 2/scale = 0.5", name, got)
		}
		if err := ledger.Record(0, privacy.Laplace{Scale: 4}); !errors.Is(err, privacy.ErrBudget) {
			t.Errorf("%s: beyond the cap: %v", name, err)
		}
	}

	// The variance of the sum of 14, by its draws: five, so that the mean of x⁴/σ⁴ is 3 + 3/5 and
	// that of so many squares has a deviation of σ²√(2.6/runs). A false alarm at six of them has
	// probability 2e-9.
	const runs, at = 4000, 14
	sum := 0.0
	for run := range runs {
		c, err := curators["simulated"](nil, run+1)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.AddSum(0, at, 0); err != nil {
			t.Fatal(err)
		}
		r, err := c.Release([]int{0})
		if err != nil {
			t.Fatal(err)
		}
		sum += r.Sum(0) * r.Sum(0)
	}
	draws, _ := privacy.DrawsOf(m)
	want := draws.Variance(at)
	if got := sum / runs; math.Abs(got/want-1) > 6*math.Sqrt(2.6/runs) {
		t.Errorf("variance %v, must be %v", got, want)
	}

	in, err := bandit.BernoulliInstance(0.9, 0.1)
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.NewDPUCBCounter(2, 64, m, 0.1)
	if err != nil {
		t.Fatal(err)
	}
	rewards := key
	rewards.Role = noise.RoleReward
	var out sim.Result
	err = sim.Run(context.Background(), sim.Config{Policy: p, Instance: in, Horizon: 64,
		Checkpoints: []int{64}, Rewards: rewards.Fast(2), Noise: &key.Fast(1)[0]}, &out)
	if err != nil || math.Abs(out.Loss.Pure()-0.5) > 1e-9 {
		t.Errorf("DP-UCB on it costs %v, %v", out.Loss, err)
	}

	if testing.Short() {
		return
	}
	strong := privacy.Blocks(t, 1, 4, 16) // ε = 2
	subject, err := audit.MechanismSubject(strong, 1, 1, 16)
	if err != nil {
		t.Fatal(err)
	}
	if got := audit.Faults(strong); !slices.Equal(got, []audit.Fault{audit.HalfScale, audit.Redrawn,
		audit.Unclipped}) {
		t.Errorf("faults %v", got)
	}
	// An audit of the right one refutes it with probability at most 1e-7.
	for _, fault := range []audit.Fault{audit.NoFault, audit.HalfScale} {
		f, err := audit.PolicyAudit{Subject: subject.Broken(fault), Gamma: 1e-7, Games: 20_000,
			Adversaries: audit.Adversaries(1, 16, audit.View), Key: key}.Run(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if f.Refuted != (fault != audit.NoFault) {
			t.Errorf("%v: ε is at least %v by %s, refuted: %v", fault, f.Low, f.Attack, f.Refuted)
		}
		t.Logf("%v: ε is at least %.3f of %.3f", fault, f.Low, f.Claimed)
	}
}

// unknown is what is read where there is no such mechanism.
func unknown(t *testing.T, text string) privacy.Mechanism {
	t.Helper()
	m, err := privacy.UnmarshalMechanism([]byte(text))
	if _, ok := m.(privacy.Unknown); !ok || err != nil || !strings.Contains(m.Kind(), "blocks") {
		t.Fatalf("%s is read as %v, %v", text, m, err)
	}
	return m
}
