// Package keyed reads YAML files by tables of keys: a [Key] is said once, and its reader, normal form,
// JSON schema and line of the reference are made of it. Begin with [Of], [Mapped] and [ReadKeys].
//
// Files are read strictly, and errors say where: line, column, field, and what was probably meant.
package keyed

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
type Key[T any] struct {
	Name     string
	Doc      string // of the schema
	Ref      string // of the reference: neighbours that have the same share a row, none has none
	Required bool   // of the schema; what is missing Resolve tells
	Schema   func() Object
	Read     func(d *Decoder, n ast.Node, at string, to *T) error
	Given    func(of *T) bool
	// value is what the normal form has, nil where it leaves the key out.
	Value func(of *T) (any, error)
}

// A form is how a value is written in a file.
type Form[F any] struct {
	Schema func() Object
	Read   func(d *Decoder, n ast.Node, at string, to *F) error
	Write  func(F) (any, error)
}

// Of is a key of one field, which the normal form has where it is given. The field may be one
// that an owner does not have: then at is nil, unless the key is read.
func Of[T, F any](name string, f Form[F], at func(*T) *F, doc string) Key[T] {
	k := Always(name, f, at, doc)
	return k.When(k.Given)
}

// when has the normal form leave the key out unless yes.
func (k Key[T]) When(yes func(of *T) bool) Key[T] {
	value := k.Value
	k.Value = func(of *T) (any, error) {
		if !yes(of) {
			return nil, nil
		}
		return value(of)
	}
	return k
}

// Always is a key of one field that the normal form always has.
func Always[T, F any](name string, f Form[F], at func(*T) *F, doc string) Key[T] {
	return Key[T]{Name: name, Doc: doc, Schema: f.Schema,
		Given: func(of *T) bool {
			p := at(of)
			return p != nil && !reflect.ValueOf(p).Elem().IsZero()
		},
		Read: func(d *Decoder, n ast.Node, place string, to *T) error {
			return f.Read(d, n, place, at(to))
		},
		Value: func(of *T) (any, error) {
			if p := at(of); p != nil {
				return f.Write(*p)
			}
			var zero F
			return f.Write(zero)
		},
	}
}

// or is the key with what the normal form has where it is not given.
func (k Key[T]) Or(value any) Key[T] {
	given, write := k.Given, k.Value
	k.Value = func(of *T) (any, error) {
		if !given(of) {
			return value, nil
		}
		return write(of)
	}
	return k
}

// must is a key that the schema requires.
func (k Key[T]) Must() Key[T] {
	k.Required = true
	return k
}

// like is the key with more in its schema: a default, a pattern.
func (k Key[T]) Like(more Object) Key[T] {
	schema := k.Schema
	k.Schema = func() Object {
		s := schema()
		for name, value := range more {
			s[name] = value
		}
		return s
	}
	return k
}

// means is the key with its line of the reference.
func (k Key[T]) Means(ref string) Key[T] {
	k.Ref = ref
	return k
}

func Names[T any](table []Key[T]) []string {
	out := make([]string, len(table))
	for i, k := range table {
		out[i] = k.Name
	}
	return out
}

func Has[T any](table []Key[T], name string) bool { return slices.Contains(Names(table), name) }

// ReadKeys reads a mapping by its table.
func ReadKeys[T any](d *Decoder, n ast.Node, field string, table []Key[T], to *T) error {
	return d.Keys(n, field, Names(table), func(name, at string, v ast.Node) error {
		for _, k := range table {
			if k.Name == name {
				return k.Read(d, v, at, to)
			}
		}
		return nil // d.keys has refused it
	})
}

// NormalOf is the normal form of a mapping.
func NormalOf[T any](table []Key[T], of *T) ([]Field, error) {
	var out []Field
	for _, k := range table {
		v, err := k.Value(of)
		var in *InItem
		if errors.As(err, &in) {
			in.Field = k.Name + in.Field
		}
		if err != nil {
			return nil, err
		}
		if v != nil {
			out = append(out, Field{k.Name, v})
		}
	}
	return out, nil
}

// Mapped is the form of a mapping.
func Mapped[T any](table func() []Key[T]) Form[T] {
	return Form[T]{
		Schema: func() Object { return SchemaOf(table()) },
		Read: func(d *Decoder, n ast.Node, at string, to *T) error {
			return ReadKeys(d, n, at, table(), to)
		},
		Write: func(v T) (any, error) { return NormalOf(table(), &v) },
	}
}

// SchemaOf is the schema of a mapping.
func SchemaOf[T any](table []Key[T]) Object {
	properties, required := Object{}, []string{}
	for _, k := range table {
		s := k.Schema()
		if k.Doc != "" {
			s["description"] = k.Doc
		}
		properties[k.Name] = s
		if k.Required {
			required = append(required, k.Name)
		}
	}
	return Object{"type": "object", "properties": properties, "required": required,
		"additionalProperties": false}
}

// The forms of values.

