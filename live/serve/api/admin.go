package api

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"net/http"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/sotto-dp/sotto/live/decl"
	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/privacy"
)

// An infoJSON is how an experiment is, by what everybody may see.
type infoJSON struct {
	Name    string      `json:"name"`
	State   serve.State `json:"state"`
	Wait    string      `json:"wait,omitempty"`
	Since   *time.Time  `json:"since,omitempty"`
	Trouble string      `json:"trouble,omitempty"`
	Until   *time.Time  `json:"until,omitempty"`
	Reason  string      `json:"reason,omitempty"`
	Kept    string      `json:"kept,omitempty"`
	Keep    string      `json:"keep,omitempty"` // leader, or while it stops the arm that will be kept
	Why     string      `json:"why,omitempty"`  // it has stopped, or stops
	Left    int         `json:"left,omitempty"` // decisions that wait to be released
	Arms    []armJSON   `json:"arms"`
	// Metrics are those that were declared beside the reward.
	Metrics *serve.Measures `json:"metrics,omitempty"`
	Guards  *serve.Guards   `json:"guards,omitempty"`
	Cells   *serve.ByCell   `json:"cells,omitempty"`
	Ramp    *serve.Ramp     `json:"ramp,omitempty"`
	// SampleRatio is of decisions as they are now, and not of releases.
	SampleRatio *serve.SampleRatio `json:"sample_ratio,omitempty"`
	// FirstRelease is when the first release was; before, NotBefore is when it can be.
	FirstRelease *time.Time `json:"first_release,omitempty"`
	NotBefore    *time.Time `json:"first_release_not_before,omitempty"`
	// Contextual is of experiments that have contexts instead of arms.
	Contextual *contextualJSON `json:"contextual,omitempty"`
	Batches    int             `json:"batches"`
	Tick       string          `json:"tick"`
	// Changes come with the next ticks.
	Changes []serve.Change `json:"changes,omitempty"`
	Spent   spentJSON      `json:"spent"`
	// Budget is that of one reward.
	Budget string `json:"budget"`
	// FirstBatch is proposed to drafts.
	FirstBatch *firstJSON `json:"first_batch,omitempty"`
	Total      string     `json:"total"` // what a unit may lose in all, with the metrics
	Guarantee  string     `json:"guarantee"`
	// Warnings are what a draft had better not have.
	Warnings    []string        `json:"warnings,omitempty"`
	Declaration json.RawMessage `json:"declaration"`
}

// A firstJSON proposes another value for a parameter of the policy, from the declared traffic.
type firstJSON struct {
	Parameter string `json:"parameter"`
	Is        int    `json:"is"`
	Proposed  int    `json:"proposed"`
}

type armJSON struct {
	Name      string   `json:"name"`
	Decisions int      `json:"decisions"`
	Released  int      `json:"released"`
	Mean      *float64 `json:"mean"` // noisy, of what was released; null before
	// Metrics are the noisy means of the experiment's metrics, of what was released.
	Metrics map[string]float64 `json:"metrics,omitempty"`
	Off     bool               `json:"off,omitempty"`
}

type contextualJSON struct {
	Decisions int        `json:"decisions"`
	Released  int        `json:"released"`
	Releases  int        `json:"releases"`
	Dim       int        `json:"dim"`
	Norm      float64    `json:"norm"`
	Rules     []ruleJSON `json:"rules,omitempty"`
}

// A ruleJSON is what a rule would have earned a decision, by what was released: estimates that are
// null before, and an interval that holds with those of the other rules, whenever it is looked at.
type ruleJSON struct {
	Name           string      `json:"name"`
	Clip           float64     `json:"clip"`
	Mean           *float64    `json:"mean"`
	SelfNormalised *float64    `json:"self_normalised"`
	Interval       *[2]float64 `json:"interval"`
	// Low: weights are clipped, so that estimates may be too low, and of the interval the lower end
	// alone holds.
	Low bool `json:"low,omitempty"`
}

