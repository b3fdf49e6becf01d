package transport

import (
	"bytes"
	"context"
	"crypto/ed25519"
	crand "crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/big"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/secagg"
)

// world is a session with its server and clients 1 to n, of whom client i has the message 2^(i-1).
type world struct {
	t       testing.TB
	session secagg.Session
	server  ed25519.PrivateKey
	keys    map[uint32]ed25519.PrivateKey
	public  map[uint32]ed25519.PublicKey
	wait    time.Duration
	timeout time.Duration

	mu  sync.Mutex
	log []Event
}

func key(name string) ed25519.PrivateKey {
	seed := sha256.Sum256([]byte(name))
	return ed25519.NewKeyFromSeed(seed[:])
}

func newWorld(t testing.TB, n int, mode secagg.Mode) *world {
	t.Helper()
	w := &world{t: t, server: key("server"), keys: map[uint32]ed25519.PrivateKey{},
		public: map[uint32]ed25519.PublicKey{}, wait: 10 * time.Second, timeout: 10 * time.Second}
	w.session = secagg.Session{ID: sha256.Sum256([]byte(t.Name())), Experiment: "test", Arm: 1,
		Batch: 2, Grid: 10, Length: 1, Enrolled: n, NMin: 3, Noise: "none", Mode: mode, Delta: .3}
	for i := range n {
		id := uint32(i + 1)
		w.keys[id] = key(fmt.Sprint("client", id))
		w.public[id] = w.keys[id].Public().(ed25519.PublicKey)
	}
	return w
}

// No goroutine outlives the tests, which wait for deadlines rather than compute: more of them go side
// by side than there are processors.
func TestMain(m *testing.M) {
	flag.Parse()
	if p := flag.Lookup("test.parallel"); !testkit.Race {
		if err := p.Value.Set("8"); err != nil {
			panic(err)
		}
	}
	before := runtime.NumGoroutine()
	code := m.Run()
	// the fuzzing engine keeps a goroutine of its own
	if f := flag.Lookup("test.fuzz"); f != nil && f.Value.String() != "" {
		os.Exit(code)
	}
	for until := time.Now().Add(5 * time.Second); code == 0 &&
		runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			stacks := make([]byte, 1<<16)
			fmt.Printf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before,
				stacks[:runtime.Stack(stacks, true)])
			code = 1
		}
	}
	os.Exit(code)
}

type outcome struct {
	result secagg.Result
	err    error
}

// serve starts the server.
func (w *world) serve(ctx context.Context, change func(*ServerConfig)) (address string, out <-chan outcome) {
	w.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	return l.Addr().String(), w.serveOn(ctx, l, change)
}

func (w *world) serveOn(ctx context.Context, l net.Listener, change func(*ServerConfig)) <-chan outcome {
	cfg := ServerConfig{Protocol: secagg.ServerConfig{Session: w.session, Identity: w.server,
		Clients: w.public, Timeout: w.timeout}, Wait: w.wait,
		Log: func(e Event) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.log = append(w.log, e)
		}}
	if change != nil {
		change(&cfg)
	}
	c := make(chan outcome, 1)
	go func() {
		r, err := Serve(ctx, l, cfg)
		c <- outcome{r, err}
	}()
	return c
}

func (w *world) client(id uint32) ClientConfig {
	return ClientConfig{Protocol: secagg.ClientConfig{Session: w.session, ID: id,
		Identity: w.keys[id], Server: w.server.Public().(ed25519.PublicKey),
		Pinned: secagg.PinnedKeys(w.public), Timeout: w.timeout}, Wait: w.wait}
}

func (w *world) message(id uint32) []uint64 { return []uint64{1 << ((id - 1) % 64)} }

func (w *world) sumOf(survivors []uint32) (sum uint64) {
	for _, id := range survivors {
		sum += w.message(id)[0]
	}
	return sum
}

// joinAll plays clients, and returns their errors.
func (w *world) joinAll(ctx context.Context, address string, change func(uint32, *ClientConfig),
	ids ...uint32) map[uint32]error {
	if ids == nil {
		for id := range w.keys {
			ids = append(ids, id)
		}
	}
	var group sync.WaitGroup
	var mu sync.Mutex
	errs := map[uint32]error{}
	for _, id := range ids {
		group.Go(func() {
			cfg := w.client(id)
			if change != nil {
				change(id, &cfg)
			}
			err := Join(ctx, address, cfg, w.message(id))
			mu.Lock()
			defer mu.Unlock()
			errs[id] = err
		})
	}
	group.Wait()
	return errs
}

// logged says whether the server has logged an error about a client, or about a stranger (0).
func (w *world) logged(client uint32, want error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.log, func(e Event) bool {
		return e.Client == client && e.Named == (client != 0) && errors.Is(e.Err, want)
	})
}

var errVanish = errors.New("vanish")

