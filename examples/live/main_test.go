package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/client"
	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/live/servetest"
)

// A service is a real one, and the rewards that it got.
type service struct {
	*servetest.Service
	t *testing.T

	mu  sync.Mutex
	got []string // bodies
}

func newService(t *testing.T, origins ...string) *service {
	t.Helper()
	s := &service{Service: servetest.New(t, serve.Config{}, origins...), t: t}
	s.Before(func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, "/rewards") {
			b, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			s.mu.Lock()
			s.got = append(s.got, string(b))
			s.mu.Unlock()
			r.Body = io.NopCloser(bytes.NewReader(b))
		}
		return false
	})
	return s
}

// start creates and starts the experiment of shop.yaml.
func (s *service) start() {
	s.t.Helper()
	text, err := os.ReadFile("shop.yaml")
	if err != nil {
		s.t.Fatal(err)
	}
	s.Start(string(text))
}

func (s *service) rewards() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.got)
}

// command runs one of the examples with an environment that says where the service is.
func (s *service) command(key string, name string, args ...string) (stdout string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, name, args...)
	c.Env = append(os.Environ(), "SOTTO_SERVER="+s.URL, "SOTTO_KEY="+key)
	var errs strings.Builder
	c.Stderr = &errs
	out, err := c.Output()
	if err != nil {
		s.t.Fatalf("%s %q: %v: %s%s", name, args, err, out, errs.String())
	}
	return string(out)
}

var hidden = regexp.MustCompile(`name="decision" value="([^"]*)".*\n<button style="background: ([^;]*);`)

// A visitor sees one color whenever they come, and what they buy is their decision's reward. Without
// a service the usual color is shown, and nothing is reported.
func TestShop(t *testing.T) {
	s := newService(t)
	s.start()
	c, err := client.New(s.URL, s.Key(serve.ScopeDecide|serve.ScopeReward))
	if err != nil {
		t.Fatal(err)
	}
	q, err := c.Queue(client.QueueConfig{})
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	open := func(c *client.Client) *httptest.Server {
		front := httptest.NewServer(shop{c, q, slog.New(slog.NewTextHandler(&log, nil))}.routes())
		t.Cleanup(front.Close)
		return front
	}
	front := open(c)
	visit := func(v *http.Client) (decision, color string) {
		t.Helper()
		r, err := v.Get(front.URL)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		b, err := io.ReadAll(r.Body)
		m := hidden.FindStringSubmatch(string(b))
		if err != nil || m == nil {
			t.Fatalf("%s, %v", b, err)
		}
		return m[1], m[2]
	}
	buy := func(decision string) {
		t.Helper()
		r, err := http.PostForm(front.URL+"/buy", url.Values{"decision": {decision}})
		if err != nil || r.StatusCode != 200 {
			t.Fatal(r, err)
		}
		_ = r.Body.Close()
	}
	decisions := map[string]bool{}
	for range 5 {
		jar, err := cookiejar.New(nil)
		if err != nil {
			t.Fatal(err)
		}
		visitor := &http.Client{Jar: jar}
		d, color := visit(visitor)
		again, colorAgain := visit(visitor)
		if len(d) != 58 || d != again || color != colorAgain || color != "#c00" && color != "#00c" {
			t.Errorf("%s %s, and again %s %s", d, color, again, colorAgain)
		}
		decisions[d] = true
		buy(d)
	}
	if err := q.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	reported := 0
	for _, body := range s.rewards() {
		var in struct {
			Rewards []client.Report
		}
		if err := json.Unmarshal([]byte(body), &in); err != nil {
			t.Fatal(err)
		}
		for _, r := range in.Rewards {
			reported++
			if !decisions[r.Decision] || r.Reward != 1 {
				t.Errorf("%+v", r)
			}
		}
	}
	if len(decisions) != 5 || reported != 5 {
		t.Errorf("%d visitors, %d rewards", len(decisions), reported)
	}
	if err := s.Engine.Stop(t.Context(), "shop", "blue"); err != nil {
		t.Fatal(err)
	}
	if d, color := visit(http.DefaultClient); d != "" || color != "#00c" {
		t.Errorf("the winner is %s, decision %q", color, d)
	}
	gone, err := client.New("http://127.0.0.1:1", "key")
	if err != nil {
		t.Fatal(err)
	}
	front.Close()
	if log.Len() > 0 {
		t.Error(log.String())
	}
	front = open(gone)
	if d, color := visit(http.DefaultClient); d != "" || color != usual {
		t.Errorf("without a service it is %s, decision %q", color, d)
	}
	buy("")
	front.Close()
	if !strings.Contains(log.String(), "the usual color is shown") {
		t.Error(log.String())
	}
}

