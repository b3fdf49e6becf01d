package api

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/client"
	"github.com/sotto-dp/sotto/internal/clock"
	"github.com/sotto-dp/sotto/live/lease"
	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/live/serve/store"
)

// A common store has the secret of all shares of a database, as one that is made with them has.
type common struct {
	store.Store
	secret [32]byte
}

func (c common) Begin(ctx context.Context, holder string) (store.Opened, error) {
	out, err := c.Store.Begin(ctx, holder)
	out.Secret = c.secret
	return out, err
}

func newShares(t testing.TB, cfg serve.Config, n int) *serve.Shares {
	t.Helper()
	disks := make([]*store.Memory, n)
	for i := range disks {
		disks[i] = store.NewMemory()
	}
	s, err := serve.OpenShares(t.Context(), cfg, n, func(i int) func(context.Context) (store.Store, error) {
		return func(ctx context.Context) (store.Store, error) {
			st, err := disks[i].Open(ctx)
			return common{st, [32]byte{1}}, err
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// A sharedWorld is a world of which four shares answer.
type sharedWorld struct {
	*world
	router *router
	shares *serve.Shares
}

func newSharedWorld(t testing.TB, change ...func(*Config)) *sharedWorld {
	t.Helper()
	w := &world{t: t, clock: clock.At(time.UnixMilli(1_000_000_000_000))}
	var err error
	if w.doc, err = readOpenAPI(); err != nil {
		t.Fatal(err)
	}
	metrics := NewMetrics()
	s := newShares(t, serve.Config{Curator: seeded, Clock: w.clock.Now, Meter: metrics}, 4)
	cfg := Config{Shares: s, Metrics: metrics, Log: slog.New(slog.NewTextHandler(&w.log, nil)), Access: AccessAll}
	for _, c := range change {
		c(&cfg)
	}
	out := &sharedWorld{world: w, shares: s, router: Handler(cfg).(*router)}
	w.engine, w.front, w.asked = s.Engines()[0], out.router.fronts[0], out.router
	if w.key, _, err = w.engine.NewKey(t.Context(), "admin", serve.ScopeAdmin); err != nil {
		t.Fatal(err)
	}
	return out
}

func (w *sharedWorld) pass(d time.Duration) {
	w.t.Helper()
	w.clock.Add(d)
	for _, e := range w.shares.Engines() {
		if err := e.Sync(w.t.Context()); err != nil {
			w.t.Fatal(err)
		}
	}
}

// Each route goes to the share of the experiment in its path, or is in the table of those that name none, with a way
// to join what it answers; and the table has no other. So a new route says where it goes.
func TestEveryRouteHasAWay(t *testing.T) {
	f := newWorld(t).front
	left := maps.Clone(ways)
	for _, table := range []map[string]http.HandlerFunc{f.table(), f.pageTable()} {
		for pattern := range table {
			to, said := ways[pattern]
			delete(left, pattern)
			switch names := nameIn(pattern) > 0; {
			case names && said:
				t.Errorf("%s names an experiment, and is in the table", pattern)
			case !names && !said:
				t.Errorf("%s names no experiment: say in ways which shares it goes to", pattern)
			case said && (to.way == joined) != (to.join != nil):
				t.Errorf("%s: who joins what is answered?", pattern)
			case said && (to.way == joined || to.way == sought) && !strings.HasPrefix(pattern, "GET ") && to.limit == 0:
				t.Errorf("%s has a body, which all shares need", pattern)
			}
		}
	}
	for pattern := range left {
		t.Errorf("%s is no route", pattern)
	}
}

// What a segment names, and what names nothing.
func TestRoutesFindTheirShare(t *testing.T) {
	w := newSharedWorld(t)
	w.want(201, "POST", "/v1/experiments", shop)
	in, ok, err := w.shares.Of(t.Context(), "shop")
	if err != nil || !ok || in == 0 {
		t.Fatal(in, ok, err)
	}
	for path, want := range map[string]int{"/v1/experiments/shop": in, "/v1/experiments/sho%70/start": in,
		"/experiments/shop/events": in, "/ofrep/v1/evaluate/flags/shop": in, "/v1/feature/shop/eval": in,
		"/v1/experiments/none": 0, "/v1/experiments/shop%2F": 0, "/v1/experiments/": 0, "/v1//x/shop": 0} {
		at := 3
		switch {
		case strings.HasPrefix(path, "/experiments"):
			at = 2
		case strings.HasPrefix(path, "/ofrep"):
			at = 5
		}
		if got := w.router.of(httptest.NewRequest("GET", path, nil), at).share; got != want {
			t.Errorf("%s goes to share %d, want %d", path, got, want)
		}
	}
}

// several are experiments in the words of one world, whichever shares they are in.
func several(w *world) {
	for i, more := range []string{"", "", "", tracked + leasedText,
		tracked, tracked, "layer: {name: page, from: 0, to: 1}\n"} {
		x := strings.Replace(shop, "name: shop", fmt.Sprintf("name: shop%d", i), 1)
		if strings.HasPrefix(more, tracked) {
			x = strings.Replace(x, "default: 0", "default: 0, event: checkout", 1)
		}
		w.want(201, "POST", "/v1/experiments", x+more)
		w.want(200, "POST", fmt.Sprintf("/v1/experiments/shop%d/start", i), "")
	}
	w.want(201, "POST", "/v1/experiments", strings.Replace(shop, "name: shop", "name: a-draft", 1))
}

// shape is a JSON value without what is drawn: the arm that a unit is given, and all that is keyed.
func shape(t *testing.T, text string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err, text)
	}
	drawn := map[string]bool{"variant": true, "variationType": true, "value": true, "decision": true, "salt": true, "seed": true,
		"url": true, "targeting": true, "defaultVariant": true, "at": true, "meta": true, "weights": true, "variations": true}
	var strip func(v any) any
	strip = func(v any) any {
		switch v := v.(type) {
		case map[string]any:
			for k, of := range v {
				if v[k] = strip(of); drawn[k] {
					v[k] = "drawn"
				}
			}
		case []any:
			for i := range v {
				v[i] = strip(v[i])
			}
			slices.SortStableFunc(v, func(a, b any) int { return strings.Compare(nameOf(a), nameOf(b)) })
		}
		return v
	}
	return strip(v)
}

func nameOf(v any) string {
	of, _ := v.(map[string]any)
	if of["key"] != nil {
		return fmt.Sprint(of["key"])
	}
	return fmt.Sprint(of["name"])
}

// What spans experiments is answered by four shares as by one engine which has all of them.
func TestJoinedAsOne(t *testing.T) {
	one, four := newWorld(t), newSharedWorld(t)
	several(one)
	several(four.world)
	in := map[int]bool{}
	for _, name := range one.engine.Names() {
		share, _, _ := four.shares.Of(t.Context(), name)
		in[share] = true
	}
	if len(in) < 3 {
		t.Fatalf("the experiments are in shares %v: the test is none", in)
	}
	decider := map[*world]string{}
	for _, w := range []*world{one, four.world} {
		var err error
		if decider[w], _, err = w.engine.NewKey(t.Context(), "sdk", serve.ScopeDecide); err != nil {
			t.Fatal(err)
		}
	}
	for _, x := range []struct{ method, path, body string }{
		{"GET", "/v1/experiments", ""},
		{"GET", "/v1/account", ""},
		{"POST", allFlags, ann},
		{"POST", allFlags, `{"context":{"targetingKey":"ann","consent":false}}`},
		{"POST", allFlags, `{"context":{}}`},
		{"POST", allFlags, `{`},
		{"POST", allFlags, `{"context":{"x":"` + strings.Repeat("x", maxContext) + `"}}`},
		{"POST", "/v1/allflags", `{"evaluationContext":{"key":"ann"}}`},
		{"POST", "/v1/allflags", `{}`},
		{"GET", "/v1/flagd", ""},
		{"GET", "/api/features/KEY", ""},
		{"POST", "/v1/track", event("checkout", "ann", "1")},
		{"POST", "/v1/track", event("checkout", "", "1")},
		{"POST", "/v1/track", `{"events": []}`},
		{"POST", "/v1/track", `{"events": [` + strings.Repeat(" ", maxBatch) + `]}`},
		{"POST", "/v1/batch", `{"batch":[{"type":"track","event":"checkout","userId":"ann","properties":{"value":1}}]}`},
		{"POST", "/v1/data/collector", `{"meta":{},"events":[{"kind":"tracking","userKey":"ann","key":"checkout","trackingEventDetails":{"value":1}}]}`},
		{"POST", "/v1/exposures", `{"exposures":[{"experiment":"none","targetingKey":"ann","epoch":1,"arm":"red"}]}`},
		{"POST", "/track", `[]`},
		{"GET", "/v1/audit?from=x", ""},
		{"GET", "/v1/audit?from=-1", ""},
		{"GET", "/nothing", ""},
		{"DELETE", "/v1/track", ""},
		{"GET", "/sotto.js", ""},
		{"GET", "/openapi.yaml", ""},
		{"GET", "/livez", ""},
		{"GET", "/readyz", ""},
		{"GET", "/v1/keys", ""},
		{"GET", "/account", ""},
	} {
		path := func(w *world) string { return strings.Replace(x.path, "KEY", decider[w], 1) }
		admin := map[*world]string{one: one.key, four.world: four.key}
		for _, without := range []bool{false, true} {
			if without {
				one.key, four.key = "", ""
			}
			a, b := one.ask(x.method, path(one), x.body), four.ask(x.method, path(four.world), x.body)
			if a.Code != b.Code {
				t.Errorf("%s %s, key %v: %d of one, %d of four: %s", x.method, x.path, !without, a.Code, b.Code, b.Body)
				continue
			}
			for _, h := range []*httptest.ResponseRecorder{a, b} {
				h.Header().Del("ETag")
			}
			if !reflect.DeepEqual(a.Header(), b.Header()) {
				t.Errorf("%s %s, key %v: headers\n%v\n%v", x.method, x.path, !without, a.Header(), b.Header())
			}
			if !strings.HasSuffix(a.Header().Get("Content-Type"), "json") {
				if a.Body.String() != b.Body.String() {
					t.Errorf("%s %s:\n%s\n%s", x.method, x.path, a.Body, b.Body)
				}
				continue
			}
			if p, q := shape(t, a.Body.String()), shape(t, b.Body.String()); !reflect.DeepEqual(p, q) {
				t.Errorf("%s %s, key %v:\n%v\n%v", x.method, x.path, !without, p, q)
			}
		}
		one.key, four.key = admin[one], admin[four.world]
	}
}

// What no share would say alone: a browser is one unit in all experiments, and a unit that is signed for one
// experiment alone is let in.
func TestBrowsersOfShares(t *testing.T) {
	w := newSharedWorld(t, func(c *Config) { c.clock = func() time.Time { return time.Unix(0, 0) } })
	several(w.world)
	admin := w.key
	var err error
	if w.key, _, err = w.engine.NewKey(t.Context(), "page", serve.ScopeDecide|serve.ScopeReward|serve.ScopeBrowser); err != nil {
		t.Fatal(err)
	}
	tls := []string{"X-Forwarded-Proto", "https"}
	first := w.ask("POST", allFlags, `{"context":{}}`, tls...)
	if first.Code != 200 || len(first.Result().Cookies()) != 1 {
		t.Fatal(first.Code, first.Header(), first.Body)
	}
	cookie := cookieName + "=" + first.Result().Cookies()[0].Value
	for range 3 { // it is the unit of all that it was told
		again := w.ask("POST", allFlags, `{"context":{}}`, append(tls, "Cookie", cookie)...)
		if again.Body.String() != first.Body.String() || len(again.Result().Cookies()) != 0 {
			t.Fatalf("a browser is told\n%s\nand then\n%s", first.Body, again.Body)
		}
	}
	tag := first.Header().Get("ETag")
	if again := w.ask("POST", allFlags, `{"context":{}}`, append(tls, "Cookie", cookie, "If-None-Match", tag)...); again.Code != 304 ||
		again.Body.Len() != 0 {
		t.Errorf("what it has is sent again: %d", again.Code)
	}
	if forged := w.ask("POST", allFlags, `{"context":{}}`, append(tls, "Cookie", cookieName+"=forged")...); len(forged.Result().Cookies()) != 1 {
		t.Errorf("a forged cookie is %v", forged.Header())
	}
	// an address has a minute's worth of new units, whichever shares they are in
	refused := 0
	for range 100 {
		if w.ask("POST", allFlags, `{"context":{}}`, tls...).Code == 429 {
			refused++
		}
	}
	if refused != 100-58 {
		t.Errorf("%d of 102 new units are refused, want 42", refused)
	}
	w.key = admin
	secret, _, err := w.engine.NewKey(t.Context(), "product", serve.ScopeSign)
	if err != nil {
		t.Fatal(err)
	}
	if w.key, _, err = w.engine.NewKey(t.Context(), "page", serve.ScopeDecide|serve.ScopeReward|serve.ScopeBrowser); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"shop0", "shop4", "shop6"} { // of several shares
		token := client.SignUnit(secret, name, "ann", w.clock.Now().Add(time.Hour))
		got := w.want(200, "POST", allFlags, fmt.Sprintf(`{"context":{"targetingKey":%q}}`, token))
		if strings.Count(got, `"key":`) != 1 || !strings.Contains(got, `"key":"`+name+`"`) {
			t.Errorf("signed for %s: %s", name, got)
		}
		w.want(202, "POST", "/v1/track", event("checkout", token, "1"))
	}
	w.want(403, "POST", "/v1/track", event("checkout", "ann", "1"))
	w.want(403, "POST", allFlags, `{"context":{"targetingKey":"ann"}}`)
}

// An event counts in the shares of all experiments that declare it; the answer is the same where none does.
func TestEventsOfShares(t *testing.T) {
	w := newSharedWorld(t)
	several(w.world)
	for _, name := range []string{"shop4", "shop5"} {
		for i := range 8 {
			w.want(200, "POST", "/v1/experiments/"+name+"/decisions", fmt.Sprintf(`{"unit": "u%d"}`, i))
		}
	}
	for i := range 8 {
		w.want(202, "POST", "/v1/track", event("checkout", fmt.Sprint("u", i), "1"))
	}
	w.want(202, "POST", "/v1/track", event("nothing", "u1", "1"))
	metrics := w.want(200, "GET", "/metrics", "")
	for _, name := range []string{"shop4", "shop5"} {
		if want := fmt.Sprintf("sotto_rewards_total{experiment=%q,status=\"accepted\"} 8\n", name); !strings.Contains(metrics, want) {
			t.Errorf("%s is missing in the metrics:\n%s", want, metrics)
		}
	}
	for _, name := range w.names(t) { // those of all shares, in one text
		if want := fmt.Sprintf("sotto_experiment_state{experiment=%q,", name); strings.Count(metrics, want) != 1 {
			t.Errorf("%d times %s", strings.Count(metrics, want), want)
		}
	}
	if want := `sotto_request_seconds_count{route="POST /v1/track",status="202"} 9`; !strings.Contains(metrics, want) {
		t.Errorf("a request that goes to four shares is not counted once: %s", metrics)
	}
	if strings.Contains(w.log.String(), "/v1/track") {
		t.Error("reports leave lines in the log")
	}
	w.log.Reset()
	w.want(200, "POST", allFlags, ann)
	if n := strings.Count(w.log.String(), "path=/ofrep/v1/evaluate/flags"); n != 1 {
		t.Errorf("a request leaves %d lines: %s", n, &w.log)
	}
	w.log.Reset()
	w.want(200, "POST", allFlags, ann, partHeader, "1")
	if n := strings.Count(w.log.String(), "path=/ofrep/v1/evaluate/flags"); n != 1 {
		t.Errorf("who says so leaves %d lines", n)
	}
}

// Exposures go to the shares of their experiments and hold up nobody by another, and to all of them where they name many.
func TestExposuresOfShares(t *testing.T) {
	w := newSharedWorld(t)
	places := map[int]string{} // by share
	for i := 0; len(places) < 3; i++ {
		name := fmt.Sprint("leased", i)
		w.want(201, "POST", "/v1/experiments", strings.Replace(leasedShop, "name: shop", "name: "+name, 1))
		w.want(200, "POST", "/v1/experiments/"+name+"/start", "")
		share, _, _ := w.shares.Of(t.Context(), name)
		places[share] = name
	}
	w.pass(time.Second)
	var all []string
	for _, name := range places {
		p, err := lease.Parse([]byte(w.want(200, "GET", "/v1/experiments/"+name+"/plan", "")))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, exposure(p, "ann", "ann"), exposure(p, "bob", "bob"))
	}
	nobodys := `{"experiment": "none%d", "targetingKey": "ann", "epoch": 1, "arm": "red"}`
	w.want(202, "POST", exposuresPath, exposures(append(all[:len(all)-1:len(all)-1], fmt.Sprintf(nobodys, 0))...))
	w.want(202, "POST", exposuresPath, exposures(all[len(all)-1])+"\u00a0\u2003") // which a share takes for spaces, and JSON does not
	if want, got := `sotto_request_seconds_count{route="POST /v1/exposures",status="202"} 2`, w.want(200, "GET", "/metrics",
		""); !strings.Contains(got, want) {
		t.Errorf("two requests are not counted as two: %s", got)
	}
	for share, name := range places {
		x, err := w.shares.Engines()[share].Get(t.Context(), name)
		if err != nil || x.Arms[0].Decisions+x.Arms[1].Decisions != 2 {
			t.Errorf("%s has %d and %d decisions, %v", name, x.Arms[0].Decisions, x.Arms[1].Decisions, err)
		}
	}
	var many []string
	for i := range mostExposed + 1 {
		many = append(many, fmt.Sprintf(nobodys, i))
	}
	w.want(202, "POST", exposuresPath, exposures(many...))
	for share := range w.shares.Engines() {
		if places[share] == "" && share > 0 {
			_ = w.shares.Engines()[share].Close()
			w.want(202, "POST", exposuresPath, exposures(all...))
			w.want(503, "POST", exposuresPath, exposures(append(many, all...)...))
		}
	}
	for share := range places {
		_ = w.shares.Engines()[share].Close()
		w.want(503, "POST", exposuresPath, exposures(all...))
		return
	}
}

