package api

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	growthbook "github.com/growthbook/growthbook-golang"

	"github.com/sotto-dp/sotto/client"
	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/live/lease"
	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/live/serve/compat"
	"github.com/sotto-dp/sotto/live/serve/store"
	"github.com/sotto-dp/sotto/release"
)

// plannedShop is leasedShop with values of one type, which flagd asks for.
var plannedShop = strings.Replace(leasedShop, `{hex: "#00c", n: 3}`, `"#00c"`, 1)

// seenByPlugin is what GrowthBook's plugin sends of a unit, with what came of it, which is not read.
func seenByPlugin(p lease.Plan, unit string) string {
	return fmt.Sprintf(`[{"event_name": "Experiment Viewed", "properties_json": {"experimentId": %q, "variationId": "%s:%d",
		"hashAttribute": "id", "hashValue": %q}}, {"event_name": "checkout", "properties_json": {"value": 1}, "user_id": %q}]`,
		p.Experiment, p.Arms[p.DecideBy(lease.GrowthBook, unit)].Arm, p.Epoch, unit, unit)
}

// earns has clients of an experiment decide and report, and returns how many decisions are released, and the
// sum of their rewards.
func earns(t *testing.T, text string, clients func(w *world)) (n int, sum float64) {
	t.Helper()
	w := newWorldOf(t, serve.Config{Store: store.NewMemory().Open, Curator: func(c release.Config) (release.Curator, error) {
		cur, err := seeded(c)
		return teller{cur.(release.StepCurator), func(more int, steps int64) {
			n += more
			sum += float64(steps) / (1 << 20)
		}}, err
	}})
	w.want(201, "POST", "/v1/experiments", text)
	w.want(200, "POST", "/v1/experiments/shop/start", "")
	w.pass(2 * time.Second)
	w.asked = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Date", w.clock.Now().UTC().Format(http.TimeFormat)) // clients tell the time by it
		if r.URL.Path != "/test/pass" {
			w.front.ServeHTTP(rw, r)
			return
		}
		d, err := time.ParseDuration(r.URL.Query().Get("d"))
		if err != nil {
			t.Error(err)
		}
		w.pass(d)
		ok(rw, struct{}{})
	})
	admin := w.key
	clients(w)
	w.key = admin
	w.pass(2 * time.Minute)
	w.want(200, "POST", "/v1/experiments/shop/stop", "")
	for i := 0; !strings.Contains(w.want(200, "GET", "/v1/experiments/shop", ""), `"state":"stopped"`); i++ {
		if w.pass(time.Second); i > 100 {
			t.Fatal("it does not stop")
		}
	}
	return n, sum
}

// Clients of others decide by the plan, hand on their exposures, and earn rewards that are in a release: ours in
// Node, GrowthBook's with its plugin and with sticky buckets, and flagd's in process, whose file changes.
func TestWeightsClients(t *testing.T) {
	n, sum := earns(t, plannedShop, func(w *world) {
		t.Setenv("SOTTO_REWARDS", w.keyWith(serve.ScopeReward))
		out := w.script(t, "weights.mjs", "@growthbook/growthbook", w.keyWith(serve.ScopeDecide))
		const want = "flagd decides\nours decides\ngrowthbook decides by its plugin\n" +
			"growthbook decides with sticky buckets\nours keeps arms\nflagd reads the next plan\n"
		if !strings.HasSuffix(out, want) {
			t.Error(out)
		}
	})
	if n != 2+40+40+20 || sum != .5+.03125+40*.25+40*.125+20*.0625 {
		t.Errorf("%d decisions are released with a sum of %v", n, sum)
	}
}

// growers are users of GrowthBook's client for Go.
const growers = 30

