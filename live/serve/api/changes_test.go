package api

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/live/serve"
)

// streamOf is the address of the stream that a unit's evaluation has.
func (w *world) streamOf(unit string) string {
	w.t.Helper()
	var out struct {
		Streams []streamJSON `json:"eventStreams"`
	}
	text := w.want(200, "POST", allFlags, fmt.Sprintf(`{"context": {"targetingKey": %q}}`, unit))
	if err := json.Unmarshal([]byte(text), &out); err != nil || len(out.Streams) != 1 || out.Streams[0].Type != "sse" ||
		out.Streams[0].Inactivity != 120 {
		w.t.Fatal(text, err)
	}
	path, ok := strings.CutPrefix(out.Streams[0].URL, "http://example.com")
	if !ok {
		w.t.Fatal(out.Streams[0].URL)
	}
	return path
}

// follows opens the stream of a unit's evaluation, without what sends it.
func (w *world) follows(unit string) *follower {
	w.t.Helper()
	_, token, _ := strings.Cut(w.streamOf(unit), "?token=")
	s, ok := w.engine.OpenStream(token)
	in := &follower{stream: s, key: w.engine.Follower(s), has: s.Version, in: make(chan []byte, 4)}
	if !ok || !w.front.streams.join(in) {
		w.t.Fatal("the stream cannot be opened")
	}
	return in
}

// told is what followers are told at the next tick.
func (w *world) told(in ...*follower) (out string) {
	w.pass(time.Second)
	w.front.tellChanges(w.clock.Now())
	for i, one := range in {
		select {
		case text, open := <-one.in:
			out += fmt.Sprintf("%d %v %s", i, open, text)
		default:
		}
	}
	return out
}

const refetch = "refetchEvaluation"

// A stream tells, at the tick and once, that an experiment was paused, goes on, has lost an arm or has stopped,
// and of a unit that its decision ends, before and after; and nothing when others decide or report.
func TestChangesAreTold(t *testing.T) {
	w := newWorld(t)
	w.want(201, "POST", "/v1/experiments", strings.NewReplacer("assignments: 1", "assignments: 3",
		"arms: [", "arms: [green, ").Replace(shop))
	w.want(200, "POST", "/v1/experiments/shop/start", "")
	ann := w.follows("ann")
	tells := func(what string, want bool) {
		t.Helper()
		if got := w.told(ann); strings.Contains(got, refetch) != want {
			t.Errorf("%s: %q", what, got)
		}
	}
	tells("nothing", false)
	w.want(200, "POST", "/v1/experiments/shop/rewards", reward(*w.decide("bob").Decision, "1"))
	tells("a reward", false)
	w.want(200, "POST", "/v1/experiments/shop/pause", "")
	tells("pause", true)
	tells("pause, again", false)
	w.want(200, "POST", "/v1/experiments/shop/resume", "")
	tells("resume", true)
	for range 52 { // 57 s are over
		tells("the window is open", false)
	}
	tells("it ends", false)
	tells("it ends in a second", true)
	tells("it has ended", true)
	tells("it had ended", false)
	before := ann.stream.First
	w.streamOf("ann") // the page evaluates again
	if u := w.front.streams.units[ann.stream.Unit]; !u.first.After(before) {
		t.Errorf("the stream goes by %v, which was before", u.first)
	}
	w.want(200, "PATCH", "/v1/experiments/shop", `{"off": ["green"]}`)
	told := w.told(ann) + w.told(ann) + w.told(ann)
	if strings.Count(told, refetch) != 1 {
		t.Errorf("an arm that is removed: %q", told)
	}
	w.want(200, "POST", "/v1/experiments/shop/stop", `{"keep": "blue", "now": true, "confirm": "shop"}`)
	tells("stop", true)
	if late := w.follows("ann"); strings.Contains(w.told(late), refetch) {
		t.Error("who opens a stream after the stop is told of it")
	}
}

// What changed between an evaluation and the opening of its stream is told at the next tick, and not again to who
// comes back and knows it.
func TestChangesMeanwhile(t *testing.T) {
	w := shopOpen(t)
	path := w.streamOf("ann")
	w.want(200, "POST", "/v1/experiments/shop/pause", "")
	_, token, _ := strings.Cut(path, "?token=")
	s, _ := w.engine.OpenStream(token)
	in := &follower{stream: s, has: s.Version, in: make(chan []byte, 4)}
	w.front.streams.join(in)
	if got := w.told(in); !strings.Contains(got, refetch) {
		t.Errorf("%q", got)
	}
}

// Of two worlds, in one of which ann reports, every stream has the same bytes at the same ticks; and a broken copy,
// which tells after a report, is found.
func TestChangesTwoWorlds(t *testing.T) {
	told := func(reports, broken bool) string {
		w := shopOpen(t)
		token := *w.decide("ann").Decision
		in := []*follower{w.follows("ann"), w.follows("bob")}
		var out strings.Builder
		for second := range 90 {
			if reports && second%30 == 5 {
				w.want(200, "POST", "/v1/experiments/shop/rewards", reward(token, "1"))
				if broken {
					in[1].has = [8]byte{}
				}
			}
			if second > 5 && second < 40 {
				w.decide(fmt.Sprint("unit ", second))
			}
			if second == 80 {
				w.want(200, "POST", "/v1/experiments/shop/stop", `{"keep": "leader"}`)
			}
			fmt.Fprintln(&out, second, w.told(in...))
		}
		return out.String()
	}
	want := told(false, false)
	if strings.Count(want, refetch) < 4 {
		t.Errorf("too little is told:\n%s", want)
	}
	differ(t, told(true, false), want)
	if told(true, true) == want {
		t.Error("the broken copy was not found")
	}
}

