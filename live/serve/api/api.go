// Package api is the HTTP front of package serve: decisions, rewards, operations, OFREP, the
// protocol of OpenFeature's clients, and the API of Azure AI Personalizer. openapi.yaml, served at
// /openapi.yaml, says all of it. Begin with Handler.
//
// Errors are problems (RFC 9457) that name the field. No reward is in one, nor in a log. The answer
// to a reward depends on the request's form and on its decision's public clock and epoch alone:
// accepted is said to the first and to the second alike. 503 alone is to be sent again.
//
// Every request but /livez, /readyz, /openapi.yaml and the reading of a public experiment needs a
// key with the scope for it, as X-API-Key or as Authorization: Bearer, or as clients of
// Personalizer send it.
package api

import (
	"cmp"
	"context"
	_ "embed" // openapi.yaml
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sotto-dp/sotto/catalog"
	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/live/serve/compat"
	"github.com/sotto-dp/sotto/live/serve/oidc"
	"github.com/sotto-dp/sotto/live/serve/page"
	"github.com/sotto-dp/sotto/live/serve/store"
)

// Limits of bodies in bytes, and of the rewards in one.
const (
	maxDecision    = 32 << 10
	maxReward      = 4 << 10
	maxBatch       = 1 << 20
	maxRewards     = 1000
	maxDeclaration = 1 << 20
	maxContext     = 64 << 10
	maxChange      = 256 << 10
	maxRank        = 1 << 20
)

// answerWithin is how long a request may wait for the disk.
const answerWithin = 10 * time.Second

//go:embed openapi.yaml
var openAPI []byte

// A Config is what a Handler is made of.
type Config struct {
	Engine *serve.Engine
	// Shares are in the place of Engine where a database is written in shares.
	Shares  *serve.Shares
	Catalog catalog.Catalog // of declarations' policies; the zero value Sotto's
	Log     *slog.Logger    // gets what went wrong here, never a body; nil for none
	// Demo refuses new experiments: for an engine that keeps nothing, and must not be used for
	// people.
	Demo bool
	// Origins are those whose pages may ask from a browser (CORS), as ParseOrigin has them.
	Origins []string
	// NewUnits is how many new units a second browsers of one address may become by a key of the scope
	// browser, a minute's worth of it at once; DefaultNewUnits if 0, and +Inf for no cap.
	NewUnits float64
	// ClientHeader is the header in which a proxy says which address a request is from, as
	// ParseClientHeader has it. If it is empty, the address is that of the connection, whatever
	// headers say.
	ClientHeader string
	// Issuer names people, who log in at the pages by it and not by a key; nil for none.
	Issuer *oidc.Issuer
	// Metrics are shown to keys with the scope metrics: those that are the engine's
	// Meter. Nil for none.
	Metrics *Metrics
	// Access says which requests leave a line in Log; AccessOff if it is empty.
	Access Access

	clock func() time.Time // of tests: that of pages' ticks
}

type front struct {
	Config
	routes  *http.ServeMux
	passer  *forwarder
	pages   *page.Pages
	terms   sync.Map // by experiment, of termsOf
	fresh   *newUnits
	shared  sync.Once // it was said that a proxy's visitors are one address
	streams streams
	// streams of plans
	following planFollowers
	// what lasts is ended when the service is
	ending  context.Context
	end     context.CancelFunc
	onLines sync.WaitGroup // answers other processes

	// of the shares of this process, itself among them
	beside []*front
	share  int
	placed placer // nil where one engine has all experiments
}

// Handler serves an engine, or all shares of a database.
func Handler(cfg Config) http.Handler {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Shares != nil {
		engines := cfg.Shares.Engines()
		if len(engines) > 1 {
			return newRouter(cfg, engines, cfg.Shares)
		}
		cfg.Engine = engines[0]
	}
	f := newFront(cfg, 0, nil)
	f.beside = []*front{f}
	return f
}

