package privacy_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sotto-dp/sotto/privacy"
)

// A cap whose guarantee is to be read in (ε,δ) is one in μ. Whatever is chosen in the light of what
// was released, it holds.
func ExampleGDPWithin() {
	limit, err := privacy.GDPWithin(privacy.Approx{Epsilon: 1, Delta: 1e-6})
	fmt.Printf("mu %.4f %v\n", limit.Mu, err)
	l := privacy.NewLedger(privacy.WithCap(limit))
	for i, m := range []privacy.Mechanism{privacy.Gaussian{Sigma: 1 / 0.071},
		privacy.Laplace{Scale: 1 / 0.712}, privacy.Gaussian{Sigma: 1 / 0.225}} {
		_, err := l.Release(0, m, &privacy.Values{N: []int{100}, Sum: []float64{51.3}})
		fmt.Println(i, errors.Is(err, privacy.ErrBudget))
	}
	fmt.Printf("(%.4f, 1e-6)\n", l.Guarantee().Approx(1e-6))
	// Output:
	// mu 0.2367 <nil>
	// 0 false
	// 1 true
	// 2 false
	// (1.0000, 1e-6)
}

// laplaceDelta is the hockey stick divergence of order e^e, e of either sign, of Lap(1/x)
// and its shift by 1.
func laplaceDelta(e, x float64) float64 {
	switch {
	case e >= x:
		return 0
	case e <= -x:
		return -math.Expm1(e)
	}
	return -math.Expm1((e - x) / 2)
}

// normalDelta is that of N(0,1) and N(μ,1), for e of either sign: H_e(P‖Q) = 1 − e^e +
// e^e H_{−e}(Q‖P).
func normalDelta(e, mu float64) float64 {
	if e >= 0 {
		return privacy.GaussianDelta(e, mu)
	}
	return -math.Expm1(e) + math.Exp(e)*privacy.GaussianDelta(-e, mu)
}

// chosen is the δ at ε of a release with Gaussian noise of μ after which the worse of the given
// ones is taken: the second one's divergence, at what the first has left of ε, integrated over what
// the first releases.
func chosen(epsilon, mu float64, second ...func(e float64) float64) float64 {
	const n, far = 40_000, 12.0
	sum := 0.0
	for i := range n {
		z := -far + (float64(i)+0.5)*2*far/n // what the first releases is z+μ/σ…, in world P
		loss := mu*z + mu*mu/2
		worst := 0.0
		for _, d := range second {
			worst = max(worst, d(epsilon-loss))
		}
		sum += math.Exp(-z*z/2) * worst
	}
	return sum * 2 * far / n / math.Sqrt(2*math.Pi)
}

// What conversion is best may depend on what was released: a cap in (ε,δ) that converts what was
// charged, and admits whatever stays within, does not hold. This is such a rule, and what it loses;
// and the caps that there are.
func TestACapInApproxIsNoFilterOfConversions(t *testing.T) {
	const first, laplace = 0.071, 0.712
	limit := privacy.Approx{Epsilon: 1, Delta: 1e-6}
	gdp, err := privacy.GDPWithin(limit)
	if err != nil {
		t.Fatal(err)
	}
	gaussian := math.Sqrt(gdp.Mu*gdp.Mu - first*first) // 0.226
	one, two, other := privacy.Gaussian{Sigma: 1 / first}, privacy.Gaussian{Sigma: 1 / gaussian},
		privacy.Laplace{Scale: 1 / laplace}
	for _, m := range []privacy.Mechanism{two, other} {
		if got := one.Loss().Add(m.Loss()); !got.Within(limit) {
			t.Errorf("fixed in advance, %v and then %v are (%v, 1e-6)", one, m, got.Approx(limit.Delta))
		}
	}
	byNormal := func(e float64) float64 { return normalDelta(e, gaussian) }
	byLaplace := func(e float64) float64 { return laplaceDelta(e, laplace) }
	near(t, "integral against the closed form", chosen(1, first, byNormal),
		privacy.GaussianDelta(1, math.Hypot(first, gaussian)), 1e-7)
	broken := chosen(1, first, byNormal, byLaplace)
	near(t, "δ of whoever chooses by what was released", broken, 1.227e-6, 5e-4)

	rho, err := privacy.ZCDPWithin(limit)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range []privacy.Budget{limit, gdp, rho, privacy.Pure{Epsilon: 1},
		privacy.Renyi{Alpha: 24, Epsilon: 1 - (math.Log(1e6)-math.Log(24))/23 - math.Log1p(-1.0/24)}} {
		var admitted []func(float64) float64
		for i, m := range []privacy.Mechanism{two, other} { // in each of the two courses of events
			l := privacy.NewLedger(privacy.WithCap(b))
			if _, err := l.Release(0, one, oneSum()); errors.Is(err, privacy.ErrBudget) {
				continue
			}
			if _, err := l.Release(0, m, oneSum()); err == nil {
				admitted = append(admitted, []func(float64) float64{byNormal, byLaplace}[i])
			}
			if got := l.Guarantee().Approx(limit.Delta); b != limit && got > 1+1e-9 {
				t.Errorf("cap %v: the guarantee is (%v, 1e-6)", b, got)
			}
		}
		if got := chosen(1, first, admitted...); got > limit.Delta {
			t.Errorf("cap %v admits %d of the two: δ is %v", b, len(admitted), got)
		}
	}
	_, err = privacy.NewLedger(privacy.WithCap(limit)).Release(0, one, oneSum())
	if !errors.Is(err, privacy.ErrBudget) || !strings.Contains(err.Error(), "GDPWithin") {
		t.Errorf("a cap in (ε,δ) says of Gaussian noise: %v", err)
	}
}

