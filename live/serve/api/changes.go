package api

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/live/serve/page"
)

// What changes of flags, told to OFREP's clients for pages as server-sent events: that they ask again.
//
// What is told, and when, follows from states of experiments that everybody with the key sees, at public
// ticks, and of a unit from the ends of its decisions, which were fixed when they were made. A report
// changes none of it.

// streamPath is where changes are told. The token is in the query, which nothing here logs.
const streamPath = "/ofrep/v1/stream"

// Bounds of streams that are open: of all keys, half of them of one key, which may be that of all visitors of a
// site, and of one unit of a key.
const (
	mostStreams        = 10_000
	mostStreamsOfUnit  = 10
	inactivityDelaySec = 120 // after which a page that nobody sees closes its stream
)

// A streamJSON is where OFREP's clients are told of changes.
type streamJSON struct {
	Type       string `json:"type"`
	URL        string `json:"url"`
	Inactivity int    `json:"inactivityDelaySec"`
}

// streams are those that are open.
type streams struct {
	mu sync.Mutex
	seats
	units map[[8]byte]*followed
	runs  bool
	last  map[string]change // by the one experiment of a key, empty for all
}

// Seats are how many streams are open, in all and of each key. Who counts has a lock.
type seats struct {
	all  int
	keys map[int64]int
}

// free says whether a key may have one more, of so many in all and half of them of one key.
func (s *seats) free(key int64, most int) bool { return s.all < most && s.keys[key] < most/2 }

func (s *seats) take(key int64) {
	if s.keys == nil {
		s.keys = map[int64]int{}
	}
	s.all++
	s.keys[key]++
}

func (s *seats) leave(key int64) {
	s.all--
	if s.keys[key]--; s.keys[key] == 0 {
		delete(s.keys, key)
	}
}

// A change is a version of flags, and the tick since which it is.
type change struct {
	version [8]byte
	since   int64
}

// A followed is a unit of a key, as its streams and its evaluations have it.
type followed struct {
	first     time.Time // when its first decision ends; zero if it has none
	warned    bool      // it was told before that
	followers map[*follower]bool
}

// A follower is an open stream.
type follower struct {
	stream serve.Stream
	key    serve.Key
	has    [8]byte     // the version that it knows of
	in     chan []byte // what is to be written; closed when it is too slow
}

// inBulk says whether an experiment is among the flags of who asks for all.
func inBulk(x *serve.Info) bool {
	d := x.Experiment
	return d.Contextual == nil && !d.Gathering().On() && (!d.Free || d.Activation() > 0) && d.Unit.PerPerson == 0 &&
		x.State != serve.Draft && x.State != serve.Archived
}

// versionOf stands for all that evaluations follow from, but for the unit: states, shares, and arms that are on.
func versionOf(all []serve.Info, k serve.Key) [8]byte {
	h := sha256.New()
	for i := range all {
		x := &all[i]
		if !inBulk(x) || !k.For(x.Experiment.Name) {
			continue
		}
		state, share := x.State, x.Experiment.Share
		if state == serve.Waiting && x.Wait != "start" { // it decides
			state = serve.Running
		}
		if r := x.Ramp(); r != nil {
			share = r.Share
		}
		fmt.Fprintln(h, x.Experiment.Name, state, share, x.Keep, x.Next)
		if of := x.Experiment.Holdout; of != "" {
			fmt.Fprintln(h, slices.ContainsFunc(all, func(x serve.Info) bool {
				return x.Experiment.Name == of && x.State != serve.Stopped && x.State != serve.Archived
			}))
		}
		for _, a := range x.Arms {
			fmt.Fprintln(h, a.Off)
		}
	}
	return [8]byte(h.Sum(nil))
}

// streamFor is where a unit of a key is told of what changes after its evaluations. The open streams of the unit
// go by these from now on.
func (f *front) streamFor(r *http.Request, k serve.Key, all evaluations) streamJSON {
	secret, _ := keyOf(r)
	token, s := f.Engine.NewStream(secret, all.unit, all.ends, versionOf(all.by, k))
	f.streams.mu.Lock()
	if u := f.streams.units[s.Unit]; u != nil && !u.first.Equal(s.First) {
		u.first, u.warned = s.First, false
	}
	f.streams.mu.Unlock()
	at := url.URL{Scheme: "http", Host: r.Host, Path: streamPath, RawQuery: url.Values{"token": {token}}.Encode()}
	if r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https" {
		at.Scheme = "https"
	}
	return streamJSON{"sse", at.String(), inactivityDelaySec}
}

