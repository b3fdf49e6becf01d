package secagg

import (
	"context"
	"crypto/aes"
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"
)

// fallsApart in exact rational numbers: n(n−k−1)/2 pairs of places, each bad with probability
// C(B,k)/C(n,k).
func TestFallsApartIsItsBound(t *testing.T) {
	limit := big.NewRat(1, 1<<40)
	yes, no := 0, 0
	check := func(n, k, corrupt int, delta float64) {
		b := min(corrupt+floorOf(delta, n), n)
		p := new(big.Rat).SetFrac(new(big.Int).Binomial(int64(b), int64(k)),
			new(big.Int).Binomial(int64(n), int64(k)))
		p.Mul(p, big.NewRat(int64(n)*int64(n-k-1), 2))
		want := p.Cmp(limit) < 0
		exactly, _ := p.Float64()
		if got := (Params{N: n, K: k}).fallsApart(corrupt, delta); math.Abs(got-exactly) > 1e-9*exactly {
			t.Errorf("fallsApart(%d, %d, %d, %v) = %v, the probability is %v", n, k, corrupt, delta, got,
				exactly)
		}
		if want {
			yes++
		} else {
			no++
		}
	}
	for _, n := range []int{10, 11, 50, 100, 400, 1000} {
		for _, corrupt := range []int{0, n / 20, n / 5, n / 2} {
			for _, delta := range []float64{0, .1, .3} {
				for k := 2; k < n-1 && k <= 400; k += 2 {
					check(n, k, corrupt, delta)
				}
			}
		}
	}
	// Within 15 % below the limit.
	check(102, 90, 90, 0)
	check(123, 112, 112, 0)
	check(154, 144, 144, 0)
	check(154, 144, 145, 0)
	if yes < 1000 || no < 100 {
		t.Errorf("%d connected, %d not: too few to tell", yes, no)
	}
}

