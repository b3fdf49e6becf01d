package experiment

import (
	"slices"
	"sync"

	"github.com/goccy/go-yaml/ast"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/privacy"
)

// The keys that experiments of several kinds have.

func nameKey() key[Spec] {
	return always("name", as(object{"type": "string", "pattern": nameForm.String(),
		"maxLength": maxLabel}, (*decoder).text), func(s *Spec) *string { return &s.Name },
		"name of the experiment").must().
		means("required; a–z, 0–9, dot, dash, underscore, the first a letter or digit. Without " +
			"`--out`, results go to `results/NAME`")
}

func descriptionKey() key[Spec] {
	return keyOf("description", text(), func(s *Spec) *string { return &s.Description }, "").
		means("text for the report")
}

// kindKey says the kind, which has been read before any other key. The normal form of KindRegret
// leaves it out, as files may.
func kindKey(kind, doc string) key[Spec] {
	return key[Spec]{name: "kind", doc: doc, required: kind != KindRegret,
		ref: "`regret`: policies that play arms, this table; `linear` or `contextual`, see below; " +
			"`identify` or `stopping`, see the end",
		schema: func() object {
			if kind == KindRegret {
				return object{"const": kind, "default": kind}
			}
			return object{"const": kind}
		},
		read:  func(*decoder, ast.Node, string, *Spec) error { return nil },
		given: func(*Spec) bool { return true },
		value: func(*Spec) (any, error) {
			if kind == KindRegret {
				return nil, nil
			}
			return kind, nil
		},
	}
}

func horizonKey() key[Spec] {
	return always("horizon", whole(), func(s *Spec) *Count { return &s.Horizon },
		"T, rounds of a run").must().means("required; T, rounds of a run")
}

func capKey(doc, ref string) key[Spec] {
	return always("cap", whole(), func(s *Spec) *Count { return &s.Cap }, doc).must().means(ref)
}

const runsDoc = "runs of each cell"

func runsKey() key[Spec] {
	return always("runs", whole(), func(s *Spec) *Count { return &s.Runs }, runsDoc).must().
		means("required; runs of each cell. A cell is an instance, a policy and a budget")
}

func seedKey() key[Spec] {
	return always("seed", seed(), func(s *Spec) *uint64 { return &s.Seed }, "seed of all randomness").
		means("`0`; of all randomness, a whole number in digits. Run i of a cell is a function of " +
			"the seed, the instance, the policy, the budget and i: adding runs, policies or names " +
			"changes no run")
}

// checkpointsKey is two fields: a list of rounds, or how many.
func checkpointsKey() key[Spec] {
	rounds := many(whole(), object{"items": countSchema("a round"), "minItems": 1, "maxItems": MaxPoints})
	return key[Spec]{name: "checkpoints",
		doc: "how many rounds to look at, log-spaced; or which ones, the last one the horizon",
		ref: "how many rounds to look at, log-spaced (200), or a list of rounds that ends with " +
			"the horizon",
		schema: func() object {
			return object{"default": defaultPoints,
				"anyOf": []any{countSchema("how many, log-spaced"), rounds.schema()}}
		},
		read: func(d *decoder, n ast.Node, at string, to *Spec) error {
			if _, ok := n.(*ast.SequenceNode); ok {
				return rounds.read(d, n, at, &to.Checkpoints)
			}
			return d.count(n, at, &to.Points)
		},
		given: func(s *Spec) bool { return s.Points != 0 || s.Checkpoints != nil },
		value: func(s *Spec) (any, error) {
			if s.Checkpoints != nil {
				return list(s.Checkpoints), nil
			}
			return s.points(), nil
		},
	}
}

func rangeKey(doc, ref string) key[Spec] {
	return key[Spec]{name: "range", doc: doc, ref: ref, schema: spanSchema,
		read: func(d *decoder, n ast.Node, at string, to *Spec) error {
			return d.pair(n, at, &to.Lo, &to.Hi)
		},
		given: func(s *Spec) bool { return s.Lo != 0 || s.Hi != 0 },
		value: func(s *Spec) (any, error) {
			lo, hi := s.span()
			return list([]float64{lo, hi}), nil
		},
	}
}

