package report

import (
	"math"
	"strconv"
	"strings"
	"unicode"

	"github.com/sotto-dp/sotto/internal/words"
)

// position writes a coordinate of the horizontal axis: a whole number in full, others like number.
func position(v float64) string {
	if v == math.Trunc(v) && math.Abs(v) < 1e15 {
		return words.Fixed(v, 0)
	}
	return words.Number(v)
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
	case r == words.Thin:
		return 0.2
	case unicode.Is(unicode.Mn, r), unicode.Is(unicode.Me, r):
		return 0
	case wide(r):
		return 1
	}
	return 0.6
}

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
