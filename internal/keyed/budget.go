package keyed

import (
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/sotto-dp/sotto/privacy"
)

// seed is the form of a seed.
func Seed() Form[uint64] {
	return As(Object{"anyOf": []any{Object{"type": "integer", "minimum": 0},
		Object{"type": "string", "pattern": "^[0-9][0-9_]*$"}}, "default": 0},
		func(d *Decoder, n ast.Node, at string, to *uint64) error {
			text, ok := Digits(n)
			if !ok {
				return d.Fail(n, at, "is %s, must be a whole number from 0 to 2^64-1", KindOfNode(n))
			}
			seed, err := ParseSeed(text)
			if err != nil {
				return d.Fail(n, at, "%w", err)
			}
			*to = seed
			return nil
		})
}

func SpanSchema() Object {
	return Object{"type": "array", "items": Object{"type": "number"}, "minItems": 2, "maxItems": 2}
}

const RangeDoc = "declared range of rewards; rewards outside are clipped"

// A BudgetShape is a way to write a budget: the keys are those of the normal form.
type BudgetShape struct {
	example string
	make    func(x map[string]float64) privacy.Budget
}

func PureShape() BudgetShape {
	return BudgetShape{"{epsilon: 1}", func(x map[string]float64) privacy.Budget {
		return privacy.Pure{Epsilon: x["epsilon"]}
	}}
}

// BudgetShapes are all ways, none apart.
func BudgetShapes() []BudgetShape {
	return []BudgetShape{
		PureShape(),
		{"{rho: 0.1}", func(x map[string]float64) privacy.Budget { return privacy.ZCDP{Rho: x["rho"]} }},
		{"{epsilon: 1, delta: 1e-6}", func(x map[string]float64) privacy.Budget {
			return privacy.Approx{Epsilon: x["epsilon"], Delta: x["delta"]}
		}},
		{"{alpha: 8, epsilon: 0.5}", func(x map[string]float64) privacy.Budget {
			return privacy.Renyi{Alpha: x["alpha"], Epsilon: x["epsilon"]}
		}},
	}
}

// BudgetFields are the numbers of a budget, by their keys; that of none has none.
func BudgetFields(b privacy.Budget) []Field {
	switch b := b.(type) {
	case privacy.Pure:
		return []Field{{"epsilon", b.Epsilon}}
	case privacy.ZCDP:
		return []Field{{"rho", b.Rho}}
	case privacy.Approx:
		return []Field{{"epsilon", b.Epsilon}, {"delta", b.Delta}}
	case privacy.Renyi:
		return []Field{{"alpha", b.Alpha}, {"epsilon", b.Epsilon}}
	case privacy.GDP:
		return []Field{{"mu", b.Mu}}
	}
	return nil
}

// keys are those of the shape, in order.
func (s BudgetShape) keys() []string {
	var out []string
	for _, f := range BudgetFields(s.make(nil)) {
		out = append(out, f.Key)
	}
	return out
}

func (s BudgetShape) schema() Object {
	limits := map[string]Object{"delta": {"exclusiveMinimum": 0, "exclusiveMaximum": 1},
		"alpha": {"exclusiveMinimum": 1}}
	properties := Object{}
	for _, name := range s.keys() {
		properties[name] = Object{"type": "number", "exclusiveMinimum": 0}
		if own, ok := limits[name]; ok {
			properties[name] = Clone(own)
			properties[name].(Object)["type"] = "number"
		}
	}
	return Object{"type": "object", "properties": properties, "required": s.keys(),
		"additionalProperties": false}
}

// budget is the form of a budget. The schema has the shapes that somebody takes; all are read, so
// that who takes one of them only says so.
func Budget(taken []BudgetShape) Form[privacy.Budget] {
	return Form[privacy.Budget]{Read: (*Decoder).budget,
		Write: func(b privacy.Budget) (any, error) {
			if f := BudgetFields(b); f != nil {
				return f, nil
			}
			return None, nil
		},
		Schema: func() Object {
			var of []any
			for _, s := range taken {
				of = append(of, s.schema())
			}
			return Object{"oneOf": append(of, Object{"const": None})}
		},
	}
}

func (d *Decoder) budget(n ast.Node, field string, to *privacy.Budget) error {
	var examples, known []string
	for _, s := range BudgetShapes() {
		examples = append(examples, s.example)
		for _, name := range s.keys() {
			if !slices.Contains(known, name) {
				known = append(known, name)
			}
		}
	}
	want := "want " + strings.Join(examples, ", ") + " or " + None
	if s, ok := n.(*ast.StringNode); ok && s.Value == None {
		*to = privacy.None{}
		return nil
	}
	switch n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
	default:
		return d.Fail(n, field, "is %s, %s", KindOfNode(n), want)
	}
	x := map[string]float64{}
	if err := d.Keys(n, field, known, func(key, at string, v ast.Node) error {
		var f float64
		err := d.Float(v, at, &f)
		x[key] = f
		return err
	}); err != nil {
		return err
	}
	for _, s := range BudgetShapes() {
		own := s.keys()
		if len(own) == len(x) && !slices.ContainsFunc(own, func(name string) bool {
			_, given := x[name]
			return !given
		}) {
			*to = s.make(x)
			return nil
		}
	}
	return d.Fail(n, field, "these keys make no budget: %s", want)
}

const None = "none"
