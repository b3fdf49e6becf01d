package release

import (
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
	inner := privacy.Calibration{Noise: privacy.NoisePolya, Epsilon: 1, S: 1, Users: 64, Invited: 64, P: 0.01, Trust: privacy.TrustSecAgg}
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
