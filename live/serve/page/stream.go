package page

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sotto-dp/sotto/live/serve"
)

// Tick is how often open pages are told what is new, and pages count traffic; TickAfter is how long
// after the full second, so that what is released at a public tick is there.
const (
	Tick      = time.Second
	TickAfter = 250 * time.Millisecond
)

const (
	// BeatEvery is how many ticks pass between two heartbeats, which have intermediaries keep the
	// connection open.
	BeatEvery = 15
	// mostOpen bounds the pages that are open at once, of all experiments.
	mostOpen = 10_000
	// keptOpen is how many of these are for who has a key: others see public experiments alone.
	keptOpen = mostOpen / 10
	// mostEvents and mostBytes bound the events of an experiment that can be made up for to who
	// comes back; who was away for longer is sent everything.
	mostEvents = 64
	mostBytes  = 1 << 20
	// writeWithin is how long a reader may take for an event.
	writeWithin = 10 * time.Second
	// askAgain is how often it is asked whether who has a page open may still read it, though no key
	// has changed: a login ends by itself.
	askAgain = 15 * time.Second
)

// A stream is an experiment's pages: what they show, what was sent, and who gets it.
type stream struct {
	mu      sync.Mutex // of what follows
	depends string
	tick    int64 // of the snapshot
	now     *snapshot
	drawn   drawn
	// events are the last, each from one snapshot to the next; first is the number of the first.
	events []event
	first  int
	open   map[*reader]bool
	runs   bool
}

// An event brings a page from a snapshot to the next.
type event struct {
	from, to string
	text     []byte
}

// A reader is an open page.
type reader struct {
	next int         // the number of the event that it gets next
	in   chan []byte // what is to be written; closed when it is too slow
}

func (p *Pages) stream(name string) *stream {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.streams[name]
	if s == nil {
		s = &stream{open: map[*reader]bool{}}
		p.streams[name] = s
	}
	return s
}

// snapshot is what pages of an experiment show: traffic as of this tick, and what else there is as
// of now.
func (p *Pages) snapshot(ctx context.Context, name string) (*snapshot, error) {
	return p.glance(ctx, name, 0)
}

