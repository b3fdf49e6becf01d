package report

import (
	"math"
	"strconv"
)

// Short is a number of at most four significant digits, and without an exponent.
func Short(x float64) string {
	switch a := math.Abs(x); {
	case a >= 1000 || a == math.Trunc(a):
		return Fixed(x, 0)
	case a >= 100:
		return strconv.FormatFloat(x, 'f', 1, 64)
	case a >= 10:
		return strconv.FormatFloat(x, 'f', 2, 64)
	}
	return strconv.FormatFloat(x, 'g', 3, 64)
}

// Several counts things whose plural has an s.
func Several(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return Whole(n) + " " + thing + "s"
}

// Counted counts things by their singular and plural.
func Counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return Whole(n) + " " + many
}
