package prio_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/sotto-dp/sotto/secagg"
	"github.com/sotto-dp/sotto/secagg/prio"
)

func session(t testing.TB, grid uint64, nMin int) secagg.Session {
	t.Helper()
	return secagg.Session{ID: [32]byte{1, 2}, Experiment: "test", Arm: 1, Batch: 2, Grid: grid,
		Modulus: 1 << 40, Length: 1, Enrolled: 100, NMin: nMin, Noise: "none", Mode: secagg.SemiHonest}
}

// pair is the two servers of a session.
type pair struct {
	t       testing.TB
	session secagg.Session
	server  [2]*prio.Server
}

func newPair(t testing.TB, s secagg.Session) *pair {
	t.Helper()
	key, err := prio.NewVerifyKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &pair{t: t, session: s}
	for i, role := range []prio.Role{prio.Leader, prio.Helper} {
		if p.server[i], err = prio.NewServer(s, role, key); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// take brings one report to both.
func (p *pair) take(leader, helper []byte) error {
	a, errA := p.server[0].Prepare(leader)
	b, errB := p.server[1].Prepare(helper)
	if errA != nil || errB != nil {
		return errors.Join(errA, errB)
	}
	errA, errB = p.server[0].Finish(b), p.server[1].Finish(a)
	if (errA == nil) != (errB == nil) {
		p.t.Fatalf("the servers disagree: %v, %v", errA, errB)
	}
	return errA
}

func (p *pair) close(a, b int64) (int64, int, error) {
	x, err := p.server[0].Close(a)
	if err != nil {
		return 0, 0, err
	}
	y, err := p.server[1].Close(b)
	if err != nil {
		return 0, 0, err
	}
	return prio.Combine(p.session, x, y)
}

// Whatever the values and noises are, the result is the exact sum of what passed, or a refusal.
func TestSumOrRefusal(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		grid := rapid.Uint64Range(1, 1<<30).Draw(rt, "g")
		nMin := rapid.IntRange(2, 8).Draw(rt, "n_min")
		p := newPair(t, session(t, grid, nMin))
		want, accepted := int64(0), 0
		for range rapid.IntRange(0, 10).Draw(rt, "clients") {
			x := rapid.Uint64Range(0, grid).Draw(rt, "x")
			l, h, err := prio.Report(p.session, x, nil)
			if err != nil {
				rt.Fatal(err)
			}
			spoil := rapid.IntRange(0, 3).Draw(rt, "spoil")
			if spoil == 0 {
				side := rapid.SampledFrom([][]byte{l, h}).Draw(rt, "side")
				side[rapid.IntRange(0, len(side)-1).Draw(rt, "at")] ^= 1 << rapid.IntRange(0, 7).Draw(rt, "bit")
			}
			switch err := p.take(l, h); {
			case err == nil && spoil == 0:
				// A flipped bit of the nonce on one side, say, cannot pass; one that changes
				// nothing does not exist.
				rt.Fatal("a spoilt report passed")
			case err == nil:
				want += int64(x)
				accepted++
			case spoil != 0:
				rt.Fatal(err)
			}
		}
		a, b := rapid.Int64Range(-1<<40, 1<<40).Draw(rt, "a"), rapid.Int64Range(-1<<40, 1<<40).Draw(rt, "b")
		got, n, err := p.close(a, b)
		switch {
		case accepted < nMin:
			if !errors.Is(err, prio.ErrTooFew) {
				rt.Fatalf("%d of %d: %v", accepted, nMin, err)
			}
		case err != nil || got != want+a+b || n != accepted:
			rt.Fatalf("sum is %d of %d, %v, want %d of %d", got, n, err, want+a+b, accepted)
		}
	})
}

