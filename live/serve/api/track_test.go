package api

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/client"
	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/live/serve/store"
	"github.com/sotto-dp/sotto/release"
)

// heardShop is an experiment whose numbers are of events, and that is at its first release when all has passed.
var heardShop = strings.Replace(shop, "default: 0", "default: 0, event: checkout", 1) + tracked

// A teller tells what goes into releases, before there is noise in it.
type teller struct {
	release.StepCurator
	tell func(n int, steps int64)
}

func (c teller) AddSteps(arm, n int, steps int64) error {
	c.tell(n, steps)
	return c.StepCurator.AddSteps(arm, n, steps)
}

// tracksTo has 16 units decide and events come: of the rewards and of the baskets that is what is released.
func tracksTo(t *testing.T, text string, track func(w *world)) (sums [2]float64) {
	t.Helper()
	n := 0
	w := newWorldOf(t, serve.Config{Store: store.NewMemory().Open, Curator: func(c release.Config) (release.Curator, error) {
		cur, err := seeded(c)
		of := 0
		if c.Hi == 4 {
			of = 1
		}
		return teller{cur.(release.StepCurator), func(more int, steps int64) {
			n += more
			sums[of] += float64(steps) / (1 << 20)
		}}, err
	}})
	w.want(201, "POST", "/v1/experiments", text)
	w.want(200, "POST", "/v1/experiments/shop/start", "")
	for i := range 16 {
		w.decide(fmt.Sprint("unit ", i))
	}
	admin := w.key
	track(w)
	w.key = admin
	w.pass(2 * time.Minute)
	w.want(200, "POST", "/v1/experiments/shop/stop", "")
	for range 3 {
		w.pass(time.Second)
	}
	if n < 2*16 {
		t.Fatalf("%d numbers are released, must be those of 16 decisions at least", n)
	}
	sums[1] *= 4
	return sums
}

// Events count as what they say: a value or 1, a field or its default, once, and by whoever may name the unit.
func TestTrack(t *testing.T) {
	got := tracksTo(t, heardShop, func(w *world) {
		send := func(events string) { w.want(202, "POST", "/v1/track", `{"events": [`+events+`]}`) }
		send(`{"name": "checkout", "targetingKey": "unit 0", "total": 3}, {"name": "checkout", "targetingKey": "unit 0", "total": 1},
			{"name": "checkout", "targetingKey": "unit 1", "value": 0.5, "order": {"id": 7}}`)
		send(`{"name": "checkout", "targetingKey": "unit 2", "value": null, "total": true, "timestamp": 1000000000000}`)
		// before its decision
		send(`{"name": "checkout", "targetingKey": "unit 3", "total": 4, "timestamp": "2001-09-09T01:46:39.999Z"}`)
		send(`{"name": "checkout", "targetingKey": "nobody"}, {"name": "other", "targetingKey": "unit 4"}`)
		w.key = w.keyWith(browserScopes)
		sign := w.keyWith(serve.ScopeSign)
		soon := w.clock.Now().Add(time.Minute)
		for i, of := range []string{"shop", serve.AnyExperiment} {
			send(fmt.Sprintf(`{"name": "checkout", "targetingKey": %q}`, client.SignUnit(sign, of, fmt.Sprint("unit ", 5+i), soon)))
		}
	})
	if got != [2]float64{4.5, 4} { // 1 + .5 + 1 + 1 + 1, and 3 + 1
		t.Errorf("%v", got)
	}
}

// What a key of another experiment, or a unit that was signed for one, tracks counts nowhere.
func TestTrackElsewhere(t *testing.T) {
	got := tracksTo(t, heardShop, func(w *world) {
		w.want(201, "POST", "/v1/experiments", strings.Replace(shop, "name: shop", "name: other", 1))
		own := w.keyOf("other")
		admin := w.key
		w.key = own[len(own)-1]
		w.want(202, "POST", "/v1/track", event("checkout", "unit 0", "1"))
		w.key = admin
		sign := w.keyWith(serve.ScopeSign)
		w.key = w.keyWith(browserScopes)
		w.want(202, "POST", "/v1/track", event("checkout", client.SignUnit(sign, "other", "unit 1",
			w.clock.Now().Add(time.Minute)), "1"))
	})
	if got != [2]float64{} {
		t.Errorf("%v", got)
	}
}