func unclippedKey() key[Spec] {
	return always("unclipped", yesNo(), func(s *Spec) *bool { return &s.Unclipped },
		"feed rewards outside the range as they are: no privacy guarantee").
		means("`false`; feed rewards as they are, as some papers do. No privacy guarantee then, " +
			"and every output says so. Policies are not ranked where means leave the range: they " +
			"bring what they are told into it, and arms beyond it look the same")
}

func boundsKey() key[Spec] {
	return keyOf("bounds", yesNo(), func(s *Spec) *bool { return &s.Bounds },
		"draw lower bounds on the regret into the figures; changes no result").
		means("`false`; draw lower bounds on the regret into the figures, for instances that are " +
			"not redrawn: the strongest for this instance in the long run, and for the worst case. " +
			"Changes no result: it can be asked for later, with `--resume`. `sotto bounds FILE` " +
			"prints all, upper ones too, for the policies' own parameters; where a theorem is not " +
			"for them there is no number, and the reason")
}

const seeBelow = "required; see below"

func instancesKey(f instanceForm, doc, ref string) key[Spec] {
	return always("instances", many(f.form(), object{"minItems": 1}),
		func(s *Spec) *[]Instance { return &s.Instances }, doc).must().means(ref)
}

// budgetsKey is a list of budgets, of an experiment or of a policy.
func budgetsKey[T any](at func(*T) *[]privacy.Budget, taken []budgetShape, doc, ref string) key[T] {
	return keyOf("budgets", many(budget(taken), object{"minItems": 1}), at, doc).
		when(func(of *T) bool { return len(*at(of)) > 0 }).means(ref)
}

func specBudgets(s *Spec) *[]privacy.Budget { return &s.Budgets }

// trustKeys are the keys of a Trust, in an experiment and in a policy.
func trustKeys[T any](at func(*T) *Trust) []key[T] {
	return []key[T]{
		keyOf("trust", oneOf(TrustModels()), func(of *T) *string { return &at(of).Model },
			"who has to be believed: continuous noise from a server, for simulations; or releases "+
				"by the protocol of Chowdhury and Zhou 2023: central, local, two-server, shuffle, "+
				"secagg").
			like(object{"default": Continuous}).
			means("`continuous`: continuous noise from a server that is believed, for simulations " +
				"(default); `central`: discrete noise from a server that is believed; `local`: " +
				"every user adds noise that is enough alone; `secagg`: every user adds a share and " +
				"the server learns the sum only (of a batch of fewer than three there is no such " +
				"sum: it is made as under `local`, and the ledger says so); `two-server`: users " +
				"split their rewards between two servers, of which one is honest, and each adds " +
				"noise that is enough alone (as `secagg` with `protocol: prio3`); `shuffle`: a " +
				"shuffler hides who sent what"),
		keyOf("noise", oneOf(noiseNames()), func(of *T) *string { return &at(of).Noise },
			"central, local, two-server: laplace, gaussian, skellam; secagg: polya, gaussian, "+
				"skellam; shuffle: count, polya, laplace").
			means("`central`, `local`, `two-server`: `laplace` (default), `gaussian`, `skellam`. " +
				"`secagg`: `polya` (default), `gaussian`, `skellam`. `shuffle`: `count` (default, " +
				"pure), `polya` (split and mix) or `laplace` (amplified), which give (ε,δ). " +
				"`gaussian` and `skellam` are never pure: they want a budget in ρ, (α,ε) or (ε,δ)"),
		keyOf("precision", positive(object{"minimum": 1, "default": 1}),
			func(of *T) *float64 { return &at(of).Precision },
			"s, how much finer than epsilon*sqrt(n) rewards are encoded").
			means("`1`; s of [Chowdhury and Zhou 2023]: g = ⌈sε√n⌉"),
		keyOf("promised", positive(object{"exclusiveMinimum": 0, "maximum": 1, "default": 1}),
			func(of *T) *float64 { return &at(of).Promised },
			"share of the users who are promised to answer: noise is calibrated to them").
			means("`1`; the share of a batch's users who are promised to be honest and to answer. " +
				"Noise is calibrated to them; if fewer answer, nothing is released, and the batch " +
				"is played again with new users, in rounds that count"),
		keyOf("dropout", real(object{"minimum": 0, "exclusiveMaximum": 1, "default": 0}),
			func(of *T) *float64 { return &at(of).Dropout },
			"probability that a user does not answer").
			means("`0`; the probability that a user does not answer, whatever the reward"),
		keyOf("corrupt", real(object{"minimum": 0, "exclusiveMaximum": 1, "default": 0}),
			func(of *T) *float64 { return &at(of).Corrupt },
			"of bell2020: share of the users that may be corrupt").
			means("`0`; of `bell2020`: the share of the invited users that may be corrupt. They " +
				"answer and add no noise; promised + corrupt is at most 1"),
		keyOf("per_user", yesNo(), func(of *T) *bool { return &at(of).PerUser },
			"draw every user's messages, where the total has the same law").
			means("`false`; draw every user's messages. Otherwise the total is drawn at once where " +
				"it has the same law"),
		keyOf("protocol", oneOf(protocols()), func(of *T) *string { return &at(of).Protocol },
			"of secagg: who sums, user by user: plain, in the open; bell2020, secure aggregation "+
				"by a single server; prio3, between two servers").
			means("of `secagg`: who sums, user by user. `plain`: in the open; `bell2020`: secure " +
				"aggregation by a single server, all parties in this process (package `secagg`), " +
				"about 2 ms a user; `prio3`: between two servers with proofs of the range (package " +
				"`secagg/prio`), where users add no noise and each server adds a whole one: " +
				"`laplace`, `gaussian` or `skellam`; not given: the total is drawn at once where it " +
				"has the same law. Users draw the same noise under each, so that `plain` and " +
				"`bell2020` play the same arms"),
	}
}

