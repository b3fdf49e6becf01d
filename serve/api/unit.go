package api

import (
	"net"
	"net/http"
	"strings"

	"github.com/sotto-dp/sotto/serve"
)

// cookieName has a browser send the cookie by TLS alone, and to this host alone.
const cookieName = "__Host-sotto"

// unit is whose decision a request asks for: one that a server's key names, or else one that was
// signed, or that the service's cookie names. Cookie is what a browser without either is to be
// given if a decision is made, else empty.
func (f *front) unit(r *http.Request, experiment, name, token string) (unit, cookie string, err error) {
	k, _ := serve.By(r.Context())
	browser := k.Scopes&serve.ScopeBrowser != 0
	switch {
	case token != "":
		unit, err = f.Engine.SignedUnit(experiment, token)
		return unit, "", err
	case name != "" && browser:
		return "", "", refused(http.StatusForbidden, "unit", "a key of the scope browser names no units: send "+
			"unit_token, which the product's server signs")
	case !browser:
		return name, "", nil
	}
	if c, err := r.Cookie(cookieName); err == nil {
		if unit, ok := f.Engine.CookieUnit(c.Value); ok {
			return unit, "", nil
		}
	}
	// A browser does not keep the cookie without TLS, and would be a new unit each time. Who says
	// that there was a proxy with TLS harms himself alone.
	if r.TLS == nil && !loopback(r.RemoteAddr) && r.Header.Get("X-Forwarded-Proto") != "https" {
		return "", "", refused(http.StatusForbidden, "unit_token", "unit_token is missing, and cookies are "+
			"given by TLS alone")
	}
	// Nor does it keep one that a page of another site brings. It says so itself, and a page cannot.
	if r.Header.Get("Sec-Fetch-Site") == "cross-site" {
		return "", "", refused(http.StatusForbidden, "unit_token", "unit_token is missing, and browsers keep "+
			"cookies for pages of the service's own site alone")
	}
	return f.Engine.NewCookie()
}

// loopback says whether a request came from this machine: its browser, or a proxy that has TLS.
func loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	ip := net.ParseIP(strings.Split(host, "%")[0])
	return err == nil && ip != nil && ip.IsLoopback()
}

// bake gives a browser its cookie, if there is one.
func bake(w http.ResponseWriter, cookie string) {
	if cookie != "" {
		http.SetCookie(w, &http.Cookie{Name: cookieName, Value: cookie, Path: "/", HttpOnly: true, Secure: true,
			SameSite: http.SameSiteLaxMode, MaxAge: int(serve.CookieLife.Seconds())})
	}
}
