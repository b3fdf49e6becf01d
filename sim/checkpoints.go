package sim

import "math"

// LogSpaced returns at most n rounds from 1 to horizon, evenly spaced on a logarithmic axis,
// increasing and without repetition; the last one is the horizon. n must be at least 1.
func LogSpaced(n, horizon int) []int {
	at := make([]int, 0, n)
	last := 0
	for i := range n {
		x := 1.0
		if n > 1 {
			x = float64(i) / float64(n-1)
		}
		t := int(math.Round(math.Exp(x * math.Log(float64(horizon)))))
		if i == n-1 {
			t = horizon
		}
		if t > last && t <= horizon {
			at = append(at, t)
			last = t
		}
	}
	return at
}
