package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/client"
	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/live/serve"
)

// OpenFeature's clients for servers and for pages, as their authors publish them, evaluate strings,
// booleans, numbers, objects and arms without a value, ask for all flags again with the ETag, see a winner as STATIC and
// what is paused as DISABLED, and are told what is wrong. testdata/npm/clients.mjs has it all.
func TestOpenFeatureClients(t *testing.T) {
	node := testkit.Program(t, "node")
	if _, err := os.Stat("testdata/npm/node_modules/@openfeature/web-sdk"); err != nil {
		testkit.Missing(t, "run npm ci in live/serve/api/testdata/npm: OpenFeature's clients are not there")
	}
	w := newWorld(t)
	w.want(201, "POST", "/v1/experiments", "name: some\narms: [{name: x, value: true}, {name: y, "+
		"value: false}]\n"+
		shop[strings.Index(shop, "policy:"):]+"only: {country: [NL]}\n")
	w.want(200, "POST", "/v1/experiments/some/start", "")
	for name, arms := range map[string]string{
		"color": `[{name: red, value: "#c00"}, {name: blue, value: "#00c"}]`,
		"on":    `[{name: "no", value: false}, {name: "yes", value: true}]`,
		"size":  `[{name: small, value: 1.5}, {name: large, value: 2}]`,
		"bare":  `[classic, {name: onepage}]`,
		"style": `[{name: plain, value: {font: serif, size: 3}}, {name: loud, value: {font: sans, size: 9}}]`,
	} {
		w.want(201, "POST", "/v1/experiments", fmt.Sprintf("name: %s\narms: %s\n%s", name, arms,
			shop[strings.Index(shop, "policy:"):]))
		w.want(200, "POST", "/v1/experiments/"+name+"/start", "")
	}
	key, _, err := w.engine.NewKey(t.Context(), "clients", serve.ScopeDecide|serve.ScopeReward)
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(w.front)
	defer front.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, node, "clients.mjs")
	c.Dir = "testdata/npm"
	c.Env = append(os.Environ(), "SOTTO_SERVER="+front.URL, "SOTTO_KEY="+key, "SOTTO_ADMIN="+w.key)
	out, err := c.CombinedOutput()
	if want := "server evaluates\nserver is told errors\npage evaluates all, with ETags\n" +
		"the winner is STATIC\nwhat is paused is DISABLED\npage is told 401\n"; err != nil ||
		!strings.HasSuffix(string(out), want) {
		t.Errorf("%v:\n%s", err, out)
	}
}

// The page of examples/live, with the policy of docs/clients.md, shows a visitor an arm in a real browser and reports
// the click: with the provider for pages as it is published, a key that everybody can read, and a
// signature that is good for one experiment.
func TestWebProviderInPage(t *testing.T) {
	needs(t, "@openfeature/web-sdk")
	code, err := os.ReadFile("../../../examples/live/openfeature.mjs")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := os.ReadFile("../../../docs/clients.md")
	if err != nil {
		t.Fatal(err)
	}
	policy := regexp.MustCompile(`(?m)^    Content-Security-Policy: (.*)$`).FindSubmatch(doc)
	if policy == nil {
		t.Fatal("docs/clients.md has no policy for pages")
	}
	w := shopOpen(t)
	w.want(201, "POST", "/v1/experiments", strings.Replace(shop, "shop", "other", 1))
	sign, key := w.keyWith(serve.ScopeSign), w.keyWith(browserScopes)
	visitor := client.SignUnit(sign, "shop", "ann", w.clock.Now().Add(time.Hour))
	rewards, asked, sees := make(chan string, 1), make(chan string, 100), make(chan string, 100)
	service := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		r.Body = io.NopCloser(bytes.NewReader(b))
		w.front.ServeHTTP(out, r)
		if strings.HasSuffix(r.URL.Path, "/rewards") {
			rewards <- string(b)
		} else if r.Method == "POST" {
			asked <- r.URL.Path + " " + r.Header.Get("If-None-Match")
		}
	}))
	defer service.Close()
	defer w.front.end() // and streams, for which it would wait
	dir := t.TempDir()
	page := strings.NewReplacer("https://bandits.example", service.URL, "sotto_…", key, "cacheMode: 'disabled'",
		"cacheMode: 'disabled', inactivityDelaySec: 1").
		Replace(string(code)) + `
await fetch('/not-in-the-policy').catch(() => {}); // it is refused by the browser
setTimeout(() => button.click(), 500);
OpenFeature.addHandler('PROVIDER_CONFIGURATION_CHANGED', () => {
  const flags = OpenFeature.getClient();
  const { variant, reason } = [flags.getStringDetails('shop', ''), flags.getObjectDetails('shop', {})]
    .find((d) => !d.errorCode);
  new Image().src = '/sees?' + variant + ' ' + reason; // the policy lets it fetch from the service alone
});
document.addEventListener('visibilitychange', () => { new Image().src = '/sees?' + document.visibilityState; });`
	bundle(t, dir, page)
	front := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/":
			out.Header().Set("Content-Type", "text/html")
			out.Header().Set("Content-Security-Policy", strings.ReplaceAll(string(policy[1]),
				"https://bandits.example", service.URL))
			fmt.Fprintf(out, `<!doctype html><html data-unit="%s"><button id="buy">buy</button>`+
				`<script type="module" src="/app.js"></script>`, visitor)
		case "/app.js":
			http.ServeFile(out, r, filepath.Join(dir, "app.js"))
		case "/sees":
			text, _ := url.QueryUnescape(r.URL.RawQuery)
			sees <- text
		case "/not-in-the-policy":
			t.Error("the page's policy is not kept")
		default:
			http.NotFound(out, r)
		}
	}))
	defer front.Close()
	w.front.Origins = []string{front.URL}
	profile := testkit.Browse(t, front.URL, "--remote-debugging-port=0")
	select {
	case got := <-rewards:
		if want := fmt.Sprintf(`{"decision":%q,"reward":1}`, *w.decide("ann").Decision); got != want {
			t.Errorf("%s is reported, want %s", got, want)
		}
	case <-time.After(time.Minute):
		t.Fatalf("no reward comes; the service saw %d requests", len(asked))
	}
	// what the page sees next, in any order: each is told by a request of its own
	next := func(want ...string) {
		t.Helper()
		for len(want) > 0 {
			select {
			case got := <-sees:
				i := slices.Index(want, got)
				if i < 0 {
					t.Fatalf("the page sees %s, must see %s", got, want)
				}
				want = slices.Delete(want, i, i+1)
			case <-time.After(time.Minute):
				t.Fatalf("the page does not see %s", want)
			}
		}
	}
	// what ann was given is removed, and the page is told
	given := w.decide("ann").Arm
	left := map[string]string{"red": "blue", "blue": "red"}[given]
	w.want(200, "PATCH", "/v1/experiments/shop", fmt.Sprintf(`{"off": [%q]}`, given))
	w.pass(time.Second)
	w.pass(time.Second)
	next(left + " SPLIT")
	if first, again := <-asked, <-asked; first != allFlags+" " || !strings.HasPrefix(again, allFlags+` "`) {
		t.Errorf("%q and %q were asked", first, again)
	}
	// nobody sees it: its stream ends, and what happens meanwhile is seen when somebody looks again
	open := func() int {
		w.front.streams.mu.Lock()
		defer w.front.streams.mu.Unlock()
		return w.front.streams.all
	}
	if open() != 1 {
		t.Errorf("%d streams are open", open())
	}
	tab := tabs(t, profile)
	tab(http.MethodPut, "new?about:blank")
	next("hidden")
	for i := 0; open() > 0; i++ {
		if i > 600 {
			t.Fatal("the stream of a page that nobody sees is open")
		}
		time.Sleep(50 * time.Millisecond)
	}
	w.want(200, "POST", "/v1/experiments/shop/stop", fmt.Sprintf(`{"keep": %q, "now": true, "confirm": "shop"}`, left))
	var all []struct{ ID, URL string }
	if err := json.Unmarshal(tab(http.MethodGet, "list"), &all); err != nil {
		t.Fatal(err)
	}
	for _, one := range all {
		if one.URL == front.URL+"/" {
			tab(http.MethodGet, "activate/"+one.ID)
		}
	}
	next("visible", left+" STATIC")
}