func newFront(cfg Config, share int, placed placer) *front {
	f := &front{Config: cfg, routes: http.NewServeMux(), share: share, placed: placed}
	f.pages = page.New(page.Config{Engine: cfg.Engine, Catalog: cfg.Catalog, Log: cfg.Log, Demo: cfg.Demo, Issuer: cfg.Issuer,
		Problem: func(err error) (int, string, string) {
			p := problemOf(err)
			return p.Status, p.Field, p.Detail
		}, May: f.reads, Mine: f.mine, Names: f.names, Clock: cfg.clock})
	f.ending, f.end = context.WithCancel(context.Background())
	f.fresh = newCap(cfg.NewUnits, cfg.clock)
	f.passer = newForwarder(cfg.Log, cfg.Engine.Database(), f.nowhere)
	f.passer.mark, f.passer.refuse = f.tellFrom, f.answerTo
	for _, table := range []map[string]http.HandlerFunc{f.table(), f.pageTable()} {
		for pattern, h := range table {
			bare := h
			h = f.logged(pattern, h)
			if cfg.Metrics != nil {
				h = cfg.Metrics.timed(pattern, h)
			}
			if placed != nil {
				h = once(h, bare)
			}
			f.routes.HandleFunc(pattern, limited(pattern, h))
		}
	}
	return f
}

// table is what there is for programs.
func (f *front) table() map[string]http.HandlerFunc {
	const one, personal = "/v1/experiments/{name}", personalizer + "v1.0"
	return map[string]http.HandlerFunc{
		"GET /livez":          f.live,
		"GET /readyz":         f.ready,
		"GET /openapi.yaml":   f.openAPI,
		"GET /sotto.js":       f.script(script),
		"GET /sotto-model.js": f.script(modelScript),
		"GET /sotto-lease.js": f.script(leaseScript),
		"GET /metrics":        f.metrics,

		"GET /hpke_config":           f.configs,
		"POST /tasks/{task}/reports": f.upload,

		"POST " + one + "/decisions":     f.with(serve.ScopeDecide, f.decide),
		"POST " + one + "/rewards":       f.with(serve.ScopeReward, f.reward),
		"POST " + one + "/activations":   f.with(serve.ScopeReward, f.activate),
		"POST " + one + "/rewards/batch": f.with(serve.ScopeReward, f.rewards),
		"POST " + one + "/reports":       f.with(serve.ScopeReward, f.reports),
		"POST " + one + "/session":       f.with(serve.ScopeReward, f.session),

		"GET " + one + "/plan":       f.with(serve.ScopeDecide, f.plan),
		"POST " + exposuresPath:      f.with(serve.ScopeDecide, f.expose),
		"POST /v1/track":             f.with(serve.ScopeReward, f.track),
		"POST " + compat.SegmentPath: f.with(serve.ScopeReward, f.segment),

		"GET " + compat.FlagdFlags:                      f.with(serve.ScopeDecide, f.flagd),
		"GET " + compat.GrowthBookFeatures + "{client}": f.with(serve.ScopeDecide, f.growthBook),
		"POST " + compat.GrowthBookTrack:                f.with(serve.ScopeDecide, f.growthBookTrack),
		"POST " + compat.GOFFPath:                       f.with(serve.ScopeDecide, f.goff),
		"POST " + compat.GOFFAllPath:                    f.with(serve.ScopeDecide, f.goffAll),
		"POST " + compat.CollectorPath:                  f.with(serve.ScopeReward, f.collector),

		"POST " + one + "/rank":                    f.with(serve.ScopeDecide, f.rank),
		"POST " + one + "/events/{event}/reward":   f.with(serve.ScopeReward, f.rewardEvent),
		"POST " + one + "/events/{event}/activate": f.with(serve.ScopeReward, f.activateEvent),

		"POST " + personal + "/rank":                    f.personal(serve.ScopeDecide, f.personalRank),
		"POST " + personal + "/events/{event}/reward":   f.personal(serve.ScopeReward, f.personalReward),
		"POST " + personal + "/events/{event}/activate": f.personal(serve.ScopeReward, f.personalActivate),
		"GET " + personal + "/configurations/service":   f.personal(serve.ScopeDecide, f.personalConfiguration),
		"PUT " + personal + "/configurations/service":   f.personal(serve.ScopeDecide, f.personalConfigure),

		"POST /v1/experiments":            f.with(serve.ScopeAdmin, f.create),
		"GET /v1/experiments":             f.with(serve.ScopeRead, f.list),
		"GET " + one + "/webhook":         f.with(serve.ScopeAdmin, f.webhook),
		"GET " + one:                      f.reader(f.get),
		"PATCH " + one:                    f.with(serve.ScopeAdmin, f.change),
		"GET " + one + "/transcript":      f.reader(f.transcript),
		"GET " + one + "/ledger":          f.reader(f.ledger),
		"GET " + one + "/model":           f.reader(f.model),
		"GET " + one + "/report":          f.reader(f.report),
		"POST " + one + "/start":          f.with(serve.ScopeAdmin, f.operate(f.Engine.Start)),
		"POST " + one + "/pause":          f.with(serve.ScopeAdmin, f.operate(f.Engine.Pause)),
		"POST " + one + "/resume":         f.with(serve.ScopeAdmin, f.operate(f.Engine.Resume)),
		"POST " + one + "/archive":        f.with(serve.ScopeAdmin, f.operate(f.Engine.Archive)),
		"POST " + one + "/stop":           f.with(serve.ScopeAdmin, f.stop),
		"POST /v1/keys":                   f.with(serve.ScopeAdmin, f.newKey),
		"GET /v1/keys":                    f.with(serve.ScopeAdmin, f.keys),
		"DELETE /v1/keys/{id}":            f.with(serve.ScopeAdmin, f.revoke),
		"GET " + one + "/units/{unit}":    f.with(serve.ScopeAdmin, f.kept),
		"DELETE " + one + "/units/{unit}": f.with(serve.ScopeAdmin, f.erase),
		"GET /v1/audit":                   f.with(serve.ScopeAdmin, f.audit),
		"GET /v1/account":                 f.with(serve.ScopeRead, f.account),

		"POST /ofrep/v1/evaluate/flags/{key}": f.with(serve.ScopeDecide, f.flag),
		"POST /ofrep/v1/evaluate/flags":       f.with(serve.ScopeDecide, f.flags),
		"GET " + streamPath:                   f.stream,
	}
}

