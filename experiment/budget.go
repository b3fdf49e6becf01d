package experiment

import (
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/sotto-dp/sotto/privacy"
)

// seed is the form of a seed.
func seed() form[uint64] {
	return as(object{"anyOf": []any{object{"type": "integer", "minimum": 0},
		object{"type": "string", "pattern": "^[0-9][0-9_]*$"}}, "default": 0},
		func(d *decoder, n ast.Node, at string, to *uint64) error {
			text, ok := digits(n)
			if !ok {
				return d.fail(n, at, "is %s, must be a whole number from 0 to 2^64-1", kindOfNode(n))
			}
			seed, err := parseSeed(text)
			if err != nil {
				return d.fail(n, at, "%w", err)
			}
			*to = seed
			return nil
		})
}

func spanSchema() object {
	return object{"type": "array", "items": object{"type": "number"}, "minItems": 2, "maxItems": 2}
}

const rangeDoc = "declared range of rewards; rewards outside are clipped"

// A budgetShape is a way to write a budget: the keys are those of the normal form.
type budgetShape struct {
	example string
	make    func(x map[string]float64) privacy.Budget
}

func pureShape() budgetShape {
	return budgetShape{"{epsilon: 1}", func(x map[string]float64) privacy.Budget {
		return privacy.Pure{Epsilon: x["epsilon"]}
	}}
}

// budgetShapes are all ways, none apart.
func budgetShapes() []budgetShape {
	return []budgetShape{
		pureShape(),
		{"{rho: 0.1}", func(x map[string]float64) privacy.Budget { return privacy.ZCDP{Rho: x["rho"]} }},
		{"{epsilon: 1, delta: 1e-6}", func(x map[string]float64) privacy.Budget {
			return privacy.Approx{Epsilon: x["epsilon"], Delta: x["delta"]}
		}},
		{"{alpha: 8, epsilon: 0.5}", func(x map[string]float64) privacy.Budget {
			return privacy.Renyi{Alpha: x["alpha"], Epsilon: x["epsilon"]}
		}},
	}
}

// budgetFields are the numbers of a budget, by their keys; that of none has none.
func budgetFields(b privacy.Budget) []field {
	switch b := b.(type) {
	case privacy.Pure:
		return []field{{"epsilon", b.Epsilon}}
	case privacy.ZCDP:
		return []field{{"rho", b.Rho}}
	case privacy.Approx:
		return []field{{"epsilon", b.Epsilon}, {"delta", b.Delta}}
	case privacy.Renyi:
		return []field{{"alpha", b.Alpha}, {"epsilon", b.Epsilon}}
	case privacy.GDP:
		return []field{{"mu", b.Mu}}
	}
	return nil
}

// keys are those of the shape, in order.
func (s budgetShape) keys() []string {
	var out []string
	for _, f := range budgetFields(s.make(nil)) {
		out = append(out, f.key)
	}
	return out
}

func (s budgetShape) schema() object {
	limits := map[string]object{"delta": {"exclusiveMinimum": 0, "exclusiveMaximum": 1},
		"alpha": {"exclusiveMinimum": 1}}
	properties := object{}
	for _, name := range s.keys() {
		properties[name] = object{"type": "number", "exclusiveMinimum": 0}
		if own, ok := limits[name]; ok {
			properties[name] = clone(own)
			properties[name].(object)["type"] = "number"
		}
	}
	return object{"type": "object", "properties": properties, "required": s.keys(),
		"additionalProperties": false}
}

// budget is the form of a budget. The schema has the shapes that somebody takes; all are read, so
// that who takes one of them only says so.
func budget(taken []budgetShape) form[privacy.Budget] {
	return form[privacy.Budget]{read: (*decoder).budget,
		write: func(b privacy.Budget) (any, error) {
			if f := budgetFields(b); f != nil {
				return f, nil
			}
			return none, nil
		},
		schema: func() object {
			var of []any
			for _, s := range taken {
				of = append(of, s.schema())
			}
			return object{"oneOf": append(of, object{"const": none})}
		},
	}
}

func (d *decoder) budget(n ast.Node, field string, to *privacy.Budget) error {
	var examples, known []string
	for _, s := range budgetShapes() {
		examples = append(examples, s.example)
		for _, name := range s.keys() {
			if !slices.Contains(known, name) {
				known = append(known, name)
			}
		}
	}
	want := "want " + strings.Join(examples, ", ") + " or " + none
	if s, ok := n.(*ast.StringNode); ok && s.Value == none {
		*to = privacy.None{}
		return nil
	}
	switch n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
	default:
		return d.fail(n, field, "is %s, %s", kindOfNode(n), want)
	}
	x := map[string]float64{}
	if err := d.keys(n, field, known, func(key, at string, v ast.Node) error {
		var f float64
		err := d.float(v, at, &f)
		x[key] = f
		return err
	}); err != nil {
		return err
	}
	for _, s := range budgetShapes() {
		own := s.keys()
		if len(own) == len(x) && !slices.ContainsFunc(own, func(name string) bool {
			_, given := x[name]
			return !given
		}) {
			*to = s.make(x)
			return nil
		}
	}
	return d.fail(n, field, "these keys make no budget: %s", want)
}

const none = "none"
