package experiment

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/keyed"
)

// rows are a table of keys, neighbours with the same meaning in one row. What is above already,
// with the same meaning, says so.
func rows[T any](table []keyed.Key[T], above map[string]string) [][2]string {
	var out [][2]string
	for _, k := range table {
		ref, name := k.Ref, "`"+k.Name+"`"
		switch {
		case ref == "":
			continue
		case above[k.Name] == ref:
			ref = "as above"
		}
		if n := len(out) - 1; n >= 0 && out[n][1] == ref {
			out[n][0] += ", " + name
			continue
		}
		out = append(out, [2]string{name, ref})
	}
	return out
}

func ways(f instanceForm) [][2]string {
	var out [][2]string
	for _, w := range f.ways {
		if !w.hidden {
			out = append(out, [2]string{"`" + w.example + "`", w.ref})
		}
	}
	return out
}

func table(head [2]string, rows [][2]string) string {
	var b strings.Builder
	for _, r := range append([][2]string{head, {"---", "---"}}, rows...) {
		fmt.Fprintf(&b, "| %s | %s |\n", r[0], r[1])
	}
	return strings.NewReplacer("|  |  |", "| | |", "| --- | --- |", "|---|---|").Replace(b.String())
}

// The tables of docs/experiments.md are made from the tables of keys that files are read by. With
// -update they are written anew.
func TestReference(t *testing.T) {
	keysOf := func(k kind) []keyed.Key[Spec] { return k.keys(catalog.Catalog{}) }
	above, own := map[string]string{}, []keyed.Key[Spec]{}
	for _, k := range keysOf(regretKind{}) {
		above[k.Name] = k.Ref
	}
	for _, k := range keysOf(linearKind{}) {
		if k.Ref != above[k.Name] {
			own = append(own, k)
		}
	}
	var columns []keyed.Key[Instance]
	for _, w := range armInstances().ways {
		if w.key().Name == "csv" {
			columns = w.keys
		}
	}
	head, none := [2]string{"key", "meaning"}, [2]string{}
	blocks := map[string]string{
		"keys of regret":          table(head, rows(keysOf(regretKind{}), nil)),
		"keys of linear":          table(head, rows(own, nil)),
		"keys of identify":        table(head, rows(keysOf(identifyKind{}), above)),
		"keys of stopping":        table(head, rows(keysOf(stoppingKind{}), above)),
		"keys of trust":           table(head, rows(ownTrust(), nil)),
		"keys of delay":           table(head, rows(delayKeys(), nil)),
		"keys of csv":             table([2]string{"key", "default and meaning"}, rows(columns, nil)),
		"instances of regret":     table(none, ways(regretKind{}.instances())),
		"instances of linear":     table(none, ways(linearKind{}.instances())),
		"instances of contextual": table(none, ways(contextualKind{}.instances())),
	}
	const path = "../../docs/experiments.md"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var seen []string
	block := regexp.MustCompile(`(?s)<!-- ((?:keys|instances) of \w+) -->\n.*?\n<!-- end -->\n`)
	got := block.ReplaceAllStringFunc(string(page), func(old string) string {
		name := block.FindStringSubmatch(old)[1]
		seen = append(seen, name)
		return fmt.Sprintf("<!-- %s -->\n\n%s\n<!-- end -->\n", name, blocks[name])
	})
	for name := range blocks {
		if !slices.Contains(seen, name) {
			t.Errorf("docs/experiments.md has no %s", name)
		}
	}
	if len(seen) != len(blocks) {
		t.Errorf("docs/experiments.md has %q", seen)
	}
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if d := cmp.Diff(string(page), got); d != "" {
		t.Errorf("docs/experiments.md is not what the keys say: go test ./lab/experiment -run "+
			"Reference -update (-page +keys)\n%s", d)
	}
}

// Every key of a file is in the reference or is said beside an instance: a new one cannot be left
// out.
func TestEveryKeyHasItsMeaning(t *testing.T) {
	for _, k := range kinds() {
		for _, key := range k.keys(catalog.Catalog{}) {
			if key.Ref == "" || key.Name != "description" && key.Doc == "" {
				t.Errorf("%s: %s has no meaning", k.name(), key.Name)
			}
		}
		for _, w := range k.instances().ways {
			if w.hidden {
				continue
			}
			if w.example == "" || w.ref == "" && len(k.instances().ways) > 2 {
				t.Errorf("%s: %s has no meaning", k.name(), w.key().Name)
			}
		}
	}
	// What a policy's parameter cannot be called, as files have the key already.
	for _, k := range policyKeys(catalog.Entry{Bandit: catalog.BanditContextual}, true) {
		e := catalog.ContextualPolicies()[0]
		e.Name, e.Params = "mine", []catalog.Param{{Name: k.Name}}
		if _, err := (catalog.Catalog{}).With(e); err == nil {
			t.Errorf("a parameter may be called %s, as the key of every policy", k.Name)
		}
	}
}
