//go:build unix

package api

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sotto-dp/sotto/internal/pgtest"
	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/live/lease"
	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/live/serve/store"
)

// A text is a log that many write.
type text struct {
	mu sync.Mutex
	b  strings.Builder
}

func (x *text) Write(b []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.b.Write(b)
}

func (x *text) String() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.b.String()
}

// A node is a process of many on one database.
type node struct {
	*httptest.Server
	engine *serve.Engine
	log    *text
}

func newNode(t testing.TB, address string) *node {
	t.Helper()
	open, err := store.Postgres(address)
	if err != nil {
		t.Fatal(err)
	}
	n := &node{log: &text{}}
	log := slog.New(slog.NewTextHandler(n.log, nil))
	n.Server = httptest.NewUnstartedServer(nil)
	n.engine, err = serve.Open(t.Context(), serve.Config{Store: open, Log: log,
		Advertise: "http://" + n.Listener.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	n.Config.Handler = Handler(Config{Engine: n.engine, Log: log})
	n.Start()
	t.Cleanup(func() {
		n.CloseClientConnections()
		n.Close()
		_ = n.engine.Close()
	})
	return n
}

func (n *node) ask(t testing.TB, key, method, path, body string, header ...string) (int, string, http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, n.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		r.Header.Set("X-API-Key", key)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	out, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Body.Close()
	b, err := io.ReadAll(out.Body)
	if err != nil {
		t.Fatal(err)
	}
	return out.StatusCode, string(b), out.Header
}

// Whichever node is asked, the one that writes answers, and looks at the key. Where it cannot be
// reached the answer is 503, until another one writes.
func TestForwardInTime(t *testing.T) {
	t.Parallel()
	address := pgtest.Database(t)
	a, b := newNode(t, address), newNode(t, address)
	key, made, err := a.engine.NewKey(t.Context(), "admin", serve.ScopeAdmin)
	if err != nil {
		t.Fatal(err)
	}
	want := func(n *node, status int, method, path, body, part string, header ...string) string {
		t.Helper()
		got, out, h := n.ask(t, key, method, path, body, header...)
		if got != status || !strings.Contains(out, part) {
			t.Errorf("%s %s: %d %s, must be %d with %q", method, path, got, out, status, part)
		}
		if got == 503 && h.Get("Retry-After") == "" {
			t.Errorf("%s %s: 503 does not say when to ask again", method, path)
		}
		for _, name := range []string{"Cache-Control", "Content-Type"} {
			if len(h.Values(name)) != 1 && status != 204 {
				t.Errorf("%s %s: %s is %q", method, path, name, h.Values(name))
			}
		}
		return out
	}
	want(b, 201, "POST", "/v1/experiments", shop, `"draft"`)
	want(b, 200, "POST", "/v1/experiments/shop/start", "", "")
	said := want(b, 200, "POST", "/v1/experiments/shop/decisions", `{"unit": "ann"}`, `"decision"`)
	want(a, 200, "POST", "/v1/experiments/shop/decisions", `{"unit": "ann"}`, strings.TrimSpace(said))
	_, token, _ := strings.Cut(said, `"decision":"`)
	token, _, _ = strings.Cut(token, `"`)
	reward := `{"decision": "` + token + `", "reward": 0.4321}`
	want(b, 200, "POST", "/v1/experiments/shop/rewards", reward, "accepted")
	_, app, _ := strings.Cut(want(b, 201, "POST", "/v1/keys", `{"name": "app", "scopes": ["decide", "reward"], `+
		`"experiment": "shop"}`, "shop"), `"key":"`)
	app, _, _ = strings.Cut(app, `"`)
	asApp := []string{"X-API-Key", app}
	ranked := want(a, 201, "POST", theirs+"/rank", `{"eventId": "bob", "actions": [{"id": "red"}, {"id": "blue"}]}`,
		`"eventId":"bob"`, asApp...)
	want(b, 201, "POST", theirs+"/rank", `{"eventId": "bob", "actions": [{"id": "red"}, {"id": "blue"}]}`,
		strings.TrimSpace(ranked), asApp...)
	want(b, 204, "POST", theirs+"/events/bob/reward", `{"value": 0.4321}`, "", asApp...)
	want(b, 404, "POST", theirs+"/events/eve/reward", `{"value": 0.4321}`, "ResourceNotFound", asApp...)
	want(b, 404, "GET", "/v1/nothing?a=b;c", "", "there is nothing here")
	want(b, 405, "GET", "/v1/experiments/shop/rewards", "", "use one of POST")
	want(b, 413, "POST", "/v1/experiments/shop/rewards", strings.Repeat(" ", maxReward+1), "")
	want(b, 200, "GET", "/readyz", "", "ok")
	want(b, 503, "GET", "/v1/experiments", "", "send it again", forwarded, b.engine.Database())
	want(a, 200, "GET", "/v1/experiments", "", "shop", forwarded, b.engine.Database())
	for _, path := range []string{"/livez", "/v1/experiments"} { // of another database, or an older program
		want(a, 503, "GET", path, "", "send it again", forwarded, "1")
	}
	if err := a.engine.RevokeLastKey(t.Context(), made.ID); err != nil {
		t.Fatal(err)
	}
	want(b, 401, "GET", "/v1/experiments", "", "revoked")
	if key, _, err = a.engine.NewKey(t.Context(), "admin", serve.ScopeAdmin); err != nil {
		t.Fatal(err)
	}

	// the writer's front is gone, and the writer is not
	a.CloseClientConnections()
	a.Close()
	a.Config.Handler.(*front).end() // as Serve does
	want(b, 503, "GET", "/readyz", "", "send it again")
	want(b, 503, "POST", "/v1/experiments/shop/rewards", reward, "send it again")
	want(b, 503, "POST", theirs+"/events/bob/reward", `{"value": 0.4321}`, "OperationNotAllowed", asApp...)
	want(b, 200, "GET", "/livez", "", "ok")
	if err := a.engine.Close(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(testkit.Size(30*time.Second, 3*time.Second)); ; time.Sleep(10 * time.Millisecond) {
		if here, _, _ := b.engine.Where(); here {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("nobody takes over")
		}
	}
	want(b, 200, "GET", "/readyz", "", "ok")
	want(b, 200, "POST", "/v1/experiments/shop/rewards", reward, "accepted")
	for _, n := range []*node{a, b} {
		for _, secret := range []string{"4321", token, key} {
			if strings.Contains(n.log.String(), secret) {
				t.Errorf("the log has %q: %s", secret, n.log)
			}
		}
	}
}

// A database that was restored from a dump has the address of the process that wrote when it was made.
// No request to a process on it goes there, whether or not somebody writes in it.
func TestForwardFromACopy(t *testing.T) {
	t.Parallel()
	address := pgtest.Database(t)
	a := newNode(t, address)
	key, _, err := a.engine.NewKey(t.Context(), "admin", serve.ScopeAdmin)
	if err != nil {
		t.Fatal(err)
	}
	want := func(n *node, status int, method, path, body, part string) {
		t.Helper()
		if got, out, _ := n.ask(t, key, method, path, body); got != status || !strings.Contains(out, part) {
			t.Errorf("%s %s: %d %s, must be %d with %q", method, path, got, out, status, part)
		}
	}
	want(a, 201, "POST", "/v1/experiments", shop, `"draft"`)
	want(a, 200, "POST", "/v1/experiments/shop/start", "", "")
	c := pgtest.Start(t)
	rest := c.Copy(t, address)
	b := newNode(t, rest)
	if here, to, _ := b.engine.Where(); !here {
		t.Errorf("who is on the copy says that %q answers", to)
	}
	want(b, 200, "GET", "/v1/experiments/shop", "", `"failed"`)
	want(b, 200, "POST", "/v1/experiments/shop/stop", "{}", `"stopped"`)
	want(a, 200, "GET", "/v1/experiments/shop", "", `"running"`)

	// one writes in the copy, and what the copy says is the first's address nevertheless
	conn, err := pgx.Connect(t.Context(), rest+"&search_path=sotto")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), "UPDATE lease SET address = $1", a.URL); err != nil {
		t.Fatal(err)
	}
	d := newNode(t, rest)
	if here, to, _ := d.engine.Where(); here || to != a.URL {
		t.Errorf("who is on the copy says %v, %q", here, to)
	}
	want(d, 503, "GET", "/v1/experiments/shop", "", "send it again")
	want(d, 503, "POST", "/v1/experiments/shop/stop", "{}", "send it again")
	want(a, 200, "GET", "/v1/experiments/shop", "", `"running"`)
	if log := d.log.String(); !strings.Contains(log, "proves to be on this database") || strings.Contains(log, key) {
		t.Errorf("it says %s", log)
	}
	if log := a.log.String(); !strings.Contains(log, "is on another database") {
		t.Errorf("the first says %s", log)
	}
}

// Who sends back what it is sent proves nothing: it gets no request, nor the name of the database.
func TestForwardToAnEcho(t *testing.T) {
	var seen text
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, values := range r.Header {
			w.Header()[name] = values
			_, _ = io.WriteString(&seen, name+": "+strings.Join(values, ", ")+"\n")
		}
	}))
	defer echo.Close()
	f := newForwarder(slog.New(slog.DiscardHandler), "this", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(503)
	})
	r := httptest.NewRequest("GET", "/v1/experiments", nil)
	r.Header.Set("X-API-Key", "secret")
	if f.pass(httptest.NewRecorder(), r, echo.URL, t.Context()) {
		t.Error("it gets a request")
	}
	if got := seen.String(); !strings.Contains(got, forwarded) || strings.Contains(got, "this") ||
		strings.Contains(got, "secret") {
		t.Errorf("it is told %s", got)
	}
}

