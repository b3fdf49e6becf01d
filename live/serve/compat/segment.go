package compat

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/sotto-dp/sotto/live/serve"
)

// Segment's HTTP Tracking API, which RudderStack's has too: a batch of messages, of which those of type
// track are events. Their limits, which Segment's documentation states:
const (
	SegmentPath     = "/v1/batch"
	MaxSegmentBatch = 500 << 10 // bytes, without compression
	maxMessage      = 32 << 10  // bytes
	maxMessages     = 2500
)

// A SegmentBatch is the body of a request.
type SegmentBatch struct {
	Messages []json.RawMessage `json:"batch"`
	SentAt   json.RawMessage   `json:"sentAt"`
}

// Events are the messages of type track. A message's time is by the clock of its sender, whose error
// shows where it says when it sent the batch: as their servers do, it is added to what that clock
// says, now less sentAt.
func (b *SegmentBatch) Events(now time.Time) (out []serve.Event, err error) {
	if n := len(b.Messages); n < 1 || n > maxMessages {
		return nil, wrong("batch", "has %d messages, must have from 1 to %d", n, maxMessages)
	}
	sent := now
	if len(b.SentAt) > 0 {
		switch at, err := instant(object{"sentAt": b.SentAt}, "sentAt"); {
		case err != nil:
			return nil, err
		case !at.IsZero():
			sent = at
		}
	}
	for i, text := range b.Messages {
		v, err := segmentEvent(text)
		if err != nil {
			return nil, at(fmt.Sprintf("batch[%d]", i), err)
		}
		if v == nil {
			continue
		}
		if !v.At.IsZero() {
			v.At = v.At.Add(now.Sub(sent))
		}
		out = append(out, *v)
	}
	return out, nil
}

// segmentEvent is what a message says, nil if it is no event.
func segmentEvent(message []byte) (*serve.Event, error) {
	var raw object
	switch {
	case len(message) > maxMessage:
		return nil, wrong("type", "is of a message of %d bytes, must be of one of at most %d", len(message), maxMessage)
	case json.Unmarshal(message, &raw) != nil:
		return nil, wrong("type", "is missing: a message must be an object")
	}
	switch kind, err := text(raw, "type"); {
	case err != nil:
		return nil, err
	case kind == "":
		return nil, wrong("type", "is missing, must say what the message is, such as track")
	case kind != "track":
		return nil, nil
	}
	user, err := text(raw, "userId")
	if err != nil {
		return nil, err
	}
	in := shape{name: "event", unit: "userId", id: "messageId", at: "timestamp", numbers: "properties"}
	if user == "" && raw["anonymousId"] != nil {
		in.unit = "anonymousId"
	}
	if of := raw[in.at]; of == nil || string(of) == "null" {
		in.at = "originalTimestamp"
	}
	v, err := in.whole(raw)
	return &v, err
}

// A SegmentAnswer says whether a batch was taken, and else why not.
type SegmentAnswer struct {
	Success bool   `json:"success"`
	Message string `json:"message,omitempty"`
	Field   string `json:"field,omitempty"`
}
