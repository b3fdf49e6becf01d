package flags

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/logged"
)

// An interval is where numbers may be.
type interval struct {
	lo, hi     float64
	loIn, hiIn bool
	hiText     string // as the tag has it, such as 1e8
}

// within reads the tag in, such as (0,1] or [0,inf); without it any finite number is allowed.
func within(v *kong.Value) interval {
	tag := v.Tag.Get("in")
	if tag == "" {
		return interval{lo: math.Inf(-1), hi: math.Inf(1)}
	}
	lo, hi, ok := strings.Cut(tag[1:len(tag)-1], ",")
	i := interval{loIn: tag[0] == '[', hiIn: tag[len(tag)-1] == ']', hiText: hi}
	var err1, err2 error
	i.lo, err1 = strconv.ParseFloat(lo, 64)
	i.hi, err2 = strconv.ParseFloat(hi, 64)
	if !ok || err1 != nil || err2 != nil {
		// of this program
		panic(fmt.Sprintf("the tag of %s is in:%q, must be an interval", v.Name, tag))
	}
	return i
}

func (i interval) has(x float64) bool {
	return (x > i.lo || i.loIn && x == i.lo) && (x < i.hi || i.hiIn && x == i.hi)
}

// must says it in words, after a noun that may be empty.
func (i interval) must(noun string) string {
	lo, hi := "above ", " and below "+i.hiText
	if i.loIn {
		lo = "at least "
	}
	if i.hiIn {
		hi = " and at most " + i.hiText
	}
	switch {
	case math.IsInf(i.lo, -1) && math.IsInf(i.hi, 1):
		return "a finite number"
	case i.loIn && i.hiIn:
		lo, hi = "from ", " to "+i.hiText
	case math.IsInf(i.hi, 1):
		hi = " and finite"
	}
	return strings.TrimSpace(noun + " " + lo + strconv.FormatFloat(i.lo, 'g', -1, 64) + hi)
}

// read is a number in the interval.
func (i interval) read(field, text string) (float64, error) {
	text = strings.TrimSpace(text)
	x, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil:
		return 0, &Error{Field: field, Value: text, Must: i.must("a number")}
	case !i.has(x):
		return 0, &Error{Field: field, Value: text, Must: i.must("")}
	}
	return x, nil
}

// A Number is one in the interval of the tag in.
type Number struct {
	X    float64
	Set  bool // given, or by default
	text string
}

// Decode implements kong.MapperValue.
func (n *Number) Decode(ctx *kong.DecodeContext) error {
	text, _, err := pop(ctx)
	if err != nil {
		return err
	}
	n.X, err = within(ctx.Value).read(field(ctx.Value), text)
	n.Set, n.text = true, text
	return err
}

// String is the number as it was given, empty if it was not.
func (n Number) String() string { return n.text }

// Pointer is the number, nil if none was given.
func (n Number) Pointer() *float64 {
	if !n.Set {
		return nil
	}
	return &n.X
}

// Or is the number, or another one if none was given.
func (n Number) Or(other float64) float64 {
	if n.Set {
		return n.X
	}
	return other
}

// Numbers are some, divided by commas, each in the interval of the tag in.
type Numbers struct{ X []float64 }

// Decode implements kong.MapperValue.
func (n *Numbers) Decode(ctx *kong.DecodeContext) error {
	text, _, err := pop(ctx)
	if err != nil {
		return err
	}
	n.X, err = numbers(field(ctx.Value), text, within(ctx.Value))
	return err
}

func numbers(field, text string, in interval) ([]float64, error) {
	var out []float64
	for _, one := range strings.Split(text, ",") {
		x, err := in.read(field, one)
		if err != nil {
			return nil, err
		}
		out = append(out, x)
	}
	return out, nil
}

// Vectors are some, divided by semicolons, of any finite numbers.
type Vectors struct{ X [][]float64 }

// Decode implements kong.MapperValue.
func (v *Vectors) Decode(ctx *kong.DecodeContext) error {
	text, _, err := pop(ctx)
	if err != nil {
		return err
	}
	v.X = nil
	for _, one := range strings.Split(text, ";") {
		x, err := numbers(field(ctx.Value), one, within(ctx.Value))
		if err != nil {
			return err
		}
		v.X = append(v.X, x)
	}
	return nil
}

// A Rate is so many of something a day, written 10000/day, 400/hour, 7/minute, 2/second, or a
// number alone, a day.
type Rate struct {
	Day float64 // above 0 and finite
	Set bool
}

