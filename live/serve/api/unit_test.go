package api

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/client"
	"github.com/sotto-dp/sotto/live/serve"
)

// keyWith makes a key.
func (w *world) keyWith(scopes serve.Scope) string {
	w.t.Helper()
	secret, _, err := w.engine.NewKey(w.t.Context(), "test", scopes)
	if err != nil {
		w.t.Fatal(err)
	}
	return secret
}

const browserScopes = serve.ScopeBrowser | serve.ScopeDecide | serve.ScopeReward

// spy does what somebody does who has read a page's key and knows ann's name, and says what they got.
func spy(t *testing.T, w *world, sign string, others string) (got []string) {
	t.Helper()
	soon := w.clock.Now().Add(time.Minute)
	for name, try := range map[string]struct{ path, body string }{
		"names them":                {"/v1/experiments/shop/decisions", `{"unit": "ann"}`},
		"names nobody, without TLS": {"/v1/experiments/shop/decisions", ``},
		"signs with a key of the page": {"/v1/experiments/shop/decisions", fmt.Sprintf(`{"unit_token": %q}`,
			client.SignUnit(w.key, "shop", "ann", soon))},
		"changes their own": {"/v1/experiments/shop/decisions", fmt.Sprintf(`{"unit_token": %q}`,
			strings.Replace(client.SignUnit(sign, "shop", "bob", soon), "Ym9i", "YW5u", 1))},
		"has one of another experiment": {"/v1/experiments/shop/decisions", fmt.Sprintf(`{"unit_token": %q}`,
			client.SignUnit(sign, "other", "ann", soon))},
		"has one of another service": {"/v1/experiments/shop/decisions", fmt.Sprintf(`{"unit_token": %q}`,
			client.SignUnit(others, "shop", "ann", soon))},
		"has an old one": {"/v1/experiments/shop/decisions", fmt.Sprintf(`{"unit_token": %q}`,
			client.SignUnit(sign, "shop", "ann", w.clock.Now()))},
		"names them to OpenFeature": {"/ofrep/v1/evaluate/flags/shop", `{"context": {"targetingKey": "ann"}}`},
		"asks for all flags":        {"/ofrep/v1/evaluate/flags", `{"context": {"targetingKey": "ann"}}`},
		"asks for all with one of no experiment": {"/ofrep/v1/evaluate/flags",
			fmt.Sprintf(`{"context": {"targetingKey": %q}}`, client.SignUnit(sign, "other", "ann", soon))},
	} {
		known := w.ask("POST", try.path, try.body)
		if known.Code == 200 {
			got = append(got, name+": "+known.Body.String())
		}
		// nor are they told whether somebody is there
		unknown := w.ask("POST", try.path, strings.NewReplacer("ann", "zoe", "YW5u", "em9l").Replace(try.body))
		if known.Code != unknown.Code || known.Body.String() != unknown.Body.String() {
			got = append(got, fmt.Sprintf("%s: %s, and %s of somebody else", name, known.Body, unknown.Body))
		}
	}
	return got
}

// A key that is in a page gets the decisions of units that the product's server has signed, and
// nobody else's.
func TestBrowserKeys(t *testing.T) {
	w := shopOpen(t)
	other := newWorld(t)
	sign, others := w.keyWith(serve.ScopeSign), other.keyWith(serve.ScopeSign)
	hers := w.decide("ann")
	server := w.key
	w.key = w.keyWith(browserScopes)
	if got := spy(t, w, sign, others); len(got) > 0 {
		t.Errorf("somebody sees\n%s", strings.Join(got, "\n"))
	}
	// a service that takes what a page says is found out
	browser := w.key
	w.asked = http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-API-Key") == browser {
			r.Header.Set("X-API-Key", server)
		}
		w.front.ServeHTTP(out, r)
	})
	if got := spy(t, w, sign, others); len(got) == 0 {
		t.Error("a service that takes any unit from a page is not found out")
	}
	w.asked = w.front

	soon := w.clock.Now().Add(time.Minute)
	for _, experiment := range []string{"shop", client.AnyExperiment} {
		token := client.SignUnit(sign, experiment, "ann", soon)
		var d decisionJSON
		text := w.want(200, "POST", "/v1/experiments/shop/decisions", fmt.Sprintf(`{"unit_token": %q}`, token))
		if err := json.Unmarshal([]byte(text), &d); err != nil || *d.Decision != *hers.Decision {
			t.Errorf("%s, was %+v", text, hers)
		}
		text = w.want(200, "POST", "/ofrep/v1/evaluate/flags/shop",
			fmt.Sprintf(`{"context": {"targetingKey": %q}}`, token))
		if !strings.Contains(text, *hers.Decision) {
			t.Error(text)
		}
	}
	text := w.want(200, "POST", "/ofrep/v1/evaluate/flags", fmt.Sprintf(`{"context": {"targetingKey": %q}}`,
		client.SignUnit(sign, client.AnyExperiment, "ann", soon)))
	if !strings.Contains(text, *hers.Decision) {
		t.Error(text)
	}
	w.want(200, "POST", "/v1/experiments/shop/rewards", reward(*hers.Decision, "1"))
	w.want(403, "GET", "/v1/experiments", "")
	w.want(403, "POST", "/v1/experiments/shop/stop", "")
	w.want(400, "POST", "/v1/experiments/shop/decisions", `{"unit": "ann", "unit_token": "x"}`)

	// in the address, for navigator.sendBeacon; there no other key is taken
	w.key = ""
	w.want(200, "POST", "/v1/experiments/shop/rewards?key="+browser, reward(*hers.Decision, "1"))
	w.want(401, "POST", "/v1/experiments/shop/rewards?key="+server, reward(*hers.Decision, "1"))
	w.want(401, "GET", "/v1/experiments?key="+server, "")
	// and from pages that may ask
	w.key = browser
	for origin, want := range map[string]int{"https://evil.example": 403, "http://example.com": 200,
		"null":                 403,
		"https://shop.example": 200, "": 200} {
		w.front.Origins = []string{"https://shop.example"}
		w.want(want, "POST", "/v1/experiments/shop/rewards", reward(*hers.Decision, "1"), "Origin", origin)
	}
	w.key = server
	for _, scopes := range []string{`"browser"`, `"browser", "read", "decide"`, `"browser", "admin"`} {
		w.want(400, "POST", "/v1/keys", `{"name": "x", "scopes": [`+scopes+`]}`)
	}
	if got := w.want(201, "POST", "/v1/keys",
		`{"name": "x", "scopes": ["browser", "decide"]}`); !strings.Contains(
		got, `"scopes":["decide","browser"]`) {
		t.Error(got)
	}
}

