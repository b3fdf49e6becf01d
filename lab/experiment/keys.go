package experiment

import (
	"slices"
	"sync"

	"github.com/goccy/go-yaml/ast"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/privacy"
)

// The keys that experiments of several kinds have.

func nameKey() keyed.Key[Spec] {
	return keyed.Always("name", keyed.As(keyed.Object{"type": "string", "pattern": keyed.NameForm.String(),
		"maxLength": keyed.MaxLabel}, (*keyed.Decoder).Text), func(s *Spec) *string { return &s.Name },
		"name of the experiment").Must().
		Means("required; a–z, 0–9, dot, dash, underscore, the first a letter or digit. Without " +
			"`--out`, results go to `results/NAME`")
}

func descriptionKey() keyed.Key[Spec] {
	return keyed.Of("description", keyed.Text(), func(s *Spec) *string { return &s.Description }, "").
		Means("text for the report")
}

// kindKey says the kind, which has been read before any other key. The normal form of KindRegret
// leaves it out, as files may.
func kindKey(kind, doc string) keyed.Key[Spec] {
	return keyed.Key[Spec]{Name: "kind", Doc: doc, Required: kind != KindRegret,
		Ref: "`regret`: policies that play arms, this table; `linear` or `contextual`, see below; " +
			"`identify` or `stopping`, see the end",
		Schema: func() keyed.Object {
			if kind == KindRegret {
				return keyed.Object{"const": kind, "default": kind}
			}
			return keyed.Object{"const": kind}
		},
		Read:  func(*keyed.Decoder, ast.Node, string, *Spec) error { return nil },
		Given: func(*Spec) bool { return true },
		Value: func(*Spec) (any, error) {
			if kind == KindRegret {
				return nil, nil
			}
			return kind, nil
		},
	}
}

func horizonKey() keyed.Key[Spec] {
	return keyed.Always("horizon", keyed.Whole(), func(s *Spec) *keyed.Count { return &s.Horizon },
		"T, rounds of a run").Must().Means("required; T, rounds of a run")
}

func capKey(doc, ref string) keyed.Key[Spec] {
	return keyed.Always("cap", keyed.Whole(), func(s *Spec) *keyed.Count { return &s.Cap }, doc).Must().Means(ref)
}

const runsDoc = "runs of each cell"

func runsKey() keyed.Key[Spec] {
	return keyed.Always("runs", keyed.Whole(), func(s *Spec) *keyed.Count { return &s.Runs }, runsDoc).Must().
		Means("required; runs of each cell. A cell is an instance, a policy and a budget")
}

func seedKey() keyed.Key[Spec] {
	return keyed.Always("seed", keyed.Seed(), func(s *Spec) *uint64 { return &s.Seed }, "seed of all randomness").
		Means("`0`; of all randomness, a whole number in digits. Run i of a cell is a function of " +
			"the seed, the instance, the policy, the budget and i: adding runs, policies or names " +
			"changes no run")
}

// checkpointsKey is two fields: a list of rounds, or how many.
func checkpointsKey() keyed.Key[Spec] {
	rounds := keyed.Many(keyed.Whole(), keyed.Object{"items": keyed.CountSchema("a round"), "minItems": 1, "maxItems": MaxPoints})
	return keyed.Key[Spec]{Name: "checkpoints",
		Doc: "how many rounds to look at, log-spaced; or which ones, the last one the horizon",
		Ref: "how many rounds to look at, log-spaced (200), or a list of rounds that ends with " +
			"the horizon",
		Schema: func() keyed.Object {
			return keyed.Object{"default": defaultPoints,
				"anyOf": []any{keyed.CountSchema("how many, log-spaced"), rounds.Schema()}}
		},
		Read: func(d *keyed.Decoder, n ast.Node, at string, to *Spec) error {
			if _, ok := n.(*ast.SequenceNode); ok {
				return rounds.Read(d, n, at, &to.Checkpoints)
			}
			return d.Count(n, at, &to.Points)
		},
		Given: func(s *Spec) bool { return s.Points != 0 || s.Checkpoints != nil },
		Value: func(s *Spec) (any, error) {
			if s.Checkpoints != nil {
				return keyed.List(s.Checkpoints), nil
			}
			return s.points(), nil
		},
	}
}

func rangeKey(doc, ref string) keyed.Key[Spec] {
	return keyed.Key[Spec]{Name: "range", Doc: doc, Ref: ref, Schema: keyed.SpanSchema,
		Read: func(d *keyed.Decoder, n ast.Node, at string, to *Spec) error {
			return d.Pair(n, at, &to.Lo, &to.Hi)
		},
		Given: func(s *Spec) bool { return s.Lo != 0 || s.Hi != 0 },
		Value: func(s *Spec) (any, error) {
			lo, hi := s.span()
			return keyed.List([]float64{lo, hi}), nil
		},
	}
}

