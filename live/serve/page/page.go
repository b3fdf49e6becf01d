// Package page is what a browser is shown of live experiments: pages that work without script, the
// data of their charts, and the events that keep open pages up to date. Package live/serve/api
// mounts its handlers, and its table says who may see which; a browser is known by the cookie of a
// login, which opens these pages and their forms and nothing else. Begin with New.
//
// # What a page may tell
//
// A page is made of what everybody may know of an experiment: serve.Info, its releases, and the
// hours in which decisions were made. It has nothing that was not released, so that it depends on a
// person's reward by the releases alone. Events leave at fixed times, once a Tick, the same bytes
// to all open pages, and only if something that everybody may know has changed.
//
// # The contract of templates
//
// Each *.html file but layout.html is a page, and is given its struct: home.html a Home,
// experiment.html a Shown, login.html a Login, arrived.html an Arrived, problem.html a Problem, new.html a NewForm,
// confirm.html a Confirm, keys.html a Keys, ledger.html a Ledger, account.html an Account, help.html a Help. Templates whose names begin
// with "live-" are fragments: they are given a *View alone, stand in an element whose id is their
// name, and are sent again when what they show has changed; so they must not say who looks. The
// charts' data are a Data: see there how an event changes it.
package page

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"html/template"
	"io/fs"
	"log/slog"
	"math"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/look"
	"github.com/sotto-dp/sotto/internal/words"
	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/live/serve/oidc"
)

//go:embed *.html
var files embed.FS

// A Config is what Pages are made of.
type Config struct {
	Engine  *serve.Engine
	Catalog catalog.Catalog // of declarations' policies; the zero value Sotto's
	Log     *slog.Logger    // gets what went wrong here; nil for none
	// Problem says what a caller is told of an error: a status, the field that is wrong, if it is
	// one, and a sentence.
	Problem func(error) (status int, field, detail string)
	// May says whether who has asked for an experiment's page may read it now.
	May func(*http.Request) bool
	// Mine says why the engine is not the one for a new experiment; nil if it is for all.
	Mine func(http.ResponseWriter, *decl.Experiment) error
	// Names are those of all experiments, whichever engine has them; nil for those of the engine.
	Names func(context.Context) ([]string, error)
	// Demo refuses new experiments.
	Demo bool
	// Issuer names people, who log in by it and not by a key; nil for none.
	Issuer *oidc.Issuer
	// Clock tells the time of ticks; nil is time.Now.
	Clock func() time.Time
}

// Pages serve an engine's experiments to browsers. They may be used by many goroutines.
type Pages struct {
	cfg       Config
	templates map[string]*template.Template
	assets    *look.Assets
	foreign   *http.CrossOriginProtection
	reports   reports
	policies  func() (learn, decide []Policy) // of the form
	forecasts chan struct{}                   // one at a time

	mu      sync.Mutex
	streams map[string]*stream // by experiment
	open    atomic.Int64
	ended   chan struct{}
	end     sync.Once
}

// New makes pages. Close ends their events. It panics if the program's own templates are wrong.
func New(cfg Config) *Pages {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	known := func() ([]Policy, []Policy) { return policiesOf(cfg.Catalog) }
	if cfg.Mine == nil {
		cfg.Mine = func(http.ResponseWriter, *decl.Experiment) error { return nil }
	}
	if cfg.Names == nil {
		cfg.Names = func(context.Context) ([]string, error) { return cfg.Engine.Names(), nil }
	}
	return &Pages{cfg: cfg, templates: newTemplates(), assets: newAssets(), streams: map[string]*stream{},
		policies: sync.OnceValues(known), forecasts: make(chan struct{}, 1), foreign: http.NewCrossOriginProtection(), ended: make(chan struct{})}
}

// newTemplates has the pages by the names of their files. They are read once, as it takes longer than
// all that an engine does when it starts.
var newTemplates = sync.OnceValue(func() map[string]*template.Template {
	base := template.Must(template.New("").Funcs(functions()).ParseFS(files, "layout.html", "live.html"))
	names, _ := fs.Glob(files, "*.html") // the pattern is right
	all := map[string]*template.Template{}
	for _, name := range names {
		all[name] = template.Must(template.Must(base.Clone()).ParseFS(files, name))
	}
	return all
})