// curl.sh leads an experiment from its declaration to a reward.
func TestCurl(t *testing.T) {
	for _, name := range []string{"bash", "curl", "jq"} {
		testkit.Program(t, name)
	}
	s := newService(t)
	out := s.command(s.Key(serve.ScopeAdmin), "bash", "curl.sh")
	want := regexp.MustCompile(`^show (red, which is #c00|blue, which is #00c)\naccepted\nrunning, .* a visitor, ` +
		`0 batches released\n$`)
	if !want.MatchString(out) {
		t.Errorf("%q", out)
	}
	if got := s.rewards(); len(got) != 1 || !strings.Contains(got[0], `"reward": 1`) {
		t.Errorf("%q", got)
	}
}

// shop.py decides and reports, reports again after a 503, and shows the usual arm without a service.
func TestPython(t *testing.T) {
	python := ""
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(name, "-c", "import requests").Run() == nil {
			python = name
			break
		}
	}
	if python == "" {
		testkit.Missing(t, "there is no Python 3 with requests")
	}
	s := newService(t)
	s.start()
	key := s.Key(serve.ScopeDecide | serve.ScopeReward)
	out := s.command(key, python, "-B", "shop.py", "visitor 7")
	if !regexp.MustCompile(`^show (red|blue)\naccepted\n$`).MatchString(out) || len(s.rewards()) != 1 {
		t.Errorf("%q, %q", out, s.rewards())
	}
	decided := s.command(key, python, "-B", "-c", `
import shop, sys
s = shop.Sotto(shop.SERVER, sys.argv[1])
d = s.decide("shop", "visitor 8")
print(d["decision"])
print(s.reward("shop", d, 1))
print(shop.Sotto("http://127.0.0.1:1", "key").decide("shop", "visitor 8") == shop.USUAL)
print(s.reward("shop", shop.USUAL, 1))
`, key)
	if !regexp.MustCompile(`^[-\w]{58}\naccepted\nTrue\nNone\n$`).MatchString(decided) {
		t.Errorf("%q", decided)
	}
	var asked atomic.Int64
	tired := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) <= 2 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, `{"status": "late"}`)
	}))
	defer tired.Close()
	s.URL = tired.URL
	if out := s.command("key", python, "-B", "-c", `
import shop
print(shop.Sotto(shop.SERVER, "key").reward("shop", {"decision": "x"}, 1))
`); out != "late\n" || asked.Load() != 3 {
		t.Errorf("%q, after %d answers", out, asked.Load())
	}
}

// page.html decides in a real browser, and reports the click.
func TestPage(t *testing.T) {
	text, err := os.ReadFile("page.html")
	if err != nil {
		t.Fatal(err)
	}
	var page []byte
	front := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write(page)
	}))
	s := newService(t, "http://"+front.Listener.Addr().String())
	s.start()
	const address = "http://127.0.0.1:8080/sotto.js?key=sotto_0123456789"
	if !bytes.Contains(text, []byte(address)) {
		t.Fatalf("page.html has no %s", address)
	}
	page = bytes.Replace(text, []byte(address), []byte(s.URL+"/sotto.js?key="+
		s.Key(serve.ScopeBrowser|serve.ScopeDecide|serve.ScopeReward)), 1)
	// a visitor who clicks when the button has its color
	page = append(page, `<script>
const seen = setInterval(() => {
  const button = document.querySelector('#buy');
  if (button.style.background !== 'rgb(204, 204, 204)') { clearInterval(seen); button.click(); }
}, 20);
</script>`...)
	front.Start()
	defer front.Close()
	testkit.Browse(t, front.URL)
	for until := time.Now().Add(time.Minute); len(s.rewards()) == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("no reward comes")
		}
	}
	if got := s.rewards()[0]; !regexp.MustCompile(`^{"decision":"[-\w]{58}","reward":1}$`).MatchString(got) {
		t.Error(got)
	}
}
