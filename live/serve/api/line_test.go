package api

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/live/serve"
	"github.com/sotto-dp/sotto/live/serve/store"
)

// lined is a front whose answers are another's, and the database that it says it is on. The engine of a
// store that is not shared has none, so this one is taken from it.
func lined(t *testing.T) (*front, *httptest.Server) {
	t.Helper()
	e, err := serve.Open(t.Context(), serve.Config{Store: store.NewMemory().Open})
	if err != nil {
		t.Fatal(err)
	}
	f := Handler(Config{Engine: e}).(*front)
	s := httptest.NewServer(f)
	t.Cleanup(func() {
		f.end()
		s.Close()
		_ = e.Close()
	})
	return f, s
}

// Frames that come one by one, in halves, or many at once are the same frames, and each call has its answer.
func TestLineOfManyAtOnce(t *testing.T) {
	one, other := net.Pipe()
	l := &line{conn: one, calls: map[uint64]*call{}}
	l.out.to = one
	go l.listen()
	go func() { // says back what it is sent, the last first
		out := &sender{to: other}
		var mu sync.Mutex
		var last [][]byte
		_ = frames(bufio.NewReader(other), maxFrame, func(b []byte) error {
			mu.Lock()
			defer mu.Unlock()
			if last = append(last, b); len(last) < 4 {
				return nil
			}
			for _, b := range slices.Backward(last) {
				in := fields{rest: b}
				id := in.number()
				_, uri, _ := in.text(), in.text(), in.text()
				if err := out.send(func(b []byte) []byte {
					b = binary.AppendUvarint(binary.AppendUvarint(b, id), 201)
					b = appendField(appendField(b, "X-Of"), uri)
					b = append(appendField(b, ""), uri...)
					if len(uri) == 400 { // an answer may be longer than any request
						b = append(b, make([]byte, 2*maxFrame)...)
					}
					return b
				}); err != nil {
					return err
				}
			}
			last = nil
			return nil
		})
	}()
	var group sync.WaitGroup
	for i := range 400 {
		group.Go(func() {
			r := httptest.NewRequest("POST", "/"+strings.Repeat("x", i), nil)
			w := httptest.NewRecorder()
			if !l.pass(w, r, []byte("body"), "10.0.0.1") || w.Code != 201 ||
				strings.TrimRight(w.Body.String(), "\x00") != r.URL.Path || i == 399 && w.Body.Len() < maxFrame ||
				w.Header().Get("X-Of") != r.URL.Path {
				t.Errorf("%d: %d, %d bytes", i, w.Code, w.Body.Len())
			}
		})
	}
	group.Wait()
	// when the line ends who waits has no answer, and nobody is answered after
	waits := make(chan bool)
	go func() { waits <- l.pass(httptest.NewRecorder(), httptest.NewRequest("POST", "/", nil), nil, "") }()
	time.Sleep(10 * time.Millisecond)
	_ = other.Close()
	if <-waits || l.pass(httptest.NewRecorder(), httptest.NewRequest("POST", "/", nil), nil, "") {
		t.Error("there is an answer of nobody")
	}
}

// A gated connection says that it is to write, and does when it is let.
type gated struct {
	net.Conn
	asks, let chan struct{}
}

func (g gated) Write(b []byte) (int, error) {
	g.asks <- struct{}{}
	<-g.let
	return g.Conn.Write(b)
}

