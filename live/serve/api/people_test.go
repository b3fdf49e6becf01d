package api

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/oauth2-proxy/mockoidc"

	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/live/serve/oidc"
)

// peopled is a world with a running experiment, whose people an issuer names.
func peopled(t *testing.T) (*world, *mockoidc.MockOIDC) {
	t.Helper()
	m, err := mockoidc.Run()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Shutdown() })
	w := shopOpen(t)
	w.trust(m, "growth")
	return w, m
}

// trust has a world know its people by an issuer, where a group operates.
func (w *world) trust(m *mockoidc.MockOIDC, group string) {
	w.t.Helper()
	c, err := oidc.Parse([]byte("issuer: " + m.Issuer() + "\nclient: " + m.ClientID + `
url: https://bandits.shop.example
scopes: [email, profile, groups]
roles: {look: {groups: [staff]}, operate: {groups: [` + group + `]}, admin: {emails: [ada@shop.example]}}`))
	if err != nil {
		w.t.Fatal(err)
	}
	w.front = Handler(Config{Engine: w.engine, Log: slog.New(slog.NewTextHandler(&w.log, nil)),
		Issuer: oidc.New(c, m.ClientSecret)}).(*front)
	w.asked = w.front
}

var (
	ada     = &mockoidc.MockUser{Subject: "1", Email: "ada@shop.example", EmailVerified: true}
	grace   = &mockoidc.MockUser{Subject: "2", Email: "grace@shop.example", EmailVerified: true, Groups: []string{"growth"}}
	edsger  = &mockoidc.MockUser{Subject: "3", Email: "edsger@shop.example", EmailVerified: true, Groups: []string{"staff"}}
	mallory = &mockoidc.MockUser{Subject: "4", Email: "mallory@shop.example", EmailVerified: true}
)

// away begins a login, and gives the address at which the issuer sends the browser back.
func (b *browser) away(m *mockoidc.MockOIDC, who *mockoidc.MockUser, to string) string {
	b.w.t.Helper()
	m.QueueUser(who)
	out := b.do("GET", "/login/issuer?to="+url.QueryEscape(to), "")
	if out.Code != 303 {
		b.w.t.Fatalf("%d: %s", out.Code, out.Body)
	}
	c := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := c.Get(out.Header().Get("Location"))
	if err != nil {
		b.w.t.Fatal(err)
	}
	_ = answer.Body.Close()
	back, err := url.Parse(answer.Header.Get("Location"))
	if err != nil || back.Host != "bandits.shop.example" {
		b.w.t.Fatal(back, err)
	}
	return back.RequestURI()
}

// named is a browser in which somebody has logged in by the issuer.
func (w *world) named(m *mockoidc.MockOIDC, who *mockoidc.MockUser) *browser {
	w.t.Helper()
	b := &browser{w: w}
	b.want(200, "GET", b.away(m, who, "/"), "")
	return b
}