// An ask is good for the database that it is of, and to ask alone.
func TestAskOfAnotherDatabase(t *testing.T) {
	one, other := ask("one"), ask("other")
	if !knows("one", one) || knows("one", other) || knows("", one) || knows("", ask("")) || knows("one", "one") ||
		knows("one", "") || knows("one", answerTo("one", one)) || one == ask("one") {
		t.Error("who asks is not told from others")
	}
	if answerTo("one", one) == answerTo("other", one) || answerTo("one", one) == one {
		t.Error("who is asked is not told from others")
	}
}

// A request that waits for a writer who stands still is answered when another one writes.
func TestForwardToNobody(t *testing.T) {
	until, changed := context.WithCancel(t.Context())
	defer changed()
	still := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/livez" {
			w.Header().Set(forwarded, answerTo("this", r.Header.Get(forwarded)))
			return
		}
		_, _ = io.Copy(io.Discard, r.Body) // or the server does not see that whoever asked has gone
		time.AfterFunc(50*time.Millisecond, changed)
		<-r.Context().Done()
	}))
	defer still.Close()
	var log text
	f := newForwarder(slog.New(slog.NewTextHandler(&log, nil)), "this", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(503)
	})
	out, from := httptest.NewRecorder(), time.Now()
	r := httptest.NewRequest("POST", "/v1/experiments/shop/rewards", strings.NewReader(`{"reward": 0.4321}`))
	if !f.pass(out, r, still.URL, until) || out.Code != 503 || time.Since(from) > 30*time.Second {
		t.Errorf("%d after %v", out.Code, time.Since(from))
	}
	if log.String() != "" {
		t.Errorf("that another one writes is no error: %s", &log)
	}
	for _, address := range []string{"", "nowhere", ":", "http://"} {
		if f.pass(httptest.NewRecorder(), r, address, t.Context()) {
			t.Errorf("a request was passed to %q", address)
		}
	}
}

