package serve

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/feature"
	"github.com/sotto-dp/sotto/internal/clock"
	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/live/serve/store"
)

// givenBest asks for events that are new, and says that each is given what the model says, for good, with no
// coin, and that none counts.
func givenBest(t *testing.T, e *Engine, from int, m *feature.Model) {
	t.Helper()
	before, err := e.Get(t.Context(), "news")
	if err != nil {
		t.Fatal(err)
	}
	for i := from; i < from+40; i++ {
		ask := newsAsk(i)
		r, err := e.Rank(t.Context(), "news", ask)
		best, wrong := m.Best(ask.Context, ask.Actions, ask.Excluded...)
		if err != nil || wrong != nil || r.Action != ask.Actions[best].ID || r.Reason != Static || r.Propensity != 1 ||
			!r.Expires.IsZero() || r.Ranked[best].Probability != 1 {
			t.Fatalf("%d is given %+v, must be %s; %v, %v", i, r, ask.Actions[best].ID, err, wrong)
		}
		if s, err := e.RewardEvent(t.Context(), "news", ask.Event, 1); !errors.Is(err, ErrEvent) {
			t.Fatalf("its reward: %v, %v", s, err)
		}
	}
	after, err := e.Get(t.Context(), "news")
	if err != nil || after.Contextual.Decisions != before.Contextual.Decisions || after.Spent.String() != before.Spent.String() {
		t.Errorf("%+v, then %+v, %v", before.Contextual, after.Contextual, err)
	}
}