// Fifty clients over loopback, or twenty: all stay, or a tenth vanishes after a message of each
// kind. Nobody waits for a deadline.
func TestSession(t *testing.T) {
	t.Parallel()
	for _, mode := range []secagg.Mode{secagg.SemiHonest, secagg.Malicious} {
		for _, kind := range []secagg.Kind{0, secagg.KindAdvertise, secagg.KindShares,
			secagg.KindMasked, secagg.KindAck, secagg.KindOpen} {
			if kind == secagg.KindAck && mode == secagg.SemiHonest {
				continue
			}
			t.Run(fmt.Sprintf("%v/%v", mode, kind), func(t *testing.T) {
				n := 20
				if kind == secagg.KindShares {
					n = 50
				}
				w := newWorld(t, n, mode)
				w.timeout = time.Minute
				began := time.Now()
				address, out := w.serve(t.Context(), nil)
				errs := w.joinAll(t.Context(), address, func(id uint32, c *ClientConfig) {
					if id%10 == 0 {
						c.Sent = func(k secagg.Kind) error {
							if k == kind {
								return errVanish
							}
							return nil
						}
					}
				})
				r := <-out
				if r.err != nil {
					t.Fatal(r.err)
				}
				if took := time.Since(began); took > w.timeout {
					t.Errorf("it took %v: a round waited for its deadline", took)
				}
				stay := n - n/10
				if kind == 0 || kind >= secagg.KindMasked {
					stay = n
				}
				if len(r.result.Survivors) != stay || r.result.Sum[0] != w.sumOf(r.result.Survivors) {
					t.Errorf("sum %x of %d, want %x of %d", r.result.Sum, len(r.result.Survivors),
						w.sumOf(r.result.Survivors), stay)
				}
				for id, err := range errs {
					if kind != 0 && id%10 == 0 {
						if !errors.Is(err, errVanish) {
							t.Errorf("client %d: %v, want to vanish", id, err)
						}
					} else if err != nil {
						t.Errorf("client %d: %v", id, err)
					}
				}
			})
		}
	}
}

// Messages of the greatest possible length for their session pass: the limit on frames is above them.
func TestLimit(t *testing.T) {
	for _, mode := range []secagg.Mode{secagg.SemiHonest, secagg.Malicious} {
		w := newWorld(t, 24, mode)
		w.session.Length, w.session.Complete, w.session.Delta = 40, true, .2
		messages := map[uint32][]uint64{}
		for id := range w.keys {
			messages[id] = make([]uint64, 40)
		}
		limit, most := limitOf(40, 24), 0
		_, _, err := secagg.Local{Fault: func(f secagg.Frame) [][]byte {
			most = max(most, len(f.Message))
			return [][]byte{f.Message}
		}}.Sum(t.Context(), w.session, messages)
		if err != nil {
			t.Fatal(err)
		}
		if most > limit || most < limit/4 {
			t.Errorf("%v: the longest message has %d bytes, the limit is %d", mode, most, limit)
		}
	}
}

// A client who is not there when the wait is over is left out, and told so when it comes; the
// others sum without the client.
func TestLatecomer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 6, secagg.SemiHonest)
	w.wait = 3 * time.Second // five clients are there long before
	address, out := w.serve(t.Context(), nil)
	var late error
	var group sync.WaitGroup
	begun := make(chan struct{})
	hold := make(chan struct{})
	group.Go(func() {
		<-begun
		late = w.joinAll(t.Context(), address, nil, 6)[6]
		close(hold)
	})
	var once sync.Once
	errs := w.joinAll(t.Context(), address, func(id uint32, c *ClientConfig) {
		c.Wait = 10 * time.Second
		c.Begin = func() error {
			once.Do(func() { close(begun) })
			<-hold // the session lasts until the latecomer has been told
			return nil
		}
	}, 1, 2, 3, 4, 5)
	group.Wait()
	r := <-out
	if r.err != nil || len(r.result.Survivors) != 5 || r.result.Sum[0] != w.sumOf(r.result.Survivors) {
		t.Errorf("%+v", r)
	}
	for id, err := range errs {
		if err != nil {
			t.Errorf("client %d: %v", id, err)
		}
	}
	var refused *Refusal
	if !errors.As(late, &refused) || !errors.Is(late, secagg.ErrLate) {
		t.Errorf("the latecomer: %v, want %v", late, secagg.ErrLate)
	}
}

// Too few come.
func TestTooFewCome(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 6, secagg.SemiHonest)
	w.session.NMin = 5
	w.wait = 3 * time.Second
	address, out := w.serve(t.Context(), nil)
	for id, err := range w.joinAll(t.Context(), address, nil, 1, 2, 3) {
		var refused *Refusal
		if !errors.As(err, &refused) || !errors.Is(err, secagg.ErrTooFew) {
			t.Errorf("client %d: %v, want %v", id, err, secagg.ErrTooFew)
		}
	}
	if r := <-out; !errors.Is(r.err, secagg.ErrTooFew) {
		t.Errorf("%+v, want %v", r, secagg.ErrTooFew)
	}
}

