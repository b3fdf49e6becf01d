package api

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/client"
	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/live/lease"
	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/live/serve/compat"
)

// leasedShop is an experiment whose clients decide by a plan.
const leasedText = "leases: {for: 20s, delay: 30s}\n"

var leasedShop = strings.Replace(shop, "default: 0", "default: 0, event: checkout", 1) + leasedText

// leasing has a running one, with its first plan.
func leasing(t testing.TB, text string) *world {
	t.Helper()
	w := newWorld(t)
	w.want(201, "POST", "/v1/experiments", text)
	w.want(200, "POST", "/v1/experiments/shop/start", "")
	w.pass(time.Second)
	return w
}

func (w *world) plan(header ...string) (p lease.Plan, tag string) {
	w.t.Helper()
	out := w.ask("GET", "/v1/experiments/shop/plan", "", header...)
	p, err := lease.Parse(out.Body.Bytes())
	if out.Code != 200 || err != nil {
		w.t.Fatal(out.Code, out.Body, err)
	}
	return p, out.Header().Get("ETag")
}

// exposure is that of a unit, whom the service knows by a name.
func exposure(p lease.Plan, unit, name string) string {
	return fmt.Sprintf(`{"experiment": %q, "targetingKey": %q, "epoch": %d, "arm": %q}`, p.Experiment, name, p.Epoch,
		p.Arms[p.Decide(unit)].Arm)
}

func exposures(all ...string) string { return `{"exposures": [` + strings.Join(all, ", ") + `]}` }

func (w *world) decisions() int {
	w.t.Helper()
	info, err := w.engine.Get(w.t.Context(), "shop")
	if err != nil {
		w.t.Fatal(err)
	}
	return info.Arms[0].Decisions + info.Arms[1].Decisions
}

// A plan is read by who may ask for decisions, again when it is another one, and what was decided counts from
// its exposure on.
func TestLeases(t *testing.T) {
	w := leasing(t, leasedShop)
	p, tag := w.plan()
	if p.Epoch != 1 || p.Reason != "" || len(p.Arms) != 2 || tag == "" {
		t.Errorf("%+v, %s", p, tag)
	}
	if out := w.ask("GET", "/v1/experiments/shop/plan", "", "If-None-Match", tag); out.Code != 304 || out.Body.Len() > 0 {
		t.Errorf("%d %s", out.Code, out.Body)
	}
	w.want(202, "POST", "/v1/exposures", exposures(exposure(p, "ann", "ann"), exposure(p, "bob", "bob"),
		exposure(p, "ann", "ann")))
	if n := w.decisions(); n != 2 {
		t.Errorf("%d decisions", n)
	}
	d := w.decide("ann") // which is hers
	if d.Arm != p.Arms[p.Decide("ann")].Arm || d.Propensity != 0.5 || d.Reason != serve.Split {
		t.Errorf("%+v", d)
	}
	// a browser's units are signed, for this experiment
	sign := w.keyWith(serve.ScopeSign)
	w.key = w.keyWith(serve.ScopeBrowser | serve.ScopeDecide)
	soon := w.clock.Now().Add(time.Minute)
	w.want(202, "POST", "/v1/exposures", exposures(exposure(p, "cid", client.SignUnit(sign, "shop", "cid", soon)),
		exposure(p, "dan", client.SignUnit(sign, serve.AnyExperiment, "dan", soon))))
	if n := w.decisions(); n != 4 {
		t.Errorf("%d decisions", n)
	}
	unit, cookie, err := w.engine.NewCookie()
	if err != nil {
		t.Fatal(err)
	}
	w.want(202, "POST", "/v1/exposures", exposures(exposure(p, unit, "")), "Cookie",
		(&http.Cookie{Name: cookieName, Value: cookie}).String())
	if n := w.decisions(); n != 5 {
		t.Errorf("%d decisions", n)
	}
}

