package divergence

import (
	"math"
	"testing"
)

func TestTVTakesTheEdges(t *testing.T) {
	for _, c := range []struct{ p, q, want float64 }{
		{0, 0, 0}, {0, 1, 1}, {1, 0, 1}, {1, 1, 0}, {0.25, 0, 0.25}, {0, 0.75, 0.75},
		{0.25, 1, 0.75}, {1, 0.75, 0.25},
	} {
		if got := TV(c.p, c.q); got != c.want {
			t.Errorf("TV(%v, %v) = %v, want %v", c.p, c.q, got, c.want)
		}
	}
	for _, c := range [][2]float64{{-0.1, 0.5}, {1.1, 0.5}, {0.5, -0.1}, {0.5, 1.1},
		{math.NaN(), 0.5}, {0.5, math.NaN()}} {
		if got := TV(c[0], c[1]); !math.IsNaN(got) {
			t.Errorf("TV(%v, %v) = %v, want NaN", c[0], c[1], got)
		}
	}
}
