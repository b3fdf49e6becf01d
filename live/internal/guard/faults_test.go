package guard

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/internal/pool"
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

// Each fault is found by the simulation within a million decisions, and nothing is where none is on, which
// TestSimulate shows.
func TestSimulateFindsFaults(t *testing.T) {
	if !testkit.Full() {
		t.Skip("the program is built again with faults: SOTTO_FULL has it")
	}
	const most, env = 1_000_000, "SOTTO_FAULT"
	binary, err := plant.Build(t.Context(), "../../..", "./live/internal/guard", t.TempDir(), env)
	if err != nil {
		t.Fatal(err)
	}
	all := plant.Faults()
	found := make([]string, len(all))
	if err := pool.Run(t.Context(), runtime.NumCPU(), len(all), func() func(context.Context, int) error {
		return func(ctx context.Context, i int) error {
			c := exec.CommandContext(ctx, binary, "-test.run=^TestSimulate$", "-simulate.shard=0/1",
				fmt.Sprint("-simulate.decisions=", most), "-simulate.shrink=false")
			c.Env = append(os.Environ(), env+"="+all[i].Name, "GOMAXPROCS=1")
			out, _ := c.CombinedOutput()
			found[i] = firstLine(string(out), "after ")
			return nil
		}
	}); err != nil {
		t.Fatal(err)
	}
	for i, f := range all {
		if t.Logf("%s: %s", f.Name, found[i]); found[i] == "" {
			t.Errorf("%s is not found in %d decisions", f.Name, most)
		}
	}
}

// firstLine is what follows a word for the first time, to the end of its line.
func firstLine(text, word string) string {
	_, rest, _ := strings.Cut(text, word)
	line, _, _ := strings.Cut(rest, "\n")
	return line
}
