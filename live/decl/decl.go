// Package decl reads what a live experiment declares: begin with [Parse], then ask
// [Experiment.Check] whether it can be played with the guarantee that it states.
//
// The file is YAML or JSON, read strictly by one table of keys, which is also its normal form and its
// JSON schema. The service, its helper and its clients build policies, mechanisms and prices from an
// Experiment alone, so that all of them mean the same.
package decl

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/interval"
	"github.com/sotto-dp/sotto/play"
	"github.com/sotto-dp/sotto/policy"
	"github.com/sotto-dp/sotto/policy/identify"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

// A Stop says what becomes of an experiment when its decisions have ended.
type Stop struct {
	// Keep is the arm that everybody gets from then on: its name, or KeepLeader; empty for the fallback.
	// With contexts it is KeepPolicy, or empty for the first action.
	Keep string
}

// KeepLeader keeps the arm with the highest private mean of all that was released. An arm of this name is
// meant where there is one.
const KeepLeader = "leader"

// KeepPolicy keeps what was learnt of contexts: the best action by the estimate of all that was released.
//
// It costs nobody anything more. Who was in a release has paid for it, and what is made of releases is
// post-processing, whoever it is made for and however often. Who comes later is given an action by their own
// context and the estimate; their reward is not asked for, nor is their vector kept, so that nothing of
// theirs is in what anybody else sees, under joint privacy either. There are no coins: exploration is paid
// for by what is learnt from it, and nothing is.
const KeepPolicy = "policy"

// An Experiment is an experiment on people who come one by one, as its file says it. Parse reads one;
// a program may fill one in. Check says whether it can be played.
type Experiment struct {
	Name        string // [a-z0-9._-]+
	Description string
	Arms        []Arm // at least 2, or none where there are contexts
	// Added says how many of Arms, the last ones, came while it ran. No file says it.
	Added int
	// Joined are, of an A/B test, the shares of these as they came.
	Joined []float64
	// Contextual is nil where there are arms. Otherwise each decision brings its actions, and the
	// policy is one for sets of actions that change.
	Contextual *Contextual
	// Policy is a policy for K arms, or one that looks for the best arm if Risk is set. Where it is not
	// named, or of arms is catalog.AutoPolicy, Pick makes one, and Picked says why.
	Policy Policy
	Picked string  // not stored
	Risk   float64 // δ, the probability of a wrong answer that is allowed; 0: a policy for regret
	// Horizon is how many decisions there will be, for policies that must know; else 0.
	Horizon keyed.Count
	// Budget is what one unit may lose by all its assignments: ε, ρ, or any other if it is
	// assigned once.
	Budget privacy.Budget
	Unit   Unit
	// Lo and Hi are the declared range of rewards, both 0 for [0,1]. Default, in it, is what a
	// decision counts whose reward does not come.
	Lo, Hi, Default float64
	// Aggregate says what several reports of a decision make of its reward: sum, count or max; empty: the
	// first counts.
	Aggregate string
	Source                  // of the reward, where an event reports it
	Window    time.Duration // for a reward to come in, from MinWindow to MaxWindow
	// Traffic is how many decisions a day are expected, 0 if nobody knows. Nothing is decided by
	// it: it is what a first batch is proposed from.
	Traffic float64
	Floor   float64 // γ, in [0,1): the share of decisions whose arm is uniform
	// Shares of an A/B test (policy split) are those of the arms by their names, nil for even ones.
	// Effect is the smallest difference that matters, and Rate about what a reward is on average, both
	// in the units of rewards and 0 if nobody says: its batches are planned from them.
	Shares       map[string]float64
	Effect, Rate float64
	// Free: a unit that asks again is assigned anew, and a decision may name no unit: then the
	// caller sees to it that no unit has more than its assignments. Otherwise assignments are
	// sticky: who asks again is answered the same.
	Free bool
	// Exposure says from when on a decision counts, ExposeDecide if it is empty, and ActivateWithin
	// how long after it may be activated: 0 for the window, an hour at most.
	Exposure       string
	ActivateWithin time.Duration
	// Metrics are further numbers of each decision, released beside the rewards at budgets of their
	// own.
	Metrics []Metric
	Ratios  []Ratio // of two of these numbers, which cost nothing more
	Guard   []Guard // bounds of them, or of the reward
	Ramp    []Step  // the shares that it goes through, in the place of Share
	// Missing says what a decision counts whose reward does not come, MissingDefault if it is
	// empty, and Reports what reporters promise, ReportsSome if it is empty.
	Missing, Reports string
	Start, End       time.Time // zero: at once, and never
	// Fallback names the arm that is given, and not counted, when the experiment does not run;
	// empty: the first.
	Fallback string
	Stop     Stop // as its end, its policy or a stop that names no arm has it
	Public   bool // everybody may read what it released
	// Share is the share of units that the experiment is for, by a keyed hash of its own, 0 meaning
	// all; Only the public context, by key: a decision's must have one of the values of each. A
	// decision for others gives the fallback, and does not count.
	Share float64
	Only  map[string][]string
	Where map[string]Test // what other keys must be there, and what is asked of their values
	// By partitions decisions into cells that are released each for itself, zero for none; CellMinimum is how
	// many decisions a cell has then at least, 0 as PlayCells says.
	By          By
	CellMinimum keyed.Count
	Layer       Layer // zero: of no layer
	Leases      Leases
	// Holds is an arm of an A/B test: who is given it is in no experiment that has this one as its Holdout, and is
	// given the fallback there. Which arm a unit has follows from a keyed hash.
	Holds, Holdout string
	// Retention is how long after its stop it is archived by itself, which destroys what is left of
	// its units; 0: when somebody does.
	Retention time.Duration
	// Webhook is an address, https or of this machine, that is told when the experiment has stopped.
	// WebhookForm is how: FormCloudEvents, or empty for what webhooks were always told.
	Webhook, WebhookForm string
	// Forget is how long after its decision, in whole days, a unit is forgotten while the experiment runs; 0: it is not.
	// A unit that comes back counts as new, and Unit.Assignments pays for how often it can until End.
	Forget time.Duration
	// Trust says who has to be believed with rewards, empty for central: see TrustModel. Under any
	// other, clients report ReportAfter after their decision, whatever has happened (0: half the
	// window, as it is when the experiment is created), and there are arms alone, without metrics, that count when they are decided. Grid and
	// Helper are of two servers, Cohort is of secagg.
	Trust       string
	ReportAfter time.Duration
	Grid        keyed.Count
	Helper      Helper
	Cohort      Cohort
	// Catalog has the policies by name; the zero value those of Sotto.
	Catalog catalog.Catalog

	src *keyed.Source
}

// From when on a decision counts: at once, or when somebody says that its unit meets it, and not at
// all if nobody does in time.
const (
	ExposeDecide   = "decide"
	ExposeRetract  = "retract" // at once, and no more if somebody says that it was not shown
	ExposeActivate = "activate"
)

var exposures = []string{ExposeDecide, ExposeRetract, ExposeActivate}