// own is what every process answers by itself, whoever writes.
var own = map[string]bool{"/livez": true, "/openapi.yaml": true}

// Values of headers that most answers have. Nobody writes into them: who adds to one gets a copy.
var noStore, noSniff, jsonKind = []string{"no-store"}, []string{"nosniff"}, []string{"application/json"}

// ServeHTTP implements http.Handler.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if from := r.Header.Get(forwarded); from != "" && from != f.Engine.Database() &&
		!(r.URL.Path == "/livez" && knows(f.Engine.Database(), from)) {
		f.passer.warn("a request was refused: the process that passed it on is on another database, or of another " +
			"version")
		f.nowhere(w, r)
		return
	}
	if here, address, until := f.Engine.Where(); !here && !own[r.URL.Path] {
		if lasts(r) || waitsForPlan(r) {
			ctx, cancel := context.WithCancel(r.Context())
			defer cancel()
			defer context.AfterFunc(f.ending, cancel)()
			r = r.WithContext(ctx)
		}
		if lasts(r) {
			w = page.Streaming(w)
		}
		if !f.passer.pass(w, r, address, until) {
			f.nowhere(w, r)
		}
		return
	}
	f.answer(w, r)
}

// answer answers a request itself, whoever writes.
func (f *front) answer(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h["Cache-Control"], h["X-Content-Type-Options"] = noStore, noSniff
	if isAPI(r.URL.Path) && f.cross(w, r) {
		return
	}
	seen := &unmatched{to: w}
	if f.routes.ServeHTTP(seen, r); seen.header == nil {
		return
	}
	if _, pattern := f.routes.Handler(r); pattern != "" { // it is elsewhere
		f.routes.ServeHTTP(w, r)
		return
	}
	// the mux knows why nothing matches, and says it in its way
	if allow := seen.header.Get("Allow"); allow != "" {
		h.Set("Allow", allow)
		f.answerTo(w, r, refused(http.StatusMethodNotAllowed, "", "use one of "+allow))
		return
	}
	if forPeople(r) {
		f.pages.NotFound(w, r.WithContext(serve.As(r.Context(), f.visitor(r))))
		return
	}
	f.answerTo(w, r, refused(http.StatusNotFound, "", "there is nothing here; /openapi.yaml "+
		"says what there is"))
}

// forPeople says whether a browser asks for a page, and not a program for what is none of the API. What a page fetches
// is no page: one of another origin that may ask would read in it who has logged in.
func forPeople(r *http.Request) bool {
	return r.Header.Get("Origin") == "" && (r.Method == http.MethodGet || r.Method == http.MethodHead) && strings.Contains(r.Header.Get("Accept"), "text/html")
}