// When too many vanish the others are told at once.
func TestFailureIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 8, secagg.Malicious)
	w.session.NMin = 7
	w.timeout = time.Minute
	began := time.Now()
	address, out := w.serve(t.Context(), nil)
	errs := w.joinAll(t.Context(), address, func(id uint32, c *ClientConfig) {
		if id <= 2 {
			c.Sent = func(k secagg.Kind) error {
				if k == secagg.KindShares {
					return errVanish
				}
				return nil
			}
		}
	})
	for id, err := range errs {
		if want := map[bool]error{true: errVanish, false: secagg.ErrTooFew}[id <= 2]; !errors.Is(err, want) {
			t.Errorf("client %d: %v, want %v", id, err, want)
		}
	}
	if r := <-out; !errors.Is(r.err, secagg.ErrTooFew) || time.Since(began) > w.timeout {
		t.Errorf("%+v after %v, want %v at once", r, time.Since(began), secagg.ErrTooFew)
	}
}

// Identities: the server's pin, a stranger's key, a stolen name, a swapped key of a neighbour,
// other parameters.
func TestIdentities(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(w *world, c *ClientConfig) // of client 1
		want   error
		told   bool // by the server
		there  bool // the session begins with the client
	}{
		{"another server is pinned", func(w *world, c *ClientConfig) {
			c.Protocol.Server = key("other").Public().(ed25519.PublicKey)
		}, ErrPeer, false, false},
		{"not enrolled", func(w *world, c *ClientConfig) {
			c.Protocol.Identity = key("other")
		}, secagg.ErrUnknown, true, false},
		{"another's number", func(w *world, c *ClientConfig) {
			c.Protocol.ID = 2
		}, secagg.ErrSender, true, true},
		{"a swapped neighbour", func(w *world, c *ClientConfig) {
			swapped := map[uint32]ed25519.PublicKey{}
			for id, k := range w.public {
				swapped[id] = k
			}
			swapped[2] = key("other").Public().(ed25519.PublicKey)
			c.Protocol.Pinned = secagg.PinnedKeys(swapped)
		}, secagg.ErrSignature, false, true},
		{"another arm", func(w *world, c *ClientConfig) {
			c.Protocol.Session.Arm++
		}, secagg.ErrContext, true, true},
		{"another session", func(w *world, c *ClientConfig) {
			c.Protocol.Session.ID[0]++
		}, secagg.ErrReplay, true, true},
		{"used before", func(w *world, c *ClientConfig) {
			c.Protocol.Used = new(secagg.Used)
			c.Protocol.Used.Add(w.session.ID)
		}, secagg.ErrReplay, false, true},
		{"cannot write it down", func(w *world, c *ClientConfig) {
			c.Begin = func() error { return errVanish }
		}, errVanish, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 6, secagg.Malicious)
			if !c.there {
				w.wait = 3 * time.Second
			}
			address, out := w.serve(t.Context(), nil)
			errs := w.joinAll(t.Context(), address, func(id uint32, cfg *ClientConfig) {
				if id == 1 {
					c.change(w, cfg)
				}
			})
			var refused *Refusal
			if err := errs[1]; !errors.Is(err, c.want) || errors.As(err, &refused) != c.told {
				t.Errorf("client 1: %v, want %v, told by the server: %v", err, c.want, c.told)
			}
			r := <-out
			if r.err != nil || slices.Contains(r.result.Survivors, 1) ||
				len(r.result.Survivors) != 5 || r.result.Sum[0] != w.sumOf(r.result.Survivors) {
				t.Errorf("%+v", r)
			}
		})
	}
}

// A server with a certificate of an authority: for clients who believe it and mean its name.
func TestAuthority(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4, secagg.SemiHonest)
	w.wait = 3 * time.Second
	issuer := key("authority")
	authority := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	leaf := &x509.Certificate{SerialNumber: big.NewInt(2), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"sums.example.org"}}
	root, err := x509.CreateCertificate(crand.Reader, authority, authority, issuer.Public(), issuer)
	if err != nil {
		t.Fatal(err)
	}
	own := key("certificate")
	der, err := x509.CreateCertificate(crand.Reader, leaf, authority, own.Public(), issuer)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	parsed, err := x509.ParseCertificate(root)
	if err != nil {
		t.Fatal(err)
	}
	roots.AddCert(parsed)
	address, out := w.serve(t.Context(), func(c *ServerConfig) {
		c.Certificate = &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: own}
	})
	errs := w.joinAll(t.Context(), address, func(id uint32, c *ClientConfig) {
		c.Roots, c.ServerName = roots, "sums.example.org"
		if id == 4 {
			c.ServerName = "other.example.org"
		}
	})
	for id, err := range errs {
		if want := map[bool]error{true: ErrPeer}[id == 4]; !errors.Is(err, want) {
			t.Errorf("client %d: %v, want %v", id, err, want)
		}
	}
	if r := <-out; r.err != nil || len(r.result.Survivors) != 3 {
		t.Errorf("%+v", r)
	}
}

