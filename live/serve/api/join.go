package api

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/live/serve/compat"
	"github.com/sotto-dp/sotto/live/serve/page"
)

// Where a database is written in shares, each share has a front, which answers for its experiments as it
// would if there were no others, or passes requests on to whoever writes it. Before them stands a router: it
// hands a request for an experiment to that share's front, has all of them answer a request that spans
// experiments, and makes one answer of theirs. It looks at a key only so that who has none takes no memory and learns of
// no experiment: what a key may, each share says. What is
// joined has nothing that the parts had not, each of which is what its own share would have said.

// A placer knows which share an experiment is in.
type placer interface {
	// Of is the share of an experiment; ok is false if there is none of this name.
	Of(ctx context.Context, name string) (share int, ok bool, err error)
	// New is the share that a new experiment is to be in.
	New(x serve.Experiment) int
	// Names are those of all experiments.
	Names(ctx context.Context) ([]string, error)
}

// partHeader marks all parts but the first of a request that goes to all shares: it is counted and logged
// once. From outside it means nothing.
const partHeader = "Sotto-Part"

// shareHeader goes with 421: the share that a request is for. Nobody outside sees it.
const shareHeader = "Sotto-Share"

// once has a route count and log what is no further part of a request.
func once(h, bare http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header[partHeader] != nil {
			bare(w, r)
			return
		}
		h(w, r)
	}
}

// mine says that a new experiment is another share's, if it is.
func (f *front) mine(w http.ResponseWriter, x *decl.Experiment) error {
	if f.placed == nil {
		return nil
	}
	return f.misdirected(w, f.placed.New(*x))
}

// has says that an experiment is in another share, if it is.
func (f *front) has(w http.ResponseWriter, r *http.Request, name string) error {
	if f.placed == nil {
		return nil
	}
	share, ok, err := f.placed.Of(r.Context(), name)
	if err != nil || !ok {
		return err
	}
	return f.misdirected(w, share)
}

func (f *front) misdirected(w http.ResponseWriter, share int) error {
	if share == f.share {
		return nil
	}
	w.Header().Set(shareHeader, strconv.Itoa(share))
	return refused(http.StatusMisdirectedRequest, "", "the experiment is in another share")
}

// names are those of all experiments, whichever share has them.
func (f *front) names(ctx context.Context) ([]string, error) {
	if f.placed == nil {
		return f.Engine.Names(), nil
	}
	names, err := f.placed.Names(ctx)
	return slices.Clone(names), err
}

// A way says which shares a request goes to.
type way int

const (
	office way = iota // share 0, which has the keys
	anyone            // what is the same in all shares: one that this process writes, if there is one
	itself            // what a process says of itself
	sought            // the share that the first names
	joined            // all shares, whose answers are joined
	stream            // all shares, whose events are one stream
)

// A route is how requests of a pattern go.
type route struct {
	way   way
	limit int64 // of a body that is kept, as the route has it
	join  func(j *router, w http.ResponseWriter, r *http.Request, parts []*recorded)
}

