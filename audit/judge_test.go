package audit

import (
	"errors"
	"math"
	"testing"

	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
)

// Randomised response at ε = 1: the finding of two attacks, one of which is noise, and another that
// says nothing at all.
func TestJudge(t *testing.T) {
	src := noise.NewFast(7, 7)
	truth := math.E / (1 + math.E)
	var good, noisy, constant Scores
	for range 40000 {
		for _, in := range []bool{src.Uint64()>>63 == 1} {
			bit := in
			if u := float64(src.Uint64()>>11) / (1 << 53); u > truth {
				bit = !in
			}
			x := 0.0
			if bit {
				x = 1
			}
			n := float64(src.Uint64()>>11) / (1 << 53)
			if in {
				good.In, noisy.In, constant.In = append(good.In, x), append(noisy.In, n), append(constant.In, 3)
			} else {
				good.Out, noisy.Out, constant.Out = append(good.Out, x), append(noisy.Out, n),
					append(constant.Out, 3)
			}
		}
	}
	// False alarm at most 1e-6 (γ), and the seed is fixed.
	f, best, err := Judge([]Scores{constant, noisy, good},
		[]string{"constant", "noise", "bit"}, 1e-6, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	if best != 2 || f.Attack != "bit" || f.Refuted || !(f.Low > 0.8 && f.Low <= 1) ||
		!(f.Low < f.Estimate && f.Estimate < f.High) || f.Games != 40000 {
		t.Errorf("judge found %+v of attack %d", f, best)
	}
	if f, _, err = Judge([]Scores{good}, []string{"bit"}, 1e-6, 0, 0.5); err != nil || !f.Refuted {
		t.Errorf("a claim of half the ε is not refuted: %+v, %v", f, err)
	}
	if f, _, err = Judge([]Scores{noisy}, []string{"noise"}, 1e-6, 0, 0); err != nil ||
		f.Refuted || f.Low != 0 || !math.IsNaN(f.Estimate) {
		t.Errorf("noise refutes: %+v, %v", f, err)
	}
	if _, _, err = Judge([]Scores{constant}, []string{"constant"}, 1e-6, 0,
		1); !errors.Is(err, ErrConstantScore) {
		t.Errorf("a constant score: %v", err)
	}
}

// Normal noise for a budget is the least that meets it.
func TestNamedGaussian(t *testing.T) {
	m, err := NewMechanism("gaussian", privacy.Approx{Epsilon: 1, Delta: 0.01}, 2)
	if err != nil {
		t.Fatal(err)
	}
	if eps := m.Loss().Approx(0.01); !(eps <= 1+1e-9 && eps > 1-1e-6) {
		t.Errorf("%v has ε = %v at δ = 0.01, want 1", m, eps)
	}
}
