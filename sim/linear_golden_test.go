package sim_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/sim"
)

// Runs stay what they are, as in TestGoldenRuns.
func TestGoldenLinearRuns(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("logarithms differ in their last bits on other architectures")
	}
	var b strings.Builder
	everyChoice(t, catalog.LinearPolicies(), func(t *testing.T, c choice, budget privacy.Budget) {
		var out sim.Result
		for run := range 3 {
			if err := sim.RunLinear(context.Background(),
				linearChoice(t, c, budget, sphere10(t, run), 100_000, run), &out); err != nil {
				t.Fatal(err)
			}
			fmt.Fprintln(&b, c.name, budget, run, out.Regret[len(out.Regret)-1], out.Plays)
		}
	})
	everyChoice(t, catalog.ContextualPolicies(), func(t *testing.T, c choice, budget privacy.Budget) {
		var out sim.Result
		for run := range 3 {
			cfg := contextualChoice(t, c, budget, gaussianContexts(t, bandit.SignNoise(), true), 2000, run)
			if err := sim.RunContextual(context.Background(), cfg, &out); err != nil {
				t.Fatal(err)
			}
			fmt.Fprintln(&b, c.name, budget, run, out.Regret[len(out.Regret)-1], out.Plays)
		}
	})
	const file = "testdata/golden-linear.txt"
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
