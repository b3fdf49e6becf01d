package api

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/live/serve/store"
)

// What a token is answered that is of another epoch, another service or another experiment, forged,
// late, or beyond what its unit may have.
func TestTokens(t *testing.T) {
	const rewards = "/v1/experiments/shop/rewards"
	disk := store.NewMemory()
	w := newWorldOn(t, disk)
	for _, name := range []string{"shop", "other"} {
		w.want(201, "POST", "/v1/experiments", strings.Replace(strings.Replace(shop, "shop", name, 1),
			"unit: {of: person", "sticky: false\nunit: {of: person", 1))
		w.want(200, "POST", "/v1/experiments/"+name+"/start", "")
	}
	durable := *w.decide("ann").Decision
	if err := w.engine.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	again := w.decide("ann")
	if again.Reason != serve.Limit {
		t.Errorf("ann is assigned again: %+v", again)
	}
	if err := w.engine.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	old := newWorldOn(t, disk) // takes it over
	lost := *w.decide("bob").Decision
	w = old
	stranger := shopOpen(t)
	foreign := *stranger.decide("ann").Decision
	forged := []byte(durable)
	forged[9] ^= 1
	for _, x := range []struct {
		name, path, token, want string
	}{
		{"of an epoch before", rewards, durable, "accepted"},
		{"again", rewards, durable, "accepted"},
		{"lost with its epoch", rewards, lost, "void"},
		{"over the limit", rewards, *again.Decision, "over_limit"},
		{"of another service", rewards, foreign, ""},
		{"of another experiment", "/v1/experiments/other/rewards", durable, ""},
		{"forged", rewards, string(forged), ""},
	} {
		t.Run(x.name, func(t *testing.T) {
			status := 200
			if x.want == "" {
				status = 400
			}
			var got problemOrStatus
			text := w.want(status, "POST", x.path, reward(x.token, "0.731"))
			if err := json.Unmarshal([]byte(text), &got); err != nil {
				t.Fatal(err)
			}
			if status == 200 && got.Status != x.want || status == 400 && got.Field != "decision" ||
				strings.Contains(text, "731") {
				t.Error(text)
			}
		})
	}
	w.pass(2 * time.Minute)
	for _, token := range []string{durable, lost} { // by its own clock alone, whatever became of it
		text := w.want(200, "POST", rewards, reward(token, "1"))
		if token == durable && !strings.Contains(text, "late") {
			t.Error(text)
		}
	}
}

type problemOrStatus struct {
	Status any
	Field  string
}

// A unit whose reward comes a million times counts once.
func TestMillionRewards(t *testing.T) {
	w := shopOpen(t)
	d := *w.decide("ann").Decision
	body := `{"rewards":[` + strings.Repeat(reward(d, "1")+",", maxRewards-1) + reward(d, "1") + `]}`
	rounds := testkit.Size(20, 1000) // of as many each
	for range rounds {
		got := w.plain("POST", "/v1/experiments/shop/rewards/batch", body)
		if got.Code != 200 || strings.Count(got.Body.String(), `"accepted"`) != maxRewards {
			t.Fatal(got.Code, got.Body)
		}
	}
	for i := range 7 { // with them, the eight that the policy wants
		w.decide(fmt.Sprint("unit ", i))
	}
	for i := range 8 {
		w.decide(fmt.Sprint("another ", i))
	}
	for range 70 {
		w.pass(time.Second)
	}
	var info infoJSON
	if err := json.Unmarshal([]byte(w.want(200, "GET", "/v1/experiments/shop", "")), &info); err != nil {
		t.Fatal(err)
	}
	// The noise has scale 1: it is above 100 with a probability below 1e-43.
	if sum := *info.Arms[0].Mean * float64(info.Arms[0].Released); info.Batches == 0 || sum > 102 {
		t.Errorf("released %v of %d decisions", sum, info.Arms[0].Released)
	}
}

