package interval

import (
	"math"
	"testing"

	"github.com/sotto-dp/sotto/privacy"
)

// A table's intervals share out its risk: all of them, and none of them twice.
func TestTable(t *testing.T) {
	a := Sums{N: 400, Sum: 120, Releases: 3, Noise: privacy.Laplace{Scale: 2}}
	b := Sums{N: 300, Sum: 210, Releases: 2, Noise: privacy.Laplace{Scale: 2}}
	const arms, pairs = 4, 6
	table := Table{Arms: arms, Lo: -1, Hi: 3}
	mean, less := table.Mean(a), table.Difference(a, b)
	if mean == nil || less == nil {
		t.Fatal(mean, less)
	}
	risk := 0.0 // that is spent, by the inverse: the risk whose interval this is
	for _, c := range []struct {
		times int
		got   [2]float64
		of    func(risk float64) (lo, hi float64, err error)
		lo    float64
	}{{arms, *mean, a.Interval, -1}, {pairs, *less, func(r float64) (float64, float64, error) {
		return Difference(a, b, r)
	}, 0}} {
		from, to := 1e-9, 0.5
		for range 60 {
			mid := math.Sqrt(from * to)
			lo, _, err := c.of(mid)
			if err != nil {
				t.Fatal(err)
			}
			if c.lo+4*lo < c.got[0] {
				from = mid
			} else {
				to = mid
			}
		}
		risk += float64(c.times) * to
	}
	if math.Abs(risk-(1-Confidence)) > 1e-6 {
		t.Errorf("the intervals of the table have a risk of %v, must be %v", risk, 1-Confidence)
	}
	if (Table{Arms: 2, Hi: 1}).Mean(Sums{}) != nil || table.Difference(a, Sums{}) != nil ||
		table.Mean(Sums{N: 1, Sum: 1, Releases: 1, Noise: privacy.Aggregated{}}) != nil {
		t.Error("there are intervals of nothing")
	}
}
