package keyed

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/sotto-dp/sotto/catalog"
)

// A policyForm is how a file names a policy of a catalog, with its parameters. P is what holds it.
type PolicyForm[P any] struct {
	Known  catalog.Catalog
	Bandit string // the kind that the policies play
	Name   func(*P) *string
	Params func(*P) *catalog.Params
	// the keys of an entry: those that a file may give, those of the normal form, and those that the
	// schema shows
	Keys, Normal, Shown func(catalog.Entry) []Key[P]
	// Program is where a policy that is a program of somebody else is, {policy: {exec: …}}; nil where
	// there can be none, and NoProgram then says why.
	Program   func(*P) *catalog.Program
	NoProgram string
}

func (f PolicyForm[P]) Form() Form[P] {
	return Form[P]{Read: f.read,
		Write: func(p P) (any, error) {
			if f.Program != nil && f.Program(&p).Args != nil {
				return NormalOf(f.ofProgram(f.Normal), &p)
			}
			entry, err := f.Known.Find(f.Bandit, *f.Name(&p))
			if err != nil { // checks say so; parameters are numbers then
				for _, name := range slices.Sorted(maps.Keys(*f.Params(&p))) {
					entry.Params = append(entry.Params, catalog.Param{Name: name})
				}
			}
			return NormalOf(f.Normal(entry), &p)
		},
		Schema: func() Object { return Object{"oneOf": f.schemas()} },
	}
}

// read reads {policy: NAME, PARAMETER: VALUE, …}, or NAME alone: the name first, as the other keys
// depend on it.
func (f PolicyForm[P]) read(d *Decoder, n ast.Node, field string, to *P) error {
	name := f.Name(to)
	if s, ok := n.(*ast.StringNode); ok {
		*name = s.Value
		if _, err := f.Known.Find(f.Bandit, *name); err != nil {
			return d.Fail(n, field, "%w", err)
		}
		return nil
	}
	values, err := d.Mapping(n, field)
	if err != nil {
		return err
	}
	for _, kv := range values {
		if kv.Key.GetToken().Value != "policy" {
			continue
		}
		switch kv.Value.(type) {
		case *ast.MappingNode, *ast.MappingValueNode:
			if f.Program == nil {
				return f.refused(d, kv.Value, field+".policy")
			}
			return ReadKeys(d, n, field, f.ofProgram(f.Keys), to)
		}
		if err := d.Text(kv.Value, field+".policy", name); err != nil {
			return err
		}
		entry, err := f.Known.Find(f.Bandit, *name)
		if err != nil {
			return d.Fail(kv.Value, field+".policy", "%w", err)
		}
		return ReadKeys(d, n, field, f.Keys(entry), to)
	}
	if slices.ContainsFunc(values, func(kv *ast.MappingValueNode) bool { return kv.Key.GetToken().Value == "exec" }) {
		if f.Program == nil {
			return f.refused(d, n, field)
		}
		return d.Fail(n, field, "has exec, must have it in the policy: {policy: {exec: […]}}")
	}
	return d.Fail(n, field, "names no policy, must say policy: NAME")
}

func (f PolicyForm[P]) refused(d *Decoder, n ast.Node, field string) error {
	return d.Fail(n, field, "is a program, must be the name of a policy: %s", f.NoProgram)
}

// ofProgram are the keys of a policy that is a program: it has no parameters but its arguments.
func (f PolicyForm[P]) ofProgram(of func(catalog.Entry) []Key[P]) []Key[P] {
	keys := slices.Clone(of(catalog.Entry{Private: true, Bandit: f.Bandit}))
	for i := range keys {
		if keys[i].Name == "policy" {
			keys[i] = Always("policy", Mapped(programKeys), f.Program, "a program of somebody else").Must()
		}
	}
	return keys
}

func programKeys() []Key[catalog.Program] {
	return []Key[catalog.Program]{
		Always("exec", Many(Filled(", must be a command or an argument of it"), Object{"minItems": 1}),
			func(p *catalog.Program) *[]string { return &p.Args },
			"the command and its arguments; paths begin where the file is").Must(),
		Of("seconds", Positive(Object{"exclusiveMinimum": 0}), func(p *catalog.Program) *float64 { return &p.Seconds },
			"allowed for an answer; 10 if it is not given"),
	}
}

// schemas are policies, and their names alone.
func (f PolicyForm[P]) schemas() []any {
	var out, all []any
	for _, e := range f.Known.For(f.Bandit) {
		all = append(all, e.Name)
		s := SchemaOf(f.Shown(e))
		s["properties"].(Object)["policy"] = Object{"const": e.Name}
		s["title"] = e.Title
		s["description"] = fmt.Sprintf("Privacy: %s. Regret: %s. Source: %s.", e.Guarantee, e.Regret, e.Source)
		out = append(out, s)
	}
	if f.Program != nil {
		s := SchemaOf(f.ofProgram(f.Shown))
		s["title"] = "A program"
		s["description"] = "A process that is given releases and asked for plays (contrib/python/README.md)."
		out = append(out, s)
	}
	return append(out, Object{"enum": all})
}

// ParamKeys are an entry's parameters as keys, by name.
func ParamKeys[P any](e catalog.Entry, at func(*P) *catalog.Params) []Key[P] {
	var keys []Key[P]
	for _, q := range slices.SortedFunc(slices.Values(e.Params), func(a, b catalog.Param) int {
		return strings.Compare(a.Name, b.Name)
	}) {
		keys = append(keys, paramKey(q, at))
	}
	return keys
}

func paramKey[P any](q catalog.Param, at func(*P) *catalog.Params) Key[P] {
	return Key[P]{Name: q.Name,
		Given:  func(p *P) bool { _, ok := (*at(p))[q.Name]; return ok },
		Schema: func() Object { return paramSchema(q) },
		Read: func(d *Decoder, n ast.Node, place string, to *P) error {
			var x float64
			var err error
			switch {
			case q.Flag:
				var yes bool
				if err = d.Flag(n, place, &yes); yes {
					x = 1
				}
			case q.Choices != nil:
				var text string
				if err := d.Text(n, place, &text); err != nil {
					return err
				}
				if x, err = q.Parse(text); err != nil {
					err = d.Fail(n, place, "%w", err)
				}
			default:
				err = d.Float(n, place, &x)
			}
			params := at(to)
			if *params == nil {
				*params = catalog.Params{}
			}
			(*params)[q.Name] = x
			return err
		},
		Value: func(p *P) (any, error) {
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
