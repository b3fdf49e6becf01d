package secagg

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/sotto-dp/sotto/internal/testkit"
)

// view is what a server sees of one session of four clients who are all neighbours, modulo m: the
// masked messages of all, the fourth of which comes late; the survivors' messages with the self
// masks and the vanished client's pairwise masks taken off, as the server does; and the late
// message with its pairwise masks taken off. The masks are those of the protocol; their keys, in
// the protocol outputs of HKDF, are drawn.
type view struct {
	sent, opened [viewers]uint64
}

const viewers = 4

// twin is a way to break the protocol.
type twin int

const (
	sound      twin = iota
	noSelfMask      // no self masks: a late message stands bare once the key is open
	bothShares      // the server opened the late client's seed too
)

func draws(t *testing.T, x [viewers]uint64, m uint64, n int, broken twin, each func(view)) {
	rnd := seeded(fmt.Sprint("view", x, broken))
	key := func() []byte {
		k := make([]byte, 32)
		rnd.Read(k)
		return k
	}
	for range n {
		var self [viewers][]byte
		var pair [viewers][viewers][]byte
		for i := range viewers {
			self[i] = key()
			for j := range i {
				pair[i][j] = key()
				pair[j][i] = pair[i][j]
			}
		}
		masks := func(i int) (all []mask) {
			if broken != noSelfMask {
				all = append(all, mask{self[i], false})
			}
			for j := range viewers {
				if j != i {
					all = append(all, mask{pair[i][j], i > j})
				}
			}
			return all
		}
		apply := func(v *uint64, all ...mask) {
			one := []uint64{*v}
			if err := addMasks(one, m, all); err != nil {
				t.Fatal(err)
			}
			*v = one[0]
		}
		var v view
		const late = viewers - 1
		for i := range viewers {
			v.sent[i] = x[i]
			apply(&v.sent[i], masks(i)...)
			v.opened[i] = v.sent[i]
			if broken != noSelfMask && (i != late || broken == bothShares) {
				apply(&v.opened[i], mask{self[i], true})
			}
			if i == late {
				for j := range late {
					apply(&v.opened[i], mask{pair[i][j], i < j})
				}
			} else {
				apply(&v.opened[i], mask{pair[i][late], true})
			}
		}
		each(v)
	}
}

// violations lists the statistics of the view that are not uniform: each number modulo m, and each
// pair of them but for the one relation there is, that the survivors' three opened messages give
// the sum (so any two of them are free). One test of χ² each, all together at level 1e-6. The law
// is the same for all inputs with one sum, as it is no function of them.
func violations(t *testing.T, x [viewers]uint64, broken twin, n int) (bad []string) {
	const m = 7
	const numbers = 2 * viewers
	singles := [numbers][m]int{}
	pairs := [numbers][numbers][m * m]int{}
	draws(t, x, m, n, broken, func(v view) {
		var all [numbers]uint64
		copy(all[:], v.sent[:])
		copy(all[viewers:], v.opened[:])
		sum, want := uint64(0), uint64(0)
		for i := range viewers - 1 {
			sum += v.opened[i]
			want += x[i]
		}
		if broken != noSelfMask && sum%m != want%m {
			t.Fatalf("the survivors' messages give %d, want %d", sum%m, want%m)
		}
		for i, a := range all {
			singles[i][a]++
			for j := range i {
				pairs[i][j][a*m+all[j]]++
			}
		}
	})
	const tests = numbers + numbers*(numbers-1)/2
	check := func(name string, counts []int) {
		expect := float64(n) / float64(len(counts))
		x2 := 0.0
		for _, c := range counts {
			x2 += (float64(c) - expect) * (float64(c) - expect) / expect
		}
		if (distuv.ChiSquared{K: float64(len(counts) - 1)}).Survival(x2) < 1e-6/tests {
			bad = append(bad, name)
		}
	}
	name := func(i int) string {
		if i < viewers {
			return fmt.Sprintf("sent %d", i)
		}
		return fmt.Sprintf("opened %d", i-viewers)
	}
	for i := range numbers {
		check(name(i), singles[i][:])
		for j := range i {
			check(name(i)+" with "+name(j), pairs[i][j][:])
		}
	}
	return bad
}

func TestServerView(t *testing.T) {
	for _, x := range [][viewers]uint64{{1, 2, 3, 4}, {0, 6, 0, 1}} {
		if bad := violations(t, x, sound, testkit.Size(20_000, 100_000)); bad != nil {
			t.Errorf("of messages %v the server sees more than their sum: %v", x, bad)
		}
	}
	for _, broken := range []twin{noSelfMask, bothShares} {
		if bad := violations(t, [viewers]uint64{1, 2, 3, 4}, broken, 5000); len(bad) == 0 {
			t.Errorf("twin %d passes", broken)
		}
	}
}

