package oidc

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/oauth2-proxy/mockoidc"
	"golang.org/x/oauth2"
)

const shop = `issuer: ISSUER
client: CLIENT
url: https://bandits.shop.example
scopes: [email, profile, groups]
roles:
  look: {groups: [staff]}
  operate: {groups: [growth], emails: [grace@shop.example]}
  admin: {emails: [ada@shop.example]}
`

// Each wrong configuration is one error that names the field and what is allowed.
func TestParse(t *testing.T) {
	good := strings.NewReplacer("ISSUER", "https://login.example/realms/shop", "CLIENT", "sotto").Replace(shop)
	c, err := Parse([]byte(good))
	if err != nil || c.Claim != "groups" || c.Issuer != "https://login.example/realms/shop" {
		t.Fatalf("%+v, %v", c, err)
	}
	for _, x := range []struct{ from, to, want string }{
		{"https://login.example/realms/shop", "http://login.example", `issuer is "http://login.example", must be a URL with https`},
		{"https://login.example/realms/shop", "https://login.example?x=1", "issuer is"},
		{"https://bandits.shop.example", "https://bandits.shop.example/path", "url is"},
		{"https://bandits.shop.example", "bandits.shop.example", "url is"},
		{"client: sotto", "client: ''", "client is missing"},
		{"client: sotto", "cleint: sotto", `unknown field "cleint"`},
		{"client: sotto", "client: sotto\nclaim: ''", `claim is ""`},
		{"ada@shop.example", "ada", `roles.admin.emails[0] is "ada", must be an address`},
		{"ada@shop.example", "Ada <ada@shop.example>", "roles.admin.emails[0] is"},
		{"[staff]", "['']", `roles.look.groups[0] is "", must be the name of a group`},
		{good[strings.Index(good, "roles:"):], "", "roles is empty"},
	} {
		_, err := Parse([]byte(strings.Replace(good, x.from, x.to, 1)))
		if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v, must have %s", x.to, err, x.want)
		}
	}
	other, err := Parse([]byte(strings.Replace(good, "[staff]", "[guests]", 1)))
	if err != nil || string(other.Terms()) == string(c.Terms()) {
		t.Error("other roles have the same terms")
	}
}

// The highest role counts. An address is compared by ASCII alone: the sign of the kelvin is no k.
func TestRole(t *testing.T) {
	c := Config{Roles: Roles{Look: Members{Groups: []string{"staff"}}, Operate: Members{Groups: []string{"growth"}},
		Admin: Members{Emails: []string{"kim@shop.example"}}}}
	for _, x := range []struct {
		email  string
		groups string
		want   Role
	}{{"", "", Nobody}, {"", "Staff", Nobody}, {"", "staff", Look}, {"", "staff,growth", Operate},
		{"Kim@SHOP.example", "staff", Admin}, {"\u212aim@shop.example", "staff", Look}, {"kim@shop.example.evil", "", Nobody}} {
		if got := c.role(x.email, strings.Split(x.groups, ",")); got != x.want {
			t.Errorf("%q %q: %v, must be %v", x.email, x.groups, got, x.want)
		}
	}
}

func TestGroupsOf(t *testing.T) {
	for claim, want := range map[string]string{"": "", `"a"`: "a", `["a","b"]`: "a,b", `[1]`: "", `{"a":1}`: "", `""`: "", "null": ""} {
		if got := strings.Join(groupsOf(json.RawMessage(claim)), ","); got != want {
			t.Errorf("%s: %q, must be %q", claim, got, want)
		}
	}
}

func running(t *testing.T) *mockoidc.MockOIDC {
	t.Helper()
	m, err := mockoidc.Run()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Shutdown() })
	return m
}

func issuerOf(t *testing.T, m *mockoidc.MockOIDC, secret string) *Issuer {
	t.Helper()
	c, err := Parse([]byte(strings.NewReplacer("ISSUER", m.Issuer(), "CLIENT", m.ClientID).Replace(shop)))
	if err != nil {
		t.Fatal(err)
	}
	return New(c, secret)
}

// codeOf goes to the issuer as a browser does, and gives the code that comes back.
func codeOf(t *testing.T, i *Issuer, nonce, verifier string) string {
	t.Helper()
	at, err := i.Address(t.Context(), "state", nonce, verifier)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(at, verifier) {
		t.Error("the verifier is in the address")
	}
	c := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	out, err := c.Get(at)
	if err != nil {
		t.Fatal(err)
	}
	_ = out.Body.Close()
	back, err := url.Parse(out.Header.Get("Location"))
	if err != nil || !strings.HasPrefix(back.String(), i.URL+CallbackPath) || back.Query().Get("state") != "state" {
		t.Fatal(back, err)
	}
	return back.Query().Get("code")
}

