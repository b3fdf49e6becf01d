package api

import (
	"errors"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/live/serve/compat"
)

// GO Feature Flag's relay proxy: its flags are evaluated as OFREP's are, and its tracking events count as those of
// POST /v1/track do.

// goffAsk reads who asks for flags.
func goffAsk(w http.ResponseWriter, r *http.Request) (in compat.GOFFRequest, ask serve.Ask, err error) {
	data, err := body(w, r, maxContext)
	if err != nil {
		return in, ask, err
	}
	if err := decodeInto(data, &in, false); err != nil {
		return in, ask, err
	}
	unit, known, err := in.Of()
	switch {
	case err != nil:
		return in, ask, err
	case strings.ContainsRune(unit, utf8.RuneError): // others would be the same unit
		return in, ask, refused(http.StatusBadRequest, "key", "key must be Unicode, without U+FFFD")
	}
	ask.Unit = unit
	return in, ask, tells(&ask, known)
}

func (f *front) goff(w http.ResponseWriter, r *http.Request) (any, error) {
	in, ask, err := goffAsk(w, r)
	if err != nil {
		return nil, err
	}
	name := r.PathValue("key")
	x, err := f.Engine.Get(r.Context(), name)
	switch {
	case errors.Is(err, serve.ErrNotFound):
		return in.Failed("FLAG_NOT_FOUND", "there is no experiment of this name"), nil
	case err != nil:
		return nil, err
	}
	for _, a := range x.Experiment.Arms {
		// its client would show its own value, in a decision that counts
		if !in.Fits(serve.ValueOf(a)) {
			return in.Failed("TYPE_MISMATCH", "the value of an arm is of another type than defaultValue"), nil
		}
	}
	v, err := f.targeted(r, name, &ask)
	if err != nil {
		return nil, err
	}
	defer f.leave(&v)
	out := f.evaluate(r, name, ask)
	switch {
	case out.status >= http.StatusInternalServerError:
		return nil, refused(out.status, "", out.Details)
	case out.status != http.StatusOK:
		return in.Failed(out.Code, out.Details), nil
	case out.Metadata["decision"] != nil:
		f.bake(w, &v)
	}
	return compat.GOFFAnswer{Track: true, Variation: out.Variant, Reason: out.Reason, Value: out.Value,
		Metadata: out.Metadata}, nil
}

func (f *front) goffAll(w http.ResponseWriter, r *http.Request) (any, error) {
	_, ask, err := goffAsk(w, r)
	if err != nil {
		return nil, err
	}
	all, err := f.evaluateAll(w, r, ask)
	if err != nil {
		return nil, err
	}
	if bad := all.failure(); bad != nil {
		return nil, refused(bad.status, "", bad.Details)
	}
	out := compat.GOFFFlags{Flags: map[string]compat.GOFFFlag{}, Valid: true}
	for _, one := range all.flags {
		if one.Code != "" {
			out.Valid, one.Reason = false, "ERROR"
		}
		out.Flags[one.Key] = compat.GOFFFlag{Value: one.Value, Timestamp: f.Engine.Time().Unix(), Variation: one.Variant, Track: true,
			Code: one.Code, Details: one.Details, Reason: one.Reason, Metadata: one.Metadata}
	}
	return out, nil
}

func (f *front) collector(w http.ResponseWriter, r *http.Request) (any, error) {
	data, err := body(w, r, compat.MaxCollected)
	if err != nil {
		return nil, err
	}
	var in compat.Collected
	if err := decodeInto(data, &in, false); err != nil {
		return nil, err
	}
	events, err := in.Tracked()
	if err != nil {
		return nil, err
	}
	return compat.CollectedAnswer{Count: len(in.Events)}, f.accept(r, events)
}
