package prio_test

import (
	"errors"
	"math"
	"testing"

	"github.com/sotto-dp/sotto/secagg"
	"github.com/sotto-dp/sotto/secagg/prio"
)

func TestSumLimits(t *testing.T) {
	for largest, ok := range map[uint64]bool{0: false, 1: true, prio.MaxMeasurement: true,
		prio.MaxMeasurement + 1: false, math.MaxUint64: false} {
		if _, err := prio.NewSum(largest, nil); (err == nil) != ok || err != nil &&
			!errors.Is(err, secagg.ErrRange) {
			t.Errorf("values to %d: %v", largest, err)
		}
	}
}

// Noise goes into the field and comes out of it as it was; a share and its opposite are nothing.
func TestNoiseInTheField(t *testing.T) {
	for _, x := range []int64{0, 1, -1, 1 << 60, -1 << 60, 12345678901} {
		s, err := prio.Noise(x)
		if err != nil {
			t.Fatal(err)
		}
		back, err := prio.Noise(-x)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := s.Int64(); err != nil || got != x {
			t.Errorf("%d comes out as %d, %v", x, got, err)
		}
		if got := s.Plus(back); got != (prio.Share{}) {
			t.Errorf("%d and its opposite are %v", x, got)
		}
		if three, err := s.Times(3); err != nil || three != s.Plus(s).Plus(s) {
			t.Errorf("three times %d: %v, %v", x, three, err)
		}
		b, err := s.Bytes()
		if err != nil || len(b) != prio.ShareSize {
			t.Errorf("%d has bytes %x, %v", x, b, err)
		}
		if again, err := prio.ParseShare(b); err != nil || again != s {
			t.Errorf("%x is read as %v, %v", b, again, err)
		}
	}
	for _, x := range []int64{1<<60 + 1, -1<<60 - 1, math.MaxInt64, math.MinInt64} {
		if _, err := prio.Noise(x); !errors.Is(err, prio.ErrOverflow) {
			t.Errorf("%d: %v", x, err)
		}
	}
	if _, err := (prio.Share{}).Times(math.MaxUint64); !errors.Is(err, prio.ErrOverflow) {
		t.Errorf("a factor above the field: %v", err)
	}
	// The two integers next to half the order.
	half, err := prio.ParseShare([]byte{0, 0, 0, 0x80, 0xff, 0xff, 0xff, 0x7f})
	if err != nil {
		t.Fatal(err)
	}
	one, err := prio.Noise(1)
	if err != nil {
		t.Fatal(err)
	}
	top, err := half.Int64()
	bottom, err2 := half.Plus(one).Int64()
	if errors.Join(err, err2) != nil || top != (1<<64-1<<32)/2 || bottom != -top {
		t.Errorf("the edges are %d and %d, %v, %v", top, bottom, err, err2)
	}
	for name, b := range map[string][]byte{"short": make([]byte, 7), "long": make([]byte, 9),
		"the order itself": {1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff}} {
		if _, err := prio.ParseShare(b); !errors.Is(err, secagg.ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
