package api

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/live/serve/store"
)

// learners are experiments whose policies draw, or protect contexts, or look for the best arm. A first release is of
// ann's decision, or comes before theirs.
var learners = func() map[string]string {
	brief := strings.Replace(shop, "window: 1m", "window: 10s\nfloor: 0.2", 1)
	words := strings.NewReplacer("window: 1m", "window: 10s", "floor: 0.1", "floor: 0.2", "name: segments", "name: shop").
		Replace(segments)
	policy := func(text, is string) string {
		return strings.NewReplacer("dp-klucb, first: 8", is, "adac-oful, greed: 1, lambda: 30", is).Replace(text)
	}
	joint := strings.Replace(words, "  actions: 4", "  actions: 4\n  protect: joint", 1)
	return map[string]string{
		"dp-ts":        policy(brief, "dp-ts, first: 3"),
		"dp-sed":       policy(strings.Replace(brief, "floor: 0.2", "risk: 0.05", 1), "dp-sed, first: 3"),
		"dp-lin-ts":    policy(words, "dp-lin-ts, first: 8"),
		"histogram-ts": policy(joint, "histogram-ts, first: 8"),
		"jdp-greedy":   policy(joint, "jdp-greedy, first: 8"),
	}
}()

// theirs is what differs between worlds: their segment, and what they report by the seconds after they came.
type hers struct {
	segment string
	reports map[int]string
}

// observedLearner is all that anybody but ann sees of an experiment until the first release: others' probabilities and
// what they are given, all pages, files and figures. Another process goes on from second 4, with draws of its own; at second
// 7 ann's event is erased. All that is random is a seed's.
func observedLearner(t *testing.T, text string, ann hers, before func(http.Handler) http.Handler) (all string) {
	t.Helper()
	cryptotest.SetGlobalRandom(t, 33)
	synctest.Test(t, func(t *testing.T) {
		var seen strings.Builder
		var e *serve.Engine
		var h http.Handler
		disk := store.NewMemory()
		open := func() (end func()) {
			metrics := NewMetrics()
			var err error
			if e, err = serve.Open(t.Context(), serve.Config{Store: disk.Open, Meter: metrics}); err != nil {
				t.Fatal(err)
			}
			h = Handler(Config{Engine: e, Metrics: metrics})
			pages := h.(*front).pages
			h = before(h)
			return func() { pages.Close(); _ = e.Close() }
		}
		end := open()
		defer func() { end() }()
		key := func(scopes serve.Scope) string {
			secret, _, err := e.NewKey(t.Context(), "test", scopes)
			if err != nil {
				t.Fatal(err)
			}
			return secret
		}
		admin, reader := key(serve.ScopeAdmin), key(serve.ScopeRead)
		ask := func(key, method, path, body string) string {
			r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
			r.Header.Set("X-API-Key", key)
			out := httptest.NewRecorder()
			h.ServeHTTP(out, r)
			return fmt.Sprintln(method, path, out.Code, out.Header(), out.Body)
		}
		look := func(key, method, path, body string) { seen.WriteString(ask(key, method, path, body)) }
		const x = "/v1/experiments/shop"
		arms := !strings.Contains(text, "contextual:")
		rank := func(unit int) string {
			body := `"actions": [{"id": "red"}, {"id": "blue"}]}`
			if !arms {
				segment := "abcd"[unit%4:][:1]
				if unit == 3 && ann.segment != "" {
					segment = ann.segment
				}
				body = fmt.Sprintf(`"context": {"segment": %q}, "actions": [{"id": "a"}, {"id": "b"}, {"id": "c"}, {"id": "d"}]}`,
					segment)
			}
			return ask(admin, "POST", x+"/rank", fmt.Sprintf(`{"event": "%d", `, unit)+body)
		}
		told := func(unit int) { // what ann is told follows from their context, and nobody else is told it
			if answer := rank(unit); unit != 3 || ann.segment == "" {
				seen.WriteString(answer)
			}
		}
		look(admin, "POST", "/v1/experiments", text)
		look(admin, "POST", x+"/start", "")
		time.Sleep(30 * time.Millisecond) // between the instants at which the service does something
		for unit := range 12 {
			told(unit)
		}
		for second := range 20 {
			if value := ann.reports[second]; value != "" {
				ask(admin, "POST", x+"/events/3/reward", `{"reward": `+value+`}`)
			}
			for unit := range 12 {
				if unit != 3 && second == 1+unit%7 {
					look(admin, "POST", fmt.Sprintf("%s/events/%d/reward", x, unit), fmt.Sprintf(`{"reward": 0.%d}`, unit))
				}
				if second < 7 && unit%4 == second%4 {
					told(unit)
				}
			}
			switch second {
			case 4:
				end()
				end = open()
			case 5, 9:
				look(admin, "POST", x+"/events/3/reward", `{"reward": 0.25}`)
			case 7:
				look(admin, "DELETE", x+"/units/3", "")
			}
			told(100 + second)
			for _, path := range []string{x, x + "/transcript", x + "/ledger", x + "/report", x + "/model", "/v1/experiments",
				"/", "/experiments/shop", "/experiments/shop/ledger", "/experiments/shop/transcript.jsonl",
				"/experiments/shop/ledger.csv", "/experiments/shop/hours.csv", "/experiments/shop/batches.csv"} {
				if second%2 == 0 || second > 8 {
					look(admin, "GET", path, "")
				}
			}
			look(reader, "GET", "/metrics", "")
			time.Sleep(time.Second)
			synctest.Wait()
			info, err := e.Get(t.Context(), "shop")
			if err != nil {
				t.Fatal(err)
			}
			if arms && info.Arms[0].Released+info.Arms[1].Released > 0 || !arms && info.Contextual.Released > 0 {
				if second < 8 || strings.Count(seen.String(), " 200 ") < 150 {
					t.Fatalf("something was released after %d seconds:\n%.3000s", second, seen.String())
				}
				fmt.Fprintln(&seen, "released at", time.Now())
				all = seen.String()
				return
			}
		}
		t.Fatalf("nothing was released:\n%.3000s", seen.String())
	})
	return all
}

