package private_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sotto-dp/sotto/client"
	"github.com/sotto-dp/sotto/client/private"
	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/secagg/dap"
)

const text = `
name: shop
arms: [red, blue]
policy: {policy: dp-klucb-j, first: 8}
budget: {epsilon: 1}
unit: {of: visit}
reward: {range: [0, 1], default: 0}
window: 1h
report_after: 20m
sticky: false
`

func parse(t testing.TB, text string) *decl.Experiment {
	t.Helper()
	x, err := decl.Reader{}.Parse("test", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func key(t testing.TB, of string) dap.Key {
	t.Helper()
	k, err := dap.DeriveKey(bytes.Repeat([]byte(of), 32), 1)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func twoServers(t testing.TB, grid int) *decl.Experiment {
	return parse(t, text+fmt.Sprintf("trust: two-server\ngrid: %d\nhelper: {url: "+
		"https://helper.test, key: %v}\n",
		grid, key(t, "h").Config()))
}

// A sent is what a service got at a time.
type sent struct {
	at   time.Duration
	path string
	body string
}

// A service answers as a leader does, without a network: within synctest time passes at once.
type service struct {
	t        testing.TB
	declared *decl.Experiment
	start    time.Time

	mu      sync.Mutex
	number  int
	same    bool // every visitor gets the decision before
	down    bool
	answers int // how often it answers nothing although it took what was sent
	change  func(report map[string]any)
	got     []sent
}

func newService(t testing.TB, declared *decl.Experiment) *service {
	return &service{t: t, declared: declared, start: time.Now()}
}

func (s *service) reporter(cfg private.Config) *private.Reporter {
	s.t.Helper()
	c, err := client.New("http://leader.test", "key", client.HTTPClient(&http.Client{Transport: s}))
	if err != nil {
		s.t.Fatal(err)
	}
	r, err := private.New(c, s.declared, cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

func (s *service) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	answer := func(status int, kind string, b []byte) (*http.Response, error) {
		return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {kind}},
			Body: io.NopCloser(bytes.NewReader(b)), Request: r}, nil
	}
	switch {
	case strings.HasSuffix(r.URL.Path, "/decisions"):
		return answer(200, "application/json", s.decision())
	case s.down:
		return answer(503, "text/plain", nil)
	case r.URL.Path == "/hpke_config":
		return answer(200, dap.MediaConfigs, dap.MarshalConfigs(key(s.t, "l").Config()))
	}
	s.got = append(s.got, sent{time.Since(s.start), r.URL.Path, string(body)})
	if s.answers > 0 {
		s.answers--
		return nil, errors.New("the connection broke")
	}
	if strings.HasPrefix(r.URL.Path, "/tasks/") {
		if r.Header.Get("Authorization") != "" {
			s.t.Error("an upload shows a key")
		}
		return answer(200, dap.MediaUploadResponse, nil)
	}
	n := strings.Count(string(body), `"ticket"`)
	return answer(200, "application/json", []byte(`{"results":[`+
		strings.TrimSuffix(strings.Repeat(`{"status":"accepted"},`, n), ",")+`]}`))
}

func (s *service) decision() []byte {
	if !s.same || s.number == 0 {
		s.number++
	}
	ticket := dap.Ticket{Arm: 0, Number: uint64(s.number - 1), Token: []byte("token")}
	lo, hi := s.declared.Range()
	report := map[string]any{"trust": s.declared.TrustModel(), "range": []float64{lo, hi},
		"default": s.declared.Default, "ticket": base64.RawURLEncoding.EncodeToString(ticket.Marshal()),
		"after_ms": s.declared.ReportDelay().Milliseconds()}
	if task, err := s.declared.Task(); err == nil {
		report["task"], report["time"], report["grid"] = task.ID.String(), 494000, task.Grid
	} else if n, err := s.declared.Noise(); err == nil {
		report["law"], report["noise"] = n.Name, fmt.Sprintf("%d/%d", n.Num, n.Den)
	}
	out := map[string]any{"decision": "AbC", "arm": "red", "value": "red", "propensity": 0.5,
		"reason": "split", "report": report}
	if s.change != nil {
		s.change(report)
		if len(report) == 0 {
			delete(out, "report")
		}
	}
	b, err := json.Marshal(out)
	if err != nil {
		s.t.Error(err)
	}
	return b
}

// seen is what the service got so far.
func (s *service) seen() []sent {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.got)
}

// reports are those of two servers, of all uploads.
func (s *service) reports() (all []dap.Report) {
	s.t.Helper()
	for _, one := range s.seen() {
		some, err := dap.ParseReports([]byte(one.body), dap.MaxJob)
		if err != nil {
			s.t.Fatal(err)
		}
		all = append(all, some...)
	}
	return all
}

// sum opens reports with both servers' keys, and adds them up without noise, in the range [0,1].
func sum(t testing.TB, declared *decl.Experiment, reports []dap.Report) float64 {
	t.Helper()
	task, err := declared.Task()
	if err != nil {
		t.Fatal(err)
	}
	verify, batch := dap.VerifyKey{}, dap.Batch{End: 1 << 20}
	var own, others dap.Aggregate
	for len(reports) > 0 {
		n := min(len(reports), dap.MaxJob)
		j, err := dap.NewLeaderJob(task, key(t, "l"), verify, batch, reports[:n])
		if err != nil {
			t.Fatal(err)
		}
		reports = reports[n:]
		asked, err := dap.ParseJob(task, j.Request())
		if err != nil {
			t.Fatal(err)
		}
		response, theirs, err := asked.Help(key(t, "h"), verify, func(dap.Metadata) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		ours, refused, err := j.Finish(response)
		if err != nil || len(refused) > 0 {
			t.Fatal(err, refused)
		}
		own, others = own.Add(ours), others.Add(theirs)
	}
	share, err := others.Share(task, 0)
	if err != nil {
		t.Fatal(err)
	}
	steps, err := dap.Meet(task, own, share, 0)
	if err != nil {
		t.Fatal(err)
	}
	return float64(steps) / (1 << 20)
}

func decide(t testing.TB, r *private.Reporter) private.Decision {
	t.Helper()
	d, err := r.Decide(t.Context(), client.Unit{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Every decision is reported on once, at its time: rewards of those who have some, the last that
// was said, and the default of the rest. Both servers accept each, and the sum is theirs.
func TestTwoServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		declared := twoServers(t, 1)
		s := newService(t, declared)
		r := s.reporter(private.Config{})
		const n = 300
		want := 0.0
		for i := range n {
			d := decide(t, r)
			if i%3 == 0 {
				for _, y := range []float64{0, 7} { // clipped to 1
					if err := d.Outcome(y); err != nil {
						t.Fatal(err)
					}
				}
				want++
			}
			time.Sleep(time.Second)
		}
		time.Sleep(time.Hour)
		if len(s.seen()) != n {
			t.Fatalf("%d uploads of %d decisions that were made a second apart", len(s.seen()), n)
		}
		for i, one := range s.seen() {
			if due := time.Duration(i)*time.Second + 20*time.Minute; one.at != due {
				t.Fatalf("report %d came after %v, must be %v", i, one.at, due)
			}
		}
		if got := sum(t, declared, s.reports()); got != want {
			t.Errorf("the sum is %v, must be %v", got, want)
		}
		if err := r.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if len(s.seen()) != n {
			t.Errorf("%d uploads after the end", len(s.seen()))
		}
	})
}

// traffic is what a service sees of two visitors, by time, place and length, of whom the second has
// an outcome or not.
func traffic(t *testing.T, declared *decl.Experiment, visit func(s *service, clicks bool)) (same bool) {
	t.Helper()
	var seen [2]string
	for i := range seen {
		synctest.Test(t, func(t *testing.T) {
			s := newService(t, declared)
			s.t = t
			visit(s, i == 1)
			time.Sleep(2 * time.Hour)
			synctest.Wait()
			for _, one := range s.seen() {
				seen[i] += fmt.Sprintln(one.at, one.path, len(one.body))
			}
		})
	}
	return seen[0] == seen[1]
}

// When and where a report goes, and how long it is, does not depend on the reward. A client that
// reports when something happens, as one does of rewards in the open, is found.
func TestTrafficTellsNothing(t *testing.T) {
	declared := twoServers(t, 1024)
	honest := func(early bool) func(*service, bool) {
		return func(s *service, clicks bool) {
			r := s.reporter(private.Config{})
			decide(t, r)
			d := decide(t, r)
			time.Sleep(time.Minute)
			if clicks {
				if err := d.Outcome(1); err != nil {
					t.Error(err)
				}
			}
			if !early || clicks {
				time.Sleep(time.Hour)
			}
			if err := r.Close(context.Background()); err != nil {
				t.Error(err)
			}
		}
	}
	if !traffic(t, declared, honest(false)) {
		t.Error("the traffic of who clicks is another one")
	}
	if traffic(t, declared, honest(true)) { // closes when nothing happened
		t.Error("a client whose time of reporting depends on what happened was not found")
	}
}

// Under trust local what is sent is the reward and one noise, drawn once: it is sent again as it
// was, and a decision that is given again is not reported on again.
func TestLocal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		declared := parse(t, text+"trust: local\n")
		s := newService(t, declared)
		s.same, s.answers = true, 3
		r := s.reporter(private.Config{})
		d := decide(t, r)
		if err := d.Outcome(1); err != nil {
			t.Fatal(err)
		}
		again := decide(t, r)
		time.Sleep(50 * time.Minute)
		if len(s.seen()) != 4 {
			t.Fatalf("%d requests, must be 4: three that broke off", len(s.seen()))
		}
		for _, one := range s.seen() {
			if one.body != s.seen()[0].body {
				t.Fatal("a report that is sent again is another one: its person pays twice")
			}
		}
		decide(t, r)
		time.Sleep(10 * time.Minute)
		if err := r.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(s.seen()) != 4 {
			t.Errorf("%d requests: a decision was reported on twice", len(s.seen()))
		}
		for _, late := range []private.Decision{d, again} {
			if err := late.Outcome(0.123456); !errors.Is(err, private.ErrReported) ||
				strings.Contains(err.Error(), "0.123456") {
				t.Errorf("an outcome after the report is %v, must be ErrReported without the value", err)
			}
		}
	})
}