func contextualOf(decl *serve.Experiment, in *serve.ContextualInfo) *contextualJSON {
	if in == nil {
		return nil
	}
	out := &contextualJSON{Decisions: in.Decisions, Released: in.Released, Releases: in.Releases, Dim: in.Dim,
		Norm: in.Norm}
	finite := func(x float64) *float64 {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return nil
		}
		return &x
	}
	for i, r := range in.Rules {
		one := ruleJSON{Name: r.Name, Clip: r.Clip,
			Low: decl.MostWeight(decl.Contextual.Rules[i]) > r.Clip}
		if r.N > 0 {
			one.Mean, one.SelfNormalised = finite(r.Mean()), finite(r.SelfNormalised())
		}
		if _, interval, ok := in.Earned(i); ok {
			one.Interval = &interval
		}
		out.Rules = append(out.Rules, one)
	}
	return out
}

type spentJSON struct {
	Text string       `json:"text"`
	Loss privacy.Loss `json:"loss"`
}

func infoOf(x serve.Info) (*infoJSON, error) {
	declared, err := x.Experiment.JSON()
	if err != nil {
		return nil, err
	}
	out := &infoJSON{Name: x.Experiment.Name, State: x.State, Wait: x.Wait, Reason: x.Reason,
		Batches: x.Batches, Tick: x.Tick.String(), Changes: x.Changes,
		Spent:  spentJSON{fmt.Sprint(x.Spent), x.Spent},
		Budget: fmt.Sprint(x.Budget), Declaration: declared, Arms: []armJSON{},
		Contextual: contextualOf(&x.Experiment, x.Contextual), Metrics: x.Measured(), Guards: x.Guards(), Ramp: x.Ramp(),
		Cells: x.ByCell(), SampleRatio: x.SampleRatio()}
	if first, ok := x.Experiment.FirstBatch(); ok && x.State == serve.Draft {
		out.FirstBatch = &firstJSON{first.Param, first.Is, first.Proposed}
	}
	if x.State == serve.Draft {
		out.Warnings = x.Experiment.Warnings()
	}
	out.Total = fmt.Sprint(x.Experiment.Total())
	if out.Guarantee, err = x.Experiment.Guarantee(); err != nil {
		return nil, err
	}
	if !x.Until.IsZero() {
		at := x.Until.UTC()
		out.Until = &at
	}
	if !x.First.IsZero() {
		out.FirstRelease = &x.First
	}
	if !x.NotBefore.IsZero() {
		out.NotBefore = &x.NotBefore
	}
	if !x.Since.IsZero() {
		at := x.Since.UTC()
		out.Since, out.Trouble = &at, x.Trouble
	}
	if x.Keep >= 0 && x.Keep < len(x.Experiment.Arms) {
		out.Kept = x.Experiment.Arms[x.Keep].Name
	}
	switch out.Why, out.Left = x.Why, x.Left; {
	case x.Policy && (x.State == serve.Stopped || x.State == serve.Archived):
		out.Kept = decl.KeepPolicy
	case x.Policy:
		out.Keep = decl.KeepPolicy
	case x.Leader:
		out.Keep = decl.KeepLeader
	case x.Next >= 0:
		out.Keep = x.Experiment.Arms[x.Next].Name
	}
	lo, hi := x.Experiment.Range()
	for i, a := range x.Arms {
		arm := armJSON{Name: x.Experiment.Arms[i].Name, Decisions: a.Decisions, Released: a.Released,
			Off: a.Off}
		if a.Released > 0 {
			mean := lo + (hi-lo)*a.Sum/float64(a.Released)
			arm.Mean = &mean
			for j, m := range x.Experiment.Metrics {
				if arm.Metrics == nil {
					arm.Metrics = map[string]float64{}
				}
				lo, hi := m.Range()
				arm.Metrics[m.Name] = lo + (hi-lo)*x.Metrics[j][i]/float64(a.Released)
			}
		}
		out.Arms = append(out.Arms, arm)
	}
	return out, nil
}

