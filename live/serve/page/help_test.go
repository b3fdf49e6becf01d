package page

import (
	"regexp"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/docs"
)

// Each page's help is a document that the program has, at a heading that is in it; all documents can be shown, and every
// link in them leads to one, to a heading that it has, or to a host.
func TestHelpLeadsSomewhere(t *testing.T) {
	names, err := docs.Files.ReadDir(".")
	if err != nil || len(names) < 15 {
		t.Fatalf("%d documents: %v", len(names), err)
	}
	body := map[string]string{}
	for _, f := range names {
		src, err := docs.Files.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		title, html, err := rendered(src)
		if err != nil || title == "" || strings.Contains(string(html), "style=") {
			t.Errorf("%s: %q: %v", f.Name(), title, err)
		}
		body[f.Name()] = string(html)
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