// What is wrong with a request is told by its form alone, with its place and without its value.
func TestTrackRefuses(t *testing.T) {
	w := shopOpen(t)
	browser := w.keyWith(browserScopes)
	for _, c := range []struct {
		body, key, field string
		status           int
	}{
		{`{}`, w.key, "events", 400}, {`{"events": []}`, w.key, "events", 400},
		{`{"events": [` + strings.Repeat(`{"name": "x"},`, 1000) + `{"name": "x"}]}`, w.key, "events", 400},
		{`{"events": [null]}`, w.key, "events[0].name", 400},
		{`{"events": [{"name": "x", "targetingKey": "ann"}, {"targetingKey": "ann"}]}`, w.key, "events[1].name", 400},
		{`{"events": [{"name": "x"}]}`, w.key, "events[0].targetingKey", 400},
		{`{"events": [{"name": 6543, "targetingKey": "ann"}]}`, w.key, "events[0].name", 400},
		{`{"events": [{"name": "x", "targetingKey": 6543}]}`, w.key, "events[0].targetingKey", 400},
		{`{"events": [{"name": "x", "targetingKey": "` + strings.Repeat("6543", 1025) + `"}]}`, w.key, "events[0].targetingKey", 400},
		{`{"events": [{"name": "x", "targetingKey": "a\ufffd6543"}]}`, w.key, "events[0].targetingKey", 400},
		{`{"events": [{"name": "x", "targetingKey": "ann", "value": "6543"}]}`, w.key, "events[0].value", 400},
		{`{"events": [{"name": "x", "targetingKey": "ann", "value": 6543e999}]}`, w.key, "events[0].value", 400},
		{`{"events": [{"name": "x", "targetingKey": "ann", "timestamp": "6543"}]}`, w.key, "events[0].timestamp", 400},
		{`{"events": [{"name": "x", "targetingKey": "ann", "id": 6543}]}`, w.key, "events[0].id", 400},
		{`{"events": [{"name": "x", "targetingKey": "ann", "id": "1", "id": "6543"}]}`, w.key, "", 400},
		{`{"events": [{"name": "x"}]} 6543`, w.key, "", 400}, {`6543`, w.key, "", 400},
		{`{"events": "6543"}`, w.key, "events", 400},
		{`{"events": [{"name": "x", "targetingKey": "ann"}]}`, browser, "events[0].targetingKey", 403},
		{`{"events": [{"name": "x"}]}`, browser, "events[0].targetingKey", 400},
		{`{"events": [{"name": "x", "targetingKey": "ann"}]}`, "sotto_unknown", "", 401},
		{`{"events": [{"name": "x", "targetingKey": "ann"}]}`, w.keyWith(serve.ScopeDecide), "", 403},
		{strings.Repeat(" ", maxBatch) + `{}`, w.key, "", 413},
	} {
		out := w.ask("POST", "/v1/track", c.body, "X-API-Key", c.key)
		if out.Code != c.status || !strings.Contains(out.Body.String(), c.field) || strings.Contains(out.Body.String(), "6543") {
			t.Errorf("%.80s: %d %s, want %d %s", c.body, out.Code, out.Body, c.status, c.field)
		}
	}
	if w.log.Len() > 0 {
		t.Errorf("the log has %s", w.log.String())
	}
}

// A browser's events are those of the unit that the service's cookie names, and its own signed units.
func TestTrackByCookie(t *testing.T) {
	got := tracksTo(t, heardShop, func(w *world) {
		w.key = w.keyWith(browserScopes)
		unit, cookie, err := w.engine.NewCookie()
		if err != nil {
			t.Fatal(err)
		}
		if d, err := w.engine.Decide(t.Context(), "shop", unit); err != nil || d.Token == "" {
			t.Fatal(d, err)
		}
		w.want(202, "POST", "/v1/track", `{"events": [{"name": "checkout", "total": 2}]}`, "Cookie",
			(&http.Cookie{Name: cookieName, Value: cookie}).String())
	})
	if got != [2]float64{1, 2} {
		t.Errorf("%v", got)
	}
}
