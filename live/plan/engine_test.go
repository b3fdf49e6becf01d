package plan

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/internal/clock"
	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/interval"
	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/live/serve/store"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
)

// Visitors come every 20 seconds, and the window of 595 seconds ends before the thirtieth of those who
// follow.
const (
	visitEvery   = 20 * time.Second
	visitsPerDay = float64(24 * time.Hour / visitEvery)
)

// untilConclusive has visitors come to an engine, with its own coins and noise, until its page says
// conclusive, and returns how many were given an arm by then, +Inf if that is not so after most.
func untilConclusive(t *testing.T, l decl.Experiment, means []float64, most int, src *noise.Fast) float64 {
	t.Helper()
	c := clock.At(time.Date(2027, 1, 31, 9, 0, 0, 0, time.UTC))
	e, err := serve.Open(t.Context(), serve.Config{Store: store.NewMemory().Open, Clock: c.Now})
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(err)
	defer func() { check(e.Close()) }()
	check(e.Create(t.Context(), l))
	check(e.Start(t.Context(), l.Name))
	released := 0
	for n := range most {
		check(e.Sync(t.Context()))
		info, err := e.Get(t.Context(), l.Name)
		check(err)
		if info.Batches > released {
			released = info.Batches
			if serve.VerdictOf(&info.Experiment, info.Arms).Word == interval.Conclusive {
				return float64(n)
			}
		}
		d, err := e.Decide(t.Context(), l.Name, fmt.Sprint(n))
		check(err)
		if src.Bernoulli(means[d.Arm]) {
			_, err := e.Rewards(t.Context(), l.Name, []serve.Report{{Token: d.Token, Reward: 1}})
			check(err)
		}
		c.Add(visitEvery - 2*time.Second)
		check(e.Sync(t.Context())) // closes what is due, which is shown at the next tick
		c.Add(2 * time.Second)
	}
	return math.Inf(1)
}

// off is by how many standard errors the share of runs that are conclusive by a time is from the share of
// which it was forecast, by so many runs; it is 0 at a tie that has the share. And how many are.
func off(met []float64, at, share float64, forecasts int) (z float64, by int) {
	before := 0
	for _, n := range met {
		if n < at {
			before++
		}
		if n <= at {
			by++
		}
	}
	runs := float64(len(met))
	se := math.Sqrt(share * (1 - share) * (1/runs + 1/float64(forecasts)))
	return max(0, float64(before)/runs-share, share-float64(by)/runs) / se, by
}

// The forecast is what the engine's page says: as many runs of the engine, each with coins, noise and
// people of its own, are conclusive by the times that are forecast for 50 and for 90 % as chance allows, of an
// A/B test and of a bandit. 5.3 standard errors, of engine and forecast together, are exceeded with probability
// below 1e-6 in all four (normal law; a share of 90 % of few runs cannot be exceeded so far, and its other tail
// is that of a smaller variance). Found out are forecasts of a tenth of ε, and of an A/B test whose windows pass
// at once, which is conclusive before the engine's first release. SOTTO_FULL has 200 runs; so have FORECAST_RUNS=200
// at click rates, which takes some minutes. -v writes what was forecast and what was met.
func TestForecastIsMet(t *testing.T) {
	testkit.OneGoroutine(t)
	runs, forecasts := testkit.Size(60, 200), testkit.Size(200, 500)
	const limit = 5.3
	src := noise.NewFast(11, 12)
	cases := []struct {
		policy string
		means  []float64
		most   int
	}{
		{"policy: split\neffect: 0.6\nrate: 0.5", []float64{0.2, 0.8}, 600},
		{"policy: {policy: dp-klucb}\nfloor: 0.4", []float64{0.1, 0.9}, 600},
	}
	if n, err := strconv.Atoi(os.Getenv("FORECAST_RUNS")); err == nil {
		runs, forecasts = n, 1000
		cases = append(cases, cases[0], cases[1])
		cases[2].policy, cases[2].means, cases[2].most = "policy: split\neffect: 0.03\nrate: 0.05", []float64{0.04, 0.07}, 20_000
		cases[3].policy, cases[3].means, cases[3].most = "policy: {policy: dp-klucb}\nfloor: 0.2", []float64{0.02, 0.1}, 20_000
	}
	for i, x := range cases {
		policy, means, most := x.policy, x.means, x.most
		text := "name: shop\narms: [red, blue]\nbudget: {epsilon: 1}\nunit: {of: visit}\nwindow: 595s\n" + policy + "\n"
		l := liveOf(t, text)
		by := func(l decl.Experiment, epsilon float64) (half, most90 float64) {
			p := armsPlan{Request: Request{Live: l, Means: means, Traffic: visitsPerDay, Days: float64(most) / visitsPerDay,
				Runs: keyed.Count(forecasts), Seed: 1}}
			if err := p.check(); err != nil {
				t.Fatal(err)
			}
			r, err := p.row(t.Context(), liveAsk{budget: privacy.Pure{Epsilon: epsilon}})
			if err != nil {
				t.Fatal(err)
			}
			visitors := func(d time.Duration) float64 { return math.Round(float64(d) / float64(visitEvery)) }
			return visitors(r.KnownMedian), visitors(r.Known90)
		}
		met := make([]float64, runs)
		for i := range met {
			met[i] = untilConclusive(t, l, means, most, &src)
		}
		half, most90 := by(l, 1)
		for share, at := range map[float64]float64{0.5: half, 0.9: most90} {
			z, n := off(met, at, share, forecasts)
			t.Logf("%q: by %v visitors %d of %d runs are conclusive, forecast %v %%", policy, at, n, runs, 100*share)
			if z > limit {
				t.Errorf("%q: %d of %d runs are conclusive by %v visitors, forecast %v %%: %.1f standard errors", policy, n,
					runs, at, 100*share, z)
			}
		}
		twins := map[string]float64{}
		twins["a tenth of ε"], _ = by(l, 0.1)
		if i == 0 {
			at := l
			at.Window = visitEvery
			twins["no window"], _ = by(at, 1)
		}
		for twin, at := range twins {
			if z, n := off(met, at, 0.5, forecasts); z < limit {
				t.Errorf("%q: %s is not found out: %d of %d runs by %v visitors, %.1f standard errors", policy, twin, n, runs,
					at, z)
			}
		}
	}
}
