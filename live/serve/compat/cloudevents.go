package compat

import (
	"encoding/json"
	"mime"

	"github.com/sotto-dp/sotto/live/serve"
)

// CloudEvents reads a body of CloudEvents 1.0 in JSON, one (structured mode) or a batch, by its content type. It leaves
// events nil where that is another.
func CloudEvents(contentType string, body []byte, events *[]map[string]json.RawMessage) error {
	switch kind, _, _ := mime.ParseMediaType(contentType); kind {
	case serve.CloudEventsType:
		*events = make([]map[string]json.RawMessage, 1)
		if json.Unmarshal(body, &(*events)[0]) != nil {
			return wrong("body", "must be a CloudEvent, an object of JSON")
		}
	case "application/cloudevents-batch+json":
		*events = []map[string]json.RawMessage{}
		if json.Unmarshal(body, events) != nil || *events == nil {
			return wrong("body", "must be a batch of CloudEvents, an array of JSON")
		}
	}
	return nil
}

// CloudEvent reads an event of type and subject, the unit, which it may lack. Its numbers are in data.
func CloudEvent(raw map[string]json.RawMessage) (serve.Event, error) {
	for _, field := range []string{"specversion", "id", "source"} {
		of, err := text(raw, field)
		switch {
		case err != nil:
			return serve.Event{}, err
		case of == "":
			return serve.Event{}, wrong(field, "is missing")
		case field == "specversion" && of != serve.CloudEventsVersion:
			return serve.Event{}, wrong(field, "must be %s", serve.CloudEventsVersion)
		}
	}
	v, err := shape{name: "type", unit: "subject", id: "id", at: "time", numbers: "data"}.read(raw)
	source, _ := text(raw, "source")
	v.ID = source + " " + v.ID // which are unique together
	return v, err
}
