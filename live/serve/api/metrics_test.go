package api

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/sotto-dp/sotto/live/serve"
)

// Metrics are Prometheus's text, counted right, named as is the custom, and say which reveal what.
// Private ones need a key for them.
func TestMetrics(t *testing.T) {
	w := shopOpen(t)
	w.want(201, "POST", "/v1/experiments", strings.NewReplacer("shop", "hidden", "public: true",
		"").Replace(shop))
	const x = "/v1/experiments/shop"
	for i := range 40 {
		d := *w.decide(fmt.Sprint("unit ", i)).Decision
		if i < 3 {
			w.want(200, "POST", x+"/rewards", reward(d, "0.5"))
			w.want(200, "POST", x+"/rewards/batch", `{"rewards":[`+reward(d, "1")+","+reward("x", "1")+"]}")
		}
	}
	key := func(s serve.Scope) string {
		k, _, err := w.engine.NewKey(t.Context(), "test", s)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	scrape := func(secret string) string {
		t.Helper()
		admin := w.key
		defer func() { w.key = admin }()
		w.key = secret
		text := w.want(200, "GET", "/metrics", "")
		parser := expfmt.NewTextParser(model.UTF8Validation)
		families, err := parser.TextToMetricFamilies(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		for name, f := range families {
			if strings.HasPrefix(name, "sotto_") &&
				!strings.HasSuffix(f.GetHelp(), tellsUnits) && !strings.HasSuffix(f.GetHelp(), tellsWho) &&
				!strings.HasSuffix(f.GetHelp(), tellsClock) {
				t.Errorf("%s does not say what it reveals: %s", name, f.GetHelp())
			}
		}
		if wrong, err := promlint.New(strings.NewReader(text)).Lint(); err != nil || len(wrong) > 0 {
			t.Error(wrong, err)
		}
		return text
	}
	nobody, reader, meter := scrape(""), scrape(key(serve.ScopeRead)), scrape(key(serve.ScopeMetrics))
	for _, p := range []struct {
		line                  string
		nobody, reader, meter bool
	}{
		{`sotto_decisions_total{arm="red",experiment="shop"} `, true, true, true},
		{`sotto_experiment_state{experiment="shop",state="waiting"} 1`, true, true, true},
		{`sotto_experiment_state{experiment="hidden",state="draft"} 1`, false, true, true},
		{`sotto_rewards_total{experiment="shop",status="accepted"} 6`, false, false, true},
		{`sotto_request_seconds_count{route="POST /v1/experiments/{name}/rewards",status="200"} 3`,
			false, false, true},
		{`sotto_commit_seconds_count `, false, false, true},
		{`sotto_commit_failures_total 0`, false, false, true},
		{`sotto_queue 0`, false, false, true},
		{`sotto_clock_drift_seconds `, false, false, true},
		{`go_goroutines `, false, false, true},
		{`process_resident_memory_bytes `, false, false, true},
	} {
		got := [3]bool{strings.Contains(nobody, p.line), strings.Contains(reader, p.line),
			strings.Contains(meter, p.line)}
		if want := [3]bool{p.nobody, p.reader, p.meter}; got != want {
			t.Errorf("%s is there for nobody, readers, meters: %v, must be %v", p.line, got, want)
		}
	}
	for _, public := range []string{nobody, reader} {
		if strings.Contains(public, tellsWho) {
			t.Errorf("a private metric is public:\n%s", public)
		}
	}
	for _, scope := range []serve.Scope{serve.ScopeDecide, serve.ScopeReward} {
		admin := w.key
		w.key = key(scope)
		w.want(403, "GET", "/metrics", "")
		w.key = strings.Repeat("x", 40)
		w.want(401, "GET", "/metrics", "")
		w.key = admin
	}
	// A release is seen on its public tick, with the transcript, and not before.
	for range 70 {
		w.pass(time.Second)
		lines := strings.Count(w.want(200, "GET", x+"/transcript", ""), `"plays":[`)
		if text := scrape(""); !strings.Contains(text,
			fmt.Sprintf("sotto_batches_total{experiment=\"shop\"} %d\n",
				lines)) {
			t.Fatalf("the transcript has %d batches, and the metrics are\n%s", lines, text)
		}
	}
	if text := scrape(""); !strings.Contains(text, `sotto_released_mean{arm="red",experiment="shop"} `) {
		t.Error(text)
	}
}
