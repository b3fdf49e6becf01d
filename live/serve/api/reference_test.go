package api

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/sotto-dp/sotto/live/serve"
)

var updateAPI = flag.Bool("update", false, "write docs/api.md anew")

const apiPage = "../../../docs/api.md"

// A openNode is a mapping of openapi.yaml, in its order.
type openNode yaml.MapSlice

func (n openNode) get(path ...string) any {
	var v any = yaml.MapSlice(n)
	for _, name := range path {
		m, ok := v.(yaml.MapSlice)
		if !ok {
			return nil
		}
		i := slices.IndexFunc(m, func(x yaml.MapItem) bool { return fmt.Sprint(x.Key) == name })
		if i < 0 {
			return nil
		}
		v = m[i].Value
	}
	return v
}

func (n openNode) in(path ...string) openNode {
	m, _ := n.get(path...).(yaml.MapSlice)
	return openNode(m)
}

// text is a value in one line of a page.
func (n openNode) text(path ...string) string {
	v := n.get(path...)
	if v == nil {
		return ""
	}
	return strings.NewReplacer("|", `\|`, "<", `\<`).Replace(strings.Join(strings.Fields(fmt.Sprint(v)), " "))
}

// An apiReference writes the page: what refers to a part of the document's components is read there.
type apiReference struct {
	strings.Builder
	doc   openNode
	named []string // schemas that were referred to
}

func (r *apiReference) deref(n openNode) openNode {
	for range 5 {
		ref, _ := n.get("$ref").(string)
		if ref == "" {
			return n
		}
		more := openNode(slices.DeleteFunc(slices.Clone(n), func(x yaml.MapItem) bool { return x.Key == "$ref" }))
		n = append(more, r.doc.in(strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)...)
	}
	return n
}

// kind is what a schema allows, in a few words. A schema of components is a link.
func (r *apiReference) kind(s openNode) string {
	if ref, _ := s.get("$ref").(string); ref != "" {
		name := ref[strings.LastIndex(ref, "/")+1:]
		if of := r.deref(s); of.get("properties") == nil {
			return r.kind(of)
		}
		if !slices.Contains(r.named, name) {
			r.named = append(r.named, name)
		}
		return fmt.Sprintf("[%s](#%s)", name, strings.ToLower(name))
	}
	var out []string
	list := func(v any) {
		all, _ := v.([]any)
		var names []string
		for _, x := range all {
			names = append(names, fmt.Sprintf("`%v`", x))
		}
		out = append(out, strings.Join(names, ", "))
	}
	switch t := s.get("type").(type) {
	case string:
		if s.get("enum") == nil {
			out = append(out, t)
		}
	case []any:
		var names []string
		for _, x := range t {
			names = append(names, fmt.Sprint(x))
		}
		out = append(out, strings.Join(names, " or "))
	}
	if s.get("enum") != nil {
		list(s.get("enum"))
	}
	if x := s.get("const"); x != nil {
		out = append(out, fmt.Sprintf("`%v`", x))
	}
	if items := s.in("items"); items != nil && r.deref(items).get("properties") == nil {
		if of := r.kind(items); of != "" {
			out = append(out, "of "+of)
		}
	} else if of, ok := items.get("$ref").(string); ok && of != "" {
		out = append(out, "of "+r.kind(items))
	}
	if more := s.in("additionalProperties"); more != nil {
		if of := r.kind(more); of != "" {
			out = append(out, "of "+of)
		}
	}
	for _, limit := range [][2]string{{"minItems", "at least"}, {"maxItems", "at most"}, {"minimum", "from"}, {"exclusiveMinimum", "above"},
		{"maximum", "to"}, {"exclusiveMaximum", "below"}, {"minLength", "length from"}, {"maxLength", "length to"}, {"default", "default"}} {
		if x := s.get(limit[0]); x != nil {
			out = append(out, fmt.Sprintf("%s %v", limit[1], x))
		}
	}
	return strings.Join(slices.DeleteFunc(out, func(s string) bool { return s == "" }), ", ")
}

