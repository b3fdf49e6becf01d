package sim_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/policy/identify"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/sim"
)

// A publishedCell is what a program of [Azize et al. 2023] was run on, and how to build our twin of
// it.
type publishedCell struct {
	file          string
	epsilon, risk float64
	means         []float64
	twin          func(c publishedCell, coins policy.Coins) (identify.Identifier, error)
	broken        map[string]func(c publishedCell, coins policy.Coins) (identify.Identifier, error)
}

func publishedAdaPTT(options ...identify.TopTwoOption) func(c publishedCell,
	coins policy.Coins) (identify.Identifier, error) {
	return func(c publishedCell, coins policy.Coins) (identify.Identifier, error) {
		return identify.NewPublishedAdaPTT(len(c.means), privacy.Pure{Epsilon: c.epsilon}, c.risk,
			coins, options...)
	}
}

// quartered is what σ = ½ makes of a threshold that is compared with a statistic for σ = 1.
type quartered struct{ identify.Threshold }

func (q quartered) At(a, b identify.Sample) float64 { return q.Threshold.At(a, b) / 4 }

func fourfold(c publishedCell, coins policy.Coins) (identify.Identifier, error) {
	t, err := identify.NewPublishedThreshold(c.risk)
	if err != nil {
		return nil, err
	}
	return publishedAdaPTT(identify.WithThreshold(quartered{t}))(c, coins)
}

// published004 was made by testdata/published/play.py, which runs the program itself:
// github.com/achraf-azize/DP-BAI, commit c8d8be2, unchanged, on numpy 1.24.2, one run for each seed
// of its generator from 0 on. A line is: seed, stopping time as the program reports it, plays that
// its bandit was asked for, answer.
func published004() []publishedCell {
	dpse := func(c publishedCell, coins policy.Coins) (identify.Identifier, error) {
		return identify.NewPublishedDPSE(len(c.means), privacy.Pure{Epsilon: c.epsilon}, c.risk, coins)
	}
	ttucb := func(c publishedCell, coins policy.Coins) (identify.Identifier, error) {
		return identify.NewPublishedTTUCB(len(c.means), c.risk, coins)
	}
	type twins = map[string]func(c publishedCell, coins policy.Coins) (identify.Identifier, error)
	return []publishedCell{
		{"adaptt-two", 0.05, 0.1, []float64{0.6, 0.5}, publishedAdaPTT(),
			twins{"four times the evidence": fourfold}},
		{"adaptt-four", 0.5, 0.1, []float64{0.8, 0.5, 0.5, 0.5}, publishedAdaPTT(), twins{
			"four times the evidence": fourfold,
			"clipped means":           publishedAdaPTT(identify.WithClippedMeans())}},
		{"adaptt-line", 0.1, 0.01, []float64{0, 0.25, 0.5, 0.75, 1}, publishedAdaPTT(),
			twins{"four times the evidence": fourfold}},
		{"dpse-five", 0.1, 0.01, []float64{0.75, 0.625, 0.5, 0.375, 0.25}, dpse, twins{
			"means of an epoch": func(c publishedCell, _ policy.Coins) (identify.Identifier, error) {
				return identify.NewDPSE(len(c.means), privacy.Pure{Epsilon: c.epsilon}, c.risk)
			}}},
		{"ttucb-four", 1, 0.1, []float64{0.8, 0.5, 0.5, 0.5}, ttucb, twins{
			"proved threshold": func(c publishedCell, _ policy.Coins) (identify.Identifier, error) {
				return identify.NewTTUCB(len(c.means), c.risk, identify.WithSigma(1))
			}}},
	}
}

// A sample is stopping times of runs, below 0 where the answer was wrong: of all plays,
// and as reported.
type sample struct{ plays, reported []float64 }

