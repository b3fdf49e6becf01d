package plan

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/feature"
	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/privacy"
)

const plannedContextual = `
name: front
contextual:
  context:
    device: {values: [phone, tablet, desktop]}
  action:
    topic: {values: [news, sport, culture, games]}
  cross:
    - {of: [device, topic]}
  actions: 4
policy: {policy: adac-oful}
budget: {rho: 1}
horizon: 1e6
unit: {of: visit}
window: 10m
floor: 0.1
`

const plannedClinic = `name: clinic
contextual:
  context:
    pain: {range: [0, 10]}
  action:
    kind: {values: [rest, walk, call]}
  cross:
    - {of: [pain, kind]}
  actions: 3
  protect: joint
policy: {policy: lin-ucb, leaf: 50, greed: 1}
horizon: 50_000
budget: {rho: 1}
unit: {of: person}
reward: {range: [0, 1], default: 0}
window: 24h
floor: 0.2
`

// Of contexts that are private there is no plan, and the error says who knows more.
func TestNoPlanOfJoint(t *testing.T) {
	_, err := Request{Live: liveOf(t, plannedClinic)}.RunContextual(t.Context())
	if !errors.Is(err, ErrPlan) || !strings.Contains(err.Error(), "sotto validate says") {
		t.Errorf("%v", err)
	}
}

// simulates leaves out, under the race detector, what is long and has no other goroutines than
// TestContextualPlanRepeats has.
func simulates(t *testing.T) {
	t.Helper()
	if testkit.Race {
		t.Skip("simulation, slow under the race detector")
	}
}

