package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/sotto-dp/sotto/secagg"
)

// ClientConfig is what a client brings to a session.
type ClientConfig struct {
	// Protocol is the session, the client's number and key, and the keys it has pinned: the
	// server's too. Its Clock must keep the time of this machine, up to a constant.
	Protocol secagg.ClientConfig
	// Wait is the server's [ServerConfig.Wait]; [DefaultWait] if 0. The client tries so long to
	// reach the server, and waits for the session to begin until one round more is over.
	Wait time.Duration
	// Roots, if set, are the authorities of whom one must have signed the server's certificate, for
	// the name ServerName (the host of the address if empty). Nil: the certificate must be of
	// Protocol.Server.
	Roots      *x509.CertPool
	ServerName string
	// Begin, if set, is called when the session begins, before the client says anything: the place
	// to write down that the session is used. An error ends the client.
	Begin func() error
	// Spend, if set, is called before the masked message leaves, which is all that the reward is
	// in: the place to write down, durably, that it is spent, whatever becomes of the session. An
	// error ends the client, and nothing has left.
	Spend func() error
	// Sent, if set, is called after each message. An error ends the client.
	Sent func(secagg.Kind) error
	// Dial opens the connection; nil is a [net.Dialer].
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Join takes part in a session with a message: Length numbers below the modulus, its noise share
// already added. It returns nil when the server has said that the sum is known. An error matches
// one of package secagg's or of this package's; a [Refusal] is the server's word. ErrUnfinished is
// about a client who has done its part and did not hear how it ended. When ctx ends the client
// vanishes. Any error after its masked message has left is ErrPossiblyReleased too.
func Join(ctx context.Context, address string, cfg ClientConfig, message []uint64) error {
	if cfg.Wait < 0 {
		return fmt.Errorf("%w: wait = %v, must be positive (0 stands for the default)",
			secagg.ErrSession, cfg.Wait)
	}
	if cfg.Wait == 0 {
		cfg.Wait = DefaultWait
	}
	if cfg.Protocol.Timeout == 0 {
		cfg.Protocol.Timeout = secagg.DefaultTimeout
	}
	if cfg.Protocol.Clock == nil {
		cfg.Protocol.Clock = time.Now
	}
	if cfg.Dial == nil {
		cfg.Dial = new(net.Dialer).DialContext
	}
	session, err := secagg.NewClient(cfg.Protocol, message)
	if err != nil {
		return err
	}
	own, err := Certificate(cfg.Protocol.Identity)
	if err != nil {
		return err
	}
	name := cfg.ServerName
	if name == "" {
		if name, _, err = net.SplitHostPort(address); err != nil {
			return fmt.Errorf("transport: address %q: %w", address, err)
		}
	}
	c := &client{cfg: cfg, session: session, address: address,
		tls:   clientTLS(own, cfg.Protocol.Server, cfg.Roots, name),
		until: time.Now().Add(cfg.Wait + cfg.Protocol.Timeout)}
	reach := time.Now().Add(cfg.Wait)
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		err := c.try(ctx)
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		switch {
		case err != nil && c.spent:
			return fmt.Errorf("%w: %w", ErrPossiblyReleased, err)
		case ctx.Err() != nil:
			return err
		case c.begun || !errors.Is(err, ErrLost) || time.Until(reach) < pause:
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

type client struct {
	cfg     ClientConfig
	session *secagg.Client
	address string
	tls     *tls.Config
	until   time.Time // when the session must have begun
	begun   bool
	spent   bool // the masked message has left, or may have
}

// try connects and plays. The connection may be lost before the session has begun, and
// another one tried.
func (c *client) try(ctx context.Context) error {
	dialing, cancel := context.WithDeadline(ctx, c.until)
	defer cancel()
	raw, err := c.cfg.Dial(dialing, "tcp", c.address)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrLost, err)
	}
	defer raw.Close()
	// All waiting is in reads and writes, which this wakes up.
	defer context.AfterFunc(ctx, func() { raw.Close() })()
	conn := tls.Client(raw, c.tls)
	raw.SetDeadline(earlier(c.until, time.Now().Add(handshakeTime)))
	if err := conn.Handshake(); err != nil {
		return handshakeError(err)
	}
	if err := agreed(conn.ConnectionState()); err != nil {
		return err
	}
	raw.SetDeadline(time.Time{})
	return c.play(conn)
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func (c *client) play(conn *tls.Conn) error {
	conn.SetReadDeadline(c.until)
	t, payload, err := readFrame(conn, 0)
	if err == nil && t == frameRefusal {
		return readRefusal(payload)
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("%w: the session did not begin", secagg.ErrDeadline)
	case err != nil:
		return broken(err)
	case t != frameBegin:
		return fmt.Errorf("%w: type %d where the session should begin", ErrFrame, t)
	}
	c.begun = true
	if c.cfg.Begin != nil {
		if err := c.cfg.Begin(); err != nil {
			return err
		}
	}
	m, err := c.session.Start()
	if err != nil {
		return err
	}
	if err := c.send(conn, m); err != nil {
		return err
	}
	// How many neighbours there will be it does not know yet.
	limit := limitOf(c.cfg.Protocol.Session.Length, 1<<20)
	for {
		t, payload, err := c.read(conn, limit)
		switch {
		case err != nil:
			return err
		case t == frameRefusal:
			return readRefusal(payload)
		case t == frameEnd && c.session.Done():
			return nil
		case t != frameMessage:
			return fmt.Errorf("%w: type %d in the session", ErrFrame, t)
		}
		m, err := c.session.Step(payload)
		if err != nil {
			return err
		}
		if m == nil {
			continue
		}
		if err := c.send(conn, m); err != nil {
			return err
		}
	}
}

// send writes a message. Others wait for it no longer than a round.
func (c *client) send(conn *tls.Conn, m []byte) error {
	h, err := secagg.Inspect(m)
	if err != nil {
		return err
	}
	if h.Kind == secagg.KindMasked {
		if c.cfg.Spend != nil {
			if err := c.cfg.Spend(); err != nil {
				return err
			}
		}
		c.spent = true
	}
	conn.SetWriteDeadline(time.Now().Add(c.cfg.Protocol.Timeout))
	if _, err := conn.Write(frame(frameMessage, m)); err != nil {
		// The server may have said why, before it closed.
		conn.SetReadDeadline(time.Now().Add(linger))
		if t, payload, err := readFrame(conn, 0); err == nil && t == frameRefusal {
			return readRefusal(payload)
		}
		return broken(err)
	}
	if c.cfg.Sent == nil {
		return nil
	}
	return c.cfg.Sent(h.Kind)
}

// read waits for the server until the client's deadline, and for the end of the session, of which
// the protocol knows nothing, as long again.
func (c *client) read(conn *tls.Conn, limit int) (frameType, []byte, error) {
	left := 3 * c.cfg.Protocol.Timeout
	if !c.session.Done() {
		// A little later, so that the session sees its deadline passed.
		left = c.session.Deadline().Sub(c.cfg.Protocol.Clock()) + 10*time.Millisecond
	}
	conn.SetReadDeadline(time.Now().Add(left))
	t, payload, err := readFrame(conn, limit)
	switch {
	case err == nil:
		return t, payload, nil
	case c.session.Done():
		return 0, nil, fmt.Errorf("%w: this client has done its part, but the server did not say "+
			"how the session ended: %w", secagg.ErrUnfinished, broken(err))
	case errors.Is(err, os.ErrDeadlineExceeded):
		if err := c.session.Tick(); err != nil {
			return 0, nil, err
		}
		return 0, nil, fmt.Errorf("%w: nothing from the server", secagg.ErrDeadline)
	}
	return 0, nil, broken(err)
}

// broken names the end of a connection.
func broken(err error) error {
	var alert *net.OpError
	switch {
	case errors.Is(err, ErrFrame):
		return err
	case errors.As(err, &alert) && alert.Op == "remote error":
		return fmt.Errorf("%w: %w", ErrPeer, err)
	}
	return fmt.Errorf("%w: %w", ErrLost, err)
}
