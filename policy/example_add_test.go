package policy_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/sotto-dp/sotto/audit"
	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
	"github.com/sotto-dp/sotto/sim"
)

// This file is the worked example of docs/adding-a-policy.md: a policy, its entry in the catalog,
// and the tests that it needs. The page has a program of its own around the first two, which a test
// of package cli builds outside of this module.

// PrivateCommit plays every arm m times, releases each arm's sum once, and then plays the arm with
// the largest noisy mean for ever; ties go to the lowest arm. It is explore-then-commit (Lattimore
// and Szepesvári 2020, Algorithm 1) with Laplace noise of scale 1/ε on the sums.
//
// It is ε-DP for rewards in [0,1]: a reward is in one sum, a sum is released once, and replacing
// the reward moves it by at most 1.
//
// For T ≥ Km, E Reg_T ≤ Σ_a Δ_a (m + T (e^{−mΔ_a²/4} + ½(1 + εmΔ_a/4) e^{−εmΔ_a/2})). The wrong arm
// wins only if the difference of the two means is wrong by Δ_a/2, or that of the noises is:
// Hoeffding for the one, the tail ½(1 + x/(2b)) e^{−x/b} of the difference of two Laplace(b) for
// the other, with b = 1/(εm) and x = Δ_a/2.
type PrivateCommit struct {
	arms, rounds int
	epsilon      float64
	batch        policy.Batch
}

// NewPrivateCommit returns the policy for at least two arms, a budget epsilon > 0 (+Inf: no
// privacy, the same algorithm without noise) and at least one round of each arm.
func NewPrivateCommit(arms int, epsilon float64, rounds int) (*PrivateCommit, error) {
	switch {
	case arms < 2:
		return nil, fmt.Errorf("private-commit: arms is %d, must be at least 2", arms)
	case !(epsilon > 0):
		return nil, fmt.Errorf("private-commit: epsilon is %v, must be above 0", epsilon)
	case rounds < 1 || rounds > policy.Forever/arms:
		return nil, fmt.Errorf("private-commit: rounds is %d, must be at least 1 and at most %d "+
			"for each of %d arms", rounds, policy.Forever/arms, arms)
	}
	return &PrivateCommit{arms: arms, rounds: rounds, epsilon: epsilon}, nil
}

// Mechanism implements policy.Policy: a sum of rewards in [0,1] has sensitivity 1.
func (p *PrivateCommit) Mechanism() privacy.Mechanism { return privacy.Laplace{Scale: 1 / p.epsilon} }

// Next implements policy.Policy: the exploration, then the commitment.
func (p *PrivateCommit) Next(released privacy.Released) *policy.Batch {
	if released.Len() == 0 {
		p.batch.Plays = make([]policy.Play, p.arms)
		for a := range p.batch.Plays {
			p.batch.Plays[a] = policy.Play{Arm: a, Rounds: p.rounds, Release: true}
		}
		return &p.batch
	}
	best, largest := 0, math.Inf(-1)
	for a := range p.arms {
		if mean := released.Mean(a); mean > largest {
			best, largest = a, mean
		}
	}
	p.batch.Plays = append(p.batch.Plays[:0], policy.Play{Arm: best, Rounds: policy.Forever})
	return &p.batch
}

// commitEntry is what the catalog knows: files, flags, the schema, lists and audits
// read nothing else.
func commitEntry() catalog.Entry {
	return catalog.Entry{
		Name: "private-commit", Title: "Private explore then commit", Private: true,
		Budgets: []string{"epsilon"}, Anytime: true,
		Guarantee: "ε-DP (Interactive, Table and View), rewards in range",
		Regret:    "Σ Δ_a (m + T (e^{−mΔ_a²/4} + ½(1 + εmΔ_a/4) e^{−εmΔ_a/2}))",
		Source:    "Lattimore and Szepesvári 2020, Algorithm 1, with Laplace noise",
		Params: []catalog.Param{{Name: "rounds", Doc: "rounds m of each arm before the commitment",
			Integer: true, Default: 100,
			Lo: 1, LoIn: true, Hi: 1 << 53, HiIn: true}},
		New: func(s catalog.Setting, p catalog.Params) (policy.Policy, error) {
			epsilon := math.Inf(1) // budget none: the same policy without noise
			if b, ok := s.Budget.(privacy.Pure); ok {
				epsilon = b.Epsilon
			}
			q, err := NewPrivateCommit(s.Arms, epsilon, int(p["rounds"]))
			if err != nil {
				return nil, err // and not a nil pointer in a policy that is not nil
			}
			return q, nil
		},
	}
}