// Each role opens what it says and nothing else, and what somebody did stands in the journal by name and
// issuer. The log has nobody's name, and no code.
func TestPeople(t *testing.T) {
	w, m := peopled(t)
	if home := (&browser{w: w}).want(200, "GET", "/", ""); !strings.Contains(home, "https://bandits.shop.example/login/issuer?to=%2f") ||
		!strings.Contains(home, `name="key"`) {
		t.Error(home)
	}
	looks, operates, admin := w.named(m, edsger), w.named(m, grace), w.named(m, ada)
	for _, x := range []struct {
		method, path, form     string
		looks, operates, admin int
	}{
		{"GET", "/account", "", 200, 200, 200},
		{"GET", "/experiments/shop/stop", "", 403, 200, 200},
		{"POST", "/experiments/shop/pause", "", 403, 303, 409},
		{"POST", "/experiments/shop/resume", "", 403, 303, 409},
		{"GET", "/new", "", 403, 403, 200},
		{"POST", "/new/check", "name=shop", 403, 403, 200}, // it says whether a name is taken
		{"POST", "/new/forecast", "name=other", 403, 403, 200},
		{"GET", "/keys", "", 403, 403, 200},
		{"POST", "/keys", "name=x&scope-read=on", 403, 403, 201},
		{"GET", "/v1/experiments", "", 401, 401, 401}, // a cookie opens pages alone
		{"POST", "/v1/experiments/shop/pause", "", 401, 401, 401},
	} {
		for b, want := range map[*browser]int{looks: x.looks, operates: x.operates} {
			if got := b.do(x.method, x.path, x.form).Code; got != want {
				t.Errorf("%s %s: %d, must be %d", x.method, x.path, got, want)
			}
		}
		if got := admin.do(x.method, x.path, x.form).Code; got != x.admin {
			t.Errorf("%s %s: %d of admin, must be %d", x.method, x.path, got, x.admin)
		}
	}
	if page := looks.want(200, "GET", "/experiments/shop", ""); strings.Contains(page, `id="operations"`) ||
		!strings.Contains(page, "edsger@shop.example") {
		t.Error("who looks is shown operations, or not who it is")
	}
	if page := operates.want(200, "GET", "/experiments/shop", ""); !strings.Contains(page, `id="operations"`) ||
		strings.Contains(page, `href="/keys"`) {
		t.Error("who operates is shown no operations, or keys")
	}
	journal := w.want(200, "GET", "/v1/audit", "")
	for _, line := range []string{`"by":"grace@shop.example","issuer":"` + m.Issuer() + `","did":"pause","experiment":"shop"`,
		`"by":"ada@shop.example","issuer":"` + m.Issuer() + `","did":"make key","with":"x"`} {
		if !strings.Contains(journal, line) {
			t.Errorf("no %s in %s", line, journal)
		}
	}
	if strings.Contains(journal, "edsger") || strings.Count(journal, `"issuer"`) != 3 {
		t.Error(journal)
	}
	if operates.do("POST", "/experiments/shop/pause", "", "Sec-Fetch-Site", "cross-site").Code != 403 {
		t.Error("a form of another site was taken")
	}
	if log := w.log.String(); strings.Contains(log, "@") || strings.Contains(log, "code=") {
		t.Error(log)
	}
}

// A login is of the browser that began it, once, within ten minutes, and goes to a page of this service. Whoever
// has no role is told so, and the log has no name.
func TestLoginByIssuer(t *testing.T) {
	w, m := peopled(t)
	b := &browser{w: w}
	back := b.away(m, ada, "//evil.example")
	for what, x := range map[string]struct {
		b  *browser
		at string
	}{"another browser": {&browser{w: w}, back}, "another state": {b, strings.Replace(back, "state=", "state=x", 1)},
		"no state": {b, "/login/callback?code=x"}, "nothing": {b, "/login/callback"}} {
		if out := x.b.do("GET", x.at, ""); out.Code != 400 || !strings.Contains(out.Body.String(), "began in another browser") {
			t.Errorf("%s: %d: %s", what, out.Code, out.Body)
		}
	}
	out := b.do("GET", back, "")
	if out.Code != 200 || !strings.Contains(out.Body.String(), `content="0;url=/"`) {
		t.Fatalf("%d: %s", out.Code, out.Body)
	}
	for _, c := range out.Result().Cookies() {
		session := c.Name == "sotto_session"
		if !c.HttpOnly || c.Path != "/" || session && (c.SameSite != http.SameSiteStrictMode || c.MaxAge != 3600) ||
			!session && c.MaxAge >= 0 {
			t.Errorf("%+v", c)
		}
	}
	b.want(403, "GET", back, "") // the issuer takes a code once
	late := &browser{w: w}
	at := late.away(m, ada, "/")
	w.pass(10 * time.Minute)
	late.want(400, "GET", at, "")
	none := &browser{w: w}
	if page := none.want(403, "GET", none.away(m, mallory, "/"), ""); !strings.Contains(page, "you have no role here") {
		t.Error(page)
	}
	none.want(401, "GET", "/account", "")
	denied := &browser{w: w}
	at = denied.away(m, ada, "/")
	denied.want(403, "GET", strings.Replace(at, "code=", "error=access_denied&x=", 1), "")
	if out := (&browser{w: w}).do("GET", "/login/issuer", "", "X-Forwarded-Proto", "https").Result().Cookies(); len(out) != 1 ||
		out[0].Name != "__Host-sotto_login" || !out[0].Secure || out[0].SameSite != http.SameSiteLaxMode {
		t.Errorf("%+v", out)
	}
	if log := w.log.String(); strings.Contains(log, "@") || !strings.Contains(log, "has a role here") {
		t.Error(log)
	}
}