func (f *front) create(w http.ResponseWriter, r *http.Request) (any, error) {
	if f.Demo {
		return nil, refused(http.StatusForbidden, "", "this is the demonstration, which keeps nothing: "+
			"start sotto serve without --demo for experiments of your own")
	}
	data, err := body(w, r, maxDeclaration)
	if err != nil {
		return nil, err
	}
	x, err := decl.Reader{Catalog: f.Catalog}.Parse("declaration", data)
	if err != nil {
		return nil, err
	}
	if err := f.mine(w, x); err != nil {
		return nil, err
	}
	if err := f.Engine.Create(r.Context(), *x); err != nil {
		return nil, err
	}
	info, err := f.Engine.Get(r.Context(), x.Name)
	if err != nil {
		return nil, err
	}
	out, err := infoOf(info)
	if err != nil {
		return nil, err
	}
	w.Header().Set("Location", "/v1/experiments/"+x.Name)
	write(w, http.StatusCreated, "application/json", out)
	return nil, nil
}

func (f *front) list(_ http.ResponseWriter, r *http.Request) (any, error) {
	out := struct {
		Experiments []*infoJSON `json:"experiments"`
	}{[]*infoJSON{}}
	for _, x := range f.Engine.List(r.Context()) {
		one, err := infoOf(x)
		if err != nil {
			return nil, err
		}
		out.Experiments = append(out.Experiments, one)
	}
	return out, nil
}

func (f *front) get(_ http.ResponseWriter, r *http.Request) (any, error) {
	x, err := f.Engine.Get(r.Context(), r.PathValue("name"))
	if err != nil {
		return nil, err
	}
	return infoOf(x)
}

// operate does something to an experiment, for the reason of its body, and says how it is then.
func (f *front) operate(do func(context.Context, string) error) handled {
	return func(w http.ResponseWriter, r *http.Request) (any, error) {
		var in operateRequest
		if err := read(w, r, maxReward, &in); err != nil {
			return nil, err
		}
		return f.done(w, r, in.Reason, do)
	}
}

// done is operate for a reason that was read.
func (f *front) done(w http.ResponseWriter, r *http.Request, reason string, do func(context.Context, string) error) (any, error) {
	ctx, err := serve.Because(r.Context(), reason)
	if err != nil {
		return nil, err
	}
	if err := do(ctx, r.PathValue("name")); err != nil {
		return nil, err
	}
	return f.get(w, r)
}

func (f *front) stop(w http.ResponseWriter, r *http.Request) (any, error) {
	var in stopRequest
	if err := read(w, r, maxReward, &in); err != nil {
		return nil, err
	}
	return f.done(w, r, in.Reason, func(ctx context.Context, name string) error {
		keep := in.Keep + in.Arm // one of them
		if in.Now {
			return f.Engine.StopNow(ctx, name, keep, in.Confirm)
		}
		return f.Engine.Stop(ctx, name, keep)
	})
}

// change changes terms, and says how the experiment is then.
func (f *front) change(w http.ResponseWriter, r *http.Request) (any, error) {
	var in changeRequest
	if err := read(w, r, maxChange, &in); err != nil {
		return nil, err
	}
	return f.done(w, r, in.Reason, func(ctx context.Context, name string) error {
		return f.Engine.Change(ctx, name, in.change)
	})
}

// transcript is lines of JSON, as they are stored. If it breaks off, so does the connection, and
// not the last line.
func (f *front) transcript(w http.ResponseWriter, r *http.Request) (any, error) {
	lines, err := f.Engine.Transcript(r.Context(), r.PathValue("name"))
	if err != nil {
		return nil, err
	}
	return nil, f.lines(w, lines)
}

// lines writes lines of JSON. An error is one before the first of them.
func (f *front) lines(w http.ResponseWriter, lines iter.Seq2[[]byte, error]) error {
	w.Header().Set("Content-Type", "application/jsonl")
	begun := false
	for line, err := range lines {
		if err != nil && !begun {
			return err
		}
		if err == nil {
			begun = true
			_, err = w.Write(line)
		}
		if err != nil {
			f.Log.Error("lines of an answer broke off", "error", err)
			panic(http.ErrAbortHandler) // net/http's way to break a connection off
		}
	}
	return nil
}

// webhook says what an experiment's webhook is told with.
func (f *front) webhook(_ http.ResponseWriter, r *http.Request) (any, error) {
	x, err := f.Engine.Get(r.Context(), r.PathValue("name"))
	if err != nil {
		return nil, err
	}
	secret, err := f.Engine.WebhookSecret(x.Experiment.Name)
	if err != nil {
		return nil, err
	}
	return struct {
		Address string `json:"address"`
		Secret  string `json:"secret"`
	}{x.Experiment.Webhook, secret}, nil
}

