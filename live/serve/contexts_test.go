package serve

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/clock"
	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/live/serve/store"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/release"
)

// news is a small experiment with contexts.
const news = `
name: news
contextual:
  context: {device: {values: [phone, desktop]}}
  action: {topic: {values: [war, sport]}, length: {range: [0, 8]}}
  cross: [{of: [device, topic]}]
  actions: 8
  rules:
    - {name: first, play: first, clip: 2, budget: {rho: 0.05}}
    - {name: any, play: uniform, clip: 20, budget: {rho: 0.05}}
    - {name: learner, play: policy, clip: 20, budget: {rho: 0.05}}
    - {name: three, play: {id: a3}, clip: 20, budget: {rho: 0.05}}
policy: {policy: adac-oful, greed: 1}
horizon: 100000
budget: {rho: 10}
unit: {of: visit}
reward: {range: [0, 1], default: 0}
window: 10s
floor: 0.2
`

// newsAsk is what visitor i asks.
func newsAsk(i int) RankAsk {
	ask := RankAsk{Event: fmt.Sprint("visit ", i), Context: map[string]any{"device": []string{"phone", "desktop"}[i%2]}}
	for a := range 4 {
		ask.Actions = append(ask.Actions, Action{ID: fmt.Sprint("a", a), Features: map[string]any{
			"topic": []string{"war", "sport"}[a%2], "length": float64((a + i) % 8)}})
	}
	if i%5 == 0 {
		ask.Excluded = []string{"a0", "nothing"}
	}
	return ask
}

// vectorSums are what releases were given.
type vectorSums struct {
	mu   sync.Mutex
	n    []int
	sums []int64
}

func (s *vectorSums) curator(c release.FeatureConfig) (release.FeatureCurator, error) {
	coins := noise.NewFast(1, 2)
	cur, err := release.SimulatedFeatures(c, &coins)
	if err != nil {
		return nil, err
	}
	return toldVectors{cur.(release.StepFeatureCurator), s}, nil
}

func (s *vectorSums) released() (n int) {
	for _, k := range s.n {
		n += k
	}
	return n
}

type toldVectors struct {
	release.StepFeatureCurator
	to *vectorSums
}

func (c toldVectors) AddSteps(slot, n int, sums []int64) error {
	c.to.mu.Lock()
	defer c.to.mu.Unlock()
	c.to.n = append(c.to.n, n)
	c.to.sums = append(c.to.sums, make([]int64, max(0, len(sums)-len(c.to.sums)))...)
	for i, x := range sums {
		c.to.sums[i] += x
	}
	return c.StepFeatureCurator.AddSteps(slot, n, sums)
}

// A newsDecision is what a test knows of one.
type newsDecision struct {
	ask     RankAsk
	ranking Ranking
	vector  []float64
	steps   int64 // of its reward
}

func decideNews(t testing.TB, e *Engine, ask RankAsk) newsDecision {
	t.Helper()
	r, err := e.Rank(t.Context(), "news", ask)
	if err != nil || r.Reason != Split {
		t.Fatalf("%+v, %v", r, err)
	}
	mapper, err := mustFind(t, e, "news").decl.Mapper()
	if err != nil {
		t.Fatal(err)
	}
	vectors, err := mapper.Vectors(nil, ask.Context, ask.Actions)
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(ask.Actions, func(a Action) bool { return a.ID == r.Action })
	return newsDecision{ask: ask, ranking: r, vector: vectors[at*mapper.Dim():][:mapper.Dim()]}
}

// products are the sums that a release of these decisions has.
func products(all []newsDecision) (sums []int64) {
	for _, d := range all {
		sums = append(sums, make([]int64, max(0, len(d.vector)-len(sums)))...)
		for i, a := range d.vector {
			sums[i] += int64(math.Round(float64(a*(2*float64(d.steps)/(1<<20)-1)) * (1 << 20)))
		}
	}
	return sums
}

// first is the first action that may be given.
func (d newsDecision) first() string {
	for _, a := range d.ask.Actions {
		if !slices.Contains(d.ask.Excluded, a.ID) {
			return a.ID
		}
	}
	return ""
}

