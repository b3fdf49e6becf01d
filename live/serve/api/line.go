package api

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// A line is a connection between two processes of one database, on which one passes short requests on to
// the other: frames instead of HTTP, and all that come while one group is sent are the next group. So a
// decision that is passed on costs the two little more than one that is not; a proxy reads and writes each
// request twice more. It begins as GET /livez that asks for an upgrade, with the proofs of both sides
// (see forwarded); a process of an older program answers as ever, and is sent requests by the proxy.
const lineProtocol = "sotto-line-1"

// Limits of a frame: of a request, and of an answer, which may be a list of all experiments; and of the body of a
// request that goes by line.
const (
	maxFrame    = 1 << 20
	maxAnswer   = 1 << 28
	maxLineBody = 64 << 10
	maxUnsent   = 16 << 20 // of requests, while who is asked does not read
)

// errUnsent says that who is asked does not read what it is sent.
var errUnsent = errors.New("too much is to be sent")

// onLine says whether a request goes by line: it is short, its answer is, and it does not last.
func onLine(r *http.Request) bool {
	return r.Method == http.MethodPost && r.URL.Opaque == "" && r.ContentLength >= 0 && r.ContentLength <= maxLineBody
}

// A sender writes frames. Who sends one while another is writing leaves it to the other.
type sender struct {
	to   io.Writer
	most int // that may wait for a write to end; 0 for no bound

	mu    sync.Mutex // of what follows
	next  []byte     // what the next write has
	spare []byte
	busy  bool
	err   error
}

// send sends a frame that add appends.
func (s *sender) send(add func([]byte) []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	if s.busy && s.most > 0 && len(s.next) > s.most {
		return errUnsent
	}
	at := len(s.next)
	s.next = add(append(s.next, 0, 0, 0, 0))
	binary.BigEndian.PutUint32(s.next[at:], uint32(len(s.next)-at-4))
	if s.busy {
		return nil
	}
	s.busy = true
	s.mu.Unlock()
	runtime.Gosched() // who is about to send is in the same write
	s.mu.Lock()
	for len(s.next) > 0 && s.err == nil {
		group := s.next
		s.next, s.spare = s.spare[:0], nil // what is being written is nobody's to append to
		s.mu.Unlock()
		_, err := s.to.Write(group)
		s.mu.Lock()
		if s.err = err; cap(group) <= maxFrame {
			s.spare = group
		}
	}
	s.busy = false
	return s.err
}

// frames calls each with the frames that come, until there are no more. It may keep them.
func frames(from *bufio.Reader, limit uint32, each func([]byte) error) error {
	var length [4]byte
	for {
		if _, err := io.ReadFull(from, length[:]); err != nil {
			return err
		}
		n := binary.BigEndian.Uint32(length[:])
		if n > limit {
			return errors.New("a frame is too long")
		}
		b := make([]byte, n)
		if _, err := io.ReadFull(from, b); err != nil {
			return err
		}
		if err := each(b); err != nil {
			return err
		}
	}
}

