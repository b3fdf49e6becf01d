package audit

import (
	"context"
	"math"
	"testing"

	"gonum.org/v1/gonum/mathext"

	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
)

// The worst that (ε,δ)-DP allows: with probability δ the bit is told, else a bit that is right with
// probability e^ε/(1+e^ε). Of each outcome, its probability with the target and without it.
func worst(epsilon, delta float64) [][2]float64 {
	p := sigmoid(epsilon)
	return [][2]float64{{delta, 0}, {(1 - delta) * p, (1 - delta) * (1 - p)},
		{(1 - delta) * (1 - p), (1 - delta) * p}, {0, delta}}
}

// A bookmaker is how wealth comes from games; the broken ones are twins of the test.
type bookmaker struct {
	name   string
	broken bool
	claim  func(epsilon, delta float64) *wealth
	add    func(w *wealth, p float64, in bool)
}

var bookmakers = []bookmaker{
	{name: "sound", claim: func(e, d float64) *wealth { return newWealth(e, d, 0.05) }, add: (*wealth).add},
	{name: "forgets δ", broken: true, claim: func(e, _ float64) *wealth { return newWealth(e, 0, 0.05) },
		add: (*wealth).add},
	{name: "sees the bit first", broken: true, claim: func(e, d float64) *wealth { return newWealth(e, d, 0.05) },
		add: func(w *wealth, p float64, in bool) {
			if in == (p < 0.5) {
				p = 0.5 // no bet that is lost
			}
			w.add(p, in)
		}},
	{name: "counts a game twice", broken: true, claim: func(e, d float64) *wealth { return newWealth(e, d, 0.05) },
		add: func(w *wealth, p float64, in bool) {
			w.add(p, in)
			w.add(p, in)
		}},
}

// The mean wealth of each stake after three games is at most 1, exactly: over all outcomes of the
// worst pair, and of one that is private with room, whatever is forecast. Forecasts here depend on all
// that was before, and are wild. A broken test has more than 1 of the worst pair.
func TestBetsOfATrueClaimAreFair(t *testing.T) {
	testkit.OneGoroutine(t)
	for _, c := range []struct{ epsilon, delta float64 }{{0, 0}, {1, 0}, {3, 0}, {0, 0.1}, {1, 0.05}, {0.3, 0.4},
		{2, 0.2}} {
		for _, b := range bookmakers {
			most, least := 0.0, math.Inf(1)
			for _, pair := range [][][2]float64{worst(c.epsilon, c.delta), worst(c.epsilon/2, c.delta/2)} {
				for seed := range uint64(20) {
					for _, mean := range means(b, c.epsilon, c.delta, pair, seed) {
						most, least = max(most, mean), min(least, mean)
					}
				}
			}
			if fair := most <= 1+1e-12; fair == b.broken && !(b.name == "forgets δ" && c.delta == 0) {
				t.Errorf("%s, (%v, %v): the mean wealth is up to %v", b.name, c.epsilon, c.delta, most)
			}
			if b.name == "sound" && (most < 1-1e-12 || least > 0.99 && c.epsilon+c.delta > 0) {
				t.Errorf("(%v, %v): mean wealth from %v to %v: nothing was bet", c.epsilon, c.delta, least, most)
			}
		}
	}
}

// means is the expected wealth of each stake after some games, over all that may happen.
func means(b bookmaker, epsilon, delta float64, pair [][2]float64, seed uint64) []float64 {
	const games = 3
	var out []float64
	var play func(said []float64, came []bool, path uint64, weight float64)
	play = func(said []float64, came []bool, path uint64, weight float64) {
		if len(said) == games {
			w := b.claim(epsilon, delta)
			for i, p := range said {
				b.add(w, p, came[i])
			}
			if out == nil {
				out = make([]float64, len(w.purses))
			}
			for i, p := range w.purses {
				out[i] += weight * math.Exp(p.sum)
			}
			return
		}
		for y, mass := range pair {
			next := mix(path, uint64(y)+seed<<8)
			src := noise.NewFast(next, 1)
			p := src.Float64()
			if y == 0 || y == len(pair)-1 { // whoever is told bets all, or nearly so
				p = []float64{1 - unsure, unsure}[y/3]
			} else if seed < 4 { // and whoever is not, the most or the least that is not nothing
				p = []float64{0.999, sigmoid(epsilon) + 1e-3}[seed%2]
				if y == 2 {
					p = 1 - p
				}
			}
			for side, in := range []bool{true, false} {
				if mass[side] > 0 {
					play(append(said[:len(said):len(said)], p), append(came[:len(came):len(came)], in),
						mix(next, uint64(side)), weight*mass[side]/2)
				}
			}
		}
	}
	play(nil, nil, 1, 1)
	return out
}

