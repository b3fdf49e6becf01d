package bandit

import (
	"math"
	"slices"
	"testing"

	"github.com/sotto-dp/sotto/internal/testkit"
	"github.com/sotto-dp/sotto/noise"
)

func TestInstance(t *testing.T) {
	in := testkit.Must(NewInstance(testkit.Must(NewBernoulli(0.5)), testkit.Must(NewUniform(0, 1.5)), testkit.Must(NewBeta(3, 1))))
	if got := in.Means(); !slices.Equal(got, []float64{0.5, 0.75, 0.75}) {
		t.Errorf("means %v", got)
	}
	if got := in.Best(); got != 1 {
		t.Errorf("best %d: ties go to the lowest index", got)
	}
	if got := in.Gaps(); !slices.Equal(got, []float64{0.25, 0, 0}) {
		t.Errorf("gaps %v", got)
	}
	if lo, hi := in.Support(); lo != 0 || hi != 1.5 {
		t.Errorf("support [%v,%v]", lo, hi)
	}
	if got := in.String(); got != "[bernoulli(0.5) uniform(0,1.5) beta(3,1)]" {
		t.Errorf("string %s", got)
	}
	in = testkit.Must(NewInstance(testkit.Must(NewBernoulli(0.5)), testkit.Must(NewGaussian(0, 1))))
	if lo, hi := in.Support(); !math.IsInf(lo, -1) || !math.IsInf(hi, 1) {
		t.Errorf("support [%v,%v]", lo, hi)
	}
	if (Instance{}).Best() != -1 || len((Instance{}).Gaps()) != 0 {
		t.Error("an instance without arms has a best one")
	}
}

func TestStandard(t *testing.T) {
	for _, c := range []struct {
		c, k int
		want []float64
	}{
		{1, 5, []float64{0.75, 0.7, 0.7, 0.7, 0.7}},
		{2, 5, []float64{0.75, 0.625, 0.5, 0.375, 0.25}},
		{3, 5, []float64{0.75, 0.53125, 0.375, 0.28125, 0.25}},
		{4, 5, []float64{0.75, 0.71875, 0.625, 0.46875, 0.25}},
		{1, 2, []float64{0.75, 0.7}},
		{2, 2, []float64{0.75, 0.25}},
		{3, 2, []float64{0.75, 0.25}},
		{4, 2, []float64{0.75, 0.25}},
		{3, 3, []float64{0.75, 0.375, 0.25}},
		{4, 3, []float64{0.75, 0.625, 0.25}},
	} {
		in, err := Standard(c.c, c.k)
		if err != nil || !slices.Equal(in.Means(), c.want) {
			t.Errorf("C%d, K = %d: %v %v, want %v", c.c, c.k, in.Means(), err, c.want)
		}
	}
	for c := 1; c <= 4; c++ { // ends exact and means in order for any K
		for k := 2; k < 200; k++ {
			m := testkit.Must(Standard(c, k)).Means()
			last := 0.25
			if c == 1 {
				last = 0.7
			}
			if m[0] != 0.75 || m[k-1] != last || !slices.IsSortedFunc(m, func(a, b float64) int {
				switch {
				case a > b:
					return -1
				case a < b:
					return 1
				}
				return 0
			}) {
				t.Fatalf("C%d, K = %d: %v", c, k, m)
			}
		}
	}
}

func TestUniformMeans(t *testing.T) {
	clip := testkit.Must(ClippedGaussianFamily(0.1, 0, 1))
	for _, c := range []struct {
		f    Family
		want string
	}{
		{BernoulliFamily(), "uniform-means(arms=10,lo=0.25,hi=0.75,law=bernoulli,redrawn=true)"},
		{testkit.Must(GaussianFamily(0.1)), "uniform-means(arms=10,lo=0.25,hi=0.75,law=gaussian(sd=0.1),redrawn=true)"},
		{clip, "uniform-means(arms=10,lo=0.25,hi=0.75,law=clipped-gaussian(sd=0.1,lo=0,hi=1),redrawn=true)"},
	} {
		u := testkit.Must(NewUniformMeans(10, 0.25, 0.75, c.f, true))
		if u.String() != c.want || !u.Redrawn() {
			t.Errorf("%v, want %s", u, c.want)
		}
		s := noise.NewFast(1, 2)
		same := noise.NewFast(1, 2)
		var all []float64
		for range 2000 {
			in := testkit.Must(u.Instance(&s))
			if again := testkit.Must(u.Instance(&same)); again.String() != in.String() {
				t.Fatal("the same stream, another instance")
			}
			for _, l := range in.Arms {
				switch l := l.(type) {
				case ClippedGaussian:
					all = append(all, l.mean)
				default:
					all = append(all, l.Mean())
				}
			}
		}
		if err := goodness(all, func(x float64) float64 { return min(max((x-0.25)*2, 0), 1) }); err != nil {
			t.Errorf("%v: means: %v", u, err)
		}
	}
	if u := testkit.Must(NewUniformMeans(2, 0, 1, BernoulliFamily(), false)); u.Redrawn() {
		t.Error("redrawn")
	}
}

func TestFixed(t *testing.T) {
	in := testkit.Must(Standard(2, 5))
	var src Source = Fixed(in)
	got, err := src.Instance(nil)
	if err != nil || got.String() != in.String() || src.String() != in.String() || src.Redrawn() {
		t.Errorf("%v %v", got, err)
	}
	if _, err := (Fixed{}).Instance(nil); err == nil {
		t.Error("an instance without arms")
	}
}
