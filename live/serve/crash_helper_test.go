//go:build unix

package serve

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/live/serve/helper"
	"github.com/sotto-dp/sotto/live/serve/store"
	"github.com/sotto-dp/sotto/release"
)

// TestCrashHelperChild is the helper that is killed.
func TestCrashHelperChild(t *testing.T) {
	dir, fault := os.Getenv("SOTTO_CRASH_DIR"), os.Getenv("SOTTO_CRASH_TWIN")
	if dir == "" {
		t.Skip("it is run by TestCrashHelper")
	}
	x := parse(t, os.Getenv("SOTTO_CRASH_SHOP"))
	h, err := helper.Open(t.Context(), helper.Config{Tasks: []helper.Task{{Declared: &x, Secret: shared}},
		Store: func(ctx context.Context) (store.Store, error) {
			s, err := store.SQLite(dir)(ctx)
			if fault == "forgets" {
				return forgetful{s}, err
			}
			return &twin{Store: s, fault: fault}, err
		}})
	if err != nil {
		t.Fatal(err)
	}
	say("%s", httptest.NewServer(helper.Handler(h, nil, nil)).URL)
	_, _ = io.Copy(io.Discard, os.Stdin) // until who started it is gone
}

// forgetful is a store that knows its experiments, and nothing of what was answered.
type forgetful struct{ store.Store }

func (forgetful) Load(context.Context, int64) (store.Stored, error) { return store.Stored{}, nil }

// A mortal is a helper that is killed at each question: when it has answered, before the leader hears
// of it, and then at some time, perhaps in the middle of its work. It keeps what was answered.
type mortal struct {
	t          testing.TB
	dir, fault string
	shop       string

	mu      sync.Mutex
	process *exec.Cmd
	stdin   io.Closer
	address string
	asked   map[string]*exchange
	kills   int
	faults  []string
}

type exchange struct {
	tries            int
	took             time.Duration
	question, answer []byte
}

func (m *mortal) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil { // the leader gave up
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.process == nil {
		m.start()
	}
	x := m.asked[r.URL.Path]
	if x == nil {
		x = &exchange{question: body}
		m.asked[r.URL.Path] = x
	}
	if !bytes.Equal(x.question, body) {
		m.faults = append(m.faults, "another question at "+r.URL.Path)
	}
	x.tries++
	soon := time.NewTimer(time.Hour)
	if x.tries == 2 {
		soon.Reset(time.Duration(rand.Float64() * 1.2 * float64(x.took)))
	}
	from, answered, process := time.Now(), make(chan struct{}), m.process.Process
	go func() {
		select {
		case <-soon.C:
			_ = process.Kill()
		case <-answered:
		}
	}()
	code, answer := m.pass(r, body)
	close(answered)
	x.took = time.Since(from)
	if code == http.StatusOK || code == http.StatusCreated {
		if x.answer == nil {
			x.answer = answer
		}
		if !bytes.Equal(x.answer, answer) {
			m.faults = append(m.faults, "another answer at "+r.URL.Path)
		}
	}
	if x.tries == 8 && code != http.StatusOK && code != http.StatusCreated {
		m.faults = append(m.faults, fmt.Sprintf("it answers %d: %s", code, answer))
	}
	if x.tries <= 2 {
		m.kill()
		code = http.StatusBadGateway
	}
	w.WriteHeader(code)
	if code != http.StatusBadGateway {
		_, _ = w.Write(answer)
	}
}

// pass asks the process; a code of 502 is one that does not answer.
func (m *mortal) pass(r *http.Request, body []byte) (int, []byte) {
	to, err := http.NewRequestWithContext(m.t.Context(), r.Method, m.address+r.URL.Path, bytes.NewReader(body))
	if err != nil {
		return http.StatusBadGateway, nil
	}
	to.Header = r.Header.Clone()
	got, err := http.DefaultTransport.RoundTrip(to)
	if err != nil {
		return http.StatusBadGateway, nil
	}
	defer got.Body.Close()
	answer, err := io.ReadAll(got.Body)
	if err != nil {
		return http.StatusBadGateway, nil
	}
	return got.StatusCode, answer
}

