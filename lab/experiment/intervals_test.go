package experiment_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/lab/experiment"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

const withIntervals = `name: small
horizon: 3000
runs: 8
seed: 3
checkpoints: 3
intervals: 0.9
instances:
  - {name: two, bernoulli: [0.3, 0.6, 0.5]}
  - {name: wide, laws: ["clipped-gaussian(0.5,0.4,0,1)", "uniform(0,0.5)"]}
policies: [dp-klucb, {policy: adac-ucb, budgets: [{rho: 0.05}]}, kl-ucb]
budgets: [{epsilon: 0.5}, none]
`

// What the intervals of runs were is in the results, the manifest, intervals.csv, and the report;
// it is the same from shards and read from a directory; and it changes no other number.
func TestIntervalsInResults(t *testing.T) {
	testkit.RacedBefore(t)
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	r := play(t, withIntervals, experiment.Options{Out: out})
	plain := play(t, strings.Replace(withIntervals, "intervals: 0.9\n", "", 1),
		experiment.Options{Out: filepath.Join(dir, "plain")})
	for i, c := range r.Cells {
		was := plain.Cells[i]
		if !reflect.DeepEqual(c.Regret, was.Regret) || !reflect.DeepEqual(c.FinalPlaysBest, was.FinalPlaysBest) {
			t.Errorf("%s: regret differs without intervals", c.Label())
		}
		if c.Hash == was.Hash || was.Intervals != nil || len(c.Intervals) != c.Arms {
			t.Fatalf("%s: hash %s, without intervals %s; %d intervals", c.Label(), c.Hash, was.Hash, len(c.Intervals))
		}
		best := 0
		for _, a := range c.Intervals {
			if a.Runs != 8 || a.Covered < 7 || a.Held > a.Covered || a.Released > a.Plays ||
				!(a.Lo < a.Mean && a.Mean < a.Hi) || !(a.Width > 0 && a.Ratio > 0.99 && a.Ratio < 20) {
				t.Errorf("%s: %+v", c.Label(), a)
			}
			if a.Difference == nil {
				best = a.Arm
			} else if d := a.Difference; d.Covered < 7 || d.Mean >= 0 || !(d.Lo < d.Mean && d.Mean < d.Hi) ||
				d.Width < a.Width {
				t.Errorf("%s, arm %d: difference %+v", c.Label(), a.Arm, d)
			}
		}
		if want := map[string]int{"two": 2, "wide": 1}[c.Instance]; best != want {
			t.Errorf("%s: the best arm is %d, must be %d", c.Label(), best, want)
		}
		if c.Policy == "kl-ucb" && c.Intervals[1].Ratio > 1.02 {
			t.Errorf("%s: without privacy the ratio is %v", c.Label(), c.Intervals[1].Ratio)
		}
	}

	loaded, err := experiment.Load(out)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range loaded.Cells {
		if !reflect.DeepEqual(c.Intervals, r.Cells[i].Intervals) ||
			!reflect.DeepEqual(loaded.Manifest.Cells[i].Intervals, c.Intervals) {
			t.Errorf("%s: read again, or in the manifest, intervals are others", c.Label())
		}
	}

	table, err := os.ReadFile(filepath.Join(out, "intervals.csv"))
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(bytes.NewReader(table)).ReadAll()
	if err != nil || len(rows) != 1+4*(3+2)+4*(2+1) {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	for k, want := range map[string]string{"of": "mean", "arm": "1", "confidence": "0.9", "truth": "0.3",
		"runs": "8", "covered": strconv.Itoa(r.Cells[0].Intervals[0].Covered), "policy": "dp-klucb"} {
		for i, name := range rows[0] {
			if name == k && rows[1][i] != want {
				t.Errorf("intervals.csv: %s is %s, must be %s", k, rows[1][i], want)
			}
		}
	}

	var shards []string
	for i := range 2 {
		shards = append(shards, filepath.Join(dir, strconv.Itoa(i)))
		play(t, withIntervals, experiment.Options{Out: shards[i], ShardI: i, ShardN: 2})
	}
	merged := filepath.Join(dir, "merged")
	if _, err := experiment.Merge(context.Background(), shards, merged, false); err != nil {
		t.Fatal(err)
	}
	if again, err := os.ReadFile(filepath.Join(merged, "intervals.csv")); err != nil || !bytes.Equal(again, table) {
		t.Errorf("intervals.csv of shards differs: %v", err)
	}

	page, err := loaded.Report()
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := page.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"90 % intervals for the arms' means", "90 % intervals for differences to the best arm",
		"× plain"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the report does not say %q", want)
		}
	}
	figures := 0
	for _, f := range page.Figures {
		if strings.HasPrefix(f.ID, "intervals-") {
			figures++
		}
	}
	if figures != 4 {
		t.Errorf("%d figures of intervals, must be one an instance and budget", figures)
	}
}

// Rules that stop by themselves have intervals at that time.
func TestIntervalsOfRulesThatStop(t *testing.T) {
	r := play(t, `name: small
kind: identify
risk: 0.1
cap: 100_000
runs: 6
intervals: 0.95
instances: [{name: two, bernoulli: [0.8, 0.4]}]
policies: [dp-tt, ttucb]
budgets: [{epsilon: 1}]
`, experiment.Options{Out: filepath.Join(t.TempDir(), "out")})
	for _, c := range r.Cells {
		for _, a := range c.Intervals {
			if a.Covered < 5 || a.Released == 0 || a.Plays != c.Plays[a.Arm-1].Mean[0] {
				t.Errorf("%s: %+v", c.Label(), a)
			}
		}
	}
}

// Means that are drawn for each run are each run's own, and so is its best arm.
func TestIntervalsOfRedrawnMeans(t *testing.T) {
	r := play(t, `name: small
horizon: 2000
runs: 12
intervals: 0.95
instances: [{name: drawn, means: {uniform: [0.2, 0.8]}, arms: 2, redraw: true}]
policies: [dp-klucb]
budgets: [{epsilon: 1}]
`, experiment.Options{Out: filepath.Join(t.TempDir(), "out")})
	a := r.Cells[0].Intervals
	if a[0].Difference == nil || a[1].Difference == nil || a[0].Difference.Runs+a[1].Difference.Runs != 12 {
		t.Fatalf("%+v", a)
	}
	for _, a := range a {
		if a.Covered < 11 || a.Difference.Covered < a.Difference.Runs-1 {
			t.Errorf("%+v, %+v", a, a.Difference)
		}
	}
}
