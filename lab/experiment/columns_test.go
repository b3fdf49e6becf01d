package experiment_test

import (
	"github.com/sotto-dp/sotto/lab/experiment"
	"strings"
	"testing"
)

const visits = `name: visits
horizon: 1000
runs: 4
instances:
  - {name: logged, csv: visits.csv, arm_column: version, reward_column: sent, user_column: visitor, skip_missing: true}
policies: [ucb]
`

// A log with columns of its own: v1 contributes the mean of two rows, v3 nothing, and v2's 100 is
// clipped. The normal form keeps the columns, and a log without them is another experiment.
func TestLogColumns(t *testing.T) {
	resolve := func(text string) *experiment.Resolved {
		t.Helper()
		spec, err := experiment.Reader{}.Parse("testdata/visits.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		plan, err := spec.Resolve()
		if err != nil {
			t.Fatal(err)
		}
		return plan
	}
	plan := resolve(visits)
	if s := schema(t); s.Validate(value(t, visits)) != nil {
		t.Error("the schema refuses it")
	}
	if text := strings.Join(plan.Warnings, "\n"); !strings.Contains(text,
		"instance logged: 1 of 6 rows have no reward and are left out: this number is not private") ||
		!strings.Contains(text, "rewards leave the declared range [0, 1] and are clipped to it "+
			"before a person's mean is taken") {
		t.Error(text)
	}
	y, err := plan.Spec.YAML()
	if err != nil || !strings.Contains(string(y),
		`arm_column: version, reward_column: sent, user_column: visitor, skip_missing: true`) {
		t.Errorf("%s, %v", y, err)
	}
	if again := resolve(string(y)); again.Hash != plan.Hash {
		t.Errorf("the normal form is another experiment: %s, not %s", again.Hash, plan.Hash)
	}
	if rows := resolve(strings.Replace(visits, "user_column: visitor, ", "", 1)); rows.Hash == plan.Hash ||
		!strings.Contains(strings.Join(rows.Warnings, "\n"), "regret counts the means before clipping") {
		t.Errorf("without persons: %s, %v", rows.Hash, rows.Warnings)
	}
	// Without clipping a person's rows are not clipped either.
	if open := resolve(strings.Replace(visits, "runs: 4", "runs: 4\nunclipped: true",
		1)); !strings.Contains(strings.Join(open.Warnings, "\n"), "are not clipped") {
		t.Error(open.Warnings)
	}
}
