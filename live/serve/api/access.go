package api

import (
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/sotto-dp/sotto/live/serve/compat"
)

// An Access says which requests leave a line in the log.
type Access string

// The levels of an access log. Whatever the level, what reports an outcome leaves no line: rewards, events, reports,
// activations and exposures, with and without success, and what is at no address of ours, since a reward may have
// been meant. Who reads a log would know when somebody reported. Nor has a line how long its request took,
// as a decision that must be durable waits for the commit of rewards; latencies need the scope metrics.
const (
	AccessOff    Access = "off"
	AccessErrors Access = "errors" // those that are answered with a status from 400 on
	AccessAll    Access = "all"
)

// accesses are the levels.
var accesses = []Access{AccessOff, AccessErrors, AccessAll}

// ParseAccess reads a level.
func ParseAccess(text string) (Access, error) {
	if a := Access(text); slices.Contains(accesses, a) {
		return a, nil
	}
	return "", fmt.Errorf("is %q, must be off, errors or all", text)
}

// logged has a route leave lines: when it was asked, by which key, and the status. The address is that of the
// route, without names of units and events.
func (f *front) logged(route string, h http.HandlerFunc) http.HandlerFunc {
	method, path, _ := strings.Cut(route, " ")
	// what is exposed is reported beside what came of it, whatever scope its key has
	exposures := strings.HasSuffix(path, "/exposures") || path == compat.GrowthBookTrack
	if f.Access != AccessErrors && f.Access != AccessAll || exposures {
		return h
	}
	return func(w http.ResponseWriter, r *http.Request) {
		from, out := time.Now(), &answered{ResponseWriter: w, status: http.StatusOK}
		h(out, r)
		if out.silent || f.Access == AccessErrors && out.status < http.StatusBadRequest {
			return
		}
		line := slog.NewRecord(from, slog.LevelInfo, "request", 0)
		line.AddAttrs(slog.String("method", method), slog.String("path", path))
		if name := r.PathValue("name"); name != "" {
			if _, err := f.Engine.Get(r.Context(), name); err == nil { // else it is what somebody wrote
				line.AddAttrs(slog.String("experiment", name))
			}
		}
		if secret, _ := keyOf(r); secret != "" {
			if k := f.Engine.Who(secret); k.ID != 0 {
				line.AddAttrs(slog.Int64("key", k.ID))
			}
		}
		line.AddAttrs(slog.Int("status", out.status))
		_ = f.Log.Handler().Handle(r.Context(), line) // there is nowhere to say that it failed
	}
}

// hush has a request leave no line.
func hush(w http.ResponseWriter) {
	if a, ok := w.(*answered); ok {
		a.silent = true
	}
}