// An open page of a process that passes requests on is told what is new, until another process
// writes, and then again by that one.
func TestForwardEvents(t *testing.T) {
	t.Parallel()
	address := pgtest.Database(t)
	a, b := newNode(t, address), newNode(t, address)
	key, _, err := a.engine.NewKey(t.Context(), "admin", serve.ScopeAdmin)
	if err != nil {
		t.Fatal(err)
	}
	for _, what := range [][2]string{{"", shop}, {"/shop/start", ""}} {
		if status, out, _ := b.ask(t, key, "POST", "/v1/experiments"+what[0], what[1]); status > 201 {
			t.Fatal(status, out)
		}
	}
	open := func(last string) *bufio.Reader {
		r, err := http.NewRequestWithContext(t.Context(), "GET", b.URL+"/experiments/shop/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Last-Event-ID", last)
		out, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = out.Body.Close() })
		if out.StatusCode != 200 || out.Header.Get("Content-Type") != "text/event-stream" {
			t.Fatal(out.Status, out.Header)
		}
		return bufio.NewReader(out.Body)
	}
	// next is the name of the next event
	next := func(r *bufio.Reader) string {
		t.Helper()
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if id, ok := strings.CutPrefix(line, "id: "); ok {
				return strings.TrimSpace(id)
			}
		}
	}
	page := open("")
	first := next(page)
	if status, out, _ := b.ask(t, key, "POST", "/v1/experiments/shop/decisions", `{"unit": "ann"}`); status != 200 {
		t.Fatal(status, out)
	}
	second := next(page)
	if second == first {
		t.Error("nothing is new")
	}
	// and so is one that OFREP's evaluation names, at the address that was asked
	var flags struct {
		Streams []streamJSON `json:"eventStreams"`
	}
	_, text, _ := b.ask(t, key, "POST", allFlags, `{"context": {"targetingKey": "ann"}}`)
	if err := json.Unmarshal([]byte(text), &flags); err != nil || !strings.HasPrefix(flags.Streams[0].URL, b.URL) {
		t.Fatal(text, err)
	}
	stream, err := http.Get(flags.Streams[0].URL)
	if err != nil || stream.StatusCode != 200 {
		t.Fatal(stream, err)
	}
	defer func() { _ = stream.Body.Close() }()
	for _, what := range []string{"pause", "resume"} {
		if status, out, _ := b.ask(t, key, "POST", "/v1/experiments/shop/"+what, ""); status != 200 {
			t.Fatal(status, out)
		}
		if what == "pause" {
			next(bufio.NewReader(stream.Body))
		}
	}
	a.CloseClientConnections()
	a.Close()
	if err := a.engine.Close(); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, page) // it ends, in good order or not
	for status := 0; status != 200; time.Sleep(10 * time.Millisecond) {
		status, _, _ = b.ask(t, "", "GET", "/readyz", "")
	}
	page = open(second)
	if status, out, _ := b.ask(t, key, "POST", "/v1/experiments/shop/decisions", `{"unit": "bob"}`); status != 200 {
		t.Fatal(status, out)
	}
	if third := next(page); third == second {
		t.Error("nothing is new from another process")
	}
}

