package api

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/live/serve/compat"
)

// Events are reported by the names of units, in the shape of OpenFeature's Tracking API: a name, a targetingKey, a
// value, and whatever else there is. 202 is the answer to all that have the form, when what they did is durable:
// of an event's decision, whether there is one or what came of it, nobody is told.

type trackRequest struct {
	Events []map[string]json.RawMessage `json:"events"`

	read   func(map[string]json.RawMessage) (serve.Event, error)
	events []serve.Event
}

func (q *trackRequest) check() error {
	if n := len(q.Events); n < 1 || n > serve.MaxEvents {
		return refused(http.StatusBadRequest, "events", fmt.Sprintf("events has %d, must have from 1 to %d", n,
			serve.MaxEvents))
	}
	for i, raw := range q.Events {
		v, err := q.read(raw)
		if err != nil {
			return atItem("events", i, err)
		}
		q.events = append(q.events, v)
	}
	return nil
}

func (f *front) track(w http.ResponseWriter, r *http.Request) (any, error) {
	data, err := body(w, r, maxBatch)
	if err != nil {
		return nil, err
	}
	in := trackRequest{read: compat.Event}
	switch err = compat.CloudEvents(r.Header.Get("Content-Type"), data, &in.Events); {
	case err != nil:
	case in.Events != nil:
		in.read = compat.CloudEvent
		err = in.check()
	default:
		err = decodeSome(data, &in)
	}
	if err != nil {
		return nil, err
	}
	if err := f.take(r, in.events); err != nil {
		return nil, err
	}
	write(w, http.StatusAccepted, "application/json", struct{}{})
	return nil, nil
}

// take takes events: of a browser's key of the units alone that were signed, or that the service's cookie names.
func (f *front) take(r *http.Request, events []serve.Event) error {
	units := make([]*string, len(events))
	for i := range events {
		units[i] = &events[i].Unit
	}
	counts, err := f.named(r, "events", units)
	if err != nil {
		return err
	}
	for i, v := range events {
		if err := v.Check(); err != nil {
			return atItem("events", i, err)
		}
	}
	return f.Engine.Track(r.Context(), events, counts)
}

// named puts names in the place of what a request has of units: a key of a browser names those alone that were
// signed, or that the service's cookie names. It says in which experiments each may count.
func (f *front) named(r *http.Request, list string, units []*string) (counts func(i int, experiment string) bool, _ error) {
	k, _ := serve.By(r.Context())
	if k.Scopes&serve.ScopeBrowser == 0 {
		return func(_ int, experiment string) bool { return k.For(experiment) }, nil
	}
	mine, signed := "", map[string]*signedFor{}
	if c, err := r.Cookie(cookieName); err == nil {
		mine, _ = f.Engine.CookieUnit(c.Value)
	}
	by := make([]*signedFor, len(units))
	for i, unit := range units {
		if *unit == "" {
			*unit = mine
			continue
		}
		if signed[*unit] == nil {
			of, err := f.signedFor(r.Context(), *unit)
			if err != nil {
				return nil, atItem(list, i, refused(http.StatusForbidden, "targetingKey", "targetingKey must be a signed unit "+
					"for a key of the scope browser: "+err.Error()))
			}
			signed[*unit] = of
		}
		by[i] = signed[*unit]
		*unit = by[i].unit
	}
	return func(i int, experiment string) bool {
		return k.For(experiment) && (by[i] == nil || by[i].goodFor(experiment))
	}, nil
}

// A signedFor is a unit, and the experiments that its signature is good for.
type signedFor struct {
	unit string
	in   []string
}

func (s *signedFor) goodFor(experiment string) bool {
	return slices.Contains(s.in, serve.AnyExperiment) || slices.Contains(s.in, experiment)
}

// signedFor reads the signature of a unit, which must be good for something.
func (f *front) signedFor(ctx context.Context, token string) (*signedFor, error) {
	names, err := f.names(ctx)
	if err != nil {
		return nil, err
	}
	var out signedFor
	for _, name := range append(names, serve.AnyExperiment) {
		if unit, err := f.Engine.SignedUnit(name, token); err == nil {
			out.unit, out.in = cmp.Or(out.unit, unit), append(out.in, name)
		}
	}
	if out.in == nil {
		return nil, serve.ErrSignature
	}
	return &out, nil
}
