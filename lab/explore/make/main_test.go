package main

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
	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/lab/explore"
	"github.com/sotto-dp/sotto/lab/explore/site"
)

// links are played by a server, natively, and in WebAssembly.
var links = []string{
	"horizon=1e5&runs=16",
	"arms=0.6,0.5,0.4&policies=adac-ucb,lazy-dp-ts,dp-se-2,ucb,thompson&rho=0.05&horizon=2e4&runs=4&seed=7",
	"arms=beta(2,3),uniform(0.2,0.4),clipped-gaussian(0.5,0.2,0,1),table(0:0.5,1:0.5)&policies=batch-se,dp-klucb,dp-ucb&epsilon=1&horizon=3e3&runs=4",
	"arms=0.9,0.5&policies=adap-ucb,batch-se&trust=shuffle&epsilon=0.7&horizon=5e3&runs=4&points=9",
	"arms=0.9,0.5&policies=dp-se&trust=secagg&horizon=5e3&runs=4",
	"arms=0.5&horizon=1e4",
}

// last is what is drawn in the end where sotto explore serves the page.
func last(t *testing.T, h http.Handler, link string) (picture map[string]any) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "POST", "http://localhost/pictures",
		strings.NewReader(link)))
	lines := bytes.Split(bytes.TrimSpace(w.Body.Bytes()), []byte("\n"))
	if err := json.Unmarshal(lines[len(lines)-1], &picture); err != nil {
		t.Fatal(err)
	}
	return picture
}

func handler(t *testing.T) http.Handler {
	t.Helper()
	h, err := site.Handler(catalog.Catalog{})
	if err != nil {
		t.Fatal(err)
	}
	return h
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

// The page that is made has all of its files, is no larger than was promised, is written over an earlier
// one and over nothing else; and its simulator has the runs of the served page, to the last bit.
func TestMake(t *testing.T) {
	if testing.Short() || testkit.Race {
		t.Skip("it compiles for WebAssembly; its goroutines are those of package explore's tests")
	}
	all, err := files()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "site")
	for range 2 {
		if err := errors.Join(free(dir), write(dir, all)); err != nil {
			t.Fatal(err)
		}
	}
	var names []string
	err = fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if !d.IsDir() {
			names = append(names, name)
		}
		return err
	})
	want := []string{"explorer.css", "explorer.js", "first.json", "index.html", "look/chart.js", "look/look.css",
		"look/uplot/LICENSE", "look/uplot/uPlot.iife.min.js", "look/uplot/uPlot.min.css", simulator,
		"wasm_exec.LICENSE", "wasm_exec.js", "worker.js"}
	if err != nil || !slices.Equal(names, want) {
		t.Errorf("%v, %v, must be %v", names, err, want)
	}
	const most = 2_550_000 // rules for the best arm of vectors are in the catalog, and an optimal design with them
	if n := len(all[simulator]); n > most {
		t.Errorf("%s has %d bytes, must have at most %d", simulator, n, most)
	}
	z, err := gzip.NewReader(bytes.NewReader(all[simulator]))
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(z); err != nil || !bytes.HasPrefix(b, []byte("\x00asm")) {
		t.Errorf("%s holds no WebAssembly: %v", simulator, err)
	}
	t.Run("runs", func(t *testing.T) { runs(t, dir) })
}

func runs(t *testing.T, dir string) {
	node := testkit.Program(t, "node", "nodejs")
	c := exec.CommandContext(t.Context(), node, append([]string{"testdata/play.js", dir}, links...)...)
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
	h := handler(t)
	for i, link := range append(links, "offers") {
		var got, want any
		if err := json.Unmarshal(lines[i], &got); err != nil {
			t.Fatal(err)
		}
		if link == "offers" {
			b, err := json.Marshal(explore.Offers(catalog.Catalog{}))
			if err := errors.Join(err, json.Unmarshal(b, &want)); err != nil {
				t.Fatal(err)
			}
		} else {
			want = last(t, h, link)
		}
		if where := differ("", got, want); where != "" {
			t.Errorf("%s: WebAssembly and the server differ: %s", link, where)
		}
	}
}

// A directory with other files is left as it is.
func TestOtherFiles(t *testing.T) {
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "mine"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(full); !errors.Is(err, errNotEmpty) || !strings.Contains(err.Error(), "must be new, empty") {
		t.Error(err)
	}
	if there, err := os.ReadDir(full); err != nil || len(there) != 1 {
		t.Errorf("%v, %v", there, err)
	}
}

// The broken twin of the comparison above: a simulator of another seed is seen.
func TestAnotherSeedDiffers(t *testing.T) {
	h := handler(t)
	a, b := last(t, h, "horizon=1000&runs=4"), last(t, h, "horizon=1000&runs=4&seed=2")
	if where := differ("", a["lines"], b["lines"]); where == "" {
		t.Error("two seeds do not differ")
	}
}
