package experiment

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/sotto-dp/sotto/catalog"
)

// A key is a key of a mapping in an experiment's file, said once: a table of them is how the file
// is read, how the normal form is written, the JSON schema, and the reference in
// docs/experiments.md. The normal form has the table's order, and hashes are of it: a table's order
// does not change.
type key[T any] struct {
	name     string
	doc      string // of the schema
	ref      string // of the reference: neighbours that have the same share a row, none has none
	required bool   // of the schema; what is missing Resolve tells
	schema   func() object
	read     func(d *decoder, n ast.Node, at string, to *T) error
	given    func(of *T) bool
	// value is what the normal form has, nil where it leaves the key out.
	value func(of *T) (any, error)
}

// A form is how a value is written in a file.
type form[F any] struct {
	schema func() object
	read   func(d *decoder, n ast.Node, at string, to *F) error
	write  func(F) (any, error)
}

// keyOf is a key of one field, which the normal form has where it is given. The field may be one
// that an owner does not have: then at is nil, unless the key is read.
func keyOf[T, F any](name string, f form[F], at func(*T) *F, doc string) key[T] {
	k := always(name, f, at, doc)
	return k.when(k.given)
}

// when has the normal form leave the key out unless yes.
func (k key[T]) when(yes func(of *T) bool) key[T] {
	value := k.value
	k.value = func(of *T) (any, error) {
		if !yes(of) {
			return nil, nil
		}
		return value(of)
	}
	return k
}

// always is a key of one field that the normal form always has.
func always[T, F any](name string, f form[F], at func(*T) *F, doc string) key[T] {
	return key[T]{name: name, doc: doc, schema: f.schema,
		given: func(of *T) bool {
			p := at(of)
			return p != nil && !reflect.ValueOf(p).Elem().IsZero()
		},
		read: func(d *decoder, n ast.Node, place string, to *T) error {
			return f.read(d, n, place, at(to))
		},
		value: func(of *T) (any, error) {
			if p := at(of); p != nil {
				return f.write(*p)
			}
			var zero F
			return f.write(zero)
		},
	}
}

// or is the key with what the normal form has where it is not given.
func (k key[T]) or(value any) key[T] {
	given, write := k.given, k.value
	k.value = func(of *T) (any, error) {
		if !given(of) {
			return value, nil
		}
		return write(of)
	}
	return k
}

// must is a key that the schema requires.
func (k key[T]) must() key[T] {
	k.required = true
	return k
}

// like is the key with more in its schema: a default, a pattern.
func (k key[T]) like(more object) key[T] {
	schema := k.schema
	k.schema = func() object {
		s := schema()
		for name, value := range more {
			s[name] = value
		}
		return s
	}
	return k
}

// means is the key with its line of the reference.
func (k key[T]) means(ref string) key[T] {
	k.ref = ref
	return k
}

func names[T any](table []key[T]) []string {
	out := make([]string, len(table))
	for i, k := range table {
		out[i] = k.name
	}
	return out
}

func has[T any](table []key[T], name string) bool { return slices.Contains(names(table), name) }

// readKeys reads a mapping by its table.
func readKeys[T any](d *decoder, n ast.Node, field string, table []key[T], to *T) error {
	return d.keys(n, field, names(table), func(name, at string, v ast.Node) error {
		for _, k := range table {
			if k.name == name {
				return k.read(d, v, at, to)
			}
		}
		return nil // d.keys has refused it
	})
}

// normalOf is the normal form of a mapping.
func normalOf[T any](table []key[T], of *T) ([]field, error) {
	var out []field
	for _, k := range table {
		v, err := k.value(of)
		var in *inItem
		if errors.As(err, &in) {
			in.field = k.name + in.field
		}
		if err != nil {
			return nil, err
		}
		if v != nil {
			out = append(out, field{k.name, v})
		}
	}
	return out, nil
}

// mapped is the form of a mapping.
func mapped[T any](table func() []key[T]) form[T] {
	return form[T]{
		schema: func() object { return schemaOf(table()) },
		read: func(d *decoder, n ast.Node, at string, to *T) error {
			return readKeys(d, n, at, table(), to)
		},
		write: func(v T) (any, error) { return normalOf(table(), &v) },
	}
}

// schemaOf is the schema of a mapping.
func schemaOf[T any](table []key[T]) object {
	properties, required := object{}, []string{}
	for _, k := range table {
		s := k.schema()
		if k.doc != "" {
			s["description"] = k.doc
		}
		properties[k.name] = s
		if k.required {
			required = append(required, k.name)
		}
	}
	return object{"type": "object", "properties": properties, "required": required,
		"additionalProperties": false}
}

// The forms of values.

// as is a form whose values are written as they are.
func as[F any](schema object, read func(d *decoder, n ast.Node, at string, to *F) error) form[F] {
	return form[F]{read: read, write: func(v F) (any, error) { return v, nil },
		schema: func() object { return clone(schema) }}
}

func clone(o object) object {
	out := object{}
	for k, v := range o {
		out[k] = v
	}
	return out
}

