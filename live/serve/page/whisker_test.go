package page

import "testing"

// The line on which intervals are drawn has all of them, within the range of rewards; where nothing
// was released it is that range.
func TestAxis(t *testing.T) {
	arm := func(lo, hi float64) Arm { return Arm{Interval: &[2]float64{lo, hi}} }
	for _, c := range []struct {
		arms     []Arm
		from, to string
		at       float64
		want     string
	}{
		{nil, "−2", "4", 1, "50.00%"},
		{[]Arm{arm(0.21, 0.34), {}, arm(0.3, 0.58)}, "0.2", "0.6", 0.3, "25.00%"},
		{[]Arm{arm(-1.99, 3.7)}, "−2", "4", 9, "100.00%"},
		{[]Arm{arm(1e-9, 2e-9)}, "1×10⁻⁹", "2×10⁻⁹", 1e-9, "0.00%"},
	} {
		a := axisOf(&View{Lo: -2, Hi: 4, Arms: c.arms})
		if got := a.At(c.at); a.From != c.from || a.To != c.to || got != c.want {
			t.Errorf("%v: from %s to %s, %v at %s; want %s, %s, %s", c.arms, a.From, a.To, c.at, got, c.from,
				c.to, c.want)
		}
	}
}
