package paper

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sotto-dp/sotto/bound"
)

func TestChapter4ComesOutEachWay(t *testing.T) {
	eachWay(t, theoremsOfChapter4(), map[string][2]numbersOf{
		"view":             {one("view", 0.9), one("view", 1.1)},
		"interactive":      {one("interactive", 0.9), one("interactive", 1.1)},
		"lemma":            {one("lemma", 1), one("lemma", 3.7)},
		"bases":            {one("bases", 1), one("bases", 1.1)},
		"minimax":          {one("rule", -40), one("rule", -0.9)},
		"minimax-constant": {one("steps", -3), one("steps", -0.9)},
		"relaxed": {{"relaxed": {-1, 1}, "gives away": {1, 1, 1}},
			{"relaxed": {-0.9, 1}, "gives away": {1, 1, 1}}},
		"closed-form": {one("closed", 0), one("closed", 0.1)},
		"sandwich":    {{"sandwich": {2, 1}}, {"sandwich": {2, 1.1}}},
		"pinsker":     {one("pinsker", -1), one("pinsker", -0.9)},
	})
}

func TestChapter4Plays(t *testing.T) { playsTheorems(t, theoremsOfChapter4(), "lemma") }

// A policy that answers about a certain reward, by hand: it plays arm 0, the one that differs, and
// again with probability 1 − p. A claim of 0.8 times its ε breaks the theorem at ε = 8.
func TestTransportByHand(t *testing.T) {
	for _, epsilon := range []float64{0.5, 8} {
		p := 1 / (1 + math.Exp(-epsilon))
		x := transportOf(responder(epsilon), []float64{1, 0.5}, []float64{0, 0.5})
		want := transport{math.Tanh(epsilon/2) * epsilon, 2 - p, 4 - 3*p}
		if math.Abs(x.kl-want.kl)+math.Abs(x.linear-want.linear)+math.Abs(x.square-want.square) > 1e-12 {
			t.Errorf("%+v, want %+v", x, want)
		}
		if epsilon == 8 && x.kl <= 0.8*epsilon*x.linear {
			t.Errorf("a claim of 0.8 times its ε is not told: %+v", x)
		}
	}
	// Half of the rewards differ, and tell half the time: E Σ t = ½(1 + 1 − p) under mean 1.
	x, p := transportOf(responder(1), []float64{1, 0.5}, []float64{0.5, 0.5}), 1/(1+math.Exp(-1))
	if want := 0.5 * (2 - p); math.Abs(x.linear-want) > 1e-12 {
		t.Errorf("E Σ t = %v, want %v", x.linear, want)
	}
}

// The rule without its noise beats the bound for small ρ: it is not ρ-zCDP, and the check tells.
func TestRuleWithoutNoiseIsTold(t *testing.T) {
	if x := leastCommitted(4096, 1e-8, math.Inf(1)); x >= 1 {
		t.Errorf("without noise it has %v times the bound", x)
	}
	if x := leastCommitted(4096, 1e-8, 1e-8); x < 1 {
		t.Errorf("with noise it has %v times the bound", x)
	}
	// One pair, no noise: the sign is wrong with probability Φ(−Δ/√2).
	if got, want := committed(10, 1, 1, math.Inf(1)), 1+8*normalTail(1/math.Sqrt2); math.Abs(got-want) > 1e-12 {
		t.Errorf("regret %v, want %v", got, want)
	}
}

// Two unit vectors: each side by hand. Orthogonal arms have 2 on each (Example B.2).
func TestLemmaByHand(t *testing.T) {
	for degrees, printed := range map[float64]float64{90: 2, 60: 1, 30: 2 * (1 - math.Sqrt(3)/2)} {
		s, c := math.Sincos(degrees * math.Pi / 180)
		left, right, bases, err := planned([][]float64{{1, 0}, {c, s}}, []float64{3, 7})
		if err != nil || math.Abs(left-2) > 1e-9 || math.Abs(right-printed) > 1e-9 || math.Abs(bases-2) > 1e-9 {
			t.Errorf("%v°: %v, %v, %v, %v", degrees, left, right, bases, err)
		}
	}
	if _, _, _, err := planned([][]float64{{1, 0}, {2, 0}}, []float64{1, 1}); err == nil {
		t.Error("arms that do not span the plane")
	}
}

// The certificates of Proposition 4.26 agree, and no random allocation does better.
func TestCertificates(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 26))
	for i := range 50 {
		means := randomMeans(r, 2+i%4)
		attained, limit, err := certified(means)
		if err != nil || math.Abs(attained-1) > 1e-9 || math.Abs(limit-1) > 1e-9 {
			t.Errorf("%v: %v, %v, %v", means, attained, limit, err)
		}
		tv, err := bound.TVTime(means)
		if err != nil {
			t.Fatal(err)
		}
		for range 200 {
			total, w := 0.0, make([]float64, len(means))
			for a := range w {
				w[a] = r.ExpFloat64()
				total += w[a]
			}
			least := math.Inf(1)
			for a := 1; a < len(w); a++ {
				least = min(least, min(w[0], w[a])/total*(means[0]-means[a]))
			}
			if least > 1/tv*(1+1e-12) {
				t.Errorf("%v: an allocation has %v, above %v", means, least, 1/tv)
			}
		}
	}
}
