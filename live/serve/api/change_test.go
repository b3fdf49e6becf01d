package api

import (
	"encoding/json"
	"fmt"
	"github.com/sotto-dp/sotto/live/decl"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// What may change of a running experiment changes with the next public tick; what its guarantee is
// made of is refused with the reason and the field, and nothing of such a request is done.
func TestChange(t *testing.T) {
	w := shopOpen(t)
	const x = "/v1/experiments/shop"
	for _, bad := range []struct {
		body   string
		status int
		field  string
		why    string
	}{
		{`{"floor": 0.2, "budget": {"epsilon": 2}}`, 409, "budget", "promised"},
		{`{"arms": ["green"]}`, 409, "arms", "taken off"},
		{`{"reward": {"range": [0, 2]}}`, 409, "reward", "noise"},
		{`{"reward": {"default": 1}}`, 409, "reward", "default"},
		{`{"unit": {"of": "visit"}}`, 409, "unit", "assignments"},
		{`{"policy": "ucb"}`, 409, "policy", ""},
		{`{"risk": 0.5}`, 409, "risk", ""},
		{`{"horizon": 5}`, 409, "horizon", ""},
		{`{"sticky": false}`, 409, "sticky", ""},
		{`{"start": null, "name": "x"}`, 409, "name", ""},
		{`{"public": "yes"}`, 400, "public", ""},
		{`{"share": 0}`, 400, "share", "above 0 and at most 1"},
		{`{"share": 2}`, 400, "share", "above 0 and at most 1"},
		{`{"add": [{"name": "red"}]}`, 409, "add[0].name", "no arm has"},
		{`{"add": [{"name": "green"}, {"name": "green"}]}`, 409, "add[1].name", "no arm has"},
		{`{"add": [{}]}`, 400, "add[0].name", "missing"},
		{`{"fallback": "red"}`, 409, "fallback", ""},
		{`{}`, 400, "", "nothing is to change"},
		{`{"floor": 1}`, 400, "floor", "below 1"},
		{`{"floor": "much"}`, 400, "floor", "number"},
		{`{"floor": 1e999}`, 400, "floor", "number"},
		{`{"window": "soon"}`, 400, "window", "24h"},
		{`{"window": "1ns"}`, 400, "window", "1ms"},
		{`{"end": "tomorrow"}`, 400, "end", "2026"},
		{`{"end": 5}`, 400, "end", "2026"},
		{`{"end": "1999-01-31T09:00:00Z"}`, 409, "end", "has passed"},
		{`{"floor": 0.2, "off": ["pink"]}`, 409, "off[0]", "pink"},
		{`{"off": ["red", "blue"]}`, 409, "off[1]", "last one"},
		{`{"speed": 1}`, 400, "speed", ""},
		{`[]`, 400, "", ""},
	} {
		var p problem
		text := w.want(bad.status, "PATCH", x, bad.body)
		if err := json.Unmarshal([]byte(text), &p); err != nil || p.Field != bad.field ||
			!strings.Contains(p.Detail, bad.why) || strings.ContainsAny(p.Detail, "\n") ||
			strings.HasPrefix(p.Detail, "declaration") {
			t.Errorf("%s: %s, %v", bad.body, text, err)
		}
	}
	if got := w.want(200, "GET", x, ""); strings.Contains(got, "changes") || !strings.Contains(got, `"floor":0,`) {
		t.Errorf("something was changed: %s", got)
	}
	w.want(404, "PATCH", "/v1/experiments/none", `{"floor": 0.2}`)
	got := w.want(200, "PATCH", x, `{"end": "2100-01-31T09:00:00Z", "window": "2h", "floor": 0.25, "off": ["red"]}`)
	if !strings.Contains(got, `"changes":[{"end":"2100-01-31T09:00:00Z","window":"2h0m0s","floor":0.25},`+
		`{"off":["red"]}]`) {
		t.Error(got)
	}
	for range 4 {
		w.pass(time.Second)
	}
	got = w.want(200, "GET", x, "")
	for _, want := range []string{`"window":"2h0m0s"`, `"floor":0.25`, `"end":"2100-01-31T09:00:00Z"`,
		`"mean":null,"off":true}`} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not in %s", want, got)
		}
	}
	if got := w.want(200, "GET", x+"/transcript", ""); !strings.Contains(got, `"off":0}`) ||
		!strings.Contains(got, `"change":{"end":"2100-01-31T09:00:00Z","window":"2h0m0s","floor":0.25}}`) {
		t.Error(got)
	}
	if d := w.decide("ann"); d.Arm != "blue" {
		t.Errorf("%+v", d)
	}
	w.want(200, "PATCH", x, `{"end": null}`)
	w.want(200, "POST", x+"/stop", "")
	w.want(409, "PATCH", x, `{"floor": 0.2}`)
}