func forecastContextual(t *testing.T, q Request) *ContextualForecast {
	t.Helper()
	f, err := q.RunContextual(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// A forecast is of the declared experiment.
func TestContextualPlan(t *testing.T) {
	simulates(t)
	q := Request{Live: liveOf(t, plannedContextual), Gap: 0.1, Best: 0.3, Traffic: 10_000, Days: 0.4, Runs: 3,
		Seed: 1, Workers: 1}
	f := forecastContextual(t, q)
	if f.Rounds != 4000 || f.Window != 69 || f.Dim != 20 || f.Actions != 4 || len(f.Rows) != 3 ||
		f.Rows[1].Budget != (privacy.ZCDP{Rho: 1}) || len(f.Settings) != 3 ||
		math.Abs(f.Best-0.3) > 2e-3 || math.Abs(f.Uniform-0.2) > 2e-3 {
		t.Fatalf("%+v", f)
	}
	plain, one := f.Plain, f.Rows[1]
	for _, r := range append(f.Rows, append(f.Settings, plain)...) {
		last := r.Course[len(r.Course)-1]
		// the mean of shares is not the share of the means, but the worlds are scaled alike
		if want := f.Uniform + r.Won*(f.Best-f.Uniform); math.Abs(r.Reward-want) > 1e-3 ||
			math.Abs(last.All-r.Won) > 1e-9 || last.Decisions != 4000 || r.Course[0].Decisions < 69 ||
			r.Won > 0.9+0.01 || r.Releases < 1 || r.FirstRelease < q.Live.Window {
			t.Errorf("%v %q: %+v, want a reward of %v", r.Budget, r.Setting, r, want)
		}
	}
	if !(plain.Won > one.Won && one.Lost > 0.1 && one.Enough == -1) ||
		math.Abs(one.Lost-(1-one.Won/plain.Won)) > 1e-12 || !math.IsNaN(plain.Lost) {
		t.Errorf("ρ = 1 wins %v of %v, lost %v", one.Won, plain.Won, one.Lost)
	}
	// the confidence radius is far too wide for this traffic
	if f.Better < 0 || !(f.Settings[f.Better].Won > 0.5 && one.Won < 0.2) ||
		!strings.Contains(strings.Join(f.Advice, "\n"), f.Settings[f.Better].Setting+" wins") {
		t.Errorf("better is %d, advice %q", f.Better, f.Advice)
	}
}

// The same seed has the same forecast, whoever works.
func TestContextualPlanRepeats(t *testing.T) {
	q := Request{Live: liveOf(t, plannedContextual), Gap: 0.5, Best: 0.8, Traffic: 10_000, Days: 0.05,
		Runs: 2, Seed: 1, Workers: 1}
	q.Live.Budget = privacy.ZCDP{Rho: 1000} // enough, so that it does not look for more traffic
	f := forecastContextual(t, q)
	if f.Enough < 0 || f.Searched != 500 {
		t.Fatalf("enough is %d, searched %d", f.Enough, f.Searched)
	}
	q.Workers = 3
	// NaN is not itself
	if g := forecastContextual(t, q); fmt.Sprintf("%+v", f) != fmt.Sprintf("%+v", g) {
		t.Errorf("three workers: %+v, one %+v", g, f)
	}
	q.Seed = 2
	if g := forecastContextual(t, q); reflect.DeepEqual(f.Rows, g.Rows) {
		t.Error("another seed has the same runs")
	}
}

// Where the traffic is too little for the dimension the advice names how much it would take, and a
// smaller map for which it is enough.
func TestContextualPlanTooLarge(t *testing.T) {
	simulates(t)
	q := Request{Live: liveOf(t, plannedContextual), Gap: 0.1, Best: 0.3, Traffic: 1000, Days: 2,
		Runs: 4, Seed: 1}
	q.Live.Budget = privacy.ZCDP{Rho: 0.1}
	f := forecastContextual(t, q)
	advice := strings.Join(f.Advice, "\n")
	if f.Better < 0 || f.Settings[f.Better].Enough >= 0 || f.Enough <= 2000 || f.Enough > f.Searched ||
		len(f.Smaller) == 0 || f.Smaller[0].Dim >= 20 ||
		!strings.Contains(advice, "d = 20 is too large for 2000 decisions") ||
		!strings.Contains(advice, "it would take "+about(f.Enough)) {
		t.Errorf("enough is %d, settings %+v, smaller %+v; advice %q", f.Enough, f.Settings, f.Smaller, advice)
	}
}

func TestHalved(t *testing.T) {
	m := feature.Map{Context: []feature.Feature{{Name: "c", Values: []string{"1", "2", "3", "4", "5"}}},
		Action: []feature.Feature{{Name: "a", Buckets: 8}, {Name: "x", Hi: 1}}, ID: feature.Feature{Buckets: 9},
		Cross: []feature.Cross{{Of: []string{"c", "a"}}, {Of: []string{"a", "id"}, Buckets: 32}}}
	before := m.Dim()
	var dims []int
	for ok := true; ok && len(dims) < 9; {
		var less feature.Map
		if less, ok = halved(m); ok {
			m = less
			dims = append(dims, m.Dim())
		}
	}
	// 1 + 5 + 8 + 1 + 9 + 40 + 32, then halves, rounded up, of values and buckets: 1 + 3 + 4 + 1 +
	// 5 + 12 + 16, and so on until all are 2
	if fmt.Sprint(before, dims) != "96 [42 21 16 14]" {
		t.Errorf("dimensions %d %v", before, dims)
	}
}

func TestContextualPlanErrors(t *testing.T) {
	good := Request{Live: liveOf(t, plannedContextual), Gap: 0.1, Traffic: 1000, Days: 1, Runs: 2, Seed: 1}
	for want, change := range map[string]func(*Request){
		"gap is 0, must be above 0":  func(q *Request) { q.Gap = 0 },
		"gap is NaN":                 func(q *Request) { q.Gap = math.NaN() },
		"best is 0.05, must be from": func(q *Request) { q.Best = 0.05 },
		"traffic is 0":               func(q *Request) { q.Traffic = 0 },
		"runs is 1":                  func(q *Request) { q.Runs = 1 },
		"means are of arms":          func(q *Request) { q.Means = []float64{1, 0} },
		"experiment shop has arms":   func(q *Request) { q.Live = liveOf(t, planned) },
		"while it is an apprentice": func(q *Request) {
			c := *q.Live.Contextual
			c.Mode = decl.ModeApprentice
			q.Live.Contextual = &c
		},
		"has 1 action, must have at": func(q *Request) {
			c := *q.Live.Contextual
			c.Features.Actions = 1
			q.Live.Contextual = &c
		},
		"does not fit in the range": func(q *Request) { q.Gap, q.Best = 0.9, 1 },
		"tells no actions apart": func(q *Request) {
			c := *q.Live.Contextual
			c.Features.Action = c.Features.Action[:0:0]
			c.Features.Action = []feature.Feature{{Name: "topic", Values: []string{"x"}}}
			q.Live.Contextual = &c
		},
	} {
		q := good
		change(&q)
		if _, err := q.RunContextual(context.Background()); !errors.Is(err, ErrPlan) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error with %q", err, want)
		}
	}
	if _, err := good.Run(context.Background()); !errors.Is(err, ErrPlan) {
		t.Errorf("Run of contexts: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := good.RunContextual(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// What is declared is not held against itself: with other noise it would look better by chance.
func TestContextualPlanGreedyAlready(t *testing.T) {
	greedy := strings.Replace(plannedContextual, "adac-oful}", "adac-oful, greed: 1, lambda: 30}", 1)
	f := forecastContextual(t, Request{Live: liveOf(t, greedy), Gap: 0.1, Best: 0.3, Traffic: 1000,
		Days: 1, Runs: 4, Seed: 1})
	if len(f.Settings) != 2 {
		t.Errorf("%d other settings, want 2: %+v", len(f.Settings), f.Settings)
	}
	for _, r := range f.Settings {
		if r.Setting == "greed: 1, lambda: 30" {
			t.Errorf("%s is what is declared", r.Setting)
		}
	}
}