// Whoever the issuer names has a role or none. What is of another login, of another client, with another
// verifier or used twice is refused, and no error names anybody.
func TestIdentify(t *testing.T) {
	m := running(t)
	i := issuerOf(t, m, m.ClientSecret)
	for _, x := range []struct {
		user mockoidc.MockUser
		want Identity
		err  error
	}{
		{mockoidc.MockUser{Subject: "1", Email: "Ada@shop.example", EmailVerified: true}, Identity{"Ada@shop.example", Admin}, nil},
		{mockoidc.MockUser{Subject: "1", Email: "ada@shop.example"}, Identity{}, ErrRole}, // not verified
		{mockoidc.MockUser{Subject: "1", Email: "ada@shop.example", Groups: []string{"staff"}}, Identity{"sub:1", Look}, nil},
		{mockoidc.MockUser{Subject: "1", Email: "x@shop.example", EmailVerified: true, Groups: []string{"staff", "growth"}},
			Identity{"x@shop.example", Operate}, nil},
		{mockoidc.MockUser{Subject: "1", Email: "x@shop.example", EmailVerified: true}, Identity{}, ErrRole},
		{mockoidc.MockUser{Subject: strings.Repeat("x", 101), Groups: []string{"staff"}}, Identity{}, ErrRefused},
	} {
		m.QueueUser(&x.user)
		verifier := oauth2.GenerateVerifier()
		got, err := i.Identify(t.Context(), codeOf(t, i, "nonce", verifier), "nonce", verifier)
		if got != x.want || !errors.Is(err, x.err) {
			t.Errorf("%+v: %+v, %v", x.user, got, err)
		}
	}
	ada := &mockoidc.MockUser{Subject: "1", Email: "ada@shop.example", EmailVerified: true}
	verifier := oauth2.GenerateVerifier()
	refused := func(what string, of *Issuer, code, nonce, verifier string) {
		t.Helper()
		_, err := of.Identify(t.Context(), code, nonce, verifier)
		if !errors.Is(err, ErrRefused) || strings.Contains(err.Error(), "ada") || code != "" && strings.Contains(err.Error(), code) {
			t.Errorf("%s: %v", what, err)
		}
	}
	m.QueueUser(ada)
	refused("another nonce", i, codeOf(t, i, "nonce", verifier), "another", verifier)
	m.QueueUser(ada)
	refused("another verifier", i, codeOf(t, i, "nonce", verifier), "nonce", oauth2.GenerateVerifier())
	refused("no such code", i, "made-up", "nonce", verifier)
	refused("no code", i, "", "nonce", verifier)
	m.QueueUser(ada)
	refused("another secret", issuerOf(t, m, "wrong"), codeOf(t, i, "nonce", verifier), "nonce", verifier)
	m.QueueUser(ada)
	code := codeOf(t, i, "nonce", verifier)
	if _, err := i.Identify(t.Context(), code, "nonce", verifier); err != nil {
		t.Fatal(err)
	}
	refused("a code twice", i, code, "nonce", verifier)
	m.QueueUser(ada)
	code = codeOf(t, i, "nonce", verifier)
	m.FastForward(-2 * m.AccessTTL) // the token it signs has expired
	refused("an old token", i, code, "nonce", verifier)
}

// An issuer that is down is asked again at the next login, and is no error of the configuration.
func TestDown(t *testing.T) {
	m := running(t)
	i := issuerOf(t, m, m.ClientSecret)
	verifier := oauth2.GenerateVerifier()
	if err := m.Shutdown(); err != nil {
		t.Fatal(err)
	}
	if _, err := i.Address(t.Context(), "state", "nonce", verifier); !errors.Is(err, ErrDown) {
		t.Error(err)
	}
	m = running(t)
	i = issuerOf(t, m, m.ClientSecret)
	code := codeOf(t, i, "nonce", verifier)
	if err := m.Shutdown(); err != nil {
		t.Fatal(err)
	}
	if _, err := i.Identify(t.Context(), code, "nonce", verifier); !errors.Is(err, ErrDown) || strings.Contains(err.Error(), code) {
		t.Error(err)
	}
}