// ways has the routes whose path names no experiment: those that do go to its share.
var ways = map[string]route{
	"GET /livez":                 {way: itself},
	"GET /readyz":                {way: itself},
	"GET /metrics":               {way: itself},
	"GET /openapi.yaml":          {way: anyone},
	"GET /sotto.js":              {way: anyone},
	"GET /sotto-model.js":        {way: anyone},
	"GET /sotto-lease.js":        {way: anyone},
	"GET /assets/{file...}":      {way: anyone},
	"GET /help/{$}":              {way: anyone},
	"GET /help/{file}":           {way: anyone},
	"GET /hpke_config":           {way: office}, // experiments of two servers are in share 0
	"POST /tasks/{task}/reports": {way: office},

	"POST /v1/keys":          {way: office},
	"GET /v1/keys":           {way: office},
	"DELETE /v1/keys/{id}":   {way: office},
	"GET /login":             {way: office},
	"POST /login":            {way: office},
	"POST /logout":           {way: office},
	"GET /login/issuer":      {way: office},
	"GET /login/callback":    {way: office},
	"GET /keys":              {way: office},
	"POST /keys":             {way: office},
	"GET /keys/{id}/revoke":  {way: office},
	"POST /keys/{id}/revoke": {way: office},
	"GET /new":               {way: office},
	"POST /new/check":        {way: office},
	"POST /new/forecast":     {way: office},
	"GET /account":           {way: office}, // of a cap, which there is none of with shares

	"POST /v1/experiments":               {way: sought, limit: maxDeclaration},
	"POST /new":                          {way: sought, limit: maxDeclaration},
	"POST " + personalizer + "v1.0/rank": {way: sought, limit: maxRank},
	"POST " + personalizer + "v1.0/events/{event}/reward":   {way: sought, limit: maxRank},
	"POST " + personalizer + "v1.0/events/{event}/activate": {way: sought, limit: maxRank},
	"GET " + personalizer + "v1.0/configurations/service":   {way: sought},
	"PUT " + personalizer + "v1.0/configurations/service":   {way: sought, limit: maxRank},

	"POST /v1/track":                                {way: joined, limit: maxBatch, join: joinTaken},
	"POST " + exposuresPath:                         {way: joined, limit: maxBatch, join: joinTaken},
	"POST " + compat.SegmentPath:                    {way: joined, limit: compat.MaxSegmentBatch, join: joinTaken},
	"POST " + compat.GrowthBookTrack:                {way: joined, limit: compat.MaxGrowthBookTrack, join: joinTaken},
	"POST " + compat.CollectorPath:                  {way: joined, limit: compat.MaxCollected, join: joinTaken},
	"GET " + compat.FlagdFlags:                      {way: joined, join: joinTagged},
	"GET " + compat.GrowthBookFeatures + "{client}": {way: joined, join: joinTagged},
	"POST " + compat.GOFFAllPath:                    {way: joined, limit: maxContext, join: joinJSON},
	"POST /ofrep/v1/evaluate/flags":                 {way: joined, limit: maxContext, join: joinFlags},
	"GET /v1/experiments":                           {way: joined, join: joinJSON},
	"GET /v1/account":                               {way: joined, join: joinJSON},
	"GET /v1/audit":                                 {way: joined, join: joinJournals},
	"GET /{$}":                                      {way: joined, join: joinHomes},
	"GET " + streamPath:                             {way: stream},
}

// mostFound is how many keys a router knows the share of.
const mostFound = 4096

// A router hands requests to shares.
type router struct {
	placed placer
	fronts []*front
	routes *http.ServeMux // of patterns alone
	named  map[string]int // which segment of a pattern's path names an experiment
	log    *slog.Logger

	mu sync.Mutex // of what follows
	// the share that requests were for which name it by their key alone, by its hash
	found map[[sha256.Size]byte]int

	commons commons
}

// newRouter is before the shares of a database, by their engines.
func newRouter(cfg Config, engines []*serve.Engine, placed placer) *router {
	j := &router{placed: placed, log: cfg.Log, routes: http.NewServeMux(), named: map[string]int{},
		found: map[[sha256.Size]byte]int{}}
	fresh := newCap(cfg.NewUnits, cfg.clock)
	for i, e := range engines {
		cfg.Engine = e
		f := newFront(cfg, i, placed)
		f.fresh = fresh // an address is one, whatever it asks for
		j.fronts = append(j.fronts, f)
	}
	j.commons.of = make([]map[string]bool, len(j.fronts))
	for _, f := range j.fronts {
		f.beside = j.fronts
	}
	for _, table := range []map[string]http.HandlerFunc{j.fronts[0].table(), j.fronts[0].pageTable()} {
		for pattern := range table {
			j.routes.Handle(pattern, http.NotFoundHandler())
			j.named[pattern] = nameIn(pattern)
		}
	}
	return j
}

