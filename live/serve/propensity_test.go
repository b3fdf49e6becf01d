package serve

import (
	"fmt"
	"math"
	"testing"
)

// Propensities are written as people write them, and add up to 1.
func TestPropensitiesAreWrittenShort(t *testing.T) {
	for _, c := range []struct {
		floor float64
		n     int
		want  string
	}{{0.1, 2, "0.95 0.05"}, {0.3, 2, "0.85 0.15"}, {0.07, 4, "0.9475 0.0175"}, {0, 3, "1 0"}, {0.2, 1, "1 0.2"},
		{0.2, 5, "0.84 0.04"}, {0.9, 2, "0.55 0.45"}, {0.05, 10, "0.955 0.005"}} {
		most, share := propensities(c.floor, c.n)
		if got := fmt.Sprint(most, share); got != c.want {
			t.Errorf("%v of %d: %s, must be %s", c.floor, c.n, got, c.want)
		}
	}
	for n := 1; n < 1000; n++ {
		for floor := 0.001; floor < 1; floor += 0.0137 {
			if most, share := propensities(floor, n); math.Abs(most+share*float64(n-1)-1) > 1e-12 {
				t.Fatalf("%v of %d: %v and %v", floor, n, most, share)
			}
		}
	}
	if rest := rounded(1 - 0.95); rest != 0.05 {
		t.Error(rest)
	}
}