// A stream is refused by its token alone, and there is a bound for a unit and a key.
func TestStreamsAreBounded(t *testing.T) {
	w := shopOpen(t)
	path := w.streamOf("ann")
	refuses := func(what, path string, status int, header ...string) {
		t.Helper()
		if out := w.ask("GET", path, "", header...); out.Code != status {
			t.Errorf("%s: %d %s", what, out.Code, out.Body)
		}
	}
	admin := w.key
	w.key = ""
	refuses("no token", streamPath, 401)
	refuses("a changed token", path[:len(path)-2]+"AA", 401)
	refuses("a key", streamPath+"?token="+admin, 401)
	w.key = admin
	for range mostStreamsOfUnit {
		w.follows("ann")
	}
	refuses("too many of a unit", path, 503)
	for i := w.front.streams.all; i < mostStreams/2; i++ {
		if !w.front.streams.join(&follower{stream: serve.Stream{Unit: [8]byte{1, byte(i), byte(i >> 8)}}, key: serve.Key{ID: 1}}) {
			t.Fatal(i)
		}
	}
	refuses("too many of a key", w.streamOf("bob"), 503)
	w.clock.Add(11 * time.Minute)
	refuses("an old token", path, 401)
	browser := w.keyWith(browserScopes)
	w.key = browser
	unit, cookie, err := w.engine.NewCookie()
	if err != nil || unit == "" {
		t.Fatal(err)
	}
	out := w.ask("POST", allFlags, `{"context": {}}`, "Cookie", (&http.Cookie{Name: cookieName, Value: cookie}).String())
	_, token, _ := strings.Cut(out.Body.String(), "?token=")
	token, _, _ = strings.Cut(token, `"`)
	refuses("a page of another origin", streamPath+"?token="+token, 403, "Origin", "https://other.example")
	if strings.Contains(w.log.String(), "token=") {
		t.Errorf("the log has %s", w.log.String())
	}
}

// A reader who is too slow is dropped, and nobody waits for it.
func TestSlowFollower(t *testing.T) {
	w := shopOpen(t)
	slow, quick := w.follows("ann"), w.follows("bob")
	for i := range 6 {
		w.want(200, "POST", "/v1/experiments/shop/"+[]string{"pause", "resume"}[i%2], "")
		if got := w.told(quick); !strings.Contains(got, refetch) {
			t.Errorf("change %d: %q", i, got)
		}
	}
	n := 0
	for range slow.in {
		n++
	}
	if n != cap(slow.in) {
		t.Errorf("%d are told to who does not read, must be %d, and the end", n, cap(slow.in))
	}
}

// A stream over HTTP ends when its key is revoked, and when the service ends.
func TestStreamEnds(t *testing.T) {
	for _, how := range []string{"key", "service"} {
		w := shopOpen(t)
		admin := w.key
		w.key = w.keyWith(serve.ScopeDecide)
		service := httptest.NewServer(w.front)
		out, err := http.Get(service.URL + w.streamOf("ann"))
		if err != nil || out.StatusCode != 200 || out.Header.Get("Content-Type") != "text/event-stream" {
			t.Fatal(out, err)
		}
		lines := bufio.NewScanner(out.Body)
		lines.Scan()
		w.want(200, "POST", "/v1/experiments/shop/pause", "", "X-API-Key", admin)
		for lines.Scan() && !strings.Contains(lines.Text(), refetch) {
		}
		if how == "key" {
			all := w.engine.Keys()
			err = w.engine.RevokeKey(t.Context(), all[len(all)-1].ID)
		} else {
			w.front.end()
		}
		ended := make(chan bool)
		go func() {
			for lines.Scan() {
			}
			close(ended)
		}()
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			t.Errorf("%s: the stream goes on", how)
		}
		_ = out.Body.Close()
		service.Close()
		if err != nil {
			t.Error(err)
		}
	}
}

// Who refuses consent is told of no stream, and who has no name has no end of a decision: all of these would share one.
func TestStreamsOfNobody(t *testing.T) {
	w := shopOpen(t)
	if got := w.want(200, "POST", allFlags, `{"context": {"targetingKey": "ann", "consent": false}}`); strings.Contains(got, "eventStreams") {
		t.Error(got)
	}
	for _, unit := range []string{"", "ann"} {
		ends := w.clock.Now().Add(time.Minute)
		token, made := w.engine.NewStream(w.key, unit, ends, [8]byte{1})
		s, ok := w.engine.OpenStream(token)
		if named := unit != ""; !ok || (s.Unit != [8]byte{}) != named || s.First.IsZero() == named || made.First.IsZero() == named {
			t.Errorf("%q: %v %+v", unit, ok, s)
		}
	}
}