func appendField(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// fields reads what appendField and binary.AppendUvarint have written.
type fields struct {
	rest []byte
	bad  bool
}

func (f *fields) number() uint64 {
	x, n := binary.Uvarint(f.rest)
	if n <= 0 {
		f.bad, f.rest = true, nil
		return 0
	}
	f.rest = f.rest[n:]
	return x
}

func (f *fields) text() string {
	n := f.number()
	if n > uint64(len(f.rest)) {
		f.bad, f.rest = true, nil
		return ""
	}
	text := string(f.rest[:n])
	f.rest = f.rest[n:]
	return text
}

// appendHeader appends the headers that are of both ends, of which each says whether it is left out.
func appendHeader(b []byte, h http.Header, without func(name string) bool) []byte {
	for name, values := range h {
		if without(name) {
			continue
		}
		for _, v := range values {
			b = appendField(appendField(b, name), v)
		}
	}
	return appendField(b, "") // no header has no name
}

func (f *fields) header(into http.Header) {
	for name := f.text(); name != ""; name = f.text() {
		into[name] = append(into[name], f.text())
	}
}

// ofConnection are the headers that say something of one connection alone.
var ofConnection = map[string]bool{"Connection": true, "Proxy-Connection": true, "Keep-Alive": true,
	"Proxy-Authenticate": true, "Proxy-Authorization": true, "Te": true, "Trailer": true,
	"Transfer-Encoding": true, "Upgrade": true, "Content-Length": true}

// keptBack says which headers of a request are not passed on: those of its connection, and what is said anew.
func keptBack(h http.Header) func(string) bool {
	var named []string
	for _, of := range h["Connection"] {
		for one := range strings.SplitSeq(of, ",") {
			named = append(named, textproto.CanonicalMIMEHeaderKey(strings.TrimSpace(one)))
		}
	}
	return func(name string) bool {
		return ofConnection[name] || name == forwarded || name == passedFrom || name == "Forwarded" ||
			strings.HasPrefix(name, "X-Forwarded-") || slices.Contains(named, name)
	}
}

// A call is a request that waits for its answer. It does also when who asked has gone: that nobody answers is to be
// seen, however soon they give up.
type call struct {
	since  time.Time
	answer []byte        // nil: there is none
	done   chan struct{} // closed when it is known
}

// A line is the end of who passes requests on.
type line struct {
	conn io.ReadWriteCloser
	out  sender

	mu    sync.Mutex // of what follows
	calls map[uint64]*call
	last  uint64
	ended bool
}

// callLine asks who is at an address for a line, and is nil where it has none.
func callLine(ctx context.Context, transport http.RoundTripper, to *url.URL, database string) (*line, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, to.JoinPath("/livez").String(), nil)
	if err != nil {
		return nil, err
	}
	with := ask(database)
	r.Header.Set(forwarded, with)
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", lineProtocol)
	out, err := transport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	conn, is := out.Body.(io.ReadWriteCloser)
	if out.StatusCode != http.StatusSwitchingProtocols || !is || out.Header.Get(forwarded) != answerTo(database, with) {
		return nil, out.Body.Close()
	}
	l := &line{conn: conn, calls: map[uint64]*call{}}
	l.out.to, l.out.most = conn, maxUnsent
	if err := l.out.send(func(b []byte) []byte { return append(b, database...) }); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	go l.listen()
	return l, nil
}

// listen hands answers out until the line ends: then nobody who waits is answered.
func (l *line) listen() {
	watch := time.AfterFunc(answerWithin, l.watch)
	_ = frames(bufio.NewReaderSize(l.conn, 64<<10), maxAnswer, func(b []byte) error {
		f := fields{rest: b}
		id := f.number()
		l.mu.Lock()
		c := l.calls[id]
		delete(l.calls, id)
		l.mu.Unlock()
		if c != nil && !f.bad {
			c.answer = f.rest
			close(c.done)
		}
		return nil
	})
	watch.Stop()
	l.end()
}

// watch ends a line on which a call has waited for longer than any answer takes.
func (l *line) watch() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.calls {
		if time.Since(c.since) > 2*answerWithin {
			_ = l.conn.Close() // which listen hears of
			return
		}
	}
	if !l.ended {
		time.AfterFunc(answerWithin, l.watch)
	}
}

func (l *line) end() {
	_ = l.conn.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	for _, c := range l.calls {
		close(c.done)
	}
	clear(l.calls)
}

func (l *line) over() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended
}

// pass passes a request on whose body was read, and its answer back; ok is false if there is none.
func (l *line) pass(w http.ResponseWriter, r *http.Request, body []byte, from string) (ok bool) {
	c := &call{since: time.Now(), done: make(chan struct{})}
	l.mu.Lock()
	if l.ended {
		l.mu.Unlock()
		return false
	}
	l.last++
	id := l.last
	l.calls[id] = c
	l.mu.Unlock()
	if err := l.out.send(func(b []byte) []byte {
		b = binary.AppendUvarint(b, id)
		b = appendField(appendField(appendField(b, r.Method), r.URL.RequestURI()), r.Host)
		proto := "http"
		if r.TLS != nil {
			proto = "https"
		}
		proto = cmp.Or(r.Header.Get("X-Forwarded-Proto"), proto)
		host, _, _ := net.SplitHostPort(r.RemoteAddr)
		for _, of := range [...][2]string{{passedFrom, from}, {"X-Forwarded-For", host},
			{"X-Forwarded-Host", r.Host}, {"X-Forwarded-Proto", proto}} {
			b = appendField(appendField(b, of[0]), of[1])
		}
		return append(appendHeader(b, r.Header, keptBack(r.Header)), body...)
	}); errors.Is(err, errUnsent) {
		l.mu.Lock()
		delete(l.calls, id)
		l.mu.Unlock()
		return false
	} else if err != nil {
		l.end()
	}
	select {
	case <-c.done:
	case <-r.Context().Done(): // who asked has gone, and the answer is nobody's
		return false
	}
	f := fields{rest: c.answer}
	status := int(f.number())
	f.header(w.Header())
	if f.bad || status < 200 || status > 599 {
		clear(w.Header())
		return false
	}
	w.WriteHeader(status)
	_, _ = w.Write(f.rest) // who has gone is told nothing
	return true
}

