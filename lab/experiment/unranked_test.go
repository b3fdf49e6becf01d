package experiment_test

import (
	"context"
	"github.com/sotto-dp/sotto/lab/experiment"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Policies are not ranked where their regret does not tell them apart: where means leave the
// range unclipped, the order of the arms decides, and where clipping changes the best arm,
// another arm is looked for than regret counts. Elsewhere they are; of clipped rewards it is said
// of which means regret is.
func TestUnranked(t *testing.T) {
	for name, test := range map[string]struct {
		laws      string
		unclipped bool
		why       string // empty: ranked
		clipped   bool
	}{
		"first": {`["gaussian(5,1)", "gaussian(3,1)"]`, true, "the order in which they are " +
			"listed decides", false},
		"last": {`["gaussian(3,1)", "gaussian(5,1)"]`, true, "the order in which they are " +
			"listed decides", false},
		"below": {`["gaussian(0.5,1)", "gaussian(-1,1)"]`, true, "the order in which they are " +
			"listed decides", false},
		"inside": {`["gaussian(0.75,1)", "gaussian(0.25,1)"]`, true, "", false},
		"coins":  {"[0.75, 0.25]", true, "", false},
		"turned": {`["table(0:0.5,0.75:0.5)", "table(0:0.75,2:0.25)"]`, false,
			"changes which arm is best", true},
		"kept":  {`["gaussian(0.75,1)", "gaussian(0.25,1)"]`, false, "", true},
		"plain": {"[0.75, 0.25]", false, "", false},
	} {
		field := "laws"
		if !strings.Contains(test.laws, `"`) {
			field = "bernoulli"
		}
		spec := "name: ranks\nhorizon: 2000\nruns: 8\ninstances: [{name: world, " + field + ": " +
			test.laws + "}]\npolicies: [adap-klucb, adap-ucb]\nbudgets: [{epsilon: 1}]\n"
		if test.unclipped {
			spec += "unclipped: true\n"
		}
		plan := bounded(t, spec)
		r, err := plan.Run(context.Background(), experiment.Options{Out: filepath.Join(t.TempDir(), "out")})
		if err != nil {
			t.Fatal(err)
		}
		rows, err := r.Compare()
		if err != nil {
			t.Fatal(err)
		}
		best := 0
		for _, row := range rows {
			if row.Best {
				best++
			}
			ranked := !math.IsNaN(row.Ratio)
			if ranked == (test.why != "") || !strings.Contains(row.Unranked, test.why) ||
				row.Clipped != test.clipped {
				t.Errorf("%s: ratio %v, clipped %v, %q", name, row.Ratio, row.Clipped, row.Unranked)
			}
			if test.why != "" && !math.IsNaN(row.P) {
				t.Errorf("%s: tested all the same, p = %v", name, row.P)
			}
		}
		if (best == 1) != (test.why == "") {
			t.Errorf("%s: %d best", name, best)
		}
		warned := slices.ContainsFunc(plan.Warnings, func(w string) bool {
			return strings.Contains(w, "policies are not ranked")
		})
		if warned != (test.why != "") {
			t.Errorf("%s: %q", name, plan.Warnings)
		}
	}
}

// Means that are drawn are outside if any can be.
func TestUnrankedWhereMeansAreDrawn(t *testing.T) {
	for means, want := range map[string]bool{"[0.2, 0.8]": false, "[0.2, 3]": true, "[-1, 0.5]": true} {
		plan := bounded(t, "name: ranks\nhorizon: 2000\nruns: 1\nunclipped: true\ninstances: "+
			"[{name: world, means: {uniform: "+means+"}, law: gaussian, sd: 1, redraw: true, arms: 3}]\n"+
			"policies: [adap-klucb]\nbudgets: [{epsilon: 1}]\n")
		if got := plan.Manifest().Cells[0].Unranked != ""; got != want {
			t.Errorf("%s: %v", means, got)
		}
	}
}