// A session id that is used twice, with the same keys, shows the difference of two messages:
// what Used is for.
func TestTwinReusedSession(t *testing.T) {
	masks := []mask{{bytes.Repeat([]byte{1}, 32), false}, {bytes.Repeat([]byte{2}, 32), true}}
	a, b := []uint64{100}, []uint64{142}
	if err := errors.Join(addMasks(a, 0, masks), addMasks(b, 0, masks)); err != nil {
		t.Fatal(err)
	}
	if b[0]-a[0] != 42 {
		t.Fatal("the masks of one session are not a function of its keys")
	}
	// With another id, or any other thing that clients are told, all keys differ.
	s := testSession("reused", 4)
	f := small(5)
	seen := map[string]string{}
	for name, change := range map[string]func(*Session){"none": func(*Session) {}, "id": func(s *Session) {
		s.ID[31]++
	},
		"experiment": func(s *Session) {
			s.Experiment += "x"
		}, "arm": func(s *Session) { s.Arm++ }, "batch": func(s *Session) { s.Batch++ },
		"grid": func(s *Session) {
			s.Grid++
		}, "modulus": func(s *Session) { s.Modulus = 99 }, "length": func(s *Session) { s.Length++ },
		"enrolled": func(s *Session) {
			s.Enrolled++
		}, "n_min": func(s *Session) { s.NMin++ }, "honest": func(s *Session) { s.Honest++ },
		"noise": func(s *Session) { s.Noise += "x" }, "policy": func(s *Session) { s.Policy[0]++ },
		"mode": func(s *Session) {
			s.Mode = Malicious
		}, "gamma": func(s *Session) { s.Gamma += .01 }, "delta": func(s *Session) { s.Delta += .01 },
		"complete": func(s *Session) { s.Complete = true }} {
		x := s
		change(&x)
		digest := x.Digest()
		own, _, err := selfMask(&f, digest, 1)
		if err != nil {
			t.Fatal(err)
		}
		one, two := newKeyPair(make([]byte, 32)), newKeyPair(bytes.Repeat([]byte{1}, 32))
		pair, err := pairMask(&one, 1, &two.public, 2, digest)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range [][]byte{own, pair.key} {
			if other, ok := seen[string(k)]; ok {
				t.Errorf("changing %s and changing %s give one key", name, other)
			}
			seen[string(k)] = name
		}
	}
}

// A server that tells half of the neighbours that client 5 vanished, and the other half that it
// survives, and takes whatever is opened to it. Of one client's shares it gets both kinds, and with
// a threshold made for an honest server it unmasks the client. Against a malicious server's threshold and
// the consistency round the same attack gets nothing.
func TestTwinThreshold(t *testing.T) {
	const victim = 5
	attack := func(mode Mode) (key, seed bool, message uint64) {
		s := testSession("twin", 8)
		s.Mode, s.Delta = mode, .25
		messages := map[uint32][]uint64{}
		for i := range uint32(8) {
			messages[i] = []uint64{1000 + uint64(i)}
		}
		w, err := Local{Rand: seeded("twin")}.setUp(s, messages)
		if err != nil {
			t.Fatal(err)
		}
		deceive := &fault{name: "deny", victim: victim}
		keyShares, seedShares := map[int]field{}, map[int]field{}
		w.fault = func(m Frame) [][]byte {
			out := [][]byte{m.Message}
			switch {
			case m.Kind == KindSurvivors && m.Client < 4:
				return deceive.apply(t, w, m, out)
			case m.Kind == KindAck && m.Client < 4:
				return (&fault{name: "cover"}).apply(t, w, m, out)
			case m.Kind == KindOpen:
				x, err := readOpened(m.Message[headerSize : len(m.Message)-signatureSize])
				if err != nil {
					t.Fatal(err)
				}
				p := w.server.params
				for i, b := range x.shares {
					if b == nil || w.server.circle[p.neighbour(w.server.members[m.Client].place,
						i+1)].id != victim {
						continue
					}
					f, err := readField(b)
					if err != nil {
						t.Fatal(err)
					}
					if x.key[i] {
						keyShares[p.mirror(i+1)] = f
					} else {
						seedShares[p.mirror(i+1)] = f
					}
				}
			}
			return out
		}
		_ = w.play(context.Background())
		v := w.server.members[victim]
		message = v.masked[0]
		known := map[string][]field{}
		v.shares = keyShares
		if pair, err := w.server.recoverKey(v, known); err == nil {
			key = true
			one := []uint64{message}
			for id, m := range w.server.members {
				if id == victim {
					continue
				}
				mk, err := pairMask(&pair, victim, &m.mask, id, w.server.env.digest)
				if err != nil {
					t.Fatal(err)
				}
				mk.negative = !mk.negative
				if err := addMasks(one, 0, []mask{mk}); err != nil {
					t.Fatal(err)
				}
			}
			message = one[0]
		}
		v.shares = seedShares
		if own, err := w.server.recoverSeed(v, known); err == nil {
			seed = true
			one := []uint64{message}
			if err := addMasks(one, 0, []mask{{own, true}}); err != nil {
				t.Fatal(err)
			}
			message = one[0]
		}
		return key, seed, message
	}
	if key, seed, x := attack(SemiHonest); !key || !seed || x != 1000+victim {
		t.Errorf("against a threshold for an honest server: %v, %v, %d; the attack should succeed",
			key, seed, x)
	}
	if key, seed, x := attack(Malicious); key || seed || x == 1000+victim {
		t.Errorf("against a malicious server's threshold: key %v, seed %v, message %d", key, seed, x)
	}
}

