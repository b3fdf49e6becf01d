package transport

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"testing"
)

// A hub gives a connection, whole, to the session whose name it asks for, and closes what names
// none, is no TLS, or comes for one that has ended.
func TestHub(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := NewHub(l)
	defer h.Close()
	one, err := h.Listen("one.session")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Listen("one.session"); err == nil {
		t.Error("two sessions have one name")
	}
	dial := func(first func(net.Conn)) net.Conn {
		c, err := new(net.Dialer).DialContext(t.Context(), "tcp", h.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		go first(c)
		return c
	}
	hello := func(name string) func(net.Conn) {
		return func(c net.Conn) { _ = tls.Client(c, &tls.Config{ServerName: name}).Handshake() }
	}
	own := dial(hello("one.session"))
	defer own.Close()
	got, err := one.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	// It can be read from its first byte.
	if name, _ := greeting(got); name != "one.session" {
		t.Errorf("the session hears %q", name)
	}
	one.Close()
	if _, err := one.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after its end: %v", err)
	}
	for _, first := range map[string]func(net.Conn){"ended": hello("one.session"), "unknown": hello("two.session"),
		"a stranger": func(c net.Conn) { _, _ = c.Write([]byte("GET / HTTP/1.1\r\n\r\n")) }} {
		done := make(chan bool)
		c := dial(func(c net.Conn) {
			defer close(done)
			first(c)
			_, _ = io.Copy(io.Discard, c) // until the hub closes it
		})
		<-done
		c.Close()
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	if _, err := h.Listen("three.session"); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after its close: %v", err)
	}
}