// What a decision counts whose reward does not come: Default, or nothing at all, which needs
// reporters who promise to report every outcome.
const (
	MissingDefault = "default"
	MissingDrop    = "drop"
	ReportsSome    = "some"
	ReportsEvery   = "every"
)

// A Metric is a number of each decision that is released beside its reward.
type Metric struct {
	Name            string
	Lo, Hi, Default float64        // as those of rewards
	Aggregate       string         // as that of rewards
	Source                         // where an event reports it
	Budget          privacy.Budget // what one unit may lose by it, of the kind of the experiment's
}

// A Policy is a policy with its parameters, both by their names in the catalog.
type Policy struct {
	Policy string
	Params catalog.Params
}

// An Arm is what a decision gives: its name, and a value of any JSON type, null if there is none,
// and then decisions have the name as the value.
type Arm struct {
	Name  string
	Value json.RawMessage
}

// A Unit is whose rewards are protected.
type Unit struct {
	Of          string      // person, device, visit: a word for people to read
	Assignments keyed.Count // to a unit at most, 0 meaning 1; the budget is for all of them
	// PerPerson is how many decisions of one person count at most: each names its person, who may
	// be several units. 0: nobody counts them.
	PerPerson keyed.Count
}

// The bounds of windows, and how long an experiment that has stopped may be retained.
const (
	MinWindow    = time.Millisecond
	MaxWindow    = 366 * 24 * time.Hour
	MaxRetention = 10 * MaxWindow
)

// maxTraffic bounds the decisions of a day.
const maxTraffic = 1e12

// maxMetrics bounds the metrics of a live experiment.
const maxMetrics = 100

// maxArms bounds the arms of a live experiment, and maxValue a value, in bytes.
const (
	maxArms  = 1000
	maxValue = 1 << 16
)

// ownKey is a key of live experiments that a log has no column for.
var ownKey = regexp.MustCompile(`(?m)(^|[\s{,"'])(arms|policy|budget|window)["']?\s*:`)

// An Error is what is wrong with a declaration, and where. It matches ErrSpec.
type Error = keyed.Error

// ErrSpec is matched by every error in a declaration.
var ErrSpec = keyed.ErrSpec

// A Reader reads live experiments whose policies are those of its catalog.
type Reader struct{ Catalog catalog.Catalog }

// Parse reads a live experiment with the policies of Sotto, as Reader.Parse does.
func Parse(file string, data []byte) (*Experiment, error) { return Reader{}.Parse(file, data) }

// Parse reads a live experiment from YAML, or JSON, as strictly as files of experiments are read:
// an unknown key, or one that is given twice, is an error that says where it is. It checks the form;
// Experiment.Check checks what it says.
func (r Reader) Parse(file string, data []byte) (*Experiment, error) {
	d := keyed.NewDecoder(r.Catalog, file, ownKey, "arms, policy, budget and window", "")
	body, err := d.Parse(data)
	if err != nil {
		return nil, err
	}
	bandit := catalog.BanditArms
	values, _ := d.Mapping(body, "") // ReadKeys says what is wrong
	says := func(key string) bool {
		return slices.ContainsFunc(values, func(kv *ast.MappingValueNode) bool {
			return kv.Key.GetToken().Value == key
		})
	}
	switch {
	case says("contextual"):
		bandit = catalog.BanditContextual
	case says("risk"):
		bandit = catalog.BanditIdentify
	}
	l := &Experiment{Catalog: r.Catalog, src: d.Src}
	if err := keyed.ReadKeys(d, body, "", keys(r.Catalog, bandit), l); err != nil {
		return nil, err
	}
	if err := l.Pick(); err != nil {
		return nil, err
	}
	return l, nil
}

// liveLine begins with a key that files of experiments have not.
var liveLine = regexp.MustCompile(`(?m)^[{"']{0,2}(policy|unit|window)["']?[ \t]*:`)

// Is says whether a file is one of a live experiment: it has keys that files of simulated ones
// have not.
func (r Reader) Is(data []byte) bool {
	d := keyed.NewDecoder(r.Catalog, "", ownKey, "", "")
	body, err := d.Parse(data)
	if err != nil { // Parse says where, if it is one
		return liveLine.Match(data)
	}
	values, _ := d.Mapping(body, "") // what is no mapping is none
	return slices.ContainsFunc(values, func(kv *ast.MappingValueNode) bool {
		return slices.Contains([]string{"policy", "unit", "window"}, kv.Key.GetToken().Value)
	})
}

