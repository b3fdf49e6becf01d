//go:build unix

package secagg

import (
	"crypto/ed25519"
	"fmt"
	"maps"
	"slices"
	"syscall"
	"testing"
	"time"
)

// cpu is the processor time that this process has used, so that a busy machine does not count.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// rehearsal runs a session with honest clients, of whom every tenth vanishes after sharing keys,
// and tells the server's time from the clients'. It serves the benchmarks.
func rehearsal(b *testing.B, s Session, n int) (server, client time.Duration, up, down int) {
	b.Helper()
	rnd := seeded("rehearsal")
	key := func() ed25519.PrivateKey {
		var seed [32]byte
		rnd.Read(seed[:])
		return ed25519.NewKeyFromSeed(seed[:])
	}
	now := time.Unix(0, 0)
	clock := func() time.Time { return now }
	public := map[uint32]ed25519.PublicKey{}
	private := map[uint32]ed25519.PrivateKey{}
	for i := range n {
		private[uint32(i)] = key()
		public[uint32(i)] = private[uint32(i)].Public().(ed25519.PublicKey)
	}
	serverKey := key()
	srv, err := NewServer(ServerConfig{Session: s, Identity: serverKey, Clients: public, Rand: rnd,
		Clock: clock})
	if err != nil {
		b.Fatal(err)
	}
	clients := map[uint32]*Client{}
	var messages []Envelope
	want := uint64(0)
	for _, id := range slices.Sorted(maps.Keys(public)) {
		c, err := NewClient(ClientConfig{Session: s, ID: id, Identity: private[id],
			Server: serverKey.Public().(ed25519.PublicKey),
			Pinned: PinnedKeys(public), Rand: rnd, Clock: clock}, []uint64{uint64(id)})
		if err != nil {
			b.Fatal(err)
		}
		if id%10 != 0 {
			want += uint64(id)
		}
		clients[id] = c
		at := cpu()
		m, err := c.Start()
		client += cpu() - at
		if err != nil {
			b.Fatal(err)
		}
		messages = append(messages, Envelope{id, m})
	}
	for srv.Round() != RoundDone {
		var out []Envelope
		at := cpu()
		for _, e := range messages {
			up += len(e.Message)
			o, err := srv.Step(e.To, e.Message)
			if err != nil {
				b.Fatal(err)
			}
			out = append(out, o...)
		}
		if out == nil && srv.Round() != RoundDone {
			now = srv.Deadline().Add(1)
			if out, err = srv.Tick(); err != nil {
				b.Fatal(err)
			}
		}
		server += cpu() - at
		messages = messages[:0]
		at = cpu()
		for _, e := range out {
			down += len(e.Message)
			h, err := Inspect(e.Message)
			if err != nil {
				b.Fatal(err)
			}
			if e.To%10 == 0 && h.Kind == KindDelivery {
				continue
			}
			m, err := clients[e.To].Step(e.Message)
			if err != nil {
				b.Fatal(err)
			}
			messages = append(messages, Envelope{e.To, m})
		}
		client += cpu() - at
	}
	r, err := srv.Result()
	if err != nil || r.Sum[0] != want {
		b.Fatalf("%v, %v, want %d", r.Sum, err, want)
	}
	return server, client / time.Duration(n), up / n, down / n
}

// The figures that count are the metrics: the server's processor time for a session in all, a
// client's, and a client's bytes each way.
func BenchmarkSession(b *testing.B) {
	for _, mode := range []Mode{SemiHonest, Malicious} {
		for _, gamma := range []float64{.05, .1} {
			for _, n := range []int{100, 300, 1000, 3000, 10000} {
				b.Run(fmt.Sprintf("%v/gamma=%g/n=%d", mode, gamma, n), func(b *testing.B) {
					if testing.Short() && n > 300 {
						b.Skip("long")
					}
					s := testSession("benchmark", n)
					s.Mode, s.Gamma, s.Delta = mode, gamma, .1
					s.NMin = n / 2
					b.ReportAllocs()
					var server, client time.Duration
					var up, down, runs int
					for b.Loop() {
						var x, y time.Duration
						x, y, up, down = rehearsal(b, s, n)
						server, client = server+x, client+y
						runs++
					}
					b.ReportMetric(float64(server.Milliseconds())/float64(runs), "server-ms")
					b.ReportMetric(float64(client.Microseconds())/float64(runs)/1000, "client-ms")
					b.ReportMetric(float64(up), "up-B")
					b.ReportMetric(float64(down), "down-B")
				})
			}
		}
	}
}