// as is a form whose values are written as they are.
func As[F any](schema Object, read func(d *Decoder, n ast.Node, at string, to *F) error) Form[F] {
	return Form[F]{Read: read, Write: func(v F) (any, error) { return v, nil },
		Schema: func() Object { return Clone(schema) }}
}

func Clone(o Object) Object {
	out := Object{}
	for k, v := range o {
		out[k] = v
	}
	return out
}

func Text() Form[string] { return As(Object{"type": "string"}, (*Decoder).Text) }

// filled is text that is not empty; want says what it should be.
func Filled(want string) Form[string] {
	return As(Object{"type": "string", "minLength": 1},
		func(d *Decoder, n ast.Node, at string, to *string) error {
			if err := d.Text(n, at, to); err != nil {
				return err
			}
			if *to == "" {
				return d.Fail(n, at, "is empty%s", want)
			}
			return nil
		})
}

// label is the name of an instance; called that of a policy or a rule, which need not be given.
func Label() Form[string] {
	f := Text()
	f.Schema = LabelSchema
	return f
}

func Called() Form[string] {
	f := Filled("")
	f.Schema = LabelSchema
	return f
}

func LabelSchema() Object { return Object{"type": "string", "minLength": 1, "maxLength": MaxLabel} }

// OneOf is a word of several.
func OneOf(known []string) Form[string] {
	return As(Object{"enum": known}, func(d *Decoder, n ast.Node, at string, to *string) error {
		if err := d.Text(n, at, to); err != nil {
			return err
		}
		if !slices.Contains(known, *to) {
			return d.Fail(n, at, "is %q%s, must be %s", Clip(*to), catalog.Hint(Clip(*to), known),
				strings.Join(known, ", "))
		}
		return nil
	})
}

func Whole() Form[Count] {
	f := As(nil, (*Decoder).Count)
	f.Schema = func() Object { return CountSchema("") }
	return f
}

// CountSchema allows text too: YAML 1.2 reads 10_000_000 as text.
func CountSchema(doc string) Object {
	out := Object{"anyOf": []any{
		Object{"type": "integer", "minimum": 1, "maximum": MaxCount},
		Object{"type": "string", "pattern": `^[0-9][0-9_]*(\.[0-9]+)?([eE]\+?[0-9]+)?$`},
	}}
	if doc != "" {
		out["description"] = doc
	}
	return out
}

func YesNo() Form[bool] { return As(Object{"type": "boolean", "default": false}, (*Decoder).Flag) }

func Real(schema Object) Form[float64] {
	schema["type"] = "number"
	return As(schema, (*Decoder).Float)
}

// positive is a number above 0 whose field is 0 where it is not given: what is said must be another.
func Positive(schema Object) Form[float64] {
	f := Real(schema)
	f.Read = func(d *Decoder, n ast.Node, at string, to *float64) error {
		if err := d.Float(n, at, to); err != nil {
			return err
		}
		if *to == 0 {
			return d.Fail(n, at, "is 0, must be above 0")
		}
		return nil
	}
	return f
}

// share is a number above 0 and below 1.
func Share() Form[float64] {
	return Real(Object{"exclusiveMinimum": 0, "exclusiveMaximum": 1})
}

// many is a list.
func Many[F any](f Form[F], schema Object) Form[[]F] {
	return Form[[]F]{
		Schema: func() Object {
			s := Clone(schema)
			s["type"] = "array"
			if s["items"] == nil {
				s["items"] = f.Schema()
			}
			return s
		},
		Read: func(d *Decoder, n ast.Node, at string, to *[]F) error {
			*to = []F{}
			return d.Items(n, at, func(_ int, at string, item ast.Node) error {
				var v F
				err := f.Read(d, item, at, &v)
				*to = append(*to, v)
				return err
			})
		},
		Write: func(of []F) (any, error) {
			out := make([]any, len(of))
			for i := range of {
				var err error
				if out[i], err = f.Write(of[i]); err != nil {
					return nil, &InItem{fmt.Sprintf("[%d]", i), err}
				}
			}
			return out, nil
		},
	}
}

// InItem is an error in an item of a list, whose key is put before.
type InItem struct {
	Field string
	Err   error
}

func (e *InItem) Error() string { return e.Field + ": " + e.Err.Error() }
func (e *InItem) Unwrap() error { return e.Err }

func Reals(schema Object) Form[[]float64] { return Many(Real(Object{}), schema) }

type Object = map[string]any

func paramSchema(p catalog.Param) Object {
	doc := fmt.Sprintf("%s (%s)", p.Doc, p.Allowed())
	if p.DefaultDoc != "" {
		doc += "; default " + p.DefaultDoc
	}
	if proved := p.Proved(); proved != "" {
		doc += "; " + proved
	}
	s := Object{"description": doc}
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
		s[Either(p.LoIn, "minimum", "exclusiveMinimum")] = p.Lo
	}
	if !math.IsInf(p.Hi, 1) {
		s[Either(p.HiIn, "maximum", "exclusiveMaximum")] = p.Hi
	}
	return s
}

func Either(b bool, yes, no string) string {
	if b {
		return yes
	}
	return no
}
