package simulate

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/sotto-dp/sotto/live/decl"
)

// kinds are what a trace's experiment can be, by the seed: what a merge touches most comes most often.
var kinds = []string{"arms", "contexts", "arms", "joint", "identify", "local", "arms", "contexts", "two-server",
	"split", "joint", "many", "retract", "contexts", "secagg", "offers", "drop", "contexts", "metrics", "many"}

// A declarer draws declarations.
type declarer struct {
	*rand.Rand
	kind   string
	now    time.Time
	helper string // its key
	since  bool   // with what has come since the guard's traces were written
}

// pick is one of some.
func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// lines are those that are not empty.
func lines(of ...string) string {
	var out strings.Builder
	for _, l := range of {
		if l != "" {
			out.WriteString(l + "\n")
		}
	}
	return out.String()
}

// perhaps is a text with a probability of 1 in n.
func (d declarer) perhaps(n int, format string, args ...any) string {
	if d.IntN(n) > 0 {
		return ""
	}
	return fmt.Sprintf(format, args...)
}

// declare draws until it is an experiment, of a name and with rewards up to hi.
func (d declarer) declare(name string, hi int, layer string) (*decl.Experiment, string) {
	for {
		text := lines("name: "+name, fmt.Sprintf("reward: {range: [0, %d], default: %v%s}", hi,
			pick(d.Rand, 0, 0.25, 0.5), d.aggregate("sum", "sum", "count", "max")+d.event()), layer) + d.body()
		x, err := decl.Parse("guard.yaml", []byte(text))
		if err == nil {
			err = x.Check()
		}
		if err == nil {
			return x, text
		}
	}
}

// several are the experiments of a trace or a world, most often one, with their texts. Of many all but those with
// contexts have ranges of one layer; the second's may overlap the third's, since which of two an error names would
// be chance.
func (d declarer) several(overlap bool) iter.Seq2[*decl.Experiment, string] {
	return func(yield func(*decl.Experiment, string) bool) {
		if d.kind != "many" {
			yield(d.declare("shop", 1, ""))
			return
		}
		for i := range 2 + d.IntN(2) {
			layer, wide := "", 0
			if d.kind = pick(d.Rand, "arms", "arms", "retract", "contexts", "metrics"); d.kind != "contexts" {
				if overlap {
					wide = min(i, d.IntN(2))
				}
				layer = fmt.Sprintf("layer: {name: page, from: %v, to: %v}", float64(i)/4, float64(i+1+wide)/4)
			}
			if !yield(d.declare([]string{"shop", "other", "third"}[i], 1+i, layer)) {
				return
			}
		}
	}
}

// aggregate is what reports of a decision make of a number, of the kind whose reports add up.
func (d declarer) aggregate(of ...string) string {
	if d.kind != "sums" && (d.kind != "cells" || d.IntN(2) == 0) {
		return ""
	}
	if how := pick(d.Rand, of...); how != "" {
		return ", aggregate: " + how
	}
	return ""
}

// event is what reports rewards where clients decide by plans, or arms are added; they are told by decisions' tokens all the same.
func (d declarer) event() string {
	if d.kind != "leases" && d.kind != "grows" {
		return ""
	}
	return ", event: buy"
}

func (d declarer) body() string {
	switch d.kind {
	case "leases":
		return d.arms() + "leases: {for: " + pick(d.Rand, "1s", "4s", "20s") + ", delay: 30s}\n"
	case "contexts", "joint":
		return d.contexts()
	case "local", "two-server", "secagg":
		return d.hidden()
	}
	return d.arms()
}

// times are a window, and perhaps a start and an end.
func (d declarer) times() string {
	return lines("window: "+pick(d.Rand, "1600ms", "5s", "10s", "24s", "1m"),
		d.perhaps(8, "start: %s", d.now.Add(3*time.Second).UTC().Format(time.RFC3339)),
		d.perhaps(8, "end: %s", d.now.Add(time.Duration(60+d.IntN(600))*time.Second).UTC().Format(time.RFC3339)),
		d.perhaps(6, "retention: %dm", 1+d.IntN(9)))
}

func (d declarer) floor() string {
	if d.kind == "split" || d.kind == "guards" { // of which some have none
		return ""
	}
	return d.perhaps(2, "floor: %v", pick(d.Rand, 0.05, 0.2, 0.5))
}

func (d declarer) names() string {
	names := []string{"red", "blue", "green", "grey"}[:2+d.IntN(3)]
	for i, n := range names {
		if d.IntN(3) == 0 {
			names[i] = fmt.Sprintf(`{name: %s, value: {n: %d}}`, n, i)
		}
	}
	return "arms: [" + strings.Join(names, ", ") + "]"
}

