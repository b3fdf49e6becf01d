package privacy

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Prices are rounded outward: what is computed is never below the true number, nor is what Up
// prints except for its slack. Sums, products and quotients are rounded up by what their residual
// says, so that exact ones stay as they are. What goes through elementary functions is raised by
// guard, relatively, and by as much of every term that was added or taken away; sums of many terms,
// such as norms, by many.
const (
	guard = 1e-14
	many  = 5e-13
)

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

// tiny is where residuals may be below the doubles.
const tiny = 0x1p-960

// mulUp is a·b rounded up, for a, b ≥ 0.
func mulUp(a, b float64) float64 {
	p := float64(a * b)
	switch {
	case math.IsInf(p, 1) || math.IsNaN(p):
		return p
	case p < tiny:
		if a == 0 || b == 0 {
			return 0
		}
		return math.Nextafter(p, math.Inf(1))
	}
	return up(p, math.FMA(a, b, -p))
}

// squareDown is a² rounded down, for a ≥ 0.
func squareDown(a float64) float64 {
	p := float64(a * a)
	switch {
	case math.IsInf(p, 1):
		return math.MaxFloat64
	case p < tiny || math.FMA(a, a, -p) < 0:
		return max(0, math.Nextafter(p, math.Inf(-1)))
	}
	return p
}

// divUp is a/b rounded up, for a, b ≥ 0; +Inf for b = 0.
func divUp(a, b float64) float64 {
	q := a / b
	switch {
	case math.IsInf(q, 1) || math.IsNaN(q) || a == 0:
		return q
	case q < tiny || a < tiny || b < tiny:
		return math.Nextafter(q, math.Inf(1))
	}
	return up(q, math.FMA(-q, b, a))
}

// sqrtUp is √a rounded up, for a ≥ 0.
func sqrtUp(a float64) float64 {
	s := math.Sqrt(a)
	switch {
	case math.IsInf(s, 1) || math.IsNaN(s) || a == 0:
		return s
	case a < tiny:
		return math.Nextafter(s, math.Inf(1))
	}
	return up(s, math.FMA(-s, s, a))
}

// raised is x and share of it more, for what rounds in more than one place.
func raised(x, share float64) float64 { return x + float64(x*share) }

// inverses is Σ num/den rounded up, +Inf if a den is 0. Each quotient is carried with its residual,
// so that what is exact stays so; a residual of 10⁻³⁰ of the sum is none.
func inverses(num, den []float64) float64 {
	sum, rest := 0.0, 0.0
	for i, d := range den {
		q := num[i] / d
		if math.IsInf(q, 1) {
			return q
		}
		t := sum + q
		big, small := max(sum, q), min(sum, q)
		rest += (small - (t - big)) + math.FMA(-q, d, num[i])/d
		sum = t
	}
	total := sum + rest
	return up(total, rest-(total-sum)-float64(1e-30*total))
}

// Up writes a price for people, with so many significant digits, the last one rounded up: what is
// printed is no less than x·(1 − 10⁻⁹), the slack that a cap has too.
func Up(x float64, digits int) string {
	if math.IsInf(x, 0) || math.IsNaN(x) || x <= 0 {
		return strconv.FormatFloat(x, 'g', -1, 64)
	}
	least := x - float64(x*slack)
	text := strconv.FormatFloat(least, 'e', digits-1, 64)
	got, err := strconv.ParseFloat(text, 64)
	if err == nil && got < least { // a unit more in the last place
		mantissa, exponent, _ := strings.Cut(text, "e")
		e, _ := strconv.Atoi(exponent)
		n, _ := strconv.ParseUint(strings.Replace(mantissa, ".", "", 1), 10, 64)
		got, _ = strconv.ParseFloat(fmt.Sprintf("%de%d", n+1, e-digits+1), 64)
	}
	return strconv.FormatFloat(got, 'g', digits, 64)
}
