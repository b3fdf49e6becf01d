package api

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sotto-dp/sotto/live/serve"
)

// A flagJSON is an evaluation as OFREP has it, or why there is none. An experiment is a flag, its
// arm the variant; the decision to report on is in the metadata.
type flagJSON struct {
	Key      string          `json:"key,omitempty"`
	Value    json.RawMessage `json:"value,omitempty"` // left out of errors alone
	Variant  string          `json:"variant,omitempty"`
	Reason   string          `json:"reason,omitempty"`
	Metadata map[string]any  `json:"metadata,omitempty"`
	Code     string          `json:"errorCode,omitempty"`
	Details  string          `json:"errorDetails,omitempty"`

	status int
	ends   time.Time // when asking again may give another decision; zero if it has none
}

var flagReasons = map[serve.Reason]string{serve.Split: "SPLIT", serve.Limit: "SPLIT",
	serve.Static: "STATIC", serve.Disabled: "DISABLED", serve.Default: "DEFAULT", serve.Holdout: "DEFAULT"}

// target reads the unit of an OFREP request, and what its context says.
func target(w http.ResponseWriter, r *http.Request) (ask serve.Ask, bad *flagJSON) {
	fail := func(code, details string) (serve.Ask, *flagJSON) {
		return serve.Ask{}, &flagJSON{Code: code, Details: details, status: http.StatusBadRequest}
	}
	data, err := body(w, r, maxContext)
	var p *problem
	if errors.As(err, &p) {
		return ask, &flagJSON{Code: "GENERAL", Details: p.Detail, status: p.Status}
	}
	var in struct {
		Context *json.RawMessage `json:"context"`
	}
	if !utf8.Valid(data) || json.Unmarshal(data, &in) != nil {
		return fail("PARSE_ERROR", "the body is no JSON object")
	}
	if in.Context == nil {
		return fail("INVALID_CONTEXT", "context is missing")
	}
	var context map[string]json.RawMessage
	if json.Unmarshal(*in.Context, &context) != nil || json.Unmarshal(context["targetingKey"],
		&ask.Unit) != nil && context["targetingKey"] != nil {
		return fail("INVALID_CONTEXT", "context must be an object, and its targetingKey a string")
	}
	if strings.ContainsRune(ask.Unit, utf8.RuneError) {
		return fail("INVALID_CONTEXT", "targetingKey must be Unicode, without U+FFFD")
	}
	if err := tells(&ask, context); err != nil {
		return fail("INVALID_CONTEXT", err.Error())
	}
	return ask, nil
}

// tells adds what a context says.
func tells(ask *serve.Ask, context map[string]json.RawMessage) (err error) {
	ask.Context = map[string]any{}
	for name, text := range context {
		var v any
		// a number that a float64 cannot hold is no value of anything
		if json.Unmarshal(text, &v) == nil {
			ask.Context[name] = v
		}
	}
	ask.NoConsent, err = refuses(nil, ask.Context)
	return err
}

// targeted sees to it that a targetingKey which a page sends was signed.
func (f *front) targeted(r *http.Request, experiment string, ask *serve.Ask) (v visitor, err error) {
	if k, _ := serve.By(r.Context()); k.Scopes&serve.ScopeBrowser != 0 && !ask.NoConsent {
		v, err = f.unit(r, experiment, "", ask.Unit)
		ask.Unit = v.unit
	}
	return v, err
}

// evaluate decides for a unit.
func (f *front) evaluate(r *http.Request, name string, ask serve.Ask) *flagJSON {
	if x, err := f.Engine.Get(r.Context(), name); err == nil && x.Experiment.Gathering().On() {
		return &flagJSON{Key: name, Code: "GENERAL", status: http.StatusBadRequest,
			Details: "the experiment's decisions are reported on, and OFREP has no place for how: ask for them at " +
				"/v1/experiments/" + name + "/decisions"}
	}
	d, err := f.Engine.DecideFor(r.Context(), name, ask)
	switch {
	case err == nil:
	case errors.Is(err, serve.ErrNotFound):
		return &flagJSON{Key: name, Code: "FLAG_NOT_FOUND", status: http.StatusNotFound}
	case errors.Is(err, serve.ErrUnit) && ask.Unit == "":
		return &flagJSON{Key: name, Code: "TARGETING_KEY_MISSING", status: http.StatusBadRequest,
			Details: "the experiment is sticky: context.targetingKey must name the unit"}
	case errors.Is(err, serve.ErrUnit):
		return &flagJSON{Key: name, Code: "INVALID_CONTEXT", status: http.StatusBadRequest,
			Details: "context.targetingKey is too long"}
	default:
		p := problemOf(err)
		return &flagJSON{Key: name, Code: "GENERAL", Details: p.Detail, status: p.Status}
	}
	out := &flagJSON{Key: name, Value: d.Value, Variant: d.Name, Reason: flagReasons[d.Reason],
		Metadata: map[string]any{"propensity": d.Propensity}, status: http.StatusOK}
	if d.Reason == serve.Holdout {
		out.Metadata["holdout"] = true
	}
	if d.Token != "" {
		out.Metadata["decision"] = d.Token
		out.Metadata["expires_at"] = d.Expires.UTC().Format(time.RFC3339Nano)
		if out.ends = d.Expires; !d.ActivateBy.IsZero() {
			if d.ActivateBy.After(f.Engine.Time()) {
				out.ends = d.ActivateBy
			}
			out.Metadata["activate_by"] = d.ActivateBy.UTC().Format(time.RFC3339Nano)
		}
	}
	return out
}