// A client cannot count for more than the range: neither by asking, nor by the parts of two honest
// reports, nor by shares of a wider range.
func TestLyingClients(t *testing.T) {
	s := session(t, 10, 2)
	if _, _, err := prio.Report(s, 11, nil); !errors.Is(err, secagg.ErrRange) {
		t.Errorf("11 of 10: %v", err)
	}
	l1, h1, err := prio.Report(s, 10, nil)
	if err != nil {
		t.Fatal(err)
	}
	l2, h2, err := prio.Report(s, 10, nil)
	if err != nil {
		t.Fatal(err)
	}
	wide := s
	wide.Grid = 15 // the same number of bits, and so messages of the same length
	l3, h3, err := prio.Report(wide, 15, nil)
	if err != nil {
		t.Fatal(err)
	}
	// Bound to another session, it does not even come as far as the proof; with the digest replaced
	// the proof fails.
	p := newPair(t, s)
	if err := p.take(l3, h3); !errors.Is(err, secagg.ErrContext) {
		t.Errorf("a report of another range: %v", err)
	}
	copy(l3[2:34], l1[2:34])
	copy(h3[2:34], h1[2:34])
	if err := p.take(l3, h3); !errors.Is(err, prio.ErrProof) {
		t.Errorf("a report of another range under this session's name: %v", err)
	}
	mixed := slices.Concat(h2[:34], l1[34:50], h2[50:])
	if err := p.take(l1, mixed); !errors.Is(err, prio.ErrProof) {
		t.Errorf("halves of two reports: %v", err)
	}
	if err := p.take(l1, h1); !errors.Is(err, secagg.ErrReplay) {
		t.Errorf("a nonce again: %v", err)
	}
	if err := p.take(h2, l2); err == nil {
		t.Error("the servers' shares exchanged: passed")
	}
	accepted, refused := p.server[0].Count()
	if accepted != 0 || refused < 2 {
		t.Errorf("%d accepted, %d refused", accepted, refused)
	}
}

