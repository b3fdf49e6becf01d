package words

import (
	"math"
	"strconv"
	"strings"
	"testing"
)

func TestNumbers(t *testing.T) {
	for _, c := range []struct {
		v    float64
		want string
	}{
		{0, "0"}, {math.Copysign(0, -1), "0"}, {1, "1"}, {1909.2, "1909"}, {26340, "26_340"},
		{1e7, "10_000_000"}, {999.96, "1000"},
		{999.94, "999.9"}, {85.26, "85.26"}, {0.5, "0.5"}, {0.0123456, "0.01235"},
		{1.5e-5, "1.5×10⁻⁵"}, {-3.25, "−3.25"}, {2.5e20, "2.5×10²⁰"},
		{math.NaN(), "–"}, {math.Inf(-1), "−∞"}, {-123456, "−123_456"},
	} {
		if got := strings.ReplaceAll(Number(c.v), "\u202f", "_"); got != c.want {
			t.Errorf("number(%v) = %s, want %s", c.v, got, c.want)
		}
	}
	for _, c := range []struct {
		mean, half float64
		m, h       string
	}{
		{1909.2, 31.4, "1909", "31"}, {437.12, 4.06, "437.1", "4.1"},
		{85.26, .0123, "85.260", "0.012"}, {150, math.Inf(1), "150", "∞"},
		{0.0001, 1e-12, "0.000100000", "0.000000000"}, {math.NaN(), 1, "–", "1"}, {5, 0, "5", "0"},
		{666.65, 4e-14, "666.6", "0"},
	} {
		if m, h := Measured(c.mean, c.half); m != c.m || h != c.h {
			t.Errorf("measured(%v, %v) = %s ± %s, want %s ± %s", c.mean, c.half, m, h, c.m, c.h)
		}
	}
	for n, want := range map[int]string{0: "0", 9999: "9999", 10_000: "10_000", 1_234_567: "1_234_567",
		-12_345: "−12_345"} {
		for form, got := range map[string]string{"whole": Whole(n), "number": Number(float64(n)),
			"fixed": Fixed(float64(n), 0),
			"short": Short(float64(n)), "counted": strings.TrimSuffix(Counted(n, "", "x"), " x")} {
			if got = strings.ReplaceAll(got, "\u202f", "_"); got != want {
				t.Errorf("%s of %d is %s, want %s", form, n, got, want)
			}
		}
	}
}

// What is said of an ε is a bound: never below e^ε, and less than a hundredth above it.
func TestOdds(t *testing.T) {
	for epsilon, want := range map[float64]string{0: "1 50", 0.1: "1.11 52.5", 0.5: "1.65 62.3", 1: "2.72 73.2", 5: "149 99.4",
		7.5: "1810 100", 8: "2990 100", 14: "1_210_000 100"} {
		factor, guess := Odds(epsilon)
		if got := strings.ReplaceAll(factor+" "+guess, "\u202f", "_"); got != want {
			t.Errorf("ε = %v: %s, want %s", epsilon, got, want)
		}
	}
	for epsilon := 0.0; epsilon < 15; epsilon += 0.01 {
		text, _ := Odds(epsilon)
		f, err := strconv.ParseFloat(strings.ReplaceAll(text, "\u202f", ""), 64)
		if least := math.Exp(epsilon); err != nil || f < least*(1-1e-12) || f > least*1.0101 {
			t.Errorf("ε = %v: %s, is %v", epsilon, text, least)
		}
	}
}