// Messages have the declared noise in them: of 2000 rewards of 1 the mean is within six standard
// deviations (false alarm below 1e-8), and so is the mean distance from it, which is b of Laplace
// noise, and 0 of a client that adds none.
func TestLocalNoise(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		declared := parse(t, text+"trust: local\n")
		s := newService(t, declared)
		r := s.reporter(private.Config{})
		const n = 2000
		for range n {
			d := decide(t, r)
			if err := d.Outcome(1); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		noise, err := declared.Noise()
		if err != nil {
			t.Fatal(err)
		}
		b, mean, away := float64(noise.Num)/float64(noise.Den), 0.0, 0.0
		for _, one := range s.seen() {
			var in struct{ Reports []struct{ Message int64 } }
			if err := json.Unmarshal([]byte(one.body), &in); err != nil {
				t.Fatal(err)
			}
			for _, m := range in.Reports {
				z := float64(m.Message - 1<<20)
				mean += z / n
				away += math.Abs(z) / n
			}
		}
		if math.Abs(mean) > 6*b*math.Sqrt2/math.Sqrt(n) || math.Abs(away-b) > 6*b/math.Sqrt(n) {
			t.Errorf("the noise has the mean %v and the mean size %v, must be 0 and %v", mean, away, b)
		}
	})
}

