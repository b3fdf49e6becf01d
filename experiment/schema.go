package experiment

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/stopping"
)

type object = map[string]any

// Schema is the JSON schema (draft 2020-12) of experiment files, for editors. Policies and their
// parameters come from the reader's catalog. It checks form: what depends on several fields, such as a
// budget that no policy can meet, only Resolve knows.
func (r Reader) Schema() ([]byte, error) {
	label := object{"type": "string", "minLength": 1, "maxLength": maxLabel}
	// YAML 1.2 reads 10_000_000 as text, so text is allowed.
	count := func(doc string) object {
		return object{"description": doc, "anyOf": []any{
			object{"type": "integer", "minimum": 1, "maximum": MaxCount},
			object{"type": "string", "pattern": `^[0-9][0-9_]*(\.[0-9]+)?([eE]\+?[0-9]+)?$`},
		}}
	}
	span := func(doc string) object {
		return object{"description": doc, "type": "array", "items": object{"type": "number"},
			"minItems": 2, "maxItems": 2}
	}
	positive := object{"type": "number", "exclusiveMinimum": 0}
	arms := count("number of arms, at least 2")
	mean := object{"type": "number", "minimum": 0, "maximum": 1}
	instance := func(properties object, required ...string) object {
		properties["name"] = label
		return closed(properties, append([]string{"name"}, required...)...)
	}
	instances := []any{
		instance(object{"bernoulli": object{"description": "means of Bernoulli arms",
			"type": "array", "items": mean, "minItems": 2}}, "bernoulli"),
		instance(object{"laws": object{"description": "one law an arm: bernoulli(p), " +
			"gaussian(mean,sd), clipped-gaussian(mean,sd,lo,hi), beta(a,b), uniform(lo,hi), " +
			"table(v1:p1,v2:p2,…)",
			"type": "array", "items": object{"type": []any{"string", "number"}}, "minItems": 2}}, "laws"),
		instance(object{"standard": object{"description": "a standard instance of Bernoulli arms",
			"enum": []any{"C1", "C2", "C3", "C4"}}, "arms": arms}, "standard", "arms"),
		instance(object{
			"means": closed(object{"uniform": span("means are uniform in [low, high]")}, "uniform"),
			"arms":  arms,
			"law": object{"description": "law of the rewards",
				"enum": []any{"bernoulli", "gaussian", "clipped-gaussian"}, "default": "bernoulli"},
			"sd": object{"description": "standard deviation of the Gaussian laws",
				"type": "number", "exclusiveMinimum": 0},
			"redraw": object{"description": "draw the means anew for each run", "type": "boolean",
				"default": false},
		}, "means", "arms"),
		instance(object{
			"csv": object{"description": "logged rewards, with a header; relative to " +
				"this file", "type": "string", "minLength": 1},
			"arm_column": object{"description": "column that names the arms", "type": "string",
				"minLength": 1, "default": "arm"},
			"reward_column": object{"description": "column with the rewards", "type": "string",
				"minLength": 1, "default": "reward"},
			"user_column": object{"description": "column of persons: the rows of one count once",
				"type": "string", "minLength": 1},
			"skip_missing": object{"description": "leave out rows without a reward",
				"type": "boolean", "default": false},
			"sha256": object{"description": "hash of that file: another one is refused",
				"type": "string", "pattern": "^[0-9a-fA-F]{64}$"},
		}, "csv"),
	}
	budgets := []any{
		closed(object{"epsilon": positive}, "epsilon"),
		closed(object{"rho": positive}, "rho"),
		closed(object{"epsilon": positive, "delta": object{"type": "number", "exclusiveMinimum": 0,
			"exclusiveMaximum": 1}}, "epsilon", "delta"),
		closed(object{"alpha": object{"type": "number", "exclusiveMinimum": 1},
			"epsilon": positive}, "alpha", "epsilon"),
		object{"const": "none"},
	}
	policiesFor := func(bandit string) []any {
		var policies, names []any
		for _, e := range r.Catalog.For(bandit) {
			names = append(names, e.Name)
			q := policySchema(e, label)
			if e.Private {
				own := q["properties"].(object)
				own["budgets"] = object{"description": "instead of the experiment's",
					"type": "array", "items": object{"oneOf": budgets}, "minItems": 1}
				if bandit == catalog.BanditArms || bandit == catalog.BanditIdentify {
					maps.Copy(own, trustSchema())
				}
			}
			policies = append(policies, q)
		}
		return append(policies, object{"enum": names})
	}
	many := func(doc string, of []any) object {
		return object{"description": doc, "type": "array", "items": object{"oneOf": of}, "minItems": 1}
	}
	name := object{"description": "name of the experiment", "type": "string",
		"pattern": nameForm.String(), "maxLength": maxLabel}
	seed := object{"description": "seed of all randomness",
		"anyOf": []any{object{"type": "integer", "minimum": 0},
			object{"type": "string", "pattern": "^[0-9][0-9_]*$"}}, "default": 0}
	played := func(kind object, span object, instances, policies []any) object {
		required := []string{"name", "horizon", "runs", "instances", "policies"}
		if kind["default"] == nil {
			required = append(required, "kind")
		}
		properties := object{
			"name":        name,
			"description": object{"type": "string"},
			"kind":        kind,
			"horizon":     count("T, rounds of a run"),
			"runs":        count("runs of each cell"),
			"seed":        seed,
			"checkpoints": object{"description": "how many rounds to look at, log-spaced; or " +
				"which ones, the last one the horizon", "default": DefaultPoints,
				"anyOf": []any{count("how many, log-spaced"),
					object{"type": "array", "items": count("a round"), "minItems": 1, "maxItems": MaxPoints}}},
			"range": span,
			"unclipped": object{"description": "feed rewards outside the range as they are: no " +
				"privacy guarantee", "type": "boolean", "default": false},
			"bounds": object{"description": "draw lower bounds on the regret into the " +
				"figures; changes no result", "type": "boolean", "default": false},
			"instances": many("where rewards come from", instances),
			"policies":  many("who plays", policies),
			"budgets": many("each private policy runs at each budget that it can meet; the "+
				"others run once", budgets),
		}
		if kind["default"] != nil {
			maps.Copy(properties, trustSchema())
		}
		return closed(properties, required...)
	}
	fixed := span("rewards are in [-1, 1]")
	fixed["const"] = []any{-1, 1}
	regret := played(object{"description": "policies that play arms", "const": KindRegret,
		"default": KindRegret},
		span("declared range of rewards; rewards outside are clipped"), instances,
		policiesFor(catalog.BanditArms))
	linear := played(object{"description": "policies that play a fixed set of actions in R^d",
		"const": KindLinear}, fixed,
		linearInstances(instance, count), policiesFor(catalog.BanditLinear))
	contextual := played(object{"description": "policies that play a set of actions in R^d that " +
		"changes in each round", "const": KindContextual}, fixed,
		contextualInstances(instance, count), policiesFor(catalog.BanditContextual))
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
			instance(object{"law": object{"description": "bernoulli(p), gaussian(mean,sd), " +
				"clipped-gaussian(mean,sd,lo,hi), beta(a,b), uniform(lo,hi), table(v1:p1,v2:p2,…)",
				"type": []any{"string", "number"}}}, "law")}),
		"rules": many("who samples", []any{closed(object{"rule": object{"enum": rules}, "name": label,
			"alpha": share("relative error that is allowed"),
			"beta":  share("probability of a larger error")}, "rule", "alpha", "beta")}),
		"budgets": many("each private rule runs at each budget; nas runs once",
			[]any{closed(object{"epsilon": positive}, "epsilon"), object{"const": "none"}}),
	}, "name", "kind", "cap", "runs", "instances", "rules")
	identifying := object{
		"name":        name,
		"description": object{"type": "string"},
		"kind": object{"description": "policies that look for the best arm and stop",
			"const": KindIdentify},
		"risk": share("delta, the probability of a wrong answer that is allowed"),
		"cap":  count("plays after which a run is given up, without an answer"),
		"runs": object{"description": "runs of each cell; resolve: as few as can show an error " +
			"rate of at most the risk",
			"anyOf": []any{count("runs of each cell"), object{"const": resolving}}},
		"seed":      seed,
		"range":     span("declared range of rewards; rewards outside are clipped"),
		"instances": many("where rewards come from", instances),
		"policies":  many("who plays", policiesFor(catalog.BanditIdentify)),
		"budgets": many("each private policy runs at each budget; the others run once",
			[]any{closed(object{"epsilon": positive}, "epsilon"), object{"const": "none"}}),
	}
	maps.Copy(identifying, trustSchema())
	identify := closed(identifying, "name", "kind", "risk", "cap", "runs", "instances", "policies")
	root := object{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Sotto experiment",
		"type":       "object",
		"properties": object{"kind": object{"enum": Kinds()}},
		"if":         isKind(KindStopping), "then": stop,
		"else": object{"if": isKind(KindLinear), "then": linear,
			"else": object{"if": isKind(KindContextual), "then": contextual,
				"else": object{"if": isKind(KindIdentify), "then": identify, "else": regret}}},
	}
	b, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	return append(b, '\n'), nil
}

