package client

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"time"
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
	// Fields are what else is known of it; experiments read numbers and booleans. "value" is its value, 1
	// if it is not there.
	Fields map[string]any
}

// eventFields are the fields of an event that have a place of their own.
var eventFields = []string{"name", "targetingKey", "id", "timestamp"}

// json is the event as it is sent. No error has a value of it.
func (v Event) json() (map[string]any, error) {
	for what, text := range map[string]string{"name": v.Name, "unit": v.Unit} {
		if text == "" {
			return nil, fmt.Errorf("%w: %s is missing", ErrRequest, what)
		}
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
		out["timestamp"] = v.At.UTC().Format(time.RFC3339Nano)
	}
	if _, err := json.Marshal(out); err != nil {
		return nil, fmt.Errorf("%w: an event has no JSON", ErrRequest) // json says the value
	}
	return out, nil
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