func unclippedKey() keyed.Key[Spec] {
	return keyed.Always("unclipped", keyed.YesNo(), func(s *Spec) *bool { return &s.Unclipped },
		"feed rewards outside the range as they are: no privacy guarantee").
		Means("`false`; feed rewards as they are, as some papers do. No privacy guarantee then, " +
			"and every output says so. Policies are not ranked where means leave the range: they " +
			"bring what they are told into it, and arms beyond it look the same")
}

func boundsKey() keyed.Key[Spec] {
	return keyed.Of("bounds", keyed.YesNo(), func(s *Spec) *bool { return &s.Bounds },
		"draw lower bounds on the regret into the figures; changes no result").
		Means("`false`; draw lower bounds on the regret into the figures, for instances that are " +
			"not redrawn: the strongest for this instance in the long run, and for the worst case. " +
			"Changes no result: it can be asked for later, with `--resume`. `sotto bounds FILE` " +
			"prints all, upper ones too, for the policies' own parameters; where a theorem is not " +
			"for them there is no number, and the reason")
}

const seeBelow = "required; see below"

func instancesKey(f instanceForm, doc, ref string) keyed.Key[Spec] {
	return keyed.Always("instances", keyed.Many(f.form(), keyed.Object{"minItems": 1}),
		func(s *Spec) *[]Instance { return &s.Instances }, doc).Must().Means(ref)
}

// budgetsKey is a list of budgets, of an experiment or of a policy.
func budgetsKey[T any](at func(*T) *[]privacy.Budget, taken []keyed.BudgetShape, doc, ref string) keyed.Key[T] {
	return keyed.Of("budgets", keyed.Many(keyed.Budget(taken), keyed.Object{"minItems": 1}), at, doc).
		When(func(of *T) bool { return len(*at(of)) > 0 }).Means(ref)
}

func specBudgets(s *Spec) *[]privacy.Budget { return &s.Budgets }