func (d declarer) arms() string {
	first := 3 + d.IntN(8)
	policy := pick(d.Rand, "dp-klucb", "dp-klucb", "dp-klucb-j", "dp-imed", "dp-imed-j", "dp-ucb-anytime",
		"zcdp-imed", "lazy-dp-ts", "dp-window-klucb", "adap-klucb", "adap-ucb", "adac-ucb", "dp-se", "dp-se-2",
		"dp-se-doubling", "batch-se", "dp-ucb")
	if d.since && policy == "adap-ucb" { // in its place, and without a draw: other worlds stay what they were
		policy = "dp-ts"
	}
	more := ""
	if d.kind == "grows" { // which these do
		policy = pick(d.Rand, "dp-klucb", "dp-imed-j", "zcdp-imed", "dp-ts", "split", "split", "split")
	}
	if d.kind == "identify" {
		policy, more = pick(d.Rand, "dp-se", "dp-tt", "adap-tt"), "risk: 0.2\n"
		if policy == "dp-tt" {
			policy = pick(d.Rand, "dp-tt, forget: true", "dp-tt")
		}
		if d.since && policy == "dp-tt" {
			policy = "dp-sed, gap: 0.4"
		}
	} else if d.kind == "split" {
		policy, more = "split", d.perhaps(2, "effect: %v\n", pick(d.Rand, 0.3, 0.6, 1))
	} else if d.IntN(2) == 0 {
		policy += fmt.Sprintf(", first: %d", first)
	}
	if d.kind == "identify" && d.IntN(2) == 0 {
		policy += fmt.Sprintf(", first: %d", first)
	}
	budget := pick(d.Rand, "{epsilon: 1}", "{epsilon: 50}", "{rho: 1}", "{rho: 40}")
	if d.kind == "capped" {
		budget = pick(d.Rand, "{epsilon: 1}", "{epsilon: 0.6}", "{epsilon: 2}")
	}
	of := "budget: {epsilon: 0.5}"
	if strings.Contains(budget, "rho") {
		of = "budget: {rho: 0.5}"
	}
	metrics := ""
	if n := d.IntN(3); d.kind == "metrics" || (d.kind == "sums" || d.kind == "cells") && d.IntN(2) == 0 || (d.kind == "arms" || d.kind == "split" || d.kind == "capped") && d.IntN(4) == 0 {
		metrics = fmt.Sprintf("metrics: [{name: basket, range: [0, 200], default: 50, %s%s}", of, d.aggregate("sum", "max", ""))
		if n > 0 {
			metrics += fmt.Sprintf(", {name: clicks, %s%s}", of, d.aggregate("count", "sum", ""))
		}
		if metrics += "]"; d.kind == "sums" || d.kind == "cells" {
			metrics += d.perhaps(2, "\nratios: [{name: each, of: basket, per: reward}]")
		}
	}
	cells := ""
	if d.kind == "cells" { // of whose policies some cannot
		policy = pick(d.Rand, policy, "split", "split", "split", fmt.Sprintf("dp-klucb-j, first: %d", first))
		cells = lines("by: {device: [phone, 3, true]}", d.perhaps(2, "cell_minimum: %d", pick(d.Rand, 1, 2, 4, 9)))
		if metrics != "" {
			cells += lines(d.guards(policy))
		}
	}
	if d.kind == "guards" {
		policy, budget = pick(d.Rand, policy, "split", "split", "dp-klucb, first: 4"), "{epsilon: 50}"
		metrics = "metrics: [{name: basket, range: [0, 200], default: 50, budget: {epsilon: 50}}]\n" +
			lines(d.guards(policy), d.perhaps(2, "ramp: [{share: 0.3, for: 5s}, {share: 0.6, for: 30s}, {share: 1}]"))
	}
	sticky := d.IntN(3) > 0
	unit := pick(d.Rand, "{of: person, assignments: 1}", "{of: person, assignments: 3}", "{of: visit}")
	switch d.kind {
	case "persons":
		unit = pick(d.Rand, "{of: visit, per_person: 2}", "{of: device, assignments: 2, per_person: 3}")
	case "capped":
		unit = pick(d.Rand, "{of: person}", "{of: person}", "{of: person, assignments: 2}",
			"{of: visit, per_person: 2}", "{of: visit}")
	}
	exposure := map[string]string{"retract": "exposure: retract",
		"offers": "exposure: activate\n" + d.perhaps(2, "activate_within: 2s")}[d.kind]
	if d.kind == "cells" {
		exposure = d.perhaps(3, "exposure: retract")
	}
	if d.kind == "persons" {
		exposure = d.perhaps(3, "exposure: %s", pick(d.Rand, "activate", "retract"))
	}
	missing := ""
	if d.kind == "drop" {
		missing = "missing: drop\nreports: every"
		exposure = d.perhaps(2, "exposure: retract")
	}
	return lines(d.names(), fmt.Sprintf("policy: {policy: %s}", policy), "budget: "+budget, "unit: "+unit,
		d.perhaps(1, "sticky: %v", sticky), d.times(), d.floor(), metrics, cells, exposure, missing,
		d.perhaps(4, "horizon: %d", 40+d.IntN(400)), d.perhaps(6, "fallback: blue"),
		d.perhaps(6, "share: 0.6"), d.perhaps(8, "only: {country: [ch, de]}"), d.perhaps(3, "public: true")) + more
}

