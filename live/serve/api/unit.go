package api

import (
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/sotto-dp/sotto/live/serve"
)

// cookieName has a browser send the cookie by TLS alone, and to this host alone.
const cookieName = "__Host-sotto"

// A visitor is whose decision a request asks for.
type visitor struct {
	unit string
	// cookie is what a browser that has none is to be given if a decision is made, else empty, and
	// from is where it counts as a new unit
	cookie string
	from   netip.Prefix
}

// unit is that which a server's key names, or else one that was signed, or that the service's
// cookie names, or a new one. Who asks calls leave when the request is over.
func (f *front) unit(r *http.Request, experiment, name, token string) (v visitor, err error) {
	k, _ := serve.By(r.Context())
	browser := k.Scopes&serve.ScopeBrowser != 0
	switch {
	case token != "":
		v.unit, err = f.Engine.SignedUnit(experiment, token)
		return v, err
	case name != "" && browser:
		return v, refused(http.StatusForbidden, "unit", "a key of the scope browser names no units: send "+
			"unit_token, which the product's server signs")
	case !browser:
		return visitor{unit: name}, nil
	}
	if c, err := r.Cookie(cookieName); err == nil {
		if unit, ok := f.Engine.CookieUnit(c.Value); ok {
			return visitor{unit: unit}, nil
		}
	}
	// A browser does not keep the cookie without TLS, and would be a new unit each time. Who says
	// that there was a proxy with TLS harms themselves alone.
	if r.TLS == nil && !loopback(r.RemoteAddr) && r.Header.Get("X-Forwarded-Proto") != "https" {
		return v, refused(http.StatusForbidden, "unit_token", "unit_token is missing, and cookies are "+
			"given by TLS alone")
	}
	// Nor does it keep one that a page of another site brings. It says so itself, and a page cannot.
	if r.Header.Get("Sec-Fetch-Site") == "cross-site" {
		return v, refused(http.StatusForbidden, "unit_token", "unit_token is missing, and browsers keep "+
			"cookies for pages of the service's own site alone")
	}
	v.from = f.from(r)
	if !f.fresh.take(v.from) {
		return v, f.tooMany(r)
	}
	if v.unit, v.cookie, err = f.Engine.NewCookie(); err != nil {
		f.fresh.giveBack(v.from)
	}
	return v, err
}

// loopback says whether a request came from this machine: its browser, or a proxy that has TLS.
func loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	ip := net.ParseIP(strings.Split(host, "%")[0])
	return err == nil && ip != nil && ip.IsLoopback()
}

// bake gives a browser its cookie, if there is one, since a decision was made.
func (f *front) bake(w http.ResponseWriter, v *visitor) {
	if v.cookie == "" {
		return
	}
	http.SetCookie(w, &http.Cookie{Name: cookieName, Value: v.cookie, Path: "/", HttpOnly: true, Secure: true,
		SameSite: http.SameSiteLaxMode, MaxAge: int(serve.CookieLife.Seconds())})
	v.cookie = ""
	if f.Metrics != nil {
		f.Metrics.newUnits.WithLabelValues("given").Inc()
	}
}

// leave uncounts a new unit that was given no cookie: it is none. So whoever is not in an
// experiment, or comes after its end, can ask as often as they like.
func (f *front) leave(v *visitor) {
	if v.cookie != "" {
		f.fresh.giveBack(v.from)
	}
}
