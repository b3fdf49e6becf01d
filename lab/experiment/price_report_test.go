package experiment

import (
	"fmt"
	"testing"
)

// Curves of the difference are at the checkpoints nearest to powers of ten from a thousand on,
// and at the horizon.
func TestDecades(t *testing.T) {
	for _, c := range []struct {
		checkpoints []int
		want        string
	}{
		{[]int{10, 1000, 10_000, 100_000}, "[1000 10000 100000]"},
		{[]int{1, 980, 1100, 9000, 50_000, 1_000_000}, "[980 9000 1000000]"},
		{[]int{5, 50}, "[50]"},
		{[]int{300, 3000, 20_000}, "[20000]"},
		{[]int{900, 1000, 1100}, "[1100]"}, // the horizon is this decade's own
		{[]int{1000}, "[1000]"},
	} {
		var at []int
		for _, i := range decades(c.checkpoints) {
			at = append(at, c.checkpoints[i])
		}
		if got := fmt.Sprint(at); got != c.want {
			t.Errorf("%v: %s, want %s", c.checkpoints, got, c.want)
		}
	}
}