// line is the largest number of false alarms that n tests at level γ have but with probability 1e-6.
func line(n int, gamma float64) int {
	k := 0
	for mathext.RegIncBeta(float64(k+1), float64(n-k), gamma) > 1e-6 {
		k++
	}
	return k
}

// Ville's inequality: of the worst pair, at any of so many games, the share of 10⁵ bets that ever
// reach 1/γ is at most γ, at a false alarm of 1e-6 for each of the two; of broken tests it is more.
func TestBetsAtAnyTime(t *testing.T) {
	testkit.OneGoroutine(t)
	const processes, games = 100_000, 100
	most := line(processes, 0.05)
	for i, c := range []struct{ epsilon, delta, p float64 }{{1, 0, 0.85}, {1, 0.05, 0.85}} {
		for _, b := range bookmakers {
			n := processes
			if b.broken {
				n /= 10
			}
			src, false_ := noise.NewFast(11, uint64(i)), 0
			pair := worst(c.epsilon, c.delta)
			for range n {
				w := b.claim(c.epsilon, c.delta)
				for k := 0; k < games && !w.refuted; k++ {
					in, u, y := src.Uint64()>>63 == 1, src.Float64(), 0
					side := 1
					if in {
						side = 0
					}
					for y < len(pair)-1 && u >= pair[y][side] {
						u -= pair[y][side]
						y++
					}
					b.add(w, []float64{1 - unsure, c.p, 1 - c.p, unsure}[y], in)
				}
				if w.refuted {
					false_++
				}
			}
			t.Logf("(%v, %v), %s: %d of %d", c.epsilon, c.delta, b.name, false_, n)
			switch {
			case !b.broken && false_ > most:
				t.Errorf("(%v, %v): %d of %d true claims are refuted, at most %d may", c.epsilon, c.delta, false_, n, most)
			case b.broken && false_ <= line(n, 0.05) && !(b.name == "forgets δ" && c.delta == 0):
				t.Errorf("(%v, %v): a test that %s is not found out: %d of %d", c.epsilon, c.delta, b.name, false_, n)
			}
		}
	}
}

// A known is a mechanism whose law is known: what a game shows, and how fast the best bets grow.
type known struct {
	name          string
	claim         privacy.Mechanism
	delta, growth float64
	most          float64 // games, in those that are needed
	draw          func(in bool, src *noise.Fast) float64
}

// bestGrowth is the most that log wealth grows by in a game, over all caps, if the log-likelihood ratio
// is L with these probabilities where the target is in, and −L where it is not.
func bestGrowth(epsilon, delta float64, values, weights []float64) float64 {
	best := 0.0
	for c := 0.02; c < 40; c *= 1.1 {
		w := newWealth(epsilon, delta, 0.5)
		top := sigmoid(epsilon + c)
		sum := -math.Log1p(delta * (top/w.pi - 1))
		for i, l := range values {
			if q := min(sigmoid(math.Abs(l)), top); q > w.pi && l > 0 {
				sum += weights[i] * (math.Log(q) - w.logPi)
			} else if q > w.pi {
				sum += weights[i] * (math.Log1p(-q) - w.logRest)
			}
		}
		best = max(best, sum)
	}
	return best
}

// knowns are mechanisms with half the noise that they claim.
func knowns() []known {
	response, e := sigmoid(2), privacy.Gaussian{Sigma: 1}.Loss().Approx(selfDelta)
	all := []known{
		{name: "randomised response", claim: privacy.Laplace{Scale: 1}, most: 1.5,
			growth: bestGrowth(1, 0, []float64{2, -2}, []float64{response, 1 - response}),
			draw: func(in bool, src *noise.Fast) float64 {
				if src.Bernoulli(response) == in {
					return 1
				}
				return -1
			}},
		{name: "Laplace", claim: privacy.Laplace{Scale: 1}, most: 1.5, draw: func(in bool, src *noise.Fast) float64 {
			return coarse(laplace(bitOf(in)+src.Laplace(0.5), 1, 1))
		}},
		{name: "Gaussian", claim: privacy.Gaussian{Sigma: 1}, delta: selfDelta, most: 1.5,
			draw: func(in bool, src *noise.Fast) float64 { return normal(bitOf(in)+src.Normal()/2, 1, 1) }},
		{name: "Gaussian, raw sums", claim: privacy.Gaussian{Sigma: 1}, delta: selfDelta, most: 1.75,
			draw: func(in bool, src *noise.Fast) float64 { return 1000 * (bitOf(in) + src.Normal()/2) }},
	}
	var values, weights [2][]float64
	const n = 20_000
	for i := range n {
		x := -12 + 24*(float64(i)+0.5)/n // of the noise, in standard units
		values[0] = append(values[0], 2*laplace(1+x/2, 1, 1))
		weights[0] = append(weights[0], math.Exp(-math.Abs(x))/2*24/n)
		values[1] = append(values[1], normal(2+x, 2, 1))
		weights[1] = append(weights[1], math.Exp(-x*x/2)/math.Sqrt(2*math.Pi)*24/n)
	}
	all[1].growth = bestGrowth(1, 0, values[0], weights[0])
	all[2].growth = bestGrowth(e, selfDelta, values[1], weights[1])
	all[3].growth = all[2].growth
	return all
}

