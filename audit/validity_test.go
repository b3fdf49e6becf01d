package audit_test

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/sotto-dp/sotto/audit"
	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
)

// Audits of mechanisms whose loss is known, 2000 each, at γ = 0.1. A lower bound above the truth is
// wrong; at most γ of them may be. 266 wrong ones of 2000 have a probability of less than 1e-6 at
// γ, so that is the line. The same audits with the correction left out (each of many thresholds
// with all of γ, and the best taken) must cross it.
func TestLowerBoundsAreValid(t *testing.T) {
	testkit.OneGoroutine(t)
	const audits, games, gamma, line = 2000, 300, 0.1, 266
	mechanisms := []struct {
		name  string
		delta float64
		eps   float64
		mu    float64 // of a Gaussian mechanism
		draw  func(in bool, src *noise.Fast) float64
	}{
		{"Laplace", 0, 1, 0, func(in bool, src *noise.Fast) float64 { return src.Laplace(1) + bit(in) }},
		{"randomised response", 0, 0.5, 0, func(in bool, src *noise.Fast) float64 {
			return bit(in == src.Bernoulli(1/(1+math.Exp(-0.5))))
		}},
		{"discrete Laplace", 0, 1, 0, func(in bool, src *noise.Fast) float64 {
			return float64(src.DiscreteLaplace(1)) + bit(in)
		}},
		{"Gaussian", 0.01, privacy.GaussianEpsilon(1, 0.01), 1, func(in bool, src *noise.Fast) float64 {
			return src.Normal() + bit(in)
		}},
		// It tells all with probability δ, else nothing: 0 is all of its ε.
		{"leak", 0.1, 0, 0, func(in bool, src *noise.Fast) float64 {
			if src.Bernoulli(0.1) {
				return 2*bit(in) - 1
			}
			return 0
		}},
	}
	fixed := []float64{-1, -0.5, 0, 0.25, 0.5, 0.75, 1, 1.5, 2}
	for i, m := range mechanisms {
		src := noise.NewFast(11, uint64(i))
		wrong := map[string]int{}
		var best, single float64
		for range audits {
			var s audit.Scores
			for range games {
				s.In = append(s.In, m.draw(true, &src))
				s.Out = append(s.Out, m.draw(false, &src))
			}
			count := func(name string, r audit.Region, err error) {
				if err != nil {
					t.Fatal(err)
				}
				b, err := r.Epsilon(m.delta)
				if err != nil {
					t.Fatal(err)
				}
				if b.Epsilon > m.eps+1e-12 {
					wrong[name]++
				}
				if m.mu > 0 && r.Mu() > m.mu {
					wrong[name+", μ"]++
				}
			}
			r, err := s.Region(gamma, 0.5)
			count("one threshold", r, err)
			r, err = s.Region(gamma, fixed...)
			count("fixed thresholds", r, err)
			r, err = s.RegionByRank(gamma)
			count("ranks", r, err)
			r, err = s.Split(gamma, m.delta)
			count("split", r, err)
			best = 0
			for _, th := range fixed {
				if i > 0 {
					break
				}
				// The broken twin: every threshold has all of γ, and no half goes to the other error.
				r, err := s.Region(min(0.999, 2*gamma), th)
				if err != nil {
					t.Fatal(err)
				}
				b, _ := r.Epsilon(m.delta)
				best = max(best, b.Epsilon)
			}
			if best > m.eps+1e-12 {
				single++
			}
		}
		for name, n := range wrong {
			t.Logf("%s, %s: %d of %d", m.name, name, n, audits)
			if n > line {
				t.Errorf("%s, %s: %d of %d bounds exceed the truth", m.name, name, n, audits)
			}
		}
		if m.name == "Laplace" && single <= line {
			t.Errorf("the uncorrected audit is not found out: %v wrong", single)
		}
	}
}

