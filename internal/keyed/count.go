package keyed

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A Count is a number of rounds, runs or arms: a whole number from 1 to MaxCount. As text it may be
// written 10000000, 10_000_000 or 1e7; anything that is not exactly a whole number is refused,
// rather than rounded. It is shared by files and the command line.
type Count int

// MaxCount is 2⁵³, up to where whole numbers are exact in double arithmetic. Where an int has 32
// bits it is 2²⁹−1: sums of a few counts fit, and no horizon is as long as policy.Forever/4.
const MaxCount = min(1<<53, math.MaxInt/4)

// mostCount is MaxCount as messages have it.
func mostCount() string {
	if MaxCount == 1<<53 {
		return "2^53"
	}
	return strconv.Itoa(MaxCount)
}

// ParseCount reads a Count.
func ParseCount(text string) (Count, error) {
	fail := func(why string) (Count, error) {
		return 0, fmt.Errorf("%q %s, must be a whole number from 1 to %s, such as 1000, 10_000_000 "+
			"or 1e6", Clip(text), why, mostCount())
	}
	if text == "" || len(text) > 40 {
		return fail("is no number")
	}
	digits, ok := Plain(text)
	if !ok {
		return fail("is no number")
	}
	if !strings.ContainsAny(digits, ".eE") {
		n, err := strconv.ParseInt(digits, 10, 64)
		switch {
		case err != nil || n > MaxCount:
			return fail("is too large")
		case n < 1:
			return fail("is too small")
		}
		return Count(n), nil
	}
	x, err := strconv.ParseFloat(digits, 64)
	switch {
	case err != nil || x >= MaxCount:
		return fail("is too large")
	case x <= 0:
		return fail("is too small")
	case x != math.Trunc(x) || !wholeDecimal(digits):
		return fail("is not whole")
	}
	return Count(x), nil
}

// plain takes the underscores out of a decimal number. They must stand between digits; hexadecimal
// and the like are refused.
func Plain(text string) (string, bool) {
	var b strings.Builder
	for i := range len(text) {
		switch c := text[i]; {
		case c == '_':
			if i == 0 || i == len(text)-1 || !digit(text[i-1]) || !digit(text[i+1]) {
				return "", false
			}
			continue
		case digit(c), c == '.', c == 'e', c == 'E', c == '+', c == '-':
			b.WriteByte(c)
		default:
			return "", false
		}
	}
	if _, err := strconv.ParseFloat(b.String(), 64); err != nil && !isRange(err) {
		return "", false
	}
	return b.String(), true
}

func isRange(err error) bool { return errors.Is(err, strconv.ErrRange) }

// wholeDecimal says whether a decimal number is whole before it is rounded to a double:
// 1.00000000000000000001 is not.
func wholeDecimal(text string) bool {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	shift := 0
	if exponent != "" {
		var err error
		if shift, err = strconv.Atoi(exponent); err != nil {
			return false
		}
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	if shift >= 0 {
		return strings.Trim(fraction[min(shift, len(fraction)):], "0") == ""
	}
	all := strings.TrimLeft(whole, "+-")
	return strings.Trim(fraction, "0") == "" && strings.Trim(all[max(0, len(all)+shift):], "0") == ""
}

func digit(c byte) bool { return '0' <= c && c <= '9' }

// clip keeps a quoted value short in a message.
func Clip(text string) string {
	if r := []rune(text); len(r) > 60 {
		return string(r[:60]) + "…"
	}
	return text
}

// String is the number in digits.
func (c Count) String() string { return strconv.Itoa(int(c)) }

// UnmarshalText implements encoding.TextUnmarshaler, for flags.
func (c *Count) UnmarshalText(text []byte) error {
	n, err := ParseCount(string(text))
	if err != nil {
		return err
	}
	*c = n
	return nil
}

// MarshalText writes digits.
func (c Count) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// MarshalJSON writes a number.
func (c Count) MarshalJSON() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalJSON reads a number or a string.
func (c *Count) UnmarshalJSON(b []byte) error {
	if n := len(b); n >= 2 && b[0] == '"' && b[n-1] == '"' {
		b = b[1 : n-1]
	}
	return c.UnmarshalText(b)
}

// UnmarshalYAML reads a number or a string.
func (c *Count) UnmarshalYAML(b []byte) error {
	return c.UnmarshalText([]byte(strings.Trim(strings.TrimSpace(string(b)), `"'`)))
}