func oneSum() *privacy.Values { return &privacy.Values{N: []int{1}, Sum: []float64{0}} }

// The filter in (ε,δ) adds both up: what is pure, and what is (ε,δ) only.
func TestTheFilterInApproxAddsUp(t *testing.T) {
	clones := privacy.Clones{Inner: aggregated(t,
		privacy.Calibration{Trust: "local", Noise: "laplace", Epsilon: 1, S: 1, Users: 10_000,
			Invited: 10_000, P: 0.01}), Delta: 1e-6}
	e := clones.Loss().Approx(1e-6)
	l := privacy.NewLedger(privacy.WithCap(privacy.Approx{Epsilon: 2*e + 0.5, Delta: 2e-6}))
	release(t, l, 0, clones)
	release(t, l, 0, privacy.Laplace{Scale: 2})
	if _, err := l.Release(0, privacy.Laplace{Scale: 2}, one()); e < 0.5 && !errors.Is(err, privacy.ErrBudget) {
		t.Errorf("ε is overdrawn: %v", err)
	}
	release(t, l, 0, clones)
	if _, err := l.Release(0, privacy.Clones{Inner: clones.Inner, Delta: 1e-12},
		one()); !errors.Is(err, privacy.ErrBudget) {
		t.Errorf("δ is overdrawn: %v", err)
	}
	release(t, l, 1, clones)
	for _, b := range []privacy.Budget{privacy.Pure{Epsilon: 9}, privacy.ZCDP{Rho: 9},
		privacy.GDP{Mu: 9}, privacy.Renyi{Alpha: 2, Epsilon: 9}} {
		if _, err := privacy.NewLedger(privacy.WithCap(b)).Release(0, clones,
			one()); !errors.Is(err, privacy.ErrBudget) || !strings.Contains(err.Error(), "it has no price in") {
			t.Errorf("cap %v: %v", b, err)
		}
	}
}

func TestWithinApprox(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := privacy.Approx{Epsilon: math.Exp(rapid.Float64Range(-5, 3).Draw(t, "log epsilon")),
			Delta: math.Exp(rapid.Float64Range(-40, -1).Draw(t, "log delta"))}
		mu, err := privacy.GDPWithin(b)
		if err != nil {
			t.Fatal(err)
		}
		rho, err := privacy.ZCDPWithin(b)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range []privacy.Budget{mu, rho} {
			if got := privacy.LossOf(x).Approx(b.Delta); !(got <= b.Epsilon) {
				t.Fatalf("%v is (%v, %v), beyond %v", x, got, b.Delta, b)
			}
		}
		if privacy.ZCDPToApproxTight(rho.Rho*(1+1e-9), b.Delta) < b.Epsilon*(1-1e-9) ||
			privacy.GaussianEpsilon(mu.Mu*(1+1e-9), b.Delta) < b.Epsilon*(1-1e-9) {
			t.Fatalf("%v and %v are not the largest within %v", mu, rho, b)
		}
	})
	for _, b := range []privacy.Approx{{}, {Epsilon: 1}, {Epsilon: math.NaN(), Delta: 0.1},
		{Epsilon: 1, Delta: 1}, {Epsilon: 1e-300, Delta: 1e-300}} {
		if _, err := privacy.GDPWithin(b); err == nil {
			t.Errorf("%v is accepted", b)
		}
		if _, err := privacy.ZCDPWithin(b); err == nil {
			t.Errorf("%v is accepted", b)
		}
	}
}

