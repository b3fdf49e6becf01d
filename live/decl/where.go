package decl

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/sotto-dp/sotto/internal/keyed"
)

// A Test is what a public attribute must be beside being there: all that is given of it.
type Test struct {
	Not         []string // none of these values, as text
	From, Below *float64 // a number, from From on and below Below
	// Semver is a version for which all of these comparisons hold, such as ">=2.1.0 <3.0.0", in the order of
	// semver.org 2.0.0; a version may leave its last numbers out, which are 0 then.
	Semver string
}

// Holds says whether an attribute of this text passes.
func (t Test) Holds(text string) bool {
	if slices.Contains(t.Not, text) {
		return false
	}
	if t.From != nil || t.Below != nil {
		x, err := strconv.ParseFloat(text, 64)
		if err != nil || strings.ContainsAny(text, "_xX") || !finite(x) || !(t.From == nil || x >= *t.From) || !(t.Below == nil || x < *t.Below) {
			return false
		}
	}
	if t.Semver == "" {
		return true
	}
	v, ok := readVersion(text)
	for _, one := range strings.Fields(t.Semver) {
		ok = ok && compares(one, v)
	}
	return ok
}

// comparisons are those of versions, the longer before their beginnings.
var comparisons = []struct {
	sign string
	ok   func(order int) bool
}{
	{">=", func(c int) bool { return c >= 0 }}, {"<=", func(c int) bool { return c <= 0 }},
	{"!=", func(c int) bool { return c != 0 }}, {">", func(c int) bool { return c > 0 }},
	{"<", func(c int) bool { return c < 0 }}, {"=", func(c int) bool { return c == 0 }},
}

// compares says whether a comparison such as >=2.1.0 holds for a version.
func compares(one string, v version) bool {
	for _, c := range comparisons {
		if rest, is := strings.CutPrefix(one, c.sign); is {
			than, ok := readVersion(rest)
			return ok && c.ok(v.compare(than))
		}
	}
	return false
}

// isComparison says whether it is one at all.
func isComparison(one string) bool {
	rest := strings.TrimLeft(one, "<>=!")
	_, ok := readVersion(rest)
	sign := one[:len(one)-len(rest)]
	for _, c := range comparisons {
		if c.sign == sign {
			return ok
		}
	}
	return false
}

// A version is MAJOR.MINOR.PATCH, and what comes before its release.
type version struct {
	numbers [3]uint64
	before  []string
}

func readVersion(text string) (v version, ok bool) {
	text, _, _ = strings.Cut(text, "+") // a build has no order
	text, before, is := strings.Cut(text, "-")
	if is {
		if v.before = strings.Split(before, "."); slices.Contains(v.before, "") {
			return v, false
		}
	}
	parts := strings.Split(text, ".")
	if len(parts) > len(v.numbers) {
		return v, false
	}
	for i, p := range parts {
		n, err := strconv.ParseUint(p, 10, 63)
		if err != nil || len(p) > 1 && p[0] == '0' || p[0] == '+' {
			return v, false
		}
		v.numbers[i] = n
	}
	return v, true
}

// compare is the order of semver.org 2.0.0, 11.
func (v version) compare(than version) int {
	if c := slices.Compare(v.numbers[:], than.numbers[:]); c != 0 {
		return c
	}
	if len(v.before) == 0 || len(than.before) == 0 { // a release comes after what is before it
		return cmp.Compare(len(than.before), len(v.before))
	}
	return slices.CompareFunc(v.before, than.before, func(a, b string) int {
		x, errX := strconv.ParseUint(a, 10, 63)
		y, errY := strconv.ParseUint(b, 10, 63)
		switch {
		case errX == nil && errY == nil:
			return cmp.Compare(x, y)
		case errX == nil:
			return -1
		case errY == nil:
			return 1
		}
		return strings.Compare(a, b)
	})
}

// readTest reads a test of an attribute.
func readTest(d *keyed.Decoder, n ast.Node, at string, to *Test) error {
	return d.Keys(n, at, []string{"not", "from", "below", "semver"}, func(key, at string, v ast.Node) error {
		switch key {
		case "not":
			return readScalars(d, v, at, &to.Not)
		case "semver":
			return d.Text(v, at, &to.Semver)
		}
		var x float64
		err := d.Float(v, at, &x)
		if key == "from" {
			to.From = &x
		} else {
			to.Below = &x
		}
		return err
	})
}

// fields are those of the normal form.
func (t Test) fields() (out []keyed.Field) {
	if t.Not != nil {
		out = append(out, keyed.FieldOf("not", texts(t.Not)))
	}
	if t.From != nil {
		out = append(out, keyed.FieldOf("from", *t.From))
	}
	if t.Below != nil {
		out = append(out, keyed.FieldOf("below", *t.Below))
	}
	if t.Semver != "" {
		out = append(out, keyed.FieldOf("semver", t.Semver))
	}
	return out
}

func testSchema(value keyed.Object) keyed.Object {
	return keyed.Object{"type": "object", "minProperties": 1, "additionalProperties": false, "properties": keyed.Object{
		"not":  keyed.Object{"anyOf": []any{value, keyed.Object{"type": "array", "minItems": 1, "maxItems": maxOnlyValues, "items": value}}},
		"from": keyed.Object{"type": "number"}, "below": keyed.Object{"type": "number"},
		"semver": keyed.Object{"type": "string"}}}
}

// checkTest says what is wrong with a test.
func (l *Experiment) checkTest(at string, t Test) error {
	switch {
	case t.Not == nil && t.From == nil && t.Below == nil && t.Semver == "":
		return l.fail(at, "says nothing, must have not, from, below or semver")
	case t.From != nil && !finite(*t.From):
		return l.fail(at+".from", "is %v, must be a finite number", *t.From)
	case t.Below != nil && !finite(*t.Below):
		return l.fail(at+".below", "is %v, must be a finite number", *t.Below)
	case t.From != nil && t.Below != nil && !(*t.From < *t.Below):
		return l.fail(at+".below", "is %v, must be above from, %v", *t.Below, *t.From)
	case t.Semver != "" && strings.TrimSpace(t.Semver) == "":
		return l.fail(at+".semver", "is blank, must have comparisons such as >=2.1.0 or <3.0.0")
	case len(t.Semver) > maxOnlyText:
		return l.fail(at+".semver", "has %d bytes, must have at most %d", len(t.Semver), maxOnlyText)
	case t.Not != nil:
		if err := l.checkValues(at+".not", t.Not); err != nil {
			return err
		}
	}
	for _, one := range strings.Fields(t.Semver) {
		if !isComparison(one) {
			return l.fail(at+".semver", "has %q, must have comparisons such as >=2.1.0 or <3.0.0", keyed.Clip(one))
		}
	}
	return nil
}

// checkValues says what is wrong with the values of an attribute.
func (l *Experiment) checkValues(at string, values []string) error {
	if len(values) < 1 || len(values) > maxOnlyValues {
		return l.fail(at, "has %d values, must be from 1 to %d", len(values), maxOnlyValues)
	}
	for i, v := range values {
		if len(v) > maxOnlyText {
			return l.fail(fmt.Sprintf("%s[%d]", at, i), "has %d bytes, must have at most %d", len(v), maxOnlyText)
		}
	}
	return nil
}

func finite(x float64) bool { return math.Abs(x) <= math.MaxFloat64 }
