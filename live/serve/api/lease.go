package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/sotto-dp/sotto/internal/keyed"
	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/live/serve/page"
)

// Leased decisions: the plan by which clients decide, and the exposures that they report. Exposures have a body of
// their own, which has no place for an event, and bodies of events have none for them.

const (
	mostWait   = 15 * time.Second // for another plan; who passes the request on waits 20 s for an answer to begin
	aliveEvery = 15 * time.Second // a stream says that it is there
	mostPlans  = 4096             // streams at a time, and half of them of one key
)

// A planned is a plan as it is sent, and its entity tag.
type planned struct {
	text    []byte
	tag     string
	changed <-chan struct{}
}

func (f *front) planOf(r *http.Request) (out planned, err error) {
	p, changed, err := f.Engine.Plan(r.Context(), r.PathValue("name"))
	if err != nil {
		return out, err
	}
	if out.text, err = json.Marshal(p); err != nil {
		return out, err
	}
	out.tag, out.changed = tagOf(out.text), changed
	return out, nil
}

// plan answers with the plan: at once, when it is another than that of If-None-Match, or as a stream.
func (f *front) plan(w http.ResponseWriter, r *http.Request) (any, error) {
	if streamsPlan(r) {
		return nil, f.streamPlan(w, r)
	}
	wait, err := waitOf(r)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), wait)
	defer cancel()
	for {
		p, err := f.planOf(r)
		if err != nil {
			return nil, err
		}
		h := w.Header()
		switch h.Set("ETag", p.tag); {
		case !has(r, p.tag):
			h.Set("Content-Type", "application/json")
			_, _ = w.Write(append(p.text, '\n')) // who has gone is told nothing
			return nil, nil
		case wait > 0:
			select {
			case <-p.changed:
				continue
			case <-ctx.Done():
				wait = 0
				continue
			case <-f.ending.Done():
			}
		}
		w.WriteHeader(http.StatusNotModified)
		return nil, nil
	}
}

// waitOf is how long a request waits for another plan.
func waitOf(r *http.Request) (time.Duration, error) {
	text := r.URL.Query().Get("wait")
	if text == "" {
		return 0, nil
	}
	wait, err := time.ParseDuration(text)
	if err != nil || wait < 0 || wait > mostWait {
		return 0, refused(http.StatusBadRequest, "wait", fmt.Sprintf("wait must be a duration from 0s to %v, such as 10s",
			mostWait))
	}
	return wait, nil
}

// streamsPlan says whether a request is for a stream of plans, which has no end.
func streamsPlan(r *http.Request) bool {
	return strings.HasSuffix(r.URL.Path, "/plan") && strings.Contains(r.Header.Get("Accept"), "text/event-stream")
}

// waitsForPlan says whether a request is for another plan, which may be a while.
func waitsForPlan(r *http.Request) bool {
	return strings.HasSuffix(r.URL.Path, "/plan") && r.URL.Query().Has("wait")
}

// planFollowers are the streams of plans that are open, by key.
type planFollowers struct {
	sync.Mutex
	seats
}

// join adds one, if there is room.
func (p *planFollowers) join(key int64) bool {
	p.Lock()
	defer p.Unlock()
	if !p.free(key, mostPlans) {
		return false
	}
	p.take(key)
	return true
}

func (p *planFollowers) leave(key int64) {
	p.Lock()
	defer p.Unlock()
	p.seats.leave(key)
}

// streamPlan sends the plan, and each that follows it, as server-sent events, while the key is good.
func (f *front) streamPlan(w http.ResponseWriter, r *http.Request) error {
	k, _ := serve.By(r.Context())
	if !f.following.join(k.ID) {
		return refused(http.StatusServiceUnavailable, "", "too many clients follow plans: ask with wait")
	}
	defer f.following.leave(k.ID)
	p, err := f.planOf(r)
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // of a proxy
	w = page.Streaming(w)
	c := http.NewResponseController(w)
	alive := time.NewTicker(aliveEvery)
	defer alive.Stop()
	for last := r.Header.Get("Last-Event-ID"); ; {
		text := ":\n\n"
		if p.tag != last {
			text, last = fmt.Sprintf("event: plan\nid: %s\ndata: %s\n\n", p.tag, p.text), p.tag
		}
		if _, err := w.Write([]byte(text)); err != nil || c.Flush() != nil {
			return nil
		}
		rekeyed := f.Engine.KeysChanged()
		if _, err := f.may(r, serve.ScopeDecide); err != nil {
			return nil
		}
		select {
		case <-p.changed:
		case <-rekeyed:
		case <-alive.C:
		case <-r.Context().Done():
			return nil
		case <-f.ending.Done():
			return nil
		}
		if p, err = f.planOf(r); err != nil {
			return nil // it is somebody else's now, or is gone: who follows asks again, and is told
		}
	}
}

type exposureRequest struct {
	Exposures []struct {
		Experiment   string `json:"experiment"`
		TargetingKey string `json:"targetingKey"`
		Epoch        uint64 `json:"epoch"`
		Arm          string `json:"arm"`
		Hash         string `json:"hash"`
	} `json:"exposures"`
}

func (q *exposureRequest) check() error {
	if n := len(q.Exposures); n < 1 || n > serve.MaxExposures {
		return refused(http.StatusBadRequest, "exposures", fmt.Sprintf("exposures has %d, must have from 1 to %d", n,
			serve.MaxExposures))
	}
	for i, v := range q.Exposures {
		if strings.ContainsRune(v.TargetingKey, utf8.RuneError) { // others would be the same unit
			return atItem("exposures", i, refused(http.StatusBadRequest, "targetingKey",
				"targetingKey must be Unicode, without U+FFFD"))
		}
	}
	return nil
}

// atItem places what is wrong with an item of a list.
func atItem(list string, i int, err error) error {
	var p *problem
	if !errors.As(err, &p) {
		var of *keyed.Error
		if !errors.As(err, &of) {
			return err
		}
		p = refused(http.StatusBadRequest, of.Field, of.Error())
	}
	p.Field = fmt.Sprintf("%s[%d].%s", list, i, p.Field)
	return p
}

// expose takes exposures: 202 when what they did is durable, whatever that is.
func (f *front) expose(w http.ResponseWriter, r *http.Request) (any, error) {
	var in exposureRequest
	if err := read(w, r, maxBatch, &in); err != nil {
		return nil, err
	}
	all, units := make([]serve.Exposure, len(in.Exposures)), make([]*string, len(in.Exposures))
	for i, v := range in.Exposures {
		all[i] = serve.Exposure{Experiment: v.Experiment, Unit: v.TargetingKey, Epoch: v.Epoch, Arm: v.Arm, Hash: v.Hash}
		units[i] = &all[i].Unit
	}
	counts, err := f.named(r, "exposures", units)
	if err != nil {
		return nil, err
	}
	for i, v := range all {
		if err := v.Check(); err != nil {
			return nil, atItem("exposures", i, err)
		}
	}
	if err := f.Engine.Expose(r.Context(), all, func(i int) bool { return counts(i, all[i].Experiment) }); err != nil {
		return nil, err
	}
	write(w, http.StatusAccepted, "application/json", struct{}{})
	return nil, nil
}
