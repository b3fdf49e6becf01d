package aggregate_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/live/aggregate"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
	"github.com/sotto-dp/sotto/secagg"
	"github.com/sotto-dp/sotto/sim"
)

func mechanism(t testing.TB, n, users int) privacy.Aggregated {
	t.Helper()
	m, err := privacy.NewAggregated(privacy.Calibration{Trust: privacy.TrustSecAgg,
		Noise: privacy.NoisePolya, Epsilon: 1, S: 1, Users: users, Invited: n, P: 1e-6})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func sumOf(m privacy.Aggregated, users int) release.Sum {
	return release.Sum{Batch: 3, Arm: 1, Mechanism: m, Modulus: uint64(m.Modulus),
		Grid: uint64(m.G), Users: users}
}

// The secure sum is the sum, for any number of users that makes a crowd.
func TestBellEqualsPlain(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range testkit.Size([]int{3, 4, 7, 20}, []int{3, 4, 7, 20, 49, 50, 60}) {
		m := mechanism(t, n, n)
		messages := make([]uint64, n)
		for i := range messages {
			messages[i] = r.Uint64N(uint64(m.Modulus))
		}
		want, answers, err := release.PlainSum{}.Sum(sumOf(m, n), messages)
		if err != nil {
			t.Fatal(err)
		}
		for _, mode := range []secagg.Mode{0, secagg.Malicious} {
			got, k, err := aggregate.Bell{Experiment: "test", Mode: mode,
				Complete: true}.Sum(sumOf(m, n), messages)
			if err != nil || got != want || k != answers {
				t.Errorf("%d users, mode %v: %d of %d, %v, want %d of %d", n, mode, got, k, err, want, answers)
			}
		}
	}
}

// vanish loses every k-th client at a round.
func vanish(every uint32, kind secagg.Kind) secagg.Local {
	return secagg.Local{Fault: func(f secagg.Frame) [][]byte {
		if f.Kind == kind && f.Client%every == 0 {
			return nil
		}
		return [][]byte{f.Message}
	}}
}

func TestBellRefuses(t *testing.T) {
	const n = 20
	m := mechanism(t, n, 15)
	messages := make([]uint64, n)
	for i := range messages {
		messages[i] = uint64(i)
	}
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	out := append([]uint64{uint64(m.Modulus)}, messages[1:]...)
	for _, c := range []struct {
		name     string
		bell     aggregate.Bell
		users    int
		messages []uint64
		want     error
		text     string
	}{
		{"enough", aggregate.Bell{Gamma: 0.1, Delta: 0.2}, 15, messages, nil, ""},
		{"some vanish", aggregate.Bell{Delta: 0.3, By: vanish(5, secagg.KindMasked)}, 15, messages, nil, ""},
		{"too many vanish", aggregate.Bell{Delta: 0.3, By: vanish(3, secagg.KindMasked)}, 15,
			messages, release.ErrAnswers, "too few"},
		{"fewer than promised", aggregate.Bell{}, 15, messages[:14], release.ErrAnswers, "too few"},
		{"corrupt beyond the promise", aggregate.Bell{Gamma: 0.3}, 15, messages, release.ErrAnswers, ""},
		{"a message out of the ring", aggregate.Bell{}, 15, out, release.ErrMessage,
			"must be below the modulus"},
		{"no graph", aggregate.Bell{Gamma: 0.45, Delta: 0.5}, 8, messages, secagg.ErrInfeasible, ""},
		{"stopped", aggregate.Bell{Context: canceled}, 15, messages, context.Canceled, ""},
	} {
		total, k, err := c.bell.Sum(sumOf(m, c.users), c.messages)
		if c.want == nil {
			if err != nil || k < c.users {
				t.Errorf("%s: %d of %d answers, %v", c.name, total, k, err)
			}
			continue
		}
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}

// A run with the secure sum plays the same arms as one with the plain sum of the same messages;
// where users vanish under way batches are played again.
func TestRunsUnderBell(t *testing.T) {
	testkit.OneGoroutine(t)
	instance, err := bandit.BernoulliInstance(0.9, 0.3)
	if err != nil {
		t.Fatal(err)
	}
	run := func(s release.Summer, promised float64) (sim.Result, error) {
		p, err := policy.NewBatchSE(2, privacy.Pure{Epsilon: 2}, 0.1, 2)
		if err != nil {
			t.Fatal(err)
		}
		var out sim.Result
		key := noise.Key{Seed: 4, Role: noise.RoleReward}
		rewards := key.Fast(2)
		key.Role = noise.RoleNoise
		err = sim.Run(context.Background(), sim.Config{Policy: p, Instance: instance, Horizon: 300,
			Checkpoints: []int{300}, Rewards: rewards, Noise: &key.Fast(1)[0],
			Trust: &release.Trust{Model: privacy.TrustSecAgg, P: 0.01, Promised: promised, Summer: s}}, &out)
		return out, err
	}
	plain, err := run(release.PlainSum{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	bell, err := run(aggregate.Bell{Experiment: "test"}, 1)
	if err != nil || fmt.Sprint(plain) != fmt.Sprint(bell) {
		t.Errorf("%v, %v, want %v", bell, err, plain)
	}
	lossy, err := run(aggregate.Bell{Experiment: "test", Delta: 0.4, By: vanish(3, secagg.KindMasked)}, 0.6)
	if err != nil || lossy.Releases == 0 {
		t.Errorf("%v, %v", lossy, err)
	}
}
