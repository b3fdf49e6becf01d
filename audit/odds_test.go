package audit_test

import (
	"errors"
	"math"
	"testing"

	"gonum.org/v1/gonum/mathext"

	"github.com/sotto-dp/sotto/audit"
	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
)

// toss plays games with fair bits.
func toss(games int, src *noise.Fast, draw func(in bool, src *noise.Fast) float64) audit.Scores {
	var s audit.Scores
	for range games {
		if in := src.Uint64()>>63 == 1; in {
			s.In = append(s.In, draw(in, src))
		} else {
			s.Out = append(s.Out, draw(in, src))
		}
	}
	return s
}

// Audits of mechanisms whose loss is known, at γ = 0.1: more bounds above the truth than the line
// have a probability below 1e-6 for a rate of γ. Sides of fixed sizes are thinned to coins. Two
// broken twins must cross that line: one that chooses its rule on the games that it tests, and one
// that forgets what δ explains.
func TestOddsAreValid(t *testing.T) {
	testkit.OneGoroutine(t)
	const games, gamma = 200, 0.1
	audits := testkit.Size(120, 1000)
	line := 0 // P(Binomial(audits, γ) > line) ≤ 1e-6
	for mathext.RegIncBeta(float64(line+1), float64(audits-line), gamma) > 1e-6 {
		line++
	}
	for i, m := range []struct {
		name       string
		eps, delta float64
		fixed      bool
		draw       func(in bool, src *noise.Fast) float64
	}{
		{"Laplace", 1, 0, false, laplace(1)},
		{"randomised response", 0.5, 0, false, response(0.5)},
		{"randomised response, half and half", 0.5, 0, true, response(0.5)},
		{"Gaussian", privacy.GaussianEpsilon(1, 0.01), 0.01, false,
			func(in bool, src *noise.Fast) float64 { return src.Normal() + bit(in) }},
		// The worst: with probability δ it tells all, else it is randomised response.
		{"leak", 0.3, 0.1, false, func(in bool, src *noise.Fast) float64 {
			if src.Bernoulli(0.1) {
				return 6*bit(in) - 2
			}
			return response(0.3)(in, src)
		}},
	} {
		src := noise.NewFast(31, uint64(i))
		wrong, luckiest, forgetful := 0, 0, 0
		for k := range audits {
			s := toss(games, &src, m.draw)
			if m.fixed {
				s = audit.Scores{}
				for range games / 2 {
					s.In = append(s.In, m.draw(true, &src))
					s.Out = append(s.Out, m.draw(false, &src))
				}
				var err error
				if s, err = s.Coins(noise.Key{Seed: 5, Run: k}); err != nil {
					t.Fatal(err)
				}
			}
			e, _, _, err := s.Odds(gamma, m.delta)
			if err != nil && !errors.Is(err, audit.ErrConstantScore) {
				t.Fatal(err)
			}
			above := func(count *int, e float64) {
				if e > m.eps+1e-12 {
					*count++
				}
			}
			above(&wrong, e)
			bound := func(r audit.Rule, delta float64) float64 {
				a, err := s.Answer(r)
				if err != nil {
					t.Fatal(err)
				}
				e, err := a.Epsilon(gamma, delta)
				if err != nil {
					t.Fatal(err)
				}
				return e
			}
			most := 0.0
			for x := -1.0; x <= 2 && m.name == "Laplace"; x += 0.1 { // what is asked of it alone
				most = max(most, bound(audit.Rule{In: max(x, 1-x), Out: min(x, 1-x)}, m.delta),
					bound(audit.Rule{In: x, Out: math.Inf(-1)}, m.delta),
					bound(audit.Rule{In: math.Inf(1), Out: x}, m.delta))
			}
			above(&luckiest, most)
			above(&forgetful, bound(audit.Rule{In: 0.5, Out: 0.5}, 0))
		}
		t.Logf("%s: %d of %d; of the twins %d and %d", m.name, wrong, audits, luckiest, forgetful)
		if wrong > line {
			t.Errorf("%s: %d of %d bounds exceed the truth", m.name, wrong, audits)
		}
		if m.name == "Laplace" && luckiest <= line {
			t.Errorf("a rule that is chosen on the games tested is not found out: %d wrong", luckiest)
		}
		if m.name == "leak" && forgetful <= line {
			t.Errorf("a bound that forgets δ is not found out: %d wrong", forgetful)
		}
	}
}

func laplace(eps float64) func(bool, *noise.Fast) float64 {
	return func(in bool, src *noise.Fast) float64 { return src.Laplace(1/eps) + bit(in) }
}

func response(eps float64) func(bool, *noise.Fast) float64 {
	return func(in bool, src *noise.Fast) float64 {
		return bit(in != src.Bernoulli(1/(1+math.Exp(eps))))
	}
}

// gaussian is (ε,10⁻⁵)-DP, and no smaller ε.
func gaussian(eps float64) func(bool, *noise.Fast) float64 {
	lo, hi := 1e-3, 1e3
	for range 60 {
		if mid := math.Sqrt(lo * hi); privacy.GaussianEpsilon(1/mid, oddsDelta) > eps {
			lo = mid
		} else {
			hi = mid
		}
	}
	return func(in bool, src *noise.Fast) float64 { return hi*src.Normal() + bit(in) }
}

const oddsDelta = 1e-5