// What is wrong with a request is told by its form alone, with its place; what an exposure is worth is told nobody.
func TestExposuresRefuse(t *testing.T) {
	w := leasing(t, leasedShop)
	w.want(201, "POST", "/v1/experiments", strings.NewReplacer("name: shop", "name: strict", "30s", "30s, exposures: strict").
		Replace(leasedShop))
	p, _ := w.plan()
	browser, good := w.keyWith(browserScopes), exposure(p, "ann", "ann")
	with := func(old, new string) string { return exposures(good, strings.Replace(good, old, new, 1)) }
	if !strings.Contains(good, `"red"`) && !strings.Contains(good, `"blue"`) {
		t.Fatal(good)
	}
	for _, c := range []struct {
		body, key, field string
		status           int
	}{
		{`{}`, w.key, "exposures", 400}, {`{"exposures": []}`, w.key, "exposures", 400},
		{exposures(strings.Repeat(good+",", 1000) + good), w.key, "exposures", 400},
		{with(`"shop"`, `""`), w.key, "exposures[1].experiment", 400},
		{with(`"ann"`, `""`), w.key, "exposures[1].targetingKey", 400},
		{with(`"ann"`, `"`+strings.Repeat("6543", 1025)+`"`), w.key, "exposures[1].targetingKey", 400},
		{with(`"ann"`, `"a\ufffd6543"`), w.key, "exposures[1].targetingKey", 400},
		{with(`"epoch": 1`, `"epoch": 0`), w.key, "exposures[1].epoch", 400},
		{with(`"epoch": 1`, `"epoch": -6543`), w.key, "exposures", 400},
		{with(`"epoch": 1`, `"epoch": 1, "hash": "md6543"`), w.key, "exposures[1].hash", 400},
		{with(`"epoch": 1`, `"epoch": 1, "value": 6543`), w.key, "value", 400}, // which is an event's
		{`{"exposures": [` + good + `], "events": []}`, w.key, "events", 400},
		{with(`"ann"`, `"ann"`), browser, "exposures[0].targetingKey", 403},
		{with(`"ann"`, `"ann"`), w.keyWith(serve.ScopeReward), "", 403},
		{with(`"ann"`, `"ann"`), "sotto_unknown", "", 401},
		{with(`"shop"`, `"strict"`), w.key, "strict", 403},
		{with(`"shop"`, `"strict"`), w.keyWith(serve.ScopeDecide | serve.ScopeReward), "strict", 403},
		{strings.Repeat(" ", maxBatch) + `{}`, w.key, "", 413},
	} {
		out := w.ask("POST", "/v1/exposures", c.body, "X-API-Key", c.key)
		if out.Code != c.status || !strings.Contains(out.Body.String(), c.field) ||
			strings.Contains(strings.Replace(out.Body.String(), `is \"md6543\"`, "", 1), "6543") {
			t.Errorf("%.80s: %d %s, want %d %s", c.body, out.Code, out.Body, c.status, c.field)
		}
	}
	if n := w.decisions(); n != 0 {
		t.Errorf("%d decisions", n)
	}
	other := w.keyOf("strict")
	for _, c := range [][2]string{{with(`"epoch": 1`, `"epoch": 9`), ""}, {with(`"shop"`, `"nothing"`), ""},
		{with(`"arm": "`, `"arm": "no `), ""}, {with(`"shop"`, `"strict"`), w.keyWith(serve.ScopeDecide)},
		{exposures(good), other[len(other)-1]}} {
		key := c[1]
		if key == "" {
			key = w.key
		}
		if out := w.ask("POST", "/v1/exposures", c[0], "X-API-Key", key); out.Code != 202 || out.Body.String() != "{}\n" {
			t.Errorf("%s: %d %s", c[0], out.Code, out.Body)
		}
	}
	if n := w.decisions(); n != 1 { // ann's
		t.Errorf("%d decisions", n)
	}
	w.want(201, "POST", "/v1/experiments", strings.Replace(shop, "name: shop", "name: plain", 1))
	for path, status := range map[string]int{"shop/plan?wait=soon": 400, "shop/plan?wait=16s": 400, "shop/plan?wait=-1s": 400,
		"nothing/plan": 404, "plain/plan": 409} {
		w.want(status, "GET", "/v1/experiments/"+path, "")
	}
	w.want(403, "GET", "/v1/experiments/shop/plan", "", "X-API-Key", w.keyWith(serve.ScopeReward))
	if w.log.Len() > 0 {
		t.Errorf("the log has %s", w.log.String())
	}
}

