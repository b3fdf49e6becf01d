package serve

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/live/serve/store"
	"github.com/sotto-dp/sotto/policy/linear"
	"github.com/sotto-dp/sotto/release"
)

// drawnNews is news with a policy that draws.
var drawnNews = strings.Replace(news, "policy: {policy: adac-oful, greed: 1}", "policy: {policy: dp-lin-ts, first: 20}", 1)

// Who names no policy has contexts played by dp-lin-ts.
func TestContextsAreDrawnByDefault(t *testing.T) {
	x, err := decl.Parse("news.yaml", []byte(strings.Replace(news, "policy: {policy: adac-oful, greed: 1}\n", "", 1)))
	if err != nil {
		t.Fatal(err)
	}
	p, err := x.NewContextual(decl.ZeroCoins{})
	if _, ok := p.(*linear.LinTS); !ok || err != nil || x.Policy.Policy != "dp-lin-ts" {
		t.Errorf("%v plays, %T, %v", x.Policy, p, err)
	}
}

// Probabilities of draws are counts, what is given is given with them, and rules weigh by them: over a restart, in
// both modes. What is given comes by coins of the service; that it departs from the probabilities by six standard
// deviations or more, in one of the sums, has a probability below 1e-7.
func TestContextsDrawn(t *testing.T) {
	for _, mode := range []string{"learn", "apprentice"} {
		t.Run(mode, func(t *testing.T) {
			c, got, earned, rules := newClock(), &vectorSums{}, [4]int64{}, 0
			cfg := Config{Store: store.NewMemory().Open, Clock: c.Now, VectorCurator: got.curator,
				Curator: func(rc release.Config) (release.Curator, error) {
					i := rules % len(earned)
					rules++
					return silent(func(_, _ int, steps int64) { earned[i] += steps })(rc)
				}}
			e := open(t, cfg)
			begin(t, e, strings.Replace(drawnNews, "actions: 8", "mode: "+mode, 1))
			x := mustFind(t, e, "news")
			var all []newsDecision
			var off, variance [4]float64
			between := 0
			for i := range 400 {
				settle(t, e, c, 100*time.Millisecond, 1)
				d := decideNews(t, e, newsAsk(i))
				r, sum := d.ranking, 0.0
				n := float64(len(r.Ranked) - (len(d.ask.Excluded)+1)/2)
				for j, a := range r.Ranked {
					sum += a.Probability
					count := (a.Probability - 0.2/n) / 0.8 * linear.Draws
					out := slices.Contains(d.ask.Excluded, a.ID)
					if out != (a.Probability == 0) || !out && math.Abs(count-math.Round(count)) > 1e-9 ||
						a.ID == r.Action && a.Probability != r.Propensity {
						t.Fatalf("%+v", r)
					}
					if count > 0.5 && count < linear.Draws-0.5 {
						between++
					}
					off[j] -= a.Probability
					if a.ID == r.Action {
						off[j]++
					}
					variance[j] += a.Probability * (1 - a.Probability)
				}
				if math.Abs(sum-1) > 1e-12 {
					t.Fatalf("%+v", r)
				}
				if i%3 == 0 {
					if s, err := e.RewardEvent(t.Context(), "news", r.Event, 0.75); s != Accepted || err != nil {
						t.Fatal(s, err)
					}
					d.steps = 3 << 18
				}
				if all = append(all, d); i == 200 {
					if err := e.Close(); err != nil {
						t.Fatal(err)
					}
					e = open(t, cfg)
					x = mustFind(t, e, "news")
				}
			}
			for j, z := range off {
				if variance[j] > 0 && math.Abs(z) > 6*math.Sqrt(variance[j]) {
					t.Errorf("action %d is given %v times more than its probabilities say", j, z)
				}
			}
			if (between > 400) != (mode == "learn") {
				t.Errorf("%d probabilities are between those of all draws and none", between)
			}
			for _, d := range all { // asked again: the action's own probability, and the rest shared out
				r, err := e.Rank(t.Context(), "news", d.ask)
				var sum float64
				for _, a := range r.Ranked {
					sum += a.Probability
				}
				if err != nil || r.Action != d.ranking.Action || r.Propensity != d.ranking.Propensity || math.Abs(sum-1) > 1e-12 {
					t.Fatalf("asked again: %+v, was %+v, %v", r, d.ranking, err)
				}
			}
			settle(t, e, c, time.Second, 12)
			info, err := e.Get(t.Context(), "news")
			in := info.Contextual
			if err != nil || in.Released < 300 || in.Releases < 5 || in.Released != got.released() {
				t.Fatalf("%+v, %v", in, err)
			}
			if want := products(all[:in.Released]); !slices.Equal(got.sums, want) {
				t.Errorf("released %v, must be %v", got.sums, want)
			}
			// A rule of weights p/p has a weight of 1 but where only the floor gives what was given.
			for _, r := range in.Rules {
				var want float64
				for _, d := range all[:in.Released] {
					n := float64(len(d.ask.Actions) - (len(d.ask.Excluded)+1)/2)
					if r.Name == "learner" && mode == "learn" {
						want += (d.ranking.Propensity - 0.2/n) / 0.8 / d.ranking.Propensity
					} else if r.Name == "any" {
						want += 1 / n / d.ranking.Propensity
					}
				}
				if (r.Name == "any" || r.Name == "learner" && mode == "learn") &&
					math.Abs(r.Weights*r.Clip-want) > float64(r.N)*r.Clip/(1<<20) {
					t.Errorf("rule %s has the weight %v, must have %v", r.Name, r.Weights*r.Clip, want)
				}
			}
			// What it has learnt is the same after a restart, bit for bit.
			before := x.estimate()
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			e = open(t, cfg)
			if after := mustFind(t, e, "news").estimate(); !slices.Equal(before, after) || len(after) == 0 {
				t.Errorf("the estimate is %v, was %v", after, before)
			}
		})
	}
}