// An experiment with contexts, over a restart: decided with true probabilities, answered the same
// again, and released with exactly what was accepted, the defaults, and the rules' weights.
func TestContexts(t *testing.T) {
	for _, mode := range []string{"learn", "apprentice"} {
		t.Run(mode, func(t *testing.T) {
			c, got, earned, rules := newClock(), &vectorSums{}, [4]int64{}, 0
			cfg := Config{Store: store.NewMemory().Open, Clock: c.Now, VectorCurator: got.curator,
				Curator: func(rc release.Config) (release.Curator, error) { // one rule after the other, at each start
					i := rules % len(earned)
					rules++
					return silent(func(_, _ int, steps int64) { earned[i] += steps })(rc)
				}}
			e := open(t, cfg)
			begin(t, e, strings.Replace(news, "actions: 8", "mode: "+mode, 1))
			reward := func(event string, r float64, want Status) {
				t.Helper()
				if s, err := e.RewardEvent(t.Context(), "news", event, r); s != want || err != nil {
					t.Errorf("the reward of %s is %q, %v, want %q", event, s, err, want)
				}
			}
			var all []newsDecision
			for i := range 400 {
				settle(t, e, c, 100*time.Millisecond, 1)
				d := decideNews(t, e, newsAsk(i))
				r := d.ranking
				sum, greedy := 0.0, 0
				for j, a := range r.Ranked {
					sum += a.Probability
					if a.Probability > 0.5 {
						greedy++
						if mode == "apprentice" && a.ID != d.first() {
							t.Errorf("the apprentice plays %s", a.ID)
						}
					}
					if a.ID != d.ask.Actions[j].ID || a.ID == r.Action && a.Probability != r.Propensity ||
						(a.Probability == 0) != slices.Contains(d.ask.Excluded, a.ID) {
						t.Fatalf("%+v", r)
					}
				}
				if math.Abs(sum-1) > 1e-12 || greedy != 1 || slices.Contains(d.ask.Excluded, r.Action) ||
					!r.Expires.Equal(c.Now().Add(10*time.Second)) || !r.ActivateBy.IsZero() {
					t.Fatalf("%+v", r)
				}
				if i%3 == 0 {
					reward(r.Event, 0.75, Accepted)
					reward(r.Event, 0, Accepted)
					d.steps = 3 << 18
				}
				if all = append(all, d); i == 200 {
					if err := e.Close(); err != nil {
						t.Fatal(err)
					}
					e = open(t, cfg)
				}
			}
			for _, d := range all {
				if r, err := e.Rank(t.Context(), "news", d.ask); err != nil || !alike(r, d.ranking) {
					t.Fatalf("asked again: %+v, was %+v, %v", r, d.ranking, err)
				}
			}
			settle(t, e, c, time.Second, 12)
			reward(all[0].ranking.Event, 1, Late)
			info, err := e.Get(t.Context(), "news")
			in := info.Contextual
			if err != nil || in.Decisions != 400 || in.Released < 100 || in.Released != got.released() ||
				in.Releases != len(got.n) || info.State != Running || info.Arms != nil || info.Keep != -1 {
				t.Fatalf("%+v, %+v, %v; %v were released", info, in, err, got.n)
			}
			out := all[:in.Released]
			if want := products(out); !slices.Equal(got.sums, want) {
				t.Errorf("released %v, must be %v", got.sums, want)
			}
			for i, r := range in.Rules {
				var weights float64
				var steps int64
				for _, d := range out {
					probability := map[string]float64{"any": 1 / float64(len(d.ask.Actions)-(len(d.ask.Excluded)+1)/2)}
					switch plays := map[string]string{"first": d.first(), "three": "a3"}[r.Name]; {
					case plays == d.ranking.Action:
						probability[r.Name] = 1
					case r.Name == "learner" && mode == "learn" && d.ranking.Propensity > 0.5:
						probability[r.Name] = 1
					}
					weight := min(probability[r.Name]/d.ranking.Propensity, r.Clip)
					weights += weight
					steps += (int64(math.Round(weight/r.Clip*(1<<20)))*d.steps + 1<<19) >> 20
				}
				if earned[i] != steps && (mode == "learn" || r.Name != "learner") {
					t.Errorf("rule %s earned %d steps, must be %d", r.Name, earned[i], steps)
				}
				if wrong := math.Abs(r.Weights*r.Clip - weights); r.N != len(out) || r.Noise == nil ||
					wrong > float64(r.N)*r.Clip/(1<<20) && (mode == "learn" || r.Name != "learner") {
					t.Errorf("rule %s has %d decisions of weight %v, must have %d of %v", r.Name, r.N, r.Weights*r.Clip,
						len(out), weights)
				}
			}
			if err := e.Stop(t.Context(), "news", ""); err != nil {
				t.Fatal(err)
			}
			r, err := e.Rank(t.Context(), "news", newsAsk(1000))
			if err != nil || r.Action != "a1" || r.Reason != Static || r.Propensity != 1 || !r.Expires.IsZero() {
				t.Errorf("when it has stopped: %+v, %v", r, err)
			}
			reward(all[399].ranking.Event, 1, Late)
			if err := e.Archive(t.Context(), "news"); err != nil {
				t.Fatal(err)
			}
			if _, err := e.RewardEvent(t.Context(), "news", all[399].ranking.Event, 1); !errors.Is(err, ErrEvent) {
				t.Errorf("an archived event: %v", err)
			}
		})
	}
}