// unlimited are the routes that wait for no disk, and that there are many requests of: a timer for each
// would be a tenth of what they take.
var unlimited = map[string]bool{"POST /v1/experiments/{name}/decisions": true,
	"POST /ofrep/v1/evaluate/flags/{key}": true}

// limited answers a route in time. A transcript may be long, and what is read waits for nothing.
func limited(pattern string, h http.HandlerFunc) http.HandlerFunc {
	if strings.HasPrefix(pattern, http.MethodGet+" ") || unlimited[pattern] {
		return func(w http.ResponseWriter, r *http.Request) { h(matched(w), r) }
	}
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), answerWithin)
		defer cancel()
		h(matched(w), r.WithContext(ctx))
	}
}

// nowhere answers a request that nobody can be asked: nobody is known to write, or it cannot be
// reached.
func (f *front) nowhere(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	if !f.cross(w, r) {
		err := f.Engine.Ready()
		if err == nil {
			err = serve.ErrUnavailable
		}
		f.answerTo(w, r, err)
	}
}

// An unmatched response has what the mux answers where nothing matches, which nobody gets. Routes answer
// where it came from.
type unmatched struct {
	to     http.ResponseWriter
	header http.Header // nil until it is asked for
}

// matched is where a route answers.
func matched(w http.ResponseWriter) http.ResponseWriter {
	if u, is := w.(*unmatched); is {
		return u.to
	}
	return w
}

func (u *unmatched) Header() http.Header {
	if u.header == nil {
		u.header = http.Header{}
	}
	return u.header
}
func (u *unmatched) Write(b []byte) (int, error) { return len(b), nil }
func (u *unmatched) WriteHeader(int)             {}

// A problem is an error as RFC 9457 has it.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Field  string `json:"field,omitempty"`
}

func (p *problem) Error() string { return p.Detail }

func refused(status int, field, detail string) *problem {
	return &problem{"about:blank", http.StatusText(status), status, detail, field}
}

// problemOf is what a caller is told of an error. What is wrong inside is for the log.
func problemOf(err error) *problem {
	var own *problem
	var of *keyed.Error
	var field *page.FieldError
	inDAP := problemOfDAP(err)
	switch {
	case errors.As(err, &own):
		return own
	case inDAP != nil && !errors.As(err, &of): // that names the place in what was declared
		return inDAP
	case errors.As(err, &field):
		return refused(field.Status, field.Field, field.Detail)
	case errors.As(err, &of) && (errors.Is(err, serve.ErrState) || errors.Is(err, serve.ErrPersonCap)):
		return refused(http.StatusConflict, of.Field, err.Error())
	case errors.As(err, &of):
		return refused(http.StatusBadRequest, of.Field, of.Error())
	case errors.Is(err, serve.ErrNotFound):
		return refused(http.StatusNotFound, "", err.Error())
	case errors.Is(err, serve.ErrExists):
		return refused(http.StatusConflict, "name", err.Error())
	case errors.Is(err, serve.ErrReadOnly):
		return refused(http.StatusForbidden, "", "this service only reads: nothing is decided, "+
			"taken or changed")
	case errors.Is(err, store.ErrReplaced):
		return refused(http.StatusServiceUnavailable, "", store.ErrReplaced.Error())
	case errors.Is(err, serve.ErrUnavailable), errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, context.Canceled):
		return refused(http.StatusServiceUnavailable, "", "the service cannot write now: send it again")
	case errors.Is(err, serve.ErrState), errors.Is(err, serve.ErrHidden), errors.Is(err, serve.ErrOpen),
		errors.Is(err, serve.ErrCohort):
		return refused(http.StatusConflict, "", err.Error())
	case errors.Is(err, serve.ErrSignature):
		return refused(http.StatusForbidden, "unit_token", serve.ErrSignature.Error())
	case errors.Is(err, serve.ErrUnit):
		return refused(http.StatusBadRequest, "unit", err.Error())
	case errors.Is(err, serve.ErrPerson):
		return refused(http.StatusBadRequest, "person", err.Error())
	case errors.Is(err, serve.ErrEvent):
		return refused(http.StatusNotFound, "event", err.Error())
	case errors.Is(err, serve.ErrEventTaken):
		return refused(http.StatusConflict, "event", err.Error())
	case errors.Is(err, serve.ErrContextual):
		return refused(http.StatusBadRequest, "", serve.ErrContextual.Error())
	case errors.Is(err, serve.ErrStrict):
		return refused(http.StatusForbidden, "", serve.ErrStrict.Error())
	case errors.Is(err, serve.ErrForce):
		return refused(http.StatusBadRequest, "force", serve.ErrForce.Error())
	case errors.Is(err, serve.ErrToken):
		return refused(http.StatusBadRequest, "decision", serve.ErrToken.Error())
	case errors.Is(err, serve.ErrLastKey):
		return refused(http.StatusConflict, "last", serve.ErrLastKey.Error()+": make another one first, or "+
			"revoke it with ?last=true")
	case errors.Is(err, serve.ErrKey):
		return refused(http.StatusBadRequest, "name", err.Error())
	}
	return refused(http.StatusInternalServerError, "", "the service failed; its log says why")
}

