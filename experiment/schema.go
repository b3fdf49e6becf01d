package experiment

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/stopping"
)

type object = map[string]any

// Schema is the JSON schema (draft 2020-12) of experiment files, for editors. Policies and their parameters come from the catalog. It
// checks form: what depends on several fields, such as a budget that no policy can meet, only Resolve knows.
func Schema() ([]byte, error) {
	label := object{"type": "string", "minLength": 1, "maxLength": maxLabel}
	// YAML 1.2 reads 10_000_000 as text, so text is allowed.
	count := func(doc string) object {
		return object{"description": doc, "anyOf": []any{
			object{"type": "integer", "minimum": 1, "maximum": MaxCount},
			object{"type": "string", "pattern": `^[0-9][0-9_]*(\.[0-9]+)?([eE]\+?[0-9]+)?$`},
		}}
	}
	span := func(doc string) object {
		return object{"description": doc, "type": "array", "items": object{"type": "number"}, "minItems": 2, "maxItems": 2}
	}
	positive := object{"type": "number", "exclusiveMinimum": 0}
	arms := count("number of arms, at least 2")
	mean := object{"type": "number", "minimum": 0, "maximum": 1}
	instance := func(properties object, required ...string) object {
		properties["name"] = label
		return closed(properties, append([]string{"name"}, required...)...)
	}
	instances := []any{
		instance(object{"bernoulli": object{"description": "means of Bernoulli arms", "type": "array", "items": mean, "minItems": 2}}, "bernoulli"),
		instance(object{"laws": object{"description": "one law an arm: bernoulli(p), gaussian(mean,sd), clipped-gaussian(mean,sd,lo,hi), beta(a,b), uniform(lo,hi), table(v1:p1,v2:p2,…)",
			"type": "array", "items": object{"type": []any{"string", "number"}}, "minItems": 2}}, "laws"),
		instance(object{"standard": object{"description": "a standard instance of Bernoulli arms", "enum": []any{"C1", "C2", "C3", "C4"}}, "arms": arms}, "standard", "arms"),
		instance(object{
			"means":  closed(object{"uniform": span("means are uniform in [low, high]")}, "uniform"),
			"arms":   arms,
			"law":    object{"description": "law of the rewards", "enum": []any{"bernoulli", "gaussian", "clipped-gaussian"}, "default": "bernoulli"},
			"sd":     object{"description": "standard deviation of the Gaussian laws", "type": "number", "exclusiveMinimum": 0},
			"redraw": object{"description": "draw the means anew for each run", "type": "boolean", "default": false},
		}, "means", "arms"),
		instance(object{
			"csv":    object{"description": "logged rewards with the header arm,reward; relative to this file", "type": "string", "minLength": 1},
			"sha256": object{"description": "hash of that file: another one is refused", "type": "string", "pattern": "^[0-9a-fA-F]{64}$"},
		}, "csv"),
	}
	var policies, names []any
	for _, e := range catalog.Policies() {
		names = append(names, e.Name)
		policies = append(policies, policySchema(e, label))
	}
	policies = append(policies, object{"enum": names})
	budgets := []any{
		closed(object{"epsilon": positive}, "epsilon"),
		closed(object{"rho": positive}, "rho"),
		closed(object{"epsilon": positive, "delta": object{"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}}, "epsilon", "delta"),
		closed(object{"alpha": object{"type": "number", "exclusiveMinimum": 1}, "epsilon": positive}, "alpha", "epsilon"),
		object{"const": "none"},
	}
	many := func(doc string, of []any) object {
		return object{"description": doc, "type": "array", "items": object{"oneOf": of}, "minItems": 1}
	}
	name := object{"description": "name of the experiment", "type": "string", "pattern": nameForm.String(), "maxLength": maxLabel}
	seed := object{"description": "seed of all randomness", "anyOf": []any{object{"type": "integer", "minimum": 0}, object{"type": "string", "pattern": "^[0-9][0-9_]*$"}}, "default": 0}
	regret := closed(object{
		"name":        name,
		"description": object{"type": "string"},
		"kind":        object{"description": "policies that play arms", "const": KindRegret, "default": KindRegret},
		"horizon":     count("T, rounds of a run"),
		"runs":        count("runs of each cell"),
		"seed":        seed,
		"checkpoints": object{"description": "how many rounds to look at, log-spaced; or which ones, the last one the horizon", "default": DefaultPoints,
			"anyOf": []any{count("how many, log-spaced"), object{"type": "array", "items": count("a round"), "minItems": 1, "maxItems": MaxPoints}}},
		"range":     span("declared range of rewards; rewards outside are clipped"),
		"unclipped": object{"description": "feed rewards outside the range as they are: no privacy guarantee", "type": "boolean", "default": false},
		"instances": many("where rewards come from", instances),
		"policies":  many("who plays", policies),
		"budgets":   many("each private policy runs at each budget that it can meet; the others run once", budgets),
	}, "name", "horizon", "runs", "instances", "policies")
	share := func(doc string) object {
		return object{"description": doc, "type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}
	}
	var rules []any
	for _, name := range stopping.Names() {
		rules = append(rules, name)
	}
	stop := closed(object{
		"name":        name,
		"description": object{"type": "string"},
		"kind":        object{"description": "stopping rules that sample a law", "const": KindStopping},
		"cap":         count("samples after which a rule gives up"),
		"runs":        count("runs of each cell"),
		"seed":        seed,
		"range":       span("[-R, R], the range of samples, [-1, 1] if not given; samples outside are clipped"),
		"instances": many("the laws of the samples", []any{
			instance(object{"law": object{"description": "bernoulli(p), gaussian(mean,sd), clipped-gaussian(mean,sd,lo,hi), beta(a,b), uniform(lo,hi), table(v1:p1,v2:p2,…)",
				"type": []any{"string", "number"}}}, "law")}),
		"rules": many("who samples", []any{closed(object{"rule": object{"enum": rules}, "name": label,
			"alpha": share("relative error that is allowed"), "beta": share("probability of a larger error")}, "rule", "alpha", "beta")}),
		"budgets": many("each private rule runs at each budget; nas runs once", []any{closed(object{"epsilon": positive}, "epsilon"), object{"const": "none"}}),
	}, "name", "kind", "cap", "runs", "instances", "rules")
	root := object{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Sotto experiment", "type": "object",
		"properties": object{"kind": object{"enum": []any{KindRegret, KindStopping}}},
		"if":         object{"properties": object{"kind": object{"const": KindStopping}}, "required": []any{"kind"}},
		"then":       stop, "else": regret,
	}
	b, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	return append(b, '\n'), nil
}

// closed is an object with these properties and no others.
func closed(properties object, required ...string) object {
	return object{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
}

func policySchema(e catalog.Entry, label object) object {
	properties := object{
		"policy": object{"const": e.Name},
		"name":   label,
	}
	for _, p := range e.Params {
		properties[p.Name] = paramSchema(p)
	}
	s := closed(properties, "policy")
	s["title"] = e.Title
	s["description"] = fmt.Sprintf("Privacy: %s. Regret: %s. Source: %s.", e.Guarantee, e.Regret, e.Source)
	return s
}

func paramSchema(p catalog.Param) object {
	doc := fmt.Sprintf("%s (%s)", p.Doc, p.Allowed())
	if p.DefaultDoc != "" {
		doc += "; default " + p.DefaultDoc
	}
	if p.Theorem != "" {
		doc += fmt.Sprintf("; %s needs it above %v", p.Theorem, p.ProvedLo)
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
