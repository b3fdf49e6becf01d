package guard

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"testing"

	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/live/internal/plant"
)

// merges are the faults that a bad merge of two engines may leave in play.
var merges = []string{"a slot twice", "noise drawn again", "a vector from the wrong queue", "a window off by one",
	"a restore that skips a line", "a removed arm released"}

var counted = regexp.MustCompile(`(\d+) of \d+ traces differ`)

// Each fault is found by some of the first traces, which TestGuard plays at both its sizes, and nothing is where
// none is on.
func TestGuardFindsFaults(t *testing.T) {
	if !testkit.Full() {
		t.Skip("the program is built again with faults: SOTTO_FULL has it")
	}
	const n, env = 40, "SOTTO_FAULT"
	binary, err := plant.Build(t.Context(), "../../..", "./live/internal/guard", t.TempDir(), env)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range append([]string{""}, merges...) {
		c := exec.Command(binary, "-test.run=^TestGuard$", fmt.Sprint("-guard.n=", n))
		c.Env = append(os.Environ(), env+"="+f)
		out, err := c.CombinedOutput()
		found := 0
		if m := counted.FindSubmatch(out); m != nil {
			found, _ = strconv.Atoi(string(m[1]))
		}
		t.Logf("%q is found by %d of %d traces", f, found, n)
		if (f == "") != (err == nil) || (f == "") != (found == 0) {
			t.Errorf("%q: %v\n%.2000s", f, err, out)
		}
	}
}
