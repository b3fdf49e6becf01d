package release

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
)

func featureConfig(dim int, sigma float64) FeatureConfig {
	return FeatureConfig{Dim: dim, Slots: 2, Mechanism: privacy.VectorGaussian{Sigma: sigma}}
}

// stepFeatures is the curator of real rewards on given bits.
func stepFeatures(t *testing.T, cfg FeatureConfig) *features[int64] {
	t.Helper()
	c, err := exactFeatures(cfg, noise.Key{}.ChaCha8())
	if err != nil {
		t.Fatal(err)
	}
	return c.(*features[int64])
}

// records are vectors in the unit ball, on the grid and not, and rewards of all kinds.
func records(dim, n int) (vectors [][]float64, rewards []float64) {
	rng := rand.New(rand.NewPCG(4, uint64(dim)))
	rewards = []float64{math.NaN(), math.Inf(1), math.Inf(-1), -2, 3, 0, 1, -1, 1e-300, 0x1p-21, -0x1p-21,
		0x1p-21 - 0x1p-70}
	for len(rewards) < n {
		rewards = append(rewards, 4*rng.Float64()-2)
	}
	for range rewards {
		a, q := make([]float64, dim), 0.0
		for i := range a {
			a[i] = rng.NormFloat64()
			q += a[i] * a[i]
		}
		for i := range a {
			a[i] /= math.Sqrt(q)
			if rng.IntN(2) == 0 {
				a[i] = math.Trunc(a[i]*gridSteps) / gridSteps
			}
		}
		vectors = append(vectors, a)
	}
	vectors[3], vectors[6] = make([]float64, dim), make([]float64, dim)
	vectors[6][dim-1] = 1
	return vectors, rewards
}

// Records that are added one by one, and those that are kept as integer sums, are the same slot,
// the same release bit for bit, and the same charge.
func TestStepFeaturesAreRealsIntegers(t *testing.T) {
	for _, dim := range []int{1, 2, 7} {
		cfg := featureConfig(dim, 2)
		one, all := stepFeatures(t, cfg), stepFeatures(t, cfg)
		vectors, rewards := records(dim, 2000)
		sums := make([]int64, all.Width())
		for i, a := range vectors {
			before := slices.Clone(one.sum)
			if err := one.Add(1, a, rewards[i]); err != nil {
				t.Fatal(err)
			}
			single := make([]int64, dim)
			all.Products(single, a, rewards[i])
			for j, x := range single {
				if want := one.sum[dim+j] - before[dim+j]; x != want {
					t.Fatalf("d = %d: product %d of record %d is %d steps, and Add's is %d", dim, j, i, x, want)
				}
			}
			all.Products(sums, a, rewards[i])
		}
		// in two parts
		half := make([]int64, dim)
		for i := range 777 {
			all.Products(half, vectors[i], rewards[i])
		}
		for j := range sums {
			sums[j] -= half[j]
		}
		for _, p := range []struct {
			n    int
			sums []int64
		}{{777, half}, {len(rewards) - 777, sums}} {
			if err := all.AddSteps(1, p.n, p.sums); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(one.sum, all.sum) || !slices.Equal(one.n, all.n) {
			t.Fatalf("d = %d: slots are %v of %v, must be %v of %v", dim, all.sum, all.n, one.sum, one.n)
		}
		a, err := one.Release(1)
		if err != nil {
			t.Fatal(err)
		}
		b, err := all.Release(1)
		if err != nil {
			t.Fatal(err)
		}
		for i := range dim {
			if a.At(i) != b.At(i) || a.N() != b.N() {
				t.Errorf("d = %d: released %v of %d and %v of %d", dim, a.At(i), a.N(), b.At(i), b.N())
			}
		}
		x, y := one.Ledger().Entries(), all.Ledger().Entries()
		if fmt.Sprint(x) != fmt.Sprint(y) || len(x) != 1 ||
			one.Ledger().Total().ZCDP() != all.Ledger().Total().ZCDP() {
			t.Errorf("d = %d: the ledgers have %v and %v", dim, x, y)
		}
		charge, err := FeatureCharge(cfg)
		if err != nil || charge != x[0].Mechanism {
			t.Errorf("d = %d: the charge is %v, %v, and the ledger has %v", dim, charge, err, x)
		}
	}
}

// A simulated curator has the steps as the numbers that they are.
func TestSimulatedStepFeatures(t *testing.T) {
	s := noise.NewFast(1, 2)
	cur, err := SimulatedFeatures(featureConfig(3, 0), &s)
	if err != nil {
		t.Fatal(err)
	}
	c := cur.(*features[float64])
	vectors, rewards := records(3, 500)
	sums := make([]int64, 3)
	for i, a := range vectors {
		c.Products(sums, a, rewards[i])
		if math.IsNaN(rewards[i]) {
			rewards[i] = -1 // Add refuses it in simulations
		}
		if err := c.Add(0, a, rewards[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.AddSteps(1, len(vectors), sums); err != nil {
		t.Fatal(err)
	}
	for j := range 3 {
		if d := math.Abs(c.sum[j] - c.sum[3+j]); !(d <= float64(len(vectors))/(2*gridSteps)+1e-9) {
			t.Errorf("sum %d is %v by Add and %v by AddSteps", j, c.sum[j], c.sum[3+j])
		}
	}
}

// Sums that no records have are refused without being told, and change nothing.
func TestStepFeaturesErrors(t *testing.T) {
	real, s := stepFeatures(t, featureConfig(2, 1)), noise.NewFast(1, 2)
	cfg := featureConfig(2, 1)
	cfg.Unclipped = true
	unclipped, err := SimulatedFeatures(cfg, &s)
	if err != nil {
		t.Fatal(err)
	}
	const one = gridSteps
	for _, c := range []struct {
		cur  StepFeatureCurator
		slot int
		n    int
		sums []int64
		want string
	}{
		{real, 2, 1, []int64{0, 0}, "curator: slot is 2, must be from 0 to 1"},
		{real, -1, 1, []int64{0, 0}, "curator: slot is -1, must be from 0 to 1"},
		{real, 0, 1, []int64{0}, "curator: there are 1 sums, must be 2"},
		{real, 0, -1, []int64{0, 0}, fmt.Sprintf("curator: n of slot 0 is -1, must be from 0 to %d",
			int(maxRewards))},
		{real, 0, 2, []int64{0, 2*one + 1}, "curator: sum 1 of 2 rewards is out of range"},
		{real, 0, 2, []int64{-2*one - 1, 0}, "curator: sum 0 of 2 rewards is out of range"},
		{real, 0, 0, []int64{1, 0}, "curator: sum 0 of 0 rewards is out of range"},
		{unclipped.(StepFeatureCurator), 0, 1, []int64{0, 0},
			"curator: steps are of clipped rewards, and the curator's are not"},
	} {
		if err := c.cur.AddSteps(c.slot, c.n, c.sums); err == nil || err.Error() != c.want {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
	if !slices.Equal(real.sum, make([]int64, 4)) || !slices.Equal(real.n, []int{0, 0}) {
		t.Errorf("after errors the slots are %v of %v", real.sum, real.n)
	}
	if err := real.AddSteps(0, maxRewards, []int64{0, 0}); err != nil {
		t.Fatal(err)
	}
	if err := real.AddSteps(0, 1, []int64{0, 0}); err == nil {
		t.Error("a slot has more rewards than its sums have room for")
	}
	if _, err := FeatureCharge(FeatureConfig{Dim: 2, Slots: 1,
		Mechanism: privacy.Laplace{Scale: 1}}); err == nil {
		t.Error("a mechanism of single sums has a charge")
	}
}
