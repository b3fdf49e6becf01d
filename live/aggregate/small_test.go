package aggregate_test

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/live/aggregate"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

// seen is a secure sum, and a sum in the open, that keep what the summing party is shown of
// single messages.
type seen struct {
	mechanism privacy.Mechanism
	messages  []uint64
}

func (s *seen) Sum(x release.Sum, messages []uint64) (uint64, int, error) {
	s.mechanism, s.messages = x.Mechanism, append(s.messages, messages...)
	return release.PlainSum{}.Sum(x, messages)
}

// What one open message of a small batch loses is what the ledger says: f(0)/f(g) of the law that
// was drawn. The twin is the sum of two shares in the open.
func TestSmallBatches(t *testing.T) {
	const epsilon, games = 0.1, 100_000
	stated := privacy.Laplace{Scale: 1 / epsilon}
	for _, users := range []int{1, 2, 3} {
		spy := &seen{}
		ledger := privacy.NewLedger()
		key := noise.Key{Seed: 3, Role: noise.RoleNoise}
		src := &key.Fast(1)[0]
		cur, err := release.Simulated(release.Config{Arms: 1, Mechanism: stated, Ledger: ledger,
			Trust: &release.Trust{Model: privacy.TrustSecAgg, P: 1e-3, Summer: aggregate.Bell{Open: spy}}}, src)
		if err != nil {
			t.Fatal(err)
		}
		for range users {
			if err := cur.Add(0, 1); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := cur.Release([]int{0}); err != nil {
			t.Fatal(err)
		}
		e := ledger.Entries()[0]
		m := e.Mechanism.(privacy.Aggregated)
		if got := ledger.Total().Pure(); got > epsilon || got < epsilon*0.99 {
			t.Errorf("%d users: ε is %v on the ledger, want %v", users, got, epsilon)
		}
		switch open := len(spy.messages) > 0; {
		case open != (users < 3):
			t.Errorf("%d users: %d messages were summed in the open", users, len(spy.messages))
		case open && (m.Trust != privacy.TrustLocal || !strings.Contains(e.Protects, "may see each message")):
			t.Errorf("%d users: the entry says %v, %q", users, m, e.Protects)
		case !open && (m.Trust != privacy.TrustSecAgg || !strings.Contains(e.Protects, "the sum modulo")):
			t.Errorf("%d users: the entry says %v, %q", users, m, e.Protects)
		}
	}
	// The least that can be said of one message: how much likelier is no change than one of g, in
	// draws of the program.
	loss := func(m privacy.Aggregated) float64 {
		r, err := release.NewRandomizer(m)
		if err != nil {
			t.Fatal(err)
		}
		at := map[uint64]int{}
		var out []uint64
		for range games {
			if out, err = r.Messages(out[:0], 1); err != nil {
				t.Fatal(err)
			}
			at[out[0]]++
		}
		return math.Log(float64(at[uint64(m.G)]) / float64(at[0]))
	}
	half := mechanismOf(t, privacy.TrustSecAgg, privacy.NoisePolya, epsilon, 2)
	whole := mechanismOf(t, privacy.TrustLocal, privacy.NoiseLaplace, epsilon, 2)
	// Exactly 0.606 and 0.1. Standard errors are 0.0143 and 0.0205: of each five, false
	// alarm below 1e-6.
	if got := loss(half); math.Abs(got-0.606) > 0.072 {
		t.Errorf("the twin: a share of a half loses %v, want 0.606", got)
	}
	if got := loss(whole); math.Abs(got-epsilon) > 0.103 {
		t.Errorf("a message with a whole noise loses %v, want %v", got, epsilon)
	}
}

// A release of several arms is made for the smallest of their batches.
func TestSmallBatchAmongLarge(t *testing.T) {
	spy, ledger := &seen{}, privacy.NewLedger()
	key := noise.Key{Seed: 4, Role: noise.RoleNoise}
	src := &key.Fast(1)[0]
	cur, err := release.Simulated(release.Config{Arms: 2, Mechanism: privacy.Laplace{Scale: 2}, Ledger: ledger,
		Trust: &release.Trust{Model: privacy.TrustSecAgg, P: 1e-3, Summer: aggregate.Bell{Open: spy}}}, src)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 22 {
		if err := cur.Add(min(i/2, 1), 1); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := cur.Release([]int{0, 1}); err != nil || len(spy.messages) != 2 ||
		spy.mechanism.(privacy.Aggregated).Trust != privacy.TrustLocal {
		t.Errorf("%d messages in the open, of %v, %v", len(spy.messages), spy.mechanism, err)
	}
}

// Fewer answers than a crowd are too few, whatever was promised, and nothing of them is
// summed in the open.
func TestNoCrowdLeft(t *testing.T) {
	spy, refused := &seen{}, 0
	for seed := range uint64(20) {
		ledger := privacy.NewLedger()
		key := noise.Key{Seed: seed, Role: noise.RoleNoise}
		src := &key.Fast(1)[0]
		cur, err := release.Simulated(release.Config{Arms: 1, Mechanism: privacy.Laplace{Scale: 2},
			Ledger: ledger,
			Trust: &release.Trust{Model: privacy.TrustSecAgg, P: 1e-3, Promised: 0.3, Dropout: 0.4,
				Summer: aggregate.Bell{Open: spy}}}, src)
		if err != nil {
			t.Fatal(err)
		}
		for range 4 {
			if err := cur.Add(0, 1); err != nil {
				t.Fatal(err)
			}
		}
		r, err := cur.Release([]int{0})
		var few *release.TooFewError
		switch {
		case err == nil && r.N(0) < 3:
			t.Errorf("a sum of %d was released", r.N(0))
		case errors.As(err, &few) && few.Promised == 3 && ledger.Total().Pure() == 0:
			refused++
		case err != nil:
			t.Error(err)
		}
	}
	if len(spy.messages) > 0 || refused == 0 {
		t.Errorf("%d messages in the open, %d batches refused", len(spy.messages), refused)
	}
	// Nor by the sum itself, if it is asked.
	m := mechanismOf(t, privacy.TrustSecAgg, privacy.NoisePolya, 1, 2)
	if _, _, err := (aggregate.Bell{Open: spy}).Sum(sumOf(m, 2), []uint64{1, 2}); !errors.Is(err,
		release.ErrAnswers) || len(spy.messages) > 0 {
		t.Errorf("%v, want %v", err, release.ErrAnswers)
	}
}

// Of one user Prio's servers have shares of the reward that no other coins would leave the same.
func TestPrioOfOne(t *testing.T) {
	m := twoServer(t, 1, 1)
	var reports [2][][]byte
	for range 2 {
		s := sumOf(m, 1)
		s.Noise = func() (int64, error) { return 0, nil }
		p := aggregate.Prio{Fault: func(_ int, l, h []byte) ([]byte, []byte) {
			reports[0], reports[1] = append(reports[0], l), append(reports[1], h)
			return l, h
		}}
		if got, n, err := p.Sum(s, []uint64{1}); err != nil || got != 1 || n != 1 {
			t.Errorf("%d of %d, %v", got, n, err)
		}
	}
	for role, r := range reports {
		if len(r) != 2 || bytes.Equal(r[0][50:], r[1][50:]) { // after the header
			t.Errorf("server %d has %x, and again", role, r)
		}
	}
}

func mechanismOf(t *testing.T, trust privacy.Trust, n privacy.NoiseName, epsilon float64,
	users int) privacy.Aggregated {
	t.Helper()
	m, err := privacy.NewAggregated(privacy.Calibration{Trust: trust, Noise: n, Epsilon: epsilon,
		S: 1, Users: users, Invited: users, P: 1e-6})
	if err != nil {
		t.Fatal(err)
	}
	return m
}
