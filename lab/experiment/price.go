package experiment

import (
	"context"
	"maps"
	"math"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/internal/stats"
)

// The price of privacy: what a private cell's regret is above that of its non-private twin, run by
// run on the same rewards.

// ownTwins are the twins of Sotto's own policies for a kind of bandit.
func ownTwins(bandit string) map[string]string {
	out := map[string]string{}
	for _, e := range catalog.For(bandit) {
		out[e.Name] = e.Twin
	}
	return out
}

// twins says of each cell which one is its non-private twin: the same policy with the same
// parameters on the same instance at budget none, or else the policy that the catalog calls its
// twin, with the same parameters where both have them. It is −1 where there is none.
func (m *Manifest) twins() []int {
	out := make([]int, len(m.Cells))
	known := ownTwins(m.Kind)
	for i := range m.Cells {
		out[i] = -1
		c := &m.Cells[i]
		if !m.regret() || !c.Private || c.Budget == keyed.None {
			continue
		}
		other, own := known[c.Catalog]
		if !own {
			other = c.Twin
		}
		for j := range m.Cells {
			t := &m.Cells[j]
			switch {
			case t.Instance != c.Instance || t.World != c.World || t.Budget != keyed.None:
			case t.Catalog == c.Catalog && maps.Equal(t.Params, c.Params):
				out[i] = j
			case t.Catalog == other && out[i] < 0 && agree(t.Params, c.Params):
				out[i] = j
			}
		}
	}
	return out
}

// agree says whether two policies have the same values of the parameters that both have.
func agree(a, b catalog.Params) bool {
	for name, x := range a {
		if y, ok := b[name]; ok && x != y {
			return false
		}
	}
	return true
}

// price fills in Difference and Price of a cell, and FinalDifference, from its units and its twin's.
func (c *CellResult) price(ctx context.Context, dir string, m *Manifest, twin *CellInfo, room int) error {
	points := len(m.Checkpoints)
	group := max(1, min(points, room/(2*m.Runs)))
	var columns [2][][]float64
	for k := range columns {
		columns[k] = make([][]float64, group)
		for i := range columns[k] {
			columns[k][i] = make([]float64, m.Runs)
		}
	}
	for from := 0; from < points; from += group {
		to := min(from+group, points)
		for k, cell := range []*CellInfo{&c.CellInfo, twin} {
			err := eachUnit(ctx, dir, m, cell, func(u *unit) error {
				for r := range u.runs {
					for i, x := range u.metric(r, 0)[from:to] {
						columns[k][i][u.first+r] = x
					}
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		for i := range to - from {
			difference, base := columns[0][i], columns[1][i]
			for r := range difference {
				difference[r] -= base[r]
			}
			ratio, se := ratioOfMeans(difference, base)
			nan := math.NaN()
			c.Price.append(ratio, se, nan, nan, nan, nan, nan)
			if from+i == points-1 {
				c.FinalDifference = append([]float64(nil), difference...)
			}
			c.Difference.add(difference)
		}
	}
	return nil
}

// ratioOfMeans is mean(a)/mean(b) of pairs, and its standard error by linearisation: that of the
// mean of (a − ratio·b)/mean(b). Both are NaN where the mean of b is not above 0, and the error
// is for one pair.
func ratioOfMeans(a, b []float64) (ratio, se float64) {
	over, _, _ := stats.Mean(a)
	under, _, _ := stats.Mean(b)
	if !(under > 0) {
		return math.NaN(), math.NaN()
	}
	ratio = over / under
	residual := make([]float64, len(a))
	for i := range a {
		residual[i] = (a[i] - float64(ratio*b[i])) / under
	}
	_, _, se = stats.Mean(residual)
	return ratio, se
}