// A share that does not answer has what goes to all of them sent again, and holds up no experiment of another. People
// are shown the rest, and told so.
func TestShareIsDown(t *testing.T) {
	w := newSharedWorld(t)
	several(w.world)
	down, _, _ := w.shares.Of(t.Context(), "shop4")
	if err := w.shares.Engines()[down].Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range w.names(t) {
		share, _, _ := w.shares.Of(t.Context(), name)
		out := w.ask("POST", "/v1/experiments/"+name+"/archive", "")
		if (share == down) != (out.Code == 503) {
			t.Errorf("%s of share %d: %d %s", name, share, out.Code, out.Body)
		}
	}
	for _, body := range []string{event("checkout", "ann", "1"), event("nothing", "ann", "1"), `{"events": []}`} {
		if out := w.ask("POST", "/v1/track", body); out.Code != 503 || out.Header().Get("Retry-After") != "1" {
			t.Errorf("%d %v %s", out.Code, out.Header(), out.Body)
		}
	}
	if got, want := w.want(200, "GET", "/readyz", ""), fmt.Sprintf(`"down":[%d]`, down); !strings.Contains(got, want) {
		t.Errorf("who asks whether it is ready is told %s", got)
	}
	for _, e := range w.shares.Engines() {
		_ = e.Close()
	}
	w.want(503, "GET", "/readyz", "")
}