// trustKeys are the keys of a Trust, in an experiment and in a policy.
func trustKeys[T any](at func(*T) *Trust) []keyed.Key[T] {
	return []keyed.Key[T]{
		keyed.Of("trust", keyed.OneOf(TrustModels()), func(of *T) *string { return &at(of).Model },
			"who has to be believed: continuous noise from a server, for simulations; or releases "+
				"by the protocol of Chowdhury and Zhou 2023: central, local, two-server, shuffle, "+
				"secagg").
			Like(keyed.Object{"default": Continuous}).
			Means("`continuous`: continuous noise from a server that is believed, for simulations " +
				"(default); `central`: discrete noise from a server that is believed; `local`: " +
				"every user adds noise that is enough alone; `secagg`: every user adds a share and " +
				"the server learns the sum only (of a batch of fewer than three there is no such " +
				"sum: it is made as under `local`, and the ledger says so); `two-server`: users " +
				"split their rewards between two servers, of which one is honest, and each adds " +
				"noise that is enough alone (as `secagg` with `protocol: prio3`); `shuffle`: a " +
				"shuffler hides who sent what"),
		keyed.Of("noise", keyed.OneOf(noiseNames()), func(of *T) *string { return &at(of).Noise },
			"central, local, two-server: laplace, gaussian, skellam; secagg: polya, gaussian, "+
				"skellam; shuffle: count, polya, laplace").
			Means("`central`, `local`, `two-server`: `laplace` (default), `gaussian`, `skellam`. " +
				"`secagg`: `polya` (default), `gaussian`, `skellam`. `shuffle`: `count` (default, " +
				"pure), `polya` (split and mix) or `laplace` (amplified), which give (ε,δ). " +
				"`gaussian` and `skellam` are never pure: they want a budget in ρ, (α,ε) or (ε,δ)"),
		keyed.Of("precision", keyed.Positive(keyed.Object{"minimum": 1, "default": 1}),
			func(of *T) *float64 { return &at(of).Precision },
			"s, how much finer than epsilon*sqrt(n) rewards are encoded").
			Means("`1`; s of [Chowdhury and Zhou 2023]: g = ⌈sε√n⌉"),
		keyed.Of("promised", keyed.Positive(keyed.Object{"exclusiveMinimum": 0, "maximum": 1, "default": 1}),
			func(of *T) *float64 { return &at(of).Promised },
			"share of the users who are promised to answer: noise is calibrated to them").
			Means("`1`; the share of a batch's users who are promised to be honest and to answer. " +
				"Noise is calibrated to them; if fewer answer, nothing is released, and the batch " +
				"is played again with new users, in rounds that count"),
		keyed.Of("dropout", keyed.Real(keyed.Object{"minimum": 0, "exclusiveMaximum": 1, "default": 0}),
			func(of *T) *float64 { return &at(of).Dropout },
			"probability that a user does not answer").
			Means("`0`; the probability that a user does not answer, whatever the reward"),
		keyed.Of("corrupt", keyed.Real(keyed.Object{"minimum": 0, "exclusiveMaximum": 1, "default": 0}),
			func(of *T) *float64 { return &at(of).Corrupt },
			"of bell2020: share of the users that may be corrupt").
			Means("`0`; of `bell2020`: the share of the invited users that may be corrupt. They " +
				"answer and add no noise; promised + corrupt is at most 1"),
		keyed.Of("per_user", keyed.YesNo(), func(of *T) *bool { return &at(of).PerUser },
			"draw every user's messages, where the total has the same law").
			Means("`false`; draw every user's messages. Otherwise the total is drawn at once where " +
				"it has the same law"),
		keyed.Of("protocol", keyed.OneOf(protocols()), func(of *T) *string { return &at(of).Protocol },
			"of secagg: who sums, user by user: plain, in the open; bell2020, secure aggregation "+
				"by a single server; prio3, between two servers").
			Means("of `secagg`: who sums, user by user. `plain`: in the open; `bell2020`: secure " +
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
	policyTrust = sync.OnceValue(func() []keyed.Key[Policy] {
		return trustKeys(func(p *Policy) *Trust { return &p.Trust })
	})
	ownTrust = sync.OnceValue(func() []keyed.Key[Trust] {
		return trustKeys(func(t *Trust) *Trust { return t })
	})
)

// specTrust are the keys of Trust of a whole experiment.
func specTrust() []keyed.Key[Spec] {
	keys := trustKeys(func(s *Spec) *Trust { return &s.Trust })
	for i := range keys {
		keys[i].Ref = "who has to be believed, for all private policies; see Trust below"
	}
	return keys
}

// policiesKey is the list of who plays, of policies for one kind of bandit.
func policiesKey(known catalog.Catalog, bandit string, trusted bool, ref string) keyed.Key[Spec] {
	return keyed.Always("policies", keyed.Many(onePolicy(known, bandit, trusted), keyed.Object{"minItems": 1}),
		func(s *Spec) *[]Policy { return &s.Policies }, "who plays").Must().Means(ref)
}

// onePolicy is the form of a policy for one kind of bandit.
func onePolicy(known catalog.Catalog, bandit string, trusted bool) keyed.Form[Policy] {
	form := keyed.PolicyForm[Policy]{Known: known, Bandit: bandit,
		NoProgram: "programs play " + catalog.BanditArms + " and " + catalog.BanditIdentify,
		Name:      func(p *Policy) *string { return &p.Policy }, Params: policyParams,
		Keys:   func(e catalog.Entry) []keyed.Key[Policy] { return policyKeys(e, trusted) },
		Normal: func(e catalog.Entry) []keyed.Key[Policy] { return policyKeys(e, true) },
		Shown: func(e catalog.Entry) []keyed.Key[Policy] {
			keys := policyKeys(e, trusted && e.Private)
			if !e.Private {
				keys = slices.DeleteFunc(keys, func(k keyed.Key[Policy]) bool { return k.Name == "budgets" })
			}
			return keys
		},
	}
	if bandit == catalog.BanditArms || bandit == catalog.BanditIdentify {
		form.Program = func(p *Policy) *catalog.Program { return &p.Program }
	}
	return form.Form()
}

func policyParams(p *Policy) *catalog.Params { return &p.Params }

// policyKeys are the keys of a policy: its parameters are the catalog's.
func policyKeys(e catalog.Entry, trusted bool) []keyed.Key[Policy] {
	keys := []keyed.Key[Policy]{
		keyed.Always("policy", keyed.Text(), func(p *Policy) *string { return &p.Policy }, "").Must(),
		keyed.Of("name", keyed.Called(), func(p *Policy) *string { return &p.Name }, ""),
	}
	keys = append(keys, keyed.ParamKeys(e, policyParams)...)
	if trusted {
		keys = append(keys, policyTrust()...)
	}
	if e.Bandit == catalog.BanditContextual {
		keys = append(keys, floorKey())
	}
	return append(keys, budgetsKey(func(p *Policy) *[]privacy.Budget { return &p.Budgets },
		keyed.BudgetShapes(), "instead of the experiment's", ""))
}
