package check

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// nginx is the configuration as nginx has it, with changes: pairs of what to replace, and by what.
func nginx(t *testing.T, dir string, change ...string) string {
	t.Helper()
	text, err := os.ReadFile("../nginx.conf")
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(change); i += 2 {
		if !bytes.Contains(text, []byte(change[i])) {
			t.Fatalf("the configuration has no %s", change[i])
		}
	}
	path := filepath.Join(dir, "nginx.conf")
	temp := ""
	for _, of := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		temp += fmt.Sprintf("%s_temp_path %s;\n", of, filepath.Join(dir, of))
	}
	whole := fmt.Sprintf("daemon off;\nmaster_process off;\npid %s;\nerror_log %s error;\nevents {}\nhttp {\n%s%s}\n",
		filepath.Join(dir, "pid"), filepath.Join(dir, "errors"), temp,
		strings.NewReplacer(change...).Replace(string(text)))
	if err := os.WriteFile(path, []byte(whole), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// The example for nginx is one that nginx takes. It says who the client is, whatever the client
// says, limits decisions and nothing else, and writes down no address.
func TestNginx(t *testing.T) {
	program, err := exec.LookPath("nginx")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip("it needs nginx")
	}
	dir := t.TempDir()
	var forged atomic.Int64
	service := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Real-IP") != "127.0.0.1" || r.Header.Get("X-Forwarded-Proto") != "http" ||
			!strings.HasPrefix(r.Host, "127.0.0.1") {
			forged.Add(1)
		}
	}))
	defer service.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String()
	l.Close()
	change := []string{"listen              443 ssl;", "listen " + at + ";",
		"127.0.0.1:8080", strings.TrimPrefix(service.URL, "http://"),
		"ssl_certificate     /etc/ssl/bandits.pem;", "", "ssl_certificate_key /etc/ssl/bandits.key;", ""}
	// The check can fail.
	broken := nginx(t, dir, append(change, "burst=100 nodelay", "bursts=100 nodelay")...)
	if out, err := exec.Command(program, "-t", "-e", os.DevNull, "-c", broken).CombinedOutput(); err == nil {
		t.Errorf("a parameter that there is not passes: %s", out)
	}
	cmd := exec.Command(program, "-e", filepath.Join(dir, "errors"), "-c", nginx(t, dir, change...))
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	for until := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if c, err := net.Dial("tcp", at); err == nil {
			c.Close()
			break
		}
		if time.Now().After(until) {
			t.Fatalf("nginx does not listen: %s", &said)
		}
	}
	ask := func(path string) int {
		r, err := http.NewRequest("POST", "http://"+at+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Real-IP", "198.51.100.1")
		a, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		a.Body.Close()
		return a.StatusCode
	}
	const decisions = "/v1/experiments/shop/decisions?key=sotto_x"
	from, answered := time.Now(), 0
	for range 400 {
		switch code := ask(decisions); code {
		case http.StatusOK:
			answered++
		case http.StatusTooManyRequests:
		default:
			t.Fatalf("status %d", code)
		}
	}
	if most := 102 + int(10*time.Since(from).Seconds()); answered < 100 || answered > most {
		t.Errorf("%d decisions are answered, must be from 100 to %d", answered, most)
	}
	for path, want := range map[string]int{"/ofrep/v1/evaluate/flags": 429, "/ofrep/v1/evaluate/flags/shop": 429,
		"/v1/experiments/shop/rewards": 200, "/v1/experiments/shop/activations": 200, "/readyz": 200} {
		limited := 0
		for range 50 {
			if ask(path) == http.StatusTooManyRequests {
				limited++
			}
		}
		if (limited > 0) != (want == 429) {
			t.Errorf("%s: %d of 50 are limited", path, limited)
		}
	}
	if n := forged.Load(); n > 0 {
		t.Errorf("%d requests have what the client says", n)
	}
	errs, err := os.ReadFile(filepath.Join(dir, "errors"))
	if err != nil || strings.Contains(string(errs), "limiting") || strings.Contains(string(errs), "sotto_x") {
		t.Errorf("%v; the log says %s", err, errs)
	}
}
