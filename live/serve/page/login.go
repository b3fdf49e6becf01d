package page

import (
	"net/http"
	"strings"
	"time"

	"github.com/sotto-dp/sotto/live/serve"
)

// Two names of the cookie: under TLS one that browsers take from this host over TLS alone.
const (
	cookieName       = "sotto_session"
	secureCookieName = "__Host-sotto_session"
)

// maxForm bounds a form but for a declaration, in bytes.
const maxForm = 16 << 10

// A Login asks for a key.
type Login struct {
	Frame
	To    string // the page to go to
	Wrong string // what was wrong with the key, or empty
}

// Visitor is the key, or the person, that a request's cookie stands for, without scopes if it has none.
func (p *Pages) Visitor(r *http.Request) serve.Key {
	c, err := r.Cookie(cookieOf(r))
	if err != nil {
		return serve.Key{}
	}
	k := p.cfg.Engine.Visitor(c.Value)
	if k.Scopes == 0 && p.cfg.Issuer != nil {
		k = p.cfg.Engine.Person(p.cfg.Issuer.Terms(), c.Value)
	}
	return k
}

// secure says whether a browser speaks TLS, to this server or to a proxy before it.
func secure(r *http.Request) bool {
	return r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https"
}

func cookieOf(r *http.Request) string {
	if secure(r) {
		return secureCookieName
	}
	return cookieName
}

// AskLogin shows the form.
func (p *Pages) AskLogin(w http.ResponseWriter, r *http.Request) error {
	p.login(w, r, http.StatusOK, Login{Frame: p.frame(r, "Log in"), To: to(r.URL.Query().Get("to"))})
	return nil
}

func (p *Pages) login(w http.ResponseWriter, _ *http.Request, status int, l Login) {
	p.write(w, status, "login.html", l)
}

// Login takes a key, once, and gives the browser a cookie in its place. A key that is not known,
// was revoked or may not read has one answer.
func (p *Pages) Login(w http.ResponseWriter, r *http.Request) error {
	f, err := readForm(w, r, maxForm, "key", "to")
	if err != nil {
		return err
	}
	session, k := p.cfg.Engine.Session(strings.TrimSpace(f.Get("key")))
	if k.Scopes&serve.ScopeRead == 0 {
		p.login(w, r, http.StatusUnauthorized, Login{Frame: p.frame(r, "Log in"), To: to(f.Get("to")),
			Wrong: "this is no key that may read: it is not known, was revoked, or has not the scope read"})
		return nil
	}
	setCookie(w, r, session, serve.SessionLife)
	seeOther(w, to(f.Get("to")))
	return nil
}

// Logout takes the cookie back.
func (p *Pages) Logout(w http.ResponseWriter, r *http.Request) error {
	setCookie(w, r, "", -time.Second)
	seeOther(w, "/")
	return nil
}

// setCookie gives a browser a session, or takes it back.
func setCookie(w http.ResponseWriter, r *http.Request, session string, life time.Duration) {
	http.SetCookie(w, &http.Cookie{Name: cookieOf(r), Value: session, Path: "/", HttpOnly: true,
		Secure: secure(r), SameSite: http.SameSiteStrictMode, MaxAge: int(life.Seconds())})
}

// seeOther sends a browser to a page of ours.
func seeOther(w http.ResponseWriter, path string) {
	w.Header().Set("Location", path)
	w.WriteHeader(http.StatusSeeOther)
}