// A service that says other terms than were declared gets nothing.
func TestTerms(t *testing.T) {
	two, loc := twoServers(t, 16), parse(t, text+"trust: local\n")
	for _, test := range []struct {
		what     string
		declared *decl.Experiment
		change   func(map[string]any)
	}{
		{"rewards in the open", two, func(m map[string]any) { clear(m) }},
		{"another trust", two, func(m map[string]any) { m["trust"] = "local" }},
		{"another task", two, func(m map[string]any) { m["task"] = dap.TaskID{1}.String() }},
		{"another range", two, func(m map[string]any) { m["range"] = []float64{0, 2} }},
		{"another default", loc, func(m map[string]any) { m["default"] = 1 }},
		{"another law", loc, func(m map[string]any) { m["law"] = "gaussian" }},
		{"less noise", loc, func(m map[string]any) { m["noise"] = "1/1000" }},
		{"a late report", loc, func(m map[string]any) { m["after_ms"] = 1e9 }},
		{"no ticket", two, func(m map[string]any) { m["ticket"] = "AAAA" }},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newService(t, test.declared)
			s.t, s.change = t, test.change
			r := s.reporter(private.Config{})
			if _, err := r.Decide(t.Context(), client.Unit{}); !errors.Is(err, private.ErrTerms) {
				t.Errorf("%s: %v, must be ErrTerms", test.what, err)
			}
			if err := r.Close(t.Context()); err != nil || len(s.seen()) != 0 {
				t.Errorf("%s: %v, and %d requests", test.what, err, len(s.seen()))
			}
		})
	}
}

