package secagg

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/sotto-dp/sotto/internal/testkit"
)

// lured is a session against a server that lets few honest clients in, and all who are corrupt: of
// 40 enrolled 8 are, and 20 take part.
func lured(enrolled int) (s Session, messages map[uint32][]uint64, corrupt, believers []uint32) {
	s = testSession("lured", enrolled)
	s.Mode, s.Complete, s.Gamma, s.Delta, s.NMin = Malicious, true, .2, 0, 19
	messages = map[uint32][]uint64{}
	for id := range uint32(20) {
		messages[id+1] = []uint64{uint64(id)}
	}
	messages[1][0] = 777777
	return s, messages, []uint32{13, 14, 15, 16, 17, 18, 19, 20}, []uint32{2, 3, 4, 5}
}

// A server that lets in 20 of 40, all the corrupt among them, and says of one of them that it
// vanished to some and that it survives to others. The twin has the threshold of those who are
// announced, of whom it takes a fifth to be corrupt; the session has that of all who are enrolled.
func TestTwinAnnouncedNumber(t *testing.T) {
	for _, c := range []struct {
		name      string
		enrolled  int
		threshold int
		read      bool
	}{{"the twin: those who are announced", 20, 12, true}, {"all who are enrolled", 40, 14, false}} {
		s, messages, corrupt, believers := lured(c.enrolled)
		leak, err := Local{Rand: seeded("lured")}.TwoStories(context.Background(), s, messages, 1,
			corrupt, believers)
		if err != nil {
			t.Fatal(err)
		}
		read := slices.Equal(leak.Message, messages[1])
		if leak.Threshold != c.threshold || read != c.read || !read && leak.Message != nil {
			t.Errorf("%s: %d shares of its key, %d of its seed, threshold %d, message %v", c.name,
				leak.KeyShares, leak.SeedShares, leak.Threshold, leak.Message)
		}
		if both := leak.KeyShares >= leak.Threshold && leak.SeedShares >= leak.Threshold; both != c.read {
			t.Errorf("%s: %+v", c.name, leak)
		}
	}
}

// However the honest clients are divided, and however many of them are let in: nobody's message is
// read, and with the announced number's threshold somebody's is.
func TestNoTwoStories(t *testing.T) {
	const enrolled, bad = 20, 5
	read := map[bool]int{}
	for n := 8; n <= 16; n += testkit.Size(4, 2) {
		for split := 1; split < n-bad-1; split++ {
			for _, twin := range []bool{false, true} {
				s := testSession("divided", enrolled)
				s.Mode, s.Complete, s.Gamma, s.Delta, s.NMin = Malicious, true, .25, 0, n-1
				if twin {
					s.Enrolled = n
				}
				messages := map[uint32][]uint64{}
				var corrupt, believers []uint32
				for i := range uint32(n) {
					messages[i] = []uint64{100 + uint64(i)}
					switch {
					case i >= uint32(n-bad):
						corrupt = append(corrupt, i)
					case i > 0 && i <= uint32(split):
						believers = append(believers, i)
					}
				}
				leak, err := Local{Rand: seeded("divided")}.TwoStories(context.Background(), s,
					messages, 0, corrupt, believers)
				if err != nil && !errors.Is(err, ErrInfeasible) {
					t.Fatal(n, split, twin, err)
				}
				if slices.Equal(leak.Message, messages[0]) {
					read[twin]++
				}
			}
		}
	}
	if read[false] != 0 || read[true] == 0 {
		t.Errorf("read %d times, by the twin %d times", read[false], read[true])
	}
}