// answerTo writes an error in the words of the API that was asked.
func (f *front) answerTo(w http.ResponseWriter, r *http.Request, err error) {
	p := f.problem(w, err)
	if strings.HasPrefix(r.URL.Path, personalizer) {
		out, status := personalErrorOf(r.URL.Path, p)
		write(w, status, "application/json", out)
	} else if out, status, ok := compat.Refused(r.URL.Path, p.Status, p.Field, p.Detail); ok {
		write(w, status, "application/json", out)
	} else {
		write(w, p.Status, "application/problem+json", p)
	}
}

// problem is what a caller is told of an error, with the headers that go with it.
func (f *front) problem(w http.ResponseWriter, err error) *problem {
	p := problemOf(err)
	switch p.Status {
	case http.StatusInternalServerError:
		f.Log.Error("a request failed", "error", err)
	case http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "1")
	case http.StatusTooManyRequests:
		w.Header().Set("Retry-After", strconv.Itoa(f.fresh.retryAfter()))
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", "Bearer")
	case http.StatusRequestEntityTooLarge:
		w.Header().Set("Connection", "close")
	}
	return p
}

func write(w http.ResponseWriter, status int, kind string, v any) {
	b, err := marshal(v)
	if err != nil {
		http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
		return
	}
	if kind == jsonKind[0] {
		w.Header()["Content-Type"] = jsonKind
	} else {
		w.Header().Set("Content-Type", kind)
	}
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n')) // who has gone is told nothing
}

func ok(w http.ResponseWriter, v any) { write(w, http.StatusOK, "application/json", v) }

// keyOf is the key of a request, or nothing. One that is in the address, where logs have it, is for
// browsers.
func keyOf(r *http.Request) (secret string, inAddress bool) {
	for _, name := range []string{"X-API-Key", "Ocp-Apim-Subscription-Key"} {
		if k := r.Header.Get(name); k != "" {
			return k, false
		}
	}
	if k, _, ok := r.BasicAuth(); ok && r.URL.Path == compat.SegmentPath {
		return k, false
	}
	scheme, k, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if k = strings.TrimSpace(k); strings.EqualFold(scheme, "Bearer") && k != "" {
		return k, false
	}
	switch {
	case r.PathValue("client") != "":
		return r.PathValue("client"), true
	case r.URL.Path == compat.GrowthBookTrack:
		return r.URL.Query().Get("client_key"), true
	}
	return r.URL.Query().Get("key"), true
}

// may is the key of a request, if it has a scope, or why it cannot be done.
func (f *front) may(r *http.Request, scope serve.Scope) (serve.Key, error) {
	secret, inAddress := keyOf(r)
	if secret == "" {
		return serve.Key{}, refused(http.StatusUnauthorized, "", "a key is missing: send it as "+
			"X-API-Key, or as "+
			"Authorization: Bearer")
	}
	switch k := f.Engine.Who(secret); {
	case k.Scopes == 0:
		return k, refused(http.StatusUnauthorized, "", "the key is not known, or was revoked")
	case k.Scopes&scope != scope:
		return k, refused(http.StatusForbidden, "", "the key's scopes do not have "+
			strings.Join(scope.Names(), ", "))
	case !concerns(r, k):
		return k, refused(http.StatusForbidden, "", "the key is good for another experiment alone")
	case k.Scopes&serve.ScopeBrowser != 0 && !f.own(r):
		return k, refused(http.StatusForbidden, "", errOrigin.Error())
	case k.Scopes&serve.ScopeBrowser == 0 && inAddress && !(k.Scopes == serve.ScopeDecide && compat.InAddress(r.URL.Path)):
		return k, refused(http.StatusUnauthorized, "", "a key in the address, where logs have it, must be "+
			"one of the scope browser: revoke this one")
	default:
		return k, nil
	}
}

