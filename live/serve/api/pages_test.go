package api

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/live/serve"
)

// A browser keeps cookies, and says where a request comes from.
type browser struct {
	w       *world
	cookies []*http.Cookie
}

func (b *browser) do(method, path, form string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(form))
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	for _, c := range b.cookies {
		r.AddCookie(c)
	}
	out := httptest.NewRecorder()
	b.w.asked.ServeHTTP(out, r)
	b.cookies = append(b.cookies, out.Result().Cookies()...)
	return out
}

func (b *browser) want(status int, method, path, form string, header ...string) string {
	b.w.t.Helper()
	out := b.do(method, path, form, header...)
	if out.Code != status {
		b.w.t.Fatalf("%s %s: %d, must be %d: %s", method, path, out.Code, status, out.Body)
	}
	return out.Body.String()
}

// login is a browser in which somebody has logged in with a key.
func (w *world) login(secret string) *browser {
	w.t.Helper()
	b := &browser{w: w}
	b.want(303, "POST", "/login", url.Values{"key": {secret}}.Encode())
	return b
}

// Without a key there are the public experiments; a login shows all; what is private and what there
// is not are one answer to who may not see.
func TestPages(t *testing.T) {
	w := shopOpen(t)
	w.want(201, "POST", "/v1/experiments", strings.NewReplacer("name: shop", "name: secret",
		"public: true", "").Replace(shop))
	anybody := &browser{w: w}
	if home := anybody.want(200, "GET", "/", ""); !strings.Contains(home, "/experiments/shop") ||
		strings.Contains(home, "secret") || !strings.Contains(home, `name="key"`) {
		t.Error(home)
	}
	anybody.want(200, "GET", "/experiments/shop", "")
	private := anybody.want(401, "GET", "/experiments/secret", "")
	if none := anybody.want(401, "GET", "/experiments/nothing", ""); none !=
		strings.ReplaceAll(private, "secret", "nothing") {
		t.Errorf("%s\nis not\n%s", none, private)
	}
	admin := w.login(w.key)
	if home := admin.want(200, "GET", "/", ""); !strings.Contains(home, "/experiments/secret") {
		t.Error(home)
	}
	admin.want(200, "GET", "/experiments/secret", "")
	admin.want(404, "GET", "/experiments/nothing", "")
	out := admin.do("GET", "/experiments/secret", "")
	for name, want := range map[string]string{"Content-Security-Policy": "default-src 'none'; " +
		"script-src 'self'; " +
		"style-src 'self'; connect-src 'self'; img-src 'self' data:; font-src 'self'; form-action 'self'; " +
		"base-uri 'none'; frame-ancestors 'none'", "X-Content-Type-Options": "nosniff",
		"Referrer-Policy": "same-origin", "Cache-Control": "no-store"} {
		if got := out.Header().Get(name); got != want {
			t.Errorf("%s is %q", name, got)
		}
	}
}

