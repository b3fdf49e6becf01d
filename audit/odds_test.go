package audit_test

import (
	"errors"
	"math"
	"testing"

	"github.com/sotto-dp/sotto/audit"
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

// 1000 audits of mechanisms whose loss is known, at γ = 0.1: more than 150 bounds above the truth
// have a probability below 1e-6. Two broken twins must cross that line: one that chooses its rule
// on the games that it tests, and one that forgets what δ explains.
func TestOddsAreValid(t *testing.T) {
	const audits, games, gamma, line = 1000, 300, 0.1, 150
	for i, m := range []struct {
		name       string
		eps, delta float64
		draw       func(in bool, src *noise.Fast) float64
	}{
		{"Laplace", 1, 0, func(in bool, src *noise.Fast) float64 { return src.Laplace(1) + bit(in) }},
		{"randomised response", 0.5, 0, func(in bool, src *noise.Fast) float64 {
			return bit(in == src.Bernoulli(1/(1+math.Exp(-0.5))))
		}},
		{"Gaussian", privacy.GaussianEpsilon(1, 0.01), 0.01, func(in bool, src *noise.Fast) float64 {
			return src.Normal() + bit(in)
		}},
		{"leak", 0, 0.1, func(in bool, src *noise.Fast) float64 { // tells all with probability δ
			if src.Bernoulli(0.1) {
				return 2*bit(in) - 1
			}
			return 0
		}},
	} {
		src := noise.NewFast(31, uint64(i))
		wrong, luckiest, forgetful := 0, 0, 0
		for range audits {
			s := toss(games, &src, m.draw)
			e, _, _, err := s.Odds(gamma, m.delta)
			if err != nil && !errors.Is(err, audit.ErrConstantScore) {
				t.Fatal(err)
			}
			if e > m.eps+1e-12 {
				wrong++
			}
			most := 0.0
			for _, th := range []float64{-1, -0.5, 0, 0.5, 1, 1.5, 2} {
				a, err := s.Answer(audit.Rule{In: max(th, 1-th), Out: min(th, 1-th)})
				if err != nil {
					t.Fatal(err)
				}
				b, err := s.Answer(audit.Rule{In: th, Out: math.Inf(-1)})
				if err != nil {
					t.Fatal(err)
				}
				for _, a := range []audit.Answers{a, b} {
					e, err := a.Epsilon(gamma, m.delta)
					if err != nil {
						t.Fatal(err)
					}
					most = max(most, e)
				}
			}
			if most > m.eps+1e-12 {
				luckiest++
			}
			a, err := s.Answer(audit.Rule{In: 0.5, Out: -0.5})
			if err != nil {
				t.Fatal(err)
			}
			if e, _ := a.Epsilon(gamma, 0); e > m.eps {
				forgetful++
			}
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

// On the same games, search games counted, Odds is above the bounds by ranks and by a split at
// every ε: the mean of 20 audits of Laplace noise with 10⁴ games. Seeds are fixed.
func TestOddsAreTightest(t *testing.T) {
	for _, eps := range []float64{0.1, 0.3, 1, 3, 10} {
		src := noise.NewFast(32, uint64(100*eps))
		var odds, ranks, split float64
		const audits = 20
		for range audits {
			s := toss(10_000, &src, func(in bool, src *noise.Fast) float64 {
				return src.Laplace(1/eps) + bit(in)
			})
			e, _, _, err := s.Odds(0.05, 0)
			if err != nil {
				t.Fatal(err)
			}
			odds += e / audits
			for _, by := range []struct {
				sum  *float64
				make func() (audit.Region, error)
			}{{&ranks, func() (audit.Region, error) { return s.RegionByRank(0.05) }},
				{&split, func() (audit.Region, error) { return s.Split(0.05, 0) }}} {
				r, err := by.make()
				if err != nil {
					t.Fatal(err)
				}
				b, err := r.Epsilon(0)
				if err != nil {
					t.Fatal(err)
				}
				*by.sum += b.Epsilon / audits
			}
		}
		t.Logf("ε = %v: odds %.4f, ranks %.4f, split %.4f", eps, odds, ranks, split)
		if odds <= ranks || odds <= split {
			t.Errorf("ε = %v: odds %.4f, ranks %.4f, split %.4f", eps, odds, ranks, split)
		}
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