// connect is a client's connection by hand.
func (w *world) connect(address string, id uint32) *tls.Conn {
	w.t.Helper()
	own, err := Certificate(w.keys[id])
	if err != nil {
		w.t.Fatal(err)
	}
	conn, err := tls.Dial("tcp", address, clientTLS(own, w.server.Public().(ed25519.PublicKey), nil,
		"localhost"))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { conn.NetConn().Close() })
	return conn
}

// until reads frames up to one of a type.
func until(t *testing.T, conn *tls.Conn, want frameType) []byte {
	t.Helper()
	conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	for {
		k, payload, err := readFrame(conn, secagg.MaxMessage)
		if err != nil {
			t.Errorf("%v, want a frame of type %d", err, want)
			return nil
		}
		if k == want {
			return payload
		}
	}
}

// Clients who misbehave on their connection, one of ten: garbage, frames of a wrong kind or length,
// silence, a byte at a time, a hangup in the middle of a frame, a message that nobody reads. The
// others get their sum; only silence costs them a round's time.
func TestBadPeers(t *testing.T) {
	t.Parallel()
	big := binary.BigEndian.AppendUint32([]byte{Version, byte(frameMessage)}, 1<<31)
	for _, c := range []struct {
		name string
		do   func(t *testing.T, w *world, conn *tls.Conn)
		slow bool  // it takes a deadline to find out
		want error // of the server's log; of the refusal if it reads
	}{
		{"garbage", func(t *testing.T, w *world, conn *tls.Conn) {
			conn.Write(bytes.Repeat([]byte{0xa5, 0x5a, 7}, 5000))
		}, false, ErrFrame},
		{"another version", func(t *testing.T, w *world, conn *tls.Conn) {
			conn.Write([]byte{Version + 1, 1, 0, 0, 0, 0})
		}, false, ErrFrame},
		{"a server's frame", func(t *testing.T, w *world, conn *tls.Conn) {
			conn.Write(frame(frameBegin, nil))
		}, false, ErrFrame},
		{"two gigabytes are announced", func(t *testing.T, w *world, conn *tls.Conn) {
			conn.Write(big)
		}, false, ErrFrame},
		{"an empty message", func(t *testing.T, w *world, conn *tls.Conn) {
			conn.Write(frame(frameMessage, nil))
		}, false, secagg.ErrMalformed},
		{"garbage in a frame", func(t *testing.T, w *world, conn *tls.Conn) {
			conn.Write(frame(frameMessage, make([]byte, 300)))
		}, false, secagg.ErrMalformed},
		{"a flood", func(t *testing.T, w *world, conn *tls.Conn) {
			bad := bytes.Repeat(frame(frameMessage, make([]byte, 10)), 1000)
			conn.SetWriteDeadline(time.Now().Add(time.Second))
			for {
				if _, err := conn.Write(bad); err != nil {
					return
				}
			}
		}, false, nil},
		{"a hangup in a frame", func(t *testing.T, w *world, conn *tls.Conn) {
			conn.Write(frame(frameMessage, make([]byte, 300))[:200])
			conn.Close()
		}, false, nil},
		{"a reset", func(t *testing.T, w *world, conn *tls.Conn) {
			conn.NetConn().(*net.TCPConn).SetLinger(0)
			conn.NetConn().Close()
		}, false, ErrLost},
		{"silence", func(t *testing.T, w *world, conn *tls.Conn) {}, true, secagg.ErrLate},
		{"a byte at a time", func(t *testing.T, w *world, conn *tls.Conn) {
			for _, b := range frame(frameMessage, make([]byte, 300)) {
				if _, err := conn.Write([]byte{b}); err != nil {
					return
				}
				time.Sleep(20 * time.Millisecond)
			}
		}, true, secagg.ErrLate},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 10, secagg.SemiHonest)
			if c.slow {
				w.timeout = 2 * time.Second
			} else {
				w.timeout = time.Minute
			}
			began := time.Now()
			address, out := w.serve(t.Context(), nil)
			var group sync.WaitGroup
			group.Go(func() {
				conn := w.connect(address, 10)
				until(t, conn, frameBegin)
				c.do(t, w, conn)
				if conn.NetConn().SetReadDeadline(time.Now().Add(10*time.Second)) == nil &&
					c.want != nil && c.want != ErrLost {
					if err := readRefusal(until(t, conn, frameRefusal)); !errors.Is(err, c.want) {
						t.Errorf("told %v, want %v", err, c.want)
					}
				}
				conn.NetConn().Close()
			})
			for id, err := range w.joinAll(t.Context(), address, nil, 1, 2, 3, 4, 5, 6, 7, 8, 9) {
				if err != nil {
					t.Errorf("client %d: %v", id, err)
				}
			}
			r := <-out
			group.Wait()
			if r.err != nil || len(r.result.Survivors) != 9 || r.result.Sum[0] != w.sumOf(r.result.Survivors) {
				t.Errorf("%+v", r)
			}
			if took := time.Since(began); took > w.timeout+20*time.Second {
				t.Errorf("it took %v", took)
			}
			if c.want != nil && !w.logged(10, c.want) {
				t.Errorf("not logged: %v, but %v", c.want, w.log)
			}
		})
	}
}

