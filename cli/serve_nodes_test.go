package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/internal/pgtest"
)

const nodesShop = "name: shop\narms: [red, blue]\npolicy: dp-klucb\nunit: {of: person}\n" +
	"budget: {epsilon: 1}\nwindow: 1h\n"

// Two processes on one database: whichever is asked, one answers, and when it has ended the other
// one, which then makes the experiments of its own directory. No password is said.
func TestServeNodes(t *testing.T) {
	c := pgtest.Start(t)
	const name = "nodes"
	c.SQL(t, "postgres", "CREATE DATABASE "+name)
	address := fmt.Sprintf("postgres://%s:%s@127.0.0.1:%d/%s?sslmode=disable", pgtest.User,
		strings.ReplaceAll(pgtest.Password, " ", "%20"), c.Port, name)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "mine.yaml"),
		[]byte(strings.Replace(nodesShop, "name: shop", "name: mine", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	a := startServe(t, "--database", address)
	b := startServe(t, "--database", address, "--experiments", dir)
	if !strings.Contains(b.banner, "another process writes, and requests go to it: "+a.url) {
		t.Errorf("the second says %s", b.banner)
	}
	b.key = a.key
	b.call(http.StatusCreated, "POST", "/v1/experiments", nodesShop)
	b.call(http.StatusOK, "POST", "/v1/experiments/shop/start", "")
	said := b.call(http.StatusOK, "POST", "/v1/experiments/shop/decisions", `{"unit": "ann"}`)
	if again := a.call(http.StatusOK, "POST", "/v1/experiments/shop/decisions",
		`{"unit": "ann"}`); again["decision"] != said["decision"] {
		t.Errorf("%v and %v", said, again)
	}
	b.call(http.StatusNotFound, "GET", "/v1/experiments/mine", "")
	drill := startServe(t, "--database", c.Copy(t, address), "--read-only")
	drill.key = a.key
	drill.call(http.StatusOK, "GET", "/v1/experiments/shop", "")
	drill.call(http.StatusForbidden, "POST", "/v1/experiments/shop/stop", "")
	if code := a.stop(); code != 0 {
		t.Errorf("the first ends with %d", code)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if strings.Contains(b.errs.String(), "mine") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the second does not make its experiments: %s", b.errs)
		}
	}
	b.call(http.StatusOK, "GET", "/v1/experiments/mine", "")
	if again := b.call(http.StatusOK, "POST", "/v1/experiments/shop/decisions",
		`{"unit": "ann"}`); again["decision"] != said["decision"] {
		t.Errorf("%v and %v", said, again)
	}
	for _, s := range []*served{a, b} {
		if all := s.banner + s.errs.String(); strings.Contains(all, pgtest.Password) ||
			strings.Contains(all, "%20") {
			t.Errorf("the password is said: %s", all)
		}
	}
}

// Where others find a process that does not say.
func TestAdvertise(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct{ given, listens, want string }{
		{"", "http://127.0.0.1:8080", "http://127.0.0.1:8080"},
		{"", "https://10.0.0.7:9", "https://10.0.0.7:9"},
		{"", "http://0.0.0.0:8080", "http://" + host + ":8080"},
		{"", "http://[::]:8080", "http://" + host + ":8080"},
		{"https://a.example", "http://0.0.0.0:8080", "https://a.example"},
		{"https://a.example/", "http://0.0.0.0:8080", ""},
		{"https://user@a.example", "http://0.0.0.0:8080", ""},
		{"ftp://a", "http://0.0.0.0:8080", ""},
	} {
		c := serveCommand{Database: "postgres:///", Advertise: x.given}
		if got, err := c.advertise(x.listens); got != x.want || (err == nil) != (x.want != "") {
			t.Errorf("%q on %s: %q, %v", x.given, x.listens, got, err)
		}
	}
}

