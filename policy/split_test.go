package policy_test

import (
	"math"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
)

func newSplit(t *testing.T, shares []float64, b privacy.Budget, effect, rate float64) *policy.Split {
	t.Helper()
	p, err := policy.NewSplit(shares, b, effect, rate)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Where batches end, by hand: Δ = .02 at ε = 1 has g = 8/.02 = 400 of each arm until 4N₀ = 39 250 of
// each; then a tenth.
func TestSplitSchedule(t *testing.T) {
	even, odd := []float64{0.5, 0.5}, []float64{0.9, 0.1}
	for _, c := range []struct {
		name         string
		shares       []float64
		budget       privacy.Budget
		effect, rate float64
		from, end    int
	}{
		{"planned", even, privacy.Pure{Epsilon: 1}, 0.02, 0, 0, 800},
		{"and again", even, privacy.Pure{Epsilon: 1}, 0.02, 0, 800, 1600},
		{"before 4N₀", even, privacy.Pure{Epsilon: 1}, 0.02, 0, 78_400, 79_200},
		{"after it", even, privacy.Pure{Epsilon: 1}, 0.02, 0, 79_200, 87_120},
		{"a rate makes N₀ smaller", even, privacy.Pure{Epsilon: 1}, 0.02, 0.1, 28_800, 31_680},
		{"three arms", []float64{0.25, 0.25, 0.5}, privacy.Pure{Epsilon: 1}, 0.02, 0, 0, 1600},
		{"normal noise of deviation 1", even, privacy.ZCDP{Rho: 0.5}, 0.02, 0, 0, 566},
		{"uneven: 400·√((1/.81 + 1/.01)/2)", odd, privacy.Pure{Epsilon: 1}, 0.02, 0, 0, 2846},
		{"no effect", even, privacy.Pure{Epsilon: 1}, 0, 0, 0, 16},
		{"it doubles", even, privacy.Pure{Epsilon: 1}, 0, 0, 16, 32},
		{"and then grows as a root, 2·2√(32/.25)", even, privacy.Pure{Epsilon: 1}, 0, 0, 64, 110},
		{"a rare reward: 1/(ε²v)", even, privacy.Pure{Epsilon: 0.1}, 0, 0.02, 0, 10_205},
		{"a hundredth at least", even, privacy.Pure{Epsilon: 1}, 0, 0, 4_000_000, 4_040_000},
		{"no noise", even, privacy.None{}, 0, 0, 0, 16},
		{"no noise, uneven", odd, privacy.None{}, 0.5, 0, 0, 80},
		{"no end", even, privacy.Pure{Epsilon: 1e-150}, 0, 0, 0, policy.Forever},
	} {
		p := newSplit(t, c.shares, c.budget, c.effect, c.rate)
		if end := p.JointEnd(c.from); end != c.end {
			t.Errorf("%s: a batch from %d ends at %d, want %d", c.name, c.from, end, c.end)
		}
	}
}

// The size of a batch is the one that a search finds: of all numbers m of rounds, the n rounds that
// bring the variance of the difference of the least two arms to what N₀ rewards each have without
// noise, and half a batch more, are fewest, within the rounding of 15.7 to 16 in 8/(εΔ).
func TestSplitIsBest(t *testing.T) {
	for _, shares := range [][]float64{{0.5, 0.5}, {0.9, 0.1}, {0.2, 0.3, 0.5}, {0.8, 0.1, 0.05, 0.05}} {
		for _, effect := range []float64{0.01, 0.05} {
			const epsilon, v = 0.5, 0.09
			p, q := 1.0, 1.0
			for _, s := range shares {
				if s < p {
					p, q = s, p
				} else {
					q = min(q, s)
				}
			}
			target := 2 * v / (15.7 * v / (effect * effect))
			cost := func(m float64) float64 {
				noise := 2 / (epsilon * epsilon) * (1/(p*p) + 1/(q*q)) / m
				return (v*(1/p+1/q)+noise)/target + m/2
			}
			least := math.Inf(1)
			for m := 1.0; m < 1e7; m *= 1.001 {
				least = min(least, cost(m))
			}
			size := newSplit(t, shares, privacy.Pure{Epsilon: epsilon}, effect, 0.1).JointEnd(0)
			if got := cost(float64(size)); got > least*1.0005 {
				t.Errorf("%v, effect %v: batches of %d take %v rounds, and the best %v", shares, effect, size, got, least)
			}
			if got := cost(float64(size) / 2); got < least*1.002 {
				t.Errorf("%v, effect %v: half of it is as good", shares, effect)
			}
		}
	}
}

// Each batch is where its number says, asks for every arm's release, and arms keep their shares
// within one round.
func TestSplitShares(t *testing.T) {
	for _, shares := range [][]float64{{0.5, 0.5}, {1 / 3., 1 / 3., 1 / 3.}, {0.9, 0.1}, {0.001, 0.333, 0.666}} {
		p := newSplit(t, shares, privacy.Pure{Epsilon: 3}, 0, 0)
		have, round := make([]int, len(shares)), 0
		for range 200 {
			b := p.Next(privacy.Released{})
			end := p.JointEnd(round)
			if b.Rounds() != end-round || len(b.Plays) != len(shares) || end <= round {
				t.Fatalf("%v: a batch of %d rounds from %d to %d", shares, b.Rounds(), round, end)
			}
			round = end
			for a, play := range b.Plays {
				have[a] += play.Rounds
				if want := shares[a] * float64(round); play.Arm != a || !play.Release || play.Rounds < 5 ||
					math.Abs(float64(have[a])-want) > 1 {
					t.Fatalf("%v: %+v, and %d of %d rounds", shares, play, have[a], round)
				}
			}
		}
	}
}

func TestSplitErrors(t *testing.T) {
	even, one := []float64{0.5, 0.5}, privacy.Budget(privacy.Pure{Epsilon: 1})
	for _, c := range []struct {
		shares       []float64
		budget       privacy.Budget
		effect, rate float64
		want         string
	}{
		{[]float64{1}, one, 0, 0, "arms is 1"},
		{[]float64{0.5, 0.4}, one, 0, 0, "shares add to 0.9, must add to 1"},
		{[]float64{0, 1}, one, 0, 0, "share 1 is 0, must be from 0.001"},
		{[]float64{0.5, math.NaN()}, one, 0, 0, "share 2 is NaN"},
		{even, one, -0.1, 0, "effect is -0.1"},
		{even, one, 1.1, 0, "effect is 1.1"},
		{even, one, math.NaN(), 0, "effect is NaN"},
		{even, one, 0, 1, "rate is 1"},
		{even, one, 0, -1, "rate is -1"},
		{even, privacy.Pure{}, 0, 0, "epsilon"},
		{even, privacy.Pure{Epsilon: 1e-200}, 0, 0, "the noise is too large"},
	} {
		if p, err := policy.NewSplit(c.shares, c.budget, c.effect, c.rate); p != nil || err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// Sums that are added up of four cells have twice the noise, so batches are twice as long while noise rules them.
func TestSplitCells(t *testing.T) {
	p := newSplit(t, []float64{0.5, 0.5}, privacy.Pure{Epsilon: 1}, 0.02, 0)
	if err := p.SetCells(4); err != nil || p.JointEnd(0) != 1600 || p.Mechanism() != (privacy.Laplace{Scale: 1}) {
		t.Errorf("a batch ends at %d, %v", p.JointEnd(0), err)
	}
	if err := p.SetCells(0); err == nil {
		t.Error("it has no cell")
	}
}