// The cookie of a login is none that a script reads or another site sends, and opens no route of
// programs.
func TestLogin(t *testing.T) {
	w := shopOpen(t)
	b := w.login(w.key)
	c := b.cookies[0]
	if c.Name != "sotto_session" || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" ||
		c.Secure || strings.Contains(c.Value, w.key) {
		t.Errorf("%+v", c)
	}
	for _, route := range []string{"GET /v1/experiments", "GET /v1/keys", "POST /v1/experiments/shop/decisions",
		"POST /v1/experiments/shop/stop", "POST /ofrep/v1/evaluate/flags/shop"} {
		method, path, _ := strings.Cut(route, " ")
		b.want(401, method, path, "")
	}
	overTLS := (&browser{w: w}).do("POST", "/login", url.Values{"key": {w.key}}.Encode(),
		"X-Forwarded-Proto", "https").Result().Cookies()[0]
	if overTLS.Name != "__Host-sotto_session" || !overTLS.Secure {
		t.Errorf("%+v", overTLS)
	}
	// wrong keys: not known, too little, and for pages of others
	decide, _, err := w.engine.NewKey(t.Context(), "decides", serve.ScopeDecide)
	if err != nil {
		t.Fatal(err)
	}
	want := ""
	for _, key := range []string{"sotto_wrong", decide, ""} {
		out := (&browser{w: w}).do("POST", "/login", url.Values{"key": {key}}.Encode())
		if out.Code != 401 || len(out.Result().Cookies()) > 0 || want != "" && out.Body.String() != want {
			t.Errorf("%q: %d %s", key, out.Code, out.Body)
		}
		want = out.Body.String()
	}
	// a revoked key ends its logins
	secret, k, err := w.engine.NewKey(t.Context(), "reader", serve.ScopeRead)
	if err != nil {
		t.Fatal(err)
	}
	reader := w.login(secret)
	if home := reader.want(200, "GET", "/", ""); !strings.Contains(home, "reader") {
		t.Error(home)
	}
	if err := w.engine.RevokeKey(t.Context(), k.ID); err != nil {
		t.Fatal(err)
	}
	if home := reader.want(200, "GET", "/", ""); strings.Contains(home, "reader") {
		t.Error("a revoked key's login goes on")
	}
	// time ends them too
	w.pass(serve.SessionLife)
	if home := b.want(200, "GET", "/", ""); strings.Contains(home, "Log out") {
		t.Error("a login is for ever")
	}
	b = w.login(w.key)
	b.want(303, "POST", "/logout", "")
	if last := b.cookies[len(b.cookies)-1]; last.MaxAge >= 0 || last.Value != "" {
		t.Errorf("%+v", last)
	}
}

// What a page of another origin sends is refused, and may not be read by it, also where the site is
// the same and the origin one that may ask for decisions.
func TestPagesOfOthers(t *testing.T) {
	w := shopOpen(t)
	w.front.Origins = []string{"https://shop.example"}
	form := url.Values{"key": {w.key}}.Encode()
	b := &browser{w: w}
	b.want(403, "POST", "/login", form, "Sec-Fetch-Site", "cross-site")
	b.want(403, "POST", "/login", form, "Sec-Fetch-Site", "same-site", "Origin", "https://shop.example")
	b.want(403, "POST", "/login", form, "Sec-Fetch-Site", "", "Origin", "https://shop.example")
	out := w.login(w.key).do("GET", "/experiments/shop", "", "Origin", "https://shop.example")
	if got := out.Header().Get("Access-Control-Allow-Origin"); got != "" {
		t.Errorf("pages may be read by %s", got)
	}
	b.want(415, "POST", "/login", form, "Content-Type", "text/plain")
	b.want(413, "POST", "/login", "key="+strings.Repeat("a", 20_000))
	for _, bad := range []string{"key=a&key=b", "kee=a", "key=%zz", "key=%ff"} {
		b.want(400, "POST", "/login", bad)
	}
	// where a login goes to is here
	for _, there := range []string{"https://evil.example", "//evil.example", `/\evil.example`,
		"javascript:1", ""} {
		out := b.do("POST", "/login", url.Values{"key": {w.key}, "to": {there}}.Encode())
		if got := out.Header().Get("Location"); out.Code != 303 || got != "/" {
			t.Errorf("%q: %d, to %q", there, out.Code, got)
		}
	}
}

// Without TLS, and not on this machine, browsers do not say which site a form is from; its origin
// they call null where the page is of a policy by which it has no referrer (Fetch, "append a
// request Origin header").
func TestLoginOverPlainHTTP(t *testing.T) {
	w := shopOpen(t)
	b := &browser{w: w}
	origin := "http://example.com"
	if b.do("GET", "/login", "").Header().Get("Referrer-Policy") == "no-referrer" {
		origin = "null"
	}
	b.want(303, "POST", "/login", form("key", w.key), "Sec-Fetch-Site", "", "Origin", origin)
	b.want(403, "POST", "/login", form("key", w.key), "Sec-Fetch-Site", "", "Origin", "http://evil.example")
	b.want(403, "POST", "/login", form("key", w.key), "Sec-Fetch-Site", "", "Origin", "null")
}

