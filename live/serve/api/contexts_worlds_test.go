package api

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/live/serve"
)

// observedContexts is all that everybody can see of a contextual experiment in which ann's event,
// among others, is rewarded as report says, until and not including the public tick of the first
// release. Without a floor nothing in it is a coin. The observer asks again for everybody's event,
// reports on ann's, and reads all pages, after each second.
func observedContexts(t *testing.T, front func(http.Handler) http.Handler,
	report func(w *world, second int)) string {
	t.Helper()
	w := newWorld(t)
	w.want(201, "POST", "/v1/experiments", strings.NewReplacer("floor: 0.1", "public: true", "lambda: 30",
		"lambda: 5").Replace(segments))
	w.want(200, "POST", "/v1/experiments/segments/start", "")
	w.asked = front(w.asked)
	reader, app := w.keyWith(serve.ScopeRead), w.keyOf("segments")[3]
	o := observer{w: w, names: map[string]string{}}
	const x = "/v1/experiments/segments"
	rank := func(event string, i int) {
		o.look("POST", x+"/rank", fmt.Sprintf(`{"event": %q, "context": {"segment": %q}, "actions": `+
			`[{"id": "a"}, {"id": "b"}, {"id": "c"}, {"id": "d"}]}`, event, "abcd"[i%4:][:1]))
	}
	events := []string{"bob", "ann", "cid", "dan", "eve", "fay", "gus", "hal", "ian", "jo"}
	for i, e := range events {
		rank(e, i)
	}
	for second := range 70 {
		report(w, second)
		for i, e := range events {
			if e != "ann" && i == second%7 {
				o.look("POST", x+"/events/"+e+"/reward", fmt.Sprintf(`{"reward": 0.%d}`, i))
			}
			if (i+second)%5 == 0 {
				rank(e, i)
			}
		}
		rank(fmt.Sprint("late comer ", second), second)
		if second%5 == 2 {
			o.look("POST", x+"/events/ann/reward", `{"reward": 0.25}`)
			o.look("POST", x+"/events/ann/activate", "")
			admin := w.key
			w.key = app
			o.look("POST", theirs+"/events/ann/reward", `{"value": 1}`)
			o.look("GET", theirs+"/configurations/service", "")
			w.key = admin
		}
		if second == 20 {
			o.look("PATCH", x, `{"window": "70s"}`)
		}
		for _, path := range []string{"", "/transcript", "/ledger", "/report", "/model"} {
			o.look("GET", x+path, "")
		}
		o.look("GET", "/v1/experiments", "")
		admin := w.key
		w.key = reader
		o.look("GET", "/metrics", "")
		w.key = admin
		w.pass(time.Second)
		info, err := w.engine.Get(t.Context(), "segments")
		if err != nil {
			t.Fatal(err)
		}
		if info.Contextual.Released > 0 {
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

// Two worlds of a contextual experiment: whatever ann's reward, whether it comes at all, twice or
// late, every byte of every answer before the release is the same, and the release comes at the
// same tick. A twin that says in a header which events have had a reward is found.
func TestTwoWorldsOfContexts(t *testing.T) {
	if testkit.Race {
		t.Skip("one goroutine asks, and it takes long: what is asked side by side is in other tests")
	}
	send := func(value string, seconds ...int) func(*world, int) {
		return func(w *world, now int) {
			for _, s := range seconds {
				if s == now {
					w.want(200, "POST", "/v1/experiments/segments/events/ann/reward", `{"reward": `+value+`}`)
				}
			}
		}
	}
	as := func(h http.Handler) http.Handler { return h }
	want := observedContexts(t, as, send("0")) // at no second: never
	for name, report := range map[string]func(*world, int){
		"reported 1":     send("1", 0),
		"reported 0":     send("0", 0),
		"out of range":   send("-1e300", 1),
		"twice":          send("1", 0, 0, 3),
		"after observer": send("1", 4),
		"late":           send("1", 60),
		"early and late": send("0.5", 1, 61),
	} {
		t.Run(name, func(t *testing.T) { differ(t, observedContexts(t, as, report), want) })
	}
	twin := func() func(h http.Handler) http.Handler {
		seen := false
		return func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, "/events/ann/reward") {
					if seen {
						out.Header().Set("X-Duplicate", "true")
					}
					seen = true
				}
				h.ServeHTTP(out, r)
			})
		}
	}
	if observedContexts(t, twin(), send("1", 0)) == observedContexts(t, twin(), send("0")) {
		t.Error("the twin was not found")
	}
}