func modelOfNews(t *testing.T, e *Engine) *feature.Model {
	t.Helper()
	m, err := e.Model(t.Context(), "news")
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func textOf(t *testing.T, m *feature.Model) string {
	t.Helper()
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// What was learnt of contexts is kept: while the experiment stops, by what was released by then, and from its
// last release on for ever, over restarts, to readers and in the archive, the same that a transcript says.
func TestKeepPolicy(t *testing.T) {
	testkit.RacedBefore(t)
	const keep = "stop: {keep: policy}\n"
	few := strings.NewReplacer("horizon: 100000", "horizon: 160")
	for name, c := range map[string]struct {
		text string
		stop func(e *Engine, at *clock.Manual) error
		why  string
	}{
		"by an operator": {news, func(e *Engine, _ *clock.Manual) error { return e.Stop(t.Context(), "news", "policy") }, "operator"},
		"declared":       {news + keep, func(e *Engine, _ *clock.Manual) error { return e.Stop(t.Context(), "news", "") }, "operator"},
		"now":            {news, func(e *Engine, _ *clock.Manual) error { return e.StopNow(t.Context(), "news", "policy", "news") }, "operator"},
		"at its end": {news + keep + "end: 2001-09-09T01:47:30Z\n", func(e *Engine, at *clock.Manual) error {
			at.Add(20 * time.Second)
			return e.Sync(t.Context())
		}, "date"},
		"at its horizon": {few.Replace(news) + keep, func(*Engine, *clock.Manual) error { return nil }, "policy"},
		"the apprentice": {strings.Replace(news, "actions: 8", "mode: apprentice", 1) + keep, func(e *Engine, _ *clock.Manual) error {
			return e.Stop(t.Context(), "news", "")
		}, "operator"},
		"joint": {strings.Replace(clinic, "horizon: 1000", "horizon: 160", 1) + keep, func(e *Engine, _ *clock.Manual) error {
			return e.Stop(t.Context(), "news", "policy")
		}, "operator"},
	} {
		t.Run(name, func(t *testing.T) {
			at, mem := newClock(), store.NewMemory()
			cfg := Config{Store: mem.Open, Clock: at.Now}
			e := open(t, cfg)
			begin(t, e, c.text)
			if _, err := e.Model(t.Context(), "news"); !errors.Is(err, ErrState) || !strings.Contains(err.Error(), "nothing was released yet") {
				t.Errorf("a model of nothing: %v", err)
			}
			visitNews(t, e, at, 0, 160)
			if err := c.stop(e, at); err != nil {
				t.Fatal(err)
			}
			for n := 0; ; n++ {
				info, err := e.Get(t.Context(), "news")
				if err != nil || n == 40 {
					t.Fatalf("%+v, %v", info, err)
				}
				if n%5 == 0 || info.State == Stopped {
					givenBest(t, e, 1000, modelOfNews(t, e))
				}
				if info.State == Stopped {
					if !info.Policy || info.Keep != -1 || info.Why != c.why {
						t.Errorf("%+v", info)
					}
					break
				}
				settle(t, e, at, time.Second, 1)
				e = open(t, cfg)
			}
			m := modelOfNews(t, e)
			again, err := Replay(strings.NewReader(strings.Join(newsTranscript(t, e), "\n")+"\n"), catalog.Catalog{})
			if err != nil {
				t.Fatal(err)
			}
			text := textOf(t, m)
			if replayed, err := again.Model(); err != nil || !again.Policy || textOf(t, replayed) != text {
				t.Errorf("%v: %+v, and the service %s", err, replayed, text)
			}
			info, err := e.Get(t.Context(), "news")
			if err != nil || m.Release != info.Contextual.Releases || m.Decisions != info.Contextual.Released {
				t.Errorf("%+v, of %+v, %v", m, info.Contextual, err)
			}
			if read, err := feature.ReadModel([]byte(text)); err != nil || textOf(t, read) != text {
				t.Errorf("%v: %+v", err, read)
			}
			if err := e.Archive(t.Context(), "news"); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				givenBest(t, e, 2000, m)
				e = open(t, cfg)
			}
			cfg.ReadOnly = true
			if r := textOf(t, modelOfNews(t, open(t, cfg))); r != text {
				t.Errorf("a reader has %s", r)
			}
		})
	}
}

// Who only reads has the model of what runs from its lines.
func TestModelOfReaders(t *testing.T) {
	at, mem := newClock(), store.NewMemory()
	e := open(t, Config{Store: mem.Open, Clock: at.Now})
	begin(t, e, news)
	visitNews(t, e, at, 0, 200)
	settle(t, e, at, time.Second, 15)
	reader := open(t, Config{Store: mem.Open, Clock: at.Now, ReadOnly: true})
	if m, r := textOf(t, modelOfNews(t, e)), textOf(t, modelOfNews(t, reader)); m != r {
		t.Errorf("%s, and a reader has %s", m, r)
	}
}

// Effects are the model's differences, within intervals where a theorem has some, the same whoever plays or reads
// the transcript: while it runs, to readers, and after its end.
func TestEffects(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		known bool
	}{
		"adac-oful":  {news, true},
		"dp-lin-ts":  {strings.Replace(news, "policy: {policy: adac-oful, greed: 1}\n", "", 1), true},
		"lin-ucb":    {clinic, true},
		"jdp-greedy": {strings.Replace(clinic, "policy: lin-ucb, leaf: 10, greed: 1", "policy: jdp-greedy, leaf: 100", 1), true},
		"histogram":  {tallied, false},
	} {
		t.Run(name, func(t *testing.T) {
			at, mem := newClock(), store.NewMemory()
			e := open(t, Config{Store: mem.Open, Clock: at.Now})
			begin(t, e, c.text)
			if x, err := e.Effects(t.Context(), "news"); x != nil || err != nil {
				t.Errorf("of nothing: %+v, %v", x, err)
			}
			visitNews(t, e, at, 0, 400)
			settle(t, e, at, time.Second, 15)
			effects := func(e *Engine) string {
				x, err := e.Effects(t.Context(), "news")
				if err != nil || x == nil {
					t.Fatal(x, err)
				}
				text, err := json.Marshal(x)
				if err != nil {
					t.Fatal(err)
				}
				return string(text)
			}
			x, err := e.Effects(t.Context(), "news")
			if err != nil || x == nil || x.All != len(x.Each) || x.All < 3 || x.Intervals != c.known {
				t.Fatalf("%+v, %v", x, err)
			}
			m := modelOfNews(t, e)
			best := func(device, topic string) (score float64) { // the rewards' range is 1, so half of the product's
				v, err := mustFind(t, e, "news").events.mapper.Vectors(nil, map[string]any{"device": device},
					[]feature.Action{{ID: "a", Features: map[string]any{"topic": topic, "length": 0.0}}})
				if err != nil {
					t.Fatal(err)
				}
				for i, y := range v {
					score += y * m.Theta[i] / 2
				}
				return score
			}
			for _, f := range x.Each {
				if (f.Interval != nil) != c.known || c.known && math.Abs(f.Mean-(f.Interval[0]+f.Interval[1])/2) > 1e-12 {
					t.Errorf("%+v", f)
				}
				if want := best("phone", "sport") - best("phone", "war"); f.Name == "topic=sport" && f.Against == "topic=war" &&
					(math.Abs(f.Mean-want) < 1e-9) != (name != "dp-lin-ts") { // which plays by another than its theorem's
					t.Errorf("%+v, and the model has %v", f, want)
				}
			}
			running := effects(e)
			if r := effects(open(t, Config{Store: mem.Open, Clock: at.Now, ReadOnly: true})); r != running {
				t.Errorf("%s, and a reader has %s", running, r)
			}
			if e = open(t, Config{Store: mem.Open, Clock: at.Now}); effects(e) != running {
				t.Errorf("%s, and after a start %s", running, effects(e))
			}
			if err := e.Stop(t.Context(), "news", "policy"); err != nil {
				t.Fatal(err)
			}
			settle(t, e, at, time.Second, 30)
			ended := effects(e)
			if again := open(t, Config{Store: mem.Open, Clock: at.Now}); effects(again) != ended {
				t.Errorf("%s at its end, and later %s", ended, effects(again))
			}
		})
	}
	e := open(t, Config{Store: store.NewMemory().Open})
	begin(t, e, shop)
	if x, err := e.Effects(t.Context(), "shop"); x != nil || err != nil {
		t.Errorf("of arms: %+v, %v", x, err)
	}
}