func TestStream(t *testing.T) {
	// Every second word is refused: the law is uniform still, and a coordinate does not depend on
	// how many come before it.
	const m = 1<<63 + 1
	g, err := newStream(make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	high := 0
	first := g.at(1000, m)
	for i := range uint64(20000) {
		v := g.at(i, m)
		if v >= m {
			t.Fatalf("%d is not below %d", v, uint64(m))
		}
		if v >= m/2 {
			high++
		}
	}
	if g.at(1000, m) != first {
		t.Error("a coordinate moves")
	}
	// Five standard deviations: false alarm below 1e-6.
	if high < 10000-354 || high > 10000+354 {
		t.Errorf("%d of 20000 in the upper half", high)
	}
	for _, m := range []uint64{0, 2, 3, 1 << 32, 1<<63 + 1, 1<<64 - 1} {
		for _, a := range []uint64{0, 1, m / 2, m - 1} {
			for _, b := range []uint64{0, 1, m / 2, m - 1} {
				if m != 0 && (a >= m || b >= m) {
					continue
				}
				if got := subMod(addMod(a, b, m), b, m); got != a || m != 0 && addMod(a, b, m) >= m {
					t.Errorf("%d + %d − %d mod %d = %d", a, b, b, m, got)
				}
			}
		}
	}
}

func TestShamir(t *testing.T) {
	rnd := seeded("shamir")
	secret, err := draw(rnd)
	if err != nil {
		t.Fatal(err)
	}
	shares, err := split(rnd, secret, 12, 5)
	if err != nil {
		t.Fatal(err)
	}
	for _, seats := range [][]int{{1, 2, 3, 4, 5}, {12, 3, 7, 1, 9}, {8, 9, 10, 11, 12}} {
		got := make([]field, len(seats))
		for i, x := range seats {
			got[i] = shares[x-1]
		}
		if c := combine(weights(seats), got); !c.IsEqual(&secret) {
			t.Errorf("seats %v give another secret", seats)
		}
		if c := combine(weights(seats[1:]), got[1:]); c.IsEqual(&secret) {
			t.Errorf("four shares of five give the secret")
		}
	}
	// Share 0 would be the secret itself: no seat is 0, and with one share given every
	// secret is possible.
	if shares[0].IsEqual(&secret) {
		t.Error("a share is the secret")
	}
}

func TestHarary(t *testing.T) {
	for _, p := range []Params{{N: 50, K: 12}, {N: 51, K: 12}, {N: 7, K: 6}, {N: 8, K: 7}} {
		for place := range p.N {
			seen := map[int]bool{place: true}
			for x := 1; x <= p.K; x++ {
				j := p.neighbour(place, x)
				if seen[j] {
					t.Errorf("%+v: %d sits twice at the table of %d", p, j, place)
				}
				seen[j] = true
				if back := p.neighbour(j, p.mirror(x)); back != place {
					t.Errorf("%+v: %d sees %d at %d, who sees %d there", p, place, j, x, back)
				}
			}
		}
	}
	// The shuffle is uniform: 24 orders of four, 1e5 seeds, χ² with 23 degrees of freedom beyond 74
	// has probability below 1e-6.
	counts := map[[4]uint32]int{}
	const n = 100000
	for i := range uint64(n) {
		ids := []uint32{0, 1, 2, 3}
		var seed [32]byte
		binary.BigEndian.PutUint64(seed[:], i)
		if err := permute(ids, seed); err != nil {
			t.Fatal(err)
		}
		counts[[4]uint32(ids)]++
	}
	x2 := 0.0
	for _, c := range counts {
		d := float64(c) - n/24.0
		x2 += float64(d*d) / (n / 24.0)
	}
	if len(counts) != 24 || x2 > 74 {
		t.Errorf("%d orders, χ² = %g", len(counts), x2)
	}
}