// start starts the process, and waits until it listens.
func (m *mortal) start() {
	c := exec.Command(os.Args[0], "-test.run=^TestCrashHelperChild$")
	c.Env = append(os.Environ(), "SOTTO_CRASH_DIR="+m.dir, "SOTTO_CRASH_TWIN="+m.fault, "SOTTO_CRASH_SHOP="+m.shop)
	in, err := c.StdinPipe()
	if err != nil {
		m.t.Error(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		m.t.Error(err)
	}
	if err := c.Start(); err != nil {
		m.t.Error(err)
	}
	m.process, m.stdin, m.address = c, in, ""
	lines := bufio.NewScanner(out)
	for m.address == "" && lines.Scan() {
		if strings.HasPrefix(lines.Text(), "http://") {
			m.address = lines.Text()
		}
	}
	if m.address == "" {
		m.faults = append(m.faults, "it does not start again")
	}
}

func (m *mortal) kill() {
	if m.process == nil {
		return
	}
	_ = m.process.Process.Kill()
	_ = m.stdin.Close()
	_ = m.process.Wait()
	m.process = nil
	m.kills++
}

// crashHelper has a leader gather 520 reports with a helper that is killed, and says how that ends.
func crashHelper(t *testing.T, fault string) (m *mortal, books []helper.Status) {
	t.Helper()
	m = &mortal{t: t, dir: t.TempDir(), fault: fault, asked: map[string]*exchange{}}
	at := store.SQLite(m.dir)
	first, err := helper.Open(t.Context(), helper.Config{Store: at})
	if err != nil {
		t.Fatal(err)
	}
	p := &party{config: first.Key()}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	p.server = httptest.NewServer(m)
	defer p.server.Close()
	m.shop = strings.Replace(p.shop(), "first: 20", "first: 260", 1)
	x := parse(t, m.shop)
	c := newClock()
	e := open(t, Config{Store: store.NewMemory().Open, Clock: c.Now, gatherPause: time.Millisecond,
		HelperSecret: func(string) []byte { return shared }})
	begin(t, e, m.shop)
	var sums [2]float64
	for i, d := range decided(t, e, 520) {
		value := uint64(i % 1025)
		reportOne(t, e, p.report(t, e, d, value))
		sums[d.Arm] += float64(value) / 1024
	}
	c.Add(time.Minute)
	info := until(t, e, c, func(i Info) bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return len(m.faults) > 0 || i.State == Failed || released(520)(i)
	})
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kill()
	if info.State == Failed {
		m.faults = append(m.faults, info.Reason)
	}
	if len(m.faults) > 0 {
		return m, nil
	}
	law, err := x.Noise()
	if err != nil {
		t.Fatal(err)
	}
	reach := 2 * float64(law.Reach()) * release.ExactStep // of two noises, each with probability 2^-64
	for a, got := range info.Arms {
		if off := got.Sum - sums[a]; got.Released != 260 || off > reach || off < -reach {
			m.faults = append(m.faults, fmt.Sprintf("arm %d: %d decisions with the sum %v, must be 260 with %v", a,
				got.Released, got.Sum, sums[a]))
		}
	}
	replayed(t, e) // each line once
	h, err := helper.Open(t.Context(), helper.Config{Store: at, Tasks: []helper.Task{{Declared: &x, Secret: shared}}})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	return m, h.Tasks()
}

// However often a helper is killed while a sum is gathered, also when it has answered and nobody has
// heard it, the same question has the same bytes, each share is drawn and booked once, and what is
// released is what was reported.
func TestCrashHelper(t *testing.T) {
	t.Parallel()
	m, books := crashHelper(t, "")
	for _, f := range m.faults {
		t.Error(f)
	}
	shares := 0
	for path, x := range m.asked {
		if strings.Contains(path, "/aggregate_shares/") {
			shares++
		}
		if x.tries < 3 || x.answer == nil {
			t.Errorf("%s was asked %d times", path, x.tries)
		}
	}
	// for each arm two jobs, of 256 and of 4 reports, and a share
	if len(m.asked) != 6 || shares != 2 || m.kills < 12 || len(books) != 1 || books[0].Shares != 2 ||
		books[0].Tickets != 520 {
		t.Errorf("%d questions, %d shares, %d kills, the helper's books say %+v", len(m.asked), shares, m.kills, books)
	}
}

// A helper that answers before that is durable, and one that forgets, are found: the noise of the first
// has another draw, which is the same number with a probability below 1e-6.
func TestCrashHelperTwins(t *testing.T) {
	for fault, want := range map[string]string{"answers before the fsync": "another answer at ",
		"forgets": "it answers "} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			m, _ := crashHelper(t, fault)
			if all := strings.Join(m.faults, "\n"); !strings.Contains(all, want) {
				t.Errorf("found is %q", all)
			}
		})
	}
}
