package decl

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/play"
)

var update = flag.Bool("update", false, "write the pages that are made of keys anew")

const keysPage = "../../docs/declaration.md"

// sections are the places of docs/serve.md that say what a key is for, by the key that leads there.
var sections = map[string]string{
	"policy": "no-policy", "shares": "an-ab-test", "effect": "an-ab-test", "rate": "no-policy", "risk": "a-trial", "stop": "stop",
	"share": "who-is-in-it", "only": "who-is-in-it", "layer": "who-is-in-it", "holds": "a-holdout", "holdout": "a-holdout",
	"ramp": "a-ramp", "metrics": "more-than-one-number-of-a-decision", "ratios": "a-ratio-of-two-of-them", "guard": "guards",
	"by": "which-arm-is-better-for-whom", "leases": "decisions-without-a-request", "exposure": "decisions-that-are-not-met",
	"missing": "decisions-that-are-not-met", "trust": "rewards-that-the-service-does-not-see", "webhook": "a-webhook",
	"retention": "what-is-kept-and-how-it-goes", "forget": "units-that-are-forgotten-while-it-runs",
	"unit.per_person": "one-person-all-experiments", "reward.aggregate": "several-reports-of-a-decision",
	"reward.event": "rewards-without-a-token",
}

// The page of a live experiment's keys is what their schema and their defaults are. With -update it is written anew:
//
//	go test ./live/decl -run DeclarationPage -update
func TestDeclarationPage(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Keys of a live experiment\n\n<!-- Written by `go test ./live/decl -run DeclarationPage -update`: " +
		"change the keys of live/decl, not this page. -->\n\n" +
		"The YAML file that declares a [live experiment](serve.md). Unknown and repeated keys are errors that name the place, and so\n" +
		"are values that are not allowed. `sotto validate FILE` checks a file; `sotto schema live` writes the JSON schema for editors.\n\n" +
		"A dot leads into a mapping: `unit.of` is written `unit: {of: person}`. `[]` is an item of a list. A time is written `24h`, `90m` or `2s`.\n\n" +
		"| key | value | meaning |\n|---|---|---|\n")
	text, err := Reader{}.Schema()
	if err != nil {
		t.Fatal(err)
	}
	var schema struct{ OneOf []map[string]any }
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	defaults, linked := defaultsOf(t), 0
	var row func(name string, s map[string]any, required bool)
	row = func(name string, s map[string]any, required bool) {
		value := valueOf(s)
		if name == "arms" {
			value = "required, or `contextual`; " + value
		} else if required {
			value = strings.TrimSuffix("required; "+value, "; ")
		} else if is, ok := defaults[name]; ok && is != "" {
			value = strings.TrimSuffix(fmt.Sprintf("default `%s`; %s", is, value), "; ")
		}
		shown := "`" + name + "`"
		if at := sections[name]; at != "" {
			shown = fmt.Sprintf("[%s](serve.md#%s)", shown, at)
			linked++
		}
		doc, _ := s["description"].(string)
		if doc == "" {
			t.Errorf("%s has no meaning", name)
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", shown, value, strings.ReplaceAll(doc, "|", `\|`))
		if name == "policy" || name == "contextual" {
			return // they have pages of their own
		}
		sub := s
		if items, ok := s["items"].(map[string]any); ok {
			sub, name = items, name+"[]"
		}
		of, _ := sub["properties"].(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(of)) {
			row(name+"."+key, of[key].(map[string]any), isRequired(sub, key))
		}
	}
	seen := map[string]bool{}
	for i, bandit := range []string{catalog.BanditArms, catalog.BanditContextual, catalog.BanditIdentify} {
		at := []int{0, 2, 1}[i] // of the schema
		of := schema.OneOf[at]["properties"].(map[string]any)
		for _, k := range keys(catalog.Catalog{}, bandit) {
			if s, ok := of[k.Name].(map[string]any); ok && !seen[k.Name] {
				seen[k.Name] = true
				row(k.Name, s, isRequired(schema.OneOf[at], k.Name) && k.Name != "arms" && k.Name != "contextual" && k.Name != "risk")
			}
		}
	}
	for _, k := range keys(catalog.Catalog{}, catalog.BanditIdentify) {
		if !seen[k.Name] {
			t.Errorf("%s is not on the page", k.Name)
		}
	}
	b.WriteString("\n## Keys that do not go together\n\nEach pair with the error that it has.\n\n| | with | error |\n|---|---|---|\n" + together(t) +
		"\n## Arms while it runs\n\nWhich policies of arms take [an arm more](serve.md#an-arm-more), and go on without one that is removed by hand or by\n" +
		"[a guard](serve.md#guards). Trials (`risk`), contexts and any `trust` but central take none.\n\n" +
		"| policy | takes an arm | goes on without one |\n|---|---|---|\n" + armsOf(t))
	if linked != len(sections) {
		t.Errorf("%d keys lead to their sections, want %d", linked, len(sections))
	}
	if *update {
		if err := os.WriteFile(keysPage, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if page, err := os.ReadFile(keysPage); err != nil || string(page) != b.String() {
		t.Errorf("docs/declaration.md is not what the keys are: go test ./live/decl -run DeclarationPage -update (%v)", err)
	}
}

// isRequired says whether a schema requires a key.
func isRequired(s map[string]any, key string) bool {
	all, _ := s["required"].([]any)
	return slices.Contains(all, any(key))
}

// valueOf says what a schema allows.
func valueOf(s map[string]any) string {
	var out []string
	if all, ok := s["enum"].([]any); ok {
		for _, x := range all {
			out = append(out, fmt.Sprintf("`%v`", x))
		}
		return strings.Join(out, ", ")
	}
	switch pattern, _ := s["pattern"].(string); {
	case pattern == keyed.NameForm.String():
		out = append(out, fmt.Sprintf("a–z, 0–9, dot, dash, underscore, the first a letter or digit; at most %v", s["maxLength"]))
	case strings.HasSuffix(pattern, "d$"):
		out = append(out, "days")
	case pattern != "":
		out = append(out, "a time")
	case s["format"] == "date-time":
		out = append(out, "an instant, such as `2026-01-31T09:00:00Z`")
	case s["type"] == "boolean":
		out = append(out, "`true` or `false`")
	}
	if s["type"] == "array" && s["minItems"] != nil && s["minItems"] == s["maxItems"] {
		return strings.Join(append(out, fmt.Sprintf("%v numbers", s["minItems"])), ", ")
	}
	for _, limit := range [][2]string{{"exclusiveMinimum", "above"}, {"minimum", "from"}, {"exclusiveMaximum", "below"},
		{"maximum", "at most"}, {"minItems", "at least"}, {"maxItems", "at most"}, {"maxProperties", "at most"}} {
		if x, ok := s[limit[0]].(float64); ok {
			text := fmt.Sprintf("%s %v", limit[1], x)
			if x >= 1e6 {
				text = fmt.Sprintf("%s %.0e", limit[1], x)
			}
			out = append(out, text)
		}
	}
	return strings.Join(out, ", ")
}

// defaultsOf are the values that the normal form of the shortest declaration has for what it does not give.
func defaultsOf(t *testing.T) map[string]string {
	t.Helper()
	l, err := Parse("short", []byte("name: x\narms: [a, b]\npolicy: {policy: dp-klucb}\nbudget: {epsilon: 1}\nunit: {of: person}\nwindow: 1h\n"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := l.JSON()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	var walk func(at string, x any)
	walk = func(at string, x any) {
		if of, ok := x.(map[string]any); ok {
			for key, v := range of {
				walk(keyed.Join(at, key), v)
			}
			return
		}
		is, err := json.Marshal(x)
		if err != nil {
			t.Fatal(err)
		}
		all[at] = strings.ReplaceAll(string(is), ",", ", ")
	}
	var x any
	if err := json.Unmarshal(text, &x); err != nil {
		t.Fatal(err)
	}
	walk("", x)
	for _, given := range []string{"arms", "budget", "policy"} {
		delete(all, given)
	}
	return all
}

// The page of experiments with contexts names every key that they have.
func TestContextualKeysAreOnTheirPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/contextual.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Concat(keyed.Names(contextualKeys()), keyed.Names(featureKeys())) {
		if !regexp.MustCompile("(?m)^\\|[^|]*`" + name + "[`:][^|]*\\|").Match(page) {
			t.Errorf("docs/contextual.md has no row for the key %s", name)
		}
	}
}

// An asked feature is what a declaration may have, as the page names it, and the keys that it sets.
type asked struct{ name, keys string }

// features are what may not go together; a key without a value is left out of the declaration.
var features = []asked{
	{"`policy: split`", "policy: split"}, {"`risk`", "policy: {policy: dp-sed}\nrisk: 0.05"},
	{"`contextual`", "policy: null\narms: null\nbudget: {rho: 1}\ncontextual: {context: {device: {values: [phone, tablet]}}, action: " +
		"{topic: {values: [news, sport]}}, cross: [{of: [device, topic]}]}"},
	{"`trust: local`", "trust: local"},
	{"`trust: two-server`", "trust: two-server\nbudget: {rho: 1}\nhelper: {url: \"https://helper.example.org\", key: HELPER}"},
	{"`trust: secagg`", "trust: secagg\nbudget: {rho: 1}\ncohort: {users: 20}"},
	{"`sticky: false`", "sticky: false"}, {"`unit.assignments`", "unit: {assignments: 3}"}, {"`unit.per_person`", "unit: {per_person: 5}"},
	{"`missing: drop`", "missing: drop\nreports: every"}, {"`exposure: activate`", "exposure: activate"},
	{"`exposure: retract`", "exposure: retract"},
	{"`metrics`", "metrics: [{name: basket, budget: AS}]"},
	{"`reward.event`", "reward: {event: checkout}"}, {"`reward.aggregate`", "reward: {aggregate: sum}"},
	{"`guard`", "guard: [{metric: reward, above: 0.1, risk: 0.01}]"}, {"`share`", "share: 0.1"},
	{"`ramp`", "ramp: [{share: 0.1, for: 24h}, {share: 1}]"}, {"`only`", "only: {country: [NL]}"}, {"`by`", "by: {device: [phone, desktop]}"},
	{"`layer`", "layer: {name: x, from: 0, to: 0.5}"}, {"`holds`", "policy: split\nholds: b"}, {"`holdout`", "holdout: quarter"},
	{"`leases`", "reward: {event: checkout}\nleases: {for: 10m, delay: 1h}"},
	{"`forget`", "unit: {assignments: 2}\nend: 2026-03-01T00:00:00Z\nstart: 2026-01-01T00:00:00Z\nforget: 30d"}, {"`floor`", "floor: 0.05"},
}

// declares reads and checks the shortest declaration with these features. It is of a policy that sums with several
// noises are proved for.
func declares(t *testing.T, of ...asked) error {
	t.Helper()
	all := map[string]any{}
	for _, f := range append([]asked{{"", "name: x\narms: [a, b]\npolicy: {policy: dp-klucb-j}\nbudget: {epsilon: 1}\nunit: {of: person}\n" +
		"window: 1h"}}, of...) {
		var keys map[string]any
		if err := yaml.Unmarshal([]byte(strings.Replace(f.keys, "HELPER", helperKey, 1)), &keys); err != nil {
			t.Fatal(f.name, err)
		}
		for key, v := range keys {
			if old, ok := all[key].(map[string]any); ok && key != "policy" && key != "budget" {
				if more, ok := v.(map[string]any); ok {
					maps.Copy(old, more)
					continue
				}
			}
			if all[key] = v; v == nil {
				delete(all, key)
			}
		}
	}
	text, err := yaml.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	if rho := "{rho: 1}"; strings.Contains(string(text), "\nbudget:\n  rho:") {
		text = []byte(strings.Replace(string(text), "AS", rho, 1))
	}
	l, err := Parse("", []byte(strings.Replace(string(text), "AS", "{epsilon: 1}", 1)))
	if err == nil {
		err = l.Check()
	}
	return err
}

// why is an error without its place in a file and without the names of types.
func why(err error) string {
	first, _, _ := strings.Cut(err.Error(), "\n")
	first = regexp.MustCompile(`^:\d+:\d+: `).ReplaceAllString(first, "")
	return strings.ReplaceAll(regexp.MustCompile(`(?:play: )?\*\w+\.(\w+)`).ReplaceAllString(first, "$1"), "|", `\|`)
}

// armsOf writes which policies take another arm while they are played, and go on without one.
func armsOf(t *testing.T) string {
	t.Helper()
	var rows [][3]string // policies, and what they say
	for _, e := range (catalog.Catalog{}).For(catalog.BanditArms) {
		if e.Name == catalog.AutoPolicy {
			continue
		}
		for _, budget := range []string{"{epsilon: 1}", "{rho: 1}"} {
			l, err := Parse("", []byte("name: x\narms: [a, b, c]\npolicy: "+e.Name+"\nbudget: "+budget+
				"\nunit: {of: person}\nwindow: 1h\nhorizon: 100_000\n"))
			if err == nil {
				err = l.Check()
			}
			if err != nil {
				continue
			}
			p, err := l.NewPolicy(ZeroCoins{})
			if err != nil {
				t.Fatal(e.Name, err)
			}
			adds, drops := "yes", "no"
			if err := l.NoArm(); err != nil {
				_, reason, _ := strings.Cut(why(err), ": ")
				adds = "no: " + reason
			}
			if _, ok := p.(play.Dropper); ok {
				drops = "yes"
			}
			i := slices.IndexFunc(rows, func(r [3]string) bool { return r[1] == adds && r[2] == drops })
			if i < 0 {
				rows, i = append(rows, [3]string{"", adds, drops}), len(rows)
			}
			rows[i][0] += ", `" + e.Name + "`"
			break
		}
	}
	var b strings.Builder
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", strings.TrimPrefix(r[0], ", "), r[1], r[2])
	}
	return b.String()
}

// together writes which features do not go together, and why: what Check says of both where it says nothing of each.
func together(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for i, one := range features {
		if err := declares(t, one); err != nil {
			t.Errorf("%s: %v", one.name, err)
		}
		for _, other := range features[:i] {
			same := strings.SplitN(strings.Trim(one.name, "`"), ":", 2)[0] == strings.SplitN(strings.Trim(other.name, "`"), ":", 2)[0]
			if same || strings.Contains(one.keys, "policy:") && strings.Contains(other.keys, "policy:") {
				continue // one key has one value
			}
			if err := declares(t, other, one); err != nil {
				fmt.Fprintf(&b, "| %s | %s | %s |\n", other.name, one.name, why(err))
			}
		}
	}
	return b.String()
}
