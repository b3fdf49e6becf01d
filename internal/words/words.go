// Package words writes numbers and counts for people. Begin with Number and Whole.
package words

import (
	"math"
	"strconv"
	"strings"
)

// Number writes v for reading: about four significant digits, whole from 1000 on, with thin spaces
// between thousands as all numbers here.
func Number(v float64) string {
	a := math.Abs(v)
	switch {
	case math.IsNaN(v):
		return "–"
	case math.IsInf(v, 0):
		return sign(v) + "∞"
	case v == 0:
		return "0"
	case a < 1e-3 || a >= 1e15:
		mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(a, 'e', 3, 64), "e")
		e, _ := strconv.Atoi(exponent)
		return sign(v) + TrimZeros(mantissa) + "×10" + superscript(e)
	case a >= 999.95:
		return Fixed(v, 0)
	}
	return TrimZeros(Fixed(v, max(0, 3-int(math.Floor(math.Log10(a))))))
}

// Whole writes a whole number with thin spaces between thousands, from five digits on.
func Whole(n int) string {
	s := strconv.Itoa(n)
	if n < 0 {
		return "−" + grouped(s[1:])
	}
	return grouped(s)
}

// grouped sets thousands apart, from five digits on.
func grouped(digits string) string {
	if len(digits) > 4 {
		for i := len(digits) - 3; i > 0; i -= 3 {
			digits = digits[:i] + string(Thin) + digits[i:]
		}
	}
	return digits
}

// Measured writes mean and half width of mean ± half: the half width with two significant digits,
// the mean with as many decimals.
func Measured(mean, half float64) (m, h string) {
	finite := !math.IsNaN(mean) && !math.IsInf(mean, 0)
	if half <= float64(1e-12*math.Abs(mean)) {
		half = 0 // the rounding of equal values
	}
	if !finite || !(half > 0) || math.IsInf(half, 0) || math.Abs(mean) >= 1e15 || half >= 1e15 {
		return Number(mean), Number(half)
	}
	decimals := Decimals(-half, half)
	return Fixed(mean, decimals), Fixed(half, decimals)
}

// Decimals is how many an interval is written with: two digits of its half width.
func Decimals(lo, hi float64) int {
	if !(lo < hi) {
		return 0
	}
	return min(max(0, 1-int(math.Floor(math.Log10((hi-lo)/2)))), 9)
}

// Outward writes the ends of an interval, rounded outward.
func Outward(lo, hi float64) (l, h string) { return OutwardTo(lo, hi, Decimals(lo, hi)) }

// OutwardTo is Outward with a number of decimals.
func OutwardTo(lo, hi float64, decimals int) (l, h string) {
	p := math.Pow10(decimals)
	return Fixed(math.Floor(lo*p)/p, decimals), Fixed(math.Ceil(hi*p)/p, decimals)
}

// Fixed writes v with a number of decimals.
func Fixed(v float64, decimals int) string {
	s := strconv.FormatFloat(math.Abs(v), 'f', decimals, 64)
	whole, fraction, found := strings.Cut(s, ".")
	whole = grouped(whole)
	if found {
		whole += "." + fraction
	}
	if strings.Trim(s, "0.") == "" {
		return whole // no negative zero
	}
	return sign(v) + whole
}

func sign(v float64) string {
	if math.Signbit(v) {
		return "−"
	}
	return ""
}

// TrimZeros drops the zeros at the end of a decimal fraction.
func TrimZeros(s string) string {
	if !strings.Contains(s, ".") {
		return s
	}
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

// superscript writes an exponent in raised digits.
func superscript(e int) string {
	return strings.Map(func(r rune) rune {
		if r == '-' {
			return '⁻'
		}
		return []rune("⁰¹²³⁴⁵⁶⁷⁸⁹")[r-'0']
	}, strconv.Itoa(e))
}

// Thin is the space between thousands: narrow, and no place to break a line.
const Thin = '\u202f'

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

// Odds says a finite ε ≥ 0 as the factor e^ε by which odds change at most, and as the percentage that a guess of 50 %
// becomes at most, e^ε/(1+e^ε): both with three digits, rounded up, since they are bounds.
func Odds(epsilon float64) (factor, guess string) {
	f := math.Exp(epsilon)
	unit := math.Pow(10, math.Floor(math.Log10(f))-2)
	up := func(x, unit float64) float64 { return math.Ceil(x/unit) * unit }
	return TrimZeros(Fixed(up(f, unit), max(0, -int(math.Round(math.Log10(unit)))))),
		TrimZeros(Fixed(min(up(100*f/(1+f), .1), 100), 1))
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