// trustSchema is the keys of a Trust.
func trustSchema() object {
	return object{
		"trust": object{"description": "who has to be believed: continuous noise from a server, " +
			"for simulations; or releases by the protocol of 003: central, local, two-server, shuffle, secagg",
			"enum": TrustModels(), "default": Continuous},
		"noise": object{"description": "central, local, two-server: laplace, gaussian, " +
			"skellam; secagg: polya, gaussian, skellam; shuffle: count, polya, laplace", "enum": NoiseNames()},
		"precision": object{"description": "s, how much finer than epsilon*sqrt(n) rewards are " +
			"encoded", "type": "number", "minimum": 1, "default": 1},
		"promised": object{"description": "share of the users who are promised to answer: noise " +
			"is calibrated to them", "type": "number", "exclusiveMinimum": 0, "maximum": 1, "default": 1},
		"dropout": object{"description": "probability that a user does not answer",
			"type": "number", "minimum": 0, "exclusiveMaximum": 1, "default": 0},
		"protocol": object{"description": "of secagg: who sums, user by user: plain, in the " +
			"open; bell2020, secure aggregation by a single server; prio3, between two servers",
			"enum": Protocols()},
		"corrupt": object{"description": "of bell2020: share of the users that may be corrupt",
			"type": "number", "minimum": 0, "exclusiveMaximum": 1, "default": 0},
		"per_user": object{"description": "draw every user's messages, where the total has the " +
			"same law", "type": "boolean", "default": false},
	}
}

