package cli

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/internal/base/testneeds"
)

// The explorer in Chromium, served and as files: what is drawn while the knob turns has the numbers
// of sotto run. testdata/browser/explorer.mjs has it all; SOTTO_SHOTS says where pictures go.
func TestExplorerBrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes 20 s")
	}
	chromium := testneeds.Program(t, "chromium", "chromium-browser", "google-chrome")
	node := testneeds.Program(t, "node")
	if _, err := os.Stat("testdata/browser/node_modules/playwright-core"); err != nil {
		testneeds.Missing(t, "run npm ci in cli/testdata/browser: what drives the browser is not there")
	}
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	sotto := filepath.Join(dir, "sotto") // by this name the test's program is sotto: see TestMain
	if err := os.Symlink(self, sotto); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, node, "explorer.mjs")
	c.Dir = "testdata/browser"
	c.Env = append(os.Environ(), "SOTTO="+sotto, "SOTTO_DIR="+dir, "CHROMIUM="+chromium)
	errs := &strings.Builder{}
	c.Stderr = errs
	c.WaitDelay = 5 * time.Second
	out, err := c.Output()
	t.Log(errs)
	var want strings.Builder
	for _, by := range []string{"served", "static"} {
		for _, what := range []string{"what a link asks for is drawn, with the numbers of sotto run",
			"the knob turns by its keys, and the numbers are those of sotto run",
			"budgets, policies, arms and trust", "a link has all of it", "a log is dropped in",
			"what is wrong is said", "axe finds nothing serious, and nothing is wider than the page"} {
			want.WriteString(by + ": " + what)
			if by == "static" && strings.HasPrefix(what, "budgets") {
				want.WriteString(", offline")
			}
			want.WriteString("\n")
		}
	}
	want.WriteString("a long run is left when the knob turns on\nwithout script the page says what it needs\n")
	if err != nil || string(out) != want.String() {
		t.Errorf("%v:\n%s\nwant\n%s", err, out, want.String())
	}
}