// fields writes a row for each field of an object, those of objects in it by a dot.
func (r *apiReference) fields(at string, s openNode) {
	required, _ := s.get("required").([]any)
	for _, p := range s.in("properties") {
		name := fmt.Sprint(p.Key)
		of, _ := p.Value.(yaml.MapSlice)
		kind := r.kind(openNode(of))
		if slices.Contains(required, any(name)) {
			kind = strings.TrimSuffix("required; "+kind, "; ")
		}
		fmt.Fprintf(r, "| `%s` | %s | %s |\n", at+name, kind, openNode(of).text("description"))
		switch {
		case openNode(of).get("$ref") != nil:
		case openNode(of).get("properties") != nil:
			r.fields(at+name+".", openNode(of))
		case openNode(of).get("items", "properties") != nil:
			r.fields(at+name+"[].", openNode(of).in("items"))
		}
	}
}

// object writes a schema's fields as a table, or says what it is.
func (r *apiReference) object(says string, content openNode) {
	for _, c := range content {
		kind, s := fmt.Sprint(c.Key), openNode(content).in(fmt.Sprint(c.Key), "schema")
		if s.get("properties") == nil {
			of := r.kind(s)
			fmt.Fprintf(r, "%s `%s`: %s.\n\n", says, strings.SplitN(kind, ";", 2)[0], of)
			continue
		}
		fmt.Fprintf(r, "%s `%s`:\n\n| field | value | meaning |\n|---|---|---|\n", says, kind)
		r.fields("", s)
		r.WriteString("\n")
	}
}

var apiScope = regexp.MustCompile(`(?s)^(.*?) Scope (.*?)\.$`)

func (r *apiReference) route(method, path string, op openNode) {
	summary, scope := op.text("summary"), "none"
	if m := apiScope.FindStringSubmatch(summary); m != nil {
		summary, scope = m[1], m[2]
	}
	fmt.Fprintf(r, "### %s %s\n\n%s Scope: %s.", strings.ToUpper(method), path, summary, scope)
	if more := op.text("description"); more != "" {
		r.WriteString(" " + more)
	}
	r.WriteString("\n\n")
	for _, p := range slices.Concat(r.params(r.doc.get("paths", path, "parameters")), r.params(op.get("parameters"))) {
		if says := p.text("description"); says != "" && p.text("in") != "header" {
			fmt.Fprintf(r, "- `%s` (%s): %s\n", p.text("name"), p.text("in"), says)
		}
	}
	if body := r.deref(op.in("requestBody")); body != nil {
		r.object("Body", body.in("content"))
	}
	var bare, refused []string
	for _, a := range op.in("responses") {
		code := fmt.Sprint(a.Key)
		is := r.deref(op.in("responses", code))
		if code >= "4" {
			refused = append(refused, code)
			continue
		}
		for _, c := range is.in("content") {
			s := is.in("content", fmt.Sprint(c.Key), "schema")
			if s.get("properties") != nil {
				r.object(code+", "+is.text("description"), openNode{{Key: c.Key, Value: is.get("content", fmt.Sprint(c.Key))}})
				continue
			}
			bare = append(bare, fmt.Sprintf("%s `%s` %s: %s", code, strings.SplitN(fmt.Sprint(c.Key), ";", 2)[0], r.kind(s), is.text("description")))
		}
		if is.get("content") == nil {
			bare = append(bare, code+": "+is.text("description"))
		}
	}
	slices.Sort(refused)
	if len(refused) > 0 {
		bare = append(bare, "refusals: "+strings.Join(refused, ", "))
	}
	r.WriteString("- " + strings.Join(bare, "\n- ") + "\n\n")
}

func (r *apiReference) params(v any) (out []openNode) {
	all, _ := v.([]any)
	for _, p := range all {
		m, _ := p.(yaml.MapSlice)
		out = append(out, r.deref(openNode(m)))
	}
	return out
}