// unitOf is the unit in a request's path.
func unitOf(r *http.Request) (string, error) {
	unit := decisionRequest{Unit: r.PathValue("unit")}
	if !utf8.ValidString(unit.Unit) {
		return "", refused(http.StatusBadRequest, "unit", "unit must be Unicode, as UTF-8 in percent signs")
	}
	return unit.Unit, unit.check()
}

// kept is what is kept of a unit, for an access request.
func (f *front) kept(_ http.ResponseWriter, r *http.Request) (any, error) {
	unit, err := unitOf(r)
	if err != nil {
		return nil, err
	}
	return f.Engine.Kept(r.Context(), r.PathValue("name"), unit)
}

// erase answers the same whether or not there was such a unit.
func (f *front) erase(w http.ResponseWriter, r *http.Request) (any, error) {
	unit, err := unitOf(r)
	if err != nil {
		return nil, err
	}
	if err := f.Engine.Erase(r.Context(), r.PathValue("name"), unit); err != nil {
		return nil, err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil, nil
}

// audit is the journal of what operators did, from line ?from= on.
func (f *front) audit(w http.ResponseWriter, r *http.Request) (any, error) {
	from := 0
	if text := r.URL.Query().Get("from"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return nil, refused(http.StatusBadRequest, "from", "from must be a whole number, at least 0")
		}
		from = n
	}
	lines, err := f.Engine.Audit(r.Context(), from)
	if err != nil {
		return nil, err
	}
	return nil, f.lines(w, lines)
}

// model is what was learnt of contexts.
func (f *front) model(_ http.ResponseWriter, r *http.Request) (any, error) {
	return f.Engine.Model(r.Context(), r.PathValue("name"))
}

func (f *front) ledger(_ http.ResponseWriter, r *http.Request) (any, error) {
	return f.Engine.Ledger(r.Context(), r.PathValue("name"))
}

// A keyJSON is what is known of a key; Key is given once, when it is made.
type keyJSON struct {
	ID      int64     `json:"id"`
	Name    string    `json:"name"`
	Scopes  []string  `json:"scopes"`
	Created time.Time `json:"created"`
	Revoked bool      `json:"revoked"`
	// Experiment is the only one that it is good for.
	Experiment string `json:"experiment,omitempty"`
	Key        string `json:"key,omitempty"`
}

func keyInfo(k serve.Key) keyJSON {
	return keyJSON{ID: k.ID, Name: k.Name, Scopes: k.Scopes.Names(), Created: k.Created.UTC(),
		Revoked: k.Scopes == 0, Experiment: k.Experiment}
}

func (f *front) newKey(w http.ResponseWriter, r *http.Request) (any, error) {
	var in keyRequest
	if err := read(w, r, maxReward, &in); err != nil {
		return nil, err
	}
	scopes, err := in.scopes()
	if err != nil {
		return nil, err
	}
	secret, k, err := f.Engine.NewKeyFor(r.Context(), in.Experiment, in.Name, scopes)
	if err != nil {
		return nil, err
	}
	out := keyInfo(k)
	out.Key = secret
	write(w, http.StatusCreated, "application/json", out)
	return nil, nil
}

func (f *front) keys(http.ResponseWriter, *http.Request) (any, error) {
	out := struct {
		Keys []keyJSON `json:"keys"`
	}{[]keyJSON{}}
	for _, k := range f.Engine.Keys() {
		out.Keys = append(out.Keys, keyInfo(k))
	}
	return out, nil
}

func (f *front) revoke(w http.ResponseWriter, r *http.Request) (any, error) {
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil {
		return nil, refused(http.StatusBadRequest, "id", "id must be a whole number")
	}
	revoke := f.Engine.RevokeKey
	switch r.URL.Query().Get("last") {
	case "":
	case "true":
		revoke = f.Engine.RevokeLastKey
	default:
		return nil, refused(http.StatusBadRequest, "last", "last must be true, or left out")
	}
	if err := revoke(r.Context(), id); err != nil {
		return nil, err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil, nil
}
