package api

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
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

// A contextsWorld is a pageWorld of an experiment with contexts, whose curator's sums are vectors;
// those of its rule are pageWorld's.
type contextsWorld struct {
	pageWorld
	vectors [][]int64 // filled, or given in the place of the true sums if fixed
}

type givenVectors struct {
	release.StepFeatureCurator
	w *contextsWorld
	n *int
}

func (g givenVectors) AddSteps(slot, n int, steps []int64) error {
	switch {
	case !g.w.fixed:
		g.w.vectors = append(g.w.vectors, slices.Clone(steps))
	case *g.n < len(g.w.vectors):
		steps = g.w.vectors[*g.n]
	}
	*g.n++
	return g.StepFeatureCurator.AddSteps(slot, n, steps)
}

// play has visitors rank for 20 of 40 seconds, ann among them, whose reward comes as report says by
// the seconds after they came, and somebody look at all pages, as pageWorld's play does. There is no
// floor, whose coins would differ from world to world.
func (p *contextsWorld) play(t *testing.T, report map[int]string) (all []seen, released time.Time) {
	t.Helper()
	curators, vectors := 0, 0
	if p.given == nil {
		p.given = sums{}
	}
	e, err := serve.Open(t.Context(), serve.Config{Store: store.NewMemory().Open,
		Curator: func(c release.Config) (release.Curator, error) {
			s := noise.NewFast(1, 2)
			cur, err := release.Simulated(c, &s)
			curators++
			return given{cur.(release.StepCurator), &p.pageWorld, curators, new(int)}, err
		},
		VectorCurator: func(c release.FeatureConfig) (release.FeatureCurator, error) {
			s := noise.NewFast(3, 4)
			cur, err := release.SimulatedFeatures(c, &s)
			return givenVectors{cur.(release.StepFeatureCurator), p, &vectors}, err
		}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	watchers := []*watcher{{header: http.Header{}}}
	var h http.Handler = Handler(Config{Engine: e})
	defer h.(*front).pages.Close()
	if p.front != nil {
		h = p.front(h, &watchers)
	}
	admin, _, err := e.NewKey(t.Context(), "admin", serve.ScopeAdmin)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(key, method, path, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
		if key != "" {
			r.Header.Set("X-API-Key", key)
		}
		out := httptest.NewRecorder()
		h.ServeHTTP(out, r)
		if out.Code >= 400 {
			t.Fatal(path, out.Body)
		}
		return out
	}
	ask(admin, "POST", "/v1/experiments", strings.NewReplacer("floor: 0.1", "public: true",
		"lambda: 30", "lambda: 5",
		"window: 1m", "window: 10s", "  actions: 4",
		"  actions: 4\n  rules: [{name: learner, play: policy, clip: 1, budget: {rho: 0.1}}]").Replace(segments))
	ask(admin, "POST", "/v1/experiments/segments/start", "")
	watching, stop := context.WithCancel(t.Context())
	var open sync.WaitGroup
	open.Go(func() {
		h.ServeHTTP(watchers[0], httptest.NewRequestWithContext(watching, "GET",
			"/experiments/segments/events", nil))
	})
	time.Sleep(30 * time.Millisecond) // between the instants at which the service does something
	const ann, x = 3, "/v1/experiments/segments"
	events, shown := 0, false
	for second := range 40 {
		for range 2 {
			if second >= 20 { // they stay away: time passes alone
				break
			}
			ask(admin, "POST", x+"/rank", fmt.Sprintf(`{"event": "%d", "context": {"segment": %q}, "actions": `+
				`[{"id": "a"}, {"id": "b"}, {"id": "c"}, {"id": "d"}]}`, events, "abcd"[events%4:][:1]))
			events++
		}
		for event := range events {
			came := event / 2
			value := fmt.Sprintf("0.%d", event%10)
			if event == ann {
				value = report[second-came]
			} else if second != came+3+event%5 {
				value = ""
			}
			if value != "" {
				ask(admin, "POST", fmt.Sprintf("%s/events/%d/reward", x, event), `{"reward": `+value+`}`)
			}
		}
		synctest.Wait()
		info, err := e.Get(t.Context(), "segments")
		if err != nil {
			t.Fatal(err)
		}
		if shown = shown || info.Contextual.Released > 0; !shown {
			released = time.Now()
		}
		if second%3 == 0 {
			paths := []string{"/", "/experiments/segments", "/experiments/segments/ledger", x + "/report", x,
				"/experiments/segments/report"}
			if second%12 == 0 {
				for _, file := range []string{"transcript.jsonl", "ledger.csv", "hours.csv", "batches.csv"} {
					paths = append(paths, "/experiments/segments/"+file)
				}
			}
			if shown {
				paths = append(paths, "/experiments/segments/model.json")
			}
			for _, path := range paths {
				out := ask(admin, "GET", path, "")
				all = append(all, seen{time.Now(), fmt.Sprintln(path, out.Code, out.Header(), out.Body)})
			}
		}
		time.Sleep(time.Second)
	}
	stop()
	open.Wait()
	if !shown {
		t.Fatal("nothing was released")
	}
	for _, s := range watchers[0].got {
		all = append(all, seen{s.at, "events: " + s.text})
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
	return all, released
}

// As TestTwoWorldsOfPages, of an experiment with contexts and a rule: whatever ann's reward is,
// pages, events and files are the same until the release that it is in, and if the noise makes that
// release the same, for ever.
func TestTwoWorldsOfContextsPages(t *testing.T) {
	if testkit.Race {
		t.Skip("what it shows is not about races, of which TestEventsEnd has those")
	}
	forever := time.Unix(1<<40, 0)
	var silent []seen
	var silentAt time.Time
	first := &contextsWorld{}
	synctest.Test(t, func(t *testing.T) { silent, silentAt = first.play(t, nil) })
	if text := until(silent, forever); strings.Count(text, "event: update") < 20 ||
		!strings.Contains(text, "what the policy plays") || !strings.Contains(text, "were released, in ") {
		t.Fatalf("too little is seen: %d events", strings.Count(text, "event: update"))
	}
	for name, report := range map[string]map[int]string{"1": {3: "1"}, "twice": {3: "1", 4: "0"},
		"late": {13: "1"}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				other, at := (&contextsWorld{}).play(t, report)
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
		w := &contextsWorld{vectors: first.vectors}
		w.given, w.fixed = first.given, true
		other, _ := w.play(t, map[int]string{3: "1"})
		if a, b := until(silent, forever), until(other, forever); a != b {
			t.Error("with shifted noise: ", firstDifference(b, a))
		}
	})
}

// A twin is caught whose page shows how many rewards came; and their reward is in what is released:
// without the shift of the noise the worlds are apart afterwards.
func TestTwoWorldsOfContextsPagesFindTwins(t *testing.T) {
	if testkit.Race {
		t.Skip("what it shows is not about races")
	}
	counter := func(h http.Handler, _ *[]*watcher) http.Handler {
		rewards := 0
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			h.ServeHTTP(w, r)
			if strings.HasSuffix(r.URL.Path, "/reward") {
				rewards++
			} else if r.URL.Path == "/experiments/segments" {
				fmt.Fprintf(w, "<p>%d rewards</p>", rewards)
			}
		})
	}
	var before, after [2][2]string
	for i, front := range []func(http.Handler, *[]*watcher) http.Handler{nil, counter} {
		for j, report := range []map[int]string{nil, {3: "1"}} {
			synctest.Test(t, func(t *testing.T) {
				w := &contextsWorld{}
				w.front = front
				all, at := w.play(t, report)
				before[i][j], after[i][j] = until(all, at), until(all, time.Unix(1<<40, 0))
			})
		}
	}
	if before[1][0] == before[1][1] {
		t.Error("the counter is not caught")
	}
	if before[0][0] != before[0][1] || after[0][0] == after[0][1] {
		t.Error("their reward is in nothing that was released")
	}
}
