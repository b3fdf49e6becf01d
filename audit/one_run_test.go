package audit_test

import (
	"math"
	"math/bits"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
	"pgregory.net/rapid"

	"github.com/sotto-dp/sotto/audit"
	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
)

// A guesser has the law of an adversary's answers for each m bits: which it guesses, and what.
type guesser struct {
	m, r    int
	answers []answer
	law     [][]float64 // by bits
}

type answer struct{ guessed, value uint }

// newGuesser has all answers of r guesses.
func newGuesser(m, r int) guesser {
	g := guesser{m: m, r: r, law: make([][]float64, 1<<m)}
	for at := range uint(1) << m {
		for v := range uint(1) << m {
			if bits.OnesCount(at) == r && v&^at == 0 {
				g.answers = append(g.answers, answer{at, v})
			}
		}
	}
	return g
}

// right is how many guesses are right.
func (a answer) right(b uint) int { return bits.OnesCount(a.guessed &^ (a.value ^ b)) }

// delta is the smallest δ at which the answers are (ε,δ)-DP in each bit.
func (g guesser) delta(epsilon float64) float64 {
	worst := 0.0
	for b := range uint(1) << g.m {
		for i := range g.m {
			sum := 0.0
			for k, p := range g.law[b] {
				sum += max(0, p-float64(math.Exp(epsilon)*g.law[b^1<<i][k]))
			}
			worst = max(worst, sum)
		}
	}
	return worst
}

// tail is the probability that v guesses or more are right, for fair bits.
func (g guesser) tail(v int) float64 {
	sum := 0.0
	for b := range uint(1) << g.m {
		for k, p := range g.law[b] {
			if g.answers[k].right(b) >= v {
				sum += p / float64(uint(1)<<g.m)
			}
		}
	}
	return sum
}

// redrawn are guesses of randomised response that are drawn again until v of them are right, with
// probability mix; and the law of how many are right without.
func redrawn(m, r, v int, epsilon, mix float64) (guesser, distuv.Binomial) {
	g := newGuesser(m, r)
	w := distuv.Binomial{N: float64(r), P: 1 / (1 + math.Exp(-epsilon))}
	beta := w.Survival(float64(v) - 0.5)
	for b := range g.law {
		for _, a := range g.answers {
			n := a.right(uint(b))
			rho := 1 - mix
			if n >= v {
				rho += mix / beta
			}
			among := float64(len(g.answers)) / math.Exp2(float64(r)) * combin(r, n)
			g.law[b] = append(g.law[b], rho*w.Prob(float64(n))/among)
		}
	}
	return g, w
}

// Near the centre the published bound is below what a run reaches that is (ε,δ)-DP, by adding up
// every answer for all bits: it is no bound there.
func TestThePublishedBoundOfOneRunIsNoneNearTheCentre(t *testing.T) {
	const epsilon, delta = 1, 0.01
	o := audit.OneRun{Canaries: 2, Guesses: 2, Correct: 1}
	// δ grows as the mix does, which is δβ/(q(1−q)).
	full, _ := redrawn(2, 2, 1, epsilon, 1)
	g, _ := redrawn(2, 2, 1, epsilon, delta/full.delta(epsilon))
	near(t, "δ", g.delta(epsilon), delta, 1e-12)
	near(t, "right at least once", g.tail(1), 0.931083, 5e-7)
	near(t, "the published bound", steinke(o, epsilon, delta), 0.930564, 5e-7)
	p, err := o.PValue(epsilon, delta)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "ours", p, g.tail(1), 1e-12)
}

// PValue bounds what any adversary of few canaries reaches, by adding up every answer for all
// bits; and randomised response that is drawn again until v guesses are right, with some
// probability, reaches it.
func TestOneRunPValueIsSharp(t *testing.T) {
	for _, c := range []struct {
		m, r, v      int
		epsilon, mix float64
	}{{1, 1, 1, 0.5, 0.3}, {3, 3, 3, 1, 0.1}, {3, 2, 2, 0, 0.5}, {4, 3, 2, 2, 0.01}, {4, 4, 3, 0.3, 0.7},
		{5, 2, 1, 1, 0.2}} {
		g, w := redrawn(c.m, c.r, c.v, c.epsilon, c.mix)
		delta := g.delta(c.epsilon)
		o := audit.OneRun{Canaries: c.m, Guesses: c.r, Correct: c.v}
		p, err := o.PValue(c.epsilon, delta)
		if err != nil {
			t.Fatal(err)
		}
		near(t, "p", p, g.tail(c.v), 1e-12)
		// The published bound is above it where v is above the mean, as in every audit that finds
		// something; below the mean it can be less than what is reached.
		if s := steinke(o, c.epsilon, delta); float64(c.v) > w.Mean() && !(s > p) {
			t.Errorf("%+v: the published bound is %v, the sharp one %v", c, s, p)
		}
		// a bound with half as much for δ is found out
		if less, _ := o.PValue(c.epsilon, delta/2); !(less < g.tail(c.v)) {
			t.Errorf("%+v: half of δ would be enough: %v", c, less)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		g := newGuesser(3, rapid.IntRange(1, 3).Draw(t, "guesses"))
		for b := range g.law {
			sum := 0.0
			for _, a := range g.answers {
				p := math.Exp(rapid.SampledFrom([]float64{-8, -1, 0}).Draw(t, "log") +
					float64(a.right(uint(b)))*1.5)
				g.law[b] = append(g.law[b], p)
				sum += p
			}
			for k := range g.law[b] {
				g.law[b][k] /= sum
			}
		}
		for v := 1; v <= g.r; v++ {
			for _, e := range []float64{0, 0.5, 1, 2, 3} {
				o := audit.OneRun{Canaries: g.m, Guesses: g.r, Correct: v}
				p, err := o.PValue(e, min(0.999, g.delta(e)))
				if err != nil || p < g.tail(v)-1e-12 {
					t.Fatalf("%d of %d right have probability %v, at most %v at ε = %v: %v", v, g.r,
						g.tail(v), p, e, err)
				}
			}
		}
	})
}

