package plan

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/secagg/dap"
)

const planned = `
name: shop
arms: [red, blue, green]
policy: {policy: dp-klucb}
budget: {epsilon: 1}
unit: {of: person, assignments: 2}
window: 6h
floor: 0.1
`

func liveOf(t *testing.T, text string) decl.Experiment {
	t.Helper()
	l, err := (decl.Reader{}).Parse("shop.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return *l
}

func forecast(t *testing.T, q Request) *Forecast {
	t.Helper()
	f, err := q.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// A forecast is of the declared experiment: its window in decisions, its floor, what a uniform
// choice loses, and nothing before a window has passed; it does not depend on who works. Beside it is an A/B
// test at the same budget, which loses what is uniform, and less if it ends when it knows.
func TestPlan(t *testing.T) {
	q := Request{Live: liveOf(t, planned), Gap: 0.3, Traffic: 4000, Days: 2, Runs: 6, Seed: 1, Workers: 1}
	f := forecast(t, q)
	if f.Rounds != 8000 || f.Window != 1000 || f.Period != 48*time.Hour || f.Stops || f.FirstParam != "first" ||
		len(f.Rows) != 3 || f.Rows[1].Budget != (privacy.Pure{Epsilon: 1}) || len(f.Firsts) != 3 ||
		f.Firsts[1].First != 83 || f.Firsts[2].First != 333 {
		t.Fatalf("%+v", f)
	}
	for _, r := range append(f.Rows, f.Plain, f.Firsts[1], f.Firsts[2]) {
		// two of three arms lose 0.3 each: 0.2 a uniform decision; the floor's share of
		// it is always lost
		if math.Abs(r.Uniform-1600) > 1e-9 || !(r.Regret > 160 && r.Regret < 1000) || r.Unknown == 0 != (r.KnownMedian >= 0 && r.Known90 >= 0) {
			t.Errorf("%v %d: loses %v of %v; not known in %d runs", r.Budget, r.First, r.Regret,
				r.Uniform, r.Unknown)
		}
		if !(r.FirstRelease >= 6*time.Hour && r.FirstRelease < 15*time.Hour && r.Unknown <= 6 && r.Wrong <= 2) ||
			r.Unknown == 0 && !(r.FirstRelease <= r.KnownMedian && r.KnownMedian <= r.Known90 && r.Known90 < f.Period) {
			t.Errorf("%v: first release %v, known after %v and %v", r.Budget, r.FirstRelease,
				r.KnownMedian, r.Known90)
		}
		if s := r.Split; r.First == 0 && (s == nil || s.Budget != r.Budget || math.Abs(s.Regret-1600) > 1e-9 ||
			s.RegretSE != 0 || s.Searched != 800_000 || s.Unknown != 0 || s.Until <= 0 || s.Until > 800 ||
			s.KnownMedian <= 6*time.Hour || s.KnownMedian > 20*time.Hour || s.Course != nil) || r.First > 0 && s != nil {
			t.Errorf("%v: the A/B test is %+v", r.Budget, s)
		}
		last := r.Course[len(r.Course)-1]
		if len(r.Course) != 160 || last.After != f.Period || last.Share < 0.7 || last.Share > 0.97 ||
			math.Abs(last.Regret-r.Regret) > 1e-6 {
			t.Errorf("%v: %d points, the last %+v", r.Budget, len(r.Course), last)
		}
	}
	q.Workers = 3
	if again := forecast(t, q); text(f) != text(again) {
		t.Error("other workers, another forecast")
	}
	// A unit's budget is for all its assignments: at half of it for one, twice of it for two.
	once := q
	once.Live.Unit.Assignments, once.Budgets = 1, []privacy.Budget{privacy.Pure{Epsilon: 0.5}}
	twice := q
	twice.Budgets = []privacy.Budget{privacy.Pure{Epsilon: 1}}
	noise := func(f *Forecast, i int) float64 { return f.Rows[i].Regret }
	if a, b := noise(forecast(t, once), 1), noise(forecast(t, twice), 0); math.Abs(a-b) > 0.5*b {
		t.Errorf("loses %v once at 0.5, and %v twice at 1", a, b)
	}
}

// A rule that stops: many small batches wait for many windows, and a first batch that fills one is
// sooner at its end. In so short a time that nothing is released, it has no answer.
func TestPlanStops(t *testing.T) {
	q := Request{Live: liveOf(t, strings.Replace(planned, "policy: {policy: dp-klucb}",
		"policy: {policy: dp-tt, first: 2}\nrisk: 0.1", 1)), Means: []float64{0.4, 0.6, 0.4}, Traffic: 4000,
		Days: 20, Runs: 6, Seed: 1}
	q.Live.Floor = 0
	f := forecast(t, q)
	small, full := f.Firsts[0], f.Firsts[len(f.Firsts)-1]
	if !f.Stops || small.Unknown != 0 || full.Unknown != 0 || full.First != 333 ||
		!(full.KnownMean < small.KnownMean && full.KnownMean > 0.25) || small.KnownSE < 0 ||
		small.Course != nil {
		t.Errorf("first batches of 2: %+v; of a window: %+v", small, full)
	}
	q.Days = 0.2
	if r := forecast(t, q).Plain; r.Unknown != 6 || r.KnownMedian != -1 || r.FirstRelease != -1 ||
		!math.IsNaN(r.KnownMean) {
		t.Errorf("in less than a window: %+v", r)
	}
}

// text is all that rows of a forecast say.
func text(f *Forecast) (out string) {
	for _, r := range append(append(f.Rows, f.Firsts...), f.Plain) {
		if r.Split != nil {
			out += fmt.Sprintf("%+v", *r.Split)
		}
		r.Split = nil
		out += fmt.Sprintf("%+v", r)
	}
	return out
}

const plannedSplit = `
name: shop
arms: [red, blue]
policy: split
shares: {red: 0.8, blue: 0.2}
budget: {epsilon: 1}
unit: {of: person}
window: 6h
`

// An A/B test is forecast with its shares, and far beyond the period, at click rates too; with the effect and
// the rate that are asked about it is sooner, and the advice says so.
func TestPlanOfSplit(t *testing.T) {
	q := Request{Live: liveOf(t, plannedSplit), Means: []float64{0.03, 0.02}, Traffic: 4000, Days: 2, Runs: 20, Seed: 1}
	f := forecast(t, q)
	r := f.Rows[1]
	if f.Rounds != 8000 || r.Searched != 800_000 || r.Unknown != 0 || r.Split != nil || r.Course != nil ||
		math.Abs(r.Regret-8000*0.2*0.01) > 1e-9 || r.Wrong > 5 || r.Until > r.Regret ||
		r.KnownMedian < f.Period || r.Known90 < r.KnownMedian {
		t.Errorf("%+v", r)
	}
	if f.Planned == nil || f.Planned.KnownMedian >= r.KnownMedian || f.Planned.KnownMedian < 6*time.Hour ||
		!strings.HasPrefix(strings.Join(f.Advice, ";"), "with effect: 0.01 and rate: 0.025 in the declaration half of the runs") {
		t.Errorf("planned %+v, advice %q", f.Planned, f.Advice)
	}
	if !(f.Plain.KnownMedian < r.KnownMedian && r.KnownMedian < f.Rows[0].KnownMedian) {
		t.Errorf("conclusive after %v without privacy, %v at ε = 1, %v at 0.25", f.Plain.KnownMedian, r.KnownMedian,
			f.Rows[0].KnownMedian)
	}
	// of equal arms no answer is right, and few runs have one: at 5 % more than 9 of 20 have probability 2e-8
	q.Means, q.Days = []float64{0.3, 0.3}, 0.1
	f = forecast(t, q)
	if r := f.Rows[1]; r.Unknown < 11 || r.Wrong != 20-r.Unknown || r.KnownMedian != -1 || f.Planned != nil ||
		!strings.Contains(strings.Join(f.Advice, ";"), "no arm is best") {
		t.Errorf("of equal arms %+v, advice %q", r, f.Advice)
	}
}

// Where half of the runs have no answer in the period, the advice names the floor with which they have, or
// says that none does.
func TestPlanNamesAFloor(t *testing.T) {
	text := strings.NewReplacer(", green", "", ", assignments: 2", "", "window: 6h", "window: 1h", "floor: 0.1", "floor: 0")
	q := Request{Live: liveOf(t, text.Replace(planned)), Means: []float64{0.05, 0.15}, Traffic: 4000, Days: 3, Runs: 10, Seed: 1}
	q.Budgets = []privacy.Budget{q.Live.Budget}
	f := forecast(t, q)
	if r := f.Rows[0]; r.KnownMedian >= 0 || f.Floored == nil || !(f.Floor > 0) || f.Floored.KnownMedian < time.Hour ||
		f.Floored.KnownMedian > f.Period || !strings.HasPrefix(f.Advice[0], fmt.Sprintf("with floor: %v instead of 0", f.Floor)) {
		t.Errorf("%+v; with floor %v %+v; %q", r, f.Floor, f.Floored, f.Advice)
	}
	q.Days = 0.05
	if f := forecast(t, q); f.Floored != nil || f.Rows[0].Unknown != 10 || !strings.Contains(f.Advice[0], "with a floor of up to 0.4") {
		t.Errorf("in an hour: %v, %q", f.Floor, f.Advice)
	}
}

func TestPlanErrors(t *testing.T) {
	good := Request{Live: liveOf(t, planned), Gap: 0.3, Traffic: 4000, Days: 1, Runs: 2}
	for want, change := range map[string]func(*Request){
		"traffic is 0":               func(q *Request) { q.Traffic = 0 },
		"traffic is NaN":             func(q *Request) { q.Traffic = math.NaN() },
		"days is -1":                 func(q *Request) { q.Days = -1 },
		"runs is 1":                  func(q *Request) { q.Runs = 1 },
		"workers is -1":              func(q *Request) { q.Workers = -1 },
		"must be at most 1e+09":      func(q *Request) { q.Traffic = 1e10 },
		"must be at least two":       func(q *Request) { q.Traffic = 5 },
		"gap is 1.5":                 func(q *Request) { q.Gap = 1.5 },
		"best is 0.2":                func(q *Request) { q.Best = 0.2 },
		"gap and best go without":    func(q *Request) { q.Means = []float64{0.1, 0.2, 0.3} },
		"means are 2, must be":       func(q *Request) { q.Gap, q.Means = 0, []float64{0.1, 0.2} },
		"mean 3 is 1.3":              func(q *Request) { q.Gap, q.Means = 0, []float64{0.1, 0.2, 1.3} },
		"mean 1 is NaN":              func(q *Request) { q.Gap, q.Means = 0, []float64{math.NaN(), 0.2, 0.3} },
		"must be above 0":            func(q *Request) { q.Budgets = []privacy.Budget{privacy.ZCDP{Rho: -1}} },
		"window: is 0s, must be fro": func(q *Request) { q.Live.Window = 0 },
	} {
		q := good
		change(&q)
		_, err := q.Run(context.Background())
		if err == nil || !strings.Contains(err.Error(), want) ||
			!errors.Is(err, ErrPlan) && !errors.Is(err, keyed.ErrSpec) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := good.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// Where nobody sees the rewards a forecast has the noise of the declared trust model, and says
// beside it what would be lost if the service were believed: of every policy that is proved there,
// more under local trust, and between two servers less than twice as much.
func TestPlanOfGatheredRewards(t *testing.T) {
	all := []struct{ policy, budget string }{
		{"dp-klucb-j", "epsilon: 1"}, {"dp-imed-j", "epsilon: 1"}, {"adap-ucb", "epsilon: 1"},
		{"adap-klucb", "epsilon: 1"}, {"adac-ucb", "rho: 0.5"}, {"dp-se", "epsilon: 1"},
		{"batch-se", "epsilon: 1"}, {"dp-window-klucb", "epsilon: 1"}, {"zcdp-imed", "rho: 0.5"},
	}
	if testkit.Race { // the goroutines are the same for all
		all = all[:2]
	}
	for _, c := range all {
		text := strings.NewReplacer("policy: dp-klucb", "policy: "+c.policy, "epsilon: 1", c.budget,
			"window: 6h", "window: 10m\nhorizon: 24000", ", assignments: 2", "").Replace(planned)
		ask := func(trust string) (Row, Row) {
			q := Request{Live: liveOf(t, text+trust), Gap: 0.4, Traffic: 12_000, Days: 2, Runs: 6, Seed: 1}
			q.Budgets = []privacy.Budget{q.Live.Budget}
			f := forecast(t, q)
			if len(f.Rows) != 1 || f.Central == nil {
				t.Fatalf("%s: %+v", c.policy, f)
			}
			return f.Rows[0], *f.Central
		}
		key, err := dap.DeriveKey(bytes.Repeat([]byte{1}, 32), 7)
		if err != nil {
			t.Fatal(err)
		}
		two, central := ask("trust: two-server\nhelper: {url: https://a.example, key: " + key.Config().String() + "}\n")
		local, again := ask("trust: local\n")
		if fmt.Sprint(central) != fmt.Sprint(again) {
			t.Errorf("%s: central is %+v, and again %+v", c.policy, central, again)
		}
		t.Logf("%s: lost %.4g by central, %.4g between two servers, %.4g local trust", c.policy, central.Regret,
			two.Regret, local.Regret)
		if !(two.Regret < 2*central.Regret && two.Regret > 0.9*central.Regret && local.Regret > two.Regret) {
			t.Errorf("%s: lost %v by central, %v between two servers, %v under local trust", c.policy,
				central.Regret, two.Regret, local.Regret)
		}
	}
	if f := forecast(t, Request{Live: liveOf(t, planned), Gap: 0.4, Traffic: 4000, Days: 1,
		Runs: 2}); f.Central != nil {
		t.Errorf("the service is believed, and the forecast has %+v beside", f.Central)
	}
}