// growthBook has such a client decide for its users by the payload of a server, and send what its plugin has seen.
func growthBook(t *testing.T, server, key, experiment string, sticky growthbook.StickyBucketService) (out [growers]string) {
	t.Helper()
	c, err := growthbook.NewClient(t.Context(), growthbook.WithApiHost(server), growthbook.WithClientKey(key),
		growthbook.WithPollDataSource(time.Hour), growthbook.WithStickyBucketService(sticky),
		growthbook.WithLogger(slog.New(slog.DiscardHandler)),
		growthbook.WithGrowthBookTracking(growthbook.TrackingPluginConfig{IngestorHost: server}))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.EnsureLoaded(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range out {
		user, err := c.WithAttributes(growthbook.Attributes{"id": fmt.Sprint("Zoë ", i)})
		if err != nil {
			t.Fatal(err)
		}
		out[i] = user.EvalFeature(t.Context(), experiment).ExperimentResult.Key
	}
	if err := c.Close(); err != nil { // sends what the plugin has
		t.Error(err)
	}
	return out
}

// GrowthBook's client for Go, of which the address and the key have changed, decides by the payload that it polls, sends
// exposures by its plugin, and keeps arms in sticky buckets.
func TestGrowthBookGoClient(t *testing.T) {
	n, sum := earns(t, plannedShop, func(w *world) {
		server := httptest.NewServer(w.asked)
		defer server.Close()
		asks := func(sticky growthbook.StickyBucketService) [growers]string {
			return growthBook(t, server.URL, w.keyWith(serve.ScopeDecide), "shop", sticky)
		}
		sticky := growthbook.NewInMemoryStickyBucketService()
		before := asks(sticky)
		track := w.keyWith(serve.ScopeReward)
		for i := range growers {
			w.want(202, "POST", "/v1/track", fmt.Sprintf(`{"events": [{"name": "checkout", "targetingKey": "Zoë %d", "value": 0.5}]}`, i),
				"X-API-Key", track)
		}
		w.pass(11 * time.Second)
		if after := asks(sticky); after != before {
			t.Errorf("in the next epoch the arms are %v, were %v", after, before)
		}
		anew := asks(nil)
		if anew == before || !strings.HasSuffix(anew[0], ":2") {
			t.Errorf("without sticky buckets the arms are %v, were %v", anew, before)
		}
	})
	if n != growers || sum != growers*.5 {
		t.Errorf("%d decisions are released with a sum of %v", n, sum)
	}
}

// GrowthBook's clients have their key in the address: one that reads plans and reports exposures, and no more.
func TestWeightsKeys(t *testing.T) {
	n, sum := earns(t, plannedShop, func(w *world) {
		w.want(201, "POST", "/v1/experiments", strings.Replace(shop, "name: shop", "name: other", 1))
		admin, reward := w.key, w.keyWith(serve.ScopeReward)
		decide, page, sign := w.keyWith(serve.ScopeDecide), w.keyWith(browserScopes), w.keyWith(serve.ScopeSign)
		other, _, err := w.engine.NewKeyFor(t.Context(), "other", "other", serve.ScopeDecide)
		if err != nil {
			t.Fatal(err)
		}
		w.key = ""
		payload := func(key string) string { return w.want(200, "GET", compat.GrowthBookFeatures+key, "") }
		body := payload(decide)
		var got struct {
			Features map[string]struct {
				Rules []struct {
					Seed string
					Meta []struct{ Key string }
				}
			}
		}
		if err := json.Unmarshal([]byte(body), &got); err != nil || len(got.Features["shop"].Rules) != 1 {
			t.Fatalf("%v: %s", err, body)
		}
		rule := got.Features["shop"].Rules[0]
		plan, _, err := w.engine.Plan(t.Context(), "shop")
		if err != nil {
			t.Fatal(err)
		}
		if rule.Seed != plan.Salt.String() {
			t.Errorf("the seed is %s, must be the salt %s", rule.Seed, plan.Salt)
		}
		if payload(page) != body || payload(other) != `{"status":200,"features":{}}`+"\n" {
			t.Error("another key reads something else")
		}
		tag := w.ask("GET", compat.GrowthBookFeatures+decide, "").Header().Get("ETag")
		w.want(304, "GET", compat.GrowthBookFeatures+decide, "", "If-None-Match", tag)
		for _, path := range []string{compat.GrowthBookFeatures + admin, compat.GrowthBookFeatures + "sotto_unknown"} {
			if got := w.want(401, "GET", path, ""); !strings.HasPrefix(got, `{"status":401,"error":"`) || strings.Contains(got, admin) {
				t.Error(got)
			}
		}
		w.want(403, "GET", compat.GrowthBookFeatures+reward, "")

		seen := func(unit string, arm int) string {
			return fmt.Sprintf(`{"event_name": "Experiment Viewed", "properties_json": {"experimentId": "shop", "variationId": %q,
				"hashAttribute": "id", "hashValue": %q}}`, rule.Meta[arm].Key, unit)
		}
		track := func(status int, key, body string) string {
			return w.want(status, "POST", compat.GrowthBookTrack+"?client_key="+key, body)
		}
		track(202, decide, seenByPlugin(plan, "1"))
		track(202, decide, `[`+seen("2", 1-plan.DecideBy(lease.GrowthBook, "2"))+`]`) // an arm that the hash does not give
		track(202, other, `[`+seen("3", plan.DecideBy(lease.GrowthBook, "3"))+`]`)
		track(202, decide, `[]`)
		track(400, decide, `{}`)
		for i, bad := range []string{seen("", 0), strings.Replace(seen("no", 0), `"no"`, "true", 1), seen(strings.Repeat("n", 9999), 0)} {
			unit := fmt.Sprint("with a bad one ", i) // which counts, and the bad one nowhere
			track(202, decide, `[`+bad+`, `+seen(unit, plan.DecideBy(lease.GrowthBook, unit))+`]`)
		}
		track(401, admin, `[]`)
		track(401, "", `[]`)
		track(403, reward, `[]`)
		track(403, page, `[]`)
		track(413, decide, `[`+strings.Repeat(" ", compat.MaxGrowthBookTrack)+`]`)
		for i, token := range []string{client.SignUnit(sign, "shop", "4", w.clock.Now().Add(time.Minute)), "4"} {
			w.want([]int{202, 403}[i], "POST", "/v1/exposures?key="+page, fmt.Sprintf(`{"exposures": [{"experiment": "shop",
				"targetingKey": %q, "epoch": %d, "arm": %q, "hash": "growthbook"}]}`, token, plan.Epoch,
				plan.Arms[plan.DecideBy(lease.GrowthBook, "4")].Arm))
		}
		for _, unit := range []string{"1", "2", "3"} {
			w.want(202, "POST", "/v1/track", `{"events": [{"name": "checkout", "targetingKey": "`+unit+`"}]}`, "X-API-Key", reward)
		}
		w.want(200, "POST", "/v1/experiments/shop/pause", "", "X-API-Key", admin)
		w.pass(time.Second)
		if got := payload(decide); got != `{"status":200,"features":{"shop":{"defaultValue":"#c00"}}}`+"\n" {
			t.Errorf("paused: %s", got)
		}
		if got := w.want(200, "GET", compat.FlagdFlags, "", "X-API-Key", decide); !strings.HasSuffix(got,
			`{"shop":{"state":"ENABLED","variants":{"red":"#c00"},"defaultVariant":"red"}}}`+"\n") {
			t.Errorf("paused: %s", got)
		}
	})
	if n != 5 || sum != 1 { // of 1, with a reward, of 4, and of three with bad ones
		t.Errorf("%d decisions are released with a sum of %v", n, sum)
	}
}

// Where exposures are strict they come by themselves: not with what a plugin has queued.
func TestWeightsStrict(t *testing.T) {
	n, sum := earns(t, strings.Replace(plannedShop, "delay: 30s", "delay: 30s, exposures: strict", 1), func(w *world) {
		w.key = w.keyWith(serve.ScopeDecide)
		plan, _, err := w.engine.Plan(t.Context(), "shop")
		if err != nil {
			t.Fatal(err)
		}
		arm := plan.Arms[plan.DecideBy(lease.GrowthBook, "1")].Arm
		got := w.want(403, "POST", compat.GrowthBookTrack, seenByPlugin(plan, "1"))
		if !strings.Contains(got, "exposures: strict") {
			t.Error(got)
		}
		w.want(202, "POST", "/v1/exposures", fmt.Sprintf(`{"exposures": [{"experiment": "shop", "targetingKey": "1", "epoch": %d,
			"arm": %q, "hash": "growthbook"}]}`, plan.Epoch, arm))
	})
	if n != 1 || sum != 0 {
		t.Errorf("%d decisions are released with a sum of %v", n, sum)
	}
}

// sotto-lease.js gives random names of all of Unicode the arms that Go gives them, under random plans, in 2 µs.
func TestLeaseScriptDecides(t *testing.T) {
	src := rand.New(rand.NewPCG(34, 3))
	type drawn struct {
		Plan  lease.Plan `json:"plan"`
		Units []string   `json:"units"`
		Arms  []int      `json:"arms"`
	}
	of := make([]drawn, 10)
	for i := range of {
		p := lease.Plan{Experiment: "shop", Epoch: 1, From: time.UnixMilli(0), Until: time.UnixMilli(1)}
		for b := range p.Salt {
			p.Salt[b] = byte(src.Uint32())
		}
		weights := make([]float64, 2+i)
		for a := range weights {
			weights[a] = src.Float64()
		}
		for a, n := range lease.Apportion(weights) {
			p.Arms = append(p.Arms, lease.Share{Arm: fmt.Sprint(a), Buckets: n})
		}
		of[i].Plan = p
		for range 10_000 {
			unit := make([]rune, src.IntN(40))
			for j := range unit {
				for unit[j] = 0xd800; unit[j] >= 0xd800 && unit[j] < 0xe000; { // which are no characters
					unit[j] = rune(src.IntN([]int{0x80, 0x800, 0x10000, 0x110000}[src.IntN(4)]))
				}
			}
			of[i].Units = append(of[i].Units, string(unit))
			of[i].Arms = append(of[i].Arms, p.Decide(string(unit)))
		}
	}
	dir := t.TempDir()
	text, err := json.Marshal(of)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"sotto-lease.mjs": leaseScript, "drawn.json": text, "main.mjs": []byte(`
import { readFileSync } from 'node:fs';
import { readPlan } from './sotto-lease.mjs';
let wrong = 0, n = 0, last;
for (const { plan, units, arms } of JSON.parse(readFileSync('drawn.json'))) {
  const p = last = readPlan(plan);
  units.forEach((unit, i) => { n++; if (p.arm(unit).arm !== String(arms[i])) wrong++; });
}
const before = process.cpuUsage();
for (let i = 0; i < 1e6; i++) last.arm('visitor-0123456789abcdef');
console.log(n, wrong, process.cpuUsage(before).user / 1000);
`)} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := exec.Command(testkit.Program(t, "node"), "main.mjs")
	c.Dir = dir
	out, err := c.CombinedOutput()
	var units, wrong int
	var nanoseconds float64
	if _, scan := fmt.Sscan(string(out), &units, &wrong, &nanoseconds); err != nil || scan != nil || units != 100_000 || wrong > 0 ||
		nanoseconds > 2000 {
		t.Errorf("%s, %v, must be 100 000 units, none wrong, and at most 2000 ns a decision", out, err)
	}
	t.Logf("%.0f ns of CPU a decision", nanoseconds)
}