// Decode reads the value.
func (r *Rate) Decode(ctx *kong.DecodeContext) error {
	text, bad, err := pop(ctx)
	if err != nil {
		return err
	}
	number, unit, _ := strings.Cut(strings.TrimSpace(text), "/")
	times, known := map[string]float64{"": 1, "day": 1, "hour": 24, "minute": 24 * 60,
		"second": 24 * 60 * 60}[strings.TrimSpace(unit)]
	x, err := strconv.ParseFloat(strings.ReplaceAll(strings.TrimSpace(number), "_", ""), 64)
	if r.Day, r.Set = x*times, true; err != nil || !known || !(r.Day > 0) || math.IsInf(r.Day, 1) {
		return bad("a number above 0 and finite, a day, hour, minute or second, such as 10000/day")
	}
	return nil
}

// A Share is a number above 0, of which 10% is another way to write 0.1.
type Share struct{ X float64 }

// Decode implements kong.MapperValue.
func (s *Share) Decode(ctx *kong.DecodeContext) error {
	text, bad, err := pop(ctx)
	if err != nil {
		return err
	}
	digits, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
	x, err := strconv.ParseFloat(digits, 64)
	if err != nil || !(x > 0) || math.IsInf(x, 1) {
		return bad("a share above 0 and finite, such as 10% or 0.1")
	}
	if s.X = x; percent {
		s.X /= 100
	}
	return nil
}

// A Count is a whole number from 1, of rounds, runs or arms, in the interval of the tag in; 0 is
// one that was not given.
type Count int

// Decode implements kong.MapperValue.
func (c *Count) Decode(ctx *kong.DecodeContext) error {
	text, bad, err := pop(ctx)
	if err != nil {
		return err
	}
	n, err := keyed.ParseCount(text)
	if err != nil {
		in := "a whole number from 1 on"
		if ctx.Value.Tag.Has("in") {
			in = within(ctx.Value).must("a whole number")
		}
		return bad(in + ", such as 1000, 10_000_000 or 1e6")
	}
	if ctx.Value.Tag.Has("in") && !within(ctx.Value).has(float64(n)) {
		return bad(within(ctx.Value).must(""))
	}
	*c = Count(n)
	return nil
}

// A Prior is a number of arms whose means are drawn from [Lo,Hi], as in 5:0.25:0.75.
type Prior struct {
	Arms   int // 0: not given
	Lo, Hi float64
}

// Decode implements kong.MapperValue.
func (p *Prior) Decode(ctx *kong.DecodeContext) error {
	text, bad, err := pop(ctx)
	if err != nil {
		return err
	}
	parts := strings.Split(text, ":")
	if len(parts) != 3 {
		return bad("K:LO:HI, such as 5:0.25:0.75")
	}
	arms, err := keyed.ParseCount(parts[0])
	lo, err1 := strconv.ParseFloat(parts[1], 64)
	hi, err2 := strconv.ParseFloat(parts[2], 64)
	if err != nil || err1 != nil || err2 != nil || !(lo >= 0 && lo < hi && hi <= 1) {
		return bad("K:LO:HI with a whole number of arms and 0 ≤ LO < HI ≤ 1, such as 5:0.25:0.75")
	}
	*p = Prior{int(arms), lo, hi}
	return nil
}

// A Range is two finite numbers, the lower one first, in the interval of the tag in.
type Range struct {
	Lo, Hi float64
	Set    bool // given, or by default
}

// Decode implements kong.MapperValue.
func (r *Range) Decode(ctx *kong.DecodeContext) error {
	text, bad, err := pop(ctx)
	if err != nil {
		return err
	}
	in, where := interval{lo: -logged.MaxAbs, hi: logged.MaxAbs, loIn: true, hiIn: true},
		fmt.Sprintf("at most %v in absolute value", logged.MaxAbs)
	if ctx.Value.Tag.Has("in") {
		in = within(ctx.Value)
		where = in.must("both")
	}
	ends, err := numbers(field(ctx.Value), text,
		interval{lo: math.Inf(-1), hi: math.Inf(1), loIn: true, hiIn: true})
	if err != nil || len(ends) != 2 || !(ends[0] < ends[1]) || !in.has(ends[0]) || !in.has(ends[1]) {
		return bad("two finite numbers LO,HI, the lower one first, " + where)
	}
	*r = Range{ends[0], ends[1], true}
	return nil
}
