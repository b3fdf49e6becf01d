package release

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
)

// alone is a source that notices when it is read by two at a time: then both may get the same bits.
type alone struct {
	rand.Source
	readers atomic.Int32
	shared  atomic.Int32
}

func (s *alone) Uint64() uint64 {
	defer s.readers.Add(-1)
	if s.readers.Add(1) > 1 {
		s.shared.Add(1)
		return 1
	}
	runtime.Gosched()
	return s.Source.Uint64()
}

// A Randomizer that goroutines share draws anew for each of them.
func TestSharedRandomizer(t *testing.T) {
	inner := privacy.Calibration{Noise: privacy.NoisePolya, Epsilon: 1, S: 1, Users: 64,
		Invited: 64, P: 0.01, Trust: privacy.TrustSecAgg}
	polya, err := privacy.NewAggregated(inner)
	if err != nil {
		t.Fatal(err)
	}
	split, err := privacy.NewSplitMix(polya, 20)
	if err != nil {
		t.Fatal(err)
	}
	inner.Trust, inner.Noise = privacy.TrustLocal, privacy.NoiseLaplace
	local, err := privacy.NewAggregated(inner)
	if err != nil {
		t.Fatal(err)
	}
	count, err := privacy.NewShuffledCount(1, 0.5, 16, 16, 0.1)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []privacy.Mechanism{polya, split, local, count} {
		src := &alone{Source: noise.Key{Seed: 5, Role: noise.RoleNoise}.ChaCha8()}
		r, err := newRandomizer(m, src, nil)
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 50 {
					if _, err := r.Messages(nil, 0.3); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if n := src.shared.Load(); n > 0 {
			t.Errorf("%s: the source of noise was read by two at a time, %d times", m.Kind(), n)
		}
	}
}

// So does an Analyser, which draws the noise under central trust; and it charges for each.
func TestSharedAnalyser(t *testing.T) {
	m, err := privacy.NewAggregated(privacy.Calibration{Noise: privacy.NoiseLaplace, Epsilon: 1,
		S: 1, Users: 64, Invited: 64, P: 0.01, Trust: privacy.TrustCentral})
	if err != nil {
		t.Fatal(err)
	}
	src := &alone{Source: noise.Key{Seed: 5, Role: noise.RoleNoise}.ChaCha8()}
	a, err := newAnalyser(m, src, nil)
	if err != nil {
		t.Fatal(err)
	}
	a.ledger = privacy.NewLedger()
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 50 {
				if _, err := a.Read(50*g+i, 0, 64); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n := src.shared.Load(); n > 0 {
		t.Errorf("the source of noise was read by two at a time, %d times", n)
	}
	if n := len(a.ledger.Entries()); n != 200 {
		t.Errorf("%d of 200 releases are in the ledger", n)
	}
}

// A total that was seen is charged also beyond the cap: the ledger does not say that less was lost,
// and admits nothing more.
func TestAnalyserChargesWhatWasSeen(t *testing.T) {
	at := func(trust privacy.Trust, noise privacy.NoiseName) *Analyser {
		m, err := privacy.NewAggregated(privacy.Calibration{Noise: noise, Epsilon: 1, S: 1,
			Users: 4, Invited: 6, P: 0.01, Trust: trust})
		if err != nil {
			t.Fatal(err)
		}
		a, err := NewAnalyser(m, privacy.NewLedger(privacy.WithCap(m.Loss().In(privacy.Pure{}))))
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	few := at(privacy.TrustSecAgg, privacy.NoisePolya)
	if _, err := few.Read(0, 0, 3); !errors.Is(err, ErrAnswers) {
		t.Fatal(err)
	}
	if l := few.ledger; !l.Total().Infinite() || !l.Guarantee().Infinite() {
		t.Errorf("a sum with 3 of 4 shares of noise was seen: total %v, guarantee %v", l.Total(), l.Guarantee())
	}
	if _, err := few.Read(1, 0, 4); !errors.Is(err, privacy.ErrBudget) {
		t.Errorf("the next release: %v", err)
	}
	// nobody has seen it without noise, nor with it
	central := at(privacy.TrustCentral, privacy.NoiseLaplace)
	if _, err := central.Read(0, 0, 3); !errors.Is(err, ErrAnswers) ||
		central.ledger.Total() != (privacy.Loss{}) {
		t.Errorf("central: %v, total %v", err, central.ledger.Total())
	}
}
