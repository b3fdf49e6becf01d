package api

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/live/serve"
)

const theirs = "/personalizer/v1.0"

// keyOf is a key of one experiment, of the form that clients of Personalizer send.
func (w *world) keyOf(experiment string) []string {
	w.t.Helper()
	k, _, err := w.engine.NewKeyFor(w.t.Context(), experiment, "app", serve.ScopeDecide|serve.ScopeReward)
	if err != nil {
		w.t.Fatal(err)
	}
	return []string{"X-API-Key", "", "Ocp-Apim-Subscription-Key", k}
}

// A client of Personalizer ranks, rewards and activates; the key says in which experiment. Features
// are left out where there are no contexts; what it activates at once counts at once.
func TestPersonalizer(t *testing.T) {
	w := shopOpen(t)
	const actions = `"actions": [{"id": "red", "features": [{"hue": 0}, {"a": {"b": [1]}}]}, ` +
		`{"id": "blue", "features": []}], "contextFeatures": [{"day": "Monday"}, {"user": {"age": 7}}]`
	key := w.keyOf("shop")
	for i := range 40 {
		text := w.want(201, "POST", theirs+"/rank", fmt.Sprintf(`{"eventId": "E %d", %s, "newer": true}`, i,
			actions), key...)
		var got personalRanking
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatal(err)
		}
		if got.EventID != fmt.Sprint("E ", i) || len(got.Ranking) != 2 || got.Ranking[0].ID != got.Action ||
			got.Ranking[0].Probability != 1 || !strings.Contains(got.Guarantee, "epsilon=1") {
			t.Fatal(text)
		}
		path := fmt.Sprintf("%s/events/E%%20%d", theirs, i)
		for _, value := range []string{"1", "0.3", "-7"} {
			out := w.ask("POST", path+"/reward", `{"value": `+value+`, "more": 1}`, key...)
			if out.Code != 204 || out.Header().Get(statusHeader) != "accepted" {
				t.Error(out.Code, out.Body)
			}
		}
		w.want(204, "POST", path+"/activate", "", key...)
	}
	for range 70 {
		w.pass(time.Second)
	}
	info, err := w.engine.Get(t.Context(), "shop")
	if err != nil || info.Arms[0].Released+info.Arms[1].Released == 0 {
		t.Errorf("%+v, %v", info, err)
	}
	w.want(200, "POST", "/v1/experiments/shop/stop", `{"arm": "blue", "now": true, "confirm": "shop"}`)
	got := w.want(201, "POST", theirs+"/rank", `{`+actions+`}`, key...)
	if !strings.HasPrefix(got, `{"ranking":[{"id":"blue","probability":1},{"id":"red","probability":0}],`) {
		t.Error(got)
	}
	var one personalRanking
	if err := json.Unmarshal([]byte(got), &one); err != nil {
		t.Fatal(err)
	}
	// of what does not count, and not an error
	for _, what := range []string{"/reward", "/activate"} {
		out := w.ask("POST", theirs+"/events/"+one.EventID+what, `{"value": 1}`, key...)
		if out.Code != 204 || out.Header().Get(statusHeader) != "void" {
			t.Error(out.Code, out.Header(), out.Body)
		}
	}
}

// Who is given the first action before the start, or after the last decision that there is to be,
// is told of no error when they report on it.
func TestPersonalizerCountsNothing(t *testing.T) {
	w := newWorld(t)
	w.want(201, "POST", "/v1/experiments", strings.Replace(segments, "1e6", "1000", 1))
	w.want(200, "POST", "/v1/experiments/segments/start", "")
	early := strings.Replace(shop, "window: 1m", "window: 1m\nstart: 2100-01-01T00:00:00Z", 1)
	w.want(201, "POST", "/v1/experiments", early)
	w.want(200, "POST", "/v1/experiments/shop/start", "")
	key := w.keyOf("segments")
	const both = `"contextFeatures": [{"segment": "a"}], "actions": [{"id": "a", "features": []}, ` +
		`{"id": "b", "features": []}]`
	for i := range 1000 {
		w.want(201, "POST", theirs+"/rank", fmt.Sprintf(`{"eventId": "E%d", %s}`, i, both), key...)
	}
	void := func(event string, key []string) {
		t.Helper()
		out := w.ask("POST", theirs+"/events/"+event+"/reward", `{"value": 1}`, key...)
		if out.Code != 204 || out.Header().Get(statusHeader) != "void" {
			t.Error(out.Code, out.Header(), out.Body)
		}
	}
	for i := range 80 { // until the last window has passed, and all is released, and it has stopped
		event := fmt.Sprint("after", i)
		w.want(201, "POST", theirs+"/rank", `{"eventId": "`+event+`", `+both+`}`, key...)
		void(event, key)
		w.pass(time.Second)
	}
	if info, err := w.engine.Get(t.Context(), "segments"); err != nil || info.State != serve.Stopped {
		t.Errorf("%+v, %v", info, err)
	}
	key = w.keyOf("shop")
	w.want(201, "POST", theirs+"/rank",
		`{"eventId": "soon", "actions": [{"id": "red"}, {"id": "blue"}]}`, key...)
	void("soon", key)
}