// A policy of one's own in a simulation: nothing has to be registered.
func Example_newPolicy() {
	in, err := bandit.BernoulliInstance(0.7, 0.3)
	if err != nil {
		panic(err)
	}
	p, err := NewPrivateCommit(len(in.Arms), 1, 200)
	if err != nil {
		panic(err)
	}
	world := noise.Key{Seed: 1, Experiment: in.String(), Role: noise.RoleReward}
	own := noise.Key{Seed: 1, Experiment: in.String(), Cell: "private-commit", Role: noise.RoleNoise}
	var out sim.Result
	err = sim.Run(context.Background(), sim.Config{
		Policy: p, Instance: in, Horizon: 10_000, Checkpoints: []int{10_000},
		Rewards: world.Fast(len(in.Arms)), Noise: &own.Fast(1)[0],
	}, &out)
	if err != nil {
		panic(err)
	}
	fmt.Printf("plays %v, regret %.0f, calls to release %d, ε = %v\n", out.Plays, out.Regret[0],
		out.Releases, out.Loss.Pure())
	// Output: plays [9800 200], regret 80, calls to release 1, ε = 1
}

// The reference: the algorithm as its source has it, reward by reward and without batches. Without
// noise both must play the same arms.
func TestPrivateCommitReference(t *testing.T) {
	const horizon, rounds = 500, 30
	for seed := range uint64(20) {
		rewards := noise.Key{Seed: seed, Experiment: "reference", Role: noise.RoleReward}.Fast(3)
		table := make([][]float64, 3) // the n-th reward of each arm
		for a, mean := range []float64{0.4, 0.5, 0.6} {
			for range horizon {
				r := 0.0
				if rewards[a].Float64() < mean {
					r = 1
				}
				table[a] = append(table[a], r)
			}
		}

		var want []int
		sum, n := [3]float64{}, [3]int{}
		for round := range horizon {
			a := round % 3
			if round >= 3*rounds {
				a = 0
				for b := range 3 {
					if sum[b] > sum[a] { // all arms have been explored equally often
						a = b
					}
				}
			}
			want = append(want, a)
			if round < 3*rounds {
				sum[a] += table[a][n[a]]
			}
			n[a]++
		}

		p, err := NewPrivateCommit(3, math.Inf(1), rounds)
		if err != nil {
			t.Fatal(err)
		}
		if got := playOn(t, p, table, horizon); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("seed %d: played\n%v\nwant\n%v", seed, got, want)
		}
	}
}

// playOn plays a policy on a table of rewards, with a curator between them, and returns the
// arm of each round.
func playOn(t *testing.T, p policy.Policy, table [][]float64, horizon int) []int {
	curator, err := release.Simulated(release.Config{Arms: len(table), Mechanism: p.Mechanism()},
		&noise.Key{Role: noise.RoleNoise}.Fast(1)[0])
	if err != nil {
		t.Fatal(err)
	}
	var played []int
	var released privacy.Released
	next := make([]int, len(table)) // the next reward of each arm
	for len(played) < horizon {
		b := p.Next(released)
		done, counts := make([]int, len(b.Plays)), make([]int, len(b.Plays))
		for m := 1; m <= b.Rounds() && len(played) < horizon; m++ {
			b.Counts(m, counts)
			for i, play := range b.Plays {
				if counts[i] > done[i] {
					if err := curator.Add(play.Arm, table[play.Arm][next[play.Arm]]); err != nil {
						t.Fatal(err)
					}
					next[play.Arm]++
					played = append(played, play.Arm)
				}
			}
			copy(done, counts)
		}
		var arms []int
		for _, play := range b.Plays {
			if play.Release && len(played) < horizon {
				arms = append(arms, play.Arm)
			}
		}
		released = privacy.Released{}
		if len(arms) > 0 {
			if released, err = curator.Release(arms); err != nil {
				t.Fatal(err)
			}
		}
	}
	return played
}