func text() form[string] { return as(object{"type": "string"}, (*decoder).text) }

// filled is text that is not empty; want says what it should be.
func filled(want string) form[string] {
	return as(object{"type": "string", "minLength": 1},
		func(d *decoder, n ast.Node, at string, to *string) error {
			if err := d.text(n, at, to); err != nil {
				return err
			}
			if *to == "" {
				return d.fail(n, at, "is empty%s", want)
			}
			return nil
		})
}

// label is the name of an instance; called that of a policy or a rule, which need not be given.
func label() form[string] {
	f := text()
	f.schema = labelSchema
	return f
}

func called() form[string] {
	f := filled("")
	f.schema = labelSchema
	return f
}

func labelSchema() object { return object{"type": "string", "minLength": 1, "maxLength": maxLabel} }

// oneOf is a word of several.
func oneOf(known []string) form[string] {
	return as(object{"enum": known}, func(d *decoder, n ast.Node, at string, to *string) error {
		if err := d.text(n, at, to); err != nil {
			return err
		}
		if !slices.Contains(known, *to) {
			return d.fail(n, at, "is %q%s, must be %s", clip(*to), catalog.Hint(clip(*to), known),
				strings.Join(known, ", "))
		}
		return nil
	})
}

func whole() form[Count] {
	f := as(nil, (*decoder).count)
	f.schema = func() object { return countSchema("") }
	return f
}

// countSchema allows text too: YAML 1.2 reads 10_000_000 as text.
func countSchema(doc string) object {
	out := object{"anyOf": []any{
		object{"type": "integer", "minimum": 1, "maximum": MaxCount},
		object{"type": "string", "pattern": `^[0-9][0-9_]*(\.[0-9]+)?([eE]\+?[0-9]+)?$`},
	}}
	if doc != "" {
		out["description"] = doc
	}
	return out
}

func yesNo() form[bool] { return as(object{"type": "boolean", "default": false}, (*decoder).flag) }

func real(schema object) form[float64] {
	schema["type"] = "number"
	return as(schema, (*decoder).float)
}

// positive is a number above 0 whose field is 0 where it is not given: what is said must be another.
func positive(schema object) form[float64] {
	f := real(schema)
	f.read = func(d *decoder, n ast.Node, at string, to *float64) error {
		if err := d.float(n, at, to); err != nil {
			return err
		}
		if *to == 0 {
			return d.fail(n, at, "is 0, must be above 0")
		}
		return nil
	}
	return f
}

// share is a number above 0 and below 1.
func share() form[float64] {
	return real(object{"exclusiveMinimum": 0, "exclusiveMaximum": 1})
}

// many is a list.
func many[F any](f form[F], schema object) form[[]F] {
	return form[[]F]{
		schema: func() object {
			s := clone(schema)
			s["type"] = "array"
			if s["items"] == nil {
				s["items"] = f.schema()
			}
			return s
		},
		read: func(d *decoder, n ast.Node, at string, to *[]F) error {
			*to = []F{}
			return d.items(n, at, func(_ int, at string, item ast.Node) error {
				var v F
				err := f.read(d, item, at, &v)
				*to = append(*to, v)
				return err
			})
		},
		write: func(of []F) (any, error) {
			out := make([]any, len(of))
			for i := range of {
				var err error
				if out[i], err = f.write(of[i]); err != nil {
					return nil, &inItem{fmt.Sprintf("[%d]", i), err}
				}
			}
			return out, nil
		},
	}
}

// inItem is an error in an item of a list, whose key is put before.
type inItem struct {
	field string
	err   error
}

func (e *inItem) Error() string { return e.field + ": " + e.err.Error() }
func (e *inItem) Unwrap() error { return e.err }

func reals(schema object) form[[]float64] { return many(real(object{}), schema) }

type object = map[string]any

func paramSchema(p catalog.Param) object {
	doc := fmt.Sprintf("%s (%s)", p.Doc, p.Allowed())
	if p.DefaultDoc != "" {
		doc += "; default " + p.DefaultDoc
	}
	if proved := p.Proved(); proved != "" {
		doc += "; " + proved
	}
	s := object{"description": doc}
	if p.Flag {
		s["type"], s["default"] = "boolean", p.Default == 1
		return s
	}
	if p.Choices != nil {
		s["enum"], s["default"] = p.Choices, p.Text(p.Default)
		return s
	}
	s["type"] = "number"
	if p.Integer {
		s["type"] = "integer"
	}
	if !math.IsNaN(p.Default) {
		s["default"] = p.Default
	}
	if !math.IsInf(p.Lo, -1) {
		s[either(p.LoIn, "minimum", "exclusiveMinimum")] = p.Lo
	}
	if !math.IsInf(p.Hi, 1) {
		s[either(p.HiIn, "maximum", "exclusiveMaximum")] = p.Hi
	}
	return s
}

func either(b bool, yes, no string) string {
	if b {
		return yes
	}
	return no
}