// An experiment that counts what is activated counts a rank of theirs at once, unless it asks to
// defer that.
func TestPersonalizerDefers(t *testing.T) {
	w := newWorld(t)
	w.want(201, "POST", "/v1/experiments", strings.Replace(shop, "window: 1m",
		"window: 1m\nexposure: activate\nactivate_within: 20s", 1))
	w.want(200, "POST", "/v1/experiments/shop/start", "")
	key := w.keyOf("shop")
	counted := func() (n int) {
		info, err := w.engine.Get(t.Context(), "shop")
		if err != nil {
			t.Fatal(err)
		}
		return info.Arms[0].Decisions + info.Arms[1].Decisions
	}
	rank := func(event, defers string) {
		t.Helper()
		w.want(201, "POST", theirs+"/rank", `{"actions": [{"id": "red"}, {"id": "blue"}], "eventId": "`+event+
			`"`+defers+`}`, key...)
	}
	status := func(want, path, body string) {
		t.Helper()
		if out := w.ask("POST", theirs+"/events/"+path, body, key...); out.Code != 204 ||
			out.Header().Get(statusHeader) != want {
			t.Errorf("%s: %d, %s", path, out.Code, out.Header().Get(statusHeader))
		}
	}
	rank("a", "")
	rank("a", "") // again
	rank("b", `, "deferActivation": true`)
	rank("c", `, "deferActivation": true`)
	if counted() != 1 {
		t.Error(counted())
	}
	status("accepted", "b/activate", "")
	if counted() != 2 {
		t.Error(counted())
	}
	status("accepted", "a/reward", `{"value": 1}`)
	status("accepted", "b/reward", `{"value": 1}`)
	w.pass(21 * time.Second)
	status("late", "c/activate", "")
}

