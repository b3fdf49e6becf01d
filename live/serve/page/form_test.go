package page

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// FuzzNewForm: whatever is in the fields of the form, its declaration is of these fields and of no
// others, or there is an error; nothing panics.
func FuzzNewForm(f *testing.F) {
	good := url.Values{"name": {"shop"}, "arms": {"red\nblue"}, "policy": {"dp-klucb"}, "epsilon": {"1"},
		"unit": {"person"}, "window": {"1m"}, "description": {"a: \"b\" # \u2028 '"}}
	f.Add(good.Encode())
	good.Set("values", "blue = #00c\nred = {\"a\": [1, null, \"\\ud83d\\ude00\"]}")
	f.Add(good.Encode())
	good.Set("unit", "person}\nwebhook: \"https://evil.example\"")
	f.Add(good.Encode())
	good.Set("epsilon", "0x1p-2")
	f.Add(good.Encode())
	f.Add("text=" + url.QueryEscape("name: [shop") + "&do=check")
	f.Add("name=%zz")
	p := New(Config{Problem: func(error) (int, string, string) {
		return http.StatusInternalServerError, "", ""
	}})
	f.Fuzz(func(t *testing.T, body string) {
		r := httptest.NewRequest(http.MethodPost, "/new", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		n, _, x, err := p.readNew(httptest.NewRecorder(), r)
		if err != nil || n.Wrong != nil || n.AsText {
			return
		}
		of := strings.TrimSpace
		if x.Name != n.Fields["name"] || x.Webhook != "" || x.Layer.Name != "" || x.Only != nil || x.Free ||
			of(x.Description) != n.Fields["description"] || of(x.Unit.Of) != n.Fields["unit"] ||
			x.Policy.Policy != n.Fields["policy"] || x.Public != (n.Fields["public"] == "on") {
			t.Errorf("%q becomes %s: %+v", body, n.Text, x)
		}
		for i, a := range x.Arms {
			if !strings.Contains(n.Fields["arms"], a.Name) || i > strings.Count(n.Fields["arms"], "\n") {
				t.Errorf("%q becomes %+v", body, x.Arms)
			}
		}
	})
}

// Where a login goes to is a path of ours.
func FuzzTo(f *testing.F) {
	for _, s := range []string{"/", "/experiments/shop", "//evil.example", "/\\evil",
		"https://evil.example/", "/a?b#c",
		"/%2f", "/%2fevil.example/\xdb", "/\t/evil.example", "/..//evil.example"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, path string) {
		got := to(path)
		if !strings.HasPrefix(got, "/") || strings.HasPrefix(got, "//") ||
			strings.ContainsAny(got, "\\\r\n\t") {
			t.Errorf("%q goes to %q", path, got)
		}
	})
}
