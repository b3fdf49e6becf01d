package experiment_test

import (
	"context"
	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/lab/experiment"
	"math"
	"slices"
	"strings"
	"testing"
)

// Figures 5.4 to 5.6 of [Azize 2024]: the difference falls in ρ; the price falls in T for finite
// and linear bandits; and both are within the figures' axes. For the contextual bandit the price at
// ρ = 0.1 is near 2.7 at 10³ and 2.8 at 10⁴ rounds, and 9 to 17 % are left at ρ = 100 (100
// independent runs elsewhere). Seeds are the files'. Differences may rise by five standard errors,
// and prices be off by five, which by itself happens with probability below 10⁻⁶.
func TestPriceFigures(t *testing.T) {
	testkit.RacedBefore(t)
	for _, c := range []struct {
		file, horizon, runs string
		// The end of the axis of differences, and the point of the figure that is nearest to it.
		axis   float64
		budget string
		t      int
		falls  bool // the price, in T
	}{
		{"price-finite", "1e7", "100", 300, "rho=0.1", 10_000_000, true},
		{"price-linear", "1e7", "100", 1000, "rho=0.1", 1_000_000, true},
		{"price-contextual", "1e4", "30", 300, "rho=1", 10_000, false},
	} {
		spec, err := experiment.Reader{}.Read("../../examples/" + c.file + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		// Checkpoints at powers of ten, whatever the horizon.
		for _, o := range [][2]string{{"horizon", c.horizon}, {"runs", c.runs},
			{"checkpoints", map[string]string{"1e7": "141", "1e4": "81"}[c.horizon]}} {
			if err := spec.Override(o[0], "--"+o[0], o[1]); err != nil {
				t.Fatal(err)
			}
		}
		r, err := experiment.Run(context.Background(), spec, experiment.Options{Out: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		at := func(t int) int { return slices.Index(r.Manifest.Checkpoints, t) }
		last := len(r.Manifest.Checkpoints) - 1
		var before *experiment.CellResult
		for i := range r.Cells {
			cell := &r.Cells[i]
			if cell.Twin < 0 {
				continue
			}
			d := &cell.Difference
			if before != nil {
				b := &before.Difference
				if d.Mean[last] > b.Mean[last]+5*math.Hypot(d.SE[last], b.SE[last]) {
					t.Errorf("%s: the difference is %v ± %v, and %v ± %v at %s", cell.Label(),
						d.Mean[last], d.SE[last], b.Mean[last], b.SE[last], before.Budget)
				}
			}
			before = cell
			if k := at(c.t); cell.Budget == c.budget && !(d.Mean[k] > 0 && d.Mean[k] < c.axis+5*d.SE[k]) {
				t.Errorf("%s: difference %v ± %v at %d, off the axis to %v", cell.Label(),
					d.Mean[k], d.SE[k], c.t, c.axis)
			}
			if early := at(10_000); c.falls && (cell.Budget == "rho=0.01" ||
				cell.Budget == "rho=0.1") && !(cell.Price.Mean[last] < cell.Price.Mean[early]) {
				t.Errorf("%s: the price is %v at 10⁴ and %v at 10⁷", cell.Label(),
					cell.Price.Mean[early], cell.Price.Mean[last])
			}
		}
		// At the largest ρ nothing is left but noise.
		if end := &before.Difference; c.falls &&
			!(end.Mean[last] < 0.001*r.Cells[before.Twin].Regret.Mean[last]+5*end.SE[last]) {
			t.Errorf("%s: the difference is %v ± %v", before.Label(), end.Mean[last], end.SE[last])
		}
		if c.falls {
			continue
		}
		for _, want := range []struct {
			budget string
			t      int
			lo, hi float64
		}{{"rho=0.1", 1000, 2.7, 2.7}, {"rho=0.1", 10_000, 2.8, 2.8}, {"rho=1", 10_000, 0.98, 0.98},
			{"rho=100", 10_000, 0.09, 0.17}} {
			i := slices.IndexFunc(r.Cells, func(cell experiment.CellResult) bool {
				return strings.HasSuffix(cell.Label(), want.budget)
			})
			p, se := r.Cells[i].Price.Mean[at(want.t)], r.Cells[i].Price.SE[at(want.t)]
			if !(p > want.lo-5*se && p < want.hi+5*se) {
				t.Errorf("%s: the price at %d is %v ± %v, want %v to %v", r.Cells[i].Label(),
					want.t, p, se, want.lo, want.hi)
			}
		}
	}
}