func TestOutOfTurn(t *testing.T) {
	s := session(t, 10, 2)
	p := newPair(t, s)
	var preps [][2][]byte
	for range 3 {
		l, h, err := prio.Report(s, 7, nil)
		if err != nil {
			t.Fatal(err)
		}
		a, err := p.server[0].Prepare(l)
		if err != nil {
			t.Fatal(err)
		}
		b, err := p.server[1].Prepare(h)
		if err != nil {
			t.Fatal(err)
		}
		preps = append(preps, [2][]byte{a, b})
	}
	other := newPair(t, s)
	if err := other.server[0].Finish(preps[0][1]); !errors.Is(err, secagg.ErrEarly) {
		t.Errorf("a check without a report: %v", err)
	}
	for _, b := range preps[:2] {
		if err := errors.Join(p.server[0].Finish(b[1]), p.server[1].Finish(b[0])); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.server[0].Finish(preps[0][1]); !errors.Is(err, secagg.ErrDuplicate) {
		t.Errorf("a check twice: %v", err)
	}
	if got, n, err := p.close(0, -20); err != nil || got != -6 || n != 2 {
		t.Errorf("%d of %d, %v, want -6 of 2", got, n, err)
	}
	if _, err := p.server[0].Close(0); !errors.Is(err, secagg.ErrLate) {
		t.Errorf("closed twice: %v", err)
	}
	if _, err := p.server[0].Prepare(preps[0][0]); !errors.Is(err, secagg.ErrLate) {
		t.Errorf("a report after the end: %v", err)
	}
	q := newPair(t, s)
	if _, err := q.server[0].Close(1 << 61); !errors.Is(err, prio.ErrTooFew) {
		t.Errorf("nobody came: %v", err)
	}
	for _, c := range []struct {
		change func(*secagg.Session)
		want   error
	}{
		{func(s *secagg.Session) {
			s.Grid = 0
		}, secagg.ErrSession}, {func(s *secagg.Session) { s.Grid = 1 << 41 }, secagg.ErrSession},
		{func(s *secagg.Session) {
			s.Length = 2
		}, secagg.ErrSession}, {func(s *secagg.Session) { s.NMin = 0 }, secagg.ErrSession},
	} {
		bad := s
		c.change(&bad)
		if _, _, err := prio.Report(bad, 0, nil); !errors.Is(err, c.want) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	if _, err := prio.NewServer(s, 2, prio.VerifyKey{}); err == nil {
		t.Error("a third server")
	}
}

// Shares of one server alone say nothing: a server's share of one client's 0 and of another's g
// have one law. And what is handed out has the server's noise in it: without, the other server
// could take its own share away.
func TestSharesCombineOnlyRightly(t *testing.T) {
	s := session(t, 10, 2)
	out := make([][2][]byte, 2)
	for i := range out {
		p := newPair(t, s)
		for range 2 + i {
			l, h, err := prio.Report(s, 5, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := p.take(l, h); err != nil {
				t.Fatal(err)
			}
		}
		for k := range 2 {
			var err error
			if out[i][k], err = p.server[k].Close(0); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got, n, err := prio.Combine(s, out[0][0], out[0][1]); err != nil || got != 10 || n != 2 {
		t.Errorf("%d of %d, %v", got, n, err)
	}
	if _, _, err := prio.Combine(s, out[0][0], out[0][0]); !errors.Is(err, secagg.ErrSender) {
		t.Errorf("one server twice: %v", err)
	}
	if _, _, err := prio.Combine(s, out[0][0], out[1][1]); !errors.Is(err, secagg.ErrShares) {
		t.Errorf("different numbers of reports: %v", err)
	}
	if _, _, err := prio.Combine(s, out[0][0][:20], out[1][1]); !errors.Is(err, secagg.ErrMalformed) {
		t.Errorf("cut short: %v", err)
	}
}

func FuzzServer(f *testing.F) {
	s := session(f, 10, 2)
	l, h, err := prio.Report(s, 3, bytes.NewReader(bytes.Repeat([]byte{7, 1, 9}, 1000)))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(l, h)
	f.Add(l[:40], h[:60])
	f.Add([]byte{1}, []byte{2})
	f.Fuzz(func(t *testing.T, a, b []byte) {
		p := newPair(t, s)
		if p.take(a, b) == nil {
			// Nobody can make a report that counts for more than the range.
			for range 2 {
				l, h, err := prio.Report(s, 0, nil)
				if err != nil || p.take(l, h) != nil {
					t.Fatal(err)
				}
			}
			if total, _, err := p.close(0, 0); err != nil || total < 0 || total > 10 {
				t.Fatalf("a report counts %d, %v", total, err)
			}
		}
		_ = p.server[0].Finish(a)
		_, _, _ = prio.Combine(s, a, b)
	})
}

// The reports of fixed coins are what they were: the format is version 1.
func TestFormat(t *testing.T) {
	s := session(t, 10, 2)
	src := rand.NewChaCha8([32]byte{3})
	l, h, err := prio.Report(s, 3, src)
	if err != nil {
		t.Fatal(err)
	}
	if l[0] != prio.Version || l[1] != 1 || len(l) != formatLeader || len(h) != formatHelper {
		t.Errorf("reports of %d and %d bytes, want %d and %d", len(l), len(h), formatLeader, formatHelper)
	}
	again, _, err := prio.Report(s, 3, rand.NewChaCha8([32]byte{3}))
	if err != nil || !bytes.Equal(again, l) {
		t.Errorf("the same coins give another report, %v", err)
	}
}

const formatLeader, formatHelper = 378, 90

func Example() {
	s := secagg.Session{ID: [32]byte{1}, Experiment: "clicks", Grid: 10, Modulus: 1 << 20,
		Length: 1, Enrolled: 3, NMin: 3, Noise: "none", Mode: secagg.SemiHonest}
	key, _ := prio.NewVerifyKey(nil)
	leader, _ := prio.NewServer(s, prio.Leader, key)
	helper, _ := prio.NewServer(s, prio.Helper, key)
	for _, reward := range []uint64{10, 0, 7} {
		l, h, _ := prio.Report(s, reward, nil) // on the client's device
		a, _ := leader.Prepare(l)
		b, _ := helper.Prepare(h)
		fmt.Println(leader.Finish(b), helper.Finish(a))
	}
	x, _ := leader.Close(-2) // each server's own noise
	y, _ := helper.Close(1)
	fmt.Println(prio.Combine(s, x, y))
	// Output:
	// <nil> <nil>
	// <nil> <nil>
	// <nil> <nil>
	// 16 3 <nil>
}

func BenchmarkClientAndServer(b *testing.B) {
	s := session(b, 100, 2)
	p := newPair(b, s)
	b.Run("client", func(b *testing.B) {
		b.ReportAllocs()
		var bytes int
		for b.Loop() {
			l, h, err := prio.Report(s, 55, nil)
			if err != nil {
				b.Fatal(err)
			}
			bytes = len(l) + len(h)
		}
		b.ReportMetric(float64(bytes), "bytes/client")
	})
	b.Run("both servers", func(b *testing.B) {
		b.ReportAllocs()
		reports := make([][2][]byte, b.N)
		for i := range reports {
			l, h, err := prio.Report(s, 55, nil)
			if err != nil {
				b.Fatal(err)
			}
			reports[i] = [2][]byte{l, h}
		}
		b.ResetTimer()
		for _, r := range reports {
			if err := p.take(r[0], r[1]); err != nil {
				b.Fatal(err)
			}
		}
	})
}
