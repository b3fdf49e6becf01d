package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/live/serve/compat"
)

// An observer writes down what they are answered. Tokens are keyed and so differ between worlds, and so
// does the hash of the coins' seed, and what follows from it; they are numbered as they appear.
type observer struct {
	w     *world
	names map[string]string
	seen  strings.Builder
}

var word = regexp.MustCompile(`[A-Za-z0-9_-]+`) // the tokens and hashes are the long ones

func (o *observer) look(method, path, body string) string {
	out := o.w.ask(method, path, body)
	text := word.ReplaceAllStringFunc(out.Body.String(), func(d string) string {
		if len(d) < 58 {
			return d
		}
		if o.names[d] == "" {
			o.names[d] = fmt.Sprint("decision ", len(o.names))
		}
		return o.names[d]
	})
	header := out.Header().Clone()
	header.Del("ETag") // a hash of the body, in which the tokens are
	fmt.Fprintln(&o.seen, method, path, out.Code, header, text)
	return out.Body.String()
}

// logsAll has each request leave a line in the log, without its time.
func (w *world) logsAll() {
	w.log.Reset()
	timeless := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}
	w.front = Handler(Config{Engine: w.engine, Metrics: w.front.Metrics, Access: AccessAll,
		Log: slog.New(slog.NewTextHandler(&w.log, &slog.HandlerOptions{ReplaceAttr: timeless}))}).(*front)
}

