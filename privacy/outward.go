package privacy

import "math"

// Sums and products of prices are rounded up by what their residual says, so that exact ones stay as they are.

// up is the next number above x where over is positive, the sign of what rounding x took away.
func up(x, over float64) float64 {
	if over > 0 {
		return math.Nextafter(x, math.Inf(1))
	}
	return x
}

// addUp is a + b rounded up, for a, b ≥ 0.
func addUp(a, b float64) float64 {
	s := a + b
	if math.IsInf(s, 1) {
		return s
	}
	if a < b {
		a, b = b, a
	}
	return up(s, b-(s-a)) // the residual of a sum is exact (Dekker 1971)
}

// mulUp is a·b rounded up, for a, b ≥ 0.
func mulUp(a, b float64) float64 {
	p := float64(a * b)
	switch {
	case math.IsInf(p, 1) || math.IsNaN(p):
		return p
	case p < 0x1p-960: // the residual may be below the doubles
		if a == 0 || b == 0 {
			return 0
		}
		return math.Nextafter(p, math.Inf(1))
	}
	return up(p, math.FMA(a, b, -p))
}
