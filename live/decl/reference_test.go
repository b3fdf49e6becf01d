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

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/keyed"
)

var update = flag.Bool("update", false, "write docs/declaration.md anew")

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
		if required {
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