// stuck is a listener whose connections can be made to take nothing any more, by the other end's
// address, as when a machine has gone without a word and all buffers are full.
type stuck struct {
	net.Listener
	addresses sync.Map
}

type stuckConn struct {
	net.Conn
	of     *stuck
	closed chan struct{}
	once   sync.Once
}

func (s *stuck) Accept() (net.Conn, error) {
	c, err := s.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &stuckConn{Conn: c, of: s, closed: make(chan struct{})}, nil
}

func (c *stuckConn) Write(b []byte) (int, error) {
	if _, ok := c.of.addresses.Load(c.RemoteAddr().String()); ok {
		<-c.closed
		return 0, net.ErrClosed
	}
	return c.Conn.Write(b)
}

func (c *stuckConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// A client who takes nothing any more when the end is told holds up nobody, the server only a
// little, and does not know how it ended.
func TestStuckAtTheEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 6, secagg.SemiHonest)
	w.timeout = time.Minute
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &stuck{Listener: inner}
	out := make(chan outcome, 1)
	began := time.Now()
	go func() {
		r, err := Serve(t.Context(), l,
			ServerConfig{Protocol: secagg.ServerConfig{Session: w.session, Identity: w.server,
				Clients: w.public, Timeout: w.timeout}, Wait: w.wait})
		out <- outcome{r, err}
	}()
	errs := w.joinAll(t.Context(), inner.Addr().String(), func(id uint32, c *ClientConfig) {
		if id != 6 {
			return
		}
		var own string
		c.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, address)
			if err == nil {
				own = conn.LocalAddr().String()
			}
			return conn, err
		}
		c.Sent = func(k secagg.Kind) error {
			if k == secagg.KindMasked { // nothing after it: not even who survives
				l.addresses.Store(own, true)
			}
			return nil
		}
		c.Protocol.Timeout = time.Second // it gives up after three of them
	})
	r := <-out
	if r.err != nil || len(r.result.Survivors) != 6 ||
		r.result.Sum[0] != w.sumOf(r.result.Survivors) || time.Since(began) > w.timeout {
		t.Errorf("%+v after %v", r, time.Since(began))
	}
	for id, err := range errs {
		if want := map[bool]error{true: secagg.ErrDeadline}[id == 6]; !errors.Is(err, want) {
			t.Errorf("client %d: %v, want %v", id, err, want)
		}
	}
}

// Strangers: more connections than may be pending who say nothing, and others who talk nonsense,
// keep nobody out.
func TestStrangers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 5, secagg.SemiHonest)
	address, out := w.serve(t.Context(), func(c *ServerConfig) { c.MaxPending = 4 })
	var strangers []net.Conn
	for i := range 6 {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			io.WriteString(conn, "GET / HTTP/1.1\r\n\r\n")
		}
		strangers = append(strangers, conn)
	}
	for id, err := range w.joinAll(t.Context(), address, nil) {
		if err != nil {
			t.Errorf("client %d: %v", id, err)
		}
	}
	r := <-out
	if r.err != nil || len(r.result.Survivors) != 5 {
		t.Errorf("%+v", r)
	}
	if !w.logged(0, ErrPeer) {
		t.Errorf("not logged: %v", w.log)
	}
	for _, c := range strangers {
		c.Close()
	}
}

// Old versions of TLS, clients without a certificate or with one of another kind of key, and
// clients who mean another protocol are strangers.
func TestHandshakes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3, secagg.SemiHonest)
	ctx, cancel := context.WithCancel(t.Context())
	address, out := w.serve(ctx, nil)
	own, err := Certificate(w.keys[1])
	if err != nil {
		t.Fatal(err)
	}
	good := func() *tls.Config {
		return clientTLS(own, w.server.Public().(ed25519.PublicKey), nil, "localhost")
	}
	for name, change := range map[string]func(*tls.Config){
		"tls 1.2": func(c *tls.Config) {
			c.MinVersion, c.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
		},
		"no certificate": func(c *tls.Config) { c.Certificates = nil },
		"http":           func(c *tls.Config) { c.NextProtos = []string{"h2"} },
		"no protocol":    func(c *tls.Config) { c.NextProtos = nil },
	} {
		cfg := good()
		change(cfg)
		conn, err := tls.Dial("tcp", address, cfg)
		if err != nil {
			continue
		}
		conn.SetReadDeadline(time.Now().Add(5 * time.Second))
		k, payload, err := readFrame(conn, 0)
		if err == nil && (k != frameRefusal || !errors.Is(readRefusal(payload), ErrPeer)) {
			t.Errorf("%s: let in, with a frame of type %d", name, k)
		}
		conn.Close()
	}
	cancel()
	if r := <-out; !errors.Is(r.err, context.Canceled) {
		t.Errorf("%+v", r)
	}
}