// A client counts on the corrupt of all who are enrolled, whatever number the server announces.
func TestAnnouncedNumber(t *testing.T) {
	for _, mode := range []Mode{SemiHonest, Malicious} {
		for _, complete := range []bool{false, true} {
			s := testSession("announced", 100)
			s.Mode, s.Complete, s.NMin = mode, complete, 30 // 10 are corrupt
			for _, n := range []int{30, 40, 49, 50, 60, 100} {
				p, err := s.Graph(n)
				if err != nil {
					t.Errorf("%v, complete %v, %d of 100: %v", mode, complete, n, err)
					continue
				}
				a := min(10, p.K)
				if p.sparse() {
					a = p.corruptNeighbours(10, s.Delta)
				}
				switch {
				case p.T <= a:
					t.Errorf("%+v, %v: %d corrupt neighbours open a secret", p, mode, a)
				case mode == Malicious && 2*p.T <= p.K+a:
					t.Errorf("%+v: with %d corrupt neighbours both secrets open", p, a)
				case !p.Sufficient(10, s.Delta, mode, complete):
					t.Errorf("%+v is not sufficient for itself", p)
				}
				if old, err := Choose(n, floorOf(s.Gamma, n), s.Delta, mode,
					complete); err != nil || old.T < p.T && old.Sufficient(10, s.Delta, mode, complete) {
					t.Errorf("%+v, the graph of the announced number, passes for %+v: %v", old, p, err)
				}
			}
			if _, err := s.Graph(101); !errors.Is(err, ErrSession) {
				t.Error(err)
			}
		}
	}
	// Fewer honest messages than two are no crowd: 12 survivors, 10 or 11 of whom may be corrupt.
	s := testSession("announced", 100)
	s.NMin = 12
	if _, err := s.Graph(20); err != nil {
		t.Error(err)
	}
	if s.NMin = 11; s.Honest == 0 {
		if _, err := s.Graph(20); !errors.Is(err, ErrInfeasible) {
			t.Error(err)
		}
	}
}

// A malicious server may not fill the set of survivors up with clients who do not say themselves
// that they are in it.
func TestUnprovenSurvivors(t *testing.T) {
	s := testSession("unproven", 12)
	s.Mode, s.Gamma, s.Delta, s.NMin = Malicious, 0, .4, 11
	messages := map[uint32][]uint64{}
	for i := range uint32(12) {
		messages[i] = []uint64{uint64(i)}
	}
	for _, forged := range []int{0, 1, 2} {
		w, err := Local{Rand: seeded("unproven")}.setUp(s, messages)
		if err != nil {
			t.Fatal(err)
		}
		w.fault = func(f Frame) [][]byte {
			if f.Kind != KindSurvivors || f.Client != 3 {
				return [][]byte{f.Message}
			}
			m, err := readSurvivors(f.Message[headerSize : len(f.Message)-signatureSize])
			if err != nil {
				t.Fatal(err)
			}
			for i := range forged {
				m.tags[i][0] ^= 1
			}
			return [][]byte{w.sign(f, m.append(nil))}
		}
		_ = w.play(context.Background())
		if err := w.report.Clients[3]; errors.Is(err, ErrEquivocation) != (forged == 2) {
			t.Errorf("%d of 11 neighbours unproven, n_min is 11: %v", forged, err)
		}
	}
}

// The graph of the honest clients among fewer survivors than δ allows for may fall apart.
func TestSparseSurvivors(t *testing.T) {
	for _, c := range []struct {
		mode Mode
		lost uint32
		want error
	}{{SemiHonest, 6, nil}, {SemiHonest, 7, ErrTooFew}, {Malicious, 6, nil}} {
		s := testSession("sparse", 60)
		s.Mode, s.NMin = c.mode, 30
		messages := map[uint32][]uint64{}
		for i := range uint32(60) {
			messages[i] = []uint64{1}
		}
		_, _, err := Local{Rand: seeded("sparse"), Fault: func(f Frame) [][]byte {
			if f.Kind == KindMasked && f.Client < c.lost {
				return nil
			}
			return [][]byte{f.Message}
		}}.Sum(context.Background(), s, messages)
		if !errors.Is(err, c.want) {
			t.Errorf("%v, %d of 60 vanish: %v, want %v", c.mode, c.lost, err, c.want)
		}
	}
}
