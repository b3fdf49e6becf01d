package experiment

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/sotto-dp/sotto/catalog"
)

// A policyForm is how a file names a policy of a catalog, with its parameters. P is what holds it.
type policyForm[P any] struct {
	known  catalog.Catalog
	bandit string // the kind that the policies play
	name   func(*P) *string
	params func(*P) *catalog.Params
	// the keys of an entry: those that a file may give, those of the normal form, and those that the
	// schema shows
	keys, normal, shown func(catalog.Entry) []key[P]
}

func (f policyForm[P]) form() form[P] {
	return form[P]{read: f.read,
		write: func(p P) (any, error) {
			entry, err := f.known.Find(f.bandit, *f.name(&p))
			if err != nil { // checks say so; parameters are numbers then
				for _, name := range slices.Sorted(maps.Keys(*f.params(&p))) {
					entry.Params = append(entry.Params, catalog.Param{Name: name})
				}
			}
			return normalOf(f.normal(entry), &p)
		},
		schema: func() object { return object{"oneOf": f.schemas()} },
	}
}

// read reads {policy: NAME, PARAMETER: VALUE, …}, or NAME alone: the name first, as the other keys
// depend on it.
func (f policyForm[P]) read(d *decoder, n ast.Node, field string, to *P) error {
	name := f.name(to)
	if s, ok := n.(*ast.StringNode); ok {
		*name = s.Value
		if _, err := f.known.Find(f.bandit, *name); err != nil {
			return d.fail(n, field, "%w", err)
		}
		return nil
	}
	values, err := d.mapping(n, field)
	if err != nil {
		return err
	}
	for _, kv := range values {
		if kv.Key.GetToken().Value != "policy" {
			continue
		}
		if err := d.text(kv.Value, field+".policy", name); err != nil {
			return err
		}
		entry, err := f.known.Find(f.bandit, *name)
		if err != nil {
			return d.fail(kv.Value, field+".policy", "%w", err)
		}
		return readKeys(d, n, field, f.keys(entry), to)
	}
	return d.fail(n, field, "names no policy, must say policy: NAME")
}

// schemas are policies, and their names alone.
func (f policyForm[P]) schemas() []any {
	var out, all []any
	for _, e := range f.known.For(f.bandit) {
		all = append(all, e.Name)
		s := schemaOf(f.shown(e))
		s["properties"].(object)["policy"] = object{"const": e.Name}
		s["title"] = e.Title
		s["description"] = fmt.Sprintf("Privacy: %s. Regret: %s. Source: %s.", e.Guarantee, e.Regret, e.Source)
		out = append(out, s)
	}
	return append(out, object{"enum": all})
}

// paramKeys are an entry's parameters as keys, by name.
func paramKeys[P any](e catalog.Entry, at func(*P) *catalog.Params) []key[P] {
	var keys []key[P]
	for _, q := range slices.SortedFunc(slices.Values(e.Params), func(a, b catalog.Param) int {
		return strings.Compare(a.Name, b.Name)
	}) {
		keys = append(keys, paramKey(q, at))
	}
	return keys
}

func paramKey[P any](q catalog.Param, at func(*P) *catalog.Params) key[P] {
	return key[P]{name: q.Name,
		given:  func(p *P) bool { _, ok := (*at(p))[q.Name]; return ok },
		schema: func() object { return paramSchema(q) },
		read: func(d *decoder, n ast.Node, place string, to *P) error {
			var x float64
			var err error
			switch {
			case q.Flag:
				var yes bool
				if err = d.flag(n, place, &yes); yes {
					x = 1
				}
			case q.Choices != nil:
				var text string
				if err := d.text(n, place, &text); err != nil {
					return err
				}
				if x, err = q.Parse(text); err != nil {
					err = d.fail(n, place, "%w", err)
				}
			default:
				err = d.float(n, place, &x)
			}
			params := at(to)
			if *params == nil {
				*params = catalog.Params{}
			}
			(*params)[q.Name] = x
			return err
		},
		value: func(p *P) (any, error) {
			switch x, ok := (*at(p))[q.Name]; {
			case !ok:
				return nil, nil
			case q.Flag:
				return x != 0, nil
			case q.Choices != nil:
				return q.Text(x), nil
			default:
				return x, nil
			}
		},
	}
}