// What a service cannot take waits, as long as it may count, and is then given up, and counted in
// the log without rewards. A reporter that is closed reports at once.
func TestDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &bytes.Buffer{}
		s := newService(t, twoServers(t, 1))
		r := s.reporter(private.Config{Size: 2, Log: slog.New(slog.NewTextHandler(log, nil))})
		s.down = true
		for range 2 {
			if err := decide(t, r).Outcome(0.123456); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := r.Decide(t.Context(), client.Unit{}); !errors.Is(err, private.ErrFull) {
			t.Errorf("a third decision is %v, must be ErrFull", err)
		}
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if text := log.String(); strings.Count(text, "reports=2") != 1 || strings.Contains(text, "0.12") {
			t.Errorf("the log says %q", text)
		}
		decide(t, r)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := r.Close(ctx); !errors.Is(err, private.ErrUnsent) || !strings.Contains(err.Error(), "1 are") {
			t.Errorf("closing is %v, must be ErrUnsent of 1", err)
		}
		if _, err := r.Decide(t.Context(), client.Unit{}); !errors.Is(err, private.ErrClosed) {
			t.Errorf("a decision afterwards is %v, must be ErrClosed", err)
		}
	})
}

// Bad input is refused without its value.
func TestBad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, twoServers(t, 1))
		r := s.reporter(private.Config{})
		d := decide(t, r)
		for _, y := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
			if err := d.Outcome(y); !errors.Is(err, client.ErrRequest) {
				t.Errorf("an outcome of %v is %v", y, err)
			}
		}
		if err := r.Close(t.Context()); err != nil {
			t.Error(err)
		}
		c, err := client.New("http://leader.test", "key")
		if err != nil {
			t.Fatal(err)
		}
		for _, cfg := range []private.Config{{Size: -1}, {First: -1}, {First: time.Hour, Most: time.Second}} {
			if _, err := private.New(c, s.declared, cfg); err == nil {
				t.Errorf("%+v was taken", cfg)
			}
		}
		if _, err := private.New(c, parse(t, strings.Replace(text, "report_after: 20m\n", "", 1)),
			private.Config{}); err == nil || !strings.Contains(err.Error(), "trust is central") {
			t.Errorf("central trust is %v", err)
		}
	})
}
