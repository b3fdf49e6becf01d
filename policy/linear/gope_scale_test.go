package linear_test

import (
	"math"
	"testing"

	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/policy/linear"
	"github.com/sotto-dp/sotto/privacy"
	"github.com/sotto-dp/sotto/release"
)

// Features in other units are no other bandit: without any noise, predictions of the surviving
// actions are what their rewards were, in whatever scale coordinates are, also where some actions
// are nearly the same.
func TestGOPEScales(t *testing.T) {
	for seed := range uint64(300) {
		s := noise.NewFast(seed, 1)
		scale := []float64{1, 1e-12, 1e-11, 1e-12}
		actions, means := make([][]float64, 6), make([]float64, 6)
		for i := range actions {
			a := make([]float64, len(scale))
			s.Normals(a)
			if i > 1 { // nearly one of the first
				for j := range a {
					a[j] = actions[i%2][j]/scale[j] + 1e-7*a[j]
				}
			}
			for j := range a {
				a[j] *= scale[j]
			}
			actions[i] = a
		}
		size := 0.0
		for _, a := range actions {
			size = max(size, math.Sqrt(a[0]*a[0]+1e-10))
		}
		for i, a := range actions {
			for j := range a {
				a[j] /= 2 * size
			}
			means[i] = a[0]
		}
		p, err := linear.NewGOPE(actions, 1000, privacy.None{}, linear.GOPEOptions{Risk: 0.001})
		if err != nil {
			t.Fatal(err)
		}
		c, err := release.SimulatedActions(actions, false, nil, &s)
		if err != nil {
			t.Fatal(err)
		}
		var released privacy.ReleasedVector
		for phase := 1; phase < 6; phase++ {
			alive := p.Surviving()
			b := p.Next(released)
			if len(alive) == 1 || !b.Plays[0].Release {
				break
			}
			for _, play := range b.Plays {
				if err := c.AddSum(play.Arm, play.Rounds, float64(play.Rounds)*means[play.Arm]); err != nil {
					t.Fatal(err)
				}
			}
			if released, err = c.Release(p.Mechanism()); err != nil {
				t.Fatal(err)
			}
			alive = p.Surviving()
			p.Next(released)
			released = privacy.ReleasedVector{}
			theta := p.Estimate()
			for _, a := range alive {
				x := -means[a]
				for j, y := range actions[a] {
					x += y * theta[j]
				}
				if !(math.Abs(x) < 1e-3) {
					t.Fatalf("seed %d, phase %d: the prediction of action %d is off by %v "+
						"without noise: %v", seed, phase, a, x, actions)
				}
			}
		}
	}
}
