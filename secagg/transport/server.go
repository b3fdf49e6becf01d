package transport

import (
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sotto-dp/sotto/secagg"
)

// The defaults of a configuration's zeros.
const (
	DefaultWait       = time.Minute
	DefaultMaxPending = 128
)

const (
	handshakeTime = 10 * time.Second
	// linger is how long a connection is kept after its last frame for the other end to
	// read it: closing at once, with bytes of its own unread, would reset the connection and
	// take the frame with it.
	linger = 2 * time.Second
	// maxTick bounds the time between two looks at the clock.
	maxTick = time.Second
)

// ServerConfig is what a server brings to a session.
type ServerConfig struct {
	// Protocol is the session, the server's key, the enrolled clients, and the length of a round.
	// Its Clock must keep the time of this machine, up to a constant.
	Protocol secagg.ServerConfig
	// Wait is how long the server waits for clients to come before the first round; [DefaultWait]
	// if 0. It does not wait longer than for all.
	Wait time.Duration
	// Start, if set, is closed to begin before that with those who are there: for one who has a
	// clock of its own.
	Start <-chan struct{}
	// Certificate is shown to clients who believe an authority; nil is one of the
	// server's identity key.
	Certificate *tls.Certificate
	// MaxPending is how many connections that are no client's yet may be open at once, beyond one for
	// each enrolled client; [DefaultMaxPending] if 0. One more takes the place of the oldest of the
	// address that has most.
	MaxPending int
	// Ask, if set, is called before clients are asked for their masked messages, which they send for
	// one reward once: the place to write down, durably, that they were asked. An error ends the
	// session, and nobody was.
	Ask func() error
	// Spend, if set, is called before clients are asked to open the sum: the place to write down,
	// durably, that it is spent, whatever becomes of the session. An error ends the session, and
	// nothing is opened.
	Spend func() error
	// Log, if set, is given what happens: who came, who is lost and why, rounds. It is called by
	// one goroutine at a time.
	Log func(Event)
}

// An Event is something that happened to a server.
type Event struct {
	// Client is who it is about, if Named.
	Client uint32
	Named  bool
	// Round is the round that the session is in; 0 before the first.
	Round secagg.Round
	// Err is why a client or a stranger is turned away. It is nil for a client who came, and for a
	// round that begins.
	Err error
}

func (c ServerConfig) validate() error {
	switch {
	case c.Wait < 0:
		return fmt.Errorf("%w: wait = %v, must be positive (0 stands for the default)",
			secagg.ErrSession, c.Wait)
	case c.MaxPending < 0:
		return fmt.Errorf("%w: at most %d pending connections, must be positive (0 stands for "+
			"the default)", secagg.ErrSession, c.MaxPending)
	}
	seen := make(map[string]uint32, len(c.Protocol.Clients))
	for id, key := range c.Protocol.Clients {
		if other, ok := seen[string(key)]; ok {
			return fmt.Errorf("%w: clients %d and %d have one identity key", secagg.ErrSession,
				min(id, other), max(id, other))
		}
		seen[string(key)] = id
	}
	// What could not be done even if all came is refused now.
	_, err := secagg.NewServer(c.Protocol)
	return err
}

// Serve plays one session on the connections that l accepts, and returns its result, or the error
// that ended it. It closes l and all connections, and has left no goroutine behind when it returns.
// When ctx ends, clients are told, and Serve returns ctx's error. Any error after clients were
// asked to open the sum is ErrPossiblyReleased too.
func Serve(ctx context.Context, l net.Listener, cfg ServerConfig) (secagg.Result, error) {
	if err := cfg.validate(); err != nil {
		l.Close()
		return secagg.Result{}, err
	}
	if cfg.Wait == 0 {
		cfg.Wait = DefaultWait
	}
	if cfg.MaxPending == 0 {
		cfg.MaxPending = DefaultMaxPending
	}
	if cfg.Protocol.Timeout == 0 {
		cfg.Protocol.Timeout = secagg.DefaultTimeout
	}
	if cfg.Log == nil {
		cfg.Log = func(Event) {}
	}
	if cfg.Certificate == nil {
		c, err := Certificate(cfg.Protocol.Identity)
		if err != nil {
			l.Close()
			return secagg.Result{}, err
		}
		cfg.Certificate = &c
	}
	s := &server{cfg: cfg, listener: l, tls: serverTLS(*cfg.Certificate),
		limit: limitOf(cfg.Protocol.Session.Length, len(cfg.Protocol.Clients)),
		keys:  make(map[string]uint32, len(cfg.Protocol.Clients)), events: make(chan event),
		peers: map[uint32]*peer{}, told: map[uint32]error{},
		places: newPlaces(cfg.MaxPending + len(cfg.Protocol.Clients)),
		open:   map[net.Conn]bool{}, stop: make(chan struct{})}
	for id, key := range cfg.Protocol.Clients {
		s.keys[string(key)] = id
	}
	s.group.Go(s.accept)
	err := s.play(ctx)
	if err != nil && s.spent {
		err = fmt.Errorf("%w: %w", ErrPossiblyReleased, err)
	}
	s.end(err)
	if err != nil {
		return secagg.Result{}, err
	}
	return s.session.Result()
}

