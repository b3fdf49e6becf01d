package api

import (
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/live/serve/compat"
)

// reportingRoutes are those by which outcomes are reported, and what tells of them: none leaves a line.
var reportingRoutes = []string{"POST /tasks/{task}/reports", "POST /v1/experiments/{name}/rewards",
	"POST /v1/experiments/{name}/activations", "POST /v1/experiments/{name}/rewards/batch",
	"POST /v1/experiments/{name}/reports", "POST /v1/experiments/{name}/session", "POST /v1/track",
	"POST " + compat.SegmentPath, "POST " + compat.CollectorPath, "POST " + compat.GrowthBookTrack, "POST /v1/exposures",
	"POST /v1/experiments/{name}/events/{event}/reward",
	"POST /v1/experiments/{name}/events/{event}/activate", "POST " + personalizer + "v1.0/events/{event}/reward",
	"POST " + personalizer + "v1.0/events/{event}/activate"}

// Every route of the table leaves a line, with the names of routes, experiments and keys alone, but those of reports,
// whatever they are answered: also without a key. What is at no address leaves none.
func TestAccessLog(t *testing.T) {
	w := shopOpen(t)
	with := func(a Access) *front {
		return Handler(Config{Engine: w.engine, Access: a, Log: slog.New(slog.NewTextHandler(&w.log, nil))}).(*front)
	}
	fill := strings.NewReplacer("{name}", "shop", "{unit}", "ann-7312894561", "{event}", "ev-7312894561", "{id}", "77",
		"{task}", "t-7312894561", "{key}", "shop")
	for _, level := range []Access{AccessOff, AccessErrors, AccessAll} {
		w.front = with(level)
		w.asked = w.front
		for pattern := range w.front.table() {
			method, path, _ := strings.Cut(pattern, " ")
			for _, key := range []string{"", w.key} {
				if key != "" && (strings.HasSuffix(path, "/stop") || strings.HasSuffix(path, "/archive") || path == "/v1/keys") {
					continue // the others need what they do
				}
				w.log.Reset()
				was := w.key
				w.key = key
				out := w.plain(method, fill.Replace(path)+"?from=x&unit=q-7312894561", "{}")
				w.key = was
				want := level != AccessOff && !slices.Contains(reportingRoutes, pattern) &&
					(level == AccessAll || out.Code >= 400)
				line := w.log.String()
				if got := strings.Contains(line, "msg=request"); got != want {
					t.Errorf("%s: %s with %d: line %q", level, pattern, out.Code, line)
				}
				if strings.Contains(line, "7312894561") || want && !strings.Contains(line, "path="+path+" ") {
					t.Errorf("%s: %q", pattern, line)
				}
			}
		}
		for _, path := range []string{"/v1/experiments/shop/reward", "/v1/tracks", "/nothing"} {
			w.log.Reset()
			if out := w.plain("POST", path, "{}"); out.Code < 400 || w.log.Len() > 0 {
				t.Errorf("%s: %d, %s", path, out.Code, w.log.String())
			}
		}
	}
	for _, pattern := range reportingRoutes {
		if w.front.table()[pattern] == nil {
			t.Errorf("there is no %s", pattern)
		}
	}
	if _, err := ParseAccess("some"); err == nil || !strings.Contains(err.Error(), "off, errors or all") {
		t.Error(err)
	}
}

// An access request is answered to keys of the scope admin alone, with what is kept and in words that rewards are
// not, and is in the journal without the unit.
func TestUnitIsAnswered(t *testing.T) {
	w := shopOpen(t)
	d := w.decide("ann")
	w.want(200, "POST", "/v1/experiments/shop/rewards", reward(*d.Decision, "1"))
	const at = "/v1/experiments/shop/units/"
	got := w.want(200, "GET", at+"ann", "")
	for _, part := range []string{`"assigned":true`, `"arm":"` + d.Arm + `"`, `"propensity":1`, `"assignments":1`,
		`"time":"2001-09-09T01:46:40Z"`, `"expires_at":"2001-09-09T01:47:40Z"`, "sums of many decisions alone"} {
		if !strings.Contains(got, part) {
			t.Errorf("%s is not in %s", part, got)
		}
	}
	if none := w.want(200, "GET", at+"nobody", ""); !strings.Contains(none, `"assigned":false`) ||
		strings.Contains(none, "arm") {
		t.Error(none)
	}
	w.want(204, "DELETE", at+"ann", "")
	if gone := w.want(200, "GET", at+"ann", ""); !strings.Contains(gone, `"assigned":false,"erased":true`) {
		t.Error(gone)
	}
	w.want(404, "GET", "/v1/experiments/none/units/ann", "")
	w.want(400, "GET", at+"%ff", "")
	w.want(400, "GET", at+strings.Repeat("a", 4097), "")
	if journal := w.want(200, "GET", "/v1/audit", ""); strings.Count(journal, "look up a unit") != 3 ||
		strings.Contains(journal, "ann") {
		t.Error(journal)
	}
	for _, scope := range []serve.Scope{serve.ScopeRead, serve.ScopeDecide, serve.ScopeReward, serve.ScopeMetrics,
		browserScopes} {
		if out := w.ask("GET", at+"ann", "", "X-API-Key", w.keyWith(scope)); out.Code != http.StatusForbidden {
			t.Errorf("%v: %d", scope, out.Code)
		}
	}
}

// CloudEvents are events of their type and subject, one or a batch, and refused by form alone.
func TestTrackCloudEvents(t *testing.T) {
	const one = `{"specversion": "1.0", "id": "1", "source": "/shop", "type": "checkout", "subject": "unit 0",
		"time": "2001-09-09T01:46:41Z", "datacontenttype": "application/json", "data": {"value": 0.5, "total": 3, "who": "x"}}`
	const single, batch = "application/cloudevents+json; charset=utf-8", "application/cloudevents-batch+json"
	got := tracksTo(t, heardShop, func(w *world) {
		w.want(202, "POST", "/v1/track", one, "Content-Type", single)
		w.want(202, "POST", "/v1/track", "["+strings.Replace(one, "unit 0", "unit 1", 1)+","+
			strings.Replace(one, "unit 0", "unit 2", 1)+"]", "Content-Type", batch)
		w.want(202, "POST", "/v1/track", strings.Replace(one, "unit 0", "nobody", 1), "Content-Type", single)
		for body, kind := range map[string]string{"": single, "[]": batch, "{}": batch, "[" + one + "]": single, "null": batch,
			strings.Replace(one, `"1.0"`, `"0.3"`, 1):                        single,
			strings.Replace(one, `"source"`, `"other"`, 1):                   single,
			strings.Replace(one, `"id"`, `"other"`, 1):                       single,
			strings.Replace(one, `"subject"`, `"o"`, 1):                      single,
			strings.Replace(one, `"value": 0.5`, `"value": "7312894561"`, 1): single} {
			if out := w.ask("POST", "/v1/track", body, "Content-Type", kind); out.Code != 400 ||
				strings.Contains(out.Body.String(), "7312894561") {
				t.Errorf("%.60s: %d %s", body, out.Code, out.Body)
			}
		}
	})
	if got != [2]float64{1.5, 9} {
		t.Errorf("%v", got)
	}
}