func combin(n, k int) float64 {
	c := 1.0
	for i := range k {
		c = c * float64(n-i) / float64(i+1)
	}
	return c
}

// Normal noise of μ = 1 with 20 000 canaries, and its broken twin of half the noise, 20 runs
// each at 95 %, at two δ and of Gaussian DP. The claim is that of μ = 1: nine refutations of it
// in 20 have a probability below 10⁻⁶ where it is true. By the published bound the twin is
// never found at δ = 10⁻³.
func TestOneRunFindsHalfTheNoise(t *testing.T) {
	testkit.OneGoroutine(t)
	const m, gamma, runs = 20_000, 0.05, 20
	src := noise.NewFast(31, 1)
	for _, c := range []struct {
		mu   float64
		twin bool
	}{{1, false}, {2, true}} {
		refuted, published := map[float64]int{}, 0
		sum := map[float64]float64{}
		for range runs {
			var s audit.Scores
			for range m {
				if src.Uint64()>>63 == 1 {
					s.In = append(s.In, src.Normal()+c.mu)
				} else {
					s.Out = append(s.Out, src.Normal())
				}
			}
			for _, delta := range []float64{1e-5, 1e-3} {
				claim := privacy.GaussianEpsilon(1, delta)
				e, o, err := s.OneRunEpsilon(gamma, delta, m/50, m/10, m/3)
				if err != nil {
					t.Fatal(err)
				}
				sum[delta] += e / runs
				if e > claim {
					refuted[delta]++
				}
				if delta == 1e-3 && steinke(o, claim, delta) <= gamma/3 {
					published++
				}
			}
			o, err := s.OneRun(m / 50)
			if err != nil {
				t.Fatal(err)
			}
			mu, err := o.Mu(gamma)
			if err != nil {
				t.Fatal(err)
			}
			sum[0] += mu / runs
			if mu > 1 {
				refuted[0]++
			}
		}
		t.Logf("μ = %v: refuted %v, by the published bound %d; mean bounds %.3f", c.mu, refuted, published, sum)
		for _, what := range []float64{0, 1e-5, 1e-3} { // 0 is μ
			if n := refuted[what]; c.twin && n < 15 || !c.twin && n >= 9 {
				t.Errorf("μ = %v, at %v: %d of %d refuted", c.mu, what, n, runs)
			}
		}
		if published > 0 {
			t.Errorf("μ = %v: %d are refuted by the published bound", c.mu, published)
		}
	}
}

// How much one run shows of a claim, for several μ, m and δ.
func TestOneRunFigures(t *testing.T) {
	for _, c := range []struct {
		mu, delta float64
		m         int
		want      float64
	}{{1, 1e-5, 1000, 1.710}, {1, 1e-5, 100_000, 2.619}, {2, 1e-5, 100_000, 5.281},
		{4, 1e-5, 100_000, 8.886}, {1, 1e-3, 1000, 1.410}, {2, 1e-3, 100_000, 3.407},
		{4, 1e-3, 100_000, 8.813}} {
		src := noise.NewFast(5, uint64(c.m))
		var s audit.Scores
		for range c.m {
			if src.Uint64()>>63 == 1 {
				s.In = append(s.In, src.Normal()+c.mu)
			} else {
				s.Out = append(s.Out, src.Normal())
			}
		}
		e, o, err := s.OneRunEpsilon(0.05, c.delta, c.m/200, c.m/50, c.m/10, c.m/3, c.m)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("μ = %v, m = %d, δ = %v: ε ≥ %.3f of %.3f, %d of %d right", c.mu, c.m, c.delta, e,
			privacy.GaussianEpsilon(c.mu, c.delta), o.Correct, o.Guesses)
		near(t, "ε", e, c.want, 6e-4)
	}
}