type server struct {
	cfg      ServerConfig
	listener net.Listener
	tls      *tls.Config
	limit    int
	keys     map[string]uint32 // enrolled, by key

	group sync.WaitGroup
	// from the connections' goroutines to the loop, which reads it until the last of them is gone
	events chan event

	places *places // of connections that are not yet a client's

	mu   sync.Mutex
	open map[net.Conn]bool // all that are open

	stop chan struct{} // closed at the end

	// The loop's own.
	session *secagg.Server
	peers   map[uint32]*peer
	told    map[uint32]error // why a client who was there is not any more
	failure error            // of the listener
	spent   bool             // clients are asked to open the sum
}

// peer is a client's connection. Its queue holds what is to be sent; who closes it has said all.
type peer struct {
	id    uint32
	conn  *tls.Conn
	place *place
	queue chan []byte
	over  atomic.Bool // the loop does not listen to the client any more
}

// event is what a connection's goroutine tells the loop: a new peer, a message, or the end
// of a connection.
type event struct {
	peer    *peer
	kind    eventKind
	message []byte
	err     error
}

type eventKind uint8

const (
	eventCame eventKind = iota
	eventMessage
	eventLost
	eventStranger // turned away before it was a peer
	eventListener // the listener failed
)

// accept takes connections until the listener is closed.
func (s *server) accept() {
	for {
		conn, err := s.listener.Accept()
		if err == nil {
			s.track(conn)
			continue
		}
		select {
		case <-s.stop:
			return
		default:
		}
		if errors.Is(err, net.ErrClosed) {
			s.events <- event{kind: eventListener, err: err}
			return
		}
		// Such as too many open files, of which one is given up. It may pass.
		s.places.free()
		select {
		case <-s.stop:
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// track gives a new connection a place and a reader, unless the session is over.
func (s *server) track(conn net.Conn) {
	at := s.places.take(conn)
	if at == nil {
		conn.Close()
		return
	}
	s.mu.Lock()
	s.open[conn] = true
	s.mu.Unlock()
	s.group.Go(func() {
		defer func() {
			conn.Close()
			s.places.leave(at)
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.open, conn)
		}()
		s.handle(at)
	})
}

// tell tells the loop of a connection that is not yet a client's. False says that it has lost its
// place, so that the loop is not to be bothered.
func (s *server) tell(e event, at *place) bool {
	select {
	case <-at.lost:
		return false
	default:
	}
	select {
	case s.events <- e:
		return true
	case <-at.lost:
		return false
	}
}

// handle is a connection's reader, from its handshake to its end.
func (s *server) handle(at *place) {
	p, err := s.greet(at)
	if err != nil {
		if s.tell(event{kind: eventStranger, err: err}, at) && p != nil {
			p.say(refusal(err))
			p.bye()
		}
		return
	}
	if !s.tell(event{peer: p, kind: eventCame}, at) {
		return
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		p.write(s.cfg.Protocol.Timeout)
	}()
	for {
		var t frameType
		var m []byte
		if t, m, err = readFrame(p.conn, s.limit); err == nil && t != frameMessage {
			err = fmt.Errorf("%w: type %d from a client", ErrFrame, t)
		}
		if err != nil {
			break
		}
		if p.over.Load() {
			_, err = io.Copy(io.Discard, p.conn)
			break
		}
		s.events <- event{peer: p, kind: eventMessage, message: m}
	}
	if err != nil && !errors.Is(err, ErrFrame) {
		err = fmt.Errorf("%w: %w", ErrLost, err)
	}
	s.events <- event{peer: p, kind: eventLost, err: err}
	if errors.Is(err, ErrFrame) {
		io.Copy(io.Discard, p.conn) // until it has read why
	}
	<-written
}

// greet shakes hands and finds out who it is. A peer that comes with an error has shaken hands
// and can be told.
func (s *server) greet(at *place) (*peer, error) {
	raw := at.conn
	conn := tls.Server(raw, s.tls)
	raw.SetDeadline(time.Now().Add(handshakeTime))
	if err := conn.Handshake(); err != nil {
		return nil, handshakeError(err)
	}
	raw.SetDeadline(time.Time{})
	// A session has at most five messages for a client, and begin, and the last word.
	p := &peer{conn: conn, place: at, queue: make(chan []byte, 8)}
	state := conn.ConnectionState()
	if err := agreed(state); err != nil {
		return p, err
	}
	key, err := peerKey(state)
	if err != nil {
		return p, err
	}
	id, ok := s.keys[string(key)]
	if !ok {
		return p, fmt.Errorf("%w: the identity key %x… is not enrolled", secagg.ErrUnknown, []byte(key[:8]))
	}
	p.id = id
	return p, nil
}

// say writes a frame within the linger.
func (p *peer) say(b []byte) {
	p.conn.SetWriteDeadline(time.Now().Add(linger))
	p.conn.Write(b) // who does not hear it is lost anyway
}

// bye tells the other end that nothing more comes, and drains what it sends until it closes, for
// the linger at most.
func (p *peer) bye() {
	p.conn.SetReadDeadline(time.Now().Add(linger))
	if p.conn.CloseWrite() == nil {
		io.Copy(io.Discard, p.conn)
	}
}

// write is a connection's writer. It returns when the queue is closed or the other end does not
// take what is sent.
func (p *peer) write(timeout time.Duration) {
	for b := range p.queue {
		p.conn.SetWriteDeadline(time.Now().Add(timeout))
		if _, err := p.conn.Write(b); err != nil {
			p.conn.NetConn().Close() // the reader says that it is lost
			for range p.queue {
			}
			return
		}
	}
	// The reader goes on for as long as it may need to hear the last word.
	p.conn.SetReadDeadline(time.Now().Add(linger))
	p.conn.SetWriteDeadline(time.Now().Add(linger))
	if p.conn.CloseWrite() != nil {
		p.conn.NetConn().Close()
	}
}

// send queues a frame. Nobody has more messages due than the queue holds.
func (s *server) send(p *peer, b []byte) {
	select {
	case p.queue <- b:
	default:
		p.conn.NetConn().Close()
	}
}

// dismiss sends a peer the last word.
func (s *server) dismiss(p *peer, last []byte) {
	p.over.Store(true)
	s.send(p, last)
	close(p.queue)
}

// drop forgets a peer, with a last word.
func (s *server) drop(p *peer, why error, last []byte) {
	s.dismiss(p, last)
	delete(s.peers, p.id)
	s.told[p.id] = why
}

func (s *server) log(e Event) {
	if s.session != nil {
		e.Round = s.session.Round()
	}
	s.cfg.Log(e)
}

// play is the loop: first until clients have come, then until the session has ended.
func (s *server) play(ctx context.Context) error {
	wait := time.NewTimer(s.cfg.Wait)
	defer wait.Stop()
	for len(s.peers) < len(s.keys) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-wait.C:
			return s.beginNow(ctx)
		case <-s.cfg.Start:
			return s.beginNow(ctx)
		case e := <-s.events:
			s.lobby(e)
			if s.failure != nil {
				return s.failure
			}
		}
	}
	return s.beginNow(ctx)
}

