package serve

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/client"
	"github.com/sotto-dp/sotto/live/serve/store"
)

// A signed unit is taken from who may sign, for its experiment and until its time; everything else is
// one answer.
func TestSignedUnits(t *testing.T) {
	c := newClock()
	e := open(t, Config{Store: store.NewMemory().Open, Clock: c.Now})
	begin(t, e, shop)
	sign, k, err := e.NewKey(t.Context(), "signs", ScopeSign|ScopeDecide)
	if err != nil {
		t.Fatal(err)
	}
	admin, _, err := e.NewKey(t.Context(), "admin", ScopeAdmin)
	if err != nil {
		t.Fatal(err)
	}
	soon := c.Now().Add(time.Minute)
	good := client.SignUnit(sign, "shop", "ann", soon)
	for _, token := range []string{good, client.SignUnit(sign, AnyExperiment, "ann", soon)} {
		if unit, err := e.SignedUnit("shop", token); unit != "ann" || err != nil {
			t.Errorf("%s: %q, %v", token, unit, err)
		}
	}
	dot := strings.LastIndexByte(good, '.')
	for name, token := range map[string]string{
		"empty": "", "no dots": "abc", "two parts": "YW5u.1000000060", "of another experiment": client.SignUnit(sign,
			"other", "ann", soon),
		"with another key":          client.SignUnit(sign+"x", "shop", "ann", soon),
		"with an admin key":         client.SignUnit(admin, "shop", "ann", soon),
		"with a revoked key's hash": client.SignUnit("", "shop", "ann", soon),
		"expired":                   client.SignUnit(sign, "shop", "ann", c.Now()),
		"no unit":                   client.SignUnit(sign, "shop", "", soon),
		"no UTF-8":                  client.SignUnit(sign, "shop", "\xff", soon),
		"another unit":              "Ym9i" + good[4:],
		"another time":              strings.Replace(good, ".1", ".2", 1),
		"another signature":         good[:dot+1] + strings.Repeat("A", len(good)-dot-1),
		"cut":                       good[:len(good)-1], "longer": good + "A",
		"the experiment's name in it": client.SignUnit(sign, "shop\nYW5u", "ann", soon),
	} {
		if unit, err := e.SignedUnit("shop", token); unit != "" || !errors.Is(err, ErrSignature) ||
			err.Error() != ErrSignature.Error() {
			t.Errorf("%s: %q, %v", name, unit, err)
		}
	}
	c.Add(time.Minute)
	if _, err := e.SignedUnit("shop", good); !errors.Is(err, ErrSignature) {
		t.Errorf("its time has passed: %v", err)
	}
	late := client.SignUnit(sign, "shop", "ann", c.Now().Add(time.Hour))
	if err := e.RevokeKey(t.Context(), k.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := e.SignedUnit("shop", late); !errors.Is(err, ErrSignature) {
		t.Errorf("its key was revoked: %v", err)
	}
}

// A cookie names its unit, also after a restart, until its time has passed, and in no other service.
func TestCookies(t *testing.T) {
	c, mem := newClock(), store.NewMemory()
	e := open(t, Config{Store: mem.Open, Clock: c.Now})
	unit, cookie, err := e.NewCookie()
	if err != nil {
		t.Fatal(err)
	}
	if other, _, err := e.NewCookie(); err != nil || other == unit || len(unit) != len(cookieUnit)+22 {
		t.Errorf("%q and %q, %v", unit, other, err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e = open(t, Config{Store: mem.Open, Clock: c.Now})
	if got, ok := e.CookieUnit(cookie); got != unit || !ok {
		t.Errorf("%q, was %q", got, unit)
	}
	forged := []byte(cookie)
	forged[3] ^= 1
	for _, bad := range []string{"", ".", "x", string(forged), cookie[:len(cookie)-1], cookie + "A",
		cookie[:strings.IndexByte(cookie, '.')]} {
		if got, ok := e.CookieUnit(bad); ok {
			t.Errorf("%q names %q", bad, got)
		}
	}
	other := open(t, Config{Store: store.NewMemory().Open, Clock: c.Now})
	if got, ok := other.CookieUnit(cookie); ok {
		t.Errorf("another service knows it as %q", got)
	}
	c.Add(CookieLife - time.Second)
	if _, ok := e.CookieUnit(cookie); !ok {
		t.Error("its time has not passed")
	}
	c.Add(time.Second)
	if _, ok := e.CookieUnit(cookie); ok {
		t.Error("its time has passed")
	}
}

// What scopes go together, and how they are written.
func TestScopes(t *testing.T) {
	for _, x := range []struct {
		scopes Scope
		names  string
		good   bool
	}{
		{ScopeAdmin, "admin", true}, {ScopeDecide | ScopeReward, "decide reward", true},
		{ScopeAdmin | ScopeSign, "admin sign", true}, {ScopeSign, "sign", true},
		{ScopeBrowser | ScopeDecide, "decide browser", true},
		{ScopeBrowser | ScopeReward, "reward browser", true}, {ScopeBrowser, "browser", false},
		{ScopeBrowser | ScopeRead | ScopeDecide, "decide read browser", false},
		{ScopeBrowser | ScopeAdmin, "admin browser", false},
		{ScopeBrowser | ScopeSign | ScopeDecide, "decide browser sign", false}, {0, "", false},
	} {
		if got := strings.Join(x.scopes.Names(), " "); got != x.names {
			t.Errorf("%b is %q, want %q", x.scopes, got, x.names)
		}
		if err := x.scopes.check(""); (err == nil) != x.good || err != nil && !errors.Is(err, ErrKey) {
			t.Errorf("%s: %v", x.names, err)
		}
	}
}

// Whatever is sent as a token or a cookie, it is a unit that was signed, or none.
func FuzzSigned(f *testing.F) {
	c := newClock()
	e := open(f, Config{Store: store.NewMemory().Open, Clock: c.Now})
	key, _, err := e.NewKey(f.Context(), "signs", ScopeSign)
	if err != nil {
		f.Fatal(err)
	}
	good := client.SignUnit(key, "shop", "ann", c.Now().Add(time.Minute))
	unit, cookie, err := e.NewCookie()
	if err != nil {
		f.Fatal(err)
	}
	for _, text := range []string{good, cookie, "", ".", "..", "YW5u.1.x", "YW5u.-1.x", "YW5u.99999999999999999999.x"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if got, err := e.SignedUnit("shop", text); err == nil && (text != good || got != "ann") ||
			err != nil && !errors.Is(err, ErrSignature) {
			t.Errorf("%q is %q, %v", text, got, err)
		}
		if got, ok := e.CookieUnit(text); ok && (text != cookie || got != unit) {
			t.Errorf("%q is %q", text, got)
		}
	})
}
