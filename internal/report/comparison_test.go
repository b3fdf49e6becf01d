package report

import (
	"math"
	"slices"
	"strings"
	"testing"
)

// The table has every column that the page has, in its order, and marks what has no guarantee.
func TestComparisonTable(t *testing.T) {
	c := Comparison{Title: "Regret", Metric: "regret at T", Rows: []Row{
		{Instance: "a", Policy: "p", Budget: "ε=1", Void: true, Runs: 20, Mean: 10, Half: 1,
			Ratio: 2, P: 0.01, Q05: 8, Median: 10, Q95: 12, Bound: 3},
		{Instance: "a", Policy: "q", Budget: "none", Runs: 10, Mean: 5, Half: 1, Ratio: 1,
			Best: true, P: math.NaN(), Q05: 4, Median: 5, Q95: 6},
		{Instance: "b", Policy: "q", Budget: "none", Runs: 10, Mean: 5, Half: 1, Ratio: 1,
			Best: true, P: math.NaN(), Q05: math.NaN(), Median: math.NaN(), Q95: math.NaN()},
	}}
	g := c.Table()
	if want := []string{"policy", "budget", "regret at T", "×LB", "ratio", "vs best", "median",
		"5 %", "95 %", "runs"}; !slices.Equal(g.Head, want) {
		t.Errorf("head %q, want %q", g.Head, want)
	}
	if len(g.Groups) != 2 || len(g.Groups[0].Rows) != 2 || g.Groups[1].Head != "b" {
		t.Fatalf("groups %+v", g.Groups)
	}
	for _, group := range g.Groups {
		for _, row := range group.Rows {
			if len(row) != len(g.Head) {
				t.Errorf("a row of %d cells under a head of %d: %q", len(row), len(g.Head), row)
			}
		}
	}
	row := g.Groups[0].Rows[0]
	if row[0] != "p (no privacy guarantee)" || row[2] != "10.0 ± 1.0" || row[4] != "2.00×" ||
		!strings.HasPrefix(row[5], "worse") || row[9] != "20" {
		t.Errorf("row %q", row)
	}
	if len(g.Notes) == 0 {
		t.Error("no footnotes")
	}
	// Columns that nothing is in are left out.
	if g := (Comparison{Rows: []Row{{Policy: "q", Runs: 2, Mean: 1, Q05: math.NaN(), Median: math.NaN(),
		Q95: math.NaN()}}}).Table(); len(g.Head) != 5 || len(g.Groups[0].Rows[0]) != 5 {
		t.Errorf("head %q", g.Head)
	}
}
