package identify

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sotto-dp/sotto/privacy"
)

type streamOf struct{ *rand.Rand }

func (s streamOf) Normal() float64 { return s.NormFloat64() }

func (s streamOf) Beta(a, b float64) float64 { panic("published adap-tt draws no Beta law") }

// literal is play, play by play with the cost of each arm each time.
func (p *PublishedAdaPTT) literal(leader int) {
	lead, bonus := &p.arms[leader], 1/(1+math.Sqrt(float64(p.ended)))
	for {
		run := math.Log(1-p.coins.Float64()) / math.Log(p.beta)
		if run >= float64(lead.end-lead.plays) {
			lead.plays = lead.end
			return
		}
		lead.plays += int(run)
		least, challenger := math.Inf(1), lead
		for a := range p.arms {
			x := &p.arms[a]
			c, n, m := lead.Mean-x.Mean+bonus, float64(lead.plays), float64(x.plays)
			if w := float64(float64(c*math.Abs(c))*m) / (n + m); a != leader && w < least {
				least, challenger = w, x
			}
		}
		if challenger.plays++; challenger.plays >= challenger.end {
			return
		}
	}
}

// Plays and tosses are those of the literal loop: with arms ahead of the leader, with equal means,
// with costs of 0 or so small that their inverses overflow, and whatever the coin's probability is.
func TestPublishedPlaysAreLiteral(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 1))
	for run := range 4000 {
		arms := 2 + r.IntN(9)
		p := &PublishedAdaPTT{beta: []float64{0.5, 0.5, 0.4, 0.9}[run%4],
			arms: make([]publishedArm, arms), ended: 1 + r.IntN(100_000)}
		bonus := 1 / (1 + math.Sqrt(float64(p.ended)))
		leader := r.IntN(arms)
		for a := range p.arms {
			x := &p.arms[a]
			x.plays = 1 + r.IntN(5000)
			x.end = x.plays + 1 + r.IntN(3000)
			switch r.IntN(8) {
			case 0, 1, 2, 3, 4:
				x.Mean = 0.1 * r.NormFloat64()
			case 5:
				// ties, or all but
				x.Mean, x.plays, x.end = 0.25+float64(r.IntN(4))*0x1p-54, 1000, 3000
			case 6:
				x.Mean = 0.25 + bonus
			case 7:
				x.Mean = bonus * (1 + 1e-15*r.Float64())
			}
		}
		if run%16 == 0 {
			p.arms[leader].Mean = 0 // and c of the last kind of arms is 0 or nearly
		}
		literal := *p
		literal.arms = slices.Clone(p.arms)
		source := rand.NewPCG(uint64(run), 2)
		other := *source
		p.coins, literal.coins = streamOf{rand.New(source)}, streamOf{rand.New(&other)}
		p.play(leader)
		literal.literal(leader)
		for a := range p.arms {
			if got, want := p.arms[a].plays, literal.arms[a].plays; got != want {
				t.Fatalf("run %d: arm %d of %d has %d plays, want %d", run, a, arms, got, want)
			}
		}
		if *source != other {
			t.Fatalf("run %d: other coins were tossed", run)
		}
	}
}

// What is too close to call by inverses is not called: of two costs that round to the same, or to
// the other order, the division decides.
func TestPublishedFurthestIsCheapest(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 3))
	close, called := 0, 0
	for range 100_000 {
		p := &PublishedAdaPTT{arms: make([]publishedArm, 4)}
		p.arms[0].inverse = math.Inf(-1)
		sign, w, m := 1-2*float64(r.IntN(2)), r.Float64(), 1+r.IntN(10_000)
		for a := 1; a < 4; a++ {
			x := &p.arms[a]
			k := 1 + r.IntN(3)
			x.weight, x.plays = sign*w*(1+0x1p-52*float64(r.IntN(4)))/float64(k), k*m
			if r.IntN(2) == 0 {
				x.weight *= 1 + r.Float64()
			}
			x.inverse, x.slope = 1/x.weight, 1/(x.weight*float64(x.plays))
		}
		n := float64(r.IntN(3)) // few plays of the leader: then k hardly matters
		switch got, want := p.furthest(n), p.cheapest(0, n); got {
		case want:
			called++
		case -1:
			close++
		default:
			t.Fatalf("%+v at n = %v: arm %d, want %d", p.arms[1:], n, got, want)
		}
	}
	if close < 1000 || called < 10_000 {
		t.Errorf("%d were too close to call and %d called, want many of both", close, called)
	}
}

func TestStreak(t *testing.T) {
	check := func(v, beta float64) {
		want := math.Log(v) / math.Log(beta)
		if got := streak(v, beta, math.Log(beta)); math.Floor(got) != math.Floor(want) {
			t.Errorf("streak(%v, %v) = %v, want %v rounded down", v, beta, got, want)
		}
	}
	r := rand.New(rand.NewPCG(15, 2))
	for k := range 54 {
		for _, j := range []int{-1 << 23, -1<<22 - 1, -1 << 22, -1<<22 + 1, -2, -1, 0, 1, 2,
			1<<22 - 1, 1 << 22, 1<<22 + 1, 1 << 23} {
			if v := math.Float64frombits(math.Float64bits(math.Ldexp(1, -k)) + uint64(j)); v <= 1 {
				check(v, 0.5)
			}
		}
		for range 10_000 {
			check(math.Ldexp(1-r.Float64(), -k), 0.5)
			check(1-r.Float64(), 0.5)
		}
	}
	check(0.3, 0.9)
}

func BenchmarkPublishedAdaPTT(b *testing.B) {
	for _, c := range []struct {
		name    string
		means   []float64
		epsilon float64
	}{{"first/1", figureFirst, 1}, {"second/0.01", figureSecond, 0.01},
		{"second/1", figureSecond, 1}, {"spread/0.01", spread, 0.01}} {
		b.Run(c.name, func(b *testing.B) {
			coins := streamOf{rand.New(rand.NewPCG(3, 4))}
			whole(b, c.means, c.epsilon, func() (Identifier, error) {
				return NewPublishedAdaPTT(len(c.means), privacy.Pure{Epsilon: c.epsilon}, 0.01, coins)
			})
		})
	}
}
