package transport

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/secagg"
)

// flood opens n connections that say nothing, as fast as they are taken, and then 64 more a second
// until it is ended.
func flood(t *testing.T, address string, n int) (end func()) {
	t.Helper()
	var all []net.Conn
	for range n {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	stop, done := make(chan bool), make(chan bool)
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Second / 64):
			}
			if c, err := net.Dial("tcp", address); err == nil {
				all = append(all, c)
			}
		}
	}()
	return func() {
		close(stop)
		<-done
		for _, c := range all {
			c.Close()
		}
	}
}

// floods are how many connections say nothing.
func floods() []int {
	if testkit.Size(false, true) {
		return []int{1000, 4000}
	}
	return []int{1000}
}

// Connections that say nothing, and more of them all the time, from the honest clients' own address
// too, do not hold up a session, alone or on a hub.
func TestIdleFloodInTime(t *testing.T) {
	for _, n := range floods() {
		for _, hub := range []bool{false, true} {
			w := newWorld(t, 3, secagg.SemiHonest)
			w.wait, w.timeout = 2*time.Minute, time.Minute
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			address := l.Addr().String()
			if hub {
				h := NewHub(l)
				defer h.Close()
				if l, err = h.Listen("one.session"); err != nil {
					t.Fatal(err)
				}
			}
			out := w.serveOn(t.Context(), l, nil)
			end := flood(t, address, n)
			began := time.Now()
			for id, err := range w.joinAll(t.Context(), address, func(_ uint32, c *ClientConfig) {
				c.ServerName = "one.session"
			}) {
				if err != nil {
					t.Errorf("client %d: %v", id, err)
				}
			}
			if r := <-out; r.err != nil || len(r.result.Survivors) != 3 {
				t.Errorf("%+v", r)
			}
			took := time.Since(began)
			end()
			t.Logf("behind %d connections a session took %v (hub: %v)", n, took.Round(time.Millisecond), hub)
			// if each of those before had two seconds for its place, it would be 14 s and 62 s
			if took > 5*time.Second {
				t.Errorf("behind %d connections a session took %v (hub: %v)", n, took, hub)
			}
		}
	}
}

// stranger is a connection from an address.
type stranger struct {
	net.Conn
	from   string
	closed bool
}

func (s *stranger) RemoteAddr() net.Addr { return address(s.from) }

func (s *stranger) Close() error {
	s.closed = true
	return nil
}

type address string

func (address) Network() string  { return "tcp" }
func (a address) String() string { return string(a) }

// One address, or one /64, that opens connections without end loses its own: those of others stay,
// however old. Places by age alone, the broken copy, give away those of others.
func TestPlaces(t *testing.T) {
	play := func(from func(i int) string) (kept int, p *places) {
		p = newPlaces(8)
		honest := []*stranger{{from: "192.0.2.1:1"}, {from: "192.0.2.2:1"}, {from: "[2001:db8:0:1::1]:1"}}
		for _, c := range honest {
			if p.take(c) == nil {
				t.Fatal("no place")
			}
		}
		var last *place
		for i := range 1000 {
			last = p.take(&stranger{from: from(i)})
			if last == nil || last.conn.(*stranger).closed || len(p.taken) > 8 || len(p.by) > 8 {
				t.Fatalf("%d: the new one has no place, or there are %d", i, len(p.taken))
			}
		}
		for _, c := range honest {
			if !c.closed {
				kept++
			}
		}
		p.leave(last)
		p.leave(last)
		if n := len(p.taken); n != 7 {
			t.Errorf("after one has left there are %d", n)
		}
		return kept, p
	}
	for _, from := range []func(int) string{
		func(i int) string { return fmt.Sprintf("192.0.2.9:%d", i) },
		func(i int) string { return fmt.Sprintf("[2001:db8:0:2::%x]:1", i) },
	} {
		kept, p := play(from)
		if kept != 3 {
			t.Errorf("%s: %d of 3 others have kept their places", from(0), kept)
		}
		p.close()
		if c := (&stranger{from: "192.0.2.1:2"}); p.take(c) != nil || !p.taken[0].conn.(*stranger).closed {
			t.Error("there are places after the end")
		}
	}
	if kept, _ := play(func(int) string { return "a pipe" }); kept != 3 {
		t.Errorf("connections of no address: %d of 3 others have kept their places", kept)
	}
	// where nobody has two, age alone counts
	if kept, _ := play(func(i int) string { return fmt.Sprintf("198.51.%d.%d:1", i/250, i%250) }); kept != 0 {
		t.Errorf("places by age alone keep those of %d others: the test sees nothing", kept)
	}
}

// A session that accepts nothing holds up no other, and leaves nothing open at its end.
func TestSlowSession(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := NewHub(l)
	defer h.Close()
	slow, err := h.Listen("slow.session")
	if err != nil {
		t.Fatal(err)
	}
	other, err := h.Listen("other.session")
	if err != nil {
		t.Fatal(err)
	}
	var all []net.Conn
	dial := func(name string) {
		c, err := net.Dial("tcp", h.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
		var hello recorder
		_ = tls.Client(&hello, &tls.Config{ServerName: name}).Handshake()
		if _, err := c.Write(hello.said); err != nil {
			t.Fatal(err)
		}
	}
	for range hubPlaces + 200 {
		dial("slow.session")
	}
	dial("other.session")
	c, err := other.Accept()
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if c, err = slow.Accept(); err != nil { // those that it has are the latest
		t.Fatal(err)
	}
	c.Close()
	slow.Close()
	for _, c := range all { // nothing of it is left open
		c.SetReadDeadline(time.Now().Add(10 * time.Second))
		if _, err := c.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal("a connection is still open")
		}
		c.Close()
	}
}

// recorder keeps what is said to it, and answers nothing.
type recorder struct {
	net.Conn
	said []byte
}

func (r *recorder) Write(b []byte) (int, error) {
	r.said = append(r.said, b...)
	return len(b), nil
}
func (r *recorder) Read([]byte) (int, error) { return 0, io.EOF }
