package serve

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/live/serve/store"
)

// A hook is a webhook that answers what it is told to, and what came.
type hook struct {
	*httptest.Server
	mu      sync.Mutex
	answers []int // the next ones; 200 when there is none left
	bodies  []string
	signed  []string
	kinds   []string
	came    chan struct{}
}

func newHook(t *testing.T, answers ...int) *hook {
	h := &hook{answers: answers, came: make(chan struct{}, 100)}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil || r.Method != "POST" || r.URL.Path != "/stopped" {
			b = fmt.Appendf(nil, "%s %s, %v", r.Method, r.URL, err)
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.bodies, h.signed = append(h.bodies, string(b)), append(h.signed, r.Header.Get(SignatureHeader))
		h.kinds = append(h.kinds, r.Header.Get("Content-Type"))
		code := 200
		if len(h.answers) > 0 {
			code, h.answers = h.answers[0], h.answers[1:]
		}
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(code)
		h.came <- struct{}{}
	}))
	t.Cleanup(h.Close)
	return h
}

func (h *hook) wait(t *testing.T, n int) {
	t.Helper()
	for range n {
		select {
		case <-h.came:
		case <-time.After(20 * time.Second):
			t.Fatal("it was not told")
		}
	}
}

// A webhook is told that an experiment has stopped when that is durable, with what everybody may
// see, signed, until it takes it, over a restart too, and then no more. Redirects are not followed.
func TestWebhook(t *testing.T) {
	c, mem := newClock(), store.NewMemory()
	h := newHook(t, 500, 302, 404)
	cfg := Config{Store: mem.Open, Clock: c.Now, hookPause: time.Millisecond}
	e := open(t, cfg)
	begin(t, e, shop+"webhook: "+h.URL+"/stopped\n")
	if _, err := e.Decide(t.Context(), "shop", "ann"); err != nil {
		t.Fatal(err)
	}
	settle(t, e, c, time.Second, 2)
	if len(h.bodies) > 0 {
		t.Fatalf("it runs, and was told %s", h.bodies)
	}
	if err := e.StopNow(t.Context(), "shop", "blue", "shop"); err != nil {
		t.Fatal(err)
	}
	h.wait(t, 4)
	secret, err := e.WebhookSecret("shop")
	if err != nil || len(secret) != 64 {
		t.Fatal(secret, err)
	}
	const want = `{"experiment":"shop","state":"stopped","answer":"blue","time":"2001-09-09T01:46:42Z"}`
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(want))
	h.mu.Lock()
	for i, body := range h.bodies {
		if body != want || h.signed[i] != "sha256="+hex.EncodeToString(mac.Sum(nil)) {
			t.Errorf("%s signed %s", body, h.signed[i])
		}
	}
	if len(h.bodies) != 4 {
		t.Errorf("it was told %d times", len(h.bodies))
	}
	h.mu.Unlock()
	for told := false; !told; { // that is noted after its answer
		x, _ := e.find("shop")
		x.mu.Lock()
		told = x.rec.Told
		x.mu.Unlock()
		time.Sleep(time.Millisecond)
	}
	for range 2 {
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		e = open(t, cfg)
		settle(t, e, c, time.Second, 3)
	}
	if len(h.came) > 0 {
		t.Error("it was told again")
	}
}

// In the form of CloudEvents 1.0 it is told the same in structured mode, under one id whenever it is told again.
func TestWebhookCloudEvents(t *testing.T) {
	c, h := newClock(), newHook(t, 500)
	e := open(t, Config{Store: store.NewMemory().Open, Clock: c.Now, hookPause: time.Millisecond})
	begin(t, e, shop+"webhook: "+h.URL+"/stopped\nwebhook_form: cloudevents\n")
	settle(t, e, c, time.Second, 1)
	if err := e.StopNow(t.Context(), "shop", "blue", "shop"); err != nil {
		t.Fatal(err)
	}
	h.wait(t, 2)
	h.mu.Lock()
	defer h.mu.Unlock()
	const want = `{"specversion":"1.0","id":"ID","source":"/v1/experiments/shop","type":"io.github.sotto-dp.experiment.stopped",` +
		`"subject":"shop","time":"2001-09-09T01:46:41Z","datacontenttype":"application/json","data":{"experiment":"shop",` +
		`"state":"stopped","answer":"blue","time":"2001-09-09T01:46:41Z"}}`
	got := regexp.MustCompile(`"id":"[0-9a-f]{32}"`).ReplaceAllString(h.bodies[0], `"id":"ID"`)
	if got != want || h.bodies[1] != h.bodies[0] || h.kinds[1] != "application/cloudevents+json; charset=utf-8" {
		t.Errorf("%s, then %s, as %s", h.bodies[0], h.bodies[1], h.kinds)
	}
}

// A service that ends while a webhook fails ends at once, and its successor tells it; a commit that
// failed tells nobody.
func TestWebhookRestart(t *testing.T) {
	c, mem := newClock(), store.NewMemory()
	h := newHook(t, 500)
	var full atomic.Bool
	cfg := Config{Clock: c.Now, hookPause: time.Hour, Store: func(ctx context.Context) (store.Store, error) {
		s, err := mem.Open(ctx)
		return flaky{s, &full}, err
	}}
	e := open(t, cfg)
	begin(t, e, shop+"webhook: "+h.URL+"/stopped\n")
	full.Store(true)
	if err := e.Stop(t.Context(), "shop", "blue"); err == nil {
		t.Fatal("it has stopped")
	}
	time.Sleep(10 * time.Millisecond)
	if len(h.came) > 0 {
		t.Fatal("it was told what is not durable")
	}
	for e.Ready() != nil { // it opens the store again
		time.Sleep(time.Millisecond)
	}
	if err := e.Stop(t.Context(), "shop", "blue"); err != nil {
		t.Fatal(err)
	}
	h.wait(t, 1)
	if err := e.Close(); err != nil { // not an hour later
		t.Fatal(err)
	}
	open(t, cfg)
	h.wait(t, 1)
}
