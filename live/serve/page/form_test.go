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
	f.Add(url.Values{"name": {"shop"}, "goal": {"decide"}, "arms": {"red\nblue"}, "epsilon": {"1"}, "unit": {"person"}, "window": {"1m"},
		"metrics": {"basket = 0, 200, 0.5\nback = -3,-1, 1}, webhook: {"}}.Encode())
	f.Add(url.Values{"name": {"shop"}, "goal": {"earn"}, "arms": {"red\nblue"}, "epsilon": {"1"}, "unit": {"person"}, "window": {"1m"},
		"effect": {"0.1\npublic: true"}, "metrics": {"basket = 0, 200, 0.5"}}.Encode())
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
			x.Policy.Policy != n.Fields["policy"] && n.Fields["policy"] != "" && n.Fields["policy"] != "auto" ||
			len(x.Metrics) > strings.Count(n.Fields["metrics"], "=") || x.Public != (n.Fields["public"] == "on") {
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

// Whatever is in the fields, right or wrong, it is in the text that somebody goes on with.
func FuzzNewText(f *testing.F) {
	f.Add("0", "red #c00", "basket = 1", "half", "0.1x")
	f.Add("1", "red = #c00", "basket = 0, 2, 1", "red = 0.5", "0.1")
	f.Fuzz(func(t *testing.T, epsilon, values, metrics, shares, effect string) {
		fields := map[string]string{"name": "shop", "arms": "red\nblue", "epsilon": epsilon, "values": values, "metrics": metrics,
			"shares": shares, "effect": effect}
		text := textOf(fields)
		for name, typed := range fields {
			for word := range strings.FieldsFuncSeq(typed, func(r rune) bool { return r > 'z' || r < '0' || r > '9' && r < 'A' || r > 'Z' && r < 'a' }) {
				if !strings.Contains(text, word) {
					t.Errorf("%s: %q is not in\n%s", name, word, text)
				}
			}
		}
	})
}

// What a budget allows is in words, rounded to the side of who is protected, and never the same for little and much.
func TestOdds(t *testing.T) {
	for epsilon, want := range map[string]string{"0.1": "factor of 1.11: a guess of 50 % becomes at most 52.5 %",
		"0.5": "factor of 1.65: a guess of 50 % becomes at most 62.3 %", "1": "factor of 2.72: a guess of 50 % becomes at most 73.2 %",
		"10": "next to nothing", "1e9": "next to nothing", "0": "", "-1": "", "x": "", "": ""} {
		if got := oddsOfForm(map[string]string{"epsilon": epsilon, "unit": "person"}); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%q: %q, must have %q", epsilon, got, want)
		}
	}
	// a metric's budget is on top
	if got := oddsOfForm(map[string]string{"epsilon": "0.5", "metrics": "basket = 0, 2, 0.5"}); !strings.Contains(got, "2.72") {
		t.Error(got)
	}
}