// The bound, by simulation where it says something: two arms 0.4 apart, ε = 0.1 and m = 100, so
// that it is at most 0.4·(100 + 2000·(0.0183 + 0.1353)) = 163.
func TestPrivateCommitBound(t *testing.T) {
	const m, horizon, runs, epsilon, gap = 100, 2000, 400, 0.1, 0.4
	x := epsilon * m * gap / 2
	bound := gap * (m + horizon*(math.Exp(-m*gap*gap/4)+0.5*(1+x/2)*math.Exp(-x)))
	if math.Abs(bound-163) > 1 {
		t.Fatalf("the bound is %v, worked out by hand it is 163", bound)
	}
	in, err := bandit.BernoulliInstance(0.7, 0.3)
	if err != nil {
		t.Fatal(err)
	}
	total := 0.0
	var out sim.Result
	for run := range uint64(runs) {
		p, err := NewPrivateCommit(2, epsilon, m)
		if err != nil {
			t.Fatal(err)
		}
		own := noise.Key{Seed: run, Role: noise.RoleNoise}
		err = sim.Run(context.Background(), sim.Config{Policy: p, Instance: in, Horizon: horizon,
			Checkpoints: []int{horizon},
			Rewards:     noise.Key{Seed: run, Role: noise.RoleReward}.Fast(2), Noise: &own.Fast(1)[0]}, &out)
		if err != nil {
			t.Fatal(err)
		}
		total += out.Regret[0]
	}
	if mean := total / runs; mean > bound || mean < gap*m {
		t.Errorf("mean regret %v, must be at least %v, of the exploration, and at most %v", mean, gap*m, bound)
	}
}

// The twins: an audit must refute the policy with half the noise, and with noise shared by the
// arms, and must not refute the policy, which it would do with probability at most 1e-6. That a
// reward is counted in two releases (audit.Twice) cannot happen here: an arm is released once.
func TestPrivateCommitTwins(t *testing.T) {
	subject, err := audit.PolicySubject(commitEntry(), 2, 16, privacy.Pure{Epsilon: 1},
		catalog.Params{"rounds": 4})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		subject audit.Subject
		refuted bool
	}{
		{"as it is", subject, false},
		{"half the noise", subject.Broken(audit.HalfScale), true},
		{"shared noise", subject.Broken(audit.Shared), true},
	} {
		f, err := audit.PolicyAudit{Subject: c.subject,
			Adversaries: audit.Adversaries(2, 16, audit.View), Gamma: 1e-6, Games: 10_000,
			Pilot: 256, Key: noise.Key{Seed: 1}}.Run(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if f.Refuted != c.refuted {
			t.Errorf("%s: refuted is %v, want %v: ε = %v is claimed, and ε is at least %v", c.name,
				f.Refuted, c.refuted, f.Claimed, f.Low)
		}
	}
}

// Bad input is one clear error.
func TestPrivateCommitErrors(t *testing.T) {
	for _, c := range []struct {
		arms    int
		epsilon float64
		rounds  int
	}{{1, 1, 1}, {2, 0, 1}, {2, -1, 1}, {2, math.NaN(), 1}, {2, 1, 0}, {2, 1, policy.Forever}} {
		if _, err := NewPrivateCommit(c.arms, c.epsilon, c.rounds); err == nil {
			t.Errorf("%+v: no error", c)
		}
	}
}
