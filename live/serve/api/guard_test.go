package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/live/serve/store"
)

// What a guard has done is in page, report, JSON and Prometheus, the same in all; resume goes on, and terms
// that guards share are refused.
func TestGuardIsShown(t *testing.T) {
	w := newWorldOf(t, serve.Config{Store: store.NewMemory().Open})
	w.want(201, "POST", "/v1/experiments", strings.NewReplacer("{policy: dp-klucb, first: 8}", "split", "floor: 0.1", "",
		"{epsilon: 1}", "{epsilon: 50}").Replace(shop)+"\nguard: [{metric: reward, below: 0.5, risk: 0.01}]\n")
	w.want(200, "POST", "/v1/experiments/shop/start", "")
	info := func() (info infoJSON) {
		t.Helper()
		if err := json.Unmarshal([]byte(w.want(200, "GET", "/v1/experiments/shop", "")), &info); err != nil {
			t.Fatal(err)
		}
		return info
	}
	for n := 0; info().State != serve.Paused; n++ {
		if n > 20 {
			t.Fatalf("it is not paused: %+v", info().Guards)
		}
		for i := range 40 {
			d := w.decide(fmt.Sprint("unit ", n, " ", i))
			x := "0"
			if d.Arm == "blue" {
				x = "1"
			}
			if d.Decision != nil {
				w.plain(http.MethodPost, "/v1/experiments/shop/rewards", reward(*d.Decision, x))
			}
		}
		w.pass(time.Minute)
		w.pass(time.Second)
	}
	g, r := info().Guards, w.asReport()
	blue := g.Each[0].Arms[1]
	if !reflect.DeepEqual(g, r.Guards) || blue.State != serve.PastGuard || blue.Interval[0] <= 0.5 {
		t.Errorf("%+v, the report has %+v", g, r.Guards)
	}
	for _, path := range []string{reportPath, "/experiments/shop"} {
		if text := w.plain("GET", path, "").Body.String(); !strings.Contains(text, "blue is past its guard of reward") ||
			!strings.Contains(text, "below 0.5") || !strings.Contains(text, serve.PastGuard) {
			t.Errorf("%s does not tell: %s", path, text)
		}
	}
	scraped := w.want(200, "GET", "/metrics", "")
	for value, is := range map[string]float64{"bound": 0.5, "low": blue.Interval[0], "past": 1} {
		line := fmt.Sprintf(`sotto_guard{arm="blue",experiment="shop",metric="reward",side="below",value="%s"} %v`, value, is)
		if !strings.Contains(scraped, line+"\n") {
			t.Errorf("%s is not in\n%s", line, scraped)
		}
	}
	w.want(409, "PATCH", "/v1/experiments/shop", `{"guard": []}`)
	w.want(400, "PATCH", "/v1/experiments/shop", `{"resume": true}`)
	w.want(200, "POST", "/v1/experiments/shop/resume", "")
	w.pass(2 * time.Second)
	w.pass(2 * time.Second)
	if got := info(); got.State == serve.Paused || got.Guards.Paused != "" || got.Guards.Each[0].Arms[1].State != serve.ResumedGuard {
		t.Errorf("%+v", got)
	}
}
