package interval

import (
	"math"
	"testing"

	"github.com/sotto-dp/sotto/privacy"
)

// The intervals of a row share out its risk: all of it, and none of it twice. Those of many arms
// follow from the means', and so have none.
func TestControlled(t *testing.T) {
	a := Sums{N: 400, Sum: 120, Releases: 3, Noise: privacy.Laplace{Scale: 2}}
	b := Sums{N: 300, Sum: 210, Releases: 2, Noise: privacy.Laplace{Scale: 2}}
	const risk = 0.02
	spent := func(at float64, of func(risk float64) (lo, hi float64, err error)) float64 { // the risk whose interval this is
		from, to := 1e-9, 0.5
		for range 60 {
			mid := math.Sqrt(from * to)
			lo, _, err := of(mid)
			if err != nil {
				t.Fatal(err)
			}
			if lo < at {
				from = mid
			} else {
				to = mid
			}
		}
		return to
	}
	row := Controlled{Arms: 4, Lo: -1, Hi: 3, Risk: risk}
	mean, less := row.Mean(a), row.Difference(a, b)
	if mean == nil || less == nil {
		t.Fatal(mean, less)
	}
	all := 4*spent((mean[0]+1)/4, a.Interval) + 3*spent(less[0]/4, func(r float64) (float64, float64, error) {
		return Difference(a, b, r)
	})
	if math.Abs(all-risk) > 1e-6 {
		t.Errorf("the intervals of a row have a risk of %v, must be %v", all, risk)
	}
	less = row.Effect(a, b, 0.6)
	all = 3 * spent(less[0]/4, func(r float64) (float64, float64, error) { return Effect(a, b, 0.6, Plan{}, r) })
	if math.Abs(all-risk/2) > 1e-6 || row.Effect(a, Sums{}, 0.6) != nil || row.Effect(a, b, 1) != nil {
		t.Errorf("the differences of joint batches have a risk of %v, must be %v", all, risk/2)
	}
	row.Arms = 40
	mean, less = row.Mean(a), row.Difference(a, b)
	if other := row.Mean(b); less[0] != mean[0]-other[1] || less[1] != mean[1]-other[0] {
		t.Errorf("%v, must be of %v and %v", less, mean, other)
	}
	if row.Mean(Sums{}) != nil || row.Difference(a, Sums{}) != nil || row.Difference(Sums{}, a) != nil ||
		row.Mean(Sums{N: 1, Sum: 1, Releases: 1, Noise: privacy.Aggregated{}}) != nil {
		t.Error("there are intervals of nothing")
	}
}