// policyTrust and ownTrust are the keys of Trust of a policy, and alone: made once.
var (
	policyTrust = sync.OnceValue(func() []key[Policy] {
		return trustKeys(func(p *Policy) *Trust { return &p.Trust })
	})
	ownTrust = sync.OnceValue(func() []key[Trust] {
		return trustKeys(func(t *Trust) *Trust { return t })
	})
)

// specTrust are the keys of Trust of a whole experiment.
func specTrust() []key[Spec] {
	keys := trustKeys(func(s *Spec) *Trust { return &s.Trust })
	for i := range keys {
		keys[i].ref = "who has to be believed, for all private policies; see Trust below"
	}
	return keys
}

// policiesKey is the list of who plays, of policies for one kind of bandit.
func policiesKey(known catalog.Catalog, bandit string, trusted bool, ref string) key[Spec] {
	return always("policies", many(onePolicy(known, bandit, trusted), object{"minItems": 1}),
		func(s *Spec) *[]Policy { return &s.Policies }, "who plays").must().means(ref)
}

// onePolicy is the form of a policy for one kind of bandit.
func onePolicy(known catalog.Catalog, bandit string, trusted bool) form[Policy] {
	return policyForm[Policy]{known: known, bandit: bandit,
		name: func(p *Policy) *string { return &p.Policy }, params: policyParams,
		keys:   func(e catalog.Entry) []key[Policy] { return policyKeys(e, trusted) },
		normal: func(e catalog.Entry) []key[Policy] { return policyKeys(e, true) },
		shown: func(e catalog.Entry) []key[Policy] {
			keys := policyKeys(e, trusted && e.Private)
			if !e.Private {
				keys = slices.DeleteFunc(keys, func(k key[Policy]) bool { return k.name == "budgets" })
			}
			return keys
		},
	}.form()
}

func policyParams(p *Policy) *catalog.Params { return &p.Params }

// policyKeys are the keys of a policy: its parameters are the catalog's.
func policyKeys(e catalog.Entry, trusted bool) []key[Policy] {
	keys := []key[Policy]{
		always("policy", text(), func(p *Policy) *string { return &p.Policy }, "").must(),
		keyOf("name", called(), func(p *Policy) *string { return &p.Name }, ""),
	}
	keys = append(keys, paramKeys(e, policyParams)...)
	if trusted {
		keys = append(keys, policyTrust()...)
	}
	return append(keys, budgetsKey(func(p *Policy) *[]privacy.Budget { return &p.Budgets },
		budgetShapes(), "instead of the experiment's", ""))
}