// ServeHTTP implements http.Handler.
func (j *router) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if from := r.Header.Get(forwarded); from != "" {
		j.passedOn(r, from).ServeHTTP(w, r)
		return
	}
	delete(r.Header, partHeader)
	delete(r.Header, listHeader)
	_, pattern := j.routes.Handler(r)
	if at := j.named[pattern]; at > 0 {
		if f := j.of(r, at); f != nil {
			f.ServeHTTP(w, r)
		} else {
			j.fronts[0].nowhere(w, r)
		}
		return
	}
	to, known := ways[pattern]
	switch {
	case !known || to.way == anyone: // nothing is here, or another method, or a browser asks before it asks
		j.here().ServeHTTP(w, r)
	case to.way == itself:
		if f := j.here(); r.URL.Path != "/metrics" {
			f.answer(w, r)
		} else {
			f.ServeHTTP(w, r) // who writes nothing has no metrics
		}
	case to.way == stream:
		j.stream(w, r)
	case to.way == office:
		j.fronts[0].ServeHTTP(w, r)
	default:
		var data []byte
		if to.limit > 0 { // where a route has no body, what is sent as one is nobody's
			switch of, err := j.asker(r); {
			case err != nil:
				j.fronts[0].nowhere(w, r)
				return
			case of.Scopes == 0: // for whom nothing is kept: share 0 says so, in its words
				one := r.WithContext(r.Context()) // the server needs its own to find the end of the body
				one.Body, one.ContentLength, one.TransferEncoding = http.NoBody, 0, nil
				j.fronts[0].ServeHTTP(w, one)
				return
			}
			var whole bool
			if data, whole = keep(r, to.limit); !whole {
				j.fronts[0].ServeHTTP(w, r) // it says so too
				return
			}
		}
		if to.way == sought {
			j.seek(w, r, data)
			return
		}
		to.join(j, w, r, j.all(r, data))
	}
}

// passedOn is the share that another process has passed a request on to, or asks to prove that it is on
// its database; one that refuses if there is none.
func (j *router) passedOn(r *http.Request, from string) *front {
	for _, f := range j.fronts {
		if of := f.Engine.Database(); of == from || r.URL.Path == "/livez" && knows(of, from) {
			return f
		}
	}
	return j.fronts[0]
}

// here is a share that this process writes, share 0 if there is none.
func (j *router) here() *front {
	for _, f := range j.fronts {
		if here, _, _ := f.Engine.Where(); here {
			return f
		}
	}
	return j.fronts[0]
}

// asker is whose a request is: of a key, or a page's of a login. What a process writes tells it; where it writes nothing
// it knows keys, which all shares but the first are told of, and asks share 0 of the others.
func (j *router) asker(r *http.Request) (serve.Key, error) {
	f := j.here()
	here, _, _ := f.Engine.Where()
	if !here {
		f = j.fronts[len(j.fronts)-1]
	}
	secret, _ := keyOf(r)
	api := isAPI(r.URL.Path)
	k, has := f.Engine.Who(secret), secret != ""
	if !api {
		k, has = f.visitor(r), has || r.Header.Get("Cookie") != ""
	}
	if here || k.Scopes != 0 || !has {
		return k, nil
	}
	out := j.ask(r, 0, nil, func(r *http.Request) {
		r.Method, r.URL, r.Header[partHeader] = http.MethodGet, &url.URL{Path: "/account"}, []string{"0"}
		if api {
			r.URL.Path = "/v1/account"
			r.Header.Set("X-API-Key", secret)
		}
	})
	switch out.status {
	case http.StatusUnauthorized:
		return k, nil
	case http.StatusOK, http.StatusForbidden: // it may do something, which each share will say
		return serve.Key{Scopes: serve.ScopeRead}, nil
	}
	return k, serve.ErrUnavailable
}

// A commons has the public experiments of shares, which anybody may ask for by name. It is read from all of them by one
// question for all who wait.
type commons struct {
	reading sync.Mutex // of began
	began   time.Time  // the last reading

	mu sync.Mutex // of what follows
	of []map[string]bool
}

// lookWithin is how long the shares have to say which of their experiments are public, and lookEvery how often they are
// asked at most, however many strangers ask for names.
const (
	lookWithin = 2 * time.Second
	lookEvery  = 100 * time.Millisecond
)

// public is the share that has a public experiment, share 0 where there is none, and nil where a share never said
// which it has. Of an experiment that is not public it tells nothing, nor by how long it takes: a name is looked for
// in what is public alone.
func (j *router) public(r *http.Request, name string) *front {
	from := time.Now()
	if share, _ := j.commons.find(name); share >= 0 {
		return j.fronts[share]
	}
	j.commons.reading.Lock()
	if !j.commons.began.After(from) {
		time.Sleep(time.Until(j.commons.began.Add(lookEvery)))
		j.commons.began = time.Now()
		j.readCommons(r)
	}
	j.commons.reading.Unlock()
	share, all := j.commons.find(name)
	switch {
	case share >= 0:
		return j.fronts[share]
	case all:
		return j.fronts[0]
	}
	return nil
}

