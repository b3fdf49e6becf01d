package api

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/live/serve/store"
)

// What all experiments can cost one person stands on a page and in JSON, and a start that exceeds the cap is
// refused in its words, for who reads.
func TestAccount(t *testing.T) {
	w := newWorld(t)
	if got := w.want(200, "GET", "/v1/account", ""); !strings.Contains(got, `"cap":null`) {
		t.Errorf("without a cap: %s", got)
	}
	b := w.login(w.key)
	if page := b.want(200, "GET", "/account", ""); !strings.Contains(page, "No cap is set") {
		t.Errorf("without a cap: %s", page)
	}

	limit, err := serve.ParsePersonCap("unit=person,epsilon=1.5/365d")
	if err != nil {
		t.Fatal(err)
	}
	w = newWorldOf(t, serve.Config{Store: store.NewMemory().Open, Curator: seeded, PersonCap: &limit})
	b = w.login(w.key)
	text := regexp.MustCompile(`unit: .*`).ReplaceAllString(shop, "unit: {of: person}")
	text = regexp.MustCompile(`budget: .*`).ReplaceAllString(text, "budget: {epsilon: 1}")
	for _, name := range []string{"one", "two"} {
		w.want(201, "POST", "/v1/experiments", strings.Replace(text, "name: shop", "name: "+name, 1))
	}
	w.want(201, "POST", "/v1/experiments", strings.NewReplacer("name: shop", "name: visits", "of: person", "of: visit").Replace(text))
	w.want(200, "POST", "/v1/experiments/one/start", "")
	refusal := w.want(409, "POST", "/v1/experiments/two/start", "")
	for _, part := range []string{`"field":"budget"`, "costs one person epsilon=1, and epsilon=2 with what counts then",
		"the cap is epsilon=1.5 within 365 days", "one with epsilon=1 while it goes on", "costs at most epsilon=0.5"} {
		if !strings.Contains(refusal, part) {
			t.Errorf("%q is not in %s", part, refusal)
		}
	}
	if got := w.want(409, "POST", "/v1/experiments/visits/start", ""); !strings.Contains(got, `"field":"unit.of"`) {
		t.Error(got)
	}
	got := w.want(200, "GET", "/v1/account", "")
	for _, part := range []string{`"cap":{"text":"unit=person,epsilon=1.5/365d","unit":"person","budget":"epsilon=1.5","days":365}`,
		`"most":1,"left":0.5,"over":0`, `"name":"one","state":"running","budget":"epsilon=1","costs":1,`, `"until":null`,
		`"name":"visits","state":"draft","budget":"epsilon=1","costs":null`, `"why":"`} {
		if !strings.Contains(got, part) {
			t.Errorf("%s is not in %s", part, got)
		}
	}
	page := b.want(200, "GET", "/account", "")
	for _, part := range []string{"<dd>ε = 1.5</dd>", "<dd>ε = 0.5</dd>", `<a href="/experiments/one">one</a>`, "it goes on",
		"at most a factor of 4.49", "not known", `aria-current="page">Account</a>`} {
		if !strings.Contains(page, part) {
			t.Errorf("%q is not on the page: %s", part, page)
		}
	}
	refused := b.want(409, "POST", "/experiments/two/start", "")
	if !strings.Contains(refused, "costs at most epsilon=0.5") {
		t.Errorf("the page says %s", refused)
	}
	for _, scope := range []serve.Scope{serve.ScopeRead, serve.ScopeDecide} {
		if w.key, _, err = w.engine.NewKey(t.Context(), "other", scope); err != nil {
			t.Fatal(err)
		}
		want := map[serve.Scope]int{serve.ScopeRead: 200, serve.ScopeDecide: 403}[scope]
		w.want(want, "GET", "/v1/account", "")
		if got := w.plain("GET", "/account", "").Code; got != want {
			t.Errorf("the page is answered %d", got)
		}
	}
	w.key = ""
	w.want(401, "GET", "/v1/account", "")
}

// A person is named by the product's server alone, and wanted where they are counted.
func TestPerson(t *testing.T) {
	w := newWorld(t)
	w.want(201, "POST", "/v1/experiments", regexp.MustCompile(`unit: .*`).ReplaceAllString(shop, "unit: {of: device, per_person: 2}"))
	w.want(200, "POST", "/v1/experiments/shop/start", "")
	const decide = "/v1/experiments/shop/decisions"
	for _, body := range []string{`{"unit":"d"}`, `{"unit":"d","person":"\ufffd"}`} {
		if got := w.want(400, "POST", decide, body); !strings.Contains(got, `"field":"person"`) {
			t.Error(got)
		}
	}
	for i, reason := range []string{"split", "split", "over_limit"} {
		got := w.want(200, "POST", decide, fmt.Sprintf(`{"unit":"d%d","person":"ann"}`, i))
		if !strings.Contains(got, `"reason":"`+reason+`"`) {
			t.Errorf("decision %d: %s", i, got)
		}
	}
	if got := w.want(200, "POST", "/ofrep/v1/evaluate/flags", `{"context":{"targetingKey":"d9"}}`); strings.Contains(got, "shop") {
		t.Errorf("OFREP has no place for a person: %s", got)
	}
	var err error
	if w.key, _, err = w.engine.NewKey(t.Context(), "page", serve.ScopeBrowser|serve.ScopeDecide); err != nil {
		t.Fatal(err)
	}
	if got := w.want(403, "POST", decide, `{"person":"ann"}`); !strings.Contains(got, `"field":"person"`) {
		t.Error(got)
	}
}