// Who waits for another plan has it when it is there, and who follows the plans has each; a key that is revoked
// follows no more.
func TestFollowPlans(t *testing.T) {
	w := leasing(t, leasedShop)
	server := httptest.NewServer(w.front)
	defer server.Close()
	secret, key, err := w.engine.NewKey(t.Context(), "app", serve.ScopeDecide)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(query string, header ...string) *http.Response {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/v1/experiments/shop/plan"+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-API-Key", secret)
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		out, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = out.Body.Close() })
		return out
	}
	first := ask("")
	stream := bufio.NewReader(ask("", "Accept", "text/event-stream").Body)
	next := func() (p lease.Plan, id string) {
		t.Helper()
		for {
			line, err := stream.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if of, ok := strings.CutPrefix(line, "id: "); ok {
				id = strings.TrimSpace(of)
			}
			if data, ok := strings.CutPrefix(line, "data: "); ok {
				if p, err = lease.Parse([]byte(data)); err != nil {
					t.Fatal(err)
				}
				return p, id
			}
		}
	}
	if p, id := next(); p.Epoch != 1 || id != first.Header.Get("ETag") {
		t.Errorf("plan %d, %s", p.Epoch, id)
	}
	if out := ask("?wait=10ms", "If-None-Match", first.Header.Get("ETag")); out.StatusCode != 304 {
		t.Errorf("%d when there is no other", out.StatusCode)
	}
	waited := make(chan *http.Response)
	go func() { waited <- ask("?wait=15s", "If-None-Match", first.Header.Get("ETag")) }()
	for range 10 {
		w.pass(time.Second)
	}
	out := <-waited
	var p lease.Plan
	if err := json.NewDecoder(out.Body).Decode(&p); err != nil || out.StatusCode != 200 || p.Epoch != 2 {
		t.Errorf("%d %+v %v", out.StatusCode, p, err)
	}
	if p, id := next(); p.Epoch != 2 || id != out.Header.Get("ETag") {
		t.Errorf("plan %d, %s", p.Epoch, id)
	}
	w.want(200, "POST", "/v1/experiments/shop/pause", "")
	if p, _ := next(); p.Reason != string(serve.Disabled) {
		t.Errorf("paused: %+v", p)
	}
	if err := w.engine.RevokeKey(t.Context(), key.ID); err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := stream.ReadString('\n'); err != nil {
			break
		}
	}
}

// hexes are salts, hashes and tokens, in which worlds differ.
var hexes = regexp.MustCompile(`[0-9a-f]{32,}|[A-Za-z0-9_-]{58,}`)

// leasedWorld is all that everybody can see of leased decisions, one of which has events as it will, until and not
// including its release. Units are those to which the plans give the arms of a fixed row.
func leasedWorld(t *testing.T, twin string, events func(w *world, unit string, second int) (had bool)) string {
	t.Helper()
	w := leasing(t, strings.Replace(leasedShop, "first: 8", "first: 2", 1))
	var seen strings.Builder
	look := func(method, path, body string) {
		out := w.ask(method, path, body)
		header := out.Header().Clone()
		header.Del("ETag") // of a body with a salt
		fmt.Fprintln(&seen, method, path, out.Code, header, hexes.ReplaceAllString(out.Body.String(), "…"))
	}
	reader, _, err := w.engine.NewKey(t.Context(), "reader", serve.ScopeRead)
	if err != nil {
		t.Fatal(err)
	}
	n, all := 0, []string{}
	named := func(p lease.Plan) string {
		for i := 0; ; i++ {
			if unit := fmt.Sprint("unit ", n, " ", i); p.Decide(unit) == n%2 {
				n++
				return unit
			}
		}
	}
	ann := ""
	for second := range 80 {
		p, _ := w.plan()
		look("GET", "/v1/experiments/shop/plan", "")
		look("GET", compat.FlagdFlags, "")
		look("GET", compat.GrowthBookFeatures+"client", "")
		if second%4 == 0 {
			unit := named(p)
			if second == 8 {
				ann = unit
			}
			if all = append(all, exposure(p, unit, unit)); second != 8 || twin == "" {
				look("POST", "/v1/exposures", exposures(all[len(all)-1], all[len(all)-1]))
			}
		}
		if ann != "" {
			before := w.decisions()
			had := events(w, ann, second)
			if w.decisions() != before {
				t.Fatal("an event made a decision")
			}
			switch {
			case had && twin == "exposes what has an event":
				w.want(202, "POST", "/v1/exposures", exposures(all[2]))
			case had && twin != "":
				w.want(202, "POST", compat.GrowthBookTrack, seenByPlugin(p, ann))
			case twin == "": // who is assigned already
				look("POST", compat.GrowthBookTrack, seenByPlugin(p, ann))
			}
			look("POST", "/v1/track", event("checkout", ann, "0.25"))
			look("POST", "/v1/exposures", exposures(all[0], strings.Replace(all[2], `"epoch": `, `"epoch": 1`, 1)))
		}
		look("GET", "/v1/experiments/shop", "")
		if second%5 == 0 {
			look("GET", "/v1/experiments/shop/transcript", "")
			look("GET", "/v1/experiments/shop/report", "")
		}
		key := w.key
		w.key = reader
		look("GET", "/metrics", "")
		w.key = key
		w.pass(time.Second)
		info, err := w.engine.Get(t.Context(), "shop")
		if err != nil {
			t.Fatal(err)
		}
		if info.Arms[0].Released+info.Arms[1].Released > 0 {
			fmt.Fprintln(&seen, "released at", w.clock.Now())
			return seen.String() + w.log.String()
		}
	}
	return seen.String() + w.log.String()
}