// stream tells who has a token of what changes.
func (f *front) stream(w http.ResponseWriter, r *http.Request) {
	s, ok := f.Engine.OpenStream(r.URL.Query().Get("token"))
	in := &follower{stream: s, has: s.Version, in: make(chan []byte, 4)}
	if ok {
		in.key = f.Engine.Follower(s)
	}
	may := func() bool { return f.Engine.Follower(s).Scopes&serve.ScopeDecide != 0 }
	switch {
	case !ok || !may():
		f.answerTo(w, r, refused(http.StatusUnauthorized, "token", "token is none of an evaluation's eventStreams, or its "+
			"time has passed: evaluate again"))
		return
	case in.key.Scopes&serve.ScopeBrowser != 0 && !f.own(r):
		f.answerTo(w, r, refused(http.StatusForbidden, "", errOrigin.Error()))
		return
	}
	// who comes back says what it was told last
	if b, err := hex.DecodeString(r.Header.Get("Last-Event-ID")); err == nil && len(b) == len(in.has) {
		in.has = [8]byte(b)
	}
	if !f.streams.join(in) {
		w.Header().Set("Retry-After", "30")
		f.answerTo(w, r, refused(http.StatusServiceUnavailable, "", "too many streams are open"))
		return
	}
	defer f.streams.leave(in)
	f.streams.begin(func() {
		page.EachTick(f.ending.Done(), func(at time.Time) bool { return f.tellChanges(at) })
	})
	page.Follow(w, r, in.in, f.Engine, may, f.ending.Done())
}

// join adds a follower, if there is room.
func (s *streams) join(in *follower) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.units == nil {
		s.units, s.last = map[[8]byte]*followed{}, map[string]change{}
	}
	u := s.units[in.stream.Unit]
	if !s.free(in.key.ID, mostStreams) ||
		u != nil && in.stream.Unit != [8]byte{} && len(u.followers) >= mostStreamsOfUnit {
		return false
	}
	if u == nil {
		u = &followed{first: in.stream.First, followers: map[*follower]bool{}}
		s.units[in.stream.Unit] = u
	}
	s.take(in.key.ID)
	u.followers[in] = true
	return true
}

func (s *streams) leave(in *follower) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seats.leave(in.key.ID)
	if u := s.units[in.stream.Unit]; u != nil {
		if delete(u.followers, in); len(u.followers) == 0 {
			delete(s.units, in.stream.Unit)
		}
	}
}

// begin runs what tells the followers, unless it runs.
func (s *streams) begin(run func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.runs {
		s.runs = true
		go run()
	}
}

// tellChanges is one tick: who knows another version, or has a decision that ends before the next tick or has ended since
// the last, is to ask again. It is false if there is nobody, and it is the last.
func (f *front) tellChanges(at time.Time) bool {
	all := f.Engine.List(f.ending)
	here, _, _ := f.Engine.Where()
	s := &f.streams
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == 0 {
		s.runs = false
		return false
	}
	now, tick, versions := f.Engine.Time(), at.Unix(), map[string]change{}
	for _, u := range s.units {
		due := u.due(now)
		for in := range u.followers {
			of := in.key.Experiment
			v, known := versions[of]
			if !known {
				v = change{versionOf(all, in.key), tick}
				if last := s.last[of]; last.version == v.version {
					v = last
				}
				versions[of] = v
			}
			var text []byte
			switch {
			case due || in.has != v.version:
				text, in.has = v.text(), v.version
			case tick%page.BeatEvery == 0:
				text = []byte(":\n\n")
			}
			if here && text == nil {
				continue
			}
			select {
			case in.in <- text:
				if here {
					continue
				}
			default: // it is too slow
			}
			// or who writes now tells them
			close(in.in)
			delete(u.followers, in)
		}
	}
	s.last = versions
	return true
}

// due says whether a unit is to ask again: at the last tick before its first decision ends, and at the first after.
func (u *followed) due(now time.Time) bool {
	switch {
	case u.first.IsZero() || !u.warned && now.Add(page.Tick).Before(u.first):
		return false
	case !now.Before(u.first):
		u.first, u.warned = time.Time{}, false
		return true
	}
	first := !u.warned
	u.warned = true
	return first
}

// text is the event of a version.
func (c change) text() []byte {
	version := hex.EncodeToString(c.version[:])
	data, _ := json.Marshal(struct {
		Type         string `json:"type"`
		ETag         string `json:"etag"`
		LastModified int64  `json:"lastModified"`
	}{"refetchEvaluation", version, c.since}) // it always can be
	return fmt.Appendf(nil, "id: %s\ndata: %s\n\n", version, data)
}
