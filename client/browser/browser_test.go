package browser

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/internal/testkit"
)

// run runs a program, with what it says on stderr in the test's log.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, name, args...)
	errs := &bytes.Buffer{}
	c.Stderr = errs
	out, err := c.Output()
	t.Log(errs)
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
	return string(out)
}

// The library that is served makes the reports of secagg/dap's vectors byte for byte, behaves as
// pages rely on, and draws noise of its exact law: testdata/library.mjs has all of it.
func TestLibrary(t *testing.T) {
	node := testkit.Program(t, "node")
	got := run(t, node, "testdata/library.mjs", "../../secagg/dap/testdata/reports.json")
	if want := `reports are those of the vectors, byte for byte
one report is sent at its time, whatever happened
two pages send it once, and nothing of the outcome stays
what nobody answered is sent again, the same bytes
a service that says otherwise than the page has pinned is told nothing
outcomes are in no error and in no console
noise has its exact law
`; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// What is committed, and embedded, is what src makes, byte for byte, and src is sound TypeScript.
func TestBuilt(t *testing.T) {
	if testing.Short() {
		t.Skip("the compiler of TypeScript takes seconds")
	}
	testkit.Program(t, "node")
	npm := testkit.Program(t, "npm")
	if _, err := os.Stat("node_modules/esbuild"); err != nil {
		testkit.Missing(t, "run npm ci in client/browser: what builds the library is not there")
	}
	dir := t.TempDir()
	run(t, npm, "run", "--silent", "check")
	run(t, npm, "run", "--silent", "bundle", "--", "--outfile="+filepath.Join(dir, Name))
	run(t, npm, "run", "--silent", "types", "--", "--outDir", dir)
	for _, name := range []string{Name, "sotto-private.d.ts"} {
		want, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		got, err := fs.ReadFile(FS(), name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not what src makes: run npm run build in client/browser", name)
		}
		t.Logf("%s: %d bytes", name, len(got))
	}
}

// Pages wait for it, and pin it.
func TestSizeAndIntegrity(t *testing.T) {
	script, err := fs.ReadFile(FS(), Name)
	if err != nil {
		t.Fatal(err)
	}
	if len(script) > 20_000 {
		t.Errorf("%d bytes, must be at most 20 000", len(script))
	}
	if got := Integrity(); !regexp.MustCompile(`^sha384-[A-Za-z0-9+/]{64}$`).MatchString(got) {
		t.Errorf("integrity is %q", got)
	}
	if regexp.MustCompile(`\bimport\s*[("'{*]|\bfrom\s*["']`).Match(script) {
		t.Error("the library imports another")
	}
	if bytes.Contains(script, []byte("console.")) {
		t.Error("the library writes to the console")
	}
}