// What is given comes as often as the told probabilities say, by χ² tests at each probability that there is: of one
// action a round, so that given the past of a round it is a coin's toss, of 10⁷ rounds at full size, over releases,
// whose draws are others. Of an arm that a policy has planned the floor's coins decide alone, with one that is gone. All
// true laws together fail once in 1e6 runs; a service that tells the draws' shares without the floor is caught.
func TestProbabilitiesAreCounts(t *testing.T) {
	rounds := testkit.Size(150_000, 10_000_000)
	type level struct{ off, variance float64 }
	off := func(levels map[float64]level) (p float64) {
		sum := 0.0
		for _, l := range levels {
			sum += l.off * l.off / l.variance
		}
		return distuv.ChiSquared{K: float64(len(levels))}.Survival(sum)
	}
	note := func(levels map[float64]level, p float64, hit bool) {
		l := levels[p]
		if l.off -= p; hit {
			l.off++
		}
		l.variance += p * (1 - p)
		levels[p] = l
	}
	for name, text := range map[string]string{"dp-lin-ts": drawnNews, "histogram-ts": tallied} {
		c := newClock()
		e := open(t, Config{Store: store.NewMemory().Open, Clock: c.Now})
		begin(t, e, text)
		x := mustFind(t, e, "news")
		told, broken := map[float64]level{}, map[float64]level{}
		const phases = 5
		for phase := range phases {
			for i := range 40 * phase {
				d := decideNews(t, e, newsAsk(1000*phase+i))
				if _, err := e.RewardEvent(t.Context(), "news", d.ranking.Event, float64(i%2)); err != nil {
					t.Fatal(err)
				}
			}
			settle(t, e, c, time.Second, 12)
			for i := range rounds / phases {
				if i%64 == 0 { // who comes with these actions
					if err := x.look(newsAsk(i / 64)); err != nil {
						t.Fatal(err)
					}
				}
				n := len(x.events.on)
				by := x.drawn(n)
				given, _ := x.floored(by.one(x.coins), n, n, func(int) bool { return false })
				a := i % n
				note(told, by.chance(x.decl.Floor, a), given == a)
				note(broken, min(0.9999, max(0.0001, float64(by.counts[a])/float64(by.of))), given == a)
			}
		}
		if p := off(told); p < 1e-6/3 || len(told) < 10 {
			t.Errorf("%s: p = %v of %d probabilities", name, p, len(told))
		}
		if p := off(broken); p > 1e-12 {
			t.Errorf("%s: a service that leaves out the floor is not caught: p = %v", name, p)
		}
	}
	c := newClock()
	e := open(t, Config{Store: store.NewMemory().Open, Clock: c.Now})
	begin(t, e, shop)
	x := mustFind(t, e, "shop")
	x.decl.Floor = 0.1
	levels := map[float64]level{}
	for i := range rounds { // of four arms the last is gone
		planned := i % 3
		given, p := x.floored(planned, 4, 3, func(a int) bool { return a == 3 })
		most, share := propensities(0.1, 3)
		if given == 3 || p != map[bool]float64{true: most, false: share}[given == planned] {
			t.Fatal(given, p)
		}
		a := i / 3 % 3
		note(levels, map[bool]float64{true: most, false: share}[a == planned], given == a)
	}
	if p := off(levels); p < 1e-6/3 {
		t.Errorf("arms: p = %v", p)
	}
}

// The chances of draws are exact: each of them as likely, and the floor's share beside them.
func TestChances(t *testing.T) {
	d := drawing{counts: []int{3, 0, 13}, of: 16}
	for i, want := range []float64{0.05 + 0.85*3/16, 0.05, 0.05 + 0.85*13/16} {
		if got := d.chance(0.15, i); math.Abs(got-want) > 1e-15 {
			t.Errorf("action %d has the chance %v, must have %v", i, got, want)
		}
	}
	coins, seen := rand.New(rand.NewPCG(1, 2)), [3]int{}
	for range 16_000 {
		seen[d.one(coins)]++
	}
	if sd := math.Sqrt(16_000 * 3. / 16 * 13 / 16); seen[1] > 0 || math.Abs(float64(seen[0])-3000) > 6*sd {
		t.Errorf("%v of 16000 draws", seen)
	}
}
