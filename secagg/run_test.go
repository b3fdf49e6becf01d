package secagg

import (
	"context"
	"crypto/sha256"
	"math/rand/v2"
	"testing"
)

// seeded is a reproducible source of randomness.
func seeded(name string) *rand.ChaCha8 { return rand.NewChaCha8(sha256.Sum256([]byte(name))) }

func testSession(name string, enrolled int) Session {
	return Session{ID: sha256.Sum256([]byte(name)), Experiment: "test", Arm: 1, Batch: 2, Grid: 10,
		Modulus: 0, Length: 1, Enrolled: enrolled, NMin: 3,
		Noise: "none", Mode: SemiHonest, Gamma: .1, Delta: .1}
}

func TestLocal(t *testing.T) {
	for _, mode := range []Mode{SemiHonest, Malicious} {
		for _, n := range []int{20, 60} {
			s := testSession("local", n)
			s.Mode, s.NMin = mode, n/2
			messages := map[uint32][]uint64{}
			want := uint64(0)
			for i := range n {
				v := uint64(i) << 58
				messages[uint32(i*7)] = []uint64{v}
				want += v
			}
			sum, in, err := Local{Rand: seeded("local")}.Sum(context.Background(), s, messages)
			if err != nil || len(in) != n || sum[0] != want {
				t.Errorf("%v, n=%d: %v, %v, %v, want %d", mode, n, sum, in, err, want)
			}
		}
	}
}