// A recorded response is sent when it is whole.
type recorded struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *recorded) Header() http.Header { return r.header }

func (r *recorded) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
}

func (r *recorded) Write(b []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	return r.body.Write(b)
}

// takeLine answers who asks for a line, after it has proved to be on this database; taken is false if it asks
// for none.
func (f *front) takeLine(w http.ResponseWriter, r *http.Request) (taken bool) {
	if r.Header.Get("Upgrade") != lineProtocol || !knows(f.Engine.Database(), r.Header.Get(forwarded)) {
		return false
	}
	conn, both, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return false
	}
	_ = conn.SetDeadline(time.Time{})
	_, _ = io.WriteString(both, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+lineProtocol+
		"\r\n"+forwarded+": "+answerTo(f.Engine.Database(), r.Header.Get(forwarded))+"\r\n\r\n")
	if both.Flush() != nil {
		_ = conn.Close()
		return true
	}
	f.onLines.Go(func() { f.answerLine(conn, both.Reader) })
	return true
}

// A timely connection does not wait for ever for one who does not read.
type timely struct{ net.Conn }

func (t timely) Write(b []byte) (int, error) {
	_ = t.SetWriteDeadline(time.Now().Add(answerWithin))
	return t.Conn.Write(b)
}

// answerLine answers the requests of a line until it ends, or the service does: then those that have come.
func (f *front) answerLine(conn net.Conn, from *bufio.Reader) {
	defer conn.Close()
	defer context.AfterFunc(f.ending, func() { _ = conn.SetReadDeadline(time.Now()) })()
	out, remote := &sender{to: timely{conn}}, conn.RemoteAddr().String()
	var open sync.WaitGroup
	work := make(chan []byte) // to who has answered one, and has a stack that is large enough
	database := ""
	err := frames(from, maxFrame, func(b []byte) error {
		if database == "" {
			if database = string(b); database != f.Engine.Database() || database == "" {
				return errors.New("a line is of another database")
			}
			return nil
		}
		select {
		case work <- b:
		default:
			open.Go(func() {
				for ok := true; ok; b, ok = <-work {
					if err := f.answerFrame(out, remote, database, b); err != nil {
						_ = conn.Close()
					}
				}
			})
		}
		return nil
	})
	close(work)
	if f.ending.Err() == nil && !errors.Is(err, io.EOF) {
		f.Log.Info("a line to another process has ended", "error", err)
	}
	open.Wait()
}

// answerFrame answers one request of a line. It has no context: what may last has a time limit (see limited).
func (f *front) answerFrame(out *sender, remote, database string, b []byte) error {
	in := fields{rest: b}
	id := in.number()
	r := &http.Request{Method: in.text(), RequestURI: in.text(), Host: in.text(), Proto: "HTTP/1.1", ProtoMajor: 1,
		ProtoMinor: 1, Header: make(http.Header, 8), RemoteAddr: remote}
	for range 4 {
		name, value := in.text(), in.text()
		r.Header[name] = []string{value}
	}
	in.header(r.Header)
	r.Header[forwarded] = []string{database}
	if in.bad {
		return errors.New("a frame is no request")
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(in.rest)), int64(len(in.rest))
	w := &recorded{header: make(http.Header, 4)}
	var err error
	if r.URL, err = url.ParseRequestURI(r.RequestURI); err != nil { // one bad request ends nobody else's
		r.URL = &url.URL{}
		f.answerTo(w, r, refused(http.StatusBadRequest, "", "the address of the request must be a path"))
	} else {
		f.answerWhole(w, r)
	}
	return out.send(func(b []byte) []byte {
		b = binary.AppendUvarint(binary.AppendUvarint(b, id), uint64(w.status))
		return append(appendHeader(b, w.header, func(name string) bool { return ofConnection[name] }), w.body.Bytes()...)
	})
}

// answerWhole answers a request; of one whose handler panics nothing is said, as over HTTP.
func (f *front) answerWhole(w *recorded, r *http.Request) {
	defer func() {
		if why := recover(); why != nil {
			*w = recorded{header: http.Header{}}
			f.Log.Error("a request failed", slog.Any("error", why))
			return
		}
		w.WriteHeader(http.StatusOK)
	}()
	f.ServeHTTP(w, r)
}