// keys are the keys of a live experiment, with policies for one kind of bandit.
func keys(known catalog.Catalog, bandit string) []keyed.Key[Experiment] {
	keys := []keyed.Key[Experiment]{
		keyed.Always("name", keyed.As(keyed.Object{"type": "string", "pattern": keyed.NameForm.String(), "maxLength": keyed.MaxLabel},
			(*keyed.Decoder).Text), func(l *Experiment) *string { return &l.Name }, "of the experiment; a name stays taken").Must(),
		keyed.Of("description", keyed.Text(), func(l *Experiment) *string { return &l.Description }, "a text for its report"),
		keyed.Always("arms", keyed.Many(keyed.Form[Arm]{Read: readArm,
			Write: func(a Arm) (any, error) {
				return []keyed.Field{keyed.FieldOf("name", a.Name), keyed.FieldOf("value", a.Value)}, nil
			},
			Schema: armSchema}, keyed.Object{"minItems": 2, "maxItems": maxArms}),
			func(l *Experiment) *[]Arm { return &l.Arms }, "what decisions give: names, or {name: red, value: \"#c00\"} with a "+
				"value of any JSON type; the value of an arm without one is its name, for every client").Must(),
		policyKey(known, bandit),
		keyed.Of("risk", keyed.Share(), func(l *Experiment) *float64 { return &l.Risk },
			"δ, the probability of a wrong answer that is allowed: the policy looks for the best "+
				"arm and stops"),
		keyed.Of("horizon", keyed.Whole(), func(l *Experiment) *keyed.Count { return &l.Horizon },
			"how many decisions there will be, for policies that must know"),
		keyed.Always("budget", keyed.Budget(keyed.BudgetShapes()), func(l *Experiment) *privacy.Budget { return &l.Budget },
			"what one unit may lose by all its assignments: {epsilon: 1} or {rho: 0.1}; more kinds where a unit is "+
				"assigned once").Must(),
		keyed.Always("unit", keyed.Mapped(unitKeys), func(l *Experiment) *Unit {
			return &l.Unit
		}, "whose rewards are protected").Must(),
		{Name: "reward", Doc: "what rewards may be", Schema: keyed.Mapped(rewardKeys).Schema,
			Read: func(d *keyed.Decoder, n ast.Node, at string, to *Experiment) error {
				return keyed.ReadKeys(d, n, at, rewardKeys(), to)
			},
			Given: func(*Experiment) bool { return true },
			Value: func(l *Experiment) (any, error) { return keyed.NormalOf(rewardKeys(), l) }},
		keyed.Always("window", lasting(), func(l *Experiment) *time.Duration {
			return &l.Window
		}, "how long a reward may take, such as 24h, from 1ms to 8784h").Must(),
		keyed.Of("traffic", keyed.Positive(keyed.Object{"exclusiveMinimum": 0, "maximum": maxTraffic}),
			func(l *Experiment) *float64 { return &l.Traffic },
			"how many decisions a day are expected, which a first batch is proposed from"),
		keyed.Always("floor", keyed.Real(keyed.Object{"minimum": 0, "exclusiveMaximum": 1}),
			func(l *Experiment) *float64 { return &l.Floor }, "γ, the share of decisions whose arm is uniform, so that every arm goes on being tried"),
		{Name: "sticky", Doc: "a unit that asks again is answered the same; if not, it is assigned anew, " +
			"and decisions may name no unit: the caller sees to it that none has more than its assignments",
			Schema: func() keyed.Object { return keyed.Object{"type": "boolean", "default": true} },
			Read: func(d *keyed.Decoder, n ast.Node, at string, to *Experiment) error {
				var sticky bool
				err := d.Flag(n, at, &sticky)
				to.Free = !sticky
				return err
			},
			Given: func(*Experiment) bool { return true },
			Value: func(l *Experiment) (any, error) { return !l.Free, nil }},
		keyed.Of("exposure", keyed.OneOf(exposures), func(l *Experiment) *string { return &l.Exposure },
			"whether a decision counts at once (decide), at once and no more if it is taken back before its window has passed "+
				"(retract), or when it is activated (activate)"),
		keyed.Of("activate_within", lasting(), func(l *Experiment) *time.Duration { return &l.ActivateWithin },
			"how long after a decision it may be activated; the window if it is not given, an hour at most"),
		keyed.Of("metrics", keyed.Many(keyed.Mapped(metricKeys), keyed.Object{"maxItems": maxMetrics}),
			func(l *Experiment) *[]Metric { return &l.Metrics },
			"further numbers of each decision, released beside the rewards for a price of their own"),
		keyed.Of("ratios", keyed.Many(keyed.Mapped(ratioKeys), keyed.Object{"maxItems": maxMetrics}),
			func(l *Experiment) *[]Ratio { return &l.Ratios },
			"what an arm has of one number over what it has of another, such as revenue per order; for no further price"),
		keyed.Of("missing", keyed.OneOf([]string{MissingDefault, MissingDrop}),
			func(l *Experiment) *string { return &l.Missing },
			"what a decision counts whose reward does not come: the default, or nothing (drop)"),
		keyed.Of("reports", keyed.OneOf([]string{ReportsSome, ReportsEvery}),
			func(l *Experiment) *string { return &l.Reports },
			"which outcomes the reporters promise to report; to drop what is missing they must "+
				"report every one"),
		keyed.Of("start", instant(), func(l *Experiment) *time.Time { return &l.Start }, "no decision before"),
		keyed.Of("end", instant(), func(l *Experiment) *time.Time { return &l.End }, "no decision from then on"),
		keyed.Of("fallback", keyed.Text(), func(l *Experiment) *string { return &l.Fallback },
			"the arm that is given while the experiment does not run, and to units outside of it; the first if it is not given"),
		keyed.Of("stop", keyed.Mapped(stopKeys), func(l *Experiment) *Stop { return &l.Stop },
			"what is given when the experiment has stopped, by its end, its policy or a stop that names no arm"),
		keyed.Always("public", keyed.YesNo(), func(l *Experiment) *bool {
			return &l.Public
		}, "everybody may read what it released, without a key"),
		keyed.Of("share", keyed.Positive(keyed.Object{"exclusiveMinimum": 0, "maximum": 1}),
			func(l *Experiment) *float64 { return &l.Share },
			"the share of units that are in it; the others are given the fallback"),
		onlyKey(),
		cellKeys()[0], cellKeys()[1],
		keyed.Of("layer", keyed.Mapped(layerKeys), func(l *Experiment) *Layer { return &l.Layer },
			"the experiments that no unit is in two of, and this one's range of the units"),
		keyed.Of("retention", lasting(), func(l *Experiment) *time.Duration { return &l.Retention },
			"how long after its stop it is archived by itself, such as 720h"),
		keyed.Of("webhook", keyed.Filled(""), func(l *Experiment) *string { return &l.Webhook },
			"the https address that is told when it has stopped or a guard has acted; it is in the transcript, so put no secret in it"),
		keyed.Of("webhook_form", keyed.OneOf([]string{FormCloudEvents}), func(l *Experiment) *string { return &l.WebhookForm },
			"how it is told: cloudevents, for what reads CloudEvents 1.0; in JSON of its own if it is not given"),
		keyed.Of("forget", days(), func(l *Experiment) *time.Duration { return &l.Forget },
			"how many days after its decision what is kept of a unit is destroyed while the experiment runs, such as 90d: at the "+
				"first midnight, UTC, that is more than so many days after the day of the decision; not shorter than the window. When it "+
				"has stopped, all goes at once"),
	}
	keys = slices.Concat(keys, gatheringKeys(), safetyKeys(), []keyed.Key[Experiment]{leasesKey()}, holdoutKeys())
	if bandit == catalog.BanditArms {
		keys = slices.Insert(keys, 4, splitKeys()...)
	}
	if bandit == catalog.BanditContextual {
		for i, k := range keys { // what Check refuses is not in the normal form
			switch k.Name {
			case "arms":
				keys[i] = k.When(k.Given)
				keys[i].Required = false
			case "sticky":
				keys[i] = k.When(func(l *Experiment) bool { return l.Free })
			}
		}
		keys = slices.Insert(keys, 2, contextualKey())
	}
	return keys
}

// policyKey is the key of who decides. It may be left out: then Pick picks.
func policyKey(known catalog.Catalog, bandit string) keyed.Key[Experiment] {
	key := keyed.Always("policy", policyForm(known, bandit), func(l *Experiment) *Policy { return &l.Policy }, "who decides")
	key.Doc += "; if it is not given, " + map[string]string{
		catalog.BanditArms:     "auto, which picks one by what is declared",
		catalog.BanditIdentify: catalog.DefaultRule,
		catalog.BanditContextual: ContextualPolicy + " where rewards are what is protected, and " + HistogramPolicy +
			" where contexts are, of words that are listed",
	}[bandit]
	return key
}

// policyForm is the form of a policy for one kind of bandit.
func policyForm(known catalog.Catalog, bandit string) keyed.Form[Policy] {
	name := func(p *Policy) *string { return &p.Policy }
	params := func(p *Policy) *catalog.Params { return &p.Params }
	keys := func(e catalog.Entry) []keyed.Key[Policy] {
		return append([]keyed.Key[Policy]{keyed.Always("policy", keyed.Text(), name, "").Must()}, keyed.ParamKeys(e, params)...)
	}
	return keyed.PolicyForm[Policy]{Known: known, Bandit: bandit, Name: name, Params: params,
		NoProgram: "a program of somebody else would keep people's privacy, and nothing is proved of its decisions",
		Keys:      keys, Normal: keys, Shown: keys}.Form()
}