// readCommons has each share say what it shows to anybody in the list of experiments. What one that does not answer said
// last stays.
func (j *router) readCommons(r *http.Request) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), lookWithin)
	defer cancel()
	one := r.Clone(ctx)
	one.Method, one.URL = http.MethodGet, &url.URL{Path: "/"}
	one.Header = http.Header{listHeader: {listPart}, partHeader: {"0"}} // without a key
	parts := make([]*recorded, len(j.fronts))
	j.each(one, nil, parts)
	j.commons.mu.Lock()
	defer j.commons.mu.Unlock()
	for i, p := range parts {
		var list []page.Entry
		if p.status != http.StatusOK || json.Unmarshal(p.body.Bytes(), &list) != nil {
			continue
		}
		j.commons.of[i] = map[string]bool{}
		for _, e := range list {
			j.commons.of[i][e.Name] = true
		}
	}
}

// find is the share that has a public experiment, -1 where none has, and whether all have said which they have.
func (c *commons) find(name string) (share int, all bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.IndexFunc(c.of, func(of map[string]bool) bool { return of[name] }),
		!slices.ContainsFunc(c.of, func(of map[string]bool) bool { return of == nil })
}

// nameIn is which segment of a pattern's path names an experiment, 0 for none.
func nameIn(pattern string) int {
	_, path, _ := strings.Cut(pattern, " ")
	for i, s := range strings.Split(path, "/") {
		if s == "{name}" || s == "{key}" {
			return i
		}
	}
	return 0
}

// of is the share of the experiment that a segment of a path names, nil if that cannot be known now; share 0 says
// that there is none. Who may not ask of an experiment is sent the same way whether or not there is one.
func (j *router) of(r *http.Request, at int) *front {
	segments := strings.SplitN(r.URL.EscapedPath(), "/", at+2)
	if len(segments) <= at { // it is elsewhere, as the mux says
		return j.fronts[0]
	}
	name, err := url.PathUnescape(segments[at])
	if err != nil {
		return j.fronts[0]
	}
	k, err := j.asker(r)
	switch {
	case err != nil:
		return nil
	case k.Scopes != 0 && k.For(name):
	case r.Method == http.MethodGet, r.Method == http.MethodHead:
		return j.public(r, name)
	default:
		return j.fronts[0]
	}
	switch share, ok, err := j.placed.Of(r.Context(), name); {
	case err != nil, share >= len(j.fronts):
		return nil
	case ok:
		return j.fronts[share]
	}
	return j.fronts[0]
}

// keep reads a body of at most limit bytes. If there is more, or it breaks off, the request is as it was, for
// a handler that says so.
func keep(r *http.Request, limit int64) (data []byte, whole bool) {
	if r.Body == nil {
		return nil, true
	}
	data, err := io.ReadAll(io.LimitReader(r.Body, limit+1))
	if err == nil && int64(len(data)) <= limit {
		return data, true
	}
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(data), rest{r.Body, err}), r.Body}
	return nil, false
}

// A rest is what was not read of a body, or why it cannot be.
type rest struct {
	io.Reader
	err error
}

func (r rest) Read(b []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	return r.Reader.Read(b)
}

// ask has a share answer a request with a body.
func (j *router) ask(r *http.Request, share int, data []byte, change ...func(*http.Request)) *recorded {
	one := r.Clone(r.Context())
	one.Body, one.ContentLength, one.TransferEncoding = io.NopCloser(bytes.NewReader(data)), int64(len(data)), nil
	if one.Method == http.MethodHead { // an answer without a body joins with nothing
		one.Method = http.MethodGet
	}
	one.Header.Del("If-None-Match") // of the whole
	if share > 0 {
		one.Header[partHeader] = []string{strconv.Itoa(share)}
	}
	for _, c := range change {
		c(one)
	}
	out := &recorded{header: http.Header{}}
	j.fronts[share].answerWhole(out, one)
	// what another process said of its answer's way here, or when it gave it, is not so of what is made of it
	maps.DeleteFunc(out.header, func(name string, _ []string) bool { return ofConnection[name] || name == "Date" })
	return out
}

// each has shares answer, side by side, from one on.
func (j *router) each(r *http.Request, data []byte, parts []*recorded, change ...func(*http.Request)) {
	var all sync.WaitGroup
	for i := range parts {
		all.Go(func() { parts[i] = j.ask(r, i, data, change...) })
	}
	all.Wait()
}