// came waits until so many clients have come, whom the server has noted.
func (w *world) came(n int) {
	for here := 0; here < n; time.Sleep(time.Millisecond) {
		w.mu.Lock()
		here = len(w.log)
		w.mu.Unlock()
	}
}

// One connection a client: the second one is turned away and does not disturb the first.
func TestOneConnection(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4, secagg.SemiHonest)
	address, out := w.serve(t.Context(), nil)
	var group sync.WaitGroup
	var first map[uint32]error
	group.Go(func() { first = w.joinAll(t.Context(), address, nil, 1, 2, 3) })
	w.came(3)
	if err := w.joinAll(t.Context(), address, nil, 2)[2]; !errors.Is(err, secagg.ErrDuplicate) {
		t.Errorf("the second: %v, want %v", err, secagg.ErrDuplicate)
	}
	if err := w.joinAll(t.Context(), address, nil, 4)[4]; err != nil {
		t.Error(err)
	}
	group.Wait()
	for id, err := range first {
		if err != nil {
			t.Errorf("client %d: %v", id, err)
		}
	}
	if r := <-out; r.err != nil || len(r.result.Survivors) != 4 {
		t.Errorf("%+v", r)
	}
}

// A client whose connection breaks before the session begins comes back by itself, and one who is
// early finds the server when it is there.
func TestComeBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3, secagg.SemiHonest)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	var tries atomic.Int32
	var group sync.WaitGroup
	var errs map[uint32]error
	group.Go(func() {
		errs = w.joinAll(t.Context(), address, func(id uint32, c *ClientConfig) {
			if id != 1 {
				return
			}
			c.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := new(net.Dialer).DialContext(ctx, network, address)
				if err == nil {
					if tries.Add(1) == 1 {
						time.AfterFunc(50*time.Millisecond, func() { conn.Close() })
					}
				}
				return conn, err
			}
		}, 1, 2)
	})
	time.Sleep(100 * time.Millisecond)
	if l, err = net.Listen("tcp", address); err != nil {
		t.Skip("somebody else has taken the port")
	}
	var out outcome
	group.Go(func() {
		out.result, out.err = Serve(t.Context(), l,
			ServerConfig{Protocol: secagg.ServerConfig{Session: w.session, Identity: w.server,
				Clients: w.public, Timeout: w.timeout}, Wait: w.wait})
	})
	// the session begins when the third is there
	for until := time.Now().Add(w.wait); tries.Load() < 2 && time.Now().Before(until); {
		time.Sleep(time.Millisecond)
	}
	if err := w.joinAll(t.Context(), address, nil, 3)[3]; err != nil {
		t.Error(err)
	}
	group.Wait()
	if out.err != nil || len(out.result.Survivors) != 3 || errs[1] != nil || errs[2] != nil || tries.Load() < 2 {
		t.Errorf("%+v, %v, %d tries", out, errs, tries.Load())
	}
}

// A context that ends stops a server, which tells its clients, and a client, who vanishes.
func TestCancel(t *testing.T) {
	t.Parallel()
	for _, begun := range []bool{false, true} {
		w := newWorld(t, 4, secagg.SemiHonest)
		w.timeout = time.Minute
		ctx, cancel := context.WithCancel(t.Context())
		address, out := w.serve(ctx, nil)
		var group sync.WaitGroup
		group.Go(func() { // the fourth says nothing
			if begun {
				until(t, w.connect(address, 4), frameBegin)
			}
			w.came(3)
			cancel()
		})
		for id, err := range w.joinAll(t.Context(), address, nil, 1, 2, 3) {
			if !errors.Is(err, ErrStopped) {
				t.Errorf("client %d: %v, want %v", id, err, ErrStopped)
			}
		}
		if r := <-out; !errors.Is(r.err, context.Canceled) {
			t.Errorf("%+v", r)
		}
		group.Wait()
	}

	w := newWorld(t, 4, secagg.SemiHonest)
	ctx, cancel := context.WithCancel(t.Context())
	server, stop := context.WithCancel(t.Context())
	address, out := w.serve(server, nil)
	time.AfterFunc(200*time.Millisecond, cancel)
	for id, err := range w.joinAll(ctx, address, nil, 1, 2) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("client %d: %v", id, err)
		}
	}
	stop()
	if r := <-out; !errors.Is(r.err, context.Canceled) {
		t.Errorf("%+v", r)
	}
}

