package choose

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"
)

// Of 1, 2, …, 100 the worst half has the mean 75.5 and the worst tenth 95.5, whatever the quantile is
// between two of the values.
func TestWorstMeanByHand(t *testing.T) {
	x := make([]float64, 100)
	for i := range x {
		x[(i*37)%100] = float64(i + 1)
	}
	if got := worstMean(x, 0.5).mean; math.Abs(got-75.5) > 1e-12 {
		t.Errorf("worst half of 1…100: %v, want 75.5", got)
	}
	if got := worstMean(x, 0.9).mean; math.Abs(got-95.5) > 1e-9 {
		t.Errorf("worst tenth of 1…100: %v, want 95.5", got)
	}
	if s := worstMean([]float64{3, 3, 3, 3}, 0.9); s.mean != 3 || s.sd != 0 {
		t.Errorf("equal values: %+v", s)
	}
}

// For exponential values the mean of the worst 1−p is 1 + log(1/(1−p)). Of 400 intervals at 95 %, of 4000
// values each, fewer than 355 would hold the truth, or all, with probability below 1e-6.
func TestWorstMeanCovers(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	const p, n = 0.9, 4000
	want, held, below := 1+math.Log(1/(1-p)), 0, 0
	x := make([]float64, n)
	for range 400 {
		for i := range x {
			x[i] = r.ExpFloat64()
		}
		s := worstMean(x, p)
		if !s.upperHolds() {
			t.Fatalf("skewness %v of %d values", s.skew, n)
		}
		if d := s.mean - want; math.Abs(d) <= s.half(1.96) {
			held++
		} else if d < 0 {
			below++
		}
	}
	if held < 355 || held == 400 {
		t.Errorf("%d of 400 intervals hold the truth (%d are below it), want about 380", held, below)
	}
}

// Two policies of equal means, one of which loses all in one run of 64: by the mean they tie or are not
// settled, and by what bad runs lose the other one is first, and better.
func TestRankingByRisk(t *testing.T) {
	play := func(_ context.Context, i, first int, out []float64) (int, error) {
		for j := range out {
			r := rand.New(rand.NewPCG(uint64(first+j), uint64(i)))
			out[j] = 64 + r.Float64()
			if i == 0 {
				if out[j] = r.Float64(); r.IntN(64) == 0 {
					out[j] = 4096
				}
			}
		}
		return 1, nil
	}
	for _, byRisk := range []bool{false, true} {
		c := contest{ranked: 2, all: 2, level: 0.05, resolution: 0.01, risk: 0.95, byRisk: byRisk, top: 5000,
			min: 1024, max: 65536, effort: 1 << 28, workers: 1, play: play}
		if err := c.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		v := c.verdict(c.order[0], c.order[1])
		if byRisk != (v == Better && c.order[0] == 1) {
			t.Errorf("by risk %t: order %v, %s", byRisk, c.order, v)
		}
		var row Row
		c.describe(1, &row)
		if !(math.Abs(row.Worst-65) < 0.1) || row.WorstHeavy {
			t.Errorf("by risk %t: the worst 5 %% of 64 to 65 have %v ± %v", byRisk, row.Worst, row.WorstHalf)
		}
	}
}

// The upper bound that trusts nothing: of 1000 values in [0,100] that are 0 but for ten of 50 the worst
// twentieth has 10. With v at or below 0.1 the mean of the rest is bounded by 0.5 + what Hoeffding's
// inequality costs; and where nothing was ever above 0 by that alone.
func TestSurely(t *testing.T) {
	c := contest{ranked: 1, all: 1, level: 0.05, resolution: 0.01, risk: 0.95, top: 100, min: 1000, max: 1000}
	c.plan()
	e := &played{x: make([]float64, 1000), size: len(c.sizes) - 1}
	cost := math.Log(128/c.alpha(e.size)) / 1000
	if got, most := c.surely(e), 100*(1-math.Exp(-cost))/0.05; !(got <= most*(1+1e-6)) || got < most*0.9 {
		t.Errorf("no loss at all: at most %v, want about %v", got, most)
	}
	for i := range 10 {
		e.x[i*97] = 50
	}
	if got := c.surely(e); got < 10 || got > 60 {
		t.Errorf("ten of 1000 lose 50: at most %v", got)
	}
}