// observed is all that everybody can see of a world in which ann, among others, decides and reports
// as report says, until and not including the public tick of the first release. The observer asks
// again for everybody's decision, reports on ann's, and reads all pages, after each second.
//
// A second experiment counts what is activated: ann's offer after two seconds, and they report on
// that as on the other, with a metric. In a third one, where all reports add up, the observer takes ann's decision
// back, and it is stopped while their window is open. In a fourth there are events, of which ann's is asked for again and reported on by the observer, also
// as clients of Personalizer do.
func observed(t *testing.T, front func(http.Handler) http.Handler,
	report func(w *world, path, ann string, second int)) string {
	t.Helper()
	w := shopOpen(t)
	w.logsAll()
	w.asked = front(w.front)
	reader, _, err := w.engine.NewKey(t.Context(), "reader", serve.ScopeRead)
	if err != nil {
		t.Fatal(err)
	}
	o := observer{w: w, names: map[string]string{}}
	look := o.look
	const x = "/v1/experiments/shop"
	units := []string{"bob", "ann", "cid", "dan", "eve", "fay", "gus", "hal", "ian", "jo", "kim",
		"lee", "max", "ned",
		"oda", "pam", "quy", "rob", "sue", "tom"}
	const other = "/v1/experiments/shown"
	tokens, offers := map[string]string{}, map[string]string{}
	const third = "/v1/experiments/back"
	w.want(201, "POST", "/v1/experiments", strings.NewReplacer("name: shop", "name: back", "window: 1m",
		"window: 1m\nexposure: retract", "default: 0", "default: 0, aggregate: sum").Replace(shop))
	w.want(200, "POST", third+"/start", "")
	var back decisionJSON
	if err := json.Unmarshal([]byte(w.want(200, "POST", third+"/decisions", `{"unit":"ann"}`)),
		&back); err != nil {
		t.Fatal(err)
	}
	w.want(201, "POST", "/v1/experiments", strings.Replace(shop, "name: shop", "name: named", 1))
	w.want(200, "POST", "/v1/experiments/named/start", "")
	app := w.keyOf("named")[3]
	const fifth = "/v1/experiments/heard"
	w.want(201, "POST", "/v1/experiments", strings.NewReplacer("name: shop", "name: heard",
		"default: 0", "default: 0, event: checkout").Replace(shop)+tracked)
	w.want(200, "POST", fifth+"/start", "")
	w.want(200, "POST", fifth+"/decisions", `{"unit":"ann"}`)
	const arms = `"actions": [{"id": "red"}, {"id": "blue"}]}`
	for _, u := range units {
		look(http.MethodPost, "/v1/experiments/named/rank", fmt.Sprintf(`{"event": %q, `, u)+arms)
		tokens[u] = *w.decide(u).Decision
		offers[u] = *w.offers(u).Decision
	}
	for second := range 70 {
		report(w, x, tokens["ann"], second)
		report(w, other, offers["ann"], second)
		report(w, third, *back.Decision, second)
		report(w, "/v1/experiments/named/events/ann", "", second)
		report(w, "/v1/track", "ann", second)
		if second%10 == 5 {
			for _, of := range []string{x, other, third, fifth, "/v1/experiments/named"} {
				look(http.MethodGet, of+"/units/ann", "")
			}
		}
		if second%10 == 6 { // of ann, of nobody, and of another event
			look(http.MethodPost, "/v1/track", event("checkout", "ann", "0.25"))
			look(http.MethodPost, "/v1/track", event("checkout", "zoe", "0.25"))
			look(http.MethodPost, "/v1/track", event("signup", "ann", "0.25"))
			look(http.MethodPost, compat.SegmentPath, messages(purchase("ann")+","+purchase("zoe")))
			look(http.MethodPost, fifth+"/decisions", `{"unit":"ann"}`)
			look(http.MethodPost, "/v1/feature/heard/eval", `{"user":{"key":"ann"}}`)
			look(http.MethodPost, compat.GOFFAllPath, `{"user":{"key":"ann"}}`)
			look(http.MethodPost, compat.CollectorPath, collected("ann", "zoe"))
			for _, path := range []string{"", "/transcript", "/ledger"} {
				look(http.MethodGet, fifth+path, "")
			}
		}
		if second%10 == 4 {
			look(http.MethodPost, "/v1/experiments/named/rank", `{"event": "ann", `+arms)
			look(http.MethodPost, "/v1/experiments/named/events/ann/reward", `{"reward": 0.25}`)
			key := w.key
			w.key = app
			look(http.MethodPost, theirs+"/rank", `{"eventId": "ann", `+arms)
			look(http.MethodPost, theirs+"/events/ann/reward", `{"value": 1}`)
			look(http.MethodPost, theirs+"/events/ann/activate", "")
			w.key = key
		}
		if second%10 == 7 {
			look(http.MethodPost, third+"/activations", fmt.Sprintf(`{"decision": %q, "shown": false}`,
				*back.Decision))
			look(http.MethodPost, third+"/rewards", named(reward(*back.Decision, "0.25"), second%20))
			look(http.MethodPost, third+"/rewards", reward(*back.Decision, "0.25"))
		}
		for i, u := range units {
			if i%5 != 0 && second == i%5+1 {
				look(http.MethodPost, other+"/activations", fmt.Sprintf(`{"decision": %q}`, offers[u]))
			} else if i%5 == 0 && second == 3 {
				look(http.MethodPost, other+"/activations",
					fmt.Sprintf(`{"decision": %q, "shown": false}`, offers[u]))
			}
		}
		for i, u := range units {
			if u != "ann" && i%3 == second%7 {
				look(http.MethodPost, x+"/rewards", reward(tokens[u], fmt.Sprintf("0.%d", i)))
			}
		}
		look(http.MethodPost, x+"/decisions", `{"unit":"ann"}`)
		look(http.MethodPost, x+"/decisions", fmt.Sprintf(`{"unit":"late comer %d"}`, second))
		if second%5 == 2 { // the observer, who reports on ann's decision after they may have
			look(http.MethodPost, x+"/rewards", reward(tokens["ann"], "0.25"))
			look(http.MethodPost, x+"/rewards/batch",
				`{"rewards":[`+reward(tokens["ann"], "0")+","+reward(tokens["bob"], "1")+`]}`)
			look(http.MethodPost, other+"/rewards", reward(offers["ann"], "0.25"))
			look(http.MethodPost, other+"/activations",
				fmt.Sprintf(`{"decision": %q, "shown": %v}`, offers["ann"],
					second%2 == 0))
		}
		if second == 30 {
			look(http.MethodPost, third+"/stop", `{"keep": "leader"}`)
			look(http.MethodPost, third+"/stop", `{"now": true}`)
		}
		if second >= 30 { // it waits for theirs, and says until when
			for _, path := range []string{"", "/transcript", "/ledger"} {
				look(http.MethodGet, third+path, "")
			}
			look(http.MethodPost, third+"/decisions", `{"unit":"ann"}`)
		}
		if second == 20 {
			look(http.MethodPatch, x, `{"window": "70s", "end": "2100-01-31T09:00:00Z"}`)
		}
		look(http.MethodPost, "/ofrep/v1/evaluate/flags/shop", `{"context":{"targetingKey":"ann"}}`)
		look(http.MethodPost, "/ofrep/v1/evaluate/flags", `{"context":{"targetingKey":"ann"}}`)
		for _, path := range []string{"", "/transcript", "/ledger", "/report"} {
			look(http.MethodGet, x+path, "")
		}
		look(http.MethodGet, "/v1/experiments", "")
		look(http.MethodGet, "/readyz", "")
		key := w.key
		w.key = reader // who may read all, and then nobody
		look(http.MethodGet, "/metrics", "")
		w.key = ""
		look(http.MethodGet, "/metrics", "")
		w.key = key
		w.pass(time.Second)
		info, err := w.engine.Get(t.Context(), "shop")
		if err != nil {
			t.Fatal(err)
		}
		if info.Arms[0].Released+info.Arms[1].Released > 0 {
			if second < 50 {
				t.Fatalf("something was released after %d seconds", second)
			}
			fmt.Fprintln(&o.seen, "released at", w.clock.Now())
			return o.seen.String() + w.log.String()
		}
	}
	t.Fatal("nothing was released")
	return ""
}

