package report

import (
	"math"
	"strconv"

	"github.com/sotto-dp/sotto/internal/words"
)

// An axis maps values to pixels, linearly or in their logarithm.
type axis struct {
	log      bool
	lo, hi   float64 // the range, in decades if log; lo < hi
	from, to float64 // where lo and hi are drawn
}

// drawable says whether an axis of this kind can show v. The bounds keep differences finite and
// steps above the subnormal numbers.
func drawable(v float64, log bool) bool {
	return math.Abs(v) <= 1e300 && (!log || v >= 1e-300)
}

// newAxis covers the values, with some air. A linear axis of values of one sign starts at zero
// unless that would waste most of it.
func newAxis(values []float64, log bool, air float64) axis {
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if drawable(v, log) {
			lo, hi = min(lo, v), max(hi, v)
		}
	}
	switch {
	case lo > hi && log:
		return axis{log: true, lo: 0, hi: 1}
	case lo > hi:
		return axis{lo: 0, hi: 1}
	case !log && max(math.Abs(lo), math.Abs(hi)) < 1e-290: // zero, to any eye
		return axis{lo: 0, hi: 1}
	case log:
		lo, hi = math.Log10(lo), math.Log10(hi)
		if hi-lo < 1e-9 {
			return axis{log: true, lo: lo - 0.5, hi: hi + 0.5}
		}
	case lo >= 0 && lo <= hi/4:
		// A zero-based axis needs no air below zero.
		return axis{lo: 0, hi: hi + float64(air*hi)}
	case hi-lo <= 1e-9*max(math.Abs(lo), math.Abs(hi)):
		pad := 0.1 * max(math.Abs(lo), math.Abs(hi))
		return axis{lo: lo - pad, hi: hi + pad}
	}
	pad := air * (hi - lo)
	return axis{log: log, lo: lo - pad, hi: hi + pad}
}

// at is where v is drawn, if it can be. A value outside the range is drawn at its end.
func (a axis) at(v float64) (px float64, ok bool) {
	if !drawable(v, a.log) {
		return 0, false
	}
	if a.log {
		v = math.Log10(v)
	}
	f := (v - a.lo) / (a.hi - a.lo)
	return a.from + float64(min(max(f, 0), 1)*(a.to-a.from)), true
}

// inside says whether v is in the range.
func (a axis) inside(v float64) bool {
	if !drawable(v, a.log) {
		return false
	}
	if a.log {
		v = math.Log10(v)
	}
	return v >= a.lo && v <= a.hi
}

// A tick is a mark on an axis. Its label is text with an exponent that is drawn raised.
type tick struct {
	at        float64
	text, sup string
	minor     bool // a short mark without label or grid line
}

// ticks places about n labelled marks: powers of ten on a logarithmic axis that spans enough of
// them, else 1, 2 or 5 times a power.
func (a axis) ticks(n int) []tick {
	if !a.log {
		return a.even(a.lo, a.hi, n)
	}
	var ticks []tick
	mark := func(v float64, text, sup string, minor bool) {
		if v >= a.lo-1e-9 && v <= a.hi+1e-9 {
			f := (v - a.lo) / (a.hi - a.lo)
			ticks = append(ticks, tick{a.from + float64(f*(a.to-a.from)), text, sup, minor})
		}
	}
	first, last := int(math.Ceil(a.lo-1e-9)), int(math.Floor(a.hi+1e-9))
	switch span := a.hi - a.lo; {
	case span > 2.2:
		decades := last - first + 1
		step := (decades + n) / (n + 1)
		for e := first; e <= last; e++ {
			if e == floorTo(e, step) {
				text, sup := power(1, e, false)
				mark(float64(e), text, sup, false)
			} else if decades <= 30 {
				mark(float64(e), "", "", true)
			}
		}
		for e := first - 1; e <= last && step == 1; e++ {
			for m := 2; m < 10; m++ {
				mark(float64(e)+math.Log10(float64(m)), "", "", true)
			}
		}
	case span > 1:
		plain := a.lo > -3 && a.hi < 5.5
		for e := first - 1; e <= last; e++ {
			for m := 1; m < 10; m++ {
				text, sup := "", ""
				if m == 1 || m == 2 || m == 5 {
					text, sup = power(m, e, plain)
				}
				mark(float64(e)+math.Log10(float64(m)), text, sup, text == "")
			}
		}
	default: // less than a decade: even steps, drawn where they fall
		for _, t := range a.even(math.Pow(10, a.lo), math.Pow(10, a.hi), n) {
			mark(t.at, t.text, t.sup, false)
		}
	}
	return ticks
}

// even places marks at multiples of 1, 2 or 5 times a power of ten between lo and hi. On a
// logarithmic axis a tick's place is left in decades.
func (a axis) even(lo, hi float64, n int) []tick {
	rough := (hi - lo) / float64(n)
	e := math.Floor(math.Log10(rough))
	unit := math.Pow(10, e)
	step := 10 * unit
	for _, m := range []float64{1, 2, 5} {
		if m*unit >= rough*0.999 {
			step = m * unit
			break
		}
	}
	if !(step > 0) || math.IsInf(step, 0) { // ranges at the ends of floating point
		return nil
	}
	largest, unitExponent := max(math.Abs(lo), math.Abs(hi)), int(math.Floor(math.Log10(step*1.001)))
	scaled := largest >= 1e6 || largest < 1e-3
	var ticks []tick
	for i := math.Ceil(lo/step - 1e-9); i <= math.Floor(hi/step+1e-9) && len(ticks) < 50; i++ {
		v := float64(i * step)
		t := tick{text: "0"}
		if i != 0 && scaled {
			exponent := int(math.Floor(math.Log10(math.Abs(v)) + 1e-12))
			mantissa := words.Fixed(v/math.Pow(10, float64(exponent)), min(max(0, exponent-unitExponent), 12))
			t.text, t.sup = words.TrimZeros(mantissa)+"×10", minus(exponent)
			if t.text == "1×10" {
				t.text = "10"
			}
		} else if i != 0 {
			t.text = words.Fixed(v, min(max(0, -unitExponent), 12))
		}
		if a.log {
			t.at = math.Log10(v)
		} else {
			t.at, _ = a.at(v)
		}
		ticks = append(ticks, t)
	}
	return ticks
}

// power is the label of m·10^e: as it is if plain or near 1, else with the power raised.
func power(m, e int, plain bool) (text, sup string) {
	switch {
	case plain, m == 1 && e >= -1 && e <= 1:
		return words.Fixed(float64(m)*math.Pow(10, float64(e)), max(0, -e)), ""
	case m == 1:
		return "10", minus(e)
	}
	return strconv.Itoa(m) + "×10", minus(e)
}

// minus writes an exponent with a true minus sign.
func minus(e int) string {
	if e < 0 {
		return "−" + strconv.Itoa(-e)
	}
	return strconv.Itoa(e)
}

// floorTo is the largest multiple of step that is at most e.
func floorTo(e, step int) int {
	return e - ((e%step)+step)%step
}
