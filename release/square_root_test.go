package release

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
)

// The square root's noise is Cz, by the definition, up to the longest slot; and the slot has no
// more memory then.
func TestSquareRootNoise(t *testing.T) {
	const n = privacy.MaxSquareRoot
	r := rand.New(rand.NewPCG(3, 4))
	z := make([]float64, n)
	for i := range z {
		z[i] = r.NormFloat64()
	}
	c, s, src := column(privacy.SquareRoot{Sigma: 1, Horizon: n}, n), newStream(privacy.SquareRoot{Sigma: 1, Horizon: privacy.MaxSquareRoot}), &given{z}
	at, worst := 0, 0.0
	next := func() {
		at++
		if at >= 1500 {
			at += at / 4
		}
		at = min(at, n)
		got, err := s.At(uint64(at), src)
		if err != nil {
			t.Fatal(err)
		}
		want, lost := 0.0, 0.0 // summed with what rounding lost (Kahan)
		for i := range at {
			x := float64(c[at-1-i]*z[i]) - lost
			y := want + x
			want, lost = y, (y-want)-x
		}
		worst = max(worst, math.Abs(got-want))
	}
	for at < n {
		if got := testing.AllocsPerRun(1, next); got > 0 {
			t.Fatalf("%v allocations on the way to %d", got, at)
		}
	}
	if worst > 1e-13 {
		t.Errorf("noise is off by %.2g, at sigma = 1", worst)
	}
}

// rootLaw compares the joint law of the noise in the sums of 1, 2, …, dim rewards with N(0, σ²CCᵀ):
// with y = Cx, x are to be independent N(0, σ²), so the means of the products of two of them are 0
// or σ². It gives how many standard errors the worst of dim(dim+1)/2 is off.
func rootLaw(t *testing.T, build func(run int) stream[float64], src func(run int) sampler[float64],
	sigma float64, dim, runs int) float64 {
	t.Helper()
	c := column(privacy.SquareRoot{Sigma: 1, Horizon: dim}, dim)
	moments := make([]float64, dim*dim)
	x := make([]float64, dim)
	for run := range runs {
		s, draws := build(run), src(run)
		for i := range x {
			y, err := s.At(uint64(i+1), draws)
			if err != nil {
				t.Fatal(err)
			}
			for j := range i {
				y -= c[i-j] * x[j]
			}
			x[i] = y
			for j := range i + 1 {
				moments[i*dim+j] += x[i] * x[j] / (sigma * sigma * float64(runs))
			}
		}
	}
	worst := 0.0
	for i := range dim {
		for j := range i + 1 {
			want, se := 0.0, 1/math.Sqrt(float64(runs))
			if i == j {
				want, se = 1, math.Sqrt2/math.Sqrt(float64(runs))
			}
			worst = max(worst, math.Abs(moments[i*dim+j]-want)/se)
		}
	}
	return worst
}

// again draws its noise anew at each look.
type again struct{}

func (again) At(t uint64, noise sampler[float64]) (float64, error) {
	return newStream(privacy.SquareRoot{Sigma: 1, Horizon: privacy.MaxSquareRoot}).At(t, noise)
}

// A false alarm has probability below 78·2·10⁻⁹ (six standard errors).
func TestSquareRootLaw(t *testing.T) {
	const sigma, dim, runs, limit = 1.5, 12, 4000, 6
	whole := func(run int) sampler[float64] {
		return fastGaussian{&noise.Key{Seed: 12, Run: run, Role: noise.RoleNoise}.Fast(1)[0], sigma}
	}
	fresh := func(int) stream[float64] {
		return newStream(privacy.SquareRoot{Sigma: 1, Horizon: privacy.MaxSquareRoot})
	}
	if off := rootLaw(t, fresh, whole, sigma, dim, runs); off > limit {
		t.Errorf("a covariance is off by %.1f standard errors", off)
	}
	half := func(run int) sampler[float64] { return halved{whole(run)} }
	late := func(run int) sampler[float64] { return &lateHalved{sampler: whole(run)} }
	twice := func(run int) sampler[float64] { return &repeated{sampler: whole(run), times: 2} }
	for name, off := range map[string]float64{
		"half the noise":                  rootLaw(t, fresh, half, sigma, dim, runs),
		"half the noise after four draws": rootLaw(t, fresh, late, sigma, dim, runs),
		"each draw used twice":            rootLaw(t, fresh, twice, sigma, dim, runs),
		"a tenth more than was said":      rootLaw(t, fresh, whole, sigma/1.1, dim, runs),
		"drawn again at each look": rootLaw(t, func(int) stream[float64] { return again{} }, whole,
			sigma, dim, runs),
	} {
		if off < limit {
			t.Errorf("%s: off by %.1f standard errors only", name, off)
		}
	}
}
