package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/sotto-dp/sotto/internal/clock"
	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/live/serve/store"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/release"
)

// shop is the smallest experiment. Without a floor its decisions are those of the policy alone.
const shop = `
name: shop
arms: [{name: red, value: "#c00"}, {name: blue, value: {hex: "#00c", n: 3}}]
policy: {policy: dp-klucb, first: 8}
budget: {epsilon: 1}
unit: {of: person, assignments: 1}
reward: {range: [0, 1], default: 0}
window: 1m
public: true
`

// A world is a service and who asks it. What it answers is held against openapi.yaml.
type world struct {
	t      testing.TB
	front  *front
	asked  http.Handler // the front, or what a test puts before it
	engine *serve.Engine
	clock  *clock.Manual
	doc    *document
	key    string // that is sent
	log    bytes.Buffer
}

// seeded draws the noise from a seed, so that two worlds have the same.
func seeded(c release.Config) (release.Curator, error) {
	s := noise.NewFast(1, 2)
	return release.Simulated(c, &s)
}

func newWorld(t testing.TB) *world { return newWorldOn(t, store.NewMemory()) }

func newWorldOn(t testing.TB, disk *store.Memory) *world {
	t.Helper()
	return newWorldOf(t, serve.Config{Store: disk.Open, Curator: seeded})
}

// newWorldOf has an engine with the world's clock.
func newWorldOf(t testing.TB, cfg serve.Config) *world {
	t.Helper()
	w := &world{t: t, clock: clock.At(time.UnixMilli(1_000_000_000_000))}
	var err error
	if w.doc, err = readOpenAPI(); err != nil {
		t.Fatal(err)
	}
	metrics := NewMetrics()
	cfg.Clock, cfg.Meter = w.clock.Now, metrics
	w.engine, err = serve.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.engine.Close() })
	w.front = Handler(Config{Engine: w.engine, Metrics: metrics, Log: slog.New(slog.NewTextHandler(&w.log, nil))}).(*front)
	w.asked = w.front
	if w.key, _, err = w.engine.NewKey(t.Context(), "admin", serve.ScopeAdmin); err != nil {
		t.Fatal(err)
	}
	return w
}

// shopOpen has a running experiment.
func shopOpen(t testing.TB) *world {
	w := newWorld(t)
	w.want(201, "POST", "/v1/experiments", shop)
	w.want(200, "POST", "/v1/experiments/shop/start", "")
	return w
}