// A restart is a ledger made with the same options and the journal of the one before. The twin
// forgets the cap, and spends it twice.
func TestARestartKeepsTheCap(t *testing.T) {
	limit := privacy.WithCap(privacy.Pure{Epsilon: 1})
	spend := func(l *privacy.Ledger) (n int) {
		for range 10 {
			if _, err := l.Release(0, privacy.Laplace{Scale: 2}, oneSum()); err == nil {
				n++
			}
		}
		return n
	}
	before := privacy.NewLedger(limit)
	if n := spend(before); n != 2 {
		t.Fatalf("%d releases of 0.5 within 1", n)
	}
	journal, err := json.Marshal(before)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	after := privacy.NewLedger(limit, privacy.WithTranscript(&text), privacy.Covering("an answer"))
	if err := json.Unmarshal(journal, after); err != nil {
		t.Fatal(err)
	}
	if n := spend(after); n != 0 || after.Total().Pure() != 1 {
		t.Errorf("%d releases after the restart, total %v", n, after.Total())
	}
	release(t, after, 1, privacy.Laplace{Scale: 2})
	if after.Covers() != "an answer" || strings.Count(text.String(), "\n") != 1 {
		t.Errorf("the journal took the options: covers %q, transcript %q", after.Covers(), text.String())
	}
	if after.Cap() != (privacy.Pure{Epsilon: 1}) {
		t.Errorf("the cap is %v", after.Cap())
	}

	// A transcript that goes on after a journal is written: a repeated running sum too.
	trees := privacy.NewLedger(privacy.WithTranscript(io.Discard))
	release(t, trees, 0, privacy.Tree{Scale: 4, Horizon: 4})
	if journal, err = json.Marshal(trees); err != nil {
		t.Fatal(err)
	}
	text.Reset()
	again := privacy.NewLedger(privacy.WithTranscript(&text))
	if err := json.Unmarshal(journal, again); err != nil {
		t.Fatal(err)
	}
	release(t, again, 1, privacy.Tree{Scale: 4, Horizon: 4})
	release(t, again, 1, privacy.Tree{Scale: 4, Horizon: 4})
	if strings.Count(text.String(), "\n") != 2 {
		t.Errorf("a running sum after a journal left the transcript %q", text.String())
	}
}

func TestJournalsThatUndoACap(t *testing.T) {
	const entries = `"entries":[{"slot":0,"mechanism":{"mechanism":"laplace","scale":2},"releases":1}]`
	for _, c := range []struct {
		cap     privacy.Budget
		journal string
		mention string
	}{
		{privacy.Pure{Epsilon: 1}, `{` + entries + `}`, "has no cap"},
		{privacy.Pure{Epsilon: 1}, `{"cap":"none",` + entries + `}`, "has no cap"},
		{privacy.Pure{Epsilon: 1}, `{"cap":{"rho":1},` + entries + `}`, "same currency"},
		{privacy.Pure{Epsilon: 1}, `{"cap":{"epsilon":0.75},` + entries + `}`, "smaller"},
		{privacy.Renyi{Alpha: 2, Epsilon: 1}, `{"cap":{"alpha":3,"epsilon":1},` + entries + `}`,
			"same currency"},
		{privacy.Pure{Epsilon: 1}, `{"cap":{"epsilon":1},` + entries + `}`, ""},
		{privacy.Pure{Epsilon: 1}, `{"cap":{"epsilon":2},` + entries + `}`, ""},
		{privacy.GDP{Mu: 1}, `{"cap":{"mu":1},` + entries + `}`, ""},
		{privacy.None{}, `{"cap":{"epsilon":2},` + entries + `}`, ""},
		{privacy.None{}, `{` + entries + `}`, ""},
	} {
		l := privacy.NewLedger(privacy.WithCap(c.cap))
		err := json.Unmarshal([]byte(c.journal), l)
		if c.mention == "" {
			if err != nil || len(l.Entries()) != 1 {
				t.Errorf("cap %v, journal %s: %v", c.cap, c.journal, err)
			}
			if want, has := c.cap, c.cap != (privacy.None{}); has && l.Cap() != want || !has &&
				strings.Contains(c.journal, "cap") && l.Cap() == want {
				t.Errorf("cap %v, journal %s: now the cap is %v", c.cap, c.journal, l.Cap())
			}
			continue
		}
		if !errors.Is(err, privacy.ErrJournal) || !strings.Contains(err.Error(), c.mention) ||
			l.Cap() != c.cap || len(l.Entries()) != 0 {
			t.Errorf("cap %v, journal %s: %v, now the cap is %v", c.cap, c.journal, err, l.Cap())
		}
	}
	l := privacy.NewLedger()
	release(t, l, 0, privacy.Laplace{Scale: 1})
	if err := json.Unmarshal([]byte(`{"entries":[]}`), l); !errors.Is(err, privacy.ErrJournal) ||
		l.Total().Pure() != 1 {
		t.Errorf("a journal replaced what was charged: %v, total %v", err, l.Total())
	}
}

