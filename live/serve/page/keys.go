package page

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/sotto-dp/sotto/live/serve"
)

// Keys is the list of keys, and a form for a new one.
type Keys struct {
	Frame
	Keys []Key
	// Secret is the key that was made just now, which is shown once; Made is its name.
	Made, Secret string
	Scopes       []Policy // that there are, each with a sentence
	Experiments  []string
	Name         string // in the form, as it came
	Experiment   string
	Chosen       []string
	Wrong        *Wrong
}

// scopeSays is what keys may do, in words.
var scopeSays = map[string]string{
	"decide":  "ask which arm a visitor gets. For your server.",
	"reward":  "report rewards and events. For your server.",
	"read":    "see all experiments, their transcripts and ledgers. For people and reports.",
	"admin":   "do all of this: make, change and stop experiments, and make keys. For few people.",
	"browser": "be in a page that everybody can read, beside decide and reward, for visitors who are signed or have a cookie.",
	"sign":    "sign the names of visitors, so that a browser cannot make them up. For your server.",
	"test":    "try an arm out, in decisions that do not count. For developers.",
	"metrics": "read how the service does (/metrics). These numbers tell when somebody reported: for those who run it.",
}

// A Key is what is known of a key.
type Key struct {
	serve.Key
	Scopes  []string
	Revoked bool
}

// Keys shows all keys, with those that were revoked.
func (p *Pages) Keys(w http.ResponseWriter, r *http.Request) error {
	return p.keys(w, r, http.StatusOK, Keys{})
}

func (p *Pages) keys(w http.ResponseWriter, r *http.Request, status int, out Keys) error {
	out.Frame = p.frame(r, "Keys")
	for _, s := range serve.AllScopes() {
		out.Scopes = append(out.Scopes, Policy{s, scopeSays[s]})
	}
	for _, k := range p.cfg.Engine.Keys() {
		out.Keys = append(out.Keys, Key{k, k.Scopes.Names(), k.Scopes == 0})
	}
	var err error
	if out.Experiments, err = p.cfg.Names(r.Context()); err != nil {
		return err
	}
	p.write(w, status, "keys.html", out)
	return nil
}

// NewKey makes a key and shows it once. Each scope is a field of its own: scope-decide, scope-read,
// ….
func (p *Pages) NewKey(w http.ResponseWriter, r *http.Request) error {
	fields := []string{"name", "experiment"}
	for _, s := range serve.AllScopes() {
		fields = append(fields, "scope-"+s)
	}
	f, err := readForm(w, r, maxForm, fields...)
	if err != nil {
		return err
	}
	out := Keys{Name: f.Get("name"), Experiment: f.Get("experiment")}
	var scopes serve.Scope
	for _, name := range serve.AllScopes() {
		if !f.Has("scope-" + name) {
			continue
		}
		s, err := serve.ParseScope(name)
		if err != nil {
			return err
		}
		out.Chosen, scopes = append(out.Chosen, name), scopes|s
	}
	secret := ""
	switch {
	case out.Name == "":
		err = wrong("name", "name is missing: say whose the key is, such as the shop's server")
	case slices.ContainsFunc(p.cfg.Engine.Keys(), func(k serve.Key) bool {
		return k.Scopes != 0 && k.Name == out.Name
	}): // a form that a browser sends again when its page is loaded anew makes no second key
		err = wrong("name", "there is a key of this name: take one that tells them apart")
	case scopes == 0:
		err = wrong("scopes", "What it may do: nothing is ticked, tick at least one")
	default:
		secret, _, err = p.cfg.Engine.NewKeyFor(r.Context(), out.Experiment, out.Name, scopes)
	}
	if err != nil {
		if out.Wrong = p.wrongOf(err); out.Wrong != nil {
			return p.keys(w, r, p.statusOf(err), out)
		}
		return err
	}
	return p.keys(w, r, http.StatusCreated, Keys{Made: out.Name, Secret: secret})
}

// key is that of an address.
func (p *Pages) key(r *http.Request) (serve.Key, error) {
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	all := p.cfg.Engine.Keys()
	at := slices.IndexFunc(all, func(k serve.Key) bool { return k.ID == id })
	if err != nil || at < 0 {
		return serve.Key{}, &FieldError{http.StatusNotFound, "", "there is no such key"}
	}
	return all[at], nil
}

// AskRevoke says what it costs to revoke a key.
func (p *Pages) AskRevoke(w http.ResponseWriter, r *http.Request) error {
	k, err := p.key(r)
	if err != nil {
		return err
	}
	return p.askRevoke(w, r, k, http.StatusOK, false, nil)
}

func (p *Pages) askRevoke(w http.ResponseWriter, r *http.Request, k serve.Key, status int, last bool,
	bad *Wrong) error {
	c := Confirm{Last: last, Frame: p.frame(r, fmt.Sprintf("Revoke %s (%d)", k.Name, k.ID)), Name: k.Name, What: "key", Do: "Revoke the key",
		Action: "/keys/" + strconv.FormatInt(k.ID, 10) + "/revoke", Wrong: bad,
		Costs: []string{"Whoever uses it is refused from then on, and who has logged in with it is logged out.",
			"It cannot be taken back: a new key is another one."}}
	if mine, _ := serve.By(r.Context()); mine.ID == k.ID {
		c.Costs = append(c.Costs, "You have logged in with it.")
	}
	p.write(w, status, "confirm.html", c)
	return nil
}

// Revoke revokes a key whose name was typed.
func (p *Pages) Revoke(w http.ResponseWriter, r *http.Request) error {
	k, err := p.key(r)
	if err != nil {
		return err
	}
	f, err := readForm(w, r, maxForm, "confirm", "last")
	if err != nil {
		return err
	}
	last, revoke := f.Get("last") == "true", p.cfg.Engine.RevokeKey
	if last {
		revoke = p.cfg.Engine.RevokeLastKey
	} else if f.Has("last") {
		return wrong("last", "last must be true or not there")
	}
	if strings.TrimSpace(f.Get("confirm")) != strings.TrimSpace(k.Name) {
		return p.askRevoke(w, r, k, http.StatusBadRequest, last, &Wrong{Field: "confirm",
			Detail: "this is not the name of the key: type " + k.Name})
	}
	if err := revoke(r.Context(), k.ID); errors.Is(err, serve.ErrLastKey) {
		return p.askRevoke(w, r, k, http.StatusConflict, true, &Wrong{Field: "confirm", Detail: "it is the last " +
			"key of the scope admin: nobody can operate the service without one. Make another one first, or " +
			"type the name again to revoke this one all the same"})
	} else if err != nil {
		return err
	}
	seeOther(w, "/keys")
	return nil
}
