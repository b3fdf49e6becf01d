package page

import (
	"errors"
	"net/http"
	"time"

	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/live/serve/oidc"
)

// issuerPath is where a login by an issuer begins.
const issuerPath = "/login/issuer"

// Two names of the cookie of a login that is on its way.
const (
	flowName       = "sotto_login"
	secureFlowName = "__Host-sotto_login"
)

func flowOf(r *http.Request) string {
	if secure(r) {
		return secureFlowName
	}
	return flowName
}

// setFlow has the cookie come back from the issuer's pages, which one that is Strict does not.
func setFlow(w http.ResponseWriter, r *http.Request, value string, seconds int) {
	http.SetCookie(w, &http.Cookie{Name: flowOf(r), Value: value, Path: "/", HttpOnly: true, Secure: secure(r),
		SameSite: http.SameSiteLaxMode, MaxAge: seconds})
}

var errNoIssuer = &FieldError{http.StatusNotFound, "", "nobody logs in by an issuer here: log in with a key"}

// BeginLogin sends a browser to the issuer.
func (p *Pages) BeginLogin(w http.ResponseWriter, r *http.Request) error {
	if p.cfg.Issuer == nil {
		return errNoIssuer
	}
	f, err := p.cfg.Engine.BeginFlow(p.cfg.Issuer.Terms(), to(r.URL.Query().Get("to")))
	if err != nil {
		return err
	}
	at, err := p.cfg.Issuer.Address(r.Context(), f.State, f.Nonce, f.Verifier)
	if err != nil {
		return p.unknown(w, r, err, f.To)
	}
	setFlow(w, r, f.Cookie, int((10 * time.Minute).Seconds()))
	seeOther(w, at)
	return nil
}

// An Arrived is who has come back from the issuer.
type Arrived struct {
	Frame
	To string // the page to go to
}

// scopesOf is what a role may do.
var scopesOf = map[oidc.Role]serve.Scope{oidc.Look: serve.ScopeRead, oidc.Operate: serve.ScopeRead | serve.ScopeOperate,
	oidc.Admin: serve.ScopeAdmin}

// errFlow: there is no cookie, an old one, or what came back is not what was sent with it.
var errFlow = errors.New("the login took longer than ten minutes, or began in another browser: begin again")

// EndLogin takes what the issuer has sent a browser back with, and gives it a cookie in the place of a key. It
// answers with a page that goes on by itself: a cookie that no other site can have sent (SameSite=Strict) is
// not sent to where the issuer's answer leads, but from a page of ours it is.
func (p *Pages) EndLogin(w http.ResponseWriter, r *http.Request) error {
	if p.cfg.Issuer == nil {
		return errNoIssuer
	}
	setFlow(w, r, "", -1) // once
	terms, query, cookie := p.cfg.Issuer.Terms(), r.URL.Query(), ""
	if c, err := r.Cookie(flowOf(r)); err == nil {
		cookie = c.Value
	}
	f, ok := p.cfg.Engine.EndFlow(terms, cookie, query.Get("state"))
	if !ok {
		return p.unknown(w, r, errFlow, "/")
	}
	if query.Has("error") {
		return p.unknown(w, r, oidc.ErrRefused, f.To)
	}
	who, err := p.cfg.Issuer.Identify(r.Context(), query.Get("code"), f.Nonce, f.Verifier)
	if err != nil {
		return p.unknown(w, r, err, f.To)
	}
	k := serve.Key{Name: who.Name, Issuer: p.cfg.Issuer.Config.Issuer, Scopes: scopesOf[who.Role]}
	session, err := p.cfg.Engine.PersonSession(terms, k)
	if err != nil {
		return err
	}
	setCookie(w, r, session, serve.PersonLife)
	p.write(w, http.StatusOK, "arrived.html", Arrived{p.frame(r.WithContext(serve.As(r.Context(), k)), "Logged in"), f.To})
	return nil
}

// unknown says why somebody is not logged in, and asks for a key. The log has the reason too, and nobody's name.
func (p *Pages) unknown(w http.ResponseWriter, r *http.Request, err error, back string) error {
	status, text := http.StatusForbidden, p.cfg.Issuer.Host()+" did not say who you are: begin again, or log in with a key"
	switch {
	case errors.Is(err, errFlow):
		status, text = http.StatusBadRequest, err.Error()
	case errors.Is(err, oidc.ErrDown):
		status, text = http.StatusServiceUnavailable, p.cfg.Issuer.Host()+" does not answer: try again later, or log in with a key"
		w.Header().Set("Retry-After", "10")
	case errors.Is(err, oidc.ErrRole):
		text = "you have no role here: ask whoever runs the service for one, or log in with a key"
	}
	if !errors.Is(err, errFlow) { // anybody can come back from nowhere, any number of times
		p.cfg.Log.Warn("nobody was logged in", "error", err)
	}
	page := p.frame(r, "Log in")
	page.Path = "/login" // this one cannot be come back to
	p.login(w, r, status, Login{Frame: page, To: to(back), Wrong: text})
	return nil
}
