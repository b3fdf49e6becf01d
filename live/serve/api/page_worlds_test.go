package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/live/serve/store"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/release"
)

// A seen is what somebody who looks is told, and when.
type seen struct {
	at   time.Time
	text string
}

// A watcher is an open page: it writes down when which bytes of an event stream come.
type watcher struct {
	mu     sync.Mutex
	header http.Header
	got    []seen
}

func (x *watcher) Header() http.Header { return x.header }
func (x *watcher) WriteHeader(int)     {}
func (x *watcher) Flush()              {}
func (x *watcher) Write(b []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.got = append(x.got, seen{time.Now(), string(b)})
	return len(b), nil
}

// sums are those that curators were given, by curator and in their order.
type sums map[int][]int64

// A world of pages: what the noise is, and who comes between its people and the service.
type pageWorld struct {
	given sums // filled, or given in the place of the true sums if fixed
	fixed bool
	front func(http.Handler, *[]*watcher) http.Handler
}

type given struct {
	release.StepCurator
	w  *pageWorld
	id int
	n  *int
}

func (g given) AddSteps(arm, n int, steps int64) error {
	switch all := g.w.given[g.id]; {
	case !g.w.fixed:
		g.w.given[g.id] = append(all, steps)
	case *g.n < len(all):
		steps = all[*g.n]
	}
	*g.n++
	return g.StepCurator.AddSteps(arm, n, steps)
}

// What has no meaning of its own and differs between worlds, as keys do: tokens, hashes, and the
// names of snapshots, which are hashes of what is shown.
var nameless = regexp.MustCompile(`[0-9a-f]{64}|[A-Za-z0-9_-]{90}|(id: |"id":"|from=)[0-9a-f]{16}`)

