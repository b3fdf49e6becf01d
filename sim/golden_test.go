package sim_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/sim"
)

var update = flag.Bool("update", false, "write golden files anew")

// Runs of every policy stay what they are, bit by bit: a change here is a change of all results,
// and of experiment.FormatVersion. The file was made on amd64; fused instructions (GOAMD64=v3) must
// not change it either.
func TestGoldenRuns(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("logarithms differ in their last bits on other architectures")
	}
	var b strings.Builder
	everyPolicy(t, func(t *testing.T, e catalog.Entry, budget privacy.Budget) {
		var out sim.Result
		for run := range 3 {
			if err := sim.Run(context.Background(), config(t, mu2(t), e.Name, budget, 100_000, run,
				nil), &out); err != nil {
				t.Fatal(err)
			}
			fmt.Fprintln(&b, e.Name, budget, run, out.Regret[len(out.Regret)-1], out.Plays)
		}
	})
	const file = "testdata/golden.txt"
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), b.String()); d != "" {
		t.Errorf("-was +is\n%s", d)
	}
}