// send writes an evaluation or an error of OFREP.
func (f *front) send(w http.ResponseWriter, out *flagJSON) {
	if out.status >= http.StatusInternalServerError {
		out.Key, out.Code = "", ""
		w.Header().Set("Retry-After", "1")
	}
	write(w, out.status, "application/json", out)
}

func (f *front) flag(w http.ResponseWriter, r *http.Request) (any, error) {
	ask, bad := target(w, r)
	if bad != nil {
		bad.Key = r.PathValue("key")
		f.send(w, bad)
		return nil, nil
	}
	v, err := f.targeted(r, r.PathValue("key"), &ask)
	if err != nil {
		return nil, err
	}
	defer f.leave(&v)
	out := f.evaluate(r, r.PathValue("key"), ask)
	if out.Metadata["decision"] != nil {
		f.bake(w, &v)
	}
	f.send(w, out)
	return nil, nil
}

// evaluations are all flags of a unit.
type evaluations struct {
	flags []*flagJSON
	unit  string       // empty if it takes no part
	ends  time.Time    // when the first of its decisions does; zero if it has none
	by    []serve.Info // what they follow from
}

// evaluateAll evaluates all experiments that are not drafts and not archived, and that are sticky or whose
// decisions count when they are activated: clients ask for all of them again and again, which would
// be a decision that counts of the others each time. Nor is there a place for a person. Those that the key
// or the signature of the unit is not good for are left out; a signature that is good for none is refused.
// An evaluation that the service failed in is the only one.
func (f *front) evaluateAll(w http.ResponseWriter, r *http.Request, ask serve.Ask) (out evaluations, err error) {
	everywhere := ask
	v, unsigned := f.targeted(r, serve.AnyExperiment, &everywhere)
	defer f.leave(&v)
	switch {
	case errors.Is(unsigned, serve.ErrSignature): // it may be for some
	case unsigned != nil:
		return out, unsigned
	case everywhere.Unit == "" && !ask.NoConsent:
		return evaluations{flags: []*flagJSON{{Code: "TARGETING_KEY_MISSING", status: http.StatusBadRequest,
			Details: "context.targetingKey must name the unit"}}}, nil
	}
	out.flags, out.by = []*flagJSON{}, f.Engine.List(r.Context())
	if !ask.NoConsent {
		out.unit = everywhere.Unit
	}
	k, _ := serve.By(r.Context())
	refused := unsigned
	for _, x := range out.by {
		d, here := x.Experiment, everywhere
		if !k.For(d.Name) {
			continue
		}
		if unsigned != nil {
			here = ask
			if _, err := f.targeted(r, d.Name, &here); err != nil {
				continue
			}
			refused = nil
			out.unit = here.Unit
		}
		if !inBulk(&x) {
			continue
		}
		one := f.evaluate(r, d.Name, here)
		if one.status >= http.StatusInternalServerError {
			return evaluations{flags: []*flagJSON{one}}, nil
		}
		if out.flags = append(out.flags, one); one.Metadata["decision"] != nil {
			f.bake(w, &v)
		}
		if one.ends.After(f.Engine.Time()) && (out.ends.IsZero() || one.ends.Before(out.ends)) {
			out.ends = one.ends
		}
	}
	if refused != nil && f.placed != nil { // it may be for one that another share has
		if _, err := f.signedFor(r.Context(), ask.Unit); !errors.Is(err, serve.ErrSignature) {
			refused = err
		}
	}
	return out, refused
}

// failure is what a unit is told instead of all its flags; nil if it is told these.
func (e *evaluations) failure() *flagJSON {
	if len(e.flags) == 1 && (e.flags[0].Key == "" || e.flags[0].status >= http.StatusInternalServerError) {
		return e.flags[0]
	}
	return nil
}

func (f *front) flags(w http.ResponseWriter, r *http.Request) (any, error) {
	ask, bad := target(w, r)
	if bad != nil {
		f.send(w, bad)
		return nil, nil
	}
	all, err := f.evaluateAll(w, r, ask)
	if err != nil {
		return nil, err
	}
	if bad := all.failure(); bad != nil {
		f.send(w, bad)
		return nil, nil
	}
	k, _ := serve.By(r.Context())
	out := struct {
		Flags   []*flagJSON  `json:"flags"`
		Streams []streamJSON `json:"eventStreams,omitempty"`
	}{Flags: all.flags}
	if !ask.NoConsent { // who refuses is not followed
		out.Streams = []streamJSON{f.streamFor(r, k, all)}
	}
	return nil, tagged(w, r, out)
}
