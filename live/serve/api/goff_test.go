package api

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/client"
	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/live/serve/compat"
)

// collected are events for the collector: a purchase of each unit, and that it saw a flag.
func collected(units ...string) string {
	var all []string
	for _, u := range units {
		all = append(all, fmt.Sprintf(`{"kind": "feature", "userKey": %q, "key": "shop", "variation": "red", "value": 1}, `+
			`{"kind": "tracking", "userKey": %[1]q, "key": "checkout", "creationDate": 1000000000}`, u))
	}
	return `{"meta": {"provider": "web"}, "events": [` + strings.Join(all, ", ") + `]}`
}

// Of what the collector gets the events of kind tracking count, once, at a time of seconds that a decision of the
// same second is not after.
func TestCollector(t *testing.T) {
	got := tracksTo(t, heardShop, func(w *world) {
		send := func(body string, n int) {
			if got := w.want(200, "POST", compat.CollectorPath, body); got != fmt.Sprintf("{\"ingestedContentCount\":%d}\n", n) {
				t.Error(got)
			}
		}
		one := func(unit, more string) string {
			return fmt.Sprintf(`{"events": [{"kind": "tracking", "key": "checkout", "userKey": %q%s}]}`, unit, more)
		}
		send(collected("unit 0", "nobody"), 4)
		send(collected("unit 0"), 2)
		send(one("unit 1", `, "trackingEventDetails": {"value": 0.5, "total": 3, "sku": "x"}`), 1)
		send(one("unit 2", `, "creationDate": 999999999`), 1)     // the second before its decision
		send(one("unit 3", `, "creationDate": 1000000000000`), 1) // in milliseconds
		send(`{"events": []}`, 0)
		sign := w.keyWith(serve.ScopeSign)
		w.key = w.keyWith(browserScopes)
		send(one(client.SignUnit(sign, "shop", "unit 4", w.clock.Now().Add(time.Minute)), ""), 1)
	})
	if got != [2]float64{1 + .5 + 1 + 1, 3} {
		t.Errorf("%v", got)
	}
}

// A flag is answered as the relay proxy answers: with 200 and the client's own value where there is none.
func TestGOFF(t *testing.T) {
	w := newWorld(t)
	w.want(201, "POST", "/v1/experiments", strings.Replace(shop, `{hex: "#00c", n: 3}`, `"#00c"`, 1))
	w.want(200, "POST", "/v1/experiments/shop/start", "")
	asks := func(flag, more string) (out compat.GOFFAnswer) {
		t.Helper()
		text := w.want(200, "POST", "/v1/feature/"+flag+"/eval", `{"user": {"key": "ann", "anonymous": true, "custom": {}}`+more+`}`)
		if err := json.Unmarshal([]byte(text), &out); err != nil || out.Cacheable {
			t.Fatal(text, err)
		}
		return out
	}
	none := asks("none", `, "defaultValue": {"a": 1}`)
	if !none.Failed || none.Code != "FLAG_NOT_FOUND" || string(none.Value) != `{"a":1}` || none.Reason != "ERROR" {
		t.Errorf("%+v", none)
	}
	before := w.want(200, "GET", "/v1/experiments/shop", "")
	if other := asks("shop", `, "defaultValue": true`); other.Code != "TYPE_MISMATCH" || string(other.Value) != "true" {
		t.Errorf("%+v", other)
	}
	if after := w.want(200, "GET", "/v1/experiments/shop", ""); after != before {
		t.Error("a decision was made for who shows another value")
	}
	one := asks("shop", `, "defaultValue": "x"`)
	var all compat.GOFFFlags
	text := w.want(200, "POST", compat.GOFFAllPath, `{"evaluationContext": {"key": "ann"}}`)
	if err := json.Unmarshal([]byte(text), &all); err != nil || !all.Valid || len(all.Flags) != 1 ||
		string(all.Flags["shop"].Value) != string(one.Value) || all.Flags["shop"].Metadata["decision"] !=
		one.Metadata["decision"] || one.Metadata["decision"] == nil || one.Reason != "SPLIT" || one.Failed {
		t.Errorf("%s, alone %+v, %v", text, one, err)
	}
}

// What is wrong is told in the relay proxy's words, by its form alone, and without its value.
func TestGOFFRefuses(t *testing.T) {
	w := shopOpen(t)
	for _, c := range []struct {
		path, body, key, want string
		status                int
	}{
		{"/v1/feature/shop/eval", `{}`, w.key, "evaluationContext", 400},
		{"/v1/feature/shop/eval", `{"user": {"key": ""}}`, w.key, "user.key", 400},
		{"/v1/feature/shop/eval", `{"user": {"key": 6543}}`, w.key, "user.key", 400},
		{"/v1/feature/shop/eval", `{"user": {"key": "a\ufffd6543"}}`, w.key, "key", 400},
		{"/v1/feature/shop/eval", `{"user": {"key": "ann", "custom": {"consent": "6543"}}}`, w.key, "consent", 400},
		{compat.GOFFAllPath, `6543`, w.key, "", 400},
		{compat.GOFFAllPath, `{"user": {"key": "ann"}}`, "sotto_unknown", "", 401},
		{compat.GOFFAllPath, `{"user": {"key": "ann"}}`, w.keyWith(browserScopes), "", 403},
		{compat.CollectorPath, `{}`, w.key, "events", 400},
		{compat.CollectorPath, `{"events": [6543]}`, w.key, "events[0].kind", 400},
		{compat.CollectorPath, `{"events": [{"kind": "tracking", "key": "x"}]}`, w.key, "events[0].userKey", 400},
		{compat.CollectorPath, `{"events": [{"kind": "tracking", "userKey": "ann"}]}`, w.key, "events[0].key", 400},
		{compat.CollectorPath, `{"events": [{"kind": "tracking", "key": "x", "userKey": "ann", "creationDate": "6543"}]}`, w.key,
			"events[0].creationDate", 400},
		{compat.CollectorPath, `{"events": [{"kind": "tracking", "key": "x", "userKey": "ann",
			"trackingEventDetails": {"value": "6543"}}]}`, w.key, "events[0].trackingEventDetails.value", 400},
		{compat.CollectorPath, `{"events": []}`, w.keyWith(serve.ScopeDecide), "", 403},
		{compat.CollectorPath, strings.Repeat(" ", compat.MaxCollected) + `{}`, w.key, "", 413},
	} {
		out := w.ask("POST", c.path, c.body, "X-API-Key", c.key)
		if out.Code != c.status || !strings.Contains(out.Body.String(), c.want) || strings.Contains(out.Body.String(), "6543") ||
			!strings.HasPrefix(out.Body.String(), `{"message":`) {
			t.Errorf("%s %.80s: %d %s, want %d %s", c.path, c.body, out.Code, out.Body, c.status, c.want)
		}
	}
	if w.log.Len() > 0 {
		t.Errorf("the log has %s", w.log.String())
	}
}