// A session ends after an hour, with the roles that gave it, and when it is forged; logging out takes it back.
func TestPersonSession(t *testing.T) {
	w, m := peopled(t)
	b := w.named(m, grace)
	b.want(200, "GET", "/account", "")
	var session *http.Cookie
	for _, c := range b.cookies {
		if c.Name == "sotto_session" {
			session = c
		}
	}
	status := func(value string) int {
		r := httptest.NewRequest("GET", "/account", nil)
		r.AddCookie(&http.Cookie{Name: "sotto_session", Value: value})
		out := httptest.NewRecorder()
		w.asked.ServeHTTP(out, r)
		return out.Code
	}
	text, mac, _ := strings.Cut(session.Value, ".")
	flow := b.cookies[0] // is signed for another use
	for _, forged := range []string{"", ".", text, text + ".", "x" + session.Value, text[:len(text)-4] + "." + mac, flow.Value} {
		if got := status(forged); got != 401 {
			t.Errorf("%q: %d", forged, got)
		}
	}
	w.trust(m, "others")
	if got := status(session.Value); got != 401 {
		t.Errorf("with other roles: %d", got)
	}
	w.trust(m, "growth")
	w.pass(59 * time.Minute)
	if got := status(session.Value); got != 200 {
		t.Errorf("after 59 minutes: %d", got)
	}
	w.pass(time.Minute)
	if got := status(session.Value); got != 401 {
		t.Errorf("after an hour: %d", got)
	}
	out := b.do("POST", "/logout", "").Result().Cookies()
	if len(out) != 1 || out[0].Name != "sotto_session" || out[0].Value != "" || out[0].MaxAge >= 0 {
		t.Errorf("%+v", out)
	}
}

// While the issuer is down a login says so, whoever has logged in stays so, and keys go on working.
func TestIssuerDown(t *testing.T) {
	w, m := peopled(t)
	b, late := w.named(m, grace), &browser{w: w}
	back := late.away(m, ada, "/")
	if err := m.Shutdown(); err != nil {
		t.Fatal(err)
	}
	if page := late.want(503, "GET", back, ""); !strings.Contains(page, "does not answer: try again later, or log in with a key") {
		t.Error(page)
	}
	w.trust(m, "growth") // another process, which has not asked it yet
	out := (&browser{w: w}).do("GET", "/login/issuer", "")
	if out.Code != 503 || out.Header().Get("Retry-After") == "" || !strings.Contains(out.Body.String(), "does not answer") {
		t.Errorf("%d: %s", out.Code, out.Body)
	}
	b.want(303, "POST", "/experiments/shop/pause", "")
	w.login(w.key).want(200, "GET", "/keys", "")
	w.want(200, "POST", "/v1/experiments/shop/resume", "")
	none := newWorld(t)
	if page := (&browser{w: none}).want(404, "GET", "/login/issuer", ""); !strings.Contains(page, "log in with a key") {
		t.Error(page)
	}
	(&browser{w: none}).want(404, "GET", "/login/callback?code=x&state=y", "")
}

// No key is stored with operate alone, which would be lost.
func TestOperateIsAPersons(t *testing.T) {
	w := newWorld(t)
	if _, _, err := w.engine.NewKey(t.Context(), "x", serve.ScopeOperate|serve.ScopeRead); err == nil {
		t.Error("made")
	}
	if got := w.engine.May(w.key); got != serve.ScopeAdmin {
		t.Errorf("%b", got)
	}
}
