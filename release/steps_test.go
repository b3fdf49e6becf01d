package release

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
)

// Rewards that are clipped, and then as one sum of steps, are the integers that Real makes
// of each.
func TestStepsAreRealsIntegers(t *testing.T) {
	src := rand.New(rand.NewPCG(1, 2))
	rewards := []float64{math.NaN(), math.Inf(1), math.Inf(-1), -2, 3, 0, 1, 1e-300, 0x1p-21, 0x1p-21 - 0x1p-70}
	for range 10_000 {
		rewards = append(rewards, 8*src.Float64()-4)
	}
	for _, r := range [][2]float64{{0, 0}, {0, 1}, {-2, 3}, {-1e300, 1e300}, {0.1, 0.1 + 1e-9}} {
		cfg := Config{Arms: 2, Lo: r[0], Hi: r[1], Mechanism: privacy.Laplace{Scale: 1}}
		one, err := newExact(cfg, noise.Key{}.ChaCha8())
		if err != nil {
			t.Fatal(err)
		}
		all, err := newExact(cfg, noise.Key{}.ChaCha8())
		if err != nil {
			t.Fatal(err)
		}
		clip, err := NewClip(r[0], r[1])
		if err != nil {
			t.Fatal(err)
		}
		sum := int64(0)
		for i, x := range rewards {
			before := one.slots[1].sum
			if err := one.Add(1, x); err != nil {
				t.Fatal(err)
			}
			if got, want := clip.Steps(x), one.slots[1].sum-before; got != want {
				t.Fatalf("range %v: reward %d is %d steps, and Real's integer is %d", r, i, got, want)
			}
			sum += clip.Steps(x)
		}
		if err := all.AddSteps(1, len(rewards), sum); err != nil {
			t.Fatal(err)
		}
		if all.slots[1] != one.slots[1] {
			t.Errorf("range %v: the slot is %+v, must be %+v", r, all.slots[1], one.slots[1])
		}
	}
}

// A simulated curator takes steps as the shares of the range that they are.
func TestSimulatedSteps(t *testing.T) {
	s := noise.NewFast(1, 2)
	c, err := newSimulated(Config{Arms: 1, Mechanism: privacy.Laplace{Scale: 1}}, &s)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.AddSteps(0, 3, 5<<18); err != nil || c.slots[0].n != 3 || c.slots[0].sum != 1.25 {
		t.Errorf("slot %+v, %v", c.slots[0], err)
	}
}

func TestStepErrors(t *testing.T) {
	s := noise.NewFast(1, 2)
	for _, unclipped := range []bool{true, false} {
		c, err := newSimulated(Config{Arms: 1, Mechanism: privacy.Tree{Scale: 1, Horizon: 8},
			Unclipped: unclipped}, &s)
		if err != nil {
			t.Fatal(err)
		}
		if unclipped {
			if c.AddSteps(0, 1, 1) == nil {
				t.Error("an unclipped curator takes steps")
			}
			continue
		}
		for _, bad := range []struct {
			arm, n int
			steps  int64
		}{{0, -1, 0}, {0, 1, -1}, {0, 1, 1<<20 + 1}, {1, 1, 0}, {-1, 1, 0}, {0, 9, 0},
			{0, math.MaxInt, 0}, {0, 0, 1}} {
			if c.AddSteps(bad.arm, bad.n, bad.steps) == nil || c.slots[0].n != 0 {
				t.Errorf("taken: %+v", bad)
			}
		}
	}
	for _, r := range [][2]float64{{1, 1}, {2, 1}, {math.NaN(), 1}, {0, math.Inf(1)},
		{-math.MaxFloat64, math.MaxFloat64}, {0, 5e-324}} {
		if d, err := NewClip(r[0], r[1]); err == nil || d != (Clip{}) {
			t.Errorf("range %v: %+v", r, d)
		}
	}
}