// Two processes share the experiments of a database out: each answers for all of them, in one answer where they are
// asked for together, and when one is killed the other goes on with its own at once and with those of both soon.
func TestServeWriters(t *testing.T) {
	c := pgtest.Start(t)
	const name = "writers"
	c.SQL(t, "postgres", "CREATE DATABASE "+name)
	address := fmt.Sprintf("postgres://%s:%s@127.0.0.1:%d/%s?sslmode=disable", pgtest.User,
		strings.ReplaceAll(pgtest.Password, " ", "%20"), c.Port, name)
	var names []string
	dir := t.TempDir()
	for i := range 6 {
		names = append(names, fmt.Sprint("shop", i))
		if err := os.WriteFile(filepath.Join(dir, names[i]+".yaml"), []byte(strings.Replace(nodesShop, "name: shop",
			"name: "+names[i], 1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a := startServe(t, "--database", address, "--writers", "4", "--experiments", dir)
	if !strings.Contains(a.banner, "of 4 shares of the experiments it writes 4") {
		t.Errorf("the first says %s", a.banner)
	}
	killed := exec.CommandContext(t.Context(), "sotto", "serve", "--listen", "127.0.0.1:0", "--database", address,
		"--writers", "4")
	out, err := killed.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	errs := &lockedBuffer{}
	killed.Stderr = errs
	if err := killed.Start(); err != nil {
		t.Fatal(err)
	}
	ended := sync.OnceFunc(func() { _, _ = killed.Process.Kill(), killed.Wait() })
	t.Cleanup(ended)
	b := &served{t: t, key: a.key}
	for lines := bufio.NewScanner(out); b.url == "" && lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), "listening on "); ok {
			b.url, _, _ = strings.Cut(rest, ",")
		}
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	until := func(what string, is func() bool) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: %s%s", what, a.errs, errs)
			}
		}
	}
	until("the second writes two shares", func() bool {
		return strings.Count(errs.String(), "this process writes") >= 2
	})
	again := func(s *served, want int, method, path, body string) (out string) {
		t.Helper()
		until(path, func() bool { // a share may be between two processes
			var status int
			status, out = s.raw(method, path, body)
			if status != want && status != 0 && status != http.StatusServiceUnavailable {
				t.Fatalf("%s %s: %d %s", method, path, status, out)
			}
			return status == want
		})
		return out
	}
	all := func(s *served) string {
		t.Helper()
		body := again(s, http.StatusOK, "POST", "/ofrep/v1/evaluate/flags", `{"context": {"targetingKey": "ann"}}`)
		var flags struct {
			Flags []struct{ Key, Variant, Metadata any }
		}
		if err := json.Unmarshal([]byte(body), &flags); err != nil || len(flags.Flags) != len(names) {
			t.Fatalf("%v, %s", err, body)
		}
		return fmt.Sprint(flags)
	}
	before := all(b)
	if got := all(a); got != before {
		t.Errorf("one says\n%s\nthe other\n%s", before, got)
	}
	again(b, http.StatusAccepted, "POST", "/v1/track", `{"events": [{"name": "checkout", "targetingKey": "ann", "value": 1}]}`)
	time.Sleep(time.Second / 2) // what was decided is durable
	ended()
	until("one of two goes on with its own", func() bool {
		for _, name := range names {
			if status, _ := a.raw("POST", "/v1/experiments/"+name+"/decisions", `{"unit": "bob"}`); status == http.StatusOK {
				return true
			}
		}
		return false
	})
	if got := all(a); got != before {
		t.Errorf("before it was killed\n%s\nafter\n%s", before, got)
	}
	again(a, http.StatusAccepted, "POST", "/v1/track", `{"events": [{"name": "checkout", "targetingKey": "ann", "value": 1}]}`)
	if lines := strings.Split(strings.TrimSpace(again(a, http.StatusOK, "GET", "/v1/audit", "")), "\n"); len(lines) != 1+2*len(names) {
		t.Errorf("the journal has %d lines: %s", len(lines), lines)
	}
	if code := a.stop(); code != 0 {
		t.Errorf("the first ends with %d", code)
	}
	// Who reads has all shares, whatever their number, and who would write fewer is told so.
	reads := startServe(t, "--database", address, "--read-only")
	reads.key = a.key
	file := filepath.Join(t.TempDir(), "backup")
	if out, errs := tryCommand(t, exitOK, "", "backup", "--database", address, file); errs != "" {
		t.Errorf("%s%s", out, errs)
	}
	restored := filepath.Join(t.TempDir(), "restored")
	tryCommand(t, exitOK, "", "restore", "--data", restored, file)
	drill := startServe(t, "--data", restored, "--read-only")
	drill.key = a.key
	for _, s := range []*served{reads, drill} {
		for _, name := range names {
			s.call(http.StatusOK, "GET", "/v1/experiments/"+name, "")
		}
	}
	for _, args := range [][]string{nil, {"--writers", "3"}} {
		if _, errs := tryCommand(t, exitUsage, "", append([]string{"serve", "--listen", "127.0.0.1:0", "--database", address},
			args...)...); !strings.Contains(errs, "it is in 4 shares") {
			t.Errorf("%q: %s", args, errs)
		}
	}
}

// raw is what is answered, whatever that is; 0 for nothing.
func (s *served) raw(method, path, body string) (status int, text string) {
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("X-API-Key", s.key)
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, ""
	}
	defer got.Body.Close()
	b, err := io.ReadAll(got.Body)
	if err != nil {
		return 0, ""
	}
	return got.StatusCode, string(b)
}