func stopKeys() []keyed.Key[Stop] {
	return []keyed.Key[Stop]{
		keyed.Always("keep", keyed.Filled(""), func(s *Stop) *string { return &s.Keep },
			"the arm that everybody gets, or leader: the one with the highest private mean; with contexts policy: the best "+
				"action by what was learnt").Must(),
	}
}

func unitKeys() []keyed.Key[Unit] {
	return []keyed.Key[Unit]{
		keyed.Always("of", keyed.Filled(""), func(u *Unit) *string { return &u.Of }, "a word for people to read, such as person or visit").Must(),
		keyed.Of("assignments", keyed.Whole(), func(u *Unit) *keyed.Count { return &u.Assignments },
			"how often a unit may be assigned, by which the budget is shared out; 1 if it is not given"),
		keyed.Of("per_person", keyed.Whole(), func(u *Unit) *keyed.Count { return &u.PerPerson },
			"how many decisions of one person count, where a person may be several units: each decision names its person"),
	}
}

func metricKeys() []keyed.Key[Metric] {
	keys := []keyed.Key[Metric]{
		keyed.Always("name", keyed.As(keyed.Object{"type": "string", "pattern": keyed.NameForm.String(), "maxLength": keyed.MaxLabel},
			(*keyed.Decoder).Text), func(m *Metric) *string { return &m.Name }, "of the metric").Must(),
		{Name: "range", Doc: keyed.RangeDoc, Schema: keyed.SpanSchema,
			Read: func(d *keyed.Decoder, n ast.Node, at string, to *Metric) error {
				return d.Pair(n, at, &to.Lo, &to.Hi)
			},
			Given: func(*Metric) bool { return true },
			Value: func(m *Metric) (any, error) {
				lo, hi := m.Range()
				return keyed.List([]float64{lo, hi}), nil
			}},
		keyed.Always("default", keyed.Real(keyed.Object{}), func(m *Metric) *float64 { return &m.Default },
			"what a decision counts for which it is not reported"),
		keyed.Of("aggregate", keyed.OneOf(aggregates), func(m *Metric) *string { return &m.Aggregate }, aggregateDoc),
		keyed.Always("budget", keyed.Budget(keyed.BudgetShapes()), func(m *Metric) *privacy.Budget { return &m.Budget },
			"what one unit may lose by it, in addition").Must(),
	}
	return slices.Insert(keys, len(keys)-1, sourceKeys(func(m *Metric) *Source { return &m.Source })...)
}

func rewardKeys() []keyed.Key[Experiment] {
	keys := []keyed.Key[Experiment]{
		{Name: "range", Doc: keyed.RangeDoc, Schema: keyed.SpanSchema,
			Read: func(d *keyed.Decoder, n ast.Node, at string, to *Experiment) error {
				return d.Pair(n, at, &to.Lo, &to.Hi)
			},
			Given: func(*Experiment) bool { return true },
			Value: func(l *Experiment) (any, error) {
				lo, hi := l.Range()
				return keyed.List([]float64{lo, hi}), nil
			}},
		keyed.Always("default", keyed.Real(keyed.Object{}), func(l *Experiment) *float64 { return &l.Default },
			"what a decision counts whose reward does not come"),
		keyed.Of("aggregate", keyed.OneOf(aggregates), func(l *Experiment) *string { return &l.Aggregate }, aggregateDoc),
	}
	return append(keys, sourceKeys(func(l *Experiment) *Source { return &l.Source })...)
}

// ofArms are keys that contextual experiments do not have.
var ofArms = []string{"arms", "sticky", "metrics", "ratios", "missing", "reports", "fallback", "share", "only", "by",
	"cell_minimum", "layer", "webhook", "webhook_form", "forget", "trust", "report_after", "grid", "helper", "cohort", "guard", "ramp",
	"leases", "holds", "holdout"}

// Schema is the JSON schema (draft 2020-12) of live experiments.
func (r Reader) Schema() ([]byte, error) {
	var of []any
	for _, bandit := range []string{catalog.BanditArms, catalog.BanditIdentify, catalog.BanditContextual} {
		keys := keys(r.Catalog, bandit)
		keys = slices.DeleteFunc(keys, func(k keyed.Key[Experiment]) bool {
			return k.Name == "risk" && bandit != catalog.BanditIdentify ||
				bandit == catalog.BanditContextual && slices.Contains(ofArms, k.Name)
		})
		s := keyed.SchemaOf(keys)
		if bandit == catalog.BanditIdentify {
			s["required"] = append(s["required"].([]string), "risk")
		}
		of = append(of, s)
	}
	return json.MarshalIndent(keyed.Object{"$schema": "https://json-schema.org/draft/2020-12/schema",
		"title": "Sotto live experiment", "oneOf": of}, "", "  ")
}

func armSchema() keyed.Object {
	return keyed.Object{"anyOf": []any{keyed.Object{"type": "string"}, keyed.Object{"type": "object",
		"properties":           keyed.Object{"name": keyed.LabelSchema(), "value": keyed.Object{}},
		"required":             []string{"name"},
		"additionalProperties": false}}}
}

func readArm(d *keyed.Decoder, n ast.Node, field string, to *Arm) error {
	to.Value = json.RawMessage("null")
	if s, ok := n.(*ast.StringNode); ok {
		to.Name = s.Value
		return nil
	}
	return d.Keys(n, field, []string{"name", "value"}, func(key, at string, v ast.Node) error {
		if key == "name" {
			return d.Text(v, at, &to.Name)
		}
		value, err := readJSON(d, v, at)
		if err != nil {
			return err
		}
		to.Value, err = json.Marshal(value)
		return err
	})
}

func readDuration(d *keyed.Decoder, n ast.Node, field string, to *time.Duration) error {
	var text string
	err := d.Text(n, field, &text)
	if err != nil {
		return d.Fail(n, field, "is %s, must be a duration such as 24h or 90m", keyed.KindOfNode(n))
	}
	if *to, err = time.ParseDuration(text); err != nil {
		return d.Fail(n, field, "is %q, must be a duration such as 24h or 90m", keyed.Clip(text))
	}
	return nil
}

// lasting is a duration such as 24h, not 0.
func lasting() keyed.Form[time.Duration] {
	return keyed.Form[time.Duration]{
		Read: func(d *keyed.Decoder, n ast.Node, at string, to *time.Duration) error {
			err := readDuration(d, n, at, to)
			if err == nil && *to == 0 {
				err = d.Fail(n, at, "is 0s, must be from %v to %v", MinWindow, MaxWindow)
			}
			return err
		},
		Write:  func(w time.Duration) (any, error) { return w.String(), nil },
		Schema: func() keyed.Object { return keyed.Object{"type": "string", "pattern": `^[0-9.]+(ms|s|m|h)`} }}
}

// instant is a time as RFC 3339 writes it.
func instant() keyed.Form[time.Time] {
	return keyed.Form[time.Time]{
		Read: func(d *keyed.Decoder, n ast.Node, at string, to *time.Time) error {
			var text string
			err := d.Text(n, at, &text)
			if err != nil {
				return err
			}
			if *to, err = time.Parse(time.RFC3339, text); err != nil {
				return d.Fail(n, at, "is %q, must be a time such as 2026-01-31T09:00:00Z", keyed.Clip(text))
			}
			return nil
		},
		Write:  func(t time.Time) (any, error) { return t.UTC().Format(time.RFC3339Nano), nil },
		Schema: func() keyed.Object { return keyed.Object{"type": "string", "format": "date-time"} },
	}
}

