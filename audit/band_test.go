package audit_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/sotto-dp/sotto/audit"
	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
)

func ExampleScores_Band() {
	src := noise.NewFast(1, 1)
	var s audit.Scores
	for range 20_000 {
		s.In = append(s.In, src.Normal()+1)
		s.Out = append(s.Out, src.Normal())
	}
	band, err := s.Band(0.05)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, delta := range []float64{1e-5, 0.01, 0.1} {
		low, high, err := band.Epsilon(delta)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("δ = %v: ε from %.2f to %.2f\n", delta, low, high)
	}
	low, high := band.Mu()
	fmt.Printf("μ from %.2f to %.2f\n", low, high)
	// Output:
	// δ = 1e-05: ε from 2.20 to +Inf
	// δ = 0.01: ε from 1.93 to 3.55
	// δ = 0.1: ε from 1.04 to 1.56
	// μ from 0.94 to 1.06
}

// Games need not be as many on both sides. Ranks of the longer one are no ranks of the shorter, and
// the bounds are as near the truth as the shorter side lets them. False alarms: γ each, 1e-7.
func TestBandTakesSidesOfAnySize(t *testing.T) {
	src := noise.NewFast(1, 4)
	for _, sides := range [][2]int{{1, 2}, {2, 1}, {1, 4000}, {4000, 1}, {1000, 2000}, {2000, 9000}, {9000, 2000}} {
		var s audit.Scores
		for range sides[0] {
			s.Out = append(s.Out, src.Normal())
		}
		for range sides[1] {
			s.In = append(s.In, src.Normal()+1)
		}
		band, err := s.Band(1e-7)
		if err != nil {
			t.Fatal(err)
		}
		low, high := band.Mu()
		if !(low <= 1 && high >= 1) {
			t.Errorf("%d games out and %d in: μ from %v to %v, is 1", sides[0], sides[1], low, high)
		}
		if min(sides[0], sides[1]) > 100 && (low < 0.5 || high > 1.5) {
			t.Errorf("%d games out and %d in: μ from %v to %v, far from 1", sides[0], sides[1], low, high)
		}
		truth := privacy.GaussianEpsilon(1, 0.05)
		if low, high, err := band.Epsilon(0.05); err != nil || !(low <= truth && truth <= high) {
			t.Errorf("%d games out and %d in: ε from %v to %v, is %v: %v", sides[0], sides[1], low, high,
				truth, err)
		}
	}
}

// curves are mechanisms whose curve of ε over δ is known, with scores that are their
// likelihood ratios.
func curves() []struct {
	name    string
	epsilon func(delta float64) float64
	mu      float64
	draw    func(in bool, scale float64, src *noise.Fast) float64
} {
	return []struct {
		name    string
		epsilon func(delta float64) float64
		mu      float64
		draw    func(in bool, scale float64, src *noise.Fast) float64
	}{
		{"Laplace", func(d float64) float64 { return max(0, 1+2*math.Log1p(-d)) }, math.NaN(),
			func(in bool, scale float64, src *noise.Fast) float64 { return scale*src.Laplace(1) + bit(in) }},
		{"Gaussian", func(d float64) float64 {
			if d == 0 {
				return math.Inf(1)
			}
			return privacy.GaussianEpsilon(1, d)
		}, 1, func(in bool, scale float64, src *noise.Fast) float64 { return scale*src.Normal() + bit(in) }},
		{"geometric", func(d float64) float64 { return max(0, 1+math.Log1p(-d*(1+math.Exp(-1)))) }, math.NaN(),
			func(in bool, scale float64, src *noise.Fast) float64 {
				return float64(src.DiscreteLaplace(scale)) + bit(in)
			}},
	}
}

