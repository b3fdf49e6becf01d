package decl

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/play"
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
}

var update = flag.Bool("update", false, "write the tables of keys in docs/contextual.md anew")

// The tables of docs/contextual.md are made of the keys: what each means, and what its schema allows.
func TestContextualReference(t *testing.T) {
	const path = "../../docs/contextual.md"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	for name, table := range map[string]string{
		"contextual": keyTable(contextualKeys()), "features": keyTable(featureKeys()), "rules": keyTable(liveRuleKeys()),
	} {
		head, rest, _ := strings.Cut(page, "<!-- keys of "+name+" -->\n")
		_, tail, ok := strings.Cut(rest, "<!-- end -->\n")
		if !ok {
			t.Fatalf("docs/contextual.md has no keys of %s", name)
		}
		page = head + "<!-- keys of " + name + " -->\n\n" + table + "\n<!-- end -->\n" + tail
	}
	switch {
	case *update:
		if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	case page != string(text):
		t.Error("docs/contextual.md is not what the keys say: go test ./live/decl -run ContextualReference -update")
	}
}

// keyTable is a row for each key: its name, its meaning, and its words, limits and default.
func keyTable[T any](keys []keyed.Key[T]) string {
	var b strings.Builder
	b.WriteString("| key | meaning |\n|---|---|\n")
	for _, k := range keys {
		var more []string
		schema := k.Schema()
		if words, ok := schema["enum"].([]string); ok && !strings.Contains(k.Doc, words[0]+":") {
			more = append(more, "`"+strings.Join(words, "` or `")+"`")
		}
		for _, of := range []struct{ key, text string }{{"default", "default %v"}, {"minimum", "at least %v"},
			{"maximum", "at most %v"}, {"maxItems", "at most %v"}} {
			if x, ok := schema[of.key]; ok && (of.key != "maxItems" || x != schema["minItems"]) {
				more = append(more, fmt.Sprintf(of.text, x))
			}
		}
		if k.Required {
			more = append(more, "required")
		}
		fmt.Fprintf(&b, "| `%s` | %s |\n", k.Name, strings.Join(append([]string{k.Doc}, more...), "; "))
	}
	return b.String()
}
