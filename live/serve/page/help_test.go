package page

import (
	"regexp"
	"strings"
	"testing"
)

// Each page's help is a document that the program has, at a heading that is in it; all documents can be shown, and every
// link in them leads to one, to a heading that it has, or to a host.
func TestHelpLeadsSomewhere(t *testing.T) {
	all, err := documents()
	if err != nil || len(all) < 15 {
		t.Fatalf("%d documents: %v", len(all), err)
	}
	body := map[string]string{}
	for name, d := range all {
		if d.title == "" || strings.Contains(string(d.body), "style=") {
			t.Errorf("%s: %q", name, d.title)
		}
		body[name] = string(d.body)
	}
	leads := func(from, to string) bool {
		file, heading, has := strings.Cut(to, "#")
		if file == "" {
			file = from
		}
		html, there := body[file]
		return strings.HasPrefix(to, "https://") || there && (!has || strings.Contains(html, ` id="`+heading+`"`))
	}
	for _, path := range []string{"/", "/new", "/keys", "/keys/1/revoke", "/account", "/login", "/experiments/shop", "/experiments/shop/ledger",
		"/experiments/shop/stop", "/help/serve.md"} {
		if to := (Frame{Path: path}).Help(); !leads("", strings.TrimPrefix(to, "/help/")) {
			t.Errorf("the help of %s is %s, which is not there", path, to)
		}
	}
	links := regexp.MustCompile(`href="([^"]*)"`)
	n := 0
	for name, html := range body {
		for _, m := range links.FindAllStringSubmatch(html, -1) {
			if n++; !leads(name, strings.ReplaceAll(m[1], "%CE%B5", "ε")) {
				t.Errorf("%s links to %s, which is not there", name, m[1])
			}
		}
	}
	if n < 100 {
		t.Errorf("%d links", n)
	}
}