// oddsCell is the audits of one cell of the table that it prints.
func oddsCell(kind string, eps float64, games, audits int, each func(s audit.Scores, delta float64)) {
	draw, delta := laplace(eps), 0.0
	switch kind {
	case "response":
		draw = response(eps)
	case "gaussian":
		draw, delta = gaussian(eps), oddsDelta
	}
	for k := range audits {
		src := noise.NewFast(uint64(32+k), uint64(games)+uint64(100*eps))
		each(toss(games, &src, draw), delta)
	}
}

// On the same games, search games counted, Odds is above the bounds by ranks and by a split: means of
// audits at γ = 0.05, as shares of ε over all ε. Seeds are fixed.
func TestOddsAreTightest(t *testing.T) {
	testkit.OneGoroutine(t)
	sizes, epsilons := []int{1000}, []float64{0.5, 3}
	if testkit.Full() {
		sizes, epsilons = []int{1000, 10_000, 100_000}, []float64{0.1, 0.2, 0.5, 1, 2, 3, 5, 10}
	}
	for _, kind := range []string{"laplace", "gaussian", "response"} {
		for _, games := range sizes {
			var found [3]float64
			for _, eps := range epsilons {
				audits := max(2, 20_000/games)
				var odds, ranks, split float64
				n := float64(audits)
				oddsCell(kind, eps, games, audits, func(s audit.Scores, delta float64) {
					e, _, _, err := s.Odds(0.05, delta)
					if err != nil {
						t.Fatal(err)
					}
					odds += e / n
					for _, by := range []struct {
						sum  *float64
						make func() (audit.Region, error)
					}{{&ranks, func() (audit.Region, error) { return s.RegionByRank(0.05) }},
						{&split, func() (audit.Region, error) { return s.Split(0.05, delta) }}} {
						r, err := by.make()
						if err != nil {
							t.Fatal(err)
						}
						b, err := r.Epsilon(delta)
						if err != nil {
							t.Fatal(err)
						}
						*by.sum += b.Epsilon / n
					}
				})
				t.Logf("%s, %d games, ε = %v: odds %.4f, ranks %.4f, split %.4f", kind, games, eps,
					odds, ranks, split)
				for k, x := range []float64{odds, ranks, split} {
					found[k] += x / eps
				}
			}
			if found[0] <= found[1] || found[0] <= found[2] {
				t.Errorf("%s, %d games: odds, ranks and split find %.4f of ε, summed", kind, games,
					found)
			}
		}
	}
}

// Coins leaves as many games of each side as coins show: of 5000 and 5000 nearly all, and the shares
// of the sides vary as those of coins do.
func TestCoins(t *testing.T) {
	testkit.OneGoroutine(t)
	var s audit.Scores
	for i := range 5000 {
		s.In, s.Out = append(s.In, float64(i)), append(s.Out, float64(-i-1))
	}
	squares, n := 0.0, 0
	const runs = 400
	for k := range runs {
		c, err := s.Coins(noise.Key{Seed: 6, Run: k})
		if err != nil {
			t.Fatal(err)
		}
		if k == 0 {
			n = len(c.In) + len(c.Out)
		}
		if len(c.In)+len(c.Out) != n || n < 9400 {
			t.Fatalf("%d and %d games are left", len(c.In), len(c.Out))
		}
		z := (2*float64(len(c.In)) - float64(n)) / math.Sqrt(float64(n))
		squares += z * z
		seen := map[float64]bool{}
		for _, v := range c.In {
			seen[v] = true
		}
		if len(seen) != len(c.In) {
			t.Fatal("a game is there twice")
		}
	}
	// χ² of 400 degrees of freedom: outside [270, 560] with probability below 1e-6.
	if squares < 270 || squares > 560 {
		t.Errorf("χ² of the sides is %v in %d runs", squares, runs)
	}
	if c, err := (audit.Scores{In: []float64{1}, Out: []float64{0}}).Coins(noise.Key{}); err != nil ||
		len(c.In)+len(c.Out) != 1 {
		t.Errorf("one game a side: %v, %v", c, err)
	}
}

// Worked numbers: 90 right of 100 has the log-odds of the lower Clopper–Pearson bound 0.8363006 at
// 5 %; no error in 5000 is log(0.05^{1/−5000}…); δ takes away what it may explain.
func TestAnswersEpsilon(t *testing.T) {
	e, err := audit.Answers{Games: 1000, Right: 90, Wrong: 10}.Epsilon(0.05, 0)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "ε", e, 1.630823, 6e-7) // as of one run with so many guesses
	e, err = audit.Answers{Games: 5000, Right: 5000}.Epsilon(0.05, 0)
	if err != nil {
		t.Fatal(err)
	}
	p := math.Pow(0.05, 1./5000)
	near(t, "ε without an error", e, math.Log(p/(1-p)), 1e-9)
	e, err = audit.Answers{Games: 1000, Right: 90, Wrong: 10}.Epsilon(0.05, 0.1)
	if err != nil || e != 0 {
		t.Errorf("what δ = 0.1 explains shows ε = %v, %v", e, err)
	}
	for _, a := range []audit.Answers{{}, {Games: 3, Right: 2, Wrong: 2}, {Games: 3, Right: -1}} {
		if _, err := a.Epsilon(0.05, 0); err == nil {
			t.Errorf("%+v was taken", a)
		}
	}
	if _, err := (audit.Scores{In: []float64{1}, Out: []float64{0}}).Answer(audit.Rule{In: 0,
		Out: 1}); err == nil {
		t.Error("a rule that says both was taken")
	}
}
