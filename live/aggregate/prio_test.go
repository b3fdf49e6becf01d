package aggregate_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/live/aggregate"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
	"github.com/sotto-dp/sotto/sim"
)

func twoServer(t testing.TB, n, users int) privacy.Aggregated {
	t.Helper()
	m, err := privacy.NewAggregated(privacy.Calibration{Trust: privacy.TrustTwoServer,
		Noise: privacy.NoiseLaplace, Epsilon: 1, S: 1, Users: users, Invited: n, P: 1e-6})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// One noise is paid for, since one server may be corrupt, and two are in the sum: the tail is theirs.
func TestTwoServerPriceAndTail(t *testing.T) {
	m := twoServer(t, 100, 100)
	b := float64(m.Num) / float64(m.Den)
	if e := m.Loss().Pure(); math.Abs(e-float64(m.G)/b) > 1e-12 {
		t.Errorf("ε is %v, want that of one noise, %v", e, float64(m.G)/b)
	}
	s := &noise.Key{Seed: 5, Role: noise.RoleNoise}.Fast(1)[0]
	const draws = 200_000
	for _, x := range []float64{0.5, 2, 5} {
		width, over := m.Tail().Sigma*math.Sqrt(2*x)+m.Tail().H*(x+m.Tail().Log), 0
		for range draws {
			if float64(s.DiscreteLaplace(b)+s.DiscreteLaplace(b))/float64(m.G) > width {
				over++
			}
		}
		if p := math.Exp(-x); float64(over)/draws > p+5.2*math.Sqrt(p/draws) {
			t.Errorf("noise is beyond its tail at %v with frequency %v, above %v", x, float64(over)/draws, p)
		}
	}
}

// The sum is what it would be in the open with the same two noises; users whose report is
// spoilt are not in it.
func TestPrioEqualsPlain(t *testing.T) {
	for _, n := range []int{1, 2, 5, 40} {
		m := twoServer(t, n, max(1, n-n/5))
		noises := []int64{-3, 8}
		next := 0
		s := sumOf(m, m.Users)
		s.Noise = func() (int64, error) { next++; return noises[(next-1)%2], nil }
		messages := make([]uint64, n)
		want := int64(5)
		for i := range messages {
			messages[i] = uint64(i) % uint64(m.G+1)
			want += int64(messages[i])
		}
		got, answers, err := aggregate.Prio{Experiment: "test"}.Sum(s, messages)
		if err != nil || answers != n || got != uint64(want)%s.Modulus {
			t.Errorf("%d users: %d of %d, %v, want %d", n, got, answers, err, want)
		}
		if n < 5 {
			continue
		}
		spoil := aggregate.Prio{Fault: func(user int, l, h []byte) ([]byte, []byte) {
			if user == 3 {
				h[len(h)-1] ^= 1
			}
			return l, h
		}}
		next = 0
		got, answers, err = spoil.Sum(s, messages)
		if err != nil || answers != n-1 || got != uint64(want-int64(messages[3]))%s.Modulus {
			t.Errorf("%d users, one spoilt: %d of %d, %v", n, got, answers, err)
		}
		all := aggregate.Prio{Fault: func(user int, l, h []byte) ([]byte, []byte) { return l[:30], h }}
		if _, _, err := all.Sum(s, messages); !errors.Is(err, release.ErrAnswers) {
			t.Errorf("all spoilt: %v", err)
		}
		if _, _, err := (aggregate.Prio{}).Sum(s, []uint64{uint64(m.G) + 1, 0}); !errors.Is(err,
			release.ErrMessage) {
			t.Errorf("beyond the range: %v", err)
		}
		s.Noise = nil
		if _, _, err := (aggregate.Prio{}).Sum(s, messages); err == nil {
			t.Error("no noise was accepted")
		}
	}
}

// The same arms are played between two servers as in the open, with the same noise.
func TestRunsUnderPrio(t *testing.T) {
	instance, err := bandit.BernoulliInstance(0.9, 0.3)
	if err != nil {
		t.Fatal(err)
	}
	run := func(s release.Summer) sim.Result {
		p, err := policy.NewBatchSE(2, privacy.Pure{Epsilon: 2}, 0.1, 2)
		if err != nil {
			t.Fatal(err)
		}
		var out sim.Result
		key := noise.Key{Seed: 4, Role: noise.RoleReward}
		rewards := key.Fast(2)
		key.Role = noise.RoleNoise
		if err = sim.Run(context.Background(), sim.Config{Policy: p, Instance: instance,
			Horizon: 400, Checkpoints: []int{400}, Rewards: rewards, Noise: &key.Fast(1)[0],
			Trust: &release.Trust{Model: privacy.TrustTwoServer, P: 0.01, Summer: s}}, &out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	if plain, prio := run(release.PlainSum{}),
		run(aggregate.Prio{Experiment: "test"}); fmt.Sprint(plain) != fmt.Sprint(prio) {
		t.Errorf("%v, want %v", prio, plain)
	}
}
