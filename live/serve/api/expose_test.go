package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// All flags at once can be asked for again and again where decisions count when they are activated:
// nothing counts, the answer and its ETag stay until the offer is activated or forgotten.
func TestBulkOffers(t *testing.T) {
	w := newWorld(t)
	w.offers("somebody")
	ask := func(tag string) (string, string) {
		t.Helper()
		out := w.ask("POST", "/ofrep/v1/evaluate/flags", `{"context":{"targetingKey":"ann"}}`, "If-None-Match", tag)
		if want := map[bool]int{true: http.StatusNotModified, false: http.StatusOK}[tag != ""]; out.Code != want {
			t.Fatalf("status %d, want %d: %s", out.Code, want, out.Body)
		}
		return out.Header().Get("ETag"), out.Body.String()
	}
	tag, flags := ask("")
	d := *w.offers("ann").Decision
	if !strings.Contains(flags, d) || !strings.Contains(flags, `"activate_by":"2001-09-09T01:47:00Z"`) {
		t.Error(flags)
	}
	for range 3 {
		w.pass(time.Second)
		ask(tag)
	}
	const x = "/v1/experiments/shown"
	if got := w.want(200, "GET", x, ""); strings.Count(got, `"decisions":0`) != 2 {
		t.Errorf("an offer counts: %s", got)
	}
	said := w.want(200, "POST", x+"/activations", fmt.Sprintf(`{"decision": %q}`, d))
	if again := w.want(200, "POST", x+"/activations", fmt.Sprintf(`{"decision": %q, "shown": false}`, d)); said !=
		`{"status":"accepted"}`+"\n" || again != said {
		t.Error(said, again)
	}
	if got := w.want(200, "GET", x, ""); strings.Count(got, `"decisions":0`) != 1 {
		t.Errorf("what was activated does not count: %s", got)
	}
	_, flags = ask("")
	if strings.Contains(flags, d) { // it is not sticky, and has all its assignments
		t.Error(flags)
	}
	w.pass(20 * time.Second)
	if got := w.want(200, "POST", x+"/activations", fmt.Sprintf(`{"decision": %q}`, d)); got !=
		`{"status":"late"}`+"\n" {
		t.Error(got)
	}
	// What can be activated no more is given on, and the stream that tells of its end has another address.
	flagsOf := func(text string) string { before, _, _ := strings.Cut(text, `"eventStreams"`); return before }
	if _, again := ask(""); flagsOf(again) != flagsOf(flags) {
		t.Error(again)
	}
}

// What is not shown can be taken back where that was declared, and the guarantee says so.
func TestRetract(t *testing.T) {
	w := newWorld(t)
	w.want(201, "POST", "/v1/experiments", strings.Replace(shop, "window: 1m",
		"window: 1m\nexposure: retract\nmissing: drop\nreports: every", 1))
	const x = "/v1/experiments/shop"
	w.want(200, "POST", x+"/start", "")
	d := *w.decide("ann").Decision
	for range 2 {
		if got := w.want(200, "POST", x+"/activations", fmt.Sprintf(`{"decision": %q, "shown": false}`, d)); got !=
			`{"status":"accepted"}`+"\n" {
			t.Error(got)
		}
		w.want(200, "POST", x+"/rewards", reward(d, "1"))
	}
	w.want(409, "POST", x+"/activations", fmt.Sprintf(`{"decision": %q}`, d))
	got := w.want(200, "GET", x, "")
	for _, want := range []string{"at epsilon=1", "counts tell which decisions were met",
		"times of releases tell whether a reward came"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in %s", want, got)
		}
	}
	for _, key := range []string{"exposure", "missing", "reports", "activate_within"} {
		w.want(409, "PATCH", x, `{"`+key+`": null, "floor": 0.1}`)
	}
}

// Metrics are reported beside rewards, and are refused without a word of what they are.
func TestMetricsOfDecisions(t *testing.T) {
	w := newWorld(t)
	w.want(201, "POST", "/v1/experiments", strings.Replace(shop, "window: 1m",
		"window: 1m\nmetrics: [{name: basket, range: [0, 200], budget: {epsilon: 0.5}}]", 1))
	const x = "/v1/experiments/shop"
	w.want(200, "POST", x+"/start", "")
	d := *w.decide("ann").Decision
	for body, field := range map[string]string{
		`{"731": 1}`: "metrics", `{"basket": null}`: "metrics", `{"basket": "0.731"}`: "metrics",
		`{"basket": 0.731e999}`: "metrics", `{"basket": NaN}`: "basket", `[731]`: "metrics",
		`{"basket": 1, "other": 731}`: "metrics",
	} {
		text := w.want(400, "POST", x+"/rewards", fmt.Sprintf(`{"decision": %q, "reward": 1, "metrics": %s}`, d, body))
		var p problem
		if err := json.Unmarshal([]byte(text), &p); err != nil || p.Field != field || strings.Contains(text, "731") {
			t.Errorf("%s: %s", body, text)
		}
	}
	batch := w.want(200, "POST", x+"/rewards/batch", fmt.Sprintf(
		`{"rewards": [{"decision": %q, "reward": 1, "metrics": {"x": 1}}, {"decision": %q, "reward": 1}]}`, d, d))
	if !strings.Contains(batch, `"error":"metrics: has a name`) || !strings.Contains(batch, "accepted") {
		t.Error(batch)
	}
	for i := range 60 {
		d := *w.decide(fmt.Sprint(i)).Decision
		got := w.want(200, "POST", x+"/rewards", fmt.Sprintf(`{"decision": %q, "reward": 1, "metrics": {"basket": 150}}`,
			d))
		if got != `{"status":"accepted"}`+"\n" {
			t.Fatal(got)
		}
	}
	for range 64 {
		w.pass(time.Second)
	}
	var info infoJSON
	if err := json.Unmarshal([]byte(w.want(200, "GET", x, "")), &info); err != nil {
		t.Fatal(err)
	}
	if info.Budget != "epsilon=1" || info.Total != "epsilon=1.5" || !strings.Contains(info.Guarantee,
		"at epsilon=1.5 for") || !strings.Contains(info.Spent.Text, "1.5") {
		t.Errorf("%+v", info)
	}
	for _, a := range info.Arms {
		// 8 at least, noise of a scale of 2·200 in a sum: below 1e-6 beyond 14 scales
		if got, ok := a.Metrics["basket"]; a.Released == 0 || !ok || got < 150-14*400/8 || got > 150+14*400/8 {
			t.Errorf("%+v", a)
		}
	}
}
