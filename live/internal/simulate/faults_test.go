package simulate

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"testing"

	"github.com/sotto-dp/sotto/internal/pool"
	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/live/internal/plant"
)

// merges are the faults that a bad merge of two engines may leave in play.
var merges = []string{"a slot twice", "noise drawn again", "a vector from the wrong queue", "a window off by one",
	"a restore that skips a line", "a removed arm released"}

var brokenBy = regexp.MustCompile(`after \d+ decisions, world .*`)

var counted = regexp.MustCompile(`(\d+) of \d+ traces differ`)

// TestFindsFaults builds this test again with faults planted in the service.
func TestFindsFaults(t *testing.T) {
	if !testkit.Full() {
		t.Skip("the program is built again with faults: SOTTO_FULL has it")
	}
	binary, err := plant.Build(t.Context(), "../../..", "./live/internal/simulate", t.TempDir(), "SOTTO_FAULT")
	if err != nil {
		t.Fatal(err)
	}
	run := func(ctx context.Context, fault string, args ...string) (string, error) {
		c := exec.CommandContext(ctx, binary, args...)
		c.Env = append(os.Environ(), "SOTTO_FAULT="+fault, "GOMAXPROCS=1")
		out, err := c.CombinedOutput()
		return string(out), err
	}
	t.Run("guard", func(t *testing.T) { guardFinds(t, run) })
	t.Run("simulation", func(t *testing.T) { simulationFinds(t, run) })
}

type runner func(ctx context.Context, fault string, args ...string) (string, error)

// guardFinds holds that what a bad merge may leave is found by some of the first traces, which TestGuard plays at
// both its sizes, and that nothing is where no fault is on.
func guardFinds(t *testing.T, run runner) {
	const n = 20
	for _, f := range append([]string{""}, merges...) {
		out, err := run(t.Context(), f, "-test.run=^TestGuard$", fmt.Sprint("-guard.n=", n))
		found := 0
		if m := counted.FindStringSubmatch(out); m != nil {
			found, _ = strconv.Atoi(m[1])
		}
		t.Logf("%q is found by %d of %d traces", f, found, n)
		if (f == "") != (err == nil) || (f == "") != (found == 0) {
			t.Errorf("%q: %v\n%.2000s", f, err, out)
		}
	}
}

// simulationFinds holds that each fault is found within a million decisions; that nothing is where none is on,
// TestSimulate shows.
func simulationFinds(t *testing.T, run runner) {
	const most = 1_000_000
	all := plant.Faults()
	found := make([]string, len(all))
	if err := pool.Run(t.Context(), runtime.NumCPU(), len(all), func() func(context.Context, int) error {
		return func(ctx context.Context, i int) error {
			out, _ := run(ctx, all[i].Name, "-test.run=^TestSimulate$", "-simulate.shard=0/1",
				fmt.Sprint("-simulate.decisions=", most), "-simulate.shrink=false")
			found[i] = brokenBy.FindString(out)
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