// A server that falls silent runs its clients into their deadlines; one that hangs up is a lost
// connection; one that talks nonsense is found out; one that hangs up at the end leaves it open how
// the session ended.
func TestBadServers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		do   func(conn *tls.Conn)
		want error
	}{
		{"silent from the start", func(conn *tls.Conn) { io.Copy(io.Discard, conn) }, secagg.ErrDeadline},
		{"silent after the start", func(conn *tls.Conn) {
			conn.Write(frame(frameBegin, nil))
			io.Copy(io.Discard, conn)
		}, secagg.ErrDeadline},
		{"a byte at a time", func(conn *tls.Conn) {
			conn.Write(frame(frameBegin, nil))
			for _, b := range frame(frameMessage, make([]byte, 1000)) {
				if _, err := conn.Write([]byte{b}); err != nil {
					return
				}
				time.Sleep(10 * time.Millisecond)
			}
		}, secagg.ErrDeadline},
		{"hangs up", func(conn *tls.Conn) { conn.Write(frame(frameBegin, nil)) }, ErrLost},
		{"nonsense", func(conn *tls.Conn) {
			conn.Write(frame(frameBegin, nil))
			conn.Write(make([]byte, 100))
			io.Copy(io.Discard, conn)
		}, ErrFrame},
		{"a message that is none", func(conn *tls.Conn) {
			conn.Write(frame(frameBegin, nil))
			conn.Write(frame(frameMessage, make([]byte, 100)))
			io.Copy(io.Discard, conn)
		}, secagg.ErrMalformed},
		{"ends too soon", func(conn *tls.Conn) {
			conn.Write(frame(frameBegin, nil))
			conn.Write(frame(frameEnd, nil))
			io.Copy(io.Discard, conn)
		}, ErrFrame},
		{"begins with a message", func(conn *tls.Conn) {
			conn.Write(frame(frameMessage, nil))
			io.Copy(io.Discard, conn)
		}, ErrFrame},
		{"another protocol", nil, ErrPeer},
		{"no TLS", nil, ErrPeer},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 3, secagg.SemiHonest)
			w.timeout, w.wait = 3*time.Second, 3*time.Second // room for a handshake, on a busy machine too
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			var group sync.WaitGroup
			group.Go(func() {
				for {
					raw, err := l.Accept()
					if err != nil {
						return
					}
					own, _ := Certificate(w.server)
					cfg := serverTLS(own)
					if c.name == "another protocol" {
						cfg.NextProtos = nil
					}
					if c.name == "no TLS" {
						io.WriteString(raw, "220 mail.example.org ESMTP\r\n")
						raw.Close()
						continue
					}
					conn := tls.Server(raw, cfg)
					if conn.Handshake() == nil && c.do != nil {
						c.do(conn)
					}
					raw.Close()
				}
			})
			cfg := w.client(1)
			if err := Join(t.Context(), l.Addr().String(), cfg, w.message(1)); !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
			l.Close()
			group.Wait()
		})
	}
}

// Bad configurations.
func TestConfigurations(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3, secagg.SemiHonest)
	for name, change := range map[string]func(*ServerConfig){
		"wait":     func(c *ServerConfig) { c.Wait = -1 },
		"pending":  func(c *ServerConfig) { c.MaxPending = -1 },
		"timeout":  func(c *ServerConfig) { c.Protocol.Timeout = -1 },
		"identity": func(c *ServerConfig) { c.Protocol.Identity = nil },
		"session":  func(c *ServerConfig) { c.Protocol.Session.NMin = 0 },
		"one key": func(c *ServerConfig) {
			c.Protocol.Clients = map[uint32]ed25519.PublicKey{1: w.public[1], 2: w.public[1], 3: w.public[2]}
		},
		"no clients": func(c *ServerConfig) { c.Protocol.Clients = nil },
	} {
		_, out := w.serve(t.Context(), change)
		if r := <-out; !errors.Is(r.err, secagg.ErrSession) && !errors.Is(r.err, secagg.ErrTooFew) {
			t.Errorf("%s: %+v", name, r)
		}
	}
	for name, change := range map[string]func(*ClientConfig){
		"wait":     func(c *ClientConfig) { c.Wait = -1 },
		"identity": func(c *ClientConfig) { c.Protocol.Identity = nil },
		"session":  func(c *ClientConfig) { c.Protocol.Session.NMin = 0 },
	} {
		cfg := w.client(1)
		change(&cfg)
		if err := Join(t.Context(), "127.0.0.1:1", cfg, w.message(1)); !errors.Is(err, secagg.ErrSession) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := Join(t.Context(), "nowhere", w.client(1), w.message(1)); err == nil {
		t.Error("an address without a port")
	}
	w.wait = 100 * time.Millisecond
	if err := Join(t.Context(), "127.0.0.1:1", w.client(1), w.message(1)); !errors.Is(err, ErrLost) {
		t.Errorf("nobody listens: %v", err)
	}
}