// Where some shares fail, people see the experiments of the others and are told so, and programs are told to ask again;
// what broke off breaks off.
func TestPartsFail(t *testing.T) {
	w := newSharedWorld(t)
	several(w.world)
	part := func(status int, body string) *recorded {
		p := &recorded{header: http.Header{}}
		p.WriteHeader(status)
		p.body.WriteString(body)
		return p
	}
	get := httptest.NewRequest("GET", "/", nil)
	out := httptest.NewRecorder()
	parts := w.router.all(get, nil)
	parts[0] = part(503, "nobody")
	joinHomes(w.router, out, get, parts)
	if got := out.Body.String(); out.Code != 200 || !strings.Contains(got, "not shown") || strings.Count(got, "</h1>") != 1 ||
		strings.Count(got, `<th scope="row">`) == 0 || strings.Contains(got, "nobody\"") {
		t.Errorf("%d %s", out.Code, got)
	}
	for _, x := range []struct {
		statuses []int
		want     int
	}{{[]int{202, 202, 202}, 202}, {[]int{202, 503, 202}, 503}, {[]int{503, 400, 400}, 503}, {[]int{202, 500, 503}, 503},
		{[]int{202, 401, 202}, 503}, {[]int{401, 401, 401}, 401}, {[]int{400, 400, 400}, 400}, {[]int{202, 403, 202}, 403},
		{[]int{202, 500, 202}, 500}} {
		var parts []*recorded
		for _, s := range x.statuses {
			parts = append(parts, part(s, "{}"))
		}
		out := httptest.NewRecorder()
		joinTaken(w.router, out, httptest.NewRequest("POST", "/v1/track", nil), parts)
		if out.Code != x.want {
			t.Errorf("of %v comes %d, want %d", x.statuses, out.Code, x.want)
		}
	}
	defer func() {
		if recover() != http.ErrAbortHandler {
			t.Error("what broke off is answered")
		}
	}()
	joinTaken(w.router, httptest.NewRecorder(), get, []*recorded{part(202, ""), {}})
}