// read reads a file of runs; the best arm is the one of the highest mean.
func (c publishedCell) read(t *testing.T) (s sample) {
	t.Helper()
	b, err := os.ReadFile("testdata/published/" + c.file + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	for in := bufio.NewScanner(bytes.NewReader(b)); in.Scan(); {
		var seed, reported, plays, answer int
		if _, err := fmt.Sscan(in.Text(), &seed, &reported, &plays, &answer); err != nil {
			t.Fatalf("%s: %v", c.file, err)
		}
		s.add(c, plays, reported, answer)
	}
	return s
}

func (s *sample) add(c publishedCell, plays, reported, answer int) {
	sign := 1.
	if c.means[answer] < slices.Max(c.means) {
		sign = -1
	}
	s.plays, s.reported = append(s.plays, sign*float64(plays)), append(s.reported, sign*float64(reported))
}

// play plays so many runs.
func (c publishedCell) play(t *testing.T, runs int,
	build func(c publishedCell, coins policy.Coins) (identify.Identifier, error)) (s sample) {
	t.Helper()
	in, err := bandit.BernoulliInstance(c.means...)
	if err != nil {
		t.Fatal(err)
	}
	for run := range runs {
		key := noise.Key{Seed: 15, Experiment: c.file, Run: run}
		own, coins := key, key
		own.Role, coins.Role = noise.RoleNoise, noise.RolePolicy
		rule, err := build(c, sim.NewCoins(&coins.Fast(1)[0]))
		if err != nil {
			t.Fatal(err)
		}
		key.Role = noise.RoleReward
		var out sim.IdentifyResult
		if err := sim.Identify(context.Background(),
			sim.IdentifyConfig{Policy: rule, Instance: in, Cap: 1e9,
				Rewards: key.Fast(len(c.means)), Noise: &own.Fast(1)[0]}, &out); err != nil {
			t.Fatal(err)
		}
		reported := out.Tau
		if r, ok := rule.(interface{ Ended() int }); ok {
			reported = r.Ended()
		}
		s.add(c, out.Tau, reported, out.Answer)
	}
	return s
}

// apart is the greatest difference of the two samples' distribution functions.
func apart(x, y []float64) float64 {
	x, y = slices.Sorted(slices.Values(x)), slices.Sorted(slices.Values(y))
	d, j := 0., 0
	for i, v := range x {
		if i+1 < len(x) && x[i+1] == v {
			continue
		}
		for j < len(y) && y[j] < v {
			j++
		}
		before, _ := slices.BinarySearch(x, v)
		d = max(d, math.Abs(float64(before)/float64(len(x))-float64(j)/float64(len(y))))
		for j < len(y) && y[j] == v {
			j++
		}
		d = max(d, math.Abs(float64(i+1)/float64(len(x))-float64(j)/float64(len(y))))
	}
	return d
}

// Our twins of the programs published with [Azize et al. 2023] stop when those do, and err as
// often: two-sample tests of Kolmogorov and Smirnov on stopping times, those of wrong answers with
// a minus. For two samples of n runs of one law P(D√(n/2) > x) ≤ e·exp(−2x²) (Wei and Dudley 2012),
// whatever the law; all ten together give a false alarm with probability at most 1e-6. Twins of
// ours that have a fault are told apart.
func TestPublishedProgramsOf004(t *testing.T) {
	testkit.OneGoroutine(t)
	cells := published004()
	far := func(n int) float64 { // a tenth of 1e-6
		return math.Sqrt((1 + math.Log(1e7)) / float64(n))
	}
	for _, c := range cells {
		theirs := c.read(t)
		n := len(theirs.plays)
		ours := c.play(t, n, c.twin)
		for _, s := range []struct {
			name       string
			ours, want []float64
		}{{"plays", ours.plays, theirs.plays}, {"reported", ours.reported, theirs.reported}} {
			t.Logf("%s, %s: mean %.0f, theirs %.0f; wrong %d, theirs %d of %d; distance %.3f, "+
				"too far is %.3f", c.file, s.name,
				meanOf(s.ours), meanOf(s.want), wrongOf(s.ours), wrongOf(s.want), n,
				apart(s.ours, s.want), far(n))
			if d := apart(s.ours, s.want); d > far(n) {
				t.Errorf("%s: the laws of %s are %.3f apart, want at most %.3f", c.file, s.name, d, far(n))
			}
		}
		for name, build := range c.broken {
			d := apart(c.play(t, n, build).plays, theirs.plays)
			t.Logf("%s, %s: distance %.3f", c.file, name, d)
			if d <= far(n) {
				t.Errorf("%s: a twin with %s is not told apart: %.3f", c.file, name, d)
			}
		}
	}
}

func meanOf(x []float64) (m float64) {
	for _, v := range x {
		m += math.Abs(v) / float64(len(x))
	}
	return m
}

func wrongOf(x []float64) (n int) {
	for _, v := range x {
		if v < 0 {
			n++
		}
	}
	return n
}