// glance is a snapshot whose traffic may be some ticks old.
func (p *Pages) glance(ctx context.Context, name string, old int64) (*snapshot, error) {
	if _, err := p.cfg.Engine.Get(ctx, name); err != nil {
		return nil, err
	}
	s := p.stream(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	tick := p.cfg.Clock().Add(-TickAfter).Unix()
	if s.now != nil && tick-s.tick <= old {
		tick = s.tick
	}
	err := p.refresh(ctx, s, name, tick)
	return s.now, err
}

// refresh makes the snapshot anew, if there may be something new; s is locked.
func (p *Pages) refresh(ctx context.Context, s *stream, name string, tick int64) error {
	info, err := p.cfg.Engine.Get(ctx, name)
	if err != nil {
		return err
	}
	if depends := dependsOn(info); s.now == nil || s.depends != depends || s.tick != tick {
		next, err := p.make(ctx, s, name)
		if err != nil {
			return err
		}
		s.depends, s.tick = depends, tick
		s.follow(next)
	}
	return nil
}

// follow puts a snapshot in the place of the last, with an event of what changed.
func (s *stream) follow(next *snapshot) {
	last := s.now
	s.now = next
	if last == nil || last.id == next.id {
		return
	}
	s.events = append(s.events, event{last.id, next.id, next.since(last)})
	size, keep := 0, len(s.events)
	for keep > 0 && len(s.events)-keep < mostEvents && size+len(s.events[keep-1].text) <= mostBytes {
		keep--
		size += len(s.events[keep].text)
	}
	s.events = slices.Delete(s.events, 0, keep)
	s.first += keep
}

// make makes a snapshot; s is locked.
func (p *Pages) make(ctx context.Context, s *stream, name string) (*snapshot, error) {
	info, r, data, err := dataOf(ctx, p.cfg.Engine, name, &s.drawn)
	if err != nil {
		return nil, err
	}
	out := &snapshot{info: info, view: viewOf(info, r), data: data, fragments: map[string]string{}}
	if of := dependsOn(info); s.drawn.actsOf != of {
		if s.drawn.acts, err = p.cfg.Engine.Acts(ctx, name); err != nil {
			return nil, err
		}
		s.drawn.actsOf = of
	}
	out.acts = s.drawn.acts
	out.view.History = historyOf(out.acts, &info, false)
	for i := range out.view.Arms {
		out.view.Arms[i].Why = whyOf(out.view.History, out.view.Arms[i])
	}
	if out.view.Privacy.Entries, err = p.entriesAtEnd(ctx, info); err != nil {
		return nil, err
	}
	all := p.templates["experiment.html"]
	for _, t := range all.Templates() {
		if !strings.HasPrefix(t.Name(), "live-") {
			continue
		}
		var b bytes.Buffer
		if err := all.ExecuteTemplate(&b, t.Name(), out.view); err != nil {
			return nil, err
		}
		out.fragments[t.Name()] = b.String()
	}
	text, err := json.Marshal(Update{out.fragments, data})
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	out.id = hex.EncodeToString(sum[:8])
	out.data.ID = out.id
	return out, nil
}

// An Update is what an event says.
type Update struct {
	// HTML are the fragments that changed, by the ids of their elements.
	HTML map[string]string `json:"html"`
	Data *Data             `json:"data"`
}

// since is the event that brings a page from last to s, or to s from nothing.
func (s *snapshot) since(last *snapshot) []byte {
	fragments, data := maps.Clone(s.fragments), *s.data
	if last != nil {
		maps.DeleteFunc(fragments, func(name, text string) bool { return last.fragments[name] == text })
		data.Course = nil
		data.Hours, data.Days = data.Hours.since(last.data.Hours), data.Days.since(last.data.Days)
		if data.Early != nil && last.data.Early != nil {
			early := data.Early.since(*last.data.Early)
			data.Early = &early
		}
		for i, c := range s.data.Course {
			var before [][6]float64
			if i < len(last.data.Course) {
				before = last.data.Course[i].Points
			}
			for c.From < min(len(before), len(c.Points)) && before[c.From] == c.Points[c.From] {
				c.From++
			}
			if c.From < max(len(c.Points), len(before)) {
				c.Points = c.Points[c.From:]
				data.Course = append(data.Course, c)
			}
		}
	}
	out := bytes.NewBufferString("id: " + s.id + "\nevent: update\ndata: ")
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	_ = e.Encode(Update{fragments, &data}) // of text and finite numbers
	return append(out.Bytes(), '\n')
}

// Events sends what is new of an experiment, as server-sent events, to a page that has what it was
// made with (?from=) or the event that it got last (Last-Event-ID).
func (p *Pages) Events(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	if _, err := p.snapshot(r.Context(), name); err != nil {
		return err
	}
	has := r.Header.Get("Last-Event-ID")
	if has == "" {
		has = r.URL.Query().Get("from")
	}
	most := int64(mostOpen)
	if k, _ := serve.By(r.Context()); k.Scopes == 0 {
		most -= keptOpen
	}
	if p.open.Add(1) > most {
		p.open.Add(-1)
		return &FieldError{http.StatusServiceUnavailable, "", "too many pages are open"}
	}
	defer p.open.Add(-1)
	in := p.join(name, has)
	defer p.leave(name, in)
	Follow(w, r, in.in, p.cfg.Engine, func() bool { return p.cfg.May(r) }, p.ended)
	return nil
}

// Follow sends what comes in as server-sent events, until in or ended is closed, the reader has gone or is
// too slow, or may says no: that is asked again when a key changes, and now and then.
func Follow(w http.ResponseWriter, r *http.Request, in <-chan []byte, e *serve.Engine, may func() bool,
	ended <-chan struct{}) {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // of a proxy
	w = Streaming(w)
	c := http.NewResponseController(w)
	send := func(text []byte) bool {
		_, err := w.Write(text)
		return err == nil && c.Flush() == nil
	}
	if !send([]byte("retry: 2000\n\n")) {
		return
	}
	// A key that was revoked since the request was let in is seen here, and one that is from now on
	// by the channel.
	changed := e.KeysChanged()
	asked := time.Now()
	if !may() {
		return
	}
	for {
		var text []byte
		open := true
		select {
		case text, open = <-in:
		case <-changed:
		case <-ended:
			return
		case <-r.Context().Done():
			return
		}
		select {
		case <-changed:
			changed, asked = e.KeysChanged(), time.Time{}
		default:
		}
		if time.Since(asked) >= askAgain {
			open, asked = open && may(), time.Now()
		}
		if !open || len(text) > 0 && !send(text) {
			return
		}
	}
}

// Streaming is a response that lasts, whatever the server's timeouts: each of its writes may
// take its time anew.
func Streaming(w http.ResponseWriter) http.ResponseWriter {
	c := http.NewResponseController(w)
	_ = c.SetReadDeadline(time.Time{}) // or the request would end with it; a test's has none
	return streaming{w, c}
}

type streaming struct {
	http.ResponseWriter
	c *http.ResponseController
}

func (s streaming) Write(b []byte) (int, error) {
	_ = s.c.SetWriteDeadline(time.Now().Add(writeWithin))
	return s.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (s streaming) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// join adds a reader, who has a snapshot or nothing that is known.
func (p *Pages) join(name, has string) *reader {
	s := p.stream(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	in := &reader{in: make(chan []byte, 4), next: s.first + len(s.events)}
	if at := slices.IndexFunc(s.events, func(e event) bool { return e.from == has }); at >= 0 {
		var text []byte
		for _, e := range s.events[at:] {
			text = append(text, e.text...)
		}
		in.in <- text
	} else if s.now.id != has {
		in.in <- s.now.since(nil)
	}
	s.open[in] = true
	if !s.runs {
		s.runs = true
		go EachTick(p.ended, func(at time.Time) bool { return p.tell(name, s, at.Unix()) })
	}
	return in
}

func (p *Pages) leave(name string, in *reader) {
	s := p.stream(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, in)
}

// EachTick does something a little after each public tick, until that says no or ended is closed.
func EachTick(ended <-chan struct{}, do func(at time.Time) bool) {
	for {
		now := time.Now()
		next := now.Add(-TickAfter).Truncate(Tick).Add(Tick + TickAfter)
		timer := time.NewTimer(next.Sub(now))
		select {
		case <-ended:
			timer.Stop()
			return
		case at := <-timer.C:
			if !do(at) {
				return
			}
		}
	}
}

// tell tells the open pages of an experiment what is new at a tick; false if there are none, and it is the last.
func (p *Pages) tell(name string, s *stream, tick int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.open) == 0 {
		s.runs = false
		return false
	}
	// they come back, maybe to another
	if err := p.refresh(context.Background(), s, name, tick); err != nil {
		if !errors.Is(err, serve.ErrUnavailable) {
			p.cfg.Log.Error("open pages cannot be told what is new", "experiment", name, "error", err)
		}
		for in := range s.open {
			close(in.in)
		}
		clear(s.open)
		s.runs = false
		return false
	}
	last := s.first + len(s.events)
	texts := map[int][]byte{} // by the number of the first event
	for in := range s.open {
		text, made := texts[in.next]
		if !made {
			switch {
			case in.next < s.first:
				text = s.now.since(nil)
			default:
				for _, e := range s.events[in.next-s.first:] {
					text = append(text, e.text...)
				}
			}
			if len(text) == 0 && tick%BeatEvery == 0 {
				text = []byte(":\n\n")
			}
			texts[in.next] = text
		}
		in.next = last
		if len(text) == 0 {
			continue
		}
		select {
		case in.in <- text:
		default: // it is too slow
			close(in.in)
			delete(s.open, in)
		}
	}
	return true
}
