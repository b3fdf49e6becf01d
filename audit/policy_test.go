package audit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/privacy"
)

func subject(t testing.TB, name string, horizon int, b privacy.Budget, given catalog.Params) Subject {
	t.Helper()
	e, err := catalog.Find(catalog.BanditArms, name)
	if err != nil {
		t.Fatal(err)
	}
	s, err := PolicySubject(e, 2, horizon, b, given)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mechanism(t testing.TB, m privacy.Mechanism, arms, n, looks int) Subject {
	t.Helper()
	s, err := MechanismSubject(m, arms, n, looks)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A score L is the log-likelihood ratio of the two worlds if and only if E₁ f(L) = E₀ e^L f(L) for
// every f. It is checked for f = 1 in both directions, e^{L} and e^{−L}, and f = 1[L > 0], within six
// standard errors: a false alarm has a probability below 1e-7. For pure mechanisms |L| ≤ ε besides.
func TestScoreIsTheLikelihoodRatio(t *testing.T) {
	testkit.OneGoroutine(t)
	const looks, games = 13, 6000
	root, err := privacy.NewSquareRoot(privacy.ZCDP{Rho: 0.1}, looks)
	if err != nil {
		t.Fatal(err)
	}
	blt, err := privacy.NewBLT(privacy.ZCDP{Rho: 0.1}, looks)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		m      privacy.Mechanism
		within float64 // relative error of the ratio that is allowed
	}{
		{privacy.Laplace{Scale: 1}, 0}, {privacy.Gaussian{Sigma: 2}, 0},
		{privacy.Tree{Scale: 4, Horizon: looks}, 0}, {privacy.Hybrid{Scale: 2}, 0},
		{privacy.NewKAry(1, 3, looks), 0}, {privacy.NewKAry(1, 5, looks), 0}, {root, 0}, {blt, 0},
		// The threshold's noise is integrated on 32 points.
		{privacy.Sparse{Questions: privacy.Questions{Threshold: 3, Query: 6,
			Statistic: privacy.Centre}, Scale: 3}, 0.01},
		{privacy.Sparse{Questions: privacy.Questions{Threshold: 3, Query: 6,
			Statistic: privacy.Range}, Scale: 3}, 0.01},
	} {
		s := mechanism(t, c.m, 2, 1, looks)
		for _, round := range []int{1, 6} {
			a := Adversary{Name: "test", Model: Table, Round: round, Low: []float64{0, 0},
				High: []float64{1, 1}, Before: []float64{1, 0}, After: []float64{0, 1}}
			if m, ok := c.m.(privacy.Sparse); ok && m.Statistic == privacy.Centre { // of one arm
				s = mechanism(t, c.m, 1, 1, looks)
				a.Low, a.High, a.Before, a.After = a.Low[:1], a.High[:1], a.Before[:1], a.After[:1]
			}
			all, loss, err := transcripts(context.Background(), s, a, games, 1,
				noise.Key{Seed: 7, Cell: c.m.Kind()})
			if err != nil {
				t.Fatal(err)
			}
			l := all[scoreRatio]
			epsilon := loss.Pure()
			mean := func(x []float64, f func(float64) float64) (m, se float64) {
				var sum, squares float64
				for _, v := range x {
					y := f(v)
					sum += y
					squares += y * y
				}
				n := float64(len(x))
				return sum / n, math.Sqrt((squares/n - sum/n*sum/n) / n)
			}
			positive := func(v float64) float64 {
				if v > 0 {
					return 1
				}
				return 0
			}
			near := func(what string, x, se, y, sf float64) {
				t.Helper()
				if math.Abs(x-y) > 6*math.Hypot(se, sf)+c.within*y+1e-9 {
					t.Errorf("%v, round %d: %s is %v ± %v, want %v ± %v", c.m, round, what, x, se, y, sf)
				}
			}
			x, se := mean(l.Out, math.Exp)
			near("E₀ e^L", x, se, 1, 0)
			x, se = mean(l.In, func(v float64) float64 { return math.Exp(-v) })
			near("E₁ e^−L", x, se, 1, 0)
			x, se = mean(l.In, positive)
			y, sf := mean(l.Out, func(v float64) float64 { return math.Exp(v) * positive(v) })
			near("P₁(L > 0)", x, se, y, sf)
			for _, v := range append(l.In, l.Out...) {
				if math.Abs(v) > epsilon+1e-9 {
					t.Fatalf("%v, round %d: a log-likelihood ratio is %v, must be at most ε = %v",
						c.m, round, v, epsilon)
				}
			}
			if l.In[0] == 0 && l.In[1] == 0 && l.In[2] == 0 {
				t.Errorf("%v, round %d: the score is 0", c.m, round)
			}
		}
	}
}

// A count through Laplace noise at ε = 1 is audited to at least 0.9 with 10⁶ games (and confidence
// 0.99), and not above 1.
func TestLaplaceCountIsTight(t *testing.T) {
	if testkit.Race {
		t.Skip("10⁶ games, in the same goroutines as those of other tests")
	}
	s := mechanism(t, privacy.Laplace{Scale: 1}, 1, 100, 1)
	f, err := PolicyAudit{Subject: s, Adversaries: Adversaries(1, 100, View)[:1], Gamma: 0.01,
		Games: 1_000_000, Key: noise.Key{Seed: 1}}.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if f.Claimed != 1 || f.Refuted || f.Tightness() < 0.9 {
		t.Errorf("%+v: want ε = 1 audited from 0.9 to 1", f)
	}
}

// Of 300 audits of a mechanism that is as private as it says at most as many refute it as 1 −
// confidence allows: at γ = 0.1 more than 62 have a probability below 1e-6.
func TestPolicyAuditsAreValid(t *testing.T) {
	testkit.OneGoroutine(t)
	s := mechanism(t, privacy.Laplace{Scale: 1}, 1, 2, 1)
	refuted, low := 0, 0.0
	for i := range 300 {
		f, err := PolicyAudit{Subject: s, Adversaries: Adversaries(1, 2, View)[:4], Gamma: 0.1,
			Games: 1000, Pilot: 64, Workers: 1,
			Key: noise.Key{Seed: uint64(i), Cell: "valid"}}.Run(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if f.Refuted {
			refuted++
		}
		low += f.Low / 300
	}
	if refuted > 62 {
		t.Errorf("%d of 300 audits refute a true claim at γ = 0.1", refuted)
	}
	if low < 0.5 {
		t.Errorf("the mean lower bound is %v: too weak for the test to mean anything", low)
	}
}

func TestFindingsDoNotDependOnWorkers(t *testing.T) {
	s := subject(t, "adap-klucb", 64, privacy.Pure{Epsilon: 1}, nil)
	var first Finding
	for i, workers := range []int{1, 2} {
		f, err := PolicyAudit{Subject: s, Adversaries: Adversaries(2, 64, Continual)[:3],
			Sees: Plays, Gamma: 0.05, Games: 3000, Pilot: 128, Workers: workers,
			Key: noise.Key{Seed: 3}}.Run(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = f
		} else if d := cmp.Diff(first, f); d != "" {
			t.Errorf("findings differ with the number of workers: %s", d)
		}
	}
}

// A broken curator's ledger says what the honest one's says: the claim is the same, only
// the noise is not.
func TestTwinsClaimTheSame(t *testing.T) {
	for _, m := range []privacy.Mechanism{privacy.Laplace{Scale: 1},
		privacy.Tree{Scale: 4, Horizon: 8}, privacy.Gaussian{Sigma: 1}} {
		s := mechanism(t, m, 2, 1, 4)
		a := Adversaries(2, 8, View)[0]
		_, want, err := transcripts(context.Background(), s, a, 200, 1, noise.Key{})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range Faults(m) {
			_, got, err := transcripts(context.Background(), s.Broken(f), a, 200, 1, noise.Key{})
			if err != nil {
				t.Fatal(err)
			}
			if got.Pure() != want.Pure() || got.ZCDP() != want.ZCDP() {
				t.Errorf("%v, %v: the ledger says %v, of the honest curator %v", m, f, got, want)
			}
		}
	}
}

// Rewards reach the slots they should: a policy that plays two arms in turn, with the challenge in
// each round and world.
func TestAdversariesFeedWhatTheySay(t *testing.T) {
	s := mechanism(t, privacy.Laplace{Scale: 1e-9}, 2, 3, 2)
	for round := 1; round <= 12; round++ {
		a := Adversary{Name: "test", Model: Table, Round: round, Low: []float64{0, 0},
			High: []float64{1, 1}, Before: []float64{0.25, 0.5}, After: []float64{0.75, 1}}
		w := newWorld(s, &a)
		for _, in := range []bool{false, true} {
			src, out := noise.NewFast(1, 2), make([]float64, scores)
			if err := w.game(in, &src, out); err != nil {
				t.Fatal(err)
			}
			want := 0.0 // without noise the residual is exactly 0 or 1
			if in {
				want = 1
			}
			if math.Abs(out[scoreMean]-want) > 1e-6 && math.Abs(out[scoreMean]*2-want) > 1e-6 {
				t.Errorf("round %d, in %v: mean residual is %v, want %v in one of the releases",
					round, in, out[scoreMean], want)
			}
			if w.h.Round != 12 || w.h.Counts[0] != 6 || w.h.Counts[1] != 6 {
				t.Errorf("round %d: %+v, want 12 rounds and 6 of each arm", round, w.h)
			}
			if got := w.h.Since[0] + w.h.Since[1]; got != 12-round {
				t.Errorf("round %d: %d plays after the challenge, want %d", round, got, 12-round)
			}
		}
	}
}

func TestPolicyAuditRefusesBadInput(t *testing.T) {
	good := PolicyAudit{Subject: mechanism(t, privacy.Laplace{Scale: 1}, 1, 2, 1), Gamma: 0.05, Games: 100}
	for name, spoil := range map[string]func(p *PolicyAudit){
		"gamma":   func(p *PolicyAudit) { p.Gamma = 0 },
		"delta":   func(p *PolicyAudit) { p.Delta = 1 },
		"games":   func(p *PolicyAudit) { p.Games = 0 },
		"pilot":   func(p *PolicyAudit) { p.Pilot = -1 },
		"policy":  func(p *PolicyAudit) { p.Subject.New = nil },
		"arms":    func(p *PolicyAudit) { p.Subject.Arms = 0 },
		"horizon": func(p *PolicyAudit) { p.Subject.Horizon = 0 },
		"none":    func(p *PolicyAudit) { p.Adversaries = []Adversary{} },
		"round": func(p *PolicyAudit) {
			p.Adversaries = Adversaries(1, 2, View)[:1]
			p.Adversaries[0].Round = 3
		},
		"rewards": func(p *PolicyAudit) {
			p.Adversaries = Adversaries(1, 2, View)[:1]
			p.Adversaries[0].Low = nil
		},
		"nan reward": func(p *PolicyAudit) {
			p.Adversaries = Adversaries(1, 2, View)[:1]
			p.Adversaries[0].After = []float64{math.NaN()}
		},
		"feed": func(p *PolicyAudit) {
			p.Adversaries = Adversaries(1, 2, View)[:1]
			p.Adversaries[0].Feed = func(*History, []float64) {}
		},
		"query": func(p *PolicyAudit) {
			p.Adversaries = Adversaries(1, 2, View)[:1]
			p.Adversaries[0].Query = func(*History) int { return 0 }
		},
	} {
		p := good
		spoil(&p)
		if _, err := p.Run(context.Background()); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := good.Run(context.Background()); err != nil {
		t.Error(err)
	}
	failing := errors.New("no policy today")
	bad := good
	bad.Subject.New = func(*noise.Fast) (policy.Policy, error) { return nil, failing }
	if _, err := bad.Run(context.Background()); !errors.Is(err, failing) {
		t.Errorf("a policy that cannot be built: %v", err)
	}
	if _, err := MechanismSubject(privacy.Laplace{Scale: -1}, 1, 1, 1); err == nil {
		t.Error("negative scale: no error")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := good.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func ExamplePolicyAudit() {
	entry, err := catalog.Find(catalog.BanditArms, "adap-klucb")
	if err != nil {
		fmt.Println(err)
		return
	}
	s, err := PolicySubject(entry, 2, 64, privacy.Pure{Epsilon: 1}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range []Subject{s, s.Broken(HalfScale)} {
		f, err := PolicyAudit{Subject: s, Gamma: 0.01, Games: 20000, Pilot: 128,
			Key: noise.Key{Seed: 1}}.Run(context.Background())
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s: claimed ε = %v, %s\n", f.Name, f.Claimed, f.Verdict())
	}
	// Output:
	// adap-klucb: claimed ε = 1, not refuted
	// adap-klucb, half the scale: claimed ε = 1, refuted
}

// BenchmarkTranscripts is of AdaP-KLUCB at T = 1000, in one goroutine: a transcript must take
// less than 10 µs.
func BenchmarkTranscripts(b *testing.B) {
	s := subject(b, "adap-klucb", 1000, privacy.Pure{Epsilon: 1}, nil)
	a := Adversaries(2, 1000, View)[0]
	w := newWorld(s, &a)
	src := noise.NewFast(1, 2)
	out := make([]float64, scores)
	b.ReportAllocs()
	for b.Loop() {
		if err := w.game(true, &src, out); err != nil {
			b.Fatal(err)
		}
	}
}