// A draft is told of a first batch that fills a window of the traffic that it expects.
func TestFirstBatch(t *testing.T) {
	w := newWorld(t)
	const x = "/v1/experiments/shop"
	got := w.want(201, "POST", "/v1/experiments", strings.Replace(shop, "window: 1m", "window: 1m\ntraffic: 144000", 1))
	const want = `"first_batch":{"parameter":"first","is":8,"proposed":50}`
	if !strings.Contains(got, want) {
		t.Errorf("%s is not in %s", want, got)
	}
	w.want(200, "POST", x+"/start", "")
	if got := w.want(200, "GET", x, ""); strings.Contains(got, "first_batch") {
		t.Error(got)
	}
}

// Whatever can be declared can be changed, or is refused with the reason.
func TestChangeKnowsAllKeys(t *testing.T) {
	w := shopOpen(t)
	text, err := decl.Reader{}.Schema()
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		OneOf []struct {
			Properties map[string]any `json:"properties"`
		} `json:"oneOf"`
	}
	if err := json.Unmarshal(text, &schema); err != nil || len(schema.OneOf) == 0 {
		t.Fatal(err)
	}
	for _, kind := range schema.OneOf {
		for key := range kind.Properties {
			status, field := http.StatusConflict, key
			if slices.Contains([]string{"end", "window", "floor", "share", "description", "public"}, key) {
				status, field = http.StatusBadRequest, "speed"
			}
			var p problem
			got := w.want(status, "PATCH", "/v1/experiments/shop", `{"`+key+`": null`+
				map[bool]string{true: `, "speed": 1`}[field == "speed"]+`}`)
			if err := json.Unmarshal([]byte(got), &p); err != nil || p.Field != field {
				t.Errorf("%s: %s", key, got)
			}
		}
	}
}

// An arm that is added is on the page, in OFREP's answers with its value, and in the audit log; the page's form
// adds one too, and says what is wrong with a name.
func TestAddArm(t *testing.T) {
	w := shopOpen(t)
	const x = "/v1/experiments/shop"
	if got := w.want(200, "PATCH", x, `{"add": [{"name": "green", "value": {"hex": "#0c0"}}], "description": "three"}`); !strings.Contains(got,
		`"changes":[{"add":[{"name":"green","value":{"hex":"#0c0"}}]},{"description":"three"}]`) {
		t.Error(got)
	}
	for range 4 {
		w.pass(time.Second)
	}
	if got := w.want(200, "GET", x, ""); !strings.Contains(got, `"name":"green"`) || !strings.Contains(got, `"description":"three"`) {
		t.Error(got)
	}
	seen := false
	for i := range 60 {
		got := w.want(200, "POST", "/ofrep/v1/evaluate/flags/shop", fmt.Sprintf(`{"context":{"targetingKey":"u%d"}}`, i))
		seen = seen || strings.Contains(got, `"variant":"green"`) && strings.Contains(got, `"value":{"hex":"#0c0"}`)
	}
	if !seen {
		t.Error("no decision gives the new arm")
	}
	b := w.login(w.key)
	if got := b.want(200, "GET", "/experiments/shop", ""); !strings.Contains(got, "green") || !strings.Contains(got, "/experiments/shop/add") {
		t.Error("the page has no new arm, or no button that adds one")
	}
	b.want(200, "GET", "/experiments/shop/add", "")
	if got := b.want(409, "POST", "/experiments/shop/add", form("confirm", "shop", "arm", "red", "value", "")); !strings.Contains(got,
		"no arm has") {
		t.Error(got)
	}
	b.want(400, "POST", "/experiments/shop/add", form("confirm", "shop", "arm", "", "value", ""))
	b.want(303, "POST", "/experiments/shop/add", form("confirm", "shop", "arm", "grey", "value", "#888"))
	for range 4 {
		w.pass(time.Second)
	}
	if got := w.want(200, "GET", x+"/transcript", ""); !strings.Contains(got, `"add":3,"change":{"add":[{"name":"grey","value":"#888"}]}`) {
		t.Error(got)
	}
	if got := w.want(200, "GET", "/v1/audit", ""); !strings.Contains(got, "green") || !strings.Contains(got, "grey") {
		t.Error(got)
	}
}
