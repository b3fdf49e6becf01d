package identify

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/sotto-dp/sotto/internal/testkit"
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
	states := testkit.Size(1500, 20_000)
	r := rand.New(rand.NewPCG(5, 6))
	rounds, leapt := 0, 0
	for i := range states {
		arms, beta := 2+r.IntN(8), []float64{0.5, 0.5, 0.5, 0.3, 0.8, 0.05 + 0.9*r.Float64()}[r.IntN(6)]
		parts := Parts{Leader: BestLeader, Challenger: DEpsCost{}, LogCount: r.IntN(5) > 0,
			Caution: []float64{1, 3, 3, 10}[r.IntN(4)], Beta: beta, Cost: DEpsCost{},
			Threshold: never{}, First: 1, Growth: 2}
		epsilon := math.Exp(8*r.Float64() - 5)
		p := testkit.Must(NewTopTwo(arms, privacy.Pure{Epsilon: epsilon}, parts))
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
		q := testkit.Must(NewTopTwo(arms, privacy.Pure{Epsilon: epsilon}, parts))
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

// plainTTUCB is TTUCB as a loop: everything anew in every round.
type plainTTUCB struct {
	beta, sigma float64
	threshold   GaussianThreshold
	n, mean     []float64
	led, own    []float64
	round       int
}

// decide is the arm of the round, or −1 and the answer.
func (p *plainTTUCB) decide() (arm, answer int) {
	cost := GaussianCost{p.sigma}
	best, b := 0, 0
	for a := range p.n {
		if p.mean[a] > p.mean[best] {
			best = a
		}
	}
	stops := true
	for a := range p.n {
		stops = stops && (a == best || !(cost.rate(p.mean[best]-p.mean[a]) <
			(p.threshold.constant+2*iterated(p.n[best])+2*iterated(p.n[a]))*(1/p.n[best]+1/p.n[a])))
	}
	if stops {
		return -1, best
	}
	index := func(a int) float64 {
		return p.mean[a] + float64(math.Sqrt(math.Log(float64(p.round)))*(p.sigma*math.Sqrt(2/p.n[a])))
	}
	for a := range p.n {
		if index(a) > index(b) {
			b = a
		}
	}
	p.round++
	p.led[b]++
	if p.own[b] <= float64(p.beta*p.led[b]) {
		p.own[b]++
		return b, -1
	}
	c := -1
	w := func(a int) float64 { return cost.rate(p.mean[b]-p.mean[a]) / (1/p.n[b] + 1/p.n[a]) }
	for a := range p.n {
		if a != b && (c < 0 || w(a) < w(c)) {
			c = a
		}
	}
	return c, -1
}

// TTUCB's shortcuts change no decision, with rewards on a grid, so that indices and costs tie.
func TestTTUCBEqualsTheLoop(t *testing.T) {
	stopped := 0
	rapid.Check(t, func(t *rapid.T) {
		arms := rapid.IntRange(2, 6).Draw(t, "arms")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		beta := rapid.SampledFrom([]float64{0.5, 0.3, 0.8}).Draw(t, "beta")
		sigma := rapid.SampledFrom([]float64{0.5, 1, 0.3}).Draw(t, "sigma")
		grid := rapid.SampledFrom([]int{1, 1, 2, 10}).Draw(t, "grid") // rewards are i/grid
		p := testkit.Must(NewTTUCB(arms, 0.1, WithBeta(beta), WithSigma(sigma)))
		q := plainTTUCB{beta: beta, sigma: sigma, threshold: p.threshold, n: make([]float64, arms),
			mean: make([]float64, arms), led: make([]float64, arms), own: make([]float64, arms),
			round: arms + 1}
		means, n, sum := make([]float64, arms), make([]int, arms), make([]float64, arms)
		for a := range means {
			means[a] = []float64{r.Float64(), 0.25 * float64(r.IntN(5))}[r.IntN(2)]
		}
		ledger := privacy.NewLedger()
		var released privacy.Released
		for round := range 1500 {
			batch := p.Next(released)
			if round > 0 {
				arm, answer := q.decide()
				switch {
				case (batch == nil) != (arm < 0) || p.Answer() != answer:
					t.Fatalf("round %d: %v and answer %d, by the loop arm %d, %d", round, batch,
						p.Answer(), arm, answer)
				case batch == nil:
					stopped++
					return
				case len(batch.Plays) != 1 || batch.Plays[0].Arm != arm:
					t.Fatalf("round %d: %v, by the loop arm %d", round, batch.Plays, arm)
				}
			}
			v := &privacy.Values{}
			for _, play := range batch.Plays {
				a := play.Arm
				x := math.Floor(means[a]*float64(grid)+r.Float64()) / float64(grid)
				n[a]++
				sum[a] += x
				v.N, v.Sum = append(v.N, n[a]), append(v.Sum, sum[a])
				q.n[a], q.mean[a] = float64(n[a]), sum[a]/float64(n[a])
			}
			released = testkit.Must(ledger.Release(0, p.Mechanism(), v))
		}
	})
	if stopped == 0 { // two in three do
		t.Error("no run stopped")
	}
}
