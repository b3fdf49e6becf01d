package cli

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/internal/pgtest"
	"github.com/sotto-dp/sotto/internal/testkit"
)

// People use a service by their browsers: an experiment is started by the form and watched,
// visitors come to another page that has OpenFeature's own SDK, the service is killed between, and
// the page goes on; then axe looks at all pages. testdata/browser/browser.mjs has it all. SOTTO_VISITORS
// says how many there are.
func TestBrowser(t *testing.T) {
	drive(t, "browser.mjs", `a key logs in
the form says what is wrong, and then what it promises
the experiment has started
red leads
the page says that it reconnects
after a restart the numbers go on, and blue leads
the live page is light
charts are read by the keyboard
all is there without script
the form loses nothing that was typed
axe finds nothing serious
who types its name stops it
`, "SOTTO_VISITORS="+cmp.Or(os.Getenv("SOTTO_VISITORS"), "1000"))
}

// drive runs a script of testdata/browser, which drives Chromium and says a line for each thing
// that held. SOTTO is the program, and SOTTO_DIR where it may write; SOTTO_SHOTS may be a directory
// for pictures of what is seen.
func drive(t *testing.T, script, want string, env ...string) {
	t.Helper()
	if testing.Short() {
		t.Skip("it takes 20 s")
	}
	t.Parallel() // much of it is waiting
	chromium := testkit.Program(t, "chromium", "chromium-browser", "google-chrome")
	node := testkit.Program(t, "node")
	if _, err := os.Stat("testdata/browser/node_modules/playwright-core"); err != nil {
		testkit.Missing(t, "run npm ci in cli/testdata/browser: what drives the browser is not there")
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
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, node, script)
	c.Dir = "testdata/browser"
	c.Env = append(append(os.Environ(), "SOTTO="+sotto, "SOTTO_DIR="+dir, "CHROMIUM="+chromium), env...)
	errs := &strings.Builder{}
	c.Stderr = errs
	c.WaitDelay = 5 * time.Second
	out, err := c.Output()
	t.Log(errs)
	if err != nil || string(out) != want {
		t.Errorf("%v:\n%s\nwant\n%s", err, out, want)
	}
}

// Visitors report what nobody is to see: a leader and a helper are processes with a database each,
// PostgreSQL and SQLite, and the page has the library that the helper serves, by its hash. What is
// released is what they reported: testdata/browser/private.mjs has it all. SOTTO_VISITORS says how many
// there are.
func TestBrowserPrivate(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes 30 s")
	}
	drive(t, "private.mjs", `two servers have started
a library with another hash is not run
every visitor sent one report
what is released is what was reported
the transcript replays
`, "SOTTO_VISITORS="+cmp.Or(os.Getenv("SOTTO_VISITORS"), "100"), "SOTTO_DATABASE_OF_LEADER="+pgtest.Database(t))
}
