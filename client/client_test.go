package client_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/client"
	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/live/servetest"
	"github.com/sotto-dp/sotto/release"
)

const declaration = `
name: shop
arms: [{name: red, value: "#c00"}, {name: blue, value: {hex: "#00c"}}]
policy: {policy: dp-klucb}
budget: {epsilon: 1}
unit: {of: person, assignments: 1}
reward: {range: [0, 1], default: 0}
window: 1h
`

// A service is a real one that can be killed and started again at the same address.
type service struct {
	*servetest.Service
	t      *testing.T
	key    string
	starts atomic.Int64
	later  atomic.Int64 // how far the clock is ahead
	summed atomic.Int64 // rewards that were summed for a release
}

// An allOnes curator wants that every reward that is summed is 1. One of an engine that was killed
// may sum what it had: nothing of that is committed.
type allOnes struct {
	release.StepCurator
	s     *service
	start int64
}

func (c allOnes) AddSteps(arm, n int, steps int64) error {
	if c.start != c.s.starts.Load() {
		return c.StepCurator.AddSteps(arm, n, steps)
	}
	if steps != int64(float64(n)/release.ExactStep) {
		c.s.t.Errorf("the sum of %d rewards of 1 is %v", n, float64(steps)*release.ExactStep)
	}
	c.s.summed.Add(int64(n))
	return c.StepCurator.AddSteps(arm, n, steps)
}

