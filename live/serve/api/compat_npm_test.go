package api

import (
	"context"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/live/serve"
)

// script has a program of testdata/npm ask a world with a key, and returns what it prints. It is skipped where
// a package is not there.
func (w *world) script(t *testing.T, name, needs, key string) string {
	t.Helper()
	node := testkit.Program(t, "node")
	if _, err := os.Stat("testdata/npm/node_modules/" + needs); err != nil {
		testkit.Missing(t, "run npm ci in live/serve/api/testdata/npm: "+needs+" is not there")
	}
	w.front.clock = w.clock.Now
	front := httptest.NewServer(w.asked)
	defer front.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, node, name)
	c.Dir = "testdata/npm"
	c.Env = append(os.Environ(), "SOTTO_SERVER="+front.URL, "SOTTO_KEY="+key)
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
