package api

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/client"
	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/live/serve"
)

// script has a program of testdata/npm ask a world with a key, and returns what it prints. It is skipped where
// a package is not there.
func (w *world) script(t *testing.T, name, needs, key string) string {
	t.Helper()
	w.front.clock = w.clock.Now
	front := httptest.NewServer(w.asked)
	defer front.Close()
	return runScript(t, name, needs, front.URL, key)
}

// runScript has a program of testdata/npm ask a server.
func runScript(t *testing.T, name, needs, server, key string) string {
	t.Helper()
	node := testkit.Program(t, "node")
	if _, err := os.Stat("testdata/npm/node_modules/" + needs); err != nil {
		testkit.Missing(t, "run npm ci in live/serve/api/testdata/npm: "+needs+" is not there")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, node, name)
	c.Dir = "testdata/npm"
	c.Env = append(os.Environ(), "SOTTO_SERVER="+server, "SOTTO_KEY="+key)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
	return string(out)
}

// The clients of Segment and of RudderStack, as their authors publish them, report to the service: of them the
// address and the key have changed. What they report is in a release, once.
func TestAnalyticsClients(t *testing.T) {
	got := tracksTo(t, heardShop, func(w *world) {
		w.pass(30 * time.Second) // the clients' time goes on, and the world's does not
		out := w.script(t, "analytics.mjs", "@segment/analytics-node", w.keyWith(serve.ScopeReward))
		if !strings.HasSuffix(out, "segment tracks\nrudder tracks\n") {
			t.Error(out)
		}
	})
	if got != [2]float64{.5 + 1 + 1 + 1, 2 + 1 + .5} {
		t.Errorf("%v", got)
	}
}

// stringShop is an experiment of events whose arms are text.
var stringShop = strings.Replace(heardShop, `{hex: "#00c", n: 3}`, `"#00c"`, 1)

// GO Feature Flag's provider for servers, as its authors publish it, evaluates: of it the address and the key have
// changed. The reward of what it was given is in a release, once.
func TestGOFFServer(t *testing.T) {
	got := tracksTo(t, stringShop, func(w *world) {
		out := w.script(t, "goff.mjs", "@openfeature/go-feature-flag-provider", w.keyWith(serve.ScopeDecide|serve.ScopeReward))
		if !strings.HasSuffix(out, "server evaluates\n") {
			t.Error(out)
		}
	})
	if got != [2]float64{.25, 0} {
		t.Errorf("%v", got)
	}
}

// GO Feature Flag's provider for pages evaluates and tracks in a browser, with a key that everybody can read and a signed
// unit. It goes on without the WebSocket that it asks for, and what it tracks is in a release, once.
func TestGOFFInPage(t *testing.T) {
	needs(t, "@openfeature/go-feature-flag-web-provider")
	got := tracksTo(t, stringShop, func(w *world) {
		service := httptest.NewServer(w.front)
		defer service.Close()
		unit := client.SignUnit(w.keyWith(serve.ScopeSign), "shop", "unit 0", w.clock.Now().Add(time.Hour))
		want := "shop"
		if d := w.decide("unit 0"); d.Decision != nil {
			want = fmt.Sprintf("%s CACHED %s ", d.Arm, *d.Decision)
		}
		dir := t.TempDir()
		bundle(t, dir, fmt.Sprintf(`import { OpenFeature } from '@openfeature/web-sdk';
import { GoFeatureFlagWebProvider } from '@openfeature/go-feature-flag-web-provider';
const errors = [];
const logger = { error: (e) => errors.push(String(e)), warn() {}, info() {}, debug() {} };
await OpenFeature.setContext({ targetingKey: '%s' });
await OpenFeature.setProviderAndWait(
  new GoFeatureFlagWebProvider({ endpoint: '%s', apiKey: '%s', apiTimeout: 5000 }, logger));
const flags = OpenFeature.getClient();
const d = flags.getStringDetails('shop', 'usual');
flags.track('checkout', { value: 0.5, total: 2, sku: 'x' });
flags.track('other', { value: 1 });
await OpenFeature.close();
new Image().src = '/sees?' + encodeURIComponent([d.variant, d.reason, d.flagMetadata.decision, errors].join(' '));
`, unit, service.URL, w.keyWith(browserScopes)))
		sees := make(chan string, 1)
		front := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/":
				out.Header().Set("Content-Type", "text/html")
				fmt.Fprint(out, `<!doctype html><script type="module" src="/app.js"></script>`)
			case "/app.js":
				http.ServeFile(out, r, filepath.Join(dir, "app.js"))
			case "/sees":
				text, _ := url.QueryUnescape(r.URL.RawQuery)
				sees <- text
			}
		}))
		defer front.Close()
		w.front.Origins = []string{front.URL}
		testkit.Browse(t, front.URL)
		select {
		case got := <-sees:
			if got != want {
				t.Errorf("the page says %q, must say %q", got, want)
			}
		case <-time.After(time.Minute):
			t.Error("the page says nothing")
		}
	})
	if got != [2]float64{.5, 2} {
		t.Errorf("%v", got)
	}
}