func (s *server) beginNow(ctx context.Context) error {
	if err := s.begin(); err != nil {
		return err
	}
	return s.rounds(ctx)
}

// lobby is what happens before the session begins.
func (s *server) lobby(e event) {
	switch e.kind {
	case eventStranger:
		s.log(Event{Err: e.err})
	case eventListener:
		s.failure = fmt.Errorf("transport: %w", e.err)
	case eventCame:
		s.came(e.peer)
	case eventMessage:
		if s.peers[e.peer.id] == e.peer {
			s.turn(e.peer, fmt.Errorf("%w: a message before the session began", secagg.ErrEarly))
		}
	case eventLost:
		if s.peers[e.peer.id] == e.peer {
			s.turn(e.peer, e.err)
			delete(s.told, e.peer.id) // it may come back
		}
	}
}

// came receives a client, or turns it away.
func (s *server) came(p *peer) {
	var err error
	switch why, was := s.told[p.id]; {
	case s.peers[p.id] != nil:
		err = fmt.Errorf("%w: client %d is connected already", secagg.ErrDuplicate, p.id)
	case was:
		err = fmt.Errorf("%w: client %d was counted out: %w", secagg.ErrLate, p.id, why)
	case s.session != nil:
		err = fmt.Errorf("%w: the session began without client %d", secagg.ErrLate, p.id)
	}
	s.log(Event{Client: p.id, Named: true, Err: err})
	if err != nil {
		s.dismiss(p, refusal(err))
		return
	}
	s.places.leave(p.place)
	s.peers[p.id] = p
}