// all has all shares answer. A browser without a cookie is one unit in all of them: they are asked in turn until
// one gives it a cookie, since it was given a decision; then the others are asked with that.
func (j *router) all(r *http.Request, data []byte) []*recorded {
	parts := make([]*recorded, len(j.fronts))
	if r.URL.Path == "/v1/audit" && fromOf(r) > 0 { // of all lines
		j.each(r, data, parts, func(r *http.Request) { r.URL.RawQuery = "" })
		return parts
	}
	if r.URL.Path == "/" {
		j.each(r, data, parts, func(r *http.Request) { r.Header.Set(listHeader, listPart) })
		return parts
	}
	if r.URL.Path == exposuresPath { // an exposure is nothing to a share that does not have its experiment
		shares := j.exposed(r, data)
		parts = parts[:len(shares)]
		var all sync.WaitGroup
		for i, share := range shares {
			all.Go(func() {
				parts[i] = j.ask(r, share, data, func(one *http.Request) {
					if i == 0 { // it is counted and logged there
						delete(one.Header, partHeader)
					}
				})
			})
		}
		all.Wait()
		return parts
	}
	if r.URL.Path != bulkPath || j.knownUnit(r, data) {
		j.each(r, data, parts)
		return parts
	}
	for i := range parts {
		parts[i] = j.ask(r, i, data)
		cookie := parts[i].cookie()
		if parts[i].status != http.StatusOK {
			return parts[i : i+1]
		}
		if cookie == nil {
			continue
		}
		given := parts[i]
		j.each(r, data, parts, func(r *http.Request) {
			r.Header.Set("Cookie", cookieName+"="+cookie.Value)
		})
		parts[i] = given
		break
	}
	return parts
}

// mostExposed is of how many experiments exposures are handed to their shares alone.
const mostExposed = 16

// exposed are the shares of the experiments that exposures name: all of them where that cannot be known now or there
// are many, and the first where none is there. Who may not ask of an experiment is sent the same
// way whether or not there is one.
func (j *router) exposed(r *http.Request, data []byte) (shares []int) {
	every := make([]int, len(j.fronts))
	for i := range every {
		every[i] = i
	}
	k, err := j.asker(r)
	if err != nil {
		return every
	}
	var in exposureRequest
	if decodeInto(data, &in, true) != nil { // a share says why
		return every
	}
	var names []string
	for _, v := range in.Exposures {
		if k.For(v.Experiment) && !slices.Contains(names, v.Experiment) {
			if names = append(names, v.Experiment); len(names) > mostExposed {
				return every
			}
		}
	}
	if len(names) == 0 {
		return every[:1]
	}
	places := make([]int, len(names))
	var all sync.WaitGroup // one reading of the directory is for all whom nobody knows
	for i, name := range names {
		all.Go(func() {
			share, ok, err := j.placed.Of(r.Context(), name)
			if places[i] = share; err != nil {
				places[i] = len(j.fronts)
			} else if !ok {
				places[i] = -1
			}
		})
	}
	all.Wait()
	slices.Sort(places)
	places = slices.Compact(places)
	if places[len(places)-1] >= len(j.fronts) {
		return every
	}
	shares = slices.DeleteFunc(places, func(share int) bool { return share < 0 })
	if len(shares) == 0 {
		return every[:1]
	}
	return shares
}

// Where exposures are reported, and where all flags of a unit are evaluated.
const (
	exposuresPath = "/v1/exposures"
	bulkPath      = "/ofrep/v1/evaluate/flags"
)

// knownUnit says whether a request for all flags has a unit already, or is to have none.
func (j *router) knownUnit(r *http.Request, data []byte) bool {
	if c, err := r.Cookie(cookieName); err == nil {
		if _, good := j.here().Engine.CookieUnit(c.Value); good {
			return true
		}
	}
	one := r.Clone(r.Context())
	one.Body, one.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
	ask, bad := target(&recorded{header: http.Header{}}, one)
	return bad != nil || ask.Unit != "" || ask.NoConsent
}

// cookie is that of a new unit, nil if none is given.
func (r *recorded) cookie() *http.Cookie {
	given := http.Response{Header: r.header}
	for _, c := range given.Cookies() {
		if c.Name == cookieName {
			return c
		}
	}
	return nil
}

// send sends an answer as it is.
func (r *recorded) send(w http.ResponseWriter) {
	if r.status == 0 { // it broke off, and so does the connection
		panic(http.ErrAbortHandler)
	}
	maps.Copy(w.Header(), r.header)
	w.WriteHeader(r.status)
	_, _ = w.Write(r.body.Bytes()) // who has gone is told nothing
}

