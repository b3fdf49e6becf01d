package decl

import (
	"fmt"
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
// of Only is there, with one of its values. Values are compared as text, so that 3 is "3".
func (l *Experiment) For(context map[string]any) bool {
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

// only is the form of what context an experiment is for.
func only() keyed.Form[map[string][]string] {
	value := keyed.Object{"type": []any{"string", "number", "boolean"}}
	return keyed.Form[map[string][]string]{
		Schema: func() keyed.Object {
			return keyed.Object{"type": "object", "minProperties": 1, "maxProperties": maxOnly,
				"additionalProperties": keyed.Object{"anyOf": []any{value,
					keyed.Object{"type": "array", "minItems": 1, "maxItems": maxOnlyValues, "items": value}}}}
		},
		Read: readOnly,
		Write: func(of map[string][]string) (any, error) {
			var out []keyed.Field
			for _, name := range slices.Sorted(maps.Keys(of)) {
				values := make([]any, len(of[name]))
				for i, v := range of[name] {
					values[i] = v
				}
				out = append(out, keyed.FieldOf(name, values))
			}
			return out, nil
		},
	}
}

func readOnly(d *keyed.Decoder, n ast.Node, at string, to *map[string][]string) error {
	values, err := d.Mapping(n, at)
	if err != nil {
		return err
	}
	*to = map[string][]string{}
	for _, kv := range values {
		name := kv.Key.GetToken().Value
		place := keyed.Join(at, name)
		if _, list := kv.Value.(*ast.SequenceNode); !list {
			text, err := readScalar(d, kv.Value, place)
			if err != nil {
				return err
			}
			(*to)[name] = []string{text}
			continue
		}
		(*to)[name] = []string{}
		if err := d.Items(kv.Value, place, func(_ int, place string, item ast.Node) error {
			text, err := readScalar(d, item, place)
			(*to)[name] = append((*to)[name], text)
			return err
		}); err != nil {
			return err
		}
	}
	return nil
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
	if len(l.Only) > maxOnly {
		return l.fail("only", "has %d keys, must have at most %d", len(l.Only), maxOnly)
	}
	for _, name := range slices.Sorted(maps.Keys(l.Only)) {
		at, values := "only."+name, l.Only[name]
		if name == "" || len(name) > maxOnlyText {
			return l.fail("only", "has a key of %d bytes, must be from 1 to %d", len(name), maxOnlyText)
		}
		if len(values) < 1 || len(values) > maxOnlyValues {
			return l.fail(at, "has %d values, must be from 1 to %d", len(values), maxOnlyValues)
		}
		for i, v := range values {
			if len(v) > maxOnlyText {
				return l.fail(fmt.Sprintf("%s[%d]", at, i), "has %d bytes, must have at most %d",
					len(v), maxOnlyText)
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
