package site_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/catalog"
	page "github.com/sotto-dp/sotto/docs/explorer"
	"github.com/sotto-dp/sotto/lab/explore"
	"github.com/sotto-dp/sotto/lab/explore/site"
)

// native is what is drawn of a request, a link and behind it a log, without a server.
func native(t *testing.T, request string) (out []any) {
	t.Helper()
	add := func(v any) error {
		b, err := json.Marshal(v)
		if err != nil {
			return err
		}
		var x any
		err = json.Unmarshal(b, &x)
		out = append(out, x)
		return err
	}
	link, text, dropped := strings.Cut(request, "\n")
	var log io.Reader
	if dropped {
		log = strings.NewReader(text)
	}
	r, err := explore.Parse(link)
	var e *explore.Explorer
	if err == nil {
		e, err = explore.New(catalog.Catalog{}, r, log)
	}
	if err == nil {
		err = e.PlayAll(t.Context(), 0, func(p explore.Picture) error { return add(p) })
	}
	if err != nil {
		if err := add(explore.Refusal(err)); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func server(t *testing.T) *httptest.Server {
	t.Helper()
	h, err := site.Handler(catalog.Catalog{}, "knob.example")
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

// Pictures come one by one, each of more runs, and are those of the package. Nobody's reward is in
// what is said of a log that is wrong.
func TestPictures(t *testing.T) {
	s := server(t)
	for _, link := range []string{"horizon=1e5&runs=16", "arms=0.5&horizon=1e4", "csv=a.csv&horizon=1e4",
		"csv=a.csv&horizon=1e4&runs=16\narm,reward\nred,0\nblue,1\nblue,0\nred,0\n",
		"csv=a.csv&horizon=1e4\narm,reward\nred,0.7312894561x\n"} {
		r, err := http.Post(s.URL+"/pictures", "text/plain", strings.NewReader(link))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		var got []any
		for lines := json.NewDecoder(r.Body); ; {
			var v any
			if err := lines.Decode(&v); err == io.EOF {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			got = append(got, v)
		}
		if want := native(t, link); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %d pictures, must be %d, or they differ", link, len(got), len(want))
		}
		if b, err := json.Marshal(got); err != nil || bytes.Contains(b, []byte("7312894561")) {
			t.Errorf("%s: the reward is in what is said, or %v", link, err)
		}
	}
}

// Nobody else's page asks this one, and it runs nothing that is not its own.
func TestOnlyItself(t *testing.T) {
	s := server(t)
	ask := func(method, path, host, from string) *http.Response {
		q, err := http.NewRequestWithContext(t.Context(), method, s.URL+path,
			strings.NewReader("horizon=1000&runs=4"))
		if err != nil {
			t.Fatal(err)
		}
		if host != "" {
			q.Host = host
		}
		if from != "" {
			q.Header.Set("Sec-Fetch-Site", from)
		}
		r, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.Body.Close() })
		return r
	}
	for _, test := range []struct {
		method, path, host, from string
		status                   int
	}{
		{"GET", "/", "", "", 200}, {"GET", "/", "knob.example:8081", "", 200},
		{"GET", "/", "localhost", "", 200},
		{"GET", "/", "[::1]:8081", "", 200}, {"GET", "/", "evil.example", "", 421},
		{"POST", "/pictures", "evil.example", "", 421}, {"POST", "/pictures", "", "cross-site", 403},
		{"POST", "/pictures", "", "same-origin", 200}, {"POST", "/", "", "", 405},
		{"GET", "/none", "", "", 404},
		{"GET", "/explorer.go", "", "", 404}, {"GET", "/worker.js", "", "", 200},
		{"GET", "/first.json", "", "", 200}, {"GET", "/look/uplot/LICENSE", "", "", 200},
		{"GET", "/sotto.wasm.gz", "", "", 404},
	} {
		r := ask(test.method, test.path, test.host, test.from)
		if r.StatusCode != test.status {
			t.Errorf("%s %s of %q from %q: %s, must be %d", test.method, test.path, test.host,
				test.from, r.Status,
				test.status)
		}
		if p := r.Header.Get("Content-Security-Policy"); !strings.Contains(p, "default-src 'none'") ||
			strings.Contains(p, "unsafe") || strings.Contains(p, "blob:") {
			t.Errorf("%s: policy %q", test.path, p)
		}
	}
	index, err := fs.ReadFile(page.Files(), "index.html")
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"style=", "onclick", "<style", `="http`, "<script>"} {
		if bytes.Contains(index, []byte(bad)) {
			t.Errorf("index.html has %q", bad)
		}
	}
}

// A request has so many bytes at most, and so many are played side by side. Those that nobody waits for
// end, and make room.
func TestBounded(t *testing.T) {
	s := server(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ask := func(ctx context.Context, body string) (string, error) {
		q, err := http.NewRequestWithContext(ctx, "POST", s.URL+"/pictures", strings.NewReader(body))
		if err != nil {
			return "", err
		}
		r, err := http.DefaultClient.Do(q)
		if err != nil {
			return "", err
		}
		defer r.Body.Close()
		b, err := io.ReadAll(r.Body)
		return fmt.Sprint(r.StatusCode, " ", string(b)), err
	}
	said, err := ask(ctx, strings.Repeat("x", 1<<26+1))
	if err != nil || !strings.HasPrefix(said, `413 {"error":"the request, at most 67108864 bytes, cannot be read`) {
		t.Error(said, err)
	}
	answers := make(chan string, 5)
	for range 5 {
		go func() {
			const long = "policies=dp-ucb&epsilon=1&horizon=1000000000&runs=4"
			said, err := ask(ctx, long)
			if err == nil || ctx.Err() == nil {
				answers <- said
			}
		}()
	}
	if said := <-answers; !strings.Contains(said, "played is 5, must be at most 4") {
		t.Error(said)
	}
	cancel()
	for {
		said, err := ask(t.Context(), "horizon=1000&runs=4")
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(said, "must be at most 4") { // they end soon, but this machine may be slow
			if !strings.Contains(said, `"runs":4,`) {
				t.Error(said)
			}
			break
		}
	}
}
