package sotto_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// The table of docs/operations.md says which alerts there are, as deploy/alerts.yaml has them. With -update it is written
// anew:
//
//	go test . -run AlertsPage -update
func TestAlertsPage(t *testing.T) {
	const path, begin, end = "docs/operations.md", "<!-- keys of alerts -->\n", "<!-- end -->\n"
	var file struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr, For string
				Annotations      struct{ Summary, Description string }
			}
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, "deploy/alerts.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	label, rows := regexp.MustCompile(`\{\{ \$labels\.(\w+) \}\}`), 0
	want := "\n| alert | when | what it means |\n|---|---|---|\n"
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			rows++
			when := "`" + strings.Join(strings.Fields(r.Expr), " ") + "`"
			if r.For != "" {
				when += " for " + r.For
			}
			means := strings.Join(strings.Fields(r.Annotations.Summary+". "+r.Annotations.Description), " ")
			want += fmt.Sprintf("| %s | %s | %s |\n", r.Alert, when, strings.TrimSpace(label.ReplaceAllString(means, "…")))
		}
	}
	head, rest, ok := strings.Cut(read(t, path), begin)
	is, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 || rows < 5 {
		t.Fatalf("%s has no place for the alerts, or there are only %d", path, rows)
	}
	if want += "\n"; *update {
		if err := os.WriteFile(path, []byte(head+begin+want+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if is != want {
		t.Errorf("%s has not the alerts of deploy/alerts.yaml: go test . -run AlertsPage -update", path)
	}
}