// The cap is on what an adversary makes of it: in every currency, whatever course the releases
// take, the sum stays below.
func TestFiltersAgainstAChoosingAdversary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SampledFrom([]privacy.Budget{privacy.Pure{Epsilon: 1}, privacy.ZCDP{Rho: 0.5},
			privacy.GDP{Mu: 1}, privacy.Renyi{Alpha: 5.5, Epsilon: 1}}).Draw(t, "cap")
		l := privacy.NewLedger(privacy.WithCap(b))
		sum := map[int]float64{}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			m, slot := anyMechanism().Draw(t, "mechanism"), rapid.IntRange(0, 2).Draw(t, "slot")
			if m.Continual() {
				continue
			}
			if _, err := l.Release(slot, m, one()); err != nil {
				continue
			}
			var x, most float64
			switch b := b.(type) {
			case privacy.Pure:
				x, most = m.Loss().Pure(), b.Epsilon
			case privacy.ZCDP:
				x, most = m.Loss().ZCDP(), b.Rho
			case privacy.GDP:
				x, most = m.Loss().GDP()*m.Loss().GDP(), b.Mu*b.Mu
			case privacy.Renyi:
				x, most = m.Loss().Renyi(b.Alpha), b.Epsilon
			}
			if sum[slot] += x; sum[slot] > most*(1+2e-9) {
				t.Fatalf("cap %v: slot %d has spent %v", b, slot, sum[slot])
			}
		}
	})
}

// A cap that is no budget by value refuses everything, and is not taken for none.
func TestCapsThatAreNoBudgets(t *testing.T) {
	type embeds struct{ privacy.Pure }
	for _, cap := range []privacy.Budget{nil, &privacy.Pure{Epsilon: 1}, (*privacy.Pure)(nil),
		&privacy.GDP{Mu: 1}, embeds{privacy.Pure{Epsilon: 1}}, &privacy.None{}} {
		l := privacy.NewLedger(privacy.WithCap(cap))
		if _, err := l.Release(0, privacy.Laplace{Scale: 100}, one()); !errors.Is(err,
			privacy.ErrBudget) || !strings.Contains(err.Error(), "by value") {
			t.Errorf("cap of type %T: %v", cap, err)
		}
		if !l.Guarantee().Infinite() || l.Total() != (privacy.Loss{}) {
			t.Errorf("cap of type %T: guarantee %v, total %v", cap, l.Guarantee(), l.Total())
		}
		if !privacy.NewLedger().WouldExceed(0, privacy.Laplace{Scale: 100}, cap) {
			t.Errorf("a limit of type %T is not exceeded", cap)
		}
	}
}

// What has happened is recorded, whatever the cap, and then nothing more is admitted; also after
// the journal was read back.
func TestNoteBeyondTheCap(t *testing.T) {
	for _, m := range []privacy.Mechanism{nil, privacy.Laplace{Scale: 0.5}} {
		l := privacy.NewLedger(privacy.WithCap(privacy.Pure{Epsilon: 1}))
		if err := l.Record(0, m); !errors.Is(err, privacy.ErrBudget) || l.Total() != (privacy.Loss{}) {
			t.Errorf("%v is to come: %v, total %v", m, err, l.Total())
		}
		if err := l.Note(0, m); !errors.Is(err, privacy.ErrBudget) || !(l.Total().Pure() >= 2) {
			t.Errorf("%v has happened: %v, total %v", m, err, l.Total())
		}
		journal, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		back := privacy.NewLedger(privacy.WithCap(privacy.Pure{Epsilon: 1}))
		if err := json.Unmarshal(journal, back); err != nil {
			t.Fatal(err)
		}
		for what, l := range map[string]*privacy.Ledger{"noted": l, "read": back} {
			if _, err := l.Release(7, privacy.Laplace{Scale: 100}, one()); !errors.Is(err,
				privacy.ErrBudget) || !l.Guarantee().Infinite() {
				t.Errorf("%s %v: another slot: %v, guarantee %v", what, m, err, l.Guarantee())
			}
		}
	}
	l := privacy.NewLedger(privacy.WithCap(privacy.Pure{Epsilon: 1}))
	if err := l.Note(0, privacy.Laplace{Scale: 2}); err != nil || l.Guarantee().Pure() != 1 {
		t.Errorf("within the cap: %v, guarantee %v", err, l.Guarantee())
	}
	if err := l.Note(-1, privacy.Laplace{Scale: 2}); err == nil || errors.Is(err, privacy.ErrBudget) {
		t.Errorf("slot -1: %v", err)
	}
}
