package site_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/catalog"
	page "github.com/sotto-dp/sotto/docs/explorer"
	"github.com/sotto-dp/sotto/internal/look"
	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/lab/explore"
	"github.com/sotto-dp/sotto/lab/explore/site"
)

// links are played natively and in WebAssembly.
var links = []string{
	"horizon=1e5&runs=16",
	"arms=0.6,0.5,0.4&policies=adac-ucb,lazy-dp-ts,dp-se-2,ucb,thompson&rho=0.05&horizon=2e4&runs=4&seed=7",
	"arms=beta(2,3),uniform(0.2,0.4),clipped-gaussian(0.5,0.2,0,1),table(0:0.5,1:0.5)&policies=batch-se,dp-klucb,dp-ucb&epsilon=1&horizon=3e3&runs=4",
	"arms=0.9,0.5&policies=adap-ucb,batch-se&trust=shuffle&epsilon=0.7&horizon=5e3&runs=4&points=9",
	"arms=0.9,0.5&policies=dp-se&trust=secagg&horizon=5e3&runs=4",
	"arms=0.5&horizon=1e4",
}

// native is what is drawn of a link by the code of today.
func native(t *testing.T, link string) (out []any) {
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
	r, err := explore.Parse(link)
	var e *explore.Explorer
	if err == nil {
		e, err = explore.New(catalog.Catalog{}, r, nil)
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

// differ says where two values differ, empty if they do not. What runs have is the same to the last
// bit; bounds and intervals, which processors compute with logarithms of their own, to 12 digits.
func differ(at string, got, want any) string {
	switch want := want.(type) {
	case map[string]any:
		got, ok := got.(map[string]any)
		if !ok || len(got) != len(want) {
			return fmt.Sprintf("%s has %d keys, must have %d", at, len(got), len(want))
		}
		for k := range want {
			if where := differ(at+"."+k, got[k], want[k]); where != "" {
				return where
			}
		}
		return ""
	case []any:
		got, ok := got.([]any)
		if !ok || len(got) != len(want) {
			return fmt.Sprintf("%s has %d values, must have %d", at, len(got), len(want))
		}
		for i := range want {
			if where := differ(fmt.Sprintf("%s[%d]", at, i), got[i], want[i]); where != "" {
				return where
			}
		}
		return ""
	case float64:
		got, ok := got.(float64)
		exact := regexp.MustCompile(`\.(mean|q05|q95)\b`).MatchString(at)
		if ok && (got == want || !exact && math.Abs(got-want) <= 1e-12*math.Abs(want)) {
			return ""
		}
	default:
		if reflect.DeepEqual(got, want) {
			return ""
		}
	}
	return fmt.Sprintf("%s is %v, must be %v", at, got, want)
}

// The simulator that is committed has the runs of the code of today, to the last bit: one that is
// stale fails here, and is made anew by `make explorer`.
func TestTheCommittedSimulatorIsOfToday(t *testing.T) {
	if testkit.Race {
		t.Skip("its goroutines are those of package explore's tests")
	}
	node := testkit.Program(t, "node", "nodejs")
	c := exec.CommandContext(t.Context(), node,
		append([]string{"testdata/play.js", "../../../docs/explorer"},
			links...)...)
	var errs bytes.Buffer
	c.Stderr = &errs
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, errs.String())
	}
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	if len(lines) != len(links)+1 {
		t.Fatalf("%d lines for %d links: %s", len(lines), len(links), out)
	}
	for i, link := range append(links, "offers") {
		var got any
		if err := json.Unmarshal(lines[i], &got); err != nil {
			t.Fatal(err)
		}
		var want any
		if link == "offers" {
			b, err := json.Marshal(explore.Offers(catalog.Catalog{}))
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(b, &want); err != nil {
				t.Fatal(err)
			}
		} else {
			pictures := native(t, link)
			want = pictures[len(pictures)-1]
		}
		if where := differ("", got, want); where != "" {
			t.Errorf("%s: WebAssembly and the code of today differ (make explorer mends it): %s", link, where)
		}
	}
}

// What is made of other files is as they are, and the page is no larger than was promised.
func TestMadeFiles(t *testing.T) {
	if testkit.Race {
		t.Skip("its goroutines are those of package explore's tests")
	}
	err := fs.WalkDir(look.Files(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		want, err := fs.ReadFile(look.Files(), name)
		if err != nil {
			return err
		}
		if got, err := fs.ReadFile(page.Files(), "look/"+name); err != nil || !bytes.Equal(got, want) {
			t.Errorf("look/%s is not that of internal/look (make explorer mends it): %v", name, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	first, err := site.First()
	if err != nil {
		t.Fatal(err)
	}
	there, err := fs.ReadFile(page.Files(), "first.json")
	if err != nil {
		t.Fatal(err)
	}
	var got, want any
	if err := errors.Join(json.Unmarshal(there, &got), json.Unmarshal(first, &want)); err != nil {
		t.Fatal(err)
	}
	if where := differ("", got, want); where != "" {
		t.Errorf("first.json is not what the page begins with (make explorer mends it): %s", where)
	}
	small, err := fs.ReadFile(page.Files(), "sotto.wasm.gz")
	if err != nil {
		t.Fatal(err)
	}
	const most = 2_500_000
	if len(small) > most {
		t.Errorf("sotto.wasm.gz has %d bytes, must have at most %d", len(small), most)
	}
	z, err := gzip.NewReader(bytes.NewReader(small))
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(z); err != nil || !bytes.HasPrefix(b, []byte("\x00asm")) {
		t.Errorf("sotto.wasm.gz holds no WebAssembly: %v", err)
	}
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

// Pictures come one by one, each of more runs, and are those of the package.
func TestPictures(t *testing.T) {
	s := server(t)
	for _, link := range []string{links[0], "arms=0.5&horizon=1e4"} {
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
		{"GET", "/first.json", "", "", 200},
	} {
		r := ask(test.method, test.path, test.host, test.from)
		if r.StatusCode != test.status {
			t.Errorf("%s %s of %q from %q: %s, must be %d", test.method, test.path, test.host,
				test.from, r.Status,
				test.status)
		}
		if p := r.Header.Get("Content-Security-Policy"); !strings.Contains(p, "default-src 'none'") ||
			strings.Contains(p, "unsafe-inline") {
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

// The static page is all files, written over an earlier one and over nothing else.
func TestWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "site")
	for range 2 {
		if err := site.Write(dir); err != nil {
			t.Fatal(err)
		}
	}
	var names []string
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if !d.IsDir() {
			names = append(names, name)
		}
		return err
	})
	if err != nil || !slices.Contains(names, "index.html") || !slices.Contains(names, "look/uplot/LICENSE") {
		t.Errorf("%v, %v", names, err)
	}
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "mine"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := site.Write(full); err == nil || !strings.Contains(err.Error(), "must be new, empty") {
		t.Error(err)
	}
}

// The broken twin of the comparison above: a simulator of another seed is seen.
func TestAnotherSeedDiffers(t *testing.T) {
	a, b := native(t, "horizon=1000&runs=4"), native(t, "horizon=1000&runs=4&seed=2")
	if where := differ("", a[0].(map[string]any)["lines"], b[0].(map[string]any)["lines"]); where == "" {
		t.Error("two seeds do not differ")
	}
}