// What comes while a group is written is not written into it, also after a group so large that its memory is not
// kept: each request is answered as its own, with its own key.
func TestLineAfterALargeGroup(t *testing.T) {
	one, other := net.Pipe()
	g := gated{one, make(chan struct{}), make(chan struct{})}
	l := &line{conn: g, calls: map[uint64]*call{}}
	l.out.to = g
	go l.listen()
	go func() { // says whose key came with which body
		out := &sender{to: other}
		_ = frames(bufio.NewReader(other), maxFrame, func(b []byte) error {
			in, h := fields{rest: b}, http.Header{}
			id := in.number()
			_, _, _ = in.text(), in.text(), in.text()
			in.header(h)
			return out.send(func(b []byte) []byte {
				b = appendField(binary.AppendUvarint(binary.AppendUvarint(b, id), 200), "")
				return append(append(b, h.Get("X-Api-Key")...), in.rest[:min(len(in.rest), 9)]...)
			})
		})
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	context.AfterFunc(ctx, l.end)
	var group sync.WaitGroup
	pass := func(key, body string) {
		before := l.waiting()
		group.Go(func() {
			r, w := httptest.NewRequestWithContext(ctx, "POST", "/v1/track", nil), httptest.NewRecorder()
			r.Header.Set("X-API-Key", key)
			if ok, want := l.pass(w, r, []byte(body), "10.0.0.1"), key+body[:min(len(body), 9)]; !ok || w.Body.String() != want {
				t.Errorf("%v %q, must be %q", ok, w.Body, want)
			}
		})
		for key != "first" && l.waiting() == before && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
	}
	writes := func() {
		select {
		case <-g.asks:
		case <-ctx.Done():
			close(g.let) // the line has ended
			t.Fatal("the next write does not come")
		}
	}
	pass("first", strings.Repeat("f", 900))
	writes()
	for range 20 { // more than a frame is kept for
		pass("large", strings.Repeat("l", 60<<10))
	}
	g.let <- struct{}{}
	writes()
	pass("ann", "ann pays!")
	g.let <- struct{}{}
	writes()
	pass("bob", "bob pays!")
	g.let <- struct{}{}
	writes()
	g.let <- struct{}{}
	group.Wait()
}

// waiting is how much the next write has.
func (l *line) waiting() int {
	l.out.mu.Lock()
	defer l.out.mu.Unlock()
	return len(l.out.next)
}

// What is said on a line is what is said over HTTP, and what only the process may say that passes a request on is
// taken from nobody else.
func TestLineIsHTTP(t *testing.T) {
	f, _ := lined(t)
	for _, c := range []struct {
		method, path, body string
		header             http.Header
	}{
		{"POST", "/v1/experiments/none/decisions", `{}`, nil},
		{"POST", "/v1/track", `{"events": []}`, http.Header{"X-Api-Key": {"none"}, "Origin": {"http://there"}}},
		{"POST", "/nothing?a=b;c", "", nil},
		{"POST", "/v1/experiments/shop/rewards", strings.Repeat(" ", 5<<10), http.Header{"Connection": {"X-Api-Key"}}},
	} {
		over := httptest.NewRecorder()
		r := httptest.NewRequest(c.method, c.path, strings.NewReader(c.body))
		maps.Copy(r.Header, c.header)
		f.ServeHTTP(over, r)

		b := binary.AppendUvarint(nil, 7)
		b = appendField(appendField(appendField(b, c.method), c.path), r.Host)
		for _, name := range []string{passedFrom, "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
			b = appendField(appendField(b, name), "")
		}
		b = append(appendHeader(b, r.Header, keptBack(http.Header{})), c.body...)
		var out bytes.Buffer
		// without a database, which is how this front is asked by nobody
		if err := f.answerFrame(&sender{to: &out}, r.RemoteAddr, "", b); err != nil {
			t.Fatal(err)
		}
		in := fields{rest: out.Bytes()[4:]}
		id, status, h := in.number(), in.number(), http.Header{}
		in.header(h)
		want := over.Result().Header
		for name := range ofConnection {
			delete(want, name)
		}
		if id != 7 || int(status) != over.Code || string(in.rest) != over.Body.String() ||
			!maps.EqualFunc(h, want, slices.Equal) {
			t.Errorf("%s %s: %d %d %v %s, must be %d %v %s", c.method, c.path, id, status, h, in.rest, over.Code, want,
				over.Body)
		}
	}
	kept := keptBack(http.Header{"Connection": {"close, x-mine"}})
	for _, name := range []string{"Connection", "Upgrade", forwarded, passedFrom, "X-Forwarded-For", "Forwarded", "X-Mine"} {
		if !kept(name) {
			t.Errorf("%s is passed on", name)
		}
	}
	if kept("X-Api-Key") || kept("Cookie") {
		t.Error("a key is not passed on")
	}
}

// A request whose address is no path is answered alone, and does not end the line of the others; nor does it go by one.
func TestBadAddressOnALine(t *testing.T) {
	f, _ := lined(t)
	b := binary.AppendUvarint(nil, 7)
	b = appendField(appendField(appendField(b, "POST"), "b"), "here") // of POST a:b
	for _, name := range []string{passedFrom, "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		b = appendField(appendField(b, name), "")
	}
	b = appendField(b, "")
	var out bytes.Buffer
	if err := f.answerFrame(&sender{to: &out}, "10.0.0.1:5", "", b); err != nil {
		t.Fatal(err)
	}
	in := fields{rest: out.Bytes()[4:]}
	if id, status := in.number(), in.number(); id != 7 || status != 400 {
		t.Errorf("%d is answered %d", id, status)
	}
	if err := f.answerFrame(&sender{to: &out}, "10.0.0.1:5", "", b[:9]); err == nil {
		t.Error("a broken frame is answered")
	}
	r := httptest.NewRequest("POST", "/v1/track", nil)
	if r.URL = (&url.URL{Scheme: "a", Opaque: "b"}); onLine(r) {
		t.Error("POST a:b goes by line")
	}
}

// A line to one who reads and never answers ends, also when everybody who asked has given up; and who does not read
// is sent no more than has its bound.
func TestDeadLine(t *testing.T) {
	one, other := net.Pipe()
	defer other.Close()
	l := &line{conn: one, calls: map[uint64]*call{}}
	l.out.to, l.out.most = one, 1<<10
	go l.listen()
	go func() { _, _ = io.Copy(io.Discard, other) }()
	gone, leave := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer leave()
	if l.pass(httptest.NewRecorder(), httptest.NewRequestWithContext(gone, "POST", "/", nil), nil, "") {
		t.Error("there is an answer of nobody")
	}
	l.watch()
	if l.over() {
		t.Error("the line ends at once")
	}
	l.mu.Lock()
	for _, c := range l.calls {
		c.since = c.since.Add(-3 * answerWithin)
	}
	l.mu.Unlock()
	l.watch()
	for from := time.Now(); !l.over(); time.Sleep(time.Millisecond) {
		if time.Since(from) > 30*time.Second {
			t.Fatal("the line goes on")
		}
	}

	l = &line{calls: map[uint64]*call{}}
	l.out = sender{most: 1 << 10, busy: true, next: make([]byte, 2<<10)}
	w := httptest.NewRecorder()
	if l.pass(w, httptest.NewRequest("POST", "/", nil), nil, "") || len(l.out.next) != 2<<10 || len(l.calls) > 0 || l.over() {
		t.Errorf("%d bytes wait, of %d calls", len(l.out.next), len(l.calls))
	}
}

// Who does not know the database gets no line, and one of whom an older program answers /livez sends by the proxy.
func TestNoLine(t *testing.T) {
	f, s := lined(t) // of no database: nobody knows it
	to, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	for _, database := range []string{"", "this"} {
		if l, _ := callLine(t.Context(), http.DefaultTransport, to, database); l != nil {
			t.Errorf("there is a line to one who does not know %q", database)
		}
	}
	// one who says the wrong database when the line is there
	one, other := net.Pipe()
	ended := make(chan struct{})
	go func() { f.answerLine(other, bufio.NewReader(other)); close(ended) }()
	if _, err := one.Write([]byte{0, 0, 0, 1, 'x'}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		t.Error("a line of another database goes on")
	}

	asked := 0
	older := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/livez" {
			w.Header().Set(forwarded, answerTo("this", r.Header.Get(forwarded)))
			return
		}
		asked++
		_, _ = io.WriteString(w, "by HTTP")
	}))
	defer older.Close()
	p := newForwarder(slog.New(slog.DiscardHandler), "this", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) })
	p.refuse = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(400) }
	until, over := context.WithCancel(t.Context())
	defer over()
	w := httptest.NewRecorder()
	if !p.pass(w, httptest.NewRequest("POST", "/v1/track", strings.NewReader("{}")), older.URL, until) || asked != 1 ||
		w.Body.String() != "by HTTP" {
		t.Errorf("an older program: %d, %d %s", asked, w.Code, w.Body)
	}
}

