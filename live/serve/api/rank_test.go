package api

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/live/serve"
)

// ranks asks for an arm of shop by an event.
func (w *world) ranks(event string) (out rankJSON) {
	w.t.Helper()
	text := w.want(200, "POST", "/v1/experiments/shop/rank",
		fmt.Sprintf(`{"event": %q, "actions": [{"id": "red"}, {"id": "blue"}]}`, event))
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		w.t.Fatal(text, err)
	}
	return out
}

// An event is ranked, is answered the same again, and is rewarded by its name; its reward is in the
// released sums as that of a decision is.
func TestRank(t *testing.T) {
	w := shopOpen(t)
	const x = "/v1/experiments/shop"
	for i := range 40 {
		event := fmt.Sprintf("visit/%d ü", i)
		d := w.ranks(event)
		if d.Event != event || d.Reason != serve.Split || d.Expires == nil || !strings.Contains(d.Guarantee,
			"by released noisy sums alone") || len(d.Ranking) != 2 || d.Ranking[0].ID != "red" ||
			d.Ranking[0].Probability+d.Ranking[1].Probability != 1 {
			t.Fatalf("%+v", d)
		}
		if again := w.ranks(event); !reflect.DeepEqual(again, d) {
			t.Errorf("%+v, was %+v", again, d)
		}
		path := x + "/events/visit%2F" + fmt.Sprint(i) + "%20%C3%BC"
		for _, r := range []string{"0.5", "1e300"} { // the first counts, and has the same answer
			if got := w.want(200, "POST", path+"/reward",
				`{"reward": `+r+`}`); got != `{"status":"accepted"}`+"\n" {
				t.Error(got)
			}
		}
		w.want(200, "POST", path+"/activate", "")
	}
	drawn := w.want(200, "POST", x+"/rank", `{"actions": [{"id": "blue"}, {"id": "red"}]}`)
	var d rankJSON
	if err := json.Unmarshal([]byte(drawn), &d); err != nil || len(d.Event) != 32 {
		t.Fatal(drawn, err)
	}
	w.want(200, "POST", x+"/events/"+d.Event+"/reward", `{"reward": 1}`)
	for range 70 {
		w.pass(time.Second)
	}
	var info infoJSON
	if err := json.Unmarshal([]byte(w.want(200, "GET", x, "")), &info); err != nil {
		t.Fatal(err)
	}
	if info.Arms[0].Decisions+info.Arms[1].Decisions != 41 || info.Batches == 0 {
		t.Errorf("%+v", info)
	}
	if got := w.want(200, "POST", x+"/events/"+d.Event+"/reward",
		`{"reward": 1}`); !strings.Contains(got, "late") {
		t.Error(got)
	}
	w.want(200, "POST", x+"/stop", `{"arm": "blue", "now": true, "confirm": "shop"}`)
	got := w.want(200, "POST", x+"/rank", `{"actions": [{"id": "red"}, {"id": "blue"}]}`)
	if !strings.Contains(got, `"action":"blue"`) || !strings.Contains(got, `"expires_at":null`) ||
		!strings.Contains(got, `"reason":"static"`) {
		t.Error(got)
	}
}

// What is wrong with a rank or a report on an event is a problem that names the field, and never a
// reward.
func TestRankErrors(t *testing.T) {
	w := shopOpen(t)
	const x = "/v1/experiments/shop"
	w.ranks("ann")
	for _, c := range []struct {
		status                  int
		path, body, field, says string
	}{
		{400, "/rank", `{}`, "actions", "actions is empty"},
		{400, "/rank", `{"actions": []}`, "actions", "actions is empty"},
		{400, "/rank", `{"actions": [{"id": "red"}, {}]}`, "actions[1].id", "is missing"},
		{400, "/rank", `{"actions": [{"id": "red"}, {"id": "red"}]}`, "actions[1].id", "red"},
		{400, "/rank", `{"actions": [{"id": "red"}, {"id": "green"}]}`, "actions[1].id", "green"},
		{400, "/rank", `{"actions": [{"id": "red"}]}`, "actions", "blue"},
		{400, "/rank", `{"actions": "red"}`, "actions", "must be a list"},
		{400, "/rank", `{"actions": [{"id": 7}]}`, "actions.id", "must be a string"},
		{400, "/rank", `{"actions": [{"id": "red", "features": [1]}]}`, "actions.features",
			"must be an object"},
		{400, "/rank", `{"actions": [{"id": "red"}, {"id": "blue", "features": {"n": 1}}]}`,
			"actions[1].features", "not contextual"},
		{400, "/rank", `{"context": {"n": 1}, "actions": [{"id": "red"}, {"id": "blue"}]}`, "context",
			"not contextual"},
		{400, "/rank", `{"excluded": ["red"], "actions": [{"id": "red"}, {"id": "blue"}]}`, "excluded", ""},
		{400, "/rank", `{"deferred": true, "actions": [{"id": "red"}, {"id": "blue"}]}`, "deferred",
			"activate"},
		{400, "/rank", `{"event": "\ufffd", "actions": [{"id": "red"}, {"id": "blue"}]}`, "event", "Unicode"},
		{400, "/rank", `{"event": "` + strings.Repeat("x", 5000) +
			`", "actions": [{"id": "red"}, {"id": "blue"}]}`,
			"event", "5000"},
		{400, "/rank", `{"event": "..", "actions": [{"id": "red"}, {"id": "blue"}]}`, "event", "path"},
		{400, "/rank", `{"unit": "ann"}`, "unit", "no field"},
		{413, "/rank", `{"event": "` + strings.Repeat("x", maxRank) + `"}`, "", "more than"},
		{400, "/events/ann/reward", `{}`, "reward", "missing"},
		{400, "/events/ann/reward", `{"reward": NaN}`, "reward", "finite"},
		{400, "/events/ann/reward", `{"reward": "0.731"}`, "reward", "a number"},
		{400, "/events/ann/reward", `{"reward": 1e999}`, "reward", "float64"},
		{400, "/events/ann/activate", `{"shown": false}`, "shown", "no field"},
		{400, "/events/%FF/reward", `{"reward": 0.731}`, "event", "Unicode"},
		{404, "/events/bob/reward", `{"reward": 0.731}`, "event", "no such event"},
		{404, "/events/bob/activate", ``, "event", "no such event"},
	} {
		got := w.want(c.status, "POST", x+c.path, c.body)
		var p problem
		if err := json.Unmarshal([]byte(got), &p); err != nil || p.Field != c.field ||
			!strings.Contains(p.Detail, c.says) || strings.Contains(got, "731") {
			t.Errorf("%s %.80s: %s", c.path, c.body, got)
		}
	}
	w.want(404, "POST", "/v1/experiments/none/rank", `{"actions": [{"id": "red"}]}`)
	w.key = w.keyWith(browserScopes)
	for _, path := range []string{"/rank", "/events/ann/reward", "/events/ann/activate"} {
		if got := w.want(403, "POST", x+path, "{}"); !strings.Contains(got, "browser") {
			t.Error(got)
		}
	}
	w.key = w.keyWith(serve.ScopeDecide)
	w.want(403, "POST", x+"/events/ann/reward", `{"reward": 1}`)
	w.key = w.keyWith(serve.ScopeReward)
	w.want(403, "POST", x+"/rank", `{}`)
	if w.log.Len() > 0 {
		t.Errorf("the log has %s", w.log.String())
	}
}
