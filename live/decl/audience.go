package decl

import (
	"maps"
	"slices"
	"strconv"

	"github.com/goccy/go-yaml/ast"
	"github.com/sotto-dp/sotto/internal/keyed"
)

// A Layer has experiments that no unit is in two of: each has a range of the units, which are
// between 0 and 1 by a keyed hash that is the layer's.
type Layer struct {
	Name     string  // [a-z0-9._-]+
	From, To float64 // from From on and below To, in [0,1]
}

// Bounds of Only.
const (
	maxOnly       = 20   // keys
	maxOnlyValues = 1000 // of one
	maxOnlyText   = 256  // bytes of a key or a value
)

// For says whether a decision with this public context is one that the experiment is for: each key
// of Only is there, with one of its values, and each of Where, and passes its test. Values are compared as text,
// so that 3 is "3".
func (l *Experiment) For(context map[string]any) bool {
	for key, test := range l.Where {
		if text, ok := scalar(context[key]); !ok || !test.Holds(text) {
			return false
		}
	}
	for key, values := range l.Only {
		if text, ok := scalar(context[key]); !ok || !slices.Contains(values, text) {
			return false
		}
	}
	return true
}

// scalar is a string, a number or a boolean of JSON as text.
func scalar(v any) (text string, ok bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case bool:
		return strconv.FormatBool(v), true
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64), true
	}
	return "", false
}

func layerKeys() []keyed.Key[Layer] {
	within := keyed.Object{"minimum": 0, "maximum": 1}
	return []keyed.Key[Layer]{
		keyed.Always("name", keyed.As(keyed.Object{"type": "string", "pattern": keyed.NameForm.String(), "maxLength": keyed.MaxLabel},
			(*keyed.Decoder).Text), func(l *Layer) *string {
			return &l.Name
		}, "of all experiments of the layer").Must(),
		keyed.Always("from", keyed.Real(keyed.Clone(within)), func(l *Layer) *float64 { return &l.From },
			"where its range of the units begins").Must(),
		keyed.Always("to", keyed.Real(keyed.Clone(within)), func(l *Layer) *float64 { return &l.To }, "and where it ends").Must(),
	}
}

// onlyKey is the key of what context an experiment is for: values of an attribute, or a test of it.
func onlyKey() keyed.Key[Experiment] {
	k := keyed.Key[Experiment]{Name: "only", Doc: "the public context that a decision must have, asked at every decision, also after the stop: " +
		"each key has a value, a list of them, or a test: {not: [free]}, {from: 18, below: 65} of numbers, {semver: \">=2.1.0 <3.0.0\"} of " +
		"versions. A decision without the key is not in",
		Schema: func() keyed.Object {
			value := keyed.Object{"type": []any{"string", "number", "boolean"}}
			return keyed.Object{"type": "object", "minProperties": 1, "maxProperties": maxOnly,
				"additionalProperties": keyed.Object{"anyOf": []any{value,
					keyed.Object{"type": "array", "minItems": 1, "maxItems": maxOnlyValues, "items": value}, testSchema(value)}}}
		},
		Read:  readOnly,
		Given: func(l *Experiment) bool { return l.Only != nil || l.Where != nil },
		Value: func(l *Experiment) (any, error) {
			var out []keyed.Field
			for _, name := range l.attributes() {
				if test, is := l.Where[name]; is {
					out = append(out, keyed.FieldOf(name, test.fields()))
				} else {
					out = append(out, keyed.FieldOf(name, texts(l.Only[name])))
				}
			}
			return out, nil
		}}
	return k.When(k.Given)
}

// attributes are those of Only and Where, in their order.
func (l *Experiment) attributes() []string {
	out := slices.Concat(slices.Collect(maps.Keys(l.Only)), slices.Collect(maps.Keys(l.Where)))
	slices.Sort(out)
	return out
}

// texts are values for the normal form.
func texts(values []string) []any {
	out := make([]any, len(values))
	for i, v := range values {
		out[i] = v
	}
	return out
}

func readOnly(d *keyed.Decoder, n ast.Node, at string, to *Experiment) error {
	values, err := d.Mapping(n, at)
	if err != nil {
		return err
	}
	to.Only = map[string][]string{}
	for _, kv := range values {
		name := kv.Key.GetToken().Value
		place := keyed.Join(at, name)
		switch kv.Value.(type) {
		case *ast.MappingNode, *ast.MappingValueNode:
			var test Test
			if err := readTest(d, kv.Value, place, &test); err != nil {
				return err
			}
			if to.Where == nil {
				to.Where = map[string]Test{}
			}
			to.Where[name] = test
			continue
		}
		var list []string
		if err := readScalars(d, kv.Value, place, &list); err != nil {
			return err
		}
		to.Only[name] = list
	}
	if len(to.Only) == 0 && to.Where != nil {
		to.Only = nil
	}
	return nil
}

// readScalars reads a value, or a list of them.
func readScalars(d *keyed.Decoder, n ast.Node, at string, to *[]string) error {
	if _, list := n.(*ast.SequenceNode); !list {
		text, err := readScalar(d, n, at)
		*to = []string{text}
		return err
	}
	*to = []string{}
	return d.Items(n, at, func(_ int, at string, item ast.Node) error {
		text, err := readScalar(d, item, at)
		*to = append(*to, text)
		return err
	})
}

// scalar is a string, a number or a boolean, as text.
func readScalar(d *keyed.Decoder, n ast.Node, at string) (string, error) {
	v, err := readJSON(d, n, at)
	if err != nil {
		return "", err
	}
	if number, ok := v.(interface{ Float64() (float64, error) }); ok {
		if v, err = number.Float64(); err != nil {
			return "", d.Fail(n, at, "is no number that a float64 can hold")
		}
	}
	text, ok := scalar(v)
	if !ok {
		return "", d.Fail(n, at, "is no string, number or boolean, must be one, or a list of them")
	}
	return text, nil
}

// checkAudience says what is wrong with whom the experiment is for.
func (l *Experiment) checkAudience() error {
	if !(l.Share >= 0 && l.Share <= 1) {
		return l.fail("share", "is %v, must be above 0 and at most 1", l.Share)
	}
	names := l.attributes()
	if len(names) > maxOnly {
		return l.fail("only", "has %d keys, must have at most %d", len(names), maxOnly)
	}
	for i, name := range names {
		at := "only." + name
		test, tested := l.Where[name]
		switch {
		case name == "" || len(name) > maxOnlyText:
			return l.fail("only", "has a key of %d bytes, must be from 1 to %d", len(name), maxOnlyText)
		case i > 0 && names[i-1] == name:
			return l.fail(at, "has values and a test, must have one of them")
		case tested:
			if err := l.checkTest(at, test); err != nil {
				return err
			}
		default:
			if err := l.checkValues(at, l.Only[name]); err != nil {
				return err
			}
		}
	}
	switch y := l.Layer; {
	case y == Layer{}:
	case !keyed.NameForm.MatchString(y.Name) || len(y.Name) > keyed.MaxLabel:
		return l.fail("layer.name", "is %q, must be at most %d characters of a-z, 0-9, dot, dash and "+
			"underscore, the first a letter or digit", keyed.Clip(y.Name), keyed.MaxLabel)
	case !(y.From >= 0 && y.From < 1):
		return l.fail("layer.from", "is %v, must be at least 0 and below 1", y.From)
	case !(y.To > y.From && y.To <= 1):
		return l.fail("layer.to", "is %v, must be above from, %v, and at most 1", y.To, y.From)
	case l.Free:
		return l.fail("layer", "is of units, must be left out where sticky is false and nobody knows them")
	}
	return nil
}
