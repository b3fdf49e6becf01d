package client

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"
)

// An Event is something that a unit did, reported by its name: it is the reward, or a metric, of the
// unit's newest open decision in each experiment that declares it, and no token has to travel to where
// it is known.
type Event struct {
	Name string // as experiments declare it
	Unit string // the name that its decision was asked for with
	// ID tells it from the unit's other events of its name, where an experiment counts all of them: one that
	// is sent again with the same ID counts once. Without, of those that say the same one counts.
	ID string
	At time.Time // when it happened: it counts for no decision that was made after it; zero for when it comes
	// Fields are what else is known of it; experiments read numbers and booleans. "value" is its value, and
	// must be one of these; 1 if it is not there or nil.
	Fields map[string]any
}

// eventFields are the fields of an event that have a place of their own.
var eventFields = []string{"name", "targetingKey", "id", "timestamp"}

// Check says what is wrong with the form of an event: the service would refuse all that is sent with it. No
// error has a value of it.
func (v Event) Check() error {
	_, err := v.json()
	return err
}

// json is the event as it is sent. No error has a value of it.
func (v Event) json() (map[string]any, error) {
	for _, x := range []struct {
		what, text  string
		least, most int
	}{{"name", v.Name, 1, maxToken}, {"unit", v.Unit, 1, maxEvent}, {"id", v.ID, 0, maxToken}} {
		switch n := len(x.text); {
		case n < x.least:
			return nil, fmt.Errorf("%w: %s is missing", ErrRequest, x.what)
		case n > x.most:
			return nil, fmt.Errorf("%w: %s has %d bytes, must have at most %d", ErrRequest, x.what, n, x.most)
		case strings.ContainsRune(x.text, utf8.RuneError): // which JSON has for bytes that are none
			return nil, fmt.Errorf("%w: %s must be Unicode, without U+FFFD", ErrRequest, x.what)
		}
	}
	at := v.At.UTC()
	if y := at.Year(); y < 0 || y > 9999 {
		return nil, fmt.Errorf("%w: timestamp must have a year from 0 to 9999", ErrRequest)
	}
	if !isValue(v.Fields["value"]) {
		return nil, fmt.Errorf("%w: value must be a finite number", ErrRequest)
	}
	out := maps.Clone(v.Fields)
	if out == nil {
		out = map[string]any{}
	}
	for _, name := range eventFields {
		if _, there := out[name]; there {
			return nil, fmt.Errorf("%w: fields has %s, which has a place of its own", ErrRequest, name)
		}
	}
	for _, x := range out {
		if x, ok := x.(float64); ok && (math.IsNaN(x) || math.IsInf(x, 0)) {
			return nil, fmt.Errorf("%w: fields must be finite where they are numbers", ErrRequest)
		}
	}
	out["name"], out["targetingKey"] = v.Name, v.Unit
	if v.ID != "" {
		out["id"] = v.ID
	}
	if !v.At.IsZero() {
		out["timestamp"] = at.Format(time.RFC3339Nano)
	}
	if _, err := json.Marshal(out); err != nil {
		return nil, fmt.Errorf("%w: an event has no JSON", ErrRequest) // json says the value
	}
	return out, nil
}

// isValue says that the service reads a field as a number, or as none.
func isValue(field any) bool {
	text, err := json.Marshal(field)
	var x any
	if err != nil || json.Unmarshal(text, &x) != nil { // a json.Number may be too large
		return false
	}
	switch x.(type) {
	case nil, bool, float64:
		return true
	}
	return false
}

// Track reports at most MaxBatch events in one request, and returns when what they did is durable. What
// that was is told nobody. It sends once; an error that matches ErrUnavailable says that all of it may
// be sent again.
func (c *Client) Track(ctx context.Context, events ...Event) error {
	if len(events) < 1 || len(events) > MaxBatch {
		return fmt.Errorf("%w: events has %d, must have from 1 to %d", ErrRequest, len(events), MaxBatch)
	}
	in := struct {
		Events []map[string]any `json:"events"`
	}{make([]map[string]any, len(events))}
	for i, v := range events {
		var err error
		if in.Events[i], err = v.json(); err != nil {
			return fmt.Errorf("event %d: %w", i, err)
		}
	}
	return c.request(ctx, http.MethodPost, in, &struct{}{}, "v1", "track")
}