// Every named error of secagg passes through a refusal.
func TestRefusals(t *testing.T) {
	codes := map[byte]bool{}
	for _, n := range named {
		k, payload, err := readFrame(bytes.NewReader(refusal(fmt.Errorf("client 3: %w: because", n.err))), 0)
		if err != nil || k != frameRefusal {
			t.Fatal(k, err)
		}
		if got := readRefusal(payload); !errors.Is(got, n.err) || codes[n.code] {
			t.Errorf("%v became %v, code %d", n.err, got, n.code)
		}
		codes[n.code] = true
	}
	for _, err := range []error{fmt.Errorf("round: %w: %w", secagg.ErrDeadline, secagg.ErrTooFew),
		fmt.Errorf("%w of round: %w", secagg.ErrTooFew, secagg.ErrDeadline)} {
		_, payload, _ := readFrame(bytes.NewReader(refusal(err)), 0)
		if got := readRefusal(payload); !errors.Is(got, secagg.ErrTooFew) {
			t.Errorf("%v became %v", err, got)
		}
	}
	_, payload, err := readFrame(bytes.NewReader(refusal(errors.New("a\x1b[2Jb"+
		string(bytes.Repeat([]byte("ä"), 1000))))), 0)
	if err != nil {
		t.Fatal(err)
	}
	got := readRefusal(payload)
	if text := got.Error(); len(text) > maxText+50 ||
		text[:len("the server refuses: a.[2Jb")] != "the server refuses: a.[2Jb" {
		t.Errorf("%q", got)
	}
	if got := readRefusal([]byte{255}); errors.Unwrap(got) != nil {
		t.Errorf("%v", got)
	}
}

func FuzzReadFrame(f *testing.F) {
	f.Add(frame(frameMessage, []byte("abc")))
	f.Add(frame(frameBegin, nil))
	f.Add(refusal(secagg.ErrTooFew))
	f.Add([]byte{1, 1, 255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, b []byte) {
		const limit = 1000
		k, payload, err := readFrame(bytes.NewReader(b), limit)
		if err != nil {
			if len(b) > 0 && !errors.Is(err, ErrFrame) || len(b) == 0 && err != io.EOF {
				t.Fatalf("%v", err)
			}
			return
		}
		if len(payload) > max(limit, 1+maxText) || !bytes.HasPrefix(b, frame(k, payload)) {
			t.Fatalf("type %d, %d bytes", k, len(payload))
		}
		if k == frameRefusal {
			_ = readRefusal(payload).Error()
		}
	})
}

// Random clients vanish after random messages: the exact sum of the survivors, or a named refusal.
func TestRandomDrops(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 7))
	for trial := range 12 {
		mode := []secagg.Mode{secagg.SemiHonest, secagg.Malicious}[trial%2]
		w := newWorld(t, 8, mode)
		w.session.ID[0] ^= byte(trial)
		w.timeout = time.Minute
		leave := map[uint32]secagg.Kind{}
		for range r.IntN(6) {
			leave[1+uint32(r.IntN(8))] = secagg.Kind(1 + 2*r.IntN(5))
		}
		address, out := w.serve(t.Context(), nil)
		w.joinAll(t.Context(), address, func(id uint32, c *ClientConfig) {
			c.Sent = func(k secagg.Kind) error {
				if k == leave[id] {
					return errVanish
				}
				return nil
			}
		})
		got := <-out
		if got.err != nil {
			if !errors.Is(got.err, secagg.ErrTooFew) {
				t.Errorf("trial %d, %v: %v", trial, leave, got.err)
			}
		} else if got.result.Sum[0] != w.sumOf(got.result.Survivors) ||
			len(got.result.Survivors) < w.session.NMin {
			t.Errorf("trial %d, %v: %+v", trial, leave, got.result)
		}
	}
}

// A whole session in one process: what TLS and the network add to the protocol. The figure is the
// time of the server and all clients on one machine.
func BenchmarkSession(b *testing.B) {
	for _, n := range []int{100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			if testing.Short() && n > 100 {
				b.Skip("long")
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				w := newWorld(b, n, secagg.SemiHonest)
				w.session.Gamma, w.session.Delta, w.session.NMin = .1, .1, n/2
				w.session.ID[0] ^= byte(i)
				w.wait, w.timeout = time.Minute, time.Minute
				address, out := w.serve(b.Context(), nil)
				errs := w.joinAll(b.Context(), address, nil)
				r := <-out
				if r.err != nil || len(r.result.Survivors) != n ||
					r.result.Sum[0] != w.sumOf(r.result.Survivors) {
					b.Fatalf("%v, %v", r, errs)
				}
			}
		})
	}
}