func (w *sharedWorld) names(t *testing.T) []string {
	names, err := w.shares.Names(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// The journal is that of all shares, by time, and ?from= leaves lines of it out.
func TestJournalOfShares(t *testing.T) {
	w := newSharedWorld(t)
	for i := range 6 {
		w.want(201, "POST", "/v1/experiments", strings.Replace(shop, "shop", fmt.Sprint("shop", i), 1))
		w.pass(time.Second)
	}
	all := w.want(200, "GET", "/v1/audit", "")
	lines := strings.SplitAfter(all, "\n")
	if len(lines) != 8 || !strings.Contains(lines[0], "make key") {
		t.Fatalf("%q", lines)
	}
	for i := range 6 {
		if !strings.Contains(lines[i+1], fmt.Sprint("shop", i)) {
			t.Errorf("line %d is %s", i+1, lines[i+1])
		}
	}
	for from := range 9 {
		got := w.want(200, "GET", fmt.Sprint("/v1/audit?from=", from), "")
		if want := strings.Join(lines[min(from, 7):], ""); got != want {
			t.Errorf("from %d: %q, want %q", from, got, want)
		}
	}
}

// What names an experiment in its body, or by its key, reaches its share: the first that is asked knows it, once it has
// looked at the key.
func TestSoughtShares(t *testing.T) {
	w := newSharedWorld(t)
	several(w.world)
	if out := w.ask("POST", "/v1/experiments", shop[1:]); out.Code != 201 || out.Header().Get("Location") != "/v1/experiments/shop" ||
		out.Header().Get(shareHeader) != "" {
		t.Errorf("%d %v", out.Code, out.Header())
	}
	w.want(409, "POST", "/v1/experiments", shop)
	w.want(409, "POST", "/v1/experiments", shop+"layer: {name: page, from: 0, to: 1}\n")
	w.want(400, "POST", "/v1/experiments", "name: x")
	w.want(413, "POST", "/v1/experiments", strings.Repeat(" ", maxDeclaration+1))
	for _, name := range []string{"shop0", "shop1", "shop5", "shop6"} {
		k := w.keyOf(name)
		ask := func(status int, method, path, body string) string {
			t.Helper()
			w.key = ""
			return w.want(status, method, personalizer+"v1.0/"+path, body, k...)
		}
		for range 2 {
			ask(201, "POST", "rank", `{"actions": [{"id": "red", "features": [{}]}, {"id": "blue", "features": [{}]}], "eventId": "e"}`)
		}
		ask(204, "POST", "events/e/reward", `{"value": 1}`)
		ask(200, "GET", "configurations/service", "")
		if out := w.ask("POST", "/v1/experiments/"+name+"/rank", `{"event": "f", "actions": [{"id": "red"}, {"id": "blue"}]}`, k...); out.Code != 200 {
			t.Errorf("%s: %d %s", name, out.Code, out.Body)
		}
	}
	if len(w.router.found) != 3 { // shop6 is where one asks first
		t.Errorf("%d keys are known", len(w.router.found))
	}
	w.want(401, "POST", personalizer+"v1.0/rank", `{}`, "Ocp-Apim-Subscription-Key", "none")
}

// The pages of people: all experiments in one list, a new one by the form, and the names to make a key for.
func TestPagesOfShares(t *testing.T) {
	w := newSharedWorld(t)
	home := func() string { return w.want(200, "GET", "/", "") }
	if got := home(); !strings.Contains(got, "There is no experiment yet") {
		t.Error(got)
	}
	several(w.world)
	got := w.plain("GET", "/?sort=name", "").Body.String()
	last := -1
	for _, name := range w.names(t) {
		at := strings.Index(got, `<th scope="row"><a href="/experiments/`+name+`">`)
		if at <= last || strings.Count(got, `"/experiments/`+name+`"`) != 1 {
			t.Errorf("%s is at %d after %d", name, at, last)
		}
		last = at
		w.want(200, "GET", "/experiments/"+name, "")
	}
	if some := w.plain("GET", "/?state=draft", "").Body.String(); strings.Count(some, `<th scope="row">`) >= len(w.names(t)) ||
		!strings.Contains(some, fmt.Sprintf("of %d in all", len(w.names(t)))) {
		t.Errorf("of drafts it says %s", some)
	}
	if strings.Count(got, "</html>") != 1 || strings.Count(got, `<th scope="row">`) != len(w.names(t)) ||
		strings.Contains(got, "not shown") {
		t.Error(got)
	}
	keys := w.want(200, "GET", "/keys", "")
	for _, name := range w.names(t) {
		if !strings.Contains(keys, "<option>"+name+"</option>") {
			t.Errorf("no key can be made for %s", name)
		}
	}
	form := func(do string) *httptest.ResponseRecorder {
		return w.ask("POST", "/new", "do="+do+"&text="+url.QueryEscape(strings.Replace(shop, "shop", "by-form", 1)),
			"Content-Type", "application/x-www-form-urlencoded")
	}
	if out := form("check"); out.Code != 200 {
		t.Errorf("%d %s", out.Code, out.Body)
	}
	if out := form("create"); out.Code != 303 || out.Header().Get("Location") != "/experiments/by-form" {
		t.Errorf("%d %v %s", out.Code, out.Header(), out.Body)
	}
	w.want(200, "GET", "/experiments/by-form", "")
}

// One stream tells of the experiments of all shares, and who comes back is not told again what it knows.
func TestStreamOfShares(t *testing.T) {
	w := newSharedWorld(t)
	several(w.world)
	service := httptest.NewServer(w.router)
	t.Cleanup(func() {
		for _, f := range w.router.fronts {
			f.end()
		}
		service.Close()
	})
	path := w.streamOf("ann")
	open := func(last string) (<-chan string, func()) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		r, err := http.NewRequestWithContext(ctx, "GET", service.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if last != "" {
			r.Header.Set("Last-Event-ID", last)
		}
		out, err := http.DefaultClient.Do(r)
		if err != nil || out.StatusCode != 200 || out.Header.Get("Content-Type") != "text/event-stream" {
			t.Fatal(out, err)
		}
		lines := make(chan string)
		go func() {
			defer close(lines)
			for in := bufio.NewScanner(out.Body); in.Scan(); {
				lines <- in.Text()
			}
			_ = out.Body.Close()
		}()
		return lines, func() {
			cancel()
			for range lines {
			}
		}
	}
	next := func(lines <-chan string, begin string) string {
		t.Helper()
		for line := range lines {
			if rest, is := strings.CutPrefix(line, begin); is {
				return rest
			}
		}
		t.Fatalf("no %s", begin)
		return ""
	}
	lines, end := open("")
	next(lines, "retry:")
	var ids []string
	for _, name := range []string{"shop0", "shop6"} { // of several shares
		w.want(200, "POST", "/v1/experiments/"+name+"/pause", "")
		w.pass(time.Second)
		ids = append(ids, next(lines, "id: "))
		if data := next(lines, "data: "); !strings.Contains(data, refetch) {
			t.Error(data)
		}
	}
	end()
	if slices.Sort(ids); len(slices.Compact(ids)) != 2 || strings.Count(ids[0], ".") != 3 {
		t.Errorf("ids %q", ids)
	}
	for query, want := range map[string]int{"?token=a.b.c.d": 401, "?token=a": 401, "": 401} {
		if out := w.ask("GET", streamPath+query, ""); out.Code != want {
			t.Errorf("%s: %d %s", query, out.Code, out.Body)
		}
	}
}

// Two worlds that differ in what units report, in two shares, say the same on all routes that join until the tick of
// the first release; and a twin that tells how many reported by what it joins is seen.
func TestTwoWorldsOfShares(t *testing.T) {
	observed := func(value string, twin bool) string {
		w := newSharedWorld(t)
		several(w.world)
		front, reported := w.asked, 0
		w.asked = http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
			if twin && reported > 0 && r.URL.Path == "/v1/account" {
				out.Header().Set("X-Reports", fmt.Sprint(reported))
			}
			front.ServeHTTP(out, r)
		})
		reader, _, err := w.engine.NewKey(t.Context(), "reader", serve.ScopeRead|serve.ScopeDecide)
		if err != nil {
			t.Fatal(err)
		}
		admin, o := w.key, observer{w: w.world, names: map[string]string{}}
		for i := range 8 {
			for _, name := range []string{"shop4", "shop5"} {
				w.want(200, "POST", "/v1/experiments/"+name+"/decisions", fmt.Sprintf(`{"unit": "u%d"}`, i))
			}
		}
		for second := range 6 {
			if value != "" {
				w.plain("POST", "/v1/track", event("checkout", fmt.Sprint("u", second), value))
				reported++
			}
			w.key = reader
			for _, path := range []string{"/v1/experiments", "/v1/account", "/", "/metrics", "/readyz"} {
				o.look("GET", path, "")
			}
			o.look("POST", "/v1/allflags", `{"evaluationContext":{"key":"u3"}}`)
			o.look("POST", allFlags, `{"context":{"targetingKey":"u5"}}`)
			w.key = admin
			o.look("GET", "/v1/audit", "")
			o.look("POST", "/v1/track", event("checkout", "u7", "1"))
			w.pass(time.Second)
		}
		return o.seen.String()
	}
	none := observed("", false)
	if lines := strings.Count(none, " 200 "); lines < 40 {
		t.Fatalf("%d answers are seen", lines)
	}
	if got := observed("1", false); got != none {
		at := 0
		for at < min(len(got), len(none)) && got[at] == none[at] {
			at++
		}
		t.Errorf("reports are seen:\n%s\nbeside\n%s", got[max(0, at-200):min(len(got), at+200)],
			none[max(0, at-200):min(len(none), at+200)])
	}
	if observed("1", true) == none {
		t.Error("a twin that counts reports is not seen")
	}
}

