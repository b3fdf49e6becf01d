package check

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

// series are the metrics of the service and their labels, read from where it declares them.
func series(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("../../live/serve/api/metrics.go")
	if err != nil {
		t.Fatal(err)
	}
	own := map[string][]string{"process_cpu_seconds_total": {}, "process_resident_memory_bytes": {}, "go_goroutines": {}}
	list := regexp.MustCompile(`\[\]string\{([^}]*)\}`)
	for chunk := range strings.SplitSeq(string(text), `"sotto_`) {
		name, rest, ok := strings.Cut(chunk, `",`)
		if !ok || strings.HasPrefix(chunk, "package") {
			continue
		}
		found := []string{}
		if m := list.FindStringSubmatch(rest); m != nil {
			for l := range strings.SplitSeq(m[1], ",") {
				found = append(found, strings.Trim(l, ` "`))
			}
		}
		own["sotto_"+name] = found
	}
	for _, h := range []string{"sotto_request_seconds", "sotto_commit_seconds"} { // histograms
		own[h+"_count"], own[h+"_bucket"] = own[h], append(slices.Clone(own[h]), "le")
	}
	return own
}

// reads says what is wrong with an expression of rules or boards: how it is written, or what the service has not.
func reads(own map[string][]string, text string) (used []string, err error) {
	e, err := parser.NewParser(parser.Options{}).ParseExpr(text)
	if err != nil {
		return nil, err
	}
	known := []string{"job", "instance"}
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		s, ok := n.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		has, ok := own[s.Name]
		if !ok {
			err = fmt.Errorf("%s is no metric", s.Name)
		}
		used, known = append(used, s.Name), append(known, has...)
		for _, m := range s.LabelMatchers {
			if m.Name != labels.MetricName && !slices.Contains(has, m.Name) {
				err = fmt.Errorf("%s has no label %s", s.Name, m.Name)
			}
		}
		return nil
	})
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		if a, ok := n.(*parser.AggregateExpr); ok {
			for _, by := range a.Grouping {
				if !slices.Contains(known, by) {
					err = fmt.Errorf("nothing in it has a label %s", by)
				}
			}
		}
		return nil
	})
	return used, err
}

// What promtool says of rules is what this parser does.
func rules(t *testing.T, text []byte) (exprs map[string]string, errs []error) {
	t.Helper()
	groups, errs := rulefmt.Parse(text, false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	if len(errs) > 0 {
		return nil, errs
	}
	exprs = map[string]string{}
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			if r.Labels["severity"] == "" || r.Annotations["summary"] == "" {
				t.Errorf("%s has no severity, or no summary", r.Alert)
			}
			exprs[r.Alert] = r.Expr
		}
	}
	return exprs, nil
}

func TestAlerts(t *testing.T) {
	text, err := os.ReadFile("../alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	exprs, errs := rules(t, text)
	if len(errs) > 0 || len(exprs) == 0 {
		t.Fatal(errs)
	}
	own := series(t)
	doc, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, e := range exprs {
		used, err := reads(own, e)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, u := range used {
			if !strings.Contains(string(doc), strings.TrimSuffix(u, "_bucket")) {
				t.Errorf("%s: docs/operations.md does not say what %s is watched for", name, u)
			}
		}
	}
	for _, broken := range []string{"exprs: 1", "for: soon"} { // the check can fail
		if _, errs := rules(t, []byte(strings.Replace(string(text), "labels:", broken+"\n        labels:", 1))); len(errs) == 0 {
			t.Errorf("%s passes", broken)
		}
	}
}

// A board that everybody may see has what everybody may know, and each expression is one of the service's.
func TestBoards(t *testing.T) {
	files, err := filepath.Glob("../grafana/*.json")
	if err != nil || len(files) != 2 {
		t.Fatal(files, err)
	}
	own := series(t)
	public := map[string]bool{}
	for name := range own {
		public[name] = slices.Contains([]string{"sotto_decisions_total", "sotto_batches_total", "sotto_experiment_state",
			"sotto_guard"}, name) || strings.HasPrefix(name, "sotto_released_")
	}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var board struct {
			UID, Title string
			Panels     []struct {
				Title   string
				GridPos struct{ X, Y, W, H int }
				Targets []struct{ Expr string }
			}
		}
		if err := json.Unmarshal(text, &board); err != nil || board.UID == "" || len(board.Panels) == 0 {
			t.Fatal(path, err)
		}
		at := map[[2]int]bool{}
		for _, p := range board.Panels {
			if spot := [2]int{p.GridPos.X, p.GridPos.Y}; at[spot] || p.GridPos.X+p.GridPos.W > 24 {
				t.Errorf("%s: %s lies on another panel, or beyond the edge", path, p.Title)
			} else {
				at[spot] = true
			}
			for _, target := range p.Targets {
				e := strings.NewReplacer("$__rate_interval", "5m", "$experiment", ".*").Replace(target.Expr)
				used, err := reads(own, e)
				if err != nil {
					t.Errorf("%s: %s: %v", path, p.Title, err)
				}
				for _, u := range used {
					if board.UID == "sotto-experiments" && !public[u] {
						t.Errorf("%s: %s is private", path, u)
					}
				}
			}
		}
	}
	for _, broken := range []string{"sum(sotto_queue", "sotto_clicks", `sotto_queue{arm="a"}`, "sum by (arm) (sotto_queue)"} {
		if _, err := reads(own, broken); err == nil {
			t.Errorf("%s passes, of %v", broken, slices.Sorted(maps.Keys(own)))
		}
	}
}
