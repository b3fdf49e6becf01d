package interval

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sotto-dp/sotto/privacy"
)

// The ends are those of the formula as it stands in the proof.
func TestWeightedIsItsFormula(t *testing.T) {
	for _, s := range []Weighted{
		{Sums{1000, 120, 3, nil, 0}, 200},
		{Sums{100_000, 2500, 40, privacy.Laplace{Scale: 2}, 0}, 400},
		{Sums{100_000, 2500, 40, privacy.Gaussian{Sigma: 3}, 0}, 400},
		{Sums{50, 1, 1, privacy.Laplace{Scale: 1}, 0}, 50},
	} {
		top, cost := 0.9, func(float64) float64 { return 0 }
		switch n := s.Noise.(type) {
		case privacy.Laplace:
			top, cost = 0.9/n.Scale, func(l float64) float64 { return -math.Log(1 - l*l*n.Scale*n.Scale) }
		case privacy.Gaussian:
			top, cost = 2/n.Sigma, func(l float64) float64 { return l * l * n.Sigma * n.Sigma / 2 }
		}
		width := math.Inf(1)
		for j := range 36 {
			l := min(top, 0.9) / math.Sqrt(math.Pow(2, float64(j)))
			width = min(width, (math.Log(72/0.05)+(-math.Log(1-l)-l)*s.Squares+float64(s.Releases)*cost(l))/l)
		}
		n := float64(s.N)
		lo, hi, err := s.Interval(0.05)
		// beside the formula: the reward, the weight and their product are each rounded by half a step,
		// and the noise that is drawn is wider by up to 2^-25
		const rounded = 3 * 0x1p-21
		if err != nil || math.Abs(lo-max(0, (s.Sum-width)/n-rounded)) > 2e-8 ||
			math.Abs(hi-min(1, (s.Sum+width)/n+rounded)) > 2e-8 {
			t.Errorf("%+v: from %v to %v, %v; want %v ± %v", s, lo, hi, err, s.Sum/n, width/n)
		}
	}
	// by hand: 10^5 decisions of which each has weight (1/0.9)/20 with probability 0.9, clip 20: Σw² =
	// 277.8, λ = 0.9/4: (7.272 + 0.02989·277.8)/0.225 = 69.2, in units of earnings 20·69.2/10^5
	lo, hi, err := Weighted{Sums{100_000, 2500, 1, nil, 0}, 90_000 / (18. * 18)}.Interval(0.05)
	if err != nil || math.Abs((hi-lo)/2*20-0.01385) > 3e-5 {
		t.Errorf("from %v to %v, %v", lo, hi, err)
	}
}

func TestWeightedErrors(t *testing.T) {
	for name, s := range map[string]Weighted{
		"negative":  {Sums{10, 1, 1, nil, 0}, -1},
		"too large": {Sums{10, 1, 1, nil, 0}, 11},
		"NaN":       {Sums{10, 1, 1, nil, 0}, math.NaN()},
		"sum":       {Sums{10, math.NaN(), 1, nil, 0}, 1},
		"releases":  {Sums{1, 1, 2, nil, 0}, 1},
		"noise":     {Sums{1, 1, 1, privacy.Laplace{Scale: math.Inf(1)}, 0}, 1},
	} {
		if lo, hi, err := s.Interval(0.05); err == nil || lo != 0 || hi != 1 {
			t.Errorf("%s: from %v to %v, no error", name, lo, hi)
		}
	}
	if _, _, err := (Weighted{}).Interval(0); err == nil {
		t.Error("a risk of 0")
	}
	if lo, hi, err := (Weighted{}).Interval(0.05); err != nil || lo != 0 || hi != 1 {
		t.Errorf("of nothing from %v to %v, %v", lo, hi, err)
	}
}

// The mean is inside at all releases of a run with probability 1−risk, whatever the propensities,
// the rewards and the rule do. Of 1000 runs at 0.2 more than 265 fail with probability 3e-7; one
// that knows of no noise and a quarter of the squares, or of neither, fails in more.
func TestWeightedCovers(t *testing.T) {
	const runs, risk, most = 1000, 0.2, 265
	fails, deaf, narrow := 0, 0, 0
	for run := range runs {
		rng := rand.New(rand.NewPCG(uint64(run), 3))
		s := Weighted{Sums: Sums{Noise: privacy.Laplace{Scale: 3}}}
		means, out := 0.0, [3]bool{}
		for range 12 {
			for range 60 {
				const clip = 10
				// propensities and means that follow from what was seen
				p := 0.1 + 0.4*rng.Float64()
				mean := 0.9
				if s.Sum > 3 {
					mean = 0.4
				}
				means += mean / clip
				if rng.Float64() < p {
					w := 1 / p / clip
					s.Squares += w * w
					if rng.Float64() < mean {
						s.Sum += w
					}
				}
				s.N++
			}
			x := -3 * math.Log(1-rng.Float64())
			if rng.IntN(2) == 0 {
				x = -x
			}
			s.Sum, s.Releases = s.Sum+x, s.Releases+1
			quiet, fewer := s, s
			quiet.Noise = nil
			quiet.Squares /= 4
			fewer.Squares, fewer.Noise = 0, nil
			for i, v := range []Weighted{s, quiet, fewer} {
				lo, hi, err := v.Interval(risk)
				if err != nil {
					t.Fatal(err)
				}
				m := means / float64(v.N)
				out[i] = out[i] || m < lo || m > hi
			}
		}
		for i, n := range []*int{&fails, &deaf, &narrow} {
			if out[i] {
				*n++
			}
		}
	}
	if fails > most || deaf <= most || narrow <= most {
		t.Errorf("of %d runs %d fail, %d and %d of the twins", runs, fails, deaf, narrow)
	}
}
