package flags

import (
	"strings"

	"github.com/alecthomas/kong"

	"github.com/sotto-dp/sotto/bandit"
	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/privacy"
)

// A Policy is the name of a policy and its parameters, as in adap-ucb:alpha=4.
type Policy struct {
	Name     string
	field    string
	settings [][2]string
	text     string
}

// String is the policy as it was given.
func (p Policy) String() string { return p.text }

// Decode implements kong.MapperValue.
func (p *Policy) Decode(ctx *kong.DecodeContext) error {
	text, _, err := pop(ctx)
	if err != nil {
		return err
	}
	*p, err = policy(field(ctx.Value), text)
	return err
}

func policy(field, text string) (Policy, error) {
	parts := strings.Split(text, ":")
	p := Policy{Name: parts[0], field: field, text: text}
	for i, setting := range parts[1:] {
		name, value, ok := strings.Cut(setting, "=")
		if !ok {
			return p, &Error{Field: field, Value: text, Must: "NAME:PARAMETER=VALUE:…"}
		}
		for _, s := range p.settings[:i] {
			if s[0] == name {
				return p, &Error{Field: field, Value: text,
					Must: "NAME:PARAMETER=VALUE:… with parameters that differ: " + name + " is given twice"}
			}
		}
		p.settings = append(p.settings, [2]string{name, value})
	}
	return p, nil
}

// Find is the policy among those for a kind of bandit, and the parameters that are given.
func (p Policy) Find(known catalog.Catalog, bandit string) (catalog.Entry, catalog.Params, error) {
	e, err := known.Find(bandit, p.Name)
	if err != nil {
		return e, nil, &Error{Field: p.field, Err: err}
	}
	params := catalog.Params{}
	for _, s := range p.settings {
		param, _ := e.Param(s[0]) // Complete tells of an unknown one
		param.Name = s[0]
		if params[s[0]], err = param.Parse(s[1]); err != nil {
			return e, nil, &Error{Field: p.field, Err: err}
		}
	}
	if _, err := e.Complete(params); err != nil {
		return e, nil, &Error{Field: p.field, Err: err}
	}
	if len(params) == 0 {
		params = nil
	}
	return e, params, nil
}

// Policies are some, divided by commas.
type Policies struct{ List []Policy }

// Decode implements kong.MapperValue.
func (p *Policies) Decode(ctx *kong.DecodeContext) error {
	text, _, err := pop(ctx)
	if err != nil {
		return err
	}
	p.List = nil
	for _, one := range outside(text) {
		q, err := policy(field(ctx.Value), one)
		if err != nil {
			return err
		}
		p.List = append(p.List, q)
	}
	return nil
}

// Arms are laws of rewards, divided by commas.
type Arms struct {
	Laws  []bandit.Law
	Texts []string // each as it was given
}

// Decode implements kong.MapperValue.
func (a *Arms) Decode(ctx *kong.DecodeContext) error {
	text, _, err := pop(ctx)
	if err != nil {
		return err
	}
	if a.Texts, a.Laws, err = laws(text); err != nil {
		return &Error{Field: field(ctx.Value), Err: err}
	}
	return nil
}

// String is the arms as they were given.
func (a Arms) String() string { return strings.Join(a.Texts, ",") }

// Set says whether there are any.
func (a Arms) Set() bool { return a.Texts != nil }

// Changes are rounds from which on there are other arms, each ROUND:ARM,….
type Changes []Change

// A Change is arms from a round on.
type Change struct {
	From int
	Arms
}

// Laws are the changes as an instance has them.
func (c Changes) Laws() []bandit.Change {
	var out []bandit.Change
	for _, x := range c {
		out = append(out, bandit.Change{From: x.From, Arms: x.Arms.Laws})
	}
	return out
}

// Decode implements kong.MapperValue: it adds one.
func (c *Changes) Decode(ctx *kong.DecodeContext) error {
	text, bad, err := pop(ctx)
	if err != nil {
		return err
	}
	round, arms, _ := strings.Cut(text, ":")
	n, err := keyed.ParseCount(round)
	if err != nil || n < 2 || arms == "" {
		return bad("a round from 2 on, a colon and arms, as in 50001:0.6,0.75")
	}
	x := Change{From: int(n)}
	if x.Arms.Texts, x.Arms.Laws, err = laws(arms); err != nil {
		return &Error{Field: field(ctx.Value), Err: err}
	}
	*c = append(*c, x)
	return nil
}

// laws reads laws between commas.
func laws(text string) (texts []string, laws []bandit.Law, err error) {
	texts = outside(text)
	for _, one := range texts {
		l, err := bandit.ParseLaw(one)
		if err != nil {
			return nil, nil, err
		}
		laws = append(laws, l)
	}
	return texts, laws, nil
}

// outside splits at commas that are not inside parentheses.
func outside(text string) []string {
	var out []string
	depth, from := 0, 0
	for i, r := range text {
		switch {
		case r == '(':
			depth++
		case r == ')':
			depth--
		case r == ',' && depth == 0:
			out = append(out, strings.TrimSpace(text[from:i]))
			from = i + 1
		}
	}
	return append(out, strings.TrimSpace(text[from:]))
}

// A Budget is one such as epsilon=1,delta=1e-6; nil if it was not given.
type Budget struct{ privacy.Budget }

// Decode implements kong.MapperValue.
func (b *Budget) Decode(ctx *kong.DecodeContext) error {
	text, _, err := pop(ctx)
	if err != nil {
		return err
	}
	if b.Budget, err = privacy.ParseBudget(text); err == nil {
		err = b.Validate()
	}
	if err != nil {
		return &Error{Field: field(ctx.Value), Err: err}
	}
	return nil
}