// failed answers with what a share refused, or failed in, if one has: whoever is told 503 sends all of it again,
// and what has counted counts once. Of a request's form all shares say the same.
func (j *router) failed(w http.ResponseWriter, r *http.Request, parts []*recorded) bool {
	worst := func(p *recorded) int {
		switch s := p.status; {
		case s == 0:
			return 5
		case s == http.StatusServiceUnavailable:
			return 4
		case s >= http.StatusInternalServerError:
			return 3
		case s == http.StatusUnauthorized: // a key that is new is not known everywhere yet
			return 2
		case s >= http.StatusMultipleChoices:
			return 1
		}
		return 0
	}
	bad := slices.MaxFunc(parts, func(a, b *recorded) int { return cmp.Compare(worst(a), worst(b)) })
	good := slices.ContainsFunc(parts, func(p *recorded) bool { return worst(p) == 0 })
	switch {
	case worst(bad) == 0:
		return false
	case good && bad.status == http.StatusUnauthorized:
		maps.Copy(w.Header(), bad.header)
		w.Header().Del("WWW-Authenticate")
		j.fronts[0].answerTo(w, r, serve.ErrUnavailable)
		return true
	}
	bad.send(w)
	return true
}

// joinTaken says that all shares have taken what was reported, once it is durable in all of them.
func joinTaken(j *router, w http.ResponseWriter, r *http.Request, parts []*recorded) {
	if !j.failed(w, r, parts) {
		parts[0].send(w)
	}
}

// A whole answer in JSON is made of its parts: lists are joined in the order of the names of what is in
// them, objects are united, what holds holds for all, and else the first is right.
func wholeOf(parts []*recorded) (map[string]any, error) {
	out := map[string]any{}
	lists := map[string][]json.RawMessage{}
	for _, p := range parts {
		var of map[string]json.RawMessage
		if err := json.Unmarshal(p.body.Bytes(), &of); err != nil {
			return nil, err
		}
		for name, text := range of {
			switch first, known := out[name]; {
			case text[0] == '[':
				var items []json.RawMessage
				if err := json.Unmarshal(text, &items); err != nil {
					return nil, err
				}
				lists[name] = append(append([]json.RawMessage{}, lists[name]...), items...) // an empty one is no null
				out[name] = lists[name]
			case text[0] == '{':
				into, _ := first.(map[string]json.RawMessage)
				if into == nil {
					into = map[string]json.RawMessage{}
				}
				if err := json.Unmarshal(text, &into); err != nil {
					return nil, err
				}
				out[name] = into
			case !known || string(text) == "false":
				out[name] = text
			}
		}
	}
	for name, list := range lists {
		if name == "eventStreams" {
			continue // in the order of shares
		}
		slices.SortStableFunc(list, func(a, b json.RawMessage) int { return cmp.Compare(itemName(a), itemName(b)) })
	}
	return out, nil
}

// itemName is the name of what is in a list.
func itemName(text json.RawMessage) string {
	var of struct{ Name, Key string }
	_ = json.Unmarshal(text, &of) // without one it is as good as any
	return cmp.Or(of.Name, of.Key)
}

// whole answers with what each makes of a whole answer, with the headers of the parts.
func (j *router) whole(w http.ResponseWriter, r *http.Request, parts []*recorded,
	each func(all map[string]any) error) {
	if j.failed(w, r, parts) {
		return
	}
	for i := len(parts) - 1; i >= 0; i-- { // a cookie may be of any
		maps.Copy(w.Header(), parts[i].header)
	}
	all, err := wholeOf(parts)
	if err == nil {
		err = each(all)
	}
	if err != nil {
		j.fronts[0].answerTo(w, r, err)
	}
}

func joinJSON(j *router, w http.ResponseWriter, r *http.Request, parts []*recorded) {
	j.whole(w, r, parts, func(all map[string]any) error {
		ok(w, all)
		return nil
	})
}

func joinTagged(j *router, w http.ResponseWriter, r *http.Request, parts []*recorded) {
	j.whole(w, r, parts, func(all map[string]any) error { return tagged(w, r, all) })
}

