package compat

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/sotto-dp/sotto/live/serve"
)

// The API of GO Feature Flag's relay proxy that its providers of OpenFeature ask: one flag, all flags, and the
// collector of events.
const (
	GOFFPath      = "/v1/feature/{key}/eval"
	GOFFAllPath   = "/v1/allflags"
	CollectorPath = "/v1/data/collector"
	MaxCollected  = 1 << 20 // bytes
	maxCollected  = 10_000  // events
	goffDefault   = "SdkDefault"
)

// isGOFF says whether a path is one of theirs.
func isGOFF(path string) bool {
	return path == GOFFAllPath || path == CollectorPath ||
		strings.HasPrefix(path, "/v1/feature/") && strings.HasSuffix(path, "/eval")
}

// A GOFFRequest is the body of a request for flags: who asks, under a new name or the old one, and for one
// flag what is shown where it has no value.
type GOFFRequest struct {
	User    *goffUser       `json:"user"`
	Context *goffUser       `json:"evaluationContext"`
	Default json.RawMessage `json:"defaultValue"`
}

type goffUser struct {
	Key    string                     `json:"key"`
	Custom map[string]json.RawMessage `json:"custom"`
}

// Of is the unit that asks, and what is known of it.
func (q *GOFFRequest) Of() (unit string, known map[string]json.RawMessage, err error) {
	field, of := "evaluationContext", q.Context
	if of == nil {
		field, of = "user", q.User
	}
	switch {
	case of == nil:
		return "", nil, wrong("evaluationContext", "is missing, must say who asks, as must user of older clients")
	case of.Key == "":
		return "", nil, wrong(field+".key", "is missing, must name the unit")
	}
	return of.Key, of.Custom, nil
}

// Fits says whether a value is of the type of what is shown where there is none, if that is known: clients
// show that in the place of a value of another type.
func (q *GOFFRequest) Fits(value json.RawMessage) bool {
	return len(q.Default) == 0 || string(q.Default) == "null" || kindOf(q.Default) == kindOf(value)
}

// kindOf is the type of a value as JavaScript has it.
func kindOf(text json.RawMessage) string {
	var v any
	_ = json.Unmarshal(text, &v) // it was read
	switch v.(type) {
	case bool:
		return "boolean"
	case float64:
		return "number"
	case string:
		return "string"
	}
	return "object"
}

// A GOFFFlag is a flag among all.
type GOFFFlag struct {
	Value     json.RawMessage `json:"value"`
	Timestamp int64           `json:"timestamp"` // in seconds
	Variation string          `json:"variationType"`
	Track     bool            `json:"trackEvents"`
	Code      string          `json:"errorCode"`
	Details   string          `json:"errorDetails,omitempty"`
	Reason    string          `json:"reason"`
	Metadata  map[string]any  `json:"metadata,omitempty"`
}

// GOFFFlags are all flags of a unit.
type GOFFFlags struct {
	Flags map[string]GOFFFlag `json:"flags"`
	Valid bool                `json:"valid"` // none has an error
}

// A GOFFAnswer is what one flag is.
type GOFFAnswer struct {
	Track     bool            `json:"trackEvents"`
	Variation string          `json:"variationType"`
	Failed    bool            `json:"failed"`
	Version   string          `json:"version"`
	Reason    string          `json:"reason"`
	Code      string          `json:"errorCode"`
	Details   string          `json:"errorDetails,omitempty"`
	Value     json.RawMessage `json:"value"`
	// Cacheable is never true: a client would show what it keeps after a stop, and after the decision has ended.
	Cacheable bool           `json:"cacheable"`
	Metadata  map[string]any `json:"metadata,omitempty"`
}

// Failed is the answer with the client's own value, and why.
func (q *GOFFRequest) Failed(code, details string) GOFFAnswer {
	value := q.Default
	if len(value) == 0 {
		value = json.RawMessage("null")
	}
	return GOFFAnswer{Variation: goffDefault, Failed: true, Reason: "ERROR", Code: code, Details: details, Value: value}
}

// Collected is the body of a request to the collector.
type Collected struct {
	Events []json.RawMessage `json:"events"`
}

// Tracked are the events of kind tracking. The others say that a flag was evaluated, which is known, and count for nothing.
func (c *Collected) Tracked() (out []serve.Event, err error) {
	if n := len(c.Events); c.Events == nil || n > maxCollected {
		return nil, wrong("events", "has %d, must be a list of at most %d", n, maxCollected)
	}
	for i, text := range c.Events {
		v, err := trackedEvent(text)
		if err != nil {
			return nil, at(fmt.Sprintf("events[%d]", i), err)
		}
		if v != nil {
			out = append(out, *v)
		}
	}
	return out, nil
}

// trackedEvent is what an event says, nil if it is not of kind tracking.
func trackedEvent(of []byte) (*serve.Event, error) {
	var raw object
	if json.Unmarshal(of, &raw) != nil || raw == nil {
		return nil, wrong("kind", "is missing: an event must be an object")
	}
	if kind, err := text(raw, "kind"); err != nil || kind != "tracking" {
		return nil, err
	}
	v, err := shape{name: "key", unit: "userKey", numbers: "trackingEventDetails"}.whole(raw)
	if err == nil {
		v.At, err = created(raw)
	}
	return &v, err
}

// created is the latest time that an event's creationDate can mean: its clients round to seconds, and an event
// must not be taken to be before a decision of the same second. As theirs, more than ten digits are milliseconds.
func created(raw object) (t time.Time, err error) {
	of, there := raw["creationDate"]
	var seconds float64
	switch {
	case !there || string(of) == "null":
		return t, nil
	case json.Unmarshal(of, &seconds) != nil || math.Abs(seconds) > 1<<52:
		return t, wrong("creationDate", "must be a time, in seconds since 1970")
	case seconds > 9_999_999_999:
		seconds /= 1000
	}
	return time.UnixMilli(int64(math.Floor(seconds))*1000 + 999), nil
}

// A CollectedAnswer says how many events were taken.
type CollectedAnswer struct {
	Count int `json:"ingestedContentCount"`
}

// A goffError is a refusal in their words.
type goffError struct {
	Message string `json:"message"`
	Field   string `json:"field,omitempty"`
}