// concerns says whether a key is good for the experiment in a request's path, where there is one.
func concerns(r *http.Request, k serve.Key) bool {
	of := cmp.Or(r.PathValue("name"), r.PathValue("key"))
	return of == "" || k.For(of)
}

// A handled request gives what is to be written as JSON, or an error.
type handled func(w http.ResponseWriter, r *http.Request) (any, error)

// with asks for a key with a scope.
func (f *front) with(scope serve.Scope, h handled) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if scope == serve.ScopeReward {
			hush(w)
		}
		k, err := f.may(r, scope)
		if err != nil {
			f.answerTo(w, r, err)
			return
		}
		f.finish(w, r.WithContext(serve.As(r.Context(), k)), h)
	}
}

// reader asks for a key that reads, unless the experiment is public.
func (f *front) reader(h handled) http.HandlerFunc {
	private := f.with(serve.ScopeRead, h)
	return func(w http.ResponseWriter, r *http.Request) {
		if secret, _ := keyOf(r); secret == "" {
			if x, err := f.Engine.Get(r.Context(), r.PathValue("name")); err == nil && x.Experiment.Public {
				f.finish(w, r, h)
				return
			}
		}
		private(w, r)
	}
}

func (f *front) finish(w http.ResponseWriter, r *http.Request, h handled) {
	switch out, err := h(w, r); {
	case err != nil:
		f.answerTo(w, r, err)
	case out != nil:
		ok(w, out)
	}
}

func (f *front) live(w http.ResponseWriter, r *http.Request) {
	if f.takeLine(w, r) {
		return
	}
	if from := r.Header.Get(forwarded); from != "" { // from who is on this database
		w.Header().Set(forwarded, answerTo(f.Engine.Database(), from))
	}
	ok(w, statusJSON{"ok"})
}

// ready says whether a process can answer: of several shares, one of them at least.
func (f *front) ready(w http.ResponseWriter, r *http.Request) {
	out := readyJSON{Status: "ok"}
	var why error
	for _, of := range f.beside {
		if err := of.known(); err != nil {
			why, out.Down = err, append(out.Down, of.share)
		}
	}
	switch none := len(out.Down) == len(f.beside); {
	case none && errors.Is(why, serve.ErrReadOnly):
		f.answerTo(w, r, refused(http.StatusServiceUnavailable, "", "this service only reads"))
		return
	case none:
		f.answerTo(w, r, why)
		return
	}
	if f.Engine.Drifted() {
		drift, where := f.Engine.Drift().Round(time.Minute), "ahead of"
		if drift < 0 {
			where = "behind"
		}
		out.Clock = fmt.Sprintf("the service's time is %v %s the clock", drift.Abs(), where)
	}
	ok(w, out)
}

// known says why a request for this share can be answered by nobody that is known.
func (f *front) known() error {
	if here, address, _ := f.Engine.Where(); !here && address != "" {
		return nil
	}
	return f.Engine.Ready()
}

func (f *front) openAPI(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/yaml")
	_, _ = w.Write(openAPI)
}

type statusJSON struct {
	Status string `json:"status"`
}

type readyJSON struct {
	Status string `json:"status"`
	Clock  string `json:"clock,omitempty"` // what is wrong with it
	Down   []int  `json:"down,omitempty"`  // shares that nobody is known to write
}

type decisionJSON struct {
	Decision   *string         `json:"decision"`
	Arm        string          `json:"arm"`
	Value      json.RawMessage `json:"value"`
	Propensity float64         `json:"propensity"`
	Expires    *time.Time      `json:"expires_at"`
	ActivateBy *time.Time      `json:"activate_by,omitempty"`
	Reason     serve.Reason    `json:"reason"`
	Report     *reportTaskJSON `json:"report,omitempty"`
}