// alike: the same answer but for rounding of probabilities that are not the action's own.
func alike(a, b Ranking) bool {
	for i := range a.Ranked {
		if math.Abs(a.Ranked[i].Probability-b.Ranked[i].Probability) > 1e-12 {
			return false
		}
	}
	a.Ranked, b.Ranked = nil, nil
	return reflect.DeepEqual(a, b)
}

// An offer counts when it is activated, with the vector that it was made with, also after a
// restart; one that is not is forgotten, and its reward counts nowhere.
func TestContextsActivate(t *testing.T) {
	c, got := newClock(), &vectorSums{}
	cfg := Config{Store: store.NewMemory().Open, Clock: c.Now, VectorCurator: got.curator,
		Curator: silent(func(int, int, int64) {})}
	e := open(t, cfg)
	begin(t, e, news)
	var all []newsDecision
	for i := range 300 {
		settle(t, e, c, 100*time.Millisecond, 1)
		ask := newsAsk(i)
		ask.Deferred = i%2 == 0
		d := decideNews(t, e, ask)
		if d.ranking.ActivateBy.IsZero() == ask.Deferred {
			t.Fatalf("%+v", d.ranking)
		}
		if i == 100 {
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			e = open(t, cfg)
		}
		counts := !ask.Deferred
		if ask.Deferred && i%4 == 0 {
			for range 2 {
				if s, err := e.ActivateEvent(t.Context(), "news", ask.Event); s != Accepted || err != nil {
					t.Fatal(i, s, err)
				}
			}
			counts = true
		}
		want := Void
		if counts {
			want = Accepted
			d.steps = 1 << 20
			all = append(all, d)
		}
		if s, err := e.RewardEvent(t.Context(), "news", ask.Event, 1); s != want || err != nil {
			t.Fatalf("the reward of event %d is %v, %v, want %v", i, s, err, want)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e = open(t, cfg)
	settle(t, e, c, time.Second, 25)
	info, _ := e.Get(t.Context(), "news")
	if in := info.Contextual; in.Decisions != len(all) || in.Released < 50 {
		t.Fatalf("%+v, must have %d decisions; it is %s, %s", in, len(all), info.State, info.Reason)
	}
	if want := products(all[:got.released()]); !slices.Equal(got.sums, want) {
		t.Errorf("released %v, must be %v", got.sums, want)
	}
	if x := mustFind(t, e, "news"); len(x.events.offers) > 80 {
		t.Errorf("%d offers are kept", len(x.events.offers))
	}
	if s, err := e.ActivateEvent(t.Context(), "news", "visit 2"); s != Late || err != nil {
		t.Errorf("a late activation is %v, %v", s, err)
	}
}

// What cannot be asked has one error, which names the field, and writes nothing.
func TestContextsRefuse(t *testing.T) {
	c := newClock()
	e := open(t, Config{Store: store.NewMemory().Open, Clock: c.Now})
	begin(t, e, news)
	ask := func(change func(*RankAsk)) RankAsk {
		out := newsAsk(1)
		change(&out)
		return out
	}
	for field, ask := range map[string]RankAsk{
		"event":               ask(func(a *RankAsk) { a.Event = strings.Repeat("x", maxUnit+1) }),
		"actions":             ask(func(a *RankAsk) { a.Actions = nil }),
		"actions[1].id":       ask(func(a *RankAsk) { a.Actions[1].ID = "a0" }),
		"excluded":            ask(func(a *RankAsk) { a.Excluded = []string{"a0", "a1", "a2", "a3"} }),
		"context.device":      ask(func(a *RankAsk) { a.Context["device"] = "toaster" }),
		"context.nothing":     ask(func(a *RankAsk) { a.Context["nothing"] = 1.0 }),
		"actions[2].length":   ask(func(a *RankAsk) { a.Actions[2].Features["length"] = math.NaN() }),
		"actions[3].topic":    ask(func(a *RankAsk) { a.Actions[3].Features["topic"] = 7.0 }),
		"actions[0].whatever": ask(func(a *RankAsk) { a.Actions[0].Features["whatever"] = "x" }),
	} {
		_, err := e.Rank(t.Context(), "news", ask)
		if wrong := (*keyed.Error)(nil); !errors.As(err, &wrong) || wrong.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	if _, err := e.Rank(t.Context(), "news", ask(func(a *RankAsk) {
		a.Excluded = make([]string, maxExcluded+1)
	})); err == nil || !strings.Contains(err.Error(), "has 1001 ids, must have at most 1000") {
		t.Errorf("too many are excluded: %v", err)
	}
	if _, err := e.Decide(t.Context(), "news", "ann"); !errors.Is(err, ErrContextual) {
		t.Errorf("an arm is decided: %v", err)
	}
	if err := e.TakeOff(t.Context(), "news", "a0"); !errors.Is(err, ErrState) {
		t.Errorf("an action is taken off: %v", err)
	}
	if err := e.Stop(t.Context(), "news", "a0"); err == nil {
		t.Error("an action is kept")
	}
	d := decideNews(t, e, newsAsk(1))
	other := newsAsk(1)
	other.Excluded = []string{d.ranking.Action}
	if r, err := e.Rank(t.Context(), "news", other); !errors.Is(err, ErrEventTaken) {
		t.Errorf("what was given is excluded by now: %+v, %v", r, err)
	}
	info, _ := e.Get(t.Context(), "news")
	if info.Contextual.Decisions != 1 {
		t.Errorf("%d decisions", info.Contextual.Decisions)
	}
	if err := e.Pause(t.Context(), "news"); err != nil {
		t.Fatal(err)
	}
	if r, err := e.Rank(t.Context(), "news", newsAsk(1)); err != nil || !alike(r, d.ranking) {
		t.Errorf("asked again in a pause: %+v, %v", r, err)
	}
	if r, err := e.Rank(t.Context(), "news", newsAsk(2)); err != nil || r.Reason != Disabled || r.Action != "a0" {
		t.Errorf("a new one in a pause: %+v, %v", r, err)
	}
}

// An event that is asked for again among other actions keeps the probability that it had, and the
// others get what is left: never less than nothing.
func TestContextsAskedAgainAmongOthers(t *testing.T) {
	e := open(t, Config{Store: store.NewMemory().Open, Clock: newClock().Now})
	begin(t, e, news)
	kinds := map[bool]int{}
	for i := range 400 {
		ask := newsAsk(i)
		all := ask.Actions
		ask.Actions, ask.Excluded = all[:2], nil
		d := decideNews(t, e, ask).ranking
		kinds[d.Propensity > 0.5]++
		for _, then := range [][]Action{all[:2], all, {{ID: d.Action}}, {all[3], {ID: d.Action}, all[2]}} {
			ask.Actions = then
			r, err := e.Rank(t.Context(), "news", ask)
			if err != nil || r.Action != d.Action || r.Propensity != d.Propensity {
				t.Fatalf("%+v, was %+v, %v", r, d, err)
			}
			if len(then) == 2 && !slices.Equal(r.Ranked, d.Ranked) {
				t.Fatalf("%v, was %v", r.Ranked, d.Ranked)
			}
			sum := 0.0
			for _, a := range r.Ranked {
				if a.Probability < 0 || a.ID == d.Action && a.Probability != d.Propensity {
					t.Fatalf("%+v, was %+v", r, d)
				}
				sum += a.Probability
			}
			if len(then) > 1 && math.Abs(sum-1) > 1e-12 {
				t.Fatalf("%+v has probabilities of %v in all, was %+v", r, sum, d)
			}
		}
	}
	if kinds[false] < 5 || kinds[true] < 5 { // 40 and 360 are expected: below 1e-9 by chance
		t.Errorf("%v", kinds)
	}
}

// Who was erased is not ranked again, and nothing that was theirs is there but their decision's vector,
// which has no name, until it is released.
func TestContextsErase(t *testing.T) {
	c := newClock()
	cfg := Config{Store: store.NewMemory().Open, Clock: c.Now}
	e := open(t, cfg)
	begin(t, e, news)
	for i := range 10 {
		decideNews(t, e, newsAsk(i))
	}
	for _, event := range []string{"visit 3", "visit 30"} {
		if err := e.Erase(t.Context(), "news", event); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		for _, i := range []int{3, 30} {
			if r, err := e.Rank(t.Context(), "news", newsAsk(i)); err != nil || r.Reason != Default || r.Action != newsAsk(i).Actions[i/30].ID {
				t.Errorf("who was erased is given %+v, %v", r, err)
			}
			if _, err := e.RewardEvent(t.Context(), "news", newsAsk(i).Event, 1); !errors.Is(err, ErrEvent) {
				t.Errorf("who was erased has a reward: %v", err)
			}
		}
		x := mustFind(t, e, "news")
		if n := len(x.events.of); n != 9 {
			t.Errorf("%d events are kept, must be 9", n)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		e = open(t, cfg)
	}
	info, _ := e.Get(t.Context(), "news")
	if info.State != Running || info.Contextual.Decisions != 10 {
		t.Errorf("%+v", info)
	}
}

// visitNews has so many visitors come, five a second, of whom some are pleased.
func visitNews(t testing.TB, e *Engine, c *clock.Manual, from, n int) {
	t.Helper()
	src := rand.New(rand.NewPCG(1, uint64(from)))
	for i := from; i < from+n; i++ {
		settle(t, e, c, 200*time.Millisecond, 1)
		r, err := e.Rank(t.Context(), "news", newsAsk(i))
		if err != nil {
			t.Fatal(err)
		}
		if r.Reason == Split && src.Float64() < 0.5 {
			if s, err := e.RewardEvent(t.Context(), "news", r.Event, src.Float64()); s != Accepted || err != nil {
				t.Fatal(s, err)
			}
		}
	}
}

// What everybody may read of an experiment with contexts, over restarts, with terms that change, is
// played again to what the service says of it, to its end.
func TestReplayContexts(t *testing.T) {
	c, mem := newClock(), store.NewMemory()
	cfg := Config{Store: mem.Open, Clock: c.Now}
	e := open(t, cfg)
	begin(t, e, strings.Replace(news, "horizon: 100000", "horizon: 250", 1))
	replayed := func() *Replayed {
		t.Helper()
		info, err := e.Get(t.Context(), "news")
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Join(newsTranscript(t, e), "\n") + "\n"
		r, err := Replay(strings.NewReader(text), catalog.Catalog{})
		if err != nil {
			t.Fatalf("%v:\n%s", err, text)
		}
		info.Contextual.Decisions = 0
		if !reflect.DeepEqual(r.Contextual, info.Contextual) || r.Tip != info.Tip || r.Lines != info.Lines ||
			r.Spent.String() != info.Spent.String() || r.Batches != info.Batches || r.Keep != -1 {
			t.Errorf("%s%+v, must be %+v", cmp.Diff(r.Contextual, info.Contextual), *r, info)
		}
		return r
	}
	for n := range 3 {
		visitNews(t, e, c, 80*n, 80)
		floor := 0.1 + float64(n)/10
		if err := e.Change(t.Context(), "news", Change{Floor: &floor}); err != nil {
			t.Fatal(err)
		}
		settle(t, e, c, time.Second, 4)
		if r := replayed(); r.End != "" || r.Experiment.Floor != floor {
			t.Errorf("end %q, floor %v, must be %v", r.End, r.Experiment.Floor, floor)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		e = open(t, cfg)
	}
	visitNews(t, e, c, 240, 20)
	info, _ := e.Get(t.Context(), "news")
	if info.State != Waiting || info.Wait != "rewards" || info.Contextual.Decisions != 250 {
		t.Errorf("when the horizon is reached it is %s, waits for %q and has %d decisions", info.State, info.Wait,
			info.Contextual.Decisions)
	}
	settle(t, e, c, time.Second, 40)
	if r := replayed(); r.End != "policy" || r.Contextual.Released != 250 {
		t.Errorf("%+v, %+v", r, r.Contextual)
	}
	var batches []Batch
	all, err := e.Batches(t.Context(), "news", 0)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for b, err := range all {
		if err != nil {
			t.Fatal(err)
		}
		if batches = append(batches, b); b.Change == nil {
			n += b.Plays[0].Rounds
			if len(b.Released) != 5 || b.Released[1].Metric != "first" {
				t.Errorf("%+v", b)
			}
		}
	}
	if n != 250 {
		t.Errorf("batches have %d decisions: %+v", n, batches)
	}
	if r, err := e.Rank(t.Context(), "news", newsAsk(900)); err != nil || r.Reason != Static {
		t.Errorf("%+v, %v", r, err)
	}
}

func newsTranscript(t testing.TB, e *Engine) (out []string) {
	t.Helper()
	lines, err := e.Transcript(t.Context(), "news")
	if err != nil {
		t.Fatal(err)
	}
	for line, err := range lines {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, strings.TrimSuffix(string(line), "\n"))
	}
	return out
}

// A line of contexts that was altered, dropped, doubled or moved is found by Replay and by the
// service that starts, and one that was changed with all behind it linked anew by what the policy
// and the curators would have done otherwise.
func TestDamagedContexts(t *testing.T) {
	c, mem := newClock(), store.NewMemory()
	cfg := Config{Store: mem.Open, Clock: c.Now}
	e := open(t, cfg)
	begin(t, e, news)
	visitNews(t, e, c, 0, 70)
	stopped(t, e, c, "news", "")
	var lines []string
	for _, line := range newsTranscript(t, e) {
		lines = append(lines, line+"\n")
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Replay(strings.NewReader(relinked(lines)), catalog.Catalog{}); err != nil || len(lines) < 5 {
		t.Fatal(len(lines), err)
	}
	for name, damage := range damages(lines) {
		damaged, _ := damage()
		_, err := Replay(strings.NewReader(strings.Join(damaged, "")), catalog.Catalog{})
		last := fmt.Sprintf("%d of %[1]d", len(lines))
		if !errors.Is(err, ErrTranscript) && name != "dropped "+last {
			t.Errorf("%s: %v", name, err)
		}
		e := open(t, Config{Clock: c.Now, Store: func(ctx context.Context) (store.Store, error) {
			s, err := mem.Open(ctx)
			return tampered{s, damaged}, err
		}})
		info, err := e.Get(t.Context(), "news")
		if err != nil || info.Reason == "" {
			t.Errorf("%s: the service says %s, %q, %v", name, info.State, info.Reason, err)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	text := strings.Join(lines, "")
	weights := regexp.MustCompile(`"weights":\d+`).FindString(text)
	for _, f := range []struct{ from, to string }{
		{`"n":`, `"n":1`},
		{`"gram":[`, `"gram":[1`},
		{`"gram":[`, `"gram":[0,`},
		{`"sigma":`, `"sigma":1`},
		{`"vector":[`, `"vector":[1,`},
		{`"slot":1`, `"slot":0`},
		{`"slots":[1]`, `"slots":[2]`},
		{weights, weights + "00000"},
		{`"squares":`, `"squares":9`},
		{`"keep":-1`, `"keep":0`},
		{`"end":"operator"`, `"end":"policy"`},
	} {
		if forged := strings.Replace(text, f.from, f.to, 1); forged == text {
			t.Errorf("there is no %s", f.from)
		} else if _, err := Replay(strings.NewReader(relinked(strings.SplitAfter(forged, "\n"))),
			catalog.Catalog{}); !errors.Is(err, ErrTranscript) {
			t.Errorf("%s for %s: %v", f.to, f.from, err)
		}
	}
}

// deaf is a curator that hears no reward.
type deaf struct{ release.StepFeatureCurator }

func (c deaf) AddSteps(slot, n int, sums []int64) error {
	return c.StepFeatureCurator.AddSteps(slot, n, make([]int64, len(sums)))
}

// The service learns which topic is for which device, also where the first action is excluded; one
// that hears no reward does not. Past its horizon it gives the first action, or if that is kept what it has
// learnt, without a floor; without a horizon it goes on. Everything is drawn from fixed seeds.
func TestContextsLearn(t *testing.T) {
	const visitors, last = 3000, 1000
	for _, c := range []struct {
		name, horizon string
		deaf          bool
		least, most   float64 // of 0.9 that there is to be won
	}{
		{"it learns", "horizon: 100000", false, 0.75, 0.9}, {"it hears nothing", "horizon: 100000", true, 0, 0.65},
		{"past its horizon", "horizon: 1500", false, 0.45, 0.55},
		{"past its horizon, kept", "horizon: 1500\nstop: {keep: policy}", false, 0.85, 0.9},
		{"without a horizon", "", false, 0.75, 0.9},
	} {
		at, src := newClock(), rand.New(rand.NewPCG(3, 4))
		coins := noise.NewFast(5, 2)
		e := open(t, Config{Store: store.NewMemory().Open, Clock: at.Now, random: rand.NewChaCha8([32]byte{7}),
			Curator: silent(func(int, int, int64) {}),
			VectorCurator: func(fc release.FeatureConfig) (release.FeatureCurator, error) {
				cur, err := release.SimulatedFeatures(fc, &coins)
				if err == nil && c.deaf {
					cur = deaf{cur.(release.StepFeatureCurator)}
				}
				return cur, err
			}})
		begin(t, e, strings.NewReplacer("greed: 1", "greed: 1, lambda: 30", "horizon: 100000", c.horizon).Replace(news))
		won := 0.0
		for i := range visitors {
			ask := newsAsk(i)
			r, err := e.Rank(t.Context(), "news", ask)
			if err != nil {
				t.Fatal(err)
			}
			p := 0.1 // sport, the odd actions, is for phones, which the even visitors have
			if (r.Action == "a1" || r.Action == "a3") == (i%2 == 0) {
				p = 0.9
			}
			if src.Float64() < p && r.Reason == Split {
				if _, err := e.RewardEvent(t.Context(), "news", ask.Event, 1); err != nil {
					t.Fatal(err)
				}
			}
			if i >= visitors-last {
				won += p / last
			}
			if i%20 == 19 {
				settle(t, e, at, time.Second, 1)
			}
		}
		if t.Logf("%s: %.2f a decision", c.name, won); !(won >= c.least && won <= c.most+1e-9) {
			t.Errorf("%s: it wins %.3f a decision, must be from %v to %v", c.name, won, c.least, c.most)
		}
	}
}

// Who has stopped keeps no sum of rewards in memory, nor noise.
func TestEndForgetsThePlay(t *testing.T) {
	for name, text := range map[string]string{"news": news, "clinic": clinic, "shop": shop} {
		c := newClock()
		e := open(t, Config{Store: store.NewMemory().Open, Clock: c.Now})
		begin(t, e, text)
		in := regexp.MustCompile(`name: (\w+)`).FindStringSubmatch(text)[1]
		x, err := e.find(in)
		if err != nil {
			t.Fatal(err)
		}
		running := func() bool {
			x.mu.Lock()
			defer x.mu.Unlock()
			return x.play != nil
		}
		if !running() {
			t.Errorf("%s does not run", name)
		}
		if err := e.Stop(t.Context(), in, ""); err != nil {
			t.Fatal(err)
		}
		if running() {
			t.Errorf("%s has stopped, and its play is there", name)
		}
		settle(t, e, c, time.Second, 3)
		if info, err := e.Get(t.Context(), in); err != nil || info.State != Stopped {
			t.Errorf("%s: %+v, %v", name, info, err)
		}
	}
}