func isKind(kind string) object {
	return object{"properties": object{"kind": object{"const": kind}}, "required": []any{"kind"}}
}

// What instances with actions in ℝ^d share.
type vectorSchemas struct{ vector, actions, theta, noise, normalise, sha256 object }

func newVectorSchemas() vectorSchemas {
	vector := object{"type": "array", "items": object{"type": "number"}, "minItems": 1}
	return vectorSchemas{
		vector: vector,
		actions: object{"description": "the actions, of one dimension", "type": "array",
			"items": vector, "minItems": 2},
		theta: object{"description": "theta*, of norm at most 1: the mean of an action's rewards " +
			"is its inner product with it; sphere: drawn uniformly on the sphere",
			"anyOf": []any{vector, object{"const": "sphere"}}},
		noise: object{"description": "rewards are signs, -1 or 1, or Gaussian of this standard " +
			"deviation", "type": "string",
			"pattern": `^(sign|gaussian|gaussian\(.+\))$`, "default": "sign"},
		normalise: object{"description": "scale what has a norm above 1", "type": "boolean", "default": false},
		sha256: object{"description": "hash of that file: another one is refused",
			"type": "string", "pattern": "^[0-9a-fA-F]{64}$"},
	}
}

func linearInstances(instance func(object, ...string) object, count func(string) object) []any {
	v := newVectorSchemas()
	return []any{
		instance(object{"actions": v.actions, "theta": v.vector, "noise": v.noise,
			"normalise": v.normalise}, "actions", "theta"),
		instance(object{
			"sphere": closed(object{"arms": count("number of actions, at least 2"),
				"dimension": count("d, at least 2")}, "arms", "dimension"),
			"theta": v.theta, "noise": v.noise,
			"redraw": object{"description": "draw actions and theta anew for each run",
				"type": "boolean", "default": false},
		}, "sphere"),
		instance(object{
			"csv": object{"description": "logged rewards with the header x1,…,xd,reward; " +
				"relative to this file", "type": "string", "minLength": 1},
			"sha256": v.sha256, "normalise": v.normalise,
		}, "csv"),
	}
}

func contextualInstances(instance func(object, ...string) object, count func(string) object) []any {
	v := newVectorSchemas()
	redraw := object{"description": "draw theta anew for each run", "type": "boolean", "default": false}
	return []any{
		instance(object{
			"contexts": object{"description": "law of the actions of each round",
				"enum": []any{"gaussian", "sphere"}},
			"arms":      count("actions in each round, at least 2"),
			"dimension": count("d"),
			"mean": object{"description": "of Gaussian contexts: one number for all coordinates, " +
				"or one each; 1/sqrt(d) if not given",
				"anyOf": []any{object{"type": "number"},
					object{"type": "array", "items": object{"type": "number"}, "minItems": 1}}},
			"variance": object{"description": "of each coordinate of Gaussian contexts",
				"type": "number", "exclusiveMinimum": 0, "default": DefaultVariance},
			"theta": v.theta, "noise": v.noise, "normalise": v.normalise, "redraw": redraw,
		}, "contexts", "arms", "dimension"),
		instance(object{"actions": v.actions, "theta": v.theta, "noise": v.noise,
			"normalise": v.normalise, "redraw": redraw}, "actions"),
		instance(object{
			"csv": object{"description": "logged rounds with the header round,x1,…,xd,reward; " +
				"relative to this file", "type": "string", "minLength": 1},
			"sha256": v.sha256, "normalise": v.normalise,
		}, "csv"),
	}
}

// closed is an object with these properties and no others.
func closed(properties object, required ...string) object {
	return object{"type": "object", "properties": properties, "required": required,
		"additionalProperties": false}
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