// Close ends all events.
func (p *Pages) Close() { p.end.Do(func() { close(p.ended) }) }

// greek writes a budget as people do.
func greek(budget string) string {
	return strings.NewReplacer("epsilon=", "ε = ", "rho=", "ρ = ", "delta=", "δ = ").Replace(budget)
}

// functions are what templates may call.
func functions() template.FuncMap {
	return template.FuncMap{
		"asset":   newAssets().Path,
		"whole":   words.Whole,
		"number":  func(x float64) string { return words.Number(x) },
		"percent": func(x float64) string { return words.Number(math.Round(1000*x)/10) + "\u202f%" },
		"axis":    axisOf,
		"effects": axisOfEffects,
		"measure": axisOfMeasure,
		"lasts":   lasts,
		"between": func(x *[2]float64) string { return within(x, decimalsOf(x)) },
		"greek":   greek,
		"signed":  signed,
		"spread":  spread,
		"count":   func(n int64) string { return words.Whole(int(n)) },
		"hour":    func(at int64) string { return time.Unix(at, 0).UTC().Format("2006-01-02 15:04") },
		"field":   NewForm.field,
		"decimal": func(n NewForm, name, hint string) Field {
			f := n.field(name, hint)
			f.Mode = "decimal"
			return f
		},
		"lines": func(n NewForm, name, hint string, lines int) Field {
			f := n.field(name, hint)
			f.Lines = lines
			return f
		},
		"label": labelOf,
		"chosen": func(p Policy, n NewForm) any {
			return struct {
				Policy
				On bool
			}{p, p.Name == n.Fields["policy"]}
		},
		"hue": func(i int) int { return i%8 + 1 }, // the colour of the arm i
		"utc": func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") },
	}
}

// lasts writes how long something takes: 24h, not 24h0m0s.
func lasts(d time.Duration) string {
	text := d.String()
	for _, end := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, end) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// A Who is who looks at a page.
type Who struct {
	Name  string // of the key; empty if there is none
	Reads bool   // all experiments
	// Operates: starts and stops them; Admin makes them too, and keys.
	Operates, Admin bool
}

func who(k serve.Key) Who {
	return Who{Name: k.Name, Reads: k.Scopes&serve.ScopeRead != 0, Operates: k.Scopes&serve.ScopeOperate != 0,
		Admin: k.Scopes&serve.ScopeAdmin == serve.ScopeAdmin}
}

// A Frame is what every page has.
type Frame struct {
	Title string
	Who   Who
	Path  string // of this page, to come back to after a login
	// Origin is where this service is, as the browser has it.
	Origin string
	// Demo: made-up visitors, kept in memory.
	Demo bool
	// Issuer is where somebody logs in without a key, and the name of who is asked there; nil for nowhere.
	Issuer *Issuer
}

// An Issuer is a link to who knows people.
type Issuer struct{ Name, Address string }

func (p *Pages) frame(r *http.Request, title string) Frame {
	k, _ := serve.By(r.Context())
	origin := "http://" + r.Host
	if secure(r) {
		origin = "https://" + r.Host
	}
	f := Frame{Title: title, Who: who(k), Path: r.URL.Path, Origin: origin, Demo: p.cfg.Demo}
	if p.cfg.Issuer != nil { // at the address that the issuer sends back to: cookies are of one
		f.Issuer = &Issuer{p.cfg.Issuer.Host(), p.cfg.Issuer.URL + issuerPath}
	}
	return f
}

// The headers of all that is here: nothing is run, fetched, framed or sent anywhere but here.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " +
	"img-src 'self' data:; font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

func headers(h http.Header) {
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", policy)
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	// With no-referrer a form's Origin would be null, which foreign takes for another's: browsers
	// that send no Sec-Fetch-Site, as over plain HTTP, could not log in.
	h.Set("Referrer-Policy", "same-origin")
	h.Set("X-Content-Type-Options", "nosniff")
}

// A Handler answers a request of who its context says (serve.As); an error becomes a page.
type Handler func(w http.ResponseWriter, r *http.Request) error