// Who has not agreed to take part is given the fallback, whoever it is: nothing is kept, nothing is sent, and the unit
// can still be assigned.
func TestLeaseScriptConsent(t *testing.T) {
	p := lease.Plan{Experiment: "shop", Epoch: 1, From: time.UnixMilli(1000).UTC(), Until: time.UnixMilli(61_000).UTC(), Fallback: "b",
		Arms: []lease.Share{{Arm: "a", Buckets: 9999}, {Arm: "b", Value: json.RawMessage(`7`), Buckets: 1}}}
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, data := range map[string][]byte{"sotto-lease.mjs": leaseScript, "plan.json": text, "main.mjs": []byte(`
import { readFileSync } from 'node:fs';
import { follow } from './sotto-lease.mjs';
const sent = [], kept = [];
globalThis.fetch = async (url, { method, body }) => {
  if (method === 'POST') sent.push(...JSON.parse(body).exposures.map((v) => v.targetingKey + v.arm));
  if (method !== 'POST' && url.searchParams.has('wait')) await new Promise((next) => setTimeout(next, 1e4).unref());
  return new Response(method ? '{}' : readFileSync('plan.json'), { headers: { Date: new Date(1000).toUTCString() } });
};
const store = { getItem: () => null, setItem: (key) => kept.push(key) };
const lease = await follow('shop', { server: 'http://127.0.0.1', key: 'k', store });
const off = [lease.decide({ unit: 'ann', consent: false }), lease.decide({ consent: false })];
const none = kept.length;
const on = lease.decide({ unit: 'ann', consent: true });
await lease.close();
console.log(JSON.stringify([off, none, on.reason, sent, kept.length]));
process.exit(0);
`)} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := exec.Command(testkit.Program(t, "node"), "main.mjs")
	c.Dir = dir
	out, err := c.CombinedOutput()
	arm := p.Arms[p.Decide("ann")].Arm
	want := `{"arm":"b","value":7,"propensity":1,"experiment":"shop","reason":"default"}`
	want = fmt.Sprintf(`[[%s,%[1]s],0,"split",["ann%s"],1]`, want, arm) + "\n"
	if err != nil || string(out) != want {
		t.Errorf("%s, %v, must be %s", out, err, want)
	}
}