func bit(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// The one-run bounds against the worst mechanism there is, randomised response for each canary,
// with leaks of probability δ; and the Gaussian reading against a Gaussian mechanism per canary.
func TestOneRunIsValid(t *testing.T) {
	testkit.OneGoroutine(t)
	const audits, m, gamma, line = 2000, 300, 0.1, 266
	src := noise.NewFast(12, 1)
	for _, c := range []struct{ eps, delta float64 }{{0.5, 0}, {2, 0}, {1, 0.01}} {
		wrong := 0
		q := 1 / (1 + math.Exp(-c.eps))
		for range audits {
			o := audit.OneRun{Canaries: m, Guesses: m}
			for range m {
				if src.Bernoulli(c.delta) || src.Bernoulli(q) {
					o.Correct++
				}
			}
			e, err := o.Epsilon(gamma, c.delta)
			if err != nil {
				t.Fatal(err)
			}
			if e > c.eps {
				wrong++
			}
		}
		t.Logf("ε = %v, δ = %v: %d of %d", c.eps, c.delta, wrong, audits)
		if wrong > line {
			t.Errorf("ε = %v, δ = %v: %d of %d bounds exceed the truth", c.eps, c.delta, wrong, audits)
		}
	}
	truth := privacy.GaussianEpsilon(1, 1e-3)
	wrongEps, wrongMu := 0, 0
	for range audits {
		var s audit.Scores
		for range m {
			if src.Uint64()>>63 == 1 {
				s.In = append(s.In, src.Normal()+1)
			} else {
				s.Out = append(s.Out, src.Normal())
			}
		}
		e, _, err := s.OneRunEpsilon(gamma, 1e-3, 10, 30, 100)
		if err != nil {
			t.Fatal(err)
		}
		o, err := s.OneRun(50)
		if err != nil {
			t.Fatal(err)
		}
		mu, err := o.Mu(gamma)
		if err != nil {
			t.Fatal(err)
		}
		if e > truth {
			wrongEps++
		}
		if mu > 1 {
			wrongMu++
		}
	}
	t.Logf("Gaussian: ε %d, μ %d of %d", wrongEps, wrongMu, audits)
	if wrongEps > line || wrongMu > line {
		t.Errorf("Gaussian: %d ε and %d μ of %d exceed the truth", wrongEps, wrongMu, audits)
	}
}

// Laplace noise on a count is audited to at least 0.9 ε at ε = 1 with 10⁶ games at 95 %, by ranks
// and by splitting; so is a Gaussian's μ.
func TestTightness(t *testing.T) {
	src := noise.NewFast(13, 1)
	var lap, gau audit.Scores
	for range 500_000 {
		lap.In = append(lap.In, 1+src.Laplace(1))
		lap.Out = append(lap.Out, src.Laplace(1))
		gau.In = append(gau.In, 1+src.Normal())
		gau.Out = append(gau.Out, src.Normal())
	}
	ranks, err := lap.RegionByRank(0.05)
	if err != nil {
		t.Fatal(err)
	}
	split, err := lap.Split(0.05, 0)
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]audit.Region{"ranks": ranks, "split": split} {
		b, err := r.Epsilon(0)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("Laplace, %s: %.4f, threshold %.3f", name, b.Epsilon, b.Test.Threshold)
		if b.Epsilon < 0.9 || b.Epsilon > 1 {
			t.Errorf("%s: %v", name, b.Epsilon)
		}
	}
	r, err := gau.RegionByRank(0.05)
	if err != nil {
		t.Fatal(err)
	}
	e, err := r.GaussianEpsilon(1e-5)
	if err != nil {
		t.Fatal(err)
	}
	curve, err := r.Curve([]float64{0, 1e-5, 0.01, 0.1})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("Gaussian μ = 1: μ %.4f, ε(1e-5) %.4f of %.4f; without the family %.3f", r.Mu(), e,
		privacy.GaussianEpsilon(1, 1e-5), curve)
	if r.Mu() < 0.97 || r.Mu() > 1 {
		t.Errorf("μ = %v", r.Mu())
	}
	for i, b := range curve {
		if b.Delta > 0 && b.Epsilon > privacy.GaussianEpsilon(1, b.Delta) || i > 0 &&
			b.Epsilon > curve[i-1].Epsilon {
			t.Errorf("curve %v", curve)
		}
	}
}

// Hand-computed counts: 10 scores a side.
func TestMetricsByHand(t *testing.T) {
	s := audit.Scores{In: []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10},
		Out: []float64{-4, -3, -2, -1, 0, 1, 2, 3, 4, 5}}
	m, err := s.At(2.5, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "α", m.TypeI.Value, 0.3, 1e-15)
	near(t, "β", m.TypeII.Value, 0.2, 1e-15)
	near(t, "advantage", m.Advantage.Value, 0.5, 1e-15)
	near(t, "accuracy", m.Accuracy.Value, 0.75, 1e-15)
	near(t, "power", m.Power.Value, 0.8, 1e-15)
	// Clopper and Pearson for 3 and 2 in 10 at 95 %: standard tables.
	near(t, "α low", m.TypeI.Lo, 0.0667, 5e-5)
	near(t, "α high", m.TypeI.Hi, 0.6525, 5e-5)
	near(t, "β high", m.TypeII.Hi, 0.5561, 5e-5)
	// Out beats or ties: in = v wins against v+4 scores and ties one, for v ≤ 5; all after.
	auc, err := s.AUC(0.95)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "AUC", auc.Value, (5.5+6.5+7.5+8.5+9.5+50)/100, 1e-15)
	if !(auc.Lo < auc.Value && auc.Value < auc.Hi && auc.Hi < 1) {
		t.Error(auc)
	}
	perfect, err := audit.Scores{In: []float64{2, 3, 4}, Out: []float64{0, 1}}.AUC(0.95)
	if err != nil || perfect.Value != 1 || perfect.Lo > 0.9 {
		t.Error(perfect, err)
	}
	p, err := s.PowerAt(0.2, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "power at 0.2", p.Power.Value, 0.7, 1e-15)
	roc, err := s.ROC()
	if err != nil {
		t.Fatal(err)
	}
	if last := roc[len(roc)-1]; roc[0].TypeI != 0 || roc[0].Power != 0 || last.TypeI != 1 ||
		last.Power != 1 || len(roc) != 16 {
		t.Error(roc)
	}
}

