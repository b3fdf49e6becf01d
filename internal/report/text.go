package report

import (
	"math"
	"strconv"
	"strings"
	"unicode"
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
		return sign(v) + trimZeros(mantissa) + "×10" + superscript(e)
	case a >= 999.95:
		return Fixed(v, 0)
	}
	return trimZeros(Fixed(v, max(0, 3-int(math.Floor(math.Log10(a))))))
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
			digits = digits[:i] + string(thin) + digits[i:]
		}
	}
	return digits
}

// position writes a coordinate of the horizontal axis: a whole number in full, others like number.
func position(v float64) string {
	if v == math.Trunc(v) && math.Abs(v) < 1e15 {
		return Fixed(v, 0)
	}
	return Number(v)
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
	decimals := min(max(0, 1-int(math.Floor(math.Log10(half)))), 9)
	return Fixed(mean, decimals), Fixed(half, decimals)
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

// trimZeros drops the zeros at the end of a decimal fraction.
func trimZeros(s string) string {
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

// pValue writes a p-value, with its relation.
func pValue(p float64) string {
	switch {
	case p < 0.001:
		return "p<0.001"
	case p < 0.0995:
		return "p=" + strconv.FormatFloat(p, 'f', 3, 64)
	}
	return "p=" + strconv.FormatFloat(p, 'f', 2, 64)
}

// percent writes a level such as 0.95 as "95 %".
func percent(level float64) string {
	return strconv.FormatFloat(math.Round(level*1e6)/1e4, 'f', -1, 64) + " %"
}

// columns is how many columns of a terminal s takes.
func columns(s string) int {
	n := 0
	for _, r := range s {
		n += runeColumns(r)
	}
	return n
}

func runeColumns(r rune) int {
	switch {
	case unicode.Is(unicode.Mn, r), unicode.Is(unicode.Me, r):
		return 0
	case wide(r):
		return 2
	}
	return 1
}

// wide says whether a character takes two columns: the scripts of East Asia, full-width
// forms and emoji.
func wide(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana) ||
		r >= 0xff01 && r <= 0xff60 || r >= 0x1f300 && r <= 0x1faff
}

// em is the width of s in a sans-serif face of size 1. It need not be exact: it reserves room, and
// the faces a reader may have instead of Helvetica and its metric twins differ from it by a tenth.
func em(s string) float64 {
	w := 0.0
	for _, r := range s {
		w += runeEm(r)
	}
	return w
}

func runeEm(r rune) float64 {
	// Helvetica's widths from space to tilde, in thousandths.
	ascii := [...]uint16{
		278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278,
		556, 556, 556, 556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556,
		1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833, 722, 778,
		667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556,
		333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556,
		556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584,
	}
	switch {
	case r >= ' ' && r <= '~':
		return float64(ascii[r-' ']) / 1000
	case r == thin:
		return 0.2
	case unicode.Is(unicode.Mn, r), unicode.Is(unicode.Me, r):
		return 0
	case wide(r):
		return 1
	}
	return 0.6
}

// thin is the space between thousands: narrow, and no place to break a line.
const thin = '\u202f'

// fit cuts s to a width in em, with an ellipsis if anything had to go.
func fit(s string, width float64) string {
	if em(s) <= width {
		return s
	}
	w := runeEm('…')
	for i, r := range s {
		if w += runeEm(r); w > width {
			return strings.TrimRight(s[:i], " ,") + "…"
		}
	}
	return s
}

// wrap breaks s at spaces into at most lines lines of a width in em; the last is cut if it must.
func wrap(s string, width float64, lines int) []string {
	var out []string
	line := ""
	for word := range strings.FieldsSeq(s) {
		switch {
		case line == "":
			line = word
		case em(line+" "+word) <= width || len(out) == lines-1:
			line += " " + word
		default:
			out = append(out, fit(line, width))
			line = word
		}
	}
	if line != "" {
		out = append(out, fit(line, width))
	}
	return out
}
