package identify

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sotto-dp/sotto/internal/base/testneeds"
	"github.com/sotto-dp/sotto/privacy"
)

// plainly is the decision rule of DP-TT as a loop: every cost anew in every round. It plays until a
// phase ends, or limit rounds, and returns the plays of all arms.
func plainly(p *TopTwo, b, limit int) (plays []int, led, own, rounds int) {
	lead := p.arms[b]
	led, own = lead.led, lead.own
	for a := range p.arms {
		plays = append(plays, p.arms[a].plays)
	}
	for rounds < limit {
		rounds++
		led++
		c := b
		if float64(own) <= float64(p.parts.Beta*float64(led)) {
			own++
		} else {
			c = -1
			least := 0.0
			from := lead.Sample
			from.N = float64(plays[b])
			for a := range p.arms {
				to := p.arms[a].Sample
				to.N = float64(plays[a])
				if a == b {
					continue
				}
				w := p.parts.Challenger.Between(from, to)
				if p.parts.LogCount {
					w += float64(p.parts.Caution * math.Log(to.N))
				}
				if c < 0 || w < least {
					c, least = a, w
				}
			}
		}
		if plays[c]++; plays[c] >= p.arms[c].end {
			break
		}
	}
	return plays, led, own, rounds
}

// From any state, leaps change no count: against the rule as a loop. Means are often equal, 0 or 1,
// so that costs tie exactly.
func TestLeapsEqualTheLoop(t *testing.T) {
	states := testneeds.Size(1500, 20_000)
	r := rand.New(rand.NewPCG(5, 6))
	rounds, leapt := 0, 0
	for i := range states {
		arms, beta := 2+r.IntN(8), []float64{0.5, 0.5, 0.5, 0.3, 0.8, 0.05 + 0.9*r.Float64()}[r.IntN(6)]
		parts := Parts{Leader: BestLeader, Challenger: DEpsCost{}, LogCount: r.IntN(5) > 0,
			Caution: []float64{1, 3, 3, 10}[r.IntN(4)], Beta: beta, Cost: DEpsCost{},
			Threshold: never{}, First: 1, Growth: 2}
		epsilon := math.Exp(8*r.Float64() - 5)
		p := must(NewTopTwo(arms, privacy.Pure{Epsilon: epsilon}, parts))
		base := 1 << (3 + r.IntN(9))
		equal := r.IntN(3) == 0
		for a := range p.arms {
			arm := &p.arms[a]
			arm.Mean = min(1, max(0, []float64{r.Float64(), 0.5 + 0.1*r.Float64(),
				1.2*r.Float64() - 0.1, 0.25 * float64(r.IntN(5))}[r.IntN(4)]))
			arm.Scale, arm.N, arm.Noises = 1/epsilon, 1, 1
			from := base << r.IntN(4)
			if equal {
				from = base
			}
			arm.plays, arm.end = from, 2*from
			if r.IntN(2) == 0 {
				arm.plays += r.IntN(from)
			}
			arm.led = r.IntN(1000)
			arm.own = p.played(arm.led)
		}
		b := p.leader(1)
		limit := 1 << r.IntN(15)
		want, led, own, n := plainly(p, b, limit)
		q := must(NewTopTwo(arms, privacy.Pure{Epsilon: epsilon}, parts))
		copy(q.arms, p.arms)
		p.advance(b, limit)
		var got []int
		for a := range p.arms {
			got = append(got, p.arms[a].plays)
		}
		if !slices.Equal(got, want) || p.arms[b].led != led || p.arms[b].own != own || p.rounds != n {
			t.Fatalf("state %d: %+v, leader %d: plays %v after %d rounds, by the loop %v after %d", i,
				q.arms, b, got, p.rounds, want, n)
		}
		rounds += n
		q.gather(b)
		leapt += q.leap(&q.arms[b], limit)
	}
	t.Logf("%.3f of %d rounds were leapt over at the first leap", float64(leapt)/float64(rounds), rounds)
	if float64(leapt) < 0.5*float64(rounds) {
		t.Errorf("only %d of %d rounds were leapt over", leapt, rounds)
	}
}