// In Chromium a page decides by a signed unit, and its exposure arrives though the page is left at once; who
// comes back has the same arm.
func TestLeaseScriptInChromium(t *testing.T) {
	chromium := testkit.Program(t, "chromium", "chromium-browser", "google-chrome")
	n, sum := earns(t, plannedShop, func(w *world) {
		key, sign, soon := w.keyWith(browserScopes), w.keyWith(serve.ScopeSign), w.clock.Now().Add(time.Minute)
		said := make(chan string, 1)
		front := w.asked
		server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/page", "/left":
				rw.Header().Set("Content-Type", "text/html")
				fmt.Fprintf(rw, `<script type="module">
import { follow, cookies, readPlan } from '/sotto-lease.js?key=%s';
try {
  const unitToken = %q;
  const stored = await follow('shop');
  const kept = await follow('shop', { store: cookies });
  const here = [stored, kept].map((lease) => lease.decide({ unitToken })).map((d) => d.arm + ' ' + d.reason);
  if (location.pathname === '/page') {
    sessionStorage.setItem('here', here);
    location.href = '/left';
  } else {
    const { plan } = stored, n = 1e6, from = performance.now();
    for (let i = 0; i < n; i++) plan.arm('visitor-0123456789abcdef');
    const took = (performance.now() - from) / n * 1e6;
    await fetch('/said', { method: 'POST', body: [sessionStorage.getItem('here'), ...here, Math.round(took)] });
  }
} catch (e) { await fetch('/said', { method: 'POST', body: String(e) }); }
</script>`, key, client.SignUnit(sign, "shop", "Zoë", soon))
			case "/said":
				b, _ := io.ReadAll(r.Body)
				said <- string(b)
			default:
				front.ServeHTTP(rw, r)
			}
		}))
		defer server.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		c := exec.CommandContext(ctx, chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
			"--disable-background-networking", "--disable-component-update", "--disable-sync",
			"--user-data-dir="+t.TempDir(), server.URL+"/page")
		c.WaitDelay = 5 * time.Second
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { cancel(); _ = c.Wait() }()
		plan, _, err := w.engine.Plan(t.Context(), "shop")
		if err != nil {
			t.Fatal(err)
		}
		arm := plan.Arms[plan.Decide("Zoë")].Arm
		select {
		case got := <-said:
			t.Logf("%s ns a decision", got[strings.LastIndex(got, ",")+1:])
			if want := strings.ReplaceAll("x split,x split,x sticky,x sticky,", "x", arm); !strings.HasPrefix(got, want) {
				t.Errorf("the page says %s, must say %s", got, want)
			}
		case <-ctx.Done():
			t.Error("the page says nothing")
		}
		w.want(202, "POST", "/v1/track", `{"events": [{"name": "checkout", "targetingKey": "Zoë"}]}`)
	})
	if n != 1 || sum != 1 {
		t.Errorf("%d decisions are released with a sum of %v", n, sum)
	}
}