// turn turns a client away who was there.
func (s *server) turn(p *peer, why error) {
	s.log(Event{Client: p.id, Named: true, Err: why})
	s.drop(p, why, refusal(why))
}

// begin opens the session with those who are there.
func (s *server) begin() error {
	cfg := s.cfg.Protocol
	if least := max(3, cfg.Session.NMin); len(s.peers) < least {
		return fmt.Errorf("%w: %d of %d clients came, must be at least %d", secagg.ErrTooFew,
			len(s.peers), len(s.keys), least)
	}
	all := cfg.Clients
	cfg.Clients = make(map[uint32]ed25519.PublicKey, len(s.peers))
	for id := range s.peers {
		cfg.Clients[id] = all[id]
	}
	var err error
	if s.session, err = secagg.NewServer(cfg); err != nil {
		return err
	}
	s.log(Event{})
	b := frame(frameBegin, nil)
	for _, p := range s.peers {
		s.send(p, b)
	}
	return nil
}

func (s *server) rounds(ctx context.Context) error {
	tick := time.NewTicker(min(maxTick, max(time.Millisecond, s.cfg.Protocol.Timeout/16)))
	defer tick.Stop()
	for s.session.Round() != secagg.RoundDone {
		round := s.session.Round()
		var out []secagg.Envelope
		var err error
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
			out, err = s.session.Tick()
		case e := <-s.events:
			switch e.kind {
			case eventStranger:
				s.log(Event{Err: e.err})
			case eventListener: // nobody is to come any more
			case eventCame:
				s.came(e.peer)
			case eventLost:
				out, err = s.lost(e.peer, e.err)
			case eventMessage:
				if s.peers[e.peer.id] != e.peer {
					break
				}
				if out, err = s.session.Step(e.peer.id, e.message); err != nil && s.session.Failed() == nil {
					// A stream neither repeats nor garbles: this client is broken, or late.
					more, failed := s.lost(e.peer, err)
					out, err = append(out, more...), failed
				}
			}
		}
		if err != nil {
			return err
		}
		if s.session.Round() != round {
			if err := s.pass(out); err != nil {
				return err
			}
		}
	}
	return nil
}

// lost counts a client out.
func (s *server) lost(p *peer, why error) ([]secagg.Envelope, error) {
	if s.peers[p.id] != p {
		return nil, nil
	}
	s.turn(p, why)
	return s.session.Gone(p.id)
}

// pass sends the messages that close a round. Who is still there and has none is counted out.
func (s *server) pass(out []secagg.Envelope) error {
	s.log(Event{})
	switch s.session.Round() {
	case secagg.RoundDone:
		return nil
	case secagg.RoundMask:
		if s.cfg.Ask != nil {
			if err := s.cfg.Ask(); err != nil {
				return err
			}
		}
	case secagg.RoundUnmask:
		if s.cfg.Spend != nil {
			if err := s.cfg.Spend(); err != nil {
				return err
			}
		}
		s.spent = true
	}
	due := make(map[uint32]bool, len(out))
	for _, e := range out {
		due[e.To] = true
		if p, ok := s.peers[e.To]; ok {
			s.send(p, frame(frameMessage, e.Message))
		}
	}
	for id, p := range s.peers {
		if !due[id] {
			s.turn(p, fmt.Errorf("%w: client %d was counted out", secagg.ErrLate, id))
		}
	}
	return nil
}

// end tells all who are left, and waits for every goroutine.
func (s *server) end(err error) {
	last := frame(frameEnd, nil)
	if err != nil {
		last = refusal(err)
	}
	for _, p := range s.peers {
		s.drop(p, err, last)
	}
	s.places.close()
	close(s.stop)
	s.listener.Close()
	// Who takes neither the last word nor the time to read it.
	hard := time.AfterFunc(2*linger, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for c := range s.open {
			c.Close()
		}
	})
	defer hard.Stop()
	go func() {
		s.group.Wait()
		close(s.events)
	}()
	for e := range s.events {
		if e.kind == eventCame {
			s.dismiss(e.peer, last)
		}
	}
}