// joinFlags joins the flags of a unit. Its one stream has the tokens of all.
func joinFlags(j *router, w http.ResponseWriter, r *http.Request, parts []*recorded) {
	j.whole(w, r, parts, func(all map[string]any) error {
		var first streamJSON
		var tokens []string
		list, _ := all["eventStreams"].([]json.RawMessage)
		for _, text := range list {
			var one streamJSON
			if err := json.Unmarshal(text, &one); err != nil {
				return err
			}
			at, err := url.Parse(one.URL)
			if err != nil {
				return err
			}
			if tokens = append(tokens, at.Query().Get("token")); len(tokens) == 1 {
				first = one
			}
		}
		if tokens != nil {
			at, err := url.Parse(first.URL)
			if err != nil {
				return err
			}
			at.RawQuery = url.Values{"token": {strings.Join(tokens, ".")}}.Encode()
			first.URL = at.String()
			all["eventStreams"] = []streamJSON{first}
		}
		return tagged(w, r, all)
	})
}

// fromOf is how many lines of a journal are left out, 0 also for what every share refuses.
func fromOf(r *http.Request) int {
	n, _ := strconv.Atoi(r.URL.Query().Get("from"))
	return max(0, n)
}

// joinJournals joins journals by the times of their lines: ?from= counts lines of all, in this order.
func joinJournals(j *router, w http.ResponseWriter, r *http.Request, parts []*recorded) {
	if j.failed(w, r, parts) {
		return
	}
	type line struct {
		at   time.Time
		text []byte
	}
	var lines []line
	for _, p := range parts {
		for text := range bytes.Lines(p.body.Bytes()) {
			var e serve.Entry
			if err := json.Unmarshal(text, &e); err != nil {
				j.fronts[0].answerTo(w, r, err)
				return
			}
			lines = append(lines, line{e.Time, text})
		}
	}
	slices.SortStableFunc(lines, func(a, b line) int { return a.at.Compare(b.at) })
	maps.Copy(w.Header(), parts[0].header)
	for _, l := range lines[min(fromOf(r), len(lines)):] {
		_, _ = w.Write(l.text)
	}
}

// listHeader asks for a share's part of the list of experiments, or for the page, of which the body has the other
// parts. From outside it means nothing.
const listHeader = "Sotto-List"

// The values of listHeader.
const (
	listPart = "part"
	listRest = "rest"
)

// home is the list of experiments, or what a router asks of it.
func (f *front) home(w http.ResponseWriter, r *http.Request) error {
	switch how := r.Header.Get(listHeader); {
	case f.placed != nil && how == listPart:
		return f.pages.Entries(w, r)
	case f.placed != nil && how == listRest:
		var rest page.Beside
		if err := json.NewDecoder(r.Body).Decode(&rest); err != nil {
			return err
		}
		return f.pages.HomeBeside(w, r, rest)
	}
	return f.pages.Home(w, r)
}

// joinHomes has one of the shares that answer show the experiments of all of them: the page is for people, who are
// told if some do not.
func joinHomes(j *router, w http.ResponseWriter, r *http.Request, parts []*recorded) {
	var rest page.Beside
	at := -1
	for i, p := range parts {
		var of []page.Entry
		switch err := json.Unmarshal(p.body.Bytes(), &of); {
		case p.status != http.StatusOK || err != nil:
			rest.Lacks = true
		case at < 0:
			at = i
		default:
			rest.Entries = append(rest.Entries, of...)
		}
	}
	if at < 0 {
		j.failed(w, r, parts)
		return
	}
	data, err := json.Marshal(rest)
	if err != nil {
		j.fronts[at].answerTo(w, r, err)
		return
	}
	j.ask(r, at, data, func(r *http.Request) { r.Header.Set(listHeader, listRest) }).send(w)
}

// seek asks the share that a request is for, which the one that is asked first names, after it has looked at the
// key.
func (j *router) seek(w http.ResponseWriter, r *http.Request, data []byte) {
	secret, _ := keyOf(r)
	key, byKey := sha256.Sum256([]byte(secret)), strings.HasPrefix(r.URL.Path, personalizer)
	first := 0
	if byKey {
		j.mu.Lock()
		first = j.found[key]
		j.mu.Unlock()
	}
	var out *recorded
	var busy []int
	for k := range len(j.fronts) {
		at := (first + k) % len(j.fronts)
		out = j.ask(r, at, data)
		if out.status == http.StatusServiceUnavailable { // any other may know whose it is
			busy = append(busy, at)
			continue
		}
		if out.status != http.StatusMisdirectedRequest {
			break
		}
		to, err := strconv.Atoi(out.header.Get(shareHeader))
		if err != nil || to < 0 || to >= len(j.fronts) || slices.Contains(busy, to) {
			j.fronts[0].nowhere(w, r)
			return
		}
		if out = j.ask(r, to, data); byKey && out.status < http.StatusBadRequest {
			j.mu.Lock()
			if len(j.found) >= mostFound {
				clear(j.found)
			}
			j.found[key] = to
			j.mu.Unlock()
		}
		break
	}
	if out.status == http.StatusMisdirectedRequest { // it has just become another's
		j.fronts[0].nowhere(w, r)
		return
	}
	out.send(w)
}

