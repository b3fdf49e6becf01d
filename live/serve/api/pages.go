package api

import (
	"net/http"
	"slices"
	"strings"

	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/live/serve/page"
)

// pageTable is what there is for people.
func (f *front) pageTable() map[string]http.HandlerFunc {
	const one = "/experiments/{name}"
	p := f.pages
	admin := func(h page.Handler) http.HandlerFunc { return f.page(serve.ScopeAdmin, h) }
	operator := func(h page.Handler) http.HandlerFunc { return f.page(serve.ScopeOperate, h) }
	return map[string]http.HandlerFunc{
		"GET /{$}":               f.page(0, f.home),
		"GET /account":           f.page(serve.ScopeRead, p.Account),
		"GET " + one:             f.shown(p.Experiment),
		"GET " + one + "/events": f.shown(p.Events),
		"GET /assets/{file...}":  f.page(0, p.Asset),
		"GET /help/{$}":          f.page(0, p.Documents),
		"GET /help/{file}":       f.page(0, p.Document),
		"GET /login":             f.page(0, p.AskLogin),
		"POST /login":            f.page(0, p.Login),
		"POST /logout":           f.page(0, p.Logout),
		"GET /login/issuer":      f.page(0, p.BeginLogin),
		"GET /login/callback":    f.page(0, p.EndLogin),

		"GET " + one + "/ledger":           f.shown(p.Ledger),
		"GET " + one + "/report":           f.shown(f.reportPage),
		"GET " + one + "/transcript.jsonl": f.shown(p.Transcript),
		"GET " + one + "/model.json":       f.shown(p.Model),
		"GET " + one + "/ledger.csv":       f.shown(p.LedgerFile),
		"GET " + one + "/hours.csv":        f.shown(p.Hours),
		"GET " + one + "/batches.csv":      f.shown(p.BatchFile),

		"GET /new":                 admin(p.AskNew),
		"POST /new":                admin(p.New),
		"POST /new/check":          admin(p.CheckNew),
		"POST /new/forecast":       admin(p.ForecastNew),
		"POST " + one + "/start":   operator(p.Start),
		"POST " + one + "/pause":   operator(p.Pause),
		"POST " + one + "/resume":  operator(p.Resume),
		"GET " + one + "/stop":     operator(p.Ask("stop")),
		"POST " + one + "/stop":    operator(p.Confirmed("stop")),
		"GET " + one + "/off":      operator(p.Ask("off")),
		"POST " + one + "/off":     operator(p.Confirmed("off")),
		"GET " + one + "/add":      admin(p.Ask("add")),
		"POST " + one + "/add":     admin(p.Confirmed("add")),
		"GET " + one + "/archive":  operator(p.Ask("archive")),
		"POST " + one + "/archive": operator(p.Confirmed("archive")),
		"GET /keys":                admin(p.Keys),
		"POST /keys":               admin(p.NewKey),
		"GET /keys/{id}/revoke":    admin(p.AskRevoke),
		"POST /keys/{id}/revoke":   admin(p.Revoke),
	}
}

// isAPI says whether a path is none of the pages for people, who are known by a cookie: what pages
// of other origins may read (CORS) is the rest alone, also where their site is the same.
func isAPI(path string) bool {
	return path != "/" && path != "/login" && path != "/logout" && path != "/new" && path != "/keys" &&
		path != "/account" && !slices.ContainsFunc([]string{"/experiments/", "/assets/", "/new/", "/keys/", "/login/", "/help/"},
		func(of string) bool { return strings.HasPrefix(path, of) })
}

// visitor is whose a request for a page is: of a key that is sent as to the rest of the service, or
// else of a login. A cookie is good for pages alone: browsers send it by themselves, so that it would
// have another's page ask for decisions and report rewards.
func (f *front) visitor(r *http.Request) serve.Key {
	if secret, inAddress := keyOf(r); secret != "" && !inAddress {
		return f.Engine.Who(secret)
	}
	return f.pages.Visitor(r)
}

// page asks for a key with a scope, which may be a login's; 0: for none.
func (f *front) page(scope serve.Scope, h page.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		k := f.visitor(r)
		r = r.WithContext(serve.As(r.Context(), k))
		if k.Scopes&scope != scope {
			f.pages.Refuse(w, r, k.Scopes != 0)
			return
		}
		f.pages.Answer(w, r, h)
	}
}

// shown asks for a key that reads, unless the experiment is public.
func (f *front) shown(h page.Handler) http.HandlerFunc {
	private, public := f.page(serve.ScopeRead, h), f.page(0, h)
	return func(w http.ResponseWriter, r *http.Request) {
		if f.isPublic(r) {
			public(w, r)
			return
		}
		private(w, r)
	}
}

func (f *front) isPublic(r *http.Request) bool {
	x, err := f.Engine.Get(r.Context(), r.PathValue("name"))
	return err == nil && x.Experiment.Public
}

// reads says whether who asked for a page of an experiment may see it now.
func (f *front) reads(r *http.Request) bool {
	return f.isPublic(r) || f.visitor(r).Scopes&serve.ScopeRead != 0
}

// lasts says whether a request is for events, which have no end.
func lasts(r *http.Request) bool {
	return streamsPlan(r) || strings.HasPrefix(r.URL.Path, "/experiments/") && strings.HasSuffix(r.URL.Path, "/events") ||
		r.URL.Path == streamPath
}