// Limits of (2.28)–(2.30): order, agreement at corners, and attained values.
func TestLimits(t *testing.T) {
	for _, eps := range []float64{0, 0.1, 1, 5} {
		for _, delta := range []float64{0, 1e-3, 0.2} {
			a, err := audit.AdvantageLimit(eps, delta)
			if err != nil {
				t.Fatal(err)
			}
			e, _ := audit.AdvantageLimitErlingsson(eps, delta)
			if a > e+1e-15 {
				t.Errorf("ε=%v δ=%v: %v above the looser %v", eps, delta, a, e)
			}
			// The advantage limit is the best of 1 − α − f(α).
			best := 0.0
			for i := range 100_001 {
				alpha := float64(i) / 100_000
				f, err := audit.TradeOff(eps, delta, alpha)
				if err != nil {
					t.Fatal(err)
				}
				best = max(best, 1-alpha-f)
				if alpha > 0 && f > 0 && f+alpha < 1 {
					near(t, "ε of a corner", audit.EpsilonOf(alpha, f, delta), eps, 1e-9)
				}
			}
			near(t, "advantage limit", best, a, 1e-4)
		}
	}
	if y, _ := audit.AdvantageLimitYeom(1); math.Abs(y-(math.E-1)) > 1e-15 {
		t.Error(y)
	}
	// Gaussian DP at μ = 1: at α = 0.05, Φ(1.64485 − 1).
	near(t, "G_1(0.05)", audit.GaussianTradeOff(1, 0.05), distuv.UnitNormal.CDF(1.6448536269514722-1), 1e-12)
	if p, _ := audit.PowerLimit(math.Inf(1), 0, 0); p != 1 && p != 0 {
		t.Error(p)
	}
}

// The interval of the power at a significance covers the truth, with the threshold chosen on the
// same games: continuous and tied scores, 2000 times at 90 %. More than 266 misses have a
// probability below 1e-6.
func TestPowerIntervalCovers(t *testing.T) {
	src := noise.NewFast(14, 1)
	for _, c := range []struct {
		name  string
		draw  func(in bool) float64
		power float64 // at 10 %
	}{
		{"Gaussian", func(in bool) float64 {
			return src.Normal() + bit(in)
		}, distuv.UnitNormal.CDF(1 - 1.2815515655446004)},
		// Thresholds above 1, 0 and below have significance 0, 0.08 and 1.
		{"coin", func(in bool) float64 {
			if in {
				return bit(src.Bernoulli(0.4))
			}
			return bit(src.Bernoulli(0.08))
		}, 0.4},
	} {
		misses := 0
		for range 2000 {
			var s audit.Scores
			for range 250 {
				s.In = append(s.In, c.draw(true))
				s.Out = append(s.Out, c.draw(false))
			}
			p, err := s.PowerAt(0.1, 0.9)
			if err != nil {
				t.Fatal(err)
			}
			if c.power < p.Power.Lo || c.power > p.Power.Hi {
				misses++
			}
		}
		t.Logf("%s: %d of 2000", c.name, misses)
		if misses > 266 {
			t.Errorf("%s: %d of 2000 intervals miss", c.name, misses)
		}
	}
}

// Where the next test has far too many false alarms, as with ties, its power bounds nothing: a
// coin's tests have significance 0, 0.08 and 1, and at 0.02 no power.
func TestPowerOfTies(t *testing.T) {
	src := noise.NewFast(14, 2)
	var s audit.Scores
	for range 2000 {
		s.In = append(s.In, bit(src.Bernoulli(0.4)))
		s.Out = append(s.Out, bit(src.Bernoulli(0.08)))
	}
	p, err := s.PowerAt(0.02, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	if p.Power.Value != 0 || p.Power.Lo != 0 || p.Power.Hi > 0.01 {
		t.Errorf("power %v at 0.02, want 0 up to about log(80)/2000", p.Power)
	}
}