// An asking placer counts how often it is asked where an experiment is.
type asking struct {
	placer
	asked []string
}

func (a *asking) Of(ctx context.Context, name string) (int, bool, error) {
	a.asked = append(a.asked, name)
	return a.placer.Of(ctx, name)
}

// Who has no key is told the same, by the same way, of an experiment that is not public and of none, also where a share does
// not answer; and is shown what is public, as soon as it is there.
func TestNobodyLearnsOfExperiments(t *testing.T) {
	w := newSharedWorld(t)
	a := &asking{placer: w.shares}
	w.router.placed = a
	hidden := strings.Replace(shop, "public: true", "public: false", 1)
	in := map[int]string{}
	for i := 0; len(in) < 3; i++ {
		name := fmt.Sprint("hidden", i)
		w.want(201, "POST", "/v1/experiments", strings.Replace(hidden, "name: shop", "name: "+name, 1))
		share, _, _ := w.shares.Of(t.Context(), name)
		in[share] = name
	}
	w.want(201, "POST", "/v1/experiments", shop+"layer: {name: page, from: 0, to: 1}\n")
	other, _, err := w.engine.NewKeyFor(t.Context(), "shop", "other", serve.ScopeDecide)
	if err != nil {
		t.Fatal(err)
	}
	key := w.key
	routes := []struct{ method, path string }{{"GET", "/v1/experiments/NAME"}, {"HEAD", "/v1/experiments/NAME"},
		{"GET", "/v1/experiments/NAME/transcript"}, {"GET", "/experiments/NAME"}, {"GET", "/experiments/NAME/events"},
		{"POST", "/v1/experiments/NAME/decisions"}, {"POST", "/ofrep/v1/evaluate/flags/NAME"}}
	same := func(when string, names ...string) {
		t.Helper()
		for _, secret := range []string{"", "bogus", other} {
			for _, x := range routes {
				w.key = secret
				a.asked = nil
				said := map[string]bool{}
				for _, name := range names {
					out := w.plain(x.method, strings.Replace(x.path, "NAME", name, 1), "{}")
					said[strings.ReplaceAll(fmt.Sprint(out.Code, out.Header(), out.Body), name, "NAME")] = true
					if out.Code < 400 {
						t.Errorf("%s: %s %s, key %q: %d", when, x.method, x.path, secret, out.Code)
					}
				}
				if len(said) != 1 || a.asked != nil {
					t.Errorf("%s: %s %s, key %q: it is looked where %q are, and said %v", when, x.method, x.path, secret, a.asked,
						slices.Collect(maps.Keys(said)))
				}
			}
		}
		w.key = key
	}
	same("all answer", in[1], in[2], in[3], "nosuch")
	for i := range 6 {
		name := fmt.Sprint("shop", i)
		w.want(201, "POST", "/v1/experiments", strings.Replace(shop, "name: shop", "name: "+name, 1))
		w.key = ""
		w.want(200, "GET", "/v1/experiments/"+name, "")
		w.want(200, "GET", "/experiments/"+name, "")
		w.key = key
	}
	if err := w.shares.Engines()[2].Close(); err != nil {
		t.Fatal(err)
	}
	same("a share is down", in[1], in[2], in[3], "nosuch")
	w.router.commons.of[2], w.router.commons.began = nil, time.Now().Add(time.Hour) // it has never answered
	w.key = ""
	w.want(503, "GET", "/v1/experiments/nosuch", "")
	w.want(200, "GET", "/v1/experiments/shop", "")
	same("a share was never up", in[1], in[2], in[3], "nosuch")
	w.want(200, "GET", "/v1/experiments/"+in[1], "")
	if len(a.asked) == 0 {
		t.Error("who has a key is not looked for: the test is none")
	}
}

