package compat

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/live/serve"
)

// reads has events that are whole, and errors that name a field and say nothing of its value, 731.
func reads(t *testing.T, body string, events []serve.Event, err error) {
	t.Helper()
	if err != nil {
		var of *keyed.Error
		if len(events) > 0 || !errors.As(err, &of) || of.Field == "" || len(of.Error()) > 200 || strings.Contains(of.Error(), "731") {
			t.Errorf("%q: %v", body, err)
		}
		return
	}
	for _, v := range events {
		if err := v.Check(); err != nil || v.ID == "" {
			t.Errorf("%q: %+v: %v", body, v, err)
		}
		for _, x := range v.Fields {
			if math.IsNaN(x) || math.IsInf(x, 0) {
				t.Errorf("%q: %+v", body, v)
			}
		}
	}
}

func FuzzSegment(f *testing.F) {
	for _, s := range []string{`{}`, `{"batch":null}`, `{"batch":[{"type":"track","userId":"x","event":"y","messageId":"731","properties":{"a":731}}]}`,
		`{"batch":[{"type":"page"}],"sentAt":"2026-01-31T09:00:00Z"}`, `{"batch":[{"type":"track","anonymousId":"x","event":731}]}`,
		`{"batch":[{"type":"track","userId":"x","event":"y","timestamp":731e300,"properties":{"value":"731"}}],"sentAt":731}`,
		`{"batch":[{"type":"track","":"731"}]}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) {
		var in SegmentBatch
		if json.Unmarshal([]byte(body), &in) == nil {
			events, err := in.Events(time.UnixMilli(1e12))
			reads(t, body, events, err)
		}
	})
}

func FuzzCollector(f *testing.F) {
	for _, s := range []string{`{}`, `{"events":null}`, `{"events":[{"kind":"tracking","key":"x","userKey":"y","creationDate":1731000000}]}`,
		`{"events":[{"kind":"feature"},{"kind":"tracking","key":"x","userKey":"y","trackingEventDetails":{"value":"731"}}]}`,
		`{"events":[{"kind":"tracking","key":"x","userKey":"y","creationDate":731e300}]}`, `{"events":[731]}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) {
		var in Collected
		if json.Unmarshal([]byte(body), &in) == nil {
			events, err := in.Tracked()
			reads(t, body, events, err)
		}
	})
}
