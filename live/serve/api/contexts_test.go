package api

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

const fourActions = `"actions": [{"id": "a"}, {"id": "b"}, {"id": "c"}, {"id": "d"}]`

// contextsOpen has a running contextual experiment, segments.
func contextsOpen(t testing.TB, more string) *world {
	w := newWorld(t)
	w.want(201, "POST", "/v1/experiments", segments+more)
	w.want(200, "POST", "/v1/experiments/segments/start", "")
	return w
}

// A contextual experiment from its start to its archive, over HTTP: true propensities, exclusions,
// activations, what is shown of it, and what everybody is given when it has stopped.
func TestContexts(t *testing.T) {
	w := contextsOpen(t, "")
	const x = "/v1/experiments/segments"
	rank := func(body string) (d rankJSON) {
		t.Helper()
		if err := json.Unmarshal([]byte(w.want(200, "POST", x+"/rank", body)), &d); err != nil {
			t.Fatal(err)
		}
		return d
	}
	for i := range 200 {
		d := rank(fmt.Sprintf(`{"event": "e %d", "context": {"segment": "a"}, "excluded": ["b"], %s}`, i,
			fourActions))
		sum := 0.0
		for _, a := range d.Ranking {
			sum += a.Probability
			if a.ID == "b" && a.Probability != 0 || a.ID == d.Action && a.Probability != d.Propensity {
				t.Fatalf("%+v", d)
			}
		}
		if d.Action == "b" || len(d.Ranking) != 4 || d.Ranking[1].ID != "b" || sum < 1-1e-12 || sum > 1+1e-12 ||
			d.Propensity < 0.1/3 || !strings.Contains(d.Guarantee, "contexts, features, ids of actions") {
			t.Fatalf("%+v", d)
		}
		again := rank(fmt.Sprintf(`{"event": "e %d", "context": {"segment": "b"}, %s}`, i, fourActions))
		if again.Action != d.Action || !again.Expires.Equal(*d.Expires) {
			t.Errorf("%+v, was %+v", again, d)
		}
		w.want(200, "POST", fmt.Sprintf("%s/events/e%%20%d/reward", x, i), `{"reward": 1}`)
	}
	d := rank(`{"event": "later", "deferred": true, "context": {"segment": "a"}, ` + fourActions + `}`)
	if d.ActivateBy == nil {
		t.Errorf("%+v", d)
	}
	w.want(200, "POST", x+"/events/later/activate", "")
	w.want(409, "POST", x+"/rank", fmt.Sprintf(`{"event": "e 0", "actions": [{"id": %q}]}`,
		map[bool]string{true: "c", false: "a"}[rank(`{"event": "e 0", `+fourActions+`}`).Action == "a"]))
	for range 130 {
		w.pass(time.Second)
	}
	var info infoJSON
	if err := json.Unmarshal([]byte(w.want(200, "GET", x, "")), &info); err != nil {
		t.Fatal(err)
	}
	if c := info.Contextual; c == nil || c.Decisions != 201 || c.Released == 0 || c.Released > 201 ||
		c.Releases == 0 || c.Dim != 21 || c.Norm <= 1 || len(info.Arms) != 0 || !strings.HasPrefix(info.Spent.Text, "rho=") {
		t.Errorf("%+v %+v", info, c)
	}
	if got := w.want(200, "GET", x+"/transcript", ""); strings.Contains(got, "e 0") {
		t.Error("the transcript names events")
	}
	w.want(200, "GET", x+"/ledger", "")
	w.want(200, "POST", x+"/pause", "")
	if d := rank(`{` + fourActions + `}`); d.Reason != "disabled" || d.Action != "a" || d.Expires != nil {
		t.Errorf("%+v", d)
	}
	w.want(200, "POST", x+"/resume", "")
	w.want(200, "POST", x+"/stop", "")
	if d := rank(`{"excluded": ["a"], ` + fourActions + `}`); d.Reason != "static" || d.Action != "b" ||
		d.Expires != nil {
		t.Errorf("%+v", d)
	}
	w.want(200, "GET", x, "")
	w.want(200, "POST", x+"/archive", "")
}

