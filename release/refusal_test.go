package release

import (
	"math"
	"strings"
	"testing"

	"github.com/sotto-dp/sotto/noise"
	"github.com/sotto-dp/sotto/privacy"
)

// realCurators are all curators of rewards that belong to people, each as two functions: one
// reward in, through Add or through AddSum where there is one, and the number of rewards in what
// is then released.
func realCurators(t *testing.T) map[string]func() (add, sum func(x float64) error,
	release func() (int, error)) {
	t.Helper()
	out := map[string]func() (add, sum func(x float64) error, release func() (int, error)){}
	curate := func(cfg Config) func() (add, sum func(x float64) error, release func() (int, error)) {
		return func() (add, sum func(x float64) error, release func() (int, error)) {
			c, err := Real(cfg)
			if err != nil {
				t.Fatal(err)
			}
			return func(x float64) error {
					return c.Add(0, x)
				}, func(x float64) error { return c.AddSum(0, 1, x) }, func() (int, error) {
					r, err := c.Release([]int{0})
					if err != nil {
						return 0, err
					}
					return r.N(0), nil
				}
		}
	}
	for _, m := range []privacy.Mechanism{privacy.Exact{}, privacy.Laplace{Scale: 1},
		privacy.Gaussian{Sigma: 1}, privacy.Tree{Scale: 1, Horizon: 8}, privacy.Hybrid{Scale: 1},
		privacy.NewKAry(1, 3, 8)} {
		out[m.Kind()] = curate(Config{Arms: 1, Mechanism: m})
	}
	for _, trust := range []Trust{{Model: privacy.TrustCentral}, {Model: privacy.TrustLocal},
		{Model: privacy.TrustSecAgg}, {Model: privacy.TrustShuffle}, {Model: privacy.TrustTwoServer}} {
		trust.P = 1e-3
		out[string(trust.Model)] = curate(Config{Arms: 1, Mechanism: privacy.Laplace{Scale: 1}, Trust: &trust})
	}
	out["actions"] = func() (add, sum func(x float64) error, release func() (int, error)) {
		c, err := RealActions([][]float64{{1}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return func(x float64) error {
				return c.Add(0, x)
			}, func(x float64) error { return c.AddSum(0, 1, x) }, func() (int, error) {
				r, err := c.Release(privacy.Sums{Sigma: 1})
				if err != nil {
					return 0, err
				}
				return r.N(), nil
			}
	}
	for _, m := range []privacy.Mechanism{privacy.VectorGaussian{Sigma: 1},
		privacy.VectorTree{Scale: 1, Dim: 1, Horizon: 8}, privacy.GaussianVectorTree{Sigma: 1, Horizon: 8},
		privacy.GramTree{Sigma: 1, Horizon: 8}} {
		out[m.Kind()] = func() (add, sum func(x float64) error, release func() (int, error)) {
			c, err := RealFeatures(FeatureConfig{Dim: 1, Slots: 1, Mechanism: m})
			if err != nil {
				t.Fatal(err)
			}
			return func(x float64) error { return c.Add(0, []float64{1}, x) }, nil, func() (int, error) {
				r, err := c.Release(0)
				if err != nil {
					return 0, err
				}
				return r.N(), nil
			}
		}
	}
	return out
}

// No reward of a person is refused for its value, after earlier releases least of all: the refusal,
// and a count that is one less, would tell of it. What is out of range, and what is no number,
// counts as an end of the range.
func TestRealCuratorsTakeEveryReward(t *testing.T) {
	for name, build := range realCurators(t) {
		for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1e300, 1e300, 0.5, -0.5, 7} {
			add, sum, release := build()
			for i, f := range []func(float64) error{add, sum} {
				if f == nil {
					continue
				}
				if err := f(0.25); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if err := f(x); err != nil {
					t.Errorf("%s: reward %v, way %d: %v", name, x, i, err)
				}
			}
			want := 4
			if sum == nil {
				want = 2
			}
			if n, err := release(); err != nil || n != want {
				t.Errorf("%s: after reward %v %d rewards were released, want %d: %v", name, x, n, want, err)
			}
		}
	}
}

// What is no number counts as the lower end, exactly: a NaN beside it would make the sum one.
func TestNaNIsTheLowerEnd(t *testing.T) {
	c, err := Real(Config{Arms: 1, Lo: -3, Hi: 5, Mechanism: privacy.Exact{}})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []float64{math.NaN(), 5, math.NaN(), -3} {
		if err := c.Add(0, x); err != nil {
			t.Fatal(err)
		}
	}
	if r, err := c.Release([]int{0}); err != nil || r.Sum(0) != 1 || r.N(0) != 4 {
		t.Errorf("%v of %d, %v: want a sum of 1 of 4", r.Sum(0), r.N(0), err)
	}
	a, err := RealActions([][]float64{{1}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []float64{math.NaN(), 1, 1, math.NaN(), math.NaN()} {
		if err := a.Add(0, x); err != nil {
			t.Fatal(err)
		}
	}
	if r, err := a.Release(privacy.Sums{}); err != nil || r.At(0) != -1 {
		t.Errorf("%v, %v: want a sum of −1", r, err)
	}
}

// No error of a curator or of a way to sum has a reward, a message or a sum in it.
func TestErrorsHaveNoValues(t *testing.T) {
	const canary = 0.7312894561
	sim := func(cfg Config) Curator {
		c, err := Simulated(cfg, &noise.Fast{})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	plain := sim(Config{Arms: 1, Hi: 0.5, Mechanism: privacy.Laplace{Scale: 1}})
	trust := sim(Config{Arms: 1, Hi: 0.5, Mechanism: privacy.Laplace{Scale: 1},
		Trust: &Trust{Model: privacy.TrustCentral, P: 1e-3}})
	actions, err := SimulatedActions([][]float64{{1}}, false, nil, &noise.Fast{})
	if err != nil {
		t.Fatal(err)
	}
	real, err := Real(Config{Arms: 1, Mechanism: privacy.Laplace{Scale: 1}})
	if err != nil {
		t.Fatal(err)
	}
	_, _, message := PlainSum{}.Sum(Sum{Modulus: 100, Users: 1}, []uint64{7312894561})
	for what, err := range map[string]error{
		"sum of one": plain.AddSum(0, 1, canary), "sum of several": plain.AddSum(0, 2, 2+canary),
		"sum of none":         plain.AddSum(0, 0, canary),
		"one under trust":     trust.AddSum(0, 1, canary),
		"several under trust": trust.AddSum(0, 2, canary+3), "not of two ends": trust.AddSum(0, 2, canary),
		"sum of an action":  actions.AddSum(0, 0, canary),
		"sum of a real arm": real.AddSum(0, 2, canary), "message": message,
	} {
		if err == nil || strings.Contains(err.Error(), "7312") || strings.Contains(err.Error(), "0.73") {
			t.Errorf("%s: %v", what, err)
		}
	}
}