// What cannot be kept is refused by one error, or falls back to the first action if nothing was learnt.
func TestKeepPolicyRefuses(t *testing.T) {
	at := newClock()
	e := open(t, Config{Store: store.NewMemory().Open, Clock: at.Now})
	begin(t, e, shop)
	begin(t, e, news+"stop: {keep: policy}\n")
	for keep, says := range map[string]string{"policy": `keep: is "policy", must be one of the experiment's arms, or leader`} {
		if err := e.Stop(t.Context(), "shop", keep); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, must say %s", err, says)
		}
	}
	var wrong *keyed.Error
	if err := e.Stop(t.Context(), "news", "a1"); !errors.As(err, &wrong) || wrong.Field != "keep" ||
		!strings.Contains(err.Error(), `is "a1", and the experiment has no arms, must be policy, or left out`) {
		t.Error(err)
	}
	if _, err := e.Model(t.Context(), "shop"); !errors.Is(err, ErrState) || !strings.Contains(err.Error(), "model: it has arms") {
		t.Error(err)
	}
	if _, err := e.Model(t.Context(), "none"); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	if err := e.Stop(t.Context(), "news", ""); err != nil {
		t.Fatal(err)
	}
	settle(t, e, at, time.Second, 2)
	info, err := e.Get(t.Context(), "news")
	if err != nil || info.State != Stopped || info.Policy {
		t.Errorf("%+v, %v", info, err)
	}
	if r, err := e.Rank(t.Context(), "news", newsAsk(1)); err != nil || r.Action != "a0" || r.Reason != Static {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := Replay(strings.NewReader(strings.Replace(strings.Join(newsTranscript(t, e), "\n")+"\n", `"keep":-1`,
		`"keep":-1,"policy":true`, 1)), catalog.Catalog{}); !errors.Is(err, ErrTranscript) || !strings.Contains(fmt.Sprint(err), "which is nothing") {
		t.Error(err)
	}
}