// The page of the API is what openapi.yaml and the metrics say. With -update it is written anew:
//
//	go test ./live/serve/api -run APIPage -update
func TestAPIPage(t *testing.T) {
	var doc yaml.MapSlice
	if err := yaml.UnmarshalWithOptions(openAPI, &doc, yaml.UseOrderedMap()); err != nil {
		t.Fatal(err)
	}
	r := &apiReference{doc: openNode(doc)}
	r.WriteString("# The API of a live service\n\n<!-- Written by `go test ./live/serve/api -run APIPage -update`: " +
		"change openapi.yaml or the metrics, not this page. -->\n\n" +
		"Every route of [`sotto serve`](serve.md), as its `/openapi.yaml` has it, and every [metric](#metrics-for-prometheus). " +
		"[Keys](serve.md#keys) says what a scope is.\n" + r.doc.text("info", "description") + "\n\n## Statuses\n\n| status | meaning |\n|---|---|\n")
	for _, x := range []struct{ code, name string }{{"400", "Bad"}, {"401", "NoKey"}, {"403", "NoScope"}, {"404", "None"}, {"408", "Slow"},
		{"409", "Conflict"}, {"409", "Open"}, {"413", "Large"}, {"429", "TooMany"}, {"503", "Again"}} {
		fmt.Fprintf(r, "| %s | %s |\n", x.code, r.doc.text("components", "responses", x.name, "description"))
	}
	for _, x := range []struct{ head, name string }{{"Scopes of keys", "Scope"}, {"What a reward is answered", "Answer"}} {
		of := r.doc.in("components", "schemas", x.name)
		fmt.Fprintf(r, "\n## %s\n\n| %s | meaning |\n|---|---|\n", x.head, strings.ToLower(x.name))
		names, _ := of.get("enum").([]any)
		for _, name := range names {
			means := of.text("x-meanings", fmt.Sprint(name))
			if means == "" {
				t.Errorf("openapi.yaml does not say what %v means", name)
			}
			fmt.Fprintf(r, "| `%v` | %s |\n", name, means)
		}
		if len(names) != len(of.in("x-meanings")) || x.name == "Scope" && len(names) != len(serve.AllScopes()) {
			t.Errorf("openapi.yaml has %d of %s", len(names), x.name)
		}
	}
	r.WriteString("\n## Routes\n\n")
	routes := 0
	for _, p := range r.doc.in("paths") {
		path := fmt.Sprint(p.Key)
		for _, op := range r.doc.in("paths", path) {
			if method := fmt.Sprint(op.Key); method != "parameters" {
				r.route(method, path, r.doc.in("paths", path, method))
				routes++
			}
		}
	}
	r.WriteString("## Objects\n\n")
	for i := 0; i < len(r.named); i++ { // each may refer to more
		s := r.doc.in("components", "schemas", r.named[i])
		fmt.Fprintf(r, "### %s\n\n", r.named[i])
		if says := s.text("description"); says != "" {
			r.WriteString(says + "\n\n")
		}
		r.WriteString("| field | value | meaning |\n|---|---|---|\n")
		r.fields("", s)
		r.WriteString("\n")
	}
	f := &front{Config: Config{Metrics: NewMetrics()}}
	r.WriteString("## Metrics for Prometheus\n\n`GET /metrics`; keys of `metrics` also see `go_…` and `process_…`, which are private. " +
		"Private ones tell\nwhoever watches one person whether they clicked: give a dashboard that many can open a key of `read`.\n\n" +
		"| metric | labels | seen by | meaning |\n|---|---|---|---|\n")
	metrics := 0
	desc := regexp.MustCompile(`^Desc\{fqName: "(\w+)", help: "(.*?)"(?:, unit: "")?, constLabels: \{\}, variableLabels: \{(.*)\}\}$`)
	for i, c := range slices.Concat([]prometheus.Collector{public{}}, f.private()) {
		seen := "keys of `metrics`"
		if i == 0 {
			seen = "everybody, of public experiments; keys of `read`, of all"
		}
		all := make(chan *prometheus.Desc, 100)
		c.Describe(all)
		close(all)
		for d := range all {
			m := desc.FindStringSubmatch(d.String())
			if m == nil {
				t.Fatal(d)
			}
			metrics++
			fmt.Fprintf(r, "| `%s` | %s | %s | %s |\n", m[1], strings.ReplaceAll(m[3], ",", ", "), seen, m[2])
		}
	}
	if routes != len(f.table()) || metrics < 15 {
		t.Errorf("%d routes and %d metrics, want %d and at least 15", routes, metrics, len(f.table()))
	}
	text := strings.TrimRight(r.String(), "\n") + "\n"
	if *updateAPI {
		if err := os.WriteFile(apiPage, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if page, err := os.ReadFile(apiPage); err != nil || string(page) != text {
		t.Errorf("docs/api.md is not what openapi.yaml and the metrics are: go test ./live/serve/api -run APIPage -update (%v)", err)
	}
}