// A page does not promise more than the declaration does: what counts tell of who met a decision,
// and of whether a reward came, is among what is not protected.
func TestPagesPromiseNoMore(t *testing.T) {
	w := shopOpen(t)
	const met, came, metrics = "which decisions were met", "whether a reward came", "rewards and metrics ("
	const condition = "Intervals hold only if whether a decision is "
	for name, c := range map[string]struct {
		more string
		says []string
	}{
		"shop":     {"", nil},
		"activate": {"exposure: activate\n", []string{met}},
		"retract":  {"exposure: retract\n", []string{met, condition + "retracted does"}},
		"drop":     {"missing: drop\nreports: every\n", []string{came, condition + "reported does"}},
		"metric":   {"metrics: [{name: basket, range: [0, 200], budget: {epsilon: 0.5}}]\n", []string{metrics}},
	} {
		if name != "shop" {
			w.want(201, "POST", "/v1/experiments", strings.Replace(shop, "name: shop", "name: "+name, 1)+c.more)
		}
		page := (&browser{w: w}).want(200, "GET", "/experiments/"+name, "")
		for _, text := range []string{met, came, metrics} {
			if got, want := strings.Contains(page, text), slices.Contains(c.says, text); got != want {
				t.Errorf("%s: that the page says %q is %v, must be %v", name, text, got, want)
			}
		}
		// what an interval rests on is said wherever there is one
		report := w.want(200, "GET", "/v1/experiments/"+name+"/report", "")
		for _, p := range []string{page, string(report)} {
			at := strings.Index(p, condition)
			if want := slices.IndexFunc(c.says, func(s string) bool {
				return strings.HasPrefix(s, condition)
			}); (at >= 0) != (want >= 0) ||
				want >= 0 && !strings.Contains(p, c.says[want]) {
				t.Errorf("%s: a page says on what its intervals rest: %v", name, at >= 0)
			}
		}
	}
}

// A browser is told in a page that there is nothing, and a program in JSON, each of what it may see.
func TestNotFound(t *testing.T) {
	w := newWorld(t)
	anybody, admin := &browser{w: w}, w.login(w.key)
	const browsers = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
	for _, path := range []string{"/nothing", "/v1/nothing", "/experiments", "/new/nothing"} {
		for b, said := range map[*browser]string{anybody: `href="/login?to=`, admin: "Log out"} {
			out := b.do("GET", path, "", "Accept", browsers)
			if page := out.Body.String(); out.Code != 404 || !strings.HasPrefix(out.Header().Get("Content-Type"), "text/html") ||
				!strings.Contains(page, said) || !strings.Contains(page, "There is no such page") ||
				out.Header().Get("Content-Security-Policy") == "" {
				t.Errorf("%s: %d %v %s", path, out.Code, out.Header(), page)
			}
		}
		for _, accept := range []string{"", "*/*", "application/json"} {
			out := anybody.do("GET", path, "", "Accept", accept)
			if out.Code != 404 || out.Header().Get("Content-Type") != "application/problem+json" {
				t.Errorf("%s, %q: %d %v", path, accept, out.Code, out.Header())
			}
		}
	}
	w.front.Origins = []string{"https://shop.example"}
	for _, path := range []string{"/v1/nothing", "/nothing"} { // a page of another origin, with the cookie
		out := admin.do("GET", path, "", "Accept", browsers, "Origin", "https://shop.example")
		if page := out.Body.String(); out.Code != 404 || out.Header().Get("Access-Control-Allow-Credentials") != "true" ||
			out.Header().Get("Content-Type") != "application/problem+json" || strings.Contains(page, "admin") {
			t.Errorf("another's page reads of %s: %d %v %s", path, out.Code, out.Header(), page)
		}
	}
	if out := anybody.do("POST", "/nothing", "", "Accept", browsers); out.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("%v", out.Header())
	}
}