// bundler makes one file of a page's modules.
const bundler = "../../../client/browser/node_modules/.bin/esbuild"

// needs skips a test of pages where a package is not there.
func needs(t *testing.T, module string) {
	t.Helper()
	for _, path := range []string{filepath.FromSlash(bundler), "testdata/npm/node_modules/" + module} {
		if _, err := os.Stat(path); err != nil {
			testkit.Missing(t, "run npm ci in live/serve/api/testdata/npm and in client/browser: "+path+" is not there")
		}
	}
}

// bundle writes app.js, a page's code with all that it imports.
func bundle(t *testing.T, dir, page string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "page.mjs"), []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), filepath.FromSlash(bundler), filepath.Join(dir, "page.mjs"), "--bundle",
		"--format=esm", "--outfile="+filepath.Join(dir, "app.js"))
	modules, err := filepath.Abs("testdata/npm/node_modules")
	if err != nil {
		t.Fatal(err)
	}
	c.Env = append(os.Environ(), "NODE_PATH="+modules)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// tabs asks a browser that was started with --remote-debugging-port=0 about its tabs.
func tabs(t *testing.T, profile string) func(method, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(profile, "DevToolsActivePort"))
	if err != nil {
		t.Fatal(err)
	}
	port, _, _ := strings.Cut(string(text), "\n")
	return func(method, path string) []byte {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, "http://127.0.0.1:"+port+"/json/"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		out, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = out.Body.Close() }()
		b, err := io.ReadAll(out.Body)
		if err != nil || out.StatusCode != 200 {
			t.Fatalf("%s: %d %s, %v", path, out.StatusCode, b, err)
		}
		return b
	}
}

// The first steps that docs/clients.md describes end in a reward that is accepted.
func TestFirstRewardOfTheGuide(t *testing.T) {
	node := testkit.Program(t, "node")
	if _, err := os.Stat("testdata/npm/node_modules/@openfeature/ofrep-provider"); err != nil {
		testkit.Missing(t, "run npm ci in live/serve/api/testdata/npm: OpenFeature's clients are not there")
	}
	code, err := os.ReadFile("../../../examples/live/first.mjs")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	w.want(201, "POST", "/v1/experiments", strings.Replace(shop, `{hex: "#00c", n: 3}`, `"#00c"`, 1))
	w.want(200, "POST", "/v1/experiments/shop/start", "")
	service := httptest.NewServer(w.front)
	defer service.Close()
	c := exec.CommandContext(t.Context(), node, "--input-type=module")
	c.Dir = "testdata/npm"
	c.Env = append(os.Environ(), "KEY="+w.key)
	c.Stdin = strings.NewReader(strings.Replace(string(code), "http://127.0.0.1:8080", service.URL, 1))
	out, err := c.CombinedOutput()
	if d := w.decide("visitor 7"); err != nil || !strings.HasPrefix(string(out), d.Arm+" ") ||
		!strings.Contains(string(out), `{"status":"accepted"}`) {
		t.Errorf("%v: %s, of arm %s", err, out, d.Arm)
	}
}