func bitOf(in bool) float64 {
	if in {
		return 1
	}
	return 0
}

func (k known) direct() direct {
	return direct{name: k.name, claim: k.claim.Loss(), adversaries: []string{"all"}, attack: "score",
		worlds: func(int) func() func(bool, *noise.Fast, []float64) error {
			return func() func(bool, *noise.Fast, []float64) error {
				return func(in bool, src *noise.Fast, out []float64) error {
					out[0] = k.draw(in, src)
					return nil
				}
			}
		}}
}

// Mechanisms with half the noise are refuted within 1.5 times as many games as the best bets need,
// log(1/γ)/growth, in the mean of 60 audits at γ = 10⁻⁹: measured are 1.10 to 1.19, with a standard
// error of 3 %, so that a false alarm has a probability below 1e-6 by the normal law. Where a score is no
// likelihood ratio, and its scale has to be learnt, they are 1.42: the line is at 1.75 there.
func TestBrokenCopiesAreRefutedAboutAsFastAsCanBe(t *testing.T) {
	testkit.OneGoroutine(t)
	const audits, gamma = 60, 1e-9
	for _, k := range knowns() {
		sum := 0
		for i := range audits {
			f, err := k.direct().race(context.Background(), k.delta, gamma, 0, 100_000, noise.Key{Seed: 3, Run: i})
			if err != nil || !f.Refuted {
				t.Fatal(f, err)
			}
			sum += f.Games
		}
		needs := -math.Log(gamma) / k.growth
		ratio := float64(sum) / audits / needs
		t.Logf("%s: %.0f games in the mean, %.2f of the %.0f that are needed", k.name, float64(sum)/audits, ratio, needs)
		if ratio > k.most {
			t.Errorf("%s: %v times as many games as are needed", k.name, ratio)
		}
	}
}

// Claims that hold exactly are refuted by audits with all their learning no more often than γ, at a
// false alarm of 1e-6 each; and the bound exceeds the truth no more often either.
func TestAuditsOfTrueClaimsAtAnyTime(t *testing.T) {
	testkit.OneGoroutine(t)
	const gamma, games = 0.1, 300
	audits := testkit.Size(300, 3000)
	for _, k := range []known{
		{name: "randomised response", claim: privacy.Laplace{Scale: 1}, draw: func(in bool, src *noise.Fast) float64 {
			if src.Bernoulli(sigmoid(1)) == in {
				return 1
			}
			return -1
		}},
		{name: "leak", claim: privacy.Laplace{Scale: 1}, delta: 0.1, draw: func(in bool, src *noise.Fast) float64 {
			switch {
			case src.Bernoulli(0.1):
				return 20*bitOf(in) - 10
			case src.Bernoulli(sigmoid(1)) == in:
				return 1
			}
			return -1
		}},
	} {
		wrong := 0
		for i := range audits {
			f, err := k.direct().race(context.Background(), k.delta, gamma, 0, games, noise.Key{Seed: 4, Run: i})
			if err != nil {
				t.Fatal(err)
			}
			if f.Low > 1 {
				wrong++
			}
		}
		t.Logf("%s: %d of %d", k.name, wrong, audits)
		if most := line(audits, gamma); wrong > most {
			t.Errorf("%s: %d of %d bounds exceed the truth, at most %d may", k.name, wrong, audits, most)
		}
	}
}