// tracked is a metric of an event.
const tracked = "metrics: [{name: basket, range: [0, 4], event: checkout, field: total, budget: {epsilon: 0.25}}]\n"

// event is a request with an event of a unit.
func event(name, unit, value string) string {
	return fmt.Sprintf(`{"events": [{"name": %q, "targetingKey": %q, "value": %s, "total": %[3]s}]}`, name, unit, value)
}

// named is a report with an id.
func named(report string, id int) string {
	return fmt.Sprintf(`%s, "id": "%d"}`, report[:len(report)-1], id)
}

// Two worlds: whatever ann reported, whether they did at all, twice or late, every byte of every
// answer before the release is the same, and the release comes at the same tick.
func TestTwoWorlds(t *testing.T) {
	send := func(value string, seconds ...int) func(*world, string, string, int) {
		return func(w *world, path, ann string, now int) {
			for _, s := range seconds {
				if s == now {
					body := reward(ann, value)
					if strings.HasSuffix(path, "/shown") {
						body = body[:len(body)-1] + `, "metrics": {"basket": ` + value + "}}"
					}
					if path == "/v1/track" {
						w.want(http.StatusAccepted, http.MethodPost, path, event("checkout", ann, value))
						continue
					}
					if strings.HasSuffix(path, "/events/ann") {
						w.want(http.StatusOK, http.MethodPost, path+"/reward", `{"reward": `+value+`}`)
						continue
					}
					if strings.HasSuffix(path, "/back") {
						body = named(body, now)
					}
					w.want(http.StatusOK, http.MethodPost, path+"/rewards", body)
				}
			}
		}
	}
	as := func(h http.Handler) http.Handler { return h }
	want := observed(t, as, send("0")) // at no second: never
	for name, report := range map[string]func(*world, string, string, int){
		"reported 1":     send("1", 0),
		"reported 0":     send("0", 0),
		"out of range":   send("-1e300", 1),
		"twice":          send("1", 0, 0, 3),
		"after observer": send("1", 4),
		"late":           send("1", 60),
		"early and late": send("0.5", 1, 61),
	} {
		if testkit.Race && name != "twice" {
			continue // the goroutines are those of one
		}
		t.Run(name, func(t *testing.T) {
			differ(t, observed(t, as, report), want)
		})
	}
}

// differ says where two worlds differ, if they do.
func differ(t *testing.T, got, want string) {
	t.Helper()
	if got == want {
		return
	}
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			t.Fatalf("line %d is\n%s\nwithout their report\n%s", i, a[i], b[i])
		}
	}
	t.Fatalf("%d lines, without their report %d", len(a), len(b))
}