// A handler that panics ends one request, and nobody else's.
func TestPanicOnALine(t *testing.T) {
	f, _ := lined(t)
	f.routes.HandleFunc("POST /panics", func(http.ResponseWriter, *http.Request) { panic("of a handler") })
	w := &recorded{header: http.Header{}}
	f.answerWhole(w, httptest.NewRequest("POST", "/panics", nil))
	if w.status != 0 || w.body.Len() > 0 {
		t.Errorf("it answers %d %s", w.status, &w.body)
	}
}

func FuzzFrame(f *testing.F) {
	b := appendField(appendField(appendField([]byte{7}, "POST"), "/v1/track"), "here")
	f.Add(append(appendField(appendField(appendField(b, passedFrom), "::1"), ""), "{}"...))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, data []byte) {
		in := fields{rest: data}
		in.number()
		in.text()
		h := http.Header{}
		in.header(h)
		if len(in.rest) > len(data) || in.bad && len(in.rest) > 0 {
			t.Errorf("%d bytes are left of %d", len(in.rest), len(data))
		}
		// what was read, written again, is read as it was
		back, got := fields{rest: appendHeader(nil, h, func(string) bool { return false })}, http.Header{}
		if back.header(got); back.bad || !maps.EqualFunc(got, h, slices.Equal) {
			t.Errorf("%v is read as %v", h, got)
		}
		n := 0
		err := frames(bufio.NewReader(bytes.NewReader(data)), 1<<10, func(b []byte) error { n += 4 + len(b); return nil })
		if err == nil || n > len(data) || errors.Is(err, io.EOF) && n != len(data) && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%d of %d bytes are frames: %v", n, len(data), err)
		}
	})
}