// Two worlds of each policy that differ in one person's reward, and where contexts are protected in their context, are the
// same to all others until the first release, byte by byte, over a restart and an erasure; and it comes at the same
// instant. Copies are caught whose probabilities follow from what waits, and whose figures follow from contexts.
func TestTwoWorldsOfLearners(t *testing.T) {
	if testkit.Race {
		t.Skip("what it shows is not about races")
	}
	as := func(h http.Handler) http.Handler { return h }
	for name, text := range learners {
		t.Run(name, func(t *testing.T) {
			want := observedLearner(t, text, hers{}, as)
			won := map[int]string{0: "1"}
			differ(t, observedLearner(t, text, hers{reports: won}, as), want)
			differ(t, observedLearner(t, text, hers{reports: map[int]string{3: "1", 4: "0", 11: "1"}}, as), want)
			protects := strings.Contains(text, "joint")
			if protects {
				differ(t, observedLearner(t, text, hers{"b", won}, as), observedLearner(t, text, hers{segment: "d"}, as))
			}
			counts := func(of, at, word string) func(h http.Handler) http.Handler {
				n := 0
				return func(h http.Handler) http.Handler {
					return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
						rec := httptest.NewRecorder()
						body := new(strings.Builder)
						r.Body = io.NopCloser(io.TeeReader(r.Body, body))
						h.ServeHTTP(rec, r)
						if strings.HasSuffix(r.URL.Path, of) && strings.Contains(body.String(), word) {
							n++
						}
						out.WriteHeader(rec.Code)
						fmt.Fprint(out, rec.Body)
						if strings.HasSuffix(r.URL.Path, at) {
							fmt.Fprint(out, n)
						}
					})
				}
			}
			twin := func(h hers) string {
				return observedLearner(t, text, h, counts("/events/3/reward", "/rank", `"reward": 1`))
			}
			if twin(hers{reports: won}) == twin(hers{}) {
				t.Error("a copy whose probabilities follow from what waits is not caught")
			}
			open := func(segment string) string {
				return observedLearner(t, text, hers{segment: segment}, counts("/rank", "/metrics", `"segment": "b"`))
			}
			if protects && open("b") == open("d") {
				t.Error("a copy whose figures follow from contexts is not caught")
			}
		})
	}
}