// play lets visitors come to three experiments for 20 of 47 seconds, ann among them, who reports as
// report says by the seconds after they came, and whose decision in the third is taken back then,
// and somebody look at all pages every three seconds, and at their events all the time. It returns
// what was seen, and a time before the first release by less than a second.
func (p *pageWorld) play(t *testing.T, report map[int]string) (all []seen, released time.Time) {
	t.Helper()
	curators := 0
	if p.given == nil {
		p.given = sums{}
	}
	metrics := NewMetrics()
	e, err := serve.Open(t.Context(), serve.Config{Store: store.NewMemory().Open, Meter: metrics,
		Curator: func(c release.Config) (release.Curator, error) {
			s := noise.NewFast(1, 2)
			cur, err := release.Simulated(c, &s)
			curators++
			return given{cur.(release.StepCurator), p, curators, new(int)}, err
		}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	var watchers []*watcher
	var h http.Handler = Handler(Config{Engine: e, Metrics: metrics})
	defer h.(*front).pages.Close()
	if p.front != nil {
		h = p.front(h, &watchers)
	}
	admin, _, err := e.NewKey(t.Context(), "admin", serve.ScopeAdmin)
	if err != nil {
		t.Fatal(err)
	}
	reader, _, err := e.NewKey(t.Context(), "reader", serve.ScopeRead)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(key, method, path, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
		if key != "" {
			r.Header.Set("X-API-Key", key)
		}
		if strings.HasSuffix(path, "/report") {
			r.Header.Set("Accept", "application/json")
		}
		out := httptest.NewRecorder()
		h.ServeHTTP(out, r)
		return out
	}
	names := []string{"shop", "shown", "back"}
	brief := strings.Replace(shop, "window: 1m", "window: 10s", 1)
	texts := []string{brief, strings.NewReplacer("name: shop", "name: shown", "public: true", "", "window: 10s",
		"window: 10s\nexposure: activate\nmetrics: [{name: basket, range: [0, 200], budget: {epsilon: 0.5}}]").
		Replace(brief), strings.NewReplacer("name: shop", "name: back", "window: 10s",
		"window: 10s\nexposure: retract").Replace(brief)}
	for i, name := range names {
		if out := ask(admin, "POST", "/v1/experiments", texts[i]); out.Code != 201 {
			t.Fatal(out.Body)
		}
		ask(admin, "POST", "/v1/experiments/"+name+"/start", "")
	}
	watching, stop := context.WithCancel(t.Context())
	var open sync.WaitGroup
	for i, path := range []string{"/experiments/shop/events", "/experiments/shop/events",
		"/experiments/shown/events",
		"/experiments/back/events"} {
		x := &watcher{header: http.Header{}}
		watchers = append(watchers, x)
		open.Go(func() {
			r := httptest.NewRequestWithContext(watching, "GET", path, nil)
			if i > 0 {
				r.Header.Set("X-API-Key", reader)
			}
			h.ServeHTTP(x, r)
		})
	}
	time.Sleep(30 * time.Millisecond) // between the instants at which the service does something
	var tokens [3][]string
	shown := false
	for second := range 47 {
		for i, name := range names {
			for unit := 2 * second; unit < 2*second+2; unit++ {
				if second >= 20 { // they stay away: time passes alone
					break
				}
				d, err := e.Decide(t.Context(), name, fmt.Sprint(unit))
				if err != nil {
					t.Fatal(err)
				}
				tokens[i] = append(tokens[i], d.Token)
			}
			const ann = 3
			for unit, token := range tokens[i] {
				came := unit / 2
				if i == 1 && second == came+2 && unit%7 != 6 {
					if _, err := e.Activate(t.Context(), name, token, true); err != nil {
						t.Fatal(err)
					}
				}
				if i == 2 && second == came+5 && (unit == ann || unit%7 == 6) {
					if _, err := e.Activate(t.Context(), name, token, false); err != nil {
						t.Fatal(err)
					}
				}
				value := fmt.Sprintf("0.%d", unit%10)
				if unit == ann {
					value = report[second-came]
				} else if second != came+3+unit%5 {
					value = ""
				}
				if value != "" {
					body := reward(token, value)
					if i == 1 {
						body = body[:len(body)-1] + `, "metrics": {"basket": ` + value + "}}"
					}
					if out := ask(admin, "POST", "/v1/experiments/"+name+"/rewards", body); out.Code != 200 {
						t.Fatal(out.Body)
					}
				}
			}
		}
		synctest.Wait()
		for _, name := range names {
			info, err := e.Get(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			shown = shown || info.Arms[0].Released+info.Arms[1].Released > 0
		}
		if !shown {
			released = time.Now()
		}
		if second%3 > 0 {
			time.Sleep(time.Second)
			continue
		}
		for _, look := range []string{"/", "/?sort=decisions&state=running&q=s", "/experiments/shop", "/experiments/shop/ledger",
			"/metrics", "/experiments/shown", "/v1/experiments/shown", "/v1/experiments/shown/report",
			"/v1/experiments/shop/report", "/experiments/shown/ledger", "/experiments/back",
			"/experiments/back/ledger",
			"/experiments/shop/report", "/experiments/shown/report"} {
			for _, key := range []string{"", reader} {
				out := ask(key, "GET", look, "")
				all = append(all, seen{time.Now(), fmt.Sprintln(look, out.Code, out.Header(), out.Body)})
			}
		}
		if second%12 == 0 {
			for _, name := range names {
				for _, file := range []string{"/transcript.jsonl", "/ledger.csv", "/hours.csv",
					"/batches.csv"} {
					out := ask(admin, "GET", "/experiments/"+name+file, "")
					all = append(all, seen{time.Now(), fmt.Sprintln(file, out.Code, out.Header(), out.Body)})
				}
			}
		}
		time.Sleep(time.Second)
	}
	stop()
	open.Wait()
	for i, x := range watchers {
		for _, s := range x.got {
			all = append(all, seen{s.at, fmt.Sprint("events ", i, ": ", s.text)})
		}
	}
	known := map[string]string{}
	for i := range all {
		all[i].text = nameless.ReplaceAllStringFunc(all[i].text, func(s string) string {
			if known[s] == "" {
				known[s] = fmt.Sprint("name ", len(known))
			}
			return known[s]
		})
	}
	if !shown {
		t.Fatal("nothing was released")
	}
	return all, released
}

// until is what was seen before a time, and when.
func until(all []seen, end time.Time) string {
	var out bytes.Buffer
	for _, s := range all {
		if s.at.Before(end) {
			fmt.Fprintln(&out, s.at.Format("05.000000000"), s.text)
		}
	}
	return out.String()
}

// Whatever ann reports, and whether they do, every byte of pages, events, files and metrics, and
// the instants at which events leave, are the same until the release that their reward is in, which
// comes at the same tick; and if the noise makes that release the same, for ever.
func TestTwoWorldsOfPages(t *testing.T) {
	if testkit.Race {
		t.Skip("what it shows is not about races, of which TestEventsEnd has those")
	}
	forever := time.Unix(1<<40, 0)
	var silent []seen
	var silentAt time.Time
	first := &pageWorld{}
	synctest.Test(t, func(t *testing.T) { silent, silentAt = first.play(t, nil) })
	if text := until(silent, forever); strings.Count(text, "event: update") < 60 ||
		!strings.Contains(text, "blue is ahead") && !strings.Contains(text, "red is ahead") ||
		!strings.Contains(text, `metric="basket",value="high"`) || !strings.Contains(text, "Difference to red") ||
		!strings.Contains(text, `"word":"ahead"`) ||
		!strings.Contains(text, ":\n\n") {
		t.Fatalf("too little is seen: %d events", strings.Count(text, "event: update"))
	}
	worlds := map[string]map[int]string{"0": {3: "0"}, "1": {3: "1"}, "twice": {3: "1", 4: "1"},
		"at the end": {9: "1"}, "out of range": {4: "1e300"}}
	if !testkit.Full() { // which takes twenty times as long
		worlds = map[string]map[int]string{"1": {3: "1"}}
	}
	for name, report := range worlds {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				other, at := (&pageWorld{}).play(t, report)
				if !at.Equal(silentAt) {
					t.Errorf("the release is at %v, without their report at %v", at, silentAt)
				}
				if a, b := until(silent, silentAt), until(other, at); a != b {
					t.Error(firstDifference(b, a))
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		other, _ := (&pageWorld{given: first.given, fixed: true}).play(t, map[int]string{3: "1"})
		if a, b := until(silent, forever), until(other, forever); a != b {
			t.Error("with shifted noise: ", firstDifference(b, a))
		}
	})
}

func firstDifference(got, want string) string {
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("line %d is\n%.600s\nwithout their report\n%.600s", i, a[i], b[i])
		}
	}
	return fmt.Sprintf("%d lines, without their report %d", len(a), len(b))
}

// Twins are caught: a page that shows how many rewards came, one that shows a metric before it is
// released, and one that tells open pages at once.
func TestTwoWorldsOfPagesFindTwins(t *testing.T) {
	if testkit.Race {
		t.Skip("what it shows is not about races")
	}
	for name, twin := range map[string]func(http.Handler, *[]*watcher) http.Handler{
		"counter": func(h http.Handler, _ *[]*watcher) http.Handler {
			rewards := 0
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				h.ServeHTTP(w, r)
				if strings.HasSuffix(r.URL.Path, "/rewards") {
					rewards++
				} else if r.URL.Path == "/experiments/shop" {
					fmt.Fprintf(w, "<p>%d rewards</p>", rewards)
				}
			})
		},
		"metric": func(h http.Handler, _ *[]*watcher) http.Handler {
			sum := 0.0
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, "/rewards") {
					b, _ := io.ReadAll(r.Body)
					var in rewardRequest
					if err := json.Unmarshal(b, &in); err != nil {
						t.Error(err)
					}
					if x := in.Metrics["basket"]; x != nil {
						sum += *x
					}
					r.Body = io.NopCloser(bytes.NewReader(b))
				}
				h.ServeHTTP(w, r)
				if r.URL.Path == "/experiments/shown" {
					fmt.Fprintf(w, "<p>basket %.1f</p>", sum)
				}
			})
		},
		"at once": func(h http.Handler, open *[]*watcher) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				h.ServeHTTP(w, r)
				if strings.HasSuffix(r.URL.Path, "/rewards") {
					_, _ = (*open)[0].Write([]byte(":\n\n"))
				}
			})
		},
	} {
		var seen [2]string
		for i, report := range []map[int]string{nil, {3: "1"}} {
			synctest.Test(t, func(t *testing.T) {
				all, at := (&pageWorld{front: twin}).play(t, report)
				seen[i] = until(all, at)
			})
		}
		if seen[0] == seen[1] {
			t.Errorf("the twin %q is not caught", name)
		}
	}
}