// The rule is for graphs that are not complete, up to a load of 0.9, that included.
func TestRuleAAtItsEdges(t *testing.T) {
	if p, err := ruleA(1000, 100, .8, SemiHonest); err != nil || p != (Params{1000, 672, 98}) {
		t.Errorf("%+v, %v", p, err)
	}
	if p, err := ruleA(1000, 101, .8, SemiHonest); !errors.Is(err, ErrInfeasible) {
		t.Errorf("%+v, %v", p, err)
	}
	// Of five clients one may vanish: two neighbours are not enough, and four are all.
	if p, err := ruleA(5, 0, .2, SemiHonest); !errors.Is(err, ErrInfeasible) {
		t.Errorf("%+v, %v", p, err)
	}
	for _, c := range []struct {
		p    Params
		want bool
	}{
		{Params{50, 14, 8}, true}, {Params{50, 14, 9}, true}, {Params{50, 14, 10}, false},
		{Params{50, 14, 5}, false}, {Params{50, 10, 6}, false},
		{Params{51, 48, 8}, true}, {Params{51, 50, 8}, false}, {Params{51, 52, 8}, false},
	} {
		if got := c.p.Sufficient(5, .1, SemiHonest, false); got != c.want {
			t.Errorf("%+v: %v", c.p, got)
		}
	}
	for k, want := range map[int]bool{maxDegree: true, maxDegree + 2: false} {
		if got := (Params{40000, k, 8000}).Sufficient(400, .1, SemiHonest, false); got != want {
			t.Errorf("degree %d: %v", k, got)
		}
	}
	for n, want := range map[int]error{maxDegree + 1: nil, maxDegree + 2: ErrInfeasible} {
		if _, err := Choose(n, 0, 0, SemiHonest, true); !errors.Is(err, want) {
			t.Errorf("complete graph on %d: %v", n, err)
		}
	}
	for _, c := range []struct {
		n, corrupt int
		want       error
	}{
		{maxClients, 0, nil}, {maxClients + 1, 0, ErrTooFew}, {3, 2, nil}, {3, 3, ErrTooFew},
		{2, 0, ErrTooFew}, {maxClients, maxClients, ErrTooFew}, {maxClients, maxClients + 1, ErrSession},
	} {
		if err := checkGraph(c.n, c.corrupt, 0, SemiHonest); !errors.Is(err, c.want) {
			t.Errorf("%d clients, %d corrupt: %v", c.n, c.corrupt, err)
		}
	}
	for _, c := range []struct{ gamma, delta float64 }{{1, 0}, {0, 1}, {-0.1, 0}, {0, -0.1}} {
		if err := checkRates(c.gamma, c.delta, SemiHonest); !errors.Is(err, ErrSession) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// Neighbours are the nearest on the circle: two on either side of ten.
func TestNeighboursAreTheNearest(t *testing.T) {
	p := Params{N: 10, K: 4}
	var got []int
	for x := 1; x <= 4; x++ {
		got = append(got, p.neighbour(3, x))
	}
	if want := []int{4, 5, 1, 2}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestSessionsTakeTheEdges(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Session)
		want   error
	}{
		{"longest experiment", func(s *Session) { s.Experiment = strings.Repeat("x", maxText) }, nil},
		{"longer", func(s *Session) { s.Experiment = strings.Repeat("x", maxText+1) }, ErrSession},
		{"longest noise", func(s *Session) { s.Noise = strings.Repeat("x", maxText) }, nil},
		{"longer noise", func(s *Session) { s.Noise = strings.Repeat("x", maxText+1) }, ErrSession},
		{"longest message", func(s *Session) { s.Length = maxLength }, nil},
		{"longer message", func(s *Session) { s.Length = maxLength + 1 }, ErrSession},
		{"one enrolled", func(s *Session) { s.Enrolled, s.NMin = 1, 1 }, nil},
		{"none enrolled", func(s *Session) { s.Enrolled, s.NMin = 0, 1 }, ErrSession},
		{"most enrolled", func(s *Session) { s.Enrolled = maxClients }, nil},
		{"more enrolled", func(s *Session) { s.Enrolled = maxClients + 1 }, ErrSession},
		{"one survivor", func(s *Session) { s.NMin = 1 }, nil},
		{"no survivor", func(s *Session) { s.NMin = 0 }, ErrSession},
		{"all honest", func(s *Session) { s.Honest = s.NMin }, nil},
		{"more honest", func(s *Session) { s.Honest = s.NMin + 1 }, ErrSession},
	} {
		s := testSession("edges", 20)
		c.change(&s)
		if err := s.Validate(); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// A word below 2^64 mod m is refused, the least that is not is kept, and the next block comes when
// both words of one are refused.
func TestStreamRefusesByHand(t *testing.T) {
	key := make([]byte, 32)
	block, err := aes.NewCipher(key)
	if err != nil {
		t.Fatal(err)
	}
	word := func(i, at uint64) uint64 {
		var in, out [aes.BlockSize]byte
		binary.BigEndian.PutUint64(in[:8], i)
		binary.BigEndian.PutUint64(in[8:], at/2)
		block.Encrypt(out[:], in[:])
		return binary.BigEndian.Uint64(out[8*(at%2):])
	}
	blocks := 0
	for i := range uint64(200) {
		g, err := newStream(key)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range []uint64{1<<63 + 1, 3 << 62, 3, 1000, 1<<64 - 1, -word(i, 0), -word(i, 1)} {
			if m < 2 {
				continue
			}
			two64 := new(big.Int).Lsh(big.NewInt(1), 64)
			refuse := two64.Mod(two64, new(big.Int).SetUint64(m)).Uint64()
			at := uint64(0)
			for word(i, at) < refuse {
				at++
			}
			if at > 1 {
				blocks++
			}
			if got, want := g.at(i, m), word(i, at)%m; got != want {
				t.Errorf("coordinate %d modulo %d: %d, want %d", i, m, got, want)
			}
		}
	}
	if blocks < 10 {
		t.Errorf("a second block was needed %d times", blocks)
	}
}

func TestClocksAtTheirEdges(t *testing.T) {
	if _, err := newWatch(nil, 0); err != nil {
		t.Errorf("no timeout: %v", err)
	}
	if _, err := newWatch(nil, -1); !errors.Is(err, ErrSession) {
		t.Errorf("timeout −1: %v", err)
	}
	now := time.Unix(0, 0)
	w, err := newWatch(func() time.Time { return now }, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		after  time.Duration
		passed bool
		want   error
	}{
		{time.Second, false, nil}, {time.Second + 1, true, nil}, {2 * time.Second, true, nil},
		{2*time.Second + 1, true, ErrClock},
	} {
		now = time.Unix(0, 0)
		w.start()
		now = now.Add(c.after)
		if passed, err := w.look(); passed != c.passed || !errors.Is(err, c.want) {
			t.Errorf("after %v: %v, %v", c.after, passed, err)
		}
	}
	_, server, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	for timeout, want := range map[time.Duration]error{math.MaxInt64 / 8: nil,
		math.MaxInt64/8 + 1: ErrSession} {
		c, err := NewClient(ClientConfig{Session: testSession("clock", 3), Identity: server,
			Server: server.Public().(ed25519.PublicKey), Pinned: PinnedKeys(nil),
			Timeout: timeout}, []uint64{1})
		if !errors.Is(err, want) || err == nil && c.Done() {
			t.Errorf("timeout %v: %v", timeout, err)
		}
	}
}

func TestNamesOfRoundsAndKinds(t *testing.T) {
	for r, want := range map[fmt.Stringer]string{Round(0): "Round(0)", RoundAdvertise: "advertise",
		RoundDone: "done", Round(7): "Round(7)", Kind(0): "Kind(0)", KindAdvertise: "advertise",
		KindOpen: "open", Kind(10): "Kind(10)"} {
		if r.String() != want {
			t.Errorf("%s, want %s", r, want)
		}
	}
}

// Plain sums what Local sums, and refuses what it refuses.
func TestPlain(t *testing.T) {
	s := testSession("plain", 5)
	s.Modulus, s.Length = 10, 2
	messages := map[uint32][]uint64{7: {1, 9}, 2: {2, 9}, 5: {9, 3}}
	sum, in, err := Plain{}.Sum(context.Background(), s, messages)
	if err != nil || !slices.Equal(sum, []uint64{2, 1}) || !slices.Equal(in, []uint32{2, 5, 7}) {
		t.Errorf("%v, %v, %v", sum, in, err)
	}
	messages[7] = []uint64{1, 10}
	if _, _, err := (Plain{}).Sum(context.Background(), s, messages); !errors.Is(err, ErrRange) {
		t.Errorf("%v", err)
	}
	delete(messages, 7)
	if _, _, err := (Plain{}).Sum(context.Background(), s, messages); !errors.Is(err, ErrTooFew) {
		t.Errorf("%v", err)
	}
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	s.NMin = 2
	if _, _, err := (Plain{}).Sum(cancelled, s, messages); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	s.Length = 0
	if _, _, err := (Plain{}).Sum(context.Background(), s, messages); !errors.Is(err, ErrSession) {
		t.Errorf("%v", err)
	}
}

// A graph on four clients has no one with four neighbours, and no fifth place.
func TestRosterOutOfItsGraph(t *testing.T) {
	for _, c := range []struct {
		k, place int
		ok       bool
	}{{3, 0, true}, {3, 3, true}, {3, 4, false}, {4, 0, false}, {2, 3, true}} {
		m := roster{params: Params{N: 4, K: c.k, T: 2}, place: c.place}
		for range c.k {
			m.seats = append(m.seats, rosterSeat{mask: make([]byte, publicSize), enc: make([]byte,
				publicSize),
				keys: make([]byte, signatureSize)})
		}
		if _, err := readRoster(m.append(nil)); (err == nil) != c.ok || err != nil &&
			!errors.Is(err, ErrMalformed) {
			t.Errorf("k = %d, place %d of 4: %v", c.k, c.place, err)
		}
	}
}

// Who has sent no shares is counted out: a masked message that it signs all the same is refused,
// and the sum is that of the others.
func TestCountedOutCannotSpeak(t *testing.T) {
	s := testSession("out", 12)
	messages := map[uint32][]uint64{}
	for i := range uint32(12) {
		messages[i] = []uint64{1}
	}
	w, err := Local{Rand: seeded("out")}.setUp(s, messages)
	if err != nil {
		t.Fatal(err)
	}
	spoken := false
	w.fault = func(f Frame) [][]byte {
		switch {
		case f.Kind == KindShares && f.Client == 5:
			return nil
		case f.Kind == KindMasked && !spoken:
			spoken = true
			body := masked{widthOf(s.Modulus), []uint64{1}, nil}.append(nil)
			w.up = append(w.up, Envelope{5, w.sign(Frame{Kind: KindMasked, Client: 5}, body)})
		}
		return [][]byte{f.Message}
	}
	if err := w.play(context.Background()); err != nil {
		t.Fatal(err)
	}
	late := slices.ContainsFunc(w.report.Refused, func(err error) bool {
		return errors.Is(err, ErrLate) && strings.Contains(err.Error(), "client 5 was counted out")
	})
	if r := w.report.Result; !spoken || !late || len(r.Survivors) != 11 || r.Sum[0] != 11 {
		t.Errorf("refused %v, sum %v of %d", w.report.Refused, r.Sum, len(r.Survivors))
	}
	for id, c := range w.clients {
		if c.Done() != (id != 5) {
			t.Errorf("client %d: done is %v", id, c.Done())
		}
	}
}

// With one client gone, ten of eleven neighbours are left and must all say so themselves: one who
// does not is a lie of the server's, and not too few.
func TestOneUnprovenOfTheLastNeeded(t *testing.T) {
	s := testSession("last", 12)
	s.Mode, s.Gamma, s.Delta, s.NMin = Malicious, 0, .4, 11
	messages := map[uint32][]uint64{}
	for i := range uint32(12) {
		messages[i] = []uint64{1}
	}
	w, err := Local{Rand: seeded("last")}.setUp(s, messages)
	if err != nil {
		t.Fatal(err)
	}
	w.fault = func(f Frame) [][]byte {
		if f.Kind == KindMasked && f.Client == 7 {
			return nil
		}
		if f.Kind != KindSurvivors || f.Client != 3 {
			return [][]byte{f.Message}
		}
		m, err := readSurvivors(f.Message[headerSize : len(f.Message)-signatureSize])
		if err != nil {
			t.Fatal(err)
		}
		for i, tag := range m.tags {
			if tag != nil && w.clients[3].seats[i].id != 7 {
				m.tags[i][0] ^= 1
				break
			}
		}
		return [][]byte{w.sign(f, m.append(nil))}
	}
	_ = w.play(context.Background())
	if err := w.report.Clients[3]; !errors.Is(err, ErrEquivocation) ||
		!strings.Contains(err.Error(), "10 neighbours survive, but only 9 say so themselves") {
		t.Errorf("%v", err)
	}
}