// An arm is added on the process that writes while another passes on what people ask and do: who follows plans there, or waits for
// one, has the plan with the arm, who is exposed to it there counts, and so do all others, once.
func TestForwardGrown(t *testing.T) {
	t.Parallel()
	address := pgtest.Database(t)
	a, b := newNode(t, address), newNode(t, address)
	key, _, err := a.engine.NewKey(t.Context(), "admin", serve.ScopeAdmin)
	if err != nil {
		t.Fatal(err)
	}
	want := func(status int, method, path, body string, header ...string) (string, string) {
		t.Helper()
		got, out, h := b.ask(t, key, method, path, body, header...)
		if got != status {
			t.Fatalf("%s %s: %d %s, must be %d", method, path, got, out, status)
		}
		return out, h.Get("ETag")
	}
	text := strings.NewReplacer("window: 1m", "window: 8s", "for: 20s", "for: 1s").Replace(leasedShop) + "floor: 0.5\n"
	want(201, "POST", "/v1/experiments", text)
	want(200, "POST", "/v1/experiments/shop/start", "")
	const plans = "/v1/experiments/shop/plan"
	follow, err := http.NewRequestWithContext(t.Context(), "GET", b.URL+plans, nil)
	if err != nil {
		t.Fatal(err)
	}
	follow.Header.Set("X-API-Key", key)
	follow.Header.Set("Accept", "text/event-stream")
	stream, err := http.DefaultClient.Do(follow)
	if err != nil || stream.StatusCode != 200 {
		t.Fatal(stream, err)
	}
	defer func() { _ = stream.Body.Close() }()
	followed := make(chan lease.Plan, 100)
	go func() {
		defer close(followed)
		for lines := bufio.NewScanner(stream.Body); lines.Scan(); {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				p, err := lease.Parse([]byte(data))
				if err != nil {
					t.Error(err)
				}
				followed <- p
			}
		}
	}()
	// people ask and buy all the while
	units, green := 0, 0
	comes := func() (arm string) {
		unit := fmt.Sprint("unit ", units)
		units++
		var d decisionJSON
		out, _ := want(200, "POST", "/v1/experiments/shop/decisions", `{"unit": "`+unit+`"}`)
		if err := json.Unmarshal([]byte(out), &d); err != nil || d.Decision == nil {
			t.Fatal(out, err)
		}
		if units%2 == 0 {
			want(202, "POST", "/v1/track", `{"events": [{"name": "checkout", "targetingKey": "`+unit+`"}]}`)
		}
		if out, _ := want(200, "POST", "/v1/experiments/shop/rewards", `{"decision": "`+*d.Decision+`", "reward": 1}`); !strings.Contains(out,
			"accepted") {
			t.Errorf("the reward of %s: %s", unit, out)
		}
		if d.Arm == "green" {
			green++
		}
		return d.Arm
	}
	for range 10 {
		comes()
	}
	var p lease.Plan
	tag := ""
	for until := time.Now().Add(20 * time.Second); len(p.Arms) < 3 || p.Reason != ""; comes() {
		out, next := want(200, "GET", plans+"?wait=15s", "", "If-None-Match", tag)
		if p, err = lease.Parse([]byte(out)); err != nil || time.Now().After(until) {
			t.Fatal(out, err)
		}
		if next == tag {
			t.Errorf("who waited has the same plan, %s", out)
		}
		if tag == "" {
			if status, out, _ := a.ask(t, key, "PATCH", "/v1/experiments/shop", `{"add": [{"name": "green"}]}`); status != 200 {
				t.Fatal(status, out)
			}
		}
		tag = next
	}
	for got := range followed {
		if got.Epoch >= p.Epoch {
			if got.Epoch == p.Epoch && !reflect.DeepEqual(got, p) {
				t.Errorf("followed is %v, and waited for is %v", got, p)
			}
			break
		}
	}
	exposed := 0
	for i := 0; exposed < 5 && i < 100; i++ { // whoever the plan gives the arm
		unit := fmt.Sprint("leased ", i)
		if p.Arms[p.Decide(unit)].Arm != "green" {
			continue
		}
		exposed++
		want(202, "POST", "/v1/exposures", exposures(exposure(p, unit, unit), exposure(p, unit, unit)))
		if out, _ := want(200, "POST", "/v1/experiments/shop/decisions", `{"unit": "`+unit+`"}`); !strings.Contains(out, `"arm":"green"`) {
			t.Errorf("%s was exposed to green: %s", unit, out)
		}
	}
	for i := 0; green == 0 && i < 100; i++ {
		comes()
	}
	info, err := a.engine.Get(t.Context(), "shop")
	if err != nil || len(info.Arms) != 3 || info.Experiment.Arms[2].Name != "green" || info.Arms[2].Decisions != green+exposed ||
		green == 0 || exposed == 0 || info.Arms[0].Decisions+info.Arms[1].Decisions != units-green {
		t.Errorf("%d units, %d with green, %d exposed to it: %+v, %v", units, green, exposed, info.Arms, err)
	}
	if here, _, _ := b.engine.Where(); here {
		t.Error("the other process writes")
	}
}

