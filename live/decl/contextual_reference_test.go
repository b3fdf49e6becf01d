package decl

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/internal/keyed"
)

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