// pass brings time forward, and lets the engine do what is due.
func (w *world) pass(d time.Duration) {
	w.t.Helper()
	w.clock.Add(d)
	if err := w.engine.Sync(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// ask sends a request, and holds the answer against openapi.yaml.
func (w *world) ask(method, path, body string, header ...string) *httptest.ResponseRecorder {
	w.t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	if w.key != "" {
		r.Header.Set("X-API-Key", w.key)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	out := httptest.NewRecorder()
	w.asked.ServeHTTP(out, r)
	if _, pattern := w.front.routes.Handler(r); pattern != "" && isAPI(path) {
		w.agrees(pattern, out)
	}
	return out
}

// plain sends a request whose answer is not held against openapi.yaml, which takes a while.
func (w *world) plain(method, path, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("X-API-Key", w.key)
	out := httptest.NewRecorder()
	w.asked.ServeHTTP(out, r)
	return out
}

func (w *world) agrees(pattern string, out *httptest.ResponseRecorder) {
	w.t.Helper()
	method, path, _ := strings.Cut(pattern, " ")
	item := w.doc.Paths.Value(path)
	if item == nil || item.GetOperation(method) == nil {
		w.t.Fatalf("openapi.yaml has no %s", pattern)
	}
	response := item.GetOperation(method).Responses.Status(out.Code)
	if response == nil {
		w.t.Fatalf("openapi.yaml: %s has no status %d: %s", pattern, out.Code, out.Body)
	}
	if len(response.Value.Content) == 0 {
		if out.Body.Len() > 0 {
			w.t.Errorf("%s: status %d has a body: %s", pattern, out.Code, out.Body)
		}
		return
	}
	kind := out.Header().Get("Content-Type")
	content := response.Value.Content[kind]
	if content == nil {
		w.t.Fatalf("%s: status %d is of type %q, which openapi.yaml does not have", pattern, out.Code, kind)
	}
	if !strings.HasSuffix(kind, "json") {
		return
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(out.Body.Bytes()))
	if err != nil {
		w.t.Fatalf("%s: %v: %s", pattern, err, out.Body)
	}
	at := []string{"paths", path, strings.ToLower(method), "responses", strconv.Itoa(out.Code)}
	if ref := item.GetOperation(method).Responses.Value(at[4]).Ref; ref != "" {
		at = strings.Split(strings.TrimPrefix(ref, "#/"), "/")
	}
	if err := w.doc.schema(w.t, append(at, "content", kind, "schema")...).Validate(v); err != nil {
		w.t.Errorf("%s: status %d: %s: %v", pattern, out.Code, out.Body, err)
	}
}

// A document is openapi.yaml, with the schemas of its answers, each compiled once.
type document struct {
	*openapi3.T
	mu       sync.Mutex
	compiler *jsonschema.Compiler
}

var readOpenAPI = sync.OnceValues(func() (*document, error) {
	doc, err := openapi3.NewLoader().LoadFromData(openAPI)
	if err != nil {
		return nil, err
	}
	text, err := doc.MarshalJSON()
	if err != nil {
		return nil, err
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	return &document{T: doc, compiler: c}, c.AddResource("openapi.json", v)
})

// schema is the one at these names in the document. The compiler keeps what it has compiled.
func (d *document) schema(t testing.TB, at ...string) *jsonschema.Schema {
	t.Helper()
	for i, name := range at {
		at[i] = url.PathEscape(strings.NewReplacer("~", "~0", "/", "~1").Replace(name))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	s, err := d.compiler.Compile("openapi.json#/" + strings.Join(at, "/"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// want wants a status.
func (w *world) want(status int, method, path, body string, header ...string) string {
	w.t.Helper()
	out := w.ask(method, path, body, header...)
	if out.Code != status {
		w.t.Fatalf("%s %s: status %d, want %d: %s", method, path, out.Code, status, out.Body)
	}
	return out.Body.String()
}

// decide asks for a decision of shop.
func (w *world) decide(unit string) (d decisionJSON) {
	w.t.Helper()
	text := w.want(200, "POST", "/v1/experiments/shop/decisions", fmt.Sprintf(`{"unit": %q}`, unit))
	if err := json.Unmarshal([]byte(text), &d); err != nil || d.Decision == nil {
		w.t.Fatal(text, err)
	}
	return d
}

// offers begins shown, an experiment whose decisions count when they are activated, if it is not
// there, and asks for one.
func (w *world) offers(unit string) (d decisionJSON) {
	w.t.Helper()
	const x = "/v1/experiments/shown"
	if w.ask("GET", x, "").Code == 404 {
		w.want(201, "POST", "/v1/experiments", strings.NewReplacer("name: shop", "name: shown", "window: 1m",
			"window: 1m\nexposure: activate\nactivate_within: 20s\nsticky: false\n"+
				"metrics: [{name: basket, budget: {epsilon: 0.5}}]").Replace(shop))
		w.want(200, "POST", x+"/start", "")
	}
	text := w.want(200, "POST", x+"/decisions", fmt.Sprintf(`{"unit": %q}`, unit))
	if err := json.Unmarshal([]byte(text), &d); err != nil || d.Decision == nil || d.ActivateBy == nil {
		w.t.Fatal(text, err)
	}
	return d
}

func reward(decision, value string) string {
	return fmt.Sprintf(`{"decision": %q, "reward": %s}`, decision, value)
}

// openapi.yaml is a valid document with each route of the handler and no other.
func TestOpenAPI(t *testing.T) {
	w := newWorld(t)
	if err := w.doc.Validate(t.Context()); err != nil {
		t.Error(err)
	}
	var documented, there []string
	for path, item := range w.doc.Paths.Map() {
		for method := range item.Operations() {
			documented = append(documented, method+" "+path)
		}
	}
	for pattern := range w.front.table() {
		there = append(there, pattern)
	}
	slices.Sort(documented)
	slices.Sort(there)
	if !slices.Equal(documented, there) {
		t.Errorf("documented are\n%v, there are\n%v", documented, there)
	}
	if got := w.want(200, "GET", "/openapi.yaml", ""); got != string(openAPI) {
		t.Error("another document is served")
	}
}

// An experiment from its declaration to its archive, over HTTP.
func TestLife(t *testing.T) {
	w := newWorld(t)
	const x = "/v1/experiments/shop"
	if got := w.want(200, "GET", "/v1/experiments", ""); got != `{"experiments":[]}`+"\n" {
		t.Error(got)
	}
	w.want(201, "POST", "/v1/experiments", shop)
	w.want(409, "POST", "/v1/experiments", shop)
	w.want(200, "GET", "/v1/experiments", "")
	if got := w.want(200, "POST", x+"/decisions", `{"unit": "ann"}`); got !=
		`{"decision":null,"arm":"red","value":"#c00","propensity":1,"expires_at":null,"reason":"disabled"}`+"\n" {
		t.Error(got)
	}
	w.want(200, "GET", x+"/ledger", "")
	w.want(409, "POST", x+"/pause", "")
	w.want(200, "POST", x+"/start", "")
	w.want(409, "POST", x+"/start", "")
	for i := range 40 {
		d := w.decide(fmt.Sprint("unit ", i))
		if again := w.decide(fmt.Sprint("unit ", i)); *again.Decision != *d.Decision {
			t.Error("asked again, a unit is answered otherwise")
		}
		w.want(200, "POST", x+"/rewards", reward(*d.Decision, "0.5"))
	}
	for range 70 {
		w.pass(time.Second)
	}
	var info infoJSON
	if err := json.Unmarshal([]byte(w.want(200, "GET", x, "")), &info); err != nil {
		t.Fatal(err)
	}
	if info.Batches == 0 || info.Arms[0].Decisions+info.Arms[1].Decisions != 40 || info.Spent.Loss.Pure() != 1 {
		t.Errorf("%+v", info)
	}
	if got := strings.Count(w.want(200, "GET", x+"/transcript", ""), "\n"); got != info.Batches+1 {
		t.Errorf("the transcript has %d lines of %d batches", got, info.Batches)
	}
	if got := w.want(200, "GET", x+"/ledger", ""); !strings.Contains(got, "laplace") {
		t.Error(got)
	}
	w.want(200, "POST", x+"/pause", "")
	w.want(200, "POST", x+"/resume", "")
	w.want(409, "POST", x+"/archive", "")
	w.want(400, "POST", x+"/stop", `{"arm": "green"}`)
	w.want(200, "POST", x+"/stop", `{"arm": "blue", "now": true, "confirm": "shop"}`)
	if got := w.want(200, "POST", x+"/decisions", `{"unit": "ann"}`); !strings.Contains(got, `"static"`) ||
		!strings.Contains(got, `"blue"`) {
		t.Error(got)
	}
	w.want(200, "POST", x+"/archive", "")
	w.want(200, "GET", "/livez", "")
	w.want(200, "GET", "/readyz", "")
	w.want(400, "POST", "/v1/experiments", strings.Replace(shop, "window: 1m", "window: 0s", 1))
	got := w.want(400, "POST", "/v1/experiments", strings.Replace(shop, "epsilon: 1", "epsilon: -1", 1))
	if !strings.Contains(got, `"field":"policy"`) || !strings.Contains(got, "epsilon is -1, must be above 0") {
		t.Error(got)
	}
	w.want(413, "POST", "/v1/experiments", strings.Repeat("#", maxDeclaration+1))
	w.front.Demo = true
	w.want(403, "POST", "/v1/experiments", strings.Replace(shop, "shop", "other", 1))
	if w.log.Len() > 0 {
		t.Errorf("the log has %s", w.log.String())
	}
}

// What a key may do, and who may do what without.
func TestScopes(t *testing.T) {
	w := shopOpen(t)
	admin := w.key
	const x = "/v1/experiments/shop"
	d := *w.decide("ann").Decision
	offer := *w.offers("ann").Decision
	tries := []struct{ scope, method, path, body string }{
		{"decide", "POST", x + "/decisions", `{"unit":"bob"}`},
		{"decide", "POST", "/ofrep/v1/evaluate/flags/shop", `{"context":{"targetingKey":"bob"}}`},
		{"decide", "POST", "/ofrep/v1/evaluate/flags", `{"context":{"targetingKey":"bob"}}`},
		{"reward", "POST", x + "/rewards", reward(d, "1")},
		{"reward", "POST", "/v1/experiments/shown/activations", `{"decision": "` + offer + `"}`},
		{"reward", "POST", x + "/rewards/batch", `{"rewards":[` + reward(d, "1") + `]}`},
		{"read", "GET", "/v1/experiments", ""},
		{"read", "GET", x, ""},
		{"read", "GET", x + "/transcript", ""},
		{"read", "GET", x + "/ledger", ""},
		{"admin", "GET", "/v1/keys", ""},
	}
	for _, scope := range []string{"decide", "reward", "read", "admin"} {
		w.key = admin
		var k keyJSON
		text := w.want(201, "POST", "/v1/keys", fmt.Sprintf(`{"name": "test", "scopes": [%q]}`, scope))
		if err := json.Unmarshal([]byte(text), &k); err != nil || k.Key == "" {
			t.Fatal(text, err)
		}
		if got := w.want(200, "GET", "/v1/keys", ""); strings.Contains(got, k.Key) {
			t.Error("keys are listed with what opens")
		}
		for _, try := range tries {
			want := http.StatusForbidden
			if scope == try.scope || scope == "admin" {
				want = http.StatusOK
			}
			w.key = k.Key
			w.want(want, try.method, try.path, try.body)
			w.key = ""
			w.want(want, try.method, try.path, try.body, "Authorization", "bearer "+k.Key)
		}
		w.key = k.Key
		for _, path := range []string{"/v1/experiments", "/v1/keys", x + "/start", x + "/pause", x + "/resume",
			x + "/stop", x + "/archive"} {
			if scope != "admin" {
				w.want(403, "POST", path, "")
			}
		}
		w.key = admin
		w.want(204, "DELETE", fmt.Sprint("/v1/keys/", k.ID), "")
		w.key = k.Key
		for _, try := range tries {
			w.want(401, try.method, try.path, try.body)
		}
	}
	w.key = ""
	for _, try := range tries {
		want := http.StatusUnauthorized
		if try.method == "GET" && strings.HasPrefix(try.path, x) { // it is public
			want = http.StatusOK
		}
		w.want(want, try.method, try.path, try.body)
	}
	w.want(401, "GET", "/v1/experiments/none", "")
	w.want(200, "GET", "/livez", "")
	w.key = admin
	w.want(404, "GET", "/v1/experiments/none", "")
	w.want(404, "DELETE", "/v1/keys/99", "")
	w.want(400, "DELETE", "/v1/keys/x", "")
	for _, body := range []string{`{"name":"x"}`, `{"name":"x","scopes":["root"]}`, `{"scopes":["read"]}`} {
		w.want(400, "POST", "/v1/keys", body)
	}
	if got := w.ask("PUT", "/v1/keys", ""); got.Code != 405 ||
		!strings.Contains(got.Header().Get("Allow"), "POST") ||
		got.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("%d %v", got.Code, got.Header())
	}
	if got := w.ask("GET", "/v2", ""); got.Code != 404 ||
		got.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("%d %v", got.Code, got.Header())
	}
}

// What is wrong with a body is said by its field, and never with a value that may be a reward.
func TestBadInput(t *testing.T) {
	w := shopOpen(t)
	w.want(201, "POST", "/v1/experiments", strings.Replace(shop, "shop", "other", 1))
	w.want(200, "POST", "/v1/experiments/other/start", "")
	d := *w.decide("ann").Decision
	forged := []byte(d)
	forged[20] ^= 1
	const decisions, rewards, batch = "/v1/experiments/shop/decisions", "/v1/experiments/shop/rewards",
		"/v1/experiments/shop/rewards/batch"
	const activations = "/v1/experiments/shop/activations"
	const secret = "0.731"
	many := `{"rewards":[` + strings.Repeat(reward(d, "1")+",", maxRewards) + reward(d, "1") + `]}`
	for _, x := range []struct {
		name, path, body string
		status           int
		field            string
	}{
		{"no unit", decisions, ``, 400, "unit"},
		{"null", decisions, `null`, 400, ""},
		{"unit is a number", decisions, `{"unit": 7}`, 400, "unit"},
		{"unit of 5000", decisions, `{"unit": "` + strings.Repeat("u", 5000) + `"}`, 400, "unit"},
		{"unit of 1 MB", decisions, `{"unit": "` + strings.Repeat("u", 1<<20) + `"}`, 413, ""},
		{"half a surrogate", decisions, `{"unit": "\ud800"}`, 400, "unit"},
		{"no UTF-8", decisions, "{\"unit\": \"\xff\"}", 400, ""},
		{"unknown field", decisions, `{"unit": "x", "visitor": "y"}`, 400, "visitor"},
		{"two values", decisions, `{"unit": "x"} {"unit": "y"}`, 400, ""},
		{"cut", decisions, `{"unit": "x"`, 400, ""},
		{"nothing to activate", activations, `{}`, 400, "decision"},
		{"shown is a word", activations, `{"decision": "x", "shown": "no"}`, 400, "shown"},
		{"a forged offer", activations, `{"decision": "x"}`, 400, "decision"},
		{"it counts already", activations, `{"decision": "` + d + `"}`, 409, "decision"},
		{"not to be retracted", activations, `{"decision": "` + d + `", "shown": false}`, 409, "shown"},
		{"no decision", rewards, `{"reward": 0.731}`, 400, "decision"},
		{"no reward", rewards, `{"decision": "x"}`, 400, "reward"},
		{"NaN", rewards, reward(d, "NaN"), 400, "reward"},
		{"Inf", rewards, reward(d, "Infinity"), 400, "reward"},
		{"-Inf", rewards, reward(d, "-Infinity"), 400, "reward"},
		{"NaN in quotes", rewards, reward(d, `"NaN"`), 400, "reward"},
		{"text", rewards, reward(d, `"0.731"`), 400, "reward"},
		{"huge", rewards, reward(d, "0.731e999"), 400, "reward"},
		{"list", rewards, reward(d, "[0.731]"), 400, "reward"},
		{"digits", rewards, reward(d, "0.731.5"), 400, ""},
		{"field with a value", rewards, `{"0.731": 1}`, 400, ""},
		{"array", rewards, `[0.731]`, 400, ""},
		{"huge body", rewards, reward(d, strings.Repeat("1", maxReward)), 413, ""},
		{"forged", rewards, reward(string(forged), secret), 400, "decision"},
		{"of another experiment", "/v1/experiments/other/rewards", reward(d, secret), 400, "decision"},
		{"no token", rewards, reward("x", secret), 400, "decision"},
		{"no experiment", "/v1/experiments/none/rewards", reward(d, secret), 404, ""},
		{"none of a batch", batch, `{"rewards": []}`, 400, "rewards"},
		{"too many", batch, many, 400, "rewards"},
		{"NaN in a batch", batch, `{"rewards": [` + reward(d, "1") + "," + reward(d, `null`) + `]}`, 400,
			"rewards[1].reward"},
		{"huge in a batch", batch, `{"rewards": [` + reward(d, "0.731e999") + `]}`, 400, "rewards.reward"},
		{"huge batch", batch, `{"rewards": "` + strings.Repeat("1", maxBatch) + `"}`, 413, ""},
	} {
		t.Run(x.name, func(t *testing.T) {
			var p problem
			text := w.want(x.status, "POST", x.path, x.body)
			if err := json.Unmarshal([]byte(text), &p); err != nil {
				t.Fatal(err)
			}
			if p.Field != x.field || p.Status != x.status || p.Detail == "" {
				t.Errorf("%s, want the field %q", text, x.field)
			}
			if strings.Contains(text, "731") {
				t.Errorf("a value is in %s", text)
			}
		})
	}
	got := w.want(200, "POST", batch, `{"rewards": [`+reward(string(forged), "1")+","+reward(d, "1e300")+`]}`)
	if got != `{"results":[{"error":"the decision is not one of this experiment"},{"status":"accepted"}]}`+"\n" {
		t.Error(got)
	}
	w.pass(2 * time.Minute)
	if got := w.want(200, "POST", rewards, reward(d, "1")); got != `{"status":"late"}`+"\n" {
		t.Error(got)
	}
	if strings.Contains(w.log.String(), "731") {
		t.Errorf("the log has %s", w.log.String())
	}
}

// When an experiment has stopped, its open decisions are void, whether a reward came before or not.
func TestVoid(t *testing.T) {
	w := shopOpen(t)
	reported, silent := *w.decide("ann").Decision, *w.decide("bob").Decision
	w.want(200, "POST", "/v1/experiments/shop/rewards", reward(reported, "1"))
	w.want(200, "POST", "/v1/experiments/shop/stop", `{"now": true, "confirm": "shop"}`)
	for _, d := range []string{reported, silent} {
		if got := w.want(200, "POST", "/v1/experiments/shop/rewards", reward(d, "1")); got !=
			`{"status":"void"}`+"\n" {
			t.Error(got)
		}
	}
}

// What cannot be written is answered with 503, which says that it may be sent again.
func TestUnavailable(t *testing.T) {
	w := shopOpen(t)
	d := *w.decide("ann").Decision
	key := w.keyOf("shop")
	if err := w.engine.Close(); err != nil {
		t.Fatal(err)
	}
	const both = `{"actions": [{"id": "red"}, {"id": "blue"}]}`
	w.want(503, "POST", "/v1/experiments/shop/rank", both)
	w.want(503, "POST", "/v1/experiments/shop/events/ann/reward", `{"reward": 1}`)
	for _, path := range []string{"/rank", "/events/ann/reward"} {
		theirs := w.ask("POST", theirs+path, `{"value": 1, `+both[1:], key...)
		if theirs.Code != 503 || theirs.Header().Get("Retry-After") != "1" || !strings.Contains(theirs.Body.String(),
			`"innerError":{"code":"OperationNotAllowed"}`) {
			t.Errorf("%d %s", theirs.Code, theirs.Body)
		}
	}
	out := w.ask("POST", "/v1/experiments/shop/rewards", reward(d, "1"))
	if out.Code != 503 || out.Header().Get("Retry-After") != "1" {
		t.Errorf("%d %s", out.Code, out.Body)
	}
	w.want(503, "GET", "/readyz", "")
	w.want(200, "GET", "/livez", "")
	w.want(503, "POST", "/v1/keys", `{"name":"x","scopes":["read"]}`)
}

// A client that does not finish its request is cut off; a service that ends closes its address.
func TestServeEnds(t *testing.T) {
	t.Parallel() // it waits five seconds
	w := shopOpen(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, l, w.front, slog.New(slog.DiscardHandler)) }()
	r, err := http.Get("http://" + l.Addr().String() + "/livez")
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(r.Body); err != nil || r.StatusCode != 200 || string(b) != `{"status":"ok"}`+"\n" {
		t.Errorf("%s, %v", b, err)
	}
	_ = r.Body.Close()
	slow, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	if _, err := io.WriteString(slow, "POST /v1/experiments/shop/rewards HTTP/1.1\r\nHost:"); err != nil {
		t.Fatal(err)
	}
	if err := slow.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(slow); err != nil || strings.Contains(string(b), " 200 ") {
		t.Errorf("it was answered %q, %v", b, err) // the end, not the deadline of the test
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("tcp", l.Addr().String()); err == nil {
		t.Error("it still listens")
	}
}

// What operators did is read by who has a key for everything, and by nobody else.
func TestAudit(t *testing.T) {
	w := shopOpen(t)
	got := strings.Split(w.want(200, "GET", "/v1/audit?from=1", ""), "\n")
	if len(got) != 3 || !strings.Contains(got[1], `"key":1,"by":"admin","did":"start","experiment":"shop"`) {
		t.Error(got)
	}
	for _, from := range []string{"-1", "x", "1e99"} {
		w.want(400, "GET", "/v1/audit?from="+from, "")
	}
	var err error
	if w.key, _, err = w.engine.NewKey(t.Context(), "reader", serve.ScopeRead); err != nil {
		t.Fatal(err)
	}
	w.want(403, "GET", "/v1/audit", "")
}

// Whom an experiment is for is asked of the context of a decision and of a flag; what is in it is
// in no log and no answer. A forced arm wants a key for it.
func TestContext(t *testing.T) {
	w := newWorld(t)
	w.want(201, "POST", "/v1/experiments", shop+"only: {country: [NL]}\n")
	w.want(200, "POST", "/v1/experiments/shop/start", "")
	const decisions, flag = "/v1/experiments/shop/decisions", "/ofrep/v1/evaluate/flags/shop"
	for _, x := range []struct{ path, body, want string }{
		{decisions, `{"unit": "ann", "context": {"country": "NL"}}`, `"reason":"split"`},
		{decisions, `{"unit": "ann", "context": {"country": "secretland"}}`, `"decision":null,"arm":"red"`},
		{decisions, `{"unit": "ann"}`, `"reason":"default"`},
		{decisions, `{"unit": "ann", "context": null}`, `"reason":"default"`},
		{flag, `{"context": {"targetingKey": "ann", "country": "NL", "n": 1e999}}`, `"reason":"SPLIT"`},
		{flag, `{"context": {"targetingKey": "ann", "country": "secretland"}}`, `"reason":"DEFAULT"`},
		{flag, `{"context": {"country": "secretland"}}`, `"reason":"DEFAULT"`},
		{"/ofrep/v1/evaluate/flags", `{"context": {"targetingKey": "ann", "country": "secretland"}}`,
			`"reason":"DEFAULT"`},
	} {
		if got := w.want(200, "POST", x.path, x.body); !strings.Contains(got, x.want) ||
			strings.Contains(got, "secretland") {
			t.Errorf("%s: %s", x.body, got)
		}
	}
	w.want(400, "POST", decisions, `{"unit": "ann", "context": "NL"}`)
	if strings.Contains(w.log.String(), "secretland") {
		t.Errorf("%s", &w.log)
	}
	admin := w.key
	const force = `{"unit": "bob", "force": "blue"}`
	var forced decisionJSON
	for _, x := range []struct {
		scopes serve.Scope
		want   int
	}{{serve.ScopeDecide, 403}, {browserScopes, 403}, {serve.ScopeDecide | serve.ScopeTest, 200},
		{serve.ScopeAdmin, 200}} {
		w.key = admin
		w.key = w.keyWith(x.scopes)
		got := w.want(x.want, "POST", decisions, force)
		if x.want != 200 {
			continue
		}
		if !strings.Contains(got,
			`,"arm":"blue","value":{"hex":"#00c","n":3},"propensity":1,"expires_at":null,"reason":"forced"`) {
			t.Error(got)
		}
		if err := json.Unmarshal([]byte(got), &forced); err != nil || forced.Decision == nil {
			t.Fatal(got, err)
		}
	}
	// what is reported of it, by whoever may report, is answered by whether it would be clipped
	w.key = admin
	w.key = w.keyWith(browserScopes)
	for value, want := range map[string]string{"1": "in_range", "0": "in_range", "2": "clipped", "-0.1": "clipped"} {
		if got := w.want(200, "POST", "/v1/experiments/shop/rewards", reward(*forced.Decision, value)); got !=
			`{"status":"`+want+"\"}\n" {
			t.Errorf("%s: %s", value, got)
		}
	}
	w.key = admin
	w.key = w.keyWith(serve.ScopeAdmin)
	w.want(400, "POST", decisions, `{"force": "pink"}`)
}

// A unit is erased by its name, percent signs and all, with one answer whether or not it was there.
func TestErase(t *testing.T) {
	w := shopOpen(t)
	w.decide("a/b c%")
	for _, unit := range []string{"a%2Fb%20c%25", "nobody"} {
		if got := w.want(204, "DELETE", "/v1/experiments/shop/units/"+unit, ""); got != "" {
			t.Error(got)
		}
	}
	if got := w.want(200, "POST", "/v1/experiments/shop/decisions", `{"unit": "a/b c%"}`); !strings.Contains(
		got, `"reason":"default"`) {
		t.Error(got)
	}
	w.want(400, "DELETE", "/v1/experiments/shop/units/%ff", "")
	w.want(400, "DELETE", "/v1/experiments/shop/units/"+strings.Repeat("u", 5000), "")
	w.want(404, "DELETE", "/v1/experiments/none/units/ann", "")
	if got := w.want(200, "GET", "/v1/audit", ""); strings.Contains(got, "nobody") ||
		strings.Count(got, `"did":"erase","experiment":"shop"`) != 2 {
		t.Error(got)
	}
	w.key = w.keyWith(serve.ScopeRead)
	w.want(403, "DELETE", "/v1/experiments/shop/units/ann", "")
}