// guards are bounds of which some are passed by chance, some by none, and some by all arms: where all are released
// together, often so far that one release says it of all.
func (d declarer) guards(policy string) string {
	above := pick(d.Rand, 0.05, 0.3, 0.45, 0.6)
	if policy == "split" && d.IntN(3) > 0 {
		above = 0.98
	}
	return d.perhaps(1+d.IntN(2), "guard: [{metric: basket, below: %v, risk: %v}, {metric: reward, above: %v, risk: 0.5}]",
		pick(d.Rand, 20, 55, 70, 120), pick(d.Rand, 0.01, 0.5), above)
}

func (d declarer) contexts() string {
	protect, policy, rules := "", "adac-oful, greed: 1", ""
	if d.kind != "joint" {
		policy = pick(d.Rand, "adac-oful, greed: 1", "adac-oful, greed: 1, c: 0.1", "adac-oful, greed: 0.5, c: 0.02",
			"rs-oful", "adac-oful, greed: 1, c: 0.05, lambda: 0.3")
		if d.since && strings.HasSuffix(policy, "lambda: 0.3") {
			policy = "dp-lin-ts, first: 20"
		}
		for i, r := range []string{"{name: first, play: first, clip: 2, budget: {rho: 0.05}}",
			"{name: any, play: uniform, clip: 20, budget: {rho: 0.05}}",
			"{name: learner, play: policy, clip: 20, budget: {rho: 0.05}}",
			"{name: three, play: {id: a3}, clip: 20, budget: {rho: 0.05}}"}[:d.IntN(5)] {
			if i == 0 {
				rules = "  rules:\n"
			}
			rules += "    - " + r + "\n"
		}
	} else {
		protect = "  protect: joint"
		policy = fmt.Sprintf("lin-ucb, leaf: %d, greed: 1", pick(d.Rand, 4, 5, 10))
		policy += d.perhaps(3, ", noise: %s", pick(d.Rand, "blt", "tree", "wishart"))
	}
	length := "{range: [0, 8]}"
	if d.since && policy == "lin-ucb, leaf: 4, greed: 1" {
		policy = "jdp-greedy, first: 4, leaf: 4"
	} else if d.since && policy == "lin-ucb, leaf: 5, greed: 1" { // of words alone
		policy, length = "histogram-ts, first: 5", "{values: [0, 1, 2, 3, 4, 5, 6, 7, 8]}"
	}
	return lines("contextual:", d.perhaps(4, "  mode: %s", pick(d.Rand, "learn", "apprentice")),
		"  context: {device: {values: [phone, desktop]}}",
		"  action: {topic: {values: [war, sport]}, length: "+length+"}",
		d.perhaps(2, "  cross: [{of: [device, topic]}]"), "  actions: 8", d.perhaps(4, "  unknown: ignore"), protect,
		rules, "policy: {policy: "+policy+"}",
		fmt.Sprintf("horizon: %d", pick(d.Rand, 40, 100, 200, 1000)),
		"budget: "+pick(d.Rand, "{rho: 10}", "{rho: 200}", "{rho: 1e5}"), "unit: {of: visit}", d.times(),
		"floor: "+pick(d.Rand, "0.1", "0.2", "0.5"),
		d.perhaps(3, "exposure: activate\n%s", d.perhaps(2, "activate_within: 2s")), d.perhaps(3, "public: true"))
}

func (d declarer) hidden() string {
	first, trust := 3+d.IntN(6), "trust: "+d.kind
	switch d.kind {
	case "two-server":
		trust += fmt.Sprintf("\ngrid: 16\nhelper: {url: \"https://helper.test\", key: %s}", d.helper)
	case "secagg":
		first = 8
		trust += "\ncohort: {users: 3, corrupt: 0.05, vanish: 0.3, every: 1h, wait: 10m, " + pick(d.Rand, "tries: 1",
			"tries: 2", "tries: 1, otherwise: stop") + "}"
	}
	return lines(d.names(), fmt.Sprintf("policy: {policy: %s, first: %d}", pick(d.Rand, "dp-klucb-j", "dp-klucb",
		"dp-imed-j"), first), "budget: {epsilon: 2}", "unit: {of: visit}",
		"window: "+pick(d.Rand, "10s", "24s", "1m"), "sticky: "+pick(d.Rand, "false", "true"), trust,
		"report_after: "+pick(d.Rand, "500ms", "3s"), d.floor())
}