// The whole band at once at γ = 0.1, 2000 times at the full size: the true curve is above the lower
// end and below the upper one at every δ, and μ between both of its own. More than 267 failures of
// 2000, or 43 of 200, have a probability below 10⁻⁶ where γ is true. Of noise of seven tenths, a
// broken twin, the claim's curve is outside of more.
func TestBandIsSimultaneous(t *testing.T) {
	testkit.OneGoroutine(t)
	const games, gamma = 300, 0.1
	audits, line := testkit.Size(200, 2000), testkit.Size(43, 267)
	deltas := append([]float64{0}, audit.LogGrid(1e-4, 40)...)
	deltas = deltas[:len(deltas)-1]
	for i, c := range curves() {
		src := noise.NewFast(41, uint64(i))
		outside := [2]int{}
		for k, scale := range []float64{1, 0.7} {
			for range audits {
				var s audit.Scores
				for range games {
					s.In = append(s.In, c.draw(true, scale, &src))
					s.Out = append(s.Out, c.draw(false, scale, &src))
				}
				b, err := s.Band(gamma)
				if err != nil {
					t.Fatal(err)
				}
				low, high := b.Mu()
				out := c.mu > 0 && (c.mu < low || c.mu > high)
				for _, d := range deltas {
					low, high, err := b.Epsilon(d)
					if err != nil {
						t.Fatal(err)
					}
					e := c.epsilon(d)
					out = out || e < low-1e-12 || e > high+1e-12
				}
				if out {
					outside[k]++
				}
			}
		}
		t.Logf("%s: %d of %d outside, of the twin %d", c.name, outside[0], audits, outside[1])
		if outside[0] > line || outside[1] <= line {
			t.Errorf("%s: the curve is outside of %d bands of %d, and of %d of its broken twin", c.name,
				outside[0], audits, outside[1])
		}
	}
}

// Half the noise is outside of the claim's curve, at a false alarm of 10⁻⁶; the honest one is not.
// The upper end comes down to the truth with more games.
func TestBandFindsHalfTheNoise(t *testing.T) {
	for i, c := range curves() {
		for _, scale := range []float64{1, 0.5} {
			src := noise.NewFast(42, uint64(i))
			var s audit.Scores
			for range 20_000 {
				s.In = append(s.In, c.draw(true, scale, &src))
				s.Out = append(s.Out, c.draw(false, scale, &src))
			}
			b, err := s.Band(1e-6)
			if err != nil {
				t.Fatal(err)
			}
			refuted := 0
			for _, d := range []float64{1e-3, 0.01, 0.05, 0.1} {
				low, high, err := b.Epsilon(d)
				if err != nil {
					t.Fatal(err)
				}
				t.Logf("%s × %v, δ = %v: ε from %.3f to %.3f, claimed %.3f", c.name, scale, d, low, high,
					c.epsilon(d))
				if low > c.epsilon(d) {
					refuted++
				}
				if scale == 1 && d >= 0.05 && !(high < c.epsilon(d)+0.9) {
					t.Errorf("%s: at δ = %v at most %v, truly %v", c.name, d, high, c.epsilon(d))
				}
			}
			if twin := scale < 1; twin && refuted < 4 || !twin && refuted > 0 {
				t.Errorf("%s × %v: refuted at %d of 4 δ", c.name, scale, refuted)
			}
			if low, high := b.Mu(); c.mu > 0 && !(low <= c.mu/scale && c.mu/scale <= high && low > 0.8/scale) {
				t.Errorf("%s × %v: μ from %v to %v", c.name, scale, low, high)
			}
		}
	}
	for _, bad := range []audit.Scores{{}, {In: []float64{1}}, {In: []float64{1}, Out: []float64{1}},
		{In: []float64{math.NaN()}, Out: []float64{1}}} {
		if _, err := bad.Band(0.05); err == nil {
			t.Errorf("%v was taken", bad)
		}
	}
	good := audit.Scores{In: []float64{1, math.Inf(1)}, Out: []float64{math.Inf(-1), 1}}
	b, err := good.Band(0.05)
	if err != nil {
		t.Fatal(err)
	}
	if low, high, err := b.Epsilon(0); err != nil || low != 0 || !math.IsInf(high, 1) {
		t.Errorf("two games a side: %v to %v, %v", low, high, err)
	}
	for _, d := range []float64{-0.1, 1, math.NaN()} {
		if _, _, err := b.Epsilon(d); err == nil {
			t.Errorf("δ = %v was taken", d)
		}
	}
	if _, err := good.Band(0); err == nil {
		t.Error("γ = 0 was taken")
	}
}