// Answer has a handler answer. Of a browser it takes no writes that a page of another origin sends.
func (p *Pages) Answer(w http.ResponseWriter, r *http.Request, h Handler) {
	headers(w.Header())
	err := p.foreign.Check(r)
	if err != nil {
		p.fail(w, r, http.StatusForbidden, "this was sent by a page of another origin")
		return
	}
	if err = h(w, r); err == nil {
		return
	}
	if errors.Is(err, http.ErrAbortHandler) {
		panic(http.ErrAbortHandler) // net/http's way to break a connection off
	}
	status, field, detail := p.cfg.Problem(err)
	if status == http.StatusInternalServerError {
		p.cfg.Log.Error("a page failed", "error", err)
	}
	if field != "" && !strings.Contains(detail, field) {
		detail = field + ": " + detail
	}
	p.fail(w, r, status, detail)
}

// Refuse asks who may not see a page for a key that may, if it has none, and says so otherwise.
func (p *Pages) Refuse(w http.ResponseWriter, r *http.Request, known bool) {
	headers(w.Header())
	if known {
		detail := "the key may not do this: log in with another one"
		if k, _ := serve.By(r.Context()); k.Issuer != "" {
			detail = "your role may not do this: ask whoever runs the service for another one, or log in with a key"
		}
		p.fail(w, r, http.StatusForbidden, detail)
		return
	}
	p.login(w, r, http.StatusUnauthorized, Login{Frame: p.frame(r, "Log in"), To: back(r)})
}

// back is where somebody goes after a login: the page that was asked for, if it was one to look at.
func back(r *http.Request) string {
	if r.Method == http.MethodGet {
		return r.URL.Path
	}
	return "/"
}

// A Problem is a page that says what is wrong.
type Problem struct {
	Frame
	Status int
	Detail string
}

func (p *Pages) fail(w http.ResponseWriter, r *http.Request, status int, detail string) {
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	p.write(w, status, "problem.html", Problem{p.frame(r, http.StatusText(status)), status, detail})
}

// write writes a page, whole or not at all.
func (p *Pages) write(w http.ResponseWriter, status int, name string, data any) {
	var out bytes.Buffer
	if err := p.templates[name].ExecuteTemplate(&out, "layout", data); err != nil {
		p.cfg.Log.Error("a page failed", "page", name, "error", err)
		http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(out.Bytes()) // who has gone is told nothing
}

// A Shown is the page of an experiment.
type Shown struct {
	Frame
	View        *View
	Data        *Data // of the charts; what is in an event changes it
	Can         []Operation
	Declaration string // all of it, with what was changed since
	History     []Act  // with names, for who may read the journal
}

// Experiment shows an experiment.
func (p *Pages) Experiment(w http.ResponseWriter, r *http.Request) error {
	s, err := p.snapshot(r.Context(), r.PathValue("name"))
	if err != nil {
		return err
	}
	info, err := p.cfg.Engine.Get(r.Context(), s.view.Name)
	if err != nil {
		return err
	}
	declared, err := info.Experiment.JSON()
	if err != nil {
		return err
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, declared, "", "  "); err != nil {
		return err
	}
	f := p.frame(r, s.view.Name)
	shown := Shown{f, s.view, s.data, operationsOf(f.Who, s.view), pretty.String(), nil}
	if f.Who.Admin {
		shown.History = historyOf(s.acts, &s.info, true)
	}
	p.write(w, http.StatusOK, "experiment.html", shown)
	return nil
}

// to is where a form wants to go, if it is here.
func to(path string) string {
	u, err := url.Parse(path)
	if err != nil || u.Scheme != "" || u.Host != "" || u.Opaque != "" || !strings.HasPrefix(path, "/") ||
		strings.HasPrefix(path, "//") || strings.ContainsAny(path, "\\\r\n\t") {
		return "/"
	}
	// A path with a byte that is not encoded is encoded anew: /%2f, which is here, may become //.
	if path = u.EscapedPath(); strings.HasPrefix(path, "//") {
		return "/"
	}
	return cmp.Or(path, "/")
}