// pass brings time forward.
func (s *service) pass(d time.Duration) {
	s.t.Helper()
	s.later.Add(int64(d))
	if err := s.Engine.Sync(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

func newService(t *testing.T) *service {
	t.Helper()
	s := &service{t: t}
	s.Service = servetest.New(t, s.config())
	s.key = s.Key(serve.ScopeDecide | serve.ScopeReward)
	s.create("shop")
	return s
}

// config is that of the next start.
func (s *service) config() serve.Config {
	start := s.starts.Add(1)
	return serve.Config{
		Clock: func() time.Time { return time.Now().Add(time.Duration(s.later.Load())) },
		Curator: func(cfg release.Config) (release.Curator, error) {
			c, err := release.Real(cfg)
			if err != nil {
				return nil, err
			}
			return allOnes{c.(release.StepCurator), s, start}, nil
		}}
}

func (s *service) create(name string) { s.createWith(name, "") }

// createWith has more in the declaration.
func (s *service) createWith(name, more string) {
	s.t.Helper()
	s.Start(strings.Replace(declaration, "shop", name, 1) + more)
}

func (s *service) client(options ...client.Option) *client.Client {
	s.t.Helper()
	c, err := client.New(s.URL, s.key, options...)
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

func decide(t *testing.T, c *client.Client, unit string) client.Decision {
	t.Helper()
	d, err := c.Decide(t.Context(), "shop", client.Unit{Name: unit})
	if err != nil || d.Token == "" {
		t.Fatalf("%+v, %v", d, err)
	}
	return d
}

// What is decided is what the service says, and a reward is answered as it says.
func TestClient(t *testing.T) {
	s := newService(t)
	c := s.client()
	d := decide(t, c, "visitor 7")
	want := map[string]string{"red": `"#c00"`, "blue": `{"hex":"#00c"}`}[d.Arm]
	if string(d.Value) != want || d.Reason != "split" || d.Propensity <= 0 || d.Propensity > 1 ||
		time.Until(d.Expires) > time.Hour || time.Until(d.Expires) < 50*time.Minute {
		t.Errorf("%+v", d)
	}
	if again := decide(t, c, "visitor 7"); again.Token != d.Token {
		t.Error("asked again, a unit is answered otherwise")
	}
	for range 2 {
		if got, err := c.Reward(t.Context(), "shop", d.Token, 1); got != client.Accepted || err != nil {
			t.Error(got, err)
		}
	}
	other := decide(t, c, "visitor 8")
	got, err := c.Rewards(t.Context(), "shop", []client.Report{{Decision: "none", Reward: 0.7312894561},
		{Decision: other.Token, Reward: 1}})
	if err != nil || len(got) != 2 || !errors.Is(got[0].Err, client.ErrRequest) ||
		got[1] != (client.Result{Status: client.Accepted}) {
		t.Errorf("%+v, %v", got, err)
	}
	if err := s.Engine.StopNow(t.Context(), "shop", "blue", "shop"); err != nil {
		t.Fatal(err)
	}
	if d, err := c.Decide(t.Context(), "shop", client.Unit{Name: "visitor 9"}); err != nil || d.Token != "" ||
		d.Arm != "blue" || d.Reason != "static" || !d.Expires.IsZero() {
		t.Errorf("%+v, %v", d, err)
	}
	if got, err := c.Reward(t.Context(), "shop", other.Token, 1); got != client.Void || err != nil {
		t.Error(got, err)
	}
}

// An experiment for some is told who they are by the context, which is in no error.
func TestUnitContext(t *testing.T) {
	s := newService(t)
	s.createWith("some", "only: {country: [NL]}\n")
	c := s.client()
	for country, want := range map[string]string{"NL": "split", "DE": "default"} {
		d, err := c.Decide(t.Context(), "some", client.Unit{Name: "from " + country,
			Context: map[string]any{"country": country, "age": 7}})
		if err != nil || d.Reason != want || (d.Token != "") != (want == "split") {
			t.Errorf("%s: %+v, %v", country, d, err)
		}
	}
	if _, err := c.Decide(t.Context(), "some",
		client.Unit{Context: map[string]any{"secret": math.Inf(1)}}); !errors.Is(
		err, client.ErrRequest) || strings.Contains(err.Error(), "Inf") {
		t.Error(err)
	}
}

// A decision that is an offer counts when it is activated.
func TestActivate(t *testing.T) {
	s := newService(t)
	s.createWith("offers", "exposure: activate\n")
	c := s.client()
	if d := decide(t, c, "ann"); !d.ActivateBy.IsZero() {
		t.Errorf("it counts at once: %+v", d)
	}
	for _, shown := range []bool{true, false} {
		d, err := c.Decide(t.Context(), "offers", client.Unit{Name: fmt.Sprint(shown)})
		if err != nil || !d.ActivateBy.After(time.Now()) || !d.Expires.After(d.ActivateBy) {
			t.Fatalf("%+v, %v", d, err)
		}
		if got, err := c.Reward(t.Context(), "offers", d.Token, 1); got != client.Void || err != nil {
			t.Error("before it is activated:", got, err)
		}
		if got, err := c.Activate(t.Context(), "offers", d.Token, shown); got != client.Accepted || err != nil {
			t.Error(got, err)
		}
		want := map[bool]client.Status{true: client.Accepted, false: client.Void}[shown]
		if got, err := c.Reward(t.Context(), "offers", d.Token, 1); got != want || err != nil {
			t.Error(shown, got, err)
		}
	}
	if _, err := c.Activate(t.Context(), "offers", "", true); !errors.Is(err, client.ErrRequest) {
		t.Error(err)
	}
}

// All reports of a decision are taken where the experiment adds them up, each with an id; what no request can say
// is refused here.
func TestReports(t *testing.T) {
	s := newService(t)
	s.createWith("sums", "metrics: [{name: orders, range: [0, 4], aggregate: count, budget: {epsilon: 0.5}}]\n")
	c := s.client()
	d, err := c.Decide(t.Context(), "sums", client.Unit{Name: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	orders := map[string]float64{"orders": 1}
	for _, r := range []client.Report{{Decision: d.Token, Reward: 1, ID: "a"}, {Decision: d.Token, Reward: 1, ID: "a"},
		{Decision: d.Token, Reward: math.NaN(), ID: "b", Metrics: orders}} {
		got, err := c.Report(t.Context(), "sums", r)
		both, errB := c.Rewards(t.Context(), "sums", []client.Report{r, r})
		if got != client.Accepted || err != nil || errB != nil || both[0] != (client.Result{Status: client.Accepted}) || both[1] != both[0] {
			t.Errorf("%+v: %v, %v, %v, %v", r, got, err, both, errB)
		}
	}
	var of *client.Error
	if _, err := c.Reward(t.Context(), "sums", d.Token, 1); !errors.As(err, &of) || of.Field != "id" {
		t.Errorf("without an id: %v", err)
	}
	q, err := c.Queue(client.QueueConfig{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []client.Report{{Decision: d.Token, Reward: math.NaN(), ID: "b"}, {Decision: d.Token, Reward: math.NaN(),
		Metrics: orders}, {Decision: d.Token, ID: "b", Metrics: map[string]float64{"orders": math.Inf(1)}},
		{Decision: d.Token, ID: strings.Repeat("x", 257)}} {
		_, err := c.Report(t.Context(), "sums", r)
		if queued := q.AddReport("sums", r); !errors.Is(err, client.ErrRequest) || !errors.Is(queued, client.ErrRequest) ||
			strings.Contains(err.Error(), "Inf") {
			t.Errorf("%+v: %v, %v", r, err, queued)
		}
	}
	err = errors.Join(q.AddReport("sums", client.Report{Decision: d.Token, ID: "c", Reward: math.NaN(), Metrics: orders}),
		q.Close(t.Context()))
	if _, e := c.Rank(t.Context(), "sums", client.RankRequest{Event: "7", Actions: []client.Action{{ID: "blue"}, {ID: "red"}}}); err != nil ||
		e != nil {
		t.Error(err, e)
	}
	if got, err := c.ReportEvent(t.Context(), "sums", "7", "a", 1); got != client.Accepted || err != nil {
		t.Error(got, err)
	}
}

// Each error is told by errors.Is, and has no reward, no unit and no key.
func TestErrors(t *testing.T) {
	s := newService(t)
	reader := s.Key(serve.ScopeRead)
	with := func(url, key string) *client.Client {
		c, err := client.New(url, key)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	answers := func(status int, kind, body string) string {
		h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.Header().Set("Location", s.URL)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}))
		t.Cleanup(h.Close)
		return h.URL
	}
	token := decide(t, s.client(), "ann").Token
	const experiment, reward, unit = "shop", 0.7312894561, "unit-0.7312894561"
	for _, x := range []struct {
		name       string
		c          *client.Client
		experiment string
		token      string
		reward     float64
		want       error
	}{
		{"no such experiment", s.client(), "none", token, reward, client.ErrNotFound},
		{"an experiment with a slash", s.client(), "a/../shop", token, reward, client.ErrNotFound},
		{"no experiment", s.client(), "", token, reward, client.ErrRequest},
		{"dots", s.client(), "..", token, reward, client.ErrRequest},
		{"wrong key", with(s.URL, "sotto_wrong-0.7312894561"), experiment, token, reward, client.ErrKey},
		{"wrong scope", with(s.URL, reader), experiment, token, reward, client.ErrScope},
		{"nobody there", with(closed.URL, s.key), experiment, token, reward, client.ErrUnavailable},
		{"no host", with("http://sotto.invalid", s.key), experiment, token, reward, client.ErrUnavailable},
		{"proxy", with(answers(502, "text/html", "<p>0.7312894561"), s.key), experiment, token, reward,
			client.ErrUnavailable},
		{"redirect", with(answers(307, "", "0.7312894561"), s.key), experiment, token, reward,
			client.ErrAnswer},
		{"a page", with(answers(200, "text/html", "<p>0.7312894561"), s.key), experiment, token, reward,
			client.ErrAnswer},
		{"nothing", with(answers(200, "application/json", "{}"), s.key), experiment, token, reward,
			client.ErrAnswer},
		{"broken", with(answers(500, "", ""), s.key), experiment, token, reward, client.ErrAnswer},
	} {
		t.Run(x.name, func(t *testing.T) {
			_, errD := x.c.Decide(t.Context(), x.experiment, client.Unit{Name: unit})
			_, errR := x.c.Reward(t.Context(), x.experiment, x.token, x.reward)
			_, errB := x.c.Rewards(t.Context(), x.experiment, []client.Report{{Decision: x.token, Reward: x.reward}})
			for _, err := range []error{errD, errR, errB} {
				if !errors.Is(err, x.want) || strings.Contains(fmt.Sprint(err), "7312894561") {
					t.Errorf("%v, want %v", err, x.want)
				}
				for _, other := range []error{client.ErrUnavailable, client.ErrKey, client.ErrScope,
					client.ErrNotFound, client.ErrRequest, client.ErrAnswer} {
					if other != x.want && errors.Is(err, other) {
						t.Errorf("%v matches %v too", err, other)
					}
				}
			}
		})
	}
	c := s.client()
	for _, x := range []struct {
		token  string
		reward float64
	}{{token, math.NaN()}, {token, math.Inf(1)}, {token, math.Inf(-1)}, {"", 0.7312894561}, {"x", 0.7312894561},
		{strings.Repeat("t", 300), 0.7312894561}} {
		_, err := c.Reward(t.Context(), "shop", x.token, x.reward)
		if !errors.Is(err, client.ErrRequest) || strings.Contains(err.Error(), "7312894561") ||
			strings.Contains(err.Error(), "NaN") || strings.Contains(err.Error(), "Inf") {
			t.Error(err)
		}
	}
	var of *client.Error
	if _, err := c.Reward(t.Context(), "shop", "x", 1); !errors.As(err, &of) || of.Status != 400 ||
		of.Field != "decision" {
		t.Errorf("%v", err)
	}
	for _, n := range []int{0, client.MaxBatch + 1} {
		if _, err := c.Rewards(t.Context(), "shop", make([]client.Report, n)); !errors.Is(err,
			client.ErrRequest) {
			t.Error(n, err)
		}
	}
	for _, bad := range []string{"", "shop", "ftp://x", "http://", "http://u:secret@x", "http://x?secret=1",
		"http://x/#secret", "http://secret\x7f"} {
		if _, err := client.New(bad, "key"); !errors.Is(err, client.ErrRequest) ||
			strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	for _, bad := range []string{"", "secret\n", "secret ü"} {
		if _, err := client.New(s.URL, bad); !errors.Is(err, client.ErrRequest) ||
			strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// Who gives up is told so, and at once.
func TestContext(t *testing.T) {
	s := newService(t)
	c := s.client()
	token := decide(t, c, "ann").Token
	free := make(chan struct{})
	s.Before(func(http.ResponseWriter, *http.Request) bool { <-free; return true })
	defer close(free)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := c.Decide(ctx, "shop", client.Unit{Name: "bob"}); !errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, client.ErrUnavailable) {
		t.Error(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Reward(gone, "shop", token, 1); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	slow := s.client(client.HTTPClient(&http.Client{Timeout: 20 * time.Millisecond}))
	if _, err := slow.Reward(t.Context(), "shop", token, 1); !errors.Is(err, client.ErrUnavailable) {
		t.Error(err)
	}
}

// A queue over kills of the service, 503s and connections that break off: each reward of a decision
// that lasted is counted once, and none is missing.
func TestQueueKills(t *testing.T) {
	s := newService(t)
	s.create("other")
	c := s.client()
	var asked atomic.Int64
	s.Before(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "rewards") {
			return false
		}
		switch n := asked.Add(1); {
		case n%7 == 2:
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
		case n%7 == 4:
			panic(http.ErrAbortHandler)
		case n%7 == 6: // it was done, and the answer is lost
			s.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		default:
			return false
		}
		return true
	})
	var log bytes.Buffer
	q, err := c.Queue(client.QueueConfig{Batch: 20, First: time.Millisecond, Most: 5 * time.Millisecond,
		Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	const kills, each = 5, 60
	var tokens [2][]string
	for k := range kills {
		for i := range each {
			which := i % 2
			name := []string{"shop", "other"}[which]
			d, err := c.Decide(t.Context(), name, client.Unit{Name: fmt.Sprint(k, " ", i)})
			if err != nil {
				t.Fatal(err)
			}
			tokens[which] = append(tokens[which], d.Token)
		}
		if err := s.Engine.Sync(t.Context()); err != nil { // the decisions last
			t.Fatal(err)
		}
		for i := range each {
			if err := q.Add([]string{"shop", "other"}[i%2], tokens[i%2][k*each/2+i/2], 1); err != nil {
				t.Fatal(err)
			}
		}
		s.Open(s.config()) // on the same disk: the engine before has lost it
	}
	if err := q.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := q.Close(t.Context()); err != nil {
		t.Error("closed again:", err)
	}
	if err := q.Add("shop", "x", 1); !errors.Is(err, client.ErrClosed) {
		t.Error(err)
	}
	if log.Len() > 0 {
		t.Error(log.String())
	}
	s.Before(nil)
	for which, name := range []string{"shop", "other"} {
		info, err := s.Engine.Get(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if n := info.Arms[0].Decisions + info.Arms[1].Decisions; n != kills*each/2 {
			t.Errorf("%s has %d decisions", name, n)
		}
		for _, token := range tokens[which] { // a 0 counts where the 1 was lost
			if got, err := c.Reward(t.Context(), name, token, 0); got != client.Accepted || err != nil {
				t.Fatal(name, got, err)
			}
		}
	}
	// What is released has a 1 of every decision: the curator looks.
	s.pass(59 * time.Minute)
	for range 10 {
		s.pass(30 * time.Second)
	}
	if n := s.summed.Load(); n < kills*each/4 {
		t.Errorf("only %d rewards were summed", n)
	}
	if asked.Load() < 2*kills {
		t.Errorf("asked %d times", asked.Load())
	}
}

// A recorder counts what the service gets, and answers for it.
type recorder struct {
	mu     sync.Mutex
	got    map[string]int // times that a decision came
	status func(decisions []string) int
	sizes  []int
	at     []time.Time
}

func (r *recorder) server(t *testing.T) *client.Client {
	t.Helper()
	r.got = map[string]int{}
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		var in struct {
			Rewards []struct{ Decision string }
		}
		if err := json.NewDecoder(q.Body).Decode(&in); err != nil {
			t.Error(err)
		}
		var names []string
		var results []map[string]string
		r.mu.Lock()
		for _, x := range in.Rewards {
			names = append(names, x.Decision)
			results = append(results, map[string]string{"status": "accepted"})
			r.got[x.Decision]++
		}
		r.sizes, r.at = append(r.sizes, len(names)), append(r.at, time.Now())
		status := 200
		if r.status != nil {
			status = r.status(names)
		}
		r.mu.Unlock()
		if status == 0 {
			<-q.Context().Done()
			return
		}
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(map[string]any{"results": results})
	}))
	t.Cleanup(h.Close)
	c, err := client.New(h.URL, "key")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func queue(t *testing.T, c *client.Client, cfg client.QueueConfig) *client.Queue {
	t.Helper()
	q, err := c.Queue(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// A full queue says so at once; closing it gives up when its context ends, and says what is lost.
func TestQueueFull(t *testing.T) {
	r := &recorder{status: func([]string) int { return 0 }}
	q := queue(t, r.server(t), client.QueueConfig{Size: 3})
	for i := range 3 {
		if err := q.Add("shop", fmt.Sprint(i), 0.7312894561); err != nil {
			t.Fatal(err)
		}
	}
	if err := q.Add("shop", "3", 0.7312894561); !errors.Is(err, client.ErrFull) {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	err := q.Close(ctx)
	if !errors.Is(err, client.ErrUnsent) || !errors.Is(err, context.DeadlineExceeded) ||
		!strings.Contains(err.Error(), "3 are lost") {
		t.Error(err)
	}
}

// What was refused for good is not sent again; the log has counts, and nothing of a person.
func TestQueueRefused(t *testing.T) {
	for _, status := range []int{400, 401, 403, 404, 413, 500} {
		var log bytes.Buffer
		r := &recorder{status: func([]string) int { return status }}
		q := queue(t, r.server(t), client.QueueConfig{Log: slog.New(slog.NewTextHandler(&log, nil))})
		for i := range 10 {
			if err := q.Add("shop", fmt.Sprint("token ", i), 0.7312894561); err != nil {
				t.Fatal(err)
			}
		}
		if err := q.Close(t.Context()); err != nil {
			t.Error(err)
		}
		for token, n := range r.got {
			if n != 1 {
				t.Errorf("%d: %s was sent %d times", status, token, n)
			}
		}
		if text := log.String(); !strings.Contains(text, "rewards=") || !strings.Contains(text,
			fmt.Sprint(status)) || strings.Contains(text, "7312894561") || strings.Contains(text, "token") {
			t.Error(text)
		}
	}
	// of a batch, one
	s := newService(t)
	c := s.client()
	var log bytes.Buffer
	q := queue(t, c, client.QueueConfig{Log: slog.New(slog.NewTextHandler(&log, nil))})
	for _, token := range []string{"forged", decide(t, c, "ann").Token} {
		if err := q.Add("shop", token, 0.7312894561); err != nil {
			t.Fatal(err)
		}
	}
	if err := q.Close(t.Context()); err != nil || strings.Count(log.String(), "rewards=1 ") != 1 ||
		strings.Contains(log.String(), "forged") || strings.Contains(log.String(), "7312894561") {
		t.Error(err, log.String())
	}
}

// What a proxy has no room for is sent again, and nothing is lost.
func TestQueueTooManyRequests(t *testing.T) {
	times := 0
	r := &recorder{status: func([]string) int {
		if times++; times == 1 {
			return http.StatusTooManyRequests
		}
		return http.StatusOK
	}}
	var log bytes.Buffer
	q := queue(t, r.server(t), client.QueueConfig{Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err := q.Add("shop", "token", 1); err != nil {
		t.Fatal(err)
	}
	if err := q.Close(t.Context()); err != nil || r.got["token"] != 2 || strings.Contains(log.String(), "lost") {
		t.Errorf("%v, it was sent %d times: %s", err, r.got["token"], log.String())
	}
}

// After each failure the pause is longer, at random within its half, and an experiment that fails
// does not keep another one waiting.
func TestQueueBackOff(t *testing.T) {
	failed := 0
	r := &recorder{}
	r.status = func(names []string) int {
		if names[0] == "bad" && failed < 6 {
			failed++
			return 503
		}
		return 200
	}
	q := queue(t, r.server(t), client.QueueConfig{First: 4 * time.Millisecond, Most: 64 * time.Millisecond})
	for name, token := range map[string]string{"one": "bad", "two": "good"} {
		if err := q.Add(name, token, 1); err != nil {
			t.Fatal(err)
		}
	}
	for until := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		r.mu.Lock()
		done := r.got["bad"] == 7
		r.mu.Unlock()
		if done {
			break
		}
		if time.Now().After(until) {
			t.Fatalf("%v", r.got)
		}
	}
	if err := q.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r.got["good"] != 1 || r.got["bad"] != 7 {
		t.Errorf("%v", r.got)
	}
	// the last pause is at least half of the largest of them but one: two of six may be after "good"
	if gap := r.at[len(r.at)-1].Sub(r.at[len(r.at)-2]); gap < 32*time.Millisecond/2 {
		t.Errorf("the last pause was %v", gap)
	}
}

// Rewards that come while a batch is sent are the next batch.
func TestQueueBatches(t *testing.T) {
	r := &recorder{}
	c := r.server(t)
	free := make(chan struct{})
	// holds the recorder's lock, which is alone
	r.status = func([]string) int { <-free; return 200 }
	q := queue(t, c, client.QueueConfig{Batch: 100})
	var wait sync.WaitGroup
	for g := range 10 {
		wait.Go(func() {
			for i := range 100 {
				if err := q.Add("shop", fmt.Sprint(g, " ", i), 1); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	close(free)
	if err := q.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(r.got) != 1000 || len(r.sizes) > 11 {
		t.Errorf("%d decisions in batches of %v", len(r.got), r.sizes)
	}
	for _, bad := range []client.QueueConfig{{Size: -1}, {Batch: client.MaxBatch + 1}, {First: -1},
		{First: time.Second, Most: time.Millisecond}} {
		if _, err := c.Queue(bad); !errors.Is(err, client.ErrRequest) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	if err := q.Add("", "x", 1); !errors.Is(err, client.ErrRequest) {
		t.Error(err)
	}
	if err := q.Add("shop", "x", math.NaN()); !errors.Is(err, client.ErrRequest) {
		t.Error(err)
	}
}
