package api

import (
	"context"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/live/serve"
)

// The client of Azure AI Personalizer, as its authors publish it, ranks, rewards, activates, and is
// told what is wrong: of it the endpoint and the key have changed, and nothing else.
// testdata/npm/personalizer.mjs has it all.
func TestPersonalizerClient(t *testing.T) {
	node := testkit.Program(t, "node")
	if _, err := os.Stat("testdata/npm/node_modules/@azure/cognitiveservices-personalizer"); err != nil {
		testkit.Missing(t, "run npm ci in live/serve/api/testdata/npm: Personalizer's client is not there")
	}
	w := newWorld(t)
	page, err := os.ReadFile("../../../docs/migrating.md")
	if err != nil {
		t.Fatal(err)
	}
	declared := func(name string) string {
		return string(regexp.MustCompile(`(?m)^    name: ` + name + `\n(    .*\n)+`).Find(page))
	}
	front := httptest.NewServer(w.front)
	defer front.Close()
	for _, c := range []struct{ name, of, more, env string }{
		{"contexts", "articles", "", "SOTTO_CONTEXTS=yes SOTTO_DEFERS=yes"},
		{"arms", "layouts", "", ""},
		{"deferred", "layouts", "    exposure: activate\n    activate_within: 10m\n", "SOTTO_DEFERS=yes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w.want(201, "POST", "/v1/experiments", strings.Replace(declared(c.of), c.of, c.name, 1)+c.more)
			w.want(200, "POST", "/v1/experiments/"+c.name+"/start", "")
			key, _, err := w.engine.NewKeyFor(t.Context(), c.name, "app", serve.ScopeDecide|serve.ScopeReward)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			script := exec.CommandContext(ctx, node, "personalizer.mjs")
			script.Dir = "testdata/npm"
			script.Env = append(os.Environ(), "SOTTO_SERVER="+front.URL, "SOTTO_KEY="+key)
			script.Env = append(script.Env, strings.Fields(c.env)...)
			out, err := script.CombinedOutput()
			if want := "ranks, rewards, activates\nexcludes\ndefers\nreads the configuration\n" +
				"is told errors\n"; err != nil || !strings.HasSuffix(string(out), want) {
				t.Errorf("%v:\n%s", err, out)
			}
		})
	}
}