// A process that ends does not wait for requests for another plan that it has passed on.
func TestForwardedWaitEnds(t *testing.T) {
	t.Parallel()
	address := pgtest.Database(t)
	a, b := newNode(t, address), newNode(t, address)
	key, _, err := a.engine.NewKey(t.Context(), "admin", serve.ScopeAdmin|serve.ScopeDecide)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range [][2]string{{"", leasedShop}, {"/shop/start", ""}} {
		if status, out, _ := a.ask(t, key, "POST", "/v1/experiments"+c[0], c[1]); status/100 != 2 {
			t.Fatal(out)
		}
	}
	const plan = "/v1/experiments/shop/plan"
	status, out, h := b.ask(t, key, "GET", plan, "")
	for from := time.Now(); status != 200 || strings.Contains(out, `"reason"`); time.Sleep(20 * time.Millisecond) {
		if time.Since(from) > 30*time.Second { // the first plan is of the first tick, and the next is not soon
			t.Fatal(out)
		}
		status, out, h = b.ask(t, key, "GET", plan, "")
	}
	began := time.Now()
	time.AfterFunc(200*time.Millisecond, b.Config.Handler.(*front).end)
	status, out, _ = b.ask(t, key, "GET", plan+"?wait=15s", "", "If-None-Match", h.Get("ETag"))
	if took := time.Since(began); status != 503 || took < 200*time.Millisecond || took > 4*time.Second {
		t.Errorf("after %v: %d %s", took, status, out)
	}
}
