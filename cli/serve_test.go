package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// A served is a running sotto serve.
type served struct {
	t        *testing.T
	url, key string
	banner   string
	errs     *lockedBuffer
	stop     func() int // as Ctrl-C does; the exit code
}

func startServe(t *testing.T, args ...string) *served {
	t.Helper()
	in, out := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	code := make(chan int, 1)
	errs := &lockedBuffer{}
	go func() {
		code <- run(ctx, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...),
			streams{in: strings.NewReader(""), out: out, err: errs})
		_ = out.Close()
	}()
	s := &served{t: t, errs: errs, stop: sync.OnceValue(func() int { cancel(); return <-code })}
	t.Cleanup(func() { s.stop() })
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		line := lines.Text()
		s.banner += line + "\n"
		if rest, ok := strings.CutPrefix(line, "listening on "); ok {
			s.url, _, _ = strings.Cut(rest, ",")
		}
		if rest, ok := strings.CutPrefix(line, "the admin key, shown this once: "); ok {
			s.key = rest
		}
		if strings.HasPrefix(line, "all requests: ") {
			return s
		}
	}
	t.Fatalf("it did not start: exit code %d: %s%s", s.stop(), s.banner, errs.String())
	return nil
}

type lockedBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// call sends what curl would, and wants a status.
func (s *served) call(status int, method, path, body string) map[string]any {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("X-API-Key", s.key)
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer got.Body.Close()
	b, err := io.ReadAll(got.Body)
	if err != nil || got.StatusCode != status {
		s.t.Fatalf("%s %s: %d %s, %v", method, path, got.StatusCode, b, err)
	}
	if strings.Contains(string(b), "7312894561") {
		s.t.Errorf("a reward is in the answer %s", b)
	}
	var out map[string]any
	if err := json.Unmarshal(b, &out); err != nil {
		s.t.Fatalf("%s: %v", b, err)
	}
	return out
}

// On a fresh machine: start, declare, decide, reward, end; and after a restart the same key opens,
// the same unit has the same decision, and its reward is taken.
func TestServe(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	page, err := os.ReadFile("../docs/serve.md")
	if err != nil {
		t.Fatal(err)
	}
	declaration := regexp.MustCompile(`(?m)^    name: shop\n(    .*\n)+`).Find(page)
	declaration = regexp.MustCompile(`(?m)^    `).ReplaceAll(declaration, nil)
	s := startServe(t, "--data", dir)
	if s.key == "" || strings.Count(s.banner, s.key) != 1 {
		t.Fatalf("%s", s.banner)
	}
	s.call(201, "POST", "/v1/experiments", string(declaration))
	s.call(200, "POST", "/v1/experiments/shop/start", "")
	d := s.call(200, "POST", "/v1/experiments/shop/decisions", `{"unit": "ann"}`)
	report, err := json.Marshal(map[string]any{"decision": d["decision"], "reward": canary})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got := s.call(200, "POST", "/v1/experiments/shop/rewards",
			string(report)); got["status"] != "accepted" {
			t.Error(got)
		}
	}
	s.call(400, "POST", "/v1/experiments/shop/rewards", strings.Replace(string(report), "}", "e999}", 1))
	if code := s.stop(); code != exitOK {
		t.Errorf("exit code %d", code)
	}
	if text := s.banner + s.errs.String(); strings.Contains(text, "7312894561") {
		t.Errorf("a reward is in %s", text)
	}
	again := startServe(t, "--data", dir)
	if again.key != "" {
		t.Errorf("a key is shown again: %s", again.banner)
	}
	again.key = s.key
	e := again.call(200, "POST", "/v1/experiments/shop/decisions", `{"unit": "ann"}`)
	if e["decision"] != d["decision"] || e["arm"] != d["arm"] {
		t.Errorf("%v, was %v", e, d)
	}
	if got := again.call(200, "POST", "/v1/experiments/shop/rewards",
		string(report)); got["status"] != "accepted" {
		t.Error(got)
	}
	again.stop()

	file := filepath.Join(t.TempDir(), "admin.key")
	for range 2 { // made, and then read
		s = startServe(t, "--data", dir, "--admin-key-file", file)
		b, err := os.ReadFile(file)
		if err != nil || s.key != "" {
			t.Fatal(s.banner, err)
		}
		s.key = strings.TrimSpace(string(b))
		s.call(200, "GET", "/v1/keys", "")
		s.stop()
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != privateFile {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// The demonstration runs, and takes no experiments of real people.
func TestServeDemo(t *testing.T) {
	s := startServe(t, "--demo")
	d := s.call(200, "POST", "/v1/experiments/demo/decisions", "")
	if d["decision"] == nil {
		t.Error(d)
	}
	s.call(403, "POST", "/v1/experiments", "name: shop")
	s.key = "" // it is public; what it releases is tested in package demo
	s.call(200, "GET", "/v1/experiments/demo", "")
	if code := s.stop(); code != exitOK {
		t.Errorf("exit code %d", code)
	}
}