// What is wrong with a context or an action is a problem that names the field.
func TestContextErrors(t *testing.T) {
	w := contextsOpen(t, "")
	const x = "/v1/experiments/segments"
	for _, c := range []struct {
		body, field, says string
	}{
		{`{"context": {"segment": "z"}, ` + fourActions + `}`, "context.segment", "z"},
		{`{"context": {"colour": "red"}, ` + fourActions + `}`, "context.colour", "not declared"},
		{`{"context": {"segment": ["a"]}, ` + fourActions + `}`, "context.segment", "list"},
		{`{"context": {"segment": {"a": 1}}, ` + fourActions + `}`, "context.segment.a", "not declared"},
		{`{"actions": [{"id": "a", "features": {"n": 1}}]}`, "actions[0].n", "not declared"},
		{`{"actions": [{"id": "a"}, {"id": "a"}]}`, "actions[1].id", "actions[0]"},
		{`{"actions": [{"id": "e"}]}`, "actions[0].id", "e"},
		{`{"actions": [{"id": "a"}, {"id": "b"}, {"id": "c"}, {"id": "d"}, {"id": "e"}]}`, "actions", "has 5"},
		{`{"excluded": ["a", "b", "c", "d"], ` + fourActions + `}`, "excluded", ""},
		{`{"event": "..", ` + fourActions + `}`, "event", "path"},
	} {
		got := w.want(400, "POST", x+"/rank", c.body)
		var p problem
		if err := json.Unmarshal([]byte(got), &p); err != nil || p.Field != c.field || !strings.Contains(p.Detail,
			c.says) {
			t.Errorf("%s: %s", c.body, got)
		}
	}
	short := strings.NewReplacer("name: segments", "name: short", "1e6", "100", "rho: 1", "rho: 0.1").Replace(segments)
	if got := w.want(201, "POST", "/v1/experiments", short); !strings.Contains(got,
		`"warnings":["contextual: vectors have 21 components`) {
		t.Error(got)
	}
	w.want(400, "POST", x+"/decisions", `{"unit": "ann"}`)
	w.want(400, "POST", "/ofrep/v1/evaluate/flags/segments", `{"context": {"targetingKey": "ann"}}`)
	if got := w.want(200, "POST", "/ofrep/v1/evaluate/flags", `{"context": {"targetingKey": "ann"}}`); strings.Contains(
		got, "segments") {
		t.Error(got)
	}
	if got := w.want(409, "PATCH", x, `{"contextual": {}}`); !strings.Contains(got, "another experiment") {
		t.Error(got)
	}
	if w.log.Len() > 0 {
		t.Errorf("the log has %s", w.log.String())
	}
}

// An apprentice gives the first action but for the floor's share, and its configuration says so;
// Personalizer's lists of features are one object.
func TestApprentice(t *testing.T) {
	w := newWorld(t)
	w.want(201, "POST", "/v1/experiments", strings.NewReplacer("actions: 4", "actions: 4\n  mode: apprentice\n  "+
		"rules: [{name: learner, play: policy, clip: 20, budget: {rho: 0.1}}]").Replace(segments))
	w.want(200, "POST", "/v1/experiments/segments/start", "")
	key := w.keyOf("segments")
	if got := w.want(200, "GET", theirs+"/configurations/service", "", key...); !strings.Contains(got,
		`"learningMode":"Apprentice"`) {
		t.Error(got)
	}
	first := 0
	for i := range 200 {
		var d personalRanking
		if err := json.Unmarshal([]byte(w.want(201, "POST", theirs+"/rank", fmt.Sprintf(`{"eventId": "e%d", `+
			`"contextFeatures": [{"segment": "b"}, {"segment": "c"}], "actions": [{"id": "c", "features": [{}]}, `+
			`{"id": "a", "features": []}, {"id": "b"}]}`, i), key...)), &d); err != nil {
			t.Fatal(err)
		}
		if d.Action == "c" {
			first++
			if p := d.Ranking[0].Probability; p < 0.933 || p > 0.934 { // 1 − γ + γ/3
				t.Error(p)
			}
		}
		w.want(204, "POST", fmt.Sprintf("%s/events/e%d/reward", theirs, i), `{"value": 1}`, key...)
	}
	if first < 150 { // of 200 with probability 0.933: with a probability below 1e-12
		t.Errorf("%d of 200", first)
	}
	for range 130 {
		w.pass(time.Second)
	}
	var info infoJSON
	if err := json.Unmarshal([]byte(w.want(200, "GET", "/v1/experiments/segments", "")), &info); err != nil {
		t.Fatal(err)
	}
	if r := info.Contextual.Rules; len(r) != 1 || r[0].Mean == nil || r[0].Interval == nil ||
		!r[0].Low || // weights reach 40
		r[0].SelfNormalised == nil || r[0].Interval[0] > r[0].Interval[1] {
		t.Errorf("%v", w.want(200, "GET", "/v1/experiments/segments", ""))
	}
}
