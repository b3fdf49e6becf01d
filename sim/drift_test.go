package sim_test

import (
	"context"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/sim"
)

// dictated plays batches that are given, and keeps what they release.
type dictated struct {
	batches []policy.Batch
	next    int
	n       [][]int
	sum     [][]float64
}

func (*dictated) Mechanism() privacy.Mechanism { return privacy.Laplace{} }

func (s *dictated) Next(r privacy.Released) *policy.Batch {
	if s.next > 0 {
		var n []int
		var sum []float64
		for i := range r.Len() {
			n, sum = append(n, r.N(i)), append(sum, r.Sum(i))
		}
		s.n, s.sum = append(s.n, n), append(s.sum, sum)
	}
	if s.next == len(s.batches) {
		return &policy.Batch{Plays: []policy.Play{{Arm: 0, Rounds: policy.Forever}}}
	}
	s.next++
	b := s.batches[s.next-1]
	return &policy.Batch{Plays: append([]policy.Play(nil), b.Plays...)}
}

// An arm's reward is its mean, so that what is released says which laws were in force when; the
// reference goes round by round.
func TestChangesCutBatches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const arms = 3
		laws := func(label string) ([]bandit.Law, []float64) {
			var out []bandit.Law
			var means []float64
			for range arms {
				x := float64(rapid.IntRange(0, 8).Draw(t, label)) / 8
				l, err := bandit.NewTable([]float64{x}, []float64{1})
				if err != nil {
					t.Fatal(err)
				}
				out, means = append(out, l), append(means, x)
			}
			return out, means
		}
		first, means := laws("mean")
		in := bandit.Instance{Arms: first}
		at := []int{1}
		world := [][]float64{means}
		for from := 1; len(at) < rapid.IntRange(1, 5).Draw(t, "phases"); {
			from += rapid.IntRange(1, 15).Draw(t, "length")
			l, m := laws("mean")
			in.Changes = append(in.Changes, bandit.Change{From: from, Arms: l})
			at, world = append(at, from), append(world, m)
		}
		p := &dictated{}
		for range rapid.IntRange(1, 8).Draw(t, "batches") {
			var b policy.Batch
			for a := range arms {
				if n := rapid.IntRange(0, 9).Draw(t, "rounds"); n > 0 {
					b.Plays = append(b.Plays, policy.Play{Arm: a, Rounds: n,
						Release: rapid.Bool().Draw(t, "release")})
				}
			}
			if len(b.Plays) > 0 {
				p.batches = append(p.batches, b)
			}
		}
		horizon := rapid.IntRange(1, 120).Draw(t, "horizon")
		var checkpoints []int
		for c := 1; c <= horizon; c++ {
			checkpoints = append(checkpoints, c)
		}
		var trace sim.Trace
		key := noise.Key{Seed: 1}
		rewards, private := key.Fast(arms), key.Fast(1)
		var out sim.Result
		if err := sim.Run(context.Background(), sim.Config{Policy: p, Instance: in, Horizon: horizon,
			Checkpoints: checkpoints, Rewards: rewards, Noise: &private[0], Trace: &trace}, &out); err != nil {
			t.Fatal(err)
		}

		// round by round, by the trace
		phase := func(round int) []float64 {
			m := world[0]
			for i, from := range at {
				if round >= from {
					m = world[i]
				}
			}
			return m
		}
		regret, hits := 0.0, 0.0
		plays := make([]int, arms)
		var arm []int
		for round := 1; round <= horizon; round++ {
			a := trace.Arm(round)
			arm = append(arm, a)
			m := phase(round)
			top := max(m[0], m[1], m[2])
			regret += top - m[a]
			if m[a] == top {
				hits++
			}
			plays[a]++
			if math.Abs(out.Regret[round-1]-regret) > 1e-9 || out.PlaysBest[round-1] != hits {
				t.Fatalf("round %d: regret %v and %v plays of the best, by rounds %v and %v", round,
					out.Regret[round-1], out.PlaysBest[round-1], regret, hits)
			}
		}
		for a, n := range plays {
			if out.Plays[a] != n {
				t.Fatalf("arm %d: %d plays, by rounds %d", a, out.Plays[a], n)
			}
		}
		// what each batch releases is of its own rounds, and of those before that nobody released
		var n [arms]int
		var sum [arms]float64
		round := 0
		for i, b := range p.batches {
			if i >= len(p.n) {
				break
			}
			for range b.Rounds() {
				a := arm[round]
				round++
				n[a]++
				sum[a] += phase(round)[a]
			}
			j := 0
			for _, q := range b.Plays {
				if !q.Release {
					continue
				}
				if p.n[i][j] != n[q.Arm] || math.Abs(p.sum[i][j]-sum[q.Arm]) > 1e-9 {
					t.Fatalf("batch %d, arm %d: released %v of %d, by rounds %v of %d", i, q.Arm,
						p.sum[i][j], p.n[i][j], sum[q.Arm], n[q.Arm])
				}
				n[q.Arm], sum[q.Arm] = 0, 0
				j++
			}
		}
	})
}