// A twin that says in a header which decisions, which events, or which units that were tracked, have had a
// reward is found.
func TestTwoWorldsFindsATwin(t *testing.T) {
	if testkit.Race {
		t.Skip("the goroutines are those of TestTwoWorlds")
	}
	world := func(kind string, reports bool) string {
		seen := map[string]bool{}
		twin := func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
				b, err := io.ReadAll(r.Body)
				if err != nil {
					t.Error(err)
				}
				r.Body = io.NopCloser(bytes.NewReader(b))
				if path := map[string]string{"track": "/v1/track", "batch": compat.SegmentPath}[kind]; r.URL.Path == path &&
					bytes.Contains(b, []byte(`"ann"`)) && bytes.Contains(b, []byte(`"checkout"`)) {
					if seen["ann"] {
						out.Header().Set(statusHeader, "duplicate")
					}
					seen["ann"] = true
				}
				if kind == "events" && strings.HasSuffix(r.URL.Path, "/events/ann/reward") {
					if seen[""] {
						out.Header().Set(statusHeader, "duplicate")
					}
					seen[""] = true
				}
				if kind == "rewards" && strings.HasSuffix(r.URL.Path, "/rewards") {
					var in rewardRequest
					if decode(b, &in) == nil && seen[in.Decision] {
						out.Header().Set("X-Duplicate", "true")
					}
					seen[in.Decision] = true
				}
				h.ServeHTTP(out, r)
			})
		}
		return observed(t, twin, func(w *world, path, ann string, now int) {
			of := "rewards"
			switch {
			case path == "/v1/track" && kind == "batch":
				of = kind
			case path == "/v1/track":
				of = "track"
			case strings.HasSuffix(path, "/events/ann"):
				of = "events"
			}
			switch {
			case !reports || now > 0 || of != kind:
			case of == "batch":
				w.ask(http.MethodPost, compat.SegmentPath, messages(purchase(ann)))
			case of == "track":
				w.ask(http.MethodPost, path, event("checkout", ann, "1"))
			case of == "events":
				w.ask(http.MethodPost, path+"/reward", `{"reward": 1}`)
			default:
				w.ask(http.MethodPost, path+"/rewards", reward(ann, "1"))
			}
		})
	}
	kinds := []string{"track", "rewards", "events"}
	if testing.Short() {
		kinds = kinds[:1]
	}
	if testkit.Full() {
		kinds = append(kinds, "batch")
	}
	for _, kind := range kinds {
		if world(kind, true) == world(kind, false) {
			t.Errorf("the twin was not found: %s", kind)
		}
	}
}

// Private metrics tell of their report, and would be found if everybody could see them.
func TestTwoWorldsFindsMetrics(t *testing.T) {
	if testkit.Race {
		t.Skip("the goroutines are those of TestTwoWorlds")
	}
	shows := func(name string) func(h http.Handler) http.Handler {
		return func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/metrics" {
					r.Header.Set("X-API-Key", adminOf(t, h))
					rec := httptest.NewRecorder()
					h.ServeHTTP(rec, r)
					out.Header().Set("Content-Type", rec.Header().Get("Content-Type"))
					for line := range strings.Lines(rec.Body.String()) {
						if strings.HasPrefix(line, name) {
							fmt.Fprint(out, line)
						}
					}
					return
				}
				h.ServeHTTP(out, r)
			})
		}
	}
	names := []string{"sotto_rewards_total", "sotto_request_seconds_count"}
	if testing.Short() {
		names = names[:1]
	}
	for _, name := range names {
		var worlds [2]string
		for i := range worlds {
			worlds[i] = observed(t, shows(name), func(w *world, path, ann string, now int) {
				if i == 1 && now == 0 {
					w.ask(http.MethodPost, path+"/rewards", reward(ann, "1"))
				}
			})
		}
		if worlds[0] == worlds[1] {
			t.Errorf("%s was not found", name)
		}
	}
}

// adminOf is a key to everything.
func adminOf(t *testing.T, h http.Handler) string {
	t.Helper()
	key, _, err := h.(*front).Engine.NewKey(t.Context(), "twin", serve.ScopeAdmin)
	if err != nil {
		t.Error(err)
	}
	return key
}