// What cannot be done is said in their words: one of three codes, a finer one, and the field, never
// a reward.
func TestPersonalizerErrors(t *testing.T) {
	w := shopOpen(t)
	key := w.keyOf("shop")
	const both = `"actions": [{"id": "red"}, {"id": "blue"}]`
	w.want(201, "POST", theirs+"/rank", `{"eventId": "ann", `+both+`}`, key...)
	long := strings.Repeat("x", 257)
	for _, c := range []struct {
		status                                        int
		method, path, body, code, inner, target, says string
	}{
		{400, "POST", "/rank", `{}`, "BadRequest", "InvalidRankRequest", "actions", "at least one"},
		{400, "POST", "/rank", `{"actions": [{"id": ""}]}`, "BadRequest", "InvalidRankRequest",
			"actions[0].id", ""},
		{400, "POST", "/rank", `{"actions": [{"id": "` + long + `"}]}`, "BadRequest", "InvalidRankRequest",
			"actions[0].id", "257"},
		{400, "POST", "/rank", `{"actions": [{"id": "green"}]}`, "BadRequest", "InvalidRankRequest",
			"actions[0].id", "green"},
		{400, "POST", "/rank", `{"eventId": "", ` + both + `}`, "BadRequest", "InvalidRankRequest",
			"eventId", "1"},
		{400, "POST", "/rank", `{"eventId": "` + long + `", ` + both + `}`, "BadRequest", "InvalidRankRequest",
			"eventId", "257"},
		{400, "POST", "/rank", `{"excludedActions": ["red"], ` + both + `}`, "BadRequest",
			"InvalidRankRequest", "excludedActions", "arms"},
		{400, "POST", "/rank", `{"deferActivation": true, ` + both + `}`, "BadRequest", "InvalidRankRequest",
			"deferActivation", "activate"},
		{400, "POST", "/rank", `{"contextFeatures": [7], ` + both + `}`, "BadRequest", "InvalidRankRequest",
			"contextFeatures", "object"},
		{400, "POST", "/rank", `not JSON`, "BadRequest", "InvalidRankRequest", "", "object"},
		{400, "POST", "/rank", `{"eventId": "` + strings.Repeat("x", maxRank) + `"}`, "BadRequest",
			"PayloadSizeExceeded", "", "bytes"},
		{400, "POST", "/events/ann/reward", ``, "BadRequest", "InvalidRewardRequest", "value", "missing"},
		{400, "POST", "/events/ann/reward", `{"value": "0.731"}`, "BadRequest", "InvalidRewardRequest", "value",
			"a number"},
		{400, "POST", "/events/ann/reward", `{"value": 0.731e999}`, "BadRequest", "InvalidRewardRequest",
			"value", "a number"},
		{400, "POST", "/events/ann/reward", `{"value": Infinity}`, "BadRequest", "InvalidRewardRequest",
			"value", "a finite number"},
		{404, "POST", "/events/bob/reward", `{"value": 0.731}`, "ResourceNotFound", "ResourceNotFound",
			"eventId", "no such event"},
		{404, "POST", "/events/bob/activate", ``, "ResourceNotFound", "ResourceNotFound", "eventId", "no such"},
		{403, "PUT", "/configurations/service", `{"rewardWaitTime": "00:05:00"}`, "BadRequest",
			"InvalidApiAccess", "", "PATCH /v1/experiments"},
	} {
		got := w.want(c.status, c.method, theirs+c.path, c.body, key...)
		var e personalError
		if err := json.Unmarshal([]byte(got), &e); err != nil || e.Error.Code != c.code ||
			e.Error.Inner.Code != c.inner || e.Error.Target != c.target ||
			!strings.Contains(e.Error.Message, c.says) ||
			strings.Contains(got, "731") {
			t.Errorf("%s %.80s: %s", c.path, c.body, got)
		}
	}
	for _, c := range []struct {
		status int
		key    string
		code   string
	}{{401, "", "401"}, {401, "sotto_wrong", "401"}, {403, w.key, "BadRequest"},
		{403, w.keyWith(browserScopes), "BadRequest"}} {
		got := w.want(c.status, "POST", theirs+"/rank", `{`+both+`}`, "X-API-Key", c.key)
		var e personalError
		if err := json.Unmarshal([]byte(got), &e); err != nil || e.Error.Code != c.code {
			t.Error(got)
		}
	}
	// what there is not, is not in their words either
	for path, status := range map[string]int{"/evaluations": 404, "/model": 404, "/rank": 405} {
		out := w.ask("GET", theirs+path, "", key...)
		if out.Code != status || !strings.HasPrefix(out.Body.String(), `{"error":{"code":`) {
			t.Errorf("%d %s", out.Code, out.Body)
		}
	}
	if w.log.Len() > 0 {
		t.Errorf("the log has %s", w.log.String())
	}
}

// A service configuration is what the declaration says.
func TestPersonalizerConfiguration(t *testing.T) {
	w := newWorld(t)
	w.want(201, "POST", "/v1/experiments", strings.NewReplacer("window: 1m", "window: 49h\nfloor: 0.2",
		"default: 0}", "default: 0.25}").Replace(shop))
	got := w.want(200, "GET", theirs+"/configurations/service", "", w.keyOf("shop")...)
	if want := `{"rewardWaitTime":"2.01:00:00","defaultReward":0.25,"rewardAggregation":"earliest",` +
		`"explorationPercentage":0.2,"modelExportFrequency":"`; !strings.HasPrefix(got, want) {
		t.Error(got)
	}
	for d, want := range map[time.Duration]string{time.Minute: "00:01:00", 90 * time.Hour: "3.18:00:00",
		1500 * time.Millisecond: "00:00:01.5000000", time.Millisecond: "00:00:00.0010000"} {
		if got := timeSpan(d); got != want {
			t.Errorf("%v is %s, want %s", d, got, want)
		}
	}
}

// Excluded actions keep their places, the one that is given is the first of the others.
func TestPersonalOrder(t *testing.T) {
	all := []rankedJSON{{"a", 0}, {"b", 0.1}, {"c", 0.7}, {"d", 0}, {"e", 0.2}}
	for _, c := range []struct{ given, want string }{{"c", "acedb"},
		{"b", "abcde"}} {
		var got strings.Builder
		for _, a := range personalOrder(all, c.given, []string{"a", "d"}) {
			got.WriteString(a.ID)
		}
		if got.String() != c.want {
			t.Errorf("%s: %s, want %s", c.given, got.String(), c.want)
		}
	}
	if !slices.Equal(personalOrder(all, "a", []string{"a"}), []rankedJSON{{"a", 0}, {"c", 0.7}, {"e", 0.2},
		{"b", 0.1}, {"d", 0}}) {
		t.Error("the one that is given is not first")
	}
}
