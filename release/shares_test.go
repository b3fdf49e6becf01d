package release

import (
	"testing"

	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
)

// The shares of a user add up to its message, and each but the last is uniform on the ring. χ² has
// 15 degrees of freedom: above 60 with probability below 3·10⁻⁷, at a fixed seed.
func TestSharesAddUp(t *testing.T) {
	inner, err := privacy.NewAggregated(privacy.Calibration{
		Noise: privacy.NoisePolya, Epsilon: 1, S: 1, Users: 64, Invited: 64, P: 0.01,
		Trust: privacy.TrustSecAgg,
	})
	if err != nil {
		t.Fatal(err)
	}
	m, err := privacy.NewSplitMix(inner, 20)
	if err != nil {
		t.Fatal(err)
	}
	r, err := newRandomizer(m, noise.Key{Seed: 9, Role: noise.RoleNoise}.ChaCha8(), nil)
	if err != nil {
		t.Fatal(err)
	}
	const batches, bins = 50, 16
	var count [bins]float64
	shares := 0.0
	for batch := range batches {
		var total uint64
		for range 64 {
			messages, err := r.Messages(nil, 1)
			if err != nil {
				t.Fatal(err)
			}
			for i, u := range messages {
				total = (total + u) % r.Modulus()
				if i < len(messages)-1 {
					count[int(bins*(float64(u)/float64(r.Modulus())))]++
					shares++
				}
			}
		}
		a, err := NewAnalyser(m, privacy.NewLedger())
		if err != nil {
			t.Fatal(err)
		}
		got, err := a.Read(0, total, 64)
		if err != nil {
			t.Fatal(err)
		}
		// The noise of all is Lap(1) but for the grid: beyond 40 with probability e^-40.
		if sum := got.Sum(0); sum < 64-40 || sum > 64+40 {
			t.Errorf("batch %d: 64 rewards of 1 are read as %v", batch, sum)
		}
	}
	var chi float64
	for _, n := range count {
		chi += (n - shares/bins) * (n - shares/bins) / (shares / bins)
	}
	if chi > 60 {
		t.Errorf("shares are not uniform: χ² is %v on 15 degrees of freedom, counts %v", chi, count)
	}
}

// Below m = 3·2⁶², three quarters of all words, a product that rejects nothing takes every third
// number twice as often. Each class modulo 3 has a third of 300 000 draws, within six standard
// deviations (2·10⁻⁹), at a fixed seed.
func TestUniformBelowRejects(t *testing.T) {
	src := noise.Key{Seed: 10, Role: noise.RoleNoise}.ChaCha8()
	const n, m = 300_000, 3 << 62
	var class [3]int
	for range n {
		u := uniformBelow(src, m)
		if u >= m {
			t.Fatalf("%d is not below %d", u, uint64(m))
		}
		class[u%3]++
	}
	for c, k := range class {
		if k < n/3-1550 || k > n/3+1550 {
			t.Errorf("class %d modulo 3 has %d of %d draws", c, k, n)
		}
	}
}