// A source is a part of a stream: it sends its events whole.
type source struct {
	recorded // until it streams
	ctx      context.Context
	began    chan struct{} // closed when it streams, or has ended
	once     sync.Once
	streams  bool
	sent     http.Header
	out      chan<- told
	share    int
	text     []byte // of an event that is not whole
}

// What was told is an event of a share.
type told struct {
	share int
	text  []byte
}

func (s *source) WriteHeader(status int) {
	if s.recorded.WriteHeader(status); status == http.StatusOK {
		s.streams, s.sent = true, s.header.Clone()
		s.once.Do(func() { close(s.began) })
	}
}

func (s *source) Write(b []byte) (int, error) {
	if s.status == 0 {
		s.WriteHeader(http.StatusOK)
	}
	if !s.streams {
		return s.recorded.Write(b)
	}
	s.text = append(s.text, b...)
	for {
		one, rest, whole := bytes.Cut(s.text, []byte("\n\n"))
		if !whole {
			return len(b), nil
		}
		select {
		case s.out <- told{s.share, slices.Clone(one)}:
		case <-s.ctx.Done():
			return 0, s.ctx.Err()
		}
		s.text = rest
	}
}

// Flush implements http.Flusher: what is whole has been sent.
func (s *source) Flush() {}

// stream joins the streams of all shares, by the tokens of all. It ends with the first of them: who follows comes
// back, and says what was told last by each.
func (j *router) stream(w http.ResponseWriter, r *http.Request) {
	tokens := strings.Split(r.URL.Query().Get("token"), ".")
	if len(tokens) != len(j.fronts) { // there were fewer shares when it was made
		j.fronts[0].ServeHTTP(w, r)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	last := strings.Split(r.Header.Get("Last-Event-ID"), ".")
	if len(last) != len(tokens) {
		last = make([]string, len(tokens))
	}
	events, ended := make(chan told), make(chan struct{}, len(tokens))
	parts := make([]*source, len(tokens))
	for i, token := range tokens {
		one := r.Clone(ctx)
		one.URL.RawQuery = url.Values{"token": {token}}.Encode()
		one.Header.Set("Last-Event-ID", last[i])
		if i > 0 {
			one.Header[partHeader] = []string{strconv.Itoa(i)}
		}
		parts[i] = &source{recorded: recorded{header: http.Header{}}, ctx: ctx, began: make(chan struct{}),
			out: events, share: i}
		running.Go(func() {
			defer func() {
				if why := recover(); why != nil && why != http.ErrAbortHandler { // of a part that was passed on
					j.log.Error("a stream failed", slog.Any("error", why))
				}
				ended <- struct{}{}
				parts[i].once.Do(func() { close(parts[i].began) })
			}()
			j.fronts[i].ServeHTTP(parts[i], one)
		})
	}
	// who streams sends nothing before all have begun, as nobody takes it
	for _, p := range parts {
		<-p.began
		if !p.streams {
			cancel()
			running.Wait()
			p.send(w)
			return
		}
	}
	maps.Copy(w.Header(), parts[0].sent)
	w.WriteHeader(http.StatusOK)
	w = page.Streaming(w)
	c := http.NewResponseController(w)
	for {
		var e told
		select {
		case e = <-events:
		case <-ended:
			return
		case <-ctx.Done():
			return
		}
		if e.share > 0 && !bytes.Contains(e.text, []byte("data:")) {
			continue // a sign of life, which the first gives
		}
		for line := range bytes.Lines(e.text) {
			if id, is := bytes.CutPrefix(line, []byte("id: ")); is {
				last[e.share] = string(bytes.TrimSpace(id))
				line = []byte("id: " + strings.Join(last, ".") + "\n")
			}
			if _, err := w.Write(line); err != nil {
				return
			}
		}
		if _, err := w.Write([]byte("\n\n")); err != nil || c.Flush() != nil {
			return
		}
	}
}
