package cli

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
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
