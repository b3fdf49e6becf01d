package transport

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// A Hub is one listener for many sessions at a time. A client says which one it means by the name
// of the server in its TLS handshake (ClientConfig.ServerName), of which the hub reads the first
// message alone: keys and all the rest are the session's.
type Hub struct {
	listener net.Listener
	places   *places // of connections that no session has yet
	group    sync.WaitGroup

	mu       sync.Mutex
	sessions map[string]*hubListener
	closed   bool
}

const (
	// hubPlaces is for how many connections the first message is awaited at once, and how many a
	// session has waiting to be accepted: as many as come in a round trip when a large session begins.
	hubPlaces = 1024
	// patience is how long the first message may take.
	patience = 10 * time.Second
)

// NewHub takes what l accepts, until Close.
func NewHub(l net.Listener) *Hub {
	h := &Hub{listener: l, places: newPlaces(hubPlaces), sessions: map[string]*hubListener{}}
	h.group.Go(h.accept)
	return h
}

// Addr is where it listens.
func (h *Hub) Addr() net.Addr { return h.listener.Addr() }

// Listen returns what Serve listens on for the session of a name, which must look like that of a
// host. Closing it ends that session's part, and no other.
func (h *Hub) Listen(name string) (net.Listener, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.closed:
		return nil, fmt.Errorf("transport: hub: %w", net.ErrClosed)
	case h.sessions[name] != nil:
		return nil, fmt.Errorf("transport: hub: session %q is there already", name)
	}
	l := &hubListener{hub: h, name: name, conns: make(chan net.Conn, hubPlaces), done: make(chan struct{})}
	h.sessions[name] = l
	return l, nil
}

// Close closes the listener and those of all sessions, and has left no goroutine when it returns.
func (h *Hub) Close() error {
	h.mu.Lock()
	h.closed = true
	all := make([]*hubListener, 0, len(h.sessions))
	for _, l := range h.sessions {
		all = append(all, l)
	}
	h.mu.Unlock()
	err := h.listener.Close()
	h.places.close()
	for _, l := range all {
		l.Close()
	}
	h.group.Wait()
	return err
}

func (h *Hub) accept() {
	for {
		conn, err := h.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // such as too many open files, of which one is given up: it may pass
			h.places.free()
			time.Sleep(100 * time.Millisecond)
			continue
		}
		at := h.places.take(conn)
		if at == nil {
			conn.Close()
			continue
		}
		h.group.Go(func() { h.hand(at) })
	}
}

// hand gives a connection to the session that it names.
func (h *Hub) hand(at *place) {
	conn := at.conn
	conn.SetDeadline(time.Now().Add(patience))
	name, read := greeting(conn)
	conn.SetDeadline(time.Time{})
	h.places.leave(at)
	h.mu.Lock()
	defer h.mu.Unlock()
	l := h.sessions[name]
	if l == nil {
		conn.Close() // who was early or late tries again, or asks
		return
	}
	l.queue(&heard{Conn: conn, rest: io.MultiReader(read, conn)})
}

// greeting is the name of the server in a client's first message, and what was read of it.
func greeting(conn net.Conn) (name string, read io.Reader) {
	var copied bytes.Buffer
	stop := errors.New("that is all")
	// The handshake ends after the first message, before anything is answered.
	_ = tls.Server(listening{conn, io.TeeReader(conn, &copied)}, &tls.Config{MinVersion: tls.VersionTLS13,
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			name = hello.ServerName
			return nil, stop
		}}).Handshake()
	return name, &copied
}

// listening is a connection that nothing is said to.
type listening struct {
	net.Conn
	from io.Reader
}

func (l listening) Read(b []byte) (int, error)  { return l.from.Read(b) }
func (l listening) Write(b []byte) (int, error) { return len(b), nil }

// heard is a connection of which the beginning was read before.
type heard struct {
	net.Conn
	rest io.Reader
}

func (c *heard) Read(b []byte) (int, error) { return c.rest.Read(b) }

type hubListener struct {
	hub   *Hub
	name  string
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

// queue waits for nobody: where the session accepts none, the oldest makes room. The hub's lock is
// held.
func (l *hubListener) queue(c net.Conn) {
	for {
		select {
		case l.conns <- c:
			return
		default:
		}
		select {
		case oldest := <-l.conns:
			oldest.Close()
		default:
		}
	}
}

func (l *hubListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *hubListener) Close() error {
	l.once.Do(func() {
		close(l.done)
		l.hub.mu.Lock()
		defer l.hub.mu.Unlock()
		delete(l.hub.sessions, l.name)
		for len(l.conns) > 0 {
			(<-l.conns).Close()
		}
	})
	return nil
}

func (l *hubListener) Addr() net.Addr { return l.hub.Addr() }