// A browser that asks by TLS is given a cookie that names its unit, with its first decision, and is
// that unit from then on.
func TestCookie(t *testing.T) {
	w := shopOpen(t)
	key := w.keyWith(browserScopes)
	ask := func(path, body string, with func(*http.Request)) (*http.Response, string) {
		t.Helper()
		r := httptest.NewRequest("POST", path, strings.NewReader(body))
		r.Header.Set("X-API-Key", key)
		with(r)
		out := httptest.NewRecorder()
		w.front.ServeHTTP(out, r)
		return out.Result(), out.Body.String()
	}
	const decisions = "/v1/experiments/shop/decisions"
	secure := func(r *http.Request) { r.TLS = &tls.ConnectionState{} }
	for _, from := range []string{"192.0.2.1:99", "[2001:db8::1]:99", "no address", "localhost:99"} {
		if out, text := ask(decisions, "", func(r *http.Request) {
			r.RemoteAddr = from
		}); out.StatusCode != 403 ||
			len(out.Cookies()) > 0 {
			t.Errorf("%s: %s", from, text)
		}
	}
	for site, want := range map[string]int{"cross-site": 403, "same-site": 200, "same-origin": 200,
		"none": 200} {
		if out, text := ask(decisions, "", func(r *http.Request) {
			secure(r)
			r.Header.Set("Sec-Fetch-Site", site)
		}); out.StatusCode != want || (len(out.Cookies()) > 0) != (want == 200) {
			t.Errorf("%s: %s", site, text)
		}
	}
	units := map[string]bool{}
	for name, with := range map[string]func(*http.Request){"TLS": secure,
		"127.0.0.1": func(r *http.Request) { r.RemoteAddr = "127.0.0.1:99" },
		"a proxy":   func(r *http.Request) { r.Header.Set("X-Forwarded-Proto", "https") },
		"::1":       func(r *http.Request) { r.RemoteAddr = "[::1]:99" },
		"a forged cookie": func(r *http.Request) {
			secure(r)
			r.AddCookie(&http.Cookie{Name: cookieName, Value: "AAAA.AAAA"})
		}} {
		out, first := ask(decisions, "", with)
		if out.StatusCode != 200 || len(out.Cookies()) != 1 {
			t.Fatalf("%s: %s %v", name, first, out.Header)
		}
		c := out.Cookies()[0]
		if c.Name != "__Host-sotto" || !c.HttpOnly || !c.Secure || c.SameSite != http.SameSiteLaxMode ||
			c.Path != "/" || c.Domain != "" || c.MaxAge != 400*24*3600 {
			t.Errorf("%s: %v", name, c)
		}
		back := func(r *http.Request) { with(r); r.Header.Del("Cookie"); r.AddCookie(c) }
		if out, again := ask(decisions, "", back); again != first || len(out.Cookies()) > 0 {
			t.Errorf("%s: %s, was %s", name, again, first)
		}
		var d decisionJSON
		if err := json.Unmarshal([]byte(first), &d); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"/ofrep/v1/evaluate/flags/shop", "/ofrep/v1/evaluate/flags"} {
			if _, text := ask(path, `{"context": {}}`, back); !strings.Contains(text, *d.Decision) {
				t.Errorf("%s: %s", name, text)
			}
			if out, text := ask(path, `{"context": {}}`, with); len(out.Cookies()) != 1 ||
				strings.Contains(text, *d.Decision) {
				t.Errorf("%s: %s: %v", name, text, out.Header)
			}
		}
		if units[*d.Decision] {
			t.Errorf("%s: two browsers are one unit", name)
		}
		units[*d.Decision] = true
	}
	// where nothing counts there is nothing to remember
	w.want(200, "POST", "/v1/experiments/shop/stop", `{"now": true, "confirm": "shop"}`)
	if out, text := ask(decisions, "", secure); out.StatusCode != 200 || len(out.Cookies()) > 0 {
		t.Errorf("%s %v", text, out.Header)
	}
}