// Two worlds: whatever is told of a unit's events, everybody sees the same of plans, exposures and decisions.
func TestTwoWorldsOfLeases(t *testing.T) {
	testkit.RacedBefore(t)
	type events = func(w *world, unit string, second int) bool
	at := func(second int, value string) events {
		return func(w *world, unit string, now int) bool {
			if now == second {
				w.want(202, "POST", "/v1/track", event("checkout", unit, value))
			}
			return now == second
		}
	}
	none := func(*world, string, int) bool { return false }
	silent := leasedWorld(t, "", none)
	if !strings.Contains(silent, `"epoch":5`) || !strings.Contains(silent, "released at") {
		t.Error("there are few plans, or nothing is released")
	}
	for name, events := range map[string]events{"1": at(9, "1"), "0": at(9, "0"), "at once": at(8, "1"), "late": at(70, "1")} {
		if got := leasedWorld(t, "", events); got != silent {
			t.Errorf("%s: somebody sees it: %s", name, firstDifference(got, silent))
		}
	}
	for _, twin := range []string{"exposes what has an event", "has a plugin send what has an event"} {
		if leasedWorld(t, twin, at(9, "1")) == leasedWorld(t, twin, none) {
			t.Errorf("a client that %s is not caught", twin)
		}
	}
}

// Streams of plans have a bound, and those of one key another.
func TestPlanStreamsAreBounded(t *testing.T) {
	w := leasing(t, leasedShop)
	_, key, err := w.engine.NewKey(t.Context(), "other", serve.ScopeDecide)
	if err != nil {
		t.Fatal(err)
	}
	k := w.engine.Keys()[0]
	if k.ID == key.ID {
		t.Fatal("the first key is the last")
	}
	p := &w.front.following
	for i := range mostPlans / 2 {
		if !p.join(k.ID) {
			t.Fatal(i)
		}
	}
	w.want(503, "GET", "/v1/experiments/shop/plan", "", "Accept", "text/event-stream")
	for i := range mostPlans / 2 {
		if !p.join(key.ID) {
			t.Fatal(i)
		}
	}
	if p.join(-1) {
		t.Error("there are more than may be")
	}
	for range mostPlans / 2 {
		p.leave(k.ID)
		p.leave(key.ID)
	}
	if p.all != 0 || len(p.keys) != 0 {
		t.Errorf("%d streams of %d keys are left", p.all, len(p.keys))
	}
}

// Who passes a request for another plan on waits for longer than it does.
func TestPlanIsWaitedFor(t *testing.T) {
	p := newForwarder(slog.New(slog.DiscardHandler), "", nil)
	if most := p.proxy.Transport.(*http.Transport).ResponseHeaderTimeout; mostWait+time.Second > most {
		t.Errorf("an answer is waited for %v, a plan %v", most, mostWait)
	}
}
