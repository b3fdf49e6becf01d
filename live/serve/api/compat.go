package api

import (
	"compress/gzip"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/live/serve/compat"
)

// Other people's bodies, which package compat reads: what they report counts as events of POST /v1/track do,
// and is taken, wherever it counts, when that is durable.

// accept takes events that name units freely, of any number.
func (f *front) accept(r *http.Request, events []serve.Event) error {
	for some := range slices.Chunk(events, serve.MaxEvents) {
		if err := f.take(r, some); err != nil {
			return err
		}
	}
	if len(events) > 0 {
		return nil
	}
	return f.take(r, nil) // waits as long
}

// foreign is a body of another protocol, and a key that may name units.
func (f *front) foreign(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if k, _ := serve.By(r.Context()); k.Scopes&serve.ScopeBrowser != 0 {
		return nil, refused(http.StatusForbidden, "", "a key of the scope browser names no units: send signed ones to "+
			"/v1/track")
	}
	if r.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(http.MaxBytesReader(w, r.Body, limit))
		if err != nil {
			return nil, refused(http.StatusBadRequest, "", "the body is not what its Content-Encoding, gzip, says")
		}
		r.Body = struct {
			io.Reader
			io.Closer
		}{z, r.Body}
		r.ContentLength = -1 // which was of what came
	}
	return body(w, r, limit)
}

// time is the clock by which clients tell the time.
func (f *front) time() time.Time {
	if f.clock != nil {
		return f.clock()
	}
	return time.Now()
}

func (f *front) segment(w http.ResponseWriter, r *http.Request) (any, error) {
	var in compat.SegmentBatch
	data, err := f.foreign(w, r, compat.MaxSegmentBatch)
	if err != nil {
		return nil, err
	}
	if err := decodeInto(data, &in, false); err != nil {
		return nil, err
	}
	events, err := in.Events(f.time())
	if err != nil {
		return nil, err
	}
	return compat.SegmentAnswer{Success: true}, f.accept(r, events)
}