// What the anytime bound costs at a fixed number of games, as sequential.go says: how far below the
// truth it is, against Scores.Odds on as many games, and against the best rule, known before. Seeds are
// fixed, so there is no false alarm.
func TestAnytimeExcess(t *testing.T) {
	testkit.OneGoroutine(t)
	k := known{claim: privacy.Laplace{Scale: 1}, draw: func(in bool, src *noise.Fast) float64 {
		return coarse(laplace(bitOf(in)+src.Laplace(1), 1, 1))
	}}
	for _, c := range []struct {
		games              int
		gamma, most, least float64
	}{{10_000, 0.05, 1.5, 1.1}, {10_000, 1e-6, 1.1, 0.9}, {100_000, 0.05, 1.4, 1.1}, {100_000, 1e-6, 1.1, 0.9}} {
		if c.games > testkit.Size(10_000, 100_000) {
			continue
		}
		var anytime, odds, rule float64
		const runs = 16
		for i := range runs {
			key := noise.Key{Seed: uint64(60 + i)} // Play counts runs of its own
			f, err := k.direct().race(context.Background(), 0, c.gamma, 1, c.games, key)
			if err != nil {
				t.Fatal(err)
			}
			s, err := Play(context.Background(), c.games, 1, 1, key, k.direct().worlds(0))
			if err != nil {
				t.Fatal(err)
			}
			e, _, _, err := s[0].Odds(c.gamma, 0)
			if err != nil {
				t.Fatal(err)
			}
			known, err := s[0].answer(Rule{In: 0.9, Out: -0.9}).Epsilon(c.gamma, 0)
			if err != nil {
				t.Fatal(err)
			}
			anytime, odds, rule = anytime+(1-f.Low)/runs, odds+(1-e)/runs, rule+(1-known)/runs
		}
		t.Logf("%d games, γ = %v: %.4f below the truth; %.2f times Odds, %.2f times a rule that is known", c.games,
			c.gamma, anytime, anytime/odds, anytime/rule)
		if r := anytime / odds; r > c.most || r < c.least {
			t.Errorf("%d games, γ = %v: it misses %v times as much, from %v to %v is said", c.games, c.gamma, r, c.least,
				c.most)
		}
	}
}

// Until ends an audit of a policy when the bound is there, whatever the adversaries are, or says how
// far it has come.
func TestUntil(t *testing.T) {
	p := PolicyAudit{Subject: mechanismOf(t, privacy.Laplace{Scale: 1}), Gamma: 0.05, Games: 100_000,
		Key: noise.Key{Seed: 7}, Until: 0.8}
	f, err := p.Run(context.Background())
	if err != nil || !(f.Low > 0.8 && f.Low < 1) || f.Games == p.Games || f.Refuted || f.Claimed != 1 {
		t.Errorf("%+v, %v", f, err)
	}
	p.Games = 300
	if f, err = p.Run(context.Background()); err != nil || f.Low > 0.8 || f.Games != 300 {
		t.Errorf("%+v, %v", f, err)
	}
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1} {
		p.Until = bad
		if _, err := p.Run(context.Background()); err == nil {
			t.Errorf("until = %v is taken", bad)
		}
		if _, err := (Direct{Gamma: 0.05, Games: 100, Until: bad}).Run(context.Background()); err == nil {
			t.Errorf("until = %v is taken", bad)
		}
	}
}

func mechanismOf(t *testing.T, m privacy.Mechanism) Subject {
	t.Helper()
	s, err := MechanismSubject(m, 2, 8, 2)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Adversaries of one name play games of their own. If they played the same, one game would count many times, and a
// true claim be refuted: with sixteen of them, at 10⁻⁶, in 2 of 100 runs.
func TestAdversariesOfOneName(t *testing.T) {
	c := contest{adversaries: []string{"", "", "a", "", "a"}}
	seen := map[uint64]bool{}
	for i := range c.adversaries {
		src := c.key(noise.Key{Seed: 3}, i).Fast(1)[0]
		seen[src.Uint64()] = true
	}
	if len(seen) != len(c.adversaries) {
		t.Errorf("%d adversaries have %d streams of random numbers", len(c.adversaries), len(seen))
	}
}

// What tells a bit outright refutes every ε in the end.
func TestLargeEpsilonIsRefuted(t *testing.T) {
	testkit.OneGoroutine(t)
	const games, epsilon = 60_000, 7.
	f, w := newForecaster(newCommon(1), false), newWealth(epsilon, 0, 1e-6)
	src := noise.NewFast(5, 5)
	for range games {
		in := src.Uint64()&1 == 1
		score := -10.
		if in {
			score = 10
		}
		w.add(f.forecast([]float64{score}), in)
		f.learn([]float64{score}, in)
	}
	if !w.refuted {
		t.Errorf("ε = %v is not refuted by %d games that tell the bit", epsilon, games)
	}
}