// json is a node as encoding/json takes it.
func readJSON(d *keyed.Decoder, n ast.Node, field string) (any, error) {
	switch v := n.(type) {
	case *ast.NullNode:
		return nil, nil
	case *ast.BoolNode:
		return v.Value, nil
	case *ast.IntegerNode, *ast.FloatNode:
		if text := v.GetToken().Value; json.Valid([]byte(text)) {
			return json.Number(text), nil
		}
		var x float64
		err := d.Float(n, field, &x)
		return x, err
	case *ast.SequenceNode:
		out := []any{}
		err := d.Items(n, field, func(_ int, at string, item ast.Node) error {
			x, err := readJSON(d, item, at)
			out = append(out, x)
			return err
		})
		return out, err
	case *ast.MappingNode, *ast.MappingValueNode:
		values, err := d.Mapping(n, field)
		if err != nil {
			return nil, err
		}
		out := map[string]any{}
		for _, kv := range values {
			key := kv.Key.GetToken().Value
			if out[key], err = readJSON(d, kv.Value, keyed.Join(field, key)); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	var text string
	err := d.Text(n, field, &text)
	return text, err
}

func (l *Experiment) fail(field, format string, args ...any) error {
	return l.Wrap(field, fmt.Errorf(format, args...))
}

// Wrap places an error at a field, where the file has it.
func (l *Experiment) Wrap(field string, err error) error { return l.src.Wrap(field, err) }

// Check says what is wrong with the experiment, field by field: nil, or an Error. What it lets pass
// can be played live (play.Admit) with the guarantee that Budget says.
func (l *Experiment) Check() error {
	lo, hi := l.Range()
	switch {
	case l.Name == "":
		return l.fail("name", "is missing")
	case !keyed.NameForm.MatchString(l.Name) || len(l.Name) > keyed.MaxLabel:
		return l.fail("name", "is %q, must be at most %d characters of a-z, 0-9, dot, dash and "+
			"underscore, the first a letter or digit", keyed.Clip(l.Name), keyed.MaxLabel)
	case l.Contextual == nil && (len(l.Arms) < 2 || len(l.Arms) > maxArms):
		return l.fail("arms", "has %d, must be from 2 to %d", len(l.Arms), maxArms)
	case l.Policy.Policy == "" && l.Contextual == nil: // see NewContextual
		return l.fail("policy", "is missing")
	case l.Unit.Of == "":
		return l.fail("unit.of", "is missing: say whose rewards are protected, such as person or visit")
	case l.Unit.Assignments < 0:
		return l.fail("unit.assignments", "is %d, must be at least 1", int(l.Unit.Assignments))
	case l.Unit.PerPerson < 0:
		return l.fail("unit.per_person", "is %d, must be at least 1", int(l.Unit.PerPerson))
	case !(l.Window >= MinWindow && l.Window <= MaxWindow):
		return l.fail("window", "is %v, must be from %v to %v", l.Window, MinWindow, MaxWindow)
	case l.Exposure != "" && !slices.Contains(exposures, l.Exposure):
		return l.fail("exposure", "is %q, must be %s", keyed.Clip(l.Exposure), strings.Join(exposures, " or "))
	case l.Missing != "" && l.Missing != MissingDefault && l.Missing != MissingDrop:
		return l.fail("missing", "is %q, must be %s or %s", keyed.Clip(l.Missing), MissingDefault, MissingDrop)
	case l.Reports != "" && l.Reports != ReportsSome && l.Reports != ReportsEvery:
		return l.fail("reports", "is %q, must be %s or %s", keyed.Clip(l.Reports), ReportsSome, ReportsEvery)
	case l.Missing == MissingDrop && l.Reports != ReportsEvery:
		return l.fail("missing", "is drop: counts would tell whose rewards came, which is allowed only with "+
			"reports: every, the promise to report every outcome")
	case l.ActivateWithin != 0 && l.Exposure != ExposeActivate:
		return l.fail("activate_within", "is given, and exposure is not %s", ExposeActivate)
	case l.ActivateWithin != 0 && !(l.ActivateWithin >= MinWindow && l.ActivateWithin <= MaxWindow):
		return l.fail("activate_within", "is %v, must be from %v to %v", l.ActivateWithin, MinWindow, MaxWindow)
	case l.Retention != 0 && !(l.Retention >= MinWindow && l.Retention <= MaxRetention):
		return l.fail("retention", "is %v, must be from %v to %v", l.Retention, MinWindow, MaxRetention)
	case !(l.Traffic >= 0 && l.Traffic <= maxTraffic):
		return l.fail("traffic", "is %v, must be above 0 and at most %v decisions a day", l.Traffic,
			float64(maxTraffic))
	case !(l.Floor >= 0 && l.Floor < 1):
		return l.fail("floor", "is %v, must be at least 0 and below 1", l.Floor)
	case !l.Start.IsZero() && !l.End.IsZero() && !l.End.After(l.Start):
		return l.fail("end", "is %s, must be a time after the start, %s", l.End.Format(time.RFC3339),
			l.Start.Format(time.RFC3339))
	case !(l.Default >= lo && l.Default <= hi):
		return l.fail("reward.default", "is %v, must be a number from %v to %v", l.Default, lo, hi)
	}
	if _, err := release.NewClip(lo, hi); err != nil {
		return l.fail("reward.range", "%w", err)
	}
	if err := keyed.CheckLabel(l.Unit.Of); err != nil {
		return l.src.Wrap("unit.of", err)
	}
	if err := l.checkAggregates(); err != nil {
		return err
	}
	if err := l.checkEvents(); err != nil {
		return err
	}
	if l.Contextual != nil {
		return l.checkContextual()
	}
	if err := l.checkArms(); err != nil {
		return err
	}
	if err := l.checkSplit(); err != nil {
		return err
	}
	if err := l.checkMetrics(); err != nil {
		return err
	}
	if err := l.checkRatios(); err != nil {
		return err
	}
	if err := l.checkGuard(); err != nil {
		return err
	}
	if err := l.checkAudience(); err != nil {
		return err
	}
	if err := l.checkRamp(); err != nil {
		return err
	}
	if err := l.checkWebhook(); err != nil {
		return err
	}
	if err := l.checkForget(); err != nil {
		return err
	}
	if err := l.checkTrust(); err != nil {
		return err
	}
	if err := l.checkBy(); err != nil {
		return err
	}
	if err := l.checkLeases(); err != nil {
		return err
	}
	if err := l.checkHoldout(); err != nil {
		return err
	}
	each, err := l.EachAssignment()
	if err != nil {
		return err
	}
	p, err := l.NewPolicy(ZeroCoins{})
	if err != nil {
		return err
	}
	if _, err := l.Take(); err != nil {
		return err
	}
	if p.Mechanism() == nil {
		return l.fail("policy", "has no mechanism at %v", each)
	}
	if err := l.checkCells(); err != nil {
		return err
	}
	return l.checkGathered(p, each)
}

// Take says how the policy takes the decisions that it asks for from the queue of their arm.
func (l *Experiment) Take() (play.Take, error) {
	p, err := l.NewPolicy(ZeroCoins{})
	if err != nil {
		return 0, err
	}
	take, err := play.Admit(p)
	if err != nil {
		return 0, l.src.Wrap("policy", err)
	}
	for field, yes := range map[string]bool{"missing": l.Missing == MissingDrop,
		"exposure": l.Exposure == ExposeRetract} {
		if !yes {
			continue
		}
		if err := play.AdmitAtLeast(p); err != nil {
			return 0, l.src.Wrap(field, err)
		}
		if take == play.Exactly {
			take = play.AtLeast
		}
	}
	return take, l.checkJoint(take, p)
}

// maxAddress is the longest address of a webhook or a helper, in bytes.
const maxAddress = 2048

// Table has the intervals and the verdict of the experiment's arms.
func (l *Experiment) Table() interval.Table {
	lo, hi := l.Range()
	return interval.Table{Arms: len(l.Arms), Lo: lo, Hi: hi, Joint: l.compared()}
}

// IntervalCondition is on what an interval for a mean of the released sums rests, beside what
// is proved of it: a sentence, empty if there is nothing. Where decisions can be retracted,
// or are dropped without a report, who is counted may go by the reward, and a sum then is not
// of those who are.
func (l *Experiment) IntervalCondition() string {
	var what []string
	if l.Exposure == ExposeRetract {
		what = append(what, "retracted")
	}
	if l.Missing == MissingDrop {
		what = append(what, "reported")
	}
	by := "its reward"
	if l.Split() { // arms are compared by their coins
		by = "its arm or its reward"
		if l.Exposure == ExposeActivate {
			what = append(what, "activated")
		}
		if l.Leases.On() {
			what = append(what, "exposed")
		}
	}
	if l.Trust == string(privacy.TrustSecAgg) && l.Terms().Otherwise == CohortDefault {
		return "Intervals hold only if whether the sum of a row can be had does not go by its arm."
	}
	if what == nil {
		return l.sinceAdded()
	}
	return "Intervals hold only if whether a decision is " + strings.Join(what, " or ") + " does not go by " + by + "." +
		strings.TrimSuffix(" "+l.sinceAdded(), " ")
}

// sinceAdded says what intervals are of where arms were added, in sentences; else nothing. At each number of
// arms K the intervals have the risk of K arms, and hold together at all times at which there are K: those
// shown before an arm came are apart from them.
func (l *Experiment) sinceAdded() string {
	if l.Added == 0 {
		return ""
	}
	by := "an arm is compared by what was released of it since it came"
	if l.Split() {
		by = "two arms are compared by what was released of both since the later of them came"
	}
	return fmt.Sprintf("%s came while it ran: intervals hold together at all times since then, and %s.", plural(l.Added, "arm"), by)
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func (l *Experiment) checkWebhook() error {
	switch {
	case l.WebhookForm != "" && l.WebhookForm != FormCloudEvents:
		return l.fail("webhook_form", "is %q, must be %s, or left out", keyed.Clip(l.WebhookForm), FormCloudEvents)
	case l.WebhookForm != "" && l.Webhook == "":
		return l.fail("webhook_form", "is given, and there is no webhook")
	case l.Webhook == "":
		return nil
	}
	return l.checkAddress("webhook", l.Webhook, "https://shop.example/stopped", true)
}

// checkAddress says whether a key is an address of the web that may be written to: such as example.
func (l *Experiment) checkAddress(key, address, example string, query bool) error {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || u.User != nil || u.Fragment != "" || u.RawQuery != "" && !query ||
		len(address) > maxAddress {
		without := "user and fragment"
		if !query {
			without = "user, query and fragment"
		}
		return l.fail(key, "must be an address such as %s, without %s", example, without)
	}
	ip := net.ParseIP(u.Hostname())
	if own := u.Hostname() == "localhost" || ip != nil && ip.IsLoopback(); u.Scheme != "https" &&
		!(u.Scheme == "http" && own) {
		return l.fail(key, "has the scheme %q, must be https, or http to this machine", keyed.Clip(u.Scheme))
	}
	return nil
}

func (l *Experiment) checkArms() error {
	names := map[string]bool{}
	for i, a := range l.Arms {
		at := fmt.Sprintf("arms[%d]", i)
		switch {
		case a.Name == "":
			return l.fail(at+".name", "is missing")
		case names[a.Name]:
			return l.fail(at+".name", "%q is the name of an arm before: names must differ", keyed.Clip(a.Name))
		case len(a.Value) > maxValue:
			return l.fail(at+".value", "is %d bytes long, must be at most %d", len(a.Value), maxValue)
		case len(a.Value) > 0 && !json.Valid(a.Value):
			return l.fail(at+".value", "is no JSON")
		}
		if err := keyed.CheckLabel(a.Name); err != nil {
			return l.src.Wrap(at+".name", err)
		}
		names[a.Name] = true
	}
	if l.Fallback != "" && !names[l.Fallback] {
		return l.fail("fallback", "is %q, must be the name of an arm", keyed.Clip(l.Fallback))
	}
	if k := l.Stop.Keep; k != "" && k != KeepLeader && !names[k] {
		return l.fail("stop.keep", "is %q, must be the name of an arm, or %s", keyed.Clip(k), KeepLeader)
	}
	return nil
}

func (l *Experiment) checkMetrics() error {
	if n := len(l.Metrics); n > maxMetrics {
		return l.fail("metrics", "has %d, must have at most %d", n, maxMetrics)
	}
	names := map[string]bool{}
	for i, m := range l.Metrics {
		at := fmt.Sprintf("metrics[%d]", i)
		lo, hi := m.Range()
		switch {
		case !keyed.NameForm.MatchString(m.Name) || len(m.Name) > keyed.MaxLabel:
			return l.fail(at+".name", "is %q, must be at most %d characters of a-z, 0-9, dot, dash and "+
				"underscore, the first a letter or digit", keyed.Clip(m.Name), keyed.MaxLabel)
		case names[m.Name]:
			return l.fail(at+".name", "%q is the name of a metric before: names must differ", m.Name)
		case m.Name == RewardName && l.By.Key != "":
			return l.fail(at+".name", "is %q, must be another one with by: cells have the reward under it", m.Name)
		case !(m.Default >= lo && m.Default <= hi):
			return l.fail(at+".default", "is %v, must be a number from %v to %v", m.Default, lo, hi)
		}
		if _, err := release.NewClip(lo, hi); err != nil {
			return l.fail(at+".range", "%w", err)
		}
		if _, err := m.mechanism(l.Budget, l.Assignments()); err != nil {
			return l.fail(at+".budget", "%w", err)
		}
		names[m.Name] = true
	}
	return nil
}

// Range is the metric's declared range.
func (m Metric) Range() (lo, hi float64) { return release.Range(m.Lo, m.Hi) }

// mechanism is what releases a metric beside rewards with this budget, to units with so many
// assignments: one-shot noise for an ε/m or a ρ/m².
func (m Metric) mechanism(rewards privacy.Budget, assignments int) (privacy.Mechanism, error) {
	times := float64(assignments)
	switch b := m.Budget.(type) {
	case nil:
		return nil, errors.New("is missing, must be a budget such as {epsilon: 0.1}")
	case privacy.Pure:
		if _, ok := rewards.(privacy.Pure); ok && b.Epsilon > 0 && b.Epsilon <= maxMetricBudget {
			return privacy.Laplace{Scale: times / b.Epsilon}, nil
		}
	case privacy.ZCDP:
		if _, ok := rewards.(privacy.ZCDP); ok && b.Rho > 0 && b.Rho <= maxMetricBudget {
			return privacy.Gaussian{Sigma: times / math.Sqrt(2*b.Rho)}, nil
		}
	}
	return nil, fmt.Errorf("is %v, must be above 0 and at most %v, in epsilon or in rho as the experiment's, "+
		"which is %v", m.Budget, float64(maxMetricBudget), rewards)
}

// maxMetricBudget is an ε or a ρ that protects nobody.
const maxMetricBudget = 100

// PlayMetrics are the metrics as they are played.
func (l *Experiment) PlayMetrics() (out []play.Metric, err error) {
	for i, m := range l.Metrics {
		p := play.Metric{Name: m.Name, Lo: m.Lo, Hi: m.Hi, Default: m.Default, Aggregate: play.Aggregate(m.Aggregate)}
		if p.Mechanism, err = m.mechanism(l.Budget, l.Assignments()); err != nil {
			return nil, l.fail(fmt.Sprintf("metrics[%d].budget", i), "%w", err)
		}
		out = append(out, p)
	}
	return out, nil
}

// Total is what one unit may lose in all: the budget and those of the metrics or of the rules.
func (l *Experiment) Total() privacy.Budget {
	total := l.Budget
	var more []privacy.Budget
	for _, m := range l.Metrics {
		more = append(more, m.Budget)
	}
	if l.Contextual != nil {
		for _, r := range l.Contextual.Rules {
			more = append(more, r.Budget)
		}
	}
	for _, of := range more {
		switch b := total.(type) {
		case privacy.Pure:
			if more, ok := of.(privacy.Pure); ok {
				b.Epsilon += more.Epsilon
			}
			total = b
		case privacy.ZCDP:
			if more, ok := of.(privacy.ZCDP); ok {
				b.Rho += more.Rho
			}
			total = b
		}
	}
	if more == nil {
		return total
	}
	return shortly(total)
}

// shortly is a sum of decimals without what rounding has added to it; ledgers allow for more.
func shortly(b privacy.Budget) privacy.Budget {
	switch b := b.(type) {
	case privacy.Pure:
		return privacy.Pure{Epsilon: shortFloat(b.Epsilon)}
	case privacy.ZCDP:
		return privacy.ZCDP{Rho: shortFloat(b.Rho)}
	}
	return b
}

func shortFloat(x float64) float64 {
	y, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 12, 64), 64)
	if err != nil {
		return x
	}
	return y
}

// Range is the declared range of rewards.
func (l *Experiment) Range() (lo, hi float64) { return release.Range(l.Lo, l.Hi) }

// Activation is how long after a decision it may be activated, 0 where it counts at once.
func (l *Experiment) Activation() time.Duration {
	switch {
	case l.Exposure != ExposeActivate:
		return 0
	case l.ActivateWithin != 0:
		return l.ActivateWithin
	}
	return min(l.Window, time.Hour)
}

// A FirstBatch is a proposal for the parameter of a policy that says how long an arm's first batch
// is. Every batch waits until the windows of its decisions have passed, and what is decided
// meanwhile is in its shares: the proposal is what is decided then anyway. Which of the two loses
// less depends on the arms, too: Request compares them.
type FirstBatch struct {
	Param    string // the parameter's name
	Is       int    // decisions of an arm, as it is
	Proposed int    // that come while a batch waits, shared out to the arms
}

// FirstBatch proposes a first batch for the expected traffic; ok is false if there is none, or the
// policy has no such parameter, or its first batch fills a window already. The experiment must pass
// Check.
func (l *Experiment) FirstBatch() (_ FirstBatch, ok bool) {
	entry, err := l.Catalog.Find(l.Bandit(), l.Policy.Policy)
	if err != nil || l.Traffic == 0 || l.Contextual != nil {
		return FirstBatch{}, false
	}
	at := slices.IndexFunc(entry.Params, func(p catalog.Param) bool { return p.Name == FirstParam })
	p, err := l.NewPolicy(ZeroCoins{})
	if err != nil || at < 0 {
		return FirstBatch{}, false
	}
	out := FirstBatch{Param: FirstParam}
	if b := p.Next(privacy.Released{}); b != nil && len(b.Plays) > 0 {
		out.Is = b.Plays[0].Rounds
	}
	waiting := l.Traffic * l.Window.Hours() / 24 / float64(len(l.Arms))
	out.Proposed = int(min(waiting, entry.Params[at].Hi, float64(math.MaxInt/4)))
	return out, out.Is > 0 && out.Proposed > out.Is
}

// Assignments is how often a unit may be assigned.
func (l *Experiment) Assignments() int { return max(1, int(l.Unit.Assignments)) }

// EachAssignment is the budget of one reward, such that a unit with all its assignments loses
// Budget at most: ε/m, or ρ/m² (privacy.Group).
func (l *Experiment) EachAssignment() (privacy.Budget, error) { return l.each(l.Budget) }

// EachTotal is EachAssignment with the metrics or the rules: the budget of all that is reported of
// one decision.
func (l *Experiment) EachTotal() (privacy.Budget, error) { return l.each(l.Total()) }

// each shares a budget out to the assignments of a unit.
func (l *Experiment) each(budget privacy.Budget) (privacy.Budget, error) {
	m := float64(l.Assignments())
	switch b := budget.(type) {
	case nil:
		return nil, l.fail("budget", "is missing, must be a budget such as {epsilon: 1}")
	case privacy.None:
		return nil, l.fail("budget", "is none: live rewards are people's, must be a budget such "+
			"as {epsilon: 1}")
	case privacy.Pure:
		b.Epsilon /= m
		return b, nil
	case privacy.ZCDP:
		b.Rho /= m * m
		return b, nil
	default:
		if m > 1 {
			return nil, l.fail("unit.assignments", "is %v with a budget of %v, must be 1, or a budget "+
				"in epsilon or in rho", m, b)
		}
		return b, nil
	}
}

// Guarantee says in words what is promised to a unit, of an experiment that Check lets pass.
func (l *Experiment) Guarantee() (string, error) {
	each, err := l.EachTotal()
	if err != nil {
		return "", err
	}
	if l.Contextual.Joint() {
		return l.jointGuarantee(each), nil
	}
	how, all := "one reward", "%d rewards together, each at %v"
	if l.Aggregates() {
		how, all = "all reports of one decision", "all reports of %d decisions together, each decision at %v"
	}
	if m := l.Assignments(); m > 1 {
		how = fmt.Sprintf(all, m, each)
	}
	what := "rewards"
	if len(l.Metrics) > 0 {
		what = fmt.Sprintf("rewards and metrics (%v for the rewards)", l.Budget)
	}
	if l.Contextual != nil { // whoever comes twice is two
		how = "the reward of each event"
	}
	if l.Contextual != nil && len(l.Contextual.Rules) > 0 {
		rules := "a rule"
		if n := len(l.Contextual.Rules); n > 1 {
			rules = fmt.Sprintf("%d rules", n)
		}
		how += fmt.Sprintf(" (%v for learning, the rest for %s)", l.Budget, rules)
	}
	text := fmt.Sprintf("what everybody sees depends on a %s's %s by released noisy sums alone, at %v "+
		"for %s", l.Unit.Of, what, l.Total(), how)
	if l.Contextual != nil {
		text += "; contexts, features, ids of actions and what was decided are not protected"
	}
	if l.Exposure == ExposeActivate || l.Exposure == ExposeRetract {
		text += "; counts tell which decisions were met, which must not depend on an outcome"
	}
	text += l.whom() + l.person() + l.forgotten() + l.totals() + l.heard() + l.celled() + l.leased() + l.held()
	if l.Missing == MissingDrop {
		text += "; counts and times of releases tell whether a reward came, which is no secret as long as " +
			"every outcome is reported"
	}
	if odds := l.odds(); odds != "" {
		text += "; " + odds
	}
	return text, nil
}

// mostEpsilon is the largest ε of all of a person's rewards that goes without saying what it allows.
const mostEpsilon = 8

// odds says what an ε above that allows, and is empty below.
func (l *Experiment) odds() string {
	total, ok := l.Total().(privacy.Pure)
	if !ok || total.Epsilon <= mostEpsilon {
		return ""
	}
	factor := fmt.Sprintf("%.2g", math.Exp(total.Epsilon))
	if total.Epsilon > 100 { // beyond what is read, and in the end beyond a float64
		factor = fmt.Sprintf("1e+%.0f", math.Floor(total.Epsilon/math.Ln10))
	}
	return fmt.Sprintf("at %v everything that is published may change the odds about one %s's outcome by a "+
		"factor of up to e^%v, about %s", total, l.Unit.Of, total.Epsilon, factor)
}

// FirstArms is how many arms there were when it began: its policy begins with these, and has been told of
// the others as they came.
func (l *Experiment) FirstArms() int { return len(l.Arms) - l.Added }

// NoArm says why no arm more can be added while it runs, and is nil if one can: it depends on what was declared
// alone.
func (l *Experiment) NoArm() error { return l.NoArms(0) }

// NoArms is NoArm of several, of which those that join an A/B test have these shares when they come, 0 for even ones.
func (l *Experiment) NoArms(shares ...float64) error {
	switch {
	case l.Contextual != nil:
		return errors.New("decisions with contexts bring their actions")
	case l.Risk != 0:
		return fmt.Errorf("the risk of a trial, %v, is of a wrong answer among the arms that it began with", l.Risk)
	case l.Holds != "":
		return errors.New("with other shares another arm would be of a unit that is held")
	case l.TrustModel() != privacy.TrustCentral:
		return fmt.Errorf("under trust %s those who gather sums know the arms there were", l.Trust)
	}
	p, err := l.NewPolicy(ZeroCoins{})
	if err == nil {
		err = play.AddsArms(p)
	}
	before := l.SharesAfter(0)
	for i := range l.Added + len(shares) {
		if err != nil {
			return err
		}
		switch p := p.(type) {
		case play.JointGrower:
			q := 1 / float64(l.FirstArms()+i+1)
			if i < len(l.Joined) {
				q = l.Joined[i]
			} else if more := shares[i-l.Added]; more != 0 {
				q = more
			}
			if err = l.joinsLeased(before, q); err == nil {
				err = p.JoinAt(p.JointEnd(0), q)
			}
			before = policy.JoinShares(before, q)
		case play.Grower:
			err = p.AddArm()
		}
	}
	return err
}

// NewPolicy builds the policy, with its coins at their start.
func (l *Experiment) NewPolicy(coins policy.Coins) (policy.Policy, error) {
	each, err := l.EachAssignment()
	if err != nil {
		return nil, err
	}
	return l.PolicyAt(each, coins)
}

// PolicyAt builds the policy at a budget of one reward.
func (l *Experiment) PolicyAt(each privacy.Budget, coins policy.Coins) (policy.Policy, error) {
	if l.Contextual != nil {
		return nil, l.fail("contextual", "is given, and a policy for arms was asked for")
	}
	entry, err := l.Catalog.Find(l.Bandit(), l.Policy.Policy)
	if err != nil {
		return nil, l.src.Wrap("policy", err)
	}
	if !entry.Private {
		return nil, l.fail("policy", "%s is not private: live rewards are people's", entry.Name)
	}
	if err := entry.Meets(each); err != nil {
		return nil, l.src.Wrap("budget", err)
	}
	params, err := entry.Complete(l.Policy.Params)
	if err != nil {
		return nil, l.src.Wrap("policy", err)
	}
	var p policy.Policy
	if l.Bandit() == catalog.BanditIdentify {
		if !(l.Risk > 0 && l.Risk < 1) {
			return nil, l.fail("risk", "is %v, must be above 0 and below 1: the probability of a wrong "+
				"answer that is allowed", l.Risk)
		}
		var rule identify.Identifier
		rule, err = entry.NewIdentify(catalog.IdentifySetting{Arms: l.FirstArms(), Risk: l.Risk,
			Budget: each, Coins: coins}, params)
		p = rule
	} else {
		if !entry.Anytime && l.Horizon == 0 {
			return nil, l.fail("horizon", "is missing: %s must know how many decisions there will be",
				entry.Name)
		}
		p, err = entry.New(catalog.Setting{Arms: l.FirstArms(), Horizon: int(l.Horizon), Budget: each,
			Coins: coins, Shares: l.sharesOf(), Cells: len(l.Cells())}, l.planned(params))
	}
	if err != nil {
		return nil, l.src.Wrap("policy", err)
	}
	return p, nil
}

// ZeroCoins are for policies that are built to be looked at.
type ZeroCoins struct{}

func (ZeroCoins) Float64() float64          { return 0 }
func (ZeroCoins) Normal() float64           { return 0 }
func (ZeroCoins) Beta(a, b float64) float64 { return a / (a + b) }

// JSON is the experiment's normal form on one line, which Parse reads back.
func (l *Experiment) JSON() ([]byte, error) {
	fields, err := keyed.NormalOf(keys(l.Catalog, l.Bandit()), l)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := keyed.WriteFlow(&b, fields, true); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// bandit is the kind of bandit that the policy is for.
func (l *Experiment) Bandit() string {
	switch {
	case l.Contextual != nil:
		return catalog.BanditContextual
	case l.Risk != 0:
		return catalog.BanditIdentify
	}
	return catalog.BanditArms
}

// FirstParam is the parameter of policies for the first batch of an arm.
const FirstParam = "first"