func (f *front) decide(w http.ResponseWriter, r *http.Request) (any, error) {
	var in decisionRequest
	if err := read(w, r, maxDecision, &in); err != nil {
		return nil, err
	}
	ask, v := serve.Ask{Context: in.Context, Force: in.Force, Person: in.Person}, visitor{}
	switch k, _ := serve.By(r.Context()); {
	case in.Force != "" && !k.Scopes.MayForce():
		return nil, refused(http.StatusForbidden, "force", "the key's scopes do not have test, nor admin")
	case in.Person != "" && k.Scopes&serve.ScopeBrowser != 0: // who could would be any number of persons
		return nil, refused(http.StatusForbidden, "person", "a key of the scope browser names no persons: ask for the "+
			"decision from the product's server")
	}
	var err error
	if ask.NoConsent, err = refuses(in.Consent, in.Context); err != nil {
		return nil, err
	}
	if in.Force == "" && !ask.NoConsent { // neither says anything of a unit
		if v, err = f.unit(r, r.PathValue("name"), in.Unit, in.UnitToken); err != nil {
			return nil, err
		}
		defer f.leave(&v)
		ask.Unit = v.unit
	}
	d, err := f.Engine.DecideFor(r.Context(), r.PathValue("name"), ask)
	if err != nil {
		return nil, err
	}
	if d.Token != "" {
		f.bake(w, &v)
	}
	out := decisionJSON{Arm: d.Name, Value: d.Value, Propensity: d.Propensity, Reason: d.Reason,
		Report: reportTaskOf(d.Report)}
	if d.Token != "" {
		out.Decision = &d.Token
		if !d.Expires.IsZero() {
			at := d.Expires.UTC()
			out.Expires = &at
		}
		if !d.ActivateBy.IsZero() {
			by := d.ActivateBy.UTC()
			out.ActivateBy = &by
		}
	}
	return out, nil
}

func (f *front) activate(w http.ResponseWriter, r *http.Request) (any, error) {
	var in activationRequest
	if err := read(w, r, maxReward, &in); err != nil {
		return nil, err
	}
	s, err := f.Engine.Activate(r.Context(), r.PathValue("name"), in.Decision, in.Shown == nil || *in.Shown)
	if err != nil {
		return nil, err
	}
	return statusJSON{string(s)}, nil
}

func (f *front) reward(w http.ResponseWriter, r *http.Request) (any, error) {
	var in rewardRequest
	if err := read(w, r, maxReward, &in); err != nil {
		return nil, err
	}
	out, err := f.Engine.Outcomes(r.Context(), r.PathValue("name"), []serve.Outcome{in.report()})
	if err == nil {
		err = out[0].Err
	}
	if err != nil {
		return nil, err
	}
	return statusJSON{string(out[0].Status)}, nil
}

// A resultJSON is a status, or what is wrong.
type resultJSON struct {
	Status serve.Status `json:"status,omitempty"`
	Error  string       `json:"error,omitempty"`
}

type resultsJSON struct {
	Results []resultJSON `json:"results"`
}

func (f *front) rewards(w http.ResponseWriter, r *http.Request) (any, error) {
	var in batchRequest
	if err := read(w, r, maxBatch, &in); err != nil {
		return nil, err
	}
	reports := make([]serve.Outcome, len(in.Rewards))
	for i, one := range in.Rewards {
		reports[i] = one.report()
	}
	results, err := f.Engine.Outcomes(r.Context(), r.PathValue("name"), reports)
	if err != nil {
		return nil, err
	}
	return resultsOf(results), nil
}

func resultsOf(results []serve.Result) resultsJSON {
	out := resultsJSON{make([]resultJSON, len(results))}
	for i, one := range results {
		if out.Results[i].Status = one.Status; one.Err != nil {
			out.Results[i] = resultJSON{Error: one.Err.Error()}
		}
	}
	return out
}

// Serve serves until the context ends, finishes the requests that it has, for ten seconds at most,
// and closes the listener. Slow clients are cut off.
func Serve(ctx context.Context, l net.Listener, h http.Handler, log *slog.Logger) error {
	return serveOn(ctx, l, &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       20 * time.Second,
		WriteTimeout:      time.Minute,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelError),
	})
}

func serveOn(ctx context.Context, l net.Listener, s *http.Server) error {
	var fronts []*front
	switch h := s.Handler.(type) {
	case *front:
		fronts = h.beside
	case *router:
		fronts = h.fronts
	}
	for _, f := range fronts {
		s.RegisterOnShutdown(f.end)
		s.RegisterOnShutdown(f.pages.Close)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerWithin)
	defer cancel()
	err := s.Shutdown(last)
	if err != nil {
		_ = s.Close()
	}
	for _, f := range fronts {
		f.onLines.Wait() // for what has come on them, which is answered within answerWithin
	}
	if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}
