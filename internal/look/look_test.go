package look

import (
	"compress/gzip"
	"io"
	"io/fs"
	"math"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// A browser asks for a file once; whoever has another version is given the new one, and nothing is
// there but the files of the pages.
func TestAssets(t *testing.T) {
	a, err := NewAssets("/look/", Files())
	if err != nil {
		t.Fatal(err)
	}
	if at, err := a.Path("none.js"); err == nil {
		t.Errorf("a page may ask for %q", at)
	}
	at, err := a.Path("look.css")
	if err != nil || !regexp.MustCompile(`^/look/look\.css\?v=[0-9a-f]{12}$`).MatchString(at) {
		t.Fatalf("%q, %v", at, err)
	}
	ask := func(at string, set ...string) *http.Response {
		t.Helper()
		r := httptest.NewRequest("GET", at, nil)
		for i := 0; i < len(set); i += 2 {
			r.Header.Set(set[i], set[i+1])
		}
		w := httptest.NewRecorder()
		a.ServeHTTP(w, r)
		return w.Result()
	}
	read := func(r io.Reader) string {
		t.Helper()
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	got := ask(at)
	if got.StatusCode != 200 || got.Header.Get("Content-Type") != "text/css; charset=utf-8" ||
		!strings.Contains(got.Header.Get("Cache-Control"), "immutable") || read(got.Body) != CSS() {
		t.Errorf("%v", got)
	}
	if got := ask("/look/look.css?v=000000000000"); got.Header.Get("Cache-Control") != "no-cache" {
		t.Errorf("an old address: %v", got.Header)
	}
	if again := ask("/look/look.css", "If-None-Match", got.Header.Get("ETag")); again.StatusCode != 304 {
		t.Errorf("what it has: %v", again.Status)
	}
	small := ask(at, "Accept-Encoding", "br, gzip")
	z, err := gzip.NewReader(small.Body)
	if err != nil || small.Header.Get("Content-Encoding") != "gzip" || read(z) != CSS() {
		t.Errorf("compressed: %v, %v", small.Header, err)
	}
	for _, at := range []string{"/look/", "/look/look.go", "/look/uplot/LICENSE", "/look/../look.css"} {
		if got := ask(at); got.StatusCode != 404 {
			t.Errorf("%s: %v", at, got.Status)
		}
	}
}

// Pages with a strict content security policy take these files, and nothing in them asks elsewhere:
// no script made of text, no style that a script writes as text, no address of another place.
func TestStrict(t *testing.T) {
	err := fs.WalkDir(Files(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || name == "uplot/LICENSE" {
			return err
		}
		b, err := fs.ReadFile(Files(), name)
		if err != nil {
			return err
		}
		text := string(b)
		if name == "uplot/uPlot.iife.min.js" { // its first comment says whose it is
			text = text[strings.Index(text, "*/"):]
		}
		for _, bad := range []string{"eval(", "new Function", "innerHTML", "cssText",
			`setAttribute("style"`, "http:",
			"https:", "url(", "@import"} {
			if strings.Contains(text, bad) {
				t.Errorf("%s has %s", name, bad)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Text on its ground is to be read: the contrast of WCAG 2.2 is 4.5 to 1 at least, and 3 to 1 for
// the lines of charts and the edges of what is operated, in both schemes.
func TestContrast(t *testing.T) {
	blocks := regexp.MustCompile(`(?s):root[^{]*\{(.*?)\}`).FindAllStringSubmatch(CSS(), 2)
	token := regexp.MustCompile(`--([a-z0-9-]+): (#[0-9a-f]{3,6});`)
	for i, scheme := range []string{"light", "dark"} {
		tokens := map[string]string{}
		for _, m := range token.FindAllStringSubmatch(blocks[i][1], -1) {
			tokens[m[1]] = m[2]
		}
		if len(tokens) < 20 {
			t.Fatalf("%s has %d tokens", scheme, len(tokens))
		}
		for _, c := range []struct {
			least float64
			on    string
			of    []string
		}{
			{4.5, "ground", []string{"ink", "quiet", "accent", "danger", "good"}},
			{4.5, "raised", []string{"ink", "quiet", "accent", "danger", "good"}},
			{4.5, "warn", []string{"ink", "quiet", "accent"}}, {4.5, "danger-wash", []string{"ink", "danger"}},
			{4.5, "wash", []string{"ink", "accent"}}, {4.5, "accent", []string{"on-accent"}},
			{3, "ground", []string{"strong", "warn-line", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8"}},
		} {
			for _, name := range c.of {
				if r := contrast(t, tokens[name], tokens[c.on]); r < c.least {
					t.Errorf("%s: %s on %s is %.2f to 1, must be %v", scheme, name, c.on, r, c.least)
				}
			}
		}
	}
}

// contrast is WCAG's ratio of the relative luminances of two colours, #rgb or #rrggbb.
func contrast(t *testing.T, a, b string) float64 {
	t.Helper()
	light := func(c string) float64 {
		if len(c) == 4 {
			c = string([]byte{'#', c[1], c[1], c[2], c[2], c[3], c[3]})
		}
		n, err := strconv.ParseUint(strings.TrimPrefix(c, "#"), 16, 32)
		if err != nil {
			t.Fatalf("%q is no colour: %v", c, err)
		}
		sum := 0.
		for i, weight := range []float64{.0722, .7152, .2126} {
			v := float64(n>>(8*i)&255) / 255
			if v <= .04045 {
				v /= 12.92
			} else {
				v = math.Pow((v+.055)/1.055, 2.4)
			}
			sum += weight * v
		}
		return sum + .05
	}
	x, y := light(a), light(b)
	return max(x, y) / min(x, y)
}