// A touched body says that it was read.
type touched struct{ read int }

func (b *touched) Read(p []byte) (int, error) { b.read += len(p); return len(p), nil }

// Of whom nothing is known nothing is kept, nor read.
func TestNothingIsKeptOfStrangers(t *testing.T) {
	w := newSharedWorld(t)
	for pattern, to := range ways {
		method, path, _ := strings.Cut(pattern, " ")
		path = strings.NewReplacer("{event}", "e", "{client}", "c").Replace(path)
		if to.limit == 0 {
			continue
		}
		for _, key := range []string{"", "bogus"} {
			body := &touched{}
			r := httptest.NewRequest(method, path, body)
			if key != "" {
				r.Header.Set("X-API-Key", key)
				r.AddCookie(&http.Cookie{Name: "sotto_session", Value: key})
			}
			out := httptest.NewRecorder()
			w.router.ServeHTTP(out, r)
			if out.Code != 401 || body.read > 0 {
				t.Errorf("%s, key %q: %d, and %d bytes are read", pattern, key, out.Code, body.read)
			}
		}
		body := &touched{}
		r := httptest.NewRequest(method, path, body)
		r.Header.Set("X-API-Key", w.key)
		if w.router.ServeHTTP(httptest.NewRecorder(), r); int64(body.read) <= to.limit {
			t.Errorf("%s: of who has a key %d bytes are read: the test is none", pattern, body.read)
		}
	}
}