// While nothing can be written, and the store is closed, it is not ready and what would be read from the
// store is to be asked for again: no answer breaks off.
func TestReadOfClosed(t *testing.T) {
	var full atomic.Bool
	disk := store.SQLite(t.TempDir())
	w := newWorldOf(t, serve.Config{Curator: seeded, Store: func(ctx context.Context) (store.Store, error) {
		if full.Load() {
			return nil, errors.New("the disk is full")
		}
		s, err := disk(ctx)
		return failing{s, &full}, err
	}})
	w.want(201, "POST", "/v1/experiments", shop)
	w.want(200, "POST", "/v1/experiments/shop/start", "")
	reads := []string{"/v1/experiments/shop/transcript", "/v1/audit", "/experiments/shop/transcript.jsonl"}
	whole := map[string]string{}
	for _, path := range reads[:2] {
		whole[path] = w.want(200, "GET", path, "")
	}
	full.Store(true)
	w.want(503, "POST", "/v1/experiments/shop/pause", "")
	for range 100 {
		w.want(503, "GET", "/readyz", "")
		for _, path := range reads {
			if got := w.plain("GET", path, ""); got.Code != 503 || got.Header().Get("Content-Disposition") != "" {
				t.Fatalf("%s: %d %v %s", path, got.Code, got.Header(), got.Body)
			}
		}
	}
	if strings.Contains(w.log.String(), "broke off") {
		t.Errorf("%.2000s", w.log.String())
	}
	full.Store(false)
	for w.engine.Ready() != nil {
		time.Sleep(time.Millisecond)
	}
	for path, want := range whole {
		if got := w.want(200, "GET", path, ""); got != want {
			t.Errorf("%s: %s, was %s", path, got, want)
		}
	}
}

// A failing store fails its commits while it is told to.
type failing struct {
	store.Store
	full *atomic.Bool
}

func (s failing) Commit(ctx context.Context, c store.Commit) error {
	if s.full.Load() {
		return errors.New("the disk is full")
	}
	return s.Store.Commit(ctx, c)
}

// Whoever is slow, with the head of a request, with its body, or in reading the answer, is cut off,
// and holds nobody else up.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	w := shopOpen(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	const limit = 200 * time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	huge := http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/huge" { // as a transcript may be
			for range 1000 {
				if _, err := out.Write(make([]byte, 1<<20)); err != nil {
					panic(http.ErrAbortHandler)
				}
			}
			return
		}
		w.front.ServeHTTP(out, r)
	})
	go func() {
		ended <- serveOn(ctx, l, &http.Server{Handler: huge, ReadHeaderTimeout: limit,
			ReadTimeout: limit, WriteTimeout: 2 * limit, IdleTimeout: limit})
	}()
	const post = "POST /v1/experiments/shop/decisions HTTP/1.1\r\nHost: x\r\n"
	head := post + "X-API-Key: " + w.key + "\r\nContent-Length: 14\r\n\r\n"
	slow := map[string]string{
		"in its head": post, "in its body": head + `{"unit"`, "before its body": head, "idle": "",
		"in reading": "GET /huge HTTP/1.1\r\nHost: x\r\n\r\n",
	}
	conns := map[string]net.Conn{}
	for name, text := range slow {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, text); err != nil {
			t.Fatal(err)
		}
		conns[name] = c
	}
	r, err := http.Get("http://" + l.Addr().String() + "/livez") // meanwhile
	if err != nil || r.StatusCode != 200 {
		t.Fatal(r, err)
	}
	_ = r.Body.Close()
	for name, c := range conns {
		if name == "in reading" {
			time.Sleep(4 * limit) // and only then
		}
		if err := c.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		n, err := io.Copy(io.Discard, bufio.NewReader(c))
		if e, ok := err.(net.Error); ok && e.Timeout() {
			t.Errorf("a client that is slow %s is not cut off", name)
		}
		if n >= 1000<<20 {
			t.Errorf("a client that is slow %s has all of it", name)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if info, err := w.engine.Get(t.Context(), "shop"); err != nil || info.Arms[0].Decisions+
		info.Arms[1].Decisions > 0 {
		t.Errorf("half a request decided: %+v, %v", info, err)
	}
}
